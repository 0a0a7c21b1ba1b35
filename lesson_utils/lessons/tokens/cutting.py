"""A text, cut into coloured pieces: merge by merge on one line, and live for any number of merges."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import live, plots
from lesson_utils.lessons.causal_mask.pictures import visible
from lesson_utils.lessons.tokens.pieces import Pair, commonest_pair, learn, spelled
from lesson_utils.lessons.tokens.tables import LEVELS, ORDERS, Measured, measure
from lesson_utils.maths import tasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

MONO = "DejaVu Sans Mono"
GAP = 0.012  # inches, on both sides of a piece
LINE = 60  # characters, where tokens are counted by the line
SHOWN = (
    "A range object will be empty if r[0] does not meet the value constraint. "
    "Is version 9.11 of the strawberry class larger than 9.9?"
)
LETTER, MERGED = d.tint(plots.GREY, 0.13), (d.tint(plots.BLUE, 0.32), d.tint(plots.ORANGE, 0.3))


def characters(vocabulary: tasks.Vocabulary) -> list[str]:
    """Return the text of each id of a vocabulary; padding, begin and end have none."""
    return [""] * tasks.FIRST_SYMBOL + list(vocabulary.characters)


def cut(ids: Sequence[int], ranks: Mapping[Pair, int], base: int) -> list[int]:
    """Cut a short text: of all pairs that are there, merge the one that was learned first, until none is left."""
    ids = list(ids)
    while True:
        known = [ranks[pair] for pair in pairwise(ids) if pair in ranks]
        if not known:
            return ids
        new, merged, at = base + min(known), [], 0
        while at < len(ids):
            together = at + 1 < len(ids) and ranks.get((ids[at], ids[at + 1])) == new - base
            merged.append(new if together else ids[at])
            at += 1 + together
        ids = merged


class Strip:
    """Lines of text in a monospaced font, each piece with a colour of its own: letters grey, merged ones in turn."""

    SIZE, LEADING = 14.0, 0.44  # points; inches
    STEP = 0.602 * SIZE / 72  # the width of a character of DejaVu Sans Mono, inches

    def __init__(self, page: "Axes", top: float, lines: int, columns: int, left: float = 0.0):
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
    figure: "Figure",
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
    finding = f"{count} merges make {len(ids)} pieces of {before} characters"
    ax.set_title(finding)
    return f"{finding}. The line “{line}”, cut again after each merge: {'; '.join(told)}."


def _shown(piece: str) -> str:
    return "".join(map(visible, piece))


def _example() -> tuple["Ids", Measured, tasks.Vocabulary]:
    """Make the figure from a short text; it has fewer merges than the figure can show."""
    text = tasks.python_text()[:6000]
    vocabulary = tasks.text_vocabulary(text + SHOWN)
    ids, base = vocabulary.encode(text), len(vocabulary)
    merges = learn(ids, LEVELS[-1], base)
    return merges, measure(ids[:5000], ids[5000:], merges, base), vocabulary


@live.lab(
    height=3.7,
    neutral="Nothing is merged yet, and the curve has one point.",
    example=_example,
    count=live.Choice("merges", LEVELS, 0),
    reads=live.Choice("pieces read", ORDERS, 1),
    text=live.Word("text", SHOWN, longest=180),
)
def merges_lab(figure: "Figure", merges: "Ids", measured: Measured, vocabulary: tasks.Vocabulary) -> live.Update:
    """Show a text in pieces after so many merges, and what tables of pieces pay for a character."""
    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    wide, tall = 5.5, height - d.TITLE
    page = d.paper(figure.add_axes((0.08 / width, 0, wide / width, tall / height)), wide, tall)
    strip = Strip(page, tall - 0.42, 4, 46)
    note = page.text(0, 1.0, "", va="top", linespacing=1.5)
    chart = figure.add_axes((6.25 / width, 0.6 / height, 2.65 / width, (height - 0.6 - d.TITLE) / height))
    chart.set(xlabel="merges", ylabel="bits a character")
    x = np.log10(1 + np.array(LEVELS))
    bits = measured.bits  # (levels, orders)
    chart.set(xlim=(-0.15, x[-1] + 0.15), ylim=(bits.min() - 0.2, bits.max() + 0.2))
    chart.set_xticks([x[LEVELS.index(n)] for n in (0, 10, 100, 1000)], ["0", "10", "100", "1,000"])
    (curve,) = chart.plot([], [], color=plots.BLUE, marker="o", ms=5)
    (dot,) = chart.plot([], [], "D", color=plots.ORANGE, ms=9)
    names, base = spelled(merges, characters(vocabulary)), len(vocabulary)
    ranks = {(int(a), int(b)): rank for rank, (a, b) in enumerate(merges)}

    def cut_at(text: str, count: int) -> list[str]:
        known = {pair: rank for pair, rank in ranks.items() if rank < count}
        pieces: list[str] = []
        for part in _known_parts(text, vocabulary):
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
        page.set_title(f"{len(pieces)} pieces, after {count:,} merges", x=0)
        chart.set_title(f"{paid:.2f} bits a character")
        unknown = "□" in pieces
        note.set_text(
            f"Held-out text: {a_line:.1f} tokens a line of {LINE} characters,\n"
            f"{measured.characters / measured.tokens[level]:.2f} characters a token.\n"
            + ("□: a character that it does not know" if unknown else "Grey: a single character; blue, orange: merged")
        )
        return (
            f"{len(pieces)} pieces, after {count:,} merges: {' | '.join(map(_shown, pieces))}. Held-out text has "
            f"{a_line:.1f} tokens a line of {LINE} characters. The table that reads {reads} piece{'s' * (reads > 1)} "
            f"pays {paid:.2f} bits a character."
        )

    return update


def _known_parts(text: str, vocabulary: tasks.Vocabulary) -> list[str]:
    """Split a text into runs of characters that the vocabulary has, and single ones that it does not have."""
    parts: list[str] = []
    for character in text:
        known = character in vocabulary.characters
        if parts and known and parts[-1][0] in vocabulary.characters:
            parts[-1] += character
        else:
            parts.append(character)
    return parts
