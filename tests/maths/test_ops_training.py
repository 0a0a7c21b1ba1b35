"""The operations that training is made of: values from plain formulas, gradients from finite differences."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, ops

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
leading = st.sampled_from(((), (3,), (2, 3), (1,)))
FLOATS = (np.float32, np.float64)
ROUNDING = {np.float32: 2e-5, np.float64: 1e-12}


@given(seeds, leading, st.booleans(), st.sampled_from([1.0, 200.0, 1e4]), st.sampled_from(FLOATS))
def test_attention_of_training_is_the_one_of_the_lesson(rng, leading, masked, size, dtype):
    T_q, T_k, d_k, d_v = 3, 4, 5, 2
    Q, K, V = (rng.normal(size=(*leading, *s)).astype(dtype) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    Q *= dtype(size)
    mask = rng.random((*leading, T_q, T_k)) < 0.5 if masked else None
    if masked:
        mask[..., 0, :] = False  # a query that may attend to nothing
    _, weights = attention.scaled_dot_product_attention(Q, K, V, mask, 0.7)
    for given_mask in (mask, mask if mask is None else mask.astype(dtype)):
        got, cache = attention.attention_forward(Q, K, V, given_mask, 0.7)
        assert got.dtype == cache.weights.dtype == dtype
        np.testing.assert_allclose(cache.weights, weights, atol=1e-3 if size > 1 and dtype == np.float32 else 1e-5)
    if masked:
        assert (cache.weights[~mask] == 0).all()
        assert (got[..., 0, :] == 0).all()


def test_a_hidden_score_may_be_as_large_as_it_likes():
    weights, _ = ops.softmax_forward(np.array([[1e30, 1.0, 2.0]], np.float32), np.array([[0, 1, 1]], np.float32))
    np.testing.assert_allclose(weights, [[0, 0.26894142, 0.73105858]], rtol=1e-6)


@given(seeds, st.sampled_from([0.5, 30.0, 1e3]), st.sampled_from([-1, 0, 1]))
def test_log_softmax_is_the_logarithm_of_softmax(rng, size, axis):
    x = size * rng.normal(size=(3, 4, 5))
    logs = ops.log_softmax(x, axis)
    np.testing.assert_allclose(np.exp(logs), ops.softmax(x, axis), atol=1e-13)
    assert np.isfinite(logs).all()


def test_log_softmax_beyond_the_reach_of_exp():
    np.testing.assert_allclose(ops.log_softmax([0.0, -1e4]), [0, -1e4])


@given(seeds, st.sampled_from([1.0, 50.0, 300.0]), st.sampled_from([0.0, 0.1, 0.5]), st.booleans())
def test_cross_entropy_is_what_the_formula_says(rng, size, smoothing, masked):
    V = 6
    logits, targets = size * rng.normal(size=(3, 4, V)), rng.integers(V, size=(3, 4))
    mask = rng.random((3, 4)) < 0.7 if masked else None
    if masked:
        mask[0, 0] = True
    wanted = [
        -sum(((1 - smoothing) * (v == targets[i]) + smoothing / V) * ops.log_softmax(logits[i])[v] for v in range(V))
        for i in np.ndindex(3, 4)
        if mask is None or mask[i]
    ]
    np.testing.assert_allclose(ops.cross_entropy(logits, targets, mask, smoothing), np.mean(wanted), rtol=1e-10)


def test_padding_gets_no_gradient(rng):
    mask = np.array([True, False, True])
    _, cache = ops.cross_entropy_forward(rng.normal(size=(3, 5)), np.array([0, 4, 2]), mask)
    dlogits = ops.cross_entropy_backward(1.0, cache)
    np.testing.assert_array_equal(dlogits[1], 0)
    np.testing.assert_allclose(dlogits.sum(axis=-1), 0, atol=1e-15)


@given(seeds, leading)
def test_layer_norm_makes_mean_0_and_variance_1(rng, leading):
    x = 5 + 3 * rng.normal(size=(*leading, 4, 50))
    y = ops.layer_norm(x, np.ones(50), np.zeros(50))
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(axis=-1), 1, atol=1e-4)
    gamma, beta = rng.normal(size=(2, 50))
    np.testing.assert_allclose(ops.layer_norm(x, gamma, beta), y * gamma + beta, atol=1e-12)


@given(seeds, st.floats(0.01, 100), st.floats(-100, 100))
def test_layer_norm_does_not_see_scale_or_shift_of_a_token(rng, scale, shift):
    x, ones, zeros = rng.normal(size=(3, 8)), np.ones(8), np.zeros(8)
    y = ops.layer_norm(x, ones, zeros, 1e-15)
    np.testing.assert_allclose(ops.layer_norm(scale * x + shift, ones, zeros, 1e-15), y, atol=1e-6)


def test_the_two_formulas_of_layer_norm():
    x, ones, zeros = np.array([0.0, 2.0]), np.ones(2), np.zeros(2)  # mean 1, variance 1
    np.testing.assert_allclose(ops.layer_norm(x, ones, zeros, 3.0), [-0.5, 0.5])
    np.testing.assert_allclose(ops.layer_norm(x, ones, zeros, 3.0, eps_inside_root=False), [-0.25, 0.25])


def test_a_constant_token_has_no_nan():
    x, ones = np.full((2, 4), 7.0), np.ones(4)
    for inside in (True, False):
        np.testing.assert_array_equal(ops.layer_norm(x, ones, ones, 1e-5, inside), 1)
    _, cache = ops.layer_norm_forward(x, ones, ones, 1e-5)
    for gradient in ops.layer_norm_backward(np.arange(8.0).reshape(2, 4), cache):
        assert np.isfinite(gradient).all()


def test_rms_norm():
    np.testing.assert_allclose(ops.rms_norm([3.0, 4.0], [1.0, 2.0], 1e-12), np.array([3, 8]) / math.sqrt(12.5))


@given(seeds)
def test_activations_are_what_their_formulas_say(rng):
    x, value = 3 * rng.normal(size=(2, 50))
    np.testing.assert_array_equal(ops.relu(x), np.where(x > 0, x, 0))
    exact = [t * 0.5 * (1 + math.erf(t / math.sqrt(2))) for t in x]
    np.testing.assert_allclose(ops.gelu(x), exact, atol=1e-3)  # the tanh formula is an approximation
    np.testing.assert_allclose(ops.swiglu(x, value), x / (1 + np.exp(-x)) * value, rtol=1e-12)
    np.testing.assert_allclose(ops.sigmoid(x), 1 / (1 + np.exp(-x)), rtol=1e-12)


def test_sigmoid_overflows_nowhere():
    np.testing.assert_array_equal(ops.sigmoid(np.array([-1e5, 0, 1e5])), [0, 0.5, 1])


@given(seeds, st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from(FLOATS))
def test_dropout_drops_its_share_and_keeps_the_mean(rng, rate, dtype):
    x = np.ones((100, 100), dtype)
    y, keep = ops.dropout_forward(x, rate, rng)
    assert y.dtype == dtype
    np.testing.assert_allclose((y == 0).mean(), rate, atol=0.03)
    np.testing.assert_allclose(y[y > 0], 1 / (1 - rate), rtol=1e-6)
    np.testing.assert_array_equal(ops.dropout_backward(x, keep), y)


def test_dropout_is_off_without_a_generator(rng):
    x = rng.normal(size=(3, 4))
    y, keep = ops.dropout_forward(x, 0.9, None)
    assert y is x
    assert ops.dropout_backward(x, keep) is x


@given(seeds, st.integers(1, 6), leading)
def test_sums_as_products(rng, n, leading):
    x = rng.normal(size=(*leading, n))
    np.testing.assert_allclose(ops.row_sums(x), x.sum(axis=-1, keepdims=True), atol=1e-13)
    np.testing.assert_allclose(ops.column_sums(x), x.reshape(-1, n).sum(axis=0), atol=1e-13)
