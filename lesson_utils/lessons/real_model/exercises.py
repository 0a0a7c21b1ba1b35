"""The exercises of notebook 09, and the ways to get them wrong, as learners type them."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

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
    change("leaves its block", "In your QK_0, the row of position 0 has a 1 in the column of a symbol. Nothing stands before position 0, so its row holds zeros only. Begin with position 1.", qk_0="QK_0[place, place - 1] = 1"),
    change("looks two back", "Your head 0 looks two back. It should look one back: in QK_0, the row of position t has its 1 in the column of position t − 1.", qk_0="QK_0[place[2:], place[:-2]] = 1"),
    change("blocks in another order", "Your blocks stand in another order. The columns are: symbol first, then position, symbol before, answer.", blocks="place, symbol = np.arange(T), T + np.arange(V)", written="before, answer = V + np.arange(V) + T, 2 * V + np.arange(V) + T"),
)

KNOCK = (
    change("all other heads", "You replace all other heads, and keep those of `heads`.", put='outputs[:, np.delete(np.arange(outputs.shape[1]), heads)] = outputs.mean(axis=(0, 2), keepdims=True)[:, np.delete(np.arange(outputs.shape[1]), heads)] if by == "mean" else 0.0'),
    change("every head", "You replace every head. Only those of `heads` are to go: `outputs[:, heads]`.", mean="mean = outputs.mean(axis=(0, 2), keepdims=True)", put='outputs[:, :] = mean if by == "mean" else 0.0'),
    change("one head of several", "You replace the first of `heads` only. There may be several.", mean="mean = outputs[:, heads[:1]].mean(axis=(0, 2), keepdims=True)", put='outputs[:, heads[:1]] = mean if by == "mean" else 0.0'),
    change("positions", "Your index picks positions. Heads are the second axis: `[:, heads]`.", "outputs = outputs.copy()\noutputs[:, :, heads] = outputs[:, :, heads].mean(axis=(0, 1), keepdims=True) if by == \"mean\" else 0.0\nreturn outputs"),
    change("columns", "Your index picks columns, the last axis. Heads are the second axis: `[:, heads]`.", "outputs = outputs.copy()\noutputs[..., heads] = outputs[..., heads].mean(axis=(0, 2), keepdims=True) if by == \"mean\" else 0.0\nreturn outputs", put="outputs[..., heads] = 0.0"),
    change("the batch", "Your index picks sequences of the batch. Heads are the second axis: `[:, heads]`.", "outputs = outputs.copy()\noutputs[heads] = outputs[heads].mean(axis=(0, 2), keepdims=True) if by == \"mean\" else 0.0\nreturn outputs", put="outputs[heads] = 0.0"),
    change("only these heads", "You return the heads that go, and no others. Return all heads, (B, h, T, d_k): the others as they were.", answer="return outputs[:, heads]"),
    change("the mean of the other heads", "You put the mean over the heads. Each head has a mean of its own: over the batch and the positions, the axes 0 and 2.", mean="mean = outputs.mean(axis=1, keepdims=True)"),
    change("zeros whatever is asked", "You put zeros whatever `by` says. With `by=\"mean\"`, the head's own mean takes the place of its output.", put="outputs[:, heads] = 0.0"),
    change("the mean whatever is asked", "You put the mean whatever `by` says. With `by=\"zero\"`, zeros take its place.", put="outputs[:, heads] = mean"),
    change("zero and mean exchanged", "You exchange \"zero\" and \"mean\".", put='outputs[:, heads] = mean if by == "zero" else 0.0'),
    change("the mean of all heads", "Your mean is of several heads together. Each head has a mean of its own: over the batch and the positions, the axes 0 and 2.", mean=("mean = outputs[:, heads].mean(axis=(0, 1, 2), keepdims=True)", "mean = outputs.mean(axis=(0, 1, 2), keepdims=True)")),
    change("one number", "Your mean is one number for a whole head. Each of its d_k columns keeps its own: take the mean over the axes 0 and 2 only.", mean=("mean = outputs[:, heads].mean(axis=(0, 2, 3), keepdims=True)", "mean = outputs[:, heads].mean()")),
    change("the mean of a sequence", "Your mean is of one sequence: over the positions only. Take it over the batch, too: `axis=(0, 2)`.", mean="mean = outputs[:, heads].mean(axis=2, keepdims=True)"),
    change("the mean of a position", "Your mean is of one position, over the batch only. Take it over the positions, too: `axis=(0, 2)`.", mean="mean = outputs[:, heads].mean(axis=0, keepdims=True)"),
    change("the mean over columns", "You take the mean over the columns, d_k. A head's mean output is over the batch and the positions: `axis=(0, 2)`.", mean="mean = outputs[:, heads].mean(axis=3, keepdims=True)"),
    change("taken away", "You take the mean away from the output. The mean should stand in its place.", put='outputs[:, heads] = outputs[:, heads] - mean if by == "mean" else 0.0'),
    change("left out", "You leave the heads out, so that the layer has fewer. Each head keeps its place; what it hands over is replaced.", "return np.delete(outputs, heads, axis=1)"),
)

MOVED = (
    change("not taken out", "The message stands in both places: you add the moved one, and leave the old one in x. Take it out, too: `x - written + …`.", answer="return x + moved"),
    change("only taken out", "You take the message out, and put it nowhere. Add it again, `places` later: `np.roll(written, places, axis=-2)`.", answer="return x - written"),
    change("the whole stream", "You move the whole stream. Only what this head has written is to move; all else stays in its place.", answer="return np.roll(x, places, axis=-2)"),
    change("the message alone", "You return the moved message alone. All else that stands in the stream stays: `x - written + …`.", answer="return moved"),
    change("earlier", "Your message comes earlier. `np.roll` by a positive number moves it later.", moved="moved = np.roll(written, -places, axis=-2)"),
    change("along the columns", "You move along the columns, the last axis. Positions are the axis before it: `axis=-2`.", moved="moved = np.roll(written, places, axis=-1)"),
    change("along axis 0", "You move along axis 0, which may be the batch. Positions are the last axis but one: `axis=-2`.", moved="moved = np.roll(written, places, axis=0)"),
    change("along axis 1", "You move along axis 1, which is that of the positions in some arrays only. Count from the end: `axis=-2`.", moved="moved = np.roll(written, places, axis=1) if x.ndim > 2 else np.roll(written, places, axis=-1)"),
    change("without an axis", "Without `axis`, `np.roll` moves through all numbers of the array, from one row into the next. Name the axis of the positions: `axis=-2`.", moved="moved = np.roll(written, places)"),
    change("by one whatever is asked", "You move by 1, whatever `places` says.", moved="moved = np.roll(written, 1, axis=-2)"),
    change("added twice", "You add the old message once more. Take it out of x, and add the moved one: `x - written + …`.", answer="return x + written + moved"),
    change("the moved one taken out", "You take the message out of its new place, where it has never been. Take it out of the old one, and add the moved one: `x - written + …`.", answer="return x - moved"),
    change("what falls off is lost", "What falls off one end is lost. It comes in at the other, as `np.roll` does it.", moved="moved = np.zeros_like(written)\nif places >= 0: moved[..., places:, :] = written[..., : written.shape[-2] - places, :]\nelse: moved[..., :places, :] = written[..., -places:, :]"),
    change("all else moved", "You move all else, and leave the message where it is. It is the message that moves.", answer="return np.roll(x - written, places, axis=-2) + written"),
    change("signs exchanged", "You take the moved message away, and add the old one. It is the other way round: `x - written + …`.", answer="return x + written - moved"),
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
    in_pytorch="""# torch.zeros is float32: where x has another dtype, x @ QK is an error. Pass dtype=x.dtype.
