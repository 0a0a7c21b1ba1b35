"""How fast live figures follow their sliders.

Every live figure against `ipywidgets.interact` with a new figure a step, the usual way, in one JupyterLab: from the key
press to the painted picture, timed in the page by the page's own clock; and after a drag of two seconds.
"""

import pkgutil
import tempfile
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from lesson_utils import labs, live, plots

if TYPE_CHECKING:
    from lesson_utils.browser import Control, LiveFigure

STEPS = 8  # at most, from the left end of the slider, and back again
SLIDERS = (live.Slider, live.LogSlider, live.Choice)
DRAG_SECONDS, MOVES_PER_SECOND = 2, 60

# Notes in the page when its picture changes and when the new one is painted: an animation frame that finds it loaded
# paints it, and is done with that when the browser comes to its next task. (If a picture that does not ask for it is
# decoded later still, that is to the credit of the usual way.) One that was replaced before that was never seen.
WATCH = """node => {
    const picture = () => [...node.querySelectorAll('img[src^="data:image/png"]')].find(img => img.offsetParent)
    const frame = () => new Promise(requestAnimationFrame)
    const task = () => new Promise(done => {
        const {port1, port2} = new MessageChannel()
        port1.onmessage = done
        port2.postMessage(0)
    })
    const watch = node.watch = {pressed: 0, moved: 0, moves: 0, changed: 0, shown: [], blank: 0}
    let last = picture(), src = last.src
    const look = async () => {
        const img = picture()
        if (!img || (img === last && img.src === src)) return
        last = img
        src = img.src
        watch.changed = performance.now()
        do { await frame() } while (img.isConnected && !img.complete)
        if (!img.isConnected) return
        await task()
        watch.shown.push(performance.now())
    }
    new MutationObserver(look).observe(node, {subtree: true, childList: true, attributeFilter: ['src']})
    const moved = () => {
        watch.moved = performance.now()
        watch.moves += 1
    }
    new MutationObserver(moved).observe(node, {subtree: true, attributeFilter: ['aria-valuenow']})
    node.addEventListener('keydown', event => { watch.pressed = event.timeStamp }, true)
    const blink = () => {
        if (!picture()?.naturalWidth) watch.blank += 1
        requestAnimationFrame(blink)
    }
    blink()
}"""
NEXT_PICTURE = """async (node, count) => {
    const give_up = performance.now() + 10000
    while (node.watch.shown.length === count) {
        if (performance.now() > give_up) throw new Error('the slider moved, but no new picture came')
        await new Promise(requestAnimationFrame)
    }
    return node.watch.shown.at(-1) - node.watch.pressed
}"""
SETTLED = """async node => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
    const quiet = () => performance.now() - Math.max(node.watch.moved, node.watch.changed) > 500
    while (kernel.status !== 'idle' || !quiet()) await new Promise(done => setTimeout(done, 50))
}"""


def all_labs() -> dict[str, live.Lab]:
    """Every live figure with a slider, by `module.name`."""
    found = {}
    for module in pkgutil.iter_modules(labs.__path__):
        for name, lab in vars(import_module(f"{labs.__name__}.{module.name}")).items():
            if isinstance(lab, live.Lab) and any(isinstance(control, SLIDERS) for control in lab.controls.values()):
                found[f"{module.name}.{name}"] = lab
    return found


def the_usual_way(lab: live.Lab) -> None:
    """The same figure under the same controls, as most notebooks do it."""
    import ipywidgets
    from matplotlib import pyplot

    def show(**values: Any) -> None:
        with plots.style():  # the same letters, lines and pixels
            figure = pyplot.figure(figsize=(lab.width, lab.height), layout="constrained")
            lab.draw(figure)(**values)
            pyplot.show()

    ipywidgets.interact(show, **{name: control.widget(control.value) for name, control in lab.controls.items()})


