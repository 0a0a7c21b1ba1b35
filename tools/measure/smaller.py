"""Ways to keep less of each token beyond windows and plain rounding, which `savings` measures and stores.

Keys rounded by channel; the directions of the keys and values that the model makes; other tokens in place of the first;
a sink without a value; keys that got most weight so far.
"""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom import files
from lesson_utils.lessons.efficient_attention.rounding import GROUP, by_channel, rounded
from lesson_utils.maths import attention, models, ops
from lesson_utils.maths.layers import KeyValueCache
from lesson_utils.maths.positions import Rotary

Pair = tuple[np.ndarray, np.ndarray]
Round = Callable[[np.ndarray], np.ndarray]
FROM, SIZE = 160, 64  # as in `savings`; the window of the experiments on the sink
BITS, TOGETHER, WINDOWS = (4, 3, 2), (4, 3), (256, 128, 64)
DIRECTIONS = (256, 192)
OTHERS = (1, 20)  # tokens that are kept in place of token 0
LAYER, SHOWN = 11, 96  # of the keys that the notebook draws


class Kept(KeyValueCache):
    """A cache that also keeps what was appended last, keys and values of all heads side by side, (T, 2 h_kv d_k)."""

    def append(self, K: np.ndarray, V: np.ndarray) -> Pair:
        self.wide = np.concatenate([attention.merge_heads(K), attention.merge_heads(V)], axis=-1)[0].copy()
        return super().append(K, V)


def appended(model: models.GPT, ids: np.ndarray) -> list[np.ndarray]:
    """Return what each layer's cache holds of a text, before keys are turned."""
    past = [Kept(len(ids)) for _ in range(model.config.num_layers)]
    model.forward(ids[None], [*past])
    return [cache.wide for cache in past]


def directions(model: models.GPT, ids: np.ndarray) -> list[np.ndarray]:
    """Return each layer's directions of a text's keys and values, largest first, without the first token."""
    return [np.linalg.svd(wide[1:], full_matrices=False)[2].T for wide in appended(model, ids)]


def write_sample(model: models.GPT, ids: np.ndarray, file: Path) -> None:
    """Write the keys and values of one head, behind the first token, for the notebook to draw."""
    wide = appended(model, ids)[LAYER][1 : SHOWN + 1].astype(np.float16)
    half, d_k = wide.shape[1] // 2, model.config.d_model // model.config.num_heads
    sample = io.BytesIO()
    np.savez_compressed(sample, keys=wide[:, :d_k], values=wide[:, half : half + d_k])
    files.put(file, sample.getvalue())


