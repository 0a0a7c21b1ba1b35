"""Calls a function that may do anything, leaves the kernel as it was, and tells whether two calls did the same."""

import contextlib
import inspect
import io
import linecache
import math
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from lesson_utils.mistakes.run.numpy_patched import tamed

TIME_LIMIT = 5.0  # seconds for one call; a solution takes milliseconds
TOLERANCE = {"float32": 1e-4, "float16": 1e-2}  # relative and absolute: far above rounding, far below any mistake
DEFAULT_TOLERANCE = 1e-7
PRINTED = 2000  # characters of what an answer prints that are shown


@dataclass(frozen=True)
class Outcome:
    """What one call led to."""

    value: Any = None
    error: BaseException | None = None
    timed_out: bool = False
    where: str = ""  # the function's own line, for errors and time-outs
    line: str = ""  # its text
    variables: Mapping[str, Any] = field(default_factory=dict)  # the function's own, at the error
    changed: tuple[int, ...] = ()  # arguments changed in place
    borrowed: tuple[str, ...] = ()  # functions of the library that were called

    def results(self) -> tuple[Any, ...]:
        """The value as several results; a list of arrays counts as several, a list of numbers as one."""
        value = self.value
        if isinstance(value, tuple) or (isinstance(value, list) and any(isinstance(x, np.ndarray) for x in value)):
            return tuple(value)
        return (value,)

    def is_telling(self) -> bool:
        """Is this more than two different mistakes would have in common by chance, as NaN, zeros or an error?"""
        if self.error or self.timed_out:
            return False
        try:
            numbers = np.concatenate([np.ravel(plain(x)).astype(float) for x in self.results()])
        except (TypeError, ValueError, OverflowError):
            return False
        if all(np.asarray(x).dtype == bool for x in self.results()):
            return 0 < numbers.sum() < numbers.size
        other = numbers[np.isfinite(numbers) & (numbers != 0) & (numbers != 1)]
        different = min(other.size, 1) + bool((other != other[:1]).any())  # no set: there may be millions of them
        return different >= min(2, numbers.size)


class TimeUp(BaseException):
    """Not an Exception: a learner's `except Exception` must not catch it."""


def copied(arguments: Sequence[Any]) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]


def finite(value: Any) -> Any:
    """What a function returned, as it is.

    Raises:
        ValueError: it is a list that contains itself, as `found.append(found)` makes it: NumPy would unpack it for ever.
    """

    def deep(value: Any, left: int) -> bool:
        return isinstance(value, list | tuple) and (left == 0 or any(deep(item, left - 1) for item in value[:2]))

    if deep(value, 12):
        raise ValueError("the list that comes back contains itself")
    return value


def quick(function: Callable[..., Any], arguments: Sequence[Any]) -> Outcome:
    """Call one of our own variants on a copy of `arguments`; use within `quiet` and `stopped`.

    A variant may hold a learner's lines. If one of them is `np.seterr`, it ends with this call.
    """
    try:
        with np.errstate(all="ignore"):
            return Outcome(finite(function(*copied(arguments))))
    except Exception as error:
        return Outcome(error=error)


@contextmanager
def quiet(left: float = math.nan) -> Iterator[None]:
    """Wrong variants divide by 0 and more: the check says more than a warning. What `np.empty` makes holds `left`."""
    with np.errstate(all="ignore"), warnings.catch_warnings(), tamed(left):
        warnings.simplefilter("ignore")
        yield


def attempt(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    time_limit: float = TIME_LIMIT,
    library: Sequence[Callable[..., Any]] = (),
    left: float = math.nan,
) -> Outcome:
    """Call a learner's `function` on a copy of `arguments`.

    Args:
        time_limit: seconds until it is stopped.
        left: what `np.empty` holds.
        library: functions that it should not call; which of them it did call is noted.
    """
    given = copied(arguments)
    called: list[str] = []
    try:
        with quiet(left), kernel_as_before(), watched(called, library), stopped(time_limit):
            value = finite(function(*given))
    except TimeUp as error:
        where, line, _ = _where(function, error)
        return Outcome(timed_out=True, where=where, line=line)
    except (Exception, SystemExit, GeneratorExit) as error:
        where, line, variables = _where(function, error)
        return Outcome(error=error, where=where, line=line, variables=variables)
    if inspect.iscoroutine(value):
        value.close()  # or Python warns that nobody awaits it
    return Outcome(value, changed=changed(given, arguments), borrowed=tuple(dict.fromkeys(called)))


