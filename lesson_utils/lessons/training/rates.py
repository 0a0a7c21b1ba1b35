"""Learning rates that survive: a small model of 2 + 2 layers, trained with and without each part of the recipe.

`python -m lesson_utils.lessons.training.rates` measures it again: eight rates for each recipe, from three starts, some
seconds each; then three of the rates at twice the steps, and at twice the width, from one start. It writes what the
notebook shows, `learning_rates.json` beside this file. Other kernels of OpenBLAS round otherwise, and the same run
ends a little elsewhere, as from another start: pre-norm without warm-up, rate 0.016, seed 1, at 0.634 right where
OPENBLAS_CORETYPE is Haswell, at 0.666 where it is SkylakeX. Half of what is stored comes from each.
"""

import itertools
import json
import math
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.training import experiment
from lesson_utils.maths import training

# --- Learning rates over a training: four schedules, each with warm-up or without -------------------------------------

SCHEDULES = ("constant", "linear", "cosine", "stable, then down")
LAST = 0.2  # the share of all steps in which "stable, then down" falls


def rate_at(kind: str, step: int, peak: float, warmup: int, total: int) -> float:
    """Return the learning rate of a step (from 1): it rises in a line to `peak`, and falls to 0 at `total` or stays."""
    rise = min(step / max(warmup, 1), 1.0)
    done = max(step - warmup, 0) / (total - warmup)  # from 0 to 1
    falls = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
        "stable, then down": min(1.0, (1 - done) / LAST),
    }
    return peak * rise * falls[kind]


# --- One training -----------------------------------------------------------------------------------------------------

STORED = Path(__file__).with_name("learning_rates.json")
RATES = tuple(5e-4 * 2**n for n in range(8))  # 0.0005 … 0.064
STEPS, WARMUP, BATCH, WIDTH = 300, 60, 32, 32
WINDOW = 10  # steps; a point of a loss curve is the mean over so many
SMOOTHING, CLIP = 0.1, 1.0

STARTS = 3  # seeds, for each recipe and rate

PARTS = ("warm-up", "smoothing", "clipping")
LEFT_OUT = ("nothing", *PARTS, "warm-up and clipping")
RECIPES = tuple(itertools.product(("pre", "post"), LEFT_OUT))  # where the norm stands, and what is left out

# What the notebook concludes is tried once more, from one start each: how much larger, and which runs.
LARGER = {"twice the steps": {"steps": 2 * STEPS}, "twice the width": {"width": 2 * WIDTH}}
CHECKED = (
    *itertools.product(("pre", "post"), ("nothing", "warm-up", "clipping", "warm-up and clipping"), RATES[4:7]),
    *itertools.product(("pre", "post"), ("smoothing",), RATES[4:5]),
)


class Run(NamedTuple):
    """The end of one training."""

    exact: float  # share of held-out dates right to the last symbol
    loss: float  # on held-out dates, without smoothing, nats a symbol
    clipped: float  # share of steps whose gradient was longer than `CLIP`, whether it was clipped or not
    losses: list[float]  # in training, a mean for each `WINDOW`; shorter if the loss was no number any more
    blind: float = float("inf")  # on held-out dates, each with the source of another one


class Choices(NamedTuple):
    """The further choices of a recipe; the defaults are those of the notebook's learning rates."""

    schedule: str = "linear"
    beta_2: float = 0.999
    weight_decay: float = 0.0
    clip: float = CLIP


AS_SHOWN = Choices()


def run(
    norm: str,
    left_out: str,
    rate: float,
    seed: int,
    steps: int = STEPS,
    width: int = WIDTH,
    choices: Choices = AS_SHOWN,
) -> Run:
    """Train once."""
    warmup, smoothing, clipping = (part not in left_out for part in PARTS)
    model = experiment.transformer(seed, d_model=width, num_layers=2, norm=norm, smoothing=SMOOTHING * smoothing)
    betas = (0.9, choices.beta_2)
    optimizer = training.Adam(model.params(), betas=betas, weight_decay=choices.weight_decay)
    kept: list[training.History] = []
    rising = WARMUP * warmup * steps // STEPS
    schedule = partial(rate_at, choices.schedule, peak=rate, warmup=rising, total=steps + 1)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # at a rate that is too high
            training.fit(
                model,
                partial(experiment.batches, batch=BATCH),
                steps,
                optimizer=optimizer,
                schedule=schedule,
                clip=choices.clip if clipping else None,
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
    source, target = experiment.dates_of()
    ends = (round(model.loss((given, target)), 4) for given in (source, np.roll(source, 1, axis=0)))
    return Run(round(experiment.exact(model), 3), next(ends), clipped, curve, next(ends))


@cache
def stored() -> dict[str, Any]:
    """Return what was measured: "pre, without warm-up" → measure → for each rate and seed.

    The key "twice the steps" leads to the same names → measure → rate, for those in `CHECKED`.
    """
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return contents


def key(norm: str, left_out: str) -> str:
    return f"{norm}, without {left_out}"


def write(results: Mapping[tuple[str, float, int], Run], larger: Mapping[tuple[str, str, float], Run]) -> None:
    """Store what was measured, small: all seeds' ends, and the first seed's curves; of the larger runs the ends."""
    contents: dict[str, dict[str, Any]] = {}
    for recipe in RECIPES:
        name = key(*recipe)
        found = [[results[name, rate, seed] for seed in range(STARTS)] for rate in RATES]
        contents[name] = {
            "exact": [[run.exact for run in of] for of in found],
            "loss": [[run.loss if np.isfinite(run.loss) else None for run in of] for of in found],
            "clipped": [[run.clipped for run in of] for of in found],
            "losses": [of[0].losses for of in found],
        }
    for (size, name, rate), once in larger.items():
        ends = contents.setdefault(size, {}).setdefault(name, {"exact": {}, "loss": {}})
        ends["exact"][str(rate)] = once.exact
        ends["loss"][str(rate)] = once.loss if np.isfinite(once.loss) else None
    text = json.dumps(contents, separators=(",", ":")).replace("}," + '"', "},\n" + '"')
    put(STORED, text + "\n")


def measure() -> None:
    """Train all, and store what came out."""
    results, larger = {}, {}
    for recipe, rate, seed in itertools.product(RECIPES, RATES, range(STARTS)):
        results[key(*recipe), rate, seed] = found = run(*recipe, rate, seed)
        print(f"{key(*recipe):34} rate {rate:.4f}, seed {seed}: {found.exact:.2f} right", flush=True)
    for (size, more), (norm, left_out, rate) in itertools.product(LARGER.items(), CHECKED):
        larger[size, key(norm, left_out), rate] = found = run(norm, left_out, rate, seed=0, **more)
        print(f"{key(norm, left_out):34} rate {rate:.4f}, {size}: {found.exact:.2f} right", flush=True)
    write(results, larger)


if __name__ == "__main__":
    measure()
