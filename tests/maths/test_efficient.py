"""What the maths promises of sparse masks and linear attention; online attention is in test_attention.py."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, efficient

FLOATS = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def cases(draw):
    """Q, K, V; sizes differ, leading axes are 0 to 2 and may be 1 where an array is shared, and T_q ≤ T_k."""
    rng, dtype = draw(seeds), draw(st.sampled_from(FLOATS))
    leading = draw(st.sampled_from(((), (2,), (3, 2), (1,))))
    T_q, T_k = sorted(draw(st.integers(1, 100)) for _ in range(2))
    d_k, d_v = (draw(st.integers(1, 6)) for _ in range(2))
    shared = [tuple(draw(st.sampled_from((1, n))) for n in leading) for _ in range(3)]
    sizes = zip(shared, ((T_q, d_k), (T_k, d_k), (T_k, d_v)), strict=True)
    return tuple(rng.normal(size=(*own, *size)).astype(dtype) for own, size in sizes)


# --- Masks ------------------------------------------------------------------------------------------------------------


def mask_by_loops(T, may_attend):
    return np.array([[may_attend(i, j) for j in range(T)] for i in range(T)], dtype=bool).reshape(T, T)


MASKS = {  # name -> the function, and which pairs it lets attend
    "window": (efficient.window_mask, lambda i, j, n: abs(i - j) <= n),
    "causal window": (lambda T, n: efficient.window_mask(T, n, causal=True), lambda i, j, n: i - n <= j <= i),
    "blocks": (efficient.block_mask, lambda i, j, n: i // n == j // n),
    "strides": (efficient.strided_mask, lambda i, j, n: (i - j) % n == 0),
    "causal strides": (lambda T, n: efficient.strided_mask(T, n, causal=True), lambda i, j, n: j in range(i, -1, -n)),
    "global tokens": (lambda T, n: efficient.global_mask(T, range(0, T, n)), lambda i, j, n: i % n == 0 or j % n == 0),
}


@pytest.mark.parametrize(("make", "may_attend"), MASKS.values(), ids=MASKS)
def test_masks_are_what_the_loops_say(make, may_attend):
    for T, n in itertools.product(range(10), range(1, 11)):
        got = make(T, n)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, mask_by_loops(T, lambda i, j, n=n: may_attend(i, j, n)))
    np.testing.assert_array_equal(efficient.window_mask(4, 0), np.eye(4))


# --- Reach ------------------------------------------------------------------------------------------------------------


@given(seeds, st.integers(0, 7), st.integers(0, 6))
def test_reach_follows_paths_layer_by_layer(rng, T, layers):
    mask = rng.random((T, T)) < 0.3
    known = [{i} for i in range(T)]
    for _ in range(layers):
        known = [set().union(*(known[j] for j in range(T) if mask[i, j])) for i in range(T)]
    got = efficient.reach(mask, layers)
    assert got.dtype == bool
    np.testing.assert_array_equal(got, mask_by_loops(T, lambda i, j: j in known[i]))


# --- Linear attention -------------------------------------------------------------------------------------------------


def quadratic(Q, K, V, mask=None):
    """Linear attention the long way: all weights, one row each, normalised."""
    phi = [np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (Q.astype(float), K.astype(float))]
    weights = phi[0] @ phi[1].swapaxes(-1, -2)
    if mask is not None:
        weights = weights * mask
    return weights / weights.sum(axis=-1, keepdims=True) @ V.astype(float)


@given(seeds, st.sampled_from(FLOATS))
def test_the_feature_map_is_elu_plus_1(rng, dtype):
    x = (3 * rng.normal(size=(3, 4))).astype(dtype)
    phi = efficient.elu_feature_map(x)
    assert phi.dtype == dtype
    assert (phi > 0).all()
    want = [value + 1 if value > 0 else math.exp(value) for value in x.ravel().tolist()]
    np.testing.assert_allclose(phi.ravel(), want, rtol=TOLERANCE[dtype])
    np.testing.assert_array_equal(efficient.elu_feature_map([-np.inf, 0, 2]), [0, 1, 3])


@given(cases(), st.booleans())
def test_linear_attention_is_the_quadratic_form_without_its_matrix(case, causal):
    """With T_q < T_k the queries come last. Up to 100 positions: several chunks, the last one shorter."""
    output = efficient.linear_attention(*case, causal=causal)
    mask = attention.causal_mask(case[0].shape[-2], case[1].shape[-2]) if causal else None
    tolerance = 3 * TOLERANCE[output.dtype.type]
    np.testing.assert_allclose(output, quadratic(*case, mask), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_of_large_input_neither_overflows_nor_warns(rng, causal):
    for dtype, size in ((np.float32, 1e4), (np.float64, 1e100)):
        Q, K, V = rng.normal(size=(3, 40, 8)).astype(dtype)
        output = efficient.linear_attention((size * Q).astype(dtype), (size * K).astype(dtype), V, causal)
        assert np.isfinite(output).all()
    V = np.ones((5, 2))
    np.testing.assert_array_equal(
        efficient.linear_attention(np.full((5, 3), -1e4), -V[:, :1] * np.ones(3), V, causal), 0
    )


@pytest.mark.parametrize("large", [dict(Q=1e30, K=1e30), dict(V=3e38)])
@pytest.mark.parametrize("options", [None, {"causal": False}, {"causal": True}])
def test_an_output_beyond_the_dtype_is_refused_not_infinite(options, large):
    Q, K, V = (np.full((3, 4), large.get(name, 1), np.float32) for name in "QKV")
    with pytest.raises(ValueError, match="so large that the output overflows float32; scale down Q, K or V"):
        efficient.online_attention(Q, K, V) if options is None else efficient.linear_attention(Q, K, V, **options)
