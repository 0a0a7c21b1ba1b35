"""Trainable layers: thin, around the functions of `ops` and `attention`.

`forward(x) -> (y, cache)`, `backward(dy, cache) -> dx`. Caches are returned, never kept, so that a layer can be used
many times before `backward`. Parameters add up their gradients in `Param.grad`, until a step of training clears them.

With a random generator as `rng`, `forward` drops out what `dropout` says; without, it drops nothing.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lesson_utils import ops, positions
from lesson_utils._checks import Array, Mask, as_heads, as_size
from lesson_utils.attention import AttentionCache, attention_backward, attention_forward

NormPlace = Literal["pre", "post", "none"]
Rng = np.random.Generator


class Param:
    """A trainable array and the gradient that has been added up for it."""

    def __init__(self, value: Array) -> None:
        self.value = value
        self.grad = np.zeros_like(value)


class Layer:
    """Has parameters, of its own or in layers that are its attributes."""

    def params(self) -> dict[str, Param]:
        """All parameters by dotted name, such as "blocks.0.norm.gamma"; one that is shared appears once."""
        found: dict[str, Param] = {}
        for name, param in _walk(self, ""):
            if all(param is not other for other in found.values()):
                found[name] = param
        return found

    def num_params(self) -> int:
        return sum(param.value.size for param in self.params().values())


def _walk(thing: object, name: str) -> Iterator[tuple[str, Param]]:
    if isinstance(thing, Param):
        yield name, thing
    elif isinstance(thing, Layer):
        for key, value in vars(thing).items():
            yield from _walk(value, f"{name}.{key}" if name else key)
    elif isinstance(thing, list | tuple):
        for i, value in enumerate(thing):
            yield from _walk(value, f"{name}.{i}")


def glorot(d_in: int, d_out: int, rng: Rng, dtype: DTypeLike = np.float32) -> Param:
    """A matrix (d_in, d_out) that keeps the size of signals and of gradients. Source: Glorot and Bengio (2010)."""
    limit = math.sqrt(6 / (d_in + d_out))
    return Param(rng.uniform(-limit, limit, (d_in, d_out)).astype(dtype))


def normal(d_in: int, d_out: int, rng: Rng, dtype: DTypeLike = np.float32) -> Param:
    """A matrix (d_in, d_out) of variance 1/d_in, which keeps the size of signals. Source: LeCun et al. (1998)."""
    return Param((rng.normal(size=(d_in, d_out)) / math.sqrt(d_in)).astype(dtype))


class Linear(Layer):
    """y = x W + b: (..., d_in) → (..., d_out). W begins as `glorot` or `normal` makes it."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        rng: Rng,
        bias: bool = True,
        dtype: DTypeLike = np.float32,
        init: Callable[..., Param] = glorot,
    ) -> None:
        d_in, d_out = as_size(d_in, "d_in"), as_size(d_out, "d_out")
        self.W = init(d_in, d_out, rng, dtype)
        self.b = Param(np.zeros(d_out, dtype)) if bias else None

    def forward(self, x: Array) -> tuple[Array, Any]:
        return ops.linear_forward(x, self.W.value, None if self.b is None else self.b.value)

    def backward(self, dy: Array, cache: Any) -> Array:
        dx, dW, db = ops.linear_backward(dy, cache)
        self.W.grad += dW
        if self.b is not None:
            self.b.grad += db
        return dx


