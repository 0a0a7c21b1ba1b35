"""A new lesson takes its package and its notebook, and no other edit: one is added to a copy of the course."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lesson_utils.classroom.course import LESSONS
from tools import save

ROOT = Path(__file__).parents[2]
NUMBER = len(LESSONS)


@pytest.fixture
def course(tmp_path):
    """Return a copy of the course."""
    for name in ("lesson_utils", "notebooks", "tests", "tools", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*", "_build"))
    for name in ("README.md", "pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.long_form
def test_a_lesson_is_found_by_being_there(course):
    def python(*words):
        environment = os.environ | {"PYTHONPATH": str(course)}
        done = subprocess.run([sys.executable, *words], cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = python("-m", "tools", "new_lesson", "toy")
    assert f"write into the table for teachers what to ask about notebook {NUMBER:02}" in said
    readme = (course / "README.md").read_text(encoding="utf-8")
    assert f"| {NUMBER:02} | [Toy](notebooks/{NUMBER:02}_toy.ipynb) | What is Toy about? |" in readme
    assert f"| {NUMBER:02} | 10, 10 | `lab.bar_lab` | | |" in (course / save.TEACHING).read_text(encoding="utf-8")
    others = " and ".join(f"not {lesson.name}" for lesson in LESSONS)
    chosen = (
        f"(test_every_lesson and {others}) or (test_exercises and twice) or toy"  # all but what is another lesson's
    )
    places = "tests/lessons", "tests/mistakes", "tests/test_predictions.py", "tests/test_core.py"
    said = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *places)
    assert int(said.rpartition(" passed")[0].split()[-1]) >= 30, said
