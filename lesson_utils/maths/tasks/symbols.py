"""Tasks of symbols: saying a sequence backwards, and gathering from several places at once."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from lesson_utils.maths.checks import Ids, as_integer, as_size
from lesson_utils.maths.tasks.vocabulary import FIRST_SYMBOL, Pair


def reversal(rng: np.random.Generator, batch: int, length: int, num_symbols: int = 26) -> Pair:
    """Draw sequences to be said backwards. The first output needs the last input, so nothing may be forgotten.

    Returns:
        source and target, each (B, T), without begin and end (see `with_ends`).
    """
    source = _symbols(rng, (as_size(batch, "batch"), as_size(length, "length")), num_symbols)
    return source, np.ascontiguousarray(source[:, ::-1])


def reversal_batches(
    batch: int = 64, shortest: int = 3, longest: int = 20, num_symbols: int = 26
) -> Callable[[np.random.Generator], Pair]:
    """Return a function that draws batches of `reversal`, each of one length from `shortest` … `longest`.

    It is meant for `training.fit`. A batch of one length needs no padding.
    """
    shortest, longest = as_size(shortest, "shortest"), as_size(longest, "longest")
    if shortest > longest:
        raise ValueError(f"shortest={shortest} is larger than longest={longest}")
    return lambda rng: reversal(rng, batch, int(rng.integers(shortest, longest + 1)), num_symbols)


def scattered_offsets(T: int, k: int) -> tuple[int, ...]:
    """Return k different offsets in 0…T − 1, neither neighbours nor evenly spread in the circle; always the same."""
    T, k = as_size(T, "T"), as_size(k, "k")
    if k > T:
        raise ValueError(f"k={k} is more than T={T}, the number of different offsets; try k={T}")
    step = next(n for n in range(round(0.38 * T) or 1, T + 1) if math.gcd(n, T) == 1)
    return tuple((1 + i * step) % T for i in range(k))


def gather(
    rng: np.random.Generator,
    batch: int,
    T: int = 24,
    k: int = 4,
    num_symbols: int = 20,
    offsets: Sequence[int] | None = None,
) -> Pair:
    """Draw sequences in which every position reports the symbols at k fixed places, counted from itself in a circle.

    One head computes one weighted average, from which it is hard to tell what came from where.

    Args:
        offsets: k offsets; position t reports position (t + offset) mod T. Default: `scattered_offsets(T, k)`.

    Returns:
        source (B, T) and target (B, T, k).

    Raises:
        ValueError: a size is not positive, or offsets are not k different places.
    """
    T, k = as_size(T, "T"), as_size(k, "k")
    places = np.array(scattered_offsets(T, k) if offsets is None else [as_integer(o, "offset") for o in offsets]) % T
    if len(places) != k or len(set(places.tolist())) != k:
        raise ValueError(f"offsets={offsets} must be k={k} different places on a circle of T={T}")
    source = _symbols(rng, (as_size(batch, "batch"), T), num_symbols)
    return source, source[:, (np.arange(T)[:, None] + places) % T]  # (B, T), (B, T, k)


def _symbols(rng: np.random.Generator, shape: tuple[int, int], num_symbols: int) -> Ids:
    return rng.integers(FIRST_SYMBOL, FIRST_SYMBOL + as_size(num_symbols, "num_symbols"), size=shape)
