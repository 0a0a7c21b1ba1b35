"""The bugs that a test is tried on: an exercise's own mistakes, those that run and give another result.

A mistake that crashes needs no test. What does the same as the right function in every case is none; of two that do the same in
most cases, one is enough. All of that is measured, not listed.
"""

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lesson_utils.lessons.published_bugs import SEEN
from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.mutation_testing.axes import Arguments, axes_of
from lesson_utils.mistakes.recognise.fault_bank import Bank, bank_of
from lesson_utils.mistakes.recognise.fault_bank import Fault as Known
from lesson_utils.mistakes.run.sandbox import Outcome, TimeUp, quick, quiet, same, stopped

ENOUGH, MOST, RARE = 12, 16, 3  # of the rare ones, that show in few cases only, so many


@dataclass(frozen=True, eq=False)
class Bug:
    """A wrong version of an exercise's function."""

    name: str
    change: str  # the lines that are other ones, in words
    message: str  # what a learner reads who makes this mistake
    function: Callable[..., Any]
    source: str
    labels: tuple[str, ...]  # the exercise's cases in which its result is another one

    @property
    def seen(self) -> tuple[str, str] | None:
        """Where it was published: what came of it, and the address."""
        return SEEN.get(self.name)


@dataclass
class _Candidate:
    known: Known
    outcomes: list[Outcome]
    differs: list[bool]
    shows: tuple[bool, ...]  # in the cases, and where all sizes are equal: tests find bugs alike in this together

    usual: bool  # shows with usual numbers in the cases' arrays

    @property
    def rare(self) -> bool:
        return 4 * sum(self.differs) <= len(self.differs)

    def is_near(self, other: "_Candidate") -> bool:
        """Wrong in the same cases, and in most of them the same?"""
        alike = [same(a, b) for a, b in zip(self.outcomes, other.outcomes, strict=True)]
        wrong = [a for a, d in zip(alike, self.differs, strict=True) if d]
        return all(alike) or (self.differs == other.differs and 2 * sum(wrong) > len(wrong))


def _plain_cases(exercise: Exercise) -> list[tuple[Arguments, Outcome]]:
    """Cases as hasty tests have them, all sizes 4, and what is right there."""
    axes, found = axes_of(exercise), []
    for case in exercise.drawn[:4]:
        arguments = axes.resized(
            case.arguments, {p: 4 for group in axes.groups for p in group if p[1]}, np.random.default_rng(4)
        )
        wanted = quick(exercise.right, arguments)
        if wanted.is_telling():
            found.append((arguments, wanted))
    return found


def _usual_cases(exercise: Exercise) -> list[tuple[Arguments, Outcome]]:
    """The cases with usual numbers in their arrays, none of them large or infinite."""
    axes, rng = axes_of(exercise), np.random.default_rng(5)
    found = [axes.resized(case.arguments, {}, rng) for case in exercise.drawn]
    return [(arguments, quick(exercise.right, arguments)) for arguments in found]


def _candidate(
    bank: Bank, known: Known, plain: Sequence[tuple[Arguments, Outcome]], usual: Sequence[tuple[Arguments, Outcome]]
) -> _Candidate | None:
    """None for what is no bug: it does the same everywhere, it crashes, it does not end, or nobody could use it."""
    try:
        with stopped(1.0, busy=8):
            outcomes = [known.outcome(i) for i in range(len(bank.cases))]
            equal = [not same(quick(known.program, arguments), wanted) for arguments, wanted in plain]
            shown = any(not same(quick(known.program, arguments), wanted) for arguments, wanted in usual)
    except TimeUp:
        return None
    pairs = list(zip(outcomes, bank.wanted, strict=True))
    differs = [not same(o, w) for o, w in pairs]
    crashes = [o.error is not None or len(o.results()) != len(w.results()) for o, w in pairs]
    shows = any(d and not c for d, c in zip(differs, crashes, strict=True))
    if not shows or 2 * sum(crashes) > len(outcomes):
        return None
    return _Candidate(known, outcomes, differs, (*differs, *equal), shown)