class Embedding(Layer):
    """One vector a symbol: ids (...) → (..., d_model), times `scale`. Its table can serve as output layer, too.

    The table begins with numbers of size 1/scale, so that the vectors are of size 1. Default: √d_model.

    Source: Vaswani et al. (2017), section 3.4.
    """

    def __init__(
        self, V: int, d_model: int, rng: Rng, dtype: DTypeLike = np.float32, scale: float | None = None
    ) -> None:
        V, d_model = as_size(V, "V"), as_size(d_model, "d_model")
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.table = Param((rng.normal(size=(V, d_model)) / self.scale).astype(dtype))

    def forward(self, ids: NDArray[np.integer]) -> tuple[Array, Any]:
        y, cache = ops.embedding_forward(ids, self.table.value)
        return y * self.scale, cache

    def backward(self, dy: Array, cache: Any) -> None:
        self.table.grad += ops.embedding_backward(dy, cache) * self.scale

    def logits_forward(self, x: Array) -> tuple[Array, Any]:
        """Scores of all symbols, (..., d_model) → (..., V): the dot product with each vector of the table."""
        return ops.linear_forward(x, self.table.value.T)

    def logits_backward(self, dlogits: Array, cache: Any) -> Array:
        dx, dW, _ = ops.linear_backward(dlogits, cache)
        self.table.grad += dW.T
        return dx


class LayerNorm(Layer):
    """Layer norm with its gamma and beta. Source: Ba et al. (2016)."""

    def __init__(
        self, d_model: int, eps: float = 1e-5, eps_inside_root: bool = True, dtype: DTypeLike = np.float32
    ) -> None:
        self.gamma = Param(np.ones(as_size(d_model, "d_model"), dtype))
        self.beta = Param(np.zeros(d_model, dtype))
        self.eps, self.eps_inside_root = eps, eps_inside_root

    def forward(self, x: Array) -> tuple[Array, Any]:
        return ops.layer_norm_forward(x, self.gamma.value, self.beta.value, self.eps, self.eps_inside_root)

    def backward(self, dy: Array, cache: Any) -> Array:
        dx, dgamma, dbeta = ops.layer_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return dx


class RMSNorm(Layer):
    """Root-mean-square norm with its gamma. Source: Zhang and Sennrich (2019)."""

    def __init__(self, d_model: int, eps: float = 1e-5, dtype: DTypeLike = np.float32) -> None:
        self.gamma = Param(np.ones(as_size(d_model, "d_model"), dtype))
        self.eps = eps

    def forward(self, x: Array) -> tuple[Array, Any]:
        return ops.rms_norm_forward(x, self.gamma.value, self.eps)

    def backward(self, dy: Array, cache: Any) -> Array:
        dx, dgamma = ops.rms_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        return dx


class FeedForward(Layer):
    """The same small network at every position: widen to d_ff, bend, narrow to d_model.

    With "swiglu" there are two wide projections, one the switch of the other, in one matrix.

    Source: Vaswani et al. (2017), equation 2; Shazeer (2020) for SwiGLU.
    """

    def __init__(
        self, d_model: int, d_ff: int, rng: Rng, activation: str = "relu", dtype: DTypeLike = np.float32
    ) -> None:
        if activation not in ("relu", "gelu", "swiglu"):
            raise ValueError(f"activation={activation!r} is not known; choose 'relu', 'gelu' or 'swiglu'")
        self.activation = activation
        self.wide = Linear(d_model, 2 * d_ff if activation == "swiglu" else d_ff, rng, dtype=dtype)
        self.narrow = Linear(d_ff, d_model, rng, dtype=dtype)

    def forward(self, x: Array) -> tuple[Array, Any]:
        hidden, wide = self.wide.forward(x)  # (..., d_ff)
        bend: Any
        if self.activation == "swiglu":
            gate, value = np.split(hidden, 2, axis=-1)
            hidden, bend = ops.swiglu_forward(gate, value)
        elif self.activation == "relu":
            hidden, bend = ops.relu_forward(hidden)
        else:
            hidden, bend = ops.gelu_forward(hidden)
        y, narrow = self.narrow.forward(hidden)  # (..., d_model)
        return y, (wide, bend, narrow)

    def backward(self, dy: Array, cache: Any) -> Array:
        wide, bend, narrow = cache
        dhidden = self.narrow.backward(dy, narrow)
        if self.activation == "swiglu":
            dhidden = np.concatenate(ops.swiglu_backward(dhidden, bend), axis=-1)
        elif self.activation == "relu":
            dhidden = ops.relu_backward(dhidden, bend)
        else:
            dhidden = ops.gelu_backward(dhidden, bend)
        return self.wide.backward(dhidden, wide)


