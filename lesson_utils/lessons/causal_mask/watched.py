"""A language model that is watched in training: a line as questions, rungs to compare with, what it writes."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import plots
from lesson_utils.lessons.causal_mask.leaks import Peeking
from lesson_utils.maths import models, ops, tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

# --- A line of text as questions ------------------------------------------------------------------------------------


def visible(character: str) -> str:
    return {" ": "␣", "\n": "⏎"}.get(character, character)


@plots.still(8.6, 4.7)
def triangle(figure: "Figure", line: str = "The class") -> str:
    """Draw a line as input above target, and the questions in it: each row sees one character more."""
    T = len(line) - 1
    ax = d.sheet(figure)
    size, left, top = 0.46, 2.0, 3.95

    def cell(column: int, y: float, text: str, colour: str, strength: float, **font: Any) -> None:
        d.box(ax, left + column * size, y, text, size - 0.05, 0.36, colour, strength, family="monospace", **font)

    for name, y, text, colour in (
        ("x, the input", top, line[:-1], plots.BLUE),
        ("y, the target", top - 0.42, line[1:], plots.GREEN),
    ):
        ax.text(left - 0.45, y, name, ha="right", va="center", color=colour, weight="bold")
        for t, character in enumerate(text):
            cell(t, y, visible(character), colour, 0.14)
    for t in range(T):
        y = top - 1.02 - 0.385 * t
        ax.text(left - 0.45, y, f"question {t}: given", ha="right", va="center", size=10.5)
        for j in range(T):
            if j <= t:
                cell(j, y, visible(line[j]), plots.BLUE, 0.14)
            else:
                cell(j, y, "", "#CCCCCC", 0.08)
        d.arrow(ax, (left + (T - 0.45) * size, y), (left + (T + 0.6) * size, y))
        cell(T + 1, y, visible(line[t + 1]), plots.GREEN, 0.3, weight="bold")
    ax.set_title(f"A line of {T + 1} characters holds {T} questions, answered in one pass")
    listed = "; ".join(f"given “{line[: t + 1]}” the target is “{line[t + 1]}”" for t in range(T))
    return f"A line of {T + 1} characters holds {T} questions, answered in one pass. Shows a triangle: {listed}."


# --- Bits, and what they feel like ----------------------------------------------------------------------------------


def bits(nats: float) -> float:
    return nats / float(np.log(2))


def windows(ids: "Ids", T: int) -> tuple["Ids", "Ids"]:
    """Cut a whole text into windows that do not overlap: x and y, each (B, T); y[:, t] comes after x[:, t]."""
    B = (len(ids) - 1) // T
    return ids[: B * T].reshape(B, T), ids[1 : B * T + 1].reshape(B, T)


def answers(model: models.GPT, batch: tuple["Ids", "Ids"]) -> Array:
    """Return the probability that a GPT gives to each target: x, y (B, T) → (B, T)."""
    found = []
    for x, y in zip(*(np.array_split(part, max(1, len(part) // 64)) for part in batch), strict=True):
        p = ops.softmax(model.forward(x)[0].astype(float))  # (B, T, V)
        found.append(np.take_along_axis(p, y[..., None], axis=-1)[..., 0])
    return np.concatenate(found)


def window_bits(model: models.GPT, batch: tuple["Ids", "Ids"]) -> Array:
    """Return the mean loss of each window in bits a character: x, y (B, T) → (B,)."""
    return np.asarray(-np.log2(answers(model, batch)).mean(axis=-1))


def uncertain(values: Array) -> Array:
    """Return two standard errors of the mean of independent values, along the last axis."""
    return np.asarray(2 * values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def bigram_entropy(ids: "Ids") -> float:
    """Bits a character that are left for who knows how often each character follows each other one."""
    pairs = np.unique(np.stack([ids[:-1], ids[1:]]), axis=1, return_counts=True)[1] / (len(ids) - 1)
    firsts = np.unique(ids[:-1], return_counts=True)[1] / (len(ids) - 1)
    return float((firsts * np.log2(firsts)).sum() - (pairs * np.log2(pairs)).sum())


def characters(bits: float) -> str:
    """Write the perplexity, as people say it: 106, 23, 8.5."""
    perplexity = 2**bits
    return f"{perplexity:.0f}" if perplexity >= 9.95 else f"{perplexity:.1f}"


@plots.still(9.0, 3.4)
def unsure(figure: "Figure", rungs: Mapping[str, float], finding: str = "") -> str:
    """Bits as tiles: as unsure as between so many equally likely characters.

    Args:
        rungs: name -> bits a character.
        finding: the title. Default: what is left at the last rung, of what there is at the first.
    """
    from matplotlib.collections import PolyCollection

    ax = d.sheet(figure)
    counts = {name: 2**value for name, value in rungs.items()}
    left, tile, names = 3.15, 4.9 / max(counts.values()), list(rungs)
    step = min(0.72, 2.5 / len(names))
    y = 2.7 - step * np.arange(len(names))
    for name, middle in zip(names, y, strict=True):
        count = counts[name]
        ends = [*np.arange(1, int(count) + 1), count] if count % 1 > 0.05 else np.arange(1, round(count) + 1)
        starts = np.arange(len(ends))
        gap, low, high = 0.18 * tile, middle - 0.36 * step, middle + 0.36 * step
        tiles = [
            d.corners(left + a * tile, low, left + b * tile - gap, high) for a, b in zip(starts, ends, strict=True)
        ]
        colour = plots.ORANGE if name == names[-1] else plots.BLUE
        ax.add_collection(PolyCollection(tiles, facecolors=colour, linewidths=0), autolim=False)
        ax.text(left - 0.12, middle, f"{name}: {rungs[name]:.2f} bits", ha="right", va="center")
        ax.text(left + count * tile + 0.08, middle, characters(rungs[name]), va="center", weight="bold")
    ax.text(
        left,
        2.7 - step * (len(names) - 0.5) - 0.1,
        "as unsure as between so many characters, all equally likely",
        color=plots.GREY,
        va="top",
        size=10.5,
    )
    first, last = names[0], names[-1]
    finding = (
        finding
        or f"From {characters(rungs[first])} characters to {characters(rungs[last])}, by knowing what follows what"
    )
    ax.set_title(finding)
    listed = "; ".join(f"{name} {value:.2f} bits, {characters(value)} characters" for name, value in rungs.items())
    return f"{finding}. Shows how many equally likely characters each loss amounts to: {listed}."


# --- Training, watched -----------------------------------------------------------------------------------------------


def words_in(text: str) -> list[str]:
    """Words of at least three letters."""
    return re.findall(r"[^\W\d_]{3,}", text)


def read(vocabulary: tasks.Vocabulary, ids: "Ids") -> str:
    """Decode ids without ends and paddings, which a model that is drawn from freely also gives now and then."""
    return vocabulary.decode(ids[ids >= tasks.FIRST_SYMBOL])


def writes(model: models.GPT, vocabulary: tasks.Vocabulary, prompts: "Ids", length: int, skip: int = 0) -> list[str]:
    """Continue each prompt (B, T) at τ = 0.7, and return all but the first `skip` symbols, most words first.

    Runs of blanks and line ends are written as one blank.
    """
    ids = model.generate(prompts, length, np.random.default_rng(5), 0.7, use_cache=not isinstance(model, Peeking))
    texts = [" ".join(read(vocabulary, row).split()) for row in ids[:, skip:]]
    return sorted(texts, key=lambda text: -len(words_in(text)))


def known_words(text: str) -> frozenset[str]:
    return frozenset(words_in(text))


def word_shares(texts: Sequence[str], known: frozenset[str]) -> tuple[float, float]:
    """Return the share of the words in texts that are known, and the share that are different."""
    words = [word for text in texts for word in words_in(text)]
    count = max(len(words), 1)
    return sum(word in known for word in words) / count, len(set(words)) / count


class Seen(NamedTuple):
    """The measures of a model in training, one after the other."""

    steps: list[int]
    bits: list[float]  # of held-out text
    texts: list[str]
    shares: list[float]  # of real words


class Watch:
    """A callback of `training.fit` that measures the validation loss, has the model write, and prints both at once."""

    def __init__(self, model: models.GPT, vocabulary: tasks.Vocabulary, validation: Any, text: str) -> None:
        self.model, self.vocabulary, self.validation = model, vocabulary, validation
        self.known, self.prompt = known_words(text), text[:1]
        self.seen = Seen([], [], [], [])
        print(HEADINGS)
        self(0)

    def __call__(self, step: int, *_: object) -> None:
        prompts = np.tile(self.vocabulary.encode(self.prompt), (8, 1))  # (8, 1)
        texts = writes(self.model, self.vocabulary, prompts, 120)
        self.seen.steps.append(step)
        self.seen.bits.append(bits(self.model.loss(self.validation)))
        self.seen.texts.append(texts[0])
        self.seen.shares.append(word_shares(texts, self.known)[0])
        _print_row(self.seen, -1)


HEADINGS = "steps   bits   real words   what it writes (of 8 texts, the one with most words)"


def read_along(seen: Seen) -> None:
    """Print what a `Watch` printed while the model was trained."""
    print(HEADINGS)
    for n in range(len(seen.steps)):
        _print_row(seen, n)


def _print_row(seen: Seen, n: int) -> None:
    print(f"{seen.steps[n]:5} {seen.bits[n]:6.2f} {seen.shares[n]:12.0%}   {seen.texts[n][:72]}")
