"""Live figures: sliders over a figure that is built once, then only updated.

A lab is a function that builds its figure and returns `update`, which moves the artists and returns the alternative
text. Everything else is done here:

    @live.lab(width=6, height=3, x=live.Slider("x", 0, 10, 3))
    def a_point(figure):
        (dot,) = figure.add_subplot(xlim=(0, 10), ylim=(0, 1)).plot([0], [0.5], "o")

        def update(x):
            dot.set_xdata([x])
            return f"A point at {x}."

        return update

    a_point()        # shows it
    a_point(x=7)     # shows it with another start
"""

import asyncio
import html
import math
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial, update_wrapper
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Protocol

import ipywidgets

from lesson_utils import plots

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

Update = Callable[..., str]
Draw = Callable[["Figure"], Update]
PICTURES_KEPT = 64  # by each figure, of about 30 kB
PAUSE = 0.05  # seconds: longer than between two steps of a drag, or of a key held down


class Control(Protocol):
    """What a learner can set: its text label, the values it can take, and the widget that shows it."""

    @property
    def label(self) -> str: ...
    @property
    def value(self) -> Any: ...
    def check(self, name: str, value: Any) -> None: ...
    def extremes(self) -> tuple[Any, ...]: ...
    def neighbours(self, value: Any) -> tuple[Any, ...]: ...
    def read(self, value: Any) -> Any: ...
    def widget(self, value: Any) -> ipywidgets.Widget: ...


@dataclass(frozen=True)
class Slider:
    """An evenly spaced slider; whole numbers stay whole."""

    label: str
    low: float
    high: float
    value: float
    step: float = 1

    def check(self, name: str, value: float) -> None:
        _check_range(self, name, value)

    def extremes(self) -> tuple[float, ...]:
        return self.low, self.value, self.high

    def neighbours(self, value: float) -> tuple[float, ...]:
        near = _rounded(value + self.step), _rounded(value - self.step)
        return tuple(n for n in near if self.low <= n <= self.high)

    def read(self, value: float) -> float:
        return _rounded(value)

    def widget(self, value: float) -> ipywidgets.Widget:
        whole = all(isinstance(n, int) for n in (self.low, self.high, self.value, self.step))
        make = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        return make(value=value, min=self.low, max=self.high, step=self.step, **_look(self.label))


@dataclass(frozen=True)
class LogSlider:
    """A slider for what spans powers of ten: equal steps multiply by an equal factor.

    Raises:
        ValueError: the slider could not stand at `value`; the browser would move it without a word.
    """

    label: str
    low: float
    high: float
    value: float
    steps_per_decade: int = 10

    def __post_init__(self) -> None:
        steps = self.steps_per_decade * math.log10(self.value / self.low)
        if abs(steps - round(steps)) > 1e-9:
            nearest = self.low * 10 ** (round(steps) / self.steps_per_decade)
            raise ValueError(
                f"{self.label}: value={self.value} is not a step of the slider; the nearest is {nearest!r}"
            )

    def check(self, name: str, value: float) -> None:
        _check_range(self, name, value)

    def extremes(self) -> tuple[float, ...]:
        return self.low, self.value, self.high

    def neighbours(self, value: float) -> tuple[float, ...]:
        place = round(self.steps_per_decade * math.log10(value))  # as the slider counts, to the last digit
        near = (_rounded(10 ** ((place + step) / self.steps_per_decade)) for step in (1, -1))
        return tuple(n for n in near if _rounded(self.low) <= n <= _rounded(self.high))

    def read(self, value: float) -> float:
        return _rounded(value)

    def widget(self, value: float) -> ipywidgets.Widget:
        low, high = math.log10(self.low), math.log10(self.high)
        step = 1 / self.steps_per_decade
        return ipywidgets.FloatLogSlider(value=value, base=10, min=low, max=high, step=step, **_look(self.label))


