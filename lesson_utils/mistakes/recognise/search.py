"""Recognition of the mistake behind a wrong answer, by a table of stages that run until one of them names it.

First the fault dictionary is searched for a typed mistake that returns the same; then program repair looks for the one edit
of the learner's own lines that makes every case right; then the dictionary is searched for pairs of mistakes, and for
mutants of the solution. Of several explanations that fit, the one closest to the learner's words is chosen.
"""

import ast
import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import expressions
from lesson_utils.mistakes.explain.errors import same_place
from lesson_utils.mistakes.recognise.edit_messages import repair_message, same_numbers_message
from lesson_utils.mistakes.recognise.fault_bank import Bank, Fault, agree, may_match, signature, tokens
from lesson_utils.mistakes.recognise.plausibility import Plausibility, is_slip, nodes_of_tests
from lesson_utils.mistakes.recognise.tree_edits import Edit, locate, repairs
from lesson_utils.mistakes.run.limits import Steps, TimeUp, counted_lines, ending, left, stopped, within
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import changed, copied, quick, quiet

EDITS = 1200  # of the learner's lines that are tried; one of a long answer counts as several
PAIRS = 10_000  # of typed mistakes that are compared
LINES = 300  # that run while one edit is compiled
DESCRIBING = 2  # seconds of a check that are kept for the description of what nobody knows
MOST_LINES = 100_000  # of an answer that run in one case
REWORDED = 6  # more words than these apart, an answer is not the one that was typed
MANY = 40  # faults that return the same; more are not compared


@dataclass(frozen=True)
class LearnerCode:
    """A learner's function as a tree that can be edited and run again; the names that it sees, and its first line's number."""

    tree: ast.FunctionDef
    names: Mapping[str, Any]
    first_line: int

    @property
    def body(self) -> list[ast.stmt]:
        return self.tree.body

    def function(self, edit: Edit | None = None) -> Callable[..., Any] | None:
        """Return the function as it was written, or with one edit; None if that is no Python."""
        if edit and isinstance(edit.parent, ast.Module):  # an edit of the body itself
            edit = Edit("", self.tree, "body", None, self.tree.body, edit.new, 0)
        module, names = ast.Module([self.tree], []), dict(self.names)
        try:
            if edit is None:
                code = compile(module, "<answer>", "exec")
            else:
                locate(edit.new)
                with edit.applied():
                    code = compile(module, "<answer>", "exec")
            exec(code, names)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return None
        found: Callable[..., Any] = names[self.tree.name]
        return found

    def variables(self) -> tuple[str, ...]:
        """Return the parameters, and the names that the body stores."""
        stored = [n.id for n in expressions(self.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return tuple(dict.fromkeys((*(a.arg for a in self.tree.args.args), *stored)))


def learner_code(function: Any) -> LearnerCode | None:
    """Return the source of `function` as a tree; None for what is no plain function with a source."""
    code = getattr(function, "__code__", None)
    bad = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & bad:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)).strip())
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = _definition(tree, function.__name__)
    if found is None or any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(found)):
        return None
    first = found.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(found.body) > 1:
        found.body = found.body[1:]  # the docstring
    try:
        closure = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        closure = {}
    return LearnerCode(found, {**function.__globals__, **closure}, code.co_firstlineno)


