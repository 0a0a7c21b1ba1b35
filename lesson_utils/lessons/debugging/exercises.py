"""The exercises of notebook 10: two instruments, a triage, and functions that run and are wrong.

What is to be mended are exercises of earlier notebooks with one of their mistakes in the stub: one bank for all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.debugging import casefile, instruments, mistakes
from lesson_utils.lessons.debugging.toys import VOCAB, Toy
from lesson_utils.mistakes.exercise import Case, Exercise

# --- Two instruments ------------------------------------------------------------------------------------------------


def _across_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, n: int, T: int, **bug: bool) -> Case:
        ids, *others = rng.integers(VOCAB, size=(n + 1, T))
        return Case(label, (Toy(n + T, **bug), ids, np.array(others)))

    return [
        case("a model that mixes the rows", 3, 7, mixes_rows=True),
        case("a healthy model", 3, 7),
        case("a model that counts the rows", 2, 5, counts_rows=True),
        case("one other row", 1, 6, mixes_rows=True),
        case("a single symbol", 2, 1, mixes_rows=True),
    ]


_ACROSS = Exercise(
    name="leak_across_rows",
    called="my_leak_across_rows",
    takes="model, ids, others",
    task="""How far a row's outputs move in company: alone, and as the last row of a batch.

model.forward(batch) takes ids (B, T) and returns a pair; its first part is the
logits, (B, T, V). ids: (T,), the row. others: (n, T), the rows before it.
Returns (T,): for each output of the row the largest difference of its V logits,
without sign. ids and others stay as they were.""",
    steps={
        "alone": "alone = model.forward(ids[None])[0][0]  # (T, V)",
        "batch": "batch = np.concatenate([others, ids[None]])  # (n + 1, T)",
        "together": "together = model.forward(batch)[0][-1]  # (T, V)",
        "answer": "return np.abs(together - alone).max(axis=-1)",
    },
    cases=_across_cases,
    returns=("moved",),
    hints=(
        "Run the model twice: on a batch of this row only, then on a batch whose last row it is. Compare the same row.",
        "`ids[None]` is a batch of one row, (1, T). `np.concatenate([others, ids[None]])` is a batch of n + 1 rows.",
        "`model.forward(batch)[0][-1]` is the logits of the last row, (T, V). Then `np.abs(… - …).max(axis=-1)`.",
    ),
    mistakes=mistakes.ACROSS,
    praise="Right on healthy models and on those that mix or count their rows. Two runs, one row, no label needed.",
    library=(instruments.leak_across_rows,),
)


def _parity_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, prompt: int, **bug: bool) -> Case:
        return Case(label, (Toy(T, **bug), rng.integers(VOCAB, size=T), prompt))

    return [
        case("a model that counts positions from 0 again in each call", 8, 3, starts_again=True),
        case("a healthy model", 8, 3),
        case("a cache that counts calls", 7, 4, counts_calls=True),
        case("a model that looks ahead", 7, 2, looks_ahead=True),
        case("a prompt of one symbol", 5, 1, starts_again=True),
        case("a prompt that nothing follows", 4, 4, looks_ahead=True),
        case("a cache that rounds what it keeps", 6, 3, rounds_past=True),
    ]


_PARITY = Exercise(
    name="cache_parity",
    called="my_cache_parity",
    takes="model, ids, prompt",
    task="""How far outputs with a cache are from those without: a prompt at once, then one by one.

model.forward(batch, past) takes ids (B, T) and a cache, and returns a pair; its
first part is the logits, (B, T, V). Without `past`, there is no cache.
model.new_past() makes an empty one; each call with it adds to it.
ids: (T,). prompt: how many symbols go in first, all at once. Returns (T,): for each
output the largest difference of its V logits, without sign. ids stays as it was.""",
    steps={
        "whole": "whole = model.forward(ids[None])[0][0]  # (T, V)",
        "past": "past = model.new_past()",
        "prompt": "parts = [model.forward(ids[None, :prompt], past)[0][0]]  # (prompt, V)",
        "loop": "for t in range(prompt, len(ids)):\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])  # (1, V)",
        "answer": "return np.abs(np.concatenate(parts) - whole).max(axis=-1)",
    },
    cases=_parity_cases,
    returns=("moved",),
    hints=(
        "Two runs of the same symbols: all at once without a cache, and in parts that share one cache.",
        "One `past` for all parts: `model.forward(ids[None, :prompt], past)`, then `ids[None, t : t + 1]` for each later t.",
        "Collect the logits of the parts in a list; `np.concatenate(parts)` is (T, V), as the logits of the whole run are.",
    ),
    mistakes=mistakes.PARITY,
    praise="Seven models, five of them with a bug that training would not notice. Keep it: it runs on every patient below.",
    library=(instruments.cache_parity,),
)


# --- Triage ---------------------------------------------------------------------------------------------------------


def _triage_cases(rng: np.random.Generator) -> Sequence[Case]:
    every = np.array(list(product((False, True), repeat=6)))  # (64, 6)
    return [
        Case("the twenty patients", (casefile.gauges(),)),
        Case("all 64 combinations", (rng.permutation(every),)),
        Case("one patient, all well", (every[:1],)),
        Case("20 patients", (rng.random((20, 6)) < 0.3,)),
    ]


_TRIAGE = Exercise(
    name="triage",
    called="my_triage",
    takes="gauges",
    task="""From the gauges to the part, before any code is read.

