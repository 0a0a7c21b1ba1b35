"""Recurrent networks: RNN, GRU and LSTM cells, unrolling through time, attention for recurrent decoders.

A cell makes a new state from an input and the state before. Its gates are blocks of columns, each d_h wide, in the
order of PyTorch: GRU r, z, n; LSTM i, f, g, o. Learners call one step: `gru_cell(x, h, …)`. Training unrolls all
steps: what does not need the state (x W_x of all steps, the gradients of all weights) is one large product outside
the loop. Inside, arrays have time first, (T, B, …), so that each step is one block of memory.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils._checks import Array, Mask, as_floats, as_size
from lesson_utils.layers import Layer, Param
from lesson_utils.ops import linear_backward, linear_forward, sigmoid, softmax_backward, softmax_forward

# --- One step, as on paper --------------------------------------------------------------------------------------------


def rnn_cell(x: Array, h: Array, W_x: Array, W_h: Array, b: Array) -> Array:
    """h' = tanh(x W_x + h W_h + b).

    Args:
        x: input, (B, d_in).
        h: state, (B, d_h).
        W_x: (d_in, d_h).
        W_h: (d_h, d_h).
        b: (d_h,).

    Returns:
        new state, (B, d_h).

    Raises:
        ValueError: shapes or dtypes do not fit, or the input holds NaN or infinite values.

    Source: Elman (1990).
    """
    x, h, W_x, W_h, b = as_floats(x=x, h=h, W_x=W_x, W_h=W_h, b=b)
    _check_cell("rnn", x, h, (W_x, W_h, b))
    return np.tanh(x @ W_x + h @ W_h + b)


def gru_cell(x: Array, h: Array, W_x: Array, W_h: Array, b: Array, b_h: Array) -> Array:
    """A state that is kept where z is 1, and replaced by a candidate n where z is 0.

        r = σ(x W_xr + h W_hr + b_r)                how much of the old state the candidate sees
        z = σ(x W_xz + h W_hz + b_z)                how much of the old state stays
        n = tanh(x W_xn + b_n + r · (h W_hn + b_h))
        h' = (1 − z) · n + z · h

    Args:
        x: input, (B, d_in).
        h: state, (B, d_h).
        W_x: (d_in, 3·d_h), the columns of r, z and n side by side.
        W_h: (d_h, 3·d_h), likewise.
        b: (3·d_h,), likewise.
        b_h: (d_h,), the candidate's second bias.

    Returns:
        new state, (B, d_h).

    Raises:
        ValueError: shapes or dtypes do not fit, or the input holds NaN or infinite values.

    Source: Cho et al. (2014), section 2.3, who reset the state before its product, (r · h) W_hn. This is the variant
    of their first preprint, and of cuDNN and PyTorch, that resets after it; hence the bias b_h inside.
    """
    x, h, W_x, W_h, b, b_h = as_floats(x=x, h=h, W_x=W_x, W_h=W_h, b=b, b_h=b_h)
    _check_cell("gru", x, h, (W_x, W_h, b, b_h))
    x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)  # (B, d_h) each
    h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)
    r = sigmoid(x_r + h_r)
    z = sigmoid(x_z + h_z)
    n = np.tanh(x_n + r * (h_n + b_h))
    return (1 - z) * n + z * h


def lstm_cell(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Array) -> tuple[Array, Array]:
    """A memory c that is added to, beside the state h that is shown.

        i, f, o = σ(x W_x + h W_h + b)    input, forget and output gate, each with its own columns
        g = tanh(x W_xg + h W_hg + b_g)   what may be added
        c' = f · c + i · g
        h' = o · tanh(c')

    Args:
        x: input, (B, d_in).
        h, c: state and memory, (B, d_h).
        W_x: (d_in, 4·d_h), the columns of i, f, g and o side by side.
        W_h: (d_h, 4·d_h), likewise.
        b: (4·d_h,), likewise.

    Returns:
        new state h' and memory c', (B, d_h) each.

    Raises:
        ValueError: shapes or dtypes do not fit, or the input holds NaN or infinite values.

    Source: Hochreiter and Schmidhuber (1997); the forget gate is from Gers et al. (2000).
    """
    x, h, c, W_x, W_h, b = as_floats(x=x, h=h, c=c, W_x=W_x, W_h=W_h, b=b)
    if c.shape != h.shape:
        raise ValueError(f"c has shape {c.shape}; expected that of h, {h.shape}")
    _check_cell("lstm", x, h, (W_x, W_h, b))
    i, f, g, o = np.split(x @ W_x + h @ W_h + b, 4, axis=-1)  # (B, d_h) each
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


# --- The same steps for training --------------------------------------------------------------------------------------
# `step` gets a = x W_x + b, and turns it into the gates in place. `step_back` gets d, the gradient of the state after
# the step. It fills da and du, the gradients of x W_x + b and of h W_h, and adds to that of the state before.


class Cell(NamedTuple):
    """What unrolling needs of a cell. The state is h, or for an LSTM h and c side by side, (B, parts·d_h)."""

    gates: int
    parts: int
    step: Callable[..., Array | None]
    step_back: Callable[..., None]


class Step(NamedTuple):
    """What is remembered of a step."""

    gates: Array  # (..., B, gates·d_h)
    before: Array  # the state, (..., B, parts·d_h)
    after: Array
    extra: Any  # what `step` returned: an array (..., B, d_h), or None


def _rnn_step(a: Array, h: Array, W_h: Array, b_h: Array, new: Array) -> None:
    a += h @ W_h
    np.tanh(a, out=new)


def _rnn_back(d: Array, was: Step, W_hT: Array, dbefore: Array, da: Array, du: Array) -> None:
    np.multiply(d, 1 - was.after * was.after, out=da)
    du[...] = da
    dbefore += du @ W_hT


def _gru_step(a: Array, h: Array, W_h: Array, b_h: Array, new: Array) -> Array:
    d_h = h.shape[-1]
    u = h @ W_h  # (..., 3·d_h)
    u_n = u[..., 2 * d_h :]
    u_n += b_h
    rz, n = a[..., : 2 * d_h], a[..., 2 * d_h :]
    rz += u[..., : 2 * d_h]
    rz[...] = sigmoid(rz)
    n += rz[..., :d_h] * u_n
    np.tanh(n, out=n)
    np.subtract(h, n, out=new)  # (1 − z) · n + z · h = n + z · (h − n)
    new *= rz[..., d_h:]
    new += n
    return u_n


def _gru_back(d: Array, was: Step, W_hT: Array, dbefore: Array, da: Array, du: Array) -> None:
    d_h = d.shape[-1]
    r, z, n = (was.gates[..., k * d_h : (k + 1) * d_h] for k in range(3))
    da_r, da_z, da_n = (da[..., k * d_h : (k + 1) * d_h] for k in range(3))
    kept = d * z
    np.multiply(d - kept, 1 - n * n, out=da_n)
    np.multiply(kept - kept * z, was.before - n, out=da_z)
    np.multiply(da_n * was.extra, r - r * r, out=da_r)
    du[...] = da
    du[..., 2 * d_h :] *= r
    dbefore += kept
    dbefore += du @ W_hT


def _lstm_step(a: Array, state: Array, W_h: Array, b_h: Array, new: Array) -> Array:
    d_h = state.shape[-1] // 2
    h, c = state[..., :d_h], state[..., d_h:]
    a += h @ W_h  # (..., 4·d_h)
    i, f, g, o = (a[..., k * d_h : (k + 1) * d_h] for k in range(4))
    a[..., : 2 * d_h] = sigmoid(a[..., : 2 * d_h])
    np.tanh(g, out=g)
    o[...] = sigmoid(o)
    c_new = new[..., d_h:]
    np.multiply(f, c, out=c_new)
    c_new += i * g
    tanh_c = np.tanh(c_new)
    np.multiply(o, tanh_c, out=new[..., :d_h])
    return tanh_c


def _lstm_back(d: Array, was: Step, W_hT: Array, dbefore: Array, da: Array, du: Array) -> None:
    d_h = d.shape[-1] // 2
    i, f, g, o = (was.gates[..., k * d_h : (k + 1) * d_h] for k in range(4))
    da_i, da_f, da_g, da_o = (da[..., k * d_h : (k + 1) * d_h] for k in range(4))
    dh, tanh_c = d[..., :d_h], was.extra
    dc = d[..., d_h:] + dh * o * (1 - tanh_c * tanh_c)
    np.multiply(dc * g, i - i * i, out=da_i)
    np.multiply(dc * was.before[..., d_h:], f - f * f, out=da_f)
    np.multiply(dc * i, 1 - g * g, out=da_g)
    np.multiply(dh * tanh_c, o - o * o, out=da_o)
    du[...] = da
    dbefore[..., :d_h] += du @ W_hT
    dbefore[..., d_h:] += dc * f


CELLS = {
    "rnn": Cell(1, 1, _rnn_step, _rnn_back),
    "gru": Cell(3, 1, _gru_step, _gru_back),
    "lstm": Cell(4, 2, _lstm_step, _lstm_back),
}


# --- Through time -----------------------------------------------------------------------------------------------------


def recurrence_forward(
    kind: str, a: Array, state: Array, recurrent: Sequence[Array], mask: Mask | None = None
) -> tuple[Array, tuple[Any, ...]]:
    """All steps of a cell whose inputs are already multiplied by W_x.

    Args:
        kind: "rnn", "gru" or "lstm".
        a: x W_x + b, (T, ..., B, gates·d_h). Is overwritten: the gates are kept in its place.
        state: the first state, (..., B, parts·d_h).
        recurrent: W_h, (..., d_h, gates·d_h), and for a GRU b_h, (..., 1, d_h) or (d_h,). An axis in front runs several
            recurrences side by side: both directions of an encoder in one loop.
        mask: True = a real symbol, (T, ..., B). At padding the state stays as it is.

    Returns:
        states, (T + 1, ..., B, parts·d_h), the first one included, and the cache.
    """
    step, T, W_h, b_h = CELLS[kind].step, len(a), recurrent[0], recurrent[-1]  # without b_h, it is not used
    states = np.empty((T + 1, *state.shape), a.dtype)
    states[0] = state
    padding = _padding(mask, T)
    steps = []
    for t in range(T):
        extra = step(a[t], states[t], W_h, b_h, states[t + 1])
        steps.append(Step(a[t], states[t], states[t + 1], extra))
        if padding[t] is not None:
            np.copyto(states[t + 1], states[t], where=padding[t])
    return states, (kind, a, states, steps, W_h, padding)


def recurrence_backward(dstates: Array, cache: tuple[Any, ...]) -> tuple[Array, ...]:
    """Backpropagation through time.

    Args:
        dstates: what each state gets from outside the recurrence, (T + 1, ..., B, parts·d_h). Is overwritten:
            afterwards it holds the whole gradient of each state.

    Returns:
        da, the gradient of the first state, dW_h, and of a GRU db_h.
    """
    kind, gates, states, steps, W_h, padding = cache
    da, du = np.empty_like(gates), np.empty_like(gates)
    W_hT = np.ascontiguousarray(W_h.swapaxes(-1, -2))  # a product with a transposed view takes 1.5 times as long
    for t in reversed(range(len(steps))):
        arrived = dstates[t + 1]
        if padding[t] is not None:
            passing = arrived * padding[t]
            arrived = arrived - passing
            dstates[t] += passing
        CELLS[kind].step_back(arrived, steps[t], W_hT, dstates[t], da[t], du[t])
    return da, dstates[0], *_recurrent_grads(kind, states, du, W_h.shape[-2])


def unroll_forward(
    kind: str, x: Array, state: Array, params: Sequence[Array], mask: Mask | None = None
) -> tuple[tuple[Array, Array], tuple[Any, ...]]:
    """A recurrent network over a batch of sequences.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        state: the first state, (B, d_h); of an LSTM h and c side by side, (B, 2·d_h).
        params: W_x, W_h, b, and for a GRU b_h, as for the cell.
        mask: True = a real symbol, (B, T). At padding the state stays as it is and the output is 0.

    Returns:
        outputs, each step's h, (B, T, d_h), and the last state; then the cache.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.
    """
    d_h = _check_unroll(kind, x, params, mask)
    W_x, W_h, b, *b_h = params
    if state.shape != (len(x), CELLS[kind].parts * d_h) or state.dtype != x.dtype:
        wanted = f"{x.dtype} ({len(x)}, {CELLS[kind].parts * d_h})"
        raise ValueError(f"state is {state.dtype} {state.shape}; expected {wanted}")
    a, inner = linear_forward(x.swapaxes(0, 1), W_x, b)  # (T, B, gates·d_h)
    real = None if mask is None else mask.T
    states, cache = recurrence_forward(kind, a, state, (W_h, *b_h), real)
    outputs = states[1:, :, :d_h]  # (T, B, d_h)
    if real is not None:
        outputs = outputs * real[..., None]
    return (outputs.swapaxes(0, 1), states[-1]), (inner, cache, real)


def unroll_backward(doutputs: tuple[Array, Array], cache: tuple[Any, ...]) -> tuple[Array, Array, tuple[Array, ...]]:
    """From the gradients of the outputs and of the last state: dx, dstate, and those of the parameters in order."""
    (douts, dlast), (inner, recurrence, real) = doutputs, cache
    douts = douts.swapaxes(0, 1)  # (T, B, d_h)
    dstates = _spread(douts if real is None else douts * real[..., None], dlast, recurrence[2].shape[-1])
    da, dstate, dW_h, *db_h = recurrence_backward(dstates, recurrence)
    dx, dW_x, db = linear_backward(da, inner)
    return dx.swapaxes(0, 1), dstate, (dW_x, dW_h, db, *db_h)


def bidirectional_forward(
    kind: str, x: Array, params: Sequence[Array], mask: Mask | None = None
) -> tuple[tuple[Array, Array], tuple[Any, ...]]:
    """One network reads forwards, another backwards; both start from zeros.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        params: as for `unroll_forward`, with an axis of 2 in front: W_x is (2, d_in, gates·d_h), and so on.
        mask: True = a real symbol, (B, T), padding at the end.

    Returns:
        outputs, (B, T, 2·d_h), forwards beside backwards; the h in which each ends, (B, 2·d_h); then the cache.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.

    Source: Schuster and Paliwal (1997).
    """
    d_h = _check_unroll(kind, x, params, mask, directions=(2,))
    (B, T, _), (W_x, W_h, b, *b_h) = x.shape, params
    steps = x.swapaxes(0, 1)  # (T, B, d_in)
    a = np.empty((T, 2, B, W_h.shape[-1]), x.dtype)
    a[:, 0], there = linear_forward(steps, W_x[0], b[0])
    a[::-1, 1], back = linear_forward(steps, W_x[1], b[1])  # the last symbol is read first
    real = None if mask is None else np.stack([mask.T, mask.T[::-1]], axis=1)  # (T, 2, B)
    zeros = np.zeros((2, B, CELLS[kind].parts * d_h), x.dtype)
    states, cache = recurrence_forward(kind, a, zeros, (W_h, *(bias[:, None] for bias in b_h)), real)
    outputs = states[1:, ..., :d_h]  # (T, 2, B, d_h)
    if real is not None:
        outputs = outputs * real[..., None]
    joined = np.concatenate([outputs[:, 0], outputs[::-1, 1]], axis=-1)  # (T, B, 2·d_h)
    last = np.concatenate([states[-1, 0, :, :d_h], states[-1, 1, :, :d_h]], axis=-1)  # (B, 2·d_h)
    return (joined.swapaxes(0, 1), last), (there, back, cache, real)


def bidirectional_backward(doutputs: tuple[Array, Array], cache: tuple[Any, ...]) -> tuple[Array, tuple[Array, ...]]:
    """From the gradients of the outputs and of the two ends: dx, and those of the parameters in order."""
    (douts, dlast), (there, back, recurrence, real) = doutputs, cache
    d_h = dlast.shape[-1] // 2
    douts = douts.swapaxes(0, 1)  # (T, B, 2·d_h)
    douts = np.stack([douts[..., :d_h], douts[::-1, :, d_h:]], axis=1)  # (T, 2, B, d_h)
    if real is not None:
        douts *= real[..., None]
    dends = np.stack([dlast[:, :d_h], dlast[:, d_h:]])  # (2, B, d_h)
    da, _, dW_h, *db_h = recurrence_backward(_spread(douts, dends, recurrence[2].shape[-1]), recurrence)
    dx, *there_grads = linear_backward(da[:, 0], there)
    dx_back, *back_grads = linear_backward(da[::-1, 1], back)
    dW_x, db = (np.stack(pair) for pair in zip(there_grads, back_grads, strict=True))
    return (dx + dx_back).swapaxes(0, 1), (dW_x, dW_h, db, *db_h)


def init_params(kind: str, d_in: int, d_h: int, rng: np.random.Generator, dtype: Any = np.float32) -> tuple[Array, ...]:
    """W_x, W_h, b and for a GRU b_h, ready for `unroll_forward`.

    W_x is normal with variance 1/d_in. Each block of W_h is orthogonal: it turns the state without stretching it
    (Saxe et al., 2014). Biases are 0, but 1 for an LSTM's forget gate, so that it begins by remembering (Jozefowicz
    et al., 2015).
    """
    gates = _cell(kind).gates
    d_in, d_h = as_size(d_in, "d_in"), as_size(d_h, "d_h")
    W_x = rng.normal(size=(d_in, gates * d_h)) / math.sqrt(d_in)
    W_h = np.concatenate([_orthogonal(d_h, rng) for _ in range(gates)], axis=1)  # (d_h, gates·d_h)
    b = np.zeros(gates * d_h)
    if kind == "lstm":
        b[d_h : 2 * d_h] = 1
    params = [W_x, W_h, b, np.zeros(d_h)][: 4 if kind == "gru" else 3]
    return tuple(param.astype(dtype) for param in params)


def gradient_norms_through_time(kind: str, x: Array, params: Sequence[Array], rng: np.random.Generator) -> Array:
    """How much of a gradient at the last step arrives at each step before.

    The loss is u · h_T with a random unit vector u for each sequence.

    Args:
        kind: "rnn", "gru" or "lstm".
        x: inputs, (B, T, d_in).
        params: as for `unroll_forward`.
        rng: draws u.

    Returns:
        norms of the loss's gradient at the states of steps 1 … T, averaged over the batch, shape (T,). The last is 1.
        An LSTM's state is h and c together: c is where its gradient travels.

    Raises:
        ValueError: the kind is not known, or shapes or dtypes do not fit.
    """
    d_h = _check_unroll(kind, x, params, None)
    state = np.zeros((len(x), CELLS[kind].parts * d_h), x.dtype)
    _, (_, recurrence, _) = unroll_forward(kind, x, state, params)
    u = rng.normal(size=(len(x), d_h)).astype(x.dtype)
    dstates = np.zeros_like(recurrence[2])  # (T + 1, B, parts·d_h)
    dstates[-1, :, :d_h] = u / np.linalg.norm(u, axis=-1, keepdims=True)
    recurrence_backward(dstates, recurrence)
    return np.linalg.norm(dstates[1:], axis=-1).mean(axis=-1)


class Recurrent(Layer):
    """An RNN, GRU or LSTM over whole sequences, in one direction or in both.

    `forward(x, mask) -> (outputs, last), cache`; `backward((doutputs, dlast), cache) -> dx`. It starts from zeros.
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
        """`d_h` is the width of each direction."""
        self.kind, self.bidirectional = kind, bidirectional
        values = init_params(kind, d_in, d_h, rng, dtype)
        if bidirectional:
            values = tuple(
                np.stack(pair) for pair in zip(values, init_params(kind, d_in, d_h, rng, dtype), strict=True)
            )
        self.W_x, self.W_h, self.b = (Param(value) for value in values[:3])
        if kind == "gru":
            self.b_h = Param(values[3])

    def own(self) -> list[Param]:
        """The parameters in the order of `unroll_forward`."""
        return [self.W_x, self.W_h, self.b, *self.recurrent()[1:]]

    def recurrent(self) -> list[Param]:
        """Those of `recurrence_forward`: W_h, and b_h of a GRU."""
        return [self.W_h, self.b_h] if self.kind == "gru" else [self.W_h]

    def forward(self, x: Array, mask: Mask | None = None) -> tuple[tuple[Array, Array], tuple[Any, ...]]:
        values = [param.value for param in self.own()]
        if self.bidirectional:
            return bidirectional_forward(self.kind, x, values, mask)
        state = np.zeros((len(x), CELLS[self.kind].parts * self.W_h.value.shape[0]), x.dtype)
        (outputs, last), cache = unroll_forward(self.kind, x, state, values, mask)
        return (outputs, last[:, : outputs.shape[-1]]), cache

    def backward(self, doutputs: tuple[Array, Array], cache: tuple[Any, ...]) -> Array:
        if self.bidirectional:
            dx, grads = bidirectional_backward(doutputs, cache)
        else:
            dx, _, grads = unroll_backward(doutputs, cache)
        for param, grad in zip(self.own(), grads, strict=True):
            param.grad += grad
        return dx


