"""The exercises of notebook 12, and the ways to get them wrong, as learners type them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lesson_utils.lessons import common_mistakes
from lesson_utils.lessons.llama.grown import Block, own_keys
from lesson_utils.maths import attention, ops
from lesson_utils.maths import positions as library
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

LAST = "axis=-1, keepdims=True"

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
    change("1 + γ", "Your factor is 1 + γ, as in Gemma's code. Here it is γ.", answer="return (1 + gamma) * (x / root)"),
    change("each feature by itself", "You divide each feature by its own size. One root serves all features of a token: take the mean of x² over the last axis first.", root="root = np.sqrt(x**2 + eps)"),
    change("d − 1", "You divide the sum of squares by d − 1. A mean divides by d.", square=f"mean_square = (x**2).sum({LAST}) / max(x.shape[-1] - 1, 1)"),
    change("normed after γ", "You multiply by γ before the norm, so that γ counts in the root as well. Norm x, then multiply.", "y = gamma * x\nreturn y / np.sqrt((y**2).mean(axis=-1, keepdims=True) + eps)"),
    change("over everything", "You take the mean over the whole array. Each token has one of its own: `axis=-1, keepdims=True`.", square="mean_square = (x**2).mean()"),
    change("over axis 0", "You take the mean over axis 0. It is over the features of one token: `axis=-1, keepdims=True`.", square="mean_square = (x**2).mean(axis=0, keepdims=True)"),
    change("without keepdims", "Your mean drops the last axis, and NumPy lines up what is left with the features: an error, or, in a square array, wrong numbers without one. Keep the axis: `keepdims=True` or `[..., None]`.", square="mean_square = (x**2).mean(axis=-1)"),
)

SWIGLU = (
    change("sigmoid alone", "Your gate is σ(g), between 0 and 1: this is GLU. In SwiGLU the gate is g · σ(g).", silu="gate = ops.sigmoid(gate)"),
    change("ReLU", "Your gate is a ReLU (Shazeer calls this ReGLU). SwiGLU's gate is smooth: g · σ(g).", silu="gate = np.maximum(gate, 0)"),
    change("GELU", "Your gate is a GELU (Shazeer calls this GEGLU). SwiGLU's gate is g · σ(g).", silu="gate = ops.gelu(gate)"),
    change("tanh", "Your gate is a tanh. SwiGLU's gate is g · σ(g).", silu="gate = np.tanh(gate)"),
    change("not bent", "You multiply the two wide vectors as they are. The first one goes through g · σ(g) before.", silu=""),
    change("sign", "Your gate is g · σ(−g), which closes where g is large. It is g · σ(g): open where g is large.", silu="gate = gate * ops.sigmoid(-gate)"),
    change("σ squared", "Your gate has σ twice. It is g · σ(g).", silu="gate = gate * ops.sigmoid(gate) ** 2"),
    change("bent twice", "You bend the gate twice. Once: g · σ(g), with the g that W_gate gives.", silu="gate = gate * ops.sigmoid(gate)\ngate = gate * ops.sigmoid(gate)"),
    change("exchanged", "You bend what W_up gives, and leave what W_gate gives as it is. The gate is bent.", silu="", up="up = x @ W_up\nup = up * ops.sigmoid(up)"),
    change("σ of the other", "Your gate multiplies g by σ of what W_up gives. The gate bends itself: g · σ(g).", silu="gate = gate * ops.sigmoid(x @ W_up)", down="return gate @ W_down"),
    change("both bent", "You bend both wide vectors. Only the gate is bent; what W_up gives stays as it is.", up="up = x @ W_up\nup = up * ops.sigmoid(up)"),
    change("bent after the product", "You bend the product of the two. Bend the gate first, then multiply.", silu="", down="wide = gate * up\nreturn (wide * ops.sigmoid(wide)) @ W_down"),
    change("added", "You add the two wide vectors. A gate is a factor: they are multiplied, entry by entry.", down="return (gate + up) @ W_down"),
    change("gate only", "W_up plays no part in your answer. What it gives is multiplied by the gate.", down="return gate @ W_down"),
    change("up only", "Your answer has no gate: W_gate plays no part in it.", down="return up @ W_down"),
    change("ReLU of one", "This is the feed-forward layer of 2017 with W_gate and W_down. Here W_up is there, too, and the bend is smooth.", silu="gate = np.maximum(gate, 0)", down="return gate @ W_down"),
    change("W_gate twice", "Both wide vectors come from W_gate. The second one comes from W_up.", up="up = x @ W_gate"),
    change("W_up twice", "Both wide vectors come from W_up. The gate comes from W_gate.", gate="gate = x @ W_up"),
    change("x added", "You add x. The residual connection is the block's matter; return only what the layer gives.", down="return x + (gate * up) @ W_down"),
    change("softmax", "Your gate is a softmax, in which features compete. Each feature has a gate of its own: g · σ(g).", silu="gate = ops.softmax(gate)"),
    change("gated outside", "You multiply after W_down. The gate acts on the wide vector, before W_down narrows it.", down="return (gate @ W_down) * (up @ W_down)"),
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

GROUPED = (
    change("groups interleaved", "You give the first query head to the first key–value head, the second to the second, and begin again. Neighbours share one: with 6 on 2, heads 0, 1, 2 the first, heads 3, 4, 5 the second. (With the other order, SmolLM2's perplexity is 162,000.)", groups="groups = Q.reshape(-1, len(K), *Q.shape[1:]).swapaxes(0, 1)", answer="return output.swapaxes(0, 1).reshape(len(Q), Q.shape[1], -1)"),
    change("groups not joined", "Your output still has the axis of the groups, (h_kv, h / h_kv, T_q, d_v). Join both axes of heads: reshape it to (h, T_q, d_v).", answer="return output"),
    change("not put back in order", "Your groups interleave heads, and the result is not put back in order. Neighbours share one: `Q.reshape(len(K), -1, …)`, and the heads' axes are not swapped.", groups="groups = Q.reshape(-1, len(K), *Q.shape[1:]).swapaxes(0, 1)"),
    change("keys tiled", "Your query heads take the key–value heads in turn, 0, 1, 0, 1 …, and begin again. Neighbours share one: 0, 0, 1, 1 …, as `np.repeat` gives, or an axis more for Q.", "n = len(Q) // len(K)\nscores = Q @ np.tile(K, (n, 1, 1)).swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\nreturn ops.softmax(scores) @ np.tile(V, (n, 1, 1))"),
    change("repeated without an axis", "`np.repeat` without an axis flattens the array and repeats single numbers. Repeat whole heads: `axis=0`.", "n = len(Q) // len(K)\nK, V = np.repeat(K, n), np.repeat(V, n)\nscores = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\nreturn ops.softmax(scores) @ V"),
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
    change("causal mask", "You hide later keys. Here is no mask: every query reads every key.", scale="scores = scores / math.sqrt(Q.shape[-1])\nscores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)"),
    *common_mistakes.weighing(),
)

BLOCK = (
    change("post-norm", "You norm the sums, as the Transformer of 2017 did. Here a norm stands before each part, and nothing stands on the stream: x + f(norm(x)).", norm_1="y = x", first="x = norm(x + attention.merge_heads(heads) @ p.W_O, p.gamma_1)", norm_2="y = x", second="return norm(x + feed_forward(y, p.W_gate, p.W_up, p.W_down), p.gamma_2)"),
    change("no norm before attention", "Queries, keys and values are made from x. They are made from norm(x, p.gamma_1).", norm_1="y = x"),
    change("no norm before feed-forward", "The feed-forward layer reads x. It reads norm(x, p.gamma_2).", norm_2="y = x"),
    change("one γ for both", "You use p.gamma_1 for both norms. The second has its own, p.gamma_2.", norm_2="y = norm(x, p.gamma_1)"),
    change("the first y again", "The feed-forward layer reads what attention has read. It reads the stream after the first half, normalized with p.gamma_2.", norm_2=""),
    change("post-norm, second half", "In the second half you norm the sum. The norm stands before the part: x + f(norm(x)).", norm_2="y = x", second="return norm(x + feed_forward(y, p.W_gate, p.W_up, p.W_down), p.gamma_2)"),
    change("γ exchanged", "The two γ have changed places: p.gamma_1 belongs to attention, p.gamma_2 to feed-forward.", norm_1="y = norm(x, p.gamma_2)", norm_2="y = norm(x, p.gamma_1)"),
    change("the normed stream", "You add to the normalized x. Then the stream itself is normalized; add to x: x + f(norm(x)).", first="x = y + attention.merge_heads(heads) @ p.W_O"),
    change("the normed stream, second half", "In the second half you add to the normalized stream. Add to the stream as it is: x + f(norm(x)).", second="return y + feed_forward(y, p.W_gate, p.W_up, p.W_down)"),
    change("no residual", "What attention gives replaces x. It is added to x.", first="x = attention.merge_heads(heads) @ p.W_O"),
    change("no residual, second half", "What the feed-forward layer gives replaces the stream. It is added to it.", second="return feed_forward(y, p.W_gate, p.W_up, p.W_down)"),
    change("side by side", "Both parts read the block's input. The feed-forward layer reads the sum that attention leaves.", norm_2="y = norm(x - attention.merge_heads(heads) @ p.W_O, p.gamma_2)"),
    change("first half only", "The feed-forward half is missing.", second="return x"),
    change("second half only", "The attention half is missing, or its result is lost.", first=""),
    change("nothing turned", "Nothing is turned by its position. Turn queries and keys before they meet.", turn=""),
    change("keys not turned", "You turn the queries only. A score depends on the distance only if queries and keys are both turned.", turn="Q = turn(Q)"),
    change("queries not turned", "You turn the keys only. A score depends on the distance only if queries and keys are both turned.", turn="K = turn(K)"),
    change("values turned", "You turn the values, too. Only queries and keys are turned: values carry what is handed over.", turn="Q, K, V = turn(Q), turn(K), turn(V)"),
    change("turned before the matrices", "You turn the stream before the matrices. Positions come in after W_Q and W_K, head by head.", norm_1="y = turn(norm(x, p.gamma_1))", turn=""),
    change("turned before the split", "You turn queries and keys before they are split into heads. Each head has hands of its own: split first, then turn.", queries="Q = attention.split_heads(turn(y @ p.W_Q), p.h)", keys="K = attention.split_heads(turn(y @ p.W_K), p.h_kv)", turn=""),
    change("as many heads for keys", "You split keys and values into p.h heads. They have fewer: p.h_kv.", keys="K = attention.split_heads(y @ p.W_K, p.h)", values="V = attention.split_heads(y @ p.W_V, p.h)"),
    change("turned twice", "You turn queries and keys twice. Once is enough: the angle is the position times the rate.", turn="Q, K = turn(turn(Q)), turn(turn(K))"),
    change("keys and values exchanged", "Keys and values have changed places in attend: its order is Q, K, V.", attend="heads = attend(Q, V, K)"),
    change("values by W_K", "Your values are made with W_K. They have a matrix of their own, W_V.", values="V = attention.split_heads(y @ p.W_K, p.h_kv)"),
    change("keys by W_V", "Your keys are made with W_V. They have a matrix of their own, W_K.", keys="K = attention.split_heads(y @ p.W_V, p.h_kv)"),
    change("W_O left out", "W_O is left out. It mixes what the heads bring, before the sum.", first="x = x + attention.merge_heads(heads)"),
    change("merged by reshape", "You merge the heads by reshape alone, which mixes positions and heads. Swap their axes first, as `attention.merge_heads` does.", first="x = x + heads.reshape(len(x), -1) @ p.W_O"),
    change("split by reshape", "You split by reshape alone, which mixes positions and heads. Swap the axes, as `attention.split_heads` does.", queries="Q = (y @ p.W_Q).reshape(p.h, len(x), -1)", keys="K = (y @ p.W_K).reshape(p.h_kv, len(x), -1)", values="V = (y @ p.W_V).reshape(p.h_kv, len(x), -1)"),
    change("gate and up exchanged", "W_gate and W_up have changed places: feed_forward takes y, W_gate, W_up, W_down.", second="return x + feed_forward(y, p.W_up, p.W_gate, p.W_down)"),
    change("subtracted", "A part is subtracted. Both parts are added to the stream.", first="x = x - attention.merge_heads(heads) @ p.W_O"),
    change("normed twice", "You norm once more what attention gives. The norm stands before the part only.", first="x = x + norm(attention.merge_heads(heads) @ p.W_O, p.gamma_1)"),
    change("normed at the end, too", "You norm what the block returns. The stream leaves the block as it is; the next block has a norm of its own.", second="return norm(x + feed_forward(y, p.W_gate, p.W_up, p.W_down), p.gamma_2)"),
    change("keys and values not normed", "Your queries are made from norm(x, p.gamma_1), your keys or values from x. All three are made from the norm.", keys="K = attention.split_heads(x @ p.W_K, p.h_kv)", values=("V = attention.split_heads(x @ p.W_V, p.h_kv)", "V = attention.split_heads(y @ p.W_V, p.h_kv)")),
    change("queries not normed", "Your keys are made from norm(x, p.gamma_1), your queries from x. Queries, keys and values are all made from the norm.", queries="Q = attention.split_heads(x @ p.W_Q, p.h)"),
    change("feed-forward first", "Your feed-forward half comes first. Attention is first.", "x = x + feed_forward(norm(x, p.gamma_2), p.W_gate, p.W_up, p.W_down)\ny = norm(x, p.gamma_1)\nQ, K = attention.split_heads(y @ p.W_Q, p.h), attention.split_heads(y @ p.W_K, p.h_kv)\nV = attention.split_heads(y @ p.W_V, p.h_kv)\nreturn x + attention.merge_heads(attend(turn(Q), turn(K), V)) @ p.W_O"),
    change("norm of one's own", "You write a norm out, or call one of the notebook's. Use `norm`, which comes as an argument, so that it can be exchanged.", norm_1="y = p.gamma_1 * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)", norm_2="y = p.gamma_2 * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)"),
    change("feed-forward of one's own", "You write the feed-forward layer out, or call one of the notebook's. Use `feed_forward`, which comes as an argument, so that it can be exchanged.", second="gate = y @ p.W_gate\nreturn x + (gate * ops.sigmoid(gate) * (y @ p.W_up)) @ p.W_down"),
    change("attention of one's own", "You attend without `attend`, which here hides later tokens. Use the function that comes as an argument, so that it can be exchanged.", attend="keys, values = attention.repeat_heads(K, p.h), attention.repeat_heads(V, p.h)\nheads = attention.scaled_dot_product_attention(Q, keys, values)[0]"),
)

# fmt: on

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

# --- SwiGLU -----------------------------------------------------------------------------------------------------------


def _swiglu_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, d_ff: int, dtype: Any = float, size: float = 1) -> Case:
        d = shape[-1]
        arrays = [rng.normal(size=s) for s in (shape, (d, d_ff), (d, d_ff), (d_ff, d))]
        arrays[0] *= size
        return Case(label, tuple(array.astype(dtype) for array in arrays))

    return [
        case("4 tokens, d_model = 3, d_ff = 7", 4, 3, d_ff=7),
        case("a batch of shape (2, 5, 4), d_ff = 6", 2, 5, 4, d_ff=6),
        case("one token, shape (5,), d_ff = 8", 5, d_ff=8),
        case("large gates, some below −100", 3, 6, d_ff=9, size=60),
        case("d_ff as large as d_model, as many tokens", 4, 4, d_ff=4),
        case("float32 input", 3, 5, d_ff=9, dtype=np.float32),
        case("d_model and d_ff of 1", 2, 1, d_ff=1),
    ]


_SWIGLU = Exercise(
    name="swiglu",
    called="my_swiglu",
    takes="x, W_gate, W_up, W_down",
    task="""The feed-forward layer of today: one wide vector is the gate of another.

