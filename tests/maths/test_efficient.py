"""What the maths promises of efficient attention: the same numbers as loops and as the plain form, in less memory."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, efficient
from lesson_utils.maths.attention import scaled_dot_product_attention as attend
from lesson_utils.maths.efficient import online_softmax

FLOATS = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def cases(draw, dtypes=st.just(np.float64), causal=st.just(False), longest=9):
    """Q, K, V; sizes differ, leading axes are 0 to 2 and may be 1 where an array is shared; T_q ≤ T_k if causal."""
    rng, dtype = draw(seeds), draw(dtypes)
    leading = draw(st.sampled_from(((), (2,), (3, 2), (1,))))
    T_q, T_k, d_k, d_v = (draw(st.integers(1, n)) for n in (longest, longest, 6, 6))
    if draw(causal):
        T_q, T_k = sorted((T_q, T_k))
    shared = [tuple(draw(st.sampled_from((1, n))) for n in leading) for _ in range(3)]
    return tuple(
        rng.normal(size=(*own, *s)).astype(dtype)
        for own, s in zip(shared, ((T_q, d_k), (T_k, d_k), (T_k, d_v)), strict=True)
    )


def random_mask(rng, Q, K):
    """Some rows and stretches of keys see nothing at all."""
    leading = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2])
    mask = rng.random((*leading, Q.shape[-2], K.shape[-2])) < rng.choice([0.2, 0.6, 1.0])
    mask &= rng.random((*leading, Q.shape[-2], 1)) < 0.8
    start = rng.integers(K.shape[-2] + 1)
    mask[..., start : start + K.shape[-2] // 2] = False
    return mask


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


@given(st.integers(1, 20), st.integers(1, 6))
def test_two_layers_reach_everything_through_a_global_token_or_window_and_stride(T, n):
    assert efficient.reach(efficient.window_mask(T, 0) | efficient.global_mask(T, [n % T]), 2).all()
    assert efficient.reach(efficient.window_mask(T, n - 1) | efficient.strided_mask(T, n), 2).all()
    both = efficient.window_mask(T, n - 1, causal=True) | efficient.strided_mask(T, n, causal=True)
    np.testing.assert_array_equal(efficient.reach(both, 2), attention.causal_mask(T))


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


@given(cases(st.sampled_from(FLOATS), causal=st.just(True), longest=100), st.booleans())
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


# --- Online softmax ---------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of queries so small that small inputs have several, of up to twice `block_size` keys."""
    monkeypatch.setattr(online_softmax, "_QUERIES", 2)


@given(cases(st.sampled_from(FLOATS)), seeds, st.booleans(), st.integers(1, 10), st.sampled_from((0.1, 1, 30)))
def test_online_attention_equals_plain_attention(case, rng, masked, block_size, size):
    """Small scores need no maximum; large ones (size 30) do."""
    Q, K, V = case
    Q = (size * Q).astype(Q.dtype)
    mask = random_mask(rng, Q, K) if masked else None
    output = efficient.online_attention(Q, K, V, mask, block_size)
    assert output.dtype == Q.dtype
    want, _ = attend(Q, K, V, mask)
    tolerance = max(1, size) * TOLERANCE[Q.dtype.type]
    np.testing.assert_allclose(output, np.broadcast_to(want, output.shape), rtol=tolerance, atol=tolerance)
    if masked:
        assert (output[~np.broadcast_to(mask.any(axis=-1), output.shape[:-1])] == 0).all()


