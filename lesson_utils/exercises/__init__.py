"""Exercises that mark themselves: `check.softmax(my_softmax)` says what is right, or names the mistake."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lesson_utils.exercises import scaled_attention, start_here
from lesson_utils.exercises.checker import CheckResult, Exercise, run

EXERCISES: dict[str, Exercise] = {e.name: e for module in (start_here, scaled_attention) for e in module.EXERCISES}


class _Check:
    """`check.<exercise>(function)`; tab completion lists the exercises."""

    def __getattr__(self, name: str) -> Callable[[Any], CheckResult]:
        if name not in EXERCISES:
            raise AttributeError(f"no exercise {name!r}; there are: {', '.join(EXERCISES)}")
        return partial(run, EXERCISES[name])

    def __dir__(self) -> list[str]:
        return list(EXERCISES)


check = _Check()
