"""Trainable layers: one table, what every layer keeps, and what heads, caches and norms promise besides."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, layers, positions
from lesson_utils.maths.gradcheck import check_op, check_params
from lesson_utils.maths.layers import Param
from lesson_utils.maths.positions import Rotary

B, T, S, d_model, h, d_ff = 2, 5, 7, 12, 3, 10
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
HALVES = Rotary(base=100.0, scale=0.3, pairs="halves")
TURNS = (None, Rotary(100.0), HALVES)
MASK = np.random.default_rng(2).random((B, 1, T, T)) < 0.5
MASK[0, 0, 2] = False  # a query that may attend to nothing
BIAS = np.random.default_rng(3).normal(size=(h, T, T))


class Case(NamedTuple):
    """A layer, whether a memory is its second input, and what `forward` takes besides, made anew for each call."""

    make: Callable[[np.random.Generator], Any]
    memory: bool = False
    rest: Callable[[Any], tuple[Any, ...]] = lambda layer: ()


def config(**options):
    sizes = {"d_model": d_model, "num_heads": h, "d_ff": d_ff, "activation": "gelu", "dtype": float}
    return layers.LayerConfig(**{**sizes, **options})


def heads(rng, num_heads=h, **options):
    return layers.MultiHead(d_model, num_heads, rng, **{"dtype": float, **options})


def knocked_out(rng, by):
    layer = heads(rng)
    layer.knock_out = layers.KnockOut((0, 2), by)
    return layer


def residual(rng, skip=True, **options):
    return layers.Residual(layers.FeedForward(d_model, d_ff, rng, "gelu", float), config(**options), skip)


def encoder_layer(rng, **options):
    return layers.EncoderLayer(config(**options), rng)


def cross_attention(rng):
    layer = heads(rng)
    layer.backward = layer.backward_cross
    return layer


def fed(layer):
    return layer.inner.forward, np.random.default_rng(5)


LAYERS = {
    "linear": Case(lambda rng: layers.Linear(d_model, d_ff, rng, dtype=float)),
    "linear without b": Case(lambda rng: layers.Linear(d_model, d_ff, rng, bias=False, dtype=float)),
    "layer norm": Case(lambda rng: layers.LayerNorm(d_model, dtype=float)),
    "RMS norm": Case(lambda rng: layers.RMSNorm(d_model, dtype=float)),
    **{
        f"feed-forward, {name}": Case(lambda rng, name=name: layers.FeedForward(d_model, d_ff, rng, name, float))
        for name in ("relu", "gelu", "swiglu")
    },
    "heads": Case(heads),
    "heads, rotary": Case(lambda rng: heads(rng, rotary=Rotary(100.0))),
    "heads, rotary halves": Case(lambda rng: heads(rng, rotary=HALVES)),
    "heads, scale": Case(lambda rng: heads(rng, scale=0.3)),
    "heads, rotary, one for keys and values": Case(lambda rng: heads(rng, num_kv_heads=1, rotary=Rotary(100.0))),
    "6 heads, 2 for keys and values": Case(lambda rng: heads(rng, 6, num_kv_heads=2)),
    "heads, masked": Case(heads, rest=lambda layer: (None, MASK, BIAS)),
    "heads, masked, one for keys and values": Case(
        lambda rng: heads(rng, num_kv_heads=1), rest=lambda layer: (None, MASK, BIAS)
    ),
    "cross-attention": Case(cross_attention, memory=True),
    **{f"heads out, {by}": Case(lambda rng, by=by: knocked_out(rng, by)) for by in ("zero", "mean")},
    **{
        f"encoder layer, {norm}, {kind}": Case(lambda rng, n=norm, k=kind: encoder_layer(rng, norm=n, norm_kind=k))
        for norm, kind in (("pre", "layer"), ("post", "layer"), ("none", "layer"), ("pre", "rms"), ("post", "rms"))
    },
    **{
        f"encoder layer, {norm}, masked": Case(
            lambda rng, n=norm: encoder_layer(rng, norm=n), rest=lambda layer: (MASK, BIAS)
        )
        for norm in ("pre", "post")
    },
    **{
        f"decoder layer, {norm}": Case(
            lambda rng, n=norm: layers.DecoderLayer(config(norm=n, num_heads=6, num_kv_heads=2), rng),
            memory=True,
            rest=lambda layer: (attention.causal_mask(T), attention.padding_mask([S, 3], S)[:, None]),
        )
        for norm in ("pre", "post", "none")
    },
    "without the residual connection": Case(
        lambda rng: residual(rng, skip=False), rest=lambda layer: (layer.inner.forward,)
    ),
    **{
        f"{place}, dropout": Case(lambda rng, p=place: residual(rng, norm=p, dropout=0.4), rest=fed)
        for place in ("pre", "post")
    },
}
every_layer = pytest.mark.parametrize("case", LAYERS.values(), ids=LAYERS)


def ready(case, rng):
    """Return the layer with parameters that are all different from 0 and 1, so that no gradient is hidden; inputs."""
    layer = case.make(rng)
    for param in layer.params().values():
        param.value += 0.3 * rng.normal(size=param.value.shape)
    return layer, [rng.normal(size=(B, n, d_model)) for n in ((T, S) if case.memory else (T,))]


def clear(layer):
    """Return the gradients that have been added up, and begin anew."""
    grads = {name: param.grad.copy() for name, param in layer.params().items()}
    for param in layer.params().values():
        param.grad[...] = 0
    return grads


# --- What every layer keeps -------------------------------------------------------------------------------------------


@every_layer
def test_gradients(case, rng):
    layer, inputs = ready(case, rng)

    def forward(*inputs):
        return layer.forward(*inputs, *case.rest(layer))

    check_op(forward, layer.backward, {f"input {i}": x for i, x in enumerate(inputs)}, rng)
    dout = rng.normal(size=forward(*inputs)[0].shape)

    def loss_and_grad():
        out, cache = forward(*inputs)
        layer.backward(dout, cache)
        return float((out * dout).sum())

    check_params(loss_and_grad, layer.params(), rng, tolerance=1e-6)


@every_layer
def test_float32_stays_float32_and_nearly_the_same_numbers(case, rng):
    layer, inputs = ready(case, rng)
    found = []
    for dtype in (np.float64, np.float32):
        for param in layer.params().values():
            param.value = param.value.astype(dtype)
            vars(param).pop("grad", None)
        rest = [x.astype(dtype) if x is BIAS else x for x in case.rest(layer)]
        y, cache = layer.forward(*(x.astype(dtype) for x in inputs), *rest)
        dx = layer.backward(y, cache)
        found.append([y, *(dx if case.memory else [dx]), *(param.grad for param in layer.params().values())])
    if case.rest is not fed:  # dropout draws other numbers in float32
        for wide, narrow in zip(*found, strict=True):
            np.testing.assert_allclose(narrow, wide, rtol=1e-3, atol=1e-3)
    assert {x.dtype for x in found[1]} == {np.dtype(np.float32)}


@every_layer
def test_a_layer_may_be_used_twice_before_backward(case, rng):
    layer, first = ready(case, rng)
    second = [rng.normal(size=x.shape) for x in first]
    alone, together = [], []
    for inputs in (first, second):
        y, cache = layer.forward(*inputs, *case.rest(layer))
        alone.append(layer.backward(np.sin(y), cache))
    want = clear(layer)
    for y, cache in [layer.forward(*inputs, *case.rest(layer)) for inputs in (first, second)]:
        together.append(layer.backward(np.sin(y), cache))
    for got, expected in zip(together, alone, strict=True):
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
    for name, grad in clear(layer).items():
        np.testing.assert_allclose(grad, want[name], atol=1e-12, err_msg=name)


ALONE = [name for name, case in LAYERS.items() if not case.memory and case.rest is Case._field_defaults["rest"]]


@pytest.mark.parametrize("name", [name for name in ALONE if "mean" not in name])
def test_a_batch_is_its_sequences_and_without_positions_their_order_does_not_matter(name, rng):
    layer, (x,) = ready(LAYERS[name], rng)
    y, order = layer.forward(x)[0], rng.permutation(T)
    for b in range(B):
        np.testing.assert_allclose(layer.forward(x[b : b + 1])[0][0], y[b], atol=1e-12)
    assert np.allclose(layer.forward(x[:, order])[0], y[:, order], atol=1e-12) == ("rotary" not in name)


# --- Parameters and norms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [layers.LayerNorm, layers.RMSNorm])
def test_a_new_norm_neither_scales_nor_shifts_and_stays_in_float32(norm):
    x = np.sqrt(1.5) * np.array([-1.0, 0.0, 1.0])  # mean 0, variance 1
    np.testing.assert_allclose(norm(3, dtype=float).forward(x)[0], x, atol=1e-4)
    assert norm(3, np.float64(1e-5)).forward(x.astype(np.float32))[0].dtype == np.float32


def test_a_layer_that_only_answers_makes_no_gradients(rng):
    layer, (x,) = ready(LAYERS["encoder layer, pre, layer"], rng)
    _, cache = layer.forward(x)
    assert not any("grad" in vars(param) for param in layer.params().values())
    layer.backward(x, cache)
    assert all("grad" in vars(param) for param in layer.params().values())


def test_names_of_parameters_and_shared_ones(rng):
    class Pair(layers.Layer):
        def __init__(self):
            self.first = layers.Linear(2, 3, rng)
            self.rest = [self.first, layers.Linear(2, 3, rng, bias=False)]
            self.size = 3

    assert list(Pair().params()) == ["first.W", "first.b", "rest.1.W"]
    assert Pair().num_params() == 2 * 3 + 3 + 2 * 3
    assert isinstance(Pair().params()["first.W"], Param)


def test_glorot_keeps_the_size_of_signals(rng):
    W = layers.glorot(300, 500, rng).value
    assert W.dtype == np.float32
    np.testing.assert_allclose(W.var(), 2 / 800, rtol=0.02)


# --- Heads ------------------------------------------------------------------------------------------------------------


@given(seeds, st.booleans(), st.sampled_from([1, 2, 3, 6]))
def test_multi_head_equals_the_function(rng, masked, num_kv_heads):
    layer = heads(rng, 6, num_kv_heads=num_kv_heads)
    x, memory = rng.normal(size=(B, T, d_model)), rng.normal(size=(B, S, d_model))
    W = [layer.W_Q.value, layer.W_K.value, layer.W_V.value, layer.W_O.value]
    for kv, memory_ in ((x, None), (memory, memory)):
        mask = rng.random((B, 6, T, kv.shape[1])) < 0.6 if masked else None
        want, weights = attention.multi_head_attention(x, kv, *W, 6, mask, num_kv_heads)
        got, cache = layer.forward(x, memory_, mask)
        np.testing.assert_allclose(got, want, atol=1e-12)
        np.testing.assert_allclose(cache.attended.weights, weights, atol=1e-12)


@pytest.mark.parametrize("by", ["zero", "mean"])
def test_heads_knocked_out_are_replaced_before_w_o(by, rng):
    layer, (x,) = ready(LAYERS[f"heads out, {by}"], rng)
    got, cache = layer.forward(x)
    layer.knock_out = None
    np.testing.assert_array_equal(cache.attended.weights, layer.forward(x)[1].attended.weights)
    outputs = cache.attended.weights @ cache.attended.V  # (B, h, T, d_k), as they are
    for head in (0, 2):
        outputs[:, head] = outputs[:, head].mean(axis=(0, 1)) if by == "mean" else 0
    np.testing.assert_allclose(got, attention.merge_heads(outputs) @ layer.W_O.value, atol=1e-12)


def test_bias_moves_attention(rng):
    layer, x = heads(rng, 2), rng.normal(size=(B, T, d_model))
    _, cache = layer.forward(x, None, None, 1e6 * positions.alibi_bias(2, T))
    np.testing.assert_allclose(cache.attended.weights, np.broadcast_to(np.eye(T), (B, 2, T, T)), atol=1e-9)


# --- Caches -----------------------------------------------------------------------------------------------------------


@given(
    seeds,
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.sampled_from(TURNS),
    st.sampled_from([1, 2, 6]),
    st.sampled_from([None, 0.3]),
)
def test_decoding_with_a_cache_equals_one_pass_and_has_its_maps(rng, pieces, rotary, num_kv_heads, scale):
    T = sum(pieces)
    layer = heads(rng, 6, num_kv_heads=num_kv_heads, rotary=rotary, scale=scale)
    x, mask, past = rng.normal(size=(B, T, d_model)), attention.causal_mask(T), layers.KeyValueCache(T)
    whole, maps = layer.forward(x, mask=mask)
    for piece, end in zip(pieces, np.cumsum(pieces), strict=True):
        start = end - piece
        y, cache = layer.forward(x[:, start:end], mask=None if piece == 1 else mask[start:end, :end], past=past)
        np.testing.assert_allclose(y, whole[:, start:end], atol=1e-12)
        np.testing.assert_allclose(cache.attended.weights, maps.attended.weights[:, :, start:end, :end], atol=1e-12)


@pytest.mark.parametrize("left", [0, 2, 5])
def test_positions_can_be_taken_back(rng, left):
    """Whoever lowers `length` goes on from there, as if what followed had never been."""
    layer, x = heads(rng, 6, num_kv_heads=2, rotary=Rotary(100.0)), rng.normal(size=(B, 9, d_model))
    past, fresh = layers.KeyValueCache(9), layers.KeyValueCache(9)
    layer.forward(x[:, :6], past=past)
    past.length = left
    if left:
        layer.forward(x[:, :left], past=fresh)
    got, want = (layer.forward(x[:, 6:], past=cache)[0] for cache in (past, fresh))
    np.testing.assert_allclose(got, want, atol=1e-12)


@given(seeds, st.integers(2, 5), st.integers(0, 2), st.sampled_from(TURNS))
def test_a_query_at_a_cache_that_rolls_sees_the_first_and_the_last_as_if_they_stood_in_a_row(
    rng, capacity, keep, rotary
):
    """So that positions, too, are counted within the cache."""
    keep = min(keep, capacity - 1)
    layer, x = encoder_layer(rng, rotary=rotary, num_heads=6, num_kv_heads=2), rng.normal(size=(B, 9, d_model))
    past = layers.KeyValueCache(capacity, keep)
    for t in range(9):
        assert past.length_with(1) == min(t + 1, capacity)
        seen = [i for i in range(t + 1) if t < capacity or i < keep or i > t - capacity + keep]
        got, _ = layer.forward(x[:, t : t + 1], past=past)
        np.testing.assert_allclose(got[:, 0], layer.forward(x[:, seen])[0][:, -1], atol=1e-12)
