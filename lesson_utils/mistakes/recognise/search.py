"""Recognition of the mistake behind a wrong answer, by a table of stages that run until one of them names it.

First the fault dictionary is searched for a typed mistake that returns the same; then program repair looks for the one edit
of the learner's own lines that makes every case right; then the dictionary is searched for pairs of mistakes, and both
together. Of several explanations that fit, the one closest to the learner's words is chosen.
"""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.mistakes.recognise.edit_messages import contradict, is_limit, repair_message, repair_messages
from lesson_utils.mistakes.recognise.fault_bank import Bank, Fault, Signature, may_match, signature, tokens
from lesson_utils.mistakes.recognise.learner_code import LearnerCode
from lesson_utils.mistakes.recognise.lookup import REWORDED, Lookup
from lesson_utils.mistakes.recognise.nearness import distance, right_entries
from lesson_utils.mistakes.recognise.pitfalls import pitfalls
from lesson_utils.mistakes.recognise.plausibility import (
    REMOVING,
    Plausibility,
    has_own_reason,
    is_slip,
    nodes_of_tests,
    reads_of,
)
from lesson_utils.mistakes.recognise.tree_edits import Edit, repairs
from lesson_utils.mistakes.recognise.tree_edits import edits as edits_of
from lesson_utils.mistakes.run.limits import Steps, TimeUp, counted_lines, ending, left, stopped, within
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import changed, copied, quick, quiet
from lesson_utils.mistakes.verdict import listed

EDITS = 1200  # of the learner's lines that are tried; one of a long answer counts as several
AXIS = r": `(axis=-?\d)(, keepdims=True)?`(?=[.,])"  # a cure
NEAREST, SECOND = 24, 4000  # edits that bring the results nearer, and those that are tried beside one of them
PITFALLS = 40  # that are tried beside what nobody knows
PAIRS = 10_000  # of typed mistakes that are compared
LINES = 1000  # that run while one edit is compiled, the library's among them
DESCRIBING = 2  # seconds of a check that are kept for the description of what nobody knows
MOST_LINES = 100_000  # of an answer that run in one case
# Edits that are not believed beside another mistake: they may take something right away.
ALONE = {"thrown away", "backwards", "indented", "assigned", "in place", "branches", "condition", "statement", "statements swapped", "missing", "picked", "arithmetic", "exchanged", "constant"}  # fmt: skip
# Kinds that exchange whole arrays: they make other numbers, but none of them right before the other mistake is mended.
WHOLE = {"exchanged", "name", "order", "sides", "results", "transpose", "axes swapped", "letters in order", "letters swapped", "axis"}  # fmt: skip
# Kinds that change a little; what they lead to is believed if it is nearer. Others may switch off all that is wrong.
SMALL = {"off by one", "bound", "comparison", "inverted", "exchanged", "axis", "index", "term", "operator", "keyword"}
DOUBTFUL = {"statements swapped", "arithmetic", "picked"}  # kinds of edits that no other is tried beside


@dataclass(frozen=True)
class Diagnosis:
    """A message for the learner, and the name of the mistake: "" if nobody typed it."""

    message: str
    name: str = ""
    explains_errors: bool = True  # else an error of the answer is another mistake
    is_all: bool = True  # else the results are wrong without it, too, and are told beside it


