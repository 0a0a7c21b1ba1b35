"""A learner's test, run on the right function and on each of its mutants: how many does it find, and why do some survive?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.judge import stub_problem
from lesson_utils.mistakes.mutation_testing.mutants import Bug, Published, bugs_of
from lesson_utils.mistakes.mutation_testing.refusals import asks_too_much, cannot_be_used, draws, fails_later, no_test
from lesson_utils.mistakes.mutation_testing.result import TestResult
from lesson_utils.mistakes.mutation_testing.spy import run
from lesson_utils.mistakes.mutation_testing.subject import subject
from lesson_utils.mistakes.mutation_testing.survivors import Reason, Study, reasons
from lesson_utils.mistakes.run.sandbox import TIME_LIMIT, kernel_as_before, mend_modules, quiet

SEEDS = (0, 1, 2)  # a test that draws other numbers each time is run so often on each bug
EVERY = 4  # after so many bugs, the right function must pass again
CALLS = 40  # of a test that are looked at
DESCRIBED = 4  # survivors of one reason that are described; more are named
NO_SEED = (
    "Your test calls the function with other numbers each time that it runs, and finds these in some runs only. Give it a "
    "seed, `rng = np.random.default_rng(0)`, and inputs that show them each time."
)


def judge_test(
    test: Any, of: Any, exercises: Mapping[str, Exercise], published: Published = (), time_limit: float = TIME_LIMIT
) -> TestResult:
    """Run a learner's test on the right function and on its mutants; whatever it is, the answer is a TestResult.

    Args:
        test: a function of one argument, the function under test, which fails (by `assert`) if that is wrong.
        of: the exercise's name; if it is None, the test's parameter says it.
        exercises: every exercise, by name.
        published: mistakes that were seen in public; these are among the mutants.
    """
    if isinstance(test, str) and callable(of):
        test, of = of, test
    overwritten = mend_modules()
    result = _judge(test, of, exercises, published, time_limit)
    if not (also := dict.fromkeys([*overwritten, *mend_modules()])):
        return result
    names = ", ".join(f"`{name}`" for name in also)
    words = f"By the way: something else had been put in the place of {names}. What belongs there is back."
    return replace(result, message=f"{result.message}\n{words}")


def _judge(test: Any, of: Any, exercises: Mapping[str, Exercise], published: Published, limit: float) -> TestResult:
    if test is None or test is ...:
        words = "Write your test above, then hand it over without calling it: `check.finds_bugs(my_test)`."
        return TestResult(None, words)
    exercise = no_test(test) or subject(test, of, exercises)
    if isinstance(exercise, str):
        return TestResult(False, exercise)
    trial = partial(run, test, exercise)
    first = trial(exercise.right, time_limit=limit)
    if todo := stub_problem(test, first.outcome):
        todo = todo.replace("your code", "your test").replace("function's", "test's")
        return TestResult(None, f"{todo}, run its cell, then run this one again.")
    with kernel_as_before(show=False), quiet():
        bugs, passes = bugs_of(exercise, published), dict[Bug, list[bool]]()
        refused = cannot_be_used(test, trial, exercise, first, bugs)
        random = not refused and draws(trial, exercise, first)
        refused = refused or fails_later(trial, exercise, random) or asks_too_much(trial, exercise)
        for n, bug in enumerate(bugs, 1):
            if refused:
                return TestResult(False, refused)
            passes[bug] = [trial(bug.function, seed=seed).passed for seed in (SEEDS if random else SEEDS[:1])]
            refused = fails_later(trial, exercise, random) if n % EVERY == 0 or n == len(bugs) else ""
        survivors = [bug for bug in bugs if all(passes[bug])]
        at_times = [bug for bug in bugs if any(passes[bug]) and bug not in survivors]
        passes_altered = cache(lambda after: trial(exercise.right, after).passed)
        why = reasons(
            Study(test, passes_altered, exercise, [c for c in first.calls[:CALLS] if c.error is None]), survivors
        )
    return (
        TestResult(False, refused)
        if refused
        else _counted(exercise, bugs, survivors, [*why, Reason("no seed", NO_SEED, at_times)])
    )


def _counted(exercise: Exercise, bugs: Sequence[Bug], survivors: Sequence[Bug], why: Sequence[Reason]) -> TestResult:
    """Return the answer: how many bugs are found, which survive, and why."""
    why = [reason for reason in why if reason.bugs]
    left = [bug for reason in why for bug in reason.bugs]
    found = tuple(bug.name for bug in bugs if bug not in left)
    count = f"{len(found) or 'none'} of {len(bugs)}" if left else f"all {len(bugs)}"
    survive = f" {len(survivors)} survive:" if len(survivors) > 1 else " One survives:" if survivors else ""
    code = "\n\n".join(f"# {bug.name}\n{bug.source}" for bug in survivors)
    return TestResult(
        not left,
        f"Your test passes the right `{exercise.name}`, and finds {count} bugs.{survive}",
        why[0].name if why else None,
        found=found,
        survivors=tuple(bug.name for bug in left),
        mistakes=tuple(dict.fromkeys(reason.name for reason in why)),
        groups=tuple((reason.text, _described(reason.bugs)) for reason in why),
        more=(("The code of those that survive", code),) if code else (),
    )


def _described(bugs: Sequence[Bug]) -> tuple[str, ...]:
    """Return a line for each of the first bugs, and one with the names of the others."""
    lines = [bug.in_words for bug in bugs[: DESCRIBED if len(bugs) > DESCRIBED + 1 else None]]
    others = [bug.name for bug in bugs[len(lines) :]]
    return (*lines, ", ".join(others)) if others else tuple(lines)
