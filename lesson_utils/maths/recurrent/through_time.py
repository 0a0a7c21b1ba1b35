"""A cell unrolled over sequences, in one direction or in both, and backpropagation through time.

The product x W_x needs no state, so it is one large product for all steps, outside the loop. Inside the loop, arrays
have time first, (T, B, …), so that each step is one block of memory.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths.checks import Array, Mask, as_choice, as_float, check_real
from lesson_utils.maths.layers import Layer, Param
from lesson_utils.maths.ops import linear_backward, linear_forward
from lesson_utils.maths.recurrent.cells import CELLS, check_params, init_params


class Recurrence(NamedTuple):
    """The cache of a recurrence."""

    kind: str
    params: Sequence[Array]
    steps: list[Any]  # each step's cache
    real: list[Mask | None]  # each step's symbols that are no padding, (..., B, 1); None where all are real


def recurrence_forward(
    kind: str, a: Array, state: Array, params: Sequence[Array], mask: Mask | None = None
) -> tuple[Array, Recurrence]:
    """Run all steps of a cell whose inputs are already multiplied by W_x.

    Args:
        kind: "rnn", "gru" or "lstm".
        a: x W_x + b, (T, ..., B, gates·d_h).
        state: the first state, (..., B, parts·d_h).
        params: W_h, (..., d_h, gates·d_h), and for a GRU b_h, (..., d_h). An axis in front runs several recurrences
            side by side: both directions of an encoder in one loop.
        mask: True = a real symbol, (T, ..., B). At padding the state stays as it is.

    Returns:
        states, (T + 1, ..., B, parts·d_h), the first one included, and the cache.
    """
    cache = Recurrence(kind, params, [], [])
    states = [state]
    for t in range(len(a)):
        new, step = CELLS[kind].forward(a[t], states[t], *params)
        real = None if mask is None or mask[t].all() else mask[t][..., None]
        states.append(new if real is None else np.where(real, new, states[t]))
        cache.steps.append(step)
        cache.real.append(real)
    return np.stack(states), cache


def recurrence_backward(dstates: Array, cache: Recurrence) -> tuple[Array, Array, list[Array]]:
    """Backpropagate through time.

    Args:
        dstates: the gradient of each state from outside the recurrence, (T + 1, ..., B, parts·d_h). It is overwritten:
            afterwards it holds the whole gradient of each state.

    Returns:
        da, the gradient of the first state, and the parameters' gradients in order.
    """
    kind, params, steps, real = cache
    da = np.empty((len(steps), *dstates.shape[1:-1], params[0].shape[-1]), dstates.dtype)
    dparams = [np.zeros_like(param) for param in params]
    for t in reversed(range(len(steps))):
        dnew, here = dstates[t + 1], real[t]
        if here is not None:
            dstates[t] += dnew * ~here  # past the padding
            dnew = dnew * here
        da[t], dstate, *grads = CELLS[kind].backward(dnew, steps[t])
        dstates[t] += dstate
        for dparam, grad in zip(dparams, grads, strict=True):
            dparam += grad
    return da, dstates[0], dparams


ORDERS = (slice(None), slice(None, None, -1))  # of steps: the first network reads forwards, the second backwards


class Unrolled(NamedTuple):
    """The cache of one network, or of two that read in both directions."""

    products: list[Any]  # the caches of x W_x, one for each direction
    recurrence: Recurrence
    states: Array  # (T + 1, D, B, parts·d_h)
    real: Mask | None  # (T, D, B)


def unroll_forward(
    kind: str, x: Array, params: Sequence[Array], mask: Mask | None = None, state: Array | None = None
) -> tuple[tuple[Array, Array], Unrolled]:
    """Run a recurrent network over a batch of sequences, or two networks, of which the second reads backwards.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        params: W_x, W_h, b, and for a GRU b_h, as for the cell, with an axis of D directions in front, D = 1 or 2:
            W_x is (D, d_in, gates·d_h), and so on.
        mask: True = a real symbol, (B, T), padding at the end. At padding the state stays as it is and the output is 0.
        state: the first state, (D, B, parts·d_h); of an LSTM h and c side by side. Default: zeros.

    Returns:
        outputs, which are each step's h, (B, T, D·d_h), directions side by side; the last state, (D, B, parts·d_h);
        then the cache.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.

    Source: Schuster and Paliwal (1997), for both directions.
    """
    _check_sequences(kind, x, params, mask)
    W_x, W_h, b, *b_h = params
    (B, T, _), (D, d_h, width) = x.shape, W_h.shape
    shape = (D, B, CELLS[kind].parts * d_h)
    state = np.zeros(shape, x.dtype) if state is None else state
    if state.shape != shape or state.dtype != x.dtype:
        raise ValueError(f"state is {state.dtype} {state.shape}; expected {x.dtype} {shape}")
    steps = x.swapaxes(0, 1)  # (T, B, d_in)
    a, products = np.empty((T, D, B, width), x.dtype), []
    for d, order in enumerate(ORDERS[:D]):
        a[order, d], product = linear_forward(steps, W_x[d], b[d])
        products.append(product)
    real = None if mask is None else np.stack([mask.T[order] for order in ORDERS[:D]], axis=1)  # (T, D, B)
    states, recurrence = recurrence_forward(kind, a, state, (W_h, *b_h), real)
    outputs = states[1:, ..., :d_h]  # (T, D, B, d_h)
    if real is not None:
        outputs = outputs * real[..., None]
    joined = np.concatenate([outputs[order, d] for d, order in enumerate(ORDERS[:D])], axis=-1)  # (T, B, D·d_h)
    return (joined.swapaxes(0, 1), states[-1]), Unrolled(products, recurrence, states, real)


def unroll_backward(doutputs: tuple[Array, Array], cache: Unrolled) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return dx, dstate and the parameters' gradients in order, from those of the outputs and of the last state.

    The gradient of the last state may be that of h alone, (D, B, d_h).
    """
    (douts, dlast), (products, recurrence, states, real) = doutputs, cache
    D = states.shape[1]
    parts = np.split(douts.swapaxes(0, 1), D, axis=-1)  # (T, B, d_h) each
    dh = np.stack([part[order] for part, order in zip(parts, ORDERS, strict=False)], axis=1)  # (T, D, B, d_h)
    if real is not None:
        dh *= real[..., None]
    dstates = np.zeros_like(states)
    dstates[1:, ..., : dh.shape[-1]] = dh
    dstates[-1, ..., : dlast.shape[-1]] += dlast
    da, dstate, (dW_h, *db_h) = recurrence_backward(dstates, recurrence)
    inputs = [linear_backward(da[ORDERS[d], d], product) for d, product in enumerate(products)]
    dxs, dW_x, db = zip(*inputs, strict=True)
    dx = sum(dxs[1:], start=dxs[0])  # (T, B, d_in)
    return dx.swapaxes(0, 1), dstate, (np.stack(dW_x), dW_h, np.stack(db), *db_h)


