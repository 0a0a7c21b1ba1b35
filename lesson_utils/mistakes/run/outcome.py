"""The outcome of one call as plain data, and whether two calls did the same.

What an object of a learner's own class does when it is compared, it does before, within limits.
"""

import ast
import inspect
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from types import CoroutineType
from typing import Any

import numpy as np

TOLERANCE = {"float32": 1e-4, "float16": 1e-2}  # relative and absolute: far above rounding, far below any mistake
DEFAULT_TOLERANCE = 1e-7
MANY = 100  # zeros and ones tell something if there are so many
NUMBERS = "biufcO"  # kinds of dtype; objects may be numbers
OPERATIONS = {"matmul": "@", "not aligned": "@", "broadcast": "+", "truth value": "if", "reshape": "reshape"}
MOST_NUMBERS = 3_000_000  # in a result; the arrays of all cases have less than 10,000
PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), Fraction, Decimal, date, timedelta)
CONTAINERS = (list, tuple, dict, set, frozenset)
MOST_ITEMS = 100_000  # in one list; each takes as long as hundreds of numbers in an array
DEEP = 12  # lists inside lists


class Explained(ValueError):
    """An error of what an exercise hands to a learner's function; its text is for the learner, as it stands."""


@dataclass(frozen=True)
class Outcome:
    """The value or the error that one call led to."""

    value: Any = None
    error: BaseException | None = None
    timed_out: bool = False
    where: str = ""  # the function's own line, for errors and time-outs
    line: str = ""  # its text
    variables: Mapping[str, Any] = field(default_factory=dict)  # the function's own, at the error
    changed: tuple[int, ...] = ()  # arguments changed in place
    borrowed: tuple[str, ...] = ()  # functions of the library that were called
    returned: Any = None  # the very object that came back; `value` is what it held then, as plain data

    def results(self) -> tuple[Any, ...]:
        """Return the value as several results; a list of arrays counts as several, a list of numbers as one."""
        value = self.value
        if isinstance(value, tuple) or (isinstance(value, list) and any(isinstance(x, np.ndarray) for x in value)):
            return tuple(value)
        return (value,)

    def is_telling(self) -> bool:
        """Return whether two different mistakes would hardly have this in common, as they have NaN, zeros or an error."""
        if self.error or self.timed_out:
            return False
        try:
            numbers = np.concatenate([np.ravel(plain(x)).astype(float) for x in self.results()])
        except (TypeError, ValueError, OverflowError):
            return False
        if all(np.asarray(x).dtype == bool for x in self.results()) or (
            numbers.size > MANY and np.isin(numbers, (0, 1)).all()
        ):
            return 0 < numbers.sum() < numbers.size
        other = numbers[np.isfinite(numbers) & (numbers != 0) & (numbers != 1)]
        different = min(other.size, 1) + bool((other != other[:1]).any())  # no set: there may be millions of them
        return different >= min(2, numbers.size)


def same(a: Outcome, b: Outcome) -> bool:
    """Return whether two functions did the same, right or wrong."""
    if a.error or b.error or a.timed_out or b.timed_out:
        return a.timed_out == b.timed_out and same_error(a.error, b.error)
    if len(a.results()) != len(b.results()):
        return False
    return all(map(_same_value, a.results(), b.results()))


def _same_value(a: Any, b: Any) -> bool:
    try:
        x, y = np.asarray(plain(a)), np.asarray(plain(b))
        if x.dtype.kind in NUMBERS and y.dtype.kind in NUMBERS:
            return x.shape == y.shape and close(x, y)
    except (TypeError, ValueError, OverflowError):  # not numbers at all
        pass
    return _same_words(a, b)


def _same_words(a: Any, b: Any) -> bool:
    """Return whether two things that are no numbers are the same: texts, dates, lists of lists of different lengths."""
    if type(a) is not type(b) or (isinstance(a, np.ndarray) and (a.shape != b.shape or a.dtype != b.dtype)):
        return False
    try:
        return a.tolist() == b.tolist() if isinstance(a, np.ndarray) else repr(a) == repr(b)
    except ValueError:  # a number with thousands of digits has no text
        return bool(a == b)


