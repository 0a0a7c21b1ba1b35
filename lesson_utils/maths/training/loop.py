"""The training loop, and what it asks of a model."""

import math
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lesson_utils.maths.checks import as_size
from lesson_utils.maths.layers import Param
from lesson_utils.maths.machine import keep_freed_memory, single_thread
from lesson_utils.maths.progress_bar import Bar
from lesson_utils.maths.training.optimizers import Adam, Optimizer, clip_gradients


class Trainable(Protocol):
    """A model that `fit` can train, and that `checkpoints` can save and load."""

    def params(self) -> dict[str, Param]:
        """Return all parameters by name."""

    def loss_and_grad(self, batch: Any, rng: np.random.Generator) -> float:
        """Return the loss of a batch, and add its gradient to each `Param.grad`. `rng` is for dropout and the like."""


@dataclass
class History:
    """A record of `fit`: lists of equal length with one entry for each step."""

    losses: list[float] = field(default_factory=list)
    lrs: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)  # of the gradient, before clipping
    seconds: float = 0.0  # for all steps together


class Stopped(KeyboardInterrupt):
    """A training that was interrupted. It ends the cell, so that nothing goes on with a model that is half trained."""

    def __init__(self, model: Trainable, history: History, steps: int):
        super().__init__(
            f"Stopped after step {len(history.losses)} of {steps}, and with it the cell. "
            "The model as that step left it, and its history, are what `training.stopped()` returns."
        )
        self.left = model, history

    def _render_traceback_(self) -> list[str]:
        """Say it without the way through our code: whoever presses stop knows why."""
        return [str(self)]


_last: list[Stopped] = []


def stopped() -> tuple[Any, History]:
    """Return the model and the history that the last interrupted `fit` left.

    Raises:
        ValueError: none was interrupted.
    """
    if not _last:
        raise ValueError("no training was interrupted in this kernel; the stop button interrupts one that runs")
    return _last[0].left


def fit(
    model: Trainable,
    batches: Callable[[np.random.Generator], Any],
    steps: int,
    lr: float | None = None,
    *,
    optimizer: Optimizer | None = None,
    schedule: Callable[[int], float] | None = None,
    clip: float | None = 1.0,
    callback: Callable[[int, float, History], Any] | None = None,
    every: int = 1,
    seed: int | np.random.Generator = 0,
    progress: bool = True,
    one_thread: bool = True,
) -> History:
    """Train a model: draw a batch, add up its gradients, clip them, take a step, and begin again.

    Training may be interrupted, by the stop button or Ctrl-C. The model then stays as the last complete step left it,
    and `stopped()` returns it with its history.

    Args:
        model: has `params()` and `loss_and_grad(batch, rng)`, see `Trainable`.
        batches: rng -> batch, called at each step.
        steps: the number of steps.
        lr: the learning rate. Default: the optimizer's.
        optimizer: of the model's parameters. Default: a new Adam, with learning rate 1e-3.
        schedule: step (from 1) -> learning rate, in place of `lr`.
        clip: the largest norm of the gradient, see `clip_gradients`; None leaves the gradient as it is.
        callback: called as (step, loss, history) when `every` steps are done, and after the last one. If it returns
            False, training stops there. To print in it, use `tqdm.write`, which makes room beside the bar.
        every: the number of steps between two calls of callback.
        seed: the same seed, the same training. Batches and model draw from two generators made from it, so that
            dropout does not change what the batches are.
        progress: show a bar with the loss (a moving average) and the time that is left.
        one_thread: see `single_thread`.

    Returns:
        history: losses, learning rates, norms of the gradients and the time it took.

    Raises:
        ValueError: a loss or gradient is not finite (the model stays as it was before that step), or an argument
            does not fit.
        Stopped: it was interrupted.
    """
    steps, every = as_size(steps, "steps", minimum=0), as_size(every, "every")
    if lr is not None and schedule is not None:
        raise ValueError("lr and schedule are both given; the schedule is the learning rate, leave lr out")
    if clip is not None and not clip > 0:
        raise ValueError(f"clip={clip} must be a positive number, or None to leave gradients as they are; try 1.0")
    params = model.params()
    if optimizer is None:
        optimizer = Adam(params)
    elif {id(p) for p in optimizer.params.values()} != {id(p) for p in params.values()}:
        raise ValueError("optimizer was made for other parameters; make it from this model's params()")
    keep_freed_memory()
    rng_batches, rng_model = np.random.default_rng(seed).spawn(2)
    history, started, smooth = History(), time.perf_counter(), 0.0
    with single_thread() if one_thread else nullcontext(), closing(Bar(steps, disable=not progress)) as bar:
        try:
            for step in range(1, steps + 1):
                step_lr = optimizer.lr if lr is None else lr
                if schedule is not None:
                    step_lr = schedule(step)
                optimizer.zero_grad()
                loss = float(model.loss_and_grad(batches(rng_batches), rng_model))
                norm = clip_gradients(params, math.inf if clip is None else clip)
                for what, number in (("loss", loss), ("the gradient's norm", norm)):
                    if not math.isfinite(number):
                        raise ValueError(f"{what} became {number} at step {step}; {_advice(step_lr, clip)}")
                optimizer.step(step_lr)
                history.losses.append(loss)
                history.lrs.append(float(step_lr))
                history.norms.append(norm)
                history.seconds = time.perf_counter() - started
                smooth += (loss - smooth) / min(step, 50)
                bar.advance(smooth)
                if callback is not None and (step % every == 0 or step == steps):
                    answer = callback(step, loss, history)
                    if isinstance(answer, bool | np.bool_) and not answer:
                        break
        except KeyboardInterrupt:
            optimizer.finish()
            _last[:] = [Stopped(model, history, steps)]
            raise _last[0] from None
    return history


def _advice(lr: float, clip: float | None) -> str:
    return f"try a lower learning rate than {lr:.3g}{'' if clip is not None else ', or clip=1.0'}"
