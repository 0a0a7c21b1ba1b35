"""A plugin for pytest (`-p tests.running_notebooks`): how notebooks are run, and what their texts claim.

A conftest.py in tests/ is for the files beside it; nbval's cells belong to files in notebooks/.
"""

import functools
import os
import re
from pathlib import Path

import pytest

CLAIMS = Path(__file__).parent / "claims"

os.environ["COURSE_STRICT"] = "1"  # pictures that are too wide for their titles, or too large, are errors
os.environ.setdefault("COURSE_TRAIN", "no")  # as course.py has it
os.environ["COURSE_PROGRESS"] = "off"  # what tests solve is nobody's progress


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Behind each cell that nbval has run, check what the notebook's text claims of it.

    The claims stand in tests/claims, because nobody who learns from a notebook wants to read them.
    """
    yield
    if item.path.suffix == ".ipynb" and (claim := claims(item.path.stem).get(item.cell["id"])):
        reply = item.parent.kernel.kc.execute(claim, silent=True, reply=True, timeout=120)["content"]
        assert reply["status"] == "ok", f"{reply['ename']}: {reply['evalue']}"


@functools.cache
def claims(notebook):
    """Return what a notebook's text claims, as code to run behind a cell, by the cell's name."""
    path = CLAIMS / f"claims_of_{notebook}.py"
    if not path.exists():
        return {}
    head, *parts = re.split(r"^# %% (\S+)\n", path.read_text(encoding="utf-8"), flags=re.M)
    return {cell: head + claim for cell, claim in zip(parts[::2], parts[1::2], strict=True)}