# --- Attention for decoders -------------------------------------------------------------------------------------------
# The four scores of `attention`, with gradients.

SCORES = {"additive": 3, "dot": 0, "general": 1, "concat": 2}  # name -> number of parameters


def score_forward(
    kind: str, queries: Array, keys: Array, params: Sequence[Array] = ()
) -> tuple[Array, tuple[Any, ...]]:
    """How well each query fits each key.

    Args:
        kind: "additive" (params W_q, W_k, v), "dot" (none), "general" (W) or "concat" (W, v); formulas and shapes as in
            `attention.additive_score` and its neighbours.
        queries: (B, T, d_q).
        keys: (B, S, d_k).

    Returns:
        scores, (B, T, S), and the cache.

    Raises:
        ValueError: the kind is not known, or shapes do not fit.
    """
    _check_score(kind, queries, keys, params)
    if kind == "dot":
        return queries @ keys.swapaxes(-1, -2), (kind, queries, keys)
    if kind == "general":
        turned, inner = linear_forward(queries, params[0])  # (B, T, d_k)
        return turned @ keys.swapaxes(-1, -2), (kind, turned, keys, inner)
    d_q = queries.shape[-1]
    W_q, W_k, v = params if kind == "additive" else (params[0][:d_q], params[0][d_q:], params[1])
    from_queries, inner_q = linear_forward(queries, W_q)  # (B, T, d_a)
    from_keys, inner_k = linear_forward(keys, W_k)  # (B, S, d_a)
    hidden = np.tanh(from_queries[:, :, None] + from_keys[:, None])  # (B, T, S, d_a)
    return hidden @ v, (kind, hidden, v, inner_q, inner_k)


