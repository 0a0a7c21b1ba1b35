"""The lines that make another dtype of floats than the input has, and the edits that keep it, tried on a case that shows it."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case
from lesson_utils.mistakes.explain.relations import listed
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, learner_code
from lesson_utils.mistakes.recognise.mutation_operators import name_called, parsed, with_fields
from lesson_utils.mistakes.recognise.tree_edits import Edit, placed, places_in
from lesson_utils.mistakes.run.limits import TimeUp, stopped
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick, quiet

# What asks for a dtype, where another one is to be kept.
ASKS = {np.float64: r"(np\.)?(float32|float16|half|single)|'(float32|float16|f4|f2)'", np.float32: r"(np\.)?(float64|float_|double|longdouble)|float|'(float64|float|double|f8|d)'"}  # fmt: skip
LATE = ("chosen", "product")  # what casts a result, where it may have been made of another dtype before
CREATING = ("zeros", "ones", "empty", "full", "eye", "tri", "arange", "linspace", "array")


def told(name: str, got: np.dtype[Any], want: np.dtype[Any], case: Case) -> str:
    """Return in words that a result has another dtype than that of the input, or than is asked for where no array goes in."""
    if any(isinstance(x, np.ndarray) for x in case.arguments):
        return f"{want} went in, and `{name}` came out as {got}."
    return f"`{name}` has dtype {got}; expected {want}."


def dtype_source(function: Callable[..., Any], case: Case, wanted: Outcome) -> str:
    """Return which lines make another dtype than that of `wanted`, and what to write there; "" if that is not found."""
    mine = learner_code(function)
    if not mine:
        return ""
    edits: Sequence[Edit] = ()
    with suppress(TimeUp), quiet(), stopped(1, busy=4):
        edits = _mending(mine, case, wanted)
    if not edits:
        return ""
    lines = [str(n) for n in sorted({edit.line for edit in edits})]
    where = f"Lines {listed(lines)} bring" if len(lines) > 1 else f"Line {lines[0]} brings"
    cures = dict.fromkeys("`{}` instead of `{}`".format(*_texts(e, mine)) for e in edits)
    return f"{where} in another dtype: write {', and '.join(cures)}."


def _texts(edit: Edit, mine: LearnerCode) -> tuple[str, str]:
    """Return what to write instead of what; of a method of something long, the call alone, `.astype(float)`."""
    owner = getattr(getattr(edit.old, "func", None), "value", None)
    its = getattr(getattr(edit.new, "func", None), "value", None)
    if owner and its and not isinstance(owner, ast.Name | ast.Attribute) and ast.dump(owner) == ast.dump(its):
        new, old = (ast.unparse(with_fields(x, func=ast.Name(f".{name_called(x)}"))) for x in (edit.new, edit.old))
        return new, old
    return ast.unparse(edit.new), mine.text(edit.old)


def _mending(mine: LearnerCode, case: Case, wanted: Outcome) -> Sequence[Edit]:
    """Return the edits that keep the dtype; none if none do."""
    given = zip((argument.arg for argument in mine.tree.args.args), case.arguments, strict=False)
    types = {name: x.dtype for name, x in given if isinstance(x, np.ndarray)}
    target = next((x.dtype for x in wanted.results() if isinstance(x, np.ndarray) and x.dtype.kind == "f"), None)
    kept = next((name for name, dtype in types.items() if dtype == target), None)
    if target is None or (kept is None and target != np.float64):
        return ()
    keep = f"{kept}.dtype" if kept else "np.float64"
    wide = [name for name, dtype in types.items() if dtype.kind == "f" and dtype.itemsize > target.itemsize]
    families: dict[str, list[Edit]] = {}
    helpers = [n for n in mine.body[: mine.helpers] if isinstance(n, ast.FunctionDef) and n.args.args]
    inside = {id(node): f"{helper.args.args[0].arg}.dtype" for helper in helpers for node in ast.walk(helper)}
    for parent, field, i, node in (place for statement in mine.body for place in places_in(statement)):
        if not isinstance(node, ast.expr):
            continue
        for kind, new in _keeping(
            node, inside.get(id(node), keep), ASKS.get(target.type, "-"), wide, "math" in mine.names
        ):
            edit = Edit(kind, parent, field, i, node, placed(new, node), node.lineno)
            if _is_close(_outcome(mine, [edit], case), wanted):
                families.setdefault(kind, []).append(edit)
    for edits in (*families.values(), [edit for family in families.values() for edit in family]):
        if _keeps(mine, edits, case, wanted):
            for edit in sorted(edits, key=lambda edit: edit.kind not in LATE):  # only those that it takes
                rest = [other for other in edits if other is not edit]
                edits = rest if _keeps(mine, rest, case, wanted) else edits
            return edits
    return ()


def _keeping(
    node: ast.expr, dtype: str, asks: str, wide: Collection[str], has_math: bool
) -> Iterator[tuple[str, ast.expr]]:
    """Yield what keeps the dtype in the place of an expression, each with its kind."""

    def asked(part: ast.expr) -> bool:
        return bool(re.fullmatch(asks, ast.unparse(part)))

    name = name_called(node)
    module = getattr(getattr(getattr(node, "func", None), "value", None), "id", "")
    text = ast.unparse(node)
    match node:
        case ast.Call(func=func, args=[inner]) if module == "np" and asked(func):  # np.float64(x)
            yield "asked", inner
        case ast.Call(args=arguments, keywords=keywords) if any(
            asked(x) for x in (*arguments, *(k.value for k in keywords))
        ):
            args = [parsed(dtype) if asked(x) else x for x in arguments]
            named = [ast.keyword(k.arg, parsed(dtype) if asked(k.value) else k.value) for k in keywords]
            yield "asked", with_fields(node, args=args, keywords=named)
        case ast.Call(args=[_]) if (module, name) == ("np", "sqrt"):
            yield "root", parsed(f"math{text.removeprefix(module)}" if has_math else f"float({text})")
        case ast.Call(keywords=keywords) if name in CREATING and module == "np":
            yield "made", with_fields(node, keywords=[*keywords, ast.keyword("dtype", parsed(dtype))])
        case ast.Call(args=[_]) if name == "finfo":
            yield "limit", with_fields(node, args=[parsed(dtype)])
        case ast.Call() if name == "where":
            yield "chosen", parsed(f"{text}.astype({dtype})")
        case ast.BinOp(left=ast.UnaryOp(op=ast.Invert())):
            yield "product", parsed(f"({text}).astype({dtype})")
        case ast.Name(id=argument, ctx=ast.Load()) if argument in wide:
            yield "argument", parsed(f"{text}.astype({dtype})")


def _outcome(mine: LearnerCode, edits: Sequence[Edit], case: Case) -> Outcome:
    function = mine.function(*edits)
    return quick(function, case.arguments) if function else Outcome(None)


def _is_close(outcome: Outcome, wanted: Outcome) -> bool:
    """Tell whether the numbers are the same, but for the rounding of the narrower dtype."""
    rounded = [
        tuple(x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in o.results())
        for o in (outcome, wanted)
    ]
    return not outcome.error and same(*map(Outcome, rounded))


def _keeps(mine: LearnerCode, edits: Sequence[Edit], case: Case, wanted: Outcome) -> bool:
    outcome = _outcome(mine, edits, case)
    pairs = zip(outcome.results(), wanted.results(), strict=False)
    return _is_close(outcome, wanted) and all(getattr(a, "dtype", 0) == getattr(b, "dtype", 0) for a, b in pairs)
