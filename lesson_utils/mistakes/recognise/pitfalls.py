"""Pitfalls of Python and NumPy: what is written, what was meant, and what Python does there, in whichever exercise.

A row of the table is a pattern, what may be meant instead, and why. In a pattern, a capital letter stands for any
expression, C and D for constants, N for a whole number, P for what is no number, and M for what may be a mask.
`pitfalls` yields the edits that a body admits. Each sentence is true wherever its pattern stands; whether the edit mends
the lines, the search tries.
"""

import ast
import copy
import difflib
import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from lesson_utils.mistakes.recognise.mutation_operators import name_called, number, with_fields
from lesson_utils.mistakes.recognise.tree_edits import Edit, block, placed, places_in, written

NO_AXIS = "Without `axis`, {} takes all numbers of the array as one long row."
POWER = "`^` is not a power in Python: it is the exclusive “or”."
ALIKE = "`*` repeats the same object, so that what is written into one of them shows in all."
SLICE = "If `{{P}}` is 0, −0 is 0 as well, and this slice {}."
INFINITE = "0 times ∞ is NaN (not a number), so that the product spoils every place where `{A}` is 0."
DTYPE = "The new array takes the dtype of `{A}`: whole numbers cut off the decimals of what is written into it, and truth values keep True and False alone."
ALWAYS = "Python reads it as `({A} == {B}) or {C}`, and `{C}` counts as true, so that the condition always holds."

