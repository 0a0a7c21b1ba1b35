"""A language model without training: a table of which character followed the last n, counted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.lessons.causal_mask.watched import Seen, known_words, read, word_shares, words_in
from lesson_utils.maths import tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from lesson_utils.maths.checks import Ids

LONGEST = 7  # a context and the next character must fit into 64 bits


class Counted(NamedTuple):
    """The counts behind each context of one length; contexts and pairs are written as single numbers, in order."""

    contexts: "Ids"
    totals: "Ids"  # how often each context occurred
    kinds: "Ids"  # how many different characters followed it
    pairs: "Ids"  # a context and the next character
    counts: "Ids"


class Table:
    """A table of the characters that followed the last n ones, for each n from 0 to `order`.

    Where a context is rare, the shorter context counts more: a context that occurred N times, before K different
    characters, is trusted by N / (N + K), and the rest falls to the context that is one character shorter.

    Args:
        ids: the text to count, (T,).
        order: how many characters a context has at most, up to 7.
        V: how many symbols there are.

    Source: Witten & Bell (1991), method C.
    """

    def __init__(self, ids: "Ids", order: int, V: int) -> None:
        if not 0 <= order <= LONGEST:
            raise ValueError(f"order={order} must lie between 0 and {LONGEST}")
        self.order, self.V = order, V
        self.counted = [_count(ids, n, V) for n in range(order + 1)]

    def probabilities(self, contexts: "Ids") -> Array:
        """Return the probabilities of the next character: contexts (N, n) → (N, V). More than `order` is not read."""
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

    def bits(self, batch: tuple["Ids", "Ids"]) -> float:
        """Return the mean loss in bits a character on windows x, y, each (B, T): what a GPT reads, it reads."""
        x, y = batch
        found = []
        for t in range(x.shape[1]):
            p = self.probabilities(x[:, max(0, t + 1 - self.order) : t + 1])
            found.append(np.take_along_axis(p, y[:, t : t + 1], axis=1))
        return float(-np.log2(np.concatenate(found)).mean())

    def writes(self, vocabulary: tasks.Vocabulary, prompt: str, length: int, texts: int = 8) -> list[str]:
        """Continue a prompt several times at τ = 0.7, and return the texts as `writes` does, most words first."""
        rng = np.random.default_rng(5)
        ids = np.tile(vocabulary.encode(prompt), (texts, 1))  # (texts, T)
        for _ in range(length):
            p = self.probabilities(ids[:, max(0, ids.shape[1] - self.order) :]) ** (1 / 0.7)
            below = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
            new = (below < rng.random((texts, 1))).sum(axis=1)
            ids = np.append(ids, np.minimum(new, self.V - 1)[:, None], axis=1)
        written = [" ".join(read(vocabulary, row).split()) for row in ids]
        return sorted(written, key=lambda text: -len(words_in(text)))


def seen_before(table: Table, contexts: "Ids") -> float:
    """Return the share of contexts (N, n) that occurred in the text that the table has counted; n is its order."""
    code = (np.asarray(contexts, np.int64) * table.V ** np.arange(contexts.shape[1])[::-1]).sum(axis=1)
    c = table.counted[contexts.shape[1]]
    return float((_looked_up(c.contexts, c.totals, code) > 0).mean())


def print_tables(
    tables: Mapping[int, Table],
    held_out: tuple["Ids", "Ids"],
    vocabulary: tasks.Vocabulary,
    text: str,
    watch: Seen,
) -> None:
    """List for each table its loss, how much of what it meets it has seen, and what it writes; then the watched GPT."""
    known, last = known_words(text), held_out[0][:, -LONGEST:]  # (B, 7): the ends of the windows
    print("characters   bits   seen before   real words   what it writes (of 8 texts, the one with most words)")
    for n, table in tables.items():
        texts = table.writes(vocabulary, text[:1], 120)
        seen, real = seen_before(table, last[:, -n:]), word_shares(texts, known)[0]
        print(f"{n:10} {table.bits(held_out):6.2f} {seen:13.0%} {real:12.0%}   {texts[0][:58]}")
    print(f"{'the GPT':>10} {watch.bits[-1]:6.2f} {'':13} {watch.shares[-1]:12.0%}   {watch.texts[-1][:58]}")


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
