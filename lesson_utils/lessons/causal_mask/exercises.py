"""The exercises of notebook 06, and the ways to get them wrong, as learners type them."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from lesson_utils.lessons.causal_mask.gpts import Parameters, parameters
from lesson_utils.lessons.common_mistakes import OWN_SOFTMAX, answers, masks, weighing
from lesson_utils.maths import attention as library
from lesson_utils.maths import models, ops, positions
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.mistakes.exercise import Case, Exercise, both, change

# fmt: off

# --- The causal mask --------------------------------------------------------------------------------------------------

_INVERTED = change('inverted', 'True and False are the wrong way round. Here True means may attend: turn it around.', "np.triu(np.ones((T_q, T_k), bool), k=1 + T_k - T_q)", compare="return j > i + T_k - T_q")
_TRANSPOSED = change('transposed', 'This is the upper triangle, where the future is. Rows are queries, columns are keys; the past is on the left, so keep the lower triangle.', "np.triu(np.ones((T_q, T_k), bool), k=T_k - T_q)", compare="return j >= i + T_k - T_q")
_FROM_THE_START = change('queries counted from the start', 'You treat the queries as the *first* T_q positions. They are the last: query i stands at position i + T_k − T_q, so the diagonal moves to the right by T_k − T_q.', compare="return j <= i")
_TO_ADD = change('numbers to add', 'These are numbers to be added to scores. A mask in this course holds True (may attend) and False.', "np.where(np.tri(T_q, T_k, k=T_k - T_q) > 0, 0, -np.inf)", "np.where(np.tri(T_q, T_k, k=T_k - T_q) > 0, 0, -1e9)")
MASK = (
    _INVERTED,
    change('cannot see itself', "A query sees its own position, too: the last key that query i sees is its own, key i + T_k − T_q.", "np.tri(T_q, T_k, k=-1, dtype=bool)", compare="return j < i + T_k - T_q"),
    change('one too far', "Your limit is too high: the key behind a query's own is the very symbol that it has to predict. The last key that query i sees is the query's own, key i + T_k − T_q.", "np.tri(T_q, T_k, k=1, dtype=bool)", compare="return j <= i + T_k - T_q + 1"),
    _TRANSPOSED,
    _FROM_THE_START,
    both(_INVERTED, _FROM_THE_START, "np.triu(np.ones((T_q, T_k), bool), k=1)", "np.arange(T_k) > np.arange(T_q)[:, None]"),
    both(_TRANSPOSED, _FROM_THE_START, "np.triu(np.ones((T_q, T_k), bool))", "np.arange(T_k) >= np.arange(T_q)[:, None]"),
    change('moved the wrong way', 'You move the diagonal to the left. Query i stands at position i + T_k − T_q: move it to the right, by T_k − T_q.', compare=("return j <= i + T_q - T_k", "return j <= i - T_k")),
    change("moved by T_k", "You move the diagonal by another number than T_k − T_q. Query i stands at position i + T_k − T_q.", compare=("return j <= i + T_k", "return j <= i + T_q", "return j <= i + T_k - 1")),
    change('axes swapped', 'Your mask has a row for each key. Rows are queries: shape (T_q, T_k).', *(f"np.{f}" for f in ("tri(T_k, T_q, dtype=bool)", "tri(T_k, T_q, k=T_k - T_q, dtype=bool)", "tri(T_k, T_q, k=T_q - T_k, dtype=bool)")), i="i = np.arange(T_q)", j="j = np.arange(T_k)[:, None]", compare=("return j <= i + T_k - T_q", "return j <= i")),
    change("axes not crossed", "Both rows of numbers lie along the same axis. Queries are the rows: their numbers take `[:, None]`.", i="i = np.arange(T_q)"),
    change('square', 'Your mask is square. There are T_q queries and T_k keys: shape (T_q, T_k).', "np.tri(T_k, dtype=bool)", "np.tri(T_q, dtype=bool)", i="i = np.arange(T_k)[:, None]", compare="return j <= i"),
    _TO_ADD,
    both(_TO_ADD, _FROM_THE_START, "np.where(np.tri(T_q, T_k) > 0, 0, -np.inf)", "np.where(np.tri(T_q, T_k) > 0, 0, -1e9)"),
    change("everything visible", "Every query may see every key. Hide the future: query i sees key j only where j ≤ i + T_k − T_q.", "np.ones((T_q, T_k), bool)"),
    change("only itself", "Each query sees a single key. It may see its own key and all before it: query i sees key j where j ≤ i + T_k − T_q.", "np.eye(T_q, T_k, dtype=bool)", compare="return j == i + T_k - T_q"),
)

# --- Masked attention -------------------------------------------------------------------------------------------------

ATTENTION = (
    change('0/0', 'A query that sees nothing gets NaN: −∞ − (−∞) is NaN, and so is 0 / 0. It must get zero weights and a zero output: take `ops.softmax`, or subtract 0 where the maximum is −∞ and divide by 1 where the sum is 0.', "e = np.exp(scores) * mask\nw = e / e.sum(axis=-1, keepdims=True)\nreturn w @ V, w", weights=OWN_SOFTMAX),
    change("not stable", "`np.exp` of a large score overflows: exp(800) is ∞ in floats, and ∞ / ∞ is NaN. Set hidden scores to −∞ and use `ops.softmax`, which subtracts each row's maximum first.", *(f"e = np.exp(scores) * mask\ntotal = e.sum(axis=-1, keepdims=True)\nw = {w}\nreturn w @ V, w" for w in ("e / np.where(total == 0, 1, total)", "e / np.maximum(total, 1e-20)", "e / (total + 1e-9)")), *(f"e = np.where(mask, np.exp(scores), 0)\ntotal = e.sum(axis=-1, keepdims=True)\nw = {w}\nreturn w @ V, w" for w in ("e / np.where(total == 0, 1, total)", "e / np.maximum(total, 1e-20)")), weights=("e = np.exp(scores)\nweights = e / e.sum(axis=-1, keepdims=True)", "e = np.exp(scores)\ntotal = e.sum(axis=-1, keepdims=True)\nweights = e / np.where(total == 0, 1, total)", "e = np.exp(scores)\nweights = np.nan_to_num(e / e.sum(axis=-1, keepdims=True))")),
    change("an ε below the fraction bar", "You add ε to the sum. For a row that sees nothing, this comes too late: −∞ − (−∞) is NaN already. Subtract 0 in place of a maximum of −∞.", weights="e = np.exp(scores - scores.max(axis=-1, keepdims=True))\nweights = e / (e.sum(axis=-1, keepdims=True) + 1e-9)"),
    change('output mended, weights not', 'The output is free of NaN, but the weights are not. Mend the weights, then average with them.', weights=OWN_SOFTMAX, average=("output = np.nan_to_num(weights @ V)", "output = np.nan_to_num(weights) @ V")),
    change(
        'a finite number in place of −∞', 'A query that sees nothing still gets weights here, so its output is an average of what should be hidden. That happens with a finite number such as −1e9 in place of −∞, or when such a row is shown after all. Use −∞, and give such rows zero weights.',
        mask=("scores = np.where(mask, scores, -1e9)", "scores = np.where(mask, scores, -1e4)", "scores = np.where(mask, scores, np.finfo(scores.dtype).min)", "scores = scores + np.where(mask, 0, -1e9)", "scores = scores + np.where(mask, 0, -1e9).astype(scores.dtype)", "scores = scores + np.where(mask, 0, -1e4)", *(f"scores = scores - {n} * ~mask" for n in ("100", "1e3", "1e4", "1e9")), *(f"scores = np.where(mask, scores, -{n})" for n in ("100", "1e3", "1e30"))),
    ),
    *(m for m in masks() if m.name not in ("mask as an index", "not far enough below")),
    change('mask as an index', "`scores[mask]` needs a mask of exactly the scores' shape. `np.where` also takes one that broadcasts, such as a padding mask of shape (B, 1, T_k).", mask=[f"scores = scores.copy()\nscores[~mask] = {n}" for n in ("-np.inf", "-1e9")], weights=("weights = ops.softmax(scores)", OWN_SOFTMAX)),
    *weighing(),
    change('scaled again', 'You divide the scores by a root. They are scaled already: mask them, apply softmax, average.', weights=[f"weights = ops.softmax(scores / math.sqrt({size}.shape[-1]))" for size in ("V", "scores")]),
    change("weights transposed", "You average with the weights transposed. Row i of `weights` belongs to query i and meets the rows of V as it is: `weights @ V`.", average="output = weights.swapaxes(-1, -2) @ V"),
    change("values in front", "`V @ weights` does not fit. A row of weights meets the rows of V, one a key, in `weights @ V`.", average="output = V @ weights"),
    change("* in place of @", "`*` multiplies entry by entry. The weighted average is a matrix product: `weights @ V`.", average="output = weights * V"),
    change("scores averaged", "You average with the scores, not with the weights: `weights @ V`.", average="output = np.where(mask, scores, 0) @ V"),
    change("output masked", "The mask acts on your output, not on your scores. Set hidden scores to −∞ before softmax: what is hidden gets weight 0.", mask="", average="output = np.where(mask.any(axis=-1, keepdims=True), weights @ V, 0)"),
    *answers("output", "weights"),
    change("scores returned", "Your second result is the scores. Return the weights in their place, which are what softmax makes of the scores.", answer="return output, scores"),
)

# --- Sampling -----------------------------------------------------------------------------------------------------------

_ORDER = "order = np.argsort(-logits)\n"

SAMPLING = (
    change('temperature ignored', 'The temperature has no effect. Divide the logits by it, before softmax.', heat=""),
    change('multiplied by the temperature', 'Your logits are multiplied by the temperature, so a higher temperature makes the model more certain. It should make the model less certain: divide by it.', heat="kept = kept * temperature"),
    change('temperature after softmax', 'The temperature divides or multiplies your probabilities. That changes all of them alike, and their sum with them. Divide the logits by it.', heat="", answer=("return ops.softmax(kept) / temperature", "return ops.softmax(kept) * temperature", "p = ops.softmax(kept) / temperature\nreturn np.clip(p, 0, 1)")),
    change("to the power of the temperature", "A power of the probabilities multiplies the logits, and yours are multiplied by the temperature. Divide the logits by it, before softmax.", heat="", answer=("p = ops.softmax(kept) ** temperature\nreturn p / p.sum()", "return ops.softmax(kept) ** temperature")),
    change("to a power, not shared out", "You raise the probabilities to the power 1 / temperature, which changes their sum. Divide the logits by the temperature, before softmax.", heat="", answer="return ops.softmax(kept) ** (1 / temperature)"),
    change("subtracted", "You subtract the temperature, or add it. Softmax does not see a shift. Divide the logits by it.", heat=("kept = kept - temperature", "kept = kept + temperature")),
    change("divided by the square", "You divide by the square, or by the root, of the temperature. Divide by it as it is.", heat=("kept = kept / temperature**2", "kept = kept / np.sqrt(temperature)")),
    change("not stable", "`np.exp` of a large number overflows, as logits at temperature 0.001 are. Subtract the largest first, or use `ops.softmax`.", answer="e = np.exp(kept)\nreturn e / e.sum()"),
    change("powers that underflow", "You raise probabilities to the power 1 / temperature. At temperature 0.001 that is p^1000, which is 0 in floats, and 0 / 0 is NaN. Divide the logits before softmax.", "p = ops.softmax(logits) ** (1 / temperature)\np = np.where(p >= np.sort(p)[-top_k], p, 0)\nreturn p / p.sum()", heat="", answer="p = ops.softmax(kept) ** (1 / temperature)\nreturn p / p.sum()"),
    change("not normalised", "These are exponentials. Divide them by their sum. `ops.softmax` does both, and does not overflow.", answer=("return np.exp(kept)", "return np.exp(kept - kept.max())")),
    change("logarithms", "These are the logarithms of the probabilities. `ops.softmax` gives the probabilities themselves.", answer="return ops.log_softmax(kept)"),
    change('top_k ignored', 'Every symbol can still be drawn. Set the logits of all but the `top_k` largest to −∞.', cut="kept = logits"),
    change('cut without sharing out', 'What remains sums to less than 1. Cut before softmax, with −∞, or divide by the new sum after it.', cut="kept = logits", answer="return np.where(logits >= limit, ops.softmax(kept), 0)"),
    change('one too few', 'You keep top_k − 1 symbols. The last that stays is the `top_k`-th largest, `np.sort(logits)[-top_k]`: all logits `>=` it stay.', f"{_ORDER}kept = np.full_like(logits, -np.inf)\nkept[order[: top_k - 1]] = logits[order[: top_k - 1]]\nreturn ops.softmax(kept / temperature)", cut="kept = np.where(logits > limit, logits, -np.inf)"),
    change('one too many', 'You keep top_k + 1 symbols. The last that stays is the `top_k`-th largest, `np.sort(logits)[-top_k]`.', f"{_ORDER}kept = np.full_like(logits, -np.inf)\nkept[order[: top_k + 1]] = logits[order[: top_k + 1]]\nreturn ops.softmax(kept / temperature)", limit="limit = np.sort(logits)[-top_k - 1]"),
    change('the unlikeliest', 'You keep the smallest logits. `np.sort(logits)` and `np.argsort(logits)` put the smallest first: the largest are at the end.', limit="limit = np.sort(logits)[top_k - 1]", cut="kept = np.where(logits <= limit, logits, -np.inf)"),
    change('counted from the wrong end', 'Your limit is about the `top_k`-th *smallest* logit, counted from the wrong end. The `top_k`-th largest is `np.sort(logits)[-top_k]`: `np.sort` puts the smallest first.', limit=("limit = np.sort(logits)[top_k - 1]", "limit = np.sort(logits)[top_k]")),
    change("largest first, counted from the end", "Your limit is about the `top_k`-th *smallest* logit. With the largest first, take `[top_k - 1]`; with the smallest first, `[-top_k]`.", limit=("limit = np.sort(logits)[::-1][-top_k]", "limit = np.sort(logits)[::-1][top_k]")),
    change('the largest cut', 'You hide the likeliest and keep the others. Turn it around: keep what is `>=` the limit.', cut=("kept = np.where(logits <= limit, logits, -np.inf)", "kept = np.where(logits < limit, logits, -np.inf)", "kept = np.where(logits >= limit, -np.inf, logits)")),
    change('the first of the vocabulary', 'You keep the first `top_k` symbols of the vocabulary, whatever their logits. Keep those with the largest logits.', cut="kept = np.where(np.arange(len(logits)) < top_k, logits, -np.inf)"),
    change('cut to 0', 'You set the other logits to 0. But exp(0) is 1, and they can still be drawn. Set them to −∞.', cut="kept = np.where(logits >= limit, logits, 0)"),
    change("cut with too small a number", "You cut with a number that other logits may lie below, or that the temperature brings near. Set what is cut off to −∞.", cut=[f"kept = np.where(logits >= limit, logits, {n})" for n in ("-1", "-10", "-100")]),
    change("limit taken of other numbers", "Your limit and what you compare with it are not the same numbers: one is divided by the temperature, the other not.", cut=("kept = np.where(logits / temperature >= limit, logits, -np.inf)", "kept = np.where(logits >= limit / temperature, logits, -np.inf)")),
    change('sorted', 'Your probabilities are in the order of their size. Entry i must belong to symbol i: sort only to find the limit.', answer=("return -np.sort(-ops.softmax(kept))", "return np.sort(ops.softmax(kept))")),
    change('only the kept', 'You return `top_k` probabilities, and nobody knows whose they are. Return one for each symbol, 0 for those cut off.', *(f"ops.softmax({x} / temperature)" for x in ("-np.sort(-logits)[:top_k]", "np.sort(logits)[-top_k:]")), answer="return ops.softmax(kept[kept > -np.inf])"),
    change('logits returned', 'These are logits. Turn them into probabilities: `ops.softmax`.', answer="return kept"),
    change("places returned", "You return the places of the symbols. Return their probabilities, one for each symbol.", "np.argsort(logits)[-top_k:]", "np.argsort(-logits)[:top_k]"),
    change("places for ranks", "You keep the symbols where `np.argsort(-logits)` is below top_k. That is the list of the places in order, and not the rank of each symbol. The first top_k entries of this list are the places to keep.", cut="kept = np.where(np.argsort(-logits) < top_k, logits, -np.inf)"),
    change("the likeliest only", "All the probability goes to the likeliest symbol. Only with top_k = 1 is that so.", cut="kept = np.where(logits == logits.max(), logits, -np.inf)"),
    change("put back with the same order", "You put the probabilities back with the order that sorted them. The way back is the inverse of this order: `np.argsort` of it.", "order = np.argsort(-logits)\nkept = np.where(np.arange(len(logits)) < top_k, logits[order], -np.inf)\nreturn ops.softmax(kept / temperature)[order]"),
)

# --- A decoding step with a cache -------------------------------------------------------------------------------------

_SCORE, _SCALE = "scores = q @ {}.T", "scores = scores / math.sqrt({})"

DECODING = (
    change('does not see itself', 'Your query looks at the old keys only. A position may attend to itself as well: append the new key and value first, then attend.', score="scores = q @ K[:-1].T", weights=("weights = ops.softmax(scores)", "weights = ops.softmax(scores) if scores.size else scores"), average="output = weights @ V[:-1]"),
    change("attends before the append", "Your weights and the values do not belong together: one of them counts the new position, and the other does not. Append the new key and the new value first. Then score all the keys, and average all the values.", "K = np.concatenate([K, x @ W_K])\nweights = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1]))\noutput = weights @ V\nV = np.concatenate([V, x @ W_V])\nreturn output, K, V", score="scores = q @ K[:-1].T"),
    change("the new key nowhere", "You neither append the new key and value nor look at them. Append first, then attend to all.", grow_K="", grow_V=""),
    change('sees only itself', 'Your query looks at its own key only: the past is lost. Attend to all keys, the old ones and the new one.', score=_SCORE.format("k"), average="output = weights @ v"),
    change("cache thrown away", "You throw the old rows away. The caches grow by the new key and value: `np.concatenate([K, …])`, and the same with V.", grow_K="K = k", grow_V="V = v"),
    change('cache not grown', 'You return the caches as they came. The next step needs the new key and value in them.', answer="return output, K[:-1], V[:-1]"),
    change("only the keys grown", "Only the cache of keys grows in what you return. The cache of values must grow, too: return it with the new row, x W_V.", answer="return output, K, V[:-1]"),
    change("the new rows returned", "You return the new key and value alone. Return the caches with one row more.", answer="return output, k, v"),
    change('put in front', 'You put the new key and value in front of the old ones. The newest position comes last: `np.concatenate([K, …])`, and the same with V.', grow_K="K = np.concatenate([k, K])", grow_V="V = np.concatenate([v, V])"),
    change("keys put in front", "You put the new key in front of the old ones. The newest position comes last: `np.concatenate([K, …])`.", grow_K="K = np.concatenate([k, K])"),
    change("values put in front", "You put the new value in front of the old ones. The newest position comes last: `np.concatenate([V, …])`.", grow_V="V = np.concatenate([v, V])"),
    change('the token itself cached', 'You put x into the cache as it is. What is kept are its key, x W_K, and its value, x W_V.', k=("k = x", "k = x @ W_K"), v="v = x"),
    change("the token itself as key", "You put x into the cache of keys as it is. What is kept is its key, x W_K.", k="k = x"),
    change('query not projected', 'You compare x itself with the keys. The query is x W_Q.', q="q = x"),
    change('matrices swapped', 'The matrices are mixed up: the query comes from W_Q, the new key from W_K, the new value from W_V.', q="q = x @ W_K", k="k = x @ W_Q"),
    change("key and value swapped", "The new key comes from W_K, the new value from W_V; yours are the other way round.", k="k = x @ W_V", v="v = x @ W_K"),
    change("query from W_K", "The query comes from W_Q, not from W_K.", q="q = x @ W_K"),
    change("key from W_Q", "The new key comes from W_K, not from W_Q.", k="k = x @ W_Q"),
    change("value from W_K", "The new value comes from W_V, not from another matrix.", v=("v = x @ W_K", "v = x @ W_Q")),
    change("matrix transposed", "You transpose a matrix. x is a row, and the matrices stand behind it as they are: `x @ W_Q`.", q="q = x @ W_Q.T"),
    change('no scale', 'Your scores reach softmax without the scale: divide them by √d_k, `math.sqrt(K.shape[-1])`.', scale=""),
    change('another scale', 'You divide by something else than √d_k. d_k is the width of a key: `math.sqrt(K.shape[-1])`.', scale=[_SCALE.format(n) for n in ("len(K)", "V.shape[-1]", "x.shape[-1]", "K.shape[0] - 1 or 1")] + ["scores = scores / K.shape[-1]", "scores = scores / len(K)"]),
    change("multiplied by the root", "You multiply the scores by √d_k. Divide them by it.", scale="scores = scores * math.sqrt(K.shape[-1])"),
    change("keys not transposed", "You multiply the query by the keys as they are. Each key is a row: transpose the keys, the new one among them, (1, d_k) @ (d_k, t + 1).", score="scores = q @ K"),
    change("the other way round", "Your scores are a column, (t + 1, 1): the keys times the query. The query is the row: it stands in front, and the keys are transposed, (1, d_k) @ (d_k, t + 1).", score="scores = K @ q.T"),
    change('masked from the start', 'Your mask treats the query as position 0, so it sees only the first key. It is the last position: it needs no mask.', mask="scores = np.where(np.arange(len(K)) <= 0, scores, -np.inf)"),
    change("causal mask of the wrong size", "Your mask hides keys from the new position. It is the last one and sees them all: no mask is needed.", mask=("scores = np.where(np.arange(len(K)) < len(K) - 1, scores, -np.inf)", "scores = np.where(np.tri(1, len(K), dtype=bool), scores, -np.inf)")),
    change('down the columns', 'All your weights are 1: softmax runs over an axis of length 1. It must run over the t + 1 keys.', weights="weights = ops.softmax(scores, axis=0)"),
    change('no softmax', 'You average with the scores themselves. Turn them into weights first: `ops.softmax`.', weights="weights = scores"),
    change("not divided by the sum", "You divide the scores by their sum, without exponentials. Take `ops.softmax`.", weights="weights = scores / scores.sum()"),
    change("keys averaged", "You average the keys. The weights say which positions fit; what is averaged are the values, the new one among them.", average="output = weights @ K"),
    change("output as a vector", "Your output has lost an axis. One new position makes a row: shape (1, d_v).", average="output = (weights @ V)[0]"),
    change('joined side by side', 'You join old and new side by side. A new position is a new *row*: `np.concatenate([K, …])`, along axis 0.', grow_K=("K = np.concatenate([K, k], axis=-1)", "K = np.hstack([K, k])"), grow_V=("V = np.concatenate([V, v], axis=-1)", "V = np.concatenate([V, v])")),
    change('np.append without axis', '`np.append` without an axis makes one long row of everything. Use `np.concatenate([K, …])`, or `axis=0`.', grow_K="K = np.append(K, k)", grow_V=("V = np.append(V, v)", "V = np.concatenate([V, v])")),
    change("stacked", "`np.stack` makes a new axis, and `np.concatenate` wants both arrays in one list: `np.concatenate([K, …])`.", grow_K=("K = np.stack([K, k])", "K = np.concatenate(K, k)")),
    change("weights returned as well", "You return the weights, which are not asked for. Three things are: the output, and the two caches with their new rows.", answer=("return output, weights, K, V", "return output, weights")),
    *(m for m in answers("output", "K", "V") if m.name == "only the output"),
    change('caches first', 'Your results are in another order: `return output, K, V`.', answer="return K, V, output"),
    change("V before K", "The caches are in the wrong order in what you return. First comes the output, then the keys, then the values.", answer="return output, V, K"),
)

# --- A whole GPT --------------------------------------------------------------------------------------------------------

_LAYER = {
    "norm_1": "y = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)",
    "Q": "Q = my_split_heads(y @ p.W_Q, num_heads)  # (B, h, T, d_k)",
    "K": "K = my_split_heads(y @ p.W_K, num_heads)",
    "V": "V = my_split_heads(y @ p.W_V, num_heads)",
    "attend": "heads, _ = my_attention(Q, K, V, mask)",
    "add_1": "x = x + my_merge_heads(heads) @ p.W_O",
    "norm_2": "y = my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)",
    "add_2": "x = x + my_feed_forward(y, p.W_1, p.b_1, p.W_2, p.b_2)",
}


def gpt_layers(over: str = "layers", **lines: str) -> str:
    """Return the loop over the layers, with lines of it replaced; "" leaves one out."""
    body = "\n".join(line for line in ({**_LAYER, **lines}).values() if line)
    return f"for p in {over}:\n{textwrap.indent(body, '    ')}"


_POST_1, _POST_2 = (f"x = my_layer_norm(x + {{}}, p.gamma_{i}, p.beta_{i}, 1e-5)" for i in (1, 2))
_ATTENDED, _FED = "my_merge_heads(heads) @ p.W_O", "my_feed_forward({}, p.W_1, p.b_1, p.W_2, p.b_2)"
_OWN = "heads = ops.softmax(np.where(mask, Q @ K.swapaxes(-1, -2){}, -np.inf)) @ V"
_POSITIONS, _LAST = "my_table(T, d_model)", "my_layer_norm(x, gamma, beta, 1e-5)"

GPT = (
    change("embedding not scaled", "The embeddings are not multiplied by √d_model: the positions would drown them. `table[ids] * math.sqrt(d_model)`.", embed="x = table[ids]"),
    change("positions scaled as well", "Your positions are multiplied by √d_model, too. Scale the embeddings alone, then add the positions as they are.", embed="x = table[ids]", place=f"x = (x + {_POSITIONS}) * math.sqrt(d_model)"),
    change("embedding divided", "You divide the embeddings by √d_model. Multiply: the table's numbers are small, as an output layer needs them.", embed="x = table[ids] / math.sqrt(d_model)"),
    change("no positions", "No positions are added: the vectors alone do not tell what stands where. Add `my_table(T, d_model)` to the embeddings.", place=""),
    change("positions for the batch", "Your positions run along the batch, not along the text. `my_table(T, d_model)` lines up with (B, T, d_model) by itself.", place=("x = x + my_table(len(ids), d_model)[:, None]", "x = x + my_table(len(ids), d_model)")),
    change("positions from 1", "Your positions begin with 1. They are counted from 0: `my_table(T, d_model)`.", place="x = x + my_table(T + 1, d_model)[1:]"),
    change("positions in each layer", "You add the positions in each layer. They are added once, before the first.", place="", layers=gpt_layers(norm_1=f"x = x + {_POSITIONS}\ny = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)")),
    change("no mask", "Nothing hides the future: each position sees the symbol that it has to predict. Give attention a mask: `my_causal_mask(T, T)`.", mask="mask = None", layers=gpt_layers(attend="heads, _ = my_attention(Q, K, V)")),
    change("mask inverted", "Your mask hides the past and shows the future. Here True means may attend (some of PyTorch's functions have it the other way round).", mask=("mask = ~my_causal_mask(T, T)", "mask = np.triu(np.ones((T, T), bool), k=1)")),
    change("mask transposed", "Your mask shows each position itself and what comes after it. Take `my_causal_mask(T, T)` as it is.", mask="mask = my_causal_mask(T, T).T"),
    change("post-norm", "You norm the stream x after adding, norm(x + f(x)), as the paper of 2017 did. This model is pre-norm: x + f(norm(x)).", layers=gpt_layers(norm_1="y = x", add_1=_POST_1.format(_ATTENDED), norm_2="", add_2=_POST_2.format(_FED.format("x")))),
    change("no norm before attention", "Attention reads the stream as it is. Queries, keys and values all come from a normed copy of the stream: `my_layer_norm(…, p.gamma_1, p.beta_1, 1e-5)`.", layers=(gpt_layers(norm_1="y = x"), gpt_layers(norm_1="", Q="Q = my_split_heads(x @ p.W_Q, num_heads)", K="K = my_split_heads(x @ p.W_K, num_heads)", V="V = my_split_heads(x @ p.W_V, num_heads)"))),
    change("no norms in the layers", "Both halves read the stream as it is. Each reads a normed copy: p.gamma_1 and p.beta_1 for attention, p.gamma_2 and p.beta_2 for the feed-forward layer.", layers=gpt_layers(norm_1="y = x", norm_2="y = x")),
    change("values from the stream", "Your values come from the stream as it is. Queries, keys and values all come from its norm, the layer's first.", layers=gpt_layers(V="V = my_split_heads(x @ p.W_V, num_heads)")),
    change("no norm before feed-forward", "The feed-forward layer reads the stream as it is. It should read a normed copy of the stream: `my_layer_norm(…, p.gamma_2, p.beta_2, 1e-5)`.", layers=gpt_layers(norm_2="", add_2="x = x + " + _FED.format("x"))),
    change("no residual connection around attention", "Attention's result replaces the stream. Add the result to the stream.", layers=gpt_layers(add_1=f"x = {_ATTENDED}")),
    change("no residual connection around feed-forward", "The feed-forward layer's result replaces the stream. Add the result to the stream.", layers=gpt_layers(add_2="x = " + _FED.format("y"))),
    change("no residual connections", "The results of both halves replace the stream. Add each result to the stream.", layers=gpt_layers(add_1=f"x = {_ATTENDED}", add_2="x = " + _FED.format("y"))),
    change("added to the normed copy", "You add to the normed copy. Add to the stream itself: the normed copy is only what a half reads.", layers=(gpt_layers(add_1=f"x = y + {_ATTENDED}", add_2="x = y + " + _FED.format("y")), gpt_layers(add_1=f"x = y + {_ATTENDED}"), gpt_layers(add_2="x = y + " + _FED.format("y")), gpt_layers(norm_1="x = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)\ny = x", norm_2="x = my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)\ny = x"))),
    change("both halves side by side", "The feed-forward layer reads the stream as it was before attention. It should read the new one: norm the stream again, after attention has been added.", layers=(gpt_layers(norm_2="", add_2="x = x + " + _FED.format("y")), gpt_layers(add_1="z = my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)\nx = x + " + _ATTENDED, norm_2="", add_2="x = x + " + _FED.format("z")))),
    change("the other way round", "Feed-forward comes first, then attention. In each layer attention comes first.", layers=gpt_layers(norm_1=_LAYER["norm_2"] + "\n" + _LAYER["add_2"] + "\n" + _LAYER["norm_1"], norm_2="", add_2="")),
    change("one norm twice", "Both halves have the same norm. The second has its own: p.gamma_2 and p.beta_2.", layers=gpt_layers(norm_2="y = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)")),
    change("norms swapped", "The norms are mixed up: p.gamma_1 and p.beta_1 stand before attention, p.gamma_2 and p.beta_2 before the feed-forward layer.", layers=gpt_layers(norm_1="y = my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)", norm_2="y = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)")),
    change("matrices swapped", "The matrices are mixed up: queries come from p.W_Q, keys from p.W_K, values from p.W_V.", layers=(gpt_layers(Q="Q = my_split_heads(y @ p.W_K, num_heads)", K="K = my_split_heads(y @ p.W_Q, num_heads)"), gpt_layers(K="K = my_split_heads(y @ p.W_V, num_heads)", V="V = my_split_heads(y @ p.W_K, num_heads)"))),
    change("one head", "All heads are one: nothing is split. Each of `num_heads` has its own columns: `my_split_heads(… @ p.W_Q, num_heads)`.", layers=gpt_layers(Q="Q = y @ p.W_Q", K="K = y @ p.W_K", V="V = y @ p.W_V", attend="heads, _ = my_attention(Q, K, V, mask)", add_1="x = x + heads @ p.W_O")),
    change("heads scrambled", "`reshape` alone mixes tokens and heads. Cut each token's row, then let two axes change places: `my_split_heads`.", layers=gpt_layers(Q="B, h, d_k = len(ids), num_heads, d_model // num_heads\nQ = (y @ p.W_Q).reshape(B, h, T, d_k)", K="K = (y @ p.W_K).reshape(B, h, T, d_k)", V="V = (y @ p.W_V).reshape(B, h, T, d_k)")),
    change("merged by reshape", "`reshape` alone does not put the heads of a token side by side: their axis must come back first. `my_merge_heads` does both.", layers=gpt_layers(add_1="x = x + heads.reshape(x.shape) @ p.W_O")),
    change("heads not merged", "The heads stand apart, (B, h, T, d_k). Put them side by side before W_O, with `my_merge_heads`.", layers=gpt_layers(add_1="x = x + heads @ p.W_O")),
    change("W_O missing", "W_O is missing: it mixes what the heads have found. Multiply the merged heads by it: `my_merge_heads(…) @ p.W_O`.", layers=gpt_layers(add_1="x = x + my_merge_heads(heads)")),
    change("weights taken for outputs", "`my_attention` returns output and weights; you take the second. `heads, _ = my_attention(…)`.", layers=gpt_layers(attend="_, heads = my_attention(Q, K, V, mask)")),
    change("both results taken", "`my_attention` returns two things, output and weights, and you keep them as one. `heads, _ = my_attention(…)`.", layers=gpt_layers(attend="heads = my_attention(Q, K, V, mask)")),
    change("scores not scaled", "Your scores are not divided by √d_k, the root of the width of a head, d_k = d_model / num_heads.", layers=gpt_layers(attend=_OWN.format(""))),
    change("scores scaled by d_model", "You divide the scores by √d_model. A head is narrower, d_k = d_model / num_heads: divide by √d_k.", layers=gpt_layers(attend=_OWN.format(" / math.sqrt(d_model)"))),
    change("scores scaled without root", "You divide the scores by d_k, the width of a head. Divide by its root, √d_k.", layers=gpt_layers(attend=_OWN.format(" / Q.shape[-1]"))),
    change("keys twice", "The keys are averaged. What attention averages are the values, which are made with p.W_V.", layers=(gpt_layers(attend="heads, _ = my_attention(Q, K, K, mask)"), gpt_layers(attend="heads, _ = my_attention(Q, V, K, mask)"))),
    change("no attention", "Only the feed-forward half counts: no position hears of another. Attention comes first in each layer: add its result to x.", layers=gpt_layers(norm_1="", Q="", K="", V="", attend="", add_1="")),
    change("no feed-forward", "Only the attention half counts. Each layer has a second half: add to the stream what the feed-forward layer makes of its norm.", layers=gpt_layers(norm_2="", add_2="")),
    change("the first layer only", "Only one layer counts. The loop goes over all of `layers`, and each layer reads the stream as the layer before it left it.", layers=(gpt_layers("layers[:1]"), gpt_layers("layers[-1:]"))),
    change("stopped in the loop", "Only the first layer counts, as when `return` stands inside the loop. Norm and logits come behind the loop over all layers.", layers=gpt_layers() + f"\n    x = {_LAST}\n    return x @ table.T", norm="", answer=""),
    change("layers in reverse", "You go through the layers from the last to the first.", layers=gpt_layers("layers[::-1]")),
    change("each layer from the start", "Only the last layer counts, as when each begins with the embeddings again. It should go on from what the one before it gave: one stream for all.", layers="start = x\n" + gpt_layers(norm_1="x = start\n" + _LAYER["norm_1"])),
    change("last norm missing", "The last norm is missing: before the logits, norm the stream with `my_layer_norm(…, gamma, beta, 1e-5)`.", norm=""),
    change("last norm in each layer", "The last norm stands inside the loop, after each layer. It comes once, behind the loop.", norm="", layers=gpt_layers() + f"\n    x = {_LAST}"),
    change("probabilities", "You return probabilities, or their logarithms. Logits are asked for: no softmax at the end.", answer=("return ops.softmax(x @ table.T)", "return ops.log_softmax(x @ table.T)")),
    change("the last position only", "You return the last position alone. Each position predicts: (B, T, V).", answer=("return (x @ table.T)[:, -1]", "return x[:, -1] @ table.T")),
    change("the stream returned", "You return vectors, (B, T, d_model). The dot products of the last norm's result with the table's rows, `… @ table.T`, are the logits.", answer="return x"),
    change("table not transposed", "`… @ table` does not fit: each vector should meet each symbol's row of the table, as in `… @ table.T`.", answer="return x @ table"),
    change("logits scaled", "You scale the logits. √d_model belongs to the embeddings only: the logits are `… @ table.T`, and nothing more.", answer=("return x @ table.T * math.sqrt(d_model)", "return x @ table.T / math.sqrt(d_model)")),
    change("symbols returned", "You return the likeliest symbols. Return the logits; drawing comes later.", answer="return (x @ table.T).argmax(axis=-1)"),
    change("cut and merged by reshape", "`reshape` alone mixes tokens and heads, on the way in and on the way back. Take `my_split_heads` and `my_merge_heads`.", layers=gpt_layers(Q="B, h, d_k = len(ids), num_heads, d_model // num_heads\nQ = (y @ p.W_Q).reshape(B, h, T, d_k)", K="K = (y @ p.W_K).reshape(B, h, T, d_k)", V="V = (y @ p.W_V).reshape(B, h, T, d_k)", add_1="x = x + heads.reshape(x.shape) @ p.W_O")),
)

# fmt: on

# --- The causal mask ------------------------------------------------------------------------------------------------


def _mask_cases(rng: np.random.Generator) -> Sequence[Case]:
    sizes = ((4, 4), (2, 5), (3, 7), (1, 6), (5, 6), (1, 1))
    return [Case(f"T_q = {T_q} and T_k = {T_k}", (T_q, T_k)) for T_q, T_k in sizes]


_MASK = Exercise(
    name="causal_mask",
    called="my_causal_mask",
    takes="T_q, T_k",
    task="""The causal mask for the last T_q of T_k positions.

