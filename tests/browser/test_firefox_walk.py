"""A learner's way through notebooks in Firefox: by Shift+Enter, with sliders, an exercise, predictions and the quiz."""

import time
from pathlib import Path

import by_hand
import pytest

from lesson_utils.classroom.stand_in import is_live_figure
from tools.browser import driver, firefox
from tools.start import SETTINGS, without_outputs

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
ROOT = Path(__file__).parents[2]
PANEL = "jupyterapp.shell.currentWidget"
ACTIVATE = f"""n => {{
    const {{content}} = {PANEL}
    content.activeCellIndex = n
    content.mode = 'command'
    content.activate()
}}"""
# Of each notebook: the cell of an exercise, what its verdict says of a wrong answer, that answer, and a right one.
EXERCISES = {
    "00_start_here": (
        "weighted-average",
        "plain mean",
        "def weighted_average(weights, values):\n    return values.mean(axis=0)",
        "def weighted_average(weights, values):\n    return weights @ values",
    ),
    "02_scaled_attention": (
        "softmax",
        "overflows",
        "def my_softmax(x):\n    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)",
        "def my_softmax(x):\n    e = np.exp(x - x.max(-1, keepdims=True))\n    return e / e.sum(-1, keepdims=True)",
    ),
    "05_full_block": (
        "layer-norm",
        "mean of the whole array",
        "def my_layer_norm(x, gamma, beta, eps):\n"
        "    return gamma * (x - x.mean()) / np.sqrt(x.var(-1, keepdims=True) + eps) + beta",
        "def my_layer_norm(x, gamma, beta, eps):\n    normal = x - x.mean(-1, keepdims=True)\n"
        "    return gamma * normal / np.sqrt(x.var(-1, keepdims=True) + eps) + beta",
    ),
}
# What a slider says and shows: its name, its value, the picture's text, and where the picture stands.
STATE = """(node, n) => {
    const figure = node.querySelector('.live-figure'), slider = figure.querySelectorAll('[role=slider]')[n]
    const image = figure.querySelector('img'), say = name => slider.getAttribute(name)
    return [say('aria-label'), say('aria-valuetext'), image.alt, Math.round(image.getBoundingClientRect().top)]
}"""
FOCUS = "(node, n) => node.querySelectorAll('.live-figure [role=slider]')[n].focus({preventScroll: true})"
SLIDERS = "node => node.querySelectorAll('.live-figure [role=slider]').length"
# Chooses the first answer to a prediction; opens the first option of each question of a quiz.
PREDICT = "node => node.querySelector('.widget-toggle-button').click()"
PREDICTED = "node => /You predicted|is the natural guess/.test(node.querySelector('.widget-html')?.textContent)"
ANSWER = """node => [...node.querySelectorAll('p + details > summary')].map(summary => {
    summary.click()
    return summary.nextElementSibling.checkVisibility() && summary.nextElementSibling.textContent.slice(2).split('.')[0]
})"""


class Walk:
    """An open notebook, run cell by cell."""

    def __init__(self, page):
        self.page = page
        page.wait("() => window.jupyterapp?.shell.currentWidget?.context?.isReady", seconds=120)
        page.wait(f"() => {PANEL}.sessionContext.session?.kernel?.status === 'idle'", seconds=120)
        self.cells = page.ask(f"() => {PANEL}.context.model.toJSON().cells")

    def ask(self, n, script, *arguments):
        """Call a JavaScript function with the node of a cell, and more."""
        return self.page.ask(f"(...more) => ({script})({by_hand.CELL.format(n)}.node, ...more)", *arguments)

    def wait(self, n, script, *arguments):
        """Ask until the answer is true."""
        self.page.wait(f"(...more) => ({script})({by_hand.CELL.format(n)}.node, ...more)", *arguments, seconds=60)

    def run(self, n, source=None):
        """Run a cell by Shift+Enter, perhaps with another source in it, and return its outputs."""
        model = f"{by_hand.CELL.format(n)}.model"
        if source:
            self.page.ask(f"text => {model}.sharedModel.setSource(text)", source)
        before = self.page.ask(f"() => {model}.executionCount")
        self.page.ask(ACTIVATE, n)
        self.page.press("Shift", "Enter")
        if self.cells[n]["cell_type"] != "code":
            return []
        ended = f"{model}.executionCount !== before && {model}.executionState !== 'running'"
        self.page.wait(f"before => {model}.executionCount && {ended}", before, seconds=300)
        return self.page.ask(f"() => {model}.toJSON().outputs")


def check_figure(walk, n):
    """Its controls and picture are in sight; each slider has a name, moves by keyboard, and the page stays."""
    walk.wait(n, "node => node.querySelector('.live-figure img')?.complete")
    time.sleep(0.8)  # until JupyterLab has scrolled, and page.js has scrolled back
    controls, picture, height = walk.ask(n, by_hand.IN_SIGHT)
    assert (controls > 0.99, picture > 0.8, height <= by_hand.HIGHEST) == (True, True, True), walk.cells[n]["id"]
    for slider in range(walk.ask(n, SLIDERS)):
        walk.ask(n, FOCUS, slider)
        time.sleep(0.3)
        name, value, alt, top = walk.ask(n, STATE, slider)
        assert name, walk.cells[n]["id"]
        for key in ("ArrowRight", "ArrowLeft"):  # it may stand at its end
            walk.page.press(key)
            time.sleep(0.3)
            if walk.ask(n, STATE, slider)[1] != value:
                break
        walk.wait(n, f"(node, n, alt) => ({STATE})(node, n)[2] !== alt", slider, alt)
        assert walk.ask(n, STATE, slider)[3] == top, f"{walk.cells[n]['id']}: {name} moves the picture"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name.startswith("00") else [pytest.mark.own_job]) for name in EXERCISES]
)
def test_a_walk(name, tmp_path, monkeypatch):
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    monkeypatch.setenv("COURSE_TRAIN", "no")
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    (tmp_path / f"{name}.ipynb").write_text(without_outputs(ROOT / "notebooks" / f"{name}.ipynb"), encoding="utf-8")
    exercise, mistake, wrong, right = EXERCISES[name]
    with driver.server(tmp_path, SETTINGS) as (url, token), firefox.started() as browser:
        walk = Walk(browser.page(f"{url}lab/tree/{name}.ipynb?token={token}", 1024, 768))
        assert walk.page.ask(f"() => {PANEL}.context.model.dirty") is False, "nobody has changed anything yet"
        for n, cell in enumerate(walk.cells):
            if cell["id"] == exercise:
                walk.run(n, wrong)
                (verdict,) = walk.run(n + 1)
                assert mistake in verdict["data"]["text/plain"]
            outputs = walk.run(n, right if cell["id"] == exercise else None)
            assert [output for output in outputs if output["output_type"] == "error"] == []
            if cell["id"] == f"{exercise}-check":
                assert outputs[0]["data"]["text/plain"].startswith("Correct.")
            elif "".join(cell["source"]).startswith("quiz.predict("):
                walk.wait(n, "node => !!node.querySelector('.widget-toggle-button')")
                walk.ask(n, PREDICT)
                walk.wait(n, PREDICTED)
            elif "".join(cell["source"]).startswith("quiz.checkpoint("):
                assert set(walk.ask(n, ANSWER)) <= {"Right", "No"}
            elif is_live_figure(outputs):
                check_figure(walk, n)
        assert not walk.page.ask("() => document.body.textContent.includes('official Jupyter news')")
        assert browser.complaints == []
        assert [request for request in browser.requests if not request.startswith((url, "data:", "blob:", "ws:"))] == []
