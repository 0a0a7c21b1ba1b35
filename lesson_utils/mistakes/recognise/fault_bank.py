"""A fault dictionary of each exercise: what every known fault returns in every case, found out when it is needed.

The faults are the mistakes that the exercise's author typed (`Change`), one for each spelling, and pairs of them. To look a
wrong answer up, one compares signatures first, then outcomes.
"""

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from itertools import chain, combinations, pairwise
from types import CodeType
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise, Program, compiled
from lesson_utils.mistakes.recognise.ingredients import Ingredients, ingredients, modules_in
from lesson_utils.mistakes.run.outcome import Outcome, plain
from lesson_utils.mistakes.run.sandbox import quick, quiet
from lesson_utils.mistakes.verdict import listed

Signature = tuple[Any, float]
NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"


def signature(outcome: Outcome) -> Signature:
    """Return a few numbers that differ where outcomes do, so that most of hundreds of faults need no comparison."""
    if outcome.error or outcome.timed_out:
        return ("error", type(outcome.error)), 0.0
    shapes: list[Any] = []
    total = 0.0
    try:
        for result in outcome.results():
            array = np.asarray(plain(result), dtype=float)
            finite = np.isfinite(array)
            shapes.append((array.shape, int(finite.sum())))
            numbers = np.where(finite, array, 0).ravel()
            total += float(numbers @ np.cos(np.arange(1, numbers.size + 1) ** 1.3)) * len(shapes)
    except (TypeError, ValueError, OverflowError):
        return ("strange", type(outcome.value)), 0.0
    return tuple(shapes), total


def may_match(a: Signature, b: Signature) -> bool:
    """Tell whether outcomes with these signatures can be the same; the numbers of float16 differ by as much."""
    return a[0] == b[0] and abs(a[1] - b[1]) <= 2e-3 + 2e-3 * abs(b[1])


@lru_cache(10_000)
def tokens(text: str) -> Counter[str]:
    """Return the words and signs of a text, and the pairs of neighbours: x_r + h_r is not x_z + h_z. To be read, not changed."""
    found = re.findall(rf"{NUMBER}|\w+|[^\w\s]", re.sub(r"#.*", "", text))
    found = [f"{float(word):g}" if word[0].isdigit() else word for word in found]  # 1e-5 is 1e-05
    return Counter(found) + Counter(f"{a} {b}" for a, b in pairwise(found))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", re.sub(r" *#.*", "", text))


@lru_cache(10_000)
def _changes(text: str, other: str) -> list[tuple[int, int, list[str]]]:
    """Return which words of a text another one has replaced, and by what."""
    words, its = _words(text), _words(other)
    while words and its and words[-1] == its[-1]:  # else the bracket of an inserted call is taken for that of its line
        words, its = words[:-1], its[:-1]
    opcodes = SequenceMatcher(None, words, its, autojunk=False).get_opcodes()
    return [(i, j, its[k:m]) for kind, i, j, k, m in opcodes if kind != "equal"]


@lru_cache(10_000)
def merged(right: tuple[str, ...], a: str, b: str) -> str:
    """Return that one of some right texts which two wrong ones are like, with the changes of both; "" if they overlap."""
    text = min(right, key=lambda text: len(_changes(text, a)) + len(_changes(text, b)))
    words, changed = _words(text), sorted((*_changes(text, a), *_changes(text, b)), key=lambda change: change[:2])
    if not (a and b) or any(j > k or (i, j) == (k, m) for (i, j, _), (k, m, _) in pairwise(changed)):
        return ""
    for i, j, its in reversed(changed):
        words[i:j] = its
    return "".join(words)