def _definition(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """Return the only definition of a function in a tree; a lambda as the function that it stands for."""
    lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
    if name == "<lambda>" and len(lambdas) == 1:
        answer = ast.copy_location(ast.Return(lambdas[0].body), lambdas[0].body)
        made = ast.parse("def answer(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.args, made.body = lambdas[0].args, [answer]
        return made
    defined = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    return defined[0] if len(defined) == 1 and not defined[0].decorator_list else None


@dataclass(frozen=True)
class Diagnosis:
    """A message for the learner, and the name of the mistake: "" if nobody typed it."""

    message: str
    name: str = ""
    sure: bool = True  # else a remark, to stand behind what was measured


class Search:
    """A wrong answer, and the ways to find out which mistake is behind it."""

    def __init__(self, bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> None:
        self.bank, self.function, self.outcomes = bank, function, outcomes
        self.wrong = [i for i, (o, w) in enumerate(zip(outcomes, bank.wanted, strict=False)) if not same(o, w)]
        telling = [i for i in self.wrong if outcomes[i].is_telling()]
        self.has_values = bool(telling)
        self.telling = (telling or self.wrong)[0]  # the case that is compared first
        self.signature = signature(outcomes[self.telling])
        self.learner: LearnerCode | None = learner_code(function)
        self.lines = MOST_LINES  # that the answer runs in the telling case
        self.words = tokens("\n".join(map(ast.unparse, self.learner.body))) if self.learner else Counter[str]()

    # --- Which known fault does the same? ---

    def typed(self) -> Diagnosis | None:
        """Find the typed mistake that does the same in every case; of another wording, a slip that explains itself says more."""
        return self._lookup([*self.bank.changes, *self.bank.respelled], or_slip=True)

    def typed_in_most_cases(self) -> Diagnosis | None:
        """Find the typed mistake that does the same wherever neither it nor the answer stops with an error."""
        return self._lookup([*self.bank.changes, *self.bank.respelled], abstain=True)

    def two_typed(self) -> Diagnosis | None:
        """Find the two typed mistakes that together do the same."""
        pairs = self.bank.pairs(self.bank.changes)
        if self.is_multiple and self.learner:  # of numbers, many pairs are such a multiple by chance
            pairs = (pair for pair in pairs if _numbers(tokens(pair.text)) == _numbers(self.words))
        return self._lookup(pairs, abstain=True, most=PAIRS)

    def mutant(self) -> Diagnosis | None:
        """Find the mutant of the solution that does the same."""
        return self._lookup(self.bank.mutants)

    def _lookup(
        self, faults: Iterable[Fault], abstain: bool = False, most: int = sys.maxsize, or_slip: bool = False
    ) -> Diagnosis | None:
        """Return the fault that does the same and whose words are closest to the learner's."""
        found = (
            fault
            for fault in within(Steps(most), faults)
            if may_match(fault.signature(self.telling), self.signature) and self._fits(fault, abstain)
        )
        best = min(islice(found, MANY), key=self._distance, default=None)
        if best is None:
            return None
        if or_slip and self.learner and self._distance(best) > REWORDED and (slip := self._repaired(is_slip)):
            return slip
        if best.slip and self.learner:  # no edit of the learner's own lines is like it
            return Diagnosis(same_numbers_message(best.slip), sure=False)
        return Diagnosis(best.message, best.name)

    def _fits(self, fault: Fault, abstain: bool) -> bool:
        """Tell whether a fault does the same in every case; with `abstain`, an error on one side says neither yes nor no."""
        seen = 0
        for i, outcome in enumerate(self.outcomes):
            agreed = agree(fault.outcome(i), outcome)
            if agreed and outcome.error:
                here = same_place(fault.outcome(i).error, outcome.error, self.bank.exercise.parameters)
                agreed = here or (None if abstain else False)
            if agreed is False or (agreed is None and (not abstain or i not in self.wrong)):
                return False
            seen += bool(agreed) and i in self.wrong
        return seen > 0 and (not abstain or 2 * seen >= len(self.wrong))

    def _distance(self, fault: Fault) -> int:
        """Count the words that the learner's answer and the fault, as typed, do not share."""
        if not self.words:
            return 0
        typed = tokens(fault.text)
        return (typed - self.words).total() + (self.words - typed).total()

    @cached_property
    def is_multiple(self) -> bool:
        """A number that is always the same multiple of the right one: too many faults lead from one to the other."""
        try:
            pairs = [(float(o.value), float(w.value)) for o, w in zip(self.outcomes, self.bank.wanted, strict=True)]
        except (TypeError, ValueError):  # an error, arrays, several results
            return False
        ratios = [value / wanted for value, wanted in pairs if wanted]
        return 1 < len(ratios) == len(pairs) and bool(np.allclose(ratios, ratios[0], rtol=1e-6))

    # --- Which edit of the learner's lines makes them right? ---

    def repair(self) -> Diagnosis | None:
        """Find the most plausible edit of the learner's lines that makes every case right."""
        return self._repaired()

    def _repaired(self, fits: Callable[[Edit], bool] = lambda edit: True) -> Diagnosis | None:
        learner = self.learner
        if learner is None:
            return None
        if not self._runs_as(learner):
            self.learner = None
            return None
        own_names = set(learner.variables()) - set(self.bank.exercise.parameters)
        tests = frozenset(nodes_of_tests(learner.body))
        given = zip(self.bank.exercise.parameters, self.bank.cases[0].arguments, strict=False)
        counts = {name for name, argument in given if type(argument) is int}
        plausibility = Plausibility(self.bank.words, self.words, own_names, tests, counts)
        what = self.bank.ingredients(learner.variables(), learner.names)
        steps, each = Steps(EDITS), 1 + self.lines // LINES
        for edits in repairs(learner.body, list(self.bank.trees.values()), what):
            plausible = (edit for edit in edits if fits(edit) and plausibility.accepts(edit))
            if found := [edit for edit in within(steps, plausible, each) if self._mends(learner.function(edit))]:
                best = min(found, key=plausibility.rank)
                return Diagnosis(repair_message(best, learner.body, learner.first_line))
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
        with counted_lines("<answer>") as counted:
            outcome = self._run(learner.function(), self.telling)
        self.lines = counted()
        return outcome is not None and same(outcome, self.outcomes[self.telling])

    def _run(self, function: Callable[..., Any] | None, i: int) -> Outcome | None:
        if function is None:
            return None
        try:
            with stopped(1.0, busy=8), counted_lines("<answer>", 1000 + 20 * self.lines):
                return quick(function, self.bank.cases[i].arguments)
        except (TimeUp, SystemExit):
            return None

    def _mends(self, function: Callable[..., Any] | None) -> bool:
        """Tell whether a function is right in all cases, and leaves its arguments as they were."""
        for i in (self.telling, *range(len(self.bank.cases))):
            outcome = self._run(function, i)
            if outcome is None or not same(outcome, self.bank.wanted[i]):
                return False
        assert function is not None
        before = self.bank.cases[self.telling].arguments
        given = copied(before)
        return self._run(lambda *_: function(*given), self.telling) is not None and not changed(given, before)


def _numbers(words: Iterable[str]) -> set[str]:
    return {word for word in words if word.isdigit()}


@dataclass(frozen=True)
class Stage:
    """One way to search for the mistake, and when it can find anything."""

    name: str
    search: Callable[[Search], Diagnosis | None]
    when: Callable[[Search], bool] = lambda search: True


# In the order in which they run. Without a source, the mutants of the solution stand for the edits of the learner's lines;
# beside a source they are a remark only, so they come last.
STAGES = (
    Stage("parameters in another order", Search.other_order),
    Stage("a typed mistake", Search.typed),
    Stage("a typed mistake, errors apart", Search.typed_in_most_cases),
    Stage("one edit of the learner's lines", Search.repair, lambda s: s.learner is not None),
    Stage("a mutant of the solution", Search.mutant, lambda s: s.has_values and s.learner is None),
    Stage("two typed mistakes", Search.two_typed, lambda s: s.has_values),
    Stage("a mutant, as a remark", Search.mutant, lambda s: s.has_values and bool(s.learner) and not s.is_multiple),
)


def recognise(bank: Bank, function: Callable[..., Any], outcomes: Sequence[Outcome]) -> Diagnosis | None:
    """Return the message for the mistake that was made; None for one that no stage knows."""
    search = Search(bank, function, outcomes)
    with quiet(), ending(left() - DESCRIBING):
        for stage in STAGES:
            if left() > 0 and stage.when(search) and (found := stage.search(search)):
                return found
    return None
