"""What the text of notebook 07 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.efficient_attention.lab import CACHE_BITS, WAYS, WINDOW_CHOICES, choice
from lesson_utils.lessons.efficient_attention.measured import share_of_pairs
from lesson_utils.lessons.efficient_attention.memory import MAPS, draw, recall, rewritten
from lesson_utils.lessons.efficient_attention.published import MODELS, TEXTS, real

# %% speculate-run
written_share = np.bincount(written) / len(written)
as_written(
    the_models_own=np.abs(written_share - p).max() < 0.01,
    not_the_drafts=np.abs(q - p).max() > 0.1,
    kept=abs(kept.mean() - np.minimum(p, q).sum()) < 0.01,
)

# %% bill-lab
long_prompt = [(12 * d + a * 100_000) / (12 * d + a * 1_000) for a in (2, 1)]
as_written(
    d == 4096,
    number=[round(ratio, 1) for ratio in long_prompt] == [4.9, 3.0],
    a_book=0.5 < share_of_pairs(100_000, 4096) < 0.9,
    a_chat=share_of_pairs(400, 4096) < 0.05,
)

# %% online-used
as_written(exact=np.abs(attend_in_tiles(Q[:512], K[:512], V[:512]) - exact).max() < 1e-5)

# %% longer
as_written(rows_of_65536=16.5 < rows < 17.5, a_tile_is_small=tiles < 0.5)

# %% four-ways
measured_bytes = {way.name: way.bytes for way in four}
as_written(
    same=max(np.abs(out - outputs[0]).max() for out in outputs) < 1e-5,
    rows=measured_bytes["64 rows at a time"] < 0.02 * measured_bytes["fresh arrays"],
)

# %% patterns
pairs = {name: past.sum() / mask.sum() for name, mask in patterns.items()}
as_written(fewer=30 < pairs["local: the last 64"] < 35)

# %% window-checked
p_ = lab.perplexity
none = {t: p_("window", "64 0", t) for t in TEXTS}
first = {t: p_("window", "64 1", t) for t in TEXTS}
as_written(
    first_wins=all(first[t] < p_("window", "256 0", t) for t in TEXTS),
    hurts=all(none[t] > 1.8 * p_("full", "all", t) for t in TEXTS),
    any_token_in_front=all(abs(p_("front", f, t) / first[t] - 1) < 0.03 for f in ("\n", " zebra") for t in TEXTS),
    no_other_token=all(p_("other", "\n", t) > 0.9 * none[t] for t in TEXTS),
    most_of_the_loss_remains=p_("sink", "score") - p_("full", "all") > 0.6 * (none["all three"] - p_("full", "all")),
)

# %% best-keys
as_written(
    better=all(lab.perplexity("best", 16, t) < lab.perplexity("window", "64 1", t) for t in TEXTS),
    three_of_four=sum(a[1] / a[0] < b[1] / b[0] for a, b in (of.values() for of in real()["longer"].values())) == 3,
    six_percent=1.055 < lab.perplexity("best", 64) / lab.perplexity("full", "all") < 1.065,
)

# %% savings-table
of = {m.name: m for m in MODELS}
llama = of["Llama 3.1 8B"]
as_written(
    fifteen=14 < llama.weights / llama.cache(8192) < 15,
    four=3 < llama.weights / llama.without(8192) < 4,
    three_to_71=[round(of[name].without(1) / of[name].cache(1)) for name in ("SmolLM2 135M", "DeepSeek-V3")] == [3, 71],
)

# %% round-lab
full, ways = lab.perplexity("full", "all"), ("channel", "vector", "two scales a vector")
as_written(percent=[round(100 * lab.perplexity(way, 3) / full - 100) for way in ways] == [4, 31, 19])

# %% mla
as_written(same=np.abs(unpacked - absorbed).max() < 1e-9 * np.abs(unpacked).max())

# %% choices
found = {(w, b): choice(64, WAYS[1], w, b) for w in WINDOW_CHOICES for b in CACHE_BITS}
fit = {key: one for key, one in found.items() if one.total <= 4e9}
as_written(
    four_bits=min(fit, key=lambda key: fit[key].perplexity) == ("all", 4),
    both_hardly_more=found["256", 4].perplexity < 1.03 * found["256", 16].perplexity,
    not_in_one_gigabyte=found["all", 3].total > 1e9 > found["256", 16].total,
)

# %% parallel-recurrent
as_written(same=max(np.abs(at_once - x).max() for x in (one_by_one, np.concatenate(in_chunks))) < 1e-10)

# %% memory-maps
dense = [recall(64, feature_map=f, dense=True).everything for f in MAPS]
as_written(
    nearly_all=min(dense[0], dense[2]) > 0.93,
    fewer_than_one_in_ten=max(dense[1], dense[3]) < 0.1,  # the mean alone does the same harm
    switches_once=recall(64, feature_map=MAPS[1]).everything > 0.98,
    every_answer=named > 0.98,
)


# %% memory-table
def news(keys, times, **rule):
    features, ids = draw(64)
    return rewritten(features, ids, keys, times, **{"decay": 1.0, "overwrite": False} | rule)


slow, fast = ({"overwrite": True, "rate": rate} for rate in (0.2, 1.0))
as_written(
    more_often=0.4 < news(32, 1) < 0.6 and news(8, 8) < 0.05,
    lost_half=0.4 < news(32, 1, decay=0.9) < 0.6 and 0.4 < recall(32, 0.9).everything < 0.6,
    outweighs=news(8, 8, decay=0.97) < 0.05,
    however_often=news(8, 8, **fast) > 0.97,
    four_in_ten=0.55 < recall(64, **fast).everything < 0.65,
    holds_64=recall(64, **slow).everything > 0.97,
    corrects_too_little=news(8, 8, **slow) < 0.05,
)
