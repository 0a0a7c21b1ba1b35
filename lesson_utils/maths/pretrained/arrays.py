"""Arrays in files: where each one lies, how its numbers are packed, and `read(name)`, which unpacks one to float32."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import Packed

_BLOCK = 32  # numbers that are packed together
_HALVES = (np.dtype("u1"), (_BLOCK // 2,))  # the first 16 numbers in the low halves of 16 bytes, the others in the high
STAY_PACKED = {"Q4_0", "Q4_1", "Q8_0"}  # matrices that `Packed` can hold


class Kind(NamedTuple):
    """A way to pack numbers: `numbers` of them in one element of `layout`."""

    name: str
    numbers: int
    layout: "np.dtype[Any]"
    unpack: Callable[[Any], Array]


class ArrayInfo(NamedTuple):
    """An array's place in a file: `start` and `stop` in bytes; `shape` as NumPy has it, a row for each output.

    Where `columns` is given, the file has a column for each output, and these columns, turned, are the array.
    """

    path: Path
    shape: tuple[int, ...]
    kind: Kind
    start: int
    stop: int
    columns: slice | None = None

    def stays_packed(self) -> bool:
        return self.kind.name in STAY_PACKED and len(self.shape) == 2

    def takes(self, packed: bool) -> int:
        """Return how many bytes of memory it will take."""
        return self.stop - self.start if packed and self.stays_packed() else 4 * math.prod(self.shape)

    def rows(self, start: int, stop: int) -> "ArrayInfo":
        """Return the place of some rows alone. They must be of this array."""
        shape = (stop - start, *self.shape[1:])
        if self.columns is not None:
            return self._replace(shape=shape, columns=slice(start, stop))
        row = (self.stop - self.start) // self.shape[0]
        return self._replace(shape=shape, start=self.start + start * row, stop=self.start + stop * row)


class Arrays:
    """What formats of files have in common: arrays by name, and facts about the model by GGUF's names.

    `pairs` says which columns of a head the file takes for one pair, as `positions.rotary` does; None: GGUF's custom.
    """

    path: Path
    facts: dict[str, Any]
    arrays: dict[str, ArrayInfo]
    pairs: str | None = None

    def cut(self, name: str, names: Sequence[str]) -> None:
        """Replace an array by equal parts of its rows, which then have names of their own.

        Raises:
            ValueError: it has no such number of rows.
        """
        whole = self.arrays.pop(name)
        one_by_one = len(whole.shape) == 2 or whole.kind.numbers == 1
        if not (whole.shape and whole.shape[0] and one_by_one) or whole.shape[0] % len(names):
            self.fail(f"{name} has shape {whole.shape}, expected rows for {len(names)} equal parts")
        size = whole.shape[0] // len(names)
        self.arrays |= {part: whole.rows(i * size, (i + 1) * size) for i, part in enumerate(names)}

    def read(self, name: str) -> Array:
        """Unpack one array to float32.

        Raises:
            ValueError: there is none of that name, or it holds NaN or infinite values.
        """
        blocks, info = self._blocks(name)
        numbers = info.kind.unpack(blocks)
        if "scale" not in (info.kind.layout.names or ()) and not np.isfinite(numbers).all():
            self._refuse(name)
        if info.columns is not None:
            return numbers.reshape(info.shape[1], -1)[:, info.columns].T
        return numbers.reshape(info.shape)

    def packed(self, *names: str) -> Packed | None:
        """Return matrices as they are packed, one below the other; None where `Packed` cannot hold them.

        Raises:
            ValueError: as `read`.
        """
        infos = [self.arrays[name] for name in names]
        kinds = {info.kind.name for info in infos}
        if len(kinds) > 1 or not all(info.stays_packed() for info in infos):
            return None
        parts = [self._blocks(name)[0].reshape(info.shape[0], -1) for name, info in zip(names, infos, strict=True)]
        blocks = np.concatenate(parts).T  # (blocks, rows)
        numbers = np.ascontiguousarray(blocks["packed"].swapaxes(1, 2))  # (blocks, 16 or 32, rows)
        scale, least = np.ascontiguousarray(blocks["scale"]), None
        if kinds == {"Q4_1"}:
            least = np.ascontiguousarray(blocks["least"])
        elif kinds == {"Q4_0"}:
            least = -8 * scale.astype(np.float32)
        return Packed(numbers, scale, least)

    def _blocks(self, name: str) -> tuple[Any, ArrayInfo]:
        """Return an array as it is packed, one element a block, with finite factors, and its place."""
        if name not in self.arrays:
            raise ValueError(f"{self.path} has no {name}; it has {', '.join(list(self.arrays)[:3])} …")
        info = self.arrays[name]
        layout = info.kind.layout
        blocks: Any = np.fromfile(info.path, layout, (info.stop - info.start) // layout.itemsize, offset=info.start)
        for field in ("scale", "least"):
            if field in (layout.names or ()) and not np.isfinite(blocks[field]).all():
                self._refuse(name)
        return blocks, info

    def fail(self, what: str) -> NoReturn:
        raise ValueError(f"{self.path} contradicts itself: {what}; fetch the file again")

    def _refuse(self, name: str) -> NoReturn:
        raise ValueError(f"{self.path}: {name} holds NaN or infinite values; fetch the file again")


def bytes_of(shape: Sequence[int], kind: Kind) -> int:
    """Return how many bytes an array takes in a file."""
    return math.prod(shape) // kind.numbers * kind.layout.itemsize


# --- Ways to pack numbers ---------------------------------------------------------------------------------------------
# Source: src/ggml-quants.c of ggml-org/ggml.


def _bf16(blocks: Any) -> Array:
    """Unpack float32 without its last 16 bits."""
    return (blocks["packed"].astype(np.uint32) << 16).view(np.float32)


def _halves(packed: Any) -> Array:
    """Split bytes (n, 16) into numbers 0…15, (n, 32), float32."""
    numbers = np.empty((len(packed), _BLOCK), np.float32)
    numbers[:, : _BLOCK // 2] = packed & 15
    numbers[:, _BLOCK // 2 :] = packed >> 4
    return numbers


def _q4_0(blocks: Any) -> Array:
    """Compute scale · (number − 8)."""
    numbers = _halves(blocks["packed"])
    numbers -= 8
    numbers *= blocks["scale"].astype(np.float32)[:, None]
    return numbers


def _q4_1(blocks: Any) -> Array:
    """Compute scale · number + least."""
    numbers = _halves(blocks["packed"])
    numbers *= blocks["scale"].astype(np.float32)[:, None]
    numbers += blocks["least"].astype(np.float32)[:, None]
    return numbers


def _q8_0(blocks: Any) -> Array:
    """Compute scale · number."""
    return blocks["packed"] * blocks["scale"].astype(np.float32)[:, None]


def _plain(blocks: Any) -> Array:
    return blocks["value"].astype(np.float32)


F32 = Kind("F32", 1, np.dtype([("value", "<f4")]), _plain)
F16 = Kind("F16", 1, np.dtype([("value", "<f2")]), _plain)
BF16 = Kind("BF16", 1, np.dtype([("packed", "<u2")]), _bf16)
Q4_0 = Kind("Q4_0", _BLOCK, np.dtype([("scale", "<f2"), ("packed", *_HALVES)]), _q4_0)
Q4_1 = Kind("Q4_1", _BLOCK, np.dtype([("scale", "<f2"), ("least", "<f2"), ("packed", *_HALVES)]), _q4_1)
Q8_0 = Kind("Q8_0", _BLOCK, np.dtype([("scale", "<f2"), ("packed", "i1", (_BLOCK,))]), _q8_0)
