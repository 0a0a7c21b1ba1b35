"""The exercises of notebook 09, and the ways to get them wrong, as learners type them."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from lesson_utils.lessons import common_mistakes
from lesson_utils.maths import attention, ops
from lesson_utils.maths import positions as library
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

LAST = "axis=-1, keepdims=True"

SCORE = (
    change("the same symbol", "You take the weight on the same symbol in the first copy, `period` before the query. An induction head looks one further, at what came after it: `period - 1` before the query.", keys="keys = queries - period"),
    change("one too far", "Your keys lie one too far on: the place after the same symbol is `period - 1` before the query.", keys="keys = queries - period + 2"),
    change("before the same symbol", "Your keys stand before the same symbol. What comes next stands *after* it, `period - 1` before the query.", keys="keys = queries - period - 1"),
    change("the token before", "You take the weight on the token just before the query. That is the score of a previous-token head.", keys="keys = queries - 1"),
    change("the query itself", "You take the weight of each query on itself. The key stands `period - 1` before it.", keys="keys = queries"),
    change("rows and columns exchanged", "You take the key as the row and the query as the column. Queries are rows, and keys are columns: the query's index comes first.", picked="picked = weights[..., keys, queries]"),
    change("all later queries", "You let queries after the second copy count, too. There, an induction head may look at either copy. Count the queries of the second copy alone: up to `2 * period`.",
           "queries = np.arange(period, weights.shape[-1])\nreturn weights[..., queries, queries - period + 1].sum(axis=-1) / period",
           queries="queries = np.arange(period, weights.shape[-1])"),
    change("one too early", "Your first query is the last of the first copy: it has seen nothing twice. The second copy begins at `period`.", queries=("queries = np.arange(period - 1, 2 * period - 1)", "queries = np.arange(period - 1, 2 * period)")),
    change("the first left out", "You leave the first query of the second copy out. It stands at `period`.", queries="queries = np.arange(period + 1, 2 * period)"),
    change("the last left out", "You leave the last query of the second copy out. It stands at `2 * period - 1`, where `np.arange(period, 2 * period)` ends.", queries="queries = np.arange(period, 2 * period - 1)"),
    change("the first copy", "You take the queries of the first copy, which has no copy before it. The second begins at `period`.", queries="queries = np.arange(period)"),
    change("sum", "You add the weights up. Asked for is their mean.", answer="return picked.sum(axis=-1)"),
    change("largest", "You take the largest weight. One good query is not enough: the mean over all of them.", answer="return picked.max(axis=-1)"),
    change("over everything", "You take the mean over all maps together. Each map has a score of its own: `axis=-1`.", answer="return picked.mean()"),
    change("over axis 0", "You take the mean over axis 0, which may be heads or a batch. The queries are the last axis.", answer="return picked.mean(axis=0)"),
    change("all pairs", "You take a whole block of weights, each query with each key. Each query has one key: `weights[..., q, q - period + 1]`, with `q = np.arange(period, 2 * period)`.", picked="picked = weights[..., period : 2 * period, 1 : period + 1]", answer="return picked.mean(axis=(-1, -2))"),
    change("arg-max", "You count how often the largest weight lies there. The score is the mean weight: it also tells 0.9 from 0.4.", "queries = np.arange(period, 2 * period)\nreturn (weights[..., queries, :].argmax(axis=-1) == queries - period + 1).mean(axis=-1)"),
    change("the whole diagonal", "Your score averages a whole diagonal: also the last query of the first copy, and the queries after the second. Only the queries `period` to `2 * period - 1` count.", "return np.diagonal(weights, 1 - period, -2, -1).mean(axis=-1)"),
    change("wraps around", "The key of your last query wraps around to 0. The one after its symbol is number `period`, the first of the second copy: `period - 1` before the query, without `% period`.", keys="keys = (queries + 1) % period"),
    change("divided by the length", "You divide by the number of all tokens. There are `period` queries: divide by `period`.", answer="return picked.sum(axis=-1) / weights.shape[-1]"),
)

NORM = (
    change("mean subtracted", "You subtract the mean, as layer norm does. RMS norm leaves it out.", square=f"mean_square = ((x - x.mean({LAST})) ** 2).mean({LAST})", answer=f"return gamma * ((x - x.mean({LAST})) / root)"),
    change("variance", "You divide by the root of the variance, the mean of (x − μ)². RMS norm takes the mean of x².", square=f"mean_square = x.var({LAST})"),
    change("mean subtracted above", "You subtract the mean before you divide. RMS norm divides x as it is.", answer=f"return gamma * ((x - x.mean({LAST})) / root)"),
    change("sum of squares", "You divide by the length of the vector, the root of the *sum* of squares. RMS norm divides by the root of their *mean*.", square=f"mean_square = (x**2).sum({LAST})"),
    change("mean of sizes", "You take the mean of |x|. It is the mean of x², and then its root.", square=f"mean_square = abs(x).mean({LAST})"),
    change("mean of sizes, no root", "You divide by the mean of |x|. RMS stands for root mean square: the root of the mean of x².", square=f"mean_square = abs(x).mean({LAST})", root="root = mean_square + eps"),
    change("square of the mean", "You square the mean. It is the mean of the squares: `(x**2).mean(…)`.", square=(f"mean_square = x.mean({LAST}) ** 2", f"mean_square = np.abs(x).mean({LAST}) ** 2")),
    change("no root", "You divide by the mean square. Take its root first: RMS means root mean square.", root="root = mean_square + eps"),
    change("root twice", "You take the root twice.", root="root = np.sqrt(np.sqrt(mean_square + eps))"),
    change("ε outside the root", "You add ε outside the root. It belongs under it: √(mean square + ε).", root="root = np.sqrt(mean_square) + eps"),
    change("ε missing", "ε is missing. A token of zeros gives 0 / 0: √(mean square + ε).", root="root = np.sqrt(mean_square)"),
    change("ε as it is by default", "You use 10⁻⁵ whatever the argument `eps` says.", root="root = np.sqrt(mean_square + 1e-5)"),
    change("ε squared", "You add ε². Under the root stands mean square + ε.", root="root = np.sqrt(mean_square + eps**2)"),
    change("ε as a floor", "You use ε as a lower limit. ε is added.", root="root = np.sqrt(np.maximum(mean_square, eps))"),
    change("multiplied", "You multiply by the root. Divide by it.", answer="return gamma * (x * root)"),
    change("γ left out", "γ is left out: each feature has a factor of its own.", answer="return x / root"),
    change("divided by γ", "You divide by γ. It is a factor.", answer="return x / root / gamma"),
    change("γ added", "You add γ. It is a factor; RMS norm adds nothing.", answer="return x / root + gamma"),
    change("over everything", "You take the mean over the whole array. Each token has one of its own: `axis=-1, keepdims=True`.", square="mean_square = (x**2).mean()"),
    change("over axis 0", "You take the mean over axis 0. It is over the features of one token: `axis=-1, keepdims=True`.", square="mean_square = (x**2).mean(axis=0, keepdims=True)"),
    change("without keepdims", "Your mean drops the last axis, and NumPy lines up what is left with the features: an error, or, in a square array, wrong numbers without one. Keep the axis: `keepdims=True` or `[..., None]`.", square="mean_square = (x**2).mean(axis=-1)"),
)

GROUPED = (
    change("groups interleaved", "You give the first query head to the first key–value head, the second to the second, and begin again. Neighbours share one: with 6 on 2, heads 0, 1, 2 the first, heads 3, 4, 5 the second. (With the other order, SmolLM2's perplexity is 162,000.)", groups="groups = Q.reshape(-1, len(K), *Q.shape[1:]).swapaxes(0, 1)", answer="return output.swapaxes(0, 1).reshape(len(Q), Q.shape[1], -1)"),
    change("groups not joined", "Your output still has the axis of the groups, (h_kv, h / h_kv, T_q, d_v). Join both axes of heads: reshape it to (h, T_q, d_v).", answer="return output"),
    change("not put back in order", "Your groups interleave heads, and the result is not put back in order. Neighbours share one: `Q.reshape(len(K), -1, …)`, and the heads' axes are not swapped.", groups="groups = Q.reshape(-1, len(K), *Q.shape[1:]).swapaxes(0, 1)"),
    change("keys tiled", "Your query heads take the key–value heads in turn, 0, 1, 0, 1 …, and begin again. Neighbours share one: 0, 0, 1, 1 …, as `np.repeat` gives, or an axis more for Q.", "n = len(Q) // len(K)\nscores = Q @ np.tile(K, (n, 1, 1)).swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\nreturn ops.softmax(scores) @ np.tile(V, (n, 1, 1))"),
    change("another group size", "Your groups have the wrong size. h query heads share h_kv key–value heads, so a group has h / h_kv of them: query head i uses number i // (h // h_kv).", *(
        f"which = {which}\nscores = Q @ K[which].swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\nreturn ops.softmax(scores) @ V[which]"
        for which in ("np.arange(len(Q)) // len(K) % len(K)", "np.minimum(np.arange(len(Q)) // len(K), len(K) - 1)"))),
    change("keys repeated, values tiled", "Keys and values are not shared out alike: one of them goes 0, 0, 1, 1 …, the other 0, 1, 0, 1 … A query head needs the values that belong to its keys: repeat both, neighbours first.", *(
        f"n = len(Q) // len(K)\nscores = Q @ {keys}.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\nreturn ops.softmax(scores) @ {values}"
        for keys, values in (("np.repeat(K, n, axis=0)", "np.tile(V, (n, 1, 1))"), ("np.tile(K, (n, 1, 1))", "np.repeat(V, n, axis=0)")))),
    change("values of the first only", "All your query heads take the values of the first key–value head. Each group takes its own.", output="output = weights @ V[:1]"),
    change("keys of the first only", "All your query heads are compared with the keys of the first key–value head. Each group has its own.", scores="scores = groups @ K[:1].swapaxes(-1, -2)"),
    change("queries averaged", "You average the query heads of a group. Each keeps its own queries, and its own weights; only keys and values are shared.",
           "n = len(Q) // len(K)\nmean = Q.reshape(len(K), n, *Q.shape[1:]).mean(axis=1)\nscores = mean @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\nreturn np.repeat(ops.softmax(scores) @ V, n, axis=0)"),
    change("heads of a group averaged", "The heads of a group come out alike, as an average. Each query head has weights and an output of its own; only keys and values are shared.", output="output = (weights @ V).mean(axis=1, keepdims=True) + 0 * scores[..., :1]"),
    change("first key–value head only", "All your query heads use the first key–value head. Each group has its own.", keys="K, V = K[:1, None], V[:1, None]"),
    change("keys averaged", "You average the key–value heads. Each group has its own: no mean.", keys="K, V = K.mean(axis=0)[None, None], V.mean(axis=0)[None, None]"),
    change("not scaled", "The scores are not divided by √d_k, the root of `Q.shape[-1]`.", scale=""),
    change("scaled by d_k", "You divide by d_k. Scores are divided by the root of d_k, √d_k.", scale="scores = scores / Q.shape[-1]"),
    change("scaled by d_model", "You divide by the root of d_model, h · d_k. It is the root of the width of one head, d_k.", scale="scores = scores / math.sqrt(len(Q) * Q.shape[-1])"),
    change("scaled by the width of the values", "You divide by the root of d_v. The scores come from queries and keys: it is the root of d_k, the last axis of Q.", scale="scores = scores / math.sqrt(V.shape[-1])"),
    change("scaled by the number of keys", "You divide by the root of T_k. It is the root of d_k, the last axis of Q.", scale="scores = scores / math.sqrt(K.shape[-2])"),
    *common_mistakes.weighing(),
)

HALVES = (
    change("columns left as they are", "You turn neighbours, 2i and 2i + 1, as they stand in x. Here column i belongs to column i + d/2.", "return positions.rotary(x, at)"),
    change("not put back", "Your columns stay in their new order. Bring them back: the first half of the columns holds the even ones of what you turned, and the second half the odd ones.", answer="return turned"),
    change("permuted twice", "You apply the same order again, and that does not undo it for every d. The way back is `np.argsort` of your order of the columns.", answer="return turned[..., order]"),
    change("the other way round", "Your order takes neighbours apart: it leads from side by side to halves. You need its inverse first: `np.arange(d).reshape(2, -1).T.ravel()`.", order="order = np.arange(x.shape[-1]).reshape(-1, 2).T.ravel()"),
    change("halves exchanged", "You turn the wrong way round: either the second half comes first in your pairs, or the angle has the wrong sign. Column i is the first entry of a pair, i + d/2 the second.", order="order = np.arange(x.shape[-1]).reshape(2, -1)[::-1].T.ravel()"),
    change("mirrored", "Your pairs are i and d − 1 − i: the second half runs backwards. The partner of column i is i + d/2.", order=("half = np.arange(x.shape[-1] // 2)\norder = np.stack([half, x.shape[-1] - 1 - half], axis=1).ravel()", "order = []\nfor i in range(x.shape[-1] // 2):\n    order += [i, x.shape[-1] - 1 - i]")),
    change("not turned", "Nothing is turned; columns are moved at most. Turn them by `at` between the two permutations.", turned="turned = beside"),
    change("not brought side by side", "You turn neighbours as they stand in x. Pairs must stand side by side before they are turned.", beside="beside = x"),
    change("positions from 0", "You count positions from 0, whatever `at` says. A cache has its queries further on: use `at`.", turned="turned = positions.rotary(beside, np.arange(x.shape[-2]))"),
    change("tokens permuted", "You permute tokens, as an index on the first axis does. Columns are the last axis: write `...` and a comma in front of your order.", beside="beside = x[order]"),
    change("each half by itself", "You turn neighbours within each half by itself. A pair has one column of each half: i and i + d/2.", "half = x.shape[-1] // 2\nreturn np.concatenate([positions.rotary(x[..., :half], at), positions.rotary(x[..., half:], at)], axis=-1)"),
)

HAND = (
    change("looks one ahead", "Your head 0 looks one ahead: QK_0[query, key], and the key stands one *before* the query.", qk_0="QK_0[place[:-1], place[1:]] = 1"),
    change("looks at itself", "Your head 0 looks at its own position. It should look one back: in QK_0, the row of position t has its 1 in the column of position t − 1.", qk_0="QK_0[place, place] = 1"),
    change("head 0 compares symbols", "Your head 0 looks for the same symbol. It goes by position only: one back.", qk_0="QK_0[symbol, symbol] = 1"),
    change("overwrites the symbol", "Your head 0 writes into the block of the symbol itself. Then nobody can tell the two apart: write into “symbol before”.", ov_0="OV_0[symbol, symbol] = 1"),
    change("writes the answer at once", "Your head 0 writes into the answer's block. It should write into “symbol before”, where head 1 looks.", ov_0="OV_0[symbol, answer] = 1"),
    change("hands the position over", "Your head 0 hands the position over. Head 1 needs the symbol.", ov_0="OV_0[place[:V], before[:T]] = 1"),
    change("OV_0 transposed", "OV_0 is transposed: x @ OV takes from the row and writes into the column, from symbol to “symbol before”.", ov_0="OV_0[before, symbol] = 1"),
    change("the same symbol again", "Your head 1 compares its symbol with the symbols themselves, so it finds the place where the symbol stood. The answer is what came *after* that place: compare with the *symbol before* that head 0 has written.", qk_1="QK_1[symbol, symbol] = 1"),
    change("query and key exchanged", "In QK_1 query and key are exchanged: the row belongs to the query, which has its own symbol; the column to the key, which has its symbol before.", qk_1="QK_1[before, symbol] = 1"),
    change("before meets before", "Your head 1 looks for somebody with the same symbol before. The query's own symbol should meet it.", qk_1="QK_1[before, before] = 1"),
    change("hands over the symbol before", "Your head 1 hands over the “symbol before” of the place that it attends to, which is the query's own symbol where the heads work. Hand over the symbol of that place.", ov_1="OV_1[before, answer] = 1"),
    change("answers into the symbol", "Your head 1 writes into the block of the symbol. The answer has a block of its own, the last.", ov_1="OV_1[symbol, symbol] = 1"),
    change("OV_1 transposed", "Your OV_1 is transposed. It should take from the row, the symbol, and write into the column, the answer.", ov_1="OV_1[answer, symbol] = 1"),
    change("matrices exchanged", "The order is QK_0, OV_0, QK_1, OV_1: what head 0 looks for, what it hands over, then head 1.", result=("return OV_0, QK_0, OV_1, QK_1", "return QK_1, OV_1, QK_0, OV_0")),
    change("looks at all that came before", "Your head 0 looks at all positions before its own. It should look one back only: in QK_0, the row of position t has a single 1, in the column of position t − 1.", qk_0="QK_0[V : V + T, V : V + T] = np.tril(np.ones((T, T)), -1)"),
    change("goes round", "In your QK_0 position 0 looks at the last position, as an index of −1 or `np.roll` makes it: they go round. Nothing stands before position 0, so its row holds zeros only.", qk_0="QK_0[place, np.roll(place, 1)] = 1"),
    change("looks two back", "Your head 0 looks two back. It should look one back: in QK_0, the row of position t has its 1 in the column of position t − 1.", qk_0="QK_0[place[2:], place[:-2]] = 1"),
    change("blocks in another order", "Your blocks stand in another order. The columns are: symbol first, then position, symbol before, answer.", blocks="place, symbol = np.arange(T), T + np.arange(V)", written="before, answer = V + np.arange(V) + T, 2 * V + np.arange(V) + T"),
)

PATCHED = (
    change("subtracted after the norm", "You subtract `written` from the normalized stream. The other head wrote into the stream itself: subtract first, then apply the norm.", without="without = norm(x) - written"),
    change("norm of each", "You subtract the norm of `written`. A norm of a difference is not the difference of norms: subtract first, then apply the norm.", without="without = norm(x) - norm(written)"),
    change("added", "You add `written` once more. It is in x already; take it away.", without="without = norm(x + written)"),
    change("only what was written", "Your patched input reads nothing but what the other head has written. It should read everything else.", without="without = norm(written)"),
    change("norm left out", "Your patched input is not normalized. A head reads the stream through its norm.", without="without = x - written"),
    change("norm of the patched input only", "The inputs that are not patched are read without the norm. A head reads the stream through its norm, in all three inputs.", whole="whole = x"),
    change("no norm at all", "You leave the norm out. A head reads the stream through its norm, in all three inputs.", whole="whole = x", without="without = x - written"),
    change("the other two", "You patch the two inputs that should stay, and keep the one that should be patched.", queries='Q = (whole if into == "queries" else without) @ W_Q', keys='K = (whole if into == "keys" else without) @ W_K', values='V = (whole if into == "values" else without) @ W_V'),
    change("all three", "You take `written` out of all three inputs. Then nobody can tell which of them has read it: patch the one that `into` names.", queries="Q = without @ W_Q", keys="K = without @ W_K", values="V = without @ W_V"),
    change("none", "Nothing is taken out: `written` is still in all three inputs.", queries="Q = whole @ W_Q", keys="K = whole @ W_K", values="V = whole @ W_V"),
    change("keys whatever is asked", "You take it out of the keys whatever `into` says.", queries="Q = whole @ W_Q", keys="K = without @ W_K", values="V = whole @ W_V"),
    change("queries and keys exchanged", "You exchange queries and keys: where the keys should be patched, the queries are.", queries='Q = (without if into == "keys" else whole) @ W_Q', keys='K = (without if into == "queries" else whole) @ W_K'),
    change("the input is zero", "You replace the whole input by zeros. Only the part that the other head has written is to go: `norm(x - written)`.", without="without = 0 * x"),
    change("zero after the matrix", "You set the whole query, key or value to zero. Only what the other head has written is to go: make it from `norm(x - written)`.", queries='Q = whole @ W_Q * (into != "queries")', keys='K = whole @ W_K * (into != "keys")', values='V = whole @ W_V * (into != "values")'),
    change("one matrix for all", "You use W_Q for all three inputs. Each has a matrix of its own.", keys='K = (without if into == "keys" else whole) @ W_Q', values='V = (without if into == "values" else whole) @ W_Q'),
    change("values with the keys", "You patch the values where only the keys are asked for. With `into=\"keys\"`, queries and values read the whole stream.", values='V = (whole if into == "queries" else without) @ W_V'),
    change("keys with the queries", "You patch the keys where only the queries are asked for. With `into=\"queries\"`, keys and values read the whole stream.", keys='K = (whole if into == "values" else without) @ W_K'),
    change("keys with the values", "You patch the keys where only the values are asked for. With `into=\"values\"`, queries and keys read the whole stream.", keys='K = (whole if into == "queries" else without) @ W_K'),
    change("values by W_K", "Your values are made with W_K. They have a matrix of their own, W_V.", values='V = (without if into == "values" else whole) @ W_K'),
    change("another order", "The order is Q, K, V.", answer=("return K, Q, V", "return Q, V, K", "return V, K, Q", "return K, V, Q")),
)

# fmt: on

# --- The induction score ----------------------------------------------------------------------------------------------


def _score_cases(rng: np.random.Generator) -> Sequence[Case]:
    def maps(*shape: int) -> Array:
        scores = 2 * rng.normal(size=shape)
        return ops.softmax(np.where(np.tri(shape[-1], dtype=bool), scores, -np.inf))

    return [
        Case("one map, period 4, two copies", (maps(8, 8), 4)),
        Case("three heads, period 5, nearly three copies", (maps(3, 14, 14), 5)),
        Case("a batch of two, three heads, period 3", (maps(2, 3, 9, 9), 3)),
        Case("as many heads as positions", (maps(6, 6, 6), 3)),
        Case("period 7, two copies and a bit", (maps(4, 17, 17), 7)),
        Case("period 1, two symbols", (maps(2, 2), 1)),
    ]


_SCORE = Exercise(
    name="induction_score",
    called="my_induction_score",
    takes="weights, period",
    task="""The mean weight of the second copy's queries on the key that comes after the same symbol.

