"""Notebook 11 calls these names as `lab.name`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import formats, live, plots
from lesson_utils.lessons.causal_mask.counting import Table as KneserNey
from lesson_utils.lessons.causal_mask.pictures import visible
from lesson_utils.lessons.tokens.pieces import (
    ARTICLE,
    GPT_4O_TOKENS,
    LEVELS,
    LONGEST,
    ORDERS,
    SMOLLM_TOKENS,
    Measured,
    Table,
    apply,
    characters,
    commonest_pair,
    costs,
    cut,
    learn,
    measure,
    spelled,
    to_bytes,
    walled,
)
from lesson_utils.maths import tasks
from lesson_utils.maths.checks import Array, Ids

# --- 2, 3 · A text, cut into coloured pieces: merge by merge on one line, and live for any number of merges -----------

MONO = "DejaVu Sans Mono"
GAP = 0.012  # inches, on both sides of a piece
LINE = 60  # characters, where tokens are counted by the line
SHOWN = "A range object will be empty if r[0] does not meet the value constraint. "
SHOWN += "How many times does the letter r occur in strawberry?"
LETTER, MERGED = d.tint(plots.GREY, 0.13), (d.tint(plots.BLUE, 0.32), d.tint(plots.ORANGE, 0.3))


class Strip:
    """Lines of text in a monospaced font, each piece with a colour of its own: letters grey, merged ones in turn."""

    SIZE, LEADING = 14.0, 0.44  # points; inches
    STEP = 0.602 * SIZE / 72  # the width of a character of DejaVu Sans Mono, inches

    def __init__(self, page: "plots.Axes", top: float, lines: int, columns: int, left: float = 0.0):
        from matplotlib.collections import PolyCollection

        self.left, self.top, self.columns = left, top, columns
        self.tiles = PolyCollection([], linewidths=0, zorder=1)
        page.add_collection(self.tiles, autolim=False)
        look: dict[str, Any] = {"va": "baseline", "family": "monospace", "size": self.SIZE, "zorder": 3}
        self.lines = [page.text(left, top - i * self.LEADING, "", **look) for i in range(lines)]

    def set(self, pieces: Sequence[str]) -> None:
        """Write the pieces one behind the other; a piece that does not fit on its line goes on in the next one."""
        text, squares, colours, merged = "", [], [], 0
        for piece in pieces:
            start, end = len(text), len(text) + len(piece)
            colour = LETTER if len(piece) == 1 else MERGED[merged % 2]
            merged += len(piece) > 1
            for row in range(start // self.columns, (end - 1) // self.columns + 1):
                left, right = (np.clip(n - row * self.columns, 0, self.columns) * self.STEP for n in (start, end))
                low = self.top - row * self.LEADING - 0.1
                squares.append(d.corners(self.left + left + GAP, low, self.left + right - GAP, low + 0.34))
                colours.append(colour)
            text += "".join(map(visible, piece))
        for i, line in enumerate(self.lines):
            line.set_text(d.drawable(text[i * self.columns : (i + 1) * self.columns], MONO))
        self.tiles.set_verts(squares)
        self.tiles.set_facecolor(colours or "none")


@plots.still(7.8, 3.5)
def by_hand(
    figure: "plots.Figure",
    merge: Callable[..., Any],
    vocabulary: tasks.Vocabulary,
    line: str = "the theme of the other thesis",
    count: int = 6,
) -> str:
    """Draw a line before and after each of its first merges.

    Args:
        merge: `merge(ids, pair, new)`, the learner's.
    """
    ax = d.sheet(figure)
    ids, names, told = vocabulary.encode(line), characters(vocabulary), []
    before = len(ids)
    for n in range(count + 1):
        y = 2.75 - 0.44 * n
        if n:
            new = len(names)
            first, second = commonest_pair(ids, new)
            ids = np.asarray(merge(ids, (first, second), new))
            names.append(names[first] + names[second])
            told.append(f"{_shown(names[first])} + {_shown(names[second])}")
        strip = Strip(ax, y, 1, len(line))
        strip.set([names[id_] for id_ in ids])
        right = strip.STEP * len(line) + 0.25
        ax.text(right, y, f"{len(ids)} pieces", va="baseline")
        ax.text(right + 1.1, y, f"merge {told[-1]}" if n else "", va="baseline", family="monospace", size=12)
    ax.set_title(f"{count} merges make {len(ids)} pieces of {before} characters")
    return f"… The line “{line}”, cut again after each merge: {'; '.join(told)}."


def _shown(piece: str) -> str:
    return "".join(map(visible, piece))


def _example() -> tuple[Ids, Measured, tasks.Vocabulary]:
    """Make the figure from a short text; it has fewer merges than the figure can show."""
    text = tasks.python_text()[:6000]
    vocabulary = tasks.text_vocabulary(text + SHOWN)
    ids, base = vocabulary.encode(text), len(vocabulary)
    merges = learn(ids, LEVELS[-1], base)
    return merges, measure(ids[:5000], ids[5000:], merges, base), vocabulary


@live.lab(
    height=3.7,
    neutral="Nothing is merged yet, and the curve has one point.",
    telling={"count": 2000},
    example=_example,
    count=live.Choice("merges", LEVELS, 0),
    reads=live.Choice("pieces read", ORDERS, 1),
    text=live.Word("text", SHOWN, longest=180),
)
def merges_lab(figure: "plots.Figure", merges: Ids, measured: Measured, vocabulary: tasks.Vocabulary) -> live.Update:
    """Show a text in pieces after so many merges, and what tables of pieces pay for a character."""
    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    wide, tall = 5.5, height - d.TITLE
    page = d.paper(figure.add_axes((0.08 / width, 0, wide / width, tall / height)), wide, tall)
    strip = Strip(page, tall - 0.42, 4, 46)
    note = page.text(0, 1.0, "", va="top", linespacing=1.5)
    chart = figure.add_axes((6.3 / width, 0.6 / height, 2.6 / width, (height - 0.6 - d.TITLE) / height))
    chart.set(xlabel="merges", ylabel="bits a character")
    x = np.log10(1 + np.array(LEVELS))
    bits = measured.bits  # (levels, orders)
    chart.set(xlim=(-0.15, x[-1] + 0.15), ylim=(bits.min() - 0.2, bits.max() + 0.2))
    chart.set_xticks([x[LEVELS.index(n)] for n in (0, 10, 100, 1000)], ["0", "10", "100", "1,000"])
    (curve,) = chart.plot([], [], color=plots.BLUE, marker="o", ms=5)
    (dot,) = chart.plot([], [], "D", color=plots.ORANGE, ms=9)
    names, base = spelled(merges, characters(vocabulary)), len(vocabulary)
    ranks = {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}
    parts = re.compile(f"[{re.escape(''.join(vocabulary.characters))}]+|.", re.DOTALL)  # that are known, and others

    def cut_at(text: str, count: int) -> list[str]:
        known = {pair: rank for pair, rank in ranks.items() if rank < count}
        pieces: list[str] = []
        for part in parts.findall(text):
            unknown = part[0] not in vocabulary.characters
            pieces += ["□"] if unknown else [names[id_] for id_ in cut(vocabulary.encode(part).tolist(), known, base)]
        return pieces

    def update(count: int, reads: int, text: str) -> str:
        pieces = cut_at(text, count)
        strip.set(pieces)
        level, order = LEVELS.index(count), ORDERS.index(reads)
        a_line = LINE * measured.tokens[level] / measured.characters
        paid = bits[level, order]
        curve.set_data(x[: level + 1], bits[: level + 1, order])
        dot.set_data([x[level]], [paid])
        page.set_title(f"This text in {len(pieces)} pieces, after {count:,} merges", x=0)
        chart.set_title(f"{paid:.2f} bits a character")
        unknown = "□" in pieces
        note.set_text(
            f"Held-out text: {a_line:.1f} tokens a line of {LINE} characters,\n"
            f"{measured.characters / measured.tokens[level]:.2f} characters a token.\n"
            + ("□: a character that it does not know" if unknown else "Grey: a single character; blue, orange: merged")
        )
        return (
            f"… The text in pieces: {_listed(pieces)}. Held-out text has {a_line:.1f} tokens a line of {LINE} "
            f"characters. These bits are paid by the table that reads {reads} piece{'s' * (reads > 1)}."
        )

    return update


@plots.still(8.6, 3.9)
def look_back(figure: "plots.Figure", measured: Measured, farthest: float = 12.9) -> str:
    """Draw what tables pay, by how many characters they look back on average."""
    ax = figure.add_subplot(xlabel="characters that the table looks back, on average", ylabel="bits a character")
    name = f"reads 1 to {LONGEST} characters"
    ax.plot(range(1, 1 + LONGEST), measured.letters, color=plots.GREEN, ls=":", marker="s", label=name)
    looks = ((0, "1 piece", plots.BLUE, "-", "o"), (1, "2 pieces", plots.ORANGE, "--", "D"))
    told = []
    for column, name, colour, line, mark in looks:
        x, y = measured.back[:, column], measured.bits[:, column]
        ax.plot(x, y, color=colour, ls=line, marker=mark, ms=5, label=f"reads {name}, 0 to {LEVELS[-1]:,} merges")
        listed = (f"{n} merges {b:.2f} at {a:.1f}" for n, a, b in zip(LEVELS, x, y, strict=True))
        told.append(f"{name}: {', '.join(listed)}")
    ax.set(xlim=(0.7, farthest))
    ax.legend(loc="upper right")
    best, pairs = measured.letters.min(), measured.bits[:, 1]
    far = measured.back[pairs.argmin(), 1]
    ax.set_title(
        f"Characters pay {best:.2f} bits at best, looking {1 + measured.letters.argmin()} back; "
        f"pieces {pairs.min():.2f}, looking {far:.1f} back"
    )
    letters = formats.each(range(1, 1 + LONGEST), measured.letters)
    return f"… Bits a character, by characters looked back. Characters: {letters}. {'. '.join(told)}."


# --- 5 · A counter of r's, which learns from words and their counts, and reads letters or pieces ----------------------

SIZES = (25, 50, 100, 200, 400, 800)  # how many words are learned from
STARTS = 10  # different shuffles of the words
Learn = Callable[[Array, Array], Array]


class Judged(NamedTuple):
    """What a counter makes of all other words, by how many words it has learned from."""

    right: Array  # shares of all these words, (starts, sizes)
    new: Array  # shares of words that have an id which none of the learned ones has, (sizes,)


def words_of(text: str) -> list[str]:
    """Return the different words of a text in small letters, of four letters or more, in order."""
    return sorted(set(re.findall(r"(?<![A-Za-z])[a-z]{4,}(?![A-Za-z])", text)))


def bags(words: Sequence[str], vocabulary: tasks.Vocabulary, merges: Ids) -> Array:
    """Return how often each piece occurs in each word, (words, pieces); of the pieces that occur."""
    base, ranks = len(vocabulary), {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}
    found = np.zeros((len(words), base + len(merges)))
    for row, word in zip(found, words, strict=True):
        np.add.at(row, cut(vocabulary.encode(word).tolist(), ranks, base), 1)
    return found[:, found.any(axis=0)]


def count_letters(learn: Learn, X: Array, counts: Array, sizes: Sequence[int] = SIZES, starts: int = STARTS) -> Judged:
    """Learn to count a letter from some words, and judge on all others, for several shuffles of the words.

    Args:
        learn: the numbers of the ids, from the rows of X that are learned from, and their counts.
        X: how often each id occurs in each word, (words, ids).
        counts: how often the letter does, (words,).
    """
    right, new = np.zeros((2, starts, len(sizes)))
    for start in range(starts):
        order = np.random.default_rng(start).permutation(len(X))
        for column, size in enumerate(sizes):
            learned, asked = order[:size], order[size:]
            found = np.round(X[asked] @ learn(X[learned], counts[learned]))
            right[start, column] = (found == counts[asked]).mean()
            new[start, column] = X[asked][:, ~X[learned].any(axis=0)].any(axis=1).mean()
    return Judged(right, new.mean(axis=0))


@plots.still(8.6, 3.6)
def counters_plot(figure: "plots.Figure", counters: Mapping[str, Judged], always: float) -> str:
    """Draw the share of new words that is counted right, by the number of words learned from, with its spread.

    Args:
        counters: what it reads -> what it gets right.
        always: the share that is right for who always says the commonest number.
    """
    ax = figure.add_subplot(xlabel="words that it has learned from", ylabel="right, of all other words", xscale="log")
    looks = [(plots.BLUE, "-", "o"), (plots.ORANGE, "--", "D"), (plots.GREEN, "-.", "s"), (plots.PURPLE, ":", "^")]
    for (name, counter), (colour, line, mark) in zip(counters.items(), looks, strict=False):
        mean, low, high = (f(counter.right, axis=0) for f in (np.mean, np.min, np.max))
        ax.fill_between(SIZES, low, high, color=colour, alpha=0.15, lw=0)
        ax.plot(SIZES, mean, color=colour, ls=line, marker=mark, label=name)
    ax.axhline(always, color=plots.GREY, lw=1.2, label="always the commonest number")
    ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
    ax.minorticks_off()
    ax.set(ylim=(0, 1.04))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    ax.legend(loc="lower right")
    shares = {name: counter.right.mean(axis=0) for name, counter in counters.items()}
    ax.set_title(f"After {SIZES[2]} words: " + ", ".join(f"{name} {100 * y[2]:.0f} %" for name, y in shares.items()))
    listed = "; ".join(f"{name}: {formats.each(SIZES, y)}" for name, y in shares.items())
    return (
        f"… of new words are counted right. Means of {STARTS} shuffles, by words learned from: {listed}; always the "
        f"commonest number: {always:.2f}."
    )


ASKED = ("strawberry", " strawberry", "Strawberry")

# What the tokenizer of SmolLM2-135M makes of them; a test compares, where the model is installed.
SMOLLM: dict[str, tuple[str, ...]] = {
    "strawberry": ("st", "raw", "berry"),
    " strawberry": (" strawberry",),
    "Strawberry": ("St", "raw", "berry"),
}


@plots.still(8.4, 2.1)
def asked_plot(figure: "plots.Figure", merges: Ids, vocabulary: tasks.Vocabulary) -> str:
    """Draw how the notebook's tokenizer and a real one cut a word."""
    ax = d.sheet(figure)
    base, names = len(vocabulary), spelled(merges, characters(vocabulary))
    ranks = {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}
    ours = {text: [names[id_] for id_ in cut(vocabulary.encode(text).tolist(), ranks, base)] for text in ASKED}
    columns = ((0.1, f"this notebook's, {len(merges):,} merges", ours), (4.3, "SmolLM2's, 48,900 merges", SMOLLM))
    for left, name, found in columns:
        ax.text(left, 1.4, name, weight="bold", color=plots.GREY)
        for row, text in enumerate(ASKED):
            strip = Strip(ax, 0.98 - 0.41 * row, 1, 12, left=left)
            strip.set(found[text])
            count = len(found[text])
            ax.text(left + 1.75, 0.98 - 0.41 * row, f"{count} piece{'s' * (count > 1)}", color=plots.GREY)
    first = ASKED[0]
    count, theirs = len(ours[first]), len(SMOLLM[first])
    ax.set_title(f"“{first}” has {len(first)} letters, {count} pieces here, and {theirs} in SmolLM2")
    told = (f"“{text}”: {_listed(ours[text])}; {_listed(SMOLLM[text])}" for text in ASKED)
    return f"… Cut by this notebook's tokenizer; by SmolLM2's. {'. '.join(told)}."


def _listed(pieces: Sequence[str]) -> str:
    return " | ".join(map(_shown, pieces))
