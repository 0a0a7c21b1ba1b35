"""A matrix as memory: what it holds, and three ways to forget."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots, tables
from lesson_utils.maths import efficient, fast_weights
from lesson_utils.maths.checks import Array, Ids

D_K, VALUES, RUNS = 32, 64, 20
ENDS = 8  # pairs at each end of the text that are counted apart
PAIRS = (8, 32, 64, 128, 256)
MAPS = ("none", "elu + 1", "elu + 1 − mean", "none + mean")
Step = Callable[[Array, Array, Array, float], Array]  # the exercise's: memory, key, value, rate -> memory
# The mean of elu(x) + 1 over many x of variance 1: the part that all features share.
MEAN = np.float32(efficient.elu_feature_map(np.random.default_rng(0).normal(size=100_000)).mean())


class Recall(NamedTuple):
    """Shares of right answers."""

    oldest: float  # of the first pairs written, up to ENDS
    newest: float  # of the last
    everything: float
    rewritten: float  # of keys that were written twice, the newer value


def draw(pairs: int, seed: int = 0, dtype: type = np.float32, by_chance: bool = False) -> tuple[Array, Ids]:
    """Random keys of length 1, (RUNS, pairs, D_K), and which of VALUES values each has, (RUNS, pairs).

    No value comes twice before each has come once, unless values are drawn `by_chance`.
    """
    rng = np.random.default_rng([seed, pairs])
    keys: Array = rng.normal(size=(RUNS, pairs, D_K)).astype(dtype)
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    if by_chance:
        return keys, rng.integers(VALUES, size=(RUNS, pairs))
    rounds = -(-pairs // VALUES)
    values = [np.concatenate([rng.permutation(VALUES) for _ in range(rounds)])[:pairs] for _ in range(RUNS)]
    return keys, np.stack(values)


def phi(keys: Array, feature_map: str) -> Array:
    """Map keys and queries to features, of length 1 for the delta rule; the map sees entries of variance 1."""
    if feature_map == MAPS[0]:
        return keys
    features = math.sqrt(D_K) * keys
    if feature_map == MAPS[3]:
        features = features + MEAN
    else:
        features = efficient.elu_feature_map(features) - (MEAN if feature_map == MAPS[2] else np.float32(0))
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
    by_chance: bool = False,
) -> Recall:
    """Write pairs, then ask with each key; the answer is the value that the memory says most of."""
    keys, values = draw(pairs, seed, by_chance=by_chance)
    features = phi(keys, feature_map)
    S = written(features, values, decay, overwrite, rate=rate, dense=dense)
    right = told(features, values, S, dense)
    few = min(ENDS, pairs)
    newer = rewritten(features, values, pairs // 2, decay=decay, overwrite=overwrite, rate=rate, dense=dense)
    first, last = float(right[:, :few].mean()), float(right[:, -few:].mean())
    return Recall(first, last, float(right.mean()), newer)


def rewritten(features: Array, values: Ids, keys: int, times: int = 1, dense: bool = False, **rule: Any) -> float:
    """Write an old value under each of some keys, `times` times, then a new one: the share that names the new one."""
    asked = features[:, :keys]
    old, new = values[:, :keys], values[:, keys : 2 * keys]
    again = np.concatenate([asked] * (times + 1), axis=1)
    S = written(again, np.concatenate([old] * times + [new], axis=1), dense=dense, **rule)
    return float(told(asked, new, S, dense).mean())


def softmax_recall(pairs: int, seed: int = 0) -> float:
    """Ask the same of attention that keeps every pair, with sharp scores: the share that it recalls."""
    keys, values = draw(pairs, seed)
    weights = 8.0 * np.sqrt(D_K) * keys @ keys.swapaxes(-1, -2)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    said = weights @ np.eye(VALUES, dtype=keys.dtype)[values]
    return float((said.argmax(axis=-1) == values).mean())


def votes(pairs: int = 64, seed: int = 0) -> tuple[float, float]:
    """With elu + 1 and values drawn by chance: the share of answers that name a most frequent value, and its pairs."""
    keys, values = draw(pairs, seed, by_chance=True)
    features = phi(keys, MAPS[1])
    said = (features @ written(features, values, 1.0, False)).argmax(axis=-1)
    counts = np.stack([np.bincount(of, minlength=VALUES) for of in values])  # (RUNS, VALUES)
    often = counts == counts.max(axis=1, keepdims=True)
    named, there = (float(np.take_along_axis(often, ids, axis=1).mean()) for ids in (said, values))
    return named, there


@plots.still(9.0, 3.2)
def feature_maps(figure: "plots.Figure", pairs: int = 64) -> str:
    """Draw the right answers by feature map, for three kinds of values."""
    kinds: dict[str, dict[str, bool]] = {
        "random vectors, each once": {"dense": True},
        "switches, each once": {},
        "switches, by chance": {"by_chance": True},
    }
    found = {name: [recall(pairs, feature_map=name, **kind).everything for kind in kinds.values()] for name in MAPS}
    ax = figure.add_subplot(ylabel=f"right, of {pairs}", ylim=(0, 1.18))
    for n, (name, shares) in enumerate(found.items()):
        at = np.arange(len(kinds)) + 0.22 * (n - 1.5)
        colour = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.GREY)[n]
        bars = ax.bar(at, shares, 0.2, color=colour, label=name)
        ax.bar_label(bars, [f"{share:.0%}" for share in shares], padding=2, fontsize=10)
    ax.set_xticks(range(len(kinds)), list(kinds))
    ax.set_yticks((0, 0.5, 1), ("0", "half", "all"))
    ax.legend(title="feature map", loc="center left", bbox_to_anchor=(1.01, 0.5))
    without, with_mean = found[MAPS[2]][0], found[MAPS[1]][0]
    ax.set_title(f"elu + 1 recalls {with_mean:.0%} of random vectors, and {without:.0%} without its mean")
    listed = (f"{name}: {', '.join(f'{x:.0%}' for x in shares)}" for name, shares in found.items())
    return f"… Right answers for {', '.join(kinds)}. {'; '.join(listed)}."


def rule_table(step: Step) -> tables.Table:
    """Right answers by number of pairs for each way to write, and of keys written twice; `step` is the delta rule's."""

    keys, values = draw(64)

    def news(**rule: Any) -> list[float]:
        return [rewritten(keys, values, n, times, **rule) for n, times in ((32, 1), (8, 8))]

    def fading(decay: float) -> list[float]:
        return [*(recall(n, decay).everything for n in PAIRS), *news(decay=decay, overwrite=False)]

    def by(rate: float) -> list[float]:
        found = [recall_by(step, n, rate) for n in PAIRS]
        return [*found, *news(decay=1.0, overwrite=True, step=step, rate=rate)]

    rows = {
        "attention, all pairs kept": [*map(softmax_recall, PAIRS), np.nan, np.nan],
        "a sum": fading(1.0),
        "a sum with decay 0.9": fading(0.9),
        "a sum with decay 0.97": fading(0.97),
        "delta rule, rate 1": by(1.0),
        "delta rule, rate 0.2": by(0.2),
    }
    head = ("right answers, by pairs written", *map(str, PAIRS), "32 keys: old, new", "8 keys: 8 × old, new")
    listed = [(name, *(f"{x:.0%}" if x == x else "–" for x in of)) for name, of in rows.items()]  # NaN: not asked
    return tables.table(head, listed)


def recall_by(step: Step, pairs: int, rate: float = 1.0) -> float:
    """Write pairs with somebody's step of the delta rule, and return the share that is recalled."""
    keys, values = draw(pairs)
    return float(told(keys, values, written(keys, values, 1.0, True, step, rate)).mean())