x: (..., d_model). W_gate, W_up: (d_model, d_ff). W_down: (d_ff, d_model). All have
one dtype. The gate g = x W_gate goes through g · σ(g), and multiplies x W_up entry
by entry; W_down narrows the product. Returns (..., d_model), in that dtype. NumPy
and `ops`, which has `ops.sigmoid`. The arguments stay as they were.""",
    steps={
        "gate": "gate = x @ W_gate  # (..., d_ff)",
        "silu": "gate = gate * ops.sigmoid(gate)",
        "up": "up = x @ W_up  # (..., d_ff)",
        "down": "return (gate * up) @ W_down  # (..., d_model)",
    },
    cases=_swiglu_cases,
    returns=("y",),
    hints=(
        "Two wide vectors, both made from x. One of them is bent, and says how much of each entry of the other gets through.",
        "The bend is g · σ(g): `gate * ops.sigmoid(gate)`, entry by entry.",
        "Then `(gate * up) @ W_down`: the product has d_ff entries, and W_down brings it back to d_model.",
    ),
    mistakes=SWIGLU,
    praise="Seven cases. Three matrices and no biases: Llama, Mistral and Qwen think with these lines.",
    dtype="kept",
    in_pytorch="""# F.silu is g · σ(g). F.glu is another thing: it splits one array in two halves, and its gate is σ alone.