T_q: how many queries, at least 1. T_k: how many keys, at least T_q. Returns
booleans, (T_q, T_k), True = may attend. NumPy; no `attention.causal_mask`.""",
    reference=library.causal_mask,
    steps={
        "i": "i = np.arange(T_q)[:, None]  # (T_q, 1)",
        "j": "j = np.arange(T_k)  # (T_k,)",
        "compare": "return j <= i + T_k - T_q  # (T_q, T_k)",
    },
    cases=_mask_cases,
    returns=("mask",),
    hints=(
        "Where does query i stand? With 2 queries and 5 keys, the queries stand at positions 3 and 4.",
        "Query i stands at position i + T_k − T_q, and may see every key j up to there.",
        "Let NumPy compare all pairs: `np.arange(T_q)[:, None]` is a column of i, `np.arange(T_k)` a row of j. (`np.tri` with "
        "`k=T_k - T_q` does the same.)",
    ),
    mistakes=MASK,
    library=(library.causal_mask,),
    praise="Six shapes, from a whole sequence at once to one query with a long past, which sees everything.",
    in_pytorch="""mask = torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)
# F.scaled_dot_product_attention takes this mask as attn_mask. Its is_causal=True begins at the top left, which is
# wrong for new queries behind a cache. In nn.MultiheadAttention True means hidden, so it takes ~mask.""",
)

