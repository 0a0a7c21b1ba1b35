"""A learner's test, run on the right function and on each of its mutants: how many does it find, and what hides the others?"""

import difflib
import inspect
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.judge import stub_problem
from lesson_utils.mistakes.mutation_testing.mutants import Bug, Published, bugs_of
from lesson_utils.mistakes.mutation_testing.result import TestResult
from lesson_utils.mistakes.run.kernel import kernel_as_before, mend_modules
from lesson_utils.mistakes.run.limits import TIME_LIMIT, TimeUp, ending, left
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import attempt, copied, quick, quiet

SEEDS = 4  # with so many, the right function must pass
SLOW = 0.2  # seconds of computing for one run of a test; dozens have to be waited for
ALTOGETHER = 30.0  # seconds by the clock on the wall; a busy machine needs some for dozens of quick runs
DESCRIBED = 4  # survivors that are described, of those hidden by one thing
TOO_SLOW = "Your test takes {:.2g} seconds on the right function, and the check runs it dozens of times. Bugs show on arrays of a few numbers: make the inputs smaller."

Function = Callable[..., Any]


@dataclass
class Call:
    """One call of the function under test, and what it returned."""

    arguments: tuple[Any, ...]
    value: Any = None


@dataclass
class Run:
    """One run of a test: what came of it, and the calls of the function under test that raised no error."""

    outcome: Outcome
    calls: list[Call]
    asked: bool  # whether that function was called at all
    mended: list[str]  # what the test had overwritten of NumPy and the library
    seconds: float  # of computing

    @property
    def passed(self) -> bool:
        return self.outcome.error is None and not self.outcome.timed_out


class _Once:
    """The test, with its function. It has the test's code, since errors are looked for in that code's file."""

    def __init__(self, test: Function, function: Function, seed: int) -> None:
        self.test, self.function, self.seed = test, function, seed
        self.__code__ = getattr(test, "__code__", None)

    def __call__(self) -> Any:
        random.seed(self.seed)
        np.random.seed(self.seed)  # noqa: NPY002
        try:
            return self.test(self.function)
        except (Exception, SystemExit, GeneratorExit, KeyboardInterrupt, TimeUp):
            raise
        except BaseException as error:  # as `pytest.fail` raises it
            raise AssertionError(str(error)) from error


@dataclass
class Trial:
    """A test of an exercise's function, to be run on any function."""

    test: Function
    exercise: Exercise

    def __call__(self, function: Function, seed: int = 0, seconds: float = TIME_LIMIT, spoil: Any = None) -> Run:
        """Run the test; another `seed` gives other numbers, unless it has one of its own. `spoil` alters what it gets."""
        exercise, calls, asked = self.exercise, list[Call](), list[bool]()
        signature = inspect.signature(exercise.function())

        def under_test(*arguments: Any, **keywords: Any) -> Any:
            asked.append(True)
            try:
                bound = signature.bind(*arguments, **keywords)
            except TypeError as error:
                raise TypeError(f"{error}; it is called as `{exercise.name}({exercise.takes})`") from None
            bound.apply_defaults()
            given = tuple(copied(bound.args))
            value = function(*bound.args)
            results = value if isinstance(value, tuple) else (value,)
            if spoil:
                results = tuple(spoil(x) if np.ndim(x) else type(x)(spoil(np.asarray(x))) for x in results)
                value = results if isinstance(value, tuple) else results[0]
            kept = tuple(copied(results))  # the test may write into what it gets
            calls.append(Call(given, kept if isinstance(value, tuple) else kept[0]))
            return value

        began = time.process_time()
        outcome = attempt(_Once(self.test, under_test, seed), (), seconds)
        return Run(outcome, calls, bool(asked), mend_modules(), time.process_time() - began)


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
    exercise = _no_test(test) or _subject(test, of, exercises)
    if isinstance(exercise, str):
        return TestResult(False, exercise)
    trial = Trial(test, exercise)
    first = trial(exercise.right)
    if todo := stub_problem(test, first.outcome):
        todo = todo.replace("your code", "your test").replace("function's", "test's")
        return TestResult(None, f"{todo}, run its cell, then run this one again.")
    with kernel_as_before(show=False), quiet():
        bugs = bugs_of(exercise, published)
        if refused := _cannot_be_used(trial, first, bugs) or _asks_too_much(trial):
            return TestResult(False, refused)
        found = [bug for bug in bugs if not _passes(trial, bug, max(0.5, 20 * first.seconds))]
        if left() < 0:
            return TestResult(False, TOO_SLOW.format(first.seconds))
        if not (last := trial(exercise.right)).passed:
            return TestResult(
                False,
                f"Your test does not tell right from wrong: the right `{exercise.name}` passes at first, and fails later{_failure(last)} A test must not count its runs, or keep anything else from one run to the next.",
            )
        return _counted(trial, first, found, [bug for bug in bugs if bug not in found])


