"""The ways to get a causal mask, masked attention, sampling and a decoding step wrong."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils import ops
from lesson_utils._checks import Array, Mask
from lesson_utils.exercises.old_checker import Misconception

Step = Callable[..., Any]

# --- The causal mask ------------------------------------------------------------------------------------------------


def _tri(k: Callable[[int, int], int]) -> Step:
    return lambda T_q, T_k: np.tri(T_q, T_k, k=k(T_q, T_k), dtype=bool)


def _not_tri(k: Callable[[int, int], int]) -> Step:
    return lambda T_q, T_k: ~np.tri(T_q, T_k, k=k(T_q, T_k), dtype=bool)


MASK = (
    Misconception(
        "inverted",
        "This is True where the query may **not** look. Here True means may attend: turn it around.",
        _not_tri(lambda T_q, T_k: T_k - T_q),
        _not_tri(lambda T_q, T_k: 0),
    ),
    Misconception(
        "cannot see itself",
        "No query sees its own position, and where T_q = T_k the first sees nothing at all. The last visible key is the "
        "query's own: j ≤ i + T_k − T_q.",
        _tri(lambda T_q, T_k: T_k - T_q - 1),
        _tri(lambda T_q, T_k: -1),
    ),
    Misconception(
        "one too far",
        "Each query also sees the key behind its own: the very symbol it has to predict. The last visible key is the query's "
        "own: j ≤ i + T_k − T_q.",
        _tri(lambda T_q, T_k: T_k - T_q + 1),
        _tri(lambda T_q, T_k: 1),
    ),
    Misconception(
        "transposed",
        "This is the upper triangle: each query sees itself and what comes after it. Rows are queries, columns are keys; the "
        "past is on the left, so keep the lower triangle.",
        lambda T_q, T_k: np.triu(np.ones((T_q, T_k), bool), k=T_k - T_q),
        lambda T_q, T_k: np.triu(np.ones((T_q, T_k), bool)),
    ),
    Misconception(
        "queries counted from the start",
        "You treat the queries as the *first* T_q positions. They are the last: query i stands at position i + T_k − T_q, so "
        "the diagonal is moved by `k=T_k - T_q`.",
        _tri(lambda T_q, T_k: 0),
    ),
    Misconception(
        "moved the wrong way",
        "You move the diagonal by T_q − T_k, to the left. Query i stands at position i + T_k − T_q: move it to the right, "
        "`k=T_k - T_q`.",
        _tri(lambda T_q, T_k: T_q - T_k),
    ),
    Misconception(
        "axes swapped",
        "Your mask has a row for each key. Rows are queries: shape (T_q, T_k).",
        lambda T_q, T_k: np.tri(T_k, T_q, dtype=bool),
        lambda T_q, T_k: np.tri(T_k, T_q, k=T_q - T_k, dtype=bool),
        lambda T_q, T_k: np.tri(T_k, T_q, k=T_k - T_q, dtype=bool),
        lambda T_q, T_k: np.tri(T_q, T_k, k=T_k - T_q, dtype=bool).T,
        lambda T_q, T_k: np.tri(T_q, T_k, dtype=bool).T,
    ),
    Misconception(
        "square",
        "Your mask is square. There are T_q queries and T_k keys: shape (T_q, T_k).",
        lambda T_q, T_k: np.tri(T_q, dtype=bool),
        lambda T_q, T_k: np.tri(T_k, dtype=bool),
    ),
    Misconception(
        "numbers to add",
        "These are numbers to be added to scores. A mask in this course holds True (may attend) and False.",
        *(
            lambda T_q, T_k, k=k, h=h: np.where(np.tri(T_q, T_k, k=T_k - T_q if k else 0), 0.0, h)
            for k in (True, False)
            for h in (-np.inf, -1e9)
        ),
    ),
)

# --- Masked attention -----------------------------------------------------------------------------------------------


def _own_softmax(scores: Array, axis: int = -1) -> Array:
    """Softmax as a learner writes it: NaN where all scores are −∞."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _masked(
    hide: Step = lambda scores, mask: np.where(mask, scores, -np.inf),
    normalise: Step = ops.softmax,
    finish: Step = lambda weights, mask: weights,
    answer: Step = lambda weights, V: (weights @ V, weights),
) -> Step:
    """Masked attention with some of its steps replaced."""

    def wrong(scores: Array, V: Array, mask: Mask) -> Any:
        return answer(finish(normalise(hide(scores, mask)), mask), V)

    return wrong


