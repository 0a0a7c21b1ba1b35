"""Nearness of results to the right ones: which of two mistakes is mended shows in this."""

from collections.abc import Iterator

import numpy as np

from lesson_utils.mistakes.run.outcome import Outcome


def _pairs(outcome: Outcome, wanted: Outcome) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each result that can be compared, beside what was expected."""
    for got, want in zip(outcome.results(), wanted.results(), strict=False):
        a, b = np.asarray(got), np.asarray(want)
        if a.shape == b.shape and a.dtype.kind in "biuf":
            yield a.astype(float), b.astype(float)


def right_entries(outcome: Outcome, wanted: Outcome) -> int:
    """Count the entries that are right."""
    return sum(int(np.isclose(a, b, equal_nan=True).sum()) for a, b in _pairs(outcome, wanted))


def distance(outcome: Outcome, wanted: Outcome) -> float:
    """Return how far results are from the right ones: of each, the share of wrong entries and the relative error.

    Another shape counts as 3; a row of another length counts less, if it begins or ends as it should.
    """
    total = 3.0 * len(wanted.results())
    with np.errstate(all="ignore"):
        for a, b in _pairs(outcome, wanted):
            off = np.where(a == b, 0, np.abs(a - b) / (np.abs(a) + np.abs(b)))
            total += np.mean(np.nan_to_num(off, nan=1.0)) + np.mean(~np.isclose(a, b)) - 3 if a.size else -3
        for got, want in zip(outcome.results(), wanted.results(), strict=False):
            total -= _share_of_ends(np.asarray(got), np.asarray(want))
    return float(total)


def _share_of_ends(a: np.ndarray, b: np.ndarray) -> float:
    """Return which share of two rows of different lengths is the same at their beginnings and ends."""
    if a.ndim != 1 or b.ndim != 1 or a.size == b.size or not a.size or a.dtype.kind not in "biuf":
        return 0.0
    short = min(a.size, b.size)
    front, back = np.isclose(a[:short], b[:short]), np.isclose(a[-short:], b[-short:])[::-1]
    same = min(short, sum(int(np.cumprod(side).sum()) for side in (front, back)))
    return same / max(a.size, b.size)
