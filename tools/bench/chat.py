"""The chat's page: seconds until it is ready, until a first token, and for a token; and the memory of its processes.

Chromium, on loopback, with the published model. Beside each time stands the goal on two free cores; on a busy machine
a time says little.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "docs" / "_build" / "site" / "chat"
SENTENCE = "Tell me in two or three sentences why the sky over the sea is blue in the evening."
LONG = " ".join([SENTENCE] * 9)  # no single word again and again: an answer to that is empty
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
    from tools.browser import driver
    from tools.site.chat import make

    with tempfile.TemporaryDirectory() as name:
        folder = BUILT
        if not (folder / "model.json").exists():
            folder = Path(name, "chat")
            make.build(folder)
        sizes = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        archive = (folder / "pyodide" / "packages.tar.gz").stat().st_size / 1e6
        print(
            f"  to fetch: {make.megabytes(sizes):.0f} MB of the model; {archive:.1f} MB of Python's packages (goal 5)"
        )
        with driver.served(folder) as address, driver.chromium() as browser:
            measure(browser, address)


def measure(browser: "Browser", address: str) -> None:
    """Print what the page at this address takes."""
    context = browser.new_context()
    for visit, goal in (("first visit", 6), ("next visit", 4)):
        page = context.new_page()
        print(f"  ready, {visit}: {ready(page, address):.1f} s (goal {goal})", flush=True)
        if visit == "first visit":
            page.close()
    print(f"  memory: {memory()} MB, of the largest process (goal 700)")
    for label, text, limit in (("a sentence of 20 tokens", SENTENCE, 0.5), ("a prompt of 200", LONG, 3.0)):
        print(f"  first token after {label}: {first_token(page, text):.2f} s (goal {limit})", flush=True)
    (worker,) = page.workers
    for length, limit in ((40, 0.06), (500, 0.08)):
        seconds: Any = worker.evaluate("code => pyodide.runPython(code)", A_TOKEN.replace("CONTEXT", str(length)))
        print(f"  a token behind {length}: {seconds:.3f} s (goal {limit})", flush=True)
    print(f"  memory: {memory()} MB at the end")
    context.close()


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

    sizes = [process.memory_info().rss for process in psutil.Process().children(recursive=True)]
    return round(max(sizes) / 1e6)
