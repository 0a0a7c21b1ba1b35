"""The table of sines and cosines: as a map, as clocks, as a rotation, and how alike its rows are."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.maths import positions
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS, BASES, LENGTHS = (8, 16, 32, 64, 128), (10, 100, 1000, 10_000, 100_000), (32, 64, 96)
SHARP: Any = {"aspect": "auto", "interpolation": "nearest"}  # an entry of the table is a box of one colour
WAVES = ((0.0, plots.BLUE, "-"), (0.25, plots.ORANGE, "--"), (0.5, plots.GREEN, ":"))  # where in the table, and how


@live.lab(
    width=8.0,
    height=4.4,
    neutral="It opens with 8 columns; the notebook asks about 64.",
    example=lambda: positions.sinusoidal_encoding,
    d_model=live.Choice("d_model", WIDTHS, 8),
    base=live.Choice("base", BASES, 10_000),
    length=live.Choice("maximum length", LENGTHS, 64),
)
def table_lab(figure: "Figure", make_table: Callable[[int, int, float], Array]) -> live.Update:
    """Show the table as a heat map, all sines above all cosines, and three of its columns as waves.

    Args:
        make_table: `make_table(length, d_model, base)`, the learner's.
    """
    table_ax, waves_ax = figure.subplots(2, 1, height_ratios=(1.3, 1), sharex=True)
    image = table_ax.imshow(np.zeros((2, 2)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1, **SHARP)
    figure.colorbar(image, ax=(table_ax, waves_ax), label="entry of the table", ticks=(-1, 0, 1), shrink=0.6)
    table_ax.set_ylabel("pair i")
    waves_ax.set(ylim=(-1.15, 1.75), yticks=(-1, 0, 1), xlabel="position", ylabel="entry")
    lines = [waves_ax.plot([], [], style, color=colour)[0] for _, colour, style in WAVES]
    names = [
        waves_ax.text(x, 0.985, "", color=c, transform=waves_ax.transAxes, va="top")
        for x, (_, c, _) in zip((0.01, 0.33, 0.68), WAVES, strict=True)
    ]

    def update(d_model: int, base: int, length: int) -> str:
        table = make_table(length, d_model, base)  # (length, d_model)
        waves = positions.wavelengths(d_model, base)
        image.set_data(np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1).T)
        if image.get_extent()[1:3] != [length - 0.5, d_model - 0.5]:  # axes that stay need not be drawn again
            image.set_extent((-0.5, length - 0.5, d_model - 0.5, -0.5))
            waves_ax.set_xlim(-0.5, length - 0.5)
            waves_ax.set_xticks(range(0, length, length // 8))
            half = d_model // 2
            table_ax.set_yticks(
                [0, half // 2, half, half + half // 2], ["sin 0", f"sin {half // 2}", "cos 0", f"cos {half // 2}"]
            )
        fine = np.linspace(0, length - 1, 300)
        clauses = []
        for (share, _, _), line, name in zip(WAVES, lines, names, strict=True):
            i = int(share * d_model / 2)
            line.set_data(fine, np.sin(fine * 2 * np.pi / waves[i]))
            clauses.append(f"sin {i}: wavelength {formats.three_figures(waves[i])}")
            name.set_text(clauses[-1])
        whole = int((waves <= length).sum())
        table_ax.set_title(f"{whole} of {d_model // 2} pairs of columns make a full turn within {length} positions")
        waves_ax.set_title(
            f"Wavelengths from {formats.three_figures(waves[0])} to {formats.three_figures(waves[-1])} positions"
        )
        return (
            f"{whole} of {d_model // 2} pairs of columns repeat within {length} positions. The table of sines and "
            f"cosines for d_model {d_model} and base {base} as a heat map, sines above cosines: stripes that get wider "
            f"from the first pair to the last. Three sines as waves: {'; '.join(clauses)}."
        )

    return update


# --- The clock ------------------------------------------------------------------------------------------------------

HANDS = 8


@live.lab(
    height=4.2,
    position=live.Slider("position", 0, 100, 0),
    offset=live.Slider("offset", -20, 20, 3),
    d_model=live.Choice("d_model", (16, 32, 64, 128), 16),
    base=live.Choice("base", BASES, 100),
)
def clock_lab(figure: "Figure") -> live.Update:
    """Eight pairs of columns as the hands of clocks, at a position and k further on."""
    turn = np.linspace(0, 2 * np.pi, 100)
    dials = figure.subplots(2, HANDS // 2).ravel()
    hands = []
    for ax in dials:
        ax.set(xlim=(-1.25, 1.25), ylim=(-1.5, 1.25), xticks=(), yticks=(), aspect="equal")
        ax.spines[:].set_visible(False)
        # Below the hands, which move: what stands still is not drawn again (a frame takes two fifths less time).
        ax.plot(np.sin(turn), np.cos(turn), color="#BBBBBB", lw=1, zorder=1)
        (before,) = ax.plot([], [], color=plots.BLUE, lw=3, solid_capstyle="round")
        (after,) = ax.plot([], [], "--", color=plots.ORANGE, lw=2.6)
        (arc,) = ax.plot([], [], color=plots.GREEN, lw=2)
        label = ax.text(0, -1.48, "", ha="center", fontsize=10, zorder=1)
        hands.append((before, after, arc, label))
    title = figure.suptitle(" ", x=0.01, ha="left", weight="bold", fontsize=12.5)

    def update(position: int, offset: int, d_model: int, base: int) -> str:
        pairs = np.linspace(0, d_model // 2 - 1, HANDS).round().astype(int)
        waves = positions.wavelengths(d_model, base)[pairs]  # (hands,)
        clauses = []
        for (before, after, arc, label), i, wave in zip(hands, pairs, waves, strict=True):
            between = 2 * np.pi * np.linspace(position, position + offset, 40) / wave
            arc.set_data(0.45 * np.sin(between), 0.45 * np.cos(between))
            for line, at in ((before, position), (after, position + offset)):
                line.set_data([0, np.sin(2 * np.pi * at / wave)], [0, np.cos(2 * np.pi * at / wave)])
            angle = offset * 360 / wave
            clauses.append(f"pair {i} by {formats.degrees(angle)}")
            label.set_text(f"pair {i}: {formats.degrees(angle)}")
        finding = f"Blue: position {position}. Orange: {abs(offset)} {'later' if offset >= 0 else 'earlier'}"
        title.set_text(f"{finding}. The green angle stays")
        return (
            f"Whatever the position, an offset of {offset} turns {', '.join(clauses)}. {HANDS} clocks, one for each of "
            f"{HANDS} pairs of columns of a table with d_model {d_model} and base {base}; hands at position {position} "
            f"and at {position + offset}."
        )

    return update


@plots.still(9.2, 5.0)
def rotation_drawn(figure: "Figure", offset: int = 3, d_model: int = 8, base: float = 10.0) -> str:
    """Draw the matrix that moves on by `offset`: its blocks, with their numbers, and by how much each turns."""
    from matplotlib.patches import Rectangle

    M = positions.shift_matrix(offset, d_model, base)
    ax, dials = figure.subplots(1, 2, width_ratios=(1.5, 1))
    image = ax.imshow(M, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1)
    figure.colorbar(image, ax=ax, shrink=0.8, ticks=(-1, 0, 1), label="entry")
    angles = [offset * 360 / wave for wave in positions.wavelengths(d_model, base)]
    turn = np.linspace(0, 2 * np.pi, 80)
    for n, angle in enumerate(angles):
        ax.add_patch(Rectangle((2 * n - 0.5, 2 * n - 0.5), 2, 2, fill=False, ec=plots.INK, lw=2))
        for i, j in np.ndindex(2, 2):
            number = formats.minus(f"{M[2 * n + i, 2 * n + j]:z.2f}")
            dark = abs(M[2 * n + i, 2 * n + j]) > 0.7
            colour = "white" if dark else plots.INK
            ax.text(2 * n + j, 2 * n + i, number, ha="center", va="center", size=9, color=colour)
        x, y, arc = 2.6 * (n % 2), -3.1 * (n // 2), np.radians(np.linspace(0, angle, 60))
        dials.plot(x + np.sin(turn), y + np.cos(turn), color="#BBBBBB", lw=1)
        dials.plot(x + 0.5 * np.sin(arc), y + 0.5 * np.cos(arc), color=plots.GREEN, lw=2)
        dials.plot([x, x], [y, y + 1], color=plots.BLUE, lw=3)
        dials.plot([x, x + np.sin(arc[-1])], [y, y + np.cos(arc[-1])], "--", color=plots.ORANGE, lw=2.6)
        dials.text(x, y - 1.15, f"pair {n}: {formats.degrees(angle)}", ha="center", va="top", size=10.5)
    dials.set(aspect="equal", xlim=(-1.3, 3.9), ylim=(-5, 1.3), xticks=(), yticks=())
    dials.spines[:].set_visible(False)
    ax.set(xlabel="from entry", ylabel="to entry", xticks=range(d_model), yticks=range(d_model))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_title(f"M for {offset} steps turns {d_model // 2} pairs, each by its own angle")
    clauses = ", ".join(f"pair {n} by {formats.degrees(angle)}" for n, angle in enumerate(angles))
    blocks = f"{d_model // 2} blocks of 2 by 2 along its diagonal, 0 elsewhere"
    return f"M for {offset} steps turns {clauses}. Matrix with {blocks}."


# --- Similarity -----------------------------------------------------------------------------------------------------


@cache
def similarity(d_model: int, base: int, length: int) -> Array:
    """Cosine similarity of every position with every other, (length, length)."""
    table = positions.sinusoidal_encoding(length, d_model, base)
    return table @ table.T / (d_model / 2)  # each row has length √(d_model / 2): sin² + cos² = 1 for each pair


@live.lab(
    height=4.2,
    d_model=live.Choice("d_model", WIDTHS, 64),
    base=live.Choice("base", BASES, 10_000),
    length=live.Choice("maximum length", LENGTHS, 64),
    offset=live.Slider("offset", 0, 31, 8),
)
def similarity_lab(figure: "Figure") -> live.Update:
    """Show how alike two positions are: a map, and its one curve."""
    map_ax, curve_ax = figure.subplots(1, 2, width_ratios=(1, 1.25))
    image = map_ax.imshow(np.zeros((2, 2)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1, **SHARP)
    (diagonal,) = map_ax.plot([], [], color=plots.GREEN, lw=2)
    map_ax.set(xlabel="position", ylabel="position")
    (curve,) = curve_ax.plot([], [], color=plots.BLUE)
    (dot,) = curve_ax.plot([0], [0], "o", color=plots.GREEN, ms=11, clip_on=False, zorder=5)
    curve_ax.axhline(0, color=plots.GREY, lw=1, ls=":")
    curve_ax.set(ylim=(-1.1, 1.15), xlabel="offset", ylabel="cosine similarity")

    def update(d_model: int, base: int, length: int, offset: int) -> str:
        S = similarity(d_model, base, length)
        image.set_data(S)
        if image.get_extent()[1] != length - 0.5:  # axes that stay need not be drawn again
            image.set_extent((-0.5, length - 0.5, length - 0.5, -0.5))
            for axis in (map_ax.xaxis, map_ax.yaxis, curve_ax.xaxis):
                axis.set_ticks(range(0, length, length // 4))
            map_ax.set(xlim=(-0.5, length - 0.5), ylim=(length - 0.5, -0.5))
            curve_ax.set_xlim(0, length - 1)
        diagonal.set_data([offset, length - 1], [0, length - 1 - offset])
        curve.set_data(np.arange(length), S[0])
        dot.set_data([offset], [S[0, offset]])
        spread = max(np.ptp(np.diagonal(S, n)) for n in range(length))
        rises = int((np.diff(S[0]) > 1e-12).sum())
        map_ax.set_title("One number along each diagonal" if spread < 1e-12 else "Diagonals are not constant")
        at = formats.minus(f"{S[0, offset]:z.2f}")
        curve_ax.set_title(f"Offset {offset}: {at}; the curve rises {rises} times")
        return (
            f"Cosine similarity of positions, d_model {d_model}, base {base}, {length} positions. The map is constant "
            f"along its diagonals, within {spread:.0e}. At offset {offset} the similarity is {at}; as the offset grows "
            f"by 1, it rises {rises} times and falls {length - 1 - rises} times; smallest {S[0].min():.2f}."
        )

    return update
