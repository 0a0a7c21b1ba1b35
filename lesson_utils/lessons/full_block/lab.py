"""Notebook 05: what a Transformer needs besides attention."""

import itertools
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils import live, numbers, ops, plots, tasks
from lesson_utils._checks import Array
from lesson_utils.layers import NormPlace
from lesson_utils.lessons import as_written
from lesson_utils.lessons.full_block import architecture
from lesson_utils.lessons.full_block.architecture import (
    PAPER_ROWS,
    PARTS,
    SWITCHES,
    Ledger,
    count,
    count_parameters,
    measure,
    reversal_pairs,
    switchboard_lab,
    vocabulary_for,
    without,
)
from lesson_utils.models import GPT, Encoder, Transformer, TransformerConfig
from lesson_utils.models.stack import Stack, StackConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What the notebook uses of the other module.
__all__ = [
    "PAPER_ROWS",
    "SWITCHES",
    "Ledger",
    "count",
    "count_parameters",
    "measure",
    "reversal_pairs",
    "switchboard_lab",
    "vocabulary_for",
    "without",
]

# --- Layer norm, both ways ------------------------------------------------------------------------------------------

TOKEN = np.array([1.3, -0.4, 0.2, -1.6, 0.9, -0.8, 1.1, -0.7])  # its pattern; mean 0
TOKEN = TOKEN / TOKEN.std()
SIGMAS = 10.0 ** np.linspace(-6, 2, 81)


def _normed_spread(sigma: Array | float, eps: float, inside: bool) -> Any:
    """The standard deviation after the norm, of a token that had `sigma` before."""
    return sigma / np.sqrt(np.square(sigma) + eps) if inside else sigma / (sigma + eps)


@live.lab(
    height=3.9,
    sigma=live.LogSlider("σ of the token", 1e-6, 100, 1.0),
    mean=live.Slider("its mean μ", -5.0, 5.0, 2.0, 0.5),
    eps=live.LogSlider("ε", 1e-8, 0.1, 1e-5, 4),
)
def norm_lab(figure: "Figure") -> live.Update:
    """One token through layer norm, with ε inside and outside the root."""
    bars_ax, curve_ax = figure.subplots(1, 2)
    at = np.arange(1, len(TOKEN) + 1)
    bars_ax.axhline(0, color=plots.GREY, lw=1, zorder=0)
    sets = {}
    for name, colour, shift in (("inside the root", plots.BLUE, -0.2), ("outside", plots.ORANGE, 0.2)):
        sets[name] = bars_ax.bar(at + shift, np.zeros(len(at)), 0.38, color=colour, label=f"ε {name}")
    bars_ax.set(ylim=(-2.2, 2.9), xlabel="feature of the token", ylabel="after the norm", xticks=at)
    bars_ax.legend(loc="upper right", ncols=2)
    curves = {}
    for name, colour, dashes in (("inside the root", plots.BLUE, "-"), ("outside", plots.ORANGE, "--")):
        (curves[name],) = curve_ax.plot(SIGMAS, np.ones(len(SIGMAS)), dashes, color=colour, label=f"ε {name}")
    (here,) = curve_ax.plot([1, 1], [0, 1.05], ":", color=plots.INK, lw=1.5)
    dots = [curve_ax.plot([1], [1], "o", color=plots.INK, ms=8, clip_on=False)[0] for _ in range(2)]
    curve_ax.set(xscale="log", ylim=(0, 1.3), xlabel="σ before the norm", ylabel="σ after the norm")
    curve_ax.legend(loc="upper left", ncols=2)  # above both curves

    def update(sigma: float, mean: float, eps: float) -> str:
        x = mean + sigma * TOKEN  # (d_model,)
        spreads = []
        for name, dot in zip(sets, dots, strict=True):
            inside = name != "outside"
            y = ops.layer_norm(x, np.ones(len(x)), np.zeros(len(x)), eps, inside)
            for bar, height in zip(sets[name], y, strict=True):
                bar.set_height(height)
            curves[name].set_ydata(_normed_spread(SIGMAS, eps, inside))
            spreads.append(float(y.std()))
            dot.set_data([sigma], [spreads[-1]])
        here.set_xdata([sigma, sigma])
        bars_ax.set_title(numbers.minus(f"μ = {mean:g} is gone; σ was {sigma:.3g}"))
        curve_ax.set_title(f"σ after: {spreads[0]:.3f} inside, {spreads[1]:.3f} outside")
        return (
            f"A token with mean {mean:g} and standard deviation {sigma:.3g}, ε = {eps:.2g}: after layer norm its "
            f"standard deviation is {spreads[0]:.4f} with ε inside the root and {spreads[1]:.4f} with ε outside."
        )

    return update


