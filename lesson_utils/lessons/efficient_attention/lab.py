"""What notebook 07 calls `lab.name`: its live figures, and all else from `measured`, `published` and `memory`."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, live, plots, tables
from lesson_utils.classroom.formats import minus, three_figures
from lesson_utils.lessons.efficient_attention.measured import (
    bill,
    four_ways,
    in_turns,
    measured_bill,
    measured_ways,
    memories,
    peak_bytes,
    roofline,
    seconds,
)
from lesson_utils.lessons.efficient_attention.memory import feature_maps, rule_table, votes
from lesson_utils.lessons.efficient_attention.published import (
    ALL_TEXTS,
    KEPT,
    SHARING,
    TEXTS,
    WINDOWS,
    best_table,
    longer_table,
    perplexity,
    perplexity_rounded,
    rounded,
    sample,
    savings_table,
    sink_table,
)
from lesson_utils.maths import costs
from lesson_utils.maths.checks import Array

# --- 3 · The online softmax, tile by tile -----------------------------------------------------------------------------

KEYS = 24
SIZES = (1, 2, 3, 4, 6, 8, 12, 24)


def row() -> tuple[Array, Array]:
    """Make one query's scores on 24 keys, and their values, one number each; larger scores come late."""
    rng = np.random.default_rng(12)
    scores = rng.normal(0, 0.8, KEYS)
    scores[[4, 10, 17]] = 1.8, 3.0, 4.1
    return scores, rng.uniform(0.2, 1.0, KEYS)


class Moment(NamedTuple):
    """The running sums after some tiles, and the work of the last tile."""

    largest: float
    total: float
    output: float  # not divided
    shrink: float  # what the old sums were multiplied by
    old_total: float  # before that
    old_output: float


@lru_cache(None)
def moments(size: int, forget: bool) -> tuple[Moment, ...]:
    """Return the running sums after 0, 1, 2, … tiles."""
    scores, values = row()
    largest, total, output = -np.inf, 0.0, 0.0
    found = [Moment(largest, total, output, 1.0, 0.0, 0.0)]
    for start in range(0, KEYS, size):
        s, v = scores[start : start + size], values[start : start + size]
        new = max(largest, float(s.max()))
        shrink = float(np.exp(largest - new)) if start else 1.0
        kept = 1.0 if forget else shrink
        weights = np.exp(s - new)
        old = total, output
        total, output = total * kept + float(weights.sum()), output * kept + float(weights @ v)
        largest = new
        found.append(Moment(largest, total, output, shrink, *old))
    return tuple(found)


def exact() -> float:
    """Return the output of softmax over the whole row."""
    scores, values = row()
    weights = np.exp(scores - scores.max())
    return float(weights @ values / weights.sum())


