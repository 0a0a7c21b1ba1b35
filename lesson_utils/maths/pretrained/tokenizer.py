"""Text ↔ ids, as a model was trained to read it: byte-level byte-pair encoding, with the pieces of its own file.

A text is cut into words, a word into bytes, and neighbours are joined, the pair that was most frequent in training
first, until no known pair is left. Every text is bytes, so no word is ever unknown, and decoding gives the text back.

Older Llamas join characters instead (`SentencePiece`): a space is a character like any other, and only what has no
piece of its own is written as bytes.

Source: Sennrich et al. (2016), section 3.2, for joining pairs; Radford et al. (2019), section 2.2, for bytes and words;
Kudo and Richardson (2018) for SentencePiece.
"""

import functools
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Ids, as_ids

Pair = tuple[str, str]


class Rules(NamedTuple):
    """How a text is cut into words: by `first`, then by `words`.

    whole: a word that is a token is that token, however its pairs were learnt. composed: é becomes one character first.
    """

    words: "re.Pattern[str]"
    first: "re.Pattern[str] | None" = None
    whole: bool = False
    composed: bool = False


# Words, by the rules of GPT-2: 's and its like; letters, with the space before them; digits; other signs; spaces, the
# last of which is left for the word that follows. For a text that `_in_ascii` has made.
_L, _N = "A-Za-zéſ", "0-9"
_GPT2 = re.compile(rf"'(?:s|t|re|ve|m|ll|d)| ?[{_L}]+| ?[{_N}]+| ?[^\s{_L}{_N}]+|\s+(?!\S)|\s+")


