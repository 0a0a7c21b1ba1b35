"""The recurrent encoder–decoder: gradients of the whole, padding, decoding, and that it learns."""

import itertools
import re

import numpy as np
import pytest

import lesson_utils.maths.attention
from lesson_utils.maths import ops, recurrent
from lesson_utils.maths.gradcheck import check_params
from lesson_utils.maths.models import Seq2Seq, Seq2SeqConfig, decoders
from lesson_utils.maths.recurrent import CELLS
from lesson_utils.maths.scores import SCORES

ATTENTIONS = (None, *SCORES)
every_attention = pytest.mark.parametrize("attention", ATTENTIONS)
PAD, BOS, EOS = 0, 1, 2


def make(attention=None, dtype=np.float64, seed=0, **options):
    config = Seq2SeqConfig(9, 8, attention, d_embed=5, d_hidden=6, dtype=dtype, **options)
    model = Seq2Seq(config, np.random.default_rng(seed))
    for param in model.params().values():  # biases that are not zero
        param.value += 0.1 * np.random.default_rng(seed).normal(size=param.value.shape).astype(dtype)
    return model


def make_batch(rng, lengths=(7, 3, 6, 1), target_lengths=(6, 5, 3, 6)):
    source = rng.integers(3, 9, size=(len(lengths), max(lengths)))
    target = rng.integers(3, 8, size=(len(lengths), max(target_lengths)))
    target[:, 0] = BOS
    for b, (length, target_length) in enumerate(zip(lengths, target_lengths, strict=True)):
        source[b, length:] = PAD
        target[b, target_length - 1] = EOS
        target[b, target_length:] = PAD
    return source, target


def grads_of(model, batch):
    for param in model.params().values():
        param.grad[...] = 0
    loss = model.loss_and_grad(batch)
    return loss, {name: param.grad.copy() for name, param in model.params().items()}


@every_attention
def test_parameters_begin_at_the_size_that_keeps_signals(attention):
    """Embeddings are of size 1; the other matrices are normal, with variance 1/d_in."""
    model = Seq2Seq(Seq2SeqConfig(300, 200, attention, d_embed=40, d_hidden=60), np.random.default_rng(0))
    for embedding in (model.source, model.target):
        assert embedding.scale == 1
        np.testing.assert_allclose(embedding.table.value.std(), 1, rtol=0.03)
    values = {
        name: param.value for name, param in model.params().items() if not re.search("source|target|cell|enc", name)
    }
    assert len([value for name, value in values.items() if name.endswith(".b")]) == 3  # bridge, read and out
    for name, value in values.items():
        if name.endswith(".b"):
            assert not value.any()
            continue
        W = value * np.sqrt(len(value))
        np.testing.assert_allclose(W.std(), 1, rtol=0.05 if W.ndim == 2 else 0.3)
        np.testing.assert_allclose((abs(W) > 1.8).mean(), 0.072, atol=0.015 if W.ndim == 2 else 0.1)  # even ones: 0


# --- Gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attention", "cell", "bidirectional"),
    [*itertools.product(ATTENTIONS, ["gru"], [True, False]), *itertools.product(ATTENTIONS, ["rnn", "lstm"], [True])],
)
def test_gradients_of_the_whole_with_padding(rng, attention, cell, bidirectional):
    model, batch = make(attention, cell=cell, bidirectional=bidirectional), make_batch(rng)
    check_params(lambda: model.loss_and_grad(batch), model.params(), rng, samples=8)


@every_attention
def test_every_parameter_takes_part(rng, attention):
    _, grads = grads_of(make(attention), make_batch(rng))
    assert all(np.abs(grad).max() > 0 for grad in grads.values())


@every_attention
def test_float32_stays_float32_and_agrees_with_float64(rng, attention):
    batch = make_batch(rng)
    exact, rough = make(attention), make(attention, np.float32)
    assert {p.value.dtype for p in rough.params().values()} == {np.dtype(np.float32)}
    for name, param in rough.params().items():
        param.value[...] = exact.params()[name].value
    logits, alignment = rough.forward(batch[0], batch[1][:, :-1])
    assert logits.dtype == np.float32
    assert alignment is None or alignment.dtype == np.float32
    loss, grads = grads_of(exact, batch)
    loss_, grads_ = grads_of(rough, batch)
    assert loss_ == pytest.approx(loss, rel=1e-5)
    for name, grad in grads.items():
        assert grads_[name].dtype == np.float32
        np.testing.assert_allclose(grads_[name], grad, rtol=1e-3, atol=1e-5)


# --- Padding ----------------------------------------------------------------------------------------------------------


@every_attention
@pytest.mark.parametrize("cell", CELLS)
def test_more_padding_changes_nothing(rng, attention, cell):
    model, (source, target) = make(attention, cell=cell), make_batch(rng)
    loss, grads = grads_of(model, (source, target))
    longer = np.pad(source, ((0, 0), (0, 3))), np.pad(target, ((0, 0), (0, 2)))
    loss_, grads_ = grads_of(model, longer)
    assert loss_ == pytest.approx(loss, rel=1e-12)
    for name, grad in grads.items():
        np.testing.assert_allclose(grads_[name], grad, atol=1e-12)


