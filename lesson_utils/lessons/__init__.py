"""The lessons: one package for each notebook, which says once what it is. Who walks the course walks `LESSONS`.

A lesson `my_lesson` with number 7 is `notebooks/07_my_lesson.ipynb` and the package `lesson_utils/lessons/my_lesson`:

- `__init__.py`: `LESSON = Lesson(7, "My lesson", "What is its question?", exercises=("my_exercise",))`
- `lab.py`: what the notebook calls `lab.`: live figures, stills, experiments
- `exercises.py`: `EXERCISES`, one `Exercise` for each name in the record
- `questions.py`: `QUESTIONS`, for `quiz.checkpoint("my_lesson")`

All but the record is imported when asked for: a notebook pays for its own lesson only.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from lesson_utils._machine import is_browser

if TYPE_CHECKING:
    from lesson_utils.exercises.form import Exercise
    from lesson_utils.live import Lab
    from lesson_utils.quiz import Question


@dataclass(frozen=True)
class Lesson:
    """What a lesson is; everything else is imported when asked for."""

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
        """One of its modules: "lab", "exercises" or "questions"."""
        return import_module(f"{self.package}.{name}")

    def figures(self) -> "dict[str, Lab]":
        """The live figures, by name."""
        from lesson_utils.live import Lab

        return {name: thing for name, thing in vars(self.part("lab")).items() if isinstance(thing, Lab)}

    def questions(self) -> "tuple[Question, ...]":
        return tuple(self.part("questions").QUESTIONS)

    def exercise(self, name: str) -> "Exercise":
        """One exercise.

        Raises:
            ValueError: the record does not name the exercises that there are.
        """
        found = {exercise.name: exercise for exercise in self.part("exercises").EXERCISES}
        if tuple(found) != self.exercises:
            raise ValueError(
                f"{self.package} names the exercises {', '.join(self.exercises)}; its exercises.py holds "
                f"{', '.join(found)}. Make them the same, in the same order"
            )
        return found[name]


def find() -> tuple[Lesson, ...]:
    """All lessons, by number.

    Raises:
        ValueError: two lessons have one number, or an exercise of the same name.
    """
    modules = (import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    lessons = sorted((replace(m.LESSON, package=m.__name__) for m in modules), key=lambda lesson: lesson.number)
    seen: dict[str, Lesson] = {}
    for lesson in lessons:
        for name in (f"number {lesson.number}", *lesson.exercises):
            if name in seen:
                raise ValueError(f"{seen[name].package} and {lesson.package} both have {name}; choose another for one")
            seen[name] = lesson
    return tuple(lessons)


def exercises() -> "dict[str, Exercise]":
    """Every exercise of the course, by name. It imports all of them: for tests."""
    return {name: lesson.exercise(name) for lesson in LESSONS for name in lesson.exercises}


def as_written(when: bool = True, /, **claims: bool | Callable[[], bool]) -> None:
    """Guard what a notebook's text says: `lab.as_written(STEPS >= 2500, falls_apart=right[16] < 0.1)`.

    Args:
        when: False where a reader has changed what the claims are about, such as the number of training steps. In a
            browser nothing is claimed either: its clock is another.
        claims: each True, or a function that says whether it is, for what can't be computed otherwise.

    Raises:
        AssertionError: claims that do not hold, by name.
    """
    if not when or is_browser():
        return
    wrong = [name for name, claim in claims.items() if not (claim() if callable(claim) else claim)]
    if wrong:
        raise AssertionError(f"what the text says does not hold in this run: {', '.join(wrong)}")


def as_timed(**claims: bool) -> None:
    """What the text says of times: where a clock finds otherwise, a line says so, and nothing stops.

    Clocks are another machine's, and of a busy one anything can be said.
    """
    if wrong := [name for name, claim in claims.items() if not claim]:
        print(f"This machine finds otherwise now: {', '.join(wrong)}. Where nothing else runs, try again.")


LESSONS = find()
