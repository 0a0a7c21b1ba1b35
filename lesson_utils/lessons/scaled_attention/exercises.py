"""The exercises of notebook 02, and the ways to get them wrong, as learners type them."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.common_mistakes import FINITE, OWN_SOFTMAX, answers, masks, softmax_inside, weighing
from lesson_utils.maths import attention, ops
from lesson_utils.mistakes.exercise import Case, Change, Exercise, change

# fmt: off

# --- A stable softmax ---------------------------------------------------------------------------------------------

SOFTMAX_STEPS = {
    "shift": "shifted = x - x.max(axis=-1, keepdims=True)",
    "exp": "exponentials = np.exp(shifted)",
    "divide": "return exponentials / exponentials.sum(axis=-1, keepdims=True)",
}

_CALLS = (  # each can happen in `max`, in `sum`, or in both
    (
        "over everything",
        "",
        "You take {} over the whole array. Each row is a set of weights of its own: take the last axis, "
        "`axis=-1, keepdims=True`.",
    ),
    (
        "without keepdims",
        "axis=-1",
        "You take {} without keeping the last axis, and NumPy lines up what is left with the columns: "
        "NumPy gives an error, or wrong numbers if the array is square. Write `axis=-1, keepdims=True`.",
    ),
    (
        "over axis 0",
        "axis=0, keepdims=True",
        "You take {} over axis 0, down the columns (Python's own `sum` does the same). Each row is a set of weights of "
        "its own: take the last axis, `axis=-1, keepdims=True`.",
    ),
    (
        "over axis 1",
        "axis=1, keepdims=True",
        "You take {} over axis 1, which is the last axis only of an array with two axes. The last one is always "
        "`axis=-1`, with `keepdims=True`.",
    ),
    (
        "over axis 1 without keepdims",
        "axis=1",
        "You take {} over axis 1, without keeping that axis. The last axis is always `axis=-1`, and only with "
        "`keepdims=True` does the result line up with the rows.",
    ),
    (
        "over axis -2",
        "axis=-2, keepdims=True",
        "You take {} over axis −2, the last but one. Softmax runs over the keys, the last axis: "
        "`axis=-1, keepdims=True`.",
    ),
)


def _in_calls() -> list[Change]:
    found = []
    for name, arguments, text in _CALLS:
        shift, total = f"shifted = x - x.max({arguments})", f"return exponentials / exponentials.sum({arguments})"
        found.append(change(f"sum {name}", text.format("the sum"), divide=total))
        if arguments:
            found.append(change(f"max {name}", text.format("the maximum"), shift=shift))
        found.append(change(f"max and sum {name}", text.format("both the maximum and the sum"), shift=shift, divide=total))
    return found


_ROWS = "axis=-1, keepdims=True"
SOFTMAX = (
    *_in_calls(),
    change('not stable', "`np.exp` of a large score overflows: exp(10 000) is ∞ in floats, and ∞ / ∞ is NaN. Subtract each row's maximum first, `.max(axis=-1, keepdims=True)`; the weights stay the same.", shift="shifted = x"),
    change('max over everything', 'You subtract the maximum of the whole array. In a row far below it every exponential becomes 0, and 0 / 0 is NaN. Each row needs its own maximum: `.max(axis=-1, keepdims=True)`.', shift="shifted = x - x.max()"),
    change('mean instead of maximum', 'You subtract the mean. Scores far above it still overflow; subtract the maximum, so that no exponent is above 0.', shift=(f"shifted = x - x.mean({_ROWS})", "shifted = x - x.mean()")),
    change('minimum instead of maximum', 'You shift the scores by the minimum. Subtract the maximum instead, so that no exponent is above 0.', shift=(f"shifted = x - x.min({_ROWS})", "shifted = x - x.min()")),
    change('divided by the maximum', 'You divide by the maximum. That changes the weights; subtracting it does not.', shift=(f"shifted = x / x.max({_ROWS})", "shifted = x / x.max()")),
    change(
        'sign', 'Your signs are turned around: the smallest score would get the largest weight. It is each score minus the maximum of its row, `.max(axis=-1, keepdims=True)`.',
        shift=(f"shifted = x.max({_ROWS}) - x", "shifted = x.max() - x", "shifted = -x"),
    ),
    change("sum for difference", "You add the maximum, which makes large scores larger still. Subtract the maximum of each row from its scores: `.max(axis=-1, keepdims=True)`.", shift=f"shifted = x + x.max({_ROWS})"),
    change('clipped', "You clip the scores. That stops the overflow, but scores beyond the bound become equal, and so do their weights. Subtract each row's maximum: it shifts a row and changes no weight.", shift=("shifted = np.clip(x, -500, 500)", "shifted = np.minimum(x, 500)", "shifted = np.clip(x, -50, 50)", "shifted = np.clip(x, -100, 100)", "shifted = np.clip(x, -700, 700)")),
    change('shifted by a constant', "You subtract one fixed number from all scores. For other scores it is too much (every exponential becomes 0, and 0 / 0 is NaN) or too little. Subtract each row's own maximum.", shift=[f"shifted = x - {n}" for n in ("1e4", "1e3", "500", "100")]),
    change("Python's max", "Python's own `max`, or a loop over the scores, goes along the first axis and cannot compare whole rows. Use NumPy's: `.max(axis=-1, keepdims=True)`.", shift="shifted = x - max(x)"),
    change(
        'maximum in one place only', 'You subtract the maximum above the fraction bar or below it, but not in both. First subtract the maximum of each row, `.max(axis=-1, keepdims=True)`, from the scores. Then take `np.exp` once, and divide it by its own sum.',
        *(
            f"{above} / {below}"
            for m in (f"x.max({_ROWS})", "x.max()")
            for above, below in (
                (f"np.exp(x - {m})", f"np.exp(x).sum({_ROWS})"),
                (f"np.exp(x - {m})", "np.exp(x).sum()"),
                ("np.exp(x)", f"np.exp(x - {m}).sum({_ROWS})"),
            )
        ),
    ),
    change(
        'maximum after exp', "You subtract the maximum after `np.exp`, which is too late against overflow and changes the weights. Subtract it from the scores, before `np.exp`: each row's own, `.max(axis=-1, keepdims=True)`.",
        *(
            f"e = np.exp(x)\ne = e - {m}.max({a})\nreturn e / {total}.sum({_ROWS})"
            for m in ("e", "x")
            for a in (_ROWS, "")
            for total in ("e", "np.exp(x)")
        ),
    ),
    change('not normalised', 'These are the exponentials. Divide them by their sum, so that each row sums to 1.', divide="return exponentials"),
    change('no exponential', 'You divide the scores themselves, shifted or not, by their sum. Such weights can be negative, or smallest for the largest score. Exponentiate first.', exp="exponentials = shifted"),
    change('log-softmax', 'These are the logarithms of the weights. Exponentiate them.', divide=f"return shifted - np.log(exponentials.sum({_ROWS}))"),
    change('sigmoid', 'This squashes each score by itself (the logistic function). Softmax makes the scores of a row compete: divide the exponentials by their sum.', "1 / (1 + np.exp(-x))"),
    change('a number for −∞', 'You replace −∞ by a number. In a row whose scores are lower still, the hidden one wins. exp(−∞) is 0: leave −∞ as it is.', shift=[f"x = np.where(np.isneginf(x), -{n}, x)\nshifted = x - x.max({_ROWS})" for n in ("100", "1e3", "1e4")]),
    change('a loop over x', 'You take each part along the first axis for a row. That holds for two axes only: of a single row it is one number, of three axes a whole matrix. No loop is needed: `axis=-1, keepdims=True`.', "np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in x])"),
    change('largest only', "This gives the largest score all the weight. Softmax is softer: the others keep a share, exp of the score divided by the row's sum.", divide=f"return (x == x.max({_ROWS})).astype(x.dtype)"),
    change("another base", "You raise 2 or 10 to the scores. Softmax takes powers of e: `np.exp`.", exp=("exponentials = 2.0**shifted", "exponentials = 10.0**shifted")),
    change("squares", "You square the scores in place of exponentiating them: large negative scores would get large weights. Take `np.exp`.", exp="exponentials = shifted**2"),
    change("1 added below", "You add 1 to the sum below the fraction bar. Only without it can a row sum to 1.", divide=f"return exponentials / (1 + exponentials.sum({_ROWS}))"),
    change("mean for the sum", "You divide by the mean of the exponentials. Divide by their sum, so that each row sums to 1.", divide=f"return exponentials / exponentials.mean({_ROWS})"),
    change("maximum for the sum", "You divide by the largest exponential. Divide by their sum, so that each row sums to 1.", divide=f"return exponentials / exponentials.max({_ROWS})"),
    change("norm for the sum", "You divide by the root of the sum of squares, which makes a vector of length 1. Weights need sum 1: divide by the sum.", divide=f"return exponentials / np.sqrt((exponentials**2).sum({_ROWS}))"),
)

# --- Scaled dot-product attention ---------------------------------------------------------------------------------


def _sizes() -> list[Change]:
    """Divided by the root of a size that is not d_k, or by that size itself."""
    found = []
    for symbol, size, what in (
        ("T_k", "K.shape[-2]", "T_k is the number of keys, but the sum in q · k runs over d_k entries. Divide the scores by `math.sqrt(K.shape[-1])`."),
        ("T_q", "Q.shape[-2]", "T_q is the number of queries, but the sum in q · k runs over d_k entries. Divide the scores by `math.sqrt(K.shape[-1])`."),
        ("d_v", "V.shape[-1]", "d_v is the width of a value, but the scores come from queries and keys. Divide the scores by `math.sqrt(K.shape[-1])`."),
        ("K.shape[0]", "K.shape[0]", "like `len(K)`, it counts the rows, or a leading axis. The width d_k is the last axis: `math.sqrt(K.shape[-1])`."),
        ("K.shape[1]", "K.shape[1]", "it is d_k only without leading axes. Count from the end, and take the root: `math.sqrt(K.shape[-1])`."),
        ("Q.shape[0]", "Q.shape[0]", "like `len(Q)`, it counts the rows, or a leading axis. The width d_k is the last axis: `math.sqrt(Q.shape[-1])`."),
        ("Q.shape[1]", "Q.shape[1]", "it is d_k only without leading axes. Count from the end, and take the root: `math.sqrt(Q.shape[-1])`."),
    ):
        found.append(change(f"scaled by √{symbol}", f"You divide by √{symbol}: {what}", scale=f"scores = scores / math.sqrt({size})"))
        found.append(change(f"scaled by {symbol}", f"You divide by {symbol}: {what}", scale=f"scores = scores / {size}"))
    return found


ATTENTION = (
    change('no scale', 'Your scores reach softmax without the scale: divide them by √d_k, `math.sqrt(K.shape[-1])`.', scale=""),
    change('divided by d_k', 'You divide by d_k. The standard deviation of the scores is √d_k: divide by `math.sqrt(K.shape[-1])`.', scale=("scores = scores / K.shape[-1]", "scores = scores / Q.shape[-1]")),
    change('multiplied by the root', 'You multiply by √d_k, which makes large scores larger. Divide by it.', scale="scores = scores * math.sqrt(K.shape[-1])"),
    change('** 1/2', 'You divide by d_k / 2, or by 2 d_k. `** 1/2` does that, since `**` comes before `/`. Write `math.sqrt(K.shape[-1])`.', scale=("scores = scores / (K.shape[-1] ** 1 / 2)", "scores = scores / K.shape[-1] ** 1 / 2")),
    change('divided by d_k squared', 'You divide by d_k². The scale is the root of d_k, not its square: `math.sqrt(K.shape[-1])`.', scale="scores = scores / K.shape[-1] ** 2"),
    change('multiplied by d_k', 'You multiply by d_k, which makes large scores larger. Divide by √d_k, `math.sqrt(K.shape[-1])`.', scale="scores = scores * K.shape[-1]"),
    *_sizes(),
    change('keys not transposed', '`Q @ K` does not fit: the rows of `Q` would meet the columns of `K`. Each query meets each key in `Q @ K.swapaxes(-1, -2)`, shape (..., T_q, T_k).', score=("scores = Q @ K", "scores = np.dot(Q, K)")),
    change('keys transposed with .T', 'With leading axes your scores no longer fit: `K.T` reverses all axes. Swap only the last two: `K.swapaxes(-1, -2)`.', score=("scores = Q @ K.T", "scores = np.dot(Q, K.T)")),
    change('axes 0 and 1 swapped', 'Your scores fit only Q and K without leading axes: only there are the axes 0 and 1 the last two. Count from the end: `K.swapaxes(-1, -2)`.', score=("scores = Q @ K.swapaxes(0, 1)", "scores = Q @ K.transpose(1, 0)")),
    change('axes 1 and 2 swapped', 'Your scores fit only Q and K with three axes: only there are the axes 1 and 2 the last two. Count from the end: `K.swapaxes(-1, -2)`.', score=("scores = Q @ K.swapaxes(1, 2)", "scores = Q @ K.transpose(0, 2, 1)")),
    change('queries and keys swapped', 'You have queries and keys the wrong way round: your scores have a row for each key. They need a row for each query, `Q @ K.swapaxes(-1, -2)`, shape (..., T_q, T_k).', score="scores = K @ Q.swapaxes(-1, -2)"),
    change('np.dot', 'With leading axes `np.dot` multiplies every matrix by every other. Use `@`, which keeps the leading axes as they are.', score="scores = np.dot(Q, K.swapaxes(-1, -2))", average=("output = np.dot(weights, V)", "output = weights @ V")),
    change("np.dot for the average", "With leading axes `np.dot` multiplies every matrix by every other. Use `@`, which keeps the leading axes as they are: `weights @ V`.", average="output = np.dot(weights, V)"),
    change('* in place of @', '`*` multiplies entry by entry. The sums of products, q · k for every pair and the weighted average, are matrix products: `@`.', score="scores = Q * K"),
    change("* for the average", "`weights * V` multiplies entry by entry. The weighted average, a sum of products, is a matrix product: `weights @ V`.", average="output = weights * V"),
    change('values in front', '`V @ weights` does not fit. A row of weights meets the rows of V, one a key, in `weights @ V`.', average=("output = V @ weights", "output = np.dot(V, weights)")),
    change("weights transposed", "You average with the weights transposed. Row i of `weights` belongs to query i and meets the rows of V as it is: `weights @ V`.", average="output = weights.swapaxes(-1, -2) @ V"),
    *weighing(),
    *masks(optional=True),
    change('if mask', '`if`, `and`, `or` and `not` need one yes or no, and a mask holds many. Ask `if mask is not None:`.', mask="if mask:\n    scores = np.where(mask, scores, -np.inf)"),
    change(
        'no mask not handled', '`mask` may also be None, and then nothing is hidden. Ask `if mask is not None:` before you use it.',
        mask=(
            "scores = np.where(mask, scores, -np.inf)",
            "scores = np.where(mask, scores, -1e9)",
            "scores = np.where(~mask, -np.inf, scores)",
            "scores = scores + (1 - mask) * -1e9",
            "scores = np.where(mask.astype(bool), scores, -np.inf)",
            "scores[~mask] = -np.inf",
        ),
    ),
    *answers("output", "weights"),
    change('scores returned', 'Your second result is the scores. Return the weights in their place, which are what softmax makes of the scores.', answer="return output, scores"),
    change('scale after softmax', 'You divide the weights by √d_k, after softmax. The scale belongs to the scores, before softmax, and only there.', scale=("", "scores = scores / math.sqrt(K.shape[-1])"), weights="weights = ops.softmax(scores) / math.sqrt(K.shape[-1])"),
    change('output scaled', 'You divide the output by √d_k. The scale belongs to the scores, before softmax: it is there to keep softmax soft.', scale=("", "scores = scores / math.sqrt(K.shape[-1])"), average="output = weights @ V / math.sqrt(K.shape[-1])"),
    change("scaled with a mask only", "Without a mask your scores are not divided by √d_k. Scale them in both cases, before the mask.", scale="", mask="if mask is not None:\n    scores = np.where(mask, scores / math.sqrt(K.shape[-1]), -np.inf)"),
    change('keys averaged', 'You average the keys. The weights say which keys fit; what is averaged are the values: `weights @ V`.', average="output = weights @ K"),
    *softmax_inside(SOFTMAX, SOFTMAX_STEPS, ("max and sum over axis", "a number for −∞")),
)

# --- The variance -------------------------------------------------------------------------------------------------

VARIANCE = (
    change('as for the normal', 'This is d_k, right for entries of variance 1. Uniform entries have a variance of their own: a² / 3.', "d_k"),
    change('standard deviation as for the normal', '√d_k is the standard deviation for entries of variance 1. The variance is asked for, and uniform entries have a variance of their own: a² / 3.', "math.sqrt(d_k)"),
    change('scaled already', '1 is the variance for entries of variance 1, after dividing by √d_k. Here the entries have variance a² / 3, and nothing is divided.', "1"),
    change('one entry', 'Your result is the number a² / 3, the variance of one entry. A product of two has (a² / 3)², and the score adds up d_k products.', "a**2 / 3"),
    change('entry not squared, width a', 'Two things to mend.\n1. The interval from −a to a has width 2a: an entry has variance (2a)² / 12 = a² / 3.\n2. A product has two random factors, and their variances multiply: (a² / 3)².', "d_k * a**2 / 12"),
    change('entry not squared, without the third', 'Two things to mend.\n1. An entry has variance a² / 3; it would be a² if every entry were −a or a.\n2. A product has two random factors, and their variances multiply: (a² / 3)².', "d_k * a**2"),
    change('2a not squared', 'Your result is as if one entry had the variance 2a² / 12. The width is 2a, and (2a)² = 4a²: an entry has variance 4a² / 12 = a² / 3. A product has (a² / 3)², and d_k of them are added.', "(2 * a**2 / 12) ** 2", entry="entry = 2 * a**2 / 12", product=("product = entry**2", "product = entry")),
    change('third not squared', 'In your result a² is squared, but the third is not: (a² / 3)² = a⁴ / 9.', product="product = a**4 / 3"),
    change('3 squared, a not', 'In your result the 3 is squared, but a² is not: (a² / 3)² = a⁴ / 9.', product="product = a**2 / 9"),
    change('factors added and squared', 'Your result is as if a factor had the variance 2a² / 3, twice its own. Each factor has a² / 3, and the variances of the two multiply: (a² / 3)².', product="product = (2 * entry) ** 2"),
    change('standard deviation, entry not squared', 'Two things to mend.\n1. You took a root: the variance is asked for, not the standard deviation.\n2. A product has two random factors, and their variances multiply: (a² / 3)².', "math.sqrt(d_k * a**2 / 3)"),
    change('entry not squared', 'You count the variance of one entry once. A product has two random factors, so their variances multiply: (a² / 3)².', product="product = entry"),
    change('variances of factors added', 'You add the variances of q_i and k_i. For a product of independent numbers with mean 0 they multiply.', product="product = 2 * entry"),
    change('one term', 'd_k does not count in your result, or is divided out again. The score adds up d_k products, and variances of independent terms add up.', sum="return product"),
    change("one term too few", "Your sum has d_k − 1 terms. The score adds up d_k products.", sum="return (d_k - 1) * product"),
    change('width a', 'You used a² / 12, the variance for an interval of width a. From −a to a the width is 2a: (2a)² / 12 = a² / 3.', entry="entry = a**2 / 12"),
    change('standard deviation', 'Your result is the standard deviation, the root of a variance. Return the variance itself.', sum="return math.sqrt(d_k * product)"),
    change('d_k squared', 'In your result d_k is squared. Variances of independent terms add up: d_k terms, factor d_k.', sum="return d_k**2 * product"),
    change('spread without the third', 'You took a² for the variance of an entry: right if every entry were −a or a. Spread evenly between them, it is a² / 3.', entry="entry = a**2"),
    change("square of the width left out", "You used 2a / 12: the variance of an interval of width w is w² / 12, with w = 2a, (2a)² / 12 = a² / 3.", entry="entry = 2 * a / 12"),
    change("width 2a twice", "You used the whole (2a)², without dividing by 12. A uniform number on an interval of width w has variance w² / 12.", entry="entry = (2 * a) ** 2"),
    change("divided by d_k", "You divide by d_k, as for a mean. The score is a sum: variances of independent terms add up, factor d_k.", sum="return product / d_k"),
    change("fourth moment", "a⁴ / 5 is the mean of the fourth power of one number, as if q_i and k_i were the same. They are independent: their variances multiply, (a² / 3)² = a⁴ / 9.", product="product = a**4 / 5"),
    change("to the power d_k", "You multiply the variances of the terms, or raise to a power. The terms are added, and so are their variances: factor d_k.", sum="return product**d_k"),
)

# fmt: on

# --- A stable softmax ---------------------------------------------------------------------------------------------


def _softmax_cases(rng: np.random.Generator) -> Sequence[Case]:
    far_apart = rng.normal(size=(3, 4)) + np.array([[1e4], [0], [-1e4]])
    closed = rng.normal(size=(3, 5))
    closed[2] -= 2e4  # below any number that might be put in the place of −∞
    closed[[0, 2], [1, 4]] = -np.inf
    return [
        Case("a row of 5 scores", (rng.normal(size=5),)),
        Case("a row of 6 scores near 10 000", (1e4 + rng.normal(size=6),)),
        Case("scores of shape (2, 3, 4)", (rng.normal(size=(2, 3, 4)),)),
        Case("scores of shape (4, 4)", (rng.normal(size=(4, 4)),)),
        Case("rows near 10 000, 0 and −10 000", (far_apart,)),
        Case("scores of ±10 000 in one row", (1e4 * rng.normal(size=(3, 6)),)),
        Case("some scores of −∞", (closed,)),
        Case("a single score", (np.array([[3.0]]),)),
        Case("float32 scores", (rng.normal(size=(3, 4)).astype(np.float32),)),
    ]


_SOFTMAX = Exercise(
    name="softmax",
    called="my_softmax",
    takes="x",
    task="""Softmax over the last axis.

