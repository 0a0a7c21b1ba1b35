"""LAPACK beside answers that go wrong: it meets no NaN and no ∞, with which it may never end, and what it prints is lost.

It runs in C, where no limit on time reaches it.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

ROUTINES = getattr(np.linalg, "_umath_linalg", None)  # all of np.linalg calls LAPACK here
REAL = {name: routine for name, routine in vars(ROUTINES).items() if isinstance(routine, np.ufunc)} if ROUTINES else {}


@contextmanager
def finite_lapack() -> Iterator[None]:
    """Make NaN and ∞ a LinAlgError in `np.linalg`, however it was imported."""
    before = {name: getattr(ROUTINES, name) for name in REAL}
    for name, routine in GUARDED.items():
        setattr(ROUTINES, name, routine)
    try:
        yield
    finally:
        for name, routine in before.items():
            setattr(ROUTINES, name, routine)


def _guarded(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        for x in arguments:
            if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc" and not np.isfinite(x).all():
                raise np.linalg.LinAlgError("NaN or ∞ in a matrix that `np.linalg` is given")
        with _nothing_printed():
            return REAL[name](*arguments, **keywords)

    return call


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Send what C code prints nowhere; Python's own streams are others."""
    kept: dict[int, int] = {}
    with contextlib.suppress(OSError, AttributeError):  # no such streams, or no room for another
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            kept[stream] = os.dup(stream)
            os.dup2(nowhere, stream)
        os.close(nowhere)
    try:
        yield
    finally:
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)


GUARDED = {name: _guarded(name) for name in REAL}
