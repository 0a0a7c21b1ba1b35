"""The mutants that a test is tried on: an exercise's own mistakes, those that run and give another result.

A mistake that crashes needs no test. One that does the same as the right function in every case is none, and of two that do the
same in most cases, one is enough. All of that is measured, not listed.
"""

import textwrap
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.mutation_testing.alterations import redrawn
from lesson_utils.mistakes.recognise.fault_bank import Fault, bank_of
from lesson_utils.mistakes.run.limits import TimeUp, stopped
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick, quiet

ENOUGH, MOST, RARE = 12, 16, 3  # mutants of an exercise; at most RARE of them show in few cases only
Published = tuple[tuple[tuple[str, ...], str, str], ...]  # names of a mistake, what came of it, the address
Examples = Sequence[tuple[tuple[Any, ...], Outcome]]  # arguments, and what is right there


@dataclass(frozen=True, eq=False)
class Bug:
    """A wrong version of an exercise's function."""

    name: str
    in_words: str  # the lines that are other ones, where the bug was seen in public, and a case in which it shows
    function: Callable[..., Any]
    source: str
    cases: tuple[Case, ...]  # of the exercise, in which its result is another one
    in_square: bool  # it shows where all sizes are equal, too


@dataclass
class _Candidate:
    """A mistake that runs, and where its results are wrong."""

    known: Fault
    outcomes: list[Outcome]
    differs: list[bool]
    in_square: list[bool]
    usual: bool  # it shows with usual numbers in the cases' arrays, too

    @property
    def shows(self) -> list[bool]:
        """The places in which tests find it: those that find one bug find others that show alike."""
        return [*self.differs, *self.in_square]

    @property
    def rare(self) -> bool:
        return 4 * sum(self.differs) <= len(self.differs)

    def is_near(self, other: "_Candidate") -> bool:
        """Say whether both are wrong in the same cases, and in most of them the same."""
        alike = [same(a, b) for a, b in zip(self.outcomes, other.outcomes, strict=True)]
        wrong = [a for a, d in zip(alike, self.differs, strict=True) if d]
        return all(alike) or (self.differs == other.differs and 2 * sum(wrong) > len(wrong))


def _candidate(known: Fault, square: Examples, usual: Examples) -> _Candidate | None:
    """Return None for what does the same everywhere, crashes, does not end, or nobody could use."""
    try:
        with stopped(1.0, busy=8):
            outcomes = [known.outcome(i) for i in range(len(known.bank.cases))]
            wrong = [[not same(quick(known.program, a), right) for a, right in some] for some in (square, usual)]
    except TimeUp:
        return None
    pairs = list(zip(outcomes, known.bank.wanted, strict=True))
    differs = [not same(o, w) for o, w in pairs]
    crashes = [o.error is not None or len(o.results()) != len(w.results()) for o, w in pairs]
    runs = any(d and not c for d, c in zip(differs, crashes, strict=True)) and 2 * sum(crashes) <= len(outcomes)
    return _Candidate(known, outcomes, differs, wrong[0], any(wrong[1])) if runs else None


def _by_turns(knowns: Sequence[Fault]) -> list[Fault]:
    """Return one mistake of each step, then a second one of each step, and so on."""
    by_step: dict[frozenset[str], list[Fault]] = defaultdict(list)
    for known in knowns:
        by_step[frozenset(known.replaced)].append(known)
    return [known for turn in zip_longest(*by_step.values()) for known in turn if known]


@cache
def bugs_of(exercise: Exercise, published: Published = ()) -> tuple[Bug, ...]:
    """Return 12 to 16 mutants of an exercise where there are as many: no two alike, from every step of the solution.

    Args:
        published: mistakes that somebody made in public; these come first.
    """
    bank, rng = bank_of(exercise), np.random.default_rng(5)
    seen = {name: f". Seen: {what} ({where})" for names, what, where in published for name in names}
    chosen: list[_Candidate] = []

    def choose(knowns: Sequence[Fault], most: int, fits: Callable[[_Candidate], bool]) -> None:
        for known in _by_turns(knowns):
            if len(chosen) < most and known.name not in {c.known.name for c in chosen if c.known.name}:
                found = candidate(known)
                if found and fits(found) and not any(map(found.is_near, chosen)):
                    chosen.append(found)

    def new(c: _Candidate) -> bool:
        return c.shows not in [other.shows for other in chosen]

    with quiet():
        hasty = [redrawn(case.arguments, np.random.default_rng(4), size=4) for case in exercise.drawn[:4]]
        square = [(a, right) for a in hasty if (right := quick(exercise.right, a)).is_telling()]
        usual = [(a := redrawn(case.arguments, rng), quick(exercise.right, a)) for case in exercise.drawn]
        candidate = cache(lambda known: _candidate(known, square, usual))
        choose(bank.changes, MOST, lambda c: c.known.name in seen)
        choose(bank.changes, MOST - RARE, lambda c: new(c) and not c.rare)
        choose(bank.changes, MOST - RARE, lambda c: not c.rare)
        choose(bank.changes, MOST, lambda c: new(c) and c.usual)
        choose(bank.changes, MOST, lambda c: not c.rare or c.usual)
        choose(bank.changes, ENOUGH, lambda c: True)
        choose(bank.mutants, ENOUGH, lambda c: True)
    order = {id(known): n for n, known in enumerate(bank.changes)}
    chosen.sort(key=lambda c: order.get(id(c.known), len(order)))
    return tuple(_bug(exercise, c, seen.get(c.known.name, "")) for c in chosen)


def _bug(exercise: Exercise, candidate: _Candidate, seen: str) -> Bug:
    known, name = candidate.known, candidate.known.name or "another slip"
    if known.slip:
        before, after = known.slip.texts()
        change = f"`{after}` where `{before}` belongs" if after else f"`{before}` is left out"
        source = f"# {change}"
    else:
        lines = {step: _line(text) for step, text in known.texts.items()}
        left_out = {step: f"{_line(exercise.steps.get(step, '')) or step} is left out" for step in lines}
        words = [lines[step] if text.strip() else left_out[step] for step, text in known.texts.items()]
        short = [part for n, part in enumerate(words) if n == 0 or len("; ".join(words[: n + 1])) <= 130]
        change = "; ".join(short) + (" …" if len(short) < len(words) else "") if all(words) else ""
        source = f"def {exercise.name}({exercise.takes}):\n{textwrap.indent(known.text, '    ')}"
    cases = tuple(case for case, d in zip(exercise.drawn, candidate.differs, strict=True) if d)
    in_words = f"{name}{': ' if change else ''}{change}{seen}. It shows, for instance, on {cases[0].label}"
    return Bug(name, in_words, known.program, source, cases, any(candidate.in_square))


def _line(text: str) -> str:
    """Return code without comments, in one line; "" if that is long."""
    joined = " ⏎ ".join(line.split("  #")[0].strip() for line in text.strip().splitlines())
    return f"`{joined}`" if 0 < len(joined) <= 110 else ""
