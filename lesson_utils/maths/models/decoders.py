"""Three decoders of a recurrent encoder–decoder, which differ in where the context c_t comes from, and when.

    Fixed       c_t is the encoder's end, the same at each step, and an input of the cell
    Bahdanau    c_t is a look back with the state before the step, h_{t−1}, and an input of the cell
    Luong       c_t is a look back with the state after the step, h_t; the cell knows nothing of it

`forward(y, state, memory) -> decoded, cache` with y the embedded target, (T, B, d_embed), time first;
`backward(dstates, dcontexts, cache) -> dy, dstate, dmemory`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.layers import Layer, Linear, Param, normal
from lesson_utils.maths.layers.basic import LinearCache
from lesson_utils.maths.ops import linear_backward, linear_forward, softmax_backward, softmax_forward
from lesson_utils.maths.recurrent import CELLS, Recurrent, recurrence_backward, recurrence_forward
from lesson_utils.maths.recurrent.through_time import Recurrence
from lesson_utils.maths.scores import (
    LookBack,
    PairCache,
    added_backward,
    added_forward,
    attend_backward,
    attend_forward,
)

Rng = np.random.Generator


class Memory(NamedTuple):
    """The encoder's outputs for the decoder, or their gradients."""

    keys: Array  # (B, S, d_hidden)
    end: Array  # (B, d_hidden), its last state
    mask: Mask | None = None  # (B, S), True = a real symbol


class Decoded(NamedTuple):
    """The outputs of a decoder: two things from which the next symbol is read, and where it looked."""

    states: Array  # (T + 1, B, parts·d_hidden), the first one included
    contexts: Array  # (T, B, d_hidden)
    alignment: Array | None  # (B, T, S)


class Decoder(Layer):
    """The cell, and its share of the gradients. Sizes are those of a `Seq2SeqConfig`."""

    def __init__(self, config: Any, rng: Rng) -> None:
        self.cell = Recurrent(config.cell, config.d_embed, config.d_hidden, rng, dtype=config.dtype)

    def _inputs(self, y: Array) -> tuple[Array, LinearCache]:
        return linear_forward(y, self.cell.W_x.value, self.cell.b.value)  # (T, B, gates·d_hidden)

    def _weights(self) -> list[Array]:
        return [param.value for param in self.cell.state_parameters()]

    def _inputs_backward(self, da: Array, dweights: Sequence[Array], inputs: LinearCache) -> Array:
        dy, dW_x, db = linear_backward(da, inputs)
        params = [self.cell.W_x, self.cell.b, *self.cell.state_parameters()]
        for param, grad in zip(params, (dW_x, db, *dweights), strict=True):
            param.grad += grad
        return dy


class FixedCache(NamedTuple):
    inputs: LinearCache
    context: LinearCache
    run: Recurrence
    memory: Memory


class Fixed(Decoder):
    """One context for all steps: h_t = cell(y_t W_x + c W_c, h_{t−1}). Source: Cho et al. (2014), section 2.2."""

    def __init__(self, config: Any, rng: Rng) -> None:
        super().__init__(config, rng)
        self.context = _context(config, rng)

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, FixedCache]:
        a, inputs = self._inputs(y)
        fed, from_context = self.context.forward(memory.end)  # (B, gates·d_hidden), the same for all steps
        states, run = recurrence_forward(self.cell.kind, a + fed, state, self._weights())
        contexts = np.broadcast_to(memory.end, (len(y), *memory.end.shape))
        return Decoded(states, contexts, None), FixedCache(inputs, from_context, run, memory)

    def backward(self, dstates: Array, dcontexts: Array, cache: FixedCache) -> tuple[Array, Array, Memory]:
        da, dstate, dweights = recurrence_backward(dstates, cache.run)
        dend = dcontexts.sum(axis=0) + self.context.backward(da.sum(axis=0), cache.context)
        dmemory = Memory(np.zeros_like(cache.memory.keys), dend)
        return self._inputs_backward(da, dweights, cache.inputs), dstate, dmemory


class Look(NamedTuple):
    """The caches of one look back and of the step after it."""

    query: LinearCache
    score: PairCache
    weights: Array  # (B, 1, S)
    context: LinearCache
    step: Any  # of the cell


class BahdanauCache(NamedTuple):
    inputs: LinearCache
    projected: LinearCache
    looks: list[Look]
    keys: Array