def changed(given: Sequence[Any], before: Sequence[Any]) -> tuple[int, ...]:
    """Which arguments were changed in place."""
    pairs = enumerate(zip(given, before, strict=True))
    return tuple(i for i, (now, then) in pairs if isinstance(now, np.ndarray) and not _equal(now, then))


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@contextmanager
def stopped(seconds: float, busy: float = 1) -> Iterator[None]:
    """Raise TimeUp in code that runs longer; on a busy machine, where it waits, up to `busy` times as long by the clock.

    On Unix, in the main thread, by a signal: it ends loops without a body, and C code that looks for signals (sleep).
    Elsewhere by a trace function, between two instructions of Python.
    """
    if sys.gettrace() is not None and not hasattr(sys.gettrace(), "ours"):  # a debugger is at work: take all your time
        yield
    elif (
        hasattr(signal, "setitimer")
        and sys.platform != "emscripten"
        and threading.current_thread() is threading.main_thread()
    ):
        computed, last = time.thread_time(), time.monotonic() + busy * seconds

        def ring(number: int, frame: FrameType | None) -> None:
            if time.thread_time() - computed >= seconds or time.monotonic() >= last:
                raise TimeUp

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)  # again and again, for who catches everything
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    else:
        deadline = time.monotonic() + seconds
        outer = sys.gettrace()

        def watch(frame: FrameType, event: Any, argument: Any) -> Any:
            if time.monotonic() > deadline:
                raise TimeUp
            frame.f_trace_opcodes = True  # a loop without a body has no lines
            if outer and event == "call":
                outer(frame, event, argument)
            return watch

        sys.settrace(watch)
        try:
            yield
        finally:
            sys.settrace(outer)


@contextmanager
def watched(called: list[str], library: Sequence[Callable[..., Any]]) -> Iterator[None]:
    """Note the calls of `library`."""
    if not library or sys.gettrace() is not None:
        yield
        return
    codes = {f.__code__: _called(f) for f in library}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code in codes:
            called.append(codes[frame.f_code])

    note.ours = True  # type: ignore[attr-defined]
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(None)


class _Cut(io.StringIO):
    """Takes what is printed, and keeps the beginning."""

    total = 0

    def write(self, text: str) -> int:
        self.total += len(text)
        return super().write(text[: max(0, PRINTED - self.tell())]) if self.tell() < PRINTED else len(text)


def _functions(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if callable(value)}


_ORIGINAL: dict[str, tuple[ModuleType, dict[str, Any]]] = {}  # by the name that cells have for a module


def guard(names: Mapping[str, Any]) -> None:
    """Remember the functions of the modules among `names`, for `mend_modules`."""
    for name, module in names.items():
        if isinstance(module, ModuleType) and name not in _ORIGINAL:
            _ORIGINAL[name] = module, _functions(module)


def mend_modules() -> list[str]:
    """Put functions back that somebody has overwritten, as in `np.exp = ...`, and name them."""
    found = []
    for short, (module, functions) in _ORIGINAL.items():
        for name, value in functions.items():
            if vars(module).get(name) is not value:
                found.append(f"{short}.{name}")
                setattr(module, name, value)
    return found


def _called(function: Callable[..., Any]) -> str:
    """Return a function's name with the name that cells have for its module."""
    name = function.__name__
    modules = (short for short, (_, functions) in _ORIGINAL.items() if functions.get(name) is function)
    return f"{next(modules, function.__module__.rpartition('.')[2])}.{name}"


