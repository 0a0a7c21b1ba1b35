"""What notebook 10 calls `lab.name`, in its order: live figures, and what the instruments say."""

import json
import math
import textwrap
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.lessons import bugs
from lesson_utils.lessons.attention_bugs import SWAPPED, Bug, Instead, WrongHeads
from lesson_utils.lessons.debugging import broken, casefile, examined, exercises
from lesson_utils.lessons.debugging.broken import ROUNDING
from lesson_utils.lessons.debugging.casefile import diagnoses, reveal
from lesson_utils.lessons.debugging.tried import ABSENT, BUGS, TASKS, tried, ways
from lesson_utils.lessons.real_model.measures import label, stored
from lesson_utils.maths import layers, models, ops
from lesson_utils.maths.attention import scaled_dot_product_attention
from lesson_utils.maths.checks import Array, Ids, Mask, as_choice
from lesson_utils.maths.models.gpt import see_past


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


def healthy() -> Anonymous:
    """Return a healthy model of the same size, to compare with; it is none of the patients."""
    return Anonymous("A healthy model", casefile.HEALTHY)


def twin(number: int) -> Anonymous:
    """Return a model of right code with a patient's weights."""
    bug = casefile.bug_of(number)
    return Anonymous(f"The twin of patient {number}", bug, broken.twin(examined.trained(bug)))


def lines() -> Ids:
    """Return four lines of what the patients read, (4, 12): one to examine, and three for company."""
    return examined.lines()


def page() -> Ids:
    """Return a page of what the patients read, to compute a loss on: rows with the symbol after them, (16, 33)."""
    return examined.page()


STILL, MOVES = "#E3E3E3", plots.BLUE
STRIPS = ("leak in time", "leak across rows", "cache parity", "once more", "sums of weights", "order", "single symbols")


def _strips(found: examined.Examined) -> list[tuple[list[float], list[bool]]]:
    """Return, for each of `STRIPS`, how far things move, and where that is wrong."""
    at = examined.CHANGED
    moves_wrongly = lambda moved: [x > ROUNDING for x in moved]  # noqa: E731
    return [
        (found.time, [x > ROUNDING and t < at for t, x in enumerate(found.time)]),
        (found.rows, moves_wrongly(found.rows)),
        (found.parity, moves_wrongly(found.parity)),
        ([found.again], [found.again > ROUNDING]),
        (found.sums, moves_wrongly(found.sums)),
        (found.order, [x < ROUNDING for x in found.order]),
        ([found.single], [found.single < ROUNDING]),
    ]


