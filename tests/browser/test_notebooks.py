"""Every notebook in JupyterLab in a real browser: it runs clean, and its live figures move.

Who hears the page hears what they show, and a saved copy shows them.
"""

import re
from functools import partial
from pathlib import Path

import axe
import by_hand
import numpy as np
import pytest
import tiny_llama

from lesson_utils.classroom.course import LESSONS

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
# What a learner does besides running cells: answer each prediction, and open hints, solutions and the quiz's options.
ANSWER = """() => {
    document.querySelectorAll('.widget-toggle-buttons').forEach(node => node.querySelector('button').click())
    document.querySelectorAll('.jp-OutputArea-output details').forEach(fold => { fold.open = true })
}"""


def marks(name):
    return [] if name.startswith("00") else [pytest.mark.own_job]  # CI has no time for more; GitHub's workflow runs all


every_notebook = pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=marks(path.stem)) for path in NOTEBOOKS]
)


@every_notebook
def test_notebook(lab, path):
    with lab.open(path.name) as notebook:
        notebook.unfold()
        check_pictures(notebook)  # as cloned: JupyterLab does not trust it yet, and cleans its HTML
        check_what_opens(notebook, has_run=False)
        notebook.run_all()
        assert notebook.complaints() == []
        assert all(cell["execution_count"] for cell in notebook.cells if cell["cell_type"] == "code")
        figures = notebook.live_figures()
        assert figures, "a notebook of this course has at least one live figure"
        for figure in figures:
            check_controls(figure)
        check_what_opens(notebook)
        assert notebook.complaints() == []
        notebook.save()
        check_what_is_heard(notebook)

    with lab.open(path.name) as notebook:  # with a new kernel that knows nothing of the old one's widgets
        notebook.unfold()
        check_pictures(notebook)
        assert [figure.cell for figure in notebook.live_figures()] == [figure.cell for figure in figures]
        assert notebook.complaints() == []


def check_pictures(notebook):
    """Who opens the notebook and runs nothing finds pictures with alternative text where the live figures were."""
    notebook.page.wait_for_function("!document.body.textContent.includes('Loading widget')")
    for figure in notebook.live_figures():
        assert figure.wait_for_picture(), f"{figure.cell}: no picture, but {figure.node.inner_text()!r}"
        assert figure.alt.strip()
        assert "Error displaying widget" not in figure.node.inner_text()


def check_controls(figure):
    """Every control, from the keyboard, changes picture and alternative text from end to end, and back again."""
    assert figure.controls, figure.cell
    for label, control in figure.controls.items():
        control.move("Home")
        low = figure.src, figure.alt
        assert control.move("End"), f"{figure.cell}: {label} does not move"
        assert figure.alert == "", f"{figure.cell}: {label} at {control.value}"
        assert figure.src != low[0], f"{figure.cell}: {label} moves, and nothing changes in the picture"
        assert figure.alt != low[1], f"{figure.cell}: {label} moves, and the alternative text stays the same"
        control.move("Home")
        assert (figure.src, figure.alt) == low, f"{figure.cell}: {label} there and back again gives another picture"
        control.move("End")  # where it stays for the others: at a low end, such as temperature 0, some have no effect


def check_what_opens(notebook, has_run=True):
    """Hints, solutions and answers open and close from the keyboard; what is inside another, after it.

    In a text, JupyterLab takes the Enter key until the set-up cell has run (see page.js); till then there is the mouse.
    """
    summaries = notebook.page.locator("details > summary").all()
    assert summaries, "a notebook of this course has a quiz at least"
    for summary in summaries:
        if summary.evaluate("node => node.closest('[class^=still-]')?.checkVisibility() === false"):
            continue  # a living widget has taken its place
        inside = summary.locator("xpath=..")
        is_open = "details => details.open && details.innerText.length > details.firstElementChild.innerText.length"
        inside.evaluate("details => { details.open = false }")  # a text is still open from before the run
        in_text = summary.evaluate("node => node.closest('.jp-MarkdownOutput') !== null")
        press = summary.click if in_text and not has_run else partial(summary.press, "Enter")
        press()
        assert inside.evaluate(is_open), summary.inner_text()
        press()
        assert not inside.evaluate("details => details.open"), summary.inner_text()
        press()


