"""A small GPT that runs on a function of the exercises: on the broken one first, then on the learner's.

Each part says what of the model is replaced. All instruments but those of the loss are then held to it.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lesson_utils.lessons.attention_bugs import SWAPPED, Bug, Instead, WrongHeads
from lesson_utils.lessons.debugging import broken, exercises, instruments
from lesson_utils.maths import layers, models, ops
from lesson_utils.maths.attention import scaled_dot_product_attention
from lesson_utils.maths.checks import Array, Mask

Function = Callable[..., Any]
VOCAB, T, CHANGED, PROMPT, KV_HEADS = 13, 9, 5, 4, 2
SMALL = 1e-6  # in float64: what is smaller is rounding


class Block(Instead, layers.EncoderLayer):
    """A layer of a GPT whose stream runs through a given function."""

    def __init__(self, right: layers.EncoderLayer, function: Function) -> None:
        super().__init__(right)
        self.function = function

    def forward(
        self, x: Array, mask: Any = None, bias: Any = None, past: Any = None, rng: Any = None, last: bool = False
    ) -> tuple[Array, Any]:
        heads, feed = self.attention, self.feed_forward
        assert heads.norm is not None
        assert feed.norm is not None
        norm_1, norm_2 = heads.norm.forward, feed.norm.forward
        y = self.function(
            x,
            lambda x: heads.inner.forward(x, None, mask, bias, past)[0],
            lambda x: feed.inner.forward(x)[0],
            lambda x: norm_1(x)[0],
            lambda x: norm_2(x)[0],
        )
        return y[:, -1:] if last else y, None


def _scores(Q: Array, K: Array) -> Array:
    scores: Array = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
    return scores


def _seen(Q: Array, K: Array, mask: Mask | None) -> Mask:
    return np.ones((*Q.shape[:-1], K.shape[-2]), bool) if mask is None else mask


def _mask(function: Function, Q: Array, K: Array, V: Array, mask: Mask | None) -> Any:
    """Ask for a causal mask for a single query, too; where all may see all, there is nothing to ask."""
    if mask is None or not mask.all():
        mask = function(Q.shape[-2], K.shape[-2])
    return scaled_dot_product_attention(Q, K, V, mask)


def _groups(function: Function, Q: Array, K: Array, V: Array, mask: Mask | None) -> Any:
    """Give each query the keys that it may see, because the function knows no mask."""
    seen, outputs = _seen(Q, K, mask), np.empty_like(Q)
    shared = Q.shape[1] // KV_HEADS  # K and V come repeated
    for row, (q, k, v) in enumerate(zip(Q, K[:, ::shared], V[:, ::shared], strict=True)):
        for t in range(Q.shape[-2]):
            outputs[row, :, [t]] = function(q[:, [t]], k[:, seen[row, 0, t]], v[:, seen[row, 0, t]]).swapaxes(0, 1)
    return outputs, ops.softmax(_scores(Q, K))  # nobody looks at these weights


ATTENDS = {"mask": _mask, "groups": _groups}


def healthy(part: str) -> broken.Patient:
    """Make the small GPT in which a part, such as "merge", is to be replaced."""
    shared = KV_HEADS if part == "groups" else None
    config = models.GPTConfig(vocab=VOCAB, d_model=16, num_heads=4, num_kv_heads=shared, dtype=np.float64)
    return broken.Patient(config, np.random.default_rng(0))


def patient(part: str, function: Function) -> broken.Patient:
    """Make the small GPT with a part by a function, in all places."""
    model = healthy(part)
    for n, block in enumerate(model.stack.blocks):
        heads = block.attention.inner
        if part in ATTENDS:
            heads.attend = partial(ATTENDS[part], function)
        elif part == "merge":
            block.attention.inner = WrongHeads(heads, Bug(merging=SWAPPED._replace(backward=function)))
        elif part == "block":
            model.stack.blocks[n] = Block(block, function)
    return model


def readings(part: str, function: Function) -> dict[str, tuple[float, bool]]:
    """Return what each instrument reads, and whether a healthy model would read otherwise."""
    model, rng = patient(part, function), np.random.default_rng(0)
    ids = rng.integers(VOCAB, size=(3, T))
    moved = float(instruments.order(model, ids[0], np.roll(np.arange(T), 4)[None]).max())
    still = {
        "leak in time": instruments.leak_in_time(model, ids[0], CHANGED)[:CHANGED].max(),
        "leak across rows": instruments.leak_across_rows(model, ids[0], ids[1:]).max(),
        "cache parity": instruments.cache_parity(model, ids[0], PROMPT).max(),
        "right twin": np.abs(model.forward(ids)[0] - healthy(part).forward(ids)[0]).max(),
    }
    return {name: (float(x), bool(x > SMALL)) for name, x in still.items()} | {"order": (moved, moved < SMALL)}


def treat(part: str, function: Function) -> None:
    """Print what instruments read on a small GPT with the broken function of an exercise, and with this one.

    Args:
        part: the name of the exercise behind `mend_`, such as "merge".
    """
    (exercise,) = (exercise for exercise in exercises.MENDS if exercise.name == f"mend_{part}")
    before, after = readings(part, exercise.program(exercise.broken)), readings(part, function)
    print("in a small GPT      broken        this one     (X = not as in a healthy model)")
    for name in before:
        print(
            f"{name:18}",
            *(f"  {'X' if alarm else 'o'} {_in_figures(x):10}" for x, alarm in (before[name], after[name])),
        )


def _in_figures(x: float) -> str:
    return "0" if x < SMALL else f"{x:.2g}"
