"""A widget, and the page that stands in for it where no kernel runs: on GitHub, in the book, before the first run.

A saved notebook holds a widget's number, not the widget. Where nothing answers to that number, JupyterLab shows an
error text and other viewers show nothing. So the page is an output of its own, which the living widget hides.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ipywidgets

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# The first rule hides the page beside its living widget. The second hides JupyterLab's error text, which is the only
# output of such a cell that has no element in it.
HIDE = (
    "body:has(.live-NUMBER) .still-NUMBER{display:none}"
    ".jp-OutputArea:has(.still-NUMBER) .jp-OutputArea-output:not(:has(*)){display:none}"
)


def is_live_figure(outputs: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether stored outputs are those of a live figure: a widget that has a picture to stand in for it."""
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    return {WIDGET_VIEW, "image/png"} <= kinds


def outputs(page: dict[str, Any], widget: "ipywidgets.DOMWidget") -> list[dict[str, Any]]:
    """Return two outputs, ready for `display(…, raw=True)`: the page, which needs no kernel, and the widget."""
    number = widget.model_id
    widget.add_class(f"live-{number}")
    html = f"<style>{HIDE.replace('NUMBER', number)}</style><div class='still-{number}'>{page['text/html']}</div>"
    view = {"version_major": 2, "version_minor": 0, "model_id": number}
    return [{**page, "text/html": html}, {WIDGET_VIEW: view, "text/plain": ""}]


def show(page: dict[str, Any], widget: "ipywidgets.DOMWidget") -> None:
    """Display both outputs."""
    from IPython.display import display

    for output in outputs(page, widget):
        display(output, raw=True)
