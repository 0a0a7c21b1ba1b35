"""A cell unrolled over sequences, in one direction or in both, and backpropagation through time.

The product x W_x needs no state, so it is one large product for all steps, outside the loop. Inside the loop, arrays
have time first, (T, B, …), so that each step is one block of memory.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths.checks import Array, Mask, as_choice, check_real
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


class Unrolled(NamedTuple):
    """The cache of a network; `inputs` are the caches of x W_x, one for each direction."""

    inputs: list[Any]
    recurrence: Recurrence
    states: Array
    real: Mask | None


def unroll_forward(
    kind: str, x: Array, state: Array, params: Sequence[Array], mask: Mask | None = None
) -> tuple[tuple[Array, Array], Unrolled]:
    """Run a recurrent network over a batch of sequences.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        state: the first state, (B, d_h); of an LSTM h and c side by side, (B, 2·d_h).
        params: W_x, W_h, b, and for a GRU b_h, as for the cell.
        mask: True = a real symbol, (B, T). At padding the state stays as it is and the output is 0.

    Returns:
        outputs, which are each step's h, (B, T, d_h), and the last state; then the cache.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.
    """
    _check_sequences(kind, x, params, mask)
    W_x, W_h, b, *b_h = params
    d_h = W_h.shape[0]
    if state.shape != (len(x), CELLS[kind].parts * d_h) or state.dtype != x.dtype:
        wanted = f"{x.dtype} ({len(x)}, {CELLS[kind].parts * d_h})"
        raise ValueError(f"state is {state.dtype} {state.shape}; expected {wanted}")
    a, product = linear_forward(x.swapaxes(0, 1), W_x, b)  # (T, B, gates·d_h)
    real = None if mask is None else mask.T
    states, recurrence = recurrence_forward(kind, a, state, (W_h, *b_h), real)
    outputs = states[1:, :, :d_h]  # (T, B, d_h)
    if real is not None:
        outputs = outputs * real[..., None]
    return (outputs.swapaxes(0, 1), states[-1]), Unrolled([product], recurrence, states, real)


def unroll_backward(doutputs: tuple[Array, Array], cache: Unrolled) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return dx, dstate and the parameters' gradients in order, from those of the outputs and of the last state."""
    (douts, dlast), (inputs, recurrence, states, real) = doutputs, cache
    douts = douts.swapaxes(0, 1)  # (T, B, d_h)
    dstates = _state_gradients(douts if real is None else douts * real[..., None], dlast, states)
    da, dstate, (dW_h, *db_h) = recurrence_backward(dstates, recurrence)
    dx, dW_x, db = linear_backward(da, inputs[0])
    return dx.swapaxes(0, 1), dstate, (dW_x, dW_h, db, *db_h)


def bidirectional_forward(
    kind: str, x: Array, params: Sequence[Array], mask: Mask | None = None
) -> tuple[tuple[Array, Array], Unrolled]:
    """Run one network forwards and another backwards over a batch of sequences; both start from zeros.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        params: as for `unroll_forward`, with an axis of 2 in front: W_x is (2, d_in, gates·d_h), and so on.
        mask: True = a real symbol, (B, T), padding at the end.

    Returns:
        outputs, (B, T, 2·d_h), forwards beside backwards; the last h of each network, (B, 2·d_h); then the cache.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.

    Source: Schuster and Paliwal (1997).
    """
    _check_sequences(kind, x, params, mask, directions=(2,))
    (B, T, _), (W_x, W_h, b, *b_h) = x.shape, params
    d_h = W_h.shape[1]
    steps = x.swapaxes(0, 1)  # (T, B, d_in)
    a = np.empty((T, 2, B, W_h.shape[-1]), x.dtype)
    a[:, 0], there = linear_forward(steps, W_x[0], b[0])
    a[::-1, 1], back = linear_forward(steps, W_x[1], b[1])  # the last symbol is read first
    real = None if mask is None else np.stack([mask.T, mask.T[::-1]], axis=1)  # (T, 2, B)
    zeros = np.zeros((2, B, CELLS[kind].parts * d_h), x.dtype)
    states, recurrence = recurrence_forward(kind, a, zeros, (W_h, *b_h), real)
    outputs = states[1:, ..., :d_h]  # (T, 2, B, d_h)
    if real is not None:
        outputs = outputs * real[..., None]
    joined = np.concatenate([outputs[:, 0], outputs[::-1, 1]], axis=-1)  # (T, B, 2·d_h)
    last = np.concatenate([states[-1, 0, :, :d_h], states[-1, 1, :, :d_h]], axis=-1)  # (B, 2·d_h)
    return (joined.swapaxes(0, 1), last), Unrolled([there, back], recurrence, states, real)


