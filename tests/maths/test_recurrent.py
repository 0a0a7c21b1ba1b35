"""Recurrent cells are their formulas, unrolling is the cell again and again, and every gradient is right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import recurrent
from lesson_utils.maths.gradcheck import numerical_gradient

KINDS = tuple(recurrent.CELLS)
every_kind = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def make_params(kind, d_in, d_h, rng):
    """As initialised, but with biases that are not zero."""
    return [p + 0.3 * rng.normal(size=p.shape) for p in recurrent.init_params(kind, d_in, d_h, rng)]


def make_state(kind, B, d_h, rng):
    return rng.normal(size=(B, recurrent.CELLS[kind].parts * d_h))


def one_step(kind, x, state, params):
    """The learner's cell, with h and c of an LSTM side by side."""
    if kind == "lstm":
        return np.concatenate(recurrent.lstm_cell(x, *np.split(state, 2, axis=-1), *params), axis=-1)
    return {"rnn": recurrent.rnn_cell, "gru": recurrent.gru_cell}[kind](x, state, *params)


def unroll(kind, x, state, params, mask=None):
    """One direction, from a state of shape (B, parts·d_h)."""
    (outs, last), cache = recurrent.unroll_forward(kind, x, [p[None] for p in params], mask, state[None])
    return (outs, last[0]), cache


def unroll_back(douts, cache):
    dx, dstate, grads = recurrent.unroll_backward((douts[0], douts[1][None]), cache)
    return dx, dstate[0], *(grad[0] for grad in grads)


def lengths_to_mask(lengths, T):
    return np.arange(T) < np.asarray(lengths)[:, None]


@st.composite
def runs(draw):
    kind, rng = draw(st.sampled_from(KINDS)), draw(seeds)
    B, T, d_in, d_h = (draw(st.integers(1, 5)) for _ in range(4))
    x = rng.normal(size=(B, T, d_in))
    return kind, x, make_state(kind, B, d_h, rng), make_params(kind, d_in, d_h, rng), rng


# --- Cells ------------------------------------------------------------------------------------------------------------


def logistic(x):
    return 1 / (1 + np.exp(-x))


def test_a_gru_is_its_formulas_number_by_number(rng):
    B, d_in, d_h = 2, 3, 4
    x, h, params = rng.normal(size=(B, d_in)), rng.normal(size=(B, d_h)), make_params("gru", d_in, d_h, rng)
    W_x, W_h, b, b_h = params
    got = recurrent.gru_cell(x, h, *params)
    for i, j in np.ndindex(B, d_h):
        r, z, n = j, d_h + j, 2 * d_h + j  # the columns
        reset = logistic(x[i] @ W_x[:, r] + h[i] @ W_h[:, r] + b[r])
        keep = logistic(x[i] @ W_x[:, z] + h[i] @ W_h[:, z] + b[z])
        new = np.tanh(x[i] @ W_x[:, n] + b[n] + reset * (h[i] @ W_h[:, n] + b_h[j]))
        assert got[i, j] == pytest.approx((1 - keep) * new + keep * h[i, j], abs=1e-12)


def test_an_rnn_is_its_formula(rng):
    x, h, (W_x, W_h, b) = rng.normal(size=(2, 3)), rng.normal(size=(2, 4)), make_params("rnn", 3, 4, rng)
    np.testing.assert_allclose(recurrent.rnn_cell(x, h, W_x, W_h, b), np.tanh(x @ W_x + h @ W_h + b), atol=1e-12)


def test_an_lstm_is_its_formulas_number_by_number(rng):
    B, d_in, d_h = 2, 3, 4
    x, h, c = rng.normal(size=(B, d_in)), rng.normal(size=(B, d_h)), rng.normal(size=(B, d_h))
    W_x, W_h, b = make_params("lstm", d_in, d_h, rng)
    got_h, got_c = recurrent.lstm_cell(x, h, c, W_x, W_h, b)
    for k, j in np.ndindex(B, d_h):
        i, f, g, o = (x[k] @ W_x[:, n] + h[k] @ W_h[:, n] + b[n] for n in (j, d_h + j, 2 * d_h + j, 3 * d_h + j))
        memory = logistic(f) * c[k, j] + logistic(i) * np.tanh(g)
        assert got_c[k, j] == pytest.approx(memory, abs=1e-12)
        assert got_h[k, j] == pytest.approx(logistic(o) * np.tanh(memory), abs=1e-12)


# --- Unrolling --------------------------------------------------------------------------------------------------------


@given(runs())
def test_unrolling_is_the_cell_again_and_again(run):
    kind, x, state, params, _ = run
    (outputs, last), _ = unroll(kind, x, state, params)
    d_h = outputs.shape[-1]
    for t in range(x.shape[1]):
        state = one_step(kind, x[:, t], state, params)
        np.testing.assert_allclose(outputs[:, t], state[:, :d_h], atol=1e-12)
    np.testing.assert_allclose(last, state, atol=1e-12)


