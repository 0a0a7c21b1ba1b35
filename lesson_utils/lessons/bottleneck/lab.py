"""Notebook 01 calls these names as `lab.name`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, formats, live, plots
from lesson_utils.lessons.bottleneck.experiment import (
    AFTER,
    BEFORE,
    CAPACITY,
    CAPACITY_LENGTHS,
    FURTHEST,
    KEPT_OF_16,
    LETTERS,
    LONGER,
    OTHER_STARTS,
    PASSED_ON,
    SEEN,
    SHORT,
    SIZES,
    SMALL,
    SMALL_WORD,
    SNAPSHOTS,
    TIMES_ASKED,
    TRAINED_ON_REPEATS,
    Kept,
    Snapshot,
    accuracy,
    answer,
    fit,
    gradient_norms,
    influence,
    kept,
    looks,
    new_cell,
    reach,
    small_model,
    snapshot,
    untrained,
    weight_on,
    with_doubles,
    with_look_back,
)
from lesson_utils.lessons.bottleneck.sketches import before_and_after, one_vector, sentence
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq

# --- 1 · A word goes in: what comes out? ------------------------------------------------------------------------------

LOOKS = {  # colour, dash, marker
    "one fixed vector": (plots.ORANGE, "--", "s"),
    "Bahdanau": (plots.GREEN, "-.", "^"),
    "Luong": (plots.BLUE, "-", "o"),
}


def shares_by_length(ax: "plots.Axes", label: str) -> None:
    """Label the axes of shares by the length of a string."""
    ax.set(xlabel="length of the string", ylabel=label, ylim=(-0.03, 1.05))
    ax.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %"))


def _where_it_falls(lengths: Sequence[int], shares: Sequence[float]) -> tuple[float, float]:
    """Find a place for the name of a falling curve: where it goes through 1/2; else its end."""
    for n in range(1, len(shares)):
        if shares[n - 1] >= 0.5 > shares[n]:
            part = (shares[n - 1] - 0.5) / (shares[n - 1] - shares[n])
            return lengths[n - 1] + part * (lengths[n] - lengths[n - 1]), 0.5
    return lengths[-1], shares[-1]


def _by_length(lengths: Iterable[int], shares: Iterable[float]) -> str:
    return formats.each((f"{n}:" for n in lengths), shares, ".0%")


@plots.still(8.4, 3.9)
def kept_plot(figure: "plots.Figure", measured: Mapping[int, Kept], at: int = 16) -> str:
    """Draw what one fixed vector keeps, by length: which letters there were, in which order, and where."""
    lengths = list(measured)
    present, in_order, in_place, chance = (
        [getattr(of, name) for of in measured.values()] for name in ("present", "in_order", "in_place", "chance")
    )
    ax = figure.add_subplot(xlim=(lengths[0] - 0.5, lengths[-1] + 5.6))
    shares_by_length(ax, "share")
    ax.fill_between(lengths, in_place, present, color="#EEEEEE", lw=0)
    middle = (measured[at].present + measured[at].in_place) / 2
    ax.text(at, middle, "places lost", ha="center", va="center", color=plots.GREY)
    for values, name, (colour, dash, marker) in (
        (in_order, "pairs in the\nright order", (plots.GREEN, "-.", "^")),
        (present, "letters in the answer", (plots.BLUE, "-", "o")),
        (in_place, "in the right place", LOOKS["one fixed vector"]),
        (chance, "in the answer to\nanother string", (plots.GREY, ":", "")),
    ):
        ax.plot(lengths, values, dash, color=colour, marker=marker, clip_on=False)
        y = values[-1] + 0.06 * (values is in_order) - 0.05 * (values is present)  # the two end near each other
        ax.text(lengths[-1] + 0.5, y, name, color=colour, va="center" if marker else "bottom")
    ax.set_xticks(lengths)
    ax.set_title(
        f"Of {at} letters, {measured[at].present:.0%} are in the answer, {measured[at].in_place:.0%} in their place"
    )
    rows = "; ".join(
        f"{n}: {k.present:.0%}, {k.in_place:.0%}, {k.in_order:.0%}, {k.chance:.0%}" for n, k in measured.items()
    )
    return (
        "… Shares by the length of a string: its letters anywhere in the answer, in the right place, pairs of "
        f"letters in the right order, its letters in the answer to another string. {rows}."
    )


# --- 2 · One vector for everything ------------------------------------------------------------------------------------


@live.lab(
    width=8.4,
    height=4.0,
    neutral="It opens with the smallest vector; larger ones are drawn when they are chosen.",
    telling={"d_hidden": 128},
    d_hidden=live.Choice("numbers in the vector", SIZES, SIZES[0]),
    steps=live.Choice("training steps", (SHORT, 10_000), SHORT),
)
def capacity_lab(figure: "plots.Figure") -> live.Update:
    """Show how much a vector of one of four sizes holds, as measured beforehand."""
    ax = figure.add_subplot(xlim=(3.5, 24))
    shares_by_length(ax, "strings all right")
    ax.set_xticks(CAPACITY_LENGTHS)
    (colour, _, marker), (blue, dash, dot) = LOOKS["one fixed vector"], LOOKS["Luong"]
    grey, names = {}, {}
    for size in SIZES:
        (grey[size],) = ax.plot(CAPACITY_LENGTHS, CAPACITY_LENGTHS, color="#C8C8C8", lw=1.4)
        names[size] = ax.text(0, 0.5, str(size), va="center", bbox={"fc": "white", "ec": "none", "pad": 0.5}, zorder=4)
    (line,) = ax.plot(CAPACITY_LENGTHS, CAPACITY_LENGTHS, color=colour, marker=marker, clip_on=False, zorder=3)
    (attention,) = ax.plot(CAPACITY_LENGTHS, CAPACITY_LENGTHS, dash, color=blue, marker=dot, clip_on=False)
    name = ax.text(20.5, 1, "", color=blue, va="center")

    def update(d_hidden: int, steps: int) -> str:
        for size in SIZES:
            shares = CAPACITY[None, size, steps]
            grey[size].set_ydata(shares)
            for drawn in (grey[size], names[size]):
                drawn.set_visible(size <= d_hidden)  # larger ones would say what comes
            x, _ = _where_it_falls(CAPACITY_LENGTHS, shares)
            chosen = size == d_hidden
            names[size].set(x=x + 0.25, color=colour if chosen else plots.GREY, weight="bold" if chosen else "normal")
        fixed, luong = CAPACITY[None, d_hidden, steps], CAPACITY["general", d_hidden, SHORT]
        line.set_ydata(fixed)
        attention.set_ydata(luong)
        name.set(y=max(luong[-1], 0.13), text=f"look back,\n{d_hidden} wide,\n{SHORT:,} steps")
        holds = max((n for n, share in zip(CAPACITY_LENGTHS, fixed, strict=True) if share >= 0.5), default=0)
        ax.set_title(f"{d_hidden} numbers, {steps:,} steps: most strings right up to length {holds}")
        listed, rest = (_by_length(CAPACITY_LENGTHS, shares) for shares in (fixed, luong))
        return (
            f"… Strings all right by length, with one fixed vector: {listed}. With a look back, as wide, after "
            f"{SHORT:,} steps: {rest}."
        )

    return update


# --- 3 · Look back instead --------------------------------------------------------------------------------------------


@plots.still(8.4, 4.0)
def accuracy_plot(
    figure: "plots.Figure", curves: Mapping[str, Mapping[int, float]], trained: tuple[int, int] = (3, 20), at: int = 12
) -> str:
    """Draw the share of strings that are all right, by length; the lengths of the training are shaded."""
    longest = max(max(curve) for curve in curves.values())
    ax = figure.add_subplot(xlim=(trained[0] - 0.5, longest + 4))
    shares_by_length(ax, "strings all right")
    ax.axvspan(*trained, color="#EEEEEE", lw=0)
    ax.text(trained[0] + 0.4, 0.04, f"training: lengths {trained[0]}–{trained[1]}", color=plots.GREY)
    for name, curve in curves.items():
        colour, dash, marker = LOOKS[name]
        ax.plot(list(curve), list(curve.values()), dash, color=colour, marker=marker, clip_on=False)
        x, y = _where_it_falls(list(curve), list(curve.values()))
        if x > longest - 1:
            x, y = longest, curve[longest]
        ax.text(x + 0.6, y, name, color=colour, va="center", weight="bold")
    ax.set_xticks(range(4, longest + 1, 4))
    ax.set_title(f"Length {at}: {formats.each(curves, (curve[at] for curve in curves.values()), '.0%')}")
    rows = (f"{name}: {_by_length(curve, curve.values())}" for name, curve in curves.items())
    return f"… Strings all right by length. {'; '.join(rows)}."


TAIL = "qzjvkxwhfgpbmdyu"  # what the slider puts after a word: no words, so that nothing can be guessed
LONGEST = 24  # letters
END = "∎"
WIDTH, HEIGHT, LEFT = 9.4, 4.3, 1.45  # inches; the letters begin at LEFT
READ, WRITTEN, ALONE = 3.35, 1.3, 0.45  # heights of the three rows
SIZE = 15.5  # points
LETTER = 0.602 * SIZE / 72  # inches: the width of every character of the font
THICKEST = 12.0  # points: a weight of 1
AHEAD, BEHIND = "#BBBBBB", "#CBDBE8"  # letters to come, looks gone by


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
    telling={"step": 9},
    word=live.Word("word", "attention", longest=40),
    more=live.Slider("letters after it", 0, len(TAIL), 3),
    step=live.Slider("step of the decoder", 1, LONGEST + 1, 4),
    look=live.Choice("attention", ("Luong", "Bahdanau"), "Luong"),
)
def word_lab(figure: "plots.Figure", fixed: Seq2Seq, attentive: Mapping[str, Seq2Seq]) -> live.Update:
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
    trail = LineCollection([], colors=BEHIND, capstyle="butt", zorder=1)
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
        ax.set_title(
            f"Step {t + 1} {does}: {weights[peak]:.2f} of its weight is on {said.read[peak]}, letter {peak + 1} of {S}"
        )
        return (
            f"… Read: {said.read}{left_out}. {look} writes {said.written.removesuffix(END)!r}, {_verdict(wrong)}; "
            f"the model with one fixed vector {said.alone.removesuffix(END)!r}, {_verdict(wrong_alone)}."
        )

    return update


def _row(ax: "plots.Axes", y: float, colour: str, **font: Any) -> Any:
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


@plots.still(8.6, 4.0)
def memory_plot(figure: "plots.Figure", at: int = 12) -> str:
    """Draw the strings that come out right, by length, where the same network may read fewer and fewer states."""
    names = {1: "every state", 2: "every second", 4: "every fourth", 40: "only the last"}
    looks = ((plots.BLUE, "-", "o"), (plots.GREEN, "-.", "^"), (plots.PURPLE, ":", "D"), (plots.ORANGE, "--", "s"))
    ax = figure.add_subplot(xlim=(CAPACITY_LENGTHS[0] - 0.5, CAPACITY_LENGTHS[-1] + 4.5))
    shares_by_length(ax, "strings all right")
    ax.set_xticks(CAPACITY_LENGTHS)
    lowest = -1.0
    for (n, name), (colour, dash, marker) in reversed(list(zip(names.items(), looks, strict=True))):
        ax.plot(CAPACITY_LENGTHS, SEEN[n], dash, color=colour, marker=marker, clip_on=False)
        lowest = max(SEEN[n][-1], lowest + 0.07)
        ax.text(CAPACITY_LENGTHS[-1] + 0.5, lowest, name, color=colour, va="center", weight="bold")
    of = {n: SEEN[n][CAPACITY_LENGTHS.index(at)] for n in (1, 4, 40)}
    ax.set_title(f"{at} letters: {formats.each(map(names.get, of), of.values(), '.0%')}")
    rows = (f"{name}: {_by_length(CAPACITY_LENGTHS, SEEN[n])}" for n, name in names.items())
    return f"… Strings all right by length, of the same network, by what it may read. {'; '.join(rows)}."


# --- 4 · What a map says, and what it does not ------------------------------------------------------------------------


@plots.still(9.0, 7.6)
def looks_and_causes(figure: "plots.Figure", models: Mapping[str, Seq2Seq], word: str) -> str:
    """Draw a column for each model: where it looks while it writes a word backwards, and which letters decide."""
    letters = list(word)
    axes = figure.subplots(2, len(models), sharex=True, sharey=True, squeeze=False)
    alt, seen, decided = [], [], []
    for column, (name, model) in zip(axes.T, models.items(), strict=True):
        weights, effect = looks(model, word), influence(model, word).clip(0)
        seen.append(weights)
        decided.append(effect)
        for ax, matrix, what in zip(column, (weights, effect), ("where it looks", "what decides"), strict=True):
            title = f"{name}, {what}: {weight_on(matrix):.2f}"
            plots.draw_heatmap(ax, matrix, letters[::-1], letters, title, "written", "read", False, top=1.0)
            ax.label_outer()
            alt.append(plots.describe(matrix, letters[::-1], letters, title, "written", "read"))
    figure.colorbar(axes[0, -1].images[0], ax=list(axes[0]), label="weight", pad=0.01)
    figure.colorbar(axes[1, -1].images[0], ax=list(axes[1]), label="probability lost", pad=0.01)
    differ, agree = _apart(seen) > 0.2, _apart(decided) < 0.1
    finding = f"{'Different' if differ else 'Similar'} maps, {'same' if agree else 'different'} causes"
    explained = f"{finding} (numbers: mean on the letter that is written)"
    figure.suptitle(explained, x=0.01, ha="left", fontsize=14, fontweight="bold")
    on_it = formats.each((f"{name} puts" for name in models), map(weight_on, seen))
    return f"{finding}: of its weight, {on_it} on the letter written. {' '.join(alt)}"


@plots.still(9.0, 4.3)
def map_and_causes(figure: "plots.Figure", model: Seq2Seq, word: str) -> str:
    """Draw both maps of one model side by side, with the weight on the letter written and on the one after it.

    The first letter written has none after it, so that both means leave it out.
    """
    letters = list(word)
    weights, effect = looks(model, word), influence(model, word).clip(0)
    on_it, later, decides = weight_on(weights, 0, 1), weight_on(weights, 1), weight_on(effect, 0, 1)
    titles = (
        f"Where it looks: {later:.2f} one letter late",
        f"What decides: {decides:.2f} on the letter itself",
    )
    alt = []
    for ax, matrix, title in zip(figure.subplots(1, 2, sharey=True), (weights, effect), titles, strict=True):
        plots.draw_heatmap(ax, matrix, letters[::-1], letters, title, "written", "read", False, top=1.0)
        ax.label_outer()
        alt.append(plots.describe(matrix, letters[::-1], letters, title, "written", "read"))
    figure.colorbar(ax.images[0], ax=figure.axes, label="weight, probability lost", pad=0.01)
    return (
        f"Without the first letter written, {later:.2f} of the weight lies one letter later than the letter written, "
        f"{on_it:.2f} on it; {decides:.2f} of what decides lies on it. {' '.join(alt)}"
    )


def _apart(matrices: list[Array]) -> float:
    """Return the largest mean difference of rows (half the sum of absolute differences) from the first matrix."""
    return max(float(np.abs(m - matrices[0]).sum(axis=1).mean()) / 2 for m in matrices)


@plots.still(9.6, 3.3)
def small_maps(figure: "plots.Figure", models: Mapping[str, Mapping[int, Snapshot]]) -> str:
    """Draw the maps of the small models side by side, at the end of training."""
    letters = list(SMALL_WORD)
    axes = figure.subplots(1, len(models), sharey=True)
    last = {kind: snapshots[max(snapshots)] for kind, snapshots in models.items()}
    for ax, (kind, now) in zip(axes, last.items(), strict=True):
        title = f"{kind}\n{now.rows:.0%}"
        plots.draw_heatmap(ax, now.alignment, letters[::-1], letters, title, "to be written", "read", False)
        ax.label_outer()
    figure.colorbar(axes[-1].images[0], ax=list(axes), label="weight", pad=0.01)
    after, before = ([now.rows for kind, now in last.items() if kind in group] for group in (AFTER, BEFORE))
    finding = (
        f"Rows that peak on their letter: {min(after):.0%} or more if asked after the step, "
        f"{max(before):.0%} or fewer if before"
    )
    figure.suptitle(finding, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    found = formats.each(last, (now.rows for now in last.values()), ".0%")
    return f"{finding}: {found}. Heat maps, the letters to be written by the letters read, for {SMALL_WORD!r}."


@live.lab(
    width=9.4,
    height=4.2,
    example=lambda: {kind: {step: snapshot(untrained("dot", 16)) for step in SNAPSHOTS} for kind in SMALL},
    telling={"step": 100},
    score=live.Choice("model", SMALL, "general"),
    step=live.Choice("after training step", SNAPSHOTS, 100),
)
def learning_lab(figure: "plots.Figure", models: Mapping[str, Mapping[int, Snapshot]]) -> live.Update:
    """Show the map of a small model in the course of its training, beside three ways to count what is right."""
    letters = list(SMALL_WORD)
    n = len(letters)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    plots.draw_heatmap(left, np.zeros((n, n)), letters[::-1], letters, "\n", "to be written", "read", False)
    image = left.images[0]
    image.set_zorder(3)  # above the axes, which then need not be drawn again when it changes
    places = np.arange(len(SNAPSHOTS))
    right.set(xlim=(-0.3, len(SNAPSHOTS) + 1.7), ylim=(-0.03, 1.05), xlabel="training step", title="\n")
    right.set_xticks(places, [str(step) for step in SNAPSHOTS])
    right.set_yticks((0, 0.5, 1), ("0 %", "50 %", "100 %"))
    curves = {
        "rows": right.plot(places, places, "-", color=plots.BLUE, marker="o")[0],
        "letters": right.plot(places, places, "-.", color=plots.GREEN, marker="^")[0],
        "strings": right.plot(places, places, "--", color=plots.ORANGE, marker="s")[0],
    }
    for (name, curve), y in zip(curves.items(), (0.62, 0.5, 0.38), strict=True):
        right.text(len(SNAPSHOTS) - 0.6, y, f"{name} right", color=curve.get_color(), va="center", weight="bold")
    now_line = right.axvline(0, color="#BBBBBB", lw=1.2, zorder=0)

    def update(score: str, step: int) -> str:
        snapshots = models[score]
        steps = [min(snapshots, key=lambda done: abs(done - wanted)) for wanted in SNAPSHOTS]  # a reader may train less
        now = snapshots[steps[SNAPSHOTS.index(step)]]
        image.set_data(now.alignment)
        for name, curve in curves.items():
            curve.set_ydata([getattr(snapshots[done], name) for done in steps])
        now_line.set_xdata([SNAPSHOTS.index(step)] * 2)
        left.set_title(f"{score}, step {step}:\nwrites “{now.answer}”")
        right.set_title(
            f"Right after {step} steps:\nrows {now.rows:.0%}, letters {now.letters:.0%}, strings {now.strings:.0%}"
        )
        listed = ", ".join(
            f"{done}: {s.rows:.0%}, {s.letters:.0%}, {s.strings:.0%}" for done, s in sorted(snapshots.items())
        )
        return (
            f"… It reads {SMALL_WORD!r}; rows, letters and strings are counted over random strings as long. "
            f"By training step: {listed}."
        )

    return update


# --- 5 · Gradients through time ---------------------------------------------------------------------------------------

CELLS = {"RNN": (plots.ORANGE, "--"), "GRU": (plots.GREEN, "-."), "LSTM": (plots.BLUE, "-")}
SCALES = {1.0: (plots.BLUE, "-"), 1.5: (plots.GREEN, "-."), 2.0: (plots.PURPLE, ":"), 3.0: (plots.ORANGE, "--")}
FAR, NEAR = 20, 5  # steps back, in titles and texts


@plots.still(9.0, 3.8)
def vanish_or_explode(figure: "plots.Figure") -> str:
    """Draw what is left of an RNN's gradient, for recurrent matrices of four sizes."""
    norms = {f"× {scale:g}": gradient_norms("rnn", scale) for scale in SCALES}
    ax = _gradient_axes(figure, 1e-22, 1e15)
    for (name, norm), (colour, dash) in zip(norms.items(), SCALES.values(), strict=True):
        ax.plot(norm, dash, color=colour)
        ax.text(FURTHEST + 1, norm[-1], name, color=colour, va="center")
    vanished, grown = (
        [name for name, norm in norms.items() if compare(norm[-1])]
        for compare in (lambda last: last < 0.01, lambda last: last > 10)
    )
    ax.set_title(f"{FURTHEST} steps back: vanished at {' and '.join(vanished)}, exploded at {' and '.join(grown)}")
    listed = ", ".join(f"{name}: {formats.power(norm[FAR])}, {formats.power(norm[-1])}" for name, norm in norms.items())
    return (
        f"… Left of an RNN's gradient after {FAR} and after {FURTHEST} steps back, by the size of its matrix: {listed}."
    )