def score_backward(dscores: Array, cache: tuple[Any, ...]) -> tuple[Array, Array, tuple[Array, ...]]:
    """dqueries, dkeys, and the gradients of the parameters in order."""
    kind, *rest = cache
    if kind == "dot":
        queries, keys = rest
        return dscores @ keys, dscores.swapaxes(-1, -2) @ queries, ()
    if kind == "general":
        turned, keys, inner = rest
        dqueries, dW, _ = linear_backward(dscores @ keys, inner)
        return dqueries, dscores.swapaxes(-1, -2) @ turned, (dW,)
    hidden, v, inner_q, inner_k = rest
    dfrom_queries, dfrom_keys, dv = _additive_backward(dscores, hidden, v)
    dqueries, dW_q, _ = linear_backward(dfrom_queries, inner_q)
    dkeys, dW_k, _ = linear_backward(dfrom_keys, inner_k)
    return dqueries, dkeys, (dW_q, dW_k, dv) if kind == "additive" else (np.concatenate([dW_q, dW_k]), dv)


def attend_forward(
    kind: str, queries: Array, keys: Array, params: Sequence[Array] = (), mask: Mask | None = None
) -> tuple[tuple[Array, Array], tuple[Any, ...]]:
    """A look back: c_t = Σ_s α_ts h_s, with weights α_t = softmax(score(q_t, h_s)).

    All queries at once, as in Luong et al. (2015), whose query is the decoder's current state. Where the query is the
    state *before* the step, `bahdanau_forward` asks them one after another.

    Args:
        kind: which score, see `score_forward`.
        queries: (B, T, d_q).
        keys: h_s, (B, S, d_k); the values as well.
        params: of the score.
        mask: True = may attend, (B, S): padding should not.

    Returns:
        context, (B, T, d_k), and weights, (B, T, S); then the cache.

    Raises:
        ValueError: the kind is not known, or shapes do not fit.

    Source: Luong et al. (2015), section 3.1, equations 7 and 8.
    """
    scores, inner = score_forward(kind, queries, keys, params)
    _check_mask(mask, keys.shape[:2])
    weights, _ = softmax_forward(scores, None if mask is None else mask[:, None])  # (B, T, S)
    return (weights @ keys, weights), (keys, weights, inner)


