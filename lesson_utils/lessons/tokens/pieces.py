"""Byte-pair encoding: learn which neighbours to merge, cut a text into the pieces, and put it together again.

A text is an array of ids. Ids below `base` are its characters (or bytes); each merge adds one id behind them.

Source: Gage (1994), for the compression of files; Sennrich et al. (2016), section 3.2, for language models.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from lesson_utils.maths.checks import Ids, as_size

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
    _wall_off(counts, wall)
    largest, pairs = counts.max(axis=1), []
    for new in range(base, size):
        first = int(largest.argmax())
        if largest[first] < 2:
            break
        pair = first, int(counts[first].argmax())
        pairs.append(pair)
        merged = merge_pairs(ids, pair, new)
        touched = _recount(counts, ids, merged, pair, new)
        _wall_off(counts, wall)
        largest[touched] = counts[touched].max(axis=1)
        ids = merged
    return np.array(pairs, np.int64).reshape(-1, 2)


def _wall_off(counts: Ids, wall: int | None) -> None:
    if wall is not None:
        counts[wall] = counts[:, wall] = 0


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


def expanded(ids: Ids, merges: Ids, base: int) -> Ids:
    """Return a text as it was before any merge."""
    inside = [[n] for n in range(base)]
    for first, second in merges:
        inside.append(inside[first] + inside[second])
    return np.array([n for id_ in ids for n in inside[id_]], np.int64)


def spelled(merges: Ids, characters: Sequence[str]) -> list[str]:
    """Return the text of every piece: `characters` has that of each id below the first merge."""
    names = list(characters)
    for first, second in merges:
        names.append(names[first] + names[second])
    return names