weights: maps, (..., T, T), query by key. Symbols repeat after `period` of them,
T is at least 2 · period; what comes after the second copy does not count.
Returns the score of each map, (...). NumPy only. weights stay as they were.""",
    steps={
        "queries": "queries = np.arange(period, 2 * period)  # the second copy",
        "keys": "keys = queries - period + 1  # after the same symbol in the first",
        "picked": "picked = weights[..., queries, keys]  # (..., period)",
        "answer": "return picked.mean(axis=-1)",
    },
    cases=_score_cases,
    returns=("score",),
    hints=(
        "Write down one case: period 4, symbols A B C D A B C D at positions 0 to 7. The query at 5 is the second B. The same "
        "symbol stands at 1, and after it, at 2, the C that comes next. Which key is that for a query at t?",
        "Queries are `np.arange(period, 2 * period)`, keys `queries - period + 1`. With two index arrays of equal length, "
        "`weights[..., queries, keys]` picks one weight for each query.",
        "What is left to do is the mean over the queries, the last axis: other axes are maps of their own.",
    ),
    mistakes=SCORE,
    praise="Six sets of maps, with batches, heads, and a rest after the second copy.",
    in_pytorch="""# Of each head: nn.MultiheadAttention returns the mean of its heads' maps, unless average_attn_weights=False.
