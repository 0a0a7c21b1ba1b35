"""The lines in which float32 becomes float64, and the edit that keeps it float32, tried on the case that shows it."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.explain.dependence import listed
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, learner_code
from lesson_utils.mistakes.recognise.mutation_operators import name_called, parsed, with_fields
from lesson_utils.mistakes.recognise.tree_edits import Edit, placed, places_in
from lesson_utils.mistakes.run.limits import TimeUp, stopped
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick, quiet

ASKS_FOR_FLOAT64 = r"float64|np\.double|dtype=float\b|astype\(float\)"
MODEL_INPUTS = ("x", "X", "Q", "scores", "logits")  # parameters whose dtype is kept
CREATING = ("zeros", "ones", "empty", "full", "eye", "tri", "arange", "linspace", "array")


def float64_source(exercise: Exercise, function: Callable[..., Any], case: Case, wanted: Outcome) -> str:
    """Return which lines make float64 of float32, and what to write there; "" if that is not found."""
    mine = learner_code(function)
    if not mine:
        return ""
    nodes = [node for statement in mine.body for node in ast.walk(statement)]
    simple = [node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    asking = [line for line in simple if re.search(ASKS_FOR_FLOAT64, mine.text(line))]
    if asking:
        given = next((name for name in exercise.parameters if name in MODEL_INPUTS), exercise.parameters[0])
        numbers = listed([str(line.lineno) for line in asking])
        asks = f"s {numbers} ask for" if len(asking) > 1 else f" {numbers} asks for"
        also = f" Arrays that you make need `dtype={given}.dtype`, too." if any(map(_makes_float64, nodes)) else ""
        return f"Line{asks} float64, `{mine.text(asking[0])}`: write `{given}.dtype` there.{also}"
    edits: Sequence[Edit] = ()
    with suppress(TimeUp), quiet(), stopped(1, busy=4):
        edits = _mending(mine, case, wanted)
    if not edits:
        return ""
    lines = [str(n) for n in sorted({edit.line for edit in edits})]
    where = f"Lines {listed(lines)} make" if len(lines) > 1 else f"Line {lines[0]} makes"
    cures = dict.fromkeys(f"`{ast.unparse(e.new)}` instead of `{mine.text(e.old)}`" for e in edits)
    return f"{where} it float64: write {', and '.join(cures)}."


def _makes_float64(node: ast.AST) -> bool:
    """Tell whether a node makes an array without saying of which dtype."""
    return name_called(node) in CREATING and all(keyword.arg != "dtype" for keyword in getattr(node, "keywords", ()))


def _mending(mine: LearnerCode, case: Case, wanted: Outcome) -> Sequence[Edit]:
    """Return the edits that keep float32; none if none do."""
    given = zip((argument.arg for argument in mine.tree.args.args), case.arguments, strict=False)
    types = {name: x.dtype for name, x in given if isinstance(x, np.ndarray)}
    narrow = next((name for name, dtype in types.items() if dtype == np.float32), None)
    wide = [name for name, dtype in types.items() if dtype == np.float64]
    if narrow is None:
        return ()
    families: dict[str, list[Edit]] = {}
    for parent, field, i, node in (place for statement in mine.body for place in places_in(statement)):
        for kind, new in _narrower(node, narrow, wide, "math" in mine.names):
            edit = Edit(kind, parent, field, i, node, placed(new, node), node.lineno)  # type: ignore[attr-defined]
            if same(_outcome(mine, [edit], case), wanted):
                families.setdefault(kind, []).append(edit)
    for edits in (*families.values(), [edit for family in families.values() for edit in family]):
        if _keeps(mine, edits, case, wanted):
            for edit in list(edits):  # only those that it takes
                rest = [other for other in edits if other is not edit]
                edits = rest if _keeps(mine, rest, case, wanted) else edits
            return edits
    return ()


def _narrower(node: ast.AST, narrow: str, wide: Collection[str], has_math: bool) -> Iterator[tuple[str, ast.expr]]:
    """Yield what keeps float32 in the place of an expression, each with its kind."""
    dtype, name = parsed(f"{narrow}.dtype"), name_called(node)
    module = getattr(getattr(getattr(node, "func", None), "value", None), "id", "")
    text = ast.unparse(node)
    match node:
        case ast.Call(args=[_]) if (module, name) == ("np", "sqrt"):
            yield "root", parsed(f"math{text.removeprefix(module)}" if has_math else f"float({text})")
        case ast.Call(keywords=keywords) if name in CREATING and module == "np":
            rest = [keyword for keyword in keywords if keyword.arg != "dtype"]
            yield "made", with_fields(node, keywords=[*rest, ast.keyword("dtype", dtype)])
        case ast.Call(args=[_]) if name == "finfo":
            yield "limit", with_fields(node, args=[dtype])
        case ast.Call() if name == "where":
            yield "chosen", parsed(f"{text}.astype({narrow}.dtype)")
        case ast.BinOp(left=ast.UnaryOp(op=ast.Invert())):
            yield "product", parsed(f"({text}).astype({narrow}.dtype)")
        case ast.Name(id=argument, ctx=ast.Load()) if argument in wide:
            yield "argument", parsed(f"{text}.astype({narrow}.dtype)")


def _outcome(mine: LearnerCode, edits: Sequence[Edit], case: Case) -> Outcome:
    function = mine.function(*edits)
    return quick(function, case.arguments) if function else Outcome(None)


def _keeps(mine: LearnerCode, edits: Sequence[Edit], case: Case, wanted: Outcome) -> bool:
    outcome = _outcome(mine, edits, case)
    pairs = zip(outcome.results(), wanted.results(), strict=False)
    return same(outcome, wanted) and all(np.asarray(a).dtype == np.asarray(b).dtype for a, b in pairs)
