"""What the text of notebook 08 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.training import experiment

# %% train
as_written(STEPS == 1000, works=film.right[STEPS] >= 0.99, rung=50 < below < 120)

# %% model
as_written(lowest=abs(np.log(days) / 11 - lab.rungs()["all before"]) < 1e-9, days=days == 32_872)

# %% film-lab
early_shares = film.places[STEPS * 8 // 100]
sources, targets = experiment.dates_of()
of_another = experiment.predicted(film.at(STEPS * 8 // 100), (np.roll(sources, 1, axis=0), targets)) == targets[:, 1:]
as_written(
    STEPS == 1000,
    frame=early_shares[[0, 1, 4, 7, 10]].min() > 0.9,
    often_wrong=early_shares[[2, 3, 5, 6, 8, 9]].max() < 0.8,
    the_first_is_read=of_another.mean(axis=0)[0] < 0.6,
    the_rest_is_not=of_another.mean(axis=0)[[1, 4, 7, 10]].min() > 0.85,
)
where = lab.frame(film.at(STEPS), "March 3, 2021").weights.mean(axis=0)[:, :5].sum(axis=1)  # on the letters
blind = experiment.predicted(film.at(STEPS), (sources, targets), {"cross": {0: range(4)}}) == targets[:, 1:]
as_written(STEPS == 1000, dashes_look=where[[4, 7]].min() > 0.6, in_vain=blind.mean(axis=0)[[4, 7]].min() == 1)

# %% late-code
as_written(
    STEPS == 1000,
    the_next_digit=min(further for _, further in lab.late(film, STEPS * 2 // 10)) > 0.9,
    the_two_latest=set(np.argsort(film.places[STEPS * 2 // 10])[:2].tolist()) == {2, 8},
)

# %% unseen-code
answers = [lab.asked(model), *(from_start(seed) for seed in (1, 2, 3))]
forms = {form: [shares[n] for shares, _ in answers] for n, form in enumerate(lab.FORMS)}
as_written(
    STEPS == 1000,
    new_mixture=min(forms["3 March, 2021"]) > 0.95,
    by_start=sorted(forms["March 3 2021"])[1] < 0.5 and max(forms["March 3 2021"]) > 0.95,
    order=max(forms["2021/3/3"]) < 0.01,
    century=all(texts[1] != "1850-08-03" for _, texts in answers),
    month_17=[texts[0] for _, texts in answers] == ["1984-12-03", "1984-17-03", "1984-17-03", "1984-07-03"],
)

# %% slope-lab
for (_, floats, activation), (slope, found) in lab._prepare(early).items():
    if floats == "float64":
        off = [abs(secant - slope.right) / abs(slope.right) for secant, _ in found]
        kinks = [n for _, n in found]
        first = kinks.index(0)  # the largest ε without a switch
        claims = {"lowest": 1e-7 < lab.EPSILONS[int(np.argmin(off))] < 1e-4}
        if activation == "GELU":
            claims["square"] = all(8 < off[n] / off[n + 1] < 12 for n in range(5))
        else:
            claims["drop"] = off[first - 1] / off[first] > 1000 and not any(kinks[first:])
        as_written(STEPS == 1000, **claims)

# %% forgotten-code
off = {
    (label, back is softmax_back, epsilon): lab.off_by(early, name, back, epsilon)
    for label, name in lab.LAYERS.items()
    for back in (softmax_back, lambda dw, w: dw * w)
    for epsilon in (1e-3, 1e-5, 1e-7)
}
as_written(
    STEPS == 1000,
    yours=all(error < 1e-7 for (_, right, epsilon), error in off.items() if right and epsilon < 1e-3),
    no_epsilon_helps=all(
        error > 0.1 for (label, right, _), error in off.items() if not right and label != "cross-attention, W_V"
    ),
    but_here=off["cross-attention, W_V", False, 1e-5] < 1e-7,
)

# %% sum-code
as_written(right=off["yours"] < 1e-9, found=min(off["all zeros"], off["plain mean"]) > 1e-2)

# %% hills
ends = {key: [runs.mean(axis=0) for runs in of] for key, of in hills.items()}  # (share, loss, of another) by rate
warmed, cold = (lambda norm, w=w: np.array([of[0] for of in ends[norm, w]]) for w in (60, 0))
as_written(
    starts=[[len(runs) for runs in of] for of in hills.values()] == [list(STARTS)] * 4,
    hill=all(warmed(norm).argmax() in (1, 2) for norm in ("pre", "post")),
    little=all(0 < (warmed(norm) - cold(norm))[0] < 0.1 for norm in ("pre", "post")),
    pre_loses_a_part=cold("pre")[2] > 0.3 and warmed("pre")[2] - cold("pre")[2] > 0.15,
    post_loses_all=hills["post", 0][2][:, 0].max() < 0.05 and warmed("post")[2] > 0.6,
)

# %% blind-code
reads = hills["pre", 60][1]
near, dead = hills["post", 0][2], hills["post", 0][3]
on_a_rung = np.min([abs(near[:, 1] - rung) for rung in lab.rungs().values()], axis=0) < 0.03
blind = abs(near[:, 2] - near[:, 1]) < 0.005
as_written(
    two_seem_to_fit=(near[:, 1] < 0.96).sum() == 2 and near[:, 1].min() > 0.93 and (~on_a_rung).sum() > 5,
    no_fit_and_blind=(blind & ~on_a_rung).sum() > 1,
    moved=[round(lab.rungs(0.1)[name], 3) for name in ("by symbol", "all before")] == [2.291, 1.021],
    stand_on_it=abs(dead[:, 1] - lab.rungs(0.1)["by symbol"]).max() < 0.005,
    below_it_all_read=all(
        (runs[runs[:, 1] < lab.rungs(0.1)["all before"]] @ [0, -1, 1] > 0.03).all()
        for of in hills.values()
        for runs in of
    ),
    the_two_read=abs(near[near[:, 1] < 0.96, 2] - 1.3).max() < 0.03,
    blind=abs(dead[:, 2] - dead[:, 1]).max() < 0.005 and abs(dead[:, 1] - 2.29).max() < 0.02,
    others_read=all(
        (runs[:, 2] - runs[:, 1]).min() > 0.03 for runs in (near[~blind], hills["pre", 0][3], hills["post", 60][3])
    ),
    also_blind_at_the_rung=(blind & on_a_rung).sum() == 1 and near[blind & on_a_rung, 1].min() > 2.28,
    a_working_one_reads=reads[:, 2].min() > 2,
)

# %% starts-code
three, ten = ({name: np.mean(of[:n]) for name, of in edge.items()} for n in (3, 10))
spread = {name: np.std(of, ddof=1) for name, of in edge.items()}
as_written(
    ten=all(len(of) == 10 for of in edge.values()),
    three_say_double=all(three[name] > 2 * three["the recipe"] for name in ("β₂ = 0.95", "QK-norm")),
    ten_say_less=abs(ten["the recipe"] - 0.44) < 0.01 and all(abs(ten[name] - 0.6) < 0.02 for name in list(ten)[1:]),
    uncertain=round(spread["the recipe"] / 10**0.5, 2) == 0.06,
    far_smaller=spread["QK-norm"] < 0.4 * spread["the recipe"],
)

# %% mine-reads
as_written(
    reads=0.6 < lab.exact(mine) < film.right[STEPS],
    same=max(abs(a - b) for a, b in zip(own, library, strict=True)) < 1e-6,
)


def without_the_root(doutput, Q, K, V, weights):
    dS = ops.softmax_backward(doutput @ np.swapaxes(V, -1, -2), weights)
    return dS @ K, np.swapaxes(dS, -1, -2) @ Q, np.swapaxes(weights, -1, -2) @ doutput


wrong = lab.transformer(dtype=np.float64)
with lab.backward_by(loss_back, softmax_back, without_the_root):
    losses = train(wrong, training.Adam(wrong.params()))
as_written(
    not_at_the_first_step=losses[0] == library[0],
    from_the_second=abs(losses[1] - library[1]) > 1e-4,
    it_trains=lab.exact(wrong) > 0.5,
    only_worse=lab.exact(wrong) < lab.exact(mine),
)

# %% own-adam
as_written(steps_too=max(abs(a - b) for a, b in zip(own, library, strict=True)) < 1e-6)