# --- The way around -------------------------------------------------------------------------------------------------


def token_similarity(way_around: bool, norm: NormPlace = "pre", depth: int = 12, seed: int = 0) -> Array:
    """Through an untrained stack: the mean cosine between two tokens of a sequence, after each layer, (depth + 1,)."""
    config = StackConfig(vocab=1, d_model=32, num_heads=4, num_layers=depth, norm=norm)
    rng = np.random.default_rng(seed)
    stack = Stack(config, rng)
    x = rng.normal(size=(4, 16, 32)).astype(np.float32)  # (B, T, d_model)
    similar = [_cosine(x)]
    for block in stack.blocks:
        block.attention.skip = block.feed_forward.skip = way_around
        x, _ = block.forward(x)
        similar.append(_cosine(x))
    return np.array(similar)


def _cosine(x: Array) -> float:
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    T = x.shape[1]
    products = unit @ unit.swapaxes(-1, -2)  # (B, T, T)
    return float((products.sum(axis=(-1, -2)) - T).mean() / (T * (T - 1)))


@plots.still(8.4, 3.4)
def similarity_plot(figure: "Figure", with_way: Array, without_way: Array, layer: int = 2) -> str:
    """How alike the tokens become with depth."""
    finding = (
        f"Likeness after {layer} layers: {without_way[layer]:.2f} without the way around, {with_way[layer]:.2f} with"
    )
    ax = figure.add_subplot(xlabel="layer", ylabel="mean cosine of two tokens", ylim=(-0.05, 1.05))
    ax.plot(without_way, "--", color=plots.ORANGE, label="f(norm(x)) alone")
    ax.plot(with_way, color=plots.BLUE, label="x + f(norm(x))")
    ax.set_title(finding)
    ax.legend(loc="lower right")
    ends = f"after {len(with_way) - 1} layers {without_way[-1]:.2f} and {with_way[-1]:.2f}"
    return f"{finding}. Mean cosine of two tokens by layer, from 0 at the input; {ends}."


# --- Before or after: at initialisation -----------------------------------------------------------------------------

DEPTHS = (2, 3, 6, 12, 24, 48)
WIDTHS, HEADS, RATIOS = (16, 64), (1, 4), (1, 4)
STYLES: dict[NormPlace, tuple[str, str]] = {"pre": (plots.BLUE, "-"), "post": (plots.ORANGE, "--")}


class Start(NamedTuple):
    """A stack as it is before training."""

    scales: Array  # standard deviation of the stream: at the input and after each layer, (depth + 1,)
    gradients: Array  # norm of the gradient of each layer's parameters, (depth,)


@cache
def one_start(norm: NormPlace, depth: int, d_model: int, num_heads: int, d_ff: int, seed: int) -> Start:
    """Measured: 2 sequences of 8 random tokens through an untrained stack, and a random gradient of norm 1 back.

    The gradient comes in at the very top (for pre-norm, above the norm at the top).
    """
    rng = np.random.default_rng(seed)
    sizes: dict[str, Any] = {"d_model": d_model, "num_heads": num_heads, "num_layers": depth, "d_ff": d_ff}
    stack = Stack(StackConfig(vocab=1, norm=norm, **sizes), rng)
    x = rng.normal(size=(2, 8, d_model)).astype(np.float32)
    dy = rng.normal(size=x.shape).astype(np.float32)
    _, caches = stack.forward(x)
    stack.backward(dy / np.float32(np.linalg.norm(dy)), caches)
    scales, gradients = [x.std()], []
    for block in stack.blocks:
        x, _ = block.forward(x)
        scales.append(x.std())
        gradients.append(math.sqrt(sum(float(np.vdot(p.grad, p.grad)) for p in block.params().values())))
    return Start(np.array(scales), np.array(gradients))


