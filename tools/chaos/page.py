"""A page of JupyterLab in Chromium or Firefox, as a walk drives it, and what a traceback says about whose it is."""

import ast
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.browser import driver, firefox

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
WIDTH, HEIGHT = 1280, 900


class Chromium:
    """A window of Chromium, driven by playwright, with the methods of `firefox.Page`."""

    def __init__(self, page: "Page"):
        self._page = page

    def ask(self, script: str, *arguments: Any) -> Any:
        return self._page.evaluate(f"async all => await ({script})(...all)", list(arguments))

    def press(self, key: str) -> None:
        self._page.keyboard.press(key)

    def drag(self, points: Sequence[tuple[float, float]], seconds: float) -> None:
        mouse = self._page.mouse
        mouse.move(*points[0])
        mouse.down()
        for point in points[1:]:
            mouse.move(*point)
            time.sleep(seconds / len(points))
        mouse.up()

    def reload(self) -> None:
        self._page.reload()


Window = Chromium | firefox.Page


@contextmanager
def opened(browser: str, address: str) -> Iterator[Window]:
    """Open an address in a new browser with the walk's script in it."""
    if browser == "firefox":
        with firefox.started() as fox:
            fox.send("script.addPreloadScript", functionDeclaration=f"() => {{{SCRIPT}}}")
            yield fox.page(address, WIDTH, HEIGHT)
    else:
        with driver.chromium() as chromium:
            page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.add_init_script(SCRIPT)
            page.on("dialog", lambda dialog: dialog.accept())  # "Leave this page?", with something not saved
            page.goto(address)
            yield Chromium(page)


class Chaos:
    """The functions of `page.js`: `chaos.run(path, cell)`."""

    def __init__(self, window: Window):
        self._window = window

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._window.ask(f"(...all) => chaos.{name}(...all)", *arguments)

    def errors(self) -> list[str]:
        """Take away the errors of our own script that have come since."""
        found: list[str] = self._window.ask("() => chaos.errors.splice(0)")
        return found

    def figures_in_kernel(self, path: str, ids: list[str], fresh: bool = False) -> dict[str, dict[str, Any]]:
        """Return what the kernel knows of these of its live figures; those of an earlier kernel are not there."""
        question = f"__import__('importlib').import_module('tools.chaos.inside').figures({ids}, {fresh})"
        try:
            said = self.inKernel(path, question)
        except Exception as error:
            if "KeyboardInterrupt" not in str(error):
                raise
            said = self.inKernel(path, question)  # a stop of the learner's has come late, and has met the question
        found: dict[str, dict[str, Any]] = json.loads(ast.literal_eval(said))
        return found


def wrong(figure: dict[str, Any], facts: dict[str, Any]) -> str:
    """Return what is wrong with a live figure, from what the page shows and what the kernel knows; or ""."""
    said = {
        "the live picture is empty": not figure["picture"] and not figure["alert"],
        f"the kernel has sent another picture than that of {facts['values']}": not facts["follows"],
        f"a fresh figure shows another picture at {facts['values']}": not facts.get("whole", True),
        f"the page shows {figure['alt']!r}, the kernel sent {facts['alt']!r}": facts["alt"] != figure["alt"],
        f"it lives, but below it stands: {figure['note']}": bool(figure["note"]),
    }
    return next((f"{figure['cell']}: {what}" for what, is_so in said.items() if is_so), "")


FRAME = re.compile(r"^ *(?:File \"?(?P<file>[^\"\n]+?)\"?(?::\d+|, line \d+)|(?P<cell>Cell In\[))", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def verdict(name: str, text: str, edited: bool) -> str:
    """Return whose a traceback is: the learner's, one that we say clearly, or "lost" with the reason.

    Args:
        name: of the exception.
        edited: whether code was run that the learner has changed.
    """
    text = COLOUR.sub("", text)
    frames = [(found["file"] or "cell", found.start()) for found in FRAME.finditer(text)]
    concerned = [file for file, _ in frames if file == "cell" or "lesson_utils" in file or "ipykernel_" in file]
    if name in ("KeyboardInterrupt", "SyntaxError", "IndentationError"):
        return "the learner's"
    if name == "on stderr" and "Traceback" not in text:
        return "lost: a warning of ours" if "lesson_utils" in text else "the learner's"
    if not concerned or "lesson_utils" not in concerned[-1]:
        return "the learner's"
    innermost = text[frames[-1][1] :]
    arrow = re.search(r"^-+> *\d+ *(.*)$", innermost, re.MULTILINE)
    said = arrow[1] if arrow else next(iter(innermost.splitlines()[1:2]), "")
    ours = "lesson_utils" in frames[-1][0]  # and not words of NumPy's
    if ours and name in ("ValueError", "KeyError", "TypeError") and re.match(r"\s*raise\b", said):
        return "said clearly"
    if edited and name == "MemoryError":
        return "the learner's"
    return "lost: a traceback of ours" + (", after an edit" if edited else "")
