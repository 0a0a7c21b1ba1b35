"""What can be said of an answer that no mistake explains as a whole: of one result, of some cases, of a number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.mistakes.recognise.fault_bank import Known, agree, alike, sketch
from lesson_utils.mistakes.run.sandbox import Outcome, same

if TYPE_CHECKING:
    from lesson_utils.mistakes.recognise.search import Search


@dataclass(frozen=True)
class Diagnosis:
    """What to tell, and the name of the mistake; "" for one that the machine found by itself."""

    message: str
    name: str = ""
    sure: bool = True  # else a remark, to stand behind what was measured


def partly(search: "Search") -> Diagnosis | None:
    """A mistake that does the same in at least half of the cases that are wrong, and shows in none that is right."""
    best: tuple[int, Known] | None = None
    sketches = {i: sketch(search.outcomes[i]) for i in search.wrong if search.outcomes[i].is_telling()}
    for known in search.bank.changes:
        if any(
            right and agree(known.outcome(i), search.outcomes[i]) is not True for i, right in enumerate(search.right)
        ):
            continue
        n = sum(
            1 for i, s in sketches.items() if alike(known.sketch(i), s) and agree(known.outcome(i), search.outcomes[i])
        )
        if n >= 2 and 2 * n >= len(search.wrong) and (best is None or n > best[0]):
            best = n, known
    if best is None:
        return None
    n, known = best
    return Diagnosis(
        f"First: {known.message} That explains {n} of {len(search.wrong)} wrong cases; there is more.", known.name
    )


def is_multiple(search: "Search") -> bool:
    """A number that is always the same multiple of the right one: too much would lead from one to the other."""
    try:
        values = [(float(o.value), float(w.value)) for o, w in zip(search.outcomes, search.bank.wanted, strict=True)]
    except (TypeError, ValueError):  # an error, arrays, several results
        return False
    ratios = [value / wanted for value, wanted in values if wanted]
    return 1 < len(ratios) == len(values) and bool(np.allclose(ratios, ratios[0], rtol=1e-6))


def _part(outcome: Outcome, k: int) -> Outcome:
    results = outcome.results()
    return outcome if outcome.error or k >= len(results) else Outcome(results[k])


def by_result(search: "Search") -> Diagnosis | None:
    """Of several results, a typed mistake in one, whatever is wrong with the others."""
    names = search.bank.exercise.returns
    mine = [o.results() for o in search.outcomes]
    if len(names) < 2 or any(o.error for o in search.outcomes) or {len(m) for m in mine} != {len(names)}:
        return None
    found: dict[str, Known] = {}
    wrong: list[str] = []
    for k, name in enumerate(names):
        got = [Outcome(m[k]) for m in mine]
        bad = [i for i, o in enumerate(got) if not same(o, _part(search.bank.wanted[i], k))]
        if not bad:
            continue
        wrong.append(name)
        fitting = [
            known
            for known in search.bank.changes
            if all(same(_part(known.outcome(i), k), o) for i, o in enumerate(got))
        ]
        if any(got[i].is_telling() for i in bad) and (known := search.closest(fitting)):
            found[name] = known
    if not found:
        return None
    messages = list(dict.fromkeys(f"`{name}`: {known.message}" for name, known in found.items()))
    left = [f"`{name}` is wrong, too." for name in wrong if name not in found]
    return Diagnosis("\n".join([*messages, *left]), "; ".join(dict.fromkeys(k.name for k in found.values())))
