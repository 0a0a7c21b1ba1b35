"""Operations on the features of each token: products, tables, norms, activations, dropout."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Array, Ids, as_array, as_eps, as_float, as_floats, as_ids

GELU_RATE = math.sqrt(2 / math.pi)

# --- Products and tables ----------------------------------------------------------------------------------------------


def linear(x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None) -> Array:
    """Return x W + b.

    Args:
        x: (..., d_in).
        W: (d_in, d_out).
        b: (d_out,), or None.

    Returns:
        (..., d_out).
    """
    x, W, *rest = as_floats(x=x, W=W) if b is None else as_floats(x=x, W=W, b=b)
    return linear_forward(x, W, *rest)[0]


def linear_forward(x: Array, W: Array, b: Array | None = None) -> tuple[Array, tuple[Array, Array]]:
    if x.ndim < 1 or W.ndim != 2 or x.shape[-1] != W.shape[0]:
        raise ValueError(f"x {x.shape} and W {W.shape} do not fit; expected (..., d_in) and (d_in, d_out)")
    if b is not None and b.shape != W.shape[1:]:
        raise ValueError(f"b has shape {b.shape}; expected {W.shape[1:]}")
    y = rows(x) @ W  # (N, d_out): one large product instead of one for each leading index
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), (x, W)


def linear_backward(dy: Array, cache: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Return dx, dW, db; a layer without b ignores db."""
    x, W = cache
    dy = rows(dy)  # (N, d_out)
    return (dy @ W.T).reshape(x.shape), rows(x).T @ dy, column_sums(dy)


def embedding(ids: ArrayLike, table: ArrayLike) -> Array:
    """Return the rows of `table` (V, d_model) at `ids` (...): shape (..., d_model)."""
    (table,) = as_floats(table=table)
    return embedding_forward(as_array(ids, "ids"), table)[0]


def embedding_forward(ids: Ids, table: Array) -> tuple[Array, tuple[Ids, tuple[int, ...]]]:
    if table.ndim != 2:
        raise ValueError(f"table has shape {table.shape}; expected (V, d_model)")
    return table[as_ids(ids, "ids", len(table))], (ids, table.shape)


def embedding_backward(dy: Array, cache: tuple[Ids, tuple[int, ...]]) -> Array:
    """Return the gradient of the table: the rows of dy, added up by symbol."""
    ids, shape = cache
    dtable = np.zeros(shape, dy.dtype)
    np.add.at(dtable, ids, dy)  # not dtable[ids] += dy, which counts a symbol once
    return dtable


# --- Norms ------------------------------------------------------------------------------------------------------------


def layer_norm(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5, eps_inside_root: bool = True
) -> Array:
    """Give each token's features mean 0 and variance 1, then scale and shift them: gamma · (x − μ) / σ + beta.

    Args:
        x: (..., d_model). μ and σ (divided by d_model, not d_model − 1) are taken over the last axis.
        gamma, beta: (d_model,).
        eps: keeps a constant row from dividing by 0.
        eps_inside_root: True (the default, as in libraries): (x − μ) / √(σ² + ε). False: (x − μ) / (σ + ε).

    Raises:
        ValueError: shapes or dtypes do not fit, the input is not finite, or eps is not positive.

    Source: Ba et al. (2016), equation 4.
    """
    x, gamma, beta = as_floats(x=x, gamma=gamma, beta=beta)
    _check_features(x, gamma=gamma, beta=beta)
    eps = as_eps(eps)
    if eps_inside_root:
        return layer_norm_forward(x, gamma, beta, eps)[0]
    return gamma * (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + eps) + beta


def layer_norm_forward(x: Array, gamma: Array, beta: Array, eps: float = 1e-5) -> tuple[Array, tuple[Array, ...]]:
    _check_features(x, gamma=gamma, beta=beta)
    n = x.shape[-1]
    centred = x - row_sums(x) / n
    rstd = 1 / np.sqrt(row_sums(centred * centred) / n + eps)  # (..., 1)
    normal = centred * rstd
    return normal * gamma + beta, (normal, rstd, gamma)


def layer_norm_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """Return dx, dgamma, dbeta. A change of x moves μ and σ as well: hence the two means that are taken off."""
    normal, rstd, gamma = cache
    n = dy.shape[-1]
    dnormal = dy * gamma
    dx = (dnormal - row_sums(dnormal) / n - normal * (row_sums(dnormal * normal) / n)) * rstd
    return dx, column_sums(dy * normal), column_sums(dy)


def rms_norm(x: ArrayLike, gamma: ArrayLike, eps: float = 1e-5) -> Array:
    """Return gamma · x / √(mean(x²) + ε): layer norm without the mean and without beta.

    Args:
        x: (..., d_model).
        gamma: (d_model,).

    Source: Zhang and Sennrich (2019), equation 4.
    """
    x, gamma = as_floats(x=x, gamma=gamma)
    _check_features(x, gamma=gamma)
    return rms_norm_forward(x, gamma, as_eps(eps))[0]