class Tiles:
    """The drawing of `tiles_lab`: the row above the error so far, and the two running sums beside them."""

    def __init__(self, figure: "plots.Figure") -> None:
        grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1), height_ratios=(1.25, 1))
        self.row_ax, self.error_ax = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
        self.total_ax, self.output_ax = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
        scores, _ = row()
        at = np.arange(KEYS)
        low = float(scores.min()) - 0.3
        self.bars = self.row_ax.bar(at, scores - low, 0.8, bottom=low)
        (self.maximum,) = self.row_ax.plot(at, np.full(KEYS, scores.max()), color=plots.ORANGE, drawstyle="steps-mid")
        self.row_ax.set(xlim=(-0.6, KEYS - 0.4), ylim=(low, scores.max() + 0.5), ylabel="score", xticks=())
        (self.error,) = self.error_ax.plot(at, at * 0.0, color=plots.PURPLE)
        (self.dot,) = self.error_ax.plot([0], [0], "o", color=plots.PURPLE, ms=9, clip_on=False)
        self.error_ax.set(xlim=(-0.6, KEYS - 0.4), ylim=(0, 0.45), xlabel="keys seen", ylabel="error of the output")
        self.error_ax.set_xticks(np.arange(4, KEYS + 1, 4) - 1, [str(n) for n in range(4, KEYS + 1, 4)])
        self.total = self._sum(self.total_ax, "total", plots.BLUE, 8.5)
        self.output = self._sum(self.output_ax, "output", plots.VALUE, 5.5)

    def _sum(self, ax: "plots.Axes", name: str, colour: str, end: float) -> list[Any]:
        """Draw a running sum as three bars: before; what is left of it; this tile's part."""
        before = ax.barh([1], [1], 0.55, fc="none", ec=colour, ls="--", lw=1.6)[0]
        left = ax.barh([0], [1], 0.55, color=drawings.tint(colour, 0.4))[0]
        added = ax.barh([0], [1], 0.55, left=[1], color=colour)[0]
        ax.set_yticks((0, 1), ("now", "before"))
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, end), ylim=(-0.6, 1.6), xlabel=f"{name} (dark: this tile's part)")
        return [before, left, added]

    def update(self, step: int, forget: bool, size: int) -> str:
        """Show the sums after `step` tiles of `size` keys, and return the alternative text."""
        after = moments(size, forget)
        step = min(step, len(after) - 1)
        now, seen = after[step], min(step * size, KEYS)
        errors = [abs(m.output / m.total - exact()) for m in after[1:]]
        self._move_row([m.largest for m in after[1 : step + 1]], seen, size)
        ends = [min((n + 1) * size, KEYS) - 1 for n in range(step)]
        self.error.set_data(ends, errors[:step])
        self.dot.set_data(ends[-1:], errors[:step][-1:])
        left = 1.0 if forget else now.shrink
        for bars, before, total in (
            (self.total, now.old_total, now.total),
            (self.output, now.old_output, now.output),
        ):
            bars[0].set_width(before)
            bars[1].set_width(before * left)
            bars[2].set_x(before * left)
            bars[2].set_width(total - before * left)
        if step == 0:
            self.row_ax.set_title(f"Nothing is seen yet of {-(-KEYS // size)} tiles")
            self.total_ax.set_title(f"Both sums are 0{': no rescaling' * forget}")
            self.output_ax.set_title("")
            self.error_ax.set_title(f"The whole row gives {exact():.3f}")
            return f"… {KEYS} keys in tiles of {size}{', forgetting to rescale' * forget}."
        jumped = step > 1 and now.shrink < 1
        top, factor = minus(f"{now.largest:.1f}"), f"{now.shrink:.2g}"
        self.row_ax.set_title(f"{seen} of {KEYS} keys: maximum {top}" + (", it jumped" if jumped else ""))
        sums = "This is the first tile" if step == 1 else "The old sum stays"
        if jumped:
            sums = f"Should be × {factor}: forgotten" if forget else f"The old sum shrinks: × {factor}"
        self.total_ax.set_title(sums)
        self.output_ax.set_title(f"output / total = {now.output / now.total:.3f}")
        verdict = f"off by {errors[step - 1]:.3f}" if errors[step - 1] > 5e-4 else "exact"
        self.error_ax.set_title(f"{verdict.capitalize()}; the whole row gives {exact():.3f}")
        return f"… In tiles of {size}; total {now.total:.2f}, output {now.output:.2f}."

    def _move_row(self, maxima: list[float], seen: int, size: int) -> None:
        """Colour the last tile and the earlier ones, and draw the running maximum over them."""
        for n, bar in enumerate(self.bars):
            current, past = seen - size <= n < seen, n < seen
            unseen = ("#CCCCCC", "#E4E4E4")[n // size % 2]  # two greys, so that the tiles to come are seen
            bar.set_color(plots.BLUE if current else drawings.tint(plots.BLUE, 0.45) if past else unseen)
        self.maximum.set_data(np.arange(seen), np.repeat(maxima, size)[:seen])


@live.lab(
    height=4.6,
    neutral="No tile is seen yet: nothing has shrunk, and there is no error to compare.",
    telling=[{"step": 5}, {"step": 5, "forget": True}],
    step=live.Slider("tiles seen", 0, KEYS, 0),
    forget=live.Switch("forget to rescale", False),
    size=live.Choice("tile size", SIZES, 4),
)
def tiles_lab(figure: "plots.Figure") -> live.Update:
    """Show softmax over a row that is seen a tile at a time: when the maximum jumps, the old sums shrink."""
    return Tiles(figure).update


# --- 4 · A model that was trained to see all, and sees only some keys -------------------------------------------------

COLOURS = dict(zip(KEPT, (plots.ORANGE, plots.BLUE, plots.GREEN), strict=True))
LENGTH = 512  # of the mask that is drawn


@live.lab(
    height=4.1,
    neutral="Of the window's curves only what a window of up to 64 does is drawn, with no first token kept.",
    telling=[{"window": 256}, {"keep": 1}],
    window=live.Choice("window", WINDOWS, 64),
    keep=live.Choice("first tokens kept", KEPT, 0),
    text=live.Choice("text", TEXTS, ALL_TEXTS),
)
def window_lab(figure: "plots.Figure") -> live.Update:
    """Show the mask and the stored perplexity of a published model that sees the last tokens, and perhaps the first."""
    from matplotlib.patches import Polygon, Rectangle

    left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
    left.set(xlim=(0, LENGTH), ylim=(LENGTH, 0), aspect="equal", xlabel="key", ylabel="query")
    left.set_xticks((0, 256, 512))
    left.set_yticks((0, 256, 512))
    left.add_patch(Polygon([(0, 0), (0, LENGTH), (LENGTH, LENGTH)], fc="#EEEEEE", zorder=0.5))
    band = Polygon([(0, 0)], fc=drawings.tint(plots.BLUE, 0.8))
    first = Rectangle((0, 0), 1, LENGTH)  # wider than it is, or nobody would see it
    left.add_patch(band)
    left.add_patch(first)
    lines = {}
    for keep in KEPT:
        (lines[keep],) = right.plot(WINDOWS, [50] * len(WINDOWS), "o-", color=COLOURS[keep], lw=2)
    (full,) = right.plot([WINDOWS[0], WINDOWS[-1]], [20, 20], "--", color=plots.INK, lw=1.6)
    (dot,) = right.plot([64], [50], "o", ms=14, mfc="none", mec=plots.INK, mew=2.2)
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    right.set(ylim=(8, 900), xlabel="window (tokens)", ylabel="perplexity")
    right.set_xticks(WINDOWS, [str(n) for n in WINDOWS])
    right.set_yticks((10, 30, 100, 300), ("10", "30", "100", "300"))
    right.minorticks_off()
    right.legend(
        [*(lines[k] for k in KEPT), full], [*(f"first {k} kept" if k else "none kept" for k in KEPT), "sees all"]
    )

    def update(window: int, keep: int, text: str) -> str:
        tried = WINDOWS[: WINDOWS.index(window) + 1]  # the curves grow as they are asked for
        curves = {k: [perplexity("window", f"{size} {k}", text) for size in tried] for k in KEPT if k <= keep}
        all_seen = perplexity("full", "all", text)
        band.set_xy([(0, 0), (0, window), (LENGTH - window, LENGTH), (LENGTH, LENGTH)])
        first.set_width(6 if keep else 0)
        first.set_facecolor(COLOURS[keep])
        for k, line in lines.items():
            curve = curves.get(k, [])
            line.set_data(tried[: len(curve)], curve)
        full.set_ydata([all_seen] * 2)
        here = curves[keep][-1]
        dot.set_data([window], [here])
        left.set_title(f"The cache holds {window + keep}")
        right.set_title(f"Perplexity {three_figures(here)}; seeing all: {three_figures(all_seen)} ({text})")
        table = "; ".join(
            f"{k} kept: " + ", ".join(f"{size} {three_figures(p)}" for size, p in zip(tried, curve, strict=True))
            for k, curve in curves.items()
        )
        return f"… SmolLM2-135M, stored. By window, {table}."

    return update


# --- 5 · Fewer bits a number ------------------------------------------------------------------------------------------

GROUP = 32  # tokens whose keys share a scale in each channel
Rounding = Callable[[Array, int, int], Any]  # the exercise's: numbers, bits, axis -> rounded numbers
BITS = (2, 3, 4, 16)


def shared_by(x: Array, bits: int, sharing: str, rounding: Rounding = rounded) -> Array:
    """Round x, (T, d), by the learner's function: row by row, or column by column in groups of 32 rows.

    Source: Liu et al. (2024), "KIVI", section 3.
    """
    if sharing == SHARING[0]:
        return np.asarray(rounding(x, bits, 1))
    return np.concatenate([np.asarray(rounding(x[n : n + GROUP], bits, 0)) for n in range(0, len(x), GROUP)])


def error(x: Array, few: Array) -> float:
    """Return the root mean square of the error, as a share of that of the numbers."""
    return float(np.sqrt(((x - few) ** 2).sum() / (x**2).sum()))


@live.lab(
    height=4.3,
    example=lambda: rounded,
    neutral="With 16 bits both ways are next to exact, and no curve is drawn for fewer bits.",
    telling={"bits": 3, "sharing": SHARING[1]},
    bits=live.Choice("bits", BITS, 16),
    sharing=live.Choice("a scale for", SHARING, SHARING[0]),
)
def round_lab(figure: "plots.Figure", rounding: Rounding) -> live.Update:
    """Show real keys before and after the learner's `rounding`, and the stored perplexity of their model."""
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    x, images = sample(), []
    for ax in axes[:2]:
        image = ax.imshow(x, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-8, vmax=8, aspect="auto")
        ax.set(xlabel="channel")
        ax.set_xticks((0, 31, 63), ("1", "32", "64"))
        ax.set_yticks((0, 31, 63, 95), ("1", "32", "64", "96"))
        ax.spines[:].set_visible(False)
        images.append(image)
    axes[0].set_ylabel("token")
    axes[0].set_title(f"{len(x)} keys as they are")
    right, full = axes[2], perplexity("full", "all")
    lines = {
        name: right.plot([0], [20], "o-", color=colour, lw=2)[0]
        for name, colour in zip(SHARING, (plots.ORANGE, plots.BLUE), strict=True)
    }
    right.axhline(full, color=plots.INK, ls="--", lw=1.6)
    (dot,) = right.plot([0], [20], "o", ms=14, mfc="none", mec=plots.INK, mew=2.2)
    right.set_yscale("log")
    right.set(xlabel="bits a number", ylabel="perplexity of SmolLM2", ylim=(15, 900))
    right.set_xticks(range(len(BITS)), [str(b) for b in BITS])
    right.set(xlim=(-0.4, len(BITS) - 0.6))
    right.set_yticks((20, 50, 100, 200, 500), ("20", "50", "100", "200", "500"))
    right.minorticks_off()
    names = ("one vector", "one channel", "16 bits")
    right.legend([*lines.values(), right.lines[2]], names, title="a scale for", title_fontsize=10.5)

    def update(bits: int, sharing: str) -> str:
        few = shared_by(x, bits, sharing, rounding)
        images[1].set_data(few)
        curves = {
            name: [(BITS.index(b), perplexity_rounded(name, b)) for b in BITS if b >= bits]
            for name in SHARING
            if name == sharing or sharing == SHARING[1]
        }
        for name, line in lines.items():
            line.set_data(*np.array(curves.get(name, [])).reshape(-1, 2).T)
        here = perplexity_rounded(sharing, bits)
        dot.set_data([BITS.index(bits)], [here])
        axes[1].set_title(f"{bits} bits: {100 * error(x, few):.2g} % off")
        gained = sharing == SHARING[1] and bits < 16
        by_vector = f", not {three_figures(perplexity_rounded(SHARING[0], bits))}" * gained
        right.set_title(f"Perplexity {three_figures(here)}{by_vector}")
        return (
            f"… SmolLM2 with a scale for {sharing}. Perplexity with all keys so rounded (channels in groups of {GROUP} "
            f"tokens) and values by vector, stored; at 16 bits it is {three_figures(full)}. Off: root mean square."
        )

    return update


# --- 6 · All savings together, judged by bytes, seconds and loss ------------------------------------------------------

TOKENS, LAYERS, HEADS, KV_HEADS, D_HEAD = 8192, 30, 9, 3, 64  # of each text; of SmolLM2
WEIGHTS = 2 * 0.135e9  # bytes of its parameters in 16 bits
READ = 50e9  # bytes a second, of a good laptop's memory
ROWS = 64  # queries at a time in a prompt
WAYS = ("all weights", "64 rows")
WINDOW_CHOICES = ("all", "256", "128", "64")
CACHE_BITS = (16, 4, 3)
SCALES = 0.75  # bits a number more, where keys are rounded by channel and values by vector


class Chosen(NamedTuple):
    """A choice of savings: its bytes and its loss."""

    weights_of_pairs: float  # bytes while one prompt is read, in one layer
    caches: float  # bytes of all texts
    perplexity: float  # stored, on texts of some 500 tokens

    @property
    def total(self) -> float:
        """Bytes of everything."""
        return WEIGHTS + self.weights_of_pairs + self.caches

    @property
    def seconds(self) -> float:
        """One new token in each text, if reading is all that takes time."""
        return (WEIGHTS + self.caches) / READ


def perplexity_with(window: str, bits: int) -> float:
    """Look up the perplexity of SmolLM2 with this window, the first token, and keys rounded by channel."""
    if bits == 16:
        return perplexity("full", "all") if window == "all" else perplexity("window", f"{window} 1")
    return perplexity("channel", bits) if window == "all" else perplexity("together", f"{window} {bits}")


def choice(texts: int, way: str, window: str, bits: int) -> Chosen:
    """Count the bytes of a choice, and look up its loss."""
    rows = TOKENS if way == WAYS[0] else ROWS
    kept = TOKENS if window == "all" else int(window) + 1
    width = 16 if bits == 16 else bits + SCALES
    cache = costs.cache_bytes(kept, LAYERS, KV_HEADS, D_HEAD, 16) * width / 16
    return Chosen(2.0 * HEADS * rows * TOKENS, texts * cache, perplexity_with(window, bits))


def choice_table(texts: int = 64) -> tables.Table:
    """List what each choice takes and loses, for SmolLM2 and texts of 8,192 tokens, each prompt 64 rows at a time."""
    rows = []
    for window in WINDOW_CHOICES:
        for bits in CACHE_BITS:
            found = choice(texts, WAYS[1], window, bits)
            times = f"{1000 * found.seconds:.0f} ms"
            rows.append((window, str(bits), f"{found.total / 1e9:.2f} GB", times, f"{found.perplexity:.1f}"))
    return tables.table(("window (and the first)", "bits", "bytes", "a token in each text", "perplexity"), rows)
