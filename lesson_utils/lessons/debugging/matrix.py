"""A matrix of bugs by tests: instruments on untrained models, computed here, beside what tasks notice, stored."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.debugging import broken, instruments, tried
from lesson_utils.lessons.debugging.overlay import overlay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = tried.BUGS
HEALTHY = "(healthy)"  # the row above them: what no instrument may find
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
VOCAB, T, B = 13, 9, 3
SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 4, "num_layers": 2, "dtype": np.float64}


@cache
def healthy_start(seed: int = 0) -> float:
    """Return the loss of a healthy model of this size that has not been trained."""
    rng = np.random.default_rng(seed)
    batch = rng.integers(VOCAB, size=(B, T)), rng.integers(VOCAB, size=(B, T))
    return broken.patient("", VOCAB, seed, **SIZES).loss(batch)


@cache
def found(bug: str, seed: int = 0) -> dict[str, bool]:
    """Tell which instruments find a bug in a small model that has not been trained, in float64."""
    rng = np.random.default_rng(seed)
    model = broken.patient(bug, VOCAB, seed, **SIZES)
    ids = rng.integers(VOCAB, size=(B, T))
    batch = ids, rng.integers(VOCAB, size=(B, T))
    rotation = np.roll(np.arange(T), 4)[None]
    right = broken.twin(model)
    measured = (
        abs(model.loss(batch) - healthy_start(seed)) > 1,
        instruments.leak_in_time(model, ids[0], 5)[:5].max() > SMALL,
        instruments.leak_across_rows(model, ids[0], ids[1:]).max() > SMALL,
        instruments.order(model, ids[0], rotation).max() < SMALL,
        instruments.cache_parity(model, ids[0], 4).max() > SMALL,
        instruments.gradient(model, batch, rng) > 1e-3,
        np.abs(model.forward(ids)[0] - right.forward(ids)[0]).max() > SMALL,
    )
    return dict(zip(INSTRUMENTS, map(bool, measured), strict=True))


def shares(bug: str, task: str) -> tuple[float, float | None]:
    """Return the share of symbols right when the true ones before are given, and when the model goes on by itself."""
    in_training, alone = tried.stored()[bug][task][0]
    return in_training, alone


def possible(task: str) -> list[str]:
    """List the bugs that a task's model can have."""
    return [bug for bug in ROWS if bug not in tried.ABSENT.get(task, ())]


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
    task=live.Choice("task", (NONE, *tried.TASKS), NONE),
)
def matrix_lab(figure: "Figure") -> live.Update:
    """Show bugs by instruments; on the right, what a task notices."""
    from matplotlib.colors import to_rgb

    shown = ("", *ROWS)  # a healthy model first, to compare with
    n, k = len(shown), len(INSTRUMENTS)
    grid = figure.add_gridspec(2, 2, height_ratios=(0.001, 1), width_ratios=(k, 2.3))
    head = figure.add_subplot(grid[0, :])
    head.set_axis_off()
    left = figure.add_subplot(grid[1, 0])
    labels, right = overlay(figure, grid[1, 1], xlim=(0, 2), ylim=(n, 0))
    yes, no, noticed_, blind_ = (np.array(to_rgb(c)) for c in (plots.BLUE, "#E3E3E3", plots.ORANGE, "#4A4A4A"))
    nothing = np.array(to_rgb("#F4F4F4"))  # where nothing was measured
    finds = np.array([list(found(bug).values()) for bug in shown])  # (bugs, instruments)
    left.imshow(np.where(finds[..., None], yes, no), aspect="auto", extent=(0, k, n, 0))
    broken_up = {"loss at the start": "loss at\nthe start", "leak across rows": "leak across\nrows"}
    left.set_xticks(
        np.arange(k) + 0.5, [broken_up.get(name, name.replace(" ", "\n", 1)) for name in INSTRUMENTS], size=10
    )
    left.set_yticks(np.arange(n) + 0.5, (HEALTHY, *ROWS), size=10.5)
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
    listed = "; ".join(
        f"{bug or HEALTHY}: {', '.join(name for name, yes in found(bug).items() if yes) or 'nothing'}" for bug in shown
    )

    def update(task: str) -> str:
        if task == NONE:
            cells.set_data(np.ones((n, 2, 3)))
            for text in (text for pair in texts for text in pair):
                text.set_text("")
            head.set_title(f"Without training: {by_instruments} of {len(ROWS)} bugs are found by an instrument")
            return f"{head.get_title(loc='left')}. No task is chosen yet. Found by: {listed}."
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
        told = ", ".join(f"{bug or HEALTHY} {shares(bug, task)[0]:.2f}" for bug in ("", *can))
        return f"{head.get_title(loc='left')}. Share right after training: {told}. Found by: {listed}."

    return update
