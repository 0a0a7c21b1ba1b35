"""Section 6: a model of one head, trained with the root and without it, from a tame and from a wild start."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.maths import models, tasks, training
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH, PLACES = 24, 4  # of a sequence; places to fetch from
LOOKS = {"with √d_k": (plots.INK, "-"), "without": (plots.PURPLE, "--")}


class Result(NamedTuple):
    """The results of a model on sequences that it was not trained on."""

    right: Array  # share of right answers, by place to fetch from, (4,)
    slopes: Array  # the 5 %, 50 % and 95 % quantile of the queries' slopes, (3,)
    weights: Array  # attention weights of the first sequence, (24, 24)


def examine(model: models.Encoder, n: int = 200) -> Result:
    """Run a model of one layer and one head on n sequences, the same each time."""
    source, target = tasks.gather(np.random.default_rng(99), n, LENGTH, PLACES)
    logits, cache = model.forward(source)  # (n, 24, 4, V)
    w = model.maps(cache)["encoder"][0][:, 0].astype(float)  # (n, 24, 24)
    squares = (w**2).sum(axis=-1)
    slopes = np.sqrt(np.maximum(squares - 2 * (w**3).sum(axis=-1) + squares**2, 0))  # as in `variance.looks`
    right = (logits.argmax(axis=-1) == target).mean(axis=(0, 1))
    return Result(right, np.quantile(slopes, [0.05, 0.5, 0.95]), w[0])


def root_or_smaller_steps(steps: int = 100, seed: int = 0) -> tuple[list[float], list[float]]:
    """Begin the notebook's training twice: with the root, and without it but with an eighth of W_Q and of its rate.

    Gradients are not clipped, since that would mix the parameters' gradients.

    Returns:
        the losses of both.
    """
    sizes: Any = {"d_model": 64, "num_heads": 1, "num_layers": 1, "d_ff": 16, "max_length": LENGTH}
    config = models.EncoderConfig(vocab=23, classes=23, outputs=PLACES, positions="learned", **sizes)
    schedule = partial(training.warmup_linear, peak=5e-3, warmup=50, total=650)
    losses = []
    for factor, part in ((1 / 8, 1.0), (1.0, 1 / 8)):
        model = models.Encoder(config, np.random.default_rng(seed))
        (head,) = model.heads()["encoder"]
        head.scale, head.W_Q.value = factor, part * head.W_Q.value
        slower = _Slower(head.W_Q, part)
        batches = partial(tasks.gather, batch=64)
        history = training.fit(
            model, batches, steps, schedule=schedule, clip=None, callback=slower, seed=seed, progress=False
        )
        losses.append(history.losses)
    return losses[0], losses[1]


class _Slower:
    """Shortens each step of one parameter, as a smaller learning rate does: a callback for `training.fit`."""

    def __init__(self, param: Any, part: float) -> None:
        self._param, self._part, self._before = param, part, param.value.copy()

    def __call__(self, *_: Any) -> None:
        self._param.value = self._before + self._part * (self._param.value - self._before)
        self._before = self._param.value.copy()


@plots.still(9.0, 3.9)
def with_and_without(figure: "Figure", runs: Mapping[str, tuple[Result, Sequence[float]]]) -> str:
    """Draw the losses of two trainings, smoothed, and what their heads look at in one sequence.

    Args:
        runs: by name, what the trained model does, and its losses.
    """
    curves, *maps = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    alts = []
    for ax, (name, (result, losses)) in zip(maps, runs.items(), strict=True):
        colour, dashes = LOOKS.get(name, (plots.BLUE, ":"))
        smooth = np.convolve(losses, np.ones(9) / 9, mode="valid")
        curves.plot(
            np.arange(5, 5 + len(smooth)), smooth, dashes, color=colour, label=name.replace("√d_k", r"$\sqrt{d_k}$")
        )
        plots.draw_heatmap(ax, result.weights, row_label="query" if ax is maps[0] else "", numbers=False)
        ticks = range(0, LENGTH, 6)
        ax.set_xticks(ticks, [str(n) for n in ticks])
        ax.set_yticks(ticks, [str(n) for n in ticks])
        ax.set_title(f"{_typeset(name)}: {result.right.mean():.2f} right")
        by_place = ", ".join(f"{share:.2f}" for share in result.right)
        ax.set_xlabel(f"key\nby place: {by_place.replace(',', '')}", size=11)
        largest = result.weights.max(axis=-1)
        alts.append(
            f"{name}, the loss falls to {np.mean(losses[-9:]):.2f}, {result.right.mean():.2f} of the answers are right "
            f"({by_place} by place) and a query's largest weight is {largest.mean():.2f} on average"
        )
    curves.set(xlabel="training step", ylabel="loss", ylim=(0, None))
    curves.legend(loc="lower left")
    first, last = (np.mean(losses[-9:]) for _, losses in runs.values())
    curves.set_title(f"The loss ends at {first:.1f} and {last:.1f}")
    alts.append("Left, both losses by training step; right, the attention weights of one sequence")
    return f"The loss ends at {first:.1f} and {last:.1f}. {'. '.join(alts)}."


@plots.still(9.0, 3.4)
def crossed(figure: "Figure", runs: Mapping[str, Sequence[tuple[Result, Sequence[float]]]]) -> str:
    """Draw the last loss of each run as a dot, one row for each kind of training; open dots look at one place only.

    Args:
        runs: by kind of training, what each trained model does, and its losses.
    """
    ax = figure.add_subplot(xlabel="loss at the end of training")
    told, alive = [], {}
    for row, (name, several) in enumerate(runs.items()):
        ends = np.array([np.mean(losses[-20:]) for _, losses in several])
        hard = np.array([result.slopes[1] < 0.05 for result, _ in several])
        alive[name] = int((~hard).sum())
        colour = plots.INK if name.startswith("with ") else plots.PURPLE
        rows = row + 0.14 * np.linspace(-1, 1, len(ends))  # so that equal losses are two dots
        ax.plot(ends[~hard], rows[~hard], "o", color=colour, ms=11)
        ax.plot(ends[hard], rows[hard], "o", color=colour, ms=11, mfc="white", mew=2)
        told.append(f"{name}: losses {', '.join(f'{loss:.2f}' for loss in ends)}, {hard.sum()} hard lookups")
    ax.set_yticks(range(len(runs)), [_typeset(name) for name in runs])
    ax.set(xlim=(0, 3), ylim=(len(runs) - 0.5, -0.5))
    ax.grid(axis="x")
    ax.plot([], [], "o", color=plots.GREY, ms=12, label="looks at several places")
    ax.plot([], [], "o", color=plots.GREY, ms=12, mfc="white", mew=2, label="hard lookup: slope 0")
    ax.legend(loc="center left")
    learned = [name for name, count in alive.items() if count == len(runs[name])]
    ax.set_title(f"{len(learned)} of {len(runs)} ways of training learn from every start")
    return f"{len(learned)} of {len(runs)} ways of training learn from every start. Dots, by way: {'; '.join(told)}."


def _typeset(name: str) -> str:
    return name.replace("√d_k", r"$\sqrt{d_k}$")
