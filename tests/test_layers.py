"""Trainable layers: their gradients against finite differences, and what holds for any layer."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils import attention, layers, positions
from lesson_utils.gradcheck import check_op, check_params
from lesson_utils.layers import Param

B, T, S, d_model, h, d_ff, V = 2, 5, 7, 12, 3, 10, 11
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def shaken(layer, rng):
    """`layer` with parameters that are all different from 0 and 1, so that no gradient is hidden."""
    for param in layer.params().values():
        param.value += 0.3 * rng.normal(size=param.value.shape)
    return layer


def check(layer, rng, *inputs, tolerance=1e-6):
    """Gradients of a layer's inputs and parameters, with a random gradient from upstream."""
    check_op(
        lambda *xs: layer.forward(*xs),
        lambda dy, cache: layer.backward(dy, cache),
        {f"input{i}": x for i, x in enumerate(inputs)},
        rng,
        differentiable=[f"input{i}" for i, x in enumerate(inputs) if getattr(x, "dtype", np.bool_) == np.float64],
    )
    out, _ = layer.forward(*inputs)
    dout = rng.normal(size=out.shape)

    def loss_and_grad():
        out, cache = layer.forward(*inputs)
        layer.backward(dout, cache)
        return float((out * dout).sum())

    check_params(loss_and_grad, layer.params(), rng, tolerance)


def normal(rng, *shape):
    return rng.normal(size=shape)


