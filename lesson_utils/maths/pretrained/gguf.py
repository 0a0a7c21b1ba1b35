"""GGUF, a file format for trained models: facts by name, then arrays by name, mostly packed into a few bits a number.

A file says, in this order: "GGUF", its version, how many arrays and how many facts there are; the facts; of each array
its name, shape, kind and place; then the arrays. All numbers are little-endian.

Source: docs/gguf.md and src/ggml-quants.c of ggml-org/ggml.
"""

import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import Packed

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_BLOCK = 32  # numbers that are packed together
_HALVES = (np.dtype("u1"), (_BLOCK // 2,))  # the first 16 numbers in the low halves of 16 bytes, the others in the high


class ArrayInfo(NamedTuple):
    """The place of an array in the file: `start` and `stop` in bytes; `shape` as NumPy has it, rows first."""

    shape: tuple[int, ...]
    kind: int
    start: int
    stop: int


class Reader:
    """The facts of a file, its arrays by name, and `read(name)`, which unpacks one of them to float32.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no GGUF, is cut off, or contradicts itself; the message says which.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"there is no file {self.path}; give the path of a .gguf file")
        if self.path.is_dir():
            raise ValueError(f"{self.path} is a folder; give the path of a .gguf file")
        # Facts are read here, and each array when it is asked for: a file that is mapped into memory takes all of its
        # size there in a browser.
        self._size = self.path.stat().st_size
        with self.path.open("rb") as self._file:
            if self._file.read(4) != b"GGUF":
                raise ValueError(f"{self.path} is no GGUF: it does not begin with these four letters")
            self._at = 4
            infos = self._read_facts()
        alignment = self.facts.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            self._fail(f"general.alignment is {alignment!r}")
        start = math.ceil(self._at / alignment) * alignment
        self.arrays = {name: self._place(name, start, *info) for name, info in infos.items()}

    def _read_facts(self) -> dict[str, Any]:
        """Read the facts, and of each array its shape, kind and place, which are returned."""
        version = self._number("I")
        if version not in (2, 3):
            raise ValueError(f"{self.path} is GGUF of version {version}; only 2 and 3 can be read")
        num_arrays, num_facts = self._number("Q"), self._number("Q")
        self.facts: dict[str, Any] = {}
        for _ in range(num_facts):
            self._enter(self.facts, self._string(), self._value(self._number("I")))
        infos: dict[str, Any] = {}
        for _ in range(num_arrays):
            name, axes = self._string(), self._number("I")
            if axes > 4:
                self._fail(f"{name} has {axes} axes")
            shape = tuple(self._number("Q") for _ in range(axes))[::-1]
            self._enter(infos, name, (shape, self._number("I"), self._number("Q")))
        return infos

    def _fail(self, what: str) -> NoReturn:
        raise ValueError(f"{self.path} contradicts itself: {what}; fetch the file again")

    def _take(self, size: int) -> bytes:
        """Read `size` bytes more."""
        if size > self._size - self._at:
            raise ValueError(
                f"{self.path} is cut off, or is no model: byte {self._at + size} is asked for, there are {self._size}"
            )
        self._at += size
        return self._file.read(size)

    def _number(self, code: str) -> Any:
        return struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0]

    def _string(self) -> str:
        size = self._number("Q")
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            self._fail(f"the text at byte {self._at - size} is not UTF-8")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            of, count = self._number("I"), self._number("Q")
            if of in _NUMBERS:
                size = count * struct.calcsize("<" + _NUMBERS[of])
                return list(struct.unpack(f"<{count}{_NUMBERS[of]}", self._take(size)))
            if of == _STRING:
                return [self._string() for _ in range(count)]
            self._fail(f"a list of kind {of}, which is not known")
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        self._fail(f"a fact of kind {kind}, which is not known")

    def _enter(self, names: dict[str, Any], name: str, value: Any) -> None:
        if name in names:
            self._fail(f"{name} is there twice")
        names[name] = value

    def _place(self, name: str, base: int, shape: tuple[int, ...], kind: int, offset: int) -> ArrayInfo:
        if kind not in KINDS:
            known = ", ".join(kind.name for kind in KINDS.values())
            raise ValueError(
                f"{self.path}: {name} is packed in a way, kind {kind}, that is not known; known are {known}"
            )
        row, block = shape[-1] if shape else 1, KINDS[kind].numbers
        if row % block:
            self._fail(f"{name} has rows of {row}, packed by {block}")
        start = base + offset
        stop = start + math.prod(shape) // block * KINDS[kind].layout.itemsize
        if stop > self._size:
            raise ValueError(f"{self.path} is cut off: {name} ends at byte {stop}, the file at {self._size}")
        return ArrayInfo(shape, kind, start, stop)

    def read(self, name: str) -> Array:
        """Unpack one array to float32.

        Raises:
            ValueError: there is none of that name, or it holds NaN or infinite values.
        """
        blocks, kind = self._blocks(name)
        numbers = kind.unpack(blocks)
        if "scale" not in (kind.layout.names or ()) and not np.isfinite(numbers).all():
            self._refuse(name)
        return numbers.reshape(self.arrays[name].shape)

    def packed(self, *names: str) -> Packed | None:
        """Return matrices as they are packed, one below the other; None where `Packed` cannot hold them.

        Raises:
            ValueError: as `read`.
        """
        infos = [self.arrays[name] for name in names]
        kinds = {KINDS[info.kind].name for info in infos}
        if kinds not in ({"Q4_1"}, {"Q8_0"}) or any(len(info.shape) != 2 for info in infos):
            return None
        parts = [self._blocks(name)[0].reshape(info.shape[0], -1) for name, info in zip(names, infos, strict=True)]
        blocks = np.concatenate(parts).T  # (blocks, rows)
        numbers = np.ascontiguousarray(blocks["packed"].swapaxes(1, 2))  # (blocks, 16 or 32, rows)
        least = np.ascontiguousarray(blocks["least"]) if kinds == {"Q4_1"} else None
        return Packed(numbers, np.ascontiguousarray(blocks["scale"]), least)

    def _blocks(self, name: str) -> tuple[Any, "Kind"]:
        """Return an array as it is packed, one element a block, with finite factors, and how it is packed."""
        if name not in self.arrays:
            raise ValueError(f"{self.path} has no {name}; it has {', '.join(list(self.arrays)[:3])} …")
        info = self.arrays[name]
        kind = KINDS[info.kind]
        count = (info.stop - info.start) // kind.layout.itemsize
        blocks: Any = np.fromfile(self.path, kind.layout, count, offset=info.start)
        for field in ("scale", "least"):
            if field in (kind.layout.names or ()) and not np.isfinite(blocks[field]).all():
                self._refuse(name)
        return blocks, kind

    def _refuse(self, name: str) -> NoReturn:
        raise ValueError(f"{self.path}: {name} holds NaN or infinite values; fetch the file again")


class Kind(NamedTuple):
    """A way to pack numbers: `numbers` of them in one element of `layout`."""

    name: str
    numbers: int
    layout: "np.dtype[Any]"
    unpack: Callable[[Any], Array]


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


KINDS = {
    0: Kind("F32", 1, np.dtype([("value", "<f4")]), _plain),
    1: Kind("F16", 1, np.dtype([("value", "<f2")]), _plain),
    2: Kind("Q4_0", _BLOCK, np.dtype([("scale", "<f2"), ("packed", *_HALVES)]), _q4_0),
    3: Kind("Q4_1", _BLOCK, np.dtype([("scale", "<f2"), ("least", "<f2"), ("packed", *_HALVES)]), _q4_1),
    8: Kind("Q8_0", _BLOCK, np.dtype([("scale", "<f2"), ("packed", "i1", (_BLOCK,))]), _q8_0),
    30: Kind("BF16", 1, np.dtype([("packed", "<u2")]), _bf16),
}
