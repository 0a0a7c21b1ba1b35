"""Right numbers in the wrong form: what is left to mend of a list, a masked array, a dtype, or a changed argument."""

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.explain.differences import masked_entries, parts
from lesson_utils.mistakes.explain.dtypes import dtype_source, told
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, learner_code
from lesson_utils.mistakes.recognise.mutation_operators import name_called
from lesson_utils.mistakes.run.outcome import Outcome

FLOAT64 = "Somewhere a float64 array or number takes part: convert it with `.astype`."
LEFT = "The numbers are right; one thing is left."
VIEWS = ("reshape", "swapaxes", "transpose", "ravel", "view", "squeeze")  # what makes no new array of one
FILLING = ("putmask", "copyto", "place", "put", "fill_diagonal")  # functions that change their first argument
IN_PLACE = ("sort", "fill", "put", "resize", "partition", "itemset")  # methods of an array that change it
OF_LISTS = ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "update")  # and of dictionaries


def form_problem(exercise: Exercise, function: Any, case: Case, outcome: Outcome, wanted: Outcome) -> str | None:
    """Return the first thing that is wrong with an outcome whose numbers are right, or None."""
    results, wants = (parts(exercise, o.value) or () for o in (outcome, wanted))
    rows = list(zip(exercise.returns, results, wants, strict=True))
    if problem := next(filter(None, (_container_problem(*row) for row in rows)), None):
        return problem
    if outcome.changed:
        return f"The result is right, but {changes_in_place(exercise, function, outcome.changed)}"
    arrays = ((name, np.asarray(got), want.dtype) for name, got, want in rows if isinstance(want, np.ndarray))
    problems = (dtype_problem(exercise, function, case, wanted, *row, FLOAT64) for row in arrays)
    return next((f"{LEFT} {problem}" for problem in problems if problem), None)


def _container_problem(name: str, got: Any, want: Any) -> str | None:
    if isinstance(want, np.ndarray) and want.ndim and not isinstance(got, np.ndarray):
        return f"{LEFT} `{name}` is a {type(got).__name__}; put `np.array(...)` around it."
    if isinstance(got, np.ndarray) and got.dtype.kind == "O":
        what = "an array of Python objects, slow and large"
        return f"{LEFT} `{name}` has dtype object: {what}. Make it with `dtype=float`."
    masked = masked_entries(name, got)
    return f"{masked} Give them a number: `.filled(0)`." if masked else None


def dtype_problem(
    exercise: Exercise,
    function: Any,
    case: Case,
    wanted: Outcome,
    name: str,
    got: np.ndarray,
    want: np.dtype,
    otherwise: str = "",
) -> str | None:
    """Return what is wrong with the dtype of a result; `wanted` holds what the function would return in the right one."""
    if want.kind == "b" and got.dtype.kind != "b":
        how = f"compare, `{name} > 0`" if np.isin(got, (0, 1)).all() else "True and False, and no numbers to add"
        return f"`{name}` has dtype {got.dtype}, and masks here are boolean: {how}."
    if want.kind == "i" and got.dtype.kind == "f" and (got == np.round(got)).all():
        return f"`{name}` has dtype {got.dtype}, and the task asks for whole numbers: add `.astype(int)`."
    if exercise.dtype != "kept" or got.dtype == want:
        return None
    more = dtype_source(function, case, wanted) or (otherwise if got.dtype == np.float64 else "")
    return f"{told(name, got.dtype, want, case)} {more}".rstrip()


