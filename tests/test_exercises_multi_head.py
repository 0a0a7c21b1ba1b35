"""What learners write in the exercises of notebook 03: what is right passes, each mistake gets its name."""

import pytest
from learners import EXERCISES, assert_named, checked

# A right attention, line by line; each wrong one changes a line or two.
LINES = {
    "project": "Q, K, V = x @ W_Q, x @ W_K, x @ W_V",
    "split": "Q, K, V = (attention.split_heads(y, num_heads) for y in (Q, K, V))",
    "attend": "heads, weights = attention.scaled_dot_product_attention(Q, K, V)",
    "merge": "joined = attention.merge_heads(heads)",
    "answer": "return joined @ W_O, weights",
}


def lines(**changed):
    return "\n".join((LINES | changed).values())


def cut(expression):
    """A learner's own split, for all three."""
    return f"split = lambda y: {expression}\nQ, K, V = split(Q), split(K), split(V)"


LOOP = """
outputs, weights = [], []
for i in range(num_heads):
    d_k, d_v = W_Q.shape[1] // num_heads, W_V.shape[1] // num_heads
    Q = x @ W_Q[:, COLUMNS_K]
    K = x @ W_K[:, COLUMNS_K]
    V = x @ W_V[:, COLUMNS_V]
    output, A = attention.scaled_dot_product_attention(Q, K, V)
    outputs.append(output)
    weights.append(A)
return np.concatenate(outputs, axis=-1) @ W_O, np.stack(weights, axis=STACKED)
"""


def loop(k="i * d_k : (i + 1) * d_k", v="i * d_v : (i + 1) * d_v", stacked="-3"):
    return LOOP.replace("COLUMNS_K", k).replace("COLUMNS_V", v).replace("STACKED", stacked)


RIGHT = {
    "split_heads": [
        "x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-2, -3)",
        "x.reshape(x.shape[:-1] + (num_heads, x.shape[-1] // num_heads)).swapaxes(-3, -2)",
        "np.moveaxis(x.reshape(*x.shape[:-1], num_heads, -1), -2, -3)",
        "np.stack(np.split(x, num_heads, axis=-1), axis=-3)",
        "np.stack([x[..., i * (d := x.shape[-1] // num_heads):(i + 1) * d] for i in range(num_heads)], -3)",
        "np.einsum('...thd->...htd', x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads))",
        """
        *leading, T, d_model = x.shape
        d_k = d_model // num_heads
        heads = np.zeros((*leading, num_heads, T, d_k), dtype=x.dtype)
        for i in range(num_heads):
            heads[..., i, :, :] = x[..., i * d_k:(i + 1) * d_k]
        return heads
        """,
    ],
    "merge_heads": [
        "x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], -1)",
        "np.concatenate(np.moveaxis(x, -3, 0), axis=-1)",
        "np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-1)",
        "np.einsum('...htd->...thd', x).reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])",
        """
        *leading, h, T, d_k = x.shape
        merged = np.empty((*leading, T, h * d_k), x.dtype)
        for i in range(h):
            merged[..., i * d_k:(i + 1) * d_k] = x[..., i, :, :]
        return merged
        """,
    ],
    "multi_head_attention": [
        lines(),
        loop(),
        lines(split=cut("y.reshape(*y.shape[:-1], num_heads, -1).swapaxes(-2, -3)")),
        lines(
            attend="""
A = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
weights = ops.softmax(A)
heads = weights @ V"""
        ),
        """
        parts = [np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V)]
        results = [attention.scaled_dot_product_attention(x @ Q, x @ K, x @ V) for Q, K, V in zip(*parts)]
        output = sum(head @ W for (head, A), W in zip(results, np.split(W_O, num_heads)))
        return output, np.stack([A for head, A in results], axis=-3)
        """,
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in RIGHT for body in RIGHT[e]])
def test_what_is_right_passes_in_any_style(exercise, body):
    result = checked(exercise, body)
    assert result.passed is True, result.message


