"""A Transformer's shape ledger: shapes, parameters and FLOPs, part by part, as measured and by formula."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from lesson_utils.classroom import tables
from lesson_utils.maths import costs, layers
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import TransformerConfig


class Step(NamedTuple):
    """A line of the ledger."""

    name: str
    shape: tuple[int, ...]
    parameters: int
    flops: int  # of the matrix products; a multiply-add is two


class Function:
    """A layer as a plain function: arrays in, an array out. It keeps what it gave last, as `gave`."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __call__(self, *arguments: Any) -> Array:
        self.gave: Array = self.layer.forward(*arguments)[0]
        return self.gave


def parts(layer: layers.EncoderLayer | layers.DecoderLayer) -> tuple[Function, ...]:
    """List a layer's parts as functions: its attention or attentions, feed-forward, and a norm for each of them."""
    sublayers = [part for part in vars(layer).values() if isinstance(part, layers.Residual)]
    return tuple(Function(thing) for thing in (*(s.inner for s in sublayers), *(s.norm for s in sublayers)))


class Ledger:
    """Runs layers and writes down what came out: shapes of real arrays, parameters of real layers.

    A parameter that has been counted is not counted again.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._counted: set[int] = set()

    def run(self, name: str, step: Any, *arguments: Any) -> Array:
        """Take a step, and write a line about it: a layer, one of `parts`, or an embedding's `logits_forward`."""
        layer: layers.Layer = getattr(step, "layer", None) or getattr(step, "__self__", step)
        y = (step if callable(step) else step.forward)(*arguments)
        y = y[0] if isinstance(y, tuple) else y  # without the cache
        new = [param for param in layer.params().values() if id(param) not in self._counted]
        if isinstance(layer, layers.Embedding) and y.shape[-1] == len(layer.table.value):  # as the output layer
            flops = 2 * y.size * layer.table.value.shape[1]
        else:
            flops = sum(_flops(layer, *arguments))
        self._counted |= {id(param) for param in new}
        self.steps.append(Step(name, y.shape, sum(param.value.size for param in new), flops))
        return y

    def note(self, name: str, x: Array) -> Array:
        """Add a line about what has no parameters and no matrix product."""
        self.steps.append(Step(name, x.shape, 0, 0))
        return x

    @property
    def parameters(self) -> int:
        return sum(step.parameters for step in self.steps)

    @property
    def flops(self) -> int:
        return sum(step.flops for step in self.steps)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        rows = [(step.name, str(step.shape), step.parameters, step.flops) for step in self.steps]
        rows.append(("in all", "", self.parameters, self.flops))
        return tables.table(("step", "shape", "parameters", "FLOPs"), rows)._repr_mimebundle_()


def _flops(layer: Any, x: Array, memory: Array | None = None, *masks: Any) -> Iterator[int]:
    """Count for each part that holds matrix products; norms, sums and ReLU are not counted."""
    if isinstance(layer, layers.MultiHead):
        B, T, d = x.shape
        T_k = T if memory is None else memory.shape[1]
        yield B * costs.attention_cost(T, d, layer.num_heads, T_k).flops
    elif isinstance(layer, layers.FeedForward):
        B, T, d = x.shape
        yield B * costs.feed_forward_cost(T, d, len(layer.narrow.W.value)).flops
    elif isinstance(layer, layers.Residual):
        yield from _flops(layer.inner, x, memory)
    elif isinstance(layer, layers.EncoderLayer):
        for part in (layer.attention, layer.feed_forward):
            yield from _flops(part, x)
    elif isinstance(layer, layers.DecoderLayer):
        yield from _flops(layer.attention, x)
        yield from _flops(layer.cross, x, memory)
        yield from _flops(layer.feed_forward, x)


# --- By formula, and Table 3 of the paper -----------------------------------------------------------------------------


def count(config: TransformerConfig, length: int = 1, **changes: Any) -> dict[str, Step]:
    """Compute the ledger of a whole encoder–decoder by formula, for a source and a target of `length` symbols (B = 1).

    It says the same as the layers themselves, without building them. `changes` are to the config.
    """
    config = replace(config, **changes)
    c, d, h, N, T = config, config.d_model, config.num_heads, config.num_layers, length
    attend, think = costs.attention_cost(T, d, h), costs.feed_forward_cost(T, d, c.ff_width)
    wide = think.parameters + c.ff_width + d  # and the biases
    tables = 1 if c.shared else 2
    top = 2 * d if c.norm == "pre" else 0  # one more norm at the top
    norm = 0 if c.norm == "none" else 2 * d
    target_vocab = c.target_vocab or c.vocab
    table = c.vocab * d + (tables - 1) * target_vocab * d
    steps = (
        Step("token table", (T, d), table, 0),
        Step("encoder: self-attention", (h, T, T), N * attend.parameters, N * attend.flops),
        Step("encoder: feed-forward", (T, c.ff_width), N * wide, N * think.flops),
        Step("encoder: norms", (T, d), N * 2 * norm + top, 0),
        Step("decoder: self-attention", (h, T, T), N * attend.parameters, N * attend.flops),
        Step("decoder: cross-attention", (h, T, T), N * attend.parameters, N * attend.flops),
        Step("decoder: feed-forward", (T, c.ff_width), N * wide, N * think.flops),
        Step("decoder: norms", (T, d), N * 3 * norm + top, 0),
        Step("output scores", (T, target_vocab), 0, 2 * T * d * target_vocab),
    )
    return {step.name: step for step in steps}


def count_parameters(config: TransformerConfig, **changes: Any) -> int:
    """Return the parameters of a whole encoder–decoder."""
    return sum(step.parameters for step in count(config, **changes).values())


# Table 3 of the paper: what differs from the base model, and how many million parameters are given.
PAPER_ROWS: dict[str, tuple[dict[str, int], int]] = {
    "base": ({}, 65),
    "N = 2": ({"num_layers": 2}, 36),
    "N = 4": ({"num_layers": 4}, 50),
    "N = 8": ({"num_layers": 8}, 80),
    "d_model = 256": ({"d_model": 256}, 28),
    "d_model = 1024": ({"d_model": 1024}, 168),
    "d_ff = 1024": ({"d_ff": 1024}, 53),
    "d_ff = 4096": ({"d_ff": 4096}, 90),
    "big": ({"d_model": 1024, "num_heads": 16, "d_ff": 4096}, 213),
}


def vocabulary_for(changes: dict[str, int], millions: int) -> tuple[float, float]:
    """Return how many symbols one shared table must hold, from and to, for a count that rounds to `millions`."""
    one, two = (count_parameters(TransformerConfig.base(vocab), **changes) for vocab in (1, 2))
    row = two - one  # the numbers of one symbol
    return (1e6 * (millions - 0.5) - one) / row + 1, (1e6 * (millions + 0.5) - one) / row + 1
