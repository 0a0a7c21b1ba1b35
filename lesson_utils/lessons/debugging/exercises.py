"""The exercises of notebook 10: two instruments, a triage, and functions that run and are wrong.

What is to be mended are exercises of earlier notebooks with one of their mistakes in the stub: one bank for all. Only the
merge of heads is an exercise of this notebook alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.debugging import broken, casefile
from lesson_utils.lessons.debugging.broken import VOCAB, Toy
from lesson_utils.maths import attention
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

_STEP = "for t in range(prompt, len(ids)):\n    parts.append(model.forward({})[0][0])"

_SOFTMAX = "(lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True))({})"

ACROSS = (
    change("another row compared", "You compare with the first row of the batch, which is one of the others. Your row stands last: `[-1]`.", together="together = model.forward(batch)[0][0]"),
    change("in front", "Your row has the same place in both runs, so a leak that goes by the place in the batch does not show. Run the row once alone, `ids[None]`, and once as the last row, behind all of `others`.", batch="batch = np.concatenate([ids[None], others])", together="together = model.forward(batch)[0][0]"),
    change("company of copies", "You fill the batch with copies of the row itself. A model that mixes the rows then mixes equal ones, and nothing moves. The company has to be `others`.", batch="batch = np.stack([ids] * (len(others) + 1))"),
    change("one of the others", "You take one of the other rows. All of `others` stand before the row.", batch=("batch = np.stack([others[0], ids])", "batch = np.stack([others[-1], ids])")),
    change("the row is missing", "Your batch holds the others only. The row itself has to stand in it too, as the last one: `np.concatenate([others, ids[None]])`.", batch="batch = others"),
    change("probabilities", "You compare probabilities. The task compares logits: softmax forgets what is added to all of them.", alone=f"alone = {_SOFTMAX.format('model.forward(ids[None])[0][0]')}", together=f"together = {_SOFTMAX.format('model.forward(batch)[0][-1]')}"),
    change("compared with itself", "Both of your runs are the same. Run the row once alone, `ids[None]`, and once as the last row behind `others`.", alone="alone = model.forward(np.concatenate([others, ids[None]]))[0][-1]"),
    change("with its sign", "Your differences keep their sign. First take `np.abs` of every difference, then the maximum.", answer=("return (together - alone).max(axis=-1)", "return (alone - together).max(axis=-1)")),
    change("over the symbols", "`axis=0` takes the maximum over the T outputs, and leaves V numbers. The task wants one for each output: `axis=-1`.", answer="return np.abs(together - alone).max(axis=0)"),
    change("no maximum", "You return the differences of all logits, (T, V). The task wants the largest one of each output: `.max(axis=-1)`.", answer="return np.abs(together - alone)"),
    change("one number", "You return one number. One for each output is asked for, because the place of a leak is a clue: `axis=-1`.", answer="return np.abs(together - alone).max()"),
    change("place", "`np.argmax` gives the place of the largest difference. The task asks for the difference itself: `.max(axis=-1)`.", answer="return np.argmax(np.abs(together - alone), axis=-1)"),
    change("another row alone", "You run the others where the row should be alone. Give the model your own row: `model.forward(ids[None])`.", alone=("alone = model.forward(others)[0][-1]", "alone = model.forward(others)[0][0]")),
    change("alone still a batch", "One of your runs keeps the axis of the batch, (1, T, V). Take the row out in both: `[0][0]` where it is alone, `[0][-1]` where it is last.", alone="alone = model.forward(ids[None])[0]"),
    change("all differences together", "You put the differences of all symbols together: their sum, or the root of the sum of their squares. The task asks for the largest one.", answer=("return np.abs(together - alone).sum(axis=-1)", "return np.sqrt(((together - alone) ** 2).sum(axis=-1))")),
    change("mean", "You take the mean of the differences. A bug that moves one logit of many would be thinned out; the task asks for the largest.", answer="return np.abs(together - alone).mean(axis=-1)"),
    change("largest logits compared", "You compare the largest logit of one run with the largest of the other. These may be different symbols. First subtract the logits, then take `np.abs` of every difference, then the maximum.", answer="return np.abs(together.max(axis=-1) - alone.max(axis=-1))"),
)

PARITY = (
    change("no cache in the steps", "After the prompt, `model.forward` gets no `past` or an empty one, so each symbol stands alone. Hand over the same `past` in each step.", loop=_STEP.format("ids[None, t : t + 1]")),
    change("a new cache in each step", "You make a new past in each step, so nothing is remembered. Make it once, before the prompt.", loop="for t in range(prompt, len(ids)):\n    past = model.new_past()\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])"),
    change("the prompt without the cache", "The prompt is not in the cache of the steps. Give it the same `past`: `model.forward(ids[None, :prompt], past)`.", prompt="parts = [model.forward(ids[None, :prompt])[0][0]]"),
    change("the whole run with the cache", "Your whole run fills the same `past`, so the parts come after it. The whole run has no cache.", whole="past = model.new_past()\nwhole = model.forward(ids[None], past)[0][0]", past=""),
    change("no prompt", "You feed the symbols one by one from the start. Then a cache that counts calls instead of tokens is never found, because each call brings one token. Feed the whole prompt in one call.", prompt="parts = []", loop="for t in range(len(ids)):\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])"),
    change("all again in each step", "You feed all symbols so far in each step, and the cache has them already. After the prompt, feed the new symbol only.", loop="for t in range(prompt, len(ids)):\n    parts.append(model.forward(ids[None, : t + 1], past)[0][0][-1:])"),
    change("the symbol before", "You feed the symbol before place t. At place t, feed symbol t, as an array of shape (1, 1).", loop=_STEP.format("ids[None, t - 1 : t], past")),
    change("the rest at once", "You feed all that is left at once. The task feeds it one by one, as writing does.", loop="if prompt < len(ids):\n    parts.append(model.forward(ids[None, prompt:], past)[0][0])"),
    change("with its sign", "Your differences keep their sign. First take `np.abs` of every difference, then the maximum.", answer=("return (np.concatenate(parts) - whole).max(axis=-1)", "return (whole - np.concatenate(parts)).max(axis=-1)")),
    change("largest logits compared", "You compare the largest logit of one run with the largest of the other. These may be different symbols. First subtract the logits, then take `np.abs` of every difference, then the maximum.", answer="return np.abs(np.concatenate(parts).max(axis=-1) - whole.max(axis=-1))"),
    change("over the symbols", "`axis=0` takes the maximum over the T outputs, and leaves V numbers. The task wants one for each output: `axis=-1`.", answer="return np.abs(np.concatenate(parts) - whole).max(axis=0)"),
    change("one number", "You return one number. One for each output is asked for, because the first place that differs is a clue: `axis=-1`.", answer="return np.abs(np.concatenate(parts) - whole).max()"),
    change("place", "`np.argmax` gives the place of the largest difference. The task asks for the difference itself: `.max(axis=-1)`.", answer="return np.argmax(np.abs(np.concatenate(parts) - whole), axis=-1)"),
    change("all differences together", "You put the differences of all symbols together: their sum, or the root of the sum of their squares. The task asks for the largest one.", answer=("return np.abs(np.concatenate(parts) - whole).sum(axis=-1)", "return np.sqrt(((np.concatenate(parts) - whole) ** 2).sum(axis=-1))")),
    change("mean", "You take the mean of the differences. The task asks for the largest.", answer="return np.abs(np.concatenate(parts) - whole).mean(axis=-1)"),
    change("behind the prompt only", "You return only the outputs after the prompt. The prompt's own outputs are asked for, too: a wrong mask changes those.", answer="return np.abs(np.concatenate([np.zeros((0, whole.shape[1])), *parts[1:]]) - whole[prompt:]).max(axis=-1)"),
)

TRIAGE = (
    change("curve before leaks", "In your answer 5 wins over everything. What explains most should win: rows, time, order, cache, loss.", rings="rings = [loss, rows, time, order, cache]", answer="return np.select(rings, [5, 1, 2, 3, 4], 0)"),
    change("curve before time", "In your answer the loss wins over time. A leak bends the loss as well, so that leaks end up as 5. What explains most should win: rows, time, order, cache, loss.", rings="rings = [rows, loss, time, order, cache]", answer="return np.select(rings, [1, 5, 2, 3, 4], 0)"),
    change("cache before leaks", "In your answer the cache wins over rows, time and order. What mixes positions breaks cache parity, too: these three should win.", rings="rings = [cache, rows, time, order, loss]", answer="return np.select(rings, [4, 1, 2, 3, 5], 0)"),
    change("cache before order", "In your answer the cache wins over order. Positions that are wrong can break cache parity: order should win.", rings="rings = [rows, time, cache, order, loss]", answer="return np.select(rings, [1, 2, 4, 3, 5], 0)"),
    change("time before rows", "In your answer time wins over rows. What mixes the batch explains more: rows should win.", rings="rings = [time, rows, order, cache, loss]", answer="return np.select(rings, [2, 1, 3, 4, 5], 0)"),
    change("the last wins", "Where several gauges are True, the last of rows, time, order, cache, loss wins. The task asks for the first that applies.", answer="return np.select(rings[::-1], [5, 4, 3, 2, 1], 0)"),
    change("start forgotten", "A wrong loss at the start is not in your answer: 5 is for start or curve.", loss="loss = curve"),
    change("curve forgotten", "A wrong curve is not in your answer: 5 is for start or curve.", loss="loss = start"),
    change("start and curve", "You ask for start and curve. One of the two is enough: join them with `|`.", loss="loss = start & curve"),
    change("counted from 0", "Your numbers are one too small: the batch axis is 1, and 0 is for patients with no gauge that is True.", answer="return np.select(rings, [0, 1, 2, 3, 4], 0)"),
    change("columns exchanged", "You take “time” and “rows” for each other: 1 is for rows, 2 for time. The columns are start, curve, time, rows, order, cache.", columns="start, curve, rows, time, order, cache = gauges.T"),
    change("order and cache exchanged", "You take “order” and “cache” for each other: 3 is for order, 4 for cache. The columns are start, curve, time, rows, order, cache.", columns="start, curve, time, rows, cache, order = gauges.T"),
    change("rows for columns", "You unpack patients, not gauges: a gauge is a column. `gauges.T` turns them.", columns="start, curve, time, rows, order, cache = gauges"),
    change("numbers added up", "You add up the numbers of all gauges that are True. The task asks for the number of the first that applies.", answer="return np.array([1, 2, 3, 4, 5]) @ np.array(rings)"),
    change("gauges counted", "You count how many gauges are True. The task asks which ones.", "gauges.sum(axis=1)"),
    change("the first column that rings", "You take the first column that is True, in the order of the columns. The order of questions is rows, time, order, cache, loss.", "np.where(gauges.any(axis=1), gauges.argmax(axis=1) + 1, 0)"),
    change("1 for none", "A patient with no gauge that is True gets 1 from you, as if rows had moved. It should get 0. (`argmax` of a row without any True is 0, as if its first entry were True.)", answer="return np.argmax(np.stack(rings), axis=0) + 1"),
    change("5 for all the rest", "A patient with no gauge that is True gets 5 from you. It should get 0: 5 is for start or curve.", answer="return np.select(rings[:4], [1, 2, 3, 4], 5)"),
)

MERGE = (
    change('reshaped without a swap', 'Your heads are joined as by a reshape alone, which never moves an entry past another: tokens of one head end up in one row. Swap T and h first, `.swapaxes(-2, -3)`, so that the pieces of a token lie beside each other.', swap=""),
    change('not joined', 'The pieces of a token are not joined. After the swap, (..., T, h, d_k), return them reshaped to (..., T, h·d_k).', join="return x"),
    change('leading axes joined', 'The leading axes are joined with T, as by a `-1` in `reshape`, which takes all that is left. Keep them: `*leading, h, T, d_k = x.shape`, then `reshape(*leading, T, h * d_k)`.', join="return x.reshape(-1, num_heads * d_k)"),
    change('leading axes made one', 'Your result has exactly one leading axis, however many x has. Keep the leading axes as they are: `*leading, h, T, d_k = x.shape`, then `reshape(*leading, T, h * d_k)`.', join="return x.reshape(-1, T, num_heads * d_k)"),
    change('columns of the heads alternate', "Your rows take the first column of every head, then the second of every head. A row is head 0's d_k columns, then head 1's: swap T and h, so that the axes are (..., T, h, d_k), and reshape.", "*leading, h, T, d_k = x.shape\nout = np.zeros((*leading, T, h * d_k), x.dtype)\nfor i in range(h):\n    out[..., i::h] = x[..., i, :, :]\nreturn out", swap="x = np.moveaxis(x, -3, -1)"),
    change('wrong axes swapped', 'In your result d_k has changed places with another axis. T and h must: `.swapaxes(-2, -3)`, then reshape to (..., T, h·d_k).', swap=("x = x.swapaxes(-1, -2)", "x = x.swapaxes(-1, -3)"), join=("return x.reshape(*leading, T, num_heads * d_k)", "return x")),
    change(
        'heads below each other', 'You put the heads below each other, as more rows. A token stays one row: its pieces from all heads go side by side, into one row of h·d_k columns.',
        "np.concatenate(x)",
        "np.concatenate(x, axis=-2)",
        "x.reshape(*x.shape[:-3], -1, x.shape[-1])",
        "np.vstack(x)",
    ),
    change("last head first", "Your heads stand in the reverse order, the last one first. The first head's piece comes first.", swap="x = x[..., ::-1, :, :].swapaxes(-2, -3)"),
    change('heads added', 'You add the heads up, or average them. They are put side by side, so that W_O can use each in its own way: the width is h·d_k.', "x.sum(axis=-3)", "x.mean(axis=-3)", "sum(x)", "x.mean(axis=0)"),
    change(
        'three axes taken for granted', 'Your code works for three axes only, (h, T, d_k). Any number of axes may stand in front of them. Count from the end: the heads are axis −3, and the tokens axis −2.',
        "h, T, d_k = x.shape\nreturn x.swapaxes(0, 1).reshape(T, h * d_k)",
        "np.concatenate(x, axis=-1)",
        "np.hstack(x)",
        "np.concatenate([x[i] for i in range(x.shape[0])], axis=-1)",
        "x.transpose(1, 0, 2).reshape(x.shape[1], -1)",
        "x.swapaxes(0, 1).reshape(x.shape[1], -1)",
    ),
    change(
        'four axes taken for granted', 'Your code is for four axes, (B, h, T, d_k). There may be fewer or more in front. Count from the end: `.swapaxes(-2, -3)` swaps T and h, and the sizes are `*leading, h, T, d_k = x.shape`.',
        "B, h, T, d_k = x.shape\nreturn x.swapaxes(1, 2).reshape(B, T, h * d_k)",
        "x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)",
        "x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)",
    ),
    change('axes counted from the front', 'You swap two axes counted from the front. T and h stand there only for one number of axes. Count from the end: `.swapaxes(-2, -3)`.', swap=("x = x.swapaxes(0, 1)", "x = x.swapaxes(1, 2)")),
    change('one head only', 'Only one head is left in your result. All of them go side by side: the width is h·d_k.', "x[..., 0, :, :]", "x[..., -1, :, :]", "x[0]", "x[-1]"),
    change("sizes in another order", "Your rows are cut as if T and h were exchanged. x is (..., h, T, d_k), `*leading, num_heads, T, d_k = x.shape`; after the swap a row is a token: (..., T, h·d_k).", sizes="*leading, T, num_heads, d_k = x.shape"),
    change("pieces overlap", "Your pieces overlap: head i begins at column i · d_k, not at i.", "*leading, h, T, d_k = x.shape\nout = np.zeros((*leading, T, h * d_k))\nfor i in range(h):\n    out[..., i : i + d_k] = x[..., i, :, :]\nreturn out"),
)

# fmt: on

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
    mistakes=ACROSS,
    praise="Right on healthy models and on those that mix or count their rows. Two runs, one row, no label needed.",
    library=(broken.leak_across_rows,),
    in_pytorch="""# First model.eval(): with dropout on, a row differs even from itself.
