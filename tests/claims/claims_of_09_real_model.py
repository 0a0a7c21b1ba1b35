"""What the text of notebook 09 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.real_model import direct

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

# %% writes-ahead
numbers = np.random.default_rng(0)
vectors = [*numbers.normal(size=(4, 8)), numbers.normal(size=(3, 8))]
as_written(same=bool(np.isclose(ahead(*vectors), direct.ahead(*vectors))))