queries = torch.arange(period, 2 * period)
score = weights[..., queries, queries - period + 1].mean(dim=-1)""",
)

# --- RMS norm ---------------------------------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(
        label: str, *shape: int, eps: float = 1e-5, dtype: Any = float, size: float = 1.0, off: float = 1.5
    ) -> Case:
        x, gamma = off + size * rng.normal(size=shape), 1 + 0.5 * rng.normal(size=shape[-1])
        return Case(label, (x.astype(dtype), gamma.astype(dtype), eps))

    return [
        case("4 tokens, d_model = 6", 4, 6),
        case("a batch of shape (2, 3, 5)", 2, 3, 5, size=4),
        case("one token, shape (7,)", 7),
        case("as many tokens as features", 5, 5),
        case("tiny features, where ε counts", 3, 4, eps=1e-2, size=0.05, off=0.0),
        Case("a token of zeros", (np.zeros((2, 4)), np.ones(4), 1e-5)),
        case("float32 input", 3, 8, dtype=np.float32),
        case("d_model = 1", 3, 1),
    ]


_NORM = Exercise(
    name="rms_norm",
    called="my_rms_norm",
    takes="x, gamma, eps",
    task="""RMS norm: each token over the root of its mean square, times γ.

x: (..., d_model). gamma: (d_model,), in the dtype of x. eps: added to the mean
square, under the root. Returns (..., d_model), in the dtype of x. NumPy only.
The arguments stay as they were.""",
    steps={
        "square": "mean_square = (x**2).mean(axis=-1, keepdims=True)  # (..., 1)",
        "root": "root = np.sqrt(mean_square + eps)",
        "answer": "return gamma * (x / root)",
    },
    cases=_norm_cases,
    returns=("y",),
    hints=(
        "Layer norm without its mean and without β: no subtraction, and the mean of x² in place of the variance.",
        "`(x**2).mean(axis=-1, keepdims=True)` has shape (..., 1), and lines up with x.",
        "ε comes under the root: `np.sqrt(mean_square + eps)`. Then divide, and multiply by γ.",
    ),
    mistakes=NORM,
    praise="Eight cases, a token of zeros among them. Llama, Mistral, Qwen and Gemma norm so, 61 times a token in SmolLM2.",
    dtype="kept",
    in_pytorch="""# Without eps it is the dtype's smallest step, 1e-7 in float32. Llama has 1e-5.
