"""Learning rates over a training: four schedules, each with warm-up or without."""

import math

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
