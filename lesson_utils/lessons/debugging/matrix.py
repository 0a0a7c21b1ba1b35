"""A matrix of bugs by tests: instruments on untrained models, computed here, beside what tasks notice, stored."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.debugging import broken, instruments, tried

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = (*tried.BUGS, "cache counts calls")
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
def found(bug: str, seed: int = 0) -> dict[str, bool]:
    """Tell which instruments find a bug in a small model that has not been trained, in float64."""
    rng = np.random.default_rng(seed)
    model = broken.patient(bug, VOCAB, seed, **SIZES)
    ids = rng.integers(VOCAB, size=(B, T))
    batch = ids, rng.integers(VOCAB, size=(B, T))
    rotation = np.roll(np.arange(T), 4)[None]
    right = broken.twin(model)
    measured = (
        abs(model.loss(batch) - np.log(VOCAB)) > 1.5,
        instruments.leak_in_time(model, ids[0], 5)[:5].max() > SMALL,
        instruments.leak_across_rows(model, ids[0], ids[1:]).max() > SMALL,
        instruments.order(model, ids[0], rotation).max() < SMALL,
        instruments.cache_parity(model, ids[0], 4).max() > SMALL,
        instruments.gradient(model, batch, rng) > 1e-3,
        np.abs(model.forward(ids)[0] - right.forward(ids)[0]).max() > SMALL,
    )
    return dict(zip(INSTRUMENTS, map(bool, measured), strict=True))


def shares(bug: str, task: str) -> tuple[float, float | None]:
    """Return the share of symbols right in training, and writing alone. A bug of the cache does not change these."""
    in_training, alone = tried.stored()["" if bug not in tried.BUGS else bug][task][0]
    return in_training, alone


def noticed(bug: str, task: str) -> tuple[bool, bool]:
    """Tell whether a model with the bug trains worse than a healthy one, and whether it writes worse by itself."""
    (guided, alone), (best, best_alone) = shares(bug, task), shares("", task)
    return guided < best - NOTICED, alone is not None and best_alone is not None and alone < best_alone - NOTICED


def blind(task: str) -> list[str]:
    """List the bugs with which a model trains on a task as well as a healthy one."""
    return [bug for bug in ROWS if not noticed(bug, task)[0]]


@live.lab(
    width=9.4,
    height=4.6,
    neutral="The columns of what a task notices are empty until one is chosen.",
    task=live.Choice("task", (NONE, *tried.TASKS), NONE),
)
def matrix_lab(figure: "Figure") -> live.Update:
    """Show bugs by instruments; on the right, what a task notices."""
    from matplotlib.patches import Rectangle

    ax = figure.add_subplot()
    columns = (*INSTRUMENTS, "trains to 100 %?", "writes as well?")
    places = [*range(len(INSTRUMENTS)), len(INSTRUMENTS) + 0.4, len(INSTRUMENTS) + 1.4]
    ax.set(xlim=(-0.6, places[-1] + 0.6), ylim=(len(ROWS) - 0.4, -0.6))
    broken_up = {"loss at the start": "loss at\nthe start", "leak across rows": "leak across\nrows"}
    ax.set_xticks(places, [broken_up.get(name, name.replace(" ", "\n", 1)) for name in columns], size=10)
    ax.set_yticks(range(len(ROWS)), ROWS, size=10.5)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for y, bug in enumerate(ROWS):
        for x, name in enumerate(INSTRUMENTS):
            colour = plots.BLUE if found(bug)[name] else "#E3E3E3"
            ax.add_patch(Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, fc=colour, ec="none"))
    cells = {}
    for y in range(len(ROWS)):
        for n, x in enumerate(places[-2:]):
            patch = ax.add_patch(Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, fc=plots.GREY, ec="none"))
            cells[y, n] = patch, ax.text(x, y, "", ha="center", va="center", size=9.5)

    by_instruments = sum(any(found(bug).values()) for bug in ROWS)
    listed = "; ".join(
        f"{bug}: {', '.join(name for name, yes in found(bug).items() if yes) or 'nothing'}" for bug in ROWS
    )

    def update(task: str) -> str:
        listed_shares = []
        for patch, text in cells.values():
            patch.set_visible(task != NONE)
            text.set_text("")
        if task == NONE:
            ax.set_title(f"Without training: {by_instruments} of {len(ROWS)} bugs are found by an instrument", y=1.09)
            return f"{ax.get_title(loc='left')}. No task is chosen yet. Found by: {listed}."
        for y, bug in enumerate(ROWS):
            for n, (share, finds) in enumerate(zip(shares(bug, task), noticed(bug, task), strict=True)):
                patch, text = cells[y, n]
                patch.set_facecolor(plots.ORANGE if finds else "#4A4A4A")
                text.set_text("–" if share is None else f"{share:.2f}")
                text.set_color("white")
            listed_shares.append(f"{bug} {shares(bug, task)[0]:.2f}")
        unseen = blind(task)
        ax.set_title(f"Trained on {task}, {len(unseen)} of {len(ROWS)} bugs do as well as none", y=1.09)
        return (
            f"{ax.get_title(loc='left')}. Share right after training: {', '.join(listed_shares)}. Found by: {listed}."
        )

    return update