class Search(Lookup):
    """A wrong answer, and the ways to find out which mistake is behind it."""

    def __init__(self, bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> None:
        super().__init__(bank, function, outcomes)
        self.lines = MOST_LINES  # that the answer runs in the telling case
        self.each = 1  # steps that an edit counts as
        self.edits: list[Edit] = []  # of the learner's lines, that may be meant
        # Edits that mend nothing, and what they make of that case.
        self.tried: list[tuple[tuple[Edit, ...], Outcome]] = []

    # --- Which known fault does the same? ---

    def typed(self) -> Diagnosis | None:
        """Find the typed mistake that does the same in every case; of another wording, a slip that explains itself says more."""
        best = self.best([*self.bank.changes, *self.bank.respelled])
        slip = self.repair(is_slip) if best and self.distance_in_words(best) > REWORDED else None
        return slip or self._named(best)

    def typed_in_most_cases(self) -> Diagnosis | None:
        """Find the typed mistake that does the same wherever neither it nor the answer stops with an error."""
        return self._named(self.best([*self.bank.changes, *self.bank.respelled], abstain=True))

    def two_typed(self) -> Diagnosis | None:
        """Find the two typed mistakes that together do the same; of other words, a slip that explains itself beside one says more."""
        pairs = self.bank.pairs(self.bank.changes if self.has_values else ())
        best = self.best(pairs, abstain=True, most=PAIRS)
        slip = self.edit_and_typed(_is_pitfall) if best and self.distance_in_words(best) > REWORDED else None
        return slip or self._named(best)

    def _named(self, fault: Fault | None) -> Diagnosis | None:
        if fault is None:
            return None
        explained = all(fault.outcome(i).error for i, o in enumerate(self.outcomes) if o.error)
        return Diagnosis(self.said(fault), fault.name, explains_errors=explained)

    def said(self, fault: Fault) -> str:
        """Return the message for a fault, with the axis that helps the learner's lines, which may be laid out otherwise."""
        return re.sub(AXIS, self._axis_that_helps, fault.message) if self.learner else fault.message

    def _axis_that_helps(self, cure: re.Match[str]) -> str:
        """Return a cure that names an axis; if that one brings the learner's results no nearer, with the axis that does, or ""."""
        wanted, what = self.bank.wanted[self.telling], self.bank.ingredients(self.code.variables(), self.code.names)
        leaves = dict[str, float]()  # the distance that each axis leaves
        for edit in edits_of(self.code.body, what):
            if edit.kind == "axis" and (axis := re.search(r"axis=-?\d", edit.texts()[1])):
                after = distance(self._run(self.code.function(edit), self.telling), wanted)
                leaves[axis[0]] = min(after, leaves.get(axis[0], after))
        before = distance(self.outcomes[self.telling], wanted)
        if cure[1] not in leaves or leaves[cure[1]] < before:
            return cure[0]
        best = min(leaves, key=lambda axis: leaves[axis])
        return cure[0].replace(cure[1], best) if leaves[best] < before else ""

    # --- Which edit of the learner's lines makes them right? ---

    def repair(self, fits: Callable[[Edit], bool] = lambda edit: True) -> Diagnosis | None:
        """Find the most plausible edit of the learner's lines that makes every case right."""
        self.edits, self.tried = [], []
        if self.learner is None or not self._runs_as(self.learner):
            self.learner = None
            return None
        steps, what = Steps(EDITS), self.bank.ingredients(self.learner.variables(), self.learner.names)
        for family in (iter(self.pitfalls), *repairs(self.learner.body, what)):
            plausible = (edit for edit in family if fits(edit) and self.plausibility.accepts(edit))
            tried = [*within(steps, plausible, self.each)]
            self.edits += tried
            if found := [edit for edit in tried if self._mends(edit)]:
                return self._told(min(found, key=self.plausibility.rank))
        return None

    def two_edits(self) -> Diagnosis | None:
        """Find the likeliest two edits of the learner's lines that make every case right; one brings the results nearer."""
        if not self.tried or self.never_ran:
            return None
        wanted, steps, rank = self.bank.wanted[self.telling], Steps(SECOND), self.plausibility.rank
        nearest = dict[tuple[float, Signature], Edit]()  # of those that do the same, the first; the likelier come first
        for (first, *_), outcome in self.tried:
            if first.kind not in DOUBTFUL:
                nearest.setdefault((distance(outcome, wanted), signature(outcome)), first)
        before, ordered = distance(self.outcomes[self.telling], wanted), sorted(nearest.items(), key=lambda x: x[0][0])
        firsts = [edit for (after, _), edit in ordered if after < before or edit.kind in WHOLE][:NEAREST]
        pairs = ((a, b) for a in firsts for b in self.edits if b.kind != "arithmetic" and not contradict(a, b))
        found = [pair for pair in within(steps, pairs, self.each) if self._mends(*pair)]
        best = min(found, key=lambda pair: [sum(x) for x in zip(*map(rank, pair), strict=True)], default=None)
        return self._told(*sorted(best, key=lambda edit: edit.line)) if best else None

    @property
    def never_ran(self) -> bool:
        """Tell whether all that is wrong is an error about Python's own matters: what the lines compute, nobody knows then."""
        return all(isinstance(self.outcomes[i].error, NameError | AttributeError | TypeError) for i in self.wrong)

    @property
    def code(self) -> LearnerCode:
        """The learner's lines, for the stages that run only where they are known."""
        assert self.learner is not None
        return self.learner

    @cached_property
    def pitfalls(self) -> list[Edit]:
        texts = {x for case in self.bank.cases for x in case.arguments if isinstance(x, str)}
        return [*pitfalls(self.code.body, texts)]

    def _told(self, *edits: Edit) -> Diagnosis:
        return Diagnosis(listed(repair_messages(edits, self.code)))

    @cached_property
    def plausibility(self) -> Plausibility:
        body, parameters = self.code.body, self.bank.exercise.parameters
        own_names = set(self.code.variables()) - set(parameters)
        given = zip(parameters, self.bank.cases[0].arguments, strict=False)
        kinds = {name: np.asarray(x).dtype.kind if isinstance(x, np.ndarray | int | float) else "" for name, x in given}
        tests = frozenset(nodes_of_tests(body))
        return Plausibility(self.bank.words, self.words, own_names, tests, kinds, reads_of(body))

    def edit_and_typed(self, fits: Callable[[Edit], bool] = lambda edit: True) -> Diagnosis | None:
        """Find an edit of the learner's lines that brings them nearer to a typed mistake, and leaves that one alone.

        It was run in search of a repair. It has a reason of its own, or brings the words nearer to the mistake's, and nothing
        that was right may get wrong: an edit that spoils something may end in a known mistake, too.
        """
        if self.never_ran:
            return None
        most = max((len(edits) for edits, _ in self.tried), default=0)
        found = [
            (_only_takes_out(edits[0]), sum(self.distance_in_words(fault, edit) for edit in edits), n, edits, fault)
            for n, (edits, outcome) in enumerate(self.tried)
            if len(edits) == most and all(fits(edit) and edit.kind not in ALONE for edit in edits)
            if most == 1 or all(map(is_limit, edits))  # of three mistakes, one may be a guess
            for its in [signature(outcome)]
            for fault in self.bank.changes
            if may_match(fault.signature(self.telling), its)
            and not any(rule.holds(self, edit, fault) for rule in BESIDE for edit in edits)
            and self._leads_to(fault, edits)
        ]
        if not found:
            return None
        *_, edits, fault = min(found, key=lambda one: one[:3])
        return Diagnosis(listed([*repair_messages(edits, self.code), self.said(fault)]), f"; {fault.name}")

    def _is_nearer(self, fault: Fault, edit: Edit) -> bool:
        """Tell whether an edit brings the words nearer to a fault's, or is no farther and shorter."""
        before, after = map(len, edit.texts())
        return (self.distance_in_words(fault, edit), after) < (self.distance_in_words(fault), before)

    def _leads_to(self, fault: Fault, edits: Sequence[Edit]) -> bool:
        """Tell whether the learner's lines, edited, do what a fault does, and are right wherever they were.

        Small edits without a reason of their own bring most wrong cases nearer, and none farther. Another name has no such
        reason, nor has what leads to other lines: it must make something right, too.
        """
        function = self.code.function(*edits)
        has_reason = all(has_own_reason(edit) or self._is_nearer(fault, edit) for edit in edits)
        given = [Outcome(x) for x in self.bank.cases[self.telling].arguments if isinstance(x, np.ndarray)]
        is_idle = any(same(x, fault.outcome(self.telling)) for x in given)  # many an edit makes lines do nothing
        if not has_reason and (is_idle or any(edit.kind not in SMALL for edit in edits)):
            return False
        gains, nearer = self.works_alike(fault) and all(edit.kind != "name" for edit in edits), 0
        for i, (before, wanted) in enumerate(zip(self.outcomes, self.bank.wanted, strict=True)):
            after = self._run(function, i)
            if not same(after, fault.outcome(i)):
                return False
            gained = right_entries(after, wanted) - right_entries(before, wanted)
            farther = distance(after, wanted) - distance(before, wanted)
            if gained < -1 or (gained < 0 and farther > -1e-6) or (farther > 1e-6 and not has_reason):  # one, by chance
                return False
            nearer += farther < -1e-6
            gains = gains or gained > 0
        return gains and (has_reason or 2 * nearer >= len(self.wrong))

    def pitfall(self) -> Diagnosis | None:
        """Find a pitfall that is not all: without it, more is right, or it is nearly always a mistake and nothing gets wrong.

        A habit says nothing while errors go on: a loop that starts later also reads fewer entries beyond the end.
        """
        for edit in within(Steps(PITFALLS), self.pitfalls if self.learner else ()):
            function, gains = self.code.function(edit), 0
            after = [self._run(function, i) for i in range(len(self.outcomes))]
            for then, now, wanted in zip(self.outcomes, after, self.bank.wanted, strict=True):
                is_worse = (same(then, wanted) and not same(now, wanted)) or (now.error and not then.error)
                if is_worse or now.timed_out:
                    break
                gained = right_entries(now, wanted) - right_entries(then, wanted)
                has_fractions = any((np.asarray(x) % 1 != 0).any() for x in wanted.results())
                is_farther = distance(now, wanted) > distance(then, wanted) + 1e-6
                if edit.kind != "pitfall" and (now.error or is_farther):
                    break
                gains += same(now, wanted) > same(then, wanted) or (gained > 0 and has_fractions)
                gains += edit.kind == "pitfall" and not now.error and not same(now, then)
            else:
                if gains:
                    return Diagnosis(repair_message(edit, self.code), is_all=False)
        return None

    def other_order(self) -> Diagnosis | None:
        """Find parameters in another order than the stub's: the check hands its arguments over by place."""
        asked = self.bank.exercise.parameters
        try:
            given = tuple(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):  # some built-in functions have none
            return None
        if given == asked or sorted(given) != sorted(asked):
            return None
        return Diagnosis(f"Your parameters stand in another order than in the stub: write `{', '.join(asked)}`.")

    def _runs_as(self, learner: LearnerCode) -> bool:
        """Tell whether the tree does what the function did, or its source is not that of the function."""
        function = learner.function()
        with counted_lines("<answer>") as counted:
            outcome = self._run(function, self.telling)
        self.lines = counted()
        with counted_lines("") as counted:
            self._run(function, self.telling)
        self.each = 1 + counted() // LINES
        return same(outcome, self.outcomes[self.telling])

    def _run(self, function: Callable[..., Any] | None, i: int) -> Outcome:
        """Return the outcome in case i; what is no Python, or leaves it, counts as what never ends."""
        with suppress(TimeUp, SystemExit), stopped(1.0, busy=8), counted_lines("<answer>", 1000 + 20 * self.lines):
            if function:
                return quick(function, self.bank.cases[i].arguments)
        return Outcome(timed_out=True)

    def _mends(self, *edits: Edit) -> bool:
        """Tell whether the learner's lines with these edits are right in all cases, and leave their arguments as they were."""
        function = self.code.function(*edits)
        first = self._run(function, self.telling)
        outcomes = chain([first], (self._run(function, i) for i in range(len(self.bank.cases))))
        if function is None or not all(map(same, outcomes, [self.bank.wanted[self.telling], *self.bank.wanted])):
            if first.is_telling() and not self.is_multiple:
                self.tried.append((edits, first))
            return False
        before = self.bank.cases[self.telling].arguments
        given = copied(before)
        again = self._run(lambda *_: function(*given), self.telling)
        return not again.timed_out and {*changed(given, before)} <= {*self.outcomes[self.telling].changed}


def _is_pitfall(edit: Edit) -> bool:
    """Tell whether an edit undoes a slip that explains itself. A call that is left out may only make room for a mistake."""
    return is_slip(edit) and edit.kind != "unwrapped"


def _only_takes_out(edit: Edit) -> bool:
    """Tell whether an edit puts no word in: beside a mistake, it may only make room for it."""
    before, after = map(tokens, edit.texts())
    return after < before


# --- An edit is told beside a typed mistake, unless one of these rules holds ----------------------------------------------


class Beside(NamedTuple):
    """A reason why an edit may be no second mistake, but what makes the first one, or room for it."""

    why: str
    holds: Callable[[Search, Edit, Fault], bool]
    needed_by: str = ""  # an answer of the bank that goes wrong without it, "exercise: name"; "" for what is plainly so


def _gone(edit: Edit) -> Counter[str]:
    before, after = map(tokens, edit.texts())
    return before - after


def _puts_in_the_axis(search: Search, edit: Edit, fault: Fault) -> bool:
    texts = (edit.texts()[1], fault.text, search.bank.exercise.solution)
    put_in, its, right = (set(re.findall(r"axis=-?\d", text)) for text in texts)
    return bool(put_in & its - right)


def _takes_out_a_parameter(search: Search, edit: Edit, fault: Fault) -> bool:
    gone, words = _gone(edit), search.bank.words
    return any(0 < search.words[name] <= gone[name] and name in words for name in search.bank.exercise.parameters)


def _takes_out_what_it_lacks(search: Search, edit: Edit, fault: Fault) -> bool:
    its, right = tokens(fault.text), search.bank.words
    return any(search.words[x] <= n and x in right and x not in its for x, n in _gone(edit).items() if len(x) > 1)


def _takes_out_a_variable(search: Search, edit: Edit, fault: Fault) -> bool:
    before, after = map(tokens, edit.texts())
    return edit.kind in REMOVING - {"keyword"} and any(v in before and v not in after for v in search.code.variables())


def _returns_otherwise(search: Search, edit: Edit, fault: Fault) -> bool:
    right = search.bank.exercise.body({}).splitlines()[-1]
    return edit.kind == "results" and fault.text.splitlines()[-1] != right


BESIDE = (
    Beside("of three mistakes, one may be a guess", lambda search, edit, fault: "\n2. " in fault.message and not has_own_reason(edit)),
    Beside("the edit puts in the axis that makes the mistake", _puts_in_the_axis, "layer_norm: an axis put back for two axes only"),
    Beside("another size may leave nothing over for the mistake", lambda search, edit, fault: edit.kind == "term" and isinstance(getattr(edit.old, "op", None), ast.FloorDiv), "rotary_halves: neighbours, and the right half one position on"),
    Beside("without what the solution reads, the edit makes the mistake", _takes_out_a_parameter, "patched_inputs: only what was written, keys and values exchanged"),
    Beside("what the mistake lacks is here, and the edit takes it out", _takes_out_what_it_lacks),
    Beside("a variable is taken out", _takes_out_a_variable, "score_variance: d_k divided out again"),
    Beside("something is taken out, and the mistake is of other lines", lambda search, edit, fault: edit.kind in REMOVING - {"keyword"} and not search.works_alike(fault), "weighted_average: a row too few, and divided twice"),
    Beside("a mistake in what is returned contradicts other results", _returns_otherwise, "context_vector: weights of an unmasked softmax, and the results exchanged"),
    Beside("the message is not for such lines", lambda search, edit, fault: not search.is_true(fault)),
)  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """One way to search for the mistake."""

    name: str
    search: Callable[[Search], Diagnosis | None]


# In the order in which they run.
STAGES = (
    Stage("parameters in another order", Search.other_order),
    Stage("a typed mistake", Search.typed),
    Stage("a typed mistake, errors apart", Search.typed_in_most_cases),
    Stage("one edit of the learner's lines", Search.repair),
    Stage("two typed mistakes", Search.two_typed),
    Stage("an edit and a typed mistake", Search.edit_and_typed),
    Stage("two edits of the learner's lines", Search.two_edits),
    Stage("two limits and a typed mistake", Search.edit_and_typed),
    Stage("a pitfall, and what nobody knows", Search.pitfall),
)


def recognise(bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> Diagnosis | None:
    """Return the message for the mistake that was made; None for one that no stage knows."""
    search = Search(bank, function, outcomes)
    with quiet(), ending(left() - DESCRIBING):
        for stage in STAGES:
            if left() > 0 and (found := stage.search(search)):
                return found
    return None
