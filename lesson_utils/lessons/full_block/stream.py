"""The residual stream of stacks before training: how alike tokens become, how it grows, and the river."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint
from lesson_utils.classroom.formats import minus
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import NormPlace
from lesson_utils.maths.models.gpt import Stack, StackConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- With the residual connection and without -----------------------------------------------------------------------


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
def likeness_plot(figure: "Figure", with_it: Array, without: Array, layer: int = 2) -> str:
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


# --- The river ------------------------------------------------------------------------------------------------------


def _flow(ax: "Axes", places: Array, halves: Array, middle: float) -> None:
    """Draw the stream as a band around `middle`, of these half-widths after each place; it widens in soft steps."""
    x = np.linspace(places[0], places[-1] + 0.55, 600)
    half = np.full(len(x), halves[0])
    for place, before, after in zip(places[1:], halves, halves[1:], strict=False):
        half += (after - before) / (1 + np.exp(-(x - place) / 0.03))
    ax.fill_between(x, middle - half, middle + half, color=tint(plots.BLUE, 0.28), lw=0, zorder=0)
    ax.plot(x, middle + half, color=plots.BLUE, lw=1.4)
    ax.plot(x, middle - half, color=plots.BLUE, lw=1.4)


@plots.still(9.4, 3.9)
def river(figure: "Figure", written: Sequence[Array]) -> str:
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
        f"{layers} layers add to the residual stream, and it grows from {stream[0]:.1f} to {stream[-1]:.1f}. A river "
        f"that widens from left to right; above it {layers} attention, below it {layers} feed-forward parts, each "
        f"with a thin arrow that reads from it and a band that writes. Standard deviations of what they write, in "
        f"turn: {listed}."
    )


# --- With “x +” and without, with norms and without -----------------------------------------------------------------


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
