"""Right, and yet: remarks on what a right answer can do better, said with the praise."""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise, expressions
from lesson_utils.mistakes.explain.dtypes import dtype_source
from lesson_utils.mistakes.recognise.learner_code import learner_code
from lesson_utils.mistakes.run.outcome import Outcome

FLOAT16_MAX = 65504
KINDS = {  # of arrays that hold the right numbers
    np.matrix: "`np.matrix` is on its way out of NumPy, and its `*` is a matrix product. Use arrays and `@`.",
    np.ma.MaskedArray: "What comes back is a masked array; `.filled(0)` makes a plain one.",
}


def style_remarks(
    exercise: Exercise, function: Callable[..., Any], outcomes: Sequence[Outcome], wanted: Sequence[Outcome]
) -> list[str]:
    """Return what a teacher would add to "Correct."."""
    mine = learner_code(function)
    body = mine.body if mine else []
    results = [result for outcome in outcomes for result in outcome.results()]
    remarks = (
        *(words for kind, words in KINDS.items() if any(isinstance(result, kind) for result in results)),
        _float64_for_float32(exercise, function, outcomes, wanted),
        _loop(exercise, body),
        _added_below_the_bar(expressions(body)),
        _large_for_infinity(exercise, expressions(body)),
    )
    return [remark for remark in remarks if remark]


def _float64_for_float32(
    exercise: Exercise, function: Callable[..., Any], outcomes: Sequence[Outcome], wanted: Sequence[Outcome]
) -> str | None:
    for case, outcome, right in zip(exercise.drawn, outcomes, wanted, strict=True):
        for name, got, want in zip(exercise.returns, outcome.results(), right.results(), strict=False):
            arrays = isinstance(got, np.ndarray) and isinstance(want, np.ndarray)
            if arrays and (got.dtype, want.dtype) == (np.float64, np.float32):
                source = dtype_source(function, case, right)
                return f"float32 went in, and `{name}` came out as float64. Models keep float32, which is half as large. {source}".strip()
    return None


def _loop(exercise: Exercise, body: Sequence[ast.stmt]) -> str | None:
    solution = ast.parse(exercise.body({})).body
    if re.search(r"\ba loop\b.* fine", exercise.task) or not _has_loop(body) or _has_loop(solution):
        return None
    return "There is a loop that NumPy runs in one line: our solution shows how."


def _has_loop(body: Sequence[ast.stmt]) -> bool:
    """Return whether it loops over numbers; one over things written out, `for W in (W_Q, W_K)`, NumPy can't spare anyone."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    over = [getattr(node, "iter", None) for node in nodes if isinstance(node, ast.For | ast.While)]
    over += [node.generators[0].iter for node in nodes if isinstance(node, ast.ListComp | ast.GeneratorExp)]
    return not all(_written_out(iterated) for iterated in over)


def _written_out(iterated: ast.AST | None) -> bool:
    """Return whether it is `(a, b)`, or `zip` or `enumerate` of such."""
    if isinstance(iterated, ast.Call):
        return any(_written_out(argument) for argument in iterated.args)
    return isinstance(iterated, ast.Tuple | ast.List)


def _added_below_the_bar(nodes: Sequence[ast.expr]) -> str | None:
    for node in nodes:
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.BinOp(op=ast.Add(), right=ast.Constant(value=float(small)))):
                if 0 < small < 1e-3:
                    return f"You add {small:g} below the fraction bar. The sum there is never 0, so it is not needed, and it makes the result a little too small."
    return None


def _large_for_infinity(exercise: Exercise, nodes: Sequence[ast.expr]) -> str | None:
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    large = [x for x in values if isinstance(x, int | float) and FLOAT16_MAX < abs(x) < float("inf")]
    if not large or "mask" not in exercise.parameters:
        return None
    return f"−{large[0]:g} hides well in float32; float16 ends at {FLOAT16_MAX}. −∞, `-np.inf`, works in all of them."
