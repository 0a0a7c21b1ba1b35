"""The time in which live figures follow their sliders.

Every live figure against `ipywidgets.interact` with a new figure a step, the usual way, in one JupyterLab: from the key
press to the painted picture, timed in the page by the page's own clock; and after a drag of two seconds.
"""

import math
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.course import LESSONS
from lesson_utils.classroom.live import testing  # noqa: F401  # the notebook's
from tools.bench import trial

if TYPE_CHECKING:
    from tools.browser.notebook import Control, LiveFigure

STEPS = 8  # from the left end of the slider, and back again; more than once where it has fewer
DRAG_SECONDS, MOVES_PER_SECOND = 2, 60
IN_THE_PAGE = Path(__file__).with_suffix(".js")  # its functions are called `bench.…` there


def figures() -> dict[str, Callable[[], live.LiveFigure]]:
    """Return for each live figure, by `lesson.name`, the function that makes it; models in it are not trained."""
    return {f"{lesson.name}.{name}": lab.example for lesson in LESSONS for name, lab in lesson.figures().items()}


def the_usual_way(live_figure: live.LiveFigure) -> None:
    """Show the same figure under the same controls in the way of most notebooks."""
    import ipywidgets
    from matplotlib import pyplot

    lab = live_figure.lab

    def show(**values: Any) -> None:
        with plots.style():  # the same letters, lines and pixels
            figure = pyplot.figure(figsize=(lab.width, lab.height), layout="constrained")
            lab.draw(figure, *live_figure.made_from)(**values)
            pyplot.show()

    ipywidgets.interact(show, **{name: control.widget(control.value) for name, control in live_figure.controls.items()})


def run() -> None:
    """Print a paragraph for every live figure."""
    import nbformat

    from tools.browser import driver

    print("live: key press to painted picture, in turns in one JupyterLab, and a drag from end to end")
    ratios: list[float] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, driver.jupyterlab(folder) as server:
        for name in list(figures())[: 1 if trial.on() else None]:
            sources = (
                f"%matplotlib inline\nfrom tools.bench import live as bench\nfigure = bench.figures()[{name!r}]()",
                "figure",
                "bench.the_usual_way(figure)",
                "bench.testing.forget(figure)",
            )
            cells = [nbformat.v4.new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources)]
            notebook = nbformat.v4.new_notebook(cells=cells)
            notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}  # or JupyterLab would ask
            nbformat.write(notebook, Path(folder, f"{name}.ipynb"))
            with server.open(f"{name}.ipynb", height=1500) as page:
                page.run_all()
                page.page.add_script_tag(path=IN_THE_PAGE)
                ours, usual = page.live_figures()
                try:
                    ratios.append(_compare(name, ours, usual, forget=partial(page.run_cell, "cell-3")))
                except Exception as error:  # of the browser or the figure: the others are to be measured all the same
                    failed.append(name)
                    print(f"\n{name} FAILED: {error}\n{ours.alert or usual.alert}")
    if ratios:
        print(f"\n{len(ratios)} live figures: median {median(ratios):.2f}×, worst {max(ratios):.2f}×")
    if failed:
        sys.exit(f"{len(failed)} could not be measured: {', '.join(failed)}")


def _compare(name: str, live: "LiveFigure", usual: "LiveFigure", forget: Callable[[], object]) -> float:
    pairs = [(figure, _first_slider(figure)) for figure in (live, usual)]
    for figure, slider in pairs:
        figure.node.evaluate("node => bench.watch(node)")
        slider.move("Home")
        _settle(figure)

    # One key on the heels of another: no picture has been drawn ahead, none is known from before.
    forget()
    there, back = ("ArrowRight", "ArrowLeft") if pairs[0][1].kind == "slider" else ("Space", "Space")
    hasty: list[float] = []
    while len(hasty) < (STEPS if there != back else 1) and (taken := _step(*pairs[0], there)):
        hasty.append(taken)
    # As a learner does, who looks before pressing again: there, pictures are drawn ahead; afterwards they are known.
    forget()
    pairs[0][1].move("Home")
    keys = ([there] * len(hasty) + [back] * len(hasty)) * math.ceil(STEPS / len(hasty))
    paused: list[list[float]] = []
    for key in keys:
        paused.append([])
        for figure, slider in pairs:
            _settle(figure)
            paused[-1].append(_step(figure, slider, key))
    ours, theirs = (median(times) for times in zip(*paused, strict=True))

    print(f"\n{name}, {pairs[0][1].kind} {pairs[0][1].label!r}")
    ahead = median(times[0] for times in paused[: len(hasty)])
    print(f"  key press: live {ours:.0f} ms, interact {theirs:.0f} ms: {ours / theirs:.2f}×", end=" ")
    print(f"(where it has not been: {ahead / theirs:.2f}×; in haste, too: {median(hasty) / theirs:.2f}×)")
    for way, (figure, slider) in zip(("live", "interact"), pairs, strict=True):
        if slider.kind == "slider":
            print(f"  drag, {way}: {_drag(figure, slider)}")
    return ours / theirs


def _first_slider(figure: "LiveFigure") -> "Control":
    """Return the first slider of a figure, or its first checkbox if it has no slider."""
    return min(figure.controls.values(), key=lambda control: ("slider", "checkbox", "text").index(control.kind))


def _step(figure: "LiveFigure", slider: "Control", key: str) -> float:
    """Return the milliseconds from the key press to the painted picture; 0 if the slider could not move."""
    count, value = figure.node.evaluate("node => node.watch.shown.length"), slider.value
    slider.input.press(key)
    if slider.value == value:
        return 0.0
    return float(figure.node.evaluate("(node, count) => bench.latency(node, count)", count))


def _settle(figure: "LiveFigure") -> None:
    figure.node.evaluate("node => bench.settled(node)")


def _drag(figure: "LiveFigure", slider: "Control") -> str:
    """Drag the slider from its left end to its right end, and describe the pictures that came."""
    slider.move("End")
    _settle(figure)
    right = figure.src
    slider.move("Home")
    _settle(figure)
    figure.node.evaluate("node => bench.startAgain(node)")

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

    _settle(figure)
    watch = figure.node.evaluate("node => node.watch")
    verdict = "right" if figure.src == right else "WRONG"
    kilobytes = len(figure.src.partition(",")[2]) * 3 / 4 / 1000
    return (
        f"{len(watch['shown'])} pictures for {watch['moves']} positions in {seconds:.1f} s, the last "
        f"{watch['shown'][-1] - watch['moved']:.0f} ms after the slider and {verdict}; "
        f"{watch['blank']} blank frames; {kilobytes:.0f} kB a picture"
    )