def _replaced(value: float) -> Step:
    return lambda scores, mask: np.where(mask, scores, scores.dtype.type(value))


ATTENTION = (
    Misconception(
        "0/0",
        "A query that sees nothing gets NaN: all its scores are −∞, and −∞ − (−∞), or 0 / 0, is NaN. It must get zero weights and "
        "a zero output; divide by 1 where the sum is 0.",
        _masked(normalise=_own_softmax),
        _masked(
            normalise=np.exp,
            finish=lambda e, mask: e * mask / (e * mask).sum(axis=-1, keepdims=True),
        ),
    ),
    Misconception(
        "output mended, weights not",
        "The output is free of NaN, but the weights are not. Mend the weights, then average with them.",
        _masked(normalise=_own_softmax, answer=lambda w, V: (np.nan_to_num(w @ V), w)),
        _masked(normalise=_own_softmax, answer=lambda w, V: (np.nan_to_num(w) @ V, w)),
    ),
    Misconception(
        "a finite number in place of −∞",
        "Where a query sees nothing, all its scores are the same finite number, such as −1e9: softmax makes equal weights of them, "
        "and the output is the mean of what should be hidden. Use −∞, and give such rows zero weights.",
        *(_masked(hide=_replaced(-n)) for n in (1e9, 1e4)),
        _masked(hide=lambda scores, mask: np.where(mask, scores, np.finfo(scores.dtype).min)),
        _masked(hide=lambda scores, mask: scores + np.where(mask, 0, -1e9)),
        _masked(hide=lambda scores, mask: scores + np.where(mask, 0, -1e9).astype(scores.dtype)),
        _masked(hide=lambda scores, mask: scores + np.where(mask, 0, -1e4)),
    ),
    Misconception(
        "mask ignored",
        "Your weights are as if there were no mask. Hide the scores where it is False, before softmax.",
        _masked(hide=lambda scores, mask: scores),
    ),
    Misconception(
        "mask inverted",
        "Your mask is the wrong way round. Here True means may attend: keep the scores where it is True.",
        _masked(hide=lambda scores, mask: np.where(mask, -np.inf, scores)),
        _masked(hide=lambda scores, mask: np.where(mask, -np.inf, scores), normalise=_own_softmax),
        _masked(hide=lambda scores, mask: np.where(mask, -1e9, scores)),
    ),
    Misconception(
        "mask after softmax",
        "You hide weights after softmax. Then the rows no longer sum to 1, and the hidden scores still count in the sum below "
        "the fraction bar: a leak. Hide scores before it.",
        _masked(hide=lambda scores, mask: scores, finish=lambda weights, mask: weights * mask),
    ),
    Misconception(
        "masked with 0",
        "You set hidden scores to 0. But exp(0) is 1: a score of 0 is an ordinary score. Use −∞.",
        _masked(hide=lambda scores, mask: np.where(mask, scores, 0)),
    ),
    Misconception(
        "0 times infinity",
        "Your masked scores hold NaN. `~mask * -np.inf` does that: 0 · ∞ is NaN. Write `np.where(mask, scores, -np.inf)`.",
        _masked(hide=lambda scores, mask: scores + ~mask * -np.inf, normalise=_own_softmax),
        _masked(hide=lambda scores, mask: scores + ~mask * -np.inf),
    ),
    Misconception(
        "mask as an index",
        "`scores[mask]` needs a mask of exactly the scores' shape. `np.where` also takes one that broadcasts, such as a padding "
        "mask of shape (B, 1, T_k).",
        *(_masked(hide=lambda s, mask, n=n: _assigned(s, ~mask, n)) for n in (-np.inf, -1e9)),
        _masked(hide=lambda s, mask: _assigned(s, ~mask, -np.inf), normalise=_own_softmax),
    ),
    Misconception(
        "down the columns",
        "Your softmax runs over the queries. It must run over the keys, the last axis.",
        _masked(normalise=lambda scores: ops.softmax(scores, axis=-2)),
        _masked(normalise=lambda scores: _own_softmax(scores, axis=-2)),
    ),
    Misconception(
        "scaled again",
        "You divide the scores by a root. They are scaled already: mask them, apply softmax, average.",
        lambda scores, V, mask: _masked()(scores / math.sqrt(V.shape[-1]), V, mask),
        lambda scores, V, mask: _masked()(scores / math.sqrt(scores.shape[-1]), V, mask),
    ),
    Misconception(
        "results swapped",
        "Your two results are in the wrong order: `return output, weights`.",
        _masked(answer=lambda weights, V: (weights, weights @ V)),
    ),
    Misconception(
        "only the output",
        "This is the output. Return the weights as well: `return output, weights`.",
        _masked(answer=lambda weights, V: weights @ V),
    ),
)


