"""What the text of notebook 09 claims of its cells. Each part runs behind the cell that it names.

What is stored is drawn and printed with most of its numbers; here stands what the text says beyond that.
"""

from lesson_utils.lessons.real_model import breaking

known = lab.stored()

# %% grow-train
one, two = (films[layers].moments for layers in (1, 2))
before = next(m for m in two if m.step >= STEPS // 3)
after = next(m for m in two if m.step >= STEPS // 2)
jump = before.right < 0.3 and after.right > 0.75 and after.previous.max() > 3 * before.previous.max()
as_written(STEPS == 800, stuck=max(m.right for m in one) < 0.3, two=two[-1].right > 0.85, jump=jump)

# %% grow-break
no_previous, no_other = right.values()
as_written(STEPS == 800, chain=no_previous < 0.2, other=no_other > 0.8, all_heads=round(lab.copied(grown), 2) == 0.93)

# %% own-run
as_written(same=abs(lab.copied(grown) - lab.copied(grown, attend=my_attention)) < 0.002)

# %% one-character
as_written(smollm is None, much=with_numpy > 4 * with_math)

# %% census-numbers
strongest = lab.heads_above(found, "induction", 0.3)
as_written(nine=len(strongest) == 9, best=strongest[0] == "18.6" and min(int(h[:2]) for h in strongest) == 17)
passing, nine = known["induction_again"] > 0.3, found[3] > 0.3  # (ten sets of tokens, layers, heads); (layers, heads)
as_written(
    untrained=not lab.heads_above(known["scores_random"], "induction", 0.3),
    ten_sets=(len(passing), *sorted(set(passing.sum(axis=(1, 2)).tolist()))) == (10, 8, 9, 10, 12),
    always=(passing.all(axis=0).sum(), (passing.all(axis=0) & nine).sum()) == (8, 8),
)

# %% names-plot
rise = known["names_nine"] - known["names_all"]
as_written(each=rise.min() > 4.6, less_than_untold=(known["names_nine"] < known["names_untold"]).all())

# %% wire-lab
as_written(blind=known["path_scores"][0, 1].max() < 0.01, first=known["path_heads"][0].tolist() == [16, 0])

# %% wire-passages
as_written(blind=known["passages_scores"][1:].max() < 0.02)

# %% writes-ahead
numbers = np.random.default_rng(0)
vectors = [*numbers.normal(size=(4, 8)), numbers.normal(size=(3, 8))]
as_written(same=bool(np.isclose(ahead(*vectors), breaking.ahead(*vectors))))

# %% writes-plot
pushed, looks = (known[f"writes_{name}"].astype(float).mean(axis=0) for name in ("direct", "looks"))
made_up = known["writes_made_up"].astype(float).mean(axis=0)  # without 23.2
cost = known["writes_cost"].astype(float).mean(axis=1).reshape(2, -1)
ranks = [x.argsort().argsort() for x in (pushed[breaking.FROM :].ravel(), *cost)]
as_written(
    five=round(sum(pushed[head] for head in ((17, 3), (17, 4), (17, 5), (18, 6), (18, 7))), 1) == 0.3,
    looks=round(looks[18, 6, 0], 2) == 0.94,
    rankings=[round(np.corrcoef(ranks[0], of)[0, 1], 1) for of in ranks[1:]] == [0.3, 0.3],
    others=(round(made_up.sum() - made_up[23, 2], 1), round(made_up[24, 4], 1)) == (1.7, 1.2),
    pushes_back=(known["writes_direct"][:, 24, 4] < 0).all() and nine[24, 4],
)

# %% writes-table
as_written(last_place=known["writes_places"][1, 24, 4] > 1999)

# %% break-lab
four, previous, others = (known[f"knock_{name}_zero"] for name in ("induction", "previous", "others"))
again = known["knock_again"][1:, 0, 1]  # of a second set of tokens: four, 16.0, others
as_written(
    order=four[3, 1] > previous[1, 1] > 2 * others[:, 3, 1].max() and again[0] > again[1] > 2 * again[2:].max(),
    others=(round(others[:, 3, 1].min(), 1), round(others[:, 3, 1].max(), 1)) == (3.0, 3.7),
    one=round(previous[1, 1], 1) == 9.7,
)

# %% prune-plot
worth = (known["worth"], *known["worth_pages"])
as_written(a_third=all(80 <= (of < 0).sum() <= 110 for of in worth))

# %% prune-table
shared = [
    len(set(np.argsort(one, axis=None)[:27]) & set(np.argsort(other, axis=None)[:27]))
    for of in (worth, known["worth_by_mean"])
    for n, one in enumerate(of)
    for other in of[:n]
]
as_written(one_to_ten=(min(shared), max(shared)) == (1, 10))

# %% damage-plot
as_written(first=known["worth_copying"].argmax() == 16 * 9, page=known["worth"].max() < 0.2)

# %% hiding-plot
rises = (known["sink_again"][:, 1:3] - known["sink_again"][:, :1]).round(1)  # (texts, from the start or the middle)
as_written(others=rises[1:].tolist() == [[0.0, 0.8], [0.0, 0.8]], same=known["first_same"] < 1e-3)

# %% sink-plot
hidden, alone, with_one, _ = known["sink_places"].reshape(-1, 4).T  # three texts, three places
as_written(back=alone.max() < 0.145 < 0.4 < hidden.min(), three=(with_one < 0.145).sum() == 3)

# %% effect-table
moved = known["first_moved"][:, 1] / known["first_moved"][:, 0]
as_written(as_far=6.5 < moved.min() < moved.max() < 255)

# %% forget-lab
kept = dict(zip(known["kept_tokens"].tolist(), known["kept"], strict=True))  # each of three texts
as_written(as_told=[kept[token][0].round() for token in ("", "0", "1", "10")] == [52, 21, 121, 51])

# %% divisor-plot
lost = dict(zip(known["divisors"].tolist(), np.exp(known["divisors_lost"]), strict=True))  # (three texts,) each
as_written(twice=(lost[2] > lost[0.5]).all(), no_rule=(lost[1.25] > lost[0.8]).tolist() == [True, True, False])
