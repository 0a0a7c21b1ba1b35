"""What notebook 06 calls `lab.name`: its live figures, and all else from `gpts`, `counting` and `pictures`."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import formats, live, plots
from lesson_utils.lessons.attention_bugs import BUGS
from lesson_utils.lessons.causal_mask.counting import LENGTHS, beside_gpt, by_context, count
from lesson_utils.lessons.causal_mask.gpts import (
    Watch,
    answers,
    bigram_entropy,
    in_double,
    influence,
    parameters,
    read,
    read_along,
    trained_gpt,
    trained_under,
    unplanted,
    window_bits,
    windows,
    words_in,
)
from lesson_utils.lessons.causal_mask.pictures import (
    context_plot,
    influence_plot,
    late_plot,
    maps,
    triangle,
    visible,
)
from lesson_utils.maths import attention, models, ops, tasks
from lesson_utils.maths.checks import Array, Ids, Mask

# --- 2 · The leak meter -----------------------------------------------------------------------------------------------

LONGEST, WIDTH = 24, 16
KINDS = {  # in one right way and six others
    "causal": "the right mask",
    "none": "everything is visible",
    "one too far": "each query sees the next key as well",
    "transposed": "each query sees itself and what comes after it",
    "too late": "weights are set to 0 after softmax",
    "late, renormalised": "weights are set to 0 after softmax, and each row is divided by what is left of its sum",
    "zeros": "hidden scores are set to 0",
}
# The kinds by their names in the catalogue.
_BUGS = {
    "causal": "",
    "none": "no mask",
    "one too far": "mask one too far",
    "transposed": "mask transposed",
    "too late": "mask after softmax",
    "late, renormalised": "mask after softmax, renormalised",
    "zeros": "masked with zeros",
}
CausalMask = Callable[[int, int], Mask]  # (T_q, T_k) -> (T_q, T_k)


def masked_weights(scores: Array, kind: str, causal_mask: CausalMask = attention.causal_mask) -> Array:
    """Turn scores (T, T) into weights, hidden in one of the ways of `KINDS`."""
    bug = BUGS[_BUGS[kind]]
    return bug.weighing.forward(scores, bug.seen(causal_mask(*scores.shape)))


@cache
def _tokens_and_matrices() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(6)
    tokens = rng.normal(size=(LONGEST, WIDTH))
    return tokens, rng.normal(size=WIDTH), rng.normal(size=(3, WIDTH, WIDTH)) / np.sqrt(WIDTH)


def layers_of_attention(
    x: Array, kind: str, layers: int = 1, causal_mask: CausalMask = attention.causal_mask
) -> tuple[Array, Array]:
    """Run a stack of attention layers with fixed random matrices and residual connections: x + attention(x).

    Args:
        x: (T, 16).

    Returns:
        outputs, (T, 16), and the weights of the first layer, (T, T).
    """
    W_Q, W_K, W_V = _tokens_and_matrices()[2]
    found = []
    for _ in range(layers):
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True))  # the size of a token stays what it was
        weights = masked_weights(x @ W_Q @ (x @ W_K).T / np.sqrt(WIDTH), kind, causal_mask)
        found.append(weights)
        x = x + weights @ (x @ W_V)
    return x, found[0]


def leak(
    T: int, position: int, kind: str, layers: int = 1, causal_mask: CausalMask = attention.causal_mask
) -> tuple[Array, Array]:
    """Measure how far each of T outputs moves when the token at `position` is replaced, (T,); and the first weights."""
    tokens, other, _ = _tokens_and_matrices()
    changed = tokens[:T].copy()
    changed[position] = other
    (before, weights), (after, _) = (layers_of_attention(x, kind, layers, causal_mask) for x in (tokens[:T], changed))
    return np.sqrt(((after - before) ** 2).sum(axis=-1)), weights


ROUNDING, FLOOR = 1e-9, -5.6  # movements below are rounding, and stand under the break of the scale
BREAK = -4.4


def _height(moved: Array) -> Array:
    """Return where a bar ends on the broken scale: powers of ten, with rounding (10⁻¹⁷ to 10⁻¹⁴) squeezed below."""
    tens = np.log10(moved, out=np.full(moved.shape, -99.0), where=moved > 0)
    squeezed = np.clip(-5 + (tens + 15.5) / 5, FLOOR + 0.1, BREAK - 0.1)
    return np.where(moved == 0, FLOOR, np.where(moved < ROUNDING, squeezed, np.maximum(tens, BREAK + 0.2)))


@live.lab(
    height=4.0,
    example=lambda: attention.causal_mask,
    neutral="Under the right mask nothing leaks.",
    telling={"kind": "too late"},
    T=live.Slider("sequence length T", 4, LONGEST, 12),
    token=live.Slider("changed token", 0, LONGEST - 1, 6),
    kind=live.Choice("mask", tuple(KINDS), "causal"),
    layers=live.Slider("layers", 1, 4, 1),
)
def leak_lab(figure: "plots.Figure", causal_mask: CausalMask) -> live.Update:
    """Change one token and watch which outputs move, under a learner's mask and under what goes wrong with it."""
    from matplotlib.patches import Rectangle

    map_ax, ax = figure.subplots(1, 2, width_ratios=(1, 1.8))
    image = map_ax.imshow(
        np.zeros((2, 2)), cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=0.4, interpolation="nearest"
    )
    figure.colorbar(image, ax=map_ax, ticks=(0, 0.2, 0.4), extend="max", shrink=0.75, label="weight")
    column = map_ax.add_patch(Rectangle((0, 0), 1, 1, fill=False, ec=plots.ORANGE, lw=2))
    map_ax.set(xlabel="key (orange: the changed token)", ylabel="query")
    bars = ax.bar(np.arange(LONGEST), np.ones(LONGEST), bottom=FLOOR)
    zeros = [ax.text(i, FLOOR + 0.08, "0", ha="center", color=plots.INK) for i in range(LONGEST)]
    ax.set(ylim=(FLOOR, 2.1), xlabel="output", ylabel="how far each output moves")
    ax.set_yticks([-5, *range(-4, 2)], ["rounding", "0.0001", "0.001", "0.01", "0.1", "1", "10"])
    ax.axhline(BREAK, color=plots.GREY, lw=1, ls=(0, (2, 3)))
    ax.bar([-9], [0], color=plots.ORANGE, label="earlier outputs")
    ax.bar([-9], [0], color=plots.BLUE, label="the others")
    ax.legend(loc="upper left", ncols=2)
    drawn = {"T": 0}

    def update(T: int, token: int, kind: str, layers: int) -> str:
        position = min(token, T - 1)
        moved, weights = leak(T, position, kind, layers, causal_mask)
        image.set_data(weights)
        column.set_bounds(position - 0.5, -0.5, 1, T)
        if drawn["T"] != T:  # moved axes are all drawn anew, which takes its time
            drawn["T"], ticks = T, range(0, T, 4 if T > 12 else 1)
            image.set_extent((-0.5, T - 0.5, T - 0.5, -0.5))
            map_ax.set(xlim=(-0.5, T - 0.5), ylim=(T - 0.5, -0.5), xticks=ticks[:: 1 + (8 < T <= 12)], yticks=ticks)
            ax.set(xlim=(-0.5, T - 0.5), xticks=ticks)
        heights = _height(moved) - FLOOR
        for i, bar in enumerate(bars):
            bar.set_height(heights[i] if i < T else 0)
            bar.set_color(plots.ORANGE if i < position else plots.BLUE)
            zeros[i].set_text("0" if i < T and moved[i] == 0 else "")
        before = moved[:position]
        leaking = int((before > 0).sum())
        if position == 0:
            finding = "Token 0 is first: no output is earlier"
        elif not leaking:
            finding = "No leak: no earlier output moves"
        elif before.max() < ROUNDING:
            finding = f"Rounding: {leaking} of {position} earlier outputs move"
        else:
            finding = f"Leak: {leaking} of {position} earlier outputs move"
        ax.set_title(finding)
        ahead = np.triu(weights, 1).sum() / T
        map_ax.set_title(f"{kind}:\n{ahead:.0%} looks ahead")  # the alternative text says of which layer
        listed = ", ".join(f"{i}: {formats.power(m) if m else 'exactly 0'}" for i, m in enumerate(moved))
        return (
            f"… {KINDS[kind].capitalize()}, in {layers} layer{'s; the map is of the first' * (layers > 1)}. Token "
            f"{position} of {T} is changed. How far each output moves: {listed}."
        )

    return update


