"""Imports run one way: the classroom uses the maths, never the reverse."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lesson_utils

ROOT = Path(lesson_utils.__file__).parent
MATHS = {"__init__", "_checks", "ops", "attention", "positions", "efficient", "costs", "layers", "recurrent", "models"}
MATHS |= {"scores", "memories", "_machine", "_bar", "training", "checkpoints", "tasks", "gradcheck", "pretrained"}
MATHS |= {"trained", "_kept"}
CLASSROOM = set("_html numbers plots drawings live lessons exercises quiz progress".split())


def imports(source):
    """What a module imports, as dotted names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def forbidden(source, extra=()):
    """Imports that a module of the maths may not have: all but the standard library, NumPy, `extra` and the maths."""
    for name in imports(source):
        top, *rest = name.split(".")
        if top == "lesson_utils":
            allowed = rest and rest[0] in MATHS
        else:
            allowed = top in sys.stdlib_module_names | {"numpy", *extra}
        if not allowed:
            yield name


def test_the_maths_imports_neither_classroom_nor_other_libraries():
    for path in ROOT.rglob("*.py"):
        wing = path.relative_to(ROOT).parts[0].removesuffix(".py")
        assert wing in MATHS | CLASSROOM, f"{wing} is new: add it to MATHS or CLASSROOM in this test"
        if wing in MATHS:
            extra = {"_bar": ["tqdm"], "_machine": ["threadpoolctl"]}.get(wing, [])
            assert list(forbidden(path.read_text(encoding="utf-8"), extra)) == [], path


@pytest.mark.slow
def test_no_learner_needs_the_maintainers_tools():
    for path in ROOT.rglob("*.py"):
        assert not [name for name in imports(path.read_text(encoding="utf-8")) if name.split(".")[0] == "tools"], path


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import math\nimport numpy as np\nfrom numpy.typing import ArrayLike", []),
        ("from lesson_utils import ops\nfrom lesson_utils._checks import as_size", []),
        ("from lesson_utils import ops, plots", ["lesson_utils.plots"]),
        ("from lesson_utils.lessons.start_here import lab", ["lesson_utils.lessons.start_here.lab"]),
        ("import lesson_utils.live as live", ["lesson_utils.live"]),
        ("import lesson_utils", ["lesson_utils"]),
        ("from . import plots\nfrom .quiz import ask", ["..plots", ".quiz.ask"]),
        ("def f():\n    import matplotlib.pyplot", ["matplotlib.pyplot"]),
        ("from tqdm.auto import tqdm", ["tqdm.auto.tqdm"]),
    ],
)
def test_a_forbidden_import_is_found_wherever_it_hides(source, found):
    assert list(forbidden(source)) == found


def test_only_the_training_loop_may_show_progress():
    assert list(forbidden("from tqdm.auto import tqdm", extra=["tqdm"])) == []


@pytest.mark.slow
def test_importing_everything_changes_no_setting_and_opens_no_figure():
    """In a process of its own: in this one, earlier tests have imported the modules already."""
    source = """
import importlib, pkgutil, matplotlib, lesson_utils
before = dict(matplotlib.rcParams)
for module in pkgutil.walk_packages(lesson_utils.__path__, "lesson_utils."):
    importlib.import_module(module.name)
assert dict(matplotlib.rcParams) == before, "rcParams changed"
from matplotlib import pyplot
assert pyplot.get_fignums() == [], "a figure was opened"
"""
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
