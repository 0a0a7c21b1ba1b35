"""The code on pages runs as a reader would run it, and prints what stands below it."""

import ast
import contextlib
import io
import linecache
import re
from pathlib import Path

import numpy as np
import pytest

from lesson_utils.exercises import check

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.+?)```(?:\s*```text\n(.+?)```)?", re.DOTALL)
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
        shown = shown_by(source, names, f"<{page} {number}>")
        assert not stands or shown.split() == stands.split()
