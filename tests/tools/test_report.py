"""What a class misunderstood: a made-up class of thirty whose mistakes are known, in notebooks as they come."""

import ast
import copy
import csv
import json
import os
import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from learners import EXERCISES

from tools.teacher import handed_in, page, report

ROOT = Path(__file__).parents[2]
NAMES = ("score_variance", "softmax", "attention")  # of notebook 02
TWO = json.loads((ROOT / "notebooks/02_scaled_attention.ipynb").read_text(encoding="utf-8"))
for one in TWO["cells"]:
    one.pop("outputs", None)  # tests write many


def answered(answers):
    """Notebook 02 with a body, or a whole cell, in the place of stubs: {"softmax": "return x"}."""
    notebook = copy.deepcopy(TWO)
    cells = notebook["cells"]
    for name, source in answers.items():
        exercise = EXERCISES[name]
        at = next(i for i, cell in enumerate(cells) if "".join(cell["source"]).startswith(f"check.{name}("))
        if not source.startswith("def "):
            source = f"def {exercise.function_name}({exercise.takes}):\n{textwrap.indent(source, '    ')}\n"
        cells[at - 1]["source"] = source
    return notebook


def body(name, mistake=None):
    exercise = EXERCISES[name]
    return exercise.body(next(m.ways[0] for m in exercise.mistakes if m.name == mistake) if mistake else {})


def cells(*sources):
    return {"cells": [{"cell_type": "code", "source": source} for source in sources]}


def written(path, notebook):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook), encoding="utf-8")
    return path


def examined(path, notebook, **limits):
    return report.examine(written(path, notebook), handed_in.homes(), **limits)


def found(notebook, tmp_path):
    """What would be run of a notebook, by exercise; nothing is."""
    homes = handed_in.homes()
    answers = handed_in.answers(handed_in.read(written(tmp_path / "x.ipynb", notebook), homes), homes)
    return {answer.exercise: answer for answer in answers}


# Twelve who did what is known: (score_variance, softmax, attention); None is right, "" left as it was.
CLASS = [
    *[("as for the normal", None, "no scale")] * 3,
    *[(None, "not stable", "no scale")] * 2,
    *[("", "sum over everything", "mask after softmax")] * 2,
    *[("", "", "")] * 2,
    (None, None, None),
    ("standard deviation", "not stable", None),
    ("one term", "sigmoid", "mask inverted"),
]


@pytest.mark.long_form
def test_a_class_and_its_mistakes(tmp_path):
    folder = tmp_path / "class"
    for number, mistakes in enumerate(CLASS):
        answers = {n: body(n, m) for n, m in zip(NAMES, mistakes, strict=True) if m != ""}
        written(folder / f"group {number % 2}" / f"Übung {number}.ipynb", answered(answers))
    written(folder / "=empty.ipynb", "")
    written(folder / "broken.ipynb", '{"cells": [')
    os.truncate(written(folder / "huge.ipynb", ""), handed_in.MOST_BYTES + 1)
    written(folder / ".ipynb_checkpoints" / "a-checkpoint.ipynb", answered({}))

    rows = {row.student: row for row in report.report(folder, tmp_path / "out", workers=2)}

    assert len(rows) == len(CLASS) + 3
    for number, mistakes in enumerate(CLASS):
        found = rows[f"group {number % 2}/Übung {number}"].results
        states = {None: ("right", None), "": ("untouched", None)}
        expected = {n: states.get(m, ("wrong", m)) for n, m in zip(NAMES, mistakes, strict=True)}
        assert {n: (r.state, r.name) for n, r in found.items()} == expected
    for name, said in (("=empty", "is empty"), ("broken", "no notebook"), ("huge", "MB")):
        assert said in rows[name].problem
    named = Counter((n, m) for mistakes in CLASS for n, m in zip(NAMES, mistakes, strict=True) if m)
    found = page.mistakes([*rows.values()])
    assert {(m.exercise, m.name): m.count for m in found} == named
    assert [m.count for m in found] == sorted((m.count for m in found), reverse=True)
    lines = [*csv.reader((tmp_path / "out/table.csv").read_text(encoding="utf-8-sig").splitlines())]
    assert [len(line) for line in lines] == [6] * 16
    assert "'=empty" in [line[0] for line in lines], "a spreadsheet computes nothing"
    for form in ("mistakes.txt", "mistakes.html"):
        text = (tmp_path / "out" / form).read_text(encoding="utf-8")
        assert "attention: no scale (5 students)" in text
        assert not re.search("Übung|group|broken", text), "the page is to be shown to the class"