@contextmanager
def kernel_as_before(show: bool = True) -> Iterator[None]:
    """Random numbers, print options and recursion limit stay; of what is printed, the beginning is shown, or nothing."""
    options, limit, state, numbers = (
        np.get_printoptions(),
        sys.getrecursionlimit(),
        random.getstate(),
        np.random.get_state(),  # noqa: NPY002
    )
    cut = _Cut()
    try:
        with contextlib.redirect_stdout(cut):
            yield
    finally:
        np.set_printoptions(**options)
        sys.setrecursionlimit(limit)
        random.setstate(state)
        np.random.set_state(numbers)  # noqa: NPY002
        if cut.total and show:
            print(cut.getvalue(), end="")
            if cut.total > PRINTED:
                print(f"\n… ({cut.total - PRINTED:,} more characters that your function printed are left out)")


def _where(function: Any, error: BaseException) -> tuple[str, str, dict[str, Any]]:
    """The last line of the learner's own code on the way to the error, and the variables there."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    found, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            found = step
        step = step.tb_next
    if found is None:
        return "", "", {}
    line = linecache.getline(str(file), found.tb_lineno).strip()
    variables = dict(found.tb_frame.f_locals)
    return f" in line {found.tb_lineno} of its cell: `{line}`" if line else "", line, variables


# --- The same? ------------------------------------------------------------------------------------------------------


def same(a: Outcome, b: Outcome) -> bool:
    """Did two functions do the same, right or wrong?"""
    if a.error or b.error or a.timed_out or b.timed_out:
        return a.timed_out == b.timed_out and same_error(a.error, b.error)
    a_results, b_results = a.results(), b.results()
    if len(a_results) != len(b_results):
        return False
    try:
        arrays = [(np.asarray(plain(x)), np.asarray(plain(y))) for x, y in zip(a_results, b_results, strict=True)]
        return all(x.shape == y.shape and close(x, y) for x, y in arrays)
    except (TypeError, ValueError, OverflowError):  # not numbers at all
        return False


def same_error(a: BaseException | None, b: BaseException | None) -> bool:
    """Errors are the same if their kinds are, and the shapes in them; the words and their order may differ."""
    if a is None or b is None or type(a) is not type(b):
        return a is b
    if isinstance(a, NameError | AttributeError | SystemExit):
        return str(a) == str(b)
    if _operation(a) != _operation(b):
        return False
    ours, theirs = _numbers(a), _numbers(b)
    shared = ours <= theirs or theirs <= ours  # `x /= y` lists one more shape than `x / y`
    words = bool(ours and theirs) or _plain_words(a) == _plain_words(b)
    return shared and words


def _operation(error: BaseException) -> str | None:
    """What went wrong: a product, lining up, a yes or no asked of an array."""
    signs = {"matmul": "@", "not aligned": "@", "broadcast": "+", "truth value": "if", "reshape": "reshape"}
    return next((sign for words, sign in signs.items() if words in str(error)), None)


def _numbers(error: BaseException) -> set[tuple[str, ...]]:
    """The shapes and sizes in an error's text, whatever their order."""
    text = str(error)
    shapes = re.findall(r"\((\d[\d,]*)\)", text.replace(", ", ","))
    return {tuple(sorted(re.findall(r"\d+", shape))) for shape in shapes} or {
        (n,) for n in re.findall(r"\b\d+\b", text)
    }


def _plain_words(error: BaseException) -> str:
    return re.sub(r"[\d(),.:\s-]+", " ", str(error)).strip()


def close(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal but for rounding."""
    tolerance = max(TOLERANCE.get(str(x.dtype), DEFAULT_TOLERANCE) for x in (a, b))
    with np.errstate(all="ignore"):
        good = (
            np.abs(a - b) <= tolerance + tolerance * np.abs(b) if a.dtype.kind != "b" or b.dtype.kind != "b" else a == b
        )
        return bool((good | (a == b) | ((a != a) & (b != b))).all())


def plain(x: Any) -> Any:
    """A Fraction or a Decimal as a float, everything else as it is."""
    try:
        return float(x) if isinstance(x, Fraction | Decimal) else x
    except (OverflowError, ValueError):  # as large as 10**400, or a signalling NaN
        return x
