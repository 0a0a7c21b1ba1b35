"""Run as everybody runs it, by Shift+Enter: figures stay in sight, and who hears the page hears what they show."""

from pathlib import Path

import by_hand
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

PICTURE_IN_SIGHT = """node => {
    const panel = node.closest('.jp-WindowedPanel-outer').getBoundingClientRect()
    const box = node.querySelector('.jp-OutputArea-output img').getBoundingClientRect()
    return (Math.min(box.bottom, panel.bottom) - Math.max(box.top, panel.top)) / box.height
}"""


def marks(name):
    return [] if name.startswith("00") else [pytest.mark.own_job]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=marks(path.stem)) for path in NOTEBOOKS])
def test_controls_and_picture_stay_in_sight(lab, path):
    """In a small window that holds the list of files, too, as `python course.py` opens it."""
    with lab.open(path.name, 1024, 768, beside_files=True) as notebook:
        assert by_hand.not_in_sight(notebook) == {}


def test_a_picture_that_comes_late_is_in_sight(lab):
    """The page has scrolled long before, as after a training: then a picture grows out of the window at the top."""
    with lab.open("02_scaled_attention.ipynb", 1440, 900) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        notebook.run_cell("by-hand")
        number = [cell["id"] for cell in notebook.cells].index("symmetry")
        late = "import time\ntime.sleep(2)\n" + "# trained\n" * 20 + "".join(notebook.cells[number]["source"])
        notebook.ask(f"({{content}}) => content.widgets[{number}].model.sharedModel.setSource({late!r})")
        cell, shares = by_hand.CELL.format(number), []
        for _ in range(2):
            notebook.ask(f"({{content}}) => {{ content.activeCellIndex = {number}; content.activate() }}")
            page.keyboard.press("Shift+Enter")
            page.wait_for_timeout(500)
            page.wait_for_function(f"{cell}.model.executionCount && {cell}.model.executionState !== 'running'")
            page.wait_for_timeout(800)  # until page.js has scrolled
            shares.append(page.evaluate(f"({PICTURE_IN_SIGHT})({cell}.node)"))
        assert min(shares) > 0.99


def test_a_picture_is_announced_once_when_the_hand_rests(lab):
    with lab.open("00_start_here.ipynb") as notebook:
        notebook.run_all()
        page, figure = notebook.page, notebook.live_figures()[0]
        status = page.locator(".live-figure").first.locator("> [role=status]")
        assert status.text_content() == "", "what stands there from the start is not announced"
        page.evaluate(
            """() => { window.said = []; const status = document.querySelector('.live-figure > [role=status]')
            new MutationObserver(() => said.push(status.textContent)).observe(status, {childList: true}) }"""
        )
        slider = page.locator(".live-figure [role=slider]").nth(1)
        slider.focus()
        for _ in range(8):
            page.keyboard.press("ArrowLeft")
            page.wait_for_timeout(60)
        page.keyboard.press("Enter")
        assert not page.locator(".jp-Notebook.jp-mod-editMode").count(), "JupyterLab opens the cell beside the slider"
        page.wait_for_timeout(2500)
        said = page.evaluate("said")
        assert said[-1] == figure.alt
        assert len(said) <= 2, "once for eight steps; twice where a busy machine rests between them"
        assert slider.get_attribute("aria-valuetext") != "100"
