"""Run as everybody runs it, by Shift+Enter: figures stay in sight, and who hears the page hears what they show."""

import re
import tarfile
from pathlib import Path

import by_hand
import pytest

from lesson_utils.classroom.course import LESSONS

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
AXE = "4.14.1"
AXE_INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
# Landmarks and headings are JupyterLab's affair; contrast and names in outputs are ours.
VIOLATIONS = """async rules => (await axe.run({include: [['.jp-OutputArea-output']]}, {runOnly: rules}))
    .violations.map(found => `${found.id}: ${found.nodes.map(node => node.html.slice(0, 200)).slice(0, 3)}`)"""

# What a learner does besides running cells: answer each prediction, and open hints, solutions and the quiz's options.
ANSWER = """() => {
    document.querySelectorAll('.widget-toggle-buttons').forEach(node => node.querySelector('button').click())
    document.querySelectorAll('.jp-OutputArea-output details').forEach(fold => { fold.open = true })
}"""

PICTURE_IN_SIGHT = """node => {
    const panel = node.closest('.jp-WindowedPanel-outer').getBoundingClientRect()
    const box = node.querySelector('.jp-OutputArea-output img').getBoundingClientRect()
    return (Math.min(box.bottom, panel.bottom) - Math.max(box.top, panel.top)) / box.height
}"""


def marks(name):
    return [] if name.startswith("00") else [pytest.mark.own_job]


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720), (1024, 768)], ids=lambda size: f"{size[0]} × {size[1]}")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=marks(path.stem)) for path in NOTEBOOKS])
def test_controls_and_picture_stay_in_sight(lab, path, size):
    """The smallest window holds the list of files, too, as `python course.py` opens it."""
    with lab.open(path.name, *size, beside_files=size[0] == 1024) as notebook:
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


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=marks(path.stem)) for path in NOTEBOOKS])
def test_every_output_can_be_heard(lab, path):
    from tools.site import fetch

    try:
        archive = fetch.from_npm("axe-core", AXE, AXE_INTEGRITY)
    except fetch.Unreachable as error:
        pytest.skip(str(error))
    with tarfile.open(archive) as package, lab.open(path.name) as notebook:
        notebook.run_all()
        page = notebook.page
        page.wait_for_timeout(1500)
        for handle in page.locator(".live-figure [role=slider]").all():
            label, readout = (
                handle.evaluate(f"e => e.closest('.widget-slider').querySelector('{name}').textContent")
                for name in (".widget-label", ".widget-readout")
            )
            assert handle.get_attribute("aria-label") == label
            assert handle.get_attribute("aria-valuetext") == readout
        solve_first_exercise(notebook)
        page.evaluate(ANSWER)
        page.wait_for_timeout(1500)
        page.evaluate(ANSWER)  # what has come below the answers opens, too
        page.add_script_tag(content=package.extractfile("package/axe.min.js").read().decode())
        found = {}
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            notebook.ask(f"() => jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
            page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")
            page.wait_for_timeout(700)
            found |= {theme: violations} if (violations := page.evaluate(VIOLATIONS, RULES)) else {}
        assert found == {}


def solve_first_exercise(notebook):
    """Write the solution of the first exercise into its cell, and run its check: a green verdict among the others."""
    cells = notebook.cells
    stub = next(n for n, cell in enumerate(cells) if "exercise" in cell["metadata"].get("tags", ()))
    check = next(n for n in range(stub, len(cells)) if "".join(cells[n]["source"]).startswith("check."))
    name = re.match(r"check\.(\w+)", "".join(cells[check]["source"]))[1]
    (lesson,) = (lesson for lesson in LESSONS if name in lesson.exercises)
    notebook.run_cell(cells[stub]["id"], lesson.exercise(name).solution)
    (verdict,) = notebook.run_cell(cells[check]["id"])
    assert verdict["data"]["text/plain"].startswith("Correct.")


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
