"""The exercises of notebook 02."""

import math
from collections.abc import Sequence

import numpy as np

from lesson_utils import attention as library
from lesson_utils import ops
from lesson_utils._checks import Array
from lesson_utils.exercises.checker import Case, Exercise, Misconception, digits
from lesson_utils.lessons.scaled_attention import mistakes, softmax_mistakes

# --- A stable softmax ---------------------------------------------------------------------------------------------


def softmax(x):  # type: ignore[no-untyped-def]  # solutions are shown to learners, who write without types
    shifted = x - x.max(axis=-1, keepdims=True)
    exponentials = np.exp(shifted)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _softmax_cases(rng: np.random.Generator) -> Sequence[Case]:
    far_apart = rng.normal(size=(3, 3)) + np.array([[1e4], [0], [-1e4]])
    closed = rng.normal(size=(3, 5))
    closed[2] -= 2e4  # below any number that might be put in the place of −∞
    closed[[0, 2], [1, 4]] = -np.inf
    return [
        Case("a row of 5 scores", (rng.normal(size=5),)),
        Case("scores of shape (2, 3, 4)", (rng.normal(size=(2, 3, 4)),)),
        Case("scores of shape (4, 4)", (rng.normal(size=(4, 4)),)),
        Case("rows near 10 000, 0 and −10 000", (far_apart,)),
        Case("scores of ±10 000 in one row", (1e4 * rng.normal(size=(3, 6)),)),
        Case("some scores of −∞", (closed,)),
        Case("a single score", (np.array([[3.0]]),)),
        Case("float32 scores", (rng.normal(size=(3, 4)).astype(np.float32),)),
    ]


def _say_if_not_weights(weights: Array, *others: object) -> str | None:
    """What anyone can see in weights that are none."""
    if not np.isfinite(weights).all():
        return None
    if (weights < 0).any():
        return "Some of your weights are negative; exp makes every number positive."
    sums = weights.sum(axis=-1)
    if not np.allclose(sums, 1, atol=1e-4):
        low, high = digits(sums.min(), 1), digits(sums.max(), 1)
        yours = f"sums to {low}" if low == high else f"sum to between {low} and {high}"
        return f"Each row should sum to 1; yours {yours}."
    return None


_SOFTMAX = Exercise(
    name="softmax",
    reference=ops.softmax,
    solution=softmax,
    cases=_softmax_cases,
    returns=("weights",),
    hints=(
        "Three steps: make the scores safe, exponentiate, divide by the sum. Which axis must sum to 1?",
        "Safe: subtract each row's own maximum. That multiplies all exponentials of the row by one factor, and the "
        "division cancels it. `x.max(axis=-1, keepdims=True)` keeps the shape lined up.",
        "`np.exp(shifted)`, then divide by `.sum(axis=-1, keepdims=True)`. The score −∞ needs no special care: exp(−∞) is 0.",
    ),
    misconceptions=softmax_mistakes.MISTAKES,
    pairs=softmax_mistakes.PAIRS,
    library=(ops.softmax, ops.softmax_forward, ops.log_softmax),
    praise="Eight cases: any leading axes, ±10 000, −∞, float32. This softmax would do for a real model.",
    diagnose=_say_if_not_weights,
)

# --- Scaled dot-product attention ----------------------------------------------------------------------------------


def scaled_dot_product_attention(Q, K, V, mask=None):  # type: ignore[no-untyped-def]
    scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])  # (..., T_q, T_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = ops.softmax(scores)  # each row sums to 1
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


