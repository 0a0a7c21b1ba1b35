"""The exercises of notebook 08."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lesson_utils.lessons.training import mistakes
from lesson_utils.maths import attention, ops
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise

# --- Softmax, backwards -----------------------------------------------------------------------------------------------


def _softmax_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, dtype: Any = float) -> Case:
        weights = ops.softmax(1.5 * rng.normal(size=shape))
        return Case(label, (rng.normal(size=shape).astype(dtype), weights.astype(dtype)))

    hidden = rng.normal(size=(3, 5))
    hidden[[0, 2, 2], [1, 0, 4]] = -np.inf
    return [
        case("a row of 5 weights", 5),
        case("3 rows of 6 weights", 3, 6),
        case("shape (2, 3, 4)", 2, 3, 4),
        case("a square, (4, 4)", 4, 4),
        Case("some weights that are 0", (rng.normal(size=(3, 5)), ops.softmax(hidden))),
        case("float32", 3, 4, dtype=np.float32),
        Case(
            "sharp rows, with weights below 0.001", (rng.normal(size=(3, 6)), ops.softmax(5 * rng.normal(size=(3, 6))))
        ),
    ]


_SOFTMAX = Exercise(
    name="softmax_backward",
    called="my_softmax_backward",
    takes="dweights, weights",
    task="""From the gradient at the weights to the gradient at the scores.

dweights: dL/dweights, (..., n). weights: what softmax gave, (..., n), each row
with sum 1. Both have one dtype. Returns dscores, (..., n), in that dtype; the
arguments stay as they were. NumPy only, no loop over rows.""",
    reference=lambda dweights, weights: ops.softmax_backward(dweights, weights),
    steps={
        "total": "total = (dweights * weights).sum(axis=-1, keepdims=True)  # one number a row",
        "answer": "return weights * (dweights - total)",
    },
    cases=_softmax_cases,
    returns=("dscores",),
    hints=(
        "∂w_i/∂s_j = w_i (δ_ij − w_j). The chain rule adds up over i: dscores_j = Σ_i dweights_i · w_i (δ_ij − w_j).",
        "Multiply out. The δ leaves one term, dweights_j w_j. The other is −w_j Σ_i dweights_i w_i: one sum for the whole row.",
        "The sum is `(dweights * weights).sum(axis=-1, keepdims=True)`. Take w_j out: weights · (dweights − sum).",
    ),
    mistakes=mistakes.SOFTMAX_BACKWARD,
    library=(ops.softmax_backward,),
    praise="Seven cases. The sum over the row is what couples the scores: raise one, and all other weights fall.",
    dtype="kept",
)

# --- Attention, backwards ---------------------------------------------------------------------------------------------


def _attention_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *sizes: int, leading: tuple[int, ...] = (), masked: bool = False, dtype: Any = float) -> Case:
        T_q, T_k, d_k, d_v = sizes
        shapes = (T_q, d_v), (T_q, d_k), (T_k, d_k), (T_k, d_v)
        doutput, Q, K, V = (rng.normal(size=(*leading, *shape)).astype(dtype) for shape in shapes)
        mask = None
        if masked:
            mask = rng.random((*leading, T_q, T_k)) < 0.6
            mask[..., 0] |= ~mask.any(axis=-1)  # every query may see something
        weights = attention.scaled_dot_product_attention(Q, K, V, mask)[1]
        return Case(label, (doutput, Q, K, V, weights))

    return [
        case("3 queries and 6 keys", 3, 6, 5, 7),
        case("5 queries and 3 keys", 5, 3, 2, 4),
        case("leading axes (2, 3)", 4, 6, 5, 3, leading=(2, 3)),
        case("weights that a mask made 0", 4, 7, 3, 5, masked=True),
        case("all sizes equal", 4, 4, 4, 4),
        case("float32", 3, 5, 4, 2, dtype=np.float32),
        case("a single query", 1, 3, 1, 2),
    ]


def _attention_reference(doutput: Array, Q: Array, K: Array, V: Array, weights: Array) -> tuple[Array, ...]:
    cache = attention.AttentionCache(Q, K, V, weights, float(K.shape[-1]) ** -0.5)
    return attention.attention_backward(doutput, cache)


_ATTENTION = Exercise(
    name="attention_backward",
    called="my_attention_backward",
    takes="doutput, Q, K, V, weights",
    task="""The backward pass of scaled dot-product attention.

