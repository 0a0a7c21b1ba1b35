"""A word and its company: 'bank' between water and money."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.maths import attention
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENSES = {  # (water, money), written by hand
    "bank": (1.6, 1.6), "river": (2.5, 0.2), "swam": (2.0, 0.5), "money": (0.2, 2.5), "lends": (0.4, 2.1),
}  # fmt: skip
OTHER = (0.3, 0.3)
SENTENCES = (
    "she swam to the river bank",
    "the bank lends money",
    "the bank by the river lends money",
    "the bank was closed",
)
PAPER = (5.0, 3.2)


def embed(words: Sequence[str]) -> Array:
    """Give each word two numbers, (water, money); words without either meaning get little of both. Shape (T, 2)."""
    return np.array([SENSES.get(word, OTHER) for word in words])


@live.lab(
    height=3.9,
    neutral="It opens on the sentence in which no word has either sense.",
    sentence=live.Choice("sentence", SENTENCES, SENTENCES[-1]),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
)
def bank_lab(figure: "Figure") -> live.Update:
    """Show how softmax(XXᵀ/√d)X moves 'bank' towards the company it keeps."""
    from matplotlib.collections import LineCollection

    plane, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
    plane.set(xlim=(0, 3), ylim=(0, 3), xlabel="water", ylabel="money", aspect="equal")
    plane.plot([0, 3], [0, 3], color="#BBBBBB", ls=":", lw=1.5, zorder=0.5)
    for word, (x, y) in {**SENSES, "all other words": OTHER}.items():
        # Below what moves: so they need not be drawn again at each step.
        plane.plot([x], [y], "o", color=plots.INK if word == "bank" else plots.GREY, ms=6, zorder=1)
        plane.annotate(word, (x, y), (7, 4), textcoords="offset points", zorder=1)
    pulls = LineCollection([], colors=[plots.VALUE], linewidths=1.4, zorder=2)
    plane.add_collection(pulls, autolim=False)
    (path,) = plane.plot([], [], color=plots.VALUE, lw=3.5)
    (end,) = plane.plot([], [], "D", color=plots.VALUE, ms=10)

    drawings.paper(right, *PAPER)
    lines: dict[str, tuple[drawings.Threads, list[Any], list[Any]]] = {}
    for text in SENTENCES:
        words = text.split()
        xs, y = drawings.spread(words, 0.1, PAPER[0] - 0.2), 0.75
        i = words.index("bank")
        threads = drawings.Threads(
            right, (xs[i], y + 0.08), np.stack([xs, np.full(len(xs), y + 0.08)], axis=-1), rise=1.7, widest=18
        )
        labels = [
            right.text(x, y - 0.1, word, ha="center", va="top", weight="bold" if n == i else "normal", zorder=3)
            for n, (x, word) in enumerate(zip(xs, words, strict=True))
        ]
        numbers = [right.text(x, y - 0.42, "", ha="center", va="top", color=plots.GREY, zorder=3) for x in xs]
        lines[text] = threads, labels, numbers

    def update(sentence: str, temperature: float) -> str:
        words = sentence.split()
        X = embed(words)  # (T, 2)
        output, weights = attention.scaled_dot_product_attention(X, X, X, scale=1 / (np.sqrt(2) * temperature))
        i = words.index("bank")
        row, here, there = weights[i], X[i], output[i]
        pulls.set_segments([[here, here + weight * (x - here)] for weight, x in zip(row, X, strict=True)])
        path.set_data(*np.stack([here, there], axis=-1))
        end.set_data(there[:1], there[1:])
        for text, (threads, labels, numbers) in lines.items():
            shown = text == sentence
            for artist in (threads.lines, *labels, *numbers):
                artist.set_visible(shown)
            if shown:
                threads.set(row)
                for number, weight in zip(numbers, row, strict=True):
                    number.set_text(f"{weight:.2f}")
        lean = there[0] - there[1]
        towards = "'bank' stays between" if abs(lean) < 0.05 else f"'bank' leans to {'water' if lean > 0 else 'money'}"
        plane.set_title(f"{towards}: ({there[0]:.1f}, {there[1]:.1f})")
        right.set_title(f"It keeps {row[i]:.2f} of its attention for itself")
        listed = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, row, strict=True))
        return (
            f"{sentence}: {towards}, from ({here[0]}, {here[1]}) to ({there[0]:.2f}, {there[1]:.2f}) on (water, "
            f"money). Lines from 'bank' to each word, as thick as its weight: {listed}."
        )

    return update
