"""What notebook 10 calls `lab.name`, in its order: figures, and what the instruments say."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.lessons import bugs
from lesson_utils.lessons.debugging import broken, casefile, examined, heart
from lesson_utils.lessons.debugging.broken import ROUNDING
from lesson_utils.lessons.debugging.casefile import reveal
from lesson_utils.maths import layers, models
from lesson_utils.maths.attention import scaled_dot_product_attention
from lesson_utils.maths.checks import Array, Ids, Mask, as_choice
from lesson_utils.maths.models.gpt import see_past

__all__ = ["broken", "reveal"]  # what the notebook takes from other files


def overlay(figure: "plots.Figure", place: Any, **limits: Any) -> "tuple[plots.Axes, plots.Axes]":
    """Return two axes with the same limits: the lower one for what stays, the upper one, bare, for what moves.

    Args:
        place: of a grid, `grid[0, 1]`.
        limits: such as xlim and ylim, for both.
    """
    below, above = figure.add_subplot(place), figure.add_subplot(place)
    for ax in (below, above):
        ax.set(**limits)
    above.set_axis_off()
    above.patch.set_visible(False)
    return below, above


# --- 2 · The clinic ---------------------------------------------------------------------------------------------------


class Anonymous:
    """A trained model that does not say what is wrong with it.

    Args:
        name: what it is called here.
        bug: what it has.
        model: with its weights. Default: as training left it.
    """

    def __init__(self, name: str, bug: str, model: broken.Patient | None = None) -> None:
        model = model or examined.trained(bug)
        self._name = name
        self.forward, self.maps, self.new_past = model.forward, model.maps, model.new_past
        self.loss, self.generate = model.loss, model.generate
        self.log = list(examined.stored()[bug].losses)

    def __repr__(self) -> str:
        return f"{self._name}: .forward(ids, past) .maps(cache) .new_past() .loss(batch) .generate(…) .log"


def patient(number: int) -> Anonymous:
    """Return a patient, trained, without its name: with `forward`, `maps`, `new_past`, and the `log` of its training.

    Raises:
        ValueError: there is no such patient.
    """
    return Anonymous(f"Patient {number}", casefile.bug_of(number))


def twin(number: int) -> Anonymous:
    """Return a model of right code with a patient's weights."""
    bug = casefile.bug_of(number)
    return Anonymous(f"The twin of patient {number}", bug, broken.twin(examined.trained(bug)))


def lines() -> Ids:
    """Return four lines of what the patients read, (4, 12): one to examine, and three for company."""
    return examined.lines()


STILL, MOVES = "#E3E3E3", plots.BLUE
STRIPS = ("leak in time", "leak across rows", "cache parity", "order", "once more", "sums of weights", "single symbols")
Instrument = Callable[..., Any]


def readings(patient: int | str, time: Instrument, rows: Instrument, parity: Instrument, order: Instrument) -> Any:
    """Return what instruments read on a patient, or on the healthy model; the rest is what is on file about it."""
    bug = casefile.HEALTHY if patient == casefile.HEALTHY else casefile.bug_of(int(patient))
    model, (ids, *others) = examined.trained(bug), examined.lines()
    return examined.stored()[bug]._replace(
        time=np.asarray(time(model, ids, examined.CHANGED)).tolist(),
        rows=np.asarray(rows(model, ids, np.array(others))).tolist(),
        parity=np.asarray(parity(model, ids, examined.PROMPT)).tolist(),
        order=np.asarray(order(model, ids, examined.shuffle())).tolist(),
    )


def _strips(found: examined.Examined) -> list[tuple[list[float], list[bool]]]:
    """Return, for each of `STRIPS`, how far things move, and where that is wrong."""
    at = examined.CHANGED
    moves_wrongly = lambda moved: [x > ROUNDING for x in moved]  # noqa: E731
    return [
        (found.time, [x > ROUNDING and t < at for t, x in enumerate(found.time)]),
        (found.rows, moves_wrongly(found.rows)),
        (found.parity, moves_wrongly(found.parity)),
        (found.order, [max(found.order) < ROUNDING] * len(found.order)),
        ([found.again], [found.again > ROUNDING]),
        (found.sums, moves_wrongly(found.sums)),
        ([found.single], [found.single < ROUNDING]),
    ]


