"""A training that runs on what a learner wrote, beside the same training by the library."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.maths import attention, ops, training
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Param, heads
from lesson_utils.maths.models.experiments import Change, changed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


@contextmanager
def backward_by(softmax_backward: Own, attention_backward: Own, smoothed_loss: Own | None = None) -> Iterator[None]:
    """Let all models train with these functions for as long as a `with` block lasts.

    `attention_backward` may call `ops.softmax_backward`, as the exercise suggests, and then gets this one.
    """

    def back(doutput: Array, cache: attention.AttentionCache) -> tuple[Array, Array, Array]:
        dQ, dK, dV = attention_backward(doutput, cache.Q, cache.K, cache.V, cache.weights)
        return dQ, dK, dV

    library = ops.cross_entropy_forward

    def forward(logits: Array, targets: Ids, mask: Mask, smoothing: float) -> tuple[float, Any]:
        _, kept = library(logits, targets, mask, smoothing)
        return float(smoothed_loss(logits, targets, mask, smoothing)), kept  # type: ignore[misc]

    changes: list[Change] = [(heads, "attention_backward", back), (ops, "softmax_backward", softmax_backward)]
    with changed(changes if smoothed_loss is None else [*changes, (ops, "cross_entropy_forward", forward)]):
        yield


@plots.still(8.0, 3.2)
def beside(figure: "Figure", own: Sequence[float], library: Sequence[float]) -> str:
    """Draw the losses of two trainings: by the functions of a learner, and by the library's."""
    steps = np.arange(1, len(own) + 1)
    ax = figure.add_subplot(xlim=(0, len(own)), ylim=(0, 1.1 * max(library)))
    ax.set(xlabel="training step", ylabel="loss (nats a symbol)")
    ax.plot(steps, library, color=plots.ORANGE, lw=6, alpha=0.5, label="by the library")
    ax.plot(steps, own, color=plots.BLUE, lw=1.8, label="by the functions given")
    ax.legend(loc="upper right")
    apart = max(abs(a - b) for a, b in zip(own, library, strict=True))
    finding = f"The two losses differ by at most {apart:.0e}"
    ax.set_title(finding)
    return f"{finding}. In {len(own)} steps the loss falls from {own[0]:.2f} to {np.mean(own[-10:]):.2f} nats."
