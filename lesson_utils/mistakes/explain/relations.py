"""Relations of two arrays: a factor, a sign, an order, places; what rows of weights have and others have not."""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case
from lesson_utils.mistakes.run.outcome import close

Pair = tuple[np.ndarray, np.ndarray]  # what came back, what was expected
Relation = Callable[[Sequence[Pair], Sequence[Case], Sequence[str]], str | None]


def listed(words: Sequence[str]) -> str:
    """Return words with commas, and "and" before the last."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def digits(x: Any, other: Any) -> str:
    """Return `x` with as many digits as it takes to see that it is not `other`, but at least four."""
    if isinstance(x, bool | np.bool_):
        return str(bool(x))
    x, other = float(x), float(other)
    return next((f"{x:.{n}g}" for n in range(4, 17) if f"{x:.{n}g}" != f"{other:.{n}g}"), repr(x))


def _ratio(x: float) -> str:
    """Return a ratio in words: "3/4 of", "2 times", "1.273 times"."""
    simple = Fraction(x).limit_denominator(24)
    if 0 < simple < 1 and math.isclose(simple, x, rel_tol=1e-5):
        return f"{simple} of"
    return f"{x:.{6 if abs(x - 1) < 0.0005 else 4}g} times"  # never "1 times"


def relation(pairs: Mapping[int, Pair], cases: Sequence[Case], names: Sequence[str]) -> str | None:
    """Return one simple thing that holds for all wrong results of a name, which stand by their cases' numbers, or None."""
    some, their_cases = list(pairs.values()), [cases[i] for i in pairs]
    if all(w.dtype.kind == "b" for _, w in some):
        return "True and False have changed places" if all(close(1.0 - g, w * 1.0) for g, w in some) else None
    with np.errstate(all="ignore"):
        return next((words for find in RELATIONS if (words := find(some, their_cases, names))), None)


def _always(words: str, test: Callable[[np.ndarray, np.ndarray], bool]) -> Relation:
    """Return a relation that holds if `test` is true of each pair; it is not of arrays with too few axes for it."""

    def find(pairs: Sequence[Pair], cases: Sequence[Case], names: Sequence[str]) -> str | None:
        try:
            return words if all(test(g, w) for g, w in pairs) else None
        except (ValueError, IndexError, FloatingPointError):
            return None

    return find


def _argument(pairs: Sequence[Pair], cases: Sequence[Case], names: Sequence[str]) -> str | None:
    for k, name in enumerate(names):
        rows = [(case.arguments[k], g) for case, (g, _) in zip(cases, pairs, strict=True)]
        if all(isinstance(x, np.ndarray) and x.shape == g.shape and close(g, x) for x, g in rows):
            return f"it is the argument `{name}`, unchanged"
    return None


def _factor(pairs: Sequence[Pair], cases: Sequence[Case], names: Sequence[str]) -> str | None:
    factors = [_factor_of_one(g, w) for g, w in pairs]
    if not all(factors) or (len(pairs) < 2 and not pairs[0][1].ndim):  # a number is some multiple of any other
        return None
    if np.allclose(factors, factors[0], rtol=1e-4):
        return f"it is {_ratio(factors[0])} what it should be, in every {'entry' if pairs[0][1].ndim else 'case'}"
    if not any(w.ndim for _, w in pairs):  # as is each of several numbers, if the multiples differ
        return None
    return f"it is {factors[0]:.4g} times what it should be on {cases[0].label}, and in other cases another multiple"


def _factor_of_one(g: np.ndarray, w: np.ndarray) -> float:
    """Return the number that all entries are the right ones times; 0 if there is none."""
    usable = np.isfinite(g) & np.isfinite(w) & (np.abs(w) > 1e-9)
    r = g[usable] / w[usable]
    if not r.size or not np.allclose(r, r[0], rtol=1e-4) or not np.allclose(g[~usable], w[~usable], atol=1e-9):
        return 0.0
    return float(r[0])


def _other_order(pairs: Sequence[Pair], cases: Sequence[Case], names: Sequence[str]) -> str | None:
    if all(g.size > 2 and g.shape == w.shape and close(np.sort(g, axis=None), np.sort(w, axis=None)) for g, w in pairs):
        return origins(*pairs[0]) or "the entries are the right ones, in other places"
    return None


RELATIONS: tuple[Relation, ...] = (
    _always("all of it is 0", lambda g, w: not g.any()),
    _always("all of it is NaN (not a number)", lambda g, w: bool(np.isnan(g).all())),
    _always("the sign is turned around everywhere", lambda g, w: close(-g, w)),
    _argument,
    _factor,
    _other_order,
)


