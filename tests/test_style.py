"""The tools that read code. Their verdicts change with their versions, so a newcomer's run leaves them out."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long_form
COMMANDS = (
    "ruff check",
    "ruff format --check",
    "mypy",
    "lint-imports",  # the walls between the wings of lesson_utils
    "zizmor --offline --min-severity=medium .github",  # workflows: pins, rights, injections
)


@pytest.mark.parametrize("command", COMMANDS)
def test_code_is_clean(command):
    name, *words = command.split()
    if not (tool := shutil.which(name, path=Path(sys.executable).parent)):
        pytest.skip(f"{name} is missing; install it with: python course.py test --style")
    done = subprocess.run([tool, *words], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