def _largest(strip: int, moved: list[float]) -> str:
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
    neutral="A healthy model comes first, which is none of the patients.",
    telling={"patient": 4},
    patient=live.Choice("patient", (casefile.HEALTHY, *casefile.PATIENTS), casefile.HEALTHY),
)
def case_lab(figure: "plots.Figure") -> live.Update:
    """Show the gauges, a map and a sample of a patient without a name, or of a healthy model."""
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 0.13), width_ratios=(1, 1.15, 1))
    right, T, at = examined.stored()[casefile.HEALTHY], examined.T, examined.CHANGED
    curve, moving = overlay(figure, grid[0, 0], xlim=(0, examined.STEPS), ylim=(0, 9))
    steps = np.append(0, np.arange(len(right.losses)) * examined.WINDOW + examined.WINDOW / 2)
    curve.plot(steps, _curve(right), color=plots.GREY, lw=1.6)
    curve.set(xlabel="step (grey: healthy)", ylabel="loss in training, nats")
    (line,) = moving.plot(steps, steps, color=plots.BLUE)

    names, strips = overlay(figure, grid[0, 1], xlim=(0, T + 3), ylim=(len(STRIPS), 0))
    names.set_yticks(np.arange(len(STRIPS)) + 0.5, STRIPS, size=10)
    names.set_xticks([at + 0.5], [f"symbol {at}"], size=9.5)
    names.tick_params(length=0)
    names.spines[:].set_visible(False)
    cells = strips.imshow(np.ones((len(STRIPS), T, 3)), aspect="auto", extent=(0, T, len(STRIPS), 0))
    strips.set(xlim=(0, T + 3), ylim=(len(STRIPS), 0))
    strips.hlines(range(1, len(STRIPS)), 0, T, color="white", lw=5)
    strips.vlines(range(1, T), 0, len(STRIPS), color="white", lw=0.8)
    numbers = [strips.text(T + 0.3, row + 0.5, "", va="center", size=10) for row in range(len(STRIPS))]

    axes, weights = overlay(figure, grid[0, 2], xlim=(0, T), ylim=(T, 0))
    axes.set(xlabel="key", ylabel="query", xticks=[], yticks=[])
    blues = plots.colour_map(*plots.WEIGHTS_MAP)
    image = weights.imshow(np.zeros((T, T)), cmap=blues, vmin=0, vmax=1, extent=(0, T, T, 0), aspect="auto")
    weights.plot([0, *np.repeat(np.arange(1, T), 2), T], np.repeat(np.arange(T), 2), color=plots.GREY, lw=0.8)
    below = figure.add_subplot(grid[1, :])
    below.set_axis_off()
    written = below.text(0, 0.4, "", family="monospace", size=11, va="center", in_layout=False)

    def update(patient: int | str) -> str:
        found = right if patient == casefile.HEALTHY else casefile.of(int(patient))
        who = "A healthy model" if patient == casefile.HEALTHY else f"Patient {patient}"
        ringing = [name for name, alarm in zip(casefile.GAUGES, casefile.alarms(found), strict=True) if alarm]
        line.set_ydata(_curve(found))
        line.set_visible(patient != casefile.HEALTHY)
        line.set_color(plots.ORANGE if {"start", "curve", "by hand"} & set(ringing) else plots.BLUE)
        cells.set_data(_picture(found))
        said = [_largest(row, moved) for row, (moved, _) in enumerate(_strips(found))]
        for text, number in zip(numbers, said, strict=True):
            text.set_text(number)
        map_ = _map(casefile.HEALTHY if patient == casefile.HEALTHY else casefile.bug_of(int(patient)))
        image.set_data(map_)
        end = float(np.mean(found.losses[-3:]))
        moving.set_title(f"Loss {found.start:.1f} → {end:.2f}; by hand {found.by_hand:.2f}", size=11)
        ill = sum(any(wrong) for _, wrong in _strips(found))
        strips.set_title(f"{ill or 'None'} of {len(STRIPS)} {'are' if ill > 1 else 'is'} unlike healthy", size=11)
        weights.set_title(f"{found.ahead:.0%} looks ahead", size=11)
        written.set_text(f"{who} writes: “{found.sample}”")
        readings = "; ".join(f"{name} {number}" for name, number in zip(STRIPS, said, strict=True))
        verb = "are" if ringing[1:] else "is"
        return (
            f"… {who}: {', '.join(ringing) or 'no gauge'} {verb} unlike a healthy model's. Instruments: {readings}. Of "
            f"the attention weights {found.ahead:.0%} lie on later symbols. It writes: {found.sample}"
        )

    return update


def _curve(found: examined.Examined) -> Array:
    """Return the loss before training and then the means of training, as far as they fit into the picture."""
    return np.minimum([found.start, *found.losses], 9)


def _map(bug: str) -> Array:
    """Return the weights of the first head of the last layer, on a line of the text, (T, T)."""
    model = examined.trained(bug)
    _, cache = model.forward(examined.lines()[:1])
    map_: Array = model.maps(cache)["decoder"][-1][0, 0]
    return map_


def examine(patient: int, seed: int = 0) -> None:
    """Train this patient here, with another start if you like, and print what the instruments say beside the file."""
    _, found = examined.examine(casefile.bug_of(patient), seed)
    filed = casefile.of(patient)
    rows = [("loss at the start", found.start, filed.start), ("loss at the end", found.losses[-1], filed.losses[-1])]
    rows.append(("loss by hand", found.by_hand, filed.by_hand))
    rows += [(name, x, y) for (name, x), (_, y) in zip(_extremes(found), _extremes(filed), strict=True)]
    print(tables.table((f"patient {patient}", "here", "on file"), rows, ".2g"))
    print("It writes:", found.sample)


def _extremes(found: examined.Examined) -> list[tuple[str, float]]:
    strips = _strips(found)
    return [
        (name, max(moved[: examined.CHANGED] if row == 0 else moved))
        for row, (name, (moved, _)) in enumerate(zip(STRIPS, strips, strict=True))
    ]


