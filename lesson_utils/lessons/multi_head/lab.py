"""What notebook 03 calls `lab.name`, in its order: live figures here, the rest from `experiment` and `drawings`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import tint
from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.drawings import (
    TOKENS,
    WIDTH,
    accuracy_plot,
    digits,
    head_jobs,
    heads_drawn,
    one_each,
    one_head_blurs,
    removals,
)
from lesson_utils.lessons.multi_head.experiment import (
    LENGTH,
    OFFSETS,
    SYMBOLS,
    MultiHeadAttention,
    Result,
    examine,
    faster,
    held_out,
    main_offset,
    scramble,
    self_attention,
    survey,
    uneven,
    untrained,
    weights_held,
    widths,
)
from lesson_utils.maths import models
from lesson_utils.maths.checks import Array

# --- 2 · Split and merge ----------------------------------------------------------------------------------------------

Whole = NDArray[np.integer[Any]]
COLOURS = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE)  # one for each token
GAP = 0.7
FOLLOWED = 25  # the entry that wears a ring


def named_entries(tokens: int = TOKENS, width: int = WIDTH) -> Whole:
    """Make an array (tokens, width) of whole numbers whose entries name themselves: 25 is token 2, column 5."""
    return 10 * np.arange(tokens)[:, None] + np.arange(width)


def _places(array: Whole) -> Array:
    """Place the entries of an array of two or three axes, blocks of rows side by side: (..., 2)."""
    blocks, rows, columns = array.reshape(-1, *array.shape[-2:]).shape
    x = np.arange(blocks)[:, None, None] * (columns + GAP) + np.arange(columns)  # (blocks, 1, columns)
    y = np.broadcast_to(np.arange(rows)[:, None], (blocks, rows, columns))
    return np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(*array.shape, 2)


class _Cells:
    """Squares with a number each, coloured by token, which can move; one wears a ring."""

    def __init__(self, ax: "plots.Axes", array: Whole, strength: float = 1.0) -> None:
        from matplotlib.patches import Rectangle

        self.squares, self.numbers = {}, {}
        for entry in array.ravel().tolist():
            colour = tint(COLOURS[entry // 10], strength)
            self.squares[entry] = Rectangle((0, 0), 0.94, 0.94, color=colour, lw=0)
            ax.add_patch(self.squares[entry])
            ink = "white" if strength == 1 else plots.GREY
            self.numbers[entry] = ax.text(0, 0, f"{entry:02}", ha="center", va="center", color=ink)
        self.labels = [ax.text(0, 0, "", va="bottom") for _ in range(TOKENS)]
        self.ring = Rectangle((0, 0), 1.02, 1.02, fill=False, ec=plots.INK, lw=3, zorder=5)
        ax.add_patch(self.ring)
        self.show(array, [])

    def show(self, array: Whole, names: Sequence[str], left: float = 0.0, top: float = 0.0) -> None:
        """Move every square to its place in `array`; `names` stand over the blocks."""
        places = _places(array).reshape(-1, 2) + np.array((left, top))
        for entry, (x, y) in zip(array.ravel().tolist(), places, strict=True):
            self.squares[entry].set_xy((x, y))
            self.numbers[entry].set_position((x + 0.47, y + 0.49))
        for n, label in enumerate(self.labels):
            label.set_text(names[n] if n < len(names) else "")
            label.set_position((left + n * (array.shape[-1] + GAP), top - 0.15))
        x, y = self.squares[FOLLOWED].get_xy()
        self.ring.set_xy((x - 0.04, y - 0.04))


def _frame(ax: "plots.Axes", width: float, rows: float) -> None:
    ax.set(xlim=(-0.1, width), ylim=(rows + 0.1, -0.9), aspect="equal", anchor="NW", xticks=(), yticks=())
    ax.spines[:].set_visible(False)


@live.lab(
    height=4.4,
    telling={"step": 2},
    heads=live.Choice("heads", (2, 3), 2),
    step=live.Slider("step", 1, 4, 1),
)
def split_lab(figure: "plots.Figure") -> live.Update:
    """Split and merge, one operation at a time, before and after, on entries that name themselves."""
    from matplotlib.patches import FancyArrowPatch

    code, ax = figure.subplots(1, 2, width_ratios=(1, 1.45))
    code.set(xlim=(0, 1), ylim=(5.2, -1.4), xticks=(), yticks=())
    code.spines[:].set_visible(False)
    places = (0, 0.5, 0.79)
    font: dict[str, Any] = {"va": "center", "size": 11}
    for place, name in zip(places, ("step", "shape", f"{FOLLOWED} is at"), strict=True):
        code.text(place, -0.85, name, color=plots.GREY, **font)
    code.plot([0, 1], [-0.48, -0.48], color=plots.GREY, lw=0.8)
    columns = [[code.text(place, step, "", **font) for step in range(5)] for place in places]
    x = named_entries()
    room = TOKENS * 3 + (TOKENS - 1) * GAP  # the width of the widest arrays
    _frame(ax, room + 0.1, 9.7)
    before, after = _Cells(ax, x, 0.25), _Cells(ax, x)
    middle = room / 2
    look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 18, "color": plots.INK, "lw": 2}
    ax.add_patch(FancyArrowPatch((middle, 4.15), (middle, 5.05), **look))
    operation = ax.text(middle + 0.3, 4.55, "", va="center", weight="bold")

    def update(heads: int, step: int) -> str:
        d_k = WIDTH // heads
        cut = x.reshape(TOKENS, heads, d_k)  # (T, h, d_k)
        split = cut.swapaxes(0, 1)  # (h, T, d_k)
        tokens = [f"token {t}" for t in range(TOKENS)]
        names = [f"head {i}" for i in range(heads)]
        stages: Any = (
            (x, ["x"], "x", ""),
            (cut, tokens, f".reshape({TOKENS}, {heads}, {d_k})", f"reshape cuts each token into {heads} pieces"),
            (split, names, ".swapaxes(0, 1)", "swapaxes gives each head a piece of every token"),
            (cut, tokens, ".swapaxes(0, 1)", "swapaxes puts the pieces of each token together"),
            (x, ["x"], f".reshape({TOKENS}, {WIDTH})", f"reshape joins the pieces of {heads} heads to x"),
        )
        at = [np.argwhere(stage[0] == FOLLOWED)[0].tolist() for stage in stages]
        for n, row in enumerate(zip(*columns, strict=True)):
            known = stages[n][0].shape, at[n]  # later steps don't show what they lead to
            label = f"{n}  {stages[n][2]}"
            for text, words in zip(row, (label, *(known if n <= step else ("", ""))), strict=True):
                text.set_text(str(words))
                text.set_color(plots.INK if n <= step else "#8A8A8A")
                text.set_weight("bold" if n == step else "normal")
        for cells, (array, over, *_), bottom in zip((before, after), stages[step - 1 : step + 1], (4, 0), strict=True):
            width = _places(array)[..., 0].max() + 1
            top = 5.65 if bottom == 0 else bottom - array.shape[-2]  # the first stands on the arrow, the second below
            cells.show(array, over, float(room - width) / 2, top)
        operation.set_text(stages[step][2])
        code.set_title(f"Step {step}: {stages[step][3]}")
        now = stages[step][0]
        return (
            f"… With {heads} heads the shape is {now.shape}. Entry {FOLLOWED} moves from {at[step - 1]} to {at[step]}. "
            f"All entries now: {now.tolist()}."
        )

    return update


@plots.still(9.0, 2.9)
def scrambled(figure: "plots.Figure", right: Whole, wrong: Whole) -> str:
    """Draw two ways to split heads side by side, (h, T, d_k) each, of `named_entries`."""
    rows = np.arange(right.shape[1])[:, None]
    told = []
    titles = "With the swap", "Without it"
    for ax, title, heads in zip(figure.subplots(1, 2), titles, (right, wrong), strict=True):
        _frame(ax, heads.shape[0] * (heads.shape[-1] + GAP), heads.shape[1])
        names = [f"head {i}" for i in range(len(heads))]
        _Cells(ax, heads).show(heads, names)
        off = int((heads // 10 != rows).any(axis=-1).sum())
        ax.set_title(f"{title}: {off} of {heads.shape[0] * heads.shape[1]} rows misplaced")
        held = "; ".join(f"{n} holds tokens {(h[:, 0] // 10).tolist()}" for n, h in zip(names, heads, strict=True))
        told.append(f"{title}, {held}")
    return f"… {'. '.join(told)}."


# --- 4 · What each head does ------------------------------------------------------------------------------------------


def _tiles(count: int) -> list[tuple[float, float, float]]:
    """Left, top and size of that many square tiles in a square of 1 by 1, with room for a label over each."""
    columns = math.ceil(math.sqrt(count))
    cell = 1 / columns
    return [((i % columns) * cell, (i // columns) * cell + 0.045, 0.95 * (cell - 0.045)) for i in range(count)]


def _before_and_after(by_heads: Mapping[int, models.Encoder], multi_head: MultiHeadAttention) -> tuple[Any]:
    """Measure `by_heads`, models by number of heads, and the same models as they began.

    Raises:
        ValueError: there is nothing to compare.
    """
    counts = sorted(by_heads)
    if len(counts) < 2:
        raise ValueError(f"by_heads holds models with {tuple(counts)} heads; run the cell that trains the others first")
    beginners = {h: models.Encoder(by_heads[h].config, np.random.default_rng(0)) for h in counts}
    stages = {"trained": by_heads, "untrained": beginners}
    return ({name: {h: examine(stage[h], 100, multi_head) for h in counts} for name, stage in stages.items()},)


@live.lab(
    height=4.9,
    neutral="It opens with one head, which section 1 of the notebook has shown.",
    telling=({"heads": 4}, {"heads": 16}),
    controls=lambda results: {"heads": live.Choice("heads", tuple(results["trained"]), min(results["trained"]))},
    prepare=_before_and_after,
    example=lambda: ({h: untrained(h) for h in (1, 4, 8)}, self_attention),
)
def heads_lab(figure: "plots.Figure", results: Mapping[str, Mapping[int, Result]]) -> live.Update:
    """Show the mean maps of all heads of models with different numbers of heads, trained and as they began."""
    axes = dict(zip(results, figure.subplots(1, len(results)), strict=True))
    images: dict[str, list[Any]] = {state: [] for state in axes}
    labels: dict[str, list[Any]] = {state: [] for state in axes}
    look: dict[str, Any] = {"cmap": plots.colour_map(*plots.WEIGHTS_MAP), "vmin": 0, "vmax": 0.5}
    for state, ax in axes.items():
        for _ in range(max(results[state])):
            images[state].append(ax.imshow(np.zeros((LENGTH, LENGTH)), extent=(0, 1, 1, 0), **look))
            labels[state].append(ax.text(0, 0, "", va="bottom", size=9.5))
        ax.set(xlim=(0, 1), ylim=(1, 0), autoscale_on=False, aspect="equal", anchor="NW", xticks=(), yticks=())
        ax.set(xlabel="key →", ylabel="← query")
        ax.spines[:].set_visible(False)
    figure.colorbar(
        images["trained"][0], ax=[*axes.values()], label="weight", shrink=0.7, ticks=(0, 0.25, 0.5), extend="max"
    )

    def update(heads: int) -> str:
        tiles, told = _tiles(heads), []
        for state, ax in axes.items():
            result = results[state][heads]
            for i, (image, label) in enumerate(zip(images[state], labels[state], strict=True)):
                image.set_visible(i < heads)
                label.set_visible(i < heads)
                if i < heads:
                    left, top, size = tiles[i]
                    image.set_extent((left, left + size, top + size, top))
                    image.set_data(result.maps[i])
                    label.set_position((left, top - 0.004))
                    label.set_text(f"{i}: {main_offset(result.profile[i])}".removesuffix(": "))
            ax.set_title(f"{heads} head{'s' * (heads > 1)}, {state}: {result.accuracy:.0%} right")
            places = (f"head {i} {main_offset(row) or 'no single offset'}" for i, row in enumerate(result.profile))
            told.append(f"{state}: {'; '.join(places)}")
        return f"… Mean maps of 100 sequences. Where most of the weight goes, {'. '.join(told)}."

    return update
