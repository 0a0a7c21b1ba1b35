"""Attention for long sequences: sparse masks, linear attention, and the online softmax.

As everywhere, masks are boolean and **True means "may attend"**: `window_mask(T, 4) | global_mask(T, [0])` may look at
both, `... & causal_mask(T)` not ahead.
"""

import math
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from lesson_utils.maths.checks import (
    Array,
    Mask,
    as_float,
    as_floats,
    as_ids,
    as_mask,
    as_qkv,
    as_size,
    check_last_queries,
)

# --- Sparse masks -----------------------------------------------------------------------------------------------------


def window_mask(T: SupportsIndex, window: SupportsIndex, causal: bool = False) -> Mask:
    """Each position may attend to itself and to `window` neighbours on each side.

    Args:
        T: the length.
        window: how many positions to each side, 0 or more. 0 leaves each position itself. (Longformer counts both
            sides together: its w is 2 · window.)
        causal: only the left side, and itself.

    Returns:
        mask, shape (T, T), True = may attend; entry (i, j) is True when |i − j| ≤ window.

    Source: Beltagy et al. (2020), "Longformer", section 3.1, "sliding window".
    """
    window = as_size(window, "window", minimum=0)
    offset = _offsets(T)
    return (np.abs(offset) <= window) & ((offset >= 0) | (not causal))


def global_mask(T: SupportsIndex, global_tokens: ArrayLike) -> Mask:
    """The listed positions may attend to all, and all may attend to them; nobody else to anybody.

    Args:
        T: the length.
        global_tokens: which positions, whole numbers in 0…T − 1, shape (n,).

    Returns:
        mask, shape (T, T), True = may attend. Mostly combined: `window_mask(T, 2) | global_mask(T, [0])`.

    Raises:
        ValueError: a position does not exist.

    Source: Beltagy et al. (2020), section 3.1, "global attention".
    """
    T = as_size(T, "T", minimum=0)
    tokens = np.asarray(global_tokens)
    if tokens.size == 0:
        tokens = tokens.astype(np.int64)  # an empty list is an array of floats
    as_ids(tokens, "global_tokens", T, ndim=1)
    mask = np.zeros((T, T), dtype=bool)
    mask[tokens, :] = True
    mask[:, tokens] = True
    return mask


def block_mask(T: SupportsIndex, block: SupportsIndex) -> Mask:
    """The sequence is cut into blocks of `block` positions; each may attend to its own block.

    Returns:
        mask, shape (T, T), True = may attend. The last block is shorter when `block` does not divide T.

    Source: Qiu et al. (2020), "Blockwise self-attention for long document understanding", section 3.
    """
    block = as_size(block, "block")
    number = np.arange(as_size(T, "T", minimum=0)) // block  # (T,)
    return number[:, None] == number


def strided_mask(T: SupportsIndex, stride: SupportsIndex, causal: bool = False) -> Mask:
    """Each position may attend to itself and to every `stride`-th position from there.

    Returns:
        mask, shape (T, T), True = may attend; entry (i, j) is True when `stride` divides i − j. With
        `window_mask(T, stride − 1)` beside it, two layers reach everything.

    Source: Child et al. (2019), "Generating long sequences with sparse Transformers", section 4.3.
    """
    stride = as_size(stride, "stride")
    offset = _offsets(T)
    return (offset % stride == 0) & ((offset >= 0) | (not causal))


def reach(mask: ArrayLike, layers: SupportsIndex) -> Mask:
    """What each position can know of after some layers: entry (i, j) is True when a path leads from j to i.

    Args:
        mask: boolean, True = may attend, (T, T), the same in each layer. A residual connection also lets each
            position keep what it has: `mask | np.eye(T, dtype=bool)`.
        layers: how many, 0 or more. After 0 each position knows itself.

    Returns:
        the mask's boolean matrix power, shape (T, T).

    Raises:
        ValueError: the mask is not square or not boolean.
    """
    layers = as_size(layers, "layers", minimum=0)
    mask = np.asarray(mask)
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        raise ValueError(f"mask has shape {mask.shape}; expected (T, T), queries and keys being the same positions")
    step, reached = as_mask(mask, mask.shape), np.eye(len(mask), dtype=bool)
    while layers:  # square and multiply: log2(layers) products instead of `layers`
        if layers % 2:
            reached = _product(step, reached)
        step, layers = _product(step, step), layers // 2
    return reached


