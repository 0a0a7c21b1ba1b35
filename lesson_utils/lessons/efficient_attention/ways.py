"""Section 2: four ways to the same outputs, which differ in one thing each; and the way back without the weights."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.efficient_attention.bill import as_bytes, as_time, peak_bytes, seconds
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS, KEYS = 64, 128  # queries at a time; keys in a tile


def with_fresh_arrays(Q: Array, K: Array, V: Array) -> Array:
    """Compute attention as one would write it down: each line makes a new array of T × T numbers."""
    scores = Q @ K.T * (1 / math.sqrt(Q.shape[-1]))
    shifted = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(shifted)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V


def in_one_array(Q: Array, K: Array, V: Array, kept: Array) -> Array:
    """Compute the same, all in the one array `kept`, (T_q, T_k), which was there before."""
    scores = np.matmul(Q, K.T, out=kept[: len(Q)])
    scores *= 1 / math.sqrt(Q.shape[-1])
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ V


def some_rows_at_a_time(Q: Array, K: Array, V: Array, kept: Array) -> Array:
    """Compute the same for a few queries after the other: whole rows, so softmax is the usual one."""
    return np.concatenate([in_one_array(Q[n : n + len(kept)], K, V, kept) for n in range(0, len(Q), len(kept))])


def in_tiles(Q: Array, K: Array, V: Array, rows: int = 1024, keys: int = KEYS, kept: Array | None = None) -> Array:
    """Compute the same a tile of keys at a time, by the online softmax: the maximum rises, and old sums shrink.

    With `kept`, (T_q, T_k), each tile's weights are written to their place in it and stay there.
    """
    outputs = []
    for n in range(0, len(Q), rows):
        q = Q[n : n + rows] * (1 / math.sqrt(Q.shape[-1]))
        largest = np.full((len(q), 1), np.finfo(Q.dtype).min, Q.dtype)
        total, output = np.zeros_like(largest), np.zeros((len(q), V.shape[-1]), Q.dtype)
        small = np.empty((len(q), keys), Q.dtype)
        for k in range(0, len(K), keys):
            tile = small[:, : len(K) - k] if kept is None else kept[n : n + rows, k : k + keys]
            np.matmul(q, K[k : k + keys].T, out=tile)
            new = np.maximum(largest, tile.max(axis=-1, keepdims=True))
            shrink = np.exp(largest - new)
            tile -= new
            np.exp(tile, out=tile)
            total = total * shrink + tile.sum(axis=-1, keepdims=True)
            output = output * shrink + tile @ V[k : k + keys]
            largest = new
        outputs.append(output / total)
    return np.concatenate(outputs)


# --- Timed -----------------------------------------------------------------------------------------------------------


class Way(NamedTuple):
    """One of the four, measured."""

    name: str
    bytes: int  # at most
    seconds: float


def measured_ways(Q: Array, K: Array, V: Array, rounds: int = 3) -> list[Way]:
    """Measure the four ways in turns, so that a slower minute of the machine is shared by all."""
    T = len(Q)

    def array(rows: int) -> Array:
        return np.ones((rows, T), Q.dtype)

    large, small = array(T), array(ROWS)
    calls: dict[str, tuple[Callable[[], Array], Callable[[], Array]]] = {
        "fresh arrays": (partial(with_fresh_arrays, Q, K, V),) * 2,
        "one kept array": (lambda: in_one_array(Q, K, V, array(T)), partial(in_one_array, Q, K, V, large)),
        f"{ROWS} rows at a time": (
            lambda: some_rows_at_a_time(Q, K, V, array(ROWS)),
            partial(some_rows_at_a_time, Q, K, V, small),
        ),
        "tiles": (partial(in_tiles, Q, K, V),) * 2,
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (_, call) in calls.items():
            times[name].append(seconds(call, repeats=1))
    return [Way(name, peak_bytes(whole), min(times[name])) for name, (whole, _) in calls.items()]


@plots.still(9.0, 2.9)
def four_ways(figure: "Figure", ways: list[Way]) -> str:
    """Draw the bytes and the seconds of the four ways, one below the other."""
    axes, y = figure.subplots(1, 2, sharey=True), np.arange(len(ways))
    first = ways[0]
    for ax, values, unit in (
        (axes[0], [w.bytes for w in ways], as_bytes),
        (axes[1], [w.seconds for w in ways], as_time),
    ):
        ax.barh(y, values, 0.6, color=[plots.GREY, plots.ORANGE, plots.BLUE, plots.GREEN])
        ax.set(xlim=(0, 1.4 * max(values)), xticks=())
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        for n, value in enumerate(values):
            ax.text(value + 0.02 * max(values), n, f"{unit(value)}, {percent(value / values[0])}", va="center")
    axes[0].set_yticks(y, [w.name for w in ways])
    axes[0].invert_yaxis()
    rows = ways[2]
    axes[0].set_title(f"Bytes: a few rows at a time take {percent(rows.bytes / first.bytes)}")
    axes[1].set_title(f"Time: one kept array takes {percent(ways[1].seconds / first.seconds)}")
    listed = "; ".join(f"{w.name}: {as_bytes(w.bytes)}, {as_time(w.seconds)}" for w in ways)
    return f"Four ways to the same outputs, bytes at most and seconds: {listed}."


def percent(share: float) -> str:
    """100 %, 3 %, 0.8 %."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"
