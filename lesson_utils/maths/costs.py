"""Costs of attention: multiplications, memory, weights, and the bytes of a cache."""

import math
from typing import NamedTuple, SupportsIndex

from lesson_utils.maths.checks import as_heads, as_size


class Cost(NamedTuple):
    """The cost of attention for one sequence, forward, all heads. Matrix products are counted, the rest is not."""

    parts: dict[str, int]  # multiply-adds of the matrix products, by name
    memory: int  # numbers between input and output that are there at once
    parameters: int  # weights

    @property
    def multiply_adds(self) -> int:
        return sum(self.parts.values())

    @property
    def flops(self) -> int:
        """Floating-point operations: a multiply-add is two."""
        return 2 * self.multiply_adds


def attention_cost(
    T: SupportsIndex, d_model: SupportsIndex, num_heads: SupportsIndex, T_k: SupportsIndex | None = None
) -> Cost:
    """Return the cost of multi-head attention: four projections, O(T d²), and all pairs of positions, O(T² d).

    Both parts are equal at T = 2 · d_model. The number of heads changes the memory (h · T · T_k weights), not the
    multiply-adds.

    Args:
        T: the number of queries.
        d_model: the width; d_k = d_v = d_model / h.
        num_heads: h, a divisor of d_model.
        T_k: the number of keys. Default: T.

    Raises:
        ValueError: an argument is not a positive whole number, or h does not divide d_model.

    Source: Vaswani et al. (2017), sections 3.2.2 and 4, table 1.
    """
    T, d = as_size(T, "T"), as_size(d_model, "d_model")
    h, T_k = as_heads(num_heads, d, "d_model"), T if T_k is None else as_size(T_k, "T_k")
    parts = {"projections": 2 * (T + T_k) * d * d, "scores": T * T_k * d, "weights · values": T * T_k * d}
    return Cost(parts, 2 * (T + T_k) * d + h * T * T_k, 4 * d * d)


def cache_bytes(
    tokens: SupportsIndex,
    num_layers: SupportsIndex,
    num_kv_heads: SupportsIndex,
    d_head: SupportsIndex,
    bits: SupportsIndex = 16,
    local_layers: SupportsIndex = 0,
    window: SupportsIndex = 0,
) -> int:
    """Return the bytes of a key–value cache: two vectors for each layer, head and position that is kept.

    Args:
        tokens: the number of positions.
        num_layers: the number of layers.
        num_kv_heads: heads of keys and values; groups of query heads share one.
        d_head: the width of a key and of a value.
        bits: the size of each number.
        local_layers: how many of the layers keep only the last `window` positions.
        window: how many positions these layers keep.

    Raises:
        ValueError: an argument is not a whole number, is too small, or there are more local layers than layers.

    Source: Pope et al. (2023), "Efficiently scaling Transformer inference", section 2.1; Ainslie et al. (2023), for
    shared heads.
    """
    tokens, layers = as_size(tokens, "tokens", minimum=0), as_size(num_layers, "num_layers")
    local, window = as_size(local_layers, "local_layers", minimum=0), as_size(window, "window", minimum=0)
    if local > layers:
        raise ValueError(f"local_layers={local} is more than num_layers={layers}; expected a part of them")
    positions = (layers - local) * tokens + local * min(tokens, window)
    numbers = 2 * as_size(num_kv_heads, "num_kv_heads") * as_size(d_head, "d_head") * positions
    return math.ceil(numbers * as_size(bits, "bits") / 8)
