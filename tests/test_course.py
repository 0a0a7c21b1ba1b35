"""course.py: one command that works on a machine with nothing on it, and says in one line what is missing."""

import ast
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SOURCE = (ROOT / "course.py").read_text(encoding="utf-8")


class Course:
    """course.py in a folder of its own. Nothing is really run: `calls` holds what the Python of .venv was asked for."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch, self.calls, self.venvs = folder, monkeypatch, [], 0
        self.pip_code, self.pip_output, self.python_works = 0, "", True
        self.codes = []  # what the programs that it runs exit with, one after the other; then 0
        self.interrupt_pip, self.interruptions = False, 0
        self.uv_code, self.uv_venv_code, self.uv_output = 0, 0, ""
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
        """What `python course.py ...` would exit with."""
        self.monkeypatch.setattr(sys, "argv", ["course.py", *words])
        with pytest.raises(SystemExit) as exited:
            runpy.run_path(str(self.folder / "course.py"), run_name="__main__")
        return exited.value.code

    def publish(self, name, source="x = 1", **metadata):
        """A notebook of the course, perhaps a newer version."""
        cells = [{"cell_type": "code", "source": [source], "outputs": [], "metadata": metadata}]
        (self.folder / f"notebooks/{name}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")

    @property
    def mine(self):
        """What each of the learner's copies holds."""
        paths = sorted((self.folder / "my_notebooks").glob("*.ipynb"))
        return {path.stem: json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"][0] for path in paths}

    @property
    def installed(self):
        calls = [" ".join(words) for words in self.calls if words[:2] == ["-m", "pip"]]
        return [re.fullmatch(r"-m pip install .* -e \.\[(.*)\]", call)[1] for call in calls]

    @property
    def installed_by_uv(self):
        calls = [" ".join(words) for words in self.calls if words[:2] == ["uv", "pip"]]
        return [re.fullmatch(r"uv pip install --python .* -e \.\[(.*)\]", call)[1] for call in calls]

    def _call(self, command, stdout=None, stderr=None, cwd=None):
        if command[0] == "/bin/uv":
            return self._call_uv(command[1:], stdout)
        assert Path(command[0]).is_relative_to(self.folder / ".venv")
        if command[1:] == ["-c", "import pip"]:
            if self.python_works is None:
                raise FileNotFoundError(command[0])
            return 0 if self.python_works else 1
        assert Path(cwd) == self.folder
        self.calls.append(command[1:])
        if self.interrupt_pip:
            raise KeyboardInterrupt
        stdout.write(self.pip_output)
        return self.pip_code

    def _call_uv(self, words, stdout):
        self.calls.append(["uv", *words])
        if words[0] == "venv":
            assert words[1:3] == ["--seed", "--python"]
            if self.uv_venv_code == 0:
                self._create_venv(words[-1], with_pip=True, symlinks=os.name != "nt")
            return self.uv_venv_code
        assert Path(words[3]).is_relative_to(self.folder / ".venv")
        if self.interrupt_pip:
            raise KeyboardInterrupt
        stdout.write(self.uv_output)
        return self.uv_code

    def _start(self, command, cwd):
        assert Path(cwd) == self.folder
        self.calls.append(command[1:])
        return SimpleNamespace(wait=self._wait)

    def _wait(self):
        if self.interruptions:
            self.interruptions -= 1
            raise KeyboardInterrupt
        return self.codes.pop(0) if self.codes else 0

    def _create_venv(self, path, with_pip, symlinks):
        assert with_pip
        assert symlinks == (os.name != "nt")
        Path(path).mkdir()  # fails if anything is left of an earlier one
        self.venvs += 1
        self.python_works = True


@pytest.fixture
def course(tmp_path, monkeypatch):
    return Course(tmp_path, monkeypatch)


@pytest.fixture
def one_line(capsys):
    """The error message, which must be a single line."""

    def read():
        error = capsys.readouterr().err
        assert re.fullmatch(r"course\.py: .+\n", error)
        return error

    return read


# Python


def test_old_pythons_can_read_it():
    ast.parse(SOURCE, feature_version=(3, 6))
    imports = [node for node in ast.parse(SOURCE).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports for alias in node.names}
    assert names <= set("argparse hashlib json os re shutil socket subprocess sys threading time".split())


@pytest.mark.parametrize("version", [(3, 6, 15), (3, 10, 13)])
def test_an_old_python_gets_one_line(version, course, monkeypatch, one_line):
    monkeypatch.setattr(sys, "version_info", version)
    assert course() == 1
    assert "needs Python 3.11 or newer" in (error := one_line())
    assert f"this is {version[0]}.{version[1]}." in error
    assert course.calls == []


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_gets_one_line(module, course, monkeypatch, one_line):
    monkeypatch.setitem(sys.modules, module, None)
    assert course() == 1
    assert "sudo apt install python3-venv" in one_line()


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied"),
        ValueError("contains the PATH separator"),
        subprocess.CalledProcessError(1, "ensurepip"),
    ],
)
def test_an_environment_that_cannot_be_made_is_one_line(error, course, monkeypatch, one_line):
    def create(*args, **options):
        raise error

    monkeypatch.setattr("venv.create", create)
    assert course() == 1
    assert f"Could not make .venv ({error})." in one_line()


