"""Trainable layers: their gradients against finite differences, and what holds for any layer."""

import re
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, layers, positions
from lesson_utils.maths.gradcheck import check_op, check_params
from lesson_utils.maths.layers import Param
from lesson_utils.maths.positions import Rotary

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


def config(**options):
    sizes = {"d_model": d_model, "num_heads": h, "d_ff": d_ff, "activation": "gelu", "dtype": float}
    return layers.LayerConfig(**{**sizes, **options})


def heads(rng, **options):
    return layers.MultiHead(d_model, h, rng, **{"dtype": float, **options})


HALVES = Rotary(base=100.0, scale=0.3, pairs="halves")
LAYERS = {
    "Linear": lambda rng: layers.Linear(d_model, d_ff, rng, dtype=float),
    "Linear without b": lambda rng: layers.Linear(d_model, d_ff, rng, bias=False, dtype=float),
    "LayerNorm": lambda rng: layers.LayerNorm(d_model, dtype=float),
    "RMSNorm": lambda rng: layers.RMSNorm(d_model, dtype=float),
    **{
        f"FeedForward {name}": lambda rng, name=name: layers.FeedForward(d_model, d_ff, rng, name, float)
        for name in ("relu", "gelu", "swiglu")
    },
    "MultiHead": heads,
    "MultiHead, rotary": lambda rng: heads(rng, rotary=Rotary(100.0)),
    "MultiHead, rotary halves": lambda rng: heads(rng, rotary=HALVES),
    "MultiHead, scale": lambda rng: heads(rng, scale=0.3),
    "MultiHead, one kv head": lambda rng: heads(rng, num_kv_heads=1, rotary=Rotary(100.0)),
    "MultiHead, 2 kv heads of 6": lambda rng: layers.MultiHead(d_model, 6, rng, num_kv_heads=2, dtype=float),
    **{
        f"EncoderLayer {norm} {kind}": lambda rng, norm=norm, kind=kind: layers.EncoderLayer(
            config(norm=norm, norm_kind=kind), rng
        )
        for norm, kind in (("pre", "layer"), ("post", "layer"), ("none", "layer"), ("pre", "rms"), ("post", "rms"))
    },
}


@pytest.mark.parametrize("norm", [layers.LayerNorm, layers.RMSNorm])
def test_a_new_norm_neither_scales_nor_shifts(norm):
    x = np.sqrt(1.5) * np.array([-1.0, 0.0, 1.0])  # mean 0, variance 1
    np.testing.assert_allclose(norm(3, dtype=float).forward(x)[0], x, atol=1e-4)


@pytest.mark.parametrize("norm", [layers.LayerNorm, layers.RMSNorm])
def test_a_norm_takes_any_positive_number_as_eps_and_stays_in_float32(norm):
    x = np.array([-1, 0, 1], np.float32)
    assert norm(3, np.float64(1e-5)).forward(x)[0].dtype == np.float32
    with pytest.raises(ValueError, match="eps=-1 must be positive"):
        norm(3, -1)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name, rng):
    check(shaken(LAYERS[name](rng), rng), rng, normal(rng, B, T, d_model))


@pytest.mark.parametrize(
    "name", ["MultiHead", "MultiHead, one kv head", "EncoderLayer pre layer", "EncoderLayer post layer"]
)
def test_gradients_under_a_mask_that_hides_all_keys_of_a_query(name, rng):
    mask = rng.random((B, 1, T, T)) < 0.5
    mask[0, 0, 2] = False
    layer, bias = shaken(LAYERS[name](rng), rng), normal(rng, h, T, T)
    x = normal(rng, B, T, d_model)
    arguments = (None, mask, bias) if "Multi" in name else (mask, bias)
    dy = normal(rng, B, T, d_model)
    check_op(lambda x: layer.forward(x, *arguments), lambda dy, cache: layer.backward(dy, cache), {"x": x}, rng)

    def loss_and_grad():
        y, cache = layer.forward(x, *arguments)
        layer.backward(dy, cache)
        return float((y * dy).sum())

    check_params(loss_and_grad, layer.params(), rng)


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test_gradients_of_a_decoder_layer_and_its_memory(norm, rng):
    layer = shaken(layers.DecoderLayer(config(norm=norm, num_heads=6, num_kv_heads=2), rng), rng)
    mask, memory_mask = attention.causal_mask(T), attention.padding_mask([S, 3], S)[:, None]
    check(layer, rng, normal(rng, B, T, d_model), normal(rng, B, S, d_model), mask, memory_mask)


