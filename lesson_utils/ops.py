"""Softmax, and the two quantities by which the course judges it: its entropy and its Jacobian."""

import math

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils._checks import Array, as_float


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
    if x.dtype == np.float16:  # its largest number, 65504, is a small sum
        return softmax(x.astype(np.float32), axis, temperature).astype(np.float16)

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
