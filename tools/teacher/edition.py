"""Handouts: `python course.py edition --student|--solution [notebook ...]`. Nothing is run.

A student's edition shows neither hints nor solutions, and its checks show none. That holds for the notebook: the
package that it imports has both, and a later notebook may use what an earlier one asks for. A solution edition has
every exercise filled in, with the messages of the checks.
"""

import argparse
import ast
import copy
import json
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lesson_utils.classroom.course import LESSONS, Lesson
from lesson_utils.classroom.files import put
from lesson_utils.mistakes import judge
from lesson_utils.mistakes.exercise import Exercise
from tools.teacher.handed_in import ROOT

GIVES_AWAY = "gives-away"  # the tag of cells that hold the answer to an exercise above them
AIDED, UNAIDED = "from lesson_utils.exercises import check\n", "from lesson_utils.exercises import unaided as check\n"
Notebook = dict[str, Any]


def student(notebook: Notebook, lesson: Lesson) -> Notebook:
    """Return a notebook without outputs, hints, solutions, and cells that give them away."""
    notebook = copy.deepcopy(notebook)
    notebook["cells"] = [c for c in notebook["cells"] if GIVES_AWAY not in c["metadata"].get("tags", ())]
    found = 0
    for cell in _code(notebook):
        source = _source(cell)
        found += AIDED in source
        _write(cell, source.replace(AIDED, UNAIDED))
        cell["outputs"], cell["execution_count"] = [], None
    if found != 1:
        raise ValueError(f"{lesson.notebook}: {AIDED.strip()!r} must stand in exactly one cell")
    return notebook


def solution(notebook: Notebook, lesson: Lesson) -> Notebook:
    """Return a notebook with every exercise filled in. Checks get new outputs; cells that use an answer lose theirs."""
    notebook = copy.deepcopy(notebook)
    exercises = {name: lesson.exercise(name) for name in lesson.exercises}
    written = {exercise.function_name for exercise in exercises.values()}
    stub: Notebook = {}
    for cell in _code(notebook):
        if (name := _checked(cell)) in exercises:
            _write(stub, filled(_source(stub), exercises.pop(name)))
            cell["outputs"] = [_verdict(lesson.exercise(name), cell["execution_count"])]
        elif cell["id"] == "progress" or written & set(re.findall(r"\w+", _source(cell))):
            cell["outputs"] = []
        stub = cell
    if exercises:
        raise ValueError(f"{lesson.notebook}: there is no check of {', '.join(exercises)}")
    return notebook


def filled(stub: str, exercise: Exercise) -> str:
    """Return the cell of an exercise with the solution in the place of the lines below its docstring."""
    tree = ast.parse(stub)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == exercise.function_name)
    head = stub.splitlines()[: function.body[0].end_lineno]
    return "\n".join([*head, textwrap.indent(exercise.body({}), "    ")])


def _verdict(exercise: Exercise, count: int | None) -> Notebook:
    """Return the output of a check of the exercise's own solution."""
    names = exercise.names()
    exec(exercise.solution, names)
    page = judge.run(exercise, names[exercise.function_name])._repr_mimebundle_()
    data = {kind: text.splitlines(True) for kind, text in page.items()}
    return {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def _code(notebook: Notebook) -> list[Notebook]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _source(cell: Notebook) -> str:
    return "".join(cell["source"])


def _write(cell: Notebook, source: str) -> None:
    cell["source"] = source.splitlines(True)


def _checked(cell: Notebook) -> str:
    """Return the name of what a cell checks, an exercise or `finds_bugs`; "" if it checks nothing."""
    call = re.fullmatch(r"check\.(\w+)\(\w+\)", _source(cell))
    return call[1] if call else ""


def write(make: Callable[[Notebook, Lesson], Notebook], lessons: Sequence[Lesson], to: Path) -> list[Path]:
    """Write an edition of these notebooks into a folder."""
    (to / "pictures").mkdir(parents=True, exist_ok=True)
    for picture in (ROOT / "notebooks/pictures").iterdir():
        put(to / "pictures" / picture.name, picture.read_bytes())
    paths = []
    for lesson in lessons:
        notebook = json.loads((ROOT / "notebooks" / lesson.notebook).read_text(encoding="utf-8"))
        paths.append(to / lesson.notebook)
        text = json.dumps(make(notebook, lesson), ensure_ascii=False, indent=1)
        put(paths[-1], text + "\n")
    return paths


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python course.py edition", description="Write notebooks as handouts.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--student", action="store_const", const=student, dest="make", help="no hints, no solutions")
    which.add_argument("--solution", action="store_const", const=solution, dest="make", help="every exercise filled in")
    parser.add_argument("notebooks", nargs="*", help="02, or notebooks/02_scaled_attention.ipynb (default: all)")
    parser.add_argument("--to", type=Path, help="the folder to write to (default: editions/student, or …/solution)")
    options = parser.parse_args(words)
    known = {name: lesson for lesson in LESSONS for name in (lesson.notebook, f"{lesson.number:02}")}
    if unknown := [word for word in options.notebooks if Path(word).name not in known]:
        parser.error(f"there is no notebook {unknown[0]}; there are {', '.join(lesson.notebook for lesson in LESSONS)}")
    chosen = [known[Path(word).name] for word in options.notebooks] or LESSONS
    for path in write(options.make, chosen, options.to or ROOT / "editions" / options.make.__name__):
        print(path)


if __name__ == "__main__":
    main()
