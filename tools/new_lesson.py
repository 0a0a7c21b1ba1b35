"""A lesson to begin with: `python -m tools new_lesson NAME`. It passes all tests; replace its parts one by one."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from lesson_utils.classroom.course import LESSONS
from tools import save

PARTS = Path(__file__).with_suffix(".txt")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools new_lesson", description="Write a lesson to begin with.")
    parser.add_argument("name", help="of its package in lesson_utils/lessons, such as my_lesson")
    name = parser.parse_args().name
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        parser.error(f"{name!r} is no name for a package: take small letters, digits and _, such as my_lesson")
    if (save.ROOT / "lesson_utils/lessons" / name).exists():
        parser.error(f"there is a lesson {name} already")
    notebook = write(name)
    print(f"lesson_utils/lessons/{name} and notebooks/{notebook} are written; now they are run and listed.", flush=True)
    # The table in notebook 00 lists it, too. A new process finds it.
    saved = ["notebooks/00_start_here.ipynb", f"notebooks/{notebook}"]
    return subprocess.call([sys.executable, "-m", "tools", "save", *saved], cwd=save.ROOT)


def write(name: str) -> str:
    """Write a lesson's package and its notebook; return the notebook's name."""
    import nbformat

    last = LESSONS[-1]
    model = {cell.id: cell.source for cell in nbformat.read(save.NOTEBOOKS / last.notebook, as_version=4).cells}
    file = f"{len(LESSONS):02}_{name}.ipynb"
    links = re.search(r"^\[Open in .*$", model["title"], re.M)
    assert links, f"{last.notebook} has the links below its title"
    found = {
        "NUMBER_": file[:2],
        "NUMBER": str(len(LESSONS)),
        "NAME": name,
        "TITLE": name.replace("_", " ").capitalize(),
        "LINKS": links[0].replace(last.notebook, file),
        "SETUP": model["setup"].replace(f"lessons.{last.name} ", f"lessons.{name} "),
    }
    text = re.sub("|".join(found), lambda word: found[word[0]], PARTS.read_text(encoding="utf-8"))
    package, cells = save.ROOT / "lesson_utils/lessons" / name, []
    package.mkdir()
    for head, body in re.findall(r"^==> (.+)\n((?:(?!==> ).*\n)+)", text, re.M):
        kind, _, cell = head.partition(" ")
        if not cell:
            (package / head).write_text(body, encoding="utf-8", newline="\n")
        elif kind == "markdown":
            cells.append(nbformat.v4.new_markdown_cell(body.strip(), id=cell))
        else:
            tags = {"tags": ["exercise"]} if kind == "exercise" else {}
            cells.append(nbformat.v4.new_code_cell(body.strip(), id=cell, metadata=tags))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), save.NOTEBOOKS / file)
    return file
