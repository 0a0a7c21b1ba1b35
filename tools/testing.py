"""Questions of tests and benches to a live figure, so that nobody else needs its private parts."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lesson_utils.classroom import plots
from lesson_utils.classroom.live import LiveFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def settings(figure: LiveFigure, pairs: bool = False) -> list[dict[str, Any]]:
    """Return the start and every extreme alone; or every pair of extremes that is neither. Each setting once."""
    controls = figure.controls
    start = {name: control.value for name, control in controls.items()}
    alone = [{}, *({name: value} for name, control in controls.items() for value in control.extremes())]
    together = [
        {a: x, b: y}
        for (a, first), (b, second) in itertools.combinations(controls.items(), 2)
        for x in first.extremes()
        for y in second.extremes()
    ]
    single, double = (dict.fromkeys(tuple((start | some).items()) for some in several) for several in (alone, together))
    return [dict(setting) for setting in (double if pairs else single) if not (pairs and setting in single)]


def forget(figure: LiveFigure) -> None:
    """Drop the pictures that are kept, but for the one in sight."""
    figure._kept.cache_clear()
    figure._redraw()


def pixels(figure: LiveFigure) -> NDArray[np.uint8]:
    """Return the canvas, shape (height, width, 4)."""
    return np.array(figure._screen._canvas.buffer_rgba())


def assert_frame_is_a_redraw(figure: LiveFigure) -> None:
    """Draw every artist afresh, beside what was drawn last: no pixel may differ."""
    screen = figure._screen
    frame = pixels(figure)
    for artist in screen._front:
        artist.set_animated(False)
    with plots.style():
        screen._canvas.draw()
    whole = pixels(figure)
    for artist in screen._front:
        artist.set_animated(True)
    np.testing.assert_array_equal(frame, whole, err_msg=str(figure.values))


def drawn(figure: LiveFigure) -> list[str]:
    """Return a list that grows by the alternative text of each picture that is drawn, not taken from memory."""
    alts: list[str] = []
    show = figure._screen.show
    figure._screen.show = lambda alt: alts.append(alt) or show(alt)  # type: ignore[func-returns-value, method-assign]
    return alts


def drawing(figure: LiveFigure) -> "Figure":
    """Return matplotlib's figure."""
    return figure._screen._figure


def drawn_numbers(figure: LiveFigure) -> Iterator[Any]:
    """Yield the numbers behind all lines, bars, dots and images."""
    for axes in drawing(figure).axes:
        yield from (line.get_xydata() for line in axes.lines)
        yield from (patch.get_path().vertices for patch in axes.patches)
        yield from (collection.get_offsets() for collection in axes.collections)
        yield from (image.get_array() for image in axes.images)


def move(figure: LiveFigure, control: str, value: Any) -> str:
    """Move a control as a learner does, and return what the page shows then, as HTML."""
    figure._inputs[control].value = value
    return page(figure)


def page(figure: LiveFigure) -> str:
    """Return what the page shows below the controls, as HTML."""
    return str(figure._html.value)


def follows(figure: LiveFigure) -> bool:
    """Return whether the page shows the picture that belongs to its controls."""
    return page(figure) == figure._picture_at(**figure.values).html() + figure._how_to_return(figure.values)


def afresh(figure: LiveFigure) -> LiveFigure:
    """Return a new figure, made from the same and with the same start."""
    return LiveFigure(figure.lab, figure.made_from, figure._start)