symbol, place = torch.arange(V), V + torch.arange(T)
before, answer = V + T + symbol, 2 * V + T + symbol
QK_0, OV_0, QK_1, OV_1 = torch.zeros(4, 3 * V + T, 3 * V + T)
QK_0[place[1:], place[:-1]] = 1
OV_0[symbol, before] = QK_1[symbol, before] = OV_1[symbol, answer] = 1""",
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

# --- A knock-out ------------------------------------------------------------------------------------------------------


def _knock_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, heads: list[int], by: str, *shape: int) -> Case:
        return Case(label, (1 + rng.normal(size=shape), heads, by))

    return [
        case('head 1 of 3, `by="zero"`', [1], "zero", 2, 3, 4, 5),
        case('head 0 of 2, `by="mean"`', [0], "mean", 3, 2, 5, 4),
        case('heads 0 and 3 of 4, `by="mean"`', [0, 3], "mean", 2, 4, 3, 2),
        case('heads 2 and 1 of 4, `by="zero"`', [2, 1], "zero", 3, 4, 2, 6),
        case("as many heads as sequences and positions", [2], "mean", 3, 3, 3, 3),
        case("a single sequence", [1], "mean", 1, 2, 6, 3),
        case("a single position", [0], "mean", 4, 3, 1, 2),
    ]


_KNOCK = Exercise(
    name="knock_out",
    called="my_knock_out",
    takes="outputs, heads, by",
    task="""What a layer's heads hand over, with some of them switched off.

