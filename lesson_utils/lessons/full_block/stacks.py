"""Stacks of blocks: how tokens, sizes and gradients fare before training, and what deep ones learn."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint
from lesson_utils.classroom.formats import minus
from lesson_utils.lessons.full_block.worth import Nothing
from lesson_utils.maths import layers, ops, tasks, training
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import EncoderLayer, NormPlace
from lesson_utils.maths.layers.basic import Rng
from lesson_utils.maths.layers.blocks import ResidualCache
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.models.gpt import Stack, StackCache, StackConfig

# --- 1 · Parts add, they do not replace -------------------------------------------------------------------------------


class Part:
    """A part of a block as a function: an array in, an array out. It keeps what it gave last, as `gave`."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function

    def __call__(self, x: Array) -> Array:
        self.gave = self.function(x)
        return self.gave


def _feed_forward(x: Array, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Array:
    return ops.linear(ops.relu(ops.linear(x, W_1, b_1)), W_2, b_2)


def untrained(
    depth: int, seed: int = 0, feed_forward: Callable[..., Array] = _feed_forward, mask: Any = None
) -> tuple[Array, list[dict[str, Part]]]:
    """Return 16 random tokens, (1, T, d_model), and the parts of each block of an untrained stack, in float64.

    Args:
        feed_forward: computes (x, W_1, b_1, W_2, b_2) -> y.
        mask: (T, T), True where a token may look; all may look anywhere without it.
    """
    rng = np.random.default_rng(seed)
    blocks = Stack(StackConfig(vocab=1, d_model=32, num_heads=4, num_layers=depth, dtype=np.float64), rng).blocks
    parts = []
    for block in blocks:
        attend, feed = block.attention.inner, block.feed_forward.inner
        numbers = [param.value for param in (feed.wide.W, feed.wide.b, feed.narrow.W, feed.narrow.b) if param]
        parts.append(
            {
                "attention": Part(lambda x, attend=attend: attend.forward(x, mask=mask)[0]),  # type: ignore[misc]
                "feed-forward": Part(lambda x, numbers=numbers: feed_forward(x, *numbers)),  # type: ignore[misc]
            }
        )
    return rng.normal(size=(1, 16, 32)), parts


def cosines(x: Array) -> Array:
    """Return the cosine of each two tokens: (..., T, d_model) → (..., T, T)."""
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    product: Array = unit @ unit.swapaxes(-1, -2)
    return product


def likeness(cosines: Array) -> Array:
    """Return the mean cosine of two different tokens: (…, T, T) → (…)."""
    T = cosines.shape[-1]
    mean: Array = (cosines.sum(axis=(-1, -2)) - T) / (T * (T - 1))
    return mean


LAYERS_DRAWN = (0, 1, 2, 4, 12)  # blocks


@plots.still(9.4, 4.0)
def likeness_plot(figure: "plots.Figure", found: Mapping[str, Array]) -> str:
    """Draw how alike tokens become with depth: each pair of the first stack's, and the mean in all stacks.

    Args:
        found: by what a part does, cosines after each block, (stacks, blocks + 1, T, T). The first two are drawn whole.
    """
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.65, 1))
    left, right = halves
    means = {name: likeness(np.asarray(all_pairs)) for name, all_pairs in found.items()}  # (stacks, blocks + 1)
    names = list(found)[:2]
    looks = [*LOOKS[:3], (plots.GREEN, ":"), (plots.GREY, (0, (5, 1)))]
    for row, (axes, name) in enumerate(zip(left.subplots(2, len(LAYERS_DRAWN)), names, strict=True)):
        for ax, at in zip(axes, LAYERS_DRAWN, strict=True):
            image = ax.imshow(np.abs(found[name][0][at]), cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=1)
            ax.set(xticks=(), yticks=(), xlabel=minus(f"{means[name][0, at]:z.2f}"))
            if row == 0:
                ax.set_title("input" if at == 0 else f"block {at}", size=11.5, weight="normal")
        axes[0].set_ylabel(name, weight="bold", color=looks[row][0], labelpad=8)
    left.colorbar(image, ax=left.axes, label="size of the cosine", shrink=0.7, ticks=(0, 0.5, 1))
    tokens = found[names[0]].shape[-1]
    left.suptitle(
        f"Without “x +”, {tokens} tokens become one (the first stack)", x=0.01, ha="left", weight="bold", size=12.5
    )
    ax = right.subplots()
    for (name, mean), (colour, dashes) in zip(means.items(), looks, strict=False):
        ax.plot(np.median(mean, axis=0), ls=dashes, color=colour, label=name, lw=2)
        ax.fill_between(range(mean.shape[1]), mean.min(axis=0), mean.max(axis=0), color=colour, alpha=0.12, lw=0)
    ax.set(xlabel=f"block (median of {len(mean)} stacks)", ylabel="mean cosine")
    ax.set(ylim=(-0.1, 1.05), xticks=range(0, mean.shape[1], 3))
    plus, without = (np.median(means[name], axis=0) for name in names)
    ax.set_title(f"Block 4: {without[4]:.2f} against {plus[4]:.2f}")
    right.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=1)
    told = "; ".join(
        f"{name} {np.median(mean[:, 4]):.2f} ({mean[:, 4].min():.2f} to {mean[:, 4].max():.2f}) after 4 blocks and "
        f"{np.median(mean[:, -1]):.2f} after {mean.shape[1] - 1}"
        for name, mean in means.items()
    )
    return (
        f"Without “x +”, {tokens} tokens become one. Block 4: {without[4]:.2f} against {plus[4]:.2f}. Mean cosine of "
        f"two tokens, the median of {len(mean)} stacks (lowest to highest): {told}."
    )


