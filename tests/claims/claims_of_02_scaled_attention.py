"""What the text of notebook 02 claims of its cells. Each part runs behind the cell that it names."""

# %% by-hand
as_written(
    money=weights.round(2)[[1, 3]].tolist() == [0.2, 0.43],
    longer=1.8 < np.linalg.norm(X[3]) / np.linalg.norm(query) < 1.9,
)

# %% keys-as-values
as_written(
    plain_mean=np.isclose(minutes[0, 0], lab.FILM_MINUTES.mean(), atol=0.1),
    the_same=np.ptp(weights) < 0.001,
)

# %% variance
as_written(variance_is_d_k=all(abs(s.var() / d_k - 1) < 0.05 for d_k, s in scores.items()))


# %% scaling-lab
def medians(num_keys, d_k):  # unscaled, scaled
    return [lab.looks(num_keys, d_k, factor).quantiles()[1] for factor in (1.0, d_k**-0.5)]


few = [medians(32, d_k) for d_k in (2, 4, 8, 16, 32, 64, 128, 256, 512)]
many = [medians(512, d_k) for d_k in (64, 256, 512)]
as_written(
    turns_at_64=[unscaled < scaled for unscaled, scaled in few] == 5 * [False] + 4 * [True],
    three_to_four=3 < many[0][0] / many[0][1] < 4,
    alike=0.5 < many[1][0] / many[1][1] < 1.5,
    right_again=many[2][0] < many[2][1],
    two_or_three=2 < lab.looks(512, 64).keys < 3,
)

# %% by-length
spread = [lab.looks(n, 64, 1 / 8).quantiles() for n in lab.NUM_KEYS]
unscaled = [lab.looks(n, 64).quantiles() for n in lab.NUM_KEYS]
as_written(
    even=all(high / low < 1.5 for low, _, high in spread),
    almost_none=all(low < 0.005 for low, _, _ in unscaled),
    near_half=all(high > 0.43 for _, _, high in unscaled),
)

# %% factors
ratios = [ratio for _, ratio in rows]
as_written(more_even=ratios == sorted(ratios, reverse=True), the_same=ratios[-1] < 1.01)

# %% hidden-words
moved = {}
for hidden in ("nothing", "river", "money"):
    (moved[hidden],), _ = attend(X_longer[1:2], X_longer, X_longer, np.array([[word != hidden for word in longer]]))
as_written(further=moved["river"][1] > moved["nothing"][1], to_water=moved["money"][0] > moved["money"][1])

# %% score-variance-measured
as_written(predicted=all(abs(s.var() / (d_k * 16 / 9) - 1) < 0.05 for d_k, s in uniform.items()))

# %% sweep
learn = {key: int((some[:, 1] > lab.HARD).sum()) for key, some in swept.items()}
medians_of = {c: np.median(swept[64, c][:, 0]).round(2) for c in (1 / 8, 1 / 2, 1)}
as_written(
    ten_starts={len(some) for some in swept.values()} == {10},
    smaller=learn[64, 1 / 8] == learn[64, 1 / 2] == 10,
    losses=medians_of == {1 / 8: 1.41, 1 / 2: 1.32, 1: 1.34},
    larger=[10 - learn[64, c] for c in (1, 1.5, 2, 2.5, 4)] == [1, 2, 3, 4, 9],
    stop_at=abs(np.median(swept[64, 8][:, 0]) - 2.3) < 0.1,
    half=learn[256, 1] == 5,
)

# %% trained
(knows, soft, losses), (one, lookup, stuck) = runs.values()
as_written(
    always=knows > 0.999,
    single=lookup.max(axis=-1).mean() > 0.98,
    guesses=abs(np.mean(stuck[-25:]) - 3 / 4 * np.log(20)) < 0.1,
    as_if_it_guessed=abs(np.mean(losses[-25:]) - np.log(4)) < 0.05,
    all_four=(np.sort(soft, axis=-1)[:, -4:] > 0.05).mean() > 0.9,
)

# %% edges
as_written(as_one_over_d_k=[edge for *_, edge in rows] == [1 / 2, 1 / 8, 1 / 32])

# %% paces
as_written(all_ten=rows[3][3] == 10, none=rows[2][3] == 0, near=max(abs(r[3] - r[4]) for r in rows) <= 4)

# %% same-steps
as_written(the_same=np.abs(np.subtract(root.losses, divided.losses)).max() < 0.001)

# %% crossed
ways = [learned(some) for some in crossed().values()]
as_written(wild_tame_slow=ways == [0, 3, 9])

# %% slopes-before
before = {}
for factor in (1 / 8, 1 / 2):
    _, weights = lab.examine(lab.untrained(64, seed=0)[0], factor)
    before[factor] = np.median(lab.slopes(weights))
as_written(larger=before[1 / 2] > before[1 / 8])
