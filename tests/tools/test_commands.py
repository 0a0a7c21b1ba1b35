"""`python -m tools`: the commands for maintainers and teachers."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import __main__ as tools

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def argv(monkeypatch):
    """Put back what `main` writes into `sys.argv`."""
    monkeypatch.setattr(sys, "argv", [])


def test_course_can_read_the_commands_before_anything_is_installed():
    words = [sys.executable, "-S", "-c", "from tools.__main__ import COMMANDS; print(*COMMANDS)"]
    assert subprocess.check_output(words, cwd=ROOT, text=True).split() == list(tools.COMMANDS)


@pytest.mark.parametrize("name", tools.COMMANDS)
def test_each_command_names_extras_that_exist_and_says_what_it_takes(name, capsys):
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    assert set(tools.COMMANDS[name].extras) <= {"lab", *groups}
    with pytest.raises(SystemExit, match="0"):
        tools.main([name, "--help"])
    assert re.match(rf"usage: .*\b{name} \[", capsys.readouterr().out)


def test_a_terminal_that_knows_ascii_only_a_locale_that_is_none_and_no_home():
    """GitHub's workflow runs all fast tests in each of these places weekly."""
    places = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "HOME": "/nonexistent", "TZ": "Asia/Kabul"}
    command = [sys.executable, "-m", "tools", "edition", "--help"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | places, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "(default: editions/student, or ?/solution)" in " ".join(done.stdout.decode("ascii").split())


def test_without_a_command_all_are_listed_and_an_unknown_one_is_one_line(capsys):
    assert tools.main([]) == tools.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n    {name} " in out for name in tools.COMMANDS)
    with pytest.raises(SystemExit, match=r"^There is no command 'sve'\. There are edition, report, .*serve\.$"):
        tools.main(["sve"])


def test_format_mends_formats_and_fails_if_a_problem_is_left(tmp_path):
    pytest.importorskip("ruff", reason="install it with: python course.py format")
    code = tmp_path / "code.py"
    code.write_text("import os\nx = { }\n")
    assert tools.main(["format", str(code)]) == 0
    assert code.read_text() == "x = {}\n"
    code.write_text("x = { }\nprint(y)\n")
    assert tools.main(["format", str(code)]) == 1
    assert code.read_text() == "x = {}\nprint(y)\n"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_the_address_is_read_from_the_origin_of_this_folder_and_of_none_around_it(tmp_path):
    git = ["git", "-C", str(tmp_path)]
    subprocess.check_call([*git, "init", "--quiet"])
    assert tools.origin(tmp_path) is None
    for url, address in {
        "https://github.com/ada/attention-course.git": "ada/attention-course",
        "https://ada:secret@github.com/ada/attention.course/": "ada/attention.course",
        "git@github.com:ada/course.git": "ada/course",
        "ssh://git@github.com/ada/course": "ada/course",
        "https://gitlab.com/ada/course": None,
        "/home/ada/github.com/ada/course": None,
    }.items():
        subprocess.check_call([*git, "config", "remote.origin.url", url])
        assert tools.origin(tmp_path) == address
    subprocess.check_call([*git, "config", "remote.origin.url", "https://github.com/ada/around"])
    (tmp_path / "course").mkdir()
    assert tools.origin(tmp_path / "course") is None
