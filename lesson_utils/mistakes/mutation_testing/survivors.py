"""Reasons why bugs survive a test: each is an experiment, on the asserts or on the inputs, and the words for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.mutation_testing.alterations import emptied, inexact, randomised, redrawn, ruined, shuffled
from lesson_utils.mistakes.mutation_testing.mutants import Bug
from lesson_utils.mistakes.mutation_testing.spy import After, Call, key
from lesson_utils.mistakes.run.sandbox import Outcome, TimeUp, quick, same, stopped

REDRAWN, LARGE = 3, 500  # calls that are made with other numbers; a large number


Reason = tuple[str, str, list[Bug]]  # its name, and in a sentence; which bugs survive for it


@dataclass(frozen=True)
class Study:
    """A test that passes the right function, and the calls that it makes."""

    error: Callable[[After], BaseException | None]  # in the test, when right results were altered
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


def _passes(after: After) -> Callable[[Study, Bug], bool]:
    """Make the experiment whether the test passes right results that were altered."""
    return lambda study, bug: study.error(after) is None


def _compares_with_itself(study: Study, bug: Bug) -> bool:
    keys = [key(call.arguments) for call in study.calls]
    return study.error(randomised) is None and len(keys) > 1 and all(keys.count(k) > 1 for k in keys)


def _reaches_no_assert(study: Study, bug: Bug) -> bool:
    fails = any(isinstance(study.error(after), AssertionError) for after in (ruined, emptied))
    return study.error(randomised) is None and not fails


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


def _sizes(study: Study, call: Call | Case) -> dict[str, int]:
    """Return the last two sizes of each array, and the whole numbers among the arguments, by what they are called."""
    found = {}
    for name, x in zip(study.exercise.parameters, call.arguments, strict=False):
        found |= {f"`{name}.shape[{-axis}]`": np.shape(x)[-axis] for axis in (1, 2) if axis <= np.ndim(x)}
        found |= {f"`{name}`": x} if isinstance(x, int) and not isinstance(x, bool) else {}
    return found


def _equal_sizes(study: Study, bug: Bug) -> str:
    """Name two sizes that are equal in every call, and differ in every case in which the bug shows."""
    calls, shown, cases = ([_sizes(study, c) for c in some] for some in (study.calls, bug.cases, study.exercise.drawn))
    for a, b in combinations(calls[0], 2):
        equal = [[sizes.get(a) == sizes.get(b) for sizes in some] for some in (calls, shown, cases)]
        if all(equal[0]) and not any(equal[1]) and (any(equal[2]) or not bug.in_square):
            return f"{a} and {b}"
    return ""


def _too_few_axes(study: Study, bug: Bug) -> bool:
    def axes(call: Call | Case) -> int:
        return max(sum(n > 1 for n in np.shape(x)) for x in call.arguments if not isinstance(x, list | tuple))

    return max(map(axes, study.calls)) < min(map(axes, bug.cases))


# The name, the experiment, and words, which end with the experiment's own if it has some. The first that holds is the reason.
ABOUT_ASSERTS = (
    ("its own reference", _compares_with_itself, "The function is compared with itself: each call has a twin with the same arguments, and both are wrong alike. Compare with numbers that you computed in another way."),
    ("no assert", _reaches_no_assert, "No `assert` that is reached in your test can fail. What a test prints, compares or returns, nobody looks at. Write `assert` in front of what must hold."),
    ("random results pass", _passes(randomised), "Random results of the right shapes pass, too: no `assert` looks at the numbers. Compare them with numbers that you computed in another way."),
    ("too loose", _passes(inexact), "Results with errors of 5 % pass, too. Compare whole arrays, with a small tolerance, as in `np.allclose(a, b, atol=1e-6)`."),
    ("only a sum", _passes(shuffled), "Results whose entries have changed places pass, too: your asserts look at a sum, a mean, a maximum or the like. Compare entry by entry."),
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
    return [(name, text, bugs) for (name, text), bugs in found.items()]