@every_kind
@pytest.mark.parametrize("lengths", [None, [5, 2, 0]])
def test_both_directions_are_two_networks_one_of_which_reads_backwards_and_padding_changes_nothing(rng, kind, lengths):
    B, T, d_in, d_h = 3, 5, 4, 2
    x, zeros = rng.normal(size=(B, T, d_in)), np.zeros((B, d_h * recurrent.CELLS[kind].parts))
    there, back = (make_params(kind, d_in, d_h, rng) for _ in range(2))
    mask = None if lengths is None else lengths_to_mask(lengths, T)
    both = [np.stack(pair) for pair in zip(there, back, strict=True)]
    (outs, last), _ = recurrent.unroll_forward(kind, x, both, mask)
    (outs_there, _), _ = unroll(kind, x, zeros, there, mask)
    np.testing.assert_allclose(outs_there, outs[..., :d_h], atol=1e-12)
    for b, length in enumerate(lengths or [T] * B):
        own = x[b : b + 1, :length]
        (out_there, last_there), _ = unroll(kind, own, zeros[:1], there)
        (out_back, last_back), _ = unroll(kind, own[:, ::-1], zeros[:1], back)
        np.testing.assert_allclose(outs[b, :length, :d_h], out_there[0], atol=1e-12)
        np.testing.assert_allclose(outs[b, :length, d_h:], out_back[0, ::-1], atol=1e-12)
        assert (outs[b, length:] == 0).all()
        np.testing.assert_allclose(last[:, b], np.concatenate([last_there, last_back]), atol=1e-12)


@every_kind
def test_no_steps_and_no_sequences(rng, kind):
    params, state = make_params(kind, 3, 2, rng), make_state(kind, 4, 2, rng)
    (outs, last), cache = unroll(kind, np.zeros((4, 0, 3)), state, params)
    assert outs.shape == (4, 0, 2)
    np.testing.assert_array_equal(last, state)
    _, dstate, *grads = unroll_back((outs, 2 * last), cache)
    np.testing.assert_array_equal(dstate, 2 * state)
    assert all((grad == 0).all() for grad in grads)
    (outs, _), _ = unroll(kind, np.zeros((0, 5, 3)), state[:0], params)
    assert outs.shape == (0, 5, 2)


@every_kind
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_layer_adds_up_gradients_and_keeps_no_cache(rng, kind, bidirectional):
    layer = recurrent.Recurrent(kind, 3, 2, rng, bidirectional, np.float64)
    names = ["W_x", "W_h", "b", "b_h"][: 4 if kind == "gru" else 3]
    assert list(layer.params()) == names
    x = rng.normal(size=(2, 4, 5, 3))
    mask = lengths_to_mask([5, 3, 1, 5], 5)
    alone = dict.fromkeys(names, 0)
    for part in x:
        outs, cache = layer.forward(part, mask)
        assert outs[1].shape == (4, 2 * (1 + bidirectional))
        layer.backward(outs, cache)
        for name, param in layer.params().items():
            alone[name] = alone[name] + param.grad
            param.grad[...] = 0
    for outs, cache in [layer.forward(part, mask) for part in x]:
        layer.backward(outs, cache)
    for name, param in layer.params().items():
        np.testing.assert_allclose(param.grad, alone[name], atol=1e-12)


@every_kind
def test_recurrent_weights_begin_orthogonal_block_by_block(rng, kind):
    W_x, W_h, b, *b_h = recurrent.init_params(kind, 4, 6, rng)
    for block in np.split(W_h.astype(float), W_h.shape[1] // 6, axis=1):
        np.testing.assert_allclose(block @ block.T, np.eye(6), atol=1e-6)
    assert {p.dtype for p in (W_x, W_h, b, *b_h)} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(b[6:12], np.full_like(b[6:12], kind == "lstm"))
    assert b.sum() == (6 if kind == "lstm" else 0)
    drawn = [recurrent.init_params(kind, 4, 6, np.random.default_rng(3)) for _ in range(2)]
    assert all((one == other).all() for one, other in zip(*drawn, strict=True))


def test_initial_weights_have_the_spread_they_should(rng):
    W_x = recurrent.init_params("gru", 100, 50, rng)[0]
    assert W_x.std() == pytest.approx(0.1, rel=0.05)  # 1/√d_in
    # Of the two orthogonal 1 × 1 matrices both appear.
    assert {float(recurrent.init_params("rnn", 1, 1, rng)[1][0, 0]) for _ in range(20)} == {-1, 1}


@every_kind
def test_gradient_norms_are_those_of_the_states(rng, kind):
    """By differences: what a nudge of the state after step t does to u · h_T."""
    B, T, d_h = 2, 6, 4
    x, params = rng.normal(size=(B, T, 3)), make_params(kind, 3, d_h, rng)
    norms = recurrent.gradient_norms_through_time(kind, x, params, np.random.default_rng(1))
    assert norms.shape == (T,)
    assert norms[-1] == pytest.approx(1)
    u = np.random.default_rng(1).normal(size=(B, d_h))
    u /= np.linalg.norm(u, axis=-1, keepdims=True)
    start = np.zeros((B, d_h * recurrent.CELLS[kind].parts))
    for t in range(1, T):
        (_, state), _ = unroll(kind, x[:, :t], start, params)

        def end(state, t=t):
            (outs, _), _ = unroll(kind, x[:, t:], state, params)
            return (outs[:, -1] * u).sum()

        gradient = numerical_gradient(end, state)
        assert norms[t - 1] == pytest.approx(np.linalg.norm(gradient, axis=-1).mean(), rel=1e-6)
