"""Notebook 03: why eight small looks instead of one big one."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesson_utils import attention, live, models, ops, plots, tasks
from lesson_utils._checks import Array
from lesson_utils.costs import attention_cost
from lesson_utils.lessons import as_written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- The task -------------------------------------------------------------------------------------------------------

T, K, NUM_SYMBOLS = 24, 4, 20  # length, places to fetch from, symbols
OFFSETS = tuple((o + T // 2 - 1) % T - T // 2 + 1 for o in tasks.scattered_offsets(T, K))  # the short way round
SYMBOLS = tasks.letters(NUM_SYMBOLS)


def signed(offset: int) -> str:
    """+10 or −1, with a real minus sign."""
    return f"{offset:+d}".replace("-", "−")


def held_out(n: int = 500) -> tuple[Any, Any]:
    """Sequences to test on, the same each time: source (n, T) and target (n, T, 4)."""
    return tasks.gather(np.random.default_rng(99), n, T, K, NUM_SYMBOLS)


class Result(NamedTuple):
    """How a trained model does on sequences that it was not trained on."""

    right: Array  # share of right answers, by offset, (4,)
    among: float  # share of answers that are at least one of the four wanted symbols
    maps: Array  # attention weights, mean over the sequences, (h, T, T)
    profile: Array  # of each head: its mean weight by offset −11 … 12, (h, T)
    sharpness: float  # mean of the largest weight of a row
    diversity: float | None  # see `diversity`; None for a single head

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())


def examine(model: models.Encoder, n: int = 500) -> Result:
    """Run a model of one layer on `held_out` sequences."""
    source, target = held_out(n)
    logits, cache = model.forward(source)  # (n, T, 4, V)
    weights = model.maps(cache)["encoder"][0]  # (n, h, T, T)
    answers = logits.argmax(axis=-1)  # (n, T, 4)
    maps = weights.mean(axis=0)  # (h, T, T)
    return Result(
        right=(answers == target).mean(axis=(0, 1)),
        among=float((answers[..., None] == target[:, :, None, :]).any(axis=-1).mean()),
        maps=maps,
        profile=by_offset(maps),
        sharpness=float(weights.max(axis=-1).mean()),
        diversity=diversity(weights[:64]) if weights.shape[1] > 1 else None,
    )


def by_offset(weights: Array) -> Array:
    """What weights (..., T, T) put on each offset from the query, around the circle: mean over the queries, (..., T).

    Entry o is for the offset o, negative ones from the end, as in Python's own indexing.
    """
    size = weights.shape[-1]
    rows = np.arange(size)
    return np.stack([weights[..., rows, (rows + o) % size].mean(axis=-1) for o in range(size)], axis=-1)


def guessing(draws: int = 20_000) -> float:
    """How often one is right who knows the four symbols, but not which of them stands where.

    The best guess for every place is the symbol that is there most often.
    """
    bags = np.sort(np.random.default_rng(0).integers(NUM_SYMBOLS, size=(draws, K)), axis=1)  # (draws, 4)
    most = (bags[:, :, None] == bags[:, None, :]).sum(axis=-1).max(axis=-1)  # (draws,)
    return float(most.mean() / K)


def blurred_map(result: Result) -> plots.Picture:
    """The map of a single head, and how much of its weight lies on the four wanted places."""
    shares = result.profile[0, list(OFFSETS)]  # (4,)
    title = f"One head: {shares.sum():.0%} of its weight on the 4 places"
    figure = plots.figure(5.6, 4.6)
    with plots.style():
        ax = figure.add_subplot()
        plots.heatmap(result.maps[0], title=title, numbers=False, ax=ax)
        every_fourth = range(0, T, 4)
        ax.set_xticks(every_fourth, map(str, every_fourth))
        ax.set_yticks(every_fourth, map(str, every_fourth))
    listed = ", ".join(f"{signed(o)}: {share:.2f}" for o, share in zip(OFFSETS, shares, strict=True))
    seen = ": four pale diagonals" if shares.min() > 0.1 and shares.sum() > 0.8 else ""
    return plots.picture(figure, f"{title}. Heat map, query by key{seen}. Mean weight by offset: {listed}.")


# --- Split and merge ------------------------------------------------------------------------------------------------

TOKENS, WIDTH = 4, 6
COLOURS = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE)  # one for each token
GAP = 0.7
Whole = NDArray[np.integer[Any]]


def named_entries(tokens: int = TOKENS, width: int = WIDTH) -> Whole:
    """An array (tokens, width) of whole numbers whose entries name themselves: 25 is token 2, column 5."""
    return 10 * np.arange(tokens)[:, None] + np.arange(width)


def _places(array: Whole) -> Array:
    """Where to draw the entries of an array of two or three axes, blocks of rows side by side: (..., 2)."""
    blocks, rows, columns = array.reshape(-1, *array.shape[-2:]).shape
    x = np.arange(blocks)[:, None, None] * (columns + GAP) + np.arange(columns)  # (blocks, 1, columns)
    y = np.broadcast_to(np.arange(rows)[:, None], (blocks, rows, columns))
    return np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(*array.shape, 2)


class _Cells:
    """Squares with a number each, coloured by token, which can move."""

    def __init__(self, ax: "Axes", array: Whole) -> None:
        from matplotlib.patches import Rectangle

        self.squares, self.numbers = {}, {}
        for entry in array.ravel().tolist():
            self.squares[entry] = Rectangle((0, 0), 0.94, 0.94, color=COLOURS[entry // 10], lw=0)
            ax.add_patch(self.squares[entry])
            self.numbers[entry] = ax.text(0, 0, f"{entry:02}", ha="center", va="center", color="white")
        self.labels = [ax.text(0, 0, "", va="bottom") for _ in range(TOKENS)]
        self.show(array, [])

    def show(self, array: Whole, names: Sequence[str]) -> None:
        """Move every square to its place in `array`; `names` stand over the blocks."""
        for entry, (x, y) in zip(array.ravel().tolist(), _places(array).reshape(-1, 2), strict=True):
            self.squares[entry].set_xy((x, y))
            self.numbers[entry].set_position((x + 0.47, y + 0.49))
        for n, label in enumerate(self.labels):
            label.set_text(names[n] if n < len(names) else "")
            label.set_position((n * (array.shape[-1] + GAP), -0.15))


def _frame(ax: "Axes", width: float, rows: int) -> None:
    ax.set(xlim=(-0.1, width), ylim=(rows, -0.9), aspect="equal", anchor="NW", xticks=(), yticks=())
    ax.spines[:].set_visible(False)


@live.lab(
    width=7.6,
    height=3.0,
    heads=live.Choice("heads", (2, 3), 2),
    step=live.Slider("step", 0, 4, 0),
)
def split_lab(figure: "Figure") -> live.Update:
    """Split and merge, one operation at a time, on entries that name themselves."""
    ax = figure.add_subplot()
    x = named_entries()
    _frame(ax, TOKENS * 3 + (TOKENS - 1) * GAP + 0.1, TOKENS)
    cells = _Cells(ax, x)

    def update(heads: int, step: int) -> str:
        d_k = WIDTH // heads
        cut = x.reshape(TOKENS, heads, d_k)  # (T, h, d_k)
        split = cut.swapaxes(0, 1)  # (h, T, d_k)
        tokens = [f"token {t}" for t in range(TOKENS)]
        names = [f"head {i}" for i in range(heads)]
        now, over, title = (
            (x, ["x"], f"x, to be split into {heads} heads"),
            (cut, tokens, f"reshape: each token is cut into {heads} pieces"),
            (split, names, "swap: each head gets a piece of every token"),
            (split.swapaxes(0, 1), tokens, "swap back: the pieces of each token together"),
            (split.swapaxes(0, 1).reshape(x.shape), ["x"], f"reshape: {heads} heads merged to x again"),
        )[step]
        cells.show(now, over)
        ax.set_title(f"{step} · {title}, shape {now.shape}")
        return f"Step {step} of 4, {heads} heads. {title}, shape {now.shape}. Its entries: {now.tolist()}."

    return update


def scrambled(right: Whole, wrong: Whole) -> plots.Picture:
    """Two ways to split heads, (h, T, d_k) each, of `named_entries`, side by side."""
    rows = np.arange(right.shape[1])[:, None]
    figure = plots.figure(9.0, 2.9)
    alt = ""
    with plots.style():
        titles = "with the swap", "without it"
        for ax, title, heads in zip(figure.subplots(1, 2), titles, (right, wrong), strict=True):
            _frame(ax, heads.shape[0] * (heads.shape[-1] + GAP), heads.shape[1])
            names = [f"head {i}" for i in range(len(heads))]
            _Cells(ax, heads).show(heads, names)
            off = int((heads // 10 != rows).any(axis=-1).sum())
            finding = f"{title}: {off} of {heads.shape[0] * heads.shape[1]} rows misplaced"
            ax.set_title(finding.capitalize())
            held = "; ".join(f"{n} holds tokens {(h[:, 0] // 10).tolist()}" for n, h in zip(names, heads, strict=True))
            alt += f"{finding.capitalize()}: {held}. "
    return plots.picture(figure, alt.strip())


# --- Diversity and sharpness ----------------------------------------------------------------------------------------


def diversity(weights: Array) -> float:
    """How differently heads look: the share of weight that one puts elsewhere than another, mean over all pairs.

    ½ Σ_j |a_ij − b_ij| (total variation) is 0 for two equal rows of weights, 1 for rows that share no key.

    Args:
        weights: (..., h, T_q, T_k), at least two heads.

    Raises:
        ValueError: there is only one head.
    """
    heads = np.moveaxis(weights, -3, 0)  # (h, ..., T_q, T_k)
    if len(heads) < 2:
        raise ValueError("one head has nothing to differ from; give weights of two heads or more")
    pairs = itertools.combinations(heads, 2)
    return float(np.mean([np.abs(a - b).sum(axis=-1).mean() / 2 for a, b in pairs]))


def score_needed(d_k: int, weight: float = 0.9, keys: int = T) -> float:
    """How large q · k / √d_k must be so that softmax gives one of many keys that weight, in keys of width d_k.

    All keys and queries have one length, so it is a question of angles. In two dimensions nothing beats keys spread
    evenly over a circle. In more, d_k / 2 circles are used, which turn at different speeds; the best choice of up to
    four speeds is taken.
    """
    angles = 2 * np.pi * np.arange(keys) / keys
    best = math.inf
    for speeds in itertools.combinations(range(1, keys // 2 + 1), d_k // 2):
        similarity = np.cos(np.outer(speeds, angles)).mean(axis=0)  # of the right key, 1, and of each other, (keys,)
        low, high = 0.0, 1000.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if ops.softmax(middle * similarity)[0] < weight else (low, middle)
        best = min(best, high)
    return best


def without_head(model: models.Encoder, head: int) -> models.Encoder:
    """A copy of a model of one layer in which one head's output is not used."""
    copy = models.Encoder(model.config, np.random.default_rng(0))
    for name, param in copy.params().items():
        param.value[...] = model.params()[name].value
    d_k = model.config.d_model // model.config.num_heads
    copy.stack.blocks[0].attention.inner.W_O.value[head * d_k : (head + 1) * d_k] = 0  # its rows of W_O
    return copy


