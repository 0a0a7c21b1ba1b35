"""The blocks of a Transformer: layers, each with its norm, its dropout and its residual connection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import DTypeLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Mask, as_choice, as_heads, as_size
from lesson_utils.maths.layers.basic import (
    ACTIVATIONS,
    FeedForward,
    FeedForwardCache,
    Layer,
    LayerNorm,
    NormCache,
    RMSNorm,
    Rng,
)
from lesson_utils.maths.layers.cache import KeyValueCache
from lesson_utils.maths.layers.heads import HeadsCache, MultiHead
from lesson_utils.maths.positions import Rotary

NormPlace = Literal["pre", "post", "none"]
NORM_KINDS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """Sizes and choices of a layer.

    Args:
        num_kv_heads: how many heads keys and values have; see `MultiHead`. Default: num_heads.
        d_ff: width of the feed-forward network. Default: 4 d_model.
        norm: "pre" (needs less warm-up), "post" (the paper's) or "none".
        norm_kind: "layer" (the paper's) or "rms".
        activation: "relu" (the paper's), "gelu" or "swiglu".
        dropout: the share of each sublayer's outputs that is dropped while training.
        rotary: turn queries and keys of self-attention by their position.
        dtype: float32 or float64, of all parameters.
    """

    d_model: int = 64
    num_heads: int = 4
    num_kv_heads: int | None = None
    d_ff: int | None = None
    norm: NormPlace = "pre"
    norm_kind: str = "layer"
    activation: str = "relu"
    dropout: float = 0.0
    rotary: Rotary | None = None
    dtype: DTypeLike = np.float32

    def __post_init__(self) -> None:
        heads = as_heads(self.num_heads, as_size(self.d_model, "d_model"), "d_model")
        if self.num_kv_heads is not None:
            as_heads(self.num_kv_heads, heads, "num_heads", "num_kv_heads")
        as_choice(self.norm, "norm", get_args(NormPlace))
        as_choice(self.norm_kind, "norm_kind", NORM_KINDS)
        as_choice(self.activation, "activation", ACTIVATIONS)
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={np.dtype(self.dtype)} must be float32 or float64")

    @property
    def rotation(self) -> Rotary | None:
        """The turn of queries and keys by their position, if there is one."""
        return self.rotary

    @property
    def ff_width(self) -> int:
        """The width of the feed-forward network."""
        return 4 * self.d_model if self.d_ff is None else as_size(self.d_ff, "d_ff")


def norm_of(config: LayerConfig) -> LayerNorm | RMSNorm:
    """Make a norm as the config asks for."""
    return NORM_KINDS[config.norm_kind](config.d_model, dtype=config.dtype)


class Sublayer(Protocol):
    def backward(self, dy: Array, cache: Any) -> Array: ...


L = TypeVar("L", bound=Sublayer)
C = TypeVar("C")


class ResidualCache(NamedTuple, Generic[C]):
    norm: NormCache | None
    inner: C
    keep: Array | None


class Residual(Layer, Generic[L]):
    """A layer with its norm, its dropout and its residual connection: x + f(norm(x)), or norm(x + f(x)).

    Args:
        skip: False leaves "x +" out. For experiments.

    Source: He et al. (2016); Vaswani et al. (2017), section 3.1 ("post"); Xiong et al. (2020) for both.
    """

    def __init__(self, inner: L, config: LayerConfig, skip: bool = True) -> None:
        self.inner, self.place, self.dropout, self.skip = inner, config.norm, config.dropout, skip
        self.norm = None if config.norm == "none" else norm_of(config)

    def forward(
        self, x: Array, f: Callable[[Array], tuple[Array, C]], rng: Rng | None = None
    ) -> tuple[Array, ResidualCache[C]]:
        """Return x + f(norm(x)) or norm(x + f(x)); `f` runs the inner layer, with whatever else that layer takes."""
        norm_cache = None
        y = x
        if self.norm and self.place == "pre":
            y, norm_cache = self.norm.forward(y)
        y, inner_cache = f(y)
        y, keep = ops.dropout_forward(y, self.dropout, rng)
        if self.skip:
            y += x
        if self.norm and self.place == "post":
            y, norm_cache = self.norm.forward(y)
        return y, ResidualCache(norm_cache, inner_cache, keep)

    def backward(self, dy: Array, cache: ResidualCache[Any]) -> Array:
        """Return dx."""
        dy, dinner = self._backward_after(dy, cache)
        return self._backward_before(self.inner.backward(dinner, cache.inner), dy, cache)

    def backward_cross(self: "Residual[MultiHead]", dy: Array, cache: ResidualCache[HeadsCache]) -> tuple[Array, Array]:
        """Return dx and dmemory, where the inner layer is cross-attention."""
        dy, dinner = self._backward_after(dy, cache)
        dx, dmemory = self.inner.backward_cross(dinner, cache.inner)
        return self._backward_before(dx, dy, cache), dmemory

    def _backward_after(self, dy: Array, cache: ResidualCache[Any]) -> tuple[Array, Array]:
        """Return the gradients at the sum x + f, and at the inner layer's output."""
        if self.norm and cache.norm and self.place == "post":
            dy = self.norm.backward(dy, cache.norm)
        return dy, ops.dropout_backward(dy, cache.keep)

    def _backward_before(self, dx: Array, dy: Array, cache: ResidualCache[Any]) -> Array:
        """Return dx from the gradients at the inner layer's input and at the sum."""
        if self.norm and cache.norm and self.place == "pre":
            dx = self.norm.backward(dx, cache.norm)
        if self.skip:
            dx += dy
        return dx


class EncoderCache(NamedTuple):
    attention: ResidualCache[HeadsCache]
    feed_forward: ResidualCache[FeedForwardCache]


class EncoderLayer(Layer):
    """Self-attention, then a feed-forward network. With a causal mask, it is the layer of a GPT.

        x = x + attention(norm(x))
        x = x + feed_forward(norm(x))

    Source: Vaswani et al. (2017), section 3.1 and figure 1.
    """

    def __init__(self, config: LayerConfig, rng: Rng | None) -> None:
        c = config
        heads = MultiHead(c.d_model, c.num_heads, rng, c.num_kv_heads, c.rotation, dtype=c.dtype)
        self.attention = Residual(heads, c)
        self.feed_forward = Residual(FeedForward(c.d_model, c.ff_width, rng, c.activation, c.dtype), c)

    def forward(
        self,
        x: Array,
        mask: Array | Mask | None = None,
        bias: Array | None = None,
        past: KeyValueCache | None = None,
        rng: Rng | None = None,
        last: bool = False,
    ) -> tuple[Array, EncoderCache]:
        """Return x (B, T, d_model) with what attention and the feed-forward network add.

        With `last`, return the last position only, (B, 1, d_model). The other arguments are those of `MultiHead`.
        """
        attend, feed = self.attention.inner.forward, self.feed_forward.inner.forward
        x, attention = self.attention.forward(x, lambda x: attend(x, None, mask, bias, past), rng)
        x, feed_forward = self.feed_forward.forward(x[:, -1:] if last else x, feed, rng)
        return x, EncoderCache(attention, feed_forward)

    def backward(self, dy: Array, cache: EncoderCache) -> Array:
        return self.attention.backward(self.feed_forward.backward(dy, cache.feed_forward), cache.attention)

    def map(self, cache: EncoderCache) -> Array:
        """Return the attention weights of a forward pass, (B, h, T, T)."""
        return cache.attention.inner.attended.weights


class DecoderCache(NamedTuple):
    attention: ResidualCache[HeadsCache]
    cross: ResidualCache[HeadsCache]
    feed_forward: ResidualCache[FeedForwardCache]


class DecoderLayer(Layer):
    """Causal self-attention, cross-attention to the encoder's output, then a feed-forward network.

    Source: Vaswani et al. (2017), section 3.1 and figure 1.
    """

    def __init__(self, config: LayerConfig, rng: Rng | None) -> None:
        c = config
        heads = MultiHead(c.d_model, c.num_heads, rng, c.num_kv_heads, c.rotation, dtype=c.dtype)
        cross = MultiHead(c.d_model, c.num_heads, rng, c.num_kv_heads, dtype=c.dtype)
        self.attention, self.cross = Residual(heads, c), Residual(cross, c)
        self.feed_forward = Residual(FeedForward(c.d_model, c.ff_width, rng, c.activation, c.dtype), c)

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | Mask | None = None,
        memory_mask: Array | Mask | None = None,
        past: KeyValueCache | None = None,
        rng: Rng | None = None,
    ) -> tuple[Array, DecoderCache]:
        """Return x (B, T, d_model) with what it takes from itself and from memory, (B, S, d_model)."""
        attend, look = self.attention.inner.forward, self.cross.inner.forward
        x, attention = self.attention.forward(x, lambda x: attend(x, None, mask, None, past), rng)
        x, cross = self.cross.forward(x, lambda x: look(x, memory, memory_mask), rng)
        x, feed_forward = self.feed_forward.forward(x, self.feed_forward.inner.forward, rng)
        return x, DecoderCache(attention, cross, feed_forward)

    def backward(self, dy: Array, cache: DecoderCache) -> tuple[Array, Array]:
        """Return dx and dmemory."""
        dx = self.feed_forward.backward(dy, cache.feed_forward)
        dx, dmemory = self.cross.backward_cross(dx, cache.cross)
        return self.attention.backward(dx, cache.attention), dmemory

    def maps(self, cache: DecoderCache) -> tuple[Array, Array]:
        """Return the weights of self-attention, (B, h, T, T), and of cross-attention, (B, h, T, S)."""
        return cache.attention.inner.attended.weights, cache.cross.inner.attended.weights