# --- 2 · Your tests as a net ------------------------------------------------------------------------------------------

Test = Callable[[Anonymous], Any]


def caught(tests: Mapping[str, Test]) -> np.ndarray:
    """Run tests, each from a patient to yes or no, on a healthy model and on all patients: (1 + patients, tests).

    Raises:
        ValueError: there are no tests, or a test can't be run on a patient.
    """
    if not tests:
        raise ValueError('there are no tests; hand over a dictionary, such as {"leak": my_leak_test}')
    examined = [healthy(), *map(patient, casefile.PATIENTS)]
    return np.array([[_says(name, test, patient) for name, test in tests.items()] for patient in examined])


def _says(name: str, test: Test, patient: Anonymous) -> bool:
    try:
        return bool(test(patient))
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"the test “{name}” takes a patient and says yes or no, as `lambda patient: … > 1e-3` does; here it ended "
            f"in {told}"
        ) from error


@plots.still(width=9.0, height=3.4)
def net(figure: "plots.Figure", tests: Mapping[str, Test]) -> str:
    """Draw who is caught by which test. A healthy model stands first: if it is caught, this is a false alarm.

    Nobody is told here which patient is well: who is caught by no test is marked, patient 9 as well as 10.
    """
    from matplotlib.colors import to_rgb

    found = caught(tests)  # (1 + patients, tests)
    well, rows = found[0], found[1:]
    ill = [n for n in casefile.PATIENTS if casefile.bug_of(n)]
    bugs = sum(bool(rows[n - 1].any()) for n in ill)
    slips = [n for n in casefile.PATIENTS if not rows[n - 1].any()]
    false = [name for name, alarm in zip(tests, well, strict=True) if alarm]
    ax = figure.add_subplot()
    blue, still, orange = (np.array(to_rgb(colour)) for colour in (plots.BLUE, STILL, plots.ORANGE))
    colours = np.where(found.T[..., None], blue, still)  # (tests, 1 + patients, 3)
    colours[well, 0] = orange
    places = np.array([0, *(np.array(casefile.PATIENTS) + 0.5)])  # a gap between the healthy model and the patients
    for x, column in zip(places, colours.swapaxes(0, 1), strict=True):
        ax.imshow(column[:, None], aspect="auto", extent=(x - 0.5, x + 0.5, len(tests), 0))
    ax.set(xlim=(-0.5, places[-1] + 0.5), ylim=(len(tests), 0))
    ax.set_yticks(np.arange(len(tests)) + 0.5, tests, size=10.5)
    ax.set_xticks(places, ["healthy", *map(str, casefile.PATIENTS)])
    ax.get_xticklabels()[0].set(rotation=45, ha="right", rotation_mode="anchor", size=10.5)
    ax.set_xlabel("patient (orange: caught by no test)")
    ax.hlines(range(1, len(tests)), -0.5, places[-1] + 0.5, color="white", lw=5)
    ax.vlines(places[1:] - 0.5, 0, len(tests), color="white", lw=3)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for n in slips:
        ax.get_xticklabels()[n].set(color=plots.ORANGE, weight="bold")
    alarms = f"{len(false) or 'no'} false alarm{'' if len(false) == 1 else 's'}"
    ax.set_title(f"{bugs} of {len(ill)} bugs are caught, with {alarms}")
    listed = "; ".join(
        f"{name}: {', '.join(str(n + 1) for n in np.flatnonzero(rows[:, i])) or 'nobody'}"
        for i, name in enumerate(tests)
    )
    return (
        f"… Caught by no test: {', '.join(map(str, slips)) or 'nobody'}. The healthy model sets off "
        f"{', '.join(false) or 'no test'}. Who is caught by which test: {listed}."
    )


# --- 3 · Which test finds which bug? ----------------------------------------------------------------------------------
# Instruments on untrained models are computed here, and what tasks notice is stored.