def run() -> None:
    """Print a paragraph for every lab."""
    import nbformat

    from lesson_utils import browser

    print("live: key press to painted picture, in turns in one JupyterLab, and a drag from end to end")
    with tempfile.TemporaryDirectory() as folder, browser.jupyterlab(folder) as server:
        for name in all_labs():
            module, lab = name.split(".")
            sources = (
                "%matplotlib inline\nfrom lesson_utils.bench import live as bench\n"
                f"from lesson_utils.labs import {module} as labs",
                f"labs.{lab}()",
                f"bench.the_usual_way(labs.{lab})",
            )
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
            notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}  # or JupyterLab would ask
            nbformat.write(notebook, Path(folder, f"{name}.ipynb"))
            with server.open(f"{name}.ipynb", height=1500) as page:
                page.run_all()
                _compare(name, *page.live_figures())


def _compare(name: str, live: "LiveFigure", usual: "LiveFigure") -> None:
    pairs = [(figure, _first_slider(figure)) for figure in (live, usual)]
    for figure, slider in pairs:
        figure.node.evaluate(WATCH)
        slider.move("Home")
        figure.node.evaluate(SETTLED)

    # The first way up pays for what the lab computes once and keeps; it goes through the live figure.
    first: list[float] = []
    while len(first) < STEPS and (taken := _step(*pairs[0], "ArrowRight")):
        first.append(taken)
    pairs[0][1].move("Home")
    live.node.evaluate(SETTLED)
    keys = ["ArrowRight"] * len(first) + ["ArrowLeft"] * len(first)
    rounds = [[_step(figure, slider, key) for figure, slider in pairs] for key in keys]
    ours, theirs = (median(times) for times in zip(*rounds, strict=True))

    print(f"\n{name}, slider {pairs[0][1].label!r}")
    print(f"  key press: live {ours:.0f} ms (where it has not been before: {median(first):.0f} ms)", end="")
    print(f", interact {theirs:.0f} ms: {ours / theirs:.2f}×")
    for way, (figure, slider) in zip(("live", "interact"), pairs, strict=True):
        print(f"  drag, {way}: {_drag(figure, slider)}")


def _first_slider(figure: "LiveFigure") -> "Control":
    return next(control for control in figure.controls.values() if control.kind == "slider")


def _step(figure: "LiveFigure", slider: "Control", key: str) -> float:
    """Milliseconds from the key press to the painted picture; 0 if the slider could not move."""
    count, value = figure.node.evaluate("node => node.watch.shown.length"), slider.value
    slider.input.press(key)
    return float(figure.node.evaluate(NEXT_PICTURE, count)) if slider.value != value else 0.0


def _drag(figure: "LiveFigure", slider: "Control") -> str:
    """Drag the slider from its left end to its right end; what was seen of it."""
    slider.move("End")
    figure.node.evaluate(SETTLED)
    right = figure.src
    slider.move("Home")
    figure.node.evaluate(SETTLED)
    figure.node.evaluate("node => Object.assign(node.watch, {shown: [], moves: 0, blank: 0})")

    mouse, handle, track = figure.node.page.mouse, slider.input.bounding_box(), slider.track.bounding_box()
    assert handle is not None
    assert track is not None
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    mouse.move(x, y)
    mouse.down()
    start, moves = time.monotonic(), DRAG_SECONDS * MOVES_PER_SECOND
    for n in range(1, moves + 1):
        mouse.move(x + track["width"] * n / moves, y)
        time.sleep(max(0, start + n / MOVES_PER_SECOND - time.monotonic()))
    seconds = time.monotonic() - start
    mouse.up()

    figure.node.evaluate(SETTLED)
    watch = figure.node.evaluate("node => node.watch")
    verdict = "right" if figure.src == right else "WRONG"
    kilobytes = len(figure.src.partition(",")[2]) * 3 / 4 / 1000
    return (
        f"{len(watch['shown'])} pictures for {watch['moves']} positions in {seconds:.1f} s, the last "
        f"{watch['shown'][-1] - watch['moved']:.0f} ms after the slider and {verdict}; "
        f"{watch['blank']} blank frames; {kilobytes:.0f} kB a picture"
    )
