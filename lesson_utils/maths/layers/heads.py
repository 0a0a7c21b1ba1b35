"""Multi-head attention as a layer."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from lesson_utils.maths import ops
from lesson_utils.maths.attention import (
    AttentionCache,
    attention_backward,
    attention_forward,
    merge_heads,
    repeat_heads,
    repeat_heads_backward,
    split_heads,
)
from lesson_utils.maths.checks import Array, Mask, as_heads, as_size
from lesson_utils.maths.layers.basic import Layer, LinearCache, Param, Rng, glorot
from lesson_utils.maths.layers.cache import KeyValueCache
from lesson_utils.maths.positions import Rotary

Attend = Callable[..., tuple[Array, Array]]  # (Q, K, V, mask) -> output, weights, as scaled_dot_product_attention


class KnockOut(NamedTuple):
    """Heads whose outputs are replaced: by zeros, or by their means over batch and positions ("mean")."""

    heads: tuple[int, ...]
    by: str = "zero"

    def apply(self, x: Array) -> Array:
        """Replace outputs of heads, (B, h, T, d_k). The gradients of the outputs are replaced in the same way."""
        x, heads = x.copy(), list(self.heads)
        x[:, heads] = 0 if self.by == "zero" else x[:, heads].mean(axis=(0, 2), keepdims=True)
        return x


class HeadsCache(NamedTuple):
    """The backward pass needs these; `attended.weights` are the attention maps, (B, h, T_q, T_k)."""

    products: tuple[LinearCache, LinearCache, LinearCache]  # with W_Q, W_K and W_V
    attended: AttentionCache
    knock_out: KnockOut | None
    merged: LinearCache


class MultiHead(Layer):
    """Multi-head attention, self- or cross-, with the matrices of `attention.multi_head_attention`.

    Two attributes are for experiments, see `models.trying`: `knock_out` replaces the outputs of some heads, and
    `attend` is a function (Q, K, V, mask) -> output, weights that takes the place of ours. `b_Q`, `b_K`, `b_V` and
    `b_O` are None; published models put their biases there.

    Args:
        num_kv_heads: how many heads keys and values have, a divisor of num_heads; num_heads / num_kv_heads query heads
            in a row share one. Default: num_heads. 1 is multi-query attention.
        rotary: turn queries and keys by their position (RoPE); for self-attention only.
        scale: the factor on the scores. Default: 1/√d_k.

    Source: Vaswani et al. (2017), section 3.2.2; Ainslie et al. (2023), section 2.2, for shared heads.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        rng: Rng | None,
        num_kv_heads: int | None = None,
        rotary: Rotary | None = None,
        scale: float | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        d_model = as_size(d_model, "d_model")
        self.num_heads = as_heads(num_heads, d_model, "d_model")
        self.num_kv_heads = as_heads(num_kv_heads or num_heads, self.num_heads, "num_heads", "num_kv_heads")
        d_kv = d_model // self.num_heads * self.num_kv_heads
        self.W_Q = glorot(d_model, d_model, rng, dtype)
        self.W_K, self.W_V = (glorot(d_model, d_kv, rng, dtype) for _ in range(2))
        self.W_O = glorot(d_model, d_model, rng, dtype)
        self.b_Q: Param | None = None
        self.b_K: Param | None = None
        self.b_V: Param | None = None
        self.b_O: Param | None = None
        self.rotary, self.scale = rotary, scale
        self.knock_out: KnockOut | None = None
        self.attend: Attend | None = None

    def forward(
        self,
        x: Array,
        memory: Array | None = None,
        mask: Array | Mask | None = None,
        bias: Array | None = None,
        past: KeyValueCache | None = None,
    ) -> tuple[Array, HeadsCache]:
        """Return what each position of x takes from x, or from `memory`.

        Args:
            x: (B, T_q, d_model).
            memory: (B, T_k, d_model), for cross-attention.
            mask: True = may attend, broadcastable to (B, h, T_q, T_k).
            bias: added to the scores, broadcastable to (B, h, T_q, T_k).
            past: keys and values of earlier positions; those of x are added to them. For decoding, not for training.
        """
        if self.rotary is not None and memory is not None:
            raise ValueError("rotary positions are for self-attention; make a MultiHead without rotary for memory")
        kv = x if memory is None else memory
        q, from_Q = ops.linear_forward(x, self.W_Q.value, _value(self.b_Q))  # (B, T_q, d_model)
        k, from_K = ops.linear_forward(kv, self.W_K.value, _value(self.b_K))  # (B, T_k, h_kv · d_k)
        v, from_V = ops.linear_forward(kv, self.W_V.value, _value(self.b_V))
        Q, K, V = _split(q, self.num_heads), _split(k, self.num_kv_heads), _split(v, self.num_kv_heads)
        if past is not None:
            K, V = past.append(K, V)
        if self.rotary is not None:  # the queries are the last of the positions
            T_q, T_k = Q.shape[-2], K.shape[-2]
            Q = self.rotary.turn(Q, np.arange(T_k - T_q, T_k))
            K = self.rotary.turn(K, np.arange(T_k)) if past is None else past.turn_keys(self.rotary)
        if past is not None and Q.shape[-2] == 1 and mask is None and bias is None and self.attend is None:
            heads, attended = _attention_of_one(Q, K, V, self.scale)  # (B, h, 1, d_k)
        else:
            K, V = repeat_heads(K, self.num_heads), repeat_heads(V, self.num_heads)  # (B, h, T_k, d_k)
            heads, attended = self._attention(Q, K, V, mask, bias)  # (B, h, T_q, d_k)
        if self.knock_out is not None:
            heads = self.knock_out.apply(heads)
        y, merged = ops.linear_forward(merge_heads(heads), self.W_O.value, _value(self.b_O))  # (B, T_q, d_model)
        return y, HeadsCache((from_Q, from_K, from_V), attended, self.knock_out, merged)

    def _attention(
        self, Q: Array, K: Array, V: Array, mask: Array | Mask | None, bias: Array | None
    ) -> tuple[Array, AttentionCache]:
        """Return what the heads take, (B, h, T_q, d_k), by our attention or by `attend`."""
        if self.attend is None:
            return attention_forward(Q, K, V, mask, self.scale, bias)
        if bias is not None or self.scale is not None:
            raise ValueError("attend=… takes Q, K, V and a mask: there is no place for a bias or a scale of its own")
        return _attention_by(self.attend, Q, K, V, mask)

    def backward(self, dy: Array, cache: HeadsCache) -> Array:
        """Return dx of self-attention."""
        dx, dkeys, dvalues = self._backward(dy, cache)
        return dx + dkeys + dvalues

    def backward_cross(self, dy: Array, cache: HeadsCache) -> tuple[Array, Array]:
        """Return dx and dmemory of cross-attention."""
        dx, dkeys, dvalues = self._backward(dy, cache)
        return dx, dkeys + dvalues

    def _backward(self, dy: Array, cache: HeadsCache) -> tuple[Array, Array, Array]:
        dmerged, dW_O, db_O = ops.linear_backward(dy, cache.merged)
        dheads = split_heads(dmerged, self.num_heads)  # (B, h, T_q, d_k)
        if cache.knock_out is not None:
            dheads = cache.knock_out.apply(dheads)
        dQ, dK, dV = attention_backward(dheads, cache.attended)
        dK, dV = repeat_heads_backward(dK, self.num_kv_heads), repeat_heads_backward(dV, self.num_kv_heads)
        if self.rotary is not None:
            at = np.arange(dQ.shape[-2])
            dQ, dK = self.rotary.turn(dQ, -at), self.rotary.turn(dK, -at)
        from_Q, from_K, from_V = cache.products
        dx, dW_Q, db_Q = ops.linear_backward(merge_heads(dQ), from_Q)
        dkeys, dW_K, db_K = ops.linear_backward(merge_heads(dK), from_K)
        dvalues, dW_V, db_V = ops.linear_backward(merge_heads(dV), from_V)
        for W, dW in ((self.W_Q, dW_Q), (self.W_K, dW_K), (self.W_V, dW_V), (self.W_O, dW_O)):
            W.grad += dW
        for b, db in ((self.b_Q, db_Q), (self.b_K, db_K), (self.b_V, db_V), (self.b_O, db_O)):
            if b is not None:
                b.grad += db
        return dx, dkeys, dvalues


