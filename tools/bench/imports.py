"""Time of a notebook's set-up cell, its lab included, beside the libraries that any interactive notebook imports.

Everything is compiled beforehand, as it is after `pip install` or a first run.
"""

import os
import subprocess
import sys
from statistics import median

from lesson_utils.classroom.course import LESSONS, Lesson
from tools.bench import trial

# Both are timed in one process, one after the other: what else the machine does slows down both. A kernel runs on
# asyncio, so a notebook never waits for it.
TIMED = """
import asyncio
from time import process_time
start = process_time()
import numpy, matplotlib, ipywidgets
between = process_time()
from lesson_utils import attention, ops, plots, quiz
from lesson_utils.exercises import check
from {package} import lab
print((process_time() - start) / (between - start))
"""


def run(rounds: int = 15) -> None:
    rounds = 1 if trial.on() else rounds
    ratios: dict[str, list[float]] = {lesson.name: [] for lesson in LESSONS}
    for lesson in LESSONS:
        _ratio(lesson)  # compiles what is not compiled yet
    for _ in range(rounds):
        for lesson in LESSONS:
            ratios[lesson.name].append(_ratio(lesson))
    print(
        f"import: numpy, matplotlib and ipywidgets with a notebook's set-up cell, against them alone ({rounds} rounds)"
    )
    for name, several in ratios.items():
        print(f"  {name:20} {median(several):.2f}×")


def _ratio(lesson: Lesson) -> float:
    """Return the time of libraries and set-up cell together, divided by the time of the libraries."""
    code = TIMED.format(package=lesson.package)
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", code], env=compiled, capture_output=True, text=True, check=True)
    return float(done.stdout)