LAYERS = {
    "Linear": lambda rng: layers.Linear(d_model, d_ff, rng, dtype=float),
    "Linear without b": lambda rng: layers.Linear(d_model, d_ff, rng, bias=False, dtype=float),
    "LayerNorm": lambda rng: layers.LayerNorm(d_model, dtype=float),
    "LayerNorm, eps outside": lambda rng: layers.LayerNorm(d_model, 0.1, eps_inside_root=False, dtype=float),
    "RMSNorm": lambda rng: layers.RMSNorm(d_model, dtype=float),
    **{
        f"FeedForward {name}": lambda rng, name=name: layers.FeedForward(d_model, d_ff, rng, name, float)
        for name in ("relu", "gelu", "swiglu")
    },
    "MultiHead": lambda rng: layers.MultiHead(d_model, h, rng, dtype=float),
    "MultiHead, rotary": lambda rng: layers.MultiHead(d_model, h, rng, rotary_base=100.0, dtype=float),
    "MultiHead, scale": lambda rng: layers.MultiHead(d_model, h, rng, scale=0.3, dtype=float),
    **{
        f"EncoderLayer {norm}": lambda rng, norm=norm: layers.EncoderLayer(
            d_model, h, d_ff, rng, norm, "gelu", dtype=float
        )
        for norm in ("pre", "post", "none")
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name, rng):
    check(shaken(LAYERS[name](rng), rng), rng, normal(rng, B, T, d_model))


@pytest.mark.parametrize("name", ["MultiHead", "EncoderLayer pre", "EncoderLayer post"])
def test_gradients_under_a_mask_that_hides_all_keys_of_a_query(name, rng):
    mask = rng.random((B, 1, T, T)) < 0.5
    mask[0, 0, 2] = False
    layer, bias = shaken(LAYERS[name](rng), rng), normal(rng, h, T, T)
    x = normal(rng, B, T, d_model)
    arguments = (None, mask, bias) if name == "MultiHead" else (mask, bias)
    dy = normal(rng, B, T, d_model)
    check_op(lambda x: layer.forward(x, *arguments), lambda dy, cache: layer.backward(dy, cache), {"x": x}, rng)

    def loss_and_grad():
        y, cache = layer.forward(x, *arguments)
        layer.backward(dy, cache)
        return float((y * dy).sum())

    check_params(loss_and_grad, layer.params(), rng)


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test_gradients_of_a_decoder_layer_and_its_memory(norm, rng):
    layer = shaken(layers.DecoderLayer(d_model, h, d_ff, rng, norm, "gelu", dtype=float), rng)
    mask, memory_mask = attention.causal_mask(T), attention.padding_mask([S, 3], S)[:, None]
    check(layer, rng, normal(rng, B, T, d_model), normal(rng, B, S, d_model), mask, memory_mask)


def test_gradients_of_cross_attention(rng):
    layer = shaken(layers.MultiHead(d_model, h, rng, dtype=float), rng)
    check(layer, rng, normal(rng, B, T, d_model), normal(rng, B, S, d_model))


def test_gradients_of_an_embedding_that_is_the_output_layer_too(rng):
    layer, ids = layers.Embedding(V, d_model, rng, float), rng.integers(V, size=(B, T))
    dlogits = normal(rng, B, T, V)

    def loss_and_grad():
        x, looked_up = layer.forward(ids)
        logits, out = layer.logits_forward(np.tanh(x))
        layer.backward(layer.logits_backward(dlogits, out) * (1 - np.tanh(x) ** 2), looked_up)
        return float((logits * dlogits).sum())

    check_params(loss_and_grad, layer.params(), rng, samples=60)


def test_gradients_without_the_way_around(rng):
    inner = layers.FeedForward(d_model, d_ff, rng, "gelu", float)
    check(shaken(layers.Residual(inner, d_model, way_around=False, dtype=float), rng), rng, normal(rng, B, T, d_model))


@pytest.mark.parametrize("place", ["pre", "post"])
def test_gradients_under_dropout(place, rng):
    inner = layers.FeedForward(d_model, d_ff, rng, "gelu", float)
    layer, x = layers.Residual(inner, d_model, place, dropout=0.4, dtype=float), normal(rng, B, T, d_model)
    check_op(
        lambda x: layer.forward(x, rng=np.random.default_rng(5)),
        lambda dy, cache: layer.backward(dy, cache),
        {"x": x},
        rng,
    )
    kept, _ = layer.forward(x)
    dropped, _ = layer.forward(x, rng=np.random.default_rng(5))
    assert not np.allclose(kept, dropped)


def test_a_layer_may_be_used_twice_before_backward(rng):
    layer = layers.EncoderLayer(d_model, h, d_ff, rng, dtype=float)
    first, second, dy = (normal(rng, B, T, d_model) for _ in range(3))
    alone = []
    for x in (first, second):
        _, cache = layer.forward(x)
        alone.append(layer.backward(dy, cache))
    twice = {name: param.grad.copy() for name, param in layer.params().items()}
    for param in layer.params().values():
        param.grad[...] = 0
    caches = [layer.forward(x)[1] for x in (first, second)]
    together = [layer.backward(dy, cache) for cache in caches]
    np.testing.assert_allclose(together, alone, atol=1e-12)
    for name, param in layer.params().items():
        np.testing.assert_allclose(param.grad, twice[name], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", LAYERS)
def test_backward_leaves_what_it_is_given(name, rng):
    layer, x = LAYERS[name](rng), normal(rng, B, T, d_model)
    y, cache = layer.forward(x)
    x_, dy = x.copy(), normal(rng, *y.shape)
    dy_ = dy.copy()
    layer.backward(dy, cache)
    np.testing.assert_array_equal(x, x_)
    np.testing.assert_array_equal(dy, dy_)


def test_float32_stays_float32(rng):
    x, memory = (normal(rng, B, n, d_model).astype(np.float32) for n in (T, S))
    encoder = layers.EncoderLayer(d_model, h, d_ff, rng, activation="swiglu", dropout=0.2, rotary_base=100.0)
    decoder = layers.DecoderLayer(d_model, h, d_ff, rng, "post", dropout=0.2)
    y, encoded = encoder.forward(x, attention.causal_mask(T), rng=rng)
    z, decoded = decoder.forward(y, memory, attention.causal_mask(T), rng=rng)
    dz, dmemory = decoder.backward(z, decoded)
    for array in (y, z, dz, dmemory, encoder.backward(dz, encoded)):
        assert array.dtype == np.float32
    for layer in (encoder, decoder):
        assert {param.grad.dtype for param in layer.params().values()} == {np.dtype(np.float32)}


@given(seeds, st.booleans())
def test_multi_head_equals_the_function(rng, masked):
    layer = layers.MultiHead(d_model, h, rng, dtype=float)
    x, memory = normal(rng, B, T, d_model), normal(rng, B, S, d_model)
    W = [layer.W_Q.value, layer.W_K.value, layer.W_V.value, layer.W_O.value]
    for kv, memory_ in ((x, None), (memory, memory)):
        mask = rng.random((B, h, T, kv.shape[1])) < 0.6 if masked else None
        want, weights = attention.multi_head_attention(x, kv, *W, h, mask)
        got, cache = layer.forward(x, memory_, mask)
        np.testing.assert_allclose(got, want, atol=1e-12)
        np.testing.assert_allclose(layers.attention_map(cache), weights, atol=1e-12)


@given(seeds)
def test_self_attention_without_positions_does_not_know_the_order(rng):
    layer, x, order = (
        layers.EncoderLayer(d_model, h, d_ff, rng, dtype=float),
        normal(rng, B, T, d_model),
        rng.permutation(T),
    )
    np.testing.assert_allclose(layer.forward(x[:, order])[0], layer.forward(x)[0][:, order], atol=1e-12)


@given(seeds, st.integers(0, T - 1), st.sampled_from([None, 100.0]))
def test_under_a_causal_mask_nothing_before_a_change_moves_at_all(rng, t, rotary_base):
    layer = layers.EncoderLayer(d_model, h, d_ff, rng, rotary_base=rotary_base)
    x = normal(rng, B, T, d_model).astype(np.float32)
    changed = x.copy()
    changed[:, t] += 1
    before, after = (layer.forward(a, attention.causal_mask(T))[0] for a in (x, changed))
    np.testing.assert_array_equal(after[:, :t], before[:, :t])
    assert (after[:, t] != before[:, t]).any()


@given(seeds, st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from([None, 100.0]))
def test_decoding_with_a_cache_equals_one_pass(rng, pieces, rotary_base):
    T = sum(pieces)
    layer = layers.EncoderLayer(d_model, h, d_ff, rng, rotary_base=rotary_base, dtype=float)
    x, mask, past = normal(rng, B, T, d_model), attention.causal_mask(T), layers.KeyValueCache(T)
    whole, _ = layer.forward(x, mask)
    for piece, end in zip(pieces, np.cumsum(pieces), strict=True):
        start = end - piece
        y, _ = layer.forward(x[:, start:end], mask[start:end, :end], None, past)
        np.testing.assert_allclose(y, whole[:, start:end], atol=1e-12)


def test_a_full_cache_says_so(rng):
    past = layers.KeyValueCache(3)
    past.append(*normal(rng, 2, B, h, 2, 4))
    with pytest.raises(ValueError, match=re.escape("no room for 2 more positions: 2 of 3 are taken")):
        past.append(*normal(rng, 2, B, h, 2, 4))


def test_bias_moves_attention(rng):
    layer, x = layers.MultiHead(d_model, 2, rng, dtype=float), normal(rng, B, T, d_model)
    bias = 1e6 * positions.alibi_bias(2, T)
    _, cache = layer.forward(x, None, None, bias)
    np.testing.assert_allclose(layers.attention_map(cache), np.broadcast_to(np.eye(T), (B, 2, T, T)), atol=1e-9)


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rng: layers.MultiHead(65, 8, rng), "d_model=65 must be divisible by num_heads=8; try 64 or 72"),
        (lambda rng: layers.MultiHead(3, 8, rng), "d_model=3 must be divisible by num_heads=8; try 8"),
        (lambda rng: layers.FeedForward(4, 8, rng, "tanh"), "activation='tanh' is not known"),
        (lambda rng: layers.EncoderLayer(4, 2, 8, rng, norm="before"), "norm='before' is not known"),
        (lambda rng: layers.Linear(0, 3, rng), "d_in=0 must be at least 1"),
        (lambda rng: layers.Embedding(3, 2.5, rng), "d_model=2.5 must be a whole number"),
        (lambda rng: layers.KeyValueCache(0), "capacity=0 must be at least 1"),
        (
            lambda rng: layers.Linear(4, 3, rng).forward(np.zeros((2, 5), np.float32)),
            "x (2, 5) and W (4, 3) do not fit",
        ),
        (lambda rng: layers.Embedding(4, 3, rng).forward(np.array([[0, 4]])), "ids holds 0…4; expected integers 0…3"),
    ],
)
def test_bad_input(make, message, rng):
    with pytest.raises(ValueError, match=re.escape(message)):
        make(rng)
