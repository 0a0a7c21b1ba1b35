"""What the text of notebook 05 claims of its cells. Each part runs behind the cell that it names."""

# %% stream-alike
plus, without = (lab.likeness(cosines) for cosines in found.values())  # (stacks, blocks + 1)
attention_alone, feed_alone = (lab.likeness(ten(0, (one,))) for one in both)
as_written(
    one=without[:, 4].min() > 0.98,
    attention=attention_alone[:, 4].min() > 0.98,
    averages=abs(lab.likeness(ten(0, ("attention",), np.eye(16, dtype=bool)))).max() < 0.2,
    feed_forward=[round(float(np.median(feed_alone[:, at])), 2) for at in (4, 12)] == [0.68, 0.93],
    slowly=[round(float(np.median(plus[:, at])), 2) for at in (4, 12)] == [0.44, 0.76],
)

# %% tiny-table
reverses, alone, wide, matrix, feed, three = tiny.values()
as_written(
    reverses=min(reverses) > 0.9,
    best_alone=round(max(alone), 2) == 0.84,
    wide_and_matrix=max(*wide, *matrix) < 0.9,
    worst_with_it=round(min(feed), 2) == 0.96,
    blocks=min(three) > 0.95,
    as_many=abs(lab.tiny("nothing", 3, 32, 0).num_params() / lab.tiny("feed-forward", 1, 32, 0).num_params() - 1)
    < 0.02,
)

# %% four-stacks
deep_fates = {formula: fates[formula, 48] for formula in FOUR}
as_written(
    explodes=deep_fates["x + f(x)"][0] > 1e9 and deep_fates["x + f(x)"][2] > 1e10,
    below_8=deep_fates["x + f(norm(x))"][0] < 8,
    vanishes=5e-15 < deep_fates["f(x)"][2] < 5e-14,
    shrinks=round(deep_fates["f(norm(x))"][2], 2) == 0.06,
    lost=min(fates["f(norm(x))", depth][1] for depth in (12, 48)) > 0.99,
    slower=[round(fates["x + f(norm(x))", depth][1], 2) for depth in (12, 48)] == [0.76, 0.92],
    plus_alone=fates["x + f(x)", 12][1] > 0.95 and fates["x + f(x)", 12][0] > 100,
)

# %% river
as_written(
    a_sum=np.allclose(stream, sum(written)),
    grows=round(float(stream.std()), 1) == 2.3,
    sizes=round(sum(float(part.std()) for part in written), 1) == 7.8,
    squares=abs(sum(float(part.std()) ** 2 for part in written) ** 0.5 - 2.3) < 0.1,
    first=[round(float(part.std()), 2) for part in written[1:3]] == [0.39, 0.55],
)

# %% train-three
small_start = ("pre-norm", "no norm, small start")
as_written(
    learn=min(run.accuracy[-1] for name in small_start for run in runs[name]) > 0.85,
    fails=max(run.accuracy[-1] for run in runs["no norm"]) < 0.3,
    explodes=min(run.sizes[-1] for run in runs["no norm"]) > 50,
    stays=max(run.sizes[-1] for name in small_start for run in runs[name]) < 6,
)

# %% start-print
ends = {name: [run.accuracy[-1] for run in starts] for name, starts in more.items()}
half, third, tenth, sums, normed = ends.values()
as_written(
    half=min(half) > 0.85,
    no_rate=max(third + tenth) < 0.25,
    rate_not_too_low=[round(float(end(normed)), 2) for end in (min, max)] == [0.57, 0.69],
    sums=min(sums) > 0.85,
    slower=max(run.accuracy[15] for run in more["no norm, each sum times 0.78, twice the steps"]) < 0.85,
)

# %% switchboard-lab
good = lab.measure(model, batch=512)
off = {name: lab.measure(model, name, batch=512) for name in lab.SWITCHES}
as_written(
    trained=good.alone > 0.95 and good.leak < 1e-4,
    mask_not_missed=off["mask"].alone == good.alone and off["mask"].leak > 0.2 and off["mask"].guided < 0.6,
    others_missed=max(m.alone for name, m in off.items() if name != "mask") < 0.9 * good.alone,
    order_lost=off["residuals"].order < 0.2,
    six_times=5 < off["norm"].stream / good.stream < 7,
    half_wrong=off["feed-forward"].guided < 0.5,
    no_order=off["positions"].order < 1e-4,
    four_times=(model.config.d_model / model.config.num_heads) ** 0.5 == 4,
)

# %% retrain
as_written(
    spare=min(min(never_had[name]) for name in ("norm", "feed-forward", "scaling")) > 0.95,
    needed=max(max(never_had[name]) for name in ("residuals", "positions")) < 0.02,
    mask=sorted(never_had["mask"])[-2] < 0.05 and max(never_had["mask"]) < 0.5,
)

# %% depth-numbers
post = lab.at_start("post", 48)
exact, rounded = (
    [lab.at_start("post", depth, dtype).looking[-1] for depth in (12, 24, 36, 48)] for dtype in (np.float64, np.float32)
)
as_written(
    vanishes=1e-13 < post.looking[-1] < 5e-13,
    at_the_top=post.looking[-1] == post.looking.min() and post.looking[0] > 1,
    even=post.gradients.max() < 2.3 * post.gradients.min(),
    pre=1.8 < lab.at_start("pre", 12).gradients[-1] / lab.at_start("pre", 48).gradients[-1] < 2.6,
    falls=all(exact[n + 1] < exact[n] / 100 for n in range(3)),
    a_million=5e5 < rounded[-1] / exact[-1] < 5e6,
    stops=0.5 < rounded[-1] / rounded[-2] < 2 and rounded[1] > 10 * rounded[2],
    same_before=abs(np.log(rounded[1] / exact[1])) < 0.2,
)

# %% train-post
ends = {name: [run.accuracy[-1] for run in starts] for name, starts in post.items()}
none, warm, slow = ends.values()
as_written(
    fails=max(none) < 0.3,
    warm=min(warm) > 0.85,
    nine_of_ten=sorted(share > 0.85 for share in slow) == [False] + [True] * 9,
    on_its_way=round(min(slow), 2) == 0.77,
)

# %% wirings
past = [(reach[name] == np.tri(6)).all() for name in ("decoder-only", "from the target")]
as_written(past=all(past), all=reach["encoder-only"].all() and reach["from the source"].all())
