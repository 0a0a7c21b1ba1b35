"""Every pair of forward and backward against finite differences: one table of examples."""

import numpy as np
import pytest

from lesson_utils.maths import attention, ops, recurrent, scores
from lesson_utils.maths.gradcheck import check_op
from lesson_utils.maths.positions import rotary

MASK = np.array([[True, False, True], [True, True, False]])  # (B, T) = (2, 3)
LENGTHS = np.arange(5) < np.array([[5], [2], [0]])  # (B, T) = (3, 5)
SOME = np.random.default_rng(0).random((2, 3, 4)) < 0.6  # (B, T_q, T_k)
SOME[0, 1] = False  # a query that may attend to nothing


def flat(*gradients):
    """Put gradients side by side that come in tuples inside a tuple."""
    return sum((flat(*g) if isinstance(g, tuple | list) else (g,) for g in gradients), ())


def away_from_0(x):
    return x + 0.1 * np.sign(x)  # a ReLU has no gradient at its kink


def score(kind, function, **options):
    """Return a score, or a look back with it, as a pair of the queries, the keys and each parameter."""
    forward, backward = (getattr(scores, f"{function}_{way}") for way in ("forward", "backward"))

    def first_output(queries, keys, *params):
        out, cache = forward(kind, queries, keys, params, **options)
        return out[0] if function == "attend" else out, cache

    d_k = 5 if kind == "dot" else 6
    params = {"dot": [], "general": [(5, d_k)], "additive": [(5, 7), (d_k, 7), (7,)], "concat": [(5 + d_k, 7), (7,)]}
    inputs = {"queries": (3, 2, 5), "keys": (3, 5, d_k)} | dict(zip(("W", "U", "v"), params[kind], strict=False))
    return first_output, lambda dout, cache: flat(*backward(dout, cache)), inputs


def cell(kind, *directions):
    step, B, d_h = recurrent.CELLS[kind], 3, 4
    shapes = {"a": (B, step.gates * d_h), "state": (B, step.parts * d_h), "W_h": (d_h, step.gates * d_h)}
    shapes |= {"b_h": (d_h,)} if kind == "gru" else {}
    return step.forward, step.backward, {name: directions + shape for name, shape in shapes.items()}


def unrolled(kind, D, mask):
    """Return a network in D directions as a pair of the inputs, the first state and each parameter."""
    step, (B, T), d_in, d_h = recurrent.CELLS[kind], (3, 5), 4, 2
    shapes = {"x": (B, T, d_in), "state": (D, B, step.parts * d_h), "W_x": (D, d_in, step.gates * d_h)}
    shapes |= {"W_h": (D, d_h, step.gates * d_h), "b": (D, step.gates * d_h)}
    shapes |= {"b_h": (D, d_h)} if kind == "gru" else {}

    def forward(x, state, *params):
        return recurrent.unroll_forward(kind, x, params, mask, state)

    return forward, lambda douts, cache: flat(*recurrent.unroll_backward(douts, cache)), shapes


