"""Long use: every live figure is moved thousands of times, and its kernel must not grow.

Each figure has a process of its own. What is kept on purpose (64 pictures, libraries' caches) is there after some
hundred steps; from then on memory is measured.
"""

import ctypes
import gc
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from random import Random
from typing import NamedTuple

import psutil

from lesson_utils.classroom import live
from lesson_utils.classroom.live import testing
from tools.bench.live import figures

MOST = 5.0  # megabytes that a figure may grow by
WORDS = ("", "a", "attention", "zzzzzzzzzzzzzzzzzzzzzzzz", "two words")


class Soak(NamedTuple):
    """The growth of a figure in many steps."""

    name: str
    grown: float  # megabytes
    alert: str  # the first exception that stood where the picture was

    @property
    def lost(self) -> bool:
        return self.grown > MOST or bool(self.alert)

    def __str__(self) -> str:
        lost = f"  LOST {self.alert}" if self.lost else ""
        return f"{self.name:45}{self.grown:+7.2f} MB{lost}"


def soak(name: str, figure: live.LiveFigure, steps: int) -> Soak:
    """Move the controls of a figure at random."""
    random = Random(name)
    alert, begun = "", 0.0
    for step in range(steps):
        if step == min(steps // 2, 200):
            begun = memory()
        control = random.choice(list(figure.controls))
        values = WORDS if isinstance(figure.controls[control], live.Word) else figure.controls[control].values()
        page = testing.move(figure, control, random.choice(values))
        if 'role="alert"' in page:
            alert = alert or f"{figure.values}: {page}"
    return Soak(name, memory() - begun, alert)


def memory() -> float:
    """Return the megabytes that this process holds alone, without those that are free and not yet given back."""
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # only the GNU library can be asked to give them back
        ctypes.CDLL(None).malloc_trim(0)
    return float(psutil.Process().memory_full_info().uss / 1e6)


def _by_name(name: str, steps: int) -> Soak:
    return soak(name, figures()[name](), steps)


def run(steps: int, names: Sequence[str], minutes: float = float("inf")) -> int:
    """Print a line for each of these live figures, as far as the time goes; return 1 if one has grown or failed."""
    found: list[Soak] = []
    give_up = time.monotonic() + 60 * minutes
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in names:
            if time.monotonic() > give_up:
                break
            found.append(pool.apply(_by_name, (name, steps)))
            print(found[-1], flush=True)
    lost = sum(one.lost for one in found)
    print(f"{len(found)} of {len(names)} figures, {steps} steps each: {lost} lost")
    return int(lost > 0)
