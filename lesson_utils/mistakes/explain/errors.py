"""Errors in words: the shapes in the failing line, and what belongs to other libraries than NumPy."""

import ast
import contextlib
import difflib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.run.outcome import Explained, Outcome


def is_about_dots(error: BaseException | None) -> bool:
    """Return whether a `...` of the stub still stands there. (`einsum` has errors about its own dots.)"""
    return re.search(DOTS, str(error)) is not None


# What is written → what it is in NumPy. Looked for in the failing line.
FOREIGN = (
    (r"\btorch\.|\bF\.\w+|\bnn\.\w+", "this is PyTorch; here everything is NumPy (`np`)"),
    (r"\.permute\(", "`.permute` is PyTorch's; NumPy's `.transpose(0, 2, 1)` lists all axes in their new order, and `.swapaxes(-1, -2)` swaps two"),
    (r"\.view\(", "`.view(...)` is PyTorch's; NumPy's is `.reshape(...)`"),
    (r"\.chunk\(", "`.chunk` is PyTorch's; NumPy's is `np.split(x, 3, axis=-1)`"),
    (r"\.masked_fill_?\(", "`.masked_fill` is PyTorch's; NumPy's is `np.where(mask, scores, -np.inf)`"),
    (r"\bdim\s*=", "`dim=` is PyTorch's; NumPy's is `axis=`"),
    (r"\bkeepdim\s*=", "`keepdim=` is PyTorch's; NumPy's is `keepdims=`"),
    (r"\bnp\.cat\(|\.cat\(", "`cat` is PyTorch's; NumPy's is `np.concatenate([a, b])`"),
    (r"\.unsqueeze\(", "`.unsqueeze(1)` is PyTorch's; NumPy's is `x[:, None]`"),
    (r"\.(clone|detach|float|double|contiguous|item_?|t)\(\)", "this method is PyTorch's; in NumPy `.copy()` copies, `.astype(np.float32)` converts, `.T` transposes"),
    (r"\.size\(", "`.size()` is PyTorch's; NumPy's is `.shape`"),
    (r"\bnp\.relu\b", "NumPy has no relu: `np.maximum(0, x)`"),
    (r"\bnp\.(tril|triu)_indices\b", "`np.tril_indices` gives places, not a mask; `np.tril(np.ones(shape, bool))` is one"),
    (r"\bnp\.inverse\b|\bnp\.rsqrt\b", "NumPy has no such function: `1 / np.sqrt(x)`"),
)  # fmt: skip
SIGNS = {ast.MatMult: "@", ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.Div: "/"}


def foreign_words(line: str, exercise: Exercise) -> str | None:
    """Return what a line has from elsewhere, and what to write instead."""
    return next((text for pattern, text in (*exercise.foreign, *FOREIGN) if re.search(pattern, line)), None)


def shape_words(value: Any) -> str | None:
    """Return what is worth knowing of a variable: "has shape (4, 3)"."""
    if isinstance(value, np.ndarray):
        kind = "" if value.dtype.kind == "f" else f" of {value.dtype}"
        return f"has shape {value.shape}{kind}" if value.ndim else "is a single number"
    if isinstance(value, tuple | list):
        things = "arrays" if value and all(isinstance(x, np.ndarray) for x in value) else "things"
        return f"is a {type(value).__name__} of {len(value)} {things}"
    return f"is {value}" if isinstance(value, int | float | np.generic | None) else None


def _nodes(line: str) -> list[ast.AST]:
    """Return the nodes of a line, or of the head of a block; none of a part of a statement."""
    for text in (line, f"{line}\n    pass"):
        with contextlib.suppress(SyntaxError):
            return list(ast.walk(ast.parse(text)))
    return []


