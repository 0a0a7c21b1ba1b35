"""Gradients checked: a backward pass compared with central differences.

    df/dx ≈ (f(x + h) − f(x − h)) / 2h

needs no calculus, only patience: two evaluations for each entry. In float64 it is good to about ten digits. An error
names the gradient and the entry that are wrong, and both numbers.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lesson_utils.maths.checks import Array, as_size
from lesson_utils.maths.layers import Param

STEP = 1e-5  # near the cube root of float64's precision: truncation and rounding are about equally small there
NOISE = 1e-10  # of a difference quotient with that step, for a function of size 1


class GradientError(AssertionError):
    """A backward pass disagrees with central differences."""


def numerical_gradient(
    f: Callable[[Array], float], x: Array, eps: float = STEP, indices: Iterable[tuple[int, ...]] | None = None
) -> Array:
    """Return the gradient of f at x by central differences.

    Args:
        f: a scalar function of x. It gets `x` itself, with one entry nudged, so it may also be a function of
            anything that `x` is a part of: `numerical_gradient(lambda _: model_loss(), model.W.value)`.
        x: float64, any shape. It is changed meanwhile; afterwards it is exactly what it was, even if f raises.
        eps: the nudge, times |x| where that is larger than 1.
        indices: the entries to look at. Default: all of them.

    Returns:
        gradient, the shape of x, float64; 0 at entries that were not looked at.

    Raises:
        ValueError: x is not a float64 array that can be changed, or eps is not positive.
    """
    _check_float64("x", x)
    if not x.flags.writeable:
        raise ValueError("x is read-only; give a copy, x.copy()")
    if not 0 < eps < math.inf:
        raise ValueError(f"eps={eps} must be a positive number; try {STEP}")
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape) if indices is None else indices:
        before = x[index]
        above, below = (before + side * eps * max(1, abs(before)) for side in (1, -1))
        try:
            x[index] = above
            f_above = float(f(x))
            x[index] = below
            f_below = float(f(x))
        finally:
            x[index] = before
        gradient[index] = (f_above - f_below) / (above - below)  # the step after rounding, not eps
    return gradient


def check_op(
    forward: Callable[..., tuple[Any, Any]],
    backward: Callable[..., Any],
    inputs: Mapping[str, Any],
    rng: np.random.Generator,
    tolerance: float = 1e-6,
    differentiable: Sequence[str] | None = None,
) -> None:
    """Compare `backward` with central differences, for a random gradient from upstream.

    Why random: with all ones the loss is the sum of the outputs, and the sum of a softmax has no gradient to be wrong.

        check_op(ops.linear_forward, ops.linear_backward, {"x": x, "W": W, "b": b}, rng)

    The error of an entry is measured against the largest entry of its gradient, |got − expected| / max |gradient|:
    next to large entries the last digits of small ones are rounding.

    Args:
        forward: (*inputs) -> (out, cache); several outputs as a tuple, (outs, cache).
        backward: (dout, cache) -> the gradient, or a tuple of them in the order of the inputs; for several outputs
            it gets a tuple.
        inputs: name -> array, in the order of forward's arguments. Anything but arrays of floats (ids, masks,
            numbers, None) is passed on. Keep away from kinks: a ReLU has no gradient at 0.
        rng: draws the gradient from upstream.
        tolerance: the largest relative error that is accepted.
        differentiable: the inputs which backward has gradients for, in its order. Default: all floating-point arrays.

    Raises:
        GradientError: a gradient is wrong (or missing, or of the wrong shape or dtype), or forward or backward has
            changed its input.
        ValueError: an input is floating-point but not float64, or the output is not finite.
    """
    arrays = {name: x for name, x in inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    names = list(arrays) if differentiable is None else list(differentiable)
    for name in names:
        if name not in arrays:
            raise ValueError(f"{name} is not among the inputs that are arrays of floats: {', '.join(arrays) or 'none'}")
    for name, x in arrays.items():
        _check_float64(name, x)
    arrays = {name: x.copy() for name, x in arrays.items()}  # ours to nudge
    values = [arrays.get(name, x) for name, x in inputs.items()]

    outs, cache = forward(*values)
    several = isinstance(outs, tuple)
    douts = tuple(rng.normal(size=np.shape(out)) for out in _as_tuple(outs))
    # The outputs as they are now: a later call may re-use the memory.
    sizes = sum(float(np.abs(dout * out).sum()) for dout, out in zip(douts, _as_tuple(outs), strict=True))
    if not math.isfinite(sizes):
        raise ValueError("forward's output holds NaN or infinite values; a gradient needs finite ones")
    kept = [dout.copy() for dout in douts]
    grads = _as_tuple(backward(douts if several else douts[0], cache))
    if len(grads) != len(names):
        raise GradientError(f"backward returned {len(grads)} gradients; expected {len(names)}, for {', '.join(names)}")
    # Copies: forward may use the memory again, and what it returned could be a view of its input.
    grads = tuple(np.array(grad) for grad in grads)
    for name, x in arrays.items():
        if not np.array_equal(x, inputs[name]):
            raise GradientError(f"{name} was changed by forward or backward; others may still need it")
    if not all(np.array_equal(dout, before) for dout, before in zip(douts, kept, strict=True)):
        raise GradientError("dout was changed by backward; a residual connection still needs it")

    def projected(_: Array) -> float:
        return sum(float((dout * out).sum()) for dout, out in zip(kept, _as_tuple(forward(*values)[0]), strict=True))

    for name, grad in zip(names, grads, strict=True):
        x = arrays[name]
        if grad.shape != x.shape or grad.dtype != x.dtype:
            raise GradientError(f"d{name} is {grad.dtype} of shape {grad.shape}; expected {x.dtype} of shape {x.shape}")
        _compare(f"d{name}", grad, numerical_gradient(projected, x), sizes, tolerance)


def check_params(
    loss_and_grad: Callable[[], float],
    params: Mapping[str, Param],
    rng: np.random.Generator,
    tolerance: float = 1e-5,
    samples: int = 20,
) -> None:
    """Compare the gradients of a model's parameters with central differences, at a random sample of entries.

        check_params(lambda: model.loss_and_grad(batch, np.random.default_rng(0)), model.params(), rng)

    Errors are measured as in `check_op`. Afterwards values are exactly what they were, and each `Param.grad` holds
    the gradient of one call.

    Args:
        loss_and_grad: () -> loss; adds the gradients to `Param.grad`. It must give the same loss each time, so
            its random numbers must be the same each time.
        params: name -> parameter, all float64.
        rng: draws the sample.
        tolerance: the largest relative error that is accepted.
        samples: the number of entries of each parameter (all, where there are fewer).

    Raises:
        GradientError: a gradient is wrong, or was not added to what `Param.grad` held.
        ValueError: a parameter is not float64, or the loss is not finite or not the same each time.
    """
    samples = as_size(samples, "samples")
    if not params:
        raise ValueError("params is empty; nothing to check")
    for name, param in params.items():
        _check_float64(name, param.value)
        param.grad[...] = 0
    loss = float(loss_and_grad())
    if not math.isfinite(loss):
        raise ValueError(f"the loss is {loss}; a gradient needs a finite one")
    grads = {name: param.grad.copy() for name, param in params.items()}
    again = float(loss_and_grad())
    if again != loss:
        raise ValueError(f"the loss was {loss}, then {again}; make what it draws the same each time, or leave it out")
    for name, param in params.items():
        if not np.allclose(param.grad, 2 * grads[name], rtol=1e-9, atol=0, equal_nan=True):
            raise GradientError(f"{name}.grad: a second call did not add the same gradient again; write +=, not =")

    try:
        for name, param in params.items():
            sample = rng.permutation(param.value.size)[:samples]
            indices = [tuple(int(i) for i in np.unravel_index(n, param.value.shape)) for n in sample]
            expected = numerical_gradient(lambda _: loss_and_grad(), param.value, indices=indices)
            _compare(f"{name}.grad", grads[name], expected, abs(loss), tolerance, indices)
    finally:
        for name, param in params.items():
            param.grad[...] = grads[name]


def _compare(
    name: str,
    got: Array,
    expected: Array,
    size: float,
    tolerance: float,
    indices: Sequence[tuple[int, ...]] | None = None,
) -> None:
    """Raise GradientError for the entry that is off most. `size` is the size of the numbers that were subtracted."""
    indices = list(np.ndindex(got.shape)) if indices is None else indices
    if not indices:
        return
    scale = max(float(np.abs(got).max()), float(np.abs(expected).max()))
    noise = NOISE * max(1.0, size)  # a gradient that is truly zero differs by this much from its differences
    errors = np.array([abs(got[i] - expected[i]) for i in indices])
    with np.errstate(invalid="ignore"):  # NaN and infinite gradients are found below
        relative = np.divide(errors, scale, out=np.zeros_like(errors), where=errors != 0)
    off = ~((errors <= noise) | (relative <= tolerance))  # written so that NaN is off
    if not off.any():
        return
    worst = int(np.argmax(np.where(off, np.nan_to_num(relative, nan=np.inf), -1)))
    index = ", ".join(str(i) for i in indices[worst])
    raise GradientError(
        f"{name}{f'[{index}]' if index else ''}: backward says {got[indices[worst]]:.6g}, differences say "
        f"{expected[indices[worst]]:.6g} (relative error {relative[worst]:.1e}); "
        f"{off.sum()} of {len(indices)} entries checked are off"
    )


def _check_float64(name: str, x: Array) -> None:
    if not isinstance(x, np.ndarray) or x.dtype != np.float64:
        given = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"{name} is {given}; differences need float64, try .astype(np.float64)")


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)
