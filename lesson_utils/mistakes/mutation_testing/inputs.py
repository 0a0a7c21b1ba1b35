"""Why a test's inputs hide a bug: sizes that are equal, one sample only, zeros, saturation, Q = K, no mask …

Each reason is an experiment: one thing about the test's own inputs is changed, and then the bug gives another result than the
right function. A reason is given only if it holds in every call of the test.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.mutation_testing.axes import Arguments, axes_of
from lesson_utils.mistakes.mutation_testing.mutants import Bug
from lesson_utils.mistakes.run.sandbox import Outcome, TimeUp, quick, same, stopped

Change = Callable[[Arguments, np.random.Generator], Arguments | None]
CALLS, DRAWS = 3, 2  # of the test that are changed; how often numbers are drawn
OTHERS = (1, 2, 3, -1)  # a size is changed by so much, or doubled, or tripled


@dataclass(frozen=True)
class Reason:
    """What the inputs of a test have in common, and the bugs that show when it is changed."""

    name: str  # of the mistake, short
    text: str  # a sentence without its full stop
    bugs: tuple[Bug, ...]


def outcome(function: Callable[..., Any], arguments: Arguments) -> Outcome:
    try:
        with stopped(0.5, busy=8):
            return quick(function, arguments)
    except (TimeUp, SystemExit):
        return Outcome(timed_out=True)


def is_fine(result: Outcome) -> bool:
    """Can the right function do this at all?"""
    if result.error or result.timed_out:
        return False
    try:
        return all(np.isfinite(np.asarray(x, float)).all() for x in result.results())
    except (TypeError, ValueError):
        return False


def _arrays(arguments: Arguments) -> Iterator[np.ndarray]:
    return (x for x in arguments if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size)


class Experiments:
    """The experiments for one exercise and the calls of one test, from what is most particular to what is not."""

    def __init__(self, exercise: Exercise, calls: Sequence[Arguments]) -> None:
        self.exercise, self.axes, self.calls = exercise, axes_of(exercise), list(calls)
        self.right = exercise.program({})

    def all(self) -> Iterator[tuple[str, str, list[Change]]]:
        yield from self._equal_arrays()
        yield from self._single_arrays()
        yield from self._masks()
        yield from self._large_or_small()
        yield from self._any_others()  # what shows from here on is not due to the numbers
        yield from self._equal_sizes()
        yield from self._leading()
        yield from self._options()
        yield from self._sizes()
        yield from self._extremes()

    # --- Numbers ----------------------------------------------------------------------------------------------------

    def _fresh(self, i: int) -> Change:
        def change(a: Arguments, rng: np.random.Generator) -> Arguments | None:
            x = a[i]
            return (*a[:i], self.axes.draw(i, x.shape, x, rng), *a[i + 1 :]) if isinstance(x, np.ndarray) else None

        return change

    def _everywhere(self, i: int, holds: Callable[[np.ndarray], bool]) -> bool:
        found = [a[i] for a in self.calls if isinstance(a[i], np.ndarray)]
        return bool(found) and all(x.size > 1 and holds(x) for x in found)

    def _equal_arrays(self) -> Iterator[tuple[str, str, list[Change]]]:
        names, kinds = self.axes.names, self.axes.kinds
        for j in range(len(names)):
            for i in range(j):
                if kinds[i] and kinds[j] and all(_equal_and_varied(a[i], a[j]) for a in self.calls):
                    yield (
                        "equal arrays",
                        f"`{names[i]}` and `{names[j]}` are equal in every call; with numbers of its own in `{names[j]}`",
                        [self._fresh(j)],
                    )

    def _single_arrays(self) -> Iterator[tuple[str, str, list[Change]]]:
        for i, name in enumerate(self.axes.names):
            if self.axes.kinds[i] in ("", "mask"):
                continue
            for words, holds in SPECIAL.items():
                if (words != POSITIVE or self.axes.kinds[i] == "real") and self._everywhere(i, holds):
                    yield (
                        "special numbers",
                        f"`{name}` {words} in every call; with random numbers in it",
                        [self._fresh(i)],
                    )
                    break

    def _any_others(self) -> Iterator[tuple[str, str, list[Change]]]:
        for i, name in enumerate(self.axes.names):
            if any(isinstance(a[i], np.ndarray) for a in self.calls) and self.axes.kinds[i]:
                if self.axes.kinds[i] == "mask":
                    text = f"what `{name}` hides is special; with a random one"
                else:
                    text = f"the numbers in `{name}` are special ones; with random ones"
                yield "special numbers", text, [self._fresh(i)]
        if any(self.axes.kinds):
            yield (
                "special numbers",
                "the numbers in your inputs are special ones; with random numbers in all arrays",
                [lambda a, rng: self.axes.resized(a, {}, rng)],
            )

    def _masks(self) -> Iterator[tuple[str, str, list[Change]]]:
        axes = self.axes
        for i, name in enumerate(axes.names):
            if axes.kinds[i] != "mask":
                continue
            optional = any(len(c) <= i or c[i] is None for c in axes.cases)
            if optional and all(isinstance(a[i], np.ndarray) for a in self.calls):
                yield (
                    "always a mask",
                    f"`{name}` is given in every call; without it",
                    [lambda a, rng, i=i: (*a[:i], None, *a[i + 1 :])],  # type: ignore[misc]
                )
            if not all(x is None or (isinstance(x, np.ndarray) and x.all()) for x in (a[i] for a in self.calls)):
                continue
            given = any(isinstance(a[i], np.ndarray) for a in self.calls)
            words = "is True everywhere in every call" if given else "is not given in any call"

            def hide(a: Arguments, rng: np.random.Generator, i: int = i) -> Arguments | None:
                shape = tuple(
                    next((axes.size(g - {(i, -j)}, a) for g in axes.groups if (i, -j) in g and len(g) > 1), 1) or 1
                    for j in range(axes.core[i], 0, -1)
                )
                like = a[i] if isinstance(a[i], np.ndarray) else np.zeros(shape, bool)
                return (*a[:i], axes.draw(i, like.shape, like, rng), *a[i + 1 :])

            yield "no mask", f"`{name}` {words}; with some False in it", [hide]

    def _large_or_small(self) -> Iterator[tuple[str, str, list[Change]]]:
        sizes = [max((float(np.abs(x).max()) for x in _arrays(a)), default=0.0) for a in self.calls]
        if not sizes or not np.isfinite(sizes).all():
            return
        scaled: list[Change] = [lambda a, rng: _scaled(a, 1 / max((np.abs(x).max() for x in _arrays(a)), default=1.0))]
        if min(sizes) >= 8:
            yield (
                "saturated",
                f"the numbers in your inputs are large (up to {max(sizes):.3g}), so that softmax and its like are "
                "saturated; with numbers up to 1",
                scaled,
            )
        if 0 < max(sizes) <= 0.05:
            yield (
                "small numbers",
                f"the numbers in your inputs are small (below {max(sizes):.2g}); with numbers up to 1",
                scaled,
            )

    # --- Sizes ------------------------------------------------------------------------------------------------------

    def _other_sizes(self, group: set[tuple[int, int]]) -> list[Change]:
        def change(by: Callable[[int], int]) -> Change:
            def other(a: Arguments, rng: np.random.Generator) -> Arguments | None:
                n = self.axes.size(group, a)
                if n is None or not 0 < by(n) <= 64:
                    return None
                return self.axes.resized(a, dict.fromkeys(group, by(n)), rng)

            return other

        return [change(lambda n, d=d: n + d) for d in OTHERS] + [change(lambda n, f=f: n * f) for f in (2, 3)]  # type: ignore[misc]

    def _equal_sizes(self) -> Iterator[tuple[str, str, list[Change]]]:
        axes = self.axes
        for a, b in axes.equal_pairs(self.calls):
            both = sorted({n for c in self.calls if (n := axes.size(a, c)) is not None})
            what = "sizes" if any(place[1] for place in a | b) else "numbers"
            which = f"both {both[0]}" if len(both) == 1 else "the same"
            yield (
                "equal sizes",
                f"{axes.named(a)} and {axes.named(b)} are {which} in every call; with different {what}",
                [change for pair in zip(self._other_sizes(b), self._other_sizes(a), strict=True) for change in pair],
            )

    def _sizes(self) -> Iterator[tuple[str, str, list[Change]]]:
        axes = self.axes
        for group in axes.groups:
            found = {n for c in self.calls if (n := axes.size(group, c)) is not None}
            if len(found) == 1 and any(place[1] for place in group):
                n = found.pop()
                name = "a size of 1" if n == 1 else "one size"
                yield name, f"{axes.named(group)} is {n} in every call; with another size", self._other_sizes(group)

    def _leading(self) -> Iterator[tuple[str, str, list[Change]]]:
        axes = self.axes
        lead = [i for i, leads in enumerate(axes.leads) if leads and axes.kinds[i] not in ("", "mask")]
        if not lead:
            return
        most = max(
            (a[i].ndim - axes.core[i] for a in self.calls for i in lead if isinstance(a[i], np.ndarray)), default=0
        )
        samples = {
            n
            for a in self.calls
            for i in lead
            if isinstance(a[i], np.ndarray)
            for n in a[i].shape[: -axes.core[i] or None]
        }

        def more(sizes: tuple[int, ...]) -> Change:
            def change(a: Arguments, rng: np.random.Generator) -> Arguments | None:
                for n in sizes:
                    a = axes.resized(a, {}, rng, lead=n)
                return a

            return change

        if most == 0 or samples <= {1}:
            yield (
                "one sample",
                "no call has more than one sample; with a batch of them (a leading axis)",
                [more((2,)), more((3,))],
            )
        if (
            most < 2
            and max(x.ndim - axes.core[i] for c in axes.cases for i in lead if isinstance(x := c[i], np.ndarray)) > 1
        ):
            yield (
                "one leading axis",
                "no call has two leading axes; with (2, 3) of them, as batch and heads are",
                [more((3, 2)), more((2,))],
            )

    # --- Options, and what is rare ----------------------------------------------------------------------------------

    def _options(self) -> Iterator[tuple[str, str, list[Change]]]:
        for i, name in enumerate(self.axes.names):
            used = {a[i] for a in self.calls if a[i] is None or isinstance(a[i], int | float)}
            if len(used) != 1 or not all(a[i] is None or isinstance(a[i], int | float) for a in self.calls):
                continue
            value = used.pop()
            others = {c[i] for c in self.axes.cases if len(c) > i and isinstance(c[i], int | float)} - {value}
            changes: list[Change] = [
                lambda a, rng, i=i, o=o: (*a[:i], o, *a[i + 1 :])  # type: ignore[misc]
                for o in sorted(others, key=lambda o: (abs(o - (value or 0)), o))
            ]
            yield "one setting", f"`{name}` is {value} in every call; with another", changes

    def _extremes(self) -> Iterator[tuple[str, str, list[Change]]]:
        """Large numbers, and rows that hide everything, where the exercise's cases have them."""
        for i, name in enumerate(self.axes.names):
            usual = [c[i] for c in self.axes.cases if len(c) > i and isinstance(c[i], np.ndarray) and c[i].size]
            if self.axes.kinds[i] == "real":
                there = any(np.abs(x[np.isfinite(x)]).max(initial=0) > 500 for x in usual)
                if there and self._everywhere(i, lambda x: bool(np.abs(x).max() < 100)):
                    moves = (lambda x: x * 5000, lambda x: x + 20000, lambda x: x - 30000, _rows_apart)
                    changes: list[Change] = [lambda a, rng, i=i, m=m: _with(a, i, m) for m in moves]  # type: ignore[misc]
                    yield (
                        "no large numbers",
                        f"no number in `{name}` is large; with some above 1000",
                        changes,
                    )
            elif self.axes.kinds[i] == "mask":
                there = any(not x.any(axis=-1).all() for x in usual)
                if there and self._everywhere(i, lambda x: bool(x.any(axis=-1).all())):
                    yield (
                        "no empty row",
                        f"every row of `{name}` leaves something to see; with a row that hides everything",
                        [lambda a, rng, i=i: _with(a, i, _first_row_hidden)],  # type: ignore[misc]
                    )

    # --- What shows? --------------------------------------------------------------------------------------------------

    def shows(self, bug: Bug, changes: Sequence[Change]) -> bool:
        """Does the bug give another result than the right function, once a call of the test is changed?"""
        for a in self.calls[:CALLS]:
            for change in changes:
                for draw in range(DRAWS):
                    try:
                        other = change(a, np.random.default_rng(draw))
                    except (ValueError, TypeError, IndexError):
                        other = None
                    if other is None:
                        break
                    wanted = outcome(self.right, other)
                    if not is_fine(wanted):
                        break
                    if not same(outcome(bug.function, other), wanted):
                        return True
        return False