def _number(strip: int, moved: list[float], sums: tuple[float, float]) -> str:
    if STRIPS[strip] == "sums of weights":
        return "1" if max(moved) < ROUNDING else f"{sums[0]:.2f} to {sums[1]:.2f}"
    x = max(moved[: examined.CHANGED]) if strip == 0 else max(moved)
    return "0" if x == 0 else "rounding" if x < ROUNDING else f"{x:.2g}"


def _picture(found: examined.Examined) -> Array:
    """Return the strips as an image, (7, 12, 3): a cell for each output, grey where it is still, orange where wrong."""
    from matplotlib.colors import to_rgb

    still, moves, wrong = (np.array(to_rgb(colour)) for colour in (STILL, MOVES, plots.ORANGE))
    image = np.empty((len(STRIPS), examined.T, 3))
    for row, (moved, alarm) in enumerate(_strips(found)):
        cells = [wrong if bad else moves if x > ROUNDING else still for x, bad in zip(moved, alarm, strict=True)]
        image[row] = np.repeat(cells, examined.T // len(cells), axis=0)
    return image


@live.lab(
    width=9.4,
    height=4.6,
    example=lambda: broken.INSTRUMENTS,
    neutral="A healthy model comes first, which is none of the patients.",
    telling={"patient": 1},
    patient=live.Choice("patient", (casefile.HEALTHY, *casefile.PATIENTS), casefile.HEALTHY),
)
def case_lab(
    figure: "plots.Figure", time: Instrument, rows: Instrument, parity: Instrument, order: Instrument
) -> live.Update:
    """Show what four instruments read on a patient without a name, with more readings, a map and a sample."""
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 0.13), width_ratios=(1, 1.25, 1))
    right, T, at = examined.stored()[casefile.HEALTHY], examined.T, examined.CHANGED
    curve, moving = overlay(figure, grid[0, 0], xlim=(0, examined.STEPS), ylim=(0, 9))
    steps = np.append(0, np.arange(len(right.losses)) * examined.WINDOW + examined.WINDOW / 2)
    curve.plot(steps, _curve(right), color=plots.GREY, lw=1.6)
    curve.set(xlabel="step (grey: healthy)", ylabel="loss in training, nats")
    (line,) = moving.plot(steps, steps, color=plots.BLUE)

    names, strips = overlay(figure, grid[0, 1], xlim=(0, T + 5), ylim=(len(STRIPS), 0))
    names.set_yticks(np.arange(len(STRIPS)) + 0.5, STRIPS, size=10)
    names.set_xticks([at + 0.5], [f"symbol {at}"], size=9.5)
    names.tick_params(length=0)
    names.spines[:].set_visible(False)
    cells = strips.imshow(np.ones((len(STRIPS), T, 3)), aspect="auto", extent=(0, T, len(STRIPS), 0))
    strips.set(xlim=(0, T + 5), ylim=(len(STRIPS), 0))
    strips.hlines(range(1, len(STRIPS)), 0, T, color="white", lw=5)
    strips.vlines(range(1, T), 0, len(STRIPS), color="white", lw=0.8)
    numbers = [strips.text(T + 0.3, row + 0.5, "", va="center", size=9.5) for row in range(len(STRIPS))]

    axes, weights = overlay(figure, grid[0, 2], xlim=(0, T), ylim=(T, 0))
    axes.set(xlabel="key", ylabel="query", xticks=[], yticks=[])
    blues = plots.colour_map(*plots.WEIGHTS_MAP)
    image = weights.imshow(np.zeros((T, T)), cmap=blues, vmin=0, vmax=1, extent=(0, T, T, 0), aspect="auto")
    weights.plot([0, *np.repeat(np.arange(1, T), 2), T], np.repeat(np.arange(T), 2), color=plots.GREY, lw=0.8)
    below = figure.add_subplot(grid[1, :])
    below.set_axis_off()
    written = below.text(0, 0.4, "", family="monospace", size=11, va="center", in_layout=False)
    read = cache(lambda patient: readings(patient, time, rows, parity, order))

    def update(patient: int | str) -> str:
        found, healthy = read(patient), patient == casefile.HEALTHY
        who = "A healthy model" if healthy else f"Patient {patient}"
        maps = _maps(casefile.HEALTHY if healthy else casefile.bug_of(int(patient)))
        sums = maps.sum(axis=-1)
        ringing = [name for name, alarm in zip(casefile.GAUGES, casefile.alarms(found), strict=True) if alarm]
        line.set_ydata(_curve(found))
        line.set_visible(not healthy)
        line.set_color(plots.ORANGE if {"start", "curve", "by hand"} & set(ringing) else plots.BLUE)
        cells.set_data(_picture(found))
        said = [_number(row, moved, (sums.min(), sums.max())) for row, (moved, _) in enumerate(_strips(found))]
        for text, number in zip(numbers, said, strict=True):
            text.set_text(number)
        image.set_data(maps[-1, 0, 0])
        end = float(np.mean(found.losses[-3:]))
        moving.set_title(f"Loss {found.start:.1f} → {end:.2f}; by hand {found.by_hand:.2f}", size=11)
        ill = sum(any(wrong) for _, wrong in _strips(found))
        strips.set_title(f"{ill or 'None'} of {len(STRIPS)} {'are' if ill > 1 else 'is'} unlike healthy", size=11)
        weights.set_title(f"{found.ahead:.0%} looks ahead", size=11)
        written.set_text(f"{who} writes: “{found.sample}”")
        listed = "; ".join(f"{name} {number}" for name, number in zip(STRIPS, said, strict=True))
        verb = "are" if ringing[1:] else "is"
        return (
            f"… {who}: {', '.join(ringing) or 'no gauge'} {verb} unlike a healthy model's. Instruments: {listed}. Of "
            f"the attention weights {found.ahead:.0%} lie on later symbols. It writes: {found.sample}"
        )

    return update


