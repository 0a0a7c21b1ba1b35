"""Random arguments for an exercise's function: each array holds the kind of numbers that the exercise's cases have."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise

Arguments = tuple[Any, ...]


def _kind(arrays: Sequence[np.ndarray]) -> str:
    """Return "mask", "whole" numbers, "weights", "positive" or "real" ones; "" for no arrays, or others."""
    kinds = {x.dtype.kind for x in arrays}
    if kinds == {"b"}:
        return "mask"
    if kinds and kinds <= {"i", "u"}:
        return "whole"
    if kinds != {"f"}:
        return ""
    if not all(x.size == 0 or x.min() >= 0 for x in arrays):
        return "real"
    sums = [x.sum(axis=-1) for x in arrays if x.ndim and x.size]
    return "weights" if sums and all(np.allclose(s, 1, atol=1e-3) for s in sums) else "positive"


@cache
def _kinds(exercise: Exercise) -> list[tuple[str, int]]:
    """Return, for each parameter, the kind of its arrays and how many axes they have at least."""
    arrays: list[list[np.ndarray]] = [[] for _ in exercise.parameters]
    for case in exercise.drawn:
        for column, x in zip(arrays, case.arguments, strict=False):
            column += [x] if isinstance(x, np.ndarray) else []
    return [(_kind(column), min((x.ndim for x in column if x.ndim), default=0)) for column in arrays]


def _random(kind: str, like: np.ndarray, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Return numbers of a kind, in the dtype of the array in whose place they come."""
    if kind == "mask":
        mask = rng.random(shape) < 0.5
        mask[..., :1] |= ~mask.any(axis=-1, keepdims=True)  # each row keeps something
        return mask
    if kind == "whole":
        return rng.integers(0, max(int(like.max(initial=1)), 1) + 1, size=shape).astype(like.dtype)
    numbers = rng.normal(size=shape)
    if kind == "positive":
        numbers = np.abs(numbers)
    if kind == "weights":
        numbers = np.exp(numbers) / np.exp(numbers).sum(axis=-1, keepdims=True)
    return numbers.astype(like.dtype if like.dtype.kind == "f" else float)


def redrawn(exercise: Exercise, arguments: Arguments, rng: np.random.Generator, size: int = 0) -> Arguments:
    """Return the arguments with random numbers in their arrays; `size`: in each axis but leading ones, if it is given."""
    made = []
    for x, (kind, axes) in zip(arguments, _kinds(exercise), strict=False):
        if isinstance(x, np.ndarray) and kind:
            shape = [
                size if size and place < axes and not (kind == "mask" and n == 1) else n
                for place, n in zip(reversed(range(x.ndim)), x.shape, strict=True)
            ]
            x = _random(kind, x, shape, rng)
        made.append(x)
    return tuple(made)
