"""Stacks of blocks: how tokens, sizes and gradients fare before training, and what deep ones learn."""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint
from lesson_utils.classroom.formats import minus
from lesson_utils.maths import layers, tasks
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import EncoderLayer, NormPlace
from lesson_utils.maths.layers.basic import Rng
from lesson_utils.maths.layers.blocks import ResidualCache
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.gpt import Stack, StackCache, StackConfig

# --- 2 · Parts add, they do not replace -------------------------------------------------------------------------------


@cache
def cosines(residual: bool, only: str = "", depth: int = 12, seed: int = 0) -> Array:
    """Through an untrained stack: the cosine of each two tokens, after each layer, (depth + 1, T, T).

    Args:
        only: "attention" or "feed_forward" leaves the other part out of each layer.
    """
    config = StackConfig(vocab=1, d_model=32, num_heads=4, num_layers=depth)
    rng = np.random.default_rng(seed)
    stack = Stack(config, rng)
    x = rng.normal(size=(1, 16, 32)).astype(np.float32)  # (B, T, d_model)
    found = [_cosines(x)]
    for block in stack.blocks:
        for name in ("attention", "feed_forward"):
            part = getattr(block, name)
            part.skip = residual
            if only in ("", name):
                x, _ = part.forward(x, part.inner.forward)
        found.append(_cosines(x))
    return np.concatenate(found)


def _cosines(x: Array) -> Array:
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    product: Array = unit @ unit.swapaxes(-1, -2)  # (B, T, T)
    return product


def likeness(cosines: Array) -> Array:
    """Return the mean cosine of two different tokens: (…, T, T) → (…)."""
    T = cosines.shape[-1]
    mean: Array = (cosines.sum(axis=(-1, -2)) - T) / (T * (T - 1))
    return mean


LAYERS_DRAWN = (0, 1, 2, 4, 12)  # layers


@plots.still(9.4, 3.5)
def likeness_plot(figure: "plots.Figure", with_it: Array, without: Array, layer: int = 2) -> str:
    """Draw how alike tokens become with depth: each pair of tokens in some layers, and the mean in all."""
    means = {"x + f(norm(x))": likeness(with_it), "f(norm(x))": likeness(without)}
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.9, 1))
    left, right = halves
    colours = plots.colour_map(*plots.WEIGHTS_MAP)
    for row, (axes, (name, mean), all_pairs) in enumerate(
        zip(left.subplots(2, len(LAYERS_DRAWN)), means.items(), (with_it, without), strict=True)
    ):
        for ax, at in zip(axes, LAYERS_DRAWN, strict=True):
            image = ax.imshow(np.abs(all_pairs[at]), cmap=colours, vmin=0, vmax=1)
            ax.set(xticks=(), yticks=(), xlabel=minus(f"{mean[at]:z.2f}"))
            if row == 0:
                ax.set_title("input" if at == 0 else f"layer {at}", size=11.5, weight="normal")
        axes[0].set_ylabel(name, weight="bold", color=(plots.BLUE, plots.ORANGE)[row], labelpad=8)
    left.colorbar(image, ax=left.axes, label="cosine", shrink=0.7, ticks=(0, 0.5, 1))
    tokens = with_it.shape[-1]
    left.suptitle(f"Without “x +”, {tokens} tokens become one", x=0.01, ha="left", weight="bold", size=12.5)
    ax = right.subplots()
    looks = ((plots.BLUE, "-", 0.46), (plots.ORANGE, "--", 0.04))
    for (name, mean), (colour, dashes, below) in zip(means.items(), looks, strict=True):
        ax.plot(mean, dashes, color=colour)
        ax.text(len(mean) - 1, mean[-1] - below, name, color=colour, ha="right", va="top", weight="bold")
    ax.set(xlabel="layer", ylabel="mean cosine of two tokens", ylim=(-0.03, 1.08), xticks=range(0, len(mean), 3))
    values = [f"{mean[layer]:.2f}" for mean in means.values()]
    ax.set_title(f"Layer {layer}: {values[1]} against {values[0]}")
    ends = " and ".join(f"{mean[-1]:.2f}" for mean in means.values())
    drawn = ", ".join(str(at) for at in LAYERS_DRAWN[1:-1])
    return (
        f"Without the residual connection {tokens} tokens become one: their mean cosine is {values[1]} after {layer} "
        f"layers, {values[0]} with it. After {len(mean) - 1} layers: {ends} with it and without. Heat maps of the "
        f"cosine of each two tokens at the input and after layers {drawn} and {LAYERS_DRAWN[-1]}: with it they keep a "
        f"pattern, without it they are dark all over."
    )


