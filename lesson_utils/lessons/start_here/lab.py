"""Notebook 00 calls these names as `lab.name`: what 'it' looks at, what 'it' becomes of it, and a head that learns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import each, short
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array

# The sentence follows Jakob Uszkoreit's, "The animal didn't cross the street because it was too tired": "Transformer: A
# Novel Neural Network Architecture for Language Understanding", Google AI blog, 2017. The last word can also be "wide".
WORDS = ("the", "cat", "did", "not", "cross", "the", "street", "because", "it", "was", "too", "tired")
IT = WORDS.index("it")
# How well each word answers "what does 'it' stand for?": written by hand, for two ways to end the sentence.
SCORES = {
    "tired": np.array([0.0, 3.2, -0.5, -0.5, 0.6, 0.0, 2.2, -1.0, 1.2, 0.2, 0.0, 0.5]),
    "wide": np.array([0.0, 2.0, -0.5, -0.5, 0.6, 0.0, 3.3, -1.0, 1.2, 0.2, 0.0, 0.5]),
}
TEMPERATURE = live.LogSlider("temperature τ", 0.1, 100, 100)
FALL = [t for t in reversed(TEMPERATURE.values()) if t >= 1]  # from 100 to 1
# Two numbers for each word, written by hand, too: how much of an animal it is, and how much of a place.
VALUES = np.full((len(WORDS), 2), 0.5)
VALUES[WORDS.index("cat")] = 3.0, 0.4
VALUES[WORDS.index("street")] = 0.4, 3.0
VALUES[WORDS.index("cross")] = 1.2, 1.6
VALUES[IT] = 1.0, 1.0


class Sentence:
    """The sentence on a sheet, with lines from 'it' to each word, as thick as the attention weight."""

    def __init__(self, figure: "plots.Figure", longest: str = WORDS[-1]):
        self.ax = drawings.sheet(figure)
        right, y = self.ax.get_xlim()[1], 0.62
        xs = drawings.spread((*WORDS[:-1], longest), 0.0, right)
        ends = np.stack([xs, np.full(len(xs), y + 0.17)], axis=-1)  # (12, 2)
        self.threads = drawings.Threads(self.ax, ends[IT], ends, widest=20, rise=1.5)
        under: dict[str, Any] = {"ha": "center", "va": "top", "zorder": 3}
        self.texts = [self.ax.text(x, y, word, fontsize=13, **under) for x, word in zip(xs, WORDS, strict=True)]
        self.numbers = [self.ax.text(x, y - 0.32, "", color=plots.GREY, **under) for x in xs]

    def show(self, ending: str, weights: Array) -> str:
        """Draw the weights, title the figure with the word that gets most, and return the weights as text."""
        self.threads.set(weights)
        self.texts[-1].set_text(drawings.drawable(ending))
        best, alike = int(weights.argmax()), bool(np.ptp(weights) < 0.01)
        for i, (text, number, weight) in enumerate(zip(self.texts, self.numbers, weights, strict=True)):
            text.set_fontweight("bold" if i == IT or (i == best and not alike) else "normal")
            number.set_text(f"{weight:.2f}" if weights.any() else "")
        finding = f"'it' puts {weights[best]:.2f} on '{(*WORDS[:-1], ending)[best]}'"
        if alike:
            finding = f"'it' looks at every word alike: {weights.min():.2f} to {weights.max():.2f} each"
        self.ax.set_title(f"… too {ending}: {finding}")
        return f"Lines from 'it' to each word, as thick as the weight: {each((*WORDS[:-1], ending), weights)}."


@live.lab(
    width=6.6,  # so that on a phone "it" is in sight, too
    height=2.9,
    neutral="At the highest temperature every word has nearly the same weight.",
    telling={"temperature": 1.0},
    plays=[*({"temperature": t} for t in FALL), *[{"temperature": 1.0}] * 7, {"temperature": 1.0, "ending": "wide"}],
    ending=live.Choice("… because it was too", ("tired", "wide"), "tired"),
    temperature=TEMPERATURE,
)
def first_look(figure: "plots.Figure") -> live.Update:
    """Draw lines from 'it' to each word, by scores that were written by hand."""
    sentence = Sentence(figure)

    def update(ending: str, temperature: float) -> str:
        told = sentence.show(ending, ops.softmax(SCORES[ending], temperature=temperature))
        return f"… At temperature {short(temperature)}. {told}"

    return update


@live.lab(
    width=7.0,
    height=3.9,
    telling=[{"ending": "tired"}, {"ending": "wide"}],
    example=lambda: lambda weights, values: weights @ values,
    ending=live.Choice("… because it was too", ("tired", "wide"), "tired"),
    temperature=live.LogSlider("temperature τ", 0.1, 100, 1.0),
)
def moving_it(figure: "plots.Figure", average: Callable[..., Any]) -> live.Update:
    """Draw the words in a plane, and where the weighted average of their vectors takes 'it'.

    Args:
        average: `average(weights, values)`, the learner's.
    """
    ax = figure.add_subplot(xlim=(0, 3.6), ylim=(0, 3.6), xlabel="how much of an animal", ylabel="how much of a place")
    named = [WORDS.index(word) for word in ("cat", "street", "cross", "it")]
    dots = ax.scatter(*VALUES.T, color=plots.INK, zorder=3)
    for n in named:
        ax.annotate(WORDS[n], VALUES[n], (12, 6), textcoords="offset points", fontsize=12)
    ax.annotate("all other words", VALUES[0], (9, -14), textcoords="offset points", color=plots.GREY)
    (way,) = ax.plot([], [], color=plots.BLUE, lw=3)
    (end,) = ax.plot([], [], "D", color=plots.BLUE, ms=12, zorder=4, label="the new 'it'")
    ax.legend(loc="upper right")

    def update(ending: str, temperature: float) -> str:
        weights = ops.softmax(SCORES[ending], temperature=temperature)
        new = np.asarray(average(weights, VALUES))  # (2,)
        dots.set_sizes(20 + 600 * weights)
        way.set_data(*zip(VALUES[IT], new, strict=True))
        end.set_data([new[0]], [new[1]])
        towards = "the cat" if new[0] > new[1] + 0.2 else "the street" if new[1] > new[0] + 0.2 else "neither"
        ax.set_title(f"… too {ending}: 'it' moves towards {towards}")
        return (
            f"… At temperature {short(temperature)} the weighted average takes 'it' from (1, 1) to ({new[0]:.2f}, "
            f"{new[1]:.2f}). The words are dots in a plane, sized by their weights."
        )

    return update


@live.lab(
    width=7.0,
    height=2.9,
    telling=[{"ending": "tired"}, {"ending": "wide"}],
    example=lambda: lambda words: None if words[-1] == "" else ops.softmax(SCORES["wide"]),
    ending=live.Word("… because it was too", "tired", longest=10),
)
def learned_look(figure: "plots.Figure", look: Callable[[Sequence[str]], Array | None]) -> live.Update:
    """Draw where the head that has learned looks, for any ending.

    Args:
        look: `look(words)`, the weights of the words, or None for an ending that it has never read.
    """
    sentence = Sentence(figure, longest="n" * 10)

    def update(ending: str) -> str:
        ending = ending.strip(" .!?").lower()
        weights = look((*WORDS[:-1], ending))
        told = sentence.show(ending, np.zeros(len(WORDS)) if weights is None else weights)
        if weights is not None:
            return f"… {told}"
        never = f"It has read no sentence with “too {drawings.drawable(ending)}”, so it has learned no query for it"
        sentence.ax.set_title(never if ending else "Type a word")
        return "… The sentence, without lines."

    return update
