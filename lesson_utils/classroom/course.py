"""The lessons of the course, found by their folder, `lesson_utils/lessons`: nothing here knows one of them."""

import pkgutil
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from lesson_utils.classroom.lesson import Lesson

if TYPE_CHECKING:
    from lesson_utils.mistakes.exercise import Exercise

FOLDER = "lesson_utils.lessons"


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
        for name in (f"number {lesson.number}", *lesson.exercises):
            if name in seen:
                raise ValueError(f"{seen[name].package} and {lesson.package} both have {name}; choose another for one")
            seen[name] = lesson
    return tuple(lessons)


def exercises() -> "dict[str, Exercise]":
    """Return every exercise of the course, by name. It imports all of them: for tests."""
    return {name: lesson.exercise(name) for lesson in LESSONS for name in lesson.exercises}


def published_bugs() -> tuple[tuple[tuple[str, ...], str, str], ...]:
    """Return the mistakes that were seen in public: names of one mistake, what came of it, and the address."""
    return tuple(import_module(f"{FOLDER}.published_bugs").PUBLISHED)


def named(name: str) -> Lesson:
    """Return the lesson of this name, such as "scaled_attention".

    Raises:
        ValueError: there is no such lesson.
    """
    for lesson in LESSONS:
        if lesson.name == name:
            return lesson
    raise ValueError(f"there is no notebook {name!r}; there are: {', '.join(lesson.name for lesson in LESSONS)}")


LESSONS = find()
