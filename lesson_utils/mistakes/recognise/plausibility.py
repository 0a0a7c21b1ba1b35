"""Is an edit what a learner may have meant? One that brings in what neither they nor the solution wrote mends by chance."""

import ast
import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

from lesson_utils.mistakes.recognise.tree_edits import Edit

TAKING = {"term", "unwrapped", "index", "statement", "keyword", "condition"}  # which only take away


CALLED = {"swapaxes", "transpose", "moveaxis", "reshape", "softmax", "exp", "sqrt", "tanh", "sort", "argsort"}
COUNTING = {"off by one", "bound"}


@lru_cache(10_000)
def tokens(text: str) -> Counter[str]:
    """The words and signs of a text, and the pairs of neighbours: x_r + h_r is not x_z + h_z. To be read, not changed."""
    found = re.findall(r"\w+|[^\w\s]", re.sub(r"#.*", "", text))
    return Counter(found) + Counter(f"{a} {b}" for a, b in pairwise(found))


def _is_axes(node: ast.AST) -> bool:
    """The call that swaps axes: who swaps an axis with itself, swaps none."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("swapaxes", "moveaxis")
    )


class Likely:
    """What stands in the solution, what in the learner's lines; `names` are the learner's own, of which the solution knows none."""

    def __init__(self, solution: Counter[str], mine: Counter[str], names: Collection[str]) -> None:
        self.solution, self.mine, self.names = solution, mine, set(names)

    def strange(self, found: Counter[str], *known: Counter[str]) -> list[str]:
        """Of some words, those that are not known, and no learner's name."""
        return [t for t in found if not any(t in words for words in known) and not self.names.intersection(t.split())]

    def __call__(self, edit: Edit) -> bool:
        if edit.kind in COUNTING:
            return not _is_axes(edit.parent)
        before, after = map(tokens, edit.texts())
        if self.strange(after - before, self.solution, self.mine):
            return False
        if edit.kind not in TAKING:
            return True
        if (
            isinstance(edit.old, ast.BinOp)
            and isinstance(edit.old.op, ast.Div)
            and isinstance(edit.old.right, ast.Constant)
        ):
            return False  # a number by which one divides is rather another number
        gone = before - after
        if any(t in CALLED and self.mine[t] > self.solution[t] for t in gone):  # called once too often
            return True
        strange = self.strange(gone, self.solution)
        return len(strange) > 1 or any(" " not in token for token in strange)