def _offsets(T: SupportsIndex) -> np.ndarray:
    positions = np.arange(as_size(T, "T", minimum=0))
    return positions[:, None] - positions  # (T, T): i − j


def _product(a: Mask, b: Mask) -> Mask:
    """Is there a path of an edge of `a` and one of `b`? In float32, whose products are fast."""
    return a.astype(np.float32) @ b.astype(np.float32) > 0


# --- Linear attention -------------------------------------------------------------------------------------------------

_CHUNK = 32  # queries at a time under the causal mask; 16 to 64 are about as fast


class LinearState(NamedTuple):
    """All that linear attention remembers of the keys and values so far; its size does not depend on how many."""

    S: Array  # Σ φ(k) vᵀ, (..., d_k, d_v)
    z: Array  # Σ φ(k), (..., d_k)


def elu_feature_map(x: ArrayLike) -> Array:
    """φ(x) = elu(x) + 1: x + 1 above 0, eˣ below. Positive, so that φ(q) · φ(k) can serve as a weight.

    Source: Katharopoulos et al. (2020), section 3.2.1, equation 7.
    """
    x = as_float(x, "x")
    return np.maximum(x, 0) + np.exp(np.minimum(x, 0))  # one of them is constant; without np.where, which is slower


@np.errstate(over="ignore", invalid="ignore")  # `_divide` finds what overflows
def linear_attention(Q: ArrayLike, K: ArrayLike, V: ArrayLike, causal: bool = False) -> Array:
    """Attention with weights φ(q) · φ(k) in place of exp(q · k / √d_k): sums over the keys can be formed once for all.

        output_i = φ(q_i) S / (φ(q_i) · z)      S = Σ_j φ(k_j) v_jᵀ      z = Σ_j φ(k_j)

    Time and memory grow with T, not with T². It is another function than softmax attention, not an approximation.

    Args:
        Q: queries, (..., T_q, d_k).
        K: keys, (..., T_k, d_k).
        V: values, (..., T_k, d_v).
        causal: query i may attend to keys j ≤ i + T_k − T_q only, as with `attention.causal_mask`.

    Returns:
        output, shape (..., T_q, d_v), in the dtype of Q, K and V. Where all weights underflow to 0, it is 0.

    Raises:
        ValueError: shapes or dtypes do not fit, T_q > T_k with `causal`, or the input holds NaN or infinite values, or
            is so large that the output overflows.

    Source: Katharopoulos et al. (2020), "Transformers are RNNs", sections 3.2 and 3.3, equations 5, 6 and 8 to 12.
    """
    Q, K, V = as_qkv(Q, K, V)
    if not causal:
        return _recall(_remember(K, V), Q)
    T_q, T_k = Q.shape[-2], K.shape[-2]
    check_last_queries(T_q, T_k)

    # A chunk of queries reads what came before the chunk from the state, and its own keys through a small triangle.
    before = T_k - T_q
    state = _remember(K[..., :before, :], V[..., :before, :])
    chunks = []
    for start in range(0, T_q, _CHUNK):
        q = elu_feature_map(Q[..., start : start + _CHUNK, :])
        k, v = (x[..., before + start : before + start + q.shape[-2], :] for x in (K, V))
        weights = q @ elu_feature_map(k).swapaxes(-1, -2) * np.tri(q.shape[-2], dtype=q.dtype)  # (..., chunk, chunk)
        total = q @ state.z[..., None] + weights.sum(axis=-1, keepdims=True)  # (..., chunk, 1)
        chunks.append(_divide(q @ state.S + weights @ v, total))
        new = _remember(k, v)
        state = LinearState(state.S + new.S, state.z + new.z)
    return np.concatenate(chunks, axis=-2)  # (..., T_q, d_v)


