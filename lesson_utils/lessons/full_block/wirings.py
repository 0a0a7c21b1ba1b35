"""Measured wirings of three models: which outputs depend on which inputs."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, box, sheet
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Encoder, Transformer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def moved(run: Callable[[Array], Array], ids: Array) -> Array:
    """Change one input symbol after the other: (outputs, inputs), 1 where the output is not the same."""
    before = run(ids)  # (1, T_out, V)
    columns = []
    for j in range(ids.shape[1]):
        changed = ids.copy()
        changed[0, j] += 1
        columns.append(np.abs(run(changed) - before).max(axis=-1)[0] > 1e-6)
    return np.stack(columns, axis=1).astype(float)


def wirings(encoder: Encoder, gpt: GPT, both: Transformer, T: int = 6) -> dict[str, Array]:
    """Measure for three models which outputs depend on which inputs, by changing them."""
    source, target = np.random.default_rng(0).integers(3, 12, size=(2, 1, T))
    return {
        "encoder-only": moved(lambda ids: encoder.forward(ids)[0][:, :, 0], source),
        "decoder-only": moved(lambda ids: gpt.forward(ids)[0], source),
        "from the source": moved(lambda ids: both.forward(ids, target)[0], source),
        "from the target": moved(lambda ids: both.forward(source, ids)[0], target),
    }


CELL = 0.2  # inches


def _reach(ax: "Axes", x: float, y: float, matrix: Array, colour: str) -> None:
    """Draw the matrix as dark and light squares, its centre at (x, y)."""
    from matplotlib.collections import PolyCollection

    rows, columns = matrix.shape
    left, top = x - CELL * columns / 2, y + CELL * rows / 2
    corners = CELL * np.array([(0, 0), (1, 0), (1, -1), (0, -1)])
    squares = [corners + np.array((left + CELL * j, top - CELL * i)) for i, j in np.ndindex(rows, columns)]
    fill = [colour if value else "white" for value in matrix.ravel()]
    ax.add_collection(PolyCollection(squares, facecolors=fill, edgecolors="#BBBBBB", linewidths=0.8, zorder=3))


@plots.still(9.4, 4.2)
def wirings_plot(figure: "Figure", reach: Mapping[str, Array]) -> str:
    """Draw three wirings of the same blocks, and in each block which outputs an input can move, as measured."""
    ax = sheet(figure)
    ax.set_title("The mask decides the family: which input (column) moves which output (row)")
    at = {"encoder-only": 1.15, "decoder-only": 3.5, "from the source": 6.05, "from the target": 8.15}
    names = {"from the source": "encoder", "from the target": "decoder"}
    below = {"encoder-only": "text", "decoder-only": "text so far", "from the source": "source"}
    above = {"encoder-only": "labels, gaps filled", "decoder-only": "next symbols", "from the target": "next symbols"}
    alt = []
    for name, x in at.items():
        matrix, middle = reach[name], 1.86
        decoder = np.triu(matrix, 1).sum() == 0
        colour = plots.PURPLE if decoder else plots.BLUE
        block = box(ax, x, middle, "", 1.86, 2.0, colour, 0.16)
        ax.text(x, middle + 0.83, names.get(name, name), ha="center", va="center", weight="bold", color=colour)
        _reach(ax, x, middle - 0.08, matrix, colour)
        ax.text(x, middle - 0.86, name if name in names else "", ha="center", va="center", size=10.5)
        arrow(ax, (x, 0.45), block.bottom)
        ax.text(x, 0.28, below.get(name, "target so far"), ha="center", va="center")
        if name in above:
            arrow(ax, block.top, (x, 3.24))
            ax.text(x, 3.38, above[name], ha="center", va="center")
        else:
            arrow(ax, block.right, (at["from the target"] - 0.93, middle))
        alt.append(
            f"{name}: {matrix.mean():.0%} of the pairs, {'never' if decoder else 'also'} from inputs behind the output"
        )
    for x, family in ((1.15, "BERT"), (3.5, "GPT"), (7.1, "T5, and the paper's")):
        ax.text(x, 3.64, family, ha="center", va="center", weight="bold", size=13)
    return (
        "The mask decides the family. Blocks of an encoder-only model (BERT), a decoder-only model (GPT) and an "
        "encoder–decoder (T5, and the paper's); in each, which output moves when an input symbol is changed. "
        + "; ".join(alt)
        + "."
    )