@cache
def at_start(
    norm: NormPlace, depth: int, d_model: int = 32, num_heads: int = 4, d_ff: int | None = None, seeds: int = 5
) -> Start:
    """`one_start`, the median over seeds: a mean would follow a single large draw."""
    starts = [one_start(norm, depth, d_model, num_heads, d_ff or 4 * d_model, seed) for seed in range(seeds)]
    scales, gradients = (np.median(numbers, axis=0) for numbers in zip(*starts, strict=True))
    return Start(scales, gradients)


def first_to_last(norm: NormPlace, depth: int, d_model: int, seeds: int = 9) -> Array:
    """The first layer's gradient over the last one's, for each seed, sorted."""
    starts = [one_start(norm, depth, d_model, 4, 4 * d_model, seed) for seed in range(seeds)]
    return np.sort([start.gradients[0] / start.gradients[-1] for start in starts])


@cache
def stream_without_norm(depth: int) -> float:
    """The standard deviation of the stream at the top of an untrained stack without any norm; d_model 32."""
    rng = np.random.default_rng(0)
    stack = Stack(StackConfig(vocab=1, d_model=32, num_layers=depth, norm="none"), rng)
    return float(stack.forward(rng.normal(size=(2, 8, 32)).astype(np.float32))[0].std())


@live.lab(
    height=4.0,
    depth=live.Choice("layers", DEPTHS, 12),
    d_model=live.Choice("d_model", WIDTHS, 64),
    num_heads=live.Choice("heads h", HEADS, 4),
    ratio=live.Choice("d_ff / d_model", RATIOS, 4),
)
def depth_lab(figure: "Figure") -> live.Update:
    """Pre-norm and post-norm before training: what the layers do to the stream, and what gradient they get."""
    for d_model, num_heads, ratio in itertools.product(WIDTHS, HEADS, RATIOS):  # about 2 seconds, once
        for norm, depth in itertools.product(STYLES, DEPTHS):
            at_start(norm, depth, d_model, num_heads, ratio * d_model)
    scale_ax, layer_ax, last_ax = figure.subplots(1, 3)
    lines: dict[tuple[str, str], Any] = {}
    for norm, (colour, dashes) in STYLES.items():
        look: dict[str, Any] = {"color": colour, "label": f"{norm}-norm"}
        for name, ax in (("scale", scale_ax), ("layer", layer_ax), ("last", last_ax)):
            (lines[name, norm],) = ax.plot([], [], dashes, marker="o", ms=4, **look)
    scale_ax.set(xlim=(-0.03, 1.03), ylim=(0, 11), ylabel="standard deviation of the stream")
    layer_ax.set(xlim=(-0.03, 1.03), yscale="log", ylim=(0.1, 100), ylabel="gradient norm of a layer's parameters")
    for ax in (scale_ax, layer_ax):
        ax.set(xlabel="way up the stack", xticks=(0, 0.5, 1))
        ax.set_xticklabels(["bottom", "half", "top"])
    last_ax.set(
        xscale="log",
        yscale="log",
        xlim=(1.7, 58),
        ylim=(0.5, 60),
        xlabel="layers L",
        ylabel="gradient norm, last layer",
    )
    last_ax.set_xticks(DEPTHS, [str(n) for n in DEPTHS])
    last_ax.minorticks_off()
    (slope,) = last_ax.plot([], [], ":", color=plots.GREY, lw=1.5, label="∝ 1/√L")
    for ax in (layer_ax, last_ax):
        ax.set_yticks((0.1, 1, 10, 100), ("0.1", "1", "10", "100"))
        ax.minorticks_off()
    here = [last_ax.plot([], [], "o", color=plots.INK, ms=9, mfc="none", mew=2)[0] for _ in STYLES]
    scale_ax.legend(loc="upper left")
    last_ax.legend(loc="upper right")

    def update(depth: int, d_model: int, num_heads: int, ratio: int) -> str:
        told, last = [], {}
        for (norm, _), ring in zip(STYLES.items(), here, strict=True):
            starts = {n: at_start(norm, n, d_model, num_heads, ratio * d_model) for n in DEPTHS}
            now = starts[depth]
            last[norm] = np.array([start.gradients[-1] for start in starts.values()])
            lines["scale", norm].set_data(np.linspace(0, 1, depth + 1), now.scales)
            lines["layer", norm].set_data(np.linspace(0, 1, depth), now.gradients)
            lines["last", norm].set_data(DEPTHS, last[norm])
            ring.set_data([depth], [now.gradients[-1]])
            told.append(
                f"{norm}-norm: the stream ends at standard deviation {now.scales[-1]:.1f}; gradient norm "
                f"{now.gradients[0]:.2g} in the first layer, {now.gradients[-1]:.2g} in the last"
            )
        slope.set_data(DEPTHS, last["pre"][0] * np.sqrt(DEPTHS[0] / np.array(DEPTHS)))
        pre, post = (at_start(norm, depth, d_model, num_heads, ratio * d_model) for norm in STYLES)
        scale_ax.set_title(f"Pre-norm stream: {pre.scales[-1]:.1f}")
        layer_ax.set_title(f"Top: pre {pre.gradients[-1]:.1f}, post {post.gradients[-1]:.1f}")
        fall = last["pre"][0] / last["pre"][-1]
        last_ax.set_title(f"2 → 48 layers: pre 1/{fall:.1f}")
        return (
            f"{depth} layers, d_model {d_model}, h {num_heads}, d_ff {ratio * d_model}. {'. '.join(told)}. From 2 "
            f"to 48 layers, the last layer's gradient falls to 1/{fall:.1f} in pre-norm; in post-norm it becomes "
            f"{last['post'][-1] / last['post'][0]:.2f} times as large."
        )

    return update


