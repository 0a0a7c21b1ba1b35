"""What notebook 07 calls `lab.name`: its live figures, and all else from `measured`, `published` and `memory`."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from lesson_utils.classroom import drawings, formats, live, plots
from lesson_utils.classroom.formats import minus, three_figures
from lesson_utils.lessons.efficient_attention.measured import (
    LENGTHS,
    Bill,
    D,
    as_bytes,
    as_time,
    clock_table,
    compared,
    four_ways,
    measure,
    measured_bill,
    measured_roofline,
    measured_ways,
    most_likely,
    price,
    price_plot,
    roofline,
    seconds,
    share_of_pairs,
    speculate,
)
from lesson_utils.lessons.efficient_attention.memory import D_K, ENDS, MAPS, PAIRS, RUNS, VALUES, recall, recall_table
from lesson_utils.lessons.efficient_attention.published import (
    ALL_TEXTS,
    KEPT,
    KINDS,
    MODELS,
    SHARING,
    TEXTS,
    WINDOWS,
    best_keys,
    count,
    directions_table,
    perplexity,
    perplexity_rounded,
    rounded,
    sample,
    savings_table,
    sink_table,
    window_table,
)
from lesson_utils.maths import attention, costs
from lesson_utils.maths.checks import Array

# --- 1 · What does attention cost? ------------------------------------------------------------------------------------

POWERS = tuple(2**n for n in range(6, 18))  # 64 … 131,072
WIDTHS = (128, 256, 512, 1024, 2048, 4096)
EACH, BETWEEN = plots.BLUE, plots.ORANGE


def amount(n: float) -> str:
    """18.9 M, 2.4 G, 17.6 T."""
    return f"{n / 1e12:.3g} T" if n >= 999.5e9 else formats.large(n)


@live.lab(
    height=3.9,
    example=lambda: {T: Bill(T * 1e-6, T * T * 2e-9) for T in LENGTHS},
    controls=lambda measured: {
        "T": live.Choice("length T", POWERS, POWERS[0]),
        "d_model": live.Choice("width d", WIDTHS, WIDTHS[-1]),
    },
    neutral="At 64 tokens of width 4,096 pairs cost next to nothing, and the curve of width 512 is not drawn.",
    telling={"T": 4096, "d_model": 512},
)
def bill_lab(figure: "plots.Figure", measured: dict[int, Bill]) -> live.Update:
    """Show what a block spends: on each position by itself, and on pairs; by count, and by the clock."""
    bars, curve = figure.subplots(1, 2, width_ratios=(1.05, 1))
    names = ("projections\n4 T d²", "feed-forward\n8 T d²", "pairs\n2 T² d")
    drawn = plots.Bars(bars, 3, height=0.6, color=[EACH, EACH, BETWEEN])
    bars.set_yticks(range(3), names)
    bars.invert_yaxis()
    bars.set(xlim=(0, 1.35), xticks=())
    bars.spines["bottom"].set_visible(False)
    bars.tick_params(axis="y", length=0)
    at = np.geomspace(POWERS[0], POWERS[-1], 60)
    (line,) = curve.plot(at, share_of_pairs(at, 512), color=BETWEEN)
    timed = [bill.pairs / (bill.pairs + bill.linear) for bill in measured.values()]
    (squares,) = curve.plot(list(measured), timed, "s", color=plots.INK, ms=6, zorder=1)
    says = curve.annotate(
        f"squares:\nthe clock,\nat d = {D}", (0.03, 0.97), xycoords="axes fraction", va="top", zorder=1
    )
    (dot,) = curve.plot([512], [0.5], "o", color=BETWEEN, ms=12, clip_on=False)
    (even,) = curve.plot([512, 512], [0, 0.5], ":", color=plots.GREY, lw=1.6)
    curve.set_xscale("log", base=2)
    curve.set(xlim=(POWERS[0], POWERS[-1]), ylim=(0, 1), xlabel="length T", ylabel="share spent on pairs")
    curve.set_xticks(POWERS[::3], [f"{n:,}" for n in POWERS[::3]])
    curve.set_yticks((0, 0.5, 1), ("0", "½", "all"))

    def update(T: int, d_model: int) -> str:
        each = costs.attention_cost(T, d_model, 1), costs.feed_forward_cost(T, d_model, 4 * d_model)
        pairs = each[0].parts["scores"] + each[0].parts["weights · values"]
        counts = (each[0].parts["projections"], each[1].multiply_adds, pairs)
        drawn.set([count / max(counts) for count in counts], [amount(count) for count in counts])
        share = share_of_pairs(T, d_model)
        line.set_ydata(share_of_pairs(at, d_model))
        dot.set_data([T], [share])
        reached = 6 * d_model <= T
        even.set_data([6 * d_model] * 2, [0, 0.5 * reached])
        bars.set_title(f"T = {T:,}, d = {d_model:,}: pairs cost {share:.0%}")
        curve.set_title(f"Half of all at T = 6d = {6 * d_model:,}" if reached else "Pairs are less than half of all")
        listed = ", ".join(
            f"{n} {formats.large(c)}" for n, c in zip(("projections", "feed-forward", "pairs"), counts, strict=True)
        )
        for artist in (squares, says):  # beside the curve of another width they would compare what can't be compared
            artist.set_visible(d_model == D)
        by_clock = formats.each([f"{T}:" for T in measured], timed, ".0%")
        return f"… Multiply-adds of a block: {listed}." + f" Measured, by length: {by_clock}." * (d_model == D)

    return update


# --- 2 · The online softmax, tile by tile -----------------------------------------------------------------------------

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
        left = ax.barh([0], [1], 0.55, color=colour)[0]
        added = ax.barh([0], [1], 0.55, left=[1], color=drawings.tint(colour, 0.4))[0]
        ax.set_yticks((0, 1), ("now", "before"))
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, end), ylim=(-0.6, 1.6), xlabel=f"{name} (pale: this tile's part)")
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


Step = Callable[[float, float, Array, Array, Array], tuple[float, float, Array]]


def attend_in_tiles(online_softmax: Step, Q: Array, K: Array, V: Array, tile: int = 64) -> Array:
    """Compute attention one query and one tile of keys at a time, by the exercise's function.

    Q: (T_q, d_k). K: (T_k, d_k). V: (T_k, d_v). Returns (T_q, d_v).
    """
    rows = []
    for q in Q / math.sqrt(Q.shape[-1]):
        largest, total, output = -np.inf, 0.0, cast("Array", np.zeros(V.shape[-1]))
        for start in range(0, len(K), tile):
            keys, values = K[start : start + tile], V[start : start + tile]
            largest, total, output = online_softmax(largest, total, output, keys @ q, values)
        rows.append(output / total)
    return np.stack(rows)


# --- 3 · A model that was trained to see all, and sees only some keys -------------------------------------------------

COLOURS = dict(zip(KEPT, (plots.ORANGE, plots.BLUE, plots.GREEN), strict=True))
LENGTH = 512  # of the mask that is drawn


@live.lab(
    height=4.1,
    neutral="Of the window's curves only what a window of up to 64 does is drawn, with no first token kept.",
    telling=[{"window": 128}, {"keep": 1}],
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


def window_attention(Q: Array, K: Array, V: Array, window: int, keep: int, tile: int = 64) -> Array:
    """Causal attention to the last `window` keys and the first `keep`, in tiles of queries: time grows with T.

    Q, K: (T, d_k). V: (T, d_v). Returns (T, d_v).
    """
    T = len(Q)
    outputs = []
    for start in range(0, T, tile):
        stop = min(start + tile, T)
        low = max(start - window + 1, 0)
        j = np.concatenate([np.arange(min(keep, low)), np.arange(low, stop)])  # the keys that some query here sees
        ago = np.arange(start, stop)[:, None] - j
        mask = (ago >= 0) & ((ago < window) | (j < keep))
        outputs.append(attention.scaled_dot_product_attention(Q[start:stop], K[j], V[j], mask)[0])
    return np.concatenate(outputs)


# --- 4 · Caches beside weights ----------------------------------------------------------------------------------------

CONTEXTS = tuple(1024 * 2**n for n in range(8))  # 1k … 128k
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@live.lab(
    height=3.7,
    neutral="With one text of 1,024 tokens every cache is far smaller than its model's weights.",
    telling={"context": 8192, "texts": 16},
    context=live.Choice("tokens of each text", CONTEXTS, CONTEXTS[0]),
    texts=live.Choice("texts at once", BATCHES, 1),
)
def cache_lab(figure: "plots.Figure") -> live.Update:
    """Show the caches of six models in units of their weights, by the length and the number of texts."""
    ax, y = figure.add_subplot(), np.arange(len(MODELS))
    ax.axvline(1, color=plots.INK, lw=1.8)
    stems = [ax.plot([1, 1], [n, n], lw=7, solid_capstyle="butt")[0] for n in range(len(MODELS))]
    words = [ax.text(1, n, "", va="center", ha="left") for n in range(len(MODELS))]
    ax.set_yticks(y, [f"{m.name}: {m.kept}" for m in MODELS])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xscale("log")
    ax.set(
        xlim=(2e-5, 3e4),
        xlabel="caches, against the weights (striped: not made for this length)",
    )
    ax.set_xticks((1e-4, 1e-2, 1, 100), ("1 / 10,000", "1 / 100", "as large", "100 times"))
    ax.minorticks_off()

    def update(context: int, texts: int) -> str:
        sizes = [texts * m.cache(context, 16, count) for m in MODELS]
        for n, (stem, word, size, model) in enumerate(zip(stems, words, sizes, MODELS, strict=True)):
            ratio = size / model.weights
            stem.set_data([1, ratio], [n, n])
            stem.set_color(plots.ORANGE if ratio > 1 else plots.BLUE)
            stem.set_linestyle("-" if context <= model.context else (0, (0.5, 0.35)))
            word.set_position((1.25 * max(ratio, 1), n))
            word.set_text(as_bytes(size))
        more = sum(size > m.weights for size, m in zip(sizes, MODELS, strict=True))
        s = "s" * (texts > 1)
        exceed = f"{more or 'no'} cache{'s exceed' if more > 1 else ' exceeds'} the weights"
        ax.set_title(f"{texts} text{s} of {context:,} tokens: {exceed}")
        listed = "; ".join(f"{m.name} ({m.kept}) {as_bytes(size)}" for m, size in zip(MODELS, sizes, strict=True))
        beyond = [m.name for m in MODELS if context > m.context]
        return f"… 16 bits a number: {listed}. Made for shorter texts: {', '.join(beyond) or 'none'}."

    return update


# --- 4 · Fewer bits a number ------------------------------------------------------------------------------------------

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
    controls=lambda rounding: {
        "kind": live.Choice("of", KINDS, "keys"),
        "bits": live.Choice("bits", BITS, 16),
        "sharing": live.Choice("a scale for", SHARING, SHARING[0]),
    },
    neutral="With 16 bits both ways are next to exact, and no curve is drawn for fewer bits.",
    telling={"bits": 3, "sharing": SHARING[1]},
)
def round_lab(figure: "plots.Figure", rounding: Rounding) -> live.Update:
    """Show real keys before and after they are rounded, and the stored perplexity of the model that reads them.

    Args:
        rounding: the learner's.
    """
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    images = []
    for ax in axes[:2]:
        image = ax.imshow(np.zeros((96, 64)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-8, vmax=8, aspect="auto")
        ax.set(xlabel="channel", xticks=(0, 31, 63), yticks=(0, 31, 63, 95))
        ax.set_xticks((0, 31, 63), ("1", "32", "64"))
        ax.set_yticks((0, 31, 63, 95), ("1", "32", "64", "96"))
        ax.spines[:].set_visible(False)
        images.append(image)
    axes[0].set_ylabel("token")
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

    def update(kind: str, bits: int, sharing: str) -> str:
        x = sample()[kind]
        few = shared_by(x, bits, sharing, rounding)
        images[0].set_data(x)
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
        axes[0].set_title(f"96 {kind} as they are")
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
MEMORIES = (1, 4, 16)  # GB
TEXTS_AT_ONCE = (1, 4, 16, 64)
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


@live.lab(
    height=3.4,
    neutral="Without any saving the choice does not fit; what each saving brings is seen only when it is chosen.",
    telling={"way": WAYS[1], "bits": 4},
    memory=live.Choice("memory (GB)", MEMORIES, 4),
    texts=live.Choice("texts at once", TEXTS_AT_ONCE, 64),
    way=live.Choice("a prompt with", WAYS, WAYS[0]),
    window=live.Choice("window (and the first)", WINDOW_CHOICES, "all"),
    bits=live.Choice("bits of the cache", CACHE_BITS, 16),
)
def choose_lab(figure: "plots.Figure") -> live.Update:
    """Show the bytes, the seconds and the loss of a choice of savings, for SmolLM2 and texts of 8,192 tokens."""
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    names = ("the model", "weights of pairs", "caches")
    bars = left.barh([0, 1, 2], [1, 1, 1], 0.55, color=[plots.GREY, plots.ORANGE, plots.BLUE])
    words = [left.text(1, n, "", va="center", bbox={"fc": "white", "ec": "none", "pad": 1}) for n in range(3)]
    (limit,) = left.plot([1, 1], [-0.5, 2.5], "--", color=plots.INK, lw=1.8)
    left.set_yticks(range(3), names)
    left.invert_yaxis()
    left.tick_params(axis="y", length=0)
    left.set(xlim=(0, 21), xlabel="GB (dashed: the memory)")
    (others,) = right.plot([1], [20], "o", color="#BBBBBB", ms=8)
    (dot,) = right.plot([1], [20], "o", color=plots.BLUE, ms=12)
    right.set_xscale("log")
    right.set(xlabel="bytes of one text's cache", ylabel="perplexity", xlim=(2e5, 4e8), ylim=(18, 46))
    right.set_xticks((1e6, 1e7, 1e8), ("1 MB", "10 MB", "100 MB"))
    right.minorticks_off()

    def update(memory: int, texts: int, way: str, window: str, bits: int) -> str:
        found = choice(texts, way, window, bits)
        narrower = WINDOW_CHOICES[: WINDOW_CHOICES.index(window) + 1]
        shown = [(w, b) for w in narrower for b in CACHE_BITS if b >= bits]
        sizes = (WEIGHTS, found.weights_of_pairs, found.caches)
        for bar, word, n, size in zip(bars, words, range(3), sizes, strict=True):
            bar.set_width(min(size / 1e9, 20))
            end = min(size / 1e9, 16)
            word.set_position(((memory if end < memory < end + 4 else end) + 0.3, n))  # not across the dashed line
            word.set_text(as_bytes(size))
        limit.set_xdata([memory, memory])
        points = [choice(1, way, *one) for one in shown]
        others.set_data([p.caches for p in points], [p.perplexity for p in points])
        dot.set_data([found.caches / texts], [found.perplexity])
        over = found.total - 1e9 * memory
        fits = f"fits into {memory} GB" if over <= 0 else f"{as_bytes(over)} too much for {memory} GB"
        left.set_title(f"{as_bytes(found.total)}: {fits}")
        right.set_title(f"Perplexity {three_figures(found.perplexity)}; {as_time(found.seconds)} a token")
        listed = ", ".join(f"{name} {as_bytes(size)}" for name, size in zip(names, sizes, strict=True))
        return (
            f"… Bytes: {listed}. {texts} texts of {TOKENS:,} tokens, {way}, window {window}, {bits} bits. One new "
            f"token in each text, read at {READ / 1e9:.0f} GB a second. Perplexity: stored, on texts of 500 tokens."
        )

    return update


# --- 7 · Squeeze the past into one matrix -----------------------------------------------------------------------------

RATES = (0.1, 0.2, 0.3, 0.5, 1.0)
RULES = {"off": 0.0} | {f"rate {rate:g}": rate for rate in RATES}


@live.lab(
    height=4.3,
    neutral="With 4 pairs every rule recalls nearly all: the question is of 64.",
    telling=[{"pairs": 64}, {"pairs": 64, "feature_map": MAPS[1]}],
    pairs=live.Choice("pairs written", PAIRS, PAIRS[0]),
    feature_map=live.Choice("feature map", MAPS, "none"),
    writes=live.Choice("delta rule", tuple(RULES), "off"),
    decay=live.Slider("decay γ", 0.8, 1.0, 1.0, 0.02),
)
def memory_lab(figure: "plots.Figure") -> live.Update:
    """Show how alike the keys are, and how much a matrix tells of the old, the new and the corrected pairs."""
    left, right = figure.subplots(1, 2, width_ratios=(0.75, 1))
    image = left.imshow(np.zeros((16, 16)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1)
    left.set(xlabel="key", ylabel="key")
    left.set_xticks((0, 7, 15), ("1", "8", "16"))
    left.set_yticks((0, 7, 15), ("1", "8", "16"))
    left.spines[:].set_visible(False)
    figure.colorbar(image, ax=left, label="product k · k′", shrink=0.9)
    names = (f"first {ENDS}\nwritten", f"last {ENDS}\nwritten", "all", "keys written\ntwice: newest")
    bars = right.bar(range(4), [1] * 4, 0.62, color=[plots.BLUE] * 3 + [plots.GREEN])
    texts = [right.text(n, 1, "", ha="center", va="bottom") for n in range(4)]
    right.axhline(1 / VALUES, color=plots.GREY, ls=":", lw=1.6)
    right.set(ylim=(0, 1.1), ylabel="right answers")
    right.set_xticks(range(4), names)
    right.set_yticks((0, 0.5, 1), ("0", "50 %", "100 %"))

    def update(pairs: int, feature_map: str, writes: str, decay: float) -> str:
        rate = RULES[writes]
        overwrite = rate > 0
        found = recall(pairs, decay, overwrite, feature_map, rate=rate or 1.0)
        image.set_data(found.alike)
        shares = found.oldest, found.newest, found.everything, found.rewritten
        for n, (bar, text, share) in enumerate(zip(bars, texts, shares, strict=True)):
            bar.set_height(share)
            text.set_position((n, share))
            text.set_text(f"{share:.0%}")
        rule = f"overwrites at rate {rate:g}" if overwrite else "adds"
        if decay < 1:
            rule = f"{rule} and fades" if overwrite else "fades"
        apart = float(found.alike[np.triu_indices(16, 1)].mean())
        mapped = "No feature map" if feature_map == MAPS[0] else f"Feature map {feature_map}"
        left.set_title(f"{mapped}:\noverlap of two keys {minus(f'{apart:.2f}')}")
        right.set_title(f"{pairs} pairs: {found.everything:.0%}; corrected: {found.rewritten:.0%}")
        return (
            f"… Of the oldest {ENDS} pairs {found.oldest:.0%} are right, of the newest {ENDS} {found.newest:.0%}; of "
            f"keys written twice the newest value. A memory of {D_K} × {VALUES} numbers that {rule}, decay {decay:g}; "
            f"{RUNS} runs."
        )

    return update
