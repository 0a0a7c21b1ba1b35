"""Tables that count pieces, as notebook 06 counts characters, and their price for a character of held-out text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.tokens.counting import LONGEST, Table
from lesson_utils.lessons.tokens.pieces import merge_pairs
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

LEVELS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 350, 500, 700, 1000, 1400, 2000)  # numbers of merges
ORDERS = (1, 2, 3, 4)  # how many pieces a table reads


class Measured(NamedTuple):
    """The costs of the held-out text, in whole bits, after each number of merges in `LEVELS`."""

    tokens: "Ids"  # of the held-out text, (levels,)
    characters: int  # of the same text
    totals: "Ids"  # by the table of each order, (levels, orders)
    of_letters: "Ids"  # by tables of 1 to 7 characters, without any merge

    @property
    def bits(self) -> Array:
        """Bits a character by the table of each order, (levels, orders)."""
        return self.totals / self.characters

    @property
    def letters(self) -> Array:
        """Bits a character by tables of 1 to 7 characters."""
        return self.of_letters / self.characters


def costs(table: Table, ids: "Ids") -> Array:
    """Return −ln p of each id of a text, when the table reads 0, 1 … `order` ids before it: (order + 1, T)."""
    p = np.full(len(ids), 1 / table.V)
    code = np.zeros(len(ids), np.int64)
    found = []
    for back, c in enumerate(table.counted):
        if back:
            code[back:] += ids[:-back] * table.V ** (back - 1)
        total, kinds = (_looked_up(c.contexts, values, code) for values in (c.totals, c.kinds))
        count = _looked_up(c.pairs, c.counts, code * table.V + ids)
        known = (np.arange(len(ids)) >= back) & (total > 0)  # at the beginning there is less to read
        p = np.where(known, (count + kinds * p) / np.maximum(total + kinds, 1), p)
        found.append(-np.log(p))
    return np.array(found)


def measure(
    train: "Ids",
    held_out: "Ids",
    merges: "Ids",
    base: int,
    levels: Sequence[int] = LEVELS,
    orders: Sequence[int] = ORDERS,
) -> Measured:
    """Count tables of the training text in pieces, for each number of merges, and have them read the held-out text."""
    tokens, totals, characters, done = [], [], len(held_out), 0
    of_letters = _whole_bits(costs(Table(train, LONGEST, base), held_out)[1:])
    for level in levels:
        for new, (first, second) in enumerate(merges[done:level], base + done):
            train, held_out = (merge_pairs(ids, (int(first), int(second)), new) for ids in (train, held_out))
        done = level
        tokens.append(len(held_out))
        totals.append(_whole_bits(costs(Table(train, max(orders), base + level), held_out)[list(orders)]))
    return Measured(np.array(tokens), characters, np.array(totals), of_letters)


def _whole_bits(nats: Array) -> "Ids":
    """Add up the last axis, and return whole bits."""
    return np.round(nats.sum(axis=-1) / np.log(2)).astype(np.int64)


def seen_before(table: Table, ids: "Ids") -> float:
    """Return the share of the contexts in a text that occurred in what the table has counted."""
    n = table.order
    code = sum(ids[n - back : len(ids) + 1 - back] * table.V ** (back - 1) for back in range(1, n + 1))
    c = table.counted[n]
    return float((_looked_up(c.contexts, c.totals, code) > 0).mean())


@plots.still(8.6, 3.9)
def look_back(figure: "Figure", measured: Measured, farthest: float = 8.2) -> str:
    """Draw what tables pay, by how many characters they look back on average."""
    ax = figure.add_subplot(xlabel="characters that the table looks back, on average", ylabel="bits a character")
    a_token = measured.characters / measured.tokens  # characters
    name = f"reads 1 to {LONGEST} characters"
    ax.plot(range(1, 1 + LONGEST), measured.letters, color=plots.GREEN, ls=":", marker="s", label=name)
    looks = ((0, "1 piece", plots.BLUE, "-", "o"), (1, "2 pieces", plots.ORANGE, "--", "D"))
    told = []
    for column, name, colour, line, mark in looks:
        x, y = (column + 1) * a_token, measured.bits[:, column]
        ax.plot(x, y, color=colour, ls=line, marker=mark, ms=5, label=f"reads {name}, 0 to {LEVELS[-1]:,} merges")
        listed = (f"{n} merges {b:.2f} at {a:.1f}" for n, a, b in zip(LEVELS, x, y, strict=True))
        told.append(f"{name}: {', '.join(listed)}")
    ax.set(xlim=(0.7, farthest))
    ax.legend(loc="upper right")
    best, pairs = measured.letters.min(), measured.bits[:, 1]
    far = 2 * a_token[pairs.argmin()]
    finding = (
        f"Characters pay {best:.2f} bits at best, looking {1 + measured.letters.argmin()} back; "
        f"pieces {pairs.min():.2f}, looking {far:.1f} back"
    )
    ax.set_title(finding)
    letters = ", ".join(f"{n} {bits:.2f}" for n, bits in enumerate(measured.letters, 1))
    return f"{finding}. Bits a character, by characters looked back. Characters: {letters}. {'. '.join(told)}."


def _looked_up(names: "Ids", values: "Ids", wanted: "Ids") -> "Ids":
    """Return the value of each wanted name, 0 where there is none; names are in order."""
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[at] == wanted, values[at], 0)
