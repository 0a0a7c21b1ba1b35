"""Limits on the time and the memory that a call may take."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

try:
    import resource
except ModuleNotFoundError:  # Windows, and Python in a browser
    resource = None  # type: ignore[assignment]

MEMORY = (
    500_000_000  # bytes that a call may take beside what the kernel has; the arrays of all cases take a few thousand
)


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
