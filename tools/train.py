"""Train what comes trained: `python -m tools.train [lesson ...]`.

Runs a lesson's notebook, and writes what each call of a function with `@trained.beforehand` returned into the lesson's
file. What is in it already and still fits is kept, unless `--anew`.
"""

import argparse
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom import trained, trained_storage
from lesson_utils.classroom.course import LESSONS, Lesson

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
BEFORE = "from lesson_utils import trained as _trained\n_trained.record()"
AFTER = "import pathlib\n_trained.write_record(pathlib.Path({!r}))"


def lessons() -> list[Lesson]:
    """Return the lessons whose notebooks train something that comes trained."""
    texts = {lesson: (NOTEBOOKS / lesson.notebook).read_text(encoding="utf-8") for lesson in LESSONS}
    return [lesson for lesson, text in texts.items() if "@trained.beforehand(" in text]


def make(lesson: Lesson, path: Path, anew: bool = True) -> None:
    """Run a notebook, and write what it has trained."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOKS / lesson.notebook, as_version=4)
    first, last = (nbformat.v4.new_code_cell(source) for source in (BEFORE, AFTER.format(str(path))))
    notebook.cells = [first, *notebook.cells, last]
    environment = os.environ | {"COURSE_TRAIN": "all" if anew else "no"}
    # Errors are told at the end: what has been trained until then is kept.
    client = NotebookClient(notebook, timeout=None, kernel_name="python3", allow_errors=True)
    client.execute(cwd=str(NOTEBOOKS), env=environment)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                raise RuntimeError(f"{lesson.notebook}, cell {cell.id}: {output.ename}: {output.evalue}")


def differences(old: Path, new: Path, tolerance: float = 0.1) -> list[str]:
    """Compare two such files: list calls that one lacks, other code, and losses that end elsewhere.

    Machines round differently, and training enlarges that; what a text says of a run is guarded where it says so.
    """
    before, after = (
        {name: trained_storage.read(path, name) for name in trained_storage.names(path)} for path in (old, new)
    )
    names, now_names = ([_without_hashes(name) for name in calls] for calls in (before, after))
    if names != now_names:
        return [f"other calls: {sorted(set(names) ^ set(now_names)) or 'the same, in another order'}"]
    found = []
    for name, stored, now in zip(names, before.values(), after.values(), strict=True):
        if stored.source != now.source:
            found.append(f"{name}: made by other code")
        for was, ends in zip(_ends(stored.result), _ends(now.result), strict=True):
            if abs(was - ends) > tolerance * max(1, abs(was)):
                found.append(f"{name}: the loss ends at {ends:.2f}, not at {was:.2f}")
    return found


def _without_hashes(name: str) -> str:
    """Take out the hashes of models: trained again, a model is not the same to the last digit."""
    return re.sub(r"<(\w+) \w+>", r"<\1>", name)


def _ends(x: Any) -> list[float]:
    """Return the mean of the last twentieth of each history's losses."""
    from lesson_utils.maths.training import History

    if isinstance(x, History):
        return [float(np.mean(x.losses[-max(1, len(x.losses) // 20) :]))] if x.losses else []
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    return [end for part in parts for end in _ends(part)]


def main() -> None:
    names = [lesson.name for lesson in lessons()]
    parser = argparse.ArgumentParser(prog="tools.train", description="Train what comes trained.")
    parser.add_argument("lessons", nargs="*", metavar="lesson", help=f"default: all, {', '.join(names)}")
    parser.add_argument("--anew", action="store_true", help="train everything again")
    options = parser.parse_args()
    wanted = options.lessons or names
    for name in wanted:
        if name not in names:
            parser.error(f"{name!r} trains nothing that comes trained; there are {', '.join(names)}")
    for lesson in lessons():
        if lesson.name in wanted:
            path = trained.path_of(lesson.name)
            make(lesson, path, options.anew)
            seconds = [trained_storage.read(path, name).seconds for name in trained_storage.names(path)]
            size = path.stat().st_size // 1000
            print(f"{lesson.name}: {len(seconds)} calls, {sum(seconds):.0f} s of a core, {size} kB")
    sizes = sum(path.stat().st_size for path in trained.FOLDER.glob("*/trained.npz"))
    print(f"all lessons together: {sizes / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
