"""Sparse masks: patterns that let each position attend to few others.

As everywhere, masks are boolean and **True means "may attend"**: `window_mask(T, 4) | global_mask(T, [0])` allows what
either mask allows, and `... & causal_mask(T)` hides the future.
"""

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Ids, Mask, as_array, as_ids, as_mask, as_size


def window_mask(T: SupportsIndex, window: SupportsIndex, causal: bool = False) -> Mask:
    """Let each position attend to itself and to `window` neighbours on each side.

    Args:
        T: the length.
        window: the number of positions on each side, 0 or more. With 0 each position attends only to itself.
            (Longformer counts both sides together: its w is 2 · window.)
        causal: attend to the left side only, and to the position itself.

    Returns:
        mask, shape (T, T), True = may attend; entry (i, j) is True when |i − j| ≤ window.

    Source: Beltagy et al. (2020), "Longformer", section 3.1, "sliding window".
    """
    window = as_size(window, "window", minimum=0)
    offset = _offsets(T)
    return (np.abs(offset) <= window) & ((offset >= 0) | (not causal))


def global_mask(T: SupportsIndex, global_tokens: ArrayLike) -> Mask:
    """Let the listed positions attend to every position, and every position attend to them. All else is hidden.

    Args:
        T: the length.
        global_tokens: the positions, whole numbers in 0…T − 1, shape (n,).

    Returns:
        mask, shape (T, T), True = may attend. Mostly combined: `window_mask(T, 2) | global_mask(T, [0])`.

    Raises:
        ValueError: a position does not exist.

    Source: Beltagy et al. (2020), section 3.1, "global attention".
    """
    T = as_size(T, "T", minimum=0)
    tokens = as_ids(global_tokens, "global_tokens", T, ndim=1)
    mask = np.zeros((T, T), dtype=bool)
    mask[tokens, :] = True
    mask[:, tokens] = True
    return mask


def block_mask(T: SupportsIndex, block: SupportsIndex) -> Mask:
    """Cut the sequence into blocks of `block` positions, and let each position attend to its own block.

    Returns:
        mask, shape (T, T), True = may attend. The last block is shorter when `block` does not divide T.

    Source: Qiu et al. (2020), "Blockwise self-attention for long document understanding", section 3.
    """
    block = as_size(block, "block")
    number = np.arange(as_size(T, "T", minimum=0)) // block  # (T,)
    return number[:, None] == number


def strided_mask(T: SupportsIndex, stride: SupportsIndex, causal: bool = False) -> Mask:
    """Let each position attend to itself and to every `stride`-th position from there.

    Returns:
        mask, shape (T, T), True = may attend; entry (i, j) is True when `stride` divides i − j. With
        `window_mask(T, stride − 1)` beside it, two layers reach every position.

    Source: Child et al. (2019), "Generating long sequences with sparse Transformers", section 4.3.
    """
    stride = as_size(stride, "stride")
    offset = _offsets(T)
    return (offset % stride == 0) & ((offset >= 0) | (not causal))


def reach(mask: ArrayLike, layers: SupportsIndex) -> Mask:
    """Return which positions can influence which after some layers: (i, j) is True when a path leads from j to i.

    Args:
        mask: boolean, True = may attend, (T, T), the same in each layer. A residual connection also lets each
            position keep what it has: `mask | np.eye(T, dtype=bool)`.
        layers: the number of layers, 0 or more. After 0 layers each position knows only itself.

    Returns:
        the mask's boolean matrix power, shape (T, T).

    Raises:
        ValueError: the mask is not square or not boolean.
    """
    layers = as_size(layers, "layers", minimum=0)
    mask = as_array(mask, "mask")
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        raise ValueError(f"mask has shape {mask.shape}; expected (T, T), queries and keys being the same positions")
    step, reached = as_mask(mask, mask.shape), np.eye(len(mask), dtype=bool)
    while layers:  # square and multiply: log2(layers) products instead of `layers`
        if layers % 2:
            reached = _product(step, reached)
        step, layers = _product(step, step), layers // 2
    return reached


def _offsets(T: SupportsIndex) -> Ids:
    positions = np.arange(as_size(T, "T", minimum=0))
    return positions[:, None] - positions  # (T, T): i − j


def _product(a: Mask, b: Mask) -> Mask:
    """Return where an edge of `a` and an edge of `b` form a path. Products of float32 arrays are fast."""
    return a.astype(np.float32) @ b.astype(np.float32) > 0
