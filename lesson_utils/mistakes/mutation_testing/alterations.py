"""A call's results and arguments, altered in one way: does the test notice, and does the bug show?"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.mutation_testing.spy import key

ULPS = 16  # by so many units in the last place another right spelling may differ
INEXACT = 0.05  # errors, as a share of the largest number


def _each(value: Any, arguments: Sequence[Any], alter: Callable[[np.ndarray, np.random.Generator], Any]) -> Any:
    """Return the result, or each of the results, altered; for the same arguments, alike."""
    rng = np.random.default_rng(key(arguments))

    def altered(x: Any) -> Any:
        if not isinstance(x, np.ndarray | np.number | float | int):
            return x
        a = np.asarray(x)
        made = np.asarray(alter(a, rng)).astype(a.dtype)
        return made if isinstance(x, np.ndarray) else type(x)(made)

    return tuple(map(altered, value)) if isinstance(value, tuple) else altered(value)


def randomised(value: Any, arguments: Sequence[Any]) -> Any:
    """Return random numbers of the results' shapes and dtypes."""
    return _each(
        value,
        arguments,
        lambda a, rng: rng.normal(size=a.shape) > 0 if a.dtype == bool else 9 * rng.normal(size=a.shape),
    )


def shuffled(value: Any, arguments: Sequence[Any]) -> Any:
    """Return each result's numbers in other places."""
    return _each(value, arguments, lambda a, rng: rng.permutation(a.ravel()).reshape(a.shape))


def inexact(value: Any, arguments: Sequence[Any]) -> Any:
    """Return the results with errors; masks and whole numbers change, too."""
    return _each(value, arguments, lambda a, rng: a + INEXACT * abs(a).max(initial=0) * rng.uniform(-1, 1, a.shape))


def otherwise_rounded(value: Any, arguments: Sequence[Any]) -> Any:
    """Return what another right spelling gives: the same numbers but for the last digits.

    Numbers that were only moved, and those that any spelling gives exactly (0, 1, 0.5), stay.
    """
    numbers = [np.ravel(x) for x in arguments if isinstance(x, np.ndarray | np.number | float | int)]
    before = np.concatenate(numbers) if numbers else np.zeros(0)

    def alter(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if a.dtype.kind != "f":
            return a
        exact = ~np.isfinite(a) | (a * 1024 == np.round(a * 1024)) | np.isin(a, before)
        wave = np.cos(1.0 + np.arange(a.size)).reshape(a.shape)
        return np.where(exact, a, a * (1 + ULPS * np.finfo(a.dtype).eps * wave))

    return _each(value, arguments, alter)


def redrawn(arguments: Sequence[Any], rng: np.random.Generator, size: int = 0) -> tuple[Any, ...]:
    """Return arguments with random numbers in their arrays; `size`, if it is given, for the last two axes of each."""
    made = []
    for x in arguments:
        if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
            last = [size if size and not (x.dtype == bool and n == 1) else n for n in x.shape[-2:]]
            x = _random(x, (*x.shape[:-2], *last), rng)
        made.append(x)
    return tuple(made)


def _random(like: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return numbers of the kind that an array holds: a mask, whole numbers, weights, positive numbers, or others."""
    if like.dtype == bool:
        mask = rng.random(shape) < 0.5
        mask[..., :1] |= ~mask.any(axis=-1, keepdims=True)  # each row keeps something
        return mask
    if like.dtype.kind in "iu":
        return rng.integers(0, max(int(like.max(initial=1)), 1) + 1, size=shape).astype(like.dtype)
    numbers = rng.normal(size=shape)
    if like.size and like.min() >= 0:
        numbers = np.abs(numbers)
        if like.ndim and np.allclose(like.sum(axis=-1), 1, atol=1e-3):
            numbers = np.exp(numbers) / np.exp(numbers).sum(axis=-1, keepdims=True)
    return numbers.astype(like.dtype)
