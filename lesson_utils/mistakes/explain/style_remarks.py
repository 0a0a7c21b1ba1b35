"""Right, and yet: what a right answer can do better, said with the praise."""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.explain.differences import parts
from lesson_utils.mistakes.program import expressions
from lesson_utils.mistakes.recognise.learner_code import learner_code
from lesson_utils.mistakes.run.sandbox import Outcome

LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
FLOAT16_MAX = 65504


def _statements(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _has_loop(body: Sequence[ast.stmt]) -> bool:
    """Is there a loop over numbers? One over things written out, `for W in (W_Q, W_K)`, NumPy can't spare anyone."""
    loops = [node for statement in body for node in ast.walk(statement) if isinstance(node, LOOPS)]
    over = [getattr(loop, "iter", None) for loop in loops if not isinstance(loop, ast.ListComp | ast.GeneratorExp)]
    over += [loop.generators[0].iter for loop in loops if isinstance(loop, ast.ListComp | ast.GeneratorExp)]
    return not all(_written_out(iterated) for iterated in over)


def _written_out(iterated: ast.AST | None) -> bool:
    """`(a, b)`, and `zip` or `enumerate` of such."""
    if isinstance(iterated, ast.Call):
        return any(_written_out(argument) for argument in iterated.args)
    return isinstance(iterated, ast.Tuple | ast.List)


def remarks(
    exercise: Exercise, function: Callable[..., Any], outcomes: Sequence[Outcome], wanted: Sequence[Outcome]
) -> list[str]:
    """What a teacher would add to "Correct."."""
    said = []
    results = [
        (name, got, want)
        for o, w in zip(outcomes, wanted, strict=True)
        for name, got, want in zip(
            exercise.returns, parts(exercise, o.value) or (), parts(exercise, w.value) or (), strict=True
        )
    ]
    if any(isinstance(got, np.matrix) for _, got, _ in results):
        said.append("`np.matrix` is on its way out of NumPy, and its `*` is a matrix product. Use arrays and `@`.")
    if any(isinstance(got, np.ma.MaskedArray) for _, got, _ in results):
        said.append("What comes back is a masked array; `.filled(0)` makes a plain one.")
    for name, got, want in results:
        if (
            isinstance(got, np.ndarray)
            and isinstance(want, np.ndarray)
            and want.dtype == np.float32
            and got.dtype == np.float64
        ):
            said.append(
                f"float32 went in, `{name}` came out as float64. Models keep float32, which is half as large: `math.sqrt(5)` for `np.sqrt(5)`, `np.zeros(n, x.dtype)`."
            )
            break
    mine = learner_code(function)
    if mine is None:
        return said
    welcome = re.search(r"\ba loop\b.* fine", exercise.task)
    if (
        not welcome
        and _has_loop(mine.body)
        and not _has_loop(_statements(exercise.body({}).replace("return ", "_ = ")))
    ):
        said.append("It has a loop that NumPy runs in one line, and much faster: our solution shows how.")
    nodes = expressions(mine.body)
    for node in nodes:
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and isinstance(node.right, ast.BinOp)
            and isinstance(node.right.op, ast.Add)
        ):
            small = node.right.right
            if isinstance(small, ast.Constant) and isinstance(small.value, float) and 0 < small.value < 1e-3:
                said.append(
                    f"You add {small.value:g} below the fraction bar. The sum there is never 0, so it is not needed, and it makes the result a little too small."
                )
                break
    if "mask" in exercise.parameters:
        large = [
            n.value
            for n in nodes
            if isinstance(n, ast.Constant)
            and isinstance(n.value, int | float)
            and not isinstance(n.value, bool)
            and FLOAT16_MAX < abs(n.value) < float("inf")
        ]
        if large:
            said.append(
                f"−{large[0]:g} hides well in float32; float16 ends at {FLOAT16_MAX}. −∞, `-np.inf`, works in all of them."
            )
    return said
