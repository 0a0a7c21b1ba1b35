"""Paper, boxes, arrows, threads between words, and matrices with numbers in them, for figures of several notebooks.

All of it updates in place, so it works in live figures, too. Lengths are inches of 100 page pixels, y points up.
Queries, keys and values have one colour each in the whole course: `plots.QUERY`, `plots.KEY`, `plots.VALUE`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import plots
from lesson_utils.classroom.formats import minus
from lesson_utils.maths.checks import Array

Point = tuple[float, float]
TITLE = 0.38  # inches above a sheet


def sheet(figure: "plots.Figure") -> "plots.Axes":
    """Make paper as large as the figure, below a title: x from 0 to the width, y from 0 to the height − `TITLE`."""
    figure.set_layout_engine("none")  # nothing to lay out: everything has its place
    width, height = figure.get_size_inches()
    margin = 0.08  # left of the title
    ax = figure.add_axes((margin / width, 0, 1 - margin / width, 1 - TITLE / height))
    return paper(ax, width - margin, height - TITLE)


def paper(ax: "plots.Axes", width: float, height: float) -> "plots.Axes":
    """Make axes that stand beside others a paper of that size, without frame and ticks."""
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.set_axis_off()
    return ax


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix `colour` with white: 0 is white, 1 the colour itself."""
    from matplotlib.colors import to_rgb

    r, g, b = (1 - strength * (1 - channel) for channel in to_rgb(colour))
    return r, g, b


def corners(left: float, bottom: float, right: float, top: float) -> list[Point]:
    """Return the corners of a rectangle, for a PolyCollection."""
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


def drawable(text: str, font: str = "DejaVu Sans") -> str:
    """Put □ for what the font has no letter for, and keep `$` from beginning a formula."""
    letters = _letters(font)
    return "".join(c if c == "\n" or ord(c) in letters else "□" for c in text).replace("$", r"\$")


@lru_cache
def _letters(font: str) -> frozenset[int]:
    from matplotlib import font_manager

    return frozenset(font_manager.get_font(font_manager.findfont(font)).get_charmap())


class Box(NamedTuple):
    """A drawn box, its centre, and the middles of its sides, for arrows."""

    patch: Any
    label: Any
    x: float
    y: float
    left: Point
    right: Point
    bottom: Point
    top: Point


def box(
    ax: "plots.Axes",
    x: float,
    y: float,
    text: str = "",
    width: float = 1.0,
    height: float = 0.44,
    colour: str = plots.GREY,
    strength: float = 0.12,
    **font: Any,
) -> Box:
    """Draw a box with round corners and a text in it, its centre at (x, y); `strength` of the filling as in `tint`."""
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.06"
    left, right, bottom, top = x - width / 2, x + width / 2, y - height / 2, y + height / 2
    patch = FancyBboxPatch((left, bottom), width, height, boxstyle=style, fc=tint(colour, strength), ec=colour, lw=1.4)
    ax.add_patch(patch)
    label = ax.text(x, y, text, **{"ha": "center", "va": "center", "zorder": 4, **font})
    return Box(patch, label, x, y, (left, y), (right, y), (x, bottom), (x, top))


def arrow(
    ax: "plots.Axes", start: Point, end: Point, colour: str = plots.GREY, width: float = 1.8, bend: float = 0.0
) -> Any:
    """Draw an arrow, under all that `Threads` move; a positive `bend` turns it to the left of its way."""
    from matplotlib.patches import FancyArrowPatch

    made = FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=12,
        shrinkA=2,
        shrinkB=2,
        color=colour,
        lw=width,
        connectionstyle=f"arc3,rad={-bend}",
        zorder=0.5,
    )
    ax.add_patch(made)
    return made


def spread(words: Sequence[str], left: float, right: float, gap: float = 2.0) -> Array:
    """Return x of the middle of each word between `left` and `right`: each gets room by its letters, and `gap` more."""
    room = np.array([len(word) + gap for word in words])
    ends = np.cumsum(room)
    return left + (right - left) * (ends - room / 2) / ends[-1]


