"""Runs a learner's function beside the reference, and beside every mistake we know, to name the one that was made.

An exercise is specified by its reference implementation: no expected numbers are stored. A misconception is a wrong
implementation with a message. If the learner's results equal those of the wrong implementation in every case, that
message is shown, in place of "wrong".
"""

import copy
import dis
import html
import inspect
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from lesson_utils._html import details, to_html

TIME_LIMIT = 5.0  # seconds for one call; a solution takes milliseconds
TOLERANCE = {"float32": 1e-4}  # relative and absolute: far above rounding, far below any mistake
DEFAULT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Case:
    """One call: its arguments, and what is special about it, in words that fit behind "on"."""

    label: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Misconception:
    """A mistake with a name, the message that explains it, and an implementation that makes it."""

    name: str
    message: str
    wrong: Callable[..., Any]


@dataclass(frozen=True)
class Exercise:
    """What to write, how it is judged, and how to help. Texts may hold `code` in backticks."""

    name: str
    reference: Callable[..., Any]
    solution: Callable[..., Any]  # its source is shown on request, so it is written to be read
    cases: Callable[[np.random.Generator], Sequence[Case]]
    returns: tuple[str, ...]  # the names of what comes back, in order
    hints: tuple[str, ...]
    misconceptions: tuple[Misconception, ...]
    praise: str  # what a passing function has shown
    diagnose: Callable[..., str | None] = field(default=lambda *results: None)  # what any reader sees in wrong results

    def draw_cases(self) -> Sequence[Case]:
        return self.cases(np.random.default_rng(2017))

    def source(self) -> str:
        return textwrap.dedent(inspect.getsource(self.solution))


@dataclass(frozen=True)
class CheckResult:
    """What a check found. `passed` is None for a stub that nobody has worked on yet."""

    passed: bool | None
    message: str
    misconception: str | None = None
    hints: tuple[str, ...] = field(default=(), repr=False)
    solution: str = field(default="", repr=False)

    @property
    def headline(self) -> str:
        return {True: "Correct.", False: "Not yet.", None: "Not attempted yet."}[self.passed]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The message, and below it hints and solution, closed."""
        help_ = details(
            "Compare with our solution" if self.passed else "Show a solution",
            f"<pre>{html.escape(self.solution)}</pre>",
        )
        for n, hint in reversed(list(enumerate(self.hints, 1))):
            if not self.passed:  # each hint holds the next one, so nobody reads further than they need
                help_ = details(f"Hint {n} of {len(self.hints)}", f"<p>{to_html(hint)}</p>{help_}")
        colour = {True: "#007A5A", False: "#C14A00", None: "#6B6B6B"}[self.passed]
        box = f'<div role="status" style="border-left:4px solid {colour};padding:2px 12px">'
        box += f"<p><strong>{self.headline}</strong> {to_html(self.message)}</p>{help_}</div>"
        return {"text/html": box, "text/plain": f"{self.headline} {self.message}"}


def run(exercise: Exercise, function: Any, time_limit: float = TIME_LIMIT) -> CheckResult:
    """Judge `function` on the exercise's cases; whatever a learner wrote, the answer is a CheckResult."""

    def verdict(passed: bool | None, message: str, misconception: str | None = None) -> CheckResult:
        return CheckResult(passed, message, misconception, exercise.hints, exercise.source())

    if function is None or function is ...:
        return verdict(None, "Write the function above, then run this cell again.")
    if not callable(function):
        kind = type(function).__name__
        return verdict(False, f"This is a value ({kind}), not a function: hand over the function without calling it.")
    cases = exercise.draw_cases()
    if problem := _signature_problem(exercise, function, cases[0]):
        return verdict(False, problem)

    outcomes = []
    for case in cases:
        outcomes.append(_call(function, case, time_limit))
        if outcomes[-1].timed_out:  # once is enough
            break
    if _is_stub(function, outcomes[0]):
        return verdict(None, "Replace the `...` above with your code, run its cell, then run this one again.")
    faults = [_fault(exercise, case, outcome) for case, outcome in zip(cases, outcomes, strict=False)]
    fault = next(filter(None, faults), None)
    if fault is None:
        return verdict(True, exercise.praise)
    for known in exercise.misconceptions:
        if all(_same(_call(known.wrong, c, time_limit), o) for c, o in zip(cases, outcomes, strict=False)):
            return verdict(False, known.message, known.name)
    return verdict(False, fault)


@dataclass(frozen=True)
class _Outcome:
    """What one call led to."""

    value: Any = None
    error: Exception | None = None
    timed_out: bool = False
    where: str = ""  # the learner's line, for errors and time-outs
    changed: tuple[int, ...] = ()  # arguments changed in place


class _TimeUp(BaseException):
    """Not an Exception: a learner's `except Exception` must not catch it."""


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise _TimeUp in Python code that runs too long: unlike signals and threads, this works in every kernel."""
    if sys.gettrace() is not None:  # a debugger is at work: take all the time you need
        yield
        return
    deadline = time.monotonic() + seconds

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        if time.monotonic() > deadline:
            raise _TimeUp
        return watch

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(None)


def _call(function: Callable[..., Any], case: Case, time_limit: float) -> _Outcome:
    arguments = copy.deepcopy(case.arguments)
    try:
        with np.errstate(all="ignore"), _limit(time_limit):  # the message will say more than a warning
            value = function(*arguments)
    except _TimeUp as error:
        return _Outcome(timed_out=True, where=_where(function, error))
    except Exception as error:
        return _Outcome(error=error, where=_where(function, error))
    pairs = zip(arguments, case.arguments, strict=True)
    changed = tuple(i for i, (now, before) in enumerate(pairs) if not np.array_equal(now, before))
    return _Outcome(value, changed=changed)


def _where(function: Any, error: BaseException) -> str:
    """The last line of the learner's own code on the way to the error."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file:
            return f" in line {frame.lineno} of its cell: `{frame.line}`"
    return ""


