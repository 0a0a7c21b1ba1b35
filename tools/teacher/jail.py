"""Jails for strangers' code: what this system has to keep a process away from your files, processes and network.

A jail shows a process the course, the Python that runs it, one notebook, and an empty /tmp of 50 MB, and nothing else.
It has no network, and sees no process of yours. On Linux bubblewrap makes one, elsewhere docker or podman does. None is
believed: `find` tries to break out of each first, and takes one that holds.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = "/handed_in/notebook.ipynb"  # where a jail has it
IMAGE = "class-report"
MOST_MEGABYTES = 50  # in /tmp
COURSE = (ROOT / "lesson_utils", ROOT / "tools")
PACKAGES = Path(np.__file__).resolve().parents[1]
PYTHON = Path(os.path.realpath(sys.executable))
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store")

BREAK_OUT = """
import json, os, socket, sys
import lesson_utils.mistakes.judge
told, done = json.loads(sys.stdin.read()), []

def attempt(what, action):
    try:
        action()
    except OSError:
        return
    done.append(what)

attempt("read your files", lambda: open(told["secret"]).read())
attempt("write into your files", lambda: open(told["secret"], "a").close())
attempt("write into the course", lambda: open(lesson_utils.__file__, "a").close())
attempt("connect to a server of yours", lambda: socket.create_connection(("127.0.0.1", told["port"]), 5).close())
for kind, name in told["namespaces"].items():
    if os.readlink("/proc/self/ns/" + kind) == name:
        done.append("reach your " + {"pid": "processes", "net": "network", "mnt": "disks", "ipc": "memory"}[kind])
for name, value in os.environ.items():
    if told["environment"] in value:
        done.append("see your environment")
with open("/tmp/own", "w") as own:
    own.write("there is room for a file of its own")
