"""Timing several ways of doing the same, in turns."""

import time
from collections.abc import Callable
from statistics import median


def compare(rounds: int, **ways: Callable[[], object]) -> dict[str, float]:
    """The median seconds of each way; one round first that does not count."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: median(taken) for name, taken in times.items()}
