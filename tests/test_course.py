"""course.py: one command that works on a machine with nothing on it, and says in one line what is missing."""

import ast
import itertools
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from tools import save
from tools.start import without_outputs

ROOT = Path(__file__).parent.parent
SOURCE = (ROOT / "course.py").read_text(encoding="utf-8")


class Course:
    """A copy of course.py in a folder of its own. Nothing really runs: what it would install and run is noted."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        self.installs, self.venvs = [], 0  # ("pip", "lab,test"), …
        self.calls, self.folders = [], []  # what the Python of .venv would run, and where
        self.codes = itertools.repeat(0)  # what these exit with, or raise, one after the other
        self.failing, self.output = (), ""  # of "uv", "uv venv", "pip" and "Ctrl-C"; what they say
        self.python_works, self.gone = True, "a library that somebody has uninstalled"
        (folder / "course.py").write_text(SOURCE, encoding="utf-8")
        (folder / "pyproject.toml").write_text("[project]\n")
        (folder / "notebooks/pictures").mkdir(parents=True, exist_ok=True)
        (folder / "notebooks/pictures/a.png").write_bytes(b"a")
        self.publish("00_start_here")
        monkeypatch.setattr(subprocess, "call", self._call)
        monkeypatch.setattr(subprocess, "Popen", self._start)
        monkeypatch.setattr("venv.create", self._create_venv)
        monkeypatch.setattr("shutil.which", {}.get)  # no uv

    def have_uv(self):
        self.monkeypatch.setattr("shutil.which", {"uv": "/bin/uv"}.get)

    def __call__(self, *words):
        """Return what `python course.py ...` would exit with."""
        self.monkeypatch.setattr(sys, "argv", ["course.py", *words])
        with pytest.raises(SystemExit) as exited:
            runpy.run_path(str(self.folder / "course.py"), run_name="__main__")
        return exited.value.code

    def refuses(self, *words):
        """Return the message of `python course.py ...`, which must fail in a single line."""
        assert self(*words) == 1
        error = self.capsys.readouterr().err
        assert re.fullmatch(r"course\.py: .+\n", error)
        return error

    def publish(self, name, source="x = 1", **metadata):
        """Write a notebook of the course, perhaps a newer version."""
        cells = [{"cell_type": "code", "source": [source], "outputs": [], "metadata": metadata}]
        (self.folder / f"notebooks/{name}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")

    @property
    def mine(self):
        """What each of the learner's copies holds."""
        paths = sorted((self.folder / "my_notebooks").glob("*.ipynb"))
        return {path.stem: json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"][0] for path in paths}

    def _call(self, command, stdout=None, stderr=None, cwd=None):
        program, *words = command
        if words[0] == "-c":  # are the libraries there?
            if self.python_works is None:
                raise FileNotFoundError(program)
            return 1 if not self.python_works or self.gone in words[2:] else 0
        if words[0] == "venv":
            assert words[1:3] == ["--seed", "--python"]
            if "uv venv" not in self.failing:
                self._create_venv(words[-1], with_pip=True, symlinks=os.name != "nt")
            return int("uv venv" in self.failing)
        installer = "uv" if program == "/bin/uv" else "pip"
        python = words[3] if installer == "uv" else program
        assert Path(python).is_relative_to(self.folder / ".venv")
        assert Path(cwd) == self.folder
        assert words[-2] == "-e"
        self.installs.append((installer, words[-1][2:-1]))  # .[lab,test]
        if "Ctrl-C" in self.failing:
            raise KeyboardInterrupt
        stdout.write(self.output)
        return int(installer in self.failing)

    def _start(self, command, cwd):
        self.folders.append(cwd)
        self.calls.append(command[1:])
        return Mock(wait=Mock(side_effect=self.codes))

    def _create_venv(self, path, with_pip, symlinks):
        assert with_pip
        assert symlinks == (os.name != "nt")
        Path(path).mkdir()  # fails if anything is left of an earlier one
        self.venvs += 1
        self.python_works, self.gone = True, ""


@pytest.fixture
def course(tmp_path, monkeypatch, capsys):
    return Course(tmp_path, monkeypatch, capsys)


def test_old_pythons_can_read_it():
    ast.parse(SOURCE, feature_version=(3, 6))
    imports = [node for node in ast.parse(SOURCE).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports for alias in node.names}
    assert names <= set("argparse hashlib json os re shutil subprocess sys threading time".split())


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        (
            lambda patch: patch.setattr(sys, "version_info", (3, 6, 15)),
            [],
            "needs Python 3.11 or newer .*, and this is 3.6.",
        ),
        (lambda patch: patch.setitem(sys.modules, "ensurepip", None), [], "sudo apt install python3-venv"),
        (
            lambda patch: patch.setattr("venv.create", lambda folder, **_: os.mkdir(os.path.dirname(folder))),
            [],
            r"Could not make .venv \(\[Errno 17\] File exists",
        ),
        (lambda patch: os.remove("pyproject.toml"), [], "pyproject.toml is not beside course.py"),
        (None, ["tset"], "no command 'tset'"),
        *(
            (None, words.split(), "is not a port. Give a number from 1024 to 65535")
            for words in ("--port abc", "--port=70000", "--port=0", "--port=\u00b2", "--port")
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_runs(spoil, words, message, course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if spoil:
        spoil(monkeypatch)
    assert re.search(message, course.refuses(*words))
    assert course.calls == course.installs == []


def test_it_installs_and_opens_the_first_notebook(course, tmp_path, capsys):
    assert course() == 0
    assert course.installs == [("pip", "lab")]
    words = course.calls[-1]
    assert words[:2] == ["-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={tmp_path}" in words
    assert "--LabApp.default_url=/lab/tree/my_notebooks/00_start_here.ipynb" in words
    assert course.folders == [str(tmp_path)]
    settings = json.loads((tmp_path / ".venv/share/jupyter/lab/settings/overrides.json").read_text())
    assert settings == {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/notebook-extension:tracker": {"scrollPastEnd": False, "codeCellConfig": {"lineNumbers": True}},
    }
    assert (ROOT / "notebooks/00_start_here.ipynb").exists()
    course()  # the second run installs nothing, and says nothing
    assert course.installs == [("pip", "lab")]
    assert capsys.readouterr().out == "Installing into .venv with pip ...\n"


def test_extras_add_up(course):
    for words in (["test"], [], ["test", "--parity"], [], ["test"], ["format"], ["real"]):
        assert course(*words) == 0
    assert course.installs == [("pip", "lab,test"), ("pip", "lab,parity,test"), ("pip", "lab,parity,style,test")]
    assert course.venvs == 1


CHANGES = {
    "another project": lambda course: (course.folder / "pyproject.toml").write_text("[project]\ndependencies = []\n"),
    "another Python": lambda course: course.monkeypatch.setattr(sys, "version_info", (3, 99, 0)),
    "a broken Python": lambda course: setattr(course, "python_works", False),
    "no Python": lambda course: setattr(course, "python_works", None),
    "no NumPy": lambda course: setattr(course, "gone", "numpy"),
    "no JupyterLab": lambda course: setattr(course, "gone", "jupyterlab"),
    "an empty stamp": lambda course: (course.folder / ".venv/installed.json").write_text(""),
    "half a stamp": lambda course: (course.folder / ".venv/installed.json").write_text("{}"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_fit_any_more_is_installed_again(change, course):
    course("test")
    CHANGES[change](course)
    course()
    course()
    kept = change == "another project"
    assert course.installs == [("pip", "lab,test"), ("pip", "lab,test" if kept else "lab")]
    assert course.venvs == (1 if kept else 2)


def test_the_libraries_that_are_looked_for_are_those_that_the_course_needs():
    """With the real Python: the name of one that is not there makes the difference."""
    given = runpy.run_path(str(ROOT / "course.py"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = lambda requirements: {re.match(r"[\w-]+", one)[0] for one in requirements}  # noqa: E731
    assert set(given["LIBRARIES"]) == names(project["dependencies"])
    assert set(given["LAB"]) == names(project["optional-dependencies"]["lab"]) - set(given["LIBRARIES"])
    for words, code in (([], 0), (["no_such_library"], 1)):
        assert subprocess.run([sys.executable, "-c", given["ARE_THERE"], "numpy", *words]).returncode == code


def test_a_moved_project_is_installed_again(course, tmp_path, monkeypatch, capsys):
    course()
    again = Course(tmp_path.rename(tmp_path.with_name(tmp_path.name + "_moved")), monkeypatch, capsys)
    again()
    assert (again.installs, again.venvs) == ([("pip", "lab")], 1)


@pytest.mark.parametrize("uv", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_an_interrupted_installation_ends_quietly_and_is_made_anew(first, uv, course, capsys):
    if uv:
        course.have_uv()
    if not first:
        course()
    course.failing = ("Ctrl-C",)
    assert course("test") == 130
    assert capsys.readouterr().err == ""
    course.failing = ()
    assert course() == 0
    assert course.installs[-1] == ("uv" if uv else "pip", "lab")
    assert course.venvs == 2  # pip may have been stopped between taking a package out and putting the new one in


NO_HATCH = "ERROR: No matching distribution found for hatchling"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (f"error: in a subprocess\n  {NO_HATCH}\n[end of output]\nnote: This error is not pip's.\n", NO_HATCH[7:]),
        (f"  {NO_HATCH}\n[end of output]\nERROR: Failed to build 'file:///course' when installing\n", NO_HATCH[7:]),
        ("ERROR: Exception:\nTraceback (most recent call last):\nTimeout: Read timed out\n", "Timeout: Read timed out"),
        ("", "it said nothing"),
    ],
)
def test_a_failed_installation_names_the_cause_in_one_line(output, reason, course, tmp_path):
    course.failing, course.output = ("pip",), output
    error = course.refuses()
    assert f"pip failed ({reason}). Check your connection and run this again" in error
    assert str(tmp_path / ".venv" / "install.log") in error
    assert (tmp_path / ".venv" / "install.log").read_text() == output
    course.failing = ()
    assert course() == 0
    assert course.installs == [("pip", "lab")] * 2


def test_uv_installs_when_it_is_there(course, capsys):
    course.have_uv()
    assert course() == 0
    assert course("test") == 0
    assert (course.installs, course.venvs) == ([("uv", "lab"), ("uv", "lab,test")], 1)
    assert capsys.readouterr().out == "Installing into .venv with uv ...\n" * 2


@pytest.mark.parametrize(
    ("failing", "output", "reason"),
    [
        ("uv", "error: Failed to fetch: `https://pypi.org/`", "error: Failed to fetch: `https://pypi.org/`"),
        ("uv", "", "it said nothing"),
        ("uv venv", "", "it could not make .venv"),
    ],
)
def test_pip_goes_on_where_uv_fails(failing, output, reason, course, capsys):
    course.have_uv()
    course.failing, course.output = (failing,), output
    assert course() == 0
    assert (course.installs[-1], course.venvs) == (("pip", "lab"), 1)
    assert capsys.readouterr().out.splitlines() == [
        "Installing into .venv with uv ...",
        f"uv failed ({reason}); pip tries now.",
        "Installing into .venv with pip ...",
    ]


@pytest.mark.parametrize(
    ("log", "step"),
    [
        (None, "making .venv"),
        ("", "looking for packages"),
        ("Obtaining file:///course\nCollecting numpy>=2.0 (from lesson-utils==0.1.0)\n", "collecting numpy"),
        ("  Downloading jupyterlab_widgets-3.0.15-py3-none-any.whl (216 kB)\n", "downloading jupyterlab_widgets"),
        ("Installing collected packages: a, b, c\n", "installing 3 packages"),
        ("Resolved 94 packages in 350ms\n", "downloading 94 packages"),
        ("Resolved 94 packages in 350ms\nPrepared 93 packages in 2.1s\n", "installing 93 packages"),
    ],
)
def test_what_is_being_done_is_read_from_what_was_said(log, step, course, tmp_path):
    if log is not None:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv/install.log").write_text(log)
    assert runpy.run_path(str(tmp_path / "course.py"))["last_step"]() == step


def test_on_a_terminal_one_line_moves_and_is_gone_at_the_end(course, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 24)))
    with runpy.run_path(str(tmp_path / "course.py"))["Progress"]("pip") as progress:
        while not progress.width:
            time.sleep(0.01)
    out = capsys.readouterr().out
    assert "\n" not in out
    assert out.startswith("\rInstalling into .venv with pip: making ")
    shown, blank = out.split("\r")[-3:-1]
    assert len(shown) == len(blank) == 39
    assert blank.isspace()


def test_a_failed_addition_leaves_what_was_there(course):
    course()
    course.failing = ("pip",)
    assert course("test") == 1
    assert course() == 0
    assert course.installs == [("pip", "lab"), ("pip", "lab,test")]
    assert course.venvs == 1


def test_learners_work_in_copies_and_a_newer_version_is_put_beside_them_once(course, tmp_path, capsys):
    course()
    assert (tmp_path / "my_notebooks/pictures/a.png").read_bytes() == b"a"
    assert "my_notebooks/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    course.publish("00_start_here", tags=["new"])  # no newer version: its code and text are the same
    course()
    assert course.mine == {"00_start_here": "x = 1"}
    capsys.readouterr()
    for version in ("x = 2", "x = 3"):
        course.publish("00_start_here", version)
        course()
        course()
    assert course.mine == {
        "00_start_here": "x = 1",
        "00_start_here (version 2)": "x = 2",
        "00_start_here (version 3)": "x = 3",
    }
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("00_start_here.ipynb has changed: the new version is my_notebooks")
    assert second.endswith("00_start_here (version 3).ipynb. Yours is as you left it.")


def test_work_is_kept_whatever_happens_and_a_deleted_copy_comes_back(course, tmp_path):
    course.publish("01_bottleneck")
    course()
    solved = tmp_path / "my_notebooks/00_start_here.ipynb"
    for work in (solved.read_text().replace("x = 1", "solved"), "no notebook any more"):
        solved.write_text(work)
        (tmp_path / "my_notebooks/01_bottleneck.ipynb").unlink()
        course()
        assert solved.read_text() == work
        assert (tmp_path / "my_notebooks/01_bottleneck.ipynb").exists()
    (tmp_path / "my_notebooks/.versions.json").unlink()
    course()
    assert solved.read_text() == work


def test_who_changes_the_course_opens_the_notebooks_themselves(course, tmp_path):
    assert course("--edit", "--no-browser") == 0
    assert course.calls[-1][3] == "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb"
    assert "--no-browser" in course.calls[-1]
    assert not (tmp_path / "my_notebooks").exists()


def test_ctrl_c_is_left_to_what_runs(course, capsys):
    course.codes = [KeyboardInterrupt, KeyboardInterrupt, 5]
    assert course() == 5
    assert capsys.readouterr().err == ""


def test_a_taken_port_is_one_line_before_anything_is_installed(course):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} is taken" in course.refuses(f"--port={port}")
    assert course.installs == []


def test_a_free_port_and_other_options_reach_jupyterlab(course):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert course("--no-browser", "--port", str(port), "--ip", "0.0.0.0", "--po=1") == 0
    words = course.calls[-1]
    assert words[5:9] == ["--no-browser", "--ip", "0.0.0.0", "--po=1"]
    assert words[9:11] == [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    course()  # JupyterLab finds a free one
    assert not any(word.startswith("--ServerApp.port") for word in course.calls[-1])


def test_root_may_run_jupyterlab(course, monkeypatch):
    for user in (0, 1000):
        monkeypatch.setattr("os.geteuid", lambda user=user: user, raising=False)
        course()
        assert ("--allow-root" in course.calls[-1]) == (user == 0)


@pytest.mark.parametrize(("address", "said"), [("ada/course", "Links still lead to OWNER/REPO."), (None, "")])
def test_an_address_that_is_not_filled_in_is_announced_with_the_command_that_does(
    address, said, course, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("tools.__main__.origin", lambda folder: address)
    project = tmp_path / "pyproject.toml"
    project.write_text('[project.urls]\nRepository = "https://github.com/OWNER/REPO"\n')
    course()
    said += " To have them lead to ada/course: python course.py address\n" if address else ""
    assert capsys.readouterr().out.partition("...\n")[2] == said
    project.write_text('[project.urls]\nRepository = "https://github.com/ada/course"\n')
    course()
    assert "OWNER/REPO" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "extras", "marks"),
    [
        ([], "lab,test", "not long_form"),
        (["--parity"], "lab,parity,test", "not long_form"),
        (["--fast"], "lab,test", "not slow and not long_form"),
        (["--rest"], "hub,lab,parity,site,style,test", "(long_form or parity) and not own_job"),
    ],
)
def test_each_form_has_its_tests(words, extras, marks, course, monkeypatch):
    environment = {}
    monkeypatch.setattr("os.environ", environment)
    assert course("test", *words, "-x") == 0
    assert course.installs == [("pip", extras)]
    command = course.calls[-1]
    assert (command[1:3], command[4:6], command[-1]) == (["pytest", "-n"], ["-m", marks], "-x")
    assert ("tests" in command) == ("--fast" in words)  # without the notebooks
    assert environment["COURSE_TRAIN"] == "no"  # unless the environment says otherwise


def test_files_are_tested_whole_with_options_and_exit_code_of_pytest(course, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_ops.py").touch()
    course.codes = [3]
    assert course("test", "--site", "tests/test_ops.py::test_x", "-k", "softmax", "--help") == 3
    assert course.installs == [("pip", "lab,site,test")]
    assert course.calls[-1] == ["-m", "pytest", "tests/test_ops.py::test_x", "-k", "softmax", "--help"]


def test_the_marks_and_extras_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    marks = {mark.split(":")[0] for mark in project["tool"]["pytest"]["ini_options"]["markers"]}
    assert {"slow", "long_form", "parity", "own_job"} <= marks
    extras = runpy.run_path(str(ROOT / "course.py"))["TEST_EXTRAS"]
    assert {*extras, "lab", "test"} == set(project["project"]["optional-dependencies"])


def test_a_command_for_maintainers_is_handed_on_from_where_one_stands(course):
    course.codes = [6]
    assert course("site", "--no-lite") == 6
    assert course.installs == [("pip", "site")]
    assert (course.calls[-1], course.folders) == (["-P", "-m", "tools", "site", "--no-lite"], [None])


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_names_every_command_and_option(word, course, capsys):
    assert course(word) == 0
    text = capsys.readouterr().out
    told = "".join(page.read_text(encoding="utf-8") for page in save.texts() if page.suffix == ".md")
    commands = set(re.findall(r"python course\.py ([a-z]+)\b", told))
    assert {"test", "real", "edition", "report", "format", "save"} <= commands
    for command in commands:
        assert re.search(rf"^(python course\.py|   ) {command} ", text, re.M), command
    for option in ("--no-browser", "--port", "--edit", "--fast", "--rest", "--parity", "--site", "--hub", "--style"):
        assert option in text
    assert course.calls == []


def test_environment_for_binder_and_conda():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    environment = yaml.safe_load(text)
    assert environment["channels"] == ["conda-forge"]
    assert environment["dependencies"] == ["python=3.12", "pip", {"pip": ["-e .[lab]"]}]
    assert re.match(r"# .*3\.12", text)  # says why


def test_the_licence_says_what_covers_what():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    code, rest = text.split("--- Text and figures: CC BY 4.0 ---")
    prose, snapshot = rest.split("--- lesson_utils/maths/tasks/python_3.11_topics.txt: Python Software Foundation")
    assert "MIT License" in code
    assert "The course's authors" in code
    assert "https://creativecommons.org/licenses/by/4.0/" in prose
    assert "Python Software Foundation;" in snapshot
    assert (ROOT / "lesson_utils/maths/tasks/python_3.11_topics.txt").exists()
    for name in re.findall(r"(?:tests|lesson_utils)/[\w./]*\w", code):
        assert (ROOT / name).exists(), name
    for name in ("SmolLM2-135M-Instruct", "MathJax", "Pyodide"):
        assert name in code


# --- Whatever happens to the disk ------------------------------------------------------------------------------------

COPIES = """
import importlib.util, itertools, os, shutil, signal, sys
spec = importlib.util.spec_from_file_location("course", "course.py")
course = importlib.util.module_from_spec(spec)
spec.loader.exec_module(course)
import tools.start  # or each process would import it, and most moments to be killed at would lie in there

def copy(folder, moment):
    count = 0

    def kill(frame, event, called):  # before and after what is written in C and can ask something of the system
        nonlocal count
        own = {getattr(called, "__module__", ""), type(getattr(called, "__self__", 0)).__module__}
        if event.startswith("c_") and own & {"posix", "_io"}:
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    course.ROOT = os.path.abspath(folder)
    course.NOTEBOOKS, course.MINE = os.path.join(course.ROOT, "notebooks"), os.path.join(course.ROOT, "my_notebooks")
    sys.stdout = open(os.path.join(folder, "said.txt"), "w")
    if moment:
        sys.setprofile(kill)
    course.copy_notebooks()
    sys.setprofile(None)
    sys.stdout.flush()

def apart(folder, moment):
    if pid := os.fork():
        return os.waitpid(pid, 0)[1]
    copy(folder, moment)
    os._exit(0)
"""
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no signal that kills, and no fork")


def runs(code, folder):
    """Run some code after COPIES, in a process that has loaded no NumPy and can fork in no time."""
    return subprocess.run([sys.executable, "-c", COPIES + code], cwd=folder, capture_output=True, text=True)


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "my_notebooks").rglob("*") if path.is_file()}


def of_versions(folder, *versions):
    """A course whose notebook came in these versions; all but the last have been copied."""
    (folder / "notebooks/pictures").mkdir(parents=True)
    (folder / "course.py").write_text(SOURCE, encoding="utf-8")
    (folder / "notebooks/pictures/a.png").write_bytes(b"a" * 9999)
    for version in versions:
        if (folder / "notebooks/00.ipynb").exists():
            assert runs("copy('.', 0)", folder).returncode == 0
        cells = [{"cell_type": "code", "source": version * 9999}]
        (folder / "notebooks/00.ipynb").write_text(json.dumps({"cells": cells}))
    return folder


@pytest.mark.slow
@unix
@pytest.mark.parametrize("versions", ["a", "ab"])
def test_copies_that_are_killed_at_any_moment_are_the_old_ones_or_the_new_ones(versions, tmp_path):
    """A first copy, and that of a newer version. The next start finds nothing half, and says nothing false."""
    template = of_versions(tmp_path / "template", *versions)
    killed = """
for moment in itertools.count(1):
    shutil.copytree("../template", f"../{moment}")
    if not apart(f"../{moment}", moment):
        break
print(moment)
"""
    last = int(runs(killed, template).stdout)
    assert last > 50
    whole, said = files(tmp_path / str(last)), (tmp_path / str(last) / "said.txt").read_text()
    for moment in range(1, last):
        shown = {name: content for name, content in files(tmp_path / str(moment)).items() if name[0] != "."}
        assert shown.items() <= whole.items(), moment
        for part in (tmp_path / str(moment) / "my_notebooks").rglob("*.course-part"):
            os.utime(part, (0, 0))  # which was long ago
    again = runs(f"print(*(apart(f'../{{moment}}', 0) for moment in range(1, {last})))", template)
    assert set(again.stdout.split()) == {"0"}
    for moment in range(1, last):
        assert files(tmp_path / str(moment)) == whole, moment
        assert (tmp_path / str(moment) / "said.txt").read_text() in ("", said), moment


@pytest.mark.slow
@unix
def test_a_full_disk_leaves_no_half_copy_and_is_one_line(tmp_path):
    """No file can become larger than a limit, which is what a full disk does to a copy."""
    folder = of_versions(tmp_path / "course", "a")
    (folder / "notebooks/pictures/a.png").unlink()
    for size in (0, 1, 5_000, 9_999):
        limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); copy('.', 0)"
        done = runs(limit, folder)
        assert done.returncode == 1
        assert re.fullmatch(r"course\.py: Could not write .+00\.ipynb \(File too large\)\. See .+\n", done.stderr)
        assert files(folder) == {}
    assert runs("copy('.', 0)", folder).returncode == 0
    assert files(folder)["00.ipynb"] == without_outputs(folder / "notebooks/00.ipynb").encode()


DAMAGED = [
    "",
    "[]",
    "null",
    "3",
    '"x"',
    "{",
    '{"00_start_here.ipynb": null}',
    '{"00_start_here.ipynb": {}}',
    "[" * 99_999,
]


@pytest.mark.parametrize("content", [*DAMAGED, b"\xff\xfe"], ids=range(len(DAMAGED) + 1))
def test_a_damaged_record_is_rebuilt(content, course, tmp_path, capsys):
    course()
    content = content if isinstance(content, bytes) else content.encode()
    place = json.loads((tmp_path / ".venv/installed.json").read_text())
    for file in ("my_notebooks/.versions.json", ".venv/installed.json"):
        (tmp_path / file).write_bytes(content)
        assert course() == 0
        assert course() == 0
    assert capsys.readouterr().err == ""
    assert json.loads((tmp_path / ".venv/installed.json").read_text()) == place
    assert course.mine == {"00_start_here": "x = 1"}
    assert len(json.loads((tmp_path / "my_notebooks/.versions.json").read_text())["00_start_here.ipynb"]) == 1


@pytest.mark.parametrize("extras", [3, None, "lab", [3], [[]], {"a": []}])
def test_a_stamp_that_was_written_by_hand_is_written_anew(extras, course, tmp_path):
    course()
    stamp = tmp_path / ".venv/installed.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"extras": extras}))
    assert course("test") == 0
    assert json.loads(stamp.read_text())["extras"] == ["lab", "test"]


def test_what_lies_in_the_way_of_a_copy_is_left_alone(course, tmp_path):
    mine = tmp_path / "my_notebooks"
    (mine / "00_start_here.ipynb").mkdir(parents=True)
    assert course() == 0
    assert (mine / "00_start_here (version 2).ipynb").is_file()
    assert (mine / "00_start_here.ipynb").is_dir()


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for administrators only")
def test_a_link_that_leads_nowhere_is_left_alone(course, tmp_path, capsys):
    mine = tmp_path / "my_notebooks"
    mine.mkdir()
    (mine / "00_start_here.ipynb").symlink_to(tmp_path / "a disk that is not there")
    assert course() == 0
    assert (mine / "00_start_here.ipynb").is_symlink()
    assert "differs from yours: the course's version is my_notebooks" in capsys.readouterr().out
    (mine / "00_start_here.ipynb").unlink()
    assert course.mine == {"00_start_here (version 2)": "x = 1"}


def test_a_file_where_the_copies_belong_is_one_line(course, tmp_path):
    (tmp_path / "my_notebooks").write_text("mine")
    assert "my_notebooks" in course.refuses()
    assert (tmp_path / "my_notebooks").read_text() == "mine"


def test_a_checkout_that_somebody_else_has_installed_is_one_line(course, monkeypatch):
    course()
    replace = os.replace

    def not_mine(old, new):
        if ".venv" in str(new):
            raise PermissionError(13, "Permission denied")
        replace(old, new)

    monkeypatch.setattr(os, "replace", not_mine)
    assert course() == 0, "there is nothing to be written"
    course.capsys.readouterr()
    (course.folder / ".venv/share/jupyter/lab/settings/overrides.json").write_text("{}")
    assert "overrides.json (Permission denied). See that" in course.refuses()


def test_a_disk_that_fills_up_while_something_is_installed_is_one_line(course, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert "installed.json (No space left on device). See that there is room" in course.refuses().partition("\n")[0]
    monkeypatch.undo()
    assert not [*tmp_path.rglob("*.course-part")]
