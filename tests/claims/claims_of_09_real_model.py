"""What the text of notebook 09 claims of its cells. Each part runs behind the cell that it names.

What is stored is drawn and printed with most of its numbers; here stands what the text says beyond that.
"""

from lesson_utils.lessons.real_model import grown as lesson
from lesson_utils.lessons.real_model import measures

known = lab.stored()

# %% grow-train
one, two = (films[layers].moments for layers in (1, 2))
before = next(m for m in two if m.step >= STEPS // 3)
after = next(m for m in two if m.step >= STEPS // 2)
jump = before.right < 0.3 and after.right > 0.75 and after.previous.max() > 3 * before.previous.max()
as_written(STEPS == 800, stuck=max(m.right for m in one) < 0.3, two=two[-1].right > 0.85, jump=jump)

# %% hand-run
QK_0, OV_0, QK_1, OV_1 = by_hand(5, 7)
as_written(two_are_the_same=(OV_0 == QK_1).all() and not (OV_0 == OV_1).all() and not (QK_0 == QK_1).all())

# %% grow-break
parts = [
    [lab.copied(grown, knock_out={0: [n]}, by=way) for way in ("zero", "mean")] for n in (looks_back, 1 - looks_back)
]
as_written(STEPS == 800, chain=max(parts[0]) < 0.25, other=min(parts[1]) > 0.8)
as_written(STEPS == 800, all_heads=round(lab.copied(grown), 2) == 0.93)

# %% sudden-plot
free, one_back, two_back, match = lesson.jumps(runs)
rise = [
    [np.interp(0.7, row, runs.steps) - np.interp(0.25, row, runs.steps) for row in np.maximum.accumulate(kind, axis=-1)]
    for kind in runs.right
]
as_written(
    sooner=(one_back.min(), one_back.max(), free.min(), free.max()) == (182, 221, 312, 377),
    later=(two_back > free).all(),
    match=match.max() == 52,
    as_sudden=max(rise[1] + rise[3]) < 1.1 * min(rise[0]),
)

# %% pairs-table
all_heads, first, second, both = runs.without[4]
as_written(redundant=abs(first - 0.7) < 0.02 and abs(second - 0.7) < 0.02 and round(both, 2) == 0.13)

# %% circuits-plot
best = [(m.argmax(axis=1) == np.arange(24)).mean() for m in lesson.circuits(grown, looks_back).values()]
as_written(STEPS == 800, whole=best[1:] == [1, 1], little=best[0] < 0.4)

# %% own-run
as_written(same=abs(lab.copied(grown) - lab.copied(grown, attend=my_attention)) < 0.002)

# %% census-numbers
strongest = lab.heads_above(found, "induction", 0.3)
as_written(nine=len(strongest) == 9, best=strongest[0] == "18.6" and min(int(h[:2]) for h in strongest) == 17)
as_written(
    untrained=not lab.heads_above(known["scores_random"], "induction", 0.3),
    needs=known["without_first"].min() > 9,
    spacings=set((known["spacings"] > 0.3).sum(axis=(1, 2)).tolist()) == {7, 8, 9, 11},
    strongest=all(scores.argmax() == 18 * 9 + 6 for scores in known["spacings"]),
)

# %% wire-cut
ids, _ = lab.repeats(np.random.default_rng(99), 8)
plain = grown.forward(ids[:, :-1])[0]
ours = run_patched(grown, ids[:, :-1], looks_back, lambda x, w, norm, *W: [norm(x) @ M for M in W])[0]
as_written(same=np.abs(ours - plain).max() < 1e-3)

# %% wire-table
whole, queries, keys, values, detour, others, another, first = known["wire"]
as_written(
    blind=known["path_scores"][1].max() < 0.01,
    nats=[round(float(x), 1) for x in (whole, keys, detour, queries - whole)] == [3.1, 11.6, 10.5, 1.2],
    most=(keys - whole) / (first - whole) > 0.7,
    controls=max(others, another) - whole < 0.5,
    off=round(float(known["without_first"][0]), 1) == 9.5,
)

# %% moved-real
says = known["moved_says"]  # (ways, [weights, nats, said]: the answer and the next)
as_written(
    weights=[round(float(x), 2) for x in (says[0, 0], says[2, 1])] == [0.65, 0.51],
    nats=[round(float(x), 1) for x in (says[1, 3], says[3, 3], says[2, 3])] == [13.1, 12.7, 8.5],
    than_the_answer=says[2, 3] < says[2, 2] and round(float(says[2, 2]), 1) == 10.1,
    said=round(float(says[2, 5]), 2) == 0.13,
    guessing=round(np.log(49_152), 1) == 10.8,
)

# %% wire-passages
as_written(blind=known["passages_scores"][1:].max() < 0.02)

# %% names-plot
rise = known["names_nine"] - known["names_all"]
as_written(each=rise.min() > 4.6, less_than_untold=(known["names_nine"] < known["names_untold"]).all())

# %% writes-ahead
pushed = known["writes_direct"].astype(float).mean(axis=0)
made_up = known["writes_made_up"].astype(float).mean(axis=0)  # without 23.2
as_written(
    five=round(sum(pushed[head] for head in ((17, 3), (17, 4), (17, 5), (18, 6), (18, 7))), 1) == 0.3,
    looks=round(float(known["writes_looks"][18, 6, 0]), 2) == 0.94,
    others=round(made_up.sum() - made_up[23, 2], 1) == 1.7 and round(float(made_up[24, 4]), 1) == 1.2,
    pushes_back=(known["writes_direct"][:, 24, 4] < 0).all() and found[3, 24, 4] > 0.3,
)

# %% hiding-plot
rises = (known["sink_again"][:, 1:3] - known["sink_again"][:, :1]).round(1)  # (texts, from the start or the middle)
as_written(
    others=rises[1:].tolist() == [[0.0, 0.8], [0.0, 0.8]],
    same=known["first_same"] < 1e-3,
    places=known["sink_places"][..., 1].max() < 0.145,
)

# %% emptied-table
whole, hidden, empty, lent = known["sink"].T
spent = (hidden - empty) / (hidden - whole)
as_written(half_to_three_quarters=0.45 < spent.min() < spent.max() < 0.8, constant=np.abs(lent - whole).max() < 0.005)

# %% effect-plot
sentences = [(known[f"weights_{n}"], known[f"effects_{n}"]) for n in range(len(measures.SENTENCES))]
small = sorted(effect[0] for _, effect in sentences)
ranks = [lab.rank_correlation(weight[1:], effect[1:]) for weight, effect in sentences]
as_written(
    most=round(min(weight[0] for weight, _ in sentences), 2) == 0.38 and all(w.argmax() == 0 for w, _ in sentences),
    six=small[5] < 0.25 and round(small[6], 1) == 2.6,
    guide=sum((w[1:] > w[1:][e[1:].argmax()]).sum() < 2 for w, e in sentences) == 4,
    hardly=round(float(np.mean(ranks)), 2) == 0.16,
    shorter=(np.diff(known["first_by_text"], axis=1) < 0).all(),
)