# What is nearly always a mistake: pattern; what to write; why.
SURE = (
    # questions
    ("A == B or C", "A in (B, C)", ALWAYS),
    ("A == B or C or D", "A in (B, C, D)", "`{C}` counts as true whatever `{A}` is, so that the condition always holds."),
    ("A != C or A != D", "A not in (C, D)", "`{A}` always differs from one of the two, so that the condition always holds."),
    ("A == C and A == D", "A in (C, D)", "`{A}` never equals both, so that the condition never holds."),
    ("A is C", "A == C", "`is` asks whether both are the same object in memory; `==` asks whether they are equal."),
    ("A is not C", "A != C", "`is not` asks whether both are different objects in memory; `!=` asks whether they differ."),
    ("A == np.nan; A == math.nan; A == float('nan')", "np.isnan(A)", "NaN equals nothing, not even itself."),
    ("A != np.nan; A != math.nan; A != float('nan')", "~np.isnan(A)", "NaN equals nothing, not even itself."),
    # objects
    ("[[]] * A", "[[] for _ in range(A)]", ALIKE),
    ("[[A] * B] * E", "[[A] * B for _ in range(E)]", ALIKE),
    ("[np.zeros(A)] * E", "[np.zeros(A) for _ in range(E)]", ALIKE),
    ("np.full(A, N)", "np.full(A, N, dtype=float)", "`np.full` takes the dtype of its value. `{N}` makes an array of whole numbers, which cuts off the decimals of what is written into it."),
    # numbers
    ("A * -np.inf; -np.inf * A; A * -math.inf; A * float('-inf')", "np.where(A, -np.inf, 0); np.where(A, 0, -np.inf)", INFINITE),
    ("A * np.inf; np.inf * A; A * math.inf", "np.where(A, np.inf, 0)", INFINITE),
    # ranges
    ("np.linspace(0, A, A)", "np.linspace(0, A, A, endpoint=False)", "`np.linspace` includes its end, so that its steps are longer than 1."),
    ("range(P, 0)", "range(P, 0, -1)", "`range` counts upwards unless a third argument says −1, so this one is empty where `{P}` is positive."),
    ("range(P, -1)", "range(P, -1, -1)", "`range` counts upwards unless a third argument says −1, so this one is empty where `{P}` is 0 or positive."),
    # axes
    ("A.transpose(-2, -1); np.transpose(A, (-2, -1))", "A.swapaxes(-1, -2)", "On two axes, NumPy reads `transpose(-2, -1)` as “the axes in this order”, which changes nothing."),
    ("np.resize(A, B.shape)", "np.broadcast_to(A[:B.shape[-2]], B.shape)", "`np.resize` reads the numbers on, past the end of a row, and begins again when they are used up."),
)  # fmt: skip
# What is right as often as not; told only where the lines are better with what stands on the right.
MAYBE = (
    # questions
    ("A == B or C", "A == B", ALWAYS),
    ("P or B", "B if P is None else P", "`or` asks `{P}` for one yes or no: an array has none, and for 0 and what is empty it takes its right side, too."),
    ("M != B", "M | B", "Between truth values, `!=` is an exclusive “or”: it is False where both are True."),
    ("A ^ B; np.logical_xor(A, B)", "A | B", "This “or” is exclusive: it is False where both are True."),
    # numbers
    ("round(A); int(round(A)); int(np.round(A))", "int(A)", "`round` goes to the nearest whole number; `int` drops the decimals."),
    ("int(A / B)", "A // B", "`int` cuts towards 0 and `//` rounds down, which differs for negative numbers."),
    ("-A // B", "-(A // B)", "Python takes the minus first, and `//` rounds down: −7 // 2 is −4."),
    ("-A ** B", "(-A) ** B", "`**` comes before the minus: −2 ** 2 is −4."),
    ("A * np.log(A)", "A * np.log(np.where(A > 0, A, 1))", "0 times log 0 is NaN (not a number)."),
    ("A + np.abs(A); A + abs(A)", "(A + np.abs(A)) / 2", "x + |x| is 2x where x is positive."),
    ("np.ptp(A, axis=B); np.ptp(A, B)", "np.abs(A).max(axis=B)", "`np.ptp` is the largest number minus the smallest, with their signs."),
    ("np.ptp(A)", "np.abs(A).max()", "`np.ptp` is the largest number minus the smallest, with their signs."),
    ("np.zeros_like(A)", "np.zeros(A.shape)", DTYPE),
    ("np.empty_like(A)", "np.zeros(A.shape)", DTYPE),
    ("np.full_like(A, B)", "np.full(A.shape, B)", DTYPE),
    # ranges and slices
    ("np.linspace(A, B, E)", "np.linspace(A, B, E, endpoint=False)", "`np.linspace` includes its end."),
    ("range(P)", "range(1, P)", "Without a start, `range` begins at 0, so that the loop takes the first one, too."),
    ("range(1, A + 1)", "range(A)", "This `range` counts from 1 to `{A}`; the first place is 0."),
    ("np.arange(1, A + 1)", "np.arange(A)", "These numbers go from 1 to `{A}`; the first place is 0."),
    ("range(P)", "range(abs(P))", "The loop does nothing then.", "`{old}` is empty where `{P}` is negative."),
    ("A[-P:]", "A[len(A) - P:]", SLICE.format("is the whole array")),
    ("A[:-P]", "A[:len(A) - P]", SLICE.format("is empty")),
    ("A[..., -P:, :]", "A[..., A.shape[-2] - P:, :]", SLICE.format("is the whole array")),
    ("A[..., -P:]; A[:, -P:]", "A[..., A.shape[-1] - P:]", SLICE.format("is the whole array")),
    ("A[..., :-P]; A[:, :-P]", "A[..., :A.shape[-1] - P]", SLICE.format("is empty")),
    # entries
    ("A[:, P]", "A[np.arange(len(P)), P]", "`{A}[:, {P}]` takes every row at every index of `{P}`; to take each row at its own, the first index counts the rows."),
    ("A[..., P]", "np.take_along_axis(A, P[..., None], axis=-1)[..., 0]", "`{A}[..., {P}]` takes every row at every index of `{P}`, not each row at its own."),
    ("A[np.argsort(B)]", "np.take_along_axis(A, np.argsort(B), axis=-1)", "One array as an index picks along the first axis."),
    ("np.take(A, B)", "np.take(A, B, axis=-1); np.take(A, B, axis=0)", NO_AXIS.format("`np.take`")),
    ("A.argmax(axis=B) + C; np.argmax(A, axis=B) + C; A.argmax(B) + C", "np.where(A.any(axis=B), A.argmax(axis=B) + C, 0)", "`argmax` of a row without any True is 0, as if the first one were True."),
    ("np.searchsorted(A, B)", "np.abs(np.subtract.outer(B, A)).argmin(axis=-1)", "`np.searchsorted` returns the first place whose number is not smaller, which rounds up; the nearest one has the smallest distance."),
    ("np.digitize(A, B)", "np.abs(np.subtract.outer(A, B)).argmin(axis=-1)", "`np.digitize` counts the borders below a number; the nearest one has the smallest distance."),
    ("list(set(A)); sorted(set(A))", "list(dict.fromkeys(A))", "A set drops the order of its members."),
    ("np.unique(A)", "np.array(list(dict.fromkeys(np.asarray(A).tolist())))", "`np.unique` also puts the values into the order of their size."),
    # axes
    ("np.hstack(A)", "np.concatenate(A, axis=-1); np.concatenate(A, axis=-2); np.concatenate(A, axis=0)", "`np.hstack` joins along axis 1. With more than two axes, that is not the last one."),
    ("np.vstack(A)", "np.concatenate(A, axis=-2); np.concatenate(A, axis=-1)", "`np.vstack` joins along axis 0, whatever stands there."),
    ("np.dstack(A)", "np.concatenate(A, axis=-1); np.stack(A, axis=-1)", "`np.dstack` joins along axis 2, the third one."),
    ("np.column_stack(A)", "np.stack(A, axis=-1); np.concatenate(A, axis=-1)", "`np.column_stack` joins along axis 1, and makes a column only of an array with one axis."),
    ("np.append(A, B)", "np.concatenate([A, B], axis=-1); np.concatenate([A, B], axis=0); np.concatenate([A, B], axis=-2)", NO_AXIS.format("`np.append`")),
    ("np.trace(A); A.trace()", "np.trace(A, axis1=-2, axis2=-1)", "`trace` takes the first two axes unless it is told others."),
    ("np.diagonal(A); A.diagonal()", "np.diagonal(A, axis1=-2, axis2=-1)", "The diagonal is that of the first two axes unless others are named."),
    ("np.dot(A, B); A.dot(B)", "A @ B", "With more than two axes, `dot` multiplies each matrix of the left with each one of the right; `@` multiplies them in pairs."),
    ("np.inner(A, B)", "A @ B", "`np.inner` sums over the last axis of both; `@` sums over the last but one of the right."),
    ("np.outer(A, B)", "A[..., :, None] * B[..., None, :]", "`np.outer` takes all numbers of each array as one long row."),
    ("A.T; np.transpose(A); A.transpose()", "A.swapaxes(-1, -2)", "It turns the order of all axes round, the leading ones too; only the last two should change places."),
    ("A.reshape(*B, E, F); A.reshape(E, F); A.reshape(B, E, F); A.reshape(G, B, E, F); np.reshape(A, B)", "A.swapaxes(-1, -2)", "`reshape` keeps the numbers in their order and only breaks the rows elsewhere; it swaps no axes."),
    *((f"np.{f}(A, P)", f"np.{f}imum(A, P)", f"The second argument of `np.{f}` is an axis; `np.{f}imum` compares two arrays.") for f in ("max", "min")),
    ("np.sum(A, P)", "A + P", "The second argument of `np.sum` is an axis, and no array to add."),
    ("np.meshgrid(A, B)", "np.meshgrid(A, B, indexing='ij')", "`np.meshgrid` lays the first array along axis 1, so that its rows belong to the second."),
    ("sum(A)", "np.sum(A, axis=-1)", "Python's `sum` adds along the first axis."),
    *((f"np.{f}(A); A.{f}()", f"np.{f}(A, axis=-1); np.{f}(A, axis=0)", NO_AXIS.format(f"`{f}`")) for f in ("cumsum", "cumprod", "argmax", "argmin")),
    ("np.flip(A)", "np.flip(A, axis=-1); np.flip(A, axis=0)", "Without `axis`, `np.flip` turns every axis round."),
    *((f"np.{f}(A, B)", f"np.{f}(A, B, axis=-1); np.{f}(A, B, axis=0)", NO_AXIS.format(f"`np.{f}`")) for f in ("repeat", "roll", "delete")),
)  # fmt: skip
LETTERS = "ABCDEFGMNP"