with torch.no_grad():
    alone = torch.as_tensor(model.forward(ids[None])[0][0])
    together = torch.as_tensor(model.forward(torch.cat([others, ids[None]]))[0][-1])
moved = (together - alone).abs().amax(-1)""",
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
    mistakes=PARITY,
    praise="Seven models, five of them with a bug that training would not notice. Keep it: it runs on every patient below.",
    library=(broken.cache_parity,),
    in_pytorch="""# With a cache, `is_causal=True` of F.scaled_dot_product_attention begins its mask at the first key: one new query
# sees that key only. Hand over a mask, or none where a single query may see all keys.
whole, past = torch.as_tensor(model.forward(ids[None])[0][0]), model.new_past()
steps = [ids[None, :prompt], *(ids[None, t : t + 1] for t in range(prompt, len(ids)))]
parts = [torch.as_tensor(model.forward(step, past)[0][0]) for step in steps]
moved = (torch.cat(parts) - whole).abs().amax(-1)""",
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
    mistakes=TRIAGE,
    praise="All 64 combinations. The order is the point: one cause moves several gauges, and the first says most.",
)


# --- Mend it --------------------------------------------------------------------------------------------------------

_HOMES = {name: lesson for lesson in LESSONS if lesson.number < 10 for name in lesson.exercises}


def _merge_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("3 heads, 4 tokens, d_k = 2", (rng.normal(size=(3, 4, 2)),)),
        Case("leading axes (2,), 4 heads, 5 tokens, d_k = 3", (rng.normal(size=(2, 4, 5, 3)),)),
        Case("leading axes (2, 3), 5 heads, 7 tokens, d_k = 2", (rng.normal(size=(2, 3, 5, 7, 2)),)),
        Case("one head", (rng.normal(size=(1, 3, 4)),)),
        Case("d_k = 1", (rng.normal(size=(2, 3, 5, 1)),)),
        Case("float32 input", (rng.normal(size=(2, 5, 4)).astype(np.float32),)),
        Case("as many heads as tokens", (rng.normal(size=(3, 3, 4)),)),
        Case("a batch of one, a single token", (rng.normal(size=(1, 3, 1, 2)),)),
        Case("leading axes (2, 1, 2), 3 heads", (rng.normal(size=(2, 1, 2, 3, 4, 2)),)),
    ]


_MERGE = Exercise(
    name="merge_heads",
    called="my_merge_heads",
    takes="x",
    task="""Put the pieces of each token side by side again, head 0 first.

