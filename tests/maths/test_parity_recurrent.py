"""The same numbers and gradients as PyTorch's recurrent networks."""

import numpy as np
import pytest

from lesson_utils.maths import recurrent
from lesson_utils.maths.models import Seq2Seq, Seq2SeqConfig
from lesson_utils.maths.scores import SCORES

torch = pytest.importorskip("torch", reason="compares with PyTorch; install it with: python course.py test --parity")
pytestmark = [pytest.mark.slow, pytest.mark.parity]
F = torch.nn.functional

TOLERANCE = {np.float64: 1e-9, np.float32: 1e-5}
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)
every_kind = pytest.mark.parametrize("kind", recurrent.CELLS)


def same(got, want, dtype):
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def fill(kind, module, params, suffix="l0"):
    """PyTorch multiplies by Wᵀ, and has a second bias for every gate, where ours has one for the candidate only."""
    W_x, W_h, b, *b_h = (torch.from_numpy(np.array(param)) for param in params)
    second = torch.zeros_like(b)
    if kind == "gru":
        second[-len(b_h[0]) :] = b_h[0]
    for name, value in {"weight_ih": W_x.T, "weight_hh": W_h.T, "bias_ih": b, "bias_hh": second}.items():
        getattr(module, f"{name}_{suffix}" if suffix else name).data = value.clone()


