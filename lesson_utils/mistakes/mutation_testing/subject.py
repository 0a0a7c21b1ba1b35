"""The subject of a test, which its parameter names: `def my_test(attention): ...`; and what is no test at all."""

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lesson_utils.mistakes.exercise import Exercise


def no_test(test: Any) -> str:
    """Say why something is no test; "" if it is one."""
    if isinstance(test, type) or not callable(test):
        what = "a class" if isinstance(test, type) else f"a value ({type(test).__name__})"
        return f"This is {what}, not a test. Write a plain function, `def my_test(attention):`, and hand it over without calling it, `check.finds_bugs(my_test)`."
    if inspect.iscoroutinefunction(test) or inspect.isasyncgenfunction(test):
        return "`async def` makes a function that has to be awaited. Leave out `async`."
    if inspect.isgeneratorfunction(test):
        return "`yield` makes a generator of your test: nothing in it runs. Leave out `yield`."
    try:
        inspect.signature(test).bind(test)
    except TypeError:
        return f"Your test is given one thing, the function under test: `def my_test(attention):`. Yours takes `{inspect.signature(test)}`. Everything else that it needs, it makes itself."
    except ValueError:  # Python cannot say
        pass
    return ""


def _plain(name: str) -> str:
    """Return a name without what a test's name, a stub's name or a parameter's name may have around it."""
    name = re.sub(r"^((test|tests|check)_)?((my|your|the|a)_)?", "", name.lower().strip("_"))
    return re.sub(r"_?(test|fn|func|function|under_test)$", "", name).replace("_", "")


def _named(name: str, exercises: Mapping[str, Exercise]) -> Exercise | None:
    """Find an exercise by its own name, its function's name in the notebook, or the library's name for it."""
    if not name or name in exercises:
        return exercises.get(name)
    everything = list(exercises.values())
    names = [
        *((e, {e.name, e.function_name}) for e in everything),
        *((e, {e.reference.__name__}) for e in everything if e.reference),
        *((e, {f.__name__ for f in e.library if not isinstance(f, partial)}) for e in everything),
    ]
    return next((e for e, called in names if _plain(name) in map(_plain, called)), None)


def subject(test: Callable[..., Any], of: Any, exercises: Mapping[str, Exercise]) -> Exercise | str:
    """Return the exercise that `of` names, or else the test's parameter; or say that there is none of this name."""
    names = [of if isinstance(of, str) else getattr(of, "__name__", "")]
    if of is not None and not names[0]:
        return f'The second argument is the name of the function under test, in quotes, such as `"attention"`; yours is a {type(of).__name__}.'
    if of is None:
        try:
            names = [*inspect.signature(test).parameters][:1]
        except (TypeError, ValueError):  # Python cannot say
            names = []
        names.append(getattr(test, "__name__", ""))
    if found := next((e for name in names if (e := _named(name, exercises))), None):
        return found
    near = difflib.get_close_matches(names[0], exercises, 3, 0.5)
    meant = f" Did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
    return f'No exercise is called `{names[0]}`.{meant} Name the parameter of your test after the function that it tests, as in `def my_test(attention):`, or name it: `check.finds_bugs(my_test, "attention")`. There are: {", ".join(exercises)}.'
