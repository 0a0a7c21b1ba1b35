"""The parts that all Transformers share: tokens with positions at the bottom, then a stack of encoder layers.

An encoder is this stack; a GPT is this stack with a causal mask.
"""

from dataclasses import dataclass
from typing import NamedTuple

from numpy.typing import DTypeLike

from lesson_utils.maths import ops, positions
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array, Ids, Mask, as_choice, as_size
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
from lesson_utils.maths.layers.basic import EmbeddingCache, NormCache
from lesson_utils.maths.layers.blocks import EncoderCache
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
        cached: bool = True,
    ) -> tuple[Array, StackCache]:
        """Run all blocks: x (B, T, d_model) → the same shape. `past` holds a cache for each block, for decoding.

        Without `cached`, nothing that a block computed is kept: there are no maps and no way back. 200 tokens of a
        model of 30 layers then take a fifth less time, because each block finds the memory of the one before.
        """
        bias = None
        if self.config.positions == "alibi":
            T_k = past[0].length_with(x.shape[1]) if past else x.shape[1]
            bias = positions.alibi_bias(self.config.num_heads, x.shape[1], T_k).astype(x.dtype)  # (h, T_q, T_k)
        caches = []
        for i, block in enumerate(self.blocks):
            x, cache = block.forward(x, mask, bias, past[i] if past else None, rng)
            if cached:
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
