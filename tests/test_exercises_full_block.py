"""What learners write into the exercises of notebook 05: right in any style, or named."""

import pytest
from learners import assert_named, checked

MEAN = "m = x.mean(axis=-1, keepdims=True)"
VARIANCE = "v = x.var(axis=-1, keepdims=True)"
ANSWER = "return gamma * (x - m) / np.sqrt(v + eps) + beta"
DIVIDED = "return gamma * (x - m) / (v + eps) + beta"


def norm(mean=MEAN, variance=VARIANCE, answer=ANSWER):
    return f"{mean}\n{variance}\n{answer}"


HIDDEN = "h = np.maximum(0, x @ W_1 + b_1)"


def feed(hidden=HIDDEN, answer="return h @ W_2 + b_2"):
    return f"{hidden}\n{answer}"


FIRST, SECOND = "x = x + attend(norm_1(x))", "return x + feed_forward(norm_2(x))"

RIGHT = {
    "layer_norm": [
        norm(),
        norm(variance="v = ((x - m) ** 2).mean(-1, keepdims=True)"),
        norm(variance="v = np.mean(x**2, -1, keepdims=True) - m**2"),
        norm(variance="v = x.std(-1, keepdims=True) ** 2"),
        norm(mean="m = np.mean(x, -1)[..., None]", variance="v = np.var(x, -1)[..., None]"),
        norm(answer="return np.multiply(gamma, (x - m) * (v + eps) ** -0.5) + beta"),
        f"{MEAN}\nc = x - m\nreturn c / np.sqrt((c * c).sum(-1, keepdims=True) / x.shape[-1] + eps) * gamma + beta",
    ],
    "feed_forward": [
        feed(),
        feed("h = (x @ W_1 + b_1).clip(min=0)"),
        feed("h = x @ W_1 + b_1\nh = h * (h > 0)"),
        feed("h = x @ W_1 + b_1\nh = np.where(h > 0, h, 0)"),
        feed("h = x @ W_1 + b_1\nh[h < 0] = 0"),
        feed("h = ops.relu(x @ W_1 + b_1)"),
        feed("h = np.maximum(np.dot(x, W_1) + b_1, 0)", "return np.dot(h, W_2) + b_2"),
        feed("h = x @ W_1 + b_1\nh = (h + abs(h)) / 2"),
        feed("h = np.maximum(0, np.einsum('...i,ij->...j', x, W_1) + b_1)"),
    ],
    "pre_norm_block": [
        f"{FIRST}\n{SECOND}",
        "y = attend(norm_1(x)) + x\nz = feed_forward(norm_2(y))\nreturn np.add(y, z)",
        "x = x + attend(norm_1(x)); x = x + feed_forward(norm_2(x)); return x",
        "a = attend(norm_1(x))\nreturn x + a + feed_forward(norm_2(x + a))",
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in RIGHT for body in RIGHT[e]])
def test_what_is_right_passes_in_any_style(exercise, body):
    result = checked(exercise, body)
    assert result.passed is True, result.message


