"""One bug at a time in the published model: what it says, its perplexity, and a map of one of its heads (notebook 10).

Each bug is put where it would stand in a program, into the layers as they are, and taken out again. Answers are greedy
and computed without a cache, so that they are of the same pass as the perplexity; but for the bug that is of the cache.
"""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import lesson_utils
from lesson_utils.lessons.real_model import measures
from lesson_utils.maths import ops, pretrained
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.layers import Attend, blocks, heads
from lesson_utils.maths.models import GPT
from lesson_utils.maths.positions import Rotary

FILE = Path(lesson_utils.__file__).parent / "lessons" / "debugging" / "symptoms.json"
QUESTION = "What is the capital of France?"
LENGTH = 14  # tokens of an answer
SENTENCE = "The cat that the dog chased sat on the mat."
HEAD = (16, 0)  # layer and head of the map: of all heads, the one that looks most at the token before


def wrong_attention(
    scale: Callable[[int], float] = lambda d_k: 1 / math.sqrt(d_k),
    axis: int = -1,
    seen: Callable[[Array], Array] = lambda mask: mask,
    late_mask: bool = False,
    twice: bool = False,
    turn_values: bool = False,
) -> Attend:
    """Attention with a part that can be wrong; as it stands, it is right."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
        T_q, T_k = Q.shape[-2], K.shape[-2]
        visible = seen(np.ones((T_q, T_k), bool) if mask is None else mask)
        if turn_values:
            V = Rotary(ROPE_BASE).turn(V, np.arange(T_k))
        scores = Q @ K.swapaxes(-1, -2) * np.float32(scale(Q.shape[-1]))  # (B, h, T_q, T_k)
        if not late_mask:
            scores = np.where(visible, scores, np.float32(-np.inf))
        weights = ops.softmax(scores, axis=axis)  # a row without anything to see: zeros
        if late_mask:
            weights = np.where(visible, weights, np.float32(0))
        if twice:
            weights = ops.softmax(weights)  # what was hidden had weight 0, and e⁰ = 1
        return weights @ V, weights

    return attend


ROPE_BASE = 100_000.0  # of this model


def without_swap(x: Array, num_heads: int) -> Array:
    """(B, T, d) → (B, h, T, d_k) by `reshape` alone."""
    B, T, d = x.shape
    return x.reshape(B, num_heads, T, d // num_heads)


def merged_without_swap(x: Array) -> Array:
    """(B, h, T, d_k) → (B, T, d) by `reshape` alone."""
    B, h, T, d_k = x.shape
    return x.reshape(B, T, h * d_k)


def tiled(x: Array, num_heads: int) -> Array:
    """Heads of keys or values for all queries: 0 1 2 0 1 2 …, where 0 0 0 1 1 1 … belongs."""
    return np.tile(x, (1, num_heads // x.shape[1], 1, 1))


def adds_the_normed(self: Any, x: Array, rng: Any = None, **inputs: Any) -> tuple[Array, Any]:
    """A residual connection that has lost x: the norm's output goes both ways."""
    y, norm = self.norm.forward(x)
    z, inner = self.inner.forward(y, **inputs)
    return y + z, blocks.ResidualCache(norm, inner, None)


@dataclass(frozen=True)
class Restarting(Rotary):
    """Positions behind a prompt that is `prompt` long, if each new token is taken for the first."""

    prompt: int = 0

    def turn(self, x: Array, positions: Any) -> Array:
        return super().turn(x, np.where(np.asarray(positions) >= self.prompt, 0, positions))


Patches = Callable[[GPT], list[Any]]


def in_each_block(name: str, value: Callable[[Any], Any]) -> Patches:
    """Something of each layer's attention is another: `value` makes it of what it was."""

    def patches(model: GPT) -> list[Any]:
        found = []
        for block in model.stack.blocks:
            holder: Any = block
            *way, last = name.split(".")
            for step in way:
                holder = getattr(holder, step)
            found.append(mock.patch.object(holder, last, value(getattr(holder, last))))
        return found

    return patches


@dataclass(frozen=True)
class Bug:
    """A bug: the attention that has it, or what is put in place of parts of a model."""

    attend: Attend | None = None
    patches: Patches = lambda model: []
    cached: bool = False  # it is the cache's

    @contextmanager
    def in_(self, model: GPT) -> Iterator[None]:
        with ExitStack() as stack:
            for patch in self.patches(model):
                stack.enter_context(patch)
            yield


def _instead(holder: Any, name: str, value: Any) -> Patches:
    return lambda model: [mock.patch.object(holder, name, value)]


def _split_queries(model: GPT) -> list[Any]:
    own = heads.split_heads

    def split(x: Array, num_heads: int) -> Array:
        return without_swap(x, num_heads) if num_heads == model.config.num_heads else own(x, num_heads)

    return [mock.patch.object(heads, "split_heads", split)]


