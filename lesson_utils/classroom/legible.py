"""Measurements of a drawn figure: do its titles fit, are its letters large enough, and where can it be cut?"""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

SMALLEST = 6.5  # points: 9 page pixels. Indices count, too: matplotlib makes them 0.7 of the text around them
NARROWEST = 0.15  # of the width: what is narrower is no panel, but a colour bar of the panel to its left


def titles_outside(figure: "Figure") -> list[str]:
    """Return the titles that run out of the picture, which has been drawn."""
    from matplotlib.text import Text

    page, texts = figure.bbox, list(figure.texts)
    for axes in figure.axes:
        titles = {axes.get_title(loc=place) for place in ("left", "center")} - {""}
        texts += [text for text in axes.get_children() if isinstance(text, Text) and text.get_text() in titles]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    return [text for text, box in boxes if box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1]


def smallest(figure: "Figure") -> tuple[float, str]:
    """Return the size of the smallest letters, in points, and the text in which they stand."""
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible()]
    return min(((points(text), text.get_text()) for text in texts if text.get_text().strip()), default=(math.inf, ""))


def points(text: "Text") -> float:
    """Return the size of a text's smallest letters. In a formula, matplotlib chooses it letter by letter."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    if not is_math_text(text.get_text()):
        return float(text.get_fontsize())
    formula = MathTextParser("path").parse(text.get_text(), 72, text.get_fontproperties())
    return float(min(size for _, size, *_ in formula.glyphs))


def cuts(figure: "Figure") -> tuple[float, ...]:
    """Return where a drawn figure can be cut from top to bottom, as shares of its width: see panels.js.

    Nothing is drawn there. Axes that share their y axis stay together, because often only the first has names at it.
    """
    from matplotlib.axes import Axes

    still = [artist for artist in figure.findobj() if not artist.stale]
    parts = [part for whole in (figure, *figure.subfigs) for part in whole.get_children() if part not in figure.subfigs]
    papers = {figure.patch, *(whole.patch for whole in figure.subfigs)}
    boxes = {part: box for part in parts if part not in papers and (box := part.get_tightbbox())}
    sides = []
    for part, box in boxes.items():
        beside = part.get_shared_y_axes().get_siblings(part) if isinstance(part, Axes) else []
        spans = [boxes[axes] for axes in beside if axes in boxes] or [box]
        sides.append((min(span.x0 for span in spans), max(span.x1 for span in spans)))
    for artist in still:
        artist.stale = False  # to be measured is not to be moved
    panels: list[tuple[float, float]] = []
    width = float(figure.bbox.width)
    for left, right in sorted(sides):
        if panels and (left <= panels[-1][1] or right - left < NARROWEST * width):
            panels[-1] = panels[-1][0], max(right, panels[-1][1])
        else:
            panels.append((left, right))
    margin = 0.005 * width  # close to the panel on the right: what grows, as a title does, grows to the right
    places = (max((end + start) / 2, start - margin) for (_, end), (start, _) in pairwise(panels))
    return tuple(round(float(place / width), 4) for place in places)
