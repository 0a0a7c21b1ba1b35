"""A set has no order; the table of sines and cosines gives it one."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils import live, numbers, plots, positions
from lesson_utils._checks import Array
from lesson_utils.models import GPT, Encoder
from lesson_utils.tasks import Ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- A set has no order ----------------------------------------------------------------------------------------------


@plots.still(7.0, 3.0)
def moved_plot(figure: "Figure", words: Sequence[str], **gaps: Array) -> str:
    """How far each word's output moves when the words change places; two rows of bars, (T,) each."""
    (first, without), (second, with_) = gaps.items()
    moved = {name: int((gap > 1e-9).sum()) for name, gap in gaps.items()}
    finding = f"Outputs that change: {moved[second]} of {len(words)} {second}, {moved[first]} {first}"
    ax = figure.add_subplot()
    rows = np.arange(len(words))
    for shift, (name, gap), colour in ((-0.2, (first, without), plots.BLUE), (0.2, (second, with_), plots.ORANGE)):
        ax.barh(rows + shift, gap, 0.36, color=colour)
        for row, g in zip(rows, gap, strict=True):
            ax.text(g + 0.02, row + shift, f"{g:.2f} {name}", va="center", color=colour)
    ax.set_yticks(rows, words)
    ax.set(xlabel="distance between a word's two outputs", xlim=(0, 1.5 * max(with_.max(), without.max())))
    ax.invert_yaxis()
    ax.set_title(finding)
    listed = "; ".join(
        f"{name}: {', '.join(f'{w} {g:.2f}' for w, g in zip(words, gaps[name], strict=True))}" for name in gaps
    )
    return f"{finding}. Bars, distance between the two outputs of each word. {listed}."


def equivariance_gap(model: Encoder | GPT, ids: Ids, rng: np.random.Generator, shuffles: int = 100) -> float:
    """How far outputs are from following their tokens, at most, when the tokens change places; ids (1, T)."""
    outputs, _ = model.forward(ids)  # (1, T, ...)
    gap = 0.0
    for _ in range(shuffles):
        order = rng.permutation(ids.shape[1])
        shuffled, _ = model.forward(ids[:, order])
        gap = max(gap, float(np.abs(shuffled - outputs[:, order]).max()))
    return gap


# --- The table -------------------------------------------------------------------------------------------------------

WIDTHS, BASES, LENGTHS = (8, 16, 32, 64, 128), (10, 100, 1000, 10_000, 100_000), (32, 64, 96)
SHARP: Any = {"aspect": "auto", "interpolation": "nearest"}  # an entry of the table is a box of one colour
WAVES = ((0.0, plots.BLUE, "-"), (0.25, plots.ORANGE, "--"), (0.5, plots.GREEN, ":"))  # where in the table, and how


