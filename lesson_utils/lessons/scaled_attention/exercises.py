"""The exercises of notebook 02."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.common_mistakes import FINITE, OWN_SOFTMAX
from lesson_utils.lessons.scaled_attention import mistakes
from lesson_utils.maths import attention, ops
from lesson_utils.mistakes.exercise import Case, Exercise

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
    steps=mistakes.SOFTMAX_STEPS,
    cases=_softmax_cases,
    returns=("weights",),
    hints=(
        "Three steps: make the scores safe, exponentiate, divide by the sum. Which axis must sum to 1?",
        "Safe: subtract each row's own maximum. That multiplies all exponentials of the row by one factor, and the "
        "division cancels it. `x.max(axis=-1, keepdims=True)` keeps the shape lined up.",
        "`np.exp(shifted)`, then divide by `.sum(axis=-1, keepdims=True)`. The score −∞ needs no special care: exp(−∞) is 0.",
    ),
    mistakes=mistakes.SOFTMAX,
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
    mistakes=mistakes.ATTENTION,
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
    mistakes=mistakes.VARIANCE,
    praise="The score grows with d_k for uniform entries too; only the factor differs. Now let the computer throw the dice.",
)

EXERCISES = (_SOFTMAX, _ATTENTION, _VARIANCE)