def _equal_and_varied(a: Any, b: Any) -> bool:
    return _equal(a, b) and bool((a != a.flat[0]).any())


def _equal(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size > 1 and np.array_equal(a, b)


def _scaled(a: Arguments, factor: float) -> Arguments:
    return tuple(x * x.dtype.type(factor) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in a)


def _with(a: Arguments, i: int, change: Callable[[np.ndarray], np.ndarray]) -> Arguments | None:
    return (*a[:i], change(a[i]), *a[i + 1 :]) if isinstance(a[i], np.ndarray) else None


POSITIVE = "holds no negative number"
SPECIAL: dict[str, Callable[[np.ndarray], bool]] = {
    "holds only zeros": lambda x: not x.any(),
    "holds one number again and again": lambda x: bool((x == x.flat[0]).all()),
    "has equal rows": lambda x: x.ndim > 1 and x.shape[-2] > 1 and bool((x == x[..., :1, :]).all()),
    "has equal columns": lambda x: x.ndim > 1 and x.shape[-1] > 1 and bool((x == x[..., :1]).all()),
    "is symmetric": lambda x: x.ndim > 1 and _equal(x, x.swapaxes(-1, -2)),
    POSITIVE: lambda x: bool((x >= 0).all()),
}


def _rows_apart(x: np.ndarray) -> np.ndarray:
    return x + 20000 * np.arange(x.shape[-2])[:, None] if x.ndim > 1 else x


def _first_row_hidden(mask: np.ndarray) -> np.ndarray:
    return mask & (np.arange(mask.shape[-2])[:, None] > 0) if mask.ndim > 1 else np.zeros_like(mask)


def reasons(exercise: Exercise, calls: Sequence[Arguments], bugs: Sequence[Bug]) -> list[Reason]:
    """Why the calls do not show the bugs; each bug under the first reason that holds."""
    experiments, left, found = Experiments(exercise, calls), list(bugs), []
    for name, text, changes in experiments.all():
        if not left:
            break
        if shown := [bug for bug in left if experiments.shows(bug, changes)]:
            would = "this one" if len(shown) == 1 else "these"
            found.append(Reason(name, f"{text}, {would} would show", tuple(shown)))
            left = [bug for bug in left if bug not in shown]
    return found
