"""What the text of notebook 03 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils import layers
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

# %% cost-table
for h in (1, 2, 4, 8, 16, 32):
    cost = costs.attention_cost(T=24, d_model=32, num_heads=h)
    parameters = layers.MultiHead(32, h, np.random.default_rng(0)).num_params()
    as_written(counted=parameters == cost.parameters == 4096, same=cost.flops == 270_336)

# %% starts
low, high = ({h: np.median(found.accuracy) for h, found in surveys.items()} for surveys in (slow, fast))
counts = {len(slow[h].accuracy) for h in slow}, {len(fast[h].accuracy) for h in fast}
all_right = min(fast[h].accuracy.min() for h in (4, 8))
as_written(
    STEPS == 500,
    starts=counts == ({12}, {10}),
    at_one_rate=[h for h in slow if max(low[h], high[h]) > 0.9] == [4, 8, 16],
    four_and_eight=all_right > 0.995,
    sixteen=round(high[16], 2) == 0.95 and low[16] < 0.4 and low[1] < 0.4,
    fewer_blur=max(low[2], high[2]) < 0.88 and high[1] < 0.55,
    a_quarter=max(abs(low[32] - 0.25), abs(high[32] - 0.25)) < 0.03,
)

# %% digits-train
digits, shares = drawings.in_order(patient)  # (starts, 4), largest weight first
binary = np.abs(digits - np.array([8, 4, 2, 1]) / 15).max() < 0.05
steeper = (digits[:, 0] / digits[:, 3] > 8).all()
as_written(STEPS == 500, binary=binary, steeper=steeper, right=abs(patient.accuracy - 0.87).max() < 0.02)
evenly, by_digits = (
    starts(1, count=1, d_ff=64, steps=4000, prepare=lab.weights_held(*held)).accuracy
    for held in ((1,) * 4, (8, 4, 2, 1))
)
as_written(STEPS == 500, held=(round(evenly[0], 2), round(by_digits[0], 2)) == (0.32, 0.89))
as_written(STEPS == 500, two_heads=round(two.accuracy.max(), 2) == 0.95)
as_written(heaviest=shares[:, 0].min() > 0.99, lightest=abs(shares[:, 3] - 2 / 3).max() < 0.05)

# %% removal
found = drawings.one_each(np.stack(without), high=0.9)
as_written(STEPS == 500, one_each=found, to_guessing=np.stack(without).min(axis=1).max() < 0.1)

# %% all-starts
alone = [drawings.one_each(without) for without in slow[4].zeros]
by_mean = [drawings.one_each(without) for without in slow[4].means]
as_written(STEPS == 500, others=[start for start, own in enumerate(alone) if not own] == [5, 7, 8])
as_written(STEPS == 500, nine=sum(alone) == 9, the_same=alone == by_mean)
as_written(STEPS == 500, none_at_the_higher_rate=all(map(lab.one_each, fast[4].zeros)), starts=len(fast[4].zeros) == 10)

# %% width-table
found = {what: cure.accuracy for what, cure in cures.items()}
wide_keys, wide_values, more_steps, larger = (
    found[what] for what in ("keys 8 wide", "values 8 wide", "8 times the steps", "larger network, d_ff = 112")
)
fast_keys, fast_read_out = found["W_Q, W_K at 4 times the rate"], found["read-out at 4 times the rate"]
ends = [(round(shares.min(), 2), round(shares.max(), 2)) for shares in (fast_keys, wide_values, fast_read_out)]
new_parameters = 96 * (32 + 32 + 1), 2 * 32 * 16 * (8 - 2)  # of d_ff = 112 in place of 16; of wider keys
as_written(
    STEPS == 500,
    as_told=ends == [(0.32, 0.48), (0.81, 0.97), (0.87, 0.98)],
    halves=max(found[f"{half} at 4 times the rate"].max() for half in ("W_V, W_O", "network, answers"))
    < fast_read_out.min(),
    solved=min(wide_keys.min(), more_steps.min()) > 0.995,
    about_half=0.44 < larger.min() < larger.max() < 0.6,
    a_few_more=0 < new_parameters[0] - new_parameters[1] < 100,
)

# %% circle-code
wide, narrow = (of_widths(*sizes, num_heads=32, peak=2e-2).accuracy for sizes in ((2, 1), (1, 2)))
as_written(STEPS == 500, longer=longer.max() < 0.3)
sharp = [ops.softmax(score * np.cos(angles)) for score in (10, 85)]
as_written(
    STEPS == 500,
    large_scores=sharp[0][0] < 0.35 and round(sharp[1][0], 1) == 0.9,
    keys_decide=(round(wide.min(), 2), round(wide.max(), 2)) == (0.91, 0.96) and narrow.max() < 0.35,
)

# %% depth-code
as_written(STEPS == 500, two_of_three=(deep.accuracy > 0.98).sum() == 2, third=deep.accuracy.min() > 0.9)

# %% prune-code
found = four_out(8)[:, 1:]
ratio = found[:, 1] / found[:, 0]
as_written(
    STEPS == 500,
    told=(round(found[0, 0], 2), round(found[0, 1], 1)) == (0.68, 1.0),
    nearly_add_up=[start for start, more in enumerate(ratio) if more < 1.1] == [3, 7] and ratio.min() > 0.9,
    clearly_more=np.sort(ratio)[2] > 1.3,
)

# %% prune-together
at_12 = []
for heads in (*([head] for head in out), out.tolist()):
    with models.trying(by_heads[8], {"encoder": {0: heads}}):
        at_12.append((by_heads[8].forward(source_12)[0].argmax(axis=-1) == target_12).mean(axis=(0, 1))[1])
look = lab.examine(by_heads[8], 100).profile[out][:, 12]  # at +12
as_written(STEPS == 500, all_look=look.min() > 0.3, at_12=min(at_12[:4]) >= 0.795 and round(at_12[4], 2) == 0.42)

# %% prune-uneven
named = []  # the share of answers that are the frequent symbol
for by in ("zero", "mean"):
    with models.trying(by_heads[8], {"encoder": {0: out.tolist()}}, by):
        named.append((by_heads[8].forward(uneven[0])[0].argmax(axis=-1) == uneven[0][0, 0]).mean())
as_written(
    STEPS == 500,
    the_same=max(abs(row[1] - row[2]) for row in rows) < 0.02,
    uneven=(round(rows[2][3], 2), round(rows[2][4], 2)) == (0.55, 0.73),
    named_more_often=named[1] > named[0] + 0.2,
)