def attend_backward(dcontext: Array, cache: tuple[Any, ...]) -> tuple[Array, Array, tuple[Array, ...]]:
    """From the gradient of the context: dqueries, dkeys, and those of the score's parameters in order."""
    keys, weights, inner = cache
    dscores = softmax_backward(dcontext @ keys.swapaxes(-1, -2), weights)  # (B, T, S)
    dqueries, dkeys, grads = score_backward(dscores, inner)
    dkeys += weights.swapaxes(-1, -2) @ dcontext  # as values
    return dqueries, dkeys, grads


def bahdanau_forward(
    kind: str,
    a: Array,
    state: Array,
    recurrent: Sequence[Array],
    W_c: Array,
    keys: Array,
    score: Sequence[Array],
    mask: Mask | None = None,
) -> tuple[tuple[Array, Array, Array], tuple[Any, ...]]:
    """A decoder that looks back before each step, and takes what it sees as a further input.

        α_t = softmax(v · tanh(h_{t−1} W_q + keys W_k)),  c_t = Σ_s α_ts keys_s,  h_t = cell(y_t W_x + c_t W_c, h_{t−1})

    Args:
        kind: "rnn", "gru" or "lstm".
        a: y W_x + b for all steps, (T, B, gates·d_h). Is overwritten.
        state: the first state, (B, parts·d_h).
        recurrent: W_h, and for a GRU b_h.
        W_c: (d_k, gates·d_h).
        keys: what the encoder gives, (B, S, d_k).
        score: W_q, W_k, v of the additive score.
        mask: True = may attend, (B, S).

    Returns:
        states, (T + 1, B, parts·d_h), contexts, (T, B, d_k), and weights, (T, B, S); then the cache.

    Raises:
        ValueError: shapes do not fit.

    Source: Bahdanau et al. (2015), section 3.1 and appendix A.1.2.
    """
    step, W_h, b_h = _cell(kind).step, recurrent[0], recurrent[-1]  # without b_h, it is not used
    (T, B), d_h, (_, S, d_k), (W_q, W_k, v) = a.shape[:2], W_h.shape[0], keys.shape, score
    _check_score("additive", state[:, None, :d_h], keys, score)
    _check_mask(mask, keys.shape[:2])
    if W_c.shape != (d_k, a.shape[-1]):
        raise ValueError(f"W_c has shape {W_c.shape}; expected {(d_k, a.shape[-1])}")
    from_keys, inner_k = linear_forward(keys, W_k)  # (B, S, d_a): once for all steps
    states, hidden = np.empty((T + 1, *state.shape), a.dtype), np.empty((T, *from_keys.shape), a.dtype)
    contexts, weights = np.empty((T, B, d_k), a.dtype), np.empty((T, B, S), a.dtype)
    states[0] = state
    steps = []
    for t in range(T):
        np.add(from_keys, (states[t, :, :d_h] @ W_q)[:, None], out=hidden[t])
        np.tanh(hidden[t], out=hidden[t])  # (B, S, d_a)
        softmax_forward(hidden[t] @ v, mask, out=weights[t])  # (B, S)
        np.matmul(weights[t][:, None], keys, out=contexts[t][:, None])  # (B, 1, d_k)
        a[t] += contexts[t] @ W_c
        extra = step(a[t], states[t], W_h, b_h, states[t + 1])
        steps.append(Step(a[t], states[t], states[t + 1], extra))
    run = (kind, a, states, steps, W_h)
    return (states, contexts, weights), (run, hidden, contexts, weights, keys, W_c, W_q, v, inner_k)


