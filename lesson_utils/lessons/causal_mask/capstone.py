"""The learner's own GPT: the trained model's parameters by name, and the model in float64 to compare with."""

from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import models
from lesson_utils.maths.checks import Array


class Parameters(NamedTuple):
    """The parameters of one layer."""

    gamma_1: Array  # (d_model,), of the norm before attention
    beta_1: Array
    W_Q: Array  # (d_model, d_model)
    W_K: Array
    W_V: Array
    W_O: Array
    gamma_2: Array  # (d_model,), of the norm before the feed-forward layer
    beta_2: Array
    W_1: Array  # (d_model, d_ff)
    b_1: Array
    W_2: Array  # (d_ff, d_model)
    b_2: Array


_NAMES = (
    *(f"attention.{name}" for name in ("norm.gamma", "norm.beta", "inner.W_Q", "inner.W_K", "inner.W_V", "inner.W_O")),
    *(f"feed_forward.{name}" for name in ("norm.gamma", "norm.beta", "inner.wide.W", "inner.wide.b")),
    *("feed_forward.inner.narrow.W", "feed_forward.inner.narrow.b"),
)


def parameters(gpt: models.GPT) -> dict[str, Any]:
    """Return what `my_gpt` takes besides ids: the numbers of a GPT, in float64, so that rounding is far below 1e-6."""
    p = {name: param.value.astype(np.float64) for name, param in gpt.params().items()}
    layers = [Parameters(*(p[f"stack.blocks.{i}.{name}"] for name in _NAMES)) for i in range(gpt.config.num_layers)]
    last = {"gamma": p["stack.norm.gamma"], "beta": p["stack.norm.beta"]}
    return {"table": p["tokens.embedding.table"], "layers": layers, **last, "num_heads": gpt.config.num_heads}


def in_double(gpt: models.GPT) -> models.GPT:
    """Return the same model in float64."""
    from dataclasses import replace

    copy = models.GPT(replace(gpt.config, dtype=np.float64), np.random.default_rng(0))
    for name, param in copy.params().items():
        param.value[...] = gpt.params()[name].value
    return copy
