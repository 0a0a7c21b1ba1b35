"""The ways to get layer norm, the feed-forward layer and a pre-norm block wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils import ops
from lesson_utils.exercises.old_checker import Misconception

LAST: dict[str, Any] = {"axis": -1, "keepdims": True}
Wrong = Callable[..., Any]

# --- Layer norm -------------------------------------------------------------------------------------------------------


def _norm(
    mean: Callable[..., Any] = lambda x: x.mean(**LAST),
    variance: Callable[..., Any] = lambda x: x.var(**LAST),
    divide: Callable[..., Any] = lambda c, v, eps: c / np.sqrt(v + eps),
    finish: Callable[..., Any] = lambda n, gamma, beta: gamma * n + beta,
) -> Wrong:
    """Layer norm with some of its steps replaced."""
    return lambda x, gamma, beta, eps: finish(divide(x - mean(x), variance(x), eps), gamma, beta)


def _over(**arguments: Any) -> Wrong:
    return _norm(lambda x: x.mean(**arguments), lambda x: x.var(**arguments))


LAYER_NORM = (
    Misconception(
        "ε as a floor",
        "You take the larger of σ and ε. ε is added, under the root: √(σ² + ε).",
        _norm(divide=lambda c, v, eps: c / np.maximum(np.sqrt(v), eps)),
    ),
    Misconception(
        "σ under the root",
        "Under the root you have σ, not its square. `x.var` is σ²; `x.std` has the root already.",
        _norm(divide=lambda c, v, eps: c / np.sqrt(np.sqrt(v) + eps)),
    ),
    Misconception(
        "brackets",
        "Only the mean is divided: `x - mean / root`. Brackets: `(x - mean) / root`.",
        lambda x, gamma, beta, eps: gamma * (x - x.mean(**LAST) / np.sqrt(x.var(**LAST) + eps)) + beta,
    ),
    Misconception(
        "over everything",
        "You take mean and variance over the whole array. Layer norm treats each token on its own: `axis=-1, keepdims=True`.",
        _over(),
        _norm(mean=lambda x: x.mean()),
        _norm(variance=lambda x: x.var()),
    ),
    Misconception(
        "over axis 0",
        "You take mean and variance down the columns, `axis=0`. That is nearer to batch norm: one feature over many tokens. Layer "
        "norm takes one token over its features, `axis=-1`.",
        _over(axis=0, keepdims=True),
        _over(axis=0),
    ),
    Misconception(
        "over axis 1",
        "`axis=1` is the last axis only where there are two; a single token has none. The features are always `axis=-1`.",
        _over(axis=1, keepdims=True),
    ),
    Misconception(
        "without keepdims",
        "Without `keepdims=True` the last axis is dropped, and NumPy lines up what is left with the features: an error, or, in a "
        "square array, wrong numbers without one.",
        _over(axis=-1),
        _norm(mean=lambda x: x.mean(axis=-1)),
        _norm(variance=lambda x: x.var(axis=-1)),
    ),
    Misconception(
        "ε outside the root",
        "You add ε to the standard deviation, outside the root. That is the other formula; asked for is the libraries': "
        "√(σ² + ε). The two differ where σ is small.",
        _norm(divide=lambda c, v, eps: c / (np.sqrt(v) + eps)),
    ),
    Misconception(
        "ε missing",
        "ε is missing. A token whose features are all equal has variance 0, and 0 / 0 is NaN: √(σ² + ε).",
        _norm(divide=lambda c, v, eps: c / np.sqrt(v)),
    ),
    Misconception(
        "ε as it is by default",
        "You use 10⁻⁵ whatever the argument `eps` says.",
        _norm(divide=lambda c, v, eps: c / np.sqrt(v + 1e-5)),
    ),
    Misconception(
        "ε squared",
        "You add ε², but what stands under the root is σ² + ε.",
        _norm(divide=lambda c, v, eps: c / np.sqrt(v + eps**2)),
    ),
    Misconception(
        "ε added to the result",
        "You add ε after the division. It belongs under the root, where it keeps a token of equal features from 0 / 0.",
        _norm(divide=lambda c, v, eps: c / np.sqrt(v) + eps),
    ),
    Misconception(
        "divided by the variance",
        "You divide by the variance. Divide by its root, the standard deviation: only then is the spread 1 afterwards.",
        _norm(divide=lambda c, v, eps: c / (v + eps)),
    ),
    Misconception(
        "multiplied",
        "You multiply by the standard deviation. Divide by it.",
        _norm(divide=lambda c, v, eps: c * np.sqrt(v + eps)),
    ),
    Misconception(
        "divided by d_model − 1",
        "Your variance divides by d_model − 1 (`ddof=1`), as a statistician's estimate does. Layer norm divides by d_model: "
        "`x.var(axis=-1, keepdims=True)`.",
        _norm(variance=lambda x: x.var(ddof=1, **LAST)),
    ),
    Misconception(
        "mean not subtracted",
        "The mean is not subtracted: x − μ goes over the root.",
        _norm(mean=lambda x: 0),
    ),
    Misconception(
        "root mean square",
        "You divide by the root of the mean square, without the mean. That is RMSNorm, a relative. Layer norm subtracts μ first.",
        _norm(mean=lambda x: 0, variance=lambda x: (x**2).mean(**LAST)),
    ),
    Misconception(
        "mean square in place of the variance",
        "Under the root you have the mean of x². The variance is the mean of (x − μ)².",
        _norm(variance=lambda x: (x**2).mean(**LAST)),
    ),
    Misconception(
        "sum of squares",
        "You divide by the length of the vector, the root of the *sum* of squares. The variance is their *mean*.",
        _norm(variance=lambda x: ((x - x.mean(**LAST)) ** 2).sum(**LAST)),
    ),
    Misconception(
        "from lowest to highest",
        "You divide by the distance from the smallest to the largest feature. Layer norm divides by the standard deviation.",
        _norm(divide=lambda c, v, eps: c / (c.max(**LAST) - c.min(**LAST) + eps)),
        lambda x, gamma, beta, eps: (
            gamma * (x - x.min(**LAST)) / (x.max(**LAST) - x.min(**LAST) + eps) + beta
        ),
    ),
    Misconception(
        "without gamma and beta",
        "γ and β are missing: each feature has its own scale and its own shift, both learnt.",
        _norm(finish=lambda n, gamma, beta: n),
    ),
    Misconception("without beta", "β is missing: add it at the end.", _norm(finish=lambda n, gamma, beta: gamma * n)),
    Misconception("without gamma", "γ is missing: multiply by it before you add β.", _norm(finish=lambda n, gamma, beta: n + beta)),
    Misconception(
        "gamma and beta exchanged",
        "γ and β have changed places: multiply by γ, add β.",
        _norm(finish=lambda n, gamma, beta: beta * n + gamma),
    ),
    Misconception(
        "shifted, then scaled",
        "You add β first and multiply everything by γ. β is added last: γ · normal + β.",
        _norm(finish=lambda n, gamma, beta: gamma * (n + beta)),
    ),
    Misconception(
        "gamma as a matrix",
        "You use `@` with γ: that adds up the features to one number. γ has one number a feature: multiply with `*`.",
        _norm(finish=lambda n, gamma, beta: n @ gamma + beta),
        _norm(finish=lambda n, gamma, beta: gamma @ n + beta),
    ),
)  # fmt: skip

# --- Feed-forward -----------------------------------------------------------------------------------------------------


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _feed(
    wide: Wrong = lambda x, W, b: x @ W + b,
    bend: Wrong = _relu,
    narrow: Wrong = lambda x, W, b: x @ W + b,
    finish: Wrong = lambda y, x: y,
) -> Wrong:
    """The feed-forward layer with some of its steps replaced."""
    return lambda x, W_1, b_1, W_2, b_2: finish(narrow(bend(wide(x, W_1, b_1)), W_2, b_2), x)


FEED_FORWARD = (
    Misconception(
        "max of Python",
        "Python's `max` compares whole arrays. Entry by entry it is `np.maximum(0, hidden)`.",
        _feed(bend=lambda h: max(0, h)),
        _feed(bend=lambda h: max(h, 0)),
    ),
    Misconception(
        "np.max with 0 first",
        "`np.max` takes an axis as its second argument. The larger of 0 and each entry is `np.maximum(0, hidden)`.",
        _feed(bend=lambda h: np.max(0, h)),
    ),
    Misconception(
        "no ReLU",
        "Nothing bends between the two matrices, so they are one matrix, W₁W₂. Take `np.maximum(0, hidden)` in between.",
        _feed(bend=lambda h: h),
    ),
    Misconception(
        "ReLU at the end",
        "Your ReLU comes after the second matrix. It belongs between the two; the output may be negative.",
        _feed(bend=lambda h: h, finish=lambda y, x: _relu(y)),
    ),
    Misconception(
        "ReLU twice",
        "You apply ReLU after the second matrix, too. Only the hidden layer is bent; the output may be negative.",
        _feed(finish=lambda y, x: _relu(y)),
    ),
    Misconception(
        "ReLU on the input",
        "You apply ReLU to x. It belongs behind the first matrix: `np.maximum(0, x @ W_1 + b_1)`.",
        lambda x, W_1, b_1, W_2, b_2: (_relu(x) @ W_1 + b_1) @ W_2 + b_2,
    ),
    Misconception(
        "np.max for np.maximum",
        "`np.max(h, 0)` is the largest entry along axis 0. The larger of each entry and 0 is `np.maximum(h, 0)`.",
        _feed(bend=lambda h: np.max(h, 0)),
    ),
    Misconception(
        "minimum",
        "You keep what is negative and cut what is positive. ReLU is the *larger* of 0 and each entry: `np.maximum(0, hidden)`.",
        _feed(bend=lambda h: np.minimum(h, 0)),
    ),
    Misconception(
        "absolute value",
        "You take the absolute value. ReLU sets what is negative to 0; it does not turn it around.",
        _feed(bend=np.abs),
    ),
    Misconception("first bias missing", "b₁ is missing: x W₁ + b₁, before ReLU.", _feed(wide=lambda x, W, b: x @ W)),
    Misconception("second bias missing", "b₂ is missing: add it at the end.", _feed(narrow=lambda x, W, b: x @ W)),
    Misconception(
        "both biases missing",
        "Both biases are missing: x W₁ + b₁ before ReLU, and b₂ at the end.",
        _feed(wide=lambda x, W, b: x @ W, narrow=lambda x, W, b: x @ W),
    ),
    Misconception(
        "first bias behind ReLU",
        "You add b₁ behind ReLU. Inside, it decides where the bend is: `np.maximum(0, x @ W_1 + b_1)`.",
        lambda x, W_1, b_1, W_2, b_2: (_relu(x @ W_1) + b_1) @ W_2 + b_2,
    ),
    Misconception(
        "biases subtracted",
        "You subtract a bias. Both are added.",
        _feed(wide=lambda x, W, b: x @ W - b),
        _feed(narrow=lambda x, W, b: x @ W - b),
        _feed(wide=lambda x, W, b: x @ W - b, narrow=lambda x, W, b: x @ W - b),
    ),
    Misconception(
        "biases exchanged",
        "b₁ and b₂ have changed places. b₁ is as wide as the hidden layer, (d_ff,); b₂ as wide as the output, (d_model,).",
        lambda x, W_1, b_1, W_2, b_2: _relu(x @ W_1 + b_2) @ W_2 + b_1,
    ),
    Misconception(
        "matrices exchanged",
        "You use W₂ first. W₁, (d_model, d_ff), widens; W₂, (d_ff, d_model), narrows.",
        lambda x, W_1, b_1, W_2, b_2: _relu(x @ W_2 + b_2) @ W_1 + b_1,
        lambda x, W_1, b_1, W_2, b_2: _relu(x @ W_2 + b_1) @ W_1 + b_2,
    ),
    Misconception(
        "product the wrong way round",
        "A token is a row of x, and rows meet a matrix from the left: `x @ W_1`, not `W_1 @ x`.",
        lambda x, W_1, b_1, W_2, b_2: _relu(W_1 @ x + b_1) @ W_2 + b_2,
        lambda x, W_1, b_1, W_2, b_2: W_2 @ _relu(W_1 @ x + b_1) + b_2,
    ),
    Misconception(
        "matrices transposed",
        "You transpose a matrix. W₁ is (d_model, d_ff) and W₂ (d_ff, d_model): both fit as they are.",
        _feed(wide=lambda x, W, b: x @ W.T + b),
        _feed(narrow=lambda x, W, b: x @ W.T + b),
    ),
    Misconception(
        "entry by entry",
        "`*` multiplies entry by entry. A matrix product is `@`.",
        lambda x, W_1, b_1, W_2, b_2: _relu(x * W_1 + b_1) * W_2 + b_2,
        lambda x, W_1, b_1, W_2, b_2: _relu(x * W_1 + b_1) @ W_2 + b_2,
    ),
    Misconception(
        "sum around it",
        "You add x, the way around. That is the block's business, not the feed-forward layer's.",
        _feed(finish=lambda y, x: x + y),
    ),
    Misconception(
        "another bend",
        "You bend with another function than ReLU (tanh, sigmoid, GELU or a leaky ReLU). Others work in a model; asked for is "
        "the paper's: `np.maximum(0, hidden)`.",
        _feed(bend=np.tanh),
        _feed(bend=lambda h: 1 / (1 + np.exp(-h))),
        _feed(bend=ops.gelu),
        _feed(bend=lambda h: np.where(h > 0, h, 0.01 * h)),
    ),
    Misconception(
        "step",
        "This is 1 where the hidden layer is positive, and 0 elsewhere: ReLU's slope. ReLU lets what is positive through.",
        _feed(bend=lambda h: (h > 0) * np.ones_like(h)),
    ),
    Misconception(
        "softmax",
        "You put a softmax over the hidden layer. Its features do not compete: each is cut off at 0 by itself.",
        _feed(bend=ops.softmax),
    ),
)

# --- A pre-norm block -------------------------------------------------------------------------------------------------


def _block(first: Wrong, second: Wrong) -> Wrong:
    """first(x, f, norm) is the half with attention, second(x, f, norm, input) the other; input is the block's own."""

    def wrong(x: Any, attend: Wrong, feed_forward: Wrong, norm_1: Wrong, norm_2: Wrong) -> Any:
        return second(first(x, attend, norm_1), feed_forward, norm_2, x)

    return wrong


