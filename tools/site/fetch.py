"""Downloads for the site. Each is fetched once, and compared with the hash that was published for its version."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from lesson_utils.classroom.files import put

DOWNLOADS = Path(__file__).resolve().parents[2] / "docs" / "_build" / "downloads"


class Failed(Exception):
    """An error after which the site can't be built; the message says why, and what to do."""


class Unreachable(Failed):
    """An error for a download that cannot be reached from here, or not now."""


def from_npm(name: str, version: str, integrity: str) -> Path:
    """Return the archive of a package without a scope. `npm view NAME@VERSION dist.integrity` prints its hash."""
    npm = shutil.which("npm") or ""
    if not npm and not (DOWNLOADS / f"{name}-{version}.tgz").exists():
        raise Unreachable(f"npm is needed to fetch {name}. Install Node.js (Debian: apt install npm).")
    command = [npm, "pack", f"{name}@{version}", "--loglevel=error", "--pack-destination"]
    return checked(_by_client(command, f"{name}-{version}.tgz", f"npm could not fetch {name} {version}"), integrity)


def from_pypi(requirement: str, digest: str) -> Path:
    """Return the wheel of a requirement, NAME==VERSION."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    return checked(_by_client([*pip, requirement, "-d"], pattern, f"pip could not fetch {requirement}"), digest)


def _by_client(command: list[str], pattern: str, problem: str) -> Path:
    """Return the file that a program puts into the folder behind its last word."""
    if not list(DOWNLOADS.glob(pattern)):
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=DOWNLOADS) as beside:  # moved when it is whole
            run([*command, beside], problem, Unreachable)
            for file in Path(beside).glob(pattern):
                os.replace(file, DOWNLOADS / file.name)
    return next(DOWNLOADS.glob(pattern))


def from_web(address: str, digest: str) -> Path:
    """Return the file at this address."""
    file = DOWNLOADS / address.rpartition("/")[2]
    if not file.exists():
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            raise Unreachable(
                f"{address} could not be fetched ({error}). Check your connection; --no-lite leaves out JupyterLite."
            ) from error
        put(file, content)
    return checked(file, digest)


def checked(file: Path, expected: str) -> Path:
    """Return the same file; fail unless its hash is the expected one, SHA-256 in hex or SHA-512 as npm writes it."""
    content = file.read_bytes()
    as_npm = f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"
    if expected not in (hashlib.sha256(content).hexdigest(), as_npm):
        raise Failed(f"{file} is not the file that was published. Delete it, and try again.")
    return file


def run(command: list[str], problem: str, error: type[Failed]) -> None:
    """Run a program; raise `error` with the program's last line if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()] or ["it said nothing"]
        raise error(f"{problem} ({said[-1]}). Check your connection, and try again.")
