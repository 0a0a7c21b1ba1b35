"""Attention: masks, score functions, scaled dot-product attention, heads.

Shapes read from the outside in: (B, h, T, d), with any leading axes in place of B and h. Masks are boolean and
**True means "may attend"**. Weights have queries in rows and keys in columns: (..., T_q, T_k), rows sum to 1.
"""

import math
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils._checks import Array, Mask, as_float, as_floats, as_heads, as_size
from lesson_utils.ops import softmax, softmax_backward, softmax_forward


def causal_mask(T_q: int, T_k: int | None = None) -> Mask:
    """Each position may attend to itself and to what came before it.

    With `T_k` > `T_q` the queries are the *last* T_q of the T_k positions, as in decoding with a cache.

    Returns:
        mask, shape (T_q, T_k), True = may attend; entry (i, j) is True when j ≤ i + T_k − T_q.

    Raises:
        ValueError: T_q > T_k, so that the first queries would come before every key.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    T_q = as_size(T_q, "T_q", minimum=0)
    T_k = T_q if T_k is None else as_size(T_k, "T_k", minimum=0)
    if T_q > T_k:
        raise ValueError(f"T_q={T_q} is larger than T_k={T_k}; the queries must be the last T_q of the T_k positions")
    return np.tri(T_q, T_k, k=T_k - T_q, dtype=bool)


def padding_mask(lengths: ArrayLike, T: int) -> Mask:
    """Nobody may attend to the padding behind each sequence's end.

    Args:
        lengths: how many of the T positions are real, integers 0…T, shape (...).
        T: the padded length.

    Returns:
        mask, shape (..., 1, T), True = may attend. The 1 stands for the queries, so that
        `causal_mask(T) & padding_mask(lengths, T)`, shape (..., T, T), combines both.

    Raises:
        ValueError: lengths are not integers in 0…T.
    """
    T = as_size(T, "T", minimum=0)
    lengths = np.asarray(lengths)
    if lengths.dtype.kind not in "iu":
        raise ValueError(f"lengths has dtype {lengths.dtype}; expected integers")
    if ((lengths < 0) | (lengths > T)).any():
        raise ValueError(f"lengths must lie in 0…T={T}; got values from {lengths.min()} to {lengths.max()}")
    return np.arange(T) < lengths[..., None, None]  # (..., 1, T)


def dot_score(queries: ArrayLike, keys: ArrayLike) -> Array:
    """score(q, k) = q · k. No parameters; queries and keys must share their width.

    Args:
        queries: (..., T_q, d).
        keys: (..., T_k, d).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Luong et al. (2015), section 3.1, "dot".
    """
    queries, keys = as_floats(queries=queries, keys=keys)
    _same_leading(queries=queries, keys=keys)
    _same_width("queries", queries, "keys", keys)
    return queries @ keys.swapaxes(-1, -2)  # (..., T_q, T_k)


def general_score(queries: ArrayLike, keys: ArrayLike, W: ArrayLike) -> Array:
    """score(q, k) = qᵀ W k: a learned dot product, which also joins different widths.

    Args:
        queries: (..., T_q, d_q).
        keys: (..., T_k, d_k).
        W: (d_q, d_k).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Luong et al. (2015), section 3.1, "general".
    """
    queries, keys, W = as_floats(queries=queries, keys=keys, W=W)
    _same_leading(queries=queries, keys=keys)
    _matrix("W", W, (queries.shape[-1], keys.shape[-1]))
    return queries @ W @ keys.swapaxes(-1, -2)  # (..., T_q, T_k)


def additive_score(queries: ArrayLike, keys: ArrayLike, W_q: ArrayLike, W_k: ArrayLike, v: ArrayLike) -> Array:
    """score(q, k) = v · tanh(q W_q + k W_k): a small network looks at each pair.

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
    queries, keys, W_q, W_k, v = as_floats(queries=queries, keys=keys, W_q=W_q, W_k=W_k, v=v)
    _same_leading(queries=queries, keys=keys)
    if v.ndim != 1:
        raise ValueError(f"v has shape {v.shape}; expected one axis, (d_a,)")
    _matrix("W_q", W_q, (queries.shape[-1], len(v)))
    _matrix("W_k", W_k, (keys.shape[-1], len(v)))
    hidden = np.tanh((queries @ W_q)[..., :, None, :] + (keys @ W_k)[..., None, :, :])  # (..., T_q, T_k, d_a)
    return hidden @ v  # (..., T_q, T_k)


