"""What is measured of the real model: what is stored of it, scores of its heads, and models run without a part."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import models, ops
from lesson_utils.maths.attention import repeat_heads, scaled_dot_product_attention, split_heads
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Attend, KnockOut
from lesson_utils.maths.layers.blocks import EncoderCache, EncoderLayer
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import HeadsOf, changed
from lesson_utils.maths.models.gpt import GPTCache, see_past

# --- What is stored ---------------------------------------------------------------------------------------------------
# All of it was measured once. The programs that did so are in git's history: `git log -- tools/measure` finds them.

NAME = "smollm2 135m"  # the name of the model that the results are of begins so
NOTE = "stored results of SmolLM2-135M"
CHANGES_FILE = Path(__file__).with_name("changes.jsonl")


@cache
def stored() -> dict[str, Any]:
    """Return all arrays by name."""
    with np.load(
        BytesIO((files("lesson_utils.lessons.real_model") / "measured.npz").read_bytes()), allow_pickle=False
    ) as file:
        return dict(file)


def stored_changes() -> list[dict[str, Any]]:
    """Return a dictionary for each run, see `changes.Run`."""
    if not CHANGES_FILE.exists():
        return []
    return [json.loads(line) for line in CHANGES_FILE.read_text(encoding="utf-8").splitlines()]


def label(figure: Any, note: str = NOTE) -> None:
    """Say in a figure that what it shows is stored."""
    figure.supxlabel(note, x=0.99, ha="right", size=9, color="#6B6B6B", style="italic")


# --- Measures: scores of heads, what a model loses without them, what attention may forget ----------------------------


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


KEPT_FIRST = (0, 1, 4)

GUESSING = float(np.log(49_152))  # nats per token, of as many as SmolLM2 knows


# --- Path patching: one head's output taken out of one input of other heads, and of nothing else ----------------------

INPUTS = ("queries", "keys", "values")
Inputs = Callable[..., tuple[Array, Array, Array]]
READERS = {17: (3, 4, 5), 18: (6, 7)}  # the five induction heads of SmolLM2's layers 17 and 18
PREVIOUS_HEAD = (16, 0)  # its strongest previous-token head


def patched_inputs(
    x: Array, written: Array, norm: Callable[[Array], Array], W_Q: Array, W_K: Array, W_V: Array, into: str
) -> tuple[Array, Array, Array]:
    """Return Q, K and V, one of them made from a stream that lacks `written`, as the exercise asks for."""
    whole, without = norm(x), norm(x - written)
    made = [(without if name == into else whole) @ W for name, W in zip(INPUTS, (W_Q, W_K, W_V), strict=True)]
    return made[0], made[1], made[2]


class Patched(NamedTuple):
    """Logits, (B, T, V), and the maps of the reading heads, (B, readers, T, T)."""

    logits: Array
    maps: Array


def run_patched(
    model: GPT,
    ids: Ids,
    head: tuple[int, int],
    into: str,
    readers: Mapping[int, Sequence[int]],
    inputs: Inputs = patched_inputs,
    by: str = "zero",
    detour: bool = False,
) -> Patched:
    """Run a model in which some heads make one of their inputs without what `head` has written.

    All other layers, and the readers' other inputs, read the stream as it is.

    Args:
        head: layer and number of the head that is taken out.
        into: "queries", "keys" or "values" of the readers.
        readers: {layer: heads}, all of them above `head`.
        inputs: as `patched_inputs`.
        by: take all of its output out ("zero"), or all but its mean over batch and positions ("mean").
        detour: also take out what the feed-forward network of its layer makes of its output.
    """
    if min(readers) <= head[0]:
        raise ValueError(f"head {head[0]}.{head[1]} is read only above its layer; no reader may be in {min(readers)}")
    x, _ = model.tokens.forward(ids)
    mask, written, maps = see_past(ids.shape[1], ids.shape[1], x.dtype), np.zeros_like(x), []
    for layer, block in enumerate(model.stack.blocks):
        reading = readers.get(layer, ())
        attend = reads(block, x, written, into, reading, inputs)
        with changed([(block.attention.inner, "attend", attend)] if reading else []):
            below, (x, cache) = x, block.forward(x, mask)
        maps += [block.map(cache)[:, n] for n in reading]
        if layer == head[0]:
            if detour:
                with changed([(block.attention.inner, "knock_out", KnockOut((head[1],)))]):
                    written = x - block.forward(below, mask)[0]
            else:
                written = written_by(block, cache, head[1])
            if by == "mean":
                written = written - written.mean(axis=(0, 1))
    return Patched(logits_of(model, x), np.stack(maps, axis=1))


def written_by(block: EncoderLayer, cache: EncoderCache, head: int) -> Array:
    """Return what one head of a layer has added to the stream, (B, T, d_model): its output times its rows of W_O."""
    merged, W_O = cache.attention.inner.merged  # (B, T, d_model) and (d_model, d_model)
    d_k = W_O.shape[0] // block.attention.inner.num_heads
    own = slice(head * d_k, (head + 1) * d_k)
    result: Array = merged[..., own] @ np.asarray(W_O)[own]
    return result


def reads(block: EncoderLayer, x: Array, written: Array, into: str, reading: Sequence[int], inputs: Inputs) -> Attend:
    """Return attention in which the `reading` heads have one input without `written`, for `attend=`."""
    inner, norm, at = block.attention.inner, block.attention.norm, np.arange(x.shape[1])
    assert norm is not None

    def attend(Q: Array, K: Array, V: Array, mask: Mask | None = None) -> tuple[Array, Array]:
        matrices = (np.asarray(W.value) for W in (inner.W_Q, inner.W_K, inner.W_V))  # packed ones are unpacked
        made = inputs(x, written, lambda stream: norm.forward(stream)[0], *matrices, into)
        mixed: list[Array] = []
        for n, (kept, now) in enumerate(zip((Q, K, V), made, strict=True)):
            new = split_heads(np.asarray(now, x.dtype), inner.num_heads if n == 0 else inner.num_kv_heads)
            if inner.rotary is not None and n < 2:
                new = inner.rotary.turn(new, at)
            mixed.append(kept.copy())
            mixed[n][:, reading] = repeat_heads(new, inner.num_heads)[:, reading]
        return scaled_dot_product_attention(mixed[0], mixed[1], mixed[2], mask)

    return attend


def copying_without(
    model: GPT, ids: Ids, head: tuple[int, int] = PREVIOUS_HEAD, into: str = "keys", readers: Any = None, **how: Any
) -> tuple[Array, float]:
    """Return the readers' induction scores, (readers,), and the nats per token of the second copy."""
    done = run_patched(model, ids[:, :-1], head, into, readers or READERS, **how)
    nats = of_next(done.logits, ids)[:, COPIED - 1 :]
    return induction_score(done.maps, COPIED).mean(axis=0), float(nats.mean())
