"""Drawings of notebook 03: all heads at one glance, split and merge step by step, and the classic bug."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import arrow, sheet, tint
from lesson_utils.maths import attention
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOKENS, WIDTH = 4, 6
Whole = NDArray[np.integer[Any]]

# --- X → heads → side by side → W_O ---------------------------------------------------------------------------------

CELL = 0.16  # inches


def _grid(ax: "Axes", left: float, middle: float, values: Array, colour: str, name: str, below: str) -> float:
    """Draw a matrix as squares, stronger for larger numbers, between name and shape, and return its right edge."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Rectangle

    rows, columns = values.shape
    width, top, bottom = CELL * columns, middle + CELL * rows / 2, middle - CELL * rows / 2
    corners = CELL * np.array([(0, 0), (1, 0), (1, -1), (0, -1)])
    squares = [corners + np.array((left + CELL * j, top - CELL * i)) for i, j in np.ndindex(rows, columns)]
    strength = np.abs(values).ravel() / np.abs(values).max()
    if name == "weights":
        fill = plots.colour_map(*plots.WEIGHTS_MAP)(strength)
    else:
        fill = [tint(colour, 0.1 + 0.8 * s) for s in strength]
    ax.add_collection(PolyCollection(squares, facecolors=fill, edgecolors="white", linewidths=0.8))
    ax.add_patch(Rectangle((left, bottom), width, top - bottom, fill=False, ec=colour, lw=1.6))
    ax.text(left + width / 2, top + 0.06, name, ha="center", va="bottom", color=colour, weight="bold")
    for n, line in enumerate(below.split("\n")):  # one text each: a formula does not go with a line break
        ax.text(left + width / 2, bottom - 0.07 - 0.17 * n, line, ha="center", va="top", size=10.5)
    return left + width


@plots.still(9.2, 4.0)
def heads_drawn(figure: "Figure") -> str:
    """Draw two heads on four tokens of width 6, from X to Y, with every shape."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(TOKENS, WIDTH))
    *projections, W_O = rng.normal(size=(4, WIDTH, WIDTH))
    Q, K, V = (attention.split_heads(X @ W, 2) for W in projections)  # (h, T, d_k)
    heads, weights = attention.scaled_dot_product_attention(Q, K, V)
    joined = attention.merge_heads(heads)

    ax = sheet(figure)
    ax.set_title("Each head looks with columns of its own; $W_O$ mixes what they bring back")
    middle, whole, part = 1.72, "(T, $d_{model}$)\n= (4, 6)", "(T, $d_k$)\n= (4, 3)"
    sign: dict[str, Any] = {"ha": "center", "va": "center", "size": 15}
    start = _grid(ax, 0.02, middle, X, plots.GREY, "X", whole)
    for i, (y, into) in enumerate(((middle + 0.93, 0.14), (middle - 0.93, -0.14))):
        columns = f"columns\n{3 * i} to {3 * i + 2}"
        arrow(ax, (start, middle), (1.4, y))
        x = _grid(ax, 1.44, y, Q[i], plots.QUERY, "Q", columns)
        x = _grid(ax, x + 0.2, y, K[i], plots.KEY, "K", columns)
        arrow(ax, (x, y), (x + 0.36, y))
        x = _grid(ax, x + 0.38, y, weights[i], plots.INK, "weights", "(T, T)\n= (4, 4)")
        ax.text(x + 0.11, y, "·", **sign)
        x = _grid(ax, x + 0.22, y, V[i], plots.VALUE, "V", columns)
        ax.text(x + 0.15, y, "=", **sign)
        x = _grid(ax, x + 0.3, y, heads[i], plots.VALUE, f"head {i}", part)
        arrow(ax, (x, y), (x + 0.46, middle + into))
    x += 0.48
    ax.plot([x + 3 * CELL] * 2, [middle - 2 * CELL, middle + 2 * CELL], color=plots.INK, lw=2.4, zorder=4)
    x = _grid(ax, x, middle, joined, plots.VALUE, "concatenated", whole)
    ax.text(x + 0.12, middle, "·", **sign)
    x = _grid(ax, x + 0.24, middle, W_O, plots.PURPLE, "$W_O$", "(6, 6)")
    ax.text(x + 0.14, middle, "=", **sign)
    _grid(ax, x + 0.28, middle, joined @ W_O, plots.GREY, "Y", whole)
    return (
        "Shows multi-head attention from X to Y. X, shape (4, 6), is projected to Q, K and V, whose columns are shared "
        "out: 0 to 2 for head 0, 3 to 5 for head 1. Each head has weights of its own, (4, 4), from its Q and K; they "
        "times V are its output, (4, 3). The two outputs side by side are (4, 6) again; times W_O, (6, 6), they are Y, "
        "(4, 6)."
    )


# --- Split and merge ------------------------------------------------------------------------------------------------

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

    def __init__(self, ax: "Axes", array: Whole, strength: float = 1.0) -> None:
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

    def show(self, array: Whole, names: "Sequence[str]", left: float = 0.0, top: float = 0.0) -> None:
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


def _frame(ax: "Axes", width: float, rows: float) -> None:
    ax.set(xlim=(-0.1, width), ylim=(rows + 0.1, -0.9), aspect="equal", anchor="NW", xticks=(), yticks=())
    ax.spines[:].set_visible(False)


@live.lab(
    height=4.4,
    heads=live.Choice("heads", (2, 3), 2),
    step=live.Slider("step", 1, 4, 1),
)
def split_lab(figure: "Figure") -> live.Update:
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
            f"Step {step} of 4, {heads} heads: {stages[step][3]}, shape {now.shape}. Entry {FOLLOWED} moves from "
            f"{at[step - 1]} to {at[step]}. All entries now: {now.tolist()}."
        )

    return update


@plots.still(9.0, 2.9)
def scrambled(figure: "Figure", right: Whole, wrong: Whole) -> str:
    """Draw two ways to split heads side by side, (h, T, d_k) each, of `named_entries`."""
    rows = np.arange(right.shape[1])[:, None]
    alt = ""
    titles = "with the swap", "without it"
    for ax, title, heads in zip(figure.subplots(1, 2), titles, (right, wrong), strict=True):
        _frame(ax, heads.shape[0] * (heads.shape[-1] + GAP), heads.shape[1])
        names = [f"head {i}" for i in range(len(heads))]
        _Cells(ax, heads).show(heads, names)
        off = int((heads // 10 != rows).any(axis=-1).sum())
        finding = f"{title}: {off} of {heads.shape[0] * heads.shape[1]} rows misplaced"
        ax.set_title(finding.capitalize())
        held = "; ".join(f"{n} holds tokens {(h[:, 0] // 10).tolist()}" for n, h in zip(names, heads, strict=True))
        alt += f"{finding.capitalize()}: {held}. "
    return alt.strip()
