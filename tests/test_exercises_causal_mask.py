"""What learners write into the exercises of notebook 06: right in any style, or named."""

import pytest
from learners import EXERCISES, assert_named, checked

OWN = "e = np.exp(s - s.max(-1, keepdims=True)); w = e / e.sum(-1, keepdims=True)"
APPEND = "K = np.concatenate([K, x @ W_K]); V = np.concatenate([V, x @ W_V])"
ATTEND = "w = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1]))"
ANSWER = "return w @ V, K, V"
HIDDEN = "np.where(mask, scores, -np.inf)"
LIMIT = "np.sort(logits)[-top_k]"

RIGHT = {
    "causal_mask": [
        "np.tri(T_q, T_k, k=T_k - T_q, dtype=bool)",
        "np.tril(np.ones((T_q, T_k), dtype=bool), k=T_k - T_q)",
        "~np.triu(np.ones((T_q, T_k), dtype=bool), k=T_k - T_q + 1)",
        "np.tri(T_k, dtype=bool)[-T_q:]",
        "np.tril(np.ones((T_k, T_k)))[T_k - T_q:] > 0",
        "np.arange(T_k)[None, :] <= np.arange(T_k - T_q, T_k)[:, None]",
        "np.array([[j <= i + T_k - T_q for j in range(T_k)] for i in range(T_q)])",
        "[[j <= i + T_k - T_q for j in range(T_k)] for i in range(T_q)] and np.tri(T_q, T_k, T_k - T_q) > 0",
        "m = np.zeros((T_q, T_k), bool)\nfor i in range(T_q):\n    m[i, : i + 1 + T_k - T_q] = True\nreturn m",
    ],
    "masked_attention": [
        "w = ops.softmax(np.where(mask, scores, -np.inf)); return w @ V, w",
        "w = ops.softmax(np.where(mask, scores, -np.inf)); return np.einsum('...ij,...jd->...id', w, V), w",
        f"s = np.where(mask, scores, -np.inf); {OWN}; w = np.nan_to_num(w); return w @ V, w",
        f"s = np.where(mask, scores, -np.inf); {OWN}; w = np.where(np.isnan(w), 0, w); return w @ V, w",
        f"s = np.where(mask, scores, -1e9); {OWN}; w = w * mask; return w @ V, w",
        "w = ops.softmax(np.where(mask, scores, -1e9)) * mask.any(-1, keepdims=True); return w @ V, w",
        "e = np.exp(scores) * mask; t = e.sum(-1, keepdims=True); w = e / np.where(t == 0, 1, t); return w @ V, w",
        "e = np.exp(scores) * mask; w = e / np.maximum(e.sum(-1, keepdims=True), 1e-20); return w @ V, w",
        "s = scores.copy(); s[~np.broadcast_to(mask, s.shape)] = -np.inf; w = ops.softmax(s); return [w @ V, w]",
    ],
    "sampling_probabilities": [
        "ops.softmax(np.where(logits >= np.sort(logits)[-top_k], logits, -np.inf) / temperature)",
        "x = np.full(len(logits), -np.inf)\ni = np.argsort(logits)[-top_k:]\nx[i] = logits[i] / temperature\n"
        "return ops.softmax(x)",
        "p = ops.softmax(logits, temperature=temperature)\np[np.argsort(p)[:-top_k]] = 0\nreturn p / p.sum()",
        "p = ops.softmax(logits) ** (1 / temperature)\np = np.where(p >= np.sort(p)[-top_k], p, 0)\nreturn p / p.sum()",
        "i = np.argpartition(logits, -top_k)[-top_k:]\np = np.zeros(len(logits))\n"
        "p[i] = ops.softmax(logits[i] / temperature)\nreturn p",
    ],
    "decode_step": [
        f"{APPEND}; {ATTEND}; {ANSWER}",
        "K = np.vstack([K, x @ W_K]); V = np.vstack([V, x @ W_V])\n" + ATTEND + f"; {ANSWER}",
        "K = np.append(K, x @ W_K, axis=0); V = np.append(V, x @ W_V, 0)\n" + ATTEND + "; return [w @ V, K, V]",
        f"{APPEND}; s = np.einsum('qd,kd->qk', x @ W_Q, K) * K.shape[-1] ** -0.5; w = ops.softmax(s); {ANSWER}",
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in RIGHT for body in RIGHT[e]])
def test_what_is_right_passes_in_any_style(exercise, body):
    result = checked(exercise, body)
    assert result.passed is True, result.message


def masked(hide, weights="w = ops.softmax(s)", answer="return w @ V, w"):
    return f"s = {hide}\n{weights}\n{answer}"


def sampled(kept, by="/ temperature"):
    return f"s = np.sort(logits)\nreturn ops.softmax(np.where({kept}, logits, -np.inf) {by})"