def _signature_problem(exercise: Exercise, function: Any, case: Case) -> str | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return None
    try:
        signature.bind(*case.arguments)
    except TypeError:
        wanted = inspect.signature(exercise.reference)
        names = ", ".join(list(wanted.parameters)[: len(case.arguments)])
        return f"The check calls your function with `({names})`; yours takes `{signature}`."
    return None


def _is_stub(function: Any, outcome: _Outcome) -> bool:
    """Is there still a `...` where code should be?"""
    values = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
    if any(value is ... for value in values) or "ellipsis" in str(outcome.error):
        return True
    if outcome.value is not None or outcome.error or outcome.timed_out or not hasattr(function, "__code__"):
        return False
    idle = {"RESUME", "NOP", "LOAD_CONST", "POP_TOP", "RETURN_CONST", "RETURN_VALUE"}
    return all(step.opname in idle for step in dis.get_instructions(function))


def _parts(exercise: Exercise, value: Any) -> tuple[Any, ...] | None:
    """What came back, by result; None if the number of results is wrong."""
    if len(exercise.returns) == 1:
        return (value,)
    return tuple(value) if isinstance(value, tuple | list) and len(value) == len(exercise.returns) else None


def _fault(exercise: Exercise, case: Case, outcome: _Outcome) -> str | None:
    """What is wrong with an outcome, from the coarsest to the finest; None if nothing is."""
    if outcome.timed_out:
        return (
            f"Your function had not returned after some seconds, on {case.label}{outcome.where}. Does a loop never end?"
        )
    if outcome.error:
        kind = type(outcome.error).__name__
        return f"Your function raised {kind} on {case.label}{outcome.where}\n{kind}: {outcome.error}"
    if outcome.value is None:
        return "Your function returned None. Is a `return` missing at its end?"
    results = _parts(exercise, outcome.value)
    if results is None:
        return f"Your function should return {len(exercise.returns)} things: `return {', '.join(exercise.returns)}`."
    wanted = _parts(exercise, _call(exercise.reference, case, TIME_LIMIT).value)
    assert wanted is not None  # the reference returns what it says
    comparable = all(_comparable(got, want) for got, want in zip(results, wanted, strict=True))
    for name, got, want in zip(exercise.returns, results, wanted, strict=True):
        if problem := _difference(name, got, want):
            extra = exercise.diagnose(*results) if comparable else None
            return f"On {case.label}, {problem}" + (f"\n{extra}" if extra else "")
    if outcome.changed:
        names = list(inspect.signature(exercise.reference).parameters)
        changed = " and ".join(f"`{names[i]}`" for i in outcome.changed)
        return (
            f"The result is right, but your function changes its argument {changed} in place, and with it the "
            f"caller's data. Make a new array: `x = x - 1`, not `x -= 1`."
        )
    for name, got, want in zip(exercise.returns, results, wanted, strict=True):
        if isinstance(want, np.ndarray) and got.dtype != want.dtype:
            return (
                f"The numbers are right; one thing is left. On {case.label}, {want.dtype} went in, and `{name}` came "
                f"out as {got.dtype}. `np.sqrt(5)` makes a float64 (`math.sqrt(5)` does not), and so does "
                f"`np.zeros(n)` (add `dtype=x.dtype`)."
            )
    return None


def _comparable(got: Any, want: Any) -> bool:
    return isinstance(got, np.ndarray) and got.shape == np.shape(want) and got.dtype.kind == "f"


def _difference(name: str, got: Any, want: Any) -> str | None:
    if not isinstance(got, np.ndarray | np.generic | float | int):
        return f"`{name}` is a {type(got).__name__}; expected a NumPy array."
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind not in "biuf":
        return f"`{name}` has dtype {got.dtype}; expected real numbers."
    if got.shape != want.shape:
        return f"`{name}` has shape {got.shape}; expected {want.shape}."
    if np.isnan(got).any() and not np.isnan(want).any():
        return f"`{name}` holds NaN (not a number): somewhere 0 was divided by 0, or ∞ met ∞."
    if _close(got, want):
        return None
    with np.errstate(all="ignore"):
        at = np.unravel_index(np.nanargmax(np.abs(got.astype(float) - want)), want.shape)
    entry = f"{name}[{', '.join(map(str, at))}]" if want.ndim else name
    return f"`{entry}` is {got[at]:.4g}; expected {want[at]:.4g}."


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    tolerance = max(TOLERANCE.get(str(x.dtype), DEFAULT_TOLERANCE) for x in (a, b))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def _same(a: _Outcome, b: _Outcome) -> bool:
    """Did two functions do the same, right or wrong?"""
    if a.error or b.error or a.timed_out or b.timed_out:
        return repr(a.error) == repr(b.error) and a.timed_out == b.timed_out
    parts_a, parts_b = ((x if isinstance(x, tuple) else (x,)) for x in (a.value, b.value))
    if len(parts_a) != len(parts_b):
        return False
    try:
        arrays = [(np.asarray(x), np.asarray(y)) for x, y in zip(parts_a, parts_b, strict=True)]
        return all(x.shape == y.shape and _close(x, y) for x, y in arrays)
    except (TypeError, ValueError):  # not numbers at all
        return False
