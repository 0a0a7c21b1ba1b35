"""Right numbers in the wrong form: what is left to mend of a list, a masked array, a dtype, or a changed argument."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.explain.differences import masked_entries, parts
from lesson_utils.mistakes.explain.dtypes import float64_source
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, learner_code
from lesson_utils.mistakes.recognise.mutation_operators import name_called
from lesson_utils.mistakes.run.outcome import Outcome

FLOAT64 = "Somewhere a float64 array or number takes part: convert it with `.astype`."
LEFT = "The numbers are right; one thing is left."
ASKS_FOR_FLOAT64 = r"float64|np\.double|dtype=float\b|astype\(float\)"
VIEWS = ("reshape", "swapaxes", "transpose", "ravel", "view", "squeeze")  # what makes no new array of one
FILLING = ("putmask", "copyto", "place", "put", "fill_diagonal")  # functions that change their first argument
IN_PLACE = ("sort", "fill", "put", "resize", "partition", "itemset")  # methods of an array that change it


def form_problem(exercise: Exercise, function: Any, case: Case, outcome: Outcome, wanted: Outcome) -> str | None:
    """Return the first thing that is wrong with an outcome whose numbers are right, or None."""
    return next(_problems(exercise, function, case, outcome, wanted), None)


def _problems(exercise: Exercise, function: Any, case: Case, outcome: Outcome, wanted: Outcome) -> Iterator[str]:
    results, wants = parts(exercise, outcome.value), parts(exercise, wanted.value)
    if results is None or wants is None:
        yield f"Your function should return {len(exercise.returns)} things: `return {', '.join(exercise.returns)}`."
        return
    rows = list(zip(exercise.returns, results, wants, strict=True))
    yield from (problem for row in rows for find in CONTAINERS if (problem := find(*row)))
    if outcome.changed:
        yield f"The result is right, but {changes_in_place(exercise, function, outcome.changed)}"
    arrays = [(name, np.asarray(got), want) for name, got, want in rows if isinstance(want, np.ndarray)]
    for row in arrays:
        if problem := _dtype_problem(exercise, function, *row):
            is_wider = row[2].dtype == np.float32 and row[1].dtype == np.float64
            yield problem + (
                f" {float64_source(function, case, wanted) or FLOAT64}" if is_wider and "Line" not in problem else ""
            )


def _no_array(name: str, got: Any, want: Any) -> str | None:
    if isinstance(want, np.ndarray) and want.ndim and not isinstance(got, np.ndarray):
        return f"{LEFT} `{name}` is a {type(got).__name__}; put `np.array(...)` around it."
    return None


def _objects(name: str, got: Any, want: Any) -> str | None:
    if isinstance(got, np.ndarray) and got.dtype.kind == "O":
        return (
            f"{LEFT} `{name}` has dtype object: an array of Python objects, slow and large. Make it with `dtype=float`."
        )
    return None


CONTAINERS = (_no_array, masked_entries, _objects)


def _dtype_problem(exercise: Exercise, function: Any, name: str, got: np.ndarray, want: np.ndarray) -> str | None:
    if want.dtype == bool and got.dtype != bool:
        return f"{LEFT} `{name}` has dtype {got.dtype}, and masks here are boolean: add `dtype=bool`, or compare, `mask > 0`."
    if want.dtype.kind == "i" and got.dtype.kind == "f":
        return f"{LEFT} `{name}` has dtype {got.dtype}, and the task asks for whole numbers: add `.astype(int)`."
    if exercise.dtype != "kept" or got.dtype == want.dtype:
        return None
    if want.dtype == np.float64:
        return f"{LEFT} `{name}` has dtype {got.dtype}; expected float64. Did you ask for another?"
    given = next((p for p in exercise.parameters if p in ("x", "X", "Q", "scores", "logits")), exercise.parameters[0])
    head = f"{LEFT} {want.dtype} went in, `{name}` came out as {got.dtype}."
    mine = learner_code(function)
    for line in ast.walk(mine.tree) if mine else ():
        is_line = isinstance(line, ast.stmt) and not hasattr(line, "body")
        if mine and is_line and re.search(ASKS_FOR_FLOAT64, text := mine.text(line)):
            at = mine.first_line + line.lineno - 1  # type: ignore[attr-defined]
            return f"{head} Line {at} asks for that, `{text}`: write `{given}.dtype` there."
    return head


def changes_in_place(exercise: Exercise, function: Any, changed: Sequence[int]) -> str:
    """Return the words for arguments that were changed: where, and how to avoid it."""
    names = [exercise.parameters[i] for i in changed]
    mine = learner_code(function)
    name, line = next(((n, line) for n in names if mine and (line := _writes_into(mine, n))), (names[0], None))
    where, how = "", f"Begin with `{name} = {name}.copy()`."
    if mine and line:
        which = f", `{name}`" if names[1:] else ""
        where = f"{which} in line {mine.first_line + line.lineno - 1}, `{mine.text(line)}`"
        if isinstance(line, ast.AugAssign) and isinstance(line.target, ast.Name):
            new = ast.unparse(ast.BinOp(ast.Name(name), line.op, line.value))
            of_its_dtype = f"({new}).astype({name}.dtype)" if _has_mixed_dtypes(exercise) else new
            how = f"Write `{name} = {of_its_dtype}`, which makes a new array."
        elif isinstance(line, ast.Assign) and getattr(line.targets[0], "attr", "") == "shape":
            how = f"Write `{name} = {name}.reshape({ast.unparse(line.value)})`, which leaves the caller's array its shape."
    elif mine and (line := _other_name(mine, name)):
        text = f"Line {mine.first_line + line.lineno - 1}, `{mine.text(line)}`,"
        how = f"{text} gives this array another name and makes no new one. Slices and `reshape` make none either. {how}"
    else:
        how = f"Another name for `{name}`, a slice or a `reshape` of it is still the same array. {how}"
    rest = [f"`{other}`" for other in names if other != name]
    also = f" Do the same with {' and '.join(rest)}." if rest else ""
    said, it = ("arguments", "them") if rest else ("argument", "it")
    every = " and ".join([f"`{name}`", *rest])
    return f"your function changes its {said} {every} in place{where}, and with {it} the caller's data. {how}{also}"


def _has_mixed_dtypes(exercise: Exercise) -> bool:
    """Tell whether a new array would take the wider dtype of another argument, where the task keeps the first one's."""
    floats = (
        {x.dtype for x in case.arguments if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
        for case in exercise.drawn
    )
    return exercise.dtype == "kept" and any(len(dtypes) > 1 for dtypes in floats)


def _other_name(learner: LearnerCode, name: str) -> ast.stmt | None:
    """Return the line that gives the array `name` the name under which it is changed: `out = x`, `rows = x.reshape(-1, 4)`."""
    for line in (n for s in learner.body for n in ast.walk(s) if isinstance(n, ast.Assign)):
        value: Any = line.value
        while isinstance(value, ast.Subscript) or getattr(value, "attr", "") == "T" or name_called(value) in VIEWS:
            value = getattr(value, "value", None) or getattr(value.func, "value", None)
        match line.targets:
            case [ast.Name(id=other)] if getattr(value, "id", "") == name and _writes_into(learner, other):
                return line
    return None


def _writes_into(learner: LearnerCode, name: str) -> ast.stmt | None:
    """Return the line that changes the array `name` in place: `x -= 1`, `x[0] = 1`, `x.sort()`, `out=x`."""

    def is_it(node: ast.AST | None) -> bool:
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id == name

    for statement in (n for s in learner.body for n in ast.walk(s) if isinstance(n, ast.stmt)):
        match statement:
            case ast.AugAssign(target=target):
                found = is_it(target)
            case ast.Assign(targets=targets):
                found = any(isinstance(t, ast.Subscript | ast.Attribute) and is_it(t) for t in targets)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value, attr=attr), args=args)):
                found = (attr in IN_PLACE and is_it(value)) or (attr in FILLING and is_it(next(iter(args), None)))
            case _:
                found = False
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if not hasattr(statement, "body") else []
        if found or any(k.arg == "out" and is_it(k.value) for call in calls for k in call.keywords):
            return statement
    return None
