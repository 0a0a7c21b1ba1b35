"""Deep stacks in training: five runs, what they learn, and how much gradient their bottom layer gets."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.full_block.places import gradient_norm
from lesson_utils.maths import tasks
from lesson_utils.maths.models import GPT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_LENGTH, LINE_SYMBOLS = 4, 8


def reversal_lines(rng: np.random.Generator, batch: int = 48) -> tuple[Any, Any]:
    """Make lines for a GPT: 4 symbols, a mark, the same backwards. Ids and the ids that follow them, (B, 8) each."""
    source, target = tasks.reversal(rng, batch, LINE_LENGTH, LINE_SYMBOLS)
    line = np.concatenate([source, np.full((batch, 1), tasks.BOS), target], axis=1)  # (B, 9)
    return line[:, :-1], line[:, 1:]


class Seen(NamedTuple):
    """The attributes of a `Watch`, as they are stored."""

    steps: list[int]
    accuracy: list[float]
    ratios: list[float]


class Watch:
    """A callback for `training.fit` on `reversal_lines`, at every step.

    Attributes:
        steps, accuracy: the share of reversed symbols that the model gets right, every 20 steps and at the end.
        ratios: for each step the gradient norm of the bottom layer over that of the top layer.
    """

    def __init__(self, model: GPT, every: int = 20) -> None:
        self.model, self.every, self.ratios = model, every, list[float]()
        self.steps, self.accuracy = [0], [self._measure()]

    def __call__(self, step: int, loss: float, history: object) -> None:
        bottom, top = (gradient_norm(self.model.stack.blocks[i]) for i in (0, -1))
        self.ratios.append(bottom / max(top, 1e-30))
        if step % self.every == 0:
            self.steps.append(step)
            self.accuracy.append(self._measure())

    def seen(self) -> Seen:
        return Seen(self.steps, self.accuracy, self.ratios)

    def _measure(self) -> float:
        ids, following = reversal_lines(np.random.default_rng(999), 128)
        logits, _ = self.model.forward(ids)
        return float((logits.argmax(axis=-1) == following)[:, LINE_LENGTH:].mean())


LOOKS = ((plots.BLUE, "-"), (plots.ORANGE, "--"), (plots.PURPLE, "-."), (plots.GREEN, (0, (5, 1))), (plots.INK, ":"))


@plots.still(9.4, 4.7)
def training_plot(figure: "Figure", runs: Mapping[str, Seen], failing: str = "post-norm") -> str:
    """Accuracy by step, and the bottom layer's gradient over the top layer's; both for all runs."""
    learnt = [name for name, run in runs.items() if run.accuracy[-1] > 0.85]
    left, right = figure.subplots(1, 2)
    for (name, run), (colour, dashes) in zip(runs.items(), itertools.cycle(LOOKS), strict=False):
        left.plot(run.steps, run.accuracy, ls=dashes, color=colour, label=name)
        at = np.arange(1, len(run.ratios) + 1)
        right.plot(at, _typical(run.ratios), ls=dashes, color=colour)
    guessing = 1 / LINE_SYMBOLS
    left.axhline(guessing, color=plots.GREY, lw=1, ls=":")
    left.text(0.99, 0.19, "dotted line: guessing", transform=left.transAxes, color=plots.GREY, ha="right", size=10.5)
    left.set(xlabel="training step", ylabel="share of reversed letters right", ylim=(0, 1.05))
    left.set_title(f"{len(learnt)} of {len(runs)} learn")
    right.axhline(1, color=plots.GREY, lw=1, ls=":")
    right.set(xscale="log", yscale="log", xlabel="training step", ylabel="gradient: bottom layer / top layer")
    right.set_xticks((1, 3, 10, 30, 100, 300), ("1", "3", "10", "30", "100", "300"))
    right.minorticks_off()
    found = ""
    if failing in runs:
        ratios = runs[failing].ratios
        step = min(21, len(ratios))
        found = f"{failing}: 1/{1 / ratios[step - 1]:,.0f} at step {step}"
        right.set_title(found[0].upper() + found[1:])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    ends = "; ".join(
        f"{name}: {run.accuracy[-1]:.2f}, ratio {run.ratios[0]:.2g} at the first step, {run.ratios[-1]:.2g} at the last"
        for name, run in runs.items()
    )
    return (
        f"{len(learnt)} of {len(runs)} runs learn: {', '.join(learnt) or 'none yet'}. {found}. Share right at the end, "
        f"and gradient of the bottom layer over that of the top layer: {ends}. Guessing gives {guessing:.2f}."
    )


def claims_of_five(runs: Mapping[str, Seen]) -> dict[str, Callable[[], bool]]:
    """Return what the text says of the five runs of 300 steps, as claims for `as_written`."""
    learners = ("pre-norm", "post-norm, warm-up", "post-norm, a third of the rate")

    def ratio(name: str, steps: int) -> float:
        return runs[name].ratios[steps]

    return {
        "three_learn": lambda: min(runs[name].accuracy[-1] for name in learners) > 0.85,
        "two_fail": lambda: max(runs[name].accuracy[-1] for name in ("post-norm", "no norm")) < 0.25,
        "half_at_first": lambda: 0.3 < ratio("post-norm", 0) < 0.7,
        "starved": lambda: 1 / 5000 < ratio("post-norm", 20) < 1 / 1500,
        "fed": lambda: min(ratio(name, 20) for name in learners) > 1 / 30,
    }


def claims_of_starts(runs: Sequence[Seen]) -> dict[str, Callable[[], bool]]:
    """Return what the text says of post-norm from three starts, in 140 steps, and of the run at a third of the rate."""
    *three, learns = runs
    return {
        "all_fail": lambda: max(run.accuracy[7] for run in three) < 0.25,
        "two_starve": lambda: max(run.ratios[20] for run in three[:2]) < 1e-3,
        "one_does_not": lambda: 1 / 50 < three[2].ratios[20] < 1 / 25,
        "learner": lambda: 1 / 25 < learns.ratios[20] < 1 / 14,
    }


def _typical(ratios: list[float]) -> Any:
    """Take the geometric mean over the steps around each, more of them later on: single batches scatter."""
    logs = np.log(ratios)
    around = [logs[max(t - t // 5, 0) : t + t // 5 + 1].mean() for t in range(len(logs))]
    return np.exp(around)
