"""Mutation operators for NumPy: the slips that any line can have, such as axes, transposes, brackets, signs, off by one.

For one expression, `alternatives` yields what a learner might have written, or should have, and `additions` what may be
missing around it. `tree_edits.edits` applies them to each place of a body.
"""

import ast
import copy
import itertools
import re
from collections.abc import Iterator
from typing import Any

from lesson_utils.mistakes.recognise.ingredients import Ingredients

CONFUSED = [  # functions that are taken for each other
    ("sum", "mean", "prod", "max", "cumsum"), ("max", "min", "mean", "median"), ("maximum", "minimum"), ("round", "floor", "ceil", "trunc", "rint"), ("var", "std"),
    ("sin", "cos"), ("tanh", "sigmoid", "relu", "exp", "tan", "arctan", "sinh"), ("exp", "exp2", "expm1"), ("log", "log2", "log10", "log1p"),
    ("sqrt", "square", "cbrt"), ("zeros", "ones", "eye", "empty"), ("zeros_like", "ones_like"), ("argmax", "argmin"),
    ("sort", "argsort"), ("tril", "triu"), ("hstack", "vstack", "concatenate", "stack", "append"), ("repeat", "tile"),
    ("matmul", "multiply", "dot"), ("add", "subtract", "multiply", "divide"), ("nanmax", "max"), ("softmax", "log_softmax", "sigmoid"),
    ("swapaxes", "reshape"),
]  # fmt: skip
KEEPS = {"sum", "mean", "max", "min", "prod", "std", "var", "amax", "amin", "median", "average", "any", "all", "norm"}
TAKES_AXIS = KEEPS | {
    "softmax", "log_softmax", "cumsum", "sort", "argsort", "argmax", "argmin", "concatenate", "stack",
    "split", "array_split", "repeat", "expand_dims", "squeeze", "take", "flip", "roll",
}  # fmt: skip
METHODS = KEEPS | {"argmax", "argmin", "sort", "argsort", "dot", "repeat", "swapaxes", "reshape"}
ARRAYS = (ast.BinOp, ast.Call, ast.Subscript, ast.Name, ast.Attribute, ast.UnaryOp, ast.Compare)
OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div), ast.Mult: (ast.Div, ast.MatMult, ast.Add, ast.Pow), ast.Div: (ast.Mult, ast.FloorDiv, ast.Sub),
    ast.MatMult: (ast.Mult,), ast.Pow: (ast.Mult, ast.BitXor), ast.FloorDiv: (ast.Div, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.BitXor: (ast.Pow,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE), ast.LtE: (ast.Lt, ast.GtE, ast.Gt), ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq, ast.IsNot), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip

WRAPS = {  # what may be missing around an expression, whatever the solution has
    "missing": ("{}.T", "{}.swapaxes(-1, -2)", "{}.swapaxes(-2, -3)", "{}[:, None]", "{}[..., None]", "{}[None]"),
    "inverted": ("~{}",),
    "complement": ("1 - {}",),
    "in place": ("{}.copy()",),
    "picked": ("{}[:, 0]", "{}[0]", "{}[-1]"),
    "sign": ("-{}",),
    "arithmetic": ("{} ** 2", "1 / {}", "{} * 2", "{} / 2", "{} + 1", "{} - 1"),
}


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def number(node: ast.AST | None) -> int | float | None:
    try:
        value = ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def name_called(node: object) -> str:
    """Return the name of the function that a node calls, without its module; "" for what is no call."""
    func = getattr(node, "func", None)
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def with_fields(node: ast.AST, **fields: object) -> ast.expr:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new  # type: ignore[return-value]


def confused_with(name: str) -> list[str]:
    """Return the functions that are taken for one of this name."""
    return [other for group in CONFUSED if name in group for other in group if other != name]


