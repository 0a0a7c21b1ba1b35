"""One notebook can cost its own row of the class's report, and no more, whatever it is and whatever it does."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_report import answered, body, cells, examined, written

from tools.teacher import jail, report

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no such files, calls and limits"),
]
SEND = """
import sys
frame = sys._getframe()
while "send" not in frame.f_locals:
    frame = frame.f_back
send = frame.f_locals["send"]
"""
WRITE = """
import os
for channel in range(3, 20):
    try:
        os.write(channel, b"\\n[1]\\n")
    except OSError:
        pass
return 0
"""
END = "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), 15)\nreturn 0"
PRLIMIT = "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (5, 5))\nreturn 0"
SPOILING = {  # most of these once cost the whole class its report
    "endless": "while True:\n    pass",
    "endless, and stops the clock": "import signal\nsignal.setitimer(0, 0)\nwhile True:\n    pass",
    "a fork": "import os\nfor _ in range(30):\n    os.fork()",
    "memory": "return [0] * 10**12",
    "words": "for i in range(10**6):\n    print('1' * 60)\nreturn 0",
    "a list of JSON on every channel": WRITE,
    "a state that there is not": f"{SEND}send(exercise='softmax', result={{'state': 'great'}})\nreturn 0",
    "a result that is a list": f"{SEND}send(exercise=['softmax'], result=[1])\nreturn 0",
    "numbers for texts": f"{SEND}send(exercise='softmax', result={{'state': 'right', 'name': 3, 'code': 4}})\nreturn 0",
    "an exercise that there is not": f"{SEND}send(exercise='x', result={{'state': 'stopped'}})\nreturn 0",
    "half an emoji in a comment": "# \ud83d\nreturn 0",
    "half an emoji in an error": "raise ValueError('\\ud83d')",
    "an error that has no text": "class Mine(Exception):\n    def __str__(self):\n        raise self\nraise Mine()",
    "folders in folders": "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\nreturn 0",
    "the end of the report": END,
    "no files for the report": PRLIMIT,
    "an argument made smaller": "x.resize((0,))\nreturn x",
    "an enormous result": "import numpy\nreturn numpy.broadcast_to(1.0, (10**6, 10**6))",
    "an object that is everything": "class All:\n    def __getattr__(self, name):\n        return self\nreturn All()",
}


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


def test_reading_is_within_the_limits(tmp_path):
    """Nested lists take hundreds of times their size in memory, and lists of a million numbers take minutes."""
    for megabytes, limit in ((3, 500), (1, 300)):
        code = f"x = [{'1,' * (megabytes * 500_000)}]\ndef my_softmax(y):\n    return x"
        row = examined(tmp_path / "a.ipynb", cells(code, "check.softmax(my_softmax)"), seconds=3, megabytes=limit)
        told = row.problem + "".join(result.message for result in row.results.values())
        assert "limits" in told or "memory" in told.lower(), row


def test_each_file_that_is_left_out_has_a_row_with_the_reason(tmp_path):
    """And a terminal of ASCII is no trouble."""
    folder = tmp_path / "class"
    private = written(tmp_path / "solution.ipynb", answered({"softmax": body("softmax")}))
    written(folder / "UPPER.IPYNB", answered({"softmax": body("softmax")}))
    written(folder / "x.ipynb.json", "{}")
    os.mkfifo(folder / "pipe.ipynb")
    for name, target in (("nowhere", folder / "gone"), ("device", Path("/dev/zero")), ("elsewhere", private)):
        (folder / f"{name}.ipynb").symlink_to(target)
    written(folder / "Müller.pdf", "x")
    written(folder / ".git/y.ipynb", "{}")
    command = [sys.executable, "-m", "tools.teacher.report", str(folder), "--trust"]
    said = subprocess.check_output(command, cwd=ROOT, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    with (tmp_path / "class_report/table.csv").open(encoding="utf-8-sig") as file:
        notes = {row["student"]: row["note"].partition(": ")[2] for row in csv.DictReader(file)}
    assert notes.keys() == {"UPPER", "x.ipynb", "pipe", "nowhere", "device", "elsewhere"}
    assert notes.pop("UPPER") == ""
    assert all(notes.values()), "each with the reason"
    assert rb"M\xfcller.pdf" in said
    assert b"y.ipynb" not in said


def test_a_report_that_cannot_be_written_is_said_in_one_line_and_what_was_found_is_not_lost(tmp_path, capsys):
    notebook = written(tmp_path / "class/a.ipynb", answered({"softmax": body("softmax")}))
    written(tmp_path / "file", "")
    (tmp_path / "out/mistakes.html").mkdir(parents=True)  # as a disk that fills up while notebooks are judged
    for place, shown in (("file/x", False), ("out", True)):
        with pytest.raises(SystemExit, match="The report could not be written"):
            report.main([str(notebook.parent), "--to", str(tmp_path / place), "--trust"])
        assert ("Of 1 attempt, 1 is right" in capsys.readouterr().out) == shown


def test_what_it_is_asked_for_is_not_there(tmp_path, capsys):
    for words, said in (([str(tmp_path / "x")], "no folder"), ([str(tmp_path)], "no notebook")):
        with pytest.raises(SystemExit):
            report.main(words)
        assert said in capsys.readouterr().err


def test_without_a_jail_accidents_are_stopped(tmp_path):
    code = """
import os, shutil, socket, subprocess
from pathlib import Path
from tools.teacher import worker
worker.limits(60, 1000)
worker.guard(Path.cwd())
tries = dict(
    own=lambda: Path("here.txt").write_text("x"),
    course=lambda: Path(worker.__file__).read_text(),
    write=lambda: Path("../there.txt").write_text("x"),
    delete=lambda: Path("../there.txt").unlink(),
    folder=lambda: Path("../made").mkdir(),
    tree=lambda: shutil.rmtree(".."),
    shell=lambda: os.system("true"),
    program=lambda: subprocess.run(["true"]),
    connection=lambda: socket.create_connection(("127.0.0.1", 9)),
    memory=lambda: bytearray(2 * 10**9),
)
for name, action in tries.items():
    try:
        action()
        print(name)
    except (PermissionError, MemoryError):
        pass
"""
    there = written(tmp_path / "there.txt", "still there")
    (tmp_path / "own").mkdir()
    options = {"cwd": tmp_path / "own", "env": os.environ | {"PYTHONPATH": str(ROOT)}, "text": True}
    allowed = subprocess.check_output([sys.executable, "-c", code], **options).split()
    assert allowed == ["own", "course", *(["memory"] if sys.platform == "darwin" else [])]  # macOS has no such limit
    assert there.read_text() == "still there"
