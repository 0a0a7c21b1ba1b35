"""A report on what a class misunderstood, from the notebooks that it handed in: `python course.py report FOLDER`.

It runs what strangers wrote. Their functions run in processes of their own (see `worker`), each in a jail (see `jail`).
Whatever a notebook does, it costs its own row and nobody else's.
"""

import argparse
import io
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from lesson_utils.classroom.files import put
from tools.teacher import jail, page, worker
from tools.teacher.handed_in import ROOT, Homes, homes
from tools.teacher.jail import Jail
from tools.teacher.page import Result, Row

STOPPED = "It was stopped: it took too much time or memory, or ended the process."
UNREADABLE = "it could not be read within the limits on time and memory"
MOST_SENT = 10**7  # bytes, from one worker
NO_JAIL = """There is no jail here for what strangers wrote:
{problems}
Without one, each notebook runs as you. It can read your files, and what it reads can come to stand on the page that
you show to the class. A notebook that means no harm writes nowhere else, starts no programs and opens no connections,
but one that means harm can do all of this.
Install one: on Linux bubblewrap (sudo apt install bubblewrap), elsewhere Docker or Podman.
If you trust everybody who handed something in, go on without: python course.py report {folder} --trust"""


def examine(
    path: Path, where: Homes, seconds: float = 10, megabytes: int = 2000, patience: float = 60, held: Jail | None = None
) -> Row:
    """Judge one notebook, in processes of its own: one, and one more for each exercise that ends it. It never fails.

    Args:
        where: what `homes` returns.
        seconds: the processor's time for one exercise.
        megabytes: the memory for the notebook.
        patience: seconds by the clock for a process.
        held: the jail for these processes.
    """
    row = Row(readable(path.stem))
    try:
        with path.open("rb"):
            pass
        job = {"homes": where, "seconds": seconds, "megabytes": megabytes}
        _examine(row, path, job, patience, held)
    except OSError as error:
        row.problem = f"it could not be opened ({error.strerror or type(error).__name__})"
    except Exception as error:  # nobody has thought of it yet; the others are not to pay for that
        row.problem = f"the report could not judge it ({type(error).__name__})"
    return row


def _examine(row: Row, path: Path, job: dict[str, Any], patience: float, held: Jail | None) -> None:
    begun, end = "the first", time.monotonic() + 5 * patience
    while begun and time.monotonic() < end:
        judged = len(row.results)
        lines, begun = _run(path, job | {"done": [*row.results]}, patience, held), ""
        for line in lines:
            row.problem = str(line.get("unreadable", ""))[:300]
            exercise, result = line.get("exercise"), _result(line.get("result"))
            if isinstance(exercise, str) and exercise in job["homes"] and result:
                begun = exercise if result.state == "stopped" else ""
                row.results[exercise] = result
        if len(row.results) == judged:  # nothing new came
            begun = ""
        if not lines and not row.results:
            row.problem = UNREADABLE
    if not row.results:
        row.problem = row.problem or "it holds no exercise of this course"


def _result(sent: Any) -> Result | None:
    """Return a result if that is what was sent: the key is in the worker's memory, where a notebook can find it."""
    if not isinstance(sent, dict) or sent.get("state") not in [*page.STATES]:
        return None
    name, message, code = sent.get("name"), sent.get("message", STOPPED), sent.get("code", "")
    if not (isinstance(name, str | None) and isinstance(message, str) and isinstance(code, str)):
        return None
    return Result(sent["state"], name and name[:200], message[: worker.MOST_SHOWN], code[: worker.MOST_SHOWN])


def _run(path: Path, job: dict[str, Any], patience: float, held: Jail | None) -> list[dict[str, Any]]:
    """Run a worker in an empty folder, without the teacher's environment, and return what it sent."""
    key = secrets.token_hex()
    folder = tempfile.mkdtemp()
    try:
        words = ["-P", "-m", "tools.teacher.worker"]
        if held:
            notebook = Path(shutil.copyfile(path, Path(folder, "notebook.ipynb")))
            notebook.chmod(0o644)
            command, job["notebook"] = held.run(words, notebook, job["megabytes"], patience), jail.NOTEBOOK
            environment = jail.clean()
        else:
            command, job["notebook"] = [sys.executable, *words], str(path.resolve())
            own = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "IPYTHONDIR"), folder)
            environment = {n: os.environ[n] for n in ("PATH", "SYSTEMROOT", "LANG") if n in os.environ} | own
            environment |= jail.ENVIRONMENT | {"PYTHONPATH": str(ROOT)}
        with tempfile.TemporaryFile() as answers:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=answers,  # a file: what is too long for it is the worker's trouble
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            with suppress(subprocess.TimeoutExpired, OSError):
                process.communicate(json.dumps(job | {"key": key}).encode(), timeout=patience)
            with suppress(ProcessLookupError, PermissionError, AttributeError):  # Windows has no groups of processes
                os.killpg(process.pid, signal.SIGKILL)  # and what it has started
            process.kill()
            process.wait()
            answers.seek(0)
            return _sent(answers.read(MOST_SENT), key)
    finally:
        _remove(folder)