WELL = "(healthy)"  # the row above the bugs: what no instrument may find
INSTRUMENTS = (
    "loss at the start",
    "leak in time",
    "leak across rows",
    "order",
    "cache parity",
    "gradient",
    "right twin",
)
SMALL = 1e-6  # in float64: what is smaller is rounding
NONE = "none yet"  # no task: what untrained models show
NOTICED = 0.05  # so much below a healthy model's share, and a task has noticed the bug
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
    rotation = np.roll(np.arange(LENGTH), 4)[None]
    right = broken.twin(model)
    measured = (
        abs(model.loss(batch) - healthy_start(seed)) > 1,
        broken.leak_in_time(model, ids[0], 5)[:5].max() > SMALL,
        broken.leak_across_rows(model, ids[0], ids[1:]).max() > SMALL,
        broken.order(model, ids[0], rotation).max() < SMALL,
        broken.cache_parity(model, ids[0], 4).max() > SMALL,
        broken.gradient(model, batch, rng) > 1e-3,
        np.abs(model.forward(ids)[0] - right.forward(ids)[0]).max() > SMALL,
    )
    return dict(zip(INSTRUMENTS, map(bool, measured), strict=True))


def shares(bug: str, task: str) -> tuple[float, float | None]:
    """Return the share of symbols right when the true ones before are given, and when the model goes on by itself."""
    in_training, alone = tried()[bug][task][0]
    return in_training, alone


def possible(task: str) -> list[str]:
    """List the bugs that a task's model can have."""
    return [bug for bug in BUGS if bug not in ABSENT.get(task, ())]


def noticed(bug: str, task: str) -> tuple[bool, bool]:
    """Tell whether a model with the bug trains worse than a healthy one, and whether it writes worse by itself."""
    (guided, alone), (best, best_alone) = shares(bug, task), shares("", task)
    return guided < best - NOTICED, alone is not None and best_alone is not None and alone < best_alone - NOTICED


def blind(task: str) -> list[str]:
    """List the bugs with which a model trains on a task as well as a healthy one."""
    return [bug for bug in possible(task) if not noticed(bug, task)[0]]


@live.lab(
    width=9.4,
    height=4.65,
    neutral="The columns of what a task notices are empty until one is chosen.",
    telling={"task": "copy"},
    task=live.Choice("task", (NONE, *TASKS), NONE),
)
def matrix_lab(figure: "plots.Figure") -> live.Update:
    """Show bugs by instruments; on the right, what a task notices."""
    from matplotlib.colors import to_rgb

    shown = ("", *BUGS)  # a healthy model first, to compare with
    n, k = len(shown), len(INSTRUMENTS)
    grid = figure.add_gridspec(2, 2, height_ratios=(0.001, 1), width_ratios=(k, 2.3))
    head = figure.add_subplot(grid[0, :])
    head.set_axis_off()
    left = figure.add_subplot(grid[1, 0])
    labels, right = overlay(figure, grid[1, 1], xlim=(0, 2), ylim=(n, 0))
    yes, no, noticed_, blind_ = (np.array(to_rgb(c)) for c in (plots.BLUE, "#E3E3E3", plots.ORANGE, "#4A4A4A"))
    nothing = np.array(to_rgb("#F4F4F4"))  # where nothing was measured
    finds = np.array([list(found_untrained(bug).values()) for bug in shown])  # (bugs, instruments)
    left.imshow(np.where(finds[..., None], yes, no), aspect="auto", extent=(0, k, n, 0))
    broken_up = {"loss at the start": "loss at\nthe start", "leak across rows": "leak across\nrows"}
    left.set_xticks(
        np.arange(k) + 0.5, [broken_up.get(name, name.replace(" ", "\n", 1)) for name in INSTRUMENTS], size=10
    )
    left.set_yticks(np.arange(n) + 0.5, (WELL, *BUGS), size=10.5)
    labels.set_xticks([0.5, 1.5], ["trains to\n100 %?", "writes\nas well?"], size=10)
    labels.set_yticks([])
    for ax in (left, labels):
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    for ax, columns in ((left, k), (right, 2)):
        ax.hlines(range(1, n), 0, columns, color="white", lw=3, zorder=1.5)
        ax.vlines(range(1, columns), 0, n, color="white", lw=7, zorder=1.5)
    cells = right.imshow(np.ones((n, 2, 3)), aspect="auto", extent=(0, 2, n, 0))
    texts = [
        [right.text(x + 0.5, y + 0.52, "", ha="center", va="center", size=9.5, color="white") for x in range(2)]
        for y in range(n)
    ]
    by_instruments = int(finds[1:].any(axis=1).sum())
    found_by = {bug: [name for name, yes in found_untrained(bug).items() if yes] for bug in shown}
    listed = "; ".join(f"{bug or WELL}: {', '.join(names) or 'nothing'}" for bug, names in found_by.items())

    def update(task: str) -> str:
        if task == NONE:
            cells.set_data(np.ones((n, 2, 3)))
            for text in (text for pair in texts for text in pair):
                text.set_text("")
            head.set_title(f"Without training: {by_instruments} of {len(BUGS)} bugs are found by an instrument")
            return f"… No task is chosen yet. Found by: {listed}."
        seen, can = np.array([noticed(bug, task) for bug in shown]), possible(task)  # (rows, 2)
        numbers = [shares(bug, task) if bug in ("", *can) else (None, None) for bug in shown]
        colours = np.where(seen[..., None], noticed_, blind_)
        for row, pair in enumerate(numbers):
            for column, share in enumerate(pair):
                text, none = texts[row][column], share is None
                text.set_text(f"{share:.2f}" if not none else "–" if shown[row] in ("", *can) else "not here")
                text.set_color(plots.GREY if none else "white")
                colours[row, column] = nothing if none else colours[row, column]
        cells.set_data(colours)
        head.set_title(f"On {task}, {len(blind(task))} of {len(can)} broken models train as well as a healthy one")
        told = formats.each((WELL, *can), (shares(bug, task)[0] for bug in ("", *can)))
        return f"… Share right after training: {told}. Found by: {listed}."

    return update


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


