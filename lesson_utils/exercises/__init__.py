"""Exercises that mark themselves: `check.softmax(my_softmax)` says what is right, or names the mistake."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from lesson_utils.exercises.checker import CheckResult, Exercise, run

# One module for each notebook.
MODULES = (
    "start_here",
    "bottleneck",
    "scaled_attention",
    "multi_head",
    "positional_encoding",
    "full_block",
    "causal_mask",
)
EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise for name in MODULES for exercise in import_module(f"{__name__}.{name}").EXERCISES
}


class _Check:
    """`check.<exercise>(function)`; tab completion lists the exercises."""

    def __getattr__(self, name: str) -> Callable[[Any], CheckResult]:
        if name not in EXERCISES:
            raise AttributeError(f"no exercise {name!r}; there are: {', '.join(EXERCISES)}")
        return partial(run, EXERCISES[name])

    def __dir__(self) -> list[str]:
        return list(EXERCISES)


check = _Check()