def _assigned(scores: Array, where: Mask, value: float) -> Array:
    scores = scores.copy()
    scores[where] = value
    return scores


# --- Sampling -------------------------------------------------------------------------------------------------------


def _likeliest(logits: Array, k: int) -> Mask:
    """True for the k largest; for k = 0 for none, and for k above the size for all."""
    kept = np.zeros(logits.shape, bool)
    kept[np.argsort(-logits)[:k]] = True
    return kept


def _top(logits: Array, kept: Mask, temperature: float = 1.0) -> Array:
    return ops.softmax(np.where(kept, logits, -np.inf) / temperature)


SAMPLING = (
    Misconception(
        "temperature ignored",
        "The temperature has no effect. Divide the logits by it, before softmax.",
        lambda logits, temperature, top_k: _top(logits, _likeliest(logits, top_k)),
    ),
    Misconception(
        "multiplied by the temperature",
        "You multiply by the temperature, so that more of it makes the model bolder in its first choice. Divide by it.",
        lambda logits, temperature, top_k: _top(logits, _likeliest(logits, top_k), 1 / temperature),
    ),
    Misconception(
        "temperature after softmax",
        "You divide the probabilities by the temperature. That changes all of them alike, and they no longer sum to 1. Divide "
        "the logits.",
        lambda logits, temperature, top_k: _top(logits, _likeliest(logits, top_k)) / temperature,
    ),
    Misconception(
        "top_k ignored",
        "Every symbol can still be drawn. Set the logits of all but the `top_k` largest to −∞.",
        lambda logits, temperature, top_k: ops.softmax(logits / temperature),
    ),
    Misconception(
        "cut without sharing out",
        "What remains sums to less than 1. Cut before softmax, with −∞, or divide by the new sum after it.",
        lambda logits, temperature, top_k: ops.softmax(logits / temperature) * _likeliest(logits, top_k),
    ),
    Misconception(
        "one too few",
        "You keep top_k − 1 symbols. The last that stays is the `top_k`-th largest, `np.sort(logits)[-top_k]`: compare with "
        "`>=`, not `>`.",
        lambda logits, temperature, top_k: _top(logits, _likeliest(logits, top_k - 1), temperature),
        lambda logits, temperature, top_k: _own_softmax(
            np.where(_likeliest(logits, top_k - 1), logits, -np.inf) / temperature
        ),
    ),
    Misconception(
        "one too many",
        "You keep top_k + 1 symbols. The last that stays is the `top_k`-th largest, `np.sort(logits)[-top_k]`.",
        lambda logits, temperature, top_k: _top(logits, _likeliest(logits, top_k + 1), temperature),
        lambda logits, temperature, top_k: _top(logits, logits >= np.sort(logits)[-top_k - 1], temperature),
    ),
    Misconception(
        "the unlikeliest",
        "You keep the smallest logits. `np.sort` and `np.argsort` put the smallest first: the largest are at the end.",
        lambda logits, temperature, top_k: _top(logits, _likeliest(-logits, top_k), temperature),
    ),
    Misconception(
        "counted from the wrong end",
        "You count from the wrong end: `np.sort` puts the smallest first, so yours is about the `top_k`-th *smallest*. The "
        "`top_k`-th largest is `np.sort(logits)[-top_k]`.",
        lambda logits, temperature, top_k: _top(logits, logits >= np.sort(logits)[top_k - 1], temperature),
        lambda logits, temperature, top_k: _top(logits, logits >= np.sort(logits)[top_k], temperature),
    ),
    Misconception(
        "the largest cut",
        "You hide the likeliest and keep the others. Turn it around (`>=`, not `<=`).",
        lambda logits, temperature, top_k: _top(logits, logits <= np.sort(logits)[-top_k], temperature),
        lambda logits, temperature, top_k: _top(logits, ~_likeliest(logits, top_k), temperature),
        lambda logits, temperature, top_k: _own_softmax(
            np.where(_likeliest(logits, top_k), -np.inf, logits) / temperature
        ),
    ),
    Misconception(
        "the first of the vocabulary",
        "You keep the first `top_k` symbols of the vocabulary, whatever their logits. Keep those with the largest logits.",
        lambda logits, temperature, top_k: _top(logits, np.arange(len(logits)) < top_k, temperature),
    ),
    Misconception(
        "cut to 0",
        "You set the other logits to 0. But exp(0) is 1, and they can still be drawn. Set them to −∞.",
        lambda logits, temperature, top_k: ops.softmax(np.where(_likeliest(logits, top_k), logits, 0) / temperature),
    ),
    Misconception(
        "sorted",
        "Your probabilities are in the order of their size. Entry i must belong to symbol i: sort only to find the limit.",
        lambda logits, temperature, top_k: -np.sort(-_top(logits, _likeliest(logits, top_k), temperature)),
        lambda logits, temperature, top_k: np.sort(_top(logits, _likeliest(logits, top_k), temperature)),
    ),
    Misconception(
        "only the kept",
        "You return `top_k` probabilities, and nobody knows whose they are. Return one for each symbol, 0 for those cut off.",
        lambda logits, temperature, top_k: ops.softmax(-np.sort(-logits)[:top_k] / temperature),
        lambda logits, temperature, top_k: ops.softmax(np.sort(logits)[-top_k:] / temperature),
        lambda logits, temperature, top_k: ops.softmax(logits[_likeliest(logits, top_k)] / temperature),
    ),
    Misconception(
        "logits returned",
        "These are logits. Turn them into probabilities: `ops.softmax`.",
        lambda logits, temperature, top_k: np.where(_likeliest(logits, top_k), logits, -np.inf) / temperature,
    ),
)

