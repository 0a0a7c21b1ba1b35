"""Which learning rates survive: a small model of 2 + 2 layers, trained with and without each part of the recipe.

`python -m lesson_utils.lessons.training.rates` measures it again: eight rates for each recipe, from as many starts as
`STARTS` says, some seconds each. It writes what the notebook shows, `learning_rates.json` beside this file.
"""

import itertools
import json
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lesson_utils import training
from lesson_utils.lessons.training import experiment

STORED = Path(__file__).with_name("learning_rates.json")
RATES = tuple(5e-4 * 2**n for n in range(8))  # 0.0005 … 0.064
STEPS, WARMUP, BATCH = 300, 60, 32
WINDOW = 10  # steps; a point of a loss curve is the mean over so many
SMOOTHING, CLIP = 0.1, 1.0


PARTS = ("warm-up", "smoothing", "clipping")
LEFT_OUT = ("nothing", *PARTS)
STARTS = {"nothing": 3, "warm-up": 3, "smoothing": 1, "clipping": 1}  # how many seeds, by what is left out
RECIPES = tuple(itertools.product(("pre", "post"), LEFT_OUT))  # where the norm stands, and what is left out


class Run(NamedTuple):
    """How one training ended."""

    exact: float  # share of held-out dates right to the last symbol
    loss: float  # on held-out dates, without smoothing, nats a symbol
    clipped: float  # share of steps whose gradient was longer than `CLIP`, whether it was clipped or not
    losses: list[float]  # in training, a mean for each `WINDOW`; shorter if the loss was no number any more


def run(norm: str, left_out: str, rate: float, seed: int, steps: int = STEPS) -> Run:
    """Train once."""
    warmup, smoothing, clipping = (part != left_out for part in PARTS)
    model = experiment.transformer(seed, num_layers=2, norm=norm, smoothing=SMOOTHING * smoothing)
    kept: list[training.History] = []
    rising = WARMUP * warmup * steps // STEPS
    schedule = partial(training.warmup_linear, peak=rate, warmup=rising, total=steps + 1)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # at a rate that is too high
            training.fit(
                model,
                partial(experiment.batches, batch=BATCH),
                steps,
                schedule=schedule,
                clip=CLIP if clipping else None,
                callback=lambda step, loss, history: kept.append(history) if step == 1 else None,
                seed=seed,
                progress=False,
            )
    except ValueError:  # the loss, or its gradient, is no number any more
        lost = True
    else:
        lost = False
    losses, norms = (np.array(x) for x in (kept[0].losses, kept[0].norms)) if kept else (np.zeros(0), np.zeros(0))
    curve = [round(float(np.mean(losses[i : i + WINDOW])), 3) for i in range(0, len(losses), WINDOW)]
    clipped = round(float((norms > CLIP).mean()), 3) if len(norms) else 1.0
    if lost:
        return Run(0.0, float("inf"), clipped, curve)
    return Run(round(experiment.exact(model), 3), round(model.loss(experiment.dates_of()), 4), clipped, curve)


@cache
def stored() -> dict[str, Any]:
    """What was measured: "pre, without warm-up" -> what -> for each rate (and each seed)."""
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return contents


def key(norm: str, left_out: str) -> str:
    return f"{norm}, without {left_out}"


def write(results: Mapping[tuple[str, float, int], Run]) -> None:
    """Store what was measured, small: all seeds' ends, and the first seed's curves."""
    contents = {}
    for recipe in RECIPES:
        name = key(*recipe)
        found = [[results[name, rate, seed] for seed in range(STARTS[recipe[1]])] for rate in RATES]
        contents[name] = {
            "exact": [[run.exact for run in of] for of in found],
            "loss": [[run.loss if np.isfinite(run.loss) else None for run in of] for of in found],
            "clipped": [[run.clipped for run in of] for of in found],
            "losses": [of[0].losses for of in found],
        }
    text = json.dumps(contents, separators=(",", ":")).replace("}," + '"', "},\n" + '"')
    STORED.write_text(text + "\n", encoding="utf-8")


def measure() -> None:
    """Train all, and store what came out."""
    results = {}
    for recipe, rate in itertools.product(RECIPES, RATES):
        for seed in range(STARTS[recipe[1]]):
            results[key(*recipe), rate, seed] = found = run(*recipe, rate, seed)
            print(f"{key(*recipe):25} rate {rate:.4f}, seed {seed}: {found.exact:.2f} right", flush=True)
    write(results)


if __name__ == "__main__":
    measure()
