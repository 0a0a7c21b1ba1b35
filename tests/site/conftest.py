"""What the site's tests share: a browser, and Pyodide's wheels where its own host is out of reach."""

import pytest

from tools.browser import driver


@pytest.fixture(scope="module")
def chromium():
    if not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    with driver.chromium() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def wheels():
    """What is built needs Pyodide's wheels: this finds them."""
    import pyodide_wheels

    from tools.site import fetch

    try:
        pyodide_wheels.find()
    except fetch.Unreachable as error:
        pytest.skip(str(error))