x: scores, (..., n), any leading axes, float32 or float64. Returns the weights,
(..., n), in the dtype of x; x stays as it was. NumPy only, no `ops.softmax`.""",
    reference=ops.softmax,
    steps=SOFTMAX_STEPS,
    cases=_softmax_cases,
    returns=("weights",),
    hints=(
        "Three steps: make the scores safe, exponentiate, divide by the sum. Which axis must sum to 1?",
        "Safe: subtract each row's own maximum. That multiplies all exponentials of the row by one factor, and the "
        "division cancels it. `x.max(axis=-1, keepdims=True)` keeps the shape lined up.",
        "`np.exp(shifted)`, then divide by `.sum(axis=-1, keepdims=True)`. The score −∞ needs no special care: exp(−∞) is 0.",
    ),
    mistakes=SOFTMAX,
    library=(ops.softmax, ops.softmax_forward, ops.log_softmax),
    praise="Nine cases: any leading axes, ±10 000, −∞, float32. This softmax would do for a real model.",
    dtype="kept",
    in_pytorch="weights = torch.softmax(x, dim=-1)  # dim has no default here: say that it is the last axis",
)

# --- Scaled dot-product attention ----------------------------------------------------------------------------------


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
        case("as many sequences, queries and keys, with a mask", 3, 3, 5, 4, leading=(3,), masked=True),
    ]


_ATTENTION = Exercise(
    name="attention",
    called="my_attention",
    takes="Q, K, V, mask=None",
    task="""Scaled dot-product attention.

