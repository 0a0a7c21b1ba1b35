"""What a test's asserts look at: found by giving the test results that are wrong in one way, and seeing whether it notices."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.mutation_testing.inputs import Reason, outcome
from lesson_utils.mistakes.mutation_testing.mutants import Bug
from lesson_utils.mistakes.mutation_testing.spy import After, Call, Run, key, nonsense, run
from lesson_utils.mistakes.run.sandbox import Outcome, same

MAGNIFIED = 1000.0  # errors so many times as large tell "not looked at" from "let pass"
ENTRIES, SECONDS = 24, 1.0  # how many entries are tried, and for how long


class Looks:
    """Runs one test on right results that were made wrong."""

    def __init__(
        self, test: Callable[..., Any], exercise: Exercise, right: Run, asserts: Sequence[tuple[int, str]] | None
    ) -> None:
        self.test, self.exercise, self.right = test, exercise, right
        self.asserts = asserts or ()  # lines and texts
        self.has_none = asserts is not None and not asserts
        self.function = exercise.program({})

    def passes(self, after: After) -> bool:
        return run(self.test, self.exercise, self.function, after).passed

    def blind(self) -> bool:
        """Does it pass random numbers, of the right shapes?"""
        return self.passes(nonsense)

    def compares_with_itself(self) -> bool:
        """Has every call a twin, with the same arguments?"""
        keys = [key(call.arguments) for call in self.right.calls]
        return len(keys) > 1 and all(keys.count(k) > 1 for k in keys)

    def reached(self) -> bool:
        """Is any of its asserts executed?"""
        lines = {line for line, _ in self.asserts}
        if not lines or sys.gettrace() is not None:
            return True
        file, seen = self.test.__code__.co_filename, set[int]()

        def note(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename != file:
                return None
            if event == "line":
                seen.add(frame.f_lineno)
            return note

        note.ours = True  # type: ignore[attr-defined]
        sys.settrace(note)
        try:
            run(self.test, self.exercise, self.function)
        finally:
            sys.settrace(None)
        return bool(lines & seen)

    def only_sums(self) -> bool:
        """Does it pass results whose entries have changed places?"""

        def mix(value: Any, arguments: Sequence[Any], n: int) -> Any:
            def one(x: Any) -> Any:
                if not isinstance(x, np.ndarray) or x.size < 2:
                    return x
                order = np.random.default_rng(key(arguments)).permutation(x.size)
                return x.ravel()[order].reshape(x.shape)

            return tuple(map(one, value)) if isinstance(value, tuple) else one(value)

        return self.passes(mix)

    def unseen(self) -> list[int]:
        """The results that may hold anything."""
        if len(self.exercise.returns) == 1:
            return []

        def only(i: int) -> After:
            def change(value: Any, arguments: Sequence[Any], n: int) -> Any:
                other = nonsense(value, arguments, n)
                if not isinstance(value, tuple):
                    return value
                return tuple(o if j == i else v for j, (v, o) in enumerate(zip(value, other, strict=True)))

            return change

        return [i for i in range(len(self.exercise.returns)) if self.passes(only(i))]

    def lets_pass(self, result: int, gap: float) -> bool:
        """Does it pass a result with errors of this size all over?"""

        def shake(value: Any, arguments: Sequence[Any], n: int) -> Any:
            values = list(_results(value))
            x = np.asarray(values[result])
            if x.dtype.kind != "f":
                return value
            errors = gap * np.random.default_rng(key(arguments)).uniform(-1, 1, size=x.shape)
            values[result] = (
                (x + errors).astype(x.dtype) if isinstance(values[result], np.ndarray) else float(x + errors)
            )
            return tuple(values) if isinstance(value, tuple) else values[0]

        return bool(np.isfinite(gap)) and self.passes(shake)

    def share(self, result: int) -> tuple[int, int]:
        """Of so many numbers of a result that were changed, one at a time, so many were noticed."""
        places = [
            (n, i)
            for n, call in enumerate(self.right.calls)
            if call.error is None
            for i in range(np.asarray(_results(call.value)[result]).size)
        ]
        chosen = [places[int(k)] for k in np.linspace(0, len(places) - 1, min(ENTRIES, len(places)))] if places else []
        noticed, tried, end = 0, 0, time.process_time() + SECONDS
        for number, entry in chosen:
            if time.process_time() > end:
                break

            def change(value: Any, arguments: Sequence[Any], n: int, number: int = number, entry: int = entry) -> Any:
                twin = n < len(self.right.calls) and key(arguments) == key(self.right.calls[number].arguments)
                if not twin:
                    return value
                values = list(_results(value))
                a = np.array(values[result])
                if entry < a.size:
                    a.flat[entry] = not a.flat[entry] if a.dtype.kind == "b" else a.flat[entry] + 1
                values[result] = a if isinstance(values[result], np.ndarray) else a.item()
                return tuple(values) if isinstance(value, tuple) else values[0]

            tried += 1
            noticed += not self.passes(change)
        return noticed, tried


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def differences(call: Call, bug: Bug) -> list[tuple[int, float]] | None:
    """Which results of a call the bug changes, and by how much at most; None for an error, inf for another shape."""
    wrong = outcome(bug.function, call.arguments)
    if wrong.error or wrong.timed_out:
        return None
    ours, theirs = _results(call.value), wrong.results()
    if len(ours) != len(theirs):
        return [(i, np.inf) for i in range(len(ours))]
    found = []
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if not same(Outcome(x), Outcome(y)):
            a, b = np.asarray(x), np.asarray(y)
            if a.shape == b.shape and a.dtype.kind in "fiub" and b.dtype.kind in "fiub":
                gap = np.abs(a.astype(float) - b.astype(float))
                found.append((i, float(gap.max()) if np.isfinite(gap).all() else np.inf))
            else:
                found.append((i, np.inf))
    return found


def shown(calls: Sequence[Call], bug: Bug) -> dict[int, float] | None:
    """What the bug changes in the results of all calls: result -> how much at most. Empty: nothing. None: errors only."""
    found: dict[int, float] = {}
    errors = 0
    for call in calls:
        if call.error is not None:
            continue
        gaps = differences(call, bug)
        errors += gaps is None
        for i, gap in gaps or ():
            found[i] = max(gap, found.get(i, 0.0))
    return None if errors and not found else found


NO_ASSERT = "There is no `assert` in your test: it fails only if the function raises an error. Say what must hold, as in `assert np.allclose(output, expected)`"
OTHERWISE = "Compare with numbers that you computed in another way"
ITSELF = f"The function is compared with itself: every call has a twin with the same arguments, and what is wrong in one is wrong in the other. {OTHERWISE}"
NOT_REACHED = "No `assert` in your test is ever reached: it stands in a function that is never called, behind a `return`, or in a loop over nothing"
NO_NUMBERS = f"No assert looks at the numbers that come back: results of the right shapes, filled with random numbers, pass, too. {OTHERWISE}"
ONLY_SUMS = (
    "Results whose entries have changed places pass, too: your asserts look at what does not depend on the order, as a sum, a mean or a maximum. "
    "Compare entry by entry"
)


def reasons(looks: Looks, shows: dict[Bug, dict[int, float] | None]) -> list[Reason]:
    """Why bugs pass that show on the test's inputs; each under the first reason that holds."""
    left, found = list(shows), list[Reason]()
    names = [f"`{name}`" for name in looks.exercise.returns]

    def give(name: str, text: str, bugs: Sequence[Bug]) -> None:
        if bugs:
            found.append(Reason(name, text, tuple(bugs)))
            left[:] = [bug for bug in left if bug not in bugs]

    raises = [b for b in left if shows[b] is None]
    give("swallows errors", f"{_these(raises)} an error on your inputs, and your test goes on all the same", raises)
    if left and looks.blind():
        if looks.has_none:
            give("no assert", NO_ASSERT, left)
        elif not looks.reached():
            give("never reached", NOT_REACHED, left)
        elif looks.compares_with_itself():
            give("its own reference", ITSELF, left)
        else:
            give("only shapes", NO_NUMBERS, left)
        return found
    unseen = looks.unseen() if left else []
    for bugs, words in (
        ([b for b in left if set(shows[b] or ()) <= set(unseen)], " or ".join(names[i] for i in unseen)),
    ):
        give("a result not looked at", f"No assert looks at the numbers in {words}: random ones pass, too", bugs)
    if left and looks.only_sums():
        give("only a sum", ONLY_SUMS, left)
    for i, name in enumerate(names):
        mine = {b: gaps[i] for b in left if (gaps := shows[b] or {}) and max(gaps, key=gaps.__getitem__) == i}
        near = [b for b, gap in mine.items() if looks.lets_pass(i, gap) and not looks.lets_pass(i, MAGNIFIED * gap)]
        text = f"{name} is {_off(mine, near)} on your inputs, and your asserts let errors of that size pass"
        give("lets errors pass", text, near)
        rest = [b for b in mine if b not in near]
        if rest:
            noticed, tried = looks.share(i)
            few = (
                f" Of {tried} numbers in {name} that were changed, one at a time, it noticed {noticed}."
                if noticed < tried
                else ""
            )
            text = f"{name} is {_off(mine, rest)} on your inputs, and what your asserts ask is true all the same.{few} {OTHERWISE}"
            give("too narrow", text, rest)
    return found


def _these(bugs: Sequence[Bug]) -> str:
    return "This one raises" if len(bugs) == 1 else "These raise"


def _off(sizes: Mapping[Bug, float], bugs: Sequence[Bug]) -> str:
    """By how much a result is off, of one bug or of several."""
    gaps = sorted({sizes[bug] for bug in bugs})
    finite = [gap for gap in gaps if np.isfinite(gap)]
    if not finite:
        return "of another shape, or not finite,"
    gaps, other = finite, ", or of another shape," if len(finite) < len(gaps) else ""
    few = f"{gaps[0]:.2g}" if len(gaps) == 1 else f"{gaps[0]:.2g} to {gaps[-1]:.2g}"
    return f"off by {few}{other}"
