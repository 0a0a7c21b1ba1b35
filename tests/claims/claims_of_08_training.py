"""What the text of notebook 08 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.training import experiment, rates, recipes

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
forms = {form: lab.exact_as(model, form) for form in lab.FORMS}
as_written(
    STEPS == 1000,
    some=min(forms["3 March, 2021"], forms["3 Mar 2021"], forms["Mar 3, 2021"]) > 0.95,
    not_all=0.5 < forms["Wed 3 March 2021"] < 0.65 and 0.5 < forms["03/03/2021"] < 0.65,
    order=forms["2021/3/3"] < 0.01,
    century=lab.translate(model, "3 August 1850") != "1850-08-03",
    month_13=lab.translate(model, "3/13/2021") == "2021-13-03",
    month_17=lab.translate(model, "3/17/1984") == "1984-12-03",
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

# %% sum-code
as_written(right=off["yours"] < 1e-9, found=min(off["all zeros"], off["plain mean"]) > 1e-2)

# %% page-check
as_written(all_right=max(errors) < 1e-7)

# %% embedding-check
as_written(sums=np.abs(twice - slopes).max() < 1e-7, once_is_wrong=np.abs(once - slopes).max() > 0.1)

# %% blind-code
loss, blind = (
    {run: np.array(recipes.result("again", *run, what)) for run in recipes.BLIND} for what in ("loss", "blind")
)
dead, near = ("post", "warm-up", 0.032), ("post", "warm-up", 0.016)
as_written(
    reads=all(blind["pre", "nothing", 0.008] > 2),
    blind=all(blind[dead] == loss[dead]) and all(abs(loss[dead] - 2.29) < 0.01),
    reads_a_little=all(abs(loss[near][:2] - 0.94) < 0.02) and all(abs(blind[near][:2] - 1.29) < 0.02),
    in_the_figure=[round(x, 2) for x in lab.starts("post", "warm-up", 0.016, "loss")[:2]] == [0.94, 0.94],
    so_are_the_others=all(
        abs(x - 2.29) < 0.03 for rate in (0.032, 0.064) for x in lab.starts("post", "warm-up", rate, "loss")
    ),
    none_explodes=all(x < np.log(14) for recipe in rates.RECIPES for x in lab.past_the_cliff(*recipe)),
)

# %% clip-code
harder = {norm: np.array(recipes.result("clip 0.01", norm, "nothing", 0.008)) for norm in ("pre", "post")}
as_written(no_harm=all((harder[norm] > lab.starts(norm, "nothing", 0.008)).all() for norm in harder))

# %% schedule-plot
by_kind = {
    kind: [np.mean(recipes.result(f"schedule {kind}", "pre", "nothing", rate)) for rate in (0.004, 0.008, 0.016)]
    for kind in ("constant", "linear", "cosine", "stable, then down")
}
best = [max(by_kind, key=lambda kind: by_kind[kind][n]) for n in range(3)]
as_written(
    constant_first=by_kind["constant"][0] > max(by_kind["linear"][0], by_kind["cosine"][0]),
    a_fifth=0.15 < by_kind["linear"][2] - by_kind["constant"][2] < 0.25,
    worth_more=np.all(np.diff(np.subtract(by_kind["linear"], by_kind["constant"])) > 0),
    best=best == ["stable, then down", "stable, then down", "linear"],
)

# %% today-code
faster = {
    (norm, part): np.array(recipes.result("beta_2 0.95", norm, part, rate))
    for norm, rate in recipes.STEEP.items()
    for part in ("nothing", "warm-up")
}
as_written(
    doubles=min(faster["pre", "nothing"]) > 1.3 * max(lab.starts("pre", "nothing", 0.032)),
    qk_norm=1.8 < np.mean(recipes.result("QK-norm", "pre", "nothing", 0.032)) / 0.27 < 2.3,
    qk_norm_no_warm_up=max(recipes.result("QK-norm", "pre", "warm-up", 0.032)) < 0.06,
    decay=0.03 < np.mean(recipes.result("weight decay 0.1", "pre", "nothing", 0.008)) - 0.861 < 0.07,
    no_warm_up=max(*faster["pre", "warm-up"], *faster["post", "warm-up"]) < 0.01,
)

# %% sums-plot
same = sorted(n for of in found for n in of["same"])
as_written(more=all(of["together"] > 1.1 * sum(of["alone"]) for of in found), formats=same == [2] + 7 * [3] + 8 * [4])

# %% rates-larger
norms, sizes, both = ("pre", "post"), tuple(rates.LARGER), "warm-up and clipping"


def added(norm, part, rate):  # by a part of the recipe, for each start
    return np.subtract(lab.starts(norm, "nothing", rate), lab.starts(norm, part, rate))


def worth(size, norm, part):  # the same in the larger runs, for three rates
    of = lab.larger
    return np.array([of(size, norm, "nothing", rate) - of(size, norm, part, rate) for rate in rates.RATES[4:7]])


def unsure(norm, size=None):  # how many times as high smoothing leaves the loss
    return np.divide(
        *(
            lab.larger(size, norm, part, 0.008, "loss") if size else np.mean(lab.starts(norm, part, 0.008, "loss"))
            for part in ("nothing", "smoothing")
        )
    )


as_written(
    little_at_low_rates=all(0 < added(norm, "warm-up", 0.004).mean() < 0.1 for norm in norms),
    pre_loses_a_part=min(lab.starts("pre", "nothing", 0.016)) > max(lab.starts("pre", "warm-up", 0.016)) > 0.1,
    post_loses_all=max(lab.starts("post", "warm-up", 0.016)) < 0.01,
    no_rate_is_left=not lab.survivors("post", both) and len(lab.survivors("pre", both)) == 3,
    unsure=min(unsure(norm) for norm in norms) > 3,
    unsure_when_larger=min(unsure(norm, size) for norm in norms for size in sizes) > 4,
    as_right=all(abs(added(norm, "smoothing", 0.008).mean()) < 0.01 for norm in norms),
    more_right=min(lab.starts("post", "nothing", 0.016)) > max(lab.starts("post", "smoothing", 0.016)),
    post_needs_clipping=added("post", "clipping", 0.008).min() > 0,
    pre_does_not=abs(added("pre", "clipping", 0.008)).max() < 0.03 and added("pre", "clipping", 0.032).max() < 0,
    nor_in_more_steps=all(abs(worth(sizes[0], norm, "clipping")[0]) < 0.01 for norm in norms),
    again_a_rate=lab.larger(sizes[0], "post", both, 0.008) > lab.ENOUGH,
    warm_up_decides=all(worth(size, norm, "warm-up").max() > 0.25 for norm in norms for size in sizes),
    post_needs_it_sooner=all(
        np.argmax(worth(size, "post", "warm-up") > 0.25) < np.argmax(worth(size, "pre", "warm-up") > 0.25)
        for size in sizes
    ),
    only_later=abs(worth(sizes[0], "pre", "warm-up")[1]) < 0.01 < 0.5 < worth(sizes[0], "pre", "warm-up")[2],
    further_left=all(
        lab.larger(sizes[1], norm, "nothing", 0.016) < lab.ENOUGH < lab.means(norm, "nothing")[5] for norm in norms
    ),
)

# %% heads-map
cost = [experiment.wrong(model, [head]) for head in experiment.heads_of(model)]
as_written(STEPS == 1000, a_few=3 <= sum(x > 0.5 for x in cost) <= 5, hardly=sum(x < 0.05 for x in cost) >= 2)

# %% mine-reads
as_written(
    reads=0.6 < lab.exact(mine) < film.right[STEPS],
    same=max(abs(a - b) for a, b in zip(own, library, strict=True)) < 1e-6,
)


def without_the_root(doutput, Q, K, V, weights):
    dS = ops.softmax_backward(doutput @ np.swapaxes(V, -1, -2), weights)
    return dS @ K, np.swapaxes(dS, -1, -2) @ Q, np.swapaxes(weights, -1, -2) @ doutput


wrong = lab.transformer(dtype=np.float64)
with lab.backward_by(softmax_back, without_the_root):
    losses = train(wrong, training.Adam(wrong.params()))
as_written(
    not_at_the_first_step=losses[0] == library[0],
    from_the_second=abs(losses[1] - library[1]) > 1e-4,
    it_trains=lab.exact(wrong) > 0.5,
    only_worse=lab.exact(wrong) < lab.exact(mine),
)
