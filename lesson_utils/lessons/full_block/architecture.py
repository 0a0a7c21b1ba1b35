"""Notebook 05: a Transformer's shape ledger, its count, its parts, and switches to turn them off."""

import inspect
import itertools
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils import attention, costs, layers, live, ops, plots, positions, tasks
from lesson_utils._checks import Array
from lesson_utils.models import Transformer, TransformerConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- The shape ledger -----------------------------------------------------------------------------------------------


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


# --- The parts of the diagram ---------------------------------------------------------------------------------------


class Part(NamedTuple):
    """What the diagram tells about a part."""

    title: str
    formula: str  # in mathtext
    shapes: str
    paper: str  # where it stands in "Attention Is All You Need"
    source: Callable[..., Any]
    first: str  # the line of the source where its heart begins


PARTS = {
    "embedding": Part(
        "Embedding: a vector for each symbol",
        r"$x_t = \sqrt{d_{model}}\; E[\mathrm{id}_t]$",
        "ids (B, T)  →  (B, T, d_model)",
        "section 3.4",
        layers.Embedding.forward,
        "y, cache",
    ),
    "positions": Part(
        "Positions: where each symbol stands",
        r"$PE_{pos,2i} = \sin(pos / 10000^{2i/d_{model}})$, odd ones with cos",
        "(T, d_model), added to each sequence",
        "section 3.5",
        positions.sinusoidal_encoding,
        "angles",
    ),
    "attention": Part(
        "Self-attention: each position takes from all",
        r"$\mathrm{Concat}(head_1 \ldots head_h)\,W_O$,  $head_i = \mathrm{softmax}(QK^\top\!/\sqrt{d_k})\,V$",
        "(B, T, d_model)  →  weights (B, h, T, T)  →  (B, T, d_model)",
        "section 3.2.2",
        attention.multi_head_attention,
        "Q = split_heads",
    ),
    "add & norm": Part(
        "Add & norm: the way around, then layer norm",
        r"$\mathrm{LayerNorm}(x + f(x))$",
        "(B, T, d_model)  →  (B, T, d_model)",
        "section 3.1",
        layers.Residual.forward,
        "y, inner_cache",
    ),
    "feed-forward": Part(
        "Feed-forward: each position by itself",
        r"$\max(0,\; xW_1 + b_1)\,W_2 + b_2$",
        "(B, T, d_model)  →  (B, T, d_ff)  →  (B, T, d_model)",
        "section 3.3, equation 2",
        layers.FeedForward.forward,
        "hidden, wide",
    ),
    "masked": Part(
        "Masked self-attention: nobody reads ahead",
        r"score $s_{ij} = -\infty$  for  $j > i$",
        "mask (T, T)  →  weights (B, h, T, T)",
        "section 3.2.3",
        attention.scaled_dot_product_attention,
        "scores = Q",
    ),
    "cross": Part(
        "Cross-attention: the decoder reads the source",
        r"$Q = xW_Q$,   $K = \mathrm{memory}\,W_K$,   $V = \mathrm{memory}\,W_V$",
        "x (B, T, d_model), memory (B, S, d_model)  →  weights (B, h, T, S)",
        "section 3.2.3",
        layers.DecoderLayer.forward,
        "x, attention",
    ),
    "output": Part(
        "Output: a score for each symbol, by the same table",
        r"$\mathrm{logits} = x\,E^\top$",
        "(B, T, d_model)  →  (B, T, V)",
        "section 3.4",
        layers.Embedding.logits_forward,
        "return",
    ),
    "softmax": Part(
        "Softmax: scores become probabilities",
        r"$p_i = e^{s_i} / \sum_j e^{s_j}$",
        "(B, T, V)  →  (B, T, V), each row sums to 1",
        "section 3.4",
        ops.softmax_forward,
        "weights = np.exp",
    ),
}


def source_lines(part: Part, width: int = 74) -> tuple[str, list[str]]:
    """The name of a part's source, and its lines as they stand there, from the part's first line on.

    Comments that are not shapes are left out; a line that is too wide loses its comment, or goes on below.
    """
    lines = inspect.getsource(part.source).splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(part.first))
    shown: list[str] = []
    for line in textwrap.dedent("\n".join(lines[start:])).splitlines():
        code, _, comment = line.partition("  # ")
        kept = line if comment.startswith("(") and len(line) <= width else code
        shown += textwrap.wrap(kept, width, subsequent_indent=" " * (len(code) - len(code.lstrip()) + 8))
    module = part.source.__module__.removeprefix("lesson_utils.")
    return f"{module}.{part.source.__qualname__}", shown


