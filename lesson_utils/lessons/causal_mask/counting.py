"""A language model without training: a table of which character followed the last n, counted."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lesson_utils.classroom import tables
from lesson_utils.lessons.causal_mask.gpts import Seen, known_words, read, uncertain, word_shares, words_in
from lesson_utils.maths import models, ops, tasks
from lesson_utils.maths.checks import Array, Ids

LONGEST = 7  # a context and the next character must fit into 64 bits


class Counted(NamedTuple):
    """The counts behind each context of one length; contexts and pairs are written as single numbers, in order."""

    contexts: Ids
    totals: Ids  # of all characters that followed it
    kinds: Ids  # how many different characters followed it
    pairs: Ids  # a context and the next character
    counts: Ids
    discount: float  # what is taken from each count


class Table:
    """A table of the characters that followed the last n ones, for each n from 0 to `order`.

    A little is taken from every count, and goes to the prediction from the context that is one character shorter. In
    shorter contexts it does not count how often a character came, but before how many different longer contexts.

    Args:
        ids: the text to count, (T,).
        order: how many characters a context has at most, up to 7.
        V: how many symbols there are.
        shorter: the table of one character less, which reads contexts that are shorter, as at the beginning of a
            window. Default: it is counted, too.

    Source: Kneser & Ney (1995), interpolated as by Chen & Goodman (1999), with one discount for each length.
    """

    def __init__(self, ids: Ids, order: int, V: int, shorter: "Table | None" = None) -> None:
        if not 0 <= order <= LONGEST:
            raise ValueError(f"order={order} must lie between 0 and {LONGEST}")
        self.order, self.V = order, V
        self.shorter = shorter or (Table(ids, order - 1, V) if order else None)
        occurrences = sum(
            (np.asarray(ids[i : len(ids) - order + i], np.int64) * V ** (order - i) for i in range(order + 1)),
            np.zeros(1, np.int64),
        )
        counted = [_counted(occurrences, V)]
        for n in reversed(range(order)):
            counted.append(_counted(counted[-1].pairs % V ** (n + 1), V))  # each longer context counts once
        self.counted = counted[::-1]

    def probabilities(self, contexts: Ids, symbols: "Ids | None" = None) -> Array:
        """Return the probability of each symbol (N, k), by default of all V: contexts (N, n) → (N, k).

        More than the last `order` characters are not read.
        """
        contexts = np.asarray(contexts, np.int64)
        N, n = contexts.shape
        if self.shorter and n < self.order:
            return self.shorter.probabilities(contexts, symbols)
        symbols = np.arange(self.V)[None] if symbols is None else symbols
        p = np.full((N, symbols.shape[1]), 1 / self.V)
        code = np.zeros(N, np.int64)
        for back in range(self.order + 1):
            if back:
                code = code + contexts[:, -back] * self.V ** (back - 1)
            c = self.counted[back]
            total, kinds = (_looked_up(c.contexts, values, code)[:, None] for values in (c.totals, c.kinds))
            count = _looked_up(c.pairs, c.counts, code[:, None] * self.V + symbols)  # (N, k)
            kept = np.maximum(count - c.discount, 0)
            p = np.where(total > 0, (kept + c.discount * kinds * p) / np.maximum(total, 1), p)
        return p

    def answers(self, batch: tuple[Ids, Ids]) -> Array:
        """Return the probability of each target: x, y (B, T) → (B, T). The table reads what a GPT reads, or less."""
        x, y = batch
        found = [
            self.probabilities(x[:, max(0, t + 1 - self.order) : t + 1], y[:, t : t + 1]) for t in range(x.shape[1])
        ]
        return np.concatenate(found, axis=1)

    def window_bits(self, batch: tuple[Ids, Ids]) -> Array:
        """Return the mean loss of each window in bits a character: x, y (B, T) → (B,)."""
        return np.asarray(-np.log2(self.answers(batch)).mean(axis=1))

    def bits(self, batch: tuple[Ids, Ids]) -> float:
        """Return the mean loss in bits a character on windows x, y, each (B, T)."""
        return float(self.window_bits(batch).mean())

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


def count(ids: Ids, longest: int, V: int) -> dict[int, Table]:
    """Count the tables of 1 to `longest` characters of a text (T,), by their order."""
    ngrams: dict[int, Table] = {}
    for order in range(1, longest + 1):
        ngrams[order] = Table(ids, order, V, ngrams.get(order - 1))
    return ngrams


def seen_before(table: Table, contexts: Ids) -> float:
    """Return the share of contexts (N, n) that occurred in the text that the table has counted; n is its order."""
    code = (np.asarray(contexts, np.int64) * table.V ** np.arange(contexts.shape[1])[::-1]).sum(axis=1)
    c = table.counted[contexts.shape[1]]
    return float((_looked_up(c.contexts, c.totals, code) > 0).mean())


def beside_gpt(
    ngrams: Mapping[int, Table],
    held_out: tuple[Ids, Ids],
    vocabulary: tasks.Vocabulary,
    text: str,
    gpt: Array,
    watch: Seen,
) -> tables.Table:
    """List for each table its loss, how much of what it meets it has seen, and what it writes; then the GPT.

    Args:
        held_out: windows x and y, each (B, T).
        gpt: the GPT's loss on each of these windows, in bits, (B,).
    """
    known, last = known_words(text), held_out[0][:, -LONGEST:]  # (B, 7): the ends of the windows
    found, rows = {}, []
    for n, table in ngrams.items():
        texts = table.writes(vocabulary, text[:1], 120)
        seen, real = seen_before(table, last[:, -n:]), word_shares(texts, known)[0]
        found[n] = table.window_bits(held_out)
        rows.append((f"table of {n}", found[n].mean(), f"{seen:.0%}", real, texts[0][:58]))
    rows.append(("the GPT", gpt.mean(), "", watch.shares[-1], watch.texts[-1][:58]))
    best = min(found, key=lambda n: found[n].mean())
    lead = gpt - found[best]  # (B,)
    print(f"The table of {best} needs {lead.mean():.3f} ± {uncertain(lead):.3f} bits less than the GPT.")
    head = ("model", "bits", "seen before", "real words", "what it writes (of 8 texts, the one with most words)")
    return tables.table(head, rows, ("", ".2f", "", ".0%", ""))


def _counted(occurrences: Ids, V: int) -> Counted:
    """Count pairs of a context and the next character, each written as context · V + character."""
    pairs, counts = np.unique(occurrences, return_counts=True)
    contexts, at, kinds = np.unique(pairs // V, return_index=True, return_counts=True)
    once, twice = (int((counts == n).sum()) for n in (1, 2))
    discount = once / (once + 2 * twice) if once and twice else 0.5
    return Counted(contexts, np.add.reduceat(counts, at), kinds, pairs, counts, discount)


def _looked_up(names: Ids, values: Ids, wanted: Ids) -> Ids:
    """Return the value of each wanted name, 0 where there is none; names are in order."""
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[at] == wanted, values[at], 0)


# --- The loss by the number of characters that a model may read -------------------------------------------------------

LENGTHS = (1, 2, 3, 4, 6, 7, 8, 12, 16, 32, 63, 64)
STRETCHES = 60


def by_context(
    model: models.GPT | Table,
    ids: Ids,
    lengths: Sequence[int] = LENGTHS,
    beside: models.GPT | Table | None = None,
    places: int = 6000,
) -> Array:
    """Measure the loss in bits on the same characters of a text, with the last n characters to read, for each n.

    Neighbouring characters are alike in how hard they are. So the places are gathered in 60 stretches of the text,
    whose means vary as means of independent places would.

    Args:
        beside: another model, which reads all that it can: the loss is then that of the mean of both probabilities.

    Returns:
        the mean of each stretch, (lengths, 60).
    """
    longest = max(LENGTHS)
    at = np.linspace(longest, len(ids) - 1, places // STRETCHES * STRETCHES).astype(int)
    whole, target = ids[at[:, None] + np.arange(-longest, 0)], ids[at][:, None]
    known = _said(beside, whole, target) if beside else None
    found = []
    for n in lengths:
        p = _said(model, whole[:, -n:], target)
        p = p if known is None else (p + known) / 2
        found.append(-np.log2(np.maximum(p, 1e-30)).reshape(STRETCHES, -1).mean(axis=1))
    return np.array(found)


def _said(model: models.GPT | Table, contexts: Ids, target: Ids) -> Array:
    """Return the probability that a model gives to what comes next: contexts (N, n), target (N, 1) → (N, 1)."""
    if isinstance(model, Table):
        return model.probabilities(contexts, target)
    parts = np.array_split(contexts, max(1, len(contexts) // 500))
    every = np.concatenate([ops.softmax(model.forward(part, last=True)[0][:, -1]) for part in parts])
    return np.take_along_axis(every, target, axis=1).astype(float)
