"""What the text of notebook 05 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.full_block import stacks

# %% stream-alike
as_written(
    one=alike[""].min() > 0.98,
    attention=alike["attention"].min() > 0.98,
    feed_forward=alike["feed_forward"][0].min() > 0.4 and alike["feed_forward"][0].max() < 0.85,
    later=abs(alike["feed_forward"][1] - 0.9).max() < 0.06,
    slowly=round(float(lab.likeness(with_it)[12]), 2) == 0.69,
)

# %% four-stacks
deep_fates = {formula: fates[formula, 48] for formula in lab.FOUR}
as_written(
    explodes=deep_fates["x + f(x)"].size > 1e9 and deep_fates["x + f(x)"].gradient > 1e10,
    slow=deep_fates["x + f(norm(x))"].size < 8,
    vanishes=deep_fates["f(x)"].gradient < 1e-13,
    shrinks=round(deep_fates["f(norm(x))"].gradient, 2) == 0.07,
    lost=min(fates["f(norm(x))", depth].alike for depth in (12, 48)) > 0.99,
    slower=[round(fates["x + f(norm(x))", depth].alike, 2) for depth in (12, 48)] == [0.75, 0.95],
    plus_alone=fates["x + f(x)", 12].alike > 0.95 and fates["x + f(x)", 12].size > 100,
)

# %% norm-by-hand
as_written(library=np.allclose(y, ops.layer_norm(three, gamma, beta)), same=np.allclose(y[0], y[2], atol=1e-5))

# %% eps-numbers
as_written(inside=round(left[1e-3, "inside"], 2) == 0.3, outside=round(left[1e-3, "outside"], 2) == 0.99)

# %% feed-facts
share = feed_part.num_params() / (feed_part.num_params() + attention_part.num_params())
as_written(two_thirds=abs(share - 2 / 3) < 0.01, alone=list(np.flatnonzero(moved)) == [3])

# %% river
as_written(
    a_sum=np.allclose(stream, sum(written), atol=1e-4),
    grows=round(float(stream.std()), 1) == 2.3,
    sizes=round(sum(float(part.std()) for part in written), 1) == 8.3,
    squares=abs(sum(float(part.std()) ** 2 for part in written) ** 0.5 - 2.3) < 0.1,
    first=[round(float(part.std()), 2) for part in written[1:3]] == [0.49, 0.53],
)

# %% train-three
small_start = ("pre-norm", "no norm, small start")
as_written(
    learn=min(runs[name].accuracy[-1] for name in small_start) > 0.95,
    fails=runs["no norm"].accuracy[-1] < 0.25,
    explodes=runs["no norm"].sizes[-1] > 50,
    stays=max(runs[name].sizes[-1] for name in small_start) < 5,
)

# %% start-print
as_written(
    small=min(right[2] for right in by_seed.values()) > 0.9,
    half=min(right[1] for right in by_seed.values()) > 0.9,
    usual=max(right[0] for right in by_seed.values()) < 0.25,
    no_rate=max(rates["no norm"]) < 0.25,
    not_the_top=np.nanmax(rates["only one norm, at the top"]) < 0.25,
    sums=min(right[rate] for name, right in rates.items() if "sum" in name for rate in range(3)) > 0.3,
    enough=min(longer) > 0.9 and all(0.4 < right[2] < 0.7 for name, right in rates.items() if "sum" in name),
    slower=max(max(right) for name, right in rates.items() if "sum" in name) < 0.7,
    as_pre_norm=min(rates["no norm, small start"][1:]) > 0.95 and min(rates["pre-norm"][1:]) > 0.95,
)

# %% retrain-plot
as_written(
    trained=good.alone > 0.95 and good.leak < 1e-4,
    mask_not_missed=off["mask"].alone == good.alone and off["mask"].leak > 0.2 and off["mask"].guided < 0.6,
    others_missed=max(m.alone for name, m in off.items() if name != "mask") < 0.9 * good.alone,
    even=off["residuals"].looks > 0.8 and off["residuals"].order < 0.2,
    too_large=off["norm"].stream > 3 * good.stream,
    half_wrong=0.3 < off["feed-forward"].guided < 0.7,
    no_order=off["positions"].order < 1e-4,
    sharper=off["scaling"].looks < good.looks,
    spare=min(never_had[name].alone for name in ("norm", "feed-forward", "scaling")) > 0.9,
    needed=max(never_had[name].alone for name in ("residuals", "positions")) < 0.1,
)
as_written(
    one_looks=never_had["mask, seed 1"].leak > 0.2 and blind["mask, seed 1"] < 0.8,
    one_does_not=never_had["mask"].leak < 0.05 and blind["mask"] > 0.95,
    filled=filled["mask"] > 0.95 and filled["mask, seed 1"] < 0.1,
    no_cache=lab.right_without_cache(model, "mask") > 0.95,
    both_right=min(never_had[name].guided for name in ("mask", "mask, seed 1")) > 0.95,
    both_fail=max(never_had[name].alone for name in ("mask", "mask, seed 1")) < 0.6,
)

# %% text-result
with_it, few, many = (np.array(two) for two in bits.values())
as_written(
    earns=all(with_it + 0.1 < many) and all(many < few - 0.1),
    about=all(abs(few - with_it - 0.4) < 0.1),
    size=all(many - with_it < 0.2) and all(abs(np.array([one[1] for one in wide]) - with_it - 0.1) < 0.05),
)

# %% reader-runs
with lab.feeding(readers["2 layers"], straight):
    worse = lab.bits(readers["2 layers"], test_ids) > with_it[0] + 1
with lab.feeding(readers["2 layers"], feed_forward):
    as_written(worse=worse, same=np.isclose(lab.bits(readers["2 layers"], test_ids), with_it[0], atol=1e-4))
as_written(
    fair=all(abs(np.array(never) - with_it - 0.1) < 0.05),
    as_wide=all(abs(np.array(never) - [one[1] for one in wide]) < 0.03),
)

# %% neurons
letters, pairs = (np.array([getattr(neuron, name) for neuron in found]) >= 0.8 for name in ("letter", "share"))
as_written(
    letter=0.25 < letters.mean() < 0.42,
    pair=pairs.mean() < 0.06,
    peak=all(0.4 * there < elsewhere < 0.9 * there for (there, elsewhere), _ in means.values()),
    attention=all(abs(there - elsewhere) < 0.05 for _, (there, elsewhere) in means.values()),
)

# %% erased
as_written(
    kept=min(shares["untrained"]) > 0.9,
    half=all(0.45 < shares[f"trained, seed {seed}"][-1] < 0.65 for seed in (0, 1)),
    first=abs(shares["trained, seed 0"][1] - shares["trained, seed 0"][2] - 0.4) < 0.06,
    tied=all(shares[f"output has its own table, seed {seed}"][-1] > 0.75 for seed in (0, 1)),
)

# %% depth-numbers
few, many = (lab.at_start("pre", depth, 64).gradients[-1] for depth in (2, 48))
post = lab.at_start("post", 48, 64)
as_written(
    root=3.5 < few / many < 5.5,
    vanishes=post.looking[-1] < 1e-5,
    even=post.gradients.max() < 4 * post.gradients.min(),
)

# %% train-post
learners = ("pre-norm", "post-norm, warm-up", "post-norm, a third of the rate")
as_written(
    three_learn=min(places[name].accuracy[-1] for name in learners) > stacks.LEARNT,
    one_fails=places["post-norm"].accuracy[-1] < 0.25,
    half_at_first=0.3 < places["post-norm"].ratios[0] < 0.7,
    starved=lab.starved(places["post-norm"]).median < 1e-2 < 0.1 < lab.starved(places[learners[2]]).median,
)

# %% seeds
six = [lab.starved(run) for name, run in again.items() if "seed" in name]
slow = lab.starved(again["warm-up of 30 steps"])
third = lab.starved(again["a third of the rate"])
as_written(
    all_starve=max(one.lowest for one in six) < 1e-3,
    all_fail=max(one.right for one in six) < 0.3,
    fed=third.lowest > 1e-2,
    not_starved=slow.lowest > 1e-2 and 0.2 < slow.right < 0.35 < again["warm-up of 30 steps"].accuracy[-1] < 0.45,
    steps=sorted(one.moved > 1 / 8 for one in six) == [False] * 2 + [True] * 4,
    two_hardly=sorted(one.moved for one in six)[1] < 1 / 40,
)

# %% decoder-layer
as_written(library=np.allclose(z, z_library, atol=1e-5), counted=book.parameters == decoder.num_params())

# %% whole-model-check
as_written(same=same, counted=book.parameters == paper.num_params(), rows=rows, free=book.steps[-2].parameters == 0)

# %% wirings
past = [(reach[name] == np.tri(6)).all() for name in ("decoder-only", "from the target")]
as_written(past=all(past), all=reach["encoder-only"].all() and reach["from the source"].all())