def _passes(trial: Trial, bug: Bug, seconds: float) -> bool:
    """Say whether a test passes on a bug. What was stopped is run once more: the machine itself may have stood still."""
    runs = (trial(bug.fault.program, seconds=seconds) for _ in range(2) if left() > 0)
    return next((run.passed for run in runs if not run.outcome.timed_out), False)


def _counted(trial: Trial, first: Run, found: Sequence[Bug], survivors: Sequence[Bug]) -> TestResult:
    """Say how many bugs a test finds, which survive, and what in the test hides these."""
    show = [bug for bug in survivors if any(_differs(bug, call) for call in first.calls)]
    hidden = [bug for bug in survivors if bug not in show]
    why = [next(row for row in ABOUT_ASSERTS if row[2](trial))[:2]] if show else []
    inputs = [row[:2] for row in ABOUT_INPUTS if any(row[2](first.calls, bug.cases) for bug in hidden)]
    groups = [(text, [f"One {bug.in_words}" for bug in show[:DESCRIBED]]) for _, text in why]
    if hidden:
        text = " ".join(text for _, text in (*inputs, RIGHT_ALL_THE_SAME))
        groups.append((text, [f"One {bug.in_words}" for bug in hidden[:DESCRIBED]]))
    total = len(found) + len(survivors)
    count = f"{len(found) or 'none'} of {total}" if survivors else f"all {total}"
    survive = f" {len(survivors)} survive:" if len(survivors) > 1 else " One survives:" if survivors else ""
    code = "\n\n".join(f"# {bug.name}\n{bug.source}" for bug in survivors)
    return TestResult(
        not survivors,
        f"Your test passes the right `{trial.exercise.name}`, and finds {count} bugs.{survive}",
        found=tuple(bug.name for bug in found),
        survivors=tuple(bug.name for bug in survivors),
        mistakes=tuple(name for name, _ in (*why, *inputs)),
        groups=tuple((text, tuple(lines)) for text, lines in groups),
        more=(("The code of all that survive", code),) if code else (),
    )


def _differs(bug: Bug, call: Call) -> bool:
    return not same(quick(bug.fault.program, call.arguments), Outcome(call.value))


# --- What hides bugs ------------------------------------------------------------------------------------------------------


