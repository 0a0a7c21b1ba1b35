"""The exercises of notebook 01: other right answers pass, and what learners write is named."""

import pytest
from learners import EXERCISES, assert_named, checked

GRU = {
    "x": "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)",
    "h": "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)",
    "r": "r = ops.sigmoid(x_r + h_r)",
    "z": "z = ops.sigmoid(x_z + h_z)",
    "n": "n = np.tanh(x_n + r * (h_n + b_h))",
    "new": "return (1 - z) * n + z * h",
}


def gru(**changed):
    return "\n".join((GRU | changed).values())


ADDITIVE = {
    "q": "q = (query @ W_q)[:, None]",
    "k": "k = keys @ W_k",
    "hidden": "hidden = np.tanh(q + k)",
    "scores": "return hidden @ v",
}


def additive(**changed):
    return "\n".join((ADDITIVE | changed).values())


CONTEXT = {
    "hide": "scores = np.where(mask, scores, -np.inf)",
    "weights": "weights = ops.softmax(scores)",
    "after": "",
    "context": "context = (weights[..., None] * keys).sum(axis=1)",
    "answer": "return context, weights",
}


def context(**changed):
    return "\n".join((CONTEXT | changed).values())


BY_HAND = "e = np.exp(scores - scores.max(axis=1, keepdims=True)); weights = e / e.sum(axis=1, keepdims=True)"

RIGHT = {
    "gru_step": [
        gru(),
        gru(r="r = 1 / (1 + np.exp(-(x_r + h_r)))", z="z = 1 / (1 + np.exp(-x_z - h_z))"),
        gru(new="return n + z * (h - n)"),
        gru(x="x_r, x_z, x_n = np.hsplit(x @ W_x + b, 3)", h="h_r, h_z, h_n = np.hsplit(h @ W_h, 3)"),
        """
        d = h.shape[1]
        a, u = x @ W_x + b, h @ W_h
        r = ops.sigmoid(a[:, :d] + u[:, :d])
        z = ops.sigmoid(a[:, d:2 * d] + u[:, d:2 * d])
        n = np.tanh(a[:, 2 * d:] + r * (u[:, 2 * d:] + b_h))
        return (1 - z) * n + z * h
        """,
        """
        new = np.empty_like(h)
        W, U, c = (np.split(p, 3, axis=-1) for p in (W_x, W_h, b))
        for i in range(len(h)):
            r, z = (1 / (1 + np.exp(-(x[i] @ W[k] + c[k] + h[i] @ U[k]))) for k in (0, 1))
            new[i] = z * h[i] + (1 - z) * np.tanh(x[i] @ W[2] + c[2] + r * (h[i] @ U[2] + b_h))
        return new
        """,
    ],
    "additive_score": [
        additive(),
        "np.tanh((query @ W_q)[:, None, :] + keys @ W_k) @ v",
        "np.tanh(np.expand_dims(query @ W_q, 1) + np.einsum('bsk,ka->bsa', keys, W_k)).dot(v)",
        "np.tanh((query[:, None] @ W_q) + keys @ W_k) @ v",
        "(np.tanh((query @ W_q)[:, None] + keys @ W_k) * v).sum(axis=-1)",
        "np.stack([np.tanh(q @ W_q + k @ W_k) @ v for q, k in zip(query, keys)])",
        "return (np.tanh((query @ W_q)[:, None] + keys @ W_k) @ v[:, None])[..., 0]",
        """
        B, S, _ = keys.shape
        scores = np.empty((B, S), query.dtype)
        for i in range(B):
            for j in range(S):
                scores[i, j] = v @ np.tanh(query[i] @ W_q + keys[i, j] @ W_k)
        return scores
        """,
    ],
    "context_vector": [
        context(),
        context(context="context = np.einsum('bs,bsd->bd', weights, keys)"),
        context(context="context = (weights[:, None] @ keys)[:, 0]"),
        context(context="context = np.squeeze(weights[:, None, :] @ keys, axis=1)"),
        context(context="context = np.stack([w @ k for w, k in zip(weights, keys)])"),
        context(context="context = (keys.swapaxes(1, 2) @ weights[..., None])[..., 0]"),
        context(weights=BY_HAND),
        context(hide="scores = scores.copy(); scores[~mask] = -np.inf"),
        context(hide="scores = np.where(mask, scores, -1e9)"),
        context(hide="scores = np.where(mask, scores, np.finfo(scores.dtype).min)"),
        context(hide="scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)"),
        context(after="weights = weights / weights.sum(axis=1, keepdims=True)"),
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in RIGHT for body in RIGHT[e]])
def test_what_is_right_passes_in_any_style(exercise, body):
    result = checked(exercise, body)
    assert result.passed is True, result.message


