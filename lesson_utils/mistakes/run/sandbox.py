"""Calls of functions that may do anything: on copies, within limits, and the kernel is left as it was."""

import contextlib
import linecache
import math
import os
import sys
import threading
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

    No NaN and no ∞ reaches LAPACK.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings(), filled_empty(left), finite_lapack(), limited_memory():
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
    except TimeUp as error:
        where, line, _ = _where(function, error)
        return Outcome(timed_out=True, where=where, line=line)
    except (Exception, SystemExit, GeneratorExit) as error:
        where, line, variables = _where(function, error)
        return Outcome(error=settled_error(error), where=where, line=line, variables=variables)
    return Outcome(value, changed=changed(given, arguments), borrowed=tuple(dict.fromkeys(called)), returned=returned)


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
        if (f := codes.get(frame.f_code)) and all(_is(frame.f_locals.get(k), v) for k, v in f.keywords.items()):
            called.append(kernel.called(f))

    note.ours = True  # type: ignore[attr-defined]
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(None)


def _is(given: Any, value: str) -> bool:
    return type(given) is str and given == value


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
    return f", in line {found.tb_lineno} of your cell: `{line}`" if line else "", line, variables


@contextmanager
def finite_lapack() -> Iterator[None]:
    """Make NaN and ∞ a LinAlgError in `np.linalg`, however it was imported.

    With them LAPACK may never end. It runs in C, where no limit on time reaches it, and what it prints is lost.
    """
    before = {name: getattr(ROUTINES, name) for name in REAL}
    for name, routine in GUARDED.items():
        setattr(ROUTINES, name, routine)
    try:
        yield
    finally:
        for name, routine in before.items():
            setattr(ROUTINES, name, routine)


def _guarded(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        for x in arguments:
            if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc" and not np.isfinite(x).all():
                raise np.linalg.LinAlgError("NaN or ∞ in a matrix that `np.linalg` is given")
        with _nothing_printed():
            return REAL[name](*arguments, **keywords)

    return call


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Send what C code prints nowhere; Python's own streams are others."""
    kept: dict[int, int] = {}
    with contextlib.suppress(OSError, AttributeError):  # no such streams, or no room for another
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            kept[stream] = os.dup(stream)
            os.dup2(nowhere, stream)
        os.close(nowhere)
    try:
        yield
    finally:
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)


GUARDED = {name: _guarded(name) for name in REAL}
