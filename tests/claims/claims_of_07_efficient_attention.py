"""What the text of notebook 07 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.efficient_attention.bill import share_of_pairs
from lesson_utils.lessons.efficient_attention.cache import MODELS
from lesson_utils.lessons.efficient_attention.memory import MAPS

# %% bill-lab
by_clock = {T: bill.pairs / (bill.pairs + bill.linear) for T, bill in measured.items()}
as_written(rises=by_clock[2048] > by_clock[64] + 0.3, earlier=by_clock[256] > share_of_pairs(256, 128))

# %% online-used
as_written(exact=np.abs(by_tiles - exact).max() < 1e-5)

# %% store-measured
as_written(less=in_tiles.bytes < 0.03 * all_at_once.bytes, exact=error < 1e-5)

# %% store-curve
growth = {way: of[4096] / of[1024] for way, of in peaks.items()}
as_written(square=growth["all weights"] > 14, in_tiles=growth["in tiles"] < 2)

# %% window-checked
as_written(
    first_wins=all(p("window", "64 1", t) < p("window", "128 0", t) for t in lab.TEXTS),
    hurts=all(p("window", "64 0", t) > 1.8 * p("full", "all", t) for t in lab.TEXTS),
)

# %% best-keys
as_written(
    better=all(p("best", 16, t) < p("window", "64 1", t) for t in lab.TEXTS),
    enough=p("best", 64) < 1.1 * p("full", "all"),
    not_enough=p("best", 8) > 1.5 * p("full", "all"),
    few=p("best", 2) > 5 * p("full", "all"),
)

# %% cache-lab
sizes = {m.name: m.cache(131_072, 16, cache_bytes) / (2 * m.parameters) for m in MODELS}
as_written(three=sum(size > 1 for size in sizes.values()) == 3, five=4.5 < sizes["Llama 2 7B"] < 5.5)

# %% untrained
full = p("full", "all")
as_written(
    eight_free=p("bits", 8) < 1.01 * full,
    four_shows=1.35 * full < p("bits", 4) < 1.45 * full,
    three_not=p("bits", 3) > 4 * full,
    ruined=p("heads", 1) > 20 * full and p("rank", 192) > 3 * full,
)

# %% memory-table
sums, elu = ([lab.recall(n, feature_map=f).everything for n in (32, 64)] for f in MAPS)
as_written(
    holds=min(sums) > 0.95,
    elu_forgets=max(elu) < 0.3,
    at_16=lab.recall(16, feature_map="elu + 1").everything < 0.5,
    coin=0.35 < lab.recall(32).rewritten < 0.65,
)

# %% speculate-run
as_written(
    STEPS == 300,
    same=same,
    most=sum(text.accepted for text in texts[4]) > 0.6 * sum(text.drafted for text in texts[4]),
    fewer=passes[4] < 0.5 * passes[0],
    less_and_less=passes[8] > 0.5 * passes[4],
)