y = F.rms_norm(x, x.shape[-1:], gamma, eps)""",
)

# --- Grouped attention ------------------------------------------------------------------------------------------------


def _grouped_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, h: int, h_kv: int, T_q: int, T_k: int, d_k: int, d_v: int) -> Case:
        return Case(
            label,
            (rng.normal(size=(h, T_q, d_k)), rng.normal(size=(h_kv, T_k, d_k)), rng.normal(size=(h_kv, T_k, d_v))),
        )

    return [
        case("6 query heads on 2 key–value heads", 6, 2, 4, 5, 3, 7),
        case("9 on 3, as in SmolLM2", 9, 3, 5, 5, 4, 4),
        case("4 on 1 (multi-query attention)", 4, 1, 3, 6, 5, 2),
        case("3 on 3 (no sharing)", 3, 3, 4, 7, 2, 5),
        case("8 on 4, a single query", 8, 4, 1, 9, 6, 6),
        case("4 on 2, all sizes equal", 4, 2, 4, 4, 4, 4),
        case("one head, one key", 1, 1, 3, 1, 2, 2),
    ]


def _grouped_reference(Q: Array, K: Array, V: Array) -> Array:
    K, V = attention.repeat_heads(K, len(Q)), attention.repeat_heads(V, len(Q))
    return attention.scaled_dot_product_attention(Q, K, V)[0]


_GROUPED = Exercise(
    name="grouped_attention",
    called="my_grouped_attention",
    takes="Q, K, V",
    task="""Attention of h query heads on h_kv key–value heads; h / h_kv neighbours share one.

