"""Train the GPTs of notebook 09's five changes: one change after the other, and all but one, three seeds each.

A line is added to lesson_utils/lessons/real_model/changes.jsonl for each run, as it ends; what is there is not run
again, so you can stop it at any time. To run all of them again, delete the file. It takes half an hour of one core.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from lesson_utils.classroom.files import put
from lesson_utils.lessons.real_model import changes
from lesson_utils.lessons.real_model.stored import CHANGES_FILE

RATES = (3e-3, 6e-3, 12e-3, 24e-3)
Settings = dict[str, Any]


def rates() -> Iterator[Settings]:
    """Yield trainings at several learning rates, of the first GPT and of the last."""
    for peak in RATES:
        for chosen in (changes.LADDER[0], changes.ALL):
            yield {"changes": chosen, "seed": 0, "peak": peak}


def seeds() -> Iterator[Settings]:
    """Yield a training of each GPT from each seed."""
    for seed in changes.SEEDS:
        for chosen in (*changes.LADDER, *changes.BACK[:-1]):  # the last of these is on the ladder
            yield {"changes": chosen, "seed": seed}


def longer() -> Iterator[Settings]:
    """Yield trainings of twice as many steps."""
    for chosen in (*changes.LADDER, *changes.BACK[:-1]):
        yield {"changes": chosen, "seed": 0, "steps": 2 * changes.STEPS}


def wider() -> Iterator[Settings]:
    """Yield trainings at twice the width."""
    for chosen in (*changes.LADDER, changes.BACK[0]):
        yield {"changes": chosen, "seed": 0, "width": 2 * changes.WIDTH}


def slower() -> Iterator[Settings]:
    """Yield trainings at twice the width and half the rate: does post-norm fail because of the width, or the rate?"""
    for chosen in (*changes.LADDER[:2], changes.ALL):
        yield {"changes": chosen, "seed": 0, "width": 2 * changes.WIDTH, "peak": changes.PEAK / 2}


PARTS = {"rates": rates, "seeds": seeds, "longer": longer, "wider": wider, "slower": slower}


def run(names: Sequence[str] = ()) -> None:
    """Run what is missing of the named parts; without names, of all."""
    for name in names or PARTS:
        for settings in PARTS[name]():
            full = {"steps": changes.STEPS, "width": changes.WIDTH, "peak": changes.PEAK} | settings
            if any(full.items() <= asdict(known).items() for known in changes.runs()):
                continue
            done = asdict(changes.train(**settings, progress=False))
            before = CHANGES_FILE.read_text(encoding="utf-8") if CHANGES_FILE.exists() else ""
            put(CHANGES_FILE, before + json.dumps(done) + "\n")
            print(name, done, flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
