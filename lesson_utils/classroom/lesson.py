"""The record of a lesson, which each package in `lesson_utils/lessons` keeps in its `__init__.py`."""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lesson_utils.classroom.live import Lab
    from lesson_utils.mistakes.exercise import Exercise

# Patterns of what belongs to other libraries → what the course has for it.
FOREIGN = (
    (r"\btorch\.|\bF\.\w+|\bnn\.\w+", "this is PyTorch; here everything is NumPy (`np`) and the course's `ops`"),
    (r"\bnp\.sigmoid\b", "NumPy has no sigmoid; the course's is `ops.sigmoid`"),
    (r"\bnp\.softmax\b", "NumPy has no softmax; the course's is `ops.softmax`"),
)


@dataclass(frozen=True)
class Lesson:
    """A lesson by its number, title and question; its modules are imported when they are needed."""

    number: int
    title: str
    question: str  # the one that the notebook opens and closes with
    exercises: tuple[str, ...] = ()  # their names, as in `check.<name>`
    package: str = ""  # where it was found

    @property
    def name(self) -> str:
        return self.package.rpartition(".")[2]

    @property
    def notebook(self) -> str:
        """The name of its file."""
        return f"{self.number:02}_{self.name}.ipynb"

    def part(self, name: str) -> ModuleType:
        """Import one of its modules: "lab", "exercises" or "questions"."""
        return import_module(f"{self.package}.{name}")

    def figures(self) -> "dict[str, Lab]":
        """Return the live figures that the notebook can call, by name."""
        from lesson_utils.classroom.live import Lab

        return {name: thing for name, thing in vars(self.part("lab")).items() if isinstance(thing, Lab)}

    def questions(self) -> tuple[Any, ...]:
        """Return its checkpoint questions (`quiz.Question`)."""
        return tuple(self.part("questions").QUESTIONS)

    def predictions(self) -> tuple[Any, ...]:
        """Return its predictions (`quiz.Prediction`), in the order of the notebook."""
        return tuple(getattr(self.part("questions"), "PREDICTIONS", ()))

    @cache  # noqa: B019 (records live as long as the course does)
    def exercise(self, name: str) -> "Exercise":
        """Return one exercise, with the modules that every notebook's cells have.

        Raises:
            ValueError: the record does not name the exercises that there are.
        """
        found = {exercise.name: exercise for exercise in self.part("exercises").EXERCISES}
        if tuple(found) != self.exercises:
            raise ValueError(
                f"{self.package} names the exercises {', '.join(self.exercises)}; its exercises.py holds "
                f"{', '.join(found)}. Make them the same, in the same order"
            )
        from lesson_utils.maths import attention, ops, positions

        scope = {"ops": ops, "attention": attention, "positions": positions, **found[name].scope}
        return replace(found[name], scope=scope, foreign=FOREIGN)
