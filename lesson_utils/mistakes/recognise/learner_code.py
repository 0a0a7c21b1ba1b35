"""A learner's function as a tree that can be edited and run again."""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lesson_utils.mistakes.exercise import expressions
from lesson_utils.mistakes.recognise.mutation_operators import with_fields
from lesson_utils.mistakes.recognise.tree_edits import Edit, all_applied


@dataclass(frozen=True)
class LearnerCode:
    """A learner's function as a tree that can be edited and run again; the names that it sees, and the text of its cell."""

    tree: ast.FunctionDef  # its body begins with the helpers
    helpers: int  # how many these are
    names: Mapping[str, Any]
    source: str

    @property
    def body(self) -> list[ast.stmt]:
        return self.tree.body

    def function(self, *edits: Edit) -> Callable[..., Any] | None:
        """Return the function as it was written, or with edits of it; None if that is no Python, or could end the kernel."""
        if edits and "as_strided" in self.source:  # with other strides, it reads memory that is not the array's
            return None
        names = dict(self.names)
        try:
            with all_applied(edits):  # helpers do not see the variables of who calls them
                main: Any = with_fields(self.tree, body=self.body[self.helpers :])
                code = compile(ast.Module([*self.body[: self.helpers], main], []), "<answer>", "exec")
            exec(code, names)
        except Exception:  # no Python, or a line of `main` among the helpers
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
    """Return the source of `function` as a tree, its helpers in it; None for what is no plain function with a source."""
    code = getattr(function, "__code__", None)
    bad = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & bad:
        return None
    try:
        source = _source(code)
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = _definition(tree, function.__name__, code.co_firstlineno)
    if found is None or any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(found)):
        return None
    helpers = _helpers(tree, found, function)
    found.body = [*helpers, *_without_docstring(found.body)]
    try:
        closure = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        closure = {}
    return LearnerCode(found, len(helpers), {**function.__globals__, **closure}, source)


def _source(code: CodeType) -> str:
    """Return the whole cell; the function alone, in its place, where the rest is no Python."""
    with suppress(SyntaxError, ValueError):
        ast.parse(whole := "".join(linecache.getlines(code.co_filename)))
        if whole:
            return whole
    return "\n" * (code.co_firstlineno - 1) + textwrap.dedent(inspect.getsource(code)).strip()


def _helpers(tree: ast.Module, main: ast.FunctionDef, function: Any) -> list[ast.FunctionDef]:
    """Return the functions of the same cell that `main` calls, or they each other: a mistake may be made in one of them."""
    found: dict[str, ast.FunctionDef] = {}
    defined = {
        n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list and n is not main
    }
    waiting: list[ast.AST] = [main]
    while waiting:
        names = {n.id for n in ast.walk(waiting.pop()) if isinstance(n, ast.Name)} - {*found, main.name}
        for name in names & defined.keys():
            its = getattr(function.__globals__.get(name), "__code__", None)
            if its and (its.co_filename, its.co_firstlineno) == (function.__code__.co_filename, defined[name].lineno):
                found[name] = defined[name]
                found[name].body = _without_docstring(defined[name].body)
                waiting.append(found[name])
    return sorted(found.values(), key=lambda node: node.lineno)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_text and len(body) > 1 else body


def exchanges(body: Sequence[ast.stmt], asked: Sequence[str]) -> bool:
    """Tell whether a body returns what is asked for under its own names, in another order."""
    match body:
        case [*_, ast.Return(value=ast.Tuple(elts=elements))]:
            given = [ast.unparse(element) for element in elements]
            return given != [*asked] and sorted(given) == sorted(asked)
    return False


def _definition(tree: ast.Module, name: str, line: int) -> ast.FunctionDef | None:
    """Return the definition of a function that begins in a line; a lambda as the function that it stands for."""
    lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == line]
    if name == "<lambda>" and len(lambdas) == 1:
        answer = ast.copy_location(ast.Return(lambdas[0].body), lambdas[0].body)
        made = ast.parse("def answer(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.args, made.body = lambdas[0].args, [answer]
        return made
    defined = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and (n.name, n.lineno) == (name, line)]
    return defined[0] if len(defined) == 1 and not defined[0].decorator_list else None
