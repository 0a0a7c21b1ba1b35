"""Pre-norm and post-norm: the two blocks drawn, and what they do to stream and gradients before training."""

import itertools
import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint
from lesson_utils.lessons.full_block.stream import likeness
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import EncoderLayer, NormPlace
from lesson_utils.maths.models.gpt import Stack, StackCache, StackConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- Side by side ---------------------------------------------------------------------------------------------------


def _plus(ax: "Axes", x: float, y: float) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), 0.13, fc="white", ec=plots.INK, lw=1.8, zorder=3))
    ax.text(x, y - 0.012, "+", ha="center", va="center", weight="bold", zorder=4)


def _block(ax: "Axes", left: float, pre: bool) -> None:
    """Draw one block: its stream is a thick vertical road at `left`, its parts lie on side roads to the right."""
    stream = plots.BLUE if pre else plots.ORANGE
    ax.plot([left, left], [0.16, 3.28], color=tint(stream, 0.75), lw=7, zorder=1, solid_capstyle="butt")
    arrow(ax, (left, 3.2), (left, 3.5), stream, 3.5)
    ax.text(left - 0.16, 0.2, "x", ha="right", va="center", weight="bold", size=14)
    for low, name, colour in ((0.42, "attention", plots.PURPLE), (1.88, "feed-forward", plots.GREEN)):
        road: dict[str, Any] = {"color": plots.GREY, "lw": 1.8, "zorder": 1}
        join = low + (1.04 if pre else 0.72)
        x = left + 1.15
        ax.plot([left, x, x], [low, low, join], **road)
        arrow(ax, (x, join), (left + 0.13, join), plots.GREY)
        _plus(ax, left, join)
        part = low + (0.7 if pre else 0.36)
        box(ax, x, part, name, 1.3, 0.32, colour, 0.16).patch.set_zorder(3)
        at = (x, low + 0.25) if pre else (left, join + 0.4)
        box(ax, *at, "norm", 0.86, 0.3, plots.INK, 0.1).patch.set_zorder(3)


@plots.still(9.2, 4.1)
def two_places(figure: "Figure") -> str:
    """Draw a post-norm block and a pre-norm block, side by side."""
    ax = sheet(figure)
    ax.set_title("Post-norm stands on the stream, pre-norm on the side roads")
    for left, pre in ((0.62, False), (5.0, True)):
        _block(ax, left, pre)
        name, colour = ("pre-norm", plots.BLUE) if pre else ("post-norm", plots.ORANGE)
        ax.text(left + 1.95, 3.22, name, weight="bold", size=14, color=colour, va="center")
        formula = "x + f(norm(x))" if pre else "norm(x + f(x))"
        ax.text(left + 1.95, 2.86, formula, size=12.5, va="center", family="monospace")
        remark = (
            "Nothing stands in the\nway: the stream runs\nfrom bottom to top,\nand parts only add."
            if pre
            else "The stream itself goes\nthrough every norm:\nafter each part it is\nbrought back to size 1."
        )
        ax.text(left + 1.95, 2.5, remark, va="top", linespacing=1.4)
    return (
        "Post-norm stands on the stream, pre-norm on the side roads. Two blocks, drawn from bottom to top. "
        "Post-norm: x branches off to attention, is added, the sum goes through a norm; so with feed-forward. "
        "Pre-norm: the stream goes straight up; each branch has a norm before attention or feed-forward."
    )


# --- Before training ------------------------------------------------------------------------------------------------

DEPTHS = (2, 6, 12, 24, 48)
WIDTHS = (16, 64)
STYLES: dict[NormPlace, tuple[str, str]] = {"pre": (plots.BLUE, "-"), "post": (plots.ORANGE, "--")}


class Start(NamedTuple):
    """A stack as it is before training; each array from the bottom to the top."""

    scales: Array  # standard deviation of the stream: at the input and after each layer, (depth + 1,)
    alike: Array  # mean cosine of two of its tokens, there, too, (depth + 1,)
    gradients: Array  # norm of the gradient of each layer's parameters, (depth,)
    looking: Array  # of W_Q and W_K alone, (depth,)


def gradient_norm(block: EncoderLayer, *names: str) -> float:
    """Return the norm of the gradients of a layer's parameters together, or of those with these names only."""
    chosen = [p for name, p in block.params().items() if not names or name.rpartition(".")[2] in names]
    return math.sqrt(sum(float(np.vdot(p.grad, p.grad)) for p in chosen))


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


@live.lab(
    height=4.3,
    neutral="In 2 layers nothing has vanished yet.",
    depth=live.Choice("layers", DEPTHS, 2),
    d_model=live.Choice("d_model", WIDTHS, 64),
)
def depth_lab(figure: "Figure") -> live.Update:
    """Pre-norm and post-norm before training: the stream, how alike its tokens are, and each layer's gradient."""
    for norm, depth, d_model in itertools.product(STYLES, DEPTHS, WIDTHS):  # some seconds, once
        at_start(norm, depth, d_model)
    scale_ax, alike_ax, layer_ax = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    lines: dict[tuple[str, str], Any] = {}
    for norm, (colour, dashes) in STYLES.items():
        for name, ax in (("scales", scale_ax), ("alike", alike_ax), ("gradients", layer_ax)):
            label = f"{norm}-norm" + " (third panel: all parameters)" * (ax is layer_ax)
            (lines[norm, name],) = ax.plot([], [], dashes, color=colour, label=label)
        (lines[norm, "looking"],) = layer_ax.plot(
            [],
            [],
            ":",
            color=colour,
            marker="x" if norm == "post" else "+",
            ms=6,
            label=f"{norm}-norm, third panel: $W_Q$ and $W_K$",
        )
    scale_ax.set(ylim=(0, 9), ylabel="standard deviation of the stream")
    alike_ax.set(ylim=(-0.05, 1.05), ylabel="mean cosine of two tokens")
    layer_ax.set(yscale="log", ylim=(1e-9, 100), ylabel="gradient norm of a layer")
    layer_ax.set_yticks([10.0**n for n in range(-8, 3, 2)])
    layer_ax.minorticks_off()
    for ax in (scale_ax, alike_ax, layer_ax):
        ax.set(xlabel="way up the stack", xticks=(0, 0.5, 1), xlim=(-0.03, 1.03))
        ax.set_xticklabels(["bottom", "half", "top"])
    figure.legend(handles=list(lines.values())[2:4] + list(lines.values())[6:], loc="outside lower center", ncols=2)

    def update(depth: int, d_model: int) -> str:
        clauses, now = [], {}
        for norm in STYLES:
            now[norm] = start = at_start(norm, depth, d_model)
            for name, values in start._asdict().items():
                lines[norm, name].set_data(np.linspace(0, 1, len(values)), values)
            clauses.append(
                f"{norm}-norm: the stream ends at standard deviation {start.scales[-1]:.1f} with tokens of cosine "
                f"{start.alike[-1]:.2f}; gradient norm {start.gradients[0]:.2g} in the first layer, "
                f"{start.gradients[-1]:.2g} in the last; of queries and keys alone {start.looking[0]:.2g} and "
                f"{start.looking[-1]:.2g}"
            )
        pre, post = now["pre"], now["post"]
        scale_ax.set_title(f"Pre-norm: stream to {pre.scales[-1]:.1f}")
        alike_ax.set_title(f"Post-norm: cosine {post.alike[-1]:.2f}")
        layer_ax.set_title(f"Crosses end at {formats.power(post.looking[-1])}")
        return f"Before training, {depth} layers, d_model {d_model}: {'. '.join(clauses)}."

    return update