# --- Masked attention -----------------------------------------------------------------------------------------------


def _masked_reference(scores: Array, V: Array, mask: Mask) -> tuple[Array, Array]:
    weights = ops.softmax(np.where(mask, scores, -np.inf))
    return weights @ V, weights


def _masked_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *sizes: int, leading: tuple[int, ...] = (), empty: bool = False, **kinds: type) -> Case:
        T_q, T_k, d_v = sizes
        dtype = kinds.get("dtype", np.float64)
        mask = rng.random((*leading, T_q, T_k)) < 0.5
        mask[..., 1] |= ~mask.any(axis=-1)
        if empty:
            mask[..., T_q // 2, :] = False
        arrays: list[Array] = [rng.normal(size=(*leading, *shape)).astype(dtype) for shape in ((T_q, T_k), (T_k, d_v))]
        return Case(label, (*arrays, mask))

    batch = case("a batch of 2 with a padding mask, (2, 1, T_k)", 3, 5, 4, leading=(2,))
    scores, V, _ = batch.arguments
    loud, loud_V, loud_mask = case("", 4, 5, 2, empty=True).arguments
    one = np.array([[True], [False], [True]])
    return [
        case("3 queries and 5 keys", 3, 5, 4),
        case("a query that may attend to nothing", 4, 6, 3, empty=True),
        Case(batch.label, (scores, V, library.padding_mask(np.array([3, 0]), 5))),
        case("leading axes (2, 3)", 3, 4, 5, leading=(2, 3), empty=True),
        Case("scores of ±800, hidden ones far above", (800 * loud + 3000 * ~loud_mask, loud_V, loud_mask)),
        case("float32 input", 5, 3, 2, empty=True, dtype=np.float32),
        Case("scores near −3 · 10⁹", (loud - 3e9, loud_V, loud_mask)),
        Case("one mask for all queries, (T_k,)", (*case("", 3, 6, 4).arguments[:2], np.arange(6) < 4)),
        Case("a single key, hidden from one of 3 queries", (rng.normal(size=(3, 1)), rng.normal(size=(1, 2)), one)),
        Case("a mask that hides all", (*case("", 2, 4, 3).arguments[:2], np.zeros((2, 4), bool))),
    ]


_ATTENTION = Exercise(
    name="masked_attention",
    called="my_masked_attention",
    takes="scores, V, mask",
    task="""Weights and output from scores that are scaled already.

scores: (..., T_q, T_k), of any size. V: (..., T_k, d_v). mask: booleans that broadcast to
the scores, True = may attend; a query that may attend to nothing gets zeros.
Returns `output, weights`, (..., T_q, d_v) and (..., T_q, T_k). NumPy, and `ops.softmax`.
The arguments stay as they were.""",
    reference=_masked_reference,
    steps={
        "mask": "scores = np.where(mask, scores, -np.inf)",
        "weights": "weights = ops.softmax(scores)  # a row of −∞ becomes zeros; a softmax of your own must mind 0/0",
        "average": "output = weights @ V  # (..., T_q, d_v)",
        "answer": "return output, weights",
    },
    cases=_masked_cases,
    returns=("output", "weights"),
    hints=(
        "First hide, then softmax, then average. What does softmax divide by, in a row where all is hidden?",
        "`np.where(mask, scores, -np.inf)` hides, and also works for a mask that broadcasts. `ops.softmax` gives zeros for a row "
        "of nothing but −∞.",
        "With a softmax of your own: exponentiate, multiply by `mask`, and divide by the sum, or by 1 where the sum is 0.",
    ),
    mistakes=ATTENTION,
    library=(library.scaled_dot_product_attention,),
    in_pytorch="""weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
weights = weights.masked_fill(~mask, 0)  # where all is hidden, softmax has given NaN
output = weights @ V""",
    praise="Ten cases: rows that see nothing, masks that broadcast, scores of 800 and −3 · 10⁹, float32. No NaN, and no mean of what is hidden.",
)

# --- Sampling -------------------------------------------------------------------------------------------------------


def _sampling_cases(rng: np.random.Generator) -> Sequence[Case]:
    settings = (
        (7, 0.5, 2),
        (9, 2.0, 3),
        (6, 1.0, 2),
        (5, 0.7, 5),
        (8, 1.5, 1),
        (30, 0.8, 10),
        (11, 0.001, 4),
        (1, 0.7, 1),
    )
    cases = [Case(f"{V} logits, temperature {t}, top_k {k}", (rng.normal(size=V) + 1, t, k)) for V, t, k in settings]
    close = 1 + 0.002 * rng.normal(size=6)
    cases.append(Case("6 logits that are nearly equal, temperature 0.001, top_k 4", (close, 0.001, 4)))
    return [*cases, Case("10 logits near −2000, temperature 1.2, top_k 3", (rng.normal(size=10) - 2000, 1.2, 3))]


_SAMPLING = Exercise(
    name="sampling_probabilities",
    called="my_probabilities",
    takes="logits, temperature, top_k",
    task="""The probabilities from which the next symbol is drawn.

logits: (V,), no two of them equal. temperature: above 0, also 0.001. top_k: from 1 to V.
Returns (V,): softmax of the `top_k` largest logits at this temperature, 0 for
all others. NumPy, and `ops.softmax`. logits stay as they were.""",
    steps={
        "limit": "limit = np.sort(logits)[-top_k]  # the top_k-th largest",
        "cut": "kept = np.where(logits >= limit, logits, -np.inf)",
        "heat": "kept = kept / temperature",
        "answer": "return ops.softmax(kept)",
    },
    cases=_sampling_cases,
    returns=("probabilities",),
    hints=(
        "Two changes to the logits, then softmax. Which logit is the smallest that may stay?",
        "`np.sort(logits)[-top_k]` is the `top_k`-th largest. All below it become −∞, so that softmax gives them 0.",
        "`ops.softmax(kept / temperature)`: dividing −∞ by the temperature leaves it at −∞.",
    ),
    mistakes=SAMPLING,
    praise="Ten settings, from top_k = 1 to no cut at all. `rng.choice(V, p=probabilities)` draws the symbol.",
    in_pytorch="""limit = logits.topk(top_k).values[-1]  # the largest stands first
probabilities = (logits.masked_fill(logits < limit, -torch.inf) / temperature).softmax(dim=-1)
# torch.multinomial(probabilities, 1) draws the symbol. It also takes numbers that do not sum to 1, without a word.""",
)

# --- One decoding step ----------------------------------------------------------------------------------------------


def _decode_reference(x: Array, W_Q: Array, W_K: Array, W_V: Array, K: Array, V: Array) -> tuple[Array, Array, Array]:
    K, V = np.concatenate([K, x @ W_K]), np.concatenate([V, x @ W_V])
    return library.scaled_dot_product_attention(x @ W_Q, K, V)[0], K, V


def _decode_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, t: int, d_model: int, d_k: int, d_v: int, dtype: type = np.float64) -> Case:
        shapes = ((1, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v), (t, d_k), (t, d_v))
        return Case(label, tuple((rng.normal(size=shape) / math.sqrt(shape[0])).astype(dtype) for shape in shapes))

    def first(case: Case) -> Case:
        x, W_Q, W_K, W_V, K, V = case.arguments
        return Case("an empty cache, the first step", (x, W_Q, W_K, W_V, K[:0], V[:0]))

    return [
        case("4 past positions", 4, 7, 6, 3),
        case("2 past positions", 2, 6, 4, 5),
        case("widths that are all 4, and 6 past positions", 6, 4, 4, 4),
        first(case("", 1, 5, 4, 6)),
        case("float32 input", 6, 8, 2, 3, np.float32),
        case("keys and values of width 1", 3, 5, 1, 1),
    ]


