"""The tasks that notice a bug: broken models, trained on four tasks.

`python -m lesson_utils.lessons.debugging.tried` trains them all again, some seconds each (or those that are named
behind it), and writes `tried.json` beside this file: the share of symbols right in training (each predicted from the
true ones before it), and the share right when the model writes by itself. With the name "ways" it writes `ways.json`:
what a model with wrongly merged heads gets right if it writes in other ways.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom import tables
from lesson_utils.classroom.files import put
from lesson_utils.lessons.debugging import broken
from lesson_utils.lessons.training import experiment
from lesson_utils.maths import layers, models, tasks, training
from lesson_utils.maths.models import transformer

STORED, STORED_WAYS = (Path(__file__).with_name(name) for name in ("tried.json", "ways.json"))
TASKS = ("copy", "reverse", "gather-k", "dates")
STEPS = {"copy": 400, "reverse": 500, "gather-k": 500, "dates": 600}
RATES = {"copy": 6e-3, "reverse": 6e-3, "gather-k": 8e-3, "dates": 8e-3}
COUNTS = "cache counts calls"
BUGS = (
    "merged without the swap",
    "split and merged without the swap",
    "softmax over the queries",
    "no scale",
    "scaled by √d_model",
    "mask one too far",
    "mask inverted",
    "mask after softmax",
    "groups tiled",
    "residual of the normed",
    "norm over the batch",
    "norm over the sequence",
    "positions along the batch",
    "positions forgotten",
    "attends along the batch",
    "positions start again",
    "backward without the row's sum",
    "table too loud",
    COUNTS,
)
ABSENT = {  # bugs that a task's model can't have: an encoder has no causal mask, and writes nothing
    "gather-k": ("mask one too far", "mask inverted", "mask after softmax", "positions start again", COUNTS),
}
MERGED = "merged without the swap"
CLOSELY = ("", MERGED, "split and merged without the swap", "no scale")  # three seeds, and twice the steps
WAYS = ("with a cache", "without a cache", "without, the row filled up")
SYMBOLS, LONG, PLACES, AROUND = 20, 8, 4, 24


def model_of(task: str, bug: str, seed: int) -> Any:
    """Make a model of one layer (encoder and decoder, where there are two) with a bug in all places."""
    sizes: dict[str, Any] = {"num_kv_heads": 2} if bug == "groups tiled" else {}
    if task == "dates":
        model: Any = experiment.transformer(seed, **sizes)
    else:
        symbols, rng = SYMBOLS + tasks.FIRST_SYMBOL, np.random.default_rng(seed)
        sizes |= {"vocab": symbols, "d_model": 32, "num_heads": 4, "num_layers": 1}
        if task == "gather-k":  # the model of notebook 03
            own: Any = {"classes": symbols, "outputs": PLACES, "d_ff": 16, "positions": "learned", "max_length": AROUND}
            model = models.Encoder(models.EncoderConfig(**sizes, **own), rng)
        else:
            model = models.Transformer(models.TransformerConfig(**sizes), rng)
    broken.plant(model, bug)
    return model


def batch_of(task: str, rng: np.random.Generator, batch: int = 32) -> tuple[Any, Any]:
    """Draw source and target, as the model of the task takes them."""
    if task == "dates":
        source, target = experiment.dates_of(held_out=False, n=4000)
        drawn = rng.integers(len(source), size=batch)
        return source[drawn], target[drawn]
    if task == "gather-k":
        return tasks.gather(rng, batch, AROUND, PLACES, SYMBOLS)
    source, target = tasks.reversal(rng, batch, LONG, SYMBOLS)
    return source, tasks.with_ends(source if task == "copy" else target)


def judged(task: str, model: Any, n: int = 200) -> tuple[float, float | None]:
    """Return the shares of symbols right on fresh data: in training, and by itself (None: all is answered at once)."""
    source, target = experiment.dates_of(n=n) if task == "dates" else batch_of(task, np.random.default_rng(99), n)
    if task == "gather-k":
        return float((model.forward(source)[0].argmax(axis=-1) == target).mean()), None
    wanted = target[:, 1:]
    guided = float((model.forward(source, target[:, :-1])[0].argmax(axis=-1) == wanted).mean())
    written = model.decode(source, wanted.shape[1])
    short = wanted.shape[1] - written.shape[1]
    return guided, float((np.pad(written, ((0, 0), (0, short))) == wanted).mean())


@contextmanager
def _caches(kind: type[layers.KeyValueCache]) -> Iterator[None]:
    """Let a Transformer write with caches of another kind."""
    before = transformer.KeyValueCache
    transformer.KeyValueCache = kind  # type: ignore[misc]
    try:
        yield
    finally:
        transformer.KeyValueCache = before  # type: ignore[misc]


def run(task: str, bug: str, seed: int = 0, steps: int | None = None) -> tuple[float, float | None]:
    """Train once, and return what `judged` says."""
    model = fitted(task, bug, seed, steps)
    with _caches(broken.CountsCalls if bug == COUNTS else layers.KeyValueCache):
        guided, alone = judged(task, model)
    return round(guided, 3), None if alone is None else round(alone, 3)


def fitted(task: str, bug: str, seed: int = 0, steps: int | None = None) -> Any:
    """Return a model, trained on a task."""
    steps = steps or STEPS[task]
    model = model_of(task, bug, seed)
    schedule = partial(training.warmup_linear, peak=RATES[task], warmup=steps // 10, total=steps + 1)
    drawn: Callable[..., Any] = partial(batch_of, task)
    training.fit(model, drawn, steps, schedule=schedule, seed=seed, progress=False)
    return model


def written(task: str, model: Any, fill: bool, n: int = 200) -> float:
    """Return the share right if a model writes without a cache: it reads all symbols so far anew for each symbol.

    Args:
        fill: random symbols stand in the places to come, so that the row is always as long as in training.
    """
    source, target = batch_of(task, np.random.default_rng(99), n)
    rng, length = np.random.default_rng(5), target.shape[1] - 1
    row = rng.integers(tasks.FIRST_SYMBOL, tasks.FIRST_SYMBOL + SYMBOLS, size=target.shape)
    row[:, 0] = tasks.BOS
    for t in range(length):
        seen = row[:, :-1] if fill else row[:, : t + 1]
        row[:, t + 1] = model.forward(source, seen)[0][:, t].argmax(axis=-1)
    return float((row[:, 1:] == target[:, 1:]).mean())


def ways() -> tables.Table:
    """List how much a model with wrongly merged heads gets right if it writes in other ways, for three seeds."""
    found: dict[str, list[list[float]]] = json.loads(STORED_WAYS.read_text(encoding="utf-8"))
    rows = []
    for task, runs in found.items():
        rows += [(f"{task}, {name}", *shares) for name, shares in zip(WAYS, zip(*runs, strict=True), strict=True)]
    return tables.table((f"{MERGED}, by itself", "seed 0", "seed 1", "seed 2"), rows)


def measure_ways() -> None:
    """Train models with wrongly merged heads, and store what they get right in each of `WAYS`."""
    found: dict[str, list[list[float]]] = {}
    for task in ("copy", "reverse"):
        models_ = [fitted(task, MERGED, seed) for seed in range(3)]
        found[task] = [
            [round(x, 3) for x in (judged(task, m)[1] or 0.0, written(task, m, False), written(task, m, True))]
            for m in models_
        ]
        print(task, found[task], flush=True)
    put(STORED_WAYS, json.dumps(found) + "\n")


@cache
def tried() -> dict[str, dict[str, list[Any]]]:
    """Return, by bug and task, pairs (in training, by itself): of seed 0, or of seeds 0 to 2 and of twice the steps."""
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return contents


def measure(bugs: Sequence[str] = ("", *BUGS)) -> None:
    """Train these, or all, and store what came out beside what is stored."""
    results: dict[str, dict[str, list[Any]]] = dict(tried()) if STORED.exists() else {}
    for bug in bugs:
        results[bug] = {}
        for task in TASKS:
            seeds = (0, 1, 2) if bug in CLOSELY else (0,)
            found = [run(task, bug, seed) for seed in seeds]
            if bug in CLOSELY:
                found.append(run(task, bug, 0, 2 * STEPS[task]))
            results[bug][task] = found
            print(f"{bug or 'healthy':30} {task:9}", found, flush=True)
        lines = (f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(of)}" for name, of in results.items())
        put(STORED, "{\n" + ",\n".join(lines) + "\n}\n")  # as far as it has come


if __name__ == "__main__":
    if sys.argv[1:] == ["ways"]:
        measure_ways()
    else:
        measure(sys.argv[1:] or ("", *BUGS))
