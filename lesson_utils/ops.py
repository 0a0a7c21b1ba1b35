"""The operations of a Transformer, each with its derivative.

Learners call `softmax(x)`, `layer_norm(x, gamma, beta)` and get an array; input is checked in full. Training calls the
pairs behind them: `op_forward(...) -> out, cache` and `op_backward(dout, cache) -> gradients` in the order of the
inputs. Pairs run thousands of times a second, in float32 or float64: they check shapes, but do not search for NaN.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesson_utils._checks import Array, Mask, as_float, as_floats

# Between these, exp neither overflows nor vanishes in float32, and softmax needs no maximum subtracted first.
SAFE_SCORE = 60.0


def softmax(x: ArrayLike, axis: int = -1, temperature: float = 1.0) -> Array:
    """Turn scores into weights: non-negative, summing to 1 along `axis`, in the order of the scores.

        softmax(x)_i = exp(x_i / τ) / Σ_j exp(x_j / τ)

    The largest score is subtracted first. That changes nothing in exact arithmetic (the factor cancels), and
    keeps every exponent at or below 0, so that no score is too large.

    Args:
        x: scores, any shape. A score of −∞ gets weight 0; where all scores are −∞, all weights are 0.
        axis: the axis that sums to 1. Default: the last.
        temperature: τ > 0. Towards 0 the largest score takes all; towards ∞ the weights become equal.

    Returns:
        weights, shape and dtype of `x` (integers: float64).

    Raises:
        ValueError: `x` holds NaN or +∞, `axis` is missing or has no elements, or `temperature` is not positive.
    """
    x = as_float(x, "x")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis={axis} does not exist: x has shape {x.shape}")
    if x.shape[axis] == 0:
        raise ValueError(f"x has shape {x.shape}: no scores along axis {axis}; softmax needs at least one")
    if not (0 < temperature < math.inf and 0 < x.dtype.type(temperature) < np.inf):
        raise ValueError(f"temperature={temperature} must be a positive number ({x.dtype}); try 0.1, 1 or 10")

    largest = x.max(axis=axis, keepdims=True)
    if np.isnan(largest).any() or np.isposinf(largest).any():
        raise ValueError("x holds NaN or +∞; softmax needs scores that are finite or −∞")
    largest = np.where(np.isneginf(largest), 0, largest)  # −∞ − (−∞) would be NaN
    with np.errstate(over="ignore"):  # a difference too large for the dtype is −∞, and its weight rightly 0
        weights = np.exp((x - largest) / x.dtype.type(temperature))
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def entropy(weights: ArrayLike, axis: int = -1) -> Array:
    """How spread out weights are, in nats: H = −Σ w ln w. One weight of 1 has 0, n equal ones have ln n.

    exp(H) reads as "the number of positions looked at".

    Args:
        weights: non-negative, summing to 1 along `axis`.

    Returns:
        entropy, the shape of `weights` without `axis`, same dtype.

    Raises:
        ValueError: a weight is negative or NaN.
    """
    weights = as_float(weights, "weights", min_ndim=1)
    if not (weights >= 0).all():
        raise ValueError("weights holds negative values or NaN; expected weights from softmax, all >= 0")
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)  # 0 · ln 0 counts as 0
    return np.maximum(-(weights * logs).sum(axis=axis), 0)  # never −0.0


def softmax_jacobian(weights: ArrayLike) -> Array:
    """The derivative of softmax at the scores that gave these weights: ∂w_i/∂x_j = w_i (δ_ij − w_j).

    Args:
        weights: softmax's output, shape (..., T).

    Returns:
        Jacobian, shape (..., T, T), same dtype. Its norm is the share of a gradient that can pass.
    """
    w = as_float(weights, "weights", min_ndim=1)
    eye = np.eye(w.shape[-1], dtype=w.dtype)
    return w[..., :, None] * (eye - w[..., None, :])  # (..., T, T)


def softmax_forward(x: Array, mask: Array | Mask | None = None, out: Array | None = None) -> tuple[Array, Array]:
    """Softmax over the last axis, hidden scores left out.

    Args:
        x: scores, (..., T).
        mask: True or 1 = counts, False or 0 = weight 0; broadcastable to x. A row of zeros gives zero weights.
        out: where to write the weights; may be `x`.
    """
    if not _is_safe(x):
        x = x if mask is None else np.where(mask, x, -np.inf)
        x = x - _peak(x)
    weights = np.exp(x, out=out)
    if mask is not None:
        weights *= mask  # after exp: 20 times faster than np.where(mask, x, −∞) before it
    total = row_sums(weights)  # (..., 1)
    if mask is not None:
        total[total == 0] = 1
    weights /= total
    return weights, weights


def softmax_backward(dweights: Array, weights: Array, out: Array | None = None) -> Array:
    """dx_j = w_j (dw_j − Σ_i dw_i w_i): the Jacobian, never written out."""
    dot = row_sums(dweights * weights)  # (..., 1)
    dx = np.subtract(dweights, dot, out=out)
    dx *= weights
    return dx


def log_softmax(x: ArrayLike, axis: int = -1) -> Array:
    """ln softmax(x), without the detour over weights too small for their dtype.

    Raises:
        ValueError: `x` holds NaN or infinite values, or `axis` is missing or has no elements.
    """
    (x,) = as_floats(x=x)
    if not -x.ndim <= axis < x.ndim or x.shape[axis] == 0:
        raise ValueError(f"x has shape {x.shape}; expected at least one score along axis {axis}")
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def cross_entropy(
    logits: ArrayLike, targets: ArrayLike, mask: ArrayLike | None = None, smoothing: float = 0.0
) -> float:
    """The mean of −ln p(target), in nats.

    Args:
        logits: (..., V).
        targets: integers 0…V − 1, shape (...).
        mask: True = counts, shape (...); padding should not. Default: all count.
        smoothing: ε in 0…1. The target gets 1 − ε + ε/V, every other symbol ε/V.

    Raises:
        ValueError: shapes do not fit, a target is not in the vocabulary, or nothing counts.

    Source: Szegedy et al. (2016), section 7, for label smoothing; Vaswani et al. (2017), section 5.4.
    """
    (logits,) = as_floats(logits=logits)
    return cross_entropy_forward(logits, np.asarray(targets), None if mask is None else np.asarray(mask), smoothing)[0]


def cross_entropy_forward(
    logits: Array, targets: NDArray[np.integer], mask: Mask | None = None, smoothing: float = 0.0
) -> tuple[float, tuple[Array, float]]:
    """See `cross_entropy`. The cache holds the gradient itself: it comes almost free with the loss."""
    V = logits.shape[-1] if logits.ndim else 0
    if targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets has shape {targets.shape}; expected {logits.shape[:-1]}, one for each row of logits")
    _check_ids(targets, V, "targets")
    if mask is not None and (mask.shape != targets.shape or mask.dtype != bool):
        raise ValueError(f"mask is {mask.dtype} {mask.shape}; expected booleans {targets.shape}, True = counts")
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing={smoothing} must be at least 0 and below 1; the paper uses 0.1")
    rows, ids = logits.reshape(-1, V), targets.reshape(-1)  # (N, V), (N,)
    counted = len(ids) if mask is None else int(mask.sum())
    if counted == 0:
        raise ValueError(f"no target counts (targets {targets.shape}); expected at least one")

    rows = rows if _is_safe(rows) else rows - _peak(rows)  # a loss of differences: the shift cancels
    powers = np.exp(rows)  # (N, V)
    total = row_sums(powers)  # (N, 1)
    at = np.arange(len(ids))
    losses = np.log(total[:, 0]) - (1 - smoothing) * rows[at, ids]  # (N,)
    if smoothing:
        losses -= smoothing / V * row_sums(rows)[:, 0]
    powers /= total  # now the probabilities
    powers[at, ids] -= 1 - smoothing
    if smoothing:
        powers -= smoothing / V
    if mask is not None:
        losses *= mask.reshape(-1)
        powers *= mask.reshape(-1, 1)
    return float(losses.sum()) / counted, (powers.reshape(logits.shape), 1 / counted)


def cross_entropy_backward(dloss: float, cache: tuple[Array, float]) -> Array:
    """dlogits = (p − target's distribution) / number of targets that count."""
    difference, share = cache
    return difference * (dloss * share)


def linear(x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None) -> Array:
    """x W + b.

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
    y = x.reshape(-1, x.shape[-1]) @ W  # (N, d_out): one large product instead of one for each leading index
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), (x, W)


def linear_backward(dy: Array, cache: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """dx, dW, db; for a layer without b, the last is not used."""
    x, W = cache
    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (N, d_in), (N, d_out)
    return (drows @ W.T).reshape(x.shape), rows.T @ drows, column_sums(drows)


def embedding(ids: ArrayLike, table: ArrayLike) -> Array:
    """The rows of `table` (V, d_model) at `ids` (...): shape (..., d_model)."""
    (table,) = as_floats(table=table)
    return embedding_forward(np.asarray(ids), table)[0]


def embedding_forward(
    ids: NDArray[np.integer], table: Array
) -> tuple[Array, tuple[NDArray[np.integer], tuple[int, ...]]]:
    if table.ndim != 2:
        raise ValueError(f"table has shape {table.shape}; expected (V, d_model)")
    _check_ids(ids, len(table), "ids")
    return table[ids], (ids, table.shape)


def embedding_backward(dy: Array, cache: tuple[NDArray[np.integer], tuple[int, ...]]) -> Array:
    """The gradient of the table: the rows of dy, added up by symbol."""
    ids, (V, d_model) = cache
    rows, ids = dy.reshape(-1, d_model), ids.reshape(-1)  # (N, d_model), (N,)
    if V > 1024:  # the product below would be mostly zeros
        dtable = np.zeros((V, d_model), dy.dtype)
        np.add.at(dtable, ids, rows)
        return dtable
    one_hot = np.zeros((V, len(ids)), dy.dtype)
    one_hot[ids, np.arange(len(ids))] = 1
    return one_hot @ rows  # 10 times faster than np.add.at for a small vocabulary


def layer_norm(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5, eps_inside_root: bool = True
) -> Array:
    """Each token's features with mean 0 and variance 1, then scaled and shifted: gamma · (x − μ) / σ + beta.

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
    return layer_norm_forward(x, gamma, beta, eps, eps_inside_root)[0]


def layer_norm_forward(
    x: Array, gamma: Array, beta: Array, eps: float = 1e-5, eps_inside_root: bool = True
) -> tuple[Array, tuple[Array, ...]]:
    _check_features(x, eps, gamma=gamma, beta=beta)
    n = x.shape[-1]
    centred = x - row_sums(x) / n
    variance = row_sums(centred * centred) / n  # (..., 1)
    if eps_inside_root:
        scale = 1 / np.sqrt(variance + eps)
        slope = scale  # d(1/scale)/dx is slope · centred / n
    else:
        sigma = np.sqrt(variance)
        scale = 1 / (sigma + eps)
        slope = np.divide(1, sigma, out=np.zeros_like(sigma), where=sigma > 0)
    normal = centred
    normal *= scale
    y = normal * gamma
    y += beta
    return y, (normal, scale, slope / scale, gamma)


def layer_norm_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """dx, dgamma, dbeta. A change of x moves μ and σ as well: hence the two means that are taken off."""
    normal, scale, ratio, gamma = cache
    n = dy.shape[-1]
    product = dy * normal
    dnormal = dy * gamma
    mean = row_sums(dnormal) / n  # (..., 1)
    slant = row_sums(product * gamma) / n * ratio
    dx = dnormal
    dx -= mean
    dx -= normal * slant
    dx *= scale
    return dx, column_sums(product), column_sums(dy)


def rms_norm(x: ArrayLike, gamma: ArrayLike, eps: float = 1e-5) -> Array:
    """gamma · x / √(mean(x²) + ε): layer norm without the mean and without beta.

    Args:
        x: (..., d_model).
        gamma: (d_model,).

    Source: Zhang and Sennrich (2019), equation 4.
    """
    x, gamma = as_floats(x=x, gamma=gamma)
    return rms_norm_forward(x, gamma, eps)[0]


def rms_norm_forward(x: Array, gamma: Array, eps: float = 1e-5) -> tuple[Array, tuple[Array, ...]]:
    _check_features(x, eps, gamma=gamma)
    scale = 1 / np.sqrt(row_sums(x * x) / x.shape[-1] + eps)  # (..., 1)
    normal = x * scale
    return normal * gamma, (normal, scale, gamma)


def rms_norm_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array]:
    """dx, dgamma."""
    normal, scale, gamma = cache
    product = dy * normal
    dx = dy * gamma
    dx -= normal * (row_sums(product * gamma) / dy.shape[-1])
    dx *= scale
    return dx, column_sums(product)