Q: (h, T_q, d_k). K: (h_kv, T_k, d_k). V: (h_kv, T_k, d_v). h is a multiple of
h_kv. Returns the output, (h, T_q, d_v). NumPy, `math` and `ops.softmax`.
The arguments stay as they were.""",
    reference=_grouped_reference,
    steps={
        "groups": "groups = Q.reshape(len(K), -1, *Q.shape[1:])  # (h_kv, h / h_kv, T_q, d_k)",
        "keys": "K, V = K[:, None], V[:, None]  # (h_kv, 1, T_k, ·): one for the whole group",
        "scores": "scores = groups @ K.swapaxes(-1, -2)  # (h_kv, h / h_kv, T_q, T_k)",
        "scale": "scores = scores / math.sqrt(Q.shape[-1])",
        "weights": "weights = ops.softmax(scores)",
        "output": "output = weights @ V",
        "answer": "return output.reshape(len(Q), Q.shape[1], -1)",
    },
    cases=_grouped_cases,
    returns=("output",),
    hints=(
        "Give Q an axis more, so that a group of neighbouring heads stands beside its one key–value head: (h_kv, h / h_kv, T_q, d_k).",
        "`Q.reshape(len(K), -1, *Q.shape[1:])`, and `K[:, None]`, (h_kv, 1, T_k, d_k): NumPy uses the one for all of its group, "
        "and copies nothing.",
        "From there on it is attention as ever: scores over √d_k, softmax, times V. At the end, back to (h, T_q, d_v).",
    ),
    mistakes=GROUPED,
    library=(attention.multi_head_attention,),
    praise="Seven cases, from sharing by all to sharing by none. The cache of SmolLM2 is a third of what nine heads would need.",
    scope={},
    in_pytorch="""# By hand it is K.repeat_interleave(len(Q) // len(K), dim=0): K.repeat would give the heads 0 1 2 0 1 2 …
