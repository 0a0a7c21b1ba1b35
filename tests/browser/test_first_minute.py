"""JupyterLab asks newcomers whether they want news, over the first notebook; with the course's settings it does not."""

import pytest

from tools.browser import driver
from tools.start import SETTINGS

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
# JupyterLab's own choice, written out: `python course.py` may have turned it off where the tests run.
ASKS = {name: {"fetchNews": "none", "checkForUpdates": True} for name in SETTINGS}


@pytest.mark.parametrize("settings", [ASKS, SETTINGS], ids=["as JupyterLab comes", "as opened by course.py"])
def test_the_question_about_news(settings, tmp_path):
    if not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    with driver.server(tmp_path, settings) as (url, token), driver.chromium() as chromium:
        page = chromium.new_page()
        page.goto(f"{url}lab?token={token}")
        page.wait_for_function("window.jupyterapp?.restored", timeout=60_000)
        page.evaluate("jupyterapp.restored")
        question = page.get_by_text("Would you like to get notified about official Jupyter news?")
        if settings is SETTINGS:
            page.wait_for_timeout(5000)  # without the settings it has come by then
            assert question.count() == 0
        else:
            question.wait_for(timeout=60_000)  # it comes by itself; how soon depends on the machine
