"""The exercises of notebook 09."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from lesson_utils.lessons.real_model import mistakes
from lesson_utils.maths import attention, ops
from lesson_utils.maths import positions as library
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise

# --- The induction score ----------------------------------------------------------------------------------------------


def _score_cases(rng: np.random.Generator) -> Sequence[Case]:
    def maps(*shape: int) -> Array:
        scores = 2 * rng.normal(size=shape)
        return ops.softmax(np.where(np.tri(shape[-1], dtype=bool), scores, -np.inf))

    return [
        Case("one map, period 4, two copies", (maps(8, 8), 4)),
        Case("three heads, period 5, nearly three copies", (maps(3, 14, 14), 5)),
        Case("a batch of two, three heads, period 3", (maps(2, 3, 9, 9), 3)),
        Case("as many heads as positions", (maps(6, 6, 6), 3)),
        Case("period 7, two copies and a bit", (maps(4, 17, 17), 7)),
        Case("period 1, two symbols", (maps(2, 2), 1)),
    ]


_SCORE = Exercise(
    name="induction_score",
    called="my_induction_score",
    takes="weights, period",
    task="""The mean weight of the second copy's queries on the key that comes after the same symbol.

weights: maps, (..., T, T), query by key. Symbols repeat after `period` of them,
T is at least 2 · period; what comes after the second copy does not count.
Returns the score of each map, (...). NumPy only. weights stay as they were.""",
    steps={
        "queries": "queries = np.arange(period, 2 * period)  # the second copy",
        "keys": "keys = queries - period + 1  # after the same symbol in the first",
        "picked": "picked = weights[..., queries, keys]  # (..., period)",
        "answer": "return picked.mean(axis=-1)",
    },
    cases=_score_cases,
    returns=("score",),
    hints=(
        "Write down one case: period 4, symbols A B C D A B C D at positions 0 to 7. The query at 5 is the second B. The same "
        "symbol stands at 1, and after it, at 2, the C that comes next. Which key is that for a query at t?",
        "Queries are `np.arange(period, 2 * period)`, keys `queries - period + 1`. With two index arrays of equal length, "
        "`weights[..., queries, keys]` picks one weight for each query.",
        "What is left to do is the mean over the queries, the last axis: other axes are maps of their own.",
    ),
    mistakes=mistakes.SCORE,
    praise="Six sets of maps, with batches, heads, and a rest after the second copy.",
)

# --- RMS norm ---------------------------------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(
        label: str, *shape: int, eps: float = 1e-5, dtype: Any = float, size: float = 1.0, off: float = 1.5
    ) -> Case:
        x, gamma = off + size * rng.normal(size=shape), 1 + 0.5 * rng.normal(size=shape[-1])
        return Case(label, (x.astype(dtype), gamma.astype(dtype), eps))

    return [
        case("4 tokens, d_model = 6", 4, 6),
        case("a batch of shape (2, 3, 5)", 2, 3, 5, size=4),
        case("one token, shape (7,)", 7),
        case("as many tokens as features", 5, 5),
        case("tiny features, where ε counts", 3, 4, eps=1e-2, size=0.05, off=0.0),
        Case("a token of zeros", (np.zeros((2, 4)), np.ones(4), 1e-5)),
        case("float32 input", 3, 8, dtype=np.float32),
        case("d_model = 1", 3, 1),
    ]


_NORM = Exercise(
    name="rms_norm",
    called="my_rms_norm",
    takes="x, gamma, eps",
    task="""RMS norm: each token over the root of its mean square, times γ.

