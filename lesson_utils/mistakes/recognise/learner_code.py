"""The learner's own lines, as a tree that can be edited and run, and the words for an edit of them."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lesson_utils.mistakes.program import expressions
from lesson_utils.mistakes.recognise.mutation_operators import Ingredients, is_module
from lesson_utils.mistakes.recognise.tree_edits import Edit, edits, inserted, replacements


@dataclass(frozen=True)
class Own:
    """A function as a tree, what it can see, and where its first line stands."""

    tree: ast.FunctionDef
    names: Mapping[str, Any]
    first: int
    source: str

    @property
    def body(self) -> list[ast.stmt]:
        return self.tree.body

    def function(self, edit: Edit | None = None) -> Any:
        """The function as it is now, or with one edit more; None if that is no Python."""
        module = ast.Module([self.tree], [])
        names = dict(self.names)
        try:
            if edit is None:
                code = compile(module, "<answer>", "exec")
            elif isinstance(edit.parent, ast.Module):  # the body itself
                with Edit("", self.tree, "body", None, self.tree.body, edit.new, 0).applied():
                    code = compile(ast.fix_missing_locations(module), "<answer>", "exec")
            else:
                with edit.applied():
                    code = compile(module, "<answer>", "exec")
            exec(code, names)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return None
        return names[self.tree.name]

    def statement_at(self, line: str) -> ast.stmt | None:
        """The statement of the body that holds a line."""
        if not line:
            return None
        return next(
            (
                s
                for s in self.body
                if line.rstrip(":") in "\n".join((ast.get_source_segment(self.source, s) or "").splitlines())
            ),
            None,
        )

    def variables(self) -> tuple[str, ...]:
        stored = [n.id for n in expressions(self.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return tuple(dict.fromkeys((*(a.arg for a in self.tree.args.args), *stored)))

    def text(self) -> str:
        return ast.unparse(self.tree)


def own(function: Any) -> Own | None:
    """What is known of the source of `function`; None for what is no plain function with a source."""
    code = getattr(function, "__code__", None)
    bad = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & bad:
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function)).strip()
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
    defined = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function.__name__]
    if function.__name__ == "<lambda>" and len(lambdas) == 1:
        answer = ast.copy_location(ast.Return(lambdas[0].body), lambdas[0].body)
        found = ast.parse("def answer(): pass").body[0]
        assert isinstance(found, ast.FunctionDef)
        found.args, found.body = lambdas[0].args, [answer]
    elif len(defined) == 1 and not defined[0].decorator_list:
        found = defined[0]
    else:
        return None
    if any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(found)):
        return None
    first = found.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(found.body) > 1:
        found.body = found.body[1:]  # the docstring
    try:
        closure = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        closure = {}
    return Own(found, {**function.__globals__, **closure}, code.co_firstlineno, source)


def writes_into(mine: Own, name: str) -> tuple[int, str] | None:
    """The line that changes the array `name` in place, and its text: `x -= 1`, `x[0] = 1`, `x.sort()`, `out=x`."""

    def is_it(node: ast.AST | None) -> bool:
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id == name

    for statement in (n for s in mine.body for n in ast.walk(s) if isinstance(n, ast.stmt)):
        match statement:
            case ast.AugAssign(target=target):
                found = is_it(target)
            case ast.Assign(targets=targets):
                found = any(isinstance(t, ast.Subscript) and is_it(t) for t in targets)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value, attr=attr))):
                found = attr in ("sort", "fill", "put", "resize", "partition", "itemset") and is_it(value)
            case _:
                found = False
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if not hasattr(statement, "body") else []
        if found or any(k.arg == "out" and is_it(k.value) for call in calls for k in call.keywords):
            return mine.first + statement.lineno - 1, ast.unparse(statement)
    return None


def ingredients(body: list[ast.stmt], parameters: tuple[str, ...], names: tuple[str, ...]) -> Ingredients:
    """What can be borrowed from a solution: its functions of one array, and what it makes of the parameters alone."""
    wraps, terms, parts = [], [], []
    modules = ("np", "math", "ops", "attention", "positions")

    def closed(node: ast.AST) -> bool:
        return all(n.id in (*parameters, *modules) for n in ast.walk(node) if isinstance(n, ast.Name))

    for node in expressions(body):
        if (
            isinstance(node, ast.Call)
            and len(node.args) == 1
            and not node.keywords
            and isinstance(node.func, ast.Attribute)
            and is_module(node.func.value)
        ):
            wraps.append(f"{ast.unparse(node.func)}({{}})")
        if isinstance(node, ast.BinOp):
            here = ast.Name("HERE", ast.Load())
            if closed(node.right):
                terms.append(ast.unparse(ast.BinOp(here, node.op, node.right)).replace("HERE", "{}"))
            if closed(node.left):
                terms.append(ast.unparse(ast.BinOp(node.left, node.op, here)).replace("HERE", "{}"))
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Attribute | ast.Name) and closed(node):
            text = ast.unparse(node)
            if text not in modules and not (
                isinstance(node, ast.Attribute) and text.startswith(tuple(f"{m}." for m in modules))
            ):
                parts.append(text)
    wraps, terms, parts = (list(dict.fromkeys(x)) for x in (wraps, terms, parts))
    text = " ".join(map(ast.unparse, body))
    return Ingredients(names, tuple(wraps), tuple(terms), tuple(parts), masked="mask" in parameters or "1 - " in text)


def stages(mine: Own, steps: list[list[ast.stmt]], parameters: tuple[str, ...]) -> Iterator[Iterator[Edit]]:
    """Edits of the learner's lines: slips, what is missing around an expression, whole steps, other expressions."""
    what = ingredients([s for step in steps for s in step], parameters, mine.variables())
    yield edits(mine.body, what)
    yield edits(mine.body, what, add=True)
    yield inserted(mine.body, steps, mine.variables())
    yield replacements(mine.body, what)


