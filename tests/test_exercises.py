"""Every exercise accepts what is right in any style, and names each mistake it knows."""

import math
import re
import time

import numpy as np
import pytest

from lesson_utils import ops
from lesson_utils.exercises import EXERCISES, check
from lesson_utils.exercises.checker import CheckResult, run

ALL = list(EXERCISES.values())
MISTAKES = [(e, m) for e in ALL for m in e.misconceptions]


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_reference_and_solution_pass(exercise):
    for function in (exercise.reference, exercise.solution):
        result = run(exercise, function)
        assert result.passed is True, result.message
        assert result.message == exercise.praise


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_solution_shown_is_the_solution_that_passes(exercise):
    """What a learner copies from the page works in a notebook that has run the set-up cell."""
    names = {"np": np, "ops": ops, "math": math}
    exec(run(exercise, exercise.solution).solution, names)
    assert run(exercise, names[exercise.solution.__name__]).passed is True


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=[f"{e.name}: {m.name}" for e, m in MISTAKES])
def test_each_mistake_is_rejected_with_its_own_message(exercise, mistake):
    result = run(exercise, mistake.wrong)
    assert (result.passed, result.misconception) == (False, mistake.name)
    assert result.message == mistake.message


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_bank_is_large_enough_and_its_messages_differ(exercise):
    assert len({m.name for m in exercise.misconceptions}) == len({m.message for m in exercise.misconceptions}) >= 4
    assert len(exercise.hints) >= 2


# --- Other right answers --------------------------------------------------------------------------------------------


def by_loops(Q, K, V, mask=None):
    output = np.zeros((*Q.shape[:-1], V.shape[-1]), Q.dtype)
    weights = np.zeros((*Q.shape[:-1], K.shape[-2]), Q.dtype)
    for i in np.ndindex(Q.shape[:-1]):
        keys, values = K[i[:-1]], V[i[:-1]]
        scores = [sum(q * k for q, k in zip(Q[i], key, strict=True)) / math.sqrt(len(key)) for key in keys]
        if mask is not None:
            scores = [score if visible else -math.inf for score, visible in zip(scores, mask[i], strict=True)]
        exponentials = [math.exp(score - max(scores)) for score in scores]
        weights[i] = np.array(exponentials) / sum(exponentials)
        output[i] = sum(w * value for w, value in zip(weights[i], values, strict=True))
    return output, weights


def by_einsum(Q, K, V, mask=None):
    scores = np.einsum("...qd,...kd->...qk", Q, K) * K.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + np.where(mask, 0, -1e9).astype(Q.dtype)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("...qk,...kd->...qd", weights, V), weights


def by_masking_afterwards_and_dividing_again(Q, K, V, mask=None):
    scores = Q @ np.moveaxis(K, -1, -2) / math.sqrt(Q.shape[-1])
    if mask is None:
        mask = np.ones(scores.shape, bool)
    exponentials = np.exp(scores - np.where(mask, scores, -np.inf).max(-1, keepdims=True)) * mask
    exponentials = np.where(mask, exponentials, 0)
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    return [weights @ V, weights]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("function", [by_loops, by_einsum, by_masking_afterwards_and_dividing_again])
def test_other_ways_to_write_attention_pass(function):
    result = check.attention(function)
    assert result.passed is True, result.message


def softmax_from_logarithms(x):
    largest = x.max(-1, keepdims=True)
    return np.exp(x - largest - np.log(np.exp(x - largest).sum(-1, keepdims=True)))


def softmax_along_rows(x):
    return np.apply_along_axis(lambda row: np.exp(row - max(row)) / np.exp(row - max(row)).sum(), -1, x)


def softmax_with_an_epsilon(x):
    e = np.exp(x - np.max(x, axis=-1)[..., None])
    return e / (e.sum(-1)[..., None] + 1e-12)


@pytest.mark.parametrize(
    "function", [softmax_from_logarithms, softmax_along_rows, softmax_with_an_epsilon, ops.softmax]
)
def test_other_ways_to_write_softmax_pass(function):
    result = check.softmax(function)
    assert result.passed is True, result.message


def test_forgetting_the_scale_is_seen_where_softmax_is_not_saturated():
    """The trap of many graders: with large scores, weights with and without √d_k are the same."""
    exercise = EXERCISES["attention"]
    Q, K, V, mask = exercise.draw_cases()[0].arguments
    _, weights = exercise.reference(Q, K, V, mask)
    assert weights.max() < 0.9


# --- What else can be wrong -----------------------------------------------------------------------------------------


def says(result: CheckResult, *parts: str) -> None:
    assert result.passed is False
    assert result.misconception is None
    for part in parts:
        assert part in result.message, result.message