def bahdanau_backward(
    dstates: Array, dcontexts: Array, cache: tuple[Any, ...]
) -> tuple[Array, Array, tuple[Array, ...], Array, Array, tuple[Array, ...]]:
    """From what states and contexts get from outside; both are overwritten.

    Returns:
        da, dstate, drecurrent, dW_c, dkeys, dscore, in the order of the inputs.
    """
    (kind, gates, states, steps, W_h), hidden, contexts, weights, keys, W_c, W_q, v, inner_k = cache
    T, B, _, d_a = hidden.shape
    d_h = W_h.shape[0]
    da, du = np.empty_like(gates), np.empty_like(gates)
    dscores, dfrom_queries = np.empty_like(weights), np.empty((T, B, d_a), v.dtype)
    dfrom_keys = np.zeros_like(hidden[0])  # (B, S, d_a)
    W_hT, W_cT, W_qT = (np.ascontiguousarray(W.T) for W in (W_h, W_c, W_q))
    for t in reversed(range(T)):
        CELLS[kind].step_back(dstates[t + 1], steps[t], W_hT, dstates[t], da[t], du[t])
        dcontexts[t] += da[t] @ W_cT
        dweights = (keys @ dcontexts[t][..., None])[..., 0]  # (B, S)
        softmax_backward(dweights, weights[t], out=dscores[t])
        bend = hidden[t] * hidden[t]  # (B, S, d_a)
        np.subtract(1, bend, out=bend)  # the derivative of tanh
        dfrom_queries[t] = (dscores[t][:, None] @ bend)[:, 0] * v
        bend *= dscores[t][..., None]
        dfrom_keys += bend
        dstates[t, :, :d_h] += dfrom_queries[t] @ W_qT
    dkeys, dW_k, _ = linear_backward(dfrom_keys * v, inner_k)
    dkeys += weights.transpose(1, 2, 0) @ dcontexts.swapaxes(0, 1)  # (B, S, d_k): as values
    dW_c = _rows(contexts).T @ _rows(da)
    dW_q = _rows(states[:-1, :, :d_h]).T @ _rows(dfrom_queries)
    dv = dscores.reshape(-1) @ hidden.reshape(-1, d_a)
    return da, dstates[0], _recurrent_grads(kind, states, du, d_h), dW_c, dkeys, (dW_q, dW_k, dv)


