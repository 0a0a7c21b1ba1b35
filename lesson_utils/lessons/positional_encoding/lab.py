"""What notebook 04 calls `lab.name`, in its order."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.maths import ops, positions
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Encoder, GPTConfig, trying
from lesson_utils.maths.models.experiments import changed
from lesson_utils.maths.positions import Rotary
from lesson_utils.maths.tasks import FIRST_SYMBOL, PAD, Ids, Pair

# --- 1 · Does attention see the order? --------------------------------------------------------------------------------


@plots.still(9.2, 3.6)
def two_sentences(
    figure: "plots.Figure", words: Sequence[str], order: Sequence[int], before: Array, after: Array
) -> str:
    """Draw each word's output vector in two sentences, one strip of colour above the other.

    Args:
        words: of the first sentence.
        order: of the second, as places in the first.
        before, after: their outputs, (T, d) each, row by row of its sentence.
    """
    gaps = [float(np.abs(after[list(order).index(n)] - before[n]).max()) for n in range(len(words))]
    changed = [word for word, gap in zip(words, gaps, strict=True) if gap >= 1e-9]
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
    bar.ax.set_yticklabels([formats.minus(f"{end:.2f}") if end else "0" for end in (-largest, 0, largest)])
    ax.set_title(f"{len(words) - len(changed)} of {len(words)} words keep their output vector")
    ax.set_yticks(list(labels), list(labels.values()))
    ax.set_xticks(range(d))
    ax.set_xlabel("column of the output")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return f"… Words whose vector has changed: {', '.join(changed) or 'none'}."


def equivariance_gap(model: Encoder | GPT, ids: Ids, rng: np.random.Generator, shuffles: int = 100) -> float:
    """Return how far outputs are, at most, from following their tokens when these change places; ids (1, T)."""
    outputs, _ = model.forward(ids)  # (1, T, ...)
    gap = 0.0
    for _ in range(shuffles):
        order = rng.permutation(ids.shape[1])
        shuffled, _ = model.forward(ids[:, order])
        gap = max(gap, float(np.abs(shuffled - outputs[:, order]).max()))
    return gap


# --- 2 · Inventing a table --------------------------------------------------------------------------------------------


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
def digits_beside_sines(figure: "plots.Figure", length: int = 16, columns: int = 4) -> str:
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
        "… Steps to the next position are shares of the largest distance between two rows. "
        f"Left, {words}: each repeats after twice as many positions as the one before. "
        "Right, sines whose waves get longer in the same way: softer stripes."
    )


WIDTHS, BASES, LENGTHS = (8, 16, 32, 64, 128), (10, 100, 1000, 10_000, 100_000), (32, 64, 96)
SHARP: Any = {"aspect": "auto", "interpolation": "nearest"}  # an entry of the table is a box of one colour
WAVES = ((0.0, plots.BLUE, "-"), (0.25, plots.ORANGE, "--"), (0.5, plots.GREEN, ":"))  # where in the table, and how


@live.lab(
    width=8.0,
    height=4.4,
    neutral="It opens with 8 columns; the notebook asks about 64.",
    telling={"d_model": 64},
    example=lambda: positions.sinusoidal_encoding,
    d_model=live.Choice("d_model", WIDTHS, 8),
    base=live.Choice("base", BASES, 10_000),
    length=live.Choice("maximum length", LENGTHS, 64),
)
def table_lab(figure: "plots.Figure", make_table: Callable[[int, int, float], Array]) -> live.Update:
    """Show the table as a heat map, all sines above all cosines, and three of its columns as waves.

    Args:
        make_table: `make_table(length, d_model, base)`, the learner's.
    """
    table_ax, waves_ax = figure.subplots(2, 1, height_ratios=(1.3, 1), sharex=True)
    image = table_ax.imshow(np.zeros((2, 2)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1, **SHARP)
    figure.colorbar(image, ax=(table_ax, waves_ax), label="entry of the table", ticks=(-1, 0, 1), shrink=0.6)
    table_ax.set_ylabel("pair i")
    table_ax.yaxis.set_label_coords(-0.12, 0.5)  # beside the longest labels that there can be, "cos 32"
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
            f"… The table of sines and cosines for d_model {d_model} and base {base} as a heat map, sines above "
            "cosines: stripes that get wider from the first pair to the last. Three sines as waves: "
            f"{'; '.join(clauses)}."
        )

    return update


# --- 3 · Absolute and relative positions ------------------------------------------------------------------------------


def diagonal_spread(S: Array) -> float:
    """Return how much scores with equal offset differ at most; 0 if a score depends on the offset only."""
    return float(max(np.ptp(np.diagonal(S, n)) for n in range(1 - len(S), len(S))))


@plots.still(9.6, 3.0)
def score_maps(figure: "plots.Figure", **scores: Array) -> str:
    """Draw what positions do to the scores: maps side by side, each with what its diagonals say; NaN where hidden."""
    clauses = []
    axes = figure.subplots(1, len(scores))
    for n, (ax, (name, S)) in enumerate(zip(axes, scores.items(), strict=True)):
        seen = np.isfinite(S)
        spread = diagonal_spread(np.where(seen, S, 0) if seen.all() else np.where(seen, S, np.tril(S.T, -1).T))
        verdict = "no positions" if not S[seen].any() else "offset only" if spread < 1e-9 else "place matters"
        top = float(np.abs(S[seen]).max()) or 1.0
        image = ax.imshow(S, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-top, vmax=top)
        ticks = range(0, len(S), 8)
        ax.set(xlabel="key at", ylabel="query at" if n == 0 else "", title=f"{name}:\n{verdict}")
        ax.set_xticks(ticks, [str(i) for i in ticks])
        ax.set_yticks(ticks, [str(i) for i in ticks])
        ax.spines[:].set_visible(False)
        clauses.append(f"{spread:.2g} ({name})")
    bar = figure.colorbar(image, ax=axes, label="score", ticks=(-top, 0, top), shrink=0.8)
    bar.ax.set_yticklabels(["lowest", "0", "highest"])
    return f"… Scores by position of query and key. Those with equal offset differ by up to {', '.join(clauses)}."


@plots.still(9.2, 5.0)
def rotation_drawn(figure: "plots.Figure", offset: int = 3, d_model: int = 8, base: float = 10.0) -> str:
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
    turns = ", ".join(f"pair {n} by {formats.degrees(angle)}" for n, angle in enumerate(angles))
    return f"… It turns {turns}. Matrix with {d_model // 2} blocks of 2 by 2 along its diagonal, 0 elsewhere."


HANDS = 8


@live.lab(
    height=4.2,
    telling=({"position": 0}, {"position": 40}),
    position=live.Slider("position", 0, 100, 0),
    offset=live.Slider("offset", -20, 20, 3),
    d_model=live.Choice("d_model", (16, 32, 64, 128), 16),
    base=live.Choice("base", BASES, 100),
)
def clock_lab(figure: "plots.Figure") -> live.Update:
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


@cache
def similarity(d_model: int, base: int, length: int) -> Array:
    """Cosine similarity of every position with every other, (length, length)."""
    table = positions.sinusoidal_encoding(length, d_model, base)
    return table @ table.T / (d_model / 2)  # each row has length √(d_model / 2): sin² + cos² = 1 for each pair


@live.lab(
    height=4.2,
    telling={"offset": 19},
    d_model=live.Choice("d_model", WIDTHS, 64),
    base=live.Choice("base", BASES, 10_000),
    length=live.Choice("maximum length", LENGTHS, 64),
    offset=live.Slider("offset", 0, 31, 8),
)
def similarity_lab(figure: "plots.Figure") -> live.Update:
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
            f"… Cosine similarity of {length} positions, d_model {d_model}, base {base}. Along a diagonal it differs "
            f"by {spread:.0e} at most. As the offset grows, it falls {length - 1 - rises} times, and its smallest "
            f"value is {formats.minus(f'{S[0].min():.2f}')}."
        )

    return update


# --- 4 · Turn the queries and keys ------------------------------------------------------------------------------------

QUERY_ANGLE, KEY_ANGLE, RATE = 20.0, 65.0, 9.0  # degrees: of q and k at position 0, and what one position adds


@live.lab(
    height=4.1,
    neutral="It shows one position; what changes on the way to the next takes a move.",
    telling=({"position": 50}, {"position": 80}),
    position=live.Slider("query at position m", 40, 100, 50),
    distance=live.Slider("key stands back by", 0, 40, 2),
)
def rotary_lab(figure: "plots.Figure") -> live.Update:
    """Show a query and a key as hands in one plane; their angle depends on the distance of their positions alone."""
    plane, chart = figure.subplots(1, 2, width_ratios=(1, 1.25))
    turn = np.linspace(0, 2 * np.pi, 120)
    plane.plot(np.cos(turn), np.sin(turn), color="#BBBBBB", lw=1, zorder=1)
    plane.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xticks=(), yticks=())
    plane.spines[:].set_visible(False)
    drawn = {}
    for name, angle, colour in (("q", QUERY_ANGLE, plots.QUERY), ("k", KEY_ANGLE, plots.KEY)):
        x, y = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        plane.plot([0, x], [0, y], ":", color=colour, lw=1.6, zorder=1)
        (hand,) = plane.plot([], [], color=colour, lw=4, solid_capstyle="round")
        label = plane.text(0, 0, name, color=colour, weight="bold", size=14, ha="center", va="center")
        drawn[name] = hand, label
    (arc,) = plane.plot([], [], color=plots.PURPLE, lw=2.4)
    at = np.linspace(0, 40, 161)
    chart.plot(at, np.cos(np.radians(QUERY_ANGLE - KEY_ANGLE + RATE * at)), color=plots.INK)
    (dot,) = chart.plot([3], [0], "o", color=plots.PURPLE, ms=12, clip_on=False)
    chart.axhline(0, color=plots.GREY, lw=1, ls=":")
    chart.set(xlim=(0, 40), ylim=(-1.1, 1.1), xlabel="distance m − n", ylabel="q · k after turning")

    def update(position: int, distance: int) -> str:
        q, k = QUERY_ANGLE + RATE * position, KEY_ANGLE + RATE * (position - distance)
        for (hand, label), angle in zip(drawn.values(), np.radians((q, k)), strict=True):
            x, y = np.cos(angle), np.sin(angle)
            hand.set_data([0, x], [0, y])
            label.set_position((1.18 * x, 1.18 * y))
        between = np.radians(np.linspace(k, q, 60))
        arc.set_data(0.5 * np.cos(between), 0.5 * np.sin(between))
        score = np.cos(np.radians(q - k))
        dot.set_data([distance], [score])
        number, angle = formats.minus(f"{score:z.2f}"), formats.degrees((q - k + 180) % 360 - 180)
        plane.set_title(f"m = {position}, n = {position - distance}: the angle is {angle}")
        chart.set_title(f"q · k = {number} at distance {distance}")
        return f"… The query stands at position m and the key at n, and each is turned by {RATE:g}° a position."

    return update


@plots.still(9.2, 4.4)
def score_by_distance(
    figure: "plots.Figure", rotate: Callable[[Array, Array], Array], d_k: int = 8, distances: int = 64, best: int = 5
) -> str:
    """Draw a query's score against distance, the part of each pair and their sum; query and key agree `best` apart.

    Args:
        rotate: `rotate(x, positions)`, the learner's.
    """
    key: Array = np.ones((1, d_k))
    query = rotate(key, np.array([-float(best)]))
    at = np.arange(distances, dtype=float)  # the key stands at position 0
    parts = rotate(np.repeat(query, distances, axis=0), at) * rotate(key, np.zeros(1))  # (distances, d_k)
    pairs = parts.reshape(distances, d_k // 2, 2).sum(axis=-1)
    score = pairs.sum(axis=1)
    peaks = [n for n in range(1, distances - 1) if score[n] > max(score[n - 1], score[n + 1])]
    steps = " or ".join(str(n) for n in sorted(set(np.diff(peaks))))
    listed = ", ".join(map(str, peaks))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.1))
    waves = positions.wavelengths(d_k)
    looks = zip((plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE), ("-", "--", ":", "-."), strict=True)
    clauses = []
    for i, (colour, line) in enumerate(looks):
        upper.plot(at, pairs[:, i], line, color=colour, lw=1.8)
        clauses.append(f"pair {i}: one turn in {formats.three_figures(waves[i])} positions")
        upper.text(1.01, 0.92 - 0.28 * i, clauses[-1], color=colour, transform=upper.transAxes, va="center", size=10)
    lower.plot(at, score, color=plots.INK)
    lower.plot(peaks, score[peaks], "o", color=plots.INK, ms=6)
    lower.text(1.01, 0.5, f"sum: peaks at\n{listed}", transform=lower.transAxes, va="center", size=10)
    upper.set_title(f"The score is highest {int(score.argmax())} apart, and peaks again every {steps} positions")
    upper.set_ylabel("part of a pair")
    lower.set(xlabel="distance m − n", ylabel="score, their sum", xlim=(0, distances - 1))
    for ax in (upper, lower):
        ax.axhline(0, color=plots.GREY, lw=1, ls=":")
    return (
        f"… The peaks are at {listed}. Above, the part of each of the {d_k // 2} pairs, {'; '.join(clauses)}. "
        "Below, their sum, which is the score of a query and a key by their distance."
    )


# --- 5 · Beyond the training length -----------------------------------------------------------------------------------

KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi")
NAMES = {kind: kind for kind in KINDS} | {"none": "no positions", "alibi": "ALiBi"}
NAMES["window"] = "rotary + window"  # a rotary model whose queries see the last keys only
LOOKS: dict[str, tuple[str, Any]] = {  # colour and line
    "none": (plots.INK, (0, (1, 1))),
    "sinusoidal": (plots.BLUE, "-"),
    "learned": (plots.PURPLE, ":"),
    "rotary": (plots.ORANGE, "--"),
    "alibi": (plots.GREEN, "-."),
    "window": (plots.ORANGE, "-"),
}
BACK, SYMBOLS = 5, 12
RECALL_VOCABULARY = FIRST_SYMBOL + SYMBOLS


def recall(rng: np.random.Generator, batch: int, T: int) -> Pair:
    """Random symbols; every position reports the symbol 5 places back, the first five report nothing (padding)."""
    source = rng.integers(FIRST_SYMBOL, RECALL_VOCABULARY, size=(batch, T))
    target = np.full_like(source, PAD)
    target[:, BACK:] = source[:, :-BACK]
    return source, target


class ByPosition(NamedTuple):
    """The results of a model at each position, mean over sequences."""

    correct: Array  # share of right answers, (T,)
    bits: Array  # loss in bits, (T,)


def by_position(
    model: GPT, batch: tuple[Ids, Ids], window: int | None = None, rotate: Callable[[Array, Array], Array] | None = None
) -> ByPosition:
    """Test a model at each position.

    Args:
        window: every position sees only that many keys, itself included.
        rotate: turns the queries and keys of a rotary model in place of our own function.
    """
    ids, target = batch
    T = ids.shape[1]
    mask = causal_mask(T)
    if window is not None:
        mask = mask & ~np.tril(mask, -window)
    turns = [(heads, "rotary", SimpleNamespace(turn=rotate)) for heads in model.heads()["decoder"]] if rotate else []
    with changed(turns):
        logits, _ = model.forward(ids, mask=mask)  # (B, T, V)
    answers = np.take_along_axis(ops.softmax(logits), target[..., None], axis=-1)[..., 0]  # (B, T)
    bits = -np.log2(np.maximum(answers, np.finfo(answers.dtype).tiny)).mean(axis=0)
    return ByPosition((logits.argmax(axis=-1) == target).mean(axis=0), bits)


class Stretches(NamedTuple):
    """Means over three stretches of positions: trained, the next half length, and the half length after that."""

    trained: float
    to_1_5: float
    to_2: float


def stretches(curve: Array, first: int = 0) -> Stretches:
    """Average a curve over twice the training length, (2L,), in three stretches, from position `first` on."""
    L = len(curve) // 2
    return Stretches(*(float(part.mean()) for part in (curve[first:L], curve[L : L + L // 2], curve[L + L // 2 :])))


def stretch_table(curves: Mapping[str, Array], first: int = 0) -> tables.Table:
    """List the means of `stretches`, a row a kind."""
    L = len(next(iter(curves.values()))) // 2
    places = (f"{a}–{b}" for a, b in ((first, L - 1), (L, L + L // 2 - 1), (L + L // 2, 2 * L - 1)))
    return tables.table(("positions", *places), ((NAMES[k], *stretches(curve, first)) for k, curve in curves.items()))


@plots.still(9.2, 4.2)
def length_plot(
    figure: "plots.Figure",
    curves: Mapping[str, Array],
    quantity: str,
    best: Callable[..., str],
    first: int = 0,
    bottom: float = 0.0,
    guessing: float | None = None,
) -> str:
    """Draw curves over positions `first` … 2L − 1, by kind, named where they end; the training length is shaded.

    Args:
        quantity: what the curves show: "share correct" or "bits per character".
        best: `max` or `min`, what is best of it.
        bottom: where the axis begins.
        guessing: what guessing would give, where that is to be drawn.
    """
    L = len(next(iter(curves.values()))) // 2
    ends = {kind: stretches(curve, first) for kind, curve in curves.items()}
    ax = figure.add_subplot()
    ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    ax.text(L - 1, 0.015, "trained up to here", transform=ax.get_xaxis_transform(), ha="right", color=plots.GREY)
    at = np.arange(first, 2 * L)
    for kind, curve in curves.items():
        colour, line = LOOKS[kind]
        ax.plot(at, curve[first:], ls=line, color=colour)
    top = 1.05 if best is max else 1.02 * max(float(curve[first:].max()) for curve in curves.values())
    ax.set(xlim=(-0.5, 2 * L - 0.5), ylim=(bottom, top), xlabel="position", ylabel=quantity)
    ax.set_title(_finding(ends, L - 1, best is max))
    order = sorted(curves, key=lambda kind: float(curves[kind][-1]))
    heights = _apart([float(curves[kind][-1]) for kind in order], 0.062 * (top - bottom), bottom, top)
    for kind, height in zip(order, heights, strict=True):
        colour, _ = LOOKS[kind]
        ax.plot([2 * L - 1, 2 * L + 0.5], [curves[kind][-1], height], color=colour, lw=0.8, clip_on=False)
        ax.text(2 * L + 0.8, height, NAMES[kind], color=colour, va="center", weight="bold", clip_on=False)
    if guessing is not None:
        ax.axhline(guessing, color=plots.GREY, lw=1)
        ax.text(0, guessing, "guessing", color=plots.GREY, va="bottom", size=9)
    ticks = {0: "0", L // 2: f"{L // 2}", L: f"{L} (1×)", L + L // 2: f"{L + L // 2} (1.5×)", 2 * L - 1: "2×"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    listed = "; ".join(f"{NAMES[kind]} " + ", ".join(f"{x:.2f}" for x in end) for kind, end in ends.items())
    return (
        f"… {quantity.capitalize()} by position, trained on positions up to {L - 1}. Means over the training "
        f"length, the half after it, and the half after that: {listed}."
    )


def _apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move the heights of labels, ascending, apart by at least `gap`, within low … high."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else max(height, low + gap / 2))
    over = moved[-1] - (high - gap / 2)
    for n in reversed(range(len(moved))):
        limit = high - gap / 2 if n == len(moved) - 1 else moved[n + 1] - gap
        moved[n] = min(moved[n], limit) if over > 0 else moved[n]
    return moved


def _finding(ends: Mapping[str, Stretches], last: int, more_is_better: bool) -> str:
    """Say who gets worse beyond the training length, and who has not learned the task within it."""
    not_yet = [kind for kind, end in ends.items() if more_is_better and end.trained < 0.5]
    limit = "" if more_is_better else " by more than 0.2 bits"
    worse = [kind for kind, end in ends.items() if kind not in not_yet and not _held(end, more_is_better)]
    named = ", ".join(NAMES[kind] for kind in worse) or "none of them"
    text = f"Worse beyond {last}{limit}: {named}"
    return text + "; task not learned: " * bool(not_yet) + ", ".join(NAMES[kind] for kind in not_yet)


def _held(end: Stretches, more_is_better: bool) -> bool:
    """Return whether little is lost beyond the training length: 0.05 of the share correct, or 0.2 bits."""
    loss = end.trained - min(end) if more_is_better else max(end) - end.trained
    return loss < (0.05 if more_is_better else 0.2)


# --- 5 · Where does the head look? ------------------------------------------------------------------------------------

TURN = 2 * np.pi  # the fastest hand comes round after so many positions: its rate is 1 in every table


def on_turns(length: int) -> list[int]:
    """Return the whole offsets below `length` that are nearest to five back and whole turns of the fastest hand."""
    return [n for n in (round(BACK + TURN * k) for k in range(length)) if n < length]


def five_back(model: GPT, ids: Ids, L: int) -> Array:
    """Return the weights, (T, T), mean over sequences, of the head that looks five back most within L positions."""
    _, cache = model.forward(ids)
    maps = np.concatenate([weights.mean(axis=0) for weights in model.maps(cache)["decoder"]])  # (layers · h, T, T)
    return max(maps, key=lambda weights: float(np.diagonal(weights[:L, :L], -BACK).mean()))


def by_offset(weights: Array) -> Array:
    """Write the weights of each query by how far back their keys stand: (T, T), 0 where there is no such key."""
    T = len(weights)
    back = np.arange(T)[:, None] - np.arange(T)  # the key of query t that stands n back is key t − n
    return np.where(back >= 0, weights[np.arange(T)[:, None], np.maximum(back, 0)], 0.0)


def share_on_turns(offsets: Array) -> tuple[Array, Array]:
    """Return which share of each query's weight lies on `on_turns`, and which share of its keys does, (T,) each."""
    T = len(offsets)
    on = on_turns(T)
    return offsets[:, on].sum(axis=1), np.array([sum(n <= t for n in on) / (t + 1) for t in range(T)])


