"""What the text of notebook 03 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.multi_head import drawings

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
as_written(STEPS == 500, both=[len(lab.examine(m, 20, multi_head).maps) for m in (one_head, two_heads)] == [1, 2])
as_written(STEPS == 500, as_ours=result.accuracy == lab.examine(two_heads).accuracy)

# %% compare-code
as_written(loop=np.allclose(at_once, by_loop), sum=np.allclose(at_once, sum(parts)))

# %% cost-table
for h in (1, 2, 4, 8, 16):
    cost = costs.attention_cost(T=24, d_model=32, num_heads=h)
    parameters = layers.MultiHead(32, h, np.random.default_rng(0)).num_params()
    as_written(counted=parameters == cost.parameters == 4096, same=cost.flops == 270_336)

# %% starts
accuracies = {h: np.sort(survey.accuracy) for h, survey in surveys.items()}
medians = {h: np.median(shares) for h, shares in accuracies.items()}
as_written(
    STEPS == 500,
    twelve={len(shares) for shares in accuracies.values()} == {12},
    four=round(medians[4], 2) == 0.99 and 0.7 < accuracies[4][0] < 0.8,
    eight=round(medians[8], 2) == 0.98 and accuracies[8][0] < 0.4,
    few=accuracies[1].max() < 0.4 and abs(medians[2] - 2 / 3) < 0.05,
    sixteen=medians[16] < 0.4,
)

# %% sixty-four-code
queries = [np.random.default_rng(seed).normal(size=(2048, 64)) for seed in range(3)]
for again in queries:
    by_n = [np.median(np.diagonal(ops.softmax(again[:24] @ again[:n].T / 8))) for n in (128, 2048)]
    as_written(a_hundred=by_n[0] > 0.85, two_thousand=by_n[1] < 0.65)

# %% digits-train
digits, shares = drawings.in_order(patient)  # (starts, 4), largest weight first
binary = np.abs(digits - np.array([8, 4, 2, 1]) / 15).max() < 0.05
steeper = (digits[:, 0] / digits[:, 3] > 8).all()
as_written(STEPS == 500, binary=binary, steeper=steeper, right=abs(patient.accuracy - 0.87).max() < 0.02)
as_written(heaviest=shares[:, 0].min() > 0.99, lightest=abs(shares[:, 3] - 2 / 3).max() < 0.05)

# %% width-lab
narrow, keys, values, both = (by_widths[pair].accuracy for pair in ((2, 2), (8, 2), (2, 8), (8, 8)))
as_written(
    STEPS == 500,
    narrow=narrow.max() < 0.5,
    keys=min(keys.min(), both.min()) > 0.995,
    values=0.75 < values.min() < values.max() < 0.98,
)

# %% slow-code
more_steps, larger = (slow[what] for what in ("8 times the steps", "larger network"))
faster, one, four = (np.array(at_rate(2e-2, h)) for h in (16, 1, 4))
new_parameters = 96 * (32 + 32 + 1), 2 * 32 * 16 * (8 - 2)  # of d_ff = 112 in place of 16; of wider keys
as_written(STEPS == 500, not_unable=more_steps.min() > 0.995, about_half=0.44 < larger.min() < larger.max() < 0.6)
as_written(
    STEPS == 500,
    faster=(round(faster.min(), 2), round(faster.max(), 2)) == (0.96, 0.99),
    one_head=abs(one - 0.5).max() < 0.05,
    four_heads=four.min() > 0.995,
    four_before=surveys[4].accuracy[:3].min() > 0.98,
)
as_written(a_few_more=0 < new_parameters[0] - new_parameters[1] < 100)

# %% tasks-plot
two = {h: np.array(shares[2, h]) for h in (1, 2, 4, 8, 16)}
as_written(STEPS == 500, best=min(two[4].min(), two[8].min()) > 0.995, two_heads=(two[2] > 0.995).sum() == 1)
as_written(others=max(two[1].max(), two[16].max()) < 0.98)
eight = {h: np.array(shares[8, h]) for h in (4, 8, 16)}
as_written(
    far=max(found.max() for found in eight.values()) < 0.6,
    starts_differ=max(map(np.ptp, eight.values())) > np.ptp([np.median(found) for found in eight.values()]),
)

# %% removal
without = [lab.examine(by_heads[4], 100, multi_head, [i]).right for i in range(4)]
found = drawings.one_each(np.stack(without), high=0.9)
pale = lab.examine(by_heads[4], 100).profile[:, list(lab.OFFSETS)]  # (h, 4)
pale = (pale > 0.05) & (pale < 0.5)
as_written(STEPS == 500, one_each=found, pale=pale.any(), not_needed=np.stack(without)[pale].min() > 0.99)

# %% all-starts
alone = [drawings.one_each(without) for without in surveys[4].zeros]
by_mean = [drawings.one_each(without) for without in surveys[4].means]
worst = np.argsort(surveys[4].accuracy)[:3]
to_guessing = [start for start, without in enumerate(surveys[4].zeros) if (without.min(axis=1) < 0.1).all()]
as_written(STEPS == 500, five=[start for start in to_guessing if alone[start]] == [0, 1, 2, 9, 10])
as_written(STEPS == 500, others=[start for start, own in enumerate(alone) if not own] == [5, 7, 8])
as_written(STEPS == 500, nine=sum(alone) == 9, the_same=alone == by_mean, worst=not any(alone[i] for i in worst))

# %% circuits-plot
copies = drawings.ov_circuit(by_heads[4])  # (h, 4, symbols, symbols)
strongest = [part[np.trace(part, axis1=1, axis2=2).argmax()] for part in copies]
maps = lab.examine(by_heads[4], 100).maps
as_written(
    STEPS == 500,
    copies=min((part.argmax(axis=1) == np.arange(20)).mean() for part in strongest) > 0.9,
    by_position=np.abs(drawings.qk_circuit(by_heads[4]) - maps).max() < 0.1,
)
