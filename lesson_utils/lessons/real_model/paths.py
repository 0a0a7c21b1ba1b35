"""Path patching: one head's output taken out of one input of other heads, and of nothing else."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.lessons.real_model import measures
from lesson_utils.maths.attention import repeat_heads, scaled_dot_product_attention, split_heads
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Attend, KnockOut
from lesson_utils.maths.layers.blocks import EncoderCache, EncoderLayer
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import changed
from lesson_utils.maths.models.gpt import see_past

INPUTS = ("queries", "keys", "values")
Inputs = Callable[..., tuple[Array, Array, Array]]
READERS = {17: (3, 4, 5), 18: (6, 7)}  # the five induction heads of SmolLM2's layers 17 and 18
FIRST = (16, 0)  # its strongest previous-token head


def patched_inputs(
    x: Array, written: Array, norm: Callable[[Array], Array], W_Q: Array, W_K: Array, W_V: Array, into: str
) -> tuple[Array, Array, Array]:
    """Return Q, K and V, one of them made from a stream that lacks `written`, as the exercise asks for."""
    whole, without = norm(x), norm(x - written)
    made = [(without if name == into else whole) @ W for name, W in zip(INPUTS, (W_Q, W_K, W_V), strict=True)]
    return made[0], made[1], made[2]


def moved_inputs(by: int) -> Inputs:
    """Return a function as `patched_inputs`, which moves what was written so many places on, and takes nothing away."""

    def inputs(x: Array, written: Array, *rest: Any) -> tuple[Array, Array, Array]:
        return patched_inputs(x, written - np.roll(written, by, axis=-2), *rest)

    return inputs


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
    return Patched(measures.logits_of(model, x), np.stack(maps, axis=1))


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
    model: GPT, ids: Ids, head: tuple[int, int] = FIRST, into: str = "keys", readers: Any = None, **how: Any
) -> tuple[Array, float]:
    """Return the readers' induction scores, (readers,), and the nats per token of the second copy."""
    done = run_patched(model, ids[:, :-1], head, into, readers or READERS, **how)
    nats = measures.of_next(done.logits, ids)[:, measures.COPIED - 1 :]
    return measures.induction_score(done.maps, measures.COPIED).mean(axis=0), float(nats.mean())