_DECODING = Exercise(
    name="decode_step",
    called="my_decode_step",
    takes="x, W_Q, W_K, W_V, K, V",
    task="""One head, one new position, with a cache.

x: (1, d_model). W_Q, W_K: (d_model, d_k). W_V: (d_model, d_v). The caches K and V
hold t rows, (t, d_k) and (t, d_v); t may be 0. Returns `output, K, V`: (1, d_v),
and the caches with one row more. NumPy, and `ops.softmax`.
The arguments stay as they were.""",
    reference=_decode_reference,
    steps={
        "q": "q = x @ W_Q  # (1, d_k)",
        "k": "k = x @ W_K",
        "v": "v = x @ W_V",
        "grow_K": "K = np.concatenate([K, k])  # (t + 1, d_k)",
        "grow_V": "V = np.concatenate([V, v])  # (t + 1, d_v)",
        "score": "scores = q @ K.T  # (1, t + 1)",
        "scale": "scores = scores / math.sqrt(K.shape[-1])",
        "mask": "# no mask: all keys are past or present",
        "weights": "weights = ops.softmax(scores)",
        "average": "output = weights @ V  # (1, d_v)",
        "answer": "return output, K, V",
    },
    cases=_decode_cases,
    returns=("output", "K", "V"),
    hints=(
        "Only the new position is computed: one query, one key, one value. What does the query need besides its own key?",
        "Append first: `K = np.concatenate([K, x @ W_K])`, shape (t + 1, d_k); V likewise. Then the query meets all keys.",
        "No mask is needed: nothing in the cache lies in the future. `ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1])) @ V`.",
    ),
    mistakes=DECODING,
    praise="Six cases, the empty cache among them. With this step, text of length T takes T rows of work, not T² / 2.",
    in_pytorch="""K, V = torch.cat([K, x @ W_K]), torch.cat([V, x @ W_V])
output = F.scaled_dot_product_attention(x @ W_Q, K, V)  # with is_causal=True it would see the first key only""",
)

