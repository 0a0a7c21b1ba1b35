"""A JupyterHub on this machine: anybody may log in, and everybody's server is a process here. For the bench only."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
PROXY = "configurable-http-proxy@4.6.3"  # the last that runs with every Node.js that Debian and Ubuntu have
CONFIG = """
c.JupyterHub.authenticator_class = "dummy"  # any name, no password
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"  # a process a student; they need no accounts on this machine
c.SimpleLocalProcessSpawner.home_dir_template = homes + "/{username}"
c.Spawner.cmd = [python, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = "/lab"
c.Spawner.environment = environment
c.Spawner.start_timeout = c.Spawner.http_timeout = 600  # thirty start at once; the usual minute is for one
c.JupyterHub.bind_url, c.JupyterHub.hub_bind_url, c.ConfigurableHTTPProxy.api_url = addresses
c.ConfigurableHTTPProxy.command = [proxy]
c.JupyterHub.log_level = "WARN"
"""


@contextmanager
def jupyterhub(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Its address, and its process, whose children are the proxy and the students' servers.

    A student's home is `folder / "homes" / name`.

    Raises:
        RuntimeError: its parts are not installed, or it does not start.
    """
    addresses = [f"http://127.0.0.1:{port}" for port in _free_ports(3)]
    given = {
        "addresses": addresses,
        "environment": {"PYTHONPATH": str(ROOT)} | {k: v for k, v in os.environ.items() if k == "COURSE_TRAIN"},
        "homes": str(folder / "homes"),
        "proxy": proxy(),
        "python": sys.executable,
    }
    config = folder / "jupyterhub_config.py"
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()) + CONFIG)
    log = folder / "log.txt"
    command = [sys.executable, "-m", "jupyterhub", f"--config={config}"]
    with log.open("wb") as out, subprocess.Popen(command, cwd=folder, stdout=out, stderr=out) as process:
        hub = psutil.Process(process.pid)
        try:
            _wait(process, addresses[0] + "/hub/login", log)
            yield addresses[0], hub
        finally:
            everything = [*hub.children(recursive=True), hub]
            process.terminate()  # it ends the servers, they their kernels
            for left in psutil.wait_procs(everything, timeout=30)[1]:
                with suppress(psutil.NoSuchProcess):
                    left.kill()


def proxy() -> str:
    """The command of JupyterHub's proxy, which is Node.js's; npm fetches it once, into the environment of this Python.

    Raises:
        RuntimeError: it cannot be fetched.
    """
    folder = Path(sys.prefix, "share", "proxy")
    command = folder / "node_modules" / ".bin" / "configurable-http-proxy"
    if not command.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("npm is needed to fetch JupyterHub's proxy. Install Node.js (Debian: apt install npm).")
        words = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder), PROXY]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"npm could not fetch {PROXY}:\n{done.stdout[-1000:]}")
    return str(command)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]  # together: no port twice
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait(process: "subprocess.Popen[bytes]", address: str, log: Path, seconds: float = 600) -> None:
    give_up = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < give_up:
        with suppress(OSError):  # nobody listens yet, or the proxy knows of no hub
            urllib.request.urlopen(address, timeout=10).close()
            return
        time.sleep(0.2)
    raise RuntimeError("JupyterHub did not start:\n" + log.read_text(errors="replace")[-2000:])
