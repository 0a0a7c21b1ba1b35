"""The exercises of notebook 05."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from lesson_utils.lessons.full_block import mistakes
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise

# --- Layer norm -------------------------------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(
        label: str, *shape: int, size: float = 1.0, mean: float = 0.5, eps: float = 1e-5, dtype: Any = float
    ) -> Case:
        x = mean + size * rng.normal(size=shape)
        gamma, beta = rng.uniform(0.5, 2, shape[-1]), rng.normal(size=shape[-1])
        return Case(label, (x.astype(dtype), gamma.astype(dtype), beta.astype(dtype), eps))

    alike = case("a token whose features are all equal", 3, 5)
    alike.arguments[0][1] = 0.7
    return [
        case("4 tokens of width 6", 4, 6),
        case("a batch of shape (2, 3, 5)", 2, 3, 5),
        case("a square array, (4, 4)", 4, 4),
        case("features that hardly differ (σ ≈ 0.001)", 3, 7, size=1e-3),
        case("ε = 0.1", 5, 3, eps=0.1),
        case("one token, shape (6,)", 6, mean=-4.0),
        alike,
        case("float32 input", 2, 5, dtype=np.float32),
    ]


_NORM = Exercise(
    name="layer_norm",
    called="my_layer_norm",
    takes="x, gamma, beta, eps",
    task="""Layer norm over the last axis, with ε inside the root.

x: (..., d_model). gamma, beta: (d_model,), in the dtype of x. eps: a small positive
number. Returns y, (..., d_model), in the dtype of x; x stays as it was.
NumPy, no loops, no `ops.layer_norm`.""",
    reference=ops.layer_norm,
    steps={
        "mean": "mean = x.mean(axis=-1, keepdims=True)",
        "variance": "variance = x.var(axis=-1, keepdims=True)",
        "root": "root = np.sqrt(variance + eps)",
        "normal": "normal = (x - mean) / root",
        "answer": "return gamma * normal + beta",
    },
    cases=_norm_cases,
    returns=("y",),
    hints=(
        "Four steps: the mean of each token, its variance, subtract and divide, then γ and β. Which axis are a token's features?",
        "`x.mean(axis=-1, keepdims=True)` has shape (..., 1) and lines up with x. The variance is `x.var(...)`, with the same "
        "arguments.",
        "Divide by `np.sqrt(variance + eps)`, then `gamma * normal + beta`. γ and β, shape (d_model,), line up with the last axis "
        "by themselves.",
    ),
    mistakes=mistakes.LAYER_NORM,
    library=(ops.layer_norm, ops.layer_norm_forward),
    praise="Eight cases: leading axes, a square array, equal features, two values of ε, float32. This is the libraries' layer norm.",
    dtype="kept",
)

# --- Feed-forward -----------------------------------------------------------------------------------------------------


def _feed_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, d_ff: int, dtype: Any = float, size: float = 1) -> Case:
        d = shape[-1]
        arrays = [rng.normal(size=s) for s in (shape, (d, d_ff), (d_ff,), (d_ff, d), (d,))]
        arrays[0] *= size
        return Case(label, tuple(array.astype(dtype) for array in arrays))

    return [
        case("4 tokens, d_model = 3, d_ff = 7", 4, 3, d_ff=7),
        case("a batch of shape (2, 5, 4), d_ff = 6", 2, 5, 4, d_ff=6, size=10),  # a ReLU has no upper end
        case("one token, shape (5,), d_ff = 8", 5, d_ff=8),
        case("d_ff smaller than d_model", 3, 6, d_ff=2),
        case("d_ff as large as d_model, as many tokens", 4, 4, d_ff=4),
        case("float32 input", 3, 5, d_ff=9, dtype=np.float32),
        case("d_model and d_ff of 1", 2, 1, d_ff=1),
    ]


def _feed_reference(x: Array, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Array:
    return ops.linear(ops.relu(ops.linear(x, W_1, b_1)), W_2, b_2)


_FEED = Exercise(
    name="feed_forward",
    called="my_feed_forward",
    takes="x, W_1, b_1, W_2, b_2",
    task="""The feed-forward layer: widen, ReLU, narrow.

