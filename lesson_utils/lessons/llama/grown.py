"""Small models, one change at a time; and a tiny Llama that says words backwards."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import attention, tasks
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.layers.basic import LayerNorm
from lesson_utils.maths.models import GPT, GPTConfig

# --- One change at a time ---------------------------------------------------------------------------------------------

START = "2017"
CHANGES: dict[str, dict[str, Any]] = {
    "norm first": {"norm": "pre"},
    "RMS norm": {"norm_kind": "rms"},
    "SwiGLU": {"activation": "swiglu"},
    "rotary": {"positions": "rotary"},
    "shared keys": {},  # how many is an argument
    "no biases": {},  # no part of a config
}
ALL = tuple(CHANGES)
LADDER = tuple(ALL[:n] for n in range(len(ALL) + 1))  # one after the other
BACK = tuple(tuple(name for name in ALL if name != left_out) for left_out in ALL)  # all but one
SMALL, NO_BETA = "start at 0.02", "β stays 0"
WIDTH, HEADS, LENGTH = 32, 4, 32


def config_of(
    changes: Collection[str], vocab: int, heads: int = HEADS, shared: int = 2, width: int = WIDTH
) -> GPTConfig:
    """Configure two layers with these changes, all of nearly as many parameters as those of 2017.

    What `shared` key–value heads save goes to the feed-forward network; each of SwiGLU's three matrices has two thirds
    of the width (Shazeer, 2020, section 2).
    """
    if unknown := sorted(set(changes).difference(ALL, {SMALL, NO_BETA})):
        raise ValueError(f"there is no change {unknown[0]!r}; there are {', '.join((*ALL, SMALL, NO_BETA))}")
    config = GPTConfig(vocab=vocab, d_model=width, num_heads=heads, num_layers=2, max_length=LENGTH, norm="post")
    for name in changes:
        config = replace(config, **CHANGES.get(name, {}))
    d_ff = 4.0 * width
    if "shared keys" in changes:
        config = replace(config, num_kv_heads=shared)
        d_ff += width * (1 - shared / heads)  # W_K and W_V have lost as many numbers as that gives W_1 and W_2
    return replace(config, d_ff=round(d_ff * 2 / 3 if "SwiGLU" in changes else d_ff))


class _NoBeta(LayerNorm):
    """Layer norm whose β stays 0."""

    def backward(self, dy: Array, cache: Any) -> Array:
        dx = super().backward(dy, cache)
        self.beta.grad[:] = 0
        return dx


def small_gpt(changes: Collection[str], vocab: int, seed: int = 0, **sizes: int) -> GPT:
    """Make a model with these changes, untrained. `sizes` are those of `config_of`."""
    rng = np.random.default_rng(seed)
    model = GPT(config_of(changes, vocab, **sizes), rng)
    if "no biases" in changes:
        _without_biases(model)
    if NO_BETA in changes:
        parts = (part for block in model.stack.blocks for part in (block.attention, block.feed_forward))
        for holder in (*parts, model.stack):
            holder.norm = _NoBeta(WIDTH)
    if SMALL in changes:
        for param in model.params().values():
            if param.value.ndim == 2:
                param.value = rng.normal(0, 0.02, param.value.shape).astype(np.float32)
        model.tokens.embedding.scale = 1.0
    return model


def _without_biases(model: GPT) -> None:
    for block in model.stack.blocks:
        block.feed_forward.inner.wide.b = block.feed_forward.inner.narrow.b = None


def bits(model: GPT, ids: Ids) -> float:
    """Return the loss in bits per character, over all of a text in windows that do not overlap."""
    starts = np.arange(0, len(ids) - LENGTH, LENGTH)
    windows = ids[starts[:, None] + np.arange(LENGTH + 1)]  # (N, T + 1)
    parts = np.array_split(windows, -(-len(windows) // 128))
    nats = sum(model.loss((part[:, :-1], part[:, 1:])) * len(part) for part in parts) / len(windows)
    return float(nats / np.log(2))


# --- Parameters by name, for a learner's block ------------------------------------------------------------------------


class Block(NamedTuple):
    """The parameters of one block, and how many heads it has."""

    gamma_1: Array  # (d_model,), of the norm before attention
    W_Q: Array  # (d_model, d_model)
    W_K: Array  # (d_model, h_kv · d_k)
    W_V: Array
    W_O: Array  # (d_model, d_model)
    gamma_2: Array  # (d_model,), of the norm before the feed-forward layer
    W_gate: Array  # (d_model, d_ff)
    W_up: Array
    W_down: Array  # (d_ff, d_model)
    h: int
    h_kv: int


class Llama(NamedTuple):
    """All parameters of a model."""

    table: Array  # (V, d_model), embeddings and output layer
    blocks: list[Block]
    gamma: Array  # (d_model,), of the last norm
    base: float  # of the rotation
    eps: float  # of all norms


def weights_of(model: GPT) -> Llama:
    """Return the parameters of a Llama-shaped model by name; the arrays are the model's own."""
    blocks = []
    for block, heads in zip(model.stack.blocks, model.stack.heads(), strict=True):
        p = {name.removeprefix("inner."): param.value for name, param in block.attention.params().items()}
        q = {name.removeprefix("inner."): param.value for name, param in block.feed_forward.params().items()}
        first = p["norm.gamma"], p["W_Q"], p["W_K"], p["W_V"], p["W_O"]
        second = q["norm.gamma"], *np.split(q["wide.W"], 2, axis=1), q["narrow.W"]
        blocks.append(Block._make([*first, *second, heads.num_heads, heads.num_kv_heads]))
    rotary, norm = model.config.rotation, model.stack.norm
    assert rotary is not None
    assert norm is not None
    return Llama(model.tokens.embedding.table.value, blocks, norm.gamma.value, rotary.base, norm.eps)


