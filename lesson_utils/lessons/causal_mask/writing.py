"""The trained model writes on: what the next character is drawn from, and a text coloured by its probability."""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import live, plots
from lesson_utils.lessons.causal_mask.heads import untrained
from lesson_utils.lessons.causal_mask.watched import read, visible, words_in
from lesson_utils.maths import models, ops, tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.models.stack import Ids

TOP_KS = ("1", "2", "5", "10", "20", "all")
SHOWN, LINE, LINES, WRITTEN = 10, 42, 7, 180  # bars, characters a line, lines, characters to write
RARE = 0.01
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
    """Continue one prompt (1, T) as `GPT.generate` does: ids and their probabilities, (T + length,); 1 in the prompt."""
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


@live.lab(
    height=4.0,
    prompt=live.Word("prompt", "The ", longest=30),
    temperature=live.Slider("temperature τ", 0.0, 2.0, 0.8, 0.1),
    top_k=live.Choice("top-k", TOP_KS, "all"),
    top_p=live.Slider("top-p", 0.1, 1.0, 1.0, 0.05),
    example=untrained,
)
def sampling_lab(figure: "Figure", model: models.GPT, vocabulary: tasks.Vocabulary) -> live.Update:
    """Show how the model continues a prompt: the probabilities of the next character, and a text drawn from them."""
    from matplotlib.collections import PolyCollection

    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    chart = figure.add_axes((0.45 / width, 0.55 / height, 2.75 / width, (height - 0.55 - d.TITLE) / height))
    rows = np.arange(SHOWN)
    bars = chart.barh(rows, np.zeros(SHOWN), color=plots.BLUE, label="drawn from")
    (dots,) = chart.plot(np.zeros(SHOWN), rows, "D", color=plots.ORANGE, ms=5, label="model, τ = 1", ls="none")
    names = [chart.text(-0.03, row, "", ha="right", va="center", family="monospace") for row in range(SHOWN)]
    chart.set(xlim=(0, 1.05), xlabel="probability of the next character", yticks=(), ylim=(SHOWN - 0.4, -0.6))
    chart.legend(loc="lower right")

    wide, tall = 5.2, height - d.TITLE
    page = d.paper(figure.add_axes((3.7 / width, 0, wide / width, tall / height)), wide, tall)
    size = 14.0
    step, leading, top = 0.602 * size / 72, 0.42, tall - 0.3  # of DejaVu Sans Mono, inches
    marks = PolyCollection([], linewidths=0, zorder=1)
    page.add_collection(marks, autolim=False)
    lines = [
        page.text(0, top - i * leading, "", va="baseline", family="monospace", size=size, zorder=3)
        for i in range(LINES)
    ]
    for (least, strength), x, label in zip(
        SHADES, (2.0, 2.95, 3.75, 4.5), ("25 % and more", "5 %", "1 %", "less"), strict=True
    ):
        x -= 0.65 * (least == SHADES[0][0])
        d.box(page, x, 0.22, "", 0.17, 0.2, plots.ORANGE, strength, zorder=0.5)
        page.text(x + 0.14, 0.22, label, va="center", size=10, color=plots.GREY, zorder=0.5)
    page.text(0, 0.22, "to the model:", va="center", size=10, color=plots.GREY, zorder=0.5)

    def draw(prompt: str, temperature: float, top_k: str, top_p: float) -> Draw:
        k = None if top_k == "all" else int(top_k)
        ids = vocabulary.encode(prompt)[None]  # (1, T)
        logits = model.forward(ids)[0][0, -1]  # (V,)
        written, probability = write_on(model, ids, WRITTEN, np.random.default_rng(8), temperature, k, top_p)
        kept = written >= tasks.FIRST_SYMBOL
        drawn = models.distribution(logits, temperature, k, top_p)
        return Draw(ops.softmax(logits), drawn, read(vocabulary, written), probability[kept])

    def update(prompt: str, temperature: float, top_k: str, top_p: float) -> str:
        usable = "".join(c for c in prompt if c in vocabulary.characters)
        unknown = "".join(sorted(set(prompt) - set(usable)))
        now = draw(usable or vocabulary.characters[0], round(temperature, 2), top_k, round(top_p, 2))
        likeliest = np.argsort(-now.model, kind="stable")[:SHOWN]
        labels = [name_of(vocabulary, int(i)) for i in likeliest]
        for bar, name, label, i in zip(bars, names, labels, likeliest, strict=False):
            bar.set_width(now.drawn[i])
            name.set_text(drawable({"an end": "∎", "space": "␣", "line end": "⏎"}.get(label, label)))
        dots.set_data(now.model[likeliest], rows[: len(likeliest)])
        laid = laid_out(now.text, now.probability)[:LINES]
        squares, colours = [], []
        for i, line in enumerate(lines):
            text, found = laid[i] if i < len(laid) else ("", [])
            line.set_text(drawable(text))
            low, high = top - i * leading - 0.11, top - i * leading + 0.25
            for j, p in enumerate(found):
                strength = next(s for least, s in SHADES if p >= least)
                if strength:
                    squares.append([(j * step, low), ((j + 1) * step, low), ((j + 1) * step, high), (j * step, high)])
                    colours.append(d.tint(plots.ORANGE, strength))
        marks.set_verts(squares)
        marks.set_facecolor(colours or "none")
        possible, rare = int((now.drawn > 0).sum()), int((now.probability < RARE).sum())
        words = words_in(now.text)
        first = "Greedy takes the likeliest" if temperature == 0 else f"{possible} of {len(now.drawn)} can be drawn"
        finding = f"{len(words)} words, {len(set(words))} different; {rare} characters under 1 %"
        if unknown:  # what it has never read it can't go on from
            finding = f"{rare} characters under 1 %; left out: {unknown[:8]}"
        chart.set_title(first)
        page.set_title(drawable(finding))
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


def drawable(text: str) -> str:
    """Put □ for what the figures' font has no letter for, and keep `$` from beginning a formula."""
    letters = _letters()
    return "".join(c if c == "\n" or ord(c) in letters else "□" for c in text).replace("$", r"\$")


@cache
def _letters() -> frozenset[int]:
    from matplotlib import font_manager

    return frozenset(font_manager.get_font(font_manager.findfont("DejaVu Sans Mono")).get_charmap())