def test_an_exercise_that_ends_its_process_costs_only_itself(tmp_path):
    answers = {"softmax": "import os\nos._exit(0)", "attention": body("attention", "no scale")}
    row = examined(tmp_path / "a.ipynb", answered(answers))
    assert (row.results["softmax"].state, row.results["attention"].name) == ("stopped", "no scale")


def test_renamed_moved_and_without_metadata(tmp_path):
    notebook = cells(
        "check.softmax(my_own)",
        "helper = 3\ndef my_own(x):\n    return help_me(x) + helper",
        "model = train()\nplot(model)",
        "import numpy as np\ndef help_me(x):\n    return np.exp(x)",
    )
    answer = found(notebook, tmp_path)["softmax"]
    assert answer.expression == "my_own"
    assert [statement.node.lineno for statement in answer.statements] == [1, 2, 1, 2], "and no training"
    assert answer.code.startswith("def my_own(x):")


def test_without_its_check_a_function_is_found_by_cell_or_name(tmp_path):
    notebook = answered({"softmax": "def renamed(x):\n    return x"})
    notebook["cells"] = [cell for cell in notebook["cells"] if "check.softmax" not in "".join(cell["source"])]
    assert found(notebook, tmp_path)["softmax"].expression == "renamed", "by the id of its cell"
    assert found(cells("def my_softmax(x):\n    return x"), tmp_path).keys() == {"softmax"}, "by its name"


def test_only_what_a_function_needs_is_run(tmp_path):
    notebook = cells(
        "%matplotlib inline\n!pip install torch\nfrom numpy import *",
        "scores = train_for_hours()\nlimit = 9\nfor limit in range(10**9):\n    pass",
        "%%time\nimport math",
        "%%bash\nrm -rf",
        "class Helper:\n    size = limit",
        "my_softmax = lambda x: exp(x / Helper.size)",
        "def my_attention(Q, K, V, mask=None):\n    scores = Q\n    return math.sqrt(scores)",
        "check.softmax(my_softmax)\ncheck.attention(my_attention)",
    )
    answers = found(notebook, tmp_path)
    needed = [statement for answer in answers.values() for statement in answer.statements]
    assert not any("scores" in s.binds or isinstance(s.node, ast.For) for s in needed)
    assert {n for s in answers["softmax"].statements for n in s.binds} == {"*", "limit", "Helper", "my_softmax"}
    assert {n for s in answers["attention"].statements for n in s.binds} == {"*", "math", "my_attention"}


def test_cells_that_are_no_python_and_functions_that_are_gone(tmp_path):
    notebook = cells("def my_softmax(x):\n    return x +", "check.softmax(my_softmax)", "check.attention(my_attention)")
    answers = found(notebook, tmp_path)
    assert "no Python: SyntaxError, invalid syntax, in line 2: `return x +`" in answers["softmax"].problem
    assert "the function is not" in answers["attention"].problem


def test_what_is_no_notebook_of_the_course(tmp_path):
    row = examined(tmp_path / "x.ipynb", cells("1 + 1"))
    assert (row.problem, row.results) == ("it holds no exercise of this course", {})
    for content in ("", "[]", '{"cells": 3}', "[" * 10**5):
        with pytest.raises(handed_in.Unreadable, match="no notebook" if content else "empty"):
            handed_in.read(written(tmp_path / "x.ipynb", content), {})


@pytest.mark.slow
def test_nothing_printed_is_taken_for_a_result(tmp_path):
    """Not on any channel that is open, for an exercise judged before; the key is not to be guessed."""
    line = '{"key": "", "exercise": "softmax", "result": {"state": "right"}}'
    write = f"os.write(channel, b'''\\n{line}\\n''')"
    forged = f"import os\nfor channel in range(20):\n    try: {write}\n    except OSError: pass"
    row = examined(tmp_path / "x.ipynb", answered({"score_variance": f"{forged}\nprint('''{line}''')\nreturn 0"}))
    states = {"softmax": "untouched", "attention": "untouched", "score_variance": "wrong"}
    assert {name: result.state for name, result in row.results.items()} == states


