"""What the text of notebook 06 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written

# %% side-by-side
as_written(last=np.allclose(causal[-1], both_ways[-1]), first=causal[0, 0] == 1)

# %% leak-table
wrong = [kind for kind in lab.KINDS if kind not in ("causal", "late, renormalised")]
as_written(
    exactly_0=not np.any(leaks["causal"]),
    rounding=0 < np.max(leaks["late, renormalised"]) < 1e-14,
    others=min(moved.max() for kind in wrong for moved in leaks[kind]) > 0.05,
    one_a_layer=[(moved > 0).sum() for moved in leaks["one too far"]] == [1, 4],
)

# %% fills-checked
added, replaced = (weights[way, np.float32][1] for way in ("add −1e9", "replace by −1e9"))
as_written(
    equal=np.allclose([added, replaced], 0.25),
    vanished=np.allclose(weights["add −1e9", np.float64][1], ops.softmax(four[1])),  # as if nothing were hidden
    nan=np.isnan(weights["add −1e9", np.float16]).all(),
    nothing_left=not lost.any(),
)

# %% padding-masks
as_written(blind=[np.flatnonzero(~mask.any(axis=-1)).tolist() for mask in masks] == [[], [0, 1]])

# %% empty-rows
as_written(zero=not output[:2].any(), spread=spread.all() and not weights[:, 0].any())

# %% one-pass
as_written(moved_by_one=(x[:, 1:] == y[:, :-1]).all(), rounding=change < 1e-4)

# %% loss
as_written(
    starts_knowing_nothing=abs(watch.bits[0] - rungs["all alike"]) < 0.7,
    four_characters=1.8 < watch.bits[-1] < 2.1,
    below_pairs=watch.bits[2] < rungs["bigram entropy"],
    words=watch.shares[2] < 0.4 < 0.75 < watch.shares[-1],
)

# %% peeking
as_written(too_good=found["peeking, small"] < 0.5 < 2 < found["honest, small"])

# %% gpt-leak
before = {}
for name, model in {"trained GPT": gpt, "peeking model": ends["peeking"]}.items():
    before[name] = np.abs(model.forward(changed)[0] - model.forward(ids)[0])[0, :20].max()
as_written(honest=before["trained GPT"] == 0, peeks=before["peeking model"] > 1)

# %% looks-table
lower, upper = (np.mean([row[0] for row in rows]) for rows in (list(reach.values())[:4], list(reach.values())[4:]))
as_written(near=lower > 0.75, far=upper < 0.65)

# %% cuts
circles = share[0.0, 1.0][1] < share[0.8, 1.0][1] - 0.2
as_written(circles=circles, words_back=share[1.5, 1.0][0] < share[1.5, 0.5][0] - 0.3)

# %% cache-size
as_written(the_same=np.abs(whole[:, -1] - logits[:, -1]).max() < 1e-4)

# %% cache
as_written(same_text=all(t.same for t in timings))

# %% step-by-step
as_written(same=np.allclose(np.concatenate(outputs), at_once, atol=1e-5))

# %% compare
as_written(same=gap < 1e-6)