class Bahdanau(Decoder):
    """A look back before each step, which the cell takes in.

        α_t = softmax(v · tanh(h_{t−1} W_q + keys W_k)),  c_t = Σ_s α_ts keys_s,  h_t = cell(y_t W_x + c_t W_c, h_{t−1})

    Source: Bahdanau et al. (2015), section 3.1 and appendix A.1.2.
    """

    def __init__(self, config: Any, rng: Rng) -> None:
        super().__init__(config, rng)
        d_h = config.d_hidden
        self.context = _context(config, rng)
        self.query, self.key = (Linear(d_h, d_h, rng, bias=False, dtype=config.dtype, init=normal) for _ in range(2))
        self.v = _vector(d_h, rng, config.dtype)

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, BahdanauCache]:
        a, inputs = self._inputs(y)
        from_keys, projected = self.key.forward(memory.keys)  # (B, S, d_a), once for all steps
        mask = None if memory.mask is None else memory.mask[:, None]  # (B, 1, S)
        cache = BahdanauCache(inputs, projected, [], memory.keys)
        states, contexts = [state], []
        for t in range(len(y)):
            h = states[t][:, None, : self.v.value.size]  # (B, 1, d_hidden)
            from_query, query = self.query.forward(h)
            scores, score = added_forward(from_query, from_keys, self.v.value)  # (B, 1, S)
            weights, _ = softmax_forward(scores, mask)
            contexts.append((weights @ memory.keys)[:, 0])  # (B, d_hidden)
            fed, from_context = self.context.forward(contexts[t])
            state, step = CELLS[self.cell.kind].forward(a[t] + fed, states[t], *self._weights())
            states.append(state)
            cache.looks.append(Look(query, score, weights, from_context, step))
        alignment = np.concatenate([look.weights for look in cache.looks], axis=1)  # (B, T, S)
        return Decoded(np.stack(states), np.stack(contexts), alignment), cache

    def backward(self, dstates: Array, dcontexts: Array, cache: BahdanauCache) -> tuple[Array, Array, Memory]:
        inputs, projected, looks, keys = cache
        da: Any = [None] * len(looks)
        dkeys, dfrom_keys = np.zeros_like(keys), np.zeros_like(keys)
        dweights = [np.zeros_like(weight) for weight in self._weights()]
        for t in reversed(range(len(looks))):
            query, score, weights, context, step = looks[t]
            da[t], dstate, *grads = CELLS[self.cell.kind].backward(dstates[t + 1], step)
            dcontext = dcontexts[t] + self.context.backward(da[t], context)  # (B, d_hidden)
            dkeys += weights.swapaxes(-1, -2) @ dcontext[:, None]  # as values
            dscores = softmax_backward(dcontext[:, None] @ keys.swapaxes(-1, -2), weights)  # (B, 1, S)
            dfrom_query, dfrom_keys_t, dv = added_backward(dscores, score)
            dstates[t] += dstate
            dstates[t, :, : len(dv)] += self.query.backward(dfrom_query, query)[:, 0]
            dfrom_keys += dfrom_keys_t
            self.v.grad += dv
            for dweight, grad in zip(dweights, grads, strict=True):
                dweight += grad
        dkeys += self.key.backward(dfrom_keys, projected)
        dmemory = Memory(dkeys, np.zeros_like(dcontexts[0]))
        return self._inputs_backward(np.stack(da), dweights, inputs), dstates[0], dmemory


class LuongCache(NamedTuple):
    inputs: LinearCache
    run: Recurrence
    look: LookBack
    end: Array


class Luong(Decoder):
    """All steps first, then a look back from each: c_t = Σ_s α_ts keys_s, α_t = softmax(score(h_t, keys)).

    Source: Luong et al. (2015), section 3.1, without input feeding.
    """

    asks = slice(1, None)  # the states that ask, of T + 1: those after each step

    def __init__(self, config: Any, rng: Rng) -> None:
        super().__init__(config, rng)
        self.kind, d_h, dtype = config.attention, config.d_hidden, config.dtype
        self.score: list[Param] = []
        if self.kind == "general":
            self.score = [normal(d_h, d_h, rng, dtype)]
        elif self.kind == "concat":
            self.score = [normal(2 * d_h, d_h, rng, dtype), _vector(d_h, rng, dtype)]

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, LuongCache]:
        a, inputs = self._inputs(y)
        states, run = recurrence_forward(self.cell.kind, a, state, self._weights())
        queries = states[self.asks, :, : memory.keys.shape[-1]].swapaxes(0, 1)  # (B, T, d_hidden)
        score = [param.value for param in self.score]
        (contexts, alignment), look = attend_forward(self.kind, queries, memory.keys, score, memory.mask)
        return Decoded(states, contexts.swapaxes(0, 1), alignment), LuongCache(inputs, run, look, memory.end)

    def backward(self, dstates: Array, dcontexts: Array, cache: LuongCache) -> tuple[Array, Array, Memory]:
        dqueries, dkeys, dscore = attend_backward(dcontexts.swapaxes(0, 1), cache.look)
        for param, grad in zip(self.score, dscore, strict=True):
            param.grad += grad
        dstates[self.asks, :, : dqueries.shape[-1]] += dqueries.swapaxes(0, 1)
        da, dstate, dweights = recurrence_backward(dstates, cache.run)
        return self._inputs_backward(da, dweights, cache.inputs), dstate, Memory(dkeys, np.zeros_like(cache.end))


def _context(config: Any, rng: Rng) -> Linear:
    """Make W_c, through which the cell takes in the context."""
    width = CELLS[config.cell].gates * config.d_hidden
    return Linear(config.d_hidden, width, rng, bias=False, dtype=config.dtype, init=normal)


def _vector(size: int, rng: Rng, dtype: Any) -> Param:
    return Param((rng.normal(size=size) / np.sqrt(size)).astype(dtype))