def _later(digits: str) -> "re.Pattern[str]":
    """Return the rules of Llama 3 and Qwen2: any sign may stand before a word, and line ends are words."""
    return re.compile(
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n{_L}{_N}]?[{_L}]+|[{_N}]{digits}| ?[^\s{_L}{_N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


RULES = {
    "gpt-2": Rules(_GPT2),
    "smollm": Rules(_GPT2, first=re.compile(f"[{_N}]|[^{_N}]+")),  # each digit alone
    "llama-bpe": Rules(_later("{1,3}"), whole=True),
    "qwen2": Rules(_later(""), composed=True),
    "deepseek-r1-qwen": Rules(_later("")),
}
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)  # kinds of tokens in a GGUF
AS_WRITTEN = (UNKNOWN, CONTROL, USER, UNUSED, BYTE)  # their names are no signs that stand for bytes
UNSAID = math.inf  # the rank of a pair that was never joined


class Tokenizer:
    """Made from the facts of a file: `Tokenizer(reader.facts)`, or `of(reader.facts)` where its kind is not known.

    `len(tokenizer)` is V. `tokenizer.special` has the ids of tokens that stand for no text, such as "<|im_end|>".
    `tokenizer.begin` are the ids that this model was trained to find before every text, mostly none.

    Raises:
        ValueError: the facts describe no tokenizer, or one of another kind.
    """

    kind, rules_are = "gpt2", tuple(RULES)

    def __init__(self, facts: Mapping[str, Any]) -> None:
        kind, rules = facts.get("tokenizer.ggml.model"), facts.get("tokenizer.ggml.pre")
        if kind != self.kind or (self.rules_are and rules not in list(self.rules_are)):
            known = " or ".join(map(repr, RULES))
            raise ValueError(
                f"this file's tokenizer is {kind!r} with rules {rules!r}; known are 'gpt2' with {known}, and 'llama'"
            )
        tokens, kinds = (facts.get(f"tokenizer.ggml.{name}") for name in ("tokens", "token_type"))
        if not (isinstance(tokens, list) and isinstance(kinds, list)):
            raise ValueError("this file's tokenizer is incomplete: tokens, merges or token_type is missing")
        if not all(isinstance(text, str) for text in tokens):
            raise ValueError("this file's tokenizer contradicts itself: a token or a merge is no text")
        if len(kinds) != len(tokens) or len(set(tokens)) != len(tokens):
            raise ValueError("this file's tokenizer contradicts itself: each token is expected once, and with its kind")
        of_kind = list(zip(tokens, kinds, strict=True))
        self._ids = {token: id_ for id_, token in enumerate(tokens)}
        self.special = {token: id_ for id_, (token, of) in enumerate(of_kind) if of in (UNKNOWN, CONTROL)}
        self._always = [token for token, of in of_kind if of == USER and token]  # no other piece is made of these
        usual = kind == "llama" or rules == "llama-bpe"
        begin = facts.get("tokenizer.ggml.bos_token_id") if facts.get("tokenizer.ggml.add_bos_token", usual) else None
        self.begin = [] if begin is None else as_ids([begin], "the first token of texts", len(tokens), 1).tolist()
        self._learn(facts, of_kind)
        self._pieces = functools.lru_cache(maxsize=10_000)(self._join)  # words come again

    def _learn(self, facts: Mapping[str, Any], of_kind: list[tuple[str, Any]]) -> None:
        """Keep how a text is cut, the order in which pairs are joined, and the bytes of each token."""
        rules, merges = RULES[facts["tokenizer.ggml.pre"]], facts.get("tokenizer.ggml.merges")
        self._rules = rules._replace(whole=bool(facts.get("tokenizer.ggml.ignore_merges", rules.whole)))
        if not isinstance(merges, list):
            raise ValueError("this file's tokenizer is incomplete: tokens, merges or token_type is missing")
        if not all(isinstance(text, str) for text in merges):
            raise ValueError("this file's tokenizer contradicts itself: a token or a merge is no text")
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        if unknown := [merge for merge in self._ranks if "".join(merge) not in self._ids]:
            raise ValueError(f"this file's tokenizer contradicts itself: {unknown[0]!r} is no token")
        try:
            self._bytes = [t.encode() if of in AS_WRITTEN else bytes(_BYTES[c] for c in t) for t, of in of_kind]
        except KeyError as error:
            wrong = error.args[0]
            raise ValueError(f"this file's tokenizer has a token with {wrong!r}: it stands for no byte") from None

    def __len__(self) -> int:
        return len(self._bytes)

    def encode(self, text: str, special: bool = False) -> Ids:
        """Return the ids of a text, shape (T,), without those of `begin`.

        Args:
            special: True: names of special tokens in the text, such as "<|im_end|>", are those tokens. Otherwise they
                are text like any other; so a learner's text cannot end a model's turn.

        Raises:
            ValueError: the text holds a byte that has no token, as some rare control characters do; or half a character
                (a lone surrogate).
        """
        names = sorted([*self._always, *(self.special if special else ())], key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]
        ids: list[int] = []
        for i, part in enumerate(parts):
            if i % 2:  # a name
                ids.append(self._ids[part])
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
        if self._rules.composed:
            text = unicodedata.normalize("NFC", text)
        ascii_ = _in_ascii(text)
        parts = self._rules.first.finditer(ascii_) if self._rules.first else [re.match("(?s).*", ascii_)]
        for part in parts:
            assert part is not None  # every text matches .*
            for word in self._rules.words.finditer(ascii_[part.start() : part.end()]):
                yield text[part.start() + word.start() : part.start() + word.end()]

    def _join(self, word: str) -> list[int]:
        """Return the ids of a word: its pieces, neighbours joined, the pair of the lowest rank first."""
        try:
            pieces = self._spelt(word)
        except UnicodeEncodeError:
            raise ValueError(f"the text holds half a character, {word!r}; give text that UTF-8 can write") from None
        while len(pieces) > 1:
            ranks = [self._rank(pair) for pair in pairwise(pieces)]
            best = min(ranks)
            if best == UNSAID:
                break
            joined, at = [], 0
            while at < len(pieces):
                together = at < len(ranks) and ranks[at] == best
                joined.append("".join(pieces[at : at + 2]) if together else pieces[at])
                at += 1 + together
            pieces = joined
        return [id_ for piece in pieces for id_ in self._ids_of(piece, word)]

    def _spelt(self, word: str) -> list[str]:
        """Return what is joined: a sign for each byte."""
        signs = [_SIGNS[byte] for byte in word.encode()]
        return ["".join(signs)] if self._rules.whole and "".join(signs) in self._ids else signs

    def _rank(self, pair: Pair) -> float:
        return self._ranks.get(pair, UNSAID)

    def _ids_of(self, piece: str, word: str) -> list[int]:
        if piece not in self._ids:
            raise ValueError(
                f"{word!r} holds the byte {_BYTES[piece]}, for which this model has no token; leave it out"
            )
        return [self._ids[piece]]


class SentencePiece(Tokenizer):
    """What Llama 1 and 2 and TinyLlama have: characters are joined, and ▁ stands for a space.

    A space is put before each text (unless `add_space_prefix` is False): a word is the same one where a text begins.
    `decode` takes it off again.
    """

    kind, rules_are = "llama", ()

    def _learn(self, facts: Mapping[str, Any], of_kind: list[tuple[str, Any]]) -> None:
        self._prefix = bool(facts.get("tokenizer.ggml.add_space_prefix", True))
        scores: Any = facts.get("tokenizer.ggml.scores")
        given = isinstance(scores, list) and len(scores) == len(of_kind)
        if not (given and all(isinstance(x, float) and x == x for x in scores)):  # none is NaN
            raise ValueError("this file's tokenizer is incomplete: it has no scores, a number for each token")
        self._scores = {token: -scores[id_] for id_, (token, of) in enumerate(of_kind) if of == NORMAL}
        bytes_ = {token: re.fullmatch("<0x([0-9A-F]{2})>", token) for token, of in of_kind if of == BYTE}
        self._of_byte = {int(match[1], 16): self._ids[token] for token, match in bytes_.items() if match}
        if len(self._of_byte) != 256:
            raise ValueError(f"this file's tokenizer is incomplete: {len(self._of_byte)} of 256 bytes have a token")
        self._bytes = [(token.replace("▁", " ") if of == NORMAL else token).encode() for token, of in of_kind]
        for byte, id_ in self._of_byte.items():
            self._bytes[id_] = bytes([byte])
        # Joining takes a time that grows as the square of what is joined. Where no piece goes on behind a letter with
        # a space, a text may be cut there.
        across = any(re.search("[^▁]▁", token) for token in self._scores)
        self._parts = re.compile("(?s).+" if across else "▁*[^▁]+|▁+")

    def decode(self, ids: ArrayLike) -> str:
        text = super().decode(ids)
        return text.removeprefix(" ") if self._prefix else text

    def _words(self, text: str) -> Iterable[str]:
        return self._parts.findall(("▁" if text and self._prefix else "") + text.replace(" ", "▁"))

    def _spelt(self, word: str) -> list[str]:
        word.encode()  # half a character is refused
        return list(word)

    def _rank(self, pair: Pair) -> float:
        return self._scores.get(pair[0] + pair[1], UNSAID)

    def _ids_of(self, piece: str, word: str) -> list[int]:
        known = self._ids.get(piece)
        return [self._of_byte[byte] for byte in piece.encode()] if known is None else [known]


def of(facts: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer that the facts of a file describe.

    Raises:
        ValueError: they describe none, or one of another kind.
    """
    return (SentencePiece if facts.get("tokenizer.ggml.model") == "llama" else Tokenizer)(facts)


def _in_ascii(text: str) -> str:
    """Replace signs outside ASCII: é stands for a letter, 0 for a number and # for any other sign.

    Python's regular expressions don't know Unicode's kinds of characters; these few they can tell apart. ſ stays: where
    capitals don't matter, it is an s.
    """
    return "".join(c if " " <= c < "\x7f" or c in "\t\n\v\f\rſ" else _stand_in(c) for c in text)


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
