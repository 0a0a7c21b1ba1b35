"""The exercises of notebook 03."""

from collections.abc import Sequence

import numpy as np

from lesson_utils import attention
from lesson_utils.exercises.old_checker import Case, Exercise
from lesson_utils.lessons.multi_head import mistakes

# --- Split and merge ------------------------------------------------------------------------------------------------


def split_heads(x, num_heads):  # type: ignore[no-untyped-def]  # solutions are shown to learners, who write without types
    *leading, T, d_model = x.shape
    d_k = d_model // num_heads
    x = x.reshape(*leading, T, num_heads, d_k)  # cut each row into pieces
    return x.swapaxes(-2, -3)  # (..., h, T, d_k)


def merge_heads(x):  # type: ignore[no-untyped-def]
    *leading, num_heads, T, d_k = x.shape
    x = x.swapaxes(-2, -3)  # (..., T, h, d_k): the pieces of a token side by side
    return x.reshape(*leading, T, num_heads * d_k)


def _split_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("4 tokens of width 6, 3 heads", (rng.normal(size=(4, 6)), 3)),
        Case("leading axes (2,), 5 tokens of width 12, 4 heads", (rng.normal(size=(2, 5, 12)), 4)),
        Case("leading axes (2, 3), 7 tokens of width 10, 5 heads", (rng.normal(size=(2, 3, 7, 10)), 5)),
        Case("12 tokens of width 6, 2 heads", (rng.normal(size=(12, 6)), 2)),
        Case("one head", (rng.normal(size=(3, 4)), 1)),
        Case("as many heads as columns", (rng.normal(size=(2, 5, 3)), 3)),
        Case("float32 input", (rng.normal(size=(5, 8)).astype(np.float32), 2)),
    ]


def _merge_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("3 heads, 4 tokens, d_k = 2", (rng.normal(size=(3, 4, 2)),)),
        Case("leading axes (2,), 4 heads, 5 tokens, d_k = 3", (rng.normal(size=(2, 4, 5, 3)),)),
        Case("leading axes (2, 3), 5 heads, 7 tokens, d_k = 2", (rng.normal(size=(2, 3, 5, 7, 2)),)),
        Case("one head", (rng.normal(size=(1, 3, 4)),)),
        Case("d_k = 1", (rng.normal(size=(2, 3, 5, 1)),)),
        Case("float32 input", (rng.normal(size=(2, 5, 4)).astype(np.float32),)),
    ]


_SPLIT = Exercise(
    name="split_heads",
    reference=attention.split_heads,
    solution=split_heads,
    cases=_split_cases,
    returns=("heads",),
    hints=(
        "Two steps, as in the figure: cut each row into h pieces, then let two axes change places. What is the shape after each?",
        "Take the sizes from the end: `*leading, T, d_model = x.shape`. Whatever stands in front goes on unchanged: "
        "`x.reshape(*leading, ...)`.",
        "`reshape(*leading, T, num_heads, d_model // num_heads)`, then `.swapaxes(-2, -3)`.",
    ),
    misconceptions=mistakes.SPLIT_MISTAKES,
    library=(attention.split_heads,),
    praise="Seven cases: any leading axes, one head, d_k = 1, float32. Each head has its own columns of every token.",
)

_MERGE = Exercise(
    name="merge_heads",
    reference=attention.merge_heads,
    solution=merge_heads,
    cases=_merge_cases,
    returns=("merged",),
    hints=(
        "Undo the split, in the opposite order: first the axes, then the reshape.",
        "Sizes from the end: `*leading, num_heads, T, d_k = x.shape`. Which two axes must change places, so that the pieces of "
        "a token lie side by side?",
        "`.swapaxes(-2, -3)`, then `.reshape(*leading, T, num_heads * d_k)`.",
    ),
    misconceptions=mistakes.MERGE_MISTAKES,
    library=(attention.merge_heads,),
    praise="Six cases. Split and merge are a pair now; and each was checked by itself, which a round trip does not do.",
)

# --- Multi-head attention -------------------------------------------------------------------------------------------


def multi_head_attention(x, W_Q, W_K, W_V, W_O, num_heads):  # type: ignore[no-untyped-def]
    Q = attention.split_heads(x @ W_Q, num_heads)  # (..., h, T, d_k)
    K = attention.split_heads(x @ W_K, num_heads)  # (..., h, T, d_k)
    V = attention.split_heads(x @ W_V, num_heads)  # (..., h, T, d_v)
    heads, weights = attention.scaled_dot_product_attention(Q, K, V)  # all heads at once
    return attention.merge_heads(heads) @ W_O, weights  # (..., T, d_out), (..., h, T, T)


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
    ]


_MULTI = Exercise(
    name="multi_head_attention",
    reference=_reference,
    solution=multi_head_attention,
    cases=_multi_cases,
    returns=("output", "weights"),
    hints=(
        "Five steps: project, split, attend, merge, mix. Write down the shape after each.",
        "`attention.scaled_dot_product_attention` accepts leading axes: give it all heads at once, (..., h, T, d_k). No loop "
        "is needed.",
        "Q = `attention.split_heads(x @ W_Q, num_heads)`, K and V likewise; then attention; then "
        "`attention.merge_heads(heads) @ W_O`.",
    ),
    misconceptions=mistakes.MULTI_MISTAKES,
    library=(attention.multi_head_attention,),
    praise="Six cases: any leading axes, widths that all differ, one head, float32. This is section 3.2.2 of “Attention Is All "
    "You Need”.",
)

EXERCISES = (_SPLIT, _MERGE, _MULTI)
