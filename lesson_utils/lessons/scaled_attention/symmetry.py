"""Section 2: who attends to whom, in three matrices of scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import plots
from lesson_utils.classroom.formats import minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
