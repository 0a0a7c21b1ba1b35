"""course.py: one command that works on a machine with nothing on it, and says in one line what is missing."""

import ast
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml

from lesson_utils.classroom.course import LESSONS
from tools import save, start

ROOT = Path(__file__).parent.parent
SOURCE = (ROOT / "course.py").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Programs in place of those that would download or never end. Each writes down what it was called with.
NOTE = """
import json, os, sys, time
def note(name, *words):
    with open(os.environ["NOTED"], "a") as file:
        file.write(json.dumps([name, *words]) + "\\n")
    if name in os.environ.get("FAILING", "").split(","):
        sys.exit(f"{name}: no such package")
    if name == os.environ.get("WAITING"):
        try:
            time.sleep(1)  # until course.py waits, too
            print(name, "waits", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            sys.exit(7)
"""
UV = """
import subprocess
words = sys.argv[1:]
if words[0] == "venv":
    note("uv venv", *words[1:])
    subprocess.run([words[-2], "-m", "venv", "--without-pip", words[-1]], check=True)
else:
    note("uv", *words[words.index("-e") :])
"""
MODULE = 'note("{}", *sys.argv[1:], os.getcwd(), os.environ.get("COURSE_TRAIN", ""))\n'


class Course:
    """A course in a folder of its own, which real processes set up and open; what they run is noted."""

    def __init__(self, folder):
        self.folder, self.mine = folder / "course", folder / "course/my_notebooks"
        self.environment = os.environ | {"NOTED": str(folder / "noted"), "PYTHONPATH": str(folder / "modules")}
        self.environment |= {"PATH": str(folder / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment.pop("COURSE_TRAIN", None)
        (folder / "noted").touch()
        for name in ("pip", "jupyterlab", "pytest", "tools/__main__", "lesson_utils/maths/pretrained"):
            self.write(f"../modules/{name}.py", NOTE + MODULE.format(name))
        self.write("../uv.py", NOTE + UV)
        self.write("../bin/uv", f'#!/bin/sh\nexec "{sys.executable}" "{folder}/uv.py" "$@"\n').chmod(0o755)
        self.write("../bin/uv.bat", f'@"{sys.executable}" "{folder}\\uv.py" %*\n')
        self.write("course.py", SOURCE)
        self.write("pyproject.toml", "[project]\n")
        self.write("notebooks/pictures/a.png", "a")
        self.publish("00_start_here", "x = 1")
        for name in ("start", "__main__"):
            self.write(f"tools/{name}.py", (ROOT / "tools" / f"{name}.py").read_text(encoding="utf-8"))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def publish(self, name, source):
        """Write a notebook of the course, perhaps a newer version."""
        cell = {"cell_type": "code", "source": [source], "outputs": [{"name": "stdout"}], "metadata": {}}
        self.write(f"notebooks/{name}.ipynb", json.dumps({"cells": [cell]}))

    def start(self, *words, python=(sys.executable,), **variables):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        environment = self.environment | variables
        return subprocess.Popen([*python, self.folder / "course.py", *words], env=environment, cwd="/", **options)

    def __call__(self, *words, code=0, **options):
        """Run `python course.py ...`, which exits with this code, and return what it said; errors are one line."""
        process = self.start(*words, **options)
        said, error = process.communicate(timeout=120)
        assert process.returncode == code, error
        return said if code == 0 else error

    def noted(self, *names):
        """What has been run since the last call of this, of the programs named."""
        path = Path(self.environment["NOTED"])
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("")
        return [line for line in lines if line[0] in (names or line)]

    @property
    def copies(self):
        """What each of the learner's copies holds."""
        notebooks = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in self.mine.glob("*.ipynb")}
        return {name: content["cells"][0]["source"] for name, content in notebooks.items()}


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


def one_line(error):
    return re.fullmatch(r"course\.py: .+\n", error)


def test_old_pythons_can_read_it_and_are_told_what_is_missing(course):
    tree = ast.parse(SOURCE, feature_version=(3, 6))
    imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"hashlib", "json", "os", "shutil", "subprocess", "sys"}
    old = "import runpy, sys; sys.version_info = (3, 6, 15); runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    error = course(python=(sys.executable, "-c", old), code=1)
    assert error == "course.py: The course needs Python 3.11 or newer (see python.org), and this is 3.6.\n"
    assert course.noted() == []


def test_it_installs_once_and_opens_the_first_notebook(course):
    assert "Installing into .venv" in course("--no-browser", "--ip", "0.0.0.0")
    venv, installed, opened = course.noted()
    assert venv[:3] == ["uv venv", "--seed", "--python"]
    assert installed == ["uv", "-e", ".[lab]"]
    assert opened[1:5] == [
        f"--ServerApp.root_dir={course.folder}",
        "--LabApp.default_url=/lab/tree/my_notebooks/00_start_here.ipynb",
        "--ServerApp.kernel_websocket_connection_class=tools.at_once.AtOnce",
        "--no-browser",
    ]
    assert ("--allow-root" in opened) == (getattr(os, "geteuid", lambda: 1)() == 0)
    assert opened[-2] == str(course.folder)
    settings = json.loads((course.folder / ".venv/share/jupyter/lab/settings/overrides.json").read_text())
    assert settings == start.SETTINGS
    assert course("--edit") == ""
    (again,) = course.noted()
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in again


