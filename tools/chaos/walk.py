"""One walk: a learner in JupyterLab who does anything at all, thirty times, and after each step a look at the page."""

import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import psutil

from tools import start
from tools.browser import driver
from tools.chaos import page

NOTEBOOKS = driver.ROOT / "notebooks"
PATIENCE = 20  # seconds; then the learner presses stop
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"scrollPastEnd": False},
}
# A number made huge asks for more memory than a machine has: the kernel refuses, before the system ends it.
LIMIT = """import contextlib
with contextlib.suppress(ImportError, ValueError, OSError):
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
"""


class Lost(Exception):
    """Something that a learner should not have met."""


class Walk:
    """A notebook in a fresh JupyterLab and a fresh browser. `story` says step by step what was done.

    What is random depends on seed and step alone, so that a repeated walk takes the same steps on a slower machine.
    """

    def __init__(self, seed: int, notebook: str, browser: str, kinds: "Kinds"):
        self.seed, self.browser, self.kinds = seed, browser, kinds
        self.tried: Counter[str] = Counter()
        self.lost: list[tuple[int, str, str]] = []  # step, kind, what
        self.story: list[str] = []
        self.random = Random(f"{seed} {notebook}")
        others = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb") if path.name != notebook)
        self.paths = [notebook, self.random.choice(others)]
        self.path = notebook  # of the notebook in front
        self.opened = {notebook}
        self.kept: dict[str, list[dict[str, str]]] = {}  # of each notebook: what a reload may show, the newest last
        self.edited: set[str] = set()  # notebooks whose kernel has run something edited
        self.new: set[str] = set()  # notebooks whose kernel knows nothing yet
        self._given: dict[str, dict[str, str]] = {}  # of each notebook: the sources of its cells when it was opened
        self._seen: set[tuple[str, str, str]] = set()

    def go(self, steps: int) -> "Walk":
        """Take the steps, and look after each; what is lost stands in `lost`."""
        train = self.random.choice(("no", "no", "yes"))
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            own = {
                "COURSE_PROGRESS": str(folder / "solved.txt"),
                "COURSE_TRAIN": train,
                "IPYTHONDIR": str(folder / "ipython"),
                "OPENBLAS_NUM_THREADS": "1",
            }
            stack.enter_context(mock.patch.dict(os.environ, own))
            (limit := folder / "ipython/profile_default/startup/limit.py").parent.mkdir(parents=True)
            limit.write_text(LIMIT)
            self._mine = folder / "notebooks"
            shutil.copytree(NOTEBOOKS, self._mine, ignore=shutil.ignore_patterns(".*"))
            for path in self._mine.glob("*.ipynb"):
                path.write_text(start.without_outputs(path), encoding="utf-8")  # as course.py copies them
            url, token = stack.enter_context(driver.server(self._mine, SETTINGS))
            address = f"{url}lab/tree/{self.path}?token={token}"
            self.window = stack.enter_context(page.opened(self.browser, address))
            self.page = page.Chaos(self.window)
            self.story.append(f"{self.path} in {self.browser}, COURSE_TRAIN={train}")
            self.arrive()
            self.page.run(self.path, "setup")
            self.settle()
            for step in range(1, steps + 1):
                self.random = Random(f"{self.seed} {step}")
                kind = self.random.choices(list(self.kinds), [often for often, _ in self.kinds.values()])[0]
                self.story.append(f"{step}. {kind}")
                self._try(step, kind, self.kinds[kind][1], Walk.settle, Walk._look)
            self.story.append("at the end")
            self._try(steps + 1, "a last look", Walk._last_look)
            self._try(steps + 1, "all is saved", Walk._save_all)
        return self

    def _try(self, step: int, kind: str, *parts: "Callable[[Walk], None]") -> None:
        """Take a step, and note what was lost; what is still wrong from an earlier step counts once."""
        self.tried[kind] += 1
        try:
            for do in parts:
                do(self)
        except Lost as lost:
            what = str(lost)
        except Exception as error:  # the page or the kernel did not answer: that is lost, too, and the walk goes on
            what = f"{type(error).__name__}: {error}"
            with suppress(Exception):
                self.reload()
        else:
            return
        if what not in {before for _, _, before in self.lost}:
            self.lost.append((step, kind, what))

    def also(self, text: str) -> None:
        self.story[-1] += f": {text}" if ": " not in self.story[-1] else f", {text}"

    def code(self) -> list[dict[str, Any]]:
        return [cell for cell in self.page.cells(self.path) if cell["type"] == "code" and cell["source"].strip()]

    def run(self, cell: dict[str, Any], how: str = "run-cell") -> None:
        self.also(f"{cell['id']}" + (f" ({how})" if how != "run-cell" else ""))
        self.page.run(self.path, cell["id"], how)
        if cell["id"] == "setup" or how != "run-cell":
            self.new.discard(self.path)
        if cell["id"] in self.changed:
            self.edited.add(self.path)

    @property
    def changed(self) -> list[str]:
        """The cells of the notebook in front that do not hold what the course has written into them."""
        given = self._given[self.path]
        return sorted(name for name, source in self.kept[self.path][-1].items() if source != given.get(name))

    def run_figure(self) -> None:
        """Run a cell that shows a figure, if there is one that needs nothing but the set-up."""
        if self.path in self.new and self.random.random() < 0.8:
            self.run({"id": "setup"})
        found = [cell for cell in self.code() if re.match(r"lab\.\w+_(lab|look)\(\)\s*$", cell["source"])]
        self.run(self.random.choice(found or self.code()))

    def control(self, *kinds: str, typed: bool = False) -> tuple[dict[str, Any], int] | None:
        """Choose a figure, and the number of one of its controls of these kinds; without a figure, show one first.

        With `typed`, the control has a number beside it that can be typed over.
        """
        if not self.page.figures(self.path):
            self.run_figure()
            self.settle()
        found = [
            (figure, number)
            for figure in self.page.figures(self.path)
            for number, control in enumerate(figure["controls"])
            if control["kind"] in kinds and control["typed"] >= typed
        ]
        if not found:
            self.also("there is none")
            return None
        figure, number = self.random.choice(found)
        self.also(f"{figure['cell']}, control {number}")
        return figure, number

    def begins_anew(self) -> None:
        """Note that the kernel in front knows nothing any more."""
        self.edited.discard(self.path)
        self.new.add(self.path)

    def kernels(self) -> list[psutil.Process]:
        name = f"kernel-{self.page.state(self.path)['kernel']}"
        return [process for process in psutil.Process().children(recursive=True) if name in words_of(process)]

    def arrive(self) -> None:
        """Wait until the notebook in front is open."""
        give_up = time.monotonic() + 60
        while True:
            with suppress(Exception):  # the page is being loaded
                self.page.accept()
                if self.page.isOpen(self.path):
                    break
            if time.monotonic() > give_up:
                raise Lost(f"{self.path} was not open after 60 s")
            time.sleep(0.1)
        self._given.setdefault(self.path, self.sources())
        self.kept.setdefault(self.path, [self._given[self.path]])

    def sources(self) -> dict[str, str]:
        return {cell["id"]: cell["source"] for cell in self.page.cells(self.path)}

    def typed(self) -> None:
        self.kept[self.path].append(self.sources())

    def settle(self) -> None:
        """Wait until the kernel has nothing to do; a learner without patience presses stop, and then restarts."""
        stoppable = True
        for how in ("", "interrupt", "restart"):
            if how:
                self.also(f"{how} after {PATIENCE} s")
                getattr(self.page, how)(self.path)
            if how == "restart":
                stoppable = self.path in self.edited
                self.begins_anew()
            give_up = time.monotonic() + PATIENCE
            while time.monotonic() < give_up:
                state = self.page.state(self.path)
                if state["dialogs"]:
                    self.also(f"dialog {state['dialogs'][0][:40]!r}")
                    self.page.accept()
                elif state["status"] == "idle" and not state["running"]:
                    if not stoppable:
                        raise Lost("the stop button did not stop a cell of the course")
                    return
                time.sleep(0.1)
        raise Lost(f"the kernel does not come to rest: {state}")

    def follows(self, before: dict[str, Any], number: int) -> None:
        """See that a moved control moves its picture, or that the page says why it does not."""
        self.settle()
        alive = bool(self.page.figures_in_kernel(self.path, [before["id"]]))
        give_up = time.monotonic() + 10
        while True:
            now = next(figure for figure in self.page.figures(self.path) if figure["id"] == before["id"])
            moved = now["controls"][number]["value"] != before["controls"][number]["value"]
            is_word = now["controls"][number]["kind"] == "text"  # letters that it can't use change nothing
            answered = now["shown"] != before["shown"] or now["alert"] if alive else now["note"]
            scripted = self.window.ask("() => Boolean(window.attentionCourse)")
            if answered or not moved or is_word or not (alive or scripted):
                return
            if time.monotonic() > give_up:
                what = "its picture does not follow" if alive else "the page does not say that the kernel is new"
                raise Lost(f"{now['cell']}, control {number} was moved, but {what}")
            time.sleep(0.2)

    def _look(self, fresh: bool = False) -> None:
        """Raise Lost if there stands something on the page that should not."""
        edited = self.path in self.edited
        for cell in self.page.cells(self.path):
            for error in cell["errors"]:
                self._judge(cell["id"], error["name"], error["text"], edited)
            if "Traceback" in cell["stderr"] or (cell["stderr"] and not edited):
                self._judge(cell["id"], "on stderr", cell["stderr"], edited)
        if errors := self.page.errors():
            raise Lost(f"an error of page.js: {errors[0]}")
        give_up = time.monotonic() + 8
        while wrong := self._wrong_figures(fresh):
            if time.monotonic() > give_up:
                raise Lost(wrong)
            time.sleep(0.3)

    def _judge(self, cell: str, name: str, text: str, edited: bool) -> None:
        if (self.path, cell, text) in self._seen:
            return
        self._seen.add((self.path, cell, text))
        whose = page.verdict(name, text, edited)
        self.also(f"[{cell}: {name}, {whose}]")
        if whose.startswith("lost"):
            raise Lost(f"{whose}, in {cell}:\n{page.COLOUR.sub('', text)}")

    def _wrong_figures(self, fresh: bool) -> str:
        """Return what is wrong with the live figures, or ""."""
        shown = self.page.figures(self.path)
        ids = [figure["id"] for figure in shown]
        known = self.page.figures_in_kernel(self.path, ids, fresh) if shown else {}
        for figure in shown:
            if figure["alert"]:
                name = (re.findall(r"^(\w+)(?:\.\w+)*:", figure["alert"], re.MULTILINE) or [""])[-1]
                self._judge(figure["cell"], name, figure["alert"], self.path in self.edited)
        compared = (page.wrong(figure, known[figure["id"]]) for figure in shown if figure["id"] in known)
        return next(filter(None, compared), "")

    def save(self) -> None:
        """Save the notebook in front."""
        if not self.page.save(self.path):
            raise Lost(f"{self.path} could not be saved")
        self.kept[self.path] = self.kept[self.path][-1:]

    def bring(self) -> None:
        """Open the notebook that is to be in front, or go to it where it is open."""
        self.page.open(self.path)
        self.opened.add(self.path)
        self.arrive()

    def each_notebook(self, do: Callable[[], None]) -> None:
        """Call a function for each notebook that was opened, in front of all; the last is the one that is there now."""
        for path in sorted(self.opened, key=lambda path: path == self.path):
            self.path = path
            self.bring()
            do()

    def reload(self) -> None:
        """Load the page again. What is not saved is given up, as the browser has asked."""
        self.window.reload()
        self.arrive()

        def compare() -> None:
            shown = self.sources()
            known, self.kept[self.path] = self.kept[self.path], [shown]
            if shown not in known:
                raise Lost(f"after a reload {self.path} shows neither what was saved nor what was typed since")

        self.each_notebook(compare)

    def _last_look(self) -> None:
        self.settle()
        self._look(fresh=self.path not in self.edited)

    def _save_all(self) -> None:
        """Save every notebook: what was typed stands in the files."""

        def save() -> None:
            typed = self.kept[self.path][-1]
            if self.sources() != typed:
                raise Lost(f"{self.path} on the page is not what was typed last")
            self.save()
            file = json.loads((self._mine / self.path).read_text(encoding="utf-8"))
            content = {cell["id"]: "".join(cell["source"]) for cell in file["cells"]}
            if content != typed:
                raise Lost(f"the file of {self.path} does not hold what was typed")

        self.each_notebook(save)


def words_of(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


Kinds = dict[str, tuple[int, Callable[[Walk], None]]]  # of steps: how often, among all, and what it does
