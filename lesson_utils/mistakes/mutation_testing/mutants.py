"""The mutants that a test is tried on: an exercise's mistakes, those that run and give results which no other mutant gives."""

import ast
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise, compiled, expressions
from lesson_utils.mistakes.recognise.fault_bank import Bank, Fault, bank_of
from lesson_utils.mistakes.recognise.tree_edits import edits
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
    in_words: str  # the same in a sentence, where the bug was seen in public, and a case in which it shows
    function: Callable[..., Any]
    source: str
    cases: tuple[Case, ...]  # of the exercise, in which its result is another one


@dataclass
class _Candidate:
    """A mistake that runs, and where its results are wrong."""

    known: Fault
    outcomes: list[Outcome]
    differs: list[bool]
    shows: list[bool]  # in the cases, and where all sizes are equal: tests find bugs alike in this together
    usual: bool  # it shows with usual numbers in the cases' arrays, too

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
    return _Candidate(known, outcomes, differs, [*differs, *wrong[0]], any(wrong[1])) if runs else None


def _by_turns(knowns: Sequence[Fault]) -> list[Fault]:
    """Return one mistake of each step, then a second one of each step, and so on."""
    by_step: dict[frozenset[str], list[Fault]] = defaultdict(list)
    for known in knowns:
        by_step[frozenset(known.replaced)].append(known)
    return [known for turn in zip_longest(*by_step.values()) for known in turn if known]


def slips(bank: Bank, every: int = 1) -> Iterator[Fault]:
    """Yield the solution with one edit, in each place and of each kind, or `every` second or third of them."""
    statements = [statement for body in bank.trees.values() for statement in body]
    stored = [n.id for n in expressions(statements) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    what = bank.ingredients(tuple(dict.fromkeys((*bank.exercise.parameters, *stored))))
    for step, body in bank.trees.items():
        for edit in islice(chain(edits(body, what), edits(body, what, add=True)), 0, None, every):
            with edit.applied():
                text = "\n".join(map(ast.unparse, body))
            if edit.kind != "arithmetic":  # nobody doubles a term by accident
                yield Fault(bank, "", "", {step: compiled(text)}, {step: text})


@cache
def bugs_of(exercise: Exercise, published: Published = ()) -> tuple[Bug, ...]:
    """Return 12 to 16 mutants of an exercise, no two alike, from every step of the solution; published ones in any case."""
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
        choose(bank.changes, MOST, lambda c: new(c) and c.usual)
        choose(bank.changes, MOST, lambda c: not c.rare or c.usual)
        choose([*slips(bank)] if len(chosen) < ENOUGH else [], ENOUGH, lambda c: True)
    chosen.sort(key=lambda c: [*bank.changes, c.known].index(c.known))
    return tuple(_bug(exercise, c, seen.get(c.known.name, "")) for c in chosen)


def _bug(exercise: Exercise, candidate: _Candidate, seen: str) -> Bug:
    known, name = candidate.known, candidate.known.name or "another slip"
    gone = [_line(exercise.steps[step]) or step for step, text in known.texts.items() if not text.strip()]
    new = [_line(text) for text in known.texts.values() if text.strip()]
    parts = [f"{verb} {' and '.join(lines)}" for verb, lines in (("has", new), ("leaves out", gone)) if lines]
    what = ", and ".join(parts)
    if "" in new or len(what) > 180:  # the code is too long for a sentence
        what = f"has the bug “{name}”"
    source = f"def {exercise.name}({exercise.takes}):\n{textwrap.indent(known.text, '    ')}"
    cases = tuple(case for case, d in zip(exercise.drawn, candidate.differs, strict=True) if d)
    in_words = f"{what}{seen}. It shows, for instance, on {cases[0].label}."
    return Bug(name, in_words, known.program, source, cases)


def _line(text: str) -> str:
    """Return code without comments, in one line; "" if that is long."""
    joined = " ⏎ ".join(line.split("  #")[0].strip() for line in text.strip().splitlines())
    return f"`{joined}`" if 0 < len(joined) <= 110 else ""


def redrawn(arguments: Sequence[Any], rng: np.random.Generator, size: int = 0) -> tuple[Any, ...]:
    """Return arguments with random numbers in their arrays; `size`, if it is given, for the last two axes of each."""
    return tuple(_random(x, rng, size) if isinstance(x, np.ndarray) else x for x in arguments)


def _random(like: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
    """Return numbers of the kind that an array holds: a mask, whole numbers, weights, positive numbers, or others."""
    if like.dtype.kind not in "biuf":
        return like
    last = [size if size and not (like.dtype == bool and n == 1) else n for n in like.shape[-2:]]
    shape = (*like.shape[:-2], *last)
    if like.dtype == bool:
        mask = rng.random(shape) < 0.5
        mask[..., :1] |= ~mask.any(axis=-1, keepdims=True)  # each row keeps something
        return mask
    if like.dtype.kind in "iu":
        return rng.integers(0, max(int(like.max(initial=1)), 1) + 1, size=shape).astype(like.dtype)
    numbers = rng.normal(size=shape)
    if like.size and like.min() >= 0:  # as weights are, maybe
        numbers = np.abs(numbers)
        if like.ndim and np.allclose(like.sum(axis=-1), 1, atol=1e-3):
            numbers /= numbers.sum(axis=-1, keepdims=True)
    return numbers.astype(like.dtype)
