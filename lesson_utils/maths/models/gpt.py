"""A GPT: tokens with positions at the bottom, a stack of layers under a causal mask, and logits at the top.

It learns to predict the next symbol and then writes symbol by symbol. Tokens and stack are those of all Transformers:
an encoder is this stack without the mask.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from lesson_utils.maths import ops, positions
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array, Ids, Mask, as_choice, as_ids, as_mask, as_size
from lesson_utils.maths.layers import (
    Embedding,
    EncoderLayer,
    KeyValueCache,
    Layer,
    LayerConfig,
    MultiHead,
    Param,
    Rng,
    norm_of,
    normal,
)
from lesson_utils.maths.layers.basic import EmbeddingCache, LinearCache, NormCache
from lesson_utils.maths.layers.blocks import EncoderCache
from lesson_utils.maths.models.sampling import sample
from lesson_utils.maths.positions import Rotary

POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")


@dataclass(frozen=True, kw_only=True)
class StackConfig(LayerConfig):
    """Sizes and choices of a stack, and those of its layers, see `LayerConfig`.

    Args:
        vocab: how many symbols, the special ones included.
        dropout: the share of the outputs of each sublayer and of the embedding that is dropped while training.
        positions: "sinusoidal" (the paper's) or "learned", added to the tokens; "rotary", turning queries and keys as
            `rotary` says (default: `Rotary()`); "alibi", taken off the scores; or "none".
        max_length: how many positions "learned" has a vector for.
    """

    vocab: int
    num_layers: int = 2
    positions: str = "sinusoidal"
    max_length: int = 512

    def __post_init__(self) -> None:
        for name in ("vocab", "num_layers", "max_length"):
            as_size(getattr(self, name), name)
        as_choice(self.positions, "positions", POSITIONS)
        if self.positions != "rotary" and self.rotary is not None:
            raise ValueError(f"rotary={self.rotary} needs positions='rotary', not {self.positions!r}; else rotary=None")
        super().__post_init__()

    @property
    def rotation(self) -> Rotary | None:
        """The turn of queries and keys by their position, if `positions` is "rotary"."""
        return self.rotary or Rotary() if self.positions == "rotary" else None


class TokensCache(NamedTuple):
    embedding: EmbeddingCache
    keep: Array | None  # of dropout
    start: int
    end: int


class Tokens(Layer):
    """Ids (B, T) → vectors (B, T, d_model) that know what they are and, if positions are added, where."""

    def __init__(self, config: StackConfig, rng: Rng | None, embedding: Embedding | None = None) -> None:
        self.embedding = embedding or Embedding(config.vocab, config.d_model, rng, config.dtype)
        self.config = config
        self.learned: Param | None = None
        if config.positions == "learned":
            self.learned = normal(config.max_length, config.d_model, rng, config.dtype, divisor=1.0)

    def forward(self, ids: Ids, start: int = 0, rng: Rng | None = None) -> tuple[Array, TokensCache]:
        """Look up the vectors and add positions, `start` for the first id."""
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ValueError(f"ids has shape {ids.shape}; expected (B, T) with T at least 1")
        x, cache = self.embedding.forward(ids)  # (B, T, d_model)
        end = start + ids.shape[1]
        if self.learned is not None:
            if end > len(self.learned.value):
                raise ValueError(f"position {end - 1} has no learned vector; max_length={len(self.learned.value)}")
            x += self.learned.value[start:end]
        elif self.config.positions == "sinusoidal":
            table = positions.sinusoidal_encoding(end, self.config.d_model)[start:]
            x += table.astype(x.dtype)
        x, keep = ops.dropout_forward(x, self.config.dropout, rng)
        return x, TokensCache(cache, keep, start, end)

    def backward(self, dx: Array, cache: TokensCache) -> None:
        dx = ops.dropout_backward(dx, cache.keep)
        self.embedding.backward(dx, cache.embedding)
        if self.learned is not None:
            self.learned.grad[cache.start : cache.end] += dx.sum(axis=0)


class StackCache(NamedTuple):
    blocks: list[EncoderCache]
    norm: NormCache | None
    stream: Array  # what the blocks gave, before the last norm


class Stack(Layer):
    """Encoder layers, one on the other; with pre-norm, one more norm at the top."""

    def __init__(self, config: StackConfig, rng: Rng | None) -> None:
        self.config = config
        self.blocks = [EncoderLayer(config, rng) for _ in range(config.num_layers)]
        self.norm = norm_of(config) if config.norm == "pre" else None

    def forward(
        self,
        x: Array,
        mask: Array | Mask | None = None,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
        last: bool = False,
    ) -> tuple[Array, StackCache]:
        """Run all blocks: x (B, T, d_model) → the same shape. `past` holds a cache for each block, for decoding.

        With `last`, only the last position is returned, (B, 1, d_model), and nothing that a block computed is kept:
        there are no maps and no way back. 200 tokens of a model of 30 layers then take a fifth less time, because each
        block finds the memory of the one before, and the last block's feed-forward network has one row to do, not 200.
        """
        bias = None
        if self.config.positions == "alibi":
            T_k = past[0].length_with(x.shape[1]) if past else x.shape[1]
            bias = positions.alibi_bias(self.config.num_heads, x.shape[1], T_k).astype(x.dtype)  # (h, T_q, T_k)
        caches = []
        for i, block in enumerate(self.blocks):
            at_top = i == len(self.blocks) - 1
            x, cache = block.forward(x, mask, bias, past[i] if past else None, rng, last and at_top)
            if not last:
                caches.append(cache)
            del cache
        stream, top = x, None
        if self.norm is not None:
            x, top = self.norm.forward(x)
        return x, StackCache(caches, top, stream)

    def backward(self, dy: Array, cache: StackCache) -> Array:
        if self.norm is not None and cache.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for block, block_cache in zip(reversed(self.blocks), reversed(cache.blocks), strict=True):
            dy = block.backward(dy, block_cache)
        return dy

    def maps(self, cache: StackCache) -> list[Array]:
        """Return the attention weights of each block, (B, h, T, T).

        Raises:
            ValueError: that pass kept none.
        """
        if len(cache.blocks) < len(self.blocks):
            raise ValueError("that pass kept no maps; run it again without last=True")
        return [block.map(block_cache) for block, block_cache in zip(self.blocks, cache.blocks, strict=True)]

    def heads(self) -> list[MultiHead]:
        """Return the attention of each block."""
        return [block.attention.inner for block in self.blocks]


def see_real(ids: Ids, pad: int, dtype: DTypeLike) -> Array | None:
    """Return a mask that hides padding, 1 where there is a symbol: (B, 1, 1, T); None if there is no padding."""
    real = ids != pad
    return None if real.all() else real[:, None, None, :].astype(dtype)


def see_past(T_q: int, T_k: int, dtype: DTypeLike) -> Array | None:
    """Return a mask that hides the future, (T_q, T_k); None for a single query, which is the last."""
    return None if T_q == 1 else causal_mask(T_q, T_k).astype(dtype)


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
        x, stack = self.stack.forward(x, may_see, past, rng, last)
        logits, output = self.tokens.embedding.logits_forward(x)  # (B, T or 1, V)
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