@every_attention
def test_a_batch_is_its_sequences_one_by_one(rng, attention):
    model, (source, target) = make(attention), make_batch(rng)
    logits, alignment = model.forward(source, target[:, :-1])
    for b, length in enumerate((source != PAD).sum(axis=1)):
        logits_, alignment_ = model.forward(source[b : b + 1, :length], target[b : b + 1, :-1])
        np.testing.assert_allclose(logits[b], logits_[0], atol=1e-12)
        if alignment is not None:
            np.testing.assert_allclose(alignment[b, :, :length], alignment_[0], atol=1e-12)
            assert (alignment[b, :, length:] == 0).all()


@every_attention
def test_lengths_say_the_same_as_padding_and_count_before_it(rng, attention):
    model, (source, target) = make(attention), make_batch(rng)
    lengths = (source != PAD).sum(axis=1)
    want = model.loss((source, target))
    assert model.loss((source, target, lengths)) == want
    rubbish = np.where(source == PAD, 5, source)
    assert model.loss((rubbish, target, lengths)) == want
    assert model.loss((rubbish, target)) != want


# --- Forward and decode -----------------------------------------------------------------------------------------------


@every_attention
def test_forward_gives_logits_and_alignment_of_the_same_pass(rng, attention):
    model, (source, target) = make(attention), make_batch(rng)
    logits, alignment = model.forward(source, target[:, :-1])
    assert logits.shape == (4, 5, 8)
    real = target[:, 1:] != PAD
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    losses = -np.take_along_axis(logs, target[:, 1:, None], axis=-1)[..., 0]
    assert model.loss((source, target)) == pytest.approx(losses[real].mean())
    if attention is None:
        assert alignment is None
    else:
        assert alignment.shape == (4, 5, 7)
        np.testing.assert_allclose(alignment.sum(axis=-1), 1, atol=1e-12)


@every_attention
def test_a_later_symbol_of_the_target_changes_nothing_before_it(rng, attention):
    model, (source, target) = make(attention), make_batch(rng)
    logits, _ = model.forward(source, target)
    changed = target.copy()
    changed[:, 3] = 3 + (target[:, 3] - 2) % 5
    logits_, _ = model.forward(source, changed)
    np.testing.assert_array_equal(logits_[:, :3], logits[:, :3])
    assert (logits_[:, 3] != logits[:, 3]).any()


@every_attention
@pytest.mark.parametrize("cell", CELLS)
def test_decode_is_forward_on_its_own_output(rng, attention, cell):
    model, (source, _) = make(attention, cell=cell, seed=3), make_batch(rng)
    model.params()["out.b"].value[EOS] -= 0.2  # so that not all stop at once
    ids, alignment = model.decode(source, 9)
    logits, alignment_ = model.forward(source, np.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=BOS))
    logits[..., [PAD, BOS]] = -np.inf
    ended = np.cumsum(ids == EOS, axis=1) - (ids == EOS) > 0  # behind the end
    np.testing.assert_array_equal(ids, np.where(ended, PAD, logits.argmax(axis=-1)))
    if attention is not None:
        np.testing.assert_allclose(alignment, alignment_, atol=1e-12)
    else:
        assert alignment is None


def test_decode_stops_when_all_have_ended_or_at_max_length(rng):
    model, (source, _) = make("dot"), make_batch(rng)
    model.params()["out.b"].value[EOS] = 1e3
    ids, alignment = model.decode(source, 9)
    np.testing.assert_array_equal(ids, [[EOS]] * 4)
    assert alignment.shape == (4, 1, 7)
    model.params()["out.b"].value[[PAD, BOS, EOS]] = 1e3, 1e3, -1e3
    ids, _ = model.decode(source, 9)
    assert ids.shape == (4, 9)
    assert (ids > EOS).all()  # padding and beginning are not symbols to be written, however likely


def test_decode_ends_one_sequence_and_goes_on_with_the_others(rng):
    model, (source, _) = make("general", seed=1), make_batch(rng)
    for param in model.params().values():
        param.value *= 3  # so that sequences differ more
    found = False
    for bias in np.linspace(-2, 2, 41):
        model.params()["out.b"].value[EOS] = bias
        ids, _ = model.decode(source, 8)
        ends = np.where((ids == EOS).any(axis=1), (ids == EOS).argmax(axis=1), 8)  # 8: never
        found |= len(set(ends.tolist())) > 1
        for row in ids:
            if EOS in row:
                assert (row[row.tolist().index(EOS) + 1 :] == PAD).all()
    assert found


@every_attention
def test_decode_of_padded_sources_is_decode_of_each(rng, attention):
    model, (source, _) = make(attention), make_batch(rng)
    lengths = (source != PAD).sum(axis=1)
    ids, _ = model.decode(np.where(source == PAD, 4, source), 5, lengths)
    np.testing.assert_array_equal(ids, model.decode(source, 5)[0])
    for b, length in enumerate(lengths):
        own, _ = model.decode(source[b : b + 1, :length], 5)
        np.testing.assert_array_equal(ids[b, : own.shape[1]], own[0])


