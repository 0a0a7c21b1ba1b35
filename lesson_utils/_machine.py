"""What depends on the machine, not on the maths."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

SIZES = ("full", "small", "tiny")
TINY = 20  # steps: every cell runs, which is what a test wants to see; a model learns nothing


def is_small() -> bool:
    """Do notebooks train for fewer steps here? See `steps`."""
    size = os.environ.get("COURSE_SIZE", "small" if sys.platform == "emscripten" else "full")
    if size not in SIZES:
        raise ValueError(f"COURSE_SIZE={size!r} is unknown; set it to full, small or tiny, or not at all")
    return size != "full"


def steps(full: int, small: int | None = None) -> int:
    """How many steps a notebook trains for: `full`, or where that would take too long, `small`, and a line says so.

    Too long is in a browser, whose Python has one thread and no BLAS. The environment variable COURSE_SIZE decides
    for itself: `small`, to try it elsewhere, or `full`, for those with time; `tiny` is for tests.

    Args:
        small: default: a tenth of `full`.

    Raises:
        ValueError: COURSE_SIZE is something else.
    """
    if not is_small():
        return full
    few = small or max(1, full // 10)
    if os.environ.get("COURSE_SIZE") == "tiny":
        few = min(few, TINY)
    print(
        f"Small setting: {few:,} training steps instead of {full:,}, which would take long here. The text describes "
        f"what {full:,} do; to see that, write {full} in place of training.steps(…)."
    )
    return few


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
