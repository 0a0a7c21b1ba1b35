"""Heads taken away, one by one: what is lost, on the dates that chose them and on others."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.training.experiment import Batch, KnockOut, dates_of, exact
from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array

CHOOSE, JUDGE = 200, 300  # dates that heads are chosen by, and judged by

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Head(NamedTuple):
    """A head by its place: "encoder", "decoder" (self-attention) or "cross"; its layer; its number."""

    place: str
    layer: int
    number: int


def heads_of(model: models.Transformer) -> list[Head]:
    c = model.config
    places = ("encoder", "decoder", "cross")
    return [Head(place, n, h) for place in places for n in range(c.num_layers) for h in range(c.num_heads)]


def without(heads: Sequence[Head]) -> KnockOut:
    """Return the heads as `models.trying` takes them."""
    found: dict[str, dict[int, list[int]]] = {}
    for place, layer, number in heads:
        found.setdefault(place, {}).setdefault(layer, []).append(number)
    return found


def loss_without(model: models.Transformer, batch: Batch, heads: Sequence[Head]) -> float:
    source, target = batch
    with models.trying(model, without(heads)):
        logits, _ = model.forward(source, target[:, :-1])
    return ops.cross_entropy(logits, target[:, 1:])


def by_importance(model: models.Transformer, batch: Batch) -> list[Head]:
    """List all heads, the least important first: the one whose removal raises the loss of this batch least."""
    return sorted(heads_of(model), key=lambda head: loss_without(model, batch, [head]))


def wrong(model: models.Transformer, heads: Sequence[Head]) -> float:
    """Return the share of held-out dates that come out wrong without these heads."""
    return round(1 - exact(model, dates_of(n=JUDGE), without(heads)), 3)


def sums(model: models.Transformer, most: int = 4) -> dict[str, Any]:
    """Take the least important heads away, each alone and all together, and count what the formats agree on.

    Returns:
        alone, together: shares of held-out dates that come out wrong.
        same: of the heads that all formats choose, how many each format alone chooses, too.
    """

    def chosen(styles: tuple[int, ...]) -> list[Head]:
        return by_importance(model, dates_of(held_out=False, n=CHOOSE, styles=styles))[:most]

    heads = chosen((0, 1, 2, 3))
    same = [len(set(heads) & set(chosen((style,)))) for style in range(4)]
    return {"alone": [wrong(model, [head]) for head in heads], "together": wrong(model, heads), "same": same}


@plots.still(9.4, 3.4)
def heads_map(figure: "Figure", model: models.Transformer) -> str:
    """Draw what is lost without each head, on held-out dates: the share that comes out wrong."""
    lost = np.array([1 - exact(model, dates_of(n=JUDGE), without([head])) for head in heads_of(model)])
    table: Array = lost.reshape(3, -1)  # (place, head); with one layer
    rows = ("encoder, self", "decoder, self", "cross")
    columns = [f"head {n}" for n in range(table.shape[1])]
    free = int((lost < 0.05).sum())
    title = f"{free} of {len(lost)} heads can go one at a time; without others nearly all is lost"
    if lost.max() < 0.8:
        title = f"{free} of {len(lost)} heads can go one at a time"
    plots.draw_heatmap(
        figure.add_subplot(), table, rows, columns, title, "", "share of held-out dates wrong without it"
    )
    listed = "; ".join(f"{row}: {', '.join(f'{x:.2f}' for x in of)}" for row, of in zip(rows, table, strict=True))
    return f"{title}. Share of held-out dates wrong without one head: {listed}."


@plots.still(9.4, 3.4)
def sums_plot(figure: "Figure", found: Sequence[Mapping[str, Any]]) -> str:
    """Draw what four heads cost one at a time, stacked, beside what they cost together; a pair of bars a model."""
    ax = figure.add_subplot()
    alt = []
    for n, of in enumerate(found):
        bottom = 0.0
        for k, cost in enumerate(of["alone"]):
            label = "one head at a time, stacked" if n == k == 0 else None
            ax.bar(n - 0.2, cost, 0.36, bottom, color=plots.BLUE, edgecolor="white", lw=1.5, label=label)
            bottom += cost
        ax.bar(n + 0.2, of["together"], 0.36, color=plots.ORANGE, label="all four at once" if n == 0 else None)
        alt.append(f"start {n}: {' + '.join(f'{x:.2f}' for x in of['alone'])}, together {of['together']:.2f}")
    ax.set_xticks(range(len(found)), [f"start {n}" for n in range(len(found))])
    ax.set(ylabel="share of dates wrong", ylim=(0, 1.15 * max(of["together"] for of in found)))
    ax.legend(loc="upper left", fontsize=10, ncols=2)
    ratios = [of["together"] / max(sum(of["alone"]), 1e-9) for of in found]
    title = f"Together the four cost {min(ratios):.1f} to {max(ratios):.1f} times what they cost one at a time"
    ax.set_title(title)
    return f"{title}. Share of held-out dates wrong without heads: {'; '.join(alt)}."
