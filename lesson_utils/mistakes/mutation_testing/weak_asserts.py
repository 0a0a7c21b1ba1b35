"""Ways to write a test that notices less than it seems to, each with what belongs there: as edits of the test's tree.

None of them is a mistake by itself: `exercises/hunt.py` runs the edited test, and speaks of an edit only if the right function
still passes and bugs are found that were not.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lesson_utils.mistakes.recognise.learner_code import LearnerCode as Own

ALL_OF = {"all", "any"}
COMPARES = {"allclose", "isclose", "array_equal", "array_equiv"}
SUMMED = {"sum", "mean", "max", "min", "std", "var", "prod", "norm", "trace", "ptp", "average", "median"}
TOLERANCES = {"atol", "rtol", "abs", "rel", "abs_tol", "rel_tol", "delta"}
TIGHT, TIGHT_DIGITS = 1e-6, 6


@dataclass
class Rewrite(ast.NodeTransformer):
    """One kind of edit, everywhere in a test."""

    name: str
    words: str  # behind "Line 5, `…`: ", what is wrong, and what belongs there; {after} is the new text
    edit: Callable[[ast.AST], Any]
    lines: list[tuple[int, str, str]] = field(default_factory=list)

    def visit(self, node: ast.AST) -> Any:
        before = _text(node)
        changed = self.edit(copy.deepcopy(node))
        if changed is None:
            return self.generic_visit(node)
        new = changed if isinstance(changed, list) else [changed]
        for n in new:
            ast.copy_location(n, node)
        self.lines.append((node.lineno, before, _text(new[0]) if new else ""))  # type: ignore[attr-defined]
        return changed


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= 90 else first[:87] + "…"


def _name(call: ast.AST) -> str:
    """The last part of the name of what is called."""
    f = call.func if isinstance(call, ast.Call) else call
    return f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _compares(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp | ast.BoolOp):
        return any(_compares(n) for n in ast.iter_child_nodes(node))
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and _name(node) in COMPARES | ALL_OF)


def _assert(test: ast.expr) -> ast.Assert:
    return ast.Assert(test, None)


# --- The edits: a new node, or None to leave it as it is --------------------------------------------------------------


def _tuple(node: ast.AST) -> Any:
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
        return _assert(node.test.elts[0])
    return None


def _not_called(node: ast.AST) -> Any:
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Attribute) and node.test.attr in ALL_OF:
        return _assert(ast.Call(node.test, [], []))
    return None


def _forgotten(node: ast.AST) -> Any:
    if isinstance(node, ast.Expr):
        value = node.value
        if _compares(value):
            return _assert(value)
        if isinstance(value, ast.Call) and _name(value) == "print":
            told = [a for a in value.args if _compares(a)]
            return [_assert(a) for a in told] or None
    if isinstance(node, ast.Assign) and _compares(node.value) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        return [node, _assert(_parse(f"__import__('numpy').all({name})"))]
    return None


def _only_printed(node: ast.AST) -> Any:
    if not isinstance(node, ast.If):
        return None
    harmless = (ast.Pass, ast.Expr)
    if not all(isinstance(s, harmless) for s in (*node.body, *node.orelse)):
        return None
    if not any(isinstance(n, ast.Call) and _name(n) == "print" for n in ast.walk(node)):
        return None
    if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
        return _assert(node.test.operand)
    return _assert(node.test)


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    wide = {"", "Exception", "BaseException", "AssertionError"}
    goes_on = not any(isinstance(n, ast.Raise | ast.Assert) for s in handler.body for n in ast.walk(s))
    return goes_on and any(k is None or _name(k) in wide for k in kinds)


def _caught(node: ast.AST) -> Any:
    if isinstance(node, ast.Try) and any(map(_catches, node.handlers)):
        return [*node.body, *node.orelse, *node.finalbody]
    if isinstance(node, ast.With) and any(_name(item.context_expr) == "suppress" for item in node.items):
        return node.body
    return None


def _any_for_all(node: ast.AST) -> Any:
    if isinstance(node, ast.Call) and _name(node) == "any":
        text = ast.unparse(node.func)
        return ast.Call(_parse(text[: -len("any")] + "all"), node.args, node.keywords)
    return None


def _inside(node: ast.AST, names: set[str]) -> ast.expr | None:
    """What stands inside `x.sum()` or `np.sum(x)`, without an axis."""
    if not (isinstance(node, ast.Call) and _name(node) in names) or any(k.arg == "axis" for k in node.keywords):
        return None
    module = isinstance(node.func, ast.Name) or ast.unparse(node.func).startswith(("np.", "numpy."))
    if module:
        return node.args[0] if len(node.args) == 1 else None
    return node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None


def _both(names: set[str]) -> Callable[[ast.AST], Any]:
    """`a.sum() == b.sum()` and `np.isclose(a.sum(), b.sum())` as `np.allclose(a, b)`."""

    def edit(node: ast.AST) -> Any:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            sides: list[ast.AST] = [node.left, node.comparators[0]]
        elif (
            isinstance(node, ast.Call) and len(node.args) >= 2 and (_name(node) in COMPARES or "assert_" in _name(node))
        ):
            sides = list(node.args[:2])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = [node.left, node.right]
        else:
            return None
        insides = [_inside(side, names) for side in sides]
        if None in insides:
            return None
        a, b = (ast.unparse(x) for x in insides if x is not None)
        if isinstance(node, ast.BinOp):
            return _parse(f"__import__('numpy').abs(({a}) - ({b})).max()")
        if isinstance(node, ast.Call) and "assert_" in _name(node):
            return ast.Call(node.func, [_parse(a), _parse(b), *node.args[2:]], node.keywords)
        return _parse(f"__import__('numpy').allclose({a}, {b})")

    return edit


def _one_entry(node: ast.AST) -> Any:
    """`np.allclose(a[0], b[0])` as `np.allclose(a, b)`."""
    if isinstance(node, ast.Call) and len(node.args) >= 2 and (_name(node) in COMPARES or "assert_" in _name(node)):
        a, b = node.args[:2]
        if isinstance(a, ast.Subscript) and isinstance(b, ast.Subscript) and _text(a.slice) == _text(b.slice):
            return ast.Call(node.func, [a.value, b.value, *node.args[2:]], node.keywords)
    return None


def _signed(node: ast.AST) -> Any:
    """`(a - b).sum() < 1e-6` as `np.abs(a - b).max() < 1e-6`."""
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE)):
        return None
    inner = node.left
    while True:
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            break
        if isinstance(inner, ast.Call) and _name(inner) in ("abs", "fabs", "absolute") and inner.args:
            inner = inner.args[0]
            if isinstance(inner, ast.BinOp):
                return None
            continue
        found = _inside(inner, SUMMED - {"norm", "std", "var", "ptp"})
        if found is None:
            return None
        inner = found
    return ast.Compare(_parse(f"__import__('numpy').abs({ast.unparse(inner)}).max()"), node.ops, node.comparators)


def _loose(node: ast.AST) -> Any:
    """A large tolerance as a small one."""
    if isinstance(node, ast.keyword):
        return None
    if isinstance(node, ast.Call):
        wide = [k for k in node.keywords if k.arg in TOLERANCES and _is_large(k.value)]
        rough = [
            k
            for k in node.keywords
            if k.arg in ("decimal", "places", "decimals", "ndigits", "significant") and _few(k.value)
        ]
        places = _name(node) in COMPARES | {"assert_allclose"} and [a for a in node.args[2:] if _is_large(a)]
        digits = _name(node) in ("round", "around", "assert_almost_equal", "assert_array_almost_equal") and [
            a for a in node.args[1:] if _few(a)
        ]
        if not (wide or rough or places or digits):
            return None
        for k in wide:
            k.value = ast.Constant(TIGHT)
        for k in rough:
            k.value = ast.Constant(TIGHT_DIGITS)
        node.args = [
            ast.Constant(TIGHT)
            if places and a in places
            else ast.Constant(TIGHT_DIGITS)
            if digits and a in digits
            else a
            for a in node.args
        ]
        return node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE):
        size = any(_name(n) in ("abs", "norm", "max", "fabs") for n in ast.walk(node.left))
        return (
            ast.Compare(node.left, node.ops, [ast.Constant(TIGHT)]) if size and _is_large(node.comparators[0]) else None
        )
    return None


def _wider(node: ast.AST) -> Any:
    """A tolerance below rounding as 1e-9."""

    def tiny(x: ast.AST) -> bool:
        value = _number(x)
        return value is not None and 0 <= value < 1e-9

    if isinstance(node, ast.Call) and any(k.arg in TOLERANCES and tiny(k.value) for k in node.keywords):
        for k in node.keywords:
            if k.arg in TOLERANCES and tiny(k.value):
                k.value = ast.Constant(1e-9)
        return node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE):
        return ast.Compare(node.left, node.ops, [ast.Constant(1e-9)]) if tiny(node.comparators[0]) else None
    return None


def _nearly(node: ast.AST) -> Any:
    """`a == b` as `np.isclose(a, b)`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        a, b = ast.unparse(node.left), ast.unparse(node.comparators[0])
        return None if "shape" in a + b or "dtype" in a + b else _parse(f"__import__('numpy').isclose({a}, {b})")
    if isinstance(node, ast.Call) and _name(node) in ("array_equal", "assert_array_equal", "assert_equal"):
        a, b = (ast.unparse(x) for x in node.args[:2])
        same = _parse(f"__import__('numpy').allclose({a}, {b})")
        return (
            same
            if _name(node) == "array_equal"
            else _parse(f"__import__('numpy').testing.assert_allclose({a}, {b}, atol=1e-9)")
        )
    return None