def untrained() -> tuple[models.GPT, tasks.Vocabulary]:
    """Make an untrained model as large as the notebook's."""
    vocabulary = tasks.text_vocabulary(tasks.python_text())
    config = models.GPTConfig(vocab=len(vocabulary), d_model=64, num_heads=4, num_layers=2, max_length=64)
    return models.GPT(config, np.random.default_rng(0)), vocabulary


# --- 5 · One symbol at a time: what the next is drawn from, and a text coloured by its probability --------------------

TOP_KS = ("1", "2", "5", "10", "20", "all")
BARS, LINE, LINES, WRITTEN = 10, 42, 7, 180  # bars, characters a line, lines, characters to write
RARE = 0.01
MONO = "DejaVu Sans Mono"
# How probable a character was: from so much on, in this strength of colour.
SHADES = ((0.25, 0.0), (0.05, 0.16), (RARE, 0.4), (0.0, 0.8))


class Draw(NamedTuple):
    """The next character's distribution, before and after the cuts, and a text drawn so."""

    model: Array  # what the model says, (V,)
    drawn: Array  # what is drawn from, (V,)
    text: str
    probability: Array  # of each character of the text, by the model at τ = 1; 1 for the prompt


def write_on(
    model: models.GPT,
    ids: Ids,
    length: int,
    rng: np.random.Generator,
    temperature: float,
    top_k: int | None,
    top_p: float,
) -> tuple[Ids, Array]:
    """Continue one prompt (1, T) as `GPT.generate` does: ids and probabilities, (T + length,); the prompt's are 1."""
    context = model.config.max_length
    past, seen = model.new_past(), ids[:, -context:]
    fresh, found = seen, [1.0] * ids.shape[1]
    for _ in range(length):
        logits = model.forward(fresh, past)[0][:, -1]  # (1, V)
        new = models.sample(logits, rng, temperature, top_k, top_p)[:, None]
        found.append(float(ops.softmax(logits[0].astype(np.float64))[new[0, 0]]))
        ids, seen, fresh = np.concatenate([ids, new], axis=1), np.concatenate([seen, new], axis=1), new
        if seen.shape[1] > context:
            seen = fresh = seen[:, -(context // 2) :]
            past = model.new_past()
    return ids[0], np.array(found)


class NextCharacter:
    """Bars of the likeliest next characters: what is drawn from, and dots for what the model says."""

    def __init__(self, chart: "plots.Axes") -> None:
        self.chart = chart
        rows = np.arange(BARS)
        self.bars = chart.barh(rows, np.zeros(BARS), color=plots.BLUE, label="drawn from")
        (self.dots,) = chart.plot(np.zeros(BARS), rows, "D", color=plots.ORANGE, ms=5, label="model, τ = 1", ls="none")
        self.names = [chart.text(-0.03, row, "", ha="right", va="center", family="monospace") for row in range(BARS)]
        chart.set(xlim=(0, 1.05), xlabel="probability of the next character", yticks=(), ylim=(BARS - 0.4, -0.6))
        chart.legend(loc="lower right")

    def set(self, labels: list[str], drawn: Array, model: Array) -> None:
        """Show these characters, with both of their probabilities."""
        for bar, name, label, p in zip(self.bars, self.names, labels, drawn, strict=False):
            bar.set_width(p)
            name.set_text(d.drawable({"an end": "∎", "space": "␣", "line end": "⏎"}.get(label, label), MONO))
        self.dots.set_data(model, np.arange(len(model)))


class Page:
    """A text in a monospaced font; the less probable a character was, the stronger the colour behind it."""

    SIZE, LEADING = 14.0, 0.42  # points; inches
    STEP = 0.602 * SIZE / 72  # the width of a character of DejaVu Sans Mono, inches

    def __init__(self, page: "plots.Axes") -> None:
        from matplotlib.collections import PolyCollection

        self.page = page
        self.top = page.get_ylim()[1] - 0.3
        self.marks = PolyCollection([], linewidths=0, zorder=1)
        page.add_collection(self.marks, autolim=False)
        look: dict[str, Any] = {"va": "baseline", "family": "monospace", "size": self.SIZE, "zorder": 3}
        self.lines = [page.text(0, self.top - i * self.LEADING, "", **look) for i in range(LINES)]
        small: dict[str, Any] = {"va": "center", "size": 10, "color": plots.GREY, "zorder": 0.5}
        page.text(0, 0.22, "to the model:", **small)
        labels = ("25 % and more", "5 %", "1 %", "less")
        for (_, strength), x, label in zip(SHADES, (1.35, 2.95, 3.75, 4.5), labels, strict=True):
            d.box(page, x, 0.22, "", 0.17, 0.2, plots.ORANGE, strength, zorder=0.5)
            page.text(x + 0.14, 0.22, label, **small)

    def set(self, text: str, probability: Array) -> None:
        """Write as much of the text as there are lines."""
        laid = laid_out(text, probability)
        squares, colours = [], []
        for i, line in enumerate(self.lines):
            characters, found = laid[i] if i < len(laid) else ("", [])
            line.set_text(d.drawable(characters, MONO))
            low = self.top - i * self.LEADING - 0.11
            for j, p in enumerate(found):
                strength = next(s for least, s in SHADES if p >= least)
                if strength:
                    squares.append(d.corners(j * self.STEP, low, (j + 1) * self.STEP, low + 0.36))
                    colours.append(d.tint(plots.ORANGE, strength))
        self.marks.set_verts(squares)
        self.marks.set_facecolor(colours or "none")


@live.lab(
    height=4.0,
    neutral="It is warm: neither greedy nor hot.",
    telling=[{"temperature": 0.0}, {"temperature": 2.0}],
    prompt=live.Word("prompt", "The ", longest=30),
    temperature=live.Slider("temperature τ", 0.0, 2.0, 0.8, 0.1),
    top_k=live.Choice("top-k", TOP_KS, "all"),
    top_p=live.Slider("top-p", 0.1, 1.0, 1.0, 0.05),
    example=untrained,
)
def sampling_lab(figure: "plots.Figure", model: models.GPT, vocabulary: tasks.Vocabulary) -> live.Update:
    """Show how the model continues a prompt: the probabilities of the next character, and a text drawn from them."""
    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    chart = figure.add_axes((0.45 / width, 0.55 / height, 2.75 / width, (height - 0.55 - d.TITLE) / height))
    next_character = NextCharacter(chart)
    wide, tall = 5.2, height - d.TITLE
    page = d.paper(figure.add_axes((3.7 / width, 0, wide / width, tall / height)), wide, tall)
    writing = Page(page)

    def draw(prompt: str, temperature: float, top_k: str, top_p: float) -> Draw:
        k = None if top_k == "all" else int(top_k)
        ids = vocabulary.encode(prompt)[None]  # (1, T)
        logits = model.forward(ids)[0][0, -1]  # (V,)
        written, probability = write_on(model, ids, WRITTEN, np.random.default_rng(8), temperature, k, top_p)
        letters = written >= tasks.FIRST_SYMBOL
        drawn = models.distribution(logits, temperature, k, top_p)
        return Draw(ops.softmax(logits), drawn, read(vocabulary, written), probability[letters])

    def update(prompt: str, temperature: float, top_k: str, top_p: float) -> str:
        usable = "".join(c for c in prompt if c in vocabulary.characters)
        unknown = "".join(sorted(set(prompt) - set(usable)))
        now = draw(usable or vocabulary.characters[0], round(temperature, 2), top_k, round(top_p, 2))
        likeliest = np.argsort(-now.model, kind="stable")[:BARS]
        labels = [name_of(vocabulary, int(i)) for i in likeliest]
        next_character.set(labels, now.drawn[likeliest], now.model[likeliest])
        writing.set(now.text, now.probability)
        possible, rare = int((now.drawn > 0).sum()), int((now.probability < RARE).sum())
        words = words_in(now.text)
        first = f"{possible} of {len(now.drawn)} possible" if temperature else "only the likeliest"
        finding = f"{len(words)} words, {len(set(words))} different; {rare} characters under {RARE:.0%}"
        if unknown:  # what it has never read it can't go on from
            finding = f"{rare} characters under {RARE:.0%}; left out: {unknown[:8]}"
        finding = finding.replace("%", " %")
        chart.set_title(f"τ = {temperature:.1f}: {first}")
        page.set_title(d.drawable(finding, MONO))
        listed = ", ".join(
            f"{label} {now.drawn[i]:.2f} ({now.model[i]:.2f})" for label, i in zip(labels[:5], likeliest, strict=False)
        )
        return (
            f"… Top-k {top_k}, top-p {top_p:.2f}{f', left out: {unknown}' * bool(unknown)}. Next character, drawn from "
            f"(model at τ = 1): {listed}. The text: {' '.join(now.text.split())}"
        )

    return update


def name_of(vocabulary: tasks.Vocabulary, id_: int) -> str:
    """Return a visible name for a character."""
    text = vocabulary.decode(np.array([id_]))
    return {"": "an end", " ": "space", "\n": "line end"}.get(text, text)


def laid_out(text: str, probability: Array) -> list[tuple[str, list[float]]]:
    """Break a text into lines of a monospaced page, each with the probabilities of its characters.

    Line ends are written as ⏎, runs of blanks as one (the first).
    """
    words: list[list[tuple[str, float]]] = [[]]
    for character, p in zip(text, probability, strict=True):
        if character != " ":
            words[-1].append((visible(character), float(p)))
        if character.isspace() and words[-1]:
            if character == " ":
                words[-1].append((" ", float(p)))
            words.append([])
    lines: list[list[tuple[str, float]]] = [[]]
    for word in words:
        for cut in range(0, len(word), LINE):
            piece = word[cut : cut + LINE]
            if len(lines[-1]) + len(piece) - (piece[-1][0] == " ") > LINE:
                lines.append([])
            lines[-1] += piece
    return [("".join(c for c, _ in line), [p for _, p in line]) for line in lines if line]
