"""A trial of the bench: each part runs once, in a small form, to see that it works; `BENCH=trial` asks for it."""

import os


def on() -> bool:
    """Return whether this is a trial."""
    return os.environ.get("BENCH") == "trial"


def steps(full: int) -> int:
    """Return how many steps to train for."""
    return 20 if on() else full
