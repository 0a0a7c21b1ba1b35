"""Transformers whole: gradients, causality, padding, decoding with a cache, maps from the same pass."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, ops, positions
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.gradcheck import check_params
from lesson_utils.maths.layers import KnockOut
from lesson_utils.maths.models import (
    GPT,
    Encoder,
    EncoderConfig,
    GPTConfig,
    Transformer,
    TransformerConfig,
    distribution,
    sample,
    trying,
)
from lesson_utils.maths.positions import Rotary

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
SMALL = {"d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 10, "dtype": np.float64}
LLAMA = {"positions": "rotary", "num_heads": 6, "num_kv_heads": 2, "norm_kind": "rms", "activation": "swiglu"}
SOURCE = np.array([[5, 3, 6, 2, 4], [3, 3, 2, 0, 0]])  # padded with 0
TARGET = np.array([[1, 4, 5, 3, 2], [1, 6, 2, 0, 0]])


def shaken(model, rng):
    for param in model.params().values():
        param.value += 0.2 * rng.normal(size=param.value.shape).astype(param.value.dtype)
    return model


def transformer(rng, **options):
    return shaken(Transformer(TransformerConfig(**{"vocab": 7, **SMALL, **options}), rng), rng)


def gpt(rng, **options):
    return shaken(GPT(GPTConfig(**{"vocab": 7, "max_length": 9, **SMALL, **options}), rng), rng)


def encoder(rng, **options):
    return shaken(Encoder(EncoderConfig(**{"vocab": 7, "classes": 4, **SMALL, **options}), rng), rng)


def check_gradients(model, batch, rng):
    check_params(lambda: model.loss_and_grad(batch, np.random.default_rng(3)), model.params(), rng, samples=4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "post", "smoothing": 0.1},
        {"norm": "none", "activation": "gelu"},
        {"shared": True, "positions": "learned"},
        {"target_vocab": 8, "activation": "swiglu", "positions": "none"},
        {"dropout": 0.3},
        {"num_heads": 6, "num_kv_heads": 2, "norm_kind": "rms"},
    ],
)
def test_gradients_of_the_transformer(options, rng):
    check_gradients(transformer(rng, **options), (SOURCE, TARGET), rng)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "post", "dropout": 0.2},
        *({"positions": p} for p in ("learned", "rotary", "alibi", "none")),
        LLAMA | {"rotary": Rotary(scale=0.5, pairs="halves")},
    ],
)
def test_gradients_of_the_gpt(options, rng):
    check_gradients(gpt(rng, **options), (rng.integers(7, size=(2, 5)), rng.integers(7, size=(2, 5))), rng)


@pytest.mark.parametrize(
    ("make", "batch"), [(gpt, (SOURCE, TARGET)), (transformer, (SOURCE, TARGET)), (encoder, (SOURCE, SOURCE % 4))]
)
def test_the_loss_without_gradients_is_that_with_them(make, batch, rng):
    model = make(rng, dropout=0.5)
    loss = model.loss(batch)
    assert type(loss) is float
    assert loss == model.loss_and_grad(batch)  # without a generator nothing is dropped
    assert len({loss, *(model.loss_and_grad(batch, np.random.default_rng(seed)) for seed in (1, 1, 2))}) == 3


@pytest.mark.parametrize(
    ("make", "batch"), [(gpt, (SOURCE, TARGET)), (transformer, (SOURCE, TARGET)), (encoder, (SOURCE, SOURCE % 4))]
)
def test_dropout_is_everywhere_where_a_model_learns(make, batch, rng, monkeypatch):
    drawn, drop = [], ops.dropout_forward
    monkeypatch.setattr(ops, "dropout_forward", lambda x, rate, rng: drawn.append((rate, rng)) or drop(x, rate, rng))
    make(rng, dropout=0.5).loss_and_grad(batch, rng)
    assert drawn == [(0.5, rng)] * len(drawn) != []


def test_learned_positions_reach_to_the_last_one(rng):
    model = gpt(rng, positions="learned")
    assert model.forward(np.zeros((1, 9), int))[0].shape == (1, 9, 7)


def test_a_pooled_answer_is_the_mean_over_what_is_no_padding(rng):
    model = encoder(rng, pooled=True, pad=0)
    alone, _ = model.forward([[5], [3]])
    padded, _ = model.forward([[5, 0, 0], [3, 0, 0]])
    np.testing.assert_allclose(padded, alone, atol=1e-12)
    both, _ = model.forward([[5, 3], [5, 5]])
    assert (np.abs(both - alone) > 1e-6).any(axis=-1).all()


def test_learned_positions_begin_as_large_as_the_tokens(rng):
    tokens = GPT(GPTConfig(vocab=50, positions="learned"), rng).tokens
    np.testing.assert_allclose(tokens.learned.value.std(), 1, rtol=0.05)
    np.testing.assert_allclose(tokens.embedding.forward(np.arange(50)[None])[0].std(), 1, rtol=0.05)


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        ({}, (2, 5)),
        ({"outputs": 3}, (2, 5, 3)),
        ({"pad": 0}, (2, 5)),
        ({"pooled": True, "pad": 0}, (2,)),
        ({"pooled": True, "outputs": 2, "positions": "rotary"}, (2, 2)),
        ({"positions": "alibi", "num_heads": 4, "dropout": 0.1}, (2, 5, 1)),
    ],
)
def test_gradients_of_the_encoder(options, targets, rng):
    check_gradients(encoder(rng, **options), (SOURCE, rng.integers(4, size=targets)), rng)


@given(seeds, st.integers(0, 5), st.sampled_from(["sinusoidal", "rotary", "alibi", "learned"]))
def test_no_position_of_a_gpt_sees_what_comes_later(rng, t, kind):
    model = gpt(rng, positions=kind, dtype=np.float32)
    ids = rng.integers(7, size=(2, 6))
    changed = ids.copy()
    changed[:, t] = (ids[:, t] + 1) % 7
    before, after = model.forward(ids)[0], model.forward(changed)[0]
    np.testing.assert_array_equal(after[:, :t], before[:, :t])
    assert (after[:, t] != before[:, t]).any()


@given(seeds, st.integers(0, 3))
def test_no_position_of_a_decoder_sees_what_comes_later(rng, t):
    model = transformer(rng)
    changed = TARGET[:, :-1].copy()
    changed[:, t] = 6
    before, after = model.forward(SOURCE, TARGET[:, :-1])[0], model.forward(SOURCE, changed)[0]
    np.testing.assert_array_equal(after[:, :t], before[:, :t])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_changes_nothing(norm, rng):
    model = transformer(rng, norm=norm)
    wide = [np.pad(ids, ((0, 0), (0, 3))) for ids in (SOURCE, TARGET)]
    losses, gradients = [], []
    for batch in ((SOURCE, TARGET), wide):
        for param in model.params().values():
            param.grad[...] = 0
        losses.append(model.loss_and_grad(batch))
        gradients.append({name: param.grad.copy() for name, param in model.params().items()})
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-12)
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, atol=1e-12, err_msg=name)


def test_padding_changes_nothing_for_an_encoder(rng):
    wide = np.pad(SOURCE, ((0, 0), (0, 3)))
    model = encoder(rng, pad=0)
    np.testing.assert_allclose(model.forward(wide)[0][:, :5], model.forward(SOURCE)[0], atol=1e-12)
    model = encoder(rng, pad=0, pooled=True)
    np.testing.assert_allclose(model.forward(wide)[0], model.forward(SOURCE)[0], atol=1e-12)
    alone = model.forward(SOURCE[1:, :3])[0]  # without its padding
    np.testing.assert_allclose(alone, model.forward(SOURCE)[0][1:], atol=1e-12)


def test_without_positions_an_encoder_does_not_know_the_order(rng):
    ids, order = rng.integers(7, size=(2, 5)), rng.permutation(5)
    for kind in ("none", "sinusoidal", "learned", "rotary", "alibi"):
        model = encoder(rng, positions=kind)
        same = np.allclose(model.forward(ids[:, order])[0], model.forward(ids)[0][:, order], atol=1e-10)
        assert same == (kind == "none"), kind


def test_maps_are_those_of_the_pass(rng):
    model = transformer(rng)
    maps = model.maps(model.forward(SOURCE, TARGET[:, :-1])[1])
    assert {name: [w.shape for w in layers] for name, layers in maps.items()} == {
        "encoder": [(2, 3, 5, 5)] * 2,
        "decoder": [(2, 3, 4, 4)] * 2,
        "cross": [(2, 3, 4, 5)] * 2,
    }
    for layers in maps.values():
        for weights in layers:
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-12)
    for weights in maps["encoder"] + maps["cross"]:
        assert (weights[1, ..., 3:] == 0).all()  # padding
    for weights in maps["decoder"]:
        assert (np.triu(weights, 1) == 0).all()  # the future

    model = gpt(rng)
    (first, second) = model.maps(model.forward(TARGET)[1])["decoder"]
    assert first.shape == second.shape == (2, 3, 5, 5)
    assert (np.triu(first, 1) == 0).all()
    model = encoder(rng)
    assert [w.shape for w in model.maps(model.forward(SOURCE)[1])["encoder"]] == [(2, 3, 5, 5)] * 2


@given(seeds)
def test_the_decoders_own_targets_are_what_one_pass_predicts(rng):
    model = transformer(rng)
    ids = model.decode(SOURCE, 6)
    assert ids.shape[1] <= 6
    written = np.concatenate([np.ones((2, 1), int), ids], axis=1)
    logits, _ = model.forward(SOURCE, written[:, :-1])
    after_end = np.cumsum(ids == model.config.eos, axis=1) - (ids == model.config.eos) > 0
    np.testing.assert_array_equal(ids[~after_end], logits.argmax(axis=-1)[~after_end])
    assert (ids[after_end] == model.config.pad).all()


KINDS = [{"positions": kind} for kind in ("sinusoidal", "learned", "rotary", "alibi")]


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_a_model_of_one_layer_writes_with_a_cache(rng, positions):
    model, prompt = gpt(rng, positions=positions, num_layers=1), rng.integers(7, size=(2, 3))
    with_cache, without = (model.generate(prompt, 4, rng, 0, use_cache=use) for use in (True, False))
    np.testing.assert_array_equal(with_cache, without)


def test_a_transformer_of_one_layer_decodes(rng):
    model = transformer(rng, num_layers=1)
    ids = model.decode(SOURCE, 5)
    logits, _ = model.forward(SOURCE, np.hstack([np.ones((2, 1), int), ids[:, :-1]]))
    real = np.cumsum(ids == 2, axis=1) - (ids == 2) == 0  # up to the first end
    np.testing.assert_array_equal(ids[real], logits.argmax(axis=-1)[real])


@given(seeds, st.lists(st.integers(1, 3), min_size=1, max_size=3), st.sampled_from([*KINDS, LLAMA]))
def test_a_gpt_with_a_cache_says_what_it_says_without(rng, pieces, options):
    model, ids = gpt(rng, **options), rng.integers(7, size=(2, sum(pieces)))
    whole, past = model.forward(ids)[0], model.new_past()
    for piece, end in zip(pieces, np.cumsum(pieces), strict=True):
        logits, _ = model.forward(ids[:, end - piece : end], past)
        np.testing.assert_allclose(logits, whole[:, end - piece : end], atol=1e-12)


@given(seeds, st.sampled_from([{"positions": "rotary"}, {"positions": "alibi"}, {"positions": "none"}, LLAMA]))
def test_a_cache_that_rolls_shows_each_layer_the_first_and_the_last_in_a_row(rng, options):
    model, ids = gpt(rng, **options), rng.integers(7, size=(2, 20))
    past, keep, capacity = model.new_past(keep=2), 2, 9
    streams = [model.tokens.forward(ids)[0]]  # what each layer is given, (2, 20, d_model)
    for block in model.stack.blocks:
        x = np.empty_like(streams[-1])
        for t in range(20):
            seen = [i for i in range(t + 1) if i < keep or i > t - capacity + keep] if t >= capacity else range(t + 1)
            bias = positions.alibi_bias(3, len(seen)) if options["positions"] == "alibi" else None
            x[:, t] = block.forward(streams[-1][:, list(seen)], causal_mask(len(seen)), bias)[0][:, -1]
        streams.append(x)
    want, _ = model.tokens.embedding.logits_forward(model.stack.norm.forward(streams[-1])[0])
    got = [model.forward(ids[:, :4], past)[0], *(model.forward(ids[:, t : t + 1], past)[0] for t in range(4, 20))]
    np.testing.assert_allclose(np.concatenate(got, axis=1), want, atol=1e-12)


@pytest.mark.parametrize("kind", ["rotary", "alibi"])
def test_generation_rolls_on_without_starting_anew(kind, rng):
    model, prompt = gpt(rng, positions=kind), rng.integers(7, size=(2, 12))  # of a context of 9
    text = model.generate(prompt, 15, rng, temperature=0, keep=3)
    past, seen = model.new_past(keep=3), np.hstack([prompt[:, :3], prompt[:, -6:]])
    logits, _ = model.forward(seen, past)
    for t in range(12, 27):
        np.testing.assert_array_equal(text[:, t], logits[:, -1].argmax(axis=-1))
        logits, _ = model.forward(text[:, t : t + 1], past)
    short = model.generate(prompt[:, :4], 5, rng, temperature=0, keep=3)  # all of it fits: nothing rolls
    np.testing.assert_array_equal(short, model.generate(prompt[:, :4], 5, rng, temperature=0))


@given(seeds, st.sampled_from([*KINDS, LLAMA]))
def test_a_mask_takes_the_place_of_the_causal_one(rng, options):
    model, ids = gpt(rng, **options), rng.integers(7, size=(2, 5))
    logits, _ = model.forward(ids)
    np.testing.assert_array_equal(model.forward(ids, mask=causal_mask(5))[0], logits)
    own = rng.random((2, 1, 5, 5)) < 0.5
    got, cache = model.forward(ids, mask=own)
    for weights in model.maps(cache)["decoder"]:
        assert (weights[~np.broadcast_to(own, weights.shape)] == 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), np.broadcast_to(own.any(axis=-1), weights.shape[:3]))
    past = model.new_past()
    model.forward(ids[:, :3], past, mask=own[..., :3, :3])
    np.testing.assert_allclose(model.forward(ids[:, 3:], past, mask=own[..., 3:, :])[0][:, :1].shape, (2, 1, 7))
    np.testing.assert_array_equal(model.forward(ids, mask=np.eye(5, dtype=bool))[0].shape, got.shape)


@pytest.mark.parametrize("make", [gpt, encoder])
@pytest.mark.parametrize("by", ["zero", "mean"])
def test_heads_knocked_out_are_those_of_their_layer(make, by, rng):
    model, ids = make(rng), rng.integers(7, size=(2, 5))
    name = "decoder" if make is gpt else "encoder"
    with trying(model, {name: {1: [0, 2]}}, by):
        logits, cache = model.forward(ids)
    for with_, without in zip(model.maps(cache)[name], model.maps(model.forward(ids)[1])[name], strict=True):
        np.testing.assert_array_equal(with_, without)  # the maps of the last layer are made before
    if by == "zero":  # the same as without its rows of W_O
        W_O = model.stack.blocks[1].attention.inner.W_O.value
        W_O[:4] = W_O[8:] = 0
        np.testing.assert_allclose(model.forward(ids)[0], logits, atol=1e-12)
    plain = model.forward(ids)[0]
    with trying(model, {name: {}}):
        np.testing.assert_array_equal(model.forward(ids)[0], plain)


@pytest.mark.parametrize("place", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("by", ["zero", "mean"])
def test_heads_of_a_transformer_are_knocked_out_where_it_says(place, by, rng):
    model = transformer(rng)
    with trying(model, {place: {1: [0, 2]}}, by):
        logits, cache = model.forward(SOURCE, TARGET)
    plain, whole = model.forward(SOURCE, TARGET)
    assert np.abs(logits - plain).max() > 1e-3
    for with_, without in zip(model.maps(cache)[place], model.maps(whole)[place], strict=True):
        np.testing.assert_array_equal(with_, without)  # the maps of the last layer are made before
    if by == "zero":  # the same as without its rows of W_O
        layer = model.encoder.blocks[1].attention if place == "encoder" else None
        layer = layer or (model.blocks[1].cross if place == "cross" else model.blocks[1].attention)
        layer.inner.W_O.value[:4] = layer.inner.W_O.value[8:] = 0
        np.testing.assert_allclose(model.forward(SOURCE, TARGET)[0], logits, atol=1e-12)


def test_what_was_tried_is_put_back(rng):
    model = transformer(rng)
    plain = model.forward(SOURCE, TARGET)[0]
    with trying(model, {"cross": {1: [0]}}):
        outer = model.forward(SOURCE, TARGET)[0]
        with trying(model, {"cross": {1: [2]}, "encoder": {0: [1]}}, "mean", attention.scaled_dot_product_attention):
            assert np.abs(model.forward(SOURCE, TARGET)[0] - outer).max() > 1e-3
        with trying(model, {"decoder": {0: [1]}}):
            assert model.heads()["cross"][1].knock_out == KnockOut((0,))
        np.testing.assert_array_equal(model.forward(SOURCE, TARGET)[0], outer)
    with pytest.raises(ValueError, match="ids has"), trying(model, {"cross": {1: [0]}}):
        model.forward(SOURCE, TARGET[:, :0])
    np.testing.assert_array_equal(model.forward(SOURCE, TARGET)[0], plain)
    with pytest.raises(ValueError, match="not there"), trying(model, {"cross": {0: [1], 5: [1]}}):
        pass
    np.testing.assert_array_equal(model.forward(SOURCE, TARGET)[0], plain)


def test_training_goes_on_without_heads(rng):
    model = transformer(rng)
    with trying(model, {"encoder": {0: [0]}, "decoder": {1: [1, 2]}, "cross": {0: [2]}}, "mean"):
        check_gradients(model, (SOURCE, TARGET), rng)


def test_a_decoder_that_is_not_causal_looks_ahead(rng):
    model, ahead = transformer(rng), transformer(rng, causal=False)
    for name, param in ahead.params().items():
        param.value[...] = model.params()[name].value
    np.testing.assert_allclose(
        ahead.forward(SOURCE, TARGET[:, :1])[0], model.forward(SOURCE, TARGET[:, :1])[0], atol=1e-12
    )
    assert (ahead.forward(SOURCE, TARGET)[0][:, 0] != model.forward(SOURCE, TARGET)[0][:, 0]).any()
    check_gradients(ahead, (SOURCE, TARGET), rng)


def test_streams_are_what_the_last_norm_is_given(rng):
    model = transformer(rng)
    _, cache = model.forward(SOURCE, TARGET)
    logits, _ = model.target.embedding.logits_forward(model.norm.forward(cache.decoded.stream)[0])
    np.testing.assert_array_equal(logits, model.forward(SOURCE, TARGET)[0])
    model = gpt(rng)
    logits, cache = model.forward(TARGET)
    top, _ = model.stack.norm.forward(cache.stack.stream)
    np.testing.assert_array_equal(model.tokens.embedding.logits_forward(top)[0], logits)


@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 0.7, "top_k": 3}, {"top_p": 0.8}])
def test_generation_with_and_without_a_cache_writes_the_same_text(options, rng):
    model, prompt = gpt(rng), np.array([[1, 2, 3], [4, 5, 6]])
    texts = [model.generate(prompt, 25, np.random.default_rng(1), use_cache=c, **options) for c in (True, False)]
    assert texts[0].shape == (2, 28)  # far beyond the context of 9
    np.testing.assert_array_equal(*texts)
    np.testing.assert_array_equal(texts[0][:, :3], prompt)
    np.testing.assert_array_equal(model.generate(prompt, 0, rng), prompt)


def test_a_prompt_longer_than_the_context_is_cut(rng):
    model = gpt(rng)
    long = rng.integers(7, size=(1, 30))
    new = model.generate(long, 1, rng, temperature=0)[0, -1]
    assert new == model.forward(long[:, -9:])[0][0, -1].argmax()


def test_when_the_context_is_full_the_second_half_is_kept(rng, monkeypatch):
    model, seen = gpt(rng), []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda ids, past=None: seen.append(ids) or forward(ids, past))
    text = model.generate(np.array([[1, 2, 3]]), 20, rng, use_cache=False)
    assert [ids.shape[1] for ids in seen] == [3, *range(4, 10), *range(4, 10), *range(4, 10), 4]  # of a context of 9
    for n, ids in enumerate(seen):
        np.testing.assert_array_equal(ids, text[:, : 3 + n][:, -ids.shape[1] :])


@given(seeds, st.integers(1, 8), st.floats(0.05, 1.0), st.sampled_from([0.3, 1.0, 2.0]))
def test_samples_come_from_where_they_may(rng, top_k, top_p, temperature):
    logits = 2 * rng.normal(size=8)
    p = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    draws = sample(np.tile(logits, (400, 1)), rng, temperature, top_k=top_k)
    assert set(draws) <= set(np.argsort(-logits)[:top_k])
    draws = sample(np.tile(logits, (400, 1)), rng, temperature, top_p=top_p)
    order = np.argsort(-p)
    enough = int((np.cumsum(p[order]) < top_p - 1e-12).sum()) + 1
    assert set(draws) <= set(order[:enough])
    assert sample(logits, rng, 0) == logits.argmax()


DISTRIBUTIONS = (
    ({}, [0.3, 0.5, 0.2]),
    ({"top_k": 2}, [0.375, 0.625, 0]),
    ({"top_p": 0.6}, [0.375, 0.625, 0]),
    ({"top_p": 0.5}, [0, 1, 0]),
    ({"top_k": 2, "top_p": 0.7}, [0.375, 0.625, 0]),
    ({"top_k": 2, "top_p": 0.6}, [0, 1, 0]),  # 0.6 of the 0.8 that are left
    ({"top_k": 9, "top_p": 1.0}, [0.3, 0.5, 0.2]),
    ({"temperature": 0.5}, [9 / 38, 25 / 38, 4 / 38]),
    ({"temperature": 0}, [0, 1, 0]),
)


@pytest.mark.parametrize(("options", "expected"), DISTRIBUTIONS)
def test_samples_are_as_frequent_as_the_distribution_says(options, expected):
    logits = np.log([0.3, 0.5, 0.2])
    np.testing.assert_allclose(distribution(logits, **options), expected, atol=1e-12)
    counts = np.bincount(sample(np.tile(logits, (20_000, 1)), np.random.default_rng(0), **options), minlength=3)
    np.testing.assert_allclose(counts / 20_000, expected, atol=0.015)


@given(seeds, st.sampled_from([0, 0.3, 1.0, 2.0]), st.integers(1, 8), st.floats(0.05, 1.0))
def test_distributions_are_softmax_with_the_unlikely_cut_off(rng, temperature, top_k, top_p):
    logits = rng.normal(size=(2, 3, 8)).astype(np.float32)
    p = distribution(logits, temperature, top_k, top_p)
    np.testing.assert_allclose(p.sum(axis=-1), 1)
    assert ((p > 0).sum(axis=-1) <= top_k).all()
    if temperature > 0:
        whole = distribution(logits, temperature)
        np.testing.assert_allclose(whole, ops.softmax(logits.astype(float), temperature=temperature), atol=1e-12)
        assert (np.where(p > 0, whole, np.inf).min(axis=-1) >= np.where(p > 0, 0, whole).max(axis=-1)).all()
        np.testing.assert_allclose(p, np.where(p > 0, whole, 0) / np.where(p > 0, whole, 0).sum(-1, keepdims=True))


def test_the_base_model_of_the_paper():
    config = TransformerConfig.base()
    assert (config.d_model, config.num_heads, config.num_layers, config.ff_width) == (512, 8, 6, 2048)
    assert (config.norm, config.dropout, config.smoothing) == ("post", 0.1, 0.1)
    d, d_ff, V = 512, 2048, 37_000
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    encoder_layer = 4 * d * d + feed_forward + 2 * 2 * d
    decoder_layer = 8 * d * d + feed_forward + 3 * 2 * d
    model = Transformer(config, np.random.default_rng(0))
    assert model.num_params() == V * d + 6 * (encoder_layer + decoder_layer) == 63_045_632


def test_shared_tables_are_one_parameter(rng):
    names = transformer(rng, shared=True).params()
    assert "source.embedding.table" in names
    assert "target.embedding.table" not in names


@pytest.mark.parametrize("make", [transformer, gpt, encoder])
def test_float32_stays_float32(make, rng):
    model = make(rng, dtype=np.float32, dropout=0.1)
    batch = {transformer: (SOURCE, TARGET), gpt: (SOURCE, TARGET), encoder: (SOURCE, np.zeros((2, 5), int))}[make]
    model.loss_and_grad(batch, rng)
    for name, param in model.params().items():
        assert param.value.dtype == param.grad.dtype == np.float32, name
    inputs = (SOURCE, TARGET) if make is transformer else (SOURCE,)
    assert model.forward(*inputs)[0].dtype == np.float32


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_positions_are_added_from_the_right_place_on(kind, rng):
    model = gpt(rng, positions=kind)
    ids = rng.integers(7, size=(2, 3))
    x, _ = model.tokens.forward(ids, start=4)
    table = model.tokens.learned.value if kind == "learned" else positions.sinusoidal_encoding(9, 12)
    np.testing.assert_allclose(x, np.sqrt(12) * model.tokens.embedding.table.value[ids] + table[4:7], atol=1e-12)


def entered(model, *arguments, **named):
    with trying(model, *arguments, **named):
        pass


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rng: gpt(rng, num_heads=5), "d_model=12 must be divisible by num_heads=5; try 10 or 15"),
        (lambda rng: gpt(rng, positions="absolute"), "positions='absolute' is not known; choose one of sinusoidal"),
        (lambda rng: gpt(rng, dtype=np.float16), "dtype=float16 must be float32 or float64"),
        (lambda rng: gpt(rng, vocab=0), "vocab=0 must be at least 1"),
        (lambda rng: gpt(rng, positions="learned").forward(np.zeros((1, 10), int)), "position 9 has no learned vector"),
        (lambda rng: gpt(rng).forward(np.zeros(3, int)), "ids is int64 of shape (3,); expected integers with 2 ax"),
        (
            lambda rng: gpt(rng).forward(np.zeros((1, 3))),
            "ids is float64 of shape (1, 3); expected integers with 2 axes",
        ),
        (
            lambda rng: gpt(rng).forward(np.zeros((1, 0), int)),
            "ids has shape (1, 0); expected (B, T) with T at least 1",
        ),
        (lambda rng: gpt(rng).forward(np.full((1, 2), 7)), "ids holds 7…7; expected integers 0…6"),
        (lambda rng: gpt(rng).generate(np.zeros((1, 0), int), 3, rng), "the prompt is empty"),
        (lambda rng: gpt(rng).generate(SOURCE, -1, rng), "length=-1 must be at least 0"),
        (lambda rng: transformer(rng, shared=True, target_vocab=9), "shared=True needs one vocabulary"),
        (lambda rng: transformer(rng, positions="rotary"), "choose 'sinusoidal' or 'learned'"),
        (lambda rng: transformer(rng).forward(SOURCE, TARGET[:1]), "source has 2 rows, target_in 1"),
        (lambda rng: encoder(rng).loss((SOURCE, TARGET[:, :2])), "targets has shape (2, 2, 1); expected (2, 5, 1)"),
        (lambda rng: gpt(rng, rotary=Rotary()), "needs positions='rotary', not 'sinusoidal'; else rotary=None"),
        (lambda rng: gpt(rng, norm_kind="batch"), "norm_kind='batch' is not known; choose one of layer, rms"),
        (
            lambda rng: gpt(rng).new_past(keep=2),
            "positions='sinusoidal' cannot roll; build it with 'rotary'",
        ),
        (lambda rng: gpt(rng).generate(SOURCE, 1, rng, keep=2, use_cache=False), "keep=2 is about a cache that rolls"),
        (
            lambda rng: gpt(rng).forward(SOURCE, mask=np.ones((5, 4), bool)),
            "mask has shape (5, 4); expected one",
        ),
        (lambda rng: gpt(rng).forward(SOURCE, mask=np.ones((5, 5))), "mask has dtype float64; expected booleans"),
        (
            lambda rng: entered(transformer(rng), {"cross": {0: [3]}}),
            "knock_out={0: [3]} names heads that are not",
        ),
        (
            lambda rng: entered(transformer(rng), {"middle": {0: [0]}}),
            "knock_out='middle' is not known; choose one of encoder, decoder, cross",
        ),
        (
            lambda rng: entered(gpt(rng), {"decoder": {2: [0]}}),
            "knock_out={2: [0]} names heads that are not",
        ),
        (
            lambda rng: entered(encoder(rng), {"encoder": {0: [3]}}),
            "expected a layer in 0…1 with heads in 0…2, such",
        ),
        (
            lambda rng: entered(gpt(rng), {"decoder": {0: [1]}}, by="one"),
            "by='one' is not known; choose one of zero, mean",
        ),
        (lambda rng: sample([1.0], rng, -1), "temperature=-1 must be a number from 0 on"),
        (lambda rng: sample([1.0], rng, top_p=0), "top_p=0 must be above 0 and at most 1"),
        (lambda rng: sample([1.0], rng, top_k=0), "top_k=0 must be at least 1"),
        (lambda rng: sample(np.zeros((3, 0)), rng), "logits has shape (3, 0); expected (..., V) with V at least 1"),
        (lambda rng: sample([np.nan], rng), "logits holds NaN"),
    ],
)
def test_bad_input(call, message, rng):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(rng)


def test_a_function_of_ones_own_attends_in_every_layer_with_and_without_a_cache():
    config = GPTConfig(
        vocab=11, d_model=12, num_heads=3, num_kv_heads=1, num_layers=2, positions="rotary", max_length=9
    )
    model, calls = GPT(config, np.random.default_rng(0)), []
    ids = np.random.default_rng(1).integers(11, size=(2, 7))

    def attend(Q, K, V, mask):
        calls.append((Q.shape, K.shape, None if mask is None else mask.dtype))
        output, weights = attention.scaled_dot_product_attention(Q, K, V, mask)
        return output, weights

    logits, cache = model.forward(ids)
    with trying(model, attend=attend):
        own, own_cache = model.forward(ids)
    np.testing.assert_allclose(own, logits, atol=1e-5)
    np.testing.assert_allclose(model.maps(own_cache)["decoder"], model.maps(cache)["decoder"], atol=1e-6)
    past = model.new_past()
    with trying(model, attend=attend):
        model.forward(ids[:, :-1], past)
        np.testing.assert_allclose(model.forward(ids[:, -1:], past)[0][:, 0], logits[:, -1], atol=1e-5)
    assert calls == 2 * [((2, 3, 7, 4), (2, 3, 7, 4), bool)] + 2 * [((2, 3, 6, 4), (2, 3, 6, 4), bool)] + 2 * [
        ((2, 3, 1, 4), (2, 3, 7, 4), None)
    ]


def test_the_last_logits_alone_are_those_of_all(rng):
    model, ids = gpt(rng), rng.integers(7, size=(2, 5))
    logits, cache = model.forward(ids)
    last, its_cache = model.forward(ids, model.new_past(), last=True)
    assert last.shape == (2, 1, logits.shape[-1])
    np.testing.assert_allclose(last[:, 0], logits[:, -1], atol=1e-12)
    assert len(model.maps(cache)["decoder"]) == model.config.num_layers
    with pytest.raises(ValueError, match="kept no maps; run it again without last=True"):
        model.maps(its_cache)


@pytest.mark.parametrize(
    ("attend", "message"),
    [
        (lambda Q, K, V, mask: V, r"returned a ndarray; expected two arrays"),
        (
            lambda Q, K, V, mask: (V.swapaxes(-1, -2), Q @ K.swapaxes(-1, -2)),
            r"returned output of shape \(1, 2, 4, 3\); expected \(1, 2, 3, 4\)",
        ),
        (
            lambda Q, K, V, mask: (V, V),
            r"returned weights of shape \(1, 2, 3, 4\); expected \(1, 2, 3, 3\)",
        ),
    ],
)
def test_a_function_that_attends_is_held_to_what_it_has_to_give(attend, message):
    model = GPT(GPTConfig(vocab=5, d_model=8, num_heads=2, num_layers=1), np.random.default_rng(0))
    with pytest.raises(ValueError, match=message), trying(model, attend=attend):
        model.forward(np.array([[1, 2, 3]]))


def test_attention_of_ones_own_has_no_place_for_a_bias():
    biased = GPT(GPTConfig(vocab=5, d_model=8, num_heads=2, num_layers=1, positions="alibi"), np.random.default_rng(0))
    attend = attention.scaled_dot_product_attention
    with pytest.raises(ValueError, match="no place for a bias"), trying(biased, attend=attend):
        biased.forward(np.array([[1, 2, 3]]))