output = F.scaled_dot_product_attention(Q[None], K[None], V[None], enable_gqa=True)[0]""",
)

# --- Rotary in halves -------------------------------------------------------------------------------------------------


def _halves_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("5 positions, d = 8", (rng.normal(size=(5, 8)), np.arange(5))),
        Case("3 positions from 40 on, d = 6", (rng.normal(size=(3, 6)), np.arange(40, 43))),
        Case("leading axes (2, 3), d = 10", (rng.normal(size=(2, 3, 4, 10)), np.arange(4))),
        Case("a single pair", (rng.normal(size=(7, 2)), np.arange(7))),
        Case("positions in no order, d = 12", (rng.normal(size=(4, 12)), np.array([9, 2, 2, 31]))),
        Case("positions below 0", (rng.normal(size=(4, 6)), np.arange(-3, 1))),
        Case("as many sequences as positions", (rng.normal(size=(4, 4, 6)), np.arange(4))),
        Case("a single position", (rng.normal(size=(1, 6)), np.array([7]))),
    ]


def _halves_reference(x: Array, at: Array) -> Array:
    return library.rotary(x, at, pairs="halves")


_HALVES = Exercise(
    name="rotary_halves",
    called="my_rotary_halves",
    takes="x, at",
    task="""Rotary positions where the columns i and i + d/2 are a pair.

