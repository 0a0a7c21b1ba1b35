"""Formulas of answers that get functions as their parts, found by watching what they do with them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick

Terms = list[tuple[str, np.ndarray]]  # arrays that are accounted for, and how they came about


def _sum_of(value: Any, known: Terms) -> str | None:
    """Return `x + attend(norm_1(x))`, if the value is a sum of known arrays, with small coefficients."""
    fitting = [(text, array) for text, array in known if np.shape(value) == array.shape]
    for text, array in reversed(fitting):
        if np.allclose(value, array):
            return text
    if not fitting:
        return None
    basis = np.stack([array.ravel() for _, array in fitting], axis=1)
    factors = np.linalg.lstsq(basis, np.ravel(value), rcond=None)[0]
    rounded = np.round(2 * factors) / 2
    if not np.allclose(basis @ rounded, np.ravel(value), rtol=1e-6, atol=1e-6):
        return None
    said = ""
    for (text, _), factor in zip(fitting, rounded, strict=True):
        if factor:
            sign = " − " if factor < 0 else " + " if said else ""
            said += f"{sign}{'' if abs(factor) == 1 else f'{abs(factor):g}·'}{text}"
    return said.strip() or "0"


def _written(exercise: Exercise, function: Callable[..., Any], case: Case) -> str | None:
    """Return the formula of what `function` makes of its parts."""
    given = list(zip(exercise.parameters, case.arguments, strict=False))
    known: Terms = [(name, argument.copy()) for name, argument in given if isinstance(argument, np.ndarray)]

    def watched(name: str, part: Callable[..., Any]) -> Callable[..., Any]:
        def call(value: Any, *more: Any) -> Any:
            text = f"{name}({_sum_of(value, known) or '…'})"
            result = part(value, *more)
            if not any(text == said and np.allclose(result, array) for said, array in known):  # called twice, said once
                known.append((text, np.array(result)))
            return result

        return call

    value = quick(function, [watched(name, x) if callable(x) else x for name, x in given]).value
    return _sum_of(value, known) if isinstance(value, np.ndarray) else None


def formulas(
    exercise: Exercise,
    function: Callable[..., Any],
    cases: Sequence[Case],
    outcomes: Sequence[Outcome],
    wanted: Sequence[Outcome],
) -> str:
    """Return the learner's formula and ours for exercises whose arguments are functions; else ""."""
    case = next((c for c, o, w in zip(cases, outcomes, wanted, strict=True) if not o.error and not same(o, w)), None)
    if case is None or not any(callable(argument) for argument in case.arguments):
        return ""
    yours, ours = _written(exercise, function, case), _written(exercise, exercise.right, case)
    if not yours or not ours or yours == ours:
        return ""
    result = exercise.returns[0]
    return f"\nYours: `{result} = {yours}`. Asked for: `{result} = {ours}`."