def _parsed(text: str) -> list[ast.expr]:
    return [line.value for line in ast.parse(text).body if isinstance(line, ast.Expr)]


ROWS = [(_parsed(old), _parsed(new), words, table is SURE) for table in (SURE, MAYBE) for old, new, *words in table]


def _fits(pattern: Any, node: Any, found: dict[str, ast.expr]) -> bool:
    """Tell whether a node looks like a pattern, and note what stands for its letters."""
    match pattern, node:
        case ast.Name(id=letter), _ if letter in LETTERS:
            may_stand = isinstance(node, ast.expr) and _may_stand(letter, node)
            return may_stand and ast.unparse(found.setdefault(letter, node)) == ast.unparse(node)
        case ast.Name(id="np"), ast.Name(id=module):
            return module in ("np", "numpy")
        case list(), list():
            return len(pattern) == len(node) and all(_fits(p, n, found) for p, n in zip(pattern, node, strict=True))
        case ast.AST(), ast.AST() if type(pattern) is type(node):
            fields = (name for name in pattern._fields if name != "kind")
            return all(_fits(getattr(pattern, name), getattr(node, name), found) for name in fields)
    return bool(pattern == node)


def _may_stand(letter: str, node: ast.expr) -> bool:
    name, value = getattr(node, "id", ""), getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Slice | ast.Starred) or name in ("np", "numpy", "math"):
        return False
    match letter:
        case "C" | "D":
            return type(value) in (int, float, str) and (bool(value) or letter == "D")
        case "N":
            return type(value) is int
        case "M":
            return not isinstance(getattr(node, "slice", None), ast.Constant)
        case "P":
            others = ast.Constant | ast.Tuple | ast.Compare | ast.BoolOp
            return number(node) is None and name != "axis" and not isinstance(node, others)
    return True


