"""Controls: models in which one suspected cause is taken away, to be trained again."""

from typing import Any

from numpy.typing import ArrayLike

from lesson_utils.maths import layers, ops
from lesson_utils.maths.checks import Array, as_ids
from lesson_utils.maths.layers.basic import LinearCache, Rng
from lesson_utils.maths.layers.blocks import ResidualCache
from lesson_utils.maths.layers.cache import KeyValueCache
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.models.gpt import GPTCache


class Straight(layers.Layer):
    """A feed-forward layer without its ReLU: two matrices, one behind the other."""

    def __init__(self, layer: layers.FeedForward) -> None:
        self.wide, self.narrow = layer.wide, layer.narrow

    def forward(self, x: Array) -> tuple[Array, tuple[LinearCache, LinearCache]]:
        hidden, wide = self.wide.forward(x)
        y, narrow = self.narrow.forward(hidden)
        return y, (wide, narrow)

    def backward(self, dy: Array, cache: tuple[LinearCache, LinearCache]) -> Array:
        wide, narrow = cache
        return self.wide.backward(self.narrow.backward(dy, narrow), wide)


class ScaledSum(layers.Residual[Any]):
    """A residual connection whose sum is multiplied by a factor: c · (x + f(x)). f keeps its size."""

    def __init__(self, residual: layers.Residual[Any], factor: float) -> None:
        vars(self).update(vars(residual))
        self.factor = factor

    def forward(self, x: Array, f: Any, rng: Rng | None = None) -> tuple[Array, ResidualCache[Any]]:
        y, cache = super().forward(x, f, rng)
        return y * self.factor, cache

    def backward(self, dy: Array, cache: ResidualCache[Any]) -> Array:
        return super().backward(dy * self.factor, cache)


def scale_sums(model: GPT, factor: float) -> None:
    """Multiply the sum behind each part of a GPT by a factor, from now on."""
    for block in model.stack.blocks:
        block.attention, block.feed_forward = (
            ScaledSum(part, factor) for part in (block.attention, block.feed_forward)
        )


class Untied(GPT):
    """A GPT whose output has a table of its own."""

    def __init__(self, config: GPTConfig, rng: Rng | None) -> None:
        super().__init__(config, rng)
        self.output = layers.Embedding(config.vocab, config.d_model, rng, config.dtype)

    def forward(
        self,
        ids: ArrayLike,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
        mask: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Array, GPTCache]:
        _, cache = super().forward(ids, past, rng, mask, last)
        top, _ = cache.output  # what the other table read
        logits, output = self.output.logits_forward(top)
        return logits, cache._replace(output=output)

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        loss, cross = ops.cross_entropy_forward(logits, as_ids(batch[1], "targets", ndim=2))
        dx = self.output.logits_backward(ops.cross_entropy_backward(1.0, cross), output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss
