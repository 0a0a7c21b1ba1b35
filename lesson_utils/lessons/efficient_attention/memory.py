"""Section 5: a matrix as memory; what it holds, and three ways to forget."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.maths import efficient, fast_weights
from lesson_utils.maths.checks import Array, Ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D_K, VALUES, RUNS = 32, 64, 20
ENDS = 8  # pairs at each end of the text that are counted apart
PAIRS = (4, 8, 16, 32, 64, 128, 256)
MAPS = ("none", "elu + 1")
Step = Callable[[Array, Array, Array, float], Array]  # the exercise's: memory, key, value, rate -> memory


class Recall(NamedTuple):
    """Shares of right answers, and one memory, (D_K, VALUES), to look at."""

    oldest: float  # of the first pairs written, up to ENDS
    newest: float  # of the last
    everything: float
    rewritten: float  # of keys that were written twice, the newer value
    memory: Array


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
    return features / np.linalg.norm(features, axis=-1, keepdims=True)


def written(features: Array, values: Ids, decay: float, overwrite: bool, step: Step | None = None) -> Array:
    """Return the memory after all pairs, (RUNS, D_K, VALUES); values are one-hot. `step` writes one pair."""
    S = np.zeros((RUNS, D_K, VALUES), features.dtype)
    one_hot = np.eye(VALUES, dtype=features.dtype)[values]  # (RUNS, pairs, VALUES)
    if not overwrite:  # the same sum, in one product
        ages = decay ** np.arange(features.shape[1] - 1, -1, -1, dtype=features.dtype)
        return (features * ages[:, None]).swapaxes(-1, -2) @ one_hot
    if step is not None:
        for run, (keys, wanted) in enumerate(zip(features, one_hot, strict=True)):
            for k, v in zip(keys, wanted, strict=True):
                S[run] = step(S[run], k, v, 1.0)
        return S
    for t in range(features.shape[1]):
        S = fast_weights.write(S, features[:, t], one_hot[:, t], decay, overwrite)
    return S


def told(features: Array, values: Ids, S: Array) -> Array:
    """Ask with each key, and return whether the value that the memory says most of is right, (RUNS, pairs)."""
    return np.asarray((features @ S).argmax(axis=-1) == values)


@lru_cache(600)
def recall(pairs: int, decay: float = 1.0, overwrite: bool = False, feature_map: str = "none", seed: int = 0) -> Recall:
    """Write pairs, then ask with each key; the answer is the value that the memory says most of."""
    keys, values = draw(pairs, seed)
    features = phi(keys, feature_map)
    S = written(features, values, decay, overwrite)
    right = told(features, values, S)
    few = min(ENDS, pairs)

    again = np.concatenate([features[:, : pairs // 2]] * 2, axis=1)  # each key twice, with two values
    twice = written(again, values, decay, overwrite)
    newer = (again[:, pairs // 2 :] @ twice).argmax(axis=-1) == values[:, pairs // 2 :]
    first, last = float(right[:, :few].mean()), float(right[:, -few:].mean())
    return Recall(first, last, float(right.mean()), float(newer.mean()), S[0])


def softmax_recall(pairs: int, seed: int = 0) -> float:
    """Ask the same of attention that keeps every pair, with sharp scores: the share that it recalls."""
    keys, values = draw(pairs, seed)
    weights = 8.0 * np.sqrt(D_K) * keys @ keys.swapaxes(-1, -2)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    said = weights @ np.eye(VALUES, dtype=keys.dtype)[values]
    return float((said.argmax(axis=-1) == values).mean())


def recall_by(step: Step, pairs: int) -> float:
    """Write pairs with somebody's step of the delta rule, and return the share that is recalled."""
    keys, values = draw(pairs)
    return float(told(keys, values, written(keys, values, 1.0, True, step)).mean())


def recall_table(step: Step) -> str:
    """Right answers by number of pairs, for each way to keep them; `step` is the delta rule's."""
    ways: dict[str, Callable[[int], float]] = {
        "attention, all pairs kept": softmax_recall,
        "a matrix, no feature map": lambda n: recall(n).everything,
        "a matrix, elu + 1": lambda n: recall(n, feature_map="elu + 1").everything,
        "delta rule, no feature map": lambda n: recall_by(step, n),
    }
    lines = [f"{'pairs written':28}" + "".join(f"{n:6}" for n in PAIRS)]
    for name, ask in ways.items():
        lines.append(f"{name:28}" + "".join(f"{ask(n):6.0%}" for n in PAIRS))
    return "\n".join(lines)


@live.lab(
    height=4.3,
    neutral="With 4 pairs every rule recalls nearly all: the question is of 64.",
    pairs=live.Choice("pairs written", PAIRS, PAIRS[0]),
    decay=live.Slider("decay γ", 0.8, 1.0, 1.0, 0.02),
    overwrite=live.Switch("overwrite (delta rule)", False),
    feature_map=live.Choice("feature map", MAPS, "none"),
)
def memory_lab(figure: "Figure") -> live.Update:
    """Show a matrix that is written to, and how much it tells of the old, the new and the corrected pairs."""
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    image = left.imshow(
        np.zeros((D_K, VALUES)), cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-1, vmax=1, aspect="auto"
    )
    left.set(xlabel=f"value ({VALUES})", ylabel=f"entry of the key ({D_K})", xticks=(), yticks=())
    left.spines[:].set_visible(False)
    names = (f"first {ENDS}\nwritten", f"last {ENDS}\nwritten", "all", "keys written\ntwice: newest")
    bars = right.bar(range(4), [1] * 4, 0.62, color=[plots.BLUE] * 3 + [plots.GREEN])
    texts = [right.text(n, 1, "", ha="center", va="bottom") for n in range(4)]
    right.axhline(1 / VALUES, color=plots.GREY, ls=":", lw=1.6)
    right.set(ylim=(0, 1.1), ylabel="right answers")
    right.set_xticks(range(4), names)
    right.set_yticks((0, 0.5, 1), ("0", "50 %", "100 %"))

    def update(pairs: int, decay: float, overwrite: bool, feature_map: str) -> str:
        found = recall(pairs, decay, overwrite, feature_map)
        image.set_data(found.memory / (np.abs(found.memory).max() or 1))
        shares = found.oldest, found.newest, found.everything, found.rewritten
        for n, (bar, text, share) in enumerate(zip(bars, texts, shares, strict=True)):
            bar.set_height(share)
            text.set_position((n, share + 0.01))
            text.set_text(f"{share:.0%}")
        rule = "overwrites" if overwrite else "fades" if decay < 1 else "adds"
        left.set_title(f"It {rule}: {pairs} pairs in {D_K} × {VALUES} numbers")
        right.set_title(f"{found.everything:.0%} of all, {found.rewritten:.0%} of the corrected")
        return (
            f"It tells {found.everything:.0%} of {pairs} pairs: of the oldest {ENDS} {found.oldest:.0%}, of the newest "
            f"{ENDS} {found.newest:.0%}; of keys written twice the newest value for {found.rewritten:.0%}. A memory of "
            f"{D_K} × {VALUES} numbers that {rule}, decay {decay:g}, feature map {feature_map}; {RUNS} runs."
        )

    return update