doutput: dL/doutput, (..., T_q, d_v). Q: (..., T_q, d_k). K: (..., T_k, d_k).
V: (..., T_k, d_v). weights: softmax(Q Kᵀ / √d_k), (..., T_q, T_k). All
have one dtype. Returns dQ, dK, dV, each in the shape of its own, in that dtype.
NumPy, math, and `ops.softmax_backward(dweights, weights)`, or your own.
The arguments stay as they were.""",
    reference=_attention_reference,
    steps={
        "values": "dV = weights.swapaxes(-1, -2) @ doutput  # (..., T_k, d_v)",
        "weights": "dweights = doutput @ V.swapaxes(-1, -2)  # (..., T_q, T_k)",
        "softmax": "dscores = ops.softmax_backward(dweights, weights)",
        "scale": "dscores = dscores / math.sqrt(K.shape[-1])",
        "queries": "dQ = dscores @ K  # (..., T_q, d_k)",
        "keys": "dK = dscores.swapaxes(-1, -2) @ Q  # (..., T_k, d_k)",
        "answer": "return dQ, dK, dV",
    },
    cases=_attention_cases,
    returns=("dQ", "dK", "dV"),
    hints=(
        "Walk the formula from its end: output = weights V, then softmax, then the scale, then Q Kᵀ. For a product C = A B: dA = dC Bᵀ "
        "and dB = Aᵀ dC.",
        "output = weights V: `dV = weights.swapaxes(-1, -2) @ doutput`, and `dweights = doutput @ V.swapaxes(-1, -2)`. Then softmax.",
        "The scale is a factor: dscores / √d_k. Scores = Q Kᵀ: `dQ = dscores @ K`, and for K the transpose, "
        "`dscores.swapaxes(-1, -2) @ Q`.",
    ),
    mistakes=mistakes.ATTENTION_BACKWARD,
    library=(attention.attention_backward,),
    praise="Seven cases: cross-attention, leading axes, hidden keys. With forward and backward, attention is wholly yours.",
    dtype="kept",
)

# --- One step of Adam -------------------------------------------------------------------------------------------------


def _adam_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, t: int, eps: float = 1e-8, betas: tuple[float, float] = (0.9, 0.98)) -> Case:
        value, grad, m = rng.normal(size=(3, *shape))
        v = rng.uniform(0.1, 2, size=shape)
        if t == 1:
            m, v = np.zeros_like(m), np.zeros_like(v)
        return Case(label, (value, grad, m, v, t, 0.05, *betas, eps))

    uneven, zeros, settings = np.array([0, 1e6, -0.5]), np.zeros((2, 3)), (0.05, 0.9, 0.98, 1e-8)
    return [
        case("the first step", 4, t=1),
        case("step 5, shape (2, 3)", 2, 3, t=5),
        case("step 3, β = 0.8 and 0.95, ε = 0.1", 5, t=3, eps=0.1, betas=(0.8, 0.95)),
        case("step 1000", 3, t=1000),
        Case(
            "the first step, with gradients of 0 and of a million", (rng.normal(size=3), uneven, *zeros, 1, *settings)
        ),
    ]


_ADAM = Exercise(
    name="adam_step",
    called="my_adam_step",
    takes="value, grad, m, v, t, lr, beta_1, beta_2, eps",
    task="""One step of Adam, for one parameter.

