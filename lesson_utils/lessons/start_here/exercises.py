"""The exercise and the question of notebook 00, small on purpose: they show how exercises and questions work."""

from collections.abc import Callable, Sequence

import numpy as np

from lesson_utils._checks import Array
from lesson_utils.exercises.checker import Case, Exercise, Misconception
from lesson_utils.ops import softmax


def weighted_average(weights, values):  # type: ignore[no-untyped-def]  # shown to learners, who write it without types
    return weights @ values


def _reference(weights: Array, values: Array) -> Array:
    return np.asarray([sum(w * v for w, v in zip(weights, column, strict=True)) for column in values.T], weights.dtype)


def _cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, n: int, d: int, dtype: type = np.float64) -> Case:
        weights = softmax(rng.normal(size=n))
        weights = np.roll(weights, n // 2 - weights.argmax())  # the largest is not the first: that is another mistake
        return Case(label, (weights.astype(dtype), rng.normal(size=(n, d)).astype(dtype)))

    return [
        case("5 values of width 3", 5, 3),
        case("2 values of width 4", 2, 4),
        case("a single value", 1, 6),
        case("float32 input", 4, 7, np.float32),
    ]


def _lined_up_wrong(add_up: Callable[[Array], Array], values_first: bool = False) -> Callable[[Array, Array], Array]:
    """Mostly an error, whose text tells the order of the factors; with a single value, what comes of adding up."""
    return lambda weights, values: add_up(values * weights if values_first else weights * values)


EXERCISES = (
    Exercise(
        name="weighted_average",
        reference=_reference,
        solution=weighted_average,
        cases=_cases,
        returns=("average",),
        hints=(
            "Multiply each row of `values` by its weight, then add the rows up. What shape must the weights have to line "
            "up with the rows?",
            "`weights[:, None]` has shape (n, 1) and lines up with `values`, shape (n, d). Sum over the rows: `axis=0`.",
            "A sum of products is a matrix product: `weights @ values` does both steps at once.",
        ),
        misconceptions=(
            Misconception(
                "plain mean",
                "This is the plain mean: every value counts the same, and `weights` is not used.",
                lambda weights, values: values.mean(axis=0),
            ),
            Misconception(
                "plain sum",
                "This adds up the values as they are. Multiply each by its weight first.",
                lambda weights, values: values.sum(axis=0),
            ),
            Misconception(
                "not summed",
                "You have weighted each value, but not added them up: sum over the n values, `axis=0` in "
                "`weights[:, None] * values`.",
                lambda weights, values: weights[:, None] * values,
                lambda weights, values: weights * values.T,
                lambda weights, values: [w * v for w, v in zip(weights, values, strict=True)],
            ),
            Misconception(
                "summed over the width",
                "You summed each weighted value to one number. Add the n values to each other instead: a weighted average of "
                "vectors is a vector of the same width. That is `axis=0` in `weights[:, None] * values`, and `axis=1` in "
                "`values.T * weights`.",
                lambda weights, values: (weights[:, None] * values).sum(axis=1),
            ),
            Misconception(
                "divided by n",
                "You divided by the number of values. The weights sum to 1 already: add up, with `sum`, not `mean`.",
                lambda weights, values: (weights[:, None] * values).mean(axis=0),
            ),
            Misconception(
                "one number",
                "`sum` or `mean` without an axis makes one number of everything. Keep the width: `sum`, over `axis=0` only.",
                lambda weights, values: (weights[:, None] * values).sum(),
                lambda weights, values: (weights[:, None] * values).mean(),
            ),
            Misconception(
                "everything, unweighted",
                "You took all numbers in `values` together, and `weights` is not used. Multiply each row by its weight, and sum "
                "over the rows only, `axis=0`.",
                lambda weights, values: values.mean(),
                lambda weights, values: values.sum(),
            ),
            Misconception(
                "axes do not line up",
                "NumPy lines up shapes from the right, so `weights`, shape (n,), meets the columns of `values`, shape "
                "(n, d). Write `weights[:, None]`, shape (n, 1), to weight the rows; then sum over `axis=0`.",
                *(_lined_up_wrong(add_up) for add_up in (lambda p: p, np.sum, lambda p: p.sum(0), lambda p: p.sum(-1))),
                *(_lined_up_wrong(add_up, values_first=True) for add_up in (lambda p: p, np.sum, lambda p: p.sum(0))),
            ),
            Misconception(
                "product the wrong way round",
                "In a matrix product, the last axis of the left array meets the first of the right one. The n weights have to "
                "meet the n rows of `values`: `weights @ values`.",
                lambda weights, values: values @ weights,
                lambda weights, values: np.dot(values, weights),
                lambda weights, values: weights @ values.T,
                lambda weights, values: np.dot(weights, values.T),
                lambda weights, values: values @ weights[:, None],
            ),
            Misconception(
                "an axis too many",
                "Your result has an axis of length 1 too many. The average has the shape of a row of `values`, (d,): leave out "
                "`keepdims=True`, or use `weights` without a second axis.",
                lambda weights, values: weights[None] @ values,
                lambda weights, values: values.T @ weights[:, None],
            ),
            Misconception(
                "only the first value",
                "This is the first value times its weight: the other rows are missing. If you wrote a loop, does `return` "
                "stand inside it? It belongs below, as far left as `for`.",
                lambda weights, values: weights[0] * values[0],
            ),
            Misconception(
                "only the last value",
                "This is the last value times its weight: the other rows are missing. If you wrote a loop, does `=` overwrite "
                "the sum in each round? Write `+=`.",
                lambda weights, values: weights[-1] * values[-1],
            ),
            Misconception(
                "softmax again",
                "You apply softmax to the weights. They sum to 1 already; a second softmax makes them nearly equal. Use them as "
                "they are.",
                lambda weights, values: softmax(weights) @ values,
            ),
            Misconception(
                "np.average without axis",
                "`np.average` needs to know which axis the weights belong to: the rows, `axis=0`.",
                lambda weights, values: np.average(values, weights=weights),
                lambda weights, values: np.average(values, weights),
            ),
            Misconception(
                "largest only",
                "This takes the value with the largest weight and forgets the rest. An average mixes all of them.",
                lambda weights, values: values[weights.argmax()],
            ),
        ),
        praise="Right for all four shapes. You have written the heart of attention: a weighted average.",
        dtype_matters=False,  # the first exercise asks for no dtype, and `np.zeros(d)` is a fine way to begin
    ),
)
