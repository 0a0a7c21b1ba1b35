"""The code on pages runs as a reader would run it, and prints what stands below it."""

import ast
import contextlib
import importlib.util
import io
import linecache
import re
from pathlib import Path

import numpy as np
import pytest

from lesson_utils.exercises import check

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.+?)```(?:\s*```text\n(.+?)```)?", re.DOTALL)
RUN = re.compile(r"""(?:python -m |\brun\(")((?:lesson_utils|tools)(?:\.\w+)*)""")
AS_IN_A_NOTEBOOK = {"README.md": {"np": np, "check": check}}  # what its set-up cell has imported


def shown_by(source, names, file):
    """Run code as a notebook's cell, and return what the cell shows."""
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    *statements, last = ast.parse(source).body
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(statements, []), file, "exec"), names)
        if not isinstance(last, ast.Expr):
            exec(compile(ast.Module([last], []), file, "exec"), names)
        elif (value := eval(compile(ast.Expression(last.value), file, "eval"), names)) is not None:
            print(value._repr_mimebundle_()["text/plain"] if hasattr(value, "_repr_mimebundle_") else repr(value))
    return printed.getvalue()


@pytest.mark.parametrize("page", ["README.md", "docs/own_exercises.md", "docs/own_figures.md"])
def test_code_on_a_page_prints_what_stands_below_it(page):
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert any(stands for _, stands in blocks)
    names = dict(AS_IN_A_NOTEBOOK.get(page, {}))
    for number, (source, stands) in enumerate(blocks):
        if source.startswith("import pandas") and not importlib.util.find_spec("pandas"):
            break  # tests/platforms/test_graders.py runs the page where there is pandas
        shown = shown_by(source, names, f"<{page} {number}>")
        shown = shown.replace("still looking…\n", "")  # on a busy machine
        assert not stands or shown.split() == stands.split()


def test_modules_that_are_named_to_be_run_can_be_run():
    """Wherever they are named: on a page, in a notebook, in a docstring, in course.py."""
    here = [ROOT / "course.py", ROOT / "README.md"]
    for folder in ("lesson_utils", "tools", "notebooks", "docs", ".github"):
        here += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".ipynb", ".yml")]
    named = {name for path in here for name in RUN.findall(path.read_text(encoding="utf-8"))}
    assert {"lesson_utils.maths.pretrained", "tools"} <= named
    for name in named:
        spec = importlib.util.find_spec(name)
        assert spec, name
        if spec.submodule_search_locations is not None:
            assert importlib.util.find_spec(f"{name}.__main__"), name