@live.lab(
    width=9.0,
    height=3.9,
    neutral="It opens at half the size of the matrices, where every memory is short.",
    telling=[{"scale": 1.0}, {"scale": 1.0, "gate_bias": 4}],
    scale=live.Slider("recurrent matrices ×", 0.5, 3.0, 0.5, 0.25),
    gate_bias=live.Slider("bias of the gate that keeps +", -2, 4, 0),
)
def gradient_lab(figure: "plots.Figure") -> live.Update:
    """Show how much of a gradient is left, many steps back, in three cells."""
    lowest, highest = 1e-10, 1e5
    ax = _gradient_axes(figure, lowest, highest)
    ax.set_xlim(-0.5, 1.6 * FAR + 2)
    shown = int(1.6 * FAR)
    lines, names = {}, {}
    for name, (colour, dash) in CELLS.items():
        (lines[name],) = ax.plot(np.ones(FURTHEST + 1), dash, color=colour)
        names[name] = ax.text(shown + 0.4, 1, name, color=colour, va="center", bbox={"fc": "white", "ec": "none"})

    def update(scale: float, gate_bias: int) -> str:
        norms = {name: gradient_norms(name.lower(), scale, gate_bias) for name in CELLS}
        lowest_free = np.log10(lowest) + 0.4
        for name in sorted(norms, key=lambda name: norms[name][shown]):
            lines[name].set_ydata(np.clip(norms[name], lowest / 10, highest * 10))
            height = min(max(np.log10(norms[name][shown]), lowest_free), np.log10(highest) - 0.4)
            names[name].set_y(10**height)
            lowest_free = height + 1.2
        far, near = (", ".join(f"{name} {formats.power(norm[n])}" for name, norm in norms.items()) for n in (FAR, NEAR))
        ax.set_title(f"× {scale:g}, gate {formats.signed(gate_bias)}: left after {FAR} steps: {far}")
        return f"… What is left of a gradient by steps back, in three new cells; after {NEAR} steps: {near}."

    return update


def _gradient_axes(figure: "plots.Figure", lowest: float, highest: float) -> "plots.Axes":
    """Make axes for norms, many powers of ten apart, with a line at 1."""
    ax = figure.add_subplot(xlim=(-0.5, FURTHEST + 8), ylim=(lowest, highest), yscale="log")
    ax.set(xlabel="steps back from the loss", ylabel="norm of the gradient")
    ax.axhline(1, color="#BBBBBB", lw=1, ls=":")
    return ax
