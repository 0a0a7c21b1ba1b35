"""Ids: characters to ids and back, and the special ids for padding, begin and end."""

import string
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Ids, as_ids, as_integer, as_size

Pair = tuple[Ids, Ids]

PAD, BOS, EOS = 0, 1, 2  # padding, begin of sequence, end of sequence
FIRST_SYMBOL = 3


class Vocabulary:
    """Characters ↔ ids. The characters have the ids from 3 on, in the order in which they are given.

    Raises:
        ValueError: there is no character, or one appears twice.
    """

    def __init__(self, characters: Iterable[str]) -> None:
        self.characters = "".join(characters)
        if not self.characters:
            raise ValueError("characters is empty; give each character of the text once: sorted(set(text))")
        for character, count in Counter(self.characters).items():
            if count > 1:
                raise ValueError(f"characters holds {character!r} {count} times; give each once: sorted(set(text))")
        self._ids = {character: id_ for id_, character in enumerate(self.characters, FIRST_SYMBOL)}

    def __len__(self) -> int:
        """Return V, the number of ids, padding, begin and end included."""
        return FIRST_SYMBOL + len(self.characters)

    def encode(self, text: str) -> Ids:
        """Return the ids of the characters of `text`, shape (T,), without begin and end.

        Raises:
            ValueError: a character is not in the vocabulary.
        """
        try:
            return np.array([self._ids[character] for character in text], dtype=np.int64)
        except KeyError as error:
            character = error.args[0]
            raise ValueError(
                f"the character {character!r} at position {text.index(character)} is not in the vocabulary, which "
                f"has {self.characters!r}"
            ) from None

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of ids, shape (T,), up to the first end. Padding and begin are left out.

        Raises:
            ValueError: ids are not integers 0…V − 1, or have more than one axis.
        """
        text = []
        for id_ in as_ids(ids, "ids", len(self), ndim=1).tolist():
            if id_ == EOS:
                break
            if id_ >= FIRST_SYMBOL:
                text.append(self.characters[id_ - FIRST_SYMBOL])
        return "".join(text)


def letters(num_symbols: int = 26) -> Vocabulary:
    """Return a vocabulary to read the tasks of symbols with: the first `num_symbols` of a…z, A…Z, 0…9."""
    num_symbols = as_size(num_symbols, "num_symbols")
    alphabet = string.ascii_letters + string.digits
    if num_symbols > len(alphabet):
        raise ValueError(f"num_symbols={num_symbols} is more than there are letters and digits, {len(alphabet)}")
    return Vocabulary(alphabet[:num_symbols])


def with_ends(target: ArrayLike) -> Ids:
    """Put begin in front and end behind: (B, T) → (B, T + 2). A decoder reads `[:, :-1]` and predicts `[:, 1:]`."""
    target = as_ids(target, "target", ndim=2)
    return np.pad(target, ((0, 0), (1, 1)), constant_values=((0, 0), (BOS, EOS)))


def pad(sequences: Sequence[ArrayLike], value: int = PAD) -> Pair:
    """Put sequences of different lengths into one array, filled up with `value` behind their ends.

    Returns:
        ids (B, T), where T is the longest length, and lengths (B,).

    Raises:
        ValueError: there are no sequences, or one of them is not a row of integers.
    """
    value = as_integer(value, "value")
    rows = [as_ids(sequence, f"sequences[{i}]", ndim=1) for i, sequence in enumerate(sequences)]
    if not rows:
        raise ValueError("sequences is empty; a batch needs at least one")
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), lengths.max()), value, dtype=np.int64)
    for row, filled in zip(rows, ids, strict=True):
        filled[: len(row)] = row
    return ids, lengths
