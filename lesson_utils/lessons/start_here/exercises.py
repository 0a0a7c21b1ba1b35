"""The exercise of notebook 00, small on purpose: it shows how exercises work."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.ops import softmax
from lesson_utils.mistakes.exercise import Case, Exercise, change


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
        case("3 values of width 1", 3, 1),
        Case("weights down to 0.0001", (np.array([0.0004, 0.7, 0.0001, 0.2995]), rng.normal(size=(4, 3)))),
    ]


EXERCISES = (
    Exercise(
        name="weighted_average",
        takes="weights, values",
        task="""The weighted average of the rows of `values`.

weights: (n,), with sum 1. values: (n, d). Returns the average, (d,).
NumPy, or a loop. The arguments stay as they were.""",
        reference=_reference,
        steps={
            "product": "products = weights[:, None] * values  # (n, 1) * (n, d): each row times its weight",
            "sum": "return products.sum(axis=0)  # (d,); `weights @ values` does both steps at once",
        },
        cases=_cases,
        returns=("average",),
        hints=(
            "Multiply each row of `values` by its weight, then add the rows up. What shape must the weights have to line "
            "up with the rows?",
            "`weights[:, None]` has shape (n, 1) and lines up with `values`, shape (n, d). Sum over the rows: `axis=0`.",
            "A sum of products is a matrix product: `weights @ values` does both steps at once.",
        ),
        mistakes=(
            change(
                "first row without its weight",
                "The first row counts whole in your sum. It has a weight, too.",
                "values[0] + weights[1:] @ values[1:]",
            ),
            change(
                "first row twice",
                "The first row counts twice in your sum: it is there before the loop begins. Begin with 0, or with zeros.",
                "values[0] + weights @ values",
            ),
            change(
                "plain mean",
                "This is the plain mean: every value counts the same, and `weights` is not used.",
                "values.mean(axis=0)",
            ),
            change(
                "plain sum",
                "This adds up the values as they are. Multiply each by its weight first.",
                product="products = values",
            ),
            change(
                "not summed",
                "You have weighted each value, but not added them up: sum over the n values, `axis=0` in `weights[:, None] * values`.",
                "[w * v for w, v in zip(weights, values)]",
                "weights * values.T",
                sum="return products",
            ),
            change(
                "summed over the width",
                "You summed each weighted value to one number. Add the n values to each other instead: a weighted average of vectors is a vector of the same width. That is `axis=0` in `weights[:, None] * values`, and `axis=1` in `values.T * weights`.",
                sum="return products.sum(axis=1)",
            ),
            change(
                "divided by n",
                "You divided by the number of values, as `mean` does. The weights sum to 1 already, so only add up.",
                sum="return products.mean(axis=0)",
            ),
            change(
                "one number",
                "Everything becomes one number: you also add up across the width. Keep the width: `sum`, over `axis=0` only.",
                sum=("return products.sum()", "return products.mean()"),
            ),
            change(
                "everything, unweighted",
                "You took all numbers in `values` together, and `weights` is not used. Multiply each row by its weight, and sum over the rows only, `axis=0`.",
                "values.mean()",
                "values.sum()",
            ),
            change(
                "axes do not line up",
                "NumPy lines up shapes from the right, so `weights`, shape (n,), meets the columns of `values`, shape (n, d). Write `weights[:, None]`, shape (n, 1), to weight the rows; then sum over `axis=0`.",
                *(f"(weights * values){end}" for end in ("", ".sum()", ".sum(axis=0)", ".sum(axis=-1)")),
            ),
            change(
                "product the wrong way round",
                "In a matrix product, the last axis of the left array meets the first of the right one. The n weights have to meet the n rows of `values`: `weights @ values`.",
                *(
                    "values @ weights",
                    "np.dot(values, weights)",
                    "weights @ values.T",
                    "np.dot(weights, values.T)",
                    "values @ weights[:, None]",
                ),
            ),
            change(
                "a column before the product",
                "`@` adds up along the last axis of its left array. That of `weights[:, None]` has length 1. Write `weights @ values`, or keep the column, write `*`, and sum over `axis=0`.",
                "weights[:, None] @ values",
            ),
            change(
                "all pairs of numbers",
                "`np.outer` multiplies each weight with each number in `values`, and never adds up. Multiply each row by its own weight, and sum over the rows: `weights @ values`.",
                "np.outer(weights, values)",
            ),
            change(
                "only the first value",
                "This is the first value times its weight: the other rows are missing. If you wrote a loop, does `return` stand inside it? It belongs below, as far left as `for`.",
                "weights[0] * values[0]",
            ),
            change(
                "only the last value",
                "This is the last value times its weight: the other rows are missing. If you wrote a loop, does `=` overwrite the sum in each round? Write `+=`.",
                "weights[-1] * values[-1]",
            ),
            change(
                "np.average without axis",
                "`np.average` needs to know which axis the weights belong to: the rows, `axis=0`.",
                "np.average(values, weights=weights)",
                "np.average(values, weights)",
            ),
            change(
                "largest only",
                "This takes the value with the largest weight and forgets the rest. An average mixes all of them.",
                "values[weights.argmax()]",
            ),
            change(
                "a width written as a number",
                "A number in your code is the width of the result, and other values have another width. The sum is as wide as a row of `values`: `np.zeros(values.shape[1])`. Begin with plain 0, and every width fits.",
                *(
                    f"total = np.zeros({width})\nfor w, v in zip(weights, values):\n    total = total + w * v\nreturn total"
                    for width in (2, 3, 4)
                ),
            ),
            change(
                "a row in one place",
                "A row has d numbers, and one place of your array can hold only one number. Add the rows to each other: begin with 0, and write `+=` in the loop.",
                *(
                    f"places = np.zeros({size})\nfor i in range({size}):\n    places[i] = weights[i] * values[i]\nreturn places"
                    for size in ("len(weights)", "values.shape[1]")
                ),
            ),
        ),
        praise="Right for all six shapes and weights. You have written the heart of attention: a weighted average.",
        in_pytorch="average = weights @ values  # as in NumPy, but both must have one dtype: float32 @ float64 is an error",
    ),
)
