"""Rotary positions: two hands that turn together; and what four kinds of positions do to the scores."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.maths import positions
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- Two hands that turn together -----------------------------------------------------------------------------------

QUERY_ANGLE, KEY_ANGLE, RATE = 20.0, 65.0, 9.0  # degrees: of q and k at position 0, and what one position adds


@live.lab(
    height=4.1,
    neutral="It shows one position; what changes on the way to the next takes a move.",
    position=live.Slider("query at position m", 40, 100, 50),
    distance=live.Slider("key stands back by", 0, 40, 2),
)
def rotary_lab(figure: "Figure") -> live.Update:
    """Show a query and a key as hands in one plane; their angle depends on the distance of their positions alone."""
    plane, chart = figure.subplots(1, 2, width_ratios=(1, 1.25))
    turn = np.linspace(0, 2 * np.pi, 120)
    plane.plot(np.cos(turn), np.sin(turn), color="#BBBBBB", lw=1, zorder=1)
    plane.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xticks=(), yticks=())
    plane.spines[:].set_visible(False)
    drawn = {}
    for name, angle, colour in (("q", QUERY_ANGLE, plots.QUERY), ("k", KEY_ANGLE, plots.KEY)):
        x, y = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        plane.plot([0, x], [0, y], ":", color=colour, lw=1.6, zorder=1)
        (hand,) = plane.plot([], [], color=colour, lw=4, solid_capstyle="round")
        label = plane.text(0, 0, name, color=colour, weight="bold", size=14, ha="center", va="center")
        drawn[name] = hand, label
    (arc,) = plane.plot([], [], color=plots.PURPLE, lw=2.4)
    at = np.linspace(0, 40, 161)
    chart.plot(at, np.cos(np.radians(QUERY_ANGLE - KEY_ANGLE + RATE * at)), color=plots.INK)
    (dot,) = chart.plot([3], [0], "o", color=plots.PURPLE, ms=12, clip_on=False)
    chart.axhline(0, color=plots.GREY, lw=1, ls=":")
    chart.set(xlim=(0, 40), ylim=(-1.1, 1.1), xlabel="distance m − n", ylabel="q · k after turning")

    def update(position: int, distance: int) -> str:
        q, k = QUERY_ANGLE + RATE * position, KEY_ANGLE + RATE * (position - distance)
        for (hand, label), angle in zip(drawn.values(), np.radians((q, k)), strict=True):
            x, y = np.cos(angle), np.sin(angle)
            hand.set_data([0, x], [0, y])
            label.set_position((1.18 * x, 1.18 * y))
        between = np.radians(np.linspace(k, q, 60))
        arc.set_data(0.5 * np.cos(between), 0.5 * np.sin(between))
        score = np.cos(np.radians(q - k))
        dot.set_data([distance], [score])
        number, angle = formats.minus(f"{score:z.2f}"), formats.degrees((q - k + 180) % 360 - 180)
        plane.set_title(f"m = {position}, n = {position - distance}: the angle is {angle}")
        chart.set_title(f"q · k = {number} at distance {distance}")
        return (
            f"q · k = {number} at distance {distance}, with the query at position {position} and the key at "
            f"{position - distance}. Each is turned by {RATE:g}° a position; the angle between them is {angle}."
        )

    return update


# --- The score of a whole query -------------------------------------------------------------------------------------


@plots.still(9.2, 4.4)
def score_by_distance(
    figure: "Figure", rotate: Callable[[Array, Array], Array], d_k: int = 8, distances: int = 64, best: int = 5
) -> str:
    """Draw a query's score against distance, the part of each pair and their sum; query and key agree `best` apart.

    Args:
        rotate: `rotate(x, positions)`, the learner's.
    """
    key: Array = np.ones((1, d_k))
    query = rotate(key, np.array([-float(best)]))
    at = np.arange(distances, dtype=float)  # the key stands at position 0
    parts = rotate(np.repeat(query, distances, axis=0), at) * rotate(key, np.zeros(1))  # (distances, d_k)
    pairs = parts.reshape(distances, d_k // 2, 2).sum(axis=-1)
    score = pairs.sum(axis=1)
    peaks = [n for n in range(1, distances - 1) if score[n] > max(score[n - 1], score[n + 1])]
    steps = " or ".join(str(n) for n in sorted(set(np.diff(peaks))))
    listed = ", ".join(map(str, peaks))
    finding = f"The score is highest {int(score.argmax())} apart, and peaks again every {steps} positions"
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.1))
    waves = positions.wavelengths(d_k)
    looks = zip((plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE), ("-", "--", ":", "-."), strict=True)
    clauses = []
    for i, (colour, line) in enumerate(looks):
        upper.plot(at, pairs[:, i], line, color=colour, lw=1.8)
        clauses.append(f"pair {i}: one turn in {formats.three_figures(waves[i])} positions")
        upper.text(1.01, 0.92 - 0.28 * i, clauses[-1], color=colour, transform=upper.transAxes, va="center", size=10)
    lower.plot(at, score, color=plots.INK)
    lower.plot(peaks, score[peaks], "o", color=plots.INK, ms=6)
    lower.text(1.01, 0.5, f"sum: peaks at\n{listed}", transform=lower.transAxes, va="center", size=10)
    upper.set(title=finding, ylabel="part of a pair")
    lower.set(xlabel="distance m − n", ylabel="score, their sum", xlim=(0, distances - 1))
    for ax in (upper, lower):
        ax.axhline(0, color=plots.GREY, lw=1, ls=":")
    return (
        f"{finding}: at {listed}. Above, the part of each of the {d_k // 2} pairs, {'; '.join(clauses)}. "
        "Below, their sum, which is the score of a query and a key by their distance."
    )


# --- What positions do to the scores --------------------------------------------------------------------------------


def diagonal_spread(S: Array) -> float:
    """Return how much scores with equal offset differ at most; 0 if a score depends on the offset only."""
    return float(max(np.ptp(np.diagonal(S, n)) for n in range(1 - len(S), len(S))))


@plots.still(9.6, 3.0)
def score_maps(figure: "Figure", **scores: Array) -> str:
    """Draw what positions do to the scores: maps side by side, each with what its diagonals say; NaN where hidden."""
    clauses = []
    axes = figure.subplots(1, len(scores))
    for n, (ax, (name, S)) in enumerate(zip(axes, scores.items(), strict=True)):
        seen = np.isfinite(S)
        spread = diagonal_spread(np.where(seen, S, 0) if seen.all() else np.where(seen, S, np.tril(S.T, -1).T))
        verdict = "no positions" if not S[seen].any() else "offset only" if spread < 1e-9 else "place matters"
        top = float(np.abs(S[seen]).max()) or 1.0
        image = ax.imshow(S, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-top, vmax=top)
        ticks = range(0, len(S), 8)
        ax.set(xlabel="key at", ylabel="query at" if n == 0 else "", title=f"{name}:\n{verdict}")
        ax.set_xticks(ticks, [str(i) for i in ticks])
        ax.set_yticks(ticks, [str(i) for i in ticks])
        ax.spines[:].set_visible(False)
        clauses.append(f"{name}: scores with equal offset differ by up to {spread:.2g}, {verdict}")
    bar = figure.colorbar(image, ax=axes, label="score", ticks=(-top, 0, top), shrink=0.8)
    bar.ax.set_yticklabels(["lowest", "0", "highest"])
    return f"Shows scores by position of query and key. {'; '.join(clauses)}."