def shapes_in(line: str, variables: Mapping[str, Any]) -> str:
    """Return the shapes of the variables in a line."""
    read = dict.fromkeys(n.id for n in _nodes(line) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    known = [name for name in read if name in variables]  # a variable on the left is not made yet
    said = [f"`{name}` {text}" for name in known if (text := shape_words(variables[name]))]
    return f"Here {', '.join(said)}." if said else ""


def _failing_operation(line: str, variables: Mapping[str, Any], scope: Mapping[str, Any]) -> str:
    """Return the operation in the line that fails for its shapes, in words; "" if none does."""
    nodes = _nodes(line)
    operations: list[tuple[ast.expr, ast.operator, ast.expr]]
    operations = [(n.target, n.op, n.value) for n in nodes if isinstance(n, ast.AugAssign)]
    operations += [(n.left, n.op, n.right) for n in nodes if isinstance(n, ast.BinOp)]
    for one, operator, other in reversed(operations):  # the inner ones first
        if type(operator) not in SIGNS:
            continue
        left, right = ast.unparse(one), ast.unparse(other)
        try:
            with np.errstate(all="ignore"):
                a, b = (eval(side, {**scope, **variables}) for side in (left, right))
        except Exception:
            continue
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and (why := _misfit(SIGNS[type(operator)], a, b)):
            return f"`{left}` has shape {a.shape}, `{right}` has shape {b.shape}: {why}."
    return ""


def _misfit(sign: str, a: np.ndarray, b: np.ndarray) -> str:
    """Return why the shapes of two arrays do not fit; "" if they do."""
    meet = a.shape, b.shape
    why = f"`{sign}` lines shapes up from the right, and an axis must have the same length in both, or 1"
    if sign == "@":
        columns = a.shape[-1] if a.ndim else "none"
        rows = b.shape[-2] if b.ndim > 1 else b.shape[-1] if b.ndim else "none"
        its = "last but one of the right" if b.ndim > 1 else "only one of the right"
        if columns != rows:
            return f"`@` sums over the last axis of the left and the {its}, and {columns} is not {rows}"
        meet = a.shape[:-2], b.shape[:-2]
        why = f"the axes in front, {meet[0]} and {meet[1]}, do not line up"
    try:
        np.broadcast_shapes(*meet)
    except ValueError:
        return why
    return ""


def meaning(outcome: Outcome, exercise: Exercise) -> str:
    """Return what an error says, in words for a learner."""
    error, line, variables = outcome.error, outcome.line, outcome.variables
    assert error is not None
    if foreign := foreign_words(line, exercise):
        return foreign[0].upper() + foreign[1:] + "."
    if not isinstance(error, MemoryError) and (operation := _failing_operation(line, variables, exercise.names())):
        return operation
    if type(error) is NameError and (whole := _with_prefix(error, line, exercise)):
        return f"There is no `{error.name}` here. Write `{whole}`."
    text = f"{type(error).__name__}: {error}"
    found, words = next((found, words) for sign, words in PLAIN if (found := re.search(sign, text)))
    plain = words.format(*found.groups()) if isinstance(words, str) else words(found, line, variables)
    return f"{plain} {shapes_in(line, variables)}".strip()


def _with_prefix(error: NameError, line: str, exercise: Exercise) -> str | None:
    """Return what is meant by a call of `softmax`: `my_softmax`, or that of a module, where the exercise allows it."""
    if f"{error.name}(" not in line:
        return None
    bare = str(error.name).removeprefix("my_")
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if f"my_{bare}" in frame.f_globals and f"my_{bare}" != exercise.function_name:
        return f"my_{bare}"
    modules = [(name, module) for name, module in exercise.names().items() if inspect.ismodule(module)]
    forbidden = [*exercise.library, None]
    return next((f"{name}.{bare}" for name, module in modules if getattr(module, bare, None) not in forbidden), None)


def _unknown_name(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    name = found[1]
    if name in sys.stdlib_module_names and f"{name}." in line:
        return f"`{name}` is a module of Python's. Write `import {name}` at the top of your cell."
    near = difflib.get_close_matches(name, [n for n in variables if n != name], 1)
    also = f"Did you mean `{near[0]}`?" if near else "Is it spelled as where you set it, and was its cell run here?"
    return f"There is no `{name}` here. {also}"


def _unknown_attribute(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    owner, name = found.groups()
    kinds = {"numpy.ndarray": "An array", "numpy": "NumPy", "tuple": "A tuple", "list": "A list"}
    more = " To put one below the other: `np.concatenate([K, k])`." if name in ("append", "extend") else ""
    return f"{kinds.get(owner, f'`{owner}`')} has no `{name}`.{more}"


def _one_number_expected(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    if "concatenate" in line or "stack" in line:
        return "`np.concatenate` takes one list of arrays, in brackets of its own: `np.concatenate([a, b])`."
    return "Functions of `math`, `float` and `int` take one number, not an array. NumPy's take both: `np.tanh`, `np.exp`, `np.sqrt`."


def _other_shape(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    why = " Does the slice on the left go beyond the array's end?" if ":" in line.partition("=")[0] else ""
    return f"The left side of `=` has shape {found[2]}, the right side {found[1]}.{why}"


def _no_fit(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    if "einsum" in line:
        return "In `einsum`, axes with the same letter must have the same length, or 1."
    if not re.search(r"[-+*/@<>]|\bnp\.", line.partition("=")[2] or line):
        return "Shapes do not fit inside a function that this line calls. Does each argument have the shape that the function expects?"
    product = ", and `@` sums over the last axis of the left and the last but one of the right" if "@" in line else ""
    return f"Shapes do not fit: NumPy lines them up from the right{product}."


def _out_of_bounds(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    return f"Index {found[1]} lies beyond the end of axis {found[2]}, which has length {found[3]}: its last index is {int(found[3]) - 1}."


def _other_number(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    names, _, shape = line.partition(" = ")
    if re.fullmatch(r"\w+\.shape", shape) and "*" not in names and len(asked := names.split(", ")) > 1:
        last = ", ".join(asked[1:] if len(asked) > 2 else asked)
        return f"`.shape` has one number for each axis, and the left side has another number of names. With `*leading, {last} = {shape}`, the list `leading` takes the lengths of the axes in front, however many there are."
    return "The left side of `=` has another number of names than the right side has values."


def _too_short(found: re.Match[str], line: str, variables: Mapping[str, Any]) -> str:
    if found[1] == "tuple" and ".shape[" in line:
        return "`.shape` has a number for each axis, and an array here has fewer axes. Count from the end: `.shape[-1]` is always the last."
    return f"The {found[1]} has no entry with this index: it is shorter."


DOTS = r"'ellipsis'|'Ellipsis'|ellipsis object|type ellipsis"
# A pattern in an error's kind and text → what it means; the first that fits. {} are the pattern's groups.
PLAIN: tuple[tuple[str, str | Callable[[re.Match[str], str, Mapping[str, Any]], str]], ...] = (
    ("(?s)^Explained: (.*)", "{}"),
    ("^UnboundLocalError", "A variable is used before it has a value. Is the line that sets it inside an `if` or a loop that did not run?"),
    (r"^NameError: name '(\w+)'", _unknown_name),
    ("truth value", "`if`, `and`, `or` and `not` need one yes or no, and an array holds many. Ask `if mask is not None:`; between arrays write `&`, `|`, `~`."),
    (r"^AttributeError: .*?'([\w.]+)' .*attribute '(\w+)'", _unknown_attribute),
    ("not callable", "Something is called like a function that is none: is a `*` or `@` missing before a bracket, or was a name such as `sum` given another value?"),
    ("0-dimensional arrays|length-1 arrays|scalar.*convert|convert.*scalar", _one_number_expected),
    (r"bitwise_xor|for \^", "`^` is not a power in Python; a power is `**`."),
    ("data type.*understood|Cannot interpret", "The shape is one argument, in brackets of its own: `np.zeros((3, 4))`."),
    ("unexpected keyword|got an unexpected|positional argument", "The call has arguments that this function does not take, or too few."),
    (r": axis -?\d+ is out of bounds", "The array has fewer axes than that. Count from the end: `axis=-1` is always the last."),
    (r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)", _out_of_bounds),
    (r"index -?\d+ is out of bounds", "An index lies beyond the array's end."),
    (r"cannot reshape array of size (\d+) into shape (.+)", "`reshape` keeps all entries: {} of them do not fit into shape {}."),
    ("axes don't match", "`.transpose` must list each axis of the array once, and this array has another number of axes. `.swapaxes` swaps two axes, counted from the end, however many stand in front."),
    ("unpack", _other_number),
    ("^IndexError: (list|tuple) index", _too_short),
    (r"array is 1-dimensional, but (\d+) were", "More indices than axes: {} indices, and the array has 1 axis."),
    (r"array is (\d)-dimensional, but (\d+) were", "More indices than axes: {1} indices, and the array has {0} axes."),
    (r"axis is (\d+) but size of corresponding boolean axis is (\d+)", "A mask in square brackets has the shape of what it picks from: {1} entries do not fit an axis of length {0}."),
    ("^IndexError", "An index does not fit the array. An index is a whole number, a slice, or a boolean mask of the array's shape."),
    ("must match exactly|dimensions must match", "Arrays that are joined must have the same lengths along all other axes."),
    ("^ZeroDivisionError", "Something is divided by 0."),
    ("^RecursionError", "The function calls itself without end."),
    (r"MemoryError: .*with shape (\(.+?\))", "An array is made of shape `{}`; no case needs that many numbers. Is a size, a power or a quotient another one than it should be?"),
    ("MemoryError", "What is made here does not fit into the memory."),
    (r"input array from shape (\(.*?\)) into shape (\(.*?\))", _other_shape),
    ("broadcast|gufunc|not aligned|mismatch", _no_fit),
    ("einsum|einstein|subscripts", "`einsum` needs a letter for each axis of each array; `...` stands for any leading axes, as in `...qd,...kd->...qk`."),
    (DOTS, "There is still a `...` to replace."),
    ("delete array elements", "An array keeps its length, so `del` can't take an entry out. Write the entries that stay into a new list."),
    ("'function'|'method'|builtin_function", "A function stands where its result belongs: call it, with its arguments in brackets."),
    (r"operand type.*'tuple'", "A tuple stands where one array belongs. Where a function returns several things, take the one that you need: `f(x)[0]` is the first."),
    ("NoneType", "Something is None: an argument that may be None, or the result of a function without `return`."),
    (r"(?s): (.*?)\.?$", "Python's words for it: {:.200}."),
)  # fmt: skip


def error_message(outcome: Outcome, label: str, exercise: Exercise) -> str:
    """Return the message for an error that no known mistake makes."""
    if isinstance(outcome.error, SystemExit | GeneratorExit):
        return f"Your function leaves Python{outcome.where}: `exit()` would end the notebook's kernel. Leave it out; `return` ends a function."
    kind = "" if isinstance(outcome.error, Explained) else f" ({type(outcome.error).__name__})"
    return f"An error on {label}{outcome.where}.\n{meaning(outcome, exercise)}{kind}"
