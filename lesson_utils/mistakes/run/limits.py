"""Limits of calls that may never end or ask for too much: in seconds, in steps, and in memory.

What is searched is limited in steps, which are the same on every machine; seconds only end what would not end. Those in
which a crowded machine had no core to give do not count.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic, process_time  # the functions themselves: a learner may overwrite `time.monotonic`
from types import FrameType
from typing import Any, TypeVar

import numpy as np

try:
    from time import thread_time
except ImportError:  # Python in a browser
    thread_time = process_time
try:
    import resource
except ModuleNotFoundError:  # Windows, and Python in a browser
    resource = None  # type: ignore[assignment]

TIME_LIMIT = 5.0  # seconds for the calls that a check makes of an answer; a solution takes milliseconds
ALTOGETHER = 9.0  # seconds, beside those for a core, after which a check calls nothing more
PATIENCE = 2.0  # seconds after which a check says that it is still at work
CROWDED = 20.0  # seconds at most that a check waits for a core beside those: one may do a tenth of the work
# Bytes that a call may take beside what the kernel has; the arrays of all cases take a few thousand.
MEMORY = 500_000_000

Item = TypeVar("Item")


class TimeUp(BaseException):
    """The end of the time that a call has; no Exception, so that a learner's `except Exception` does not catch it."""


# --- The time of a whole check ------------------------------------------------------------------------------------------


def waited() -> float:
    """Return the seconds that this thread has waited for a core since it began, where the system tells: on Linux."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class _Clock:
    """The seconds since a moment, without those in which this thread waited for a core, as far as they are known."""

    def __init__(self) -> None:
        self.began, self.waited, self.without = monotonic(), waited(), 0.0

    def left(self, seconds: float) -> float:
        """Return how many of so many seconds are left; only when they seem over the system is asked, which takes longer."""
        if self.began + seconds + self.without <= monotonic():
            self.without = min(waited() - self.waited, CROWDED)
        return self.began + seconds + self.without - monotonic()


class _Check:
    """A check at work: how long it may take, and where it says that it is still at work."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.clock, self.out, self.has_said, self.memory = seconds, _Clock(), sys.stdout, False, 0


_checks: list[_Check] = []  # the check at work, and its part that has to end before


@contextmanager
def ending(seconds: float | None = None) -> Iterator[None]:
    """Let no call inside run on after so many seconds, and say after two that the check is still at work."""
    _checks.append(_Check(ALTOGETHER if seconds is None else seconds))
    try:
        yield
    finally:
        _checks.pop()


def left() -> float:
    """Return the seconds that the check at work still has, or the part of it that is at work."""
    remind()
    return min((check.clock.left(check.seconds) for check in _checks), default=float("inf"))


def remind() -> None:
    """Say once, after two seconds, that the check is still at work."""
    if _checks and not _checks[0].has_said and monotonic() - _checks[0].clock.began > PATIENCE:
        _checks[0].has_said = True
        with contextlib.suppress(OSError, ValueError):  # the stream is closed
            print("still looking…", file=_checks[0].out, flush=True)


@dataclass
class Steps:
    """A limit in steps, so that a slow machine finds what a fast one finds."""

    left: int


def within(limit: Steps, items: Iterable[Item], each: int = 1) -> Iterator[Item]:
    """Yield items until the limit is reached, or the check's own end; each of them takes so many steps."""
    for item in items:
        limit.left -= each
        if limit.left < 0 or left() < 0:
            return
        yield item


# --- The time of one call -----------------------------------------------------------------------------------------------


