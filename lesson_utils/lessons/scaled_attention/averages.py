"""Sections 1 and 2: one query's weighted average in the plane, and who attends to whom."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import drawings, plots
from lesson_utils.classroom.formats import minus
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.still(9.0, 3.9)
def weighted_average(figure: "Figure", words: Sequence[str], X: Array, A: Array, query: int) -> str:
    """Draw all weights as a heat map with one row lit, and that row as lines from the query to its output."""
    from matplotlib.patches import Polygon, Rectangle

    plane, table = figure.subplots(1, 2, width_ratios=(1.15, 1))
    y = A[query] @ X
    plane.add_patch(Polygon(_hull(X), fc=drawings.tint(plots.VALUE, 0.1), ec="none", zorder=0))
    threads = drawings.Threads(plane, X[query], X, plots.BLUE, widest=18)
    threads.set(np.where(np.arange(len(words)) == query, 0, A[query]))
    plane.plot(*X.T, "o", color=plots.INK, ms=8, zorder=3)
    for word, (x0, x1), weight in zip(words, X, A[query], strict=True):
        offset = (6, -16) if word == words[query] else (8, 6)
        plane.annotate(f"{word} {weight:.2f}", (x0, x1), offset, textcoords="offset points", zorder=5)
    plane.plot(*y, "D", color=plots.VALUE, ms=12, zorder=4)
    plane.annotate("output", y, (-10, 8), textcoords="offset points", ha="right", color=plots.VALUE, weight="bold")
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + np.array([0.75, 0.45])
    plane.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="first entry", ylabel="second entry")
    plane.set_title(f"'{words[query]}' takes {A[query].max():.2f} from '{words[A[query].argmax()]}'")
    on_itself = int((A.argmax(axis=-1) == np.arange(len(words))).sum())
    plots.draw_heatmap(table, A, words, words, f"{on_itself} of {len(words)} prefer themselves", "from", "to")
    table.add_patch(Rectangle((-0.5, query - 0.5), len(words), 1, fill=False, ec=plots.INK, lw=2.6, zorder=5))
    shares = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, A[query], strict=True))
    return (
        f"'{words[query]}' takes most from '{words[A[query].argmax()]}'. Left, {len(words)} vectors in a plane, with "
        f"lines from '{words[query]}' as thick as its weights: {shares}. Its output, ({y[0]:.2f}, {y[1]:.2f}), lies "
        f"among the vectors. Right, all weights: {on_itself} of {len(words)} words give themselves the largest."
    )


def _hull(points: Array) -> Array:
    """Return the corners of the convex hull, in order, (corners, 2): Andrew's monotone chain."""

    def half(way: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        chain: list[tuple[float, ...]] = []
        for x, y in way:
            while len(chain) > 1:
                (a, b), (c, d) = chain[-2:]
                if (c - a) * (y - b) > (d - b) * (x - a):  # a turn to the left
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    way = sorted({tuple(point) for point in points.tolist()})
    return np.array(half(way) + half(way[::-1]) or way)


@plots.still(9.0, 3.6)
def three_scores(figure: "Figure", words: Sequence[str], pair: tuple[int, int], scores: dict[str, ArrayLike]) -> str:
    """Draw score matrices side by side; the cells (i, j) and (j, i) of a pair are outlined and the others faded."""
    from matplotlib.patches import Rectangle

    i, j = pair
    alt = f"{len(scores)} heat maps of scores between {len(words)} words, two cells of each outlined."
    matrices = {name: np.asarray(S, float) for name, S in scores.items()}
    top = max(np.abs(S[i, j]) for S in matrices.values()) * 1.6
    for ax, (name, S) in zip(figure.subplots(1, len(matrices)), matrices.items(), strict=True):
        symmetric = np.abs(S - S.T).max() < 1e-12
        verdict = "is symmetric" if symmetric else "is not"
        chosen = np.zeros(S.shape, bool)
        chosen[i, j] = chosen[j, i] = True
        plots.draw_heatmap(
            ax, np.where(chosen, S, 0), words, words, f"{name} {verdict}", "from", "to", False, True, top
        )
        for row, column in np.ndindex(*S.shape):
            big = chosen[row, column]
            number = minus(f"{S[row, column]:z.1f}")
            font = {"weight": "bold", "color": "black"} if big else {"color": plots.GREY, "fontsize": 10}
            ax.text(column, row, number, ha="center", va="center", **font)
            if big:
                box = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=plots.INK, lw=2.6, zorder=5)
                ax.add_patch(box)
        alt += (
            f" {name} is {'' if symmetric else 'not '}symmetric: '{words[i]}' scores {S[i, j]:.1f} on '{words[j]}', "
            f"'{words[j]}' {S[j, i]:.1f} on '{words[i]}'."
        )
    return alt