def _curve(found: examined.Examined) -> Array:
    """Return the loss before training and then the means of training, as far as they fit into the picture."""
    return np.minimum([found.start, *found.losses], 9)


def _maps(bug: str) -> Array:
    """Return the attention weights on a line of the text, (layers, 1, h, T, T)."""
    model = examined.trained(bug)
    _, cache = model.forward(examined.lines()[:1])
    return np.stack(model.maps(cache)["decoder"])


# --- 3 · Which test finds which bug? ----------------------------------------------------------------------------------
# Instruments on untrained models are computed here, and what came of one batch is stored.

WELL = "(healthy)"  # the row above the bugs: what no test may find
INSTRUMENTS = (
    "loss at the start",
    "leak in time",
    "leak across rows",
    "order",
    "cache parity",
    "gradient",
    "right twin",
)
TESTS = (*INSTRUMENTS, "learnt by heart", "and written")
SMALL = 1e-6  # in float64: what is smaller is rounding
VOCAB, LENGTH, BATCH = 13, 9, 3
SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 4, "num_layers": 2, "dtype": np.float64}


@cache
def healthy_start(seed: int = 0) -> float:
    """Return the loss of a healthy model of this size that has not been trained."""
    rng = np.random.default_rng(seed)
    batch = rng.integers(VOCAB, size=(BATCH, LENGTH)), rng.integers(VOCAB, size=(BATCH, LENGTH))
    return broken.patient("", VOCAB, seed, **SIZES).loss(batch)


