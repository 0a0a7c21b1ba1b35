"""A measure of whether an edit is what a learner may have meant: what nobody wrote before mends a line only by chance."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from lesson_utils.mistakes.recognise.edit_messages import REASONS, is_limit, own_reason
from lesson_utils.mistakes.recognise.fault_bank import tokens
from lesson_utils.mistakes.recognise.mutation_operators import name_called, number
from lesson_utils.mistakes.recognise.tree_edits import Edit, written

LIKELIHOOD = {kind: n for n, kind in enumerate(REASONS)}  # the kinds stand in the order of how often they are meant
REMOVING = {"term", "unwrapped", "index", "statement", "keyword", "condition", "branches"}
COUNTING = {"off by one", "bound"}
# The same words in another place.
MEANT = {"results", "axis", "keepdims", "size", "sides", "backwards", "brackets", "letters", "letters in order", "letters swapped", "axes in front"}  # fmt: skip
CALLED_TWICE = {"swapaxes", "transpose", "moveaxis", "reshape", "softmax", "exp", "sqrt", "tanh", "sort", "argsort"}
OPPOSITES = [{"tril", "triu"}, {"max", "min"}, {"argmax", "argmin"}, {"maximum", "minimum"}, {"sin", "cos"}]
SUMS = {ast.Add, ast.Sub}
COUNTS = {"index", "len", "argmax", "argmin", "argsort"}  # what is counted has no sign
TURNING = {"swapaxes", "transpose", "T"}
CANCELLING = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)  # of the same on both sides, 0 or 1 is left


@dataclass(frozen=True)
class Plausibility:
    """The words of the solution and of the learner's lines, the names that only the learner has, and what asks a question."""

    solution: Counter[str]
    learner: Counter[str]
    own_names: Set[str]
    tests: Set[int]  # the ids of the nodes in the conditions of the learner's lines
    kinds: Mapping[str, str]  # of the parameters: what they are, such as "i" for a whole number
    reads: Counter[str]  # how often each name is read in the learner's lines

    def _unknown(self, found: Counter[str], *known: Counter[str]) -> list[str]:
        """Return the words that are neither known nor contain one of the learner's own names."""
        return [word for word in set(found).difference(*known) if self.own_names.isdisjoint(word.split())]

    def rank(self, edit: Edit) -> tuple[bool, int, int, int]:
        """Rank an edit, the best lowest: a reason of its own; how foreign to the solution it leaves the lines; its kind; its length."""
        before, after = map(tokens, edit.texts())
        foreign = len(self._unknown(after - before, self.solution))
        foreign -= sum(" " not in word and word.isidentifier() for word in self._unknown(before - after, self.solution))
        if edit.kind not in REMOVING:  # taking out what the solution has, too, is not the way to it
            foreign += sum(n for word, n in (before - after).items() if " " in word and word in self.solution)
        return not has_own_reason(edit), foreign, LIKELIHOOD[edit.kind], len(edit.texts()[1])

    def accepts(self, edit: Edit) -> bool:
        """Tell whether a learner may have meant what the edit makes of a line; else nothing is told of it."""
        if has_own_reason(edit):
            return True
        if self._bends_a_condition(edit) or _is_trivial(edit):
            return False
        old = getattr(edit.old, "id", "")
        if edit.kind == "name" and old in self.own_names and self.reads[old] <= 1 + len(edit.also):
            return False  # what was computed under this name would be for nothing
        if edit.kind == "name" and getattr(edit.parent, "attr", "") in ("any", "all"):
            return self.kinds.get(getattr(edit.new, "id", ""), "b") == "b"  # nobody asks scores whether any is true
        kinds = {self.kinds[name] for name in (old, getattr(edit.new, "id", "")) if name in self.kinds}
        if edit.kind == "name" and len(kinds) > 1 and kinds != {"i", "f"}:
            return False  # nobody takes a mask for scores
        if edit.kind == "name" and old in self.kinds and "_" in old and len(kinds) == 1:
            stem, new = old.partition("_")[0], getattr(edit.new, "id", "")
            if new in self.kinds and new.startswith(f"{stem}_"):
                return True  # `beta_1` for `beta_2`
        before, after = map(tokens, edit.texts())
        if edit.kind == "exchanged":  # of a name that nobody reads, the other one stands in a wrong place
            return all(self.reads[name] for name in edit.texts())
        if edit.kind in MEANT:
            return True
        if edit.kind == "sign":  # a size has none, nor has an index that was computed
            negated = edit.new.operand if isinstance(edit.new, ast.UnaryOp) else None
            if negated and isinstance(getattr(edit.parent, "op", None), ast.Add | ast.Sub) and edit.field == "right":
                return False  # `a - -b`: the operation changes
            is_count = name_called(negated) in COUNTS or self.kinds.get(getattr(negated, "id", "")) == "i"
            has_none = (is_count or isinstance(edit.parent, ast.Subscript)) and not isinstance(edit.parent, ast.Slice)
            return negated is None or not has_none
        if edit.kind == "comparison" and is_limit(edit):
            return True
        if edit.kind == "constant" and number(edit.new) in (0, 1, 2):  # everybody knows these
            return True
        if edit.kind == "function" and {name_called(edit.old), name_called(edit.new)} in OPPOSITES:
            return True
        if edit.kind == "operator" and {type(getattr(x, "op", None)) for x in (edit.old, edit.new)} == SUMS:
            return True
        if edit.kind in COUNTING:
            return name_called(edit.parent) not in ("swapaxes", "moveaxis")  # an axis swapped with itself
        unknown = self._unknown(after - before, self.solution, self.learner)
        if any(" " not in word for word in unknown) or (unknown and edit.kind not in ("operator", "assigned")):
            return False
        gone = before - after
        if edit.kind == "index" and any(self.learner[x] > self.solution[x] for x in gone if x.startswith("[ ")):
            return True
        if (edit.kind == "term" or _is_one_operation(edit.old)) and any(
            gone[sign] and self.learner[sign] > self.solution[sign] for sign in "*/@"
        ):
            return True
        return edit.kind not in REMOVING - {"branches", "term"} or self._is_superfluous(gone)

    def _bends_a_condition(self, edit: Edit) -> bool:
        """Tell whether an edit makes a question ask something else: it may as well switch it off. `>=` for `>` is none."""
        if not any(id(node) in self.tests for e in (edit, *edit.also) for node in (e.old, e.parent)):
            return False
        old, new = edit.old, edit.new
        if isinstance(old, ast.Compare) and isinstance(new, ast.Compare) and edit.kind == "comparison":
            return ast.dump(old.left) != ast.dump(new.left)
        return edit.kind not in ("inverted", "sign")

    def _is_superfluous(self, gone: Counter[str]) -> bool:
        """Tell whether what an edit takes out has nothing to do with the solution, or stands there once more than there."""
        if any(self.learner[word] > self.solution[word] for word in gone if word in CALLED_TWICE or word in self.kinds):
            return True
        foreign = self._unknown(gone, self.solution)
        return len(foreign) > 1 or any(" " not in word for word in foreign)