class MultiHead(Layer):
    """Multi-head attention, self- or cross-, with the matrices of `attention.multi_head_attention`.

    Args:
        rotary_base: turn queries and keys by their position (RoPE), with this base.
        scale: the factor on the scores. Default: 1/√d_k.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        rng: Rng,
        rotary_base: float | None = None,
        scale: float | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        d_model = as_size(d_model, "d_model")
        num_heads = as_heads(num_heads, d_model, "d_model")
        self.W_Q, self.W_K, self.W_V, self.W_O = (glorot(d_model, d_model, rng, dtype) for _ in range(4))
        self.num_heads, self.rotary_base, self.scale = num_heads, rotary_base, scale

    def forward(
        self,
        x: Array,
        memory: Array | None = None,
        mask: Array | Mask | None = None,
        bias: Array | None = None,
        past: "KeyValueCache | None" = None,
    ) -> tuple[Array, Any]:
        """What each position of x takes from x, or from `memory`.

        Args:
            x: (B, T_q, d_model).
            memory: (B, T_k, d_model), for cross-attention.
            mask: True = may attend, broadcastable to (B, h, T_q, T_k).
            bias: added to the scores, broadcastable to (B, h, T_q, T_k).
            past: keys and values of earlier positions; those of x are added to them. For decoding, not for training.
        """
        if memory is None:
            # One product for all three is faster than three: it pays for putting the matrices side by side.
            W = np.concatenate([self.W_Q.value, self.W_K.value, self.W_V.value], axis=1)
            projected, _ = ops.linear_forward(x, W)  # (B, T, 3 d_model)
            Q, K, V = self._split(projected, 3)  # (B, h, T, d_k)
        else:
            W = np.concatenate([self.W_K.value, self.W_V.value], axis=1)
            (Q,) = self._split(ops.linear_forward(x, self.W_Q.value)[0], 1)  # (B, h, T_q, d_k)
            K, V = self._split(ops.linear_forward(memory, W)[0], 2)  # (B, h, T_k, d_k)
        start = 0 if past is None else past.length
        if self.rotary_base is not None:
            at = np.arange(start, start + x.shape[1])
            Q, K = positions.rotary(Q, at, self.rotary_base), positions.rotary(K, at, self.rotary_base)
        if past is not None:
            K, V = past.append(K, V)
        joined = np.empty(x.shape, x.dtype)
        (heads,) = self._split(joined, 1)  # a view: what is written to the heads is joined already
        _, attended = attention_forward(Q, K, V, mask, self.scale, bias, out=heads)
        y, _ = ops.linear_forward(joined, self.W_O.value)  # (B, T_q, d_model)
        return y, (x, memory, W, attended, joined)

    def backward(self, dy: Array, cache: Any) -> Any:
        """dx; for cross-attention, dx and dmemory."""
        x, memory, W, attended, joined = cache
        djoined, dW_O, _ = ops.linear_backward(dy, (joined, self.W_O.value))
        self.W_O.grad += dW_O
        (dheads,) = self._split(djoined, 1)  # (B, h, T_q, d_k)
        # Views again: the gradients of all heads are written where the products below want them.
        B, T_q, d_model = x.shape
        if memory is None:
            dprojected = np.empty((B, T_q, 3 * d_model), x.dtype)
            dQKV = tuple(self._split(dprojected, 3))
        else:
            dprojected_q = np.empty(x.shape, x.dtype)
            dprojected = np.empty((B, memory.shape[1], 2 * d_model), x.dtype)
            dQKV = (*self._split(dprojected_q, 1), *self._split(dprojected, 2))
        attention_backward(dheads, attended, out=dQKV)
        if self.rotary_base is not None:
            for turned in dQKV[:2]:
                turned[...] = positions.rotary_backward(turned, np.arange(turned.shape[2]), self.rotary_base)
        if memory is None:
            dx, dW, _ = ops.linear_backward(dprojected, (x, W))
            self._add(dW, self.W_Q, self.W_K, self.W_V)
            return dx
        dx, dW, _ = ops.linear_backward(dprojected_q, (x, self.W_Q.value))
        self._add(dW, self.W_Q)
        dmemory, dW, _ = ops.linear_backward(dprojected, (memory, W))
        self._add(dW, self.W_K, self.W_V)
        return dx, dmemory

    def _split(self, x: Array, parts: int) -> Array:
        """(B, T, parts · d_model) → (parts, B, h, T, d_k), a view."""
        B, T, width = x.shape
        return x.reshape(B, T, parts, self.num_heads, width // parts // self.num_heads).transpose(2, 0, 3, 1, 4)

    def _add(self, dW: Array, *params: Param) -> None:
        """Add the gradients of matrices that stood side by side."""
        for param, grad in zip(params, np.split(dW, len(params), axis=1), strict=True):
            param.grad += grad


def attention_map(cache: Any) -> Array:
    """The weights (B, h, T_q, T_k) in a cache of `MultiHead.forward`."""
    attended: AttentionCache = cache[3]
    return attended.weights


class KeyValueCache:
    """Keys and values of the positions decoded so far, with room for `capacity` of them."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.length = as_size(capacity, "capacity"), 0
        self.K = self.V = np.empty(0, np.float32)

    def append(self, K: Array, V: Array) -> tuple[Array, Array]:
        """Add (B, h, T, d_k) each; returns all there are, (B, h, length, d_k)."""
        B, h, T, d_k = K.shape
        if self.length == 0:
            self.K, self.V = np.empty((2, B, h, self.capacity, d_k), K.dtype)
        end = self.length + T
        if end > self.capacity:
            raise ValueError(f"no room for {T} more positions: {self.length} of {self.capacity} are taken")
        self.K[:, :, self.length : end], self.V[:, :, self.length : end] = K, V
        self.length = end
        return self.K[:, :, :end], self.V[:, :, :end]


