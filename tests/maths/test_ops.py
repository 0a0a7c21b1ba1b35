"""The operations are their plain formulas, and softmax keeps what the maths promises of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lesson_utils.maths import ops

FLOATS = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-13}
floats = st.sampled_from(FLOATS)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7)


@st.composite
def scores(draw, dtypes=floats, largest=1e4):
    dtype, shape, rng = draw(dtypes), draw(shapes), draw(seeds)
    size = draw(st.sampled_from((0.0, 1.0, 50.0, largest)))
    return np.clip(size * rng.normal(size=shape), -largest, largest).astype(dtype)


@given(scores(), st.sampled_from((0.25, 1.0, 8.0)), st.sampled_from((0.0, 0.4, 1.0)), seeds)
def test_softmax_is_the_formula_whatever_the_size_and_what_is_minus_infinity_is_as_good_as_absent(x, T, share, rng):
    """Exactly nothing, in training, too; and a row in which nothing is left is a row of zeros."""
    dtype, x = x.dtype, np.where(rng.random(x.shape) < share, -np.inf, x)
    want = np.zeros(x.shape)
    for i in np.ndindex(x.shape[:-1]):
        here = x[i] > -np.inf
        powers = [math.exp((float(score) - float(x[i].max())) / T) for score in x[i][here]]
        want[i][here] = np.array(powers) / math.fsum(powers or [1])
    ways = [ops.softmax(x, temperature=T), np.moveaxis(ops.softmax(np.moveaxis(x, -1, 0), 0, T), 0, -1)]
    if T == 1 and np.isfinite(x).any(axis=-1).all():
        ways.append(ops.softmax_forward(x)[0])
    for weights in ways:
        assert weights.dtype == dtype
        np.testing.assert_allclose(weights, want, rtol=1e-6, atol=1e2 * TOLERANCE[dtype.type])
        assert (weights[x == -np.inf] == 0).all()
    entropy = [-math.fsum(w * math.log(w) for w in row if w) for row in want.reshape(-1, x.shape[-1])]
    np.testing.assert_allclose(ops.entropy(ways[0]).ravel(), entropy, atol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("score", [-1000, 61, 100, 1000])
def test_a_lone_score_gets_all_the_weight_in_training_too(dtype, score):
    for x in (np.array([[score]], dtype), np.array([[score, -np.inf]], dtype)):
        weights, _ = ops.softmax_forward(x)
        assert weights.dtype == dtype
        np.testing.assert_array_equal(weights, np.isfinite(x))
    assert ops.softmax_forward(np.ones((0, 3)))[0].shape == (0, 3)  # no rows are fine
    np.testing.assert_array_equal(ops.softmax([1e4, -1e4], temperature=1e-307), [1, 0])


def test_entropy_counts_the_positions_looked_at():
    entropy = ops.entropy([[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0.25] * 4])
    np.testing.assert_allclose(np.exp(entropy), [1, 2, 4], rtol=1e-14)
    np.testing.assert_allclose(ops.entropy([[0.5, 1], [0.5, 0]], axis=0), [np.log(2), 0], rtol=1e-14)
    for dtype in FLOATS:
        assert not np.signbit(ops.entropy(np.eye(3, dtype=dtype))).any()  # none is printed as −0


@given(scores(st.just(np.float64), largest=5.0))
def test_jacobian_equals_central_differences(x):
    jacobian = ops.softmax_jacobian(ops.softmax(x))
    assert jacobian.shape == (*x.shape, x.shape[-1])
    step = 1e-6
    for j in range(x.shape[-1]):
        nudge = np.zeros(x.shape[-1])
        nudge[j] = step
        slope = (ops.softmax(x + nudge) - ops.softmax(x - nudge)) / (2 * step)
        np.testing.assert_allclose(jacobian[..., j], slope, atol=1e-8)
    np.testing.assert_array_equal(ops.softmax_jacobian([0.0, 1.0, 0.0]), np.zeros((3, 3)))  # saturated


# --- Losses, norms, activations, dropout -----------------------------------------------------------------------------


def test_a_hidden_score_may_be_as_large_as_it_likes():
    weights, _ = ops.softmax_forward(np.array([[1e30, 1.0, 2.0]], np.float32), np.array([[0, 1, 1]], np.float32))
    np.testing.assert_allclose(weights, [[0, 0.26894142, 0.73105858]], rtol=1e-6)


@given(seeds, st.sampled_from([0.5, 30.0, 1e3]), st.sampled_from([-1, 0, 1]))
def test_log_softmax_is_the_logarithm_of_softmax(rng, size, axis):
    x = size * rng.normal(size=(3, 4, 5))
    logs = ops.log_softmax(x, axis)
    np.testing.assert_allclose(np.exp(logs), ops.softmax(x, axis), atol=1e-13)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(ops.log_softmax([0.0, -1e4]), [0, -1e4])  # beyond the reach of exp


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


def test_layer_norm_and_rms_norm_are_what_their_formulas_say(rng):
    x, (gamma, beta) = 5 + 3 * rng.normal(size=(4, 50)), rng.normal(size=(2, 50))
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    for eps in (1e-12, 1e-5, 3.0):
        inside, outside = (ops.layer_norm(x, gamma, beta, eps, eps_inside_root=root) for root in (True, False))
        np.testing.assert_allclose(inside, (x - mean) / np.sqrt(var + eps) * gamma + beta, atol=1e-12)
        np.testing.assert_allclose(outside, (x - mean) / (np.sqrt(var) + eps) * gamma + beta, atol=1e-12)
        rms = np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
        np.testing.assert_allclose(ops.rms_norm(x, gamma, eps), x / rms * gamma, atol=1e-12)


def test_a_constant_token_has_no_nan():
    x, ones = np.full((2, 4), 7.0), np.ones(4)
    for inside in (True, False):
        np.testing.assert_array_equal(ops.layer_norm(x, ones, ones, 1e-5, inside), 1)
    _, cache = ops.layer_norm_forward(x, ones, ones, 1e-5)
    for gradient in ops.layer_norm_backward(np.arange(8.0).reshape(2, 4), cache):
        assert np.isfinite(gradient).all()


@given(seeds)
def test_activations_are_what_their_formulas_say(rng):
    x, value = 3 * rng.normal(size=(2, 50))
    np.testing.assert_array_equal(ops.relu(x), np.where(x > 0, x, 0))
    exact = [t * 0.5 * (1 + math.erf(t / math.sqrt(2))) for t in x]
    np.testing.assert_allclose(ops.gelu(x), exact, atol=1e-3)  # the tanh formula is an approximation
    np.testing.assert_allclose(ops.swiglu(x, value), x / (1 + np.exp(-x)) * value, rtol=1e-12)
    np.testing.assert_allclose(ops.sigmoid(x), 1 / (1 + np.exp(-x)), rtol=1e-12)
    np.testing.assert_array_equal(ops.sigmoid(np.array([-1e5, 0, 1e5])), [0, 0.5, 1])


@given(seeds, st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from(FLOATS))
def test_dropout_drops_its_share_and_keeps_the_mean(rng, rate, dtype):
    x = np.ones((100, 100), dtype)
    seed = int(rng.integers(2**31))
    y, keep = ops.dropout_forward(x, rate, np.random.default_rng(seed))
    assert y.dtype == dtype
    np.testing.assert_array_equal(keep > 0, np.random.default_rng(seed).random(x.shape, dtype) >= dtype(rate))
    np.testing.assert_allclose((y == 0).mean(), rate, atol=0.03)
    np.testing.assert_allclose(y[y > 0], 1 / (1 - rate), rtol=1e-6)
    np.testing.assert_array_equal(ops.dropout_backward(x, keep), y)


def test_dropout_is_off_at_0_and_without_a_generator(rng):
    x, before = rng.normal(size=(3, 4)), rng.bit_generator.state
    for rate, draws in ((0.0, rng), (0.9, None)):
        y, keep = ops.dropout_forward(x, rate, draws)
        assert (y is x, keep, ops.dropout_backward(x, keep) is x) == (True, None, True)
    assert rng.bit_generator.state == before


def test_a_product_that_overflows_in_one_place_is_refused():
    with pytest.raises(ValueError, match="gate and value are so large that their product overflows float32"):
        ops.swiglu(np.array([1, 1e30], np.float32), np.array([1, 1e30], np.float32))


def test_sums_as_products(rng):
    x = rng.normal(size=(2, 3, 5))
    np.testing.assert_allclose(ops.row_sums(x), x.sum(axis=-1, keepdims=True), atol=1e-13)
    np.testing.assert_allclose(ops.column_sums(x), x.sum(axis=(0, 1)), atol=1e-13)
    np.testing.assert_array_equal(ops.column_sums(x[0, 0]), x[0, 0])
