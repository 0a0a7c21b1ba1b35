"""The exercises of notebook 07, and the ways to get them wrong, as learners type them."""

import math
from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.efficient_attention.published import rounded
from lesson_utils.maths import costs, fast_weights
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

# --- One tile of the online softmax -------------------------------------------------------------------------------------

ONLINE = (
    change("total not rescaled", "The old sum was counted relative to the old maximum. Relative to the new one it is exp(old maximum − new maximum) times as large: multiply `total` by that before you add the tile.", total="total = total + weights.sum()"),
    change("output not rescaled", "The old output was summed relative to the old maximum. It shrinks by exp(old maximum − new maximum), just as the total does.", output="output = output + weights @ values"),
    change("nothing rescaled, and nothing hidden minded", "Two things to mend.\n1. The old sums were counted relative to the old maximum. Relative to the new one they are exp(old maximum − new maximum) times as large: multiply `total` and `output` by that before you add the tile.\n2. Where all is hidden so far, the new maximum is −∞ too, and −∞ − (−∞) is NaN. Nothing has been seen then: leave the sums as they came in.", nothing="", total="total = total + weights.sum()", output="output = output + weights @ values"),
    change("neither sum rescaled", "Your old sums do not shrink, though they are relative to the old maximum. Multiply both by exp(old maximum − new one), and do not overwrite the old one before.", shrink="shrink = 1.0"),
    change("no maximum at all", "You add exp(score) as it is, so that large scores overflow. Subtract the new maximum, `np.exp(scores - …)`, multiply both old sums by exp(old maximum − new maximum), and return what came in where the new maximum is −∞.", shrink="shrink = 1.0", weights="weights = np.exp(scores)"),
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
    change("a hidden tile resets the sums", "A tile in which all is hidden sets your sums to 0. It adds nothing: return `largest, total, output` as they came.", nothing="if scores.max() == -np.inf:\n    return largest, 0.0, 0 * output"),
    change("only keys that raise the maximum", "Keys that do not raise the maximum are left out. Their exp(score − largest) counts as well.", "for score, value in zip(scores, values):\n    if score > largest:\n        shrink = np.exp(largest - score)\n        largest, total, output = score, total * shrink + 1, output * shrink + value\nreturn largest, total, output"),
)

# --- A rolling causal mask with kept tokens -----------------------------------------------------------------------------