class Residual(Layer):
    """A layer with its norm, its dropout and the way around it: x + f(norm(x)), or norm(x + f(x)).

    Args:
        norm: "pre", "post", or "none".
        way_around: False leaves "x +" out. For experiments.

    Source: He et al. (2016); Vaswani et al. (2017), section 3.1 ("post"); Xiong et al. (2020) for both.
    """

    def __init__(
        self,
        inner: Any,
        d_model: int,
        norm: NormPlace = "pre",
        dropout: float = 0.0,
        way_around: bool = True,
        dtype: DTypeLike = np.float32,
    ) -> None:
        if norm not in ("pre", "post", "none"):
            raise ValueError(f"norm={norm!r} is not known; choose 'pre', 'post' or 'none'")
        self.inner, self.place, self.dropout, self.way_around = inner, norm, dropout, way_around
        self.norm = None if norm == "none" else LayerNorm(d_model, dtype=dtype)

    def forward(self, x: Array, *arguments: Any, rng: Rng | None = None) -> tuple[Array, Any]:
        norm_cache = None
        y = x
        if self.norm and self.place == "pre":
            y, norm_cache = self.norm.forward(y)
        y, inner_cache = self.inner.forward(y, *arguments)
        y, keep = ops.dropout_forward(y, self.dropout, rng)
        if self.way_around:
            y += x
        if self.norm and self.place == "post":
            y, norm_cache = self.norm.forward(y)
        return y, (norm_cache, inner_cache, keep)

    def backward(self, dy: Array, cache: Any) -> Any:
        """dx; with what else the inner layer returns, a tuple."""
        norm_cache, inner_cache, keep = cache
        if self.norm and self.place == "post":
            dy = self.norm.backward(dy, norm_cache)
        dx = self.inner.backward(ops.dropout_backward(dy, keep), inner_cache)
        dx, *others = dx if isinstance(dx, tuple) else (dx,)
        if self.norm and self.place == "pre":
            dx = self.norm.backward(dx, norm_cache)
        if self.way_around:
            dx += dy
        return (dx, *others) if others else dx