class _Filled(ast.NodeTransformer):
    """A pattern with what stands for its letters."""

    def __init__(self, found: dict[str, ast.expr]) -> None:
        self.found = found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.found.get(node.id, node))


def pitfalls(body: list[ast.stmt], texts: Collection[str] = ()) -> Iterator[Edit]:
    """Yield the edits of a body that undo a pitfall; `texts` are those that come in as arguments."""
    counts = _counts(body)
    yield from _of_statements(body, ast.Module(body, []))
    for statement in body:
        for parent, field, i, node in list(places_in(statement)):
            text = getattr(node, "value", None)
            if isinstance(text, str) and text not in texts and (near := difflib.get_close_matches(text, texts, 1)):
                why = f"No text that comes in is `{text!r}`; there are {', '.join(f'`{x!r}`' for x in sorted(texts))}."
                yield Edit("pitfall", parent, field, i, node, placed(ast.Constant(near[0]), node), node.lineno, why=why)  # type: ignore[attr-defined]
            if isinstance(node, ast.Lambda) and (taken := _taken(node, counts)):
                yield Edit("pitfall", parent, field, i, node, placed(taken[0], node), node.lineno, why=taken[1])
            for new, sure, why, *cure in _instead(node):
                kind, line = ("pitfall" if sure else "habit"), getattr(node, "lineno", statement.lineno)
                yield Edit(kind, parent, field, i, node, placed(new, node), line, cure="".join(cure), why=why)


def _instead(node: ast.AST) -> Iterator[Any]:
    """Yield what may be meant by an expression, whether that is nearly sure, why, and the cure, if it is not plain."""
    for olds, news, words, sure in ROWS:
        for old in olds:
            found: dict[str, ast.expr] = {}
            if _fits(old, node, found):
                texts = {letter: ast.unparse(x) for letter, x in found.items()} | {"old": ast.unparse(node)}
                if texts.get("C", "one") == texts.get("D", "another"):  # `A != 1 or A != 1`
                    continue
                for new in news:
                    meant = _Filled(found).visit(copy.deepcopy(new))
                    said = [text.format(**texts) for text in words]
                    if isinstance(node, ast.Subscript):  # else its index alone would be shown
                        said.append(f"write `{ast.unparse(meant)}` instead of `{texts['old']}`.")
                    yield meant, sure, *said
    if isinstance(node, ast.Compare) and (meant := _compared_first(node)):
        why = "`&` and `|` come before comparisons in Python, so each comparison needs brackets of its own."
        yield meant, True, why
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        yield _power(node), number(node.left) is not None or number(node.right) is not None, POWER
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult | ast.Div)
        and (meant := _in_exponent(node) or _root(node))
    ):
        why = "`**` comes before `*` and `/`, so that only what stands directly behind it is the exponent."
        yield meant, ast.unparse(meant).endswith("** (1 / 2)") or ast.unparse(meant.right).startswith("-"), why


