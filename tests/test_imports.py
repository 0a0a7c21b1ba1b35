"""Imports run one way: a folder is a wing, and each wing has its walls."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lesson_utils

ROOT = Path(lesson_utils.__file__).parent
LIBRARIES = sys.stdlib_module_names | {"numpy"}
SHOWN_BY = {"matplotlib", "PIL", "ipywidgets", "IPython"}
# Wing by wing, by the folder: what its modules may import from this package, and from elsewhere.
WALLS = {
    "maths": ({"maths"}, LIBRARIES),
    "mistakes": ({"mistakes"}, LIBRARIES),
    "classroom": ({"maths", "mistakes", "classroom"}, LIBRARIES | SHOWN_BY),
    "lessons": ({"maths", "mistakes", "classroom", "lessons"}, LIBRARIES | SHOWN_BY),
}


def imports(source):
    """Yield what a module imports, as dotted names; but not what it tries to import and can do without."""
    tree = ast.parse(source)
    tried = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Try) and n.handlers and ast.unparse(n.handlers[0].type or n) == "ModuleNotFoundError"
    ]
    optional = {id(part) for attempt in tried for statement in attempt.body for part in ast.walk(statement)}
    for node in ast.walk(tree):
        if id(node) in optional:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def forbidden(source, wing="maths"):
    """Yield the imports that a module of this wing may not have."""
    wings, libraries = WALLS[wing]
    for name in imports(source):
        top, *rest = name.split(".")
        if not (rest and rest[0] in wings if top == "lesson_utils" else top in libraries):
            yield name


def modules():
    """Yield every module in a wing, with the wing's name."""
    for path in ROOT.rglob("*.py"):
        wing, *inner = path.relative_to(ROOT).parts
        if inner:
            assert wing in WALLS, f"{wing} is a new wing: say in WALLS what it may import"
            yield wing, path
    yield "classroom", ROOT / "exercises.py"  # the classroom's door, under the name that notebooks import


def test_no_wing_imports_what_is_behind_its_wall():
    for wing, path in modules():
        assert list(forbidden(path.read_text(encoding="utf-8"), wing)) == [], path


def test_the_engine_names_nothing_of_the_course():
    """Not in its messages, either: an exercise brings the words of its course."""
    for path in (ROOT / "mistakes").rglob("*.py"):
        found = re.findall(r"\bops\.\w+|lesson_utils\.(?!mistakes)\w+|the course's", path.read_text(encoding="utf-8"))
        assert found == [], path


@pytest.mark.slow
def test_the_maths_and_the_engine_work_where_nothing_but_numpy_is_installed():
    source = """
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
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_two_modules_import_each_other_however_far_around():
    """Imports inside functions and under TYPE_CHECKING count, too."""
    names = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for _, path in modules()
    }
    arrows = {}
    for name, path in names.items():
        found = set()
        for target in imports(path.read_text(encoding="utf-8")):
            found |= {t for t in (target, target.rpartition(".")[0]) if t in names and t != name}
        arrows[name] = {t for t in found if not name.startswith(f"{t}.")}
    while leaves := {name for name, to in arrows.items() if not to}:  # what is left at the end runs in circles
        arrows = {name: to - leaves for name, to in arrows.items() if name not in leaves}
    assert arrows == {}


@pytest.mark.slow
def test_no_learner_needs_the_maintainers_tools():
    for path in ROOT.rglob("*.py"):
        assert not [name for name in imports(path.read_text(encoding="utf-8")) if name.split(".")[0] == "tools"], path


@pytest.mark.parametrize(
    ("source", "wing", "found"),
    [
        ("import math\nimport numpy as np\nfrom numpy.typing import ArrayLike", "maths", []),
        ("from lesson_utils.maths import ops\nfrom lesson_utils.maths.checks import as_size", "maths", []),
        ("from lesson_utils.maths import ops", "mistakes", ["lesson_utils.maths.ops"]),
        ("from lesson_utils import ops", "lessons", ["lesson_utils.ops"]),
        ("from lesson_utils.lessons.start_here import lab", "classroom", ["lesson_utils.lessons.start_here.lab"]),
        ("import lesson_utils.classroom.live as live", "maths", ["lesson_utils.classroom.live"]),
        ("import lesson_utils", "maths", ["lesson_utils"]),
        ("from . import plots\nfrom .quiz import ask", "classroom", ["..plots", ".quiz.ask"]),
        ("def f():\n    import matplotlib.pyplot", "mistakes", ["matplotlib.pyplot"]),
        ("from tqdm.auto import tqdm", "maths", ["tqdm.auto.tqdm"]),
        ("try:\n    import tqdm\nexcept ModuleNotFoundError:\n    tqdm = None", "maths", []),
        ("try:\n    import torch\nexcept ValueError:\n    pass", "lessons", ["torch"]),
    ],
)
def test_a_forbidden_import_is_found_wherever_it_hides(source, wing, found):
    assert list(forbidden(source, wing)) == found


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