def concat_score(queries: ArrayLike, keys: ArrayLike, W: ArrayLike, v: ArrayLike) -> Array:
    """score(q, k) = v · tanh([q; k] W): the additive score, its two matrices stacked into one.

    Args:
        queries: (..., T_q, d_q).
        keys: (..., T_k, d_k).
        W: (d_q + d_k, d_a).
        v: (d_a,).

    Returns:
        scores, shape (..., T_q, T_k).

    Source: Luong et al. (2015), section 3.1, "concat".
    """
    queries, keys, W = as_floats(queries=queries, keys=keys, W=W)
    _same_leading(queries=queries, keys=keys)
    d_q = queries.shape[-1]
    _matrix("W", W, (d_q + keys.shape[-1], None))
    # [q; k] W = q W_top + k W_bottom: the same numbers, without T_q · T_k copies of q and k.
    return additive_score(queries, keys, W[:d_q], W[d_q:], v)


def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: ArrayLike | None = None, scale: float | None = None
) -> tuple[Array, Array]:
    """softmax(Q Kᵀ · scale) V: for each query, a weighted average of the values.

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
    Q, K, V = _as_qkv(Q, K, V)
    if Q.dtype == np.float16:  # its largest number, 65504, is a small score at d_k = 64
        Q, K, V = Q.astype(np.float32), K.astype(np.float32), V.astype(np.float32)
        output, weights = scaled_dot_product_attention(Q, K, V, mask, scale)
        return output.astype(np.float16), weights.astype(np.float16)
    scale = 1 / math.sqrt(Q.shape[-1]) if scale is None else float(scale)  # a Python float keeps float32 arrays float32
    if not math.isfinite(scale):
        raise ValueError(f"scale={scale} must be a finite number")

    scores = Q @ K.swapaxes(-1, -2) * scale  # (..., T_q, T_k)
    if mask is not None:
        scores = np.where(_as_mask(mask, scores.shape), scores, -np.inf)
    weights = softmax(scores)  # each row sums to 1
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


class AttentionCache(NamedTuple):
    """What the backward pass of attention needs; `weights` is the attention map, (..., T_q, T_k)."""

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
    out: Array | None = None,
) -> tuple[Array, AttentionCache]:
    """`scaled_dot_product_attention` for training: the same numbers, no checks, and a cache.

    Args:
        Q, K, V, mask, scale: as there.
        bias: added to the scaled scores, broadcastable to (..., T_q, T_k).
        out: where to write the output, (..., T_q, d_v).
    """
    scale = 1 / math.sqrt(Q.shape[-1]) if scale is None else scale
    scores = Q @ K.swapaxes(-1, -2)  # (..., T_q, T_k)
    scores *= scale
    if bias is not None:
        scores += bias
    weights, _ = softmax_forward(scores, mask, out=scores)
    return np.matmul(weights, V, out=out), AttentionCache(Q, K, V, weights, scale)


def attention_backward(
    doutput: Array, cache: AttentionCache, out: tuple[Array | None, ...] = (None, None, None)
) -> tuple[Array, Array, Array]:
    """dQ, dK, dV, written to `out` if given.

    The mask needs no thought here: where a weight is 0, softmax lets no gradient through.
    """
    Q, K, V, weights, scale = cache
    dweights = doutput @ V.swapaxes(-1, -2)  # (..., T_q, T_k)
    dscores = softmax_backward(dweights, weights, out=dweights)
    dscores *= scale
    dQ = np.matmul(dscores, K, out=out[0])
    dK = np.matmul(dscores.swapaxes(-1, -2), Q, out=out[1])
    dV = np.matmul(weights.swapaxes(-1, -2), doutput, out=out[2])
    return dQ, dK, dV


def split_heads(x: ArrayLike, num_heads: SupportsIndex) -> Array:
    """(..., T, d_model) → (..., h, T, d_k) with d_k = d_model / h: head i gets columns i·d_k … (i+1)·d_k − 1.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    x = as_float(x, "x", min_ndim=2)
    *leading, T, d_model = x.shape
    num_heads = as_heads(num_heads, d_model, "d_model")
    return x.reshape(*leading, T, num_heads, d_model // num_heads).swapaxes(-2, -3)  # (..., h, T, d_k)


def merge_heads(x: ArrayLike) -> Array:
    """(..., h, T, d_k) → (..., T, h·d_k): undoes `split_heads`."""
    x = as_float(x, "x", min_ndim=3)
    *leading, num_heads, T, d_k = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, num_heads * d_k)  # (..., T, d_model)


