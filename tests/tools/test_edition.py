"""Handouts: a student's edition in which no solution can be reached, and one with every exercise filled in."""

import ast
import builtins
import json

import numpy as np
import pytest
from learners import EXERCISES, cell

from lesson_utils.classroom.course import LESSONS
from lesson_utils.exercises import check, unaided
from lesson_utils.mistakes.recognise.fault_bank import bank_of
from lesson_utils.mistakes.run.outcome import same
from lesson_utils.mistakes.run.sandbox import attempt
from tools.teacher import edition, handed_in
from tools.teacher.edition import _code as code
from tools.teacher.edition import _source as source

every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def original(lesson):
    return json.loads((edition.ROOT / "notebooks" / lesson.notebook).read_text(encoding="utf-8"))


def pages(notebook):
    """What its checks have shown."""
    checks = [cell for cell in code(notebook) if edition._checked(cell) in EXERCISES]
    return ["".join(output["data"]["text/html"]) for cell in checks for output in cell["outputs"]]


@every_lesson
def test_a_students_edition_holds_no_solution_and_differs_in_nothing_else(lesson):
    before, notebook = original(lesson), edition.student(original(lesson), lesson)
    kept = [c for c in before["cells"] if edition.GIVES_AWAY not in c["metadata"].get("tags", ())]
    assert [c["id"] for c in kept] == [c["id"] for c in notebook["cells"]]
    changed = [b["id"] for a, b in zip(kept, notebook["cells"], strict=True) if a["source"] != b["source"]]
    assert changed == ["setup"]

    assert not any(cell["outputs"] for cell in code(notebook)), "a hint is an output"
    sources = [(source(cell), cell) for cell in code(notebook)]
    everything = json.dumps(notebook, ensure_ascii=False)
    for exercise in map(EXERCISES.get, lesson.exercises):
        stub = exercise.stub.rstrip()
        assert any(text == stub or text.endswith(f"\n\n\n{stub}") for text, _ in sources), "the stub, and nothing else"
        assert not any(json.dumps(hint, ensure_ascii=False)[1:-1] in everything for hint in exercise.hints)
        for text, one in sources:
            if "exercise" not in one["metadata"].get("tags", ()):
                for node in handed_in._parsed(text)[1].body:
                    assert not (isinstance(node, ast.FunctionDef) and solves(node, exercise)), ast.unparse(node)


def solves(function, exercise):
    try:
        answer = cell(ast.unparse(function), exercise.names())[function.name]
    except NameError:  # a default value that the notebook computes
        return False
    bank = bank_of(exercise)
    return all(same(attempt(answer, c.arguments, 1), w) for c, w in zip(bank.cases, bank.wanted, strict=True))


@every_lesson
def test_a_solution_edition_solves_every_exercise(lesson):
    notebook = edition.solution(original(lesson), lesson)
    assert len(pages(notebook)) == len(lesson.exercises)
    assert all("<strong>Correct.</strong>" in page for page in pages(notebook))
    for name in lesson.exercises:
        exercise = EXERCISES[name]
        (filled,) = [source(c) for c in code(notebook) if f"def {exercise.function_name}(" in source(c)]
        assert exercise.task.splitlines()[0] in filled, "what was asked for stays above it"
        assert "your code" not in filled
        assert cell(filled, exercise.names()), "it is Python"
    found, bound = handed_in.HandedIn(), set(dir(builtins))
    for number, one in enumerate(code(notebook)):
        handed_in._read_cell(found, str(number), source(one), None)
        own = [statement for statement in found.statements if statement.file == str(number)]
        bound = bound.union(*(statement.binds for statement in own))
        if "exercise" in one["metadata"].get("tags", ()):
            assert not {name for s in own for name in s.uses} - bound, "what it uses, the notebook has"
    assert not found.broken


def test_checks_of_the_students_edition_give_no_help():
    for answer in (None, lambda weights, values: values, lambda weights, values: weights @ values):
        aided, alone = check.weighted_average(answer), unaided.weighted_average(answer)
        assert (alone.passed, alone.misconception) == (aided.passed, aided.misconception)
        assert alone.message.startswith(aided.message), "behind it stands that the function was checked before"
        assert "<details" in aided._repr_mimebundle_()["text/html"]
        assert "<details" not in alone._repr_mimebundle_()["text/html"]
        assert (alone.hints, alone.solution) == ((), "")
    assert dir(unaided) == dir(check)


def test_what_survives_a_students_test_is_named_without_its_code():
    def my_test(weighted_average):
        assert weighted_average(np.array([0.5, 0.5]), np.ones((2, 3))).shape == (3,)

    aided, alone = check.finds_bugs(my_test), unaided.finds_bugs(my_test)
    assert aided.more
    assert alone.more == ()
    assert alone.survivors == aided.survivors != ()


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