outputs: (B, h, T, d_k), of each head, before W_O. heads: a list of heads.
by: "zero" puts zeros in the place of their outputs, and "mean" puts the mean that
each of these heads has over batch and positions, (d_k,), at every position.
Returns (B, h, T, d_k). NumPy only. outputs stay as they were.""",
    steps={
        "copy": "outputs = outputs.copy()",
        "mean": "mean = outputs[:, heads].mean(axis=(0, 2), keepdims=True)  # (1, heads, 1, d_k)",
        "put": 'outputs[:, heads] = mean if by == "mean" else 0.0',
        "answer": "return outputs",
    },
    cases=_knock_cases,
    returns=("outputs",),
    hints=(
        "Change a copy: `outputs.copy()`. Heads are the second axis, so `outputs[:, heads]` are those that go.",
        'With `by="zero"`, assign 0.0. With "mean", assign their mean over the axes 0 and 2.',
        "`outputs[:, heads].mean(axis=(0, 2), keepdims=True)` has shape (1, len(heads), 1, d_k), and lines up.",
    ),
    mistakes=KNOCK,
    praise="Seven cases, by zeros and by means. Below, your function switches a head off.",
    in_pytorch="""# In a hook on a module of heads. In place it would also change what others have kept of this output: clone it.
outputs = outputs.clone()
outputs[:, heads] = 0.0 if by == "zero" else outputs[:, heads].mean(dim=(0, 2), keepdim=True)""",
)

# --- A message that is moved ------------------------------------------------------------------------------------------


def _moved_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, places: int, *shape: int) -> Case:
        x, written = rng.normal(size=(2, *shape))
        return Case(label, (x, written, places))

    return [
        case("one place later", 1, 5, 3),
        case("two later, a batch of 2", 2, 2, 6, 4),
        case("one earlier: −1", -1, 3, 5, 2),
        case("as many positions as columns", 1, 4, 4, 4),
        case("leading axes (2, 3), two later", 2, 2, 3, 5, 4),
        case("not at all: 0", 0, 4, 3),
    ]


_MOVED = Exercise(
    name="moved_message",
    called="my_moved_message",
    takes="x, written, places",
    task="""The stream, with what one head has written so many places later.

x: the stream, (..., T, d_model). written: the part of x that the head has added, of
the same shape. places: below 0 means earlier. What falls off one end comes in at the
other. All else in x stays where it is. Returns (..., T, d_model). NumPy only.
The arguments stay as they were.""",
    steps={
        "moved": "moved = np.roll(written, places, axis=-2)",
        "answer": "return x - written + moved",
    },
    cases=_moved_cases,
    returns=("stream",),
    hints=(
        "Take the message out of the stream, and put it in again, elsewhere.",
        "`np.roll(written, places, axis=-2)` moves along the positions.",
        "`x - written` is the stream without the message.",
    ),
    mistakes=MOVED,
    praise="Six cases. Below, your line makes a model say something else.",
    in_pytorch="""# torch.roll without dims moves through all numbers of the tensor, as np.roll does without axis.
stream = x - written + torch.roll(written, places, dims=-2)""",
)

EXERCISES = (_HAND, _KNOCK, _SCORE, _PATCHED, _MOVED)
