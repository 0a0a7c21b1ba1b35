"""GGUF, a file format for trained models: facts by name, then arrays by name, mostly packed into a few bits a number.

A file says, in this order: "GGUF", its version, how many arrays and how many facts there are; the facts; of each array
its name, shape, kind and place; then the arrays. All numbers are little-endian.

Source: docs/gguf.md of ggml-org/ggml.
"""

import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.maths.pretrained import arrays
from lesson_utils.maths.pretrained.arrays import ArrayInfo, Arrays, Kind, bytes_of

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
KINDS = {0: arrays.F32, 1: arrays.F16, 2: arrays.Q4_0, 3: arrays.Q4_1, 8: arrays.Q8_0, 30: arrays.BF16}


def kind_of(number: int) -> Kind | None:
    """Return a kind by its number in files: one of ours, or what the package `gguf`, if it is there, can unpack."""
    if number in KINDS:
        return KINDS[number]
    try:
        import gguf  # here: it is large, and few files need it

        of = gguf.GGMLQuantizationType(number)
        numbers, size = gguf.GGML_QUANT_SIZES[of]
        gguf.dequantize(np.zeros((1, size), np.uint8), of)
    except (ModuleNotFoundError, ValueError, KeyError, NotImplementedError):
        return None
    layout = np.dtype([("packed", "u1", (size,))])
    return Kind(of.name, numbers, layout, lambda blocks: gguf.dequantize(blocks["packed"], of))


class Reader(Arrays):
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
            self.fail(f"general.alignment is {alignment!r}")
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
                self.fail(f"{name} has {axes} axes")
            shape = tuple(self._number("Q") for _ in range(axes))[::-1]
            self._enter(infos, name, (shape, self._number("I"), self._number("Q")))
        return infos

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
            self.fail(f"the text at byte {self._at - size} is not UTF-8")

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
            self.fail(f"a list of kind {of}, which is not known")
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        self.fail(f"a fact of kind {kind}, which is not known")

    def _enter(self, names: dict[str, Any], name: str, value: Any) -> None:
        if name in names:
            self.fail(f"{name} is there twice")
        names[name] = value

    def _place(self, name: str, base: int, shape: tuple[int, ...], kind: int, offset: int) -> ArrayInfo:
        if (packing := kind_of(kind)) is None:
            known = ", ".join(kind.name for kind in KINDS.values())
            raise ValueError(
                f"{self.path}: {name} is packed in a way, kind {kind}, that is not known here; known are {known}, and "
                f"others where the package gguf is installed (pip install gguf)"
            )
        row = shape[-1] if shape else 1
        if row % packing.numbers:
            self.fail(f"{name} has rows of {row}, packed by {packing.numbers}")
        start = base + offset
        stop = start + bytes_of(shape, packing)
        if stop > self._size:
            raise ValueError(f"{self.path} is cut off: {name} ends at byte {stop}, the file at {self._size}")
        return ArrayInfo(self.path, shape, packing, start, stop)
