"""What the text of notebook 10 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.debugging import answers, casefile, examined, tried

# %% try
places = (moved[:6] > 1e-3).nonzero()[0].tolist()
as_written(two_layers=places == [4, 5], parity=parity > 0.1, rows=rows < 1e-5)

# %% start-code
as_written(width_256=9 < losses[0] < 10, own=own > 9, another=losses[1] < 5.5, small=abs(losses[2] - np.log(V)) < 0.1)
starts = [lab.broken.patient("", vocab=V, d_model=d).loss((inputs, targets)) for d in (32, 64, 128, 256)]
as_written(grows=starts == sorted(starts), from_to=[round(starts[0], 1), round(starts[-1], 1)] == [5.3, 9.6])
deep = [lab.broken.patient("", vocab=V, d_model=d, num_layers=8).loss((inputs, targets)) for d in (32, 256)]
as_written(eight_layers=abs(deep[0] - 5.1) < 0.05 and abs(deep[1] - 6.0) < 0.06)
as_written(healthy_starts_at_5=abs(examined.stored()[examined.HEALTHY].start - 5.0) < 0.05)

# %% examine-one
as_written(a_leak=leak_in_time(patient, ids, 6)[:6].max() > 1)

# %% diagnosis-check
silent = [n for n in casefile.PATIENTS[: casefile.CORE] if not any(casefile.alarms(casefile.of(n)))]
as_written(two=silent == [9, 10], nothing_is_told=check.diagnosis(my_diagnosis).passed is None)
well = answers.diagnosis({n: answers.right(n)[0] for n in my_diagnosis})  # not by `check`, which notes what is solved
as_written(can_be_solved=well.passed is True)

# %% net-code
as_written(no_false_alarm="12 of 19 bugs are caught, with no false alarm" in lab.net(tests).alt)

# %% triage-use-code
gauges = casefile.gauges()  # (20, 6)
nothing = (~gauges.any(axis=1)).nonzero()[0] + 1
as_written(silent=nothing.tolist() == [9, 10, 20])

# %% one-batch-code
healthy, backward, twice, unshifted = (losses[-1] for losses in learnt.values())
as_written(well=max(healthy, unshifted) < 0.01, first=unshifted < healthy, stuck=min(backward, twice) > 1)
inverted = training.fit(lab.broken.patient("mask inverted", vocab=20), lambda rng: batch, 150, lr=1e-2, progress=False)
as_written(inverted=inverted.losses[-1] < 0.05)

# %% matrix-lab
as_written(twin=sum(lab.found_untrained(bug)["right twin"] for bug in tried.BUGS) == 16)
as_written(cache_counts=not any(lab.noticed("cache counts calls", task)[1] for task in ("copy", "reverse", "dates")))
as_written(gather_alone=[lab.noticed("merged without the swap", task)[0] for task in tried.TASKS].count(True) == 1)

# %% scrambled
merged, split = lab.tried()["merged without the swap"], lab.tried()["split and merged without the swap"]
learnt = min(told for task in ("copy", "reverse", "dates") for told, _ in merged[task])
slower = max(told for told, _ in merged["gather-k"][:3]) < 0.8 < 0.98 < merged["gather-k"][3][0]
as_written(learnt=learnt > 0.99, quarter=split["copy"][0][0] > 0.99 > 0.3 > split["reverse"][0][0], slower=slower)

without_scale = [told for told, _ in lab.tried()["no scale"]["gather-k"][:3]]
as_written(scale=[round(1 - max(without_scale), 2), round(1 - min(without_scale), 2)] == [0.13, 0.24])

# %% ways
written = [row[1:] for row in lab.ways().rows]
told = ("0.16", "0.15", "0.12"), ("0.81", "0.72", "0.99"), ("1.00", "0.47", "1.00")
as_written(as_told=set(told) <= set(written))

# %% twin-code
apart = [[float(np.abs(port[part] - x).max()) for part, x in original.items()] for port in ports]
first = [next(part for part, x in zip(original, found, strict=True) if x > 1e-5) for found in apart[:3]]
as_written(first=first == ["attention 1", "feed-forward 1", "attention 3"], rounding=max(apart[3]) < 1e-5)
as_written(B=3e-4 < apart[1][-1] <= 5.5e-4, jump=3e-4 < max(apart[1][:3]) < 5e-4)
as_written(largest=abs(np.abs(original["logits"]).max() - 7.5) < 0.05)
stream = max(np.abs(x).max() for x in original.values())
as_written(stream=7.5 < stream < 8.5, by_size=5e-5 < max(apart[1]) / stream < 2e-4)

# %% rounding
as_written(
    as_told=("22,517", "2e−02", "9e−07") in [row[1:] for row in lab.rounding().rows], more_than_B=2e-2 > 10 * 5e-4
)

# %% twin-patients
as_written(healthy_or_not=np.abs(theirs - right).max() > 0.1)

# %% missing-code
causal, pads = lab.broken.patient("", vocab=20), [0] * 4
told = causal.forward(row[None])[0][0]
behind, before = (causal.forward(np.append(*pair)[None])[0][0] for pair in ((row, pads), (pads, row)))
as_written(behind=np.abs(behind[:9] - told).max() < 1e-5, before=np.abs(before[4:] - told).max() > 0.1)
as_written(padding=np.abs(padded - alone).max() > 0.1, float16=np.exp(12) > np.finfo(np.float16).max)
as_written(still_float16=less.dtype == np.float16, mended=abs((less / less.sum())[0] - 0.999) < 1e-3)