IDS = np.array([[0, 3, 3], [1, 0, 3]])  # some twice, some never
TURNS = np.array([5, 0, -2])
QKV = {"Q": (2, 3, 5), "K": (2, 4, 5), "V": (2, 4, 2)}
ATTENTION = attention.attention_forward, attention.attention_backward
NORM = {"x": (2, 3, 5), "gamma": (5,), "beta": (5,)}
LOSS = {"logits": (2, 3, 7), "targets": np.array([[0, 6, 2], [3, 3, 5]])}
PAIRS = {  # name -> forward, backward, inputs: a shape stands for random numbers, whatever else is passed on
    "linear": (ops.linear_forward, ops.linear_backward, {"x": (2, 3, 4), "W": (4, 5), "b": (5,)}),
    "embedding": (ops.embedding_forward, ops.embedding_backward, {"ids": IDS, "table": (4, 5)}),
    "layer norm": (ops.layer_norm_forward, ops.layer_norm_backward, NORM),
    "layer norm, ε = 0.3": (ops.layer_norm_forward, ops.layer_norm_backward, NORM | {"eps": 0.3}),
    "RMS norm": (ops.rms_norm_forward, ops.rms_norm_backward, {"x": (2, 3, 5), "gamma": (5,)}),
    "ReLU": (lambda x: ops.relu_forward(away_from_0(x)), ops.relu_backward, {"x": (2, 3, 5)}),
    "GELU": (ops.gelu_forward, ops.gelu_backward, {"x": (2, 3, 5)}),
    "SwiGLU": (ops.swiglu_forward, ops.swiglu_backward, {"gate": (2, 3, 5), "value": (2, 3, 5)}),
    "dropout": (lambda x: ops.dropout_forward(x, 0.5, np.random.default_rng(1)), ops.dropout_backward, {"x": (3, 4)}),
    "softmax": (ops.softmax_forward, ops.softmax_backward, {"x": (2, 3, 5)}),
    "softmax, masked": (ops.softmax_forward, ops.softmax_backward, {"x": (2, 3, 4), "mask": SOME}),
    "attention": (*ATTENTION, QKV),
    "attention without leading axes": (*ATTENTION, {name: shape[1:] for name, shape in QKV.items()}),
    "attention, masked": (*ATTENTION, QKV | {"mask": SOME, "scale": 0.7}),
    "rotary": (lambda x: (rotary(x, TURNS), None), lambda dy, _: rotary(dy, -TURNS), {"x": (2, 3, 4)}),
    "repeat heads": (lambda x: (attention.repeat_heads(x, 6), 2), attention.repeat_heads_backward, {"x": (3, 2, 4, 5)}),
    **{
        f"cross-entropy, ε = {smoothing}{', masked' * (mask is not None)}": (
            ops.cross_entropy_forward, ops.cross_entropy_backward, LOSS | {"mask": mask, "smoothing": smoothing}
        )
        for smoothing in (0.0, 0.1) for mask in (None, MASK)
    },
    **{f"{kind} score": score(kind, "score") for kind in scores.SCORES},
    **{f"look back by {kind} score": score(kind, "attend") for kind in scores.SCORES},
    **{f"look back by {kind} score, padded": score(kind, "attend", mask=LENGTHS) for kind in scores.SCORES},
    **{f"{kind} cell": cell(kind) for kind in recurrent.CELLS},
    **{f"{kind} cell in two directions": cell(kind, 2) for kind in recurrent.CELLS},
    **{
        f"{kind} through time, {D} directions{', padded' * (mask is not None)}": unrolled(kind, D, mask)
        for kind in recurrent.CELLS for D in (1, 2) for mask in (None, LENGTHS)
    },
}  # fmt: skip
every_pair = pytest.mark.parametrize("name", PAIRS)


def draw(inputs, rng, size=1.0, dtype=np.float64):
    return {n: (size * rng.normal(size=x)).astype(dtype) if isinstance(x, tuple) else x for n, x in inputs.items()}


@every_pair
@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_gradients(name, size, rng):
    forward, backward, inputs = PAIRS[name]
    check_op(forward, backward, draw(inputs, rng, size), rng)


@pytest.mark.parametrize("name", [name for name in PAIRS if name.startswith("cross-entropy")])
def test_gradients_where_exp_needs_a_maximum(name, rng):
    forward, backward, inputs = PAIRS[name]
    check_op(forward, backward, draw(inputs, rng, 100.0), rng)


@pytest.mark.parametrize("mask", [None, SOME])
def test_gradients_of_attention_with_a_bias_and_large_scores(mask, rng):
    inputs = draw(QKV, rng) | {"mask": mask, "scale": None, "bias": rng.normal(size=(3, 4))}
    inputs["Q"] *= 40
    check_op(*ATTENTION, inputs, rng, tolerance=1e-5, differentiable=QKV)


@every_pair
def test_float32_stays_float32_there_and_back(name, rng):
    forward, backward, inputs = PAIRS[name]
    outs, cache = forward(*draw(inputs, rng, dtype=np.float32).values())
    found = flat(backward(outs, cache))
    assert {x.dtype for x in (*found, *flat(outs)) if not isinstance(x, float)} == {np.dtype(np.float32)}


def test_every_pair_is_in_the_table():
    found = {name for m in (ops, attention, scores, recurrent) for name in vars(m) if name.endswith("_backward")}
    through = {"score_backward", "added_backward", "attend_backward", "unroll_backward", "recurrence_backward"}
    assert found - through <= {backward.__name__ for _, backward, _ in PAIRS.values()}