print(json.dumps({"held": told["key"], "done": done}))
"""

ENVIRONMENT = {"COURSE_PROGRESS": "off", "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
ENVIRONMENT |= {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}


class Jail(NamedTuple):
    """A way to start Python where it can do no harm: by the program "bubblewrap", "docker" or "podman"."""

    name: str

    def run(self, words: list[str], notebook: Path, megabytes: int = 2000, seconds: float = 60) -> list[str]:
        """Return the command that runs Python with these words, in a jail that holds this notebook."""
        environment = dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR"), "/tmp") | ENVIRONMENT
        if self.name == "bubblewrap":
            return bubblewrap(words, notebook, environment)
        limits = [f"--memory={megabytes}m", f"--memory-swap={megabytes}m", "--pids-limit=8"]
        start = [self.name, "run", *limits, *container(notebook, environment)]
        return [*start, "timeout", "--signal=KILL", f"{seconds:.0f}", "python", *words]


def bubblewrap(words: list[str], notebook: Path, environment: dict[str, str]) -> list[str]:
    """Return a command for bubblewrap: Linux, no rights needed. Memory and time are limited by the worker itself."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    command += ["--size", str(MOST_MEGABYTES * 10**6), "--tmpfs", "/tmp"]  # first: the course may lie within it
    for place in SYSTEM:
        if os.path.islink(place):
            command += ["--symlink", os.readlink(place), place]
        elif os.path.exists(place):
            command += ["--ro-bind", place, place]
    for path in _shown():
        command += ["--ro-bind", str(path), str(path)]
    command += ["--ro-bind", str(notebook), NOTEBOOK, "--proc", "/proc", "--dev", "/dev"]
    command += ["--chdir", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in (environment | {"PYTHONPATH": f"{ROOT}{os.pathsep}{PACKAGES}"}).items():
        command += ["--setenv", name, value]
    return [*command, "--", str(PYTHON), *words]


def container(notebook: Path, environment: dict[str, str]) -> list[str]:
    """Return the options of docker and podman, which run on every system: an image holds Python and NumPy."""
    volumes = {path: f"/course/{path.name}" for path in COURSE} | {notebook: NOTEBOOK}
    return [
        *("--rm", "--interactive", "--network=none", "--read-only", "--cap-drop=ALL", "--user=65534:65534"),
        *("--security-opt=no-new-privileges", f"--tmpfs=/tmp:size={MOST_MEGABYTES}m,mode=1777", "--workdir=/tmp"),
        *(f"--volume={path}:{place}:ro" for path, place in volumes.items()),
        *(f"--env={name}={value}" for name, value in (environment | {"PYTHONPATH": "/course"}).items()),
        *("--pull=never", IMAGE),  # or a stranger's image of this name could be taken for ours
    ]


def _shown() -> Iterable[Path]:
    """Yield the folders of the course, of its Python and its packages that are not in the system's own."""
    seen = [Path(place) for place in SYSTEM]
    for path in (Path(os.path.realpath(sys.base_prefix)), PACKAGES, *COURSE):
        if not any(path.is_relative_to(place) for place in seen):
            seen.append(path)
            yield path


def known() -> list[Jail]:
    """Return the jails whose programs are installed here, the lightest first."""
    programs = {"bubblewrap": "bwrap", "docker": "docker", "podman": "podman"}
    return [Jail(name) for name, program in programs.items() if shutil.which(program)]


def find(tell: Callable[[str], None] = print) -> tuple[Jail | None, list[str]]:
    """Return the first jail that holds, or None; and what was wrong with those before it."""
    problems: list[str] = []
    for jail in known():
        made = "" if jail.name == "bubblewrap" else image(jail.name, tell)
        problem = made or broken(jail)
        if not problem:
            return jail, problems
        problems.append(f"{jail.name}: {problem}")
    return None, problems


def broken(jail: Jail) -> str:
    """Try to break out of a jail, and return what is wrong with it, or ""."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret, notebook, key = Path(folder, "secret"), Path(folder, "notebook.ipynb"), os.urandom(16).hex()
        secret.write_text(key)
        notebook.write_text("{}")
        told = {"secret": str(secret), "port": server.getsockname()[1], "key": key}
        told |= {"namespaces": namespaces(), "environment": key}
        command = jail.run(["-P", "-c", BREAK_OUT], notebook)
        environment = clean() | {"TEACHERS_SECRET": key}
        try:
            done = subprocess.run(
                command, input=json.dumps(told), capture_output=True, text=True, timeout=120, env=environment
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"it does not start ({type(error).__name__})"
    with suppress(ValueError, TypeError, KeyError, IndexError):
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        if answer["held"] == key:
            return f"what runs inside it can {', '.join(answer['done'])}" if answer["done"] else ""
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
    return f"it does not run here ({said[-1][:200]})"


def namespaces() -> dict[str, str]:
    """Return this process's own processes, network, disks and memory, as Linux numbers them; elsewhere nothing."""
    try:
        return {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "net", "mnt", "ipc")}
    except OSError:
        return {}


def clean() -> dict[str, str]:
    """Return what of the environment a program needs to start, and no more."""
    usual = ("PATH", "SYSTEMROOT", "LANG", "XDG_RUNTIME_DIR", "DOCKER_HOST", "HOME")
    return {name: os.environ[name] for name in usual if name in os.environ}


def image(program: str, tell: Callable[[str], None]) -> str:
    """Make the image if it is not there, and return what went wrong, or ""."""

    def fails(*words: str, seconds: float = 60) -> bool:
        return subprocess.run([program, *words], capture_output=True, timeout=seconds).returncode != 0

    recipe = str(ROOT / "tools/teacher/Dockerfile")
    try:
        if fails("info"):
            return "it is installed and does not run"
        if fails("image", "inspect", IMAGE):
            tell(f"Making the image {IMAGE} with {program}, once. This downloads Python and NumPy ...")
            if fails("build", "--tag", IMAGE, "--file", recipe, str(ROOT), seconds=1800):
                return f"it could not build {recipe}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not answer ({type(error).__name__})"
    return ""
