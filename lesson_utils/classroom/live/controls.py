"""Controls of a live figure: sliders, choices, switches, words."""

import math
from dataclasses import dataclass
from typing import Any

import ipywidgets

TYPED: Any = {"_dom_classes": ("any-number",)}  # only beside these sliders can one type: see page.js


class Control:
    """Something that a learner can set, with a text label and a start value.

    Each kind says which values it takes, in their order, and which widget shows it; the rest follows from these.
    """

    label: str
    value: Any

    def values(self) -> tuple[Any, ...]:
        """Return the values that it takes, in their order; of a text to type, only the first."""
        raise NotImplementedError

    def widget(self, value: Any) -> ipywidgets.Widget:
        """Make the widget that shows it, standing at `value`."""
        raise NotImplementedError

    def check(self, name: str, value: Any) -> None:
        """Raise a ValueError unless it can take `value`."""
        if value not in self.values():
            options = ", ".join(map(repr, self.values()))
            raise ValueError(f"{name}={value!r} can't be chosen; expected one of {options}")

    def extremes(self) -> tuple[Any, ...]:
        """Return the first value, the start and the last value."""
        return self.values()[0], self.value, self.values()[-1]

    def neighbours(self, value: Any) -> tuple[Any, ...]:
        """Return the next value and the one before, where there are any: the arrow keys lead there."""
        values = self.values()
        place = values.index(value)
        return values[place + 1 : place + 2] + values[max(place - 1, 0) : place]

    def read(self, value: Any) -> Any:
        """Return the control's value, from the value of its widget."""
        return value


@dataclass(frozen=True)
class _Range(Control):
    """Numbers between two ends."""

    label: str
    low: float
    high: float
    value: float

    def check(self, name: str, value: float) -> None:
        if not self.low <= value <= self.high:
            raise ValueError(f"{name}={value!r} is out of range; expected a number from {self.low} to {self.high}")

    def neighbours(self, value: float) -> tuple[float, ...]:
        return super().neighbours(min(self.values(), key=lambda step: abs(step - value)))

    def read(self, value: float) -> float:
        return _rounded(value)


@dataclass(frozen=True)
class Slider(_Range):
    """An evenly spaced slider; whole numbers stay whole."""

    step: float = 1

    def values(self) -> tuple[float, ...]:
        return tuple(_rounded(self.low + n * self.step) for n in range(round((self.high - self.low) / self.step) + 1))

    def widget(self, value: float) -> ipywidgets.Widget:
        whole = all(isinstance(n, int) for n in (self.low, self.high, self.value, self.step))
        make = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        return make(value=value, min=self.low, max=self.high, step=self.step, **_look(self.label), **TYPED)


@dataclass(frozen=True)
class LogSlider(_Range):
    """A slider for numbers that span powers of ten: equal steps multiply by an equal factor.

    Raises:
        ValueError: the slider could not stand at `value`; the browser would move it without a word.
    """

    steps_per_decade: int = 10

    def __post_init__(self) -> None:
        nearest = min(self.values(), key=lambda step: abs(step - self.value))
        if _rounded(self.value) != nearest:
            raise ValueError(f"{self.label}: value={self.value} is no step of the slider; the nearest is {nearest!r}")

    def values(self) -> tuple[float, ...]:
        steps = round(self.steps_per_decade * math.log10(self.high / self.low))
        return tuple(_rounded(self.low * 10 ** (n / self.steps_per_decade)) for n in range(steps + 1))

    def widget(self, value: float) -> ipywidgets.Widget:
        low, high, step = math.log10(self.low), math.log10(self.high), 1 / self.steps_per_decade
        return ipywidgets.FloatLogSlider(value=value, min=low, max=high, step=step, **_look(self.label), **TYPED)


@dataclass(frozen=True)
class Choice(Control):
    """One of a few values, on a slider: what can't be combined can't be chosen.

    Texts stand on a slider, too. JupyterLab takes the arrow keys away from a drop-down list.
    """

    label: str
    options: tuple[Any, ...]
    value: Any

    def values(self) -> tuple[Any, ...]:
        return self.options

    def extremes(self) -> tuple[Any, ...]:
        return self.options if isinstance(self.value, str) else super().extremes()  # texts have no order

    def widget(self, value: Any) -> ipywidgets.Widget:
        texts = [str(option) for option in self.options]
        if max(map(len, texts)) > 12:  # there is no room for them beside the slider: the figure's title has to say it
            texts = [f"{n} of {len(texts)}" for n in range(1, len(texts) + 1)]
        options = list(zip(texts, self.options, strict=True))
        return ipywidgets.SelectionSlider(options=options, value=value, **_look(self.label))


@dataclass(frozen=True)
class Switch(Control):
    """On or off."""

    label: str
    value: bool

    def values(self) -> tuple[bool, ...]:
        return False, True

    def widget(self, value: bool) -> ipywidgets.Widget:
        look = _look(self.label)
        look["layout"] = ipywidgets.Layout(width="auto")  # several stand in a row, each as wide as its words
        return ipywidgets.Checkbox(value=value, indent=False, **look)


@dataclass(frozen=True)
class Word(Control):
    """A text to type, of up to `longest` characters; the figure follows each key.

    What a lab can't use (a digit, where it wants letters) it has to leave out itself, and say so.
    """

    label: str
    value: str
    longest: int = 20

    def values(self) -> tuple[str, ...]:
        return (self.value,)

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


PLAYING = "playing" if ipywidgets.Play.class_traits().get("playing") else "_playing"  # the second in ipywidgets 7


def player(steps: int) -> ipywidgets.Widget:
    """Make the button that plays and pauses, of a figure that goes through so many settings."""
    play = ipywidgets.Play(min=0, max=max(steps - 1, 0), interval=200, show_repeat=False)
    play.layout = ipywidgets.Layout(width="auto")
    return play


def _rounded(value: float) -> float:
    """Drop the last digits, which depend on the way by which a slider came there: 0.3 is one place."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _look(label: str) -> dict[str, Any]:
    layout = ipywidgets.Layout(width="auto", min_width="280px", flex="1 1 280px", max_width="420px")
    # Without a tooltip of its own, the label shows "null" to a mouse that rests on it. ipywidgets 7 has another word.
    tooltip = "tooltip" if ipywidgets.DOMWidget.class_traits().get("tooltip") else "description_tooltip"
    return {"description": label, tooltip: label, "style": {"description_width": "initial"}, "layout": layout}