WRONG = {
    "layer_norm": [
        (norm(answer="return gamma * (x - m) / np.maximum(np.sqrt(v), eps) + beta"), "ε as a floor"),
        (norm(variance="v = x.std(-1, keepdims=True)"), "σ under the root"),
        (norm(answer="return gamma * (x - m / np.sqrt(v + eps)) + beta"), "brackets"),
        (
            norm("m = x.min(-1, keepdims=True)", "v = x.max(-1, keepdims=True) - m", DIVIDED),
            "from lowest to highest",
        ),
        ("gamma * (x - x.mean()) / np.sqrt(x.var() + eps) + beta", "over everything"),
        ("gamma * (x - np.mean(x, axis=0)) / np.sqrt(np.var(x, axis=0) + eps) + beta", "over axis 0"),
        (norm("m = x.mean(0, keepdims=True)", "v = x.var(0, keepdims=True)"), "over axis 0"),
        (norm("m = x.mean(1, keepdims=True)", "v = x.var(1, keepdims=True)"), "over axis 1"),
        (norm("m = x.mean(-1)", "v = x.var(-1)"), "without keepdims"),
        (norm("m = np.mean(x, axis=-1)"), "without keepdims"),
        (norm(answer="return gamma * (x - m) / (np.sqrt(v) + eps) + beta"), "ε outside the root"),
        (f"{MEAN}\nreturn gamma * (x - m) / (x.std(-1, keepdims=True) + eps) + beta", "ε outside the root"),
        (norm(answer="return gamma * (x - m) / np.sqrt(v) + beta"), "ε missing"),
        (norm(answer="return gamma * ((x - m) / np.sqrt(v) + eps) + beta"), "ε added to the result"),
        (norm(answer="return gamma * (x - m) / np.sqrt(v + 1e-5) + beta"), "ε as it is by default"),
        (norm(answer="return gamma * (x - m) / np.sqrt(v + eps**2) + beta"), "ε squared"),
        (norm(answer="return gamma * (x - m) / (v + eps) + beta"), "divided by the variance"),
        (norm(answer="return gamma * (x - m) * np.sqrt(v + eps) + beta"), "multiplied"),
        (norm(variance="v = x.var(-1, keepdims=True, ddof=1)"), "divided by d_model − 1"),
        (norm(answer="return gamma * x / np.sqrt(v + eps) + beta"), "mean not subtracted"),
        ("gamma * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) + beta", "root mean square"),
        (norm(variance="v = (x**2).mean(-1, keepdims=True)"), "mean square in place of the variance"),
        (norm(variance="v = ((x - m)**2).sum(-1, keepdims=True)"), "sum of squares"),
        (norm(answer="return (x - m) / np.sqrt(v + eps)"), "without gamma and beta"),
        (norm(answer="return gamma * (x - m) / np.sqrt(v + eps)"), "without beta"),
        (norm(answer="return (x - m) / np.sqrt(v + eps) + beta"), "without gamma"),
        (norm(answer="return beta * (x - m) / np.sqrt(v + eps) + gamma"), "gamma and beta exchanged"),
        (norm(answer="return gamma * ((x - m) / np.sqrt(v + eps) + beta)"), "shifted, then scaled"),
        (norm(answer="return (x - m) / np.sqrt(v + eps) @ gamma + beta"), "gamma as a matrix"),
        ("ops.layer_norm(x, gamma, beta, eps)", "the library's own"),
    ],
    "feed_forward": [
        (feed("h = max(0, x @ W_1 + b_1)"), "max of Python"),
        (feed("h = np.max(0, x @ W_1 + b_1)"), "np.max with 0 first"),
        (feed("h = np.maximum(0, x @ W_1 + b_2)", "return h @ W_2 + b_1"), "biases exchanged"),
        ("(x @ W_1 + b_1) @ W_2 + b_2", "no ReLU"),
        (feed("h = x @ W_1 + b_1", "return np.maximum(0, h @ W_2 + b_2)"), "ReLU at the end"),
        (feed(answer="return np.maximum(0, h @ W_2 + b_2)"), "ReLU twice"),
        (feed("h = np.maximum(0, x) @ W_1 + b_1"), "ReLU on the input"),
        (feed("h = np.max(x @ W_1 + b_1, 0)"), "np.max for np.maximum"),
        (feed("h = np.minimum(0, x @ W_1 + b_1)"), "minimum"),
        (feed("h = abs(x @ W_1 + b_1)"), "absolute value"),
        (feed("h = np.maximum(0, x @ W_1)"), "first bias missing"),
        (feed(answer="return h @ W_2"), "second bias missing"),
        ("np.maximum(0, x @ W_1) @ W_2", "both biases missing"),
        (feed("h = np.maximum(0, x @ W_1) + b_1"), "first bias behind ReLU"),
        (feed("h = np.maximum(0, x @ W_1 - b_1)"), "biases subtracted"),
        (feed("h = np.maximum(0, x @ W_2 + b_2)", "return h @ W_1 + b_1"), "matrices exchanged"),
        (feed("h = np.maximum(0, W_1 @ x + b_1)"), "product the wrong way round"),
        (feed("h = np.maximum(0, x @ W_1.T + b_1)"), "matrices transposed"),
        (feed(answer="return h @ W_2.T + b_2"), "matrices transposed"),
        (feed("h = np.maximum(0, x * W_1 + b_1)"), "entry by entry"),
        (feed(answer="return x + h @ W_2 + b_2"), "sum around it"),
        (feed("h = np.tanh(x @ W_1 + b_1)"), "another bend"),
        (feed("h = ops.gelu(x @ W_1 + b_1)"), "another bend"),
        (feed("h = ops.softmax(x @ W_1 + b_1)"), "softmax"),
        (feed("h = x @ W_1 + b_1 > 0"), "step"),
    ],
    "pre_norm_block": [
        ("x = norm_1(x + attend(x)); return norm_2(x + feed_forward(x))", "post-norm"),
        ("x = attend(norm_1(x)); return feed_forward(norm_2(x))", "no way around"),
        ("x = attend(norm_1(x)); return x + feed_forward(norm_2(x))", "no way around"),
        ("x = x + attend(x); return x + feed_forward(x)", "no norm"),
        (f"{FIRST}\nreturn x + feed_forward(x)", "no norm"),
        ("x = norm_1(x); x = x + attend(x); x = norm_2(x); return x + feed_forward(x)", "the stream is normed"),
        ("x = x + norm_1(attend(x)); return x + norm_2(feed_forward(x))", "norm behind the branch"),
        ("x = x - attend(norm_1(x)); return x - feed_forward(norm_2(x))", "subtracted"),
        ("y = x + attend(norm_1(x)); return x + feed_forward(norm_2(y))", "first x added again"),
        ("return x + attend(norm_1(x)) + feed_forward(norm_2(x))", "side by side"),
        (f"{FIRST}\nreturn x + feed_forward(norm_1(x))", "one norm twice"),
        ("x = x + attend(norm_2(x)); return x + feed_forward(norm_1(x))", "norms exchanged"),
        ("x = x + feed_forward(norm_2(x)); return x + attend(norm_1(x))", "feed-forward first"),
        ("return x + attend(norm_1(x))", "only the first half"),
        ("y = x + attend(norm_1(x)); return x + feed_forward(norm_2(x))", "only the second half"),
        ("return x + feed_forward(norm_2(attend(norm_1(x))))", "one addition only"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("exercise", "body", "name"), [(e, *row) for e in WRONG for row in WRONG[e]])
def test_what_learners_write_is_named(exercise, body, name):
    assert_named(exercise, body, name)


def test_adding_in_place_is_told():
    result = checked("pre_norm_block", "x += attend(norm_1(x)); x += feed_forward(norm_2(x)); return x")
    assert "changes its argument `x` in place" in result.message