# --- Helpers ----------------------------------------------------------------------------------------------------------


def _orthogonal(n: int, rng: np.random.Generator) -> Array:
    Q, R = np.linalg.qr(rng.normal(size=(n, n)))
    return Q * np.sign(np.diag(R))  # without the signs, some rotations would be likelier than others


def _additive_backward(dscores: Array, hidden: Array, v: Array) -> tuple[Array, Array, Array]:
    bend = 1 - hidden * hidden  # (B, T, S, d_a)
    dfrom_queries = (dscores[..., None, :] @ bend)[..., 0, :] * v  # (B, T, d_a)
    dv = dscores.reshape(-1) @ hidden.reshape(-1, len(v))
    bend *= dscores[..., None]
    return dfrom_queries, bend.sum(axis=1) * v, dv


def _recurrent_grads(kind: str, states: Array, du: Array, d_h: int) -> tuple[Array, ...]:
    """dW_h from all steps at once, and of a GRU db_h."""
    rows = _rows(du)  # (..., T·B, gates·d_h)
    dW_h = _rows(states[:-1, ..., :d_h]).swapaxes(-1, -2) @ rows
    return (dW_h, rows[..., -d_h:].sum(axis=-2)) if kind == "gru" else (dW_h,)


def _rows(x: Array) -> Array:
    """(T, ..., B, n) → (..., T·B, n)."""
    T, *directions, B, n = x.shape
    return np.moveaxis(x, 0, -3).reshape(*directions, T * B, n)


