"""A table of which piece followed the last n, counted; rare contexts lean on shorter ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from lesson_utils.maths.checks import Ids

LONGEST = 7  # a context and the next piece must fit into 64 bits


class Counted(NamedTuple):
    """The counts behind each context of one length; contexts and pairs are written as single numbers, in order."""

    contexts: "Ids"
    totals: "Ids"  # how often each context occurred
    kinds: "Ids"  # how many different pieces followed it
    pairs: "Ids"  # a context and the next piece
    counts: "Ids"


class Table:
    """A table of the pieces that followed the last n ones, for each n from 0 to `order`.

    Where a context is rare, the shorter context counts more: a context that occurred N times, before K different
    pieces, is trusted by N / (N + K), and the rest falls to the context that is one piece shorter.

    Args:
        ids: the text to count, (T,).
        order: how many pieces a context has at most, up to 7.
        V: how many symbols there are.

    Source: Witten & Bell (1991), method C.
    """

    def __init__(self, ids: "Ids", order: int, V: int) -> None:
        if not 0 <= order <= LONGEST:
            raise ValueError(f"order={order} must lie between 0 and {LONGEST}")
        self.order, self.V = order, V
        self.counted = [_count(ids, n, V) for n in range(order + 1)]

    def probabilities(self, contexts: "Ids") -> Array:
        """Return the probabilities of the next piece: contexts (N, n) → (N, V). More than `order` is not read."""
        contexts = np.asarray(contexts, np.int64)
        N, n = contexts.shape
        p = np.full((N, self.V), 1 / self.V)
        code = np.zeros(N, np.int64)
        for back in range(min(n, self.order) + 1):
            if back:
                code = code + contexts[:, -back] * self.V ** (back - 1)
            c = self.counted[back]
            total, kinds = (_looked_up(c.contexts, values, code)[:, None] for values in (c.totals, c.kinds))
            count = _looked_up(c.pairs, c.counts, code[:, None] * self.V + np.arange(self.V))  # (N, V)
            p = np.where(total > 0, (count + kinds * p) / np.maximum(total + kinds, 1), p)
        return p


def _count(ids: "Ids", n: int, V: int) -> Counted:
    windows: Sequence[Ids] = [np.asarray(ids[i : len(ids) - n + i], np.int64) for i in range(n + 1)]
    code = np.zeros(len(windows[0]), np.int64)
    for window in windows:
        code = code * V + window
    pairs, counts = np.unique(code, return_counts=True)
    contexts, at, kinds = np.unique(pairs // V, return_index=True, return_counts=True)
    return Counted(contexts, np.add.reduceat(counts, at), kinds, pairs, counts)


def _looked_up(names: "Ids", values: "Ids", wanted: "Ids") -> "Ids":
    """Return the value of each wanted name, 0 where there is none; names are in order."""
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[at] == wanted, values[at], 0)
