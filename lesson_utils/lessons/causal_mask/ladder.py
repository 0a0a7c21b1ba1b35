"""A GPT built part by part: what each part brings, on one axis."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.maths import layers, models
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Each has all parts of those before it.
RUNGS = (
    "one head",
    "four heads",
    "+ feed-forward",
    "+ residuals",
    "+ layer norm",
    "+ positions",
    "+ second layer",
)


class Passing(layers.Layer):
    """A part that returns what it is given."""

    def forward(self, x: Array) -> tuple[Array, None]:
        return x.copy(), None

    def backward(self, dy: Array, cache: None) -> Array:
        return dy


def build(rung: str, vocab: int, rng: np.random.Generator) -> models.GPT:
    """Make an untrained GPT of width 64 with the parts of this rung and of those below it."""
    at = RUNGS.index(rung)
    config: Any = models.GPTConfig(
        vocab=vocab,
        d_model=64,
        num_heads=4 if at >= 1 else 1,
        num_layers=2 if at >= 6 else 1,
        norm="pre" if at >= 4 else "none",
        positions="sinusoidal" if at >= 5 else "none",
        max_length=64,
    )
    model = models.GPT(config, rng)
    for block in model.stack.blocks:
        block.attention.skip = block.feed_forward.skip = at >= 3
        if at < 2:
            block.feed_forward.inner = Passing()
    return model


@plots.still(9.2, 4.4)
def ladder_plot(figure: "Figure", bits: Mapping[str, Sequence[float]], marks: Mapping[str, float]) -> str:
    """Draw the loss of each rung, a dot for each start, with the step from the rung before; marks are other models.

    Args:
        bits: rung -> bits a character, of each start.
        marks: name -> bits a character, drawn as dotted lines.
    """
    names, means = list(bits), np.array([np.mean(values) for values in bits.values()])
    steps = np.diff(means)
    largest = int(steps.argmin())
    ax = figure.add_subplot(xlabel="bits a character, on text it was not trained on")
    for name, value in marks.items():
        ax.axvline(value, color=plots.GREY, lw=1, ls=":")
        ax.text(value, -0.75, f"{name}: {value:.2f}", color=plots.GREY, ha="center", va="bottom", size=10.5)
    for row, (name, values) in enumerate(bits.items()):
        if row:
            ax.plot([means[row - 1], means[row]], [row, row], color=plots.GREY, lw=1.4, zorder=1)
            ax.plot([means[row - 1]] * 2, [row - 1, row], color=plots.GREY, lw=1.4, zorder=1)
        colour = plots.ORANGE if row == largest + 1 else plots.BLUE
        ax.plot(values, [row] * len(values), "o", color=colour, ms=8, zorder=3)
        change = f"  ({steps[row - 1]:+.2f})".replace("-", "−") if row else ""
        ax.text(max(*values, means[max(row - 1, 0)]) + 0.05, row, f"{means[row]:.2f}{change}", va="center")
    ax.set(ylim=(len(names) - 0.5, -0.8), yticks=range(len(names)), yticklabels=names)
    ax.set_xlim(min(*means, *marks.values()) - 0.15, max(*means, *marks.values()) + 0.75)
    ax.tick_params(axis="y", length=0)
    finding = f"{names[largest + 1].lstrip('+ ').capitalize()} bring most: {-steps[largest]:.2f} bits"
    ax.set_title(finding)
    listed = "; ".join(
        f"{name} {', '.join(f'{value:.2f}' for value in values)}" for name, values in bits.items()
    )
    lines = "; ".join(f"{name} {value:.2f}" for name, value in marks.items())
    return f"{finding}. Bits a character of each rung, from {len(next(iter(bits.values())))} starts: {listed}. Lines: {lines}."
