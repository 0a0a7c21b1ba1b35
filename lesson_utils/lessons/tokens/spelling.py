"""A counter of r's, which learns from words and their counts, and reads letters or pieces."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import plots
from lesson_utils.lessons.causal_mask.pictures import visible
from lesson_utils.lessons.tokens.cutting import Strip, characters, cut
from lesson_utils.lessons.tokens.pieces import spelled
from lesson_utils.maths import tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

SIZES = (25, 50, 100, 200, 400, 800)  # how many words are learned from
STARTS = 3  # different shuffles of the words


class Counter(NamedTuple):
    """The shares of new words that a counter gets right, by how many words it has learned from."""

    right: Array  # shares of all these words, (sizes,)
    known: Array  # shares of those whose pieces have all occurred, (sizes,)
    unknown: Array  # shares of the others; NaN where there are none


def words_of(text: str) -> list[str]:
    """Return the different words of a text in small letters, of four letters or more, in order."""
    return sorted(set(re.findall(r"(?<![A-Za-z])[a-z]{4,}(?![A-Za-z])", text)))


def bags(words: Sequence[str], vocabulary: tasks.Vocabulary, merges: "Ids") -> Array:
    """Return how often each piece occurs in each word, (words, pieces)."""
    base, ranks = len(vocabulary), {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}
    found = np.zeros((len(words), base + len(merges)))
    for row, word in zip(found, words, strict=True):
        np.add.at(row, cut(vocabulary.encode(word).tolist(), ranks, base), 1)
    return found


def count_letters(X: Array, counts: Array, sizes: Sequence[int] = SIZES, starts: int = STARTS) -> Counter:
    """Learn to count a letter from some words, and judge on all others; means of several shuffles.

    The counter adds up a number for each piece of a word. Least squares finds the numbers; where several would do, it
    takes the smallest ones, so a piece that it has never met counts 0.

    Args:
        X: how often each piece occurs in each word, (words, pieces).
        counts: how often the letter does, (words,).
    """
    X = X[:, X.any(axis=0)]
    products = X @ X.T  # (words, words): all that least squares asks of the words
    found = np.full((3, starts, len(sizes)), np.nan)
    for start in range(starts):
        order = np.random.default_rng(start).permutation(len(X))
        for column, size in enumerate(sizes):
            learned, asked = order[:size], order[size:]
            some = products[np.ix_(learned, learned)] + 1e-6 * np.eye(size)
            said = products[np.ix_(asked, learned)] @ np.linalg.solve(some, counts[learned])
            right = np.round(said) == counts[asked]
            known = ~X[asked][:, ~X[learned].any(axis=0)].any(axis=1)
            found[0, start, column] = right.mean()
            for row, which in ((1, known), (2, ~known)):
                if which.any():
                    found[row, start, column] = right[which].mean()
    return Counter(*(np.array([_mean(column) for column in part.T]) for part in found))


def _mean(values: Array) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")


@plots.still(8.6, 3.9)
def counters_plot(figure: "Figure", counters: Mapping[str, Counter], always: float, letter: str = "r") -> str:
    """Draw the share of new words that is counted right, by the number of words learned from.

    Args:
        counters: what it reads -> what it gets right.
        always: the share that is right for who always says the commonest number.
    """
    ax = figure.add_subplot(xlabel="words that it has learned from", ylabel="right, of all other words", xscale="log")
    looks = [(plots.BLUE, "-", "o"), (plots.GREEN, "-.", "s"), (plots.ORANGE, "--", "D")]
    for (name, counter), (colour, line, mark) in zip(counters.items(), looks, strict=False):
        ax.plot(SIZES, counter.right, color=colour, ls=line, marker=mark, label=name)
    first, *_, last = counters.values()
    ax.plot(SIZES, last.known, color=plots.ORANGE, lw=1, ls=":")
    ax.text(
        SIZES[0],
        last.known[0] + 0.01,
        "words whose pieces\nhave all occurred",
        va="bottom",
        color=plots.ORANGE,
        size=10,
    )
    ax.plot(SIZES, last.unknown, color=plots.ORANGE, lw=1, ls=":")
    ax.text(SIZES[-1], last.unknown[-1] - 0.09, "words with a new piece", color=plots.ORANGE, ha="right", size=10)
    ax.axhline(always, color=plots.GREY, lw=1.2, ls=":", label="always the commonest number")
    ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
    ax.minorticks_off()
    ax.set(ylim=(0, 1.04))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    ax.legend(loc="lower right")
    finding = f"After {SIZES[2]} words: {first.right[2]:.0%} right by letters, {last.right[2]:.0%} by pieces"
    finding = finding.replace("%", " %")
    ax.set_title(finding)
    listed = "; ".join(
        f"{name}: " + ", ".join(f"{n} {value:.2f}" for n, value in zip(SIZES, counter.right, strict=True))
        for name, counter in counters.items()
    )
    return (
        f"{finding}. Share of new words whose {letter}'s are counted right, by words learned from: {listed}; always "
        f"the commonest number: {always:.2f}. By the last, after {SIZES[-1]} words: {last.known[-1]:.2f} if all pieces "
        f"have occurred, {last.unknown[-1]:.2f} if one has not."
    )


ASKED = ("strawberry", " strawberry", "Strawberry", "9.11", "9.9", "3.11", "1234567")
# What the tokenizer of SmolLM2-135M makes of them; a test compares, where the model is installed.
SMOLLM: dict[str, tuple[str, ...]] = {
    "strawberry": ("st", "raw", "berry"),
    " strawberry": (" strawberry",),
    "Strawberry": ("St", "raw", "berry"),
    "9.11": ("9", ".", "1", "1"),
    "9.9": ("9", ".", "9"),
    "3.11": ("3", ".", "1", "1"),
    "1234567": ("1", "2", "3", "4", "5", "6", "7"),
}


@plots.still(8.4, 3.75)
def asked_plot(figure: "Figure", merges: "Ids", vocabulary: tasks.Vocabulary) -> str:
    """Draw how the notebook's tokenizer and a real one cut words and numbers."""
    ax = d.sheet(figure)
    base, names = len(vocabulary), spelled(merges, characters(vocabulary))
    ranks = {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}
    ours = {text: [names[id_] for id_ in cut(vocabulary.encode(text).tolist(), ranks, base)] for text in ASKED}
    columns = ((0.1, f"this notebook's, {len(merges):,} merges", ours), (4.3, "SmolLM2's, 48,900 merges", SMOLLM))
    for left, name, found in columns:
        ax.text(left, 3.07, name, weight="bold", color=plots.GREY)
        for row, text in enumerate(ASKED):
            strip = Strip(ax, 2.65 - 0.41 * row, 1, 12, left=left)
            strip.set(found[text])
            count = len(found[text])
            ax.text(left + 1.75, 2.65 - 0.41 * row, f"{count} piece{'s' * (count > 1)}", color=plots.GREY)
    first = ASKED[0]
    finding = f"“{first}” has {len(first)} letters, {len(ours[first])} pieces here, and {len(SMOLLM[first])} in SmolLM2"
    ax.set_title(finding)
    told = (f"“{text}”: {_listed(ours[text])}; {_listed(SMOLLM[text])}" for text in ASKED)
    return f"{finding}. Cut by this notebook's tokenizer; by SmolLM2's. {'. '.join(told)}."


def _listed(pieces: Sequence[str]) -> str:
    return " | ".join("".join(map(visible, piece)) for piece in pieces)