class EncoderLayer(Layer):
    """Self-attention, then a feed-forward network. With a causal mask, it is the layer of a GPT.

    Source: Vaswani et al. (2017), section 3.1 and figure 1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        rng: Rng,
        norm: NormPlace = "pre",
        activation: str = "relu",
        dropout: float = 0.0,
        rotary_base: float | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        attention = MultiHead(d_model, num_heads, rng, rotary_base, dtype=dtype)
        self.attention = Residual(attention, d_model, norm, dropout, dtype=dtype)
        feed_forward = FeedForward(d_model, d_ff, rng, activation, dtype)
        self.feed_forward = Residual(feed_forward, d_model, norm, dropout, dtype=dtype)

    def forward(
        self,
        x: Array,
        mask: Array | Mask | None = None,
        bias: Array | None = None,
        past: KeyValueCache | None = None,
        rng: Rng | None = None,
    ) -> tuple[Array, Any]:
        """x (B, T, d_model) → the same shape. Masks and biases as for `MultiHead`."""
        x, attention = self.attention.forward(x, None, mask, bias, past, rng=rng)
        x, feed_forward = self.feed_forward.forward(x, rng=rng)
        return x, (attention, feed_forward)

    def backward(self, dy: Array, cache: Any) -> Array:
        attention, feed_forward = cache
        dx: Array = self.attention.backward(self.feed_forward.backward(dy, feed_forward), attention)
        return dx

    def map(self, cache: Any) -> Array:
        """The attention weights of a forward pass, (B, h, T, T)."""
        return attention_map(cache[0][1])


class DecoderLayer(Layer):
    """Causal self-attention, cross-attention to the encoder's output, then a feed-forward network.

    Source: Vaswani et al. (2017), section 3.1 and figure 1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        rng: Rng,
        norm: NormPlace = "pre",
        activation: str = "relu",
        dropout: float = 0.0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        attention, cross = (MultiHead(d_model, num_heads, rng, dtype=dtype) for _ in range(2))
        self.attention = Residual(attention, d_model, norm, dropout, dtype=dtype)
        self.cross = Residual(cross, d_model, norm, dropout, dtype=dtype)
        feed_forward = FeedForward(d_model, d_ff, rng, activation, dtype)
        self.feed_forward = Residual(feed_forward, d_model, norm, dropout, dtype=dtype)

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | Mask | None = None,
        memory_mask: Array | Mask | None = None,
        past: KeyValueCache | None = None,
        rng: Rng | None = None,
    ) -> tuple[Array, Any]:
        """x (B, T, d_model) and memory (B, S, d_model) → (B, T, d_model)."""
        x, attention = self.attention.forward(x, None, mask, None, past, rng=rng)
        x, cross = self.cross.forward(x, memory, memory_mask, rng=rng)
        x, feed_forward = self.feed_forward.forward(x, rng=rng)
        return x, (attention, cross, feed_forward)

    def backward(self, dy: Array, cache: Any) -> tuple[Array, Array]:
        """dx and dmemory."""
        attention, cross, feed_forward = cache
        dx, dmemory = self.cross.backward(self.feed_forward.backward(dy, feed_forward), cross)
        return self.attention.backward(dx, attention), dmemory

    def maps(self, cache: Any) -> tuple[Array, Array]:
        """The weights of self-attention, (B, h, T, T), and of cross-attention, (B, h, T, S)."""
        return attention_map(cache[0][1]), attention_map(cache[1][1])
