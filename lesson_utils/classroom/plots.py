"""The house style: figures that read from the back of a hall, and pictures that carry alternative text.

Figures are made outside pyplot, so there is no global state to leave behind and nothing to close. matplotlib's figure
machinery is imported on first use: it takes longer to load than everything else here together.
"""

import base64
import html
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import legible
from lesson_utils.classroom.formats import minus
from lesson_utils.maths.checks import as_float

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, safe for colour-blind readers, darkened until text in them has a contrast of 4.5 : 1.
BLUE, ORANGE, GREEN, PURPLE, GREY, INK = "#0067A5", "#C14A00", "#007A5A", "#A2457E", "#6B6B6B", "#222222"
# One colour each in the whole course. Readers who can't tell them apart have the letters, which stand beside them.
QUERY, KEY, VALUE = ORANGE, BLUE, GREEN
# From nothing to much; from negative over white to positive. The steps are colours of the pictures' palette.
WEIGHTS_MAP, SCORES_MAP = ("Blues", 48), ("PuOr_r", 61)

PIXELS_PER_INCH = 100  # on the page
PAGE_WIDTH = 1000  # page pixels beside a laptop's list of files
MOST_BYTES = 60_000  # of a picture in a notebook
SHARPNESS = 1.25  # picture dots per page pixel: crisp on a projector; at 1.5 each step takes a fifth longer

STYLE: Any = {
    "figure.dpi": PIXELS_PER_INCH * SHARPNESS,
    "figure.facecolor": "white",
    "font.size": 11.5,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "#E3E3E3",
    "text.color": INK,
    "text.hinting": "none",  # drawn a third faster; at this sharpness no difference to be seen
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 2.2,
    "lines.markersize": 7,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
}


_drawing = RLock()


@contextmanager
def alone() -> Iterator[None]:
    """Let one thread at a time draw, for as long as a `with` block lasts.

    A kernel may hear sliders in another thread than the one in which a cell runs, and neither matplotlib's style nor a
    figure can be used by two.
    """
    ours = _drawing.acquire(timeout=10)  # not for ever: a stop may come just before it is given back
    try:
        yield
    finally:
        if ours:
            _drawing.release()


@contextmanager
def style() -> Iterator[None]:
    """Use the house style, alone, for as long as a `with` block lasts; nothing global changes."""
    import matplotlib

    with alone(), matplotlib.rc_context(STYLE):
        yield


def figure(width: float = 9.0, height: float = 3.6) -> "Figure":
    """Make an empty figure in the house style, `width` by `height` inches (of 100 page pixels)."""
    if sys.platform == "emscripten":  # without threads it reports at once, on stderr, that it lists the fonts
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        new = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(new)
    return new


