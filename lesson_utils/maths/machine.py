"""What depends on the machine, not on the maths."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np


def is_browser() -> bool:
    """Is this Python in a browser (JupyterLite), with one thread and no BLAS?"""
    return sys.platform == "emscripten"


@contextmanager
def single_thread() -> Iterator[None]:
    """Inside this block NumPy multiplies matrices on one thread.

    Measured on two cores, with matrices as small as ours: on an idle machine a second thread saves a third of the
    time; on a busy one the threads wait for each other, and one step in twenty takes twenty times as long or more. For
    large models on an idle machine: `fit(..., one_thread=False)`.

    It takes threadpoolctl, which the course installs and Colab has. Without it, and on macOS where NumPy uses Apple's
    Accelerate, this does nothing; there, set OMP_NUM_THREADS or VECLIB_MAXIMUM_THREADS to 1 before Python starts.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        yield
        return
    with threadpool_limits(1, "blas"):
        yield


def keep_freed_memory() -> None:
    """Have Linux's allocator keep the memory of arrays that are gone, for those of the steps to come.

    glibc gives large arrays back to the system at once, and fetches the next ones anew, page by page: without this
    line a training step takes half as long again. What counts as large is learnt: from the largest array that was
    given back, up to 32 MiB. So one just below that is taken here, and given back. Elsewhere it does nothing.

    Source: mallopt(3), "M_MMAP_THRESHOLD", dynamic adjustment.
    """
    np.empty(2**25 - 2**16, np.uint8)


def free_memory() -> int | None:
    """Bytes that are still to be had, of the machine or of its container; None where it is not Linux, which says so."""
    found = []
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with suppress(OSError, ValueError):  # "max": there is no limit
        limit, taken = (Path(f"/sys/fs/cgroup/memory.{what}").read_text() for what in ("max", "current"))
        found.append(int(limit) - int(taken))
    return min(found, default=None)
