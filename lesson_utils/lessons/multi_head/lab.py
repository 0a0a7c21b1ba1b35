"""What notebook 03 calls `lab.name`, in its order: live figures here, the rest from `experiment` and `drawings`."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import tint
from lesson_utils.classroom.formats import each, short, signed
from lesson_utils.lessons.multi_head.drawings import (
    TOKENS,
    WIDTH,
    accuracy_plot,
    circuits,
    digits,
    head_jobs,
    heads_drawn,
    one_head_blurs,
    removals,
    tasks_plot,
)
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
    scramble,
    self_attention,
    share_on_task,
    short_way,
    survey,
    untrained,
    widths,
)
from lesson_utils.maths import costs, models, ops
from lesson_utils.maths.checks import Array

# --- 2 · Split and merge ----------------------------------------------------------------------------------------------

Whole = NDArray[np.integer[Any]]
COLOURS = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE)  # one for each token
GAP = 0.7
FOLLOWED = 25  # the entry that wears a ring


def named_entries(tokens: int = TOKENS, width: int = WIDTH) -> Whole:
    """Make an array (tokens, width) of whole numbers whose entries name themselves: 25 is token 2, column 5."""
    return 10 * np.arange(tokens)[:, None] + np.arange(width)


def _places(array: Whole) -> Array:
    """Place the entries of an array of two or three axes, blocks of rows side by side: (..., 2)."""
    blocks, rows, columns = array.reshape(-1, *array.shape[-2:]).shape
    x = np.arange(blocks)[:, None, None] * (columns + GAP) + np.arange(columns)  # (blocks, 1, columns)
    y = np.broadcast_to(np.arange(rows)[:, None], (blocks, rows, columns))
    return np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(*array.shape, 2)


class _Cells:
    """Squares with a number each, coloured by token, which can move; one wears a ring."""

    def __init__(self, ax: "plots.Axes", array: Whole, strength: float = 1.0) -> None:
        from matplotlib.patches import Rectangle

        self.squares, self.numbers = {}, {}
        for entry in array.ravel().tolist():
            colour = tint(COLOURS[entry // 10], strength)
            self.squares[entry] = Rectangle((0, 0), 0.94, 0.94, color=colour, lw=0)
            ax.add_patch(self.squares[entry])
            ink = "white" if strength == 1 else plots.GREY
            self.numbers[entry] = ax.text(0, 0, f"{entry:02}", ha="center", va="center", color=ink)
        self.labels = [ax.text(0, 0, "", va="bottom") for _ in range(TOKENS)]
        self.ring = Rectangle((0, 0), 1.02, 1.02, fill=False, ec=plots.INK, lw=3, zorder=5)
        ax.add_patch(self.ring)
        self.show(array, [])

    def show(self, array: Whole, names: Sequence[str], left: float = 0.0, top: float = 0.0) -> None:
        """Move every square to its place in `array`; `names` stand over the blocks."""
        places = _places(array).reshape(-1, 2) + np.array((left, top))
        for entry, (x, y) in zip(array.ravel().tolist(), places, strict=True):
            self.squares[entry].set_xy((x, y))
            self.numbers[entry].set_position((x + 0.47, y + 0.49))
        for n, label in enumerate(self.labels):
            label.set_text(names[n] if n < len(names) else "")
            label.set_position((left + n * (array.shape[-1] + GAP), top - 0.15))
        x, y = self.squares[FOLLOWED].get_xy()
        self.ring.set_xy((x - 0.04, y - 0.04))


def _frame(ax: "plots.Axes", width: float, rows: float) -> None:
    ax.set(xlim=(-0.1, width), ylim=(rows + 0.1, -0.9), aspect="equal", anchor="NW", xticks=(), yticks=())
    ax.spines[:].set_visible(False)


@live.lab(
    height=4.4,
    telling={"step": 2},
    heads=live.Choice("heads", (2, 3), 2),
    step=live.Slider("step", 1, 4, 1),
)
def split_lab(figure: "plots.Figure") -> live.Update:
    """Split and merge, one operation at a time, before and after, on entries that name themselves."""
    from matplotlib.patches import FancyArrowPatch

    code, ax = figure.subplots(1, 2, width_ratios=(1, 1.45))
    code.set(xlim=(0, 1), ylim=(5.2, -1.4), xticks=(), yticks=())
    code.spines[:].set_visible(False)
    places = (0, 0.5, 0.79)
    font: dict[str, Any] = {"va": "center", "size": 11}
    for place, name in zip(places, ("step", "shape", f"{FOLLOWED} is at"), strict=True):
        code.text(place, -0.85, name, color=plots.GREY, **font)
    code.plot([0, 1], [-0.48, -0.48], color=plots.GREY, lw=0.8)
    columns = [[code.text(place, step, "", **font) for step in range(5)] for place in places]
    x = named_entries()
    room = TOKENS * 3 + (TOKENS - 1) * GAP  # the width of the widest arrays
    _frame(ax, room + 0.1, 9.7)
    before, after = _Cells(ax, x, 0.25), _Cells(ax, x)
    middle = room / 2
    look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 18, "color": plots.INK, "lw": 2}
    ax.add_patch(FancyArrowPatch((middle, 4.15), (middle, 5.05), **look))
    operation = ax.text(middle + 0.3, 4.55, "", va="center", weight="bold")

    def update(heads: int, step: int) -> str:
        d_k = WIDTH // heads
        cut = x.reshape(TOKENS, heads, d_k)  # (T, h, d_k)
        split = cut.swapaxes(0, 1)  # (h, T, d_k)
        tokens = [f"token {t}" for t in range(TOKENS)]
        names = [f"head {i}" for i in range(heads)]
        stages: Any = (
            (x, ["x"], "x", ""),
            (cut, tokens, f".reshape({TOKENS}, {heads}, {d_k})", f"reshape cuts each token into {heads} pieces"),
            (split, names, ".swapaxes(0, 1)", "swapaxes gives each head a piece of every token"),
            (cut, tokens, ".swapaxes(0, 1)", "swapaxes puts the pieces of each token together"),
            (x, ["x"], f".reshape({TOKENS}, {WIDTH})", f"reshape joins the pieces of {heads} heads to x"),
        )
        at = [np.argwhere(stage[0] == FOLLOWED)[0].tolist() for stage in stages]
        for n, row in enumerate(zip(*columns, strict=True)):
            known = stages[n][0].shape, at[n]  # later steps don't show what they lead to
            label = f"{n}  {stages[n][2]}"
            for text, words in zip(row, (label, *(known if n <= step else ("", ""))), strict=True):
                text.set_text(str(words))
                text.set_color(plots.INK if n <= step else "#8A8A8A")
                text.set_weight("bold" if n == step else "normal")
        for cells, (array, over, *_), bottom in zip((before, after), stages[step - 1 : step + 1], (4, 0), strict=True):
            width = _places(array)[..., 0].max() + 1
            top = 5.65 if bottom == 0 else bottom - array.shape[-2]  # the first stands on the arrow, the second below
            cells.show(array, over, float(room - width) / 2, top)
        operation.set_text(stages[step][2])
        code.set_title(f"Step {step}: {stages[step][3]}")
        now = stages[step][0]
        return (
            f"… With {heads} heads the shape is {now.shape}. Entry {FOLLOWED} moves from {at[step - 1]} to {at[step]}. "
            f"All entries now: {now.tolist()}."
        )

    return update


@plots.still(9.0, 2.9)
def scrambled(figure: "plots.Figure", right: Whole, wrong: Whole) -> str:
    """Draw two ways to split heads side by side, (h, T, d_k) each, of `named_entries`."""
    rows = np.arange(right.shape[1])[:, None]
    told = []
    titles = "With the swap", "Without it"
    for ax, title, heads in zip(figure.subplots(1, 2), titles, (right, wrong), strict=True):
        _frame(ax, heads.shape[0] * (heads.shape[-1] + GAP), heads.shape[1])
        names = [f"head {i}" for i in range(len(heads))]
        _Cells(ax, heads).show(heads, names)
        off = int((heads // 10 != rows).any(axis=-1).sum())
        ax.set_title(f"{title}: {off} of {heads.shape[0] * heads.shape[1]} rows misplaced")
        held = "; ".join(f"{n} holds tokens {(h[:, 0] // 10).tolist()}" for n, h in zip(names, heads, strict=True))
        told.append(f"{title}, {held}")
    return f"… {'. '.join(told)}."


# --- 4 · How many heads? ----------------------------------------------------------------------------------------------


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
    telling=({"d_k": 8}, {"d_v": 8}),
    controls=lambda surveys: {
        "d_k": live.Choice("width of keys", tuple(sorted({d_k for d_k, _ in surveys})), min(surveys)[0]),
        "d_v": live.Choice("width of values", tuple(sorted({d_v for _, d_v in surveys})), min(surveys)[1]),
    },
    example=_example_of_widths,
)
def width_lab(figure: "plots.Figure", surveys: Mapping[tuple[int, int], Survey]) -> live.Update:
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
    for label, side in zip(left.get_xticklabels(), ("center", "left", "center", "right"), strict=True):
        label.set_ha(side)  # +10 and +12 stand close together
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
            f"… Shares of right answers are from {starts} starts. In the first start {sharp} of {heads} heads put at "
            "least half of their weight on one offset."
        )

    return update


WANTED = 0.9  # the weight of the right key


def spread_keys(d_k: int, keys: int = LENGTH) -> Array:
    """Spread unit vectors, (keys, d_k), by pushing them apart, the near ones hardest.

    In two dimensions they end on a circle at equal distances; in four, as the corners of the 24-cell. In both nothing
    better is known, and bounds leave room for 0 and 2 %.
    """
    x = np.random.default_rng(0).normal(size=(keys, d_k))
    for _ in range(400):
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        push = np.exp(10 * (x @ x.T - 1)) * (1 - np.eye(keys))
        x -= 0.3 * push @ x / push.sum(axis=1, keepdims=True)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def weights_of_the_right(keys: Array, score: float) -> Array:
    """Return the weight, (keys,), of the key that a query points at and scores so high with."""
    return np.diagonal(ops.softmax(score * keys @ keys.T))


def score_needed(d_k: int, weight: float = WANTED) -> float:
    """Return how large q · k / √d_k must be so that softmax gives the right one of 24 keys that weight.

    All keys are equally long, and the query points at the right one.
    """
    keys = spread_keys(d_k)
    low, high = 0.0, 1000.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if weights_of_the_right(keys, middle).min() < weight else (low, middle)
    return high


@live.lab(
    height=4.4,
    neutral="At the lowest score all keys get nearly the same weight, and the curves have not begun.",
    telling={"score": 10.0},
    score=live.LogSlider("score", 1, 100, 1, steps_per_decade=20),
)
def circle_lab(figure: "plots.Figure") -> live.Update:
    """24 keys on a circle, a query that points at one: which weights they get, as the score grows."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    angles = 2 * np.pi * np.arange(LENGTH) / LENGTH
    x, y = np.sin(angles), np.cos(angles)  # from the top
    left.set(xlim=(-1.3, 1.3), ylim=(-1.2, 1.4), aspect="equal", xticks=(), yticks=())
    left.spines[:].set_visible(False)
    left.plot(x, y, "o", ms=6, mfc="white", mec=plots.KEY, mew=1.2)
    look = {"arrowstyle": "-|>", "color": plots.QUERY, "lw": 2.8, "mutation_scale": 18}
    left.annotate("", (0, 0.72), (0, 0), arrowprops=look)
    left.text(0.07, 0.25, "query q", color=plots.QUERY, weight="bold")
    left.text(
        0, -0.4, f"{LENGTH} keys k,\n{360 // LENGTH}° apart", color=plots.KEY, weight="bold", ha="center", va="center"
    )
    dots = left.scatter(x, y, s=np.full(LENGTH, 1.0), color=plots.KEY, lw=0, zorder=3)

    scores = np.logspace(0, 2, 81)
    curves = {}
    for d_k, style, place in ((2, "-", (24, 0.43)), (4, "--", (8.7, 0.74)), (8, ":", (2.2, 0.68))):
        keys = spread_keys(d_k)
        curve = np.array([weights_of_the_right(keys, score).min() for score in scores])
        (line,) = right.plot([], [], style, color=plots.KEY if d_k == 2 else plots.GREY)
        curves[d_k] = curve, line, right.text(*place, f"$d_k$ = {d_k}", size=13)
    right.axhline(WANTED, color=plots.GREY, lw=1)
    needed = {d_k: score_needed(d_k, WANTED) for d_k in (8, 4, 2)}
    right.set_xscale("log")
    right.minorticks_off()
    right.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    right.set(xlim=(1, 100), ylim=(0, 1.05), xlabel="score, q · k / √$d_k$", ylabel="weight of the right key")
    (mark,) = right.plot([10], [0.5], "o", color=plots.QUERY, ms=12, clip_on=False)

    def update(score: float) -> str:
        weights = ops.softmax(score * np.cos(angles))
        dots.set_sizes(2600 * weights)
        mark.set_data([score], [weights[0]])
        until = int(np.searchsorted(scores, 1.001 * score))  # the curves end at this score
        for curve, line, label in curves.values():
            line.set_data(scores[:until], curve[:until])
            label.set_visible(label.get_position()[0] <= score)
        left.set_title(f"Score {short(score)}: the right key gets {weights[0]:.2f},\neach neighbour {weights[1]:.2f}")
        reached = ", ".join(f"{short(least)} in {d_k}" for d_k, least in needed.items() if least <= score)
        other = f"A weight of {WANTED} takes a score of\n{reached} dimensions"
        right.set_title(other if reached else f"Up to this score,\nno right key gets {WANTED}")
        return f"… {LENGTH} keys on a circle, {360 // LENGTH}° apart."

    return update