def same_error(a: BaseException | None, b: BaseException | None) -> bool:
    """Return whether the kinds of two errors are the same, and the shapes in them; words and order may differ."""
    if a is None or b is None or type(a) is not type(b):
        return a is b
    if str(a) == str(b) or _operation(a) != _operation(b):
        return str(a) == str(b)
    ours, theirs = _numbers(a), _numbers(b)
    return bool(ours and theirs) and (ours <= theirs or theirs <= ours)  # `x /= y` lists one more shape than `x / y`


def _operation(error: BaseException) -> str | None:
    """Return what went wrong: a product, lining up, a yes or no asked of an array."""
    return next((sign for words, sign in OPERATIONS.items() if words in str(error)), None)


def _numbers(error: BaseException) -> set[tuple[str, ...]]:
    """Return the shapes and sizes in an error's text, whatever their order."""
    text = str(error)
    shapes = re.findall(r"\((\d[\d,]*)\)", text.replace(", ", ","))
    found = [tuple(sorted(re.findall(r"\d+", shape))) for shape in shapes]
    return set(found or [(number,) for number in re.findall(r"\b\d+\b", text)])


def _sides(error: BaseException | None, parameters: Sequence[str]) -> tuple[set[str], set[str]] | None:
    """Return the parameters left and right of the sign in the operation that failed; None if that can't be said."""
    found, step = None, error.__traceback__ if error else None
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(("<part ", "<cell ", "<ipython")) or "ipykernel" in file:
            found = step
        step = step.tb_next
    if found is None:
        return None
    code = found.tb_frame.f_code
    line, last, start, end = list(code.co_positions())[found.tb_lasti // 2]
    if line is None or line != last:
        return None
    text = linecache.getline(code.co_filename, line).encode()[start:end].decode(errors="ignore")
    with suppress(SyntaxError):
        match ast.parse(text.strip()).body:
            case [ast.Expr(value=ast.BinOp() as operation)]:
                sides = (operation.left, operation.right)
                read = ({n.id for n in ast.walk(side) if isinstance(n, ast.Name)} for side in sides)
                left, right = (names.intersection(parameters) for names in read)
                return left, right
    return None


def same_place(a: BaseException | None, b: BaseException | None, parameters: Sequence[str]) -> bool:
    """Return whether two errors come from operations on the same parameters; True if that can't be said."""
    ours, theirs = _sides(a, parameters), _sides(b, parameters)
    if ours is None or theirs is None:
        return True
    (left, right), (other_left, other_right) = ours, theirs
    if (left - right) & (other_right - other_left) or (right - left) & (other_left - other_right):
        return False  # the same array on the other side
    mine, known = left | right, other_left | other_right
    return bool(mine & known) or not (mine and known)


def close(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays are equal but for rounding."""
    tolerance = max(TOLERANCE.get(str(x.dtype), DEFAULT_TOLERANCE) for x in (a, b))
    with np.errstate(all="ignore"):
        good = (a == b) | ((a != a) & (b != b))
        if a.dtype.kind != "b" or b.dtype.kind != "b":  # booleans have no difference
            good = good | (np.abs(a - b) < tolerance + tolerance * np.abs(b))  # from ∞, all are ∞ away: not less
        return bool(good.all())


def entries(x: Any) -> list[Any]:
    """Return what stands in arrays, lists and tuples, in each other, of whatever shapes: NumPy makes one array of few of them."""
    if isinstance(x, list | tuple):
        return [entry for part in x for entry in entries(part)]
    return list(np.asarray(x, object).ravel().tolist())


def plain(x: Any) -> Any:
    """Return a Fraction or a Decimal as a float, everything else as it is."""
    try:
        return float(x) if isinstance(x, Fraction | Decimal) else x
    except (OverflowError, ValueError):  # as large as 10**400, or a signalling NaN
        return x


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
