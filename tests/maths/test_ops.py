"""What the maths promises of softmax, entropy and the Jacobian."""

import numpy as np
import pytest
from hypothesis import assume, given
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


@given(scores(), st.data())
def test_weights_are_non_negative_and_sum_to_1_along_any_axis(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    before = x.copy()
    weights = ops.softmax(x, axis=axis)
    assert weights.dtype == x.dtype
    assert weights.shape == x.shape
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=axis, dtype=np.float64), 1, atol=TOLERANCE[x.dtype.type])
    np.testing.assert_array_equal(x, before)


@given(scores(st.just(np.float64)), st.floats(-1e3, 1e3))
def test_a_common_shift_changes_nothing(x, shift):
    np.testing.assert_allclose(ops.softmax(x + shift), ops.softmax(x), rtol=1e-6, atol=1e-12)


@given(scores(st.just(np.float64), largest=20.0), st.sampled_from((0.5, 1.0, 8.0)))
def test_it_is_the_textbook_formula_where_that_does_not_overflow(x, temperature):
    expected = np.exp(x / temperature) / np.exp(x / temperature).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(ops.softmax(x, temperature=temperature), expected, rtol=1e-9)


@given(scores(st.just(np.float64), largest=50.0), seeds)
def test_a_score_of_minus_infinity_is_as_good_as_absent(x, rng):
    here = rng.random(x.shape[-1]) < 0.6
    here[rng.integers(x.shape[-1])] = True
    weights = ops.softmax(np.where(here, x, -np.inf))
    np.testing.assert_array_equal(weights[..., ~here], 0)
    np.testing.assert_allclose(weights[..., here], ops.softmax(x[..., here]), rtol=1e-12)


@given(scores(st.just(np.float64), largest=20.0))
def test_order_is_kept_at_every_temperature(x):
    for temperature in (0.5, 1.0, 30.0):
        weights = ops.softmax(x, temperature=temperature)
        order = np.take_along_axis(weights, x.argsort(axis=-1), axis=-1)
        assert (np.diff(order) >= 0).all()


@given(scores(st.just(np.float64)))
def test_cold_is_a_lookup_and_hot_is_the_mean(x):
    gaps = np.diff(np.sort(x, axis=-1))
    assume(x.shape[-1] > 1 and (gaps > 1e-3).all())
    np.testing.assert_allclose(ops.softmax(x, temperature=1e-9), x == x.max(axis=-1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(ops.softmax(x, temperature=1e12), 1 / x.shape[-1], rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_extreme_scores(dtype):
    weights = ops.softmax(np.array([[1e4, 1e4 - 8, -1e4], [-1e4, -1e4, -1e4]], dtype))
    expected = np.array([[1 / (1 + np.exp(-8.0)), 1 / (1 + np.exp(8.0)), 0], [1 / 3] * 3])
    np.testing.assert_allclose(weights.astype(float), expected, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_minus_infinity_gets_nothing_and_a_closed_row_is_zeros(dtype):
    inf = np.inf
    weights = ops.softmax(np.array([[0, -inf, 0], [-inf, -inf, -inf], [-inf, 7, -inf]], dtype))
    np.testing.assert_array_equal(weights, np.array([[0.5, 0, 0.5], [0, 0, 0], [0, 1, 0]], dtype))


def test_smallest_temperatures_do_not_overflow():
    np.testing.assert_array_equal(ops.softmax([1e4, -1e4], temperature=1e-307), [1, 0])


@pytest.mark.parametrize("shape", [(1,), (4, 1), (0, 3), (2, 0, 3)])
def test_one_score_and_empty_batches(shape):
    weights = ops.softmax(np.zeros(shape))
    assert weights.shape == shape
    np.testing.assert_array_equal(weights, np.full(shape, 1 / shape[-1]))


@given(scores(), st.data())
def test_entropy_lies_between_0_and_ln_n_along_any_axis(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    weights = ops.softmax(x, axis=axis)
    before = weights.copy()
    entropy = ops.entropy(weights, axis=axis)
    assert entropy.dtype == x.dtype
    assert entropy.shape == x.max(axis=axis).shape
    assert (entropy >= 0).all()
    assert (entropy <= np.log(x.shape[axis]) + 10 * TOLERANCE[x.dtype.type]).all()
    np.testing.assert_array_equal(weights, before)


def test_entropy_counts_the_positions_looked_at():
    entropy = ops.entropy([[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0.25] * 4])
    np.testing.assert_allclose(np.exp(entropy), [1, 2, 4], rtol=1e-14)
    np.testing.assert_allclose(ops.entropy([[0.5, 1], [0.5, 0]], axis=0), [np.log(2), 0], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_entropy_is_printed_as_minus_zero(dtype):
    assert not np.signbit(ops.entropy(np.eye(3, dtype=dtype))).any()


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


@given(scores())
def test_jacobian_is_symmetric_and_its_rows_sum_to_0(x):
    jacobian = ops.softmax_jacobian(ops.softmax(x))
    assert jacobian.dtype == x.dtype
    np.testing.assert_allclose(jacobian, jacobian.swapaxes(-1, -2), atol=TOLERANCE[x.dtype.type])
    np.testing.assert_allclose(jacobian.sum(axis=-1, dtype=float), 0, atol=4 * TOLERANCE[x.dtype.type])


def test_jacobian_of_a_saturated_softmax_is_zero():
    np.testing.assert_array_equal(ops.softmax_jacobian([0.0, 1.0, 0.0]), np.zeros((3, 3)))
