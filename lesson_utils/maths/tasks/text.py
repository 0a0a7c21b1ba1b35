"""Texts to learn from, character by character: one that comes with the course, or your own."""

import math
import os
from importlib.resources import files
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import as_ids, as_number, as_size
from lesson_utils.maths.tasks.vocabulary import Pair, Vocabulary


def python_text() -> str:
    """Return Python's language reference, 465,126 characters: the texts that `help("if")` and its like show.

    It is a copy of Python 3.11's, so that a model learns the same whatever Python is installed.
    """
    return (files("lesson_utils.maths.tasks") / "python_3.11_topics.txt").read_text(encoding="utf-8")


def read_text(path: str | os.PathLike[str], minimum: int = 1000) -> str:
    """Read a text file of your own, in UTF-8.

    Args:
        minimum: the fewest characters that are accepted; a model can't learn from fewer.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is a folder, is not text, or is too short.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path} in {Path.cwd()}; give its full path, or upload it there")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a text file in it")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 (byte {error.start}); in an editor, save it as plain text, encoding UTF-8"
        ) from None
    if "\0" in text:
        raise ValueError(f"{path} is not text: it holds zero bytes; give a plain text file (.txt, .md, .py)")
    if len(text) < minimum:
        has = f"has {len(text)} characters" if text else "is empty"
        raise ValueError(f"{path} {has}; a model needs at least {minimum} to learn from")
    return text


def text_vocabulary(text: str) -> Vocabulary:
    """Return the characters that appear in a text.

    Raises:
        ValueError: the text is empty.
    """
    if not text:
        raise ValueError("the text is empty; give at least one character")
    return Vocabulary(sorted(set(text)))


def split_text(ids: ArrayLike, validation: float = 0.1) -> Pair:
    """Return the first part to train on and the last part to validate on; no character is in both."""
    ids = as_ids(ids, "ids", ndim=1)
    if not 0 < as_number(validation, "validation") < 1:
        raise ValueError(f"validation={validation} must lie between 0 and 1; try 0.1")
    cut = len(ids) - math.ceil(validation * len(ids))
    return ids[:cut], ids[cut:]


def text_batches(ids: ArrayLike, T: SupportsIndex, batch: SupportsIndex, rng: np.random.Generator) -> Pair:
    """Draw windows from random places of a text; each next character is to be predicted.

    Returns:
        x and y, each (B, T), with y[:, t] the character after x[:, t].

    Raises:
        ValueError: the text has fewer than T + 1 characters.
    """
    ids, T, batch = as_ids(ids, "ids", ndim=1), as_size(T, "T"), as_size(batch, "batch")
    if len(ids) <= T:
        raise ValueError(f"ids has {len(ids)} characters; windows of T={T} and the one after need at least {T + 1}")
    starts = rng.integers(len(ids) - T, size=batch)
    windows = ids[starts[:, None] + np.arange(T + 1)]  # (B, T + 1)
    return windows[:, :-1], windows[:, 1:]


def unigram_entropy(ids: ArrayLike) -> float:
    """Return −Σ p log₂ p, the bits a character costs if only the frequency p of each character is known.

    A model whose loss is not below it has learnt nothing about order.
    """
    ids = as_ids(ids, "ids", ndim=1)
    if not len(ids):
        raise ValueError("ids is empty; frequencies need at least one character")
    p = np.unique(ids, return_counts=True)[1] / len(ids)
    return abs(float((p * np.log2(p)).sum()))
