"""course.py: one command that works on a machine with nothing on it, and says in one line what is missing."""

import ast
import builtins
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SOURCE = (ROOT / "course.py").read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path, monkeypatch):
    """course.py in a project of its own, where nothing is really run; `calls` holds what would have been."""
    (tmp_path / "course.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return load(tmp_path, monkeypatch)


def load(folder, monkeypatch, pip_code=0, pip_output="", code=0):
    module = SimpleNamespace(**runpy.run_path(str(folder / "course.py")))
    module.calls = []

    def call(command, stdout=None, **options):
        words = command[1:]
        if words[:2] == ["-c", ""]:
            return 0 if (folder / ".venv").exists() else 1
        module.calls.append(words)
        if words[:2] == ["-m", "pip"]:
            stdout.write(pip_output)
            return pip_code
        return code

    def create(path, with_pip):
        assert with_pip
        assert not Path(path).exists()
        Path(path).mkdir()

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setattr("venv.create", create)
    return module


def installs(module):
    return [re.search(r"\[(.*)\]$", words[-1])[1] for words in module.calls if words[:2] == ["-m", "pip"]]


def one_line(capsys):
    error = capsys.readouterr().err
    assert error.startswith("course.py: ")
    assert error.count("\n") == 1
    return error


def test_old_pythons_can_read_it_and_are_told():
    ast.parse(SOURCE, feature_version=(3, 4))
    assert not re.search(r"\bf\"|\bf'|->|:=", SOURCE)  # nor Python 2 stumble over it
    assert "sys.version_info < (3, 11)" in SOURCE


def test_old_python_gets_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    monkeypatch.setattr(sys, "argv", ["course.py"])
    with pytest.raises(SystemExit, match="1"):
        runpy.run_path(str(ROOT / "course.py"), run_name="__main__")
    assert "needs Python 3.11 or newer; this is 3.9" in one_line(capsys)


def test_it_installs_and_opens_the_first_notebook(course, tmp_path, capsys):
    assert course.main([]) == 0
    assert installs(course) == ["lab"]
    words = course.calls[-1]
    assert words[:2] == ["-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={tmp_path}" in words
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in words
    assert (ROOT / "notebooks/00_start_here.ipynb").exists()
    assert "half a minute" in capsys.readouterr().out


def test_the_second_run_installs_nothing(course, capsys):
    course.main([])
    course.calls.clear()
    capsys.readouterr()
    course.main([])
    assert installs(course) == []
    assert capsys.readouterr().out == ""


def test_extras_add_up(course):
    course.main([])
    course.main(["test"])
    course.main(["test", "--parity"])
    course.main([])
    course.main(["test"])
    assert installs(course) == ["lab", "lab,test", "lab,parity,test"]


def test_a_changed_project_is_installed_again(course, tmp_path):
    course.main([])
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    course.main([])
    assert installs(course) == ["lab", "lab"]


def test_a_moved_project_is_installed_again(course, tmp_path, monkeypatch):
    course.main([])
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    again = load(moved, monkeypatch)
    again.main([])
    assert installs(again) == ["lab"]


def test_an_interrupted_installation_is_made_again(course, tmp_path):
    (tmp_path / ".venv" / "half").mkdir(parents=True)
    course.main([])
    assert installs(course) == ["lab"]
    assert not (tmp_path / ".venv" / "half").exists()


def test_a_python_that_is_gone_is_replaced(course, tmp_path, monkeypatch):
    course.main([])
    call = subprocess.call
    monkeypatch.setattr(
        subprocess, "call", lambda words, **options: 1 if words[1:] == ["-c", ""] else call(words, **options)
    )
    course.main([])
    assert installs(course) == ["lab", "lab"]


def test_a_failed_installation_is_one_line_and_tried_again(tmp_path, course, monkeypatch, capsys):
    broken = load(tmp_path, monkeypatch, pip_code=1, pip_output="Looking\nERROR: No matching distribution\nnotice\n")
    for _ in range(2):
        with pytest.raises(SystemExit, match="1"):
            broken.main([])
        error = one_line(capsys)
        assert "The installation failed: ERROR: No matching distribution" in error
        assert "Check your connection" in error
        assert "install.log" in error
    assert len(installs(broken)) == 2


def test_missing_venv_is_one_line(course, monkeypatch, capsys):
    real = builtins.__import__

    def without(name, *rest):
        if name == "ensurepip":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SystemExit, match="1"):
        course.main([])
    assert "sudo apt install python3-venv" in one_line(capsys)


def test_a_taken_port_is_one_line(course, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match="1"):
            course.main(["--port", str(port)])
    assert f"Port {port} is in use" in one_line(capsys)
    assert course.calls == []


def test_an_impossible_port_is_one_line(course, capsys):
    with pytest.raises(SystemExit, match="1"):
        course.main(["--port", "70000"])
    assert "Port 70000 does not exist" in one_line(capsys)


def test_a_free_port_and_other_options_reach_jupyterlab(course):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    course.main(["--no-browser", "--port", str(port), "--ip=0.0.0.0"])
    words = course.calls[-1]
    assert {"--no-browser", f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ip=0.0.0.0"} <= set(words)


def test_root_may_run_jupyterlab(course, monkeypatch):
    for user in (0, 1000):
        monkeypatch.setattr("os.geteuid", lambda user=user: user, raising=False)
        course.main([])
        assert ("--allow-root" in course.calls[-1]) == (user == 0)


def test_outside_its_folder_it_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "course.py").write_text(SOURCE, encoding="utf-8")
    with pytest.raises(SystemExit, match="1"):
        load(tmp_path, monkeypatch).main([])
    assert "pyproject.toml is not beside course.py" in one_line(capsys)


def test_unknown_commands_are_one_line(course, capsys):
    with pytest.raises(SystemExit, match="1"):
        course.main(["tset"])
    assert "no command 'tset'; there are: test, format, save" in one_line(capsys)


def test_tests_get_their_options_and_give_their_exit_code(course, tmp_path, monkeypatch):
    failing = load(tmp_path, monkeypatch, code=3)
    assert failing.main(["test", "--parity", "tests/test_ops.py", "-k", "softmax"]) == 3
    assert failing.calls[-1] == ["-m", "pytest", "tests/test_ops.py", "-k", "softmax"]


def test_format_and_save(course):
    course.main(["format"])
    assert course.calls[-2:] == [["-m", "ruff", "check", "--fix", "."], ["-m", "ruff", "format", "."]]
    course.main(["save", "notebooks/a.ipynb"])
    assert course.calls[-1] == ["-m", "lesson_utils.publish", "notebooks/a.ipynb"]


def test_commands_in_the_readme_exist():
    module = SimpleNamespace(**runpy.run_path(str(ROOT / "course.py")))
    words = re.findall(r"^python course\.py ?(\S*)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert len(words) >= 6
    assert {word for word in words if word} == set(module.COMMANDS)


def test_environment_for_binder_and_conda():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["dependencies"] == ["python=3.12", "pip", {"pip": ["-e .[lab]"]}]


def test_ci_calls_the_readmes_test_command_from_nothing():
    script = (ROOT / ".ci/run").read_text()
    assert subprocess.run(["bash", "-n", str(ROOT / ".ci/run")]).returncode == 0
    assert "rm -rf .venv\npython3 course.py test --parity\n" in script
