"""The case file: patients without names, with their gauges; and what each of them has."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np

from lesson_utils.lessons.debugging import examined
from lesson_utils.lessons.debugging.broken import ROUNDING
from lesson_utils.mistakes.verdict import details

PATIENTS = tuple(range(1, len(examined.BUGS) + 1))
CORE, SILENT = 8, (7, 8)  # so many patients come first; of the last two, section 4 tells which is well
HEALTHY = examined.HEALTHY  # beside the patients: what there is to compare with
GAUGES = (  # in the order of `alarms`
    *("start", "curve", "time", "rows", "order", "cache"),
    *("by hand", "again", "sums", "single", "ahead"),
)


def bug_of(patient: int) -> str:
    """Return what a patient has, by number.

    Raises:
        ValueError: there is no such patient.
    """
    if patient not in PATIENTS:
        raise ValueError(f"patient={patient} is not in the file; choose 1 to {len(PATIENTS)}")
    return examined.BUGS[patient - 1]


def of(patient: int) -> examined.Examined:
    """Return what was measured about a patient, by number."""
    return examined.stored()[bug_of(patient)]


def alarms(found: examined.Examined) -> tuple[bool, ...]:
    """Tell which gauges are out of the healthy range, in the order of `GAUGES`."""
    right = examined.stored()[HEALTHY]
    end, right_end = (float(np.mean(of.losses[-3:])) for of in (found, right))
    return (
        abs(found.start - right.start) > 0.5,
        abs(end - right_end) > 0.15 * right_end,
        max(found.time[: examined.CHANGED]) > ROUNDING,
        max(found.rows) > ROUNDING,
        max(found.order) < ROUNDING,
        max(found.parity) > ROUNDING,
        abs(found.by_hand - end) > 0.3,
        found.again > ROUNDING,
        max(found.sums) > ROUNDING,
        found.single < ROUNDING,
        found.ahead > ROUNDING,
    )


# --- Diagnoses --------------------------------------------------------------------------------------------------------

GITHUB = "https://github.com/"


class Case(NamedTuple):
    """A bug, in words and as the line that does it."""

    part: str
    line: str  # as it stands
    right: str  # as it should
    sign: str  # what gives it away
    wild: str  # what happened
    link: str


CASES = {
    "no mask": Case(
        "mask",
        "softmax(scores)",
        "softmax(where(causal, scores, -inf))",
        "The map has weight above its diagonal, earlier outputs move, and the loss is far below what text allows. "
        "When it writes by itself, what it relied on is not there yet.",
        "Four models of a widely used library saw the future from one version on: “CLM training loss collapses”.",
        "huggingface/transformers/issues/48745",
    ),
    "merged without the swap": Case(
        "heads",
        "heads.reshape(B, T, h * d_k)",
        "heads.swapaxes(1, 2).reshape(B, T, h * d_k)",
        "Pieces of later tokens land in earlier outputs: a leak in time. The map is in order, because the mistake "
        "comes after it. A single token is merged rightly, so a run with a cache and a run without it differ.",
        "In a repository for teaching. Its training test had passed: “the copy task is too easy”.",
        "jsbaan/transformer-from-scratch/pull/6",
    ),
    "positions start again": Case(
        "cache",
        "x + positions[:T]",
        "x + positions[past : past + T]",
        "Trained all at once, it is right. With a cache each new symbol is told that it is the first.",
        "GPT-2 in a library for Apple's chips: positions always began at zero, whatever the cache held.",
        "ml-explore/mlx-lm/pull/93",
    ),
    "the same batch again": Case(
        "data",
        "rng = np.random.default_rng(0)  # in each step",
        "rng = np.random.default_rng(0)  # once",
        "The code of the model is right, and the loss falls to almost 0: it knows 16 rows by heart. On a page of the "
        "text the loss by hand is large.",
        "Workers that load data inherit one seed: the same random numbers in each of them, and in each epoch.",
        "pytorch/pytorch/issues/5059",
    ),
    "norm over the batch": Case(
        "norm",
        "x.mean(axis=0), x.var(axis=0)",
        "x.mean(axis=-1), x.var(axis=-1)",
        "A row depends on its neighbours. Alone it has variance 0, and nothing is left of its symbols: so the order "
        "test reads 0, and all single symbols come out alike.",
        "A layer norm with `reduction_indices=0`, “as they would be for batch normalization”.",
        "GokuMohandas/fast-weights/issues/9",
    ),
    "softmax over the queries": Case(
        "softmax",
        "softmax(scores, axis=-2)",
        "softmax(scores, axis=-1)",
        "The weights of a query do not sum to 1; those of a key do. A later query takes weight from an earlier one: "
        "a leak in time, and a loss that is far too good.",
        "In a much-read collection of annotated papers. One comparison of its images found no difference.",
        "labmlai/annotated_deep_learning_paper_implementations/issues/146",
    ),
    "": Case("none", "–", "–", "Nothing is wrong with this one.", "Rarely.", ""),
    "no scale": Case(
        "scale",
        "Q @ K.T",
        "Q @ K.T / sqrt(d_k)",
        "No gauge notices it: with d_k = 8 the model learns nearly as well. A twin of right code with the same weights "
        "does (section 4). Notebook 02 shows what a missing scale does with wider heads.",
        "A repository for teaching; its authors suspect it of the peaks in their losses.",
        "PAIR-code/tiny-transformers/issues/71",
    ),
    "softmax twice": Case(
        "loss",
        "cross_entropy(softmax(logits), targets)",
        "cross_entropy(logits, targets)",
        "Nothing leaks. The loss begins at ln V and hardly falls: of probabilities, even perfect ones, it cannot come "
        "below ln(e + V − 1) − 1, here 3.68. By hand the loss of its logits is another number.",
        "“We didn't realize that CrossEntropyLoss() itself implements a softmax.”",
        "bowang-lab/Transformer-GCN-QA/pull/32",
    ),
    "targets not shifted": Case(
        "targets",
        "loss(ids, targets=ids)",
        "loss(ids[:, :-1], targets=ids[:, 1:])",
        "The loss begins too low, ends at 0, and nothing leaks: the model is asked for the symbol that it was given. "
        "So it repeats the last one. By hand, for the next symbol, the loss is large.",
        "“We are training them to predict token N, given tokens 0–N inclusive!”",
        "Project-MONAI/GenerativeModels/issues/314",
    ),
    "mask after softmax": Case(
        "mask",
        "softmax(scores) * mask",
        "softmax(where(mask, scores, -inf))",
        "The weights of later symbols are 0, but softmax has divided by their sum: enough for a leak that training "
        "finds.",
        "In a library of image models: “The mask should be applied before the softmax.”",
        "huggingface/pytorch-image-models/pull/2236",
    ),
    "dropout left on": Case(
        "dropout",
        "dropout(x, rate)",
        "dropout(x, rate if training else 0)",
        "The same input gives two outputs. Every instrument that compares two runs notices, and means something else "
        "by it: so ask this first.",
        "In nanoGPT. Its author: “Whoa hold on this is an actual bug”.",
        "karpathy/nanoGPT/pull/240",
    ),
}


def diagnosis(patient: int) -> list[str]:
    """Return the name of what a patient has, with its part, and the lines that explain it."""
    of(patient)
    name = examined.BUGS[patient - 1]
    case = CASES[name]
    lines = [f"{name or 'healthy'} (part: {case.part})"]
    if name:
        lines += [f"   as it stands   {case.line}", f"   as it should   {case.right}"]
    lines.append(case.sign)
    if case.link:
        lines += [f"Seen in public: {case.wild}", f"   {GITHUB}{case.link}"]
    return lines


def _as_html(line: str) -> str:
    """Return a line of a diagnosis for a page: an address can be clicked, and code is as wide as it was written."""
    text = line.strip()
    if text.startswith(GITHUB):
        return f'<p style="margin:2px 0"><a href="{escape(text)}" target="_blank">{escape(text)}</a></p>'
    return f'<pre style="margin:2px 0">{escape(line)}</pre>' if line != text else f"<p>{escape(text)}</p>"


@dataclass(frozen=True)
class Diagnoses:
    """Diagnoses of patients. On a page, each is closed until it is opened, so that nothing is told unasked."""

    patients: tuple[int, ...]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        page, plain = [], []
        for patient in self.patients:
            lines = diagnosis(patient)
            page.append(details(f"Patient {patient}", "".join(map(_as_html, lines))))
            plain.append("\n".join([f"Patient {patient}: {lines[0]}", *lines[1:]]))
        return {"text/html": "".join(page), "text/plain": "\n\n".join(plain)}


def reveal(diagnosis: Mapping[int, str], closed: Collection[int] = ()) -> Diagnoses | None:
    """Return the cases of the patients that have a diagnosis, each closed until it is opened.

    Args:
        diagnosis: parts by number of the patient; "" where there is none yet.
        closed: patients whose cases can't be opened yet, whatever is said of them.

    Raises:
        ValueError: there is no such patient.
    """
    for patient in diagnosis:
        of(patient)
    named = tuple(patient for patient, part in diagnosis.items() if part)
    if len(named) < len(diagnosis):
        print(f"{len(diagnosis) - len(named)} patients have no diagnosis yet. Their cases stay closed.")
    if kept := [str(patient) for patient in named if patient in closed]:
        print(f"Not to be opened yet: {' and '.join(kept)}. Section 4 tells who is well.")
    opened = tuple(patient for patient in named if patient not in closed)
    return Diagnoses(opened) if opened else None
