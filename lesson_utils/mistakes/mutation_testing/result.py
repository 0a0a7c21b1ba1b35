"""`check.finds_bugs(my_test)`: a learner's test, judged by the bugs that it finds."""

import html
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.html_parts import details, to_html
from lesson_utils.mistakes.judge import _stub_problem
from lesson_utils.mistakes.mutation_testing.mutants import Bug, bugs_of
from lesson_utils.mistakes.mutation_testing.spy import Run, run
from lesson_utils.mistakes.mutation_testing.subject import subject, takes_one
from lesson_utils.mistakes.mutation_testing.survivors import AGAIN, Hunt
from lesson_utils.mistakes.run.sandbox import TIME_LIMIT, kernel_as_before, mend_modules, quiet
from lesson_utils.mistakes.verdict import COLOURS, CheckResult

SLOW = 1.5  # seconds of computing for one run of a test; a hundred have to be waited for
SHOWN = 4  # survivors of one reason that are described; more are named


@dataclass(frozen=True)
class TestResult(CheckResult):
    """What `check.finds_bugs` found out about a test."""

    __test__ = False  # pytest: this is none

    found: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()  # of the test, by name
    groups: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)  # why, and which
    more: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # titles and code, to be opened

    @property
    def total(self) -> int:
        return len(self.found) + len(self.survivors)

    @property
    def text(self) -> str:
        lines = [self.message]
        for why, which in self.groups:
            lines += [why, *(f"  · {bug}" for bug in which)]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The message, and below it the survivors' code, closed."""
        box = f'<div role="status" style="border-left:4px solid {COLOURS[self.passed]};padding:2px 12px">'
        box += f"<p><strong>{self.headline}</strong> {_linked(to_html(self.message))}</p>{self._squares()}"
        for why, which in self.groups:
            items = "".join(f"<li>{_linked(to_html(bug))}</li>" for bug in which)
            box += f'<p style="margin:8px 0 0">{to_html(why)}</p><ul style="margin:2px 0 0">{items}</ul>'
        box += "".join(details(html.escape(title), f"<pre>{html.escape(code)}</pre>") for title, code in self.more)
        return {"text/html": f"{box}</div>", "text/plain": f"{self.headline} {self.text}"}

    def _squares(self) -> str:
        """A square for each bug: filled if it was found."""
        if not self.total:
            return ""
        style = "display:inline-block;width:14px;height:14px;margin-right:3px;border:2px solid"
        found, survives = COLOURS[True], COLOURS[False]
        squares = f'<span style="{style} {found};background:{found}"></span>' * len(self.found)
        squares += f'<span style="{style} {survives}"></span>' * len(self.survivors)
        return f'<p role="img" aria-label="{len(self.found)} of {self.total} bugs found" style="margin:4px 0;line-height:1">{squares}</p>'


def _linked(text: str) -> str:
    """`owner/name#7` as a link."""
    return re.sub(
        r"\b([\w.-]+/[\w.-]+)#(\d+)", r'<a href="https://github.com/\1/issues/\2" target="_blank">\g<0></a>', text
    )


def finds_bugs(test: Any, of: Any = None, time_limit: float = TIME_LIMIT) -> TestResult:
    """Run a learner's test on the right function and on a bank of bugs; whatever it is, the answer is a TestResult.

    Args:
        test: a function of one argument, the function under test, which fails (by `assert`) if that is wrong.
        of: the exercise's name; else the test's parameter says it.
    """
    if isinstance(test, str) and callable(of):
        test, of = of, test
    overwritten = mend_modules()
    result = _judge(test, of, time_limit)
    also = dict.fromkeys([*overwritten, *mend_modules()])
    if not also:
        return result
    names = ", ".join(f"`{name}`" for name in also)
    message = f"{result.message}\nBy the way: something else had been put in the place of {names}. What belongs there is back."
    return replace(result, message=message)


def _judge(test: Any, of: Any, time_limit: float) -> TestResult:
    if test is None or test is ...:
        return TestResult(
            None, "Write your test above, then hand it over without calling it: `check.finds_bugs(my_test)`."
        )
    if problem := _no_test(test):
        return TestResult(False, problem)
    exercise = subject(test, of)
    if isinstance(exercise, str):
        return TestResult(False, exercise)
    first = run(test, exercise, exercise.right, time_limit=time_limit)
    if todo := _stub_problem(test, first.outcome):
        todo = todo.replace("your code", "your test").replace("function's", "test's")
        return TestResult(None, f"{todo}, run its cell, then run this one again.")
    with kernel_as_before(show=False), quiet():
        return _verdict(Hunt(test, exercise, first), time_limit)


