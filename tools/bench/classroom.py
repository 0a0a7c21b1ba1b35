"""What a class costs: a real JupyterHub on this machine, and students who all do the same at the same time.

They log in, their servers start, they open a notebook, run all of it, and move sliders, in groups: each student a step
every 0.3 s. The students are threads of this process, without browsers. Memory is PSS: what processes share is shared
out among them, so that a sum is what the machine has given. Where there is no PSS, which is Linux's, it is RSS.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import psutil

from tools.bench import trial
from tools.bench.hub import jupyterhub
from tools.bench.memory import highest
from tools.bench.student import Student

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FIGURES, STEPS = 3, 12  # that a student moves, and how often: about ten seconds


def run(students: int = 30, moving: int = 10, notebook: str = "02_scaled_attention") -> None:
    """Print what each part of the lesson takes.

    Args:
        students: all of them log in, start and run all at once.
        moving: how many move sliders at once.
    """
    if trial.on():
        students, moving, notebook = 2, 2, "00_start_here"
    class_ = Class(students, moving, notebook)
    try:
        class_.hold()
    finally:
        for failure in class_.failures:
            print(f"  FAILED: {failure}")
    if class_.failures:
        sys.exit(f"{len(class_.failures)} of {students} students could not go on")


class Class:
    def __init__(self, students: int, moving: int, notebook: str):
        self.names = [f"student{n:02}" for n in range(1, students + 1)]
        self.moving, self.notebook = moving, f"{notebook}.ipynb"
        self.failures: list[str] = []

    def hold(self) -> None:
        cores, load = os.cpu_count(), psutil.getloadavg()[0]
        print(f"{len(self.names)} students, {self.notebook}, {cores} cores (load before: {load:.1f})", flush=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for name in self.names:
                home = Path(folder, "homes", name)
                home.mkdir(parents=True)
                shutil.copy(NOTEBOOKS / self.notebook, home)
            with jupyterhub(Path(folder)) as (address, self.hub):
                self._lesson([Student(name, address) for name in self.names])

    def _lesson(self, class_: list[Student]) -> None:
        with self._part("log in, server started"):
            class_, taken = self._all(Student.start, class_)
        _say(taken)
        self._memory("servers")
        with self._part("notebook and kernel opened"):
            class_, taken = self._all(lambda student: student.open(self.notebook), class_)
        _say(taken)
        with self._part("run all"):
            class_, taken = self._all(Student.run_all, class_)
        _say(taken)
        with self._part("nobody does anything"):
            time.sleep(1 if trial.on() else 10)
        print()
        answers: list[float] = []
        with self._part(f"sliders, {self.moving} at once"):
            for first in range(0, len(class_), self.moving):
                group = class_[first : first + self.moving]

                def drag(student: Student) -> None:
                    which = self.names.index(student.name)  # so that different figures are moved at the same time
                    answers.extend(student.drag(1 if trial.on() else FIGURES, STEPS, first=which))

                self._all(drag, group)
        _say(answers)
        late = sum(answer > 0.5 for answer in answers)
        print(f"    {len(answers)} steps; {late} took longer than 0.5 s, the longest {max(answers, default=0):.2f} s")
        self._memory("after all")
        print(f"  failures: {len(self.failures)}", flush=True)

    @contextmanager
    def _part(self, what: str) -> Iterator[None]:
        """Print how long a part of the lesson took, and how much of the processors."""
        start, before = time.perf_counter(), self._processor_seconds()
        yield
        wall, used = time.perf_counter() - start, self._processor_seconds() - before
        each = used / len(self.names)
        print(f"  {what}: {wall:.0f} s, {used / wall:.2f} cores, {each:.1f} s of a core a student", end="", flush=True)

    def _all(self, do: Callable[[Student], Any], class_: list[Student]) -> tuple[list[Student], list[float]]:
        """Have all of them do this at once; those who could, and the seconds that each took."""

        def timed(student: Student) -> float | None:
            start = time.perf_counter()
            try:
                do(student)
            except Exception as error:  # of whatever kind: the others go on
                self.failures.append(f"{student.name}: {error!r}")
                return None
            return time.perf_counter() - start

        with ThreadPoolExecutor(len(class_) or 1) as pool:
            taken = list(pool.map(timed, class_))
        able = [student for student, seconds in zip(class_, taken, strict=True) if seconds is not None]
        return able, [seconds for seconds in taken if seconds is not None]

    def _processes(self) -> dict[str, list[psutil.Process]]:
        """The hub's processes by what they are."""
        found: dict[str, list[psutil.Process]] = {"hub": [self.hub], "proxy": [], "server": [], "kernel": []}
        for process in self.hub.children(recursive=True):
            with suppress(psutil.Error):
                words = " ".join(process.cmdline())
                marks = {"proxy": "configurable-http-proxy", "kernel": "ipykernel", "server": "singleuser"}
                for kind, mark in marks.items():
                    if mark in words:
                        found[kind].append(process)
                        break
        return found

    def _processor_seconds(self) -> float:
        total = 0.0
        for process in (process for some in self._processes().values() for process in some):
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def _memory(self, when: str) -> None:
        total, parts = 0.0, []
        for kind, processes in self._processes().items():
            measured = []
            for process in processes:
                with suppress(psutil.Error, IndexError):  # one that has ended is counted as a failure elsewhere
                    memory = process.memory_full_info()
                    measured.append((getattr(memory, "pss", memory.rss) / 1e6, memory.uss / 1e6, highest(process)))
            if measured:
                share, own, most = zip(*measured, strict=True)
                total += sum(share)
                each = f"{kind} {mean(share):.0f} (USS {mean(own):.0f}, RSS up to {max(most):.0f})"
                parts.append(each if len(measured) == 1 else f"{len(measured)} × {each}")
        print(f"  memory, {when}: {total / 1000:.2f} GB, in MB {', '.join(parts)}", flush=True)


def _say(seconds: list[float]) -> None:
    if len(seconds) > 1:
        cuts = quantiles(seconds, n=100, method="inclusive")
        print(f"; each p50 {cuts[49]:.2f} s, p95 {cuts[94]:.2f} s", flush=True)
    else:
        print()
