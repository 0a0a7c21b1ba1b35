"""The exercises of notebook 06, and the ways to get them wrong, as learners type them."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from lesson_utils.lessons.attention_bugs import BUGS
from lesson_utils.lessons.causal_mask.gpts import Parameters, parameters
from lesson_utils.lessons.common_mistakes import answers
from lesson_utils.maths import attention as library
from lesson_utils.maths import models, ops, positions
from lesson_utils.maths.checks import Array
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
    change("moved by T_k", "You move the diagonal by another number than T_k − T_q. Query i stands at position i + T_k − T_q.", compare="return j <= i + T_q"),
    change('axes swapped', 'Your mask has a row for each key. Rows are queries: shape (T_q, T_k).', *(f"np.{f}" for f in ("tri(T_k, T_q, dtype=bool)", "tri(T_k, T_q, k=T_k - T_q, dtype=bool)", "tri(T_k, T_q, k=T_q - T_k, dtype=bool)")), i="i = np.arange(T_q)", j="j = np.arange(T_k)[:, None]", compare=("return j <= i + T_k - T_q", "return j <= i")),
    change("axes not crossed", "Both rows of numbers lie along the same axis. Queries are the rows: their numbers take `[:, None]`.", i="i = np.arange(T_q)"),
    change('square', 'Your mask is square. There are T_q queries and T_k keys: shape (T_q, T_k).', "np.tri(T_k, dtype=bool)", "np.tri(T_q, dtype=bool)", i="i = np.arange(T_k)[:, None]", compare="return j <= i"),
    _TO_ADD,
    both(_TO_ADD, _FROM_THE_START, "np.where(np.tri(T_q, T_k) > 0, 0, -np.inf)", "np.where(np.tri(T_q, T_k) > 0, 0, -1e9)"),
    change("everything visible", "Every query may see every key. Hide the future: query i sees key j only where j ≤ i + T_k − T_q.", "np.ones((T_q, T_k), bool)"),
    change("only itself", "Each query sees a single key. It may see its own key and all before it: query i sees key j where j ≤ i + T_k − T_q.", "np.eye(T_q, T_k, dtype=bool)", compare="return j == i + T_k - T_q"),
)

# --- The leak test ----------------------------------------------------------------------------------------------------

_MOVED = "np.abs(after - before).max(axis=-1)"
LEAK = (
    change("not a copy", "A second name for x is the same array, so you write into the caller's tokens, and both runs read the same. Copy first: `x.copy()`.", copy="changed = x"),
    change("nothing changed", "Both of your runs read the same tokens. Run f once on x and once on a copy in which `other` stands at `position`.", after="after = f(x)"),
    change("tokens compared", "You compare tokens, which are what goes in. Compare what comes out: f(x) and f(changed).", answer="return np.abs(changed - x).max(axis=-1)[:position]"),
    change("all outputs", "You return how far all T outputs move. The output at `position` and those behind it may move, which is no leak. Return the earlier ones: `[:position]`.", answer=f"return {_MOVED}"),
    change("one too many", "Your last number belongs to the changed token's own output, which has to move. Stop before it: `[:position]`.", answer=f"return {_MOVED}[: position + 1]"),
    change("one too few", "You leave out the output just before the changed token, where a mask that is one too far leaks: `[:position]`.", answer=f"return {_MOVED}[: position - 1]"),
    change("the later outputs", "You return how far the later outputs move. They may depend on the changed token. A leak shows in the earlier ones: `[:position]`.", answer=(f"return {_MOVED}[position:]", f"return {_MOVED}[position + 1 :]")),
    change("one output", "You return the movement of a single output. The test asks for all the outputs before `position`: `[:position]`.", answer=(f"return {_MOVED}[position - 1]", f"return {_MOVED}[position]", f"return {_MOVED}[0]")),
    change("one number", "You return one number for all outputs together. The test asks for one for each output before `position`: `.max(axis=-1)`.", answer=("return np.abs(after - before)[:position].max()", "return np.abs(after - before).max()")),
    change("no maximum", "You return the differences of all numbers. The test asks for the largest one of each output: `.max(axis=-1)`.", answer="return np.abs(after - before)[:position]"),
    change("over the outputs", "`axis=0` takes the maximum over the outputs. The test asks for one number for each output: `axis=-1`.", answer=("return np.abs(after - before)[:position].max(axis=0)", "return np.abs(after - before).max(axis=0)[:position]")),
    change("with its sign", "Your differences keep their sign, so a movement downwards is lost. Take `np.abs` of every difference first.", answer=("return (after - before).max(axis=-1)[:position]", "return (before - after).max(axis=-1)[:position]")),
    change("all differences together", "You put the differences of an output together, as a sum, a mean or a length. The test asks for the largest one.", answer=[f"return {w}[:position]" for w in ("np.abs(after - before).sum(axis=-1)", "np.abs(after - before).mean(axis=-1)", "np.sqrt(((after - before) ** 2).sum(axis=-1))", "((after - before) ** 2).sum(axis=-1)")]),
    change("squared", "You square the differences. The test asks how far, which is the difference without its sign: `np.abs`.", answer="return ((after - before) ** 2).max(axis=-1)[:position]"),
    change("yes or no", "You return whether an output moves. Return how far, because a rounding error moves it by about 10⁻¹⁶, and a leak by much more.", answer=(f"return {_MOVED}[:position] > 0", f"return ~np.isclose({_MOVED}[:position], 0)", "return (after != before).any(axis=-1)[:position]")),
    change("place", "`np.argmax` gives the place of the largest difference. The test asks for the difference itself: `.max(axis=-1)`.", answer="return np.argmax(np.abs(after - before), axis=-1)[:position]"),
    change("largest numbers compared", "You compare the largest number of one run with the largest of the other, which may stand in different columns. Subtract first, then `np.abs`, then the maximum.", answer=("return np.abs(after.max(axis=-1) - before.max(axis=-1))[:position]", "return (np.abs(after).max(axis=-1) - np.abs(before).max(axis=-1))[:position]")),
    change("added", "You add to the token. Put `other` in its place.", put="changed[position] += other"),
    change("set to 0", "You put zeros in the token's place. Put `other` there.", put="changed[position] = 0"),
    change("another token changed", "You change another token. Change the one at `position`.", put=("changed[position - 1] = other", "changed[-1] = other", "changed[0] = other")),
    change("more tokens changed", "You change more than one token. The test changes a single one, at `position`.", put=("changed[position:] = other", "changed[:] = other", "changed[position - 1 : position + 1] = other")),
    change("a shorter text", "Your two runs read texts of different lengths. Both must read all T tokens, and differ in the one at `position` only.", "changed = np.concatenate([x[:position], other[None]])\nreturn np.abs(f(changed)[:position] - f(x)[:position]).max(axis=-1)", "changed = x.copy()\nchanged[position] = other\nreturn np.abs(f(changed)[:position] - f(x[:position])).max(axis=-1)", "return np.abs(f(x)[:position] - f(x[:position])).max(axis=-1)"),
    change("outputs beside tokens", "You subtract tokens from outputs. Subtract the outputs of the two runs: f(changed) and f(x).", before=("before = x", "before = changed")),
    change("output where the token should be", "You change what comes out. Change a token, which is what goes in, and run f again.", copy="changed = f(x)", after="after = changed"),
)

# --- The loss of a text -----------------------------------------------------------------------------------------------

LOSS = (
    change("targets not moved", "Your targets are the symbols that stand at the same positions, which the model has just read. Position t must predict symbol t + 1: `ids[1:]`.", targets=("targets = ids", "targets = ids[:-1]")),
    change("moved the wrong way", "You ask each position for the symbol *before* it. Position t must predict symbol t + 1: positions 0 to T − 2 meet `ids[1:]`.", found="found = p[np.arange(1, len(ids)), ids[:-1]]"),
    change("moved in a ring", "At the end your targets begin again with the other end of the text. The last position has no target, because its answer is not in `ids`: leave it out.", targets=("targets = np.roll(ids, -1)", "targets = np.roll(ids, 1)")),
    change("moved by two", "You move the targets by two places. Position t must predict symbol t + 1: `ids[1:]`.", targets="targets = ids[2:]"),
    change("the later positions", "You take the predictions of positions 1 to T − 1 for these targets, so each reads its own answer. Target t + 1 belongs to position t: positions 0 to T − 2.", found="found = p[np.arange(1, len(ids)), targets]"),
    change("nats", "Your logarithm is the natural one, which gives nats. Bits are logarithms to base 2: `np.log2`.", answer="return -np.log(found).mean()"),
    change("base 10", "Your logarithm has base 10. Bits are logarithms to base 2: `np.log2`.", answer="return -np.log10(found).mean()"),
    change("no minus", "Your loss is negative. Logarithms of probabilities are at most 0: put a minus in front.", answer="return np.log2(found).mean()"),
    change("sum", "You add up the losses. The loss of a text is their mean, so that long and short texts compare.", answer="return -np.log2(found).sum()"),
    change("divided by T", "You divide by T, but T symbols hold T − 1 questions. Take the mean of those: `.mean()`.", answer="return -np.log2(found).sum() / len(ids)"),
    change("mean before the logarithm", "You take the mean of the probabilities, and then the logarithm. Take the logarithm of each first, then the mean.", answer="return -np.log2(found.mean())"),
    change("perplexity", "This is the perplexity, 2 to the power of the loss. Return the loss itself, in bits.", answer="return 2 ** -np.log2(found).mean()"),
    change("probabilities averaged", "This is a mean of probabilities. The loss is the mean of −log₂ of each.", answer=("return found.mean()", "return 1 - found.mean()", "return -found.mean()")),
    change("no mean", "You return one loss for each question. Return their mean, one number.", answer="return -np.log2(found)"),
    change("logits as probabilities", "You take the logarithm of logits, which may be negative. Turn them into probabilities first: `ops.softmax`.", p="p = logits"),
    change("logits averaged", "You average the logits of the targets. Turn the logits into probabilities first, `ops.softmax`, then take −log₂ of those of the targets.", "return -logits[np.arange(len(ids) - 1), ids[1:]].mean()", p="p = logits", answer="return -found.mean()"),
    change("softmax of what was picked", "Your softmax sees only the logits of the targets. Each position has a softmax of its own over all V symbols: `ops.softmax(logits)` first, then pick.", "return -np.log2(ops.softmax(logits[np.arange(len(ids) - 1), ids[1:]])).mean()"),
    change("softmax over the positions", "Your softmax runs over the positions. Each position has a softmax of its own over the V symbols: `axis=-1`, which `ops.softmax` takes by itself.", p="p = ops.softmax(logits, axis=0)"),
    change("not stable", "`np.exp` of logits far from 0 overflows, or gives 0 / 0. Use `ops.softmax`, which subtracts each row's largest first.", p="e = np.exp(logits)\np = e / e.sum(axis=-1, keepdims=True)"),
    change("not divided by the sum", "These are exponentials, not probabilities. Divide each row by its sum, or use `ops.softmax`.", p="p = np.exp(logits - logits.max(axis=-1, keepdims=True))"),
    change("every position with every target", "You pair every position with every target. Each position has one target: index with two rows of the same length, `np.arange(len(ids) - 1)` and `ids[1:]`.", found=("found = p[:-1, targets]", "found = p[:, targets]")),
    change("rows picked by symbols", "You use the symbols to pick rows. A row is a position. The next symbol picks the column within this row.", found=("found = p[ids]", "found = p[targets]", "found = p[:-1][targets]")),
    change("one question too many", "T symbols hold T − 1 questions: the last position has no target in `ids`. Stop one position earlier, and divide by their number.", *(f"p = ops.softmax(logits)\ntotal = 0\nfor t in range(len(ids)):\n    total -= np.log2(p[t, ids[t + 1]])\nreturn total / {n}" for n in ("len(ids)", "(len(ids) - 1)")), found=("found = p[np.arange(len(ids)), ids[np.arange(len(ids)) + 1]]", "found = p[np.arange(len(ids)), targets]")),
    change("the likeliest", "You take the probability of the likeliest symbol. The loss asks for that of the true next symbol, which `ids[1:]` names.", found=("found = p[:-1].max(axis=-1)", "found = p.max(axis=-1)")),
    change("entropy", "This is the entropy of the predictions, for which the text is not needed. The loss takes the probability of the symbol that really follows.", "p = ops.softmax(logits)\nreturn -(p * np.log2(p)).sum(axis=-1).mean()", "p = ops.softmax(logits)[:-1]\nreturn -(p * np.log2(p)).sum(axis=-1).mean()"),
    change("the last question only", "You score the last question only. Take the mean over all T − 1.", answer="return -np.log2(found[-1])"),
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
    change("largest first, counted from the end", "Your limit is another logit than the `top_k`-th largest. With the largest first, take `[top_k - 1]`; with the smallest first, `[-top_k]`.", limit=("limit = np.sort(logits)[::-1][-top_k]", "limit = np.sort(logits)[::-1][top_k]")),
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

# --- The leak test --------------------------------------------------------------------------------------------------


class Attending:
    """A layer of attention with random matrices, under a causal mask or what a bug makes of it: x (T, d) → (T, d_v)."""

    def __init__(self, rng: np.random.Generator, d: int, d_v: int, bug: str) -> None:
        self.W_Q, self.W_K, self.W_V = (rng.normal(size=(d, width)) / math.sqrt(d) for width in (d, d, d_v))
        self.bug = BUGS[bug]

    def __call__(self, x: Array) -> Array:
        scores = x @ self.W_Q @ (x @ self.W_K).T / math.sqrt(x.shape[1])
        return self.bug.weighing.forward(scores, self.bug.seen(library.causal_mask(len(x)))) @ (x @ self.W_V)


def _leak_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, position: int, bug: str, d: int = 4, d_v: int = 3) -> Case:
        x, other = rng.normal(size=(T, d)), rng.normal(size=d)
        return Case(label, (Attending(rng, d, d_v, bug), x, position, other))

    return [
        case("a layer without a mask", 6, 4, "no mask"),
        case("a layer under the right mask", 6, 3, ""),
        case("a mask that is one too far", 7, 4, "mask one too far", 3, 5),
        case("a mask that comes too late", 5, 4, "mask after softmax", 4, 4),
        case("a mask turned around", 6, 2, "mask transposed", 5, 2),
        case("position 1, with one output before it", 4, 1, "no mask"),
    ]


_LEAK = Exercise(
    name="leak_test",
    called="my_leak_test",
    takes="f, x, position, other",
    task="""How far the outputs before a token move when this token is changed.

