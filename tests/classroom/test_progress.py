"""What is solved is kept where that is possible, and nowhere does keeping it get in a learner's way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lesson_utils.classroom import course, progress
from lesson_utils.exercises import check

ALL = [name for lesson in course.LESSONS for name in lesson.solved_by]


def right(weights, values):
    return weights @ values


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of this test's own, not there yet, and a kernel that has seen nothing."""
    path = tmp_path / "new" / "solved.txt"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    monkeypatch.setattr(progress, "_seen", {})
    return path


def test_a_check_that_passes_is_kept_for_other_kernels(file):
    assert not check.weighted_average(None).passed
    assert not check.weighted_average(lambda weights, values: values).passed
    assert not file.exists()
    assert check.weighted_average(right).passed
    progress._seen.clear()  # a new kernel
    assert progress.solved() == {"weighted_average"}
    before = file.read_bytes()
    assert check.weighted_average(right).passed
    assert file.read_bytes() == before, "it is kept once"


def test_what_the_lines_say(file):
    two = course.named("scaled_attention")
    first, *rest = two.exercises
    assert str(progress.here(two.name)).endswith(
        f"any of the {len(two.exercises)} exercises here yet. Begin with `check.{first}`."
    )
    assert "the exercise here yet" in str(progress.here("start_here"))
    assert ">check.weighted_average</code>" in progress.here("start_here")._repr_html_()
    assert str(progress.course()).endswith("Next: `check.weighted_average`, in notebook 00, Start here.")
    for name in rest:
        progress.note(name)
    assert str(progress.here(two.name)) == (
        f"You have solved {len(rest)} of {len(two.exercises)} exercises here; next: `check.{first}`."
    )
    lines = str(progress.course()).splitlines()
    assert lines[0].endswith(f"Next: `check.{first}`, in notebook 02, {two.title}."), "what was begun comes first"
    assert lines[0].startswith(f"You have solved {len(rest)} of {len(ALL)} exercises.")
    assert lines[1:] == [
        f"02 {two.title}: {len(rest)} of {len(two.exercises)}",
        f"(Kept in {file}. Without that file you begin anew.)",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "emscripten")
        kept = "(Kept in this browser, as solved.txt in the list of files. Without that file you begin anew.)"
        assert str(progress.course()).splitlines()[2] == kept
    progress.note(first)
    done = "You have solved every exercise of this notebook. Next: `check.weighted"
    assert str(progress.here(two.name)).startswith(done)
    for name in ALL:
        progress.note(name)
    assert str(progress.here(two.name)).endswith("There is none left in the whole course.")
    assert f"You have solved {len(ALL)} of {len(ALL)}" in str(progress.course())


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"softma", b"[1, {", b"softmax\nno_such_exercise", b"x" * 10**6]
)
def test_a_damaged_file_costs_what_was_damaged(file, content):
    file.parent.mkdir()
    file.write_bytes(content)
    progress.note("attention")
    progress._seen.clear()
    assert progress.solved() - {"softmax"} == ({"attention"} if len(content) < progress.MOST_BYTES else set())
    assert ("softmax" in progress.solved()) == (b"softmax" in content)
    assert file.stat().st_size < len(content) + 20


@pytest.mark.parametrize("place", ["a file in the way", "a folder", "a zero byte", "off"])
def test_where_nothing_can_be_kept_this_kernel_still_knows(file, place, monkeypatch, tmp_path):
    if place == "a file in the way":
        (tmp_path / "new").write_text("")
    if place == "a folder":
        file.mkdir(parents=True)
    if place == "a zero byte":
        monkeypatch.setattr(progress, "_file", lambda: Path("a\0b"))
    if place == "off":
        monkeypatch.setenv("COURSE_PROGRESS", "off")
    assert check.weighted_average(right).passed
    assert progress.solved() == {"weighted_average"}
    assert "You have solved 1 of" in str(progress.course())
    progress._seen.clear()
    assert progress.solved() == set()
    assert not file.is_file()


@pytest.mark.parametrize("content", [b"#\nattention", b"attention", b"\nattention"])
def test_half_of_a_name_is_none_though_it_is_one_of_another_exercise(file, content):
    """A full disk may take `attention_backward` as far as `attention`."""
    file.parent.mkdir()
    file.write_bytes(content)
    assert progress.solved() == set()
    progress.note("softmax")
    progress._seen.clear()
    assert progress.solved() == {"softmax"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no such limit")
@pytest.mark.slow
def test_a_full_disk_leaves_a_name_or_none(file):
    """At every size at which the disk may be full: what was there stays, and nothing is half there."""
    code = "import os, resource\nfrom lesson_utils.classroom import progress\nprogress.note('attention')\n"
    code += "limits = (resource.RLIMIT_FSIZE, (int(os.environ['LIMIT']),) * 2)\nresource.setrlimit(*limits)\n"
    code += "progress.note('softmax')\nprint(*progress.course().text.splitlines()[-1:])"
    for limit in range(12, 24):
        file.unlink(missing_ok=True)
        environment = os.environ | {"LIMIT": str(limit)}
        said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
        kept = progress.solved()
        assert kept in ({"attention"}, {"attention", "softmax"})
        assert ("Kept in" in said) == (len(kept) == 2), "and nobody says that what is lost is kept"
        progress.note("score_variance")
        progress._seen.clear()
        assert progress.solved() == kept | {"score_variance"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with a name")
@pytest.mark.slow
def test_a_pipe_is_no_file(file):
    file.parent.mkdir()
    os.mkfifo(file)
    code = "from lesson_utils.classroom import progress; progress.note('attention'); print(progress.solved())"
    assert "attention" in subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)


def test_kernels_at_the_same_time_lose_nothing(file):
    with ThreadPoolExecutor(4) as kernels:
        list(kernels.map(lambda names: [progress.note(name) for name in names], (ALL[i::4] for i in range(4))))
    progress._seen.clear()
    assert progress.solved() == set(ALL)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/home/ada"}, "/home/ada/.local/share/attention-course/solved.txt"),
        ("linux", {"HOME": "/home/ada", "XDG_DATA_HOME": "/data"}, "/data/attention-course/solved.txt"),
        ("darwin", {"HOME": "/Users/ada"}, "/Users/ada/Library/Application Support/attention-course/solved.txt"),
        ("win32", {"APPDATA": "/ada/Roaming"}, "/ada/Roaming/attention-course/solved.txt"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="written as paths of Unix; Windows shows its own in real use")
def test_each_system_has_its_place(monkeypatch, platform, environment, expected):
    for name in ("COURSE_PROGRESS", "XDG_DATA_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert progress._file() == Path(expected)


def test_without_a_home_nothing_is_kept(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("COURSE_PROGRESS", "XDG_DATA_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert progress._file() is None


@pytest.mark.slow
def test_a_line_costs_no_exercise():
    """The notebook's last cell must not import every lesson's exercises, nor what judges them."""
    code = "from lesson_utils import progress; progress.course(); import sys; print(*sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).find("exercises") == -1