def _by_turns(knowns: Sequence[Known]) -> Iterator[Known]:
    """Of each step one, then of each step another."""
    by_step: dict[frozenset[str], list[Known]] = defaultdict(list)
    for known in knowns:
        by_step[frozenset(known.replaced)].append(known)
    rows = [iter(row) for row in by_step.values()]
    while rows:
        for row in list(rows):
            first = next(row, None)
            if first is None:
                rows.remove(row)
            else:
                yield first


def _line(text: str) -> str:
    """Code without comments, in one line."""
    lines = [line.split("  #")[0].rstrip() for line in textwrap.dedent(text).strip().splitlines()]
    joined = " ⏎ ".join(line.strip() for line in lines)
    return f"`{joined}`" if len(joined) <= 110 else ""


def _change(exercise: Exercise, known: Known) -> str:
    """What was changed, in words; "" where it would be too long to read."""
    if known.slip:
        before, after = known.slip.texts()
        return f"`{after}` where `{before}` belongs" if after else f"`{before}` is left out"
    if known.whole:
        return _line(known.texts[""])
    said = []
    for step, text in known.texts.items():
        before, after = _line(exercise.steps[step]), _line(text)
        said.append(after if text.strip() else f"{before or step} is left out")
    if not all(said):
        return ""
    short = [part for n, part in enumerate(said) if n == 0 or len("; ".join(said[: n + 1])) <= 130]
    return "; ".join(short) + (" …" if len(short) < len(said) else "")


@cache
def bugs_of(exercise: Exercise) -> tuple[Bug, ...]:
    """At least 12 where there are as many, at most 16: no two alike, from every step of the solution."""
    bank = bank_of(exercise)
    chosen: list[_Candidate] = []

    def choose(knowns: Sequence[Known], most: int, fits: Callable[[_Candidate], bool]) -> None:
        for known in _by_turns(knowns):
            names = {c.known.name for c in chosen if c.known.name}
            if len(chosen) >= most or known.name in names:
                continue
            found = candidate(known)
            if found and fits(found) and not any(map(found.is_near, chosen)):
                chosen.append(found)

    def new(c: _Candidate) -> bool:
        return c.shows not in {other.shows for other in chosen}

    with quiet():
        plain = _plain_cases(exercise)
        usual = _usual_cases(exercise)
        candidate = cache(lambda known: _candidate(bank, known, plain, usual))
        choose(bank.changes, MOST, lambda c: c.known.name in SEEN)
        choose(bank.changes, MOST - RARE, lambda c: new(c) and not c.rare)
        choose(bank.changes, MOST - RARE, lambda c: not c.rare)
        choose(bank.changes, MOST, lambda c: new(c) and c.usual)
        choose(bank.changes, MOST, lambda c: not c.rare or c.usual)
        choose(bank.changes, ENOUGH, lambda c: True)
        choose(bank.mutants, ENOUGH, lambda c: True)
    order = {id(known): n for n, known in enumerate(bank.changes)}
    chosen.sort(key=lambda c: order.get(id(c.known), len(order)))
    return tuple(_bug(bank, c) for c in chosen)


def _bug(bank: Bank, candidate: _Candidate) -> Bug:
    known, change = candidate.known, _change(bank.exercise, candidate.known)
    if known.slip:
        before, after = known.slip.texts()
        source = f"# {after} where {before} belongs" if after else f"# without {before}"
    else:
        source = f"def {bank.exercise.name}({bank.exercise.takes}):\n{textwrap.indent(known.text, '    ')}"
    labels = tuple(case.label for case, d in zip(bank.cases, candidate.differs, strict=True) if d)
    return Bug(known.name or "another slip", change, known.message, known.program, source, labels)