def bidirectional_backward(doutputs: tuple[Array, Array], cache: Unrolled) -> tuple[Array, tuple[Array, ...]]:
    """Return dx and the parameters' gradients in order, from those of the outputs and of both last states."""
    (douts, dlast), (inputs, recurrence, states, real) = doutputs, cache
    d_h = dlast.shape[-1] // 2
    douts = douts.swapaxes(0, 1)  # (T, B, 2·d_h)
    douts = np.stack([douts[..., :d_h], douts[::-1, :, d_h:]], axis=1)  # (T, 2, B, d_h)
    if real is not None:
        douts *= real[..., None]
    dends = np.stack([dlast[:, :d_h], dlast[:, d_h:]])  # (2, B, d_h)
    da, _, (dW_h, *db_h) = recurrence_backward(_state_gradients(douts, dends, states), recurrence)
    dx, *there = linear_backward(da[:, 0], inputs[0])
    dx_back, *back = linear_backward(da[::-1, 1], inputs[1])
    dW_x, db = (np.stack(pair) for pair in zip(there, back, strict=True))
    return (dx + dx_back).swapaxes(0, 1), (dW_x, dW_h, db, *db_h)


def gradient_norms_through_time(kind: str, x: Array, params: Sequence[Array], rng: np.random.Generator) -> Array:
    """Measure how much of a gradient at the last step arrives at each step before.

    The loss is u · h_T with a random unit vector u for each sequence.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        params: as for `unroll_forward`.
        rng: draws u.

    Returns:
        norms of the loss's gradient at the states of steps 1 … T, averaged over the batch, shape (T,). The last is 1.
        An LSTM's state is h and c together, since its gradient travels through c.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.
    """
    _check_sequences(kind, x, params, None)
    d_h = params[1].shape[0]  # of W_h
    state = np.zeros((len(x), CELLS[kind].parts * d_h), x.dtype)
    _, cache = unroll_forward(kind, x, state, params)
    u = rng.normal(size=(len(x), d_h)).astype(x.dtype)
    dstates = np.zeros_like(cache.states)  # (T + 1, B, parts·d_h)
    dstates[-1, :, :d_h] = u / np.linalg.norm(u, axis=-1, keepdims=True)
    recurrence_backward(dstates, cache.recurrence)
    return np.linalg.norm(dstates[1:], axis=-1).mean(axis=-1)


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
        """Return the parameters in the order of `unroll_forward`."""
        return [self.W_x, self.W_h, self.b, *self.state_parameters()[1:]]

    def state_parameters(self) -> list[Param]:
        """Return the parameters of `recurrence_forward`: W_h, and b_h of a GRU."""
        return [self.W_h, self.b_h] if self.kind == "gru" else [self.W_h]

    def forward(self, x: Array, mask: Mask | None = None) -> tuple[tuple[Array, Array], Unrolled]:
        values = [param.value for param in self.parameters()]
        if self.bidirectional:
            return bidirectional_forward(self.kind, x, values, mask)
        state = np.zeros((len(x), CELLS[self.kind].parts * self.W_h.value.shape[0]), x.dtype)
        (outputs, last), cache = unroll_forward(self.kind, x, state, values, mask)
        return (outputs, last[:, : outputs.shape[-1]]), cache

    def backward(self, doutputs: tuple[Array, Array], cache: Unrolled) -> Array:
        if self.bidirectional:
            dx, grads = bidirectional_backward(doutputs, cache)
        else:
            dx, _, grads = unroll_backward(doutputs, cache)
        for param, grad in zip(self.parameters(), grads, strict=True):
            param.grad += grad
        return dx


def _state_gradients(douts: Array, dlast: Array, states: Array) -> Array:
    """Return the gradients of all states, (T + 1, ..., B, width), from the outputs' and the last state's.

    Outputs are the h of each state, and `douts` is (T, ..., B, d_h).
    """
    dstates = np.zeros_like(states)
    dstates[1:, ..., : douts.shape[-1]] = douts
    dstates[-1, ..., : dlast.shape[-1]] += dlast
    return dstates


def _check_sequences(
    kind: str, x: Array, params: Sequence[Array], mask: Mask | None, directions: tuple[int, ...] = ()
) -> None:
    """Refuse inputs, parameters or a mask that do not fit each other."""
    if x.ndim != 3:
        raise ValueError(f"x has shape {x.shape}; expected (B, T, d_in)")
    width = params[1].shape[-1] if len(params) > 1 and params[1].ndim else 0  # of W_h, (..., d_h, gates·d_h)
    d_h = width // CELLS[as_choice(kind, "kind", CELLS)].gates
    check_params(kind, x.shape[-1], d_h, params, directions)
    if x.dtype.kind != "f" or any(param.dtype != x.dtype for param in params):
        given = ", ".join(str(param.dtype) for param in params)
        raise ValueError(f"dtypes differ: x is {x.dtype}, params are {given}; make all float32, or all float64")
    check_real(mask, x.shape[:2])