def check_what_is_heard(notebook):
    """Each slider says its name and its value, and axe finds nothing in any output, in the light and in the dark."""
    page = notebook.page
    for handle in page.locator(".live-figure [role=slider]").all():
        label, readout = (
            handle.evaluate(f"e => e.closest('.widget-slider').querySelector('{name}').textContent")
            for name in (".widget-label", ".widget-readout")
        )
        assert handle.get_attribute("aria-label") == label
        assert handle.get_attribute("aria-valuetext") == readout
    solve_first_exercise(notebook)
    for _ in range(2):  # what has come below the answers opens, too
        page.evaluate(ANSWER)
        page.wait_for_timeout(1500)
    found = {}
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        notebook.ask(f"() => jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
        page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")
        page.wait_for_timeout(700)
        # Landmarks and headings are JupyterLab's affair; contrast and names in outputs are ours.
        if violations := axe.violations(page, {"include": [[".jp-OutputArea-output"]]}):
            found[theme] = violations
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


def test_the_chat_answers_token_by_token_and_stops(lab, tmp_path):
    """With a model of a few thousand numbers, which talks nonsense for as long as it may."""
    path, facts = tmp_path / "tiny.gguf", tiny_llama.facts() | {"llama.context_length": 1024}
    path.write_bytes(tiny_llama.gguf(facts, tiny_llama.arrays(np.random.default_rng(0))))
    chat = (
        "import os\n"
        "from lesson_utils.lessons.real_model import chatting, lab\n"
        "os.environ.pop('COURSE_STRICT', None)  # with it there would be nothing to press\n"
        "chatting.LONGEST = 600  # some seconds: time to stop it\n"
        f"lab.chat(lab.load({str(path)!r}))"
    )
    with lab.open(NOTEBOOKS[0].name) as notebook:
        notebook.run_cell("setup", chat)
        ask, stop = (notebook.page.get_by_role("button", name=name) for name in ("Ask", "Stop"))
        tokens = notebook.page.locator("span[title^='p =']")
        box = notebook.page.locator(".widget-text input")
        box.fill("Are you there?")
        box.press("Enter")
        tokens.first.wait_for()
        assert "rgb" in (tokens.first.get_attribute("style") or "")
        stop.click()
        notebook.page.wait_for_function("node => !node.disabled", arg=ask.element_handle())
        assert 0 < tokens.count() < 600
        assert stop.is_disabled()
        assert notebook.complaints() == []


# Run as everybody runs it, by Shift+Enter

PICTURE_IN_SIGHT = """node => {
    const panel = node.closest('.jp-WindowedPanel-outer').getBoundingClientRect()
    const box = node.querySelector('.jp-OutputArea-output img').getBoundingClientRect()
    return (Math.min(box.bottom, panel.bottom) - Math.max(box.top, panel.top)) / box.height
}"""


@every_notebook
def test_controls_and_picture_stay_in_sight(lab, path):
    """In a small window that holds the list of files, too, as `python course.py` opens it."""
    with lab.open(path.name, 1024, 768, beside_files=True) as notebook:
        assert by_hand.not_in_sight(notebook) == {}


def test_a_picture_that_comes_late_is_in_sight(lab):
    """The page has scrolled long before, as after a training: then a picture grows out of the window at the top."""
    with lab.open("02_scaled_attention.ipynb", 1440, 900) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        number = [cell["id"] for cell in notebook.cells].index("slope")
        picture = "lab.fan({d: d**0.5 * np.random.default_rng(0).normal(size=400) for d in (1, 64)}, lambda d: d)"
        late = "import time\ntime.sleep(2)\n" + "# trained\n" * 20 + picture
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


def test_sections_marked_further_open_folded_and_are_passed_over(lab):
    with lab.open("02_scaled_attention.ipynb", 1440, 900) as notebook:
        ids = [cell["id"] for cell in notebook.cells]
        notebook.run_cell("setup")
        hidden = notebook.ask("({content}) => content.widgets.filter(cell => cell.isHidden).map(cell => cell.model.id)")
        assert {"factors", "crossed"} <= set(hidden)
        assert not {"sweep", "many-queries"} & set(hidden)
        number = ids.index("many-queries")
        notebook.ask(f"({{content}}) => {{ content.activeCellIndex = {number}; content.activate() }}")
        notebook.page.keyboard.press("Shift+Enter")
        notebook.page.wait_for_timeout(500)
        assert ids[notebook.ask("({content}) => content.activeCellIndex")] == "care"


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
