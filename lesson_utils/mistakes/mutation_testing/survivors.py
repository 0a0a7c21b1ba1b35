"""One test, run on the right function, on other right ones, and on every bug; and why bugs survive."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.mutation_testing import assertions, inputs
from lesson_utils.mistakes.mutation_testing.inputs import Reason
from lesson_utils.mistakes.mutation_testing.mutants import Bug, bugs_of
from lesson_utils.mistakes.mutation_testing.spy import After, Run, key, otherwise_rounded, run
from lesson_utils.mistakes.mutation_testing.weak_asserts import Rewrite, asserts, function_of, rewrites
from lesson_utils.mistakes.recognise.learner_code import LearnerCode, learner_code
from lesson_utils.mistakes.recognise.search import Clock
from lesson_utils.mistakes.run.sandbox import mend_modules

SEEDS = (0, 1, 2)  # a test that draws other numbers each time is run so often on each bug
AGAIN = 12  # and so often on the right function, to see whether it fails at times
CALLS = 40  # of a test that are looked at
SECONDS = 10.0  # of computing; after that no further reason is looked for in the test's lines


class Hunt:
    """What one test does."""

    def __init__(self, test: Callable[..., Any], exercise: Exercise, first: Run) -> None:
        self.test, self.exercise, self.first = test, exercise, first
        self.right = exercise.program({})
        self.mine: LearnerCode | None = learner_code(test)
        self.clock = Clock(SECONDS)

    def others(self) -> Iterator[tuple[str, Run]]:
        """The test on other functions that are right: what they are, and how it went."""
        yield "spelled otherwise", run(self.test, self.exercise, self.right)
        for step, texts in self.exercise.spellings.items():
            for text in texts:
                yield "spelled otherwise", run(self.test, self.exercise, self.exercise.program({step: text}))
        yield "rounded otherwise", run(self.test, self.exercise, self.exercise.right, otherwise_rounded)

    @cached_property
    def draws(self) -> bool:
        """Does it draw other numbers each time?"""
        again = run(self.test, self.exercise, self.exercise.right, seed=1)
        return [key(c.arguments) for c in again.calls] != [key(c.arguments) for c in self.first.calls]

    def failures(self) -> int:
        """How often the right function fails, of AGAIN runs."""
        return sum(not run(self.test, self.exercise, self.exercise.right, seed=n).passed for n in range(2, 2 + AGAIN))

    @cached_property
    def runs(self) -> dict[Bug, list[Run]]:
        seeds = SEEDS if self.draws else SEEDS[:1]
        return {b: [run(self.test, self.exercise, b.function, seed=s) for s in seeds] for b in bugs_of(self.exercise)}

    @property
    def found(self) -> list[Bug]:
        return [bug for bug, runs in self.runs.items() if not any(r.passed for r in runs)]

    @property
    def at_times(self) -> list[Bug]:
        """Found in some runs only."""
        return [
            bug for bug, runs in self.runs.items() if any(r.passed for r in runs) and not all(r.passed for r in runs)
        ]

    @property
    def survivors(self) -> list[Bug]:
        return [bug for bug, runs in self.runs.items() if all(r.passed for r in runs)]

    # --- Why? -------------------------------------------------------------------------------------------------------

    @cached_property
    def base(self) -> Run:
        return run(self.test, self.exercise, self.right)

    @cached_property
    def shows(self) -> dict[Bug, dict[int, float] | None]:
        """What each survivor changes in the results that the test got."""
        return {bug: assertions.shown(self.base.calls[:CALLS], bug) for bug in self.survivors}

    def returned(self) -> list[Bug]:
        """Survivors for which the test returned False where it returned True for the right function."""
        if not _is_truth(self.first.outcome.value, True):
            return []
        return [bug for bug in self.survivors if _is_truth(self.runs[bug][0].outcome.value, False)]

    def rewritten(self) -> Iterator[tuple[Rewrite, list[Bug]]]:
        """Edits of the test with which the right function still passes, and survivors are found."""
        if self.mine is None:
            return
        for rewrite, tree in rewrites(self.mine):
            test = function_of(self.mine, tree)
            if test is None or self.clock.is_over() or not self._right_passes(test):
                continue
            if bugs := [b for b in self.survivors if not run(test, self.exercise, b.function).passed]:
                yield rewrite, bugs

    def too_tight(self) -> str:
        """Why the right function fails: for no more than rounding; else ""."""
        for rewrite, tree in rewrites(self.mine, loosened=True) if self.mine else ():
            test = function_of(self.mine, tree) if self.mine else None
            if test is not None and self._right_passes(test):
                line, before, after = rewrite.lines[0]
                number = (self.mine.first_line if self.mine else 1) + line - 1
                return f"Line {number}, `{before}`: {rewrite.words.format(after=after)}."
        return ""

    def _right_passes(self, test: Callable[..., Any]) -> bool:
        ways: list[tuple[Any, After | None]] = [(self.exercise.right, None), (self.right, None)]
        ways.append((self.exercise.right, otherwise_rounded))
        return all(run(test, self.exercise, function, after).passed for function, after in ways)

    def reasons(self) -> list[Reason]:
        """Why the survivors survive; each once, under the reason found first."""
        found: list[Reason] = []
        left = list(self.survivors)

        def give(name: str, text: str, bugs: Sequence[Bug]) -> None:
            if mine := [bug for bug in bugs if bug in left]:
                found.append(Reason(name, f"{text[0].upper()}{text[1:]}", tuple(mine)))
                left[:] = [bug for bug in left if bug not in mine]

        give(
            "returns",
            "your test returns False, and nobody looks at what a test returns. Write `assert` in place of `return`",
            self.returned(),
        )
        for rewrite, bugs in self.rewritten():
            line, before, after = rewrite.lines[0]
            number = (self.mine.first_line if self.mine else 1) + line - 1
            give(rewrite.name, f"line {number}, `{before}`: {rewrite.words.format(after=after)}", bugs)
        mend_modules()
        visible = {bug: self.shows[bug] for bug in left if self.shows[bug] != {}}
        if visible:
            lines = None if self.mine is None else asserts(self.mine)
            for reason in assertions.reasons(assertions.Looks(self.test, self.exercise, self.base, lines), visible):
                give(reason.name, reason.text, reason.bugs)
        calls = [call.arguments for call in self.base.calls[:CALLS] if call.error is None]
        hidden = [bug for bug in left if self.shows[bug] == {}]
        if calls and hidden:
            for reason in inputs.reasons(self.exercise, calls, hidden):
                give(reason.name, reason.text, reason.bugs)
        if left and not calls:
            give("only errors", "every call makes the right function raise an error, so no result is looked at", left)
        for label in dict.fromkeys(bug.labels[0] for bug in left):
            give(
                "inputs",
                f"on your inputs the result is right all the same. It is wrong, for instance, on {label}",
                [b for b in left if b.labels[0] == label],
            )
        return found


def _is_truth(value: Any, which: bool) -> bool:
    """Is it True (or False), or an array of such, as tests return it by mistake?"""
    try:
        a = np.asarray(value)
        return a.dtype.kind == "b" and a.size > 0 and bool(a.all()) == which
    except (TypeError, ValueError):
        return False
