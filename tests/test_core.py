"""A notebook's core stands by itself, and what a learner writes in it is used."""

import re
from pathlib import Path

import nbformat
import pytest

from lesson_utils.classroom.course import LESSONS
from tools import prose, save

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
pytestmark = pytest.mark.walks
with_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


@pytest.mark.long_form
@with_lesson
def test_a_core_runs_without_its_further_sections(lesson):
    notebook = prose.read(lesson)
    notebook.cells = [cell for cell, further, _ in prose.with_places(notebook) if not further]
    save.run(notebook)  # an error in a cell is raised here


@with_lesson
def test_what_a_learner_writes_is_used(lesson):
    code = [cell.source for cell in prose.read(lesson).cells if cell.cell_type == "code"]
    for exercise in map(lesson.exercise, lesson.exercises):
        call = f"check.{exercise.name}.mine({exercise.function_name})"
        taking = re.compile(rf"(?:^|(?<=\s))(\w+) = {re.escape(call)}")
        taken = [(n, name) for n, source in enumerate(code) for name in taking.findall(source)]
        assert len(taken) == 1, f"one cell takes the learner's function, or ours: `mine = {call}`"
        ((place, mine),) = taken
        check = call.replace(".mine", "")
        assert check in code[:place], f"above `{mine} = {call}`, a cell holds `{check}`"
        below = code[place].split(".mine(", 1)[1] + "\n".join(code[place + 1 :])
        assert re.search(rf"\b{mine}\b", below), f"`{mine}` is taken, and nothing runs it"


@with_lesson
def test_guards_are_out_of_sight(lesson):
    for cell in prose.read(lesson).cells:
        assert not re.search(r"\bas_(?:written|timed)\b", cell.source), f"{cell.id}: its claims belong to tests/claims"


@with_lesson
def test_claims_belong_to_cells(lesson):
    file = Path(__file__).parent / "claims" / f"claims_of_{Path(lesson.notebook).stem}.py"
    if file.exists():
        named = re.findall(r"^# %% (\S+)$", file.read_text(encoding="utf-8"), re.M)
        code = {cell.id for cell in prose.read(lesson).cells if cell.cell_type == "code"}
        assert named
        assert len(named) == len(set(named))
        assert set(named) <= code, f"there is no cell {sorted(set(named) - code)}"


def test_the_core_of_a_notebook_is_what_is_not_further():
    text = ["# Title", "## 1 · A", "a", "## 2 · B · *Further*", "b", "### C", "## 3 · D"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(line) for line in text])
    core = [cell.source for cell, further, _ in prose.with_places(notebook) if not further]
    assert core == ["# Title", "## 1 · A", "a", "## 3 · D"]
