"""The ways to get scaled dot-product attention wrong: one of its steps replaced, or two."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils import ops
from lesson_utils._checks import Array
from lesson_utils.exercises.checker import Misconception, together
from lesson_utils.lessons.scaled_attention import softmax_mistakes

Step = Callable[..., Any]


def _hidden_as(hidden: float) -> Step:
    return lambda scores, mask: scores if mask is None else np.where(mask, scores, hidden)


def _if_given(hide: Step) -> Step:
    """Leave scores or weights alone where there is no mask."""
    return lambda scores, mask: scores if mask is None else hide(scores, mask)


def _own_softmax(scores: Array, axis: int = -1) -> Array:
    """Softmax as a learner writes it: where `ops.softmax` raises an error or gives zeros, this gives NaN."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _attention(
    score: Step = lambda Q, K: Q @ K.swapaxes(-1, -2),
    scale: Step = lambda Q, K, V: 1 / math.sqrt(K.shape[-1]),
    hide: Step = lambda scores, mask: scores if mask is None else np.where(mask, scores, -np.inf),
    normalise: Step = ops.softmax,
    finish: Step = lambda weights, mask: weights,
    average: Step = lambda weights, V: weights @ V,
    answer: Step = lambda output, weights, scores: (output, weights),
) -> Step:
    """Attention with some of its steps replaced."""

    def wrong(Q: Array, K: Array, V: Array, mask: Any) -> Any:
        scores = hide(score(Q, K) * scale(Q, K, V), mask)
        weights = finish(normalise(scores), mask)
        return answer(average(weights, V), weights, scores)

    return wrong


def _slips(*slips: tuple[Any, ...]) -> dict[str, tuple[Misconception, list[dict[str, Step]]]]:
    """From (name, message, steps, other steps …): the misconception, and its steps, to be joined with others."""
    return {
        name: (Misconception(name, text, *(_attention(**steps) for steps in ways)), ways) for name, text, *ways in slips
    }


def _wrong_size(symbol: str, what: str, size: Step) -> list[tuple[Any, ...]]:
    """Divided by the root of a size that is not d_k, or by that size itself."""
    return [
        (f"scaled by √{symbol}", f"You divide by √{symbol}: {what}", {"scale": lambda *QKV: 1 / math.sqrt(size(*QKV))}),
        (f"scaled by {symbol}", f"You divide by {symbol}: {what}", {"scale": lambda *QKV: 1 / size(*QKV)}),
    ]


_SCALES = _slips(
    (
        "no scale",
        "The scale is missing: divide the scores by √d_k, `math.sqrt(K.shape[-1])`.",
        {"scale": lambda Q, K, V: 1.0},
    ),
    (
        "divided by d_k",
        "You divide by d_k. The standard deviation of the scores is √d_k: divide by `math.sqrt(K.shape[-1])`.",
        {"scale": lambda Q, K, V: 1 / K.shape[-1]},
    ),
    (
        "multiplied by the root",
        "You multiply by √d_k, which makes large scores larger. Divide by it.",
        {"scale": lambda Q, K, V: math.sqrt(K.shape[-1])},
    ),
    (
        "** 1/2",
        "`** 1/2` takes the power 1 and then halves, since `**` comes before `/`. Write `math.sqrt(K.shape[-1])`.",
        {"scale": lambda Q, K, V: 2 / K.shape[-1]},
        {"scale": lambda Q, K, V: 1 / (2 * K.shape[-1])},
    ),
    (
        "divided by d_k squared",
        "You divide by d_k². The scale is the root of d_k, not its square: `math.sqrt(K.shape[-1])`.",
        {"scale": lambda Q, K, V: K.shape[-1] ** -2.0},
    ),
    (
        "multiplied by d_k",
        "You multiply by d_k, which makes large scores larger. Divide by √d_k, `math.sqrt(K.shape[-1])`.",
        {"scale": lambda Q, K, V: K.shape[-1]},
    ),
    *_wrong_size(
        "T_k",
        "T_k is the number of keys, but the sum in q · k runs over d_k entries. The scale is `math.sqrt(K.shape[-1])`.",
        lambda Q, K, V: K.shape[-2],
    ),
    *_wrong_size(
        "T_q",
        "T_q is the number of queries, but the sum in q · k runs over d_k entries. The scale is `math.sqrt(K.shape[-1])`.",
        lambda Q, K, V: Q.shape[-2],
    ),
    *_wrong_size(
        "d_v",
        "d_v is the width of a value, but the scores come from queries and keys. The scale is `math.sqrt(K.shape[-1])`.",
        lambda Q, K, V: V.shape[-1],
    ),
    *_wrong_size(
        "K.shape[0]",
        "like `len(K)`, it counts the rows, or a leading axis. The width d_k is the last axis: `math.sqrt(K.shape[-1])`.",
        lambda Q, K, V: K.shape[0],
    ),
    *_wrong_size(
        "K.shape[1]",
        "it is d_k only without leading axes. Count from the end: the width is always `K.shape[-1]`.",
        lambda Q, K, V: K.shape[1],
    ),
    *_wrong_size(
        "Q.shape[0]",
        "like `len(Q)`, it counts the rows, or a leading axis. The width d_k is the last axis: `math.sqrt(Q.shape[-1])`.",
        lambda Q, K, V: Q.shape[0],
    ),
    *_wrong_size(
        "Q.shape[1]",
        "it is d_k only without leading axes. Count from the end: the width is always `Q.shape[-1]`.",
        lambda Q, K, V: Q.shape[1],
    ),
)