def _pre(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return x + f(norm(x))


def _post(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return norm(x + f(x))


def _alone(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return f(norm(x))


def _bare(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return x + f(x)


def _from_normed(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return norm(x) + f(norm(x))


def _behind(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return x + norm(f(x))


def _minus(x: Any, f: Wrong, norm: Wrong, *_: Any) -> Any:
    return x - f(norm(x))


def _either(half: Wrong) -> tuple[Wrong, ...]:
    """The mistake in both halves, in the first, in the second."""
    return _block(half, half), _block(half, _pre), _block(_pre, half)


BLOCK = (
    Misconception(
        "post-norm",
        "This is post-norm, norm(x + f(x)): the norm stands on the stream itself. In pre-norm it stands on the branch: x + f(norm(x)).",
        *_either(_post),
    ),
    Misconception(
        "no way around",
        "A way around is missing: the branch is *added* to the stream, x + f(norm(x)), in both halves.",
        *_either(_alone),
    ),
    Misconception(
        "no norm",
        "A norm is missing: each branch reads a normed copy of the stream, x + f(norm(x)).",
        *_either(_bare),
    ),
    Misconception(
        "the stream is normed",
        "You add the normed x in place of x. Then the stream is normed after all; keep x itself on the way around: "
        "x + f(norm(x)).",
        *_either(_from_normed),
    ),
    Misconception(
        "norm behind the branch",
        "You norm what comes out of a branch. Pre-norm norms what goes in: x + f(norm(x)).",
        *_either(_behind),
    ),
    Misconception(
        "subtracted",
        "A branch is subtracted. Both are added to the stream.",
        *_either(_minus),
    ),
    Misconception(
        "first x added again",
        "The second half adds the block's own input. By then the stream has moved on: add what came out of the first half.",
        _block(_pre, lambda x, f, norm, before: before + f(norm(x))),
    ),
    Misconception(
        "side by side",
        "Both branches read the block's input. Here they come one after the other: the second reads, and adds to, what came out of "
        "the first.",
        lambda x, attend, feed_forward, norm_1, norm_2: x + attend(norm_1(x)) + feed_forward(norm_2(x)),
        lambda x, attend, feed_forward, norm_1, norm_2: x + attend(norm_1(x)) + feed_forward(norm_1(x)),
    ),
    Misconception(
        "one norm twice",
        "You use the same norm for both halves. Each half has its own γ and β: `norm_1` for attention, `norm_2` for "
        "feed-forward.",
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(_pre(x, attend, norm_1), feed_forward, norm_1),
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(_pre(x, attend, norm_2), feed_forward, norm_2),
    ),
    Misconception(
        "norms exchanged",
        "The norms have changed places: `norm_1` belongs to attention, `norm_2` to feed-forward.",
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(_pre(x, attend, norm_2), feed_forward, norm_1),
    ),
    Misconception(
        "feed-forward first",
        "Feed-forward comes first here. Attention first: tokens gather what they need, then each works on it.",
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(_pre(x, feed_forward, norm_1), attend, norm_2),
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(_pre(x, feed_forward, norm_2), attend, norm_1),
    ),
    Misconception(
        "only the first half",
        "The feed-forward half is missing.",
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(x, attend, norm_1),
    ),
    Misconception(
        "only the second half",
        "The attention half is missing, or its result is lost: `x = x + attend(norm_1(x))`.",
        lambda x, attend, feed_forward, norm_1, norm_2: _pre(x, feed_forward, norm_2),
    ),
    Misconception(
        "one addition only",
        "You put attention inside feed-forward, without a stop on the stream. There are two additions, one after each half.",
        lambda x, attend, feed_forward, norm_1, norm_2: x + feed_forward(norm_2(attend(norm_1(x)))),
    ),
)  # fmt: skip
