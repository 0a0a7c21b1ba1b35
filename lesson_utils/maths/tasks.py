"""What the models learn: small tasks made up on the spot, and a text that comes with the course.

Each task is a function that draws a batch from a `Generator`. Tokens are whole numbers; 0, 1 and 2 are padding, begin
and end, and symbols follow from 3 on. A model that knows `num_symbols` symbols has a vocabulary of `num_symbols` + 3.
"""

import functools
import math
import os
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesson_utils.maths.checks import as_size

Ids = NDArray[np.integer[Any]]
Pair = tuple[Ids, Ids]

PAD, BOS, EOS = 0, 1, 2  # padding, begin of sequence, end of sequence
FIRST_SYMBOL = 3


class Vocabulary:
    """Characters ↔ ids; the characters have the ids from 3 on, in the order in which they are given.

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
        """V: how many ids there are, padding, begin and end among them."""
        return FIRST_SYMBOL + len(self.characters)

    def encode(self, text: str) -> Ids:
        """The ids of the characters of `text`, shape (T,); no begin, no end.

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
        """The text of ids, shape (T,), up to the first end; padding and begin are left out.

        Raises:
            ValueError: ids are not integers 0…V − 1, or have more than one axis.
        """
        ids = _as_ids(ids, "ids")
        if ((ids < 0) | (ids >= len(self))).any():
            raise ValueError(f"ids must lie in 0…{len(self) - 1}; got values from {ids.min()} to {ids.max()}")
        text = []
        for id_ in ids.tolist():
            if id_ == EOS:
                break
            if id_ >= FIRST_SYMBOL:
                text.append(self.characters[id_ - FIRST_SYMBOL])
        return "".join(text)


def letters(num_symbols: int = 26) -> Vocabulary:
    """For reading the tasks of symbols: the first `num_symbols` of a…z, A…Z, 0…9."""
    num_symbols = as_size(num_symbols, "num_symbols")
    alphabet = string.ascii_letters + string.digits
    if num_symbols > len(alphabet):
        raise ValueError(f"num_symbols={num_symbols} is more than there are letters and digits, {len(alphabet)}")
    return Vocabulary(alphabet[:num_symbols])


def reversal(rng: np.random.Generator, batch: int, length: int, num_symbols: int = 26) -> Pair:
    """Say it backwards: the first output needs the last input, so nothing may be forgotten.

    Returns:
        source and target, each (B, T), without begin and end (see `with_ends`).
    """
    source = _symbols(rng, (as_size(batch, "batch"), as_size(length, "length")), num_symbols)
    return source, np.ascontiguousarray(source[:, ::-1])


def reversal_batches(
    batch: int = 64, shortest: int = 3, longest: int = 20, num_symbols: int = 26
) -> Callable[[np.random.Generator], Pair]:
    """For `training.fit`: batches of `reversal`, each of one length, drawn from `shortest` … `longest`.

    One length a batch needs no padding.
    """
    shortest, longest = as_size(shortest, "shortest"), as_size(longest, "longest")
    if shortest > longest:
        raise ValueError(f"shortest={shortest} is larger than longest={longest}")
    return lambda rng: reversal(rng, batch, int(rng.integers(shortest, longest + 1)), num_symbols)


def with_ends(target: ArrayLike) -> Ids:
    """(B, T) → (B, T + 2): begin in front, end behind. A decoder reads `[:, :-1]` and predicts `[:, 1:]`."""
    target = _as_ids(target, "target", ndim=2)
    return np.pad(target, ((0, 0), (1, 1)), constant_values=((0, 0), (BOS, EOS)))


def scattered_offsets(T: int, k: int) -> tuple[int, ...]:
    """k different offsets in 0…T − 1, neither neighbours nor evenly spread over the circle; the same each time."""
    T, k = as_size(T, "T"), as_size(k, "k")
    if k > T:
        raise ValueError(f"k={k} is more than T={T}, the number of different offsets; try k={T}")
    step = next(n for n in range(round(0.38 * T) or 1, T + 1) if math.gcd(n, T) == 1)
    return tuple((1 + i * step) % T for i in range(k))


