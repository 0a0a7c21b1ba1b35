"""The still pictures of notebook 06, in its order."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import formats, plots
from lesson_utils.lessons.causal_mask.counting import LENGTHS
from lesson_utils.lessons.causal_mask.gpts import Losses, uncertain
from lesson_utils.maths import attention
from lesson_utils.maths.checks import Array, Mask

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


# --- 3 · Rows with nothing to see -------------------------------------------------------------------------------------


@plots.still(9.0, 3.3)
def allowed(figure: "plots.Figure", names: Sequence[str], *masks: Mask) -> str:
    """Draw masks side by side: blue may be attended to, hatched is hidden."""
    from matplotlib.patches import Rectangle

    alt = []
    for ax, name, mask in zip(figure.subplots(1, len(masks), squeeze=False)[0], names, masks, strict=True):
        blind = int((~mask.any(axis=-1)).sum())
        rows = "every row sees something" if not blind else "1 row sees nothing"
        rows = rows if blind < 2 else f"{blind} rows see nothing"
        T_q, T_k = mask.shape
        for i, j in np.ndindex(T_q, T_k):
            look = {"fc": d.tint(plots.BLUE, 0.75)} if mask[i, j] else {"fc": "white", "hatch": "////"}
            ax.add_patch(Rectangle((j - 0.46, i - 0.44), 0.92, 0.88, ec=plots.GREY, lw=0.8, **look))
        ax.set(xlim=(-0.6, T_k - 0.4), ylim=(T_q - 0.4, -0.6), xticks=range(T_k), yticks=range(T_q))
        ax.set(title=f"{name}:\n{rows}", xlabel="key (blue: visible, hatched: hidden)", ylabel="query")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        keys = [", ".join(map(str, np.flatnonzero(row))) or "nothing" for row in mask]
        alt.append(f"Keys, {name}: " + "; ".join(f"query {i} sees {seen}" for i, seen in enumerate(keys)))
    return f"… {'. '.join(alt)}."


# --- 4 · How good can a prediction be? --------------------------------------------------------------------------------


@plots.still(9.2, 4.4)
def context_plot(figure: "plots.Figure", curves: Mapping[str, Array], tables: Mapping[int, Array]) -> str:
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


@plots.still(9.4, 4.6)
def ladder_plot(figure: "plots.Figure", starts: Sequence[Mapping[str, Losses]], marks: Mapping[str, float]) -> str:
    """Draw the loss after each addition, a ladder for each order, a dot for each start; marks are other models.

    Args:
        starts: for each start the order -> the part that was added -> bits a character.
        marks: name -> bits a character, drawn as dotted lines.
    """
    orders = list(starts[0])
    losses = {order: np.array([list(start[order].values()) for start in starts]) for order in orders}
    every = np.concatenate([found.ravel() for found in losses.values()] + [np.array(list(marks.values()))])
    axes = figure.subplots(1, len(orders), squeeze=False)[0]
    behind = {"fc": "white", "ec": "none", "pad": 0.6}  # so that no dotted line runs through a text
    figure.supxlabel("bits a character, on text the model was not trained on", size=11)
    largest, told = [], []
    for ax, order in zip(axes, orders, strict=True):
        names = list(starts[0][order])
        means = losses[order].mean(axis=0)
        gains = -np.diff(means)
        largest.append((names[int(gains.argmax()) + 1], float(gains.max())))
        for value in marks.values():
            ax.axvline(value, color=plots.GREY, lw=1, ls=":", zorder=0)
        for row, values in enumerate(losses[order].T):
            if row:
                ax.plot([means[row - 1], means[row]], [row, row], color=plots.GREY, lw=1.4, zorder=1)
                ax.plot([means[row - 1]] * 2, [row - 1, row], color=plots.GREY, lw=1.4, zorder=1)
            colour = plots.ORANGE if row and names[row] == largest[-1][0] else plots.BLUE
            ax.plot(values, [row] * len(values), "o", color=colour, ms=7, zorder=3)
            change = f" ({-gains[row - 1]:+.2f})".replace("-", "−") if row else ""
            end = max(*values, means[max(row - 1, 0)]) + 0.07
            ax.text(end, row, f"{means[row]:.2f}{change}", va="center", size=10.5, bbox=behind, zorder=2)
        for name, value in marks.items():
            label = textwrap.fill(f"{name}: {value:.2f}", 11)
            ax.text(value, -0.6, label, color=plots.GREY, ha="center", va="bottom", size=10, bbox=behind)
        ax.set(ylim=(len(names) - 0.5, -2.3), yticks=range(len(names)))
        ax.set_yticklabels([names[0], *(f"+ {name}" for name in names[1:])])
        ax.set_xlim(every.min() - 0.45, every.max() + 0.85)
        ax.tick_params(axis="y", length=0)
        ax.set_title(order, weight="normal")
        listed = "; ".join(
            f"{name} {', '.join(f'{value:.2f}' for value in values)}"
            for name, values in zip(names, losses[order].T, strict=True)
        )
        told.append(f"{order}: {listed}")
    parts = {name for name, _ in largest}
    gained = " and ".join(f"{gain:.2f}" for _, gain in largest)
    finding = (
        f"In {'either' if len(orders) > 1 else 'this'} order {largest[0][0]} bring most: {gained} bits"
        if len(parts) == 1
        else "Which part brings most depends on the order: " + ", ".join(f"{name} {gain:.2f}" for name, gain in largest)
    )
    figure.suptitle(finding, x=0.01, ha="left", weight="bold", size=13)
    lines = formats.each(marks, marks.values())
    return (
        f"{finding}. Bits a character after each addition, a number for each start. {'. '.join(told)}. Lines: {lines}."
    )


def characters(bits: float) -> str:
    """Write the perplexity, as people say it: 106, 23, 8.5."""
    perplexity = 2**bits
    return f"{perplexity:.0f}" if perplexity >= 9.95 else f"{perplexity:.1f}"


@plots.still(9.0, 3.4)
def unsure(figure: "plots.Figure", rungs: Mapping[str, float], finding: str = "") -> str:
    """Bits as tiles: as unsure as between so many equally likely characters.

    Args:
        rungs: name -> bits a character.
        finding: the title. Default: what is left at the last rung, of what there is at the first.
    """
    from matplotlib.collections import PolyCollection

    ax = d.sheet(figure)
    counts = {name: 2**value for name, value in rungs.items()}
    left, tile, names = 3.15, 4.9 / max(counts.values()), list(rungs)
    step = min(0.72, 2.5 / len(names))
    y = 2.7 - step * np.arange(len(names))
    for name, middle in zip(names, y, strict=True):
        count = counts[name]
        ends = [*np.arange(1, int(count) + 1), count] if count % 1 > 0.05 else np.arange(1, round(count) + 1)
        starts = np.arange(len(ends))
        gap, low, high = 0.18 * tile, middle - 0.36 * step, middle + 0.36 * step
        tiles = [
            d.corners(left + a * tile, low, left + b * tile - gap, high) for a, b in zip(starts, ends, strict=True)
        ]
        colour = plots.ORANGE if name == names[-1] else plots.BLUE
        ax.add_collection(PolyCollection(tiles, facecolors=colour, linewidths=0), autolim=False)
        ax.text(left - 0.12, middle, f"{name}: {rungs[name]:.2f} bits", ha="right", va="center")
        ax.text(left + count * tile + 0.08, middle, characters(rungs[name]), va="center", weight="bold")
    ax.text(
        left,
        2.7 - step * (len(names) - 0.5) - 0.1,
        "as unsure as between so many characters, all equally likely",
        color=plots.GREY,
        va="top",
        size=10.5,
    )
    first, last = names[0], names[-1]
    ax.set_title(
        finding
        or f"From {characters(rungs[first])} characters to {characters(rungs[last])}, by knowing what follows what"
    )
    listed = "; ".join(f"{name} {value:.2f} bits, {characters(value)} characters" for name, value in rungs.items())
    return f"… Shows how many equally likely characters each loss amounts to: {listed}."


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
