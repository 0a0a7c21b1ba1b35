"""The still pictures of notebook 06, in its order."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import formats, plots
from lesson_utils.lessons.causal_mask.counting import LENGTHS
from lesson_utils.lessons.causal_mask.gpts import uncertain
from lesson_utils.maths import attention
from lesson_utils.maths.checks import Array

# --- 1 · A line of text is a hundred questions ------------------------------------------------------------------------


def visible(character: str) -> str:
    return {" ": "␣", "\n": "⏎"}.get(character, character)


@plots.still(8.6, 4.7)
def triangle(figure: "plots.Figure", line: str = "The class") -> str:
    """Draw a line as input above target, and the questions in it: each row sees one character more."""
    T = len(line) - 1
    ax = d.sheet(figure)
    size, left, top = 0.46, 2.0, 3.95

    def cell(column: int, y: float, text: str, colour: str, strength: float, **font: Any) -> None:
        d.box(ax, left + column * size, y, text, size - 0.05, 0.36, colour, strength, family="monospace", **font)

    for name, y, text, colour in (
        ("x, the input", top, line[:-1], plots.BLUE),
        ("y, the target", top - 0.42, line[1:], plots.GREEN),
    ):
        ax.text(left - 0.45, y, name, ha="right", va="center", color=colour, weight="bold")
        for t, character in enumerate(text):
            cell(t, y, visible(character), colour, 0.14)
    for t in range(T):
        y = top - 1.02 - 0.385 * t
        ax.text(left - 0.45, y, f"question {t}: given", ha="right", va="center", size=10.5)
        for j in range(T):
            if j <= t:
                cell(j, y, visible(line[j]), plots.BLUE, 0.14)
            else:
                cell(j, y, "", "#CCCCCC", 0.08)
        d.arrow(ax, (left + (T - 0.45) * size, y), (left + (T + 0.6) * size, y))
        cell(T + 1, y, visible(line[t + 1]), plots.GREEN, 0.3, weight="bold")
    ax.set_title(f"A line of {T + 1} characters holds {T} questions, answered in one pass")
    listed = "; ".join(f"given “{line[: t + 1]}” the target is “{line[t + 1]}”" for t in range(T))
    return f"… A triangle: {listed}."


@plots.still(9.0, 3.9)
def maps(figure: "plots.Figure", bidirectional: Array, causal: Array) -> str:
    """Attention weights of the same tokens without a mask and with the causal one; what is hidden is hatched."""
    T = len(causal)
    hidden = ~attention.causal_mask(T)
    ax = d.sheet(figure)
    cell = (0.72, 0.5)
    texts = []
    for left, name, A in ((0.75, "bidirectional", bidirectional), (5.25, "causal", causal)):
        gone = hidden & (A == 0)
        share = f"{np.where(hidden, A, 0).sum() / A.sum():.0%} of the weight looks ahead"
        matrix = d.Matrix(ax, left, 2.95, (T, T), f"{name}: {share}", plots.BLUE, cell, decimals=2)
        matrix.set(A, hidden=gone, strength=A)
        for i in range(T):
            ax.text(left - 0.1, 2.95 - (i + 0.5) * cell[1], f"query {i}", ha="right", va="center", size=10)
            ax.text(left + (i + 0.5) * cell[0], 2.95 - T * cell[1] - 0.08, f"key {i}", ha="center", va="top", size=10)
        rows = "; ".join(
            " ".join("hidden" if g else f"{w:.2f}" for w, g in zip(*row, strict=True))
            for row in zip(A, gone, strict=True)
        )
        texts.append(f"{name}, {share}, rows: {rows}")
    stays = ["the first sees only itself"] * bool(causal[0, 0] == 1)
    stays = ["the last row stays"] * np.allclose(causal[-1], bidirectional[-1]) + stays
    finding = ", ".join(stays).capitalize() or "No row is what the mask should leave"
    ax.set_title(finding)
    return f"… Two maps of weights of {T} tokens. {'. '.join(texts)}."


# --- 2 · Trained with a mask that is too late -------------------------------------------------------------------------


@plots.still(9.0, 4.0)
def late_plot(figure: "plots.Figure", inputs: Sequence[str], losses: Mapping[str, Array]) -> str:
    """Draw the loss of the same question with several inputs, a dot for each start.

    Args:
        inputs: their names; the first as in training, the last as the model writes.
        losses: name of the mask -> bits, (starts, inputs). The last one is the wrong mask.
    """
    ax = figure.add_subplot(ylabel="bits for one character", yscale="log", xlabel="what follows the 16 characters")
    for (name, values), colour, mark, side in zip(
        losses.items(), (plots.BLUE, plots.ORANGE), "oD", (-0.13, 0.13), strict=False
    ):
        starts = np.linspace(-0.07, 0.07, len(values))[:, None]
        ax.plot((np.arange(len(inputs)) + side + starts).ravel(), values.ravel(), mark, color=colour, ms=5, label=name)
        for x, mean in enumerate(values.mean(axis=0)):
            ax.plot([x + side - 0.1, x + side + 0.1], [mean, mean], color=colour, lw=2)
            ax.annotate(f"{mean:.2g}", (x + side, values[:, x].max()), (0, 5), ha="center", textcoords="offset points")
    ax.set_xticks(range(len(inputs)), [textwrap.fill(name, 20) for name in inputs])
    ax.set_yticks([0.5, 1, 2, 4, 8, 16, 32], ["0.5", "1", "2", "4", "8", "16", "32"])
    ax.minorticks_off()
    ax.set_ylim(top=55)
    ax.legend(loc="upper left")
    wrong, found = list(losses.items())[-1]
    first, last = found.mean(axis=0)[[0, -1]]
    ax.set_title(f"{wrong.capitalize()}: {first:.1f} bits in training, {last:.0f} as it writes".replace("0. ", "0 "))
    told = "; ".join(
        f"{name}: "
        + ", ".join(f"{inputs[n]} {values[:, n].min():.2f} to {values[:, n].max():.2f}" for n in range(len(inputs)))
        for name, values in losses.items()
    )
    return f"… Bits for one character, the range of {len(found)} starts. {told}."


# --- 3 · How good can a prediction be? --------------------------------------------------------------------------------


@plots.still(9.2, 4.4)
def context_plot(figure: "plots.Figure", curves: Mapping[str, Array], tables: Mapping[int, Array]) -> str:
    """Draw the loss by the number of characters that may be read: GPTs as lines, tables as squares.

    A bar at a GPT's mark is two standard errors of its difference to the best table, to either side.

    Args:
        curves: name -> bits of each stretch, at each of `LENGTHS`, (12, 60).
        tables: order -> bits of each stretch with a table of this order, (60,).
    """
    ax = figure.add_subplot(xlabel="characters that the model may read", ylabel="bits a character", xscale="log")
    best = min(tables, key=lambda n: tables[n].mean())
    level = float(tables[best].mean())
    looks = [(plots.BLUE, "-", "o"), (plots.PURPLE, "--", "^"), (plots.ORANGE, "-.", "D")]
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
    ticks = [n for n in LENGTHS if n not in (7, 63)]  # these stand too near to others
    ax.set_xticks(ticks, map(str, ticks))
    ax.minorticks_off()
    ax.legend(loc="upper right", title="bars: ± 2 standard errors\nof the difference to the best table")
    last = list(curves)[-1]
    behind = [n for n, mean, margin in zip(LENGTHS, means[last], margins[last], strict=True) if mean > level - margin]
    ahead = [n for n in LENGTHS if n > max(behind, default=0)]
    ax.set_title(
        f"With {ahead[0]} characters or more, the GPT of {last.removeprefix('GPT, ')} beats every table"
        if ahead
        else "No GPT here beats the best table"
    )
    listed = "; ".join(
        f"{name}: "
        + ", ".join(f"{n} {v:.2f} ± {m:.2f}" for n, v, m in zip(LENGTHS, means[name], margins[name], strict=True))
        for name in curves
    )
    return (
        f"… Bits by characters read, with two standard errors of the difference to the best table, {listed}; "
        f"tables: {formats.each(counted, counted.values())}, the best one with {best} characters."
    )


@plots.still(9.0, 3.9)
def influence_plot(figure: "plots.Figure", found: Mapping[str, Array]) -> str:
    """Draw for several models which inputs each output depends on; what is exactly 0 is hatched."""
    from matplotlib.colors import ListedColormap, LogNorm
    from matplotlib.patches import Rectangle

    for ax, (name, matrix) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
        ahead = int((np.triu(matrix, 1) > 0).sum())
        pairs = len(matrix) * (len(matrix) - 1) // 2
        shown = np.where(matrix > 0, matrix, np.nan)
        top = float(np.nanmax(shown))
        name_of_map, steps = plots.WEIGHTS_MAP
        seen = ListedColormap(plots.colour_map(name_of_map, steps)(np.linspace(0.2, 1, steps)))  # no white among them
        T = len(matrix)
        ax.add_patch(Rectangle((-0.5, -0.5), T, T, fc="white", ec="#C8C8C8", lw=0, hatch="////"))
        image = ax.imshow(np.clip(shown, top * 1e-4, None), cmap=seen, norm=LogNorm(top * 1e-4, top), zorder=2)
        figure.colorbar(image, ax=ax, shrink=0.8, label="gradient")
        finding = f"{ahead} of {pairs} pairs look ahead" if ahead else "no output looks ahead"
        ax.set(title=f"{name}:\n{finding}", xlabel="input", ylabel="output")
    return "… Maps of the gradient of each output with respect to each input; hatched is exactly 0."
