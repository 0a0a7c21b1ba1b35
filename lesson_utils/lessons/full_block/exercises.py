"""The exercises of notebook 05, and the ways to get them wrong, as learners type them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

LAST = "axis=-1, keepdims=True"


def _over(arguments: str) -> dict[str, str]:
    return {"mean": f"mean = x.mean({arguments})", "variance": f"variance = x.var({arguments})"}


LAYER_NORM = (
    change('ε as a floor', 'You use ε as a lower limit. It is added to the variance, under the root: √(σ² + ε).', root=("root = np.maximum(np.sqrt(variance), eps)", "root = np.sqrt(np.maximum(variance, eps))")),
    change('σ under the root', 'Under the root you have σ, not its square. `x.var` is σ²; `x.std` has the root already.', variance=f"variance = x.std({LAST})"),
    change('brackets', 'Only the mean is divided. Put the difference x − μ in brackets: `(x - …) / …`.', normal="normal = x - mean / root"),
    change('over everything', 'You take mean and variance over the whole array. Layer norm treats each token on its own: `axis=-1, keepdims=True`.', **_over("")),
    change("mean over everything", "You take the mean of the whole array. Each token has a mean of its own: `x.mean(axis=-1, keepdims=True)`.", mean="mean = x.mean()"),
    change("variance over everything", "You take the variance of the whole array. Each token has one of its own: `x.var(axis=-1, keepdims=True)`.", variance="variance = x.var()"),
    change('over axis 0', 'You take mean and variance over axis 0. That is nearer to batch norm: one feature over many tokens. Layer norm takes one token over its features, `axis=-1, keepdims=True`.', mean=("mean = x.mean(axis=0, keepdims=True)", "mean = x.mean(axis=0)"), variance=("variance = x.var(axis=0, keepdims=True)", "variance = x.var(axis=0)")),
    change("over the tokens", "You take mean and variance over axis −2, the tokens. Layer norm takes one token over its features, `axis=-1, keepdims=True`.", **_over("axis=-2, keepdims=True")),
    change('over axis 1', '`axis=1` is the last axis only where there are two; a single token has none. The features are always `axis=-1`.', **_over("axis=1, keepdims=True")),
    change('without keepdims', 'Your mean and variance have lost the last axis, and NumPy lines up what is left with the features: an error, or, in a square array, wrong numbers. Keep it: `keepdims=True`, or `[..., None]`.', **_over("axis=-1")),
    change("mean without keepdims", "Your mean has lost the last axis, and NumPy lines up what is left with the features, wrongly. Keep it: `keepdims=True`, or `[..., None]`.", mean="mean = x.mean(axis=-1)"),
    change("variance without keepdims", "Your variance has lost the last axis, and NumPy lines up what is left with the features, wrongly. Keep it: `keepdims=True`, or `[..., None]`.", variance="variance = x.var(axis=-1)"),
    change('ε outside the root', "You add ε to the standard deviation, outside the root. That is the other formula; asked for is the libraries': √(σ² + ε). The two differ where σ is small.", root="root = np.sqrt(variance) + eps"),
    change('ε missing', 'ε is missing. A token whose features are all equal has variance 0, and 0 / 0 is NaN: √(σ² + ε).', root="root = np.sqrt(variance)"),
    change('ε as it is by default', 'You use 10⁻⁵ whatever the argument `eps` says.', root="root = np.sqrt(variance + 1e-5)"),
    change('ε squared', 'You add ε², but what stands under the root is σ² + ε.', root="root = np.sqrt(variance + eps**2)"),
    change("ε subtracted", "You subtract ε. It is added under the root, so that there is never a 0: √(σ² + ε).", root="root = np.sqrt(variance - eps)"),
    change('ε added to the result', 'You add ε after the division. It belongs under the root, where it keeps a token of equal features from 0 / 0.', root="root = np.sqrt(variance)", normal="normal = (x - mean) / root + eps"),
    change("ε added at the end", "You add ε at the end. It belongs under the root, where it keeps a token of equal features from 0 / 0.", root="root = np.sqrt(variance)", answer="return gamma * normal + eps + beta"),
    change("ε added above", "You add ε above the fraction bar. It belongs under the root: √(σ² + ε).", root="root = np.sqrt(variance)", normal="normal = (x - mean + eps) / root"),
    change('divided by the variance', 'You divide by the variance. Divide by its root, the standard deviation: only then can the spread be 1 afterwards.', root="root = variance + eps"),
    change('multiplied', 'You multiply by the standard deviation. Divide by it.', normal="normal = (x - mean) * root"),
    change('divided by d_model − 1', "Your variance divides by d_model − 1, as a statistician's estimate and `ddof=1` do. Layer norm divides by d_model: `x.var(axis=-1, keepdims=True)`.", variance=f"variance = x.var({LAST}, ddof=1)"),
    change('mean not subtracted', 'The mean is not subtracted: x − μ goes over the root.', normal="normal = x / root"),
    change("mean added", "You add the mean. It is subtracted: x − μ goes over the root.", normal="normal = (x + mean) / root"),
    change("signs turned around", "You subtract x from the mean. It is x − μ.", normal="normal = (mean - x) / root"),
    change("not divided", "You do not divide by the spread: (x − μ) / √(σ² + ε).", normal="normal = x - mean"),
    change('root mean square', 'You divide by the root of the mean square, without the mean. That is RMSNorm, a relative. Layer norm subtracts μ first.', variance=f"variance = (x**2).mean({LAST})", normal="normal = x / root"),
    change('mean square in place of the variance', 'Under the root you have the mean of x². The variance is the mean of (x − μ)².', variance=f"variance = (x**2).mean({LAST})"),
    change('sum of squares', 'You divide by the length of the vector, the root of the *sum* of squares. The variance is their *mean*.', variance=f"variance = ((x - mean) ** 2).sum({LAST})"),
    change("not squared", "You take the mean of x − μ, which is always 0, or of its size. The variance is the mean of (x − μ)².", variance=(f"variance = (x - mean).mean({LAST})", f"variance = abs(x - mean).mean({LAST})")),
    change("mean of the squares minus the mean", "The variance is the mean of x² minus the *square* of the mean.", variance=f"variance = (x**2).mean({LAST}) - mean"),
    change("root twice", "You take the root twice. `x.std` has it already, and √(σ² + ε) needs the variance.", root=("root = np.sqrt(np.sqrt(variance + eps))", "root = np.sqrt(np.sqrt(variance)) + eps")),
    change("a loop over the first axis", "Your loop goes over the first axis only. So each turn normalizes whole sequences if x is a batch, and single features if x is one token. No loop is needed: `axis=-1, keepdims=True`.", "np.array([gamma * (row - row.mean()) / np.sqrt(row.var() + eps) + beta for row in x])"),
    change("median", "You subtract the median. Layer norm subtracts the mean.", mean="mean = np.median(x, axis=-1, keepdims=True)"),
    change('from lowest to highest', 'You subtract the smallest feature and divide by its distance from the largest. Layer norm subtracts the mean and divides by √(σ² + ε).', *(f"low = x.min({LAST})\nreturn gamma * (x - low) / (x.max({LAST}) - low{e}) + beta" for e in ("", " + eps"))),
    change('without gamma and beta', 'γ and β are missing: each feature has its own scale and its own shift, both learnt.', answer="return normal"),
    change('without beta', 'β is missing: add it at the end.', answer="return gamma * normal"),
    change('without gamma', 'γ is missing: multiply by it before you add β.', answer="return normal + beta"),
    change('gamma and beta exchanged', 'γ and β have changed places: multiply by γ, add β.', answer="return beta * normal + gamma"),
    change('shifted, then scaled', 'You add β first and multiply everything by γ. β is added last: γ · (x − μ) / √(σ² + ε) + β.', answer="return gamma * (normal + beta)"),
    change("beta subtracted", "You subtract β. It is added at the end.", answer="return gamma * normal - beta"),
    change("divided by gamma", "You divide by γ. Multiply by it before you add β.", answer="return normal / gamma + beta"),
    change("gamma added", "You add γ, or multiply by 1 + γ. Multiply by γ as it is, then add β.", answer=("return gamma + normal + beta", "return (1 + gamma) * normal + beta")),
    change('gamma as a matrix', 'Your product with γ adds up the features to one number, as `@` does. γ has one number a feature: multiply with `*`.', answer=("return normal @ gamma + beta", "return gamma @ normal + beta")),
    change("x put back", "You add x to the result. The residual connection belongs to the block, not to the norm.", answer="return x + gamma * normal + beta"),
)

# --- Feed-forward -----------------------------------------------------------------------------------------------------

FEED_FORWARD = (
    change('max of Python', "Python's `max` and `if` compare whole arrays. Entry by entry it is `np.maximum(0, …)`.", relu=("hidden = max(0, hidden)", "hidden = max(hidden, 0)")),
    change('np.max with 0 first', '`np.max` takes an axis as its second argument. The larger of 0 and each entry is `np.maximum(0, …)`.', relu="hidden = np.max(0, hidden)"),
    change("np.max of a list", "`np.max([0, …])` looks for the largest number of one list. The larger of 0 and each entry is `np.maximum(0, …)`.", relu="hidden = np.max([0, hidden])"),
    change('no ReLU', 'Nothing bends between the two matrices, so they are one matrix, W₁W₂. Take `np.maximum(0, …)` in between.', relu=""),
    change('ReLU at the end', 'Your ReLU comes after the second matrix. It belongs between the two; the output may be negative.', relu="", b_2="return np.maximum(0, y + b_2)"),
    change('ReLU twice', 'You apply ReLU after the second matrix, too. Only the hidden layer is bent; the output may be negative.', b_2="return np.maximum(0, y + b_2)"),
    change('ReLU on the input', 'You apply ReLU to x. It belongs behind the first matrix: `np.maximum(0, x @ W_1 + b_1)`.', first="hidden = np.maximum(0, x) @ W_1", relu=""),
    change("ReLU on the input as well", "You put a ReLU on the input as well. There is one, between the two matrices.", first="hidden = np.maximum(0, x) @ W_1"),
    change('np.max for np.maximum', 'You take the largest entry along axis 0, as `np.max(…, 0)` does. The larger of each entry and 0 is `np.maximum(…, 0)`.', relu="hidden = np.max(hidden, 0)"),
    change("np.max over the last axis", "You take the largest number of each row, or of all rows. `np.maximum(0, …)` compares each entry with 0.", relu=("hidden = np.max(hidden, axis=-1)", "hidden = np.max(hidden, axis=-1, keepdims=True)", "hidden = np.max(hidden)")),
    change('minimum', 'You keep what is negative and cut what is positive. ReLU is the *larger* of 0 and each entry: `np.maximum(0, …)`.', relu="hidden = np.minimum(0, hidden)"),
    change("negative ones left out", "You pick out the positive entries, and the shape is lost. ReLU keeps every entry and sets the negative ones to 0: `np.maximum(0, …)`.", relu=("hidden = hidden[hidden > 0]", "hidden = hidden[hidden >= 0]")),
    change('absolute value', 'You take the absolute value. ReLU sets what is negative to 0; it does not turn it around.', relu="hidden = abs(hidden)"),
    change("negative ones kept", "You keep the negative entries and set the positive ones to 0. ReLU is the other way round: `np.maximum(0, …)`.", relu="hidden = np.where(hidden > 0, 0, hidden)"),
    change("compared with 1", "You compare with 1. ReLU is the larger of 0 and each entry.", relu="hidden = np.maximum(1, hidden)"),
    change("cut off above as well", "You cut off above as well. A ReLU has no upper end: `np.maximum(0, …)`.", relu=("hidden = np.clip(hidden, 0, 1)", "hidden = np.clip(hidden, 0, 6)")),
    change("sign turned around", "Your ReLU turns a sign around. It is the larger of 0 and each entry: `np.maximum(0, …)`.", relu=("hidden = np.maximum(0, -hidden)", "hidden = -np.maximum(0, hidden)")),
    change('first bias missing', 'b₁ is missing: x W₁ + b₁, before ReLU.', b_1=""),
    change('second bias missing', 'b₂ is missing: add it at the end.', b_2="return y"),
    change('first bias behind ReLU', 'You add b₁ behind ReLU. Inside, it decides where the bend is: `np.maximum(0, x @ W_1 + b_1)`.', b_1="hidden = np.maximum(0, hidden)", relu="hidden = hidden + b_1"),
    change("second bias inside", "You add b_2 before the second matrix. It has d_model entries and comes last: `… @ W_2 + b_2`.", relu="hidden = np.maximum(0, hidden) + b_2", b_2="return y"),
    change("first bias subtracted", "You subtract b_1. A bias is added.", b_1="hidden = hidden - b_1"),
    change("second bias subtracted", "You subtract b_2. A bias is added.", b_2="return y - b_2"),
    change("first bias multiplied", "You multiply by b_1. A bias is added.", b_1="hidden = hidden * b_1"),
    change("second bias multiplied", "You multiply by b_2. A bias is added.", b_2="return y * b_2"),
    change("a bias twice", "You add b_1 twice. Once is enough.", b_1="hidden = hidden + 2 * b_1"),
    change("second bias twice", "You add b_2 twice. Once is enough.", b_2="return y + 2 * b_2"),
    change('biases exchanged', 'b₁ and b₂ have changed places. b₁ is as wide as the hidden layer, (d_ff,); b₂ as wide as the output, (d_model,).', b_1="hidden = hidden + b_2", b_2="return y + b_1"),
    change('matrices exchanged', 'You use W₂ first. W₁, (d_model, d_ff), widens; W₂, (d_ff, d_model), narrows.', first="hidden = x @ W_2", second="y = hidden @ W_1", b_1=("hidden = hidden + b_1", "hidden = hidden + b_2"), b_2=("return y + b_2", "return y + b_1")),
    change("one matrix twice", "You use one matrix twice. W_1 widens, W_2 narrows.", second="y = hidden @ W_1"),
    change('product the wrong way round', 'A token is a row of x, and rows meet a matrix from the left: `x @ W_1`, not `W_1 @ x`.', first="hidden = W_1 @ x"),
    change("second product the wrong way round", "You put W_2 in front. Each row is a token, so the matrix comes after it: `… @ W_2`.", second="y = W_2 @ hidden"),
    change('matrices transposed', 'You transpose a matrix. W₁ is (d_model, d_ff) and W₂ (d_ff, d_model): both fit as they are.', first="hidden = x @ W_1.T"),
    change("second matrix transposed", "Your second product has the wrong matrix, or a transposed one. W_2 has the shape (d_ff, d_model): `… @ W_2`.", second=("y = hidden @ W_2.T", "y = hidden @ W_1.T")),
    change('entry by entry', '`*` multiplies entry by entry. A matrix product is `@`.', first="hidden = x * W_1"),
    change("second product entry by entry", "`… * W_2` multiplies entry by entry. A matrix product is `… @ W_2`.", second="y = hidden * W_2"),
    change('sum around it', "You add x, the residual connection. That is the block's business, not the feed-forward layer's.", b_2="return x + y + b_2"),
    change('another bend', "You bend with another function than ReLU, such as tanh, sigmoid, GELU or a leaky ReLU. Others work in a model; asked for is the paper's: `np.maximum(0, …)`.", relu=("hidden = np.tanh(hidden)", "hidden = ops.gelu(hidden)", "hidden = ops.sigmoid(hidden)", "hidden = hidden * ops.sigmoid(hidden)", "hidden = np.where(hidden > 0, hidden, 0.01 * hidden)", "hidden = np.where(hidden > 0, hidden, 0.1 * hidden)", "hidden = np.maximum(0, hidden) ** 2", "hidden = np.exp(hidden)", "hidden = np.log1p(np.exp(hidden))")),
    change('step', "This is 1 where the hidden layer is positive, and 0 elsewhere: ReLU's slope. ReLU lets what is positive through.", relu="hidden = hidden > 0"),
    change("step of the square", "Behind your bend every number is 1. Python multiplies before it compares, and a square is never negative. Put brackets around the comparison: `… * (… > 0)`.", relu="hidden = hidden * hidden > 0"),
    change('softmax', 'You put a softmax over the hidden layer. Its features do not compete: each is cut off at 0 by itself.', relu="hidden = ops.softmax(hidden)"),
    change("softmax at the end", "You put a softmax at the end. The result is y as it is.", b_2="return ops.softmax(y + b_2)"),
    change("the hidden numbers returned", "You return the hidden numbers, (..., d_ff). The second matrix brings them back to d_model.", second="y = hidden", b_2=("return y", "return y + b_2")),
)

# --- A pre-norm block ---------------------------------------------------------------------------------------------------

BLOCK = (
    change('post-norm', 'This is post-norm, norm(x + f(x)): the norm stands on the stream itself. In pre-norm it stands on the branch: x + f(norm(x)).', "x = norm_1(x + attend(x))\nreturn norm_2(x + feed_forward(x))", "norm_2(norm_1(x + attend(x)) + feed_forward(x))", "norm_2(x + attend(x) + feed_forward(norm_1(x + attend(x))))", first="x = norm_1(x + attend(x))"),
    change("post-norm in the first half, and norm before feed-forward", "You norm the sum x + attend(x) and put it on the stream. In pre-norm the norm stands on the branch: x + attend(norm_1(x)).", "y = x + attend(x)\nreturn norm_1(y) + feed_forward(norm_2(y))"),
    change("post-norm, second half", "You norm the sum, as the first Transformers did. Here the norm stands before the work: x + f(norm(x)).", second="return norm_2(x + feed_forward(x))"),
    change('no residual connection', 'A residual connection is missing: the branch is *added* to the stream, x + f(norm(x)), in both halves.', "x = attend(norm_1(x))\nreturn feed_forward(norm_2(x))", first="x = attend(norm_1(x))"),
    change("no residual connection, second half", "The second half has no residual connection. Add its input, the sum from the first half, to its output: `… + feed_forward(norm_2(…))`, with this sum in both places.", second="return feed_forward(norm_2(x))"),
    change("a norm that is not called", "A norm is a function: call it with the stream, `norm_1(x)`, and give its result to the part.", "x = x + attend(norm_1)\nreturn x + feed_forward(norm_2)", first="x = x + attend(norm_1)"),
    change('no norm', 'A norm is missing: each branch reads a normalized copy of the stream, x + f(norm(x)).', "x = x + attend(x)\nreturn x + feed_forward(x)", first="x = x + attend(x)"),
    change("no norm, second half", "The second half has no norm: `feed_forward(norm_2(…))` works on a normalized copy of the stream.", second="return x + feed_forward(x)"),
    change('the stream is normed', 'You add the normalized x in place of x. Then the stream is normalized after all; add x itself: x + f(norm(x)).', "x = norm_1(x)\nx = x + attend(x)\nx = norm_2(x)\nreturn x + feed_forward(x)", first="x = norm_1(x)\nx = x + attend(x)"),
    change("the stream is normed, second half", "You normalize the stream itself before the second half. What feed-forward returns is added to the stream as it is: `… + feed_forward(norm_2(…))`, with the sum from the first half in both places.", second="x = norm_2(x)\nreturn x + feed_forward(x)"),
    change('norm behind the branch', 'You norm what comes out of a branch. Pre-norm norms what goes in: x + f(norm(x)).', "x = x + norm_1(attend(x))\nreturn x + norm_2(feed_forward(x))", "x + norm_2(feed_forward(x + norm_1(attend(x))))", first="x = x + norm_1(attend(x))"),
    change("norm behind the branch, second half", "You norm what feed-forward returns. The norm stands before the work: `feed_forward(norm_2(…))`.", second="return x + norm_2(feed_forward(x))"),
    change('subtracted', 'A branch is subtracted. Both are added to the stream.', "x = x - attend(norm_1(x))\nreturn x - feed_forward(norm_2(x))", first="x = x - attend(norm_1(x))"),
    change("subtracted, second half", "You subtract the result of feed-forward. It is added to the stream.", second="return x - feed_forward(norm_2(x))"),
    change('first x added again', "The second half adds the block's own input. By then the stream has moved on: add what came out of the first half.", "y = x + attend(norm_1(x))\nreturn x + feed_forward(norm_2(y))"),
    change('side by side', "Both branches read the block's input. Here they come one after the other: the second reads, and adds to, what came out of the first.", "x + attend(norm_1(x)) + feed_forward(norm_2(x))", "attend(norm_1(x)) + feed_forward(norm_2(x))"),
    change('one norm twice', 'You use the same norm for both halves. Each half has its own γ and β: `norm_1` for attention, `norm_2` for feed-forward.', "x = x + attend(norm_2(x))\nreturn x + feed_forward(norm_2(x))", second="return x + feed_forward(norm_1(x))"),
    change('norms exchanged', 'The norms have changed places: `norm_1` belongs to attention, `norm_2` to feed-forward.', "x = x + attend(norm_2(x))\nreturn x + feed_forward(norm_1(x))"),
    change('feed-forward first', 'Feed-forward comes first here. Attention first: tokens gather what they need, then each works on it.', "x = x + feed_forward(norm_2(x))\nreturn x + attend(norm_1(x))", "x = x + feed_forward(norm_1(x))\nreturn x + attend(norm_2(x))"),
    change('only the first half', 'The feed-forward half is missing, or its result is lost: `… + feed_forward(norm_2(…))`, with the sum from the first half in both places.', second="return x"),
    change('only the second half', 'The attention half is missing, or its result is lost: `x = x + attend(norm_1(x))`.', first=""),
    change('one addition only', 'Your feed-forward layer reads what attention returned, not the stream. There are two additions, one after each half.', "x + feed_forward(norm_2(attend(norm_1(x))))"),
)

# fmt: on

# --- Layer norm -------------------------------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(
        label: str, *shape: int, size: float = 1.0, mean: float = 0.5, eps: float = 1e-5, dtype: Any = float
    ) -> Case:
        x = mean + size * rng.normal(size=shape)
        gamma, beta = rng.uniform(0.5, 2, shape[-1]), rng.normal(size=shape[-1])
        return Case(label, (x.astype(dtype), gamma.astype(dtype), beta.astype(dtype), eps))

    alike = case("a token whose features are all equal", 3, 5)
    alike.arguments[0][1] = 0.7
    return [
        case("4 tokens of width 6", 4, 6),
        case("a batch of shape (2, 3, 5)", 2, 3, 5),
        case("a square array, (4, 4)", 4, 4),
        case("features that hardly differ (σ ≈ 0.001)", 3, 7, size=1e-3),
        case("ε = 0.1", 5, 3, eps=0.1),
        case("one token, shape (6,)", 6, mean=-4.0),
        alike,
        case("float32 input", 2, 5, dtype=np.float32),
    ]


_NORM = Exercise(
    name="layer_norm",
    called="my_layer_norm",
    takes="x, gamma, beta, eps",
    task="""Layer norm over the last axis, with ε inside the root.

