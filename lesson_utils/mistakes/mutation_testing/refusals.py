"""Tests that don't get as far as the bugs: no tests at all, and those that a right function does not pass."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.mutation_testing.mutants import Bug
from lesson_utils.mistakes.mutation_testing.spy import Run, key, otherwise_rounded

SLOW = 1.5  # seconds of computing for one run of a test; dozens have to be waited for
AGAIN = 12  # runs of a test that draws other numbers each time, to see whether it fails on the right function

Trial = Callable[..., Run]  # runs the test on a function


def no_test(test: Any) -> str:
    """Say why something is no test; "" if it is one."""
    if isinstance(test, type):
        return "This is a class. Write a plain function: `def my_test(attention):`, with `assert` in it."
    if isinstance(test, np.bool_) or not callable(test):
        return f"This is a value ({type(test).__name__}), not a test: hand over the function without calling it, `check.finds_bugs(my_test)`."
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


def cannot_be_used(test: Any, trial: Trial, exercise: Exercise, first: Run, bugs: Sequence[Bug]) -> str:
    """Say why a test does not pass the right function, or cannot be run on bugs; "" if it can."""
    if first.outcome.timed_out:
        return f"Your test had not come to an end after some seconds, on the right function{first.outcome.where}. Are the inputs very large, or does a loop never end?"
    if not first.passed:
        return f"Your test fails on the right `{exercise.name}`{_failure(first)} {_hint(trial, exercise, first, bugs)}".strip()
    if not first.calls:
        parameter = next(iter(inspect.signature(test).parameters), "the function")
        return f"Your test never calls the function that it is given, `{parameter}`, so it finds no bug. Call `{parameter}(…)`, and assert what must hold."
    if first.mended:
        names = ", ".join(f"`{name}`" for name in first.mended)
        return f"Your test puts something else in the place of {names}, and so changes the function under test with it. Leave the library as it is. (What belongs there is back.)"
    if first.seconds > SLOW:
        return f"Your test takes {first.seconds:.1f} seconds on the right function, and the check runs it dozens of times. Bugs show on arrays of a few numbers: make the inputs smaller."
    return ""


def _failure(run: Run) -> str:
    """Say where a test failed, and the first words of the error."""
    error = run.outcome.error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = "; ".join([x for x in lines if re.match(r"Mismatched|Max abs|x and y|\(shapes", x)] or lines[:2])[:200]
    if isinstance(error, SystemExit):
        said = "it leaves Python (`exit`)"
    elif not isinstance(error, AssertionError):
        said = f"{type(error).__name__}: {said}".removesuffix(": ")
    return f"{run.outcome.where} ({said})." if said else f"{run.outcome.where}."


def _hint(trial: Trial, exercise: Exercise, first: Run, bugs: Sequence[Bug]) -> str:
    """Say what may be wrong in a test that the right function does not pass."""
    error, line, names = first.outcome.error, first.outcome.line, ", ".join(exercise.returns)
    value = first.calls[-1].value if first.calls else None
    arrays = [x for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, np.ndarray)]
    if len(exercise.returns) > 1 and "tuple" in str(error):
        return f"The function returns {len(exercise.returns)} things: `{names} = {exercise.name}(...)`."
    if re.match(r"assert (np|numpy)\.testing\.", line):
        return "`np.testing` asserts by itself, and returns None. Leave out the `assert` in front of it."
    if isinstance(error, AssertionError):
        if re.search(r"==|array_equal", line) and any(x.dtype.kind == "f" for x in arrays):
            return "Numbers that are computed differ in the last digits. Compare them with `np.allclose(a, b)`."
        if bug := next((bug for bug in bugs if trial(bug.function).passed), None):
            return f"\nBut it passes with this bug. {bug.in_words}. Is that what it expects?"
    return f"\nThe last call gave {names} of the shapes {', '.join(str(x.shape) for x in arrays)}." if arrays else ""


def draws(trial: Trial, exercise: Exercise, first: Run) -> bool:
    """Say whether a test calls the function with other numbers each time that it runs."""
    again = trial(exercise.right, seed=1)
    before, now = ([key(call.arguments) for call in run.calls] for run in (first, again))
    return before[: len(now)] != now[: len(before)] or (again.passed and len(now) != len(before))


def fails_later(trial: Trial, exercise: Exercise, random: bool) -> str:
    """Say that the right function, which has passed, does not pass again; "" if it does."""
    failed = [run for n in range(AGAIN if random else 1) if not (run := trial(exercise.right, seed=n)).passed]
    if failed and random:
        return f"Your test calls the function with other numbers each time that it runs, and fails on the right one in {len(failed)} of {AGAIN} runs. A test that fails at times is soon ignored. Give it a seed, `rng = np.random.default_rng(0)`, and ask only what must hold."
    if failed:
        return f"Your test does not tell right from wrong: the right `{exercise.name}` passes at first, and fails later{_failure(failed[0])} A test must not count its runs, or keep anything else from one run to the next."
    return ""


def asks_too_much(trial: Trial, exercise: Exercise) -> str:
    """Say why another right function does not pass: our solution, another spelling of it, or other rounding."""
    ways = [{}, *({step: text} for step, texts in exercise.spellings.items() for text in texts)]
    for way in ways:
        other = trial(exercise.program(way))
        if not other.passed and any(isinstance(x, list | tuple) for call in other.calls for x in call.arguments):
            return f"Your test passes lists to `{exercise.name}`; the task promises arrays only, and another right solution fails{_failure(other)} Write `np.array(...)` around them."
        if not other.passed:
            return f"Your test passes the library's `{exercise.name}`, but not our solution, which is right, too. It fails{_failure(other)} It asks for something that the task does not promise, such as a certain error, or a certain dtype. Ask only what the exercise's text says."
    other = trial(exercise.right, otherwise_rounded)
    if not other.passed:
        return f"Your test passes the right `{exercise.name}`, but not one that is as right and rounds otherwise. It fails{_failure(other)} With another order of the sums, or `einsum`, the last digits are others. Compare with `np.allclose(a, b)`, which allows for that."
    return ""
