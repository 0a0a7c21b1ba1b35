"""Training: optimisers, learning-rate schedules, the loop.

A model is whatever is `Trainable`: it has `params()`, and `loss_and_grad(batch, rng)` returns a loss and adds its
gradient to each `Param.grad`.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lesson_utils.maths.bar import Bar
from lesson_utils.maths.checks import Array, as_size
from lesson_utils.maths.layers import Param
from lesson_utils.maths.machine import keep_freed_memory
from lesson_utils.maths.machine import single_thread as single_thread


class Trainable(Protocol):
    """What `fit`, and `checkpoints.save` and `load`, ask of a model."""

    def params(self) -> dict[str, Param]:
        """All parameters by name."""

    def loss_and_grad(self, batch: Any, rng: np.random.Generator) -> float:
        """The loss of a batch; its gradient is added to each `Param.grad`. `rng` is for dropout and the like."""


class Optimizer:
    """Changes parameters by their gradients, one after the other.

    Args:
        params: name -> parameter, all float32 or float64.
        lr: the learning rate, for steps that are not given one.
    """

    def __init__(self, params: Mapping[str, Param], lr: float) -> None:
        self.params = dict(params)
        self.lr = _check_lr(lr)
        self.steps = 0
        self._new: list[Array] = []
        if not self.params:
            raise ValueError("params is empty; an optimizer needs at least one parameter")
        if len({id(param) for param in self.params.values()}) < len(self.params):
            raise ValueError("a parameter appears twice in params; give a shared one under a single name")
        for name, param in self.params.items():
            if param.value.dtype not in (np.float32, np.float64):
                raise ValueError(f"{name} is {param.value.dtype}; train in float32 or float64")

    def zero_grad(self) -> None:
        """Forget the gradients that have been added up."""
        for param in self.params.values():
            param.grad[...] = 0

    def step(self, lr: float | None = None) -> None:
        """Change all parameters, once, by their gradients.

        Args:
            lr: the learning rate of this step. Default: the optimizer's.

        Raises:
            ValueError: lr is negative or not finite.
        """
        self._new = list(self._updated(self.lr if lr is None else _check_lr(lr)))
        self.finish()
        self.steps += 1

    def finish(self) -> None:
        """Write what a step has worked out. If an interruption comes in between, call this again: the step is whole."""
        for param, new in zip(self.params.values(), self._new, strict=False):  # none: nothing is left to write
            param.value[...] = new
        self._new = []

    def _updated(self, lr: float) -> Iterator[Array]:
        """The new value of each parameter."""
        raise NotImplementedError


class SGD(Optimizer):
    """Steps down the gradient; with momentum, down a sum of past gradients that fades.

        velocity ← momentum · velocity + grad,   value ← value − lr · velocity

    Args:
        params: name -> parameter, all float32 or float64.
        lr: the learning rate.
        momentum: 0 ≤ momentum < 1.
    """

    def __init__(self, params: Mapping[str, Param], lr: float, momentum: float = 0.0) -> None:
        super().__init__(params, lr)
        self.momentum = _check_fraction(momentum, "momentum")
        self._velocity = [np.zeros_like(param.value) for param in self.params.values()]

    def _updated(self, lr: float) -> Iterator[Array]:
        for param, velocity in zip(self.params.values(), self._velocity, strict=True):
            velocity *= self.momentum
            velocity += param.grad
            yield param.value - lr * velocity


class Adam(Optimizer):
    """Steps of about the learning rate for each parameter, whatever the size of its gradients.

        m ← β₁ m + (1 − β₁) grad,   v ← β₂ v + (1 − β₂) grad²
        value ← value − lr · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

    Args:
        params: name -> parameter, all float32 or float64.
        lr: the learning rate.
        betas: β₁ and β₂, how slowly the averages forget; "Attention is all you need" has (0.9, 0.98).
        eps: ε, in the same paper 1e-9.
        weight_decay: the share of each value, times lr, that is taken away at each step. It does not pass through the
            averages, which makes this AdamW.

    Source: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter (2019), algorithm 2, for the weight decay.
    """

    def __init__(
        self,
        params: Mapping[str, Param],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        self.betas = (_check_fraction(betas[0], "betas[0]"), _check_fraction(betas[1], "betas[1]"))
        self.eps, self.weight_decay = float(eps), float(weight_decay)
        if not 0 < self.eps < math.inf:
            raise ValueError(f"eps={eps} must be a positive number; try 1e-8")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay={weight_decay} must be 0 or a positive number; try 0.01")
        self._m, self._v = ([np.zeros_like(param.value) for param in self.params.values()] for _ in range(2))

    def _updated(self, lr: float) -> Iterator[Array]:
        (beta_1, beta_2), t = self.betas, self.steps + 1
        for param, m, v in zip(self.params.values(), self._m, self._v, strict=True):
            m += (1 - beta_1) * (param.grad - m)
            v += (1 - beta_2) * (param.grad * param.grad - v)
            step = m / (1 - beta_1**t) / (np.sqrt(v / (1 - beta_2**t)) + self.eps)
            yield param.value - lr * (step + self.weight_decay * param.value)


def clip_gradients(params: Mapping[str, Param], max_norm: float) -> float:
    """Scale all gradients together, so that their common norm is at most `max_norm`; the direction stays.

    Returns:
        the norm before: √(Σ g²) over all entries of all gradients.

    Raises:
        ValueError: max_norm is not positive.

    Source: Pascanu, Mikolov and Bengio (2013), algorithm 1.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm={max_norm} must be a positive number; try 1.0")
    grads = [param.grad for param in params.values()]
    norm = math.sqrt(sum(float(np.vdot(grad, grad)) for grad in grads))
    if max_norm < norm < math.inf:
        for grad in grads:
            grad *= float(max_norm) / norm
    return norm