@dataclass(frozen=True)
class Choice:
    """One of a few values, on a slider: what can't be combined can't be chosen.

    Texts stand on a slider, too. JupyterLab takes the arrow keys away from a drop-down list.
    """

    label: str
    options: tuple[Any, ...]
    value: Any

    def check(self, name: str, value: Any) -> None:
        _check_option(self, name, value)

    def extremes(self) -> tuple[Any, ...]:
        if isinstance(self.value, str):  # texts have no order: each is an extreme
            return self.options
        return self.options[0], self.value, self.options[-1]

    def neighbours(self, value: Any) -> tuple[Any, ...]:
        place = self.options.index(value)
        return self.options[place + 1 : place + 2] + self.options[max(place - 1, 0) : place]

    def read(self, value: Any) -> Any:
        return value

    def widget(self, value: Any) -> ipywidgets.Widget:
        texts = [str(option) for option in self.options]
        if max(map(len, texts)) > 12:  # there is no room for them beside the slider: the figure's title has to say it
            texts = [f"{n} of {len(texts)}" for n in range(1, len(texts) + 1)]
        options = list(zip(texts, self.options, strict=True))
        return ipywidgets.SelectionSlider(options=options, value=value, **_look(self.label))


@dataclass(frozen=True)
class Switch:
    """On or off."""

    label: str
    value: bool
    options: tuple[bool, ...] = (False, True)

    def check(self, name: str, value: bool) -> None:
        _check_option(self, name, value)

    def extremes(self) -> tuple[bool, ...]:
        return self.options

    def neighbours(self, value: bool) -> tuple[bool, ...]:
        return (not value,)

    def read(self, value: bool) -> bool:
        return value

    def widget(self, value: bool) -> ipywidgets.Widget:
        return ipywidgets.Checkbox(value=value, indent=False, **_look(self.label))


@dataclass(frozen=True)
class Word:
    """A text to type, of up to `longest` characters; the figure follows each key.

    What a lab can't use (a digit, where it wants letters) it has to leave out itself, and say so.
    """

    label: str
    value: str
    longest: int = 20

    def check(self, name: str, value: str) -> None:
        if not isinstance(value, str) or len(value) > self.longest:
            raise ValueError(f"{name}={value!r} does not fit; expected a text of up to {self.longest} characters")

    def extremes(self) -> tuple[str, ...]:
        return "", self.value, "z" * self.longest

    def neighbours(self, value: str) -> tuple[str, ...]:
        return ()  # nobody knows what comes next

    def read(self, value: str) -> str:
        return value[: self.longest]  # no widget can limit the length

    def widget(self, value: str) -> ipywidgets.Widget:
        return ipywidgets.Text(value=value, continuous_update=True, **_look(self.label))


def _check_range(control: Slider | LogSlider, name: str, value: float) -> None:
    if not control.low <= value <= control.high:
        raise ValueError(f"{name}={value!r} is out of range; expected a number from {control.low} to {control.high}")


def _check_option(control: Choice | Switch, name: str, value: Any) -> None:
    if value not in control.options:
        raise ValueError(f"{name}={value!r} can't be chosen; expected one of {', '.join(map(repr, control.options))}")


