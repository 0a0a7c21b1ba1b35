"""Live figures: sliders over a figure that is built once, then only updated.

Of the course it needs `plots`, `legible`, `stand_in`, `formats` and `maths.checks` alone: with these it can be carried
elsewhere.

A lab is a function that builds its figure and returns `update`, which moves the artists and returns the alternative
text. Everything else is done here; docs/own_figures.md begins with a whole one.

A lab that is made from something, such as trained models, takes it behind the figure, and says what to show it with
where nothing has been trained, in tests for instance:

    @live.lab(
        controls=lambda trained: {"heads": live.Choice("heads", tuple(trained), 1)},
        example=lambda: {h: untrained(h) for h in (1, 2)},  # one thing, or a tuple of several
    )
    def heads(figure, trained):
        ...

    heads(trained)    # heads.example() shows it with the example
"""

import html
import inspect
import math
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial, update_wrapper
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import ipywidgets
import numpy as np
from numpy.typing import NDArray

from lesson_utils.classroom import legible, plots, stand_in
from lesson_utils.classroom.live import stops
from lesson_utils.classroom.live.controls import PLAYING, Choice, Control, LogSlider, Slider, Switch, Word, player

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

__all__ = ["Choice", "Control", "Lab", "LiveFigure", "LogSlider", "Slider", "Switch", "Update", "Word", "lab"]

Update = Callable[..., str]
PICTURES_KEPT = 64  # by each figure, of about 30 kB
PAUSE = 0.05  # seconds: longer than between two steps of a drag, or of a key held down


@dataclass(eq=False)
class Lab:
    """A live figure waiting to be shown: call it, with what it is made from, and with start values if you like."""

    draw: Callable[..., Update]
    width: float
    height: float
    controls: Mapping[str, Control] | Callable[..., Mapping[str, Control]]
    made_for_example: Callable[[], Any]
    prepare: Callable[..., Any] | None
    neutral: str
    telling: Sequence[Mapping[str, Any]]
    plays: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        update_wrapper(self, self.draw)

    def __call__(self, *made_from: Any, **start: Any) -> "LiveFigure":
        made = made_from if self.prepare is None else _as_tuple(self.prepare(*made_from))
        return LiveFigure(self, made, start)

    def example(self, **start: Any) -> "LiveFigure":
        """Show the figure, made from its example."""
        return self(*_as_tuple(self.made_for_example()), **start)

    def call(self, **start: Any) -> str:
        """Return the line of code that shows this figure with these start values."""
        takes = list(inspect.signature(self.prepare or self.draw).parameters.values())
        made_from = [p.name for p in (takes if self.prepare else takes[1:]) if p.default is p.empty]
        return f"lab.{self.draw.__name__}({', '.join([*made_from, *(f'{n}={v!r}' for n, v in start.items())])})"