# --- Before or after: in training -----------------------------------------------------------------------------------

LINE_LENGTH, LINE_SYMBOLS = 4, 8


def reversal_lines(rng: np.random.Generator, batch: int = 48) -> tuple[Any, Any]:
    """For a GPT: 4 symbols, a mark, the same backwards. Ids and the ids that follow them, (B, 8) each."""
    source, target = tasks.reversal(rng, batch, LINE_LENGTH, LINE_SYMBOLS)
    line = np.concatenate([source, np.full((batch, 1), tasks.BOS), target], axis=1)  # (B, 9)
    return line[:, :-1], line[:, 1:]


class Accuracy:
    """A callback for `training.fit` on `reversal_lines`: the share of reversed symbols that the model gets right."""

    def __init__(self, model: GPT) -> None:
        self.model, self.steps, self.values = model, [0], [self._measure(model)]

    def __call__(self, step: int, loss: float, history: object) -> None:
        self.steps.append(step)
        self.values.append(self._measure(self.model))

    @staticmethod
    def _measure(model: GPT) -> float:
        ids, following = reversal_lines(np.random.default_rng(999), 128)
        logits, _ = model.forward(ids)
        return float((logits.argmax(axis=-1) == following)[:, LINE_LENGTH:].mean())


@plots.still(8.4, 3.8)
def training_plot(figure: "Figure", curves: Mapping[str, Accuracy]) -> str:
    """Accuracy by step, for several models."""
    learnt = [name for name, curve in curves.items() if curve.values[-1] > 0.9]
    finding = f"{len(learnt)} of {len(curves)} learn: " + " and ".join(learnt) if learnt else "None has learnt yet"
    ax = figure.add_subplot(xlabel="training step", ylabel="accuracy on the reversed half", ylim=(0, 1.05))
    ax.axhline(1 / LINE_SYMBOLS, color=plots.GREY, lw=1, ls=":")
    looks = itertools.cycle(((plots.BLUE, "-"), (plots.ORANGE, "--"), (plots.GREEN, "-.")))
    for (name, curve), (colour, dashes) in zip(curves.items(), looks, strict=False):
        ax.plot(curve.steps, curve.values, dashes, color=colour, label=name)
    ax.text(ax.get_xlim()[1], 1 / LINE_SYMBOLS + 0.015, "guessing", color=plots.GREY, ha="right")
    ax.set_title(finding)
    figure.legend(loc="outside lower center", ncols=len(curves))
    ends = "; ".join(f"{name}: {curve.values[-1]:.2f}" for name, curve in curves.items())
    return f"{finding}. Accuracy at the end: {ends}. Guessing gives {1 / LINE_SYMBOLS:.2f}."


