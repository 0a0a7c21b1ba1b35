"""docs/own_exercises.md in other tools: its cells in nbgrader and Otter-Grader, and its exercise for pandas."""

import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from .conftest import ROOT

pytestmark = [pytest.mark.long_form, pytest.mark.own_job]
PAGE = (ROOT / "docs/own_exercises.md").read_text(encoding="utf-8")
NBGRADER, OTTER = re.findall(r"```py\n(.+?)```", PAGE, re.S)
BIASED = "return (a.mean() - b.mean()) / np.sqrt(np.var(a) / a.size + np.var(b) / b.size)"
SAID = "Your variances divide by n. A sample's variance divides by n − 1"


@pytest.fixture(scope="module")
def tools(environment):
    """What runs a module of the environment in a folder, with the course beside it."""
    environment.install("nbgrader", "otter-grader", "pandas", "pytest")
    return lambda *words, cwd: environment.run("-m", *words, cwd=cwd, PYTHONPATH=str(ROOT))


@pytest.fixture
def exercises(tmp_path):
    """The text of exercises.py, as a teacher writes it."""
    (exercise,) = re.findall(r"^WELCH = Exercise\(\n.+?^\)\n", PAGE, re.S | re.M)
    return f"import numpy as np\n\nfrom lesson_utils.mistakes.exercise import Case, Exercise, change\n\n{exercise}"


def notebook(path, *cells):
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    nbformat.write(new_notebook(cells=[new_code_cell("import numpy as np"), *cells], metadata=metadata), path)


def test_nbgrader_takes_the_cell_and_shows_the_message(tools, exercises, tmp_path):
    def cell(source, name, **kind):
        grader = {"schema_version": 3, "grade_id": name, "locked": False, "task": False, "grade": False, **kind}
        return new_code_cell(source, metadata={"nbgrader": {"solution": False} | grader})

    source = tmp_path / "source/one"
    source.mkdir(parents=True)
    (source / "exercises.py").write_text(exercises, encoding="utf-8")
    stub = "def welch(a, b):\n    ### BEGIN SOLUTION\n    return 0\n    ### END SOLUTION"
    test = cell(NBGRADER, "test", grade=True, locked=True, points=1)
    notebook(source / "welch.ipynb", cell(stub, "answer", solution=True), test)
    tools("nbgrader", "generate_assignment", "one", "--create", cwd=tmp_path)
    (tmp_path / "submitted/ada").mkdir(parents=True)
    handed_in = (tmp_path / "release/one").rename(tmp_path / "submitted/ada/one") / "welch.ipynb"
    answer = nbformat.read(handed_in, 4)
    answer.cells[1].source = f"def welch(a, b):\n    {BIASED}"
    nbformat.write(answer, handed_in)
    tools("nbgrader", "autograde", "one", "--create", cwd=tmp_path)
    tools("nbgrader", "generate_feedback", "one", cwd=tmp_path)
    assert SAID in (tmp_path / "feedback/ada/one/welch.html").read_text(encoding="utf-8").replace("&#39;", "'")


def test_otter_takes_the_file_and_shows_the_message(tools, exercises, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/welch.py").write_text(OTTER, encoding="utf-8")
    (tmp_path / "exercises.py").write_text(exercises, encoding="utf-8")
    begin = new_code_cell("import otter\ngrader = otter.Notebook(tests_dir='tests')")
    notebook(tmp_path / "welch.ipynb", begin, new_code_cell(f"def welch(a, b):\n    {BIASED}"))
    tools("otter", "generate", "-t", "tests", "--no-environment", "exercises.py", cwd=tmp_path)
    tools("otter", "run", "-a", "autograder.zip", "welch.ipynb", cwd=tmp_path)
    *_, test = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["tests"]
    assert test["score"] == 0
    assert SAID in test["output"]


def test_the_page_says_what_is_printed_with_pandas_too(tools, tmp_path):
    options = ("-c", tmp_path / "none.ini", "--noconftest", "-p", "no:cacheprovider", "-k", "own_exercises")
    (tmp_path / "none.ini").touch()
    assert "1 passed" in tools("pytest", *options, ROOT / "tests/test_pages.py", cwd=tmp_path)
