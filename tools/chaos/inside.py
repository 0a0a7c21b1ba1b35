"""Runs in the kernel of a walk, and tells what its live figures show."""

import gc
import html
import json
import re
from typing import Any

from lesson_utils.classroom.live import LiveFigure
from tools import testing


def figures(ids: list[str], fresh: bool = False) -> str:
    """Return for each of these live figures, by the number of its widget, what it has sent to the page, as JSON.

    `alt` is the text of the picture, or "" if an exception stands there, and `follows` says whether that picture is the
    one of the controls. With `fresh`, `whole` says whether a new figure, moved there, shows the same.
    """
    found: dict[str, dict[str, Any]] = {}
    for figure in [thing for thing in gc.get_objects() if type(thing) is LiveFigure]:
        widget = getattr(figure, "widget", None)  # a stop may have come while it was made
        if not widget or widget.model_id not in ids:
            continue
        alt = re.search(r'<img[^>]* alt="([^"]*)"', testing.page(figure))
        facts: dict[str, Any] = {"alt": html.unescape(alt[1]) if alt else "", "values": repr(figure.values)}
        facts["follows"] = 'role="alert"' in testing.page(figure) or testing.follows(figure)
        if fresh and alt:
            facts["whole"] = testing.afresh(figure).set(**figure.values) == figure.picture
        found[widget.model_id] = facts
    return json.dumps(found)
