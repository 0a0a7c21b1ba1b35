"""Checks of every public function's input, in one place, so that all errors use the same words."""

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Ids = NDArray[np.integer[Any]]
Choice = TypeVar("Choice", bound=str)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def as_array(x: ArrayLike, name: str) -> NDArray[Any]:
    """Return `x` as an array, in this machine's order of bytes."""
    try:
        array = np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} is a list whose rows differ in length or depth; expected rows that fit") from None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_float(x: ArrayLike, name: str, min_ndim: int = 0) -> Array:
    """Return `x` as a floating-point array: floats keep their dtype, integers and booleans become float64."""
    if type(x) is np.ndarray and x.dtype in FLOATS and x.ndim >= min_ndim:
        return x  # what layers give each other; a token of a model of 30 layers asks here 200 times
    array = as_array(x, name)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype == np.float16:  # its largest number, 65504, is a small sum
        raise ValueError(f"{name} has dtype float16, too narrow to add up in; convert to float32: .astype(np.float32)")
    if array.dtype.kind != "f":
        raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers (float32, float64 or integers)")
    if array.ndim < min_ndim:
        raise ValueError(f"{name} has shape {array.shape}; expected at least {min_ndim} axes")
    return array


def as_floats(**arrays: ArrayLike) -> tuple[Array, ...]:
    """Return several arrays, finite and of one dtype: mixing float32 with float64 would silently promote."""
    floats = {name: as_float(x, name) for name, x in arrays.items()}
    for name, array in floats.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinite values; expected finite numbers")
    if len({array.dtype for array in floats.values()}) > 1:
        given = ", ".join(f"{name} {array.dtype}" for name, array in floats.items())
        raise ValueError(f"dtypes differ ({given}); convert all to one of them with .astype()")
    return tuple(floats.values())


def as_weights(weights: ArrayLike) -> Array:
    """Return weights or probabilities, which lie between 0 and 1 (up to rounding), with at least one axis."""
    weights = as_float(weights, "weights", min_ndim=1)
    if not ((weights >= 0) & (weights <= 1.001)).all():
        raise ValueError("weights holds numbers outside 0…1, or NaN; expected weights from softmax")
    return weights


def as_integer(n: SupportsIndex, name: str) -> int:
    """Return `n` as a Python int."""
    try:
        return operator.index(n)
    except TypeError:
        raise ValueError(f"{name}={n!r} must be a whole number") from None


def as_size(n: SupportsIndex, name: str, minimum: int = 1) -> int:
    """Return `n` as a Python int of at least `minimum`."""
    size = as_integer(n, name)
    if size < minimum:
        raise ValueError(f"{name}={size} must be at least {minimum}")
    return size


def as_number(x: float, name: str) -> float:
    """Return `x` as a Python float, which keeps float32 arrays float32."""
    if not isinstance(x, int | float | np.number | np.bool_) or not math.isfinite(x):
        raise ValueError(f"{name}={x!r} must be a finite number")
    return float(x)


def as_eps(eps: float) -> float:
    """Return the ε of a norm as a Python float."""
    if not as_number(eps, "eps") > 0:
        raise ValueError(f"eps={eps} must be positive; try 1e-5")
    return float(eps)


def as_axis(axis: SupportsIndex, shape: tuple[int, ...]) -> int:
    """Return `axis` as a Python int; it must be an axis of `shape` with at least one entry along it."""
    axis = as_integer(axis, "axis")
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis={axis} does not exist: x has shape {shape}")
    if shape[axis] == 0:
        raise ValueError(f"x has shape {shape}: nothing along axis {axis}; expected at least one score")
    return axis


def as_heads(num_heads: SupportsIndex, width: int, name: str, heads: str = "num_heads") -> int:
    """Return `num_heads` as a Python int that divides `width`."""
    num_heads = as_size(num_heads, heads)
    if width % num_heads:
        below = width // num_heads * num_heads
        options = " or ".join(str(n) for n in (below, below + num_heads) if n)
        raise ValueError(f"{name}={width} must be divisible by {heads}={num_heads}; try {options}")
    return num_heads


def as_choice(x: Choice, name: str, options: Iterable[str]) -> Choice:
    """Return `x`, which must be one of the options."""
    options = tuple(options)
    if x not in options:
        raise ValueError(f"{name}={x!r} is not known; choose one of {', '.join(options)}")
    return x


