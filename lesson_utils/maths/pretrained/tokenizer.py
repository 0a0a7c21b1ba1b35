"""Text ↔ ids, as a model was trained to read it: byte-level byte-pair encoding, with the pieces of its own file.

A text is cut into words, a word into bytes, and neighbours are joined, the pair that was most frequent in training
first, until no known pair is left. Every text is bytes, so no word is ever unknown, and decoding gives the text back.

Source: Sennrich et al. (2016), section 3.2, for joining pairs; Radford et al. (2019), section 2.2, for bytes and words.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Ids, as_ids

# Words, by the rules of GPT-2: 's and its like; letters, with the space before them; digits; other signs; spaces, the
# last of which is left for the word that follows. For a text that `_in_ascii` has made.
_WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-zé]+| ?[0-9]+| ?[^\sA-Za-zé0-9]+|\s+(?!\S)|\s+")
_SINGLE_DIGITS = re.compile("[0-9]|[^0-9]+")
RULES = {"smollm": _SINGLE_DIGITS, "gpt-2": None}  # what a text is cut by before it is cut into words
_CONTROL = 3  # the kind of token that no text is cut into


class Tokenizer:
    """Made from the facts of a GGUF: `Tokenizer(reader.facts)`.

    `len(tokenizer)` is V. `tokenizer.special` has the ids of tokens that stand for no text, such as "<|im_end|>".

    Raises:
        ValueError: the facts describe no tokenizer, or one of another kind.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        kind, rules = facts.get("tokenizer.ggml.model"), facts.get("tokenizer.ggml.pre")
        if kind != "gpt2" or rules not in list(RULES):
            known = " or ".join(map(repr, RULES))
            raise ValueError(f"this file's tokenizer is {kind!r} with rules {rules!r}; known is 'gpt2' with {known}")
        self._first_cut = RULES[rules]
        tokens, merges, kinds = (facts.get(f"tokenizer.ggml.{name}") for name in ("tokens", "merges", "token_type"))
        if not (isinstance(tokens, list) and isinstance(merges, list) and isinstance(kinds, list)):
            raise ValueError("this file's tokenizer is incomplete: tokens, merges or token_type is missing")
        if not all(isinstance(text, str) for text in (*tokens, *merges)):
            raise ValueError("this file's tokenizer contradicts itself: a token or a merge is no text")
        if len(kinds) != len(tokens) or len(set(tokens)) != len(tokens):
            raise ValueError("this file's tokenizer contradicts itself: each token is expected once, and with its kind")
        self._ids = {token: id_ for id_, token in enumerate(tokens)}
        self.special = {token: id_ for id_, (token, of) in enumerate(zip(tokens, kinds, strict=True)) if of == _CONTROL}
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        unknown = [merge for merge in self._ranks if "".join(merge) not in self._ids]
        if unknown:
            raise ValueError(f"this file's tokenizer contradicts itself: {unknown[0]!r} is no token")
        try:
            self._bytes = [t.encode() if t in self.special else bytes(_BYTES[c] for c in t) for t in tokens]
        except KeyError as error:
            raise ValueError(
                f"this file's tokenizer has a token with {error.args[0]!r}: it stands for no byte"
            ) from None
        self._pieces = functools.lru_cache(maxsize=10_000)(self._join)  # words come again

    def __len__(self) -> int:
        return len(self._bytes)

    def encode(self, text: str, special: bool = False) -> Ids:
        """Return the ids of a text, shape (T,).

        Args:
            special: True: names of special tokens in the text, such as "<|im_end|>", are those tokens. Otherwise they
                are text like any other; so a learner's text cannot end a model's turn.

        Raises:
            ValueError: the text holds a byte that has no token, as some rare control characters do; or half a character
                (a lone surrogate).
        """
        parts = [text]
        if special and self.special:
            parts = re.split(f"({'|'.join(map(re.escape, self.special))})", text)
        ids: list[int] = []
        for part in parts:
            if special and part in self.special:
                ids.append(self.special[part])
            else:
                for word in self._words(part):
                    ids += self._pieces(word)
        return np.array(ids, np.int64)

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of ids, (T,). Where they end within a character, or have bytes that are no text, � stands.

        Raises:
            ValueError: ids are no whole numbers from 0 to V − 1.
        """
        return self.bytes_of(ids).decode(errors="replace")

    def tokens(self, ids: ArrayLike) -> list[str]:
        """Return the text of each id, for labels; � for a part of a character."""
        return [piece.decode(errors="replace") for piece in self._all_bytes(ids)]

    def bytes_of(self, ids: ArrayLike) -> bytes:
        """Return the bytes of ids, before they are made text: an end within a character is left as it is."""
        return b"".join(self._all_bytes(ids))

    def _all_bytes(self, ids: ArrayLike) -> list[bytes]:
        return [self._bytes[id_] for id_ in as_ids(ids, "ids", len(self), ndim=1)]

    def _words(self, text: str) -> Iterable[str]:
        """Cut a text, so that nothing is joined across the cuts."""
        ascii_ = _in_ascii(text)
        parts = self._first_cut.finditer(ascii_) if self._first_cut else [re.match("(?s).*", ascii_)]
        for part in parts:
            assert part is not None  # every text matches .*
            for word in _WORDS.finditer(ascii_[part.start() : part.end()]):
                yield text[part.start() + word.start() : part.start() + word.end()]

    def _join(self, word: str) -> list[int]:
        """Return the ids of a word: its bytes, neighbours joined, the most frequent pair first."""
        try:
            pieces = [_SIGNS[byte] for byte in word.encode()]
        except UnicodeEncodeError:
            raise ValueError(f"the text holds half a character, {word!r}; give text that UTF-8 can write") from None
        while len(pieces) > 1:
            ranks = [self._ranks.get(pair, len(self._ranks)) for pair in pairwise(pieces)]
            best = min(ranks)
            if best == len(self._ranks):
                break
            joined, at = [], 0
            while at < len(pieces):
                together = at < len(ranks) and ranks[at] == best
                joined.append("".join(pieces[at : at + 2]) if together else pieces[at])
                at += 1 + together
            pieces = joined
        try:
            return [self._ids[piece] for piece in pieces]
        except KeyError as error:
            byte = _BYTES[error.args[0]]
            raise ValueError(
                f"{word!r} holds the byte {byte}, for which this model has no token; leave it out"
            ) from None


def _in_ascii(text: str) -> str:
    """Replace signs outside ASCII: é stands for a letter, 0 for a number and # for any other sign.

    Python's regular expressions don't know Unicode's kinds of characters; these few they can tell apart.
    """
    return "".join(c if " " <= c < "\x7f" or c in "\t\n\v\f\r" else _stand_in(c) for c in text)


@functools.cache
def _stand_in(character: str) -> str:
    if character.isspace() and not "\x1c" <= character <= "\x1f":
        return "\v"
    return {"L": "é", "N": "0"}.get(unicodedata.category(character)[0], "#")


def _signs() -> list[str]:
    """Return a printable character for each byte, in GPT-2's order: its own if it has one, else one from 256 on."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte if byte in own else next(others)) for byte in range(256)]


_SIGNS = _signs()
_BYTES = {sign: byte for byte, sign in enumerate(_SIGNS)}