def _rounded(value: float) -> float:
    """Without the last digits, which depend on the way by which a slider came there: 0.3 is one place."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _look(label: str) -> dict[str, Any]:
    layout = ipywidgets.Layout(width="auto", min_width="280px", flex="1 1 280px", max_width="420px")
    return {"description": label, "style": {"description_width": "initial"}, "layout": layout}


class Lab:
    """A live figure waiting to be shown: call it, with start values if you like."""

    def __init__(self, draw: Draw, width: float, height: float, controls: dict[str, Control]):
        self.draw, self.width, self.height, self.controls = draw, width, height, controls
        update_wrapper(self, draw)

    def __call__(self, **start: Any) -> "LiveFigure":
        return LiveFigure(self, start)


def lab(width: float = 9.0, height: float = 3.6, **controls: Control) -> Callable[[Draw], Lab]:
    """Make a lab of a function that builds a figure; `controls` are the keyword arguments of its `update`."""
    return lambda draw: Lab(draw, width, height, controls)


class LiveFigure:
    """A figure under its controls. Built once; a step moves artists, redraws those, and sends one picture.

    While a learner looks at one picture, those one step further are drawn, and pictures are kept: from key press to
    picture, what is left is the way to the kernel and back. So `update` must depend on its arguments alone.
    """

    def __init__(self, lab: Lab, start: dict[str, Any]):
        self.lab, self._controls = lab, lab.controls
        self._check(start)
        values = {name: control.value for name, control in lab.controls.items()} | start
        figure = plots.figure(lab.width, lab.height)
        with plots.style():
            self._update = lab.draw(figure)
            self._update(**values)  # once before the layout is computed, so that it leaves room for every text
            self._screen = _Screen(figure)
        self._draw = lru_cache(PICTURES_KEPT)(self._draw)  # type: ignore[method-assign]  # of this figure only
        self._ahead: asyncio.TimerHandle | None = None
        self._inputs = {name: control.widget(values[name]) for name, control in lab.controls.items()}
        self._html = ipywidgets.HTML()
        self._redraw()
        for name, widget in self._inputs.items():
            widget.observe(partial(self._on_change, name), names="value")
        row = ipywidgets.Layout(display="flex", flex_flow="row wrap", grid_gap="0 16px")
        self.widget = ipywidgets.VBox([ipywidgets.Box(list(self._inputs.values()), layout=row), self._html])

    @property
    def values(self) -> dict[str, Any]:
        """Where the controls stand."""
        return {name: control.read(self._inputs[name].value) for name, control in self._controls.items()}

    def set(self, **values: Any) -> plots.Picture:
        """Move controls from code; returns the new picture.

        Raises:
            ValueError: there is no such control, or it can't take that value.
        """
        self._check(values)
        self._moving_many = True
        try:
            for name, value in values.items():
                self._inputs[name].value = value
        finally:
            self._moving_many = False
        return self._redraw()

    _moving_many = False

    def _check(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if name not in self._controls:
                raise ValueError(f"no control {name!r}; this figure has {', '.join(self._controls)}")
            self._controls[name].check(name, value)

    def _redraw(self) -> plots.Picture:
        self.picture = self._draw(**self.values)
        self._html.value = self.picture.html()
        return self.picture

    def _draw(self, **values: Any) -> plots.Picture:
        with plots.style():
            return self._screen.show(self._update(**values))

    def _on_change(self, moved: str, change: object) -> None:
        if self._moving_many:
            return
        if self._ahead:
            self._ahead.cancel()
        try:
            self._redraw()
        except Exception:  # an exception in a widget's callback would vanish into a log: show it where the figure was
            self._html.value = f'<pre role="alert" style="color:#B00020">{html.escape(traceback.format_exc())}</pre>'
            return
        self._look_ahead(moved)

    def _look_ahead(self, moved: str) -> None:
        """Have the pictures one step further drawn as soon as there is nothing else to do."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # this is not a kernel
            return
        values = self.values
        near = [values | {moved: value} for value in self._controls[moved].neighbours(values[moved])]
        self._ahead = loop.call_later(PAUSE, self._draw_ahead, near)

    def _draw_ahead(self, settings: list[dict[str, Any]]) -> None:
        """Draw the first of these, and the others later: what the learner does in between comes first."""
        if settings:
            with suppress(Exception):  # it will be shown to whoever goes there
                self._draw(**settings[0])
            self._ahead = asyncio.get_running_loop().call_later(PAUSE, self._draw_ahead, settings[1:])

    def outputs(self) -> list[dict[str, Any]]:
        """What is displayed: a picture for readers without a kernel, then the widget, which hides the picture."""
        still, number = self.picture._repr_mimebundle_(), self.widget.model_id
        self.widget.add_class(f"live-{number}")
        controls = html.escape(", ".join(control.label for control in self._controls.values()))
        still["text/html"] = (
            f"<style>{_HIDE.replace('NUMBER', number)}</style><div class='still-{number}'>{still['text/html']}"
            f"<p><em>A picture of a live figure: run this cell to move {controls}.</em></p></div>"
        )
        view = {"version_major": 2, "version_minor": 0, "model_id": number}
        return [still, {"application/vnd.jupyter.widget-view+json": view, "text/plain": ""}]

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for output in self.outputs():
            display(output, raw=True)


