"""The lessons: a record for each, found by their folder, `lesson_utils/lessons`. Nothing here knows one of them."""

import pkgutil
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from lesson_utils.classroom import asked
from lesson_utils.classroom.asked import Prediction, Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from lesson_utils.classroom.live import Lab
    from lesson_utils.mistakes.exercise import Exercise
    from lesson_utils.mistakes.verdict import CheckResult

FOLDER = "lesson_utils.lessons"
LESSONS: "tuple[Lesson, ...]"  # by number; found when they are asked for, because each of them imports this module

# Patterns of what belongs to other libraries → what the course has for it.
FOREIGN = (
    (r"\btorch\.|\bF\.\w+|\bnn\.\w+", "this is PyTorch; here everything is NumPy (`np`) and the course's `ops`"),
    (r"\bnp\.sigmoid\b", "NumPy has no sigmoid; the course's is `ops.sigmoid`"),
    (r"\bnp\.softmax\b", "NumPy has no softmax; the course's is `ops.softmax`"),
)


@dataclass(frozen=True)
class Lesson:
    """A lesson by its number, title and question, as its package's `__init__.py` keeps it.

    Its modules are imported when they are needed.
    """

    number: int
    title: str
    question: str  # the one that the notebook opens and closes with
    exercises: tuple[str, ...] = ()  # their names, as in `check.<name>`
    answers: tuple[str, ...] = ()  # names of checks of what is no function, as in `check.<name>` too
    numbered: tuple[str, ...] = ()  # all checks that solve an exercise, where `exercises` are not the only ones
    package: str = ""  # where it was found

    @property
    def name(self) -> str:
        return self.package.rpartition(".")[2]

    @property
    def notebook(self) -> str:
        """The name of its file."""
        return f"{self.number:02}_{self.name}.ipynb"

    @property
    def solved_by(self) -> tuple[str, ...]:
        """The names of the checks that solve its exercises, in their order."""
        return self.numbered or self.exercises

    def part(self, name: str) -> ModuleType:
        """Import one of its modules: "lab", "exercises" or "answers"."""
        return import_module(f"{self.package}.{name}")

    def figures(self) -> "dict[str, Lab]":
        """Return the live figures that the notebook can call, by name."""
        from lesson_utils.classroom.live import Lab

        return {name: thing for name, thing in vars(self.part("lab")).items() if isinstance(thing, Lab)}

    def predictions(self) -> tuple[Prediction, ...]:
        """Return its predictions, in the order of the notebook."""
        return self._asked()[0]

    def questions(self) -> tuple[Question, ...]:
        """Return its checkpoint questions."""
        return self._asked()[1]

    @cache  # noqa: B019 (records live as long as the course does)
    def _asked(self) -> tuple[tuple[Prediction, ...], tuple[Question, ...]]:
        (folder,) = import_module(self.package).__path__
        return asked.read(Path(folder) / "questions.txt")

    def answer(self, name: str) -> "Callable[[Any], CheckResult]":
        """Return the check of an answer that is no function, from the module "answers"."""
        return cast("Callable[[Any], CheckResult]", self.part("answers").ANSWERS[name])

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


@cache
def find() -> tuple[Lesson, ...]:
    """Return all lessons, by number.

    Raises:
        ValueError: two lessons have one number, or an exercise of the same name.
    """
    folder = import_module(FOLDER)
    packages = (module.name for module in pkgutil.iter_modules(folder.__path__) if module.ispkg)
    modules = (import_module(f"{FOLDER}.{name}") for name in packages)
    lessons = sorted((replace(m.LESSON, package=m.__name__) for m in modules), key=lambda lesson: lesson.number)
    seen: dict[str, Lesson] = {}
    for lesson in lessons:
        for name in (f"number {lesson.number}", *lesson.exercises, *lesson.answers):
            if name in seen:
                raise ValueError(f"{seen[name].package} and {lesson.package} both have {name}; choose another for one")
            seen[name] = lesson
    return tuple(lessons)


def __getattr__(name: str) -> Any:
    if name == "LESSONS":
        return find()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def exercises() -> "dict[str, Exercise]":
    """Return every exercise of the course, by name. It imports all of them: for tests."""
    return {name: lesson.exercise(name) for lesson in find() for name in lesson.exercises}


def published_bugs() -> tuple[tuple[tuple[str, ...], str, str], ...]:
    """Return the mistakes that were seen in public: names of one mistake, what came of it, and the address."""
    return tuple(import_module(f"{FOLDER}.published_bugs").PUBLISHED)


def named(name: str) -> Lesson:
    """Return the lesson of this name, such as "scaled_attention".

    Raises:
        ValueError: there is no such lesson.
    """
    for lesson in find():
        if lesson.name == name:
            return lesson
    raise ValueError(f"there is no notebook {name!r}; there are: {', '.join(lesson.name for lesson in find())}")