CHANGES: dict[str, Callable[[models.GPT], None]] = {"A": _other_pairs, "B": _exact, "C": _transposed}


def port(name: str = ORIGINAL, dtype: Any = np.float32) -> models.GPT:
    """Make a model of four layers: the original, or a port of it, "A", "B" or "C", with the same weights."""
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


def rounding(layers: tuple[int, ...] = (6, 15, 30)) -> tables.Table:
    """List the rounding in SmolLM2's stream after some layers: float32 beside float64, and the largest number there."""
    found = [(layer, *stored()["rounding"][layer]) for layer in layers]
    rows = [(f"after layer {layer}", round(size), off, off / size) for layer, off, size in found]
    return tables.table(("SmolLM2, stored", "largest number", "rounding", "by size"), rows, ".0e")


# --- 6 · Mend it ------------------------------------------------------------------------------------------------------
# A small GPT runs on a function of the exercises: on the broken one first, then on the learner's. Each part says what
# of the model is replaced. All instruments but those of the loss are then held to it.

Function = Callable[..., Any]
CHANGED, PROMPT, KV_HEADS = 5, 4, 2


class Block(Instead, layers.EncoderLayer):
    """A layer of a GPT whose stream runs through a given function."""

    def __init__(self, right: layers.EncoderLayer, function: Function) -> None:
        super().__init__(right)
        self.function = function

    def forward(
        self, x: Array, mask: Any = None, bias: Any = None, past: Any = None, rng: Any = None, last: bool = False
    ) -> tuple[Array, Any]:
        heads, feed = self.attention, self.feed_forward
        assert heads.norm is not None
        assert feed.norm is not None
        norm_1, norm_2 = heads.norm.forward, feed.norm.forward
        y = self.function(
            x,
            lambda x: heads.inner.forward(x, None, mask, bias, past)[0],
            lambda x: feed.inner.forward(x)[0],
            lambda x: norm_1(x)[0],
            lambda x: norm_2(x)[0],
        )
        return y[:, -1:] if last else y, None


def _scores(Q: Array, K: Array) -> Array:
    scores: Array = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
    return scores


def _seen(Q: Array, K: Array, mask: Mask | None) -> Mask:
    return np.ones((*Q.shape[:-1], K.shape[-2]), bool) if mask is None else mask


def _attend_by_mask(function: Function, Q: Array, K: Array, V: Array, mask: Mask | None) -> Any:
    """Ask for a causal mask for a single query, too; where all may see all, there is nothing to ask."""
    if mask is None or not mask.all():
        mask = function(Q.shape[-2], K.shape[-2])
    return scaled_dot_product_attention(Q, K, V, mask)


