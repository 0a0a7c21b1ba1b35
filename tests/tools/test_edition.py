"""Handouts: a student's edition in which no solution can be reached, and one with every exercise filled in."""

import ast
import builtins
import json
from collections import defaultdict

import numpy as np
import pytest
from learners import EXERCISES, cell

from lesson_utils.classroom.course import LESSONS
from lesson_utils.exercises import check, unaided
from lesson_utils.mistakes.recognise.fault_bank import bank_of
from lesson_utils.mistakes.run.outcome import same
from lesson_utils.mistakes.run.sandbox import attempt
from tools.teacher import edition, handed_in

every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def tagged(cell, tag):
    return tag in cell["metadata"].get("tags", ())


def pages(notebook):
    """What the checks of its exercises have shown."""
    checks = [one for one in code(notebook) if "".join(one["source"]).split("(")[0].removeprefix("check.") in EXERCISES]
    return ["".join(output["data"]["text/html"]) for one in checks for output in one["outputs"]]


def made(make, lesson, folder):
    """The notebook before and after, and the statements of each cell of code afterwards, which is Python."""
    (path,) = edition.write(make, [lesson], folder)
    notebook, found, statements = (
        json.loads(path.read_text(encoding="utf-8")),
        handed_in.read(path, {}),
        defaultdict(list),
    )
    assert not found.broken
    for statement in found.statements:
        statements[int(statement.file.removeprefix("<cell ").rstrip(">"))].append(statement)
    before = json.loads((edition.ROOT / "notebooks" / lesson.notebook).read_text(encoding="utf-8"))
    return before, notebook, [(one, statements[number]) for number, one in enumerate(code(notebook), 1)]


@every_lesson
def test_a_students_edition_holds_no_solution_and_differs_in_nothing_else(lesson, tmp_path):
    before, notebook, cells = made(edition.student, lesson, tmp_path)
    kept = [one for one in before["cells"] if not tagged(one, edition.GIVES_AWAY)]
    assert [one["id"] for one in kept] == [one["id"] for one in notebook["cells"]]
    changed = [b["id"] for a, b in zip(kept, notebook["cells"], strict=True) if a["source"] != b["source"]]
    assert changed == ["setup"], "the set-up cell, and no other, has the id `setup`: copy it from another notebook"
    assert not any(one["outputs"] for one, _ in cells), "a hint is an output"
    everything = json.dumps(notebook, ensure_ascii=False)
    for exercise in map(EXERCISES.get, lesson.exercises):
        assert any("".join(one["source"]).endswith(exercise.stub.rstrip()) for one, _ in cells)
        assert not any(json.dumps(hint, ensure_ascii=False)[1:-1] in everything for hint in exercise.hints)
        for one, statements in cells:
            functions = [s.node for s in statements if isinstance(s.node, ast.FunctionDef)]
            assert tagged(one, "exercise") or not any(solves(function, exercise) for function in functions)


def solves(function, exercise):
    try:
        answer = cell(ast.unparse(function), exercise.names())[function.name]
    except NameError:  # a default value that the notebook computes
        return False
    bank = bank_of(exercise)
    return all(same(attempt(answer, c.arguments, 1), w) for c, w in zip(bank.cases, bank.wanted, strict=True))


@every_lesson
def test_a_solution_edition_solves_every_exercise(lesson, tmp_path):
    _, notebook, cells = made(edition.solution, lesson, tmp_path)
    assert len(pages(notebook)) == len(lesson.exercises)
    assert all("<strong>Correct.</strong>" in page for page in pages(notebook))
    for name in lesson.exercises:
        exercise = EXERCISES[name]
        sources = ["".join(one["source"]) for one, _ in cells]
        (filled,) = [source for source in sources if f"def {exercise.function_name}(" in source]
        assert exercise.task.splitlines()[0] in filled, "what was asked for stays above it"
        assert "your code" not in filled
    bound = set(dir(builtins))
    for one, statements in cells:
        bound = bound.union(*(statement.binds for statement in statements))
        if tagged(one, "exercise"):
            assert not {name for s in statements for name in s.uses} - bound, "what it uses, the notebook has"


def test_checks_of_the_students_edition_give_no_help():
    for answer in (None, lambda weights, values: values, lambda weights, values: weights @ values):
        aided, alone = check.weighted_average(answer), unaided.weighted_average(answer)
        assert (alone.passed, alone.misconception) == (aided.passed, aided.misconception)
        assert "<details" in aided._repr_mimebundle_()["text/html"]
        assert "<details" not in alone._repr_mimebundle_()["text/html"]
        assert (alone.hints, alone.solution) == ((), "")

    def my_test(weighted_average):
        assert weighted_average(np.array([0.5, 0.5]), np.ones((2, 3))).shape == (3,)

    aided, alone = check.finds_bugs(my_test), unaided.finds_bugs(my_test)
    assert alone.survivors == aided.survivors != (), "what survives is named"
    assert aided.more != alone.more == (), "without its code"


def test_files_are_written_where_one_says(tmp_path, capsys):
    edition.main(["--solution", "02", "notebooks/00_start_here.ipynb", "--to", str(tmp_path)])
    assert {path.name for path in tmp_path.glob("*.ipynb")} == {"00_start_here.ipynb", "02_scaled_attention.ipynb"}
    assert (tmp_path / "pictures").is_dir()
    assert str(tmp_path / "02_scaled_attention.ipynb") in capsys.readouterr().out
    for words in (["--student", "99"], [], ["--student", "--solution"]):
        with pytest.raises(SystemExit):
            edition.main(words)


@pytest.mark.long_form
@pytest.mark.parametrize("make", [edition.student, edition.solution], ids=["student", "solution"])
@pytest.mark.parametrize("number", [0, 2])
def test_editions_run(number, make, tmp_path, monkeypatch):
    """From top to bottom, in a kernel; and what the checks then show is what the edition promises."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "solved.txt"))
    (path,) = edition.write(make, [LESSONS[number]], tmp_path)
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    shown = pages(json.loads(nbformat.writes(notebook)))
    last = next(c for c in notebook.cells if c.id == "progress").outputs[0].data["text/plain"]
    if make is edition.student:
        assert all("Not attempted yet." in page and "<details" not in page for page in shown)
        assert "have not solved" in last
    else:
        assert all("Correct." in page for page in shown)
        assert "have not solved" not in last