# --- 3 · The norm -----------------------------------------------------------------------------------------------------


class Fate(NamedTuple):
    """The fate of tokens on the way up, and of a gradient of norm 1 on the way down."""

    size: float  # standard deviation of the stream at the top; it begins with 1
    alike: float  # mean cosine of two tokens there
    gradient: float  # norm of what reaches the input


FOUR: dict[str, tuple[bool, NormPlace]] = {
    "x + f(norm(x))": (True, "pre"),
    "f(norm(x))": (False, "pre"),
    "x + f(x)": (True, "none"),
    "f(x)": (False, "none"),
}


def fate(residual: bool, norm: NormPlace, depth: int, seeds: int = 3) -> Fate:
    """Send random tokens up an untrained stack and a random gradient down; the median over seeds. d_model is 32."""
    return Fate(*np.median([_one_fate(residual, norm, depth, seed) for seed in range(seeds)], axis=0))


@cache
def _one_fate(residual: bool, norm: NormPlace, depth: int, seed: int) -> Fate:
    rng = np.random.default_rng(seed)
    config = StackConfig(vocab=1, d_model=32, num_heads=4, num_layers=depth, norm=norm, dtype=np.float64)
    blocks = Stack(config, rng).blocks
    x, dy = rng.normal(size=(2, 2, 8, 32))  # (B, T, d_model) each
    dy /= np.linalg.norm(dy)
    caches = []
    for block in blocks:
        block.attention.skip = block.feed_forward.skip = residual
        x, cache = block.forward(x)
        caches.append(cache)
    for block, cache in zip(reversed(blocks), reversed(caches), strict=True):
        dy = block.backward(dy, cache)
    return Fate(float(x.std()), float(likeness(_cosines(x)).mean()), float(np.linalg.norm(dy)))


# --- 5 · The whole block ----------------------------------------------------------------------------------------------


def _flow(ax: "plots.Axes", places: Array, halves: Array, middle: float) -> None:
    """Draw the stream as a band around `middle`, of these half-widths after each place; it widens in soft steps."""
    x = np.linspace(places[0], places[-1] + 0.55, 600)
    half = np.full(len(x), halves[0])
    for place, before, after in zip(places[1:], halves, halves[1:], strict=False):
        half += (after - before) / (1 + np.exp(-(x - place) / 0.03))
    ax.fill_between(x, middle - half, middle + half, color=tint(plots.BLUE, 0.28), lw=0, zorder=0)
    ax.plot(x, middle + half, color=plots.BLUE, lw=1.4)
    ax.plot(x, middle - half, color=plots.BLUE, lw=1.4)