x: (..., d_model). gamma, beta: (d_model,), in the dtype of x. eps: a small positive
number. Returns y, (..., d_model), in the dtype of x; x stays as it was.
NumPy, no loops, no `ops.layer_norm`.""",
    reference=ops.layer_norm,
    steps={
        "mean": "mean = x.mean(axis=-1, keepdims=True)",
        "variance": "variance = x.var(axis=-1, keepdims=True)",
        "root": "root = np.sqrt(variance + eps)",
        "normal": "normal = (x - mean) / root",
        "answer": "return gamma * normal + beta",
    },
    cases=_norm_cases,
    returns=("y",),
    hints=(
        "Four steps: the mean of each token, its variance, subtract and divide, then γ and β. Which axis are a token's features?",
        "`x.mean(axis=-1, keepdims=True)` has shape (..., 1) and lines up with x. The variance is `x.var(...)`, with the same "
        "arguments.",
        "Divide by `np.sqrt(variance + eps)`, then `gamma * normal + beta`. γ and β, shape (d_model,), line up with the last axis "
        "by themselves.",
    ),
    mistakes=LAYER_NORM,
    library=(ops.layer_norm, ops.layer_norm_forward),
    praise="Eight cases: leading axes, a square array, equal features, two values of ε, float32. This is the libraries' layer norm.",
    dtype="kept",
    in_pytorch="""y = F.layer_norm(x, x.shape[-1:], gamma, beta, eps)
