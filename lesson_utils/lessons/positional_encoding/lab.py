"""What notebook 04 calls `lab.name`, in its order."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.maths import ops, positions
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, GPTConfig, trying
from lesson_utils.maths.models.experiments import changed
from lesson_utils.maths.tasks import FIRST_SYMBOL, PAD, Ids, Pair

# --- 1 · Does attention see the order? --------------------------------------------------------------------------------


@plots.still(9.2, 3.6)
def two_sentences(
    figure: "plots.Figure", words: Sequence[str], order: Sequence[int], before: Array, after: Array
) -> str:
    """Draw each word's output vector in two sentences, one strip of colour above the other.

    Args:
        words: of the first sentence.
        order: of the second, as places in the first.
        before, after: their outputs, (T, d) each, row by row of its sentence.
    """
    gaps = [float(np.abs(after[list(order).index(n)] - before[n]).max()) for n in range(len(words))]
    changed = [word for word, gap in zip(words, gaps, strict=True) if gap >= 1e-9]
    sentences = [" ".join(words), " ".join(words[n] for n in order)]
    d, gap_rows = before.shape[1], 3  # two strips and a space for each word
    strips = np.full((gap_rows * len(words) - 1, d), np.nan)
    labels = {}
    ax = figure.add_subplot()
    for n, (word, gap) in enumerate(zip(words, gaps, strict=True)):
        top = gap_rows * n
        strips[top], strips[top + 1] = before[n], after[list(order).index(n)]
        labels[top], labels[top + 1] = (f"{word} in “{sentence}”" for sentence in sentences)
        verdict, colour = ("the same", plots.GREEN) if gap < 1e-9 else (f"differ by up to {gap:.2f}", plots.ORANGE)
        ax.axhline(top + 0.5, color="white", lw=1.5)
        ax.text(d - 0.3, top + 0.5, verdict, color=colour, weight="bold", va="center")
    largest = float(np.nanmax(np.abs(strips)))
    look: Any = {"aspect": "auto", "interpolation": "nearest", "cmap": plots.colour_map(*plots.SCORES_MAP)}
    image = ax.imshow(strips, vmin=-largest, vmax=largest, **look)
    bar = figure.colorbar(image, ax=ax, label="entry", pad=0.24, ticks=(-largest, 0, largest))
    bar.ax.set_yticklabels([formats.minus(f"{end:.2f}") if end else "0" for end in (-largest, 0, largest)])
    ax.set_title(f"{len(words) - len(changed)} of {len(words)} words keep their output vector")
    ax.set_yticks(list(labels), list(labels.values()))
    ax.set_xticks(range(d))
    ax.set_xlabel("column of the output")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return f"… Words whose vector has changed: {', '.join(changed) or 'none'}."


# --- 2 · Inventing a table --------------------------------------------------------------------------------------------


def ideas(length: int, d_model: int = 6) -> dict[str, Array]:
    """Four tables that one might think of, (length, d_model) each."""
    at = np.arange(length)[:, None]
    return {
        "the number itself": np.repeat(at, d_model, axis=1).astype(float),
        "number / length": np.repeat(at / length, d_model, axis=1),
        "binary digits": (at // 2 ** np.arange(d_model) % 2).astype(float),
        "sines and cosines": positions.sinusoidal_encoding(length, d_model),
    }


def largest_step(table: Array) -> float:
    """Return the largest step to the next row, as a share of the largest distance between any two rows."""
    step = np.linalg.norm(np.diff(table, axis=0), axis=1).max()
    return float(step / np.linalg.norm(table[:, None] - table[None], axis=-1).max())


REQUIREMENTS: dict[str, Callable[[Array, Array], bool]] = {  # of a table for 32 positions and one for 64
    "bounded": lambda short, long: bool(np.abs(long).max() <= 1),
    "same row at any length": lambda short, long: np.array_equal(short, long[: len(short)]),
    "rows differ": lambda short, long: len(np.unique(long.round(9), axis=0)) == len(long),
    "smooth": lambda short, long: largest_step(long) <= 0.5,
}


def verdicts(make: Callable[[int], Mapping[str, Array]] = ideas) -> dict[str, dict[str, bool]]:
    """Test which requirements each idea meets, on tables for 32 and 64 positions."""
    short, long = make(32), make(64)
    return {idea: {name: meets(short[idea], long[idea]) for name, meets in REQUIREMENTS.items()} for idea in short}


WIDTHS, BASES, LENGTHS = (8, 16, 32, 64, 128), (10, 100, 1000, 10_000, 100_000), (32, 64, 96)
SHARP: Any = {"aspect": "auto", "interpolation": "nearest"}  # an entry of the table is a box of one colour
WAVES = ((0.0, plots.BLUE, "-"), (0.25, plots.ORANGE, "--"), (0.5, plots.GREEN, ":"))  # where in the table, and how


@live.lab(
    width=8.0,
    height=4.4,
    neutral="It opens with 8 columns; the notebook asks about 64.",
    telling={"d_model": 64},
    example=lambda: positions.sinusoidal_encoding,
    d_model=live.Choice("d_model", WIDTHS, 8),
    base=live.Choice("base", BASES, 10_000),
    length=live.Choice("maximum length", LENGTHS, 64),
)
def table_lab(figure: "plots.Figure", make_table: Callable[[int, int, float], Array]) -> live.Update:
    """Show the table as a heat map, all sines above all cosines, and three of its columns as waves.

    Args:
        make_table: `make_table(length, d_model, base)`, the learner's.
    """
    table_ax, waves_ax = figure.subplots(2, 1, height_ratios=(1.3, 1), sharex=True)
    image = table_ax.imshow(np.zeros((2, 2)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1, **SHARP)
    figure.colorbar(image, ax=(table_ax, waves_ax), label="entry of the table", ticks=(-1, 0, 1), shrink=0.6)
    table_ax.set_ylabel("pair i")
    table_ax.yaxis.set_label_coords(-0.12, 0.5)  # beside the longest labels that there can be, "cos 32"
    waves_ax.set(ylim=(-1.15, 1.75), yticks=(-1, 0, 1), xlabel="position", ylabel="entry")
    lines = [waves_ax.plot([], [], style, color=colour)[0] for _, colour, style in WAVES]
    names = [
        waves_ax.text(x, 0.985, "", color=c, transform=waves_ax.transAxes, va="top")
        for x, (_, c, _) in zip((0.01, 0.33, 0.68), WAVES, strict=True)
    ]

    def update(d_model: int, base: int, length: int) -> str:
        table = make_table(length, d_model, base)  # (length, d_model)
        waves = positions.wavelengths(d_model, base)
        image.set_data(np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1).T)
        if image.get_extent()[1:3] != [length - 0.5, d_model - 0.5]:  # axes that stay need not be drawn again
            image.set_extent((-0.5, length - 0.5, d_model - 0.5, -0.5))
            waves_ax.set_xlim(-0.5, length - 0.5)
            waves_ax.set_xticks(range(0, length, length // 8))
            half = d_model // 2
            table_ax.set_yticks(
                [0, half // 2, half, half + half // 2], ["sin 0", f"sin {half // 2}", "cos 0", f"cos {half // 2}"]
            )
        fine = np.linspace(0, length - 1, 300)
        clauses = []
        for (share, _, _), line, name in zip(WAVES, lines, names, strict=True):
            i = int(share * d_model / 2)
            line.set_data(fine, np.sin(fine * 2 * np.pi / waves[i]))
            clauses.append(f"sin {i}: wavelength {formats.three_figures(waves[i])}")
            name.set_text(clauses[-1])
        whole = int((waves <= length).sum())
        table_ax.set_title(f"{whole} of {d_model // 2} pairs of columns make a full turn within {length} positions")
        waves_ax.set_title(
            f"Wavelengths from {formats.three_figures(waves[0])} to {formats.three_figures(waves[-1])} positions"
        )
        return (
            f"… The table of sines and cosines for d_model {d_model} and base {base} as a heat map, sines above "
            "cosines: stripes that get wider from the first pair to the last. Three sines as waves: "
            f"{'; '.join(clauses)}."
        )

    return update


# --- 3 · Absolute and relative positions ------------------------------------------------------------------------------


def diagonal_spread(S: Array) -> float:
    """Return how much scores with equal offset differ at most; 0 if a score depends on the offset only."""
    return float(max(np.ptp(np.diagonal(S, n)) for n in range(1 - len(S), len(S))))


@plots.still(9.6, 3.0)
def score_maps(figure: "plots.Figure", **scores: Array) -> str:
    """Draw what positions do to the scores, (T, T) each: maps side by side, each with what its diagonals say."""
    clauses = []
    axes = figure.subplots(1, len(scores))
    for n, (ax, (name, S)) in enumerate(zip(axes, scores.items(), strict=True)):
        spread, top = diagonal_spread(S), float(np.abs(S).max())
        image = ax.imshow(S, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-top, vmax=top)
        verdict = "only the offset decides" if spread < 1e-9 else "the place decides, too"
        ax.set(xlabel="key at", ylabel="query at" if n == 0 else "", title=f"{name}:\n{verdict}")
        ax.set_xticks(range(0, len(S), 8))
        ax.set_yticks(range(0, len(S), 8))
        ax.spines[:].set_visible(False)
        clauses.append(f"{spread:.2g} ({name})")
    bar = figure.colorbar(image, ax=axes, label="score", ticks=(-top, 0, top), shrink=0.8)
    bar.ax.set_yticklabels(["lowest", "0", "highest"])
    return f"… Scores by position of query and key. Those with equal offset differ by up to {', '.join(clauses)}."


# --- 4 · Turn the queries and keys ------------------------------------------------------------------------------------

QUERY_ANGLE, KEY_ANGLE, RATE = 20.0, 65.0, 9.0  # degrees: of q and k at position 0, and what one position adds


@live.lab(
    height=4.1,
    neutral="It shows one position; what changes on the way to the next takes a move.",
    telling=({"position": 50}, {"position": 75}),
    position=live.Slider("query at position m", 40, 100, 50),
    distance=live.Slider("key stands back by", 0, 40, 2),
)
def rotary_lab(figure: "plots.Figure") -> live.Update:
    """Show a query and a key as hands in one plane; their angle depends on the distance of their positions alone."""
    plane, chart = figure.subplots(1, 2, width_ratios=(1, 1.25))
    turn = np.linspace(0, 2 * np.pi, 120)
    plane.plot(np.cos(turn), np.sin(turn), color="#BBBBBB", lw=1, zorder=1)
    plane.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xticks=(), yticks=())
    plane.spines[:].set_visible(False)
    drawn = {}
    for name, angle, colour in (("q", QUERY_ANGLE, plots.QUERY), ("k", KEY_ANGLE, plots.KEY)):
        x, y = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        plane.plot([0, x], [0, y], ":", color=colour, lw=1.6, zorder=1)
        (hand,) = plane.plot([], [], color=colour, lw=4, solid_capstyle="round")
        label = plane.text(0, 0, name, color=colour, weight="bold", size=14, ha="center", va="center")
        drawn[name] = hand, label
    (arc,) = plane.plot([], [], color=plots.PURPLE, lw=2.4)
    at = np.linspace(0, 40, 161)
    chart.plot(at, np.cos(np.radians(QUERY_ANGLE - KEY_ANGLE + RATE * at)), color=plots.INK)
    (dot,) = chart.plot([3], [0], "o", color=plots.PURPLE, ms=12, clip_on=False)
    chart.axhline(0, color=plots.GREY, lw=1, ls=":")
    chart.set(xlim=(0, 40), ylim=(-1.1, 1.1), xlabel="distance m − n", ylabel="q · k after turning")

    def update(position: int, distance: int) -> str:
        q, k = QUERY_ANGLE + RATE * position, KEY_ANGLE + RATE * (position - distance)
        for (hand, label), angle in zip(drawn.values(), np.radians((q, k)), strict=True):
            x, y = np.cos(angle), np.sin(angle)
            hand.set_data([0, x], [0, y])
            label.set_position((1.18 * x, 1.18 * y))
        between = np.radians(np.linspace(k, q, 60))
        arc.set_data(0.5 * np.cos(between), 0.5 * np.sin(between))
        score = np.cos(np.radians(q - k))
        dot.set_data([distance], [score])
        number, angle = formats.minus(f"{score:z.2f}"), formats.degrees((q - k + 180) % 360 - 180)
        plane.set_title(f"m = {position}, n = {position - distance}: angle {angle}")
        chart.set_title(f"q · k = {number} at distance {distance}")
        return f"… The query stands at position m and the key at n, and each is turned by {RATE:g}° a position."

    return update


@plots.still(9.2, 4.4)
def score_by_distance(
    figure: "plots.Figure", rotate: Callable[[Array, Array], Array], d_k: int = 8, distances: int = 64, best: int = 5
) -> str:
    """Draw a query's score against distance, the part of each pair and their sum; query and key agree `best` apart.

    Args:
        rotate: `rotate(x, positions)`, the learner's.
    """
    key: Array = np.ones((1, d_k))
    query = rotate(key, np.array([-float(best)]))
    at = np.arange(distances, dtype=float)  # the key stands at position 0
    parts = rotate(np.repeat(query, distances, axis=0), at) * rotate(key, np.zeros(1))  # (distances, d_k)
    pairs = parts.reshape(distances, d_k // 2, 2).sum(axis=-1)
    score = pairs.sum(axis=1)
    peaks = [n for n in range(1, distances - 1) if score[n] > max(score[n - 1], score[n + 1])]
    steps = " or ".join(str(n) for n in sorted(set(np.diff(peaks))))
    listed = ", ".join(map(str, peaks))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.1))
    waves = positions.wavelengths(d_k)
    looks = zip((plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE), ("-", "--", ":", "-."), strict=True)
    clauses = []
    for i, (colour, line) in enumerate(looks):
        upper.plot(at, pairs[:, i], line, color=colour, lw=1.8)
        clauses.append(f"pair {i}: one turn in {formats.three_figures(waves[i])} positions")
        upper.text(1.01, 0.92 - 0.28 * i, clauses[-1], color=colour, transform=upper.transAxes, va="center", size=10)
    lower.plot(at, score, color=plots.INK)
    lower.plot(peaks, score[peaks], "o", color=plots.INK, ms=6)
    lower.text(1.01, 0.5, f"sum: peaks at\n{listed}", transform=lower.transAxes, va="center", size=10)
    upper.set_title(f"The score is highest {int(score.argmax())} apart, and peaks again every {steps} positions")
    upper.set_ylabel("part of a pair")
    lower.set(xlabel="distance m − n", ylabel="score, their sum", xlim=(0, distances - 1))
    for ax in (upper, lower):
        ax.axhline(0, color=plots.GREY, lw=1, ls=":")
    return (
        f"… The peaks are at {listed}. Above, the part of each of the {d_k // 2} pairs, {'; '.join(clauses)}. "
        "Below, their sum, which is the score of a query and a key by their distance."
    )


# --- 5 · Beyond the training length -----------------------------------------------------------------------------------

KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi")
NAMES = {kind: kind for kind in KINDS} | {"none": "no positions", "alibi": "ALiBi"}
NAMES["window"] = "rotary + window"  # a rotary model whose queries see the last keys only
LOOKS: dict[str, tuple[str, Any]] = {  # colour and line
    "none": (plots.INK, (0, (1, 1))),
    "sinusoidal": (plots.BLUE, "-"),
    "learned": (plots.PURPLE, ":"),
    "rotary": (plots.ORANGE, "--"),
    "alibi": (plots.GREEN, "-."),
    "window": (plots.ORANGE, "-"),
}
BACK, SYMBOLS = 5, 12
RECALL_VOCABULARY = FIRST_SYMBOL + SYMBOLS


def recall(rng: np.random.Generator, batch: int, T: int, back: int = BACK) -> Pair:
    """Random symbols; every position reports the symbol `back` places back, the first ones report nothing (padding)."""
    source = rng.integers(FIRST_SYMBOL, RECALL_VOCABULARY, size=(batch, T))
    target = np.full_like(source, PAD)
    target[:, back:] = source[:, :-back]
    return source, target


class ByPosition(NamedTuple):
    """The results of a model at each position, mean over sequences."""

    correct: Array  # share of right answers, (T,)
    bits: Array  # loss in bits, (T,)


def by_position(
    model: GPT, batch: tuple[Ids, Ids], window: int | None = None, rotate: Callable[[Array, Array], Array] | None = None
) -> ByPosition:
    """Test a model at each position.

    Args:
        window: every position sees only that many keys, itself included.
        rotate: turns the queries and keys of a rotary model in place of our own function.
    """
    ids, target = batch
    T = ids.shape[1]
    mask = causal_mask(T)
    if window is not None:
        mask = mask & ~np.tril(mask, -window)
    turns = [(heads, "rotary", SimpleNamespace(turn=rotate)) for heads in model.heads()["decoder"]] if rotate else []
    with changed(turns):
        logits, _ = model.forward(ids, mask=mask)  # (B, T, V)
    answers = np.take_along_axis(ops.softmax(logits), target[..., None], axis=-1)[..., 0]  # (B, T)
    bits = -np.log2(np.maximum(answers, np.finfo(answers.dtype).tiny)).mean(axis=0)
    return ByPosition((logits.argmax(axis=-1) == target).mean(axis=0), bits)


class Stretches(NamedTuple):
    """Means over three stretches of positions: trained, the next half length, and the half length after that."""

    trained: float
    to_1_5: float
    to_2: float


def stretches(curve: Array, first: int = 0) -> Stretches:
    """Average a curve over twice the training length, (2L,), in three stretches, from position `first` on."""
    L = len(curve) // 2
    return Stretches(*(float(part.mean()) for part in (curve[first:L], curve[L : L + L // 2], curve[L + L // 2 :])))


def stretch_table(curves: Mapping[str, Array], first: int = 0) -> tables.Table:
    """List the means of `stretches`, a row a kind."""
    L = len(next(iter(curves.values()))) // 2
    places = (f"{a}–{b}" for a, b in ((first, L - 1), (L, L + L // 2 - 1), (L + L // 2, 2 * L - 1)))
    return tables.table(("positions", *places), ((NAMES[k], *stretches(curve, first)) for k, curve in curves.items()))


@plots.still(9.2, 4.2)
def length_plot(
    figure: "plots.Figure",
    curves: Mapping[str, Array],
    quantity: str,
    best: Callable[..., str],
    first: int = 0,
    bottom: float = 0.0,
    guessing: float | None = None,
) -> str:
    """Draw curves over positions `first` … 2L − 1, by kind, named where they end; the training length is shaded.

    Args:
        quantity: what the curves show: "share correct" or "bits per character".
        best: `max` or `min`, what is best of it.
        bottom: where the axis begins.
        guessing: what guessing would give, where that is to be drawn.
    """
    L = len(next(iter(curves.values()))) // 2
    ends = {kind: stretches(curve, first) for kind, curve in curves.items()}
    ax = figure.add_subplot()
    ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    ax.text(L - 1, 0.015, "trained up to here", transform=ax.get_xaxis_transform(), ha="right", color=plots.GREY)
    at = np.arange(first, 2 * L)
    for kind, curve in curves.items():
        colour, line = LOOKS[kind]
        ax.plot(at, curve[first:], ls=line, color=colour)
    top = 1.05 if best is max else 1.02 * max(float(curve[first:].max()) for curve in curves.values())
    ax.set(xlim=(-0.5, 2 * L - 0.5), ylim=(bottom, top), xlabel="position", ylabel=quantity)
    ax.set_title(_finding(ends, L - 1, best is max))
    order = sorted(curves, key=lambda kind: float(curves[kind][-1]))
    heights = _apart([float(curves[kind][-1]) for kind in order], 0.062 * (top - bottom), bottom, top)
    for kind, height in zip(order, heights, strict=True):
        colour, _ = LOOKS[kind]
        ax.plot([2 * L - 1, 2 * L + 0.5], [curves[kind][-1], height], color=colour, lw=0.8, clip_on=False)
        ax.text(2 * L + 0.8, height, NAMES[kind], color=colour, va="center", weight="bold", clip_on=False)
    if guessing is not None:
        ax.axhline(guessing, color=plots.GREY, lw=1)
        ax.text(0, guessing, "guessing", color=plots.GREY, va="bottom", size=9)
    ticks = {0: "0", L // 2: f"{L // 2}", L: f"{L} (1×)", L + L // 2: f"{L + L // 2} (1.5×)", 2 * L - 1: "2×"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    listed = "; ".join(f"{NAMES[kind]} " + ", ".join(f"{x:.2f}" for x in end) for kind, end in ends.items())
    return (
        f"… {quantity.capitalize()} by position, trained on positions up to {L - 1}. Means over the training "
        f"length, the half after it, and the half after that: {listed}."
    )


def _apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move the heights of labels, ascending, apart by at least `gap`, within low … high."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else max(height, low + gap / 2))
    over = moved[-1] - (high - gap / 2)
    for n in reversed(range(len(moved))):
        limit = high - gap / 2 if n == len(moved) - 1 else moved[n + 1] - gap
        moved[n] = min(moved[n], limit) if over > 0 else moved[n]
    return moved


def _finding(ends: Mapping[str, Stretches], last: int, more_is_better: bool) -> str:
    """Say who gets worse beyond the training length."""
    limit = "" if more_is_better else " by more than 0.2 bits"
    worse = [NAMES[kind] for kind, end in ends.items() if not _held(end, more_is_better)]
    return f"Worse beyond {last}{limit}: {', '.join(worse) or 'none of them'}"


def _held(end: Stretches, more_is_better: bool) -> bool:
    """Return whether little is lost beyond the training length: 0.05 of the share correct, or 0.2 bits."""
    loss = end.trained - min(end) if more_is_better else max(end) - end.trained
    return loss < (0.05 if more_is_better else 0.2)


# --- 5 · Where does the head look? ------------------------------------------------------------------------------------

TURN = 2 * np.pi  # the fastest hand comes round after so many positions: its rate is 1 in every table


def on_turns(length: int) -> list[int]:
    """Return the whole offsets below `length` that are nearest to five back and whole turns of the fastest hand."""
    return [n for n in (round(BACK + TURN * k) for k in range(length)) if n < length]


def five_back(model: GPT, ids: Ids, L: int) -> Array:
    """Return the weights, (T, T), mean over sequences, of the head that looks five back most within L positions."""
    _, cache = model.forward(ids)
    maps = np.concatenate([weights.mean(axis=0) for weights in model.maps(cache)["decoder"]])  # (layers · h, T, T)
    return max(maps, key=lambda weights: float(np.diagonal(weights[:L, :L], -BACK).mean()))


def by_offset(weights: Array) -> Array:
    """Write the weights of each query by how far back their keys stand: (T, T), 0 where there is no such key."""
    T = len(weights)
    back = np.arange(T)[:, None] - np.arange(T)  # the key of query t that stands n back is key t − n
    return np.where(back >= 0, weights[np.arange(T)[:, None], np.maximum(back, 0)], 0.0)


def share_on_turns(offsets: Array) -> tuple[Array, Array]:
    """Return which share of each query's weight lies on `on_turns`, and which share of its keys does, (T,) each."""
    T = len(offsets)
    on = on_turns(T)
    return offsets[:, on].sum(axis=1), np.array([sum(n <= t for n in on) / (t + 1) for t in range(T)])