def test_gradients_of_cross_attention(rng):
    layer = shaken(layers.MultiHead(d_model, h, rng, dtype=float), rng)
    layer.backward = layer.backward_cross
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


def test_gradients_without_the_residual_connection(rng):
    inner = layers.FeedForward(d_model, d_ff, rng, "gelu", float)
    layer = shaken(layers.Residual(inner, config(), skip=False), rng)
    layer.forward = partial(layer.forward, f=inner.forward)
    check(layer, rng, normal(rng, B, T, d_model))


@pytest.mark.parametrize("place", ["pre", "post"])
def test_gradients_under_dropout(place, rng):
    inner = layers.FeedForward(d_model, d_ff, rng, "gelu", float)
    layer, x = layers.Residual(inner, config(norm=place, dropout=0.4)), normal(rng, B, T, d_model)
    check_op(
        lambda x: layer.forward(x, inner.forward, np.random.default_rng(5)),
        lambda dy, cache: layer.backward(dy, cache),
        {"x": x},
        rng,
    )
    kept, _ = layer.forward(x, inner.forward)
    dropped, _ = layer.forward(x, inner.forward, np.random.default_rng(5))
    assert not np.allclose(kept, dropped)


def test_a_layer_may_be_used_twice_before_backward(rng):
    layer = layers.EncoderLayer(config(), rng)
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
    encoder = layers.EncoderLayer(
        config(activation="swiglu", dropout=0.2, rotary=HALVES, num_kv_heads=1, dtype=np.float32), rng
    )
    decoder = layers.DecoderLayer(config(norm="post", norm_kind="rms", dropout=0.2, dtype=np.float32), rng)
    y, encoded = encoder.forward(x, attention.causal_mask(T), rng=rng)
    z, decoded = decoder.forward(y, memory, attention.causal_mask(T), rng=rng)
    dz, dmemory = decoder.backward(z, decoded)
    for array in (y, z, dz, dmemory, encoder.backward(dz, encoded)):
        assert array.dtype == np.float32
    for layer in (encoder, decoder):
        assert {param.grad.dtype for param in layer.params().values()} == {np.dtype(np.float32)}


@given(seeds, st.booleans(), st.sampled_from([1, 2, 3, 6]))
def test_multi_head_equals_the_function(rng, masked, num_kv_heads):
    layer = layers.MultiHead(d_model, 6, rng, num_kv_heads, dtype=float)
    x, memory = normal(rng, B, T, d_model), normal(rng, B, S, d_model)
    W = [layer.W_Q.value, layer.W_K.value, layer.W_V.value, layer.W_O.value]
    for kv, memory_ in ((x, None), (memory, memory)):
        mask = rng.random((B, 6, T, kv.shape[1])) < 0.6 if masked else None
        want, weights = attention.multi_head_attention(x, kv, *W, 6, mask, num_kv_heads)
        got, cache = layer.forward(x, memory_, mask)
        np.testing.assert_allclose(got, want, atol=1e-12)
        np.testing.assert_allclose(cache.attended.weights, weights, atol=1e-12)


def test_heads_that_share_keys_stand_in_a_row(rng):
    """Repeated (0, 0, 1, 1), not tiled (0, 1, 0, 1): the same as each head with its own copy."""
    few = layers.MultiHead(d_model, 4, rng, num_kv_heads=2, dtype=float)
    many = layers.MultiHead(d_model, 4, rng, dtype=float)
    d_k = d_model // 4
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        value = getattr(few, name).value
        if name in ("W_K", "W_V"):
            first, second = value[:, :d_k], value[:, d_k:]
            value = np.hstack([first, first, second, second])
        getattr(many, name).value[...] = value
    x = normal(rng, B, T, d_model)
    np.testing.assert_allclose(few.forward(x)[0], many.forward(x)[0], atol=1e-12)
    assert few.num_params() == many.num_params() * 3 // 4


@pytest.mark.parametrize("by", ["zero", "mean"])
def test_heads_knocked_out_are_replaced_before_w_o(by, rng):
    layer, x, dy = shaken(heads(rng), rng), normal(rng, B, T, d_model), normal(rng, B, T, d_model)
    whole = layer.forward(x)[1].attended.weights
    layer.knock_out = layers.KnockOut((0, 2), by)
    got, cache = layer.forward(x)
    outputs = cache.attended.weights @ cache.attended.V  # (B, h, T, d_k), as they are
    for head in (0, 2):
        outputs[:, head] = outputs[:, head].mean(axis=(0, 1)) if by == "mean" else 0
    np.testing.assert_allclose(got, attention.merge_heads(outputs) @ layer.W_O.value, atol=1e-12)
    np.testing.assert_array_equal(cache.attended.weights, whole)
    check_op(lambda x: layer.forward(x), layer.backward, {"x": x}, rng)

    def loss_and_grad():
        y, cache = layer.forward(x)
        layer.backward(dy, cache)
        return float((y * dy).sum())

    check_params(loss_and_grad, layer.params(), rng)


