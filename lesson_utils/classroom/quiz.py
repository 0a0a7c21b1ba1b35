"""Checkpoint questions: open an option to read what it gets right or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from lesson_utils.classroom.course import named
from lesson_utils.mistakes.verdict import details, to_html


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
            page.append(f"<p><strong>{n}. {to_html(question.text)}</strong></p>")
            plain.append(f"{n}. {question.text}")
            for letter, option in zip("abcdefgh", question.options, strict=False):
                mark = "Right." if option.right else "No."
                feedback = f"<strong>{mark}</strong> {to_html(option.feedback)}"
                page.append(
                    details(f"{letter}) {to_html(option.text)}", f'<p style="margin:2px 0 8px 1.2em">{feedback}</p>')
                )
                plain.append(f"   {letter}) {option.text}")
        return {"text/html": "".join(page), "text/plain": "\n".join(plain)}


def checkpoint(notebook: str) -> Quiz:
    """Return the questions of a notebook, by its name without the number: `checkpoint("scaled_attention")`.

    Raises:
        ValueError: there is no such notebook.
    """
    return Quiz(named(notebook).questions())
