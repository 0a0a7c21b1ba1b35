"""What importing all of lesson_utils adds to what notebooks import anyway."""

import pkgutil
import subprocess
import sys
from statistics import median

import lesson_utils


def run(rounds: int = 15) -> None:
    ours = ", ".join(m.name for m in pkgutil.walk_packages(lesson_utils.__path__, "lesson_utils."))
    print(f"import: median of {rounds} fresh processes each, in turns")
    for base in ("numpy, matplotlib, ipywidgets", "numpy, matplotlib.pyplot, ipywidgets"):
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for modules, into in zip((base, f"{base}, {ours}"), times, strict=True):
                into.append(_import_seconds(modules))
        alone, together = map(median, times)
        print(f"  {base:37} {alone * 1e3:4.0f} ms; with all of lesson_utils {together * 1e3:4.0f} ms", end="")
        print(f"  {together / alone:.2f}×")


def _import_seconds(modules: str) -> float:
    code = f"import time; start = time.perf_counter(); import {modules}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