def grads_of(kind, module, suffix="l0"):
    weight_ih, weight_hh, bias_ih, bias_hh = (
        getattr(module, f"{name}_{suffix}" if suffix else name).grad
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    return [weight_ih.T, weight_hh.T, bias_ih, *([bias_hh[-weight_hh.shape[1] :]] if kind == "gru" else [])]


def make_params(kind, d_in, d_h, rng, dtype):
    params = recurrent.init_params(kind, d_in, d_h, rng, np.float64)
    return [(p + 0.1 * rng.normal(size=p.shape)).astype(dtype) for p in params]


def network(kind, d_in, d_h, dtype, **options):
    return getattr(torch.nn, kind.upper())(d_in, d_h, batch_first=True, dtype=getattr(torch, dtype.__name__), **options)


@every_dtype
@every_kind
def test_one_direction(rng, kind, dtype):
    B, T, d_in, d_h = 3, 7, 5, 4
    params = make_params(kind, d_in, d_h, rng, dtype)
    theirs = network(kind, d_in, d_h, dtype)
    fill(kind, theirs, params)
    x = rng.normal(size=(B, T, d_in)).astype(dtype)
    state = rng.normal(size=(B, d_h * recurrent.CELLS[kind].parts)).astype(dtype)
    x_, state_ = torch.from_numpy(x).requires_grad_(), torch.from_numpy(state).requires_grad_()
    parts = tuple(part[None].contiguous() for part in state_.split(d_h, dim=-1))
    want, last_ = theirs(x_, parts if kind == "lstm" else parts[0])
    want_last = torch.cat(last_, dim=-1)[0] if kind == "lstm" else last_[0]
    (outs, last), cache = recurrent.unroll_forward(kind, x, [p[None] for p in params], state=state[None])
    same(outs, want, dtype)
    same(last[0], want_last, dtype)
    douts, dlast = rng.normal(size=outs.shape).astype(dtype), rng.normal(size=last.shape).astype(dtype)
    ((want * torch.from_numpy(douts)).sum() + (want_last * torch.from_numpy(dlast[0])).sum()).backward()
    dx, dstate, grads = recurrent.unroll_backward((douts, dlast), cache)
    ours = (dx, dstate[0], *(grad[0] for grad in grads))
    for got, expected in zip(ours, (x_.grad, state_.grad, *grads_of(kind, theirs)), strict=True):
        same(got, expected, dtype)


@every_dtype
@every_kind
def test_both_directions_with_padding(rng, kind, dtype):
    B, T, d_in, d_h, lengths = 3, 6, 5, 4, [6, 1, 4]
    there, back = (make_params(kind, d_in, d_h, rng, dtype) for _ in range(2))
    theirs = network(kind, d_in, d_h, dtype, bidirectional=True)
    fill(kind, theirs, there)
    fill(kind, theirs, back, "l0_reverse")
    x = rng.normal(size=(B, T, d_in)).astype(dtype)
    x_ = torch.from_numpy(x).requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x_, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    packed, last_ = theirs(packed)
    want, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    h_ = last_[0] if kind == "lstm" else last_
    params = [np.stack(pair) for pair in zip(there, back, strict=True)]
    (outs, last), cache = recurrent.unroll_forward(kind, x, params, np.arange(T) < np.array(lengths)[:, None])
    same(outs, want, dtype)
    same(last[..., :d_h], h_, dtype)
    douts, dlast = rng.normal(size=outs.shape).astype(dtype), rng.normal(size=(2, B, d_h)).astype(dtype)
    ((want * torch.from_numpy(douts)).sum() + (h_ * torch.from_numpy(dlast)).sum()).backward()
    dx, _, grads = recurrent.unroll_backward((douts, dlast), cache)
    same(dx, x_.grad, dtype)
    pairs = zip(grads_of(kind, theirs), grads_of(kind, theirs, "l0_reverse"), strict=True)
    for got, (one, other) in zip(grads, pairs, strict=True):
        same(got, torch.stack([one, other]), dtype)


def their_loss(model, p, source, target):
    """The same model written with PyTorch: nn.GRU for the encoder, a loop of GRU cells for the decoder."""
    c = model.config
    encoder = torch.nn.GRU(c.d_embed, c.d_hidden // 2, batch_first=True, bidirectional=True, dtype=torch.float64)

    def gru(name, direction=None):
        values = [p[f"{name}.{key}"] for key in ("W_x", "W_h", "b", "b_h")]
        W_x, W_h, b, b_h = values if direction is None else [value[direction] for value in values]
        return {"weight_ih": W_x.T, "weight_hh": W_h.T, "bias_ih": b, "bias_hh": F.pad(b_h, (2 * len(b_h), 0))}

    weights = {f"{key}_l0": value for key, value in gru("encoder", 0).items()}
    weights |= {f"{key}_l0_reverse": value for key, value in gru("encoder", 1).items()}
    real = source != c.pad
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        p["source.table"][source], real.sum(dim=1), batch_first=True, enforce_sorted=False
    )
    packed, last = torch.func.functional_call(encoder, weights, (packed,))
    keys, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    summary = torch.cat([last[0], last[1]], dim=-1)
    state = torch.tanh(summary @ p["bridge.W"] + p["bridge.b"])

    def look(query):
        names = ("query.W", "key.W", "v") if c.attention == "additive" else ("score.0", "score.1")
        score = [p[f"decoder.{name}"] for name in names if f"decoder.{name}" in p]
        if c.attention == "dot":
            scores = (keys @ query[..., None])[..., 0]
        elif c.attention == "general":
            scores = (keys @ (query @ score[0])[..., None])[..., 0]
        elif c.attention == "additive":
            scores = torch.tanh((query @ score[0])[:, None] + keys @ score[1]) @ score[2]
        else:
            pairs = torch.cat([query[:, None].expand(-1, keys.shape[1], -1), keys], dim=-1)
            scores = torch.tanh(pairs @ score[0]) @ score[1]
        weights = torch.softmax(scores.masked_fill(~real, -torch.inf), dim=-1)
        return (weights[:, None] @ keys)[:, 0]

    cell, before = torch.nn.GRUCell(1, c.d_hidden), {None: lambda query: summary, "additive": look}
    decoder, logits = gru("decoder.cell"), []
    if c.attention in before:
        decoder["weight_ih"] = torch.cat([decoder["weight_ih"], p["decoder.context.W"].T], dim=1)
    for t in range(target.shape[1] - 1):
        x = p["target.table"][target[:, t]]
        if c.attention in before:
            context = before[c.attention](state)
            x = torch.cat([x, context], dim=-1)
        cell.input_size = x.shape[-1]
        state = torch.func.functional_call(cell, decoder, (x, state))
        if c.attention not in before:
            context = look(state)
        read = torch.tanh(torch.cat([state, context], dim=-1) @ p["read.W"] + p["read.b"])
        logits.append(read @ p["out.W"] + p["out.b"])
    return F.cross_entropy(torch.stack(logits, dim=1).flatten(0, 1), target[:, 1:].flatten(), ignore_index=c.pad)


@pytest.mark.parametrize("attention", [None, *SCORES])
def test_a_whole_encoder_and_decoder(rng, attention):
    model = Seq2Seq(Seq2SeqConfig(9, 8, attention, d_embed=5, d_hidden=6, dtype=np.float64), rng)
    for param in model.params().values():
        param.value += 0.1 * rng.normal(size=param.value.shape)
    source, target = rng.integers(3, 9, size=(4, 7)), rng.integers(3, 8, size=(4, 6))
    source[1, 3:] = source[2, 6:] = 0
    target[:, 0] = 1
    target[3, 4:] = (2, 0)
    p = {name: torch.from_numpy(param.value.copy()).requires_grad_() for name, param in model.params().items()}
    want = their_loss(model, p, torch.from_numpy(source), torch.from_numpy(target))
    want.backward()
    assert model.loss_and_grad((source, target)) == pytest.approx(float(want.detach()), rel=1e-9)
    for name, param in model.params().items():
        same(param.grad, p[name].grad, np.float64)
