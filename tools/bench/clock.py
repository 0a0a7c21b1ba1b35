"""Timing several ways of doing the same, in turns, each turn in another order."""

import os
import random
import time
from collections.abc import Callable
from statistics import median

from tools.bench import trial


def compare(rounds: int, warm: bool = False, **ways: Callable[[], object]) -> dict[str, float]:
    """The median seconds of each way; one round first that does not count.

    Where there is one thread, its own time is taken: what else the machine does is not in it.

    Args:
        warm: call each way once more, untimed, before each time: what the one before left in memory is then its own.
    """
    clock = time.thread_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(1 + (1 if trial.on() else rounds)):
        for name, way in random.sample(list(ways.items()), len(ways)):
            if warm:
                way()
            start = clock()
            way()
            if turn:
                times[name].append(clock() - start)
    return {name: median(taken) for name, taken in times.items()}