@contextmanager
def stopped(seconds: float, busy: float = 1) -> Iterator[None]:
    """Raise TimeUp in code that runs longer; on a busy machine, where it waits, up to `busy` times as long by the clock.

    On Unix, in the main thread, by a signal: it ends loops without a body, and C code that looks for signals (sleep).
    Elsewhere by a trace function, between two instructions of Python. Either way, the end of the whole check is one, too.
    """
    if sys.gettrace() is not None and not hasattr(sys.gettrace(), "ours"):  # a debugger is at work: take all your time
        yield
    elif (
        hasattr(signal, "setitimer")
        and sys.platform != "emscripten"
        and threading.current_thread() is threading.main_thread()
    ):
        clock, computed, ringing = _Clock(), thread_time(), False

        def is_over() -> bool:
            return thread_time() - computed >= seconds or min(clock.left(busy * seconds), left()) <= 0

        def ring(number: int, frame: FrameType | None) -> None:
            nonlocal ringing
            # It rings within itself, on a machine that stood still: an error here would end what the first one rang in.
            if ringing:
                return
            ringing = True
            try:
                remind()
                over = is_over()
            finally:
                ringing = False
            if over and frame and frame.f_code.co_filename not in ENTRANCES:
                raise TimeUp

        hook = sys.unraisablehook

        def in_vain(lost: Any) -> None:
            """Rung in a `__del__` or in a callback of the garbage collector, which let nothing through: it rings again."""
            if lost.exc_type is not TimeUp:
                hook(lost)

        sys.unraisablehook, before = in_vain, signal.signal(signal.SIGALRM, ring)
        # Again and again: for who catches everything, and to remind.
        first = max(min(seconds, left(), PATIENCE), 1e-3)
        outer, again = signal.setitimer(signal.ITIMER_REAL, first, 0.05)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = hook
            if outer:  # within another limit, which goes on
                signal.setitimer(signal.ITIMER_REAL, max(outer - (monotonic() - clock.began), 1e-3), again)
        if is_over():  # nothing rang: somebody has taken the alarm away
            raise TimeUp
    else:
        outer_trace, last = sys.gettrace(), monotonic() + min(busy * seconds, left())

        def watch(frame: FrameType, event: Any, argument: Any) -> Any:
            if monotonic() > last:
                raise TimeUp
            frame.f_trace_opcodes = True  # a loop without a body has no lines
            if outer_trace and event == "call":
                outer_trace(frame, event, argument)
            return watch

        watch.ours = True  # type: ignore[attr-defined]
        sys.settrace(watch)
        try:
            yield
        finally:
            sys.settrace(outer_trace)


# Where an alarm raises nothing, and rings again later: on the way into a limit and out of it, an error would leave the alarm
# behind, which ends the kernel when it rings without a limit.
ENTRANCES = {function.__code__.co_filename for function in (left, contextmanager)}


@contextmanager
def counted_lines(file: str, most: float = float("inf")) -> Iterator[Callable[[], int]]:
    """Count the lines that run of a file's code, "" for all, and raise TimeUp after so many; yield what tells how many."""
    outer, count = sys.gettrace(), 0
    if outer is not None and not hasattr(outer, "ours"):  # a debugger is at work
        yield lambda: count
        return

    def watch(frame: FrameType, event: Any, argument: Any) -> Any:
        further = outer(frame, event, argument) if outer else None
        if file and frame.f_code.co_filename != file:
            return further

        def line(frame: FrameType, event: Any, argument: Any) -> Any:
            nonlocal count, further
            if event == "line":
                count += 1
                if count > most:
                    raise TimeUp
            further = further and further(frame, event, argument)
            return line

        return line

    watch.ours = True  # type: ignore[attr-defined]
    sys.settrace(watch)
    try:
        yield lambda: count
    finally:
        sys.settrace(outer)


# --- Memory -------------------------------------------------------------------------------------------------------------


@cache
def _prepare_products() -> None:
    """Compute a product, once: OpenBLAS ends the process if it can't have memory for its first one."""
    np.ones((256, 256)) @ np.ones((256, 256))


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
    # What its first call left behind, such as the arrays of an error, is not given again to each further call.
    if _checks:
        now = _checks[0].memory = _checks[0].memory or now
    resource.setrlimit(resource.RLIMIT_AS, (min([now, *(n for n in (before, most) if n >= 0)]), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))
