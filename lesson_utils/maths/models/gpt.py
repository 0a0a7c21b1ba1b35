"""A GPT: one stack under a causal mask, which learns to predict the next symbol and then writes symbol by symbol."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids, as_ids, as_mask, as_size
from lesson_utils.maths.layers import KeyValueCache, Layer, MultiHead, Rng
from lesson_utils.maths.layers.basic import LinearCache
from lesson_utils.maths.models.sampling import sample
from lesson_utils.maths.models.stack import Stack, StackCache, StackConfig, Tokens, TokensCache, see_past


@dataclass(frozen=True, kw_only=True)
class GPTConfig(StackConfig):
    """Sizes and choices of a GPT.

    Args:
        max_length: the context: how many symbols the model looks back on at most.
    """

    max_length: int = 64


class GPTCache(NamedTuple):
    tokens: TokensCache
    stack: StackCache
    output: LinearCache


class GPT(Layer):
    """Decoder-only Transformer. The table of embeddings is its output layer, too.

    Without `rng` the parameters are made, but not filled: for a model that is read from a file.

    Source: Radford et al. (2019), section 2.3.
    """

    def __init__(self, config: GPTConfig, rng: Rng | None) -> None:
        self.config = config
        self.tokens, self.stack = Tokens(config, rng), Stack(config, rng)

    def forward(
        self,
        ids: ArrayLike,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
        mask: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Array, GPTCache]:
        """Predict what comes after each symbol.

        Args:
            ids: (B, T).
            past: from `new_past()`: keys and values of the symbols before, to which those of `ids` are added.
            rng: for dropout, when training.
            mask: True = may attend, broadcastable to (B, h, T, T), with `past` (B, h, T, all). Default: causal.
            last: predict what comes after the last symbol only, which is all that writing needs; no maps are kept.

        Returns:
            logits, (B, T, V), or (B, 1, V) with `last`, and a cache: `maps(cache)` are the attention weights of this
            very pass (not with `last`).

        Raises:
            ValueError: ids or mask do not fit.
        """
        c, ids = self.config, as_ids(ids, "ids", ndim=2)
        B, T = ids.shape
        start, T_k = (past[0].length, past[0].length_with(T)) if past else (0, T)
        if mask is None:
            may_see = see_past(T, T_k, c.dtype)
        else:
            as_mask(mask, (B, c.num_heads, T, T_k))
            may_see = np.asarray(mask).astype(c.dtype)
        x, tokens = self.tokens.forward(ids, start, rng)
        x, stack = self.stack.forward(x, may_see, past, rng, cached=not last)
        logits, output = self.tokens.embedding.logits_forward(x[:, -1:] if last else x)  # (B, T or 1, V)
        return logits, GPTCache(tokens, stack, output)

    def maps(self, cache: GPTCache) -> dict[str, list[Array]]:
        """Return, under "decoder", a list with the attention weights of each layer: (B, h, T, T)."""
        return {"decoder": self.stack.maps(cache.stack)}

    def heads(self) -> dict[str, list[MultiHead]]:
        """Return, under "decoder", the attention of each layer."""
        return {"decoder": self.stack.heads()}

    def loss(self, batch: tuple[ArrayLike, ArrayLike]) -> float:
        """Return the mean cross-entropy, in nats, of the next symbols.

        Args:
            batch: ids (B, T), and the ids that follow each of them, (B, T).
        """
        logits, _ = self.forward(batch[0])
        return ops.cross_entropy_forward(logits, as_ids(batch[1], "targets", ndim=2))[0]

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        """Return `loss` (with `rng`, under dropout) and add its gradients to each `Param.grad`."""
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        loss, cross = ops.cross_entropy_forward(logits, as_ids(batch[1], "targets", ndim=2))
        dx = self.tokens.embedding.logits_backward(ops.cross_entropy_backward(1.0, cross), output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def new_past(self, keep: int | None = None) -> list[KeyValueCache]:
        """Make an empty key–value cache for each layer, with room for a whole context; with `keep`, a full one rolls.

        Raises:
            ValueError: the cache is to roll, but positions are added to tokens, and so do not move up with them.
        """
        if keep is not None and self.config.positions not in ("rotary", "alibi", "none"):
            raise ValueError(f"positions={self.config.positions!r} cannot roll; build it with 'rotary' or 'alibi'")
        return [KeyValueCache(self.config.max_length, keep) for _ in self.stack.blocks]

    def generate(
        self,
        prompt: ArrayLike,
        length: int,
        rng: Rng,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        use_cache: bool = True,
        keep: int | None = None,
    ) -> Ids:
        """Write: return the prompt and `length` more symbols, drawn one at a time, (B, T + length).

        When the context is full, the model goes on from its second half. With `keep` the context rolls: the first
        `keep` symbols stay, and the oldest of the others is forgotten, see `KeyValueCache`. `use_cache=False` computes
        all keys and values anew for each symbol: the same text, slowly. The other arguments are those of `sample`.
        """
        ids = as_ids(prompt, "prompt", ndim=2)
        if ids.shape[1] == 0:
            raise ValueError("the prompt is empty; expected at least one symbol")
        if keep is not None and not use_cache:
            raise ValueError(f"keep={keep} is about a cache that rolls; leave use_cache=False out")
        context = self.config.max_length
        past = self.new_past(keep) if use_cache else None
        seen = ids[:, -context:]
        if keep and ids.shape[1] > context:
            seen = np.concatenate([ids[:, :keep], ids[:, keep - context :]], axis=1)
        fresh = seen  # what the cache has not seen yet
        for _ in range(as_size(length, "length", minimum=0)):
            logits, _ = self.forward(fresh if past else seen, past)
            new = sample(logits[:, -1], rng, temperature, top_k, top_p)[:, None]  # (B, 1)
            ids, seen, fresh = np.concatenate([ids, new], axis=1), np.concatenate([seen, new], axis=1), new
            if keep is None and seen.shape[1] > context:
                seen = fresh = seen[:, -max(1, context // 2) :]
                past = self.new_past() if use_cache else None
        return ids
