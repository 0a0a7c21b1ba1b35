"""What the maths promises of attention, plain, as in training and online: random shapes, dtypes, sizes and masks."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, efficient, scores
from lesson_utils.maths.attention import scaled_dot_product_attention as attend

FLOATS = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def in_training(Q, K, V, mask=None):
    """With a mask of numbers, as layers hand it on."""
    return attention.attention_forward(Q, K, V, None if mask is None else np.asarray(mask).astype(Q.dtype))[0]


WAYS = {"plain": lambda *given: attend(*given)[0], "in training": in_training}
WAYS |= {
    f"online, in blocks of {n}": lambda Q, K, V, mask=None, n=n: efficient.online_attention(Q, K, V, mask, n)
    for n in (1, 2, 3, 10)
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@st.composite
def cases(draw, dtypes=st.sampled_from(FLOATS)):
    """Q, K, V and a mask (or None); sizes differ and may be 1, as may leading axes, where an array is shared.

    The mask hides single keys, whole rows and a stretch of keys.
    """
    rng, dtype = draw(seeds), draw(dtypes)
    leading = draw(st.sampled_from(((), (2,), (3, 2), (1,))))
    T_q, T_k, d_k, d_v = (draw(st.integers(1, n)) for n in (6, 9, 6, 6))
    shared = [tuple(draw(st.sampled_from((1, n))) for n in leading) for _ in range(3)]
    sizes = zip(shared, ((T_q, d_k), (T_k, d_k), (T_k, d_v)), strict=True)
    Q, K, V = (rng.normal(size=(*own, *size)).astype(dtype) for own, size in sizes)
    if not draw(st.booleans()):
        return Q, K, V, None
    mask = rng.random((*np.broadcast_shapes(*shared[:2]), T_q, T_k)) < rng.choice([0.2, 0.6, 1.0])
    mask &= rng.random((*mask.shape[:-1], 1)) < 0.8
    start = rng.integers(T_k + 1)
    mask[..., start : start + T_k // 2] = False
    return Q, K, V, mask


def by_loops(Q, K, V, mask=None):
    """Attention as on paper: one query, one key, one number at a time."""
    leading = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (np.broadcast_to(x.astype(float), (*leading, *x.shape[-2:])) for x in (Q, K, V))
    output, weights = np.zeros((*Q.shape[:-1], V.shape[-1])), np.zeros((*Q.shape[:-1], K.shape[-2]))
    mask = np.broadcast_to(True if mask is None else mask, weights.shape)
    for i in np.ndindex(Q.shape[:-1]):
        visible = [j for j in range(K.shape[-2]) if mask[(*i, j)]]
        dots = [sum(q * k for q, k in zip(Q[i], K[(*i[:-1], j)], strict=True)) for j in visible]
        powers = [math.exp((dot - max(dots)) / math.sqrt(Q.shape[-1])) for dot in dots]
        for j, power in zip(visible, powers, strict=True):
            weights[(*i, j)] = power / sum(powers)
            output[i] += weights[(*i, j)] * V[(*i[:-1], j)]
    return output, weights


@given(cases(), st.sampled_from((0.1, 1, 30)), st.none() | st.floats(-3, 3))
def test_every_way_is_what_the_loops_say(case, size, scale):
    """Online, small scores need no maximum; large ones (size 30) do."""
    Q, K, V, mask = case
    Q = (size * Q).astype(Q.dtype)
    want, want_weights = by_loops(Q, K, V, mask)
    tolerance = max(1, size) * TOLERANCE[Q.dtype.type]
    for way in WAYS.values():
        got = way(Q, K, V, mask)
        assert got.dtype == Q.dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        blind = False if mask is None else ~mask.any(axis=-1)  # queries that may attend to nothing
        assert (got[np.broadcast_to(blind, got.shape[:-1])] == 0).all()
    _, weights = attend(Q, K, V, mask)
    np.testing.assert_allclose(np.broadcast_to(weights, want_weights.shape), want_weights, atol=tolerance)
    assert mask is None or (weights[~mask] == 0).all()
    if scale is not None:
        scaled = by_loops(Q.astype(float) * scale * math.sqrt(Q.shape[-1]), K, V, mask)[0]
        for got in (attend(Q, K, V, mask, scale)[0], attention.attention_forward(Q, K, V, mask, scale)[0]):
            np.testing.assert_allclose(got, scaled, rtol=5 * tolerance, atol=5 * tolerance)


@every_way
@given(case=cases(st.just(np.float64)), rng=seeds)
def test_queries_may_change_places_and_pairs_of_key_and_value_too(way, case, rng):
    Q, K, V, mask = case
    p, r = rng.permutation(Q.shape[-2]), rng.permutation(K.shape[-2])
    shuffled = None if mask is None else mask[..., p, :][..., r]
    output = way(Q[..., p, :], K[..., r, :], V[..., r, :], shuffled)
    np.testing.assert_allclose(output, way(Q, K, V, mask)[..., p, :], atol=1e-12)


@every_way
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_later_token_changes_nothing_before_it(rng, way, dtype):
    Q, K, V = rng.normal(size=(3, 2, 7, 4)).astype(dtype)
    output = way(Q, K, V, attention.causal_mask(7))
    for t in range(7):
        changed = [x.copy() for x in (Q, K, V)]
        for x in changed:
            x[:, t] += 5
        output_ = way(*changed, attention.causal_mask(7))
        exactly = 0 if way is WAYS["plain"] else TOLERANCE[dtype]
        np.testing.assert_allclose(output_[:, :t], output[:, :t], rtol=exactly, atol=exactly)
        assert (output_[:, t] != output[:, t]).any()


@every_way
@given(case=cases(), rng=seeds, slope=st.sampled_from((1e4, -1e4)))
def test_rising_falling_and_extreme_scores_are_exact(way, case, rng, slope):
    """Scores of about ±1e4 that rise or fall from key to key: no NaN, no warning, the same output."""
    Q, K, V, mask = case
    Q, K = 1 + 0 * Q, (slope * np.sort(rng.normal(size=K.shape), axis=-2)).astype(K.dtype)
    want, _ = by_loops(Q, K, V, mask)
    output = way(Q, K, V, mask)
    np.testing.assert_allclose(
        output, np.broadcast_to(want, output.shape), atol=0.02 if Q.dtype == np.float32 else 1e-9
    )


@every_way
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e4), (np.float64, 1e150)])
def test_large_scores_values_and_what_is_hidden_neither_overflow_nor_warn(rng, way, dtype, size):
    Q, K, V = rng.normal(size=(3, 5, 64)).astype(dtype)
    assert np.isfinite(way((size * Q).astype(dtype), K, V)).all()
    Q, K = np.ones((5, 1), dtype), np.linspace(-50, 50, 5, dtype=dtype)[:, None]
    np.testing.assert_allclose(way(Q, K, V * dtype(1e20)), attend(Q, K, V)[0] * dtype(1e20), rtol=1e-6)
    K, V, mask = rng.normal(size=(6, 1)).astype(dtype), rng.normal(size=(6, 3)).astype(dtype), [True] * 4 + [False] * 2
    want = way(Q, K[:4], V[:4])
    K[4:], V[4:] = 1e38, -1e38  # padding may hold anything finite
    np.testing.assert_allclose(way(Q, K, V, np.array([mask])), want, rtol=1e-5)


@every_way
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("shape", [(7,), (1, 7), (6, 1), (6, 7), (3, 1, 7), (1, 6, 7), (2, 1, 6, 7), (2, 3, 6, 7)])
def test_masks_broadcast_to_the_scores(rng, way, shape, size):
    Q, K, V = (rng.normal(size=(2, 3, *s)) for s in ((6, 4), (7, 4), (7, 5)))
    mask = rng.random(shape) < 0.5
    mask.flags.writeable = False
    want, _ = attend(size * Q, K, V, np.broadcast_to(mask, (2, 3, 6, 7)).copy())
    np.testing.assert_allclose(way(size * Q, K, V, mask), want, atol=1e-12)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    "mask",
    [
        attention.causal_mask(2500),
        efficient.window_mask(2500, 2) | efficient.global_mask(2500, [17]),
        efficient.block_mask(2500, 500),
        efficient.strided_mask(2500, 700, causal=True),
    ],
)
def test_online_many_queries_and_sparse_masks_need_not_see_every_block(rng, mask, size):
    Q, K, V = rng.normal(size=(3, 2500, 4))
    want, _ = attend(size * Q, K, V, mask)
    np.testing.assert_allclose(efficient.online_attention(size * Q, K, V, mask), want, atol=1e-11)


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_length_not_with_its_square(rng):
    T = 4096
    Q, K, V = (rng.normal(size=(1, T, 64)).astype(np.float32) for _ in range(3))
    plain, mask = peak(lambda: attend(Q, K, V)), np.broadcast_to(True, (T, T))
    assert plain > 2 * T * T * 4
    for other in (
        lambda: efficient.online_attention(Q, K, V),
        lambda: efficient.online_attention(20 * Q[:, :1024], K, V, mask[:1024]),
        lambda: efficient.linear_attention(Q, K, V, causal=True),
    ):
        assert peak(other) <= 0.05 * plain


# --- Masks ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.integers(0, 9))
def test_causal_mask_lets_each_query_see_what_is_not_later(T_q, extra):
    T_k = T_q + extra
    mask = attention.causal_mask(T_q, T_k)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, attention.causal_mask(T_k)[extra:])
    np.testing.assert_array_equal(
        attention.causal_mask(T_q), [[j <= i for j in range(T_q)] for i in range(T_q)] or np.ones((0, 0))
    )


def test_padding_mask_hides_what_lies_behind_each_end():
    mask = attention.padding_mask(np.array([3, 0, 4], np.uint8), 4)
    np.testing.assert_array_equal(mask, [[[1, 1, 1, 0]], [[0, 0, 0, 0]], [[1, 1, 1, 1]]])
    assert mask.dtype == bool
    assert attention.padding_mask(2, 3).tolist() == [[True, True, False]]
    assert (attention.causal_mask(4) & mask).shape == (3, 4, 4)


# --- Scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", scores.SCORES)
def test_scores_are_what_the_loops_say(rng, kind):
    q, k, same = (rng.normal(size=shape) for shape in ((3, 5), (4, 2), (4, 5)))
    W, W_q, W_k, v = (rng.normal(size=shape) for shape in ((5, 2), (5, 6), (2, 6), (6,)))
    stacked = np.concatenate([W_q, W_k])
    keys, params, score = {
        "dot": (same, (), lambda a, b: a @ b),
        "general": (k, (W,), lambda a, b: a @ W @ b),
        "additive": (k, (W_q, W_k, v), lambda a, b: v @ np.tanh(a @ W_q + b @ W_k)),
        "concat": (k, (stacked, v), lambda a, b: v @ np.tanh(np.concatenate([a, b]) @ stacked)),
    }[kind]
    got = getattr(attention, f"{kind}_score")(q, keys, *params)
    np.testing.assert_allclose(got, [[score(a, b) for b in keys] for a in q], atol=1e-12)
    np.testing.assert_array_equal(scores.score_forward(kind, q, keys, params)[0], got)


# --- Heads ------------------------------------------------------------------------------------------------------------


def test_heads_are_split_so_that_every_entry_keeps_its_token():
    """Each entry names itself: 100 · token + column."""
    x = 100 * np.arange(3)[:, None] + np.arange(8.0)
    heads = attention.split_heads(x, 4)
    assert heads.shape == (4, 3, 2)
    np.testing.assert_array_equal(attention.repeat_heads(heads, 8), heads[[0, 0, 1, 1, 2, 2, 3, 3]])
    for head, token, column in np.ndindex(heads.shape):
        assert heads[head, token, column] == 100 * token + 2 * head + column
    np.testing.assert_array_equal(attention.merge_heads(heads), x)


HEADS_MASKS = {  # a mask of this shape is for each head this one
    (6,): (1, 1, 1, 1, 6),
    (5, 6): (1, 1, 1, 5, 6),
    (3, 5, 6): (1, 3, 1, 5, 6),
    (2, 3, 5, 6): (2, 3, 1, 5, 6),
    (2, 1, 5, 6): (2, 1, 1, 5, 6),
    (2, 3, 1, 6): (2, 3, 1, 1, 6),  # padding_mask's
    (1, 1, 4, 5, 6): (1, 1, 4, 5, 6),
    (2, 3, 4, 5, 6): (2, 3, 4, 5, 6),
}


@pytest.mark.parametrize(("shape", "for_each_head"), HEADS_MASKS.items())
def test_multi_head_is_a_loop_over_slices_of_the_projections_and_masks_serve_all_heads_or_each_its_own(
    rng, shape, for_each_head
):
    T_q, T_k, d_q, d_kv, d_k, d_v, d_out, num_heads = 5, 6, 7, 8, 9, 10, 11, 4
    x_q, x_kv = rng.normal(size=(2, 3, T_q, d_q)), rng.normal(size=(2, 3, T_k, d_kv))
    sizes = ((d_q, num_heads * d_k), (d_kv, num_heads * d_k), (d_kv, num_heads * d_v), (num_heads * d_v, d_out))
    W_Q, W_K, W_V, W_O = (rng.normal(size=size) for size in sizes)
    mask = rng.random(shape) < 0.6
    own = np.broadcast_to(mask.reshape(for_each_head), (2, 3, num_heads, T_q, T_k))
    output, weights = attention.multi_head_attention(x_q, x_kv, W_Q, W_K, W_V, W_O, num_heads, mask)
    heads = []
    for h in range(num_heads):
        key, value = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        head, own_weights = attend(x_q @ W_Q[:, key], x_kv @ W_K[:, key], x_kv @ W_V[:, value], own[:, :, h])
        np.testing.assert_allclose(weights[:, :, h], own_weights, atol=1e-12)
        heads.append(head)
    np.testing.assert_allclose(output, np.concatenate(heads, axis=-1) @ W_O, atol=1e-10)
