"""A stranger's first visit to the site: the seconds from the link to the first figure that follows one's hand.

On loopback, so that only the machine counts, with all of its speed and with a quarter of it; beside it, what a visit
fetches. What it takes until JupyterLite runs a cell, `lite` measures.
"""

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench import trial

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "docs" / "_build" / "site"
PAGES = ("index.html", "notebooks/00_start_here.html")
GOAL = 1.0  # seconds until the first drag, on two free cores
FAR_END = "slider => slider.value === slider.max ? 'Home' : 'End'"


def run() -> None:
    """Print a line for each page, each way to look at it, and each speed."""
    from tools.browser import driver
    from tools.site import build

    print(f"goal on two free cores, a first visit at full speed: {GOAL:.0f} s")
    with tempfile.TemporaryDirectory() as name:
        folder = BUILT
        if not (folder / PAGES[0]).exists():
            folder = Path(name)
            build.build_book(folder, with_lite=False)
        with driver.served(folder) as address, driver.chromium() as browser:
            for page in PAGES[: 1 if trial.on() else None]:
                for slower in (1, 4):
                    for width, look in ((1440, "a laptop"), (390, "a phone")):
                        visit(browser, address, page, slower, (width, look))


def visit(browser: "Browser", address: str, name: str, slower: int, size: tuple[int, str]) -> None:
    """Visit a page for the first time and for the second, and print when its first figure has followed a key."""
    width, look = size
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
        seen = time.monotonic() - start
        before = picture.get_attribute("alt")
        slider.press(slider.evaluate(FAR_END))
        page.wait_for_function("([node, alt]) => node.alt !== alt", arg=[picture.element_handle(), before])
        moved = time.monotonic() - start
        speed = "full speed" if slower == 1 else f"1/{slower} of it"
        print(
            f"  {name:30}{look:10}{speed:12}{f'{which} visit:':13}slider in sight {seen:.1f} s, moved {moved:.1f} s, "
            f"{sum(fetched) / 1e6:.1f} MB",
            flush=True,
        )
        page.wait_for_load_state("networkidle")  # or the server complains of requests that nobody waits for
        page.close()
    context.close()
