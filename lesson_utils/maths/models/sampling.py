"""From logits to a symbol: the distribution that is drawn from, and the draw."""

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids, as_floats, as_number, as_size


def distribution(
    logits: ArrayLike, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """Return the probabilities from which `sample` draws: by temperature first, then the cuts.

    Args:
        logits: (..., V).
        temperature: 0 gives all to the likeliest; 1 is what the model says; more draws more freely.
        top_k: only the k likeliest.
        top_p: only the likeliest that together have at least this probability ("nucleus sampling").

    Returns:
        probabilities, (..., V), float64, in the order of the vocabulary.

    Raises:
        ValueError: logits hold NaN or infinite values, or another argument does not fit.

    Source: Fan et al. (2018) for top-k; Holtzman et al. (2020) for top-p.
    """
    order, ranked = _ranked(logits, temperature, top_k, top_p)
    p = np.zeros_like(ranked)
    np.put_along_axis(p, order, ranked, axis=-1)
    return p


def sample(
    logits: ArrayLike,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Ids:
    """Draw a symbol from each row of logits, as `distribution` says.

    Returns:
        ids, shape (...). At temperature 0 nothing is drawn: the likeliest is taken.
    """
    order, p = _ranked(logits, temperature, top_k, top_p)
    if temperature == 0:
        return order[..., 0]
    totals = np.cumsum(p, axis=-1)
    draw = rng.random((*p.shape[:-1], 1)) * totals[..., -1:]
    rank = (totals <= draw).sum(axis=-1, keepdims=True)  # (..., 1)
    return np.take_along_axis(order, rank, axis=-1)[..., 0]


def _ranked(logits: ArrayLike, temperature: float, top_k: int | None, top_p: float | None) -> tuple[Ids, Array]:
    """Return the symbols, likeliest first, and their probabilities, (..., V) each."""
    (logits,) = as_floats(logits=logits)
    if as_number(temperature, "temperature") < 0:
        raise ValueError(f"temperature={temperature} must be a number from 0 on; try 0.8")
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits has shape {logits.shape}; expected (..., V) with V at least 1")
    top_k = None if top_k is None else as_size(top_k, "top_k")
    if top_p is not None and not 0 < as_number(top_p, "top_p") <= 1:
        raise ValueError(f"top_p={top_p} must be above 0 and at most 1; try 0.9")
    V = logits.shape[-1]
    order = np.argsort(-logits, axis=-1, kind="stable")  # likeliest first
    if temperature == 0:
        return order, np.broadcast_to(np.eye(1, V)[0], order.shape)
    p = ops.softmax(np.take_along_axis(logits.astype(np.float64), order, axis=-1), temperature=temperature)
    p[..., V if top_k is None else top_k :] = 0
    if top_p is not None:
        before = np.cumsum(p, axis=-1) - p  # what the likelier ones have together
        p[before >= top_p * p.sum(axis=-1, keepdims=True)] = 0
    return order, p / p.sum(axis=-1, keepdims=True)
