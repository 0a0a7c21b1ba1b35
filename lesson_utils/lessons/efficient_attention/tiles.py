"""Section 2: the online softmax, tile by tile."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import minus
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

    def __init__(self, figure: "Figure") -> None:
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

    def _sum(self, ax: "Axes", name: str, colour: str, end: float) -> list[Any]:
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
            return (
                f"Nothing of {KEYS} keys has been seen yet; both sums are 0; tiles of {size}"
                f"{', forgetting to rescale' * forget}."
            )
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
        rescaled = f"should be multiplied by {factor}, which is forgotten" if forget else f"multiplied by {factor}"
        return (
            f"The output is {verdict} after {seen} of {KEYS} keys, in tiles of {size}. Largest score so far {top}; the "
            f"old sums {rescaled}; total {now.total:.2f}, output {now.output:.2f}."
        )

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
    step=live.Slider("tiles seen", 0, KEYS, 0),
    forget=live.Switch("forget to rescale", False),
    size=live.Choice("tile size", SIZES, 4),
)
def tiles_lab(figure: "Figure") -> live.Update:
    """Show softmax over a row that is seen a tile at a time: when the maximum jumps, the old sums shrink."""
    return Tiles(figure).update


# --- Attention by somebody's step -----------------------------------------------------------------------------------

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