@given(cases(st.sampled_from(FLOATS)), seeds, st.integers(1, 4), st.sampled_from((1e4, -1e4)))
def test_rising_falling_and_extreme_scores_are_exact(case, rng, block_size, slope):
    """Scores of about ±1e4 that rise or fall from key to key, masked at random: no NaN, no warning, the same output."""
    Q, K, V = case
    Q, K = 1 + 0 * Q, (slope * np.sort(rng.normal(size=K.shape), axis=-2)).astype(K.dtype)
    mask = random_mask(rng, Q, K)
    output = efficient.online_attention(Q, K, V, mask, block_size)
    want, _ = attend(Q, K, V, mask)
    np.testing.assert_allclose(
        output, np.broadcast_to(want, output.shape), atol=0.02 if Q.dtype == np.float32 else 1e-9
    )
    assert (output[~np.broadcast_to(mask.any(axis=-1), output.shape[:-1])] == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("score", [-1e4, -50, -1, 1, 50, 1e4])
def test_a_lone_visible_key_gets_all_the_weight_whatever_the_others_score(rng, dtype, score):
    Q, K = np.ones((1, 1), dtype), np.array([[score], [-score], [score / 2], [0]], dtype)
    V = rng.normal(size=(4, 3)).astype(dtype)
    for block_size in (1, 2, 3, 4):
        for mask in np.eye(4, dtype=bool):
            output = efficient.online_attention(Q, K, V, mask, block_size)
            np.testing.assert_allclose(output[0], V[mask][0], rtol=1e-6)
        np.testing.assert_array_equal(
            efficient.online_attention(Q, K, V, np.zeros(4, bool), block_size), np.zeros((1, 3))
        )


def test_large_values_under_large_scores_do_not_overflow(rng):
    Q, K = np.ones((5, 1), np.float32), np.linspace(-50, 50, 6, dtype=np.float32)[:, None]
    V = rng.normal(size=(6, 3)).astype(np.float32) * np.float32(1e20)
    want, _ = attend(Q, K, V)
    np.testing.assert_allclose(efficient.online_attention(Q, K, V, block_size=2), want, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("shape", [(7,), (1, 7), (6, 1), (6, 7), (3, 1, 7), (1, 6, 7), (2, 1, 6, 7), (2, 3, 6, 7)])
def test_masks_broadcast_to_the_scores(rng, shape, size):
    Q, K, V = (rng.normal(size=(2, 3, *s)) for s in ((6, 4), (7, 4), (7, 5)))
    mask = rng.random(shape) < 0.5
    mask.flags.writeable = False
    want, _ = attend(size * Q, K, V, mask)
    np.testing.assert_allclose(efficient.online_attention(size * Q, K, V, mask, 3), want, atol=1e-12)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    "mask",
    [
        attention.causal_mask(40),
        efficient.window_mask(40, 2) | efficient.global_mask(40, [17]),
        efficient.block_mask(40, 8),
        efficient.strided_mask(40, 7, causal=True),
    ],
)
def test_sparse_masks_need_not_see_every_block(rng, mask, size):
    Q, K, V = rng.normal(size=(3, 40, 4))
    want, _ = attend(size * Q, K, V, mask)
    np.testing.assert_allclose(efficient.online_attention(size * Q, K, V, mask, 8), want, atol=1e-12)


def test_hidden_keys_and_values_may_be_large(rng):
    """Padding may hold anything finite."""
    Q, K, V = (rng.normal(size=s).astype(np.float32) for s in ((5, 4), (6, 4), (6, 3)))
    mask = attention.padding_mask(4, 6)
    want = efficient.online_attention(Q, K[:4], V[:4], block_size=3)
    K[4:], V[4:] = 1e38, -1e38
    np.testing.assert_allclose(efficient.online_attention(Q, K, V, mask, 3), want, rtol=1e-5)


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_length_not_with_its_square(rng, monkeypatch):
    monkeypatch.undo()  # blocks as they are
    T = 4096
    Q, K, V = (rng.normal(size=(1, T, 64)).astype(np.float32) for _ in range(3))
    plain = peak(lambda: attend(Q, K, V))
    assert plain > 2 * T * T * 4
    mask = np.broadcast_to(True, (T, T))
    for other in (
        lambda: efficient.online_attention(Q, K, V),
        lambda: efficient.online_attention(20 * Q[:, :1024], K, V, mask[:1024]),
        lambda: efficient.linear_attention(Q, K, V, causal=True),
    ):
        assert peak(other) <= 0.05 * plain


@pytest.mark.parametrize("large", [dict(Q=1e30, K=1e30), dict(V=3e38)])
@pytest.mark.parametrize("options", [None, {"causal": False}, {"causal": True}])
def test_an_output_beyond_the_dtype_is_refused_not_infinite(options, large):
    Q, K, V = (np.full((3, 4), large.get(name, 1), np.float32) for name in "QKV")
    with pytest.raises(ValueError, match="so large that the output overflows float32; scale down Q, K or V"):
        efficient.online_attention(Q, K, V) if options is None else efficient.linear_attention(Q, K, V, **options)