def _attention_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *sizes: int, leading: tuple[int, ...] = (), masked: bool = False, size: float = 1.0) -> Case:
        T_q, T_k, d_k, d_v = sizes
        Q, K = size * rng.normal(size=(*leading, T_q, d_k)), rng.normal(size=(*leading, T_k, d_k))
        mask = None
        if masked:
            mask = rng.random((*leading, T_q, T_k)) < 0.6
            mask[..., 0] |= ~mask.any(axis=-1)  # every query may see something
        return Case(label, (Q, K, rng.normal(size=(*leading, T_k, d_v)), mask))

    single = case("float32 input with a mask", 3, 6, 5, 2, masked=True)
    Q, K, V, mask = single.arguments
    single = Case(single.label, (*(x.astype(np.float32) for x in (Q, K, V)), mask))
    far_below = case("a mask and scores near −300 000", 4, 6, 7, 3, masked=True)
    Q, K, V, mask = far_below.arguments
    Q, K = (225 * sign * rng.uniform(1, 2, size=x.shape) for sign, x in ((-1, Q), (1, K)))
    far_below = Case(far_below.label, (Q, K, V, mask))
    return [
        case("3 queries and 6 keys", 3, 6, 5, 7),
        case("5 queries and 3 keys, with a mask", 5, 3, 7, 4, masked=True),
        case("leading axes (2, 3)", 4, 6, 5, 7, leading=(2, 3)),
        case("leading axes (2,) and a mask", 3, 4, 6, 5, leading=(2,), masked=True),
        case("scores in the thousands", 3, 5, 4, 2, size=3e3),
        far_below,
        case("a single key", 4, 1, 3, 2),
        case("d_k = 1", 2, 5, 1, 3),
        case("as many queries as keys", 4, 4, 6, 3),
        single,
    ]


_ATTENTION = Exercise(
    name="attention",
    reference=library.scaled_dot_product_attention,
    solution=scaled_dot_product_attention,
    cases=_attention_cases,
    returns=("output", "weights"),
    hints=(
        "Follow the formula from the inside out: scores, scale, mask, softmax, average. Write down the shape after each step.",
        "Scores: `Q @ K.swapaxes(-1, -2)`, shape (..., T_q, T_k). `K.T` would turn the leading axes around as well. The scale "
        "is √d_k, the width of a key.",
        "Mask before softmax: `np.where(mask, scores, -np.inf)`. True means: may attend. Then `weights = ops.softmax(scores)` "
        "and `output = weights @ V`.",
    ),
    misconceptions=mistakes.MISTAKES,
    pairs=mistakes.PAIRS,
    library=(library.scaled_dot_product_attention, library.attention_forward),
    praise="Ten cases: masks, leading axes, scores in the thousands and beyond, one key, d_k = 1, float32. This is equation 1 of "
    "“Attention Is All You Need”, and it is yours.",
    diagnose=lambda output, weights: _say_if_not_weights(weights),
)

# --- The variance, predicted ----------------------------------------------------------------------------------------


def score_variance(d_k, a):  # type: ignore[no-untyped-def]
    entry = a**2 / 3  # variance of a uniform number between −a and a
    return d_k * entry**2  # a product of two has entry · entry, and d_k products are added


def _variance_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case(f"d_k = {d_k} and a = {a}", (d_k, a)) for d_k, a in ((512, 2.0), (2, 3.0), (64, 0.5), (1, 1.0), (7, 1.7))
    ]


