"""A look into the fault dictionary: which known mistakes do the same as a wrong answer, and which is closest to its words."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from lesson_utils.mistakes.recognise.fault_bank import Bank, Fault, may_match, signature, tokens
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, exchanges, learner_code
from lesson_utils.mistakes.recognise.tree_edits import Edit
from lesson_utils.mistakes.run.limits import Steps, within
from lesson_utils.mistakes.run.outcome import Outcome, same, same_place

REWORDED = 6  # more words than these apart, an answer is not the one that was typed
HIDING = ("mask", "where", "tri", "tril", "triu", "inf", "putmask", "copyto", "masked_array")
LOOPS = (ast.For, ast.While, ast.comprehension)
CONSTRUCTS = {"for": (ast.For, ast.comprehension), "while": (ast.While,), "if": (ast.If, ast.IfExp), "loop": LOOPS}
MANY = 40  # faults that return the same; more are not compared


class Lookup:
    """A wrong answer, and what it has in common with the faults that are known."""

    def __init__(self, bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> None:
        self.bank, self.function, self.outcomes = bank, function, outcomes
        self.wrong = [i for i, (o, w) in enumerate(zip(outcomes, bank.wanted, strict=False)) if not same(o, w)]
        telling = [i for i in self.wrong if outcomes[i].is_telling()]
        self.has_values = bool(telling)
        self.telling = (telling or self.wrong)[0]  # the case that is compared first
        self.signature = signature(outcomes[self.telling])
        self.learner: LearnerCode | None = learner_code(function)
        body = self.learner.body if self.learner else []
        self.words = tokens("\n".join(map(ast.unparse, body)))
        self.is_misplaced = exchanges(body, bank.exercise.returns)

    def best(self, faults: Iterable[Fault], abstain: bool = False, most: int = sys.maxsize) -> Fault | None:
        """Return the fault that does the same and whose words are closest to the learner's; with `abstain`, errors apart."""
        found = (
            fault
            for fault in within(Steps(most), faults)
            if may_match(fault.signature(self.telling), self.signature)
            and self._fits(fault, abstain)
            and self.is_true(fault)
        )
        best = min(islice(found, MANY), key=self.distance_in_words, default=None)
        is_chance = best and self.is_constant and self.distance_in_words(best) > 2 * REWORDED
        return None if is_chance else best

    def _fits(self, fault: Fault, abstain: bool) -> bool:
        """Tell whether a fault does the same in every case; a pair with an error explains no values.

        With `abstain`, an error says neither yes nor no, nor does a right result in a few cases: lines that make the
        mistake may treat a special case apart.
        """
        seen, apart, has_values = 0, 0, False
        for i, outcome in enumerate(self.outcomes):
            its, is_wrong = fault.outcome(i), i in self.wrong
            if same(its, outcome) and same_place(its.error, outcome.error, self.bank.exercise.parameters):
                seen += is_wrong
                has_values |= is_wrong and outcome.is_telling() and np.size(outcome.results()[0]) > 1
            elif abstain and not is_wrong:
                apart += 1
            elif not (abstain and is_wrong and (outcome.error or (its.error and not fault.parts))):
                return False
        return seen > 0 and 2 * apart <= seen and (not abstain or has_values or 2 * seen >= len(self.wrong))

    def is_true(self, fault: Fault) -> bool:
        """Tell whether a message is for such lines: about a mask, if they hide something, and about one result, if it stands in its place."""
        if self.is_misplaced and fault.text.splitlines()[-1] == self.bank.exercise.body({}).splitlines()[-1]:
            return False  # right results and wrong ones, exchanged, may be those of a mistake that nobody made
        if self._is_of_other_lines(fault.message):
            return False
        said = "" if "mask" in self.bank.exercise.returns else fault.message
        return "Your mask" not in said or self.hides

    @cached_property
    def hides(self) -> bool:
        """Tell whether the lines hide something, or compare what they do not only ask."""
        nodes = [*ast.walk(self.learner.tree)] if self.learner else []
        asked = {id(node.test) for node in nodes if isinstance(node, ast.If | ast.While)}
        compared = any(isinstance(node, ast.Compare) and id(node) not in asked for node in nodes)
        return compared or not nodes or any(word in self.words for word in HIDING)

    def _is_of_other_lines(self, message: str) -> bool:
        """Tell whether a message begins with a loop or a question that the lines do not have."""
        nodes = [*ast.walk(self.learner.tree)] if self.learner else []
        said = re.findall(r"(?:^|[.?!]\s)(?:A |Your )?`?(for|while|if|loop)\b`? ", message)
        return bool(nodes) and any(not any(isinstance(node, CONSTRUCTS[word]) for node in nodes) for word in said)

    def distance_in_words(self, fault: Fault, edit: Edit | None = None) -> int:
        """Count the words that the learner's answer, maybe with an edit, and the fault, as typed, do not share."""
        if not self.words:
            return 0
        before, after = map(tokens, edit.texts()) if edit else (Counter[str](), Counter[str]())
        typed, words = tokens(fault.text), self.words - before + after
        return (typed - words).total() + (words - typed).total()

    @cached_property
    def is_constant(self) -> bool:
        return _are_constant(self.outcomes)

    @cached_property
    def is_multiple(self) -> bool:
        """A number that is always the same multiple of the right one: too many faults lead from one to the other."""
        try:
            pairs = [(float(o.value), float(w.value)) for o, w in zip(self.outcomes, self.bank.wanted, strict=True)]
        except (TypeError, ValueError, OverflowError):  # an error, arrays, several results; a number beyond floats
            return False
        ratios = [value / wanted for value, wanted in pairs if wanted]
        return 1 < len(ratios) == len(pairs) and bool(np.allclose(ratios, ratios[0], rtol=1e-6))

    def works_alike(self, fault: Fault) -> bool:
        """Tell whether half of what a fault calls stands in the learner's lines; else its words say what nobody wrote."""
        calls = set(re.findall(r"(\w+)\(", fault.text))
        return 2 * sum(name in self.words for name in calls) >= len(calls)


def _are_constant(outcomes: Sequence[Outcome]) -> bool:
    """Tell whether nothing but zeros or nothing but ones come back in every case: many mistakes lead to that."""
    values = [np.asarray(x) for o in outcomes for x in o.results() if not o.error]
    return bool(values) and all(x.dtype.kind in "bif" and (not x.any() or (x == 1).all()) for x in values)