def changes_in_place(exercise: Exercise, function: Any, changed: Sequence[int], beside: str = "") -> str:
    """Return the words for arguments that were changed: where, and how to avoid it; `beside` is the message for the results."""
    names, mine = [exercise.parameters[i] for i in changed], learner_code(function)
    name, lines = next(((n, lines) for n in names if (lines := [*_writing(mine, n)])), (names[0], []))
    kind = type(exercise.drawn[0].arguments[exercise.parameters.index(name)]).__name__.replace("ndarray", "array")
    where, how = "", f"Begin with `{name} = {name}.copy()`."
    if mine and lines:
        line, which = lines[0], f", `{name}`" if names[1:] else ""
        where = f"{which} in line {line.lineno}, `{mine.text(line)}`"
        if lines[1:] and (beside or any(line not in mine.body for line in lines)):  # the first may go, or not run
            where += f", and in line {lines[1].lineno}"
        elif f"leave out `{ast.unparse(line)}`" in beside:
            how = "Without this line, it stays as it was."
        elif isinstance(line, ast.AugAssign) and isinstance(line.target, ast.Name):
            new = ast.unparse(ast.BinOp(ast.Name(name), line.op, line.value))
            is_wide = _has_mixed_dtypes(exercise) or "dtype" in new or "float64" in new
            of_its_dtype = f"({new}).astype({name}.dtype)" if is_wide else new
            how = f"Write `{name} = {of_its_dtype}`, which makes a new {kind}."
        elif isinstance(line, ast.Assign) and getattr(line.targets[0], "attr", "") == "shape":
            how = f"Write `{name} = {name}.reshape({ast.unparse(line.value)})`, which leaves the caller's array its shape."
    elif mine and (naming := _other_name(mine, name)):
        text = f"Line {naming.lineno}, `{mine.text(naming)}`,"
        how = f"{text} makes no new array: another name, a slice and `reshape` show the numbers of the old one. {how}"
    elif kind == "array":
        how = f"Another name for `{name}`, a slice or a `reshape` of it is still the same array. {how}"
    rest = [f"`{other}`" for other in names if other != name]
    also = f" Do the same with {' and '.join(rest)}." if rest else ""
    said, it, s = ("arguments", "them", "s") if rest else ("argument", "it", "")
    every = " and ".join([f"`{name}`", *rest])
    return (
        f"your function changes its {said} {every} in place{where}, and with {it} the caller's {kind}{s}. {how}{also}"
    )


def _has_mixed_dtypes(exercise: Exercise) -> bool:
    """Tell whether a new array would take the wider dtype of another argument, where the task keeps the first one's."""
    arrays = ([x for x in case.arguments if isinstance(x, np.ndarray)] for case in exercise.drawn)
    return exercise.dtype == "kept" and any(len({x.dtype for x in some if x.dtype.kind == "f"}) > 1 for some in arrays)


def _lines(mine: LearnerCode | None) -> list[ast.stmt]:
    nodes = [n for s in mine.body for n in ast.walk(s) if isinstance(n, ast.stmt)] if mine else []
    return sorted(nodes, key=lambda node: node.lineno)


def _other_name(mine: LearnerCode, name: str) -> ast.stmt | None:
    """Return the line that gives the array `name` the name under which it is changed: `out = x`, `rows = x.reshape(-1, 4)`."""
    for line in _lines(mine):
        value: Any = getattr(line, "value", None)
        while isinstance(value, ast.Subscript) or getattr(value, "attr", "") == "T" or name_called(value) in VIEWS:
            value = getattr(value, "value", None) or getattr(value.func, "value", None)
        match line:
            case ast.Assign(targets=[ast.Name(id=other)]) if getattr(value, "id", "") == name:
                if any(_writing(mine, other)):
                    return line
    return None


def _writing(mine: LearnerCode | None, name: str) -> Iterator[ast.stmt]:
    """Yield the lines that change the array `name` in place: `x -= 1`, `x[0] = 1`, `x.sort()`, `out=x`."""
    for line in _lines(mine):
        calls = [n for n in ast.walk(line) if isinstance(n, ast.Call)] if not hasattr(line, "body") else []
        written = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "out"]
        match line:
            case ast.AugAssign(target=target):
                written.append(target)
            case ast.Assign(targets=targets):
                written += [target for target in targets if isinstance(target, ast.Subscript | ast.Attribute)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value, attr=attr))) if attr in IN_PLACE:
                written.append(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr), args=[first, *_])) if attr in FILLING:
                written.append(first)
        written += [n.func.value for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr in OF_LISTS]
        for array in written:
            while isinstance(array, ast.Subscript | ast.Attribute):
                array = array.value
            if getattr(array, "id", "") == name:
                yield line