x: (..., d_model). W_1: (d_model, d_ff). b_1: (d_ff,). W_2: (d_ff, d_model).
b_2: (d_model,). All have one dtype. Returns y, (..., d_model), in that dtype.
NumPy and `ops`. The arguments stay as they were.""",
    reference=_feed_reference,
    steps={
        "first": "hidden = x @ W_1  # (..., d_ff)",
        "b_1": "hidden = hidden + b_1",
        "relu": "hidden = np.maximum(0, hidden)",
        "second": "y = hidden @ W_2  # (..., d_model)",
        "b_2": "return y + b_2",
    },
    cases=_feed_cases,
    returns=("y",),
    hints=(
        "Three steps: widen, bend, narrow. Write down the shape after each.",
        "Widen: `x @ W_1 + b_1`, shape (..., d_ff). It works for any leading axes.",
        "Bend: `np.maximum(0, hidden)`, the larger of 0 and each entry. Then `hidden @ W_2 + b_2`.",
    ),
    mistakes=mistakes.FEED_FORWARD,
    praise="Seven cases. Two matrices and a bend: most of a Transformer's parameters sit in here.",
    dtype="kept",
)

# --- A pre-norm block ---------------------------------------------------------------------------------------------------


@cache  # the same parts in each draw, so that cases can be compared
def _parts(T: int, d: int) -> tuple[Callable[[Array], Array], ...]:
    """attend, feed_forward and two norms for x of shape (..., T, d)."""
    rng = np.random.default_rng(T)
    mix = ops.softmax(rng.normal(size=(T, T)))
    W, W_1, W_2, gammas, betas = (rng.normal(size=s) for s in ((d, d), (d, 2 * d), (2 * d, d), (2, d), (2, d)))

    def norm(i: int) -> Callable[[Array], Array]:
        return lambda x: ops.layer_norm(x, 1 + 0.3 * gammas[i], betas[i])

    return lambda x: mix @ x @ W, lambda x: ops.relu(x @ W_1) @ W_2, norm(0), norm(1)


def _block_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int) -> Case:
        return Case(label, (2 * rng.normal(size=shape) + 1, *_parts(*shape[-2:])))

    return [
        case("4 tokens of width 6", 4, 6),
        case("a batch of shape (2, 3, 5)", 2, 3, 5),
        case("a single token", 1, 4),
        Case("parts that return the array they are given", (rng.normal(size=(2, 3)), *[lambda x: x] * 4)),
    ]


_BLOCK = Exercise(
    name="pre_norm_block",
    called="my_pre_norm_block",
    takes="x, attend, feed_forward, norm_1, norm_2",
    task="""A pre-norm block: attention, then feed-forward, each behind a norm, each added
to the stream.

x: (..., T, d_model). attend, feed_forward, norm_1 (for attention) and norm_2
(for feed-forward) are functions: each takes an array like x and returns one of
the same shape. Returns y, (..., T, d_model). x stays as it was.""",
    steps={
        "first": "x = x + attend(norm_1(x))",
        "second": "return x + feed_forward(norm_2(x))",
    },
    cases=_block_cases,
    returns=("y",),
    hints=(
        "Two halves, built alike. Each reads a normalized copy of the stream, works on it, and adds its result to the stream.",
        "One half is x + f(norm(x)). The x on the left of the plus is the stream as it is, not its normalized copy.",
        "First half: `x = x + attend(norm_1(x))`. The second half starts from this new x.",
    ),
    mistakes=mistakes.BLOCK,
    praise="Two lines, and the whole encoder layer of today's models: the parts do the work, the stream carries it.",
)

EXERCISES = (_NORM, _BLOCK, _FEED)
