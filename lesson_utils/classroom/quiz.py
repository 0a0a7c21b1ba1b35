"""Checkpoint questions, and predictions: a click on an option says what it gets right or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from lesson_utils.classroom import progress, stand_in
from lesson_utils.classroom.asked import Prediction, Question
from lesson_utils.classroom.course import named
from lesson_utils.mistakes.verdict import COLOURS, details, to_html

# Told apart at a glance, in light and dark, and on paper, where browsers leave other backgrounds out.
BADGE = "padding:1px 6px;border-radius:3px;color:#fff;print-color-adjust:exact;background:"


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


RUN = "Noted. Go on below."
PREDICTION = "Your prediction"


def _noted(prediction: Prediction, chosen: str) -> str:
    """Return what is shown below the options when one is chosen: the comparison stays closed until it is wanted."""
    reply = f'<div style="margin:4px 0">{to_html(prediction.reply(chosen))}</div>'
    return f"<div>{RUN}</div>" + details("Compare with what happened", reply)


def predict(notebook: str, name: str) -> None:
    """Show the options of a prediction, and keep the one that is chosen: `predict("scaled_attention", "itself")`.

    They are buttons where a kernel runs, and elsewhere a line for each option that opens its reply.

    Raises:
        ValueError: there is no such notebook, or no such prediction in it.
    """
    import ipywidgets

    predictions = {prediction.name: prediction for prediction in named(notebook).predictions()}
    if name not in predictions:
        raise ValueError(f"notebook {notebook!r} has no prediction {name!r}; it has {', '.join(predictions)}")
    prediction, key = predictions[name], f"{notebook}.{name}"
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
