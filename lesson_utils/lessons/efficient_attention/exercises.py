"""The exercises of notebook 07."""

import math
from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.efficient_attention import mistakes
from lesson_utils.lessons.efficient_attention.rounding import rounded
from lesson_utils.maths import costs, fast_weights
from lesson_utils.mistakes.exercise import Case, Exercise

# --- One tile of the online softmax ---------------------------------------------------------------------------------


def _online_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, largest: float, scores: Sequence[float], d_v: int = 3) -> Case:
        first = largest == -math.inf
        total = 0.0 if first else float(rng.uniform(1, 4))
        output = np.zeros(d_v) if first else total * rng.normal(size=d_v)
        return Case(label, (largest, total, output, np.array(scores), rng.normal(size=(len(scores), d_v))))

    hidden = -math.inf
    return [
        case("a tile with a larger score than all before", 0.5, (0.2, 2.0, -1.0, 0.4), 3),
        case("a tile without a larger score", 1.5, (0.3, -0.7, 1.1), 5),
        case("the first tile", hidden, (0.4, -1.2, 0.9, -0.3), 2),
        case("scores in the thousands", 2000.0, (2001.0, 1999.5, 2003.0), 4),
        case("a tile with hidden keys", 0.2, (0.8, hidden, -0.5, hidden), 3),
        case("a tile in which all is hidden", 0.7, (hidden, hidden, hidden), 2),
        case("a first tile in which all is hidden", hidden, (hidden, hidden), 3),
        case("a first tile of scores below −1000", hidden, (-1002.0, -1001.0, -1003.5), 2),
        case("a tile of one key", -0.4, (0.6,), 4),
        case("a tile whose largest score is the one before, twice", 0.9, (0.9, 0.1, 0.9), 1),
    ]


_ONLINE = Exercise(
    name="online_softmax",
    called="my_online_softmax",
    takes="largest, total, output, scores, values",
    task="""One more tile of keys, for one query.

So far: largest, a number, the largest score, −∞ before the first tile; total, the
sum of exp(score − largest); output, (d_v,), the sum of exp(score − largest) · value.
The tile: scores, (n,), −∞ where hidden; values, (n, d_v). Returns the new
`largest, total, output`; output stays undivided.
The arguments stay as they were.""",
    steps={
        "largest": "new = max(largest, scores.max())",
        "nothing": "if new == -np.inf:\n    return largest, total, output  # all is hidden so far",
        "shrink": "shrink = np.exp(largest - new)  # what was summed relative to the old maximum",
        "weights": "weights = np.exp(scores - new)  # (n,)",
        "total": "total = total * shrink + weights.sum()",
        "output": "output = output * shrink + weights @ values  # (d_v,)",
        "answer": "return new, total, output",
    },
    cases=_online_cases,
    returns=("largest", "total", "output"),
    hints=(
        "Both sums are relative to the largest score so far. When a larger one comes, by which factor is everything too large?",
        "exp(s − new) = exp(s − old) · exp(old − new): multiply `total` and `output` by `np.exp(largest - new)`, then add the tile.",
        "The tile adds `np.exp(scores - new)` to the total, and the same `@ values` to the output. If the new largest is still −∞, "
        "nothing has been seen: return what came in.",
    ),
    mistakes=mistakes.ONLINE,
    praise="Ten tiles: the first one, hidden keys, nothing but hidden keys, scores in the thousands. Divide output by total after the "
    "last tile, and this is exact attention that never holds more than a tile.",
)

# --- A rolling causal mask with kept tokens -------------------------------------------------------------------------


def _mask_cases(rng: np.random.Generator) -> Sequence[Case]:
    sizes = ((8, 3, 2), (6, 1, 0), (7, 4, 0), (9, 2, 1), (5, 7, 1), (10, 3, 4), (1, 1, 1), (4, 1, 6))
    return [Case(f"T = {T}, window = {W} and keep = {k}", (T, W, k)) for T, W, k in sizes]


