"""What imports do, and what the engine's texts know. The walls between wings are import-linter's: test_style.py."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lesson_utils

ROOT = Path(lesson_utils.__file__).parent
MATHS_AND_ENGINE = """
import importlib, pkgutil, sys
class Wall:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | {"numpy", "lesson_utils"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Wall)
for wing in ("maths", "mistakes"):
    package = importlib.import_module(f"lesson_utils.{wing}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
import numpy as np
from lesson_utils.maths import models, training
rng = np.random.default_rng(0)
model = models.GPT(models.GPTConfig(vocab=5, max_length=6, d_model=8, num_heads=2, num_layers=1, d_ff=16), rng)
training.fit(model, lambda rng: (rng.integers(0, 5, (2, 6)), rng.integers(0, 5, (2, 6))), 2)
"""
EVERYTHING = """
import importlib, pkgutil, matplotlib, lesson_utils
before = dict(matplotlib.rcParams)
for module in pkgutil.walk_packages(lesson_utils.__path__, "lesson_utils."):
    importlib.import_module(module.name)
assert dict(matplotlib.rcParams) == before, "rcParams changed"
from matplotlib import pyplot
assert pyplot.get_fignums() == [], "a figure was opened"
"""


def test_the_engine_names_nothing_of_the_course():
    """Not in its messages, either: an exercise brings the words of its course."""
    for path in (ROOT / "mistakes").rglob("*.py"):
        found = re.findall(r"\bops\.\w+|lesson_utils\.(?!mistakes)\w+|the course's", path.read_text(encoding="utf-8"))
        assert found == [], path


@pytest.mark.slow
@pytest.mark.parametrize("source", [MATHS_AND_ENGINE, EVERYTHING], ids=["with NumPy only", "changing no setting"])
def test_all_is_imported(source):
    """In a process of its own: in this one, earlier tests have imported the modules already."""
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