@live.lab(
    width=8.0,
    height=4.5,
    d_model=live.Choice("d_model", WIDTHS, 64),
    base=live.Choice("base", BASES, 10_000),
    length=live.Choice("maximum length", LENGTHS, 64),
)
def table_lab(figure: "Figure") -> live.Update:
    """The table as a heat map, and three of its columns as waves."""
    table_ax, waves_ax = figure.subplots(2, 1, height_ratios=(1.3, 1), sharex=True)
    image = table_ax.imshow(np.zeros((2, 2)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1, **SHARP)
    table_ax.set_ylabel("column")
    waves_ax.set(ylim=(-1.15, 1.75), yticks=(-1, 0, 1), xlabel="position", ylabel="entry")
    lines = [waves_ax.plot([], [], style, color=colour)[0] for _, colour, style in WAVES]
    names = [
        waves_ax.text(x, 0.985, "", color=c, transform=waves_ax.transAxes, va="top")
        for x, (_, c, _) in zip((0.01, 0.34, 0.67), WAVES, strict=True)
    ]

    def update(d_model: int, base: int, length: int) -> str:
        table = positions.sinusoidal_encoding(length, d_model, base)  # (length, d_model)
        waves = positions.wavelengths(d_model, base)
        image.set_data(table.T)
        if image.get_extent()[1:3] != [length - 0.5, d_model - 0.5]:  # axes that stay need not be drawn again
            image.set_extent((-0.5, length - 0.5, d_model - 0.5, -0.5))
            waves_ax.set_xlim(-0.5, length - 0.5)
            waves_ax.set_xticks(range(0, length, length // 8))
            table_ax.set_yticks(range(0, d_model, d_model // 4))
        fine = np.linspace(0, length - 1, 300)
        told = []
        for (share, _, _), line, name in zip(WAVES, lines, names, strict=True):
            i = int(share * d_model / 2)
            line.set_data(fine, np.sin(fine * 2 * np.pi / waves[i]))
            told.append(f"column {2 * i}: wavelength {numbers.three_figures(waves[i])}")
            name.set_text(told[-1])
        whole = int((waves <= length).sum())
        table_ax.set_title(f"{whole} of {d_model // 2} pairs of columns come full circle within {length} positions")
        waves_ax.set_title(
            f"Wavelengths from {numbers.three_figures(waves[0])} to {numbers.three_figures(waves[-1])} positions"
        )
        return (
            f"The table of sines and cosines for d_model {d_model}, base {base}, {length} positions, as a heat map: "
            f"stripes that get wider from the first columns to the last. {whole} of {d_model // 2} pairs of columns "
            f"repeat within {length} positions. Three columns as waves: {'; '.join(told)}."
        )

    return update


# --- The clock -------------------------------------------------------------------------------------------------------

HANDS = 8


@live.lab(
    height=4.2,
    position=live.Slider("position", 0, 100, 0),
    offset=live.Slider("offset k", -20, 20, 3),
    d_model=live.Choice("d_model", (16, 32, 64, 128), 16),
    base=live.Choice("base", BASES, 10_000),
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
        label = ax.text(0, -1.48, "", ha="center", fontsize=10, zorder=1)
        hands.append((before, after, label))
    title = figure.suptitle(" ", x=0.01, ha="left", weight="bold", fontsize=12.5)

    def update(position: int, offset: int, d_model: int, base: int) -> str:
        pairs = np.linspace(0, d_model // 2 - 1, HANDS).round().astype(int)
        waves = positions.wavelengths(d_model, base)[pairs]  # (hands,)
        told = []
        for (before, after, label), i, wave in zip(hands, pairs, waves, strict=True):
            for line, at in ((before, position), (after, position + offset)):
                line.set_data([0, np.sin(2 * np.pi * at / wave)], [0, np.cos(2 * np.pi * at / wave)])
            angle = offset * 360 / wave
            told.append(f"pair {i} by {numbers.degrees(angle)}")
            label.set_text(f"pair {i}: {numbers.degrees(angle)}")
        finding = f"Blue: position {position}. Orange: {abs(offset)} {'later' if offset >= 0 else 'earlier'}"
        title.set_text(f"{finding}. Their angle does not depend on the position")
        return (
            f"{HANDS} clocks, one for each of {HANDS} pairs of columns of a table with d_model {d_model} and base "
            f"{base}; hands at position {position} and at {position + offset}. Whatever the position, an offset of "
            f"{offset} turns " + ", ".join(told) + "."
        )

    return update


# --- Similarity ------------------------------------------------------------------------------------------------------


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
    offset=live.Slider("offset k", 0, 31, 8),
)
def similarity_lab(figure: "Figure") -> live.Update:
    """How alike two positions are: a map, and its one curve."""
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
        at = numbers.minus(f"{S[0, offset]:z.2f}")
        curve_ax.set_title(f"k = {offset}: {at}; the curve rises {rises} times")
        return (
            f"Cosine similarity of positions, d_model {d_model}, base {base}, {length} positions. The map is constant "
            f"along its diagonals, within {spread:.0e}. At offset {offset} the similarity is {at}; as the offset grows "
            f"by 1, it rises {rises} times and falls {length - 1 - rises} times; smallest {S[0].min():.2f}."
        )

    return update
