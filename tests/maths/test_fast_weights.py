"""A memory returns what was written, forgets as its rule says, and equals attention without softmax."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import efficient, fast_weights
from lesson_utils.maths.gradcheck import numerical_gradient


def written(K, V, **rule):
    S = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]), K.dtype)
    for t in range(K.shape[-2]):
        S = fast_weights.write(S, K[..., t, :], V[..., t, :], **rule)
    return S


def draw(seed, T=7, d_k=4, d_v=3, leading=(), dtype=np.float64):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(*leading, T, d_k))
    K /= np.linalg.norm(K, axis=-1, keepdims=True)
    return K.astype(dtype), rng.normal(size=(*leading, T, d_v)).astype(dtype)


@given(st.integers(0, 99), st.integers(1, 9), st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.9, 1.0]))
def test_recurrence_and_masked_matrix_are_one_function(seed, T, T_q, decay):
    T_q = min(T, T_q)
    K, V = draw(seed, T, leading=(2,))
    Q = np.random.default_rng(seed + 1).normal(size=(2, T_q, 4))
    S, outputs = np.zeros((2, 4, 3)), []
    for t in range(T):
        S = fast_weights.write(S, K[:, t], V[:, t], decay)
        outputs.append(fast_weights.read(S, Q[:, t - T + T_q]) if t >= T - T_q else None)
    expected = np.stack(outputs[T - T_q :], axis=1)
    assert fast_weights.decayed_attention(Q, K, V, decay) == pytest.approx(expected, abs=1e-12)


def test_it_is_linear_attention_before_the_division():
    K, V = draw(0)
    Q = np.random.default_rng(1).normal(size=K.shape)
    phi_Q, phi_K = efficient.elu_feature_map(Q), efficient.elu_feature_map(K)
    ones = np.ones((len(V), 1))
    both = fast_weights.decayed_attention(phi_Q, phi_K, np.hstack([V, ones]))
    assert efficient.linear_attention(Q, K, V, causal=True) == pytest.approx(both[:, :-1] / both[:, -1:])


@given(st.integers(0, 99), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_delta_rule_makes_the_memory_say_the_new_value_by_a_step_down_the_squared_error(seed, decay):
    K, V = draw(seed)
    S = written(K, V, overwrite=True, decay=decay)
    assert fast_weights.read(S, K[-1]) == pytest.approx(V[-1])
    S, k, v, rate = written(K[:-1], V[:-1]), K[-1], V[-1], 0.3
    new = fast_weights.write(S, k, v, overwrite=True, rate=rate)
    gradient = numerical_gradient(lambda S: ((v - fast_weights.read(S, k)) ** 2).sum() / 2, S)
    assert new == pytest.approx(S - rate * gradient, abs=1e-8)