# --- Making and training ----------------------------------------------------------------------------------------------


def test_the_same_generator_makes_the_same_model():
    one, other, third = (make("concat", seed=seed) for seed in (5, 5, 6))
    for name, param in one.params().items():
        np.testing.assert_array_equal(param.value, other.params()[name].value)
    assert (one.out.W.value != third.out.W.value).any()


def test_models_differ_only_in_where_the_context_comes_from():
    names = {attention: set(make(attention).params()) for attention in (None, "additive", "dot", "general")}
    context = {"decoder.context.W"}
    assert names[None] - names["dot"] == context
    assert names["additive"] - names["dot"] == context | {"decoder.query.W", "decoder.key.W", "decoder.v"}
    assert names["general"] - names["dot"] == {"decoder.score.0"}
    assert names["dot"] <= names[None] & names["additive"]


@every_attention
@pytest.mark.parametrize("cell", CELLS)
def test_contexts_are_what_the_decoder_says_they_are(rng, attention, cell):
    """Step by step, with the learner's score: which state asks is the difference between Bahdanau and Luong."""
    model, d_h = make(attention, cell=cell), 6
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
            score = getattr(lesson_utils.attention, f"{attention}_score")
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


@every_attention
def test_the_loss_goes_down(attention):
    rng = np.random.default_rng(0)
    model = Seq2Seq(Seq2SeqConfig(8, 8, attention, d_embed=8, d_hidden=16), rng)
    losses = []
    for _ in range(60):
        source = rng.integers(3, 8, size=(16, 3))
        target = np.pad(source[:, ::-1], ((0, 0), (1, 1)), constant_values=((0, 0), (BOS, EOS)))
        losses.append(grads_of(model, (source, target))[0])
        for param in model.params().values():
            param.value -= 0.3 * param.grad
    assert losses[0] == pytest.approx(np.log(8), abs=0.6)
    assert np.mean(losses[-10:]) < 0.75 * np.mean(losses[:5])


# --- What does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_vocab": 0}, "source_vocab=0 must be at least 1"),
        ({"d_embed": 2.5}, "d_embed=2.5 must be a whole number"),
        (
            {"attention": "cosine"},
            "attention='cosine' is not known; choose one of additive, dot",
        ),
        ({"cell": "gnu"}, "cell='gnu' is not known; choose one of rnn, gru, lstm"),
        ({"d_hidden": 7}, "d_hidden=7 must be even for two directions; try 8"),
        ({"dtype": np.float16}, "dtype=float16 must be float32 or float64"),
        ({"eos": 1}, "{'pad': 0, 'bos': 1, 'eos': 1} must be three different ids below target_vocab=8"),
        ({"bos": 8}, "must be three different ids below target_vocab=8"),
        ({"pad": -1}, "must be three different ids below target_vocab=8"),
        ({"source_vocab": 3, "pad": 5}, "pad=5 must be below source_vocab=3"),
    ],
)
def test_a_config_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Seq2SeqConfig(**{"source_vocab": 9, "target_vocab": 8, **options})


def test_an_odd_width_is_fine_in_one_direction(rng):
    assert Seq2Seq(Seq2SeqConfig(9, 8, "dot", d_hidden=7, bidirectional=False), rng).loss(make_batch(rng)) > 0


S, T = np.full((2, 4), 5), np.full((2, 3), 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.loss((S[0], T)), "source has shape (4,); expected ids (B, S)"),
        (lambda m: m.loss((S[:, :0], T)), "source has shape (2, 0); expected ids (B, S), at least one of one symbol"),
        (lambda m: m.loss((S, T[:1])), "target has shape (1, 3); expected ids (2, T) with T at least 2"),
        (lambda m: m.loss((S, T[:, :1])), "target has shape (2, 1); expected ids (2, T) with T at least 2"),
        (lambda m: m.forward(S, T[:, :0]), "target has shape (2, 0); expected ids (2, T) with T at least 1"),
        (lambda m: m.loss((S + 4, T)), "source holds 9…9; expected integers 0…8"),
        (lambda m: m.loss((S.astype(float), T)), "source is float64 of shape (2, 4); expected integers 0…8"),
        (lambda m: m.loss((S, T + 4)), "target holds 8…8; expected integers 0…7"),
        (lambda m: m.forward(S, T - 5), "target holds -1…-1; expected integers 0…7"),
        (lambda m: m.loss((S, 0 * T)), "no target counts"),
        (lambda m: m.loss((S, T, [4])), "lengths has shape (1,); expected (2,), one a source"),
        (lambda m: m.loss((S, T, [4, 5])), "lengths must lie in 0…T=4; got values from 4 to 5"),
        (lambda m: m.loss((S,)), "batch has 1 parts; expected source, target and perhaps lengths"),
        (lambda m: m.decode(S, 0), "max_length=0 must be at least 1"),
        (lambda m: m.decode(S + 4, 3), "source holds 9…9; expected integers 0…8"),
    ],
)
def test_ids_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(make("general"))