_MASK = Exercise(
    name="rolling_mask",
    called="my_rolling_mask",
    takes="T, window, keep",
    task="""Each position sees the last `window` positions, itself among them, and the first `keep`.

T: how many positions. window: at least 1. keep: 0 or more. Nobody sees ahead, not
even to a kept position. Returns booleans, (T, T), True = may attend. NumPy only.""",
    steps={
        "i": "i = np.arange(T)[:, None]  # (T, 1)",
        "j": "j = np.arange(T)  # (T,)",
        "near": "near = i - j < window",
        "kept": "kept = j < keep",
        "past": "past = j <= i",
        "answer": "return past & (near | kept)",
    },
    cases=_mask_cases,
    returns=("mask",),
    hints=(
        "Three conditions on (i, j): not ahead, near, kept. Which two are joined by *or*?",
        "With i a column and j a row: `j <= i` is not ahead; `i - j < window` is near, with the position itself at distance 0; "
        "`j < keep` is kept.",
        "`past & (near | kept)`: without the first, early rows would see kept positions that lie ahead of them.",
    ),
    mistakes=mistakes.ROLLING,
    praise="Eight settings, from a window of one to one that is wider than the text. With this mask a cache needs window + keep rows, "
    "however long the text.",
)

# --- One step of a delta-rule memory --------------------------------------------------------------------------------


def _delta_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, d_k: int, d_v: int, rate: float, empty: bool = False) -> Case:
        k = rng.normal(size=d_k)
        S = np.zeros((d_k, d_v)) if empty else rng.normal(size=(d_k, d_v))
        return Case(label, (S, k / np.linalg.norm(k), rng.normal(size=d_v), rate))

    drawn = [
        case("d_k = 4, d_v = 3 and rate 1", 4, 3, 1.0),
        case("d_k = 3, d_v = 5 and rate 0.5", 3, 5, 0.5),
        case("an empty memory", 4, 2, 1.0, empty=True),
        case("a square memory", 3, 3, 0.8),
        case("rate 0", 2, 4, 0.0),
        case("d_v = 1", 5, 1, 0.3),
    ]
    S, k, v, rate = case("", 3, 4, 0.6).arguments
    return [*drawn, Case("a value far from what the memory says", (S, k, 100 * v, rate))]


_DELTA = Exercise(
    name="delta_step",
    called="my_delta_step",
    takes="S, k, v, rate",
    task="""Write v under the key k: where the memory says something else, it is corrected.

S: the memory, (d_k, d_v); it is read by k @ S. k: (d_k,), of length 1. v: (d_v,).
rate: from 0 to 1; 1 corrects all of the error. Returns the new memory, (d_k, d_v);
S stays as it was. NumPy only.""",
    reference=lambda S, k, v, rate: fast_weights.write(S, k, v, overwrite=True, rate=rate),
    steps={
        "read": "old = k @ S  # (d_v,): what the memory says now",
        "error": "error = v - old",
        "write": "change = np.outer(k, error)  # (d_k, d_v)",
        "answer": "return S + rate * change",
    },
    cases=_delta_cases,
    returns=("memory",),
    hints=(
        "Read before you write. What must be added, so that reading with k afterwards gives v?",
        "The error is `v - k @ S`. Adding `np.outer(k, error)` changes what k reads by (k · k) · error, and k · k is 1.",
        "`S + rate * np.outer(k, v - k @ S)`.",
    ),
    mistakes=mistakes.DELTA,
    library=(fast_weights.write,),
    praise="Seven memories. At rate 1 the memory now answers v to k, whatever it said before; at less, it moves that far.",
)

# --- The bytes of a cache -------------------------------------------------------------------------------------------


def _bytes_cases(rng: np.random.Generator) -> Sequence[Case]:
    sizes = (
        ("grouped heads in 16 bits", (1000, 32, 32, 8, 128, 16, 0, 0)),
        ("as many heads as queries have", (512, 12, 12, 12, 64, 32, 0, 0)),
        ("one head in 8 bits", (2048, 24, 71, 1, 64, 8, 0, 0)),
        ("4 bits", (300, 30, 9, 3, 64, 4, 0, 0)),
        ("local layers beyond their window", (5000, 48, 16, 8, 256, 16, 40, 1024)),
        ("local layers before their window is full", (700, 26, 4, 1, 256, 16, 22, 1000)),
        ("narrow heads in 4 bits", (90, 5, 6, 3, 20, 4, 2, 48)),
    )
    return [Case(label, arguments) for label, arguments in sizes]


