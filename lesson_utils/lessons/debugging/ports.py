"""Ports of a model, with its weights: compared with the original place by place, until the first that differs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils.lessons import bugs
from lesson_utils.lessons.real_model.stored import stored
from lesson_utils.maths import layers, models
from lesson_utils.maths.checks import Array, Ids, as_choice
from lesson_utils.maths.models.gpt import see_past

CONFIG = models.GPTConfig(vocab=50, d_model=64, num_heads=4, num_layers=4, positions="rotary", activation="gelu")
ORIGINAL = "original"


def gelu_exactly(x: Array) -> Array:
    """Return x Φ(x) with Φ itself, not with its approximation by tanh."""
    erf = np.vectorize(math.erf, otypes=[float])
    y: Array = (0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(x.dtype)
    return y


class ExactGelu(layers.FeedForward):
    """A feed-forward layer with the exact GELU, for forward passes."""

    def __init__(self, right: layers.FeedForward) -> None:
        vars(self).update(vars(right))

    def forward(self, x: Array) -> tuple[Array, Any]:
        wide, _ = self.wide.forward(x)
        return self.narrow.forward(gelu_exactly(wide))[0], None


def _other_pairs(model: models.GPT) -> None:
    bugs.plant(model, "rotary pairs")


def _exact(model: models.GPT) -> None:
    for block in model.stack.blocks:
        block.feed_forward.inner = ExactGelu(block.feed_forward.inner)


def _transposed(model: models.GPT) -> None:
    W_O = model.stack.blocks[2].attention.inner.W_O
    W_O.value = np.ascontiguousarray(W_O.value.T)


CHANGES: dict[str, Callable[[models.GPT], None]] = {"A": _other_pairs, "B": _exact, "C": _transposed}


def port(name: str = ORIGINAL, dtype: Any = np.float32) -> models.GPT:
    """Make a model of four layers: the original, or a port of it, "A", "B" or "C", with the same weights."""
    as_choice(name, "port", (ORIGINAL, *CHANGES))
    right = models.GPT(CONFIG, np.random.default_rng(0))
    model = models.GPT(models.GPTConfig(**{**vars(CONFIG), "dtype": dtype}), rng=None)
    for key, param in model.params().items():
        param.value = right.params()[key].value.astype(dtype)
    if name in CHANGES:
        CHANGES[name](model)
    return model


def streams(model: models.GPT, ids: Ids) -> dict[str, Array]:
    """Return the stream after each part of a model, by the part's name, and the logits at the end.

    Args:
        ids: (B, T).
    """
    x, _ = model.tokens.forward(ids)
    mask = see_past(ids.shape[1], ids.shape[1], x.dtype)
    found = {"tokens": x}
    for n, block in enumerate(model.stack.blocks, 1):
        attend, feed = block.attention.inner.forward, block.feed_forward.inner.forward
        x, _ = block.attention.forward(x, lambda x, attend=attend: attend(x, None, mask))  # type: ignore[misc]
        found[f"attention {n}"] = x
        x, _ = block.feed_forward.forward(x, feed)
        found[f"feed-forward {n}"] = x
    assert model.stack.norm is not None
    x, _ = model.stack.norm.forward(x)
    return found | {"norm": x, "logits": model.tokens.embedding.logits_forward(x)[0]}


def rounding(layers: tuple[int, ...] = (6, 15, 30)) -> str:
    """List the rounding in SmolLM2's stream after some layers: float32 beside float64, and the largest number there."""
    lines = ["SmolLM2, stored   largest number   rounding   by size"]
    for layer in layers:
        off, size = stored()["rounding"][layer]
        lines.append(f"{f'after layer {layer}':17} {size:14,.0f} {off:10.0e} {off / size:9.0e}")
    return "\n".join(lines)
