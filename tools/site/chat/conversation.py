"""A conversation in the browser: the model, what it has read so far, and what a learner has changed in it.

`answer` lets the page's messages in between two tokens, so that it can be stopped there.
"""

import asyncio
import codecs
import json
from collections.abc import Callable
from typing import Any

import numpy as np

try:  # in the page's archive these modules lie side by side
    import own_attention  # type: ignore[import-not-found]
except ModuleNotFoundError:
    from tools.site.chat import own_attention
from lesson_utils.maths import models, ops, pretrained

Array = np.ndarray[Any, Any]

LONGEST = 200  # tokens of an answer
PIECE = 32  # tokens that are read at once: a click on Stop waits for no more than these
LIKELIEST = 40  # a token is drawn from so many
MOST_SHOWN = 32  # tokens whose maps are drawn


class Stopped(Exception):
    """Somebody pressed Stop while the model was reading."""


class Conversation:
    """A model that answers, and can be changed between two answers.

    One that was not trained on conversations goes on with what was written so far.
    """

    def __init__(self, path: str, context: int | None = None) -> None:
        self.real = pretrained.load(path, context, progress=False, packed=True)
        self.model, self.rng = self.real.model, np.random.default_rng()
        self.past = self.model.new_past()
        self.heads: dict[int, list[int]] = {}
        self.lines, self.attend = own_attention.LINES, None
        self.stopping, self.unread = False, list[int]()  # ids that are certain, and that the model has not read yet
        self.opening = 0  # so many tokens begin every conversation, and the model, as it is now, has read them
        self.begin()

    def facts(self) -> str:
        """Return what the page says about the model, as JSON."""
        c = self.model.config
        sizes = {"layers": c.num_layers, "heads": c.num_heads, "parameters": self.model.num_params()}
        sizes |= {"context": c.max_length, "talks": self.real.talks}
        return json.dumps(sizes | {"lines": own_attention.LINES, "name": self.real.name})

    # --- What a learner changes ---------------------------------------------------------------------------------------

    def change(self, wanted: str) -> str:
        """Switch heads off, hide tokens, or take somebody's lines; the conversation then begins anew.

        Args:
            wanted: as JSON, {"heads": [[layer, head], ...], "window": [size, first] or null, "lines": Python}.

        Returns:
            what is wrong with the lines, as a sentence, and then nothing has changed; or "".
        """
        asked, c = json.loads(wanted), self.model.config
        lines, window = asked["lines"], asked["window"]
        own = lines.strip() != own_attention.LINES.strip()
        try:
            attend = own_attention.made(lines, c.num_heads, c.d_model // c.num_heads) if own or window else None
        except own_attention.Problem as problem:
            return str(problem)
        self.attend = own_attention.windowed(attend, *window) if attend and window else attend
        self.heads = {}
        for layer, head in asked["heads"]:
            self.heads.setdefault(layer, []).append(head)
        self.opening = 0
        self.begin()
        return ""

    def forward(self, ids: Array, past: Any = None, last: bool = False, plain: bool = False) -> Any:
        """Run the model as it was changed, or `plain`: ids (T,) → logits and a cache."""
        heads = {"decoder": self.heads} if self.heads and not plain else None
        with models.trying(self.model, heads, attend=None if plain else self.attend):
            return self.model.forward(ids[None], past, last=last)

    # --- Talking ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Forget what was said. What begins every conversation stays read, unless the model has changed."""
        unread = self.real.tokenizer.begin
        if self.real.talks:
            unread = [*self.real.chat([])[: -len(self._turn("assistant"))], *self._turn("user")]
        self._go_back(self.opening, [] if self.opening else unread)

    def warm_up(self) -> None:
        """Read what is certain of the next turn before somebody asks, but not by somebody's lines, which may fail."""
        room = self.model.config.max_length - self.past[0].length
        if self.attend is not None or not 0 < len(self.unread) < room:
            return
        self.forward(np.array(self.unread), self.past, last=True)
        self.opening = self.opening or self.past[0].length
        self.unread = []

    async def answer(
        self, text: str, temperature: float, say: Callable[[str, float], Any], read: Callable[[int, int], Any]
    ) -> str:
        """Answer a message.

        Args:
            say: called with each token's text, and its probability at temperature 1.
            read: called with how many tokens of the message have been read, and of how many.

        Returns:
            why it ended: "end", "stopped", "long" or "full"; "unread" if it was stopped before the first token; or a
            sentence about an error. After the last two, and if there was no room, the message counts as not sent.
        """
        self.stopping, before = False, (self.past[0].length, self.unread)
        try:
            goes_on = not self.real.talks and self.past[0].length + len(self.unread) > len(self.real.tokenizer.begin)
            text = f"\n{text.strip()}" if goes_on else text.strip()
            said = [*self.real.tokenizer.encode(text), *self._end()]  # behind the beginning of a user's turn
            fresh = [*self.unread, *said, *self._turn("assistant")]
            if self.past[0].length + len(fresh) >= self.model.config.max_length:
                return "full"
            return await self._write(await self._read(np.array(fresh), read), temperature, say)
        except (Stopped, own_attention.Problem, ValueError, MemoryError) as error:
            self._go_back(*before)
            return told(error)

    def stop(self) -> None:
        self.stopping = True

    async def _read(self, ids: Array, read: Callable[[int, int], Any]) -> Array:
        """Read ids, (T,), a piece at a time; return the logits behind the last, (V,)."""
        for start in range(0, len(ids), PIECE):
            logits, _ = self.forward(ids[start : start + PIECE], self.past, last=True)
            read(min(start + PIECE, len(ids)), len(ids))
            await asyncio.sleep(0)  # a click on Stop comes in here
            if self.stopping:
                raise Stopped
        return np.asarray(logits[0, 0])

    async def _write(self, logits: Array, temperature: float, say: Callable[[str, float], Any]) -> str:
        """Write an answer after these logits, (V,); return why it ended."""
        after = [*self._end(), *self._turn("user")]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for written in range(1, LONGEST + 1):
            id_ = drawn(logits, temperature, self.rng)
            if id_ in self.real.ends:
                self.unread = after
                return "end"
            say(decoder.decode(self.real.tokenizer.bytes_of([id_])), float(ops.softmax(logits)[id_]))
            await asyncio.sleep(0)  # and here
            self.unread = [id_, *after]
            full = self.past[0].length + len(self.unread) >= self.model.config.max_length
            if self.stopping or full or written == LONGEST:
                return "stopped" if self.stopping else "full" if full else "long"
            logits = self.forward(np.array([id_]), self.past, last=True)[0][0, 0]
        raise AssertionError("the last turn of the loop returns")

    def _turn(self, who: str) -> list[int]:
        """Return the ids of a turn's beginning."""
        if not self.real.talks:
            return []
        return [self.real.tokenizer.special["<|im_start|>"], *self.real.tokenizer.encode(f"{who}\n")]

    def _end(self) -> list[int]:
        """Return the ids of a turn's end."""
        if not self.real.talks:
            return []
        return [self.real.tokenizer.special["<|im_end|>"], *self.real.tokenizer.encode("\n")]

    def _go_back(self, length: int, unread: list[int]) -> None:
        for cache in self.past:
            cache.length = length
        self.unread = unread

    # --- Looking ------------------------------------------------------------------------------------------------------

    def look(self, sentence: str) -> tuple[str, bytes]:
        """Return what the heads do on a sentence, and what the model expects next.

        Returns:
            as JSON, {"tokens": [...], "next": [[text, probability], ...], "plain": the same of the unchanged model},
            and the maps, (layers, heads, T, T), a byte for each weight; or {"problem": a sentence}, and nothing.
        """
        tokenizer = self.real.tokenizer
        try:
            ids = self.real.prompt(sentence)[:MOST_SHOWN]
            if not sentence:
                return json.dumps({"problem": "Type a sentence first."}), b""
            logits, cache = self.forward(ids)
        except (own_attention.Problem, ValueError, MemoryError) as error:
            return json.dumps({"problem": told(error)}), b""
        changed = self.heads or self.attend
        plain = self.forward(ids, last=True, plain=True)[0] if changed else logits
        maps = np.concatenate(self.model.maps(cache)["decoder"])  # (layers, heads, T, T)
        found = {"tokens": tokenizer.tokens(ids), "next": self._likeliest(logits), "plain": self._likeliest(plain)}
        return json.dumps(found), np.rint(255 * np.clip(maps, 0, 1)).astype(np.uint8).tobytes()

    def _likeliest(self, logits: Array, count: int = 5) -> list[tuple[str, float]]:
        p = ops.softmax(logits[0, -1])
        return [(self.real.tokenizer.tokens([id_])[0], float(p[id_])) for id_ in np.argsort(-p)[:count]]


def drawn(logits: Array, temperature: float, rng: np.random.Generator) -> int:
    """Return the likeliest id, or draw one of the likeliest; a tenth of the time that ordering all of them takes."""
    if temperature == 0:
        return int(logits.argmax())
    some = np.argpartition(-logits, LIKELIEST)[:LIKELIEST]
    return int(some[models.sample(logits[some], rng, temperature, top_p=0.9)])


def opened(path: str) -> tuple[Conversation | None, str]:
    """Open a model; return it and "", or None and what is wrong with the file, as a sentence."""
    try:
        return Conversation(path), ""
    except (ValueError, MemoryError) as error:
        return None, f"{error}." if f"{error}".startswith(path) else told(error)  # a file's name stays as it is


def told(error: Exception) -> str:
    """Say an error in a sentence."""
    if isinstance(error, Stopped):
        return "unread"
    if isinstance(error, MemoryError):
        return "This tab has too little memory left for that. Close other tabs, and reload the page."
    said = str(error)
    return said[:1].upper() + said[1:].rstrip(".") + "."
