"""Finds the mistake that was made, or the two.

In this order: a typed mistake; one edit of the learner's own lines that makes everything right; one slip in the solution
that does the same; two typed mistakes; an edit of the learner's lines that leaves a single known mistake; a typed mistake
with a slip; and what fits a good part of the cases. Of several that fit, the one whose words the learner wrote.
"""

import ast
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from lesson_utils.mistakes.explain.errors import same_place
from lesson_utils.mistakes.program import expressions
from lesson_utils.mistakes.recognise.fault_bank import Bank, Known, Sketch, agree, alike, sketch
from lesson_utils.mistakes.recognise.learner_code import REASONS, Own, ingredients, own, same_as, stages, words
from lesson_utils.mistakes.recognise.mutation_operators import Ingredients
from lesson_utils.mistakes.recognise.pieces import Diagnosis, by_result, is_multiple, partly
from lesson_utils.mistakes.recognise.plausibility import TAKING, Likely, tokens
from lesson_utils.mistakes.recognise.tree_edits import Edit, edits, twins
from lesson_utils.mistakes.run.sandbox import Outcome, TimeUp, changed, copied, quick, quiet, same, stopped

SECONDS = 0.9  # of computing, for each of the long searches
ALTOGETHER = 6.0  # after that no further search begins
ORDER = {kind: n for n, kind in enumerate(REASONS)}
# Edits that throw much away: what is left may look like a known mistake by chance.
DESTRUCTIVE = {"unwrapped", "term", "index", "statement", "results", "part", "name", "condition", "inserted", "operator", "branches", "constant", "arithmetic", "picked", "statements swapped"}  # fmt: skip

PARTIAL = TAKING - {
    "statement",
    "statements swapped",
    "condition",
}  # of these, what takes away something strange may stand beside a mistake


