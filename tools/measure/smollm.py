"""Hold what measurements of the real model share: the model, loaded once, its texts, and the file of the results."""

import io
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.real_model import measures
from lesson_utils.maths import pretrained
from lesson_utils.maths.checks import Array, Ids

FILE = Path(__file__).parents[2] / "lesson_utils/lessons/real_model/measured.npz"
Part = dict[str, Any]


@cache
def real() -> pretrained.Pretrained:
    """Load the published model, once."""
    return pretrained.load()


def story(start: int = 0, length: int = measures.PAGE) -> Ids:
    """Return tokens of the story and the one that follows them, (1, length + 1)."""
    return real().tokenizer.encode(measures.STORY)[None, start : start + length + 1]


def repeated(batch: int = 3, seed: int = 7) -> Ids:
    return measures.copies(np.random.default_rng(seed), len(real().tokenizer), batch)


def log_softmax(logits: Array) -> Array:
    """Return log p, in float64."""
    top = logits.max()
    result: Array = (logits - top - np.log(np.exp(logits - top).sum())).astype(np.float64)
    return result


def saved() -> Part:
    if not FILE.exists():
        return {}
    with np.load(FILE, allow_pickle=False) as file:
        return dict(file)


def run_parts(parts: Mapping[str, Callable[[], Part]], names: Sequence[str] = ()) -> None:
    """Measure the named parts again (without names, all), keep them, and print how far they are from what was kept."""
    for name in names or parts:
        print(f"--- {name}", flush=True)
        new, before = {key: np.asarray(value) for key, value in parts[name]().items()}, saved()
        for key, value in new.items():
            print(f"{key}: {compared(before.get(key), value)}")
        whole = io.BytesIO()
        np.savez_compressed(whole, **before | new)
        put(FILE, whole.getvalue())
    print(f"{FILE.stat().st_size:,} bytes")


def compared(before: Array | None, now: Array) -> str:
    """Say how a result differs from the one that was stored."""
    if before is None or before.shape != now.shape:
        return "new" if before is None else f"was of shape {before.shape}, is {now.shape}"
    if now.dtype.kind not in "fiu":
        return f"{int((before != now).sum())} of {now.size} differ"
    return f"differs by {np.abs(np.nan_to_num(now.astype(float) - before)).max(initial=0):.2g} at most"
