"""Deep stacks in training: what runs learn, how large their streams begin, and how much gradient the bottom gets."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.full_block.places import gradient_norm
from lesson_utils.maths import tasks
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    moves: list[float]
    sizes: list[float]


class Watch:
    """A callback for `training.fit` on `reversal_lines`, at every step.

    Attributes:
        steps, accuracy: the share of reversed symbols that the model gets right, every 10 steps and at the end.
        ratios: for each step the gradient norm of the bottom layer over that of the top layer.
        moves: the same for how far the step moves their parameters, from the second step on.
        sizes: the standard deviation of the stream before training, at the input and after each layer.
    """

    def __init__(self, model: GPT, every: int = 10) -> None:
        self.model, self.every, self.ratios, self.moves = model, every, list[float](), list[float]()
        self._before: list[Array] | None = None
        self.sizes = stream_sizes(model, reversal_lines(np.random.default_rng(999))[0])
        self.steps, self.accuracy = [0], [self._measure()]

    def __call__(self, step: int, loss: float, history: object) -> None:
        bottom, top = (gradient_norm(self.model.stack.blocks[i]) for i in (0, -1))
        self.ratios.append(bottom / max(top, 1e-30))
        now = [np.concatenate([p.value.ravel() for p in self.model.stack.blocks[i].params().values()]) for i in (0, -1)]
        if self._before:
            bottom, top = (float(np.linalg.norm(a - b)) for a, b in zip(now, self._before, strict=True))
            self.moves.append(bottom / max(top, 1e-30))
        self._before = now
        if step % self.every == 0:
            self.steps.append(step)
            self.accuracy.append(self._measure())

    def seen(self) -> Seen:
        return Seen(self.steps, self.accuracy, self.ratios, self.moves, self.sizes)

    def _measure(self) -> float:
        ids, following = reversal_lines(np.random.default_rng(999), 128)
        logits, _ = self.model.forward(ids)
        return float((logits.argmax(axis=-1) == following)[:, LINE_LENGTH:].mean())


def stream_sizes(model: GPT, ids: Any) -> list[float]:
    """Return the standard deviation of the residual stream of a GPT, at the input and after each layer."""
    x = model.tokens.forward(ids)[0]
    mask = causal_mask(ids.shape[1])
    sizes = [float(x.std())]
    for block in model.stack.blocks:
        x, _ = block.forward(x, mask)
        sizes.append(float(x.std()))
    return sizes


LOOKS = ((plots.BLUE, "-"), (plots.ORANGE, "--"), (plots.PURPLE, "-."), (plots.GREEN, (0, (5, 1))), (plots.INK, ":"))
LEARNT = 0.85  # a run whose share of reversed letters ends above has learnt


def _accuracy(ax: "Axes", runs: Mapping[str, Seen]) -> list[str]:
    """Draw the share of reversed letters by step, and a line for guessing; return the runs that have learnt."""
    for (name, run), (colour, dashes) in zip(runs.items(), itertools.cycle(LOOKS), strict=False):
        ax.plot(run.steps, run.accuracy, ls=dashes, color=colour, label=name)
    ax.axhline(1 / LINE_SYMBOLS, color=plots.GREY, lw=1, ls=":")
    ax.set(xlabel="training step", ylabel="share of reversed letters right", ylim=(0, 1.05))
    learnt = [name for name, run in runs.items() if run.accuracy[-1] > LEARNT]
    ax.set_title(f"{len(learnt)} of {len(runs)} learn (dotted: guessing)")
    return learnt


@plots.still(9.4, 4.3)
def start_plot(figure: "Figure", runs: Mapping[str, Seen]) -> str:
    """Draw how large the stream is before training, layer by layer, and what each run learns."""
    left, right = figure.subplots(1, 2)
    for run, (colour, dashes) in zip(runs.values(), itertools.cycle(LOOKS), strict=False):
        left.plot(range(len(run.sizes)), run.sizes, ls=dashes, color=colour)
    left.set(xlabel="layer", ylabel="standard deviation of the stream", yscale="log", xticks=range(0, 13, 3))
    largest = max(runs, key=lambda name: runs[name].sizes[-1])
    others = max(run.sizes[-1] for name, run in runs.items() if name != largest)
    left.set_title(f"Before training: {runs[largest].sizes[-1]:.0f} at the top; others to {others:.1f}")
    learnt = _accuracy(right, runs)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    told = "; ".join(
        f"{name}: from {run.sizes[0]:.1f} to {run.sizes[-1]:.3g}, and {run.accuracy[-1]:.2f} right after "
        f"{run.steps[-1]} steps"
        for name, run in runs.items()
    )
    return (
        f"{len(learnt)} of {len(runs)} runs learn: {', '.join(learnt) or 'none yet'}. Standard deviation of the "
        f"stream before training from the input to the top of {len(run.sizes) - 1} layers, and share of reversed "
        f"letters right: {told}. Guessing gives {1 / LINE_SYMBOLS:.2f}."
    )


@plots.still(9.4, 4.7)
def training_plot(figure: "Figure", runs: Mapping[str, Seen], failing: str = "post-norm") -> str:
    """Accuracy by step, and the bottom layer's gradient over the top layer's; both for all runs."""
    left, right = figure.subplots(1, 2)
    learnt = _accuracy(left, runs)
    for run, (colour, dashes) in zip(runs.values(), itertools.cycle(LOOKS), strict=False):
        at = np.arange(1, len(run.ratios) + 1)
        right.plot(at, _typical(run.ratios), ls=dashes, color=colour)
    right.axhline(1, color=plots.GREY, lw=1, ls=":")
    right.set(xscale="log", yscale="log", xlabel="training step", ylabel="gradient: bottom layer / top layer")
    right.set_xticks((1, 3, 10, 30, 100, 300), ("1", "3", "10", "30", "100", "300"))
    right.minorticks_off()
    found = ""
    if failing in runs:
        first, later = runs[failing].ratios[0], _typical(runs[failing].ratios)[: len(runs[failing].ratios)]
        found = f"{failing} falls from {first:.2f} to 1/{1 / later.min():,.0f}"
        right.set_title(found[0].upper() + found[1:])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    ends = "; ".join(
        f"{name}: {run.accuracy[-1]:.2f}, ratio {run.ratios[0]:.2g} at the first step, {run.ratios[-1]:.2g} at the last"
        for name, run in runs.items()
    )
    return (
        f"{len(learnt)} of {len(runs)} runs learn: {', '.join(learnt) or 'none yet'}. {found}. Share right at the end, "
        f"and gradient of the bottom layer over that of the top layer: {ends}. Guessing gives {1 / LINE_SYMBOLS:.2f}."
    )


class Starved(NamedTuple):
    """The gradient of a run's bottom layer over that of its top layer, and what the run learnt."""

    lowest: float
    median: float  # from step 20 on
    right: float
    moved: float  # how far a step moves the bottom layer, over the top layer: the median from step 20 on


def starved(run: Seen, steps: int = 150) -> Starved:
    """Look at the first steps of a run, as many as are given; a learner and a failure are then compared fairly."""
    ratios = np.array(run.ratios[:steps])
    at = max(n for n, step in enumerate(run.steps) if step <= steps)
    moved = float(np.median(run.moves[19 : steps - 1]))  # moves begin with the second step
    return Starved(float(ratios.min()), float(np.median(ratios[20:])), run.accuracy[at], moved)


def _typical(ratios: list[float]) -> Any:
    """Take the geometric mean over the steps around each, more of them later on: single batches scatter."""
    logs = np.log(ratios)
    around = [logs[max(t - t // 5, 0) : t + t // 5 + 1].mean() for t in range(len(logs))]
    return np.exp(around)