def _spread(douts: Array, dlast: Array, width: int) -> Array:
    """Gradients of outputs, (T, ..., B, d_h), and of the last state, as those of all states, (T + 1, ..., B, width)."""
    dstates = np.zeros((len(douts) + 1, *douts.shape[1:-1], width), douts.dtype)
    dstates[1:, ..., : douts.shape[-1]] = douts
    dstates[-1, ..., : dlast.shape[-1]] += dlast
    return dstates


def _padding(mask: Mask | None, T: int) -> list[Mask | None]:
    """For each step, what is padding, (..., B, 1), or None: most steps have none and need nothing done."""
    if mask is None:
        return [None] * T
    return [None if real.all() else ~real[..., None] for real in mask]


def _cell(kind: str) -> Cell:
    if kind not in CELLS:
        raise ValueError(f"kind={kind!r} is not known; expected one of {', '.join(CELLS)}")
    return CELLS[kind]


def _check_cell(kind: str, x: Array, h: Array, params: Sequence[Array]) -> None:
    if x.ndim != 2 or h.ndim != 2 or len(x) != len(h):
        raise ValueError(f"x has shape {x.shape}, h has shape {h.shape}; expected (B, d_in) and (B, d_h)")
    _check_params(kind, x.shape[1], h.shape[1], params)


