"""Parts of a solution that can be put into another body: names, functions, terms."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from lesson_utils.mistakes.exercise import expressions


@dataclass(frozen=True)
class Ingredients:
    """Names, functions and terms that a body can borrow from a solution."""

    names: tuple[str, ...] = ()  # of variables
    wraps: tuple[str, ...] = ()  # functions of one array: "np.exp({})"
    terms: tuple[str, ...] = ()  # "{} / math.sqrt(K.shape[-1])"
    modules: frozenset[str] = frozenset()  # names that stand for modules, and for no array
    numbers: tuple[float, ...] = ()  # that are no small counts
    masked: bool = True  # is there anything to be inverted?


def modules_in(names: Mapping[str, Any]) -> frozenset[str]:
    """Return the names that are bound to modules."""
    return frozenset(name for name, value in names.items() if isinstance(value, ModuleType))


def ingredients(
    solution: list[ast.stmt], parameters: tuple[str, ...], names: tuple[str, ...], modules: frozenset[str]
) -> Ingredients:
    """Return what can be borrowed from a solution: its functions of one array, and terms of the parameters alone."""
    wraps, terms, numbers = dict[str, None](), dict[str, None](), dict[float, None]()

    def closed(node: ast.AST) -> bool:
        return all(n.id in parameters or n.id in modules for n in ast.walk(node) if isinstance(n, ast.Name))

    for node in expressions(solution):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module)), args=[_], keywords=[]) if module in modules:
                wraps[f"{ast.unparse(node.func)}({{}})"] = None
            case ast.Constant(value=int() | float() as value) if value not in range(4):
                numbers[value] = None
            case ast.BinOp(left=left, op=op, right=right):
                here = ast.Name("HERE", ast.Load())
                for side, term in ((right, ast.BinOp(here, op, right)), (left, ast.BinOp(left, op, here))):
                    if closed(side):
                        terms[ast.unparse(term).replace("HERE", "{}")] = None
    masked = "mask" in parameters or "1 - " in " ".join(map(ast.unparse, solution))
    return Ingredients(names, tuple(wraps), tuple(terms), modules, tuple(numbers), masked)
