"""The loss by the number of characters that a model may read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.causal_mask.counting import Table
from lesson_utils.maths import models, ops

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def by_context(
    model: models.GPT | Table, ids: "Ids", lengths: Sequence[int] = LENGTHS, places: int = 1500
) -> list[float]:
    """Measure the loss in bits on the same characters of a text, with the last n characters to read, for each n."""
    longest = max(LENGTHS)
    at = np.linspace(longest, len(ids) - 1, places).astype(int)
    found = []
    for n in lengths:
        contexts = ids[at[:, None] + np.arange(-n, 0)]  # (places, n)
        if isinstance(model, Table):
            p = model.probabilities(contexts)
        else:
            p = np.concatenate(
                [ops.softmax(model.forward(part, last=True)[0][:, -1]) for part in np.array_split(contexts, 12)]
            )
        answers = np.take_along_axis(p, ids[at][:, None], axis=1).astype(float)
        found.append(float(-np.log2(np.maximum(answers, 1e-30)).mean()))
    return found


@plots.still(9.2, 4.3)
def context_plot(figure: "Figure", curves: Mapping[str, Sequence[float]], tables: Mapping[int, float]) -> str:
    """Draw the loss by the number of characters that may be read: GPTs as lines, tables as squares.

    Args:
        curves: name -> bits, at each of `LENGTHS`.
        tables: order -> bits of a table of this order.
    """
    ax = figure.add_subplot(xlabel="characters that it may read", ylabel="bits a character", xscale="log")
    looks = [(plots.BLUE, "-", "o"), (plots.ORANGE, "--", "D")]
    for (name, values), (colour, line, mark) in zip(curves.items(), looks, strict=False):
        ax.plot(LENGTHS, values, color=colour, ls=line, marker=mark, ms=5, label=name)
    ax.plot(list(tables), list(tables.values()), color=plots.GREEN, ls=":", marker="s", ms=7, label="table")
    ax.set_xticks(LENGTHS, map(str, LENGTHS))
    ax.minorticks_off()
    ax.legend(loc="upper right")
    best = min(tables, key=lambda n: tables[n])
    last = list(curves)[-1]
    longer = curves[last]
    passes = [n for n, value in zip(LENGTHS, longer, strict=True) if value < tables[best]]
    at_best = longer[LENGTHS.index(best)] if best in LENGTHS else float("nan")
    ax.axhline(tables[best], color=plots.GREEN, lw=1, ls=":")
    finding = (
        f"The GPT passes the best table when it may read {passes[0]} characters"
        if passes
        else "No GPT here passes the best table"
    )
    ax.set_title(finding)
    listed = "; ".join(
        f"{name}: " + ", ".join(f"{n} {v:.2f}" for n, v in zip(LENGTHS, values, strict=True))
        for name, values in curves.items()
    )
    return (
        f"{finding}. With {best} characters: table {tables[best]:.2f} bits, {last} {at_best:.2f}. Bits by characters "
        f"read, {listed}; tables: {', '.join(f'{n} {v:.2f}' for n, v in tables.items())}."
    )
