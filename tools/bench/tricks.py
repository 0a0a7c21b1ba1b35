"""The worth of each trick of the maths: a whole training step with its textbook form instead, over the step as it is.

What is worth less than a twentieth of a step in every model should go: readers pay for it at each reading.
"""

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from lesson_utils.maths import attention, models
from lesson_utils.maths.machine import keep_freed_memory
from lesson_utils.maths.ops import features, probabilities
from tools.bench.clock import compare
from tools.bench.training import step_of

ROUNDS = 21


def run() -> None:
    """Print a line for each model."""
    keep_freed_memory()
    tricks = {"softmax: whole": textbook_softmax, "softmax: one peak": every_row_has_its_peak, "sums": plain_sums}
    if platform.libc_ver()[0] == "glibc":
        tricks["freed memory"] = as_glibc_begins
    print("  a step without each trick, over the step as it is (its control: the step itself, once more)")
    print(f"  {'':24}{'control':>12}" + "".join(f"{name:>19}" for name in tricks))
    for name, (model, batch) in _models().items():
        step = step_of(model, batch)
        ways = {name: partial(_without, trick, step) for name, trick in tricks.items()}
        times = compare(ROUNDS, warm=True, ours=step, control=step, **ways)
        ratios = [times[way] / times["ours"] for way in ("control", *tricks)]
        print(f"  {name:24}{ratios[0]:>12.2f}" + "".join(f"{ratio:>19.2f}" for ratio in ratios[1:]), flush=True)


def _without(trick: Callable[[], Any], step: Callable[[], object]) -> None:
    with trick():
        step()


def _models() -> dict[str, tuple[Any, tuple[Any, Any]]]:
    rng = np.random.default_rng(0)
    ids = rng.integers(3, 30, size=(2, 32, 32))
    gpt: dict[str, Any] = {"vocab": 30, "d_model": 64, "max_length": 32}
    tiny: dict[str, Any] = {"vocab": 30, "classes": 30, "d_model": 32, "num_layers": 1, "d_ff": 16}
    return {
        "GPT d 64": (models.GPT(models.GPTConfig(**gpt), rng), (ids[0], ids[1])),
        "GPT d 64, GELU": (models.GPT(models.GPTConfig(**gpt, activation="gelu"), rng), (ids[0], ids[1])),
        "encoder-decoder d 64": (
            models.Transformer(models.TransformerConfig(vocab=30), rng),
            (ids[0, :, :24], ids[1, :, :25]),
        ),
        "encoder d 32": (models.Encoder(models.EncoderConfig(**tiny), rng), (ids[0], ids[1])),
        "seq2seq, Luong": (models.Seq2Seq(models.Seq2SeqConfig(30, 30, "general"), rng), (ids[0], ids[1])),
    }


@contextmanager
def textbook_softmax() -> Iterator[None]:
    """Subtract each row's largest score, set hidden scores to −∞ before exp, and compute nothing in place."""

    def forward(x: Any, mask: Any = None, out: Any = None) -> tuple[Any, Any]:
        x = x if mask is None else np.where(mask, x, -np.inf)
        powers = np.exp(x - probabilities._peak(x))
        total = powers.sum(axis=-1, keepdims=True)
        weights = powers / np.where(total == 0, 1, total)
        return weights, weights

    def backward(dweights: Any, weights: Any, out: Any = None) -> Any:
        return weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))

    with patch.object(attention, "softmax_forward", forward), patch.object(attention, "softmax_backward", backward):
        yield


def every_row_has_its_peak() -> Any:
    """Always subtract the largest score, even where exp would be safe without it."""
    return patch.object(probabilities, "_is_safe", lambda x: False)


@contextmanager
def plain_sums() -> Iterator[None]:
    """Use `sum` in place of products with ones."""
    with ExitStack() as stack:
        for module in (features, probabilities):
            stack.enter_context(patch.object(module, "row_sums", lambda x: x.sum(axis=-1, keepdims=True)))
        columns = patch.object(features, "column_sums", lambda x: x.sum(axis=tuple(range(x.ndim - 1))))
        stack.enter_context(columns)
        yield


@contextmanager
def as_glibc_begins() -> Iterator[None]:
    """Hand the memory of arrays from 128 KiB on back to the system at once."""
    trim_threshold, mmap_threshold, libc = -1, -3, ctypes.CDLL(None)
    for option in (mmap_threshold, trim_threshold):
        libc.mallopt(option, 2**17)
    try:
        yield
    finally:  # what `keep_freed_memory` leads to
        libc.mallopt(mmap_threshold, 2**25 - 2**16)
        libc.mallopt(trim_threshold, 2**26 - 2**17)