def _taken(made: ast.Lambda, counts: Collection[str]) -> tuple[ast.expr, str] | None:
    """Return a lambda that takes a loop's values where it is made, and why; None if it reads none."""
    own = {argument.arg for argument in made.args.args}
    if not (late := sorted(_names(made.body).intersection(counts) - own)):
        return None
    defaults = [*made.args.defaults, *(ast.Name(name, ast.Load()) for name in late)]
    taken = with_fields(made.args, args=[*made.args.args, *map(ast.arg, late)], defaults=defaults)
    why = f"A `lambda` reads {' and '.join(f'`{name}`' for name in late)} when it is called, and by then the loop has ended: all of them use the last value."
    return with_fields(made, args=taken), why


def _compared_first(node: ast.Compare) -> ast.expr | None:
    """Return `(a < b) & (c < d)` for `a < b & c < d`; None if there are brackets around `b & c`, or a number in it."""
    sides = [node.left, *node.comparators]
    for n, side in enumerate(sides):
        if not isinstance(side, ast.BinOp) or not isinstance(side.op, ast.BitAnd | ast.BitOr):
            continue
        is_first, is_last = n == 0, n == len(sides) - 1
        begins = not is_first or side.col_offset == node.col_offset  # without a bracket
        ends = not is_last or side.end_col_offset == node.end_col_offset
        if begins and ends and number(side.left) is None and number(side.right) is None:
            left = side.left if is_first else ast.Compare(node.left, node.ops[:n], [*sides[1:n], side.left])
            right = side.right if is_last else ast.Compare(side.right, node.ops[n:], sides[n + 1 :])
            return ast.BinOp(left, side.op, right)
    return None


def _power(node: ast.BinOp) -> ast.expr:
    """Return d * (a ** 2) for d * a ^ 2, in which `^` comes last; (d * a) ** 2 if these brackets are the learner's own."""
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    left = left if node.left.col_offset == node.col_offset else f"({left})"
    right = right if node.right.end_col_offset == node.end_col_offset else f"({right})"
    return ast.parse(f"{left} ^ {right}".replace("^", "**"), mode="eval").body


def _in_exponent(node: ast.expr) -> ast.BinOp | None:
    """Return a ** (b * c / d) for a ** b * c / d; None for (a ** b) * c / d."""
    match node:
        case ast.BinOp(op=ast.Pow()):
            return node
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right) if left.col_offset == node.col_offset:
            if power := _in_exponent(left):
                return ast.BinOp(power.left, power.op, ast.BinOp(power.right, op, right))
    return None


def _root(node: ast.BinOp) -> ast.BinOp | None:
    """Return a / b ** (1 / 2) for a / b ** 1 / 2; None for (a / b ** 1) / 2."""
    match node.left:
        case ast.BinOp(left=a, op=op, right=ast.BinOp(left=b, op=ast.Pow(), right=ast.Constant(1) as one)):
            if node.left.col_offset == node.col_offset:
                return ast.BinOp(a, op, ast.BinOp(b, ast.Pow(), ast.BinOp(one, node.op, node.right)))
    return None


# --- Whole lines -----------------------------------------------------------------------------------------------------

