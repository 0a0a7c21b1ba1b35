"""A lesson's questions.txt: its predictions, in the order of the notebook, and its checkpoint questions.

    # A line like this one is a comment.

    ? films
    * film 1
    ~ film 2
    - film 5
    = A score measures how far a key reaches in the direction of the query, and film 1 reaches furthest.

    ? From d_k = 16 to d_k = 64, the standard deviation of the unscaled scores …
    - grows fourfold. | That is the variance, d_k. The standard deviation is its root.
    * doubles. | It is √d_k: from 4 to 8.

`?` begins a prediction, by its name, or a question, by its text. `*` is the right option, `-` another one, and `~`
another one that textbooks, or most people, expect. What stands behind ` | ` is said to whoever chooses an option of a
question, and what stands behind `=` to whoever has made a prediction. A line that begins with blanks goes on.
"""

from dataclasses import dataclass
from pathlib import Path

KINDS = "?*-~="


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


def read(path: Path) -> tuple[tuple[Prediction, ...], tuple[Question, ...]]:
    """Return the predictions and the questions of a file.

    Raises:
        ValueError: a line does not fit, or a prediction or question as a whole; file and line are named.
    """
    predictions, questions = [], []
    for (begin, _, name), *lines in _entries(path):
        try:
            if any(kind == "=" for _, kind, _ in lines):
                predictions.append(_prediction(name, [(kind, text) for _, kind, text in lines]))
            else:
                questions.append(Question(name, tuple(_option(*line) for line in lines)))
        except ValueError as why:
            raise ValueError(f"{path}, line {begin}: {why}") from why
    return tuple(predictions), tuple(questions)


def _entries(path: Path) -> list[list[tuple[int, str, str]]]:
    """Return the lines of each prediction or question: number, kind and text, with what goes on put behind it."""
    entries: list[list[tuple[int, str, str]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        kind, text = line[:1], line[1:].strip()
        if not line.strip() or kind == "#":
            continue
        if kind == "?":
            entries.append([])
        if kind == " " and entries:
            begin, before, so_far = entries[-1].pop()
            entries[-1].append((begin, before, f"{so_far} {text}"))
        elif kind in KINDS and line[1:2] == " " and entries:
            entries[-1].append((number, kind, text))
        else:
            raise ValueError(f"{path}, line {number}: {line!r} begins with none of `? `, `- `, `* `, `~ `, `= `, `# `")
    return entries


def _prediction(name: str, lines: list[tuple[str, str]]) -> Prediction:
    right, usual, happened = ([text for kind, text in lines if kind == mark] for mark in "*~=")
    if len(right) != 1 or len(happened) != 1 or len(usual) > 1:
        raise ValueError(f"prediction {name!r} needs one `*`, one `=`, and at most one `~`")
    return Prediction(name, tuple(text for kind, text in lines if kind != "="), *right, *happened, *usual)


def _option(number: int, kind: str, line: str) -> Option:
    text, bar, feedback = line.partition(" | ")
    if not bar or kind == "~":
        raise ValueError(f"line {number} of a question is `- option | what to say`, or begins with `*`: {line!r}")
    return Option(text, feedback, right=kind == "*")
