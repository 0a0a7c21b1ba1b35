"""A clock says something else on each machine and on a busy one: no run of a notebook may fail by it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lesson_utils.classroom import course

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
ROOT = Path(__file__).parents[2]
# IPython runs this before anything else. Each look at a clock, any time may have passed, and never twice as much.
ODD_CLOCKS = """
import random, time

def odd(seed, now=0.0):
    rng = random.Random(seed)
    def clock():
        nonlocal now
        now += 10 ** rng.uniform(-7, 1)
        return now
    return clock

time.thread_time, time.process_time, time.perf_counter = map(odd, range(3))
"""


def looks_at_a_clock(lesson):
    folder = ROOT / "lesson_utils" / "lessons" / lesson.name
    code = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return re.search(r"thread_time|process_time|perf_counter", code)


def marks(lesson):
    return [] if lesson.name == "efficient_attention" else [pytest.mark.own_job]


TIMED = [pytest.param(x, id=x.name, marks=marks(x)) for x in course.LESSONS if looks_at_a_clock(x)]


@pytest.mark.parametrize("lesson", TIMED)
def test_a_notebook_runs_whatever_the_clocks_say(lesson, tmp_path):
    startup = tmp_path / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-clocks.py").write_text(ODD_CLOCKS, encoding="utf-8")
    notebook = next((ROOT / "notebooks").glob(f"*_{lesson.name}.ipynb"))
    options = "--strict-markers --nbval-lax --nbval-current-env --nbval-cell-timeout=300"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"addopts={options}", notebook]
    variables = os.environ | {"IPYTHONDIR": str(tmp_path), "COURSE_TRAIN": "no"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
