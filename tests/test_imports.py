"""Imports run one way: the classroom uses the maths, never the reverse."""

import ast
import importlib
import pkgutil
import sys
from pathlib import Path

import matplotlib

import lesson_utils

ROOT = Path(lesson_utils.__file__).parent
MATHS = set(
    "_checks ops attention positions efficient layers recurrent models training tasks gradcheck pretrained".split()
)
CLASSROOM = set("_html plots live labs exercises quiz bench browser publish".split())


def imports(source):
    """What a module imports, as dotted names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def forbidden(source):
    """Imports that a module of the maths may not have."""
    for name in imports(source):
        top, *rest = name.split(".")
        if top == "lesson_utils":
            if rest[0] not in MATHS:
                yield name
        elif top not in sys.stdlib_module_names and top not in ("numpy", "tqdm"):
            yield name


def test_the_maths_imports_neither_classroom_nor_other_libraries():
    for path in ROOT.rglob("*.py"):
        wing = path.relative_to(ROOT).parts[0].removesuffix(".py")
        assert wing in MATHS | CLASSROOM | {"__init__"}, f"{wing} is new: add it to MATHS or CLASSROOM in this test"
        if wing in MATHS:
            assert list(forbidden(path.read_text(encoding="utf-8"))) == [], path


def test_a_forbidden_import_is_found_wherever_it_hides():
    source = "import numpy\nfrom lesson_utils import ops, plots\ndef f():\n    import matplotlib.pyplot\n"
    assert list(forbidden(source)) == ["lesson_utils.plots", "matplotlib.pyplot"]


def test_importing_everything_changes_no_setting_and_opens_no_figure():
    before = dict(matplotlib.rcParams)
    for module in pkgutil.walk_packages(lesson_utils.__path__, "lesson_utils."):
        if module.name.rpartition(".")[2] not in ("browser", "__main__"):
            importlib.import_module(module.name)
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or sys.modules["matplotlib.pyplot"].get_fignums() == []
