"""What comes before JupyterLab starts, for `python course.py`: options, settings, and a learner's own copies.

`options` runs before anything is installed, so at the top stands nothing but the standard library.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

SETTINGS = {  # no question about news first; no blank page at the end; line numbers, because messages name them
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"scrollPastEnd": False, "codeCellConfig": {"lineNumbers": True}},
}
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


def options(words: Sequence[str]) -> tuple[bool, list[str]]:
    """Return whether the notebooks themselves are to be opened, and what JupyterLab is told."""
    parser = argparse.ArgumentParser("course.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("--port", type=free_port)
    known, others = parser.parse_known_args(words)
    if known.port is not None:
        others += [f"--ServerApp.port={known.port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container, say; JupyterLab would refuse to start
        others += ["--allow-root"]
    return known.edit, others


def free_port(text: str) -> int:
    """Return the number of a port on which something can listen."""
    with socket.socket() as probe:
        if os.name != "nt":  # without it, a port just left would seem taken; on Windows, with it, a taken one free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(text)))
        except (OSError, ValueError, OverflowError):
            why = f"{text} is taken, not allowed, or not a port. Leave --port out, and a free one is found"
            raise argparse.ArgumentTypeError(why) from None
    return int(text)


def prepare(root: str, venv: str, edit: bool) -> list[str]:
    """Write JupyterLab's settings, copy the notebooks unless they are to be edited, and return its options."""
    put(Path(venv, "share/jupyter/lab/settings/overrides.json"), json.dumps(SETTINGS))
    if not edit:
        copy_notebooks(Path(root), Path(root, "my_notebooks"))  # git ignores it
    start = f"/lab/tree/{'notebooks' if edit else 'my_notebooks'}/00_start_here.ipynb"
    at_once = "--ServerApp.kernel_websocket_connection_class=tools.at_once.AtOnce"
    return [f"--ServerApp.root_dir={root}", f"--LabApp.default_url={start}", at_once]


def copy_notebooks(root: Path, mine: Path) -> None:
    """Copy the notebooks for the learner. No copy is ever overwritten: a newer version is put beside it."""
    mine.mkdir(exist_ok=True)
    shutil.copytree(root / "notebooks/pictures", mine / "pictures", copy_function=shutil.copyfile, dirs_exist_ok=True)
    record = mine / ".versions.json"  # which versions of each notebook have been copied
    try:
        copied = json.loads(record.read_text())
    except (OSError, ValueError):  # not there, or damaged: it is written anew
        copied = {}
    for original in sorted((root / "notebooks").glob("*.ipynb")):
        copy, version, versions = mine / original.name, version_of(original), copied.setdefault(original.name, [])
        if not os.path.lexists(copy):
            put(copy, without_outputs(original))
        elif version not in [*versions, version_of(copy)]:
            number = 2
            while os.path.lexists(copy := mine / f"{original.stem} (version {number}).ipynb"):
                number += 1
            put(copy, without_outputs(original))
            print(f"{original.name} has a new version: {mine.name}/{copy.name}. Yours is as you left it.", flush=True)
        if version not in versions:
            versions.append(version)
            put(record, json.dumps(copied))


def put(path: Path, content: str) -> None:
    """Write a file beside its place and move it there: at every moment the old one stands there, or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(content, encoding="utf-8", newline="\n")
    beside.replace(path)


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
    except (OSError, ValueError, KeyError, TypeError):  # not a notebook any more
        return None
    return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()
