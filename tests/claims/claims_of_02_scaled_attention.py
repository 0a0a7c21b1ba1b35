"""What the text of notebook 02 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.scaled_attention import variance as measured

# %% by-hand
as_written(
    money=weights.round(2)[[1, 3]].tolist() == [0.2, 0.43],
    longer=1.8 < np.linalg.norm(X[3]) / np.linalg.norm(query) < 1.9,
)

# %% symmetry
as_written(high=scores["QKᵀ"][1, 3] > 3, low=scores["QKᵀ"][3, 1] < 0)

# %% keys-as-values
as_written(plain_mean=np.isclose(minutes[0, 0], lab.FILM_MINUTES.mean(), atol=0.1))

# %% variance
as_written(variance_is_d_k=all(abs(s.var() / d_k - 1) < 0.05 for d_k, s in scores.items()))

# %% scaling-lab
few = [[np.median(lab.looks(32, d_k, s).slopes) for s in (False, True)] for d_k in (2, 4, 8, 16, 32, 64, 128, 256, 512)]
many = [np.median(lab.looks(512, 64, s).slopes) for s in (False, True)]
as_written(
    turns_at_64=[unscaled < scaled for unscaled, scaled in few] == 5 * [False] + 4 * [True],
    almost_0=few[-1][0] < 0.002,
    three_to_four=3 < many[0] / many[1] < 4,
    even=all(np.divide(*np.quantile(lab.looks(n, 64, True).slopes, (0.95, 0.05))) < 1.5 for n in lab.NUM_KEYS),
    share=all(0.55 < lab.looks(n, 64, True).keys / n < 0.72 for n in lab.NUM_KEYS),
    few_keys=all(1 < lab.looks(n, 64, False).keys < 3.2 for n in lab.NUM_KEYS),
    largest=all(np.quantile(lab.looks(n, 64, False).slopes, 0.95) > 0.43 for n in lab.NUM_KEYS),
)
d_ks = (8, 32, 128, 512)  # and now the slope by the query
highest = [np.quantile(measured.slopes_at_query(32, d_k, False), 0.95) for d_k in d_ks]
spreads = [np.divide(*np.quantile(measured.slopes_at_query(32, d_k, True), (0.95, 0.05))) for d_k in d_ks[1:]]
as_written(largest_grow=(np.diff(highest) > 0).all() and highest[-1] > 5 * highest[0], thin=max(spreads) < 1.6)

# %% hidden-words
moved = {}
for hidden in ("nothing", "river", "money"):
    (moved[hidden],), _ = attend(X_longer[1:2], X_longer, X_longer, np.array([[word != hidden for word in longer]]))
as_written(further=moved["river"][1] > moved["nothing"][1], to_water=moved["money"][0] > moved["money"][1])

# %% score-variance-measured
as_written(predicted=all(abs(s.var() / (d_k * 16 / 9) - 1) < 0.05 for d_k, s in uniform.items()))

# %% trained
(scaled, _), (unscaled, _) = results.values()
as_written(
    one=abs(unscaled.right.mean() - (1 / 4 + 3 / 4 / 20)) < 0.015,
    half=abs(scaled.right.mean() - 0.47) < 0.02,
    most_at_one=np.sort(scaled.right)[-1] > 0.95 and abs(np.sort(scaled.right)[:3] - 0.3).max() < 0.04,
    hard=unscaled.weights.max(axis=-1).mean() > 0.98,
    flat=unscaled.slopes[1] < 0.001,
)

# %% same-steps
as_written(the_same=np.abs(np.subtract(root, divided)).max() < 0.01)

# %% crossed
alive = {name: [result.slopes[1] > 0.3 for result, _ in some] for name, some in runs.items()}
as_written(
    root=all(alive["with √d_k"]),
    none=not any(alive["without"]),
    wild=not any(alive["with √d_k, wild start"]),
    tame=sum(alive["without, tame start"]) == 1,
)
