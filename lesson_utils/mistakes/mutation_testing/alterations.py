"""A call's results and arguments, altered in one way: does the test notice, and does the bug show?"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.mutation_testing.spy import After, key

ULPS = 16  # by so many units in the last place another right spelling may differ
NUMBERS = np.ndarray | np.number | float | int


def altered(alter: Callable[[np.ndarray, np.random.Generator], Any]) -> After:
    """Return an `after` for the spy that alters each result; for the same arguments, alike."""

    def after(value: Any, arguments: Sequence[Any]) -> Any:
        rng, several = np.random.default_rng(key(arguments)), value if isinstance(value, tuple) else (value,)
        made = [np.asarray(alter(np.asarray(x), rng)).astype(np.asarray(x).dtype) for x in several]
        made = [a if isinstance(x, np.ndarray) else type(x)(a) for a, x in zip(made, several, strict=True)]
        return tuple(made) if isinstance(value, tuple) else made[0]

    return after


randomised = altered(lambda a, rng: rng.normal(size=a.shape) > 0 if a.dtype == bool else 9 * rng.normal(size=a.shape))
inexact = altered(lambda a, rng: a + 0.05 * np.abs(a).max(initial=0) * rng.uniform(-1, 1, a.shape))
shuffled = altered(lambda a, rng: rng.permutation(a.ravel()).reshape(a.shape))
ruined = altered(lambda a, rng: ~a if a.dtype == bool else np.nan * a)
emptied = altered(lambda a, rng: a.ravel()[:0])


def otherwise_rounded(value: Any, arguments: Sequence[Any]) -> Any:
    """Return what another right spelling gives: the same numbers but for the last digits.

    Numbers that were only moved, and those that any spelling gives exactly (0, 1, 0.5), stay.
    """
    before = np.concatenate([np.zeros(0), *(np.ravel(x) for x in arguments if isinstance(x, NUMBERS))])

    def round_otherwise(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if a.dtype.kind != "f":
            return a
        exact = ~np.isfinite(a) | (a * 1024 == np.round(a * 1024)) | np.isin(a, before)
        wave = np.cos(1.0 + np.arange(a.size)).reshape(a.shape)
        return np.where(exact, a, a * (1 + ULPS * np.finfo(a.dtype).eps * wave))

    return altered(round_otherwise)(value, arguments)


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
