"""A measure of whether an edit is what a learner may have meant: what nobody wrote before mends a line only by chance."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from lesson_utils.mistakes.recognise.edit_messages import REASONS, is_limit, own_reason
from lesson_utils.mistakes.recognise.fault_bank import tokens
from lesson_utils.mistakes.recognise.mutation_operators import name_called, number
from lesson_utils.mistakes.recognise.tree_edits import Edit, written

LIKELIHOOD = {kind: n for n, kind in enumerate(REASONS)}  # the kinds stand in the order of how often they are meant
REMOVING = {"term", "unwrapped", "index", "statement", "keyword", "condition", "branches"}
COUNTING = {"off by one", "bound"}
MEANT = {"results", "axis", "keepdims", "size", "sides", "backwards", "brackets", "letters", "letters in order", "letters swapped", "axes in front", "exchanged", "sign", *COUNTING}  # fmt: skip
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

    def unknown(self, found: Counter[str], *known: Counter[str]) -> list[str]:
        """Return the words that are neither known nor contain one of the learner's own names."""
        return [word for word in set(found).difference(*known) if self.own_names.isdisjoint(word.split())]

    def rank(self, edit: Edit) -> tuple[bool, int, int, int]:
        """Rank an edit, the best lowest: a reason of its own; how foreign to the solution it leaves the lines; its kind; its length."""
        before, after = map(tokens, edit.texts())
        foreign = len(self.unknown(after - before, self.solution))
        foreign -= sum(" " not in word and word.isidentifier() for word in self.unknown(before - after, self.solution))
        if edit.kind not in REMOVING:  # taking out what the solution has, too, is not the way to it
            foreign += sum(n for word, n in (before - after).items() if " " in word and word in self.solution)
        return not has_own_reason(edit), foreign, LIKELIHOOD[edit.kind], len(edit.texts()[1])

    def accepts(self, edit: Edit) -> bool:
        """Tell whether a learner may have meant what the edit makes of a line; else nothing is told of it."""
        return next((rule.accepts for rule in RULES if rule.holds(self, edit)), True)


# --- The rules: of those that hold, the first decides ---------------------------------------------------------------------


class Rule(NamedTuple):
    """A reason to believe an edit, or not to."""

    accepts: bool
    why: str
    holds: Callable[[Plausibility, Edit], bool]
    needed_by: str = ""  # an answer of the bank that goes wrong without it, "exercise: name"; "" for what is plainly so


def _bends_a_condition(p: Plausibility, edit: Edit) -> bool:
    if not any(id(node) in p.tests for e in (edit, *edit.also) for node in (e.old, e.parent)):
        return False
    old, new = edit.old, edit.new
    if isinstance(old, ast.Compare) and isinstance(new, ast.Compare) and edit.kind == "comparison":
        return ast.dump(old.left) != ast.dump(new.left)
    return edit.kind not in ("inverted", "sign")


def _names(edit: Edit) -> tuple[str, str]:
    """Return the names that an edit exchanges, old and new; "" for what is none."""
    return getattr(edit.old, "id", ""), getattr(edit.new, "id", "")


def _leaves_a_name_unread(p: Plausibility, edit: Edit) -> bool:
    if edit.kind == "exchanged":
        return not all(p.reads[name] for name in edit.texts())
    old, _ = _names(edit)
    return edit.kind == "name" and old in p.own_names and p.reads[old] <= 1 + len(edit.also)


def _is_of_another_kind(p: Plausibility, edit: Edit) -> bool:
    kinds = {p.kinds[name] for name in _names(edit) if name in p.kinds}
    return edit.kind == "name" and len(kinds) > 1 and kinds != {"i", "f"}


def _is_its_twin(p: Plausibility, edit: Edit) -> bool:
    old, new = _names(edit)
    is_twin = "_" in old and new.startswith(f"{old.partition('_')[0]}_")
    return edit.kind == "name" and is_twin and p.kinds.get(old) == p.kinds.get(new, "none")


