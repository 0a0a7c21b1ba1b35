"""The times of JupyterLite: until there is text to read, until "Ready", and for Run All, with the slowest cells.

Beside each time stands what the browser's processes took of a core. On two free cores a time is little more than that;
on a busy machine only the latter means something.

Measured on two free cores: first text 5 to 6 s, Ready 9 to 10 s. What is left until Ready is mostly not ours, and the
cores are busy all the time. JupyterLab's page takes 6 s. Beside it, on the other core, the first kernel's worker starts
(early.js): Pyodide and its Python 2 s, our archive of packages 1.3, NumPy 0.4; without that, Ready came 1 to 2 s later.
Then IPython, and what a first cell imports, most of all ipywidgets, 3. Later, matplotlib's import takes a second, and
each picture a few tenths. Run All took 1 s (notebook 00) to 24 s (07), of the others 13 s at most.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tools.bench import trial

if TYPE_CHECKING:
    from tools.browser.driver import JupyterLab
    from tools.browser.notebook import Notebook

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "docs" / "_build" / "site" / "lite"
GOALS = "goals on two free cores: first text 5 s, Ready 10 s, and Run All 30 s after that"

# The kernel says when it begins with a cell, and when it is done with it.
NOTE_STARTS = """({sessionContext}) => {
    window.starts = []
    sessionContext.iopubMessage.connect((_, message) => {
        if (message.header.msg_type === 'execute_input') starts.push(performance.now())
        if (message.content.execution_state === 'idle') window.idle = performance.now()
    })
}"""


class Lap(NamedTuple):
    seconds: float
    core: float  # seconds of a core that the browser's processes took

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s ({self.core:.0f})"


class Stopwatch:
    """The time since it was made, and the processor time of all processes that this one has started."""

    def __init__(self) -> None:
        self._start = Lap(time.monotonic(), self._core())

    def lap(self) -> Lap:
        return Lap(time.monotonic() - self._start.seconds, self._core() - self._start.core)

    @staticmethod
    def _core() -> float:
        import psutil

        total = 0.0
        for process in psutil.Process().children(recursive=True):
            try:
                total += sum(process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue
        return total


def run() -> None:
    """Print a line for each notebook."""
    from tools.browser import driver
    from tools.site import lite

    print(GOALS)
    print(f"seconds (and of a core)   {'text':>12}{'Ready':>12}{'Run All':>12}")
    with tempfile.TemporaryDirectory() as name:
        folder = BUILT
        if not (folder / "static" / "pyodide" / "start.js").exists():
            folder = Path(name, "lite")
            lite.build(folder)
        for path in sorted((ROOT / "notebooks").glob("*.ipynb"))[: 1 if trial.on() else None]:
            with driver.jupyterlite(folder) as lab, measured(lab, path.name) as (notebook, laps):
                slowest = sorted(seconds_of_cells(notebook).items(), key=lambda cell: -cell[1])[:3]
                print(f"  {path.stem:24}{''.join(f'{lap!s:>12}' for lap in laps)}", end="   ")
                print(", ".join(f"{cell} {seconds:.1f}" for cell, seconds in slowest), flush=True)


@contextmanager
def measured(lab: "JupyterLab", name: str) -> "Iterator[tuple[Notebook, tuple[Lap, Lap, Lap]]]":
    """Open a notebook, run it, and yield it with its times: first text and Ready since it was opened, and Run All."""
    watch = Stopwatch()
    with lab.open(name) as notebook:
        notebook.page.locator(".jp-RenderedMarkdown h1").first.wait_for()
        text = watch.lap()
        notebook.run_cell("setup")
        ready = watch.lap()
        notebook.ask(NOTE_STARTS)
        watch = Stopwatch()
        notebook.run_all(600)
        yield notebook, (text, ready, watch.lap())


def seconds_of_cells(notebook: "Notebook") -> dict[str, float]:
    """Return the seconds that each cell took in the `measured` run, by the id of the cell."""
    starts = notebook.ask("() => [...starts, idle]")
    ids = [cell["id"] for cell in notebook.cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    return {cell: (after - start) / 1000 for cell, (start, after) in zip(ids, pairwise(starts), strict=False)}