x: (..., d_model). gamma: (d_model,), in the dtype of x. eps: added to the mean
square, under the root. Returns (..., d_model), in the dtype of x. NumPy only.
The arguments stay as they were.""",
    steps={
        "square": "mean_square = (x**2).mean(axis=-1, keepdims=True)  # (..., 1)",
        "root": "root = np.sqrt(mean_square + eps)",
        "answer": "return gamma * (x / root)",
    },
    cases=_norm_cases,
    returns=("y",),
    hints=(
        "Layer norm without its mean and without β: no subtraction, and the mean of x² in place of the variance.",
        "`(x**2).mean(axis=-1, keepdims=True)` has shape (..., 1), and lines up with x.",
        "ε comes under the root: `np.sqrt(mean_square + eps)`. Then divide, and multiply by γ.",
    ),
    mistakes=mistakes.NORM,
    praise="Eight cases, a token of zeros among them. Llama, Mistral, Qwen and Gemma norm so, 61 times a token in SmolLM2.",
    dtype="kept",
)

# --- Grouped attention ------------------------------------------------------------------------------------------------


def _grouped_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, h: int, h_kv: int, T_q: int, T_k: int, d_k: int, d_v: int) -> Case:
        return Case(
            label,
            (rng.normal(size=(h, T_q, d_k)), rng.normal(size=(h_kv, T_k, d_k)), rng.normal(size=(h_kv, T_k, d_v))),
        )

    return [
        case("6 query heads on 2 key–value heads", 6, 2, 4, 5, 3, 7),
        case("9 on 3, as in SmolLM2", 9, 3, 5, 5, 4, 4),
        case("4 on 1 (multi-query attention)", 4, 1, 3, 6, 5, 2),
        case("3 on 3 (no sharing)", 3, 3, 4, 7, 2, 5),
        case("8 on 4, a single query", 8, 4, 1, 9, 6, 6),
        case("4 on 2, all sizes equal", 4, 2, 4, 4, 4, 4),
        case("one head, one key", 1, 1, 3, 1, 2, 2),
    ]


def _grouped_reference(Q: Array, K: Array, V: Array) -> Array:
    K, V = attention.repeat_heads(K, len(Q)), attention.repeat_heads(V, len(Q))
    return attention.scaled_dot_product_attention(Q, K, V)[0]


_GROUPED = Exercise(
    name="grouped_attention",
    called="my_grouped_attention",
    takes="Q, K, V",
    task="""Attention of h query heads on h_kv key–value heads; h / h_kv neighbours share one.

Q: (h, T_q, d_k). K: (h_kv, T_k, d_k). V: (h_kv, T_k, d_v). h is a multiple of
h_kv. Returns the output, (h, T_q, d_v). NumPy, `math` and `ops.softmax`.
The arguments stay as they were.""",
    reference=_grouped_reference,
    steps={
        "groups": "groups = Q.reshape(len(K), -1, *Q.shape[1:])  # (h_kv, h / h_kv, T_q, d_k)",
        "keys": "K, V = K[:, None], V[:, None]  # (h_kv, 1, T_k, ·): one for the whole group",
        "scores": "scores = groups @ K.swapaxes(-1, -2)  # (h_kv, h / h_kv, T_q, T_k)",
        "scale": "scores = scores / math.sqrt(Q.shape[-1])",
        "weights": "weights = ops.softmax(scores)",
        "output": "output = weights @ V",
        "answer": "return output.reshape(len(Q), Q.shape[1], -1)",
    },
    cases=_grouped_cases,
    returns=("output",),
    hints=(
        "Give Q an axis more, so that a group of neighbouring heads stands beside its one key–value head: (h_kv, h / h_kv, T_q, d_k).",
        "`Q.reshape(len(K), -1, *Q.shape[1:])`, and `K[:, None]`, (h_kv, 1, T_k, d_k): NumPy uses the one for all of its group, "
        "and copies nothing.",
        "From there on it is attention as ever: scores over √d_k, softmax, times V. At the end, back to (h, T_q, d_v).",
    ),
    mistakes=mistakes.GROUPED,
    library=(attention.multi_head_attention,),
    praise="Seven cases, from sharing by all to sharing by none. The cache of SmolLM2 is a third of what nine heads would need.",
    scope={},
)

# --- Rotary in halves -------------------------------------------------------------------------------------------------


def _halves_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("5 positions, d = 8", (rng.normal(size=(5, 8)), np.arange(5))),
        Case("3 positions from 40 on, d = 6", (rng.normal(size=(3, 6)), np.arange(40, 43))),
        Case("leading axes (2, 3), d = 10", (rng.normal(size=(2, 3, 4, 10)), np.arange(4))),
        Case("a single pair", (rng.normal(size=(7, 2)), np.arange(7))),
        Case("positions in no order, d = 12", (rng.normal(size=(4, 12)), np.array([9, 2, 2, 31]))),
        Case("positions below 0", (rng.normal(size=(4, 6)), np.arange(-3, 1))),
        Case("as many sequences as positions", (rng.normal(size=(4, 4, 6)), np.arange(4))),
        Case("a single position", (rng.normal(size=(1, 6)), np.array([7]))),
    ]


def _halves_reference(x: Array, at: Array) -> Array:
    return library.rotary(x, at, pairs="halves")


_HALVES = Exercise(
    name="rotary_halves",
    called="my_rotary_halves",
    takes="x, at",
    task="""Rotary positions where the columns i and i + d/2 are a pair.