WRONG = {
    "gru_step": [
        (gru(new="return z * n + (1 - z) * h"), "1 − z on the wrong side"),
        (gru(new="return h + z * (n - h)"), "1 − z on the wrong side"),
        (gru(r="z = ops.sigmoid(x_r + h_r)", z="r = ops.sigmoid(x_z + h_z)"), "gates swapped"),
        (gru(n="n = np.tanh(x_n + (r * h) @ np.split(W_h, 3, axis=-1)[2] + b_h)"), "reset before the product"),
        (gru(n="n = np.tanh(x_n + (r * h) @ W_h[:, -h.shape[1]:])"), "reset before the product"),
        (gru(n="n = np.tanh(r * (x_n + h_n + b_h))"), "reset on the input too"),
        (gru(n="n = np.tanh(x_n + h_n + b_h)"), "no reset"),
        (gru(n="n = np.tanh(x_n + r * h_n + b_h)"), "b_h outside the reset"),
        (gru(n="n = np.tanh(x_n + r * h_n)"), "b_h forgotten"),
        (gru(x="x_r, x_z, x_n = np.split(x @ W_x, 3, axis=-1)"), "b forgotten"),
        (gru(h="h_r, h_z, h_n = np.split(h @ W_h + b, 3, axis=-1)"), "b added twice"),
        (gru(n="n = x_n + r * (h_n + b_h)"), "candidate without tanh"),
        (gru(n="n = ops.sigmoid(x_n + r * (h_n + b_h))"), "candidate with the logistic function"),
        (gru(r="r = np.tanh(x_r + h_r)", z="z = np.tanh(x_z + h_z)"), "gates with tanh"),
        (gru(r="r = x_r + h_r", z="z = x_z + h_z"), "gates without the logistic function"),
        (gru(new="return n"), "candidate only"),
        (gru(new="return (1 - z) * n"), "old state left out"),
        (gru(new="return n + z * h"), "candidate unweighted"),
        (gru(new="return (1 - z) * n + h"), "new state unweighted"),
        (gru(x="x_r, x_z, x_n = np.split(x @ W_x + b, 3)",
             h="h_r, h_z, h_n = np.split(h @ W_h, 3)"), "cut along the batch"),
        (gru(x="x_r, x_z, x_n = (x @ W_x + b)[:, 0::3], (x @ W_x + b)[:, 1::3], (x @ W_x + b)[:, 2::3]",
             h="h_r, h_z, h_n = (h @ W_h)[:, 0::3], (h @ W_h)[:, 1::3], (h @ W_h)[:, 2::3]"), "every third column"),
        (gru(x="x_r, x_z, x_n = np.split(W_x @ x + b, 3, axis=-1)"), "product the wrong way round"),
        (gru(h="h_r, h_z, h_n = np.split(W_h @ h, 3, axis=-1)"), "product the wrong way round"),
        (gru(x="x_r, x_z, x_n = np.split(x * W_x + b, 3, axis=-1)"), "* in place of @"),
    ],
    "additive_score": [
        ("v @ np.tanh((query @ W_q)[:, None] + keys @ W_k)", "v in front"),
        ("np.dot(v, np.tanh((query @ W_q)[:, None, :] + keys @ W_k))", "v in front"),
        (additive(hidden="hidden = q + k"), "no tanh"),
        (additive(hidden="hidden = q + k", scores="return np.tanh(hidden @ v)"), "tanh after v"),
        (additive(hidden="hidden = np.tanh(q) + np.tanh(k)"), "tanh on each part"),
        (additive(q="q = query @ W_q"), "query not lined up"),
        (additive(q="q = query @ W_q", hidden="hidden = np.tanh(k + q)"), "query not lined up"),
        (additive(q="q = (query @ W_q)[None]"), "query not lined up"),
        (additive(q="q = (query @ W_q)[..., None]"), "axis in the wrong place"),
        (additive(q="q = (query @ W_q)[:, :, None]", hidden="hidden = np.tanh(k + q)"), "axis in the wrong place"),
        (additive(q="q = (query @ W_k)[:, None]", k="k = keys @ W_q"), "matrices swapped"),
        (additive(scores="return ops.softmax(hidden @ v)"), "weights returned"),
        (additive(hidden="hidden = np.tanh(q * k)"), "multiplied"),
        (additive(hidden="hidden = q * k", scores="return hidden.sum(axis=-1)"), "a dot product"),
        (additive(scores="return hidden.sum(axis=-1)"), "v forgotten"),
        (additive(scores="return hidden.mean(-1)"), "v forgotten"),
        (additive(scores="return hidden * v"), "not summed"),
        (additive(scores="return (hidden * v).sum(axis=1)"), "summed over the keys"),
        (additive(scores="return hidden @ v[:, None]"), "an axis too many"),
        (additive(scores="return hidden @ v / np.sqrt(len(v))"), "scaled"),
        (additive(hidden="hidden = ops.sigmoid(q + k)"), "logistic function for tanh"),
        (additive(hidden="hidden = np.maximum(q + k, 0)"), "ReLU for tanh"),
    ],
    "context_vector": [
        (context(hide=""), "mask ignored"),
        (context(hide="", weights=BY_HAND), "mask ignored"),
        (context(hide="scores = np.where(mask, -np.inf, scores)"), "mask inverted"),
        (context(hide="scores[mask] = -np.inf"), "mask inverted"),
        (context(hide="scores = np.where(mask, -1e9, scores)"), "mask inverted"),
        (context(hide="", after="weights = weights * mask"), "mask after softmax"),
        (context(hide="", after="weights = np.where(mask, weights, 0)"), "mask after softmax"),
        (context(hide="scores = scores * mask"), "padding scored 0"),
        (context(hide="scores = np.where(mask, scores, 0)"), "padding scored 0"),
        (context(hide="scores = scores + (1 - mask) * -np.inf"), "0 times infinity"),
        (context(hide="scores = scores + ~mask * -np.inf"), "0 times infinity"),
        (context(weights="weights = ops.softmax(scores, axis=0)"), "softmax over the batch"),
        (context(weights="e = np.exp(scores - scores.max()); weights = e / e.sum()"), "softmax over everything"),
        (context(hide="scores = np.where(mask, scores, 0)", weights="weights = scores"), "no softmax"),
        (context(hide="", weights="weights = scores"), "no softmax"),
        (context(context="context = keys.mean(axis=1)"), "plain mean"),
        (context(context="context = keys.sum(axis=1)"), "plain sum"),
        (context(context="context = weights @ keys"), "weights of all, keys of each"),
        (context(context="context = np.matmul(weights, keys)"), "weights of all, keys of each"),
        (context(context="context = np.dot(weights, keys)"), "np.dot"),
        (context(context="context = (weights * keys).sum(axis=1)"), "not lined up"),
        (context(context="context = (keys * weights).sum(axis=1)"), "not lined up"),
        (context(context="context = weights[..., None] * keys"), "not summed"),
        (context(context="context = (weights[..., None] * keys).sum(axis=-1)"), "summed over the width"),
        (context(context="context = (weights[..., None] * keys).sum(axis=2)"), "summed over the width"),
        (context(context="context = (weights[..., None] * keys).sum(axis=0)"), "summed over the batch"),
        (context(context="context = (weights[..., None] * keys).mean(axis=1)"), "divided by S"),
        (context(context="context = weights[:, None] @ keys"), "an axis too many"),
        (context(context="context = (weights[..., None] * keys).sum(axis=1, keepdims=True)"), "an axis too many"),
        (context(answer="return weights, context"), "results swapped"),
        (context(answer="return context"), "only the context"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("exercise", "body", "name"), [(e, *case) for e in WRONG for case in WRONG[e]])
def test_what_learners_write_is_named(exercise, body, name):
    assert_named(exercise, body, name)


STRANGE = {
    "gru_step": ["h", "x", "np.zeros_like(h)", gru(new="return (1 - z) * n + z * h + 1"), gru(n="n = undefined")],
    "additive_score": ["keys", "np.zeros(keys.shape[:2])", additive(scores="return hidden @ v + 1"), "0"],
    "context_vector": [
        "scores, keys",
        "keys[:, 0], scores",
        context(answer="return context + 1, weights"),
        "None, None",
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in STRANGE for body in STRANGE[e]])
def test_what_is_wrong_otherwise_gets_no_name(exercise, body):
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, None), result.message


@pytest.mark.parametrize(
    ("exercise", "body", "name"),
    [
        ("gru_step", "recurrent.gru_cell(x, h, W_x, W_h, b, b_h)", "recurrent.gru_cell"),
        (
            "additive_score",
            "attention.additive_score(query[:, None], keys, W_q, W_k, v)[:, 0]",
            "scores.additive_score",
        ),
        (
            "additive_score",
            "attention.score_forward('additive', query[:, None], keys, (W_q, W_k, v))[0][:, 0]",
            "scores.score_forward",
        ),
    ],
)
def test_the_librarys_own_function_is_no_solution(exercise, body, name):
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, "the library's own")
    assert f"`{name}` is the library's own" in result.message


def test_weights_that_sum_to_something_else_are_told():
    result = checked("context_vector", context(after="weights = 2 * weights"))
    assert "The weights of each string should sum to 1; yours sum to between 2 and 2." in result.message


def test_every_mistake_with_equal_sizes_is_an_error_or_a_wrong_number_somewhere():
    """Equal sizes let a missing axis pass without an error: the cases have both kinds."""
    for name, sizes in (("additive_score", 1), ("context_vector", 0)):
        cases = EXERCISES[name].draw_cases()
        shapes = [case.arguments[sizes].shape for case in cases]
        assert any(shape[0] == shape[1] for shape in shapes)
        assert any(shape[0] != shape[1] for shape in shapes)