# --- 4 · The whole block ----------------------------------------------------------------------------------------------


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
        low, high = at + 0.2 - wide, at + 0.2 + wide
        band = [(low, near[1]), (high, near[1]), (high, edge - up * 0.05), (low, edge - up * 0.05)]
        ax.add_patch(Polygon(band, color=tint(colour, 0.55), lw=0, zorder=0.4))
        ax.text(at + 0.2, middle + up * 1.62, f"+{size:.2f}", color=colour, size=10.5, **font)
    ax.text(places[0] - 0.02, middle, f"{stream[0]:.1f}", weight="bold", color=plots.BLUE, ha="right", va="center")
    end = places[-1] + 0.6
    ax.text(end, middle, f"{stream[-1]:.1f}", weight="bold", color=plots.BLUE, ha="left", va="center")
    key = "thin arrow: reads\n(normalized)\nwide band: writes\nwidths: σ; their\nsquares add up"
    ax.text(7.93, 2.95, key, color=plots.GREY, va="center", size=10.5, linespacing=1.25)
    blocks = (len(sizes) - 1) // 2
    ax.set_title(f"{blocks} blocks add to the stream, and it grows from {stream[0]:.1f} to {stream[-1]:.1f}")
    listed = ", ".join(f"{size:.2f}" for size in sizes[1:])
    return (
        f"… A river that widens from left to right; above it {blocks} attention, below it {blocks} feed-forward parts, "
        "each with a thin arrow that reads from it and a band that writes. Standard deviations of what they write, in "
        f"turn: {listed}."
    )


# --- 5 · Does a deep stack need norms? --------------------------------------------------------------------------------


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


def as_lines(source: Any, target: Any) -> tuple[Any, Any]:
    """Join (B, 4) symbols, a mark and (B, 4) answers for a GPT: ids and the ids that follow them, (B, 8) each."""
    line = np.concatenate([source, np.full((len(source), 1), tasks.BOS), target], axis=1)  # (B, 9)
    return line[:, :-1], line[:, 1:]


def reversal_lines(rng: np.random.Generator, batch: int = 48) -> tuple[Any, Any]:
    """Make lines of 4 symbols, a mark, and the same backwards."""
    return as_lines(*tasks.reversal(rng, batch, LINE_LENGTH, LINE_SYMBOLS))


def tiny(second: str, blocks: int, width: int, seed: int) -> GPT:
    """Make a GPT for lines of 4 letters. Behind attention its blocks have "feed-forward", "one matrix" or "nothing"."""
    rng = np.random.default_rng(seed)
    model = GPT(GPTConfig(vocab=7, d_model=width, num_layers=blocks), rng)
    if second != "feed-forward":
        for block in model.stack.blocks:
            part: Any = Nothing() if second == "nothing" else layers.Linear(width, width, rng)
            block.feed_forward.inner = part
    return model


class Seen(NamedTuple):
    """What was seen of a model that `fit` trained."""

    steps: list[int]
    accuracy: list[float]  # the share of reversed letters that it gets right, every 10 steps
    sizes: list[float]  # the standard deviation of its stream before training, at the input and after each layer


def fit(model: GPT, rate: Callable[[int], float], steps: int, seed: int, lines: Any = reversal_lines) -> Seen:
    """Train a GPT on such lines, and watch it. Where a number becomes infinite, training ends."""
    sizes = stream_sizes(model, lines(np.random.default_rng(999))[0])
    seen = Seen([0], [_right(model, lines)], sizes)

    def watch(step: int, loss: float, history: object) -> None:
        seen.steps.append(step)
        seen.accuracy.append(_right(model, lines))

    try:
        training.fit(model, lines, steps, schedule=rate, callback=watch, every=10, seed=seed, progress=False)
    except ValueError as why:
        if "became" not in str(why):
            raise
    return seen


def _right(model: GPT, lines: Any) -> float:
    ids, following = lines(np.random.default_rng(999), 128)
    logits, _ = model.forward(ids)
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


LOOKS = ((plots.BLUE, "-"), (plots.ORANGE, "--"), (plots.PURPLE, "-."), (plots.GREEN, (0, (5, 1))))
LEARNT = 0.85  # a run whose share of reversed letters ends above has learnt


def learnt(runs: Sequence[Seen]) -> int:
    """Return how many runs have learnt."""
    return sum(run.accuracy[-1] > LEARNT for run in runs)