# What learners write → the name of the mistake.
WRONG = {
    "split_heads": [
        ("x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)", "reshaped without a swap"),
        ("x.reshape(*x.shape[:-1], num_heads, -1)", "not swapped"),
        ("x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)", "not swapped"),
        ("np.stack([x[..., i::num_heads] for i in range(num_heads)], axis=-3)", "every h-th column"),
        ("x.reshape(*x.shape[:-1], -1, num_heads).swapaxes(-2, -3)", "heads and width mixed up"),
        ("x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-1, -2)", "width and heads swapped"),
        ("x.reshape(*x.shape[:-1], num_heads, -1).T", "all axes turned around"),
        ("x.reshape(*x.shape[:-1], num_heads, -1).transpose()", "all axes turned around"),
        (
            "T, d_model = x.shape; d_k = d_model // num_heads; return x.reshape(T, num_heads, d_k).transpose(1, 0, 2)",
            "two axes taken for granted",
        ),
        ("x.reshape(x.shape[0], num_heads, x.shape[1] // num_heads).swapaxes(0, 1)", "two axes taken for granted"),
        ("x.reshape(len(x), num_heads, -1).swapaxes(0, 1)", "two axes taken for granted"),
        (
            "B, T, d = x.shape; return x.reshape(B, T, num_heads, d // num_heads).transpose(0, 2, 1, 3)",
            "three axes taken for granted",
        ),
        (
            "x.reshape(x.shape[0], x.shape[1], num_heads, x.shape[2] // num_heads).transpose(0, 2, 1, 3)",
            "three axes taken for granted",
        ),
        ("x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(0, 1)", "axes counted from the front"),
        ("x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(1, 2)", "axes counted from the front"),
        ("np.stack(np.split(x, num_heads, axis=-1))", "heads before everything"),
        ("np.array(np.split(x, num_heads, axis=-1))", "heads before everything"),
        ("np.split(x, num_heads, axis=-1)", "a list of heads"),
        ("[x[..., i::num_heads] for i in range(num_heads)]", None),
        ("np.stack(np.split(x, num_heads, axis=-2), axis=-3)", "tokens split"),
        (
            "*l, T, d = x.shape; d_k = d / num_heads; return x.reshape(*l, T, num_heads, d_k).swapaxes(-2, -3)",
            "a float for a size",
        ),
        ("attention.split_heads(x, num_heads)", "the library's own"),
    ],
    "merge_heads": [
        ("x.reshape(*x.shape[:-3], x.shape[-2], -1)", "reshaped without a swap"),
        ("x.swapaxes(-2, -3)", "not joined"),
        ("np.moveaxis(x, -3, -1).reshape(*x.shape[:-3], x.shape[-2], -1)", "columns of the heads alternate"),
        ("x.swapaxes(-1, -2)", "wrong axes swapped"),
        ("x.swapaxes(-1, -2).reshape(*x.shape[:-3], x.shape[-2], -1)", "wrong axes swapped"),
        ("np.concatenate(x, axis=0)", "heads below each other"),
        ("x.sum(axis=-3)", "heads added"),
        ("x.mean(axis=-3)", "heads added"),
        ("sum(x)", "heads added"),
        ("h, T, d_k = x.shape; return x.transpose(1, 0, 2).reshape(T, h * d_k)", "three axes taken for granted"),
        ("np.concatenate(x, axis=-1)", "three axes taken for granted"),
        ("np.hstack(x)", "three axes taken for granted"),
        (
            "B, h, T, d_k = x.shape; return x.transpose(0, 2, 1, 3).reshape(B, T, h * d_k)",
            "four axes taken for granted",
        ),
        ("x.swapaxes(0, 1).reshape(*x.shape[:-3], x.shape[-2], -1)", "axes counted from the front"),
        ("x[..., 0, :, :]", "one head only"),
        ("attention.merge_heads(x)", "the library's own"),
    ],
    "multi_head_attention": [
        (
            "joined, weights = attention.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)\n"
            "return joined @ W_O, weights",
            "one big head",
        ),
        (lines(answer="return joined, weights"), "W_O left out"),
        (lines(split=cut("y.reshape(*y.shape[:-2], num_heads, y.shape[-2], -1)")), "heads scrambled"),
        (
            lines(
                split=cut("y.reshape(*y.shape[:-2], num_heads, y.shape[-2], -1)"),
                merge="joined = heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)",
            ),
            "heads scrambled",
        ),
        (lines(merge="joined = heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)"), "merged without a swap"),
        (
            lines(
                split=cut("y.reshape(*y.shape[:-1], num_heads, -1)"),
                merge="joined = heads.reshape(*heads.shape[:-2], -1)",
            ),
            "not swapped after the cut",
        ),
        (loop("i::num_heads", "i::num_heads"), "every h-th column"),
        (loop(":d_k", ":d_v"), "one piece, many times"),
        (lines(merge="joined = heads.sum(axis=-3)"), "heads not side by side"),
        (lines(merge="joined = heads[..., 0, :, :]"), "heads not side by side"),
        (lines(project="Q, K, V = x @ W_Q, x @ W_K, x"), "values not projected"),
        (lines(project="Q, K, V = x @ W_Q, x @ W_K, x @ W_K"), "values not projected"),
        (lines(project="Q, K, V = x, x, x"), "nothing projected"),
        (lines(project="Q, K, V = x @ W_Q, x @ W_Q, x @ W_V"), "keys are queries"),
        (lines(project="Q, K, V = x @ W_K, x @ W_Q, x @ W_V"), "queries and keys swapped"),
        (lines(project="Q, K, V = x @ W_Q.T, x @ W_K.T, x @ W_V.T"), "matrices transposed"),
        (lines(answer="return joined @ W_O.T, weights"), "W_O transposed"),
        (
            lines(
                attend="weights = ops.softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(W_Q.shape[1]))\nheads = weights @ V"
            ),
            "scaled by the whole width",
        ),
        (lines(attend="weights = ops.softmax(Q @ K.swapaxes(-1, -2))\nheads = weights @ V"), "not scaled"),
        (
            lines(
                attend="weights = ops.softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1]), axis=-2)\n"
                "heads = weights @ V"
            ),
            "softmax over another axis",
        ),
        (lines(answer="return joined @ W_O, weights.mean(axis=-3)"), "weights averaged over the heads"),
        (loop().replace("np.stack(weights, axis=-3)", "A"), "one head's weights"),
        (loop(stacked="0"), "weights with the heads in front"),
        (lines(answer="return joined @ W_O"), "only the output"),
        (lines(answer="return weights, joined @ W_O"), "results swapped"),
        ("attention.multi_head_attention(x, x, W_Q, W_K, W_V, W_O, num_heads)", "the library's own"),
    ],
}


@pytest.mark.parametrize(("exercise", "body", "name"), [(e, *row) for e in WRONG for row in WRONG[e]])
def test_what_learners_write_is_named(exercise, body, name):
    assert_named(exercise, body, name)


def test_every_mistake_is_written_by_some_learner():
    for exercise, rows in WRONG.items():
        known = {mistake.name for mistake in EXERCISES[exercise].misconceptions}
        assert known <= {name for _, name in rows}
