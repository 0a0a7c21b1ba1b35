"""Which sizes of an exercise's arguments belong together, read off its cases; arguments of other sizes and other numbers.

In every case of attention `Q.shape[-1]` equals `K.shape[-1]`: these are one size. `Q.shape[-2]` is another one.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise

Place = tuple[int, int]  # the number of the argument, and the axis counted from the end; axis 0: the number itself
Arguments = tuple[Any, ...]


def _is_size(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def sizes(arguments: Sequence[Any]) -> dict[Place, int]:
    """Every size that the arguments have, and the whole numbers among them."""
    found: dict[Place, int] = {}
    for i, x in enumerate(arguments):
        if isinstance(x, np.ndarray):
            found |= {(i, -j): x.shape[-j] for j in range(1, x.ndim + 1)}
        elif _is_size(x):
            found[i, 0] = x
    return found


class Axes:
    """What an exercise's cases say about its arguments."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise, self.names = exercise, exercise.parameters
        self.cases = [case.arguments for case in exercise.drawn]
        all_sizes = [sizes(arguments) for arguments in self.cases]
        places = sorted({p for found in all_sizes for p in found}, key=lambda p: (p[0], -p[1]))
        arrays = list(zip(*map(self._padded, self.cases), strict=True))
        self.kinds = [_kind(column) for column in arrays]
        dims = [{x.ndim for x in column if isinstance(x, np.ndarray) and x.ndim} for column in arrays]
        self.core = [min(d) if d else 0 for d in dims]  # axes behind the leading ones
        self.leads = [len(d) > 1 for d in dims]
        places = [p for p in places if -p[1] <= self.core[p[0]] or p[1] == 0]
        self.groups: list[set[Place]] = []
        for place in places:
            home = next((g for g in self.groups if all(self._one(place, other, all_sizes) for other in g)), None)
            if home is None:
                self.groups.append(home := set())
            home.add(place)

    def _padded(self, arguments: Arguments) -> list[Any]:
        return [*arguments, *[None] * (len(self.names) - len(arguments))]

    def _one(self, a: Place, b: Place, found: Sequence[Mapping[Place, int]]) -> bool:
        """Equal in every case, or 1 in a mask's axis, which is stretched then."""
        pairs = [(f[a], f[b]) for f in found if a in f and b in f]
        mask = self.kinds[a[0]] == "mask" or self.kinds[b[0]] == "mask"
        good = all(x == y or (mask and 1 in (x, y)) for x, y in pairs)
        return good and len({x for x, y in pairs if x == y}) > 1

    def word(self, place: Place) -> str:
        i, axis = place
        return f"`{self.names[i]}.shape[{axis}]`" if axis else f"`{self.names[i]}`"

    def named(self, group: set[Place]) -> str:
        """The group by its first array, or by the number that is given."""
        return self.word(min(group, key=lambda p: (p[1] != 0, p[0], -p[1])))

    def size(self, group: set[Place], arguments: Arguments) -> int | None:
        """How large, in these arguments; None if they do not agree, or say nothing."""
        here = sizes(arguments)
        found = {here[p] for p in group if p in here and not (self.kinds[p[0]] == "mask" and here[p] == 1)}
        return found.pop() if len(found) == 1 else None

    def draw(self, i: int, shape: tuple[int, ...], like: Any, rng: np.random.Generator) -> Any:
        """Numbers for argument i of the kind that the cases have."""
        kind = self.kinds[i]
        if kind == "mask":
            mask = rng.random(shape) < 0.5
            mask[..., :1] |= ~mask.any(axis=-1, keepdims=True)
            return mask
        if kind == "whole":
            top = int(like.max()) if like.size else 1
            return rng.integers(0, max(top, 1) + 1, size=shape).astype(like.dtype)
        made = rng.normal(size=shape)
        if kind == "positive":
            made = np.abs(made)
        if kind == "weights":
            made = np.exp(made) / np.exp(made).sum(axis=-1, keepdims=True)
        return made.astype(like.dtype if like.dtype.kind == "f" else float)

    def resized(
        self, arguments: Arguments, new: Mapping[Place, int], rng: np.random.Generator, lead: int = 0
    ) -> Arguments:
        """Arguments with other sizes in some places, filled anew; `lead`: with one leading axis more, of that size."""
        made = []
        for i, x in enumerate(arguments):
            if isinstance(x, np.ndarray) and self.kinds[i]:
                shape = [x.shape[-j] for j in range(x.ndim, 0, -1)]
                for j in range(1, x.ndim + 1):
                    if (i, -j) in new and not (self.kinds[i] == "mask" and x.shape[-j] == 1):
                        shape[-j] = new[i, -j]
                if lead and self.leads[i] and x.ndim:
                    shape.insert(0, lead)
                made.append(self.draw(i, tuple(shape), x, rng))
            else:
                made.append(new.get((i, 0), x) if _is_size(x) else x)
        return tuple(made)

    def equal_pairs(self, calls: Sequence[Arguments]) -> list[tuple[set[Place], set[Place]]]:
        """Sizes that are different things, and equal in each of the calls."""
        found = []
        for a, b in combinations(self.groups, 2):
            both = [(self.size(a, c), self.size(b, c)) for c in calls]
            known = [(x, y) for x, y in both if x is not None and y is not None]
            if known and all(x == y for x, y in known):
                found.append((a, b))
        return found


def _kind(column: Sequence[Any]) -> str:
    """What an argument is in the cases: "mask", "whole" numbers, "weights", "positive" or "real" ones; "" for no array."""
    arrays = [x for x in column if isinstance(x, np.ndarray)]
    if not arrays:
        return ""
    if all(x.dtype.kind == "b" for x in arrays):
        return "mask"
    if all(x.dtype.kind in "iu" for x in arrays):
        return "whole"
    if any(x.dtype.kind != "f" for x in arrays):
        return ""
    sums = [x.sum(axis=-1) for x in arrays if x.ndim and x.size]
    if all(x.size == 0 or (x.min() >= 0) for x in arrays):
        return "weights" if sums and all(np.allclose(s, 1, atol=1e-3) for s in sums) else "positive"
    return "real"


axes_of = cache(Axes)
