"""Which exercise's function a test is about: `def my_test(attention): ...` says so with its parameter."""

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any

from lesson_utils.classroom import course
from lesson_utils.mistakes.exercise import Exercise


def names() -> list[str]:
    return [name for lesson in course.LESSONS for name in lesson.exercises]


def _plain(name: str) -> str:
    """Without what a test's name, a stub's name or a parameter's name may have around it."""
    name = name.lower().strip("_")
    name = re.sub(r"^(test|tests|check|my|your|the|a)_", "", name)
    name = re.sub(r"^(my|your|the|a)_", "", name)
    return re.sub(r"_?(test|fn|func|function|under_test)$", "", name).replace("_", "")


def exercise_called(name: str) -> Exercise | None:
    """By its own name, its function's name in the notebook, or the library's name for it."""
    for lesson in course.LESSONS:
        if name in lesson.exercises:
            return lesson.exercise(name)
    plain = _plain(name)
    everything = course.exercises().values()
    if found := next((e for e in everything if plain in (_plain(e.name), _plain(e.function_name))), None):
        return found
    references = [e for e in everything if e.reference is not None and _plain(e.reference.__name__) == plain]
    library = [e for e in everything if plain in {_plain(f.__name__) for f in e.library}]
    return next(iter(references + library), None)


def closest(name: str) -> list[str]:
    return difflib.get_close_matches(name, names(), 3, 0.5)


def parameters(test: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Those that have to be given; None if Python cannot say."""
    try:
        found = inspect.signature(test).parameters.values()
    except (TypeError, ValueError):
        return None
    return [p for p in found if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def takes_one(test: Callable[..., Any]) -> bool:
    """Can it be called with the function under test alone?"""
    try:
        inspect.signature(test).bind(test)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def subject(test: Callable[..., Any], of: Any = None) -> Exercise | str:
    """The exercise, or what is wrong with how it was named."""
    if isinstance(of, Exercise):
        return of
    given = of if isinstance(of, str) else getattr(of, "__name__", None)
    if of is not None and not isinstance(given, str):
        return f'The second argument is the name of the function under test, in quotes, such as `"attention"`; yours is a {type(of).__name__}.'
    if given is not None:
        return exercise_called(given) or _unknown(given)
    try:
        first = next(iter(inspect.signature(test).parameters), "")
    except (TypeError, ValueError):
        first = ""
    for name in (first, getattr(test, "__name__", "")):
        if name and (found := exercise_called(name)):
            return found
    return _unknown(first)


def _unknown(name: str) -> str:
    near = closest(name)
    meant = f" Did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
    return (
        f"No exercise is called `{name}`.{meant} Name the parameter of your test after the function that it tests, as in "
        f'`def my_test(attention):`, or say it: `check.finds_bugs(my_test, "attention")`. There are: {", ".join(names())}.'
    )
