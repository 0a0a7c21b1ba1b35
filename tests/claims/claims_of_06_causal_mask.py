"""What the text of notebook 06 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.causal_mask.counting import LENGTHS
from lesson_utils.lessons.causal_mask.gpts import ORDERS, uncertain

# %% side-by-side
as_written(last=np.allclose(causal[-1], both_ways[-1]), first=causal[0, 0] == 1)

# %% leak-table
wrong = [kind for kind in lab.KINDS if kind not in ("causal", "late, renormalised")]
with np.errstate(all="ignore"):  # a hidden score far above the visible ones
    late = ops.softmax(np.array([[0, 1, 110]], np.float32)) * np.array([True, True, False])
    divided = late / late.sum()
as_written(
    exactly_0=not np.any(leaks["causal"]),
    rounding=0 < np.max(leaks["late, renormalised"]) < 1e-14,
    others=min(moved.max() for kind in wrong for moved in leaks[kind]) > 0.05,
    one_a_layer=[(moved > 0).sum() for moved in leaks["one too far"]] == [1, 4],
    nothing_left=np.isnan(divided).all(),
)

# %% corner
as_written(
    all_five=attention.causal_mask(1, 5).all(),
    first_only=np.tri(1, 5, dtype=bool)[0].tolist() == [True, False, False, False, False],
)

# %% fills
last_two, every = ({key: rows[n] for key, rows in weights.items()} for n in (0, 1))
wrong = [key for key, row in last_two.items() if not np.allclose(row, [*ops.softmax(four[0, :2]), 0, 0], atol=1e-3)]
as_written(
    one_wrong=wrong == [("add −1e9", np.float16)] and np.isnan(last_two[wrong[0]]).all(),
    nan=all(
        np.isnan(row).all() for (way, dtype), row in every.items() if way == "replace by −∞" or dtype == np.float16
    ),
    equal=all(np.allclose(every[way, np.float32], 0.25) for way in ("add −1e9", "replace by −1e9")),
    rounded=np.float32(3) - np.float32(1e9) == np.float32(-1e9),
)

# %% padding-masks
as_written(blind=[np.flatnonzero(~mask.any(axis=-1)).tolist() for mask in masks] == [[], [0, 1]])

# %% empty-rows
as_written(zero=not output[:2].any(), spread=spread.all() and not weights[:, 0].any())

# %% one-pass
as_written(among=round(2 ** rungs["bigram entropy"], 1) == 8.5)

# %% train
untrained = models.GPT(config, np.random.default_rng(0))
some = lab.windows(train, 64)
bets = untrained.forward(some[0][:64])[0].argmax(axis=-1)
as_written(
    repeats=(bets == some[0][:64]).mean() > 0.95,
    by_chance=abs(watch.bits[0] - rungs["all alike"]) < 0.7,
    train_text=round(lab.window_bits(untrained, some).mean(), 1) == 7.5,
    fewer_repeat=2 * (some[0] == some[1]).mean() < (held_out[0] == held_out[1]).mean(),
    four_characters=1.8 < watch.bits[-1] < gpt_bits.mean() < 2.1,
    below_pairs=watch.bits[2] < rungs["bigram entropy"],
    words=watch.shares[2] < 0.4 < 0.75 < watch.shares[-1],
)

# %% tables
bits_of = {n: table.bits(held_out) for n, table in ngrams.items()}
lead = gpt_bits - ngrams[4].window_bits(held_out)
as_written(
    four=round(bits_of[4], 2) == 1.83 and round(gpt_bits.mean(), 2) == 1.99,
    table_wins=lead.mean() > 2 * uncertain(lead),
    falls=list(bits_of.values()) == sorted(bits_of.values(), reverse=True) and round(bits_of[7], 2) == 1.73,
    last_three=bits_of[3] - bits_of[4] > bits_of[4] - bits_of[7] > 0,
    words=lab.word_shares(ngrams[4].writes(vocabulary, text[:1], 120), lab.known_words(text))[0] > watch.shares[-1],
)

# %% reach
level = counted[7]
means = {name: dict(zip(LENGTHS, values.mean(axis=1), strict=True)) for name, values in curves.items()}
long = means["GPT, 2,400 steps"]
as_written(
    best_is_seven=min(counted, key=lambda n: counted[n].mean()) == 7,
    none_beats_it=min(min(found.values()) for found in means.values()) > level.mean(),
    same_length=all(counted[n].mean() < min(found[n] for found in means.values()) - 0.05 for n in (1, 2, 3, 4)),
    gains=long[8] - long[12] > 0.03 > 0.02 > long[12] - min(long.values()),
    mean=round(mixed["2,400 steps and table of 7"], 2) == 1.61
    and round(bits_of[7] - mixed["2,400 steps and table of 7"], 2) == 0.12,
    control=round(bits_of[7] - mixed["tables of 4 and 7"], 2) == 0.02,
    as_good=bits_of[4] < mixed["2,400 steps"],  # a partner that is at least as good as the GPT
)

# %% climb
gain = {}
for order in ORDERS:
    means = np.mean([list(start[order].values()) for start in starts], axis=0)
    gain[order] = dict(zip(ORDERS[order], -np.diff(means), strict=True))
    as_written(
        far_behind=min(means) > counted["table of 4 characters"] + 0.4, head=means[0] < counted["table of 1 character"]
    )
late, first = gain.values()
as_written(
    late=max(late, key=late.get) == "positions" and round(late["positions"], 2) == 0.44,
    first=max(first, key=first.get) == "four heads" and round(first["positions"], 2) == 0.06,
    heads=late["four heads"] < 0.5 * first["four heads"],
    norm=late["layer norm"] < 0 and first["layer norm"] < 0,
)

# %% peeking
as_written(too_good=found["peeking, small"] < 0.5 < 2 < found["honest, small"])

# %% gpt-leak
as_written(
    honest=not np.triu(found["trained GPT"], 1).any(),
    peeks=(np.diagonal(found["peeking model"], 1) > 0).all() and ahead.max() > 0.9,
)

# %% looks-table
near = {name: np.array([share for share, _ in heads.values()]) for name, heads in reach.items()}
as_written(
    sinusoidal=near["sinusoidal"][:4].mean() > 0.75 and near["sinusoidal"][4:].mean() < 0.65,
    rotary=near["rotary"][:4].mean() < near["rotary"][4:].mean() - 0.1,
)

# %% sampling-lab
greedy = gpt.generate(vocabulary.encode("The class")[None], 180, np.random.default_rng(0), 0.0)[0].tolist()
contexts_read, seen = set(), greedy[:9]
for symbol in greedy[9:]:  # what `generate` gives to the model
    contexts_read.add(tuple(seen))
    seen = [*seen, symbol] if len(seen) < config.max_length else [*seen, symbol][-config.max_length // 2 :]
loops = lab.read(vocabulary, np.array(greedy)).count("container of the ")
as_written(never_the_same=len(contexts_read) == 180, repeats=loops > 3)

# %% cuts
adapts = min(kept) == 1 and max(kept) == 39
circles = share[0.0, 1.0][1] < share[0.8, 1.0][1] - 0.2
as_written(adapts=adapts, circles=circles, words_back=share[1.5, 1.0][0] < share[1.5, 0.5][0] - 0.3)

# %% cache-size
as_written(the_same=np.abs(at_once[:, -1] - logits[:, -1]).max() < 1e-4)

# %% cache
as_written(same_text=all(t.same for t in timings))

# %% step-by-step
as_written(same=np.allclose(np.concatenate(outputs), at_once, atol=1e-5))

# %% gpt-2
as_written(as_published=total == 124_439_808, no_place=no_place == 823_296)

# %% compare
as_written(same=gap < 1e-6)
