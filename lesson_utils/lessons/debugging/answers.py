"""The check of a diagnosis: which patients are named rightly, and which reading speaks against the part that is named.

No message names the part that is wrong: it says which instrument to look at.
"""

from collections.abc import Mapping
from typing import Any

from lesson_utils.lessons.debugging import casefile
from lesson_utils.mistakes.verdict import CheckResult

PARTS = (
    *("mask", "softmax", "heads", "norm", "positions", "cache"),
    *("targets", "loss", "data", "dropout", "scale", "none"),
)
# More parts than one may be said of these.
ALSO: dict[str, tuple[str, ...]] = {
    "positions start again": ("positions",),
    "": ("scale",),
    "no scale": ("none",),
    "mask after softmax": ("softmax",),
}
NEEDS = {  # a gauge that must be unlike a healthy model's if this part is wrong, and what to say if it is not
    "mask": (
        "ahead",
        "If a mask let queries look ahead, the map would have weight above its diagonal. If it hid weights too late, "
        "the weights of some query would sum to less than 1. Neither is so here.",
    ),
    "softmax": ("sums", "With softmax over another axis, the weights of some query would not sum to 1. Here all do."),
    "heads": (
        "cache",
        "If heads were cut or joined wrongly, an output would depend on how many tokens come after it, and cache "
        "parity would fail. It holds.",
    ),
    "norm": (
        "single",
        "A norm over the batch or over the sequence has nothing to compare a single symbol with, so all single symbols "
        "would come out alike. Here they differ.",
    ),
    "positions": (
        "order",
        "If positions were missing, shuffled symbols would give shuffled outputs. Here order matters.",
    ),
    "cache": ("cache", "With a cache and without, the outputs agree to rounding. So the cache is in order."),
    "targets": (
        "by hand",
        "The loss in training is what you get by hand from the logits. Wrong targets would part the two.",
    ),
    "loss": (
        "by hand",
        "The loss in training is what you get by hand from the logits. A wrong loss would part the two.",
    ),
    "data": (
        "by hand",
        "On a page of the text the loss by hand is the one in training. So it has learnt from the whole text.",
    ),
    "dropout": ("again", "Run twice, it gives the same outputs to the last digit. Nothing in it is drawn at random."),
}
EXPLAINS = {  # gauges that this part can make unlike a healthy model's
    "mask": {"curve", "time", "cache", "ahead", "start"},
    "softmax": {"curve", "time", "cache", "sums", "start"},
    "heads": {"curve", "time", "cache", "start"},
    "norm": {"start", "curve", "time", "rows", "order", "cache", "single", "by hand"},
    "positions": {"curve", "rows", "order", "by hand"},
    "cache": {"cache"},
    "targets": {"start", "curve", "by hand"},
    "loss": {"start", "curve", "by hand"},
    "data": {"curve", "by hand"},
    "dropout": {*casefile.GAUGES} - {"ahead", "single"},
    "scale": {"curve"},
    "none": set(),
}
SEEN = {  # what is seen where a gauge is unlike a healthy model's
    "start": "The loss before training is not what a healthy model starts with.",
    "curve": "The loss in training does not end where a healthy model's does.",
    "by hand": "The loss by hand, from nothing but the logits, is not the loss that training wrote down.",
    "time": "Outputs before the replaced symbol move.",
    "rows": "The same row gives other outputs in company than alone.",
    "order": "With all symbols visible, shuffled symbols give the shuffled outputs: order is lost.",
    "cache": "With a cache the outputs are others than without.",
    "again": "Run twice on the same symbols, it gives two answers.",
    "sums": "The weights of some query do not sum to 1.",
    "single": "Single symbols, each alone, all get the same output.",
    "ahead": "The map has weight above its diagonal.",
}
ORDER = ("again", "rows", "single", "ahead", "sums", "time", "order", "cache", "by hand", "start", "curve")
CONFUSED = {  # what is said, of the part that is really wrong, or of the bug where it is so with this bug only
    "loss, not targets": "The logged loss falls to almost nothing, so the model is sure of something. Of what? Let it "
    "write.",
    "targets, not loss": "With other targets the logged loss could still fall to 0. Here it hardly falls.",
    "data, not targets": "A model that knows its few rows by heart starts where a healthy one does. This one starts "
    "much lower, before it has seen any data.",
    "data, not loss": "A model that knows its few rows by heart logs a loss near 0. This one logs a large loss.",
    "loss, not data": "The loss starts where a healthy model's does, so the formula is in order. Compare how it ends "
    "with what you get by hand on a page of the text.",
    "targets, not data": "The loss starts where a healthy model's does. A model that is asked for the symbol it was "
    "given starts much lower.",
    "mask, not softmax over the queries": "A wrong mask can take weight away, so that the weights of some query sum to "
    "less than 1. No mask adds weight, but here the weights of one query sum to 3.",
    "mask, not positions start again": "Without a cache the map has no weight above its diagonal. Feed a prompt and "
    "then one symbol, with a cache: that symbol's map still has weight on all keys. The mask is in order there, too.",
    "heads, not positions start again": "Look where cache parity begins to fail. The prompt's own outputs agree, and "
    "only the outputs after it differ. With heads that are cut or joined wrongly, the prompt's would differ, too.",
    "scale, not cache": "A missing scale changes outputs in the same way with a cache and without.",
}
HINTS = (
    "Begin with what explains most. Does the same input give the same output? Do other rows matter? Does the future?",
    "A leak in time can come from the mask, the softmax, the heads or the norm. The map tells the first two: weight "
    "above the diagonal, or sums that are not 1. A single symbol alone tells the norm.",
    "If no instrument notices anything but the loss, compute it by hand from the logits, and compare it with the log.",
)


