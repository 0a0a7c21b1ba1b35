"""The newest Python with the newest versions of everything: README's two commands, in a Debian of today."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

pytestmark = [pytest.mark.long_form, pytest.mark.own_job]
NEWEST = "3.15"
PACKAGES = ("ca-certificates", f"python{NEWEST}", f"python{NEWEST}-venv")
SETTINGS = ("/etc/hosts", "/etc/resolv.conf", "/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
# The mounts are this process's own, and end with it: nothing that empties the folder can reach what they show.
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /bin/bash -euc "$1"'


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """A function that runs a command in that Debian, in a clone of the course."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a Debian of its own can be made on Linux, by root; sudo -E python course.py test tests/platforms")
    if not shutil.which("mmdebstrap"):
        pytest.skip("mmdebstrap is missing; install it (Debian: apt install mmdebstrap)")
    folder = tmp_path_factory.mktemp("debian") / "unstable"
    options = ["--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}", "--quiet"]
    options += ['--aptopt=Acquire::Check-Valid-Until "false"']  # a mirror may be a snapshot
    subprocess.run(["mmdebstrap", *options, "unstable", folder], check=True)

    home = Path.home()
    for path in map(Path, map(os.path.expanduser, SETTINGS)):
        if path.exists():
            copy(path, folder / (Path("root") / path.relative_to(home) if home in path.parents else str(path)[1:]))
    for path in {os.environ.get("SSL_CERT_FILE", ""), "/etc/ssl/certs/ca-certificates.crt"}:
        if os.path.exists(path):
            copy(Path(path), folder / path.lstrip("/"))
    (folder / "usr/local/bin/python").symlink_to(f"/usr/bin/python{NEWEST}")
    subprocess.run(["git", "clone", "--quiet", ROOT, folder / "root/attention-course"], check=True)

    ours = ("PYTHON", "PYTEST", "VIRTUAL_ENV")
    variables = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    variables |= {"HOME": "/root", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": "/tmp"}

    def run(command):
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, folder]
        words.append(f"cd /root/attention-course; {command}")
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(words, env=variables, **streams)
        assert done.returncode == 0, done.stdout
        return done.stdout

    yield run
    shutil.rmtree(folder)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def test_the_commands_of_the_readme(debian):
    """The second in its short form: GitHub's workflow runs all tests with this Python."""
    assert debian("python --version").startswith(f"Python {NEWEST}.")
    said = debian(".ci/readme --fast")
    print(said.splitlines()[-1])
    assert "README's first command opens the first notebook" in said


def test_types_with_the_newest_stubs(debian):
    assert "1 passed" in debian("python course.py test --style tests/test_style.py -k mypy")
