"""Environments of their own, for tests on the platforms that people use: `python course.py test tests/platforms`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Environment:
    """A fresh virtual environment."""

    def __init__(self, folder):
        self.folder = folder
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)

    def run(self, *words, cwd=None, **variables):
        """Run this environment's Python, and nothing of the one that runs the tests; returns what it printed."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        clean["PATH"] = f"{self.python.parent}{os.pathsep}{clean['PATH']}"
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run([self.python, *words], cwd=cwd or self.folder, env=clean | variables, **streams)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def install(self, *requirements):
        self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)

    def versions(self, *names):
        code = "import sys, importlib.metadata as m; print(*(m.version(name) for name in sys.argv[1:]))"
        return dict(zip(names, self.run("-c", code, *names).split(), strict=True))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The course as a git repository that pip can install from, as it stands in the last commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("the course is not in a git repository; clone it to run this test")
    if (ROOT / ".git/shallow").exists():
        pytest.skip("the course is a shallow clone, from which pip will not clone again; git fetch --unshallow")
    bare = tmp_path_factory.mktemp("git") / "course.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, bare], check=True)
    return bare.as_uri()
