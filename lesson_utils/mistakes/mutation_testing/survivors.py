"""Reasons why bugs survive a test: each is an experiment, on the asserts or on the inputs, and the words for it."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.mutation_testing.alterations import inexact, randomised, redrawn, shuffled
from lesson_utils.mistakes.mutation_testing.mutants import Bug
from lesson_utils.mistakes.mutation_testing.spy import After, Call
from lesson_utils.mistakes.run.sandbox import Outcome, TimeUp, quick, same, stopped

REDRAWN, LARGE = 3, 500  # calls that are repeated with random numbers; a large number


@dataclass(frozen=True)
class Reason:
    """Why a test lets some bugs pass."""

    name: str
    text: str
    bugs: Sequence[Bug]


@dataclass(frozen=True)
class Study:
    """A test that passes the right function, and the calls that it makes."""

    test: Callable[..., Any]
    passes: Callable[[After], bool]  # right results that were altered
    exercise: Exercise
    calls: Sequence[Call]  # those without an error


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    try:
        with stopped(0.5, busy=8):
            return quick(function, arguments)
    except TimeUp as error:
        return Outcome(error=error)


def _shows(study: Study, bug: Bug) -> bool:
    """Say whether a bug changes a result on the test's own inputs."""
    return any(not same(_outcome(bug.function, c.arguments), Outcome(c.value)) for c in study.calls)


# --- Experiments: each returns False, True, or words to be filled into its reason ----------------------------------------


def _has_no_assert(study: Study, bug: Bug) -> bool:
    try:
        return not re.search(r"\b(assert|raise|fail)", inspect.getsource(study.test)) and study.passes(randomised)
    except (OSError, TypeError):
        return False


def _compares_with_itself(study: Study, bug: Bug) -> bool:
    keys = [call.key for call in study.calls]
    return study.passes(randomised) and len(keys) > 1 and all(keys.count(k) > 1 for k in keys)


def _passes(after: After) -> Callable[[Study, Bug], bool]:
    return lambda study, bug: study.passes(after)


def _lacks(has: Callable[[tuple[Any, ...]], bool]) -> Callable[[Study, Bug], bool]:
    """Make the experiment whether no call has what each case has in which the bug shows."""
    return lambda study, bug: (
        not any(has(c.arguments) for c in study.calls) and all(has(c.arguments) for c in bug.cases)
    )


def _hides(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(x, np.ndarray) and x.dtype == bool and not x.all() for x in arguments)


def _leaves_out(arguments: tuple[Any, ...]) -> bool:
    return any(x is None for x in arguments)


def _has_large(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(x, np.ndarray) and np.abs(x).max(initial=0) > LARGE for x in arguments)


def _shows_with_other_numbers(study: Study, bug: Bug) -> bool:
    for call in study.calls[:REDRAWN]:
        arguments = redrawn(call.arguments, np.random.default_rng(0))
        right = _outcome(study.exercise.right, arguments)
        if not right.error and not same(_outcome(bug.function, arguments), right):
            return True
    return False


def _equal_sizes(study: Study, bug: Bug) -> str:
    """Name two sizes that are equal in every call, and differ in each case in which the bug shows."""

    def sizes(thing: Any) -> dict[str, int]:
        found = {}
        for name, x in zip(study.exercise.parameters, thing.arguments, strict=False):
            if isinstance(x, np.ndarray):
                found |= {f"`{name}.shape[{-axis}]`": x.shape[-axis] for axis in (1, 2) if axis <= x.ndim}
            elif isinstance(x, int) and not isinstance(x, bool):
                found[f"`{name}`"] = x
        return found

    calls, cases = list(map(sizes, study.calls)), list(map(sizes, bug.cases))
    for a, b in combinations(calls[0], 2):
        if all(s.get(a) == s.get(b) for s in calls) and all(s.get(a) != s.get(b) for s in cases):
            return f"{a} and {b}"
    return ""


def _one_sample(study: Study, bug: Bug) -> bool:
    """Say whether each case in which the bug shows has an array with more axes, of more than 1, than any call has."""

    def axes(thing: Any) -> int:
        return max((sum(n > 1 for n in np.shape(x)) for x in thing.arguments if x is not None), default=0)

    return max(map(axes, study.calls)) < min(map(axes, bug.cases))


def _always(study: Study, bug: Bug) -> bool:
    return True


# The name, the experiment, and the words, which end with the experiment's own. The first experiment that holds is the reason.
ABOUT_ASSERTS = (
    ("no assert", _has_no_assert, "There is no `assert` in your test, and nobody looks at what it prints or returns. Write `assert` in front of what must hold."),
    ("its own reference", _compares_with_itself, "The function is compared with itself: each call has a twin with the same arguments, and both are wrong alike. Compare with numbers that you computed in another way."),
    ("random results pass", _passes(randomised), "Random results of the right shapes pass, too: no `assert` that is reached looks at the numbers. Compare them with numbers that you computed in another way."),
    ("only a sum", _passes(shuffled), "Results whose entries have changed places pass, too: your asserts look at a sum, a mean, a maximum or the like. Compare entry by entry."),
    ("too loose", _passes(inexact), "Results with errors of 5 % pass, too. Compare whole arrays, with a small tolerance, as in `np.allclose(a, b, atol=1e-6)`."),
    ("too narrow", _always, "The results are wrong on your inputs, and what your asserts ask is true all the same. Compare all numbers with some that you computed in another way."),
)  # fmt: skip
ABOUT_INPUTS = (
    ("only errors", lambda study, bug: not study.calls, "Every call makes the right function raise an error, so no result is looked at."),
    ("no mask", _lacks(_hides), "No call has a mask that hides something. Give one with some False in it."),
    ("always a mask", _lacks(_leaves_out), "Every call has a mask, or whatever else may be left out. Leave it out in another call."),
    ("special numbers", _shows_with_other_numbers, "The numbers in your inputs are special: all equal, zero, very large, or the same in two arrays. With random numbers in each array these bugs show."),
    ("equal sizes", _equal_sizes, "Make these sizes different. They are equal in every call: "),
    ("one sample", _one_sample, "No call has as many axes as needed. Add a leading axis or two, as a batch and heads are."),
    ("no large numbers", _lacks(_has_large), "No number in your inputs is large. Try some above 1000."),
    ("inputs", _always, "On your inputs the result is right all the same."),
)  # fmt: skip


def reasons(study: Study, survivors: Sequence[Bug]) -> list[Reason]:
    """Return why bugs survive: each bug once, under the first reason that holds."""
    found: dict[tuple[str, str], list[Bug]] = {}
    for bug in survivors:
        for name, experiment, text in ABOUT_ASSERTS if _shows(study, bug) else ABOUT_INPUTS:
            if words := experiment(study, bug):
                whole = f"{text}{words}." if isinstance(words, str) else text
                found.setdefault((name, whole), []).append(bug)
                break
    return [Reason(name, text, bugs) for (name, text), bugs in found.items()]
