"""What the maths promises of attention, on random shapes, dtypes and masks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import attention, scores
from lesson_utils.maths.attention import scaled_dot_product_attention as attend

FLOATS = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def cases(draw, dtypes=st.just(np.float64), masked=st.booleans()):
    """Q, K, V and a mask (or None); sizes differ, leading axes are 0 to 2, a size may be 1."""
    rng, dtype = draw(seeds), draw(dtypes)
    leading = draw(st.sampled_from(((), (2,), (3, 2), (1,))))
    T_q, T_k, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(4))
    Q, K, V = (rng.normal(size=(*leading, *s)).astype(dtype) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    mask = rng.random((*leading, T_q, T_k)) < 0.6 if draw(masked) else None
    return Q, K, V, mask


def by_loops(Q, K, V, mask=None, scale=None):
    """Attention as on paper: one query, one key, one number at a time."""
    Q, K, V = (x.astype(float) for x in (Q, K, V))
    output, weights = np.zeros((*Q.shape[:-1], V.shape[-1])), np.zeros((*Q.shape[:-1], K.shape[-2]))
    for i in np.ndindex(Q.shape[:-1]):
        scale_ = 1 / math.sqrt(Q.shape[-1]) if scale is None else scale
        visible = [j for j in range(K.shape[-2]) if mask is None or mask[(*i, j)]]
        powers = {j: math.exp(scale_ * sum(q * k for q, k in zip(Q[i], K[(*i[:-1], j)], strict=True))) for j in visible}
        for j in visible:
            weights[(*i, j)] = powers[j] / sum(powers.values())
            output[i] += weights[(*i, j)] * V[(*i[:-1], j)]
    return output, weights


@given(cases(st.sampled_from(FLOATS)), st.none() | st.floats(-3, 3))
def test_it_is_what_the_loops_say(case, scale):
    tolerance = TOLERANCE[case[0].dtype.type]
    for got, want in zip(attend(*case, scale), by_loops(*case, scale), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@given(cases(masked=st.just(True)))
def test_hidden_keys_get_exactly_nothing_and_blind_queries_get_zeros(case):
    output, weights = attend(*case)
    mask = case[3]
    assert (weights[~mask] == 0).all()
    assert (output[~mask.any(axis=-1)] == 0).all()


@given(cases(), seeds)
def test_queries_may_change_places_and_pairs_of_key_and_value_too(case, rng):
    Q, K, V, mask = case
    output, weights = attend(Q, K, V, mask)
    p, r = rng.permutation(Q.shape[-2]), rng.permutation(K.shape[-2])
    shuffled = None if mask is None else mask[..., p, :][..., r]
    output_, weights_ = attend(Q[..., p, :], K[..., r, :], V[..., r, :], shuffled)
    np.testing.assert_allclose(output_, output[..., p, :], atol=1e-12)
    np.testing.assert_allclose(weights_, weights[..., p, :][..., r], atol=1e-12)


@pytest.mark.parametrize("T", [1, 2, 7])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_later_token_changes_nothing_before_it(rng, T, dtype):
    Q, K, V = rng.normal(size=(3, 2, T, 4)).astype(dtype)
    output, weights = attend(Q, K, V, attention.causal_mask(T))
    for t in range(T):
        changed = [x.copy() for x in (Q, K, V)]
        for x in changed:
            x[:, t] += 5
        output_, weights_ = attend(*changed, attention.causal_mask(T))
        np.testing.assert_array_equal(output_[:, :t], output[:, :t])
        np.testing.assert_array_equal(weights_[:, :t], weights[:, :t])
        assert (output_[:, t] != output[:, t]).any()


def test_extreme_scores_neither_overflow_nor_warn(rng):
    for dtype, size in ((np.float32, 1e4), (np.float64, 1e150)):
        Q, K, V = rng.normal(size=(3, 5, 64)).astype(dtype)
        output, weights = attend((size * Q).astype(dtype), K, V)
        assert np.isfinite(output).all()
        np.testing.assert_allclose(weights.sum(axis=-1, dtype=float), 1, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("shape", [(5,), (1, 5), (3, 1), (3, 5), (2, 1, 5), (1, 3, 5), (2, 3, 5)])
def test_masks_broadcast_to_the_scores(rng, shape):
    Q, K, V = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 6))
    mask = rng.random(shape) < 0.5
    want = attend(Q, K, V, np.broadcast_to(mask, (2, 3, 5)).copy())
    for got, expected in zip(attend(Q, K, V, mask), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_an_array_is_shared_where_its_leading_axis_is_1(rng):
    Q, K, V = rng.normal(size=(2, 7, 3, 4)), rng.normal(size=(2, 1, 5, 4)), rng.normal(size=(1, 1, 5, 6))
    output, weights = attend(Q, K, V)
    for b, h in np.ndindex(2, 7):
        got, _ = attend(Q[b, h], K[b, 0], V[0, 0])
        np.testing.assert_allclose(output[b, h], got, atol=1e-12)
    assert weights.shape == (2, 7, 3, 5)


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


@pytest.mark.parametrize("lengths", [None, [4, 2, 0]])
def test_a_look_back_is_a_sum_of_keys_with_softmaxed_scores_as_weights(rng, lengths):
    B, T, S, d = 3, 2, 4, 5
    mask = np.ones((B, S), bool) if lengths is None else np.arange(S) < np.array(lengths)[:, None]
    queries, keys = rng.normal(size=(B, T, d)), rng.normal(size=(B, S, d))
    (context, weights), _ = scores.attend_forward("dot", queries, keys, (), None if lengths is None else mask)
    want = attend(queries, keys, keys, mask[:, None], scale=1)
    np.testing.assert_allclose(context, want[0], atol=1e-12)
    np.testing.assert_allclose(weights, want[1], atol=1e-12)


# --- Heads ------------------------------------------------------------------------------------------------------------


def test_heads_are_split_so_that_every_entry_keeps_its_token():
    """Each entry names itself: 100 · token + column."""
    x = 100 * np.arange(3)[:, None] + np.arange(8.0)
    heads = attention.split_heads(x, 4)
    assert heads.shape == (4, 3, 2)
    for head, token, column in np.ndindex(heads.shape):
        assert heads[head, token, column] == 100 * token + 2 * head + column
    np.testing.assert_array_equal(attention.merge_heads(heads), x)


@pytest.mark.parametrize("num_heads", [1, 4])
@pytest.mark.parametrize("mask_shape", [None, (5, 6), (2, "heads", 5, 6)])
def test_multi_head_is_a_loop_over_slices_of_the_projections(rng, num_heads, mask_shape):
    T_q, T_k, d_q, d_kv, d_k, d_v, d_out = 5, 6, 7, 8, 9, 10, 11
    x_q, x_kv = rng.normal(size=(2, T_q, d_q)), rng.normal(size=(2, T_k, d_kv))
    sizes = ((d_q, num_heads * d_k), (d_kv, num_heads * d_k), (d_kv, num_heads * d_v), (num_heads * d_v, d_out))
    W_Q, W_K, W_V, W_O = (rng.normal(size=size) for size in sizes)
    mask = mask_shape and rng.random([num_heads if n == "heads" else n for n in mask_shape]) < 0.7
    output, weights = attention.multi_head_attention(x_q, x_kv, W_Q, W_K, W_V, W_O, num_heads, mask)
    heads = []
    for h in range(num_heads):
        key, value = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        own = mask if mask is None or mask.ndim == 2 else mask[:, h]
        head, own_weights = attend(x_q @ W_Q[:, key], x_kv @ W_K[:, key], x_kv @ W_V[:, value], own)
        np.testing.assert_allclose(weights[:, h], own_weights, atol=1e-12)
        heads.append(head)
    np.testing.assert_allclose(output, np.concatenate(heads, axis=-1) @ W_O, atol=1e-10)


@pytest.mark.parametrize(
    ("shape", "for_each_head"),
    [
        ((6,), (1, 1, 1, 1, 6)),
        ((5, 6), (1, 1, 1, 5, 6)),
        ((3, 5, 6), (1, 3, 1, 5, 6)),
        ((2, 3, 5, 6), (2, 3, 1, 5, 6)),
        ((2, 1, 5, 6), (2, 1, 1, 5, 6)),
        ((2, 3, 1, 6), (2, 3, 1, 1, 6)),  # padding_mask's
        ((1, 1, 4, 5, 6), (1, 1, 4, 5, 6)),
        ((2, 3, 4, 5, 6), (2, 3, 4, 5, 6)),
    ],
)
def test_masks_serve_all_heads_or_each_its_own(rng, shape, for_each_head):
    x_q, x_kv, W = rng.normal(size=(2, 3, 5, 8)), rng.normal(size=(2, 3, 6, 8)), rng.normal(size=(4, 8, 8))
    mask = rng.random(shape) < 0.6
    want = np.broadcast_to(mask.reshape(for_each_head), (2, 3, 4, 5, 6))
    _, weights = attention.multi_head_attention(x_q, x_kv, *W, 4, mask)
    np.testing.assert_array_equal(weights > 0, want)
