"""A Transformer's shape ledger: shapes, parameters and FLOPs, part by part."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils import costs, layers, live, plots
from lesson_utils._checks import Array
from lesson_utils.models import TransformerConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from lesson_utils import numbers
from lesson_utils.layers import NormPlace

# --- The shape ledger ------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A line of the ledger."""

    name: str
    shape: tuple[int, ...]
    parameters: int
    flops: int  # of the matrix products; a multiply-add is two


class Ledger:
    """Runs layers and writes down what came out: shapes of real arrays, parameters of real layers.

    A parameter that has been counted is not counted again.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._counted: set[int] = set()

    def run(self, name: str, forward: Callable[..., tuple[Any, Any]], *arguments: Any) -> Array:
        """Call a layer's `forward` (or an embedding's `logits_forward`), and write a line about it."""
        layer: layers.Layer = forward.__self__  # type: ignore[attr-defined]  # a bound method
        y: Array = forward(*arguments)[0]
        new = [param for param in layer.params().values() if id(param) not in self._counted]
        if isinstance(layer, layers.Embedding) and y.shape[-1] == len(layer.table.value):  # as the output layer
            flops = 2 * y.size * layer.table.value.shape[1]
        else:
            flops = sum(_flops(layer, *arguments))
        self._counted |= {id(param) for param in new}
        self.steps.append(Step(name, y.shape, sum(param.value.size for param in new), flops))
        return y

    def note(self, name: str, x: Array) -> Array:
        """A line about what has no parameters and no matrix product."""
        self.steps.append(Step(name, x.shape, 0, 0))
        return x

    @property
    def parameters(self) -> int:
        return sum(step.parameters for step in self.steps)

    @property
    def flops(self) -> int:
        return sum(step.flops for step in self.steps)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        body = [(s.name, str(s.shape), f"{s.parameters:,}", f"{s.flops:,}") for s in self.steps]
        return [*body, ("in all", "", f"{self.parameters:,}", f"{self.flops:,}")]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        head = ("step", "shape", "parameters", "FLOPs")
        rows = self._rows()
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(4)]
        lines = [
            f"{a:{widths[0]}}  {b:{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}" for a, b, c, d in (head, *rows)
        ]
        left, right = 'style="text-align:left"', 'style="text-align:right"'
        titles = "".join(f"<th {left if i < 2 else right}>{t}</th>" for i, t in enumerate(head))
        body = "".join(
            "<tr>" + "".join(f"<td {left if i < 2 else right}>{t}</td>" for i, t in enumerate(row)) + "</tr>"
            for row in rows
        )
        return {"text/html": f"<table><tr>{titles}</tr>{body}</table>", "text/plain": "\n".join(lines)}


def _flops(layer: Any, x: Array, memory: Array | None = None, *masks: Any) -> Iterator[int]:
    """Of the layers that hold matrix products; norms, sums and ReLU are not counted."""
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


def count(config: TransformerConfig, length: int = 1, **changes: Any) -> dict[str, Step]:
    """The ledger of a whole encoder–decoder by formula, for a source and a target of `length` symbols (B = 1).

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
    """How many symbols one shared table must hold for a count that rounds to `millions`: from, to."""
    one, two = (count_parameters(TransformerConfig.base(vocab), **changes) for vocab in (1, 2))
    row = two - one  # the numbers of one symbol
    return (1e6 * (millions - 0.5) - one) / row + 1, (1e6 * (millions + 0.5) - one) / row + 1


# --- The ledger, live ------------------------------------------------------------------------------------------------

LEDGER_LENGTH = 64


@live.lab(
    height=4.6,
    d_model=live.Choice("d_model", (64, 128, 256, 512, 1024), 512),
    num_heads=live.Choice("heads h", (1, 2, 4, 8, 16), 8),
    d_ff=live.Choice("d_ff", (256, 512, 1024, 2048, 4096), 2048),
    num_layers=live.Slider("layers N", 1, 12, 6),
    norm=live.Choice("norm", ("post", "pre"), "post"),
)
def ledger_lab(figure: "Figure") -> live.Update:
    """Parameters and FLOPs of an encoder–decoder, part by part."""
    names = list(count(TransformerConfig.base()))
    rows = np.arange(len(names))
    shape_ax, parameter_ax, flop_ax = figure.subplots(1, 3, sharey=True, width_ratios=(0.62, 1, 1))
    shape_ax.set_yticks(rows, names)
    shape_ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 1), xticks=(), title="Shape")
    shape_ax.spines[:].set_visible(False)
    shape_ax.tick_params(length=0)
    shapes = [shape_ax.text(0.02, row, "", va="center") for row in rows]
    charts = {}
    for ax, label, colour in (
        (parameter_ax, "share of the parameters", plots.BLUE),
        (flop_ax, "share of the FLOPs", plots.ORANGE),
    ):
        ax.set(xlim=(0, 1.3), xlabel=label, xticks=(0, 0.5, 1))
        ax.set_xticklabels(["0", "50 %", "100 %"])
        ax.tick_params(axis="y", length=0)
        bars = ax.barh(rows, np.zeros(len(rows)), color=colour)
        charts[ax] = bars, [ax.text(0, row, "", va="center") for row in rows]

    def update(d_model: int, num_heads: int, d_ff: int, num_layers: int, norm: NormPlace) -> str:
        sizes: dict[str, Any] = {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, "num_layers": num_layers}
        config = TransformerConfig(vocab=37_000, **sizes, norm=norm, shared=True)
        steps = count(config, LEDGER_LENGTH)
        parameters = np.array([step.parameters for step in steps.values()])
        flops = np.array([step.flops for step in steps.values()])
        for text, step in zip(shapes, steps.values(), strict=True):
            text.set_text(str(step.shape))
        for ax, counts in ((parameter_ax, parameters), (flop_ax, flops)):
            for bar, text, n in zip(*charts[ax], counts, strict=True):
                bar.set_width(n / counts.sum())
                text.set_x(n / counts.sum() + 0.02)
                text.set_text(numbers.large(n) if n else "–")
        parameter_ax.set_title(f"{parameters.sum():,} parameters")
        flop_ax.set_title(f"{numbers.large(flops.sum())} FLOPs")
        listed = "; ".join(
            f"{step.name} {step.shape} {numbers.large(step.parameters) if step.parameters else 'no'} parameters, "
            f"{numbers.large(step.flops) if step.flops else 'no'} FLOPs"
            for step in steps.values()
        )
        return (
            f"{num_layers} and {num_layers} layers, {norm}-norm, d_model {d_model}, {num_heads} heads, d_ff {d_ff}, "
            f"37,000 symbols, {LEDGER_LENGTH} in source and target: {parameters.sum():,} parameters, "
            f"{numbers.large(flops.sum())} FLOPs. {listed}."
        )

    return update
