"""What is measured of the real model: what is stored of it, scores of its heads, and models run without a part."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import models, ops
from lesson_utils.maths.attention import repeat_heads, scaled_dot_product_attention, split_heads
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Attend, KnockOut
from lesson_utils.maths.layers.blocks import EncoderCache, EncoderLayer
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import Change, HeadsOf, changed
from lesson_utils.maths.models.gpt import GPTCache, see_past

# --- What is stored ---------------------------------------------------------------------------------------------------
# All of it was measured once. The programs that did so are in git's history: `git log -- tools/measure` finds them.

NAME = "smollm2 135m"  # the name of the model that the results are of begins so
NOTE = "stored results of SmolLM2-135M-Instruct"


@cache
def stored() -> dict[str, Any]:
    """Return all arrays by name."""
    with np.load(
        BytesIO((files("lesson_utils.lessons.real_model") / "measured.npz").read_bytes()), allow_pickle=False
    ) as file:
        return dict(file)


def label(figure: Any, note: str = NOTE) -> None:
    """Say in a figure that what it shows is stored."""
    figure.supxlabel(note, x=0.99, ha="right", size=9, color="#6B6B6B", style="italic")


# --- Measures: scores of heads, and what a model loses without them ---------------------------------------------------


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

SENTENCES = (
    "Ilse put the key on the table, went out, came back an hour later and looked for the",
    "Nobody in the village had ever heard the old man speak about the sea, and nobody asked",
    "When the last train had left the station, the woman in the red coat turned around and walked into",
    "The captain read the letter twice, folded it, put it into his pocket and left the",
    "My sister climbed the old tree behind the house to bring back her neighbour's",
    "He had forgotten his wallet at home, so the waiter asked him to leave his",
    "After the rain the children ran across the wet field and jumped over the",
)

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
    replace: Callable[[Array, Sequence[int], str], Array] | None = None,
) -> tuple[Array, GPTCache]:
    """Run a model without some heads, {layer: heads}, with another attention or mask: logits and cache.

    By "zero" or "mean", see `models.trying`; or by a function of one's own, `replace(outputs, heads, by)`.
    """
    off = {"decoder": knock_out} if knock_out else None
    own: list[Change] = []
    if replace:
        heads = model.heads()["decoder"]
        own = [(heads[layer], "knock_out", Replaced(replace, [*out], by)) for layer, out in (knock_out or {}).items()]
    with models.trying(model, off, by, attend), changed(own):
        return model.forward(ids, mask=mask)


class Replaced(NamedTuple):
    """In the place of the library's `KnockOut`: a function that replaces the outputs of some heads."""

    function: Any
    heads: list[int]
    by: str

    def apply(self, outputs: Array) -> Array:
        """Replace them, in outputs of shape (B, h, T, d_k)."""
        return np.asarray(self.function(outputs, self.heads, self.by), outputs.dtype)


def losses(model: GPT, ids: Ids, **trying: Any) -> Array:
    """Return the nats of each next token: (B, T + 1) → (B, T). The other arguments are those of `run`."""
    return of_next(run(model, ids[:, :-1], **trying)[0], ids)


def of_next(logits: Array, ids: Ids) -> Array:
    """Return −log p of each next token: (B, T, V) and (B, T + 1) → (B, T)."""
    return -np.take_along_axis(ops.log_softmax(logits), ids[:, 1:, None], axis=-1)[..., 0]


# --- What a head does ------------------------------------------------------------------------------------------------

# The scores of a head. All but "induction" are of a page of the story, queries from the fourth on. "Same token" counts
# queries whose token came before; "entropy" is 1 where a head spreads its weight evenly.
SCORES = ("previous token", "first token", "same token", "induction", "entropy")


def induction_score(maps: Array, period: int) -> Array:
    """Return the second copy's mean weight on the token after the same token in the first: (..., T, T) → (...)."""
    score: Array = np.diagonal(maps, 1 - period, -2, -1)[..., 1 : period + 1].mean(axis=-1)
    return score


def look_near(maps: Array, period: int, off: int = 0) -> Array:
    """Return the second copy's mean weight so many places from the token after the same token: (..., T, T) → (...)."""
    last = min(period + 1, maps.shape[-1] - period)  # without the last query of all: nothing stands after its answer
    weight: Array = np.diagonal(maps, 1 - period + off, -2, -1)[..., 1 + off : last + off].mean(axis=-1)
    return weight


def copies(rng: np.random.Generator, vocab: int, batch: int, period: int = COPIED) -> Ids:
    """Random tokens, twice: (B, 2 · period)."""
    return np.tile(rng.integers(100, vocab, size=(batch, period)), 2)  # the first hundred are special or single bytes


def all_maps(model: GPT, ids: Ids, **trying: Any) -> Array:
    """Return the maps of all heads, (B, layers, heads, T, T). The other arguments are those of `run`."""
    return np.stack(model.maps(run(model, ids, **trying)[1])["decoder"], axis=1)