# --- A tiny Llama that says words backwards ---------------------------------------------------------------------------

LETTERS = tasks.letters(26)
SIGN = 2  # stands between a word and its answer: the id for an end, which no word has
WORD = 6


def said_backwards(rng: np.random.Generator, batch: int = 64) -> tuple[Ids, Ids]:
    """Draw a batch for a GPT: random words of six letters, a sign, the words backwards; and the same one symbol on."""
    word, backwards = tasks.reversal(rng, batch, WORD)
    ids = np.concatenate([word, np.full((batch, 1), SIGN), backwards], axis=1)
    return ids[:, :-1], ids[:, 1:]


def tiny_llama(seed: int = 0) -> GPT:
    """Make a Llama of two layers, untrained: all six changes, six query heads on two key–value heads."""
    config = GPTConfig(
        vocab=len(LETTERS),
        d_model=48,
        num_heads=6,
        num_kv_heads=2,
        num_layers=2,
        d_ff=128,
        norm_kind="rms",
        activation="swiglu",
        positions="rotary",
        max_length=2 * WORD + 1,
    )
    model = GPT(config, np.random.default_rng(seed))
    _without_biases(model)
    model.tokens.embedding.scale = 1.0  # Llama multiplies by no √d_model
    return model


def asked(word: str) -> list[int]:
    """Return the ids of a word of six letters and the sign behind it."""
    if len(word) != WORD:
        raise ValueError(f"{word!r} has {len(word)} letters; the model has learned words of {WORD}")
    return [*LETTERS.encode(word).tolist(), SIGN]


Reader = Callable[[list[int]], Iterable[Array]]


def right(read: Reader, words: int = 20) -> float:
    """Return the share of letters that are right, when the right ones before are given."""
    given, wanted = said_backwards(np.random.default_rng(9), words)
    found = np.array([[logits.argmax() for logits in read(ids.tolist())] for ids in given])  # (words, 12)
    return float((found == wanted)[:, WORD:].mean())


def remember(
    cache: tuple[list[Array], list[Array]], attend: Callable[..., Array], Q: Array, K: Array, V: Array
) -> Array:
    """Put new keys and values into a cache, (h_kv, 1, d_k) each, and attend to all that it holds."""
    for kept, new in zip(cache, (K, V), strict=True):
        kept.append(new)
    return attend(Q, *(np.concatenate(kept, axis=1) for kept in cache))


def own_keys(Q: Array, K: Array, V: Array) -> Array:
    """Attention in which each of h query heads has its own copy of its group's keys and values, (h_kv, T, d_k)."""
    K, V = attention.repeat_heads(K, len(Q)), attention.repeat_heads(V, len(Q))
    return attention.scaled_dot_product_attention(Q, K, V)[0]