def removal_plot(right: Array) -> plots.Picture:
    """Accuracy by offset (columns) with each head removed (rows), (h, 4)."""
    hits = (right < 0.5).sum(axis=1)
    one_each = (hits == 1).all() and len(set(right.argmin(axis=1))) == len(right)
    title = "Without a head, one offset is lost, and no other" if one_each else "What is lost without each head"
    rows, columns = [f"without head {i}" for i in range(len(right))], [signed(o) for o in OFFSETS]
    figure = plots.figure(6.4, 3.3)
    with plots.style():
        plots.heatmap(right, rows, columns, title, "", "offset, and share of right answers", ax=figure.add_subplot())
    listed = (
        f"{name}: {dict(zip(columns, row.round(2).tolist(), strict=True))}"
        for name, row in zip(rows, right, strict=True)
    )
    return plots.picture(figure, f"{title}. Share of right answers by offset, {'; '.join(listed)}.")


# --- The experiment -------------------------------------------------------------------------------------------------


def accuracy_plot(results: dict[int, Result], losses: dict[int, Sequence[float]]) -> plots.Picture:
    """Accuracy by number of heads, and the losses of the trainings."""
    heads = list(results)
    accuracy = [results[h].accuracy for h in heads]
    best = heads[int(np.argmax(accuracy))]
    figure = plots.figure(9.0, 3.7)
    with plots.style():
        left, right = figure.subplots(1, 2)
        places = range(len(heads))
        left.bar(places, accuracy, color=plots.BLUE)
        for place, value in zip(places, accuracy, strict=True):
            left.text(place, value + 0.02, f"{value:.2f}", ha="center")
        known = "right symbols, in no order"
        left.axhline(guessing(), color=plots.ORANGE, ls="--", lw=1.8, label=f"{known}: {guessing():.2f}")
        left.legend(loc="upper left")
        left.set_xticks(places, [str(h) for h in heads])
        left.set(ylim=(0, 1.32), xlabel="heads", ylabel="share of right answers", yticks=(0, 0.25, 0.5, 0.75, 1))
        *others, last = [str(h) for h in heads if results[h].accuracy < max(accuracy) - 0.2] or [""]
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
    listed = ", ".join(f"{h}: {value:.2f}" for h, value in zip(heads, accuracy, strict=True))
    ends = ", ".join(f"{h}: {np.mean(loss[-10:]):.2f}" for h, loss in losses.items())
    alt = f"Share of right answers by number of heads: {listed}. Loss at the end of training, in nats: {ends}."
    return plots.picture(figure, alt)


