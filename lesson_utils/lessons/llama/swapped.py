"""A Llama whose parts are taken out, one at a time, for those of 2017: what the published model then says and loses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.lessons.real_model import chatting, measures
from lesson_utils.maths import attention, ops
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.layers import FeedForward, RMSNorm
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import Change, changed
from lesson_utils.maths.pretrained import Pretrained

Function = Callable[..., Any]
AS_IT_IS = "as it is"
SENTENCE = slice(64, 84)  # tokens of the story that are drawn


class _Norm(RMSNorm):
    """A norm by a given function, with the γ and ε of another."""

    def __init__(self, right: RMSNorm, function: Function) -> None:
        vars(self).update(vars(right))
        self.function = function

    def forward(self, x: Array) -> tuple[Array, Any]:
        return self.function(x, self.gamma.value, self.eps), None


class _Feed:
    """A feed-forward layer by a given function, with the matrices of another."""

    def __init__(self, right: FeedForward, function: Function) -> None:
        d_ff = len(right.narrow.W.value)
        wide = right.wide.W.value
        self.matrices, self.function = (wide[:, :d_ff], wide[:, d_ff:], right.narrow.W.value), function

    def forward(self, x: Array) -> tuple[Array, Any]:
        return self.function(x, *self.matrices), None


def layer_norm(x: Array, gamma: Array, eps: float) -> Array:
    return ops.layer_norm(x, gamma, np.zeros_like(gamma), eps)


def relu_gate(x: Array, W_gate: Array, W_up: Array, W_down: Array) -> Array:
    wide: Array = ops.relu(x @ W_gate) * (x @ W_up)
    return wide @ W_down


def relu_alone(x: Array, W_gate: Array, W_up: Array, W_down: Array) -> Array:
    wide: Array = ops.relu(x @ W_up)
    return wide @ W_down


def _norms(model: GPT, function: Function) -> list[Change]:
    parts = [part for block in model.stack.blocks for part in (block.attention, block.feed_forward)]
    return [(holder, "norm", _Norm(holder.norm, function)) for holder in (*parts, model.stack)]  # type: ignore[arg-type]


def _feeds(model: GPT, function: Function) -> list[Change]:
    parts = [block.feed_forward for block in model.stack.blocks]
    return [(part, "inner", _Feed(part.inner, function)) for part in parts]


def _own_keys(model: GPT) -> list[Change]:
    """Give each query head keys and values of its own: copies of those that it shares."""
    changes: list[Change] = []
    for heads in model.stack.heads():
        changes.append((heads, "num_kv_heads", heads.num_heads))
        for W in (heads.W_K, heads.W_V):
            per_head = W.value.reshape(len(W.value), heads.num_kv_heads, -1)  # (d_model, h_kv, d_k)
            copied = np.repeat(per_head, heads.num_heads // heads.num_kv_heads, axis=1)
            changes.append((W, "value", copied.reshape(len(W.value), -1)))
    return changes


def _turns(model: GPT, **settings: Any) -> list[Change]:
    return [(heads, "rotary", replace(heads.rotary, **settings)) for heads in model.stack.heads()]  # type: ignore[type-var]


def _not_turned(model: GPT) -> list[Change]:
    return [(heads, "rotary", None) for heads in model.stack.heads()]


def _added(model: GPT) -> list[Change]:
    """Add sinusoids to the vectors, in place of turning."""
    return [(model.tokens, "config", replace(model.config, positions="sinusoidal", rotary=None)), *_not_turned(model)]


def _after(model: GPT) -> list[Change]:
    parts = [part for block in model.stack.blocks for part in (block.attention, block.feed_forward)]
    return [(part, "place", "post") for part in parts]


SWAPS: dict[str, Callable[[GPT], list[Change]]] = {
    AS_IT_IS: lambda model: [],
    "layer norm": lambda model: _norms(model, layer_norm),
    "own keys": _own_keys,
    "pairs in halves": lambda model: _turns(model, pairs="halves"),
    "not turned": _not_turned,
    "sinusoids added": _added,
    "table × √d": lambda model: [(model.tokens.embedding, "scale", model.config.d_model**0.5)],
    "ReLU as the gate": lambda model: _feeds(model, relu_gate),
    "ReLU, no gate": lambda model: _feeds(model, relu_alone),
    "norm after": _after,
}


class Tried(NamedTuple):
    """What came of a model with one part exchanged."""

    nats: Array  # of each token of the story, (192,)
    says: str  # to the question about France


def _story(p: Pretrained) -> Ids:
    """Return the ids of a page and of the token behind it, (1, 193)."""
    return np.array(p.tokenizer.encode(measures.STORY))[None, : measures.PAGE + 1]


def tried(p: Pretrained, name: str) -> Tried:
    """Run a published model with one part exchanged."""
    with np.errstate(all="ignore"), changed(SWAPS[name](p.model)):
        nats = measures.losses(p.model, _story(p))[0]
        return Tried(nats.astype(np.float32), chatting.answer(p, length=12))


def tokens_of_sentence(p: Pretrained) -> list[str]:
    return list(p.tokenizer.tokens(_story(p)[0])[1:][SENTENCE])


def means(p: Pretrained) -> Array:
    """Return, before each block and above the last, the share of a token's mean square that its mean makes."""
    ids = _story(p)[:, :-1]
    x, _ = p.model.tokens.forward(ids)
    mask = attention.causal_mask(x.shape[1]).astype(x.dtype)
    shares = []
    for block in (*p.model.stack.blocks, None):
        shares.append(float(np.median(x.mean(axis=-1)[0, 1:] ** 2 / (x**2).mean(axis=-1)[0, 1:])))
        if block:
            x, _ = block.forward(x, mask)
    return np.array(shares)


