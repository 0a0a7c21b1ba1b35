"""Reasons why bugs survive a test: each is an experiment, on the asserts or on the inputs, and the words for it."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.mutation_testing.alterations import inexact, randomised, redrawn, shuffled
from lesson_utils.mistakes.mutation_testing.mutants import Bug
from lesson_utils.mistakes.mutation_testing.spy import After, Call, key
from lesson_utils.mistakes.run.limits import TimeUp, stopped
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick

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


def _arrays(call: Call | Case) -> list[np.ndarray]:
    return [x for x in call.arguments if isinstance(x, np.ndarray)]


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
    keys = [key(call.arguments) for call in study.calls]
    return study.passes(randomised) and len(keys) > 1 and all(keys.count(k) > 1 for k in keys)


def _lacks(has: Callable[[Call | Case], bool]) -> Callable[[Study, Bug], bool]:
    """Make the experiment whether no call has what each case has in which the bug shows."""
    return lambda study, bug: not any(map(has, study.calls)) and all(map(has, bug.cases))


def _shows_with_other_numbers(study: Study, bug: Bug) -> bool:
    for call in study.calls[:REDRAWN]:
        arguments = redrawn(call.arguments, np.random.default_rng(0))
        right = _outcome(study.exercise.right, arguments)
        if not right.error and not same(_outcome(bug.function, arguments), right):
            return True
    return False


def _equal_sizes(study: Study, bug: Bug) -> str:
    """Name two sizes that are equal in every call, and differ in every case in which the bug shows."""

    def sizes(call: Call | Case) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, x in zip(study.exercise.parameters, call.arguments, strict=False):
            if isinstance(x, np.ndarray):
                found |= {f"`{name}.shape[{-axis}]`": x.shape[-axis] for axis in (1, 2) if axis <= x.ndim}
            elif isinstance(x, int) and not isinstance(x, bool):
                found[f"`{name}`"] = x
        return found

    calls, shown, cases = (list(map(sizes, some)) for some in (study.calls, bug.cases, study.exercise.drawn))
    for a, b in combinations(calls[0], 2):

        def equal(s: dict[str, int], a: str = a, b: str = b) -> bool:
            return s.get(a) == s.get(b)

        if all(map(equal, calls)) and not any(map(equal, shown)) and (any(map(equal, cases)) or not bug.in_square):
            return f"{a} and {b}"
    return ""


def _too_few_axes(study: Study, bug: Bug) -> bool:
    def axes(call: Call | Case) -> int:
        return max(sum(n > 1 for n in x.shape) for x in (*_arrays(call), np.zeros(())))

    return max(map(axes, study.calls)) < min(map(axes, bug.cases))


# The name, the experiment, and words, which end with the experiment's own if it has some. The first that holds is the reason.
ABOUT_ASSERTS = (
    ("no assert", _has_no_assert, "There is no `assert` in your test, and nobody looks at what it prints or returns. Write `assert` in front of what must hold."),
    ("its own reference", _compares_with_itself, "The function is compared with itself: each call has a twin with the same arguments, and both are wrong alike. Compare with numbers that you computed in another way."),
    ("random results pass", lambda study, bug: study.passes(randomised), "Random results of the right shapes pass, too: no `assert` that is reached, and can fail, looks at the numbers. Compare them with numbers that you computed in another way."),
    ("too loose", lambda study, bug: study.passes(inexact), "Results with errors of 5 % pass, too. Compare whole arrays, with a small tolerance, as in `np.allclose(a, b, atol=1e-6)`."),
    ("only a sum", lambda study, bug: study.passes(shuffled), "Results whose entries have changed places pass, too: your asserts look at a sum, a mean, a maximum or the like. Compare entry by entry."),
    ("too narrow", lambda study, bug: True, "The results are wrong on your inputs, and what your asserts ask is true all the same. Compare all numbers with some that you computed in another way."),
)  # fmt: skip
ABOUT_INPUTS = (
    ("only errors", lambda study, bug: not study.calls, "Every call makes the right function raise an error, so no result is looked at."),
    ("no mask", _lacks(lambda call: any(x.dtype == bool and not x.all() for x in _arrays(call))), "No call has a mask that hides something. Give one with some False in it."),
    ("always a mask", _lacks(lambda call: any(x is None for x in call.arguments)), "Every call has a mask, or whatever else may be left out. Leave it out in another call."),
    ("no large numbers", _lacks(lambda call: any(np.abs(x).max(initial=0) > LARGE for x in _arrays(call))), "No number in your inputs is large. Try some above 1000."),
    ("special numbers", _shows_with_other_numbers, "The numbers in your inputs are special: all equal, zero, very large, or the same in two arrays. With random numbers in each array these bugs show."),
    ("equal sizes", _equal_sizes, "Make sizes different that are equal in every call: "),
    ("one sample", _too_few_axes, "No call has as many axes as these bugs need. Add a leading axis or two, as a batch and heads are."),
    ("inputs", lambda study, bug: True, "On your inputs the result is right all the same."),
)  # fmt: skip


def reasons(study: Study, survivors: Sequence[Bug]) -> list[Reason]:
    """Return why bugs survive: each bug once, under the first reason that holds."""
    visible = {bug for bug in survivors if _shows(study, bug)}
    found: dict[tuple[str, str], list[Bug]] = {}
    for table, bugs in ((ABOUT_ASSERTS, visible), (ABOUT_INPUTS, {*survivors} - visible)):
        for name, experiment, text in table:
            for bug in (bug for bug in survivors if bug in bugs):
                if words := experiment(study, bug):
                    bugs.discard(bug)
                    found.setdefault((name, f"{text}{words}." if isinstance(words, str) else text), []).append(bug)
    return [Reason(name, text, bugs) for (name, text), bugs in found.items()]
