"""A word above, its answer below, and between them lines as thick as the weights."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.lessons.bottleneck.experiment import LETTERS, answer, untrained
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TAIL = "qzjvkxwhfgpbmdyu"  # what the slider puts after a word: no words, so that nothing can be guessed
LONGEST = 24  # letters
END = "∎"
WIDTH, HEIGHT, LEFT = 9.4, 4.3, 1.45  # inches; the letters begin at LEFT
READ, WRITTEN, ALONE = 3.35, 1.3, 0.45  # heights of the three rows
SIZE = 15.5  # points
LETTER = 0.602 * SIZE / 72  # inches: the width of every character of the font
THICKEST = 12.0  # points: a weight of 1
AHEAD, BEFORE = "#BBBBBB", "#CBDBE8"  # letters to come, looks gone by


class Said(NamedTuple):
    """The answers of the models to a word."""

    read: str
    notes: tuple[str, ...]  # what was wrong with the word as typed
    written: str  # with END, if it stopped by itself
    weights: Array  # (T, S), a row for each character of `written`
    alone: str  # what the model with one fixed vector writes, likewise


@live.lab(
    width=WIDTH,
    height=HEIGHT,
    example=lambda: (untrained(), {"Luong": untrained("general"), "Bahdanau": untrained("additive")}),
    word=live.Word("word", "attention", longest=40),
    more=live.Slider("letters after it", 0, len(TAIL), 3),
    step=live.Slider("step of the decoder", 1, LONGEST + 1, 4),
    look=live.Choice("attention", ("Luong", "Bahdanau"), "Luong"),
)
def word_lab(figure: "Figure", fixed: Seq2Seq, attentive: Mapping[str, Seq2Seq]) -> live.Update:
    """Type a word, and follow the decoder: a model with attention, and one with a fixed vector below it."""
    from matplotlib.collections import LineCollection

    ask = lru_cache(64)(lambda word, more, look: _ask(fixed, attentive[look], word, more))
    ax = drawings.sheet(figure)
    side: dict[str, Any] = {"x": LEFT - 0.3, "color": plots.GREY, "ha": "right", "va": "center_baseline"}
    ax.text(y=READ, s="read", **side)
    ax.text(y=ALONE, s="one fixed\nvector", **side)
    name, note = ax.text(y=WRITTEN, s="", **side), ax.text(LEFT, READ + 0.27, "", color=plots.GREY, va="bottom")
    read, gone, ahead, alone = (
        _row(ax, y, c) for y, c in ((READ, plots.INK), (WRITTEN, plots.INK), (WRITTEN, AHEAD), (ALONE, plots.INK))
    )
    bold: dict[str, Any] = {"weight": "bold"}
    now, slips, slips_alone = (
        _row(ax, y, c, **bold) for y, c in ((WRITTEN, plots.BLUE), (WRITTEN, plots.ORANGE), (ALONE, plots.ORANGE))
    )
    lines = LineCollection([], colors=plots.BLUE, capstyle="butt", zorder=1.5)
    trail = LineCollection([], colors=BEFORE, capstyle="butt", zorder=1)
    for drawn in (trail, lines):
        ax.add_collection(drawn, autolim=False)

    def update(word: str, more: int, step: int, look: str) -> str:
        said = ask(word, more, look)
        T, S = said.weights.shape
        t = min(step, T) - 1
        weights, symbol = said.weights[t], said.written[t]
        gap = 3 if S <= 12 else 2 if S <= 17 else 1  # blanks between letters
        wrong, wrong_alone = (_wrong(said.read, text) for text in (said.written, said.alone))

        def show(row: Any, text: str, keep: Callable[[int], bool]) -> None:
            row.set_text((" " * gap).join(c if keep(n) else " " for n, c in enumerate(text)))

        show(read, said.read, lambda n: True)
        show(gone, said.written, lambda n: n < t and not wrong[n])
        show(slips, said.written, lambda n: n < t and wrong[n])
        show(now, said.written, lambda n: n == t)
        show(ahead, said.written, lambda n: n > t)
        show(alone, said.alone, lambda n: not wrong_alone[n])
        show(slips_alone, said.alone, lambda n: wrong_alone[n])
        left_out = f" ({', '.join(said.notes)})" if said.notes else ""
        name.set_text(look)
        note.set_text(f"{S} letter{'s' if S > 1 else ''}{left_out}")

        middles = LEFT + LETTER * (0.5 + (1 + gap) * np.arange(max(T, S)))
        up, down = READ - 0.2, WRITTEN + 0.24
        paths = [[((middles[s], up), (middles[n], down)) for s in range(S)] for n in range(t + 1)]
        lines.set_segments(paths[t])
        lines.set_linewidth([0.3 + THICKEST * w if w > 0.01 else 0.0 for w in weights.tolist()])
        trail.set_segments([line for path in paths[:t] for line in path])
        trail.set_linewidth([0.3 * THICKEST * w if w > 0.15 else 0.0 for w in said.weights[:t].ravel().tolist()])

        peak = int(weights.argmax())
        does = "ends" if symbol == END else f"writes {symbol}"
        finding = (
            f"Step {t + 1} {does}: {weights[peak]:.2f} of its weight is on {said.read[peak]}, letter {peak + 1} of {S}"
        )
        ax.set_title(finding)
        return (
            f"{look}, {finding[0].lower()}{finding[1:]}. Read: {said.read}{left_out}. "
            f"{look} writes {said.written.removesuffix(END)!r}, {_verdict(wrong)}; "
            f"the model with one fixed vector {said.alone.removesuffix(END)!r}, {_verdict(wrong_alone)}."
        )

    return update


def _row(ax: "Axes", y: float, colour: str, **font: Any) -> Any:
    return ax.text(LEFT, y, "", size=SIZE, family="DejaVu Sans Mono", va="center_baseline", color=colour, **font)


def _wrong(read: str, written: str) -> list[bool]:
    """Tell for each symbol written, END among them, if it is wrong; then as many more as the answer is too short."""
    wanted = read[::-1] + END
    longer = max(len(wanted), len(written))
    return [a != b for a, b in zip(written.ljust(longer), wanted.ljust(longer), strict=True)]


def _verdict(wrong: list[bool]) -> str:
    return f"{sum(wrong)} wrong" if any(wrong) else "all right"


def _ask(fixed: Seq2Seq, attentive: Seq2Seq, word: str, more: int) -> Said:
    letters = "".join(c for c in word.lower() if c in LETTERS.characters)
    notes = ["only a–z"] if len(letters) < len(word) else []
    if len(letters) + more > LONGEST:
        notes.append(f"only {LONGEST}")
    read = (letters + TAIL[:more])[:LONGEST]
    if not read:
        read, notes = "abc", ["nothing to read: it got abc"]
    text, weights = answer(attentive, read)
    assert weights is not None
    alone = answer(fixed, read)[0]
    ended = len(alone) < len(read) + 2  # else it was stopped
    return Said(read, tuple(notes), (text + END)[: len(weights)], weights, alone + END * ended)
