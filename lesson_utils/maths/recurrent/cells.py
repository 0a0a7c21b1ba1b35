"""One step of an RNN, a GRU and an LSTM: as on paper, and as a pair of forward and backward for training.

Gates are blocks of columns, each d_h wide, in the order of PyTorch: GRU r, z, n; LSTM i, f, g, o. Learners call
`gru_cell(x, h, …)`. The pair behind it gets a = x W_x + b, which needs no state and is one large product for all steps;
`forward(a, h, W_h, …) -> new state, cache` and `backward(dnew, cache) -> gradients` in the order of these inputs. The
state of an LSTM is h and c side by side. Any leading axes may stand in front of B: both directions of an encoder do.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths.checks import Array, as_choice, as_floats, as_size
from lesson_utils.maths.ops import sigmoid


def rnn_cell(x: Array, h: Array, W_x: Array, W_h: Array, b: Array) -> Array:
    """Return h' = tanh(x W_x + h W_h + b).

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
    return rnn_forward(x @ W_x + b, h, W_h)[0]


class RNNCache(NamedTuple):
    h: Array
    W_h: Array
    new: Array


def rnn_forward(a: Array, h: Array, W_h: Array) -> tuple[Array, RNNCache]:
    new = np.tanh(a + h @ W_h)  # (..., B, d_h)
    return new, RNNCache(h, W_h, new)


def rnn_backward(dnew: Array, cache: RNNCache) -> tuple[Array, Array, Array]:
    """Return da, dh, dW_h."""
    h, W_h, new = cache
    da = dnew * (1 - new * new)
    return da, da @ _T(W_h), _T(h) @ da


def gru_cell(x: Array, h: Array, W_x: Array, W_h: Array, b: Array, b_h: Array) -> Array:
    """Keep the state where the gate z is 1, and replace it by a candidate n where z is 0.

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
    return gru_forward(x @ W_x + b, h, W_h, b_h)[0]


class GRUCache(NamedTuple):
    h: Array
    W_h: Array
    r: Array
    z: Array
    n: Array
    u_n: Array  # h W_hn + b_h


def gru_forward(a: Array, h: Array, W_h: Array, b_h: Array) -> tuple[Array, GRUCache]:
    a_r, a_z, a_n = _blocks(a, 3)  # (..., B, d_h) each
    u_r, u_z, u_n = _blocks(h @ W_h, 3)
    u_n = u_n + b_h[..., None, :]
    r = sigmoid(a_r + u_r)
    z = sigmoid(a_z + u_z)
    n = np.tanh(a_n + r * u_n)
    return (1 - z) * n + z * h, GRUCache(h, W_h, r, z, n, u_n)


def gru_backward(dnew: Array, cache: GRUCache) -> tuple[Array, Array, Array, Array]:
    """Return da, dh, dW_h, db_h."""
    h, W_h, r, z, n, u_n = cache
    da_n = dnew * (1 - z) * (1 - n * n)
    da_z = dnew * (h - n) * z * (1 - z)
    da_r = da_n * u_n * r * (1 - r)
    du_n = da_n * r
    du = np.concatenate([da_r, da_z, du_n], axis=-1)  # of h W_h, (..., B, 3·d_h)
    da = np.concatenate([da_r, da_z, da_n], axis=-1)
    return da, dnew * z + du @ _T(W_h), _T(h) @ du, du_n.sum(axis=-2)


def lstm_cell(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Array) -> tuple[Array, Array]:
    """Add to a memory c, and show a part of it as the state h.

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
    h, c = _blocks(lstm_forward(x @ W_x + b, np.concatenate([h, c], axis=-1), W_h)[0], 2)
    return h, c


class LSTMCache(NamedTuple):
    state: Array  # h and c, side by side
    W_h: Array
    i: Array
    f: Array
    g: Array
    o: Array
    tanh_c: Array


def lstm_forward(a: Array, state: Array, W_h: Array) -> tuple[Array, LSTMCache]:
    h, c = _blocks(state, 2)  # (..., B, d_h) each
    i, f, g, o = _blocks(a + h @ W_h, 4)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    c = f * c + i * g
    tanh_c = np.tanh(c)
    return np.concatenate([o * tanh_c, c], axis=-1), LSTMCache(state, W_h, i, f, g, o, tanh_c)


