"""How many r's? A counter that learns from words and their counts, and reads letters or pieces."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import plots
from lesson_utils.lessons.tokens.cutting import LETTER, MERGED, MONO, Strip, characters, cut
from lesson_utils.lessons.tokens.pieces import spelled
from lesson_utils.maths import tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

SIZES = (25, 50, 100, 200, 400, 800, 1600)  # how many words are learned from
STARTS = 5  # different shuffles of the words


class Counter(NamedTuple):
    """What a counter gets right of the words that it has not learned from, by how many it has learned from."""

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


def learned_weights(X: Array, y: Array) -> Array:
    """Return a number for each piece, so that their sum is the count: least squares, the shortest such numbers."""
    weights: Array = X.T @ np.linalg.solve(X @ X.T + 1e-6 * np.eye(len(X)), y)
    return weights


def count_letters(X: Array, counts: Array, sizes: Sequence[int] = SIZES, starts: int = STARTS) -> Counter:
    """Learn to count a letter from some words, and judge on the others; means of several shuffles.

    Args:
        X: how often each piece occurs in each word, (words, pieces).
        counts: how often the letter does, (words,).
    """
    found = np.full((3, starts, len(sizes)), np.nan)
    for start in range(starts):
        order = np.random.default_rng(start).permutation(len(X))
        for column, size in enumerate(sizes):
            learned, asked = order[:size], order[size:]
            right = np.round(X[asked] @ learned_weights(X[learned], counts[learned])) == counts[asked]
            known = ~(X[asked][:, ~X[learned].any(axis=0)]).any(axis=1)
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
    ax.axhline(always, color=plots.GREY, lw=1.2, ls=":", label="always the commonest number")
    ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
    ax.minorticks_off()
    ax.set(ylim=(0, 1.04))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    ax.legend(loc="lower right")
    first, last = list(counters)[0], list(counters)[-1]
    finding = f"After {SIZES[2]} words: {counters[first].right[2]:.0%} right by letters, {counters[last].right[2]:.0%} by pieces"
    finding = finding.replace("%", " %")
    ax.set_title(finding)
    listed = "; ".join(
        f"{name}: " + ", ".join(f"{n} {value:.2f}" for n, value in zip(SIZES, counter.right, strict=True))
        for name, counter in counters.items()
    )
    return f"{finding}. Share of new words whose {letter}'s are counted right, by words learned from: {listed}; always the commonest number: {always:.2f}."


ASKED = ("strawberry", " strawberry", "Strawberry", "9.11", "9.9", "3.11", "1234567")
# What the tokenizer of SmolLM2-135M makes of them; a test compares, where the model is installed.
SMOLLM: dict[str, tuple[str, ...]] = {}


@plots.still(8.4, 3.6)
def asked_plot(figure: "Figure", merges: "Ids", vocabulary: tasks.Vocabulary) -> str:
    """Draw how the notebook's tokenizer and a real one cut words and numbers."""
    ax = d.sheet(figure)
    base, names = len(vocabulary), spelled(merges, characters(vocabulary))
    ranks = {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}
    told = []
    columns = (0.0, f"ours, {len(merges):,} merges"), (4.0, "SmolLM2's, 48,900 merges")
    for left, name in columns:
        ax.text(left, 2.9, name, weight="bold", color=plots.GREY)
    for row, text in enumerate(ASKED):
        ours = [names[id_] for id_ in cut(vocabulary.encode(text).tolist(), ranks, base)]
        for (left, _), pieces in zip(columns, (ours, SMOLLM[text]), strict=True):
            _tiles(ax, left, 2.5 - 0.4 * row, pieces)
        told.append(f"“{text}”: {' | '.join(ours)} and {' | '.join(SMOLLM[text])}")
    one = " and ".join(f"{len(pieces)}" for pieces in (cut(vocabulary.encode(ASKED[0]).tolist(), ranks, base), SMOLLM[ASKED[0]]))
    finding = f"“strawberry” has 10 letters, and here {one} pieces"
    ax.set_title(finding)
    return f"{finding}. Ours and SmolLM2's: {'; '.join(told)}."