def window(T: int, size: int, kept: int) -> np.ndarray:
    """Return the mask of the last `size` positions and the position `kept`."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & ((i - j < size) | (j == kept))


# --- Rounding -------------------------------------------------------------------------------------------------------


def by_vector(bits: int) -> Callable[[np.ndarray, np.ndarray], Pair]:
    """Return a change that rounds each key and each value between its own smallest and largest number."""
    return lambda K, V: (rounded(K, bits, -1), rounded(V, bits, -1))


def rounding_attention(rotary: Rotary, keys: Round | None, values: Round | None) -> Any:
    """Return attention to keys that are rounded before their turn, and to rounded values.

    A query reads the keys and values of its own unfinished group as they are, so no scale knows of tokens to come.
    """

    def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> Pair:
        T, scale = K.shape[-2], 1 / math.sqrt(Q.shape[-1])
        scores = Q @ K.swapaxes(-1, -2) * scale  # (B, h, T, T)
        i, j = np.arange(T)[:, None], np.arange(T)
        done = (j // GROUP + 1) * GROUP <= i + 1  # the group of key j is full when query i comes
        if keys is not None:
            few = rotary.turn(keys(rotary.turn(K, -j)), j).astype(K.dtype)
            scores = np.where(done, Q @ few.swapaxes(-1, -2) * scale, scores)
        weights = ops.softmax(np.where(mask, scores, -np.inf)).astype(V.dtype)
        if values is None:
            return weights @ V, weights
        few = values(V).astype(V.dtype)
        return np.where(done, weights, 0) @ few + np.where(done, 0, weights) @ V, weights

    return attend


def kivi(rotary: Rotary, bits: int) -> Any:
    """Return attention to keys rounded by channel, and values rounded by vector."""
    return rounding_attention(rotary, lambda x: by_channel(x, bits), lambda x: rounded(x, bits, -1))


# --- Sinks, and keys that are used ----------------------------------------------------------------------------------


def _scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    return np.asarray(Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1]))  # (B, h, T, T)


def typical_scores(model: models.GPT, ids: np.ndarray) -> np.ndarray:
    """Return the mean score of the first token in each layer and head, (layers, h), over the queries from FROM on."""
    seen = []

    def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> Pair:
        scores = _scores(Q, K)
        seen.append(scores[0, :, FROM:, 0].mean(axis=-1))
        weights = ops.softmax(np.where(mask, scores, -np.inf)).astype(V.dtype)
        return weights @ V, weights

    with models.trying(model, attend=attend):
        model.forward(ids[None])
    return np.stack(seen)


def sink_as_a_number(typical: np.ndarray | None) -> Any:
    """Return attention to the last SIZE keys with one more term in the denominator, and no value for it.

    The term is exp of the first token's score; or of each head's number in `typical`, whatever the query is.
    """
    layers = iter(typical) if typical is not None else None

    def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> Pair:
        scores, T = _scores(Q, K), K.shape[-2]
        i, j = np.arange(T)[:, None], np.arange(T)
        first = scores[..., :1].copy()  # (B, h, T, 1)
        if layers is not None:
            first[...] = next(layers)[:, None, None]
        first = np.where(i >= SIZE, first, -np.inf)  # while the first token is in the window, it is there itself
        near = np.where(mask & (i - j < SIZE), scores, -np.inf)
        weights = ops.softmax(np.concatenate([near, first], axis=-1)).astype(V.dtype)[..., :-1]
        return weights @ V, weights

    return attend


def most_used(recent: int, often: int) -> Any:
    """Return attention to the last `recent` keys and to the `often` keys that got most weight from earlier queries."""

    def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> Pair:
        scores = np.where(mask, _scores(Q, K), -np.inf)
        weights = ops.softmax(scores)
        T = K.shape[-2]
        i, j = np.arange(T)[:, None], np.arange(T)
        so_far = np.cumsum(weights, axis=-2) - weights
        limit = -np.partition(-so_far, often - 1, axis=-1)[..., often - 1 : often]
        keep = mask & ((i - j < recent) | (so_far >= np.maximum(limit, 1e-30)))
        weights = ops.softmax(np.where(keep, scores, -np.inf)).astype(V.dtype)
        return weights @ V, weights

    return attend


def ways_to_attend(rotary: Rotary, typical: np.ndarray) -> dict[tuple[str, str], Callable[[], Any]]:
    """Return how to make each kind of attention, by the part and the key under which its perplexity is stored."""
    only: dict[str, tuple[Round | None, Round | None]] = {
        "keys by vector": (lambda x: rounded(x, 3, -1), None),
        "values by channel": (None, lambda x: by_channel(x, 3)),
    }
    ways: dict[tuple[str, str], Callable[[], Any]] = {
        ("channel", str(bits)): lambda bits=bits: kivi(rotary, bits)  # type: ignore[misc]
        for bits in BITS
    }
    ways |= {
        ("vector", str(bits)): lambda bits=bits: rounding_attention(rotary, *(lambda x: rounded(x, bits, -1),) * 2)  # type: ignore[misc]
        for bits in BITS
    }
    ways |= {("only, 3 bits", name): lambda pair=pair: rounding_attention(rotary, *pair) for name, pair in only.items()}  # type: ignore[misc]
    ways["sink", "score"] = lambda: sink_as_a_number(None)
    ways["sink", "constant"] = lambda: sink_as_a_number(typical)
    ways["hitters", "32 32"] = lambda: most_used(32, 32)
    return ways
