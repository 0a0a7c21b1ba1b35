"""Differences of wrong results from the right ones: where they are, and of which kind."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.explain.relations import Pair, digits, listed, origins, places, relation, weights_problem
from lesson_utils.mistakes.recognise.fault_bank import Bank
from lesson_utils.mistakes.run.outcome import Outcome, close, entries, plain, same


def parts(exercise: Exercise, value: Any) -> tuple[Any, ...] | None:
    """Return what came back, by result; None if the number of results is wrong."""
    if len(exercise.returns) == 1:
        return (value,)
    return tuple(value) if isinstance(value, tuple | list) and len(value) == len(exercise.returns) else None


def kind_problem(exercise: Exercise, outcome: Outcome, wanted: Outcome) -> str | None:
    """Return what is wrong before any number is: nothing returned, too few results, no arrays, other shapes."""
    value = outcome.value
    if value is None:
        return "Your function returned None. Is a `return` missing at its end?"
    results, wants = parts(exercise, value), parts(exercise, wanted.value)
    if results is None or wants is None:
        several = len(value) if isinstance(value, tuple | list) else 1
        return f"Your function should return {len(exercise.returns)} things, `return {', '.join(exercise.returns)}`; it returned {several}."
    rows = list(zip(exercise.returns, results, wants, strict=True))
    problems = {name: problem for name, got, want in rows if (problem := _kind_of_one(name, got, want))}
    if not problems:
        return None
    said = list(problems.values())
    for name, got, want in rows:
        if name in problems and isinstance(got, np.ndarray) and got.size and (order := origins(got, np.asarray(want))):
            said.append(f"`{name}`: {order}.")
    if fine := [f"`{name}`" for name in exercise.returns if name not in problems]:
        said.append(f"The shape of {listed(fine)} is right.")
    return " ".join(said)


def _kind_of_one(name: str, got: Any, want: Any) -> str | None:
    expected = "NumPy array" if np.ndim(want) > 0 else "number"
    if isinstance(got, tuple | list):
        right = same(Outcome((got,)), Outcome((want,)))
        also = " Its numbers are right: put `np.array(...)` around it." if right else _words_for_texts(got)
        return f"`{name}` is a {type(got).__name__}; expected a {expected}.{also}"
    got = plain(got)
    if type(got).__name__ == type(want).__name__ and hasattr(want, "__array__"):  # such as a Series of pandas
        got = np.asarray(got)
    if not isinstance(got, np.ndarray | np.generic | float | int):
        return f"`{name}` is a {'class' if isinstance(got, type) else type(got).__name__}; expected a {expected}."
    if masked := masked_entries(name, got):
        return masked
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind in "UO" and (words := _words_for_texts(got)):
        return f"`{name}` holds text; expected numbers.{words}"
    if got.dtype.kind not in "biuf":
        why = ": its entries are Python objects, not numbers" if got.dtype.kind == "O" else ""
        return f"`{name}` has dtype {got.dtype}{why}; expected real numbers."
    if got.shape == want.shape:
        return None
    hint = ""
    if len(got.shape) > len(want.shape) and [n for n in got.shape if n != 1] == [n for n in want.shape if n != 1]:
        hint = " It has an axis of length 1 too many."
    elif sorted(got.shape) == sorted(want.shape):
        hint = " The lengths are right, their order is not."
    shape = f"has shape {got.shape}" if got.ndim else "is a single number"
    return f"`{name}` {shape}; expected {want.shape if want.ndim else 'a single number'}.{hint}"


def _words_for_texts(array: Any) -> str:
    """Return what to say of entries that are strings; "" if they are not."""
    found = entries(array)
    if not found or not all(isinstance(entry, str) for entry in found):
        return ""
    return f" Its entries are text, such as `{str(found[0])[:20]!r}`; return the number that stands for it."


def masked_entries(name: str, got: Any) -> str | None:
    """Return words for a masked array some of whose entries have no value."""
    if isinstance(got, np.ma.MaskedArray) and np.ma.is_masked(got):
        return f"`{name}` is a masked array, and some entries have no value: in `np.ma`, True means “left out”."
    return None


def describe(bank: Bank, outcomes: Sequence[Outcome], unwritten: bool = False) -> str:
    """Return the message for an answer with values that are wrong in no way that is known.

    Args:
        unwritten: NaN is what `np.empty` holds, and another sentence says so.
    """
    exercise, cases, wanted = bank.exercise, bank.cases, bank.wanted
    right = [same(o, w) for o, w in zip(outcomes, wanted, strict=False)]
    wrong = [i for i, r in enumerate(right) if not r and not outcomes[i].error]
    kinds = {i: problem for i in wrong if (problem := kind_problem(exercise, outcomes[i], wanted[i]))}
    if wrong[0] in kinds:
        return f"On {cases[wrong[0]].label}: {kinds[wrong[0]]}{_which(cases, right)}"
    found = _wrong_results(bank, outcomes, [i for i in wrong if i not in kinds])
    said = [_right_results(exercise, found)]
    ways = {result: relation(pairs, cases, exercise.parameters) for result, pairs in found.items()}
    name = next((name for name, way in ways.items() if way), next(iter(found)))
    how = f"`{name}`: {ways[name]}." if ways[name] else ""
    i, (got, want) = next(iter(found[name].items()))
    if not how and not unwritten and np.isnan(got.astype(float)).any() and not np.isnan(want.astype(float)).any():
        how = f"`{name}` holds NaN (not a number): somewhere 0 was divided by 0, or ∞ met ∞."
    if got.dtype.kind in "iu" and want.dtype.kind == "f" and (want != np.round(want)).any():
        how = f"`{name}` holds whole numbers ({got.dtype}), and fractions are expected. {how}".strip()
    order = origins(got, want)
    said.append(how or (f"`{name}`: {order}." if order else places(got, want)))
    hides = any(isinstance(x, np.ndarray) and x.dtype == bool for x in cases[i].arguments)
    said += [weights_problem(other, *pairs[i], hides) or "" for other, pairs in found.items() if i in pairs]
    said.append(_farthest(name, got, want))
    also = next((f"\nOn {cases[i].label}: {problem}" for i, problem in kinds.items()), "")
    return f"On {cases[i].label}: {' '.join(filter(None, said))}{also}{_which(cases, right)}"


def _wrong_results(bank: Bank, outcomes: Sequence[Outcome], wrong: Sequence[int]) -> dict[str, dict[int, Pair]]:
    """Return the wrong results by name, and by the number of its case, beside what was expected."""
    found: dict[str, dict[int, Pair]] = {}
    for n, name in enumerate(bank.exercise.returns):
        for i in wrong:
            got, want = (parts(bank.exercise, o.value) or () for o in (outcomes[i], bank.wanted[i]))
            pair = np.asarray(plain(got[n])), np.asarray(plain(want[n]))
            if not close(*pair):
                found.setdefault(name, {})[i] = pair
    return found


def _right_results(exercise: Exercise, found: Collection[str]) -> str:
    fine = [f"`{name}`" for name in exercise.returns if name not in found]
    if not fine:
        return ""
    wrong, are = [f"`{name}`" for name in found], ["is" if len(names) == 1 else "are" for names in (fine, found)]
    return f"{listed(fine)} {are[0]} right in every case; {listed(wrong)} {are[1]} not."


def _farthest(name: str, got: np.ndarray, want: np.ndarray) -> str:
    """Return the entry that is farthest from what was expected."""
    with np.errstate(all="ignore"):
        numbers = got.astype(float)
        distance = np.where(np.isnan(numbers), np.inf, np.abs(numbers - want))
        at = np.unravel_index(np.nanargmax(distance), want.shape)
    entry = f"{name}[{', '.join(map(str, at))}]" if want.ndim else name
    return f"`{entry}` is {digits(got[at], want[at])}; expected {digits(want[at], got[at])}."


def _which(cases: Sequence[Case], right: Sequence[bool]) -> str:
    """Return in which cases the answer is right, if in some."""
    good = [case.label for case, r in zip(cases, right, strict=False) if r]
    if not good:
        return ""
    bad = [case.label for case, r in zip(cases, right, strict=False) if not r]
    shorter, words = (bad, "Wrong only on") if len(bad) <= len(good) else (good, "Right on")
    return f"\n{words}: {'; '.join(shorter[:4])}{' …' if len(shorter) > 4 else ''} ({len(good)} of {len(right)} cases are right)."
