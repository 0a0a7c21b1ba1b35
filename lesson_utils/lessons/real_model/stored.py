"""What was measured on the real model by `tools/stored/real_model.py`: shown where the model is not installed."""

from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np

NAME = "smollm2 135m"  # the name of the model that the results are of begins so
NOTE = "stored results of SmolLM2-135M"


@cache
def stored() -> dict[str, Any]:
    """All arrays by name."""
    with np.load(BytesIO((files("lesson_utils") / "data/real_model.npz").read_bytes()), allow_pickle=False) as file:
        return dict(file)


def label(figure: Any, note: str = NOTE) -> None:
    """Say in a figure that what it shows is stored."""
    figure.supxlabel(note, x=0.99, ha="right", size=9, color="#6B6B6B", style="italic")
