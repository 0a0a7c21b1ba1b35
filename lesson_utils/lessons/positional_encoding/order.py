"""That attention sees a set, and what a table of positions must be."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.formats import minus
from lesson_utils.maths import positions
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Encoder
from lesson_utils.maths.tasks import Ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.still(9.2, 3.6)
def two_sentences(figure: "Figure", words: Sequence[str], order: Sequence[int], before: Array, after: Array) -> str:
    """Draw each word's output vector in two sentences, one strip of colour above the other.

    Args:
        words: of the first sentence.
        order: of the second, as places in the first.
        before, after: their outputs, (T, d) each, row by row of its sentence.
    """
    gaps = [float(np.abs(after[list(order).index(n)] - before[n]).max()) for n in range(len(words))]
    changed = [word for word, gap in zip(words, gaps, strict=True) if gap >= 1e-9]
    finding = f"{len(words) - len(changed)} of {len(words)} words keep their output vector"
    sentences = [" ".join(words), " ".join(words[n] for n in order)]
    d, gap_rows = before.shape[1], 3  # two strips and a space for each word
    strips = np.full((gap_rows * len(words) - 1, d), np.nan)
    labels = {}
    ax = figure.add_subplot()
    for n, (word, gap) in enumerate(zip(words, gaps, strict=True)):
        top = gap_rows * n
        strips[top], strips[top + 1] = before[n], after[list(order).index(n)]
        labels[top], labels[top + 1] = (f"{word} in “{sentence}”" for sentence in sentences)
        verdict, colour = ("the same", plots.GREEN) if gap < 1e-9 else (f"differ by up to {gap:.2f}", plots.ORANGE)
        ax.axhline(top + 0.5, color="white", lw=1.5)
        ax.text(d - 0.3, top + 0.5, verdict, color=colour, weight="bold", va="center")
    largest = float(np.nanmax(np.abs(strips)))
    look: Any = {"aspect": "auto", "interpolation": "nearest", "cmap": plots.colour_map(*plots.SCORES_MAP)}
    image = ax.imshow(strips, vmin=-largest, vmax=largest, **look)
    bar = figure.colorbar(image, ax=ax, label="entry", pad=0.24, ticks=(-largest, 0, largest))
    bar.ax.set_yticklabels([minus(f"{end:.2f}") if end else "0" for end in (-largest, 0, largest)])
    ax.set_title(finding)
    ax.set_yticks(list(labels), list(labels.values()))
    ax.set_xticks(range(d))
    ax.set_xlabel("column of the output")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
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


def ideas(length: int, d_model: int = 6) -> dict[str, Array]:
    """Four tables that one might think of, (length, d_model) each."""
    at = np.arange(length)[:, None]
    return {
        "the number itself": np.repeat(at, d_model, axis=1).astype(float),
        "number / length": np.repeat(at / length, d_model, axis=1),
        "binary digits": (at // 2 ** np.arange(d_model) % 2).astype(float),
        "sines and cosines": positions.sinusoidal_encoding(length, d_model),
    }


def largest_step(table: Array) -> float:
    """Return the largest step to the next row, as a share of the largest distance between any two rows."""
    step = np.linalg.norm(np.diff(table, axis=0), axis=1).max()
    return float(step / np.linalg.norm(table[:, None] - table[None], axis=-1).max())


REQUIREMENTS: dict[str, Callable[[Array, Array], bool]] = {  # of a table for 32 positions and one for 64
    "bounded": lambda short, long: bool(np.abs(long).max() <= 1),
    "same row at any length": lambda short, long: np.array_equal(short, long[: len(short)]),
    "rows differ": lambda short, long: len(np.unique(long.round(9), axis=0)) == len(long),
    "smooth": lambda short, long: largest_step(long) <= 0.5,
}


def verdicts(make: Callable[[int], Mapping[str, Array]] = ideas) -> dict[str, dict[str, bool]]:
    """Test which requirements each idea meets, on tables for 32 and 64 positions."""
    short, long = make(32), make(64)
    return {idea: {name: meets(short[idea], long[idea]) for name, meets in REQUIREMENTS.items()} for idea in short}


@plots.still(9.2, 4.2)
def digits_beside_sines(figure: "Figure", length: int = 16, columns: int = 4) -> str:
    """Draw binary digits of the position, fastest first, beside sines whose waves get longer in the same way."""
    left, right = figure.subplots(1, 2, sharey=True)
    at = np.arange(length)
    binary = at[:, None] // 2 ** np.arange(columns) % 2  # (length, columns)
    sines = np.sin(at[:, None] / 2 ** np.arange(columns))
    look: Any = {"aspect": "auto", "interpolation": "nearest", "cmap": plots.colour_map(*plots.SCORES_MAP)}
    left.imshow(binary, vmin=-1, vmax=1, **look)
    image = right.imshow(sines, vmin=-1, vmax=1, **look)
    for (row, column), digit in np.ndenumerate(binary):
        left.text(column, row, str(digit), color="white" if digit else "black", ha="center", va="center", size=9)
    figure.colorbar(image, ax=right, ticks=(-1, 0, 1), label="entry")
    steps = [f"{largest_step(table):.0%}" for table in (binary.astype(float), sines)]
    left.set(xlabel="digit repeats after", ylabel="position", title=f"Digits: largest step {steps[0]}")
    right.set(xlabel="sine repeats after", title=f"Sines: largest step {steps[1]}")
    left.set_xticks(range(columns), [f"{2 ** (n + 1)}" for n in range(columns)])
    right.set_xticks(range(columns), [f"{2 * np.pi * 2**n:.1f}" for n in range(columns)])
    for ax in (left, right):
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        for column in range(1, columns):
            ax.axvline(column - 0.5, color="white", lw=3)
    left.set_yticks(range(length))
    words = f"the last {columns} binary digits of the positions 0 to {length - 1}"
    return (
        "The largest step to the next position, as a share of the largest distance between two rows: binary digits "
        f"{steps[0]}, sines {steps[1]}. Left, {words}: each repeats after twice as many positions as the one before. "
        "Right, sines whose waves get longer in the same way: softer stripes."
    )
