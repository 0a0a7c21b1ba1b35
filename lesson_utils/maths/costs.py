"""What layers cost: multiplications, memory, weights, and steps that must wait for each other."""

import math
from typing import NamedTuple, SupportsIndex

from lesson_utils.maths.checks import as_heads, as_size


class Cost(NamedTuple):
    """What a layer costs for one sequence, forward, all heads. Matrix products are counted, the rest is not."""

    parts: dict[str, int]  # multiply-adds of the matrix products, by name
    memory: int  # numbers between input and output that are there at once
    parameters: int  # weights
    sequential_steps: int  # that must wait for each other, however many processors there are
    path_length: float  # steps from the first position to the last; ∞ when nothing passes between positions

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
    """Multi-head attention: four projections, O(T d²), and all pairs of positions, O(T² d).

    Both parts are equal at T = 2 · d_model. The number of heads changes the memory (h · T · T_k weights), not the
    multiply-adds.

    Args:
        T: how many queries.
        d_model: the width; d_k = d_v = d_model / h.
        num_heads: h, a divisor of d_model.
        T_k: how many keys. Default: T.

    Raises:
        ValueError: no sizes, or h does not divide d_model.

    Source: Vaswani et al. (2017), sections 3.2.2 and 4, table 1.
    """
    T, d, h, T_k = _sizes(T, d_model, num_heads, T_k)
    parts = {"projections": 2 * (T + T_k) * d * d, "scores": T * T_k * d, "weights · values": T * T_k * d}
    return Cost(parts, 2 * (T + T_k) * d + h * T * T_k, 4 * d * d, 1, 1)


def linear_attention_cost(
    T: SupportsIndex, d_model: SupportsIndex, num_heads: SupportsIndex, T_k: SupportsIndex | None = None
) -> Cost:
    """Linear attention in parallel form: the same projections; then sums over keys, O(T d²/h), in place of pairs.

    Arguments and errors as for `attention_cost`. Instead of h · T · T_k weights, the sums S and z are kept. As a
    recurrence it takes T steps, and keeps only them.

    Source: Katharopoulos et al. (2020), section 3.2.
    """
    T, d, h, T_k = _sizes(T, d_model, num_heads, T_k)
    d_k = d // h
    parts = {"projections": 2 * (T + T_k) * d * d, "keys · values": T_k * d * d_k, "queries · sums": T * d * (d_k + 1)}
    return Cost(parts, 2 * (T + T_k) * d + d * d_k + d, 4 * d * d, 1, 1)


def feed_forward_cost(T: SupportsIndex, d_model: SupportsIndex, d_ff: SupportsIndex) -> Cost:
    """The Transformer's feed-forward layer, two matrices on each position by itself: O(T d d_ff).

    Source: Vaswani et al. (2017), section 3.3.
    """
    T, d, d_ff = as_size(T, "T"), as_size(d_model, "d_model"), as_size(d_ff, "d_ff")
    parts = {"up": T * d * d_ff, "down": T * d_ff * d}
    return Cost(parts, T * d_ff, 2 * d * d_ff, 1, math.inf if T > 1 else 1)


def dense_cost(T: SupportsIndex, d_model: SupportsIndex) -> Cost:
    """One fully connected layer from all T · d_model numbers to as many: O(T² d²), with a weight for each pair of them.

    Unlike the others it fits one length only.
    """
    T, d = as_size(T, "T"), as_size(d_model, "d_model")
    return Cost({"matrix": (T * d) ** 2}, 0, (T * d) ** 2, 1, 1)


def recurrent_cost(T: SupportsIndex, d_model: SupportsIndex, gates: SupportsIndex = 1) -> Cost:
    """A recurrent layer with hidden size d_model: O(T d²), but T steps one after the other.

    Args:
        gates: how many pairs of matrices (input, hidden): 1 for a plain network, 3 for a GRU, 4 for an LSTM.

    Source: Vaswani et al. (2017), section 4, table 1.
    """
    T, d, gates = as_size(T, "T"), as_size(d_model, "d_model"), as_size(gates, "gates")
    parts = {"input": gates * T * d * d, "recurrence": gates * T * d * d}
    return Cost(parts, gates * T * d, 2 * gates * d * d, T, T)


def cache_bytes(
    tokens: SupportsIndex,
    num_layers: SupportsIndex,
    num_kv_heads: SupportsIndex,
    d_head: SupportsIndex,
    bits: SupportsIndex = 16,
    local_layers: SupportsIndex = 0,
    window: SupportsIndex = 0,
) -> int:
    """What a key–value cache takes: two vectors for each layer, head and position that is kept.

    Args:
        tokens: how many positions there are.
        num_layers: how many layers.
        num_kv_heads: heads of keys and values; groups of query heads share one.
        d_head: the width of a key and of a value.
        bits: of each number.
        local_layers: how many of the layers keep the last `window` positions only.
        window: how many those keep.

    Raises:
        ValueError: no sizes, or more local layers than layers.

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


def _sizes(
    T: SupportsIndex, d_model: SupportsIndex, num_heads: SupportsIndex, T_k: SupportsIndex | None
) -> tuple[int, int, int, int]:
    T, d_model = as_size(T, "T"), as_size(d_model, "d_model")
    return T, d_model, as_heads(num_heads, d_model, "d_model"), T if T_k is None else as_size(T_k, "T_k")
