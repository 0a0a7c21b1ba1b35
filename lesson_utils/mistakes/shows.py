"""An input shows the bug of a function that is to be mended, or it does not: the broken lines beside the right ones."""

from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import attempt
from lesson_utils.mistakes.verdict import CheckResult


def shows(exercise: Exercise, arguments: tuple[Any, ...]) -> CheckResult:
    """Run the broken function and the right one on an input, and say whether they part.

    Raises:
        ValueError: nothing is broken in this exercise.
    """
    if not exercise.broken:
        raise ValueError(f"{exercise.name} has no bug of its own: `shows` is for functions that are to be mended")
    if not arguments or any(argument is ... for argument in arguments):
        names = ", ".join(exercise.parameters)
        return CheckResult(None, f"Write an input for `{exercise.function_name}({names})`, then run this cell again.")
    if len(arguments) != len(exercise.parameters):
        return CheckResult(False, f"It takes {', '.join(exercise.parameters)}; you gave {len(arguments)}.")
    wanted, got = (attempt(f, arguments, show=False) for f in (exercise.right, exercise.program(exercise.broken)))
    if wanted.error:
        return CheckResult(False, f"The right function can't take this: {type(wanted.error).__name__}: {wanted.error}")
    if not same(got, wanted):
        return CheckResult(True, f"This input shows the bug.{_where(got, wanted)} Which line does that?")
    return CheckResult(False, "On this input the function is right. The bug hides: change a size, or an entry.")


def _where(got: Outcome, wanted: Outcome) -> str:
    """Return how many entries of the first result that parts are wrong, where that can be counted."""
    for ours, right in zip(got.results(), wanted.results(), strict=False):
        x, y = np.asarray(ours), np.asarray(right)
        if x.shape != y.shape:
            return f" What comes back has shape {x.shape}, and should have {y.shape}."
        if x.dtype.kind in "biuf" and not same(Outcome(x), Outcome(y)):
            differ = int((~np.isclose(x.astype(float), y.astype(float), equal_nan=True)).sum())
            return f" {differ} of {x.size} entries are wrong."
    return ""
