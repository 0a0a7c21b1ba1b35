"""Results as plain data: what an object of a learner's own class does when it is compared, it does before, within limits."""

import inspect
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from types import CoroutineType
from typing import Any

import numpy as np

MOST_NUMBERS = 3_000_000  # in a result; the arrays of all cases have less than 10,000
PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), Fraction, Decimal, date, timedelta)
CONTAINERS = (list, tuple, dict, set, frozenset)
MOST_ITEMS = 100_000  # in one list; each takes as long as hundreds of numbers in an array
DEEP = 12  # lists inside lists


def settled(value: Any) -> Any:
    """Return what a function returned, as plain data that can be looked at without running code of its own.

    Arrays are copied, since the next call may write into the same ones. An array of a class of its own becomes a plain one; any other object one without methods, of the same name.

    Raises:
        ValueError: it is a list that contains itself, as `found.append(found)` makes it: NumPy would unpack it for ever.
        MemoryError: it is an array so large that comparing it would take the memory that is left.
    """
    return _settled(value, DEEP, [MOST_NUMBERS])


def _settled(value: Any, deep: int, left: list[int]) -> Any:
    kind = type(value)
    left[0] -= 1
    if left[0] < 0:
        raise MemoryError(f"more than {MOST_NUMBERS:,} things come back")
    if kind in PLAIN or issubclass(kind, np.generic):
        return value
    if issubclass(kind, np.ndarray):
        return _settled_array(value, deep, left)
    if kind in CONTAINERS or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        if deep == 0:
            raise ValueError("the list that comes back contains itself")
        if len(value) > MOST_ITEMS:
            raise MemoryError(f"a list with shape ({len(value)},) comes back")
        inside = [_settled(item, deep - 1, left) for item in (value.values() if kind is dict else value)]
        if kind is dict:
            return dict(zip(map(str, value), inside, strict=True))
        return inside if kind is list else tuple(inside) if issubclass(kind, tuple) else set(map(repr, inside))
    if kind is CoroutineType:
        value.close()  # or Python warns that nobody awaits it
    return stand_in(kind, getattr(kind, "__array__", None) and np.array(value))


def _settled_array(value: np.ndarray, deep: int, left: list[int]) -> np.ndarray:
    if value.size > MOST_NUMBERS:
        raise MemoryError(f"an array with shape {value.shape} comes back")
    if not isinstance(value, np.ma.MaskedArray | np.matrix):
        value = value.view(np.ndarray)
    value = value.copy(order="K")
    if value.dtype.kind == "O" and deep:
        inside = np.empty(value.size, object)
        for i, item in enumerate(value.view(np.ndarray).ravel()):
            inside[i] = _settled(item, deep - 1, left)
        plain = inside.reshape(value.shape)
        return np.ma.array(plain, mask=value.mask) if isinstance(value, np.ma.MaskedArray) else plain
    return value


def stand_in(kind: type, array: Any = None) -> Any:
    """Return an object whose class has the name of `kind`; it is an array for NumPy if `array` is one."""
    members: dict[str, Callable[..., Any]] = {}
    if isinstance(array, np.ndarray) and array.dtype.kind != "O":
        held = array.copy()
        members["__array__"] = lambda self, dtype=None, copy=None: held if dtype is None else held.astype(dtype)
    return type(type.__getattribute__(kind, "__name__"), (), members)()


def readable(function: Any) -> Any:
    """Return a function that Python can be asked about; if asking raises an error, one that calls it."""
    try:
        inspect.unwrap(function)
        if callable(function):
            str(getattr(function, "__name__", "")), str(getattr(function, "__code__", ""))
    except Exception:
        return lambda *arguments: function(*arguments)
    return function


def settled_error(error: BaseException) -> BaseException:
    """Return an error whose text can be read."""
    try:
        str(error)
    except BaseException:  # as its __str__ raises it
        return RuntimeError(f"a {type(error).__name__}, whose text cannot be read")
    return error
