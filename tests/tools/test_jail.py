"""Strangers' code in a jail: what was tried with handed-in notebooks, tried in each jail that can be made here."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from learners import EXERCISES
from test_report import answered, written

from tools.teacher import handed_in, jail, kernel, report

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="filters of this kind are Linux's")
CONTAINERS = [one.name for one in jail.known() if one.name != "bubblewrap" and not jail.broken(one)]


TRIES = """
import os, socket, sys
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
    attempt("open", lambda: open(place + "/made", "w").write("x"))
    attempt("append", lambda: open(place + "/there.txt", "a").write("x"))
    attempt("remove", lambda: os.remove(place + "/there.txt"))
    attempt("list", lambda: os.listdir(place))
attempt("read", lambda: open(FOLDER + "/there.txt").read())
attempt("another notebook", lambda: open(FOLDER + "/another.ipynb").read())
for process in (1, parent, REPORT):
    attempt("environment", lambda: "SECRET" in open(f"/proc/{process}/environ").read() or 1 / 0)
attempt("connect", lambda: socket.create_connection(("127.0.0.1", PORT), 3))
attempt("fork", os.fork)
attempt("program", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("kill", lambda: os.kill(REPORT, 0))
import signal, resource
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(REPORT), 0))
attempt("prlimit", lambda: resource.prlimit(REPORT, resource.RLIMIT_NOFILE, (5, 5)))
def fill(folder):
    for number in range(12):
        with open(f"{folder}/{number}", "wb") as file:
            file.write(bytes(9 * 10**6))
attempt("a hundred megabytes", lambda: fill("/tmp"))
attempt("a hundred megabytes of shared memory", lambda: fill("/dev/shm"))
raise ValueError("DONE " + "; ".join(done) + " END")
"""


@pytest.fixture(params=["bubblewrap", *CONTAINERS])
def held(request):
    one = jail.Jail(request.param)
    if problem := one not in jail.known() or jail.broken(one):
        pytest.skip(f"{one.name} makes no jail here; install it ({problem})")
    return one


@pytest.mark.slow
def test_nothing_gets_out_even_with_the_guard_off(held, tmp_path, monkeypatch):
    monkeypatch.setenv("TEACHER_SECRET", "SECRET")
    folder = tmp_path / "private"
    there = written(folder / "there.txt", "what only the teacher may read")
    written(folder / "another.ipynb", "{}")
    before = sorted(folder.iterdir()), sorted((ROOT / "lesson_utils").iterdir()), there.stat().st_mtime_ns
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = (str(folder), server.getsockname()[1], os.getpid())
        body = f"FOLDER, PORT, REPORT = {told}\n{TRIES}"
        notebook = written(tmp_path / "a.ipynb", answered({"softmax": body, "attention": "return 0"}))
        row = report.examine(notebook, handed_in.homes(), held=held)
    done = row.results["softmax"].message.rpartition("DONE ")[2].partition(" END")[0].split("; ")
    assert done[0].startswith("list: ['"), row  # the course itself may be read
    assert done[1:] == [], "and nothing else of what was tried was done"
    assert there.read_text() == "what only the teacher may read"
    assert before == (sorted(folder.iterdir()), sorted((ROOT / "lesson_utils").iterdir()), there.stat().st_mtime_ns)
    assert row.results["attention"].state == "wrong", "and the next exercise is judged"


@pytest.mark.slow
def test_in_a_jail_results_are_the_same(held, tmp_path):
    right = {name: EXERCISES[name].body({}) for name in ("softmax", "attention")}
    path = written(tmp_path / "Übung 'a' $(x).ipynb", answered(right))
    row = report.examine(path, handed_in.homes(), held=held)
    states = {"softmax": "right", "attention": "right", "score_variance": "untouched"}
    assert {name: result.state for name, result in row.results.items()} == states, row


@pytest.mark.slow
def test_a_jail_ends_with_the_clock_and_leaves_nothing(held, tmp_path):
    waits = "try:\n        time.sleep(99)\n    except BaseException:\n        pass"
    body = f"import signal, time\nsignal.setitimer(0, 0)\nwhile True:\n    {waits}"
    notebook = written(tmp_path / "a.ipynb", answered({"softmax": body}))
    row = report.examine(notebook, handed_in.homes(), patience=6, held=held)
    assert row.results["softmax"].state == "stopped"
    if held.name == "bubblewrap":
        assert str(tmp_path) not in subprocess.check_output(["ps", "-eo", "args"], text=True)


def program(folder, name, script):
    """Write a program of this name into the folder."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@linux
@pytest.mark.slow
def test_a_jail_that_does_not_hold_is_not_used(tmp_path, monkeypatch, capsys):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert jail.find() == (None, []), "nothing is installed"
    passes_on = f'while [ "$1" != -- ]; do shift; done; shift\nPYTHONPATH={jail.ROOT}:{jail.PACKAGES} exec "$@"'
    for script, said in ((passes_on, "can read your files"), ("exit 3", "exit code 3")):
        program(tmp_path / "bin", "bwrap", script)
        found, problems = jail.find()
        assert found is None
        assert said in problems[0]
    program(tmp_path / "bin", "docker", '[ "$1" = info ] && exit 0\nexit 1')
    assert "could not build" in jail.find()[1][1]

    notebook = written(tmp_path / "class/a.ipynb", answered({}))
    with pytest.raises(SystemExit) as ended:
        report.main([str(notebook.parent)])
    assert ended.value.code == 2
    out = capsys.readouterr().out
    assert all(words in out for words in ("exit code 3", "could not build", "--trust"))
    assert not (tmp_path / "class_report").exists()
    report.main([str(notebook.parent), "--trust"])
    assert (tmp_path / "class_report/table.csv").exists()


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_container_closes_what_the_page_says(name, tmp_path):
    """Also where it cannot be tried; `find` takes none that does not hold."""
    command = jail.Jail(name).run(["-c", "pass"], tmp_path / "a.ipynb", 2000, 60)
    closed = {"--network=none", "--read-only", "--pull=never", "--cap-drop=ALL", "--security-opt=no-new-privileges"}
    assert {*closed, "--pids-limit=8", "--memory=2000m"} <= {*command}
    volumes = [word for word in command if word.startswith("--volume")]
    assert len(volumes) == 3
    assert all(word.endswith(":ro") for word in volumes)
    assert command[-6:] == ["timeout", "--signal=KILL", "60", "python", "-c", "pass"]


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