def _weights_by_offset(recallers: Mapping[str, GPT], longer: Ids) -> tuple[dict[str, Array], int]:
    L = longer.shape[1] // 2
    return {kind: by_offset(five_back(recallers[kind], longer, L)) for kind in ("rotary", "sinusoidal", "learned")}, L


def _example_of_turns() -> tuple[dict[str, GPT], Ids]:
    models = {}
    for kind in ("rotary", "sinusoidal", "learned"):
        config = GPTConfig(vocab=20, d_model=16, num_heads=2, num_layers=1, positions=kind)
        models[kind] = GPT(config, np.random.default_rng(0))
    return models, recall(np.random.default_rng(1), 2, 64)[0]


@live.lab(
    height=4.3,
    neutral="It opens within the training length; what comes beyond is drawn when the position gets there.",
    telling={"position": 60},
    controls=lambda offsets, L: {
        "kind": live.Choice("positions", tuple(offsets), "rotary"),
        "position": live.Slider("query at position", BACK + 1, 2 * L - 1, L - 8),
    },
    prepare=_weights_by_offset,
    example=_example_of_turns,
)
def turns_lab(figure: "plots.Figure", offsets: Mapping[str, Array], L: int) -> live.Update:
    """Show how far back the five-back head looks: its largest weight up to a position, and all its weights there."""
    trail_ax, bars_ax = figure.subplots(1, 2, width_ratios=(1.1, 1))
    T = 2 * L
    turns = [BACK + TURN * k for k in range(len(on_turns(T)))]
    trail_ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    trail_ax.text(L - 1, 0.5, "trained up to here", ha="right", va="bottom", color=plots.GREY)
    look: Any = {"color": plots.GREY, "lw": 1, "ls": ":"}
    dotted = trail_ax.hlines(turns, -0.5, T - 0.5, **look), bars_ax.vlines(turns, 0, 1.04, **look)
    (trail,) = trail_ax.plot([], [], "o", ms=5, color=plots.BLUE, clip_on=False)
    (last,) = trail_ax.plot([0], [0], "o", ms=11, color=plots.INK, clip_on=False, zorder=5)
    (bars,) = bars_ax.plot([], [], drawstyle="steps-mid", color=plots.BLUE)
    trail_ax.set(xlim=(-0.5, T - 0.5), ylim=(-0.5, T - 0.5), xlabel="query at position")
    trail_ax.set_ylabel("largest weight: how far back")
    trail_ax.set_xticks([0, L // 2, L, L + L // 2, T - 1])
    bars_ax.set(xlim=(-0.5, T - 0.5), ylim=(0, 1.04), xlabel="how far back", ylabel="weight")

    def update(kind: str, position: int) -> str:
        weights = offsets[kind]
        colour = LOOKS[kind][0]
        so_far = np.arange(BACK + 1, position + 1)
        largest = weights[so_far].argmax(axis=1)
        trail.set_data(so_far, largest)
        last.set_data([position], [largest[-1]])
        bars.set_data(np.arange(position + 1), weights[position, : position + 1])
        for line in (trail, bars):
            line.set_color(colour)
        share, chance = (values[position] for values in share_on_turns(weights))
        beyond = position >= L
        for lines in dotted:
            lines.set_visible(beyond)
        label = "how far back" + f" (dotted: {BACK}, plus whole turns)" * beyond
        if bars_ax.get_xlabel() != label:  # axes that stay need not be drawn again
            bars_ax.set_xlabel(label)
        trail_ax.set_title(f"{NAMES[kind].capitalize()}, position {position}: looks {largest[-1]} back")
        bars_ax.set_title(
            f"{share:.0%} on dotted lines (evenly: {chance:.0%})" if beyond else f"Weights of position {position}"
        )
        told = f"… The largest weight of each query up to position {position}, in the head that learned five back"
        if not beyond:
            return f"{told}. All these positions lie within the training length."
        return f"{told}. Dotted lines are at {BACK} back and whole turns of the fastest hand."

    return update


# --- 5 · Which hand misleads the head? --------------------------------------------------------------------------------


def with_hands(model: GPT, batch: Pair, hands: Sequence[Array]) -> Array:
    """Test a rotary model in which each hand sees distances of its own.

    Args:
        hands: for each pair of columns how far apart it takes a query and a key to be, (T, T).

    Returns:
        the share of right answers at each position, (T,).
    """

    def attend(Q: Array, K: Array, V: Array, mask: Array) -> tuple[Array, Array]:
        rates = TURN / positions.wavelengths(Q.shape[-1], model.config.rotation.base)  # type: ignore[union-attr]
        q, k = _as_complex(Q), _as_complex(K)
        scores = np.zeros((*Q.shape[:-1], Q.shape[-2]))
        for i, (rate, apart) in enumerate(zip(rates, hands, strict=True)):
            scores += (q[..., :, None, i] * np.conj(k[..., None, :, i]) * np.exp(1j * rate * apart)).real
        weights = ops.softmax(np.where(mask, scores / np.sqrt(Q.shape[-1]), -np.inf)).astype(V.dtype)
        return weights @ V, weights

    with trying(model, attend=attend):
        return by_position(model, batch, rotate=lambda x, at: x).correct  # attend turns, so nothing is turned before


def _as_complex(x: Array) -> Any:
    """Write each pair of columns (a, b) as the number a + bi, which turns by a product."""
    return np.ascontiguousarray(x, np.float64).view(np.complex128)


def _parts(model: GPT, ids: Ids, L: int) -> Array:
    """Return what each pair adds to the score of the five-back head, (pairs,): r · e^(iφ), for mean query and key."""
    seen: list[tuple[Array, Array, Array]] = []  # by layer: Q, K, weights

    def attend(Q: Array, K: Array, V: Array, mask: Array) -> tuple[Array, Array]:
        at = np.arange(Q.shape[-2])
        scores = positions.rotary(Q, at) @ positions.rotary(K, at).swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
        weights = ops.softmax(np.where(mask, scores, -np.inf))
        seen.append((Q, K, weights.mean(axis=0)))
        return weights @ V, weights

    with trying(model, attend=attend):
        by_position(model, (ids, ids), rotate=lambda x, at: x)
    heads = [(Q[:, h], K[:, h], maps[h]) for Q, K, maps in seen for h in range(Q.shape[1])]
    Q, K, _ = max(heads, key=lambda head: float(np.diagonal(head[2][:L, :L], -BACK).mean()))
    q, k = (_as_complex(x).mean(axis=(0, 1)) for x in (Q, K))
    return q * np.conj(k) / np.sqrt(Q.shape[-1])


@plots.still(9.2, 4.6)
def hand_drawn(figure: "plots.Figure", model: GPT, longer: Ids, pair: int = 1) -> str:
    """Draw what one hand adds to the score of the five-back head by distance, and the whole score.

    Args:
        longer: ids, (B, 2L).
    """
    L = longer.shape[1] // 2
    parts = _parts(model, longer, L)
    rates = TURN / positions.wavelengths(2 * len(parts))
    at = np.arange(2 * L)

    def adds(i: int, distance: Array) -> Array:
        part: Array = (parts[i] * np.exp(1j * rates[i] * distance)).real
        return part

    rest = sum(adds(i, at) for i in range(len(parts)) if i != pair)
    upper, lower = figure.subplots(2, 1, sharex=True)
    ways = (("as trained", at, plots.ORANGE, "-"), ("stopped at 31", np.minimum(at, L - 1), plots.BLUE, ":"))
    for ax in (upper, lower):
        ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
        ax.axhline(0, color=plots.GREY, lw=1, ls=":")
    for (name, distance, colour, line), height in zip(ways, (0.75, 0.2), strict=True):
        upper.plot(at, adds(pair, distance), line, color=colour, lw=2.2)
        lower.plot(at, rest + adds(pair, distance), line, color=colour, lw=1.8)
        upper.text(1.01, height, name, color=colour, weight="bold", transform=upper.transAxes, va="center")
    whole = rest + adds(pair, at)
    ahead = [n for n in range(L, 2 * L - 1) if whole[n] == whole[n - 1 : n + 2].max() and whole[n] > whole[BACK]]
    lower.plot([BACK, *ahead], whole[[BACK, *ahead]], "o", color=plots.ORANGE, ms=7)
    still = rest + adds(pair, np.minimum(at, L - 1))
    upper.set_title(f"Pair {pair} points down at {int(adds(pair, at).argmin())} back, and comes back up")
    lower.set_title(f"Peaks that score more than {BACK} back: {', '.join(map(str, ahead)) or 'none'}")
    upper.set_ylabel(f"part of pair {pair}")
    lower.set(xlabel="how far back", ylabel="score", xlim=(-0.5, 2 * L - 0.5))
    upper.text(L - 1, 0.85, "trained up to here", transform=upper.get_xaxis_transform(), ha="right", color=plots.GREY)
    return (
        f"… Scores by distance, for the mean query and the mean key of the head that looks {BACK} back. "
        f"With pair {pair} stopped at {L - 1}, the highest score is {int(still.argmax())} back."
    )


# --- 5 · With a window, or from random rows ---------------------------------------------------------------------------


def share_of_offset(model: GPT, L: int) -> Array:
    """Return which share of the variance of position scores the offset explains, in each head of the first layer.

    These are the scores of rows of the table alone, after W_Q and W_K. The mean of each query's scores is taken off,
    because softmax does not see it.
    """
    inner = model.heads()["decoder"][0]
    table = positions.sinusoidal_encoding(L, model.config.d_model)
    Q, K = ((table @ W.value).reshape(L, inner.num_heads, -1).swapaxes(0, 1) for W in (inner.W_Q, inner.W_K))
    visible = np.tril(np.ones((L, L), bool))
    shares = []
    for S in Q @ K.swapaxes(1, 2):  # (L, L)
        S = np.where(visible, S - (S * visible).sum(axis=1, keepdims=True) / visible.sum(axis=1, keepdims=True), 0)
        by_offset = sum(np.diagonal(S, -n).sum() ** 2 / (L - n) for n in range(L))
        shares.append(by_offset / (S**2).sum())  # the mean is 0 already
    return np.array(shares)
