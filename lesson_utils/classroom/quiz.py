"""Checkpoint questions, and predictions: a click on an option says what it gets right or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from lesson_utils.classroom import progress
from lesson_utils.classroom.course import named
from lesson_utils.mistakes.verdict import COLOURS, details, to_html

# Told apart at a glance, in light and dark, and on paper, where browsers leave other backgrounds out.
BADGE = "padding:1px 6px;border-radius:3px;color:#fff;print-color-adjust:exact;background:"


@dataclass(frozen=True)
class Option:
    """An answer, and the feedback for choosing it."""

    text: str
    feedback: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question with exactly one right option.

    Raises:
        ValueError: there are fewer than two options, or not exactly one right one.
    """

    text: str
    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        if len(self.options) < 2 or sum(option.right for option in self.options) != 1:
            raise ValueError(f"{self.text!r} needs at least two options, exactly one of them right")


@dataclass(frozen=True)
class Quiz:
    """Questions, ready to be shown."""

    questions: Sequence[Question]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        page, plain = [], []
        for n, question in enumerate(self.questions, 1):
            page.append(f'<p style="margin:1.5em 0 0.4em"><strong>{n}. {to_html(question.text)}</strong></p>')
            plain.append(f"{n}. {question.text}")
            for letter, option in zip("abcdefgh", question.options, strict=False):
                mark = "✓ Right." if option.right else "✗ No."
                colour = COLOURS[option.right]
                feedback = f'<strong style="{BADGE}{colour}">{mark}</strong> {to_html(option.feedback)}'
                look = f"margin:4px 0 8px 1.2em;padding-left:8px;border-left:4px solid {colour}"
                page.append(details(f"{letter}) {to_html(option.text)}", f'<p style="{look}">{feedback}</p>'))
                plain.append(f"   {letter}) {option.text}")
        return {"text/html": "".join(page), "text/plain": "\n".join(plain)}


def checkpoint(notebook: str) -> Quiz:
    """Return the questions of a notebook, by its name without the number: `checkpoint("scaled_attention")`.

    Raises:
        ValueError: there is no such notebook.
    """
    return Quiz(named(notebook).questions())


@dataclass(frozen=True)
class Prediction:
    """Options to expect of the cells that follow, and what happens there.

    Raises:
        ValueError: there are not two to four options, or `right` and `usual` are not among them.
    """

    name: str
    options: tuple[str, ...]
    right: str  # the option that comes true
    happened: str  # whole sentences, read beside "You predicted …"
    usual: str = ""  # the option that textbooks, or most people, expect; "" where there is none

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= 4:
            raise ValueError(f"prediction {self.name!r} has {len(self.options)} options; give two to four")
        for option in {self.right, self.usual} - {"", *self.options}:
            raise ValueError(f"prediction {self.name!r}: {option!r} is none of its options, {self.options}")

    def reply(self, chosen: str) -> str:
        """Return the comparison of an option with what happened."""
        if chosen == self.right:
            return f"You predicted “{chosen}”, and you were right. {self.happened}"
        guess = f"“{chosen}” is the natural guess." if chosen == self.usual else f"You predicted “{chosen}”."
        return f"{guess} {self.happened}"


RUN = "Now run the next cell."
PREDICTION = "Your prediction"


def _noted(prediction: Prediction, chosen: str) -> str:
    """Return what is shown below the options when one is chosen: the comparison stays closed until it is wanted."""
    reply = f'<div style="margin:4px 0">{to_html(prediction.reply(chosen))}</div>'
    return f"<div>{RUN}</div>" + details("Compare with what happened", reply)


def predict(notebook: str, name: str) -> None:
    """Show the options of a prediction, and keep the one that is chosen: `predict("scaled_attention", "itself")`.

    Raises:
        ValueError: there is no such notebook, or no such prediction in it.
    """
    predictions = {prediction.name: prediction for prediction in named(notebook).predictions()}
    if name not in predictions:
        raise ValueError(f"notebook {notebook!r} has no prediction {name!r}; it has {', '.join(predictions)}")
    _show(predictions[name], f"{notebook}.{name}")


def _show(prediction: Prediction, key: str) -> None:
    """Show buttons where a kernel runs, and elsewhere a line for each option that opens its reply."""
    import ipywidgets

    from lesson_utils.classroom import stand_in

    page = "".join(details(to_html(option), _noted(prediction, option)) for option in prediction.options)
    still = {
        "text/html": f'<div role="group" aria-label="{PREDICTION}"><strong>{PREDICTION}</strong>{page}</div>',
        "text/plain": f"{PREDICTION}: {' / '.join(prediction.options)}",
    }
    # Plain words in the buttons: they show neither HTML nor backticks.
    buttons = ipywidgets.ToggleButtons(
        options=[(option.replace("`", ""), option) for option in prediction.options],
        value=None,
        description=PREDICTION,
        style={"description_width": "initial", "button_width": "initial"},
    )
    reply = ipywidgets.HTML()

    def keep(change: dict[str, str]) -> None:
        reply.value = _noted(prediction, change["new"])
        progress.predict(key, prediction.options.index(change["new"]))

    before = progress.predicted().get(key, -1)
    if 0 <= before < len(prediction.options):
        buttons.value = prediction.options[before]
        reply.value = _noted(prediction, buttons.value)
    buttons.observe(keep, names="value")
    whole = ipywidgets.VBox([buttons, reply])
    whole.add_class("prediction")  # for page.js
    stand_in.show(still, whole)
