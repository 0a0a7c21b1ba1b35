"""Further runs, measured once and stored, since each takes up to minutes; `measure_…` measures any of them again."""

from typing import TYPE_CHECKING

from lesson_utils.classroom import plots
from lesson_utils.lessons.bottleneck import controls, experiment, scores
from lesson_utils.lessons.bottleneck.figures import CAPACITY, CAPACITY_LENGTHS, shares_by_length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# `measure_seen`: strings right, by length, of Luong's model that may read every n-th state. 40: only the last.
SEEN: dict[int, tuple[float, ...]] = {
    1: CAPACITY["general", 64, 2500],
    2: (0.963, 0.915, 0.922, 0.853, 0.828, 0.855, 0.805, 0.677, 0.667),
    4: (0.965, 0.845, 0.445, 0.365, 0.138, 0.107, 0.04, 0.048, 0.003),
    40: (0.995, 0.885, 0.525, 0.15, 0.022, 0.0, 0.0, 0.0, 0.0),
}
AT = CAPACITY_LENGTHS.index(12)
LONGER = {  # strings of 12 letters right after 10,000 steps: `measure_seen(4, 10_000)`, and `measure_capacity`
    "every fourth state": 0.75,
    "one vector of 64": CAPACITY[None, 64, 10_000][AT],
}
# `measure_rows`: share of the rows that peak on the letter they write, in the notebook's run and in two others.
TIMES_ASKED: dict[str, tuple[float, float, float]] = {
    "concat": (0.97, 0.97, 0.94),
    "concat before": (0.44, 0.43, 0.39),
    "Bahdanau": (0.4, 0.39, 0.17),
}
# `measure_kept`: of 16 letters anywhere in the answer, in their place, pairs in order; anagrams among the wrong
# answers to 12.
KEPT_OF_16: dict[str, tuple[float, ...]] = {
    "this run": (0.91, 0.37, 0.92, 0.74),
    "another start": (0.9, 0.36, 0.92, 0.69),
    "a third start": (0.9, 0.36, 0.91, 0.69),
}
# `measure_late`, from two other starts: of the model that reads in one direction, the weight one letter late, and the
# influence of the letter itself.
ONE_LETTER_LATE = ((0.99, 1.0), (0.99, 1.0))
# `measure_passing`: strings right, by length, of a network 64 wide of whose vector only so many numbers are passed on.
PASSED_ON: dict[int, tuple[float, ...]] = {
    16: (0.99, 0.87, 0.39, 0.06, 0.0, 0.0, 0.0, 0.0, 0.0),
    32: (1.0, 0.95, 0.7, 0.3, 0.05, 0.0, 0.0, 0.0, 0.0),
    64: CAPACITY[None, 64, 2500],
}


def measure_passing(numbers: int, d_hidden: int = 64, steps: int = 2500, tests: int = 400) -> tuple[float, ...]:
    """Train a model with one fixed vector that passes on only so many of its numbers; strings right, by length."""
    model = controls.passing_on(experiment.untrained(None, d_hidden), numbers)
    experiment.fit(model, steps, progress=False)
    return tuple(round(experiment.accuracy(model, length, tests), 2) for length in CAPACITY_LENGTHS)


def measure_seen(n: int, steps: int = 2500, tests: int = 400) -> tuple[float, ...]:
    """Train Luong's model as in the notebook, but let it read every n-th state only; strings right, by length."""
    model = controls.reading_every(experiment.untrained("general"), n)
    experiment.fit(model, steps, progress=False)
    return tuple(round(experiment.accuracy(model, length, tests), 3) for length in CAPACITY_LENGTHS)


def measure_rows(kind: str, seed: int, steps: int = 600) -> float:
    """Train a small model as in the notebook, from another start; the share of rows that peak on their letter."""
    snapshots, _ = scores.small_model(kind, steps, seed)
    return round(snapshots[max(snapshots)].rows, 2)


def measure_kept(seed: int, d_hidden: int = 64, steps: int = 2500) -> tuple[float, ...]:
    """Train the model with one fixed vector; what it keeps of 16 letters, and how many wrong answers are anagrams."""
    model = experiment.untrained(None, d_hidden, seed=seed)
    experiment.fit(model, steps, seed=seed, progress=False)
    sixteen, twelve = (experiment.kept(model, length) for length in (16, 12))
    shares = sixteen.present, sixteen.in_place, sixteen.in_order, twelve.anagrams
    return tuple(round(share, 2) for share in shares)


def measure_late(seed: int, word: str = "ambidextrous", steps: int = 2500) -> tuple[float, float]:
    """Train the model that reads in one direction; its weight one letter late, and what the letter itself decides."""
    model = experiment.untrained("general", bidirectional=False, seed=seed)
    experiment.fit(model, steps, seed=seed, progress=False)
    looks, decides = experiment.looks(model, word), experiment.influence(model, word)
    return round(experiment.weight_on(looks, 1), 2), round(experiment.weight_on(decides, 0, 1), 2)


@plots.still(8.6, 4.0)
def memory_plot(figure: "Figure", at: int = 12) -> str:
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
    finding = f"{at} letters: " + ", ".join(f"{names[n]} {share:.0%}" for n, share in of.items())
    ax.set_title(finding)
    rows = (
        f"{names[n]}: " + ", ".join(f"{k}: {s:.0%}" for k, s in zip(CAPACITY_LENGTHS, SEEN[n], strict=True))
        for n in names
    )
    return f"{finding}. Strings all right by length, of the same network, by what it may read. {'; '.join(rows)}."
