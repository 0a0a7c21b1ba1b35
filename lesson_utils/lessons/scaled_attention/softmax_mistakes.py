"""The ways to get a softmax wrong, one at a time and two at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils._checks import Array
from lesson_utils.exercises.checker import Misconception, together

Shift = Callable[[Array], Array]  # what is done to the scores before exp
ROWS: dict[str, Any] = {"axis": -1, "keepdims": True}  # the right arguments of max and sum


def _softmax(shift: Shift, total: dict[str, Any] = ROWS) -> Callable[[Array], Array]:
    return lambda x: _normalised(np.exp(shift(x)), total)


def _normalised(exponentials: Array, total: dict[str, Any] = ROWS) -> Array:
    return exponentials / exponentials.sum(**total)


# Each can happen in `max`, in `sum`, or in both.
_CALLS: list[tuple[str, dict[str, Any], str]] = [
    (
        "over everything",
        {},
        "You call {} without an axis, that is, over the whole array. Each row is a set of weights of its own: pass "
        "`axis=-1, keepdims=True`.",
    ),
    (
        "without keepdims",
        {"axis": -1},
        "You call {} without `keepdims=True`. That drops the last axis, and NumPy lines up what is left with the columns: "
        "an error, or, in a square array, wrong numbers without one. Write `axis=-1, keepdims=True`.",
    ),
    (
        "over axis 0",
        {"axis": 0, "keepdims": True},
        "You call {} with `axis=0` (Python's own `sum(x)` does the same), down the columns. Each row is a set of weights of "
        "its own: take the last axis, `axis=-1`.",
    ),
    (
        "over axis 1",
        {"axis": 1, "keepdims": True},
        "You call {} with `axis=1`, which is the last axis only where there are two; a single row has none. The last one is "
        "always `axis=-1`.",
    ),
    (
        "over axis 1 without keepdims",
        {"axis": 1},
        "You call {} with `axis=1` and without `keepdims=True`. The last axis is always `axis=-1`, and only with "
        "`keepdims=True` does the result line up with the rows.",
    ),
    (
        "over axis -2",
        {"axis": -2, "keepdims": True},
        "You call {} with `axis=-2`, the last axis but one; a single row has none. Softmax runs over the keys, the last axis: "
        "`axis=-1`.",
    ),
]


def _minus_max(arguments: dict[str, Any]) -> Shift:
    return lambda x: x - x.max(**arguments)


_right = _minus_max(ROWS)

# The name, the message, and what is done to the scores in place of subtracting each row's maximum.
_SHIFTS: list[tuple[str, str, list[Shift]]] = [
    (
        "not stable",
        "`np.exp` of a large score overflows: exp(10 000) is ∞ in floats, and ∞ / ∞ is NaN. Subtract each row's maximum "
        "first, `x - x.max(axis=-1, keepdims=True)`; the weights stay the same.",
        [lambda x: x],
    ),
    (
        "max over everything",
        "You subtract the maximum of the whole array. In a row far below it every exponential becomes 0, and 0 / 0 is NaN. "
        "Each row needs its own maximum: `x.max(axis=-1, keepdims=True)`.",
        [_minus_max({})],
    ),
    *((f"max {name}", text.format("`max`"), [_minus_max(a)]) for name, a, text in _CALLS if a),
    (
        "mean instead of maximum",
        "You subtract the mean. Scores far above it still overflow; subtract the maximum, so that no exponent is above 0.",
        [lambda x: x - x.mean(**ROWS), lambda x: x - x.mean()],
    ),
    (
        "minimum instead of maximum",
        "You subtract the minimum, which pushes the other scores up, towards overflow. Subtract the maximum.",
        [lambda x: x - x.min(**ROWS), lambda x: x - x.min()],
    ),
    (
        "divided by the maximum",
        "You divide by the maximum. That changes the weights; subtracting it does not.",
        [lambda x: x / x.max(**ROWS), lambda x: x / x.max()],
    ),
    (
        "sign",
        "Your signs are turned around: the smallest score gets the largest weight. It is score minus maximum, "
        "`x - x.max(axis=-1, keepdims=True)`.",
        [lambda x: x.max(**ROWS) - x, lambda x: x.max() - x, lambda x: -x],
    ),
    (
        "clipped",
        "You clip the scores. That stops the overflow, but scores beyond the bound become equal, and so do their weights. "
        "Subtract each row's maximum: it shifts a row and changes no weight.",
        [lambda x: np.clip(x, -500, 500), lambda x: np.minimum(x, 500)],
    ),
    (
        "shifted by a constant",
        "You subtract one fixed number from all scores. For other scores it is too much (every exponential becomes 0, and "
        "0 / 0 is NaN) or too little. Subtract each row's own maximum.",
        [lambda x: x - 1e4, lambda x: x - 1e3, lambda x: x - 500, lambda x: x - 100],
    ),
    (
        "Python's max",
        "Python's own `max(x)` goes along the first axis and cannot compare whole rows. Use NumPy's: "
        "`x.max(axis=-1, keepdims=True)`.",
        [lambda x: x - max(x)],
    ),
]

_SUMS = [(Misconception(f"sum {name}", text.format("`sum`"), _softmax(_right, a)), a) for name, a, text in _CALLS]
_STARTS = [(Misconception(name, text, *map(_softmax, shifts)), shifts) for name, text, shifts in _SHIFTS]

MISTAKES = (
    *(mistake for mistake, _ in _SUMS),
    *(mistake for mistake, _ in _STARTS),
    Misconception(
        "maximum in one place only",
        "You subtract the maximum above the fraction bar or below it, but not in both. Compute "
        "`np.exp(x - x.max(axis=-1, keepdims=True))` once, and divide it by its own sum.",
        lambda x: np.exp(x - x.max(**ROWS)) / np.exp(x).sum(**ROWS),
        lambda x: np.exp(x) / np.exp(x - x.max(**ROWS)).sum(**ROWS),
        lambda x: np.exp(x - x.max()) / np.exp(x).sum(**ROWS),
        lambda x: np.exp(x - x.max()) / np.exp(x).sum(),
        lambda x: np.exp(x - x.max(**ROWS)) / np.exp(x).sum(),
    ),
    Misconception(
        "maximum after exp",
        "You subtract the maximum after `np.exp`, which is too late against overflow and changes the weights. Subtract it "
        "from the scores: `np.exp(x - x.max(axis=-1, keepdims=True))`.",
        lambda x: _normalised(np.exp(x) - np.exp(x).max(**ROWS)),
        lambda x: _normalised(np.exp(x) - x.max(**ROWS)),
        lambda x: _normalised(np.exp(x) - np.exp(x).max()),
        lambda x: _normalised(np.exp(x) - x.max()),
        lambda x: (np.exp(x) - np.exp(x).max(**ROWS)) / np.exp(x).sum(**ROWS),
        lambda x: (np.exp(x) - x.max(**ROWS)) / np.exp(x).sum(**ROWS),
    ),
    Misconception(
        "not normalised",
        "These are the exponentials. Divide them by their sum, so that each row sums to 1.",
        lambda x: np.exp(x - x.max(**ROWS)),
        lambda x: np.exp(x - x.max()),
        lambda x: np.exp(x),
    ),
    Misconception(
        "no exponential",
        "You divide the scores themselves by their sum. That gives negative weights for negative scores; exponentiate first.",
        lambda x: _normalised(x),
        lambda x: _normalised(x - x.max(**ROWS)),
    ),
    Misconception(
        "log-softmax",
        "These are the logarithms of the weights. Exponentiate them.",
        lambda x: x - x.max(**ROWS) - np.log(np.exp(x - x.max(**ROWS)).sum(**ROWS)),
    ),
    Misconception(
        "sigmoid",
        "This squashes each score by itself (the logistic function). Softmax makes the scores of a row compete: divide "
        "the exponentials by their sum.",
        lambda x: 1 / (1 + np.exp(-x)),
    ),
    Misconception(
        "a number for −∞",
        "You replace −∞ by a number. In a row whose scores are lower still, the hidden one wins. exp(−∞) is 0: leave −∞ as it "
        "is.",
        *(lambda x, n=n: _softmax(_right)(np.where(np.isneginf(x), n, x)) for n in (-100, -1e3, -1e4)),
    ),
    Misconception(
        "a loop over x",
        "Your loop takes `x[i]` for a row. That holds for two axes only: of a single row it is one number, of three axes a "
        "whole matrix. No loop is needed: `axis=-1, keepdims=True`.",
        lambda x: np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in x]),
    ),
    Misconception(
        "largest only",
        "This gives the largest score all the weight. Softmax is softer: the others keep a share, exp of the score "
        "divided by the row's sum.",
        lambda x: (x == x.max(**ROWS)).astype(x.dtype),
    ),
)

PAIRS = (
    *(
        Misconception(f"max and sum {name}", text.format("`max` and `sum`"), _softmax(_minus_max(a), a))
        for name, a, text in _CALLS
    ),
    *(
        together(total, start, *(_softmax(shift, arguments) for shift in shifts))
        for total, arguments in _SUMS
        for start, shifts in _STARTS
    ),
)
