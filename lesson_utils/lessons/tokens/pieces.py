"""Byte-pair encoding, and tables that count pieces.

Learn which neighbours to merge, cut a text into the pieces, and put it together again.

A text is an array of ids. Ids below `base` are its characters (or bytes); each merge adds one id behind them.

Source: Gage (1994), for the compression of files; Sennrich et al. (2016), section 3.2, for language models.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lesson_utils.maths import tasks
from lesson_utils.maths.checks import Array, Ids, as_size

Pair = tuple[int, int]


def merge_pairs(ids: Ids, pair: Pair, new: int) -> Ids:
    """Put `new` in the place of each `pair` of neighbours, from the left, and return the shorter text.

    In a run such as a a a, the first two are merged, and the third stays.
    """
    first, second = pair
    at = np.flatnonzero((ids[:-1] == first) & (ids[1:] == second))
    if first == second:  # places that follow each other overlap: every second one counts
        runs = np.flatnonzero(np.diff(at, prepend=-2) > 1)
        since = np.arange(len(at)) - np.repeat(runs, np.diff(runs, append=len(at)))
        at = at[since % 2 == 0]
    merged = ids.copy()
    merged[at] = new
    return np.delete(merged, at + 1)


def commonest_pair(ids: Ids, size: int) -> Pair:
    """Return the most frequent pair of neighbours among `size` ids; of several, the one with the smallest ids."""
    codes, counts = np.unique(ids[:-1] * size + ids[1:], return_counts=True)  # overlapping ones count, too
    return divmod(int(codes[counts.argmax()]), size)


def learn(ids: Ids, count: int, base: int, wall: int | None = None) -> Ids:
    """Return the first `count` merges of a text as pairs of ids, (count, 2); fewer, if no pair occurs twice.

    What a merge changes is counted again, and nothing else: a quick version of the loop in the notebook.

    Args:
        base: how many ids there are before the first merge.
        wall: an id that is never merged, so that no piece crosses it.

    Raises:
        ValueError: `count` is no whole number, or negative.
    """
    size = base + as_size(count, "count", minimum=0)
    counts = np.zeros((size, size), np.int32)
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    walls = [] if wall is None else [wall]
    counts[walls] = counts[:, walls] = 0
    largest, pairs = counts.max(axis=1), []
    for new in range(base, size):
        first = int(largest.argmax())
        if largest[first] < 2:
            break
        pair = first, int(counts[first].argmax())
        pairs.append(pair)
        merged = merge_pairs(ids, pair, new)
        touched = _recount(counts, ids, merged, pair, new)
        counts[walls] = counts[:, walls] = 0
        largest[touched] = counts[touched].max(axis=1)
        ids = merged
    return np.array(pairs, np.int64).reshape(-1, 2)


def _recount(counts: Ids, old: Ids, merged: Ids, pair: Pair, new: int) -> Ids:
    """Bring the counts of pairs up to date after a merge, and return the ids whose rows have changed."""
    at = np.flatnonzero(merged == new)
    starts = at + np.arange(len(at))  # where each merged pair began: every merge before it took one place
    # Gone: the pairs that touch a merged one. Come: the pairs that touch its new id. None of them is counted twice.
    gone = np.unique(np.concatenate([starts - 1, starts, starts + 1]))
    come = np.unique(np.concatenate([at - 1, at]))
    gone, come = gone[(gone >= 0) & (gone < len(old) - 1)], come[(come >= 0) & (come < len(merged) - 1)]
    np.subtract.at(counts, (old[gone], old[gone + 1]), 1)
    np.add.at(counts, (merged[come], merged[come + 1]), 1)
    return np.unique(np.concatenate([old[gone], merged[come]]))


def apply(ids: Ids, merges: Iterable[Sequence[int]], base: int) -> Ids:
    """Cut a text as the merges say, in the order in which they were learned."""
    for new, (first, second) in enumerate(merges, base):
        ids = merge_pairs(ids, (int(first), int(second)), new)
    return ids


def spelled(merges: Ids, characters: Sequence[str]) -> list[str]:
    """Return the text of every piece: `characters` has that of each id below the first merge."""
    names = list(characters)
    for first, second in merges:
        names.append(names[first] + names[second])
    return names


def characters(vocabulary: tasks.Vocabulary) -> list[str]:
    """Return the text of each id of a vocabulary; padding, begin and end have none."""
    return [""] * tasks.FIRST_SYMBOL + list(vocabulary.characters)


def cut(ids: Sequence[int], ranks: Mapping[Pair, int], base: int) -> list[int]:
    """Cut a short text: of all pairs that are there, merge the one that was learned first, until none is left."""
    ids = list(ids)
    while True:
        known = [ranks[pair] for pair in pairwise(ids) if pair in ranks]
        if not known:
            return ids
        new, merged, at = base + min(known), [], 0
        while at < len(ids):
            together = at + 1 < len(ids) and ranks.get((ids[at], ids[at + 1])) == new - base
            merged.append(new if together else ids[at])
            at += 1 + together
        ids = merged


# --- Two steps before merging: bytes in place of characters, and cuts that no merge may cross -------------------------

# The first sentence of article 1 of the Universal Declaration of Human Rights (United Nations, 1948).
ARTICLE = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。",
}

# How many tokens SmolLM2-135M's tokenizer makes of it (a test compares), and GPT-4o's o200k_base (by bpe-openai 0.1.4).
SMOLLM_TOKENS = {"English": 13, "German": 24, "Finnish": 32, "Greek": 70, "Hindi": 92, "Chinese": 29}
GPT_4O_TOKENS = {"English": 13, "German": 14, "Finnish": 24, "Greek": 31, "Hindi": 25, "Chinese": 15}


def walled(words: Iterable[str], vocabulary: tasks.Vocabulary) -> Ids:
    """Return the ids of words, one after the other, with a wall, `tasks.PAD`, behind each."""
    parts = [[*vocabulary.encode(word).tolist(), tasks.PAD] for word in words]
    return np.array([id_ for part in parts for id_ in part], np.int64)


def to_bytes(text: str) -> Ids:
    """Return the bytes of a text, as ids from 0 to 255."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)


