"""A learner's function as a tree that can be edited and run again."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lesson_utils.mistakes.exercise import expressions
from lesson_utils.mistakes.recognise.tree_edits import Edit, all_applied


@dataclass(frozen=True)
class LearnerCode:
    """A learner's function as a tree that can be edited and run again; the names that it sees, its first line's number, and its text."""

    tree: ast.FunctionDef
    names: Mapping[str, Any]
    first_line: int
    source: str

    @property
    def body(self) -> list[ast.stmt]:
        return self.tree.body

    def function(self, *edits: Edit) -> Callable[..., Any] | None:
        """Return the function as it was written, or with edits of it; None if that is no Python, or could end the kernel."""
        if edits and "as_strided" in self.source:  # with other strides, it reads memory that is not the array's
            return None
        module, names = ast.Module([self.tree], []), dict(self.names)
        try:
            with all_applied(edits):
                code = compile(module, "<answer>", "exec")
            exec(code, names)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return None
        found: Callable[..., Any] = names[self.tree.name]
        return found

    def text(self, node: ast.AST) -> str:
        """Return a part of the function as the learner wrote it, with their brackets and quotes; spaces as Python has them."""
        plain, own = ast.unparse(node), ast.get_source_segment(self.source, node) or ""
        try:
            is_its_own = ast.unparse(ast.parse(own)) == plain
        except SyntaxError:
            return plain
        return own if is_its_own and own.replace(" ", "") != plain.replace(" ", "") else plain

    def variables(self) -> tuple[str, ...]:
        """Return the parameters, and the names that the body stores."""
        stored = [n.id for n in expressions(self.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return tuple(dict.fromkeys((*(a.arg for a in self.tree.args.args), *stored)))


def learner_code(function: Any) -> LearnerCode | None:
    """Return the source of `function` as a tree; None for what is no plain function with a source."""
    code = getattr(function, "__code__", None)
    bad = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & bad:
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function)).strip()
        tree = ast.parse(source)
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
    return LearnerCode(found, {**function.__globals__, **closure}, code.co_firstlineno, source)


def exchanges(body: Sequence[ast.stmt], asked: Sequence[str]) -> bool:
    """Tell whether a body returns what is asked for under its own names, in another order."""
    match body:
        case [*_, ast.Return(value=ast.Tuple(elts=elements))]:
            given = [ast.unparse(element) for element in elements]
            return given != [*asked] and sorted(given) == sorted(asked)
    return False


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
