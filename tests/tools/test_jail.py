"""Strangers' code in a jail: what was tried with handed-in notebooks, tried in each jail that can be made here."""

import os
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from learners import EXERCISES
from test_report import answered, written

from tools.teacher import handed_in, jail, kernel, report

ROOT = Path(__file__).parents[2]
HOLD = [one.name for one in jail.known() if not jail.broken(one)]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="filters of this kind are Linux's")
in_each_jail = pytest.mark.parametrize(
    "held",
    [
        pytest.param(name, marks=pytest.mark.skipif(name not in HOLD, reason=f"{name} makes no jail here; install it"))
        for name in ("bubblewrap", "systemd", "docker", "podman")
        if name in HOLD or name == "bubblewrap"
    ],
)

TRIES = """
import os, socket, sqlite3, sys
import lesson_utils
COURSE = lesson_utils.__path__[0]
done = []
def attempt(what, action):
    try:
        given = action()
        done.append(f"{what}: {given}")
    except BaseException as error:
        pass
import __main__
attempt("guard", lambda: setattr(__main__, "REFUSED", ()) or setattr(__main__, "WRITING", 0))
done.clear()  # which is known: it stands there against accidents only
parent = os.getppid()
for place in (FOLDER, COURSE):
    for name in ("mkdir", "mkfifo"):
        attempt(name, lambda: getattr(os, name)(place + "/made"))
    attempt("open", lambda: open(place + "/made", "w").write("x"))
    attempt("append", lambda: open(place + "/there.txt", "a").write("x"))
    attempt("utime", lambda: os.utime(place + "/there.txt", (0, 0)))
    attempt("xattr", lambda: os.setxattr(place + "/there.txt", "user.x", b"x"))
    attempt("remove", lambda: os.remove(place + "/there.txt"))
    attempt("rename", lambda: os.rename(place + "/there.txt", place + "/gone.txt"))
    attempt("sqlite", lambda: sqlite3.connect(place + "/made.db").execute("create table a (b)"))
    attempt("dir_fd", lambda: os.open("there.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=os.open(place, os.O_RDONLY)))
    attempt("list", lambda: os.listdir(place))
attempt("read", lambda: open(FOLDER + "/there.txt").read())
attempt("another notebook", lambda: open(FOLDER + "/another.ipynb").read())
for process in (1, parent, REPORT):
    attempt("environment", lambda: "SECRET" in open(f"/proc/{process}/environ").read() or 1 / 0)
attempt("connect", lambda: socket.create_connection(("127.0.0.1", PORT), 3))
attempt("fork", lambda: os.fork() or os._exit(0))
attempt("program", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("kill", lambda: os.kill(REPORT, 0))
import signal, resource
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(REPORT), 0))
attempt("prlimit", lambda: resource.prlimit(REPORT, resource.RLIMIT_NOFILE, (5, 5)))
def fill():
    for number in range(12):
        with open(f"/tmp/{number}", "wb") as file:
            file.write(bytes(9 * 10**6))
attempt("a hundred megabytes", fill)
def shared():
    for number in range(12):
        with open(f"/dev/shm/{number}", "wb") as file:
            file.write(bytes(9 * 10**6))
attempt("a hundred megabytes of shared memory", shared)
def unlink():
    import cffi
    library = cffi.FFI()
    library.cdef("int unlink(const char *path);")
    if library.dlopen(None).unlink((FOLDER + "/there.txt").encode()):
        raise OSError
attempt("cffi", unlink)
raise ValueError("DONE " + "; ".join(done) + " END")
"""


@in_each_jail
@pytest.mark.slow
def test_nothing_gets_out_even_with_the_guard_off(held, tmp_path, monkeypatch):
    (one,) = [one for one in jail.known() if one.name == held]
    monkeypatch.setenv("TEACHER_SECRET", "SECRET")
    folder = tmp_path / "private"
    there = written(folder / "there.txt", "what only the teacher may read")
    written(folder / "another.ipynb", "{}")
    before = sorted(folder.iterdir()), sorted((ROOT / "lesson_utils").iterdir()), there.stat().st_mtime_ns
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = (str(folder), server.getsockname()[1], os.getpid())
        body = f"FOLDER, PORT, REPORT = {told}\n{TRIES}"
        notebook = written(tmp_path / "a.ipynb", answered({"softmax": body, "attention": "return 0"}))
        row = report.examine(notebook, handed_in.homes(), held=one)
    result = row.results["softmax"]
    said = result.message
    done = said.rpartition("DONE ")[2].partition(" END")[0].split("; ")
    assert done[0].startswith("list: ['"), (row.problem, result)  # the course itself may be read
    assert done[1:] == [], "and nothing else of what was tried was done"
    assert there.read_text() == "what only the teacher may read"
    assert before == (sorted(folder.iterdir()), sorted((ROOT / "lesson_utils").iterdir()), there.stat().st_mtime_ns)
    assert row.results["attention"].state == "wrong", "and the next exercise is judged"


