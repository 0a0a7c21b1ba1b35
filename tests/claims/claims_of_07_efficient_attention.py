"""What the text of notebook 07 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.efficient_attention.lab import (
    CACHE_BITS,
    TEXTS_AT_ONCE,
    WAYS,
    WINDOW_CHOICES,
    choice,
    shared_by,
)
from lesson_utils.lessons.efficient_attention.lab import error as part_lost
from lesson_utils.lessons.efficient_attention.measured import share_of_pairs
from lesson_utils.lessons.efficient_attention.memory import MAPS, recall
from lesson_utils.lessons.efficient_attention.published import MODELS, SHARING, TEXTS, count, sample

# %% bill-lab
by_clock = {T: bill.share(bill.pairs) for T, bill in measured.items()}
as_timed(rises=by_clock[2048] > by_clock[64] + 0.3, earlier=by_clock[256] > share_of_pairs(256, 128))
as_written(a_book=0.5 < share_of_pairs(100_000, 4096) < 0.9, a_chat=share_of_pairs(400, 4096) < 0.05)

# %% clock-table
at_1024, at_64 = measured[1024], measured[64]
as_timed(
    narrow_products=at_1024.share(at_1024.products) > share_of_pairs(1024, 128),
    softmax=at_1024.bare > at_1024.products,
    checks=at_64.pairs > at_64.bare,
)

# %% online-used
as_written(exact=np.abs(by_tiles - exact).max() < 1e-5)

# %% four-ways
fresh, kept_array, rows, tiled = four
as_written(
    a_quarter_at_the_second=0.2 * fresh.bytes < kept_array.bytes < 0.3 * fresh.bytes,
    a_hundredth_at_the_third=rows.bytes < 0.015 * fresh.bytes and tiled.bytes < 0.015 * fresh.bytes,
)
as_timed(
    time_at_the_second=fresh.seconds - kept_array.seconds > kept_array.seconds - min(rows.seconds, tiled.seconds),
    about_as_fast=0.6 < tiled.seconds / rows.seconds < 1.7,
)

# %% backward
as_written(same=np.abs(d_q - by_stored_weights).max() < 1e-10)

# %% window-checked
p = lab.perplexity
as_written(
    first_wins=all(p("window", "64 1", t) < p("window", "128 0", t) for t in TEXTS),
    hurts=all(p("window", "64 0", t) > 1.8 * p("full", "all", t) for t in TEXTS),
)

# %% sink-table
p = lab.perplexity
as_written(
    no_other_token=all(p("other", n) > 0.9 * p("window", "64 0") for n in (1, 20)),
    even_higher=p("other", 1) > 1.3 * p("window", "64 0"),
    a_part=1.3 * p("window", "64 1") < p("sink", "score") < 0.9 * p("window", "64 0"),
    nothing=p("sink", "constant") > 0.95 * p("window", "64 0"),
)

# %% window-measured
as_written(exact=error < 1e-5, fewer=20 < causal.sum() / mask.sum() < 40)

# %% best-keys
as_written(
    better=all(lab.perplexity("best", 16, t) < lab.perplexity("window", "64 1", t) for t in TEXTS),
    enough=lab.perplexity("best", 64) < 1.1 * lab.perplexity("full", "all"),
    not_enough=lab.perplexity("best", 8) > 1.5 * lab.perplexity("full", "all"),
    between=lab.perplexity("best", 64) < lab.perplexity("hitters", "32 32") < lab.perplexity("window", "64 1"),
)

# %% cache-lab
many = {m.name: [n * m.cache(8192, 16, count) / m.weights for n in (1, 14, 15, 64)] for m in MODELS}
as_written(
    none_alone=all(of[0] < 1 for of in many.values()),
    fifteen=many["Llama 3.1 8B"][1] < 1 < many["Llama 3.1 8B"][2],
    four=sum(of[3] > 1 for of in many.values()) == 4,
)

# %% round-lab
real_values = sample()["values"]
off_by = [part_lost(real_values, shared_by(real_values, 3, sharing)) for sharing in SHARING]
full, three = lab.perplexity("full", "all"), {way: lab.perplexity(way, 3) for way in ("minimum", "vector", "channel")}
as_written(
    channel=1.02 * full < three["channel"] < 1.06 * full,
    vector=1.28 * full < three["vector"] < 1.36 * full,
    at_once=2.1 * full < three["minimum"] < 2.2 * full,
    values_do_not_mind=lab.perplexity("only, 3 bits", "values by channel") < 1.1 * full,
    a_channels_scale_lowers_the_error=off_by[1] < 0.8 * off_by[0],
    values_by_channel_are_no_better=lab.perplexity("only, 3 bits", "values by channel") > three["channel"],
    keys_do=lab.perplexity("only, 3 bits", "keys by vector") > 1.2 * full,
)

# %% directions
as_written(
    weights=lab.perplexity("rank", 192) > 8 * full,
    made=1.35 * full < lab.perplexity("directions", 192) < 1.6 * full,
    ruined=lab.perplexity("heads", 1) > 20 * full,
)

# %% mla
as_written(same=np.abs(unpacked - absorbed).max() < 1e-9 * np.abs(unpacked).max())

# %% speculate-run
as_written(
    STEPS == 300,
    same=same,
    most=sum(text.accepted for text in texts[4]) > 0.6 * sum(text.drafted for text in texts[4]),
    fewer=passes[4] < 0.5 * passes[0],
    less_and_less=passes[8] > 0.5 * passes[4],
)

# %% choose-lab
found = {(way, w, b): choice(64, way, w, b) for way in WAYS for w in WINDOW_CHOICES for b in CACHE_BITS}
fit = {key: one for key, one in found.items() if one.total <= 4e9}
least = min(fit, key=lambda key: fit[key].perplexity)
as_written(
    opens_too_large=found[WAYS[0], "all", 16].total > 12e9 and 64 in TEXTS_AT_ONCE,
    four_bits=least == (WAYS[1], "all", 4) and (WAYS[0], "all", 4) not in fit,
    both_hardly_more=found[WAYS[1], "256", 4].perplexity < 1.03 * found[WAYS[1], "256", 16].perplexity,
    not_in_one_gigabyte=found[WAYS[1], "all", 3].total > 1e9 > found[WAYS[1], "256", 16].total,
)

# %% parallel-recurrent
as_written(same=max(np.abs(at_once - x).max() for x in (one_by_one, np.concatenate(in_chunks))) < 1e-10)

# %% memory-table
sums, elu, less = ([recall(n, feature_map=f).everything for n in (32, 64)] for f in MAPS)
slow = recall(64, overwrite=True, rate=0.2)
as_written(
    holds=min(sums) > 0.95,
    elu_forgets=max(elu) < 0.3,
    one_in_seven=0.1 < elu[1] < 0.18,
    it_is_the_mean=min(less) > 0.95,
    coin=0.35 < recall(32).rewritten < 0.65,
    rate_1_forgets=recall(64, overwrite=True).oldest < 0.3,
    rate_of_a_fifth=slow.everything > 0.93 and slow.rewritten > 0.93,
    dense_is_harder=recall(64, dense=True).everything < sums[1],
)