def relu(x: ArrayLike) -> Array:
    """max(0, x)."""
    return relu_forward(as_floats(x=x)[0])[0]


def relu_forward(x: Array) -> tuple[Array, Array]:
    y = np.maximum(x, np.zeros(x.shape[-1:], x.dtype))  # 1.6 times as fast as with the number 0
    return y, y


def relu_backward(dy: Array, y: Array) -> Array:
    return dy * (y > 0)


def gelu(x: ArrayLike) -> Array:
    """x Φ(x), with Φ in its usual approximation: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).

    Source: Hendrycks and Gimpel (2016), section 2.
    """
    return gelu_forward(as_floats(x=x)[0])[0]


def gelu_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    t = x * x  # in place from here on: half the time of the formula in one line
    t *= 0.044715
    t += 1
    t *= x
    t *= math.sqrt(2 / math.pi)
    np.tanh(t, out=t)
    y = t + 1
    y *= x
    y *= 0.5
    return y, (x, t)


def gelu_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """dy · (Φ + x Φ′), with Φ = (1 + t) / 2."""
    x, t = cache
    slope = x * x
    slope *= 3 * 0.044715
    slope += 1
    slope *= x
    slope *= math.sqrt(2 / math.pi)
    slope *= 1 - t * t  # now 2 x Φ′
    slope += t
    slope += 1
    slope *= dy
    slope *= 0.5
    return slope


