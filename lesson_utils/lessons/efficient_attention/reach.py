"""Section 3: a model that was trained to see all, and sees only some keys."""

import json
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import three_figures
from lesson_utils.maths import attention
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL_TEXTS = "all three"


@cache
def real() -> dict[str, Any]:
    """Perplexities of SmolLM2-135M-Instruct on three texts, measured once and stored."""
    return dict(json.loads((Path(__file__).parent / "real.json").read_text(encoding="utf-8")))


def perplexity(part: str, key: object, text: str = ALL_TEXTS) -> float:
    """Look up a stored perplexity of one text, or the geometric mean of all: "window" "64 1", "best" 16, "bits" 8, …"""
    stored = real()[part][str(key)]
    if text != ALL_TEXTS:
        return float(stored[text])
    return math.exp(sum(math.log(p) for p in stored.values()) / len(stored))


# --- A window on a trained model ------------------------------------------------------------------------------------

WINDOWS, KEPT = (16, 32, 64, 128, 256), (0, 1, 4)  # stored are 2 first tokens, too: they do what 1 and 4 do
TEXTS = (ALL_TEXTS, "story", "report", "manual")
SHOWN = ("64 0", "128 0", "64 1")  # windows of the table
COLOURS = dict(zip(KEPT, (plots.ORANGE, plots.BLUE, plots.GREEN), strict=True))
LENGTH = 512  # of the mask that is drawn


@live.lab(
    height=4.1,
    neutral="Of the window's curves only what a window of up to 64 does is drawn, with no first token kept.",
    window=live.Choice("window", WINDOWS, 64),
    keep=live.Choice("first tokens kept", KEPT, 0),
    text=live.Choice("text", TEXTS, ALL_TEXTS),
)
def window_lab(figure: "Figure") -> live.Update:
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
        return (
            f"With a window of {window} and {keep} first tokens kept the perplexity is {three_figures(here)}, seeing "
            f"all {three_figures(all_seen)}; SmolLM2-135M, text: {text}, stored. By window, {table}."
        )

    return update


def window_table() -> str:
    """List SmolLM2's perplexity on each text with all tokens, the last 64 or 128, or the last 64 and the first."""
    lines = [f"perplexity{'all':>12}{'last 64':>10}{'last 128':>11}{'last 64 and the first':>24}"]
    for text in TEXTS:
        full, *others = (perplexity(*key, text) for key in (("full", "all"), *(("window", w) for w in SHOWN)))
        lines.append(
            f"{text:10}{full:12.1f}" + "".join(f"{p:{n}.1f}" for p, n in zip(others, (10, 11, 24), strict=True))
        )
    return "\n".join(lines)


def sink_table() -> str:
    """List SmolLM2's perplexity with the last 64 tokens and something in place of the first (stored)."""
    rows = (
        ("the last 64, and nothing else", perplexity("window", "64 0")),
        ("  and token 0", perplexity("window", "64 1")),
        ("  and token 1 in its place", perplexity("other", 1)),
        ("  and token 20 in its place", perplexity("other", 20)),
        ("  and the score of token 0, not its value", perplexity("sink", "score")),
        ("  and one number for each head as a score", perplexity("sink", "constant")),
        ("all tokens", perplexity("full", "all")),
    )
    return "\n".join(f"{name:44}{three_figures(p):>8}" for name, p in rows)


@plots.still(9.0, 3.4)
def best_keys(figure: "Figure") -> str:
    """Perplexity when each query keeps its k largest weights, beside a window of k tokens (stored)."""
    best = sorted(int(k) for k in real()["best"])
    kept, window = [perplexity("best", k) for k in best], [perplexity("window", f"{k} 1") for k in WINDOWS]
    full = perplexity("full", "all")
    ax = figure.add_subplot()
    ax.plot(best, kept, "o-", color=plots.GREEN)
    ax.plot(np.array(WINDOWS) + 1, window, "o-", color=plots.BLUE)
    ax.axhline(full, color=plots.INK, ls="--", lw=1.6)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set(xlabel="keys that a query may use", ylabel="perplexity", ylim=(0.7 * full, 1.3 * max(kept)))
    ticks = [*best, 128, 256]
    ax.set_xticks(ticks, [str(k) for k in ticks])
    ax.set_yticks((20, 50, 200, 1000, 5000), ("20", "50", "200", "1,000", "5,000"))
    ax.minorticks_off()
    ax.annotate(
        "the best k, chosen by score", (best[1], kept[1]), (10, 4), textcoords="offset points", color=plots.GREEN
    )
    ax.annotate(
        "the last and the first", (WINDOWS[2], window[2]), (6, 10), textcoords="offset points", color=plots.BLUE
    )
    ax.annotate("all keys", (1, full), (0, 5), textcoords="offset points")
    fixed = perplexity("hitters", "32 32")
    ax.plot([64], [fixed], "D", color=plots.ORANGE, ms=9)
    ax.annotate(
        "the last 32, and the 32 that got most so far",
        (64, fixed),
        (-30, 70),
        textcoords="offset points",
        color=plots.ORANGE,
        arrowprops={"arrowstyle": "-", "color": plots.ORANGE},
    )
    few, wide = 16, 2  # this many of the best keys; this window of WINDOWS
    chosen, recent = (three_figures(p) for p in (perplexity("best", few), window[wide]))
    ax.set_title(f"{few} well-chosen keys ({chosen}) beat a window of {WINDOWS[wide]} ({recent})")
    listed = ", ".join(f"{k}: {three_figures(p)}" for k, p in zip(best, kept, strict=True))
    return (
        f"{few} keys chosen by score give perplexity {chosen}, a window of {WINDOWS[wide]} and the first token "
        f"{recent}, the last 32 with the 32 keys that got most weight so far {three_figures(fixed)}, all keys "
        f"{three_figures(full)}. Best keys, by number: {listed}. Stored results of SmolLM2-135M, "
        "three texts."
    )


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