_VARIANCE = Exercise(
    name="score_variance",
    reference=score_variance,
    solution=score_variance,
    cases=_variance_cases,
    returns=("variance",),
    hints=(
        "Build it up: the variance of one entry, of one product q_i k_i, of the sum of d_k products.",
        "A uniform number between −a and a has variance (2a)² / 12 = a² / 3.",
        "For independent numbers with mean 0, Var(q_i k_i) = Var(q_i) · Var(k_i). Variances of independent terms add up.",
    ),
    misconceptions=(
        Misconception(
            "as for the normal",
            "This is d_k, right for entries of variance 1. Uniform entries have a variance of their own: a² / 3.",
            lambda d_k, a: d_k,
        ),
        Misconception(
            "standard deviation as for the normal",
            "√d_k is the standard deviation for entries of variance 1. The variance is asked for, and uniform entries have a "
            "variance of their own: a² / 3.",
            lambda d_k, a: math.sqrt(d_k),
        ),
        Misconception(
            "scaled already",
            "1 is the variance for entries of variance 1, after dividing by √d_k. Here the entries have variance a² / 3, and "
            "nothing is divided.",
            lambda d_k, a: 1,
        ),
        Misconception(
            "one entry",
            "This is the variance of one entry. A product of two has (a² / 3)², and the score adds up d_k products.",
            lambda d_k, a: a**2 / 3,
        ),
        Misconception(
            "entry not squared, width a",
            "Two things to mend.\n1. The interval from −a to a has width 2a: an entry has variance (2a)² / 12 = a² / 3.\n"
            "2. A product has two random factors, and their variances multiply: (a² / 3)².",
            lambda d_k, a: d_k * a**2 / 12,
        ),
        Misconception(
            "entry not squared, without the third",
            "Two things to mend.\n1. An entry has variance a² / 3; a² it would be if every entry were −a or a.\n"
            "2. A product has two random factors, and their variances multiply: (a² / 3)².",
            lambda d_k, a: d_k * a**2,
        ),
        Misconception(
            "2a not squared",
            "You used 2a² / 12: only a is squared. The width is 2a, and (2a)² = 4a²: an entry has variance 4a² / 12 = a² / 3. "
            "A product has (a² / 3)², and d_k of them are added.",
            lambda d_k, a: d_k * (2 * a**2 / 12) ** 2,
            lambda d_k, a: (2 * a**2 / 12) ** 2,
            lambda d_k, a: d_k * 2 * a**2 / 12,
        ),
        Misconception(
            "third not squared",
            "You squared a², but not the third: (a² / 3)² = a⁴ / 9.",
            lambda d_k, a: d_k * a**4 / 3,
        ),
        Misconception(
            "3 squared, a not",
            "You squared the 3, but not a²: (a² / 3)² = a⁴ / 9.",
            lambda d_k, a: d_k * a**2 / 9,
        ),
        Misconception(
            "factors added and squared",
            "You used 2a² / 3 for a factor, twice its variance. Each factor has a² / 3, and the variances of the two multiply: "
            "(a² / 3)².",
            lambda d_k, a: d_k * (2 * a**2 / 3) ** 2,
        ),
        Misconception(
            "standard deviation, entry not squared",
            "Two things to mend.\n1. You took a root: the variance is asked for, not the standard deviation.\n"
            "2. A product has two random factors, and their variances multiply: (a² / 3)².",
            lambda d_k, a: math.sqrt(d_k * a**2 / 3),
        ),
        Misconception(
            "entry not squared",
            "You count the variance of one entry once. A product has two random factors, so their variances multiply: "
            "(a² / 3)².",
            lambda d_k, a: d_k * a**2 / 3,
        ),
        Misconception(
            "variances of factors added",
            "You add the variances of q_i and k_i. For a product of independent numbers with mean 0 they multiply.",
            lambda d_k, a: d_k * 2 * a**2 / 3,
        ),
        Misconception(
            "one term",
            "This is the variance of one product. The score adds up d_k of them, and variances of independent terms add up.",
            lambda d_k, a: (a**2 / 3) ** 2,
        ),
        Misconception(
            "width a",
            "You used a² / 12, the variance for an interval of width a. From −a to a the width is 2a: (2a)² / 12 = a² / 3.",
            lambda d_k, a: d_k * (a**2 / 12) ** 2,
        ),
        Misconception(
            "standard deviation",
            "This is the standard deviation. Its square is the variance.",
            lambda d_k, a: math.sqrt(d_k) * a**2 / 3,
        ),
        Misconception(
            "d_k squared",
            "You multiplied by d_k². Variances of independent terms add up: d_k terms, factor d_k.",
            lambda d_k, a: (d_k * a**2 / 3) ** 2,
        ),
        Misconception(
            "spread without the third",
            "You took a² for the variance of an entry: right if every entry were −a or a. Spread evenly between them, it is a² / 3.",
            lambda d_k, a: d_k * a**4,
        ),
    ),
    praise="The score grows with d_k for uniform entries too; only the factor differs. Now let the computer throw the dice.",
)

EXERCISES = (_SOFTMAX, _ATTENTION, _VARIANCE)