def _attend_by_groups(function: Function, Q: Array, K: Array, V: Array, mask: Mask | None) -> Any:
    """Give each query the keys that it may see, because the function knows no mask."""
    seen, outputs = _seen(Q, K, mask), np.empty_like(Q)
    shared = Q.shape[1] // KV_HEADS  # K and V come repeated
    for row, (q, k, v) in enumerate(zip(Q, K[:, ::shared], V[:, ::shared], strict=True)):
        for t in range(Q.shape[-2]):
            outputs[row, :, [t]] = function(q[:, [t]], k[:, seen[row, 0, t]], v[:, seen[row, 0, t]]).swapaxes(0, 1)
    return outputs, ops.softmax(_scores(Q, K))  # nobody looks at these weights


ATTENDS = {"mask": _attend_by_mask, "groups": _attend_by_groups}


def right_gpt(part: str) -> broken.Patient:
    """Make the small GPT in which a part, such as "merge", is to be replaced."""
    shared = KV_HEADS if part == "groups" else None
    config = models.GPTConfig(vocab=VOCAB, d_model=16, num_heads=4, num_kv_heads=shared, dtype=np.float64)
    return broken.Patient(config, np.random.default_rng(0))


def gpt_by(part: str, function: Function) -> broken.Patient:
    """Make the small GPT with a part by a function, in all places."""
    model = right_gpt(part)
    for n, block in enumerate(model.stack.blocks):
        heads = block.attention.inner
        if part in ATTENDS:
            heads.attend = partial(ATTENDS[part], function)
        elif part == "merge":
            block.attention.inner = WrongHeads(heads, Bug(merging=SWAPPED._replace(backward=function)))
        elif part == "block":
            model.stack.blocks[n] = Block(block, function)
    return model


def readings(part: str, function: Function) -> dict[str, tuple[float, bool]]:
    """Return what each instrument reads, and whether a healthy model would read otherwise."""
    model, rng = gpt_by(part, function), np.random.default_rng(0)
    ids = rng.integers(VOCAB, size=(3, LENGTH))
    moved = float(broken.order(model, ids[0], np.roll(np.arange(LENGTH), 4)[None]).max())
    still = {
        "leak in time": broken.leak_in_time(model, ids[0], CHANGED)[:CHANGED].max(),
        "leak across rows": broken.leak_across_rows(model, ids[0], ids[1:]).max(),
        "cache parity": broken.cache_parity(model, ids[0], PROMPT).max(),
        "right twin": np.abs(model.forward(ids)[0] - right_gpt(part).forward(ids)[0]).max(),
    }
    return {name: (float(x), bool(x > SMALL)) for name, x in still.items()} | {"order": (moved, moved < SMALL)}


def treat(part: str, function: Function) -> tables.Table:
    """List what instruments read on a small GPT with the broken function of an exercise, and with this one.

    Args:
        part: the name of the exercise behind `mend_`, such as "merge".
    """
    (exercise,) = (exercise for exercise in exercises.MENDS if exercise.name == f"mend_{part}")
    before, after = readings(part, exercise.program(exercise.broken)), readings(part, function)
    rows = [
        (name, *(f"{'X' if alarm else 'o'} {_reading(x)}" for x, alarm in (before[name], after[name])))
        for name in before
    ]
    return tables.table(("X = not as in a healthy model", "broken", "this one"), rows)


def _reading(x: float) -> str:
    return "0" if x < SMALL else f"{x:.2g}"


# --- 7 · The chatbot's symptoms ---------------------------------------------------------------------------------------
# What is shown was measured once, each bug planted as `bugs.changes` has it, and is stored beside this file.