@cache
def found_untrained(bug: str, seed: int = 0) -> dict[str, bool]:
    """Tell which instruments find a bug in a small model that has not been trained, in float64."""
    rng = np.random.default_rng(seed)
    model = broken.patient(bug, VOCAB, seed, **SIZES)
    ids = rng.integers(VOCAB, size=(BATCH, LENGTH))
    batch = ids, rng.integers(VOCAB, size=(BATCH, LENGTH))
    right = broken.twin(model)
    measured = (
        abs(model.loss(batch) - healthy_start(seed)) > 1,
        broken.leak_in_time(model, ids[0], 5)[:5].max() > SMALL,
        broken.leak_across_rows(model, ids[0], ids[1:]).max() > SMALL,
        broken.order(model, ids[0], np.roll(np.arange(LENGTH), 4)).max() < SMALL,
        broken.cache_parity(model, ids[0], 4).max() > SMALL,
        broken.gradient(model, batch, rng) > 1e-3,
        np.abs(model.forward(ids)[0] - right.forward(ids)[0]).max() > SMALL,
    )
    return dict(zip(INSTRUMENTS, map(bool, measured), strict=True))


def found(bug: str) -> dict[str, bool]:
    """Tell which tests find a bug: instruments, and one batch by heart, which is learnt and then written."""
    by_heart = heart.learnt(bug) < heart.STARTS["random"], max(heart.written(bug)) < 1
    return found_untrained(bug) | dict(zip(TESTS[-2:], by_heart, strict=True))


@plots.still(width=7.9, height=4.8)
def matrix(figure: "plots.Figure") -> str:
    """Draw bugs by tests: instruments on untrained models, and one batch that is learnt by heart and then written."""
    from matplotlib.colors import to_rgb

    shown = ("", *heart.BUGS)
    finds = np.array([list(found(bug).values()) for bug in shown])  # (bugs, tests)
    words = [(f"{heart.learnt(bug)} of 10", f"{np.mean(heart.written(bug)):.0%}") for bug in shown]
    n, k = finds.shape
    ax = figure.add_subplot()
    places = np.arange(k) + 0.4 * (np.arange(k) >= len(INSTRUMENTS))
    for column, x in enumerate(places):
        cells = np.array([to_rgb(plots.BLUE if bad else STILL) for bad in finds[:, column]])
        ax.imshow(cells[:, None], aspect="auto", extent=(x, x + 0.94, n, 0))
    for row, told in enumerate(words):
        for column, word in enumerate(told, k - 2):
            colour = "white" if finds[row, column] else "#4A4A4A"
            ax.text(places[column] + 0.47, row + 0.52, word, ha="center", va="center", size=8, color=colour)
    ax.set(xlim=(0, places[-1] + 1), ylim=(n, 0))
    ax.hlines(range(1, n), 0, places[-1] + 1, color="white", lw=2.5)
    ax.xaxis.tick_top()
    ax.set_xticks(places + 0.47, TESTS, rotation=40, ha="left", rotation_mode="anchor", size=9)
    ax.set_yticks(np.arange(n) + 0.5, (WELL, *heart.BUGS), size=9)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for x, text in ((3.5, "without training"), (8.4, "one batch, ten starts")):
        ax.text(x, n + 0.3, text, ha="center", va="top", size=9.5, color=plots.GREY)
    counts = dict(zip(TESTS, finds[1:].sum(axis=0).tolist(), strict=True))
    learnt, written = (counts[name] for name in TESTS[-2:])
    ax.set_title(f"Learning by heart finds {learnt} of {len(heart.BUGS)} bugs, writing {written}")
    listed = "; ".join(
        f"{bug or WELL}: {', '.join(name for name, bad in found(bug).items() if bad) or 'nothing'}" for bug in shown
    )
    by_test = formats.each(counts, counts.values(), ".0f")
    return f"… Blue means found. So many bugs are found by {by_test}. Found by: {listed}."


# --- 4 · Somebody else's weights --------------------------------------------------------------------------------------
# Ports of a model, with its weights, are compared with the original until the first place that differs.

