"""JupyterLab on copies of the notebooks, whose models come trained."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.browser import driver

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    if missing := [name for name in ("playwright", "jupyterlab") if not find_spec(name)]:
        pytest.skip(f"{' and '.join(missing)} missing; install them: python course.py test tests/browser")
    if not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    import matplotlib.font_manager  # noqa: F401  # on a new machine it reports on stderr that it collects the fonts

    folder = tmp_path_factory.mktemp("notebooks")
    for path in NOTEBOOKS.glob("*.ipynb"):
        shutil.copy(path, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_TRAIN", "no")
        with driver.jupyterlab(folder) as server:
            yield server