def _number(node: ast.AST) -> float | None:
    try:
        value = ast.literal_eval(ast.unparse(node))
    except (ValueError, TypeError, SyntaxError):
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_large(node: ast.AST) -> bool:
    value = _number(node)
    return value is not None and 2e-6 < value <= 100


def _few(node: ast.AST) -> bool:
    value = _number(node)
    return value is not None and 0 <= value < 5


# name, words behind the line, edit
KINDS: Sequence[tuple[str, str, Callable[[ast.AST], Any]]] = (
    ("brackets around an assert", "a pair in brackets is always true, whatever stands in it. Leave the brackets out, `{after}`", _tuple),
    ("a function not called", "without `()` this is the function itself, which is always true. `{after}`", _not_called),
    ("compared, not asserted", "this is computed and then forgotten: nothing fails. Put `assert` in front", _forgotten),
    ("printed, not asserted", "`print` tells you, but the test passes all the same. Use `{after}`", _only_printed),
    ("catches its own assertion", "what fails in this block is caught, and the test goes on as if nothing were wrong. Leave `try` and `except` out", _caught),
    ("any in place of all", "`any` is content with a single entry. Ask `all`", _any_for_all),
    ("all() of each side", "each side is one True or False, and these are compared, not the numbers. Use `np.allclose(...)` on the arrays themselves", _both({"all", "any"})),
    ("differences cancel", "negative differences are below any limit, and in a sum they cancel. Use `np.abs(... ).max()` of the difference", _signed),
    ("a sum of it", "only one number made of many is compared; what moves inside does not show. Compare the arrays, entry by entry", _both(SUMMED)),
    ("one entry", "only this part is compared. Compare whole arrays", _one_entry),
    ("too loose", "this tolerance lets wrong numbers pass. With 1e-6 the right function passes, too", _loose),
)  # fmt: skip