def as_read(value: Any) -> Any:
    """Return a number with the three digits that stand beside its slider: with them the same picture is shown."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _as_tuple(made_from: Any) -> tuple[Any, ...]:
    return made_from if isinstance(made_from, tuple) else (made_from,)


def lab(
    width: float = 9.0,
    height: float = 3.6,
    controls: Mapping[str, Control] | Callable[..., Mapping[str, Control]] | None = None,
    example: Callable[[], Any] = tuple,
    prepare: Callable[..., Any] | None = None,
    neutral: str = "",
    telling: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    plays: Sequence[Mapping[str, Any]] = (),
    **more: Control,
) -> Callable[[Callable[..., Update]], Lab]:
    """Make a lab of a function that builds a figure and returns its `update`.

    Args:
        controls, more: the keyword arguments of `update`; or a function of what the figure is made from.
        example: what to make it from in tests and bench.
        prepare: turns what it is made from into what the function gets (one thing, or a tuple of several), once a
            figure: for measurements that take a while.
        neutral: why the picture that is shown first does not answer what the notebook asks to predict; a figure that
            stands between a prediction and its answer must say so.
        telling: the setting at which the finding is seen at a glance, as values of controls; or several, where the way
            from one to the next is what there is to see. Readers without a kernel get this picture. Default: the start.
        plays: settings that the figure goes through at the press of a button; the first is the start. It also does so
            by itself, once: see page.js.
    """
    moved = more if controls is None else controls
    told = [telling] if isinstance(telling, Mapping) else telling
    return lambda draw: Lab(draw, width, height, moved, example, prepare, neutral, told, plays)


before_shown: list[Callable[[], object]] = []  # what is to be done before a figure is shown: see page.py


class Stamp(NamedTuple):
    """The pixels that an artist painted, and those on which it stood."""

    places: NDArray[np.intp]  # numbers of the pixels that it touches
    below: NDArray[np.uint32]  # their colours before
    painted: NDArray[np.uint32]  # and after it


class Screen:
    """Draws a figure again and again, each time only the artists that have moved.

    matplotlib marks a changed artist as stale, so nobody has to list what an `update` moves, and nothing can be
    forgotten. Once an artist has moved, it and all that lies above it in its axes are drawn afresh on every frame, over
    a stored picture of the rest: the frame equals a full redraw, pixel by pixel, in about a fifth of the time.
    """

    def __init__(self, figure: "Figure"):
        self._figure = figure
        self._canvas: Any = figure.canvas
        self._moved: set[Artist] = set()
        self._front: list[Artist] = []
        self._stamps: dict[Artist, Stamp] = {}  # of artists in front that have never moved
        self._in_front: set[Any] = set()  # axes of which only the white paper is in the background
        for axes in figure.axes:
            if legend := axes.get_legend():
                legend.set_zorder(0)  # under all that moves, it is drawn once. With every frame, it took a third of it
        self._canvas.draw()
        self._cuts = legible.cuts(figure)
        figure.set_layout_engine("none")  # the layout is computed once: axes must not jump when a label grows
        self._keep_as_background()  # nothing has moved yet
        self._limits = self._limits_now()

    def show(self, alt: str) -> plots.Picture:
        """Draw what has moved, and return the picture."""
        limits = self._limits_now()
        stale = {artist for artist in self._artists() if artist.stale}
        rescaled = {axes for axes in limits if limits[axes] != self._limits[axes]}
        self._moved |= stale
        if not stale <= set(self._front) or not rescaled <= self._in_front:
            self._store_background()
        self._limits = limits
        self._canvas.restore_region(self._background)
        for artist in self._front:
            if artist in self._moved or artist.axes in rescaled:
                self._stamps.pop(artist, None)
                artist.draw(self._canvas.get_renderer())
            else:
                self._draw_or_stamp(artist)
        return plots.snapshot(self._figure, alt, self._cuts)

    def _draw_or_stamp(self, artist: "Artist") -> None:
        """Draw an artist that stands still; or copy what it painted the last time, if it stands on the same pixels.

        What moves seldom moves the pixels under the words at an axis, though these lie above it. Where there are many
        words, that halves the time of a frame, or more.
        """
        pixels = np.asarray(self._canvas.buffer_rgba()).view(np.uint32).ravel()
        stamp = self._stamps.get(artist)
        if stamp and np.array_equal(pixels[stamp.places], stamp.below):
            pixels[stamp.places] = stamp.painted
            return
        places = stamp.places if stamp else self._touched_by(artist)
        below = pixels[places]
        artist.draw(self._canvas.get_renderer())
        self._stamps[artist] = Stamp(places, below, pixels[places])

    def _touched_by(self, artist: "Artist") -> NDArray[np.intp]:
        """Return the numbers of the pixels that an artist paints: it is drawn on glass."""
        renderer, before = self._canvas.get_renderer(), self._canvas.copy_from_bbox(self._figure.bbox)
        renderer.clear()
        artist.draw(renderer)
        places = np.flatnonzero(np.asarray(self._canvas.buffer_rgba())[..., 3])
        self._canvas.restore_region(before)
        return places

    def _limits_now(self) -> dict[Any, tuple[object, ...]]:
        """Return what axes show: new limits can move all that they hold, also what is in the background."""
        return {ax: (ax.get_xlim(), ax.get_ylim(), ax.get_xscale(), ax.get_yscale()) for ax in self._figure.axes}

    def _artists(self) -> "Iterable[Artist]":
        """Yield all artists but the axes' white backgrounds, in the order in which matplotlib draws them."""
        from matplotlib.axis import Axis
        from matplotlib.spines import Spine

        for axes in sorted(self._figure.axes, key=methodcaller("get_zorder")):
            children = [child for child in axes.get_children() if child is not axes.patch]
            if not axes.axison:  # set_axis_off
                children = [child for child in children if not isinstance(child, (Axis, Spine))]
            yield from sorted(children, key=methodcaller("get_zorder"))
        yield from (*self._figure.texts, *self._figure.legends)

    def _store_background(self) -> None:
        from matplotlib.image import AxesImage

        lowest: dict[Any, float] = {}
        for artist in self._moved:
            lowest[artist.axes] = min(artist.get_zorder(), lowest.get(artist.axes, math.inf))
        self._front = [a for a in self._artists() if a.axes in lowest and a.get_zorder() >= lowest[a.axes]]
        behind = {artist.axes for artist in set(self._artists()) - set(self._front)}
        self._in_front = {axes for axes in self._figure.axes if axes not in behind and axes.get_aspect() == "auto"}
        for artist in self._front:
            artist.set_animated(True)  # leaves it out of the full drawing
        images = [a for a in self._front if isinstance(a, AxesImage) and a.get_visible()]
        for image in images:
            image.set_visible(False)  # matplotlib 3.8 draws animated images all the same
        self._canvas.draw()
        for image in images:
            image.set_visible(True)
        self._keep_as_background()

    def _keep_as_background(self) -> None:
        self._background = self._canvas.copy_from_bbox(self._figure.bbox)