def linear_attention_start(
    d_k: SupportsIndex, d_v: SupportsIndex, leading: tuple[int, ...] = (), dtype: DTypeLike = np.float64
) -> LinearState:
    """The state before the first key: nothing remembered.

    Args:
        d_k, d_v: widths of keys and values.
        leading: leading axes, such as (B, h).
        dtype: of the queries, keys and values to come.
    """
    d_k, d_v = as_size(d_k, "d_k"), as_size(d_v, "d_v", minimum=0)
    dtype = as_float(np.zeros(0, dtype), "state").dtype
    sizes = [as_size(n, "leading", minimum=0) for n in np.atleast_1d(leading)]
    return LinearState(np.zeros((*sizes, d_k, d_v), dtype), np.zeros((*sizes, d_k), dtype))


@np.errstate(over="ignore", invalid="ignore")  # `_divide` finds what overflows
def linear_attention_step(state: LinearState, q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[LinearState, Array]:
    """Causal linear attention, one position at a time: a recurrent network whose state is (S, z).

    Args:
        state: from `linear_attention_start` or the step before; it is left as it was.
        q, k: (..., d_k).
        v: (..., d_v).

    Returns:
        the state that has seen k and v too, and the output, shape (..., d_v), in the dtype of q, k and v.

    Raises:
        ValueError: shapes or dtypes do not fit, or the input holds NaN or infinite values, or is so large that the
            output overflows.

    Source: Katharopoulos et al. (2020), section 3.4, equations 16 to 20.
    """
    q, k, v = as_floats(q=q, k=k, v=v)
    if not isinstance(state, LinearState) or np.ndim(state.S) < 2 or np.shape(state.z) != np.shape(state.S)[:-1]:
        raise ValueError(f"state is {type(state).__name__}; begin with linear_attention_start(d_k, d_v)")
    *leading, d_k, d_v = state.S.shape
    for name, array, width in (("q", q, d_k), ("k", k, d_k), ("v", v, d_v)):
        if array.shape != (*leading, width):
            raise ValueError(
                f"{name} has shape {array.shape}; the state, of shape {state.S.shape}, expects {(*leading, width)}"
            )
    if state.S.dtype != q.dtype:
        raise ValueError(f"the state has dtype {state.S.dtype}, q {q.dtype}; start with dtype={q.dtype}")
    new = _remember(k[..., None, :], v[..., None, :])
    state = LinearState(state.S + new.S, state.z + new.z)
    return state, _recall(state, q[..., None, :])[..., 0, :]  # (..., d_v)


def _remember(K: Array, V: Array) -> LinearState:
    phi = elu_feature_map(K)
    return LinearState(phi.swapaxes(-1, -2) @ V, phi.sum(axis=-2))  # (..., d_k, d_v), (..., d_k)


def _recall(state: LinearState, Q: Array) -> Array:
    phi = elu_feature_map(Q)
    return _divide(phi @ state.S, phi @ state.z[..., None])  # (..., T_q, d_v)


def _divide(output: Array, total: Array) -> Array:
    """In place. Where all weights are 0, so is the output."""
    output /= np.where(total == 0, 1, total)
    if not np.isfinite(output).all():
        raise ValueError(f"the input is so large that the output overflows {output.dtype}; scale down Q, K or V")
    return output


# --- Exact attention without the matrix of weights --------------------------------------------------------------------

# Queries at a time: 1024 × 128 scores are 0.5 MB in float32, which a core's cache holds. 256 took 7 % longer.
_QUERIES = 1024
_CALM = 30.0  # exp of ±30 is far from float32's limits, exp(±87)


@np.errstate(over="ignore", invalid="ignore")  # `_divide` finds what overflows
def online_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: ArrayLike | None = None, block_size: SupportsIndex = 128
) -> Array:
    """softmax(Q Kᵀ / √d_k) V, exactly, seeing a block of keys at a time: memory grows with T_k, not with T_q · T_k.

    Args:
        Q: queries, (..., T_q, d_k).
        K: keys, (..., T_k, d_k), with at least one key.
        V: values, (..., T_k, d_v).
        mask: boolean, True = may attend, broadcastable to (..., T_q, T_k). Blocks that nobody may see cost nothing.
        block_size: how many keys 1024 queries see at a time; fewer queries see more keys, in the same memory. It
            changes speed and memory, and the result by rounding only.

    Returns:
        output, shape (..., T_q, d_v), as `attention.scaled_dot_product_attention` gives it. A query that may attend
        to nothing gets zeros. The weights are never there all at once, so they cannot be returned.

    Raises:
        ValueError: shapes, dtypes or the mask do not fit, the input holds NaN or infinite values, or is so large that
            the output overflows.

    Source: Milakov & Gimelshein (2018), "Online normalizer calculation for softmax", algorithm 3; Dao et al. (2022),
    "FlashAttention", algorithm 1.
    """
    Q, K, V = as_qkv(Q, K, V)
    block_size = as_size(block_size, "block_size")
    leading = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    (T_q, d_k), (T_k, d_v) = Q.shape[-2:], V.shape[-2:]
    visible = None if mask is None else as_mask(mask, (*leading, T_q, T_k))
    Q, K, V = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (Q, K, V))

    output = np.zeros((*leading, T_q, d_v), Q.dtype)
    for i in np.ndindex(leading):
        for start in range(0, T_q, _QUERIES):
            rows = slice(start, start + _QUERIES)
            seen = None if visible is None else visible[i][rows]
            q = Q[i][rows] * (1 / math.sqrt(d_k))  # a Python float keeps float32 arrays float32
            _attend_online(q, K[i], V[i], seen, block_size, output[i][rows])
    return output