def gather(
    rng: np.random.Generator,
    batch: int,
    T: int = 24,
    k: int = 4,
    num_symbols: int = 20,
    offsets: Sequence[int] | None = None,
) -> Pair:
    """Every position reports the symbols at k fixed places, counted from itself, around the circle.

    One head looks at one weighted average; k places ask for k looks.

    Args:
        offsets: k of them; position t reports position (t + offset) mod T. Default: `scattered_offsets(T, k)`.

    Returns:
        source (B, T) and target (B, T, k).

    Raises:
        ValueError: a size is not positive, or offsets are not k different places.
    """
    T, k = as_size(T, "T"), as_size(k, "k")
    places = np.array(scattered_offsets(T, k) if offsets is None else [as_size(o, "offset", -T) for o in offsets]) % T
    if len(places) != k or len(set(places.tolist())) != k:
        raise ValueError(f"offsets={offsets} must be k={k} different places on a circle of T={T}")
    source = _symbols(rng, (as_size(batch, "batch"), T), num_symbols)
    return source, source[:, (np.arange(T)[:, None] + places) % T]  # (B, T), (B, T, k)


# Not from Python's own formats: the names these give depend on the language of the machine.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
FIRST_DAY, LAST_DAY = date(1950, 1, 1), date(2049, 12, 31)
DATE_STYLES = ("3 March 2021", "March 3, 2021", "3/3/2021", "Wed 3 Mar 2021")  # with a slash, the day comes first

WRITTEN = Vocabulary(sorted(set("".join(MONTHS + WEEKDAYS) + string.digits + " ,/")))
ISO = Vocabulary("-" + string.digits)


def held_out(day: date) -> bool:
    """Every 10th day is kept for testing, in whatever style it is written."""
    return day.toordinal() % 10 == 0


def write_date(day: date, style: int) -> str:
    """A date in one of the four `DATE_STYLES`, 0…3."""
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    if as_size(style, "style", minimum=0) >= len(DATE_STYLES):
        raise ValueError(f"style={style} must be one of 0…{len(DATE_STYLES) - 1}, for {', '.join(DATE_STYLES)}")
    return (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day}/{day.month}/{day.year}",
        f"{weekday} {day.day} {month[:3]} {day.year}",
    )[style]


def date_pairs(rng: np.random.Generator, batch: int, held_out: bool = False) -> list[tuple[str, str]]:
    """Pairs to read: ("3 March 2021", "2021-03-03").

    Args:
        held_out: draw from the days that are never trained on, or (default) only from the others.
    """
    days = [date.fromordinal(n) for n in rng.choice(_ordinals(held_out), as_size(batch, "batch")).tolist()]
    styles = rng.integers(len(DATE_STYLES), size=len(days)).tolist()
    return [(write_date(day, style), day.isoformat()) for day, style in zip(days, styles, strict=True)]


def encode_dates(pairs: Sequence[tuple[str, str]]) -> tuple[Ids, Ids, Ids]:
    """Pairs of strings as a batch: source (B, T), padded; its lengths (B,); target (B, 12), with begin and end."""
    source, lengths = pad([WRITTEN.encode(written) for written, _ in pairs], PAD)
    return source, lengths, with_ends(np.stack([ISO.encode(iso) for _, iso in pairs]))


def dates(rng: np.random.Generator, batch: int, held_out: bool = False) -> tuple[Ids, Ids, Ids]:
    """Dates as people write them → dates as computers do: "March 3, 2021" → "2021-03-03".

    Args:
        held_out: draw from the days that are never trained on, or (default) only from the others.

    Returns:
        source (B, T), padded, to be read with `WRITTEN.decode`; its lengths (B,); target (B, 12), with begin and
        end, to be read with `ISO.decode`.
    """
    return encode_dates(date_pairs(rng, batch, held_out))