# A saved notebook holds a widget's number, not the widget. Where nothing answers to it, JupyterLab shows an error text
# and others show nothing; so the picture is an output of its own. The first rule hides it beside its living widget, the
# second hides JupyterLab's text: it is the only output of such a cell that has no element in it.
_HIDE = (
    "body:has(.live-NUMBER) .still-NUMBER{display:none}"
    ".jp-OutputArea:has(.still-NUMBER) .jp-OutputArea-output:not(:has(*)){display:none}"
)


class _Screen:
    """Draws a figure again and again, each time only the artists that have moved.

    matplotlib marks a changed artist as stale, so nobody has to list what an `update` moves, and nothing can be
    forgotten. Once an artist has moved, it and all that lies above it in its axes are drawn afresh on every frame, over
    a stored picture of the rest: the frame equals a full redraw, pixel by pixel, in about a fifth of the time.
    """

    def __init__(self, figure: "Figure"):
        from matplotlib.axis import Axis
        from matplotlib.image import AxesImage
        from matplotlib.spines import Spine

        self._figure = figure
        self._canvas: Any = figure.canvas
        self._axis = Axis  # new limits can move all that an axes holds: then everything is drawn again
        self._frame = (Axis, Spine)
        self._image = AxesImage
        self._moved: set[Artist] = set()
        self._front: list[Artist] = []
        for axes in figure.axes:
            if legend := axes.get_legend():
                legend.set_zorder(0)  # under all that moves, it is drawn once. With every frame, it took a third of it
        self._canvas.draw()
        figure.set_layout_engine("none")  # the layout is computed once: axes must not jump when a label grows
        self._store_background()

    def show(self, alt: str) -> plots.Picture:
        stale = {artist for artist in self._artists() if artist.stale}
        if not stale <= set(self._front) or any(isinstance(artist, self._axis) for artist in stale):
            self._moved |= stale
            self._store_background()
        self._canvas.restore_region(self._background)
        for artist in self._front:
            artist.draw(self._canvas.get_renderer())
        return plots.snapshot(self._figure, alt)

    def _artists(self) -> "Iterable[Artist]":
        """All artists but the axes' white backgrounds, in the order in which matplotlib draws them."""
        for axes in sorted(self._figure.axes, key=methodcaller("get_zorder")):
            children = [child for child in axes.get_children() if child is not axes.patch]
            if not axes.axison:  # set_axis_off
                children = [child for child in children if not isinstance(child, self._frame)]
            yield from sorted(children, key=methodcaller("get_zorder"))
        yield from (*self._figure.texts, *self._figure.legends)

    def _store_background(self) -> None:
        lowest: dict[Any, float] = {}
        for artist in self._moved:
            lowest[artist.axes] = min(artist.get_zorder(), lowest.get(artist.axes, math.inf))
        self._front = [a for a in self._artists() if a.axes in lowest and a.get_zorder() >= lowest[a.axes]]
        for artist in self._front:
            artist.set_animated(True)  # leaves it out of the full drawing
        images = [a for a in self._front if isinstance(a, self._image) and a.get_visible()]
        for image in images:
            image.set_visible(False)  # matplotlib 3.8 draws animated images all the same
        self._canvas.draw()
        for image in images:
            image.set_visible(True)
        self._background = self._canvas.copy_from_bbox(self._figure.bbox)
