"""The tools that read code. Their verdicts change with their versions, so a newcomer's run leaves them out."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long_form


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check", "mypy"])
def test_code_is_clean(command):
    tool = command.split()[0]
    pytest.importorskip(tool, reason=f"{tool} is missing; install it with: python course.py test --style")
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-m", *command.split()], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