def rms_norm_forward(x: Array, gamma: Array, eps: float = 1e-5) -> tuple[Array, tuple[Array, ...]]:
    _check_features(x, gamma=gamma)
    rstd = 1 / np.sqrt(np.vecdot(x, x)[..., None] / x.shape[-1] + eps)  # (..., 1)
    normal = x * rstd
    return normal * gamma, (normal, rstd, gamma)


def rms_norm_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return dx, dgamma."""
    normal, rstd, gamma = cache
    dnormal = dy * gamma
    dx = (dnormal - normal * (row_sums(dnormal * normal) / dy.shape[-1])) * rstd
    return dx, column_sums(dy * normal)


def _check_features(x: Array, **parameters: Array) -> None:
    """Refuse parameters that do not fit x."""
    if x.ndim < 1 or x.shape[-1] == 0:
        raise ValueError(f"x has shape {x.shape}; expected (..., d_model) with d_model at least 1")
    for name, parameter in parameters.items():
        if parameter.shape != x.shape[-1:]:
            raise ValueError(f"{name} has shape {parameter.shape}; expected {x.shape[-1:]}, one for each feature of x")


# --- Activations, and dropout -----------------------------------------------------------------------------------------


def relu(x: ArrayLike) -> Array:
    """Return max(0, x)."""
    return relu_forward(as_floats(x=x)[0])[0]


def relu_forward(x: Array) -> tuple[Array, Array]:
    y = np.maximum(x, 0)
    return y, y


def relu_backward(dy: Array, y: Array) -> Array:
    return dy * (y > 0)


def gelu(x: ArrayLike) -> Array:
    """Return x Φ(x), with Φ in its usual approximation: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).

    Source: Hendrycks and Gimpel (2016), section 2.
    """
    with np.errstate(over="ignore"):  # x³ may overflow; tanh is 1 long before
        return gelu_forward(as_floats(x=x)[0])[0]


def gelu_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    t = np.tanh(GELU_RATE * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1 + t), (x, t)


def gelu_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """Return dy · (Φ + x Φ′), with Φ = (1 + t) / 2."""
    x, t = cache
    dt = (1 - t * t) * GELU_RATE * (1 + 3 * 0.044715 * x * x)
    return 0.5 * dy * (1 + t + x * dt)


def swiglu(gate: ArrayLike, value: ArrayLike) -> Array:
    """Return gate · σ(gate) · value: a smooth switch on each feature.

    Args:
        gate, value: two projections of the same input, of the same shape.

    Source: Shazeer (2020), equation 5.
    """
    gate, value = as_floats(gate=gate, value=value)
    with np.errstate(over="ignore"):
        y = swiglu_forward(gate, value)[0]
    if not np.isfinite(y).all():
        raise ValueError(f"gate and value are so large that their product overflows {y.dtype}")
    return y


def swiglu_forward(gate: Array, value: Array) -> tuple[Array, tuple[Array, ...]]:
    if gate.shape != value.shape:
        raise ValueError(f"gate {gate.shape} and value {value.shape} must have the same shape")
    s = sigmoid(gate)
    y = gate * s
    y *= value
    return y, (gate, value, s)


def swiglu_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return dgate, dvalue."""
    gate, value, s = cache
    return dy * value * (s + gate * s * (1 - s)), dy * gate * s


def sigmoid(x: ArrayLike) -> Array:
    """Return the logistic function 1 / (1 + exp(−x)), by tanh, which does not overflow and is faster than exp."""
    y = np.tanh(0.5 * as_float(x, "x"))
    y *= 0.5
    y += 0.5
    return y


def dropout_forward(x: Array, rate: float, rng: np.random.Generator | None) -> tuple[Array, Array | None]:
    """Set a share `rate` of the entries to 0 and divide the rest by 1 − rate, so that the mean stays.

    Without `rng` (when the model is used, not trained) nothing is dropped.

    Source: Srivastava et al. (2014), section 10, "inverted dropout".
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate={rate} must be at least 0 and below 1; the paper uses 0.1")
    if rng is None or rate == 0:
        return x, None
    draw = rng.random(x.shape, dtype=np.float32 if x.dtype == np.float32 else np.float64)
    keep = (draw >= rate) * x.dtype.type(1 / (1 - rate))
    return x * keep, keep


def dropout_backward(dy: Array, keep: Array | None) -> Array:
    return dy if keep is None else dy * keep


# --- Sums as products with ones: a product is what a processor does fastest -------------------------------------------


def row_sums(x: ArrayLike) -> Array:
    """Sum over the last axis, (..., n) → (..., 1): on short rows 10 times faster than `sum`."""
    x = as_float(x, "x", min_ndim=1)
    return (rows(x) @ _ones(x.shape[-1], x.dtype.char)).reshape(*x.shape[:-1], 1)


def column_sums(x: ArrayLike) -> Array:
    """Sum over all axes but the last, (..., n) → (n,)."""
    x = rows(as_float(x, "x", min_ndim=1))
    return _ones(len(x), x.dtype.char) @ x


@lru_cache(maxsize=8)  # each layer asks for the same again
def _ones(n: int, dtype: str) -> Array:
    return np.ones(n, dtype)


def rows(x: Array) -> Array:
    """Put all leading axes into one, (..., n) → (N, n)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])  # not −1, which is ambiguous for an empty array
