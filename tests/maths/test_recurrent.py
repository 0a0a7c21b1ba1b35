"""Recurrent cells are their formulas, and unrolling is the cell again and again; gradients: test_gradients.py."""

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


def lengths_to_mask(lengths, T):
    return np.arange(T) < np.asarray(lengths)[:, None]


def logistic(x):
    return 1 / (1 + np.exp(-x))


@every_kind
def test_a_cell_is_its_formulas_number_by_number(rng, kind):
    B, d_in, d_h = 2, 3, 4
    x, state, params = rng.normal(size=(B, d_in)), make_state(kind, B, d_h, rng), make_params(kind, d_in, d_h, rng)
    (W_x, W_h, b, *b_h), got = params, one_step(kind, x, state, params)
    for row, j in np.ndindex(B, d_h):
        h = state[row, :d_h]
        columns = range(j, W_x.shape[1], d_h)
        from_x, from_h = ([float(v @ W[:, n]) for n in columns] for v, W in ((x[row], W_x), (h, W_h)))
        a = [one + other + b[n] for one, other, n in zip(from_x, from_h, columns, strict=True)]
        if kind == "rnn":
            want = [np.tanh(a[0])]
        elif kind == "gru":
            reset, keep = logistic(a[0]), logistic(a[1])
            new = np.tanh(from_x[2] + b[2 * d_h + j] + reset * (from_h[2] + b_h[0][j]))
            want = [(1 - keep) * new + keep * h[j]]
        else:
            memory = logistic(a[1]) * state[row, d_h + j] + logistic(a[0]) * np.tanh(a[2])
            want = [logistic(a[3]) * np.tanh(memory), memory]
        assert got[row, j::d_h].tolist() == pytest.approx(want, abs=1e-12)


@given(st.sampled_from(KINDS), seeds, *(st.integers(1, 5) for _ in range(4)))
def test_unrolling_is_the_cell_again_and_again(kind, rng, B, T, d_in, d_h):
    x, state, params = rng.normal(size=(B, T, d_in)), make_state(kind, B, d_h, rng), make_params(kind, d_in, d_h, rng)
    (outputs, last), _ = unroll(kind, x, state, params)
    for t in range(T):
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
    _, dstate, grads = recurrent.unroll_backward((outs, 2 * last[None]), cache)
    np.testing.assert_array_equal(dstate[0], 2 * state)
    assert all((grad == 0).all() for grad in grads)
    (outs, _), _ = unroll(kind, np.zeros((0, 5, 3)), state[:0], params)
    assert outs.shape == (0, 5, 2)


@every_kind
def test_recurrent_weights_begin_orthogonal_block_by_block(rng, kind):
    params = recurrent.init_params(kind, 100, 50, rng)
    assert {p.dtype for p in params} == {np.dtype(np.float32)}
    W_x, W_h, b, *_ = params
    for block in np.split(W_h.astype(float), W_h.shape[1] // 50, axis=1):
        np.testing.assert_allclose(block @ block.T, np.eye(50), atol=1e-5)
    assert W_x.std() == pytest.approx(0.1, rel=0.05)  # 1/√d_in
    np.testing.assert_array_equal(b, (np.arange(len(b)) // 50 == 1) & (kind == "lstm"))  # the gate that forgets is open
    # Of the two orthogonal 1 × 1 matrices both appear.
    assert {float(recurrent.init_params(kind, 1, 1, rng)[1][0, 0]) for _ in range(20)} == {-1, 1}


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