y = (F.silu(x @ W_gate) * (x @ W_up)) @ W_down""",
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
    in_pytorch="""# The way of transformers, without a permutation. torch.polar with view_as_complex would turn neighbours instead.
angles = at[:, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
a, b = x.chunk(2, dim=-1)
turned = torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)""",
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


_GROUPED = Exercise(
    name="grouped_attention",
    called="my_grouped_attention",
    takes="Q, K, V",
    task="""Attention of h query heads on h_kv key–value heads; h / h_kv neighbours share one.

Q: (h, T_q, d_k). K: (h_kv, T_k, d_k). V: (h_kv, T_k, d_v). h is a multiple of
h_kv. Returns the output, (h, T_q, d_v). NumPy, `math` and `ops.softmax`.
The arguments stay as they were.""",
    reference=own_keys,
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

# --- A whole block ----------------------------------------------------------------------------------------------------


def _turn(x: Array) -> Array:
    return library.rotary(x, np.arange(3, 3 + x.shape[-2]), base=50.0)


def _attend(Q: Array, K: Array, V: Array) -> Array:
    K, V = attention.repeat_heads(K, len(Q)), attention.repeat_heads(V, len(Q))
    mask = attention.causal_mask(Q.shape[-2], K.shape[-2])
    return attention.scaled_dot_product_attention(Q, K, V, mask)[0]


def _norm(x: Array, gamma: Array) -> Array:
    return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1)  # no usual ε: the block's own norm shows


def _feed_forward(x: Array, W_gate: Array, W_up: Array, W_down: Array) -> Array:
    return (ops.relu(x @ W_gate) * (x @ W_up)) @ W_down  # no SiLU, for the same reason


def _block_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, h: int, h_kv: int, d_k: int, d_ff: int) -> Case:
        d, d_kv = h * d_k, h_kv * d_k
        shapes = ((d, d), (d, d_kv), (d, d_kv), (d, d), (d, d_ff), (d, d_ff), (d_ff, d))
        W = [rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes]
        gammas = 1 + 0.4 * rng.normal(size=(2, d))
        p = Block._make([gammas[0], *W[:4], gammas[1], *W[4:], h, h_kv])
        return Case(label, (2 * rng.normal(size=(T, d)), p, _norm, _turn, _attend, _feed_forward))

    return [
        case("5 tokens, 6 query heads on 2", 5, 6, 2, 4, 11),
        case("4 tokens, 4 heads on 1", 4, 4, 1, 2, 7),
        case("as many tokens as heads, no sharing", 3, 3, 3, 2, 6),
        case("a single token, 9 heads on 3", 1, 9, 3, 2, 8),
    ]


_BLOCK = Exercise(
    name="llama_block",
    called="my_llama_block",
    takes="x, p, norm, turn, attend, feed_forward",
    task="""One block of a Llama: attention, then feed-forward, each behind a norm, each added.

