"""Figures of the learning rates that survive, from what was measured in `rates`."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.training import rates
from lesson_utils.lessons.training.experiment import rungs
from lesson_utils.lessons.training.film import draw_rungs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENOUGH = 0.5  # of the held-out dates right: such a rate has survived
NONE = 0.05  # of the held-out dates right: such a run has failed


def means(norm: str, left_out: str, what: str = "exact") -> list[float]:
    """Return the mean over the seeds, for each rate."""
    return [float(np.mean([x for x in of if x is not None])) for of in rates.stored()[rates.key(norm, left_out)][what]]


def survivors(norm: str, left_out: str) -> list[float]:
    """Return the rates at which most of the held-out dates come out right, on average over the seeds."""
    found = zip(rates.RATES, means(norm, left_out), strict=True)
    return [rate for rate, right in found if right >= ENOUGH]


def starts(norm: str, left_out: str, rate: float, what: str = "exact") -> list[float]:
    """Return the result of each start."""
    return [float(x) for x in rates.stored()[rates.key(norm, left_out)][what][rates.RATES.index(rate)]]


def larger(size: str, norm: str, left_out: str, rate: float, what: str = "exact") -> float:
    """Return the result of one larger run; `size` is one of `rates.LARGER`."""
    return float(rates.stored()[size][rates.key(norm, left_out)][what][str(rate)])


def larger_table() -> str:
    """List the share right at three rates: as above, mean of the starts, and in one run each that is twice as large.

    Below stands what smoothing does to the loss.
    """
    shown, parts = rates.RATES[4:7], ("nothing", "warm-up", "clipping", "warm-up and clipping")
    blocks = ("as above", *rates.LARGER)
    heads = "   ".join("".join(f"{as_text(rate):>7}" for rate in shown) for _ in blocks)
    lines = ["norm, what is left out".ljust(26) + "   ".join(f"{name:>21}" for name in blocks), f"{'':26}{heads}"]
    for norm, part in itertools.product(("pre", "post"), parts):
        rows = [means(norm, part)[4:7], *([larger(size, norm, part, rate) for rate in shown] for size in rates.LARGER)]
        cells = "   ".join("".join(f"{x:7.2f}" for x in row) for row in rows)
        lines.append(f"{norm + ', ' + part:26}{cells}")
    lines.append("\nloss of held-out dates at 0.008, smoothing left out, or nothing")
    for norm, part in itertools.product(("pre", "post"), ("smoothing", "nothing")):
        losses = [means(norm, part, "loss")[4], *(larger(size, norm, part, 0.008, "loss") for size in rates.LARGER)]
        lines.append(f"{norm + ', ' + part:26}" + "   ".join(f"{x:21.3f}" for x in losses))
    return "\n".join(lines)


def as_text(rate: float) -> str:
    return f"{rate:.4f}".rstrip("0")


def past_the_cliff(norm: str, left_out: str) -> list[float]:
    """Return the held-out losses of all runs at higher rates than the best one that get hardly a date right."""
    found = rates.stored()[rates.key(norm, left_out)]
    best = int(np.argmax(means(norm, left_out)))
    pairs = zip(found["exact"][best + 1 :], found["loss"][best + 1 :], strict=True)
    return [loss for of in pairs for right, loss in zip(*of, strict=True) if right < NONE]


@live.lab(
    width=9.4,
    height=4.2,
    neutral="Nothing is left out, and the norm stands before: the questions are of what is left out, and of post-norm.",
    norm=live.Choice("norm", ("pre", "post"), "pre"),
    left_out=live.Choice("left out", rates.LEFT_OUT, "nothing"),
)
def survival_lab(figure: "Figure") -> live.Update:
    """Show which of eight learning rates work with a part of the recipe left out, and where the losses of all end."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    places = np.arange(len(rates.RATES))
    left.set(xlim=(-0.5, len(places) - 0.5), ylim=(0, 1.3), yticks=(0, 0.5, 1))
    left.set(xlabel="learning rate", ylabel="share of held-out dates right")
    right.set(xlim=(-0.5, len(places) + 1.4), ylim=(0, 2.9))
    right.set(xlabel="learning rate", ylabel="loss of held-out dates (nats)")
    for ax in (left, right):
        ax.set_xticks(places, [as_text(rate) if n % 2 else "" for n, rate in enumerate(rates.RATES)], size=10)
    left.axhline(ENOUGH, color=plots.GREY, lw=0.8, ls=":", zorder=0.5)
    (whole,) = left.plot(places, places, "--", color=plots.GREY, lw=1.6, label="nothing left out")
    (mean,) = left.plot(places, places, "-", color=plots.BLUE, label="mean of the starts (circles)")
    look = {"color": plots.BLUE, "ms": 6, "mfc": "none", "mew": 1.4, "clip_on": False}
    dots = left.plot(places, np.zeros((len(places), rates.STARTS)), "o", **look)
    ends = right.plot(places, np.zeros((len(places), rates.STARTS)), "o", **look)
    left.legend(loc="upper left", fontsize=10)
    draw_rungs(right, len(places) + 1.35)

    def update(norm: str, left_out: str) -> str:
        found = rates.stored()[rates.key(norm, left_out)]
        whole.set_ydata(means(norm, "nothing"))
        averages = means(norm, left_out)
        mean.set_ydata(averages)
        for seed, lines in enumerate(zip(dots, ends, strict=True)):
            for line, what in zip(lines, ("exact", "loss"), strict=True):
                line.set_ydata([of[seed] for of in found[what]])
        alive = survivors(norm, left_out)
        without = "" if left_out == "nothing" else f", without {left_out}"
        count = f"{len(alive) or 'none'} of {len(rates.RATES)} rates"
        left.set_title(f"{norm}-norm{without}:\n{count} get more than half right")
        failed = past_the_cliff(norm, left_out)
        near = sum(min(abs(loss - rung) for rung in rungs().values()) < 0.1 for loss in failed)
        right.set_title(f"{near} of {len(failed)} runs past the cliff\nend within 0.1 of a rung")
        listed = ", ".join(f"{as_text(r)}: {a:.2f}" for r, a in zip(rates.RATES, averages, strict=True))
        losses = ", ".join(
            f"{as_text(r)}: {a:.2f}" for r, a in zip(rates.RATES, means(norm, left_out, "loss"), strict=True)
        )
        head = ". ".join(ax.get_title(loc="left").replace("\n", " ") for ax in (left, right))
        return (
            f"{head}. Share right by learning rate, mean of {rates.STARTS}: {listed}. "
            f"Loss of held-out dates: {losses}. Rungs: "
            f"{', '.join(f'{name} {loss:.2f}' for name, loss in rungs().items())}."
        )

    return update
