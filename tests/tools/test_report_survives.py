"""One notebook can cost its own row of the class's report, and no more, whatever it is and whatever it does."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_report import answered, body, cells, examined, written

from lesson_utils.classroom import files
from tools.teacher import handed_in, jail, page, report, worker

ROOT = Path(__file__).parents[2]
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no such files and calls")
UNGUARDED = "import __main__\n__main__.REFUSED, __main__.WRITING = (), 0\n"
SEND = """
import sys
frame = sys._getframe()
while "send" not in frame.f_locals:
    frame = frame.f_back
send = frame.f_locals["send"]
"""
DEEP = "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\nreturn 0"
WRITE = """
import os
for channel in range(3, 20):
    try:
        os.write(channel, b"\\n[1]\\n")
    except OSError:
        pass
return 0
"""
PRLIMIT = "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (5, 5))\nreturn 0"
SPOILING = {  # each of these once cost the whole class its report
    "a list of JSON on every channel": WRITE,
    "a state that there is not": f"{SEND}send(exercise='softmax', result={{'state': 'great'}})\nreturn 0",
    "a key too many": f"{SEND}send(exercise='softmax', result={{'state': 'right', 'more': 1}})\nreturn 0",
    "an exercise that is a list": f"{SEND}send(exercise=['softmax'], result={{'state': 'right'}})\nreturn 0",
    "a result that is a list": f"{SEND}send(exercise='softmax', result=[1])\nreturn 0",
    "numbers for texts": f"{SEND}send(exercise='softmax', result={{'state': 'right', 'name': 3, 'code': 4}})\nreturn 0",
    "an exercise that there is not": f"{SEND}send(exercise='x', result={{'state': 'stopped'}})\nreturn 0",
    "half an emoji in a comment": "# \ud83d\nreturn 0",
    "half an emoji in an error": "raise ValueError('\\ud83d')",
    "an error that has no text": "class Mine(Exception):\n    def __str__(self):\n        raise self\nraise Mine()",
    "folders in folders": DEEP,
    "folders in folders, unguarded": UNGUARDED + DEEP,
    "the end of the report": "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), 15)\nreturn 0",
    "no files for the report": PRLIMIT,
    "an argument made smaller": "x.resize((0,))\nreturn x",
    "an enormous result": "import numpy\nreturn numpy.broadcast_to(1.0, (10**6, 10**6))",
    "an object that is everything": "class All:\n    def __getattr__(self, name):\n        return self\nreturn All()",
}


@pytest.mark.slow
@unix
@pytest.mark.long_form
@pytest.mark.parametrize("jailed", [True, False])
def test_each_notebook_that_once_spoiled_the_report_costs_its_own_row(jailed, tmp_path):
    held, _ = jail.find() if jailed else (None, [])
    if jailed and not held:
        pytest.skip("install bubblewrap")
    folder = tmp_path / "class"
    for name, bad in SPOILING.items():
        written(folder / f"{name}.ipynb", answered({"softmax": bad, "attention": body("attention", "no scale")}))
    written(folder / "healthy.ipynb", answered({"softmax": body("softmax", "sigmoid")}))
    latin = os.fsencode(folder) + b"/M\xfcller.ipynb"
    os.rename(written(folder / "x.ipynb", answered({"softmax": body("softmax")})), latin)

    rows = {row.student: row for row in report.report(folder, tmp_path / "out", seconds=4, workers=2, held=held)}

    assert rows.keys() == {*SPOILING, "healthy", "Müller"}
    assert rows["healthy"].results["softmax"].name == "sigmoid"
    assert rows["Müller"].results["softmax"].state == "right"
    for name in SPOILING:
        assert rows[name].results["attention"].name == "no scale", (name, rows[name])
        assert rows[name].results["softmax"].state in ("wrong", "stopped", "unreadable"), (name, rows[name])
    lines = [*csv.reader((tmp_path / "out/table.csv").read_text(encoding="utf-8-sig").splitlines())]
    assert {line[0] for line in lines[1:]} == rows.keys()
    assert "sigmoid" in (tmp_path / "out/mistakes.html").read_text(encoding="utf-8")
    assert "sigmoid" in (tmp_path / "out/mistakes.txt").read_text(encoding="utf-8")


def test_whatever_goes_wrong_with_one_is_its_row(tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("nobody has thought of it")

    monkeypatch.setattr(report, "_run", broken)
    written(tmp_path / "class/a.ipynb", "{}")
    (row,) = report.report(tmp_path / "class", tmp_path / "out")
    assert row.problem == "a.ipynb: the report could not judge it (RuntimeError)"


def test_what_was_sent_is_looked_at_before_it_is_believed():
    right = {"state": "right", "name": "n" * 9999, "message": "m" * 9999, "code": ""}
    result = report._result(right)
    assert (len(result.name), len(result.message)) == (200, worker.MOST_SHOWN)
    for wrong in ({"state": "great"}, {"state": []}, {"name": 1}, {"message": None}, {"code": []}):
        assert report._result(right | wrong) is None
    for wrong in (None, 3, [], "x"):
        assert report._result(wrong) is None
    lines = b'\n[1]\n{"key": "k", "a": 1}\n{"key": "other"}\n3\n"k"\nnull\n' + b"[" * 99_999
    assert report._sent(lines, "k") == [{"a": 1}]


def test_a_notebook_cannot_have_itself_judged_for_ever(tmp_path, monkeypatch):
    sent = [{"exercise": "softmax", "result": {"state": "stopped"}}]
    calls = []
    monkeypatch.setattr(report, "_run", lambda *_: calls.append(1) or sent)
    row = examined(tmp_path / "a.ipynb", "{}")
    assert (len(calls), row.results["softmax"].state) == (2, "stopped")


@pytest.mark.slow
@unix
def test_reading_is_within_the_limits(tmp_path):
    """Nested lists take hundreds of times their size in memory, and lists of a million numbers take minutes."""
    for megabytes, limit in ((3, 500), (1, 300)):
        code = f"x = [{'1,' * (megabytes * 500_000)}]\ndef my_softmax(y):\n    return x"
        row = examined(tmp_path / "a.ipynb", cells(code, "check.softmax(my_softmax)"), seconds=3, megabytes=limit)
        told = row.problem + "".join(result.message for result in row.results.values())
        assert "limits" in told or "memory" in told.lower(), row


@pytest.mark.slow
@unix
def test_each_file_that_is_left_out_has_a_row_with_the_reason(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "class"
    private = written(tmp_path / "solution.ipynb", answered({"softmax": body("softmax")}))
    written(folder / "UPPER.IPYNB", answered({"softmax": body("softmax")}))
    written(folder / "x.ipynb.json", "{}")
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "nowhere.ipynb").symlink_to(folder / "gone")
    (folder / "loop.ipynb").symlink_to(folder / "loop.ipynb")
    (folder / "device.ipynb").symlink_to("/dev/zero")
    (folder / "elsewhere.ipynb").symlink_to(private)
    written(folder / "closed.ipynb", "{}").chmod(0)
    written(folder / "essay.pdf", "x")
    written(folder / ".git/y.ipynb", "{}")
    real = Path.open

    def closed(path, *options, **more):  # root may open everything
        if path.name == "closed.ipynb":
            raise PermissionError(13, "Permission denied")
        return real(path, *options, **more)

    monkeypatch.setattr(Path, "open", closed)
    report.main([str(folder), "--trust"])
    said = capsys.readouterr().out
    monkeypatch.undo()
    with (tmp_path / "class_report/table.csv").open(encoding="utf-8-sig") as file:
        notes = {row["student"]: row["note"].partition(": ")[2] for row in csv.DictReader(file)}
    assert notes == {
        "UPPER": "",
        "x.ipynb": "its name does not end with .ipynb",
        "pipe": "it is not a file",
        "nowhere": "it is a link that leads nowhere",
        "loop": "it is a link that leads nowhere",
        "device": "it is not a file",
        "elsewhere": "it is a link to another place",
        "closed": "it could not be opened (Permission denied)",
    }
    assert "Left out: " in said
    assert "essay.pdf" in said
    assert "y.ipynb" not in said


def test_a_name_that_is_no_utf_8_is_read_as_latin_1():
    assert report.readable("Übung 🙂") == "Übung 🙂"
    assert report.readable("M\udcfcller") == "Müller"
    assert report.readable("\ud83d") == "\\ud83d"


@pytest.mark.slow
def test_a_terminal_of_ascii_is_no_trouble(tmp_path):
    code = "from tools.teacher import report; report.say('M\\xfcller \\ud83d')"
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment).strip() == rb"M\xfcller \ud83d"


def test_a_report_that_cannot_be_written_is_one_line_before_anything_runs(tmp_path, monkeypatch):
    notebook = written(tmp_path / "class/a.ipynb", answered({}))
    written(tmp_path / "file", "")
    monkeypatch.setattr(report, "examine", None)  # would be called
    monkeypatch.setattr(jail, "find", lambda: (None, []))
    with pytest.raises(SystemExit, match=r"^The report could not be written \(.*file.*\)\. See that there is room"):
        report.main([str(notebook.parent), "--to", str(tmp_path / "file/x"), "--trust"])


def test_a_disk_that_fills_up_meanwhile_costs_the_files_and_not_what_was_found(tmp_path, monkeypatch, capsys):
    notebook = written(tmp_path / "class/a.ipynb", answered({}))
    old = written(tmp_path / "out/mistakes.html", "of yesterday")
    monkeypatch.setattr(jail, "find", lambda: (None, []))
    monkeypatch.setattr(report, "examine", lambda *_, **__: page.Row("a", {"softmax": page.Result("right")}))

    def full(path, content):
        if path.name == "mistakes.html":
            raise OSError(28, "No space left on device")
        files.put(path, content)

    monkeypatch.setattr(report, "put", full)
    with pytest.raises(SystemExit, match="No space left on device"):
        report.main([str(notebook.parent), "--to", str(tmp_path / "out"), "--trust"])
    assert "1 of 1 exercises handed in are right" in capsys.readouterr().out
    assert old.read_text() == "of yesterday"


# --- What stands against accidents where there is no jail -------------------------------------------------------------


@pytest.mark.slow
@unix
def test_the_guard_knows_what_once_went_through(tmp_path):
    code = f"""
