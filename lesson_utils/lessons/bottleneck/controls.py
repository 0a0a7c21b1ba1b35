"""Controls: one thing of a look back is changed, and everything else stays.

AskedBefore     Luong's decoder, but its query is the state *before* the step
EveryNth        Luong's decoder, but it may read only every n-th state of the encoder
"""

import copy
from typing import Any

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq
from lesson_utils.maths.models.decoders import Decoded, Luong, LuongCache, Memory
from lesson_utils.maths.recurrent import recurrence_backward, recurrence_forward
from lesson_utils.maths.scores import attend_backward, attend_forward


def asking_before(model: Seq2Seq) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that asks before the step."""
    return _with_decoder(model, AskedBefore(model.decoder))


def reading_every(model: Seq2Seq, n: int) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that reads every n-th state, and the last."""
    return _with_decoder(model, EveryNth(model.decoder, n))


def _with_decoder(model: Seq2Seq, decoder: Luong) -> Seq2Seq:
    other = copy.copy(model)
    other.decoder = decoder
    return other


class AskedBefore(Luong):
    """Luong's decoder in everything, but α_t = softmax(score(q_{t−1}, keys))."""

    def __init__(self, other: Any) -> None:
        vars(self).update(vars(other))  # its parameters are shared

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, LuongCache]:
        a, inputs = self._inputs(y)
        states, run = recurrence_forward(self.cell.kind, a, state, self._weights())
        queries = states[:-1, :, : memory.keys.shape[-1]].swapaxes(0, 1)  # (B, T, d_hidden), before each step
        score = [param.value for param in self.score]
        (contexts, alignment), look = attend_forward(self.kind, queries, memory.keys, score, memory.mask)
        return Decoded(states, contexts.swapaxes(0, 1), alignment), LuongCache(inputs, run, look, memory.end)

    def backward(self, dstates: Array, dcontexts: Array, cache: LuongCache) -> tuple[Array, Array, Memory]:
        dqueries, dkeys, dscore = attend_backward(dcontexts.swapaxes(0, 1), cache.look)
        for param, grad in zip(self.score, dscore, strict=True):
            param.grad += grad
        dstates[:-1, :, : dqueries.shape[-1]] += dqueries.swapaxes(0, 1)
        da, dstate, dweights = recurrence_backward(dstates, cache.run)
        return self._inputs_backward(da, dweights, cache.inputs), dstate, Memory(dkeys, np.zeros_like(cache.end))


class EveryNth(Luong):
    """Luong's decoder, but all states other than the last, the n-th before it, and so on, are hidden."""

    def __init__(self, other: Any, n: int) -> None:
        vars(self).update(vars(other))
        self._n = n

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, LuongCache]:
        B, S, _ = memory.keys.shape
        seen = np.arange(S)[::-1] % self._n == 0
        mask = np.broadcast_to(seen, (B, S)) if memory.mask is None else memory.mask & seen
        return super().forward(y, state, memory._replace(mask=mask))