@plots.still(9.4, 3.9)
def river(figure: "plots.Figure", written: Sequence[Array]) -> str:
    """Draw the residual stream of a pre-norm stack: a band as wide as the stream is large, between its parts.

    Args:
        written: what goes in, then what each part adds: attention and feed-forward in turn. Widths are their standard
            deviations.
    """
    from matplotlib.patches import Polygon

    sizes = [float(np.std(part)) for part in written]
    stream = [float(np.std(sum(written[: n + 1]))) for n in range(len(written))]
    ax = sheet(figure)
    middle, scale = 1.72, 0.27  # inches; inches of half-width for a standard deviation of 1
    step = 8.1 / len(sizes)
    places = 0.42 + step * np.arange(len(sizes))
    halves = scale * np.array(stream)
    _flow(ax, places, halves, middle)
    font: dict[str, Any] = {"ha": "center", "va": "center"}
    for n, (place, size) in enumerate(zip(places[1:], sizes[1:], strict=True), 1):
        up = 1 if n % 2 else -1
        name, colour = ("attention", plots.PURPLE) if up == 1 else ("feed-fwd", plots.GREEN)
        at = place - 0.19
        made = box(ax, at, middle + up * 1.3, name, 0.98, 0.34, colour, 0.16, size=10.5)
        near = made.bottom if up == 1 else made.top
        edge = middle + up * halves[n]
        arrow(ax, (at - 0.2, middle + up * halves[n - 1] * 0.5), (at - 0.2, near[1]), plots.GREY, 1.2)
        wide = scale * size
        band = [(at + 0.2 - wide, near[1]), (at + 0.2 + wide, near[1])]
        ax.add_patch(
            Polygon(
                [*band, (at + 0.2 + wide, edge - up * 0.05), (at + 0.2 - wide, edge - up * 0.05)],
                color=tint(colour, 0.55),
                lw=0,
                zorder=0.4,
            )
        )
        ax.text(at + 0.2, middle + up * 1.62, f"+{size:.2f}", color=colour, size=10.5, **font)
    ax.text(places[0] - 0.02, middle, f"{stream[0]:.1f}", weight="bold", color=plots.BLUE, ha="right", va="center")
    end = places[-1] + 0.6
    ax.text(end, middle, f"{stream[-1]:.1f}", weight="bold", color=plots.BLUE, ha="left", va="center")
    key = "thin arrow: reads\n(normalized)\nwide band: writes\nwidths: σ; their\nsquares add up"
    ax.text(7.93, 2.95, key, color=plots.GREY, va="center", size=10.5, linespacing=1.25)
    layers = (len(sizes) - 1) // 2
    ax.set_title(f"{layers} layers add to the stream, and it grows from {stream[0]:.1f} to {stream[-1]:.1f}")
    listed = ", ".join(f"{size:.2f}" for size in sizes[1:])
    return (
        f"… A river that widens from left to right; above it {layers} attention, below it {layers} feed-forward parts, "
        "each with a thin arrow that reads from it and a band that writes. Standard deviations of what they write, in "
        f"turn: {listed}."
    )


# --- 7 · Does a deep stack need norms? --------------------------------------------------------------------------------


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


def gradient_norm(block: EncoderLayer, *names: str) -> float:
    """Return the norm of the gradients of a layer's parameters together, or of those with these names only."""
    chosen = [p for name, p in block.params().items() if not names or name.rpartition(".")[2] in names]
    return math.sqrt(sum(float(np.vdot(p.grad, p.grad)) for p in chosen))


LINE_LENGTH, LINE_SYMBOLS = 4, 8


def reversal_lines(rng: np.random.Generator, batch: int = 48) -> tuple[Any, Any]:
    """Make lines for a GPT: 4 symbols, a mark, the same backwards. Ids and the ids that follow them, (B, 8) each."""
    source, target = tasks.reversal(rng, batch, LINE_LENGTH, LINE_SYMBOLS)
    line = np.concatenate([source, np.full((batch, 1), tasks.BOS), target], axis=1)  # (B, 9)
    return line[:, :-1], line[:, 1:]


class Seen(NamedTuple):
    """The attributes of a `Watch`, as they are stored."""

    steps: list[int]
    accuracy: list[float]
    ratios: list[float]
    moves: list[float]
    sizes: list[float]


class Watch:
    """A callback for `training.fit` on `reversal_lines`, at every step.

    Attributes:
        steps, accuracy: the share of reversed symbols that the model gets right, every 10 steps and at the end.
        ratios: for each step the gradient norm of the bottom layer over that of the top layer.
        moves: the same for how far the step moves their parameters, from the second step on.
        sizes: the standard deviation of the stream before training, at the input and after each layer.
    """

    def __init__(self, model: GPT, every: int = 10) -> None:
        self.model, self.every, self.ratios, self.moves = model, every, list[float](), list[float]()
        self._before: list[Array] | None = None
        self.sizes = stream_sizes(model, reversal_lines(np.random.default_rng(999))[0])
        self.steps, self.accuracy = [0], [self._measure()]

    def __call__(self, step: int, loss: float, history: object) -> None:
        bottom, top = (gradient_norm(self.model.stack.blocks[i]) for i in (0, -1))
        self.ratios.append(bottom / max(top, 1e-30))
        now = [np.concatenate([p.value.ravel() for p in self.model.stack.blocks[i].params().values()]) for i in (0, -1)]
        if self._before:
            bottom, top = (float(np.linalg.norm(a - b)) for a, b in zip(now, self._before, strict=True))
            self.moves.append(bottom / max(top, 1e-30))
        self._before = now
        if step % self.every == 0:
            self.steps.append(step)
            self.accuracy.append(self._measure())

    def seen(self) -> Seen:
        return Seen(self.steps, self.accuracy, self.ratios, self.moves, self.sizes)

    def _measure(self) -> float:
        ids, following = reversal_lines(np.random.default_rng(999), 128)
        logits, _ = self.model.forward(ids)
        return float((logits.argmax(axis=-1) == following)[:, LINE_LENGTH:].mean())


