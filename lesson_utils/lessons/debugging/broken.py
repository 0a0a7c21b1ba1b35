"""Layers that are wrong in one line and run all the same; and models made of them.

Each layer here takes the place of one of the course's, keeps its parameters, and has a backward pass that fits what its
forward pass does: what happens to a model with such a layer is what happens with any automatic differentiation.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import layers, models, ops
from lesson_utils.maths.attention import AttentionCache, merge_heads, repeat_heads, repeat_heads_backward, split_heads
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers.blocks import Residual, ResidualCache
from lesson_utils.maths.layers.heads import KeyValueCache, MultiHead
from lesson_utils.maths.models.stack import Tokens
from lesson_utils.maths.positions import Rotary, sinusoidal_encoding

MERGED, SPLIT = "merged without the swap", "split and merged without the swap"


class HeadsCache(NamedTuple):
    products: tuple[Any, Any, Any]
    attended: AttentionCache
    mask: Array | None
    merged: Any
    crossed: bool


class Heads(MultiHead):
    """Multi-head attention with one of the bugs in `bug`; without one, it is what the course's own is."""

    bug, first_layer = "", True

    def forward(self, x: Array, memory: Array | None = None, mask: Any = None, *_: Any, **inputs: Any) -> Any:
        """As `MultiHead.forward`, of which it takes `past` besides."""
        if self.bug == "attends along the batch" and memory is None and inputs.get("past") is None:
            turned, cache = self._forward(x.swapaxes(0, 1), None, self._for_rows(mask, x), None)
            return turned.swapaxes(0, 1), cache
        return self._forward(x, memory, mask, inputs.get("past"))

    def backward(self, dy: Array, cache: Any) -> Any:
        if self.bug == "attends along the batch" and not cache.crossed:
            return self._backward(dy.swapaxes(0, 1), cache).swapaxes(0, 1)
        return self._backward(dy, cache)

    def _forward(self, x: Array, memory: Array | None, mask: Any, past: KeyValueCache | None) -> tuple[Array, Any]:
        kv = x if memory is None else memory
        (q, from_Q), (k, from_K), (v, from_V) = (
            ops.linear_forward(to, W.value) for to, W in ((x, self.W_Q), (kv, self.W_K), (kv, self.W_V))
        )
        Q, K, V = self._split(q, self.num_heads), self._split(k, self.num_kv_heads), self._split(v, self.num_kv_heads)
        if past is not None:
            K, V = past.append(K, V)
        if self.rotary is not None:
            T_q, T_k = Q.shape[-2], K.shape[-2]
            Q, K = self.rotary.turn(Q, np.arange(T_k - T_q, T_k)), self.rotary.turn(K, np.arange(T_k))
        K, V = self._for_all(K), self._for_all(V)
        scale = self._scale(Q.shape[-1])
        scores = Q @ K.swapaxes(-1, -2) * np.asarray(scale, Q.dtype)  # (B, h, T_q, T_k)
        mask = self._mask(mask, *scores.shape[-2:])
        weights = self._weights(scores, mask)
        y, merged = ops.linear_forward(self._merge(weights @ V), self.W_O.value)
        attended = AttentionCache(Q, K, V, weights, scale)
        return y, HeadsCache((from_Q, from_K, from_V), attended, mask, merged, memory is not None)

    def _backward(self, dy: Array, cache: HeadsCache) -> Any:
        Q, K, V, weights, scale = cache.attended
        dmerged, dW_O, _ = ops.linear_backward(dy, cache.merged)
        dheads = self._split(dmerged, self.num_heads, merged=True)
        dscores = self._scores_backward(dheads @ V.swapaxes(-1, -2), cache) * np.asarray(scale, Q.dtype)
        dQ: Array = dscores @ K
        dK = self._for_all_backward(dscores.swapaxes(-1, -2) @ Q)
        dV = self._for_all_backward(weights.swapaxes(-1, -2) @ dheads)
        if self.rotary is not None:
            at = np.arange(dQ.shape[-2])
            dQ, dK = self.rotary.turn(dQ, -at), self.rotary.turn(dK, -at)
        from_Q, from_K, from_V = cache.products
        dx, dW_Q, _ = ops.linear_backward(self._merge(dQ, split=True), from_Q)
        dkeys, dW_K, _ = ops.linear_backward(self._merge(dK, split=True), from_K)
        dvalues, dW_V, _ = ops.linear_backward(self._merge(dV, split=True), from_V)
        for W, dW in ((self.W_Q, dW_Q), (self.W_K, dW_K), (self.W_V, dW_V), (self.W_O, dW_O)):
            W.grad += dW
        return (dx, dkeys + dvalues) if cache.crossed else dx + dkeys + dvalues

    # --- Where the bugs are ---------------------------------------------------------------------------------------

    def _split(self, x: Array, heads: int, merged: bool = False) -> Array:
        """(B, T, d) → (B, h, T, d_k); `merged`: it is the backward pass of merging."""
        if self.bug == SPLIT or (merged and self.bug == MERGED):
            return x.reshape(x.shape[0], heads, x.shape[1], -1)
        return split_heads(x, heads)

    def _merge(self, heads: Array, split: bool = False) -> Array:
        """(B, h, T, d_k) → (B, T, d); `split`: it is the backward pass of splitting."""
        B, h, T, d_k = heads.shape
        if self.bug == SPLIT or (not split and self.bug == MERGED):
            return heads.reshape(B, T, h * d_k)
        return merge_heads(heads)

    def _for_all(self, x: Array) -> Array:
        if self.bug == "groups tiled":
            return np.tile(x, (1, self.num_heads // self.num_kv_heads, 1, 1))
        return repeat_heads(x, self.num_heads)

    def _for_all_backward(self, dx: Array) -> Array:
        if self.bug == "groups tiled":
            B, _, T, d_k = dx.shape
            return dx.reshape(B, -1, self.num_kv_heads, T, d_k).sum(axis=1)
        return repeat_heads_backward(dx, self.num_kv_heads)

    def _scale(self, d_k: int) -> float:
        return {
            "no scale": 1.0,
            "scaled by d_k": 1 / d_k,
            "scaled by √d_model": 1 / math.sqrt(d_k * self.num_heads),
        }.get(self.bug, 1 / math.sqrt(d_k))

    def _mask(self, mask: Any, T_q: int, T_k: int) -> Any:
        """What becomes of a mask, True = may attend; None: everything is visible."""
        if mask is None:
            return None
        mask, causal = np.asarray(mask, bool), np.ndim(mask) == 2 and not np.all(mask)
        if self.bug == "mask one too far" and causal:
            return np.tri(T_q, T_k, T_k - T_q + 1, dtype=bool)
        if self.bug == "mask inverted":
            return ~mask
        if self.bug == "mask lost after the first layer" and causal and not self.first_layer:
            return None
        return mask

    def _weights(self, scores: Array, mask: Any) -> Array:
        if self.bug == "mask after softmax":
            weights = ops.softmax(scores)
            return weights if mask is None else weights * mask
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        return ops.softmax(scores, axis=-2) if self.bug == "softmax over the queries" else ops.softmax(scores)

    def _scores_backward(self, dweights: Array, cache: HeadsCache) -> Array:
        weights = cache.attended.weights
        if self.bug == "softmax over the queries":
            return ops.softmax_backward(dweights.swapaxes(-1, -2), weights.swapaxes(-1, -2)).swapaxes(-1, -2)
        if self.bug == "mask after softmax" and cache.mask is not None:
            Q, K, _, _, scale = cache.attended
            before = ops.softmax(Q @ K.swapaxes(-1, -2) * np.asarray(scale, Q.dtype))
            return ops.softmax_backward(dweights * cache.mask, before)
        if self.bug == "backward without the row's sum":
            return dweights * weights
        return ops.softmax_backward(dweights, weights)

    @staticmethod
    def _for_rows(mask: Any, x: Array) -> Any:
        """Who takes the batch for time hides the rows that come later."""
        hides = mask is not None and np.ndim(mask) == 2 and not np.all(mask)
        return np.tri(len(x), dtype=bool) if hides else None


class Norm(layers.LayerNorm):
    """Layer norm over another axis: 0 is the batch, 1 the sequence."""

    axis = 1

    def forward(self, x: Array) -> tuple[Array, Any]:
        root = np.sqrt(x.var(axis=self.axis, keepdims=True) + np.asarray(self.eps, x.dtype))
        normal = (x - x.mean(axis=self.axis, keepdims=True)) / root
        return self.gamma.value * normal + self.beta.value, (normal, root)

    def backward(self, dy: Array, cache: Any) -> Array:
        normal, root = cache
        self.gamma.grad += (dy * normal).sum(axis=(0, 1))
        self.beta.grad += dy.sum(axis=(0, 1))
        dnormal = dy * self.gamma.value
        mean = dnormal.mean(axis=self.axis, keepdims=True)
        along = (dnormal * normal).mean(axis=self.axis, keepdims=True)
        return np.asarray((dnormal - mean - normal * along) / root)


class NormedResidual(Residual):
    """norm(x) + f(norm(x)), where x + f(norm(x)) was meant."""

    def forward(self, x: Array, rng: Any = None, **inputs: Any) -> tuple[Array, ResidualCache]:
        assert self.norm is not None
        normal, norm_cache = self.norm.forward(x)
        y, inner_cache = self.inner.forward(normal, **inputs)
        return y + normal, ResidualCache(norm_cache, inner_cache, None)

    def backward(self, dy: Array, cache: ResidualCache) -> Any:
        assert self.norm is not None
        dnormal = self.inner.backward(dy, cache.inner)
        dnormal, *others = dnormal if isinstance(dnormal, tuple) else (dnormal,)
        dx = self.norm.backward(dnormal + dy, cache.norm)
        return (dx, *others) if others else dx


class Places(Tokens):
    """Tokens that are told the wrong place, or none."""

    bug = ""

    def forward(self, ids: Any, start: int = 0, rng: Any = None) -> tuple[Array, Any]:
        x, cache = self.embedding.forward(ids)  # (B, T, d_model)
        B, T, d_model = x.shape
        if self.bug == "positions along the batch":
            x = x + sinusoidal_encoding(B, d_model)[:, None].astype(x.dtype)
        elif self.bug == "positions start again":
            table = sinusoidal_encoding(T, d_model) if self.learned is None else self.learned.value[:T]
            x = x + table.astype(x.dtype)
        return x, (cache, None, 0, T)

    def backward(self, dx: Array, cache: Any) -> None:
        if self.bug == "positions start again":
            super().backward(dx, cache)
        else:  # no vector of a place has had a part in it
            self.embedding.backward(dx, cache[0])


class CountsCalls(KeyValueCache):
    """Its counter counts calls, not positions: after a prompt of T tokens it writes on at place 1."""

    def append(self, K: Array, V: Array) -> tuple[Array, Array]:
        found = super().append(K, V)
        self.length -= K.shape[-2] - 1
        return found


class Patient(models.GPT):
    """A GPT that may be wrong from the loss on, or in its cache."""

    bug = ""

    def outputs(self, logits: Array) -> Array:
        """What the loss is taken of."""
        return ops.softmax(logits) if self.bug == "softmax twice" else logits

    def loss(self, batch: Any) -> float:
        logits, _ = self.forward(batch[0])
        return ops.cross_entropy_forward(self.outputs(logits), self._wanted(batch))[0]

    def loss_and_grad(self, batch: Any, rng: Any = None) -> float:
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        given = self.outputs(logits)
        loss, cross = ops.cross_entropy_forward(given, self._wanted(batch))
        dlogits = ops.cross_entropy_backward(1.0, cross)
        if self.bug == "softmax twice":
            dlogits = ops.softmax_backward(dlogits, given)
        dx = self.tokens.embedding.logits_backward(dlogits, output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def _wanted(self, batch: Any) -> Any:
        return np.asarray(batch[0 if self.bug == "targets not shifted" else 1])

    def new_past(self, keep: int | None = None) -> list[KeyValueCache]:
        make = CountsCalls if self.bug == "cache counts calls" else KeyValueCache
        return [make(self.config.max_length, keep) for _ in self.stack.blocks]


PLACES = ("positions along the batch", "positions forgotten", "positions start again")
NORMS = {"norm over the batch": 0, "norm over the sequence": 1}


def plant(model: layers.Layer, bug: str) -> None:
    """Put a bug into a model, everywhere where it can be. The parameters stay as they are.

    A bug of the loss, the targets or the cache can only be in a `Patient`.
    """
    if isinstance(model, Patient):
        model.bug = bug
    found: list[Any] = []
    _collect(model, found)
    in_heads: list[Any] = [layer for layer in found if type(layer) is MultiHead]
    for n, layer in enumerate(in_heads):
        layer.__class__ = Heads
        layer.bug, layer.first_layer = bug, n == 0
    for layer in found:
        kind = type(layer)
        if kind is layers.LayerNorm and bug in NORMS:
            layer.__class__ = Norm
            layer.axis = NORMS[bug]
        elif kind is Residual and bug == "residual of the normed":
            layer.__class__ = NormedResidual
        elif kind is Tokens and bug in PLACES:
            layer.__class__ = Places
            layer.bug = bug
        elif kind is layers.Embedding and bug == "table too loud":
            layer.table.value *= layer.scale
            layer.scale = 1.0


def _collect(thing: Any, found: list[Any]) -> None:
    """A layer and all layers in it, each once."""
    if isinstance(thing, list | tuple):
        for part in thing:
            _collect(part, found)
    elif isinstance(thing, layers.Layer) and all(thing is not other for other in found):
        found.append(thing)
        for part in vars(thing).values():
            _collect(part, found)


def patient(bug: str, vocab: int, seed: int = 0, **sizes: Any) -> Patient:
    """A small GPT with a bug; "" is a healthy one. The same seed, the same parameters."""
    chosen: dict[str, Any] = {"d_model": 32, "num_heads": 4, "num_layers": 2, "max_length": 64} | sizes
    if bug == "groups tiled":
        chosen["num_kv_heads"] = 2
    if bug == "rotary pairs":
        chosen |= {"positions": "rotary", "rotary": Rotary(pairs="halves")}
    model = Patient(models.GPTConfig(vocab=vocab, **chosen), np.random.default_rng(seed))
    plant(model, bug)
    return model


def twin(model: Patient) -> Patient:
    """Right code with the same parameters."""
    config = model.config if model.config.rotary is None else replace(model.config, rotary=Rotary())
    right = Patient(config, np.random.default_rng(0))
    for name, param in right.params().items():
        param.value = model.params()[name].value
    return right