class Clock:
    """So many seconds of computing; on a busy machine four times as many by the clock on the wall."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.process_time() + seconds, time.monotonic() + 4 * seconds

    def is_over(self) -> bool:
        return time.process_time() > self.ends[0] or time.monotonic() > self.ends[1]


class Search:
    """One wrong answer, and what is known of it."""

    def __init__(self, bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> None:
        self.bank, self.outcomes = bank, outcomes
        self.right = [same(o, w) for o, w in zip(outcomes, bank.wanted, strict=False)]
        self.wrong = [i for i, right in enumerate(self.right) if not right]
        self.valued = [i for i in self.wrong if outcomes[i].is_telling()]
        self.telling = (self.valued or self.wrong)[0]
        self.sketch = sketch(outcomes[self.telling])
        self.mine: Own | None = own(function)
        self.edited: list[tuple[Edit, Callable[..., Any], Sketch]] = []

    @cached_property
    def words(self) -> Counter[str]:
        return tokens(self.mine.text()) if self.mine else Counter()

    def closest(self, knowns: Sequence[Known]) -> Known | None:
        """Of mistakes that do the same, the one whose words are the learner's; without words, the first."""

        return min(knowns, key=self.strange) if knowns else None

    def told(self, knowns: Iterable[Known], multiple: bool) -> Iterable[Known]:
        """Of a number that is a multiple of the right one, only mistakes with the numbers that the learner wrote."""
        if not multiple or self.mine is None:
            return knowns
        numbers = {word for word in self.words if word.isdigit()}
        return (k for k in knowns if {word for word in tokens(k.text) if word.isdigit()} == numbers)

    def strange(self, known: Known) -> int:
        """How many words the learner's answer and the mistake, as typed, do not share."""
        if not self.words:
            return 0
        typed = tokens(known.text)
        return (typed - self.words).total() + (self.words - typed).total()

    def unsupported(self, known: Known) -> int:
        """How many words the mistake has besides the solution's that the learner did not write."""
        nodes = [node for body in self.bank.trees.values() for node in expressions(body)]
        own_names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        typed, right = tokens(known.text), tokens(self.bank.exercise.body({}))
        brought = [token for token in typed - right if typed[token] > self.words[token]]
        return sum(1 for token in brought if not own_names.intersection(token.split()))

    def fits(self, known: Known, weak: bool = False) -> bool:
        """Does it do the same in every case? Where only one of the two is an error, it may abstain."""
        seen = 0
        for i, outcome in enumerate(self.outcomes):
            agreed = agree(known.outcome(i), outcome)
            if (
                agreed
                and outcome.error
                and not same_place(known.outcome(i).error, outcome.error, self.bank.exercise.parameters)
            ):
                agreed = None if weak else False
            if agreed is False or (agreed is None and (not weak or i not in self.wrong)):
                return False
            seen += bool(agreed) and i in self.wrong
        return seen > 0 and (not weak or 2 * seen >= len(self.wrong))

    def fit(self, knowns: Iterable[Known], weak: bool = False, seconds: float = 60, most: int = 40) -> Known | None:
        """The mistake that does the same, if there is one."""
        found: list[Known] = []
        clock = Clock(seconds)
        for n, known in enumerate(knowns):
            if (n % 64 == 0 and clock.is_over()) or len(found) >= most:
                break
            if alike(known.sketch(self.telling), self.sketch) and self.fits(known, weak):
                found.append(known)
        return self.closest(found)

    # --- Which edit of the learner's lines makes them right? ---

    def _run(self, function: Callable[..., Any], i: int) -> Outcome | None:
        try:
            with stopped(0.5, busy=8):
                return quick(function, self.bank.cases[i].arguments)
        except (TimeUp, SystemExit):
            return None

    def _does(self, function: Callable[..., Any], wanted: Callable[[int], Outcome], weak: bool = False) -> bool:
        for i in range(len(self.bank.cases)):
            outcome = self._run(function, i)
            agreed = outcome is not None and agree(outcome, wanted(i))
            if not agreed and not (weak and agreed is None):
                return False
        return True

    def _mends(self, function: Callable[..., Any]) -> bool:
        """Is all of it right, and are the arguments as they were?"""
        if not self._does(function, self.bank.wanted.__getitem__):
            return False
        before = self.bank.cases[self.telling].arguments
        given = copied(before)
        with stopped(0.5, busy=8):
            function(*given)
        return not changed(given, before)

    @cached_property
    def solution(self) -> Counter[str]:
        """The words of the solution, and of its other spellings."""
        exercise = self.bank.exercise
        texts = [*exercise.steps.values(), *(text for texts in exercise.spellings.values() for text in texts)]
        return tokens("\n".join(texts))

    @cached_property
    def likely(self) -> Likely:
        assert self.mine is not None
        own_names = set(self.mine.variables()) - set(self.bank.exercise.parameters)
        return Likely(self.solution, self.words, own_names)

    def rank(self, edit: Edit) -> tuple[int, int, int]:
        """First what brings words of the solution in, and throws strange ones out; then what is likely; then what is short."""
        before, after = map(tokens, edit.texts())
        strange = len(self.likely.strange(after - before, self.solution))
        if edit.kind not in TAKING:
            strange += sum(n for word, n in (before - after).items() if " " in word and word in self.solution)
        return strange, ORDER[edit.kind], len(edit.texts()[1])

    def repair(self) -> Diagnosis | None:
        """The edit that makes every case right."""
        if self.mine is None:
            return None
        as_written = self.mine.function()
        now = self._run(as_written, self.telling) if as_written else None
        if now is None or agree(now, self.outcomes[self.telling]) is not True:
            self.mine = None  # the tree does not do what the function does
            return None
        wanted = sketch(self.bank.wanted[self.telling])
        clock = Clock(2 * SECONDS)
        for stage in stages(self.mine, list(self.bank.trees.values()), self.bank.exercise.parameters):
            found: list[Edit] = []
            for n, edit in enumerate(stage):
                if n % 16 == 0 and clock.is_over():
                    break
                function = self.mine.function(edit)
                outcome = self._run(function, self.telling) if function else None
                if outcome is None:
                    continue
                mended = sketch(outcome)
                some = edit.kind not in DESTRUCTIVE or edit.kind in PARTIAL
                if some and mended != self.sketch and self.likely(edit):
                    self.edited.append((edit, function, mended))
                if alike(mended, wanted) and self._mends(function):
                    found.append(edit)
            if found:
                best = min(found, key=self.rank)
                return Diagnosis(words(best, self.mine.first, self.likely(best)))
        return None

    def _mend_together(self, first: Edit, second: Edit) -> bool:
        assert self.mine is not None
        with first.applied():
            function = self.mine.function(second)
            outcome = self._run(function, self.telling) if function else None
            wanted = sketch(self.bank.wanted[self.telling])
            return outcome is not None and alike(sketch(outcome), wanted) and self._mends(function)

    def _ingredients(self) -> Ingredients:
        assert self.mine is not None
        solution = [statement for body in self.bank.trees.values() for statement in body]
        return ingredients(solution, self.bank.exercise.parameters, self.mine.variables())

    def repair_alike(self) -> Diagnosis | None:
        """One kind of slip, made in two lines: who has learnt it wrong writes it wrong each time."""
        if self.mine is None:
            return None
        clock = Clock(SECONDS)
        several = [e for e in edits(self.mine.body, self._ingredients()) if not isinstance(e.parent, ast.Module)]
        found: list[tuple[Edit, Edit]] = []
        for pair in twins(sorted(several, key=lambda e: ORDER[e.kind])):
            if clock.is_over():
                break
            if self._mend_together(*pair):
                found.append(pair)
        if not found:
            return None
        best = min(found, key=lambda pair: self.rank(pair[0]))
        said = [words(e, self.mine.first, False) for e in sorted(best, key=lambda e: e.line)]
        return Diagnosis(
            f"The same in two lines; mended in both, every case would be right.\n1. {said[0]}\n2. {said[1]}"
        )

    def repair_twice(self) -> Diagnosis | None:
        """Two likely edits that make every case right."""
        if self.mine is None:
            return None
        mine, what = self.mine, self._ingredients()
        clock = Clock(2 * SECONDS)
        everything = itertools.takewhile(
            lambda e: not clock.is_over(), itertools.chain(edits(mine.body, what), edits(mine.body, what, add=True))
        )
        single = sorted(
            (e for e in everything if not isinstance(e.parent, ast.Module) and self.likely(e)), key=self.rank
        )
        for close in (True, False):
            for first, second in _likeliest_first(single):
                if clock.is_over():
                    return None
                if (first.line == second.line) is not close:  # those of one line are few, and come first
                    continue
                if not self._mend_together(first, second):
                    continue
                # Of two edits that mend an answer, nobody knows that they undo what the learner did: no reasons are given.
                said = [words(e, mine.first, False) for e in sorted((first, second), key=lambda e: e.line)]
                return Diagnosis(
                    f"Two things to mend; with both, every case would be right.\n1. {said[0]}\n2. {said[1]}"
                )
        return None

    def contrary(self, edit: Edit, known: Known) -> bool:
        """Does the edit take out what the mistake is said to lack? Then the learner has it, and the mistake is made up."""
        before, after = map(tokens, edit.texts())
        lacking = tokens(self.bank.exercise.body({})) - tokens(known.text)
        return any(" " in token for token in (before - after) & lacking)

    def repair_to_known(self) -> Diagnosis | None:
        """An edit of the learner's lines that leaves one known mistake: two to mend."""
        found: list[tuple[tuple[int, int, int], int, int, int, Edit, Known]] = []
        for edit, function, mended in self.edited:
            for known in self.bank.near(self.telling, mended):
                if not self.contrary(edit, known) and self._does(function, known.outcome, weak=True):
                    found.append(
                        (self.rank(edit), self.unsupported(known), self.strange(known), len(found), edit, known)
                    )
        if not found:
            return None
        *_, edit, known = min(found)
        assert self.mine is not None
        return Diagnosis(
            f"Two things to mend.\n1. {words(edit, self.mine.first, False)}\n2. {known.message}", known.name
        )


