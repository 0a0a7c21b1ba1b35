"""Direct logit attribution: which heads write a surname into the final stream, and what they make of what they read."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.real_model import measures, paths, recall
from lesson_utils.lessons.real_model.stored import label, stored
from lesson_utils.maths.attention import repeat_heads, split_heads
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.layers.blocks import EncoderLayer
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.gpt import see_past

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

Ahead = Callable[[Array, Array, Array, Array, Array], Any]
FROM = 16  # the lowest layer whose heads are switched off: that of 16.0


class Parts(NamedTuple):
    """The parts of the last token's final stream, and the last token's maps.

    heads: (layers, heads, d_model). others: what the embedding and each feed-forward network have added,
    (1 + layers, d_model). stream: their sum, (d_model,). maps: (layers, heads, T).
    """

    heads: Array
    others: Array
    stream: Array
    maps: Array


def parts(model: GPT, ids: Ids) -> Parts:
    """Take the final stream of the last token apart; ids are (1, T)."""
    x, _ = model.tokens.forward(ids)
    mask = see_past(ids.shape[1], ids.shape[1], x.dtype)
    heads, others, maps = [], [x[0, -1]], []
    for block in model.stack.blocks:
        below, (x, cache) = x, block.forward(x, mask)
        written = [paths.written_by(block, cache, head)[0, -1] for head in range(model.config.num_heads)]
        heads.append(np.stack(written))
        others.append(x[0, -1] - below[0, -1] - heads[-1].sum(axis=0))
        maps.append(block.map(cache)[0, :, -1])
    return Parts(np.stack(heads), np.stack(others), x[0, -1], np.stack(maps))


def ahead(part: Array, stream: Array, gamma: Array, own: Array, others: Array) -> Array:
    """Return by how many logits parts of a stream, (..., d_model), put one token ahead of the mean of others.

    The scale of the final RMS norm stays that of the whole stream. own: the token's row of the table of embeddings,
    (d_model,). others: the rows of the others, (n, d_model).
    """
    scale = np.sqrt(np.mean(stream**2))
    pushed: Array = (part / scale * gamma) @ (own - others.mean(axis=0))
    return pushed


def first_pieces(p: "Pretrained", people: tuple[str, ...] = recall.PEOPLE) -> Ids:
    """Return the first token of each surname."""
    return np.array([p.tokenizer.encode(" " + recall.surname_of(name))[0] for name in people])


def rows(p: "Pretrained", name: str) -> tuple[Array, Array]:
    """Return the rows of the table of embeddings for a surname, (d_model,), and for those of the other people."""
    own, others = first_pieces(p, (name,)), first_pieces(p)
    table = p.model.tokens.embedding.table.value
    return table[own][0], table[others[others != own[0]]]


def who_writes(p: "Pretrained", name: str = "Ilse Brandt", count: int = 5, by: Ahead = ahead) -> str:
    """List the heads that push a surname most, by a function as `ahead`, and the sum of all parts."""
    model, ids = p.model, p.tokenizer.encode(recall.prompt(name))[None]
    found, (own, others) = parts(model, ids), rows(p, name)
    norm = model.stack.norm
    assert norm is not None

    def pushed(part: Array) -> float:
        return float(by(part, found.stream, np.asarray(norm.gamma.value), own, others))

    heads = np.array([[pushed(part) for part in layer] for layer in found.heads])
    width = heads.shape[1]
    best = np.argsort(-heads, axis=None)[:count]
    listed = ", ".join(f"{n // width}.{n % width} {heads.flat[n]:+.1f}" for n in best)
    rest = sum(pushed(part) for part in found.others)
    return (
        f"{name}: {listed}, other heads {heads.sum() - heads.flat[best].sum():+.1f}, "
        f"all else {rest:+.1f}; together {heads.sum() + rest:.1f}"
    )


def copying_shares(block: EncoderLayer, x: Array, gamma: Array, table: Array) -> tuple[Array, Array]:
    """Say how often each head's W_V W_O turns a token's vector into that token, first of all given tokens.

    Args:
        x: a vector for each of n tokens, (n, d_model), as the layer reads it.
        gamma: of the final norm, (d_model,). table: the rows of the table of embeddings for the n tokens.

    Returns:
        the share of tokens that are in the first place, (heads,), and the median place, from 1 on, (heads,).
    """
    inner, norm = block.attention.inner, block.attention.norm
    assert norm is not None
    V = split_heads((norm.forward(x[None])[0] @ np.asarray(inner.W_V.value)), inner.num_kv_heads)
    V = repeat_heads(V, inner.num_heads)[0]  # (heads, n, d_k)
    W_O = np.asarray(inner.W_O.value).reshape(inner.num_heads, V.shape[-1], -1)
    places = []
    for values, out in zip(V, W_O, strict=True):
        logits = values @ out * gamma @ table.T  # (n, n)
        places.append(1 + (logits > np.diag(logits)[:, None]).sum(axis=1))
    return (np.array(places) == 1).mean(axis=1), np.median(places, axis=1)


def in_text(model: GPT, ids: Ids) -> list[Array]:
    """Return the stream before each layer, (B · T, d_model): what its heads read of tokens that stand in a text."""
    return [x.reshape(-1, x.shape[-1]) for x in measures.streams(model, ids)[:-1]]


# --- The picture and the table ----------------------------------------------------------------------------------------


def shown() -> list[tuple[int, int]]:
    """Return the heads of the picture: four that push most, the readers of the wire, 16.0, and two that push back."""
    pushed = stored()["writes_direct"].astype(float).mean(axis=0)
    order = np.argsort(-pushed, axis=None).tolist()
    wire = [layer * 9 + head for layer, heads in (*paths.READERS.items(), (16, [0])) for head in heads]
    return [(n // 9, n % 9) for n in sorted({*order[:4], *wire, *order[-2:]}, key=order.index)]


def lost(layer: int, head: int, by: str = "zero") -> Array:
    """Return by how many logits each surname falls back without a head, by zeros or by its mean: (people,)."""
    fall: Array = stored()["writes_cost"][("zero", "mean").index(by), :, layer - FROM, head].astype(float)
    return fall


@plots.still(9.8, 4.8)
def writes_plot(figure: "Figure") -> str:
    """Draw how far heads push a surname ahead of nine others, and how much of its lead is lost without them."""
    known: Any = stored()
    heads = shown()
    at, names = np.arange(len(heads)), [f"{layer}.{head}" for layer, head in heads]
    pushed = np.array([known["writes_direct"][:, layer, head] for layer, head in heads]).astype(float)
    costs = np.array([lost(*head).mean() for head in heads])
    means = pushed.mean(axis=1)
    ax = figure.subplots()
    ax.barh(at, means, 0.7, color=plots.BLUE, alpha=0.35, label="it writes (dots: ten names)")
    ax.plot(pushed.ravel(), np.repeat(at, pushed.shape[1]), "o", color=plots.BLUE, ms=4, alpha=0.7)
    ax.plot(costs, at, "D", color=plots.ORANGE, ms=8, label="lost when it is off (mean of ten names)")
    ax.axvline(0, color=plots.GREY, lw=1)
    ax.set_yticks(at, names)
    ax.invert_yaxis()
    ax.set(xlabel="logits that the surname is ahead of nine others", ylabel="head")
    ax.legend(loc="lower right", fontsize=10.5)
    off = heads.index(paths.FIRST)
    ax.set_title(
        f"{names[0]} writes {means[0]:.1f} logits, and {costs[0]:.1f} are lost without it; "
        f"{names[off]} writes {means[off]:.1f}, and {costs[off]:.1f} are lost",
        size=12,
    )
    label(figure)
    listed = ", ".join(
        f"{name} {push:+.1f} and {cost:+.1f}" for name, push, cost in zip(names, means, costs, strict=True)
    )
    return (
        "How many logits each head puts the surname ahead of nine others, and how many are lost when the head is off, "
        f"means of ten names: {listed}. All parts together put it {known['writes_ahead'].mean():.1f} ahead. "
        "Stored results."
    )


def copies_table() -> str:
    """List how many tokens heads copy: the four that push most, two others that copy most, one that pushes back."""
    known: Any = stored()
    pushed, looks = (known[f"writes_{name}"].astype(float).mean(axis=0) for name in ("direct", "looks"))
    copies, heads = known["writes_copies"].astype(float), shown()
    most = [(int(n) // 9, int(n) % 9) for n in np.argsort(-copies[1], axis=None)]
    lines = [f"{'head':6}{'writes':>8}{'weight on: surname':>20}{'itself':>8}{'copies from: table':>20}{'text':>6}"]
    for layer, head in (*heads[:4], *[one for one in most if one not in heads][:2], heads[-1]):
        at, own = looks[layer, head]
        (table, text), writes = copies[:, layer, head], round(pushed[layer, head], 1) + 0.0  # not -0.0
        lines.append(f"{f'{layer}.{head}':6}{writes:8.1f}{at:20.0%}{own:8.0%}{table:20.0%}{text:6.0%}")
    return "\n".join(lines)
