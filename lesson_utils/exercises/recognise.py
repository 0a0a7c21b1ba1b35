"""Finds the mistake that was made, or the two.

In this order: a typed mistake; one edit of the learner's own lines that makes everything right; one slip in the solution
that does the same; two typed mistakes; an edit of the learner's lines that leaves a single known mistake; a typed mistake
with a slip; and what fits a good part of the cases. Of several that fit, the one whose words the learner wrote.
"""

import ast
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from lesson_utils.exercises.bank import Bank, Known, Sketch, agree, alike, sketch
from lesson_utils.exercises.edits import Edit, edits
from lesson_utils.exercises.errors import same_place
from lesson_utils.exercises.own import REASONS, Own, ingredients, own, stages, words
from lesson_utils.exercises.trial import Outcome, TimeUp, quick, quiet, same, stopped

SECONDS = 0.9  # of computing, for each of the long searches
ALTOGETHER = 6.0  # after that no further search begins
ORDER = {kind: n for n, kind in enumerate(REASONS)}
# Edits that throw much away: what is left may look like a known mistake by chance.
DESTRUCTIVE = {"unwrapped", "term", "index", "statement", "results", "part", "name", "condition", "inserted", "operator", "branches", "constant", "arithmetic", "picked"}  # fmt: skip


@dataclass(frozen=True)
class Diagnosis:
    """What to tell, and the name of the mistake; "" for one that the machine found by itself."""

    message: str
    name: str = ""


class Clock:
    """So many seconds of computing; on a busy machine four times as many by the clock on the wall."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.process_time() + seconds, time.monotonic() + 4 * seconds

    def is_over(self) -> bool:
        return time.process_time() > self.ends[0] or time.monotonic() > self.ends[1]


def tokens(text: str) -> Counter[str]:
    """The words and signs of a text, and the pairs of neighbours: x_r + h_r is not x_z + h_z."""
    found = re.findall(r"\w+|[^\w\s]", re.sub(r"#.*", "", text))
    return Counter(found) + Counter(f"{a} {b}" for a, b in pairwise(found))


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

    def strange(self, known: Known) -> int:
        """How many words the learner's answer and the mistake, as typed, do not share."""
        if not self.words:
            return 0
        typed = tokens(known.text)
        return (typed - self.words).total() + (self.words - typed).total()

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

    def partly(self) -> Diagnosis | None:
        """A mistake that does the same in at least half of the cases that are wrong, and shows in none that is right."""
        best: tuple[int, Known] | None = None
        for known in self.bank.changes:
            agreed = [agree(known.outcome(i), outcome) for i, outcome in enumerate(self.outcomes)]
            if any(a is not True for a, right in zip(agreed, self.right, strict=True) if right):
                continue
            n = sum(1 for i in self.wrong if agreed[i] and self.outcomes[i].is_telling())
            if n >= 2 and 2 * n >= len(self.wrong) and (best is None or n > best[0]):
                best = n, known
        if best is None:
            return None
        n, known = best
        return Diagnosis(
            f"First: {known.message} That explains {n} of {len(self.wrong)} wrong cases; there is more.", known.name
        )

    # --- Which edit of the learner's lines makes them right? ---

    def _run(self, function: Callable[..., Any], i: int) -> Outcome | None:
        try:
            with stopped(0.5):
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

    @cached_property
    def solution(self) -> Counter[str]:
        """The words of the solution, and of its other spellings."""
        exercise = self.bank.exercise
        texts = [*exercise.steps.values(), *(text for texts in exercise.spellings.values() for text in texts)]
        return tokens("\n".join(texts))

    def rank(self, edit: Edit) -> tuple[int, int, int]:
        """First what brings words of the solution in, and throws strange ones out; then what is likely; then what is short."""
        before, after = map(tokens, edit.texts())
        strange = sum(n for word, n in (after - before).items() if word not in self.solution)
        if edit.kind not in ("term", "unwrapped", "index"):  # which only take away
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
                if edit.kind not in DESTRUCTIVE and mended != self.sketch:
                    self.edited.append((edit, function, mended))
                if alike(mended, wanted) and self._does(function, self.bank.wanted.__getitem__):
                    found.append(edit)
            if found:
                return Diagnosis(words(min(found, key=self.rank), self.mine.first))
        return None

    def repair_twice(self) -> Diagnosis | None:
        """Two edits of one statement: of the one that fails, or else of each."""
        if self.mine is None:
            return None
        mine, wanted = self.mine, sketch(self.bank.wanted[self.telling])
        failing = mine.statement_at(self.outcomes[self.telling].line)
        what = ingredients(
            [s for b in self.bank.trees.values() for s in b], self.bank.exercise.parameters, mine.variables()
        )
        clock = Clock(SECONDS)
        for statement in [failing] if failing else mine.body:
            pairs: list[tuple[int, int, int, str]] = []
            firsts = sorted(
                (e for e in edits([statement], what) if not isinstance(e.parent, ast.Module)), key=self.rank
            )
            for first in firsts:
                if clock.is_over():
                    break
                with first.applied():
                    for second in edits([statement], what):
                        if isinstance(second.parent, ast.Module) or clock.is_over():
                            continue
                        function = mine.function(second)
                        outcome = self._run(function, self.telling) if function else None
                        if (
                            outcome
                            and alike(sketch(outcome), wanted)
                            and self._does(function, self.bank.wanted.__getitem__)
                        ):
                            with second.applied():
                                after = ast.unparse(statement)
                            strange = (tokens(after) - self.solution - self.words).total()
                            pairs.append((strange, len(after), len(pairs), after))
            if pairs:
                *_, after = min(pairs)
                line, before = mine.first + statement.lineno - 1, ast.unparse(statement)
                # Of two edits that mend a line, nobody knows that they undo what the learner did: no reasons are given.
                return Diagnosis(
                    f"It goes wrong in line {line}, `{before}`, in more than one way. With `{after}` in its place every "
                    "case would be right: compare the two, part by part."
                )
        return None

    def repair_to_known(self, mutants: bool) -> Diagnosis | None:
        """An edit of the learner's lines that leaves one known mistake: two to mend."""
        found: list[tuple[tuple[int, int, int], int, int, Edit, Known]] = []
        for edit, function, mended in self.edited:
            for known in self.bank.near(self.telling, mended, mutants):
                if self._does(function, known.outcome, weak=True):
                    found.append((self.rank(edit), self.strange(known), len(found), edit, known))
        if not found:
            return None
        *_, edit, known = min(found)
        assert self.mine is not None
        return Diagnosis(f"Two things to mend.\n1. {words(edit, self.mine.first)}\n2. {known.message}", known.name)


