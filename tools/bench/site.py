"""The seconds until the site can be used: the book's first figure, JupyterLite's notebooks, and the chat.

The site must be built (`python course.py site`). It is served on this machine, so only the machine counts. The goals
are for two free cores; on a busy machine a time says little.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tools.__main__ import ROOT, SITE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tools.browser.driver import JupyterLab
    from tools.browser.firefox import Browser as Firefox
    from tools.browser.notebook import Notebook

Ask = Callable[..., Any]  # calls a JavaScript function in a page


def run(which: Sequence[str] = ()) -> None:
    """Measure these parts of the site, or all."""
    parts = {"book": time_book, "lite": time_lite, "chat": time_chat}
    if unknown := set(which) - set(parts):
        sys.exit(f"there is no {unknown.pop()!r}; choose from {', '.join(parts)}")
    if not (SITE / "index.html").exists():
        sys.exit("There is no site to measure yet. Build it first: python course.py site")
    for name in which or parts:
        print(f"== {name}", flush=True)
        parts[name]()


def tell(what: str, number: float, goal: float, unit: str = "s") -> None:
    """Print a number, its goal, and whether it is met."""
    shown = f"{number:.0f}" if number >= 10 else f"{number:.2g}"
    print(f"  {what}: {shown} {unit} (goal {goal:g}: {'met' if number <= goal else 'MISSED'})", flush=True)


# --- The book: from the link to the first figure that follows one's hand ----------------------------------------------

PAGES = ("index.html", "notebooks/00_start_here.html")
VISITORS = {"a laptop": (1440, 1), "a phone": (390, 4)}  # width, and how many times slower than this machine
FAR_END = "slider => slider.value === slider.max ? 'Home' : 'End'"


def time_book() -> None:
    from tools.browser import driver

    with driver.served(SITE) as address, driver.chromium() as browser:
        for page in PAGES:
            for visitor in VISITORS:
                visit(browser, address, page, visitor)


def visit(browser: "Browser", address: str, name: str, visitor: str) -> None:
    """Visit a page for the first time and for the second, and print when its first figure has followed a key."""
    width, slower = VISITORS[visitor]
    context = browser.new_context(viewport={"width": width, "height": 900})
    for which in ("first", "next"):
        page, fetched = context.new_page(), [0]
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        session.on("Network.loadingFinished", lambda done, fetched=fetched: fetched.append(done["encodedDataLength"]))
        start = time.monotonic()
        page.goto(address + name, wait_until="commit")
        slider = page.locator(".live-controls input[type=range]").first
        slider.wait_for()
        picture = page.locator(".cell_output img, .live img").first
        before = picture.get_attribute("alt")
        slider.press(slider.evaluate(FAR_END))
        page.wait_for_function("([node, alt]) => node.alt !== alt", arg=[picture.element_handle(), before])
        moved = time.monotonic() - start
        page.wait_for_load_state("networkidle")  # or the server complains of requests that nobody waits for
        tell(f"{name}, {visitor}, {which} visit, {sum(fetched) / 1e6:.1f} MB: figure moved", moved, slower)
        page.close()
    context.close()


# --- JupyterLite: text, Ready, and Run All ----------------------------------------------------------------------------

# The kernel says when it begins with a cell, and when it is done with it.
NOTE_STARTS = """({sessionContext}) => {
    window.starts = []
    sessionContext.iopubMessage.connect((_, message) => {
        if (message.header.msg_type === 'execute_input') starts.push(performance.now())
        if (message.content.execution_state === 'idle') window.idle = performance.now()
    })
}"""


def time_lite() -> None:
    from tools.browser import driver

    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        with driver.jupyterlite(SITE / "lite") as lab, measured(lab, path.name) as (notebook, laps):
            for what, seconds, goal in zip(("first text", "Ready", "Run All"), laps, (5, 10, 30), strict=True):
                tell(f"{path.stem}, {what}", seconds, goal)
            slowest = sorted(seconds_of_cells(notebook).items(), key=lambda cell: -cell[1])[:3]
            print("    the slowest cells:", ", ".join(f"{cell} {seconds:.1f} s" for cell, seconds in slowest))


@contextmanager
def measured(lab: "JupyterLab", name: str) -> "Iterator[tuple[Notebook, tuple[float, float, float]]]":
    """Open a notebook, run it, and yield it with its seconds: to first text and to Ready, and of Run All after that."""
    start = time.monotonic()
    with lab.open(name) as notebook:
        notebook.page.locator(".jp-RenderedMarkdown h1").first.wait_for()
        text = time.monotonic() - start
        notebook.run_cell("setup")
        ready = time.monotonic() - start
        notebook.ask(NOTE_STARTS)
        start = time.monotonic()
        notebook.run_all(600)
        yield notebook, (text, ready, time.monotonic() - start)


def seconds_of_cells(notebook: "Notebook") -> dict[str, float]:
    """Return the seconds that each cell took in the `measured` run, by the id of the cell."""
    starts = notebook.ask("() => [...starts, idle]")
    ids = [cell["id"] for cell in notebook.cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    return {cell: (after - start) / 1000 for cell, (start, after) in zip(ids, pairwise(starts), strict=False)}


# --- The chat: ready, first token, a token, memory --------------------------------------------------------------------

SENTENCE = "Tell me in two or three sentences why the sky over the sea is blue in the evening."
LONG = " ".join([SENTENCE] * 9)  # no single word again and again: an answer to that is empty
QUESTIONS = (("a sentence of 20 tokens", SENTENCE, 0.5), ("a prompt of 200", LONG, 3.0))
# Milliseconds from the click until somebody can type; then the page notes when each token comes.
START = """async () => {
    const when = async test => { while (!test()) await new Promise(done => setTimeout(done, 10)) }
    const start = performance.now()
    document.getElementById('start').click()
    await when(() => !document.getElementById('works').hidden)
    const ready = performance.now() - start
    await when(() => document.getElementById('expects').textContent)
    window.came = []
    const before = reactions.piece
    reactions.piece = message => { came.push(performance.now()); before(message) }
    return ready
}"""
# Ask, stop after 12 tokens; return the milliseconds to the first token, and between two tokens.
ANSWER = """async text => {
    const when = async test => { while (!test()) await new Promise(done => setTimeout(done, 5)) }
    document.getElementById('anew').click()
    document.getElementById('text').value = text
    came.length = 0
    const start = performance.now()
    document.getElementById('ask').requestSubmit()
    await when(() => came.length >= 12 || (came.length && !asking))
    if (asking) stop()
    await when(() => !asking)
    return came.map((at, i) => at - (i ? came[i - 1] : start))
}"""
LEAVE = "() => { worker.terminate(); location.href = 'about:blank' }"


def time_chat() -> None:
    from tools.browser import driver, firefox

    packages = (SITE / "chat" / "pyodide" / "packages.tar.gz").stat().st_size / 1e6
    tell("Python's packages, to fetch", packages, 5, "MB")
    with driver.served(SITE) as address:
        print("  Chromium", flush=True)
        with driver.chromium() as browser:
            talk(in_chromium(browser, f"{address}chat/"))
        if not firefox.find():
            print("  Firefox is not installed (Debian: apt install firefox-esr)")
            return
        print("  Firefox", flush=True)
        with firefox.started() as other:
            talk(in_firefox(other, f"{address}chat/"))


def in_chromium(browser: "Browser", address: str) -> Callable[[], Ask]:
    """Return a function that opens this page anew, in a browser that keeps what the page before has stored."""
    context = browser.new_context()

    def opened() -> Ask:
        page = context.new_page()
        page.goto(address)
        return page.evaluate

    return opened


def in_firefox(browser: "Firefox", address: str) -> Callable[[], Ask]:
    """Return the same for Firefox."""
    return lambda: browser.page(address).ask


def talk(opened: Callable[[], Ask]) -> None:
    """Print what the chat's page takes: at the first visit and at the next, and for its answers."""
    for which, goal in (("first visit", 6.0), ("next visit", 4.0)):
        ask = opened()
        tell(f"ready, {which}", ask(START) / 1000, goal)
        tell(f"memory, {which}", memory(), 700, "MB")
        if which == "first visit":
            ask(LEAVE)
    for label, text, goal in QUESTIONS:
        first, *others = (milliseconds / 1000 for milliseconds in ask(ANSWER, text))
        tell(f"first token after {label}", first, goal)
        tell(f"a token behind {label}", statistics.median(others), 0.08)
    tell("memory at the end", memory(), 700, "MB")


def memory() -> int:
    """Return the MB that the browser's largest process holds: the page's own, with its worker."""
    import psutil

    time.sleep(1)  # what was only needed on the way is given back by then
    sizes = [process.memory_info().rss for process in psutil.Process().children(recursive=True)]
    return round(max(sizes) / 1e6)
