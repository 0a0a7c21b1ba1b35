"""The case file: patients without names, with their gauges; and what each of them has."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import tables
from lesson_utils.lessons.debugging import examined
from lesson_utils.lessons.debugging.broken import ROUNDING
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.verdict import details

PATIENTS = tuple(range(1, len(examined.BUGS) + 1))
CORE = 10  # so many patients come first; the others are for those who want more
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


def gauges() -> Array:
    """Return the alarms of all patients by the first six gauges, (20, 6) booleans, for `check.triage`."""
    return np.array([alarms(of(patient))[:6] for patient in PATIENTS])


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
    "softmax twice": Case(
        "loss",
        "cross_entropy(softmax(logits), targets)",
        "cross_entropy(logits, targets)",
        "Nothing leaks. The loss begins at ln V and hardly falls: of probabilities, even perfect ones, it cannot come "
        "below ln(e + V − 1) − 1, here 3.68. By hand the loss of its logits is another number.",
        "“We didn't realize that CrossEntropyLoss() itself implements a softmax.”",
        "bowang-lab/Transformer-GCN-QA/pull/32",
    ),
    "no mask": Case(
        "mask",
        "softmax(scores)",
        "softmax(where(causal, scores, -inf))",
        "The map has weight above its diagonal, earlier outputs move, and the loss is far below what text allows. "
        "When it writes by itself, what it relied on is not there yet.",
        "Four models of a widely used library saw the future from one version on: “CLM training loss collapses”.",
        "huggingface/transformers/issues/48745",
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
    "targets not shifted": Case(
        "targets",
        "loss(ids, targets=ids)",
        "loss(ids[:, :-1], targets=ids[:, 1:])",
        "The loss begins too low, ends at 0, and nothing leaks: the model is asked for the symbol that it was given. "
        "So it repeats the last one. By hand, for the next symbol, the loss is large.",
        "“We are training them to predict token N, given tokens 0–N inclusive!”",
        "Project-MONAI/GenerativeModels/issues/314",
    ),
    "positions forgotten": Case(
        "positions",
        "x = table[ids]",
        "x = table[ids] + positions[:T]",
        "The order test reads 0: what goes in shuffled comes out shuffled. Under a causal mask the model still "
        "learns a good deal.",
        "One slice was missing, so each place got the same vector.",
        "DiffPoseTalk/DiffPoseTalk/issues/20",
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
    "mask after softmax": Case(
        "mask",
        "softmax(scores) * mask",
        "softmax(where(mask, scores, -inf))",
        "The weights of later symbols are 0, but softmax has divided by their sum: enough for a leak that training "
        "finds.",
        "In a library of image models: “The mask should be applied before the softmax.”",
        "huggingface/pytorch-image-models/pull/2236",
    ),
    "norm over the sequence": Case(
        "norm",
        "x.mean(axis=1), x.var(axis=1)",
        "x.mean(axis=-1), x.var(axis=-1)",
        "Means over the whole sequence know its end: a leak in time. A single symbol is its own mean, so all single "
        "symbols come out alike.",
        "In one of the most copied implementations, in July 2017.",
        "jadore801120/attention-is-all-you-need-pytorch/pull/17",
    ),
    "mask inverted": Case(
        "mask",
        "where(mask, -inf, scores)",
        "where(mask, scores, -inf)",
        "Each symbol sees only what comes after it: a leak in time, a loss near 0. An additive mask of 0 and −∞, "
        "read as booleans, does the same.",
        "In a best-selling book's repository: two functions of one library take masks the opposite way round.",
        "rasbt/LLMs-from-scratch/issues/1061",
    ),
    "table too loud": Case(
        "table",
        "table = rng.normal(size=(V, d))",
        "table = rng.normal(size=(V, d)) / sqrt(d)",
        "The loss begins at 16, and a healthy model's at 5: this one is sure of itself, and wrong. Training mends "
        "most of it.",
        "The first loss of a T5 was about 110, where 11 was expected.",
        "huggingface/transformers/pull/26441",
    ),
    "positions along the batch": Case(
        "positions",
        "x + positions[:B, None]",
        "x + positions[:T]",
        "Order reads 0, and a row depends on how many stand before it in the batch.",
        "In a Transformer in NumPy: x.shape[0] where x.shape[1] was meant.",
        "AkiRusProd/numpy-transformer/issues/1",
    ),
    "mask from the first key": Case(
        "mask",
        "np.tri(T_q, T_k)",
        "np.tri(T_q, T_k, T_k - T_q)",
        "Right in training, where T_q = T_k. With a cache, the one new query may see the first key only.",
        "In a standard for exchanging models: “top-left aligned” after a cache, which “masks out valid past keys”.",
        "onnx/onnx/pull/8068",
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
    "the same batch again": Case(
        "data",
        "rng = np.random.default_rng(0)  # in each step",
        "rng = np.random.default_rng(0)  # once",
        "The code of the model is right, and the loss falls to almost 0: it knows 16 rows by heart. On a page of the "
        "text the loss by hand is large.",
        "Workers that load data inherit one seed: the same random numbers in each of them, and in each epoch.",
        "pytorch/pytorch/issues/5059",
    ),
    "losses added up": Case(
        "loss",
        "loss = sum(loss_of(part) for part in parts)",
        "loss = sum(loss_of(part) for part in parts) / len(parts)",
        "The logged loss is twice what it should be from the first step on. Adam divides by the size of the "
        "gradient, so the model learns as well as any.",
        "“As gradient_accumulation_steps increases, the loss also increases.”",
        "huggingface/transformers/issues/37766",
    ),
    "rotary pairs": Case(
        "positions",
        "turn(x[i], x[i + d_k // 2])",
        "turn(x[2 * i], x[2 * i + 1])",
        "The weights were trained with the other pairing. Order matters, nothing leaks, the cache agrees: only the "
        "loss by hand is not the log's.",
        "SmolLM2 and LLaMA in Crystal: the first words were right, then came garbage.",
        "NeuraLegion/shainet/pull/111",
    ),
}


# What a triage can say, by number; and which of these leads to which part.
SAID = (
    "nothing moves",
    "the batch axis",
    "mask, softmax, heads, norm",
    "positions",
    "the cache",
    "table, targets or loss",
)
LEADS = {
    "norm": (1, 2),
    "heads": (2,),
    "softmax": (2,),
    "mask": (2, 4),
    "positions": (1, 3),
    "cache": (4,),
    "table": (5,),
    "targets": (5,),
    "loss": (5,),
    "data": (5,),
    "none": (0,),
}


def diagnoses(triage: Callable[..., Any]) -> tables.Table:
    """List which patients a triage sends where, and print who is sent to a wrong place; no part is named."""
    numbers = [int(number) for number in triage(gauges())]  # 20
    rows = []
    for number, place in enumerate(SAID):
        sent = [str(patient) for patient, n in zip(PATIENTS, numbers, strict=True) if n == number]
        rows.append((place, ", ".join(sent) or "nobody"))
    parts = [CASES[bug].part for bug in examined.BUGS]
    wrong = [p for p, n, part in zip(PATIENTS, numbers, parts, strict=True) if n not in LEADS.get(part, ())]
    right = len(parts) - len(wrong)
    silent = [n for n in (9, 10) if n in wrong]  # section 4 tells which of the two is well
    named = [str(n) for n in wrong if n not in silent] + (
        ["one of 9 and 10"] if len(silent) == 1 else [*map(str, silent)]
    )
    print(f"{right} of {len(parts)} are sent to the right place; wrong are {', '.join(named) or 'none'}.")
    return tables.table(("sent to", "patients"), rows)


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
