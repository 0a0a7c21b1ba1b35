"""Linear attention: without softmax, all keys and values fit into two sums."""

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Array, as_float, as_qkv, check_last_queries, check_no_overflow

_CHUNK = 32  # queries at a time under the causal mask; 16 to 64 are about as fast


def elu_feature_map(x: ArrayLike) -> Array:
    """Return φ(x) = elu(x) + 1: x + 1 above 0, eˣ below. It is positive, so φ(q) · φ(k) can serve as a weight.

    Source: Katharopoulos et al. (2020), section 3.2.1, equation 7.
    """
    x = as_float(x, "x")
    return np.maximum(x, 0) + np.exp(np.minimum(x, 0))  # one of them is constant; without np.where, which is slower


@np.errstate(over="ignore", invalid="ignore")  # `check_no_overflow` finds what overflows
def linear_attention(Q: ArrayLike, K: ArrayLike, V: ArrayLike, causal: bool = False) -> Array:
    """Attend with weights φ(q) · φ(k) in place of exp(q · k / √d_k), so that all queries share the sums over the keys.

        output_i = φ(q_i) S / (φ(q_i) · z)      S = Σ_j φ(k_j) v_jᵀ      z = Σ_j φ(k_j)

    Time and memory grow with T, not with T². This is a different function from softmax attention, not an approximation
    of it.

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
    q, k = elu_feature_map(Q), elu_feature_map(K)
    if causal:
        output, total = _causal_sums(q, k, V)
    else:
        S, z = _sums_over_keys(k, V)
        output, total = q @ S, q @ z
    output /= np.where(total == 0, 1, total)
    check_no_overflow(output)
    return output  # (..., T_q, d_v)


def _sums_over_keys(k: Array, V: Array) -> tuple[Array, Array]:
    """Return S = Σ φ(k_j) v_jᵀ, (..., d_k, d_v), and z = Σ φ(k_j), (..., d_k, 1)."""
    return k.swapaxes(-1, -2) @ V, k.sum(axis=-2)[..., None]


def _causal_sums(q: Array, k: Array, V: Array) -> tuple[Array, Array]:
    """Return each query's sum of weighted values, (..., T_q, d_v), and of weights, (..., T_q, 1).

    A chunk of queries reads all keys before the chunk from S and z, and the chunk's own keys through a small triangle.
    """
    T_q, T_k = q.shape[-2], k.shape[-2]
    check_last_queries(T_q, T_k)
    before = T_k - T_q
    S, z = _sums_over_keys(k[..., :before, :], V[..., :before, :])
    outputs, totals = [], []
    for start in range(0, max(T_q, 1), _CHUNK):  # without queries, one empty chunk
        q_here = q[..., start : start + _CHUNK, :]
        k_here, V_here = (x[..., before + start : before + start + _CHUNK, :] for x in (k, V))
        triangle = np.tri(q_here.shape[-2], dtype=q.dtype)
        weights = q_here @ k_here.swapaxes(-1, -2) * triangle  # (..., chunk, chunk)
        outputs.append(q_here @ S + weights @ V_here)
        totals.append(q_here @ z + weights.sum(axis=-1, keepdims=True))
        S_here, z_here = _sums_over_keys(k_here, V_here)
        S, z = S + S_here, z + z_here
    return np.concatenate(outputs, axis=-2), np.concatenate(totals, axis=-2)
