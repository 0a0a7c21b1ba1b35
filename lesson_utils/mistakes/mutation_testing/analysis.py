"""A learner's test, run on the right function and on each of its mutants: how many does it find, and why do some survive?"""

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.judge import stub_problem
from lesson_utils.mistakes.mutation_testing.mutants import Bug, Published, bugs_of
from lesson_utils.mistakes.mutation_testing.result import TestResult
from lesson_utils.mistakes.mutation_testing.spy import Run, key, otherwise_rounded, run
from lesson_utils.mistakes.mutation_testing.subject import no_test, subject
from lesson_utils.mistakes.mutation_testing.survivors import Study, reasons
from lesson_utils.mistakes.recognise.learner_code import learner_code
from lesson_utils.mistakes.run.kernel import kernel_as_before, mend_modules
from lesson_utils.mistakes.run.limits import ending, left
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick, quiet

SEEDS = (0, 1, 2)  # a test that draws other numbers each time is run so often on each bug
AGAIN = 12  # and so often on the right function, to see whether it fails at times
SLOW = 0.2  # seconds of computing for one run of a test; dozens have to be waited for
ALTOGETHER = 30.0  # seconds by the clock on the wall; a busy machine needs some for dozens of quick runs
EVERY = 4  # after so many bugs, the right function must pass again
DESCRIBED = 3  # survivors of the first reason that are described; of each other reason, one
AT_TIMES = "Your test calls the function with other numbers each time that it runs, and fails on the right one in {} of {} runs. A test that fails at times is soon ignored. Give it a seed, `rng = np.random.default_rng(0)`, and ask only what must hold."
TOO_SLOW = "Your test takes {:.2g} seconds on the right function, and the check runs it dozens of times. Bugs show on arrays of a few numbers: make the inputs smaller."
TOO_TIGHT = "Your test passes the right `{}`, but not one that is as right and rounds otherwise. It fails{} With another order of the sums, or `einsum`, the last digits are others. Compare with `np.allclose(a, b)`, which allows for that; for float32, with `atol=1e-4`."
NO_SEED = "Your test calls the function with other numbers each time that it runs, and finds these in some runs only. Give it a seed, `rng = np.random.default_rng(0)`, and inputs that show them each time."


@ending(ALTOGETHER)
def judge_test(test: Any, of: Any, exercises: Mapping[str, Exercise], published: Published = ()) -> TestResult:
    """Run a learner's test on the right function and on its mutants; whatever it is, the answer is a TestResult.

    `of` is the exercise's name; if it is None, the test's parameter says it. Mistakes that were `published` are among the mutants.
    """
    mend_modules()
    if isinstance(test, str) and callable(of):
        test, of = of, test
    if test is None or test is ...:
        return TestResult(None, "Write your test above, then hand it over as it is: `check.finds_bugs(my_test)`.")
    exercise = no_test(test) or subject(test, of, exercises)
    if isinstance(exercise, str):
        return TestResult(False, exercise)
    trial = partial(run, test, exercise)
    first = trial(exercise.right)
    if todo := stub_problem(test, first.outcome):
        todo = todo.replace("your code", "your test").replace("function's", "test's")
        return TestResult(None, f"{todo}, run its cell, then run this one again.")
    with kernel_as_before(show=False), quiet():
        return _answer(test, trial, exercise, first, bugs_of(exercise, published))


def _answer(test: Any, trial: partial[Run], exercise: Exercise, first: Run, bugs: Sequence[Bug]) -> TestResult:
    """Run the test on each bug, and on the right function before, between and after them; count, and say why."""
    refused = _cannot_be_used(test, trial, exercise, first, bugs)
    random, passes = not refused and _draws(trial, exercise, first), dict[Bug, list[bool]]()
    refused = refused or _fails_later(trial, exercise, random) or _asks_too_much(trial, exercise, random)
    seeds, seconds = SEEDS if random else SEEDS[:1], max(0.5, 20 * first.seconds)  # on a bug a loop may not end
    for n, bug in enumerate(bugs, 1):
        if refused:
            break
        passes[bug] = [_passes(trial, bug, seed, seconds) for seed in seeds]
        if left() < 0:
            refused = TOO_SLOW.format(first.seconds)
        elif n % EVERY == 0 or n == len(bugs):
            refused = _fails_later(trial, exercise, random)
    if refused:
        return TestResult(False, refused)
    survivors = [bug for bug in bugs if all(passes[bug])]
    at_times = [bug for bug in bugs if any(passes[bug]) and bug not in survivors]
    altered = cache(lambda after: trial(exercise.right, after))
    why = reasons(Study(altered, exercise, [call for call in first.calls if call.error is None]), survivors)
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
        groups=tuple((text, _described(some, 1 if n else DESCRIBED)) for n, (_, text, some) in enumerate(why)),
        more=(("The code of those that survive", code),) if code else (),
    )


