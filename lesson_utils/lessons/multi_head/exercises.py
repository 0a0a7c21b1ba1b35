"""The exercises of notebook 03."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.multi_head import mistakes
from lesson_utils.maths import attention
from lesson_utils.mistakes.exercise import Case, Exercise

# --- Split and merge ------------------------------------------------------------------------------------------------


def _split_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("4 tokens of width 6, 3 heads", (rng.normal(size=(4, 6)), 3)),
        Case("leading axes (2,), 5 tokens of width 12, 4 heads", (rng.normal(size=(2, 5, 12)), 4)),
        Case("leading axes (2, 3), 7 tokens of width 10, 5 heads", (rng.normal(size=(2, 3, 7, 10)), 5)),
        Case("12 tokens of width 6, 2 heads", (rng.normal(size=(12, 6)), 2)),
        Case("one head", (rng.normal(size=(3, 4)), 1)),
        Case("as many heads as columns", (rng.normal(size=(2, 5, 3)), 3)),
        Case("float32 input", (rng.normal(size=(5, 8)).astype(np.float32), 2)),
        Case("as many heads as tokens", (rng.normal(size=(4, 8)), 4)),
        Case("leading axes (2, 1, 3), a single token of width 6, 2 heads", (rng.normal(size=(2, 1, 3, 1, 6)), 2)),
        Case("columns that stand one after the other in memory", (rng.normal(size=(6, 5)).T, 3)),
    ]


def _merge_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("3 heads, 4 tokens, d_k = 2", (rng.normal(size=(3, 4, 2)),)),
        Case("leading axes (2,), 4 heads, 5 tokens, d_k = 3", (rng.normal(size=(2, 4, 5, 3)),)),
        Case("leading axes (2, 3), 5 heads, 7 tokens, d_k = 2", (rng.normal(size=(2, 3, 5, 7, 2)),)),
        Case("one head", (rng.normal(size=(1, 3, 4)),)),
        Case("d_k = 1", (rng.normal(size=(2, 3, 5, 1)),)),
        Case("float32 input", (rng.normal(size=(2, 5, 4)).astype(np.float32),)),
        Case("as many heads as tokens", (rng.normal(size=(3, 3, 4)),)),
        Case("a batch of one, a single token", (rng.normal(size=(1, 3, 1, 2)),)),
        Case("leading axes (2, 1, 2), 3 heads", (rng.normal(size=(2, 1, 2, 3, 4, 2)),)),
    ]


_SPLIT = Exercise(
    name="split_heads",
    called="my_split_heads",
    takes="x, num_heads",
    task="""Cut each token's vector into `num_heads` pieces, one for each head.

x: (..., T, d_model), any leading axes, also none; num_heads divides d_model.
Returns (..., h, T, d_k), with d_k = d_model // num_heads. NumPy only.
x stays as it was.""",
    reference=attention.split_heads,
    steps={
        "sizes": "*leading, T, d_model = x.shape\nd_k = d_model // num_heads",
        "cut": "x = x.reshape(*leading, T, num_heads, d_k)  # cut each row into pieces",
        "swap": "return x.swapaxes(-2, -3)  # (..., h, T, d_k)",
    },
    cases=_split_cases,
    returns=("heads",),
    hints=(
        "Two steps, as in the figure: cut each row into h pieces, then let two axes change places. What is the shape after each?",
        "Take the sizes from the end: `*leading, T, d_model = x.shape`. Whatever stands in front goes on unchanged: "
        "`x.reshape(*leading, ...)`.",
        "`reshape(*leading, T, num_heads, d_model // num_heads)`, then `.swapaxes(-2, -3)`.",
    ),
    mistakes=mistakes.SPLIT,
    library=(attention.split_heads,),
    praise="Ten cases: any leading axes, one head, d_k = 1, float32. Each head has its own columns of every token.",
)

_MERGE = Exercise(
    name="merge_heads",
    called="my_merge_heads",
    takes="x",
    task="""Put the pieces of each token side by side again, head 0 first.