Q: (..., T_q, d_k). K: (..., T_k, d_k). V: (..., T_k, d_v), all in one dtype.
mask: None, or booleans (..., T_q, T_k), True = may attend. Returns
`output, weights`, (..., T_q, d_v) and (..., T_q, T_k), in that dtype; the
arguments stay as they were. `ops.softmax` may be used.""",
    reference=attention.scaled_dot_product_attention,
    steps={
        "score": "scores = Q @ K.swapaxes(-1, -2)  # (..., T_q, T_k)",
        "scale": "scores = scores / math.sqrt(K.shape[-1])",
        "mask": "if mask is not None:\n    scores = np.where(mask, scores, -np.inf)",
        "weights": "weights = ops.softmax(scores)  # each row sums to 1",
        "average": "output = weights @ V  # (..., T_q, d_v)",
        "answer": "return output, weights",
    },
    spellings={"weights": (OWN_SOFTMAX,), "mask": (f"if mask is not None:\n    {FINITE}",)},
    cases=_attention_cases,
    returns=("output", "weights"),
    hints=(
        "Follow the formula from the inside out: scores, scale, mask, softmax, average. Write down the shape after each step.",
        "Scores: `Q @ K.swapaxes(-1, -2)`, shape (..., T_q, T_k). `K.T` would turn the leading axes around as well. The scale "
        "is √d_k, the width of a key.",
        "Mask before softmax: `np.where(mask, scores, -np.inf)`. True means: may attend. Then `weights = ops.softmax(scores)` "
        "and `output = weights @ V`.",
    ),
    mistakes=ATTENTION,
    library=(attention.scaled_dot_product_attention, attention.attention_forward),
    praise="Eleven cases: masks, leading axes, scores in the thousands and beyond, one key, d_k = 1, float32. This is equation 1 of "
    "“Attention Is All You Need”, and it is yours.",
    dtype="kept",
    in_pytorch="""scores = Q @ K.mT / K.shape[-1] ** 0.5
