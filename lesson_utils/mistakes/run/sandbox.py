"""Calls of functions that may do anything: on copies, within limits, and the kernel is left as it was."""

import contextlib
import inspect
import io
import linecache
import math
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from lesson_utils.mistakes.run.outcome import Outcome

try:
    import resource
except ModuleNotFoundError:  # Windows, and Python in a browser
    resource = None  # type: ignore[assignment]

TIME_LIMIT = 5.0  # seconds for one call; a solution takes milliseconds
MOST_NUMBERS = 3_000_000  # in a result; the arrays of all cases have less than 10,000
# Bytes that a call may take beside what the kernel has; the arrays of all cases take a few thousand.
MEMORY = 500_000_000
PRINTED = 2000  # characters of what an answer prints that are shown
EMPTY: dict[str, Callable[..., np.ndarray]] = {"empty": np.empty, "empty_like": np.empty_like}


class TimeUp(BaseException):
    """The end of the time that a call has; no Exception, so that a learner's `except Exception` does not catch it."""


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
def limited_memory() -> Iterator[None]:
    """Make what asks for far too much memory a MemoryError, on Linux, which would end the kernel instead.

    Other systems refuse by themselves, or take long, and then the time limit ends the call.
    """
    _prepare_products()
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before, most = resource.getrlimit(resource.RLIMIT_AS)
    except (OSError, AttributeError):
        yield
        return
    now = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (min([now, *(n for n in (before, most) if n >= 0)]), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


@cache
def _prepare_products() -> None:
    """Compute a product, once: OpenBLAS ends the process if it can't have memory for its first one."""
    np.ones((256, 256)) @ np.ones((256, 256))


@contextmanager
def filled_empty(left: float = math.nan) -> Iterator[None]:
    """Make `np.empty` and `np.empty_like` hold `left` until something is written, in this thread alone.

    Elsewhere they hold what was in memory before. Then an answer that leaves some of it unwritten would be right on one
    day and wrong on the next, and no known mistake would do the same.
    """
    thread = threading.get_ident()

    def instead_of(real: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def empty(*arguments: Any, **keywords: Any) -> np.ndarray:
            made = real(*arguments, **keywords)
            if threading.get_ident() == thread:
                if made.dtype.kind in "fc":
                    made.fill(left)
                elif made.dtype.kind in "biu":  # no NaN there: what no answer has, and no mask
                    made[...] = np.arange(made.size).reshape(made.shape) % 2 if made.dtype.kind == "b" else 99
            return made

        empty.fills = True  # type: ignore[attr-defined]
        return empty

    before = {name: getattr(np, name) for name in EMPTY}
    # What a learner has overwritten stays.
    ours = {n: instead_of(EMPTY[n]) for n, now in before.items() if now is EMPTY[n] or hasattr(now, "fills")}
    vars(np).update(ours)
    try:
        yield
    finally:
        for name, function in ours.items():
            if getattr(np, name) is function:
                setattr(np, name, before[name])


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments, with a copy of each array, laid out in memory as it was."""
    return [x.copy(order="K") if isinstance(x, np.ndarray) else x for x in arguments]


def finite(value: Any) -> Any:
    """Return what a function returned, as it is.

    Raises:
        ValueError: it is a list that contains itself, as `found.append(found)` makes it: NumPy would unpack it for ever.
        MemoryError: it is an array so large that comparing it would take the memory that is left.
    """

    def deep(value: Any, left: int) -> bool:
        return isinstance(value, list | tuple) and (left == 0 or any(deep(item, left - 1) for item in value[:2]))

    if deep(value, 12):
        raise ValueError("the list that comes back contains itself")
    for result in value if isinstance(value, tuple) else (value,):
        if isinstance(result, np.ndarray) and result.size > MOST_NUMBERS:
            raise MemoryError(f"an array with shape {result.shape} comes back")
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
    """Show no warnings, since the check says more than those of wrong variants; let `np.empty` hold `left`; limit memory."""
    with np.errstate(all="ignore"), warnings.catch_warnings(), filled_empty(left), limited_memory():
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
    """Return the places of the arguments that were changed in place."""
    pairs = enumerate(zip(given, before, strict=True))
    return tuple(i for i, (now, then) in pairs if isinstance(now, np.ndarray) and not _equal(now, then))


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@contextmanager
def watched(called: list[str], library: Sequence[Callable[..., Any]]) -> Iterator[None]:
    """Append to `called` the names of the functions of `library` that are called."""
    if not library or sys.gettrace() is not None:
        yield
        return
    plain = [f if isinstance(f, partial) else partial(f) for f in library]
    codes = {f.func.__code__: f for f in plain}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if (f := codes.get(frame.f_code)) and all(frame.f_locals.get(k) == v for k, v in f.keywords.items()):
            called.append(_called(f))

    note.ours = True  # type: ignore[attr-defined]
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(None)


class _Cut(io.StringIO):
    """A stream that keeps the beginning of what is printed."""

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


def _called(call: partial[Any]) -> str:
    """Return a function's name with the name that cells have for its module, and the keywords of a call."""
    function, name = call.func, call.func.__name__
    modules = (short for short, (_, functions) in _ORIGINAL.items() if functions.get(name) is function)
    keywords = ", ".join(f'{k}="{v}"' for k, v in call.keywords.items())
    return f"{next(modules, function.__module__.rpartition('.')[2])}.{name}" + (f"(…, {keywords})" if keywords else "")


@contextmanager
def kernel_as_before(show: bool = True) -> Iterator[None]:
    """Put random numbers, print options and recursion limit back; show the beginning of what is printed, or nothing."""
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
    """Return the last line of the learner's own code on the way to the error, as words and as text, and its variables."""
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
