"""Single edits of a body. Applied to a solution they make the wrong answers that nobody has to type; applied to a learner's
lines, one of them may make those right.
"""

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lesson_utils.mistakes.recognise.mutation_operators import (
    ARRAYS,
    OPERATORS,
    Ingredients,
    additions,
    alternatives,
    is_module,
    number,
    parsed,
    with_fields,
)


@dataclass(frozen=True)
class Edit:
    """One edit of a tree: what stands in the place of what. The tree is changed only while it is `applied`."""

    kind: str
    parent: ast.AST
    field: str
    index: int | None
    old: object
    new: object
    line: int  # counted as the tree counts
    words: tuple[str, str] | None = None  # before and after, where they are not those of the nodes

    @contextmanager
    def applied(self) -> Iterator[None]:
        _set(self.parent, self.field, self.index, self.new)
        try:
            yield
        finally:
            _set(self.parent, self.field, self.index, self.old)

    def texts(self) -> tuple[str, str]:
        """What it changes, before and after."""
        if self.words:
            return self.words
        assert isinstance(self.old, ast.AST)
        assert isinstance(self.new, ast.AST)
        shown = _shown(self.parent, self.old)
        before = ast.unparse(shown)
        with self.applied():
            return before, ast.unparse(shown if shown is self.parent else self.new)


