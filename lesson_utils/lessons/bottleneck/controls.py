"""Controls: one thing is changed, and everything else stays.

AskedBefore     Luong's decoder, but its query is the state *before* the step
EveryNth        Luong's decoder, but it may read only every n-th state of the encoder

And one of the fixed vector:

Narrow          the encoder, but only some of the numbers of its end are passed on
"""

import copy
from typing import Any

import numpy as np

from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.models import Seq2Seq
from lesson_utils.maths.models.decoders import Decoded, Luong, LuongCache, Memory
from lesson_utils.maths.recurrent import Recurrent
from lesson_utils.maths.recurrent.through_time import Unrolled


def asking_before(model: Seq2Seq) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that asks before the step."""
    return _with_decoder(model, AskedBefore(model.decoder))


def reading_every(model: Seq2Seq, n: int) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that reads every n-th state, and the last."""
    return _with_decoder(model, EveryNth(model.decoder, n))


def passing_on(model: Seq2Seq, numbers: int) -> Seq2Seq:
    """Return a model with the parameters of one with a fixed vector, of which only so many numbers are passed on."""
    other = copy.copy(model)
    other.encoder = Narrow(model.encoder, numbers)
    return other


def _with_decoder(model: Seq2Seq, decoder: Luong) -> Seq2Seq:
    other = copy.copy(model)
    other.decoder = decoder
    return other


class AskedBefore(Luong):
    """Luong's decoder in everything, but α_t = softmax(score(q_{t−1}, keys))."""

    asks = slice(None, -1)  # the states before each step

    def __init__(self, other: Any) -> None:
        vars(self).update(vars(other))  # its parameters are shared


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


class Narrow(Recurrent):
    """The encoder in everything, but only the first numbers of each direction's end are passed on."""

    def __init__(self, other: Any, numbers: int) -> None:
        vars(self).update(vars(other))
        directions = 1 + self.bidirectional
        own = np.arange(self.W_h.value.shape[-2]) < numbers // directions  # of one direction
        self._open = np.tile(own, directions)

    def forward(self, x: Array, mask: Mask | None = None) -> tuple[tuple[Array, Array], Unrolled]:
        (outputs, end), cache = super().forward(x, mask)
        return (outputs, end * self._open), cache

    def backward(self, doutputs: tuple[Array, Array], cache: Unrolled) -> Array:
        return super().backward((doutputs[0], doutputs[1] * self._open), cache)
