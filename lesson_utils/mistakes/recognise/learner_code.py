"""A learner's own function as a syntax tree that can be edited and run again."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lesson_utils.mistakes.program import expressions
from lesson_utils.mistakes.recognise.tree_edits import Edit

IN_PLACE = ("sort", "fill", "put", "resize", "partition", "itemset")  # methods of an array that change it


@dataclass(frozen=True)
class LearnerCode:
    """A function as a tree, the names that it can see, and the number of its first line."""

    tree: ast.FunctionDef
    names: Mapping[str, Any]
    first_line: int

    @property
    def body(self) -> list[ast.stmt]:
        return self.tree.body

    def function(self, edit: Edit | None = None) -> Callable[..., Any] | None:
        """Return the function as it was written, or with one edit; None if that is no Python."""
        if edit and isinstance(edit.parent, ast.Module):  # an edit of the body itself
            edit = Edit("", self.tree, "body", None, self.tree.body, edit.new, 0)
        module, names = ast.Module([self.tree], []), dict(self.names)
        try:
            if edit is None:
                code = compile(module, "<answer>", "exec")
            else:
                with edit.applied():
                    code = compile(ast.fix_missing_locations(module), "<answer>", "exec")
            exec(code, names)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return None
        found: Callable[..., Any] = names[self.tree.name]
        return found

    def variables(self) -> tuple[str, ...]:
        """Return the parameters, and the names that the body stores."""
        stored = [n.id for n in expressions(self.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return tuple(dict.fromkeys((*(a.arg for a in self.tree.args.args), *stored)))

    def text(self) -> str:
        return ast.unparse(self.tree)


def learner_code(function: Any) -> LearnerCode | None:
    """Return the source of `function` as a tree; None for what is no plain function with a source."""
    code = getattr(function, "__code__", None)
    bad = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & bad:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)).strip())
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = _definition(tree, function.__name__)
    if found is None or any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(found)):
        return None
    first = found.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(found.body) > 1:
        found.body = found.body[1:]  # the docstring
    try:
        closure = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        closure = {}
    return LearnerCode(found, {**function.__globals__, **closure}, code.co_firstlineno)


def _definition(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """Return the only definition of a function in a tree; a lambda as the function that it stands for."""
    lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
    if name == "<lambda>" and len(lambdas) == 1:
        answer = ast.copy_location(ast.Return(lambdas[0].body), lambdas[0].body)
        made = ast.parse("def answer(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.args, made.body = lambdas[0].args, [answer]
        return made
    defined = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    return defined[0] if len(defined) == 1 and not defined[0].decorator_list else None


def writes_into(learner: LearnerCode, name: str) -> tuple[int, str] | None:
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
