"""Sixteen patients, trained and examined: what the case file shows.

`python -m lesson_utils.lessons.debugging.examined` measures all again, some seconds each, and writes `examined.json`
beside this file.
"""

import json
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.debugging import broken, instruments
from lesson_utils.maths import tasks, training
from lesson_utils.maths.checks import Ids

STORED = Path(__file__).with_name("examined.json")
STEPS, WINDOW, LENGTH, BATCH = 600, 20, 32, 16
T, CHANGED, OTHERS, SHUFFLES, PROMPT = 12, 6, 3, 3, 6  # of the instruments
BUGS = (  # the patients, from 1; "" is a healthy one
    "merged without the swap",
    "norm over the batch",
    "softmax twice",
    "mask one too far",
    "cache counts calls",
    "targets not shifted",
    "positions forgotten",
    "softmax over the queries",
    "",
    "table too loud",
    "mask after softmax",
    "positions along the batch",
    "norm over the sequence",
    "no scale",
    "mask inverted",
    "positions start again",
)


class Examined(NamedTuple):
    """The readings of all gauges for one patient."""

    start: float  # loss before training, as the patient's own code computes it
    losses: list[float]  # in training, a mean for each `WINDOW` steps
    time: list[float]  # movement of each output, the symbol at `CHANGED` replaced
    rows: list[float]  # movement of a row behind 1, 2, 3 others
    order: list[float]  # distance from being shuffled along
    parity: list[float]  # distance between cached and all at once
    sample: str


@cache
def text() -> tuple[tasks.Vocabulary, Ids]:
    """Return what the patients read, Python's language reference: the vocabulary and the ids."""
    whole = tasks.python_text()
    vocabulary = tasks.text_vocabulary(whole)
    return vocabulary, vocabulary.encode(whole)


def examine(bug: str, seed: int = 0, steps: int = STEPS) -> Examined:
    """Train a patient, and measure it with all instruments."""
    vocabulary, ids = text()
    train, _ = tasks.split_text(ids)
    model = broken.patient(bug, len(vocabulary), seed)
    batches = partial(tasks.text_batches, train, LENGTH, BATCH)
    start = model.loss(batches(np.random.default_rng(99)))
    schedule = partial(training.warmup_linear, peak=6e-3, warmup=steps // 10, total=steps + 1)
    losses = training.fit(model, batches, steps, schedule=schedule, seed=seed, progress=False).losses
    means = [float(np.mean(losses[i : i + WINDOW])) for i in range(0, steps, WINDOW)]
    time, rows, order, parity = gauges(model)
    return Examined(start, means, time, rows, order, parity, sample(model))


def gauges(model: broken.Patient) -> tuple[list[float], list[float], list[float], list[float]]:
    """Measure with the four instruments that compare two runs, on a line of the text."""
    _, ids = text()
    lines = ids[3000 : 3000 + (1 + OTHERS) * T].reshape(-1, T)
    rng = np.random.default_rng(7)
    shuffles = np.stack([rng.permutation(T) for _ in range(SHUFFLES)])
    found = (
        instruments.leak_in_time(model, lines[0], CHANGED),
        instruments.leak_across_rows(model, lines[0], lines[1:]),
        instruments.order(model, lines[0], shuffles),
        instruments.cache_parity(model, lines[0], PROMPT),
    )
    time, rows, order, parity = (array.tolist() for array in found)
    return time, rows, order, parity


def sample(model: broken.Patient, length: int = 56) -> str:
    """Let the patient go on from "The value"; line ends are shown as ¶."""
    vocabulary, _ = text()
    prompt = vocabulary.encode("The value")[None]
    written = model.generate(prompt, length, np.random.default_rng(3), temperature=0.6)[0]
    return vocabulary.decode(written[written >= tasks.FIRST_SYMBOL]).replace("\n", "¶")


@cache
def stored() -> dict[str, Examined]:
    """Return what was measured, by bug."""
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return {bug: Examined(**found) for bug, found in contents.items()}


def rounded(x: Any) -> Any:
    """Round numbers to three digits, in lists too."""
    if isinstance(x, list):
        return [rounded(item) for item in x]
    return float(f"{x:.3g}") if isinstance(x, float) else x


def measure() -> None:
    """Train and examine all, and store what came out."""
    results = {}
    for bug in BUGS:
        found = examine(bug)
        results[bug] = {name: rounded(value) for name, value in found._asdict().items()}
        worst = " ".join(f"{max(gauge):8.1e}" for gauge in (found.time[:CHANGED], *found[3:6]))
        print(f"{bug or 'healthy':28} {found.start:5.2f} {found.losses[-1]:5.2f} {worst} {found.sample}", flush=True)
    lines = (f"{json.dumps(bug)}: {json.dumps(found, ensure_ascii=False)}" for bug, found in results.items())
    put(STORED, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    measure()
