"""Softmax, the entropy of its weights, and the loss that is made of it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesson_utils.maths.checks import Array, Mask, as_array, as_axis, as_float, as_floats, as_ids, as_number, as_weights
from lesson_utils.maths.ops.features import row_sums

# Between −60 and 60, exp neither overflows nor vanishes in float32, and softmax needs no maximum subtracted first.
SAFE_SCORE = 60.0


def softmax(x: ArrayLike, axis: int = -1, temperature: float = 1.0) -> Array:
    """Turn scores into weights: non-negative, summing to 1 along `axis`, in the order of the scores.

        softmax(x)_i = exp(x_i / τ) / Σ_j exp(x_j / τ)

    The largest score is subtracted first. That changes nothing in exact arithmetic (the factor cancels), and it keeps
    every exponent at or below 0, so that no score is too large.

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
    axis, temperature = as_axis(axis, x.shape), as_number(temperature, "temperature")
    with np.errstate(over="ignore"):  # a temperature beyond the dtype is ∞
        tau = x.dtype.type(temperature)
    if not 0 < tau < np.inf:
        raise ValueError(f"temperature={temperature} must be a positive number ({x.dtype}); try 0.1, 1 or 10")

    largest = x.max(axis=axis, keepdims=True)
    if np.isnan(largest).any() or np.isposinf(largest).any():
        raise ValueError("x holds NaN or +∞; softmax needs scores that are finite or −∞")
    largest = np.where(np.isneginf(largest), 0, largest)  # −∞ − (−∞) would be NaN
    with np.errstate(over="ignore"):  # a difference too large for the dtype is −∞, and its weight rightly 0
        weights = np.exp((x - largest) / tau)
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def entropy(weights: ArrayLike, axis: int = -1) -> Array:
    """Measure how spread out weights are, in nats: H = −Σ w ln w. One weight of 1 has 0, n equal weights have ln n.

    exp(H) can be read as the number of positions that get attention.

    Args:
        weights: 0…1, summing to 1 along `axis`.

    Returns:
        entropy, the shape of `weights` without `axis`, same dtype.

    Raises:
        ValueError: a weight is negative, above 1 or NaN, or `axis` does not exist.
    """
    weights = as_weights(weights)
    axis = as_axis(axis, weights.shape)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)  # 0 · ln 0 counts as 0
    return np.maximum(-(weights * logs).sum(axis=axis), 0)  # never −0.0


def softmax_jacobian(weights: ArrayLike) -> Array:
    """Return the derivative of softmax at the scores with these weights: ∂w_i/∂x_j = w_i (δ_ij − w_j).

    Args:
        weights: softmax's output, shape (..., T).

    Returns:
        Jacobian, shape (..., T, T), same dtype. Its norm is the share of a gradient that can pass.

    Raises:
        ValueError: a weight is negative, above 1 or NaN.
    """
    w = as_weights(weights)
    eye = np.eye(w.shape[-1], dtype=w.dtype)
    return w[..., :, None] * (eye - w[..., None, :])  # (..., T, T)


def softmax_forward(x: Array, mask: Array | Mask | None = None, out: Array | None = None) -> tuple[Array, Array]:
    """Compute softmax over the last axis, without the hidden scores.

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
    """Return dx_j = w_j (dw_j − Σ_i dw_i w_i), the product with the Jacobian, which is never written out."""
    dot = row_sums(dweights * weights)  # (..., 1)
    dx = np.subtract(dweights, dot, out=out)
    dx *= weights
    return dx


def log_softmax(x: ArrayLike, axis: int = -1) -> Array:
    """Return ln softmax(x), without computing weights that may be too small for their dtype.

    Raises:
        ValueError: `x` holds NaN or infinite values, or `axis` is missing or has no elements.
    """
    (x,) = as_floats(x=x)
    axis = as_axis(axis, x.shape)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def cross_entropy(
    logits: ArrayLike, targets: ArrayLike, mask: ArrayLike | None = None, smoothing: float = 0.0
) -> float:
    """Return the mean of −ln p(target), in nats.

    Args:
        logits: (..., V).
        targets: integers 0…V − 1, shape (...).
        mask: True = counts, shape (...); False at padding. Default: all count.
        smoothing: ε in 0…1. The target gets 1 − ε + ε/V, every other symbol ε/V.

    Raises:
        ValueError: shapes do not fit, a target is not in the vocabulary, or nothing counts.

    Source: Szegedy et al. (2016), section 7, for label smoothing; Vaswani et al. (2017), section 5.4.
    """
    (logits,) = as_floats(logits=logits)
    mask = None if mask is None else as_array(mask, "mask")
    return cross_entropy_forward(logits, as_array(targets, "targets"), mask, smoothing)[0]


def cross_entropy_forward(
    logits: Array, targets: NDArray[np.integer], mask: Mask | None = None, smoothing: float = 0.0
) -> tuple[float, tuple[Array, float]]:
    """Compute `cross_entropy`. The cache holds the gradient itself, which comes almost free with the loss."""
    V = logits.shape[-1] if logits.ndim else 0
    if targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets has shape {targets.shape}; expected {logits.shape[:-1]}, one for each row of logits")
    as_ids(targets, "targets", V)
    if mask is not None and (mask.shape != targets.shape or mask.dtype != bool):
        raise ValueError(f"mask is {mask.dtype} {mask.shape}; expected booleans {targets.shape}, True = counts")
    if not 0 <= as_number(smoothing, "smoothing") < 1:
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
    """Return dlogits = (p − target's distribution) / number of targets that count."""
    difference, share = cache
    return difference * (dloss * share)


def _is_safe(x: Array) -> bool:
    """Return True if exp may be taken without subtracting a maximum first.

    Finding two extremes is 40 times faster than one for each short row (415 → 9 µs).
    """
    return bool(x.size == 0 or (x.max() <= SAFE_SCORE and x.min() >= -SAFE_SCORE))


def _peak(x: Array) -> Array:
    """Return each row's largest score, (..., 1), which is subtracted before exp."""
    peak = x.max(axis=-1, keepdims=True)
    return np.where(np.isneginf(peak), 0, peak)  # −∞ − (−∞) would be NaN