def gradient_norms_through_time(kind: str, x: Array, params: Sequence[Array], rng: np.random.Generator) -> Array:
    """Measure how much of a gradient at the last step arrives at each step before.

    The loss is u · h_T with a random unit vector u for each sequence.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        params: W_x, W_h, b, and for a GRU b_h, as for the cell.
        rng: draws u.

    Returns:
        norms of the loss's gradient at the states of steps 1 … T, averaged over the batch, shape (T,). The last is 1.
        An LSTM's state is h and c together, since its gradient travels through c.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.
    """
    x, params = as_float(x, "x"), [as_float(param, f"params[{i}]") for i, param in enumerate(params)]
    (outputs, _), cache = unroll_forward(kind, x, [param[None] for param in params])
    u = rng.normal(size=outputs[:, -1].shape).astype(x.dtype)  # (B, d_h)
    dstates = np.zeros_like(cache.states)  # (T + 1, 1, B, parts·d_h)
    dstates[-1, 0, :, : u.shape[-1]] = u / np.linalg.norm(u, axis=-1, keepdims=True)
    recurrence_backward(dstates, cache.recurrence)
    return np.linalg.norm(dstates[1:, 0], axis=-1).mean(axis=-1)


class Recurrent(Layer):
    """An RNN, GRU or LSTM over whole sequences, in one direction or in both. It starts from zeros.

    `forward(x, mask) -> (outputs, last), cache`; `backward((doutputs, dlast), cache) -> dx`.
    """

    def __init__(
        self,
        kind: str,
        d_in: int,
        d_h: int,
        rng: np.random.Generator,
        bidirectional: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        """Draw the parameters; `d_h` is the width of each direction."""
        self.kind, self.bidirectional = kind, bidirectional
        values = init_params(kind, d_in, d_h, rng, dtype)
        if bidirectional:
            values = tuple(map(np.stack, zip(values, init_params(kind, d_in, d_h, rng, dtype), strict=True)))
        self.W_x, self.W_h, self.b = (Param(value) for value in values[:3])
        if kind == "gru":
            self.b_h = Param(values[3])

    def parameters(self) -> list[Param]:
        """Return the parameters in the order of `unroll_forward`, of one direction or of both."""
        return [self.W_x, self.W_h, self.b, *self.state_parameters()[1:]]

    def state_parameters(self) -> list[Param]:
        """Return the parameters of `recurrence_forward`: W_h, and b_h of a GRU."""
        return [self.W_h, self.b_h] if self.kind == "gru" else [self.W_h]

    def forward(self, x: Array, mask: Mask | None = None) -> tuple[tuple[Array, Array], Unrolled]:
        values = [param.value if self.bidirectional else param.value[None] for param in self.parameters()]
        (outputs, last), cache = unroll_forward(self.kind, x, values, mask)
        d_h = values[1].shape[1]
        return (outputs, np.concatenate(last[..., :d_h], axis=-1)), cache

    def backward(self, doutputs: tuple[Array, Array], cache: Unrolled) -> Array:
        douts, dlast = doutputs
        dlast = np.stack(np.split(dlast, 1 + self.bidirectional, axis=-1))  # (D, B, d_h)
        dx, _, grads = unroll_backward((douts, dlast), cache)
        for param, grad in zip(self.parameters(), grads, strict=True):
            param.grad += grad if self.bidirectional else grad[0]
        return dx


def _check_sequences(kind: str, x: Array, params: Sequence[Array], mask: Mask | None) -> None:
    """Refuse inputs, parameters or a mask that do not fit each other."""
    if x.ndim != 3:
        raise ValueError(f"x has shape {x.shape}; expected (B, T, d_in)")
    W_h = params[1] if len(params) > 1 else np.zeros((1, 0, 0))  # `check_params` says what is missing
    d_h = W_h.shape[-1] // CELLS[as_choice(kind, "kind", CELLS)].gates if W_h.ndim else 0
    check_params(kind, x.shape[-1], d_h, params, (2,) if W_h.ndim == 3 and len(W_h) == 2 else (1,))
    if x.dtype.kind != "f" or any(param.dtype != x.dtype for param in params):
        given = ", ".join(str(param.dtype) for param in params)
        raise ValueError(f"dtypes differ: x is {x.dtype}, params are {given}; make all float32, or all float64")
    check_real(mask, x.shape[:2])