# --- A whole GPT ----------------------------------------------------------------------------------------------------


def my_feed_forward(x: Array, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Array:
    return ops.linear(ops.relu(ops.linear(x, W_1, b_1)), W_2, b_2)


# What the learner has written in other notebooks, by the names it has there.
PARTS: dict[str, Any] = {
    "my_table": positions.sinusoidal_encoding,
    "my_split_heads": library.split_heads,
    "my_merge_heads": library.merge_heads,
    "my_attention": library.scaled_dot_product_attention,
    "my_layer_norm": ops.layer_norm,
    "my_feed_forward": my_feed_forward,
    "my_causal_mask": library.causal_mask,
}


def _gpt_reference(
    ids: Array, table: Array, layers: Sequence[Parameters], gamma: Array, beta: Array, num_heads: int
) -> Array:
    x = table[ids] * math.sqrt(table.shape[1]) + positions.sinusoidal_encoding(ids.shape[1], table.shape[1])
    for p in layers:
        y = ops.layer_norm(x, p.gamma_1, p.beta_1)
        mask = library.causal_mask(ids.shape[1])
        x = x + library.multi_head_attention(y, y, p.W_Q, p.W_K, p.W_V, p.W_O, num_heads, mask)[0]
        x = x + my_feed_forward(ops.layer_norm(x, p.gamma_2, p.beta_2), p.W_1, p.b_1, p.W_2, p.b_2)
    logits: Array = ops.layer_norm(x, gamma, beta) @ table.T
    return logits


def _gpt_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, T: int, **sizes: int) -> Case:
        config = models.GPTConfig(**sizes, dtype=np.float64)  # type: ignore[arg-type]
        model = models.GPT(config, rng)
        for name, param in model.params().items():
            if name.endswith(("gamma", "beta", ".b")):  # as training leaves them, not as it finds them
                param.value += 0.3 * rng.normal(size=param.value.shape)
        p = parameters(model)
        return Case(label, (rng.integers(config.vocab, size=(B, T)), *p.values()))

    return [
        case("one layer, two heads, 5 symbols", 1, 5, vocab=7, d_model=6, num_heads=2, num_layers=1, d_ff=9),
        case("three layers, three heads, a batch of 2", 2, 4, vocab=9, d_model=12, num_heads=3, num_layers=3, d_ff=10),
        case("two layers, one head, 6 symbols", 1, 6, vocab=5, d_model=4, num_heads=1, num_layers=2, d_ff=16),
        case("a single symbol", 2, 1, vocab=6, d_model=8, num_heads=4, num_layers=2, d_ff=8),
        case("as many sequences as symbols and heads", 3, 3, vocab=5, d_model=6, num_heads=3, num_layers=1, d_ff=6),
    ]


