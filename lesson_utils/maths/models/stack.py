"""What all Transformers share: tokens with positions at the bottom, then a stack of encoder layers.

An encoder is this stack; a GPT is this stack with a causal mask.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import DTypeLike

from lesson_utils.maths import ops, positions
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array, Ids, Mask, as_choice, as_size
from lesson_utils.maths.layers import (
    Attend,
    Embedding,
    EncoderLayer,
    KeyValueCache,
    KnockOut,
    Layer,
    LayerConfig,
    Param,
    Rng,
    norm_of,
)

POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")
HeadsOf = Mapping[int, Collection[int]]  # layer -> heads, both counted from 0


@dataclass(frozen=True, kw_only=True)
class StackConfig(LayerConfig):
    """Sizes and choices of a stack, and those of its layers, see `LayerConfig`.

    Args:
        vocab: how many symbols, the special ones included.
        dropout: share of what each sublayer and the embedding give that is dropped while training.
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
        if self.positions == "rotary" and self.rotary is None:
            object.__setattr__(self, "rotary", positions.Rotary())  # the dataclass is frozen
        elif self.positions != "rotary" and self.rotary is not None:
            raise ValueError(f"rotary={self.rotary} needs positions='rotary', not {self.positions!r}; else rotary=None")
        super().__post_init__()


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


class StackCache(NamedTuple):
    blocks: list[Any]
    norm: Any
    stream: Array  # what the blocks gave, before the last norm


class Stack(Layer):
    """Encoder layers, one on the other; with pre-norm, one more norm at the top."""

    def __init__(self, config: StackConfig, rng: Rng) -> None:
        self.config = config
        self.blocks = [EncoderLayer(config, rng) for _ in range(config.num_layers)]
        self.norm = norm_of(config) if config.norm == "pre" else None

    def forward(
        self,
        x: Array,
        mask: Array | Mask | None = None,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
        knock_out: HeadsOf | None = None,
        knock_out_by: str = "zero",
        attend: Attend | None = None,
        cached: bool = True,
    ) -> tuple[Array, StackCache]:
        """x (B, T, d_model) → the same shape. `past` holds a cache for each block, for decoding.

        With `knock_out`, outputs of these heads are replaced: by "zero", or by their "mean" over batch and positions.
        With `attend`, all heads use this function, see `MultiHead`. Without `cached`, what each block computed is let
        go of: there are no maps and no way back, and 200 tokens of a model of 30 layers take a fifth less time, because
        each block finds the memory of the one before.
        """
        bias = None
        if self.config.positions == "alibi":
            T_k = past[0].length_with(x.shape[1]) if past else x.shape[1]
            bias = positions.alibi_bias(self.config.num_heads, x.shape[1], T_k).astype(x.dtype)  # (h, T_q, T_k)
        knocked = knocked_out(knock_out, knock_out_by, len(self.blocks), self.config.num_heads)
        caches = []
        for i, block in enumerate(self.blocks):
            x, cache = block.forward(x, mask, bias, past[i] if past else None, rng, knocked.get(i), attend)
            if cached:
                caches.append(cache)
            del cache
        stream, top = x, None
        if self.norm is not None:
            x, top = self.norm.forward(x)
        return x, StackCache(caches, top, stream)

    def backward(self, dy: Array, cache: StackCache) -> Array:
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for block, block_cache in zip(reversed(self.blocks), reversed(cache.blocks), strict=True):
            dy = block.backward(dy, block_cache)
        return dy

    def maps(self, cache: StackCache) -> list[Array]:
        """The attention weights of each block, (B, h, T, T).

        Raises:
            ValueError: that pass kept none.
        """
        if len(cache.blocks) < len(self.blocks):
            raise ValueError("that pass kept no maps; run it again without last=True")
        return [block.map(block_cache) for block, block_cache in zip(self.blocks, cache.blocks, strict=True)]


def knocked_out(heads_of: HeadsOf | None, by: str, layers: int, num_heads: int) -> dict[int, KnockOut]:
    """What each layer is given of `knock_out`.

    Raises:
        ValueError: there is no such layer or head, or no such way.
    """
    as_choice(by, "knock_out_by", ("zero", "mean"))
    for layer, heads in (heads_of or {}).items():
        if layer not in range(layers) or any(head not in range(num_heads) for head in heads):
            raise ValueError(
                f"knock_out={dict(heads_of or {})} names heads that are not there; expected a layer in "
                f"0…{layers - 1} with heads in 0…{num_heads - 1}, such as {{0: [{num_heads - 1}]}}"
            )
    return {layer: KnockOut(tuple(heads), by) for layer, heads in (heads_of or {}).items()}


def see_real(ids: Ids, pad: int, dtype: DTypeLike) -> Array | None:
    """Hides padding: 1 where there is a symbol, (B, 1, 1, T); None if there is no padding at all."""
    real = ids != pad
    return None if real.all() else real[:, None, None, :].astype(dtype)


def see_past(T_q: int, T_k: int, dtype: DTypeLike) -> Array | None:
    """Hides the future: 1 at and before each position, (T_q, T_k); None for a single query, which is the last."""
    return None if T_q == 1 else causal_mask(T_q, T_k).astype(dtype)
