"""Say what ended while the page was reloaded: what a cell prints after that reaches no page.

A page that opens a notebook asks its kernel at once what it is (`kernel_info_request`), under a name of its own. A
kernel at work answers later, but the question carries the time. So the first cell that a page runs can say which cells
of another page ended after that.
"""

import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

LOADING = 5  # seconds that a page takes until it asks; what ended in these is lost as well


class Cell(NamedTuple):
    page: str
    began: float
    ended: float
    line: str
    well: bool


class Reloads:
    """Keep which page ran which cell, and when the pages were opened. Times are seconds, by the browser's clock.

    Kernel and browser may be on two machines. A request is not handled before it was sent, so the smallest difference
    between the two clocks that was seen is the best guess.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ahead = float("inf")  # the kernel's clock, of the browser's
        self._opened: dict[str, float] = {}
        self._cells: list[Cell] = []
        self._page, self._began = "", 0.0
        self.set_up: set[str] = set()  # the pages that have run the set-up cell

    def opened(self, page: str, sent: float) -> None:
        """Note that a page has asked what the kernel is."""
        self._opened.setdefault(page, sent)

    def begins(self, page: str, sent: float) -> str:
        """Note that a page runs a cell; return what is to be said about cells of the page before, or ""."""
        self._ahead = min(self._ahead, self._clock() - sent)
        self._page, self._began = page, self._now()
        asked = self._opened.get(page, float("inf"))
        others = [cell for cell in self._cells if cell.page != page and cell.ended > asked - LOADING]
        self._cells = [cell for cell in self._cells if cell.page == page]
        # A second page with the same notebook opens while nothing runs: then nothing is lost.
        if not any(cell.began < asked - LOADING for cell in others):
            others = [cell for cell in others if cell.began < asked < cell.ended]  # it was loaded in a moment
        return _said(others) if others else ""

    def ends(self, source: str, well: bool) -> None:
        """Note that the cell has ended, well or in an error."""
        lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if self._page and lines:
            self._cells.append(Cell(self._page, self._began, self._now(), lines[0].strip(), well))
            self._page = ""

    def _now(self) -> float:
        return self._clock() - self._ahead


def _said(cells: list[Cell]) -> str:
    lines = [f"    {cell.line}" + ("" if cell.well else "   ← It ended in an error. Run it again.") for cell in cells]
    cell, it, they = ("this cell", "it", "it") if len(cells) == 1 else ("these cells", "them", "they")
    end = f"What {they} printed is lost, but what {they} made is there. You need not run {it} again.\n"
    return "\n".join([f"The page was reloaded while {cell} ran:", *lines, end])


def set_up() -> None:
    """Note that this page has run the set-up cell, and begin to watch in a kernel whose page can be reloaded."""
    shell = _shell()
    kernel = getattr(shell, "kernel", None)
    handlers = getattr(kernel, "shell_handlers", None)
    if kernel is None or not handlers:
        return
    if not hasattr(shell, "attention_reloads"):
        shell.attention_reloads = _watch(shell, kernel, handlers)
    shell.attention_reloads.set_up.add(_page(shell))


def was_reloaded() -> bool:
    """Return whether the page that runs this cell has not run the set-up cell; False where pages are not watched."""
    shell = _shell()
    return hasattr(shell, "attention_reloads") and _page(shell) not in shell.attention_reloads.set_up


def _watch(shell: Any, kernel: Any, handlers: dict[str, Any]) -> Reloads:
    reloads, answer = Reloads(), handlers["kernel_info_request"]

    def asked(stream: Any, ident: Any, parent: Any) -> Any:
        reloads.opened(*_sender(parent))
        return answer(stream, ident, parent)

    def before(info: Any) -> None:
        if said := reloads.begins(*_sender(kernel.get_parent())):
            print(said)

    handlers["kernel_info_request"] = asked
    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", lambda result: reloads.ends(result.info.raw_cell, result.success))
    return reloads


def _shell() -> Any:
    """Return IPython's shell, if there is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _page(shell: Any) -> str:
    return _sender(shell.kernel.get_parent())[0]


def _sender(message: dict[str, Any]) -> tuple[str, float]:
    """Return which page sent a message, and when."""
    header = message["header"]
    date = header["date"]
    return header["session"], (datetime.fromisoformat(date) if isinstance(date, str) else date).timestamp()
