"""What the text of notebook 05 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.full_block import deep, switchboard

# %% stream-alike
as_written(alike=min(mean[2] for mean in three) > 0.8, one=min(mean[4] for mean in three) > 0.98)

# %% norm-needed
as_written(slow=6 < tops[48][0] < 8, explodes=tops[48][1] > 1e9)

# %% norm-by-hand
as_written(library=np.allclose(y, ops.layer_norm(x, gamma, beta)), same=np.allclose(y[0], y[2], atol=1e-5))

# %% eps-numbers
as_written(inside=round(left[1e-3, "inside"], 2) == 0.3, outside=round(left[1e-3, "outside"], 2) == 0.99)

# %% feed-facts
as_written(two_thirds=abs(share - 2 / 3) < 0.01, alone=list(np.flatnonzero(moved)) == [3])

# %% river
as_written(a_sum=np.allclose(stream, sum(written), atol=1e-4), grows=2 < stream.std() < 3)

# %% retrain-plot
as_written(**switchboard.claims_of_parts(good, off, never_had))

# %% text-result
with_it, few, many = bits.values()
as_written(earns=with_it + 0.1 < many < few - 0.1, about=abs(few - with_it - 0.4) < 0.1)

# %% reader-runs
with lab.feeding(readers["2 layers"], straight):
    worse = lab.bits(readers["2 layers"], test_ids) > with_it + 1
with lab.feeding(readers["2 layers"], feed_forward):
    as_written(worse=worse, same=np.isclose(lab.bits(readers["2 layers"], test_ids), with_it, atol=1e-4))

# %% neurons
as_written(waits=chosen[-1].share > 0.5)

# %% depth-numbers
few, many = (lab.at_start("pre", depth, 64).gradients[-1] for depth in (2, 48))
as_written(root=3.5 < few / many < 5.5, vanishes=lab.at_start("post", 48, 64).looking[-1] < 1e-5)

# %% train-plot
as_written(**deep.claims_of_five(runs))

# %% seeds
as_written(**deep.claims_of_starts(list(again.values())))

# %% decoder-layer
as_written(library=np.allclose(z, z_library, atol=1e-5), counted=book.parameters == decoder.num_params())

# %% whole-model-check
as_written(same=same, counted=book.parameters == model.num_params(), rows=rows, free=book.steps[-2].parameters == 0)

# %% base-count
as_written(ours=built == 63_045_632, agree=41_000 < low < high < 41_250, big=ranges["big"][1] < 36_500)

# %% wirings
past = [(reach[name] == np.tri(6)).all() for name in ("decoder-only", "from the target")]
as_written(past=all(past), all=reach["encoder-only"].all() and reach["from the source"].all())
