"""The live figures of notebook 03 that are made from trained models: all heads' maps, one query, wider keys."""

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.experiment import (
    LENGTH,
    OFFSETS,
    PLACES,
    SYMBOLS,
    MultiHeadAttention,
    Result,
    Survey,
    examine,
    held_out,
    main_offset,
    self_attention,
    short_way,
    untrained,
)
from lesson_utils.maths import costs, models

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _tiles(count: int) -> list[tuple[float, float, float]]:
    """Left, top and size of that many square tiles in a square of 1 by 1, with room for a label over each."""
    columns = math.ceil(math.sqrt(count))
    cell = 1 / columns
    return [((i % columns) * cell, (i // columns) * cell + 0.045, 0.95 * (cell - 0.045)) for i in range(count)]


def _before_and_after(
    by_heads: Mapping[int, models.Encoder], multi_head: MultiHeadAttention, seed: int = 0
) -> tuple[Any, Any]:
    """Measure what `heads_lab` shows of `by_heads`, models by number of heads, and of the same models as they began.

    Raises:
        ValueError: there is nothing to compare.
    """
    counts = sorted(by_heads)
    if len(counts) < 2:
        raise ValueError(f"by_heads holds models with {tuple(counts)} heads; run the cell that trains the others first")
    beginners = {h: models.Encoder(by_heads[h].config, np.random.default_rng(seed)) for h in counts}
    stages = (True, by_heads), (False, beginners)
    results = {is_trained: {h: examine(stage[h], 100, multi_head) for h in counts} for is_trained, stage in stages}
    return {h: by_heads[h] for h in counts}, results


@live.lab(
    height=4.4,
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
    """Show all heads' maps of models with different numbers of heads, trained or as they began, and what they cost."""
    maps, note_ax = figure.subplots(1, 2, width_ratios=(1.6, 1))
    maps.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", anchor="NW", xticks=(), yticks=())
    maps.set(xlabel="key →", ylabel="← query")
    maps.spines[:].set_visible(False)
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    images, labels = [], []
    for _ in range(max(trained)):
        images.append(maps.imshow(np.zeros((LENGTH, LENGTH)), cmap=cmap, vmin=0, vmax=0.5, extent=(0, 1, 1, 0)))
        labels.append(maps.text(0, 0, "", va="bottom", size=9.5))
    figure.colorbar(images[0], ax=maps, label="weight", shrink=0.7, ticks=(0, 0.25, 0.5), extend="max")
    maps.set(xlim=(0, 1), ylim=(1, 0), autoscale_on=False)
    note_ax.set_axis_off()
    note = note_ax.text(0, 0.95, "", va="top", linespacing=1.6)

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
        cost = costs.attention_cost(LENGTH, trained[heads].config.d_model, heads)
        width = trained[heads].config.d_model // heads
        lines = (
            f"{width} columns for each head",
            f"{result.sharpness:.2f}: the largest weight of a row,\non average",
            f"{cost.parameters:,} parameters",
            f"{cost.multiply_adds:,} multiply-adds",
            f"{cost.memory:,} numbers in memory",
        )
        note.set_text("\n".join(lines))
        over = "Mean of 100 sequences" if mean else "One sequence"
        alt = f"{maps.get_title(loc='left')}. {over}. {', '.join(lines)}. Where most of the weight goes: "
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


def _example_of_widths() -> dict[tuple[int, int], Survey]:
    rng = np.random.default_rng(0)
    found = {}
    for d_k, d_v in itertools.product((2, 8), repeat=2):
        profile = rng.dirichlet(np.full(LENGTH, 1 / d_k), size=(3, 16))  # (starts, h, T)
        right = np.clip(rng.normal(d_k / 10, 0.05, size=(3, PLACES)), 0, 1)
        found[d_k, d_v] = Survey(right, profile, profile.max(axis=-1).mean(axis=-1), np.zeros(0), np.zeros(0))
    return found


@live.lab(
    height=3.8,
    neutral="It opens with the narrow heads of the experiment, whose keys and values both have a width of 2.",
    controls=lambda surveys: {
        "d_k": live.Choice("width of keys", tuple(sorted({d_k for d_k, _ in surveys})), min(surveys)[0]),
        "d_v": live.Choice("width of values", tuple(sorted({d_v for _, d_v in surveys})), min(surveys)[1]),
    },
    example=_example_of_widths,
)
def width_lab(figure: "Figure", surveys: Mapping[tuple[int, int], Survey]) -> live.Update:
    """Show where narrow heads look, and what they get right, as their keys or their values are made wider.

    Args:
        surveys: models with h heads from several starts, by the widths of keys and of values.
    """
    keys, values = (sorted({pair[n] for pair in surveys}) for n in (0, 1))
    starts, heads, _ = surveys[min(surveys)].profile.shape
    shown = np.arange(1 - LENGTH // 2, LENGTH // 2 + 1)  # offsets from −11 to +12
    places = [o + LENGTH // 2 - 1 for o in OFFSETS]  # their columns in the map
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    empty = np.zeros((heads, LENGTH))
    image = left.imshow(empty, cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=1, aspect="auto")
    left.set_xticks(places, [signed(o) for o in OFFSETS])
    left.set(xlabel="offset of the key from the query", ylabel="head", yticks=())
    figure.colorbar(image, ax=left, label="mean weight", ticks=(0, 0.5, 1), shrink=0.8)
    right.set(xlim=(-0.5, len(keys) - 0.5), ylim=(0, 1.08), yticks=(0, 0.25, 0.5, 0.75, 1))
    right.set_xticks(range(len(keys)), [str(d_k) for d_k in keys])
    right.set(xlabel="width of keys, $d_k$", ylabel="share of right answers")
    looks = ((plots.BLUE, "o", -0.1), (plots.GREEN, "^", 0.1))
    dots = {}
    for d_v, (colour, marker, shift) in zip(values, looks, strict=False):
        label = f"values of width {d_v}"
        (line,) = right.plot([], [], marker, color=colour, ms=9, mec="white", label=label)
        dots[d_v] = line, shift
    right.legend(loc="lower right")

    def update(d_k: int, d_v: int) -> str:
        found = surveys[d_k, d_v]
        rows = found.profile[0][:, shown]  # of the first start, (h, T)
        order = np.argsort(rows[:, places].argmax(axis=1) + LENGTH * (rows.max(axis=1) < 0.5), kind="stable")
        image.set_data(rows[order])
        for width, (line, shift) in dots.items():
            known = [k for k in keys if k <= d_k and width <= d_v]  # wider ones don't show yet
            points = [(keys.index(k) + shift, share) for k in known for share in surveys[k, width].accuracy]
            line.set_data(*zip(*points, strict=True) if points else ([], []))
        shares = ", ".join(f"{share:.2f}" for share in found.accuracy)
        left.set_title(f"{heads} heads: the largest weight\nof a row is {found.sharpness[0]:.2f} on average")
        right.set_title(f"Keys {d_k} wide, values {d_v} wide:\n{shares} right")
        sharp = int((found.profile[0].max(axis=-1) >= 0.5).sum())
        return (
            f"Keys of width {d_k}, values of width {d_v}: shares of right answers from {starts} starts: {shares}. "
            f"In the first start {sharp} of {heads} heads put at least half of their weight on one offset; the largest "
            f"weight of a row is {found.sharpness[0]:.2f} on average."
        )

    return update
