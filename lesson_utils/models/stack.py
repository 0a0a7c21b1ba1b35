"""What all Transformers share: tokens with positions at the bottom, then a stack of encoder layers.

An encoder is this stack; a GPT is this stack with a causal mask.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lesson_utils import ops, positions
from lesson_utils._checks import Array, Mask, as_size
from lesson_utils.attention import causal_mask
from lesson_utils.layers import Embedding, EncoderLayer, KeyValueCache, Layer, LayerNorm, NormPlace, Param, Rng

Ids = NDArray[np.integer[Any]]
POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """Sizes and choices of a stack.

    Args:
        vocab: how many symbols, the special ones included.
        d_ff: width of the feed-forward network. Default: 4 d_model.
        norm: "pre" (trains without warm-up), "post" (the paper's) or "none".
        activation: "relu" (the paper's), "gelu" or "swiglu".
        dropout: share of what each sublayer and the embedding give that is dropped while training.
        positions: "sinusoidal" (the paper's) or "learned", added to the tokens; "rotary", turning queries and keys;
            "alibi", taken off the scores; or "none".
        max_length: how many positions "learned" has a vector for.
        dtype: float32 or float64, of all parameters.
    """

    vocab: int
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None
    norm: NormPlace = "pre"
    activation: str = "relu"
    dropout: float = 0.0
    positions: str = "sinusoidal"
    max_length: int = 512
    dtype: DTypeLike = np.float32

    def __post_init__(self) -> None:
        for name in ("vocab", "d_model", "num_heads", "num_layers", "max_length"):
            as_size(getattr(self, name), name)
        if self.positions not in POSITIONS:
            raise ValueError(f"positions={self.positions!r} is not known; choose one of {', '.join(POSITIONS)}")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={np.dtype(self.dtype)} must be float32 or float64")

    @property
    def ff_width(self) -> int:
        return 4 * self.d_model if self.d_ff is None else as_size(self.d_ff, "d_ff")


class Tokens(Layer):
    """Ids (B, T) → vectors (B, T, d_model) that know what they are and, if positions are added, where."""

    def __init__(self, config: StackConfig, rng: Rng, embedding: Embedding | None = None) -> None:
        self.embedding = embedding or Embedding(config.vocab, config.d_model, rng, config.dtype)
        self.config, self.learned = config, None
        if config.positions == "learned":
            table = rng.normal(size=(config.max_length, config.d_model)).astype(config.dtype)
            self.learned = Param(table)

    def forward(self, ids: Ids, start: int = 0, rng: Rng | None = None) -> tuple[Array, Any]:
        """`start` is the position of the first id."""
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
        return x, (cache, keep, start, end)

    def backward(self, dx: Array, cache: Any) -> None:
        embedding, keep, start, end = cache
        dx = ops.dropout_backward(dx, keep)
        self.embedding.backward(dx, embedding)
        if self.learned is not None:
            self.learned.grad[start:end] += dx.sum(axis=0)


class Stack(Layer):
    """Encoder layers, one on the other; with pre-norm, one more norm at the top."""

    def __init__(self, config: StackConfig, rng: Rng) -> None:
        self.config = c = config
        rotary_base = 10000.0 if c.positions == "rotary" else None
        self.blocks = [
            EncoderLayer(c.d_model, c.num_heads, c.ff_width, rng, c.norm, c.activation, c.dropout, rotary_base, c.dtype)
            for _ in range(c.num_layers)
        ]
        self.norm = LayerNorm(c.d_model, dtype=c.dtype) if c.norm == "pre" else None

    def forward(
        self,
        x: Array,
        mask: Array | Mask | None = None,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
    ) -> tuple[Array, Any]:
        """x (B, T, d_model) → the same shape. `past` holds a cache for each block, for decoding."""
        bias = None
        if self.config.positions == "alibi":
            T_k = x.shape[1] + (past[0].length if past else 0)
            bias = positions.alibi_bias(self.config.num_heads, x.shape[1], T_k).astype(x.dtype)  # (h, T_q, T_k)
        caches = []
        for i, block in enumerate(self.blocks):
            x, cache = block.forward(x, mask, bias, past[i] if past else None, rng)
            caches.append(cache)
        top = None
        if self.norm is not None:
            x, top = self.norm.forward(x)
        return x, (caches, top)

    def backward(self, dy: Array, cache: Any) -> Array:
        caches, top = cache
        if self.norm is not None:
            dy = self.norm.backward(dy, top)
        for block, block_cache in zip(reversed(self.blocks), reversed(caches), strict=True):
            dy = block.backward(dy, block_cache)
        return dy

    def maps(self, cache: Any) -> list[Array]:
        """The attention weights of each block, (B, h, T, T)."""
        return [block.map(block_cache) for block, block_cache in zip(self.blocks, cache[0], strict=True)]


def as_ids(ids: Any, name: str, ndim: int = 2) -> Ids:
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu" or ids.ndim != ndim:
        raise ValueError(f"{name} is {ids.dtype} {ids.shape}; expected integers with {ndim} axes")
    return ids


def see_real(ids: Ids, pad: int, dtype: DTypeLike) -> Array | None:
    """Hides padding: 1 where there is a symbol, (B, 1, 1, T); None if there is no padding at all."""
    real = ids != pad
    return None if real.all() else real[:, None, None, :].astype(dtype)


def see_past(T_q: int, T_k: int, dtype: DTypeLike) -> Array | None:
    """Hides the future: 1 at and before each position, (T_q, T_k); None for a single query, which is the last."""
    return None if T_q == 1 else causal_mask(T_q, T_k).astype(dtype)
