"""Settings and facts of the machine, such as threads and free memory."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

# Seconds that this thread has computed. A browser's Python has only the clock on the wall: its process takes no time.
thread_time = getattr(time, "thread_time", time.perf_counter)


def is_browser() -> bool:
    """Return True in a browser (JupyterLite), where Python has one thread and no BLAS."""
    return sys.platform == "emscripten"


@contextmanager
def single_thread() -> Iterator[None]:
    """Let NumPy multiply matrices on one thread inside this block.

    Measured on two cores, with matrices as small as ours: on an idle machine a second thread saves a third of the
    time; on a busy one the threads wait for each other, and one step in twenty takes twenty times as long or more. For
    large models on an idle machine: `fit(..., one_thread=False)`.

    This needs threadpoolctl, which the course installs and Colab has. Without it, and on macOS where NumPy uses Apple's
    Accelerate, this does nothing; set OMP_NUM_THREADS or VECLIB_MAXIMUM_THREADS to 1 before Python starts.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        yield
        return
    with threadpool_limits(1, "blas"):
        yield


def keep_freed_memory() -> None:
    """Make Linux's allocator keep the memory of deleted arrays for the arrays of later steps.

    glibc returns large arrays to the system at once, and fetches memory for the next ones page by page, which makes a
    training step half as long again. It learns what counts as large from the largest array that was returned, up to
    32 MiB. So an array just below that size is made here and returned. On other systems this does nothing.

    Source: mallopt(3), "M_MMAP_THRESHOLD", dynamic adjustment.
    """
    np.empty(2**25 - 2**16, np.uint8)


def free_memory() -> int | None:
    """Return the bytes that the machine, or its container, has left; None on systems other than Linux."""
    found = []
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with suppress(OSError, ValueError):  # "max": there is no limit
        limit, taken = (Path(f"/sys/fs/cgroup/memory.{what}").read_text() for what in ("max", "current"))
        found.append(int(limit) - int(taken))
    return min(found, default=None)