SYMPTOMS = Path(__file__).with_name("symptoms.json")
RIGHT = "nothing is wrong"
# What stands in the program, and what should stand there, where it takes no more than a line.
LINES = {
    RIGHT: "softmax(mask(Q @ K.T / √d_k)) @ V",
    "no causal mask": "softmax(Q @ K.T / √d_k) @ V",
    "mask one too late": "j <= i + 1, not j <= i",
    "mask inverted": "~mask, not mask: True was to be seen",
    "mask after softmax": "mask · softmax(scores): rows sum to less",
    "no scale": "Q @ K.T, without / √d_k",
    "scale 1/d_k": "/ d_k, not / √d_k",
    "scale 1/√d_model": "/ √d_model, not / √d_k",
    "softmax twice": "softmax(softmax(scores)): e⁰ is 1",
    "softmax over queries": "softmax(scores, axis=-2)",
    "queries split, no swap": "q.reshape(B, h, T, d_k)",
    "heads merged, no swap": "heads.reshape(B, T, h · d_k)",
    "groups tiled": "heads 0 1 2 0 1 2 …, not 0 0 0 1 1 1 …",
    "positions left out": "no rotary(Q), no rotary(K)",
    "positions turn halves": "pairs (i, i + d/2), not (2i, 2i + 1)",
    "positions turn values, too": "rotary(V)",
    "norm left out": "x + attention(x)",
    "residual of the normed": "y = norm(x); y + attention(y)",
    "gate and value swapped": "gate · silu(value)",
    "cache starts at 0 again": "each new token at position 0",
}


@cache
def measured_symptoms() -> dict[str, Any]:
    """Return what was measured: "question", "tokens" of the map, "head", "vocabulary", and "symptoms" by bug."""
    contents: dict[str, Any] = json.loads(SYMPTOMS.read_text(encoding="utf-8"))
    return contents


def symptoms() -> dict[str, dict[str, Any]]:
    """Return by bug "perplexity" (None: no number), "says", and "map" in percent (None: no numbers).

    Their order is that of `LINES`: sorted by perplexity, they would answer what the notebook asks.
    """
    return {bug: measured_symptoms()["symptoms"][bug] for bug in LINES}


def in_figures(perplexity: float | None) -> str:
    """Write a perplexity as 4.3, 195, 47,700 or 3·10⁹, or that it is no number."""
    if perplexity is None:
        return "not a number"
    return formats.three_figures(perplexity) if perplexity < 1e6 else formats.power(perplexity)


def readable(text: str) -> str:
    """Write a text as one line: line ends as ⏎, without what the font can't draw."""
    shown = text.replace("<|im_end|>", "").replace("\n", "⏎").replace("$", r"\$")
    return "".join(c if c.isprintable() else "□" for c in shown).strip() or "(nothing)"


def _symptoms_controls() -> dict[str, live.Control]:
    return {"bug": live.Choice("bug", tuple(symptoms()), RIGHT), "others": live.Switch("show all others", False)}