def _accuracy(ax: "plots.Axes", runs: Mapping[str, Sequence[Seen]]) -> str:
    """Draw the share of reversed letters by step, a line for each start, and one for guessing; tell what learns."""
    for (name, starts), (colour, dashes) in zip(runs.items(), LOOKS, strict=False):
        for n, run in enumerate(starts):
            label = name if n == 0 else None
            ax.plot(run.steps, run.accuracy, ls=dashes, color=colour, lw=1, label=label)
    ax.axhline(1 / LINE_SYMBOLS, color=plots.GREY, lw=1, ls=":")
    ax.set(xlabel="training step", ylabel="share of reversed letters right", ylim=(0, 1.05))
    *first, last = (str(learnt(starts)) for starts in runs.values())
    ax.set_title(f"{', '.join(first)} and {last} of {len(starts)} starts learn")
    return "; ".join(
        f"{name}: {learnt(starts)} of {len(starts)} starts learn, with "
        f"{min(run.accuracy[-1] for run in starts):.2f} to {max(run.accuracy[-1] for run in starts):.2f} right"
        for name, starts in runs.items()
    )


@plots.still(9.0, 3.8)
def start_plot(figure: "plots.Figure", runs: Mapping[str, Sequence[Seen]]) -> str:
    """Draw how large the stream is before training, layer by layer, and what each start learns."""
    left, right = figure.subplots(1, 2)
    for starts, (colour, dashes) in zip(runs.values(), LOOKS, strict=False):
        for run in starts:
            left.plot(range(len(run.sizes)), run.sizes, ls=dashes, color=colour, lw=1)
    left.set(xlabel="block", ylabel="standard deviation of the stream", yscale="log", xticks=range(0, 13, 3))
    tops = {name: np.median([run.sizes[-1] for run in starts]) for name, starts in runs.items()}
    largest = max(tops, key=lambda name: tops[name])
    others = max(top for name, top in tops.items() if name != largest)
    left.set_title(f"Untrained: {tops[largest]:.0f} at the top; others to {others:.1f}")
    told = _accuracy(right, runs)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    ends = "; ".join(f"{name} {top:.3g}" for name, top in tops.items())
    return (
        f"… {told}. Guessing gives {1 / LINE_SYMBOLS:.2f}. Before training, standard deviation of the stream at "
        f"the top, the median of all starts: {ends}."
    )


@plots.still(7.6, 3.3)
def learning_plot(figure: "plots.Figure", runs: Mapping[str, Sequence[Seen]]) -> str:
    """Draw what each start learns."""
    ax = figure.add_subplot()
    told = _accuracy(ax, runs)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return f"… {told}. Guessing gives {1 / LINE_SYMBOLS:.2f}."


# --- 7 · Before or after? --------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """A stack as it is before training; each array from the bottom to the top."""

    scales: Array  # standard deviation of the stream: at the input and after each layer, (depth + 1,)
    alike: Array  # mean cosine of two of its tokens, there, too, (depth + 1,)
    gradients: Array  # norm of the gradient of each layer's parameters, (depth,)
    looking: Array  # of W_Q and W_K alone, (depth,)


@cache
def one_start(norm: NormPlace, depth: int, seed: int, dtype: type = np.float64) -> Start:
    """Measured: 2 sequences of 8 random tokens through an untrained stack, and a random gradient of norm 1 back.

    The gradient comes in at the very top (for pre-norm, above the norm at the top). Not in float32: where the tokens
    are alike, the gradient of W_Q and W_K is a difference of nearly equal numbers, and float32 rounds it to noise.
    """
    rng = np.random.default_rng(seed)
    stack = Stack(StackConfig(vocab=1, norm=norm, d_model=64, num_heads=4, num_layers=depth, dtype=dtype), rng)
    x: Array = rng.normal(size=(2, 8, 64)).astype(dtype)
    dy: Array = rng.normal(size=x.shape).astype(dtype)
    streams, caches = [x], []
    for block in stack.blocks:
        x, cache = block.forward(x)
        streams.append(x)
        caches.append(cache)
    top = stack.norm.forward(x)[1] if stack.norm else None
    stack.backward(dy / np.linalg.norm(dy), StackCache(caches, top, x))
    units = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in streams]
    return Start(
        np.array([x.std() for x in streams]),
        np.array([likeness(unit @ unit.swapaxes(-1, -2)).mean() for unit in units]),
        np.array([gradient_norm(block) for block in stack.blocks]),
        np.array([gradient_norm(block, "W_Q", "W_K") for block in stack.blocks]),
    )


@cache
def at_start(norm: NormPlace, depth: int, dtype: type = np.float64, seeds: int = 10) -> Start:
    """`one_start`, the median over seeds: a mean would follow a single large draw."""
    starts = [one_start(norm, depth, seed, dtype) for seed in range(seeds)]
    return Start(*(np.median(values, axis=0) for values in zip(*starts, strict=True)))