@given(seeds)
def test_self_attention_without_positions_does_not_know_the_order(rng):
    layer, x, order = (
        layers.EncoderLayer(config(), rng),
        normal(rng, B, T, d_model),
        rng.permutation(T),
    )
    np.testing.assert_allclose(layer.forward(x[:, order])[0], layer.forward(x)[0][:, order], atol=1e-12)


@given(seeds, st.integers(0, T - 1), st.sampled_from([None, Rotary(100.0), HALVES]))
def test_under_a_causal_mask_nothing_before_a_change_moves_at_all(rng, t, rotary):
    layer = layers.EncoderLayer(config(rotary=rotary, dtype=np.float32), rng)
    x = normal(rng, B, T, d_model).astype(np.float32)
    changed = x.copy()
    changed[:, t] += 1
    before, after = (layer.forward(a, attention.causal_mask(T))[0] for a in (x, changed))
    np.testing.assert_array_equal(after[:, :t], before[:, :t])
    assert (after[:, t] != before[:, t]).any()


@given(seeds, st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from([None, Rotary(100.0), HALVES]))
def test_decoding_with_a_cache_equals_one_pass(rng, pieces, rotary):
    T = sum(pieces)
    layer = layers.EncoderLayer(config(rotary=rotary, num_heads=6, num_kv_heads=2), rng)
    x, mask, past = normal(rng, B, T, d_model), attention.causal_mask(T), layers.KeyValueCache(T)
    whole, _ = layer.forward(x, mask)
    for piece, end in zip(pieces, np.cumsum(pieces), strict=True):
        start = end - piece
        y, _ = layer.forward(x[:, start:end], mask[start:end, :end], None, past)
        np.testing.assert_allclose(y, whole[:, start:end], atol=1e-12)


class CountsTurns(Rotary):
    """Notes the positions by which it turns keys, of which there are 2 heads."""

    turned: ClassVar[list[int]] = []

    def turn(self, x, positions):
        if x.shape[1] == 2:
            self.turned.extend(positions)
        return super().turn(x, positions)


def test_a_cached_key_is_turned_once(rng, monkeypatch):
    monkeypatch.setattr(CountsTurns, "turned", [])
    layer = layers.MultiHead(12, 6, rng, 2, CountsTurns(), dtype=float)
    x, past = normal(rng, B, 9, 12), layers.KeyValueCache(9)
    for start, end in ((0, 4), (4, 5), (5, 6), (6, 9)):
        layer.forward(x[:, start:end], past=past)
    assert CountsTurns.turned == [*range(9)]


@given(seeds, st.sampled_from([1, 2, 6]), st.sampled_from([None, 0.3]))
def test_a_single_query_gives_the_last_row_of_the_whole_pass_and_of_its_maps(rng, num_kv_heads, scale):
    layer, past = layers.MultiHead(12, 6, rng, num_kv_heads, Rotary(100.0), scale, float), layers.KeyValueCache(T)
    x, mask = normal(rng, B, T, 12), attention.causal_mask(T)
    want, whole = layer.forward(x, mask=mask)
    layer.forward(x[:, :-1], mask=mask[:-1, :-1], past=past)
    got, cache = layer.forward(x[:, -1:], past=past)
    np.testing.assert_allclose(got, want[:, -1:], atol=1e-12)
    np.testing.assert_allclose(cache.attended.weights, whole.attended.weights[:, :, -1:], atol=1e-12)


@pytest.mark.parametrize("left", [0, 2, 5])
def test_positions_can_be_taken_back(rng, left):
    """Whoever lowers `length` goes on from there, as if what followed had never been."""
    layer, x = layers.MultiHead(12, 6, rng, 2, Rotary(100.0), dtype=float), normal(rng, B, 9, 12)
    past, fresh = layers.KeyValueCache(9), layers.KeyValueCache(9)
    layer.forward(x[:, :6], past=past)
    past.length = left
    if left:
        layer.forward(x[:, :left], past=fresh)
    got, want = (layer.forward(x[:, 6:], past=cache)[0] for cache in (past, fresh))
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_a_model_that_only_answers_makes_no_gradients(rng):
    layer = layers.EncoderLayer(config(), rng)
    _, cache = layer.forward(normal(rng, B, T, d_model))
    assert not any("grad" in vars(param) for param in layer.params().values())
    layer.backward(normal(rng, B, T, d_model), cache)
    assert all("grad" in vars(param) for param in layer.params().values())


