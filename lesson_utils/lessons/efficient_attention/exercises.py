"""The exercises of notebook 07, and the ways to get them wrong, as learners type them."""

import math
from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.efficient_attention.published import rounded
from lesson_utils.maths import fast_weights
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

# --- One tile of the online softmax -------------------------------------------------------------------------------------

ONLINE = (
    change("total not rescaled", "The old sum was counted relative to the old maximum. Relative to the new one it is exp(old maximum − new maximum) times as large: multiply `total` by that before you add the tile.", total="total = total + weights.sum()"),
    change("output not rescaled", "The old output was summed relative to the old maximum. It shrinks by exp(old maximum − new maximum), just as the total does.", output="output = output + weights @ values"),
    change("nothing rescaled, and nothing hidden minded", "Two things to mend.\n1. The old sums were counted relative to the old maximum. Relative to the new one they are exp(old maximum − new maximum) times as large: multiply `total` and `output` by that before you add the tile.\n2. Where all is hidden so far, the new maximum is −∞ too, and −∞ − (−∞) is NaN. Nothing has been seen then: leave the sums as they came in.", nothing="", total="total = total + weights.sum()", output="output = output + weights @ values"),
    change("neither sum rescaled", "Your old sums do not shrink, though they are relative to the old maximum. Multiply both by exp(old maximum − new one), and do not overwrite the old one before.", shrink="shrink = 1.0"),
    change("no maximum at all", "You add exp(score) as it is, so that large scores overflow. Subtract the new maximum, `np.exp(scores - …)`, multiply both old sums by exp(old maximum − new maximum), and return what came in where the new maximum is −∞.", shrink="shrink = 1.0", weights="weights = np.exp(scores)"),
    change("a quotient of exponentials", "You divide exp(old maximum) by exp(new maximum). Both overflow in the thousands, far below 0 and at −∞ both are 0, and NaN is left. Take one exponential, of the difference: exp(old maximum − new maximum).", nothing=("if new == -np.inf:\n    return largest, total, output", ""), shrink="shrink = np.exp(largest) / np.exp(new)"),
    change("factor by the tile's maximum", "Your factor compares the old maximum with the tile's own. In a tile of small scores the running maximum stays, and the sums with it: exp(old maximum − new maximum), where the new one is never the smaller.", nothing=("if new == -np.inf:\n    return largest, total, output", "if scores.max() == -np.inf:\n    return largest, total, output"), shrink="shrink = np.exp(largest - scores.max())"),
    change("sign of the exponent", "Your old sums grow by exp(new maximum − old maximum) when a larger score comes. They must shrink: multiply them by exp(old maximum − new maximum).", shrink="shrink = np.exp(new - largest)"),
    change("maximum of the tile", "You take the tile's own maximum and forget the old one. In a tile of small scores the running maximum must not fall: `max(largest, scores.max())`.", "new = scores.max()\nseen = new if np.isfinite(new) else 0\nshrink, weights = np.exp(largest - seen), np.exp(scores - seen)\nreturn new, total * shrink + weights.sum(), output * shrink + weights @ values", largest="new = scores.max()", nothing=("if new == -np.inf:\n    return largest, total, output", "if new == -np.inf and largest == -np.inf:\n    return largest, total, output")),
    change("maximum of the tile, and nothing hidden minded", "Two things to mend.\n1. You take the tile's own maximum and forget the old one. In a tile of small scores the running maximum must not fall: `max(largest, scores.max())`.\n2. Where all is hidden so far, the new maximum is −∞ too, and −∞ − (−∞) is NaN. Nothing has been seen then: leave the sums as they came in.", largest="new = scores.max()", nothing=""),
    change("maximum never raised", "You keep the old maximum. It is −∞ before the first tile, and later scores may lie far above it: take `max(largest, scores.max())`.", largest="new = largest"),
    change("tile relative to its own maximum", "The tile's exponentials are relative to the tile's own maximum, the sums to the running one. Both need the same, the new running maximum: `np.exp(scores - …)`.", weights=("weights = np.exp(scores - scores.max())", "weights = np.exp(scores - (scores.max() if np.isfinite(scores.max()) else new))")),
    change("tile relative to the old maximum", "The tile's exponentials are relative to the old maximum, which is −∞ at first and may be far too low. Subtract the new one: `np.exp(scores - …)`.", weights="weights = np.exp(scores - largest)"),
    change("nothing subtracted", "You exponentiate the scores as they are: exp(2000) overflows, and the sums are relative to the maximum. Subtract the new maximum first: `np.exp(scores - …)`.", weights="weights = np.exp(scores)"),
    change("no exponential", "You add scores without the exponential. The sums are of `np.exp(scores - …)`, with the new maximum subtracted.", weights="weights = scores - new"),
    change("all hidden", "Where all is hidden so far, the new maximum is −∞ too, and −∞ − (−∞) is NaN. Nothing has been seen then: leave the sums as they came in.", nothing=""),
    change("divided too early", "You divide the output by the total. The next tile would add to something divided already: return it undivided.", answer=("return new, total, output / total", "return new, total, output / max(total, 1e-9)")),
    change("weights normalised in the tile", "You make the tile's weights sum to 1. How much the tile counts against the others is then lost; add the exponentials, `np.exp(scores - …)` with the new maximum, as they are.", weights=("weights = np.exp(scores - new)\nweights = weights / weights.sum()", "weights = ops.softmax(scores)")),
    change("values without weights", "You add up the values as they are. Each counts by its weight, the exponential of its score: `… @ values`.", output=("output = output * shrink + values.sum(axis=0)", "output = output * shrink + values[scores > -np.inf].sum(axis=0)")),
    change("old maximum returned", "You return the old maximum. The next tile needs the new one, which the sums are relative to.", answer="return largest, total, output"),
    change("starts at 0", "In a first tile your maximum is at least 0. Where all scores lie far below 0 every exponential vanishes, and the total is 0. Take the maximum of `largest` and the scores alone.", largest="new = max(largest, scores.max(), 0)"),
    change("mean for the sum", "You add the mean of the tile's exponentials, so a long tile counts no more than a short one. Add their sum.", total="total = total * shrink + weights.mean()"),
    change("tile shrunk, too", "You multiply the tile by the factor, too. Only the old sums shrink.", total=("total = (total + weights.sum()) * shrink"), output=("output = (output + weights @ values) * shrink")),
    change("total of the tile only", "The old total is not in your sum. It counts, too, times exp(old maximum − new maximum).", total="total = weights.sum()"),
    change("output of the tile only", "You forget the old output. It shrinks, and stays.", output="output = weights @ values"),
    change("smallest score", "You take a minimum. Take the maximum, `max(largest, scores.max())`, so that no exponent is above 0.", largest=("new = min(largest, scores.min())", "new = max(largest, scores.min())")),
    change("values not weighted", "You add the tile's values without their weights. Each value counts by its own exponential: `… @ values`.", output="output = output * shrink + values.sum(axis=0)"),
    change("order", "The results are in another order. Return the new largest score, the total, the output.", answer=("return total, new, output", "return output, total, new", "return new, output, total")),
    change("a finite number for −∞", "A finite number, such as −10,000, stands for −∞ in your code. Before the first visible key `largest` must stay −∞ and the sums 0.", nothing="", largest=("scores = np.maximum(scores, -1e4)\nnew = max(largest, scores.max())", "scores = np.maximum(scores, -1e9)\nnew = max(largest, scores.max())")),
    change("a hidden tile resets the sums", "A tile in which all is hidden sets your sums to 0. It adds nothing: return `largest, total, output` as they came.", nothing=("if scores.max() == -np.inf:\n    return largest, 0.0, 0 * output", "if scores.max() == -np.inf:\n    return -np.inf, 0.0, 0 * output")),
    change("output kept divided", "You take the output that comes in for divided, multiply it by the total, and divide it again. It comes undivided, and stays so: shrink it, and add the tile.", output="output = (output * total_before * shrink + weights @ values) / total", total="total_before = total\ntotal = total * shrink + weights.sum()"),
    change("only keys that raise the maximum", "Keys that do not raise the maximum are left out. Their exp(score − largest) counts as well.", "for score, value in zip(scores, values):\n    if score > largest:\n        shrink = np.exp(largest - score)\n        largest, total, output = score, total * shrink + 1, output * shrink + value\nreturn largest, total, output"),
)