# --- A decoding step with a cache -----------------------------------------------------------------------------------


def _step(
    new: Step = lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_K, x @ W_V),
    grow: Step = lambda K, V, k, v: (np.concatenate([K, k]), np.concatenate([V, v])),
    scale: Step = lambda q, K, V: 1 / math.sqrt(K.shape[-1]),
    see: Step = lambda K, V, k, v: (K, V),
    normalise: Step = ops.softmax,
    answer: Step = lambda output, K, V, old: (output, K, V),
) -> Step:
    """A decoding step with some of its parts replaced."""

    def wrong(x: Array, W_Q: Array, W_K: Array, W_V: Array, K: Array, V: Array) -> Any:
        old = K, V
        q, k, v = new(x, W_Q, W_K, W_V)
        K, V = grow(K, V, k, v)
        keys, values = see(K, V, k, v)
        weights = normalise(q @ keys.T * scale(q, keys, values))
        return answer(weights @ values, K, V, old)

    return wrong


DECODING = (
    Misconception(
        "does not see itself",
        "Your query looks at the old keys only. A position may attend to itself as well: append the new key and value first, "
        "then attend.",
        _step(see=lambda K, V, k, v: (K[:-1], V[:-1])),
        _step(grow=lambda K, V, k, v: (K, V)),
    ),
    Misconception(
        "sees only itself",
        "Your query looks at its own key only: the weight is 1, and the past is lost. Attend to all keys, the old ones and the "
        "new one.",
        _step(see=lambda K, V, k, v: (k, v)),
        _step(grow=lambda K, V, k, v: (k, v)),
    ),
    Misconception(
        "cache not grown",
        "The output is right, but you return the caches as they came. The next step needs the new key and value in them.",
        _step(answer=lambda output, K, V, old: (output, *old)),
    ),
    Misconception(
        "put in front",
        "You put the new key and value in front of the old ones. The newest position comes last: `np.concatenate([K, k])`.",
        _step(grow=lambda K, V, k, v: (np.concatenate([k, K]), np.concatenate([v, V]))),
    ),
    Misconception(
        "the token itself cached",
        "You put x into the cache as it is. What is kept are its key, x W_K, and its value, x W_V.",
        _step(new=lambda x, W_Q, W_K, W_V: (x @ W_Q, x, x)),
        _step(new=lambda x, W_Q, W_K, W_V: (x @ W_Q, x, x @ W_V)),
        _step(new=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_K, x)),
    ),
    Misconception(
        "query not projected",
        "You compare x itself with the keys. The query is x W_Q.",
        _step(new=lambda x, W_Q, W_K, W_V: (x, x @ W_K, x @ W_V)),
    ),
    Misconception(
        "matrices swapped",
        "The matrices are mixed up: the query comes from W_Q, the new key from W_K, the new value from W_V.",
        _step(new=lambda x, W_Q, W_K, W_V: (x @ W_K, x @ W_Q, x @ W_V)),
        _step(new=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_V, x @ W_K)),
        _step(new=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_Q, x @ W_V)),
    ),
    Misconception(
        "no scale",
        "The scale is missing: divide the scores by √d_k, `math.sqrt(K.shape[-1])`.",
        _step(scale=lambda q, K, V: 1.0),
    ),
    Misconception(
        "another scale",
        "You divide by something else than √d_k. d_k is the width of a key: `math.sqrt(K.shape[-1])`.",
        _step(scale=lambda q, K, V: 1 / K.shape[-1]),
        _step(scale=lambda q, K, V: 1 / math.sqrt(len(K))),
        _step(scale=lambda q, K, V: 1 / math.sqrt(V.shape[-1])),
        _step(scale=lambda q, K, V: math.sqrt(K.shape[-1])),
        lambda x, *others: _step(scale=lambda *_: 1 / math.sqrt(x.shape[-1]))(x, *others),
    ),
    Misconception(
        "masked from the start",
        "Your mask treats the query as position 0, so it sees only the first key. It is the last position: it needs no mask.",
        _step(see=lambda K, V, k, v: (K[:1], V[:1])),
    ),
    Misconception(
        "down the columns",
        "Softmax over a single row gives 1 everywhere. It must run over the keys, the last axis.",
        _step(normalise=np.ones_like),
    ),
    Misconception(
        "no softmax",
        "You average with the scores themselves. Turn them into weights first: `ops.softmax(scores)`.",
        _step(normalise=lambda scores: scores),
    ),
    Misconception(
        "joined side by side",
        "You join old and new side by side. A new position is a new *row*: `np.concatenate([K, k])`, along axis 0.",
        _step(grow=lambda K, V, k, v: (np.concatenate([K, k], axis=-1), np.concatenate([V, v], axis=-1))),
        _step(grow=lambda K, V, k, v: (np.hstack([K, k]), np.hstack([V, v]))),
    ),
    Misconception(
        "np.append without axis",
        "`np.append` without an axis makes one long row of everything. Use `np.concatenate([K, k])`, or `axis=0`.",
        _step(grow=lambda K, V, k, v: (np.append(K, k), np.append(V, v))),
    ),
    Misconception(
        "only the output",
        "This is the output. Return the grown caches as well: `return output, K, V`.",
        _step(answer=lambda output, K, V, old: output),
    ),
    Misconception(
        "caches first",
        "Your results are in another order: `return output, K, V`.",
        _step(answer=lambda output, K, V, old: (K, V, output)),
    ),
)