def test_what_is_needed_adds_up_and_is_installed_again_where_it_does_not_fit(course):
    for words in (["test"], [], ["test", "--parity"], ["real"], ["test"]):
        course(*words)
    groups = [["--group", "test"], ["--group", "parity", "--group", "test"]]
    assert course.noted("uv") == [["uv", "-e", ".[lab]", *group] for group in groups]
    course.write("pyproject.toml", "[project]\ndependencies = []\n")  # as after `git pull`
    course()
    assert course.noted("uv", "uv venv") == [["uv", "-e", ".[lab]", *groups[1]]]
    stamp = course.folder / ".venv/installed.json"
    for damage in (
        lambda: stamp.write_text(stamp.read_text().replace(f'"{sys.version_info[0]}.', '"2.')),  # another Python
        lambda: stamp.write_text('{"place"'),
        lambda: shutil.rmtree(course.folder / ".venv"),
        lambda: setattr(course, "folder", course.folder.rename(course.folder.with_name("moved"))),
    ):
        damage()
        course()
        assert [words[0] for words in course.noted("uv", "uv venv")] == ["uv venv", "uv"]


def test_an_installation_that_fails_or_is_stopped_half_way(course):
    course()
    course.noted()
    assert one_line(course("test", code=1, FAILING="uv,pip").splitlines(keepends=True)[-1])
    assert course.noted("uv", "pip")[0] == ["uv", "-e", ".[lab]", "--group", "test"]
    course()  # what was there is there
    assert course.noted("uv", "pip") == []


@pytest.mark.slow
def test_pip_installs_where_there_is_no_uv_or_it_fails(course):
    said = course("test", FAILING="uv")
    assert "uv failed; pip tries now." in said
    told = [words[1:-2] for words in course.noted("pip")]
    pip = ["install", "--disable-pip-version-check"]
    assert told == [[*pip, "pip>=25.1"], [*pip, "-e", ".[lab]", "--group", "test"]]
    shutil.rmtree(course.folder / ".venv")
    shutil.rmtree(course.folder.parent / "bin")
    course()
    assert [words[1:-2] for words in course.noted("pip")] == [[*pip, "-e", ".[lab]"]]
    pip_is_there = [course.folder / ".venv" / ("Scripts" if os.name == "nt" else "bin") / "python", "-I", "-m", "pip"]
    subprocess.run([*pip_is_there, "--version"], check=True, stdout=subprocess.DEVNULL)  # for %pip in notebooks


def test_debian_without_venv_is_told_in_one_line(course):
    shutil.rmtree(course.folder.parent / "bin")
    course.write("../modules/ensurepip.py", "raise ModuleNotFoundError('as in Debian')\n")
    error = course(code=1)
    assert one_line(error)
    assert "sudo apt install python3-venv" in error


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to one process")
@pytest.mark.parametrize(("waiting", "code"), [("uv", 130), ("jupyterlab", 7)])
def test_ctrl_c_stops_an_installation_and_is_left_to_what_runs(waiting, code, course):
    """A terminal sends it to both. What was stopped half-way is installed again, into the .venv that is there.

    That may be one that a contributor has made by hand: nothing in it is thrown away.
    """
    process = course.start(WAITING=waiting)
    while f"{waiting} waits" not in process.stdout.readline():
        pass
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (code, "")
    course.noted()
    course()
    ran = course.noted("uv", "uv venv")
    assert [line[0] for line in ran] == ["uv"] * (waiting == "uv")


