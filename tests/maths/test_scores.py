"""The four scores are their formulas, a look back is a weighted sum, and every gradient is right."""

import numpy as np
import pytest

from lesson_utils.maths import attention, scores
from lesson_utils.maths.gradcheck import check_op

every_score = pytest.mark.parametrize("kind", scores.SCORES)


def make_score(kind, d_q, d_k, d_a, rng):
    shapes = {"dot": [], "general": [(d_q, d_k)], "additive": [(d_q, d_a), (d_k, d_a), (d_a,)]}
    shapes["concat"] = [(d_q + d_k, d_a), (d_a,)]
    return [rng.normal(size=shape) for shape in shapes[kind]]


@every_score
def test_scores_are_those_of_attention(rng, kind):
    B, T, S, d_q, d_k = 2, 3, 4, 5, 5 if kind == "dot" else 6
    queries, keys = rng.normal(size=(B, T, d_q)), rng.normal(size=(B, S, d_k))
    params = make_score(kind, d_q, d_k, 7, rng)
    got, _ = scores.score_forward(kind, queries, keys, params)
    np.testing.assert_allclose(got, getattr(attention, f"{kind}_score")(queries, keys, *params), atol=1e-12)


@every_score
@pytest.mark.parametrize("lengths", [None, [4, 2, 0]])
def test_a_look_back_is_a_weighted_sum_with_the_right_gradients(rng, kind, lengths):
    B, T, S, d_q, d_k = 3, 2, 4, 5, 5 if kind == "dot" else 6
    mask = None if lengths is None else np.arange(S) < np.array(lengths)[:, None]
    queries, keys = rng.normal(size=(B, T, d_q)), rng.normal(size=(B, S, d_k))
    params = make_score(kind, d_q, d_k, 7, rng)
    (context, weights), _ = scores.attend_forward(kind, queries, keys, params, mask)
    np.testing.assert_allclose(context, np.einsum("bts,bsd->btd", weights, keys), atol=1e-12)
    sums = np.ones((B, T)) if mask is None else np.broadcast_to(mask.any(axis=1)[:, None], (B, T))
    np.testing.assert_allclose(weights.sum(axis=-1), sums, atol=1e-12)
    if mask is not None:
        assert (weights.swapaxes(1, 2)[~mask] == 0).all()

    def forward(queries, keys, *params):
        (context, _), cache = scores.attend_forward(kind, queries, keys, params, mask)
        return context, cache

    def backward(dcontext, cache):
        dqueries, dkeys, grads = scores.attend_backward(dcontext, cache)
        return dqueries, dkeys, *grads

    named = {f"param {i}": param for i, param in enumerate(params)}
    check_op(forward, backward, {"queries": queries, "keys": keys, **named}, rng)
