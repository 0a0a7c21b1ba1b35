"""Section 1: a word and its company, 'bank' between water and money."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import short
from lesson_utils.maths import attention
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENSES = {  # (water, money), written by hand
    "bank": (1.0, 1.0), "river": (2.4, 0.2), "swam": (2.0, 0.5), "money": (0.2, 2.6), "lends": (0.4, 2.1),
}  # fmt: skip
OTHER = (0.3, 0.3)
SENTENCES = (
    "she swam to the river bank",
    "the bank lends money",
    "the bank by the river lends money",
    "the bank was closed",
)
LONGEST = max(len(sentence.split()) for sentence in SENTENCES)
BELOW = {"swam", "lends", "other words"}  # labels that stand under their points, clear of their neighbours'


def embed(words: Sequence[str]) -> Array:
    """Give each word two numbers, (water, money); words without either meaning get little of both. Shape (T, 2)."""
    return np.array([SENSES.get(word, OTHER) for word in words])


@live.lab(
    height=3.7,
    neutral="It opens on the sentence in which no word has either sense.",
    sentence=live.Choice("sentence", SENTENCES, SENTENCES[-1]),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
)
def bank_lab(figure: "Figure") -> live.Update:
    """Show how softmax(XXᵀ/τ)X moves 'bank' towards the company it keeps."""
    from matplotlib.patches import Polygon

    plane, chart = figure.subplots(1, 2, width_ratios=(1.2, 1))
    plane.set(xlim=(0, 2.85), ylim=(0, 2.85), xlabel="water", ylabel="money")
    hull = plane.add_patch(Polygon([[0, 0]], fc=drawings.tint(plots.VALUE, 0.13), ec="none", zorder=0.5))
    names = (*SENSES, "other words")
    places = np.array([SENSES.get(name, OTHER) for name in names])
    threads = drawings.Threads(plane, SENSES["bank"], places, plots.BLUE, widest=20)
    dots, labels = [], []
    for name, (x, y) in zip(names, places, strict=True):
        dots += plane.plot([x], [y], "o", color=plots.INK, ms=7, zorder=3)
        offset = (8, -14) if name in BELOW else (8, 5)
        labels.append(plane.annotate(name, (x, y), offset, textcoords="offset points", zorder=4))
    (end,) = plane.plot([], [], "D", color=plots.VALUE, ms=11, zorder=5, label="bank, moved")
    plane.legend(loc="upper right")

    bars = plots.Bars(chart, LONGEST, color=plots.BLUE)
    chart.set(xlim=(0, 1.15), xticks=(0, 0.25, 0.5, 0.75, 1), xlabel="weight that 'bank' gives", yticks=())
    chart.set_ylim(LONGEST - 0.4, -0.6)
    words_at = [chart.text(-0.03, row, "", ha="right", va="center") for row in range(LONGEST)]

    def update(sentence: str, temperature: float) -> str:
        words = sentence.split()
        X = embed(words)  # (T, 2)
        output, weights = attention.scaled_dot_product_attention(X, X, X, scale=1 / temperature)
        i = words.index("bank")
        row, here, there = weights[i], X[i], output[i]
        shares = np.zeros(len(names))  # words without a sense of their own share one place
        for word, weight in zip(words, row, strict=True):
            shares[names.index(word if word in SENSES else names[-1])] += weight
        threads.set(np.where(np.array(names) == "bank", 0, shares))
        used = {word if word in SENSES else names[-1] for word in words}
        for name, dot, label in zip(names, dots, labels, strict=True):
            dot.set_color(plots.INK if name in used else "#C8C8C8")
            label.set_color(plots.INK if name in used else plots.GREY)
            label.set_fontweight("bold" if name == "bank" else "normal")
        hull.set_xy(convex_hull(X))
        end.set_data(there[:1], there[1:])
        bars.set([*row, *[0.0] * (LONGEST - len(row))], [*(f"{w:.2f}" for w in row), *[""] * (LONGEST - len(row))])
        for n, text in enumerate(words_at):
            text.set_text(words[n] if n < len(words) else "")
            text.set_fontweight("bold" if n == i else "normal")
        lean = there[0] - there[1]
        towards = "stays between" if abs(lean) < 0.05 else f"leans to {'water' if lean > 0 else 'money'}"
        plane.set_title(f"'bank' {towards}: ({there[0]:.1f}, {there[1]:.1f})")
        best = int(row.argmax())
        chart.set_title(f"It takes most from {'itself' if best == i else repr(words[best])}: {row[best]:.2f}")
        listed = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, row, strict=True))
        return (
            f"{sentence}: 'bank' {towards}, from ({here[0]}, {here[1]}) to ({there[0]:.2f}, {there[1]:.2f}) on (water, "
            f"money), at temperature {short(temperature)}. Left, lines from 'bank' to the words of the sentence, as "
            f"thick as their weights, and the area that the words span, in which the output lies. Right, the weights: "
            f"{listed}."
        )

    return update


def convex_hull(points: Array) -> Array:
    """Return the corners of the convex hull, in order, (corners, 2): Andrew's monotone chain."""

    def half(way: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        chain: list[tuple[float, ...]] = []
        for x, y in way:
            while len(chain) > 1:
                (a, b), (c, d) = chain[-2:]
                if (c - a) * (y - b) > (d - b) * (x - a):  # a turn to the left
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    way = sorted({tuple(point) for point in points.tolist()})
    return np.array(half(way) + half(way[::-1]) or way)
