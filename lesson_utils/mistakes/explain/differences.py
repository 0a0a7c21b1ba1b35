"""Says how results that match no known mistake differ from the right ones: where, in which way, and what they depend on."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.explain.dependence import dependence, listed
from lesson_utils.mistakes.explain.relations import Pair, digits, origins, places, relation, weights_problem
from lesson_utils.mistakes.recognise.fault_bank import Bank
from lesson_utils.mistakes.run.limits import TimeUp, stopped
from lesson_utils.mistakes.run.outcome import Outcome, close, plain, same
from lesson_utils.mistakes.run.sandbox import quiet


def parts(exercise: Exercise, value: Any) -> tuple[Any, ...] | None:
    """What came back, by result; None if the number of results is wrong."""
    if len(exercise.returns) == 1:
        return (value,)
    return tuple(value) if isinstance(value, tuple | list) and len(value) == len(exercise.returns) else None


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
    for name, got, want in zip(exercise.returns, results, wants, strict=True):
        if name in dict(problems) and isinstance(got, np.ndarray) and (from_ := origins(got, np.asarray(want))):
            problems.append((name, f"`{name}`: {from_}."))
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
    if masked := masked_entries(name, got, want):
        return masked
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind not in "biuf":
        why = ": its entries are Python objects, not numbers" if got.dtype.kind == "O" else ""
        return f"`{name}` has dtype {got.dtype}{why}; expected real numbers."
    if got.shape == want.shape:
        return None
    shape = f"has shape {got.shape}" if got.ndim else "is a single number"
    return f"`{name}` {shape}; expected {want.shape if want.ndim else 'a single number'}.{_shape_hint(got.shape, want.shape)}"


def masked_entries(name: str, got: Any, want: Any) -> str | None:
    """Return words for a masked array some of whose entries have no value."""
    if isinstance(got, np.ma.MaskedArray) and np.ma.is_masked(got):
        return f"`{name}` is a masked array, and some entries have no value. Give them one: `.filled(0)`."
    return None


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


# --- All together ---------------------------------------------------------------------------------------------------


def describe(bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome], unwritten: bool = False) -> str:
    """The message for an answer with values that are wrong in no way that is known.

    Args:
        unwritten: NaN is what `np.empty` holds, and is told elsewhere.
    """
    exercise, cases, wanted = bank.exercise, bank.cases, bank.wanted
    right = [same(o, w) for o, w in zip(outcomes, wanted, strict=False)]
    wrong = [i for i, r in enumerate(right) if not r and not outcomes[i].error]
    kinds = {i: problem for i in wrong if (problem := kind_problem(exercise, outcomes[i], wanted[i]))}
    first = wrong[0]
    if first in kinds:
        return f"On {cases[first].label}: {kinds[first]}{_which(cases, right)}"
    also = next((f"\nOn {cases[i].label}: {problem}" for i, problem in kinds.items()), "")
    wrong = [i for i in wrong if i not in kinds]
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
        with quiet(), stopped(2, busy=4):
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
    return f"On {cases[i].label}: " + " ".join(said) + also + _which(cases, right)


def _which(cases: Sequence[Case], right: Sequence[bool]) -> str:
    """In which cases the answer is right, if in some."""
    good = [case.label for case, r in zip(cases, right, strict=False) if r]
    if not good:
        return ""
    bad = [case.label for case, r in zip(cases, right, strict=False) if not r]
    shorter, words = (bad, "Wrong only on") if len(bad) <= len(good) else (good, "Right on")
    return f"\n{words}: {'; '.join(shorter[:4])}{' …' if len(shorter) > 4 else ''} ({len(good)} of {len(right)} cases are right)."