# By hand, beware of `x.std(-1)`: PyTorch divides by d − 1 there, and layer norm by d (`correction=0`).""",
)

# --- Feed-forward -----------------------------------------------------------------------------------------------------


def _feed_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, d_ff: int, dtype: Any = float, size: float = 1) -> Case:
        d = shape[-1]
        arrays = [rng.normal(size=s) for s in (shape, (d, d_ff), (d_ff,), (d_ff, d), (d,))]
        arrays[0] *= size
        return Case(label, tuple(array.astype(dtype) for array in arrays))

    return [
        case("4 tokens, d_model = 3, d_ff = 7", 4, 3, d_ff=7),
        case("a batch of shape (2, 5, 4), d_ff = 6", 2, 5, 4, d_ff=6, size=10),  # a ReLU has no upper end
        case("one token, shape (5,), d_ff = 8", 5, d_ff=8),
        case("d_ff smaller than d_model", 3, 6, d_ff=2),
        case("d_ff as large as d_model, as many tokens", 4, 4, d_ff=4),
        case("float32 input", 3, 5, d_ff=9, dtype=np.float32),
        case("d_model and d_ff of 1", 2, 1, d_ff=1),
    ]


def _feed_reference(x: Array, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Array:
    return ops.linear(ops.relu(ops.linear(x, W_1, b_1)), W_2, b_2)


_FEED = Exercise(
    name="feed_forward",
    called="my_feed_forward",
    takes="x, W_1, b_1, W_2, b_2",
    task="""The feed-forward layer: widen, ReLU, narrow.

x: (..., d_model). W_1: (d_model, d_ff). b_1: (d_ff,). W_2: (d_ff, d_model).
b_2: (d_model,). All have one dtype. Returns y, (..., d_model), in that dtype.
NumPy and `ops`. The arguments stay as they were.""",
    reference=_feed_reference,
    steps={
        "first": "hidden = x @ W_1  # (..., d_ff)",
        "b_1": "hidden = hidden + b_1",
        "relu": "hidden = np.maximum(0, hidden)",
        "second": "y = hidden @ W_2  # (..., d_model)",
        "b_2": "return y + b_2",
    },
    cases=_feed_cases,
    returns=("y",),
    hints=(
        "Three steps: widen, bend, narrow. Write down the shape after each.",
        "Widen: `x @ W_1 + b_1`, shape (..., d_ff). It works for any leading axes.",
        "Bend: `np.maximum(0, hidden)`, the larger of 0 and each entry. Then `hidden @ W_2 + b_2`.",
    ),
    mistakes=FEED_FORWARD,
    praise="Seven cases. Two matrices and a bend: most of a Transformer's parameters sit in here.",
    dtype="kept",
    in_pytorch="y = F.relu(x @ W_1 + b_1) @ W_2 + b_2  # nn.Linear(d_model, d_ff) keeps its matrix transposed: (d_ff, d_model)",
)

# --- A pre-norm block ---------------------------------------------------------------------------------------------------


@cache  # the same parts in each draw, so that cases can be compared
def _parts(T: int, d: int) -> tuple[Callable[[Array], Array], ...]:
    """attend, feed_forward and two norms for x of shape (..., T, d)."""
    rng = np.random.default_rng(T)
    mix = ops.softmax(rng.normal(size=(T, T)))
    W, W_1, W_2, gammas, betas = (rng.normal(size=s) for s in ((d, d), (d, 2 * d), (2 * d, d), (2, d), (2, d)))

    def norm(i: int) -> Callable[[Array], Array]:
        return lambda x: ops.layer_norm(x, 1 + 0.3 * gammas[i], betas[i])

    return lambda x: mix @ x @ W, lambda x: ops.relu(x @ W_1) @ W_2, norm(0), norm(1)


def _block_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int) -> Case:
        return Case(label, (2 * rng.normal(size=shape) + 1, *_parts(*shape[-2:])))

    return [
        case("4 tokens of width 6", 4, 6),
        case("a batch of shape (2, 3, 5)", 2, 3, 5),
        case("a single token", 1, 4),
        Case("parts that return the array they are given", (rng.normal(size=(2, 3)), *[lambda x: x] * 4)),
    ]


