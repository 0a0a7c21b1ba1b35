"""The cost of each ablation of notebook 08: a small Transformer trained with a part of its recipe left out.

For comparison: Stanford's CS336 (2025, assignment 1, section 7.3) budgets one H100 hour for each of its ablations.
"""

import time

from lesson_utils.lessons.training import rates
from tools.bench import trial

RATE = rates.RATES[4]


def run() -> None:
    """Print the seconds of each ablation, and of all."""
    steps = trial.steps(rates.STEPS)
    print(f"  {steps} steps at a learning rate of {RATE}, one start, held-out dates judged")
    total = 0.0
    for norm, left_out in rates.RECIPES:
        started = time.thread_time()
        found = rates.run(norm, left_out, RATE, seed=0, steps=steps)
        seconds = time.thread_time() - started
        total += seconds
        name = f"{norm}-norm, " + ("whole recipe" if left_out == "nothing" else f"without {left_out}")
        print(f"    {name:40} {seconds:6.1f} s on one core, {found.exact:.2f} right", flush=True)
    print(
        f"    all {len(rates.RECIPES)} of them {total:.0f} s; the course that asks for one H100 hour each: 3,600 s each"
    )
