"""Section 4: keys and values in a few bits; which numbers share a scale decides what that costs."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import three_figures
from lesson_utils.lessons.efficient_attention.reach import perplexity
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUP = 32  # tokens whose keys share a scale in each channel
Rounding = Callable[[Array, int, int], Any]  # the exercise's: numbers, bits, axis -> rounded numbers


def rounded(x: Array, bits: SupportsIndex, axis: int) -> Array:
    """Round x to 2^bits levels from the smallest to the largest number along `axis`; each such row has its own."""
    low = x.min(axis=axis, keepdims=True)
    step = (x.max(axis=axis, keepdims=True) - low) / (2 ** int(bits) - 1)
    step[step == 0] = 1  # all are alike: there is nothing to round
    return low + np.round((x - low) / step) * step


def by_channel(x: Array, bits: SupportsIndex, group: int = GROUP) -> Array:
    """Round each channel of x, (..., T, d), with a scale of its own for each `group` tokens; an unfinished group stays.

    Source: Liu et al. (2024), "KIVI", section 3: the newest keys wait in full precision until their group is full.
    """
    full = x.shape[-2] // group * group
    done = x[..., :full, :].reshape(*x.shape[:-2], -1, group, x.shape[-1])
    return np.concatenate([rounded(done, bits, -2).reshape(x[..., :full, :].shape), x[..., full:, :]], axis=-2)


# --- The figure -----------------------------------------------------------------------------------------------------

SHARING = ("each vector", "each channel")
KINDS = ("keys", "values")
BITS = (2, 3, 4, 16)
STORED = {SHARING[0]: "vector", SHARING[1]: "channel"}  # parts of real.json


@cache
def sample() -> dict[str, Array]:
    """Return 96 keys and values of SmolLM2, (96, 64) each: layer 11, head 0, text "story", behind the first token."""
    with np.load(Path(__file__).parent / "keys.npz") as stored:
        return {kind: stored[kind].astype(np.float32) for kind in KINDS}


def shared_by(x: Array, bits: int, sharing: str, rounding: Rounding = rounded) -> Array:
    """Round x, (T, d), by the learner's function: row by row, or column by column in groups of 32 rows."""
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
)
def round_lab(figure: "Figure", rounding: Rounding) -> live.Update:
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
            name: [(BITS.index(b), stored(name, b)) for b in BITS if b >= bits]
            for name in SHARING
            if name == sharing or sharing == SHARING[1]
        }
        for name, line in lines.items():
            line.set_data(*np.array(curves.get(name, [])).reshape(-1, 2).T)
        here = stored(sharing, bits)
        dot.set_data([BITS.index(bits)], [here])
        axes[0].set_title(f"96 {kind} as they are")
        axes[1].set_title(f"{bits} bits: {100 * error(x, few):.2g} % off")
        right.set_title(f"Perplexity {three_figures(here)}")
        return (
            f"96 {kind} of SmolLM2, {bits} bits a number, a scale for {sharing}: the rounded ones are off by "
            f"{100 * error(x, few):.2g} % (root mean square). Perplexity of the model with all keys so rounded "
            f"(channels in groups of 32 tokens) and values by vector, stored: "
            f"{three_figures(here)}; at 16 bits {three_figures(full)}."
        )

    return update


def stored(sharing: str, bits: int) -> float:
    """Look up the perplexity with keys rounded so, and values rounded by vector."""
    return perplexity("full", "all") if bits == 16 else perplexity(STORED[sharing], bits)
