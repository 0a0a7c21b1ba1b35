"""One catalogue of bugs that run: parts of a Transformer that are wrong in one line.

The leak meter (notebook 06), the clinic (10), its stored symptoms and the classic bug of notebook 03 all take their
bugs from here; those of attention stand in `attention_bugs`. Each wrong part takes the place of a right one and keeps
its parameters, and its backward pass fits its forward pass.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lesson_utils.lessons.attention_bugs import BUGS, Instead, WrongHeads
from lesson_utils.maths import layers
from lesson_utils.maths.checks import Array, Ids, as_choice
from lesson_utils.maths.layers.blocks import ResidualCache
from lesson_utils.maths.models.experiments import Change
from lesson_utils.maths.models.gpt import Tokens, TokensCache
from lesson_utils.maths.positions import sinusoidal_encoding


class AlongTheBatch(Instead, layers.MultiHead):
    """Self-attention that takes the batch for time; with a mask, it hides the rows that come later."""

    def forward(
        self, x: Array, memory: Array | None = None, mask: Any = None, bias: Any = None, past: Any = None
    ) -> Any:
        if memory is not None or past is not None:
            return super().forward(x, memory, mask, bias, past)
        hides = mask is not None and np.ndim(mask) == 2 and not np.all(mask)
        y, cache = super().forward(x.swapaxes(0, 1), mask=np.tri(len(x), dtype=bool) if hides else None)
        return y.swapaxes(0, 1), cache

    def backward(self, dy: Array, cache: Any) -> Array:
        return super().backward(dy.swapaxes(0, 1), cache).swapaxes(0, 1)


class WrongNorm(Instead, layers.LayerNorm):
    """Layer norm over another axis, 0 for the batch or 1 for the sequence."""

    def __init__(self, right: layers.LayerNorm, axis: int) -> None:
        super().__init__(right)
        self.axis = axis

    def forward(self, x: Array) -> tuple[Array, tuple[Array, ...]]:
        root = np.sqrt(x.var(axis=self.axis, keepdims=True) + np.asarray(self.eps, x.dtype))
        normal = (x - x.mean(axis=self.axis, keepdims=True)) / root
        return self.gamma.value * normal + self.beta.value, (normal, root)

    def backward(self, dy: Array, cache: tuple[Array, ...]) -> Array:
        normal, root = cache
        self.gamma.grad += (dy * normal).sum(axis=(0, 1))
        self.beta.grad += dy.sum(axis=(0, 1))
        dnormal = dy * self.gamma.value
        mean = dnormal.mean(axis=self.axis, keepdims=True)
        along = (dnormal * normal).mean(axis=self.axis, keepdims=True)
        return np.asarray((dnormal - mean - normal * along) / root)


class NormedResidual(Instead, layers.Residual[Any]):
    """norm(x) + f(norm(x)), where x + f(norm(x)) was meant."""

    def forward(self, x: Array, f: Any, rng: Any = None) -> tuple[Array, ResidualCache[Any]]:
        assert self.norm is not None
        normal, norm_cache = self.norm.forward(x)
        y, inner_cache = f(normal)
        return y + normal, ResidualCache(norm_cache, inner_cache, None)

    def _backward_before(self, dx: Array, dy: Array, cache: ResidualCache[Any]) -> Array:
        assert self.norm is not None
        assert cache.norm is not None
        return self.norm.backward(dx + dy, cache.norm)


class WrongPlaces(Instead, Tokens):
    """Tokens that get no positions, or those of their rows in the batch."""

    def __init__(self, right: Tokens, along_the_batch: bool) -> None:
        super().__init__(right)
        self.along_the_batch = along_the_batch

    def forward(self, ids: Ids, start: int = 0, rng: Any = None) -> tuple[Array, TokensCache]:
        x, cache = self.embedding.forward(ids)  # (B, T, d_model)
        if self.along_the_batch:
            x = x + sinusoidal_encoding(len(x), x.shape[-1])[:, None].astype(x.dtype)
        return x, TokensCache(cache, None, 0, ids.shape[1])

    def backward(self, dx: Array, cache: TokensCache) -> None:
        self.embedding.backward(dx, cache.embedding)


class StartingAgain(Instead, Tokens):
    """Tokens whose positions are counted from 0 in each pass, also behind a cache."""

    def forward(self, ids: Ids, start: int = 0, rng: Any = None) -> tuple[Array, TokensCache]:
        return super().forward(ids, 0, rng)


# --- In a model -------------------------------------------------------------------------------------------------------


def _swap_gate_and_value(part: layers.FeedForward) -> list[Change]:
    wide = (part.wide.W, part.wide.b)
    return [(p, "value", np.roll(p.value, p.value.shape[-1] // 2, axis=-1)) for p in wide if p is not None]


# By the name of a bug: in which layers it can be, and what stands in their place.
REPLACED: dict[str, tuple[type[layers.Layer], Callable[[Any], layers.Layer]]] = {
    **{name: (layers.MultiHead, partial(WrongHeads, bug=bug)) for name, bug in BUGS.items()},
    "attends along the batch": (layers.MultiHead, AlongTheBatch),
    "norm over the batch": (layers.LayerNorm, partial(WrongNorm, axis=0)),
    "norm over the sequence": (layers.LayerNorm, partial(WrongNorm, axis=1)),
    "residual of the normed": (layers.Residual, NormedResidual),
    "positions along the batch": (Tokens, partial(WrongPlaces, along_the_batch=True)),
    "positions forgotten": (Tokens, partial(WrongPlaces, along_the_batch=False)),
    "positions start again": (Tokens, StartingAgain),
}
# By the name of a bug: in which layers it can be, and what is changed about them.
CHANGED: dict[str, tuple[type[layers.Layer], Callable[[Any], list[Change]]]] = {
    "rotary left out": (layers.MultiHead, lambda heads: [(heads, "rotary", None)]),
    "rotary pairs": (layers.MultiHead, lambda heads: [(heads, "rotary", replace(heads.rotary, pairs="halves"))]),
    "norm left out": (layers.EncoderLayer, lambda block: [(block.attention, "norm", None)]),
    "gate and value swapped": (layers.FeedForward, _swap_gate_and_value),
    "table too loud": (
        layers.Embedding,
        lambda part: [(part.table, "value", part.table.value * part.scale), (part, "scale", 1.0)],
    ),
}


def changes(model: layers.Layer, bug: str) -> list[Change]:
    """List what must be set to put a bug into a model, everywhere where it can be.

    Raises:
        ValueError: there is no such bug.
    """
    places = list(_places(model))
    if bug in REPLACED:
        kind, instead = REPLACED[bug]
        return [(holder, name, instead(part)) for holder, name, part in places if isinstance(part, kind)]
    kind, change = CHANGED[as_choice(bug, "bug", (*REPLACED, *CHANGED))]
    parts = {id(part): part for _, _, part in places if isinstance(part, kind)}  # a shared one once
    return [one for part in parts.values() for one in change(part)]


def plant(model: layers.Layer, bug: str) -> None:
    """Put a bug into a model, everywhere where it can be. The parameters stay as they are."""
    for thing, name, value in changes(model, bug):
        setattr(thing, name, value)


def _places(thing: Any) -> Iterator[tuple[Any, Any, layers.Layer]]:
    """Yield every layer in a model, with the layer (or list) that holds it and its name (or index) there."""
    for name, part in enumerate(thing) if isinstance(thing, list) else vars(thing).items():
        if isinstance(part, layers.Layer):
            yield thing, name, part
        if isinstance(part, layers.Layer | list):
            yield from _places(part)