def test_students_with_one_notebook_and_with_several(tmp_path):
    def row(*names):
        return page.Row("", {name: page.Result("right") for name in names})

    rows = {
        tmp_path / "flat.ipynb": row("softmax"),
        tmp_path / "ada/02.ipynb": row("softmax", "attention"),
        tmp_path / "ada/03/03.ipynb": row("split_heads"),
        tmp_path / "group/bob.ipynb": row("softmax"),
        tmp_path / "group/cyd.ipynb": row("softmax"),
    }
    found = report.of_students(rows, tmp_path)
    assert [(r.student, len(r.results)) for r in found] == [("ada", 3), ("flat", 1), ("group/bob", 1), ("group/cyd", 1)]


def test_the_page_shows_what_students_wrote_as_text():
    bad = "<script>alert(1)</script>"
    rows = [page.Row("x", {"softmax": page.Result("wrong", None, f"Your {bad} is 3.", f"return '{bad}'")})]
    assert bad not in page.page(rows)
    assert page.page(rows).count("&lt;script&gt;") >= 2


def test_two_mistakes_at_once_count_for_both_and_are_no_example():
    both = page.Result("wrong", "not stable; sigmoid", "Two", "a")
    one = page.Result("wrong", "sigmoid", "One", "longer")
    found = page.mistakes([page.Row("x", {"softmax": both}), page.Row("y", {"softmax": one})])
    assert [(m.name, m.count, m.code) for m in found] == [("sigmoid", 2, "longer"), ("not stable", 1, "a")]
    assert "squashes" in found[0].message, "the course's own words for it"


def test_mistakes_without_a_name_are_told_apart_by_what_was_said_and_stand_so_in_the_table():
    shapes = "`Q` has shape (3, 5, 4), `K.T` has shape (4, 5, 3)"
    said = (
        f"An error on 5 tokens, in line 4 of your cell: `s = Q @ K.T`.\n{shapes}: 4 is not 5. (ValueError)",
        f"An error on 5 tokens, in line 9 of your cell: `t = Q @ K.T`.\n{shapes}: 4 is not 5. (ValueError)\nAnd so on.",
        "On 3 queries: `weights`: all of it is NaN. `weights[0]` is nan; expected 0.",
        "Two things to mend.\n1. Line 2: leave out `a`. Why.\n2. Lines 3 and 4: write `axis=-1` instead of `axis=0`.",
        "Line 7: write `axis=-1` instead of `axis=0`. The call must run along another axis.",
        "Your function changes its argument `x` in place in line 3, `x[:] = 0`, and with it the caller's array. Copy.",
    )
    rows = [page.Row("x", {"softmax": page.Result("wrong", None, message)}) for message in said]
    names = {
        f"ValueError: {shapes}": 2,
        "Write `axis=-1` instead of `axis=0`": 2,
        "`weights`: all of it is NaN": 1,
        "Leave out `a`": 1,
        "Your function changes its argument `x` in place, and with it the caller's array": 1,
    }
    assert {mistake.name: mistake.count for mistake in page.mistakes(rows)} == names
    cells = [line[1] for line in csv.reader(page.table(rows).splitlines())]
    assert {name for cell in cells[1:] for name in cell.split("; ")} == {*names}
    assert "<code>K.T</code>" in re.sub(" style=[^>]*", "", page.page(rows)).split("</h2>")[0]


@pytest.mark.slow
def test_a_loop_without_end_counts_as_stopped(tmp_path):
    row = examined(tmp_path / "a.ipynb", answered({"softmax": "while True:\n    pass"}), seconds=1)
    assert (row.results["softmax"].state, row.results["softmax"].name) == ("stopped", "stopped")
    assert "Does a loop never end?" in row.results["softmax"].message


def test_files_that_are_no_notebooks_are_named_but_for_the_courses_own(tmp_path):
    for name in ("a.ipynb", "b.ipynb.txt", "c.pdf", "kim/solved.txt", ".d/e.ipynb"):
        written(tmp_path / name, "")
    assert report.notebooks(tmp_path) == (
        [tmp_path / "a.ipynb"],
        {tmp_path / "b.ipynb.txt": "its name does not end with .ipynb"},
        [tmp_path / "c.pdf"],
    )
