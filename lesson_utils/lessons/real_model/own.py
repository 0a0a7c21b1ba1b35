"""Models that run on the learner's functions: a small one of today's build, and the real one if it is there."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.lessons.real_model.chatting import answer
from lesson_utils.maths import attention, layers, models
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.models.experiments import Change, changed

if TYPE_CHECKING:
    from lesson_utils.maths.pretrained import Pretrained

Function = Callable[..., Any]


class OwnNorm(layers.RMSNorm):
    """RMS norm by a given function, with the γ and ε of another."""

    def __init__(self, right: layers.RMSNorm, function: Function) -> None:
        vars(self).update(vars(right))
        self.function = function

    def forward(self, x: Array) -> tuple[Array, Any]:
        return self.function(x, self.gamma.value, self.eps), None


class OwnTurn:
    """Rotary positions by a given function."""

    def __init__(self, function: Function) -> None:
        self.turn = function


def _norms(model: models.GPT, function: Function) -> list[Change]:
    holders = [model.stack, *(place for block in model.stack.blocks for place in (block.attention, block.feed_forward))]
    return [(h, "norm", OwnNorm(h.norm, function)) for h in holders if isinstance(h.norm, layers.RMSNorm)]


def _groups(model: models.GPT, function: Function) -> list[Change]:
    """Let single queries with a cache use the function, which knows no mask."""
    shared = model.stack.heads()[0].num_heads // model.stack.heads()[0].num_kv_heads

    def attend(Q: Array, K: Array, V: Array, mask: Mask | None = None) -> tuple[Array, Array]:
        output, weights = attention.scaled_dot_product_attention(Q, K, V, mask)
        if mask is None:  # K and V come with each head repeated
            rows = zip(Q, K[:, ::shared], V[:, ::shared], strict=True)
            output = np.stack([function(q, k, v) for q, k, v in rows])
        return output, weights

    return [(heads, "attend", attend) for heads in model.stack.heads()]


def _halves(model: models.GPT, function: Function) -> list[Change]:
    """Permute the columns of W_Q and W_K as a converted file does, and turn halves."""
    changes: list[Change] = []
    for heads in model.stack.heads():
        d_k = heads.W_Q.value.shape[1] // heads.num_heads
        for W in (heads.W_Q, heads.W_K):
            per_head = W.value.reshape(len(W.value), -1, d_k)
            changes.append(
                (W, "value", np.concatenate([per_head[..., ::2], per_head[..., 1::2]], -1).reshape(W.value.shape))
            )
        changes.append((heads, "rotary", OwnTurn(function)))
    return changes


PARTS = {"norm": _norms, "groups": _groups, "halves": _halves}


def small_model() -> models.GPT:
    """Make a GPT with all five changes, untrained."""
    config = models.GPTConfig(
        vocab=50,
        d_model=48,
        num_heads=6,
        num_kv_heads=2,
        num_layers=2,
        norm="pre",
        norm_kind="rms",
        positions="rotary",
        activation="swiglu",
    )
    return models.GPT(config, np.random.default_rng(0))


def logits(model: models.GPT, ids: Ids) -> Array:
    """Return the logits after each symbol, (T, V): the first half at once, then one by one with a cache."""
    past, half = model.new_past(), ids.shape[1] // 2
    parts = [model.forward(ids[:, :half], past)[0]]
    parts += [model.forward(ids[:, t : t + 1], past)[0] for t in range(half, ids.shape[1])]
    return np.concatenate(parts, axis=1)[0]


def difference(part: str, function: Function) -> float:
    """Return how far the small model's logits move when a part, such as "norm", is by a function."""
    model, ids = small_model(), np.random.default_rng(1).integers(50, size=(1, 12))
    before = logits(model, ids)
    with changed(PARTS[part](model, function)):
        return float(np.abs(logits(model, ids) - before).max())


def runs_on(part: str, function: Function, smollm: "Pretrained | None" = None) -> None:
    """Let a small model run on a function, and the real one too if it is there, and print what comes of it.

    Args:
        part: "norm", "groups" or "halves"; the last for the small model only, because the real one has another base.
    """
    moved = difference(part, function)
    print(f"a small model of this build: its logits {'stay as they are' if moved < 1e-3 else f'move by {moved:.2g}'}")
    if smollm and part != "halves":
        with changed(PARTS[part](smollm.model, function)):
            print("SmolLM2:", answer(smollm))
