"""What depends on the machine that a model is trained on, not on the maths."""

from collections.abc import Iterator
from contextlib import contextmanager


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
