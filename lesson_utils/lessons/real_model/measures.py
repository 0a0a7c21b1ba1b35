"""Measures of the real model: scores of its heads, what it loses without them, what attention may forget."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Attend
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import HeadsOf
from lesson_utils.maths.models.gpt import GPTCache, see_past

# Written for this course, so that no model can have read it.
STORY = """The lighthouse at Varn had been dark for eleven winters when Ilse Brandt came up the path with a lamp and a \
bag of tools. Nobody in the village believed that the old machine could turn again. The gears were rusted, the glass \
was grey with salt, and the last keeper had taken the key with him when he went to live with his daughter in the city. \
Ilse did not need the key. She had learned from her father that every lock on the coast was made by the same smith, \
and that the smith had been a lazy man. She pushed the door, lifted it a little, and it opened.

Inside, the stairs went round and round until she was dizzy. At the top she put down the lamp and looked at the great \
lens. It was taller than she was. Somebody had covered it with a sheet, and the sheet had kept the worst of the salt \
away. She pulled it down, and for a moment the little flame of her lamp stood a hundred times in the glass. Ilse \
laughed out loud. Then she opened the bag, took out the oil, and began with the first gear.

By midnight she had cleaned seven of the nine gears. The eighth would not move. She warmed it with the lamp, she \
struck it with the small hammer, she talked to it as her father used to talk to the donkey. At last it gave way with a \
cry like a gull, and the great lens moved by the width of a hand. Down in the village a dog began to bark. A window \
was opened, and then another. When the light went out over the sea for the first time in eleven winters, there were \
forty people standing on the beach, and not one of them said a word. In the morning the keeper's daughter wrote a \
letter from the city. Her father, she wrote, had sat up in his bed that night and asked who had lit the lamp."""

COPIED = 40  # random tokens, then the same again
PAGE = 192  # tokens of the story
SEEN = 64  # tokens that are read before the loss counts


def run(
    model: GPT,
    ids: Ids,
    knock_out: HeadsOf | None = None,
    attend: Attend | None = None,
    by: str = "zero",
    mask: Array | None = None,
) -> tuple[Array, GPTCache]:
    """Run a model without some heads, {layer: heads}, with another attention or mask: logits and cache.

    By "zero" or "mean", see `models.trying`.
    """
    with models.trying(model, {"decoder": knock_out} if knock_out else None, by, attend):
        return model.forward(ids, mask=mask)


def losses(model: GPT, ids: Ids, **trying: Any) -> Array:
    """Return the nats of each next token: (B, T + 1) → (B, T). The other arguments are those of `run`."""
    return of_next(run(model, ids[:, :-1], **trying)[0], ids)


def of_next(logits: Array, ids: Ids) -> Array:
    """Return −log p of each next token: (B, T, V) and (B, T + 1) → (B, T)."""
    return -np.take_along_axis(ops.log_softmax(logits), ids[:, 1:, None], axis=-1)[..., 0]


def perplexity(nats: Array) -> float:
    return float(np.exp(np.mean(nats, dtype=np.float64)))


# --- What a head does ------------------------------------------------------------------------------------------------

SCORES = ("previous token", "first token", "same token", "induction", "entropy")


def scores_on_text(maps: Array, ids: Ids) -> dict[str, Array]:
    """Four scores from the maps of a text, (layers, heads, T, T), and its ids, (T,). Each is (layers, heads).

    All but "first token" are of the rest: what goes to the first token is set aside, and the weights on the others are
    made to sum to 1 again. Queries from the fourth on count.
    """
    T = maps.shape[-1]
    rest = maps.copy()
    rest[..., 0] = 0
    rest /= np.maximum(rest.sum(axis=-1, keepdims=True), 1e-9)
    earlier = (ids[:, None] == ids) & np.tri(T, k=-1, dtype=bool)  # the same token, before
    earlier[:, 0] = False
    asking = earlier.any(axis=-1)  # only these can be seen to look for one
    spread = -(rest * np.log(np.maximum(rest, 1e-12))).sum(axis=-1)  # nats, (layers, heads, T)
    return {
        "previous token": np.diagonal(rest, -1, -2, -1)[..., 3:].mean(axis=-1),
        "first token": maps[..., 3:, 0].mean(axis=-1),
        "same token": (rest * earlier).sum(axis=-1)[..., asking].mean(axis=-1),
        "entropy": (spread[..., 3:] / np.log(np.arange(3, T))).mean(axis=-1),  # 1 = spread evenly
    }


def induction_score(maps: Array, period: int) -> Array:
    """Return the mean weight of the second copy's queries on the token after the same token in the first.

    maps: (..., T, T). Returns (...).
    """
    score: Array = np.diagonal(maps, 1 - period, -2, -1)[..., 1:].mean(axis=-1)
    return score


def copies(rng: np.random.Generator, vocab: int, batch: int) -> Ids:
    """Random tokens, twice: (B, 2 · COPIED)."""
    return np.tile(rng.integers(100, vocab, size=(batch, COPIED)), 2)  # the first hundred are special or single bytes


def all_maps(model: GPT, ids: Ids, **trying: Any) -> Array:
    """Return the maps of all heads, (B, layers, heads, T, T). The other arguments are those of `run`."""
    return np.stack(model.maps(run(model, ids, **trying)[1])["decoder"], axis=1)


