"""What the text of notebook 10 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.debugging import casefile

# %% try
places = (moved[:6] > 1e-3).nonzero()[0].tolist()
as_written(two_layers=places == [4, 5], parity=parity > 0.1, rows=rows < 1e-5)

# %% one-batch-code
healthy, backward, twice, unshifted = ends.values()
as_written(well=max(healthy, unshifted) < 0.01, first=unshifted < healthy, stuck=min(backward, twice) > 1)

# %% case-table
gauges = casefile.gauges()  # (16, 6)
silent = (~gauges.any(axis=1)).nonzero()[0] + 1
as_written(well=silent.tolist() == [9, 14], too_good=gauges[[0, 3, 7, 10, 14]][:, 1:3].all())
as_written(inverted=casefile.of(15).losses[-1] < 0.1)

# %% scrambled
merged, split = lab.tried()["merged without the swap"], lab.tried()["split and merged without the swap"]
learnt = min(told for task in ("copy", "reverse", "dates") for told, _ in merged[task])
slower = max(told for told, _ in merged["gather-k"][:3]) < 0.8 < 0.98 < merged["gather-k"][3][0]
as_written(learnt=learnt > 0.99, quarter=split["copy"][0][0] > 0.99 > 0.3 > split["reverse"][0][0], slower=slower)
