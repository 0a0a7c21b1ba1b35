"""JupyterLite as it is published: every notebook runs in a browser that can reach nothing but a server of files.

python course.py test tests/site/test_lite.py -s      also prints sizes and times
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.bench.lite import measured
from tools.browser import driver, firefox

pytestmark = pytest.mark.long_form

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
# CI has no time for more; GitHub's workflow runs all.
FIRST = ("00_start_here", "04_positional_encoding", "08_training")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site in a folder."""
    if missing := [name for name in ("playwright", "jupyterlite_core", "pyodide_lock") if not find_spec(name)]:
        pytest.skip(f"{' and '.join(missing)} missing; install with: python course.py test --site tests/site")
    if not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    import pyodide_wheels

    from tools.site import fetch, lite

    folder = tmp_path_factory.mktemp("site") / "lite"
    try:
        try:
            lite.build(folder)
        except fetch.Unreachable:  # Pyodide's host, most likely
            pyodide_wheels.unpack()
            lite.build(folder)
    except fetch.Unreachable as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture
def lab(site):
    with driver.jupyterlite(site) as lab:
        yield lab
        assert lab.elsewhere == []


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem in FIRST else [pytest.mark.own_job], id=path.stem) for path in NOTEBOOKS],
)
def test_notebook(lab, path):
    with measured(lab, path.name) as (notebook, (picture, ready, ran)):
        print(f"\n{path.stem}, seconds (and of a core): picture {picture}, Ready {ready}, Run All {ran}", end=" ")
        assert notebook.complaints() == []
        (output,) = next(cell for cell in notebook.cells if cell["id"] == "setup")["outputs"]
        assert "".join(output["text"]) == "Ready.\n"
        assert all(cell["execution_count"] for cell in notebook.cells if cell["cell_type"] == "code")
        figure = notebook.live_figures()[0]
        assert figure.alt.strip()
        # From the keyboard, the slider moves, and picture and alternative text with it.
        slider = next(control for control in figure.controls.values() if control.kind == "slider")
        slider.move("Home")
        low = figure.src, figure.alt
        assert slider.move("ArrowRight"), f"{figure.cell}: {slider.label} does not move"  # JupyterLab wants these keys
        slider.move("End")
        assert figure.alert == ""
        assert figure.src != low[0]
        assert figure.alt != low[1]
        assert notebook.complaints() == []


def test_a_check_names_the_mistake_and_ends_a_loop_that_does_not(lab):
    with lab.open("00_start_here.ipynb") as notebook:
        notebook.run_cell("setup")
        for source, finding in (
            ("return values.mean(axis=0)", "This is the plain mean"),
            ("return weights @ values", "Correct."),
            ("while True: pass", "had not returned after some seconds"),
            ("while True:\n        try: pass\n        except Exception: pass", "had not returned after some seconds"),
        ):
            notebook.run_cell("weighted-average", f"def weighted_average(weights, values):\n    {source}")
            (output,) = notebook.run_cell("weighted-average-check")
            assert finding in "".join(output.get("data", {}).get("text/plain", "")), output
        assert notebook.complaints() == []


def test_python_has_the_whole_text_that_models_learn_from(lab):
    with lab.open("06_causal_mask.ipynb") as notebook:
        (output,) = notebook.run_cell("setup", "from lesson_utils import tasks\nprint(len(tasks.python_text()))")
        assert "".join(output["text"]) == "465126\n"


# Arrays of all forms in memory: each product against the sums that it stands for.
PRODUCTS = """
from itertools import product
import numpy as np
import fast_products
forms = (
    lambda x: x,
    lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    lambda x: x[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
    lambda x: x.repeat(2, axis=-1)[..., ::2],
    lambda x: np.broadcast_to(x[..., :1], x.shape),
)
rng, tried, worst = np.random.default_rng(0), 0, 0.0
leading = ((), ()), ((2,), (2,)), ((2, 1), (3,)), ((0,), (1,))
for dtype, m, n, p, (left, right) in product((np.float32, np.float64), *[(0, 1, 3, 4, 23)] * 3, leading):
    a, b = rng.normal(size=(*left, m, n)).astype(dtype), rng.normal(size=(*right, n, p)).astype(dtype)
    for of_a, of_b in product(forms, repeat=2):
        x, y = of_a(a), of_b(b)
        off = np.abs(x @ y - np.einsum("...ij,...jk->...ik", x, y)).max(initial=0)
        tried, worst = tried + 1, max(worst, off / np.finfo(dtype).eps)
a, b = rng.normal(size=(5, 7)), rng.normal(size=7)
vectors = np.allclose(a @ b, (a * b).sum(axis=-1)) and np.isclose(b @ b, (b * b).sum())
print(fast_products.install(), tried, worst < 100, vectors)
"""


def test_products_of_matrices_are_fast_and_right(lab):
    with lab.open("00_start_here.ipynb") as notebook:
        (output,) = notebook.run_cell("setup", PRODUCTS)
        assert "".join(output["text"]) == "True 25000 True True\n"


def test_a_request_to_another_host_would_be_noticed(lab):
    """From Python itself, which runs apart from the page."""
    with lab.open("00_start_here.ipynb") as notebook:
        address = "http://127.0.0.2:9/"
        fetch = f"import js\ntry:\n    await js.fetch({address!r})\nexcept Exception: print('refused')"
        (output,) = notebook.run_cell("setup", fetch)
        assert "".join(output["text"]) == "refused\n"
        assert address in lab.elsewhere
        lab.elsewhere.clear()


# Where on the page the cell with this name is.
PLACE = """id => {
    const {model, widgets} = jupyterapp.shell.currentWidget.content
    return `.jp-Notebook-cell:nth-child(${model.sharedModel.cells.findIndex(cell => cell.id === id) + 1})`
}"""
SEEN = "place => [...document.querySelectorAll(`${place} img`)].find(image => image.offsetParent)"


def test_firefox_runs_it_too(site):
    """From the first key that a learner presses: the notebook opens, its cells run, and its first figure moves."""
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    with driver.served(site) as address, firefox.started() as browser:
        page = browser.page(f"{address}lab/index.html?path=00_start_here.ipynb")
        page.wait("() => window.jupyterapp?.shell.currentWidget?.context?.isReady", seconds=60)
        ready = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        page.wait(f"() => {ready}", seconds=60)  # the circle at the top right is empty, as the front page says it
        for cell, done in (
            ("setup", "node => node.querySelector('.jp-OutputArea')?.textContent.trim() === 'Ready.'"),
            ("first-look", "node => node.querySelector('[role=slider]')?.checkVisibility()"),
        ):
            place = page.ask(PLACE, cell)
            page.click(f"{place} .cm-content")
            page.press("Shift", "Enter")
            page.wait(f"place => ({done})(document.querySelector(place))", place, seconds=60)
        for key in ("End", "Home"):
            alt = page.ask(f"place => ({SEEN})(place).alt", place)
            page.ask("place => document.querySelector(`${place} [role=slider]`).focus()", place)
            page.press(key)
            page.wait(
                f"(place, alt) => (image => image.naturalWidth && image.alt !== alt)(({SEEN})(place))", place, alt
            )
        assert browser.complaints == []
        assert [request for request in browser.requests if not request.startswith((address, "data:", "blob:"))] == []
