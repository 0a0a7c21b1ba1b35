"""The stop button in a drag waits until the picture is whole.

A stop is a KeyboardInterrupt anywhere, even inside C code that takes it for something else and goes on, or between a
picture and its way to the page. What is left then is a torn picture that nobody notices.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


@contextmanager
def held_back() -> Iterator[None]:
    """Let a stop wait until the end of a `with` block; a second stop comes at once."""
    usual, stops = signal.getsignal(signal.SIGINT), 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stops
        stops += 1
        if stops > 1:
            raise KeyboardInterrupt

    if not callable(usual) or current_thread() is not main_thread():  # between two messages a kernel hears no stop
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if stops:
        raise KeyboardInterrupt