def _passes(trial: partial[Run], bug: Bug, seed: int, seconds: float) -> bool:
    """Say whether a test passes on a bug. What was stopped is run once more: the machine itself may have stood still."""
    runs = (trial(bug.function, seed=seed, seconds=seconds) for _ in range(2))
    return next((run.passed for run in runs if not run.outcome.timed_out), False)


def _described(bugs: Sequence[Bug], most: int) -> tuple[str, ...]:
    """Return a line for each of the first bugs, and the number of the others, whose code stands below."""
    more = [f"And {len(bugs) - most} more, whose code stands below."] if len(bugs) > most else []
    return (*(f"One {bug.in_words}" for bug in bugs[:most]), *more)


# --- Tests that don't get as far as the bugs ------------------------------------------------------------------------------


def _cannot_be_used(test: Any, trial: partial[Run], exercise: Exercise, first: Run, bugs: Sequence[Bug]) -> str:
    """Say why a test does not pass the right function, or cannot be run on bugs; "" if it can."""
    if first.outcome.timed_out:
        return f"Your test had not come to an end after some seconds, on the right function{first.outcome.where}. Are the inputs very large, or does a loop never end?"
    if not first.passed:
        return f"Your test fails on the right `{exercise.name}`{_failure(first)} {_hint(trial, exercise, first, bugs)}".strip()
    if not first.calls:
        parameter = next(iter(inspect.signature(test).parameters), "the function")
        return f"Your test never calls the function that it is given, `{parameter}`, so it finds no bug. Call `{parameter}(…)`, and assert what must hold."
    if first.mended:
        return f"Your test puts something else in the place of `{'`, `'.join(first.mended)}`, and so changes the function under test with it. Leave the library as it is. (What belongs there is back.)"
    return TOO_SLOW.format(first.seconds) if first.seconds > SLOW else ""


def _failure(run: Run) -> str:
    """Say where a test failed, and the first words of the error."""
    error = run.outcome.error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = "; ".join([x for x in lines if re.match(r"Mismatched|Max abs|x and y|\(shapes", x)] or lines[:2])[:200]
    if isinstance(error, SystemExit):
        said = "it leaves Python (`exit`)"
    elif not isinstance(error, AssertionError):
        said = f"{type(error).__name__}: {said}".removesuffix(": ")
    return f"{run.outcome.where} ({said})." if said else f"{run.outcome.where}."


def _hint(trial: partial[Run], exercise: Exercise, first: Run, bugs: Sequence[Bug]) -> str:
    """Say what may be wrong in a test that the right function does not pass."""
    error, line, names = first.outcome.error, first.outcome.line, ", ".join(exercise.returns)
    value = first.calls[-1].value if first.calls else None
    arrays = [x for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, np.ndarray)]
    if len(exercise.returns) > 1 and "tuple" in str(error):
        return f"The function returns {len(exercise.returns)} things: `{names} = {exercise.name}(...)`."
    if re.search(r"assert (np|numpy)\.testing\.", line):
        return "`np.testing` asserts by itself, and returns None. Leave out the `assert` in front of it."
    if isinstance(error, AssertionError):
        if re.search(r"==|array_equal", line) and _is_rounding(trial, exercise):
            return "`==` wants equal numbers, and computed ones may differ in the last digits. Compare them with `np.allclose(a, b)`."
        if bug := next((bug for bug in bugs if trial(bug.function).passed), None):
            return f"\nBut it passes a wrong one, which {bug.in_words} Is that what it expects?"
    return f"\nThe last call gave {names} of the shapes {[x.shape for x in arrays]}." if arrays else ""