def test_wrong_shape():
    says(check.softmax(lambda x: ops.softmax(x)[..., None]), "`weights` has shape (5, 1); expected (5,).")


def test_wrong_number_says_where():
    def off(x):
        weights = ops.softmax(x)
        weights[..., -1] += 0.5
        return weights

    says(
        check.softmax(off),
        "a row of 5 scores",
        "weights[4]",
        "Each row should sum to 1; yours sum to between 1.5 and 1.5",
    )


def test_wrong_dtype():
    says(check.softmax(lambda x: ops.softmax(x.astype(float))), "float32 went in", "came out as float64", "math.sqrt")


def test_nan():
    says(check.softmax(lambda x: ops.softmax(x) * np.nan), "holds NaN")


def test_change_of_the_input():
    def in_place(x):
        x -= x.max(-1, keepdims=True)
        return ops.softmax(x)

    says(check.softmax(in_place), "changes its argument `x` in place")


def test_exception_shows_the_learners_line():
    def broken(x):
        y = x - x.max(-1, keepdims=True)
        return ops.softmax(y, axis="last")

    says(check.softmax(broken), "TypeError", '`return ops.softmax(y, axis="last")`', "in line")


def test_missing_return():
    def forgets(x):
        ops.softmax(x)

    says(check.softmax(forgets), "returned None", "`return`")


def test_too_few_results():
    says(check.attention(lambda Q, K, V, mask: (Q, K, V)), "`return output, weights`")


def test_not_numbers():
    says(check.softmax(lambda x: "done"), "is a str; expected a NumPy array")
    says(check.softmax(lambda x: x.tolist()), "is a list; expected a NumPy array")
    says(check.softmax(lambda x: x.astype(object)), "dtype object")


ODD = ([], {}, "x", np.array("x"), np.nan, (1, 2, 3), np.zeros(0), object(), 1j, [[1], [2, 3]], True)


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_whatever_comes_back_is_answered(exercise, value):
    for result in (value, (value, value), [value] * len(exercise.returns)):
        assert run(exercise, lambda *arguments, result=result: result).passed is False


def test_wrong_parameters():
    says(check.attention(lambda Q, K: Q), "`(Q, K, V, mask)`", "yours takes `(Q, K)`")


def test_a_value_in_place_of_the_function():
    says(check.softmax(np.zeros(3)), "value (ndarray)", "without calling it")


def test_a_loop_that_never_ends_is_stopped():
    def forever(x):
        n = 0
        while True:
            n += 1

    start = time.monotonic()
    says(run(EXERCISES["softmax"], forever, time_limit=0.2), "had not returned", "in line", "Does a loop never end?")
    assert time.monotonic() - start < 10  # a bound on hanging, not on speed


def test_a_learners_except_does_not_hide_the_time_limit():
    def stubborn(x):
        while True:
            try:  # noqa: SIM105  # as a learner writes it
                x = x + 1
            except Exception:
                pass

    says(run(EXERCISES["softmax"], stubborn, time_limit=0.2), "had not returned")


def stub(x): ...


def stub_with_words(x):
    """Softmax."""
    # your code here


def stub_with_dots(x):
    shifted = ...
    return shifted


def stub_used(x):
    shifted = ...
    return np.exp(x) / shifted


@pytest.mark.parametrize("function", [stub, stub_with_words, stub_with_dots, stub_used, None, ...])
def test_stubs_are_not_attempted(function):
    result = check.softmax(function)
    assert result.passed is None
    assert "Not attempted yet." in result._repr_mimebundle_()["text/plain"]


def test_unknown_exercises_are_named():
    with pytest.raises(AttributeError, match=r"no exercise 'sofmax'; there are: .*softmax"):
        check.sofmax(stub)
    assert set(dir(check)) == set(EXERCISES)


# --- What is shown --------------------------------------------------------------------------------------------------


def test_hints_open_one_by_one_and_the_solution_comes_last():
    page = check.softmax(stub)._repr_mimebundle_()["text/html"]
    found = re.findall(r"<summary[^>]*>([^<]+)</summary>", page)
    assert found == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Show a solution"]
    assert page.count("</details></details></details></details>") == 1  # each inside the one before


def test_who_has_passed_sees_the_solution_and_no_hints():
    page = check.softmax(ops.softmax)._repr_mimebundle_()["text/html"]
    assert "Compare with our solution" in page
    assert "Hint" not in page


def test_what_a_learner_wrote_is_escaped():
    def tags(x):
        raise ValueError("<b>bold</b>")

    page = check.softmax(tags)._repr_mimebundle_()["text/html"]
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
