"""What the text of notebook 06 claims of its cells. Each part runs behind the cell that it names."""

import copy

from lesson_utils.lessons.attention_bugs import BUGS
from lesson_utils.lessons.causal_mask.gpts import known_words, uncertain, word_shares

# %% side-by-side
as_written(last=np.allclose(causal[-1], both_ways[-1]), first=causal[0, 0] == 1)

# %% leak-table
wrong = [kind for kind in lab.KINDS if kind not in ("causal", "late, renormalised")]
by_kind = {kind: [moved(kind, layers) for layers in (1, 4)] for kind in lab.KINDS}
as_written(
    exactly_0=not np.any(by_kind["causal"]),
    rounding=0 < np.max(by_kind["late, renormalised"]) < 1e-14,
    others=min(found.max() for kind in wrong for found in by_kind[kind]) > 1e-3,
    late_is_smallest=all(by_kind["too late"][n].max() <= min(by_kind[k][n].max() for k in wrong) for n in (0, 1)),
    one_a_layer=[(found > 0).sum() for found in by_kind["one too far"]] == [1, 4],
)

# %% late-run
written = late_bits[:, 3].mean()
lost = copy.deepcopy(late)
for heads in lost.stack.heads():
    heads.bug = BUGS["mask after softmax, renormalised"]
as_written(
    half_a_bit=0.4 < lab.window_bits(late, (x, y)).mean() < 0.6
    and 0.3 < min(late_bits[:, 0]) < max(late_bits[:, 0]) < 0.7,
    right=round(lab.window_bits(right, (x, y)).mean(), 1) == round(right_bits.mean(), 1) == 2.5,
    right_is_blind=np.ptp(right_bits, axis=1).max() < 1e-4,
    jumps=min(late_bits[:, 1]) > 20,
    behind_nothing=np.abs(late_bits[:, 2] - late_bits[:, 0]).max() < 0.05,
    writes=round(written) == 30 and min(late_bits[:, 3]) > np.log2(len(vocabulary)),
    last_place=round(-np.log2(lab.answers(late, (x, y))[:, -1]).mean(), 2) == 3.71,
    denominator=abs(four_losses(lost)[0] - late_bits[-1, 3]) < 0.1,
)

# %% gpt-leak
ahead = np.triu_indices(32, 1)
as_written(
    honest=not lab.influence(right, line)[ahead].any(),
    late=(lab.influence(late, line)[ahead] > 0).all(),
)

# %% train
as_written(
    below_pairs=watch.bits[2] < rungs["bigram entropy"],
    words=watch.shares[2] < 0.5 < 0.75 < watch.shares[-1],
    your_loss=abs(
        text_loss(gpt.forward(line[None])[0][0], line) - lab.window_bits(gpt, (line[None, :-1], line[None, 1:])).mean()
    )
    < 1e-3,
)

# %% tables
bits_of = {n: table.bits(held_out) for n, table in ngrams.items()}
lead = gpt_bits - ngrams[4].window_bits(held_out)
as_written(
    four=round(bits_of[4], 2) == 1.83 and round(gpt_bits.mean(), 2) == 1.91,
    table_wins=lead.mean() > 2 * uncertain(lead),
    falls=list(bits_of.values()) == sorted(bits_of.values(), reverse=True) and round(bits_of[7], 2) == 1.73,
    last_three=bits_of[3] - bits_of[4] > bits_of[4] - bits_of[7] > 0,
)

# %% reach
level = counted[7].mean()
found = {name: dict(zip(lab.LENGTHS, values.mean(axis=1), strict=True)) for name, values in curves.items()}
waves, turned, best = found.values()
as_written(
    best_is_seven=min(counted, key=lambda n: counted[n].mean()) == 7,
    none_beats_it=min(min(values.values()) for values in found.values()) > level,
    rises=waves[64] - waves[63] > 0.02,
    rotary_does_not=max(turned[64] - turned[63], best[64] - best[63]) < 0.003,
)

# %% means
gain, less = table - most, table - seven
as_written(
    gain=round(gain, 2) in (0.13, 0.14),
    two_thirds=round(less / gain, 1) in (0.6, 0.7),
    twice=1.8 < gain / (curves["best"][-2].mean() - two) < 2.6,
)

# %% writes
cold, hot = (write("The class", 150, tau, np.random.default_rng(1)) for tau in (0.01, 1.5))
as_written(circles=cold.count("of the same") > 5, do_not_exist=word_shares([hot], known_words(text))[0] < 0.7)

# %% cache-size
as_written(the_same=np.abs(at_once[:, -1] - logits[:, -1]).max() < 1e-4)

# %% step-by-step
as_written(same=np.allclose(np.concatenate(outputs), at_once, atol=1e-5))

# %% sampling-lab
greedy = gpt.generate(vocabulary.encode("The ")[None], 180, np.random.default_rng(0), 0.0)[0]
as_written(repeats=lab.read(vocabulary, greedy).count("of the same") > 3)

# %% gpt-2
as_written(as_published=total == 124_439_808, no_place=no_place == 823_296)

# %% compare
as_written(same=gap < 1e-6)
