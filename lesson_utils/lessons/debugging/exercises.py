"""The exercises of notebook 10: a triage, and eight functions that run and are wrong.

What is to be mended are exercises of earlier notebooks with one of their mistakes in the stub: one bank for all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.debugging import casefile, mistakes
from lesson_utils.mistakes.exercise import Case, Exercise

# --- Triage ---------------------------------------------------------------------------------------------------------


def _triage_cases(rng: np.random.Generator) -> Sequence[Case]:
    every = np.array(list(product((False, True), repeat=6)))  # (64, 6)
    return [
        Case("the sixteen patients", (casefile.gauges(),)),
        Case("all 64 combinations", (rng.permutation(every),)),
        Case("one patient, all well", (every[:1],)),
        Case("20 patients", (rng.random((20, 6)) < 0.3,)),
    ]


_TRIAGE = Exercise(
    name="triage",
    called="my_triage",
    takes="gauges",
    task="""From the gauges to the part, before any code is read.

gauges: booleans, (n, 6), one row a patient, True = not as in a healthy model; the
columns are start, curve, time, rows, order, cache. Returns whole numbers, (n,), the
first that applies: 1 rows rings (the batch axis), 2 time (mask, softmax, heads),
3 order (positions), 4 cache, 5 start or curve (table, targets, loss), 0 nothing.
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
    praise="All 64 combinations. The order is the point: one cause rings several gauges, and the first tells most.",
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
        "behind it. Split, then merged, x does not come back.",
        "Name the entries: with h = 2, T = 3, d_k = 2, number x from 0 to 11. Which numbers must stand in row 0?",
    ),
    _mend(
        "hiding",
        "masked_attention",
        "mask inverted",
        """Attention from scaled scores (..., T_q, T_k), V (..., T_k, d_v) and mask, True = may
attend. Returns `output, weights`; where nothing is allowed, zeros. `ops.softmax`
may be used; the arguments stay as they were.""",
        "It runs, and most rows sum to 1. Symptom: with a causal mask, the first query sees everything behind it, and the "
        "last sees nothing. In training the loss falls where it can't.",
        "Give it the causal mask for T = 3 and print the weights. Where are the zeros?",
    ),
    _mend(
        "mask",
        "causal_mask",
        "queries counted from the start",
        """The causal mask of the last T_q of T_k positions, (T_q, T_k), True = may attend.
Returns booleans. NumPy; no `attention.causal_mask`.""",
        "It runs, and in training it is right. Symptom: with a cache the model writes other text than without. One new "
        "query behind a long past sees the first key only.",
        "Print it for T_q = 1, T_k = 4. Where in the sequence does that query stand?",
    ),
    _mend(
        "norm",
        "layer_norm",
        "over the tokens",
        """Layer norm: x (..., d_model); gamma, beta (d_model,); ε inside the root. Returns y in
the dtype of x; x stays as it was. No `ops.layer_norm`.""",
        "It runs, and the numbers look normal. Symptom: change the last token, and all outputs of its sequence move. One "
        "token alone comes out as beta.",
        "What is the mean taken over? A token must be normed by itself: print the mean of y over each axis.",
    ),
    _mend(
        "block",
        "pre_norm_block",
        "the stream is normed",
        """A pre-norm block: x (..., T, d_model); attend, feed_forward, norm_1, norm_2 are
functions of such arrays. Returns y, (..., T, d_model); x stays as it was.""",
        "It runs and trains, and no gauge rings. Symptom: where attend and feed_forward return zeros, the block should "
        "give back x. It does not.",
        "Let attend and feed_forward return zeros. What should y be?",
    ),
    _mend(
        "step",
        "decode_step",
        "values put in front",
        """x (1, d_model); W_Q, W_K (d_model, d_k), W_V (d_model, d_v); caches K, V (t, …). Returns
`output, K, V`, caches one row longer. The arguments stay as they were.""",
        "It runs; with an empty cache it is right. Symptom: cache parity fails from the second step on. Keys and values "
        "have the right shapes and the right rows.",
        "Which value belongs to which key? Number the rows of x, and look at K and V after three steps.",
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
    _mend(
        "attention",
        "attention",
        "down the columns",
        """Scaled dot-product attention: Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v),
mask None or True = may attend. Returns `output, weights` in the dtype of Q;
the arguments stay as they were. `ops.softmax` may be used.""",
        "It runs, all weights lie between 0 and 1. Symptom: ask more queries at once, and outputs get smaller; an early "
        "output moves when a later query changes.",
        "Sum the weights of one query. Then sum those of one key.",
    ),
)
EXERCISES = (_TRIAGE, *MENDS)
