"""Bodies of functions as a row of compiled parts, each of which can be exchanged."""

import ast
import copy
import linecache
from collections.abc import Mapping, Sequence
from functools import cache
from types import CodeType
from typing import Any


class Answer(BaseException):
    """The value behind `return`; not an Exception, so that no `except Exception` catches it."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class _Returns(ast.NodeTransformer):
    """`return x` as `raise Answer(x)`, so that a part of a body can be compiled and run by itself."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        call = ast.Call(ast.Name("__answer__", ast.Load()), [node.value] if node.value else [], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Raise(call, None), node))

    def _stay(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _stay


def code_of(statements: Sequence[ast.stmt], file: str = "<answer>") -> CodeType:
    """Return statements of a body as code."""
    tree = ast.Module([_Returns().visit(copy.deepcopy(statement)) for statement in statements], [])
    return compile(ast.fix_missing_locations(tree), file, "exec")


@cache
def compiled(source: str) -> CodeType:
    """Return a part of a body as code; its lines can be looked up, as those of a cell."""
    file = f"<part {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return code_of(ast.parse(source).body, file)


class Program:
    """A function made of parts of a body, which run one after another with the arguments as variables."""

    def __init__(self, codes: Sequence[CodeType], names: Mapping[str, Any], parameters: Sequence[str]) -> None:
        self.codes, self.parameters = codes, parameters
        self.names = {"__name__": "answer", **names, "__answer__": Answer}

    def __call__(self, *arguments: Any) -> Any:
        variables = {**self.names, **dict(zip(self.parameters, arguments, strict=False))}
        try:
            for code in self.codes:
                exec(code, variables)
        except Answer as answer:
            return answer.value
        return None


def expressions(body: Sequence[ast.stmt]) -> list[ast.expr]:
    """Return all expressions in a body, the outer ones before those inside them."""
    return [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.expr)]
