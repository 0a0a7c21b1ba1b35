"""Attention: masks, scaled dot-product attention, heads; and the scores of recurrent decoders, from `scores`.

Shapes read from the outside in: (B, h, T, d), with any leading axes in place of B and h. Masks are boolean and
**True means "may attend"**. Weights have queries in rows and keys in columns: (..., T_q, T_k), rows sum to 1.
"""

import math
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import (
    Array,
    Mask,
    as_array,
    as_float,
    as_floats,
    as_heads,
    as_mask,
    as_number,
    as_qkv,
    as_size,
    check_last_queries,
    check_matrix,
    same_leading,
)
from lesson_utils.maths.ops import softmax, softmax_backward, softmax_forward
from lesson_utils.maths.scores import (  # offered here, too  # noqa: F401
    additive_score,
    attend_forward,
    concat_score,
    dot_score,
    general_score,
)


def causal_mask(T_q: int, T_k: int | None = None) -> Mask:
    """Let each position attend to itself and to all positions before it.

    With `T_k` > `T_q` the queries are the *last* T_q of the T_k positions, as in decoding with a cache.

    Returns:
        mask, shape (T_q, T_k), True = may attend; entry (i, j) is True when j ≤ i + T_k − T_q.

    Raises:
        ValueError: T_q > T_k, so that the first queries would come before every key.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    T_q = as_size(T_q, "T_q", minimum=0)
    T_k = T_q if T_k is None else as_size(T_k, "T_k", minimum=0)
    check_last_queries(T_q, T_k)
    return np.tri(T_q, T_k, k=T_k - T_q, dtype=bool)


def padding_mask(lengths: ArrayLike, T: int) -> Mask:
    """Hide the padding behind each sequence's end from all queries.

    Args:
        lengths: the number of real positions among the T, integers 0…T, shape (...).
        T: the padded length.

    Returns:
        mask, shape (..., 1, T), True = may attend. The 1 stands for the queries, so that
        `causal_mask(T) & padding_mask(lengths, T)`, shape (..., T, T), combines both.

    Raises:
        ValueError: lengths are not integers in 0…T.
    """
    T = as_size(T, "T", minimum=0)
    lengths = as_array(lengths, "lengths")
    if lengths.dtype.kind not in "iu":
        raise ValueError(f"lengths has dtype {lengths.dtype}; expected integers")
    if ((lengths < 0) | (lengths > T)).any():
        raise ValueError(f"lengths must lie in 0…T={T}; got values from {lengths.min()} to {lengths.max()}")
    return np.arange(T) < lengths[..., None, None]  # (..., 1, T)


def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: ArrayLike | None = None, scale: float | None = None
) -> tuple[Array, Array]:
    """Compute softmax(Q Kᵀ · scale) V: for each query, a weighted average of the values.

    Args:
        Q: queries, (..., T_q, d_k).
        K: keys, (..., T_k, d_k), with at least one key.
        V: values, (..., T_k, d_v).
        mask: boolean, True = may attend, broadcastable to (..., T_q, T_k). A query that may attend to nothing gets
            zero weights and a zero output.
        scale: the factor on the scores. Default: 1/√d_k.

    Leading axes must be equal, or 1 where an array is shared.

    Returns:
        output, shape (..., T_q, d_v), and weights, shape (..., T_q, T_k), in the dtype of Q, K and V.

    Raises:
        ValueError: shapes, dtypes or the mask do not fit, or the input holds NaN or infinite values.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    Q, K, V = as_qkv(Q, K, V)
    scale = 1 / math.sqrt(Q.shape[-1]) if scale is None else as_number(scale, "scale")

    scores = Q @ K.swapaxes(-1, -2) * scale  # (..., T_q, T_k)
    if mask is not None:
        scores = np.where(as_mask(mask, scores.shape), scores, -np.inf)
    weights = softmax(scores)  # each row sums to 1
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


class AttentionCache(NamedTuple):
    """The cache of attention; `weights` is the attention map, (..., T_q, T_k)."""

    Q: Array
    K: Array
    V: Array
    weights: Array
    scale: float


def attention_forward(
    Q: Array,
    K: Array,
    V: Array,
    mask: Array | Mask | None = None,
    scale: float | None = None,
    bias: Array | None = None,
) -> tuple[Array, AttentionCache]:
    """Compute `scaled_dot_product_attention` for training: the same numbers, no checks, and a cache.

    Args:
        Q, K, V, mask, scale: as in `scaled_dot_product_attention`.
        bias: added to the scaled scores, broadcastable to (..., T_q, T_k).
    """
    scale = 1 / math.sqrt(Q.shape[-1]) if scale is None else scale
    scores = Q @ K.swapaxes(-1, -2)  # (..., T_q, T_k)
    scores *= scale
    if bias is not None:
        scores += bias
    weights, _ = softmax_forward(scores, mask, out=scores)
    return weights @ V, AttentionCache(Q, K, V, weights, scale)


