"""The import time of a notebook's set-up cell, over that of the libraries that any interactive notebook imports."""

import subprocess
import sys
from statistics import median

from lesson_utils.classroom.course import LESSONS
from lesson_utils.classroom.lesson import Lesson
from tools.bench import trial

# Both are timed in one process, one after the other, so that other work of the machine slows down both.
TIMED = """
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
    """Print the ratio for each notebook."""
    rounds = 1 if trial.on() else rounds
    ratios: dict[str, list[float]] = {lesson.name: [] for lesson in LESSONS}
    for _ in range(rounds):
        for lesson in LESSONS:
            ratios[lesson.name].append(_ratio(lesson))
    print(
        f"import: numpy, matplotlib and ipywidgets with a notebook's set-up cell, against them alone ({rounds} rounds)"
    )
    for name, several in ratios.items():
        print(f"  {name:20} {median(several):.2f}×")


def _ratio(lesson: Lesson) -> float:
    code = TIMED.format(package=lesson.package)
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