def stream_sizes(model: GPT, ids: Any) -> list[float]:
    """Return the standard deviation of the residual stream of a GPT, at the input and after each layer."""
    x = model.tokens.forward(ids)[0]
    mask = causal_mask(ids.shape[1])
    sizes = [float(x.std())]
    for block in model.stack.blocks:
        x, _ = block.forward(x, mask)
        sizes.append(float(x.std()))
    return sizes


LOOKS = ((plots.BLUE, "-"), (plots.ORANGE, "--"), (plots.PURPLE, "-."), (plots.GREEN, (0, (5, 1))), (plots.INK, ":"))
LEARNT = 0.85  # a run whose share of reversed letters ends above has learnt


def _accuracy(ax: "plots.Axes", runs: Mapping[str, Seen]) -> list[str]:
    """Draw the share of reversed letters by step, and a line for guessing; return the runs that have learnt."""
    for (name, run), (colour, dashes) in zip(runs.items(), itertools.cycle(LOOKS), strict=False):
        ax.plot(run.steps, run.accuracy, ls=dashes, color=colour, label=name)
    ax.axhline(1 / LINE_SYMBOLS, color=plots.GREY, lw=1, ls=":")
    ax.set(xlabel="training step", ylabel="share of reversed letters right", ylim=(0, 1.05))
    learnt = [name for name, run in runs.items() if run.accuracy[-1] > LEARNT]
    ax.set_title(f"{len(learnt)} of {len(runs)} learn (dotted: guessing)")
    return learnt


@plots.still(9.4, 4.3)
def start_plot(figure: "plots.Figure", runs: Mapping[str, Seen]) -> str:
    """Draw how large the stream is before training, layer by layer, and what each run learns."""
    left, right = figure.subplots(1, 2)
    for run, (colour, dashes) in zip(runs.values(), itertools.cycle(LOOKS), strict=False):
        left.plot(range(len(run.sizes)), run.sizes, ls=dashes, color=colour)
    left.set(xlabel="layer", ylabel="standard deviation of the stream", yscale="log", xticks=range(0, 13, 3))
    largest = max(runs, key=lambda name: runs[name].sizes[-1])
    others = max(run.sizes[-1] for name, run in runs.items() if name != largest)
    left.set_title(f"Before training: {runs[largest].sizes[-1]:.0f} at the top; others to {others:.1f}")
    learnt = _accuracy(right, runs)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    told = "; ".join(
        f"{name}: from {run.sizes[0]:.1f} to {run.sizes[-1]:.3g}, and {run.accuracy[-1]:.2f} right after "
        f"{run.steps[-1]} steps"
        for name, run in runs.items()
    )
    return (
        f"… What learns: {'; '.join(learnt) or 'none yet'}. Standard deviation of the stream before training from the "
        f"input to the top of {len(run.sizes) - 1} layers, and share of reversed letters right: {told}. Guessing gives "
        f"{1 / LINE_SYMBOLS:.2f}."
    )


# --- 10 · Before or after? --------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """A stack as it is before training; each array from the bottom to the top."""

    scales: Array  # standard deviation of the stream: at the input and after each layer, (depth + 1,)
    alike: Array  # mean cosine of two of its tokens, there, too, (depth + 1,)
    gradients: Array  # norm of the gradient of each layer's parameters, (depth,)
    looking: Array  # of W_Q and W_K alone, (depth,)