# --- 5 · What each head does ------------------------------------------------------------------------------------------


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
    telling=({"heads": 4}, {"heads": 16}),
    controls=lambda trained, results: {
        "heads": live.Choice("heads", tuple(trained), next(iter(trained))),
        "training": live.Switch("trained", True),
        "mean": live.Switch("mean of 100 sequences", True),
    },
    prepare=_before_and_after,
    example=lambda: ({h: untrained(h) for h in (1, 4, 8)}, self_attention),
)
def heads_lab(
    figure: "plots.Figure", trained: Mapping[int, models.Encoder], results: Mapping[bool, Mapping[int, Result]]
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
        told = f"… {over}. {', '.join(lines)}. Where most of the weight goes: {'; '.join(names)}."
        return told.replace("\n", " ")

    return update


@live.lab(
    height=3.3,
    neutral="It shows one query of one head; how the head goes on from there takes a move.",
    telling=({"query": 5}, {"query": 6}),
    controls=lambda model: {
        "head": live.Slider("head", 0, model.config.num_heads - 1, 0),
        "query": live.Slider("query", 0, LENGTH - 1, 5),
    },
    example=lambda: untrained(4),
)
def one_head_lab(figure: "plots.Figure", model: models.Encoder) -> live.Update:
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
        ax.set_title(f"{row[best]:.2f} of head {head}'s weight is on {place}")
        listed = each((f"'{text[p]}' at {p}:" for p in places), row[places])
        return f"… Weights on the four wanted places: {listed}."

    return update