def swiglu(gate: ArrayLike, value: ArrayLike) -> Array:
    """gate · σ(gate) · value: a smooth switch on each feature.

    Args:
        gate, value: the same shape, two projections of the same input.

    Source: Shazeer (2020), equation 5.
    """
    gate, value = as_floats(gate=gate, value=value)
    return swiglu_forward(gate, value)[0]


def swiglu_forward(gate: Array, value: Array) -> tuple[Array, tuple[Array, ...]]:
    if gate.shape != value.shape:
        raise ValueError(f"gate {gate.shape} and value {value.shape} must have the same shape")
    s = sigmoid(gate)
    return gate * s * value, (gate, value, s)


def swiglu_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array]:
    """dgate, dvalue."""
    gate, value, s = cache
    return dy * value * (s + gate * s * (1 - s)), dy * gate * s


def sigmoid(x: Array) -> Array:
    """The logistic function 1 / (1 + exp(−x)), through tanh: nothing overflows, and tanh is the faster of the two."""
    y = np.tanh(0.5 * x)
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


def row_sums(x: Array) -> Array:
    """Sums over the last axis, (..., n) → (..., 1): a product with ones, 10 times faster than `sum` on short rows."""
    n = x.shape[-1]
    return (x.reshape(-1, n) @ np.ones(n, x.dtype)).reshape(*x.shape[:-1], 1)