def _attend_online(q: Array, K: Array, V: Array, mask: Mask | None, block_size: int, output: Array) -> None:
    """Add up, for each query, exp(score) and exp(score) · value over all keys in `output`; divide at the end.

    So that nothing overflows, exp(score − largest) is added up, `largest` being the largest score so far. When it
    rises, what has been added up shrinks by exp(old largest − new largest).
    """
    lowest = np.finfo(q.dtype).min  # −∞ would give −∞ − (−∞) = NaN in a row that has seen nothing yet
    largest, total = np.full((len(q), 1), lowest, q.dtype), np.zeros((len(q), 1), q.dtype)
    keys = min(block_size * _QUERIES // len(q), len(K))  # at a time; 512 queries × 256 keys: 4 % faster than × 128
    ones = np.ones((keys, 1), q.dtype)
    # No score is beyond ‖q‖ ‖k‖ (Cauchy–Schwarz). If that is small, nothing can overflow and nobody need look for the
    # largest: from 1.39 to 1.11 times PyTorch's time at T = 2048; and a mask may be multiplied with, after exp.
    calm = _longest(q) * _longest(K) <= _CALM

    for start in range(0, len(K), keys):
        k, v = K[start : start + keys], V[start : start + keys]
        visible = None if mask is None else mask[:, start : start + keys]
        if visible is not None and not visible.any():
            continue
        scores = q @ k.T  # (T_q, block)
        if not calm:
            if visible is not None:
                np.copyto(scores, -np.inf, where=~visible)
            new = np.maximum(largest, scores.max(axis=-1, keepdims=True))  # (T_q, 1)
            if (new > largest).any():
                shrink = np.exp(largest - new)
                total *= shrink
                output *= shrink
                largest = new
            scores -= largest
        np.exp(scores, out=scores)
        if calm and visible is not None:
            scores *= visible
        total += scores @ ones[: len(k)]  # a product sums rows 4 times as fast as .sum()
        output += scores @ v  # (T_q, d_v)
    _divide(output, total)


def _longest(x: Array) -> float:
    """The largest norm of a row."""
    return math.sqrt(np.einsum("td,td->t", x, x).max())
