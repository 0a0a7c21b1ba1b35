"""The pictures of notebook 03's core that are made from trained models."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import plots
from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.experiment import (
    LENGTH,
    OFFSETS,
    SYMBOLS,
    MultiHeadAttention,
    Survey,
    examine,
    main_offset,
)
from lesson_utils.maths import models
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EVERY_FOURTH = range(0, LENGTH, 4)


@plots.still(9.4, 4.2)
def one_head_blurs(figure: "Figure", model: models.Encoder, source: ArrayLike, query: int = 5) -> str:
    """Draw the map of a single head on one sequence, and one row of it: the average that comes back.

    Args:
        source: the sequence, (1, T).
        query: the row.
    """
    source = np.asarray(source)
    text = SYMBOLS.decode(source[0])
    weights = model.maps(model.forward(source)[1])["encoder"][0][0, 0]  # (T, T)
    row, places = weights[query], [(query + o) % LENGTH for o in OFFSETS]
    share = float(row[places].sum())
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    colours = plots.colour_map(*plots.WEIGHTS_MAP)
    image = left.imshow(weights, cmap=colours, vmin=0, vmax=0.5)
    figure.colorbar(image, ax=left, label="weight", shrink=0.8, ticks=(0, 0.25, 0.5), extend="max")
    left.axhspan(query - 0.5, query + 0.5, fill=False, ec=plots.INK, lw=1.8)
    left.set_xticks(EVERY_FOURTH, map(str, EVERY_FOURTH))
    ticks = [query, *(t for t in EVERY_FOURTH if abs(t - query) > 1)]
    left.set_yticks(ticks, map(str, ticks))
    left.set(xlabel="key", ylabel="query", title="One head, one map:\nfour pale diagonals")
    right.bar(range(LENGTH), row, color=[plots.BLUE if t in places else plots.GREY for t in range(LENGTH)])
    for offset, t in zip(OFFSETS, places, strict=True):
        right.text(t, row[t] + 0.012, f"{text[t]}\n{signed(offset)}", ha="center", weight="bold")
    right.axvline(query, color=plots.INK, lw=1.2, ls=":")
    right.set_xticks(range(LENGTH), [f"{c}\n{t}" if t % 4 == 0 else c for t, c in enumerate(text)])
    title = f"Query {query} gets one average:\n" + " + ".join(f"{row[t]:.2f} {text[t]}" for t in places)
    right.set(ylim=(0, 0.6), ylabel=f"weight of query {query}", xlabel="key: symbol and position", title=title)
    listed = ", ".join(f"{text[t]} at {signed(o)}: {row[t]:.2f}" for o, t in zip(OFFSETS, places, strict=True))
    finding = title.replace("\n", " ")
    return f"{finding}. Weights: {listed}; together {share:.2f}. Heat map of all weights, query by key: four diagonals."


@plots.still(9.4, 3.9)
def accuracy_plot(figure: "Figure", surveys: Mapping[int, Survey], losses: Mapping[int, Sequence[float]]) -> str:
    """Draw the share of right answers by number of heads, a dot for each start; and the loss of one training each."""
    heads = list(surveys)
    accuracy = {h: np.sort(survey.accuracy) for h, survey in surveys.items()}
    medians = {h: float(np.median(shares)) for h, shares in accuracy.items()}
    best = [h for h in heads if medians[h] > max(medians.values()) - 0.03]
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    for place, h in enumerate(heads):
        _swarm(left, place, accuracy[h])
        left.plot([place - 0.36, place + 0.36], [medians[h]] * 2, color=plots.INK, lw=2)
        left.text(place, 1.06, f"{medians[h]:.2f}", ha="center", weight="bold")
    left.axhline(0.05, color=plots.ORANGE, ls="--", lw=1.8)
    left.text(len(heads) - 0.45, 0.06, "guessing", color=plots.ORANGE, ha="right", va="bottom")
    left.set_xticks(range(len(heads)), [f"{h}" for h in heads])
    left.set(xlim=(-0.5, len(heads) - 0.5), ylim=(0, 1.16), yticks=(0, 0.25, 0.5, 0.75, 1))
    left.set(xlabel="heads (above: the median of the starts)", ylabel="share of right answers")
    reached = " and ".join(f"{medians[h]:.2f}" for h in best)
    left.set_title(f"{' and '.join(map(str, best))} heads do best: {reached}")
    styles = dict(zip(heads, itertools.cycle(((0, ()), (0, (5, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))), strict=False))
    colours = (plots.INK, plots.GREEN, plots.BLUE, plots.PURPLE, plots.ORANGE)
    ends = {}
    for (h, loss), colour in zip(losses.items(), itertools.cycle(colours), strict=False):
        window = min(10, len(loss))
        smooth = np.convolve(loss, np.full(window, 1 / window), "valid")
        ends[h] = float(smooth[-1])
        right.plot(np.arange(len(smooth)) + window, smooth, ls=styles[h], color=colour, label=f"{h}", lw=1.8)
    right.set(ylim=(0, None), xlabel="training step", ylabel="loss (nats)")
    right.set_title(f"One start each ends at {min(ends.values()):.2f} to {max(ends.values()):.2f}")
    right.legend(title="heads", loc="lower left", ncols=2)
    listed = (f"{h}: median {medians[h]:.2f}, from {a[0]:.2f} to {a[-1]:.2f}" for h, a in accuracy.items())
    starts = len(accuracy[best[0]])
    alt = f"{left.get_title(loc='left')}. Share of right answers by number of heads, {starts} starts each: "
    alt += f"{'; '.join(listed)}. Loss of one start, mean of the last ten steps, in nats: "
    return alt + ", ".join(f"{h} heads: {end:.2f}" for h, end in ends.items()) + "."


def _swarm(ax: "Axes", place: float, values: Array, near: float = 0.03, step: float = 0.11) -> None:
    """Draw values as dots over a place; those that would cover each other stand side by side."""
    values = np.sort(values)
    groups = np.split(values, np.flatnonzero(np.diff(values) > near) + 1)
    x = np.concatenate([place + step * (np.arange(len(group)) - (len(group) - 1) / 2) for group in groups])
    x = place + (x - place) * min(1.0, 0.42 / max(float(np.abs(x - place).max()), 0.01))
    ax.plot(x, values, "o", color=plots.BLUE, ms=6.5, mec="white", mew=0.7, alpha=0.9)


@plots.still(9.4, 4.5)
def head_jobs(figure: "Figure", model: models.Encoder, multi_head: MultiHeadAttention) -> str:
    """Draw where each head of a model looks, and below it the share of right answers without this head.

    Args:
        multi_head: computes the heads, as the exercise has it.
    """
    result = examine(model, 100, multi_head)
    count = len(result.maps)
    without = np.stack([examine(model, 100, multi_head, knock_out=[head]).right for head in range(count)])  # (h, 4)
    offsets = [signed(o) for o in OFFSETS]
    axes = figure.subplots(2, count, height_ratios=(1.45, 1))
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    told = []
    for head, (above, below) in enumerate(axes.T):
        image = above.imshow(result.maps[head], cmap=cmap, vmin=0, vmax=0.5)
        place = main_offset(result.profile[head])
        above.set(xticks=EVERY_FOURTH[::2], yticks=EVERY_FOURTH[::2], xlabel="key")
        above.set_title(f"Head {head}: {place or 'no single offset'}")
        lost = without[head] < 0.5
        below.bar(range(len(offsets)), without[head], color=[plots.ORANGE if x else plots.GREY for x in lost])
        for n, share in enumerate(without[head]):
            below.text(n, share + 0.03, f"{share:.2f}", ha="center", size=9.5)
        below.set_xticks(range(len(offsets)), offsets)
        below.set(ylim=(0, 1.2), yticks=(0, 0.5, 1), xlabel="offset")
        names = ", ".join(f"{o} {share:.2f}" for o, share in zip(offsets, without[head], strict=True))
        where = f"looks at {place}" if place else "looks at no single offset"
        told.append(f"Head {head} {where}; right answers without it, by offset: {names}")
        below.set_title(f"Without it, {_and([o for o, x in zip(offsets, lost, strict=True) if x])}", size=9.5)
    axes[0, 0].set_ylabel("query")
    axes[1, 0].set_ylabel("right answers")
    figure.colorbar(image, ax=axes[0], label="weight", ticks=(0, 0.25, 0.5), extend="max", shrink=0.8)
    return f"{count} heads, mean map of 100 sequences each. {'. '.join(told)}."


def _and(lost: Sequence[str]) -> str:
    return (
        f"{' and '.join(lost)} is lost" if len(lost) == 1 else f"{' and '.join(lost)} are lost" if lost else "none is"
    )


def one_each(without: Array, low: float = 0.5, high: float = 0.8) -> bool:
    """Tell whether each head has an offset of its own, from the right answers without each head, (h, 4).

    Without a head, less than `low` are right at one offset, and at least `high` at the others; no two heads share one.
    """
    own = without.argmin(axis=1)
    others = np.sort(without, axis=1)[:, 1:]
    return bool((without.min(axis=1) < low).all() and (others >= high).all() and len(set(own)) == len(without))


@plots.still(9.4, 2.8)
def removals(figure: "Figure", found: Survey) -> str:
    """Draw what is lost without each head, in models from several starts: a tile for each start and kind of removal."""
    import matplotlib

    count = len(found.zeros)
    cmap = matplotlib.colors.LinearSegmentedColormap.from_list("lost", ["white", plots.ORANGE], 13)
    axes = figure.subplots(2, count)
    offsets = [signed(o) for o in OFFSETS]
    alone = {}
    for row, (name, all_starts) in zip(axes, (("zeros", found.zeros), ("its mean", found.means)), strict=True):
        alone[name] = [one_each(without) for without in all_starts]
        for start, (ax, without) in enumerate(zip(row, all_starts, strict=True)):
            order = np.argsort(without.argmin(axis=1), kind="stable")  # the heads by what they are needed for
            image = ax.imshow(1 - without[order], cmap=cmap, vmin=0, vmax=1)
            ax.set(xticks=(), yticks=())
            ax.spines[:].set_visible(True)
            if alone[name][start]:
                ax.spines[:].set(color=plots.INK, linewidth=2.2)
            if name == "zeros":
                ax.set_title(f"{start}", loc="center", size=11.5)
            else:
                ax.set_xlabel(f"{found.accuracy[start]:.2f}")
        row[0].set_ylabel(f"{name}\n← head")
    figure.colorbar(image, ax=axes, label="wrong answers", ticks=(0, 0.5, 1), shrink=0.9)
    n = sum(alone["zeros"])
    title = f"In {n} of {count} starts, each head has an offset of its own (dark frame)"
    figure.suptitle(title, x=0.01, ha="left", weight="bold", size=12.5)
    figure.supxlabel(f"offset {', '.join(offsets)} →    (below: right answers with all heads)", size=11)
    framed = ", ".join(str(start) for start, x in enumerate(alone["zeros"]) if x)
    return (
        f"{title}: starts {framed}. With the head's mean in place of zeros: {sum(alone['its mean'])} of {count}. "
        f"Share of wrong answers by removed head and offset, a tile for each start. Right answers with all heads: "
        f"{', '.join(f'{share:.2f}' for share in found.accuracy)}."
    )
