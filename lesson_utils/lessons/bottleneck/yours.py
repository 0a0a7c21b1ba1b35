"""Bahdanau's model, trained, with a learner's score and average in the place of ours."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq
from lesson_utils.maths.models.decoders import Bahdanau, Decoded, Memory
from lesson_utils.maths.recurrent import CELLS


def with_look_back(model: Seq2Seq, score: Callable[..., Any], average: Callable[..., Any]) -> Seq2Seq:
    """Return a model that computes with the same parameters, and looks back with other functions.

    Args:
        model: with the additive score.
        score: `score(query, keys, W_q, W_k, v)`, scores (B, S) of queries (B, d).
        average: `average(scores, keys, mask)`, a context (B, d) and weights (B, S).
    """
    assert isinstance(model.decoder, Bahdanau)
    other = copy.copy(model)
    other.decoder = _LookBack(model.decoder, score, average)
    return other


class _LookBack(Bahdanau):
    """Bahdanau's decoder with other functions; there is no way back through them."""

    def __init__(self, trained: Bahdanau, score: Callable[..., Any], average: Callable[..., Any]) -> None:
        vars(self).update(vars(trained))  # its parameters are shared, not copied
        self._score, self._average = score, average

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, Any]:
        a, _ = self._inputs(y)
        params = [self.query.W.value, self.key.W.value, self.v.value]
        mask = np.ones(memory.keys.shape[:2], bool) if memory.mask is None else memory.mask
        states, contexts, rows = [state], [], []
        for t in range(len(y)):
            query = states[t][:, : self.v.value.size]  # (B, d_hidden), the state before the step
            context, weights = self._average(self._score(query, memory.keys, *params), memory.keys, mask)
            fed, _ = self.context.forward(np.asarray(context))
            state, _ = CELLS[self.cell.kind].forward(a[t] + fed, states[t], *self._weights())
            states.append(state)
            contexts.append(context)
            rows.append(weights)
        return Decoded(np.stack(states), np.stack(contexts), np.stack(rows, axis=1)), None