x: (..., T, d), d even. at: positions, (T,). Returns x turned, (..., T, d), its
columns in their old order. Use `positions.rotary(x, at)`, which turns neighbours,
2i and 2i + 1, and two permutations of columns; not its `pairs=`.
The arguments stay as they were.""",
    reference=_halves_reference,
    library=(partial(library.rotary, pairs="halves"),),
    steps={
        "order": "order = np.arange(x.shape[-1]).reshape(2, -1).T.ravel()  # 0, d/2, 1, d/2 + 1, …",
        "beside": "beside = x[..., order]  # each pair side by side",
        "turned": "turned = positions.rotary(beside, at)",
        "answer": "return turned[..., np.argsort(order)]",
    },
    cases=_halves_cases,
    returns=("turned",),
    hints=(
        "Bring each pair side by side, turn, and bring the columns back. For d = 6 the order is 0, 3, 1, 4, 2, 5.",
        "`np.arange(d).reshape(2, -1)` has the first half in row 0 and the second in row 1; its transpose, read row by row, is the order.",
        "`x[..., order]` sorts columns by `order`; `[..., np.argsort(order)]` undoes it.",
    ),
    mistakes=HALVES,
    praise="Eight cases. This permutation is what a converter does to W_Q and W_K between Hugging Face's Llama and a GGUF file.",
)

# --- An induction head by hand ----------------------------------------------------------------------------------------


def _hand_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [Case(f"V = {V}, T = {T}", (V, T)) for V, T in ((3, 5), (4, 4), (2, 7), (6, 3), (5, 9), (1, 4), (3, 1))]


_HAND = Exercise(
    name="induction_head",
    called="my_induction_head",
    takes="V, T",
    task="""Two heads that copy: four matrices of zeros and ones, each (d, d), d = 3V + T.

