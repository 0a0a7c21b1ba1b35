"""The ways to get heads wrong: how they are split, how they are merged, what each of them is given."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils import attention, ops
from lesson_utils._checks import Array
from lesson_utils.exercises.old_checker import Misconception

Step = Callable[..., Any]


def _sizes(x: Array, num_heads: int) -> tuple[list[int], int, int, int]:
    """The leading axes, T, h and d_k of x (..., T, h · d_k)."""
    *leading, T, width = x.shape
    return leading, T, num_heads, width // num_heads


def _unpack_two(x: Array, num_heads: int) -> Array:
    T, d_model = x.shape
    return x.reshape(T, num_heads, d_model // num_heads).swapaxes(0, 1)


def _unpack_three(x: Array, num_heads: int) -> Array:
    B, T, d_model = x.shape
    return x.reshape(B, T, num_heads, d_model // num_heads).swapaxes(1, 2)


def _first_two(x: Array, num_heads: int) -> Array:
    T, d_model = x.shape[0], x.shape[1]
    return x.reshape(T, num_heads, d_model // num_heads).swapaxes(0, 1)


def _first_and_last(x: Array, num_heads: int) -> Array:
    return x.reshape(x.shape[0], num_heads, -1).swapaxes(0, 1)


def _without_swap(x: Array, num_heads: int) -> Array:
    leading, T, h, d_k = _sizes(x, num_heads)
    return x.reshape(*leading, h, T, d_k)


def _cut(x: Array, num_heads: int) -> Array:
    leading, T, h, d_k = _sizes(x, num_heads)
    return x.reshape(*leading, T, h, d_k)


def _every_hth(x: Array, num_heads: int) -> Array:
    leading, T, h, d_k = _sizes(x, num_heads)
    return np.moveaxis(x.reshape(*leading, T, d_k, h), -1, -3)


def _as_width(x: Array, num_heads: int) -> Array:
    leading, T, h, d_k = _sizes(x, num_heads)
    return x.reshape(*leading, T, d_k, h).swapaxes(-2, -3)


def _true_division(x: Array, num_heads: int) -> Array:
    *leading, T, d_model = x.shape
    return x.reshape(*leading, T, num_heads, d_model / num_heads).swapaxes(-2, -3)


SPLIT_MISTAKES = (
    Misconception(
        "reshaped without a swap",
        "You reshape straight to (..., h, T, d_k). Reshape never moves an entry past another: head 0 is filled with the first "
        "tokens, head 1 with the next. Reshape to (..., T, h, d_k) first, then swap the axes T and h.",
        _without_swap,
    ),
    Misconception(
        "not swapped",
        "You cut each token into h pieces, (..., T, h, d_k). Swap the axes T and h, so that each head has all tokens: "
        "`.swapaxes(-2, -3)`.",
        _cut,
    ),
    Misconception(
        "every h-th column",
        "Your head 0 gets the columns 0, h, 2h …; it should get the first d_k columns. Cut each row into h pieces of d_k: "
        "`reshape(..., T, h, d_k)`, the heads before the width.",
        _every_hth,
    ),
    Misconception(
        "heads and width mixed up",
        "You make d_k heads of width h. `num_heads` is how many pieces there are; each is `d_model // num_heads` wide: "
        "`reshape(..., T, num_heads, d_k)`.",
        _as_width,
        lambda x, h: np.swapaxes(x.reshape(*x.shape[:-1], -1, h), -3, -2),
    ),
    Misconception(
        "width and heads swapped",
        "You swap the wrong two axes: after the reshape the axes are (..., T, h, d_k), and T and h change places: "
        "`.swapaxes(-2, -3)`.",
        lambda x, h: _cut(x, h).swapaxes(-1, -2),
        lambda x, h: _cut(x, h).swapaxes(-1, -3),
    ),
    Misconception(
        "all axes turned around",
        "`.T`, and `.transpose()` without arguments, reverse all axes. Only T and h change places: `.swapaxes(-2, -3)`.",
        lambda x, h: _cut(x, h).T,
    ),
    Misconception(
        "two axes taken for granted",
        "Your code is for x with two axes, (T, d_model). There may be any number in front: take the last two, "
        "`*leading, T, d_model = x.shape`, and pass `*leading` on to `reshape`.",
        _unpack_two,
        _first_two,
        _first_and_last,
        lambda x, h: x.reshape(len(x), h, x.shape[1] // h).transpose(1, 0, 2),
        lambda x, h: _cut(x, h).transpose(1, 0, 2),
    ),
    Misconception(
        "three axes taken for granted",
        "Your code is for x with three axes, (B, T, d_model). There may be fewer or more in front: take the last two, "
        "`*leading, T, d_model = x.shape`, and pass `*leading` on to `reshape`.",
        _unpack_three,
        lambda x, h: x.reshape(x.shape[0], x.shape[1], h, x.shape[2] // h).swapaxes(1, 2),
        lambda x, h: x.reshape(x.shape[0], x.shape[1], h, -1).swapaxes(1, 2),
        lambda x, h: _cut(x, h).transpose(0, 2, 1, 3),
    ),
    Misconception(
        "axes counted from the front",
        "You swap two axes counted from the front. T and h are the first two only without leading axes. Count from the end: "
        "`.swapaxes(-2, -3)`.",
        lambda x, h: _cut(x, h).swapaxes(0, 1),
        lambda x, h: _cut(x, h).swapaxes(1, 2),
        lambda x, h: np.moveaxis(_cut(x, h), 1, 0),
    ),
    Misconception(
        "heads before everything",
        "Your heads stand in front of the leading axes. They belong right before T: (..., h, T, d_k). With "
        "`np.stack`, that is `axis=-3`.",
        lambda x, h: np.moveaxis(_cut(x, h), -2, 0),
    ),
    Misconception(
        "tokens split",
        "You give each head some of the tokens. Each head sees all tokens, and some of the columns: split the last axis.",
        lambda x, h: np.stack(np.split(x, h, axis=-2), axis=-3),
        lambda x, h: np.stack(np.split(x, h, axis=0)),
        lambda x, h: np.stack(np.array_split(x, h, axis=-2), axis=-3),
        lambda x, h: np.split(x, h),
        lambda x, h: np.array(np.split(x, h)),
    ),
    Misconception(
        "a list of heads",
        "You return a list. Put its arrays on an axis of their own, right before T: `np.stack(heads, axis=-3)`.",
        lambda x, h: np.split(x, h, axis=-1),
    ),
    Misconception(
        "a float for a size",
        "`/` gives a float, even 6 / 2, and a size must be a whole number. Write `d_model // num_heads`.",
        _true_division,
    ),
)


def _joined_without_swap(x: Array) -> Array:
    *leading, h, T, d_k = x.shape
    return x.reshape(*leading, T, h * d_k)


def _merge_three(x: Array) -> Array:
    h, T, d_k = x.shape
    return x.swapaxes(0, 1).reshape(T, h * d_k)


def _merge_four(x: Array) -> Array:
    B, h, T, d_k = x.shape
    return x.swapaxes(1, 2).reshape(B, T, h * d_k)


def _interleaved(x: Array) -> Array:
    *leading, h, T, d_k = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, T, h * d_k)


def _swapped_from(x: Array, a: int, b: int) -> Array:
    *leading, h, T, d_k = x.shape
    return x.swapaxes(a, b).reshape(*leading, T, h * d_k)


MERGE_MISTAKES = (
    Misconception(
        "reshaped without a swap",
        "You reshape at once. Reshape never moves an entry past another, so tokens of one head end up in one row. Swap T and h "
        "first, `.swapaxes(-2, -3)`, so that the pieces of a token lie beside each other.",
        _joined_without_swap,
        lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1),
    ),
    Misconception(
        "not joined",
        "You swap T and h; now the pieces of each token lie beside each other, (..., T, h, d_k). Join them: reshape to "
        "(..., T, h·d_k).",
        lambda x: x.swapaxes(-2, -3),
    ),
    Misconception(
        "columns of the heads alternate",
        "Your rows take the first column of every head, then the second of every head. A row is head 0's d_k columns, then "
        "head 1's: swap T and h, so that the axes are (..., T, h, d_k), and reshape.",
        _interleaved,
    ),
    Misconception(
        "wrong axes swapped",
        "You swap the last two axes, T and d_k. T and h must change places: `.swapaxes(-2, -3)`.",
        lambda x: x.swapaxes(-1, -2),
        lambda x: _swapped_from(x, -1, -2),
        lambda x: _swapped_from(x, -1, -3),
    ),
    Misconception(
        "heads below each other",
        "You put the heads below each other, as more rows. A token stays one row: its pieces from all heads go side by side, "
        "into one row of h·d_k columns.",
        lambda x: x.reshape(*x.shape[:-3], -1, x.shape[-1]),
        lambda x: np.concatenate(list(x)),
        lambda x: np.concatenate(list(x), axis=-2),
        lambda x: np.vstack(list(x)),
    ),
    Misconception(
        "heads added",
        "You add the heads up, or average them. They are put side by side, so that W_O can use each in its own way: the width "
        "is h·d_k.",
        lambda x: x.sum(axis=-3),
        lambda x: x.mean(axis=-3),
        lambda x: x.sum(axis=0),
        lambda x: x.mean(axis=0),
    ),
    Misconception(
        "three axes taken for granted",
        "Your code is for three axes, (h, T, d_k). There may be any number in front: `*leading, h, T, d_k = x.shape`, and "
        "`*leading` goes on to `reshape`.",
        _merge_three,
        lambda x: x.swapaxes(0, 1).reshape(x.shape[1], x.shape[0] * x.shape[2]),
        lambda x: x.swapaxes(0, 1).reshape(x.shape[1], -1),
        lambda x: x.transpose(1, 0, 2).reshape(x.shape[1], -1),
        lambda x: x.swapaxes(-2, -3).reshape(x.shape[-2], -1),
        lambda x: np.concatenate(list(x), axis=-1),
        lambda x: np.hstack(list(x)),
    ),
    Misconception(
        "four axes taken for granted",
        "Your code is for four axes, (B, h, T, d_k). There may be fewer or more in front: `*leading, h, T, d_k = x.shape`, "
        "and `*leading` goes on to `reshape`.",
        _merge_four,
        lambda x: x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),
        lambda x: x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1),
        lambda x: x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
    ),
    Misconception(
        "axes counted from the front",
        "You swap two axes counted from the front. T and h stand there only for one number of axes. Count from the end: "
        "`.swapaxes(-2, -3)`.",
        lambda x: _swapped_from(x, 0, 1),
        lambda x: _swapped_from(x, 1, 2),
    ),
    Misconception(
        "one head only",
        "Only one head is left in your result. All of them go side by side: the width is h·d_k.",
        lambda x: x[..., 0, :, :],
        lambda x: x[..., -1, :, :],
        lambda x: x[0],
        lambda x: x[-1],
    ),
)


def _multi_head(
    project: Step = lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_K, x @ W_V),
    split: Step = attention.split_heads,
    attend: Step = attention.scaled_dot_product_attention,
    merge: Step = attention.merge_heads,
    out: Step = lambda joined, W_O: joined @ W_O,
    answer: Step = lambda output, weights: (output, weights),
) -> Step:
    """Multi-head attention with some of its steps replaced."""

    def wrong(x: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Any:
        Q, K, V = (split(part, num_heads) for part in project(x, W_Q, W_K, W_V))
        heads, weights = attend(Q, K, V)
        return answer(out(merge(heads), W_O), weights)

    return wrong


def _scaled_by(size: Step) -> Step:
    """Attention with a scale of its own: 1 / √size."""
    return lambda Q, K, V: attention.scaled_dot_product_attention(Q, K, V, scale=1 / math.sqrt(size(Q)))


def _own(Q: Array, K: Array, V: Array, axis: int = -1) -> tuple[Array, Array]:
    weights = ops.softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1]), axis=axis)
    return weights @ V, weights


def _one_big_head(x: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> tuple[Array, Array]:
    joined, weights = attention.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)
    return joined @ W_O, weights


def _loop(rows_of: Step, first: bool = False, pick: Step = lambda outputs: np.concatenate(outputs, axis=-1)) -> Step:
    """A loop over heads: which columns each head takes, and what is made of the outputs."""

    def wrong(x: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> tuple[Array, Array]:
        outputs, weights = [], []
        for i in range(num_heads):
            Q, K, V = (rows_of(x @ W, i, num_heads) for W in (W_Q, W_K, W_V))
            head, A = attention.scaled_dot_product_attention(Q, K, V)
            outputs.append(head)
            weights.append(A)
        stacked = np.stack(weights, axis=0 if first else -3)
        return pick(outputs) @ W_O, stacked

    return wrong


def _columns(y: Array, i: int, num_heads: int) -> Array:
    d_k = y.shape[-1] // num_heads
    return y[..., i * d_k : (i + 1) * d_k]


def _only_last_weights(output: Array, weights: Array) -> tuple[Array, Array]:
    return output, weights[..., -1, :, :]


MULTI_MISTAKES = (
    Misconception(
        "one big head",
        "This is one big head: queries and keys meet in their full width, and there is one set of weights. Split Q, K and V "
        "into heads first; each head then has weights of its own.",
        _one_big_head,
    ),
    Misconception(
        "W_O left out",
        "Your output is the heads side by side. One step is left: `@ W_O`, which mixes what they brought.",
        _multi_head(out=lambda joined, W_O: joined),
    ),
    Misconception(
        "heads scrambled",
        "Your heads hold the wrong tokens: reshaped without a swap. Reshape to (..., T, h, d_k), then swap T and h; merge the "
        "same way back.",
        _multi_head(split=_without_swap, merge=_joined_without_swap),
        _multi_head(split=_without_swap),
    ),
    Misconception(
        "merged without a swap",
        "The heads are right, but you merge them by `reshape` alone, and tokens of one head end up in one row. Swap T and h "
        "first.",
        _multi_head(merge=_joined_without_swap),
    ),
    Misconception(
        "not swapped after the cut",
        "Your heads have the shape (..., T, h, d_k), so that the heads of one token attend to each other. Swap T and h: the "
        "tokens of one head attend to each other.",
        _multi_head(split=_cut, merge=lambda x: x.reshape(*x.shape[:-2], -1)),
    ),
    Misconception(
        "every h-th column",
        "Your head 0 takes the columns 0, h, 2h …; it should take the first d_k columns, head 1 the next.",
        _multi_head(split=_every_hth),
        _multi_head(split=_every_hth, merge=_interleaved),
        _loop(lambda y, i, h: y[..., i::h]),
    ),
    Misconception(
        "one piece, many times",
        "All your heads take the same columns. Head i takes the columns i·d_k … (i + 1)·d_k − 1.",
        _loop(lambda y, i, h: _columns(y, 0, h)),
        _loop(lambda y, i, h: y[..., : y.shape[-1] // h]),
    ),
    Misconception(
        "heads not side by side",
        "Your heads are added up, averaged, or only one of them is left. They go side by side, width h·d_v, so that W_O can "
        "use each in its own way.",
        _multi_head(merge=lambda x: x.sum(axis=-3)),
        _multi_head(merge=lambda x: x.mean(axis=-3)),
        _multi_head(merge=lambda x: x[..., 0, :, :]),
        _multi_head(merge=lambda x: x[..., -1, :, :]),
    ),
    Misconception(
        "values not projected",
        "Your values are x itself, or share a matrix with the keys or queries. Each has its own: `x @ W_V`.",
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_K, x)),
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_K, x @ W_K)),
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_K, x @ W_Q)),
    ),
    Misconception(
        "nothing projected",
        "You split x itself. Project first, then split: Q = `x @ W_Q`, K = `x @ W_K`, V = `x @ W_V`.",
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x, x, x)),
    ),
    Misconception(
        "keys are queries",
        "Queries and keys come from one matrix in your code. Queries are `x @ W_Q`, keys `x @ W_K`.",
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_Q, x @ W_Q, x @ W_V)),
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_K, x @ W_K, x @ W_V)),
    ),
    Misconception(
        "queries and keys swapped",
        "You have queries and keys the wrong way round: queries are `x @ W_Q`, keys `x @ W_K`.",
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_K, x @ W_Q, x @ W_V)),
    ),
    Misconception(
        "matrices transposed",
        "You multiply by the transposed matrices. Here a row of x times W: `x @ W_Q`, with W_Q of shape (d_model, h·d_k).",
        _multi_head(
            project=lambda x, W_Q, W_K, W_V: (x @ W_Q.T, x @ W_K.T, x @ W_V.T), out=lambda joined, W_O: joined @ W_O.T
        ),
        _multi_head(project=lambda x, W_Q, W_K, W_V: (x @ W_Q.T, x @ W_K.T, x @ W_V.T)),
    ),
    Misconception(
        "W_O transposed",
        "You multiply by W_O transposed. W_O is (h·d_v, d_out): `joined @ W_O`.",
        _multi_head(out=lambda joined, W_O: joined @ W_O.T),
    ),
    Misconception(
        "scaled by the whole width",
        "You divide the scores by √d_model, or √(h·d_k): the root of the whole width. Each head's dot products have d_k terms: "
        "√d_k. `attention.scaled_dot_product_attention` does it for you.",
        _multi_head(attend=_scaled_by(lambda Q: Q.shape[-1] * Q.shape[-3])),
        lambda x, *others: _multi_head(attend=_scaled_by(lambda Q: x.shape[-1]))(x, *others),
    ),
    Misconception(
        "not scaled",
        "Your scores are not divided by √d_k. `attention.scaled_dot_product_attention` does it for you.",
        _multi_head(attend=_scaled_by(lambda Q: 1)),
    ),
    Misconception(
        "softmax over another axis",
        "Your weights do not sum to 1 over the keys. Softmax runs over the last axis of each head's scores.",
        _multi_head(attend=lambda Q, K, V: _own(Q, K, V, axis=-2)),
        _multi_head(attend=lambda Q, K, V: _own(Q, K, V, axis=-3)),
    ),
    Misconception(
        "weights averaged over the heads",
        "You return the mean of the heads' weights. Return those of each head, (..., h, T, T).",
        _multi_head(answer=lambda output, weights: (output, weights.mean(axis=-3))),
    ),
    Misconception(
        "one head's weights",
        "You return the weights of one head only. Return those of each head, (..., h, T, T).",
        _multi_head(answer=_only_last_weights),
        _multi_head(answer=lambda output, weights: (output, weights[..., 0, :, :])),
    ),
    Misconception(
        "weights with the heads in front",
        "The heads of your weights stand in front of the leading axes. They belong right before the queries, "
        "(..., h, T, T): `np.stack(weights, axis=-3)`.",
        _loop(_columns, first=True),
    ),
    Misconception(
        "only the output",
        "This is the output. Return the weights of each head as well: `return output, weights`.",
        _multi_head(answer=lambda output, weights: output),
    ),
    Misconception(
        "results swapped",
        "Your two results are in the wrong order: `return output, weights`.",
        _multi_head(answer=lambda output, weights: (weights, output)),
    ),
)
