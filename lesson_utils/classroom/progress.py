"""The exercises that have been solved: a line at the end of each notebook says which, and what comes next.

Checks that pass are noted in a small text file, one name a line, so that notebooks know of each other; and so are the
predictions that were made, as `scaled_attention.itself=1`, the number of the option. The first line says what the file
is. It stands in the folder where the system keeps what programs note for a user, in JupyterLite in the browser's own
storage. `COURSE_PROGRESS` in the environment names another file; `off` keeps none. Without a file, what this kernel has
seen counts.
"""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from lesson_utils.classroom.course import LESSONS, Lesson, named
from lesson_utils.mistakes.verdict import to_html

HEAD = "# This file keeps what you have solved and predicted in the course. Without it you begin anew.\n"
MOST_BYTES = 100_000  # of a file that is ours; what is larger is something else
_seen: dict[str, None] = {}  # the lines noted in this kernel, in their order


class Progress(str):
    """Some lines, as text and as a page."""

    __repr__ = str.__str__

    def _repr_html_(self) -> str:
        return f'<p role="status">{to_html(self)}</p>'


def here(lesson: str) -> Progress:
    """Say what is solved of one notebook, by its name without the number: `here("scaled_attention")`.

    Raises:
        ValueError: there is no such notebook.
    """
    done, this = solved(), named(lesson)
    left, total = _left(this, done), len(this.solved_by)
    if not left:
        said = f"You have solved every exercise of this notebook.{_go_on(done)}"
    elif len(left) == total:
        count = "the exercise here" if total == 1 else f"any of the {total} exercises here"
        said = f"You have not solved {count} yet. Begin with `check.{left[0]}`."
    else:
        said = f"You have solved {total - len(left)} of {total} exercises here; next: `check.{left[0]}`."
    return Progress(said + _foreseen(this))


def course() -> Progress:
    """Say what is solved of the whole course, notebook by notebook, and what comes next."""
    done = solved()
    if not done:
        return Progress(f"You have not solved an exercise of this course yet.{_go_on(done)}")
    total = sum(len(lesson.solved_by) for lesson in LESSONS)
    lines = [f"You have solved {len(done)} of {total} exercises.{_go_on(done)}"]
    for lesson in LESSONS:
        left, count = _left(lesson, done), len(lesson.solved_by)
        if len(left) < count:
            lines.append(f"{lesson.number:02} {lesson.title}: {count - len(left)} of {count}")
    if (file := _file()) and done <= set(_in_file()):
        here = "this browser, as solved.txt in the list of files" if sys.platform == "emscripten" else file
        lines.append(f"(Kept in {here}. Without that file you begin anew.)")
    return Progress("\n".join(lines))


def solved() -> set[str]:
    """Return the names of the exercises that have been solved, here or in another notebook."""
    return {*_seen, *_in_file()} & {name for lesson in LESSONS for name in lesson.solved_by}


def note(exercise: str) -> None:
    """Note that an exercise is solved. It never fails: a file that can't be written is done without."""
    _keep(exercise, when=exercise not in _in_file())


def predict(prediction: str, option: int) -> None:
    """Note the option that was chosen, in the place of an earlier one."""
    _keep(f"{prediction}={option}", when=predicted().get(prediction) != option)


def predicted() -> dict[str, int]:
    """Return the predictions that were made, by notebook and name, and of each the number of the option."""
    made = re.findall(r"^([\w.]+)=(\d)$", "\n".join([*_in_file(), *_seen]), re.M)
    return {name: int(option) for name, option in made}


def _keep(line: str, when: bool) -> None:
    """Append a line to the file, unless it says so already."""
    _seen.pop(line, None)
    _seen[line] = None
    with suppress(OSError, ValueError):  # ValueError: no system takes a name with a zero byte
        if when and (file := _file()):
            file.parent.mkdir(parents=True, exist_ok=True)
            new = not file.exists()
            if new or (file.is_file() and file.stat().st_size < MOST_BYTES):
                # Appended in one go, so that two kernels at once don't take each other's away. On a full disk a part
                # of it can arrive: a line counts when its end is there, and `#` spoils one that was left half-written.
                with file.open("ab", buffering=0) as end:
                    end.write(f"{HEAD if new else ''}#\n{line}\n".encode())


def _in_file() -> list[str]:
    with suppress(OSError):
        if (file := _file()) and os.path.isfile(file):
            with file.open("rb") as start:
                whole, _, _ = start.read(MOST_BYTES).decode(errors="replace").rpartition("\n")
                return whole.splitlines()
    return []


def _file() -> Path | None:
    """Return the file of solved exercises, or None where none is kept."""
    chosen = os.environ.get("COURSE_PROGRESS")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    with suppress(RuntimeError):  # a user without a home
        if sys.platform == "emscripten":  # what stands beside the notebooks there outlives the kernel
            folder = Path("/drive")
            return folder / "solved.txt" if folder.is_dir() else None
        systems = {"win32": ("APPDATA", "~/AppData/Roaming"), "darwin": ("", "~/Library/Application Support")}
        variable, usual = systems.get(sys.platform, ("XDG_DATA_HOME", "~/.local/share"))
        return Path(os.environ.get(variable) or usual).expanduser() / "attention-course" / "solved.txt"
    return None


def _foreseen(lesson: Lesson) -> str:
    """Say how many predictions of a notebook were made, and how many came true."""
    made = predicted()
    answers = [(p, made.get(f"{lesson.name}.{p.name}", -1)) for p in lesson.predictions()]
    chosen = [p.options[n] == p.right for p, n in answers if 0 <= n < len(p.options)]
    if not chosen:
        return ""
    return f" Of {len(answers)} predictions you made {len(chosen)}, and {sum(chosen)} came true."


def _left(lesson: Lesson, done: set[str]) -> list[str]:
    return [name for name in lesson.solved_by if name not in done]


def _go_on(done: set[str]) -> str:
    """Say where to go on: in a notebook that was begun, else in the first that was not."""
    open_ = [lesson for lesson in LESSONS if _left(lesson, done)]
    if not open_:
        return " There is none left in the whole course."
    begun = [lesson for lesson in open_ if len(_left(lesson, done)) < len(lesson.solved_by)]
    lesson = (begun or open_)[0]
    return f" Next: `check.{_left(lesson, done)[0]}`, in notebook {lesson.number:02}, {lesson.title}."