def attention_backward(doutput: Array, cache: AttentionCache) -> tuple[Array, Array, Array]:
    """Return dQ, dK, dV.

    The mask is not needed here: where a weight is 0, softmax lets no gradient through.
    """
    Q, K, V, weights, scale = cache
    dweights = doutput @ V.swapaxes(-1, -2)  # (..., T_q, T_k)
    dscores = softmax_backward(dweights, weights, out=dweights)
    dscores *= scale
    return dscores @ K, dscores.swapaxes(-1, -2) @ Q, weights.swapaxes(-1, -2) @ doutput


def split_heads(x: ArrayLike, num_heads: SupportsIndex) -> Array:
    """Split (..., T, d_model) → (..., h, T, d_k), d_k = d_model / h: head i gets columns i·d_k … (i+1)·d_k − 1.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    x = as_float(x, "x", min_ndim=2)
    *leading, T, d_model = x.shape
    num_heads = as_heads(num_heads, d_model, "d_model")
    return x.reshape(*leading, T, num_heads, d_model // num_heads).swapaxes(-2, -3)  # (..., h, T, d_k)


def merge_heads(x: ArrayLike) -> Array:
    """Merge (..., h, T, d_k) → (..., T, h·d_k), which undoes `split_heads`."""
    x = as_float(x, "x", min_ndim=3)
    *leading, num_heads, T, d_k = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, num_heads * d_k)  # (..., T, d_model)


def repeat_heads(x: ArrayLike, num_heads: SupportsIndex) -> Array:
    """Repeat (..., h_kv, T, d) → (..., h, T, d): a head of keys or values serves h / h_kv heads of queries in a row.

    Raises:
        ValueError: h_kv does not divide h.

    Source: Ainslie et al. (2023), section 2.2, "grouped-query attention".
    """
    x = as_float(x, "x", min_ndim=3)
    num_kv_heads = as_heads(x.shape[-3], as_size(num_heads, "num_heads"), "num_heads", "num_kv_heads")
    times = as_size(num_heads, "num_heads") // num_kv_heads
    return x if times == 1 else np.repeat(x, times, axis=-3)


def repeat_heads_backward(dy: Array, num_kv_heads: int) -> Array:
    """Add up the gradients of all heads that share keys or values: (..., h, T, d) → (..., h_kv, T, d)."""
    *leading, h, T, d = dy.shape
    return dy if h == num_kv_heads else dy.reshape(*leading, num_kv_heads, h // num_kv_heads, T, d).sum(axis=-3)


def multi_head_attention(
    x_q: ArrayLike,
    x_kv: ArrayLike,
    W_Q: ArrayLike,
    W_K: ArrayLike,
    W_V: ArrayLike,
    W_O: ArrayLike,
    num_heads: SupportsIndex,
    mask: ArrayLike | None = None,
    num_kv_heads: SupportsIndex | None = None,
) -> tuple[Array, Array]:
    """Run several small attentions side by side and join their outputs: Concat(head_1 … head_h) W_O.

    Args:
        x_q: the source of the queries, (..., T_q, d_model).
        x_kv: the source of keys and values, (..., T_k, d_model). For self-attention it is `x_q` again.
        W_Q: (d_model, h·d_k).
        W_K: (d_model, h_kv·d_k).
        W_V: (d_model, h_kv·d_v).
        W_O: (h·d_v, d_out), mostly d_out = d_model.
        num_heads: h, a divisor of the projections' widths.
        mask: boolean, True = may attend; (..., T_q, T_k) for all heads, or (..., h, T_q, T_k) for each head its own.
        num_kv_heads: h_kv, a divisor of h, if several heads share keys and values; see `repeat_heads`. Default: h.

    Returns:
        output, shape (..., T_q, d_out), and weights, shape (..., h, T_q, T_k).

    Raises:
        ValueError: shapes, dtypes, the head count or the mask do not fit.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    x_q, x_kv, W_Q, W_K, W_V, W_O = as_floats(x_q=x_q, x_kv=x_kv, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O)
    same_leading(x_q=x_q, x_kv=x_kv)
    check_matrix("W_Q", W_Q, (x_q.shape[-1], None))
    h = as_heads(num_heads, W_Q.shape[-1], "h·d_k")
    h_kv = h if num_kv_heads is None else as_heads(num_kv_heads, h, "num_heads", "num_kv_heads")
    check_matrix("W_K", W_K, (x_kv.shape[-1], W_Q.shape[-1] // h * h_kv))
    check_matrix("W_V", W_V, (x_kv.shape[-1], None))
    as_heads(h_kv, W_V.shape[-1], "h·d_v")
    check_matrix("W_O", W_O, (W_V.shape[-1] // h_kv * h, None))
    if mask is not None:
        mask = as_array(mask, "mask")
        if 2 < mask.ndim <= x_q.ndim:  # no axis for the heads yet: the same mask for all of them
            mask = mask[..., None, :, :]  # (..., 1, T_q, T_k)

    Q = split_heads(x_q @ W_Q, h)  # (..., h, T_q, d_k)
    K = repeat_heads(split_heads(x_kv @ W_K, h_kv), h)  # (..., h, T_k, d_k)
    V = repeat_heads(split_heads(x_kv @ W_V, h_kv), h)  # (..., h, T_k, d_v)
    heads, weights = scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(heads) @ W_O, weights  # (..., T_q, d_out), (..., h, T_q, T_k)