def _tiles(count: int) -> list[tuple[float, float, float]]:
    """Left, top and size of that many square tiles in a square of 1 by 1, with room for a label over each."""
    columns = math.ceil(math.sqrt(count))
    cell = 1 / columns
    return [((i % columns) * cell, (i // columns) * cell + 0.045, 0.95 * (cell - 0.045)) for i in range(count)]


def main_offset(profile: Array, least: float = 0.5) -> str:
    """The offset that gets most of a head's weight, if one does."""
    best = int(profile.argmax())
    return signed((best + T // 2 - 1) % T - T // 2 + 1) if profile[best] >= least else ""


def _before_and_after(
    trained: dict[int, models.Encoder], seed: int = 0
) -> tuple[dict[int, models.Encoder], dict[bool, dict[int, Result]]]:
    """Models by number of heads, and how they do, trained (True) and as they began, from generators of that seed.

    Raises:
        ValueError: there is no model with two heads or more.
    """
    counts = tuple(sorted(trained))
    if not counts or counts[-1] < 2:
        raise ValueError(f"trained holds models with {counts} heads; run the cell that trains the others first")
    trained = {h: trained[h] for h in counts}
    beginners = {h: models.Encoder(m.config, np.random.default_rng(seed)) for h, m in trained.items()}
    return trained, {True: _examined(trained), False: _examined(beginners)}


def _examined(by_heads: dict[int, models.Encoder]) -> dict[int, Result]:
    return {h: examine(model, 100) for h, model in by_heads.items()}


def _untrained(num_heads: int) -> models.Encoder:
    sizes: Any = {"d_model": 32, "num_layers": 1, "d_ff": 16, "positions": "learned", "max_length": T}
    config = models.EncoderConfig(vocab=len(SYMBOLS), classes=len(SYMBOLS), num_heads=num_heads, outputs=K, **sizes)
    return models.Encoder(config, np.random.default_rng(num_heads))


@live.lab(
    height=4.9,
    controls=lambda trained, results: {
        "heads": live.Choice("heads", tuple(trained), tuple(trained)[len(trained) // 2]),
        "training": live.Switch("trained", True),
    },
    prepare=_before_and_after,
    example=lambda: {h: _untrained(h) for h in (1, 4, 8)},
)
def heads_lab(
    figure: "Figure", trained: dict[int, models.Encoder], results: dict[bool, dict[int, Result]]
) -> live.Update:
    """All heads' maps of models with different numbers of heads, trained or as they began, diversity and cost."""
    counts = tuple(trained)
    axes = figure.subplot_mosaic([["maps", "chart"], ["maps", "note"]], width_ratios=(1.5, 1), height_ratios=(4, 1))
    maps, chart, note_ax = axes["maps"], axes["chart"], axes["note"]
    maps.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", anchor="NW", xticks=(), yticks=())
    maps.set(xlabel="key →", ylabel="← query")
    maps.spines[:].set_visible(False)
    blank = np.zeros((T, T))
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    images, labels = [], []
    for _ in range(counts[-1]):
        images.append(maps.imshow(blank, cmap=cmap, vmin=0, vmax=1, extent=(0, 1, 1, 0)))
        labels.append(maps.text(0, 0, "", va="bottom", size=9.5))
    maps.set(xlim=(0, 1), ylim=(1, 0), autoscale_on=False)
    several = [h for h in counts if h > 1]
    for is_trained, style, colour in ((True, "o-", plots.BLUE), (False, "s--", plots.ORANGE)):
        values = [results[is_trained][h].diversity or 0.0 for h in several]
        chart.plot(several, values, style, color=colour, label="trained" if is_trained else "untrained")
    (marker,) = chart.plot([several[0]], [0.5], "o", color=plots.INK, ms=13, mfc="none", mew=2)
    chart.set_xscale("log", base=2)
    chart.set_xticks(counts, [str(h) for h in counts])
    chart.set(ylim=(0, 1.05), xlabel="heads", ylabel="diversity (0 = all alike)")
    chart.legend(loc="lower left")
    note_ax.set(xticks=(), yticks=())
    note_ax.spines[:].set_visible(False)
    note = note_ax.text(0, 1, "", va="top", linespacing=1.5)

    def update(heads: int, training: bool) -> str:
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
            image.set_data(result.maps[i])
            place = main_offset(result.profile[i])
            names.append(f"head {i} {place or 'no single offset'}")
            label.set_position((left, top - 0.004))
            label.set_text(f"{i}: {place}" if place else f"{i}")
        state = "trained" if training else "untrained"
        maps.set_title(f"{heads} head{'s' * (heads > 1)}, {state}: {result.accuracy:.0%} right")
        differ = "one head: nothing to compare" if result.diversity is None else f"diversity {result.diversity:.2f}"
        marker.set_visible(result.diversity is not None)
        if result.diversity is not None:
            marker.set_data([heads], [result.diversity])
        chart.set_title(differ[0].upper() + differ[1:])
        cost = attention_cost(T, trained[heads].config.d_model, heads)
        costs = (
            f"d_k = {trained[heads].config.d_model // heads}, {cost.parameters:,} parameters,\n"
            f"{cost.multiply_adds:,} multiply-adds,\n{cost.memory:,} numbers in memory"
        )
        note.set_text(costs)
        return (
            f"{maps.get_title(loc='left')}, {differ}. {costs}. Where most of the weight goes: {'; '.join(names)}."
        ).replace("\n", " ")

    return update


@live.lab(
    height=3.3,
    controls=lambda model: {
        "head": live.Slider("head", 0, model.config.num_heads - 1, 0),
        "query": live.Slider("query", 0, T - 1, 5),
    },
    example=lambda: _untrained(4),
)
def one_head_lab(figure: "Figure", model: models.Encoder) -> live.Update:
    """One head of a model, one query, on one sequence: where it looks."""
    source, _ = held_out(1)
    _, cache = model.forward(source)
    weights = model.maps(cache)["encoder"][0][0]  # (h, T, T)
    text = SYMBOLS.decode(source[0])
    ax = figure.add_subplot(xlim=(-0.7, T - 0.3), ylim=(0, 1.12))
    ax.set(xlabel="key: its position and symbol", ylabel="weight", yticks=(0, 0.5, 1))
    ax.set_xticks(range(T), [f"{c}\n{i}" for i, c in enumerate(text)])
    bars = ax.bar(np.arange(T), np.zeros(T), color=plots.BLUE)
    (wanted,) = ax.plot([0] * K, [1.06] * K, "v", color=plots.ORANGE, ms=8, label="wanted")
    (asks,) = ax.plot([0], [1.06], "D", color=plots.INK, ms=7, label="query")
    figure.legend(handles=[asks, wanted], loc="outside lower right", ncols=2)

    def update(head: int, query: int) -> str:
        row = weights[head, query]  # (T,)
        for bar, weight in zip(bars, row, strict=True):
            bar.set_height(weight)
        places = [(query + o) % T for o in OFFSETS]
        wanted.set_xdata(places)
        asks.set_xdata([query])
        best = int(row.argmax())
        offset = (best - query + T // 2 - 1) % T - T // 2 + 1
        place = f"'{text[best]}' at {best}, {signed(offset)} from query {query}"
        found = f"{row[best]:.2f} of head {head}'s weight is on {place}"
        ax.set_title(found)
        listed = ", ".join(f"'{text[p]}' at {p} {row[p]:.2f}" for p in places)
        return f"{found}. Weights on the four wanted places: {listed}."

    return update


def single_heads(x: Array, W_Q: Array, W_K: Array, W_V: Array, num_heads: int) -> list[Array]:
    """Each head by itself, with its own columns of the three matrices: a list of (..., T, d_v)."""
    columns = zip(*(np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V)), strict=True)
    return [attention.scaled_dot_product_attention(x @ Q, x @ K, x @ V)[0] for Q, K, V in columns]
