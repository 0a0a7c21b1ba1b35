"""Parameters, and the layers that work on each token by itself: linear, embedding, norms, feed-forward."""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids, as_choice, as_eps, as_number, as_size

ACTIVATIONS = ("relu", "gelu", "swiglu")
Rng = np.random.Generator
LinearCache = tuple[Array, Array]
EmbeddingCache = tuple[Ids, tuple[int, ...]]
NormCache = tuple[Array, ...]


class Param:
    """A trainable array and the gradient that has been added up for it."""

    def __init__(self, value: Array) -> None:
        self.value = value

    @cached_property
    def grad(self) -> Array:
        """Begin with zeros when the gradient is first asked for: a model that only answers never makes one."""
        return np.zeros(self.value.shape, self.value.dtype)


class Layer:
    """A thing with parameters, its own or those of layers that are its attributes."""

    def params(self) -> dict[str, Param]:
        """Return all parameters by dotted name, such as "blocks.0.norm.gamma"; a shared one appears once."""
        found: dict[str, Param] = {}
        for name, param in _walk(self, ""):
            if all(param is not other for other in found.values()):
                found[name] = param
        return found

    def num_params(self) -> int:
        """Count the numbers in all parameters."""
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


def glorot(d_in: int, d_out: int, rng: Rng | None, dtype: DTypeLike = np.float32) -> Param:
    """Draw a matrix (d_in, d_out) that keeps the size of signals and of gradients; without `rng`, leave it unfilled.

    Source: Glorot and Bengio (2010).
    """
    d_in, d_out = as_size(d_in, "d_in"), as_size(d_out, "d_out")
    if rng is None:
        return _unfilled(d_in, d_out, dtype)
    limit = math.sqrt(6 / (d_in + d_out))
    return Param(rng.uniform(-limit, limit, (d_in, d_out)).astype(dtype))


def normal(
    d_in: int, d_out: int, rng: Rng | None, dtype: DTypeLike = np.float32, divisor: float | None = None
) -> Param:
    """Draw a matrix (d_in, d_out) of standard deviation 1/divisor; without `rng`, leave it unfilled.

    The default divisor, √d_in, keeps the size of signals. Source: LeCun et al. (1998).
    """
    d_in, d_out = as_size(d_in, "d_in"), as_size(d_out, "d_out")
    divisor = math.sqrt(d_in) if divisor is None else as_number(divisor, "divisor")
    if divisor <= 0:
        raise ValueError(f"divisor={divisor} must be above 0")
    if rng is None:
        return _unfilled(d_in, d_out, dtype)
    return Param((rng.normal(size=(d_in, d_out)) / divisor).astype(dtype))


def _unfilled(d_in: int, d_out: int, dtype: DTypeLike) -> Param:
    """Return a shape that takes no memory, not even in a browser, until a file's array takes its place."""
    return Param(np.broadcast_to(np.zeros((), dtype), (d_in, d_out)))