def test_a_port_is_refused_before_anything_is_installed_or_handed_on(course):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for word in (str(port), "abc", "70000"):
            assert f"{word} is taken, not allowed, or not a port" in course("--port", word, code=2)
    assert course.noted() == []
    course("--port", str(port), "--po=1")
    opened = course.noted("jupyterlab")[0]
    assert {f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--po=1"} <= set(opened)


def test_learners_work_in_copies_and_a_newer_version_is_put_beside_them_once(course):
    course.publish("01_bottleneck", "y = 1")
    course()
    assert (course.mine / "pictures/a.png").read_text() == "a"
    assert json.loads((course.mine / "00_start_here.ipynb").read_text())["cells"][0]["outputs"] == []
    assert "my_notebooks/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    solved = course.mine / "00_start_here.ipynb"
    solved.write_text(work := solved.read_text().replace("x = 1", "solved"))
    (course.mine / "01_bottleneck.ipynb").unlink()
    assert course() == ""
    assert course.copies == {"00_start_here": ["solved"], "01_bottleneck": ["y = 1"]}
    for number, source in ((2, "x = 2"), (3, "x = 3")):
        course.publish("00_start_here", source)
        name = f"00_start_here (version {number})"
        said = f"00_start_here.ipynb has a new version: {Path('my_notebooks', name)}.ipynb. Yours is as you left it.\n"
        assert [course(), course()] == [said, ""]
        assert course.copies[name] == [source]
    assert solved.read_text() == work
    solved.write_text("no notebook any more")
    (course.mine / ".versions.json").write_text("{")
    course()
    assert solved.read_text() == "no notebook any more"
    assert not list(course.mine.glob("01_*version*")), "it is the course's own, as a look at it tells"


@pytest.mark.skipif(os.name == "nt", reason="Windows limits no file's size")
def test_a_full_disk_leaves_no_half_copy_and_is_one_line(course):
    """No file can become larger than a limit, which is what a full disk does to a copy."""
    course()
    course.publish("01_bottleneck", "y" * 9_999)
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))\n"
    limited = limit + "runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    error = course(python=(sys.executable, "-c", limited), code=1)
    assert re.fullmatch(r"course\.py: .*File too large.* See that there is room .+\n", error)
    assert set(course.copies) == {"00_start_here"}
    course()
    assert course.copies["01_bottleneck"] == ["y" * 9_999]


def test_working_copies_have_no_outputs_and_do_not_lead_elsewhere(tmp_path):
    for lesson in LESSONS:
        original = ROOT / "notebooks" / lesson.notebook
        copy, stored = json.loads(start.without_outputs(original)), json.loads(original.read_text(encoding="utf-8"))
        nbformat.validate(copy)
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in copy["cells"])
        links = start.ELSEWHERE.findall("".join(stored["cells"][0]["source"]))
        assert len(links) == 2, f"{original.name}: copy the links below the title from another notebook"
        assert "[Open in" not in json.dumps(copy)
        assert [cell["source"] for cell in copy["cells"][1:]] == [cell["source"] for cell in stored["cells"][1:]]
        (tmp_path / "copy.ipynb").write_text(json.dumps(copy), encoding="utf-8")
        assert start.version_of(tmp_path / "copy.ipynb") == start.version_of(original)


FORMS = {
    "": "not long_form",
    "--parity": "not long_form",
    "--fast": "not slow and not long_form",
    "--rest": "(long_form or parity) and not own_job",
}


def test_each_form_of_the_tests_has_its_marks_and_what_is_named_runs_whole(course):
    for option, marks in FORMS.items():
        course("test", *option.split(), "-x")
        *words, folder, train = course.noted("pytest")[-1]
        assert (words[1], words[3:5], words[-1]) == ("-n", ["-m", marks], "-x")
        assert ("tests" in words) == (option == "--fast")  # without the notebooks
        assert (folder, train) == (str(course.folder), "no")
    names = json.loads((course.folder / ".venv/installed.json").read_text())["names"]
    assert set(names) == PROJECT["dependency-groups"].keys() - {"dev"} | {"lab"}
    marked = {mark.split(":")[0] for mark in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    assert {"slow", "long_form", "parity", "own_job"} <= marked
    course.write("tests/test_ops.py", "")
    course("test", "--site", "tests/test_ops.py::test_x", "-k", "softmax", code=1, FAILING="pytest")
    assert course.noted("pytest")[-1][1:-2] == ["tests/test_ops.py::test_x", "-k", "softmax"]


def test_maintainers_commands_are_handed_on_and_all_are_listed(course):
    assert "no command 'tset'" in course("tset", code=1)
    course("site", "--no-lite")
    _, installed, (name, *words, folder, _) = course.noted()
    assert installed == ["uv", "-e", ".", "--group", "site"]
    assert (name, words, Path(folder)) == ("tools/__main__", ["site", "--no-lite"], Path("/").resolve())
    told = "".join(page.read_text(encoding="utf-8") for page in save.texts() if page.suffix == ".md")
    for command in {"test", "real", "report", "save", *re.findall(r"python course\.py ([a-z]+)\b", told)}:
        assert re.search(rf"^(python course\.py|   ) {command} ", course("--help"), re.M), command


def test_environment_for_binder_and_conda():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["dependencies"] == ["python=3.12", "pip", {"pip": ["-e .[lab]"]}]
    assert "lab" in PROJECT["project"]["optional-dependencies"]


def test_the_licence_says_what_covers_what():
    """One text a file, whole, so that a forge recognises it; NOTICE says which covers what."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for name, begins in (
        ("LICENSE", "MIT License\n"),
        ("LICENSE-CC-BY-4.0", "Attribution 4.0 International\n"),
        ("LICENSE-PSF-2.0", "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n"),
    ):
        assert name in notice
        assert (ROOT / name).read_text(encoding="utf-8").startswith(begins)
    for name in re.findall(r"lesson_utils/[\w./]*\w", notice):
        assert (ROOT / name).exists(), name