def lstm_backward(dnew: Array, cache: LSTMCache) -> tuple[Array, Array, Array]:
    """Return da, dstate, dW_h."""
    state, W_h, i, f, g, o, tanh_c = cache
    (h, c), (dh, dc) = _blocks(state, 2), _blocks(dnew, 2)
    dc = dc + dh * o * (1 - tanh_c * tanh_c)
    da_i = dc * g * i * (1 - i)
    da_f = dc * c * f * (1 - f)
    da_g = dc * i * (1 - g * g)
    da_o = dh * tanh_c * o * (1 - o)
    da = np.concatenate([da_i, da_f, da_g, da_o], axis=-1)  # (..., B, 4·d_h)
    return da, np.concatenate([da @ _T(W_h), dc * f], axis=-1), _T(h) @ da


class Cell(NamedTuple):
    """The sizes and the pair of a cell. Its state is h, or for an LSTM h and c side by side, (..., B, parts·d_h)."""

    gates: int
    parts: int
    forward: Callable[..., tuple[Array, Any]]
    backward: Callable[..., tuple[Array, ...]]


CELLS = {
    "rnn": Cell(1, 1, rnn_forward, rnn_backward),
    "gru": Cell(3, 1, gru_forward, gru_backward),
    "lstm": Cell(4, 2, lstm_forward, lstm_backward),
}


def init_params(kind: str, d_in: int, d_h: int, rng: np.random.Generator, dtype: Any = np.float32) -> tuple[Array, ...]:
    """Draw W_x, W_h, b and for a GRU b_h, ready for `unroll_forward`.

    W_x is normal with variance 1/d_in. Each block of W_h is orthogonal: it turns the state without stretching it
    (Saxe et al., 2014). Biases are 0, but 1 for an LSTM's forget gate, so that it begins by remembering (Jozefowicz
    et al., 2015).
    """
    gates = CELLS[as_choice(kind, "kind", CELLS)].gates
    d_in, d_h = as_size(d_in, "d_in"), as_size(d_h, "d_h")
    W_x = rng.normal(size=(d_in, gates * d_h)) / math.sqrt(d_in)
    W_h = np.concatenate([_orthogonal(d_h, rng) for _ in range(gates)], axis=1)  # (d_h, gates·d_h)
    b = np.zeros(gates * d_h)
    if kind == "lstm":
        b[d_h : 2 * d_h] = 1
    params = [W_x, W_h, b, np.zeros(d_h)][: 4 if kind == "gru" else 3]
    return tuple(param.astype(dtype) for param in params)


def check_params(kind: str, d_in: int, d_h: int, params: Sequence[Array], directions: tuple[int, ...] = ()) -> None:
    """Refuse parameters of other shapes than W_x, W_h, b and for a GRU b_h, with `directions` as axes in front."""
    width = CELLS[as_choice(kind, "kind", CELLS)].gates * d_h
    wanted = {"W_x": (d_in, width), "W_h": (d_h, width), "b": (width,)}
    if kind == "gru":
        wanted["b_h"] = (d_h,)
    if len(params) != len(wanted):
        raise ValueError(f"params has {len(params)} arrays; kind={kind!r} needs {len(wanted)}: {', '.join(wanted)}")
    for (name, shape), param in zip(wanted.items(), params, strict=True):
        if param.shape != directions + shape:
            sizes = f"kind={kind!r}, d_in={d_in} and d_h={d_h}"
            raise ValueError(f"{name} has shape {param.shape}; expected {directions + shape} for {sizes}")


def _check_cell(kind: str, x: Array, h: Array, params: Sequence[Array]) -> None:
    if x.ndim != 2 or h.ndim != 2 or len(x) != len(h):
        raise ValueError(f"x has shape {x.shape}, h has shape {h.shape}; expected (B, d_in) and (B, d_h)")
    check_params(kind, x.shape[1], h.shape[1], params)


def _orthogonal(n: int, rng: np.random.Generator) -> Array:
    Q, R = np.linalg.qr(rng.normal(size=(n, n)))
    return Q * np.sign(np.diag(R))  # without the signs, some rotations would be likelier than others


def _blocks(x: Array, n: int) -> list[Array]:
    """Split the columns into n blocks of equal width, as views; np.split takes ten times as long."""
    d = x.shape[-1] // n
    return [x[..., k * d : (k + 1) * d] for k in range(n)]


def _T(x: Array) -> Array:
    return x.swapaxes(-1, -2)
