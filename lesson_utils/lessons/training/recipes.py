"""Further choices of a recipe, tried on the model of `rates`: the schedule, β₂, weight decay, clipping, QK-norm.

`python -m lesson_utils.lessons.training.recipes` measures it again, with what heads cost four trained models,
and writes `recipes.json` beside this file. What is stored already is kept, unless `--anew`.
"""

import itertools
import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.training import experiment, rates
from lesson_utils.lessons.training.rates import SCHEDULES, Choices
from lesson_utils.maths import attention, training
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import heads
from lesson_utils.maths.models.experiments import changed

STORED = Path(__file__).with_name("recipes.json")
STEEP = {"pre": 0.032, "post": 0.016}  # rates at which warm-up decides

# Trained again, and asked about dates with the source of another one: a run that works, and runs that fail.
BLIND = (
    ("pre", "nothing", 0.008),
    ("post", "warm-up", 0.016),
    ("post", "warm-up", 0.032),
    ("pre", "warm-up", 0.032),
    ("pre", "nothing", 0.064),
)
MODELS = 4  # trained as the film is, for pruning


# --- QK-norm ----------------------------------------------------------------------------------------------------------


class NormedCache(NamedTuple):
    """A forward pass with QK-norm, for the backward pass; Q and K have length 1."""

    Q: Array
    K: Array
    V: Array
    weights: Array
    lengths: tuple[Array, Array]  # of the queries and keys before


def _to_length_1(x: Array) -> tuple[Array, Array]:
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6)
    return x / length, length


def _back_to_length(dunit: Array, unit: Array, length: Array) -> Array:
    return (dunit - unit * (dunit * unit).sum(axis=-1, keepdims=True)) / length


def normed_forward(Q: Array, K: Array, V: Array, mask: Any = None, scale: Any = None, bias: Any = None) -> Any:
    """Compute attention with queries and keys of length 1, and scores of at most d_k."""
    (Q, of_Q), (K, of_K) = _to_length_1(Q), _to_length_1(K)
    output, kept = attention.attention_forward(Q, K, V, mask, float(Q.shape[-1]))
    return output, NormedCache(Q, K, V, kept.weights, (of_Q, of_K))


def normed_backward(doutput: Array, cache: NormedCache) -> tuple[Array, Array, Array]:
    """Return dQ, dK, dV of `normed_forward`."""
    Q, K, V, weights, (of_Q, of_K) = cache
    kept = attention.AttentionCache(Q, K, V, weights, float(Q.shape[-1]))
    dQ, dK, dV = attention.attention_backward(doutput, kept)
    return _back_to_length(dQ, Q, of_Q), _back_to_length(dK, K, of_K), dV


def with_qk_norm(norm: str, left_out: str, rate: float, seed: int) -> rates.Run:
    """Train once with QK-norm in all attentions."""
    with changed([(heads, "attention_forward", normed_forward), (heads, "attention_backward", normed_backward)]):
        return rates.run(norm, left_out, rate, seed)


# --- What is measured -------------------------------------------------------------------------------------------------


def key(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts)


def trainings() -> dict[str, Callable[[int], rates.Run]]:
    """List what is trained, each from `rates.STARTS` seeds."""
    found: dict[str, Callable[[int], rates.Run]] = {}

    def add(name: str, norm: str, left_out: str, rate: float, **choices: Any) -> None:
        found[key(name, norm, left_out, rate)] = partial(rates.run, norm, left_out, rate, choices=Choices(**choices))

    for norm, left_out, rate in BLIND:
        add("again", norm, left_out, rate)
    for rate, kind in itertools.product(rates.RATES[3:6], SCHEDULES):
        add(f"schedule {kind}", "pre", "nothing", rate, schedule=kind)
    for (norm, rate), left_out in itertools.product(STEEP.items(), ("nothing", "warm-up")):
        add("beta_2 0.95", norm, left_out, rate, beta_2=0.95)
    for norm in STEEP:
        add("clip 0.01", norm, "nothing", 0.008, clip=0.01)
    for left_out, rate in (("nothing", 0.032), ("warm-up", 0.032)):
        found[key("QK-norm", "pre", left_out, rate)] = partial(with_qk_norm, "pre", left_out, rate)
    add("weight decay 0.1", "pre", "nothing", 0.008, weight_decay=0.1)
    return found


def trained(seed: int, steps: int = 1000) -> Any:
    """Train a model as the film's is, from another start."""
    model = experiment.transformer(seed)
    schedule = partial(training.warmup_linear, peak=8e-3, warmup=steps // 10, total=steps + 1)
    training.fit(model, experiment.batches, steps, schedule=schedule, seed=seed, progress=False)
    return model


@cache
def stored() -> dict[str, Any]:
    """Return what was measured: name → measure → a number for each start."""
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    return contents


def result(name: str, norm: str, left_out: str, rate: float, what: str = "exact") -> list[float]:
    """Return a measure of each start of one training; of what `rates` stores, too, if name is "recipe"."""
    if name == "recipe":
        return [float(x) for x in rates.stored()[rates.key(norm, left_out)][what][rates.RATES.index(rate)]]
    return [float("inf") if x is None else float(x) for x in stored()[key(name, norm, left_out, rate)][what]]


def write(contents: Mapping[str, Any]) -> None:
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(contents[name], separators=(',', ':'))}" for name in contents)
    put(STORED, "{" + lines + "}\n")


def measure(anew: bool = False) -> None:
    """Train all that is not stored, and store what came out after each."""
    contents = {} if anew else dict(stored())
    for name, train in trainings().items():
        if name in contents:
            continue
        runs = [train(seed) for seed in range(rates.STARTS)]
        contents[name] = {
            "exact": [run.exact for run in runs],
            "loss": [run.loss if math.isfinite(run.loss) else None for run in runs],
        }
        if name.startswith("again"):
            contents[name]["blind"] = [run.blind for run in runs]
        print(name, contents[name], flush=True)
        write(contents)
    for seed in range(MODELS):
        name = key("pruning", seed)
        if name not in contents:
            contents[name] = experiment.sums(trained(seed))
            print(name, contents[name], flush=True)
            write(contents)


if __name__ == "__main__":
    measure("--anew" in sys.argv)