def _sent(content: bytes, key: str) -> list[dict[str, Any]]:
    """Return the lines that bear the key, without it."""
    found = []
    for line in content.split(b"\n"):
        with suppress(ValueError, RecursionError):  # not ours
            sent = json.loads(line)
            if isinstance(sent, dict) and sent.pop("key", "") == key:
                found.append(sent)
    return found


def _remove(folder: str) -> None:
    """Remove a folder that strangers could write into, however deep it has become."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder) and os.name != "nt":
        subprocess.call(["rm", "-rf", folder], stderr=subprocess.DEVNULL)


def readable(name: str) -> str:
    """Return a file's name as text; one that is no UTF-8, as old archives unpack them, is read as Latin-1."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("latin-1")
    return name


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
            problems = [f"{readable(path.name)}: {row.problem}" for path, row in inside.items() if row.problem]
            results = {exercise: result for row in inside.values() for exercise, result in row.results.items()}
            found.append(Row(readable(student), results, "; ".join(problems)))
        else:
            found += of_students(inside, folder, depth + 1)
    return found


def notebooks(folder: Path) -> tuple[list[Path], dict[Path, str], list[Path]]:
    """Return the notebooks in a folder; what looks like one and is left out, with the reason; and all other files.

    What Jupyter, the system and the course keep for themselves is none of these.
    """
    found, out, others = [], {}, []
    inside = os.path.realpath(folder) + os.sep

    def unread(error: OSError) -> None:
        out[Path(error.filename)] = f"the folder could not be read ({error.strerror})"

    for place, folders, files in os.walk(folder, onerror=unread):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (name for name in files if not name.startswith(".")):
            path = Path(place, name)
            if path.suffix.lower() != ".ipynb":
                if ".ipynb" in name.lower():
                    out[path] = "its name does not end with .ipynb"
                elif name != "solved.txt":  # where the course notes in JupyterLite what a student has solved
                    others.append(path)
            elif not path.is_file():
                out[path] = (
                    "it is a link that leads nowhere" if path.is_symlink() and not path.exists() else "it is not a file"
                )
            elif not os.path.realpath(path).startswith(inside):
                out[path] = "it is a link to another place"
            else:
                found.append(path)
    return sorted(found), out, sorted(others)


def report(
    folder: Path, to: Path, seconds: float = 10, workers: int | None = None, held: Jail | None = None
) -> list[Row]:
    """Judge all notebooks in `folder`, and write the report into the folder `to`. The jail `held` holds each of them.

    Raises:
        OSError: the report could not be written. This comes before anything is judged, if it can be known.
    """
    where, (paths, out, _) = homes(), notebooks(folder)
    to.mkdir(parents=True, exist_ok=True)
    put(to / "mistakes.txt", "This report is being made.\n")
    with ThreadPoolExecutor(workers or max(1, (os.cpu_count() or 2) - 1)) as pool:
        judged = pool.map(lambda path: examine(path, where, seconds, held=held), paths)
        rows = dict(zip(paths, judged, strict=True)) | {path: Row("", problem=why) for path, why in out.items()}
    students = of_students(rows, folder)
    try:
        put(to / "table.csv", "\ufeff" + page.table(students))  # as Excel likes it
        put(to / "mistakes.html", page.page(students))
        put(to / "mistakes.txt", page.text(students))
    except OSError:
        print(page.text(students))  # it took long, and is not to be lost
        raise
    return students


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python course.py report", description="Report what a class misunderstood.")
    parser.add_argument("folder", type=Path, help="with the notebooks that it handed in, in subfolders or not")
    parser.add_argument("--to", type=Path, help="the folder to write to (default: beside it)")
    parser.add_argument("--seconds", type=float, default=10, help="most that one exercise may compute (default: 10)")
    parser.add_argument("--trust", action="store_true", help="go on without a jail where there is none")
    options = parser.parse_args(words)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # whatever signs the terminal has
    folder = options.folder.resolve()
    if not folder.is_dir():
        parser.error(f"there is no folder {options.folder}")
    found, out, others = notebooks(folder)
    if not found and not out:
        parser.error(f"there is no notebook (.ipynb) in {options.folder}")
    to = options.to or folder.parent / f"{folder.name}_report"
    held, problems = jail.find()
    if held:
        print(f"Each notebook runs in a jail of its own, made by {held.name}, which was tried just now and holds.\n")
    elif options.trust:
        print("There is no jail here. The notebooks run as you, because of --trust.\n")
    else:
        tried = problems or ["bubblewrap, docker, podman: not installed"]
        print(NO_JAIL.format(problems="\n".join(f"- {one}" for one in tried), folder=options.folder))
        sys.exit(2)
    try:
        report(folder, to, options.seconds, held=held)
    except OSError as error:
        sys.exit(f"The report could not be written ({error}). See that there is room, or give another folder by --to.")
    print((to / "mistakes.txt").read_text(encoding="utf-8"))
    reasons = out | dict.fromkeys(others, "no notebook")
    if left := [f"{readable(str(path.relative_to(folder)))} ({why})" for path, why in reasons.items()]:
        print(f"Left out: {', '.join(left[:20])}{f' and {len(left) - 20} more' if len(left) > 20 else ''}")
    print(f"Written: {to / 'mistakes.html'} (the above), {to / 'table.csv'} (who made which)")


if __name__ == "__main__":
    main()
