"""What each known mistake of an exercise does in each case: the typed changes, and the slips that the machine makes."""

import ast
import textwrap
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import combinations
from types import CodeType
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.program import Program, code_of, compiled, expressions
from lesson_utils.mistakes.recognise.learner_code import ingredients, mutant_words
from lesson_utils.mistakes.recognise.tree_edits import Edit, edits
from lesson_utils.mistakes.run.sandbox import Outcome, plain, quick, quiet, same

Sketch = tuple[Any, float]


def sketch(outcome: Outcome) -> Sketch:
    """Few numbers that differ where outcomes do, to find the same one among hundreds."""
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


def alike(a: Sketch, b: Sketch) -> bool:
    return a[0] == b[0] and abs(a[1] - b[1]) <= 2e-3 + 2e-3 * abs(b[1])


class Known:
    """One way to go wrong, and its outcome in each case, found out when asked for."""

    def __init__(
        self,
        bank: "Bank",
        name: str,
        message: str | Edit,
        replaced: Mapping[str, CodeType | None],
        texts: Mapping[str, str] | None = None,
        parts: tuple["Known", ...] = (),
    ) -> None:
        self.bank, self.name, self.replaced, self.texts, self.parts = bank, name, replaced, texts or {}, parts
        self._message, self._outcomes = message, dict[int, Outcome]()

    @property
    def message(self) -> str:
        if len(self.parts) > 1:
            lines = "\n".join(f"{n}. {known.message}" for n, known in enumerate(self.parts, 1))
            return f"Two things to mend.\n{lines}"
        return self._message if isinstance(self._message, str) else mutant_words(self._message)

    @property
    def slip(self) -> Edit | None:
        """The machine's edit, of a mistake that nobody typed."""
        return None if isinstance(self._message, str) else self._message

    @property
    def text(self) -> str:
        """The answer that makes the mistake, as typed."""
        return self.bank.exercise.body(self.texts)

    @property
    def whole(self) -> bool:
        return "" in self.replaced

    @cached_property
    def program(self) -> Program:
        replaced = self.replaced
        codes = [replaced[""]] if self.whole else [replaced.get(step, code) for step, code in self.bank.codes.items()]
        return Program([code for code in codes if code], self.bank.names, self.bank.exercise.parameters)

    def outcome(self, i: int) -> Outcome:
        if i not in self._outcomes:
            self._outcomes[i] = quick(self.program, self.bank.cases[i].arguments)
        return self._outcomes[i]

    def sketch(self, i: int) -> Sketch:
        """Kept for pairs, too, which themselves are not: of the next wrong answer they are asked again."""
        key = (i, *map(id, self.parts or (self,)))
        if key not in self.bank.sketches:
            self.bank.sketches[key] = sketch(self.outcome(i))
        return self.bank.sketches[key]


class Bank:
    """The known mistakes of one exercise."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise, self.cases, self.names = exercise, exercise.drawn, exercise.names()
        self.codes = {step: compiled(textwrap.dedent(text)) for step, text in exercise.steps.items()}
        with quiet():
            self.wanted = [quick(exercise.right, case.arguments) for case in self.cases]
        self.sketches: dict[tuple[int, ...], Sketch] = {}
        self._indices: dict[int, dict[Any, list[tuple[float, Known]]]] = {}

    @cached_property
    def changes(self) -> list[Known]:
        found = []
        for mistake in self.exercise.mistakes:
            for way in mistake.ways:
                if "" in way:
                    replaced: dict[str, CodeType | None] = {"": compiled(self.exercise.body(way))}
                else:
                    replaced = {
                        step: compiled(textwrap.dedent(text)) if text.strip() else None for step, text in way.items()
                    }
                found.append(Known(self, mistake.name, mistake.message, replaced, way))
        return found

    @cached_property
    def respelled(self) -> list[Known]:
        """The changes beside another right spelling of another step."""
        found = []
        for step, texts in self.exercise.spellings.items():
            for text in texts:
                for k in self.changes:
                    if not k.whole and step not in k.replaced:
                        replaced = {**k.replaced, step: compiled(text)}
                        found.append(Known(self, k.name, k.message, replaced, {**k.texts, step: text}))
        return found

    @cached_property
    def trees(self) -> dict[str, list[ast.stmt]]:
        return {step: ast.parse(textwrap.dedent(text)).body for step, text in self.exercise.steps.items()}

    @cached_property
    def mutants(self) -> list[Known]:
        """The solution with one slip, in each place and of each kind."""
        with quiet():
            return list(self._mutants())

    def _mutants(self) -> Iterator[Known]:
        everything = [statement for body in self.trees.values() for statement in body]
        stored = [n.id for n in expressions(everything) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        names = tuple(dict.fromkeys((*self.exercise.parameters, *stored)))
        what = ingredients(everything, self.exercise.parameters, names)
        for step, body in self.trees.items():
            for add in (False, True):
                for edit in edits(body, what, add=add):
                    if edit.kind == "arithmetic":  # nobody doubles a term by accident
                        continue
                    try:
                        if isinstance(edit.parent, ast.Module):
                            code = code_of(edit.new) if edit.new else None  # type: ignore[arg-type]
                        else:
                            with edit.applied():
                                code = code_of(body)
                    except (SyntaxError, ValueError, TypeError):
                        continue
                    yield Known(self, "", edit, {step: code})

    def together(self, *knowns: Known) -> Known:
        """All of these mistakes at once."""
        replaced = {step: code for known in knowns for step, code in known.replaced.items()}
        name = "; ".join(known.name for known in knowns if known.name)
        return Known(self, name, "", replaced, {s: t for known in knowns for s, t in known.texts.items()}, knowns)

    def pairs(self, knowns: Sequence[Known]) -> Iterator[Known]:
        for a, b in combinations([known for known in knowns if not known.whole], 2):
            if a.name != b.name and not a.replaced.keys() & b.replaced.keys():
                yield self.together(a, b)

    def index(self, i: int) -> dict[Any, list[tuple[float, Known]]]:
        """The typed mistakes by their sketch in case i."""
        if i not in self._indices:
            found = defaultdict(list)
            for known in self.changes:
                key, number = known.sketch(i)
                if known.outcome(i).is_telling():
                    found[key].append((number, known))
            self._indices[i] = {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()}
        return self._indices[i]

    def near(self, i: int, wanted: Sketch) -> Iterable[Known]:
        """The typed mistakes that may do in case i what `wanted` is the sketch of."""
        rows = self.index(i).get(wanted[0], [])
        slack = 2e-3 + 2e-3 * abs(wanted[1])
        for number, known in rows[bisect_left(rows, wanted[1] - slack, key=lambda row: row[0]) :]:
            if number > wanted[1] + slack:
                return
            yield known


bank_of = cache(Bank)


def agree(a: Outcome, b: Outcome) -> bool | None:
    """The same? None where that can't be told from an error: in a special case, spellings of one mistake differ so."""
    return same(a, b) or (None if a.error or b.error else False)
