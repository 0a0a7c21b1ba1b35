"""Stored measurements: of the real model, for those who have not installed it; and of small GPTs with five changes.

All of it was measured once. The programs that did so are in git's history: `git log -- tools/measure` finds them.
"""

import json
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

NAME = "smollm2 135m"  # the name of the model that the results are of begins so
NOTE = "stored results of SmolLM2-135M"
CHANGES_FILE = Path(__file__).with_name("changes.jsonl")


@cache
def stored() -> dict[str, Any]:
    """Return all arrays by name."""
    with np.load(
        BytesIO((files("lesson_utils.lessons.real_model") / "measured.npz").read_bytes()), allow_pickle=False
    ) as file:
        return dict(file)


def stored_changes() -> list[dict[str, Any]]:
    """Return a dictionary for each run, see `changes.Run`."""
    if not CHANGES_FILE.exists():
        return []
    return [json.loads(line) for line in CHANGES_FILE.read_text(encoding="utf-8").splitlines()]


def label(figure: Any, note: str = NOTE) -> None:
    """Say in a figure that what it shows is stored."""
    figure.supxlabel(note, x=0.99, ha="right", size=9, color="#6B6B6B", style="italic")
