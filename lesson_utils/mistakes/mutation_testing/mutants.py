"""The mutants that a test is tried on: an exercise's mistakes, those that run and give results which no other mutant gives."""

import ast
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, zip_longest

from lesson_utils.mistakes.exercise import Case, Exercise, compiled, expressions
from lesson_utils.mistakes.recognise.fault_bank import Bank, Fault, bank_of
from lesson_utils.mistakes.recognise.tree_edits import edits
from lesson_utils.mistakes.run.limits import TimeUp, stopped
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quiet

ENOUGH, MOST = 12, 16  # mutants of an exercise
Published = tuple[tuple[tuple[str, ...], str, str], ...]  # names of a mistake, what came of it, the address


@dataclass(frozen=True, eq=False)
class Bug:
    """A wrong version of an exercise's function, and where its results are wrong."""

    fault: Fault
    outcomes: list[Outcome]
    wrong: list[int]  # cases
    seen: str  # where the bug was seen in public

    @property
    def name(self) -> str:
        return self.fault.name or "another slip"

    @property
    def cases(self) -> list[Case]:
        return [self.fault.bank.cases[i] for i in self.wrong]

    @property
    def source(self) -> str:
        exercise = self.fault.bank.exercise
        return f"def {exercise.name}({exercise.takes}):\n{textwrap.indent(self.fault.text, '    ')}"

    @property
    def in_words(self) -> str:
        """The bug in a sentence, where it was seen in public, and a case in which it shows."""
        steps, texts = self.fault.bank.exercise.steps, self.fault.texts
        gone = [_line(steps[step]) or step for step, text in texts.items() if not text.strip()]
        new = [_line(text) for text in texts.values() if text.strip()]
        parts = [f"{verb} {' and '.join(lines)}" for verb, lines in (("has", new), ("leaves out", gone)) if lines]
        what = ", and ".join(parts)
        if "" in new or len(what) > 180:  # the code is too long for a sentence
            what = f"has the bug “{self.name}”"
        return f"{what}{self.seen}. It shows, for instance, on {self.cases[0].label}."

    def is_near(self, other: "Bug") -> bool:
        """Say whether both return the same in most cases in which one of them is wrong."""
        cases = {*self.wrong, *other.wrong}
        return 2 * sum(same(self.outcomes[i], other.outcomes[i]) for i in cases) > len(cases)


def _bug(fault: Fault, seen: str) -> Bug | None:
    """Return None for what does the same everywhere, crashes in most cases, or does not end."""
    wanted = fault.bank.wanted
    try:
        with stopped(1.0, busy=8):
            outcomes = [fault.outcome(i) for i in range(len(wanted))]
    except TimeUp:
        return None
    wrong = [i for i, w in enumerate(wanted) if not same(outcomes[i], w)]
    crashed = [i for i in wrong if outcomes[i].error or len(outcomes[i].results()) != len(wanted[i].results())]
    return Bug(fault, outcomes, wrong, seen) if wrong != crashed and 2 * len(crashed) <= len(wanted) else None


def _by_turns(faults: Sequence[Fault]) -> list[Fault]:
    """Return one mistake of each step, then a second one of each step, and so on."""
    by_step: dict[frozenset[str], list[Fault]] = defaultdict(list)
    for fault in faults:
        by_step[frozenset(fault.replaced)].append(fault)
    return [fault for turn in zip_longest(*by_step.values()) for fault in turn if fault]


def slips(bank: Bank, every: int = 1) -> Iterator[Fault]:
    """Yield the solution with one edit, in each place and of each kind, or `every` second or third of them."""
    statements = [statement for body in bank.trees.values() for statement in body]
    stored = [n.id for n in expressions(statements) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    what = bank.ingredients(tuple(dict.fromkeys((*bank.exercise.parameters, *stored))))
    for step, body in bank.trees.items():
        for edit in islice(chain(edits(body, what), edits(body, what, add=True)), 0, None, every):
            with edit.applied():
                text = "\n".join(map(ast.unparse, body))
            if edit.kind != "arithmetic":  # nobody doubles a term by accident
                yield Fault(bank, "", "", {step: compiled(text)}, {step: text})


@cache
def bugs_of(exercise: Exercise, published: Published = ()) -> tuple[Bug, ...]:
    """Return 12 to 16 mutants of an exercise, no two alike, from every step of the solution; published ones in any case."""
    bank = bank_of(exercise)
    seen = {name: f". Seen: {what} ({where})" for names, what, where in published for name in names}
    chosen: list[Bug] = []

    def choose(faults: Sequence[Fault], most: int, least: float = 0) -> None:
        for fault in _by_turns(faults):
            if len(chosen) < most and fault.name not in {bug.fault.name for bug in chosen if bug.fault.name}:
                bug = _bug(fault, seen.get(fault.name, ""))
                if bug and len(bug.wrong) > least and not any(map(bug.is_near, chosen)):
                    chosen.append(bug)

    with quiet():
        choose([fault for fault in bank.changes if fault.name in seen], MOST)
        choose(bank.changes, MOST, len(bank.cases) / 4)
        choose(bank.changes, ENOUGH)  # that show in few cases
        choose([*slips(bank)] if len(chosen) < ENOUGH else [], ENOUGH)
    return tuple(sorted(chosen, key=lambda bug: [*bank.changes, bug.fault].index(bug.fault)))


def _line(text: str) -> str:
    """Return code without comments, in one line; "" if that is long."""
    joined = " ⏎ ".join(line.split("  #")[0].strip() for line in text.strip().splitlines())
    return f"`{joined}`" if 0 < len(joined) <= 110 else ""
