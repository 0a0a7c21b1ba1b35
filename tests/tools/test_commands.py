"""`python -m tools`: the commands for maintainers and teachers."""

import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from threading import Thread

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


@pytest.mark.parametrize(("codes", "code"), [([0, 0], 0), ([1, 0], 1), ([0, 1], 1)])
def test_format_mends_formats_and_fails_if_a_problem_is_left(codes, code, monkeypatch):
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command[2:]) or codes[len(calls) - 1])
    assert tools.main(["format", "tests"]) == code
    assert calls == [["ruff", "check", "--fix", "tests"], ["ruff", "format", "tests"]]


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
def test_the_address_is_read_from_the_origin_of_this_folder_and_of_none_around_it(url, address, tmp_path, monkeypatch):
    """Git is not on every machine that has the course, so its answer is given here."""
    asked = []
    monkeypatch.setattr(subprocess, "check_output", lambda command, **_: asked.append(command) or f"{url}\n")
    (tmp_path / ".git").mkdir()
    assert tools.origin(tmp_path) == address
    assert asked == [["git", "remote", "get-url", "origin"]]
    (tmp_path / "course").mkdir()
    assert tools.origin(tmp_path / "course") is None


def test_the_address_is_written_from_the_origin_or_as_named(monkeypatch, capsys):
    written = []
    monkeypatch.setattr("tools.save.write_address", lambda address: written.append(address) or 3)
    monkeypatch.setattr(tools, "origin", lambda folder: "ada/cloned")
    tools.main(["address", "ada/course"])
    tools.main(["address"])
    assert written == ["ada/course", "ada/cloned"]
    assert capsys.readouterr().out == "ada/course: 3 files changed.\nada/cloned: 3 files changed.\n"
    monkeypatch.setattr(tools, "origin", lambda folder: None)
    with pytest.raises(SystemExit, match=r"Name the repository: python course.py address OWNER/REPO"):
        tools.main(["address"])


def test_serve_shows_what_was_built(tmp_path, monkeypatch, capsys):
    def look(server):
        url = re.search(r"http://127\.0\.0\.1:\d+/", capsys.readouterr().out)[0]
        Thread(target=server.handle_request, daemon=True).start()
        pages.append(urllib.request.urlopen(url).read())

    pages = []
    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", look)
    monkeypatch.setattr(tools, "SITE", tmp_path)
    with pytest.raises(SystemExit, match=r"no site to serve yet. Build it first: python course.py site"):
        tools.main(["serve"])
    (tmp_path / "index.html").write_bytes(b"the book")
    assert tools.main(["serve"]) is None
    assert pages == [b"the book"]
    with pytest.raises(SystemExit, match=r"Port 70000 can't be used .* a free one is found"):
        tools.main(["serve", "--port", "70000"])