def as_ids(ids: ArrayLike, name: str, V: int | None = None, ndim: int | None = None) -> Ids:
    """Return an array of integers, below `V` and with `ndim` axes where these are given."""
    ids = as_array(ids, name)
    if ids.size == 0 and ids.dtype == np.float64:
        ids = ids.astype(np.int64)  # an empty list is an array of floats
    if ids.dtype.kind not in "iu" or ndim not in (None, ids.ndim):
        wanted = "integers" if V is None else f"integers 0…{V - 1}"
        axes = "" if ndim is None else f" with {ndim} {'axis' if ndim == 1 else 'axes'}"
        raise ValueError(f"{name} is {ids.dtype} of shape {ids.shape}; expected {wanted}{axes}")
    if V is not None and ids.size and (ids.min() < 0 or ids.max() >= V):
        raise ValueError(f"{name} holds {ids.min()}…{ids.max()}; expected integers 0…{V - 1}")
    return ids


def as_mask(mask: ArrayLike, shape: tuple[int, ...]) -> Mask:
    """Return `mask` as booleans of the scores' `shape`."""
    mask = as_array(mask, "mask")
    if mask.dtype != bool:
        raise ValueError(f"mask has dtype {mask.dtype}; expected booleans, True = may attend (try `mask != 0`)")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask has shape {mask.shape}; expected one that broadcasts to the scores, {shape}") from None


def as_qkv(Q: ArrayLike, K: ArrayLike, V: ArrayLike) -> tuple[Array, Array, Array]:
    """Return queries, keys and values whose shapes and dtypes fit each other."""
    Q, K, V = as_floats(Q=Q, K=K, V=V)
    same_leading(Q=Q, K=K, V=V)
    same_width(Q=Q, K=K)
    T_k, d_k = K.shape[-2:]
    if V.shape[-2] != T_k:
        raise ValueError(f"V has {V.shape[-2]} rows, K has {T_k}; each key needs one value (K {K.shape}, V {V.shape})")
    if T_k == 0 or d_k == 0:
        raise ValueError(f"K has shape {K.shape}; expected at least one key of width at least 1")
    return Q, K, V


def same_leading(**arrays: Array) -> None:
    """Refuse leading axes that are neither equal nor 1. An array that lacks an axis would be broadcast by accident."""
    for name, array in arrays.items():
        if array.ndim < 2:
            raise ValueError(f"{name} has shape {array.shape}; expected at least 2 axes, (..., T, d)")
    shapes = {name: array.shape[:-2] for name, array in arrays.items()}
    fits = len({len(shape) for shape in shapes.values()}) == 1
    fits = fits and all(len(set(sizes) - {1}) <= 1 for sizes in zip(*shapes.values(), strict=True))
    if not fits:
        given = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"leading axes do not fit: {given}; they must be equal, or 1 where an array is shared")


def same_width(**pair: Array) -> None:
    """Refuse two arrays whose last axes differ, since a dot product is taken over them."""
    (name_a, a), (name_b, b) = pair.items()
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"{name_a} has width {a.shape[-1]}, {name_b} has width {b.shape[-1]}; a dot product needs the same width "
            f"({name_a} {a.shape}, {name_b} {b.shape})"
        )


def check_matrix(name: str, W: Array, expected: tuple[int | None, int | None]) -> None:
    """Refuse a matrix of another shape; None stands for any size."""
    if W.ndim != 2 or any(e is not None and size != e for size, e in zip(W.shape, expected, strict=True)):
        wanted = ", ".join("any" if e is None else str(e) for e in expected)
        raise ValueError(f"{name} has shape {W.shape}; expected ({wanted})")


def check_last_queries(T_q: int, T_k: int) -> None:
    """Refuse more queries than keys, where the queries are the last of the positions that keys have."""
    if T_q > T_k:
        raise ValueError(f"T_q={T_q} is larger than T_k={T_k}; the queries must be the last T_q of the T_k positions")


def check_no_overflow(output: Array) -> None:
    """Refuse an output of attention that is infinite or NaN: finite queries, keys and values overflowed."""
    if not np.isfinite(output).all():
        raise ValueError(f"the input is so large that the output overflows {output.dtype}; scale down Q, K or V")


def check_real(mask: Mask | None, shape: tuple[int, ...]) -> None:
    """Refuse a mask of padding of another shape or dtype; None means that nothing is padding."""
    if mask is not None and (mask.dtype != bool or mask.shape != shape):
        raise ValueError(f"mask is {mask.dtype} {mask.shape}; expected booleans {shape}, True = a real symbol")
