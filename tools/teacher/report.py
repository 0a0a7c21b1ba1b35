"""A report on what a class misunderstood, from the notebooks that it handed in: `python course.py report FOLDER`.

It runs what strangers wrote. Their functions run in processes of their own, with limits (see `worker`), which keeps
accidents away from you and from each other, but not malice: for that, README has a line with a container.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from tools.teacher import page
from tools.teacher.handed_in import ROOT, Homes, homes
from tools.teacher.page import Result, Row

STOPPED = "It was stopped: it took too much time or memory, or ended the process."


def examine(path: Path, where: Homes, seconds: float = 10, megabytes: int = 2000, patience: float = 60) -> Row:
    """Judge one notebook, in processes of its own: one, and one more for each exercise that ends it.

    Args:
        where: what `homes` returns.
        seconds: the processor's time for one exercise.
        megabytes: the memory for the notebook.
        patience: seconds by the clock for the notebook.
    """
    row = Row(path.stem)
    job = {"notebook": str(path.resolve()), "homes": where, "seconds": seconds, "megabytes": megabytes}
    begun = "the first"
    while begun:
        lines, begun = _run(job | {"done": [*row.results]}, patience), ""
        for line in lines:
            row.problem = line.get("unreadable", "")
            if exercise := line.get("exercise"):
                result = Result(**{"message": STOPPED, **line["result"]})
                begun = exercise if result.state == "stopped" else ""
                row.results[exercise] = result
        if not lines and not row.results:
            row.problem = "it could not be read within the limits on time and memory"
    if not row.results:
        row.problem = row.problem or "it holds no exercise of this course"
    return row


def _run(job: dict[str, Any], patience: float) -> list[dict[str, Any]]:
    """Run a worker in an empty folder, without the teacher's environment, and return what it sent."""
    key, found = secrets.token_hex(), []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile() as answers:
        own = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "IPYTHONDIR"), folder)
        usual = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
        course = {"COURSE_PROGRESS": "off", "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "tools.teacher.worker"],
            stdin=subprocess.PIPE,
            stdout=answers,  # a file: what is too long for it is the worker's trouble
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=usual | own | course | threads | {"PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired, OSError):
            worker.communicate(json.dumps(job | {"key": key}).encode(), timeout=patience)
        with suppress(ProcessLookupError, PermissionError, AttributeError):  # Windows has no groups of processes
            os.killpg(worker.pid, signal.SIGKILL)  # and what it has started
        worker.kill()
        worker.wait()
        answers.seek(0)
        for line in answers.read(10**7).split(b"\n"):
            with suppress(ValueError, AttributeError, RecursionError):  # not ours
                sent = json.loads(line)
                if sent.pop("key", "") == key:
                    found.append(sent)
    return found


def of_students(rows: dict[Path, Row], folder: Path, depth: int = 0) -> list[Row]:
    """Return a row for each student.

    A folder whose notebooks are of different lessons is one student's. Else each notebook, or folder, in it is.
    """
    found = []
    for name in sorted({path.relative_to(folder).parts[depth] for path in rows}):
        inside = {path: row for path, row in rows.items() if path.relative_to(folder).parts[depth] == name}
        own = Counter(exercise for row in inside.values() for exercise in row.results)
        if len(inside) == 1 or max(own.values(), default=0) == 1:
            first = next(iter(inside)).relative_to(folder)
            student = "/".join(first.with_suffix("").parts if len(inside) == 1 else first.parts[: depth + 1])
            problems = [f"{path.name}: {row.problem}" for path, row in inside.items() if row.problem]
            results = {exercise: result for row in inside.values() for exercise, result in row.results.items()}
            found.append(Row(student, results, "; ".join(problems)))
        else:
            found += of_students(inside, folder, depth + 1)
    return found


def notebooks(folder: Path) -> list[Path]:
    """Return all notebooks in a folder, except those that Jupyter and the system keep for themselves."""
    found = folder.rglob("*.ipynb")
    return sorted(
        p for p in found if p.is_file() and not any(part.startswith(".") for part in p.relative_to(folder).parts)
    )


def report(folder: Path, to: Path, seconds: float = 10, workers: int | None = None) -> list[Row]:
    """Judge all notebooks in `folder`, and write the report into the folder `to`."""
    paths, where = notebooks(folder), homes()
    with ThreadPoolExecutor(workers or max(1, (os.cpu_count() or 2) - 1)) as pool:
        rows = dict(zip(paths, pool.map(lambda path: examine(path, where, seconds), paths), strict=True))
    students = of_students(rows, folder)
    to.mkdir(parents=True, exist_ok=True)
    (to / "table.csv").write_text(page.table(students), encoding="utf-8-sig", newline="")  # as Excel likes it
    (to / "mistakes.txt").write_text(page.text(students), encoding="utf-8")
    (to / "mistakes.html").write_text(page.page(students), encoding="utf-8")
    return students


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python course.py report", description="Report what a class misunderstood.")
    parser.add_argument("folder", type=Path, help="with the notebooks that it handed in, in subfolders or not")
    parser.add_argument("--to", type=Path, help="the folder to write to (default: beside it)")
    parser.add_argument("--seconds", type=float, default=10, help="most that one exercise may compute (default: 10)")
    options = parser.parse_args(words)
    folder = options.folder.resolve()
    if not folder.is_dir():
        parser.error(f"there is no folder {options.folder}")
    if not notebooks(folder):
        parser.error(f"there is no notebook (.ipynb) in {options.folder}")
    to = options.to or folder.parent / f"{folder.name}_report"
    report(folder, to, options.seconds)
    print((to / "mistakes.txt").read_text(encoding="utf-8"))
    print(f"Written: {to / 'mistakes.html'} (the above), {to / 'table.csv'} (who made which)")


if __name__ == "__main__":
    main()