def _no_test(test: Any) -> str | None:
    if isinstance(test, type):
        return "This is a class. Write a plain function: `def my_test(attention):`, with `assert` in it."
    if isinstance(test, bool | np.bool_):
        return f"This is {bool(test)}, no test: hand over the function without calling it, `check.finds_bugs(my_test)`."
    if not callable(test):
        return (
            f"This is a value ({type(test).__name__}), not a test: hand over the function, `check.finds_bugs(my_test)`."
        )
    if inspect.iscoroutinefunction(test) or inspect.isasyncgenfunction(test):
        return "`async def` makes a function that has to be awaited. Leave out `async`."
    if inspect.isgeneratorfunction(test):
        return "`yield` makes a generator of your test: nothing in it runs. Leave out `yield`."
    if not takes_one(test):
        return (
            f"Your test is given one thing, the function under test: `def my_test(attention):`. Yours takes "
            f"`{inspect.signature(test)}`. Everything else that it needs, it makes itself."
        )
    return None


def _verdict(hunt: Hunt, time_limit: float) -> TestResult:
    exercise, first = hunt.exercise, hunt.first
    if first.outcome.timed_out:
        return TestResult(
            False,
            f"Your test had not come to an end after {time_limit:g} seconds, on the right function{first.outcome.where}. Are the inputs very large, or does a loop never end?",
        )
    if not first.passed:
        return TestResult(False, _fails_right(hunt))
    if not first.calls:
        return TestResult(False, _never_called(hunt))
    if first.mended:
        names = ", ".join(f"`{name}`" for name in first.mended)
        return TestResult(
            False,
            f"Your test puts something else in the place of {names}, and so changes the function under test with it. Leave the library as it is. (What belongs there is back.)",
            "changes the library",
        )
    if first.seconds > SLOW:
        return TestResult(
            False,
            f"Your test takes {first.seconds:.1f} seconds on the right function, and the check runs it a hundred times. Bugs show on arrays of a few numbers: make the inputs smaller.",
            "slow",
        )
    for what, other in hunt.others():
        if not other.passed:
            name = "too tight" if what == "rounded otherwise" else "asks too much"
            return TestResult(False, _fails_other(exercise, what, other), name)
    if hunt.draws and (failed := hunt.failures()):
        return TestResult(
            False,
            f"Your test calls the function with other numbers each time that it runs, and fails on the right one in {failed} of {AGAIN} runs. A test "
            "that fails at times is soon ignored. Give it a seed, `rng = np.random.default_rng(0)`, and ask only what must hold.",
            "fails at times",
        )
    return _counted(hunt)


def _counted(hunt: Hunt) -> TestResult:
    exercise = hunt.exercise
    found, survivors, at_times = hunt.found, hunt.survivors, hunt.at_times
    total = len(hunt.runs)
    result = TestResult(
        not survivors and not at_times,
        f"Your test passes the right `{exercise.name}`, and finds all {total} bugs.",
        found=tuple(b.name for b in found),
        survivors=tuple(b.name for b in (*survivors, *at_times)),
        more=(*_codes(survivors), *_which_line(hunt)),
    )
    if result.passed:
        return result
    count = f"finds {len(found)} of {total} bugs" if found else f"finds none of {total} bugs"
    message = f"Your test passes the right `{exercise.name}`, and {count}."
    groups = []
    if survivors:
        message += f" {len(survivors)} survive:" if len(survivors) > 1 else " One survives:"
        groups = [(f"{reason.text}.", _described(reason.bugs), reason.name) for reason in hunt.reasons()]
    if at_times:
        text = (
            "Your test calls the function with other numbers each time that it runs, and finds these in some runs only. Give it a seed, "
            "`rng = np.random.default_rng(0)`, and inputs that show them each time."
        )
        groups.append((text, _described(at_times), "no seed"))
    mistakes = tuple(dict.fromkeys(name for _, _, name in groups))
    pairs = tuple((why, which) for why, which, _ in groups)
    return replace(result, message=message, misconception=mistakes[0], mistakes=mistakes, groups=pairs)


def _described(bugs: Sequence[Bug]) -> tuple[str, ...]:
    """A line for each of the first, and the names of the others."""
    lines = [_in_words(bug) for bug in bugs[: SHOWN if len(bugs) > SHOWN + 1 else None]]
    others = [bug.name for bug in bugs[len(lines) :]]
    return (*lines, ", ".join(others)) if others else tuple(lines)


def _in_words(bug: Bug) -> str:
    words = f"{bug.name}: {bug.change}" if bug.change else bug.name
    return f"{words}. Seen: {bug.seen[0]} ({bug.seen[1]})" if bug.seen else words


