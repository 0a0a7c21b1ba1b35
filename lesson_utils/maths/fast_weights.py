"""Fast weights: attention without softmax is a matrix that is written to and read from, and that never grows.

There are three rules of writing: add (linear attention), fade (a decay before each pair), overwrite (the delta rule).
"""

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Array, as_floats, as_number, as_qkv, check_last_queries


def write(
    S: ArrayLike, k: ArrayLike, v: ArrayLike, decay: float = 1.0, overwrite: bool = False, rate: float = 1.0
) -> Array:
    """Write one pair of a key and a value into a memory.

        S ← γ S + β k uᵀ        u = v, or with `overwrite` u = v − (γ S)ᵀ k, the part of v that is still missing

    Args:
        S: the memory, (..., d_k, d_v); it is left as it was. Start with zeros.
        k: the key, (..., d_k). With `overwrite`, rate 1 and a key of length 1, the old value of the key is replaced.
        v: the value, (..., d_v).
        decay: γ, the share of the old memory that stays, from 0 (forget all) to 1 (forget nothing).
        overwrite: use the delta rule.
        rate: β, the share of u that is written, 0 to 1.

    Returns:
        the new memory, (..., d_k, d_v), in the dtype of S.

    Raises:
        ValueError: shapes or dtypes do not fit, or decay or rate is not between 0 and 1.

    Source: Schlag et al. (2021), "Linear Transformers are secretly fast weight programmers", section 4.2, for the delta
    rule; Yang et al. (2025), "Gated delta networks", section 3.1, with the decay.
    """
    S, k, v = as_floats(S=S, k=k, v=v)
    if S.ndim < 2 or S.shape[:-1] != k.shape or S.shape[:-2] + S.shape[-1:] != v.shape:
        raise ValueError(
            f"S has shape {S.shape}, k {k.shape}, v {v.shape}; expected (..., d_k, d_v), (..., d_k) and (..., d_v)"
        )
    decay, rate = _share(decay, "decay"), _share(rate, "rate")
    S = decay * S
    if overwrite:
        v = v - read(S, k)
    return S + rate * (k[..., :, None] * v[..., None, :])  # (..., d_k, d_v)


def read(S: ArrayLike, q: ArrayLike) -> Array:
    """Read the memory with a query: Sᵀ q.

    Args:
        S: (..., d_k, d_v).
        q: (..., d_k).

    Returns:
        (..., d_v).

    Raises:
        ValueError: shapes or dtypes do not fit.
    """
    S, q = as_floats(S=S, q=q)
    if S.ndim < 2 or S.shape[:-1] != q.shape:
        raise ValueError(f"S has shape {S.shape}, q {q.shape}; expected (..., d_k, d_v) and (..., d_k)")
    return (q[..., None, :] @ S)[..., 0, :]


def decayed_attention(Q: ArrayLike, K: ArrayLike, V: ArrayLike, decay: float = 1.0) -> Array:
    """Compute all outputs of a memory with decay at once: ((Q Kᵀ) ∘ D) V, with D_ij = γ^(i − j) for j ≤ i, else 0.

    These are the numbers that `write(S, k_i, v_i, decay)` and then `read(S, q_i)` give for each position i, computed as
    masked attention without softmax. Queries are the last of the positions that keys have.

    Args:
        Q: (..., T_q, d_k).
        K: (..., T_k, d_k).
        V: (..., T_k, d_v).
        decay: γ, from 0 to 1.

    Returns:
        (..., T_q, d_v), in the dtype of Q, K and V.

    Raises:
        ValueError: shapes or dtypes do not fit, T_q > T_k, or decay is not between 0 and 1.

    Source: Sun et al. (2023), "Retentive network", section 2.1, equation 5; Dao & Gu (2024), "Transformers are SSMs",
    section 5, for the duality in general.
    """
    Q, K, V = as_qkv(Q, K, V)
    T_q, T_k = Q.shape[-2], K.shape[-2]
    check_last_queries(T_q, T_k)
    ago = np.arange(T_k - T_q, T_k)[:, None] - np.arange(T_k)  # (T_q, T_k): i − j
    D = np.where(ago >= 0, _share(decay, "decay") ** np.maximum(ago, 0), 0).astype(Q.dtype)
    return (Q @ K.swapaxes(-1, -2) * D) @ V


def _share(x: float, name: str) -> float:
    x = as_number(x, name)
    if not 0 <= x <= 1:
        raise ValueError(f"{name}={x} must be between 0 and 1")
    return x