f: takes tokens (T, d), returns outputs (T, d_v). x: (T, d). position: which token
is changed, at least 1. other: (d,), what it becomes. Returns (position,): for each
earlier output the largest absolute change of its d_v numbers. x stays as it was.""",
    steps={
        "copy": "changed = x.copy()",
        "put": "changed[position] = other",
        "before": "before = f(x)  # (T, d_v)",
        "after": "after = f(changed)",
        "answer": "return np.abs(after - before).max(axis=-1)[:position]",
    },
    cases=_leak_cases,
    returns=("moved",),
    hints=(
        "Two runs: on x, and on a copy of x with one other token. Then subtract their outputs.",
        "`changed = x.copy()`, then `changed[position] = other`. Without the copy both runs would read the same array.",
        "`np.abs(f(changed) - f(x))` is (T, d_v). `.max(axis=-1)` leaves one number for each output, and `[:position]` "
        "the earlier ones.",
    ),
    mistakes=LEAK,
    praise="Six layers, right and wrong ones. Under the right mask every earlier output moves by exactly 0.",
    in_pytorch="""# First model.eval(): with dropout on, outputs move by themselves. Ask for exactly 0, but in float32 allow rounding
# where a kernel adds up in another order.
with torch.no_grad():
    changed = x.clone()
    changed[position] = other
    moved = (f(changed) - f(x)).abs().amax(-1)[:position]""",
)

# --- The loss of a text -----------------------------------------------------------------------------------------------


def _loss_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, V: int, shift: float = 0) -> Case:
        return Case(label, (1.5 * rng.normal(size=(T, V)) + shift, rng.integers(V, size=T)))

    return [
        case("5 symbols of 4", 5, 4),
        case("9 symbols of 30", 9, 30),
        case("as many positions as symbols", 6, 6),
        case("two symbols, one question", 2, 5),
        case("logits near −2000", 6, 7, -2000),
        case("logits near 900", 4, 9, 900),
    ]


_LOSS = Exercise(
    name="text_loss",
    called="my_text_loss",
    takes="logits, ids",
    task="""The loss of a model on a text, in bits a symbol.