def right(patient: int) -> tuple[str, ...]:
    """Return the parts that may be said of a patient, the best first."""
    bug = casefile.bug_of(patient)
    return casefile.CASES[bug].part, *ALSO.get(bug, ())


def reading(patient: int) -> dict[str, bool]:
    """Return, by gauge, whether it is unlike a healthy model's."""
    return dict(zip(casefile.GAUGES, casefile.alarms(casefile.of(patient)), strict=True))


def against(patient: int, said: str) -> str:
    """Return what speaks against a part that is not the one."""
    truth, read = right(patient)[0], reading(patient)
    for really in (casefile.bug_of(patient), truth):
        if confused := CONFUSED.get(f"{said}, not {really}"):
            return confused
    unexplained = [gauge for gauge in ORDER if read[gauge] and gauge not in EXPLAINS[said]]
    if said in NEEDS and not read[NEEDS[said][0]]:
        return NEEDS[said][1]
    if not unexplained:
        return "The readings fit. Another part fits them as well, and better: look at how the loss starts and ends."
    rest = "A healthy model does not do that." if said in ("none", "scale") else f"Can {_the(said)} do that?"
    return f"{SEEN[unexplained[0]]} {rest}"


def _the(part: str) -> str:
    plural = ("data", "heads", "positions", "targets")
    return "dropout" if part == "dropout" else f"wrong {part}" if part in plural else f"a wrong {part}"


def diagnosis(said: Any) -> CheckResult:
    """Judge a diagnosis: a dictionary from numbers of patients to parts, "" where nothing is known yet."""
    if not isinstance(said, Mapping):
        return CheckResult(False, 'Hand over a dictionary, such as `{1: "mask", 2: ""}`.', None, HINTS)
    problems = [problem for number, part in said.items() if (problem := _problem(number, part))]
    if problems:
        return CheckResult(False, "\n".join(problems), None, HINTS)
    named = {number: part.strip().lower() for number, part in said.items() if part.strip()}
    if not named:
        return CheckResult(None, "Examine a patient, and write the part between the quotation marks.", None, HINTS)
    wrong = {number: part for number, part in named.items() if part not in right(number)}
    lines = [f"Patient {number}, “{part}”: {against(number, part)}" for number, part in wrong.items()]
    good = [str(number) for number in named if number not in wrong]
    open_ = len(said) - len(named)
    verb = "is" if len(good) == 1 else "are"
    head = f"{len(good)} of {len(said)} patients {verb} named rightly{': ' + ', '.join(good) if good else ''}."
    if open_:
        head += f" {open_} {'has' if open_ == 1 else 'have'} no diagnosis yet."
    if all(number in named and number not in wrong for number in casefile.SILENT):
        head += " Of 7 and 8 one is healthy, and nothing here says which: a twin will."
    passed = not wrong and not open_
    return CheckResult(passed, "\n".join([head, *lines]), "; ".join(sorted(set(wrong.values()))) or None, HINTS)


def _problem(number: Any, part: Any) -> str:
    """Return what is wrong with an entry of a diagnosis, or ""."""
    if number not in casefile.PATIENTS:
        return f"There is no patient {number!r}; they are numbered from 1 to {len(casefile.PATIENTS)}."
    if not isinstance(part, str):
        return f"Patient {number}: write the part as text, in quotation marks."
    if part.strip() and part.strip().lower() not in PARTS:
        return f"Patient {number}: “{part}” is not on the list: {', '.join(PARTS)}."
    return ""


ANSWERS = {"diagnosis": diagnosis}
