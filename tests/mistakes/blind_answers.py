"""The bank of wrong answers in `blind_answers.txt`, which says how they are written down."""

import re
from dataclasses import dataclass
from pathlib import Path

TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
HEAD = re.compile(r"(?P<exercise>\w+): (?P<name>.*?)(?P<weekly> \(weekly\))?")


@dataclass(frozen=True)
class Blind:
    """An answer, what the message must say of it, what would mislead, and whether only the weekly run tries it."""

    exercise: str
    name: str
    body: str
    says: tuple[str, ...]
    never: tuple[str, ...]
    weekly: bool


def _read(entry):
    head, *lines = entry.rstrip("\n").split("\n")
    exercise, name, weekly = HEAD.fullmatch(head).groups()
    patterns = {"+ ": [], "- ": []}
    while lines[0][:2] in patterns:
        line = lines.pop(0)
        patterns[line[:2]].append(line[2:])
    return Blind(exercise, name, "\n".join(lines), *map(tuple, patterns.values()), bool(weekly))


BLIND = tuple(map(_read, re.split(r"^== ", TEXT, flags=re.MULTILINE)[1:]))
