"""Heads taken away, one by one: what is lost, on the dates that chose them and on others."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.training.experiment import Batch, KnockOut, dates_of, exact
from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array

CHOOSE, JUDGE = 200, 300  # dates that heads are chosen by, and judged by
LOOKS: Any = ({"color": plots.GREY, "ls": "--"}, {"color": plots.BLUE}, {"color": plots.ORANGE})

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


def prune(model: models.Transformer, order: Sequence[Head], batch: Batch, most: int = 6) -> list[float]:
    """Return the share of dates right without the first 0, 1, … `most` heads of an order."""
    return [exact(model, batch, without(order[:n])) for n in range(most + 1)]


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


@plots.still(9.4, 3.8)
def prune_plot(
    figure: "Figure", model: models.Transformer, orders: Mapping[tuple[int, ...], Sequence[Head]], most: int = 6
) -> str:
    """Accuracy by number of heads removed: chosen on all formats, and on one.

    Args:
        orders: two orders to remove heads in, by the styles of the dates that chose; each judged on those styles and,
            where there are any, on the others.
    """
    axes, alt = figure.subplots(1, 2, sharey=True), []
    for ax, (styles, order) in zip(axes, orders.items(), strict=True):
        others = tuple({0, 1, 2, 3} - set(styles))
        judged = {"training dates, as those that chose": dates_of(held_out=False, n=CHOOSE, styles=styles)}
        judged["held-out dates, the same formats"] = dates_of(n=JUDGE, styles=styles)
        if others:
            judged["held-out dates, other formats"] = dates_of(n=JUDGE, styles=others)
        shares = {label: prune(model, order, batch, most) for label, batch in judged.items()}
        for (label, share), look in zip(shares.items(), LOOKS, strict=False):
            ax.plot(range(most + 1), share, marker="o", ms=5, label=label, **look)
        ax.set(xlabel="heads removed, least important first", ylim=(0, 1.05), xticks=range(most + 1))
        first, *_, last = shares.values()
        gap = max(a - b for a, b in zip(first, last, strict=True))
        name = "one format" if others else "all formats"
        elsewhere = "others" if others else "held-out dates"
        title = f"Chosen on {name}:\n{elsewhere} get up to {gap:.2f} fewer right"
        ax.set_title(title)
        listed = "; ".join(f"{label}: {', '.join(f'{x:.2f}' for x in of)}" for label, of in shares.items())
        alt.append(f"{title}. Right by number of heads removed, {listed}.".replace("\n", " "))
    axes[0].set_ylabel("share of dates right")
    axes[1].legend(loc="lower left", fontsize=10)
    return " ".join(alt)
