"""Google Colab's versions: each notebook alone in an empty folder, its set-up cell fetching the course.

The pins are Colab's of 2026-11; the Python is the one at hand.
"""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.long_form
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
FIRST = ("00_start_here",)  # CI has no time for more; GitHub's workflow runs all
PINS = {
    "numpy": "2.1.3",
    "matplotlib": "3.10.0",
    "ipywidgets": "7.7.1",
    "ipython": "7.34.0",
    "ipykernel": "6.17.1",
    "tqdm": "4.67.1",
}
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
sys.exit("".join(output.text for output in outputs if output.get("name") == "stderr") or 0)
"""


@pytest.fixture(scope="module")
def colab(environment):
    # setuptools: this IPython still asks for pkg_resources, which newer ones no longer have.
    environment.install(*(f"{name}=={version}" for name, version in PINS.items()), "nbclient", "setuptools<81")
    return environment


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem in FIRST else [pytest.mark.own_job], id=path.stem) for path in NOTEBOOKS],
)
def test_notebook(path, colab, address, tmp_path):
    source = path.read_text(encoding="utf-8")
    assert "git+https://github.com/" in source
    (tmp_path / path.name).write_text(
        re.sub(r"git\+https://github\.com/[\w.-]+/[\w.-]+", f"git+{address}", source), encoding="utf-8"
    )
    colab.run("-c", RUN, path.name, cwd=tmp_path, COURSE_TRAIN="no")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert colab.versions(*PINS) == PINS
    colab.run("-m", "pip", "uninstall", "--quiet", "--yes", "lesson-utils")
