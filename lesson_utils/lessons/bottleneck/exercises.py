"""The exercises of notebook 01."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.bottleneck import mistakes
from lesson_utils.lessons.common_mistakes import FINITE, OWN_SOFTMAX
from lesson_utils.maths import attention, recurrent, scores
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise

# --- A GRU step -------------------------------------------------------------------------------------------------------


def _gru_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, d_in: int, d_h: int, size: float = 1.0, dtype: type = np.float64) -> Case:
        shapes = ((B, d_in), (B, d_h), (d_in, 3 * d_h), (d_h, 3 * d_h), (3 * d_h,), (d_h,))
        return Case(label, tuple((size * rng.normal(size=shape)).astype(dtype) for shape in shapes))

    first = case("", 3, 2, 4).arguments
    return [
        case("a batch of 2 with 3 inputs and a state of 5", 2, 3, 5),
        case("a batch of 4 with 7 inputs and a state of 2", 4, 7, 2),
        case("a batch of 3", 3, 4, 5),
        case("a single sequence", 1, 2, 4),
        case("a state of a single number", 5, 2, 1),
        case("gates nearly open or shut", 2, 4, 3, size=3.0),
        case("float32 input", 4, 3, 6, dtype=np.float32),
        Case("a state of zeros, as in the first step", (first[0], 0 * first[1], *first[2:])),
    ]


_GRU = Exercise(
    name="gru_step",
    takes="x, h, W_x, W_h, b, b_h",
    task="""One step of a GRU, for a batch.

x: (B, d_in), h: (B, d_h). The columns of r, z and n stand side by side, in this order: W_x is (d_in, 3·d_h),
W_h is (d_h, 3·d_h), b is (3·d_h,). b_h, (d_h,), is the candidate's second bias.
Returns the new state, (B, d_h). NumPy, and `ops.sigmoid`. The arguments stay as they were.""",
    reference=recurrent.gru_cell,
    steps={
        "x": "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)  # (B, d_h) each",
        "h": "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)  # (B, d_h) each",
        "r": "r = ops.sigmoid(x_r + h_r)",
        "z": "z = ops.sigmoid(x_z + h_z)",
        "n": "n = np.tanh(x_n + r * (h_n + b_h))",
        "new": "return (1 - z) * n + z * h",
    },
    cases=_gru_cases,
    returns=("new_state",),
    hints=(
        "Two products hold everything: `x @ W_x + b` and `h @ W_h`, each (B, 3·d_h). Cut both into three blocks of "
        "columns.",
        "`np.split(..., 3, axis=-1)` gives the blocks of r, z and n. The gates: `ops.sigmoid` of input block plus "
        "state block.",
        "The candidate sees the old state through r: `np.tanh(x_n + r * (h_n + b_h))`. Then mix: z of the old, 1 − z "
        "of the "
        "new.",
    ),
    mistakes=mistakes.GRU,
    library=(recurrent.gru_cell,),
    praise="Eight cases: any sizes, a single number, a state of zeros, gates nearly shut, float32. This is the cell of the trained models.",
)

# --- The additive score ---------------------------------------------------------------------------------------------


def _additive_reference(query: Array, keys: Array, W_q: Array, W_k: Array, v: Array) -> Array:
    return attention.additive_score(query[:, None], keys, W_q, W_k, v)[:, 0]


def _additive_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, S: int, d_q: int, d_k: int, d_a: int, dtype: type = np.float64) -> Case:
        shapes = ((B, d_q), (B, S, d_k), (d_q, d_a), (d_k, d_a), (d_a,))
        return Case(label, tuple(rng.normal(size=shape).astype(dtype) for shape in shapes))

    return [
        case("2 queries with 5 keys each", 2, 5, 3, 4, 6),
        case("as many keys as queries", 4, 4, 3, 5, 2),
        case("queries as wide as keys", 2, 3, 5, 5, 4),
        case("as many keys as hidden numbers", 3, 6, 2, 4, 6),
        case("a single query", 1, 4, 2, 5, 3),
        case("a single key", 3, 1, 4, 2, 5),
        case("float32 input", 3, 4, 6, 5, 2, np.float32),
        case("widths of 1", 2, 3, 1, 1, 1),
    ]


_ADDITIVE = Exercise(
    name="additive_score",
    takes="query, keys, W_q, W_k, v",
    task="""v · tanh(q W_q + h W_k) for each string's query q and each of its keys h, before softmax; no loop.