def copying(model: GPT, ids: Ids, **trying: Any) -> tuple[float, float]:
    """Return the nats a token in the first copy, and in the second. The other arguments are those of `run`."""
    nats = losses(model, ids, **trying)
    return float(nats[:, : COPIED - 1].mean()), float(nats[:, COPIED - 1 :].mean())


def logits_of(model: GPT, stream: Array) -> Array:
    """Return the logits of what is the stream after the last layer."""
    norm = model.stack.norm
    assert norm is not None
    logits: Array = model.tokens.embedding.logits_forward(norm.forward(stream)[0])[0]
    return logits


# --- Path patching: one head's output taken out of one input of other heads, and of nothing else ----------------------

INPUTS = ("queries", "keys", "values")
Inputs = Callable[..., tuple[Array, Array, Array]]
READERS = {17: (3, 4, 5), 18: (6, 7)}  # the five induction heads of SmolLM2's layers 17 and 18
OTHERS = {17: (0, 1, 2), 18: (0, 2)}  # as many others of these layers
PREVIOUS_HEAD = (16, 0)  # its strongest previous-token head


def patched_inputs(
    x: Array, written: Array, norm: Callable[[Array], Array], W_Q: Array, W_K: Array, W_V: Array, into: str = "keys"
) -> tuple[Array, Array, Array]:
    """Return Q, K and V, one of them made from a stream that lacks `written`, as the exercise asks for."""
    whole, without = norm(x), norm(x - written)
    made = [(without if name == into else whole) @ W for name, W in zip(INPUTS, (W_Q, W_K, W_V), strict=True)]
    return made[0], made[1], made[2]


def run_patched(
    model: GPT,
    ids: Ids,
    head: tuple[int, int] = PREVIOUS_HEAD,
    inputs: Inputs = patched_inputs,
    readers: Mapping[int, Sequence[int]] = READERS,
    detour: bool = False,
) -> tuple[Array, Array]:
    """Run a model in which some heads read one of their inputs without what `head` has written.

    All other layers, and the readers' other inputs, read the stream as it is.

    Args:
        head: layer and number of the head that is taken out.
        inputs: makes the readers' Q, K and V, as `patched_inputs`.
        readers: {layer: heads}, all of them above `head`.
        detour: also take out what the feed-forward network of its layer makes of its output.

    Returns:
        Logits, (B, T, V), and the readers' maps, (B, readers, T, T).
    """
    x, _ = model.tokens.forward(ids)
    mask, written, maps = see_past(ids.shape[1], ids.shape[1], x.dtype), np.zeros_like(x), []
    for layer, block in enumerate(model.stack.blocks):
        reading = readers.get(layer, ())
        if layer == head[0]:
            x, written = wrote(block, x, head[1], detour)
            continue
        attend = _reads(block, x, written, reading, inputs)
        with changed([(block.attention.inner, "attend", attend)] if reading else []):
            x, cache = block.forward(x, mask)
        maps += [block.map(cache)[:, n] for n in reading]
    return logits_of(model, x), np.stack(maps, axis=1)


def wrote(block: EncoderLayer, x: Array, head: int, detour: bool = True) -> tuple[Array, Array]:
    """Return the stream after a layer, and what one of its heads has written into it: (B, T, d_model) each.

    With its detour: with what the feed-forward network of the layer makes of it.
    """
    mask = see_past(x.shape[1], x.shape[1], x.dtype)
    after, cache = block.forward(x, mask)
    if not detour:
        return after, written_by(block, cache, head)
    with changed([(block.attention.inner, "knock_out", KnockOut((head,)))]):
        return after, after - block.forward(x, mask)[0]


def written_by(block: EncoderLayer, cache: EncoderCache, head: int) -> Array:
    """Return what one head of a layer has added to the stream, (B, T, d_model): its output times its rows of W_O."""
    merged, W_O = cache.attention.inner.merged  # (B, T, d_model) and (d_model, d_model)
    d_k = W_O.shape[0] // block.attention.inner.num_heads
    own = slice(head * d_k, (head + 1) * d_k)
    result: Array = merged[..., own] @ np.asarray(W_O)[own]
    return result


def _reads(block: EncoderLayer, x: Array, written: Array, reading: Sequence[int], inputs: Inputs) -> Attend:
    """Return attention in which the `reading` heads have other inputs, for `attend=`."""
    inner, norm, at = block.attention.inner, block.attention.norm, np.arange(x.shape[1])
    assert norm is not None

    def attend(Q: Array, K: Array, V: Array, mask: Mask | None = None) -> tuple[Array, Array]:
        matrices = (np.asarray(W.value) for W in (inner.W_Q, inner.W_K, inner.W_V))  # packed ones are unpacked
        made = inputs(x, written, lambda stream: norm.forward(stream)[0], *matrices)
        mixed: list[Array] = []
        biases = (inner.b_Q, inner.b_K, inner.b_V)  # of a model of somebody's own
        for n, (kept, now, b) in enumerate(zip((Q, K, V), made, biases, strict=True)):
            now = np.asarray(now if b is None else now + b.value, x.dtype)
            new = split_heads(now, inner.num_heads if n == 0 else inner.num_kv_heads)
            if inner.rotary is not None and n < 2:
                new = inner.rotary.turn(new, at)
            mixed.append(kept.copy())
            mixed[n][:, reading] = repeat_heads(new, inner.num_heads)[:, reading]
        return scaled_dot_product_attention(mixed[0], mixed[1], mixed[2], mask)

    return attend


