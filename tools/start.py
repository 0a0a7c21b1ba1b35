"""Checks and says what comes before JupyterLab starts, for `python course.py`. It runs before anything is installed."""

import hashlib
import json
import os
import platform
import re
import socket
from collections.abc import Callable
from pathlib import Path

from tools import __main__ as commands

ELSEWHERE = re.compile(r"\[Open in \w+\]\([^)]*\)( · )?")  # links of no use to somebody who has opened the notebook


# What a kernel writes into a notebook that it opens. Where it stands already, the notebook counts as saved.
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": platform.python_version(),
}


def without_outputs(notebook: str | Path) -> str:
    """Return the text of a notebook as it stands before it is run: stored outputs would answer what it asks."""
    content = json.loads(Path(notebook).read_text(encoding="utf-8"))
    for cell in content["cells"]:
        cell["source"] = ELSEWHERE.sub("", "".join(cell["source"])).splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    content.setdefault("metadata", {})["language_info"] = LANGUAGE
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def version_of(notebook: str | Path) -> str | None:
    """Return a hash of a notebook's text and code, without what copies leave out, and outputs, which a run changes."""
    try:
        cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
        content = [[cell["cell_type"], ELSEWHERE.sub("", "".join(cell["source"]))] for cell in cells]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # not a notebook any more
        return None
    return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()


def check_port(port: str, stop: Callable[[str], None]) -> None:
    """Stop with a message if nothing can listen on a port."""
    if not (port.isdecimal() and 0 < int(port) < 65536):
        return stop(f"'{port}' is not a port. Give a number from 1024 to 65535, such as --port 8890.")
    with socket.socket() as probe:
        if os.name != "nt":  # without it, a port just left would seem taken; on Windows, with it, a taken one free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except OSError:
            stop(f"Port {port} is taken or not allowed. Give another, or leave --port out, and a free one is found.")


def say_address(folder: str) -> None:
    """Say how links find the repository that a folder was cloned from, until they do."""
    unknown = b"https://github.com/OWNER/REPO" in (Path(folder) / "pyproject.toml").read_bytes()
    if unknown and (found := commands.origin(folder)):
        print(f"Links still lead to OWNER/REPO. To have them lead to {found}: python course.py address", flush=True)
