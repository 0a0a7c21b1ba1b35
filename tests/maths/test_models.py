"""Whole models: one table, what every model keeps, and what generation, caches and experiments promise besides."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, ops, positions, recurrent
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.gradcheck import check_params
from lesson_utils.maths.layers import KnockOut
from lesson_utils.maths.models import (
    GPT,
    Encoder,
    EncoderConfig,
    GPTConfig,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    decoders,
    distribution,
    sample,
    trying,
)
from lesson_utils.maths.positions import Rotary
from lesson_utils.maths.recurrent import CELLS
from lesson_utils.maths.scores import SCORES

PAD, BOS, EOS = 0, 1, 2
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
SMALL = {"vocab": 9, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 10, "dtype": np.float64}
LLAMA = {"positions": "rotary", "num_heads": 6, "num_kv_heads": 2, "norm_kind": "rms", "activation": "swiglu"}
LENGTHS = [7, 3, 6, 1]


def batch_with_padding():
    """Sources (4, 7) of 3…8 and targets (4, 6) of 3…7 from BOS to EOS, of different lengths."""
    rng = np.random.default_rng(4)
    source, target = rng.integers(3, 9, size=(4, 7)), rng.integers(3, 8, size=(4, 6))
    target[:, 0] = BOS
    for b, (length, end) in enumerate(zip(LENGTHS, (6, 5, 3, 6), strict=True)):
        source[b, length:] = PAD
        target[b, end - 1], target[b, end:] = EOS, PAD
    return source, target


SOURCE, TARGET = batch_with_padding()
CLASSES = np.random.default_rng(5).integers(4, size=(4, 7, 3))


def shaken(model, rng):
    for param in model.params().values():
        param.value += (0.2 * rng.normal(size=param.value.shape)).astype(param.value.dtype)
    return model


def transformer(rng, **options):
    return shaken(Transformer(TransformerConfig(**{**SMALL, **options}), rng), rng)


def gpt(rng, **options):
    return shaken(GPT(GPTConfig(**{**SMALL, "max_length": 9, **options}), rng), rng)


def encoder(rng, **options):
    return shaken(Encoder(EncoderConfig(**{**SMALL, "classes": 4, **options}), rng), rng)


def seq2seq(rng, attention=None, **options):
    sizes = {"d_embed": 5, "d_hidden": 6, "dtype": np.float64}
    return shaken(Seq2Seq(Seq2SeqConfig(9, 8, attention, **{**sizes, **options}), rng), rng)


class Case(NamedTuple):
    make: Callable[..., Any]
    batch: tuple[Any, ...] = (SOURCE, TARGET)
    padded: bool = True


def predicted(model, batch):
    """Return the logits of a pass over a batch, the targets that belong to them, and which of these count."""
    if not isinstance(model, GPT | Encoder):
        return model.forward(batch[0], batch[1][:, :-1])[0], batch[1][:, 1:], batch[1][:, 1:] != PAD
    c = model.config
    hidden = isinstance(model, Encoder) and c.pad is not None and not c.pooled
    return model.forward(batch[0])[0], batch[1], batch[0] != PAD if hidden else np.ones(len(batch[1]), bool)


TRANSFORMERS = (
    {"target_vocab": 8},
    {"norm": "post", "smoothing": 0.1},
    {"norm": "none", "activation": "gelu"},
    {"shared": True, "positions": "learned", "max_length": 10},
    {"target_vocab": 8, "activation": "swiglu", "positions": "none"},
    {"dropout": 0.3, "num_layers": 1},
    {"num_heads": 6, "num_kv_heads": 2, "norm_kind": "rms"},
    {"causal": False},
)
GPTS = (
    {},
    {"norm": "post", "dropout": 0.2},
    {"positions": "learned", "max_length": 7},
    {"positions": "rotary", "num_layers": 1},
    {"positions": "alibi"},
    {"positions": "alibi", "num_layers": 1},
    {"positions": "none", "max_length": 7},
    LLAMA | {"rotary": Rotary(scale=0.5, pairs="halves")},
)
ENCODERS = (
    ({}, CLASSES[..., 0]),
    ({"outputs": 3}, CLASSES),
    ({"pad": PAD}, CLASSES[..., 0]),
    ({"pooled": True, "pad": PAD, "dropout": 0.3}, CLASSES[:, 0, 0]),
    ({"pooled": True, "outputs": 2, "positions": "rotary"}, CLASSES[:, 0, :2]),
    ({"positions": "alibi", "num_heads": 4, "dropout": 0.1}, CLASSES[..., :1]),
)
RECURRENT = (
    *({"attention": attention, "bidirectional": both} for attention in (None, *SCORES) for both in (True, False)),
    *({"attention": attention, "cell": cell} for attention in (None, *SCORES) for cell in ("rnn", "lstm")),
    {"attention": "dot", "d_hidden": 7, "bidirectional": False},  # an odd width is fine in one direction
)
MODELS = {f"transformer {options}": Case(partial(transformer, **options)) for options in TRANSFORMERS}
MODELS |= {f"GPT {o}": Case(partial(gpt, **o), (SOURCE, np.roll(SOURCE, -1, axis=1)), False) for o in GPTS}
MODELS |= {
    f"encoder {options}": Case(partial(encoder, **options), (SOURCE, classes), "pad" in options)
    for options, classes in ENCODERS
}
MODELS |= {f"recurrent {options}": Case(partial(seq2seq, **options)) for options in RECURRENT}


def models(*kinds, padded=False, without="no such words"):
    """Parametrize over the models of these kinds."""
    found = {n: c for n, c in MODELS.items() if n.startswith(kinds) and without not in n and (c.padded or not padded)}
    return pytest.mark.parametrize("case", found.values(), ids=found)


every_model = models("")
writing = models("transformer", "GPT", "recurrent", without="causal")


def gradients(model, batch, rng=None):
    """Return the loss and all gradients."""
    for param in model.params().values():
        param.grad[...] = 0
    loss = model.loss_and_grad(batch, rng)
    return loss, {name: param.grad.copy() for name, param in model.params().items()}


# --- What every model keeps -------------------------------------------------------------------------------------------


@every_model
def test_gradients(case, rng):
    model = case.make(rng)
    check_params(lambda: model.loss_and_grad(case.batch, np.random.default_rng(3)), model.params(), rng, samples=4)


@every_model
def test_every_parameter_takes_part_and_float32_stays_float32_and_says_nearly_the_same(case, rng):
    exact, rough = case.make(rng), case.make(rng, dtype=np.float32)
    for name, param in rough.params().items():
        param.value[...] = exact.params()[name].value
    (loss, grads), (loss_, grads_) = (gradients(model, case.batch) for model in (exact, rough))
    assert loss_ == pytest.approx(loss, rel=1e-5)
    for name, grad in grads.items():
        assert np.abs(grad).max() > 0, name
        assert rough.params()[name].value.dtype == grads_[name].dtype == np.float32, name
        np.testing.assert_allclose(grads_[name], grad, atol=1e-3 * max(1, np.abs(grad).max()), err_msg=name)
    assert predicted(rough, case.batch)[0].dtype == np.float32


@every_model
def test_the_loss_is_the_cross_entropy_of_the_logits_with_gradients_and_without(case, rng):
    model = case.make(rng)
    loss, (logits, targets, count) = model.loss(case.batch), predicted(model, case.batch)
    logs = np.take_along_axis(ops.log_softmax(logits), targets.reshape(*logits.shape[:-1], 1), axis=-1)
    assert type(loss) is float
    assert loss == pytest.approx(-logs[count].mean(), rel=1e-12)
    if not getattr(model.config, "smoothing", 0):
        assert model.loss_and_grad(case.batch) == loss  # without a generator nothing is dropped


@every_model
def test_the_same_generator_makes_the_same_model(case):
    one, other, third = (case.make(np.random.default_rng(seed)).params() for seed in (5, 5, 6))
    for name, param in one.items():
        np.testing.assert_array_equal(param.value, other[name].value)
        assert (param.value != third[name].value).any()


@models("transformer", "encoder", "recurrent", padded=True, without="causal")
def test_more_padding_changes_nothing_and_a_batch_is_its_sequences_one_by_one(case, rng):
    model = case.make(rng)
    loss, grads = gradients(model, case.batch)
    wide = [np.pad(x, ((0, 0), (0, 3))) if x.ndim > 1 else x for x in case.batch]
    loss_, grads_ = gradients(model, wide)
    assert loss_ == pytest.approx(loss, rel=1e-12)
    for name, grad in grads.items():
        np.testing.assert_allclose(grads_[name], grad, atol=1e-12, err_msg=name)
    logits = predicted(model, case.batch)[0]
    for b, length in enumerate(LENGTHS):
        alone = predicted(model, (SOURCE[b : b + 1, :length], case.batch[1][b : b + 1]))[0][0]
        np.testing.assert_allclose(logits[b][: len(alone)], alone, atol=1e-12)


@writing
def test_a_later_symbol_changes_nothing_before_it(case, rng):
    model, is_gpt = case.make(rng), case.make.func is gpt
    ids = SOURCE if is_gpt else TARGET
    run = model.forward if is_gpt else partial(model.forward, SOURCE)
    before = run(ids)[0]
    for t in range(ids.shape[1]):
        changed = ids.copy()
        changed[:, t] = 3 + (ids[:, t] - 2) % 5
        after = run(changed)[0]
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert (after[:, t] != before[:, t]).any()


@models("transformer", "recurrent", without="causal")
def test_what_is_decoded_is_the_likeliest_of_one_pass_and_behind_its_end_stands_padding(case):
    for seed in range(4):
        model = case.make(np.random.default_rng(seed))
        ids = model.decode(SOURCE, 9)
        if isinstance(model, Seq2Seq):
            ids, alignment = ids
        logits, rest = model.forward(SOURCE, np.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=BOS))
        if isinstance(model, Seq2Seq):
            logits[..., [PAD, BOS]] = -np.inf  # no symbols to be written, however likely
            assert (alignment is None) == (rest is None)
            if rest is not None:
                np.testing.assert_allclose(alignment, rest, atol=1e-12)
        ended = np.cumsum(ids == EOS, axis=1) - (ids == EOS) > 0
        np.testing.assert_array_equal(ids, np.where(ended, PAD, logits.argmax(axis=-1)))
        assert ids.shape[1] <= 9
        assert not ended[:, -1].all()  # it stops when all have ended


DRAWS = {  # numbers that dropout draws: for tokens, and for each sublayer of two layers
    transformer: 4 * 12 * (7 * (1 + 2 * 2) + 5 * (1 + 3 * 2)),
    gpt: 4 * 12 * 7 * (1 + 2 * 2),
    encoder: 4 * 12 * 7 * (1 + 2 * 2),
}


@pytest.mark.parametrize("make", DRAWS)
def test_dropout_is_everywhere_where_a_model_learns(make, rng):
    batch = (SOURCE, CLASSES[..., 0] if make is encoder else SOURCE if make is gpt else TARGET)
    model, drawn, counted = make(rng, dropout=0.5), np.random.default_rng(3), np.random.default_rng(3)
    loss = model.loss_and_grad(batch, drawn)
    counted.random(DRAWS[make])
    assert drawn.bit_generator.state == counted.bit_generator.state
    assert loss != model.loss(batch)


# --- Transformers -----------------------------------------------------------------------------------------------------


def test_the_base_model_of_the_paper():
    config = TransformerConfig.base()
    assert (config.d_model, config.num_heads, config.num_layers, config.ff_width) == (512, 8, 6, 2048)
    assert (config.norm, config.dropout, config.smoothing) == ("post", 0.1, 0.1)
    d, d_ff, V = 512, 2048, 37_000
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    encoder_layer = 4 * d * d + feed_forward + 2 * 2 * d
    decoder_layer = 8 * d * d + feed_forward + 3 * 2 * d
    assert Transformer(config, None).num_params() == V * d + 6 * (encoder_layer + decoder_layer) == 63_045_632


def test_shared_tables_are_one_parameter(rng):
    names = transformer(rng, shared=True).params()
    assert "source.embedding.table" in names
    assert "target.embedding.table" not in names


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_positions_are_added_from_the_right_place_on_and_are_as_large_as_the_tokens(kind, rng):
    tokens = gpt(rng, positions=kind).tokens
    x, _ = tokens.forward(SOURCE[:, :3], start=4)
    table = tokens.learned.value if kind == "learned" else positions.sinusoidal_encoding(9, 12)
    want = np.sqrt(12) * tokens.embedding.table.value[SOURCE[:, :3]] + table[4:7]
    np.testing.assert_allclose(x, want, atol=1e-12)
    new = GPT(GPTConfig(vocab=50, positions=kind), rng).tokens
    np.testing.assert_allclose(new.embedding.forward(np.arange(50)[None])[0].std(), 1, rtol=0.05)
    assert new.learned is None or abs(new.learned.value.std() - 1) < 0.05


def test_without_positions_an_encoder_does_not_know_the_order(rng):
    ids, order = SOURCE[:1], rng.permutation(7)
    for kind in ("none", "sinusoidal", "learned", "rotary", "alibi"):
        model = encoder(rng, positions=kind)
        same = np.allclose(model.forward(ids[:, order])[0], model.forward(ids)[0][:, order], atol=1e-10)
        assert same == (kind == "none"), kind


def test_a_decoder_that_is_not_causal_looks_ahead(rng):
    model, ahead = transformer(rng), transformer(rng, causal=False)
    for name, param in ahead.params().items():
        param.value[...] = model.params()[name].value
    np.testing.assert_allclose(
        ahead.forward(SOURCE, TARGET[:, :1])[0], model.forward(SOURCE, TARGET[:, :1])[0], atol=1e-12
    )
    assert (ahead.forward(SOURCE, TARGET)[0][:, 0] != model.forward(SOURCE, TARGET)[0][:, 0]).any()


def test_maps_and_streams_are_those_of_the_pass(rng):
    model = transformer(rng)
    logits, cache = model.forward(SOURCE, TARGET)
    maps = model.maps(cache)
    for name, shape in {"encoder": (4, 3, 7, 7), "decoder": (4, 3, 6, 6), "cross": (4, 3, 6, 7)}.items():
        assert [weights.shape for weights in maps[name]] == [shape] * 2
        for weights in maps[name]:
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-12)
            hidden = np.triu(weights, 1) if name == "decoder" else weights.swapaxes(1, 3)[SOURCE == PAD]
            assert (hidden == 0).all()
    top, _ = model.norm.forward(cache.decoded.stream)
    np.testing.assert_array_equal(model.target.embedding.logits_forward(top)[0], logits)

    model = gpt(rng)
    logits, cache = model.forward(TARGET)
    for weights in model.maps(cache)["decoder"]:
        assert weights.shape == (4, 3, 6, 6)
        assert (np.triu(weights, 1) == 0).all()
    top, _ = model.stack.norm.forward(cache.stack.stream)
    np.testing.assert_array_equal(model.tokens.embedding.logits_forward(top)[0], logits)


# --- Generation -------------------------------------------------------------------------------------------------------


@models("GPT")
@pytest.mark.parametrize("pieces", [[1] * 7, [3, 1, 2, 1], [2, 5]])
def test_a_gpt_with_a_cache_says_what_it_says_without(case, pieces, rng):
    model = case.make(rng)
    whole, past = model.forward(SOURCE)[0], model.new_past()
    for piece, end in zip(pieces, np.cumsum(pieces), strict=True):
        logits, _ = model.forward(SOURCE[:, end - piece : end], past)
        np.testing.assert_allclose(logits, whole[:, end - piece : end], atol=1e-12)
    last, cache = model.forward(SOURCE, model.new_past(), last=True)
    np.testing.assert_allclose(last, whole[:, -1:], atol=1e-12)
    with pytest.raises(ValueError, match="kept no maps; run it again without last=True"):
        model.maps(cache)


@models("GPT")
@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 0.7, "top_k": 3}, {"top_p": 0.8}])
def test_generation_with_and_without_a_cache_writes_the_same_text(case, options, rng):
    model, prompt = case.make(rng), SOURCE[:2, :3]
    texts = [model.generate(prompt, 25, np.random.default_rng(1), use_cache=c, **options) for c in (True, False)]
    assert texts[0].shape == (2, 28)  # far beyond the context
    np.testing.assert_array_equal(*texts)
    np.testing.assert_array_equal(texts[0][:, :3], prompt)
    np.testing.assert_array_equal(model.generate(prompt, 0, rng), prompt)


@pytest.mark.parametrize(("length", "context"), [(3, 9), (9, 9), (30, 9), (3, 1)])
def test_a_long_prompt_is_cut_and_of_a_full_context_the_second_half_is_kept(length, context, rng):
    model, prompt = gpt(rng, max_length=context), rng.integers(7, size=(2, length))
    text, seen = model.generate(prompt, 40, np.random.default_rng(1)), prompt[:, -context:]
    draws = np.random.default_rng(1)
    for t in range(length, length + 40):
        new = sample(model.forward(seen)[0][:, -1], draws)
        np.testing.assert_array_equal(text[:, t], new)
        seen = np.hstack([seen, new[:, None]])
        seen = seen if seen.shape[1] <= context else seen[:, -max(1, context // 2) :]


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


@models("GPT")
def test_a_mask_takes_the_place_of_the_causal_one(case, rng):
    model = case.make(rng)
    np.testing.assert_array_equal(model.forward(SOURCE, mask=causal_mask(7))[0], model.forward(SOURCE)[0])
    own = rng.random((4, 1, 7, 7)) < 0.5
    got, cache = model.forward(SOURCE, mask=own)
    for weights in model.maps(cache)["decoder"]:
        assert (weights[~np.broadcast_to(own, weights.shape)] == 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), np.broadcast_to(own.any(axis=-1), weights.shape[:3]))
    own[:, :, :4, 4:] = False  # the first four know nothing of the others
    past, got = model.new_past(), model.forward(SOURCE, mask=own)[0]
    model.forward(SOURCE[:, :4], past, mask=own[..., :4, :4])
    np.testing.assert_allclose(model.forward(SOURCE[:, 4:], past, mask=own[..., 4:, :])[0], got[:, 4:], atol=1e-12)


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
    assert (np.take_along_axis(p, sample(logits, rng, temperature, top_k, top_p)[..., None], axis=-1) > 0).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1)
    assert ((p > 0).sum(axis=-1) <= top_k).all()
    if temperature > 0:
        whole = distribution(logits, temperature)
        np.testing.assert_allclose(whole, ops.softmax(logits.astype(float), temperature=temperature), atol=1e-12)
        assert (np.where(p > 0, whole, np.inf).min(axis=-1) >= np.where(p > 0, 0, whole).max(axis=-1)).all()
        np.testing.assert_allclose(p, np.where(p > 0, whole, 0) / np.where(p > 0, whole, 0).sum(-1, keepdims=True))


# --- Experiments: heads knocked out, attention by another function ----------------------------------------------------


PLACES = [
    (transformer, "encoder"),
    (transformer, "decoder"),
    (transformer, "cross"),
    (gpt, "decoder"),
    (encoder, "encoder"),
]


@pytest.mark.parametrize(("make", "place"), PLACES)
@pytest.mark.parametrize("by", ["zero", "mean"])
def test_heads_are_knocked_out_where_it_says(make, place, by, rng):
    model, inputs = make(rng), (SOURCE, TARGET) if make is transformer else (SOURCE,)
    with trying(model, {place: {1: [0, 2]}}, by):
        logits, cache = model.forward(*inputs)
    plain, whole = model.forward(*inputs)
    assert np.abs(logits - plain).max() > 1e-3
    for with_, without in zip(model.maps(cache)[place], model.maps(whole)[place], strict=True):
        np.testing.assert_array_equal(with_, without)  # the maps of the last layer are made before
    with trying(model, {place: {}}):
        np.testing.assert_array_equal(model.forward(*inputs)[0], plain)
    if by == "zero":  # the same as without its rows of W_O
        W_O = model.heads()[place][1].W_O.value
        W_O[:4] = W_O[8:] = 0
        np.testing.assert_allclose(model.forward(*inputs)[0], logits, atol=1e-12)


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
    with pytest.raises(ValueError, match="not there"), trying(model, {"cross": {0: [1], 5: [1]}}):
        pass
    np.testing.assert_array_equal(model.forward(SOURCE, TARGET)[0], plain)


def test_a_function_of_ones_own_attends_in_every_layer_with_and_without_a_cache(rng):
    model, calls = gpt(rng, **LLAMA), []

    def attend(Q, K, V, mask):
        calls.append((Q.shape[2], K.shape, None if mask is None else (mask.dtype, mask.shape)))
        return attention.scaled_dot_product_attention(Q, K, V, mask)

    logits, cache = model.forward(SOURCE)
    past = model.new_past()
    with trying(model, attend=attend):
        own, own_cache = model.forward(SOURCE)
        model.forward(SOURCE[:, :-1], past)
        last, _ = model.forward(SOURCE[:, -1:], past)
    np.testing.assert_allclose(own, logits, atol=1e-12)
    np.testing.assert_allclose(last, logits[:, -1:], atol=1e-12)
    np.testing.assert_allclose(model.maps(own_cache)["decoder"], model.maps(cache)["decoder"], atol=1e-12)
    assert calls == [  # keys and values have a head for each of the queries' heads
        call
        for T_q, T_k in ((7, 7), (6, 6), (1, 7))
        for call in 2 * [(T_q, (4, 6, T_k, 2), None if T_q == 1 else (np.dtype(bool), (4, 6, T_q, T_k)))]
    ]


# --- The recurrent encoder–decoder ------------------------------------------------------------------------------------

every_attention = pytest.mark.parametrize("attention", [None, *SCORES])


@every_attention
def test_parameters_begin_at_the_size_that_keeps_signals(attention):
    """Embeddings are of size 1; the other matrices are normal, with variance 1/d_in; biases are 0."""
    model = Seq2Seq(Seq2SeqConfig(300, 200, attention, d_embed=40, d_hidden=60), np.random.default_rng(0))
    for name, param in model.params().items():
        if name.endswith(".b"):
            assert "cell" in name or "encoder" in name or not param.value.any()
        elif name.startswith(("source", "target")):
            np.testing.assert_allclose(param.value.std(), 1, rtol=0.03)
        elif "cell" not in name and "encoder" not in name:
            W = param.value * np.sqrt(len(param.value))
            np.testing.assert_allclose(W.std(), 1, rtol=0.05 if W.ndim == 2 else 0.3)
            np.testing.assert_allclose((abs(W) > 1.8).mean(), 0.072, atol=0.015 if W.ndim == 2 else 0.1)  # even ones: 0
    assert model.source.scale == model.target.scale == 1


@every_attention
def test_lengths_say_the_same_as_padding_and_count_before_it(rng, attention):
    model = seq2seq(rng, attention)
    want, rubbish = model.loss((SOURCE, TARGET)), np.where(SOURCE == PAD, 5, SOURCE)
    assert model.loss((SOURCE, TARGET, LENGTHS)) == want
    assert model.loss((rubbish, TARGET, LENGTHS)) == want
    assert model.loss((rubbish, TARGET)) != want
    np.testing.assert_array_equal(model.decode(rubbish, 5, LENGTHS)[0], model.decode(SOURCE, 5)[0])
    logits, alignment = model.forward(SOURCE, TARGET)
    assert logits.shape == (4, 6, 8)
    if attention is not None:
        np.testing.assert_allclose(alignment.sum(axis=-1), 1, atol=1e-12)
        assert (alignment.swapaxes(1, 2)[SOURCE == PAD] == 0).all()


def test_decode_stops_when_all_have_ended_or_at_max_length(rng):
    model = seq2seq(rng, "dot")
    model.params()["out.b"].value[EOS] = 1e3
    ids, alignment = model.decode(SOURCE, 9)
    np.testing.assert_array_equal(ids, [[EOS]] * 4)
    assert alignment.shape == (4, 1, 7)
    model.params()["out.b"].value[[PAD, BOS, EOS]] = 1e3, 1e3, -1e3
    ids, _ = model.decode(SOURCE, 9)
    assert ids.shape == (4, 9)
    assert (ids > EOS).all()


@every_attention
@pytest.mark.parametrize("cell", CELLS)
def test_contexts_are_what_the_decoder_says_they_are(rng, attention, cell):
    """Step by step, with the learner's score: which state asks is the difference between Bahdanau and Luong."""
    model, d_h = seq2seq(rng, attention, cell=cell), 6
    kinds = {None: decoders.Fixed, "additive": decoders.Bahdanau}
    assert type(model.decoder) is kinds.get(attention, decoders.Luong)
    T, B, S = 3, 2, 4
    state = rng.normal(size=(B, CELLS[cell].parts * d_h))
    memory = decoders.Memory(rng.normal(size=(B, S, d_h)), rng.normal(size=(B, d_h)), np.arange(S) < [[4], [2]])
    y = rng.normal(size=(T, B, 5))
    decoded, _ = model.decoder.forward(y, state, memory)
    np.testing.assert_array_equal(decoded.states[0], state)
    for t in range(T):
        if attention is None:
            np.testing.assert_array_equal(decoded.contexts[t], memory.end)
        else:
            asks = decoded.states[t if attention == "additive" else t + 1][:, None, :d_h]  # (B, 1, d_h)
            p = model.decoder.params()
            names = ("query.W", "key.W", "v") if attention == "additive" else sorted(n for n in p if n[:5] == "score")
            score = SCORE_FUNCTIONS[attention]
            fits = score(asks, memory.keys, *(p[n].value for n in names))
            weights = ops.softmax(np.where(memory.mask, fits[:, 0], -np.inf))  # (B, S)
            np.testing.assert_allclose(decoded.alignment[:, t], weights, atol=1e-12)
            np.testing.assert_allclose(decoded.contexts[t], np.einsum("bs,bsd->bd", weights, memory.keys), atol=1e-12)
        x, params = y[t], [param.value for param in model.decoder.cell.parameters()]
        if attention in kinds:  # the context is a further input
            x, params[0] = np.hstack([x, decoded.contexts[t]]), np.vstack([params[0], model.decoder.context.W.value])
        step = getattr(recurrent, f"{cell}_cell")(x, *np.split(decoded.states[t], CELLS[cell].parts, axis=1), *params)
        new = np.hstack(step) if cell == "lstm" else step
        np.testing.assert_allclose(decoded.states[t + 1], new, atol=1e-12)


SCORE_FUNCTIONS = {kind: getattr(attention, f"{kind}_score") for kind in SCORES}
