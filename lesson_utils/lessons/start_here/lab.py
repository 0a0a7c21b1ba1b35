"""Notebook 00: a slider in the first minute."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils import live, ops, plots
from lesson_utils.lessons import as_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = ("the", "cat", "did", "not", "cross", "the", "street", "because", "it", "was", "too", "tired")  # or "wide"
# How well each word answers "what does 'it' stand for?": written by hand, for two ways to end the sentence.
SCORES = {
    "tired": np.array([0.0, 3.2, -0.5, -0.5, 0.6, 0.0, 2.2, -1.0, 1.2, 0.2, 0.0, 0.5]),
    "wide": np.array([0.0, 2.0, -0.5, -0.5, 0.6, 0.0, 3.3, -1.0, 1.2, 0.2, 0.0, 0.5]),
}


@live.lab(
    height=3.3,
    ending=live.Choice("… because it was too", ("tired", "wide"), "tired"),
    temperature=live.LogSlider("temperature τ", 0.1, 100, 1.0),
)
def first_look(figure: "Figure") -> live.Update:
    """What 'it' looks at: one row of attention weights."""
    ax = figure.add_subplot(
        ylim=(0, 1.12), yticks=(0, 0.25, 0.5, 0.75, 1), ylabel="weight", xlabel="the words that 'it' can look at"
    )
    bars = ax.bar(range(len(WORDS)), np.zeros(len(WORDS)), color=plots.BLUE)
    numbers = [ax.text(i, 0, "", ha="center", va="bottom") for i in range(len(WORDS))]
    ax.set_xticks(range(len(WORDS)), [*WORDS[:-1], ""])
    # The last word changes. As a text of its own it is drawn alone; as a tick's, the whole axis would be.
    last = ax.text(len(WORDS) - 1, -0.038, WORDS[-1], ha="center", va="top", transform=ax.get_xaxis_transform())

    def update(ending: str, temperature: float) -> str:
        words = (*WORDS[:-1], ending)
        weights = ops.softmax(SCORES[ending], temperature=temperature)
        last.set_text(ending)
        for bar, number, weight in zip(bars, numbers, weights, strict=True):
            bar.set_height(weight)
            number.set_y(weight + 0.01)
            number.set_text(f"{weight:.2f}" if weight >= 0.05 else "")
        best = int(weights.argmax())
        finding = f"'it' puts {weights[best]:.2f} on '{words[best]}'"
        if weights.max() - weights.min() < 0.01:
            finding = f"'it' looks at every word alike: {weights.mean():.2f} each"
        ax.set_title(f"… too {ending}: {finding}")
        rest = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, weights, strict=True))
        return f"… too {ending}: {finding}, at temperature {plots.short(temperature)}. Bars, one a word: {rest}."

    return update