def _is_rounding(trial: partial[Run], exercise: Exercise) -> bool:
    """Make the experiment whether the test passes if `==` and `array_equal` allow for rounding."""
    if (mine := learner_code(trial.args[0])) is None:
        return False
    text = ast.unparse(_Tolerant().visit(mine.tree)).replace("array_equal(", "allclose(")
    test = replace(mine, tree=ast.parse(text).body[0]).function()  # type: ignore[arg-type]
    return test is not None and run(test, exercise, exercise.right).passed


class _Tolerant(ast.NodeTransformer):
    """Write `np.isclose(a, b)` for `a == b`, but not for shapes."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        is_shape = isinstance(node.left, ast.Attribute | ast.Tuple)
        if len(node.ops) > 1 or not isinstance(node.ops[0], ast.Eq) or is_shape:
            return node
        return ast.Call(ast.parse("np.isclose", mode="eval").body, [node.left, *node.comparators], [])


def _draws(trial: partial[Run], exercise: Exercise, first: Run) -> bool:
    """Say whether a test calls the function with other numbers each time that it runs."""
    again = trial(exercise.right, seed=1)
    before, now = ([key(call.arguments) for call in run.calls] for run in (first, again))
    return before[: len(now)] != now[: len(before)] or (again.passed and len(now) != len(before))


def _fails_later(trial: partial[Run], exercise: Exercise, random: bool) -> str:
    """Say that the right function, which has passed, does not pass again; "" if it does."""
    failed = [run for n in range(AGAIN if random else 1) if not (run := trial(exercise.right, seed=n)).passed]
    if not failed:
        return ""
    if random:
        return AT_TIMES.format(len(failed), AGAIN)
    return f"Your test does not tell right from wrong: the right `{exercise.name}` passes at first, and fails later{_failure(failed[0])} A test must not count its runs, or keep anything else from one run to the next."


def _undefined(exercise: Exercise, other: Run) -> str:
    """Say on which input two right functions differ, as the task does not say what is right there; "" if on none."""
    for call in other.calls:
        right = quick(exercise.right, call.arguments)
        if call.error is None and not right.error and not same(right, Outcome(call.value)):
            masks = [x for x in call.arguments if isinstance(x, np.ndarray) and x.dtype == bool and x.ndim]
            if any((~x.any(axis=-1)).any() for x in masks):
                return "A row of your mask hides everything. The task does not say what such a row gets, and two right functions give different results. Let each row of the mask hold a True."
            return "The task does not say what is right for the inputs of one of your calls, and two right functions give different results there. Look up in the exercise's text what it promises."
    return ""


def _asks_too_much(trial: partial[Run], exercise: Exercise, random: bool) -> str:
    """Say why another right function does not pass: our solution, another spelling of it, or other rounding."""
    for way in [{}, *({step: text} for step, texts in exercise.spellings.items() for text in texts)]:
        other = trial(exercise.program(way))
        if other.passed:
            continue
        if any(isinstance(x, list | tuple) for call in other.calls for x in call.arguments):
            return f"Your test passes lists to `{exercise.name}`; the task promises arrays only, and another right solution fails{_failure(other)} Write `np.array(...)` around them."
        if random and (passed := sum(trial(exercise.program(way)).passed for _ in range(AGAIN))):
            return AT_TIMES.format(AGAIN - passed, AGAIN)
        if why := _undefined(exercise, other):
            return f"Your test asks for something that the task does not promise{_failure(other)} {why}"
        pairs = [(quick(exercise.right, call.arguments), Outcome(call.value, call.error)) for call in other.calls]
        if pairs and all(same(a, b) for a, b in pairs):  # in all calls, but for rounding
            return TOO_TIGHT.format(exercise.name, _failure(other))
        return f"Your test passes the library's `{exercise.name}`, but not our solution, which is right, too. It fails{_failure(other)} It asks for something that the task does not promise, such as a certain error, or a certain dtype. Ask only what the exercise's text says."
    other = trial(exercise.right, otherwise_rounded)
    return "" if other.passed else TOO_TIGHT.format(exercise.name, _failure(other))