def multi_head_attention(
    x_q: ArrayLike,
    x_kv: ArrayLike,
    W_Q: ArrayLike,
    W_K: ArrayLike,
    W_V: ArrayLike,
    W_O: ArrayLike,
    num_heads: SupportsIndex,
    mask: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Several small attentions side by side, their outputs joined: Concat(head_1 … head_h) W_O.

    Args:
        x_q: where the queries come from, (..., T_q, d_model).
        x_kv: where keys and values come from, (..., T_k, d_model). Self-attention: `x_q` again.
        W_Q, W_K: (d_model, h·d_k).
        W_V: (d_model, h·d_v).
        W_O: (h·d_v, d_out), mostly d_out = d_model.
        num_heads: h, a divisor of the projections' widths.
        mask: boolean, True = may attend; (..., T_q, T_k) for all heads, or (..., h, T_q, T_k) for each its own.

    Returns:
        output, shape (..., T_q, d_out), and weights, shape (..., h, T_q, T_k).

    Raises:
        ValueError: shapes, dtypes, the head count or the mask do not fit.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    x_q, x_kv, W_Q, W_K, W_V, W_O = as_floats(x_q=x_q, x_kv=x_kv, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O)
    _same_leading(x_q=x_q, x_kv=x_kv)
    _matrix("W_Q", W_Q, (x_q.shape[-1], None))
    _matrix("W_K", W_K, (x_kv.shape[-1], W_Q.shape[-1]))
    _matrix("W_V", W_V, (x_kv.shape[-1], None))
    _matrix("W_O", W_O, (W_V.shape[-1], None))
    as_heads(num_heads, W_Q.shape[-1], "h·d_k")
    as_heads(num_heads, W_V.shape[-1], "h·d_v")
    if mask is not None:
        mask = np.asarray(mask)
        if 2 < mask.ndim <= x_q.ndim:  # no axis for the heads yet: the same mask for all of them
            mask = mask[..., None, :, :]  # (..., 1, T_q, T_k)

    Q = split_heads(x_q @ W_Q, num_heads)  # (..., h, T_q, d_k)
    K = split_heads(x_kv @ W_K, num_heads)  # (..., h, T_k, d_k)
    V = split_heads(x_kv @ W_V, num_heads)  # (..., h, T_k, d_v)
    heads, weights = scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(heads) @ W_O, weights  # (..., T_q, d_out), (..., h, T_q, T_k)


def _as_mask(mask: ArrayLike, shape: tuple[int, ...]) -> Mask:
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"mask has dtype {mask.dtype}; expected booleans, True = may attend (try `mask != 0`)")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask has shape {mask.shape}; expected one that broadcasts to the scores, {shape}") from None


def _as_qkv(Q: ArrayLike, K: ArrayLike, V: ArrayLike) -> tuple[Array, Array, Array]:
    Q, K, V = as_floats(Q=Q, K=K, V=V)
    _same_leading(Q=Q, K=K, V=V)
    _same_width("Q", Q, "K", K)
    T_k, d_k = K.shape[-2:]
    if V.shape[-2] != T_k:
        raise ValueError(f"V has {V.shape[-2]} rows, K has {T_k}; each key needs one value (K {K.shape}, V {V.shape})")
    if T_k == 0 or d_k == 0:
        raise ValueError(f"K has shape {K.shape}; expected at least one key of width at least 1")
    return Q, K, V


def _same_leading(**arrays: Array) -> None:
    """Leading axes equal, or 1 on purpose; an array that lacks one would be broadcast by accident."""
    for name, array in arrays.items():
        if array.ndim < 2:
            raise ValueError(f"{name} has shape {array.shape}; expected at least 2 axes, (..., T, d)")
    shapes = {name: array.shape[:-2] for name, array in arrays.items()}
    fits = len({len(shape) for shape in shapes.values()}) == 1
    fits = fits and all(len(set(sizes) - {1}) <= 1 for sizes in zip(*shapes.values(), strict=True))
    if not fits:
        given = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"leading axes do not fit: {given}; they must be equal, or 1 where an array is shared")


def _same_width(name_a: str, a: Array, name_b: str, b: Array) -> None:
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"{name_a} has width {a.shape[-1]}, {name_b} has width {b.shape[-1]}; a dot product needs the same width "
            f"({name_a} {a.shape}, {name_b} {b.shape})"
        )


def _matrix(name: str, W: Array, expected: tuple[int | None, int | None]) -> None:
    if W.ndim != 2 or any(e is not None and size != e for size, e in zip(W.shape, expected, strict=True)):
        wanted = ", ".join("any" if e is None else str(e) for e in expected)
        raise ValueError(f"{name} has shape {W.shape}; expected ({wanted})")