def pad(sequences: Sequence[ArrayLike], value: int = PAD) -> Pair:
    """Sequences of different lengths in one array, filled up with `value` behind their ends.

    Returns:
        ids (B, T), where T is the longest length, and lengths (B,).

    Raises:
        ValueError: there are no sequences, or one of them is not a row of integers.
    """
    rows = [_as_ids(sequence, f"sequences[{i}]") for i, sequence in enumerate(sequences)]
    if not rows:
        raise ValueError("sequences is empty; a batch needs at least one")
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), lengths.max()), value, dtype=np.int64)
    for row, filled in zip(rows, ids, strict=True):
        filled[: len(row)] = row
    return ids, lengths


def python_text() -> str:
    """Python's language reference, 465,126 characters: what `help("if")` and its like show in Python 3.11.

    A copy that comes with the course, so that what a model learns from it does not depend on the Python at hand.
    """
    return (files("lesson_utils.maths") / "python_3.11_topics.txt").read_text(encoding="utf-8")


def read_text(path: str | os.PathLike[str], minimum: int = 1000) -> str:
    """A text file of your own, in UTF-8.

    Args:
        minimum: fewer characters are refused: nothing can be learnt from them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is a folder, is not text, or is too short.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path} in {Path.cwd()}; give its full path, or upload it there")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a text file in it")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 (byte {error.start}); in an editor, save it as plain text, encoding UTF-8"
        ) from None
    if "\0" in text:
        raise ValueError(f"{path} is not text: it holds zero bytes; give a plain text file (.txt, .md, .py)")
    if len(text) < minimum:
        has = f"has {len(text)} characters" if text else "is empty"
        raise ValueError(f"{path} {has}; a model needs at least {minimum} to learn from")
    return text


def text_vocabulary(text: str) -> Vocabulary:
    """The characters that appear in a text."""
    return Vocabulary(sorted(set(text)))


def split_text(ids: ArrayLike, validation: float = 0.1) -> Pair:
    """The first part to train on, the last part to validate on: no character is in both."""
    ids = _as_ids(ids, "ids")
    if not 0 < validation < 1:
        raise ValueError(f"validation={validation} must lie between 0 and 1; try 0.1")
    cut = len(ids) - math.ceil(validation * len(ids))
    return ids[:cut], ids[cut:]


def text_batches(ids: ArrayLike, T: SupportsIndex, batch: SupportsIndex, rng: np.random.Generator) -> Pair:
    """Windows from random places of a text; what is to be predicted is the next character.

    Returns:
        x and y, each (B, T), with y[:, t] the character after x[:, t].

    Raises:
        ValueError: the text has fewer than T + 1 characters.
    """
    ids, T, batch = _as_ids(ids, "ids"), as_size(T, "T"), as_size(batch, "batch")
    if len(ids) <= T:
        raise ValueError(f"ids has {len(ids)} characters; windows of T={T} and the one after need at least {T + 1}")
    starts = rng.integers(len(ids) - T, size=batch)
    windows = ids[starts[:, None] + np.arange(T + 1)]  # (B, T + 1)
    return windows[:, :-1], windows[:, 1:]


def unigram_entropy(ids: ArrayLike) -> float:
    """Bits a character that are left if all one knows is how frequent each is: −Σ p log₂ p.

    A model that has not gone below it has learnt nothing about order.
    """
    ids = _as_ids(ids, "ids")
    if not len(ids):
        raise ValueError("ids is empty; frequencies need at least one character")
    p = np.unique(ids, return_counts=True)[1] / len(ids)
    return abs(float((p * np.log2(p)).sum()))


@functools.cache
def _ordinals(held: bool) -> Ids:
    """The days that are held out, or the others, as Python numbers them."""
    every_day = range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1)
    return np.array([n for n in every_day if held_out(date.fromordinal(n)) == held])


def _symbols(rng: np.random.Generator, shape: tuple[int, int], num_symbols: int) -> Ids:
    return rng.integers(FIRST_SYMBOL, FIRST_SYMBOL + as_size(num_symbols, "num_symbols"), size=shape)


def _as_ids(ids: ArrayLike, name: str, ndim: int = 1) -> Ids:
    array = np.asarray(ids)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # an empty list
    if array.dtype.kind not in "iu" or array.ndim != ndim:
        expected = "(T,)" if ndim == 1 else "(B, T)"
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}; expected integers of shape {expected}")
    return array
