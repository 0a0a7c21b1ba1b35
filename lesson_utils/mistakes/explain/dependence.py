"""Dependence of results: an argument that is ignored, rows that change with rows which they should not see."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.run.sandbox import quick


def listed(words: Sequence[str]) -> str:
    """Return words with commas, and "and" before the last."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def dependence(exercise: Exercise, function: Callable[..., Any], cases: Sequence[Case], are_most: bool) -> str | None:
    """Return which arguments a result ignores in all cases, or which row depends on one that it should not see, or None.

    Unless the cases `are_most`, nothing is said of arguments: in the others, which are right, none is ignored.
    """
    rng = np.random.default_rng(0)
    ignored = _ignored(exercise, function, cases, rng) if are_most else None
    return ignored or _leak(exercise, function, cases[0], rng)


def _ignored(
    exercise: Exercise, function: Callable[..., Any], cases: Sequence[Case], rng: np.random.Generator
) -> str | None:
    ignored: dict[str, list[str]] = {}
    for k, name in enumerate(exercise.parameters[: len(cases[0].arguments)]):
        should_move, moves = set[str](), set[str]()
        complete = True  # of a case with NaN nothing can be said, so nothing is said at all
        for case in (case for case in cases if len(case.arguments) > k):
            x = case.arguments[k]
            found = [list(_moved(exercise, function, case, k, new)) for new in _exchanged(x, rng)]
            complete = complete and all(found)
            if found and np.asarray(x).dtype.kind == "f":  # a small change may be cut off; what overflows says nothing
                found.append(list(_moved(exercise, function, case, k, 20 * x)))
            should_move |= {result for result, should, _ in chain(*found) if should.any()}
            moves |= {result for result, _, does in chain(*found) if does.any()}
        for result in exercise.returns:
            if complete and result in should_move - moves - {name}:
                ignored.setdefault(result, []).append(f"`{name}`")
    for result, names in ignored.items():
        them = "them" if len(names) > 1 else "it"
        return f"`{result}` does not depend on {listed(names)}: change {them}, and `{result}` stays the same."
    return None


def _exchanged(x: Any, rng: np.random.Generator) -> list[Any]:
    """Return other values of the same kind, of several sorts, as one alone may change nothing; none for what can't be exchanged."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size:
        return [x + np.asarray(rng.normal(size=x.shape), x.dtype), x[..., ::-1]]
    if isinstance(x, np.ndarray) and x.dtype == bool and not x.all():
        return [np.ones_like(x), x[..., ::-1], np.zeros_like(x), *(rng.random((4, *x.shape)) < 0.3)]
    return [1.5 * x] if type(x) is float else []


def _leak(exercise: Exercise, function: Callable[..., Any], case: Case, rng: np.random.Generator) -> str | None:
    for k, (name, x) in enumerate(zip(exercise.parameters, case.arguments, strict=False)):
        if not isinstance(x, np.ndarray) or x.dtype.kind != "f" or x.ndim < 2:
            continue
        for axis in (-2, 0)[: x.ndim - 1]:  # of a matrix, both are the same
            # Several other numbers in the last row: it may hold a largest or smallest number, or not.
            tried = [[*_moved(exercise, function, case, k, new)] for new in _with_other_last(x, axis, rng)]
            for several in zip(*tried, strict=False):
                if len({moved.shape for _, *both in several for moved in both}) > 1:
                    continue
                result, (should, does) = several[0][0], (np.any([m[i] for m in several], axis=0) for i in (1, 2))
                if should.ndim < 2 or should.shape[axis] != x.shape[axis]:
                    continue  # rows of a matrix, say, that are no rows of the result
                rows = [np.moveaxis(m, axis, 0).reshape(m.shape[axis], -1).any(axis=1) for m in (should, does)]
                leaking = np.flatnonzero(rows[1] & ~rows[0])
                for row in leaking[leaking < x.shape[axis] - 1]:  # the last one may depend on itself
                    mine, other = _part(result, int(row), axis, should.ndim), _part(name, -1, axis, x.ndim)
                    return f"`{mine}` changes when only `{other}` changes. It should not depend on it."
    return None


def _with_other_last(x: np.ndarray, axis: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield an array with other numbers in its last part along an axis: near, and far above and below."""
    for by in (1, 20, -20):
        new = x.copy()
        last = np.moveaxis(new, axis, 0)[-1]
        last += by + rng.normal(size=last.shape)
        yield new


def _part(name: str, i: int, axis: int, axes: int) -> str:
    """Return the index of a part along the first axis or the last but one, as Python writes it: `y[..., 0, :]`."""
    return f"{name}[{i}]" if axis == 0 or axes == 2 else f"{name}[..., {i}, :]"


def _moved(
    exercise: Exercise, function: Callable[..., Any], case: Case, k: int, new: Any
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each result's name, which entries should move when argument k is exchanged, and which do."""
    changed = [*case.arguments[:k], new, *case.arguments[k + 1 :]]
    outcomes = [quick(f, a) for f in (exercise.right, function) for a in (case.arguments, changed)]
    if any(o.error for o in outcomes):
        return
    right, right_changed, mine, mine_changed = (o.value if isinstance(o.value, tuple) else (o.value,) for o in outcomes)
    try:
        if any(np.isnan(result).any() for result in (*mine, *mine_changed)):  # what overflowed depends on nothing more
            return
        moved = [_differ(right, right_changed), _differ(mine, mine_changed)]
    except (TypeError, ValueError):
        return
    yield from zip(exercise.returns, *moved, strict=False)


def _differ(before: Sequence[Any], after: Sequence[Any]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [~np.isclose(a, b, rtol=1e-5, atol=1e-9, equal_nan=True) for a, b in zip(before, after, strict=True)]
