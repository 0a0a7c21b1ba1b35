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
from lesson_utils.mistakes.recognise.fault_bank import Bank, Known, bank_of
from lesson_utils.mistakes.run.sandbox import Outcome, TimeUp, quick, quiet, same, stopped

ENOUGH, MOST, RARE = 12, 16, 3  # mutants of an exercise; at most RARE of them show in few cases only
Published = tuple[tuple[tuple[str, ...], str, str], ...]  # names of a mistake, what came of it, the address
Examples = Sequence[tuple[tuple[Any, ...], Outcome]]  # arguments, and what is right there


@dataclass(frozen=True, eq=False)
class Bug:
    """A wrong version of an exercise's function."""

    name: str
    change: str  # the lines that are other ones, in words
    seen: str  # where it was published, and what came of it; or ""
    function: Callable[..., Any]
    source: str
    cases: tuple[Case, ...]  # of the exercise, in which its result is another one

    @property
    def in_words(self) -> str:
        words = f"{self.name}: {self.change}" if self.change else self.name
        seen = f". Seen: {self.seen}" if self.seen else ""
        return f"{words}{seen}. It shows, for instance, on {self.cases[0].label}"


@dataclass
class _Candidate:
    """A mistake that runs, and where its results are wrong."""

    known: Known
    outcomes: list[Outcome]
    differs: list[bool]
    shows: tuple[bool, ...]  # in the cases, and where all sizes are equal: tests find bugs alike in this together
    usual: bool  # it shows with usual numbers in the cases' arrays, too

    @property
    def rare(self) -> bool:
        return 4 * sum(self.differs) <= len(self.differs)

    def is_near(self, other: "_Candidate") -> bool:
        """Say whether both are wrong in the same cases, and in most of them the same."""
        alike = [same(a, b) for a, b in zip(self.outcomes, other.outcomes, strict=True)]
        wrong = [a for a, d in zip(alike, self.differs, strict=True) if d]
        return all(alike) or (self.differs == other.differs and 2 * sum(wrong) > len(wrong))


def _examples(exercise: Exercise) -> tuple[Examples, Examples]:
    """Return four cases as hasty tests have them, all sizes 4, and every case with usual numbers."""
    right, usual = exercise.right, np.random.default_rng(5)
    square = [redrawn(c.arguments, np.random.default_rng(4), size=4) for c in exercise.drawn[:4]]
    others = [redrawn(c.arguments, usual) for c in exercise.drawn]
    plain = [(a, wanted) for a in square if (wanted := quick(right, a)).is_telling()]
    return plain, [(a, quick(right, a)) for a in others]


def _candidate(bank: Bank, known: Known, plain: Examples, usual: Examples) -> _Candidate | None:
    """Return None for what does the same everywhere, crashes, does not end, or nobody could use."""
    try:
        with stopped(1.0, busy=8):
            outcomes = [known.outcome(i) for i in range(len(bank.cases))]
            in_plain, in_usual = ([not same(quick(known.program, a), w) for a, w in some] for some in (plain, usual))
    except TimeUp:
        return None
    pairs = list(zip(outcomes, bank.wanted, strict=True))
    differs = [not same(o, w) for o, w in pairs]
    crashes = [o.error is not None or len(o.results()) != len(w.results()) for o, w in pairs]
    runs_and_differs = any(d and not c for d, c in zip(differs, crashes, strict=True))
    if not runs_and_differs or 2 * sum(crashes) > len(outcomes):
        return None
    return _Candidate(known, outcomes, differs, (*differs, *in_plain), any(in_usual))


def _by_turns(knowns: Sequence[Known]) -> list[Known]:
    """Return one mistake of each step, then a second one of each step, and so on."""
    by_step: dict[frozenset[str], list[Known]] = defaultdict(list)
    for known in knowns:
        by_step[frozenset(known.replaced)].append(known)
    return [known for turn in zip_longest(*by_step.values()) for known in turn if known]


@cache
def bugs_of(exercise: Exercise, published: Published = ()) -> tuple[Bug, ...]:
    """Return 12 to 16 mutants of an exercise where there are as many: no two alike, from every step of the solution.

    Args:
        published: mistakes that somebody made in public; these come first.
    """
    bank = bank_of(exercise)
    seen = {name: f"{what} ({where})" for names, what, where in published for name in names}
    chosen: list[_Candidate] = []

    def choose(knowns: Sequence[Known], most: int, fits: Callable[[_Candidate], bool]) -> None:
        for known in _by_turns(knowns):
            names = {c.known.name for c in chosen if c.known.name}
            if len(chosen) < most and known.name not in names:
                found = candidate(known)
                if found and fits(found) and not any(map(found.is_near, chosen)):
                    chosen.append(found)

    def new(c: _Candidate) -> bool:
        return c.shows not in {other.shows for other in chosen}

    with quiet():
        plain, usual = _examples(exercise)
        candidate = cache(lambda known: _candidate(bank, known, plain, usual))
        choose(bank.changes, MOST, lambda c: c.known.name in seen)
        choose(bank.changes, MOST - RARE, lambda c: new(c) and not c.rare)
        choose(bank.changes, MOST - RARE, lambda c: not c.rare)
        choose(bank.changes, MOST, lambda c: new(c) and c.usual)
        choose(bank.changes, MOST, lambda c: not c.rare or c.usual)
        choose(bank.changes, ENOUGH, lambda c: True)
        choose(bank.mutants, ENOUGH, lambda c: True)
    order = {id(known): n for n, known in enumerate(bank.changes)}
    chosen.sort(key=lambda c: order.get(id(c.known), len(order)))
    return tuple(_bug(bank, c, seen.get(c.known.name, "")) for c in chosen)


def _bug(bank: Bank, candidate: _Candidate, seen: str) -> Bug:
    known, exercise = candidate.known, bank.exercise
    source = f"def {exercise.name}({exercise.takes}):\n{textwrap.indent(known.text, '    ')}"
    if known.slip:
        before, after = known.slip.texts()
        source = f"# {after} where {before} belongs" if after else f"# without {before}"
    cases = tuple(case for case, d in zip(bank.cases, candidate.differs, strict=True) if d)
    return Bug(known.name or "another slip", _change(exercise, known), seen, known.program, source, cases)


def _change(exercise: Exercise, known: Known) -> str:
    """Say what was changed; "" where it would be too long to read."""
    if known.slip:
        before, after = known.slip.texts()
        return f"`{after}` where `{before}` belongs" if after else f"`{before}` is left out"
    words = [
        _line(text) if text.strip() else f"{_line(exercise.steps[step]) or step} is left out"
        for step, text in known.texts.items()
    ]
    short = [part for n, part in enumerate(words) if n == 0 or len("; ".join(words[: n + 1])) <= 130]
    return "; ".join(short) + (" …" if len(short) < len(words) else "") if all(words) else ""


def _line(text: str) -> str:
    """Return code without comments, in one line; "" if that is long."""
    lines = [line.split("  #")[0].strip() for line in text.strip().splitlines()]
    joined = " ⏎ ".join(lines)
    return f"`{joined}`" if len(joined) <= 110 else ""
