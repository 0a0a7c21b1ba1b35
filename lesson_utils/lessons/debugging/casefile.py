"""The case file: a patient's gauges, without its name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.debugging import examined
from lesson_utils.lessons.debugging.instruments import ROUNDING
from lesson_utils.maths import tasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PATIENTS = tuple(range(1, len(examined.BUGS) + 1))
HEALTHY = "healthy"  # beside the patients: what there is to compare with
FLOOR, BREAK = -4.0, -3.0  # on the scale of tens; below the break is rounding
GAUGES = ("start", "curve", "time", "rows", "order", "cache")  # as `alarms` has them


def of(patient: int) -> examined.Examined:
    """Return what was measured about a patient, by number."""
    if patient not in PATIENTS:
        raise ValueError(f"patient={patient} is not in the file; choose 1 to {len(PATIENTS)}")
    return examined.stored()[examined.BUGS[patient - 1]]


def ln_vocabulary() -> float:
    """Return ln V, the loss of a model that gives all symbols the same probability, in nats."""
    return float(np.log(len(examined.text()[0])))


def alarms(found: examined.Examined) -> tuple[bool, ...]:
    """Tell which of the six gauges are out of the healthy range, in the order of `GAUGES`."""
    healthy = examined.stored()[""]
    end, right = np.mean(found.losses[-3:]), np.mean(healthy.losses[-3:])
    return (
        abs(found.start - ln_vocabulary()) > 1,
        bool(abs(end - right) > 0.15 * right),
        max(found.time[: examined.CHANGED]) > ROUNDING,
        max(found.rows) > ROUNDING,
        max(found.order) < ROUNDING,
        max(found.parity) > ROUNDING,
    )


class Movements:
    """Bars on a scale of tens; what is rounding lies below a dotted line. Orange where a bar should not be."""

    def __init__(self, ax: "Axes", names: Sequence[str], label: str) -> None:
        self.bars = ax.bar(np.arange(len(names)), np.ones(len(names)), bottom=FLOOR, width=0.7)
        ax.set(ylim=(FLOOR, 1.6), xlim=(-0.6, len(names) - 0.4), xlabel=label, ylabel="moves by")
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks([FLOOR, -2, -1, 0, 1], ["0", "0.01", "0.1", "1", "10"])
        ax.axhline(BREAK, color=plots.GREY, lw=1, ls=(0, (2, 3)))
        self.ax = ax

    def set(self, moved: Sequence[float], wrong: Sequence[bool]) -> None:
        """Set the heights of the bars, and colour those that are wrong."""
        for bar, x, alarm in zip(self.bars, moved, wrong, strict=True):
            tens = np.log10(max(x, 1e-9))
            bar.set_height((0.35 if x else 0.12) if x < ROUNDING else max(tens, BREAK + 0.1) - FLOOR)
            bar.set_color(plots.ORANGE if alarm else plots.BLUE)


@live.lab(
    width=9.4,
    height=4.6,
    neutral="A healthy model comes first, which is none of the patients.",
    patient=live.Choice("patient", (HEALTHY, *PATIENTS), HEALTHY),
)
def case_lab(figure: "Figure") -> live.Update:
    """Six gauges and a sample of a patient without a name, or of a healthy model."""
    grid = figure.add_gridspec(3, 3, height_ratios=(1, 1, 0.2))
    (start, curve, time), (rows, order, cache_) = ([figure.add_subplot(grid[y, x]) for x in range(3)] for y in (0, 1))
    ln_V = ln_vocabulary()
    healthy = examined.stored()[""]
    (bar,) = start.barh([0], [1], height=0.5)
    start.set(xlim=(0, 20), ylim=(-0.7, 0.7), yticks=[], xlabel="nats (dashed: ln V)")
    start.axvline(ln_V, color=plots.INK, ls="--", lw=1.6)
    steps = np.arange(len(healthy.losses)) * examined.WINDOW + examined.WINDOW / 2
    curve.plot(steps, healthy.losses, color=plots.GREY, lw=1.6)
    (line,) = curve.plot(steps, steps, color=plots.BLUE)
    curve.set(xlim=(0, examined.STEPS), ylim=(0, 5.4), xlabel="step (grey: a healthy one)", ylabel="nats")
    T, at = examined.T, examined.CHANGED
    every_third = [str(i) if i % 3 == 0 else "" for i in range(T)]
    moves = (
        Movements(time, every_third, f"output (symbol {at} replaced)"),
        Movements(rows, [str(n + 1) for n in range(examined.OTHERS)], "rows before it in the batch"),
        Movements(order, [str(n + 1) for n in range(examined.SHUFFLES)], "shuffle (all visible)"),
        Movements(cache_, every_third, f"output (cache from {examined.PROMPT} on)"),
    )
    below = figure.add_subplot(grid[2, :])
    below.set_axis_off()
    written = below.text(0, 0.4, "", family="monospace", size=11, va="center", in_layout=False)
    named = ("Loss at the start", "Loss at the end", "Leak in time", "Leak across rows", "Order", "Cache parity")
    titles = list(zip((start, curve, time, rows, order, cache_), named, strict=True))

    def update(patient: int | str) -> str:
        found = examined.stored()[""] if patient == HEALTHY else of(int(patient))
        who = "A healthy model" if patient == HEALTHY else f"Patient {patient}"
        rang = alarms(found)
        bar.set_width(min(found.start, 20))
        bar.set_color(plots.ORANGE if rang[0] else plots.BLUE)
        line.set_ydata(np.minimum(found.losses, 5.4))
        line.set_color(plots.ORANGE if rang[1] else plots.BLUE)
        moves[0].set(found.time, [x > ROUNDING and i < at for i, x in enumerate(found.time)])
        moves[1].set(found.rows, [x > ROUNDING for x in found.rows])
        moves[2].set(found.order, [x < ROUNDING for x in found.order])
        moves[3].set(found.parity, [x > ROUNDING for x in found.parity])
        end = float(np.mean(found.losses[-3:]))
        said = (f"{found.start:.1f}", f"{end:.2f}", *map(_largest, _extremes(found)))
        for (ax, name), number in zip(titles, said, strict=True):
            ax.set_title(f"{name}: {number}")
        written.set_text(f"{who} writes: “{found.sample}”")
        readings = "; ".join(f"{name} {number}" for (_, name), number in zip(titles, said, strict=True))
        ringing = [name for name, alarm in zip(GAUGES, rang, strict=True) if alarm]
        return (
            f"{who}: {len(ringing) or 'no'} of 6 gauges out of the healthy range"
            f"{': ' + ', '.join(ringing) if ringing else ''}. {readings}. ln V is {ln_V:.2f}. It writes: {found.sample}"
        )

    return update


def _extremes(found: examined.Examined) -> tuple[float, ...]:
    return max(found.time[: examined.CHANGED]), max(found.rows), max(found.order), max(found.parity)


def _largest(x: float) -> str:
    return "0" if x == 0 else "rounding" if x < ROUNDING else f"{x:.2g}"


def table(*patients: int) -> None:
    """Print the gauges of patients in lines: o = as in a healthy model, X = not."""
    print("patient  ", *(f"{name:6}" for name in GAUGES))
    for patient in patients or PATIENTS:
        print(f"{patient:7}  ", *(f"{'X' if alarm else 'o':6}" for alarm in alarms(of(patient))))


def gauges() -> Any:
    """Return the alarms of all patients, (16, 6) booleans, for `check.triage`."""
    return np.array([alarms(of(patient)) for patient in PATIENTS])


def examine(patient: int, seed: int = 0) -> None:
    """Train this patient here, with another start if you like, and print what the instruments say beside the file."""
    found, filed = examined.examine(examined.BUGS[patient - 1], seed), of(patient)
    print(f"patient {patient}          here    on file")
    names = ("leak in time", "leak across rows", "order", "cache parity")
    rows = [("loss at the start", found.start, filed.start), ("loss at the end", found.losses[-1], filed.losses[-1])]
    for name, x, y in (*rows, *zip(names, _extremes(found), _extremes(filed), strict=True)):
        print(f"{name:17} {x:8.2g} {y:8.2g}")
    print("It writes:", found.sample)


def characters() -> tuple[tasks.Vocabulary, Any]:
    """Return what the patients read: the vocabulary, and the text as ids."""
    return examined.text()