def copy_without(model: GPT, ids: Ids, **how: Any) -> float:
    """Return the nats per token of the second copy in a patched run; `how` as for `run_patched`."""
    logits, _ = run_patched(model, ids[:, :-1], **how)
    return float(of_next(logits, ids)[:, ids.shape[1] // 2 - 1 :].mean())


def moved(model: GPT, ids: Ids, inputs: Inputs, head: tuple[int, int] = PREVIOUS_HEAD) -> list[float]:
    """Return what the five heads and the model do when their inputs say something else, of the answer and of the next.

    The heads' mean weight at the answer and at the place after it, the nats of each of these two tokens, and how often
    the model says each first.
    """
    logits, maps = run_patched(model, ids[:, :-1], head, inputs)
    log_p = ops.log_softmax(logits[:, COPIED:-1])
    tokens = [ids[:, COPIED + 1 + after : ids.shape[1] - 1 + after] for after in (0, 1)]
    near = [float(look_near(maps, COPIED, off).mean()) for off in (0, 1)]
    nats = [-float(np.take_along_axis(log_p, token[..., None], axis=-1).mean()) for token in tokens]
    return [*near, *nats, *(float((log_p.argmax(axis=-1) == token).mean()) for token in tokens)]


# --- A token that is hidden, or emptied -------------------------------------------------------------------------------

HALF = PAGE // 2
DEPTH = 15  # layers after which the lengths of the stream are measured


def hidden(model: GPT, ids: Ids) -> tuple[list[float], Array, Array]:
    """Hide the first token of a page in three ways: ids (1, PAGE + 1) → nats of the second half, its weights, lengths.

    As it is; hidden from the start, and from the middle; and with a token in the middle that sees only itself. Weights
    of the second half's queries, all heads, and lengths of the stream after 15 layers: (4, PAGE) each.
    """
    masks = np.tile(np.tri(PAGE, dtype=bool), (4, 1, 1))
    masks[1, 1:, 0] = masks[2:, HALF:, 0] = masks[3, HALF, :HALF] = False
    nats, shares, lengths = [], [], []
    for mask in masks:
        logits, cache = run(model, ids[:, :-1], mask=mask)
        nats.append(float(of_next(logits, ids)[0, HALF + 1 :].mean()))
        shares.append(np.mean([maps[0, :, HALF:].mean(axis=(0, 1)) for maps in model.maps(cache)["decoder"]], axis=0))
        x, _ = model.tokens.forward(ids[:, :-1])
        for block in model.stack.blocks[:DEPTH]:
            x, _ = block.forward(x, mask.astype(x.dtype))
        lengths.append(np.linalg.norm(x[0], axis=-1))
    return nats, np.stack(shares), np.stack(lengths)


def sink(model: GPT, ids: Ids, other: Ids, emptied: Attend, borrowed: Attend) -> list[float]:
    """Return the nats of a page's second half: as it is, its first token hidden, emptied, and lent by another page.

    ids and other: (1, PAGE + 1) each. `borrowed` runs on both at once, and changes the first.
    """
    hiding = np.tri(PAGE, dtype=bool)
    hiding[HALF:, 0] = False
    ways: tuple[dict[str, Any], ...] = ({}, {"mask": hiding}, {"attend": emptied}, {"attend": borrowed})
    pages = [ids, ids, ids, np.concatenate([ids, other])]
    return [float(losses(model, page, **way)[0, HALF + 1 :].mean()) for page, way in zip(pages, ways, strict=True)]


def weight_and_effect(model: GPT, ids: Ids) -> tuple[Array, Array]:
    """Return the last query's mean weight on each token before it, and the change of its prediction if that is hidden.

    ids: (1, T). Hidden from all later tokens, one at a time; in nats, by the divergence of Kullback and Leibler.
    """
    logits, cache = run(model, ids)
    weight = np.mean([maps[0, :, -1, :-1] for maps in model.maps(cache)["decoder"]], axis=(0, 1))
    log_p = ops.log_softmax(logits[0, -1].astype(np.float64))
    effect = []
    for at in range(ids.shape[1] - 1):
        mask = np.tri(ids.shape[1], dtype=bool)
        mask[at + 1 :, at] = False
        log_q = ops.log_softmax(run(model, ids, mask=mask)[0][0, -1].astype(np.float64))
        effect.append(float((np.exp(log_p) * (log_p - log_q)).sum()))
    return weight, np.array(effect)