def _swapped(items: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """Yield the items with each two of them exchanged."""
    for i, j in itertools.combinations(range(len(items)), 2):
        new = list(items)
        new[i], new[j] = new[j], new[i]
        yield new


def _axes_swapped(array: ast.expr, a: int, b: int) -> ast.expr:
    return ast.Call(ast.Attribute(array, "swapaxes", ast.Load()), [parsed(str(a)), parsed(str(b))], [])


def _calls(node: ast.Call, modules: frozenset[str]) -> Iterator[tuple[str, ast.expr]]:
    name, func = name_called(node), node.func
    is_method = isinstance(func, ast.Attribute) and not (isinstance(func.value, ast.Name) and func.value.id in modules)
    if name in TAKES_AXIS:
        yield from _other_axes(node, name, is_method)
    for other in confused_with(name) if isinstance(func, ast.Attribute) else ():
        if not is_method or other in METHODS:
            yield "function", with_fields(node, func=with_fields(func, attr=other))
    if len(node.args) == 1 and isinstance(inner := node.args[0], ast.BinOp):  # f(a ∘ b) → f(a) ∘ b, a ∘ f(b)
        yield "brackets", with_fields(inner, left=with_fields(node, args=[inner.left]))
        yield "brackets", with_fields(inner, right=with_fields(node, args=[inner.right]))
    if name == "range" and [*map(number, node.args[1:])] == [-1, -1]:
        yield "backwards", with_fields(node, args=[_plus(node.args[0], 1)])
    if name == "len" and len(node.args) == 1:
        yield from (("size", parsed(f"({ast.unparse(node.args[0])}).shape[{axis}]")) for axis in (-1, -2))
    yield from _other_arguments(node, name, is_method)
    if name == "tile" and len(node.args) == 2:  # a b a b for a a b b
        array, times = node.args
        first = isinstance(times, ast.Tuple) and times.elts[0]  # of (n, 1, 1)
        repeated = parsed(f"np.repeat(_, _, axis={0 if first else -1})")
        yield "function", with_fields(repeated, args=[array, first or times])
    for keyword in node.keywords:
        if keyword.arg not in ("axis", "keepdims"):
            yield "keyword", with_fields(node, keywords=[k for k in node.keywords if k is not keyword])
    yield from _other_layouts(node, name, is_method)


def _other_axes(node: ast.Call, name: str, is_method: bool) -> Iterator[tuple[str, ast.expr]]:
    """Yield a call over each other axis, with and without `keepdims`."""
    keywords = {k.arg: k.value for k in node.keywords}
    rest = [k for k in node.keywords if k.arg not in ("axis", "keepdims")]
    first = 0 if is_method else 2 if name in ("split", "array_split", "repeat", "roll", "take") else 1
    axis = keywords.get("axis") or (node.args[first] if len(node.args) > first else None)
    arguments = node.args[:first] if "axis" not in keywords else node.args
    keeps = "keepdims" in keywords
    axes = (-1, 0, 1, -2, -3, None) if name in ("stack", "concatenate", "squeeze") else (-1, 0, 1, -2, None)
    others = [None if n is None else parsed(str(n)) for n in axes if n != number(axis) or (n is None) != (axis is None)]
    for new, keep in itertools.product([axis, *others], (keeps, not keeps) if name in KEEPS else (keeps,)):
        is_same_axis = new is axis
        if not is_same_axis or keep != keeps:
            more = [] if new is None else [ast.keyword("axis", new)]
            more += [ast.keyword("keepdims", ast.Constant(True))] if keep else []
            yield "keepdims" if is_same_axis else "axis", with_fields(node, args=arguments, keywords=[*more, *rest])


def _other_arguments(node: ast.Call, name: str, is_method: bool) -> Iterator[tuple[str, ast.expr]]:
    """Yield what is called instead of the call, and the call with its arguments in another order, or one fewer."""
    if name not in ("range", "len", "zip", "enumerate", "arange", "format", "append"):
        both = name in ("max", "min", "maximum", "minimum", "fmax", "fmin")
        inner = [node.func.value] if is_method else node.args if both else node.args[:1]  # type: ignore[attr-defined]
        yield from (("unwrapped", part) for part in inner if not isinstance(part, ast.Starred))
    for swapped in _swapped(node.args):
        yield "order", with_fields(node, args=swapped)
    if len(node.args) > 1 and name in ("zeros", "ones", "empty", "full", "array", "eye"):
        yield "keyword", with_fields(node, args=node.args[:-1])


def _other_layouts(node: ast.Call, name: str, is_method: bool) -> Iterator[tuple[str, ast.expr]]:
    """Yield calls that swap other axes of an array."""
    array: Any = node.func.value if is_method else node.args[0] if node.args else None  # type: ignore[attr-defined]
    if name in ("swapaxes", "transpose", "moveaxis") and array is not None:
        for a, b in ((-1, -2), (-2, -3), (0, 1), (1, 2), (-1, -3)):
            yield "axes swapped", _axes_swapped(array, a, b)
        yield "axes swapped", ast.Attribute(array, "T", ast.Load())


def _operations(node: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    for new in OPERATORS.get(type(node.op), ()):
        yield "operator", with_fields(node, op=new())
    if not isinstance(node.op, ast.Add | ast.Mult):
        yield "sides", with_fields(node, left=node.right, right=node.left)
    yield from (("term", side) for side in (node.left, node.right))
    if isinstance(node.op, ast.Pow) and number(node.right) == 2:  # the other way to lose a sign
        yield "function", ast.Call(parsed("np.abs"), [node.left], [])
    if number(node.left) == 1 and isinstance(node.right, ast.Call) and name_called(node.right) == "exp":
        negated = [ast.UnaryOp(ast.USub(), argument) for argument in node.right.args]  # in the logistic function
        yield "sign", with_fields(node, right=with_fields(node.right, args=negated))
    if isinstance(node.op, ast.MatMult):
        for side in ("left", "right"):
            yield "transpose", with_fields(node, **{side: _axes_swapped(getattr(node, side), -1, -2)})
    yield from _brackets(node)


def _brackets(node: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    """Yield (a + b) / c for a + b / c, and the other ways to move a bracket."""
    left, right = node.left, node.right
    if isinstance(node.op, ast.Add | ast.Sub) and isinstance(left, ast.BinOp) and isinstance(right, ast.BinOp):
        middle = with_fields(node, left=left.right, right=right.left)  # g * a - b / c → g * (a - b) / c
        yield "brackets", with_fields(right, left=with_fields(left, right=middle))
    if isinstance(left, ast.BinOp):  # (a · b) ∘ c → a · (b ∘ c)
        yield "brackets", with_fields(left, right=with_fields(node, left=left.right))
    if isinstance(right, ast.BinOp):  # a ∘ (b · c) → (a ∘ b) · c
        yield "brackets", with_fields(right, left=with_fields(node, right=right.left))
        if isinstance(node.op, ast.Add | ast.Sub) and isinstance(right.op, ast.Mult):  # a - b * c → b * (a - c)
            yield "brackets", with_fields(right, right=with_fields(node, right=right.right))
    for side, call in (("left", left), ("right", right)):  # f(a) ∘ b → f(a ∘ b)
        if isinstance(call, ast.Call) and call.args and not isinstance(call.args[0], ast.Starred):
            yield "brackets", with_fields(call, args=[with_fields(node, **{side: call.args[0]}), *call.args[1:]])


def _subscripts(node: ast.Subscript) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        for index in (-1, -2, -3, 0, 1):
            if index != number(node.slice):
                yield "size", with_fields(node, slice=parsed(str(index)))
        return
    yield "index", node.value
    text = ast.unparse(node.slice)
    if "None" in text or "newaxis" in text:
        news = {":, None", "None", "..., None", ":, None, :", "::-1"} - {text}
        yield from (("new axis", with_fields(node, slice=parsed(f"_[{new}]").slice)) for new in sorted(news))  # type: ignore[attr-defined]
    if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        yield "sides", with_fields(node, slice=with_fields(node.slice, elts=node.slice.elts[::-1]))
    if number(node.slice) is None and not isinstance(node.slice, ast.Slice | ast.Tuple):  # x[-k] for x[-k:]
        yield "bound", with_fields(node, slice=ast.Slice(node.slice, None))
        yield "bound", with_fields(node, slice=ast.Slice(None, node.slice))


def _axes_in_front(node: ast.Subscript) -> Iterator[tuple[str, ast.expr]]:
    """Yield x[..., a] for x[:, a] and x[:, :, a]."""
    elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    rest = [*itertools.dropwhile(lambda x: ast.unparse(x) == ":", elements)]
    if rest and len(rest) < len(elements) and all(getattr(x, "value", 0) not in (None, ...) for x in rest):
        yield "axes in front", with_fields(node, slice=with_fields(node.slice, elts=[ast.Constant(...), *rest]))


def _slices(node: ast.Slice) -> Iterator[tuple[str, ast.expr]]:
    for name in ("lower", "upper"):
        bound = getattr(node, name)
        if bound is not None:
            news = (None, _plus(bound, 1), _plus(bound, -1), ast.UnaryOp(ast.USub(), bound))
            yield from (("bound", with_fields(node, **{name: new})) for new in news)
    if node.lower is not None and node.upper is not None:  # the whole window, one place on or back
        yield from (
            ("bound", with_fields(node, lower=_plus(node.lower, n), upper=_plus(node.upper, n))) for n in (1, -1)
        )
    if node.lower is None and node.step is not None:  # x[::2] for x[1::2]
        yield "bound", with_fields(node, lower=parsed("1"))
    if (node.lower is None) != (node.upper is None):
        yield "bound", with_fields(node, lower=node.upper, upper=node.lower)


def _plus(node: ast.expr, n: int) -> ast.expr:
    value = number(node)
    if isinstance(value, int):
        return parsed(str(value + n))
    if isinstance(node, ast.BinOp) and number(node.right) == 1 and isinstance(node.op, ast.Sub if n > 0 else ast.Add):
        return node.left
    return ast.BinOp(node, ast.Add() if n > 0 else ast.Sub(), ast.Constant(abs(n)))


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    value = node.value
    if isinstance(value, str) and "->" in value:  # the letters of an einsum
        given, made = value.split("->")
        letters = dict.fromkeys(c for c in given if c.isalpha())
        if "." not in value:  # leading axes
            yield "letters", ast.Constant(f"...{given.replace(',', ',...')}->...{made}")
        for i, old in enumerate(value):
            others = [c for c in letters if old.isalpha() and c != old]
            yield from (("letters", ast.Constant(f"{value[:i]}{c}{value[i + 1 :]}")) for c in others)
        for part in reversed([*re.finditer(r"[a-zA-Z]{2,}", value)]):  # of one array, the result before the others
            for a, b in itertools.combinations(dict.fromkeys(part[0]), 2):
                swapped = part[0].translate(str.maketrans(a + b, b + a))
                text = f"{value[: part.start()]}{swapped}{value[part.end() :]}"
                yield "letters in order" if _keeps_order(text) else "letters swapped", ast.Constant(text)
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield from (("off by one", parsed(str(value + n))) for n in (1, -1))
        yield from (("constant", parsed(str(n))) for n in (0, 1, 2, 3) if abs(n - value) > 1)
    elif isinstance(value, float):
        yield from (("constant", ast.Constant(x)) for x in (value * 2, value / 2, 1.0, 0.0, 0.5) if x != value)


def _keeps_order(text: str) -> bool:
    """Tell whether the result's letters stand in the order that they have in the first array."""
    given, made = re.sub(r"[ .]", "", text).split("->")
    places = [given.partition(",")[0].find(letter) for letter in made]
    return (known := [n for n in places if n >= 0]) == sorted(known)


def alternatives(node: ast.AST, what: Ingredients) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a learner might have written for one expression, or should have."""
    names = what.names
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        for wrap in what.wraps:
            if wrap.removesuffix("({})").rpartition(".")[2] in confused_with(name_called(node)):
                yield "function", parsed(wrap.replace("{}", ast.unparse(node.args[0])))
    if isinstance(node, ast.Subscript):
        yield from _axes_in_front(node)
    match node:
        case ast.Call():
            yield from _calls(node, what.modules)
        case ast.BinOp():
            yield from _operations(node)
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not()):
            yield "sign", node.operand
            if isinstance(value := number(node), int):
                yield from (("off by one", parsed(str(value + n))) for n in (1, -1))
            if value is not None and value < -1:  # a number that was to hide scores
                yield "constant", parsed("-np.inf")
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield from (("comparison", with_fields(node, ops=[new()])) for new in COMPARED.get(type(operator), ()))
            if getattr(right, "value", None) in (True, False) and isinstance(operator, ast.Eq | ast.NotEq | ast.Is):
                yield "comparison", left
            if not isinstance(right, ast.Constant) or number(right) is not None:
                yield from (("off by one", with_fields(node, comparators=[_plus(right, n)])) for n in (1, -1))
        case ast.BoolOp(values=[_, _] as values):
            yield from (("term", value) for value in values)
        case ast.Subscript(ctx=ast.Load()):
            yield from _subscripts(node)
        case ast.Subscript(ctx=ast.Store(), slice=ast.Tuple(elts=[row, column])):
            yield "sides", with_fields(node, slice=with_fields(node.slice, elts=[column, row]))
        case ast.Slice():
            yield from _slices(node)
        case ast.List(elts=[first, second]):
            yield "sides", with_fields(node, elts=[second, first])
        case ast.ListComp(generators=[outer, inner]):
            yield "sides", with_fields(node, generators=[inner, outer])
        case ast.Constant():
            yield from _constants(node)
            if number(node) is not None:
                yield from (("constant", ast.Constant(n)) for n in what.numbers if n != node.value)
        case ast.Attribute(attr="T"):
            yield from (("transpose", new) for new in (node.value, _axes_swapped(node.value, -1, -2)))
        case ast.IfExp(body=a, orelse=b):
            yield from (("branches", new) for new in (with_fields(node, body=b, orelse=a), a, b))
        case ast.Name(ctx=ast.Load()):
            yield from (("name", ast.Name(name, ast.Load())) for name in names if name not in (node.id, "_"))


def additions(node: ast.expr, what: Ingredients) -> Iterator[tuple[str, ast.expr]]:
    """Yield an expression with what may be missing around it, if it may be an array or a number."""
    if not isinstance(node, ARRAYS) or isinstance(getattr(node, "ctx", None), ast.Store):
        return
    if isinstance(node, ast.Name) and node.id in what.modules:
        return
    text = f"({ast.unparse(node)})"
    for kind, wraps in (("missing", what.wraps), *WRAPS.items(), ("missing term", what.terms)):
        is_twice = kind == "sign" and isinstance(node, ast.UnaryOp)
        if not is_twice and (what.masked or kind not in ("inverted", "complement")):
            yield from ((kind, parsed(wrap.replace("{}", text))) for wrap in wraps)
