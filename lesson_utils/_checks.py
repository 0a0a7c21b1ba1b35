"""What every public function asks of its input, in one place, so that all say it in the same words."""

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]


def as_float(x: ArrayLike, name: str, min_ndim: int = 0) -> Array:
    """`x` as a floating-point array: floats keep their dtype, integers and booleans become float64."""
    array = np.asarray(x)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(
            f"{name} has dtype {array.dtype}; expected real numbers (float16, float32, float64 or integers)"
        )
    if array.ndim < min_ndim:
        raise ValueError(f"{name} has shape {array.shape}; expected at least {min_ndim} axes")
    return array


def as_floats(**arrays: ArrayLike) -> tuple[Array, ...]:
    """Several arrays by name, finite and of one dtype: mixing float32 with float64 would silently promote."""
    floats = {name: as_float(x, name) for name, x in arrays.items()}
    for name, array in floats.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinite values; expected finite numbers")
    if len({array.dtype for array in floats.values()}) > 1:
        given = ", ".join(f"{name} {array.dtype}" for name, array in floats.items())
        raise ValueError(f"dtypes differ ({given}); convert all to one of them with .astype()")
    return tuple(floats.values())


def as_size(n: SupportsIndex, name: str, minimum: int = 1) -> int:
    """`n` as a Python int of at least `minimum`."""
    try:
        size = operator.index(n)
    except TypeError:
        raise ValueError(f"{name}={n!r} must be a whole number") from None
    if size < minimum:
        raise ValueError(f"{name}={size} must be at least {minimum}")
    return size


def as_heads(num_heads: SupportsIndex, width: int, name: str) -> int:
    """`num_heads` as a Python int that divides `width`."""
    num_heads = as_size(num_heads, "num_heads")
    if width % num_heads:
        below = width // num_heads * num_heads
        options = " or ".join(str(n) for n in (below, below + num_heads) if n)
        raise ValueError(f"{name}={width} must be divisible by num_heads={num_heads}; try {options}")
    return num_heads