@cache
def one_start(norm: NormPlace, depth: int, d_model: int, seed: int) -> Start:
    """Measured: 2 sequences of 8 random tokens through an untrained stack, and a random gradient of norm 1 back.

    The gradient comes in at the very top (for pre-norm, above the norm at the top).
    """
    rng = np.random.default_rng(seed)
    stack = Stack(StackConfig(vocab=1, norm=norm, d_model=d_model, num_heads=4, num_layers=depth), rng)
    x = rng.normal(size=(2, 8, d_model)).astype(np.float32)
    dy = rng.normal(size=x.shape).astype(np.float32)
    streams, caches = [x], []
    for block in stack.blocks:
        x, cache = block.forward(x)
        streams.append(x)
        caches.append(cache)
    top = stack.norm.forward(x)[1] if stack.norm else None
    stack.backward(dy / np.float32(np.linalg.norm(dy)), StackCache(caches, top, x))
    units = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in streams]
    return Start(
        np.array([x.std() for x in streams]),
        np.array([likeness(unit @ unit.swapaxes(-1, -2)).mean() for unit in units]),
        np.array([gradient_norm(block) for block in stack.blocks]),
        np.array([gradient_norm(block, "W_Q", "W_K") for block in stack.blocks]),
    )


@cache
def at_start(norm: NormPlace, depth: int, d_model: int = 32, seeds: int = 3) -> Start:
    """`one_start`, the median over seeds: a mean would follow a single large draw."""
    starts = [one_start(norm, depth, d_model, seed) for seed in range(seeds)]
    return Start(*(np.median(values, axis=0) for values in zip(*starts, strict=True)))


def first_to_last(norm: NormPlace, depth: int, d_model: int, seeds: int = 3) -> Array:
    """Divide the first layer's gradient by the last one's, for each seed; sorted."""
    starts = [one_start(norm, depth, d_model, seed) for seed in range(seeds)]
    return np.sort([start.gradients[0] / start.gradients[-1] for start in starts])


@plots.still(9.4, 4.7)
def training_plot(figure: "plots.Figure", runs: Mapping[str, Seen], failing: str = "post-norm") -> str:
    """Accuracy by step, and the bottom layer's gradient over the top layer's; both for all runs."""
    left, right = figure.subplots(1, 2)
    learnt = _accuracy(left, runs)
    for run, (colour, dashes) in zip(runs.values(), itertools.cycle(LOOKS), strict=False):
        at = np.arange(1, len(run.ratios) + 1)
        right.plot(at, _typical(run.ratios), ls=dashes, color=colour)
    right.axhline(1, color=plots.GREY, lw=1, ls=":")
    right.set(xscale="log", yscale="log", xlabel="training step", ylabel="gradient: bottom layer / top layer")
    right.set_xticks((1, 3, 10, 30, 100, 300), ("1", "3", "10", "30", "100", "300"))
    right.minorticks_off()
    if failing in runs:
        first, later = runs[failing].ratios[0], _typical(runs[failing].ratios)[: len(runs[failing].ratios)]
        found = f"{failing} falls from {first:.2f} to 1/{1 / later.min():,.0f}"
        right.set_title(found[0].upper() + found[1:])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    ends = "; ".join(
        f"{name}: {run.accuracy[-1]:.2f}, ratio {run.ratios[0]:.2g} at the first step, {run.ratios[-1]:.2g} at the last"
        for name, run in runs.items()
    )
    return (
        f"… What learns: {'; '.join(learnt) or 'none yet'}. Share right at the end, and gradient of the bottom layer "
        f"over that of the top layer: {ends}. Guessing gives {1 / LINE_SYMBOLS:.2f}."
    )


class Starved(NamedTuple):
    """The gradient of a run's bottom layer over that of its top layer, and what the run learnt."""

    lowest: float
    median: float  # from step 20 on
    right: float
    moved: float  # how far a step moves the bottom layer, over the top layer: the median from step 20 on


def starved(run: Seen, steps: int = 150) -> Starved:
    """Look at the first steps of a run, as many as are given; a learner and a failure are then compared fairly."""
    ratios = np.array(run.ratios[:steps])
    at = max(n for n, step in enumerate(run.steps) if step <= steps)
    moved = float(np.median(run.moves[19 : steps - 1]))  # moves begin with the second step
    return Starved(float(ratios.min()), float(np.median(ratios[20:])), run.accuracy[at], moved)


def _typical(ratios: list[float]) -> Any:
    """Take the geometric mean over the steps around each, more of them later on: single batches scatter."""
    logs = np.log(ratios)
    around = [logs[max(t - t // 5, 0) : t + t // 5 + 1].mean() for t in range(len(logs))]
    return np.exp(around)