_GPT = Exercise(
    name="gpt",
    called="my_gpt",
    takes="ids, table, layers, gamma, beta, num_heads",
    task="""A whole GPT: from symbols to the logits of the next ones.

ids: (B, T). table: (V, d_model), embeddings and output layer in one; embeddings are
multiplied by √d_model. layers: for each layer a `p` with p.gamma_1, p.beta_1, p.W_Q,
p.W_K, p.W_V, p.W_O, p.gamma_2, p.beta_2, p.W_1, p.b_1, p.W_2, p.b_2. gamma, beta: of
the last norm, (d_model,). num_heads: h; all ε are 1e-5. Returns logits, (B, T, V).
All functions `my_…` from above. The arguments stay as they were.""",
    reference=_gpt_reference,
    steps={
        "sizes": "T, d_model = ids.shape[1], table.shape[1]",
        "embed": "x = table[ids] * math.sqrt(d_model)  # (B, T, d_model)",
        "place": "x = x + my_table(T, d_model)",
        "mask": "mask = my_causal_mask(T, T)",
        "layers": gpt_layers(),
        "norm": "x = my_layer_norm(x, gamma, beta, 1e-5)",
        "answer": "return x @ table.T  # (B, T, V)",
    },
    cases=_gpt_cases,
    returns=("logits",),
    hints=(
        "Embed, add positions, make one mask; then for each layer two halves, x = x + f(norm(x)); then a last norm and the "
        "product with the table.",
        "Attention of a layer: y = `my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)`; Q = `my_split_heads(y @ p.W_Q, num_heads)`, K "
        "and V likewise; heads, _ = `my_attention(Q, K, V, mask)`; `x = x + my_merge_heads(heads) @ p.W_O`.",
        "Its other half: y = `my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)`, of the new x; `x = x + my_feed_forward(y, p.W_1, p.b_1, "
        "p.W_2, p.b_2)`. Before the first layer: `table[ids] * math.sqrt(d_model) + my_table(T, d_model)`.",
    ),
    mistakes=GPT,
    praise="Five models, of one to three layers and one to four heads: yours gives their logits. The next cell lets it read and write.",
    scope=PARTS,
)

EXERCISES = (_MASK, _ATTENTION, _SAMPLING, _DECODING, _GPT)
