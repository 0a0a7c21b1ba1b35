"""A clock for several ways of doing the same, which take turns, each turn in another order."""

import os
import random
import time
from collections.abc import Callable
from statistics import median

from tools.bench import trial


def compare(rounds: int, warm: bool = False, **ways: Callable[[], object]) -> dict[str, float]:
    """Return the median seconds of each way, after one round that does not count.

    With a single thread, its own time is taken, without the time that the machine spends on other work.

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
