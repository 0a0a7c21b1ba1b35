"""A GPT built part by part: what each part brings, and how that depends on the order."""

import textwrap
from collections.abc import Collection, Mapping, Sequence
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

# What is added to one attention head, one after the other.
ORDERS = {
    "positions late": ("four heads", "feed-forward", "residuals", "layer norm", "positions", "second layer"),
    "positions first": ("positions", "four heads", "feed-forward", "residuals", "layer norm", "second layer"),
}
Losses = Mapping[str, float]  # bits a character after each addition, "one head" first


class Passing(layers.Layer):
    """A part that returns what it is given."""

    def forward(self, x: Array) -> tuple[Array, None]:
        return x.copy(), None

    def backward(self, dy: Array, cache: None) -> Array:
        return dy


def build(parts: Collection[str], vocab: int, rng: np.random.Generator) -> models.GPT:
    """Make an untrained GPT of width 64 from one attention head and these parts."""
    config: Any = models.GPTConfig(
        vocab=vocab,
        d_model=64,
        num_heads=4 if "four heads" in parts else 1,
        num_layers=2 if "second layer" in parts else 1,
        norm="pre" if "layer norm" in parts else "none",
        positions="sinusoidal" if "positions" in parts else "none",
        max_length=64,
    )
    model = models.GPT(config, rng)
    for block in model.stack.blocks:
        block.attention.skip = block.feed_forward.skip = "residuals" in parts
        if "feed-forward" not in parts:
            block.feed_forward.inner = Passing()  # type: ignore[assignment]
    return model


def trained_gpt(config: models.GPTConfig, train: "Ids", steps: int) -> models.GPT:
    """Train a GPT on text as the notebook does, with the same first parameters and the same batches."""
    model = models.GPT(config, np.random.default_rng(0))
    _fit(model, train, steps, 0)
    return model


def climb(
    train: "Ids", held_out: tuple["Ids", "Ids"], vocab: int, seed: int, steps: int
) -> dict[str, dict[str, float]]:
    """Train a model after each addition, in both orders, and return the losses on held-out windows in bits."""
    found: dict[frozenset[str], float] = {}  # models with the same parts are the same

    def loss(*parts: str) -> float:
        if frozenset(parts) not in found:
            model = build(parts, vocab, np.random.default_rng(seed))
            _fit(model, train, steps, seed)
            found[frozenset(parts)] = bits(model.loss(held_out))
        return found[frozenset(parts)]

    return {
        order: {"one head": loss()} | {part: loss(*parts[: n + 1]) for n, part in enumerate(parts)}
        for order, parts in ORDERS.items()
    }


def _fit(model: models.GPT, train: "Ids", steps: int, seed: int) -> None:
    schedule = partial(training.warmup_linear, peak=6e-3, warmup=min(100, steps // 4), total=steps + 1)
    batches = partial(tasks.text_batches, train, 64, 32)
    training.fit(model, batches, steps, schedule=schedule, seed=seed, progress=False)


@plots.still(9.4, 4.6)
def ladder_plot(figure: "Figure", starts: Sequence[Mapping[str, Losses]], marks: Mapping[str, float]) -> str:
    """Draw the loss after each addition, a ladder for each order, a dot for each start; marks are other models.

    Args:
        starts: for each start the order -> the part that was added -> bits a character.
        marks: name -> bits a character, drawn as dotted lines.
    """
    orders = list(starts[0])
    losses = {order: np.array([list(start[order].values()) for start in starts]) for order in orders}
    every = np.concatenate([found.ravel() for found in losses.values()] + [np.array(list(marks.values()))])
    axes = figure.subplots(1, len(orders), squeeze=False)[0]
    behind = {"fc": "white", "ec": "none", "pad": 0.6}  # so that no dotted line runs through a text
    figure.supxlabel("bits a character, on text the model was not trained on", size=11)
    largest, told = [], []
    for ax, order in zip(axes, orders, strict=True):
        names = list(starts[0][order])
        means = losses[order].mean(axis=0)
        gains = -np.diff(means)
        largest.append((names[int(gains.argmax()) + 1], float(gains.max())))
        for value in marks.values():
            ax.axvline(value, color=plots.GREY, lw=1, ls=":", zorder=0)
        for row, values in enumerate(losses[order].T):
            if row:
                ax.plot([means[row - 1], means[row]], [row, row], color=plots.GREY, lw=1.4, zorder=1)
                ax.plot([means[row - 1]] * 2, [row - 1, row], color=plots.GREY, lw=1.4, zorder=1)
            colour = plots.ORANGE if row and names[row] == largest[-1][0] else plots.BLUE
            ax.plot(values, [row] * len(values), "o", color=colour, ms=7, zorder=3)
            change = f" ({-gains[row - 1]:+.2f})".replace("-", "−") if row else ""
            end = max(*values, means[max(row - 1, 0)]) + 0.07
            ax.text(end, row, f"{means[row]:.2f}{change}", va="center", size=10.5, bbox=behind, zorder=2)
        for name, value in marks.items():
            label = textwrap.fill(f"{name}: {value:.2f}", 11)
            ax.text(value, -0.6, label, color=plots.GREY, ha="center", va="bottom", size=10, bbox=behind)
        ax.set(ylim=(len(names) - 0.5, -2.3), yticks=range(len(names)))
        ax.set_yticklabels([names[0], *(f"+ {name}" for name in names[1:])])
        ax.set_xlim(every.min() - 0.45, every.max() + 0.85)
        ax.tick_params(axis="y", length=0)
        ax.set_title(order, weight="normal")
        listed = "; ".join(
            f"{name} {', '.join(f'{value:.2f}' for value in values)}"
            for name, values in zip(names, losses[order].T, strict=True)
        )
        told.append(f"{order}: {listed}")
    parts = {name for name, _ in largest}
    gained = " and ".join(f"{gain:.2f}" for _, gain in largest)
    finding = (
        f"In {'either' if len(orders) > 1 else 'this'} order {largest[0][0]} bring most: {gained} bits"
        if len(parts) == 1
        else "Which part brings most depends on the order: " + ", ".join(f"{name} {gain:.2f}" for name, gain in largest)
    )
    figure.suptitle(finding, x=0.01, ha="left", weight="bold", size=13)
    lines = "; ".join(f"{name} {value:.2f}" for name, value in marks.items())
    return (
        f"{finding}. Bits a character after each addition, a number for each start. {'. '.join(told)}. Lines: {lines}."
    )
