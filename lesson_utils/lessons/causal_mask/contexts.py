"""The loss by the number of characters that a model may read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.causal_mask.counting import Table
from lesson_utils.lessons.causal_mask.watched import answers, uncertain
from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
STRETCHES = 60


def by_context(model: models.GPT | Table, ids: "Ids", lengths: Sequence[int] = LENGTHS, places: int = 6000) -> Array:
    """Measure the loss in bits on the same characters of a text, with the last n characters to read, for each n.

    Neighbouring characters are alike in how hard they are. So the places are gathered in 60 stretches of the text,
    whose means vary as means of independent places would.

    Returns:
        the mean of each stretch, (lengths, 60).
    """
    longest = max(LENGTHS)
    at = np.linspace(longest, len(ids) - 1, places // STRETCHES * STRETCHES).astype(int)
    found = []
    for n in lengths:
        contexts = ids[at[:, None] + np.arange(-n, 0)]  # (places, n)
        if isinstance(model, Table):
            p = model.probabilities(contexts, ids[at][:, None])
        else:
            parts = np.array_split(contexts, max(1, len(contexts) // 500))
            every = np.concatenate([ops.softmax(model.forward(part, last=True)[0][:, -1]) for part in parts])
            p = np.take_along_axis(every, ids[at][:, None], axis=1).astype(float)
        found.append(-np.log2(np.maximum(p, 1e-30)).reshape(STRETCHES, -1).mean(axis=1))
    return np.array(found)


def mixed_bits(mixed: Sequence[models.GPT | Table], batch: tuple["Ids", "Ids"]) -> float:
    """Return the loss in bits of the mean of several models' probabilities, on windows x, y (B, T)."""
    p = np.mean([m.answers(batch) if isinstance(m, Table) else answers(m, batch) for m in mixed], axis=0)
    return float(-np.log2(p).mean())


@plots.still(9.2, 4.4)
def context_plot(figure: "Figure", curves: Mapping[str, Array], tables: Mapping[int, Array]) -> str:
    """Draw the loss by the number of characters that may be read: GPTs as lines, tables as squares.

    A bar at a GPT's mark is two standard errors of its difference to the best table, to either side.

    Args:
        curves: name -> bits of each stretch, at each of `LENGTHS`, (10, 60).
        tables: order -> bits of each stretch with a table of this order, (60,).
    """
    ax = figure.add_subplot(xlabel="characters that the model may read", ylabel="bits a character", xscale="log")
    best = min(tables, key=lambda n: tables[n].mean())
    level = float(tables[best].mean())
    looks = [(plots.BLUE, "-", "o"), (plots.ORANGE, "--", "D")]
    means, margins = {}, {}
    for (name, values), (colour, line, mark) in zip(curves.items(), looks, strict=False):
        means[name], margins[name] = values.mean(axis=1), uncertain(values - tables[best])
        look: dict[str, Any] = {"color": colour, "ls": line, "marker": mark, "ms": 5, "capsize": 3, "elinewidth": 1.4}
        ax.errorbar(LENGTHS, means[name], margins[name], label=name, **look)
    counted = {n: float(values.mean()) for n, values in tables.items()}
    ax.plot(list(counted), list(counted.values()), color=plots.GREEN, ls=":", marker="s", ms=7, label="table")
    ax.axhline(level, color=plots.GREEN, lw=1, ls=":")
    ax.text(1, level - 0.04, f"best table: {best} characters", color=plots.GREEN, ha="left", va="top")
    ax.set_ylim(bottom=level - 0.25)
    ax.set_xticks(LENGTHS, map(str, LENGTHS))
    ax.minorticks_off()
    ax.legend(loc="upper right", title="bars: ± 2 standard errors\nof the difference to the best table")
    last = list(curves)[-1]
    behind = [n for n, mean, margin in zip(LENGTHS, means[last], margins[last], strict=True) if mean > level - margin]
    ahead = [n for n in LENGTHS if n > max(behind, default=0)]
    finding = (
        f"With {ahead[0]} characters or more, the GPT of {last.removeprefix('GPT, ')} beats every table"
        if ahead
        else "No GPT here beats the best table"
    )
    ax.set_title(finding)
    listed = "; ".join(
        f"{name}: "
        + ", ".join(f"{n} {v:.2f} ± {m:.2f}" for n, v, m in zip(LENGTHS, means[name], margins[name], strict=True))
        for name in curves
    )
    return (
        f"{finding}. Bits by characters read, with two standard errors of the difference to the best table, {listed}; "
        f"tables: {', '.join(f'{n} {v:.2f}' for n, v in counted.items())}, the best one with {best} characters."
    )
