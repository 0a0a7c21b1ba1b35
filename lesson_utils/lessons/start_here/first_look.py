"""A live figure for the first minute: lines from 'it' to the words of its sentence."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import short
from lesson_utils.maths import ops

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The sentence is Jakob Uszkoreit's: "Transformer: A Novel Neural Network Architecture for Language Understanding",
# Google AI blog, 2017. The last word can also be "wide".
WORDS = ("the", "cat", "did", "not", "cross", "the", "street", "because", "it", "was", "too", "tired")
IT = WORDS.index("it")
# How well each word answers "what does 'it' stand for?": written by hand, for two ways to end the sentence.
SCORES = {
    "tired": np.array([0.0, 3.2, -0.5, -0.5, 0.6, 0.0, 2.2, -1.0, 1.2, 0.2, 0.0, 0.5]),
    "wide": np.array([0.0, 2.0, -0.5, -0.5, 0.6, 0.0, 3.3, -1.0, 1.2, 0.2, 0.0, 0.5]),
}


@live.lab(
    height=2.9,
    ending=live.Choice("… because it was too", ("tired", "wide"), "tired"),
    temperature=live.LogSlider("temperature τ", 0.1, 100, 1.0),
)
def first_look(figure: "Figure") -> live.Update:
    """Draw lines from 'it' to each word, as thick as the attention weight."""
    ax = drawings.sheet(figure)
    right, y = ax.get_xlim()[1], 0.62
    xs = drawings.spread(WORDS, 0.0, right)
    ends = np.stack([xs, np.full(len(xs), y + 0.17)], axis=-1)  # (12, 2)
    threads = drawings.Threads(ax, ends[IT], ends, widest=20, rise=1.5)
    under: dict[str, Any] = {"ha": "center", "va": "top", "zorder": 3}
    texts = [ax.text(x, y, word, fontsize=13, **under) for x, word in zip(xs, WORDS, strict=True)]
    numbers = [ax.text(x, y - 0.32, "", color=plots.GREY, **under) for x in xs]

    def update(ending: str, temperature: float) -> str:
        words = (*WORDS[:-1], ending)
        weights = ops.softmax(SCORES[ending], temperature=temperature)
        threads.set(weights)
        texts[-1].set_text(ending)
        best = int(weights.argmax())
        alike = bool(weights.max() - weights.min() < 0.01)
        for i, (text, number, weight) in enumerate(zip(texts, numbers, weights, strict=True)):
            text.set_fontweight("bold" if i == IT or (i == best and not alike) else "normal")
            number.set_text(f"{weight:.2f}")
        finding = f"'it' puts {weights[best]:.2f} on '{words[best]}'"
        if alike:
            finding = f"'it' looks at every word alike: {weights.mean():.2f} each"
        ax.set_title(f"… too {ending}: {finding}")
        rest = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, weights, strict=True))
        return (
            f"… too {ending}: {finding}, at temperature {short(temperature)}. Lines from 'it' to each word of "
            f"the sentence, as thick as the weight: {rest}."
        )

    return update
