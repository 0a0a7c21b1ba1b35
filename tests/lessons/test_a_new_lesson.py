"""A new lesson takes its package and its notebook, and no other edit: a toy is added to a copy of the course."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from lesson_utils.classroom.course import LESSONS
from tools import save

ROOT = Path(__file__).parents[2]
NUMBER = len(LESSONS)
FILES = {
    "__init__.py": """
from lesson_utils.classroom.course import Lesson

LESSON = Lesson(NUMBER, "Toys", "What is a toy?", exercises=("twice",))
""",
    "lab.py": "from lesson_utils.lessons.toy.bars import toy_lab\n",
    "bars.py": """
from lesson_utils.classroom import live


@live.lab(
    neutral="Nothing has moved.",
    width=4,
    height=2,
    controls=lambda heights: {"n": live.Slider("bar", 1, len(heights), 1)},
    example=lambda: [1.0, 3.0, 2.0],
)
def toy_lab(figure, heights):
    ax = figure.add_subplot(ylim=(0, 4))
    (bar,) = ax.bar([0], [0])

    def update(n):
        bar.set_height(heights[n - 1])
        ax.set_title(f"Bar {n}")
        return f"A single bar, number {n}, which is {heights[n - 1]} high."

    return update
""",
    "exercises.py": """
import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise, change

EXERCISES = (
    Exercise(
        name="twice",
        takes="x",
        task="Twice an array.\\n\\nx: (n,). Returns the doubled, (n,); x stays as it was.",
        steps={"double": "return 2 * x"},
        cases=lambda rng: [Case("five numbers", (rng.normal(size=5),)), Case("three", (rng.normal(size=3),))],
        returns=("doubled",),
        hints=("Multiply.", "By 2."),
        mistakes=(
            change("squared", "You squared it: `**` is a power.", "x**2"),
            change("half", "You halved it.", "x / 2"),
            change("three times", "That is one too many.", "3 * x"),
            change("unchanged", "You return x as it is.", "x"),
        ),
        praise="Doubled.",
    ),
)
""",
    "questions.txt": """
? moved
- all
* one
= Only the number that was chosen moves.

? What is a toy?
- A thing to work with. | That is a tool, which may be fun as well.
* A thing to play with. | Nothing depends on it, so you can try things.
- A thing to eat with. | That would be cutlery; it is no toy.
""",
}
NOTEBOOK = f"""
# {NUMBER:02} · Toys
*What is a toy?*

**Time:** about 5 minutes.
---
from lesson_utils import quiz
from lesson_utils.exercises import check
from lesson_utils.lessons.toy import lab
---
## 1 · Move it

**Predict:** how many numbers move?
---
quiz.predict("toy", "moved")
---
lab.toy_lab([1.0, 3.0, 2.0])
---
### What moves

<details class="answer"><summary>What happened</summary>

Only one.

</details>
---
def twice(x):
    \"\"\"Twice an array.

    x: (n,). Returns the doubled, (n,); x stays as it was.
    \"\"\"
    # your code, in place of the three dots
    ...
---
check.twice(twice)
---
double = check.twice.mine(twice)
print(double(3.0))
---
quiz.checkpoint("toy")
---
## The answer

*What is a toy?* You have seen one.
---
from lesson_utils import progress

progress.here("toy")
"""


@pytest.fixture
def course(tmp_path):
    """Return a copy of the course with one more lesson."""
    for name in ("lesson_utils", "notebooks", "tests", "tools", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*", "_build"))
    for name in ("README.md", "pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "lesson_utils/lessons/toy"
    package.mkdir()
    for name, source in FILES.items():
        (package / name).write_text(source.lstrip().replace("NUMBER", str(NUMBER)), encoding="utf-8")
    cells = [cell.strip() for cell in NOTEBOOK.split("---")]
    kinds = [nbformat.v4.new_markdown_cell if re.match("#", cell) else nbformat.v4.new_code_cell for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=[kind(cell) for kind, cell in zip(kinds, cells, strict=True)])
    nbformat.write(notebook, tmp_path / f"notebooks/{NUMBER:02}_toy.ipynb")
    return tmp_path


@pytest.mark.slow
@pytest.mark.long_form
def test_a_lesson_is_found_by_being_there(course):
    def python(*words):
        environment = os.environ | {"PYTHONPATH": str(course)}
        done = subprocess.run([sys.executable, *words], cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = python("-m", "tools", "save", "notebooks/00_start_here.ipynb", f"notebooks/{NUMBER:02}_toy.ipynb")
    assert f"write into the table for teachers what to ask about notebook {NUMBER:02}" in said
    readme = (course / "README.md").read_text(encoding="utf-8")
    assert f"| {NUMBER:02} | [Toys](notebooks/{NUMBER:02}_toy.ipynb) | What is a toy? |" in readme
    assert f"| {NUMBER:02} | 5, 5 | `lab.toy_lab` | | |" in (course / save.TEACHING).read_text(encoding="utf-8")
    others = " and ".join(f"not {lesson.name}" for lesson in LESSONS)
    chosen = (
        f"(test_every_lesson and {others}) or (test_exercises and twice) or toy"  # all but what is another lesson's
    )
    places = "tests/lessons", "tests/mistakes", "tests/test_predictions.py", "tests/test_core.py"
    said = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *places)
    assert int(said.rpartition(" passed")[0].split()[-1]) >= 30, said