ids: (T,), the text that it has read, at least two symbols. logits: (T, V), its
prediction at each position. Returns one number: the mean of −log₂ of the probabilities
of the next symbols, over all positions but the last. NumPy, and `ops.softmax`.
The arguments stay as they were.""",
    steps={
        "p": "p = ops.softmax(logits)  # (T, V)",
        "targets": "targets = ids[1:]  # (T - 1,): what follows each symbol but the last",
        "found": "found = p[np.arange(len(targets)), targets]  # (T - 1,)",
        "answer": "return -np.log2(found).mean()",
    },
    cases=_loss_cases,
    returns=("loss",),
    hints=(
        "What follows symbol t? Symbol t + 1. So the targets are the text without its first symbol.",
        "`p = ops.softmax(logits)` has a row for each position. Row t, at the column `ids[t + 1]`, is what you need.",
        "`p[np.arange(T - 1), ids[1:]]` picks one number of each row but the last. Then `-np.log2(…).mean()`.",
    ),
    mistakes=LOSS,
    praise="Six texts. T symbols, T − 1 questions, and every target is the text itself, moved by one place.",
    in_pytorch="""# cross_entropy takes logits and gives nats. It moves nothing: you do. Models of the library transformers move their
# labels by themselves, so there labels=ids, unmoved.
loss = F.cross_entropy(logits[:-1], ids[1:]) / torch.tensor(2.0).log()""",
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

EXERCISES = (_MASK, _LEAK, _LOSS, _GPT, _SAMPLING, _DECODING)