def _value(b: Param | None) -> Array | None:
    return None if b is None else b.value


def _split(x: Array, num_heads: int) -> Array:
    """Compute `split_heads` without its checks: (B, T, d_model) → (B, h, T, d_k)."""
    B, T, d_model = x.shape
    return x.reshape(B, T, num_heads, d_model // num_heads).swapaxes(1, 2)


def _attention_of_one(Q: Array, K: Array, V: Array, scale: float | None) -> tuple[Array, AttentionCache]:
    """Attend with a single query: the heads that share keys are the rows of one product, and no key is copied."""
    B, h, _, d_k = Q.shape
    Q = Q.reshape(B, K.shape[1], -1, d_k)  # (B, h_kv, h / h_kv, d_k)
    heads, attended = attention_forward(Q, K, V, scale=scale)
    weights = attended.weights.reshape(B, h, 1, -1)  # (B, h, 1, T_k)
    return heads.reshape(B, h, 1, -1), attended._replace(weights=weights)


def _attention_by(
    attend: Attend, Q: Array, K: Array, V: Array, mask: Array | Mask | None
) -> tuple[Array, AttentionCache]:
    """Return what somebody else's function returns, if the shapes are right.

    It gets a mask of the scores' own shape: `scores[~mask]` is a right answer, too, and knows no broadcasting.
    """
    whole = (*Q.shape[:-1], K.shape[-2])
    given = attend(Q, K, V, None if mask is None else np.broadcast_to(np.asarray(mask, bool), whole))
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise ValueError(f"attend=… returned a {type(given).__name__}; expected two arrays, (output, weights)")
    output, weights = (np.asarray(array) for array in given)
    for name, array, shape in (("output", output, Q.shape), ("weights", weights, whole)):
        if array.shape != shape:
            raise ValueError(f"attend=… returned {name} of shape {array.shape}; expected {shape}")
    return output, AttentionCache(Q, K, V, weights, math.nan)  # its scale is not known: there is no way back
