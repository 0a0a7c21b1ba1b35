"""The trained model writes on: what the next character is drawn from, and a text coloured by its probability."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import live, plots
from lesson_utils.lessons.causal_mask.heads import untrained
from lesson_utils.lessons.causal_mask.watched import read, visible, words_in
from lesson_utils.maths import models, ops, tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

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
    ids: "Ids",
    length: int,
    rng: np.random.Generator,
    temperature: float,
    top_k: int | None,
    top_p: float,
) -> tuple["Ids", Array]:
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

    def __init__(self, chart: "Axes") -> None:
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

    def __init__(self, page: "Axes") -> None:
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
    prompt=live.Word("prompt", "The ", longest=30),
    temperature=live.Slider("temperature τ", 0.0, 2.0, 0.8, 0.1),
    top_k=live.Choice("top-k", TOP_KS, "all"),
    top_p=live.Slider("top-p", 0.1, 1.0, 1.0, 0.05),
    example=untrained,
)
def sampling_lab(figure: "Figure", model: models.GPT, vocabulary: tasks.Vocabulary) -> live.Update:
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
        first = "Greedy takes the likeliest" if temperature == 0 else f"{possible} of {len(now.drawn)} can be drawn"
        finding = f"{len(words)} words, {len(set(words))} different; {rare} characters under {RARE:.0%}"
        if unknown:  # what it has never read it can't go on from
            finding = f"{rare} characters under {RARE:.0%}; left out: {unknown[:8]}"
        finding = finding.replace("%", " %")
        chart.set_title(first)
        page.set_title(d.drawable(finding, MONO))
        listed = ", ".join(
            f"{label} {now.drawn[i]:.2f} ({now.model[i]:.2f})" for label, i in zip(labels[:5], likeliest, strict=False)
        )
        return (
            f"{finding}. Temperature {temperature:.1f}, top-k {top_k}, top-p {top_p:.2f}. {first}; next character, "
            f"drawn from (model at τ = 1): {listed}. The text: {' '.join(now.text.split())}"
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