def _passes_with(spoil: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Callable[[Trial], bool]:
    """Make the experiment whether a test passes on right results that are spoiled, those of one shape alike."""
    return lambda trial: (
        trial(trial.exercise.right, spoil=lambda a: spoil(a, np.random.default_rng(a.size)).astype(a.dtype)).passed
    )


def _drawn(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=a.shape) > 0 if a.dtype == bool else 9 * rng.normal(size=a.shape)


def _lacks(has: Callable[[Call | Case], bool]) -> Callable[[Sequence[Call], Sequence[Case]], bool]:
    """Make the experiment whether no call has what each case has in which the bug shows."""
    return lambda calls, cases: bool(calls) and not any(map(has, calls)) and all(map(has, cases))


def _arrays(call: Call | Case) -> list[np.ndarray]:
    return [x for x in call.arguments if isinstance(x, np.ndarray)]


def _sizes_differ(call: Call | Case) -> bool:
    sizes = {n for x in _arrays(call) for n in x.shape[-2:]}
    return len(sizes or {x for x in call.arguments if type(x) is int}) > 1


def _axes(call: Call | Case) -> int:
    return max(sum(n > 1 for n in np.shape(x)) for x in call.arguments if not isinstance(x, list | tuple))


# The name of what hides bugs, in a sentence, and the experiment. Of those about asserts, the first that holds is given.
ABOUT_ASSERTS = (
    ("no assert", "No `assert` that is reached in your test can fail, whatever comes back. What a test prints, compares or returns, nobody looks at, and the function compared with itself is always right. Write `assert` in front of what must hold, without brackets around it: `assert (a, b)` asserts a tuple, which is always true.", lambda trial: all(_passes_with(spoil)(trial) for spoil in (_drawn, lambda a, rng: a.ravel()[:0]))),
    ("random results pass", "Random results of the right shapes pass, too: no `assert` looks at the numbers. Compare them with numbers that you computed in another way.", _passes_with(_drawn)),
    ("too loose", "Results with errors of 5 % pass, too. Compare whole arrays, with a small tolerance, as in `np.allclose(a, b, atol=1e-6)`.", _passes_with(lambda a, rng: a + 0.05 * np.abs(a).max(initial=0) * rng.uniform(-1, 1, a.shape))),
    ("only a sum", "Results whose entries have changed places pass, too: your asserts look at a sum, a mean, a maximum or the like. Compare entry by entry.", _passes_with(lambda a, rng: rng.permutation(a.ravel()).reshape(a.shape))),
    ("too narrow", "The results are wrong on your inputs, and what your asserts ask is true all the same. Compare all numbers with some that you computed in another way.", lambda trial: True),
)  # fmt: skip
RIGHT_ALL_THE_SAME = (
    "inputs",
    "On your inputs these are right all the same. Call the function on inputs like those that are named here, too.",
)
ABOUT_INPUTS = (
    ("only errors", "Every call makes the right function raise an error, so no result is looked at.", lambda calls, cases: not calls),
    ("no mask", "No call has a mask that hides something.", _lacks(lambda call: any(x.dtype == bool and not x.all() for x in _arrays(call)))),
    ("always a mask", "Every call has a mask, or whatever else may be left out.", _lacks(lambda call: any(x is None for x in call.arguments))),
    ("no large numbers", "No number in your inputs is large: try some above 1000.", _lacks(lambda call: any(np.abs(x).max(initial=0) > 500 for x in _arrays(call)))),
    ("equal numbers", "All numbers of an array are equal: draw them at random.", _lacks(lambda call: any(np.unique(x).size > 1 for x in _arrays(call)))),
    ("equal sizes", "All sizes are equal in each call, so no axis or size can be the wrong one: make them different.", _lacks(_sizes_differ)),
    ("one sample", "No call has as many axes (of more than 1) as the cases in which some of these bugs show: add a leading axis or two, as a batch and heads are.", lambda calls, cases: bool(calls) and max(map(_axes, calls)) < min(map(_axes, cases))),
)  # fmt: skip


# --- Tests that don't get as far as the bugs ------------------------------------------------------------------------------


LATE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _no_test(test: Any) -> str:
    """Say why something is no test; "" if it is one."""
    if isinstance(test, type) or not callable(test):
        what = "a class" if isinstance(test, type) else f"a value ({type(test).__name__})"
        return f"This is {what}, not a test. Write a plain function, `def my_test(attention):`, and hand it over without calling it, `check.finds_bugs(my_test)`."
    if getattr(getattr(test, "__code__", None), "co_flags", 0) & LATE:
        return "Nothing in your test runs when it is called: `async def` and `yield` make something of it that waits. Leave them out."
    try:
        inspect.signature(test).bind(test)
    except TypeError:
        return f"Your test is given one thing, the function under test: `def my_test(attention):`. Yours takes `{inspect.signature(test)}`. Everything else that it needs, it makes itself."
    except ValueError:  # Python cannot say
        pass
    return ""


def _subject(test: Function, of: Any, exercises: Mapping[str, Exercise]) -> Exercise | str:
    """Return the exercise that `of` names, or else the test's parameter; or say that there is none of this name.

    An exercise has its own name, its function's name in the notebook, and the library's name for it.
    """
    name = of if isinstance(of, str) else getattr(of, "__name__", "")
    if of is None:
        name = next(iter(inspect.signature(test).parameters), "")
    elif not name:
        return f'The second argument is the name of the function under test, in quotes, such as `"attention"`; yours is a {type(of).__name__}.'
    if name in exercises:
        return exercises[name]
    for exercise in exercises.values():
        library = [f for f in (exercise.reference, *exercise.library) if f and not isinstance(f, partial)]
        if name.removeprefix("my_") in (exercise.name, exercise.function_name, *(f.__name__ for f in library)):
            return exercise
    near = difflib.get_close_matches(name, exercises, 3, 0.5)
    meant = f" Did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
    return f'No exercise is called `{name}`.{meant} Name the parameter of your test after the function that it tests, as in `def my_test(attention):`, or name it: `check.finds_bugs(my_test, "attention")`. There are: {", ".join(exercises)}.'


def _cannot_be_used(trial: Trial, first: Run, bugs: Sequence[Bug]) -> str:
    """Say why a test does not pass the right function, or cannot be run on bugs; "" if it can."""
    if first.outcome.timed_out:
        return f"Your test had not come to an end after some seconds, on the right function{first.outcome.where}. Are the inputs very large, or does a loop never end?"
    if not first.passed:
        return (
            f"Your test fails on the right `{trial.exercise.name}`{_failure(first)} {_hint(trial, first, bugs)}".strip()
        )
    if not first.asked:
        parameter = next(iter(inspect.signature(trial.test).parameters), "the function")
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


def _hint(trial: Trial, first: Run, bugs: Sequence[Bug]) -> str:
    """Say what may be wrong in a test that the right function does not pass."""
    error, line, exercise = first.outcome.error, first.outcome.line, trial.exercise
    names = ", ".join(exercise.returns)
    if len(exercise.returns) > 1 and "tuple" in str(error):
        return f"The function returns {len(exercise.returns)} things: `{names} = {exercise.name}(...)`."
    if re.search(r"assert (np|numpy)\.testing\.", line):
        return "`np.testing` asserts by itself, and returns None. Leave out the `assert` in front of it."
    if isinstance(error, AssertionError):
        bug = next((bug for bug in bugs if trial(bug.fault.program).passed), None)
        said = f"\nBut it passes a wrong one, which {bug.in_words} Is that what it expects?" if bug else ""
        if re.search(r"==|array_equal", line) and "shape" not in line:
            said += "\nIf it compares computed numbers by `==`: their last digits may differ, and `np.allclose(a, b)` allows for that."
        if said:
            return said
    results = Outcome(first.calls[-1].value).results() if first.calls else ()
    shapes = [x.shape for x in results if isinstance(x, np.ndarray)]
    return f"\nThe last call gave {names} of the shapes {shapes}." if shapes else ""


def _asks_too_much(trial: Trial) -> str:
    """Say why the right function does not pass each time, or another one does not: our solution, or another spelling."""
    exercise = trial.exercise
    if not all(trial(exercise.right, seed).passed for seed in range(1, SEEDS)):
        return "Your test calls the function with other numbers each time that it runs, and fails on the right one at times. Such a test is soon ignored. Give it a seed, `rng = np.random.default_rng(0)`, and ask only what must hold."
    for way in [{}, *({step: text} for step, texts in exercise.spellings.items() for text in texts)]:
        if not (other := trial(exercise.program(way))).passed:
            return f"Your test passes the library's `{exercise.name}`, but not another one that is right, too. It fails{_failure(other)} It asks for something that the task does not promise. That may be the last digits (`np.allclose(a, b)` allows for them), lists in the place of arrays, a certain error or dtype, or the row of a mask that hides everything."
    return ""