# --- One step of a delta-rule memory ------------------------------------------------------------------------------------

DELTA = (
    change("added", "You add the value itself. That is the plain sum: what the memory said before stays in it. Add the error, v − k @ S.", error="error = v"),
    change("sign of the error", "Your change has the wrong sign: it moves the memory away from v. Add rate · outer(k, v − k @ S).", error="error = old - v"),
    change("sum for the error", "You add what the memory says to the value. Take it away: v − k @ S.", error="error = v + old"),
    change("subtracted", "Your change goes the wrong way. It corrects the error as S + rate · outer(k, v − k @ S).", answer="return S - rate * change"),
    change("outer product transposed", "Your outer product has the shape (d_v, d_k). Rows belong to the key: `np.outer(k, …)`, with the error second.", write=("change = np.outer(error, k)",)),
    change("read from the wrong side", "You read with S @ k. Rows of S belong to the key, so it is read by `k @ S`, (d_v,).", read="old = S @ k"),
    change("key and value exchanged", "Key and value have changed places. The memory is read by the key, `k @ S`; what it says is compared with the value, and the rows of the outer product belong to the key.", read="old = S @ v", error="error = k - old", write=("change = np.outer(error, v)",)),
    change("rate left out", "You leave the rate out: the whole error would be corrected at once. Multiply by `rate`.", answer="return S + change"),
    change("rate on the value only", "You multiply the value alone by the rate. Multiply the whole error, v − k @ S.", error="error = rate * v - old", answer="return S + change"),
    change("only the change", "You return what is to be added. Add it to S.", answer="return rate * change"),
    change("memory faded", "You multiply the whole memory by 1 − rate. The delta rule leaves what other keys wrote: S + rate · outer(k, v − k @ S).", error=("error = v", "error = v - old"), answer="return (1 - rate) * S + rate * change"),
    change("the error in every row", "You add the error to every row of S, whatever the key. A row counts by its entry of the key: `np.outer(k, …)`, (d_k, d_v).", write="change = error"),
    change("not an outer product", "You multiply key and error entry by entry. Each entry of the key meets each of the error: `np.outer(k, …)`, (d_k, d_v).", write="change = k * error"),
    change("error squared", "You square the error, which loses its sign. The gradient of ½ error² is the error itself.", error="error = (v - old) ** 2"),
    change("the reading added", "You add what the memory says already. Add what it lacks, the error v − k @ S.", error="error = old"),
    change("read after writing", "v does not count in your error: it is left out, or cancels, because you read after v has been added. Read first: v − k @ S.", read="old = k @ (S + np.outer(k, v))"),
    change("divided by the sum of keys", "You divide as linear attention does. The delta rule needs no sum below a fraction bar.", answer="return S + rate * change / k.sum()"),
    change("row by row", "Your loop reads the memory anew after each row that it has written. Compute `v - k @ S` once, before the loop.", "S = S.copy()\nfor i in range(len(k)):\n    S[i] = S[i] + rate * k[i] * (v - k @ S)\nreturn S"),
)