x: (T, d_model). p: the block's parameters, p.gamma_1, p.W_Q, p.W_K, p.W_V, p.W_O for
attention, p.gamma_2, p.W_gate, p.W_up, p.W_down for feed-forward, and two numbers:
p.h query heads, p.h_kv key–value heads. Four functions: norm(x, gamma); turn(Q) or
turn(K), which turns heads by their positions; attend(Q, K, V), from (h, T, d_k) and
twice (h_kv, T, d_k) to (h, T, d_k); feed_forward(y, W_gate, W_up, W_down). Also
`attention.split_heads(x, h)` and `attention.merge_heads(heads)`, as in notebook 03.
Returns x after the block, (T, d_model). The arguments stay as they were.""",
    steps={
        "norm_1": "y = norm(x, p.gamma_1)",
        "queries": "Q = attention.split_heads(y @ p.W_Q, p.h)  # (h, T, d_k)",
        "keys": "K = attention.split_heads(y @ p.W_K, p.h_kv)  # (h_kv, T, d_k)",
        "values": "V = attention.split_heads(y @ p.W_V, p.h_kv)",
        "turn": "Q, K = turn(Q), turn(K)",
        "attend": "heads = attend(Q, K, V)  # (h, T, d_k)",
        "first": "x = x + attention.merge_heads(heads) @ p.W_O",
        "norm_2": "y = norm(x, p.gamma_2)",
        "second": "return x + feed_forward(y, p.W_gate, p.W_up, p.W_down)",
    },
    cases=_block_cases,
    returns=("y",),
    hints=(
        "The plan is that of notebook 05: x + attention(norm(x)), then the same with feed-forward. New are the turn, and that "
        "keys and values have fewer heads than queries.",
        "First half: `y = norm(x, p.gamma_1)`, then Q, K and V from y, split into p.h, p.h_kv and p.h_kv heads. Turn Q and K, "
        "not V.",
        "`x = x + attention.merge_heads(attend(Q, K, V)) @ p.W_O`. Second half: y = `norm(x, p.gamma_2)` of this new x, and "
        "`x + feed_forward(y, p.W_gate, p.W_up, p.W_down)`.",
    ),
    mistakes=BLOCK,
    praise="Four blocks, with shared heads and without. Below, your block takes the weights of a trained model.",
    in_pytorch="""# transformers' LlamaDecoderLayer is this, with pairs in halves: a block whose `turn` takes neighbours needs W_Q and W_K
# with their rows in another order, and says nothing if you forget it.
Q, K, V = ((norm(x, p.gamma_1) @ W).unflatten(-1, (n, -1)).transpose(-3, -2)
           for W, n in ((p.W_Q, p.h), (p.W_K, p.h_kv), (p.W_V, p.h_kv)))
x = x + attend(turn(Q), turn(K), V).transpose(-3, -2).flatten(-2) @ p.W_O
y = x + feed_forward(norm(x, p.gamma_2), p.W_gate, p.W_up, p.W_down)""",
)

EXERCISES = (_NORM, _SWIGLU, _HALVES, _GROUPED, _BLOCK)