@dataclass(frozen=True)
class Picture:
    """A finished picture. Jupyter shows it; readers who can't see it hear `alt`."""

    png: bytes
    alt: str
    width: int  # page pixels
    height: int
    cuts: tuple[float, ...] = ()  # between panels that stand beside each other, as shares of the width

    def html(self) -> str:
        """Return the picture as an <img> that needs no file."""
        data = base64.b64encode(self.png).decode("ascii")
        cuts = f'data-cuts="{" ".join(map(str, self.cuts))}" ' if self.cuts else ""
        # The size keeps the page from jumping while the next picture loads; decoding="sync" avoids a white flash.
        return (
            f'<img alt="{html.escape(self.alt)}" src="data:image/png;base64,{data}" width="{self.width}" '
            f'height="{self.height}" {cuts}decoding="sync" style="max-width:100%;height:auto">'
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        png = base64.b64encode(self.png).decode("ascii")
        return {"text/html": self.html(), "image/png": png, "text/plain": self.alt}


def picture(figure: "Figure", alt: str) -> Picture:
    """Draw `figure` once, as a picture with alternative text that says what there is to see.

    A text that begins with "…" gets the titles of the axes in its place, so that a finding is worded once.

    Raises:
        ValueError: `alt` is empty. Where notebooks are tested and stored (COURSE_STRICT is set in the environment): a
            title does not fit, letters are too small, or there are too many bytes.
    """
    if not alt.strip():
        raise ValueError("alt is empty; say in a sentence what the figure shows")
    with style():
        figure.canvas.draw()
    new = snapshot(figure, alt, legible.cuts(figure))
    if os.environ.get("COURSE_STRICT"):
        if outside := legible.titles_outside(figure):
            raise ValueError(f"{outside[0]!r} runs out of the picture; make it shorter, or the picture wider")
        points, text = legible.smallest(figure)
        if points < legible.SMALLEST:
            raise ValueError(f"{text!r} has letters of {points:.1f} points; make them at least {legible.SMALLEST:g}")
        if len(new.png) > MOST_BYTES:
            raise ValueError(f"a picture of {len(new.png):,} bytes; notebooks store at most {MOST_BYTES:,}")
    return new


def still(width: float = 9.0, height: float = 3.6) -> Callable[[Callable[..., str]], Callable[..., Picture]]:
    """Turn a function that draws into a figure and returns the alternative text into one that returns the Picture."""

    def make(draw: Callable[..., str]) -> Callable[..., Picture]:
        @wraps(draw)
        def show(*arguments: Any, **keywords: Any) -> Picture:
            new = figure(width, height)
            with style():
                alt = draw(new, *arguments, **keywords)
            return picture(new, alt)

        return show

    return make


def snapshot(figure: "Figure", alt: str, cuts: tuple[float, ...]) -> Picture:
    """Return the figure's canvas as it is, without drawing it again; of "… " in `alt`, see `picture`.

    Of `cuts` it keeps those where nothing is drawn: in a live figure, a title may grow beyond its panel.
    """
    from PIL import Image

    canvas: Any = figure.canvas
    size = canvas.get_width_height()
    dots = np.asarray(canvas.buffer_rgba())  # (height, width, 4)
    cuts = tuple(cut for cut in cuts if dots[:, round(cut * size[0])].min() == 255)
    image = Image.frombuffer("RGBA", size, canvas.buffer_rgba(), "raw", "RGBA", 0, 1).convert("RGB")
    return _as_picture(image, _with_titles(figure, alt), 3, cuts)


def _with_titles(figure: "Figure", alt: str) -> str:
    """Put the axes' titles in the place of a "…" at the beginning; of formulas, the plain text."""
    if not alt.startswith("…"):
        return alt
    titles = [" ".join(axes.get_title("left").split()) for axes in figure.axes]
    titles = [re.sub(r"\$(.*?)\$", _plain, title) for title in titles]
    return " ".join([*(title if title[-1] in ".!?" else f"{title}." for title in titles if title), alt[1:].strip()])


def _plain(formula: re.Match[str]) -> str:
    return re.sub(r"[{}\\]", "", formula[1].replace(r"\sqrt", "√").replace(r"\tau", "τ"))


def together(pictures: Sequence[Picture]) -> Picture:
    """Return a figure's pictures as one: side by side where the page is wide enough for that, else below each other."""
    from PIL import Image

    if len(pictures) == 1:
        return pictures[0]
    images = [np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB")) for picture in pictures]
    beside = sum(picture.width for picture in pictures) <= PAGE_WIDTH
    whole = Image.fromarray(np.concatenate(images, axis=1 if beside else 0))
    if beside:
        cuts = [(number + cut) / len(pictures) for number, one in enumerate(pictures) for cut in (*one.cuts, 1)][:-1]
    else:
        cuts = [cut for cut in pictures[0].cuts if all(cut in one.cuts for one in pictures)]
    return _as_picture(whole, " ".join(picture.alt for picture in pictures), 9, tuple(cuts))


def _as_picture(image: Any, alt: str, effort: int, cuts: tuple[float, ...]) -> Picture:
    """Return an image as a picture in the colours that all pictures share."""
    from PIL import Image

    buffer = io.BytesIO()
    image.quantize(palette=_palette(), dither=Image.Dither.NONE).save(buffer, "png", compress_level=effort)
    width, height = (round(n / SHARPNESS) for n in image.size)
    return Picture(buffer.getvalue(), alt, width, height, cuts)


def colour_map(name: str, steps: int) -> Any:
    """Return matplotlib's colour map of that name, in so many steps."""
    import matplotlib

    return matplotlib.colormaps[name].resampled(steps)


@cache
def _palette() -> Any:
    """Make the 256 colours that all pictures share, as an image of Pillow.

    They are the house colours, each faded to white as the edges of letters and lines are, and every step of the maps.
    A live frame then takes 1 ms and a third of the bytes of a full-colour PNG. (Finding the best palette for each frame
    takes 6 ms, and colours would shift from frame to frame.)
    """
    import matplotlib
    from PIL import Image

    def between(start: str, end: str, steps: int) -> Any:
        a, b = (np.array(matplotlib.colors.to_rgb(colour)) for colour in (start, end))
        return a + np.linspace(0, 1, steps)[:, None] * (b - a)  # (steps, 3)

    def steps_of(name: str, steps: int) -> Any:
        return colour_map(name, steps)(np.arange(steps))[:, :3]

    fades = [between(colour, "white", 13)[:-1] for colour in (BLUE, ORANGE, GREEN, PURPLE)]  # 48
    greys = [between("black", "white", 34), between(INK, INK, 1)]  # 35
    cube = np.stack(np.meshgrid(*[np.linspace(0, 1, 4)] * 3), axis=-1).reshape(-1, 3)  # 64, for all other colours
    colours = np.concatenate([*greys, *fades, steps_of(*WEIGHTS_MAP), steps_of(*SCORES_MAP), cube])  # (256, 3)
    palette = Image.new("P", (1, 1))
    palette.putpalette((255 * colours).round().astype(np.uint8).tobytes())
    return palette


def draw_heatmap(
    ax: "Axes",
    matrix: ArrayLike,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str = "",
    row_label: str = "query",
    column_label: str = "key",
    numbers: bool | None = None,
    top: float | None = None,
) -> None:
    """Draw a matrix as a heat map: weights (white to blue), or numbers of both signs (orange to purple around 0).

    Args:
        ax: where to draw.
        matrix: shape (rows, columns).
        rows, columns: their names; default: their numbers.
        title: what there is to see.
        row_label, column_label: what the axes are.
        numbers: write each number into its cell? Default: up to 12 columns.
        top: the number that gets the strongest colour, so that several maps can share a scale. Default: the largest.

    Raises:
        ValueError: `matrix` is not a finite 2-D array, or the names do not fit it.
    """
    matrix = as_float(matrix, "matrix")
    if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
        raise ValueError(f"matrix has shape {matrix.shape}; expected two axes, at least 1 × 1, all numbers finite")
    rows, columns = (given or [*map(str, range(n))] for given, n in zip((rows, columns), matrix.shape, strict=True))
    if (len(rows), len(columns)) != matrix.shape:
        raise ValueError(f"{len(rows)} row and {len(columns)} column names for a matrix of shape {matrix.shape}")
    signed = bool((matrix < 0).any())
    top = top or float(np.abs(matrix).max()) or 1.0
    limits = (-top, top) if signed else (0.0, max(top, 1.0))
    image = ax.imshow(
        matrix, cmap=colour_map(*(SCORES_MAP if signed else WEIGHTS_MAP)), vmin=limits[0], vmax=limits[1], aspect="auto"
    )
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(column_label)
    ax.set_ylabel(row_label)
    ax.set_title(title)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(columns) <= 12 if numbers is None else numbers:
        for i, j in np.ndindex(*matrix.shape):
            # Black or white, whichever stands out more: a contrast of at least 4.5 : 1 on any colour.
            dark = luminance(image.cmap(image.norm(matrix[i, j]))) < 0.18
            number = minus(f"{matrix[i, j]:z.{1 if signed else 2}f}")  # z: no −0.0
            ax.text(j, i, number, ha="center", va="center", color="white" if dark else "black")


class Bars:
    """Lying bars with a text behind each; rows are 0, 1, 2 … of the axes.

    Args:
        ax: where they are drawn.
        count: how many.
        look: what `ax.barh` takes besides (color, height …).
    """

    def __init__(self, ax: "Axes", count: int, **look: Any):
        self.ax = ax
        self.bars = ax.barh(np.arange(count), np.zeros(count), **look)
        self.texts = [ax.text(0, row, "", va="center", zorder=5) for row in range(count)]

    def set(self, values: ArrayLike, texts: Sequence[str], ends: ArrayLike | None = None) -> None:
        """Move them, and write `texts` behind their ends, or behind `ends` where something else is drawn there."""
        lengths = np.asarray(values, dtype=float)
        behind = lengths if ends is None else np.asarray(ends, dtype=float)
        for bar, text, words, length, end in zip(self.bars, self.texts, texts, lengths, behind, strict=True):
            bar.set_width(length)
            text.set_x(end + 0.02 * self.ax.get_xlim()[1])
            text.set_text(words)


def luminance(colour: Any) -> float:
    """Return how light a colour is, from 0 (black) to 1 (white).

    Contrast is (lighter + 0.05) : (darker + 0.05). Source: Web Content Accessibility Guidelines 2.1, section 1.4.3.
    """
    from matplotlib.colors import to_rgb

    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def describe(
    matrix: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    row_label: str = "query",
    column_label: str = "key",
) -> str:
    """Return the alternative text of a heat map: the largest entry of each row."""
    matrix = as_float(matrix, "matrix")
    peaks = matrix.argmax(axis=1)
    largest = "; ".join(f"{name}: {columns[j]} {row[j]:.2f}" for name, j, row in zip(rows, peaks, matrix, strict=True))
    head = f"{title}. " if title else ""
    return f"{head}Heat map, {row_label} by {column_label}. Largest in each row: {largest}."
