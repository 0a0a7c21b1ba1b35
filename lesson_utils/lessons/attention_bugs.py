"""Bugs of attention that run: masks, softmax, scale, and heads that are wrong in one line.

They belong to the catalogue in `bugs`. The backward pass of a bug fits its forward pass: a model with a bug trains as
it would under automatic differentiation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import layers, ops
from lesson_utils.maths.attention import AttentionCache, merge_heads, repeat_heads, repeat_heads_backward, split_heads
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.layers.basic import LinearCache

MERGED, SPLIT = "merged without the swap", "split and merged without the swap"

# --- From scores to weights -------------------------------------------------------------------------------------------


def _no_way_back(dweights: Array, weights: Array, scores: Array, mask: Mask | None) -> Array:
    raise NotImplementedError("this bug is for forward passes only")


class Weighing(NamedTuple):
    """A way from scores to weights, under a mask (True = may attend) or None; and the way back."""

    forward: Callable[[Array, Mask | None], Array]  # scores, mask -> weights
    backward: Callable[[Array, Array, Array, Mask | None], Array] = _no_way_back  # dweights, weights, scores, mask


def hidden(scores: Array, mask: Mask | None, by: float = -np.inf) -> Array:
    """Put −∞, or another number, where the mask hides a score."""
    return scores if mask is None else np.where(mask, scores, by)


def _late(scores: Array, mask: Mask | None) -> Array:
    return ops.softmax(scores) if mask is None else ops.softmax(scores) * mask


def _late_backward(dweights: Array, weights: Array, scores: Array, mask: Mask | None) -> Array:
    return ops.softmax_backward(dweights if mask is None else dweights * mask, ops.softmax(scores))


def _late_renormalised(scores: Array, mask: Mask | None) -> Array:
    left = _late(scores, mask)
    return left / left.sum(axis=-1, keepdims=True)


def _over_queries_backward(dweights: Array, weights: Array, scores: Array, mask: Mask | None) -> Array:
    return ops.softmax_backward(dweights.swapaxes(-1, -2), weights.swapaxes(-1, -2)).swapaxes(-1, -2)


RIGHT = Weighing(
    lambda scores, mask: ops.softmax(hidden(scores, mask)),
    lambda dweights, weights, scores, mask: ops.softmax_backward(dweights, weights),
)
LATE = Weighing(_late, _late_backward)
LATE_RENORMALISED = Weighing(_late_renormalised)
ZEROS = Weighing(lambda scores, mask: ops.softmax(hidden(scores, mask, 0.0)))
OVER_QUERIES = Weighing(lambda scores, mask: ops.softmax(hidden(scores, mask), axis=-2), _over_queries_backward)
TWICE = Weighing(lambda scores, mask: ops.softmax(RIGHT.forward(scores, mask)))
NO_ROW_SUM = RIGHT._replace(backward=lambda dweights, weights, scores, mask: dweights * weights)

# --- Heads ------------------------------------------------------------------------------------------------------------


def split_by_reshape(x: Array, num_heads: int) -> Array:
    """Cut (B, T, d) into (B, h, T, d_k) by `reshape` alone: the entries of several tokens get into one row."""
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def merge_by_reshape(x: Array) -> Array:
    """Join (B, h, T, d_k) into (B, T, d) by `reshape` alone."""
    B, h, T, d_k = x.shape
    return x.reshape(B, T, h * d_k)


def _tiled(x: Array, num_heads: int) -> Array:
    return np.tile(x, (1, num_heads // x.shape[1], 1, 1))


def _tiled_backward(dx: Array, num_kv_heads: int) -> Array:
    B, _, T, d_k = dx.shape
    return dx.reshape(B, -1, num_kv_heads, T, d_k).sum(axis=1)


def _ahead(mask: Mask) -> Mask:
    """Let each query of a causal mask see one key more."""
    T_q, T_k = mask.shape
    return np.tri(T_q, T_k, T_k - T_q + 1, dtype=bool)


class Step(NamedTuple):
    """A step of multi-head attention and the same step backwards."""

    forward: Callable[..., Array]
    backward: Callable[..., Array]


SWAPPED, RESHAPED = Step(split_heads, merge_heads), Step(split_by_reshape, merge_by_reshape)
REPEATED, TILED = Step(repeat_heads, repeat_heads_backward), Step(_tiled, _tiled_backward)


@dataclass(frozen=True)
class Bug:
    """The steps of multi-head attention, of which one is wrong; `Bug()` is right.

    Args:
        causal: what becomes of a causal mask, (T_q, T_k), True = may attend.
        mask: what becomes of any mask, after that.
        weighing: the way from scores to weights.
        scale: the factor on the scores, from d_k and the number of heads.
        queries, keys: how queries, and how keys and values, are split into heads.
        merging: the way of splitting that is undone where heads are merged.
        repeating: how heads of keys and values are repeated for all heads of queries.
        turn_values: positions turn the values, too, where they turn queries and keys.
    """

    causal: Callable[[Mask], Mask | None] = lambda mask: mask
    mask: Callable[[Mask], Mask] = lambda mask: mask
    weighing: Weighing = RIGHT
    scale: Callable[[int, int], float] = lambda d_k, num_heads: 1 / math.sqrt(d_k)
    queries: Step = SWAPPED
    keys: Step = SWAPPED
    merging: Step = SWAPPED
    repeating: Step = REPEATED
    turn_values: bool = False

    def seen(self, mask: Any) -> Mask | None:
        """Return what this bug makes of a mask; None lets everything be seen."""
        if mask is None:
            return None
        mask = np.asarray(mask, bool)
        if mask.ndim == 2 and not mask.all():
            mask = self.causal(mask)
        return None if mask is None else self.mask(mask)


BUGS = {  # in multi-head attention; "" is none
    "": Bug(),
    "no mask": Bug(causal=lambda mask: None),
    "mask one too far": Bug(causal=_ahead),
    "mask transposed": Bug(causal=lambda mask: mask.T),
    "mask inverted": Bug(mask=np.logical_not),
    "mask after softmax": Bug(weighing=LATE),
    "mask after softmax, renormalised": Bug(weighing=LATE_RENORMALISED),
    "masked with zeros": Bug(weighing=ZEROS),
    "softmax over the queries": Bug(weighing=OVER_QUERIES),
    "softmax of the weights": Bug(weighing=TWICE),
    "backward without the row's sum": Bug(weighing=NO_ROW_SUM),
    "no scale": Bug(scale=lambda d_k, num_heads: 1.0),
    "scaled by d_k": Bug(scale=lambda d_k, num_heads: 1 / d_k),
    "scaled by √d_model": Bug(scale=lambda d_k, num_heads: 1 / math.sqrt(d_k * num_heads)),
    "queries split without the swap": Bug(queries=RESHAPED),
    MERGED: Bug(merging=RESHAPED),
    SPLIT: Bug(queries=RESHAPED, keys=RESHAPED, merging=RESHAPED),
    "groups tiled": Bug(repeating=TILED),
    "values turned": Bug(turn_values=True),
}


class Instead:
    """A layer in place of a right one, with the same parameters and settings."""

    def __init__(self, right: layers.Layer) -> None:
        vars(self).update(vars(right))


class HeadsCache(NamedTuple):
    products: tuple[LinearCache, LinearCache, LinearCache]
    attended: AttentionCache
    scores: Array
    mask: Mask | None
    merged: LinearCache


class WrongHeads(Instead, layers.MultiHead):
    """Multi-head attention with the steps of a `Bug`."""

    def __init__(self, right: layers.MultiHead, bug: Bug) -> None:
        super().__init__(right)
        self.bug = bug

    def forward(
        self, x: Array, memory: Array | None = None, mask: Any = None, bias: Any = None, past: Any = None
    ) -> Any:
        """Compute what `MultiHead.forward` does, with the bug; without a bias, and without what `trying` sets."""
        bug, kv = self.bug, x if memory is None else memory
        q, from_Q = ops.linear_forward(x, self.W_Q.value)
        k, from_K = ops.linear_forward(kv, self.W_K.value)
        v, from_V = ops.linear_forward(kv, self.W_V.value)
        Q = bug.queries.forward(q, self.num_heads)
        K, V = bug.keys.forward(k, self.num_kv_heads), bug.keys.forward(v, self.num_kv_heads)
        if past is not None:
            K, V = past.append(K, V)
        if self.rotary is not None:
            T_q, T_k = Q.shape[-2], K.shape[-2]
            Q, K = self.rotary.turn(Q, np.arange(T_k - T_q, T_k)), self.rotary.turn(K, np.arange(T_k))
            V = self.rotary.turn(V, np.arange(T_k)) if bug.turn_values else V
        K, V = bug.repeating.forward(K, self.num_heads), bug.repeating.forward(V, self.num_heads)
        scale = bug.scale(Q.shape[-1], self.num_heads)
        scores = Q @ K.swapaxes(-1, -2) * np.asarray(scale, Q.dtype)  # (B, h, T_q, T_k)
        seen = bug.seen(mask)
        weights = bug.weighing.forward(scores, seen)
        y, merged = ops.linear_forward(bug.merging.backward(weights @ V), self.W_O.value)
        return y, HeadsCache((from_Q, from_K, from_V), AttentionCache(Q, K, V, weights, scale), scores, seen, merged)

    def _backward(self, dy: Array, cache: Any) -> tuple[Array, Array, Array]:
        bug, (Q, K, V, weights, scale) = self.bug, cache.attended
        dmerged, dW_O, _ = ops.linear_backward(dy, cache.merged)
        dheads = bug.merging.forward(dmerged, self.num_heads)
        dscores = bug.weighing.backward(dheads @ V.swapaxes(-1, -2), weights, cache.scores, cache.mask)
        dscores = dscores * np.asarray(scale, Q.dtype)
        dQ: Array = dscores @ K
        dK = bug.repeating.backward(dscores.swapaxes(-1, -2) @ Q, self.num_kv_heads)
        dV = bug.repeating.backward(weights.swapaxes(-1, -2) @ dheads, self.num_kv_heads)
        if self.rotary is not None:
            at = np.arange(dQ.shape[-2])
            dQ, dK = self.rotary.turn(dQ, -at), self.rotary.turn(dK, -at)
            dV = self.rotary.turn(dV, -at) if bug.turn_values else dV
        from_Q, from_K, from_V = cache.products
        dx, dW_Q, _ = ops.linear_backward(bug.queries.backward(dQ), from_Q)
        dkeys, dW_K, _ = ops.linear_backward(bug.keys.backward(dK), from_K)
        dvalues, dW_V, _ = ops.linear_backward(bug.keys.backward(dV), from_V)
        for W, dW in ((self.W_Q, dW_Q), (self.W_K, dW_K), (self.W_V, dW_V), (self.W_O, dW_O)):
            W.grad += dW
        return dx, dkeys, dvalues
