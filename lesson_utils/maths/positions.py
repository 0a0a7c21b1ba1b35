"""Positions: sinusoids that are added, rotations of queries and keys, biases on the scores.

A pair of columns is one hand of a clock: pair i turns by base^(−2i/d) radians a position, from 1 radian downwards.
Sinusoids are where the hands point; moving on by an offset, and the rotary encoding, turn them.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesson_utils.maths.checks import (
    Array,
    as_choice,
    as_float,
    as_floats,
    as_integer,
    as_number,
    as_size,
    check_last_queries,
)

PAIRS = ("adjacent", "halves")


def sinusoidal_encoding(length: SupportsIndex, d_model: SupportsIndex, base: float = 10000.0) -> Array:
    """Return a row for each position, to be added to the embeddings: sines in even columns, cosines in odd ones.

        PE(pos, 2i) = sin(pos / base^(2i/d_model))        PE(pos, 2i + 1) = cos(pos / base^(2i/d_model))

    Args:
        length: the number of positions, from 0 on.
        d_model: the width, even, so that each sine has its cosine.
        base: at least 1; how much longer the longest wave is than the shortest (in the limit of a large d_model).

    Returns:
        PE, shape (length, d_model), float64. Convert it to the dtype of the embeddings before adding.

    Raises:
        ValueError: length is negative, d_model odd, or base below 1.

    Source: Vaswani et al. (2017), section 3.5.
    """
    length = as_size(length, "length", minimum=0)
    angles = np.arange(length)[:, None] * _rates(d_model, base)  # (length, d_model / 2)
    encoding = np.empty((length, 2 * angles.shape[1]))  # (length, d_model)
    encoding[:, 0::2] = np.sin(angles)
    encoding[:, 1::2] = np.cos(angles)
    return encoding


def wavelengths(d_model: SupportsIndex, base: float = 10000.0) -> Array:
    """Return after how many positions each pair of columns repeats: a geometric progression from 2π towards base · 2π.

    Returns:
        2π · base^(2i/d_model) for i = 0 … d_model/2 − 1, shape (d_model / 2,), float64. The last one is
        base^(2/d_model) times shorter than base · 2π.

    Raises:
        ValueError: d_model is odd, or base below 1.

    Source: Vaswani et al. (2017), section 3.5.
    """
    return 2 * math.pi / _rates(d_model, base)


def shift_matrix(offset: SupportsIndex, d_model: SupportsIndex, base: float = 10000.0) -> Array:
    """Return the matrix that moves every encoding on by `offset` positions: PE(pos + offset) = M @ PE(pos).

    By the addition theorems of sine and cosine each pair of columns turns by the angle a = offset / base^(2i/d_model):

        [sin(x + a)]   [ cos a   sin a] [sin x]
        [cos(x + a)] = [−sin a   cos a] [cos x]

    Args:
        offset: any whole number; negative ones move back.

    Returns:
        M, shape (d_model, d_model), float64: these 2 × 2 rotations along the diagonal, zeros elsewhere.

    Raises:
        ValueError: offset is no whole number, d_model is odd, or base below 1.

    Source: Vaswani et al. (2017), section 3.5, "for any fixed offset k, PE_(pos+k) can be represented as a linear
    function of PE_pos".
    """
    angles = as_integer(offset, "offset") * _rates(d_model, base)  # (d_model / 2,)
    even = np.arange(0, 2 * len(angles), 2)
    M = np.zeros((2 * len(angles), 2 * len(angles)))  # (d_model, d_model)
    M[even, even] = M[even + 1, even + 1] = np.cos(angles)
    M[even, even + 1] = np.sin(angles)
    M[even + 1, even] = -np.sin(angles)
    return M


def rotary(
    x: ArrayLike, positions: ArrayLike, base: float = 10000.0, scale: float = 1.0, pairs: str = "adjacent"
) -> Array:
    """Turn each pair of columns by the angle position · scale · base^(−2i/d).

    Queries and keys are turned, values are not. Then q · k depends only on their contents and on the difference of
    their positions. The gradient is the rotation the other way round: dx = rotary(dy, −positions).

    Args:
        x: queries or keys, (..., T, d) with d even.
        positions: numbers, (T,), or (..., T) with leading axes that broadcast to those of `x`. Fractions lie between
            two positions. With a cache, the positions of new queries go on where the cache ends.
        base: at least 1.
        scale: the factor on positions; 0.5 puts twice the length into the range that a model was trained on.
        pairs: which columns are the i-th pair: "adjacent" (2i, 2i + 1), as in the paper, or "halves" (i, i + d/2).

    Returns:
        x turned, same shape and dtype.

    Raises:
        ValueError: d is odd, positions are no finite numbers or do not fit x, base is below 1, scale is not finite, or
            pairs is unknown.

    Source: Su et al. (2021), "RoFormer", section 3.4.2, equation 34; Chen et al. (2023) for the scale; "halves" is
    the order of GPT-NeoX and of Llama as Hugging Face keeps it.
    """
    x = as_float(x, "x", min_ndim=2)
    positions = as_floats(positions=positions)[0].astype(np.float64)
    *leading, T, _ = x.shape
    extra = len(leading) - (positions.ndim - 1)
    fits = positions.ndim >= 1 and extra >= 0 and positions.shape[-1] == T
    if not fits or any(p not in (1, n) for p, n in zip(positions.shape[:-1], leading[extra:], strict=True)):
        raise ValueError(
            f"positions has shape {positions.shape}, x {x.shape}; expected ({T},), one position for each of the T={T} "
            f"rows, or leading axes too that are equal to those of x, or 1"
        )
    scale = as_number(scale, "scale")
    halves = as_choice(pairs, "pairs", PAIRS) == "halves"
    return _turned(x, positions, base, scale, halves)


def _turned(
    x: Array, positions: Array, base: float, scale: float, halves: bool, slower: tuple[float, ...] = ()
) -> Array:
    """Compute `rotary` without its checks."""
    *leading, T, d = x.shape
    turns = _turns(positions.tobytes(), d, base, scale, slower, x.dtype.char)
    if positions.ndim > 1:
        turns = turns.reshape(*positions.shape, d // 2)  # (..., T, d / 2)
    if halves:  # (a_0 … a_n, b_0 … b_n) → (a_0, b_0, a_1, b_1 …)
        x = x.reshape(*leading, T, 2, d // 2).swapaxes(-1, -2).reshape(*leading, T, d)
    if x.strides[-1] != x.itemsize:
        x = x.copy()
    turned = (x.view(turns.dtype) * turns).view(x.dtype)  # (..., T, d)
    return turned.reshape(*leading, T, d // 2, 2).swapaxes(-1, -2).reshape(*leading, T, d) if halves else turned


@lru_cache(maxsize=8)  # all layers of a model turn by the same angles
def _turns(positions: bytes, d: int, base: float, scale: float, slower: tuple[float, ...], dtype: str) -> NDArray[Any]:
    """Return exp(i · angle) for float64 positions and pairs of columns; times this, a pair a + bi is turned."""
    rates = _rates(d, base, "width d") / (np.array(slower) if slower else 1.0)
    angles = np.outer(np.frombuffer(positions) * scale, rates)  # float64: exact far away
    return np.exp(1j * angles).astype(np.result_type(dtype, np.complex64))  # complex64 for float32, else complex128


@dataclass(frozen=True)
class Rotary:
    """The settings with which a layer turns its queries and keys: the arguments of `rotary`.

    Args:
        slower: of each pair, by how much slower it turns; one number a pair. Default: all turn as `base` says.
    """

    base: float = 10000.0
    scale: float = 1.0
    pairs: str = "adjacent"
    slower: tuple[float, ...] = field(default=(), repr=False)  # results are stored under configs as they are written

    def __post_init__(self) -> None:
        as_number(self.scale, "scale")
        as_choice(self.pairs, "pairs", PAIRS)

    def turn(self, x: Array, positions: ArrayLike) -> Array:
        """Turn x by its positions; −positions turn back, which is the gradient.

        Raises:
            ValueError: there is not one position for each row of x, or the width is odd.
        """
        positions = np.asarray(positions, np.float64)
        if positions.shape[-1:] != x.shape[-2:-1]:  # one position would turn all rows alike
            raise ValueError(
                f"positions {positions.shape} does not fit x {x.shape}: one for each of its rows is needed"
            )
        return _turned(x, positions, self.base, self.scale, self.pairs == "halves", self.slower)


def alibi_slopes(num_heads: SupportsIndex) -> Array:
    """Return one slope for each head: the geometric progression that starts at, and multiplies by, 2^(−8/num_heads).

    When num_heads is no power of two: the slopes for the power of two below it, then every other slope of the ones
    for the power above, as in the authors' code.

    Returns:
        slopes, shape (num_heads,), float64, each in 0…1.

    Raises:
        ValueError: num_heads is no whole number of at least 1.

    Source: Press et al. (2022), section 3; for other head counts `get_slopes` in the authors' code.
    """
    num_heads = as_size(num_heads, "num_heads")
    power = 2 ** (num_heads.bit_length() - 1)  # the largest power of two that is at most num_heads
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([slopes, between[: num_heads - power]])


def alibi_bias(num_heads: SupportsIndex, T_q: SupportsIndex, T_k: SupportsIndex | None = None) -> Array:
    """Return −slope · distance, to be added to the scores: the further away a key is, the less it counts.

    With `T_k` > `T_q` the queries are the *last* T_q of the T_k positions, as in `attention.causal_mask`.

    Returns:
        bias, shape (num_heads, T_q, T_k), float64. Convert it to the dtype of the scores before adding. Distances
        count in both directions, so that it serves with a causal mask and without.

    Raises:
        ValueError: num_heads, T_q or T_k is not a whole number or is too small, or T_q > T_k.

    Source: Press et al. (2022), section 3.
    """
    T_q = as_size(T_q, "T_q", minimum=0)
    T_k = T_q if T_k is None else as_size(T_k, "T_k", minimum=0)
    check_last_queries(T_q, T_k)
    distance = np.abs(np.arange(T_k - T_q, T_k)[:, None] - np.arange(T_k))  # (T_q, T_k)
    return alibi_slopes(num_heads)[:, None, None] * -distance  # (h, T_q, T_k)


def _rates(d_model: SupportsIndex, base: float, name: str = "d_model") -> Array:
    """Return the radians by which each pair of columns turns per position: base^(−2i/d_model), shape (d_model / 2,)."""
    width = as_size(d_model, name)
    if width % 2:
        options = " or ".join(str(n) for n in (width - 1, width + 1) if n)
        raise ValueError(f"{name}={width} must be even: columns go in pairs; try {options}")
    if not as_number(base, "base") >= 1:
        raise ValueError(f"base={base} must be a finite number of at least 1; usual is 10000")
    return float(base) ** (-np.arange(0, width, 2) / width)
