"""What is solved is kept where that is possible, and nowhere does keeping it get in a learner's way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import reload
from pathlib import Path

import pytest

from lesson_utils.classroom import course, progress
from lesson_utils.exercises import check

ALL = [name for lesson in course.LESSONS for name in lesson.solved_by]


def right(weights, values):
    return weights @ values


def in_a_new_kernel():
    """What is solved, for a kernel that has seen nothing."""
    return reload(progress).solved()


@pytest.fixture(autouse=True)
def no_kernel_before():
    reload(progress)
    yield
    reload(progress)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of this test's own, not there yet."""
    path = tmp_path / "new" / "solved.txt"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    return path


def test_a_check_that_passes_is_kept_for_other_kernels(file):
    assert not check.weighted_average(None).passed
    assert not check.weighted_average(lambda weights, values: values).passed
    assert not file.exists()
    assert check.weighted_average(right).passed
    assert in_a_new_kernel() == {"weighted_average"}
    before = file.read_bytes()
    assert before.decode() == f"{progress.HEAD}#\nweighted_average\n", "and whoever opens the file reads what it is"
    assert check.weighted_average(right).passed
    assert file.read_bytes() == before, "it is kept once"


def test_what_the_lines_say(file):
    two = course.named("scaled_attention")
    first, *rest = two.exercises

    def here():
        return str(progress.here(two.name))

    assert here().endswith(f"any of the {len(two.exercises)} exercises here yet. Begin with `check.{first}`.")
    assert "the exercise here yet" in str(progress.here("start_here"))
    assert ">check.weighted_average</code>" in progress.here("start_here")._repr_html_()
    assert str(progress.course()).endswith("Next: `check.weighted_average`, in notebook 00, Start here.")
    for name in rest:
        progress.note(name)
    assert here() == f"You have solved {len(rest)} of {len(two.exercises)} exercises here; next: `check.{first}`."
    head, *lines = str(progress.course()).splitlines()
    assert head.startswith(f"You have solved {len(rest)} of {len(ALL)} exercises.")
    assert head.endswith(f"Next: `check.{first}`, in notebook 02, {two.title}."), "what was begun comes first"
    assert lines == [
        f"02 {two.title}: {len(rest)} of {len(two.exercises)}",
        f"(Kept in {file}. Without that file you begin anew.)",
    ]
    progress.note(first)
    assert here().startswith("You have solved every exercise of this notebook. Next: `check.weighted")
    for name in ALL:
        progress.note(name)
    assert here().endswith("There is none left in the whole course.")
    assert f"You have solved {len(ALL)} of {len(ALL)}" in str(progress.course())


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b"", set()),
        (b"\xff\xfe\x00", set()),
        (b"softma", set()),
        (b"[1, {", set()),
        (b"softmax\nno_such_exercise", {"softmax"}),
        (b"attention_backward\nattention", {"attention_backward"}),  # half of a name is none, though one of another
        (b"\nattention", set()),
        (b"x" * 10**6, None),  # somebody else's: nothing is written there
    ],
)
def test_a_damaged_file_costs_what_was_damaged(file, content, kept):
    file.parent.mkdir()
    file.write_bytes(content)
    assert in_a_new_kernel() == (kept or set())
    progress.note("score_variance")
    assert in_a_new_kernel() == (set() if kept is None else kept | {"score_variance"})
    assert file.stat().st_size < len(content) + 20


@pytest.mark.parametrize("place", ["a file in the way", "a folder", "off"])
def test_where_nothing_can_be_kept_this_kernel_still_knows(file, place, monkeypatch):
    if place == "a file in the way":
        file.parent.write_text("")
    if place == "a folder":
        file.mkdir(parents=True)
    if place == "off":
        monkeypatch.setenv("COURSE_PROGRESS", "off")
    assert check.weighted_average(right).passed
    assert progress.solved() == {"weighted_average"}
    assert "You have solved 1 of" in str(progress.course())
    assert "Kept in" not in str(progress.course())
    assert in_a_new_kernel() == set()
    assert not file.is_file()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no such limit")
@pytest.mark.slow
def test_a_full_disk_leaves_a_name_or_none(file):
    """At every size at which the disk may be full: what was there stays, and nothing is half there."""
    code = "import os, resource; from lesson_utils.classroom import progress; progress.note('attention')\n"
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ['LIMIT']),) * 2)\n"
    code += "progress.note('softmax')\nprint(*progress.course().splitlines()[-1:])"
    for limit in range(len(progress.HEAD) + 12, len(progress.HEAD) + 24):
        file.unlink(missing_ok=True)
        environment = os.environ | {"LIMIT": str(limit)}
        said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
        kept = in_a_new_kernel()
        assert kept in ({"attention"}, {"attention", "softmax"})
        assert ("Kept in" in said) == (len(kept) == 2), "and nobody says that what is lost is kept"
        progress.note("score_variance")
        assert in_a_new_kernel() == kept | {"score_variance"}


def test_kernels_at_the_same_time_lose_nothing(file):
    with ThreadPoolExecutor(4) as kernels:
        list(kernels.map(lambda names: [progress.note(name) for name in names], (ALL[i::4] for i in range(4))))
    assert in_a_new_kernel() == set(ALL)


@pytest.mark.parametrize(
    ("platform", "variable", "folder"),
    [
        ("linux", "HOME", ".local/share"),
        ("linux", "XDG_DATA_HOME", ""),
        ("darwin", "HOME", "Library/Application Support"),
        ("win32", "APPDATA", ""),
        ("emscripten", "HOME", None),  # where there is no folder of JupyterLite
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="written as paths of Unix; Windows shows its own in real use")
def test_each_system_has_its_place(monkeypatch, tmp_path, platform, variable, folder):
    for name in ("COURSE_PROGRESS", "XDG_DATA_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    progress.note("softmax")
    found = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.txt")]
    assert found == ([] if folder is None else [Path(folder) / "attention-course" / "solved.txt"])
    assert ("Kept in" in str(progress.course())) == bool(found)


def test_without_a_home_nothing_is_kept(monkeypatch):
    for name in ("COURSE_PROGRESS", "XDG_DATA_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where there is no home: Path raises RuntimeError
    progress.note("softmax")
    assert progress.solved() == {"softmax"}
    assert in_a_new_kernel() == set()


@pytest.mark.slow
def test_a_line_costs_no_exercise():
    """The notebook's last cell must not import every lesson's exercises, nor what judges them."""
    code = "from lesson_utils import progress; progress.course(); import sys; print(*sys.modules)"
    assert "exercises" not in subprocess.check_output([sys.executable, "-c", code], text=True)
