"""What the text of notebook 03 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.multi_head.experiment import main_offset

# %% one-head
as_written(
    STEPS == 500,
    four=weights.min() > 0.15,
    names_one=result.right[weights.argmax()] > 0.5,
    among=result.among > 0.95,
    a_third=abs(result.accuracy - 1 / 3) < 0.03,
)

# %% bug-trained
as_written(STEPS == 500, near=abs(right[[0, 2]] - 0.84).max() < 0.03, far=right[[1, 3]].max() < 0.08)

# %% multi-used
as_written(STEPS == 500, as_before=round(result.accuracy, 2) == 0.32)

# %% compare-code
as_written(loop=np.allclose(at_once, by_loop), sum=np.allclose(at_once, sum(parts)))

# %% cost-table
for h in (1, 2, 4, 8, 16):
    cost = costs.attention_cost(T=24, d_model=32, num_heads=h)
    parameters = layers.MultiHead(32, h, np.random.default_rng(0)).num_params()
    as_written(counted=parameters == cost.parameters == 4096, same=cost.flops == 270_336)

# %% experiment-plot
accuracies = {h: [run.accuracy for run in runs] for h, runs in results.items()}
as_written(
    STEPS == 500,
    one=max(accuracies[1]) < 0.35,
    two=0.5 < min(accuracies[2]) < max(accuracies[2]) < 0.8,
    four=min(accuracies[4]) > 0.995,
    eight=min(accuracies[8]) > 0.95,
    sixteen=0.3 < min(accuracies[16]) < max(accuracies[16]) < 0.52,
)

# %% digits-train
digits = np.sort(patient.profile[0, list(lab.OFFSETS)])[::-1]
binary = np.abs(digits - np.array([8, 4, 2, 1]) / 15).max() < 0.05
as_written(STEPS == 500, binary=binary, right=0.8 < patient.accuracy < 0.95, many=many.accuracy > 0.88)

# %% removal
shares = np.array(right)  # (head, offset)
said = [main_offset(profile) for profile in results[4][0].profile]  # what the maps say
proved = said == [lab.signed(lab.OFFSETS[offset]) for offset in shares.argmin(axis=1)]
as_written(STEPS == 500, proved=proved, kept=np.sort(shares)[:, 1:].min() > 0.8, gone=shares.min(axis=1).max() < 0.5)

# %% diversity-table
two = sorted((run.diversity, run.accuracy) for run in results[2])
as_written(
    STEPS == 500,
    the_more_diverse_the_worse=two[0][1] > two[1][1] > two[2][1],
    more=min(run.diversity for run in results[16]) > 0.6,
)