@in_each_jail
@pytest.mark.slow
def test_in_a_jail_results_are_the_same(held, tmp_path):
    (one,) = [one for one in jail.known() if one.name == held]
    right = {name: EXERCISES[name].body({}) for name in ("softmax", "attention")}
    path = written(tmp_path / "Übung 'a' $(x).ipynb", answered(right))
    for patience in (60, 61):
        row = report.examine(path, handed_in.homes(), held=one if patience == 60 else None, patience=patience)
        assert {n: r.state for n, r in row.results.items()} == {
            "softmax": "right",
            "attention": "right",
            "score_variance": "untouched",
        }, row


@in_each_jail
@pytest.mark.slow
def test_a_jail_ends_with_the_clock_and_leaves_nothing(held, tmp_path):
    (one,) = [one for one in jail.known() if one.name == held]
    waits = "try:\n        time.sleep(99)\n    except BaseException:\n        pass"
    body = f"import signal, time\nsignal.setitimer(0, 0)\nwhile True:\n    {waits}"
    row = report.examine(
        written(tmp_path / "a.ipynb", answered({"softmax": body})), handed_in.homes(), patience=6, held=one
    )
    assert row.results["softmax"].state == "stopped"
    if held == "bubblewrap":
        running = subprocess.check_output(["ps", "-eo", "args"], text=True)
        assert f"{tmp_path}" not in running


def false_jail(tmp_path, script):
    """Put a program on the path that is named bwrap, and does no more than run what it is given."""
    program = tmp_path / "bin/bwrap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{textwrap.dedent(script)}")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    return str(program.parent)


@linux
@pytest.mark.slow
def test_a_jail_that_does_not_hold_is_not_used(tmp_path, monkeypatch, capsys):
    passes_on = f"""
        while [ "$1" != -- ]; do shift; done
        shift
        PYTHONPATH={jail.ROOT}:{jail.PACKAGES} exec "$@"
    """
    for script, said in ((passes_on, "what runs inside it can read your files"), ("exit 3", "exit code 3")):
        folder = (
            false_jail(tmp_path / str(len(script)), script) if (tmp_path / str(len(script))).mkdir() is None else ""
        )
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        monkeypatch.setattr(jail.shutil, "which", lambda name, own=folder: f"{own}/{name}" if name == "bwrap" else None)
        found, problems = jail.find()
        assert found is None
        assert said in problems[0]
    notebook = written(tmp_path / "class/a.ipynb", answered({}))
    with pytest.raises(SystemExit) as ended:
        report.main([str(notebook.parent)])
    out = capsys.readouterr().out
    assert ended.value.code == 2
    for words in ("no jail here", "- bubblewrap: it does not run here", "each notebook runs as you", "--trust"):
        assert words in out
    assert not (tmp_path / "class_report").exists()
    report.main([str(notebook.parent), "--trust"])
    assert "because of --trust" in capsys.readouterr().out
    assert (tmp_path / "class_report/table.csv").exists()


def test_where_nothing_is_installed_no_jail_is_found(monkeypatch):
    monkeypatch.setattr(jail.shutil, "which", lambda name: None)
    assert jail.find() == (None, [])


def test_each_command_closes_what_readme_says(tmp_path):
    """Of the jails that cannot be tried here, what they are asked for; `find` takes none that does not hold."""
    words, notebook = ["-c", "pass"], tmp_path / "a.ipynb"
    path = {"PYTHONPATH": "/course"}
    for program in ("docker", "podman"):
        command = " ".join(jail.container(program)(words, notebook, path, 2000, 60))
        for option in (
            "--network none",
            "--read-only",
            "--pull never",
            "--cap-drop ALL",
            "no-new-privileges",
            "--pids-limit 8",
        ):
            assert option in command
        assert command.count("--volume") == 3
        assert command.count(":ro") == 3
        assert command.endswith("timeout --signal=KILL 60 python -c pass")
    command = jail.systemd(words, notebook, path, 2000, 60)
    for setting in ("PrivateNetwork=yes", "PrivatePIDs=yes", "MemoryMax=2000M", "TasksMax=8", "RuntimeMaxSec=60"):
        assert setting in command


def test_an_image_that_cannot_be_built_is_named(tmp_path, monkeypatch):
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\n[ "$1" = info ] && exit 0\nexit 1\n')
    program.chmod(0o755)
    told = []
    if os.name != "nt":
        assert "could not build" in jail._image(str(program), told.append)
        assert told[0].startswith("Making the image class-report")
    assert "does not answer" in jail._image(str(tmp_path / "nothing"), told.append)


@linux
@pytest.mark.slow
def test_the_kernel_refuses_processes_and_connections_to_root_too():
    code = """
import os, socket, subprocess, threading
from tools.teacher import kernel
print(kernel.refuse_processes())
tries = [os.fork, threading.Thread(target=print).start, socket.socket, lambda: os.kill(os.getpid(), 0)]
tries += [lambda: subprocess.run(["true"]), lambda: os.execv("/bin/true", ["true"]), lambda: os.pidfd_open(os.getpid())]
for action in tries:
    try:
        action()
    except (OSError, RuntimeError) as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    if os.uname().machine in kernel.MACHINES:
        refused = ["PermissionError", "RuntimeError", *["PermissionError"] * 5]
        assert done.stdout.split() == ["True", *refused]
