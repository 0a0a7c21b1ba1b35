"""That attention sees a set, and what a table of positions must be."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, sheet
from lesson_utils.maths import positions
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Encoder
from lesson_utils.maths.tasks import Ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _strip(ax: "Axes", left: float, middle: float, vector: Array, top: float) -> None:
    """Draw a vector as a row of coloured squares."""
    cmap = plots.colour_map(*plots.SCORES_MAP)
    from matplotlib.patches import Rectangle

    for n, entry in enumerate(vector):
        colour = cmap(0.5 + 0.5 * entry / top)
        ax.add_patch(Rectangle((left + 0.2 * n, middle - 0.16), 0.2, 0.32, fc=colour, ec="white", lw=0.8))
    ax.add_patch(Rectangle((left, middle - 0.16), 0.2 * len(vector), 0.32, fill=False, ec=plots.GREY, lw=1))


@plots.still(9.2, 3.0)
def two_sentences(
    figure: "Figure", words: Sequence[str], order: Sequence[int], before: Array, after: Array, means: str = "without P"
) -> str:
    """Draw the words' output vectors in two orders, as strips of colour; lines join the same word.

    Args:
        words: of the first sentence.
        order: of the second, as places in the first.
        before, after: their outputs, (T, d) each, row by row of its sentence.
        means: what is done about positions.
    """
    same = np.abs(after - before[list(order)]).max(axis=-1) < 1e-9  # of the second sentence
    finding = f"{int(same.sum())} of {len(words)} words keep their vector {means}"
    ax = sheet(figure)
    ax.set_title(finding[0].upper() + finding[1:])
    top = float(np.abs(np.concatenate([before, after])).max())
    width = 0.2 * before.shape[1]
    rows = np.linspace(1.9, 0.45, len(words))
    for row, (y, word) in enumerate(zip(rows, words, strict=True)):
        ax.text(0.85, y, word, ha="right", va="center")
        _strip(ax, 1.0, y, before[row], top)
        ax.text(8.2, y, words[order[row]], ha="left", va="center")
        _strip(ax, 8.05 - width, y, after[row], top)
        colour = plots.GREY if same[row] else plots.ORANGE
        left, right, at = 1.1 + width, 7.95 - width, 7.5 - width
        arrow(ax, (left, rows[order[row]]), (right, y), colour)
        sign = "=" if same[row] else "≠"
        on_arrow = np.interp(at, (left, right), (rows[order[row]], y))
        ax.text(at, on_arrow + 0.2, sign, color=colour, size=15, weight="bold", ha="center", va="center")
    second = [words[n] for n in order]
    changed = [word for word, equal in zip(second, same, strict=True) if not equal]
    ax.text(1.0, 2.28, f"output in “{' '.join(words)}”", va="center")
    ax.text(8.05, 2.28, f"output in “{' '.join(second)}”", va="center", ha="right")
    return f"{finding}. Words whose vector has changed: {', '.join(changed) or 'none'}."


def equivariance_gap(model: Encoder | GPT, ids: Ids, rng: np.random.Generator, shuffles: int = 100) -> float:
    """Return how far outputs are, at most, from following their tokens when these change places; ids (1, T)."""
    outputs, _ = model.forward(ids)  # (1, T, ...)
    gap = 0.0
    for _ in range(shuffles):
        order = rng.permutation(ids.shape[1])
        shuffled, _ = model.forward(ids[:, order])
        gap = max(gap, float(np.abs(shuffled - outputs[:, order]).max()))
    return gap


# --- Four ideas for a table -----------------------------------------------------------------------------------------


def ideas(length: int, d_model: int = 16) -> dict[str, Array]:
    """Four tables that one might think of, (length, d_model) each."""
    at = np.arange(length)[:, None]
    return {
        "the number itself": np.repeat(at, d_model, axis=1).astype(float),
        "number / length": np.repeat(at / length, d_model, axis=1),
        "binary digits": (at // 2 ** np.arange(d_model) % 2).astype(float),
        "sines and cosines": positions.sinusoidal_encoding(length, d_model),
    }


def _smooth(table: Array) -> bool:
    """Tell if a step to the next position is never more than half of the longest way between two rows."""
    step = np.linalg.norm(np.diff(table, axis=0), axis=1).max()
    return bool(step <= 0.5 * np.linalg.norm(table[:, None] - table[None], axis=-1).max())


REQUIREMENTS: dict[str, Callable[[Array, Array], bool]] = {  # of a table for 32 positions and one for 64
    "bounded": lambda short, long: bool(np.abs(long).max() <= 1),
    "same row at any length": lambda short, long: np.array_equal(short, long[: len(short)]),
    "rows differ": lambda short, long: len(np.unique(long.round(9), axis=0)) == len(long),
    "no jumps": lambda short, long: _smooth(long),
}


def verdicts(make: Callable[[int], Mapping[str, Array]] = ideas) -> dict[str, dict[str, bool]]:
    """Test which requirements each idea meets, on tables for 32 and 64 positions."""
    short, long = make(32), make(64)
    return {idea: {name: meets(short[idea], long[idea]) for name, meets in REQUIREMENTS.items()} for idea in short}


@plots.still(9.2, 4.2)
def digits_beside_sines(figure: "Figure", length: int = 16, columns: int = 4) -> str:
    """Binary digits of the position, fastest first, beside sines whose waves get longer in the same way."""
    left, right = figure.subplots(1, 2, sharey=True)
    at = np.arange(length)
    binary = at[:, None] // 2 ** np.arange(columns) % 2  # (length, columns)
    sines = np.sin(np.pi * (at[:, None] + 0.5) / 2 ** np.arange(columns))
    look: Any = {"aspect": "auto", "interpolation": "nearest", "cmap": plots.colour_map(*plots.SCORES_MAP)}
    left.imshow(1 - 2 * binary, vmin=-2.2, vmax=2.2, **look)
    image = right.imshow(sines, vmin=-1, vmax=1, **look)
    for row, column in np.ndindex(*binary.shape):
        left.text(column, row, str(binary[row, column]), ha="center", va="center", size=9)
    figure.colorbar(image, ax=right, ticks=(-1, 0, 1), label="entry")
    left.set(xlabel="digit, fastest first", ylabel="position", title="Digits jump (7 to 8: all four)")
    right.set(xlabel="column: a sine of the same period", title="Sines count, too, without jumps")
    for ax in (left, right):
        ax.set_xticks(range(columns), [f"every {2**n}" if n else "every 1" for n in range(columns)])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    left.set_yticks(range(length))
    return (
        f"Binary digits jump and sines do not. Left, the last {columns} binary digits of the positions 0 to "
        f"{length - 1}: digit n changes every 2^n positions. Right, sines with the same periods: softer stripes."
    )