x: (..., h, T, d_k), any leading axes, also none.
Returns (..., T, h·d_k). NumPy only. x stays as it was.""",
    reference=attention.merge_heads,
    steps={
        "sizes": "*leading, num_heads, T, d_k = x.shape",
        "swap": "x = x.swapaxes(-2, -3)  # (..., T, h, d_k): the pieces of a token side by side",
        "join": "return x.reshape(*leading, T, num_heads * d_k)",
    },
    cases=_merge_cases,
    returns=("merged",),
    hints=(
        "Undo the split, in the opposite order: first the axes, then the reshape.",
        "Sizes from the end: `*leading, num_heads, T, d_k = x.shape`. Which two axes must change places, so that the pieces of "
        "a token lie side by side?",
        "`.swapaxes(-2, -3)`, then `.reshape(*leading, T, num_heads * d_k)`.",
    ),
    mistakes=MERGE,
    library=(attention.merge_heads,),
    praise="Nine cases.",
    in_pytorch="merged = x.transpose(-3, -2).flatten(-2)  # `view` is an error here: the transpose left the pieces apart",
)


def _mend(name: str, of: str, mistake: str, task: str, symptom: str, hint: str) -> Exercise:
    """Make an exercise from one of an earlier notebook, or from `_MERGE`: the stub has one of its mistakes."""
    if home := _HOMES.get(of):
        base, known = home.exercise(of), f" (The bug is one that `check.{of}` knows from notebook {home.number:02}.)"
    else:
        base, known = _MERGE, ""
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
        praise=f"Mended.{known}",
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