def test_a_full_cache_says_so(rng):
    past = layers.KeyValueCache(3)
    past.append(*normal(rng, 2, B, h, 2, 4))
    with pytest.raises(ValueError, match=re.escape("no room for 2 more positions: 2 of 3 are taken")):
        past.append(*normal(rng, 2, B, h, 2, 4))


@given(seeds, st.integers(2, 6), st.integers(0, 3), st.integers(1, 12))
def test_a_cache_that_rolls_holds_the_first_and_the_last(rng, capacity, keep, T):
    keep = min(keep, capacity - 1)
    past, K = layers.KeyValueCache(capacity, keep), normal(rng, B, h, T, 4)
    for t in range(T):
        assert past.length_with(1) == min(t + 1, capacity)
        got_K, got_V = past.append(K[:, :, t : t + 1], -K[:, :, t : t + 1])
        left = kept_of(t, capacity, keep)
        np.testing.assert_array_equal(got_K, K[:, :, left])
        np.testing.assert_array_equal(got_V, -K[:, :, left])


def kept_of(t, capacity, keep):
    """The positions that query t sees: the first `keep`, and as many of the last as there is room for."""
    return [i for i in range(t + 1) if i < keep or i > t - capacity + keep] if t >= capacity else list(range(t + 1))


@given(seeds, st.integers(2, 5), st.integers(0, 2), st.sampled_from([None, Rotary(100.0), HALVES]))
def test_a_query_at_a_cache_that_rolls_sees_what_is_left_as_if_it_stood_in_a_row(rng, capacity, keep, rotary):
    """So that positions, too, are counted within the cache."""
    keep = min(keep, capacity - 1)
    layer, x = layers.EncoderLayer(config(rotary=rotary, num_heads=6, num_kv_heads=2), rng), normal(rng, B, 9, d_model)
    past = layers.KeyValueCache(capacity, keep)
    for t in range(9):
        got, _ = layer.forward(x[:, t : t + 1], past=past)
        want, _ = layer.forward(x[:, kept_of(t, capacity, keep)])
        np.testing.assert_allclose(got[:, 0], want[:, -1], atol=1e-12)


def test_a_full_cache_that_rolls_takes_one_at_a_time(rng):
    past = layers.KeyValueCache(3, keep=1)
    past.append(*normal(rng, 2, B, h, 3, 4))
    with pytest.raises(ValueError, match="no room for 2 more positions: 3 of 3 are taken; a full cache that rolls"):
        past.append(*normal(rng, 2, B, h, 2, 4))


def test_bias_moves_attention(rng):
    layer, x = layers.MultiHead(d_model, 2, rng, dtype=float), normal(rng, B, T, d_model)
    bias = 1e6 * positions.alibi_bias(2, T)
    _, cache = layer.forward(x, None, None, bias)
    np.testing.assert_allclose(cache.attended.weights, np.broadcast_to(np.eye(T), (B, 2, T, T)), atol=1e-9)


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
        (
            lambda rng: layers.FeedForward(4, 8, rng, "tanh"),
            "activation='tanh' is not known; choose one of relu",
        ),
        (lambda rng: config(norm="before"), "norm='before' is not known; choose one of pre, post, none"),
        (lambda rng: config(norm_kind="batch"), "norm_kind='batch' is not known; choose one of layer, rms"),
        (lambda rng: config(num_heads=5), "d_model=12 must be divisible by num_heads=5; try 10 or 15"),
        (
            lambda rng: config(num_heads=6, num_kv_heads=4),
            "num_heads=6 must be divisible by num_kv_heads=4; try 4",
        ),
        (lambda rng: config(dtype=np.float16), "dtype=float16 must be float32 or float64"),
        (
            lambda rng: layers.KeyValueCache(3, keep=-1),
            "keep=-1 must be at least 0",
        ),
        (
            lambda rng: layers.KeyValueCache(3, keep=3),
            "keep=3 must be smaller than capacity=3; what is left is",
        ),
        (
            lambda rng: heads(rng, rotary=HALVES).forward(normal(rng, B, T, d_model), normal(rng, B, S, d_model)),
            "rotary positions are for self-attention",
        ),
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
