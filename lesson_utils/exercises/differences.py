"""Says how results that match no known mistake differ from the right ones: where, in which way, and what they depend on."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.exercises.bank import Bank
from lesson_utils.exercises.dependence import dependence, listed
from lesson_utils.exercises.form import Case, Exercise
from lesson_utils.exercises.trial import Outcome, TimeUp, close, plain, quiet, same, stopped


def parts(exercise: Exercise, value: Any) -> tuple[Any, ...] | None:
    """What came back, by result; None if the number of results is wrong."""
    if len(exercise.returns) == 1:
        return (value,)
    return tuple(value) if isinstance(value, tuple | list) and len(value) == len(exercise.returns) else None


def digits(x: Any, other: Any) -> str:
    """`x` with as many digits as it takes to tell it from `other`, but at least four."""
    if isinstance(x, bool | np.bool_):
        return str(bool(x))
    x, other = float(x), float(other)
    return next((f"{x:.{n}g}" for n in range(4, 17) if f"{x:.{n}g}" != f"{other:.{n}g}"), repr(x))


def kind_problem(exercise: Exercise, outcome: Outcome, wanted: Outcome) -> str | None:
    """What is wrong before any number is: nothing returned, too few results, no arrays, other shapes."""
    value = outcome.value
    if value is None:
        return "Your function returned None. Is a `return` missing at its end?"
    kinds = {
        "generator": "`yield` makes a generator of a function: use `return`.",
        "coroutine": "`async def` makes something to be awaited: leave out `async`.",
    }
    if (kind := type(value).__name__) in kinds:
        return kinds[kind]
    results = parts(exercise, value)
    expected = f"`return {', '.join(exercise.returns)}`"
    if results is None:
        several = len(value) if isinstance(value, tuple | list) else 1
        return f"Your function should return {len(exercise.returns)} things, {expected}; it returned {several}."
    wants = parts(exercise, wanted.value)
    assert wants is not None
    problems = [
        (n, p)
        for n, got, want in zip(exercise.returns, results, wants, strict=True)
        if (p := _kind_of_one(n, got, want))
    ]
    if not problems:
        return None
    fine = [f"`{name}`" for name in exercise.returns if name not in dict(problems)]
    return " ".join(problem for _, problem in problems) + (f" The shape of {listed(fine)} is right." if fine else "")


def _kind_of_one(name: str, got: Any, want: Any) -> str | None:
    wanted_array = np.ndim(want) > 0
    if isinstance(got, tuple | list):
        try:
            right = np.shape(got) == np.shape(want) and close(np.asarray(got, float), np.asarray(want, float))
        except (TypeError, ValueError):
            right = False
        also = " Its numbers are right: put `np.array(...)` around it." if right else ""
        return f"`{name}` is a {type(got).__name__}; expected a {'NumPy array' if wanted_array else 'number'}.{also}"
    got = plain(got)
    if isinstance(got, type):
        return f"`{name}` is a class; expected {'a NumPy array' if wanted_array else 'a number'}."
    if not isinstance(got, np.ndarray | np.generic | float | int):
        return f"`{name}` is a {type(got).__name__}; expected a {'NumPy array' if wanted_array else 'number'}."
    if isinstance(got, np.ma.MaskedArray) and np.ma.is_masked(got):
        return f"`{name}` is a masked array, and some entries have no value. Give them one: `.filled(0)`."
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind not in "biuf":
        why = ": its entries are Python objects, not numbers" if got.dtype.kind == "O" else ""
        return f"`{name}` has dtype {got.dtype}{why}; expected real numbers."
    if got.shape == want.shape:
        return None
    shape = f"has shape {got.shape}" if got.ndim else "is a single number"
    return f"`{name}` {shape}; expected {want.shape if want.ndim else 'a single number'}.{_shape_hint(got.shape, want.shape)}"


def _shape_hint(got: tuple[int, ...], want: tuple[int, ...]) -> str:
    if got == want[::-1] and len(want) == 2:
        return " It lies on its side: rows and columns have changed places."
    if len(got) > len(want) and [n for n in got if n != 1] == [n for n in want if n != 1]:
        return " It has an axis of length 1 too many."
    if sorted(got) == sorted(want):
        return " The lengths are right, their order is not."
    if len(got) > len(want) and _inside(want, got):
        return " An axis is left that should have been summed over, joined or indexed away."
    if len(got) < len(want) and _inside(got, want):
        return " An axis is lost: is something summed over too many axes, or returned too early?"
    if len(got) == len(want):
        off = [(i, g, w) for i, (g, w) in enumerate(zip(got, want, strict=True)) if g != w]
        if len(off) == 1 and abs(off[0][1] - off[0][2]) == 1:
            return f" Axis {off[0][0]} is one too {'long' if off[0][1] > off[0][2] else 'short'}."
    return ""


def _inside(short: tuple[int, ...], long: tuple[int, ...]) -> bool:
    rest = iter(long)
    return all(n in rest for n in short)


# --- Numbers --------------------------------------------------------------------------------------------------------

Pair = tuple[np.ndarray, np.ndarray]


def _named_factor(case: Case, factor: float) -> str:
    """8, as √d_k is 8: the size of an argument that the factor is."""
    for n, argument in enumerate(case.arguments):
        for axis, size in enumerate(np.shape(argument) if isinstance(argument, np.ndarray) else ()):
            for value, text in ((size, "{}"), (size**0.5, "√{}"), (1 / size, "1/{}"), (size**-0.5, "1/√{}")):
                if size > 1 and np.isclose(factor, value, rtol=1e-4):
                    return text.format(f"(axis {axis - np.ndim(argument)} of argument {n})")
    return ""


def relation(pairs: Sequence[Pair], cases: Sequence[Case], names: Sequence[str]) -> str | None:
    """One simple thing that holds for all wrong results of a name."""

    def always(test: Callable[[np.ndarray, np.ndarray], bool]) -> bool:
        try:
            return all(test(g, w) for g, w in pairs)
        except (ValueError, IndexError, FloatingPointError):
            return False

    if all(w.dtype.kind == "b" for _, w in pairs):
        if always(lambda g, w: close(1.0 - g, w * 1.0)):
            return "True and False have changed places"
        return None
    if always(lambda g, w: not g.any()):
        return "all of it is 0"
    if always(lambda g, w: bool(np.isnan(g).all())):
        return "all of it is NaN (not a number)"
    if always(lambda g, w: close(-g, w)):
        return "the sign is turned around everywhere"
    for k, name in enumerate(names):
        given = [case.arguments[k] for case in cases]
        if all(
            isinstance(x, np.ndarray) and x.shape == g.shape and close(g, x)
            for x, (g, _) in zip(given, pairs, strict=True)
        ):
            return f"it is `{name}`, unchanged"
    differences = [g - w for g, w in pairs]
    first = float(differences[0].flat[0])
    if abs(first) > 1e-6 and all(close(d, np.full(d.shape, first)) for d in differences):
        return f"it is too {'large' if first > 0 else 'small'} by {abs(first):.4g} everywhere"
    ratios: list[float] = []
    for g, w in pairs:
        usable = np.isfinite(g) & np.isfinite(w) & (np.abs(w) > 1e-9)
        r = g[usable] / w[usable]
        if not r.size or not np.allclose(r, r[0], rtol=1e-4) or not np.allclose(g[~usable], w[~usable], atol=1e-9):
            ratios = []
            break
        ratios.append(float(r[0]))
    if ratios:
        if np.allclose(ratios, ratios[0], rtol=1e-4):
            return f"it is {ratios[0]:.4g} times what it should be, in every entry"
        said = {_named_factor(case, r) for case, r in zip(cases, ratios, strict=True)}
        why = f": a factor of {said.pop()}" if len(said) == 1 and "" not in said else ", another number in each case"
        return f"every entry is the same multiple of what it should be ({ratios[0]:.4g} on {cases[0].label}){why}"
    if always(lambda g, w: g.ndim > 1 and g.shape[-1] == g.shape[-2] and close(g.swapaxes(-1, -2), w)):
        return "rows and columns have changed places"
    for axis, what in ((-2, "row"), (-1, "column")):
        if all(w.ndim >= -axis and w.shape[axis] > 2 for _, w in pairs):
            if all(close(np.flip(g, axis), w) for g, w in pairs):
                return f"the {what}s are in the opposite order"
            for by, words in ((1, "early"), (-1, "late")):
                if all(_shifted(g, w, axis, by) for g, w in pairs):
                    return f"every {what} stands one place too {words}"
    if always(lambda g, w: g.size > 2 and close(np.sort(g, axis=None), np.sort(w, axis=None))):
        return "the entries are the right ones, in other places"
    if always(lambda g, w: close(g * g, w)):
        return "it is the root of what it should be"
    if always(lambda g, w: close(w * w, g)):
        return "it is the square of what it should be"
    if always(lambda g, w: bool((w != 0).all()) and close(g * w, np.ones_like(w))):
        return "it is 1 divided by what it should be"
    return None


def _shifted(g: np.ndarray, w: np.ndarray, axis: int, by: int) -> bool:
    g, w = np.moveaxis(g, axis, 0), np.moveaxis(w, axis, 0)
    return close(g[:-1], w[1:]) if by > 0 else close(g[1:], w[:-1])


def places(g: np.ndarray, w: np.ndarray) -> str:
    """Which rows, columns or entries are wrong."""
    with np.errstate(all="ignore"):
        good = np.isclose(g.astype(float), w.astype(float), rtol=1e-4, atol=1e-6, equal_nan=True)
    if good.ndim == 0 or not good.any():
        return ""
    if good.ndim == 1:
        wrong = np.flatnonzero(~good)
        return f"Wrong are the entries {_numbers(wrong)}." if len(wrong) < len(good) else ""
    for axis, what in ((-2, "row"), (-1, "column")):
        clean = np.moveaxis(good, axis, 0).reshape(good.shape[axis], -1).all(axis=1)
        if clean.any() and not clean.all():
            wrong = np.flatnonzero(~clean)
            return f"{what.capitalize()}{'s' * (len(wrong) > 1)} {_numbers(wrong)} {'are' if len(wrong) > 1 else 'is'} wrong, the others right."
    if good.shape[-1] == good.shape[-2]:
        eye = np.broadcast_to(np.eye(good.shape[-1], dtype=bool), good.shape)
        if good[eye].all():
            return "The diagonal is right, the rest is not all right."
        if good[~eye].all():
            return "Only the diagonal is wrong."
    return ""


def _numbers(indices: np.ndarray) -> str:
    return listed([str(i) for i in indices]) if len(indices) <= 4 else f"{indices[0]}, {indices[1]}, … {indices[-1]}"


def weights_problem(name: str, got: np.ndarray, want: np.ndarray) -> str | None:
    """Where the right result is a set of weights in each row: rows that sum to something else, negative ones, leaks."""
    if (
        want.ndim == 0
        or want.dtype.kind != "f"
        or not (want >= 0).all()
        or not np.allclose(want.sum(axis=-1), 1, atol=1e-4)
    ):
        return None
    if not np.isfinite(got).all():
        return None
    if (got < 0).any():
        return f"Some entries of `{name}` are negative."
    sums = got.sum(axis=-1)
    if not np.allclose(sums, 1, atol=1e-4):
        low, high = digits(sums.min(), 1), digits(sums.max(), 1)
        return f"Each row of `{name}` should sum to 1; yours {f'sums to {low}' if low == high else f'sum to between {low} and {high}'}."
    if want.ndim > 1 and ((want == 0) & (got > 1e-9)).any():
        return f"What is hidden still has weight in `{name}`."
    return None


# --- All together ---------------------------------------------------------------------------------------------------


def describe(bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome], unwritten: bool = False) -> str:
    """The message for an answer with values that are wrong in no way that is known.

    Args:
        unwritten: NaN is what `np.empty` holds, and is told elsewhere.
    """
    exercise, cases, wanted = bank.exercise, bank.cases, bank.wanted
    right = [same(o, w) for o, w in zip(outcomes, wanted, strict=False)]
    wrong = [i for i, r in enumerate(right) if not r and not outcomes[i].error]
    for i in wrong:
        if problem := kind_problem(exercise, outcomes[i], wanted[i]):
            return f"On {cases[i].label}: {problem}{_which(cases, right)}"
    first = wrong[0]
    said = []
    by_name: dict[str, list[tuple[int, Pair]]] = {name: [] for name in exercise.returns}
    for i in wrong:
        for name, got, want in zip(
            exercise.returns,
            parts(exercise, outcomes[i].value) or (),
            parts(exercise, wanted[i].value) or (),
            strict=True,
        ):
            pair = np.asarray(plain(got)), np.asarray(plain(want))
            if not close(*pair):
                by_name[name].append((i, pair))
    fine = [f"`{name}`" for name, pairs in by_name.items() if not pairs]
    if fine:
        said.append(
            f"{listed(fine)} {'is' if len(fine) == 1 else 'are'} right in every case; {listed([f'`{n}`' for n in by_name if by_name[n]])} {'is' if len(by_name) - len(fine) == 1 else 'are'} not."
        )
    name = next(n for n in by_name if by_name[n])
    i, (got, want) = by_name[name][0]
    for other, pairs in by_name.items():
        with np.errstate(all="ignore"):
            if pairs and (how := relation([p for _, p in pairs], [cases[i] for i, _ in pairs], exercise.parameters)):
                said.append(f"`{other}`: {how}.")
                name, (i, (got, want)) = other, pairs[0]
                break
    else:
        if not unwritten and np.isnan(got.astype(float)).any() and not np.isnan(want.astype(float)).any():
            said.append(f"`{name}` holds NaN (not a number): somewhere 0 was divided by 0, or ∞ met ∞.")
        elif where := places(got, want):
            said.append(where)
    for other, pairs in by_name.items():
        problem = next((p for _, pair in pairs if (p := weights_problem(other, *pair))), None)
        if problem:
            said.append(problem)
    try:
        with quiet(), stopped(2):
            if depends := dependence(exercise, function, cases[first]):
                said.append(depends)
    except TimeUp:
        pass
    with np.errstate(all="ignore"):
        at = np.unravel_index(
            np.nanargmax(np.where(np.isnan(got.astype(float)), np.inf, np.abs(got.astype(float) - want))), want.shape
        )
    entry = f"{name}[{', '.join(map(str, at))}]" if want.ndim else name
    said.append(f"`{entry}` is {digits(got[at], want[at])}; expected {digits(want[at], got[at])}.")
    return f"On {cases[i].label}: " + " ".join(said) + _which(cases, right)


def _which(cases: Sequence[Case], right: Sequence[bool]) -> str:
    """In which cases the answer is right, if in some."""
    good = [case.label for case, r in zip(cases, right, strict=False) if r]
    if not good:
        return ""
    bad = [case.label for case, r in zip(cases, right, strict=False) if not r]
    shorter, words = (bad, "Wrong only on") if len(bad) <= len(good) else (good, "Right on")
    return f"\n{words}: {'; '.join(shorter[:4])}{' …' if len(shorter) > 4 else ''} ({len(good)} of {len(right)} cases are right)."
