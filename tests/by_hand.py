"""Run a notebook as everybody runs it, by Shift+Enter, and see what is in sight then."""

from lesson_utils.classroom.stand_in import is_live_figure

HIGHEST = 520  # pixels of a live figure with its controls and the line below: whole on a laptop's screen
CELL = "jupyterapp.shell.currentWidget.content.widgets[{}]"
# How much of a live figure's controls and of its picture is in sight, as shares of their heights; and the whole height.
IN_SIGHT = """node => {
    const figure = node.querySelector('.live-figure')
    const panel = figure.closest('.jp-WindowedPanel-outer').getBoundingClientRect()
    const [top, bottom] = [Math.max(0, panel.top), Math.min(innerHeight, panel.bottom)]
    const share = box => (Math.min(box.bottom, bottom) - Math.max(box.top, top)) / box.height
    const parts = [figure.querySelector('.widget-box'), figure.querySelector('img')]
    return [...parts.map(part => share(part.getBoundingClientRect())), figure.getBoundingClientRect().height]
}"""


def figures_after_shift_enter(notebook):
    """Press Shift+Enter in each cell; return by cell what is in sight of its live figure when it has ended."""
    page, found = notebook.page, {}
    notebook.unfold()  # else Shift+Enter goes past folded sections
    notebook.ask("({content}) => { content.activeCellIndex = 0; content.mode = 'command'; content.activate() }")
    for number, cell in enumerate(notebook.cells):
        page.keyboard.press("Shift+Enter")
        if cell["cell_type"] != "code":
            continue
        model, node = f"{CELL.format(number)}.model", f"{CELL.format(number)}.node"
        page.wait_for_function(f"{model}.executionCount && {model}.executionState !== 'running'", timeout=300_000)
        if is_live_figure(notebook.cells[number]["outputs"]):
            page.wait_for_function(f"{node}.querySelector('.live-figure img')?.complete", timeout=60_000)
            page.wait_for_timeout(600)  # until JupyterLab has scrolled, and page.js has scrolled back
            found[cell["id"]] = page.evaluate(f"({IN_SIGHT})({node})")
    assert found, "a notebook of this course has at least one live figure"
    return found


def not_in_sight(notebook):
    """Return what is in sight of figures of which that is too little, or that are too high, by the cell."""
    found = figures_after_shift_enter(notebook)
    return {
        cell: (controls, picture, height)
        for cell, (controls, picture, height) in found.items()
        if controls < 0.99 or picture < 0.8 or height > HIGHEST
    }