WRONG = {
    "causal_mask": [
        ("np.triu(np.ones((T_q, T_k), bool), k=T_k - T_q + 1)", "inverted"),
        ("np.triu(np.ones((T_q, T_k), bool), k=1)", "inverted"),
        ("~np.tril(np.ones((T_q, T_k), bool))", "inverted"),
        ("np.tri(T_q, T_k, k=T_k - T_q - 1, dtype=bool)", "cannot see itself"),
        ("np.arange(T_k) < np.arange(T_q)[:, None] + T_k - T_q", "cannot see itself"),
        ("np.arange(T_k) < np.arange(T_q)[:, None]", "cannot see itself"),
        ("np.tri(T_q, T_k, k=T_k - T_q + 1, dtype=bool)", "one too far"),
        ("np.tril(np.ones((T_q, T_k), bool), k=1)", "one too far"),
        ("np.triu(np.ones((T_q, T_k), bool), k=T_k - T_q)", "transposed"),
        ("np.arange(T_k) >= np.arange(T_q)[:, None]", "transposed"),
        ("np.tril(np.ones((T_q, T_k), bool))", "queries counted from the start"),
        ("np.arange(T_k) <= np.arange(T_q)[:, None]", "queries counted from the start"),
        ("np.tri(T_q, T_k, k=T_q - T_k, dtype=bool)", "moved the wrong way"),
        ("np.arange(T_k)[:, None] <= np.arange(T_q)", "axes swapped"),
        ("np.tri(T_k, T_q, dtype=bool)", "axes swapped"),
        ("np.tri(T_k, dtype=bool)", "square"),
        ("np.tril(np.ones((T_q, T_q), bool))", "square"),
        ("np.where(np.tri(T_q, T_k, k=T_k - T_q) > 0, 0, -np.inf)", "numbers to add"),
        ("(1 - np.tri(T_q, T_k, k=T_k - T_q)) * -1e9", "numbers to add"),
    ],
    "masked_attention": [
        (masked(HIDDEN, OWN), "0/0"),
        ("e = np.exp(scores) * mask; w = e / e.sum(-1, keepdims=True); return w @ V, w", "0/0"),
        (
            masked(HIDDEN, OWN, "return np.nan_to_num(w @ V), w"),
            "output mended, weights not",
        ),
        (masked("np.where(mask, scores, -1e9)"), "a finite number in place of −∞"),
        (masked("np.where(mask, scores, -1e9)", OWN), "a finite number in place of −∞"),
        (masked("scores + (1 - mask) * -1e9"), "a finite number in place of −∞"),
        (masked("scores + (1 - mask.astype(scores.dtype)) * -1e9"), "a finite number in place of −∞"),
        (masked("np.where(mask, scores, np.finfo(scores.dtype).min)"), "a finite number in place of −∞"),
        (masked("np.where(mask, scores, -1e4)"), "a finite number in place of −∞"),
        (masked("scores"), "mask ignored"),
        (masked("np.where(mask, -np.inf, scores)"), "mask inverted"),
        (masked("np.where(mask, -np.inf, scores)", OWN), "mask inverted"),
        (masked("scores", "w = ops.softmax(s) * mask"), "mask after softmax"),
        (masked("scores", "w = np.where(mask, ops.softmax(s), 0)"), "mask after softmax"),
        (masked("scores * mask"), "masked with 0"),
        (masked("scores + ~mask * -np.inf", OWN), "0 times infinity"),
        ("s = scores.copy(); s[~mask] = -np.inf; w = ops.softmax(s); return w @ V, w", "mask as an index"),
        (masked(HIDDEN, "w = ops.softmax(s, axis=-2)"), "down the columns"),
        (masked(f"{HIDDEN} / math.sqrt(V.shape[-1])"), "scaled again"),
        (masked(HIDDEN, answer="return w, w @ V"), "results swapped"),
        (masked(HIDDEN, answer="return w @ V"), "only the output"),
    ],
    "sampling_probabilities": [
        (sampled("logits >= s[-top_k]", ""), "temperature ignored"),
        (sampled("logits >= s[-top_k]", "* temperature"), "multiplied by the temperature"),
        (
            "ops.softmax(np.where(logits >= np.sort(logits)[-top_k], logits, -np.inf)) / temperature",
            "temperature after softmax",
        ),
        ("ops.softmax(logits / temperature)", "top_k ignored"),
        ("p = ops.softmax(logits / temperature)\np[np.argsort(p)[:-top_k]] = 0\nreturn p", "cut without sharing out"),
        (sampled("logits > s[-top_k]"), "one too few"),
        (sampled("logits >= s[max(-top_k - 1, -len(s))]"), "one too many"),
        (sampled("logits >= s[top_k - 1]"), "counted from the wrong end"),
        (sampled("logits >= s[top_k]"), "counted from the wrong end"),
        (sampled("logits <= s[-top_k]"), "the largest cut"),
        (sampled("logits <= s[top_k - 1]"), "the unlikeliest"),
        (sampled("logits < s[-top_k]"), "the largest cut"),
        (sampled("np.arange(len(logits)) < top_k"), "the first of the vocabulary"),
        ("ops.softmax(np.where(logits >= np.sort(logits)[-top_k], logits, 0) / temperature)", "cut to 0"),
        ("ops.softmax(np.sort(logits)[-top_k:] / temperature)", "only the kept"),
        ("ops.softmax(np.sort(logits)[::-1][:top_k] / temperature)", "only the kept"),
        ("s = np.sort(logits)[::-1].copy(); s[top_k:] = -np.inf; return ops.softmax(s / temperature)", "sorted"),
        ("np.where(logits >= np.sort(logits)[-top_k], logits, -np.inf) / temperature", "logits returned"),
    ],
    "decode_step": [
        (f"{ATTEND}; o = w @ V; {APPEND}; return o, K, V", "does not see itself"),
        (f"{ATTEND}; {ANSWER}", "does not see itself"),
        (f"K = x @ W_K; V = x @ W_V; {ATTEND}; {ANSWER}", "sees only itself"),
        (f"old = K, V; {APPEND}; {ATTEND}; return w @ V, *old", "cache not grown"),
        (
            f"K = np.concatenate([x @ W_K, K]); V = np.concatenate([x @ W_V, V]); {ATTEND}; {ANSWER}",
            "put in front",
        ),
        (
            f"K = np.concatenate([K, x]); V = np.concatenate([V, x]); {ATTEND}; {ANSWER}",
            "the token itself cached",
        ),
        (f"{APPEND}; w = ops.softmax(x @ K.T / math.sqrt(K.shape[-1])); {ANSWER}", "query not projected"),
        (
            f"K = np.concatenate([K, x @ W_Q]); V = np.concatenate([V, x @ W_V]); {ATTEND}; {ANSWER}",
            "matrices swapped",
        ),
        (f"{APPEND}; w = ops.softmax(x @ W_Q @ K.T); {ANSWER}", "no scale"),
        (f"{APPEND}; w = ops.softmax(x @ W_Q @ K.T / K.shape[-1]); {ANSWER}", "another scale"),
        (f"{APPEND}; w = ops.softmax(x @ W_Q @ K.T / math.sqrt(len(K))); {ANSWER}", "another scale"),
        (f"{APPEND}; w = ops.softmax(x @ W_Q @ K.T / math.sqrt(x.shape[-1])); {ANSWER}", "another scale"),
        (f"{APPEND}; w = x @ W_Q @ K.T / math.sqrt(K.shape[-1]); {ANSWER}", "no softmax"),
        (
            f"{APPEND}; s = np.where(np.tri(1, len(K)) > 0, x @ W_Q @ K.T / math.sqrt(K.shape[-1]), -np.inf)\n"
            f"w = ops.softmax(s); {ANSWER}",
            "masked from the start",
        ),
        (
            f"{APPEND}; w = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1]), axis=0); {ANSWER}",
            "down the columns",
        ),
        (
            f"K = np.hstack([K, x @ W_K]); V = np.hstack([V, x @ W_V]); {ATTEND}; {ANSWER}",
            "joined side by side",
        ),
        (
            f"K = np.append(K, x @ W_K); V = np.append(V, x @ W_V); {ATTEND}; {ANSWER}",
            "np.append without axis",
        ),
        (f"{APPEND}; {ATTEND}; return w @ V", "only the output"),
        (f"{APPEND}; {ATTEND}; return K, V, w @ V", "caches first"),
    ],
}


@pytest.mark.parametrize(("exercise", "body", "name"), [(e, *case) for e in WRONG for case in WRONG[e]])
def test_what_learners_write_is_named(exercise, body, name):
    assert_named(exercise, body, name)


@pytest.mark.parametrize(("exercise", "names"), [(e, {n for _, n in WRONG[e]}) for e in WRONG])
def test_every_misconception_has_been_written_once(exercise, names):
    assert {m.name for m in EXERCISES[exercise].misconceptions} == names


def test_hiding_nothing_is_seen_though_some_rows_see_everything():
    """A mask of all True would let `mask ignored` pass."""
    masks = [case.arguments[2] for case in EXERCISES["masked_attention"].draw_cases()]
    assert not any(mask.all() for mask in masks)
    assert any((~mask.any(axis=-1)).any() for mask in masks)


@pytest.mark.parametrize("body", ["np.tri(T_q, T_k, T_k - T_q, int)", "np.tril(np.ones((T_q, T_k)), k=T_k - T_q)"])
def test_a_mask_of_numbers_has_one_thing_left(body):
    """The library would refuse it, and `~` would do something else."""
    result = checked("causal_mask", body)
    assert result.passed is False
    assert "masks in this course are boolean" in result.message