# Installing


def test_it_installs_and_opens_the_first_notebook(course, tmp_path, capsys):
    assert course() == 0
    assert course.installed == ["lab"]
    words = course.calls[-1]
    assert words[:2] == ["-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={tmp_path}" in words
    assert "--LabApp.default_url=/lab/tree/my_notebooks/00_start_here.ipynb" in words
    assert (ROOT / "notebooks/00_start_here.ipynb").exists()
    assert capsys.readouterr().out == "Installing into .venv with pip ...\n"


def test_the_second_run_installs_nothing_and_says_nothing(course, capsys):
    course()
    capsys.readouterr()
    course()
    assert course.installed == ["lab"]
    assert capsys.readouterr().out == ""


def test_extras_add_up(course):
    for words in (["test"], [], ["test", "--parity"], [], ["test"], ["format"], ["save"]):
        assert course(*words) == 0
    assert course.installed == ["lab,test", "lab,parity,test", "lab,parity,style,test"]
    assert course.venvs == 1


def test_a_changed_pyproject_is_installed_again_with_all_extras(course, tmp_path):
    course("test")
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    course()
    course()
    assert course.installed == ["lab,test", "lab,test"]
    assert course.venvs == 1


def test_a_moved_project_is_installed_again(course, tmp_path, monkeypatch):
    course()
    again = Course(tmp_path.rename(tmp_path.with_name(tmp_path.name + "_moved")), monkeypatch)
    again()
    assert (again.installed, again.venvs) == (["lab"], 1)


def test_another_version_of_python_gets_its_own_environment(course, monkeypatch):
    course()
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    course()
    assert (course.installed, course.venvs) == (["lab", "lab"], 2)


@pytest.mark.parametrize("works", [False, None])  # starts without its packages; is gone
def test_a_broken_python_is_replaced(works, course):
    course()
    course.python_works = works
    course()
    assert (course.installed, course.venvs) == (["lab", "lab"], 2)


@pytest.mark.parametrize("stamp", [None, "", "{}"])
def test_a_half_made_environment_is_replaced(stamp, course, tmp_path):
    (tmp_path / ".venv" / "half").mkdir(parents=True)
    if stamp is not None:
        (tmp_path / ".venv" / "installed.json").write_text(stamp)
    assert course() == 0
    assert course.installed == ["lab"]
    assert not (tmp_path / ".venv" / "half").exists()


@pytest.mark.parametrize("first", [True, False])
def test_an_interrupted_installation_ends_quietly_and_is_made_anew(first, course, capsys):
    if not first:
        course()
    course.interrupt_pip = True
    assert course("test") == 130
    assert capsys.readouterr().err == ""
    course.interrupt_pip = False
    assert course() == 0
    assert course.installed[-1] == "lab"
    assert course.venvs == 2  # pip may have been stopped between taking a package out and putting the new one in


PIP_23 = """\
  error: subprocess-exited-with-error
      ERROR: Could not find a version that satisfies the requirement hatchling (from versions: none)
      ERROR: No matching distribution found for hatchling
      [end of output]
error: subprocess-exited-with-error
note: This error originates from a subprocess, and is likely not a problem with pip.
"""
PIP_26 = """\
      ERROR: No matching distribution found for hatchling
      [end of output]
ERROR: Failed to build 'file:///course' when installing build dependencies
"""
CRASH = """\
ERROR: Exception:
Traceback (most recent call last):
ReadTimeoutError: Read timed out
"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (PIP_23, "No matching distribution found for hatchling"),
        (PIP_26, "No matching distribution found for hatchling"),
        (CRASH, "ReadTimeoutError: Read timed out"),
        ("", "it said nothing"),
    ],
)
def test_a_failed_installation_names_the_cause_in_one_line(output, reason, course, tmp_path, one_line):
    course.pip_code, course.pip_output = 1, output
    assert course() == 1
    error = one_line()
    assert f"pip failed ({reason}). Check your connection and run this again" in error
    assert str(tmp_path / ".venv" / "install.log") in error
    assert (tmp_path / ".venv" / "install.log").read_text() == output
    course.pip_code = 0
    assert course() == 0
    assert course.installed == ["lab", "lab"]


# uv


def test_uv_installs_when_it_is_there(course, capsys):
    course.have_uv()
    assert course() == 0
    assert course("test") == 0
    assert (course.installed_by_uv, course.installed, course.venvs) == (["lab", "lab,test"], [], 1)
    assert capsys.readouterr().out == "Installing into .venv with uv ...\n" * 2


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("error: Failed to fetch: `https://pypi.org/simple/`", "error: Failed to fetch: `https://pypi.org/simple/`"),
        ("", "it said nothing"),
    ],
)
def test_pip_goes_on_in_the_same_environment_where_uv_fails(output, reason, course, capsys):
    course.have_uv()
    course.uv_code, course.uv_output = 1, output
    assert course() == 0
    assert (course.installed_by_uv, course.installed, course.venvs) == (["lab"], ["lab"], 1)
    first, failed, second = capsys.readouterr().out.splitlines()
    assert failed == f"uv failed ({reason}); pip tries now."
    assert (first, second) == ("Installing into .venv with uv ...", "Installing into .venv with pip ...")


def test_pip_makes_the_environment_that_uv_could_not_make(course, capsys):
    course.have_uv()
    course.uv_venv_code = 2
    assert course() == 0
    assert (course.installed_by_uv, course.installed, course.venvs) == ([], ["lab"], 1)
    assert "uv failed (it could not make .venv); pip tries now." in capsys.readouterr().out


def test_where_both_fail_one_line_says_why_pip_did(course, one_line):
    course.have_uv()
    course.uv_code = course.pip_code = 1
    course.pip_output = PIP_26
    assert course() == 1
    assert "pip failed (No matching distribution found for hatchling). Check your connection" in one_line()


def test_uv_may_be_interrupted_and_the_next_run_makes_all_anew(course, capsys):
    course.have_uv()
    course.interrupt_pip = True
    assert course() == 130
    assert capsys.readouterr().err == ""
    course.interrupt_pip = False
    assert course() == 0
    assert course.venvs == 2


# Progress


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
    course.pip_code = 1
    assert course("test") == 1
    assert course() == 0
    assert course.installed == ["lab", "lab,test"]
    assert course.venvs == 1


def test_outside_its_folder_it_says_so(course, tmp_path, one_line):
    (tmp_path / "pyproject.toml").unlink()
    assert course() == 1
    assert "pyproject.toml is not beside course.py" in one_line()


# Working copies


def test_learners_work_in_copies_with_the_pictures_beside_them(course, tmp_path):
    course()
    assert course.mine == {"00_start_here": "x = 1"}
    assert (tmp_path / "my_notebooks/pictures/a.png").read_bytes() == b"a"


def test_git_ignores_the_copies():
    assert "my_notebooks/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_a_newer_version_is_put_beside_the_copy_once(course, capsys):
    course()
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


def test_other_outputs_are_no_newer_version(course):
    course()
    course.publish("00_start_here", tags=["new"])
    course()
    assert list(course.mine) == ["00_start_here"]


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
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in course.calls[-1]
    assert course.calls[-1][4:5] == ["--no-browser"]
    assert not (tmp_path / "my_notebooks").exists()


# The address


@pytest.fixture
def cloned(course, tmp_path):
    """Makes it a clone of that address."""

    def cloned(url):
        (tmp_path / ".git").mkdir()
        (tmp_path / "pyproject.toml").write_text('[project.urls]\nRepository = "https://github.com/OWNER/REPO"\n')
        course.monkeypatch.setattr(subprocess, "check_output", lambda *_, **__: f"{url}\n".encode())
        return runpy.run_path(str(tmp_path / "course.py"))

    return cloned


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://github.com/ada/attention-course.git", "ada/attention-course"),
        ("https://ada:secret@github.com/ada/attention.course/", "ada/attention.course"),
        ("git@github.com:ada/course.git", "ada/course"),
        ("ssh://git@github.com/ada/course", "ada/course"),
        ("https://gitlab.com/ada/course", None),
        ("/home/ada/github.com/ada/course", None),
    ],
)
def test_an_address_that_is_not_filled_in_is_announced_with_the_command_that_does(url, address, cloned, capsys):
    cloned(url)["say_address"]()
    wanted = f"Links still lead to OWNER/REPO. To have them lead to {address}: python course.py address\n"
    assert capsys.readouterr().out == (wanted if address else "")


def test_an_address_that_is_filled_in_is_not_announced(cloned, tmp_path, capsys):
    course = cloned("https://github.com/ada/course")
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nRepository = "https://github.com/ada/course"\n')
    course["say_address"]()
    assert capsys.readouterr().out == ""


def test_a_repository_around_the_course_is_not_asked(cloned, tmp_path):
    cloned("https://github.com/ada/dotfiles")
    (tmp_path / "course").mkdir()
    (tmp_path / "course/course.py").write_text(SOURCE)
    assert runpy.run_path(str(tmp_path / "course/course.py"))["origin"]() is None


def test_the_address_is_written_from_the_origin_or_as_named(course, monkeypatch, capsys, one_line):
    written = []
    monkeypatch.setattr("tools.save.write_address", lambda address: written.append(address) or 3)
    assert course("address", "ada/course") in (0, None)
    assert capsys.readouterr().out == "ada/course: 3 files changed.\n"
    assert written == ["ada/course"]
    assert course("address") == 1  # no clone
    assert "Name the repository: python course.py address OWNER/REPO" in one_line()
    monkeypatch.undo()


# Opening


def test_jupyterlab_asks_nothing(course, tmp_path):
    course()
    settings = json.loads((tmp_path / ".venv/share/jupyter/lab/settings/overrides.json").read_text())
    assert settings == {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


def test_a_taken_port_is_one_line_before_anything_is_installed(course, one_line):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert course(f"--port={port}") == 1
    assert f"Port {port} is taken" in one_line()
    assert course.calls == []


@pytest.mark.parametrize("words", [["--port", "abc"], ["--port=70000"], ["--port=0"], ["--port=\u00b2"], ["--port"]])
def test_an_impossible_port_is_one_line(words, course, one_line):
    assert course(*words) == 1
    assert "is not a port. Give a number from 1024 to 65535" in one_line()
    assert course.calls == []


def test_a_free_port_and_other_options_reach_jupyterlab(course):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert course("--no-browser", "--port", str(port), "--ip", "0.0.0.0", "--po=1") == 0
    words = course.calls[-1]
    assert words[4:8] == ["--no-browser", "--ip", "0.0.0.0", "--po=1"]
    assert words[8:10] == [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]


def test_without_a_port_jupyterlab_finds_one(course):
    course()
    assert not any(word.startswith("--ServerApp.port") for word in course.calls[-1])


@pytest.mark.parametrize("user", [0, 1000])
def test_root_may_run_jupyterlab(user, course, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: user, raising=False)
    course()
    assert ("--allow-root" in course.calls[-1]) == (user == 0)


def test_ctrl_c_is_left_to_what_runs(course, capsys):
    course.interruptions, course.codes = 2, [5]
    assert course() == 5
    assert capsys.readouterr().err == ""


# The other commands


def test_files_are_tested_whole_with_options_and_exit_code_of_pytest(course, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_ops.py").touch()
    course.codes = [3]
    assert course("test", "--parity", "tests/test_ops.py::test_x", "-k", "softmax", "--help") == 3
    assert course.installed == ["lab,parity,test"]
    assert course.calls[-1] == ["-m", "pytest", "tests/test_ops.py::test_x", "-k", "softmax", "--help"]


@pytest.mark.parametrize(
    ("words", "extras", "marks", "train"),
    [
        ([], "lab,test", "not long_form", "no"),
        (["--parity"], "lab,parity,test", "not long_form", "no"),
        (["--fast"], "lab,test", "not slow and not long_form", None),
        (["--rest"], "hub,lab,parity,site,style,test", "(long_form or parity) and not own_job", None),
    ],
)
def test_each_form_has_its_tests(words, extras, marks, train, course, monkeypatch):
    environment = {}
    monkeypatch.setattr("os.environ", environment)
    assert course("test", *words, "-x") == 0
    assert course.installed == [extras]
    asked = course.calls[-1]
    assert (asked[asked.index("-m", 2) + 1] if "-m" in asked[2:] else None) == marks
    assert asked[2] == "-n"
    assert asked[-1] == "-x"
    assert ("tests" in asked) == ("--fast" in words)  # without the notebooks
    assert environment.get("COURSE_TRAIN") == train


def test_the_marks_of_the_forms_exist():
    ini = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert [mark.split(":")[0] for mark in ini["markers"]] == ["slow", "long_form", "parity", "own_job"]
    assert ini["testpaths"] == ["tests", "notebooks"]


def test_format(course):
    assert course("format") == 0
    assert course.installed == ["style"]
    assert course.calls[-2:] == [["-m", "ruff", "check", "--fix", "."], ["-m", "ruff", "format", "."]]
    course("format", "tests")
    assert course.calls[-2:] == [["-m", "ruff", "check", "--fix", "tests"], ["-m", "ruff", "format", "tests"]]
    for codes in ([1, 0], [0, 1]):
        course.codes = codes
        assert course("format") == 1


def test_save(course):
    course.codes = [4]
    assert course("save", "notebooks/a.ipynb") == 4
    assert course.installed == ["lab,test"]
    assert course.calls[-1] == ["-m", "tools.save", "notebooks/a.ipynb"]


@pytest.mark.parametrize("command", ["edition", "report"])
def test_what_teachers_name_is_in_the_folder_that_one_stands_in(command, course, tmp_path, monkeypatch):
    (tmp_path / "class").mkdir()
    monkeypatch.chdir(tmp_path)
    course.codes = [3]
    assert course(command, "class", "--to", "out") == 3
    assert course.installed == ["lab"]
    assert course.calls[-1] == [
        "-m",
        f"tools.teacher.{command}",
        str(tmp_path / "class"),
        "--to",
        str(tmp_path / "out"),
    ]


def test_real(course):
    assert course("real") == 0
    assert course.installed == ["lab"]
    assert course.calls[-1] == ["-m", "lesson_utils.pretrained"]


def test_site(course):
    course.codes = [6]
    assert course("site", "--no-lite") == 6
    assert course.installed == ["site"]
    assert course.calls[-1] == ["-m", "tools.site.build", "--no-lite"]


@pytest.mark.parametrize("word", ["tests/site", "tests/site/test_book.py::test_x", str(Path("tests", "site"))])
def test_the_tests_of_the_site_get_what_builds_it(word, course, tmp_path):
    (tmp_path / "tests/site").mkdir(parents=True)
    (tmp_path / "tests/site/test_book.py").touch()
    course("test", word)
    assert course.installed == ["lab,site,test"]


def test_serve_shows_what_was_built(course, tmp_path, monkeypatch, capsys):
    def look(server):
        url = re.search(r"http://127\.0\.0\.1:\d+/", capsys.readouterr().out)[0]
        Thread(target=server.handle_request, daemon=True).start()
        pages.append(urllib.request.urlopen(url).read())
        raise KeyboardInterrupt

    pages = []
    site = tmp_path / "docs/_build/site"
    site.mkdir(parents=True)
    (site / "index.html").write_bytes(b"the book")
    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", look)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for words in ([], ["--port", str(port)]):
        assert course("serve", *words) == 130
    assert pages == [b"the book"] * 2
    assert course.calls == []


def test_serve_without_a_site_or_a_port_is_one_line(course, one_line):
    assert course("serve") == 1
    assert "no site to serve yet. Build it first: python course.py site" in one_line()
    assert course("serve", "--port", "abc") == 1
    assert "'abc' is not a port" in one_line()


def test_an_unknown_command_is_one_line(course, one_line):
    assert course("tset") == 1
    assert "no command 'tset'" in one_line()


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_names_every_command_of_the_readme(word, course, capsys):
    assert course(word) == 0
    text = capsys.readouterr().out
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in re.findall(r"python course\.py(?: [a-z]+\b)?", readme):
        assert command in text
    for option in ("--no-browser", "--port", "--edit", "--fast", "--rest", "--parity"):
        assert option in text
    assert course.calls == []


# Its neighbours


def test_environment_for_binder_and_conda():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    environment = yaml.safe_load(text)
    assert environment["channels"] == ["conda-forge"]
    assert environment["dependencies"] == ["python=3.12", "pip", {"pip": ["-e .[lab]"]}]
    assert re.match(r"# .*3\.12", text)  # says why


def test_the_extras_it_installs_exist(course):
    course("test", "--rest")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(course.installed[-1].split(",")) <= set(extras)


def test_the_licence_says_what_covers_what():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    code, rest = text.split("--- Text and figures: CC BY 4.0 ---")
    prose, snapshot = rest.split("--- lesson_utils/maths/tasks/python_3.11_topics.txt: Python Software Foundation")
    assert "MIT License" in code
    assert "The course's authors" in code
    assert "https://creativecommons.org/licenses/by/4.0/" in prose
    assert "Python Software Foundation;" in snapshot
    assert (ROOT / "lesson_utils/maths/tasks/python_3.11_topics.txt").exists()
