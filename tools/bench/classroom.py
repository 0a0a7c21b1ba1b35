"""A class on a real JupyterHub on this machine, in which all students do the same at the same time.

They log in, run a notebook, and move its sliders, in groups. Students are threads of this process, without browsers.
Memory is PSS, which divides among processes what they share, so that a sum is what the machine has given. Only Linux
knows PSS; elsewhere it is RSS.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import mean, quantiles
from typing import Any

import psutil
import requests

from tools.bench.memory import highest
from tools.bench.student import Student

ROOT = Path(__file__).resolve().parents[2]
PROXY = "configurable-http-proxy@4.6.3"  # the last that runs with every Node.js that Debian and Ubuntu have
OPTIONS = {
    "JupyterHub.authenticator_class": "dummy",  # any name, no password
    "Authenticator.allow_all": True,
    "JupyterHub.spawner_class": "simple",  # a process a student; they need no accounts on this machine
    # By sockets that are files: thirty kernels that start at once may choose the same port, and then one of them dies.
    "Spawner.args": ["--allow-root", "--KernelManager.transport=ipc"],
    "Spawner.default_url": "/lab",
    "Spawner.start_timeout": 600,  # thirty start at once; the usual minute is for one
    "Spawner.http_timeout": 600,
    "Spawner.environment": f"COURSE_TRAIN={os.environ.get('COURSE_TRAIN', '')}",
    "JupyterHub.log_level": "WARN",
}


def run(students: int = 30, moving: int = 10, notebook: str = "02_scaled_attention", minutes: float = 0) -> None:
    """Print what each part of the lesson takes.

    Args:
        students: how many log in and run the notebook, all at once.
        moving: how many move sliders at once.
        minutes: for how long all of them then use their figures, each in a rhythm of its own; memory must stay flat.
    """
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    print(f"{students} students, {notebook}, {os.cpu_count()} cores (load before: {psutil.getloadavg()[0]:.1f})")
    with jupyterhub() as (address, hub):
        present = [Student(number, address) for number in range(students)]
        with measured("log in, server started", hub):
            present = all_do(Student.log_in, present)
        if again := sum(student.starts - 1 for student in present):
            print(f"  servers that had to be started again: {again}")
        print_memory("servers", hub)
        with measured("run all", hub):
            present = all_do(lambda student: student.run_all(sources), present)
        with measured("nobody does anything", hub):
            time.sleep(10)
        able = []
        with measured(f"sliders, {moving} at once", hub):
            for first in range(0, students, moving):
                able += all_do(lambda student: student.drag(figures=3, steps=12), present[first : first + moving])
        print_memory("after all", hub)
        part = min(minutes, 10)
        for lasted in range(0, round(minutes), round(part) or 1):
            print_steps(able)
            for student in able:
                student.answers.clear()
            with measured(f"used as one likes, from minute {lasted}", hub):
                able = all_do(lambda student: use(student, part), able)
            print_memory(f"after minute {lasted + round(part)}", hub)
    print_steps(able)
    if len(able) < students:
        sys.exit(f"{students - len(able)} of {students} students could not go on")


def use(student: Student, minutes: float) -> None:
    """Drag a figure, think, drag another."""
    random, end = Random(student.number), time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        student.drag(1, random.randint(4, 24), first=random.randrange(100))
        time.sleep(random.uniform(0, 20))


def print_steps(students: list[Student]) -> None:
    """Print how long the steps of their sliders took."""
    answers = [seconds for student in students for seconds in student.answers]
    if answers:
        cuts = quantiles(answers, n=100, method="inclusive")
        print(f"  {len(answers)} steps: p50 {cuts[49]:.2f} s, p95 {cuts[94]:.2f} s, the longest {max(answers):.2f} s")


def all_do(do: Callable[[Student], Any], students: list[Student]) -> list[Student]:
    """Let all students do the same at once, and return those who could; print why the others could not."""
    with ThreadPoolExecutor(len(students) or 1) as pool:
        tried = [(student, pool.submit(do, student)) for student in students]
    for student, result in tried:
        if error := result.exception():
            print(f"  FAILED: {student.name}: {error!r}")
    return [student for student, result in tried if not result.exception()]


@contextmanager
def measured(what: str, hub: psutil.Process) -> Iterator[None]:
    """Print how long a part of the lesson takes, and how much of the processors."""
    start, before = time.perf_counter(), processor_seconds(hub)
    yield
    wall = time.perf_counter() - start
    print(f"  {what}: {wall:.0f} s, {(processor_seconds(hub) - before) / wall:.2f} cores", flush=True)


def processor_seconds(hub: psutil.Process) -> float:
    """Return the processor time that the hub and all processes below it have taken."""
    total = 0.0
    for process in [hub, *hub.children(recursive=True)]:
        with suppress(psutil.Error):  # it has ended
            total += sum(process.cpu_times()[:2])
    return total


def print_memory(when: str, hub: psutil.Process) -> None:
    """Print the memory of the hub, its proxy, the servers and the kernels."""
    marks = {"proxy": "configurable-http-proxy", "kernel": "ipykernel", "server": "singleuser", "hub": "jupyterhub"}
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in marks}
    for process in [hub, *hub.children(recursive=True)]:
        with suppress(psutil.Error, IndexError, StopIteration):  # it has ended, or is none of these
            words, memory = " ".join(process.cmdline()), process.memory_full_info()
            kind = next(kind for kind, mark in marks.items() if mark in words)
            found[kind].append((getattr(memory, "pss", memory.rss) / 1e6, highest(process)))
    print(f"  memory, {when}: {sum(pss for several in found.values() for pss, _ in several) / 1000:.2f} GB")
    for kind, several in found.items():
        if several:
            pss, rss = zip(*several, strict=True)
            print(f"    {len(several):2} × {kind:6} {mean(pss):4.0f} MB (RSS up to {max(rss):.0f})")


@contextmanager
def jupyterhub() -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of a new JupyterHub, and its process."""
    path = os.pathsep.join([str(Path(sys.executable).parent), str(proxy_folder()), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    from jupyterhub.utils import random_port  # here: the tests of this module need no hub

    address, inner, api = (f"http://127.0.0.1:{random_port()}" for _ in range(3))
    places = {"JupyterHub.bind_url": address, "JupyterHub.hub_bind_url": inner, "ConfigurableHTTPProxy.api_url": api}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = OPTIONS | places | {"SimpleLocalProcessSpawner.home_dir_template": f"{folder}/{{username}}"}
        words = [sys.executable, "-m", "jupyterhub"]
        for name, value in options.items():
            words += [f"--{name}={one}" for one in (value if isinstance(value, list) else [value])]
        log = Path(folder, "log.txt")
        with (
            log.open("w") as out,
            subprocess.Popen(words, cwd=folder, env=environment, stdout=out, stderr=out) as process,
        ):
            hub = psutil.Process(process.pid)
            try:
                while not is_up(address):
                    if process.poll() is not None:
                        raise RuntimeError("JupyterHub did not start:\n" + log.read_text(errors="replace")[-2000:])
                    time.sleep(0.2)
                yield address, hub
            finally:
                everything = [*hub.children(recursive=True), hub]
                process.terminate()  # it ends the servers, they their kernels
                for left in psutil.wait_procs(everything, timeout=30)[1]:
                    left.kill()


def proxy_folder() -> Path:
    """Return the folder with the program of JupyterHub's proxy; npm installs it beside this Python first."""
    modules = Path(sys.prefix, "share", "proxy", "node_modules")
    if not (modules / ".bin" / "configurable-http-proxy").exists():
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(modules.parent), PROXY]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return modules / ".bin"


def is_up(address: str) -> bool:
    """Return whether the hub answers; before it is ready, its proxy says that there is no such page."""
    with suppress(requests.ConnectionError):
        return requests.get(f"{address}/hub/login").ok
    return False