def strongest(scores: Array, k: int) -> dict[int, list[int]]:
    """Return the k heads with the highest scores, as `knock_out` takes them: {layer: [heads]}."""
    return heads_of(np.argsort(-scores, axis=None)[:k], scores.shape[1])


def heads_of(numbers: Iterable[int], num_heads: int) -> dict[int, list[int]]:
    """Heads counted through all layers → {layer: [heads]}."""
    chosen: dict[int, list[int]] = {}
    for number in numbers:
        chosen.setdefault(int(number) // num_heads, []).append(int(number) % num_heads)
    return chosen


def copying(model: GPT, ids: Ids, **trying: Any) -> tuple[float, float]:
    """Return the nats a token in the first copy, and in the second. The other arguments are those of `run`."""
    nats = losses(model, ids, **trying)
    return float(nats[:, : COPIED - 1].mean()), float(nats[:, COPIED - 1 :].mean())


def without_each_head(model: GPT, ids: Ids, first: int, by: str = "zero") -> Array:
    """Return the mean loss from token `first` on, without each head in turn, by "zero" or "mean": (layers, heads)."""
    found = np.empty((len(model.stack.blocks), model.config.num_heads))
    for layer, head, x in streams_without_each_head(model, ids[:, :-1], by):
        found[layer, head] = of_next(logits_of(model, x[:, first:]), ids[:, first:]).mean()
    return found


def streams_without_each_head(
    model: GPT, ids: Ids, by: str = "zero", start: int = 0
) -> Iterator[tuple[int, int, Array]]:
    """Give the final stream, (B, T, d_model), without each head from layer `start` on: layer, head, stream."""
    blocks = model.stack.blocks
    x, _ = model.tokens.forward(ids)
    mask = see_past(ids.shape[1], ids.shape[1], x.dtype)
    for layer, block in enumerate(blocks):  # what lies below a layer stays as it is, and is not computed again
        for head in range(model.config.num_heads if layer >= start else 0):
            with models.trying(model, {"decoder": {layer: [head]}}, by):
                y, _ = block.forward(x, mask)
            for later in blocks[layer + 1 :]:
                y, _ = later.forward(y, mask)
            yield layer, head, y
        x, _ = block.forward(x, mask)


def logits_of(model: GPT, stream: Array) -> Array:
    """Return the logits if this were the stream after the last layer: the logit lens."""
    norm = model.stack.norm
    assert norm is not None
    logits: Array = model.tokens.embedding.logits_forward(norm.forward(stream)[0])[0]
    return logits


def streams(model: GPT, ids: Ids) -> list[Array]:
    """Return the residual stream before the first layer, and after each: (B, T, d_model) each."""
    x, _ = model.tokens.forward(ids)
    mask, found = see_past(ids.shape[1], ids.shape[1], x.dtype), [x]
    for block in model.stack.blocks:
        x, _ = block.forward(x, mask)
        found.append(x)
    return found


# --- What attention may forget ---------------------------------------------------------------------------------------


def forgetful(
    window: int | None = None,
    first: int = 0,
    best: int | None = None,
    bits: int | None = None,
    temperature: float = 1.0,
) -> Attend:
    """Attention that forgets, for `attend=`.

    Args:
        window: each query sees only so many of the last keys, itself among them;
        first: and so many of the first ones.
        best: of what it sees, only the keys with so many of the highest scores.
        bits: keys and values have 2^bits levels, between the least and the greatest number of each vector.
        temperature: scores are divided by √d_k and by this.
    """

    def attend(Q: Array, K: Array, V: Array, mask: Mask | None = None) -> tuple[Array, Array]:
        T_q, T_k = Q.shape[-2], K.shape[-2]
        if bits is not None:
            K, V = rounded(K, bits), rounded(V, bits)
        visible = np.ones((T_q, T_k), bool) if mask is None else mask
        if window is not None:
            now, at = np.arange(T_k - T_q, T_k)[:, None], np.arange(T_k)
            visible = visible & ((now - at < window) | (at < first))
        scores = Q @ K.swapaxes(-1, -2) / (math.sqrt(Q.shape[-1]) * temperature)
        scores = np.where(visible, scores, np.float32(-np.inf))
        if best is not None and best < T_k:
            least = np.partition(scores, -best, axis=-1)[..., -best, None]
            scores = np.where(scores >= least, scores, np.float32(-np.inf))
        weights = ops.softmax(scores)
        return weights @ V, weights

    return attend


def rounded(x: Array, bits: int) -> Array:
    """Round each vector (the last axis) to 2^bits levels from its least to its greatest number."""
    low, high = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
    step = np.maximum(high - low, 1e-9) / (2**bits - 1)
    return np.rint((x - low) / step) * step + low


FIRST = (0, 1, 4)
# In each, from all to least; None is the model as it is.
FORGET: Mapping[str, tuple[Any, ...]] = {
    "window": (None, 128, 64, 32, 16, 8),
    "best": (None, 64, 32, 16, 8, 4, 2, 1),
    "bits": (None, 8, 6, 5, 4, 3, 2),
}