def recognise(bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> Diagnosis | None:
    """The message for the mistake that was made; None for one that nobody knows."""
    search = Search(bank, function, outcomes)

    def named(known: Known | None) -> Diagnosis | None:
        return Diagnosis(known.message, known.name) if known else None

    searches: list[Callable[[], Diagnosis | None]] = [
        lambda: named(search.fit(bank.changes)),
        lambda: named(search.fit(bank.respelled)),
        lambda: named(search.fit([*bank.changes, *bank.respelled], weak=True)),
        search.repair,
    ]
    plain = isinstance(outcomes[search.telling].error, AttributeError | NameError | TypeError | SystemExit)
    if search.valued:
        single: Callable[[], Diagnosis | None] = lambda: named(search.fit(bank.mutants))  # noqa: E731
        double: Callable[[], Diagnosis | None] = lambda: named(search.fit(bank.pairs(bank.changes), True, 2 * SECONDS))  # noqa: E731
        searches += (
            [double, single] if search.mine else [single, double]
        )  # with a source, single slips are found by now
    if not plain:  # such an error is told in words, if no single edit mends it
        searches += [lambda: search.repair_to_known(False), search.repair_twice, lambda: search.repair_to_known(True)]
    if search.valued:
        searches.append(lambda: named(search.fit(_mixed(bank), True, SECONDS, 1)))
    clock = Clock(ALTOGETHER)
    with quiet():
        for attempt in searches:
            if not clock.is_over() and (found := attempt()):
                return found
        return search.partly()


def _mixed(bank: Bank) -> Iterator[Known]:
    """A typed mistake with a slip of the machine's."""
    for known in bank.changes:
        if not known.whole:
            for slip in bank.mutants:
                if not known.replaced.keys() & slip.replaced.keys():
                    yield bank.together(known, slip)
