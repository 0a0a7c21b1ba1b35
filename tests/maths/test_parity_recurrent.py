"""The same numbers and gradients as PyTorch's recurrent networks."""

import numpy as np
import parity
import pytest
from parity import every_dtype, same, torch

from lesson_utils.maths import recurrent

pytestmark = parity.marks

every_kind = pytest.mark.parametrize("kind", recurrent.CELLS)


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
