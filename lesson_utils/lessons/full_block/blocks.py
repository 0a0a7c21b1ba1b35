"""Layer norm and the way around: before training, and in it."""

import itertools
import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils import live, numbers, ops, plots, tasks
from lesson_utils._checks import Array
from lesson_utils.layers import NormPlace
from lesson_utils.models import GPT
from lesson_utils.models.stack import Stack, StackConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- Layer norm, both ways -------------------------------------------------------------------------------------------

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


# --- The way around --------------------------------------------------------------------------------------------------


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


# --- Before or after: at initialisation ------------------------------------------------------------------------------

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


# --- Before or after: in training ------------------------------------------------------------------------------------

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