query: (B, d_q). keys: (B, S, d_k). W_q: (d_q, d_a). W_k: (d_k, d_a). v: (d_a,).
Returns the scores, (B, S). NumPy only. The arguments stay as they were.""",
    reference=_additive_reference,
    steps={
        "query": "from_query = (query @ W_q)[:, None]  # (B, 1, d_a): the same for every key",
        "keys": "from_keys = keys @ W_k  # (B, S, d_a)",
        "both": "both = from_query + from_keys",
        "tanh": "hidden = np.tanh(both)  # (B, S, d_a)",
        "score": "return hidden @ v  # (B, S)",
    },
    cases=_additive_cases,
    returns=("scores",),
    hints=(
        "Follow the formula from the inside out, and write down the shape after each step. What shape has `query @ "
        "W_q`, and "
        "what shape has `keys @ W_k`?",
        "(B, d_a) and (B, S, d_a): the query's part needs an axis in the middle, `(query @ W_q)[:, None]`.",
        "`np.tanh` of the sum is (B, S, d_a). `@ v` adds up over the last axis.",
    ),
    mistakes=mistakes.ADDITIVE,
    library=(attention.additive_score, scores.score_forward),
    praise="Eight cases, with sizes that happen to be equal among them. Bahdanau's score, for a whole batch at once.",
)

# --- The context vector ---------------------------------------------------------------------------------------------


def _context_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, S: int, d: int, size: float = 1.0, dtype: type = np.float64) -> Case:
        scores, keys = size * rng.normal(size=(B, S)), rng.normal(size=(B, S, d))
        lengths = rng.integers(1, S + 1, size=B)
        lengths[rng.integers(B)] = max(S - 1, 1)  # at least one string is padded
        mask = np.arange(S) < lengths[:, None]  # (B, S)
        return Case(label, (scores.astype(dtype), keys.astype(dtype), mask))

    scores, keys, _ = case("", 3, 4, 5).arguments
    loud, loud_keys, loud_mask = case("", 3, 5, 2).arguments
    loud[0] -= 1000  # far below the other rows, too
    loud[~loud_mask] += 3000
    far, far_keys, far_mask = case("", 4, 6, 3).arguments  # below any number that might be put in the place of −∞
    return [
        case("2 strings of up to 5 letters", 2, 5, 3),
        Case("3 strings without padding", (scores, keys, np.ones((3, 4), bool))),
        case("as many strings as letters", 4, 4, 6),
        case("keys as wide as strings are long", 3, 5, 5),
        case("all three sizes equal", 4, 4, 4),
        case("a single string", 1, 6, 2),
        case("a single letter", 3, 1, 4),
        case("scores in the hundreds", 3, 6, 2, size=300.0),
        Case("padding that scores far above the letters", (loud, loud_keys, loud_mask)),
        Case("letters that score near −300 000", (np.where(far_mask, far - 3e5, far), far_keys, far_mask)),
        case("float32 input", 2, 6, 4, dtype=np.float32),
        Case("padding in front of the letters", (*case("", 3, 5, 2).arguments[:2], np.arange(5) >= [[2], [0], [4]])),
    ]


_CONTEXT = Exercise(
    name="context_vector",
    takes="scores, keys, mask",
    task="""One look back, for a batch of padded strings.

scores: (B, S), of one step of the decoder. keys: (B, S, d), the encoder's states. mask: (B, S), True where there is
a letter; every string has one. Returns context, (B, d), and weights, (B, S). NumPy, and `ops.softmax`.
The arguments stay as they were.""",
    steps={
        "mask": "scores = np.where(mask, scores, -np.inf)",
        "weights": "weights = ops.softmax(scores)  # (B, S), each row sums to 1",
        "average": "context = (weights[:, None] @ keys)[:, 0]  # (B, 1, S) @ (B, S, d) → (B, 1, d) → (B, d)",
        "answer": "return context, weights",
    },
    spellings={"weights": (OWN_SOFTMAX,), "mask": (FINITE,)},
    cases=_context_cases,
    returns=("context", "weights"),
    hints=(
        "Three steps: hide the padding, make weights of the scores, average the keys with them. Which axis must sum to "
        "1?",
        "`np.where(mask, scores, -np.inf)`, then `ops.softmax`: it works on the last axis, the letters.",
        "Line up (B, S) with (B, S, d): `(weights[..., None] * keys).sum(axis=1)`, or a product of matrices, "
        "`(weights[:, None] @ keys)[:, 0]`.",
    ),
    mistakes=mistakes.CONTEXT,
    praise="Twelve cases: padding, equal sizes that hide mistakes, scores in the hundreds, float32. This is a look back.",
)

EXERCISES = (_ADDITIVE, _CONTEXT, _GRU)