# --- The switchboard ------------------------------------------------------------------------------------------------

SWITCHES = ("scaling", "residuals", "norm", "positions", "mask")


def _changes(model: Transformer, off: str) -> Iterator[tuple[Any, str, Any]]:
    """What to set on which object to switch a part off."""
    residuals = [
        residual
        for block in (*model.encoder.blocks, *model.blocks)
        for residual in vars(block).values()
        if isinstance(residual, layers.Residual)
    ]
    if off == "scaling":
        yield from ((r.inner, "scale", 1.0) for r in residuals if isinstance(r.inner, layers.MultiHead))
    elif off == "residuals":
        yield from ((r, "skip", False) for r in residuals)
    elif off == "norm":
        yield from ((thing, "norm", None) for thing in (*residuals, model.encoder, model))
    elif off == "positions":
        config = replace(model.config, positions="none")
        yield from ((tokens, "config", config) for tokens in (model.source, model.target))
    elif off == "mask":
        yield model, "config", replace(model.config, causal=False)
    else:
        raise ValueError(f"{off!r} can't be switched off; choose from {', '.join(SWITCHES)}")


@contextmanager
def without(model: Transformer, *off: str) -> Iterator[Transformer]:
    """The model with some parts switched off, for as long as a `with` block lasts; its parameters stay as they are.

    Args:
        off: any of "scaling" (factor 1 on the scores), "residuals" (no way around), "norm", "positions", "mask" (the
            decoder's).
    """
    before = []
    try:
        for name in off:
            for thing, attribute, value in list(_changes(model, name)):
                before.append((thing, attribute, getattr(thing, attribute)))
                setattr(thing, attribute, value)
        yield model
    finally:
        for thing, attribute, value in reversed(before):
            setattr(thing, attribute, value)


TASK_LENGTH, TASK_SYMBOLS = 6, 10
READ = tasks.letters(TASK_SYMBOLS)


def reversal_pairs(rng: np.random.Generator, batch: int = 64) -> tuple[Any, Any]:
    """For a Transformer: strings of 6 letters, and the same backwards with begin and end."""
    source, target = tasks.reversal(rng, batch, TASK_LENGTH, TASK_SYMBOLS)
    return source, tasks.with_ends(target)


class Measures(NamedTuple):
    """What is to be seen in an encoder–decoder from outside."""

    guided: float  # share of symbols that are right, when the right ones before are given
    alone: float  # share of strings that are all right, when it reads what it wrote itself
    leak: float  # how much the predictions before a changed symbol move: total variation, at most 1; of the worst place
    order: float  # how much the predictions change when the source is turned around
    looks: float  # the share of source positions that cross-attention looks at: exp(entropy) / S
    stream: float  # standard deviation of the decoder's stream at its top
    example: str  # what it writes


def measure(model: Transformer, *off: str, batch: int = 48) -> Measures:
    """The model's measures with some parts switched off."""
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    given, wanted = target[:, :-1], target[:, 1:]
    later = range(1, TASK_LENGTH + 1)
    changed = np.stack([given] * TASK_LENGTH)  # (6, B, 7); in each, another symbol is replaced
    for i, at in enumerate(later):
        changed[i, :, at] = 3 + (changed[i, :, at] - 2) % TASK_SYMBOLS
    sources = np.concatenate([source] * TASK_LENGTH)
    with without(model, *off), np.errstate(over="ignore", invalid="ignore"):
        logits, cache = model.forward(source, given)
        p = ops.softmax(np.nan_to_num(logits))
        p_changed = ops.softmax(np.nan_to_num(model.forward(sources, np.concatenate(changed))[0]))
        p_turned = ops.softmax(np.nan_to_num(model.forward(source[:, ::-1], given)[0]))
        written = model.decode(source, TASK_LENGTH + 1)
        cross = np.mean([ops.entropy(weights).mean() for weights in model.maps(cache)["cross"]])
    full = np.zeros_like(wanted)
    full[:, : written.shape[1]] = written
    return Measures(
        guided=float((p.argmax(axis=-1) == wanted).mean()),
        alone=float((full == wanted).all(axis=1).mean()),
        leak=max(
            _variation(p[:, :at], q[:, :at]) for at, q in zip(later, np.split(p_changed, len(later)), strict=True)
        ),
        order=_variation(p, p_turned),
        looks=math.exp(cross) / TASK_LENGTH,
        stream=float(cache.decoded.stream.std()),
        example=READ.decode(written[0]),
    )


