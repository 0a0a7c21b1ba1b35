"""The perplexity of the trained model, without further training, when it sees less or when its cache keeps less.

Every change is made to a whole pass over a text. Keys and values are changed in the cache of each layer.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lesson_utils
from lesson_utils.classroom.files import put
from lesson_utils.maths import attention, models, ops, pretrained
from lesson_utils.maths.layers import KeyValueCache
from tools.measure import smaller
from tools.measure.texts import texts

FILE = Path(lesson_utils.__file__).parent / "lessons" / "efficient_attention" / "real.json"
FROM = 160  # the first token whose prediction counts: everything before is long enough for windows to matter
WINDOWS, KEPT = (16, 32, 64, 128, 256), (0, 1, 2, 4)
BEST = (1, 2, 4, 8, 16, 32, 64)
BITS = (8, 6, 5, 4, 3, 2)
RANKS = (320, 256, 192)
Pair = tuple[np.ndarray, np.ndarray]


class ChangedCache(KeyValueCache):
    """A cache that keeps keys and values as `change` makes them, each (B, h_kv, T, d_k)."""

    def __init__(self, capacity: int, change: Callable[[np.ndarray, np.ndarray], Pair]) -> None:
        super().__init__(capacity)
        self.change = change

    def append(self, K: np.ndarray, V: np.ndarray) -> Pair:
        return super().append(*self.change(K, V))


def rounded(bits: int) -> Callable[[np.ndarray, np.ndarray], Pair]:
    """Return a change that rounds each key and value to whole numbers of so many bits, times a factor of its own."""

    def round_(x: np.ndarray) -> np.ndarray:
        step = np.abs(x).max(axis=-1, keepdims=True) / (2 ** (bits - 1) - 1)  # (B, h_kv, T, 1)
        return (np.round(x / step) * step).astype(x.dtype)

    return lambda K, V: (round_(K), round_(V))


def averaged(K: np.ndarray, V: np.ndarray) -> Pair:
    """Replace the keys and the values of all heads by their mean over the heads."""
    return tuple(np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape) for x in (K, V))  # type: ignore[return-value]


def through(basis: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Pair]:
    """Return a change that projects keys and values of all heads, side by side, onto the columns of `basis`."""

    def change(K: np.ndarray, V: np.ndarray) -> Pair:
        wide = np.concatenate([attention.merge_heads(K), attention.merge_heads(V)], axis=-1)  # (B, T, 2 h_kv d_k)
        back = wide @ basis @ basis.T
        k, v = np.split(back, 2, axis=-1)
        return attention.split_heads(k, K.shape[1]), attention.split_heads(v, K.shape[1])

    return change


def only_the_best(k: int) -> Callable[..., Pair]:
    """Return attention in which each query keeps its k largest scores among those that it may see."""

    def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> Pair:
        scores = np.where(mask, Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1]), -np.inf)  # (B, h, T, T)
        limit = -np.partition(-scores, k - 1, axis=-1)[..., k - 1 : k]
        weights = ops.softmax(np.where(scores >= limit, scores, -np.inf)).astype(V.dtype)
        return weights @ V, weights

    return attend


def window(T: int, size: int, kept: int) -> np.ndarray:
    """Return the mask of a window: the last `size` positions, the query's own among them, and the first `kept`."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & ((i - j < size) | (j < kept))


def run() -> None:
    """Measure all savings on all texts, and write the table."""
    real = pretrained.load()
    model = real.model
    layers = range(model.config.num_layers)

    def perplexity(ids: np.ndarray, mask: np.ndarray | None = None, changes: Any = None, attend: Any = None) -> float:
        """Return exp of the mean loss on all tokens from FROM on; `changes` has one for each layer's cache."""
        past = changes and [ChangedCache(len(ids), change) for change in changes]
        with models.trying(model, attend=attend):
            logits = model.forward(ids[None], past, mask=mask)[0][0]  # (T, V)
        log_p = ops.log_softmax(logits[FROM - 1 : -1].astype(np.float64))
        return math.exp(-log_p[np.arange(len(log_p)), ids[FROM:]].mean())

    bases = []
    for block in model.stack.blocks:
        inner = block.attention.inner
        bases.append(np.linalg.svd(np.hstack([inner.W_K.value, inner.W_V.value]), full_matrices=False)[2].T)
    rotary = model.config.rotation
    assert rotary is not None
    # The beginning of an old README: a text of which none of those below is a part, and which never changes.
    old = np.array(real.tokenizer.encode(Path(__file__).with_name("typical.txt").read_text(encoding="utf-8")))[:900]
    made = smaller.directions(model, old)
    typical = smaller.typical_scores(model, old)
    table: dict[str, Any] = {"from": FROM, "tokens": {}}
    for name, text in texts().items():
        ids = np.array(real.tokenizer.encode(text))
        T = len(ids)
        table["tokens"][name] = T

        def note(part: str, key: str, value: float, name: str = name) -> None:
            table.setdefault(part, {}).setdefault(key, {})[name] = round(value, 2)
            print(f"{name:8} {part:10} {key:8} {value:10.2f}", flush=True)

        note("full", "all", perplexity(ids))
        for size in WINDOWS:
            for kept in KEPT:
                note("window", f"{size} {kept}", perplexity(ids, window(T, size, kept)))
        for k in BEST:
            note("best", str(k), perplexity(ids, attend=only_the_best(k)))
        for bits in BITS:
            note("bits", str(bits), perplexity(ids, changes=[rounded(bits) for _ in layers]))
        note("heads", "1", perplexity(ids, changes=[averaged for _ in layers]))
        for rank in RANKS:
            note("rank", str(rank), perplexity(ids, changes=[through(basis[:, :rank]) for basis in bases]))
        for rank in smaller.DIRECTIONS:
            note("directions", str(rank), perplexity(ids, changes=[through(basis[:, :rank]) for basis in made]))
        for token in smaller.OTHERS:
            note("other", str(token), perplexity(ids, smaller.window(T, 64, token)))
        for name_, attend in smaller.ways_to_attend(rotary, typical).items():
            note(*name_, perplexity(ids, attend=attend()))
        for size in smaller.WINDOWS:
            for bits in smaller.TOGETHER:
                note(
                    "together", f"{size} {bits}", perplexity(ids, window(T, size, 1), attend=smaller.kivi(rotary, bits))
                )
        for bits in smaller.BITS:
            note("minimum", str(bits), perplexity(ids, changes=[smaller.by_vector(bits) for _ in layers]))
    FILE.parent.mkdir(exist_ok=True)
    put(FILE, json.dumps(table, indent=1) + "\n")
    smaller.write_sample(model, np.array(real.tokenizer.encode(texts()["story"])), FILE.parent / "keys.npz")
    print(f"{FILE.name}: {FILE.stat().st_size:,} bytes")