class LiveFigure:
    """A figure under its controls. Built once; a step moves artists, redraws those, and sends one picture.

    While a learner looks at one picture, those one step further are drawn, and pictures are kept: from key press to
    picture, what is left is the way to the kernel and back. So `update` must depend on its arguments alone. The very
    first step of a figure that was just shown is one of the first control's, most often.
    """

    def __init__(self, lab: Lab, made_from: tuple[Any, ...], start: dict[str, Any]):
        self.lab, self.made_from = lab, made_from
        self.controls = dict(lab.controls(*made_from) if callable(lab.controls) else lab.controls)
        self._check(start)
        self._start = {name: control.value for name, control in self.controls.items()} | start
        self._build()
        self._kept = lru_cache(PICTURES_KEPT)(self._draw)
        self._near: list[dict[str, Any]] = []  # whose pictures are to be drawn before anybody asks
        self._many_move = False  # while code moves several controls, one redraw at the end is enough
        self._inputs = {name: control.widget(self._start[name]) for name, control in self.controls.items()}
        self._html = ipywidgets.HTML()
        self._redraw()
        for name, widget in self._inputs.items():
            widget.observe(partial(self._on_change, name), names="value")
        row = ipywidgets.Layout(display="flex", flex_flow="row wrap", grid_gap="0 16px")
        above = list(self._inputs.values())
        if lab.plays:
            self._player = player(len(lab.plays))
            self._player.observe(self._on_play, names="value")
            above.append(self._player)
        self.widget = ipywidgets.VBox([ipywidgets.Box(above, layout=row), self._html])
        self.widget.add_class("live-figure")  # for page.js and page.css

    @property
    def values(self) -> dict[str, Any]:
        """The value of each control, by name."""
        return {name: control.read(self._inputs[name].value) for name, control in self.controls.items()}

    def set(self, **values: Any) -> plots.Picture:
        """Move controls from code, and return the new picture.

        Raises:
            ValueError: there is no such control, or it can't take that value.
        """
        self._check(values)
        self._many_move = True
        try:
            for name, value in values.items():
                self._inputs[name].value = value
        finally:
            self._many_move = False
        return self._redraw()

    def _check(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if name not in self.controls:
                raise ValueError(f"no control {name!r}; this figure has {', '.join(self.controls)}")
            self.controls[name].check(name, value)

    def _picture_at(self, **values: Any) -> plots.Picture:
        """Return the picture from memory, or draw it; if another thread is drawing it, wait for that.

        A kernel hears the first step in one thread and those after it in another, so the second step used to be drawn
        twice, one after the other: ahead and when it was asked for.
        """
        with plots.alone():
            return self._kept(**values)

    def _redraw(self) -> plots.Picture:
        self.picture = self._picture_at(**self.values)
        self._html.value = self.shown()
        return self.picture

    def shown(self) -> str:
        """Return what stands below the controls, as HTML: the picture, and the call that shows it."""
        return self.picture.html() + self._how_to_return(self.values)

    def _how_to_return(self, values: Mapping[str, Any]) -> str:
        """Return the quiet line below the picture: the call that shows what is seen, for slides and notes."""
        now = {
            name: (control.read(values[name]), control.read(control.value)) for name, control in self.controls.items()
        }
        moved = {name: as_read(value) for name, (value, start) in now.items() if value != start}
        call = self.lab.call(**moved)
        style = f"color:var(--jp-content-font-color2, {plots.GREY});font-size:85%;user-select:all"
        return f'<div><code style="{style}">{html.escape(call)}</code></div>'

    def _build(self) -> None:
        figure = plots.figure(self.lab.width, self.lab.height)
        with plots.style():
            self._update = self.lab.draw(figure, *self.made_from)
            self._update(**self._start)  # once before the layout is computed, so that it leaves room for every text
            self._screen = Screen(figure)
        self._whole = True

    def _draw(self, **values: Any) -> plots.Picture:
        with plots.style():
            if not self._whole:  # a stop came in the middle of the last picture, and what it left can't be trusted
                self._build()
            self._whole = False
            picture = self._screen.show(self._update(**values))
            self._whole = True
        return picture

    def _on_change(self, moved: str, change: dict[str, Any]) -> None:
        if self._many_move:
            return
        self._near = []
        before, now = (self.controls[moved].read(change[when]) for when in ("old", "new"))
        if (
            self.lab.plays and before != now
        ):  # a hand stops it; a slider that was moved from code sends its last digits back
            self._player.set_trait(PLAYING, False)
        with stops.held_back():
            try:
                self._redraw()
            except Exception:  # shown where the figure was, because a widget's callback would lose it in a log
                told = html.escape(traceback.format_exc())
                self._html.value = f'<pre role="alert" style="color:#B00020">{told}</pre>'
                return
        self.look_ahead(moved, before)

    def _on_play(self, change: dict[str, Any]) -> None:
        if getattr(self._player, PLAYING):  # else a step was on its way when a hand came
            with stops.held_back():
                self.set(**self._start | dict(self.lab.plays[change["new"]]))

    def look_ahead(self, moved: str = "", came_from: Any = ...) -> None:
        """Draw the pictures one step further as soon as there is nothing else to do; where it came from is known.

        While nobody has moved anything, these are one step away by the first control.
        """
        values = self.values
        moved = moved or next((name for name, it in self.controls.items() if it.neighbours(values[name])), "")
        further = self.controls[moved].neighbours(values[moved]) if moved else ()
        self._near = [values | {moved: value} for value in further if value != came_from]
        self._soon(self._draw_ahead, self._near)

    def _soon(self, do: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the pause after this message."""
        import asyncio  # in a kernel it is there already

        with suppress(RuntimeError):  # this is not a kernel
            asyncio.get_running_loop().call_later(PAUSE, do, *arguments)

    def _draw_ahead(self, near: list[dict[str, Any]]) -> None:
        """Draw the first of these, and the others later; what the learner does in between comes first, and ends it."""
        if near and near is self._near:
            with suppress(Exception):  # it will be shown to whoever goes there
                self._picture_at(**near.pop(0))
            self._soon(self._draw_ahead, near)

    def outputs(self) -> list[dict[str, Any]]:
        """Return two outputs: a picture for readers without a kernel, and the widget, which hides the picture.

        Where notebooks are stored (COURSE_STRICT), the picture is the telling one. In a learner's notebook it is the
        one that the figure opens with: what stays there after a reload must not answer a prediction.
        """
        tellings = self.lab.telling if os.environ.get("COURSE_STRICT") else ()
        for some in tellings:
            self._check(dict(some))
        shown = [self._start | dict(some) for some in tellings] or [self.values]
        still = plots.together([self._picture_at(**values) for values in shown])._repr_mimebundle_()
        controls = html.escape(", ".join(f"“{control.label}”" for control in self.controls.values()))
        calls = "".join(map(self._how_to_return, shown))
        still["text/html"] += f"{calls}<p><em>A picture of a live figure. Run this cell to move {controls}.</em></p>"
        return stand_in.outputs(still, self.widget)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for do in before_shown:
            do()
        for output in self.outputs():
            display(output, raw=True)
        self.look_ahead()