# What an edit says of what was written; the earlier, the likelier, where several would do.
REASONS = {
    "results": "what is returned is in another order, or not all of it",
    "axis": "the axis is another one",
    "keepdims": "the number of axes that are left does not fit",
    "transpose": "an array lies the wrong way round",
    "axes swapped": "other axes have to change places",
    "inverted": "True and False are the wrong way round",
    "comparison": "the comparison is another one",
    "bound": "the slice has another end",
    "off by one": "a number is {size} by one",
    "size": "this is another size than the one that belongs here",
    "new axis": "the new axis is in another place",
    "sides": "the two sides have changed places",
    "brackets": "the brackets belong elsewhere",
    "sign": "the sign is turned around",
    "indented": "the line stands inside the block; it belongs below it, as far left as its first line",
    "assigned": "`=` puts a new value in the place of the old one, `+=` adds to it",
    "in place": "it writes into an array that is still needed, or that is the caller's; make a new one",
    "keyword": "an argument is too much",
    "unwrapped": "there is one call too many",
    "term": "a part of it does not belong here",
    "function": "this is another function than the one that belongs here",
    "operator": "the operation is another one",
    "order": "the arguments are in another order",
    "letters": "the letters of the result are others",
    "constant": "this is another number than the one that belongs here",
    "name": "this is another variable than the one that belongs here",
    "branches": "the branches have changed places, or there is one too many",
    "index": "the index does not belong here",
    "condition": "there is nothing to ask here",
    "statement": "this line does not belong here",
    "statements swapped": "the two lines are in the wrong order",
    "missing term": "a factor or a term is missing",
    "missing": "something is missing around it",
    "picked": "a part of it is asked for",
    "arithmetic": "something is missing around it",
    "inserted": "a step is missing",
    "part": "something else belongs here",
}


def _size(has: object, wants: object) -> str:
    """Too large or too small, of two expressions that are one apart."""
    if not (isinstance(has, ast.expr) and isinstance(wants, ast.expr)):
        return "off"
    try:
        return "too large" if ast.literal_eval(has) > ast.literal_eval(wants) else "too small"
    except (ValueError, TypeError):
        a, b = ast.unparse(has), ast.unparse(wants)
        if a == f"{b} + 1" or b == f"{a} - 1":
            return "too large"
        return "too small" if b == f"{a} + 1" or a == f"{b} - 1" else "off"


def words(edit: Edit, first: int, reasons: bool = True) -> str:
    """What a learner reads of the edit that mends a line.

    Args:
        first: the number of the first line.
        reasons: say what was wrong with the line; else only what would be right, which is all that was measured.
    """
    line, reason = first + edit.line - 1, REASONS[edit.kind].format(size=_size(edit.old, edit.new))
    before, after = edit.texts()
    if edit.kind == "inserted":
        return f"A step is missing above line {line}, such as `{after}`.".replace("\n", "`, `")
    if not after:
        why = f"{reason}. Leave it out" if edit.kind == "statement" else reason
        return f"Line {line}, `{before}`: {why}."
    if edit.kind == "statements swapped":
        return f"Line {line}, `{before}`, and the one below it are in the wrong order."
    if not reasons:
        return f"Line {line}: where `{before}` stands, `{after}` would be right."
    return f"Line {line}, `{before}`: {reason}. It should do what `{after}` does."


# Of an edit of the solution, the learner has what comes after it: what was left out is missing there.
REVERSED = REASONS | {
    "unwrapped": "a step is missing",
    "term": "a part of it is missing",
    "index": "an index is missing",
    "keyword": "an argument is missing",
    "missing": "there is a step too many",
    "missing term": "there is a factor or a term too many",
    "picked": "only a part of it is left",
    "condition": "a question is missing",
    "branches": "a branch is missing",
    "indented": "a line stands below the block; it belongs inside",
}


def mutant_words(edit: Edit) -> str:
    """What a learner reads of an edit of the solution that does the same as their answer."""
    before, after = edit.texts()
    if not after:
        return f"Your results are those without `{before}`: this step is missing, or comes to nothing."
    reason = REVERSED[edit.kind].format(size=_size(edit.new, edit.old))
    return f"Your results are those of `{after}` where `{before}` belongs: {reason}."


def same_as(edit: Edit) -> str:
    """The same, where the learner's lines are others: what comes out alike need not have gone wrong alike."""
    before, after = edit.texts()
    changed = f"with `{after}` in the place of `{before}`" if after else f"without `{before}`"
    return f"Our solution gives the same numbers {changed}; the mistake need not be the same."