if mask is not None: scores = scores.masked_fill(~mask, -torch.inf)
weights = scores.softmax(dim=-1)
# Or at once, without weights. True means "may attend" in this mask, and "hidden" in that of nn.MultiheadAttention.
output = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)""",
)

# --- The variance, predicted ----------------------------------------------------------------------------------------


def _variance_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case(f"d_k = {d_k} and a = {a}", (d_k, a))
        for d_k, a in ((512, 2.0), (2, 3.0), (64, 0.5), (1, 1.0), (7, 1.7), (4096, 0.1))
    ]


_VARIANCE = Exercise(
    name="score_variance",
    takes="d_k, a",
    task="""The variance of q · k, if all entries are uniform between −a and a.

d_k: the width of q and k. a: a positive number. Returns one number.""",
    steps={
        "entry": "entry = a**2 / 3  # variance of a uniform number between −a and a",
        "product": "product = entry**2  # the variances of two independent factors multiply",
        "sum": "return d_k * product  # d_k products are added, and so are their variances",
    },
    cases=_variance_cases,
    returns=("variance",),
    hints=(
        "Build it up: the variance of one entry, of one product q_i k_i, of the sum of d_k products.",
        "A uniform number between −a and a has variance (2a)² / 12 = a² / 3.",
        "For independent numbers with mean 0, Var(q_i k_i) = Var(q_i) · Var(k_i). Variances of independent terms add up.",
    ),
    mistakes=VARIANCE,
    praise="The score grows with d_k for uniform entries too; only the factor differs. Now compare with random vectors.",
)

EXERCISES = (_SOFTMAX, _ATTENTION, _VARIANCE)
