"""A measure of whether an edit is what a learner may have meant: what nobody wrote before mends a line only by chance."""

import ast
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from lesson_utils.mistakes.recognise.edit_messages import REASONS
from lesson_utils.mistakes.recognise.fault_bank import tokens
from lesson_utils.mistakes.recognise.tree_edits import Edit

LIKELIHOOD = {kind: n for n, kind in enumerate(REASONS)}  # the kinds stand in the order of how often they are meant
REMOVING = {"term", "unwrapped", "index", "statement", "keyword", "condition"}
COUNTING = {"off by one", "bound"}
CALLED_TWICE = {"swapaxes", "transpose", "moveaxis", "reshape", "softmax", "exp", "sqrt", "tanh", "sort", "argsort"}


@dataclass(frozen=True)
class Plausibility:
    """The words of the solution and of the learner's lines, and the names of variables that only the learner has."""

    solution: Counter[str]
    learner: Counter[str]
    own_names: Collection[str]

    def _unknown(self, found: Counter[str], *known: Counter[str]) -> list[str]:
        """Return the words that are neither known nor contain one of the learner's own names."""
        return [
            word
            for word in found
            if not any(word in words for words in known) and not any(name in self.own_names for name in word.split())
        ]

    def rank(self, edit: Edit) -> tuple[int, int, int]:
        """Rank an edit, the best lowest: how much of it is foreign to the solution; how unlikely its kind is; its length."""
        before, after = map(tokens, edit.texts())
        foreign = len(self._unknown(after - before, self.solution))
        if edit.kind not in REMOVING:  # taking out what the solution has, too, is not the way to it
            foreign += sum(n for word, n in (before - after).items() if " " in word and word in self.solution)
        return foreign, LIKELIHOOD[edit.kind], len(edit.texts()[1])

    def accepts(self, edit: Edit) -> bool:
        """Tell whether a learner may have meant what the edit makes of a line, so that its reason can be told."""
        if edit.kind in COUNTING:
            return not _swaps_axes(edit.parent)
        before, after = map(tokens, edit.texts())
        if self._unknown(after - before, self.solution, self.learner):
            return False
        return edit.kind not in REMOVING or self._is_superfluous(edit, before - after)

    def _is_superfluous(self, edit: Edit, gone: Counter[str]) -> bool:
        """Tell whether what an edit takes out has nothing to do with the solution, or stands there once more than there."""
        old = edit.old
        if isinstance(old, ast.BinOp) and isinstance(old.op, ast.Div) and isinstance(old.right, ast.Constant):
            return False  # a number by which one divides is rather another number
        if any(word in CALLED_TWICE and self.learner[word] > self.solution[word] for word in gone):
            return True
        foreign = self._unknown(gone, self.solution)
        return len(foreign) > 1 or any(" " not in word for word in foreign)


def _swaps_axes(node: ast.AST) -> bool:
    """Tell whether a node is a call that swaps axes: swapping an axis with itself swaps none."""
    match node:
        case ast.Call(func=ast.Attribute(attr="swapaxes" | "moveaxis")):
            return True
    return False