# --- A table of which piece followed the last n, counted; rare contexts lean on shorter ones --------------------------

LONGEST = 7  # a context and the next piece must fit into 64 bits


class Counted(NamedTuple):
    """The counts behind each context of one length; contexts and pairs are written as single numbers, in order."""

    contexts: Ids
    totals: Ids  # how often each context occurred
    kinds: Ids  # how many different pieces followed it
    pairs: Ids  # a context and the next piece
    counts: Ids


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

    def __init__(self, ids: Ids, order: int, V: int) -> None:
        if not 0 <= order <= LONGEST:
            raise ValueError(f"order={order} must lie between 0 and {LONGEST}")
        self.order, self.V = order, V
        self.counted = [_count(ids, n, V) for n in range(order + 1)]


def _count(ids: Ids, n: int, V: int) -> Counted:
    windows: Sequence[Ids] = [np.asarray(ids[i : len(ids) - n + i], np.int64) for i in range(n + 1)]
    code = np.zeros(len(windows[0]), np.int64)
    for window in windows:
        code = code * V + window
    pairs, counts = np.unique(code, return_counts=True)
    contexts, at, kinds = np.unique(pairs // V, return_index=True, return_counts=True)
    return Counted(contexts, np.add.reduceat(counts, at), kinds, pairs, counts)


def _looked_up(names: Ids, values: Ids, wanted: Ids) -> Ids:
    """Return the value of each wanted name, 0 where there is none; names are in order."""
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[at] == wanted, values[at], 0)


# --- Tables that count pieces, as notebook 06 counts characters, and their price for a character of held-out text -----

LEVELS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 350, 500, 700, 1000, 1400, 2000)  # numbers of merges
ORDERS = (1, 2, 3, 4)  # how many pieces a table reads


class Measured(NamedTuple):
    """The costs of the held-out text, in whole bits, after each number of merges in `LEVELS`."""

    tokens: Ids  # of the held-out text, (levels,)
    characters: int  # of the same text
    totals: Ids  # by the table of each order, (levels, orders)
    back: Array  # how many characters it looks back, on average over the characters of the text, (levels, orders)
    of_letters: Ids  # by tables of 1 to 7 characters, without any merge

    @property
    def bits(self) -> Array:
        """Bits a character by the table of each order, (levels, orders)."""
        return self.totals / self.characters

    @property
    def letters(self) -> Array:
        """Bits a character by tables of 1 to 7 characters."""
        return self.of_letters / self.characters


def costs(table: Table, ids: Ids) -> Array:
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
    train: Ids, held_out: Ids, merges: Ids, base: int, levels: Sequence[int] = LEVELS, orders: Sequence[int] = ORDERS
) -> Measured:
    """Count tables of the training text in pieces, for each number of merges, and have them read the held-out text."""
    tokens, totals, back, characters, done = [], [], [], len(held_out), 0
    lengths = np.array([len(piece) for piece in spelled(merges, "x" * base)])
    of_letters = _whole_bits(costs(Table(train, LONGEST, base), held_out)[1:])
    for level in levels:
        for new, (first, second) in enumerate(merges[done:level], base + done):
            train, held_out = (merge_pairs(ids, (int(first), int(second)), new) for ids in (train, held_out))
        done = level
        tokens.append(len(held_out))
        totals.append(_whole_bits(costs(Table(train, max(orders), base + level), held_out)[list(orders)]))
        back.append([looked_back(lengths[held_out], order) for order in orders])
    return Measured(np.array(tokens), characters, np.array(totals), np.array(back), of_letters)


def looked_back(lengths: Ids, order: int) -> float:
    """Return how far a table looks back from each character, on average: at pieces before, and into its own piece."""
    before = sum(np.r_[np.zeros(n, int), lengths[:-n]] for n in range(1, order + 1))
    return float((lengths * (before + (lengths - 1) / 2)).sum() / lengths.sum())


def _whole_bits(nats: Array) -> Ids:
    """Add up the last axis, and return whole bits."""
    return np.round(nats.sum(axis=-1) / np.log(2)).astype(np.int64)
