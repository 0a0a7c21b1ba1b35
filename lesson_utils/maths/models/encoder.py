"""An encoder alone, with classes on top."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, as_ids, as_size
from lesson_utils.maths.layers import Layer, Linear, MultiHead, Rng
from lesson_utils.maths.layers.basic import LinearCache
from lesson_utils.maths.models.gpt import Stack, StackCache, StackConfig, Tokens, TokensCache, see_real


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """Sizes and choices of an encoder with classes on top.

    Args:
        classes: how many classes there are.
        outputs: how many classes are predicted for each position (or, pooled, for each sequence).
        pooled: one answer for the whole sequence, from the mean of its positions.
        pad: the id of padding; None if there is none.
    """

    classes: int
    outputs: int = 1
    pooled: bool = False
    pad: int | None = None


class EncoderCache(NamedTuple):
    tokens: TokensCache
    stack: StackCache
    share: Array | None  # of each position in the mean, if there is one
    head: LinearCache


class Encoder(Layer):
    """An encoder that puts symbols, or whole sequences, into classes: the family of BERT."""

    def __init__(self, config: EncoderConfig, rng: Rng | None) -> None:
        self.config = c = config
        classes, outputs = as_size(c.classes, "classes"), as_size(c.outputs, "outputs")
        self.tokens, self.stack = Tokens(c, rng), Stack(c, rng)
        self.head = Linear(c.d_model, outputs * classes, rng, dtype=c.dtype)

    def forward(self, ids: ArrayLike, rng: Rng | None = None) -> tuple[Array, EncoderCache]:
        """Classify ids (B, T): logits (B, T, outputs, classes), or pooled (B, outputs, classes), and a cache."""
        c, ids = self.config, as_ids(ids, "ids", ndim=2)
        mask = None if c.pad is None else see_real(ids, c.pad, c.dtype)
        x, tokens = self.tokens.forward(ids, rng=rng)
        x, stack = self.stack.forward(x, mask, rng=rng)  # (B, T, d_model)
        share = None
        if c.pooled:
            share = np.ones(ids.shape, c.dtype) if mask is None else mask[:, 0, 0]  # (B, T)
            share = share / np.maximum(share.sum(axis=1, keepdims=True), 1)
            x = (share[:, None, :] @ x)[:, 0]  # (B, d_model)
        logits, head = self.head.forward(x)
        return logits.reshape(*x.shape[:-1], c.outputs, c.classes), EncoderCache(tokens, stack, share, head)

    def maps(self, cache: EncoderCache) -> dict[str, list[Array]]:
        """Return, under "encoder", a list with the attention weights of each layer: (B, h, T, T)."""
        return {"encoder": self.stack.maps(cache.stack)}

    def heads(self) -> dict[str, list[MultiHead]]:
        """Return, under "encoder", the attention of each layer."""
        return {"encoder": self.stack.heads()}

    def loss(self, batch: tuple[ArrayLike, ArrayLike]) -> float:
        """Return the mean cross-entropy, in nats.

        Args:
            batch: ids (B, T), and classes in the shape of the logits without their last axis; with one output, that
                axis may be left out: (B, T), or pooled (B,).
        """
        return self._loss(batch, None)[0]

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        """Return `loss` (with `rng`, under dropout) and add its gradients to each `Param.grad`."""
        loss, cross, (tokens, stack, share, head) = self._loss(batch, rng)
        dlogits = ops.cross_entropy_backward(1.0, cross)  # (..., outputs, classes)
        dx = self.head.backward(dlogits.reshape(*dlogits.shape[:-2], -1), head)
        if share is not None:
            dx = share[:, :, None] * dx[:, None, :]  # (B, T, d_model)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def _loss(
        self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None
    ) -> tuple[float, tuple[Array, float], EncoderCache]:
        c, ids, targets = self.config, as_ids(batch[0], "ids", ndim=2), np.asarray(batch[1])
        logits, cache = self.forward(ids, rng)
        if c.outputs == 1 and targets.ndim == logits.ndim - 2:
            targets = targets[..., None]  # (..., 1)
        mask = None
        if c.pad is not None and not c.pooled:
            mask = np.broadcast_to((ids != c.pad)[:, :, None], logits.shape[:-1])
        loss, cross = ops.cross_entropy_forward(logits, targets, mask)
        return loss, cross, cache