import os, signal, sqlite3, sys
from pathlib import Path
from tools.teacher import worker
folder = os.open({str(tmp_path)!r}, os.O_RDONLY)
os.mkdir("own")
os.chdir("own")
worker.guard(Path.cwd())
tries = dict(
    own=lambda: os.mkdir("a"),
    mkdir=lambda: os.mkdir("../a"),
    at=lambda: os.mkdir("b", dir_fd=folder),
    mkfifo=lambda: os.mkfifo("../c"),
    mknod=lambda: os.mknod("../c"),
    utime=lambda: os.utime("../there.txt", (0, 0)),
    xattr=lambda: os.setxattr("../there.txt", "user.x", b"x"),
    sqlite=lambda: sqlite3.connect("../d"),
    truncate=lambda: os.open("there.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=folder),
    pidfd=lambda: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0),
    prlimit=lambda: __import__("resource").prlimit(os.getppid(), 7),
    deep=lambda: os.makedirs("1/2/3/4/5/6/7/8/9/10"),
)
for name, action in tries.items():
    try:
        action()
        print(name)
    except (PermissionError, AttributeError):
        pass
"""
    there = written(tmp_path / "there.txt", "still there")
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}, "text": True}
    assert subprocess.check_output([sys.executable, "-c", code], **options).split() == ["own"]
    assert there.read_text() == "still there"
    assert {path.name for path in tmp_path.iterdir()} == {"own", "there.txt"}


def test_the_check_itself_may_break(monkeypatch):
    """The row says so, and the next exercise is judged."""
    sent = []

    def breaks(answer, seconds):
        raise ZeroDivisionError("in the check")

    monkeypatch.setattr(worker, "verdict", breaks)
    for name in ("limits", "limit_time", "guard"):
        monkeypatch.setattr(worker, name, lambda *_: None)
    monkeypatch.setattr("tools.teacher.kernel.refuse_processes", lambda: None)
    answer = handed_in.Answer("softmax")
    monkeypatch.setattr(handed_in, "read", lambda *_: None)
    monkeypatch.setattr(handed_in, "answers", lambda *_: [answer])
    job = {"notebook": "x", "homes": {}, "done": [], "seconds": 1, "megabytes": 1}
    worker.judge(job, lambda **line: sent.append(json.dumps(line)))
    assert "The check could not judge it: ZeroDivisionError: in the check" in sent[-1]
