"""A GPT built part by part: what each part brings, on one axis."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.causal_mask.watched import bits
from lesson_utils.maths import layers, models, tasks, training
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

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
            block.feed_forward.inner = Passing()  # type: ignore[assignment]
    return model


def trained_gpt(config: models.GPTConfig, train: "Ids", steps: int) -> models.GPT:
    """Train a GPT on text as the notebook does, with the same first parameters and the same batches."""
    model = models.GPT(config, np.random.default_rng(0))
    _fit(model, train, steps, 0)
    return model


def climb(train: "Ids", held_out: tuple["Ids", "Ids"], vocab: int, seed: int, steps: int) -> dict[str, float]:
    """Train a model for each rung, and return its loss on held-out windows, in bits a character."""
    found = {}
    for rung in RUNGS:
        model = build(rung, vocab, np.random.default_rng(seed))
        _fit(model, train, steps, seed)
        found[rung] = bits(model.loss(held_out))
    return found


def _fit(model: models.GPT, train: "Ids", steps: int, seed: int) -> None:
    schedule = partial(training.warmup_linear, peak=6e-3, warmup=100, total=steps + 1)
    batches = partial(tasks.text_batches, train, 64, 32)
    training.fit(model, batches, steps, schedule=schedule, seed=seed, progress=False)


@plots.still(9.2, 4.4)
def ladder_plot(figure: "Figure", losses: Mapping[str, Sequence[float]], marks: Mapping[str, float]) -> str:
    """Draw the loss of each rung, a dot for each start, with the step from the rung before; marks are other models.

    Args:
        losses: rung -> bits a character, of each start.
        marks: name -> bits a character, drawn as dotted lines.
    """
    names, means = list(losses), np.array([np.mean(values) for values in losses.values()])
    steps = np.diff(means)
    largest = int(steps.argmin())
    ax = figure.add_subplot(xlabel="bits a character, on text it was not trained on")
    for name, value in marks.items():
        ax.axvline(value, color=plots.GREY, lw=1, ls=":")
        ax.text(value, -0.9, f" {name}: {value:.2f}", color=plots.GREY, ha="left", va="center", size=10.5)
    for row, values in enumerate(losses.values()):
        if row:
            ax.plot([means[row - 1], means[row]], [row, row], color=plots.GREY, lw=1.4, zorder=1)
            ax.plot([means[row - 1]] * 2, [row - 1, row], color=plots.GREY, lw=1.4, zorder=1)
        colour = plots.ORANGE if row == largest + 1 else plots.BLUE
        ax.plot(values, [row] * len(values), "o", color=colour, ms=8, zorder=3)
        change = f"  ({steps[row - 1]:+.2f})".replace("-", "−") if row else ""
        ax.text(max(*values, means[max(row - 1, 0)]) + 0.05, row, f"{means[row]:.2f}{change}", va="center")
    ax.set(ylim=(len(names) - 0.5, -1.3), yticks=range(len(names)), yticklabels=names)
    ax.set_xlim(min(*means, *marks.values()) - 0.15, max(*means, *marks.values()) + 0.5)
    ax.tick_params(axis="y", length=0)
    finding = f"{names[largest + 1].lstrip('+ ').capitalize()} bring most: {-steps[largest]:.2f} bits"
    ax.set_title(finding)
    listed = "; ".join(f"{name} {', '.join(f'{value:.2f}' for value in values)}" for name, values in losses.items())
    lines = "; ".join(f"{name} {value:.2f}" for name, value in marks.items())
    return f"{finding}. Bits a character of each rung, a number for each start: {listed}. Lines: {lines}."
