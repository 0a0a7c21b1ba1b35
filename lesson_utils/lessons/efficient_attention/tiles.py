"""Section 2: the online softmax, tile by tile."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import minus
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
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
    """After 0, 1, 2, … tiles."""
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
    scores, values = row()
    weights = np.exp(scores - scores.max())
    return float(weights @ values / weights.sum())


@live.lab(
    height=4.8,
    step=live.Slider("tiles seen", 0, KEYS, 3),
    forget=live.Switch("forget to rescale", False),
    size=live.Choice("tile size", SIZES, 4),
)
def tiles_lab(figure: "Figure") -> live.Update:
    """Softmax over a row that is seen a tile at a time: when the maximum jumps, the old sums shrink."""
    grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1), height_ratios=(1.25, 1))
    bars_ax, error_ax = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    total_ax, output_ax = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    scores, _ = row()
    at = np.arange(KEYS)
    low = float(scores.min()) - 0.3
    bars = bars_ax.bar(at, scores - low, 0.8, bottom=low)
    (running,) = bars_ax.plot(at, np.full(KEYS, scores.max()), color=plots.ORANGE, drawstyle="steps-mid")
    bars_ax.set(xlim=(-0.6, KEYS - 0.4), ylim=(low, scores.max() + 0.5), ylabel="score", xticks=())
    (error,) = error_ax.plot(at, at * 0.0, color=plots.PURPLE)
    (dot,) = error_ax.plot([0], [0], "o", color=plots.PURPLE, ms=9, clip_on=False)
    error_ax.set(xlim=(-0.6, KEYS - 0.4), ylim=(0, 0.45), xlabel="keys seen", ylabel="error of the output")
    error_ax.set_xticks(np.arange(4, KEYS + 1, 4) - 1, [str(n) for n in range(4, KEYS + 1, 4)])

    drawn = {}
    for ax, what, colour in ((total_ax, "total", plots.BLUE), (output_ax, "output", plots.VALUE)):
        old = ax.barh([1], [1], 0.55, fc="none", ec=colour, ls="--", lw=1.6)[0]
        kept = ax.barh([0], [1], 0.55, color=colour)[0]
        new = ax.barh([0], [1], 0.55, left=[1], color=drawings.tint(colour, 0.4))[0]
        ax.set_yticks((0, 1), ("now", "before"))
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, 8.5 if what == "total" else 5.5), ylim=(-0.6, 1.6), xlabel=f"{what} (pale: this tile's part)")
        drawn[what] = old, kept, new

    def update(step: int, forget: bool, size: int) -> str:
        told = moments(size, forget)
        step = min(step, len(told) - 1)
        now, seen = told[step], min(step * size, KEYS)
        first = max(seen - size, 0)
        for n, bar in enumerate(bars):
            current, past = first <= n < seen, n < first
            bar.set_color(plots.BLUE if current else drawings.tint(plots.BLUE, 0.45) if past else "#DDDDDD")
        heights = np.full(KEYS, np.nan)
        for n in range(step):
            heights[n * size : (n + 1) * size] = told[n + 1].largest
        running.set_data(at[:seen], heights[:seen])
        wrong = [abs(m.output / m.total - exact()) for m in told[1:]]
        ends = [min((n + 1) * size, KEYS) - 1 for n in range(len(wrong))]
        error.set_data(ends[:step], wrong[:step])
        dot.set_data(ends[step - 1 : step] if step else [], wrong[step - 1 : step] if step else [])
        kept = 1.0 if forget else now.shrink
        sums = (("total", now.old_total, now.total), ("output", now.old_output, now.output))
        for what, before, after in sums:
            old, part, new = drawn[what]
            old.set_width(before)
            part.set_width(before * kept)
            new.set_x(before * kept)
            new.set_width(after - before * kept)
        jumped = step > 1 and now.shrink < 1
        factor = f"{now.shrink:.2g}"
        if step == 0:
            bars_ax.set_title("Nothing is seen yet")
            total_ax.set_title("Both sums are 0")
            output_ax.set_title("")
            error_ax.set_title(f"The whole row gives {exact():.3f}")
            return (
                f"Nothing of {KEYS} keys has been seen yet; both sums are 0; tiles of {size}{', forgetting' * forget}."
            )
        top = minus(f"{now.largest:.1f}")
        bars_ax.set_title(f"{seen} of {KEYS} keys: maximum {top}" + (", it jumped" if jumped else ""))
        if jumped and forget:
            total_ax.set_title(f"Should be × {factor}: forgotten")
        else:
            stays = "This is the first tile" if step == 1 else "The old sum stays"
            total_ax.set_title(f"The old sum shrinks: × {factor}" if jumped else stays)
        output_ax.set_title(f"output / total = {now.output / now.total:.3f}")
        verdict = f"off by {wrong[step - 1]:.3f}" if wrong[step - 1] > 5e-4 else "exact"
        error_ax.set_title(f"{verdict.capitalize()}; the whole row gives {exact():.3f}")
        rescaled = f"should be multiplied by {factor}, which is forgotten" if forget else f"multiplied by {factor}"
        return (
            f"The output is {verdict} after {seen} of {KEYS} keys, in tiles of {size}. Largest score so far {top}; the "
            f"old sums {rescaled}; total {now.total:.2f}, output {now.output:.2f}."
        )

    return update
