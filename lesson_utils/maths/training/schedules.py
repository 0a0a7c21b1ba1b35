"""Schedules: the learning rate as a function of the step."""

from lesson_utils.maths.checks import as_number, as_size


def warmup_linear(step: int, peak: float, warmup: int, total: int) -> float:
    """Return a learning rate that rises in a line to `peak` at step `warmup`, and falls in a line to 0 at `total`.

        schedule = functools.partial(warmup_linear, peak=3e-3, warmup=100, total=4000)

    Args:
        step: counted from 1.

    Raises:
        ValueError: step < 1, peak is no finite number, or not 0 ≤ warmup < total.
    """
    step, warmup, total = as_size(step, "step"), as_size(warmup, "warmup", minimum=0), as_size(total, "total")
    if warmup >= total:
        raise ValueError(f"warmup={warmup} must be smaller than total={total}")
    return as_number(peak, "peak") * min(step / max(warmup, 1), max(total - step, 0) / (total - warmup))
