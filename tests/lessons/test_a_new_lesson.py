"""A new lesson takes its package and its notebook, and no edit anywhere else: a toy in a temporary folder is found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "__init__.py": """
from lesson_utils.classroom.lesson import Lesson

LESSON = Lesson(99, "Toys", "What is a toy?", exercises=("twice",))
""",
    "lab.py": """
from lesson_utils import live
from lesson_utils.classroom.claims import as_written


@live.lab(
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

from lesson_utils.exercises.form import Case, Exercise, change

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
    "questions.py": """
from lesson_utils.quiz import Option, Question

QUESTIONS = (
    Question(
        "What is a toy?",
        (
            Option("A thing to work with.", "That is a tool, which may be fun as well."),
            Option("A thing to play with.", "Nothing depends on it, so you can try things.", right=True),
            Option("A thing to eat with.", "That would be cutlery; it is no toy."),
        ),
    ),
)
""",
}
SCRIPT = """
import sys
from lesson_utils import lessons, quiz

lessons.__path__.append(sys.argv[1])
lessons.LESSONS = lessons.find()
from lesson_utils.exercises import check
from tools import save

assert check.twice(lambda x: x + x).passed and check.twice(lambda x: x**2).misconception == "squared"
assert "What is a toy?" in quiz.checkpoint("toy")._repr_mimebundle_()["text/plain"]
head = "| | Notebook | Its question |\\n|---|---|---|\\n"
for folder in ("notebooks/", ""):
    assert f"| 99 | [Toys]({folder}99_toy.ipynb) | What is a toy? |" in save.with_table(head, folder)

import pytest
tests = ["tests/lessons/test_every_lesson.py", "tests/test_exercises.py"]
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "(toy or twice) and not notebook", *tests]))
"""


@pytest.mark.slow
def test_a_lesson_is_found_by_being_there(tmp_path):
    package = tmp_path / "toy"
    package.mkdir()
    for name, source in FILES.items():
        (package / name).write_text(source.lstrip(), encoding="utf-8")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # its figure by five tests, its exercise by several, its quiz by one
    assert int(done.stdout.rpartition(" passed")[0].split()[-1]) >= 12