def _has_no_sign(p: Plausibility, edit: Edit) -> bool:
    if edit.kind != "sign" or not isinstance(edit.new, ast.UnaryOp) or isinstance(edit.parent, ast.Slice):
        return False
    negated = edit.new.operand
    is_count = name_called(negated) in COUNTS or p.kinds.get(getattr(negated, "id", "")) == "i"
    divides = any(isinstance(getattr(node, "op", None), ast.FloorDiv) for node in (edit.parent, negated))
    is_size = divides or ".shape" in ast.unparse(negated) or name_called(edit.parent) == "reshape"  # it takes −7 for −1
    return is_count or is_size or isinstance(edit.parent, ast.Subscript)


def _is_opposite(p: Plausibility, edit: Edit) -> bool:
    if edit.kind == "function":
        return {name_called(edit.old), name_called(edit.new)} in OPPOSITES
    return edit.kind == "operator" and {type(getattr(x, "op", None)) for x in (edit.old, edit.new)} == SUMS


def _is_unheard_of(p: Plausibility, edit: Edit) -> bool:
    before, after = map(tokens, edit.texts())
    unknown = p.unknown(after - before, p.solution, p.learner)
    return any(" " not in word for word in unknown) or bool(unknown and edit.kind not in ("operator", "assigned"))


def _takes_out_one_too_many(p: Plausibility, edit: Edit) -> bool:
    before, after = map(tokens, edit.texts())
    gone = before - after
    more = {word for word in gone if p.learner[word] > p.solution[word]}
    if edit.kind == "index":
        return any(word.startswith("[ ") for word in more)
    return (edit.kind == "term" or _is_one_operation(edit.old)) and not more.isdisjoint("*/@")


def _takes_out_what_belongs(p: Plausibility, edit: Edit) -> bool:
    """Tell whether what an edit takes out belongs to the solution, and stands there as often as here."""
    before, after = map(tokens, edit.texts())
    gone = before - after
    if edit.kind not in REMOVING - {"branches", "term"}:
        return False
    if any(p.learner[word] > p.solution[word] for word in gone if word in CALLED_TWICE or word in p.kinds):
        return False
    foreign = p.unknown(gone, p.solution)
    return len(foreign) <= 1 and all(" " in word for word in foreign)


RULES = (
    Rule(True, "it undoes a slip that explains itself", lambda p, edit: has_own_reason(edit), "split_heads: order F"),
    Rule(False, "it may as well switch a condition off; `>=` for `>` does not", _bends_a_condition, "merge_pairs: three on, and from the second"),
    Rule(False, "it says the same twice, `x / x`, or nothing, `x * 1`", lambda p, edit: _is_trivial(edit)),
    Rule(False, "what was computed under a name would be for nothing", _leaves_a_name_unread),
    Rule(False, "nobody takes a mask for scores", _is_of_another_kind),
    Rule(True, "`beta_1` for `beta_2`", _is_its_twin, "adam_step: one share for both corrections"),
    Rule(False, "a size has no sign, nor has an index that was computed", _has_no_sign, "sampling_probabilities: argpartition beyond the end"),
    Rule(False, "no axis is swapped with itself", lambda p, edit: edit.kind in COUNTING and name_called(edit.parent) in ("swapaxes", "moveaxis")),
    Rule(True, "the same words stand in another place, or one number is off by one", lambda p, edit: edit.kind in MEANT, "grouped_attention: letters"),
    Rule(True, "the limit belongs to it, or not", lambda p, edit: edit.kind == "comparison" and is_limit(edit)),
    Rule(True, "everybody knows 0, 1 and 2", lambda p, edit: edit.kind == "constant" and number(edit.new) in (0, 1, 2), "layer_norm: another power"),
    Rule(True, "its opposite is meant, `max` for `min`, or `-` for `+`", _is_opposite),
    Rule(False, "its words stand neither in the solution nor in the learner's lines", _is_unheard_of),
    Rule(True, "an index or an operation stands there once more than in the solution", _takes_out_one_too_many),
    Rule(False, "the solution has what is taken out", _takes_out_what_belongs),
)  # fmt: skip


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
