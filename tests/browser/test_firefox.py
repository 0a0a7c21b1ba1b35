"""What a page does wrong in Firefox is noticed: other tests rely on it."""

import pytest

from tools.browser import driver, firefox

pytestmark = [pytest.mark.slow, pytest.mark.long_form]

PAGE = """<!doctype html><meta charset="utf-8"><title>Wrong</title>
<button onclick="this.textContent = 'pressed'">press</button>
<img src="missing.png"><img src="http://127.0.0.2:40404/elsewhere.png">
<script>console.warn("warned"); console.error("said"); throw new Error("thrown")</script>"""


def test_complaints_and_requests(tmp_path):
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    with driver.served(tmp_path) as address, firefox.started() as browser:
        page = browser.page(address, width=390, height=700)
        assert page.ask("(a, b) => [innerWidth, innerHeight, a + b]", 1, 2) == [390, 700, 3]
        page.click("button")
        page.wait("() => document.querySelector('button').textContent === 'pressed'")
        assert sorted(browser.complaints) == [f"404: {address}missing.png", "Error: thrown", "said"]
        assert sorted(browser.requests) == sorted(
            [address, f"{address}missing.png", "http://127.0.0.2:40404/elsewhere.png"]
        )
        with pytest.raises(RuntimeError, match="nothing is not defined"):
            page.ask("() => nothing")
        with pytest.raises(TimeoutError, match=r"not within 0\.2 s: \(\) => false"):
            page.wait("() => false", seconds=0.2)
