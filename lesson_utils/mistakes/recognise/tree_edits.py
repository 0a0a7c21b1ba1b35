"""Single edits of a body's syntax tree. Applied to a solution they make its mutants, wrong answers that nobody has to type;
applied to a learner's lines, one of them may make those right.
"""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from lesson_utils.mistakes.recognise.ingredients import Ingredients
from lesson_utils.mistakes.recognise.mutation_operators import (
    KEEPS,
    OPERATORS,
    additions,
    alternatives,
    name_called,
    number,
    with_fields,
)


@dataclass(frozen=True)
class Edit:
    """One edit of a tree: what stands in the place of what. The tree is changed only while it is `applied`."""

    kind: str
    parent: ast.AST
    field: str
    index: int | None
    old: ast.AST
    new: ast.AST
    line: int  # counted as the tree counts
    words: tuple[str, str] | None = None  # before and after, where they are not those of the nodes
    also: tuple["Edit", ...] = ()  # more places, where the same is done
    cure: str = ""  # the words for what to do, and why, where those of its kind say less
    why: str = ""

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for edit in self.also:
                stack.enter_context(edit.applied())
            stack.callback(_set, self.parent, self.field, self.index, self.old)
            _set(self.parent, self.field, self.index, self.new)
            yield

    def places(self) -> set[tuple[int, str | int]]:
        """Return what the edit sets: fields of nodes, and places in lists."""
        return {
            (id(e.parent), e.field) if e.index is None else (id(getattr(e.parent, e.field)), e.index)
            for e in (self, *self.also)
        }

    def texts(self) -> tuple[str, str]:
        """Return what the edit changes, before and after."""
        if self.words:
            return self.words
        shown = _shown(self.parent, self.old)
        before = ast.unparse(shown)
        with self.applied():
            return before, ast.unparse(shown if shown is self.parent else self.new)


@contextmanager
def all_applied(edits: Sequence[Edit]) -> Iterator[None]:
    """Apply edits of one tree together, the outer ones first: what stands in the place of a node may be a copy of it.

    Raises:
        ValueError: two of them change the same place, or one takes out what another one changes.
    """
    ordered: list[Edit] = []
    for edit in edits:
        if any(edit.places() & other.places() for other in ordered):
            raise ValueError("the same place")
        ordered.insert(next((i for i, e in enumerate(ordered) if e.parent is edit.old), len(ordered)), edit)
    outer = dict[int, Edit]()
    with ExitStack() as stack:
        for edit in ordered:
            if around := outer.get(id(edit.parent)):
                if edit.old is around.new:  # the part that is left of it
                    edit = replace(around, old=around.new, new=edit.new)
                elif (around.new, edit.field, edit.index, edit.old) in places_in(around.new):
                    edit = replace(edit, parent=around.new)
                else:
                    raise ValueError("taken out")
            outer[id(edit.old)] = edit
            stack.enter_context(edit.applied())
        yield