_SCORES = _slips(
    (
        "keys not transposed",
        "`Q @ K` does not fit: the rows of `Q` would meet the columns of `K`. Each query meets each key in "
        "`Q @ K.swapaxes(-1, -2)`, shape (..., T_q, T_k).",
        {"score": lambda Q, K: Q @ K},
        {"score": np.dot},
    ),
    (
        "keys transposed with .T",
        "`K.T` reverses all axes; with leading axes the shapes no longer fit. Swap only the last two: `K.swapaxes(-1, -2)`.",
        {"score": lambda Q, K: Q @ K.T},
        {"score": lambda Q, K: np.dot(Q, K.T)},
    ),
    (
        "axes 0 and 1 swapped",
        "You swap the axes 0 and 1, which are the last two only without leading axes. Count from the end: `K.swapaxes(-1, -2)`.",
        {"score": lambda Q, K: Q @ K.swapaxes(0, 1)},
        {"score": lambda Q, K: Q @ K.transpose(1, 0)},
    ),
    (
        "axes 1 and 2 swapped",
        "You swap the axes 1 and 2, which are the last two only where there are three. Count from the end: `K.swapaxes(-1, -2)`.",
        {"score": lambda Q, K: Q @ K.swapaxes(1, 2)},
        {"score": lambda Q, K: Q @ K.transpose(0, 2, 1)},
    ),
    (
        "queries and keys swapped",
        "You have queries and keys the wrong way round: your scores have a row for each key. They need a row for each query, "
        "`Q @ K.swapaxes(-1, -2)`, shape (..., T_q, T_k).",
        {"score": lambda Q, K: K @ Q.swapaxes(-1, -2)},
        {
            "score": lambda Q, K: K @ Q.swapaxes(-1, -2),
            "hide": _if_given(lambda scores, mask: scores + np.where(mask, 0, -1e9)),
        },
        {"score": lambda Q, K: K @ Q.swapaxes(-1, -2), "hide": _if_given(lambda scores, mask: scores[~mask])},
    ),
    (
        "np.dot",
        "With leading axes `np.dot` multiplies every matrix by every other. Use `@`, which keeps the leading axes as they are.",
        {"score": lambda Q, K: np.dot(Q, K.swapaxes(-1, -2)), "average": np.dot},
        {"score": lambda Q, K: np.dot(Q, K.swapaxes(-1, -2))},
        {"average": np.dot},
    ),
    (
        "* in place of @",
        "`*` multiplies entry by entry. The sums of products, q · k for every pair and the weighted average, are matrix "
        "products: `@`.",
        {"average": lambda weights, V: weights * V},
        {"score": lambda Q, K: Q * K},
    ),
    (
        "values in front",
        "`V @ weights` does not fit. A row of weights meets the rows of V, one a key, in `weights @ V`.",
        {"average": lambda weights, V: V @ weights},
        {"average": lambda weights, V: np.dot(V, weights)},
    ),
)

