"""The pictures of notebook 03 that are made from trained models."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import tint
from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.experiment import (
    LENGTH,
    OFFSETS,
    PLACES,
    SYMBOLS,
    MultiHeadAttention,
    Result,
    examine,
    held_out,
    main_offset,
    self_attention,
    short_way,
    untrained,
)
from lesson_utils.maths import costs, models
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
def digits(figure: "Figure", runs: Mapping[str, Result]) -> str:
    """Draw the weights of a single head by offset, largest first, beside 8 : 4 : 2 : 1, and what it gets right there.

    Args:
        runs: results of models with one head, by the name of the setting.
    """
    binary = 2.0 ** np.arange(PLACES)[::-1] / (2**PLACES - 1)  # (8, 4, 2, 1) / 15
    alt = []
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(runs)
    styles = zip(runs.items(), ((tint(plots.BLUE, 0.46), "//"), (plots.BLUE, "")), strict=False)
    for n, ((name, result), (colour, hatch)) in enumerate(styles):
        weights = result.profile[0, list(OFFSETS)]  # (4,)
        order = np.argsort(-weights)
        x = np.arange(PLACES) + (n - (len(runs) - 1) / 2) * width
        look: dict[str, Any] = {"width": 0.94 * width, "color": colour, "hatch": hatch, "edgecolor": "white"}
        left.bar(x, weights[order], **look)
        right.bar(x, result.right[order], **look, label=name)
        for place, value in zip(x, result.right[order], strict=True):
            right.text(place, value + 0.02, f"{value:.2f}", ha="center", size=10)
        pairs = zip(weights[order], result.right[order], strict=True)
        alt.append(f"{name}: " + ", ".join(f"weight {w:.2f}, {r:.2f} right" for w, r in pairs))
    for n, share in enumerate(binary):
        left.plot([n - 0.45, n + 0.45], [share, share], color=plots.ORANGE, lw=2.6)
        digit = f"{2 ** (PLACES - 1 - n)}/15"
        behind = {"fc": "white", "ec": "none", "pad": 1.0, "alpha": 0.8}
        left.text(n + 0.47, share + 0.03, digit, ha="right", color=plots.ORANGE, weight="bold", bbox=behind)
    ranks = [f"{n}." for n in range(1, PLACES + 1)]
    for ax in (left, right):
        ax.set_xticks(range(PLACES), ranks)
        ax.set_xlabel("place, by weight")
    off = float(np.abs(weights[order] - binary).max())  # of the last run
    title = "One head writes in binary digits: 8 : 4 : 2 : 1" if off < 0.05 else "The weights are not all equal"
    left.set(ylim=(0, 0.62), ylabel="weight", title=title)
    mean = float(result.accuracy)
    right.set(ylim=(0, 1.42), yticks=(0, 0.25, 0.5, 0.75, 1), ylabel="share of right answers")
    right.set_title(f"and {mean:.0%} of the answers are right")
    right.legend(loc="upper right")
    return f"{title}; {mean:.0%} right in the end. By place, largest weight first. {'; '.join(alt)}."


@plots.still(9.4, 3.9)
def accuracy_plot(
    figure: "Figure", results: Mapping[int, Sequence[Result]], losses: Mapping[int, Sequence[float]]
) -> str:
    """Accuracy by number of heads, a dot for each start and a bar for their mean; and the loss of one training each."""
    heads = list(results)
    accuracy = {h: [run.accuracy for run in runs] for h, runs in results.items()}
    means = [float(np.mean(accuracy[h])) for h in heads]
    best = heads[int(np.argmax(means))]
    left, right = figure.subplots(1, 2)
    places = range(len(heads))
    left.bar(places, means, color=tint(plots.BLUE, 0.3))
    for place, h, mean in zip(places, heads, means, strict=True):
        left.plot(np.full(len(accuracy[h]), place), accuracy[h], "o", color=plots.BLUE, ms=8, mec="white", mew=0.8)
        left.text(place, max(accuracy[h]) + 0.06, f"{mean:.2f}", ha="center")
    left.axhline(0.05, color=plots.ORANGE, ls="--", lw=1.8)
    left.text(len(heads) - 0.45, 0.06, "guessing", color=plots.ORANGE, ha="right", va="bottom")
    left.set_xticks(places, [f"{h}" for h in heads])
    left.set(ylim=(0, 1.2), xlabel="heads", ylabel="share of right answers", yticks=(0, 0.25, 0.5, 0.75, 1))
    *others, last = [str(h) for h, mean in zip(heads, means, strict=True) if mean < max(means) - 0.2] or [""]
    short = f"{', '.join(others)} and {last} fall" if others else f"{last} falls"
    left.set_title(f"Best with {best} head{'s' * (best > 1)}" + (f"; {short} short" if last else ""))
    styles = dict(zip(heads, itertools.cycle(((0, ()), (0, (5, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))), strict=False))
    colours = (plots.INK, plots.GREEN, plots.BLUE, plots.PURPLE, plots.ORANGE)
    for (h, loss), colour in zip(losses.items(), itertools.cycle(colours), strict=False):
        window = min(10, len(loss))
        smooth = np.convolve(loss, np.full(window, 1 / window), "valid")
        right.plot(np.arange(len(smooth)) + window, smooth, ls=styles[h], color=colour, label=f"{h}", lw=1.8)
    right.set(ylim=(0, None), xlabel="training step", ylabel="loss (nats)")
    right.set_title("The loss, by number of heads")
    right.legend(title="heads", loc="upper right", ncols=2)
    spread = (f"{h}: {', '.join(f'{value:.2f}' for value in accuracy[h])}" for h in heads)
    ends = ", ".join(f"{h}: {np.mean(loss[-10:]):.2f}" for h, loss in losses.items())
    title = left.get_title(loc="left")
    alt = f"{title}. Share of right answers by number of heads, each start: {'; '.join(spread)}. "
    return alt + f"Loss at the end of training, in nats: {ends}."


@plots.still(6.4, 3.3)
def removal_plot(figure: "Figure", right: Array) -> str:
    """Draw what is lost by offset (columns) with each head removed (rows), from the accuracy then, (h, 4)."""
    hits = (right < 0.5).sum(axis=1)
    one_each = (hits == 1).all() and len(set(right.argmin(axis=1))) == len(right)
    title = "Without a head, one offset is lost, and no other" if one_each else "What is lost without each head"
    rows, columns = [f"without head {i}" for i in range(len(right))], [signed(o) for o in OFFSETS]
    label = "offset, and share of answers that are wrong now"
    plots.draw_heatmap(figure.add_subplot(), 1 - right, rows, columns, title, "", label)
    listed = (
        f"{name}: {dict(zip(columns, row.round(2).tolist(), strict=True))}"
        for name, row in zip(rows, 1 - right, strict=True)
    )
    return f"{title}. Share of wrong answers by offset, {'; '.join(listed)}."


# --- Live ------------------------------------------------------------------------------------------------------------


def _tiles(count: int) -> list[tuple[float, float, float]]:
    """Left, top and size of that many square tiles in a square of 1 by 1, with room for a label over each."""
    columns = math.ceil(math.sqrt(count))
    cell = 1 / columns
    return [((i % columns) * cell, (i // columns) * cell + 0.045, 0.95 * (cell - 0.045)) for i in range(count)]


def _chart(chart: "Axes", counts: Sequence[int]) -> tuple[Any, dict[bool, Any]]:
    """Prepare the chart of diversity by number of heads; returns the marker and the two lines, to be moved."""
    lines = {}
    for is_trained, style, colour in ((True, "o-", plots.BLUE), (False, "s--", plots.ORANGE)):
        (lines[is_trained],) = chart.plot([], [], style, color=colour, label="trained" if is_trained else "untrained")
    (marker,) = chart.plot([1], [0.5], "o", color=plots.INK, ms=13, mfc="none", mew=2)
    chart.set_xscale("log", base=2)
    chart.set_xticks(counts, [str(h) for h in counts])
    chart.set(xlim=(0.9, 1.15 * counts[-1]), ylim=(0, 1.05), xlabel="heads", ylabel="diversity (0 = all alike)")
    chart.legend(loc="lower left")
    return marker, lines


def _before_and_after(
    by_heads: Mapping[int, models.Encoder], multi_head: MultiHeadAttention, seed: int = 0
) -> tuple[Any, Any]:
    """Measure what `heads_lab` shows of `by_heads`, models by number of heads, and of the same models as they began.

    Raises:
        ValueError: there is no model with two heads or more.
    """
    counts = sorted(by_heads)
    if not counts or counts[-1] < 2:
        raise ValueError(f"by_heads holds models with {tuple(counts)} heads; run the cell that trains the others first")
    beginners = {h: models.Encoder(by_heads[h].config, np.random.default_rng(seed)) for h in counts}
    stages = (True, by_heads), (False, beginners)
    results = {is_trained: {h: examine(stage[h], 100, multi_head) for h in counts} for is_trained, stage in stages}
    return {h: by_heads[h] for h in counts}, results


@live.lab(
    height=4.9,
    neutral="It opens with one head, which section 1 of the notebook has shown.",
    controls=lambda trained, results: {
        "heads": live.Choice("heads", tuple(trained), next(iter(trained))),
        "training": live.Switch("trained", True),
        "mean": live.Switch("mean of 100 sequences", True),
    },
    prepare=_before_and_after,
    example=lambda: ({h: untrained(h) for h in (1, 4, 8)}, self_attention),
)
def heads_lab(
    figure: "Figure", trained: Mapping[int, models.Encoder], results: Mapping[bool, Mapping[int, Result]]
) -> live.Update:
    """Show all heads' maps of models with different numbers of heads, trained or as they began; diversity and cost.

    The curves of the chart end at the number of heads that is shown.
    """
    counts = tuple(trained)
    axes = figure.subplot_mosaic([["maps", "chart"], ["maps", "note"]], width_ratios=(1.6, 1), height_ratios=(4, 1))
    maps, chart, note_ax = axes["maps"], axes["chart"], axes["note"]
    maps.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", anchor="NW", xticks=(), yticks=())
    maps.set(xlabel="key →", ylabel="← query")
    maps.spines[:].set_visible(False)
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    images, labels = [], []
    for _ in range(counts[-1]):
        images.append(maps.imshow(np.zeros((LENGTH, LENGTH)), cmap=cmap, vmin=0, vmax=0.5, extent=(0, 1, 1, 0)))
        labels.append(maps.text(0, 0, "", va="bottom", size=9.5))
    figure.colorbar(images[0], ax=maps, label="weight", shrink=0.7, ticks=(0, 0.25, 0.5), extend="max")
    maps.set(xlim=(0, 1), ylim=(1, 0), autoscale_on=False)
    marker, lines = _chart(chart, counts)
    note_ax.set(xticks=(), yticks=())
    note_ax.spines[:].set_visible(False)
    note = note_ax.text(0, 1, "", va="top", linespacing=1.5)

    def update(heads: int, training: bool, mean: bool) -> str:
        result = results[training][heads]
        tiles = _tiles(heads)
        names = []
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            shown = i < heads
            image.set_visible(shown)
            label.set_visible(shown)
            if not shown:
                continue
            left, top, size = tiles[i]
            image.set_extent((left, left + size, top + size, top))
            image.set_data((result.maps if mean else result.one)[i])
            place = main_offset(result.profile[i])
            names.append(f"head {i} {place or 'no single offset'}")
            label.set_position((left, top - 0.004))
            label.set_text(f"{i}: {place}" if place else f"{i}")
        state = "trained" if training else "untrained"
        maps.set_title(f"{heads} head{'s' * (heads > 1)}, {state}: {result.accuracy:.0%} right")
        differ = "one head only" if result.diversity is None else f"diversity {result.diversity:.2f}"
        several = [h for h in counts if 1 < h <= heads]
        for is_trained, line in lines.items():
            line.set_data(several, [results[is_trained][h].diversity for h in several])
        marker.set_visible(result.diversity is not None)
        if result.diversity is not None:
            marker.set_data([heads], [result.diversity])
        chart.set_title(differ[0].upper() + differ[1:])
        cost = costs.attention_cost(LENGTH, trained[heads].config.d_model, heads)
        price = (
            f"d_k = {trained[heads].config.d_model // heads}, {cost.parameters:,} parameters,\n"
            f"{cost.multiply_adds:,} multiply-adds,\n{cost.memory:,} numbers in memory"
        )
        note.set_text(price)
        over = "Mean of 100 sequences" if mean else "One sequence"
        alt = f"{maps.get_title(loc='left')}, {differ}. {over}. {price}. Where most of the weight goes: "
        return (alt + f"{'; '.join(names)}.").replace("\n", " ")

    return update


@live.lab(
    height=3.3,
    neutral="It shows one query of one head; how the head goes on from there takes a move.",
    controls=lambda model: {
        "head": live.Slider("head", 0, model.config.num_heads - 1, 0),
        "query": live.Slider("query", 0, LENGTH - 1, 5),
    },
    example=lambda: untrained(4),
)
def one_head_lab(figure: "Figure", model: models.Encoder) -> live.Update:
    """Show where one head of a model looks from one query, on one sequence."""
    source, _ = held_out(1)
    _, cache = model.forward(source)
    weights = model.maps(cache)["encoder"][0][0]  # (h, T, T)
    text = SYMBOLS.decode(source[0])
    ax = figure.add_subplot(xlim=(-0.7, LENGTH - 0.3), ylim=(0, 1.12))
    ax.set(xlabel="key: its symbol and position", ylabel="weight", yticks=(0, 0.5, 1))
    ax.set_xticks(range(LENGTH), [f"{c}\n{i}" for i, c in enumerate(text)])
    bars = ax.bar(np.arange(LENGTH), np.zeros(LENGTH), color=plots.BLUE)
    (wanted,) = ax.plot([0] * PLACES, [1.06] * PLACES, "v", color=plots.ORANGE, ms=8, label="wanted")
    (asks,) = ax.plot([0], [1.06], "D", color=plots.INK, ms=7, label="query")
    figure.legend(handles=[asks, wanted], loc="outside lower right", ncols=2)

    def update(head: int, query: int) -> str:
        row = weights[head, query]  # (T,)
        for bar, weight in zip(bars, row, strict=True):
            bar.set_height(weight)
        places = [(query + o) % LENGTH for o in OFFSETS]
        wanted.set_xdata(places)
        asks.set_xdata([query])
        best = int(row.argmax())
        place = f"'{text[best]}' at {best}, {signed(short_way(best - query))} from query {query}"
        found = f"{row[best]:.2f} of head {head}'s weight is on {place}"
        ax.set_title(found)
        listed = ", ".join(f"'{text[p]}' at {p} {row[p]:.2f}" for p in places)
        return f"{found}. Weights on the four wanted places: {listed}."

    return update