def _loss(p: Pretrained, changes: list[Change]) -> float:
    with changed(changes):
        return float(measures.losses(p.model, _story(p)).mean())


class Gates(NamedTuple):
    """The loss with ReLUs in the gates."""

    one: Array  # in the gate of one block, for each block
    unread: float  # in all gates, if what they change reaches the output, and no block reads it


def gates(p: Pretrained) -> Gates:
    """Put a ReLU into the gate of one block at a time, and into all gates with the stream as it was without."""
    changed_by: list[Array] = []

    def as_before(x: Array, W_gate: Array, W_up: Array, W_down: Array) -> Array:
        right = ops.swiglu(x @ W_gate, x @ W_up) @ W_down
        changed_by.append(relu_gate(x, W_gate, W_up, W_down) - right)
        return right

    last = _Norm(p.model.stack.norm, lambda x, gamma, eps: ops.rms_norm(x + sum(changed_by), gamma, eps))  # type: ignore[arg-type]
    one = np.array([_loss(p, [change]) for change in _feeds(p.model, relu_gate)])
    return Gates(one, _loss(p, [*_feeds(p.model, as_before), (p.model.stack, "norm", last)]))


def without(p: Pretrained, direction: Array) -> float:
    """Return the loss on the story if each norm first takes a direction out of its token, as layer norm takes the mean.

    The direction of layer norm is (1, 1, …, 1): what a token has in it is its mean.
    """
    u = (direction / np.linalg.norm(direction)).astype(np.float32)

    def norm(x: Array, gamma: Array, eps: float) -> Array:
        return ops.rms_norm(x - (x @ u)[..., None] * u, gamma, eps)

    return _loss(p, _norms(p.model, norm))


def main_direction(p: Pretrained) -> tuple[Array, float]:
    """Return the direction that holds most of the tokens before all norms, each token at length 1, and its share."""
    moments: list[Array] = []

    def norm(x: Array, gamma: Array, eps: float) -> Array:
        tokens = x[0, 1:] / np.linalg.norm(x[0, 1:], axis=-1, keepdims=True)  # the first token is like no other
        moments.append(tokens.T @ tokens / len(tokens))
        return ops.rms_norm(x, gamma, eps)

    with changed(_norms(p.model, norm)):
        p.model.forward(_story(p)[:, :-1])
    shares, directions = np.linalg.eigh(np.mean(moments, axis=0).astype(float))
    return directions[:, -1], float(shares[-1])


class Removed(NamedTuple):
    """The loss if one direction is taken out of each token."""

    mean: float  # the mean's direction
    random: Array  # ten random ones, (10,)
    main: float  # the one that holds most
    share: float  # how much it holds


def removed(p: Pretrained) -> Removed:
    rng, (main, share) = np.random.default_rng(0), main_direction(p)
    width = p.model.config.d_model
    ten = np.array([without(p, rng.normal(size=width)) for _ in range(10)])
    return Removed(without(p, np.ones(width)), ten, without(p, main), share)