def _variation(p: Array, q: Array) -> float:
    """Total variation between predictions, ½ Σ |p − q|: the largest over positions, the mean over strings."""
    return float((np.abs(p - q).sum(axis=-1) / 2).max(axis=1).mean())


MEASURES = {
    "guided": "next symbol right,\ngiven the right ones",
    "alone": "whole string right,\nwriting on its own",
    "leak": "leak from later\nsymbols",
    "order": "difference if the\nsource is turned",
    "looks": "share of the source\nlooked at",
}


def empty(ax: "Axes") -> None:
    """Axes for a drawing or a text: nothing of their own to be seen."""
    ax.set_axis_off()
    for part in (*ax.spines.values(), ax.xaxis, ax.yaxis):  # a live figure draws each artist by itself
        part.set_visible(False)


def every_setting(model: Transformer) -> dict[tuple[bool, ...], Measures]:
    """The measures at all 32 settings of the switches, each True where the part is on."""
    combinations = itertools.product((True, False), repeat=len(SWITCHES))
    return {on: measure(model, *(s for s, is_on in zip(SWITCHES, on, strict=True) if not is_on)) for on in combinations}


def _untrained() -> Transformer:
    config = TransformerConfig(vocab=TASK_SYMBOLS + 3, d_model=32, num_heads=2, num_layers=2)
    return Transformer(config, np.random.default_rng(0))


@live.lab(
    height=4.2,
    controls={name: live.Switch(name, True) for name in SWITCHES},
    prepare=every_setting,
    example=_untrained,
)
def switchboard_lab(figure: "Figure", results: Mapping[tuple[bool, ...], Measures]) -> live.Update:
    """A trained model with switches; all 32 settings are measured first."""
    trained = results[True, True, True, True, True]
    question, _ = reversal_pairs(np.random.default_rng(2024), 48)
    asked = READ.decode(question[0])
    ax, side = figure.subplots(1, 2, width_ratios=(1.5, 1))
    rows = np.arange(len(MEASURES))
    ax.set_yticks(rows, list(MEASURES.values()))
    ax.set(xlim=(0, 1.15), ylim=(len(rows) - 0.4, -0.6), xticks=(0, 0.25, 0.5, 0.75, 1), xlabel="measure")
    bars = ax.barh(rows, np.zeros(len(rows)), 0.6, color=plots.BLUE)
    numbers = [ax.text(0, row, "", va="center", zorder=5) for row in rows]
    for row, name in zip(rows, MEASURES, strict=True):
        ax.plot([getattr(trained, name)] * 2, [row - 0.38, row + 0.38], color=plots.INK, lw=2.5, clip_on=False)
    side.set(xlim=(0, 1), ylim=(0, 1))
    empty(side)
    side.text(0, 0.88, "black line: as trained", color=plots.INK)
    side.text(0, 0.68, f"asked:     {asked}", family="monospace")
    side.text(0, 0.57, f"expected:  {asked[::-1]}", family="monospace")
    says = side.text(0, 0.46, "", family="monospace")
    stream = side.text(0, 0.26, "", linespacing=1.5)

    def update(**on: bool) -> str:
        now = results[tuple(on[name] for name in SWITCHES)]
        for bar, number, name in zip(bars, numbers, MEASURES, strict=True):
            value, before = getattr(now, name), getattr(trained, name)
            moved = abs(value - before) > 0.05
            bar.set_width(value)
            bar.set_color(plots.ORANGE if moved else plots.BLUE)
            number.set_text(f"{value:.2f}")
            number.set_x(max(value, before if abs(value - before) < 0.12 else 0) + 0.02)
        off = [name for name in SWITCHES if not on[name]]
        head = f"Off: {', '.join(off)}" if off else "As trained"
        ax.set_title(f"{head} – {now.alone:.0%} written right")
        says.set_text(f"written:   {now.example}")
        stream.set_text(f"spread of the stream at the top:\n{now.stream:.3g} (as trained {trained.stream:.3g})")
        told = ", ".join(f"{text.replace(chr(10), ' ')} {getattr(now, name):.2f}" for name, text in MEASURES.items())
        return f"{head}: {told}; {asked} becomes {now.example or 'nothing'}; the stream's spread is {now.stream:.3g}."

    return update
