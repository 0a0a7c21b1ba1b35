"""Twelve patients and a healthy model beside them, trained and examined: what the case file shows, and their weights.

`python -m lesson_utils.lessons.debugging.examined` trains and measures all again, some seconds each, and writes
`examined.json` and `patients.npz` beside this file.
"""

import io
import json
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.debugging import broken
from lesson_utils.maths import tasks, training
from lesson_utils.maths.checks import Array, Ids

STORED, WEIGHTS = (Path(__file__).with_name(name) for name in ("examined.json", "patients.npz"))
STEPS, WINDOW, LENGTH, BATCH, WIDE = 600, 20, 32, 16, 64
T, CHANGED, OTHERS, PROMPT = 12, 6, 3, 6  # of the instruments
BUGS = (  # the patients, from 1; "" is a healthy one
    "no mask",
    "merged without the swap",
    "positions start again",
    "the same batch again",
    "norm over the batch",
    "softmax over the queries",
    "",
    "no scale",
    "softmax twice",
    "targets not shifted",
    "mask after softmax",
    broken.DROPPING,
)
HEALTHY = "healthy"  # to compare with: no patient, and from another start than theirs, so that none is its image
ANOTHER_START = 3
IN_USE = "positions start again"  # right in training: it has the weights of `HEALTHY`, and only its cache is wrong
ALL = (HEALTHY, *BUGS)


class Examined(NamedTuple):
    """The readings of all gauges for one patient."""

    start: float  # loss before training, as the patient's own code computes it
    losses: list[float]  # in training, a mean for each `WINDOW` steps
    by_hand: float  # the loss after training, from nothing but the logits
    again: float  # movement between two runs of the same
    time: list[float]  # movement of each output, the symbol at `CHANGED` replaced
    rows: list[float]  # movement of each output of a row, with others in front of it
    order: list[float]  # distance from being shuffled along
    parity: list[float]  # distance between cached and all at once
    sums: list[float]  # distance of each query's weights from a sum of 1
    single: float  # distance between the outputs of single symbols
    ahead: float  # share of the attention weights on later symbols
    sample: str


@cache
def text() -> tuple[tasks.Vocabulary, Ids]:
    """Return what the patients read, Python's language reference: the vocabulary and the ids."""
    whole = tasks.python_text()
    vocabulary = tasks.text_vocabulary(whole)
    return vocabulary, vocabulary.encode(whole)


def lines() -> Ids:
    """Return lines of the text on which the instruments run, (1 + OTHERS, T)."""
    _, ids = text()
    return ids[3000 : 3000 + (1 + OTHERS) * T].reshape(-1, T)


def page() -> Ids:
    """Return rows of the text, each with the symbol after it, (BATCH, LENGTH + 1), to compute a loss by hand."""
    _, ids = text()
    return ids[20_000 : 20_000 + BATCH * (LENGTH + 1)].reshape(BATCH, -1)


def shuffle() -> Ids:
    """Return the places from which a shuffled line takes its symbols, (T,)."""
    return np.random.default_rng(7).permutation(T)


def start_of(which: str) -> int:
    """Return the seed with which one of `ALL` was trained."""
    return ANOTHER_START if which in (HEALTHY, IN_USE) else 0


def untrained(bug: str, seed: int = 0) -> broken.Patient:
    """Make a patient, or the healthy model beside them, that has not been trained."""
    return broken.patient("" if bug == HEALTHY else bug, len(text()[0]), seed, d_ff=WIDE)