@live.lab(
    width=9.8,
    height=4.6,
    controls=_symptoms_controls,
    neutral="Nothing is wrong at first, and the other bugs have no dots until they are asked for.",
    telling={"bug": "no causal mask", "others": True},
)
def symptoms_lab(figure: "plots.Figure") -> live.Update:
    """Choose a bug: the perplexity among those of all others, what the chatbot says, and one head's map."""
    found, known = symptoms(), measured_symptoms()
    names = list(found)
    right, vocabulary = found[RIGHT]["perplexity"], known["vocabulary"]
    finite = [of["perplexity"] for of in found.values() if of["perplexity"] is not None]
    end = 30 * max(finite)  # where those stand that are no number
    grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1), height_ratios=(1, 1.75))
    limits: dict[str, Any] = {"xlim": (min(finite) / 2, 20 * end), "ylim": (len(names) - 0.4, -1.6), "xscale": "log"}
    axes, chart = overlay(figure, grid[:, 0], **limits)
    tokens = [token.strip() for token in known["tokens"]]
    T = len(tokens)
    rows, weights = overlay(figure, grid[1, 1], xlim=(0, T), ylim=(T, 0))
    page = figure.add_subplot(grid[0, 1])
    places = [of["perplexity"] or end for of in found.values()]

    axes.set_xlabel("perplexity on a story")
    axes.set_yticks(np.arange(len(names)), names, size=9.5)
    axes.tick_params(axis="y", length=0)
    axes.minorticks_off()
    for value, name in ((right, "right"), (vocabulary, "guessing")):
        axes.axvline(value, color=plots.GREY, lw=1, ls=":", zorder=0.5)
        axes.text(value * 1.15, -0.9, name, size=9.5, color=plots.GREY, zorder=0.5)
    number_less = np.array([of["perplexity"] is None for of in found.values()])
    lines = chart.hlines(
        np.arange(len(names))[~number_less], right, np.array(places)[~number_less], color="#D5D5D5", lw=1.6
    )
    (dots,) = chart.plot(
        np.array(places)[~number_less], np.arange(len(names))[~number_less], "o", color=plots.GREY, ms=5
    )
    missing = [
        chart.text(right * 1.9, row, in_figures(None), va="center", size=9.5, color=plots.GREY)
        for row in np.flatnonzero(number_less).tolist()
    ]
    (dot,) = chart.plot([right], [0], "o", color=plots.ORANGE, ms=12)
    number = chart.text(right, 0, "", va="center", size=10.5, weight="bold", color=plots.ORANGE)

    page.set(xlim=(0, 1), ylim=(0, 1))
    page.set_axis_off()
    page.text(0, 0.98, known["question"], size=11, color=plots.GREY, va="top", zorder=0.5)
    says = page.text(0, 0.78, "", size=11.5, va="top", weight="bold", linespacing=1.25)
    line = page.text(0, 0.02, "", size=9.5, va="bottom", family="monospace", color=plots.PURPLE)

    blues = plots.colour_map(*plots.WEIGHTS_MAP)
    image = weights.imshow(np.zeros((T, T)), cmap=blues, vmin=0, vmax=1, aspect="auto", extent=(0, T, T, 0))
    weights.plot([0, *np.repeat(np.arange(1, T), 2), T], np.repeat(np.arange(T), 2), color=plots.GREY, lw=0.8)
    rows.set_xticks(np.arange(T) + 0.5, tokens, rotation=60, ha="right", rotation_mode="anchor", size=9)
    rows.set_yticks(np.arange(T) + 0.5, tokens, size=9)
    rows.tick_params(length=0)
    rows.spines[:].set_visible(False)
    label(figure)

    def update(bug: str, others: bool) -> str:
        of, row = found[bug], names.index(bug)
        dot.set_data([places[row]], [row])
        dot.set_visible(not number_less[row])  # what is no number has no place on the scale
        lines.set_visible(others)
        dots.set_visible(others)
        for text, at in zip(missing, np.flatnonzero(number_less), strict=True):
            text.set_visible(others and at != row)
        last = of["perplexity"] is None
        number.set(x=right * 1.9 if last else places[row] * 2.6, y=row)
        number.set_text(in_figures(of["perplexity"]))
        says.set_text("\n".join(textwrap.wrap(f"“{readable(of['says'])}”", 29)[:3]))
        line.set_text(LINES[bug])
        map_ = np.zeros((T, T)) if of["map"] is None else np.array(of["map"]) / 100
        image.set_data(map_)
        value = in_figures(None) if last else f"perplexity {in_figures(of['perplexity'])}"
        beside = "" if last or of["perplexity"] == right else f", not {in_figures(right)}"
        chart.set_title(f"{bug[0].upper()}{bug[1:]}: {value}{beside}")
        weights.set_title(f"One head: {looks(map_, of['map'] is None)}", size=11)
        return (
            f"… With nothing wrong perplexity is {in_figures(right)}, by guessing {vocabulary:,}. In the program "
            f"stands {LINES[bug]}. To “{known['question']}” the chatbot says: “{readable(of['says'])}” "
            f"The head is {known['head'][0]}.{known['head'][1]}. "
            f"{_listed(found) if others else ''}Stored results."
        )

    return update


def _listed(found: dict[str, dict[str, Any]]) -> str:
    return "All of them: " + "; ".join(f"{bug} {in_figures(of['perplexity'])}" for bug, of in found.items()) + ". "


def looks(map_: Any, none: bool) -> str:
    """Say what stands out in a map, (T, T)."""
    if none:
        return "no number is left"
    sums, ahead = map_.sum(axis=-1), np.triu(map_, 1).sum() / len(map_)
    if ahead > 0.02:
        return f"{ahead:.0%} looks ahead"
    if np.abs(sums - 1).max() > 0.1:
        return f"rows sum to {sums.min():.1f} … {sums.max():.1f}"
    return f"{np.diagonal(map_, -1)[1:].mean():.0%} on the token before"
