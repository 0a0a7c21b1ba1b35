"""Right numbers in the wrong form: what is left to mend of a list, a masked array, a dtype, or a changed argument."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.explain.differences import masked_entries, parts
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, learner_code
from lesson_utils.mistakes.run.outcome import Outcome

LEFT = "The numbers are right; one thing is left."
ASKS_FOR_FLOAT64 = r"float64|np\.double|dtype=float\b|astype\(float\)"
IN_PLACE = ("sort", "fill", "put", "resize", "partition", "itemset")  # methods of an array that change it


def form_problem(exercise: Exercise, function: Any, outcome: Outcome, wanted: Outcome) -> str | None:
    """Return the first thing that is wrong with an outcome whose numbers are right, or None."""
    return next(_problems(exercise, function, outcome, wanted), None)


def _problems(exercise: Exercise, function: Any, outcome: Outcome, wanted: Outcome) -> Iterator[str]:
    results, wants = parts(exercise, outcome.value), parts(exercise, wanted.value)
    if results is None or wants is None:
        yield f"Your function should return {len(exercise.returns)} things: `return {', '.join(exercise.returns)}`."
        return
    rows = list(zip(exercise.returns, results, wants, strict=True))
    yield from (problem for row in rows for find in CONTAINERS if (problem := find(*row)))
    if outcome.changed:
        yield f"The result is right, but {changes_in_place(exercise, function, outcome.changed)}"
    arrays = [(name, np.asarray(got), want) for name, got, want in rows if isinstance(want, np.ndarray)]
    yield from (problem for row in arrays if (problem := _dtype_problem(exercise, function, *row)))


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
        if mine and is_line and re.search(ASKS_FOR_FLOAT64, text := ast.unparse(line)):
            at = mine.first_line + line.lineno - 1  # type: ignore[attr-defined]
            return f"{head} Line {at} asks for that, `{text}`: write `{given}.dtype` there."
    masks = ", arithmetic on a boolean mask (`~mask * -1e9`), `np.where(mask, 0, -np.inf)` (write `np.where(mask, scores, -np.inf)`), `np.finfo(float).min`"
    return (
        f"{head} What makes a float64: another array that is float64 (convert it: `.astype({given}.dtype)`), `np.sqrt(5)` (take `math.sqrt(5)`), `np.zeros(n)` (add `dtype={given}.dtype`)"
        f"{masks if 'mask' in exercise.parameters else ''}."
    )


def changes_in_place(exercise: Exercise, function: Any, changed: Sequence[int]) -> str:
    """Return the words for arguments that were changed: where, and how to avoid it."""
    names = [exercise.parameters[i] for i in changed]
    mine = learner_code(function)
    where = next((f" in line {at[0]}, `{at[1]}`" for name in names if mine and (at := _writes_into(mine, name))), "")
    how = "`x -= 1`, `x /= 2` and `x[...] = 0` all write into `x`; `x = x - 1` makes a new array."
    if not where:
        how = "`out = x` is the same array under another name, and `reshape` and slices are views of it: begin with `x.copy()`."
    return (
        f"your function changes its argument {' and '.join(f'`{n}`' for n in names)} in place{where}, and with it the "
        f"caller's data. {how}"
    )


def _writes_into(learner: LearnerCode, name: str) -> tuple[int, str] | None:
    """Return the line that changes the array `name` in place, and its text: `x -= 1`, `x[0] = 1`, `x.sort()`, `out=x`."""

    def is_it(node: ast.AST | None) -> bool:
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id == name

    for statement in (n for s in learner.body for n in ast.walk(s) if isinstance(n, ast.stmt)):
        match statement:
            case ast.AugAssign(target=target):
                found = is_it(target)
            case ast.Assign(targets=targets):
                found = any(isinstance(t, ast.Subscript) and is_it(t) for t in targets)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value, attr=attr))):
                found = attr in IN_PLACE and is_it(value)
            case _:
                found = False
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if not hasattr(statement, "body") else []
        if found or any(k.arg == "out" and is_it(k.value) for call in calls for k in call.keywords):
            return learner.first_line + statement.lineno - 1, ast.unparse(statement)
    return None