MADE = {"zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "list", "dict", "set", "copy"}
CHANGES = {"remove", "pop", "insert", "append"}
LINES = (
    ("A = B\nB = A", "A, B = B, A", "The first line has overwritten `{A}` when the second one reads it.", True),
    ("A[-1] = B", "A = np.concatenate([A, B[None]])", "This line writes over a row of `{A}`, and adds none.", False),
    ("A[0] = B", "A = np.concatenate([B[None], A])", "This line writes over a row of `{A}`, and adds none.", False),
    ("A[P] += B", "np.add.at(A, P, B)", "Where an index occurs several times, `+=` adds only once, and `np.add.at` adds each time.", False),
)  # fmt: skip
LINE_ROWS = [(ast.parse(old).body, ast.parse(new).body, why, sure) for old, new, why, sure in LINES]
Meant = tuple[int, list[Any], str, str, bool]  # how many lines go, what comes, the cure, why, and whether it is sure


def _of_statements(body: list[ast.stmt], holder: ast.AST, field: str = "body") -> Iterator[Edit]:
    """Yield the edits of the statements of a block, and of the blocks in it."""
    for n, line in enumerate(body):
        for many, new, cure, why, sure in _meant(body[n:]):
            words = tuple("\n".join(ast.unparse(placed(s, line)) for s in some) for some in (body[n : n + many], new))
            cure = cure or f"write `{words[1]}` instead of `{words[0]}`.".replace("\n", "; ")
            kind = "pitfall" if sure else "habit"
            made = placed(block(new), line)
            edit = Edit(kind, holder, field, n, line, made, line.lineno, words, cure=cure, why=why)  # type: ignore[arg-type]
            gone = (replace(edit, index=i, old=body[i], new=placed(ast.Pass(), line)) for i in range(n + 1, n + many))
            yield replace(edit, also=tuple(gone))
        for name in ("body", "orelse"):
            if inner := getattr(line, name, None):
                yield from _of_statements(inner, line, name)


def _meant(lines: list[ast.stmt]) -> Iterator[Meant]:
    line = lines[0]
    for old, new, why, sure in LINE_ROWS:
        found: dict[str, ast.expr] = {}
        if _fits(old, lines[: len(old)], found):
            texts = {letter: ast.unparse(x) for letter, x in found.items()}
            filled = "\n".join(ast.unparse(_Filled(found).visit(copy.deepcopy(one))) for one in new)
            yield len(old), ast.parse(filled).body, "", why.format(**texts), sure
    match line:
        case ast.Assign(targets=[ast.Name(id=a)], value=value) if a in _names(value) and len(lines) > 1:
            match lines[1]:
                case ast.Assign(targets=[ast.Name(id=b)], value=ast.Name(id=c)) if a == c != b:
                    cure = f"exchange `{ast.unparse(line)}` and the line below it."
                    why = f"`{b}` gets the new `{a}` here, because the old one is overwritten already."
                    yield 2, [lines[1], line], cure, why, False
        case ast.Assign(targets=[_, _, *_] as targets, value=value) if _is_made(value):
            made = [placed(ast.Assign([target], copy.deepcopy(value)), line) for target in targets]
            cure = f"make a new one for each name, `{ast.unparse(made[0])}` and so on, each in its own line."
            why = "`a = b = …` makes one array or list with several names: what is written under one shows under all."
            yield 1, made, cure, why, True
        case ast.Assign(targets=[ast.Name(id=a)], value=value) if _is_made(value) or number(value) is not None:
            for n, loop in enumerate(lines[1:4], 1):
                if isinstance(loop, ast.For) and any(_adds_to(inner, a) for inner in loop.body):
                    begun = with_fields(loop, body=[line, *loop.body])
                    cure = f"move `{ast.unparse(line)}` into the loop over `{ast.unparse(loop.target)}`, as its first line."
                    why = "Above it, each round goes on with what the rounds before have left."
                    yield n + 1, [*lines[1:n], begun], cure, why, False
        case ast.For() | ast.While():
            yield from _of_loops(line)
        case ast.If() if _sets(line):
            chain = [*itertools.takewhile(lambda other: _sets(other) == _sets(line), lines)]
            if len(chain) > 1:
                elifs: list[Any] = []
                for other in reversed(chain):
                    elifs = [with_fields(other, orelse=elifs)]
                why = "Every `if` is asked, so a later one overwrites what an earlier one has set. `elif` is asked only where those above it did not hold."
                yield len(chain), elifs, "write `elif` for each further `if` below it.", why, False


def _of_loops(loop: Any) -> Iterator[Meant]:
    inside = [node for line in loop.body for node in ast.walk(line)]
    leaves, last = any(isinstance(n, ast.Continue | ast.Break) for n in inside), loop.body[-1]
    if isinstance(last, ast.Return) and len(loop.body) > 1 and not leaves:
        cure = f"move `{ast.unparse(last)}`, in line {last.lineno}, below the loop, as far left as its first line."
        why = "Inside the loop, `return` ends the function in the first round."
        yield 1, [with_fields(loop, body=loop.body[:-1]), last], cure, why, True
    match last:
        case ast.If(orelse=[ast.Return() as other]) if isinstance(last.body[-1], ast.Return) and not leaves:
            cure = f"move `{ast.unparse(other)}`, in line {other.lineno}, below the loop, and leave out the `else`."
            why = "With it, the function ends in the first round, whatever is found there."
            goes_on = with_fields(loop, body=[*loop.body[:-1], with_fields(last, orelse=[])])
            yield 1, [goes_on, other], cure, why, True
    for n, line in enumerate(loop.body):
        match line:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_made(value) or number(value) is not None:
                if any(_adds_to(later, name) for later in loop.body[n + 1 :]):
                    shorter = with_fields(loop, body=[*loop.body[:n], *loop.body[n + 1 :]])
                    cure, why = f"move `{ast.unparse(line)}` above the loop.", "Inside it, every round begins again."
                    yield 1, [line, shorter], cure, why, False
    match loop:
        case ast.For(target=ast.Name(id=i), iter=ast.Call(func=ast.Name(id="range"), args=[_] | [_, _] as bounds)):
            changed = any(isinstance(n, ast.Name) and n.id == i and isinstance(n.ctx, ast.Store) for n in inside)
            if changed and not leaves and not loop.orelse:
                *_, start, stop = "0", *map(ast.unparse, bounds)
                first, as_long = ast.parse(f"{i} = {start}\nwhile {i} < {stop}:\n    {i} += 1").body
                as_long.body = [*loop.body, *as_long.body]  # type: ignore[attr-defined]
                cure = f"write `{i} = {start}` and below it `while {i} < {stop}:` instead of the `for`, and at the end of the loop, in every round, `{i} += 1`."
                why = f"A `for` sets `{i}` to the next number of its `range` in every round, whatever the loop has done to `{i}`."
                yield 1, [first, as_long], cure, why, True
        case ast.For(iter=ast.Name(id=a)):
            calls = [n.func for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
            if any(f.attr in CHANGES and getattr(f.value, "id", "") == a for f in calls):
                copied = ast.Call(ast.Name("list", ast.Load()), [loop.iter], [])
                cure = f"write `in list({a}):` instead of `in {a}:`."
                why = f"A loop over `{a}` loses its place where it changes `{a}` on the way."
                yield 1, [with_fields(loop, iter=copied)], cure, why, True


def _counts(body: list[ast.stmt]) -> set[str]:
    """Return the names that loops set."""
    loops = (n for line in body for n in ast.walk(line) if isinstance(n, ast.For | ast.comprehension))
    return set[str]().union(*(_names(loop.target) for loop in loops))


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_made(value: ast.expr) -> bool:
    """Tell whether an expression makes an array or a list that can be written into."""
    return isinstance(value, ast.List | ast.ListComp | ast.Dict) or name_called(value) in MADE


def _adds_to(line: ast.stmt, name: str) -> bool:
    """Tell whether a line adds to what a name holds, or writes into it."""
    for node in ast.walk(line):
        match node:
            case ast.AugAssign(target=ast.Name(id=n)) if n == name:
                return True
            case ast.Assign(targets=[ast.Name(id=n)], value=value) if n == name and name in _names(value):
                return True
    return any(getattr(base, "id", "") == name for node in ast.walk(line) for base in written(node))


def _sets(line: ast.stmt) -> set[str]:
    """Return what an `if` without `else` sets."""
    lines = line.body if isinstance(line, ast.If) and not line.orelse else []
    return {ast.unparse(t) for s in lines if isinstance(s, ast.Assign) for t in s.targets}