def _weights_by_offset(recallers: Mapping[str, GPT], longer: Ids) -> tuple[dict[str, Array], int]:
    L = longer.shape[1] // 2
    return {kind: by_offset(five_back(recallers[kind], longer, L)) for kind in ("rotary", "sinusoidal", "learned")}, L


def _example_of_turns() -> tuple[dict[str, GPT], Ids]:
    models = {}
    for kind in ("rotary", "sinusoidal", "learned"):
        config = GPTConfig(vocab=20, d_model=16, num_heads=2, num_layers=1, positions=kind)
        models[kind] = GPT(config, np.random.default_rng(0))
    return models, recall(np.random.default_rng(1), 2, 64)[0]


@live.lab(
    height=4.3,
    neutral="It opens within the training length; what comes beyond is drawn when the position gets there.",
    telling={"position": 60},
    controls=lambda offsets, L: {
        "kind": live.Choice("positions", tuple(offsets), "rotary"),
        "position": live.Slider("query at position", BACK + 1, 2 * L - 1, L - 8),
    },
    prepare=_weights_by_offset,
    example=_example_of_turns,
)
def turns_lab(figure: "plots.Figure", offsets: Mapping[str, Array], L: int) -> live.Update:
    """Show how far back the five-back head looks: its largest weight up to a position, and all its weights there."""
    trail_ax, bars_ax = figure.subplots(1, 2, width_ratios=(1.1, 1))
    T = 2 * L
    turns = [BACK + TURN * k for k in range(len(on_turns(T)))]
    trail_ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    trail_ax.text(L - 1, 0.5, "trained up to here", ha="right", va="bottom", color=plots.GREY)
    look: Any = {"color": plots.GREY, "lw": 1, "ls": ":"}
    dotted = trail_ax.hlines(turns, -0.5, T - 0.5, **look), bars_ax.vlines(turns, 0, 1.04, **look)
    (trail,) = trail_ax.plot([], [], "o", ms=5, color=plots.BLUE, clip_on=False)
    (last,) = trail_ax.plot([0], [0], "o", ms=11, color=plots.INK, clip_on=False, zorder=5)
    (bars,) = bars_ax.plot([], [], drawstyle="steps-mid", color=plots.BLUE)
    trail_ax.set(xlim=(-0.5, T - 0.5), ylim=(-0.5, T - 0.5), xlabel="query at position")
    trail_ax.set_ylabel("largest weight: how far back")
    trail_ax.set_xticks([0, L // 2, L, L + L // 2, T - 1])
    bars_ax.set(xlim=(-0.5, T - 0.5), ylim=(0, 1.04), xlabel="how far back", ylabel="weight")

    def update(kind: str, position: int) -> str:
        weights = offsets[kind]
        colour = LOOKS[kind][0]
        so_far = np.arange(BACK + 1, position + 1)
        largest = weights[so_far].argmax(axis=1)
        trail.set_data(so_far, largest)
        last.set_data([position], [largest[-1]])
        bars.set_data(np.arange(position + 1), weights[position, : position + 1])
        for line in (trail, bars):
            line.set_color(colour)
        share, chance = (values[position] for values in share_on_turns(weights))
        beyond = position >= L
        for lines in dotted:
            lines.set_visible(beyond)
        label = "how far back" + f" (dotted: {BACK}, plus whole turns)" * beyond
        if bars_ax.get_xlabel() != label:  # axes that stay need not be drawn again
            bars_ax.set_xlabel(label)
        trail_ax.set_title(f"{NAMES[kind].capitalize()}, position {position}: looks {largest[-1]} back")
        bars_ax.set_title(
            f"{share:.0%} on dotted lines (evenly: {chance:.0%})" if beyond else f"Weights of position {position}"
        )
        told = f"… The largest weight of each query up to position {position}, in the head that learned five back"
        if not beyond:
            return f"{told}. All these positions lie within the training length."
        return f"{told}. Dotted lines are at {BACK} back and whole turns of the fastest hand."

    return update


def held(model: GPT, batch: Pair, pairs: Collection[int], last: int, to: int | None = None) -> Array:
    """Test a rotary model some of whose hands stop: further apart than `last`, these pairs turn no further.

    Args:
        to: the distance whose angle they then get; None: `last`.

    Returns:
        the share of right answers at each position, (T,).
    """

    stop = last if to is None else to

    def attend(Q: Array, K: Array, V: Array, mask: Array) -> tuple[Array, Array]:
        T, d = Q.shape[-2:]
        rates = TURN / positions.wavelengths(d)
        apart = np.arange(T)[:, None] - np.arange(T)
        q, k = (np.ascontiguousarray(x, np.float64).view(np.complex128) for x in (Q, K))  # a pair is a + bi
        scores = np.zeros((*Q.shape[:-1], T))
        for i, rate in enumerate(rates):
            angle = rate * (np.where(apart > last, stop, apart) if i in pairs else apart)
            scores += (q[..., :, None, i] * np.conj(k[..., None, :, i]) * np.exp(1j * angle)).real
        weights = ops.softmax(np.where(mask, scores / np.sqrt(d), -np.inf)).astype(V.dtype)
        return weights @ V, weights

    with trying(model, attend=attend):
        return by_position(model, batch, rotate=lambda x, at: x).correct  # attend turns, so nothing is turned before


# --- 5 · Stretching rotary positions ----------------------------------------------------------------------------------

METHODS = ("window", "interpolation", "larger base")  # first the one that a factor does not change
FACTORS = (1, 2, 4, 8)


def stretched(model: GPT, method: str, factor: int) -> GPT:
    """Make a rotary GPT with the same parameters for texts `factor` times as long as in training, without training.

    Args:
        method: "interpolation" squeezes positions together (Chen et al., 2023); "larger base" slows the slow pairs only
            (base · factor^(d_k / (d_k − 2)), "NTK-aware"); else nothing is changed.
    """
    c = model.config
    d_k = c.d_model // c.num_heads
    base, scale = 10_000.0, 1.0
    if method == "interpolation":
        scale = 1 / factor
    elif method == "larger base":
        base *= factor ** (d_k / (d_k - 2))
    copy = GPT(replace(c, rotary=Rotary(base, scale)), np.random.default_rng(0))
    for name, param in copy.params().items():
        param.value[...] = model.params()[name].value
    return copy


def stretch_curves(model: GPT, batch: tuple[Ids, Ids], L: int) -> dict[tuple[str, int], Array]:
    """Bits by position, (T,), by method and factor, of a rotary model that was trained on L positions."""
    plain = by_position(model, batch).bits
    window = by_position(model, batch, window=L).bits
    curves = {}
    for method, factor in itertools.product(METHODS, FACTORS):
        if method == "window":
            curves[method, factor] = window
        elif factor == 1:
            curves[method, factor] = plain
        else:
            curves[method, factor] = by_position(stretched(model, method, factor), batch).bits
    return curves


def _curves_and_length(model: GPT, pages: tuple[Ids, Ids], L: int = 32) -> tuple[dict[tuple[str, int], Array], int]:
    return stretch_curves(model, pages, L), L


def _example_of_stretches() -> tuple[GPT, tuple[Ids, Ids]]:
    rng = np.random.default_rng(0)
    model = GPT(GPTConfig(vocab=20, d_model=16, num_heads=2, num_layers=1, positions="rotary"), rng)
    ids = rng.integers(20, size=(2, 65))
    return model, (ids[:, :-1], ids[:, 1:])


@live.lab(
    height=4.0,
    neutral="At factor 1 nothing is changed yet; the dotted curve appears with the first change.",
    telling=({"method": "window"}, {"factor": 4}),
    controls=lambda curves, L: {
        "method": live.Choice("method", METHODS, "larger base"),
        "factor": live.Choice("factor", FACTORS, 1),
    },
    prepare=_curves_and_length,
    example=_example_of_stretches,
)
def stretch_lab(figure: "plots.Figure", curves: Mapping[tuple[str, int], Array], L: int) -> live.Update:
    """Show rotary positions stretched without training: bits by position, by method and factor."""
    ax = figure.add_subplot()
    plain = curves["larger base", 1]
    T = len(plain)
    ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    ax.text(L - 1, 0.015, "trained up to here", transform=ax.get_xaxis_transform(), ha="right", color=plots.GREY)
    width = max(T // 32, 1)
    smooth = {key: _smooth(curve, width) for key, curve in curves.items()}
    at = np.arange(len(smooth["larger base", 1])) + (width - 1) / 2
    ax.plot(at, smooth["larger base", 1], ":", color=plots.GREY, lw=2)
    (line,) = ax.plot(at, smooth["larger base", 1], color=plots.ORANGE)
    top = 1.02 * max(curve.max() for curve in smooth.values())
    ax.set(xlim=(-0.5, T - 0.5), ylim=(0.8 * min(c.min() for c in smooth.values()), top))
    ax.set(xlabel="position (dotted: nothing changed)", ylabel="bits per character")
    ax.set_xticks([n * L for n in range(T // L + 1)], [f"{n}×" if n else "0" for n in range(T // L + 1)])

    def update(method: str, factor: int) -> str:
        curve = curves[method, factor]
        line.set_ydata(smooth[method, factor])
        inside, twice, rest = curve[L // 4 : L].mean(), curve[L : 2 * L].mean(), curve[2 * L :]
        finding = f"{inside:.2f} bits within, {twice:.2f} up to 2×" + (
            f", {rest.mean():.2f} beyond" if len(rest) else ""
        )
        name = f"Window of {L} keys" if method == "window" else f"{method.capitalize()} × {factor}"
        ax.set_title(f"{name}: {finding}")
        return f"… Rotary positions, factor {factor}. Means over positions {L // 4} to {L - 1}, and further out."

    return update


def _smooth(curve: Array, width: int) -> Array:
    return np.convolve(curve, np.full(width, 1 / width), "valid")
