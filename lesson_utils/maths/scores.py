"""The four scores of recurrent decoders, which say how well a query fits a key; and a look back with each of them.

Learners call `additive_score(queries, keys, W_q, W_k, v)`, which `attention` offers, too. Training calls the pairs:
`score_forward(kind, queries, keys, params) -> scores, cache`, `score_backward(dscores, cache) -> gradients`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import (
    Array,
    Mask,
    as_choice,
    as_floats,
    check_matrix,
    check_real,
    same_leading,
    same_width,
)
from lesson_utils.maths.ops import linear_backward, linear_forward, softmax_backward, softmax_forward

SCORES = {"additive": 3, "dot": 0, "general": 1, "concat": 2}  # name -> number of parameters


def dot_score(queries: ArrayLike, keys: ArrayLike) -> Array:
    """Score each pair by q · k. There are no parameters; queries and keys must share their width.

    Args:
        queries: (..., T_q, d).
        keys: (..., T_k, d).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Luong et al. (2015), section 3.1, "dot".
    """
    queries, keys = as_floats(queries=queries, keys=keys)
    return score_forward("dot", queries, keys)[0]


def general_score(queries: ArrayLike, keys: ArrayLike, W: ArrayLike) -> Array:
    """Score each pair by qᵀ W k: a learned dot product, which also joins different widths.

    Args:
        queries: (..., T_q, d_q).
        keys: (..., T_k, d_k).
        W: (d_q, d_k).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Luong et al. (2015), section 3.1, "general".
    """
    queries, keys, W = as_floats(queries=queries, keys=keys, W=W)
    return score_forward("general", queries, keys, (W,))[0]


def additive_score(queries: ArrayLike, keys: ArrayLike, W_q: ArrayLike, W_k: ArrayLike, v: ArrayLike) -> Array:
    """Score each pair by v · tanh(q W_q + k W_k): a small network looks at each pair.

    Args:
        queries: (..., T_q, d_q).
        keys: (..., T_k, d_k).
        W_q: (d_q, d_a).
        W_k: (d_k, d_a).
        v: (d_a,).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Bahdanau et al. (2015), appendix A.1.2.
    """
    queries, keys, *params = as_floats(queries=queries, keys=keys, W_q=W_q, W_k=W_k, v=v)
    return score_forward("additive", queries, keys, params)[0]


def concat_score(queries: ArrayLike, keys: ArrayLike, W: ArrayLike, v: ArrayLike) -> Array:
    """Score each pair by v · tanh([q; k] W): the additive score with its two matrices stacked into one.

    Args:
        queries: (..., T_q, d_q).
        keys: (..., T_k, d_k).
        W: (d_q + d_k, d_a).
        v: (d_a,).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Luong et al. (2015), section 3.1, "concat".
    """
    queries, keys, *params = as_floats(queries=queries, keys=keys, W=W, v=v)
    return score_forward("concat", queries, keys, params)[0]


class DotCache(NamedTuple):
    queries: Array
    keys: Array


class GeneralCache(NamedTuple):
    keys: Array
    turned: Array  # q W, (..., T_q, d_k)
    product: tuple[Array, Array]  # the cache of q W


class PairCache(NamedTuple):
    hidden: Array  # tanh(q + k) of all pairs, (..., T_q, T_k, d_a)
    v: Array


class AdditiveCache(NamedTuple):
    kind: str  # "additive" or "concat"
    pairs: PairCache
    query_product: tuple[Array, Array]  # the cache of q W_q
    key_product: tuple[Array, Array]  # the cache of k W_k


ScoreCache = DotCache | GeneralCache | AdditiveCache


def score_forward(kind: str, queries: Array, keys: Array, params: Sequence[Array] = ()) -> tuple[Array, ScoreCache]:
    """Score how well each query fits each key.

    Args:
        kind: "additive" (params W_q, W_k, v), "dot" (none), "general" (W) or "concat" (W, v), as above.
        queries: (..., T_q, d_q).
        keys: (..., T_k, d_k).

    Returns:
        scores, (..., T_q, T_k), and the cache.

    Raises:
        ValueError: the kind is not known, or shapes do not fit.
    """
    _check_score(kind, queries, keys, params)
    if kind == "dot":
        return queries @ _T(keys), DotCache(queries, keys)
    if kind == "general":
        turned, product = linear_forward(queries, params[0])  # (..., T_q, d_k)
        return turned @ _T(keys), GeneralCache(keys, turned, product)
    # [q; k] W = q W_top + k W_bottom: the same numbers, without T_q · T_k copies of q and k.
    d_q = queries.shape[-1]
    W_q, W_k, v = params if kind == "additive" else (params[0][:d_q], params[0][d_q:], params[1])
    from_queries, query_product = linear_forward(queries, W_q)  # (..., T_q, d_a)
    from_keys, key_product = linear_forward(keys, W_k)  # (..., T_k, d_a)
    scores, pairs = added_forward(from_queries, from_keys, v)
    return scores, AdditiveCache(kind, pairs, query_product, key_product)


def score_backward(dscores: Array, cache: ScoreCache) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return dqueries, dkeys, and the gradients of the parameters in order."""
    if isinstance(cache, DotCache):
        return dscores @ cache.keys, _T(dscores) @ cache.queries, ()
    if isinstance(cache, GeneralCache):
        dqueries, dW, _ = linear_backward(dscores @ cache.keys, cache.product)
        return dqueries, _T(dscores) @ cache.turned, (dW,)
    dfrom_queries, dfrom_keys, dv = added_backward(dscores, cache.pairs)
    dqueries, dW_q, _ = linear_backward(dfrom_queries, cache.query_product)
    dkeys, dW_k, _ = linear_backward(dfrom_keys, cache.key_product)
    return dqueries, dkeys, (dW_q, dW_k, dv) if cache.kind == "additive" else (np.concatenate([dW_q, dW_k]), dv)


