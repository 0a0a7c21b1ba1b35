"""Measurements of a drawn figure: do its titles fit, and are its letters large enough to be read?"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

SMALLEST = 6.5  # points: 9 page pixels. Indices count, too: matplotlib makes them 0.7 of the text around them


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
