"""Figures of what arrives of a string, by its length and by the size of the vector."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.bottleneck import experiment
from lesson_utils.lessons.bottleneck.experiment import Kept

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {  # colour, dash, marker
    "one fixed vector": (plots.ORANGE, "--", "s"),
    "Bahdanau": (plots.GREEN, "-.", "^"),
    "Luong": (plots.BLUE, "-", "o"),
}


def shares_by_length(ax: "Axes", label: str) -> None:
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


@plots.still(8.4, 3.9)
def kept_plot(figure: "Figure", measured: Mapping[int, Kept], at: int = 16) -> str:
    """Draw what one fixed vector keeps, by length: which letters there were, in which order, and where."""
    lengths = list(measured)
    present, in_order, in_place, chance = (
        [getattr(kept, name) for kept in measured.values()] for name in ("present", "in_order", "in_place", "chance")
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
    finding = (
        f"Of {at} letters, {measured[at].present:.0%} are in the answer, {measured[at].in_place:.0%} in their place"
    )
    ax.set_title(finding)
    rows = "; ".join(
        f"{n}: {k.present:.0%}, {k.in_place:.0%}, {k.in_order:.0%}, {k.chance:.0%}" for n, k in measured.items()
    )
    return (
        f"{finding}. Shares by the length of a string: its letters anywhere in the answer, in the right place, pairs "
        f"of letters in the right order, its letters in the answer to another string. {rows}."
    )


@plots.still(8.4, 4.0)
def accuracy_plot(
    figure: "Figure", curves: Mapping[str, Mapping[int, float]], trained: tuple[int, int] = (3, 20), at: int = 12
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
    finding = f"Length {at}: " + ", ".join(f"{name} {curve[at]:.0%}" for name, curve in curves.items())
    ax.set_title(finding)
    rows = (f"{name}: " + ", ".join(f"{n}: {s:.0%}" for n, s in curve.items()) for name, curve in curves.items())
    return f"{finding}. Strings all right by length. {'; '.join(rows)}."


# --- The size of the vector ---------------------------------------------------------------------------------------

# Measured once with `measure_capacity`, which takes seconds to minutes for a point: too long for a slider.
CAPACITY_LENGTHS = (4, 6, 8, 10, 12, 14, 16, 18, 20)
SIZES = (16, 32, 64, 128)
SHORT = 2500  # steps: the shorter of two trainings
CAPACITY: dict[tuple[str | None, int, int], tuple[float, ...]] = {  # attention, hidden size, steps
    (None, 16, 2500): (0.75, 0.18, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 32, 2500): (0.99, 0.81, 0.34, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 64, 2500): (1.0, 0.96, 0.75, 0.34, 0.11, 0.02, 0.0, 0.0, 0.0),
    (None, 128, 2500): (1.0, 0.99, 0.91, 0.73, 0.37, 0.16, 0.05, 0.0, 0.0),
    (None, 16, 10_000): (0.99, 0.86, 0.34, 0.04, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 32, 10_000): (1.0, 1.0, 0.91, 0.56, 0.19, 0.03, 0.0, 0.0, 0.0),
    (None, 64, 10_000): (1.0, 1.0, 0.97, 0.9, 0.72, 0.4, 0.16, 0.03, 0.0),
    (None, 128, 10_000): (1.0, 1.0, 1.0, 1.0, 0.98, 0.92, 0.74, 0.47, 0.14),
    (None, 192, 2500): (1.0, 1.0, 0.98, 0.91, 0.69, 0.38, 0.17, 0.05, 0.01),  # as many numbers as 12 states of 16
    ("general", 16, 2500): (0.9, 0.8, 0.72, 0.61, 0.52, 0.39, 0.26, 0.11, 0.03),
    ("general", 16, 10_000): (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.97),
    ("general", 32, 2500): (0.99, 0.97, 0.95, 0.95, 0.9, 0.88, 0.86, 0.83, 0.7),
    ("general", 64, 2500): (1.0, 0.99, 0.99, 0.99, 0.98, 0.98, 0.97, 0.97, 0.95),
    ("general", 128, 2500): (1.0, 1.0, 1.0, 0.99, 0.98, 0.99, 0.98, 0.98, 0.96),
}


# `with_doubles` at 8 letters, of one fixed vector, trained where every second letter repeats the one before it:
# of different letters, and of letters in pairs.
TRAINED_ON_REPEATS = (0.225, 0.805)


def measure_capacity(
    attention: str | None, d_hidden: int, steps: int, tests: int = 400, seed: int = 0
) -> tuple[float, ...]:
    """Train a model of one size as in the notebook; how many strings it gets right, by length."""
    model = experiment.untrained(attention, d_hidden, seed=seed)
    experiment.fit(model, steps, seed=seed, progress=False)
    return tuple(round(experiment.accuracy(model, length, tests), 2) for length in CAPACITY_LENGTHS)


@live.lab(
    width=8.4,
    height=4.0,
    neutral="It opens with the smallest vector; larger ones are drawn when they are chosen.",
    d_hidden=live.Choice("numbers in the vector", SIZES, SIZES[0]),
    steps=live.Choice("training steps", (SHORT, 10_000), SHORT),
)
def capacity_lab(figure: "Figure") -> live.Update:
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
        listed, rest = (
            ", ".join(f"{n}: {share:.0%}" for n, share in zip(CAPACITY_LENGTHS, shares, strict=True))
            for shares in (fixed, luong)
        )
        return (
            f"One fixed vector of {d_hidden} numbers after {steps:,} steps gets most strings right up to length "
            f"{holds}. By length: {listed}. With a look back, as wide, after {SHORT:,} steps: {rest}."
        )

    return update
