"""A GPT: one stack under a causal mask, trained to predict the next symbol, then asked to go on."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils import ops
from lesson_utils._checks import Array, as_floats, as_size
from lesson_utils.layers import KeyValueCache, Layer, Rng
from lesson_utils.models.stack import Ids, Stack, StackConfig, Tokens, as_ids, see_past


@dataclass(frozen=True, kw_only=True)
class GPTConfig(StackConfig):
    """Sizes and choices of a GPT.

    Args:
        max_length: the context: how many symbols it looks back on at most.
    """

    max_length: int = 64


class GPT(Layer):
    """Decoder-only Transformer. The table of embeddings is its output layer, too.

    Source: Radford et al. (2019), section 2.3.
    """

    def __init__(self, config: GPTConfig, rng: Rng) -> None:
        self.config = config
        self.tokens, self.stack = Tokens(config, rng), Stack(config, rng)

    def forward(
        self, ids: ArrayLike, past: list[KeyValueCache] | None = None, rng: Rng | None = None
    ) -> tuple[Array, Any]:
        """What the model expects after each symbol.

        Args:
            ids: (B, T).
            past: of `new_past()`: keys and values of the symbols before, to which those of `ids` are added.
            rng: for dropout, when training.

        Returns:
            logits, (B, T, V), and a cache: `maps(cache)` are the attention weights of this very pass.
        """
        ids = as_ids(ids, "ids")
        start, T = (past[0].length if past else 0), ids.shape[1]
        x, tokens = self.tokens.forward(ids, start, rng)
        x, stack = self.stack.forward(x, see_past(T, start + T, self.config.dtype), past, rng)
        logits, output = self.tokens.embedding.logits_forward(x)  # (B, T, V)
        return logits, (tokens, stack, output)

    def maps(self, cache: Any) -> dict[str, list[Array]]:
        """Under "decoder", a list with the attention weights of each layer: (B, h, T, T)."""
        return {"decoder": self.stack.maps(cache[1])}

    def loss(self, batch: tuple[ArrayLike, ArrayLike]) -> float:
        """Mean cross-entropy, in nats, of the next symbols.

        Args:
            batch: ids (B, T), and the ids that follow each of them, (B, T).
        """
        logits, _ = self.forward(batch[0])
        return ops.cross_entropy_forward(logits, as_ids(batch[1], "targets"))[0]

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        """`loss` (with `rng`, under dropout), and its gradients added to each `Param.grad`."""
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        loss, cross = ops.cross_entropy_forward(logits, as_ids(batch[1], "targets"))
        dx = self.tokens.embedding.logits_backward(ops.cross_entropy_backward(1.0, cross), output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def new_past(self) -> list[KeyValueCache]:
        """An empty key–value cache for each layer, with room for a whole context."""
        return [KeyValueCache(self.config.max_length) for _ in self.stack.blocks]

    def generate(
        self,
        prompt: ArrayLike,
        length: int,
        rng: Rng,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        use_cache: bool = True,
    ) -> Ids:
        """The prompt and `length` more symbols, drawn one at a time: (B, T) → (B, T + length).

        When the context is full, the model goes on from its second half. `use_cache=False` computes all keys and values
        anew for each symbol: the same text, slowly. The other arguments are those of `sample`.
        """
        ids = as_ids(prompt, "prompt")
        if ids.shape[1] == 0:
            raise ValueError("the prompt is empty; expected at least one symbol")
        context = self.config.max_length
        seen = ids[:, -context:]
        past = self.new_past() if use_cache else None
        fresh = seen  # what the cache has not seen yet
        for _ in range(as_size(length, "length", minimum=0)):
            logits, _ = self.forward(fresh if past else seen, past)
            new = sample(logits[:, -1], rng, temperature, top_k, top_p)[:, None]  # (B, 1)
            ids, seen, fresh = np.concatenate([ids, new], axis=1), np.concatenate([seen, new], axis=1), new
            if seen.shape[1] > context:
                seen = fresh = seen[:, -max(1, context // 2) :]
                past = self.new_past() if use_cache else None
        return ids


def sample(
    logits: ArrayLike, rng: Rng, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Ids:
    """Draw a symbol from each row of logits.

    Args:
        logits: (..., V).
        temperature: 0 takes the likeliest; 1 draws as the model says; more draws more freely.
        top_k: only from the k likeliest.
        top_p: only from the likeliest that together have at least this probability ("nucleus sampling").

    Returns:
        ids, shape (...).

    Source: Fan et al. (2018) for top-k; Holtzman et al. (2020) for top-p.
    """
    (logits,) = as_floats(logits=logits)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature={temperature} must be a number from 0 on; try 0.8")
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits has shape {logits.shape}; expected (..., V) with V at least 1")
    V = logits.shape[-1]
    if top_k is not None:
        top_k = min(as_size(top_k, "top_k"), V)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must be above 0 and at most 1; try 0.9")
    if temperature == 0:
        return logits.argmax(axis=-1)
    order = np.argsort(-logits, axis=-1, kind="stable")  # likeliest first
    ranked = np.take_along_axis(logits.astype(np.float64), order, axis=-1)
    weights = ops.softmax(ranked, temperature=temperature)
    if top_k is not None:
        weights[..., top_k:] = 0
    if top_p is not None:
        before = np.cumsum(weights, axis=-1) - weights  # what the likelier ones have together
        weights[before >= top_p * weights.sum(axis=-1, keepdims=True)] = 0
    totals = np.cumsum(weights, axis=-1)
    draw = rng.random((*logits.shape[:-1], 1)) * totals[..., -1:]
    rank = (totals <= draw).sum(axis=-1, keepdims=True)  # (..., 1)
    return np.take_along_axis(order, rank, axis=-1)[..., 0]
