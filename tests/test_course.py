"""course.py: one command that works on a machine with nothing on it, and says in one line what is missing."""

import ast
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
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
        (folder / "course.py").write_text(SOURCE, encoding="utf-8")
        (folder / "pyproject.toml").write_text("[project]\n")
        monkeypatch.setattr(subprocess, "call", self._call)
        monkeypatch.setattr(subprocess, "Popen", self._start)
        monkeypatch.setattr("venv.create", self._create_venv)

    def __call__(self, *words):
        """What `python course.py ...` would exit with."""
        self.monkeypatch.setattr(sys, "argv", ["course.py", *words])
        with pytest.raises(SystemExit) as exited:
            runpy.run_path(str(self.folder / "course.py"), run_name="__main__")
        return exited.value.code

    @property
    def installed(self):
        calls = [" ".join(words) for words in self.calls if words[:2] == ["-m", "pip"]]
        return [re.fullmatch(r"-m pip install .* -e \.\[(.*)\]", call)[1] for call in calls]

    def _call(self, command, stdout=None, stderr=None, cwd=None):
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
    assert SOURCE.isascii()  # Python 2 refuses anything else
    for node in ast.walk(ast.parse(SOURCE, feature_version=(3, 6))):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.Nonlocal, ast.YieldFrom, ast.Await))
        if isinstance(node, ast.Raise):
            assert node.cause is None
        if isinstance(node, ast.ClassDef):
            assert not node.keywords
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert not node.args.kwonlyargs
        if isinstance(node, ast.arg):
            assert node.annotation is None
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            assert not any(isinstance(item, ast.Starred) for item in node.elts)
        if isinstance(node, ast.Call):
            assert not any(isinstance(argument, ast.Starred) for argument in node.args[:-1])
            assert getattr(node.func, "id", "") != "print" or (len(node.args) == 1 and not node.keywords)


def test_old_pythons_have_what_it_imports_at_the_top():
    imports = [node for node in ast.parse(SOURCE).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports for alias in node.names}
    assert names <= {"argparse", "hashlib", "json", "os", "shutil", "socket", "subprocess", "sys"}


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 15), (3, 10, 13)])
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
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in words
    assert (ROOT / "notebooks/00_start_here.ipynb").exists()
    assert capsys.readouterr().out == "Installing into .venv; this takes about half a minute ...\n"


def test_the_second_run_installs_nothing_and_says_nothing(course, capsys):
    course()
    capsys.readouterr()
    course()
    assert course.installed == ["lab"]
    assert capsys.readouterr().out == ""


def test_extras_add_up(course):
    for words in (["test"], [], ["test", "--parity"], [], ["test"], ["format"], ["save"]):
        assert course(*words) == 0
    assert course.installed == ["lab,test", "lab,parity,test"]
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


# Opening


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


def test_tests_get_their_options_and_give_their_exit_code(course):
    course.codes = [3]
    assert course("test", "--parity", "tests/test_ops.py", "-k", "softmax", "--help") == 3
    assert course.installed == ["lab,parity,test"]
    assert course.calls[-1] == ["-m", "pytest", "tests/test_ops.py", "-k", "softmax", "--help"]


def test_format(course):
    assert course("format") == 0
    assert course.installed == ["test"]
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
    assert course.calls[-1] == ["-m", "tools.publish", "notebooks/a.ipynb"]


def test_site(course):
    course.codes = [6]
    assert course("site", "--no-lite") == 6
    assert course.installed == ["site"]
    assert course.calls[-1] == ["-m", "tools.site.build", "--no-lite"]


@pytest.mark.parametrize("word", ["tests/site", "tests/site/test_book.py::test_x", str(Path("tests", "site"))])
def test_the_tests_of_the_site_get_what_builds_it(word, course):
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
    for option in ("--no-browser", "--port", "--parity"):
        assert option in text
    assert course.calls == []


# Its neighbours


def test_environment_for_binder_and_conda():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    environment = yaml.safe_load(text)
    assert environment["channels"] == ["conda-forge"]
    assert environment["dependencies"] == ["python=3.12", "pip", {"pip": ["-e .[lab]"]}]
    assert re.match(r"# .*3\.12", text)  # says why


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason=".ci/run needs bash, and a Unix around it")
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("failing", ["", "course.py site", "test --parity", "test tests/platforms tests/site -s"])
def test_ci_starts_from_nothing_and_fails_when_one_part_does(complete, failing, tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "dirname", "mktemp", "rm"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    stub = f'#!{shutil.which("bash")}\necho "${{0##*/}} $*" >> log\n'
    python = (
        f"[[ $1 == -c ]] && exit {int(not complete)}\n[[ ! -e .venv ]] || exit 1\n"
        f'echo "$* ran"\n[[ $* != *{failing!r} || -z {failing!r} ]]\n'
    )
    stubs = {"python3": python, "apt-get": "", **({"chromium": "", "npm": ""} if complete else {})}
    for name, body in stubs.items():
        (tmp_path / "bin" / name).write_text(stub + body)
        (tmp_path / "bin" / name).chmod(0o755)
    assert subprocess.run(["bash", "-n", ROOT / ".ci/run"]).returncode == 0
    environment = {"PATH": str(tmp_path / "bin")}
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode != 0) == bool(failing), done.stderr
    if failing != "course.py site":
        for part in ("test --parity", "test tests/platforms tests/site -s"):
            assert f"course.py {part} ran\n" in done.stdout
    installed = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("apt-get")]
    if complete:
        assert installed == []
    else:
        assert installed[0].startswith("apt-get update")
        assert {"chromium", "npm", "python3-venv"} <= set(installed[1].split())
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_extras_it_installs_exist(course):
    course("test", "--parity")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(course.installed[-1].split(",")) <= set(extras)


def test_the_licence_says_what_covers_what():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    code, rest = text.split("--- Text and figures: CC BY 4.0 ---")
    prose, snapshot = rest.split("--- lesson_utils/data/python_3.11_topics.txt: Python Software Foundation")
    assert "MIT License" in code
    assert "The course's authors" in code
    assert "https://creativecommons.org/licenses/by/4.0/" in prose
    assert "Python Software Foundation;" in snapshot
    assert (ROOT / "lesson_utils/data/python_3.11_topics.txt").exists()
