"""A training that runs on what a learner wrote, beside the same training by the library."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.training.experiment import batches, transformer
from lesson_utils.maths import attention, ops, training
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Param, heads
from lesson_utils.maths.models.experiments import Change, changed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS, BATCH, SMOOTHING = 100, 16, 0.1
Own = Callable[..., Any]


class OwnAdam(training.Optimizer):
    """Adam by somebody's step: `adam_step(value, grad, m, v, t, lr, beta_1, beta_2, eps)` gives the new value, m, v."""

    def __init__(self, params: Mapping[str, Param], adam_step: Own) -> None:
        super().__init__(params, lr=1e-3)
        self._adam_step = adam_step
        self._averages: list[tuple[Array, Array]] = [
            (np.zeros_like(p.value), np.zeros_like(p.value)) for p in self.params.values()
        ]

    def _updated(self, lr: float) -> Iterator[Array]:
        like = training.Adam(self.params)  # its defaults
        for n, (param, (m, v)) in enumerate(zip(self.params.values(), self._averages, strict=True)):
            value, *averages = self._adam_step(param.value, param.grad, m, v, self.steps + 1, lr, *like.betas, like.eps)
            self._averages[n] = averages[0], averages[1]
            yield value


def own_parts(softmax_backward: Own, attention_backward: Own, smoothed_loss: Own | None) -> list[Change]:
    """Return what to change in the library so that a model trains with these functions.

    `attention_backward` may call `ops.softmax_backward`, as the exercise suggests, and then gets this one.
    """

    def back(doutput: Array, cache: attention.AttentionCache) -> tuple[Array, Array, Array]:
        dQ, dK, dV = attention_backward(doutput, cache.Q, cache.K, cache.V, cache.weights)
        return dQ, dK, dV

    changes: list[Change] = [(heads, "attention_backward", back), (ops, "softmax_backward", softmax_backward)]
    library = ops.cross_entropy_forward

    def forward(logits: Array, targets: Ids, mask: Mask, smoothing: float) -> tuple[float, Any]:
        _, cache = library(logits, targets, mask, smoothing)
        return float(smoothed_loss(logits, targets, mask, smoothing)), cache  # type: ignore[misc]

    return changes if smoothed_loss is None else [*changes, (ops, "cross_entropy_forward", forward)]


def losses(smoothing: float, changes: list[Change], adam_step: Own | None = None) -> list[float]:
    """Train a small model in float64, with these changes to the library, and return its losses."""
    model = transformer(dtype=np.float64, smoothing=smoothing)
    optimizer = None if adam_step is None else OwnAdam(model.params(), adam_step)
    schedule = partial(training.warmup_linear, peak=8e-3, warmup=STEPS // 10, total=STEPS + 1)
    draw = partial(batches, batch=BATCH)
    with changed(changes):
        return training.fit(model, draw, STEPS, optimizer=optimizer, schedule=schedule, progress=False).losses


@plots.still(8.0, 3.2)
def train_beside(
    figure: "Figure",
    softmax_backward: Own,
    attention_backward: Own,
    adam_step: Own | None = None,
    smoothed_loss: Own | None = None,
) -> str:
    """Train a model by somebody's functions and one by the library's, and draw both losses.

    What is left out is the library's; without `smoothed_loss` nothing is smoothed.
    """
    smoothing = 0.0 if smoothed_loss is None else SMOOTHING
    theirs = losses(smoothing, [])
    own = losses(smoothing, own_parts(softmax_backward, attention_backward, smoothed_loss), adam_step)
    ax = figure.add_subplot(xlim=(0, STEPS), ylim=(0, 1.1 * max(theirs)), xlabel="training step", ylabel="loss (nats)")
    steps = np.arange(1, STEPS + 1)
    ax.plot(steps, theirs, color=plots.ORANGE, lw=6, alpha=0.5, label="by the library")
    ax.plot(steps, own, color=plots.BLUE, lw=1.8, label="by the functions given")
    ax.legend(loc="upper right")
    apart = max(abs(a - b) for a, b in zip(own, theirs, strict=True))
    finding = f"The two losses differ by at most {apart:.0e}"
    ax.set_title(finding)
    return (
        f"{finding}. In {STEPS} steps the loss falls from {theirs[0]:.2f} to {theirs[-1]:.2f} nats, in both trainings."
    )