def train(bug: str, seed: int = 0, steps: int = STEPS) -> tuple[broken.Patient, float, list[float]]:
    """Train a patient; return it with the loss at the start, and with those in training."""
    train_ids, _ = tasks.split_text(text()[1])
    model = untrained(bug, seed)
    learner = broken.twin(model) if bug == IN_USE else model
    batches = partial(tasks.text_batches, train_ids, LENGTH, BATCH)
    start = learner.loss(batches(np.random.default_rng(99)))
    drawn = (lambda rng: batches(np.random.default_rng(seed))) if model.repeats else batches
    schedule = partial(training.warmup_linear, peak=6e-3, warmup=steps // 10, total=steps + 1)
    losses = training.fit(learner, drawn, steps, schedule=schedule, seed=seed, progress=False).losses
    put_weights(model, weights_of(learner))
    return model, start, [float(np.mean(losses[i : i + WINDOW])) for i in range(0, steps, WINDOW)]


def examine(bug: str, seed: int = 0, steps: int = STEPS) -> tuple[broken.Patient, Examined]:
    """Train a patient, and measure it with all instruments."""
    model, start, losses = train(bug, seed, steps)
    return model, Examined(start, losses, sample=sample(model), **gauges(model))


def gauges(model: broken.Patient) -> dict[str, Any]:
    """Measure with the instruments that need no training."""
    rows = lines()
    return {
        "by_hand": broken.loss_by_hand(model, page()),
        "again": broken.again(model, rows[0]),
        "time": broken.leak_in_time(model, rows[0], CHANGED).tolist(),
        "rows": broken.leak_across_rows(model, rows[0], rows[1:]).tolist(),
        "order": broken.order(model, rows[0], shuffle()).tolist(),
        "parity": broken.cache_parity(model, rows[0], PROMPT).tolist(),
        "sums": broken.row_sums(model, rows[0]).tolist(),
        "single": broken.single_symbols(model, np.unique(rows[0])[:4]),
        "ahead": broken.looks_ahead(model, rows[0]),
    }


def sample(model: broken.Patient, length: int = 56) -> str:
    """Let the patient go on from "The value"; line ends are shown as ¶."""
    vocabulary, _ = text()
    prompt = vocabulary.encode("The value")[None]
    written = model.generate(prompt, length, np.random.default_rng(3), temperature=0.6)[0]
    return vocabulary.decode(written[written >= tasks.FIRST_SYMBOL]).replace("\n", "¶")


# --- What is stored ---------------------------------------------------------------------------------------------------


def weights_of(model: broken.Patient) -> Array:
    """Return all parameters, one after the other, with three digits."""
    return np.concatenate([param.value.ravel() for param in model.params().values()]).astype(np.float16)


def put_weights(model: broken.Patient, weights: Array) -> None:
    """Put parameters, as `weights_of` returns them, into a model."""
    start = 0
    for param in model.params().values():
        param.value[...] = weights[start : start + param.value.size].reshape(param.value.shape)
        start += param.value.size


@cache
def stored() -> dict[str, Examined]:
    """Return what was measured, by bug; of the model to compare with under `HEALTHY`."""
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return {bug: Examined(**found) for bug, found in contents.items()}


@cache
def _weights() -> dict[str, Array]:
    with np.load(WEIGHTS) as file:
        return dict(file)


def trained(bug: str) -> broken.Patient:
    """Return a patient, or the healthy model beside them, as training left it."""
    model = untrained(bug)
    put_weights(model, _weights()[_key(bug)])
    return model


def _key(which: str) -> str:
    """Return the name under which weights are stored."""
    return HEALTHY if which in (HEALTHY, IN_USE) else f"patient_{BUGS.index(which) + 1}"


def rounded(x: Any) -> Any:
    """Round numbers to three digits, in lists too."""
    if isinstance(x, list):
        return [rounded(item) for item in x]
    return float(f"{x:.3g}") if isinstance(x, float) else x


def measure() -> None:
    """Train and examine all, and store what came out."""
    results, weights = {}, {}
    for bug in ALL:
        model, found = examine(bug, start_of(bug))
        results[bug] = {name: rounded(value) for name, value in found._asdict().items()}
        if bug != IN_USE:
            weights[_key(bug)] = weights_of(model)
        print(f"{bug or 'healthy':26} {found.start:5.2f} {found.losses[-1]:5.2f} {found.by_hand:5.2f}", flush=True)
        worst = (found.again, max(found.time[:CHANGED]), *map(max, found[5:9]), found.single, found.ahead)
        print("   ", *(f"{x:8.1e}" for x in worst), found.sample, flush=True)
    told_lines = (f"{json.dumps(bug)}: {json.dumps(found, ensure_ascii=False)}" for bug, found in results.items())
    put(STORED, "{\n" + ",\n".join(told_lines) + "\n}\n")
    whole = io.BytesIO()
    np.savez_compressed(whole, allow_pickle=False, **weights)
    put(WEIGHTS, whole.getvalue())


if __name__ == "__main__":
    measure()