# --- The ledger, live -----------------------------------------------------------------------------------------------

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


# --- Three wirings --------------------------------------------------------------------------------------------------


def moved(run: Callable[[Array], Array], ids: Array) -> Array:
    """Which outputs move when one input symbol is changed: (outputs, inputs), 1 where the output is not the same."""
    before = run(ids)  # (1, T_out, V)
    columns = []
    for j in range(ids.shape[1]):
        changed = ids.copy()
        changed[0, j] += 1
        columns.append(np.abs(run(changed) - before).max(axis=-1)[0] > 1e-6)
    return np.stack(columns, axis=1).astype(float)


def wirings(encoder: Encoder, gpt: GPT, both: Transformer, T: int = 6) -> dict[str, Array]:
    """For three models: which outputs depend on which inputs, measured by changing them."""
    source, target = np.random.default_rng(0).integers(3, 12, size=(2, 1, T))
    return {
        "Encoder-only": moved(lambda ids: encoder.forward(ids)[0][:, :, 0], source),
        "Decoder-only": moved(lambda ids: gpt.forward(ids)[0], source),
        "Both: target": moved(lambda ids: both.forward(source, ids)[0], target),
        "Both: source": moved(lambda ids: both.forward(ids, target)[0], source),
    }


@plots.still(9.0, 2.9)
def wirings_plot(figure: "Figure", reach: Mapping[str, Array]) -> str:
    """What each output can see, wiring by wiring."""
    alt = "Which output moves when an input symbol is changed."
    for ax, (name, matrix) in zip(figure.subplots(1, len(reach)), reach.items(), strict=True):
        share = matrix.mean()
        plots.heatmap(matrix, title=f"{name} {share:.0%}", row_label="", column_label="input", numbers=False, ax=ax)
        future = np.triu(matrix, 1).any()
        alt += f" {name}: {share:.0%} of the pairs; {'also' if future else 'never'} from inputs behind the output."
    figure.axes[0].set_ylabel("output")
    return alt


# --- The architecture diagram ---------------------------------------------------------------------------------------

# Part → the boxes that show it: x, y, width, height, in units of the drawing (10 across, 13 up).
BOXES: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "embedding": ((0.6, 0.8, 3.6, 0.8), (5.9, 0.8, 3.6, 0.8)),
    "positions": ((0.6, 1.9, 3.6, 0.8), (5.9, 1.9, 3.6, 0.8)),
    "attention": ((0.6, 3.7, 3.6, 0.8),),
    "masked": ((5.9, 3.7, 3.6, 0.8),),
    "cross": ((5.9, 5.9, 3.6, 0.8),),
    "feed-forward": ((0.6, 5.9, 3.6, 0.8), (5.9, 8.1, 3.6, 0.8)),
    "add & norm": (
        *((0.6, 4.75, 3.6, 0.7), (0.6, 6.95, 3.6, 0.7)),
        *((5.9, 4.75, 3.6, 0.7), (5.9, 6.95, 3.6, 0.7), (5.9, 9.15, 3.6, 0.7)),
    ),
    "output": ((5.9, 10.4, 3.6, 0.8),),
    "softmax": ((5.9, 11.5, 3.6, 0.8),),
}
LABELS = {"attention": "self-attention", "masked": "masked att.", "cross": "cross-attention"}


