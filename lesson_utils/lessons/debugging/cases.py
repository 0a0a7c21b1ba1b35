"""The diagnosis of each patient: the part, the line, what gave it away, and where it was seen in the wild."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from lesson_utils.lessons.debugging import casefile, examined
from lesson_utils.mistakes.verdict import details

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
        "Pieces of later tokens land in earlier outputs: a leak in time. One token alone is merged right, so that "
        "cached and all at once differ.",
        "In a teaching repository. Its training test had passed: “the copy task is too easy”.",
        "jsbaan/transformer-from-scratch/pull/6",
    ),
    "norm over the batch": Case(
        "norm",
        "x.mean(axis=0), x.var(axis=0)",
        "x.mean(axis=-1), x.var(axis=-1)",
        "A row depends on its neighbours. Alone it has variance 0, and nothing is left of its symbols: so the order "
        "test reads 0, too.",
        "A reader of a well-known implementation took the right axis for a bug, and asked for the batch instead.",
        "Kyubyong/transformer/issues/40",
    ),
    "softmax twice": Case(
        "loss",
        "cross_entropy(softmax(logits), targets)",
        "cross_entropy(logits, targets)",
        "No leak. The loss begins at ln V and hardly falls: of probabilities, even perfect ones, it cannot come below "
        "ln(e + V − 1) − 1, here 3.68.",
        "A validation loss was stuck near 1.0; it “bounds the minimum possible loss”.",
        "ariecattan/SciCo/issues/2",
    ),
    "mask one too far": Case(
        "mask",
        "np.tri(T, k=1)",
        "np.tri(T)",
        "The output before the changed symbol moves, and the loss falls far below what text allows. By itself it "
        "writes one letter for ever: what it relied on is not there yet.",
        "Leaks of other kinds, written on purpose, took a public benchmark to 0.0018 bits a byte.",
        "karpathy/nanochat/issues/844",
    ),
    "cache counts calls": Case(
        "cache",
        "self.length += 1",
        "self.length += T",
        "It trains like the healthy one. Only cache parity fails, from the first symbol behind the prompt on.",
        "An offset counted wrongly, behind the prompt: 6, then 12, then 13.",
        "skyzh/tiny-llm/pull/46",
    ),
    "targets not shifted": Case(
        "targets",
        "loss(ids, targets=ids)",
        "loss(ids[:, :-1], targets=ids[:, 1:])",
        "The loss begins too low, ends at 0, and nothing leaks: it is asked for the symbol that it was given. So it "
        "repeats the last one.",
        "“We are training them to predict token N, given tokens 0–N inclusive!”",
        "Project-MONAI/GenerativeModels/issues/314",
    ),
    "positions forgotten": Case(
        "positions",
        "x = table[ids]",
        "x = table[ids] + positions[:T]",
        "The order test reads 0: shuffled in, shuffled out. Under a causal mask it still learns a good deal.",
        "One slice was missing, and each place got the same vector.",
        "DiffPoseTalk/DiffPoseTalk/issues/20",
    ),
    "softmax over the queries": Case(
        "softmax",
        "softmax(scores, axis=-2)",
        "softmax(scores, axis=-1)",
        "A later query takes weight from an earlier one: a leak in time, and a loss far too good.",
        "In a much-read collection of annotated papers. With its images nobody could measure a difference.",
        "labmlai/annotated_deep_learning_paper_implementations/issues/146",
    ),
    "": Case("none", "–", "–", "Nothing is wrong with this one.", "Rarely.", ""),
    "table too loud": Case(
        "table",
        "table = rng.normal(size=(V, d))",
        "table = rng.normal(size=(V, d)) / sqrt(d)",
        "The loss begins at 18, not at ln V = 4.7: it is sure of itself, and wrong. Training mends most of it.",
        "The first loss of a T5 was about 110, where 11 was expected.",
        "huggingface/transformers/pull/26441",
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
    "positions along the batch": Case(
        "positions",
        "x + positions[:B, None]",
        "x + positions[:T]",
        "Order reads 0, and a row depends on how many stand before it in the batch.",
        "In a Transformer in NumPy: x.shape[0] where x.shape[1] was meant.",
        "AkiRusProd/numpy-transformer/issues/1",
    ),
    "norm over the sequence": Case(
        "norm",
        "x.mean(axis=1), x.var(axis=1)",
        "x.mean(axis=-1), x.var(axis=-1)",
        "Means over the whole sequence know its end: a leak in time.",
        "In one of the most copied implementations, in July 2017.",
        "jadore801120/attention-is-all-you-need-pytorch/pull/17",
    ),
    "no scale": Case(
        "scale",
        "Q @ K.T",
        "Q @ K.T / sqrt(d_k)",
        "No gauge rings: with d_k = 8 it learns as well. Only other code with the same weights tells (notebook 02 "
        "shows what it does with 32 keys at d_k = 512).",
        "A teaching repository; its authors suspect it of the peaks in their losses.",
        "PAIR-code/tiny-transformers/issues/71",
    ),
    "mask inverted": Case(
        "mask",
        "where(mask, -inf, scores)",
        "where(mask, scores, -inf)",
        "Each sees only what comes behind it: a leak in time, a loss near 0. An additive mask of 0 and −∞, read as "
        "booleans, does just the same.",
        "In a best-selling book's repository: two functions of one library take masks the opposite way round.",
        "rasbt/LLMs-from-scratch/issues/1061",
    ),
    "positions start again": Case(
        "cache",
        "x + positions[:T]",
        "x + positions[past : past + T]",
        "Trained all at once, it is right. With a cache each new symbol is told that it is the first.",
        "A cache put back without its offset counts positions from 0.",
        "vllm-project/vllm-metal/pull/144",
    ),
}


# What a triage can say, by number; and which of these leads to which part.
SAID = (
    "nothing rings",
    "the batch axis",
    "mask, softmax or heads",
    "positions",
    "the cache",
    "table, targets or loss",
)
LEADS = {
    "norm": (1, 2),
    "heads": (2,),
    "softmax": (2,),
    "mask": (2,),
    "positions": (1, 3),
    "cache": (4,),
    "table": (5,),
    "targets": (5,),
    "loss": (5,),
    "none": (0,),
}


def diagnoses(triage: Callable[..., Any]) -> None:
    """Print, for each patient, where a triage sends it and which part is ill."""
    numbers = triage(casefile.gauges())  # (16,)
    parts = [CASES[bug].part for bug in examined.BUGS]
    print(f"patient  {'the triage says':24} ill is")
    for patient, number, part in zip(casefile.PATIENTS, numbers, parts, strict=True):
        print(f"{patient:7}  {SAID[int(number)]:24} {part}")
    right = sum(int(number) in LEADS.get(part, ()) for number, part in zip(numbers, parts, strict=True))
    print(f"{right} of {len(parts)} are sent to the right place.")


def diagnosis(patient: int) -> list[str]:
    """Return the name of what a patient has, with its part, and the lines that explain it."""
    casefile.of(patient)
    name = examined.BUGS[patient - 1]
    case = CASES[name]
    lines = [f"{name or 'healthy'} (part: {case.part})"]
    if name:
        lines += [f"   as it stands   {case.line}", f"   as it should   {case.right}"]
    lines.append(case.sign)
    if case.link:
        lines += [f"Seen in the wild: {case.wild}", f"   {GITHUB}{case.link}"]
    return lines


@dataclass(frozen=True)
class Diagnoses:
    """Diagnoses of patients. On a page, each is closed until it is opened, so that nothing is told unasked."""

    patients: tuple[int, ...]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        page, plain = [], []
        for patient in self.patients:
            lines = diagnosis(patient)
            page.append(details(f"Patient {patient}", f"<pre>{escape(chr(10).join(lines))}</pre>"))
            plain.append("\n".join([f"Patient {patient}: {lines[0]}", *lines[1:]]))
        return {"text/html": "".join(page), "text/plain": "\n\n".join(plain)}


def reveal(*patients: int) -> Diagnoses:
    """Return the diagnoses of patients, or of all, each closed until it is opened.

    Raises:
        ValueError: there is no such patient.
    """
    for patient in patients:
        casefile.of(patient)
    return Diagnoses(patients or casefile.PATIENTS)
