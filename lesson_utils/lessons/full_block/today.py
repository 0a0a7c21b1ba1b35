"""The block of 2017 beside the block of today, and what each change is for."""

from typing import TYPE_CHECKING, Any, NamedTuple

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Choice(NamedTuple):
    """A thing that is built otherwise today, and where this course measures it."""

    then: str
    now: str
    use: str
    where: str  # "" where the course does not measure it


CHOICES = (
    Choice("norm on the stream", "norm before each part", "trains without warm-up", "section 10"),
    Choice("layer norm", "RMS norm: no mean, no β", "less to compute", ""),
    Choice("ReLU", "SwiGLU: a product of two", "lower loss, same size", "notebook 09"),
    Choice("biases", "no biases", "fewer numbers", ""),
    Choice("h keys and values", "heads share them", "a smaller cache", "notebooks 07, 09"),
    Choice("positions added", "queries, keys rotated", "lower loss", "notebooks 04, 09"),
    Choice("scores as they are", "norm on q and k", "scores stay small", ""),
)


def _road(ax: "Axes", x: float, low: float, high: float, part: str, colour: str, inside: str) -> None:
    """Draw a part beside the stream at `x`, what stands in it, and its road from the stream and back."""
    at = x + 0.95
    ax.plot([x, at, at], [low, low, high], color=plots.GREY, lw=1.5, zorder=0)
    arrow(ax, (at, high), (x + 0.06, high), plots.GREY, 1.5)
    made = box(ax, at, (low + high) / 2 + (0.1 if inside else 0), part, 1.34, 0.46, colour, 0.16, size=10)
    made.label.set_linespacing(1.15)
    if inside:
        box(ax, at, low + 0.22, inside, 1.0, 0.24, plots.INK, 0.08, size=10)


@plots.still(9.4, 4.6)
def block_of_today(figure: "Figure") -> str:
    """Draw the block of 2017 and the block of today, and a row for each choice that has changed."""
    ax = sheet(figure)
    measured = sum(bool(choice.where) for choice in CHOICES)
    ax.set_title(f"{len(CHOICES)} choices have changed since 2017; this course shows the use of {measured}")
    for x, year, colour in ((0.3, "2017", plots.ORANGE), (2.12, "2026", plots.BLUE)):
        ax.plot([x, x], [0.2, 3.75], color=tint(colour, 0.6), lw=6, zorder=0, solid_capstyle="butt")
        arrow(ax, (x, 3.7), (x, 3.95), colour, 3)
        ax.text(x + 0.95, 3.9, year, weight="bold", size=14, color=colour, ha="center", va="center")
    for low, part, colour in (
        (0.35, "attention\nh heads", plots.PURPLE),
        (1.98, "feed-forward\nReLU, biases", plots.GREEN),
    ):
        _road(ax, 0.3, low, low + 0.95, part, colour, "")
        box(ax, 0.3, low + 1.28, "norm", 0.56, 0.26, plots.INK, 0.1, size=10)
    for low, part, colour in (
        (0.35, "attention: rotary,\ngrouped, QK-norm", plots.PURPLE),
        (1.98, "feed-forward:\nSwiGLU", plots.GREEN),
    ):
        _road(ax, 2.12, low, low + 1.3, part, colour, "RMS norm")
    left = (4.02, 5.53, 7.5)
    font: dict[str, Any] = {"size": 10, "va": "center"}
    for x, words in zip(left, ("2017", "2026", "for what, and where"), strict=True):
        ax.text(x, 3.9, words, weight="bold", **font)
    for n, choice in enumerate(CHOICES):
        y = 3.52 - 0.5 * n
        ax.plot([3.97, 9.25], [y + 0.25, y + 0.25], color=tint(plots.GREY, 0.35), lw=0.8)
        where = choice.where or "not measured here"
        ax.text(left[0], y, choice.then, color=plots.ORANGE, **font)
        ax.text(left[1], y, choice.now, color=plots.BLUE, **font)
        ax.text(left[2], y, f"{choice.use}\n({where})", linespacing=1.25, **font)
    told = "; ".join(f"{c.now} for {c.then}: {c.use} ({c.where or 'not measured here'})" for c in CHOICES)
    return (
        f"{len(CHOICES)} choices have changed since 2017; this course shows the use of {measured}. Two blocks, and a "
        f"row for each choice. {told}."
    )
