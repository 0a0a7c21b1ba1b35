"""Results changed in one way, to see whether a test notices: each function is an `after` of the spy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.mutation_testing.spy import After, key

ULPS = 16  # by so many units in the last place another right spelling may differ


def _each(value: Any, change: Callable[[np.ndarray], np.ndarray], only: Sequence[int] | None = None) -> Any:
    """Return the results with the numbers of each changed, or of those at the places `only`."""

    def changed(place: int, x: Any) -> Any:
        if not isinstance(x, np.ndarray | np.number | float | int) or (only is not None and place not in only):
            return x
        a = np.asarray(x)
        made = np.asarray(change(a)).astype(a.dtype)
        return made if isinstance(x, np.ndarray) else type(x)(made)

    return tuple(changed(*pair) for pair in enumerate(value)) if isinstance(value, tuple) else changed(0, value)


def random_results(only: Sequence[int] | None = None) -> After:
    """Give random results of the right shapes and dtypes; for the same arguments, the same."""

    def after(value: Any, arguments: Sequence[Any]) -> Any:
        rng = np.random.default_rng(key(arguments))

        def change(a: np.ndarray) -> np.ndarray:
            if a.dtype.kind == "b":
                return rng.random(a.shape) < 0.5
            return rng.integers(0, 100, a.shape) if a.dtype.kind in "iu" else rng.normal(size=a.shape)

        return _each(value, change, only)

    return after


def shuffled(value: Any, arguments: Sequence[Any]) -> Any:
    """Give the same numbers in other places."""
    rng = np.random.default_rng(key(arguments))
    return _each(value, lambda a: rng.permutation(a.ravel()).reshape(a.shape))


def off_by(gap: float, result: int) -> After:
    """Add random errors of this size to one result."""

    def after(value: Any, arguments: Sequence[Any]) -> Any:
        rng = np.random.default_rng(key(arguments))
        return _each(value, lambda a: a + gap * rng.uniform(-1, 1, a.shape) if a.dtype.kind == "f" else a, [result])

    return after


def otherwise_rounded(value: Any, arguments: Sequence[Any]) -> Any:
    """Give what another right spelling gives: the same numbers but for the last digits.

    Numbers that were only moved, and those that any spelling gives exactly (0, 1, 0.5), stay.
    """
    arrays = [np.ravel(x) for x in arguments if isinstance(x, np.ndarray | np.number | float | int)]
    before = np.concatenate(arrays) if arrays else np.zeros(0)

    def change(a: np.ndarray) -> np.ndarray:
        if a.dtype.kind != "f":
            return a
        exact = ~np.isfinite(a) | (a * 1024 == np.round(a * 1024)) | np.isin(a, before)
        wave = np.cos(1.0 + np.arange(a.size)).reshape(a.shape)
        return np.where(exact, a, a * (1 + ULPS * np.finfo(a.dtype).eps * wave))

    return _each(value, change)