# What a test asks too exactly.
LOOSENED: Sequence[tuple[str, str, Callable[[ast.AST], Any]]] = (
    ("too tight", "numbers that are computed differ in the last digits. With a tolerance of 1e-9 the right function passes", _wider),
    ("equal to the last digit", "numbers that are computed differ in the last digits. Compare with `np.allclose(a, b)`, and the right function passes", _nearly),
)  # fmt: skip


def rewrites(mine: Own, loosened: bool = False) -> Iterator[tuple[Rewrite, ast.FunctionDef]]:
    """Each kind of edit that changes something, and the test with it; `loosened`: so that it asks less, not more."""
    for name, words, edit in LOOSENED if loosened else KINDS:
        rewrite = Rewrite(name, words, edit)
        tree = copy.deepcopy(mine.tree)
        tree.body = [n for s in tree.body for n in _listed(rewrite.visit(s))]
        if rewrite.lines:
            yield rewrite, ast.fix_missing_locations(tree)


def _listed(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [node]


def function_of(mine: Own, tree: ast.FunctionDef) -> Callable[..., Any] | None:
    names = dict(mine.names)
    try:
        exec(compile(ast.Module([tree], []), "<test>", "exec"), names)
    except (SyntaxError, ValueError, TypeError, RecursionError):
        return None
    found: Callable[..., Any] = names[tree.name]
    return found


def asserts(mine: Own) -> list[tuple[int, str]]:
    """Line and text of everything that can make the test fail on purpose."""
    found = []
    for node in ast.walk(mine.tree):
        is_call = isinstance(node, ast.Call) and (_name(node).startswith("assert") or _name(node) in ("fail", "raises"))
        if isinstance(node, ast.Assert | ast.Raise) or is_call:
            found.append((mine.first_line + node.lineno - 1, _text(node)))  # type: ignore[attr-defined]
    return sorted(found)