class Linear(Layer):
    """y = x W + b: (..., d_in) → (..., d_out). W begins as `glorot` or `normal` makes it."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        rng: Rng | None,
        bias: bool = True,
        dtype: DTypeLike = np.float32,
        init: Callable[..., Param] = glorot,
    ) -> None:
        d_in, d_out = as_size(d_in, "d_in"), as_size(d_out, "d_out")
        self.W = init(d_in, d_out, rng, dtype)
        self.b = Param(np.zeros(d_out, dtype)) if bias else None

    def forward(self, x: Array) -> tuple[Array, LinearCache]:
        return ops.linear_forward(x, self.W.value, None if self.b is None else self.b.value)

    def backward(self, dy: Array, cache: LinearCache) -> Array:
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
        self, V: int, d_model: int, rng: Rng | None, dtype: DTypeLike = np.float32, scale: float | None = None
    ) -> None:
        V, d_model = as_size(V, "V"), as_size(d_model, "d_model")
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.table = normal(V, d_model, rng, dtype, self.scale)

    def forward(self, ids: Ids) -> tuple[Array, EmbeddingCache]:
        y, cache = ops.embedding_forward(ids, self.table.value)
        return y * self.scale, cache

    def backward(self, dy: Array, cache: EmbeddingCache) -> None:
        self.table.grad += ops.embedding_backward(dy, cache) * self.scale

    def logits_forward(self, x: Array) -> tuple[Array, LinearCache]:
        """Return scores of all symbols, (..., d_model) → (..., V): the dot product with each vector of the table."""
        return ops.linear_forward(x, self.table.value.T)

    def logits_backward(self, dlogits: Array, cache: LinearCache) -> Array:
        dx, dW, _ = ops.linear_backward(dlogits, cache)
        self.table.grad += dW.T
        return dx


class LayerNorm(Layer):
    """Layer norm with its gamma and beta. Source: Ba et al. (2016)."""

    def __init__(self, d_model: int, eps: float = 1e-5, dtype: DTypeLike = np.float32) -> None:
        self.gamma = Param(np.ones(as_size(d_model, "d_model"), dtype))
        self.beta = Param(np.zeros(d_model, dtype))
        self.eps = as_eps(eps)

    def forward(self, x: Array) -> tuple[Array, NormCache]:
        return ops.layer_norm_forward(x, self.gamma.value, self.beta.value, self.eps)

    def backward(self, dy: Array, cache: NormCache) -> Array:
        dx, dgamma, dbeta = ops.layer_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return dx


class RMSNorm(Layer):
    """Root-mean-square norm with its gamma. Source: Zhang and Sennrich (2019)."""

    def __init__(self, d_model: int, eps: float = 1e-5, dtype: DTypeLike = np.float32) -> None:
        self.gamma = Param(np.ones(as_size(d_model, "d_model"), dtype))
        self.eps = as_eps(eps)

    def forward(self, x: Array) -> tuple[Array, NormCache]:
        return ops.rms_norm_forward(x, self.gamma.value, self.eps)

    def backward(self, dy: Array, cache: NormCache) -> Array:
        dx, dgamma = ops.rms_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        return dx


class FeedForwardCache(NamedTuple):
    wide: LinearCache
    active: Any  # of the activation
    narrow: LinearCache


class FeedForward(Layer):
    """The same small network at every position: widen to d_ff, activate, narrow to d_model.

    With "swiglu" there are two wide projections, one the switch of the other, in one matrix.

    Source: Vaswani et al. (2017), equation 2; Shazeer (2020) for SwiGLU.
    """

    def __init__(
        self, d_model: int, d_ff: int, rng: Rng | None, activation: str = "relu", dtype: DTypeLike = np.float32
    ) -> None:
        self.activation = as_choice(activation, "activation", ACTIVATIONS)
        self.wide = Linear(d_model, 2 * d_ff if activation == "swiglu" else d_ff, rng, dtype=dtype)
        self.narrow = Linear(d_ff, d_model, rng, dtype=dtype)

    def forward(self, x: Array) -> tuple[Array, FeedForwardCache]:
        hidden, wide = self.wide.forward(x)  # (..., d_ff)
        active: Any
        if self.activation == "swiglu":
            d_ff = hidden.shape[-1] // 2
            hidden, active = ops.swiglu_forward(hidden[..., :d_ff], hidden[..., d_ff:])
        elif self.activation == "relu":
            hidden, active = ops.relu_forward(hidden)
        else:
            hidden, active = ops.gelu_forward(hidden)
        y, narrow = self.narrow.forward(hidden)  # (..., d_model)
        return y, FeedForwardCache(wide, active, narrow)

    def backward(self, dy: Array, cache: FeedForwardCache) -> Array:
        wide, active, narrow = cache
        dhidden = self.narrow.backward(dy, narrow)
        if self.activation == "swiglu":
            dhidden = np.concatenate(ops.swiglu_backward(dhidden, active), axis=-1)
        elif self.activation == "relu":
            dhidden = ops.relu_backward(dhidden, active)
        else:
            dhidden = ops.gelu_backward(dhidden, active)
        return self.wide.backward(dhidden, wide)
