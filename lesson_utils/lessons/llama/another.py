"""The questions of notebook 09, asked of another model: what its heads do, and what it loses without them."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from lesson_utils.classroom import tables
from lesson_utils.lessons.real_model import grown, measures
from lesson_utils.maths.attention import scaled_dot_product_attention
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT
from lesson_utils.maths.pretrained import Pretrained

COPIES = 3  # texts of random tokens, each said twice
HEADS = 5  # of the strongest induction heads
DRAWS = 5  # times that other heads are switched off, as a control


class Answers(NamedTuple):
    """What was measured of a model; nats are per token, and what is lost is the rise of the loss.

    copying, heads: how many heads have an induction score above 0.3, and how many there are.
    without, others: what the second copy loses without the strongest of them, and without as many others.
    keys, queries: what it loses if one head that looks back is taken out of one input of theirs.
    sink, even: the weight on the first token of a text, and what it would be if all tokens had the same.
    hidden, emptied: what the second half of a text loses if its first token is hidden before the softmax, or its
        weight set to 0 behind it.
    """

    copying: int
    heads: int
    without: float
    others: float
    keys: float
    queries: float
    sink: float
    even: float
    hidden: float
    emptied: float


# SmolLM2-135M-Instruct; a test measures it again.
SMOLLM2 = Answers(12, 270, 7.893, -0.034, 7.918, 1.018, 0.364, 0.021, 2.026, 0.5)


def ask(model: Pretrained | GPT, seed: int = 0) -> Answers:
    """Measure a model: one from a file, or one that was grown in notebook 09."""
    rng = np.random.default_rng(seed)
    if isinstance(model, GPT):
        page, _ = grown.repeats(rng, 32)
        twice, begin, period = grown.repeats(rng, 32, (16, 16))[0][:, :33], 0, 16
        return _answers(model, page, twice, begin, period, rng)
    p, begin = model, len(model.tokenizer.begin)
    context = p.model.config.max_length
    page = p.prompt(measures.STORY)[None, : min(measures.PAGE + 1, context)]
    period = min(measures.COPIED, (context - begin) // 2)
    words = np.setdiff1d(np.arange(len(p.tokenizer)), [*p.tokenizer.special.values()])
    once = rng.choice(words, (COPIES, period))
    before = np.tile(np.array(p.tokenizer.begin, np.int64), (COPIES, 1))
    return _answers(p.model, page, np.concatenate([before, once, once], axis=1), begin, period, rng)


def _answers(model: GPT, page: Ids, twice: Ids, begin: int, period: int, rng: np.random.Generator) -> Answers:
    """Measure a model on a page, (B, T + 1), and on texts said twice behind `begin` tokens, (B, begin + 2 · period)."""
    maps = measures.all_maps(model, twice)[..., begin:, begin:]
    induction = measures.induction_score(maps, period).mean(axis=0)  # (layers, heads)
    back = np.diagonal(maps, -1, -2, -1).mean(axis=(0, -1))

    def second(**trying: object) -> float:
        return float(measures.losses(model, twice, **trying)[:, begin + period - 1 :].mean())

    width, strongest = induction.shape[1], np.argsort(-induction, axis=None)[:HEADS]
    strongest = strongest[: max(1, int((induction.flat[strongest] > 0.3).sum()))]
    rest = np.setdiff1d(np.arange(induction.size), strongest)
    drawn = [rng.choice(rest, min(len(strongest), len(rest)), replace=False) for _ in range(DRAWS)]
    whole = second()
    without = second(knock_out=_heads_of(strongest, width)) - whole
    others = np.median([second(knock_out=_heads_of(some, width)) for some in drawn]) - whole
    cuts = [_without_wire(model, twice, back, strongest, into, begin + period) - whole for into in ("keys", "queries")]

    T = page.shape[1] - 1
    half, hidden = T // 2, np.tri(T, dtype=bool)
    hidden[half:, 0] = False

    def emptied(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
        weights = scaled_dot_product_attention(Q, K, V, mask)[1].copy()
        weights[..., half:, 0] = 0
        return weights @ V, weights

    lost = [
        float(measures.losses(model, page, **way)[:, half:].mean())
        for way in ({}, {"mask": hidden}, {"attend": emptied})
    ]
    sink = measures.all_maps(model, page[:, :-1])[..., 3:, 0].mean()
    found = [without, others, *cuts, sink, (1 / np.arange(4, T + 1)).mean(), lost[1] - lost[0], lost[2] - lost[0]]
    return Answers(int((induction > 0.3).sum()), induction.size, *(round(float(x), 3) for x in found))


def _heads_of(numbers: Iterable[int], width: int) -> dict[int, list[int]]:
    """Return heads counted through all layers as {layer: [heads]}."""
    chosen: dict[int, list[int]] = {}
    for number in numbers:
        chosen.setdefault(int(number) // width, []).append(int(number) % width)
    return chosen


def _without_wire(model: GPT, twice: Ids, back: Array, strongest: Ids, into: str, start: int) -> float:
    """Return the loss from `start` on if the head that looks back most is taken out of an input of heads above it."""
    width = back.shape[1]
    below = back[: max(1, int(strongest.max()) // width)]  # layers under the highest of the strongest heads
    layer, head = divmod(int(below.argmax()), width)
    readers = _heads_of([n for n in strongest if n // width > layer], width)
    if not readers:
        return float(measures.losses(model, twice)[:, start - 1 :].mean())
    inputs = partial(measures.patched_inputs, into=into)
    logits, _ = measures.run_patched(model, twice[:, :-1], (layer, head), inputs, readers)
    return float(measures.of_next(logits, twice)[:, start - 1 :].mean())


class Row(NamedTuple):
    """A finding, what came out, and whether it holds there."""

    finding: str
    found: str
    holds: bool


def rows(a: Answers) -> list[Row]:
    """Judge the answers: a loss must be above a tenth of a nat, and above twice the loss in its control."""

    def loses(finding: str, most: float, control: str, lost: float) -> Row:
        most, lost = (round(nats, 2) + 0.0 for nats in (most, lost))  # and never −0
        return Row(finding, f"{most:+.2f} nats; {control} {lost:+.2f}", most > max(0.1, 2 * lost))

    return [
        Row("Some heads copy: induction above 0.3", f"{a.copying} of {a.heads} heads", a.copying > 0),
        loses("Without the strongest, copies cost more", a.without, "other heads", a.others),
        loses("Their keys carry what a head below wrote", a.keys, "queries", a.queries),
        Row("The first token is a sink", f"{a.sink:.0%} of the weight; evenly {a.even:.0%}", a.sink > 3 * a.even),
        loses("Hiding it costs, emptying it less than half", a.hidden, "emptied", a.emptied),
    ]


def compared(answers: Answers) -> tables.Table:
    """List a model's answers beside those of SmolLM2."""
    listed = [
        (ours.finding, ours.found, theirs.found, "holds" if theirs.holds else "does not hold")
        for ours, theirs in zip(rows(SMOLLM2), rows(answers), strict=True)
    ]
    return tables.table(("finding of notebook 09", "SmolLM2", "your model", "does it hold?"), listed)
