"""Keys on a circle: a narrow head can hardly single out one of them."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import short
from lesson_utils.lessons.multi_head.experiment import LENGTH
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WANTED = 0.9  # the weight of the right key


def spread_keys(d_k: int, keys: int = LENGTH) -> Array:
    """Spread unit vectors, (keys, d_k), by pushing them apart, the near ones hardest.

    In two dimensions they end on a circle at equal distances; in four, as the corners of the 24-cell. In both nothing
    better is known, and bounds leave room for 0 and 2 %.
    """
    x = np.random.default_rng(0).normal(size=(keys, d_k))
    for _ in range(400):
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        push = np.exp(10 * (x @ x.T - 1)) * (1 - np.eye(keys))
        x -= 0.3 * push @ x / push.sum(axis=1, keepdims=True)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def weights_of_the_right(keys: Array, score: float) -> Array:
    """Return the weight, (keys,), of the key that a query points at and scores so high with."""
    return np.diagonal(ops.softmax(score * keys @ keys.T))


def score_needed(d_k: int, weight: float = WANTED) -> float:
    """Return how large q · k / √d_k must be so that softmax gives the right one of 24 keys that weight.

    All keys are equally long, and the query points at the right one.
    """
    keys = spread_keys(d_k)
    low, high = 0.0, 1000.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if weights_of_the_right(keys, middle).min() < weight else (low, middle)
    return high


@live.lab(
    height=4.4,
    neutral="At the lowest score all keys get nearly the same weight, and the curves have not begun.",
    score=live.LogSlider("score", 1, 100, 1, steps_per_decade=20),
)
def circle_lab(figure: "Figure") -> live.Update:
    """24 keys on a circle, a query that points at one: which weights they get, as the score grows."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    angles = 2 * np.pi * np.arange(LENGTH) / LENGTH
    x, y = np.sin(angles), np.cos(angles)  # from the top
    left.set(xlim=(-1.3, 1.3), ylim=(-1.2, 1.4), aspect="equal", xticks=(), yticks=())
    left.spines[:].set_visible(False)
    left.plot(x, y, "o", ms=6, mfc="white", mec=plots.KEY, mew=1.2)
    look = {"arrowstyle": "-|>", "color": plots.QUERY, "lw": 2.8, "mutation_scale": 18}
    left.annotate("", (0, 0.72), (0, 0), arrowprops=look)
    left.text(0.07, 0.25, "query q", color=plots.QUERY, weight="bold")
    left.text(
        0, -0.4, f"{LENGTH} keys k,\n{360 // LENGTH}° apart", color=plots.KEY, weight="bold", ha="center", va="center"
    )
    dots = left.scatter(x, y, s=np.full(LENGTH, 1.0), color=plots.KEY, lw=0, zorder=3)

    scores = np.logspace(0, 2, 81)
    curves = {}
    for d_k, style, place in ((2, "-", (24, 0.43)), (4, "--", (8.7, 0.74)), (8, ":", (2.2, 0.68))):
        keys = spread_keys(d_k)
        curve = np.array([weights_of_the_right(keys, score).min() for score in scores])
        (line,) = right.plot([], [], style, color=plots.KEY if d_k == 2 else plots.GREY)
        curves[d_k] = curve, line, right.text(*place, f"$d_k$ = {d_k}", size=13)
    right.axhline(WANTED, color=plots.GREY, lw=1)
    needed = {d_k: score_needed(d_k, WANTED) for d_k in (8, 4, 2)}
    right.set_xscale("log")
    right.minorticks_off()
    right.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    right.set(xlim=(1, 100), ylim=(0, 1.05), xlabel="score, q · k / √$d_k$", ylabel="weight of the right key")
    (mark,) = right.plot([10], [0.5], "o", color=plots.QUERY, ms=12, clip_on=False)

    def update(score: float) -> str:
        weights = ops.softmax(score * np.cos(angles))
        dots.set_sizes(2600 * weights)
        mark.set_data([score], [weights[0]])
        until = int(np.searchsorted(scores, 1.001 * score))  # the curves end at this score
        for curve, line, label in curves.values():
            line.set_data(scores[:until], curve[:until])
            label.set_visible(label.get_position()[0] <= score)
        finding = f"Score {short(score)}: the right key gets {weights[0]:.2f},\neach neighbour {weights[1]:.2f}"
        left.set_title(finding)
        reached = ", ".join(f"{short(least)} in {d_k}" for d_k, least in needed.items() if least <= score)
        other = f"A weight of {WANTED} takes a score of\n{reached} dimensions"
        right.set_title(other if reached else f"Up to this score,\nno right key gets {WANTED}")
        told = f"{finding}. {LENGTH} keys on a circle, {360 // LENGTH}° apart. {right.get_title(loc='left')}."
        return told.replace("\n", " ")

    return update
