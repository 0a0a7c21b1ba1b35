"""Right, and yet: remarks on what a right answer can do better, said with the praise."""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise, expressions
from lesson_utils.mistakes.explain.differences import parts
from lesson_utils.mistakes.explain.dtypes import float64_source
from lesson_utils.mistakes.recognise.learner_code import learner_code
from lesson_utils.mistakes.run.outcome import Outcome

COMPREHENSIONS = ast.ListComp | ast.GeneratorExp
FLOAT16_MAX = 65504


@dataclass
class Answer:
    """A right answer: its results beside the expected ones, and its code, if that can be read."""

    exercise: Exercise
    function: Callable[..., Any]
    results: Sequence[tuple[str, Any, Any]]  # name, what came back, what was expected
    cases: Sequence[tuple[Case, Outcome]]  # for each result: its case, and what was expected of that
    body: Sequence[ast.stmt]

    @cached_property
    def nodes(self) -> list[ast.expr]:
        return expressions(self.body)

    def numbers(self) -> list[float]:
        values = [node.value for node in self.nodes if isinstance(node, ast.Constant)]
        return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def style_remarks(
    exercise: Exercise, function: Callable[..., Any], outcomes: Sequence[Outcome], wanted: Sequence[Outcome]
) -> list[str]:
    """Return what a teacher would add to "Correct."."""
    pairs = [
        (parts(exercise, o.value) or (), parts(exercise, w.value) or ()) for o, w in zip(outcomes, wanted, strict=True)
    ]
    results = [row for got, want in pairs for row in zip(exercise.returns, got, want, strict=True)]
    cases = [case for case in zip(exercise.drawn, wanted, strict=True) for _ in exercise.returns]
    mine = learner_code(function)
    answer = Answer(exercise, function, results, cases, mine.body if mine else ())
    return [remark for find in REMARKS if (remark := find(answer))]


def _matrix(answer: Answer) -> str | None:
    if any(isinstance(got, np.matrix) for _, got, _ in answer.results):
        return "`np.matrix` is on its way out of NumPy, and its `*` is a matrix product. Use arrays and `@`."
    return None


def _masked_array(answer: Answer) -> str | None:
    if any(isinstance(got, np.ma.MaskedArray) for _, got, _ in answer.results):
        return "What comes back is a masked array; `.filled(0)` makes a plain one."
    return None


def _float64_for_float32(answer: Answer) -> str | None:
    for (name, got, want), case in zip(answer.results, answer.cases, strict=True):
        arrays = isinstance(got, np.ndarray) and isinstance(want, np.ndarray)
        if arrays and (got.dtype, want.dtype) == (np.float64, np.float32):
            source = float64_source(answer.function, *case)
            return f"float32 went in, and `{name}` came out as float64. Models keep float32, which is half as large. {source}".strip()
    return None


def _loop(answer: Answer) -> str | None:
    if re.search(r"\ba loop\b.* fine", answer.exercise.task) or not _has_loop(answer.body):
        return None
    if _has_loop(ast.parse(answer.exercise.body({}).replace("return ", "_ = ")).body):
        return None
    return "There is a loop that NumPy runs in one line: our solution shows how."


def _has_loop(body: Sequence[ast.stmt]) -> bool:
    """Return whether it loops over numbers; one over things written out, `for W in (W_Q, W_K)`, NumPy can't spare anyone."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    over = [getattr(node, "iter", None) for node in nodes if isinstance(node, ast.For | ast.While)]
    over += [node.generators[0].iter for node in nodes if isinstance(node, COMPREHENSIONS)]
    return not all(_written_out(iterated) for iterated in over)


def _written_out(iterated: ast.AST | None) -> bool:
    """Return whether it is `(a, b)`, or `zip` or `enumerate` of such."""
    if isinstance(iterated, ast.Call):
        return any(_written_out(argument) for argument in iterated.args)
    return isinstance(iterated, ast.Tuple | ast.List)


def _added_below_the_bar(answer: Answer) -> str | None:
    for node in answer.nodes:
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.BinOp(op=ast.Add(), right=ast.Constant(value=float(small)))):
                if 0 < small < 1e-3:
                    return f"You add {small:g} below the fraction bar. The sum there is never 0, so it is not needed, and it makes the result a little too small."
    return None


def _large_for_infinity(answer: Answer) -> str | None:
    large = [number for number in answer.numbers() if FLOAT16_MAX < abs(number) < float("inf")]
    if "mask" in answer.exercise.parameters and large:
        return (
            f"−{large[0]:g} hides well in float32; float16 ends at {FLOAT16_MAX}. −∞, `-np.inf`, works in all of them."
        )
    return None


REMARKS = (_matrix, _masked_array, _float64_for_float32, _loop, _added_below_the_bar, _large_for_infinity)