# --- Rounding with a scale for each row or each column --------------------------------------------------------------------

ROUNDED = (
    change("axis exchanged", "Rows and columns are exchanged. With axis 1 the minimum is taken along each row, `x.min(axis=axis, keepdims=True)`.", low="low = x.min(axis=1 - axis, keepdims=True)", high="high = x.max(axis=1 - axis, keepdims=True)"),
    change("one scale for all", "You take one smallest and one largest number for the whole array. Each row or column has its own: `axis=axis, keepdims=True`. These are arrays, which `if` cannot compare: `np.where` can.", low="low = x.min()", high="high = x.max()"),
    change("one step for all", "You take the step from the whole array, its largest number minus its smallest. Each row or column has its own: `axis=axis, keepdims=True`.", step="step = (x.max() - x.min()) / (2**bits - 1)"),
    change("always by row", "You go along the rows whatever `axis` says. With axis 0 each column has levels of its own: `axis=axis, keepdims=True`.", low="low = x.min(axis=1, keepdims=True)", high="high = x.max(axis=1, keepdims=True)"),
    change("always by column", "You go along the columns whatever `axis` says. With axis 1 each row has levels of its own: `axis=axis, keepdims=True`.", low="low = x.min(axis=0, keepdims=True)", high="high = x.max(axis=0, keepdims=True)"),
    change("one level too many", "You divide the range into 2^bits gaps, which makes 2^bits + 1 levels: one more than the bits can tell apart. There are 2^bits − 1 gaps.", step="step = (high - low) / 2**bits"),
    change("as many levels as bits", "You make as many levels as there are bits. Each bit doubles their number: 2^bits levels.", step="step = (high - low) / (bits - 1 + (bits == 1))"),
    change("one level too few", "You leave one level unused. 2^bits levels have 2^bits − 1 gaps between them.", step="step = (high - low) / max(2**bits - 2, 1)"),
    change("not the power", "In Python `^` is not the power (it compares bits). Write `2**bits`.", step=("step = (high - low) / ((2 ^ bits) - 1)", "step = (high - low) / (2 ^ bits - 1)")),
    change("decimals for bits", "`np.round(x, bits)` keeps so many decimals. Levels go from the smallest number to the largest: divide by the step, round to whole numbers, and turn them back.", "return np.round(x, bits)"),
    change("a little added to the step", "You add a small number to each step, so that none is 0. This moves the levels, and with 16 bits one sees it. Put 1 in the place of a step that is 0, and leave the others: `np.where`.", alike="", whole="whole = np.round((x - low) / (step + 1e-6))"),
    change("twice the bits", "`2 * bits` is not 2^bits. In Python the power is `2**bits`.", step="step = (high - low) / (2 * bits - 1)"),
    change("minimum not added back", "You do not add the smallest number again at the end.", answer="return whole * step"),
    change("whole numbers returned", "These are the whole numbers that would be stored. Turn them back: multiply by the step, and add the smallest number.", answer="return whole"),
    change("minimum not taken off", "You round x divided by the step, so the levels are multiples of the step, and the smallest number is no level. Take the smallest number off before, and add it after.", whole="whole = np.round(x / step)", answer="return whole * step"),
    change("minimum added, never taken off", "You add the smallest number and have not taken it off before rounding. Take it off x first, then divide by the step and round.", whole="whole = np.round(x / step)"),
    change("multiplied and divided exchanged", "You multiply by the step and then divide by it. It is the other way round: (x − smallest) / step counts the steps, and times step turns them back.", whole="whole = np.round((x - low) * step)", answer="return low + whole / step"),
    change("rounded down", "You round down, which takes off half a step on average. Round to the nearest level: `np.round`.", whole=("whole = np.floor((x - low) / step)", "whole = ((x - low) / step).astype(int)", "whole = (x - low) // step")),
    change("rounded up", "You round up, which adds half a step on average. Round to the nearest level: `np.round`.", whole="whole = np.ceil((x - low) / step)"),
    change("codes in a byte", "You store the whole numbers in 8 bits. With more than 8 bits they go up to 2^bits − 1, and what is above the type's largest number starts again from its smallest. Leave them as floats, or use `int64`.", whole=("whole = np.round((x - low) / step).astype(np.uint8)", "whole = np.round((x - low) / step).astype(np.int8)", "whole = np.round((x - low) / step).astype(int).astype(np.uint8)")),
    change("around 0", "You use levels on both sides of 0, as wide as the largest absolute value. Where all numbers lie far from 0, most of these levels are wasted: go from the smallest number to the largest.", "step = np.abs(x).max(axis=axis, keepdims=True) / max(2**(bits - 1) - 1, 1)\nreturn np.round(x / step) * step", "step = np.abs(x).max(axis=axis, keepdims=True) / (2**(bits - 1) - 1)\nreturn np.round(x / step) * step", "step = 2 * np.abs(x).max(axis=axis, keepdims=True) / (2**bits - 1)\nreturn np.round(x / step) * step", low="low = -np.abs(x).max(axis=axis, keepdims=True)", high="high = -low"),
    change("all alike", "Where all numbers are alike, the largest minus the smallest is 0, and a division by 0 ends in NaN. Divide by 1 there, or leave these numbers as they are.", alike=""),
    change("largest for the range", "The range is the largest number less the smallest. You divide the largest number itself into steps.", step="step = high / (2**bits - 1)"),
    change("levels at the middle of the steps", "You put each level into the middle of a step, so that neither the smallest nor the largest number is a level. The task wants both to be levels.", "low = x.min(axis=axis, keepdims=True)\nhigh = x.max(axis=axis, keepdims=True)\nstep = (high - low) / 2**bits\nstep = np.where(step == 0, 1, step)\nwhole = np.minimum(np.floor((x - low) / step), 2**bits - 1)\nreturn low + (whole + 0.5 * (high > low)) * step"),
)

