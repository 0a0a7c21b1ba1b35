"""An open notebook as tests and benches see it: its cells, its live figures, their controls.

Questions go to JupyterLab's own application object where possible. Keys, pixels, and the texts that a screen reader
reads, come from the page itself.
"""

import json
from typing import TYPE_CHECKING, Any

from lesson_utils.classroom.stand_in import WIDGET_VIEW

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

# What JupyterLab writes to the browser's console although nothing is wrong.
HARMLESS = ("widget model not found",)  # on opening a saved notebook: its widgets ended with their kernel

OTHER_WIDGETS = ("quiz.predict(", "smollm = lab.load(")  # how the cells begin that show no figure


class Notebook:
    """An open notebook. `page` is playwright's, for whatever is not here."""

    def __init__(self, page: "Page"):
        self.page = page
        self._console: list[str] = []
        page.on("console", lambda message: self._note(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self._note(str(error)))

    def _note(self, error: str) -> None:
        if not any(text in error for text in HARMLESS):
            self._console.append(error)

    def ask(self, script: str, seconds: float = 60) -> Any:
        """Call a JavaScript function with the notebook's panel, and return its result; fail if it takes too long."""
        return self.page.evaluate(
            f"""() => Promise.race([
                ({script})(jupyterapp.shell.currentWidget),
                new Promise((_, no) => setTimeout(() => no(new Error('no answer in {seconds} s')), {seconds * 1000})),
            ])"""
        )

    def unfold(self) -> None:
        """Show the cells of sections that open folded."""
        self.ask("() => jupyterapp.commands.execute('notebook:expand-all-headings')")

    def run_all(self, seconds: float = 300) -> None:
        """Run all cells to the end, or to the first error; then wait until the live figures show their pictures."""
        self.ask("() => jupyterapp.commands.execute('notebook:run-all-cells')", seconds)
        for figure in self.live_figures():
            figure.wait_for_picture()

    def run_cell(self, cell: str, source: str | None = None, seconds: float = 300) -> list[dict[str, Any]]:
        """Run one cell by its id, perhaps with another source written into it, and return its outputs."""
        number = [c["id"] for c in self.cells].index(cell)
        write = "" if source is None else f"cell.model.sharedModel.setSource({json.dumps(source)});"
        self.ask(
            f"""({{content}}) => {{
                content.activeCellIndex = {number}
                const cell = content.activeCell; {write}
                return jupyterapp.commands.execute('notebook:run-cell')
            }}""",
            seconds,
        )
        outputs: list[dict[str, Any]] = self.cells[number]["outputs"]
        return outputs

    def save(self) -> None:
        self.ask("panel => panel.context.save()")

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells with their outputs, as they would be saved."""
        cells: list[dict[str, Any]] = self.ask("panel => panel.context.model.toJSON().cells")
        return cells

    def complaints(self) -> list[str]:
        """Return whatever should not be there: errors on the browser's console, error outputs, text on stderr."""
        found = [f"console: {text}" for text in self._console]
        for cell in self.cells:
            for output in cell.get("outputs", []):
                if output["output_type"] == "error":
                    found.append(f"cell {cell['id']}: {output['ename']}: {output['evalue']}")
                elif output.get("name") == "stderr":
                    found.append(f"cell {cell['id']}, stderr: {''.join(output['text'])}")
        return found

    def live_figures(self) -> "list[LiveFigure]":
        """Return the live figures from top to bottom; in a notebook that has not been run, their stored stills."""
        found = []
        for number, cell in enumerate(self.cells):
            shows_widget = any(WIDGET_VIEW in output.get("data", {}) for output in cell.get("outputs", []))
            if shows_widget and not "".join(cell["source"]).startswith(OTHER_WIDGETS):
                output_area = self.page.locator(".jp-Notebook-cell").nth(number).locator(".jp-Cell-outputArea")
                found.append(LiveFigure(cell["id"], output_area))
        return found


class LiveFigure:
    """The output of a cell with a live figure: its controls by their labels, its picture, and its alternative text."""

    def __init__(self, cell: str, node: "Locator"):
        self.cell, self.node = cell, node
        self._picture = node.locator('img[src^="data:image/png"]:not(.panel):visible')

    @property
    def alt(self) -> str:
        return self._picture.get_attribute("alt", timeout=5000) or ""

    @property
    def src(self) -> str:
        return self._picture.get_attribute("src", timeout=5000) or ""

    @property
    def alert(self) -> str:
        """The exception that stands where the picture was, or nothing."""
        return "\n".join(self.node.get_by_role("alert").all_text_contents())

    @property
    def controls(self) -> "dict[str, Control]":
        nodes = self.node.locator(".widget-inline-hbox:not(.widget-html, .widget-play)").all()
        return {control.label: control for control in (Control(self, node) for node in nodes)}

    def wait_for_picture(self, other_than: str = "", seconds: float = 10) -> bool:
        """Wait until a picture is there, loaded and not the one with this `src`, or an alert; False if none comes."""
        from playwright.sync_api import TimeoutError

        try:
            self.node.page.wait_for_function(
                """([node, src]) => {
                    const loaded = img => img.offsetParent && img.complete && img.naturalWidth && img.src !== src
                    return [...node.querySelectorAll('img')].some(loaded) || node.querySelector('[role=alert]')
                }""",
                arg=[self.node.element_handle(), other_than],
                timeout=seconds * 1000,
            )
        except TimeoutError:
            return False
        return True


class Control:
    """A slider, drop-down list, checkbox or text field, moved by keyboard."""

    def __init__(self, figure: LiveFigure, node: "Locator"):
        self._figure = figure
        self.input = node.locator("[role=slider], select, input[type=checkbox], input[type=text]")
        self._readout = node.locator(".widget-readout")
        self.track = node.locator(".noUi-base")  # of a slider
        self.label = " ".join(node.locator("label:visible").first.inner_text().split())

    @property
    def kind(self) -> str:
        """One of: slider, select, checkbox, text."""
        kind: str = self.input.evaluate("node => node.role || node.type.split('-')[0]")
        return kind

    @property
    def value(self) -> str:
        """The value as the learner reads it beside the control."""
        if self.kind == "slider":
            return self._readout.inner_text()
        return str(self.input.is_checked()) if self.kind == "checkbox" else self.input.input_value()

    def move(self, key: str) -> bool:
        """Press a key and wait for the new picture; False if the control stood there already.

        Home and End go to the ends of sliders and drop-down lists, and switch a checkbox off and on; the other keys of
        a slider are the arrows, PageUp and PageDown. Into a text field, Home and End type an a and a z in place of what
        stood there: one key, so that one picture follows.
        """
        value, src = self.value, self._figure.src
        if self.kind == "checkbox":
            if (key == "End") != self.input.is_checked():
                self.input.press("Space")
        elif self.kind == "text":
            self.input.press("ControlOrMeta+a")
            self.input.press("z" if key == "End" else "a")
        else:
            self.input.press(key)
        moved = self.value != value
        if moved:
            self._figure.wait_for_picture(other_than=src)
        return moved
