"""The ways to get a GRU step, the additive score and the context vector wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils import ops
from lesson_utils._checks import Array, Mask
from lesson_utils.exercises.old_checker import Misconception

# --- A GRU step -------------------------------------------------------------------------------------------------------


def _thirds(x: Array) -> list[Array]:
    return np.split(x, 3, axis=-1)


def _mix(z: Array, n: Array, h: Array) -> Array:
    return (1 - z) * n + z * h


def _linear(x: Array) -> Array:
    return x


def _gru(
    cut: Callable[[Array], Any] = _thirds,
    gate: Callable[[Array], Array] = ops.sigmoid,
    bend: Callable[[Array], Array] = np.tanh,
    candidate: Callable[..., Array] = lambda r, x_n, h_n, b_h: x_n + r * (h_n + b_h),
    mix: Callable[[Array, Array, Array], Array] = _mix,
    swap: bool = False,
    bias: bool = True,
    bias_twice: bool = False,
) -> Callable[..., Array]:
    """A GRU step with one part exchanged."""

    def step(x: Array, h: Array, W_x: Array, W_h: Array, b: Array, b_h: Array) -> Array:
        x_r, x_z, x_n = cut(x @ W_x + b if bias else x @ W_x)
        h_r, h_z, h_n = cut(h @ W_h + b if bias_twice else h @ W_h)
        r, z = gate(x_r + h_r), gate(x_z + h_z)
        if swap:
            r, z = z, r
        return mix(z, bend(candidate(r, x_n, h_n, b_h)), h)

    return step


def _reset_first(inside: bool) -> Callable[..., Array]:
    """(r · h) W_hn, as in the paper, with the second bias or without."""

    def step(x: Array, h: Array, W_x: Array, W_h: Array, b: Array, b_h: Array) -> Array:
        x_r, x_z, x_n = _thirds(x @ W_x + b)
        h_r, h_z, _ = _thirds(h @ W_h)
        r, z = ops.sigmoid(x_r + h_r), ops.sigmoid(x_z + h_z)
        n = np.tanh(x_n + (r * h) @ _thirds(W_h)[2] + (b_h if inside else 0))
        return _mix(z, n, h)

    return step


GRU = (
    Misconception(
        "1 − z on the wrong side",
        "You keep 1 − z of the old state. Here z says how much of the old state *stays*: `(1 - z) * n + z * h`. (Some papers "
        "let z say how much is replaced; a model trained one way can't be read the other way.)",
        _gru(mix=lambda z, n, h: z * n + (1 - z) * h),
    ),
    Misconception(
        "gates swapped",
        "You took r for z and z for r. The columns are, from left to right, those of r, z and n.",
        _gru(swap=True),
    ),
    Misconception(
        "reset before the product",
        "You reset the state before it is multiplied: `(r * h) @ W_hn`. That is the formula of Cho et al. (2014). The variant "
        "asked for, that of PyTorch, resets after it: `r * (h @ W_hn + b_h)`. With the same weights the two differ.",
        _reset_first(True),
        _reset_first(False),
    ),
    Misconception(
        "reset on the input too",
        "Your r scales the whole candidate, the input's part included. It decides how much of the *old state* the candidate "
        "sees: `x_n + r * (h_n + b_h)`.",
        _gru(candidate=lambda r, x_n, h_n, b_h: r * (x_n + h_n + b_h)),
    ),
    Misconception(
        "no reset",
        "You never use r. It scales what the candidate sees of the old state: `r * (h_n + b_h)`.",
        _gru(candidate=lambda r, x_n, h_n, b_h: x_n + h_n + b_h),
        _gru(candidate=lambda r, x_n, h_n, b_h: x_n + h_n),
    ),
    Misconception(
        "b_h outside the reset",
        "You add b_h outside. It belongs to the product with the old state, and r scales both: `r * (h_n + b_h)`.",
        _gru(candidate=lambda r, x_n, h_n, b_h: x_n + r * h_n + b_h),
    ),
    Misconception(
        "b_h forgotten",
        "You never use b_h, the candidate's second bias: `r * (h_n + b_h)`.",
        _gru(candidate=lambda r, x_n, h_n, b_h: x_n + r * h_n),
    ),
    Misconception(
        "b forgotten",
        "You never use b. It is added once, to the product with the input: `x @ W_x + b`.",
        _gru(bias=False),
    ),
    Misconception(
        "b added twice",
        "You add b to both products. It belongs to the input's: `x @ W_x + b`, but `h @ W_h`.",
        _gru(bias_twice=True),
    ),
    Misconception(
        "candidate without tanh",
        "Your candidate has no tanh around it. tanh keeps the state between −1 and 1, however long the sequence.",
        _gru(bend=_linear),
    ),
    Misconception(
        "candidate with the logistic function",
        "You put the logistic function around the candidate: it could never be negative. The gates are fractions, the "
        "candidate is a state: `np.tanh`.",
        _gru(bend=ops.sigmoid),
    ),
    Misconception(
        "gates with tanh",
        "You put tanh around the gates: then they lie between −1 and 1. A gate is a fraction, between 0 and 1: `ops.sigmoid`.",
        _gru(gate=np.tanh),
    ),
    Misconception(
        "gates without the logistic function",
        "Your gates are bare sums. A gate is a fraction, between 0 and 1: put `ops.sigmoid` around it.",
        _gru(gate=_linear),
    ),
    Misconception(
        "candidate only",
        "You return the candidate n. The new state mixes it with the old one: `(1 - z) * n + z * h`.",
        _gru(mix=lambda z, n, h: n),
    ),
    Misconception(
        "old state left out",
        "You return (1 − z) · n and leave the old state out. What stays of it is z · h: this sum is how a GRU remembers.",
        _gru(mix=lambda z, n, h: (1 - z) * n),
    ),
    Misconception(
        "candidate unweighted",
        "You add the whole candidate. The two shares must sum to 1: `(1 - z) * n + z * h`.",
        _gru(mix=lambda z, n, h: n + z * h),
    ),
    Misconception(
        "new state unweighted",
        "You add the whole old state. The two shares must sum to 1: `(1 - z) * n + z * h`.",
        _gru(mix=lambda z, n, h: (1 - z) * n + h),
    ),
    Misconception(
        "cut along the batch",
        "You cut along axis 0, `np.split`'s default: the batch, or the rows of a matrix. The blocks of r, z and n stand side by "
        "side in the *columns*: `np.split(..., 3, axis=-1)`.",
        _gru(cut=lambda x: np.split(x, 3)),
        lambda x, h, W_x, W_h, b, b_h: (x @ np.split(W_x, 3)[0], np.split(W_h, 3))[0],
        lambda x, h, W_x, W_h, b, b_h: (np.split(W_x, 3), np.split(W_h, 3), x @ np.split(W_x, 3)[0])[2],
    ),
    Misconception(
        "every third column",
        "You take every third column. Each block is d_h columns in a row: first all of r, then all of z, then all of n.",
        _gru(cut=lambda x: [x[..., k::3] for k in range(3)]),
    ),
    Misconception(
        "product the wrong way round",
        "You put the matrix in front. Here each row of x is one sequence of the batch, so the matrix stands behind: `x @ W_x`, "
        "`h @ W_h`.",
        lambda x, h, W_x, W_h, b, b_h: W_x @ x,
        lambda x, h, W_x, W_h, b, b_h: np.dot(W_x, x),
        lambda x, h, W_x, W_h, b, b_h: W_h @ h,
        lambda x, h, W_x, W_h, b, b_h: np.dot(W_h, h),
    ),
    Misconception(
        "* in place of @",
        "`x * W_x` multiplies entry by entry. A matrix product is `x @ W_x`.",
        lambda x, h, W_x, W_h, b, b_h: x * W_x,
        lambda x, h, W_x, W_h, b, b_h: h * W_h,
    ),
)

# --- The additive score -------------------------------------------------------------------------------------------


def _column(from_query: Array) -> Array:
    return from_query[:, None]


def _additive(
    bend: Callable[[Array], Array] = np.tanh,
    lined_up: Callable[[Array], Array] = _column,
    join: Callable[[Array, Array], Array] = np.add,
    end: Callable[[Array, Array], Array] = lambda hidden, v: hidden @ v,
    swap: bool = False,
) -> Callable[..., Array]:
    """An additive score with one part exchanged."""

    def score(query: Array, keys: Array, W_q: Array, W_k: Array, v: Array) -> Array:
        if swap:
            W_q, W_k = W_k, W_q
        return end(bend(join(lined_up(query @ W_q), keys @ W_k)), v)

    return score


ADDITIVE = (
    Misconception(
        "no tanh",
        "There is no tanh. Without it the score is a sum of a part from the query and a part from the key, and the query's part "
        "is the same for every key: softmax cancels it, and the weights ignore the query.",
        _additive(bend=_linear),
    ),
    Misconception(
        "tanh after v",
        "You apply tanh last, around the product with v. It belongs around the sum, before v: `np.tanh(...) @ v`.",
        _additive(bend=_linear, end=lambda hidden, v: np.tanh(hidden @ v)),
    ),
    Misconception(
        "tanh on each part",
        "You bend the two parts one by one. As without any tanh, the query's part is then the same for every key, and softmax "
        "cancels it. Add first: `np.tanh(from_query + from_keys)`.",
        _additive(bend=_linear, join=lambda q, k: np.tanh(q) + np.tanh(k)),
    ),
    Misconception(
        "query not lined up",
        "The query's part has shape (B, d_a), that of the keys (B, S, d_a). NumPy lines up from the right, so that B meets S: "
        "an error, or, where B = S, wrong numbers without one. Give the query an axis for the keys: "
        "`(query @ W_q)[:, None]`, shape (B, 1, d_a).",
        _additive(lined_up=_linear),
        lambda query, keys, W_q, W_k, v: np.tanh(keys @ W_k + query @ W_q) @ v,
        _additive(lined_up=lambda q: q[None]),
    ),
    Misconception(
        "axis in the wrong place",
        "You give the query's part its new axis at the end, (B, d_a, 1). The axis of length S is the one in the middle: "
        "`(query @ W_q)[:, None]`, shape (B, 1, d_a).",
        _additive(lined_up=lambda q: q[..., None]),
        lambda query, keys, W_q, W_k, v: np.tanh(keys @ W_k + (query @ W_q)[..., None]) @ v,
    ),
    Misconception(
        "matrices swapped",
        "You multiplied the query by W_k and the keys by W_q. Only where both have the same width is there no error.",
        _additive(swap=True),
        lambda query, keys, W_q, W_k, v: keys @ W_q,
    ),
    Misconception(
        "weights returned",
        "You return weights. The scores are asked for; softmax comes later.",
        _additive(end=lambda hidden, v: ops.softmax(hidden @ v)),
    ),
    Misconception(
        "multiplied",
        "You multiply the two parts. The score is called additive because they are added before the tanh.",
        _additive(join=np.multiply),
    ),
    Misconception(
        "a dot product",
        "This is the dot product of query and key, after a matrix each: nearly Luong's general score. The additive score adds "
        "them, bends the sum with tanh, and reads a number off it with v.",
        _additive(bend=_linear, join=np.multiply, end=lambda hidden, v: hidden.sum(axis=-1)),
    ),
    Misconception(
        "v forgotten",
        "You add up the hidden numbers as they are. v says how much each of them counts: `hidden @ v`.",
        _additive(end=lambda hidden, v: hidden.sum(axis=-1)),
        _additive(end=lambda hidden, v: hidden.mean(axis=-1)),
    ),
    Misconception(
        "v in front",
        "You put v in front, as the formula is written. `@` would sum over the keys. The hidden numbers are on the last axis: "
        "`np.tanh(...) @ v`.",
        _additive(end=lambda hidden, v: v @ hidden),
        _additive(end=lambda hidden, v: np.dot(v, hidden)),
    ),
    Misconception(
        "not summed",
        "You multiplied by v, but did not add up: a score is one number a pair. `hidden @ v` does both.",
        _additive(end=lambda hidden, v: hidden * v),
    ),
    Misconception(
        "summed over the keys",
        "You summed over the keys. There must be one score for each of them: sum over the last axis, as `hidden @ v` does.",
        _additive(end=lambda hidden, v: (hidden * v).sum(axis=1)),
    ),
    Misconception(
        "an axis too many",
        "Your scores have an axis of length 1 too many; expected (B, S). v is a vector: `hidden @ v`.",
        _additive(end=lambda hidden, v: hidden @ v[:, None]),
        _additive(end=lambda hidden, v: (hidden @ v)[:, None]),
    ),
    Misconception(
        "scaled",
        "You divided by a root of a width. That belongs to dot products of many terms (notebook 02); the additive score has none.",
        _additive(end=lambda hidden, v: hidden @ v / np.sqrt(len(v))),
    ),
    Misconception(
        "logistic function for tanh",
        "You used the logistic function. Bahdanau's score bends with tanh.",
        _additive(bend=ops.sigmoid),
    ),
    Misconception(
        "ReLU for tanh",
        "You used ReLU, max(0, x). Bahdanau's score bends with tanh.",
        _additive(bend=lambda x: np.maximum(x, 0)),
    ),
)

# --- The context vector ---------------------------------------------------------------------------------------------


def _hide(scores: Array, mask: Mask) -> Array:
    return np.where(mask, scores, -np.inf)


def _average(weights: Array, keys: Array) -> Array:
    return (weights[..., None] * keys).sum(axis=1)


def _context(
    hide: Callable[[Array, Mask], Array] = _hide,
    weigh: Callable[[Array], Array] = ops.softmax,
    after: Callable[[Array, Mask], Array] = lambda weights, mask: weights,
    average: Callable[[Array, Array], Array] = _average,
    answer: Callable[[Array, Array], Any] = lambda context, weights: (context, weights),
) -> Callable[..., Any]:
    """A look back with one part exchanged."""

    def look(scores: Array, keys: Array, mask: Mask) -> Any:
        weights = after(weigh(hide(scores, mask)), mask)
        return answer(average(weights, keys), weights)

    return look


def _ignore(scores: Array, mask: Mask) -> Array:
    return scores


CONTEXT = (
    Misconception(
        "mask ignored",
        "You never use the mask: padding gets weight, and the context depends on how long the longest string of the batch is.",
        _context(hide=_ignore),
    ),
    Misconception(
        "mask inverted",
        "You hide what is real and look at the padding. True means: a real letter.",
        _context(hide=lambda scores, mask: np.where(mask, -np.inf, scores)),
        _context(hide=lambda scores, mask: np.where(mask, -1e9, scores)),
        _context(hide=lambda scores, mask: scores + mask * -1e9),
    ),
    Misconception(
        "mask after softmax",
        "You remove the padding's weights after softmax; what is left sums to less than 1. Set the scores to −∞ before it.",
        _context(hide=_ignore, after=lambda weights, mask: weights * mask),
    ),
    Misconception(
        "padding scored 0",
        "You set the padding's scores to 0. exp(0) = 1: it still gets weight. A score of −∞ gives none.",
        _context(hide=lambda scores, mask: scores * mask),
    ),
    Misconception(
        "0 times infinity",
        "You multiply the mask by −∞ and add it. 0 · ∞ is NaN: the real letters are lost. Choose with `np.where(mask, scores, "
        "-np.inf)`.",
        _context(hide=lambda scores, mask: scores + (1 - mask) * -np.inf),
    ),
    Misconception(
        "softmax over the batch",
        "Your softmax runs along axis 0: the strings of the batch compete with each other. The letters of one string should: "
        "the last axis.",
        _context(weigh=lambda x: ops.softmax(x, axis=0)),
    ),
    Misconception(
        "softmax over everything",
        "Your weights sum to 1 over the whole batch. Each string has a softmax of its own: the last axis.",
        _context(weigh=lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()),
        _context(weigh=lambda x: np.exp(x) / np.exp(x).sum()),
    ),
    Misconception(
        "no softmax",
        "You average with the scores themselves. Softmax makes weights of them, not negative and with sum 1.",
        _context(hide=lambda scores, mask: np.where(mask, scores, 0), weigh=_linear),
        _context(hide=_ignore, weigh=_linear),
        _context(weigh=_linear),
    ),
    Misconception(
        "largest only",
        "All the weight goes to the best letter. Softmax leaves the others a share.",
        _context(weigh=lambda x: (x == x.max(axis=-1, keepdims=True)).astype(x.dtype)),
    ),
    Misconception(
        "plain mean",
        "Your context is the plain mean of all keys; the weights take no part in it.",
        _context(average=lambda weights, keys: keys.mean(axis=1)),
    ),
    Misconception(
        "plain sum",
        "Your context adds the keys up as they are; the weights take no part in it.",
        _context(average=lambda weights, keys: keys.sum(axis=1)),
    ),
    Misconception(
        "weights of all, keys of each",
        "`weights @ keys` reads (B, S) as one matrix and applies it to every string: (B, B, d), each string with the weights of "
        "all others. Each needs its own row: `weights[:, None] @ keys`, (B, 1, S) @ (B, S, d), and drop the 1.",
        _context(average=lambda weights, keys: weights @ keys),
    ),
    Misconception(
        "np.dot",
        "`np.dot` combines every string's weights with every string's keys. `@` goes through the batch side by side: "
        "`weights[:, None] @ keys`.",
        _context(average=lambda weights, keys: np.dot(weights, keys)),
    ),
    Misconception(
        "not lined up",
        "`weights * keys` lines up (B, S) with the *last* axes of (B, S, d): an error, or wrong numbers where the sizes happen "
        "to be equal. Give the weights an axis for the width: `weights[..., None] * keys`.",
        _context(average=lambda weights, keys: (weights * keys).sum(axis=1)),
        _context(average=lambda weights, keys: (keys * weights).sum(axis=1)),
        _context(average=lambda weights, keys: weights * keys),
    ),
    Misconception(
        "not summed",
        "You weighted the keys, but did not add them up: sum over the letters, axis 1.",
        _context(average=lambda weights, keys: weights[..., None] * keys),
    ),
    Misconception(
        "summed over the width",
        "You summed each key to one number. Add the S keys of a string to each other: axis 1.",
        _context(average=lambda weights, keys: (weights[..., None] * keys).sum(axis=-1)),
    ),
    Misconception(
        "summed over the batch",
        "You summed over the strings of the batch. Add the S keys of each string to each other: axis 1.",
        _context(average=lambda weights, keys: (weights[..., None] * keys).sum(axis=0)),
    ),
    Misconception(
        "divided by S",
        "You divided by the number of letters. The weights sum to 1 already: `sum`, not `mean`.",
        _context(average=lambda weights, keys: (weights[..., None] * keys).mean(axis=1)),
    ),
    Misconception(
        "an axis too many",
        "Your context has shape (B, 1, d). Drop the axis of length 1: `(weights[:, None] @ keys)[:, 0]`.",
        _context(average=lambda weights, keys: weights[:, None] @ keys),
    ),
    Misconception(
        "results swapped",
        "The order is turned around: `return context, weights`.",
        _context(answer=lambda context, weights: (weights, context)),
    ),
    Misconception(
        "only the context",
        "You return the context alone; the weights are asked for as well: `return context, weights`.",
        _context(answer=lambda context, weights: context),
    ),
)