_NORMALISATIONS = _slips(
    (
        "down the columns",
        "Your weights sum to 1 down the columns: softmax must run over the keys (last axis).",
        {"normalise": lambda scores: ops.softmax(scores, axis=-2)},
        {"normalise": lambda scores: _own_softmax(scores, axis=-2)},
    ),
    (
        "softmax over axis 0",
        "Your softmax runs over axis 0. It must run over the keys, the last axis: `ops.softmax(scores)`.",
        {"normalise": lambda scores: ops.softmax(scores, axis=0)},
        {"normalise": lambda scores: _own_softmax(scores, axis=0)},
    ),
    (
        "softmax over axis 1",
        "Your softmax runs over axis 1, which is the last only without leading axes. `ops.softmax(scores)` takes the last.",
        {"normalise": lambda scores: ops.softmax(scores, axis=1)},
        {"normalise": lambda scores: _own_softmax(scores, axis=1)},
    ),
    (
        "no softmax",
        "You average with the scores themselves. Turn them into weights first: `ops.softmax(scores)`.",
        {"normalise": lambda scores: scores},
    ),
    (
        "softmax twice",
        "Softmax is applied twice, which makes the weights nearly equal. Once is enough.",
        {"normalise": lambda scores: ops.softmax(ops.softmax(scores))},
    ),
)


_MASKS = _slips(
    (
        "mask ignored",
        "With a mask, your weights are as if it were not there. Set the scores where `mask` is False to −∞, before softmax.",
        {"hide": lambda scores, mask: scores},
    ),
    (
        "mask inverted",
        "Your mask is the wrong way round. Here True means may attend: keep the scores where it is True.",
        {"hide": _if_given(lambda scores, mask: np.where(mask, -np.inf, scores))},
        {"hide": _if_given(lambda scores, mask: np.where(mask, -np.inf, scores)), "normalise": _own_softmax},
        {"hide": _if_given(lambda scores, mask: np.where(mask, -1e9, scores))},
        {"hide": _if_given(lambda scores, mask: scores - 1e9 * mask)},
    ),
    (
        "mask after softmax",
        "You hide weights after softmax, so the rows no longer sum to 1. Hide scores before it, with −∞: then the others "
        "share the whole weight.",
        {"hide": lambda scores, mask: scores, "finish": _if_given(lambda weights, mask: weights * mask)},
        {"hide": lambda scores, mask: scores, "finish": _hidden_as(-np.inf)},
        {"hide": lambda scores, mask: scores, "finish": _hidden_as(-1e9)},
    ),
    (
        "mask after softmax, renormalised",
        "You hide weights after softmax, then divide by the row's new sum. On paper that is right. But where hidden scores lie "
        "far above the others, the visible weights are already 0, and 0 / 0 is NaN. Hide scores before softmax, with −∞.",
        {
            "hide": lambda scores, mask: scores,
            "finish": _if_given(lambda weights, mask: weights * mask / (weights * mask).sum(axis=-1, keepdims=True)),
        },
    ),
    (
        "masked with 0",
        "You set hidden scores to 0. But exp(0) is 1, not 0: a score of 0 is an ordinary score. Use −∞.",
        {"hide": _hidden_as(0.0)},
    ),
    (
        "mask added",
        "You add the mask to the scores, where True counts as 1 and False as 0: too little to hide a key. Set hidden scores "
        "to −∞: `np.where(mask, scores, -np.inf)`.",
        {"hide": _if_given(lambda scores, mask: scores + mask)},
    ),
    (
        "0 times infinity",
        "Your masked scores hold NaN or +∞. `~mask * -np.inf` would do that: 0 · ∞ is NaN. Write "
        "`np.where(mask, scores, -np.inf)`, without a product.",
        {"hide": _if_given(lambda scores, mask: scores + ~mask * -np.inf)},
        {"hide": _if_given(lambda scores, mask: scores + ~mask * -np.inf), "normalise": _own_softmax},
    ),
    (
        "masked with +∞",
        "You set hidden scores to something very large, so the hidden keys take all the weight. Use −∞, `-np.inf`.",
        {"hide": _hidden_as(1e9)},
        {"hide": _hidden_as(np.inf), "normalise": _own_softmax},
    ),
    (
        "if mask",
        "`if` needs one yes or no, and a mask holds many. Ask `if mask is not None:`.",
        {"hide": lambda scores, mask: np.where(mask, scores, -np.inf) if mask else scores},
    ),
    (
        "no mask not handled",
        "`mask` may also be None, and then nothing is hidden. Ask `if mask is not None:` before you use it.",
        {"hide": lambda scores, mask: np.where(mask, scores, -np.inf)},
        {"hide": lambda scores, mask: np.where(mask, scores, -np.inf), "normalise": _own_softmax},
        {"hide": lambda scores, mask: np.where(mask, scores, -1e9)},
        {"hide": lambda scores, mask: np.where(~mask, -np.inf, scores)},
        {"hide": lambda scores, mask: scores + (1 - mask) * -1e9},
        {"hide": lambda scores, mask: np.where(mask.astype(bool), scores, -np.inf)},
    ),
    (
        "not far enough below",
        "You hide scores with a number that is not far enough below the others: −100 is not, nor is −10 000. Where real "
        "scores are lower still, the hidden keys win. Use −∞: `np.where(mask, scores, -np.inf)`.",
        *({"hide": _hidden_as(-n)} for n in (100, 1, 10, 1e5)),  # what hides at −100 does so at −10 000
        *({"hide": _if_given(lambda scores, mask, n=n: scores - n * ~mask)} for n in (100, 10, 1000, 1e4)),
    ),
)