def recognise(bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> Diagnosis | None:
    """The message for the mistake that was made; None for one that nobody knows."""
    search = Search(bank, function, outcomes)

    def named(known: Known | None) -> Diagnosis | None:
        if known and known.slip and search.mine:  # no edit of the learner's own lines is like it
            return Diagnosis(same_as(known.slip), sure=False)
        return Diagnosis(known.message, known.name) if known else None

    searches: list[Callable[[], Diagnosis | None]] = [
        lambda: named(search.fit(bank.changes)),
        lambda: named(search.fit(bank.respelled)),
        lambda: named(search.fit([*bank.changes, *bank.respelled], weak=True)),
        search.repair,
    ]
    plain = isinstance(outcomes[search.telling].error, AttributeError | NameError | TypeError | SystemExit)
    alone = search.mine is None  # without a source, the machine's slips stand for the edits of the learner's lines
    multiple = is_multiple(search)
    if search.valued:
        pairs = search.told(bank.pairs(bank.changes), multiple)
        single: Callable[[], Diagnosis | None] = lambda: named(search.fit(bank.mutants))  # noqa: E731
        double: Callable[[], Diagnosis | None] = lambda: named(search.fit(pairs, True, 2 * SECONDS))  # noqa: E731
        searches += [single, double] if alone else [double]
    if not plain and not multiple:
        searches.insert(4, search.repair_alike)
    if not plain and not multiple:  # such an error is told in words, if no single edit mends it
        searches += [search.repair_to_known, search.repair_twice]
    if search.valued and not multiple:
        searches += (
            [lambda: named(search.fit(_mixed(bank), True, SECONDS, 1))]
            if alone
            else [lambda: by_result(search), single]
        )
    clock = Clock(ALTOGETHER)
    with quiet():
        for attempt in searches:
            if not clock.is_over() and (found := attempt()):
                return found
        return partly(search)


def _likeliest_first(edits: Sequence[Edit]) -> Iterator[tuple[Edit, Edit]]:
    for total in range(2 * len(edits)):
        for n in range(max(0, total - len(edits) + 1), total // 2 + 1):
            yield edits[n], edits[total - n]


def _mixed(bank: Bank) -> Iterator[Known]:
    """A typed mistake with a slip of the machine's."""
    for known in bank.changes:
        if not known.whole:
            for slip in bank.mutants:
                if not known.replaced.keys() & slip.replaced.keys():
                    yield bank.together(known, slip)