_BYTES = Exercise(
    name="cache_bytes",
    called="my_cache_bytes",
    takes="tokens, layers, heads, kv_heads, d_head, bits, local_layers, window",
    task="""The bytes of a key–value cache.

tokens: how many there are. layers: how many layers, local_layers of which keep the
last `window` tokens only. heads: of the queries; they share kv_heads heads of keys
and values, each d_head wide. bits: of each number. Returns one number.""",
    reference=lambda tokens, layers, heads, kv_heads, d_head, bits, local_layers, window: costs.cache_bytes(
        tokens, layers, kv_heads, d_head, bits, local_layers, window
    ),
    steps={
        "numbers": "numbers = 2 * kv_heads * d_head  # a key and a value, for one token in one layer",
        "everywhere": "rows = (layers - local_layers) * tokens",
        "local": "rows = rows + local_layers * min(tokens, window)",
        "answer": "return numbers * rows * bits / 8",
    },
    cases=_bytes_cases,
    returns=("bytes",),
    hints=(
        "Count the numbers that one token leaves in one layer; then tokens and layers; then bits.",
        "A key and a value for each of the kv_heads, d_head wide: 2 · kv_heads · d_head. Queries are not kept.",
        "A full layer keeps all tokens, a local one `min(tokens, window)`. Eight bits are a byte.",
    ),
    mistakes=mistakes.BYTES,
    library=(costs.cache_bytes,),
    praise="Seven configurations: shared heads, few bits, local layers before and beyond their window.",
)

# --- Rounding with a scale for each row or each column ----------------------------------------------------------------


def _rounded_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, d: int, bits: int, axis: int, shift: float = 0.0) -> Case:
        return Case(label, (rng.normal(shift, 2.0, size=(T, d)) * np.linspace(0.5, 3, d), bits, axis))

    flat = rng.normal(size=(4, 3))
    flat[:, 1] = 1.5
    return [
        case("3 bits, a scale for each row", 5, 7, 3, 1),
        case("3 bits, a scale for each column", 5, 7, 3, 0),
        case("1 bit by row", 4, 6, 1, 1),
        case("2 bits by column, all numbers far above 0", 6, 3, 2, 0, 20.0),
        case("4 bits by row, all numbers far below 0", 3, 9, 4, 1, -20.0),
        case("a square array by column", 4, 4, 2, 0),
        Case("a column in which all numbers are alike", (flat, 2, 0)),
        case("8 bits by row", 2, 5, 8, 1),
        case("16 bits by column", 5, 3, 16, 0),
        Case("an array in which all numbers are alike", (np.full((3, 2), 0.7), 2, 1)),
    ]


_ROUNDED = Exercise(
    name="rounded",
    called="my_rounded",
    takes="x, bits, axis",
    task="""Round numbers to 2^bits levels, evenly spaced from the smallest to the largest.

x: (T, d). bits: 1 to 16. axis: 1, each row has levels of its own; 0, each column has.
The first level is the smallest number of the row or column, the last one the largest.
If all are alike, they stay. Returns the rounded numbers, (T, d). NumPy only; x stays as it was.""",
    reference=rounded,
    steps={
        "low": "low = x.min(axis=axis, keepdims=True)",
        "high": "high = x.max(axis=axis, keepdims=True)",
        "step": "step = (high - low) / (2**bits - 1)",
        "alike": "step = np.where(step == 0, 1, step)",
        "whole": "whole = np.round((x - low) / step)  # 0, 1, …, 2^bits − 1",
        "answer": "return low + whole * step",
    },
    cases=_rounded_cases,
    returns=("rounded",),
    hints=(
        "Which whole number, from 0 to 2^bits − 1, stands for each x? Which two numbers must be kept to turn it back?",
        "2^bits levels have 2^bits − 1 gaps between them: `step = (high - low) / (2**bits - 1)`, with `low` and `high` along "
        "`axis` and `keepdims=True`.",
        "`low + np.round((x - low) / step) * step`. Where `step` is 0, put 1 in its place.",
    ),
    mistakes=mistakes.ROUNDED,
    library=(rounded,),
    praise="Ten arrays: rows and columns, 1 to 16 bits, numbers far from 0, numbers that are all alike.",
)

EXERCISES = (_ONLINE, _MASK, _ROUNDED, _BYTES, _DELTA)