_ANSWERS = _slips(
    (
        "results swapped",
        "Your two results are in the wrong order: `return output, weights`.",
        {"answer": lambda output, weights, scores: (weights, output)},
    ),
    (
        "only the output",
        "This is the output. Return the weights as well: `return output, weights`.",
        {"answer": lambda output, weights, scores: output},
    ),
    (
        "only the weights",
        "These are the weights. Average the values with them, `weights @ V`, and return both: `return output, weights`.",
        {"answer": lambda output, weights, scores: weights},
    ),
    (
        "scores returned",
        "Your second result is the scores. Return the weights, what softmax makes of them: `return output, weights`.",
        {"answer": lambda output, weights, scores: (output, scores)},
        {"answer": lambda output, weights, scores: (output, scores), "hide": _hidden_as(-1e9)},
    ),
)


def _scaled_late(first: Step, weights_too: bool) -> Step:
    def wrong(Q: Array, K: Array, V: Array, mask: Any) -> tuple[Array, Array]:
        output, weights = first(Q, K, V, mask)
        root = math.sqrt(K.shape[-1])
        return output / root, weights / root if weights_too else weights

    return wrong


_right, _unscaled = _attention(), _attention(scale=lambda Q, K, V: 1.0)

_LATE = (
    Misconception(
        "scale after softmax",
        "You divide the weights by √d_k, after softmax, so the rows no longer sum to 1. Divide the scores, before softmax.",
        _scaled_late(_unscaled, weights_too=True),
        _scaled_late(_right, weights_too=True),
    ),
    Misconception(
        "output scaled",
        "You divide the output by √d_k. The scale belongs to the scores, before softmax: it is there to keep softmax soft.",
        _scaled_late(_unscaled, weights_too=False),
        _scaled_late(_right, weights_too=False),
    ),
    Misconception(
        "keys averaged",
        "You average the keys. The weights say which keys fit; what is averaged are the values: `weights @ V`.",
        lambda Q, K, V, mask: _right(Q, K, K, mask),
    ),
)


def _with_softmax(mistakes: Sequence[Misconception]) -> list[Misconception]:
    """Who writes softmax anew can make each mistake of the exercise before.

    But for a right softmax over a wrong axis, or with a number for −∞: those are mistakes of attention already.
    """
    return [
        Misconception(
            f"softmax: {m.name}",
            f"Look at your softmax. {m.message}",
            *(_attention(normalise=wrong) for wrong in m.ways),
        )
        for m in mistakes
        if not m.name.startswith(("max and sum over axis", "a number for −∞"))
    ]


_TABLES = (_SCALES, _SCORES, _NORMALISATIONS, _MASKS, _ANSWERS)
MISTAKES = (
    *(mistake for table in _TABLES for mistake, _ in table.values()),
    *_LATE,
    *_with_softmax(softmax_mistakes.MISTAKES),
)
PAIRS = (
    *(
        together(scale, other, *(_attention(**scale_steps, **steps) for steps in ways))
        for scale, [scale_steps] in list(_SCALES.values())[:3]  # the likely ones
        for table in _TABLES[1:]
        for other, ways in table.values()
    ),
    together(
        _MASKS["mask inverted"][0],
        _MASKS["mask after softmax"][0],
        _attention(hide=lambda scores, mask: scores, finish=_if_given(lambda weights, mask: weights * ~mask)),
    ),
    *_with_softmax(softmax_mistakes.PAIRS),
)