ROLLING = (
    change("kept tokens seen ahead", "Early rows see kept positions that lie ahead of them. Kept or not, nobody sees the future: query i sees key j only where j ≤ i.", answer="return (past & near) | kept"),
    change("two-sided window", "Your window reaches to both sides, so positions see ahead. Query i sees key j only where j ≤ i.", near="near = np.abs(i - j) < window", answer=("return near | kept", "return near | (past & kept)")),
    change("sees ahead", "Nothing keeps a query from looking ahead: for query i and a later key j, i − j is negative, and smaller than any window. Ask for j ≤ i, too.", past="past = True"),
    change("one too many", "Your window begins one position too early. The position itself is one of the `window`, so the distances are 0 to window − 1.", near="near = i - j <= window"),
    change("one too few", "Your window begins one position too late. The position itself is one of the `window`, so the distances are 0 to window − 1.", near="near = i - j < window - 1"),
    change("window before the position", "Your window ends just before the position, and begins one position too early. The position itself is one of the `window`, so the distances are 0 to window − 1.", near="near = (i - j >= 1) & (i - j <= window)"),
    change("cannot see itself", "No position sees itself. It is part of its own window: query i sees key j where j ≤ i, so also where j = i.", past="past = j < i"),
    change("distance with the wrong sign", "Your window hides nothing of the past: for query i and a past key j, j − i is never positive. Hide the keys with i − j ≥ `window` that are not kept.", near="near = j - i < window"),
    change("one kept too many", "You keep one position too many. The first `keep` are 0 to keep − 1: key j is kept where j < `keep`.", kept="kept = j <= keep"),
    change("kept rows", "You keep rows, that is queries. Keep columns, that is keys: key j is kept where j < `keep`.", kept="kept = i < keep"),
    change("nothing kept", "The first positions are not kept. A query sees a past key in its window *or* among the first `keep`: join the two with `|`.", answer="return past & near"),
    change("no window at all", "Beyond itself, a query sees nothing but kept positions, if it sees itself at all. The last `window` positions count, too: i − j < `window`.", near=("near = np.zeros((T, T), bool)", "near = i == j")),
    change("only what is kept", "Your queries see only what is near and kept: few positions are both. Either is enough, so join the two with “or”, and hide what lies ahead.", answer="return past & near & kept"),
    change("no window", "Your window hides nothing. Hide what is far and not kept.", answer="return past & (past | kept)"),
    change("kept inside the window", "You count the kept ones into the window, which shrinks it by `keep`. The window has its own `window` positions.", near="near = i - j < window - keep"),
    change("last kept", "You keep the last positions of the text. The first `keep` are meant: key j is kept where j < `keep`.", kept="kept = j >= T - keep"),
    change("inverted", "True and False are the wrong way round. Here True means may attend.", answer="return ~(past & (near | kept))"),
    change("numbers to add", "These are numbers to be added to scores. A mask in this course holds True (may attend) and False.", answer="return np.where(past & (near | kept), 0, -np.inf)"),
    change("axes swapped", "Rows and columns are exchanged. The row i is the query, and the column j is the key: j must not be later than i.", i="i = np.arange(T)", j="j = np.arange(T)[:, None]"),
    change("axes not crossed", "Both rows of numbers lie along the same axis. Queries are the rows: their numbers take `[:, None]`.", i="i = np.arange(T)"),
    change("a negative start", "In row i the window begins at i − window + 1, which is negative in the first rows. A negative start of a slice counts from the end, so the slice is empty or begins too late. Begin at 0 there: `max(0, …)`.", "mask = np.zeros((T, T), bool)\nfor i in range(T):\n    mask[i, i - window + 1 : i + 1] = True\n    mask[i, : min(keep, i + 1)] = True\nreturn mask"),
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
    change("not an outer product", "You multiply key and error entry by entry. Each entry of the key meets each of the error: `np.outer(k, …)`, (d_k, d_v).", write="change = k * error"),
    change("error squared", "You square the error, which loses its sign. The gradient of ½ error² is the error itself.", error="error = (v - old) ** 2"),
    change("the reading added", "You add what the memory says already. Add what it lacks, the error v − k @ S.", error="error = old"),
    change("read after writing", "v does not count in your error: it is left out, or cancels, because you read after v has been added. Read first: v − k @ S.", read="old = k @ (S + np.outer(k, v))"),
    change("divided by the sum of keys", "You divide as linear attention does. The delta rule needs no sum below a fraction bar.", answer="return S + rate * change / k.sum()"),
    change("row by row", "Your loop reads the memory anew after each row that it has written. Compute `v - k @ S` once, before the loop.", "S = S.copy()\nfor i in range(len(k)):\n    S[i] = S[i] + rate * k[i] * (v - k @ S)\nreturn S"),
)

# --- The bytes of a cache -----------------------------------------------------------------------------------------------