def _fields(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            yield from ((node, name, i, item) for i, item in enumerate(value) if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST):
            yield node, name, None, value


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    for place in _fields(node):
        yield place
        if not isinstance(place[3], ast.expr_context | ast.operator | ast.Lambda) and number(place[3]) is None:
            yield from _places(place[3])


def _set(parent: ast.AST, name: str, i: int | None, value: object) -> None:
    if i is None:
        setattr(parent, name, value)
    else:
        getattr(parent, name)[i] = value


def _shown(parent: ast.AST, node: ast.AST) -> ast.AST:
    """The smallest piece worth showing: of a name or a number, what it stands in."""
    small = isinstance(node, ast.Name | ast.Constant | ast.Slice | ast.UnaryOp) or len(ast.unparse(node)) < 5
    return (
        parent if small and isinstance(parent, ast.expr | ast.keyword | ast.Return | ast.Assign | ast.Slice) else node
    )


def edits(body: list[ast.stmt], what: Ingredients, add: bool = False) -> Iterator[Edit]:
    """Each single edit of a body; with `add`, those that put something into it."""
    for statement in body:
        written = {id(base) for n in ast.walk(statement) for base in _written(n)}
        for parent, name, i, node in list(_places(statement)):
            if add and id(node) in written:  # what is done to a copy of it would be lost
                continue
            if not isinstance(node, ast.expr | ast.Slice) or (isinstance(parent, ast.Call) and name == "func"):
                continue
            if isinstance(parent, ast.keyword) and parent.arg in ("axis", "keepdims"):
                continue
            news = alternatives(node, what) if not add else additions(node, what) if _is_value(node) else ()
            for kind, new in news:
                if (
                    isinstance(parent, ast.BinOp)
                    and isinstance(new, ast.Constant)
                    and new.value == 0
                    and kind == "off by one"
                ):
                    continue  # `n - 0`: leaving the term out is an edit of its own
                if (
                    kind == "off by one"
                    and isinstance(parent, ast.BinOp)
                    and not isinstance(parent.op, ast.Add | ast.Sub)
                ):
                    kind = "constant"  # a factor or an exponent counts nothing
                yield Edit(
                    kind,
                    parent,
                    name,
                    i,
                    node,
                    _placed(new, node),
                    node.lineno if hasattr(node, "lineno") else statement.lineno,
                )
    if not add:
        holder = ast.Module(body, [])
        yield from _statements(holder, holder)


def _written(node: ast.AST) -> Iterator[ast.AST]:
    """The arrays that `node` writes into: x of `x[0] = 1`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        base: ast.expr = node
        while isinstance(base, ast.Subscript | ast.Attribute):
            base = base.value
            yield base


def replacements(body: list[ast.stmt], what: Ingredients) -> Iterator[Edit]:
    """Each edit that puts a part of the solution in the place of an expression."""
    for statement in body:
        for parent, name, i, node in list(_places(statement)):
            if _is_value(node) and not (isinstance(parent, ast.Call) and name == "func"):
                for part in what.parts:
                    yield Edit("part", parent, name, i, node, _placed(parsed(part), node), node.lineno)  # type: ignore[attr-defined]


def _is_value(node: ast.AST) -> bool:
    return isinstance(node, ARRAYS) and not isinstance(getattr(node, "ctx", None), ast.Store) and not is_module(node)


def _placed(new: ast.AST, old: ast.AST) -> ast.AST:
    """New nodes need a line, or Python does not compile them."""
    line = getattr(old, "lineno", 1)
    for node in ast.walk(new):
        if isinstance(node, ast.expr | ast.stmt | ast.keyword) and not hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return new


def _statements(holder: ast.AST, root: ast.AST) -> Iterator[Edit]:
    """Statements left out, in another order, in the loop or below it, `=` for `+=`, results in another order."""
    body: list[ast.stmt] = holder.body  # type: ignore[attr-defined]

    def instead(n: int, old: int, new: list[ast.stmt], kind: str, before: str, after: str) -> Edit:
        made = [_placed(x, body[n]) for x in new]
        return Edit(
            kind, holder, "body", None, body, [*body[:n], *made, *body[n + old :]], body[n].lineno, (before, after)
        )

    for n, statement in enumerate(body):
        text = ast.unparse(statement)
        if len(body) > 1:
            yield instead(n, 1, [], "statement", text, "")
        if n + 1 < len(body):
            yield instead(n, 2, [body[n + 1], statement], "statements swapped", text, ast.unparse(body[n + 1]))
        if (
            isinstance(statement, ast.Return)
            and isinstance(statement.value, ast.Tuple)
            and len(statement.value.elts) <= 3
        ):
            elements = statement.value.elts
            for order in itertools.permutations(elements):
                if list(order) != elements:
                    new = _placed(ast.Tuple(list(order), ast.Load()), statement)
                    yield Edit("results", statement, "value", None, statement.value, new, statement.lineno)
            for element in elements:
                yield Edit("results", statement, "value", None, statement.value, element, statement.lineno)
        if isinstance(statement, ast.For | ast.While | ast.If):
            if len(statement.body) > 1:  # the last line one step to the left
                shorter, last = with_fields(statement, body=statement.body[:-1]), statement.body[-1]
                yield instead(n, 1, [shorter, last], "indented", ast.unparse(last), "")  # type: ignore[list-item]
            if isinstance(statement, ast.If):
                yield instead(n, 1, statement.body, "condition", f"if {ast.unparse(statement.test)}:", "")
            yield from _statements(statement, root)
        if isinstance(statement, ast.AugAssign):
            loaded = with_fields(statement.target, ctx=ast.Load())
            plain = ast.Assign([statement.target], ast.BinOp(loaded, statement.op, statement.value))
            yield instead(n, 1, [plain], "in place", text, ast.unparse(_placed(plain, statement)))
            bare = ast.Assign([statement.target], statement.value)
            yield instead(n, 1, [bare], "assigned", text, ast.unparse(_placed(bare, statement)))
            for operator in OPERATORS.get(type(statement.op), ()):
                other = ast.AugAssign(statement.target, operator(), statement.value)
                yield instead(n, 1, [other], "operator", text, ast.unparse(_placed(other, statement)))
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name | ast.Subscript):
            for added in (ast.Add(), ast.Sub()):
                grown = ast.AugAssign(statement.targets[0], added, statement.value)
                yield instead(n, 1, [grown], "assigned", text, ast.unparse(_placed(grown, statement)))


def inserted(body: list[ast.stmt], steps: Sequence[Sequence[ast.stmt]], names: Sequence[str]) -> Iterator[Edit]:
    """Steps of the solution, put between the lines, with the names that are used there."""
    holder = ast.Module(body, [])
    for step in steps:
        used = [n for s in step for n in ast.walk(s) if isinstance(n, ast.Name)]
        own = dict.fromkeys(n.id for n in used if isinstance(n.ctx, ast.Store))
        source = "\n".join(map(ast.unparse, step))
        if len(own) != 1 or "return" in source:
            continue
        for name in names:
            for at in range(1, len(body)):
                new = [_Renamed(next(iter(own)), name).visit(s) for s in ast.parse(source).body]
                text = "\n".join(map(ast.unparse, new))
                yield Edit(
                    "inserted", holder, "body", None, body, [*body[:at], *new, *body[at:]], body[at].lineno, ("", text)
                )


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.new if node.id == self.old else node.id, node.ctx)


def twins(several: Sequence[Edit]) -> Iterator[tuple[Edit, Edit]]:
    """Pairs of edits in two lines that are one slip: those that turn something around, whatever the expressions are; then
    those that do the same to expressions that differ in their names only, β₁ here and β₂ there.
    """
    groups: dict[tuple[str, str], list[Edit]] = {}
    for edit in several:
        groups.setdefault((edit.kind, _without_names("\n".join(edit.texts()))), []).append(edit)
    turned: dict[str, list[Edit]] = {"sides": [], "transpose": [], "axes swapped": []}
    for edit in several:
        turned.get(edit.kind, []).append(edit)
    for group in (*turned.values(), *groups.values()):
        yield from ((a, b) for a, b in itertools.combinations(group, 2) if a.line != b.line)


_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w(])")


def _without_names(text: str) -> str:
    """Variables by the order in which they appear."""
    seen: dict[str, str] = {}
    return _NAME.sub(lambda name: seen.setdefault(name[0], f"_{len(seen)}"), text)
