"""What the text of notebook 02 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written

# %% self-average
as_written(four=(A.argmax(axis=-1) == np.arange(5)).sum() == 4, cat=A[3].argmax() == 1, popular=A[:, 1].sum() > 1.5)

# %% symmetry
as_written(it_on_cat=scores["QKᵀ"][3, 1].round(1) == 1.1, cat_on_it=scores["QKᵀ"][1, 3].round(1) == -0.4)

# %% keys-as-values
as_written(plain_mean=np.isclose(minutes[0, 0], lab.FILM_MINUTES.mean(), atol=0.1))

# %% variance
as_written(variance_is_d_k=all(abs(s.var() / d_k - 1) < 0.05 for d_k, s in scores.items()))

# %% shouting
for seed in (0, 1, 2):
    loud, even = (lab.softmax_health(1024, scaled=s, seed=seed).query_gradients for s in (False, True))
    as_written(median=np.median(even) / np.median(loud) > 50, mean=6 < loud.mean() / even.mean() < 9)

# %% score-variance-measured
as_written(predicted=all(abs(s.var() / (d_k * 16 / 9) - 1) < 0.05 for d_k, s in uniform.items()))