@dataclass(eq=False)
class Fault:
    """A way to go wrong, and its outcome in each case."""

    bank: "Bank"
    name: str
    message: str
    replaced: Mapping[str, CodeType]  # the code of each step that changes; "" is the whole body
    texts: Mapping[str, str]
    parts: tuple["Fault", ...] = ()
    outcomes: dict[int, Outcome] = field(default_factory=dict)  # as far as they are known

    @property
    def text(self) -> str:
        """The answer that makes the mistake, as typed."""
        return self.bank.exercise.body(self.texts)

    @property
    def whole(self) -> bool:
        return "" in self.replaced

    @cached_property
    def program(self) -> Program:
        codes = self.replaced if self.whole else {**self.bank.codes, **self.replaced}
        return Program([*codes.values()], self.bank.names, self.bank.exercise.parameters)

    def outcome(self, i: int) -> Outcome:
        if i not in self.outcomes:
            self.outcomes[i] = quick(self.program, self.bank.cases[i].arguments)
        return self.outcomes[i]

    def signature(self, i: int) -> Signature:
        """Return the signature in case i; the bank keeps those of pairs, which are made anew for each wrong answer."""
        key = (i, *map(id, self.parts or (self,)))
        if key not in self.bank.signatures:
            self.bank.signatures[key] = signature(self.outcome(i))
        return self.bank.signatures[key]


class Bank:
    """The known faults of one exercise."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise, self.cases, self.names = exercise, exercise.drawn, exercise.names()
        self.codes = self._codes(exercise.steps)
        with quiet():
            self.wanted = [quick(exercise.right, case.arguments) for case in self.cases]
        self.right = {step: (text, *exercise.spellings.get(step, ())) for step, text in exercise.steps.items()}
        self.signatures: dict[tuple[int, ...], Signature] = {}

    @cached_property
    def changes(self) -> list[Fault]:
        """The typed mistakes, one fault for each spelling."""
        return [
            Fault(self, mistake.name, mistake.message, self._codes(way), way)
            for mistake in self.exercise.mistakes
            for way in mistake.ways
        ]

    def _codes(self, way: Mapping[str, str]) -> dict[str, CodeType]:
        texts = {"": self.exercise.body(way)} if "" in way else way
        return {step: compiled(textwrap.dedent(text)) for step, text in texts.items()}

    @cached_property
    def respelled(self) -> list[Fault]:
        """The typed mistakes beside another right spelling of another step."""
        return [
            Fault(self, f.name, f.message, {**f.replaced, step: compiled(text)}, {**f.texts, step: text})
            for step, texts in self.exercise.spellings.items()
            for text in texts
            for f in self.changes
            if not f.whole and step not in f.replaced
        ]

    def also_right(self) -> Iterator[list[Outcome]]:
        """Yield the outcomes of other right spellings: they differ where nothing depends on it, as in a row that no head reads."""
        for step, texts in self.exercise.spellings.items():
            for text in texts:
                with quiet():
                    yield [quick(self.exercise.program({step: text}), case.arguments) for case in self.cases]

    @cached_property
    def trees(self) -> dict[str, list[ast.stmt]]:
        return {step: ast.parse(textwrap.dedent(text)).body for step, text in self.exercise.steps.items()}

    @cached_property
    def words(self) -> Counter[str]:
        """The words of the solution, and of its other spellings; what has a method may be a function's first argument."""
        words = tokens("\n".join([*self.exercise.steps.values(), *chain(*self.exercise.spellings.values())]))
        owners = [pair[:-2] for pair in words if pair.endswith(" .")]
        arrays = [name for name in owners if name.isidentifier() and name not in modules_in(self.names)]
        return words + Counter(f"{a} {b}" for name in arrays for a, b in (("(", name), (name, ","), (name, ")")))

    def ingredients(self, variables: Sequence[str], names: Mapping[str, Any] | None = None) -> Ingredients:
        """Return what a body with these variables can borrow from the solution; `names` are those that it sees."""
        statements = [statement for body in self.trees.values() for statement in body]
        modules = modules_in({**self.names, **(names or {})}) - {*variables}
        return ingredients(statements, self.exercise.parameters, tuple(variables), modules)

    def pairs(self, faults: Sequence[Fault]) -> Iterator[Fault]:
        """Yield each two faults of different names as one; of one step, those that change different words of it."""
        for a, b in combinations([fault for fault in faults if not fault.whole], 2):
            shared = a.texts.keys() & b.texts.keys()
            both = {step: merged(self.right[step], a.texts[step], b.texts[step]) for step in shared}
            if a.name != b.name and all(both.values()):
                with suppress(SyntaxError):
                    replaced, texts = {**a.replaced, **b.replaced, **self._codes(both)}, {**a.texts, **b.texts, **both}
                    yield Fault(self, f"{a.name}; {b.name}", listed([a.message, b.message]), replaced, texts, (a, b))


bank_of = cache(Bank)