class Threads:
    """Lines whose thickness is a weight: between two rows of words, or from one word to all.

    Args:
        ax: the paper.
        starts, ends: the two points of each line, shape (n, 2) each.
        colour: of all of them.
        widest: points for the weight 1.
        rise: 0 draws straight lines; else arcs, which rise so far above (negative: fall below) the ends at most. A line
            from a point to itself is a small loop.
    """

    def __init__(
        self,
        ax: "plots.Axes",
        starts: ArrayLike,
        ends: ArrayLike,
        colour: str = plots.BLUE,
        widest: float = 14.0,
        rise: float = 0.0,
    ) -> None:
        from matplotlib.collections import LineCollection

        a, b = np.broadcast_arrays(np.asarray(starts, float), np.asarray(ends, float))
        t = np.linspace(0, 1, 33 if rise else 2)[:, None]
        spans = np.linalg.norm(b - a, axis=-1)
        heights = rise * np.sqrt(spans / (spans.max() or 1.0))  # short arcs stay low
        up, turn = np.array([0.0, 1.0]), 2 * np.pi * t
        loop = 0.22 * rise * np.hstack([np.sin(turn) * np.sin(turn / 2), 1 - np.cos(turn)])
        paths = [
            p + t * (q - p) + 4 * t * (1 - t) * h * up if span else p + loop
            for p, q, h, span in zip(a, b, heights, spans, strict=True)
        ]
        self.widest, self.colour = widest, colour
        self.lines = LineCollection(paths, colors=[tint(colour, 0.3)], linewidths=0.0, capstyle="round", zorder=2)
        ax.add_collection(self.lines, autolim=False)

    def set(self, weights: ArrayLike) -> None:
        """Draw each line as thick as its weight, shape (n,); under 0.005 it vanishes. Heavier ones are darker, too."""
        weights = np.asarray(weights, float)
        self.lines.set_linewidth([0.0 if weight < 0.005 else self.widest * weight for weight in weights])
        self.lines.set_color([tint(self.colour, 0.35 + 0.65 * min(weight, 1.0)) for weight in weights])


class Matrix:
    """A matrix of weights, from 0 to 1, as cells with numbers.

    Args:
        ax: the paper.
        left, top: its upper left corner.
        shape: (rows, columns).
        name: written above it.
        colour: of its frame and cells.
        cell: width and height of a cell.
        decimals: of the numbers.
    """

    def __init__(
        self,
        ax: "plots.Axes",
        left: float,
        top: float,
        shape: tuple[int, int],
        name: str = "",
        colour: str = plots.GREY,
        cell: Point = (0.42, 0.36),
        decimals: int = 1,
    ) -> None:
        from matplotlib.collections import PathCollection, PolyCollection
        from matplotlib.patches import Rectangle

        (rows, columns), (w, h) = shape, cell
        width, height = columns * w, rows * h
        self.colour, self.decimals = colour, decimals
        places = np.array([(left + j * w, top - i * h) for i, j in np.ndindex(rows, columns)])
        self._squares = places[:, None] + corners(0, -h, w, 0)  # (cells, 4, 2)
        middles = self._squares.mean(axis=1)
        self.cells = PolyCollection(list(self._squares), edgecolors="white", linewidths=1.0, zorder=1)
        self.hatch = PolyCollection([], facecolors="white", edgecolors=plots.GREY, linewidths=0, hatch="/////")
        self.numbers = PathCollection([], offsets=middles, offset_transform=ax.transData, linewidths=0, zorder=4)
        self.numbers.set_transform(ax.figure.dpi_scale_trans)  # inches
        for drawn in (self.cells, self.hatch, self.numbers):
            ax.add_collection(drawn, autolim=False)
        ax.add_patch(Rectangle((left, top - height), width, height, fill=False, ec=colour, lw=1.6, zorder=2.5))
        ax.text(left + width / 2, top + 0.08, name, ha="center", va="bottom", color=colour, weight="bold")

    def set(self, weights: ArrayLike, hidden: ArrayLike, strength: ArrayLike) -> None:
        """Write the weights. `hidden` cells are hatched, without a number; `strength` is of each cell's colour."""
        gone = np.ravel(hidden)
        texts = [minus(f"{weight:z.{self.decimals}f}") for weight in np.ravel(weights)]
        colours = [tint(self.colour, shade) for shade in np.ravel(strength)]
        self.cells.set_facecolor(colours)
        self.numbers.set_paths([_outline("" if hide else text) for text, hide in zip(texts, gone, strict=True)])
        self.numbers.set_facecolor(["white" if plots.luminance(colour) < 0.18 else "black" for colour in colours])
        self.hatch.set_verts(list(self._squares[gone]))


def _outline(text: str) -> Any:
    """Return the outlines of a text, in inches, its middle at (0, 0)."""
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    if not text:
        return Path(np.zeros((1, 2)))
    path = TextPath((0, 0), text, size=11)
    height = TextPath((0, 0), "0", size=11).vertices[:, 1].max()  # all numbers on one line
    width = path.vertices[:, 0].min() + path.vertices[:, 0].max()
    return Path((path.vertices - [width / 2, height / 2]) / 72, path.codes)