def _swapped(model: GPT) -> list[Any]:
    own = ops.swiglu_forward
    return [mock.patch.object(ops, "swiglu_forward", lambda gate, value: own(value, gate))]


def bugs(d_model: int, prompt: int = 0) -> dict[str, Bug]:
    """All bugs by the name that the figure shows; `prompt` is the length of the chat's."""
    return {
        "nothing is wrong": Bug(),
        "no causal mask": Bug(wrong_attention(seen=np.ones_like)),
        "mask one too late": Bug(
            wrong_attention(seen=lambda mask: np.tri(mask.shape[-2], mask.shape[-1], 1, dtype=bool))
        ),
        "mask inverted": Bug(wrong_attention(seen=np.logical_not)),
        "mask after softmax": Bug(wrong_attention(late_mask=True)),
        "no scale": Bug(wrong_attention(scale=lambda d_k: 1.0)),
        "scale 1/d_k": Bug(wrong_attention(scale=lambda d_k: 1 / d_k)),
        "scale 1/√d_model": Bug(wrong_attention(scale=lambda d_k: 1 / math.sqrt(d_model))),
        "softmax twice": Bug(wrong_attention(twice=True)),
        "softmax over queries": Bug(wrong_attention(axis=-2)),
        "queries split, no swap": Bug(patches=_split_queries),
        "heads merged, no swap": Bug(patches=_instead(heads, "merge_heads", merged_without_swap)),
        "groups tiled": Bug(
            patches=_instead(heads, "repeat_heads", lambda x, n: np.tile(x, (1, n // x.shape[1], 1, 1)))
        ),
        "positions left out": Bug(patches=in_each_block("attention.inner.rotary", lambda own: None)),
        "positions turn halves": Bug(
            patches=in_each_block("attention.inner.rotary", lambda own: Rotary(own.base, pairs="halves"))
        ),
        "positions turn values, too": Bug(wrong_attention(turn_values=True)),
        "norm left out": Bug(patches=in_each_block("attention.norm", lambda own: None)),
        "residual of the normed": Bug(patches=_instead(blocks.Residual, "forward", adds_the_normed)),
        "gate and value swapped": Bug(patches=_swapped),
        "cache starts at 0 again": Bug(
            patches=in_each_block("attention.inner.rotary", lambda own: Restarting(own.base, prompt=prompt)),
            cached=True,
        ),
    }


def perplexity(model: GPT, ids: Ids, attend: Attend | None) -> float:
    with np.errstate(all="ignore"):
        return measures.perplexity(measures.losses(model, ids, attend=attend)[0, measures.SEEN :])


def answer(p: pretrained.Pretrained, prompt: Ids, bug: Bug) -> str:
    """What the model says greedily, with the tokens that mean no text by their names."""
    told: list[int] = []
    past, fresh = (p.model.new_past() if bug.cached else None), prompt
    with np.errstate(all="ignore"):
        for _ in range(LENGTH):
            logits = p.model.forward(fresh[None], past, attend=bug.attend)[0][0, -1]
            if not np.isfinite(logits).all():
                break
            told.append(int(logits.argmax()))
            if told[-1] in p.ends:
                break
            fresh = np.array(told[-1:]) if bug.cached else np.array([*prompt, *told])
    return p.tokenizer.decode(told)


def run() -> None:
    p = pretrained.load()
    model, prompt = p.model, p.chat([("user", QUESTION)])
    story = p.tokenizer.encode(measures.STORY)[None, : measures.PAGE + 1]
    ids = p.tokenizer.encode(SENTENCE)
    layer, head = HEAD
    found = {}
    for name, bug in bugs(model.config.d_model, len(prompt)).items():
        with Bug().in_(model) if bug.cached else bug.in_(model):  # a pass without a cache can't show a cache's bug
            lost = perplexity(model, story, bug.attend)
        with bug.in_(model):
            says = answer(p, prompt, bug)
            with np.errstate(all="ignore"):
                map_ = measures.all_maps(model, ids[None], attend=bug.attend)[0, layer, head]  # (T, T)
        percent = np.rint(100 * map_).astype(int).tolist() if np.isfinite(map_).all() else None
        found[name] = {
            "perplexity": float(f"{lost:.3g}") if math.isfinite(lost) else None,
            "says": says,
            "map": percent,
        }
        print(f"{name:28} {lost:14,.1f} {says!r}", flush=True)
    table = {
        "question": QUESTION,
        "tokens": p.tokenizer.tokens(ids),
        "head": HEAD,
        "vocabulary": len(p.tokenizer),
        "symptoms": found,
    }
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).replace("},", "},\n")
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text + "\n", encoding="utf-8")
    print(f"{FILE.name}: {FILE.stat().st_size:,} bytes")
