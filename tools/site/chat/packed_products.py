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
LINE = 64  # bytes that a processor fetches together

Array = np.ndarray[Any, Any]


@functools.cache
def install() -> bool:
    """Let `x @ W.T` use it; return False if this browser has no SIMD."""
    try:
        library = ctypes.CDLL(str(Path(__file__).with_suffix(".wasm")))
    except OSError:
        return False
    in_numpy, room = Packed.__rmatmul__, place(ROOM)

    def product(self: Packed, x: Array) -> Array:
        if (known := vars(self).get("known")) is None:  # what does not change from product to product
            places = [0 if array is None else place(array) for array in (self.numbers, self.scale, self.least)]
            times = library.times_q8 if self.least is None else library.times_q4
            known = self.known = times, places, *self.scale.shape  # type: ignore[attr-defined]
        times, places, blocks, columns = known
        fits = self.transposed and x.ndim == 2 and x.shape[1] == self.shape[0] and columns % AT_ONCE == 0
        if not fits or x.dtype != np.float32 or self.scale.dtype != np.float32:
            return in_numpy(self, x)
        x, y = np.ascontiguousarray(x), np.zeros((len(x), columns), np.float32)
        times(place(x), len(x), *places, blocks, columns, place(y), room)
        return y

    Packed.__rmatmul__ = product  # type: ignore[method-assign]
    return True


def settle(model: Layer) -> None:
    """Put packed matrices where WebAssembly reads them fast, once: before the first product.

    Scales become float32, because it knows no numbers of 16 bits. All begin where a line of the processor's cache
    does: elsewhere every second or fourth piece of 16 bytes lies in two lines, and a product takes half as long again.
    """
    for param in model.params().values():
        W: Any = param.value
        if isinstance(W, Packed):
            W.numbers, W.scale = in_lines(W.numbers), in_lines(W.scale.astype(np.float32))
            W.least = None if W.least is None else in_lines(W.least.astype(np.float32))


def in_lines(array: Array) -> Array:
    """Return a copy whose first byte is the first of a line."""
    room = np.empty(array.nbytes + LINE, np.uint8)
    start = -place(room) % LINE
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def place(array: Array) -> int:
    """Return the address of an array's first number; `array.ctypes.data` is the same, and takes longer."""
    return int(array.__array_interface__["data"][0])