def added_forward(from_queries: Array, from_keys: Array, v: Array) -> tuple[Array, PairCache]:
    """Return v · tanh(q + k) for all pairs of (..., T_q, d_a) and (..., T_k, d_a): scores, (..., T_q, T_k)."""
    hidden = np.tanh(from_queries[..., :, None, :] + from_keys[..., None, :, :])  # (..., T_q, T_k, d_a)
    return hidden @ v, PairCache(hidden, v)


def added_backward(dscores: Array, cache: PairCache) -> tuple[Array, Array, Array]:
    """Return dfrom_queries, dfrom_keys, dv."""
    hidden, v = cache
    dsum = 1 - hidden * hidden  # (..., T_q, T_k, d_a)
    dfrom_queries = (dscores[..., None, :] @ dsum)[..., 0, :] * v  # (..., T_q, d_a)
    dsum *= dscores[..., None]
    return dfrom_queries, dsum.sum(axis=-3) * v, dscores.reshape(-1) @ hidden.reshape(-1, len(v))


class LookBack(NamedTuple):
    """The cache of a look back; `weights` is the alignment, (B, T, S)."""

    keys: Array
    weights: Array
    score: ScoreCache


def attend_forward(
    kind: str, queries: Array, keys: Array, params: Sequence[Array] = (), mask: Mask | None = None
) -> tuple[tuple[Array, Array], LookBack]:
    """Look back with each query: c_t = Σ_s α_ts h_s, with weights α_t = softmax(score(q_t, h_s)).

    All queries look at once, as in Luong et al. (2015), whose query is the decoder's current state. Where the query is
    the state *before* the step, `models.decoders.Bahdanau` looks with one query after another.

    Args:
        kind: the score, see `score_forward`.
        queries: (B, T, d_q).
        keys: h_s, (B, S, d_k); they are the values as well.
        params: the parameters of the score.
        mask: True = may attend, (B, S); False at padding.

    Returns:
        context, (B, T, d_k), and weights, (B, T, S); then the cache.

    Raises:
        ValueError: the kind is not known, or shapes do not fit.

    Source: Luong et al. (2015), section 3.1, equations 7 and 8.
    """
    scores, score = score_forward(kind, queries, keys, params)
    check_real(mask, keys.shape[:2])
    weights, _ = softmax_forward(scores, None if mask is None else mask[:, None])  # (B, T, S)
    return (weights @ keys, weights), LookBack(keys, weights, score)


def attend_backward(dcontext: Array, cache: LookBack) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return dqueries, dkeys, and the gradients of the score's parameters in order, from the context's gradient."""
    keys, weights, score = cache
    dscores = softmax_backward(dcontext @ _T(keys), weights)  # (B, T, S)
    dqueries, dkeys, grads = score_backward(dscores, score)
    dkeys += _T(weights) @ dcontext  # as values
    return dqueries, dkeys, grads


def _T(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _check_score(kind: str, queries: Array, keys: Array, params: Sequence[Array]) -> None:
    as_choice(kind, "kind", SCORES)
    if len(params) != SCORES[kind]:
        raise ValueError(f"params has {len(params)} arrays; the {kind} score needs {SCORES[kind]}")
    same_leading(queries=queries, keys=keys)
    d_q, d_k = queries.shape[-1], keys.shape[-1]
    if kind == "dot":
        same_width(queries=queries, keys=keys)
    elif kind == "general":
        check_matrix("W", params[0], (d_q, d_k))
    else:
        *matrices, v = params
        if v.ndim != 1:
            raise ValueError(f"v has shape {v.shape}; expected one axis, (d_a,)")
        names = {"W_q": d_q, "W_k": d_k} if kind == "additive" else {"W": d_q + d_k}
        for W, (name, width) in zip(matrices, names.items(), strict=True):
            check_matrix(name, W, (width, len(v)))