BYTES = (
    change("keys only", "You count one vector a token. A cache keeps two: a key and a value.", numbers="numbers = kv_heads * d_head"),
    change("query heads", "You count the heads of the queries. Queries are not kept, and `kv_heads` heads of keys and values serve them all.", numbers="numbers = 2 * heads * d_head"),
    change("query heads for one of the two", "You count the heads of the queries for the keys or for the values. Both have `kv_heads` heads.", numbers="numbers = (heads + kv_heads) * d_head"),
    change("heads of a group", "`heads // kv_heads` is how many query heads share one head of keys and values. `kv_heads` itself is the number of heads that are kept.", numbers="numbers = 2 * (heads // kv_heads) * d_head"),
    change("queries kept, too", "You count three vectors. The queries of the past are never asked again: two, a key and a value.", numbers=("numbers = 3 * kv_heads * d_head", "numbers = (heads + 2 * kv_heads) * d_head")),
    change("bits for bytes", "These are bits. A byte has eight of them: divide by 8.", answer="return numbers * rows * bits"),
    change("bits taken for bytes the other way", "You multiply by 8. Bits are smaller than bytes: divide by 8.", answer="return numbers * rows * bits * 8"),
    change("numbers not bytes", "`bits` does not count in your result. Each number has `bits` / 8 bytes.", answer=("return numbers * rows", "return numbers * rows / 8")),
    change("whole bytes", "You give each number one whole byte or more. Numbers of 4 bits take half a byte each: `bits / 8`.", answer=("return numbers * rows * max(bits // 8, 1)", "return numbers * rows * -(-bits // 8)")),
    change("always 2 bytes", "You take 16 bits for granted. Each number has `bits` / 8 bytes.", answer="return numbers * rows * 2"),
    change("always 4 bytes", "You take 32 bits for granted. Each number has `bits` / 8 bytes.", answer="return numbers * rows * 4"),
    change("window ignored", "Local layers keep all tokens in your count. They keep the last `window` only: `min(tokens, window)`.", local="rows = rows + local_layers * tokens"),
    change("window never filled", "You count the whole window, even where there are fewer tokens: `min(tokens, window)`.", local="rows = rows + local_layers * window"),
    change("larger of the two", "A local layer keeps the smaller of tokens and window: `min`.", local="rows = rows + local_layers * max(tokens, window)"),
    change("local layers forgotten", "You leave the local layers out. They keep `min(tokens, window)` each.", local=""),
    change("local layers twice", "You count the local layers among the full ones, too. Full layers are `layers - local_layers`.", everywhere="rows = layers * tokens"),
    change("all layers local", "You take every layer for a local one. Only `local_layers` of them keep a window.", everywhere="rows = 0", local="rows = layers * min(tokens, window)"),
    change("one layer", "You count one layer. Each layer has a cache of its own.", everywhere="rows = tokens", local=""),
    change("width forgotten", "You count one number a head. A key has `d_head` of them.", numbers="numbers = 2 * kv_heads"),
    change("heads forgotten", "You count one head. There are `kv_heads` of them.", numbers="numbers = 2 * d_head"),
    change("kilobytes", "Your result is in a larger unit, such as kilobytes. Bytes are asked for.", answer=("return numbers * rows * bits / 8 / 1024", "return numbers * rows * bits / 8 / 1e9", "return numbers * rows * bits / 8 / 2**20", "return numbers * rows * bits / 8 / 2**30")),
    change("local and global exchanged", "Local and global layers are exchanged: `layers - local_layers` of them keep all tokens.", everywhere="rows = local_layers * tokens", local="rows = rows + (layers - local_layers) * min(tokens, window)"),
    change("what is thrown away", "`tokens - window` is what a local layer throws away. It keeps `min(tokens, window)`.", local=("rows = rows + local_layers * max(0, tokens - window)", "rows = rows + local_layers * (tokens - window)")),
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
    change("twice the bits", "`2 * bits` is not 2^bits. In Python the power is `2**bits`.", step="step = (high - low) / (2 * bits - 1)"),
    change("minimum not added back", "You do not add the smallest number again at the end.", answer="return whole * step"),
    change("whole numbers returned", "These are the whole numbers that would be stored. Turn them back: multiply by the step, and add the smallest number.", answer="return whole"),
    change("minimum not taken off", "You round x divided by the step, so the levels are multiples of the step, and the smallest number is no level. Take the smallest number off before, and add it after.", whole="whole = np.round(x / step)", answer="return whole * step"),
    change("minimum added, never taken off", "You add the smallest number and have not taken it off before rounding. Take it off x first, then divide by the step and round.", whole="whole = np.round(x / step)"),
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
    mistakes=ROLLING,
    in_pytorch="""ago = torch.arange(T)[:, None] - torch.arange(T)
mask = (ago >= 0) & ((ago < window) | (torch.arange(T) < keep))
# As an attn_mask this hides keys, but saves no time. torch.nn.attention.flex_attention skips tiles that are all hidden.""",
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
    mistakes=DELTA,
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
    mistakes=BYTES,
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
    mistakes=ROUNDED,
    library=(rounded,),
    in_pytorch="""low, high = torch.aminmax(x, dim=axis, keepdim=True)
step = (high - low) / (2**bits - 1)
rounded = low + torch.round((x - low) / step.masked_fill(step == 0, 1)) * step""",
    praise="Ten arrays: rows and columns, 1 to 16 bits, numbers far from 0, numbers that are all alike.",
)

EXERCISES = (_ONLINE, _MASK, _ROUNDED, _BYTES, _DELTA)