def places(g: np.ndarray, w: np.ndarray) -> str:
    """Return which rows, columns or entries are wrong; "" if that is no simple place."""
    with np.errstate(all="ignore"):
        good = np.isclose(g.astype(float), w.astype(float), rtol=1e-4, atol=1e-6, equal_nan=True)
        off = np.abs(g.astype(float) - w.astype(float))
    off = np.where(np.isnan(off), np.where(good, 0, np.inf), off)  # −∞ less −∞ is NaN, too
    if good.all() or not good.any() or off[good].max() >= off[~good].max():
        return ""
    named = {-2: "Row", -1: "Column"}
    for axis in (*named, *range(good.ndim - 2)) if good.ndim > 1 else (0,):
        clean = np.moveaxis(good, axis, 0).reshape(good.shape[axis], -1).all(axis=1)
        if clean.any() and not clean.all():
            wrong = np.flatnonzero(~clean)
            which, many = _numbers(wrong), len(wrong) > 1
            if axis in named:
                they = f"{named[axis]}{'s' * many} {which} {'are' if many else 'is'}"
            else:
                they = f"{'The entries' if good.ndim == 1 else f'Along axis {axis}, the parts'} with index {which} are"
            return f"{they} wrong, the others right."
    if good.shape[-1] == good.shape[-2]:
        eye = np.broadcast_to(np.eye(good.shape[-1], dtype=bool), good.shape)
        if good[eye].all():
            return "The diagonal is right, the rest is not all right."
        if good[~eye].all():
            return "Only the diagonal is wrong."
    return ""


def _numbers(indices: Sequence[int] | np.ndarray) -> str:
    """Return numbers in words: "1, 2 and 5", or "1, 2, 4 to 6 and 8 to 13"; of many, the first ones."""
    said: list[str] = []
    for run in np.split(indices, np.flatnonzero(np.diff(indices) > 1) + 1):
        said += [f"{run[0]} to {run[-1]}"] if len(run) > 2 and len(indices) > 4 else map(str, run)
    return listed(said) if len(said) <= 6 else f"{', '.join(said[:6])} …"


def _are_weights(x: np.ndarray) -> bool:
    return bool((x >= 0).all()) and np.allclose(x.sum(axis=-1), 1, atol=1e-4)


def origins(got: np.ndarray, want: np.ndarray) -> str:
    """Return where each row or column, or part along another axis, stands in the right result, if all of them do."""
    if got.ndim != want.ndim or not want.ndim or got.dtype.kind != want.dtype.kind:
        return ""
    for axis in range(-1, -got.ndim - 1, -1):
        mine, right = (np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1) for x in (got, want))
        if mine.shape[1] != right.shape[1] or len(right) < 3:
            continue
        found, order = [np.flatnonzero([close(m, r) for r in right]) for m in mine], list(range(len(right)))
        places = [int(f[0]) for f in found if len(f) == 1]
        if len(places) < len(found) or len({*places}) < 2 or places == order:
            continue
        kind = "entries" if got.ndim == 1 else {-1: "columns", -2: "rows"}.get(axis, "parts")
        along = f" along axis {axis}" if kind == "parts" else ""
        if sorted(places) == order:
            return f"its {kind}{along} are those of the right result, in another order: {_runs(places)}"
        gone = [n for n in order if n not in places]
        if got.ndim > 1 and len(gone) > 2:  # a puzzle
            return ""
        one, many = "entry" if kind == "entries" else kind[:-1], len(gone) > 1
        said = [f"it holds the {kind} {_runs(places)} of the right result{along}"]
        twice = [n for n in dict.fromkeys(places) if places.count(n) > 1]
        said += [f"{one.capitalize()} {n} comes more than once" for n in twice[:2]]
        if gone:
            said.append(f"{(kind if many else one).capitalize()} {_numbers(gone)} {'are' if many else 'is'} missing")
        return ". ".join(said)
    return ""


def _runs(numbers: Sequence[int]) -> str:
    """Return numbers with commas, "4, 5, 2, 3, 0, 1"; long rows end in dots."""
    return ", ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")


def weights_problem(name: str, got: np.ndarray, want: np.ndarray, hides: bool) -> str | None:
    """Return what is wrong with rows of weights: their sum, or a leak.

    Args:
        hides: is there a mask? Without one, a weight of 0 has underflowed.
    """
    if want.ndim == 0 or want.dtype.kind != "f":
        return None
    if not _are_weights(want) or not np.isfinite(got).all():
        return None
    sums = got.sum(axis=-1)
    if not np.allclose(sums, 1, atol=1e-4):
        low, high = digits(sums.min(), 1), digits(sums.max(), 1)
        return f"Each row of `{name}` should sum to 1; yours {f'sums to {low}' if low == high else f'sum to between {low} and {high}'}."
    if hides and want.ndim > 1 and ((want == 0) & (got > 1e-9)).any():
        return f"What is hidden still has weight in `{name}`."
    return None
