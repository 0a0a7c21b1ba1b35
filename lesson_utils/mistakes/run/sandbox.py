"""Calls of functions that may do anything: on copies, within limits, and the kernel is left as it was."""

import linecache
import math
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from lesson_utils.mistakes.run import kernel
from lesson_utils.mistakes.run.kernel import kernel_as_before
from lesson_utils.mistakes.run.limits import TIME_LIMIT, TimeUp, limited_memory, stopped
from lesson_utils.mistakes.run.outcome import Outcome, settled, settled_error

ROUTINES = getattr(np.linalg, "_umath_linalg", None)  # all of np.linalg calls LAPACK here
REAL = {name: routine for name, routine in vars(ROUTINES).items() if isinstance(routine, np.ufunc)} if ROUTINES else {}
EMPTY: dict[str, Callable[..., np.ndarray]] = {"empty": np.empty, "empty_like": np.empty_like}


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

    with kernel.instead(np, **{name: instead_of(real) for name, real in EMPTY.items()}):
        yield


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments, with a copy of each array, laid out in memory as it was, and of each list and dictionary."""
    return [_copy(x) for x in arguments]


def _copy(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy(order="K")
    if type(x) is list:
        return copied(x)
    return dict(zip(x, copied([*x.values()]), strict=True)) if type(x) is dict else x


def quick(function: Callable[..., Any], arguments: Sequence[Any]) -> Outcome:
    """Call one of our own variants on a copy of `arguments`; use within `quiet` and `stopped`.

    A variant may hold a learner's lines. If one of them is `np.seterr`, it ends with this call.
    """
    try:
        with np.errstate(all="ignore"):
            return Outcome(settled(function(*copied(arguments))))
    except Exception as error:
        return Outcome(error=settled_error(error))
    finally:
        kernel.mend_again()


@contextmanager
def quiet(left: float = math.nan) -> Iterator[None]:
    """Show no warnings, since the check says more than those of wrong variants; let `np.empty` hold `left`; limit memory.

    NaN and ∞ are a LinAlgError in `np.linalg`, however it was imported: with them LAPACK may never end. It runs in C, where
    no limit on time reaches it.
    """
    guarded = kernel.instead(ROUTINES, **GUARDED)
    with np.errstate(all="ignore"), warnings.catch_warnings(), filled_empty(left), guarded, limited_memory():
        warnings.simplefilter("ignore")
        yield


def attempt(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    time_limit: float = TIME_LIMIT,
    library: Sequence[Callable[..., Any]] = (),
    left: float = math.nan,
    show: bool = True,
) -> Outcome:
    """Call a learner's `function` on a copy of `arguments`.

    Args:
        time_limit: seconds until it is stopped.
        left: what `np.empty` holds.
        library: functions that it should not call; which of them it did call is noted.
        show: whether the beginning of what it prints is shown.
    """
    given = copied(arguments)
    called: list[str] = []
    try:
        with quiet(left), kernel_as_before(show), stopped(time_limit):
            with watched(called, library):
                returned = function(*given)
            value = settled(returned)
    except (TimeUp, Exception, SystemExit, GeneratorExit) as error:
        late = isinstance(error, TimeUp)
        return Outcome(None, None if late else settled_error(error), late, *_where(function, error))
    return Outcome(value, changed=changed(given, arguments), borrowed=tuple(dict.fromkeys(called)), returned=returned)


def changed(given: Sequence[Any], before: Sequence[Any]) -> tuple[int, ...]:
    """Return the places of the arguments that were changed in place."""
    pairs = enumerate(zip(given, before, strict=True))
    return tuple(i for i, (now, then) in pairs if not _equal(now, then))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if type(a) is list and type(b) is list:
        return len(a) == len(b) and all(map(_equal, a, b))
    if type(a) is dict and type(b) is dict:
        return _equal([*a], [*b]) and _equal([*a.values()], [*b.values()])
    return a is b or (type(a) is type(b) and bool(a == b))


@contextmanager
def watched(called: list[str], library: Sequence[Callable[..., Any]]) -> Iterator[None]:
    """Append to `called` the names of the functions of `library` that are called."""
    if not library or sys.gettrace() is not None:
        yield
        return
    plain = [f if isinstance(f, partial) else partial(f) for f in library]
    codes = {f.func.__code__: f for f in plain}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        f = codes.get(frame.f_code)
        if f and f.keywords.items() <= {(k, v) for k, v in frame.f_locals.items() if type(v) is str}:
            called.append(kernel.called(f))

    note.ours = True  # type: ignore[attr-defined]
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(None)


def _where(function: Any, error: BaseException) -> tuple[str, str, dict[str, Any]]:
    """Return the last line of the learner's own code on the way to the error, as words and as text, and its variables."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    steps = [step for step in traceback.walk_tb(error.__traceback__) if step[0].f_code.co_filename == file]
    if not steps:
        return "", "", {}
    frame, number = steps[-1]
    line = linecache.getline(str(file), number).strip()
    return f", in line {number} of your cell: `{line}`" if line else "", line, dict(frame.f_locals)


def _guarded(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        for x in arguments:
            if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc" and not np.isfinite(x).all():
                raise np.linalg.LinAlgError("NaN or ∞ in a matrix that `np.linalg` is given")
        return REAL[name](*arguments, **keywords)

    return call


GUARDED = {name: _guarded(name) for name in REAL}