def _draw_streams(plan: "Axes") -> None:
    """What runs between the boxes: the streams, the ways around, the memory."""
    from matplotlib.patches import Rectangle

    line: dict[str, Any] = {"color": plots.GREY, "lw": 1.3, "zorder": 0}
    arrow: dict[str, Any] = {"arrowprops": {"arrowstyle": "->", "color": plots.GREY, "lw": 1.3}, "zorder": 0}
    for x, top, name in ((0.0, 7.75, "encoder ×N"), (5.3, 9.95, "decoder ×N")):
        plan.add_patch(
            Rectangle((x, 3.1), 4.3, top - 3.1, facecolor="#F3F3F3", edgecolor=plots.GREY, lw=0.8, zorder=-1)
        )
        plan.text(x, top + 0.1, name, va="bottom", fontsize=8, color=plots.GREY)
    for x, name, top, halves in ((2.4, "source ids", 7.5, (3.7, 5.9)), (7.7, "target ids", 12.9, (3.7, 5.9, 8.1))):
        plan.text(x, 0.0, name, ha="center", fontsize=9)
        plan.plot([x, x], [0.45, top], **line)
        for y in halves:  # around the sublayer, into add & norm
            plan.plot([x, x - 2.2, x - 2.2], [y - 0.18, y - 0.18, y + 1.2], **line)
            plan.annotate("", (x - 1.8, y + 1.2), (x - 2.25, y + 1.2), **arrow)
    plan.annotate("", (7.7, 13.0), (7.7, 12.4), **arrow)
    plan.plot([2.4, 2.4, 4.8, 4.8], [7.5, 8.3, 8.3, 6.3], **line)
    plan.annotate("", (5.9, 6.3), (4.75, 6.3), **arrow)
    plan.text(2.4, 8.45, "memory: K, V", ha="center", fontsize=9)


@live.lab(height=5.6, part=live.Choice("part", tuple(PARTS), "embedding"))
def diagram_lab(figure: "Figure") -> live.Update:
    """The architecture; the chosen part shows its formula, its shapes and its source."""
    from matplotlib.patches import Rectangle

    plan, page = figure.subplots(1, 2, width_ratios=(1, 1.72))
    plan.set(xlim=(-0.2, 9.9), ylim=(-0.2, 13.1))
    page.set(xlim=(0, 1), ylim=(0, 1))
    for ax in (plan, page):
        architecture.empty(ax)
    _draw_streams(plan)
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}
    for part, places in BOXES.items():
        for x, y, width, height in places:
            plan.add_patch(Rectangle((x, y), width, height, facecolor="white", edgecolor=plots.INK, lw=1, zorder=1))
            plan.text(x + width / 2, y + height / 2, LABELS.get(part, part), zorder=1, **middle)
    # Over the chosen boxes lie blue ones: so a step moves these few only.
    most = max(map(len, BOXES.values()))
    covers = [plan.add_patch(Rectangle((0, 0), 0, 0, facecolor=plots.BLUE, zorder=6)) for _ in range(most)]
    names = [plan.text(0, 0, "", color="white", weight="bold", zorder=7, **middle) for _ in range(most)]
    formula = page.text(0, 0.9, "", fontsize=13, va="top", color=plots.BLUE)
    shapes = page.text(0, 0.76, "", va="top")
    where = page.text(0, 0.65, "", va="top", color=plots.GREY)
    code = page.text(0, 0.56, "", va="top", family="monospace", fontsize=8.6, linespacing=1.45)

    def update(part: str) -> str:
        for cover, label, place in itertools.zip_longest(covers, names, BOXES[part]):
            x, y, width, height = place or (0.0, 0.0, 0.0, 0.0)
            cover.set_bounds(x, y, width, height)
            label.set_position((x + width / 2, y + height / 2))
            label.set_text(LABELS.get(part, part) if place else "")
        about = PARTS[part]
        name, lines = architecture.source_lines(about)
        page.set_title(about.title)
        formula.set_text(about.formula)
        shapes.set_text(about.shapes)
        where.set_text(f"Paper: {about.paper}. Source: {name}")
        code.set_text("\n".join(lines))
        times = len(BOXES[part])
        return (
            f"The encoder–decoder as a diagram; chosen: {about.title}, {times} {'box' if times == 1 else 'boxes'}. "
            f"Formula: {about.formula.replace('$', '')}. Shapes: {about.shapes}. Paper: {about.paper}. Source: {name}: "
            + " ".join(lines)
        )

    return update