def has_own_reason(edit: Edit) -> bool:
    """Tell whether the edit undoes a slip that explains itself: decimals cut off, a sign lost, a result thrown away."""
    return edit.kind == "thrown away" or bool(edit.why or own_reason(edit.old, edit.new))


def is_slip(edit: Edit) -> bool:
    """Tell whether the edit undoes a slip that explains itself, and no choice of another function or operation."""
    is_explained = edit.kind in ("thrown away", "unwrapped", "keyword") and has_own_reason(edit)
    is_pitfall = edit.kind == "pitfall" or bool(edit.why and edit.words)
    return is_explained or is_pitfall or "//" in own_reason(edit.old, edit.new)


def nodes_of_tests(body: list[ast.stmt]) -> Iterator[int]:
    """Yield the ids of the nodes that a body's conditions are made of."""
    for node in ast.walk(ast.Module(body, [])):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield from map(id, ast.walk(test))
            case ast.Call(args=[test, _, _]) if name_called(node) == "where":
                yield from map(id, ast.walk(test))


def reads_of(body: list[ast.stmt]) -> Counter[str]:
    """Count how often each name is read. A list that is filled is not, nor what a line only hands on: `y = step(y)`."""
    nodes = [*ast.walk(ast.Module(body, []))]
    kept = {id(base) for node in nodes for base in written(node)}
    for line in (node for node in nodes if isinstance(node, ast.Assign)):
        targets = {target.id for target in line.targets if isinstance(target, ast.Name)}
        kept |= {id(n) for n in ast.walk(line.value) if isinstance(n, ast.Name) and n.id in targets}
    names = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return Counter(n.id for n in names if id(n) not in kept)


def _is_one_operation(node: ast.AST) -> bool:
    """Tell whether a line does one thing more to a name, `x = x / n` or `x /= n`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=other))):
            return name == other
    return isinstance(node, ast.AugAssign)


def _is_trivial(edit: Edit) -> bool:
    """Tell whether the new expression says the same twice, `x / x` and `f(f(x))`, or nothing, `x * 1`."""
    known = {ast.dump(node) for node in ast.walk(edit.old)}
    if (name_called(edit.new) and name_called(edit.new) == name_called(edit.parent)) or (
        _turns(edit.new) and _turns(edit.parent)
    ):
        return True
    if isinstance(edit.parent, ast.Assign) and ast.unparse(edit.new) in map(ast.unparse, edit.parent.targets):
        return True
    with edit.applied():
        if isinstance(edit.parent, ast.BinOp) and _says_nothing(edit.parent):
            return True
        if any(isinstance(part, ast.Slice) and _is_empty(part) for part in (edit.parent, edit.new)):
            return True
    return any(_says_nothing(node) for node in ast.walk(edit.new) if ast.dump(node) not in known)


def _is_empty(node: ast.Slice) -> bool:
    """Tell whether nothing is left between two numbers: `2:0`, `1:1`, `:0`."""
    low, high = number(node.lower) or 0, number(node.upper)
    return high is not None and node.step is None and (low < 0) == (high < 0) and high <= low


def _turns(node: object) -> bool:
    return name_called(node) in TURNING or getattr(node, "attr", "") in TURNING


def _says_nothing(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=a, op=op, right=b) if isinstance(op, CANCELLING) and ast.dump(a) == ast.dump(b):
            return True
        case ast.BinOp(left=ast.BinOp(op=ast.Sub(), right=a), op=ast.Add(), right=b) if ast.dump(a) == ast.dump(b):
            return True
        case ast.BinOp(op=ast.Mult() | ast.Div() | ast.Pow() | ast.FloorDiv(), right=ast.Constant(value=1)):
            return True
        case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=1)):
            return True
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) > 1:
            return len({ast.dump(item) for item in items}) == 1
        case ast.Call(args=[inner]) if name_called(node) and name_called(inner) == name_called(node):
            return True
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Attribute(value=inner) if _turns(node) and _turns(inner):
            return True
        case ast.Call(args=[ast.Attribute(attr="shape")], func=ast.Attribute()):
            return True
    return False
