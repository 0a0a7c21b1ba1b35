"""Activations, and dropout."""

import math

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Array, as_float, as_floats

GELU_RATE = math.sqrt(2 / math.pi)


def relu(x: ArrayLike) -> Array:
    """max(0, x)."""
    return relu_forward(as_floats(x=x)[0])[0]


def relu_forward(x: Array) -> tuple[Array, Array]:
    y = np.maximum(x, 0)
    return y, y


def relu_backward(dy: Array, y: Array) -> Array:
    return dy * (y > 0)


def gelu(x: ArrayLike) -> Array:
    """x Φ(x), with Φ in its usual approximation: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).

    Source: Hendrycks and Gimpel (2016), section 2.
    """
    with np.errstate(over="ignore"):  # x³ may overflow; tanh is 1 long before
        return gelu_forward(as_floats(x=x)[0])[0]


def gelu_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    t = np.tanh(GELU_RATE * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1 + t), (x, t)


def gelu_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """dy · (Φ + x Φ′), with Φ = (1 + t) / 2."""
    x, t = cache
    dt = (1 - t * t) * GELU_RATE * (1 + 3 * 0.044715 * x * x)
    return 0.5 * dy * (1 + t + x * dt)


def swiglu(gate: ArrayLike, value: ArrayLike) -> Array:
    """gate · σ(gate) · value: a smooth switch on each feature.

    Args:
        gate, value: the same shape, two projections of the same input.

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
    return gate * s * value, (gate, value, s)


def swiglu_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array]:
    """dgate, dvalue."""
    gate, value, s = cache
    return dy * value * (s + gate * s * (1 - s)), dy * gate * s


def sigmoid(x: ArrayLike) -> Array:
    """The logistic function 1 / (1 + exp(−x)), through tanh: nothing overflows, and tanh is the faster of the two."""
    return 0.5 * np.tanh(0.5 * as_float(x, "x")) + 0.5


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
