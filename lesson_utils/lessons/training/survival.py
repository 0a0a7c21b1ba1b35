"""Which learning rates survive: what was measured in `rates`, drawn."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils import live, plots
from lesson_utils.lessons.training import rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENOUGH = 0.5  # of the held-out dates right: such a rate has survived


def means(norm: str, left_out: str, what: str = "exact") -> list[float]:
    """The mean over the seeds, for each rate."""
    return [float(np.mean([x for x in of if x is not None])) for of in rates.stored()[rates.key(norm, left_out)][what]]


def survivors(norm: str, left_out: str) -> list[float]:
    """The rates at which most of the held-out dates come out right, on average over the seeds."""
    found = zip(rates.RATES, means(norm, left_out), strict=True)
    return [rate for rate, right in found if right >= ENOUGH]


def named(rate: float) -> str:
    return f"{rate:.4f}".rstrip("0")


@live.lab(
    width=9.4,
    height=4.0,
    norm=live.Choice("norm", ("pre", "post"), "pre"),
    left_out=live.Choice("left out", rates.LEFT_OUT, "nothing"),
    rate=live.Choice("learning rate", rates.RATES, rates.RATES[4]),
)
def survival_lab(figure: "Figure") -> live.Update:
    """Accuracy over eight learning rates, with a part of the recipe left out; and the loss of one run."""
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    places = np.arange(len(rates.RATES))
    left.set(
        xlim=(-0.5, len(places) - 0.5),
        ylim=(0, 1.3),
        yticks=np.arange(6) / 5,
        xlabel="learning rate",
        ylabel="held-out dates right",
    )
    left.set_xticks(places, [named(rate) for rate in rates.RATES], size=10)
    left.axhline(ENOUGH, color=plots.GREY, lw=0.8, ls=":", zorder=0.5)
    (whole,) = left.plot(places, places, "--", color=plots.GREY, lw=1.6, label="nothing left out")
    (mean,) = left.plot(places, places, "-", color=plots.BLUE, label="mean of the starts (circles)")
    dots = [
        left.plot(places, places, "o", color=plots.BLUE, ms=5, mfc="none")[0] for _ in range(max(rates.STARTS.values()))
    ]
    (chosen,) = left.plot([0], [0], "o", color=plots.INK, ms=13, mfc="none", mew=2, clip_on=False)
    left.legend(loc="upper left", fontsize=10)
    steps = np.arange(rates.STEPS // rates.WINDOW) * rates.WINDOW + rates.WINDOW / 2
    right.set(xlim=(0, rates.STEPS), ylim=(0, 4), xlabel="training step", ylabel="loss in training (nats)")
    (curve,) = right.plot(steps, steps, color=plots.BLUE)

    def update(norm: str, left_out: str, rate: float) -> str:
        found, n = rates.stored()[rates.key(norm, left_out)], rates.RATES.index(rate)
        averages = means(norm, left_out)
        whole.set_ydata(means(norm, "nothing"))
        mean.set_ydata(averages)
        for seed, line in enumerate(dots):
            line.set_visible(seed < rates.STARTS[left_out])
            line.set_ydata([of[min(seed, len(of) - 1)] for of in found["exact"]])
        chosen.set_data([n], [averages[n]])
        losses = found["losses"][n]
        curve.set_data(steps[: len(losses)], np.clip(losses, 0, 50))
        alive = survivors(norm, left_out)
        without = "" if left_out == "nothing" else f", without {left_out}"
        count = f"{len(alive) or 'no'} of 8 rates"
        left.set_title(f"{norm}-norm{without}:\n{count} get more than half right")
        clipped = float(np.mean(found["clipped"][n]))
        right.set_title(f"At {named(rate)}: {averages[n]:.0%} right;\ngradient longer than 1 in {clipped:.0%} of steps")
        listed = ", ".join(f"{named(r)}: {a:.2f}" for r, a in zip(rates.RATES, averages, strict=True))
        told = (left.get_title(loc="left"), right.get_title(loc="left"))
        head = ". ".join(text.replace("\n", " ") for text in told)
        return (
            f"{head}. Share right by learning rate, mean of {rates.STARTS[left_out]}: {listed}. "
            f"Loss at the end {losses[-1]:.2f}."
        )

    return update
