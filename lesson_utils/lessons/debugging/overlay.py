"""Two axes in one place: a live figure draws tick labels, and whatever else stays, once and not on every frame."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def overlay(figure: "Figure", place: Any, **limits: Any) -> "tuple[Axes, Axes]":
    """Return two axes with the same limits: the lower one for what stays, the upper one, bare, for what moves.

    Args:
        place: of a grid, `grid[0, 1]`.
        limits: such as xlim and ylim, for both.
    """
    below, above = figure.add_subplot(place), figure.add_subplot(place)
    for ax in (below, above):
        ax.set(**limits)
    above.set_axis_off()
    above.patch.set_visible(False)
    return below, above