gauges: booleans, (n, 6), a row for each patient, of whom there is at least one; True
= not as in a healthy model. Columns: start, curve, time, rows, order, cache. Returns whole numbers, (n,), the
first that applies: 1 rows moves (the batch axis), 2 time (mask, softmax, heads, norm),
3 order (positions), 4 cache, 5 start or curve (table, targets, loss), 0 none.
gauges stay as they were.""",
    steps={
        "columns": "start, curve, time, rows, order, cache = gauges.T  # (n,) each",
        "loss": "loss = start | curve",
        "rings": "rings = [rows, time, order, cache, loss]  # what explains most comes first",
        "answer": "return np.select(rings, [1, 2, 3, 4, 5], 0)",
    },
    cases=_triage_cases,
    returns=("parts",),
    hints=(
        "What comes first in the list wins. A leak spoils the loss and the cache as well, so ask for it before those.",
        "`start, curve, time, rows, order, cache = gauges.T` gives six arrays, (n,) each. `start | curve` is True where one is.",
        "`np.select(conditions, numbers, 0)` takes, for each patient, the number of the first condition that is True.",
    ),
    mistakes=mistakes.TRIAGE,
    praise="All 64 combinations. The order is the point: one cause moves several gauges, and the first says most.",
)


# --- Mend it --------------------------------------------------------------------------------------------------------

_HOMES = {name: lesson for lesson in LESSONS if lesson.number < 10 for name in lesson.exercises}


def _mend(name: str, of: str, mistake: str, task: str, symptom: str, hint: str) -> Exercise:
    """Make an exercise from one of an earlier notebook: the stub has one of its mistakes."""
    base = _HOMES[of].exercise(of)
    (change,) = (change for change in base.mistakes if change.name == mistake)
    way: Mapping[str, str] = change.ways[0]
    return replace(
        base,
        name=f"mend_{name}",
        called=f"mended_{name}",
        task=task,
        broken=way,
        symptom=symptom,
        hints=(hint, *base.hints[-1:]),
        praise=f"Mended. (The bug is one that `check.{of}` knows from notebook {_HOMES[of].number:02}.)",
    )


MENDS = (
    _mend(
        "merge",
        "merge_heads",
        "reshaped without a swap",
        """Heads side by side again: x (..., h, T, d_k). Returns (..., T, h·d_k). NumPy only;
x stays as it was.""",
        "It runs, and the shape is right. Symptom: change one token, and outputs of other tokens change, before and "
        "after it. Split, then merged, x does not come back.",
        "Name the entries: with h = 2, T = 3, d_k = 2, number x from 0 to 11. Which numbers must stand in row 0?",
    ),
    _mend(
        "mask",
        "causal_mask",
        "queries counted from the start",
        """The causal mask of the last T_q of T_k positions, (T_q, T_k), True = may attend.
T_q is at least 1. Returns booleans. NumPy; no `attention.causal_mask`.""",
        "It runs, and in training it is right. Symptom: with a cache the model writes other text than without. One new "
        "query after a long past sees the first key only.",
        "Print it for T_q = 1, T_k = 4. Where in the sequence does that query stand?",
    ),
    _mend(
        "block",
        "pre_norm_block",
        "the stream is normed",
        """A pre-norm block: x (..., T, d_model); attend, feed_forward, norm_1, norm_2 are
functions of such arrays. Returns y, (..., T, d_model); x stays as it was.""",
        "It runs and trains, and no gauge notices. Symptom: where attend and feed_forward return zeros, the block should "
        "give back x. It does not.",
        "Let attend and feed_forward return zeros. What should y be?",
    ),
    _mend(
        "groups",
        "grouped_attention",
        "groups interleaved",
        """h query heads, Q (h, T_q, d_k), on h_kv key–value heads, K (h_kv, T_k, d_k) and
V (h_kv, T_k, d_v); neighbours share one: 0, 1, 2 use the first. Returns (h, T_q, d_v).
The arguments stay as they were.""",
        "It runs, and a model trained with it is as good as any. Symptom: with the weights of somebody else's model it "
        "writes noise. With h_kv = h or h_kv = 1 it is right.",
        "Six query heads, two key–value heads: which key–value head does query head 1 use here?",
    ),
)
EXERCISES = (_ACROSS, _PARITY, _TRIAGE, *MENDS)
