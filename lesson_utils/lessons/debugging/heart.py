"""Which bugs one small batch finds: models with a bug learn it by heart, and then write it by themselves.

`python -m lesson_utils.lessons.debugging.heart` trains them all again, in some minutes, and writes `heart.json`.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.debugging import broken
from lesson_utils.maths import training
from lesson_utils.maths.checks import Ids

STORED = Path(__file__).with_name("heart.json")
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
    "cache counts calls",
)
STARTS = {"random": 10, "counting": 3}  # of each batch
VOCAB, EARLY = 20, 20
LEARNT = 0.1  # a loss below it
Result = list[float]  # the loss after `EARLY` steps, the last loss, and the share that is written rightly


def random_rows(seed: int) -> Ids:
    """Return a batch whose symbols say nothing of each other, (4, 17)."""
    return np.random.default_rng(seed).integers(VOCAB, size=(4, 17))


def counting_rows() -> Ids:
    """Return a batch whose rows count from 1 to 19 and begin again, each from another number, (4, 17)."""
    return 1 + (np.arange(17) + 5 * np.arange(4)[:, None]) % (VOCAB - 1)


def learn(bug: str, seed: int, rows: Ids) -> Result:
    """Train a small GPT on rows (B, T + 1); then let it write each from four symbols, alone and with its cache."""
    model, batch = broken.patient(bug, VOCAB, seed), (rows[:, :-1], rows[:, 1:])
    losses = training.fit(model, lambda rng: batch, 150, lr=1e-2, progress=False).losses
    rng = np.random.default_rng(0)
    written = [model.generate(row[None, :4], len(row) - 4, rng, temperature=0)[0, 4:] for row in rows]
    return [round(float(x), 4) for x in (losses[EARLY], losses[-1], np.mean(written == rows[:, 4:]))]


@cache
def stored() -> dict[str, dict[str, list[Result]]]:
    """Return, for "random" and "counting" batches and by bug, what came out of each start; "" is a healthy model."""
    contents: dict[str, dict[str, list[Result]]] = json.loads(STORED.read_text(encoding="utf-8"))
    return contents


def learnt(bug: str) -> int:
    """Return from how many starts a model with a bug learns the random batch by heart."""
    return sum(loss < LEARNT for _, loss, _ in stored()["random"][bug])


def written(bug: str, batch: str = "random") -> list[float]:
    """Return what share of the batch it then writes rightly, for each start."""
    return [share for *_, share in stored()[batch][bug]]


def measure() -> None:
    """Train all bugs on both batches, and store what came out."""
    found: dict[str, dict[str, list[Result]]] = {}
    for batch in STARTS:
        found[batch] = {}
        for bug in ("", *BUGS):
            starts = range(STARTS[batch])
            rows = [random_rows(seed) if batch == "random" else counting_rows() for seed in starts]
            results = found[batch][bug] = [learn(bug, seed, rows[seed]) for seed in starts]
            print(f"{batch:9} {bug or 'healthy':34}", *np.median(results, axis=0), flush=True)
    lines = (
        f"{json.dumps(batch)}: {{\n"
        + ",\n".join(f"{json.dumps(bug, ensure_ascii=False)}: {json.dumps(of)}" for bug, of in by_bug.items())
        + "\n}"
        for batch, by_bug in found.items()
    )
    put(STORED, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    measure()
