"""A learner's test, run on the right function and on each of its mutants: how many does it find, and why do some survive?"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.judge import _stub_problem
from lesson_utils.mistakes.mutation_testing.mutants import Bug, Published, bugs_of
from lesson_utils.mistakes.mutation_testing.refusals import asks_too_much, cannot_be_used, draws, fails_later, no_test
from lesson_utils.mistakes.mutation_testing.result import TestResult
from lesson_utils.mistakes.mutation_testing.spy import run
from lesson_utils.mistakes.mutation_testing.subject import subject
from lesson_utils.mistakes.mutation_testing.survivors import Study, reasons
from lesson_utils.mistakes.run.sandbox import kernel_as_before, mend_modules, quiet

SEEDS = (0, 1, 2)  # a test that draws other numbers each time is run so often on each bug
EVERY = 4  # after so many bugs, the right function must pass again
DESCRIBED = 4  # survivors of one reason that are described; more are named
NO_SEED = "Your test calls the function with other numbers each time that it runs, and finds these in some runs only. Give it a seed, `rng = np.random.default_rng(0)`, and inputs that show them each time."


def judge_test(test: Any, of: Any, exercises: Mapping[str, Exercise], published: Published = ()) -> TestResult:
    """Run a learner's test on the right function and on its mutants; whatever it is, the answer is a TestResult.

    Args:
        test: a function of one argument, the function under test, which fails (by `assert`) if that is wrong.
        of: the exercise's name; if it is None, the test's parameter says it.
        exercises: every exercise, by name.
        published: mistakes that were seen in public; these are among the mutants.
    """
    mend_modules()
    if isinstance(test, str) and callable(of):
        test, of = of, test
    if test is None or test is ...:
        hand_over = "Write your test above, then hand it over without calling it: `check.finds_bugs(my_test)`."
        return TestResult(None, hand_over)
    exercise = no_test(test) or subject(test, of, exercises)
    if isinstance(exercise, str):
        return TestResult(False, exercise)
    trial = partial(run, test, exercise)
    first = trial(exercise.right)
    if todo := _stub_problem(test, first.outcome):
        todo = todo.replace("your code", "your test").replace("function's", "test's")
        return TestResult(None, f"{todo}, run its cell, then run this one again.")
    with kernel_as_before(show=False), quiet():
        bugs, passes = bugs_of(exercise, published), dict[Bug, list[bool]]()
        refused = cannot_be_used(test, trial, exercise, first, bugs)
        random = not refused and draws(trial, exercise, first)
        refused = refused or fails_later(trial, exercise, random) or asks_too_much(trial, exercise)
        for n, bug in enumerate(bugs, 1):
            if not refused:
                passes[bug] = [trial(bug.function, seed=seed).passed for seed in (SEEDS if random else SEEDS[:1])]
                refused = fails_later(trial, exercise, random) if n % EVERY == 0 or n == len(bugs) else ""
        if refused:
            return TestResult(False, refused)
        survivors = [bug for bug in bugs if all(passes[bug])]
        at_times = [bug for bug in bugs if any(passes[bug]) and bug not in survivors]
        error = cache(lambda after: trial(exercise.right, after).error)
        why = reasons(Study(error, exercise, [call for call in first.calls if call.error is None]), survivors)
    why += [("no seed", NO_SEED, at_times)] if at_times else []
    found = tuple(bug.name for bug in bugs if not any(passes[bug]))
    count = f"{len(found) or 'none'} of {len(bugs)}" if why else f"all {len(bugs)}"
    survive = f" {len(survivors)} survive:" if len(survivors) > 1 else " One survives:" if survivors else ""
    code = "\n\n".join(f"# {bug.name}\n{bug.source}" for bug in survivors)
    return TestResult(
        not why,
        f"Your test passes the right `{exercise.name}`, and finds {count} bugs.{survive}",
        why[0][0] if why else None,
        found=found,
        survivors=tuple(bug.name for bug in (*survivors, *at_times)),
        mistakes=tuple(dict.fromkeys(name for name, _, _ in why)),
        groups=tuple((text, _described(some)) for _, text, some in why),
        more=(("The code of those that survive", code),) if code else (),
    )


def _described(bugs: Sequence[Bug]) -> tuple[str, ...]:
    """Return a line for each of the first bugs, and one with the names of the others."""
    first = DESCRIBED if len(bugs) > DESCRIBED + 1 else len(bugs)
    return tuple(filter(None, [*(bug.in_words for bug in bugs[:first]), ", ".join(bug.name for bug in bugs[first:])]))