CONFIG = models.GPTConfig(vocab=50, d_model=64, num_heads=4, num_layers=4, positions="rotary", activation="gelu")
ORIGINAL = "original"


def gelu_exactly(x: Array) -> Array:
    """Return x Φ(x) with Φ itself, not with its approximation by tanh."""
    erf = np.vectorize(math.erf, otypes=[float])
    y: Array = (0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(x.dtype)
    return y


class ExactGelu(layers.FeedForward):
    """A feed-forward layer with the exact GELU, for forward passes."""

    def __init__(self, right: layers.FeedForward) -> None:
        vars(self).update(vars(right))

    def forward(self, x: Array) -> tuple[Array, Any]:
        wide, _ = self.wide.forward(x)
        return self.narrow.forward(gelu_exactly(wide))[0], None


def _other_pairs(model: models.GPT) -> None:
    bugs.plant(model, "rotary pairs")


def _exact(model: models.GPT) -> None:
    for block in model.stack.blocks:
        block.feed_forward.inner = ExactGelu(block.feed_forward.inner)


def _transposed(model: models.GPT) -> None:
    W_O = model.stack.blocks[2].attention.inner.W_O
    W_O.value = np.ascontiguousarray(W_O.value.T)


def _half_precision(model: models.GPT) -> None:
    wide = model.stack.blocks[1].feed_forward.inner.wide
    wide.W.value = wide.W.value.astype(np.float16).astype(np.float32)


CHANGES: dict[str, Callable[[models.GPT], None]] = {
    "A": _other_pairs,
    "B": _exact,
    "C": _transposed,
    "D": _half_precision,
}


def port(name: str = ORIGINAL, dtype: Any = np.float32) -> models.GPT:
    """Make a model of four layers: the original, or a port of it, "A" to "D", with the same weights."""
    as_choice(name, "port", (ORIGINAL, *CHANGES))
    right = models.GPT(CONFIG, np.random.default_rng(0))
    model = models.GPT(models.GPTConfig(**{**vars(CONFIG), "dtype": dtype}), rng=None)
    for key, param in model.params().items():
        param.value = right.params()[key].value.astype(dtype)
    if name in CHANGES:
        CHANGES[name](model)
    return model


def streams(model: models.GPT, ids: Ids) -> dict[str, Array]:
    """Return the stream after each part of a model, by the part's name, and the logits at the end.

    Args:
        ids: (B, T).
    """
    x, _ = model.tokens.forward(ids)
    mask = see_past(ids.shape[1], ids.shape[1], x.dtype)
    found = {"tokens": x}
    for n, block in enumerate(model.stack.blocks, 1):
        attend, feed = block.attention.inner.forward, block.feed_forward.inner.forward
        x, _ = block.attention.forward(x, lambda x, attend=attend: attend(x, None, mask))  # type: ignore[misc]
        found[f"attention {n}"] = x
        x, _ = block.feed_forward.forward(x, feed)
        found[f"feed-forward {n}"] = x
    assert model.stack.norm is not None
    x, _ = model.stack.norm.forward(x)
    return found | {"norm": x, "logits": model.tokens.embedding.logits_forward(x)[0]}


# --- 6 · Mend it ------------------------------------------------------------------------------------------------------


def gpt_by(function: Callable[..., Any]) -> broken.Patient:
    """Make a small GPT whose layers ask a function for their causal masks: (T_q, T_k) -> booleans (T_q, T_k)."""

    def attend(Q: Array, K: Array, V: Array, mask: Mask | None) -> Any:
        return scaled_dot_product_attention(Q, K, V, function(Q.shape[-2], K.shape[-2]))

    model = broken.Patient(models.GPTConfig(vocab=20, d_model=32, num_heads=4, num_layers=2), np.random.default_rng(0))
    for block in model.stack.blocks:
        block.attention.inner.attend = attend
    return model


# --- 7 · The chatbot's symptoms ---------------------------------------------------------------------------------------
# What is shown was measured once, each bug planted as `bugs.changes` has it, and is stored beside this file.

SYMPTOMS = Path(__file__).with_name("symptoms.json")
RIGHT = "nothing is wrong"
SIDES = ("left", "right")  # how a number is set behind its dot, or before it, where a line would cross it


@cache
def measured_symptoms() -> dict[str, Any]:
    """Return what was measured: "question", "vocabulary", and by bug its "perplexity" (or None) and what it "says"."""
    contents: dict[str, Any] = json.loads(SYMPTOMS.read_text(encoding="utf-8"))
    return contents


def in_figures(perplexity: float | None) -> str:
    """Write a perplexity as 4.3, 195, 47,700 or 3·10⁹, or that it is no number."""
    if perplexity is None:
        return "not a number"
    return formats.three_figures(perplexity) if perplexity < 1e6 else formats.power(perplexity)


def readable(text: str) -> str:
    """Write a text as one line: line ends as ⏎, without what the font can't draw."""
    shown = text.replace("<|im_end|>", "").replace("\n", "⏎").replace("$", r"\$")
    return "".join(c if c.isprintable() else "□" for c in shown).strip() or "(nothing)"


@plots.still(width=9.0, height=4.9)
def symptoms(figure: "plots.Figure") -> str:
    """Draw, for each bug in the chatbot, its perplexity on a story, and write what it then says."""
    known = measured_symptoms()
    found: dict[str, Any] = known["symptoms"]
    right, vocabulary = found[RIGHT]["perplexity"], known["vocabulary"]
    names = sorted(found, key=lambda bug: (found[bug]["perplexity"] is None, found[bug]["perplexity"]))
    values = [found[bug]["perplexity"] for bug in names]
    rows = range(len(names))
    grid = figure.add_gridspec(1, 2, width_ratios=(1.2, 1))
    chart, page = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    chart.set(xscale="log", xlim=(0.6, 2e7), ylim=(len(names) - 0.4, -1.5), xlabel="perplexity on a story")
    chart.set_yticks([*rows], names, size=9.5)
    chart.tick_params(axis="y", length=0)
    chart.minorticks_off()
    for value, name in ((right, "right"), (vocabulary, "guessing")):
        chart.axvline(value, color=plots.GREY, lw=1, ls=":", zorder=0.5)
        chart.text(value * 1.2, -0.8, name, size=9.5, color=plots.GREY)
    for row, value in zip(rows, values, strict=True):
        better = value is not None and value < right
        if value is not None:
            chart.plot([value], [row], "o", color=plots.ORANGE if better else plots.BLUE, ms=6)
        x, before = value or right, any((value or right) < line < 9 * (value or right) for line in (right, vocabulary))
        chart.text(x / 1.6 if before else 2 * x, row, in_figures(value), ha=SIDES[before], va="center", size=9.5)
    page.set(ylim=(len(names) - 0.4, -1.5), xlim=(0, 1))
    page.set_axis_off()
    page.text(0, -0.8, f"“{known['question']}”", size=9.5, color=plots.GREY, va="center")
    for row, bug in zip(rows, names, strict=True):
        says = readable(found[bug]["says"])
        weight = "bold" if "Paris" in says else "normal"
        page.text(0, row, says if len(says) < 39 else f"{says[:38]}…", size=9, va="center", weight=weight)
    too_good = [bug for bug, value in zip(names, values, strict=True) if value is not None and value < right]
    chart.set_title(f"{len(too_good)} bugs make it better than right")
    paris = sum("Paris" in of["says"] for bug, of in found.items() if bug != RIGHT)
    page.set_title(f"With {paris} bugs it still says Paris")
    listed = "; ".join(
        f"{bug} {in_figures(found[bug]['perplexity'])}, “{readable(found[bug]['says'])}”" for bug in names
    )
    return f"… Guessing would be {vocabulary:,}. By bug, perplexity and answer: {listed}. Stored results."
