"""Weights that stay as a file has them, in 4 or 8 bits a number, and are unpacked only while they are multiplied."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from lesson_utils.maths.checks import Array, Ids

BLOCK = 32  # numbers that share a scale
AT_ONCE = 256  # rows that are unpacked together: few enough for the processor's cache
FEW = 16  # rows of x: with fewer, the sums of blocks are scaled, 32 times fewer than numbers


class Packed:
    """A matrix (rows, columns) of whole numbers: 32 in a row are a block, and stand for number · scale + least.

    It stands where a matrix of float32 stands, as long as the model only answers: `W[ids]` are rows, and `x @ W.T` is
    a product. `np.asarray(W)` are its numbers. Nobody can train it.

    Args:
        numbers: (blocks, 32, rows) of int8; or (blocks, 16, rows) of uint8 with two numbers 0…15 a byte, the first
            16 of a block in the lower halves. Rows come last, so that NumPy works on many of them at once.
        scale, least: (blocks, rows). Without `least`, it is 0.

    Source: "Q8_0" and "Q4_1" of ggml-org/ggml, src/ggml-quants.c.
    """

    dtype, ndim = np.dtype(np.float32), 2
    __array_ufunc__ = None  # `x @ W` is then ours to compute

    def __init__(
        self, numbers: "np.ndarray[Any, Any]", scale: Array, least: Array | None = None, transposed: bool = False
    ) -> None:
        self.numbers, self.scale, self.least, self.transposed = numbers, scale, least, transposed
        blocks, rows = scale.shape
        self.shape = (blocks * BLOCK, rows) if transposed else (rows, blocks * BLOCK)
        self.size = scale.size * BLOCK
        self.nbytes = sum(array.nbytes for array in (numbers, scale, least) if array is not None)

    @property
    def T(self) -> "Packed":
        """The same matrix, with rows and columns exchanged."""
        return Packed(self.numbers, self.scale, self.least, not self.transposed)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Ids) -> Array:
        """Unpack the rows at ids (...): shape (..., columns)."""
        if self.transposed:
            raise ValueError("this matrix is packed along its columns, so that it has no rows to take; take W.T[ids]")
        ids = np.asarray(ids)
        return self._unpacked(ids.ravel()).T.reshape(*ids.shape, self.shape[1])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        whole = self._unpacked(slice(None))
        return np.asarray(whole if self.transposed else whole.T, dtype)

    def unpack_into(self, place: Array) -> None:
        """Write its numbers as columns, (columns, rows), a block at a time: those stay in the processor's cache."""
        for i in range(len(self.scale)):
            at = slice(i, i + 1)
            block = Packed(self.numbers[at], self.scale[at], None if self.least is None else self.least[at])
            place[i * BLOCK : (i + 1) * BLOCK] = block._unpacked(slice(None))

    def __rmatmul__(self, x: Array) -> Array:
        """Compute x @ W for x (N, columns of the file) and this matrix transposed, a few outputs at a time.

        Σ_i x_i (n_i · scale + least) = (Σ_i x_i n_i) · scale + (Σ_i x_i) · least        within each block
        """
        if not self.transposed or x.shape[-1] != self.shape[0]:
            raise ValueError(f"x {x.shape} and packed {self.shape}: expected x @ W.T; weights to train are not packed")
        blocks, num_outputs = self.scale.shape
        in_blocks = x.reshape(len(x), blocks, BLOCK)
        y = np.zeros((len(x), num_outputs), x.dtype)
        if self.least is not None:
            y += in_blocks.sum(axis=-1) @ self.least.astype(np.float32)
        for start in range(0, num_outputs, AT_ONCE):
            some = slice(start, start + AT_ONCE)
            n, scale = self._whole_numbers(some), self.scale[:, None, some].astype(np.float32)
            if len(x) < FEW:
                y[:, some] += (in_blocks.swapaxes(0, 1) @ n * scale).sum(axis=0)  # blocks are added up last
            else:
                n *= scale
                y[:, some] += x @ n.reshape(len(n) * BLOCK, n.shape[2])
        return y

    def _whole_numbers(self, rows: Ids | slice) -> Array:
        """Return the numbers of some rows before they are scaled: (blocks, 32, rows), float32."""
        packed = self.numbers[:, :, rows]
        if packed.shape[1] == BLOCK:
            return packed.astype(np.float32)
        n = np.empty((len(packed), BLOCK, packed.shape[2]), np.float32)
        n[:, : BLOCK // 2], n[:, BLOCK // 2 :] = packed & 15, packed >> 4
        return n

    def _unpacked(self, rows: Ids | slice) -> Array:
        """Return some rows as columns, (columns, rows)."""
        n = self._whole_numbers(rows)
        n *= self.scale[:, None, rows].astype(np.float32)
        if self.least is not None:
            n += self.least[:, None, rows].astype(np.float32)
        return n.reshape(len(n) * BLOCK, n.shape[2])