x: (..., T, d), d even. at: positions, (T,). Returns x turned, (..., T, d), its
columns in their old order. Use `positions.rotary(x, at)`, which turns neighbours,
2i and 2i + 1, and two permutations of columns; not its `pairs=`.
The arguments stay as they were.""",
    reference=_halves_reference,
    library=(partial(library.rotary, pairs="halves"),),
    steps={
        "order": "order = np.arange(x.shape[-1]).reshape(2, -1).T.ravel()  # 0, d/2, 1, d/2 + 1, …",
        "beside": "beside = x[..., order]  # each pair side by side",
        "turned": "turned = positions.rotary(beside, at)",
        "answer": "return turned[..., np.argsort(order)]",
    },
    cases=_halves_cases,
    returns=("turned",),
    hints=(
        "Bring each pair side by side, turn, and bring the columns back. For d = 6 the order is 0, 3, 1, 4, 2, 5.",
        "`np.arange(d).reshape(2, -1)` has the first half in row 0 and the second in row 1; its transpose, read row by row, is the order.",
        "`x[..., order]` sorts columns by `order`; `[..., np.argsort(order)]` undoes it.",
    ),
    mistakes=mistakes.HALVES,
    praise="Eight cases. This permutation is what a converter does to W_Q and W_K between Hugging Face's Llama and a GGUF file.",
)

# --- An induction head by hand ----------------------------------------------------------------------------------------


def _hand_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [Case(f"V = {V}, T = {T}", (V, T)) for V, T in ((3, 5), (4, 4), (2, 7), (6, 3), (5, 9), (1, 4), (3, 1))]


_HAND = Exercise(
    name="induction_head",
    called="my_induction_head",
    takes="V, T",
    task="""Two heads that copy: four matrices of zeros and ones, each (d, d), d = 3V + T.