def warmup_linear(step: int, peak: float, warmup: int, total: int) -> float:
    """Up in a straight line to `peak` at step `warmup`, and down in a straight line to 0 at step `total`.

        schedule = functools.partial(warmup_linear, peak=3e-3, warmup=100, total=4000)

    Args:
        step: counted from 1.

    Raises:
        ValueError: step < 1, or not 0 ≤ warmup < total.
    """
    step, warmup, total = as_size(step, "step"), as_size(warmup, "warmup", minimum=0), as_size(total, "total")
    if warmup >= total:
        raise ValueError(f"warmup={warmup} must be smaller than total={total}")
    return peak * min(step / max(warmup, 1), max(total - step, 0) / (total - warmup))


def warmup_inverse_sqrt(step: int, d_model: int, warmup: int) -> float:
    """The schedule of "Attention is all you need": d_model^−½ · min(step^−½, step · warmup^−1½).

    It rises in a straight line until step `warmup`, to 1/√(d_model · warmup), and then falls as 1/√step.

    Args:
        step: counted from 1.

    Raises:
        ValueError: step, d_model or warmup is smaller than 1.

    Source: Vaswani et al. (2017), section 5.3, equation 3.
    """
    step, d_model, warmup = as_size(step, "step"), as_size(d_model, "d_model"), as_size(warmup, "warmup")
    return min(1 / math.sqrt(step), step / warmup**1.5) / math.sqrt(d_model)


@dataclass
class History:
    """What happened at each step of `fit`; lists of equal length, one entry a step."""

    losses: list[float] = field(default_factory=list)
    lrs: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)  # of the gradient, before clipping
    seconds: float = 0.0  # for all of them


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
    """Train a model: draw a batch, add up its gradients, clip them, step; again and again.

    Interrupting it (the stop button, Ctrl-C) is fine: the model stays as the last complete step left it.

    Args:
        model: has `params()` and `loss_and_grad(batch, rng)`, see `Trainable`.
        batches: rng -> batch, called at each step.
        steps: how many.
        lr: the learning rate. Default: the optimizer's.
        optimizer: of the model's parameters. Default: a new Adam, with learning rate 1e-3.
        schedule: step (from 1) -> learning rate, in place of `lr`.
        clip: the largest norm of the gradient, see `clip_gradients`; None leaves it as it is.
        callback: called as (step, loss, history) when `every` steps are done, and after the last one. If it returns
            False, training stops there. To print in it, use `tqdm.write`, which makes room beside the bar.
        every: how many steps lie between two calls of callback.
        seed: the same seed, the same training. Batches and model draw from two generators made from it, so that
            dropout does not change what the batches are.
        progress: show a bar with the loss (a moving average) and the time that is left.
        one_thread: see `single_thread`.

    Returns:
        history: losses, learning rates, norms of the gradients and the time it took.

    Raises:
        ValueError: a loss or gradient is not finite (the model stays as it was before that step), or an argument
            does not fit.
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
    with single_thread() if one_thread else nullcontext(), Bar(steps, disable=not progress) as bar:
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
            bar.close()
            print(f"Interrupted after step {len(history.losses)} of {steps}; the model stays as that step left it.")
    return history


def _advice(lr: float, clip: float | None) -> str:
    return f"try a lower learning rate than {lr:.3g}{'' if clip is not None else ', or clip=1.0'}"


def _check_lr(lr: float) -> float:
    # A Python float: NumPy's float64 would make float32 arrays be computed in float64.
    if not (isinstance(lr, int | float | np.number) and 0 <= lr < math.inf):
        raise ValueError(f"lr={lr!r} must be 0 or a positive number; try 1e-3")
    return float(lr)


def _check_fraction(x: float, name: str) -> float:
    if not 0 <= x < 1:
        raise ValueError(f"{name}={x} must be at least 0 and less than 1; try 0.9")
    return float(x)