value, grad, m, v: arrays of one shape; m and v are the averages so far. t: the
number of this step, from 1. lr, beta_1, beta_2, eps: numbers. Returns the new
value, m and v; the arguments stay as they were. NumPy only.""",
    steps={
        "m": "m = beta_1 * m + (1 - beta_1) * grad  # which way, on average",
        "v": "v = beta_2 * v + (1 - beta_2) * grad**2  # how large, on average",
        "m_hat": "m_hat = m / (1 - beta_1**t)  # the averages began at 0",
        "v_hat": "v_hat = v / (1 - beta_2**t)",
        "value": "value = value - lr * m_hat / (np.sqrt(v_hat) + eps)",
        "answer": "return value, m, v",
    },
    cases=_adam_cases,
    returns=("value", "m", "v"),
    hints=(
        "Five lines: the two averages, their two corrections, the step. The formulas stand above, in this order.",
        "m ← β₁ m + (1 − β₁) g and v ← β₂ v + (1 − β₂) g², with g² entry by entry: `grad**2`.",
        "m̂ = m / (1 − β₁ᵗ), v̂ likewise; value − lr · m̂ / (√v̂ + ε). Return m and v, not m̂ and v̂.",
    ),
    mistakes=mistakes.ADAM,
    praise="Five cases, from the first step to the thousandth. In the first, every parameter moves by lr, however small its gradient.",
)

# --- The smoothed loss ------------------------------------------------------------------------------------------------


def _loss_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, smoothing: float = 0.1, size: float = 2.0) -> Case:
        *places, V = shape
        counts = rng.random(places) < 0.7
        counts.flat[:2] = True, False
        return Case(label, (size * rng.normal(size=shape), rng.integers(V, size=places), counts, smoothing))

    return [
        case("6 places, 5 symbols", 6, 5),
        case("a batch, (3, 4) places, 7 symbols", 3, 4, 7),
        case("smoothing 0.4", 5, 3, smoothing=0.4),
        case("no smoothing", 4, 6, smoothing=0.0),
        case("as many places as symbols", 5, 5, smoothing=0.2),
        case("logits in the thousands", 6, 4, size=2e3),
        case("one place", 1, 4),
    ]


_LOSS = Exercise(
    name="smoothed_loss",
    called="my_smoothed_loss",
    takes="logits, targets, counts, smoothing",
    task="""The mean cross-entropy with smoothed targets, in nats.

logits: (..., V). targets: ids 0…V − 1, (...). counts: booleans, (...), False
for padding. smoothing: ε; each of the V symbols is given ε/V, and the target
1 − ε more. Returns one number. NumPy and `ops.log_softmax`.
The arguments stay as they were.""",
    reference=ops.cross_entropy,
    steps={
        "logs": "logs = ops.log_softmax(logits)  # (..., V)",
        "right": "right = np.take_along_axis(logs, targets[..., None], axis=-1)[..., 0]  # (...)",
        "losses": "losses = -(1 - smoothing) * right - smoothing * logs.mean(axis=-1)",
        "mean": "return losses[counts].mean()",
    },
    cases=_loss_cases,
    returns=("loss",),
    hints=(
        "Cross-entropy is −Σ q ln p. Here q is (1 − ε) on the target, and ε/V on every symbol, the target among them.",
        "`logs = ops.log_softmax(logits)`. The second part, −(ε/V) Σ ln p over all V symbols, is −ε times a mean: "
        "`logs.mean(axis=-1)`.",
        "ln p of the target: `np.take_along_axis(logs, targets[..., None], axis=-1)[..., 0]`. Padding is left out at the end: "
        "`losses[counts].mean()`.",
    ),
    mistakes=mistakes.SMOOTHED_LOSS,
    library=(ops.cross_entropy, ops.cross_entropy_forward),
    praise="Seven cases: padding, no smoothing, logits in the thousands. This is the loss that the paper trained with.",
)

EXERCISES = (_SOFTMAX, _ATTENTION, _ADAM, _LOSS)