def places_in(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    for name, value in ast.iter_fields(node):
        for i, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(item, ast.AST):
                yield node, name, i, item
                if not isinstance(item, ast.expr_context | ast.operator) and number(item) is None:
                    yield from places_in(item)


def _set(parent: ast.AST, name: str, i: int | None, value: object) -> None:
    if i is None:
        setattr(parent, name, value)
    else:
        getattr(parent, name)[i] = value


def _shown(parent: ast.AST, node: ast.AST) -> ast.AST:
    """Return the smallest part worth showing: for a name or a number, what it stands in."""
    small = isinstance(node, ast.Name | ast.Constant | ast.Slice | ast.UnaryOp) or len(ast.unparse(node)) < 5
    return parent if small and isinstance(parent, ast.expr | ast.keyword | ast.Return | ast.Assign) else node


def repairs(body: list[ast.stmt], what: Ingredients) -> Iterator[Iterator[Edit]]:
    """Yield families of edits that may mend a body, the likelier families first."""
    yield edits(body, what)
    yield _throughout(body, what)
    yield edits(body, what, add=True)


def _throughout(body: list[ast.stmt], what: Ingredients) -> Iterator[Edit]:
    """Yield the edits that do the same in several places, in one line or in all: another axis, name, sign or function."""
    groups = defaultdict[tuple[str, str, str, int], list[Edit]](list)
    # By the line, in lines that differ in their names alone.
    alike = defaultdict[tuple[str, ...], dict[int, Edit]](dict)
    lines = {node.lineno: node for statement in body for node in ast.walk(statement) if isinstance(node, ast.stmt)}
    for edit in edits(body, what):
        if edit.line in lines and edit.kind != "name" and isinstance(edit.old, ast.expr):
            alike[_without_names(edit, lines[edit.line])].setdefault(edit.line, edit)
        before, after = varying(edit)
        if before != after:
            for line in (0, edit.line) if edit.kind in ("name", "index") else (0,):
                groups[edit.kind, before, after, line].append(edit)
    for (_, before, after, _), (first, *others) in groups.items():
        if others and first.places() != others[0].places():
            yield replace(first, words=(before, after), also=tuple(others))
    for first, *others in (group.values() for group in alike.values()):
        if any(edit.texts() != first.texts() for edit in others):
            yield replace(first, words=first.texts(), also=tuple(others))
    yield from _exchanged(body, what.names)


def _without_names(edit: Edit, line: ast.stmt) -> tuple[str, ...]:
    """Return an edit and its line with numbers for names: the same in `m = a * m` and `v = b * v`."""
    names = dict.fromkeys(node.id for node in ast.walk(line) if isinstance(node, ast.Name))
    numbers = {name: f"_{n}" for n, name in enumerate(names)}
    texts = (ast.unparse(line), *edit.texts())
    return (edit.kind, *(re.sub(r"[^\W\d]\w*", lambda word: numbers.get(word[0], word[0]), text) for text in texts))


def varying(edit: Edit) -> tuple[str, str]:
    """Return what differs between places where the same slip is made, before and after: `axis=0`, a name, an index, a sign."""
    old, new = edit.old, edit.new
    if edit.words:
        return "", ""
    if edit.kind in ("axis", "keepdims"):
        is_named = name_called(old) in KEEPS and all(number(x) is None for x in getattr(old, "args", ()))
        return (_axis_of(old), _axis_of(new)) if _axis_of(old) or is_named else ("", "")
    if edit.kind == "index" and isinstance(old, ast.Subscript):
        inner = ast.unparse(new)
        return ast.unparse(old).removeprefix(f"({inner})").removeprefix(inner), ""
    if edit.kind == "axes in front":
        many = 1 + len(old.slice.elts) - len(new.slice.elts)  # type: ignore[attr-defined]
        return " ".join([":,"] * many), "...,"
    if edit.kind == "function" and name_called(old) and name_called(new):
        return name_called(old), name_called(new)
    if (edit.kind in ("operator", "comparison", "unwrapped") and type(old) is type(new)) or number(old) in range(-4, 4):
        return "", ""
    return ast.unparse(old), ast.unparse(new)


def _axis_of(call: ast.AST) -> str:
    keywords = getattr(call, "keywords", ())
    return ", ".join(ast.unparse(k) for k in keywords if k.arg in ("axis", "keepdims"))


def _exchanged(body: list[ast.stmt], names: Sequence[str]) -> Iterator[Edit]:
    """Yield the edits that exchange two names: where they get their values, in one line that reads both, or in all."""
    groups = defaultdict[tuple[int, str], list[Edit]](list)
    filled = {getattr(base, "id", "") for statement in body for n in ast.walk(statement) for base in written(n)}
    for statement in body:
        for parent, field, i, node in places_in(statement):
            if isinstance(node, ast.Name) and node.id in names and node.id not in filled:
                for line in (0,) if isinstance(node.ctx, ast.Store) else (-1, node.lineno):
                    groups[line, node.id].append(Edit("exchanged", parent, field, i, node, node, node.lineno))
    for ((line, a), ones), ((other_line, b), others) in itertools.combinations(groups.items(), 2):
        if line == other_line and (line or len(ones) == len(others) == 1):
            other = {a: b, b: a}
            renamed = [replace(e, new=with_fields(e.old, id=other[ast.unparse(e.old)])) for e in (*ones, *others)]
            first, *more = sorted(renamed, key=lambda edit: edit.line)
            yield replace(first, words=(a, b), also=tuple(more))


def edits(body: list[ast.stmt], what: Ingredients, add: bool = False) -> Iterator[Edit]:
    """Yield each single edit of a body; with `add`, those that put something into it."""
    for statement in body:
        bases = [base for n in ast.walk(statement) for base in written(n)]
        filled, lists = {id(base) for base in bases}, {getattr(base, "id", "") for base in bases}
        for parent, name, i, node in list(places_in(statement)):
            if add and id(node) in filled:  # what is done to a copy of it would be lost
                continue
            if not isinstance(node, ast.expr) or (isinstance(parent, ast.Call) and name == "func"):
                continue
            if isinstance(parent, ast.keyword) and parent.arg in ("axis", "keepdims"):
                continue
            for kind, new in additions(node, what) if add else alternatives(node, what):
                if kind == "off by one" and getattr(getattr(parent, "value", None), "attr", "") == "shape":
                    continue  # another axis, which is an edit of its own
                if _part_of(new) in lists and (isinstance(parent, HOLDING) or name_called(parent) in FILLING):
                    continue  # a list inside itself, which NumPy would unpack for seconds, or for ever
                if kind == "off by one" and isinstance(parent, ast.BinOp):
                    if isinstance(new, ast.Constant) and new.value == 0:
                        continue  # `n - 0`: leaving the term out is an edit of its own
                    if not isinstance(parent.op, ast.Add | ast.Sub):
                        kind = "constant"  # a factor or an exponent counts nothing
                yield Edit(kind, parent, name, i, node, placed(new, node), node.lineno)
    if not add:
        yield from _statements(ast.Module(body, []))


FILLING = {"append", "extend", "insert"}
HOLDING = (ast.List, ast.Tuple, ast.Assign, ast.AugAssign)


def _part_of(node: ast.AST) -> str | None:
    """Return the name of the list that an expression is, or a slice of which it is."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def written(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the arrays and lists that `node` writes into: x of `x[0] = 1` and of `x.append(1)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
        yield node.func.value
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List):
        yield node.target
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        base: ast.expr = node
        while isinstance(base, ast.Subscript | ast.Attribute):
            base = base.value
            yield base


def placed(new: ast.AST, old: ast.AST) -> ast.AST:
    """Return a new node with the line of the old one, without which Python does not compile it."""
    line = getattr(old, "lineno", 1)
    for node in ast.walk(new):
        if isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg) and not hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return new


def _statements(holder: ast.AST) -> Iterator[Edit]:
    """Yield the edits of whole statements: left out, in another order, or rewritten."""
    body: list[ast.stmt] = holder.body  # type: ignore[attr-defined]

    def instead(n: int, new: Sequence[ast.stmt], kind: str, before: str, after: str) -> Edit:
        made = placed(block(new), body[n])
        return Edit(kind, holder, "body", n, body[n], made, body[n].lineno, (before, after))

    for n, statement in enumerate(body):
        text = ast.unparse(statement)
        if len(body) > 1:
            yield instead(n, [], "statement", text, "")
        if n + 1 < len(body) and not isinstance(body[n + 1], ast.Return):
            below = instead(n + 1, [statement], "statements swapped", "", "")
            first = instead(n, [body[n + 1]], "statements swapped", text, ast.unparse(body[n + 1]))
            yield replace(first, also=(below,))
        match statement:
            case ast.Return(value=ast.Tuple(elts=elements) as given) if len(elements) <= 4:
                orders = (list(order) for order in itertools.permutations(elements))
                tuples = (ast.Tuple(order, ast.Load()) for order in orders if order != elements)
                for result in (*tuples, *elements):  # in another order, or one of them alone
                    yield Edit("results", statement, "value", None, given, placed(result, statement), statement.lineno)
            case ast.FunctionDef():
                yield from _statements(statement)
            case ast.For() | ast.While() | ast.If():
                if len(statement.body) > 1:  # the last line one step to the left
                    shorter, last = with_fields(statement, body=statement.body[:-1]), statement.body[-1]
                    yield instead(n, [shorter, last], "indented", ast.unparse(last), "")  # type: ignore[list-item]
                if isinstance(statement, ast.If):
                    yield instead(n, statement.body, "condition", f"if {ast.unparse(statement.test)}:", "")
                yield from _statements(statement)
            case ast.Assign() | ast.AugAssign():
                for kind, new in _assignments(statement):
                    yield instead(n, [new], kind, text, ast.unparse(placed(new, statement)))
            case ast.Expr(value=ast.Call() as call):
                for name in dict.fromkeys(node.id for node in ast.walk(call) if isinstance(node, ast.Name)):
                    kept = ast.Assign([ast.Name(name, ast.Store())], call)
                    yield instead(n, [kept], "thrown away", text, ast.unparse(placed(kept, statement)))


def _assignments(statement: ast.Assign | ast.AugAssign) -> Iterator[tuple[str, ast.stmt]]:
    """Yield what may be meant by an assignment: `=` for `+=` and the reverse, and another operator."""
    if isinstance(statement, ast.AugAssign):
        target, value = statement.target, statement.value
        loaded = with_fields(target, ctx=ast.Load())
        yield "in place", ast.Assign([target], ast.BinOp(loaded, statement.op, value))
        yield "assigned", ast.Assign([target], value)
        for operator in OPERATORS.get(type(statement.op), ()):
            yield "operator", ast.AugAssign(target, operator(), value)
    elif isinstance(first := statement.targets[0], ast.Name | ast.Subscript):
        for added in (ast.Add(), ast.Sub()):
            yield "assigned", ast.AugAssign(first, added, statement.value)


def block(statements: Sequence[ast.stmt]) -> ast.stmt:
    """Return statements as one, to be put in the place of one."""
    if len(statements) == 1:
        return statements[0]
    return ast.If(ast.Constant(True), list(statements), []) if statements else ast.Pass()