x: (..., h, T, d_k), any leading axes, also none.
Returns (..., T, h·d_k). NumPy only. x stays as it was.""",
    reference=attention.merge_heads,
    steps={
        "sizes": "*leading, num_heads, T, d_k = x.shape",
        "swap": "x = x.swapaxes(-2, -3)  # (..., T, h, d_k): the pieces of a token side by side",
        "join": "return x.reshape(*leading, T, num_heads * d_k)",
    },
    cases=_merge_cases,
    returns=("merged",),
    hints=(
        "Undo the split, in the opposite order: first the axes, then the reshape.",
        "Sizes from the end: `*leading, num_heads, T, d_k = x.shape`. Which two axes must change places, so that the pieces of "
        "a token lie side by side?",
        "`.swapaxes(-2, -3)`, then `.reshape(*leading, T, num_heads * d_k)`.",
    ),
    mistakes=mistakes.MERGE,
    library=(attention.merge_heads,),
    praise="Nine cases. Split and merge are a pair now; and each was checked by itself, which a round trip does not do.",
)

# --- Multi-head attention -------------------------------------------------------------------------------------------


def _reference(x, W_Q, W_K, W_V, W_O, num_heads):  # type: ignore[no-untyped-def]
    return attention.multi_head_attention(x, x, W_Q, W_K, W_V, W_O, num_heads)


def _multi_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, d_model: int, h: int, d_k: int, d_v: int, d_out: int, *leading: int) -> Case:
        shapes = (*leading, T, d_model), (d_model, h * d_k), (d_model, h * d_k), (d_model, h * d_v), (h * d_v, d_out)
        return Case(label, (*(rng.normal(size=shape) for shape in shapes), h))

    *arrays, heads = case("", 5, 6, 3, 2, 2, 6).arguments
    return [
        case("5 tokens of width 12, 3 heads", 5, 12, 3, 4, 4, 12),
        case("leading axes (2,), 4 tokens of width 6, 2 heads", 4, 6, 2, 3, 3, 6, 2),
        case("leading axes (2, 3), 4 tokens of width 10, 5 heads", 4, 10, 5, 2, 2, 10, 2, 3),
        case("d_model = 5, h = 2, d_k = 3, d_v = 4, output width 7", 6, 5, 2, 3, 4, 7),
        case("one head", 3, 4, 1, 4, 4, 4),
        Case("float32 input", (*(a.astype(np.float32) for a in arrays), heads)),
        case("a batch of one, a single token", 1, 6, 2, 3, 3, 6, 1),
        case("as many sequences and heads as tokens", 3, 6, 3, 2, 2, 6, 3),
    ]


_MULTI = Exercise(
    name="multi_head_attention",
    called="my_multi_head",
    takes="x, W_Q, W_K, W_V, W_O, num_heads",
    task="""Multi-head self-attention, without a mask.

x: (..., T, d_model). W_Q, W_K: (d_model, h·d_k). W_V: (d_model, h·d_v).
W_O: (h·d_v, d_out). num_heads: h. Returns output, (..., T, d_out), and the
weights of all heads, (..., h, T, T). NumPy, your own functions, and those in
`attention` but for `multi_head_attention`. The arguments stay as they were.""",
    reference=_reference,
    steps={
        "Q": "Q = attention.split_heads(x @ W_Q, num_heads)  # (..., h, T, d_k)",
        "K": "K = attention.split_heads(x @ W_K, num_heads)  # (..., h, T, d_k)",
        "V": "V = attention.split_heads(x @ W_V, num_heads)  # (..., h, T, d_v)",
        "attend": "heads, weights = attention.scaled_dot_product_attention(Q, K, V)  # all heads at once",
        "merge": "joined = attention.merge_heads(heads)  # (..., T, h·d_v)",
        "mix": "output = joined @ W_O  # (..., T, d_out)",
        "answer": "return output, weights  # weights: (..., h, T, T)",
    },
    cases=_multi_cases,
    returns=("output", "weights"),
    hints=(
        "Five steps: project, split, attend, merge, mix. Write down the shape after each.",
        "`attention.scaled_dot_product_attention` accepts leading axes: give it all heads at once, (..., h, T, d_k). No loop "
        "is needed.",
        "Q = `attention.split_heads(x @ W_Q, num_heads)`, K and V likewise; then attention; then "
        "`attention.merge_heads(heads) @ W_O`.",
    ),
    mistakes=mistakes.MULTI,
    library=(attention.multi_head_attention,),
    praise="Eight cases: any leading axes, widths that all differ, one head, float32. This is section 3.2.2 of “Attention Is All "
    "You Need”.",
)

EXERCISES = (_SPLIT, _MERGE, _MULTI)
