"""Optimizers, and the clipping of gradients."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import Param


class Optimizer:
    """The base of optimizers, which change parameters by their gradients.

    Args:
        params: name -> parameter, all float32 or float64.
        lr: the learning rate of a step, unless `step` gets another one.
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
        """Set all gradients to 0, which forgets what has been added up."""
        for param in self.params.values():
            param.grad[...] = 0

    def step(self, lr: float | None = None) -> None:
        """Change each parameter once by its gradient.

        Args:
            lr: the learning rate of this step. Default: the optimizer's.

        Raises:
            ValueError: lr is negative or not finite.
        """
        self._new = list(self._updated(self.lr if lr is None else _check_lr(lr)))
        self.finish()
        self.steps += 1

    def finish(self) -> None:
        """Write the new values of a step. Called again after an interruption, it makes the interrupted step whole."""
        for param, new in zip(self.params.values(), self._new, strict=False):  # empty when nothing is left to write
            param.value[...] = new
        self._new = []

    def _updated(self, lr: float) -> Iterator[Array]:
        """Yield the new value of each parameter."""
        raise NotImplementedError


class SGD(Optimizer):
    """Steps down the gradient; with momentum, down a fading sum of past gradients.

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
    """Scale all gradients together so that their common norm is at most `max_norm`. The direction stays.

    Returns:
        the norm before scaling: √(Σ g²) over all entries of all gradients.

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


def _check_lr(lr: float) -> float:
    # A Python float: NumPy's float64 would make float32 arrays be computed in float64.
    if not (isinstance(lr, int | float | np.number) and 0 <= lr < math.inf):
        raise ValueError(f"lr={lr!r} must be 0 or a positive number; try 1e-3")
    return float(lr)


def _check_fraction(x: float, name: str) -> float:
    if not 0 <= x < 1:
        raise ValueError(f"{name}={x} must be at least 0 and less than 1; try 0.9")
    return float(x)
