"""The time in which live figures follow their sliders.

Every live figure against `ipywidgets.interact` with a new figure a step, the usual way, and against the floor: a slider
that changes a text label. All three in one page of JupyterLab, from the key press to what is painted, timed by the
page's own clock. Each notebook's figures have a new page, as learners have it: after fifty figures the label is slower.
The slowest come first. All of it takes ten minutes at most.
"""

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.course import LESSONS, named
from tools import testing  # noqa: F401  # the notebook's

if TYPE_CHECKING:
    from tools.browser.driver import JupyterLab
    from tools.browser.notebook import Control, LiveFigure, Notebook

STEPS = 4  # at least, from the left end of the slider, and back again
GOALS = {"milliseconds": 60.0, "× the floor": 2.0, "× interact in haste": 0.3}
IN_THE_PAGE = Path(__file__).with_suffix(".js")  # its functions are called `bench.…` there


class Latency(NamedTuple):
    """Medians in milliseconds from a key press to what is painted, of one figure."""

    name: str
    control: str
    floor: float  # a text label
    ours: float
    ahead: float  # where it has not been: the picture was drawn ahead
    hasty: float  # one key on the heels of another: the picture was not there
    usual: float

    def against_goals(self) -> dict[str, float]:
        """Return what `GOALS` are about, under their names."""
        return dict(zip(GOALS, (self.ours, self.ours / self.floor, self.hasty / self.usual), strict=True))

    def __str__(self) -> str:
        over = [what for what, value in self.against_goals().items() if value > GOALS[what]]
        return (
            f"{self.name}, {self.control}: floor {self.floor:.0f} ms, live {self.ours:.0f} ms "
            f"({self.ours / self.floor:.1f}× the floor), interact {self.usual:.0f} ms: {self.ours / self.usual:.2f}× "
            f"(where it has not been: {self.ahead / self.usual:.2f}×; in haste, too: {self.hasty / self.usual:.2f}×)"
            + (f"; over the goal: {', '.join(over)}" if over else "")
        )


def figures() -> dict[str, Callable[[], live.LiveFigure]]:
    """Return for each live figure, by `lesson.name`, the function that makes it; models in it are not trained."""
    return {f"{lesson.name}.{name}": lab.example for lesson in LESSONS for name, lab in lesson.figures().items()}


def chosen(words: Sequence[str] = ()) -> list[str]:
    """Return the names of all figures, or of those whose notebook or own name begins with one of these words."""
    if not words:
        return list(figures())
    both = {name: (named(name.partition(".")[0]).notebook, name) for name in figures()}
    return [name for name, said in both.items() if any(one.startswith(tuple(words)) for one in said)]


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


def floor() -> None:
    """Show a slider that changes a text label: what no figure can be faster than."""
    import ipywidgets
    from IPython.display import display

    slider, label = ipywidgets.IntSlider(0, 0, 100, description="n"), ipywidgets.HTML("<b>0</b>")
    slider.observe(lambda change: setattr(label, "value", f"<b>{change['new']}</b>"), names="value")
    display(ipywidgets.VBox([slider, label]))


def run(words: Sequence[str] = ()) -> None:
    """Print a line for each of these live figures, and medians; `words` are for `chosen`."""
    import nbformat

    from tools.browser import driver

    names = chosen(words)
    if not names:
        sys.exit(f"there is no live figure in {' '.join(words)!r}")
    print(f"live: key press to painted picture, {len(names)} figures, a page for each notebook", flush=True)
    found: list[Latency] = []
    failed: list[str] = []
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in _cells().items()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}  # or JupyterLab would ask
    with tempfile.TemporaryDirectory() as folder, driver.jupyterlab(folder) as server:
        nbformat.write(notebook, Path(folder, "bench.ipynb"))
        for _, of_a_notebook in itertools.groupby(names, lambda name: name.partition(".")[0]):
            with _page(server) as page:
                for name in of_a_notebook:
                    try:
                        found.append(_measure(name, page))
                    except Exception as error:  # of browser or figure: the others are to be measured all the same
                        failed.append(name)
                        alerts = [figure.alert for figure in page.live_figures()]
                        print(f"\n{name} FAILED: {error}\n{next(filter(None, alerts), '')}", flush=True)
    if found:
        print("", *sorted(found, key=lambda latency: -latency.ours), sep="\n")
        _sum_up(found)
    if failed:
        sys.exit(f"{len(failed)} could not be measured: {', '.join(failed)}")


