"""Reasons why bugs survive a test: each is an experiment, on the asserts or on the inputs, and the words for it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.mutation_testing.mutants import Bug, redrawn
from lesson_utils.mistakes.mutation_testing.spy import After, Call, emptied, inexact, key, randomised, ruined, shuffled
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick

Reason = tuple[str, str, list[Bug]]  # its name, and in a sentence; which bugs survive for it


class Study(NamedTuple):
    """A test that passes the right function, and the calls that it makes."""

    altered: Callable[[After], Any]  # runs the test on right results that are altered
    exercise: Exercise
    calls: Sequence[Call]  # those without an error


def _arrays(call: Call | Case) -> list[np.ndarray]:
    return [x for x in call.arguments if isinstance(x, np.ndarray)]


def _compares_with_itself(study: Study, bug: Bug) -> bool:
    keys = [key(call.arguments) for call in study.calls]
    return study.altered(randomised).passed and len(keys) > 1 and all(keys.count(k) > 1 for k in keys)


def _reaches_no_assert(study: Study, bug: Bug) -> bool:
    fails = any(isinstance(study.altered(after).outcome.error, AssertionError) for after in (ruined, emptied))
    return study.altered(randomised).passed and not fails


def _lacks(has: Callable[[Call | Case], bool]) -> Callable[[Study, Bug], bool]:
    """Make the experiment whether no call has what each case has in which the bug shows."""
    return lambda study, bug: not any(map(has, study.calls)) and all(map(has, bug.cases))


def _shows(study: Study, bug: Bug) -> bool:
    return any(not same(quick(bug.function, call.arguments), Outcome(call.value)) for call in study.calls)


def _shows_with_other_numbers(study: Study, bug: Bug) -> bool:
    return any(_differs(study, bug, redrawn(call.arguments, np.random.default_rng(0))) for call in study.calls[:3])


def _differs(study: Study, bug: Bug, arguments: tuple[Any, ...]) -> bool:
    right = quick(study.exercise.right, arguments)
    return not right.error and not same(quick(bug.function, arguments), right)


def _sizes_differ(call: Call | Case) -> bool:
    sizes = {n for x in _arrays(call) for n in x.shape[-2:]}
    return len(sizes or {x for x in call.arguments if type(x) is int}) > 1


def _needs_other_sizes(study: Study, bug: Bug) -> bool:
    """Make the experiment whether a case in which the bug shows hides it when all its sizes are made equal."""

    def shows(case: Case, size: int) -> bool:
        return _differs(study, bug, redrawn(case.arguments, np.random.default_rng(0), size))

    sized = [case for case in bug.cases if _arrays(case)]  # else the sizes themselves are the arguments
    return _lacks(_sizes_differ)(study, bug) and (not sized or any(shows(c, 0) and not shows(c, 4) for c in sized))


def _axes(call: Call | Case) -> int:
    return max(sum(n > 1 for n in np.shape(x)) for x in call.arguments if not isinstance(x, list | tuple))


# The name, the experiment, and the reason in words. Of each table, the first that holds is given.
ABOUT_ASSERTS = (
    ("its own reference", _compares_with_itself, "The function is compared with itself: each call has a twin with the same arguments, and both are wrong alike. Compare with numbers that you computed in another way."),
    ("no assert", _reaches_no_assert, "No `assert` that is reached in your test can fail. What a test prints, compares or returns, nobody looks at. Write `assert` in front of what must hold, without brackets around it: `assert (a, b)` asserts a tuple, which is always true."),
    ("random results pass", lambda study, bug: study.altered(randomised).passed, "Random results of the right shapes pass, too: no `assert` looks at the numbers. Compare them with numbers that you computed in another way."),
    ("too loose", lambda study, bug: study.altered(inexact).passed, "Results with errors of 5 % pass, too. Compare whole arrays, with a small tolerance, as in `np.allclose(a, b, atol=1e-6)`."),
    ("only a sum", lambda study, bug: study.altered(shuffled).passed, "Results whose entries have changed places pass, too: your asserts look at a sum, a mean, a maximum or the like. Compare entry by entry."),
    ("too narrow", lambda study, bug: True, "The results are wrong on your inputs, and what your asserts ask is true all the same. Compare all numbers with some that you computed in another way."),
)  # fmt: skip
ABOUT_INPUTS = (
    ("only errors", lambda study, bug: not study.calls, "Every call makes the right function raise an error, so no result is looked at."),
    ("no mask", _lacks(lambda call: any(x.dtype == bool and not x.all() for x in _arrays(call))), "No call has a mask that hides something. Give one with some False in it."),
    ("always a mask", _lacks(lambda call: any(x is None for x in call.arguments)), "Every call has a mask, or whatever else may be left out. Leave it out in another call."),
    ("no large numbers", _lacks(lambda call: any(np.abs(x).max(initial=0) > 500 for x in _arrays(call))), "No number in your inputs is large. Try some above 1000."),
    ("special numbers", _shows_with_other_numbers, "The numbers in your inputs are special: all equal, zero, very large, or the same in two arrays. With random numbers in each array, these bugs give other results than the right function. Compare those with numbers that you computed in another way."),
    ("equal sizes", _needs_other_sizes, "All sizes are equal in each call, so no axis or size can be the wrong one. Make them different."),
    ("one sample", lambda study, bug: max(map(_axes, study.calls)) < min(map(_axes, bug.cases)), "No call has as many axes (of more than 1) as the cases in which these bugs show. Add a leading axis or two, as a batch and heads are."),
    ("inputs", lambda study, bug: True, "On your inputs the result is right all the same. Call it on inputs like those that are named here, too."),
)  # fmt: skip


def reasons(study: Study, survivors: Sequence[Bug]) -> list[Reason]:
    """Return why bugs survive: each bug once, under the first reason that holds."""
    visible, found = [bug for bug in survivors if _shows(study, bug)], list[Reason]()
    hidden = [bug for bug in survivors if bug not in visible]
    for table, left in ((ABOUT_ASSERTS, visible), (ABOUT_INPUTS, hidden)):
        for name, experiment, text in table:
            if bugs := [bug for bug in left if experiment(study, bug)]:
                found.append((name, text, bugs))
                left = [bug for bug in left if bug not in bugs]
    return found
