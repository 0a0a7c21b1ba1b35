"""Fast products with weights that stay packed: packed_products.wat, assembled by pack.mjs and put beside this module.

In the browser NumPy unpacks slowly. This multiplies `x @ W.T` for a `layers.Packed` in one pass over its bytes; its
NumPy form remains for all other products, and is what the tests compare with.
"""

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.maths.layers import Layer, Packed

AT_ONCE = 16  # columns of x @ W.T that the WebAssembly computes together
ROOM = np.empty(32 * AT_ONCE, np.float32)  # where it unpacks a block of each


@functools.cache
def install() -> bool:
    """Let `x @ W.T` use it; return False if this browser has no SIMD."""
    try:
        library = ctypes.CDLL(str(Path(__file__).with_suffix(".wasm")))
    except OSError:
        return False
    in_numpy = Packed.__rmatmul__

    def product(self: Packed, x: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        blocks, columns = self.scale.shape
        fits = self.transposed and x.ndim == 2 and x.shape[1] == self.shape[0] and columns % AT_ONCE == 0
        if not fits or {x.dtype, self.scale.dtype} != {np.dtype(np.float32)}:
            return in_numpy(self, x)
        x, y = np.ascontiguousarray(x), np.zeros((len(x), columns), np.float32)
        numbers, scale, least, result, room = (
            0 if array is None else array.ctypes.data for array in (self.numbers, self.scale, self.least, y, ROOM)
        )
        times = library.times_q8 if self.least is None else library.times_q4
        times(x.ctypes.data, len(x), numbers, scale, least, blocks, columns, result, room)
        return y

    Packed.__rmatmul__ = product  # type: ignore[method-assign]
    return True


def widen(model: Layer) -> None:
    """Make all scales float32, once, because WebAssembly knows no numbers of 16 bits."""
    for param in model.params().values():
        W: Any = param.value
        if isinstance(W, Packed):
            W.scale = W.scale.astype(np.float32)
            W.least = None if W.least is None else W.least.astype(np.float32)