def _codes(bugs: Sequence[Bug]) -> tuple[tuple[str, str], ...]:
    if not bugs:
        return ()
    return (("The code of those that survive", "\n\n".join(f"# {bug.name}\n{bug.source}" for bug in bugs)),)


def _which_line(hunt: Hunt) -> tuple[tuple[str, str], ...]:
    """Which line of the test found which bugs."""
    lines: dict[str, list[str]] = {}
    for bug in hunt.found:
        outcome = hunt.runs[bug][0].outcome
        where = re.sub(r"^ in (line \d+) of its cell: `(.*)`$", r"\1: \2", outcome.where) or "elsewhere"
        lines.setdefault("no end" if outcome.timed_out else where, []).append(bug.name)
    text = "\n".join(f"{line}\n    {', '.join(names)}" for line, names in sorted(lines.items()))
    return (("Which line found what", text),) if text else ()


# --- When the right function does not pass ---------------------------------------------------------------------------


def _said(outcome: Any) -> str:
    """The error's kind and first words."""
    error = outcome.error
    if isinstance(error, SystemExit):
        return "it leaves Python (`exit`)"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"Mismatched|Max absolute|x and y|\(shapes", line)] or lines[:2]
    words = "; ".join(told)[:200]
    if isinstance(error, AssertionError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _fails_right(hunt: Hunt) -> str:
    exercise, outcome = hunt.exercise, hunt.first.outcome
    said = _said(outcome)
    message = f"Your test fails on the right `{exercise.name}`{outcome.where}"
    message += f" ({said})." if said else "."
    several = len(exercise.returns) > 1
    returns = " and ".join(f"`{name}`" for name in exercise.returns)
    if several and isinstance(outcome.error, AttributeError | TypeError) and "tuple" in str(outcome.error):
        left = ", ".join(exercise.returns)
        return f"{message} The function returns {len(exercise.returns)} things: `{left} = {exercise.name}(...)`."
    if re.match(r"assert (np|numpy)\.testing\.", outcome.line):
        return f"{message} `np.testing` asserts by itself, and returns None. Leave out the `assert` in front of it."
    if isinstance(outcome.error, AssertionError) and (why := hunt.too_tight()):
        return f"{message} {why}"
    passes = [bug for bug in bugs_of(exercise) if run(hunt.test, exercise, bug.function).passed]
    if passes and isinstance(outcome.error, AssertionError):
        bug = passes[0]
        message += f"\nBut it passes with this bug. {_in_words(bug)}. Is that what it expects?"
    elif hunt.first.calls and hunt.first.calls[-1].error is None:
        message += f"\nThe last call gave {returns}: {_shapes(hunt.first.calls[-1].value)}."
    elif hunt.first.calls:
        message += f"\nWhat it was called with: {_shapes(hunt.first.calls[-1].arguments)}. It is called as `{exercise.name}({exercise.takes})`."
    return message


def _shapes(value: Any) -> str:
    values = value if isinstance(value, tuple) else (value,)
    return ", ".join(f"an array {x.shape}" if isinstance(x, np.ndarray) and x.ndim else f"{x!r:.60}" for x in values)


def _fails_other(exercise: Exercise, what: str, other: Run) -> str:
    said = _said(other.outcome)
    tail = f"It fails{other.outcome.where}{f' ({said})' if said else ''}."
    if what == "rounded otherwise":
        return (
            f"Your test passes the right `{exercise.name}`, but not one that is as right and rounds otherwise. {tail} With "
            "another order of the sums, or `einsum`, the last digits are others. Compare with `np.allclose(a, b)`, which allows for that."
        )
    if other.calls and any(isinstance(x, list | tuple) for x in other.calls[-1].arguments) and other.calls[-1].error:
        return f"Your test passes lists to `{exercise.name}`; the task promises arrays only, and another right solution fails. {tail} Write `np.array(...)` around them."
    return (
        f"Your test passes the library's `{exercise.name}`, but not our solution, which is right, too. {tail} It asks "
        "for something that the task does not promise, such as a certain error, or a certain dtype. Ask only what the exercise's text says."
    )


def _never_called(hunt: Hunt) -> str:
    exercise = hunt.exercise
    parameter = next(iter(inspect.signature(hunt.test).parameters), "the function")
    code = getattr(hunt.test, "__code__", None)
    others = {exercise.function_name, exercise.name, *(f.__name__ for f in exercise.library)}
    called = sorted(others & set(code.co_names)) if code else []
    instead = f" It calls `{called[0]}`, another function." if called else ""
    return (
        f"Your test never calls the function that it is given, `{parameter}`, so it finds no bug.{instead} Call "
        f"`{parameter}({exercise.takes.split('=')[0].strip() if exercise.takes.count(',') == 0 else '…'})`, and assert what must hold."
    )