@contextmanager
def _page(server: "JupyterLab") -> "Iterator[Notebook]":
    """Open the bench's notebook in a new page, with the floor's slider and the page's part of the bench."""
    with server.open("bench.ipynb", height=2000) as page:
        page.run_cell("floor")
        page.page.add_script_tag(path=IN_THE_PAGE)
        yield page


def _sum_up(found: list[Latency]) -> None:
    """Print the medians and the worst, and how many figures miss a goal."""
    print(f"\n{len(found)} live figures; the goal is the most that any may have:")
    for what, goal in GOALS.items():
        values = [latency.against_goals()[what] for latency in found]
        over = sum(value > goal for value in values)
        print(f"  {what}: median {median(values):.2f}, worst {max(values):.2f}; goal {goal:g}, missed by {over}")


def _cells(name: str = "") -> dict[str, str]:
    """Return the sources of the notebook's cells by their ids; with a name, they make and show that figure."""
    return {
        "floor": "%matplotlib inline\nfrom tools.bench import live as bench\nbench.floor()",
        "make": f"figure = bench.figures()[{name!r}]()",
        "ours": "figure",
        "usual": "bench.the_usual_way(figure)",
        "forget": "bench.testing.forget(figure)",
        "ahead": "figure.look_ahead()",
    }


def _show(name: str, page: "Notebook") -> "list[LiveFigure]":
    """Show a figure in both ways; return the floor and these two, each watched and at the left end of its slider."""
    for cell in ("make", "ours", "usual"):
        page.run_cell(cell, _cells(name)[cell])
    shown = page.live_figures()
    for figure in shown[1:]:
        figure.wait_for_picture()
    for figure in shown:
        figure.node.evaluate("node => bench.watch(node)")
        _first_slider(figure).input.press("Home")
        _settle(figure)
    return shown


def _measure(name: str, page: "Notebook") -> Latency:
    floor, ours, usual = ((figure, _first_slider(figure)) for figure in _show(name, page))
    label = [_step(*floor, "ArrowRight") for _ in range(2 * STEPS)]

    there, back = ("ArrowRight", "ArrowLeft") if ours[1].kind == "slider" else ("Space", "Space")
    most = STEPS if there != back else 1

    def anew() -> None:
        """Go to the left end, where no picture is drawn ahead, and none is known from before."""
        page.run_cell("forget")
        ours[1].move("Home")
        _settle(ours[0])

    # One key on the heels of another.
    hasty: list[float] = []
    while len(hasty) < STEPS:  # again, where the slider has fewer
        anew()
        came = list(itertools.takewhile(bool, (_step(*ours, there) for _ in range(most))))
        hasty += came
    # As a learner does, who looks before pressing: there, pictures are drawn ahead; afterwards they are known.
    ahead: list[float] = []
    known: list[float] = []
    theirs: list[float] = []
    while len(ahead) < STEPS:
        anew()
        page.run_cell("ahead")  # as a figure does that was just shown
        for key, taken in [(there, ahead)] * len(came) + [(back, known)] * len(came):
            _settle(ours[0])
            taken.append(_step(*ours, key))
            if len(theirs) < STEPS:  # the usual way is as slow on the way back
                _settle(usual[0])
                theirs.append(_step(*usual, key))
    control = f"{ours[1].kind} {ours[1].label!r}"
    return Latency(name, control, median(label), median(ahead + known), median(ahead), median(hasty), median(theirs))


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