_BLOCK = Exercise(
    name="pre_norm_block",
    called="my_pre_norm_block",
    takes="x, attend, feed_forward, norm_1, norm_2",
    task="""A pre-norm block: attention, then feed-forward, each behind a norm, each added
to the stream.

x: (..., T, d_model). attend, feed_forward, norm_1 (for attention) and norm_2
(for feed-forward) are functions: each takes an array like x and returns one of
the same shape. Returns y, (..., T, d_model). x stays as it was.""",
    steps={
        "first": "x = x + attend(norm_1(x))",
        "second": "return x + feed_forward(norm_2(x))",
    },
    cases=_block_cases,
    returns=("y",),
    hints=(
        "Two halves, built alike. Each reads a normalized copy of the stream, works on it, and adds its result to the stream.",
        "One half is x + f(norm(x)). The x on the left of the plus is the stream as it is, not its normalized copy.",
        "First half: `x = x + attend(norm_1(x))`. The second half starts from this new x.",
    ),
    mistakes=BLOCK,
    praise="Two lines, and the whole encoder layer of today's models: the parts do the work, the stream carries it.",
    in_pytorch="""x = x + attend(norm_1(x))  # never `x += …`: it would change the caller's x
y = x + feed_forward(norm_2(x))
# nn.TransformerEncoderLayer is post-norm unless you say `norm_first=True`, and takes (T, B, d) unless `batch_first=True`.""",
)

EXERCISES = (_NORM, _FEED, _BLOCK)