def column_sums(x: Array) -> Array:
    """Sums over all axes but the last, (..., n) → (n,)."""
    rows = x.reshape(-1, x.shape[-1])
    return np.ones(len(rows), x.dtype) @ rows


def _is_safe(x: Array) -> bool:
    """Can exp be taken as it is? Finding two extremes is 40 times faster than one for each short row (415 → 9 µs)."""
    return bool(x.size == 0 or (x.max() <= SAFE_SCORE and x.min() >= -SAFE_SCORE))


def _peak(x: Array) -> Array:
    """What to subtract before exp: each row's largest score, (..., 1)."""
    peak = x.max(axis=-1, keepdims=True)
    return np.where(np.isneginf(peak), 0, peak)  # −∞ − (−∞) would be NaN


def _check_ids(ids: NDArray[np.integer], V: int, name: str) -> None:
    if ids.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {ids.dtype}; expected integers 0…{V - 1}")
    if ids.size and (ids.min() < 0 or ids.max() >= V):
        raise ValueError(f"{name} holds {ids.min()}…{ids.max()}; expected integers 0…{V - 1}")


def _check_features(x: Array, eps: float, **parameters: Array) -> None:
    if x.ndim < 1 or x.shape[-1] == 0:
        raise ValueError(f"x has shape {x.shape}; expected (..., d_model) with d_model at least 1")
    for name, parameter in parameters.items():
        if parameter.shape != x.shape[-1:]:
            raise ValueError(f"{name} has shape {parameter.shape}; expected {x.shape[-1:]}, one for each feature of x")
    if not eps > 0:
        raise ValueError(f"eps={eps} must be positive; try 1e-5")
