"""A matrix as memory: what it holds, and three ways to forget."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lesson_utils.classroom import tables
from lesson_utils.maths import efficient, fast_weights
from lesson_utils.maths.checks import Array, Ids

D_K, VALUES, RUNS = 32, 64, 20
ENDS = 8  # pairs at each end of the text that are counted apart
PAIRS = (4, 8, 16, 32, 64, 128, 256)
MAPS = ("none", "elu + 1", "elu+1 − mean")
Step = Callable[[Array, Array, Array, float], Array]  # the exercise's: memory, key, value, rate -> memory
# The mean of elu(x) + 1 over many x of variance 1: the part that all features share.
MEAN = np.float32(efficient.elu_feature_map(np.random.default_rng(0).normal(size=100_000)).mean())


class Recall(NamedTuple):
    """Shares of right answers, and how alike the keys of one run are, (pairs, pairs), to look at."""

    oldest: float  # of the first pairs written, up to ENDS
    newest: float  # of the last
    everything: float
    rewritten: float  # of keys that were written twice, the newer value
    alike: Array  # products of the features of the first 16 keys


def draw(pairs: int, seed: int = 0, dtype: type = np.float32) -> tuple[Array, Ids]:
    """Random keys of length 1, (RUNS, pairs, D_K), and which of VALUES values each has, (RUNS, pairs)."""
    rng = np.random.default_rng([seed, pairs])
    keys: Array = rng.normal(size=(RUNS, pairs, D_K)).astype(dtype)
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    return keys, rng.integers(VALUES, size=(RUNS, pairs))


def phi(keys: Array, feature_map: str) -> Array:
    """Map keys and queries to features, of length 1 for the delta rule; the map sees entries of variance 1."""
    if feature_map == "none":
        return keys
    features = efficient.elu_feature_map(math.sqrt(D_K) * keys)
    if feature_map == MAPS[2]:
        features = features - MEAN
    return features / np.linalg.norm(features, axis=-1, keepdims=True)


def codes(dense: bool, dtype: type = np.float32) -> Array:
    """Return the vectors that stand for the VALUES values, (VALUES, VALUES): one-hot, or random ones of length 1."""
    if not dense:
        return np.eye(VALUES, dtype=dtype)
    vectors: Array = np.random.default_rng(5).normal(size=(VALUES, VALUES)).astype(dtype)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def written(
    features: Array,
    values: Ids,
    decay: float,
    overwrite: bool,
    step: Step | None = None,
    rate: float = 1.0,
    dense: bool = False,
) -> Array:
    """Return the memory after all pairs, (RUNS, D_K, VALUES). `step` writes one pair."""
    S = np.zeros((RUNS, D_K, VALUES), features.dtype)
    one_hot = codes(dense, features.dtype.type)[values]  # (RUNS, pairs, VALUES)
    if not overwrite:  # the same sum, in one product
        ages = decay ** np.arange(features.shape[1] - 1, -1, -1, dtype=features.dtype)
        return (features * ages[:, None]).swapaxes(-1, -2) @ one_hot
    if step is not None:
        for run, (keys, wanted) in enumerate(zip(features, one_hot, strict=True)):
            for k, v in zip(keys, wanted, strict=True):
                S[run] = step(S[run], k, v, rate)
        return S
    for t in range(features.shape[1]):
        S = fast_weights.write(S, features[:, t], one_hot[:, t], decay, overwrite, rate)
    return S


def told(features: Array, values: Ids, S: Array, dense: bool = False) -> Array:
    """Ask with each key, and return whether the value most like the answer is right, (RUNS, pairs)."""
    return np.asarray((features @ S @ codes(dense, S.dtype.type).T).argmax(axis=-1) == values)


@lru_cache(600)
def recall(
    pairs: int,
    decay: float = 1.0,
    overwrite: bool = False,
    feature_map: str = "none",
    seed: int = 0,
    rate: float = 1.0,
    dense: bool = False,
) -> Recall:
    """Write pairs, then ask with each key; the answer is the value that the memory says most of."""
    keys, values = draw(pairs, seed)
    features = phi(keys, feature_map)
    S = written(features, values, decay, overwrite, rate=rate, dense=dense)
    right = told(features, values, S, dense)
    few = min(ENDS, pairs)

    again = np.concatenate([features[:, : pairs // 2]] * 2, axis=1)  # each key twice, with two values
    twice = written(again, values, decay, overwrite, rate=rate, dense=dense)
    newer = told(again[:, pairs // 2 :], values[:, pairs // 2 :], twice, dense)
    first, last = float(right[:, :few].mean()), float(right[:, -few:].mean())
    unit = draw(16, seed)[0][0]
    unit = phi(unit, feature_map)
    unit = unit / np.linalg.norm(unit, axis=-1, keepdims=True)
    return Recall(first, last, float(right.mean()), float(newer.mean()), unit @ unit.T)


def softmax_recall(pairs: int, seed: int = 0) -> float:
    """Ask the same of attention that keeps every pair, with sharp scores: the share that it recalls."""
    keys, values = draw(pairs, seed)
    weights = 8.0 * np.sqrt(D_K) * keys @ keys.swapaxes(-1, -2)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    said = weights @ np.eye(VALUES, dtype=keys.dtype)[values]
    return float((said.argmax(axis=-1) == values).mean())


def recall_by(step: Step, pairs: int, rate: float = 1.0) -> float:
    """Write pairs with somebody's step of the delta rule, and return the share that is recalled."""
    keys, values = draw(pairs)
    return float(told(keys, values, written(keys, values, 1.0, True, step, rate)).mean())


def recall_table(step: Step) -> tables.Table:
    """Right answers by number of pairs, for each way to keep them; `step` is the delta rule's."""
    ways: dict[str, Callable[[int], float]] = {
        "attention, all pairs kept": softmax_recall,
        "a sum, no feature map": lambda n: recall(n).everything,
        "… with values as dense vectors": lambda n: recall(n, dense=True).everything,
        "a sum, elu + 1": lambda n: recall(n, feature_map=MAPS[1]).everything,
        "… less the features' mean": lambda n: recall(n, feature_map=MAPS[2]).everything,
        "delta rule, rate 1": lambda n: recall_by(step, n),
        "delta rule, rate 0.2": lambda n: recall_by(step, n, 0.2),
    }
    rows = [(name, *map(ask, PAIRS)) for name, ask in ways.items()]
    return tables.table(("pairs written", *map(str, PAIRS)), rows, ".0%")
