"""The memory that a learner takes, to choose a machine for a class.

USS is what a process has for itself. What it shares with others of its kind (the code of libraries, mostly) is there
once, however many learners there are; RSS counts it for each.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def run(names: Sequence[str] = ()) -> None:
    """Print a line for each notebook whose name begins so, and one for the server beside each learner's kernel."""
    import nbformat
    import psutil

    from tools.browser import driver

    print("memory of a kernel, USS (RSS), in MB")
    print(f"  {'':24}{'at rest':>13}{'set up':>13}{'after Run All':>15}{'highest RSS':>13}")
    largest = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and not path.stem.startswith(tuple(names)):
            continue
        sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        (rest, set_up, after), peak = _kernel(sources)
        print(f"  {path.stem:24}{rest:>13}{set_up:>13}{after:>15}{peak:13.0f}", flush=True)
        largest.append(peak)
    print(f"  whatever a learner opens: at most {max(largest):.0f} each")
    with driver.server(NOTEBOOKS):
        print(f"JupyterLab's server, one for each learner: {_memory(psutil.Process().children()[0])}")


def _kernel(sources: list[str]) -> tuple[list[str], float]:
    """Run these cells in a fresh kernel; return its memory at rest, after the first and the last cell, and its peak."""
    import psutil
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(NOTEBOOKS))
    try:
        process = psutil.Process(manager.provisioner.pid)  # type: ignore[union-attr]
        found = [_memory(process)]
        for n, source in enumerate(sources):
            reply: Any = client.execute_interactive(source, output_hook=lambda message: None, timeout=600)
            if reply["content"]["status"] != "ok":
                raise RuntimeError(f"{reply['content']['ename']}: {reply['content']['evalue']}, in the cell:\n{source}")
            if n == 0:
                found.append(_memory(process))
        return [*found, _memory(process)], highest(process)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _memory(process: Any) -> str:
    memory = process.memory_full_info()
    return f"{memory.uss / 1e6:.0f} ({memory.rss / 1e6:.0f})"


def highest(process: Any) -> float:
    """Return the highest RSS that a process had, in MB; elsewhere than on Linux, the RSS that it has now."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return float(process.memory_info().rss / 1e6)
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
