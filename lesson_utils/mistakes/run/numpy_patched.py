"""Arrays that an answer asks for: `np.empty` holds the same in each call, and nobody gets 10⁸ numbers.

What memory held before makes of `np.empty` another array each time. Then an answer that leaves some of it unwritten is right
on one day and wrong on the next, and no known mistake does the same.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

MOST = 3_000_000  # entries; the arrays of all cases have less than 10,000
EMPTY = {name: getattr(np, name) for name in ("empty", "empty_like")}
SIZED = {name: getattr(np, name) for name in ("empty", "zeros", "ones", "full", "eye", "identity", "tri", "arange")}


def _asked(name: str, arguments: tuple[Any, ...]) -> float:
    """How many entries; 0 if the arguments are odd, which NumPy will say better."""
    try:
        if name == "arange":
            start, stop, step = arguments if len(arguments) == 3 else (0, *arguments, 1)[-3:]
            return float((stop - start) / step)
        if name in ("eye", "identity", "tri"):
            return float(arguments[0]) * float((arguments[1] if len(arguments) > 1 else None) or arguments[0])
        return math.prod(float(n) for n in np.atleast_1d(arguments[0]))
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return 0


@contextmanager
def tamed(left: float = math.nan) -> Iterator[None]:
    """What `np.empty` makes holds `left`, until something is written; and sizes have an end."""
    thread = threading.get_ident()

    def instead(name: str) -> Callable[..., np.ndarray]:
        real = SIZED.get(name) or EMPTY[name]

        def call(*arguments: Any, **keywords: Any) -> np.ndarray:
            if threading.get_ident() != thread:
                return real(*arguments, **keywords)
            if name in SIZED and (entries := _asked(name, arguments)) > MOST:
                raise MemoryError(f"`np.{name}` is asked for {entries:,.0f} numbers")
            made = real(*arguments, **keywords)
            if name in EMPTY and made.dtype.kind in "fc":
                made.fill(left)
            elif name in EMPTY and made.dtype.kind in "biu":  # no NaN there: what no answer has, and no mask
                made.flat = np.arange(made.size) % 2 if made.dtype.kind == "b" else 99
            return made

        call.tamed = True  # type: ignore[attr-defined]
        return call

    before = {name: getattr(np, name) for name in EMPTY | SIZED}
    ours = {
        name: instead(name)
        for name, now in before.items()
        if now in (SIZED.get(name), EMPTY.get(name)) or hasattr(now, "tamed")  # what a learner has overwritten stays
    }
    vars(np).update(ours)
    try:
        yield
    finally:
        for name, function in ours.items():
            if getattr(np, name) is function:
                setattr(np, name, before[name])
