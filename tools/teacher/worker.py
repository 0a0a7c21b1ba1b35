"""The judge of one handed-in notebook, in a process of its own: it runs what a stranger wrote.

Usually a `jail` holds it. What stands here keeps accidents away, also where there is no jail. On every system the
process is in an empty folder, sees nothing of the teacher's environment, and has a hook that refuses to write or delete
elsewhere, to start processes, and to open connections. On Unix there are limits on time, memory, files and processes,
too. The hook is written in Python, and one line of Python takes it off.

Its job comes by stdin. Each result is a line on what was its stdout; what the notebook prints goes nowhere. Each line
bears a key that came by stdin, so that nothing printed is taken for a result.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REFUSED = (  # events of `sys.audit`; Python's documentation lists them
    *("os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
    *("os.utime", "os.setxattr", "os.removexattr", "os.chflags", "os.lockf", "sqlite3.", "resource.prlimit"),
    *("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile", "os.kill"),
    *("subprocess.", "shutil.", "socket.", "ctypes.", "pty.", "ftplib.", "urllib.", "http.", "webbrowser."),
)
MOST_SHOWN = 3000  # characters of a message, and of a learner's code
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    job = json.loads(sys.stdin.read())
    results = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for usual in (0, 1, 2):
        os.dup2(nowhere, usual)

    def send(key: str = job.pop("key"), **line: Any) -> None:
        os.write(results, f"\n{json.dumps({'key': key, **line})}\n".encode())  # after whatever was left half-written

    judge(job, send)


def judge(job: dict[str, Any], send: Callable[..., None]) -> None:
    """Find the exercises of a notebook, and judge one after the other."""
    import lesson_utils.mistakes.judge  # noqa: F401  # here: NumPy loads libraries, which the guard forbids
    from tools.teacher import handed_in, kernel

    limits(job["seconds"] * (len(job["homes"]) + 1), job["megabytes"])
    limit_time(job["seconds"])
    try:
        found = handed_in.read(Path(job["notebook"]), job["homes"])
        answers = list(handed_in.answers(found, job["homes"]))
    except handed_in.Unreadable as error:
        send(unreadable=str(error))
        return
    except (Exception, MemoryError) as error:  # whatever a notebook is that nobody has thought of
        send(unreadable=f"it could not be read ({said(error)})")
        return
    send(exercises=[answer.exercise for answer in answers])
    answers = [answer for answer in answers if answer.exercise not in job["done"]]
    kernel.refuse_processes()
    guard(Path.cwd())
    for answer in answers:
        limit_time(job["seconds"])
        result: dict[str, str | None] = {"state": "stopped", "code": answer.code[:MOST_SHOWN]}
        send(exercise=answer.exercise, result=result)  # should it never end, this is known
        try:
            judged = verdict(answer, job["seconds"])
        except BaseException as error:  # an answer that breaks the check itself
            judged = {"message": f"The check could not judge it: {said(error)}"}
        send(exercise=answer.exercise, result=result | judged)


def verdict(answer: Any, seconds: float) -> dict[str, str | None]:
    """Check an answer, and return its state, the name of the mistake, and the message."""
    from lesson_utils.classroom import course
    from lesson_utils.mistakes.judge import run
    from lesson_utils.mistakes.run.limits import stopped

    if answer.problem:
        return {"state": "unreadable" if answer.code else "missing", "name": None, "message": answer.problem}
    lesson = next(lesson for lesson in course.LESSONS if answer.exercise in lesson.exercises)
    exercise = lesson.exercise(answer.exercise)
    names = {"__name__": "__main__", **exercise.names()}
    try:
        with stopped(seconds / 2):
            for statement in answer.statements:
                exec(statement.compiled(), names)
            function = eval(answer.expression, names)
    except BaseException as error:
        return {"state": "unreadable", "name": None, "message": f"Its cell stops: {said(error)}"}
    result = run(exercise, function, seconds / 5)
    state = {True: "right", False: "wrong", None: "untouched"}[result.passed]
    state = "stopped" if result.misconception == "stopped" else state  # by the check, before the system had to
    return {"state": state, "name": result.misconception, "message": result.message[:MOST_SHOWN]}


def said(error: BaseException) -> str:
    """Return an error as one text."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:  # an error of the learner's own, whose text is one more error
        return type(error).__name__


def limits(seconds: float, megabytes: int) -> None:
    """Let the system end this process when it takes more. Windows has no such limits, and macOS none on memory."""
    with contextlib.suppress(ModuleNotFoundError):  # Windows
        import resource

        most = {"CPU": computed() + seconds, "AS": megabytes * 10**6, "FSIZE": 10**7, "NPROC": 0, "CORE": 0}
        for name, value in most.items():
            with contextlib.suppress(OSError, ValueError, AttributeError):  # not every system has each
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (int(value), int(value)))


def limit_time(seconds: float) -> None:
    """Limit the time of the next exercise."""
    with contextlib.suppress(ModuleNotFoundError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (min(int(computed() + seconds) + 1, most), most))


def computed() -> float:
    """Return the seconds of the processor that this process has taken."""
    return sum(os.times()[:2])


def guard(folder: Path) -> None:
    """Refuse from now on to write outside `folder`, and to start anything. It stops accidents, and no malice."""
    home = os.path.realpath(folder) + os.sep
    inside = os.path.realpath

    def hook(event: str, given: tuple[Any, ...]) -> None:
        writes = event == "os.mkdir" or (event == "open" and (given[2] or 0) & WRITING)
        if writes and not isinstance(given[0], int) and not inside(os.fsdecode(given[0])).startswith(home):
            raise PermissionError(f"a handed-in notebook may not write {os.fsdecode(given[0])}")
        if event.startswith(REFUSED):
            raise PermissionError(f"a handed-in notebook may not call {event}")

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