V symbols, T positions, both numbers. The stream has four blocks of columns, in
this order, one-hot: symbol (V), position (T), symbol before (V), answer (V).
A query x_t scores a key x_s by x_t @ QK @ x_s; what it gets is x_s @ OV, added.
Head 0 looks one back, and writes that symbol into "symbol before". Head 1 looks
where its own symbol is the symbol before, and writes what stands there into
"answer". Returns QK_0, OV_0, QK_1, OV_1. NumPy only.""",
    steps={
        "blocks": "symbol, place = np.arange(V), V + np.arange(T)  # the columns of each block",
        "written": "before, answer = V + T + symbol, 2 * V + T + symbol",
        "size": "d = 3 * V + T",
        "zeros": "QK_0, OV_0, QK_1, OV_1 = np.zeros((4, d, d))",
        "qk_0": "QK_0[place[1:], place[:-1]] = 1  # who stands at t looks for t − 1",
        "ov_0": "OV_0[symbol, before] = 1",
        "qk_1": "QK_1[symbol, before] = 1  # my symbol, as somebody's symbol before",
        "ov_1": "OV_1[symbol, answer] = 1",
        "result": "return QK_0, OV_0, QK_1, OV_1",
    },
    cases=_hand_cases,
    returns=("QK_0", "OV_0", "QK_1", "OV_1"),
    hints=(
        "Each matrix says which column of one block meets which column of another: a 1 at [row, column] makes entry `row` of the "
        "query meet entry `column` of the key, or hands entry `row` over into entry `column`.",
        "Give the columns of each block a name: `symbol, place = np.arange(V), V + np.arange(T)`, and so on. Then "
        "`OV_0[symbol, before] = 1` puts a whole diagonal of ones.",
        "Head 0: query at position t, key at t − 1: `QK_0[place[1:], place[:-1]] = 1`. Head 1: the query's symbol meets the key's "
        "symbol before.",
    ),
    mistakes=HAND,
    # Position 0 may look at itself: it sees nothing else, and with a row of zeros it does so, too.
    spellings={"qk_0": ("QK_0[place[1:], place[:-1]] = 1\nQK_0[place[0], place[0]] = 1",)},
    praise="Seven sizes. Below, your four matrices copy; nobody has trained them.",
)

# --- One input without one head ----------------------------------------------------------------------------------------


@cache  # the same norms in each draw, so that cases can be compared
def _norm_of(d: int, kind: str) -> Callable[[Array], Array]:
    gamma = 1 + 0.3 * np.random.default_rng(d).normal(size=d)
    if kind == "layer":
        return lambda x: ops.layer_norm(x, gamma, 0.1 * gamma)
    return lambda x: gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def _patch_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, d_k: int, into: str, kind: str = "rms") -> Case:
        x, written = 2 * rng.normal(size=(2, *shape))
        d = shape[-1]
        W_Q, W_K, W_V = rng.normal(size=(3, d, d_k)) / np.sqrt(d)
        return Case(label, (x, written, _norm_of(d, kind), W_Q, W_K, W_V, into))

    return [
        case('`into="keys"`', 5, 6, d_k=3, into="keys"),
        case('`into="queries"`', 5, 6, d_k=3, into="queries"),
        case('`into="values"`', 5, 6, d_k=3, into="values"),
        case('a batch of shape (2, 4), `into="keys"`', 2, 4, 7, d_k=5, into="keys"),
        case('layer norm, `into="values"`', 4, 8, d_k=4, into="values", kind="layer"),
        case('a single token, `into="queries"`', 1, 5, d_k=2, into="queries"),
    ]


_PATCHED = Exercise(
    name="patched_inputs",
    called="my_patched_inputs",
    takes="x, written, norm, W_Q, W_K, W_V, into",
    task="""Q, K and V of a head, one of them made as if another head had written nothing.

x: the stream that both heads share, (..., T, d_model). written: the part of x that
the other head has added, of the same shape. norm: a function, (..., d_model) to the
same shape, which comes before the matrices. W_Q, W_K, W_V: (d_model, d_k) each.
into: "queries", "keys" or "values", the one input that is made without `written`.
Returns Q, K, V, (..., T, d_k) each. NumPy only. The arguments stay as they were.""",
    steps={
        "whole": "whole = norm(x)",
        "without": "without = norm(x - written)",
        "queries": 'Q = (without if into == "queries" else whole) @ W_Q',
        "keys": 'K = (without if into == "keys" else whole) @ W_K',
        "values": 'V = (without if into == "values" else whole) @ W_V',
        "answer": "return Q, K, V",
    },
    cases=_patch_cases,
    returns=("Q", "K", "V"),
    hints=(
        "You need two readings of the stream: one as it is, and one that lacks what the other head has written. Two of the "
        "three inputs use the first, and one uses the second.",
        "`whole = norm(x)` and `without = norm(x - written)`. The norm comes after the subtraction, because the stream is what "
        "the other head has written into.",
        'For the keys: `K = (without if into == "keys" else whole) @ W_K`. Queries and values are built alike.',
    ),
    mistakes=PATCHED,
    praise="Six cases, with two kinds of norm. Below, your function cuts one wire in a model.",
    in_pytorch="""# Not `x -= written`: in place, whoever else reads this stream would lose it, too.
whole, without = norm(x), norm(x - written)
Q, K, V = (
    (without if name == into else whole) @ W for name, W in (("queries", W_Q), ("keys", W_K), ("values", W_V))
)""",
)

EXERCISES = (_SCORE, _HAND, _PATCHED, _NORM, _GROUPED, _HALVES)
