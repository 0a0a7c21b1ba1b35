"""The bench measures nothing here: each part runs once, in a small form, so that none can rot."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.bench import classroom
from tools.browser import driver


@pytest.mark.parametrize(
    ("words", "finds"),
    [
        pytest.param("exercises weighted_average", r"weighted_average +\d", marks=pytest.mark.slow),
        pytest.param("memory 00", r"00_start_here +\d", marks=pytest.mark.long_form),
        pytest.param("live start_here.first", r"\n1 live figures?;", marks=pytest.mark.long_form),
        pytest.param(
            "class --students 2 --moving 2 --notebook 00_start_here", r"\d+ steps: p50", marks=pytest.mark.long_form
        ),
    ],
)
def test_each_part_runs(words, finds):
    """All but the stopwatch of the site, which needs a site that is built."""
    if "live" in words and not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    if "class" in words and not (find_spec("jupyterhub") and shutil.which("npm")):
        pytest.skip("no JupyterHub or no npm; install with: python course.py test --hub, and apt install npm")
    command = [sys.executable, "-m", "tools.bench", *words.split()]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(finds, done.stdout)
    assert "FAILED" not in done.stdout


def test_a_student_who_cannot_go_on_is_named_and_the_others_go_on(capsys):
    ada, bob = SimpleNamespace(name="ada"), SimpleNamespace(name="bob")

    def log_in(student):
        if student is bob:
            raise RuntimeError("no server")

    assert classroom.all_do(log_in, [ada, bob]) == [ada]
    assert capsys.readouterr().out == "  FAILED: bob: RuntimeError('no server')\n"
