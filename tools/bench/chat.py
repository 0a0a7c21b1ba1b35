"""The chat's page: seconds until it is ready, until a first token, and for a token; and the memory of its processes.

Chromium and Firefox, on loopback, with the published model. Beside each number stands the goal on two free cores, and
whether it is met; on a busy machine a time says little. A token is timed in the page's own Python, which only Chromium
lets us ask; in Firefox it is what the page itself notes between the tokens of an answer.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tools.browser.firefox import Browser as FirefoxBrowser

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "docs" / "_build" / "site" / "chat"
SENTENCE = "Tell me in two or three sentences why the sky over the sea is blue in the evening."
LONG = " ".join([SENTENCE] * 9)  # no single word again and again: an answer to that is empty
QUESTIONS = (("a sentence of 20 tokens", SENTENCE, 0.5), ("a prompt of 200", LONG, 3.0))
# In the page: when each token of an answer came.
NOTE = """() => {
    self.came = []
    const before = reactions.piece
    reactions.piece = (message) => { came.push(performance.now()); before(message) }
}"""
# Ask, stop after 12 tokens; return the milliseconds to the first token, and between two tokens.
ANSWER = """async text => {
    const when = (test) => new Promise((done) => { const look = () => test() ? done() : setTimeout(look, 5); look() })
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
# In the page's own Python: the seconds of a token behind a context of some length, the least of several.
A_TOKEN = """
import time, numpy as np
ids, past, times = np.full(CONTEXT, 100), chat.model.new_past(), []
for start in range(0, CONTEXT, 32):
    chat.forward(ids[start : start + 32], past, last=True)
for _ in range(12):
    start = time.perf_counter()
    chat.forward(ids[:1], past, last=True)
    times.append(time.perf_counter() - start)
    for cache in past:
        cache.length -= 1
float(np.median(times))
"""


def run() -> None:
    """Print a line for each goal."""
    from tools.browser import driver, firefox
    from tools.site.chat import make

    with tempfile.TemporaryDirectory() as name:
        folder = BUILT
        if not (folder / "model.json").exists():
            folder = Path(name, "chat")
            make.build(folder)
        sizes = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        archive = (folder / "pyodide" / "packages.tar.gz").stat().st_size / 1e6
        print(f"  to fetch: {make.megabytes(sizes):.0f} MB of the model")
        tell("Python's packages, to fetch", archive, 5, "MB")
        with driver.served(folder) as address:
            print("  Chromium", flush=True)
            with driver.chromium() as browser:
                measure(browser, address)
            if not firefox.find():
                print("  Firefox is not installed (Debian: apt install firefox-esr)")
                return
            print("  Firefox", flush=True)
            with firefox.started() as other:
                measure_firefox(other, address)


def tell(what: str, number: float, goal: float, unit: str = "s") -> None:
    """Print a number, its goal, and whether it is met."""
    shown = f"{number:.0f}" if unit == "MB" and number >= 10 else f"{number:.3g}"
    print(f"  {what}: {shown} {unit} (goal {goal:g}: {'met' if number <= goal else 'MISSED'})", flush=True)


def measure(browser: "Browser", address: str) -> None:
    """Print what the page at this address takes in Chromium."""
    context = browser.new_context()
    for visit, goal in (("first visit", 6), ("next visit", 4)):
        page = context.new_page()
        tell(f"ready, {visit}", ready(page, address), goal)
        tell(f"memory, {visit}", memory(), 700, "MB")
        if visit == "first visit":
            page.close()
    for label, text, limit in QUESTIONS:
        tell(f"first token after {label}", first_token(page, text), limit)
    (worker,) = page.workers
    for length, limit in ((40, 0.06), (500, 0.08)):
        seconds: Any = worker.evaluate("code => pyodide.runPython(code)", A_TOKEN.replace("CONTEXT", str(length)))
        tell(f"a token behind {length}", seconds, limit)
    tell("memory at the end", memory(), 700, "MB")
    context.close()


def measure_firefox(browser: "FirefoxBrowser", address: str) -> None:
    """Print what the page at this address takes in Firefox; each visit is a window of its own."""
    for visit, goal in (("first visit", 6), ("next visit", 4)):
        page = browser.page(address)
        time.sleep(0.5)
        start = time.monotonic()
        page.click("#start")
        page.wait("() => !document.getElementById('works').hidden", seconds=300)
        tell(f"ready, {visit}", time.monotonic() - start, goal)
        page.wait("() => document.getElementById('expects').textContent", seconds=120)
        tell(f"memory, {visit}", memory(), 700, "MB")
        if visit == "first visit":
            page.ask("() => { worker.terminate(); location.href = 'about:blank' }")
    page.ask(NOTE)
    for label, text, limit in QUESTIONS:
        took = page.ask(ANSWER, text)
        tell(f"first token after {label}", took[0] / 1e3, limit)
        if limit == QUESTIONS[0][2]:
            tell("a token of an answer, at the start", statistics.median(took[1:]) / 1e3, 0.06)
    tell("memory at the end", memory(), 700, "MB")


def ready(page: "Page", address: str) -> float:
    """Return the seconds from the click until somebody can type."""
    page.goto(address)
    page.wait_for_timeout(500)
    start = time.monotonic()
    page.click("#start")
    page.locator("#works").wait_for(timeout=300_000)
    seconds = time.monotonic() - start
    page.wait_for_function("document.getElementById('expects').textContent", timeout=120_000)
    return seconds


def first_token(page: "Page", text: str) -> float:
    """Return the seconds from sending a message to the first token of its answer, which is then stopped."""
    page.click("#anew")
    page.fill("#text", text)
    start = time.monotonic()
    page.press("#text", "Enter")
    page.wait_for_function("document.querySelector('#said > div:last-child span')", timeout=120_000)
    seconds = time.monotonic() - start
    page.press("#text", "Escape")
    page.wait_for_function("document.getElementById('send').textContent === 'Send'", timeout=120_000)
    return seconds


def memory() -> int:
    """Return the MB that the browser's largest process holds: the page's own, with its worker."""
    import psutil

    time.sleep(1)  # what was only needed on the way is given back by then
    sizes = [process.memory_info().rss for process in psutil.Process().children(recursive=True)]
    return round(max(sizes) / 1e6)