# fmt: on

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
    mistakes=ONLINE,
    in_pytorch="""before, largest = largest, max(largest, scores.max().item())
zero = max(largest, -1e30)  # where nothing is seen yet, −∞ − (−∞) would be NaN
shrink, weights = torch.tensor(before - zero).exp(), (scores - zero).exp()
total, output = total * shrink + weights.sum(), output * shrink + weights @ values
# F.scaled_dot_product_attention works in tiles by itself. On a GPU it can take FlashAttention with is_causal=True, but
# not with an attn_mask.""",
    praise="Ten tiles: the first one, hidden keys, nothing but hidden keys, scores in the thousands. Divide output by total after the "
    "last tile, and this is exact attention that never holds more than a tile.",
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
    mistakes=DELTA,
    library=(fast_weights.write,),
    praise="Seven memories. At rate 1 the memory now answers v to k, whatever it said before; at less, it moves that far.",
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
    mistakes=ROUNDED,
    library=(rounded,),
    in_pytorch="""low, high = torch.aminmax(x, dim=axis, keepdim=True)
step = (high - low) / (2**bits - 1)
rounded = low + torch.round((x - low) / step.masked_fill(step == 0, 1)) * step""",
    praise="Ten arrays: rows and columns, 1 to 16 bits, numbers far from 0, numbers that are all alike.",
)

EXERCISES = (_ONLINE, _ROUNDED, _DELTA)