V symbols, T positions, both numbers. The stream has four blocks of columns, in
this order, one-hot: symbol (V), position (T), symbol before (V), answer (V).
A query x_t scores a key x_s by x_t @ QK @ x_s; what it gets is x_s @ OV, added.
Head 0 looks one back, and writes that symbol into "symbol before". Head 1 looks
where its own symbol is the symbol before, and writes what stands there into
"answer". Returns QK_0, OV_0, QK_1, OV_1. NumPy only.""",
    steps={
        "blocks": "symbol, place = np.arange(V), V + np.arange(T)  # the columns of each block",
        "written": "before, answer = V + T + symbol, 2 * V + T + symbol",
        "size": "d = 3 * V + T",
        "zeros": "QK_0, OV_0, QK_1, OV_1 = np.zeros((4, d, d))",
        "qk_0": "QK_0[place[1:], place[:-1]] = 1  # who stands at t looks for t − 1",
        "ov_0": "OV_0[symbol, before] = 1",
        "qk_1": "QK_1[symbol, before] = 1  # my symbol, as somebody's symbol before",
        "ov_1": "OV_1[symbol, answer] = 1",
        "result": "return QK_0, OV_0, QK_1, OV_1",
    },
    cases=_hand_cases,
    returns=("QK_0", "OV_0", "QK_1", "OV_1"),
    hints=(
        "Each matrix says which column of one block meets which column of another: a 1 at [row, column] makes entry `row` of the "
        "query meet entry `column` of the key, or hands entry `row` over into entry `column`.",
        "Give the columns of each block a name: `symbol, place = np.arange(V), V + np.arange(T)`, and so on. Then "
        "`OV_0[symbol, before] = 1` puts a whole diagonal of ones.",
        "Head 0: query at position t, key at t − 1: `QK_0[place[1:], place[:-1]] = 1`. Head 1: the query's symbol meets the key's "
        "symbol before.",
    ),
    mistakes=mistakes.HAND,
    # Position 0 may look at itself: it sees nothing else, and with a row of zeros it does so, too.
    spellings={"qk_0": ("QK_0[place[1:], place[:-1]] = 1\nQK_0[place[0], place[0]] = 1",)},
    praise="Seven sizes. Below, your four matrices copy; nobody has trained them.",
)

# --- One input without one head ----------------------------------------------------------------------------------------


@cache  # the same norms in each draw, so that cases can be compared
def _norm_of(d: int, kind: str) -> Callable[[Array], Array]:
    gamma = 1 + 0.3 * np.random.default_rng(d).normal(size=d)
    if kind == "layer":
        return lambda x: ops.layer_norm(x, gamma, 0.1 * gamma)
    return lambda x: gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def _patch_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, d_k: int, into: str, kind: str = "rms") -> Case:
        x, written = 2 * rng.normal(size=(2, *shape))
        d = shape[-1]
        W_Q, W_K, W_V = rng.normal(size=(3, d, d_k)) / np.sqrt(d)
        return Case(label, (x, written, _norm_of(d, kind), W_Q, W_K, W_V, into))

    return [
        case('`into="keys"`', 5, 6, d_k=3, into="keys"),
        case('`into="queries"`', 5, 6, d_k=3, into="queries"),
        case('`into="values"`', 5, 6, d_k=3, into="values"),
        case('a batch of shape (2, 4), `into="keys"`', 2, 4, 7, d_k=5, into="keys"),
        case('layer norm, `into="values"`', 4, 8, d_k=4, into="values", kind="layer"),
        case('a single token, `into="queries"`', 1, 5, d_k=2, into="queries"),
    ]


_PATCHED = Exercise(
    name="patched_inputs",
    called="my_patched_inputs",
    takes="x, written, norm, W_Q, W_K, W_V, into",
    task="""Q, K and V of a head, one of them made as if another head had written nothing.

x: the stream that both heads share, (..., T, d_model). written: the part of x that
the other head has added, of the same shape. norm: a function, (..., d_model) to the
same shape, which comes before the matrices. W_Q, W_K, W_V: (d_model, d_k) each.
into: "queries", "keys" or "values", the one input that is made without `written`.
Returns Q, K, V, (..., T, d_k) each. NumPy only. The arguments stay as they were.""",
    steps={
        "whole": "whole = norm(x)",
        "without": "without = norm(x - written)",
        "queries": 'Q = (without if into == "queries" else whole) @ W_Q',
        "keys": 'K = (without if into == "keys" else whole) @ W_K',
        "values": 'V = (without if into == "values" else whole) @ W_V',
        "answer": "return Q, K, V",
    },
    cases=_patch_cases,
    returns=("Q", "K", "V"),
    hints=(
        "You need two readings of the stream: one as it is, and one that lacks what the other head has written. Two of the "
        "three inputs use the first, and one uses the second.",
        "`whole = norm(x)` and `without = norm(x - written)`. The norm comes after the subtraction, because the stream is what "
        "the other head has written into.",
        'For the keys: `K = (without if into == "keys" else whole) @ W_K`. Queries and values are built alike.',
    ),
    mistakes=mistakes.PATCHED,
    praise="Six cases, with two kinds of norm. Below, your function cuts one wire in a model.",
)

EXERCISES = (_SCORE, _HAND, _PATCHED, _NORM, _GROUPED, _HALVES)
