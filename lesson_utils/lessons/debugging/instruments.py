"""Instruments that find bugs without reading code: they run a model twice, and compare.

Each takes a model whose `forward(ids, past, mask=mask)` returns logits, (B, T, V), and something else.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils.maths.checks import Array, Ids

Forward = Callable[..., tuple[Array, Any]]
ROUNDING = 1e-3  # of logits in float32: what moves less has not moved


def leak_in_time(model: Any, ids: Ids, place: int) -> Array:
    """Measure how far each output moves when the symbol at `place` is replaced, (T,). Before `place`, none may move.

    Args:
        ids: (T,).
    """
    changed = ids.copy()
    around = np.roll(ids, -place)  # the nearest symbol before it comes last
    changed[place] = around[around != ids[place]][-1]
    before, after = (model.forward(row[None])[0][0] for row in (ids, changed))  # (T, V) each
    return np.abs(after - before).max(axis=-1)


def leak_across_rows(model: Any, ids: Ids, others: Ids) -> Array:
    """Measure how far a row's outputs move when it stands behind 1, 2 … other rows, and not alone: (len(others),).

    Args:
        ids: (T,). others: (n, T).
    """
    alone = model.forward(ids[None])[0][0]  # (T, V)
    moved = []
    for n in range(1, len(others) + 1):
        company = np.concatenate([others[:n], ids[None]])
        moved.append(np.abs(model.forward(company)[0][-1] - alone).max())
    return np.array(moved)


def order(model: Any, ids: Ids, shuffles: Ids) -> Array:
    """Measure how far outputs are from being shuffled with their inputs, where all see all: (len(shuffles),).

    Without a mask and without positions attention treats a sentence as a set; then these are 0.

    Args:
        ids: (T,). shuffles: (n, T), permutations of 0 … T − 1.
    """
    everything = np.ones((len(ids), len(ids)), bool)
    straight = model.forward(ids[None], mask=everything)[0][0]  # (T, V)
    moved = [np.abs(model.forward(ids[s][None], mask=everything)[0][0] - straight[s]).max() for s in shuffles]
    return np.array(moved)


def cache_parity(model: Any, ids: Ids, prompt: int) -> Array:
    """Measure how far outputs with a cache are from those without, (T,): `prompt` symbols at once, then one by one.

    Args:
        ids: (T,).
    """
    whole, past = model.forward(ids[None])[0][0], model.new_past()
    steps = [model.forward(ids[None, :prompt], past)[0][0]]
    steps += [model.forward(ids[None, t : t + 1], past)[0][0] for t in range(prompt, len(ids))]
    return np.abs(np.concatenate(steps) - whole).max(axis=-1)


def again(model: Any, ids: Ids) -> float:
    """Measure how far outputs move when nothing is changed, and the model runs once more."""
    first, second = (model.forward(ids[None])[0] for _ in range(2))
    return float(np.abs(second - first).max())


def row_sums(model: Any, ids: Ids) -> Array:
    """Measure how far each query's attention weights are from summing to 1, in the worst head of all layers: (T,)."""
    _, cache = model.forward(ids[None])
    return np.max([np.abs(map_[0].sum(axis=-1) - 1).max(axis=0) for map_ in model.maps(cache)["decoder"]], axis=0)


def looks_ahead(model: Any, ids: Ids) -> float:
    """Return the share of the attention weights that lies on later symbols, over all heads and layers."""
    _, cache = model.forward(ids[None])
    maps = np.stack(model.maps(cache)["decoder"])  # (layers, 1, h, T, T)
    return float(np.triu(maps, 1).sum() / maps.sum())


def single_symbols(model: Any, symbols: Ids) -> float:
    """Measure how far the outputs of symbols, each one alone, are from being all the same. They should not be.

    Args:
        symbols: (n,), different ones.
    """
    outputs = np.stack([model.forward(symbol[None, None])[0][0, 0] for symbol in symbols])  # (n, V)
    return float(np.abs(outputs - outputs[0]).max())


def loss_by_hand(model: Any, rows: Ids) -> float:
    """Return the cross-entropy of the next symbols, in nats, from nothing but the logits.

    Args:
        rows: (B, T + 1).
    """
    logits = model.forward(rows[:, :-1])[0]
    log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return float(-np.take_along_axis(log_p, rows[:, 1:, None], axis=-1).mean())


def gradient(model: Any, batch: Any, rng: np.random.Generator, looks: int = 3, eps: float = 1e-5) -> float:
    """Return the largest relative error of the backward pass, over some numbers of W_Q and W_K, in float64."""
    params = model.params()
    for param in params.values():
        param.grad[...] = 0
    model.loss_and_grad(batch)
    worst = 0.0
    for name, param in params.items():
        if not name.endswith(("W_Q", "W_K")):
            continue
        at = np.unravel_index(np.abs(param.grad).argsort(axis=None)[-looks:], param.grad.shape)
        for place in zip(*at, strict=True):
            value = param.value[place]
            losses = []
            for sign in (1, -1):
                param.value[place] = value + sign * eps
                losses.append(model.loss(batch))
            param.value[place] = value
            slope = (losses[0] - losses[1]) / (2 * eps)
            worst = max(worst, abs(slope - param.grad[place]) / (abs(slope) + abs(param.grad[place]) + 1e-9))
    return float(worst)
