"""A file is the old one or the new one at every moment, whatever happens to the disk or the process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lesson_utils.classroom import files, trained_storage
from lesson_utils.classroom.trained_storage import Made

ROOT = Path(__file__).parents[2]
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork, and no such limits")
KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from lesson_utils.classroom.files import put

def kill(frame, event, called):  # before and after what is written in C and can ask something of the system
    global count
    own = {getattr(called, "__module__", ""), type(getattr(called, "__self__", 0)).__module__}
    if event.startswith("c_") and own & {"posix", "_io"}:
        count += 1
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)

for moment in itertools.count(1):
    path, count = Path(str(moment)), 0
    path.write_text("old" * 9999)
    if not (child := os.fork()):
        sys.setprofile(kill)
        put(path, "new" * 9999)
        os._exit(0)
    if not os.waitpid(child, 0)[1]:
        print(moment)
        break
"""


@pytest.mark.slow
@unix
def test_killed_at_any_moment(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    last = int(subprocess.check_output([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, text=True))
    found = [(tmp_path / str(moment)).read_text() for moment in range(1, last + 1)]
    assert set(found) == {"old" * 9999, "new" * 9999}
    assert found[-1] == "new" * 9999
    assert last > 10


@unix
def test_a_full_disk(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    code = "import resource, sys; from pathlib import Path; from lesson_utils.classroom.files import put\n"
    code += f"resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); put(Path({str(path)!r}), 'new' * 9999)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "File too large" in done.stderr
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "old")]


def test_text_and_bytes(tmp_path):
    files.put(tmp_path / "a", "ä\n\ud83d")
    assert (tmp_path / "a").read_bytes() == "ä\n".encode() + rb"\ud83d"
    files.put(tmp_path / ("n" * 240), b"\0")
    assert (tmp_path / ("n" * 240)).read_bytes() == b"\0"


def test_a_stored_model_that_could_not_be_written_is_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "trained.npz"
    trained_storage.write(path, {"train()": Made("", 1.0, np.ones(3))})

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        trained_storage.write(path, {"train()": Made("", 2.0, np.ones(99))})
    assert trained_storage.read(path, "train()").seconds == 1.0
    assert [one.name for one in tmp_path.iterdir()] == ["trained.npz"]


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"PK\3\4", b"<html>"])
def test_a_damaged_stored_model_speaks_to_learners(content, tmp_path):
    """No word of NumPy's, which advises to load it unsafely, and none of tools that learners don't have."""
    path = tmp_path / "trained.npz"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"its file .+trained\.npz is damaged \(\w+\)\. A new copy of the course"
    ) as told:
        trained_storage.names(path)
    assert not re.search("pickle|unsafe|tools", str(told.value))


WRITES = re.compile(r"\.write_(text|bytes)\(|np\.savez|nbformat\.write\(|\bjson\.dump\(")
ELSEWHERE = {  # what they write is in a folder that is new, or moved as a whole
    "tools/bench/live.py": "a folder of its own, gone afterwards",
    "tools/browser/driver.py": "a folder of its own, gone afterwards",
    "tools/browser/firefox.py": "a folder of its own, gone afterwards",
    "tools/mutants.py": "a folder of its own, gone afterwards",
    "tools/site/build.py": "the site's copy",
    "tools/site/chat/make.py": "the site, which is built anew",
    "tools/site/findings.py": "the site's copy",
    "tools/site/frames.py": "the site's copy, and folders that are renamed when they are whole",
    "tools/site/lite.py": "the site, which is built anew",
    "tools/site/pages.py": "the site's copy",
    "tools/teacher/jail.py": "a folder of its own, gone afterwards",
}
IN_MEMORY_OR_OWN = {"lesson_utils/classroom/trained_storage.py", "lesson_utils/maths/checkpoints.py"}
IN_MEMORY_OR_OWN |= {
    "lesson_utils/lessons/debugging/examined.py",
    "tools/chaos/walk.py",
    "tools/measure/smaller.py",
    "tools/measure/smollm.py",
}


def test_nothing_that_stays_is_written_in_another_way():
    found = set()
    for folder in ("lesson_utils", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            if WRITES.search(path.read_text(encoding="utf-8")):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == {*ELSEWHERE, *IN_MEMORY_OR_OWN}
