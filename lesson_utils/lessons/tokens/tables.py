"""Tables that count pieces, as notebook 06 counts characters, and what they pay for a character of held-out text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.lessons.causal_mask.counting import Table
from lesson_utils.lessons.tokens.pieces import merge_pairs
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from lesson_utils.maths.checks import Ids

LEVELS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1400, 2000)  # numbers of merges
ORDERS = (1, 2, 3, 4)  # how many pieces a table reads


class Measured(NamedTuple):
    """What was found with each number of merges, `LEVELS`."""

    tokens: "Ids"  # of the held-out text, (levels,)
    characters: int  # of the same text
    bits: Array  # of the whole held-out text, by the table of each order, (levels, orders)


def costs(table: Table, ids: "Ids") -> Array:
    """Return −log₂ p of every id of a text, (T,), where the table reads what came before; the first reads nothing."""
    p = np.full(len(ids), 1 / table.V)
    code = np.zeros(len(ids), np.int64)
    for back in range(table.order + 1):
        reads = np.arange(len(ids)) >= back  # at the beginning there is less to read
        if back:
            code[back:] += ids[:-back] * table.V ** (back - 1)
        c = table.counted[back]
        total, kinds = (_looked_up(c.contexts, values, code) for values in (c.totals, c.kinds))
        count = _looked_up(c.pairs, c.counts, code * table.V + ids)
        known = reads & (total > 0)
        p = np.where(known, (count + kinds * p) / np.maximum(total + kinds, 1), p)
    return -np.log2(p)


def measure(
    train: "Ids",
    held_out: "Ids",
    merges: "Ids",
    base: int,
    levels: Sequence[int] = LEVELS,
    orders: Sequence[int] = ORDERS,
) -> Measured:
    """Count tables of the training text in pieces, for each number of merges, and have them read the held-out text."""
    tokens, bits, characters, done = [], [], len(held_out), 0
    for level in levels:
        for new, (first, second) in enumerate(merges[done:level], base + done):
            train, held_out = (merge_pairs(ids, (int(first), int(second)), new) for ids in (train, held_out))
        done = level
        tokens.append(len(held_out))
        bits.append([costs(Table(train, order, base + level), held_out).sum() for order in orders])
    return Measured(np.array(tokens), characters, np.array(bits))


def _looked_up(names: "Ids", values: "Ids", wanted: "Ids") -> "Ids":
    """Return the value of each wanted name, 0 where there is none; names are in order."""
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[at] == wanted, values[at], 0)