def _check_unroll(
    kind: str, x: Array, params: Sequence[Array], mask: Mask | None, directions: tuple[int, ...] = ()
) -> int:
    """Returns d_h."""
    if x.ndim != 3:
        raise ValueError(f"x has shape {x.shape}; expected (B, T, d_in)")
    width = params[1].shape[-1] if len(params) > 1 and params[1].ndim else 0
    d_h = width // _cell(kind).gates
    _check_params(kind, x.shape[-1], d_h, params, directions)
    if x.dtype.kind != "f" or any(param.dtype != x.dtype for param in params):
        given = ", ".join(str(param.dtype) for param in params)
        raise ValueError(f"dtypes differ: x is {x.dtype}, params are {given}; make all float32, or all float64")
    _check_mask(mask, x.shape[:2])
    return d_h


def _check_params(kind: str, d_in: int, d_h: int, params: Sequence[Array], directions: tuple[int, ...] = ()) -> None:
    width = CELLS[kind].gates * d_h
    wanted = {"W_x": (d_in, width), "W_h": (d_h, width), "b": (width,)}
    if kind == "gru":
        wanted["b_h"] = (d_h,)
    if len(params) != len(wanted):
        raise ValueError(f"params has {len(params)} arrays; kind={kind!r} needs {len(wanted)}: {', '.join(wanted)}")
    for (name, shape), param in zip(wanted.items(), params, strict=True):
        if param.shape != directions + shape:
            sizes = f"kind={kind!r}, d_in={d_in} and d_h={d_h}"
            raise ValueError(f"{name} has shape {param.shape}; expected {directions + shape} for {sizes}")


def _check_mask(mask: Mask | None, shape: tuple[int, ...]) -> None:
    if mask is not None and (mask.dtype != bool or mask.shape != shape):
        raise ValueError(f"mask is {mask.dtype} {mask.shape}; expected booleans {shape}, True = a real symbol")


def _check_score(kind: str, queries: Array, keys: Array, params: Sequence[Array]) -> None:
    if kind not in SCORES:
        raise ValueError(f"kind={kind!r} is not known; expected one of {', '.join(SCORES)}")
    if len(params) != SCORES[kind]:
        raise ValueError(f"params has {len(params)} arrays; the {kind} score needs {SCORES[kind]}")
    if queries.ndim != 3 or keys.ndim != 3 or len(queries) != len(keys):
        raise ValueError(
            f"queries {queries.shape} and keys {keys.shape} do not fit; expected (B, T, d_q) and (B, S, d_k)"
        )
    if keys.shape[1] == 0:
        raise ValueError(f"keys has shape {keys.shape}; expected at least one key")
    d_q, d_k = queries.shape[-1], keys.shape[-1]
    if kind == "dot":
        if d_q != d_k:
            raise ValueError(
                f"queries have width {d_q}, keys {d_k}; a dot product needs the same width (try 'general')"
            )
        return
    d_a = params[-1].shape[-1] if params[-1].ndim else 0
    wanted = {
        "general": [(d_q, d_k)],
        "additive": [(d_q, d_a), (d_k, d_a), (d_a,)],
        "concat": [(d_q + d_k, d_a), (d_a,)],
    }
    given = [param.shape for param in params]
    if given != wanted[kind]:
        raise ValueError(f"params have shapes {given}; the {kind} score needs {wanted[kind]}")
