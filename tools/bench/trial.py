"""A trial of the bench: each part runs once, in a small form, to see that it works; `BENCH=trial` asks for it."""

import os


def on() -> bool:
    return os.environ.get("BENCH") == "trial"


def steps(full: int) -> int:
    """How many steps to train for."""
    return 20 if on() else full
