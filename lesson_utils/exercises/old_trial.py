"""Calls a function that may do anything, and tells whether two of them did the same."""

import copy
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np

TIME_LIMIT = 5.0  # seconds for one call; a solution takes milliseconds
TOLERANCE = {"float32": 1e-4}  # relative and absolute: far above rounding, far below any mistake
DEFAULT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Outcome:
    """What one call led to."""

    value: Any = None
    error: Exception | None = None
    timed_out: bool = False
    where: str = ""  # the function's own line, for errors and time-outs
    changed: tuple[int, ...] = ()  # arguments changed in place
    borrowed: tuple[str, ...] = ()  # functions of the library that were called

    def results(self) -> tuple[Any, ...]:
        """The value as several results; a list of arrays counts as several, a list of numbers as one."""
        value = self.value
        if isinstance(value, tuple) or (isinstance(value, list) and any(isinstance(x, np.ndarray) for x in value)):
            return tuple(value)
        return (value,)

    def is_telling(self) -> bool:
        """Is this more than two different mistakes would have in common by chance, as NaN, zeros or an error?

        Only for outcomes that are `same` as one with numbers.
        """
        if self.error or self.timed_out:
            return False
        numbers = np.concatenate([np.ravel(plain(x)) for x in self.results()])
        return len(set(numbers[np.isfinite(numbers)].tolist()) - {0, 1}) > 1


class _TimeUp(BaseException):
    """Not an Exception: a learner's `except Exception` must not catch it."""


def attempt(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    time_limit: float | None = None,
    library: Sequence[Callable[..., Any]] = (),
) -> Outcome:
    """Call `function` on a copy of `arguments`.

    Args:
        time_limit: seconds until it is stopped; None for functions of our own, which then run at full speed.
        library: functions that it should not call; which of them it did call is noted, if there is a time limit.
    """
    given = copy.deepcopy(arguments)
    try:
        with np.errstate(all="ignore"), _watch(time_limit, library) as called:  # the check says more than a warning
            value = function(*given)
    except _TimeUp as error:
        return Outcome(timed_out=True, where=_where(function, error))
    except Exception as error:
        return Outcome(error=error, where=_where(function, error))
    pairs = zip(given, arguments, strict=True)
    changed = tuple(i for i, (now, before) in enumerate(pairs) if not np.array_equal(now, before))
    return Outcome(value, changed=changed, borrowed=tuple(called))


@contextmanager
def _watch(seconds: float | None, library: Sequence[Callable[..., Any]]) -> Iterator[list[str]]:
    """Raise _TimeUp in Python code that runs too long, and list the calls of `library`.

    Unlike signals and threads, this works in every kernel.
    """
    called: list[str] = []
    if seconds is None or sys.gettrace() is not None:  # a debugger is at work: take all the time you need
        yield called
        return
    deadline = time.monotonic() + seconds

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        if time.monotonic() > deadline:
            raise _TimeUp
        if event == "call":
            called.extend(f"{f.__module__.split('.')[1]}.{f.__name__}" for f in library if f.__code__ is frame.f_code)
        return watch

    sys.settrace(watch)
    try:
        yield called
    finally:
        sys.settrace(None)


def _where(function: Any, error: BaseException) -> str:
    """The last line of the learner's own code on the way to the error."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file:
            return f" in line {frame.lineno} of its cell: `{frame.line}`"
    return ""


def same(a: Outcome, b: Outcome) -> bool:
    """Did two functions do the same, right or wrong?"""
    if a.error or b.error or a.timed_out or b.timed_out:
        return a.timed_out == b.timed_out and type(a.error) is type(b.error) and _same_text(str(a.error), str(b.error))
    a_results, b_results = a.results(), b.results()
    if len(a_results) != len(b_results):
        return False
    try:
        arrays = [(np.asarray(plain(x)), np.asarray(plain(y))) for x, y in zip(a_results, b_results, strict=True)]
        return all(x.shape == y.shape and close(x, y) for x, y in arrays)
    except (TypeError, ValueError, OverflowError):  # not numbers at all
        return False


def _same_text(a: str, b: str) -> bool:
    """Equal, or one begins with the other: the error of `x /= y` lists one more shape than that of `x / y`."""
    return a == b or (bool(a and b) and (a.startswith(b) or b.startswith(a)))


def close(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal but for rounding."""
    tolerance = max(TOLERANCE.get(str(x.dtype), DEFAULT_TOLERANCE) for x in (a, b))
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def plain(x: Any) -> Any:
    """A Fraction or a Decimal as a float, everything else as it is."""
    try:
        return float(x) if isinstance(x, Fraction | Decimal) else x
    except (OverflowError, ValueError):  # as large as 10**400, or a signalling NaN
        return x
