"""What the text of notebook 10 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.debugging import answers, casefile, examined, heart

# %% try
places = (moved[:6] > 1e-3).nonzero()[0].tolist()
as_written(two_layers=places == [4, 5], parity=parity > 0.1, rows=rows < 1e-5)

# %% diagnosis-check
first = range(1, casefile.CORE + 1)  # the first is told
silent = [n for n in first if not any(casefile.alarms(casefile.of(n)))]
parts = [answers.right(n)[0] for n in first]
as_written(two=tuple(silent) == casefile.SILENT, nothing_is_told=check.diagnosis(my_diagnosis).passed is None)
as_written(one_is_well=parts.count("none") == 1, one_is_ill_in_its_data=parts.count("data") == 1)
well = answers.diagnosis({n: answers.right(n)[0] for n in my_diagnosis})  # not by `check`, which notes what is solved
as_written(can_be_solved=well.passed is True)
above = {n for n in casefile.PATIENTS if lab._maps(casefile.bug_of(n)).sum(axis=-1).max() > 1.001}
below = {n for n in casefile.PATIENTS if lab._maps(casefile.bug_of(n)).sum(axis=-1).min() < 0.999}
as_written(above={casefile.CASES[casefile.bug_of(n)].part for n in above} == {"softmax"})
as_written(below={casefile.bug_of(n) for n in below - above} == {"mask after softmax"})
as_written(first=casefile.bug_of(1) == "no mask", half=abs(casefile.of(1).ahead - 0.5) < 0.02)

# %% heart
as_written(three=(loss < 0.01, share < 0.5) == (True, True))

# %% matrix-lab
random = {bug: np.array(of) for bug, of in heart.stored()["random"].items()}
found = {bug: lab.found(bug) for bug in heart.BUGS}
as_written(starts=all(len(of) == 10 for of in random.values()), bugs=len(heart.BUGS) == 19)
unlearnt = [bug for bug in heart.BUGS if heart.learnt(bug) < 10]
as_written(only=unlearnt == ["backward without the row's sum"], none_of=heart.learnt(unlearnt[0]) == 0)
early = {bug: of[:, 0] for bug, of in random.items()}
as_written(faster=sum(bool((early[bug] < early[""]).all()) for bug in heart.BUGS) == 5, at=heart.EARLY == 20)
passed = {bug for bug in heart.BUGS if not found[bug]["and written"]}
as_written(thirteen=len(passed) == 6, all_of_it=all(min(heart.written(bug)) == 1 for bug in {"", *passed}))
counted = [
    {
        bug
        for bug in heart.BUGS
        if heart.stored()["counting"][bug][n][1] < heart.LEARNT and heart.written(bug, "counting")[n] == 1
    }
    for n in range(heart.STARTS["counting"])
]
as_written(counting={len(of) for of in counted} == {13, 14}, starts=len(counted) == 3)
others = {bug: [name for name in lab.INSTRUMENTS[:-1] if found[bug][name]] for bug in passed}
as_written(order=others["positions forgotten"] == ["order"], start=others["table too loud"] == ["loss at the start"])
as_written(twin=sum(of["right twin"] for of in found.values()) == 16, rest=sum(not of for of in others.values()) == 4)

# %% start-code
as_written(width_256=9 < losses[0] < 10, own=own > 9, another=losses[1] < 5.5, small=abs(losses[2] - np.log(V)) < 0.1)
starts = [lab.broken.patient("", vocab=V, d_model=d).loss((inputs, targets)) for d in (32, 64, 128, 256)]
as_written(grows=starts == sorted(starts), from_to=[round(starts[0], 1), round(starts[-1], 1)] == [5.3, 9.6])
deep = [lab.broken.patient("", vocab=V, d_model=d, num_layers=8).loss((inputs, targets)) for d in (32, 256)]
as_written(eight_layers=abs(deep[0] - 5.1) < 0.05 and abs(deep[1] - 6.0) < 0.06)
as_written(healthy_starts_at_5=abs(examined.stored()[examined.HEALTHY].start - 5.0) < 0.05)

# %% twin-code
apart = [[float(np.abs(port[part] - x).max()) for part, x in original.items()] for port in ports]
first = [next(part for part, x in zip(original, found, strict=True) if x > 1e-5) for found in apart[:3]]
as_written(first=first == ["attention 1", "feed-forward 1", "attention 3"], rounding=max(apart[3]) < 1e-5)
as_written(B=3e-4 < apart[1][-1] <= 5.5e-4, jump=3e-4 < max(apart[1][:3]) < 5e-4)
as_written(largest=abs(np.abs(original["logits"]).max() - 7.5) < 0.05)
stored = lab.measured_symptoms()["rounding"]
as_written(chatbot=stored == {"largest": 22517, "off": 0.02})

# %% difference-use
as_written(D=names[agree] == "feed-forward 2")

# %% twin-patients
as_written(healthy_or_not=np.abs(theirs - right).max() > 0.1)

# %% symptoms-lab
by_bug = lab.measured_symptoms()["symptoms"]
too_far, late = by_bug["mask one too far"], by_bug["mask after softmax"]
as_written(Paris="Paris" in too_far["says"] and "Paris" in late["says"])
as_written(
    numbers=(too_far["perplexity"], late["perplexity"], by_bug["no causal mask"]["perplexity"]) == (5.18, 195, 4.28)
)
