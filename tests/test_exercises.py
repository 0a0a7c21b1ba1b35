"""Every exercise accepts what is right in any style, and names each mistake it knows."""

import math
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from learners import EXERCISES, assert_named, checked

from lesson_utils import attention, ops
from lesson_utils.exercises import check
from lesson_utils.exercises.checker import CheckResult, digits, run
from lesson_utils.exercises.trial import Outcome, attempt, same

ALL = list(EXERCISES.values())
MISTAKES = [(e, m) for e in ALL for m in e.misconceptions]


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_reference_and_solution_pass(exercise):
    for function in (exercise.reference, exercise.solution):
        result = run(replace(exercise, library=()), function)
        assert result.passed is True, result.message
        assert result.message == exercise.praise


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_solution_shown_is_the_solution_that_passes(exercise):
    """What a learner copies from the page works in a notebook that has run the set-up cell."""
    names = {"np": np, "ops": ops, "math": math, "attention": attention}
    source = run(exercise, exercise.solution).solution
    assert "#" not in source.partition("\n")[0], "what is written for type checkers is not for learners"
    exec(source, names)
    assert run(exercise, names[exercise.solution.__name__]).passed is True


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=[f"{e.name}: {m.name}" for e, m in MISTAKES])
def test_each_mistake_is_rejected_with_its_own_message(exercise, mistake):
    for wrong in mistake.ways:
        result = run(exercise, wrong)
        assert (result.passed, result.misconception) == (False, mistake.name)
        assert result.message.partition("\n(")[0] == mistake.message


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_pairs_are_rejected_and_named(exercise):
    """Some pairs do the same as a single mistake: an error hides whatever comes behind it."""
    for pair in exercise.pairs[::5]:
        result = run(exercise, pair.ways[-1])
        assert result.passed is False
        assert result.misconception, pair.name


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


@pytest.mark.parametrize("function", [softmax_from_logarithms, softmax_along_rows, softmax_with_an_epsilon])
def test_other_ways_to_write_softmax_pass(function):
    result = check.softmax(function)
    assert result.passed is True, result.message


# A right attention, line by line; each wrong one changes a line or two.
ATTENTION = {
    "scores": "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])",
    "mask": "if mask is not None: scores = np.where(mask, scores, -np.inf)",
    "weights": "weights = ops.softmax(scores)",
    "after": "",
    "answer": "return weights @ V, weights",
}
OWN = "e = np.exp(scores - scores.max(axis=-1, keepdims=True)); weights = e / e.sum(axis=-1, keepdims=True)"


def lines(**changed):
    return "\n".join((ATTENTION | changed).values())


RIGHT = {
    "weighted_average": [
        "weights @ values",
        "np.dot(weights, values)",
        "values.T @ weights",
        "np.einsum('n,nd->d', weights, values)",
        "np.average(values, axis=0, weights=weights)",
        "(weights[:, None] * values).sum(axis=0)",
        "(values.T * weights).sum(axis=1)",
        "(weights[None] @ values)[0]",
        "np.tensordot(weights, values, 1)",
        "sum(w * v for w, v in zip(weights, values))",
        "weights @ values / weights.sum()",
        """
        average = np.zeros(values.shape[1])
        for i in range(len(weights)):
            average += weights[i] * values[i]
        return average
        """,
        """
        total = 0
        for w, v in zip(weights, values):
            total = total + w * v
        return total
        """,
        "np.array([sum(weights[i] * values[i, j] for i in range(len(weights))) for j in range(values.shape[1])])",
    ],
    "softmax": [
        "np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)",
        "m = np.max(x, -1)[..., None]; e = np.exp(x - m); return e / np.sum(e, -1)[..., None]",
        "y = x.copy(); y -= y.max(-1, keepdims=True); np.exp(y, out=y); y /= y.sum(-1, keepdims=True); return y",
        "y = x - np.amax(x, axis=-1, keepdims=True); return np.exp(y - np.log(np.sum(np.exp(y), -1, keepdims=True)))",
        "e = np.exp((x.T - x.max(-1).T).T); return (e.T / e.sum(-1).T).T",
        "return np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True))",
        """
        out = np.empty_like(x)
        for i in np.ndindex(x.shape[:-1]):
            e = np.exp(x[i] - x[i].max())
            out[i] = e / e.sum()
        return out
        """,
    ],
    "attention": [
        lines(),
        lines(weights=OWN),
        lines(scores="scores = np.matmul(Q, np.swapaxes(K, -1, -2)) * K.shape[-1] ** -0.5"),
        lines(scores="scores = np.einsum('...id,...jd->...ij', Q, K) / Q.shape[-1] ** 0.5"),
        lines(scores="scores = (Q / math.sqrt(Q.shape[-1])) @ np.moveaxis(K, -1, -2)"),
        lines(scores="scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1], dtype=Q.dtype)"),
        lines(mask="if mask is not None: scores[~mask] = -np.inf"),
        lines(mask="if mask is not None: scores[~mask] = -1e9"),
        lines(mask="scores[mask == False] = -1e9"),
        lines(mask="scores = np.where(mask == False, -np.inf, scores)"),
        lines(mask="if mask is None: mask = True\nscores = np.where(mask, scores, -np.inf)"),
        lines(mask="mask = np.ones(scores.shape, bool) if mask is None else mask\nscores[~mask] = -np.inf"),
        lines(mask="if mask is not None: scores = np.where(mask, scores, -1e9)", weights=OWN),
        lines(mask="if mask is not None: scores = np.where(mask, scores, np.finfo(scores.dtype).min)"),
        lines(mask="if mask is not None: scores = np.where(mask, scores, np.finfo(scores.dtype).min)", weights=OWN),
        lines(mask="if mask is not None: scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)"),
        lines(mask="if mask is not None: scores = scores + (1 - mask.astype(scores.dtype)) * -1e9"),
        lines(mask="if mask is not None: scores += ~mask * -1e9"),
        lines(mask="if mask is not None: scores += (1 - mask) * np.finfo(scores.dtype).min"),
        lines(mask="if mask is not None: np.putmask(scores, ~mask, -np.inf)"),
        lines(mask="if mask is not None: scores = np.ma.filled(np.ma.array(scores, mask=~mask), -np.inf)"),
        lines(
            mask="",
            after="if mask is not None: weights = weights * mask; weights /= weights.sum(-1, keepdims=True)",
            weights="hidden = 0 if mask is None else ~mask; weights = ops.softmax(scores - np.float32(1e9) * hidden)",
        ),
        lines(answer="return np.einsum('...ij,...jd->...id', weights, V), weights"),
    ],
    "score_variance": [
        "d_k * (a**2 / 3) ** 2",
        "d_k * a**4 / 9",
        "d_k * ((2 * a)**2 / 12)**2",
        "np.float32(d_k * a**4 / 9)",
        "np.array(d_k * a**4 / 9)",
        "d_k * Fraction(a)**4 / 9",
        "d_k * Decimal(a)**4 / 9",
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in RIGHT for body in RIGHT[e]])
def test_what_is_right_passes_in_any_style(exercise, body):
    result = checked(exercise, body)
    assert result.passed is True, result.message


def looped(line, indent):
    """A weighted average in a loop, with `line` in it and `return` indented."""
    return f"total = np.zeros(values.shape[1])\nfor w, v in zip(weights, values):\n    {line}\n{indent}return total"


def masked(line, **changed):
    return lines(mask=f"if mask is not None: {line}", **changed)


def scaled(by, **changed):
    return lines(scores=f"scores = Q @ K.swapaxes(-1, -2) {by}", **changed)


def by_own(softmax):
    return lines(weights=f"s = scores; {softmax}; weights = w")


# What learners write → the name of the mistake.
WRONG = {
    "weighted_average": [
        ("values.mean(axis=0)", "plain mean"),
        ("np.average(values, axis=0)", "plain mean"),
        ("values.sum(axis=0)", "plain sum"),
        ("weights[:, None] * values", "not summed"),
        ("weights.reshape(-1, 1) * values", "not summed"),
        ("weights * values.T", "not summed"),
        ("[w * v for w, v in zip(weights, values)]", "not summed"),
        ("(weights[:, None] * values).mean()", "one number"),
        ("(weights[:, None] * values).sum(axis=1)", "summed over the width"),
        ("(values.T * weights).sum(axis=0)", "summed over the width"),
        ("(weights[:, None] * values).mean(axis=0)", "divided by n"),
        ("weights @ values / len(weights)", "divided by n"),
        ("np.sum(weights[:, None] * values)", "one number"),
        ("values.mean()", "everything, unweighted"),
        ("np.average(values)", "everything, unweighted"),
        ("values.sum()", "everything, unweighted"),
        ("weights * values", "axes do not line up"),
        ("values * weights", "axes do not line up"),
        ("(weights * values).sum(axis=0)", "axes do not line up"),
        ("np.sum(weights * values, axis=1)", "axes do not line up"),
        ("np.sum(values * weights)", "axes do not line up"),
        ("values @ weights", "product the wrong way round"),
        ("np.dot(values, weights)", "product the wrong way round"),
        ("weights @ values.T", "product the wrong way round"),
        ("weights.T @ values.T", "product the wrong way round"),
        (looped("total += w * v", "    "), "only the first value"),
        (looped("total = w * v", ""), "only the last value"),
        ("ops.softmax(weights) @ values", "softmax again"),
        ("np.average(values, weights=weights)", "np.average without axis"),
        ("np.average(values, weights)", "np.average without axis"),
        ("(weights[:, None] * values).sum(axis=0, keepdims=True)", "an axis too many"),
        ("weights[None, :] @ values", "an axis too many"),
        ("weights[:, None].T @ values", "an axis too many"),
        ("values.T @ weights[:, None]", "an axis too many"),
        ("values[np.argmax(weights)]", "largest only"),
    ],
    "softmax": [
        (
            "x = np.where(np.isneginf(x), -1e3, x)\n"
            "e = np.exp(x - x.max(-1, keepdims=True))\n"
            "return e / e.sum(-1, keepdims=True)",
            "a number for −∞",
        ),
        ("e = np.exp(x - max(x)); return e / sum(e)", "Python's max"),
        ("e = np.exp(x - x.max(-1, keepdims=True)); return e / sum(e)", "sum over axis 0"),
        ("np.array([np.exp(r - r.max()) / np.exp(r - r.max()).sum() for r in x])", "a loop over x"),
        ("np.exp(x) / np.sum(np.exp(x))", "sum over everything; not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)", "not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=-1)", "sum without keepdims; not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=0)", "sum over axis 0; not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=0, keepdims=True)", "sum over axis 0; not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)", "sum over axis 1; not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=1)", "sum over axis 1 without keepdims; not stable"),
        ("np.exp(x) / np.exp(x).sum(axis=-2, keepdims=True)", "sum over axis -2; not stable"),
        ("e = np.exp(x - x.max(axis=-1)); return e / e.sum(axis=-1)", "max and sum without keepdims"),
        ("e = np.exp(x - x.max(axis=-1)); e /= e.sum(axis=-1); return e", "max and sum without keepdims"),
        ("e = np.exp(x - x.max(axis=-1, keepdims=True)); return e / e.sum(axis=-1)", "sum without keepdims"),
        ("e = np.exp(x - x.max(axis=-1, keepdims=True)); e /= e.sum(axis=-1); return e", "sum without keepdims"),
        ("e = np.exp(x - x.max(axis=-1)); return e / e.sum(axis=-1, keepdims=True)", "max without keepdims"),
        ("e = np.exp(x - np.max(x)); return e / e.sum(axis=-1)", "sum without keepdims; max over everything"),
        ("e = np.exp(x - np.max(x)); return e / e.sum(axis=-1, keepdims=True)", "max over everything"),
        ("e = np.exp(x - np.max(x)); return e / e.sum()", "max and sum over everything"),
        ("e = np.exp(x - x.max(axis=-1, keepdims=True)); return e / e.sum()", "sum over everything"),
        ("e = np.exp(x - x.max(axis=0)); return e / e.sum(axis=0)", "max and sum over axis 0"),
        ("e = np.exp(x - x.max(axis=-1, keepdims=True)); return e / e.sum(axis=0)", "sum over axis 0"),
        ("e = np.exp(x - x.max(axis=0)); return e / e.sum(axis=-1, keepdims=True)", "max over axis 0"),
        ("e = np.exp(x - np.max(x)); return e / e.sum(axis=0)", "sum over axis 0; max over everything"),
        (
            "e = np.exp(x - x.max(1, keepdims=True)); return e / e.sum(1, keepdims=True)",
            "max and sum over axis 1",
        ),
        ("e = np.exp(x - x.max(1)); return e / e.sum(1)", "max and sum over axis 1 without keepdims"),
        ("e = np.exp(x - x.max(-2, keepdims=True)); return e / e.sum(-2, keepdims=True)", "max and sum over axis -2"),
        ("np.exp(x - x.max(-1, keepdims=True)) / np.exp(x).sum(-1, keepdims=True)", "maximum in one place only"),
        ("np.exp(x - x.max()) / np.sum(np.exp(x))", "maximum in one place only"),
        ("np.exp(x)", "not normalised"),
        ("np.exp(x - x.max(-1, keepdims=True))", "not normalised"),
        ("e = np.exp(x); e = e - e.max(-1, keepdims=True); return e / e.sum(-1, keepdims=True)", "maximum after exp"),
        ("e = np.exp(x) - x.max(-1, keepdims=True); return e / e.sum(-1, keepdims=True)", "maximum after exp"),
        ("e = np.exp(x.max(-1, keepdims=True) - x); return e / e.sum(-1, keepdims=True)", "sign"),
        ("e = np.exp(x.max() - x); return e / e.sum(-1, keepdims=True)", "sign"),
        ("e = np.exp(-x); return e / e.sum(-1, keepdims=True)", "sign"),
        ("e = np.exp(np.clip(x, -500, 500)); return e / e.sum(-1, keepdims=True)", "clipped"),
        ("e = np.exp(np.clip(x, -50, 50)); return e / e.sum(-1, keepdims=True)", "clipped"),
        ("e = np.exp(np.clip(x, None, 700)); return e / e.sum(-1, keepdims=True)", "clipped"),
        ("e = np.exp(x - 1e4); return e / e.sum(-1, keepdims=True)", "shifted by a constant"),
        ("e = np.exp(x - 1000); return e / e.sum(-1, keepdims=True)", "shifted by a constant"),
        ("e = np.exp(x - 100); return e / e.sum(-1, keepdims=True)", "shifted by a constant"),
        ("e = np.exp(x - x.mean(-1, keepdims=True)); return e / e.sum(-1, keepdims=True)", "mean instead of maximum"),
        ("e = np.exp(x / x.max(-1, keepdims=True)); return e / e.sum(-1, keepdims=True)", "divided by the maximum"),
        ("x / x.sum(-1, keepdims=True)", "no exponential"),
        ("1 / (1 + np.exp(-x))", "sigmoid"),
        ("(x == x.max(-1, keepdims=True)) * 1.0", "largest only"),
    ],
    "attention": [
        (scaled("/ K.shape[-1]**1/2"), "** 1/2"),
        (scaled(""), "no scale"),
        (scaled("/ K.shape[-1]"), "divided by d_k"),
        (scaled("/ Q.shape[-1] ** 2"), "divided by d_k squared"),
        (scaled("* math.sqrt(K.shape[-1])"), "multiplied by the root"),
        (scaled("* K.shape[-1]"), "multiplied by d_k"),
        (scaled("/ math.sqrt(K.shape[-2])"), "scaled by √T_k"),
        (scaled("/ K.shape[-2]"), "scaled by T_k"),
        (scaled("/ math.sqrt(Q.shape[-2])"), "scaled by √T_q"),
        (scaled("/ math.sqrt(V.shape[-1])"), "scaled by √d_v"),
        (scaled("/ V.shape[-1]"), "scaled by d_v"),
        (scaled("/ math.sqrt(len(K))"), "scaled by √K.shape[0]"),
        (scaled("/ len(K)"), "scaled by K.shape[0]"),
        (scaled("/ math.sqrt(K.shape[1])"), "scaled by √K.shape[1]"),
        (scaled("/ math.sqrt(Q.shape[1])"), "scaled by √Q.shape[1]"),
        (scaled("/ math.sqrt(Q.shape[0])"), "scaled by √Q.shape[0]"),
        (scaled("", after="weights = weights / math.sqrt(K.shape[-1])"), "scale after softmax"),
        (scaled("", answer="return weights @ V / math.sqrt(K.shape[-1]), weights"), "output scaled"),
        (lines(answer="return weights @ V / math.sqrt(K.shape[-1]), weights"), "output scaled"),
        (lines(weights="weights = ops.softmax(scores, axis=-2)"), "down the columns"),
        (lines(weights="weights = ops.softmax(scores, axis=0)"), "softmax over axis 0"),
        (lines(weights="weights = ops.softmax(scores, axis=1)"), "softmax over axis 1"),
        (lines(weights="weights = scores"), "no softmax"),
        (lines(weights="weights = ops.softmax(ops.softmax(scores))"), "softmax twice"),
        (by_own("e = np.exp(s); w = e / e.sum(-1, keepdims=True)"), "softmax: not stable"),
        (by_own("e = np.exp(s); w = e / e.sum()"), "softmax: sum over everything; not stable"),
        (by_own("e = np.exp(s); w = e / e.sum(-1)"), "softmax: sum without keepdims; not stable"),
        (
            by_own("e = np.exp(s - s.max()); w = e / e.sum()"),
            "softmax: max and sum over everything",
        ),
        (
            by_own("e = np.exp(s - s.max(-1)); w = e / e.sum(-1)"),
            "softmax: max and sum without keepdims",
        ),
        (lines(mask=""), "mask ignored"),
        (masked("scores = np.where(mask, -np.inf, scores)"), "mask inverted"),
        (masked("scores = np.where(mask, -np.inf, scores)", weights=OWN), "mask inverted"),
        (masked("scores[mask] = -np.inf"), "mask inverted"),
        (masked("scores = np.where(mask, -1e9, scores)"), "mask inverted"),
        (masked("scores = scores - 1e9 * mask"), "mask inverted"),
        (masked("scores += mask * -1e9"), "mask inverted"),
        (masked("scores = scores + mask"), "mask added"),
        (masked("scores = scores * mask"), "masked with 0"),
        (masked("scores[~mask] = 0"), "masked with 0"),
        (masked("scores = scores + (~mask) * -np.inf"), "0 times infinity"),
        (masked("scores = scores + (~mask) * -np.inf", weights=OWN), "0 times infinity"),
        (masked("scores = scores + (1 - mask) * -np.inf"), "0 times infinity"),
        (masked("scores = np.where(mask, scores, 1e9)"), "masked with +∞"),
        (lines(mask="if mask: scores = np.where(mask, scores, -np.inf)"), "if mask"),
        (lines(mask="if mask != None: scores = np.where(mask, scores, -np.inf)"), "if mask"),
        (lines(mask="scores = np.where(mask, scores, -np.inf)"), "no mask not handled"),
        (lines(mask="scores = np.where(mask, scores, -np.inf)", weights=OWN), "no mask not handled"),
        (lines(mask="scores = np.where(mask, scores, -1e9)"), "no mask not handled"),
        (lines(mask="scores[~mask] = -np.inf"), "no mask not handled"),
        (lines(mask="scores = scores + (1 - mask) * -1e9"), "no mask not handled"),
        (lines(mask="", after="if mask is not None: weights = weights * mask"), "mask after softmax"),
        (lines(mask="", after="if mask is not None: weights = np.where(mask, weights, 0)"), "mask after softmax"),
        (lines(mask="", after="if mask is not None: weights[~mask] = -np.inf"), "mask after softmax"),
        *((masked(f"scores = np.where(mask, scores, -{n})"), "not far enough below") for n in (1, 10, 100, 1e4, 1e5)),
        *((masked(f"scores = scores + ~mask * -{n}"), "not far enough below") for n in (10, 100, 1e3, 1e4)),
        (lines(scores="scores = Q @ K / math.sqrt(K.shape[-1])"), "keys not transposed"),
        (lines(scores="scores = np.dot(Q, K) / math.sqrt(K.shape[-1])"), "keys not transposed"),
        (lines(scores="scores = Q @ K.T / math.sqrt(K.shape[-1])"), "keys transposed with .T"),
        (lines(scores="scores = np.dot(Q, K.T) / math.sqrt(K.shape[-1])"), "keys transposed with .T"),
        (lines(scores="scores = Q @ np.transpose(K) / math.sqrt(K.shape[-1])"), "keys transposed with .T"),
        (lines(scores="scores = Q @ K.swapaxes(0, 1) / math.sqrt(K.shape[-1])"), "axes 0 and 1 swapped"),
        (lines(scores="scores = Q @ K.transpose(0, 2, 1) / math.sqrt(K.shape[-1])"), "axes 1 and 2 swapped"),
        (lines(scores="scores = K @ Q.swapaxes(-1, -2) / math.sqrt(K.shape[-1])"), "queries and keys swapped"),
        (
            masked("scores[~mask] = -1e9", scores="scores = K @ Q.swapaxes(-1, -2) / math.sqrt(K.shape[-1])"),
            "queries and keys swapped",
        ),
        (lines(scores="scores = np.dot(Q, K.swapaxes(-1, -2)) / math.sqrt(K.shape[-1])"), "np.dot"),
        (lines(answer="return np.dot(weights, V), weights"), "np.dot"),
        (
            lines(
                scores="scores = np.dot(Q, K.swapaxes(-1, -2)) / math.sqrt(K.shape[-1])",
                answer="return np.dot(weights, V), weights",
            ),
            "np.dot",
        ),
        (lines(scores="scores = Q * K / math.sqrt(K.shape[-1])"), "* in place of @"),
        (lines(answer="return weights * V, weights"), "* in place of @"),
        (lines(answer="return V @ weights, weights"), "values in front"),
        (lines(answer="return weights @ K, weights"), "keys averaged"),
        (lines(answer="return weights, weights @ V"), "results swapped"),
        (lines(answer="return weights @ V"), "only the output"),
        (lines(answer="return weights"), "only the weights"),
        (lines(answer="return weights @ V, scores"), "scores returned"),
        (masked("scores = np.where(mask, scores, -1e9)", answer="return weights @ V, scores"), "scores returned"),
    ],
    "score_variance": [
        ("d_k * a**2 / 3**2", "3 squared, a not"),
        ("d_k", "as for the normal"),
        ("math.sqrt(d_k)", "standard deviation as for the normal"),
        ("1", "scaled already"),
        ("a**2 / 3", "one entry"),
        ("(2 * a)**2 / 12", "one entry"),
        ("d_k * a**2 / 3", "entry not squared"),
        ("d_k * 2 * a**2 / 3", "variances of factors added"),
        ("a**4 / 9", "one term"),
        ("d_k * (a**2 / 12) ** 2", "width a"),
        ("d_k * a**2 / 12", "entry not squared, width a"),
        ("d_k * a**2", "entry not squared, without the third"),
        ("(2 * a**2 / 12) ** 2", "2a not squared"),
        ("d_k * (2 * a**2 / 12) ** 2", "2a not squared"),
        ("d_k * a**4 / 3", "third not squared"),
        ("d_k * (2 * a**2 / 3) ** 2", "factors added and squared"),
        ("math.sqrt(d_k) * a**2 / 3", "standard deviation"),
        ("math.sqrt(d_k * a**2 / 3)", "standard deviation, entry not squared"),
        ("d_k**2 * a**4 / 9", "d_k squared"),
        ("d_k * a**4", "spread without the third"),
    ],
}


@pytest.mark.parametrize(("exercise", "body", "name"), [(e, *case) for e in WRONG for case in WRONG[e]])
def test_what_learners_write_is_named(exercise, body, name):
    assert_named(exercise, body, name)


def test_forgetting_the_scale_is_seen_where_softmax_is_not_saturated():
    """The trap of many graders: with large scores, weights with and without √d_k are the same."""
    exercise = EXERCISES["attention"]
    Q, K, V, mask = exercise.draw_cases()[0].arguments
    _, weights = exercise.reference(Q, K, V, mask)
    assert weights.max() < 0.9


# Two mistakes at once: both are named, or the first that shows.
TWO = [
    ("attention", scaled("", mask=""), "no scale; mask ignored"),
    ("attention", scaled("", weights="weights = ops.softmax(scores, axis=-2)"), "no scale; down the columns"),
    (
        "attention",
        scaled("/ K.shape[-1]", weights="weights = ops.softmax(scores, 0)"),
        "divided by d_k; softmax over axis 0",
    ),
    ("attention", scaled("", mask="if mask: scores = np.where(mask, scores, -np.inf)"), "no scale; if mask"),
    ("attention", scaled("", mask="scores[~mask] = -np.inf"), "no scale; no mask not handled"),
    ("attention", scaled("", answer="return weights @ V"), "no scale; only the output"),
    ("attention", masked("scores[mask] = -np.inf", scores="scores = Q @ K.T"), "First: no scale"),
    ("attention", scaled("/ K.shape[-1]", mask="if mask is not None: scores[mask] = -100"), "First: divided by d_k"),
    ("attention", scaled("/ math.sqrt(V.shape[-1])", mask=""), "First: scaled by √d_v"),
    ("attention", scaled("/ math.sqrt(len(K))", mask=""), "First: scaled by √K.shape[0]"),  # first it looks like √T_k
    ("attention", lines(mask="", after="if mask is not None: weights *= ~mask"), "mask inverted; mask after softmax"),
    (
        "attention",
        masked("scores[mask] = -np.inf", weights="weights = ops.softmax(scores, -2)"),
        "First: down the columns",
    ),
    ("softmax", "e = np.exp(x - x.mean()); return e / e.sum()", "sum over everything; mean instead of maximum"),
    ("softmax", "e = np.exp(np.clip(x, -50, 50)); return e / e.sum()", "sum over everything; clipped"),
    ("softmax", "e = np.exp(np.clip(x, -50, 50)); return e / e.sum(axis=0)", "sum over axis 0; clipped"),
]


@pytest.mark.parametrize(("exercise", "body", "name"), TWO)
def test_of_two_mistakes_both_or_the_first_are_named(exercise, body, name):
    result = checked(exercise, body)
    messages = {m.name: m.message for m in EXERCISES[exercise].misconceptions}
    if name.startswith("First: "):
        assert result.misconception == name.removeprefix("First: "), result.message
        assert result.message == f"First: {messages[result.misconception]} There may be more."
    else:
        assert result.misconception == name, result.message
        assert result.message.startswith("Two things to mend.\n1. ")
        assert all(messages[part] in result.message for part in name.split("; "))


# A wrong guess is worse than none.
STRANGE = {
    "weighted_average": [
        "np.zeros(values.shape[1])",
        "np.full(values.shape[1], np.nan)",
        "np.ones(values.shape[1])",
        "weights @ values + 0.1",
        "(weights**2) @ values",
        "values[0]",
        "raise ValueError('return')",
        "weights.sum(values)",
        "0.0",
    ],
    "softmax": [
        "np.zeros_like(x)",
        "np.full_like(x, np.nan)",
        "np.ones_like(x)",
        "np.full_like(x, 1 / x.shape[-1])",
        "np.eye(x.shape[-1])[x.shape[-1] // 2] + 0 * x",  # the largest only, by chance, in the first case
        "x",
        "x * 2",
        "x.softmax()",
        "x + np.ones(7)",
        "raise ValueError('return')",
        "1.1 * ops.softmax(x)",
        "ops.softmax(2 * x)",
        "ops.softmax(x).round(2)",
        "ops.softmax(x) + 1e-3",
        "np.nan_to_num(ops.softmax(np.where(np.isinf(x), 0, x)))",
        "ops.softmax(x) if x.ndim != 3 else ops.softmax(x, axis=1)",
        "ops.softmax(x) if abs(x).max() < 100 else x * np.nan",
        "ops.softmax(x) if abs(x).max() < 100 else x * 0",
    ],
    "attention": [
        "np.zeros(Q.shape[:-1] + V.shape[-1:]), np.zeros(Q.shape[:-1] + K.shape[-2:-1])",
        "np.full(Q.shape[:-1] + V.shape[-1:], np.nan), np.full(Q.shape[:-1] + K.shape[-2:-1], np.nan)",
        "Q, K",
        "0, 0",
        "raise ValueError('return')",
        "Q + V",
        scaled("/ math.sqrt(5)"),
        scaled("/ 2"),
        lines(weights="weights = ops.softmax(scores) ** 2"),
        masked("scores = scores * 0"),
        lines(mask="scores = undefined"),
        lines(mask="if mask is not None and mask.ndim == 2: scores = np.where(mask, scores, -np.inf)"),
        lines(mask="if mask is not None: scores = np.where(mask[..., ::-1], scores, -np.inf)"),
        lines(answer="return weights @ V + 1, weights"),
    ],
    "score_variance": ["0", "-1", "d_k * a", "math.nan", "math.inf", "d_k / 0", "a", "10**400", "Fraction(10**400)"],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in STRANGE for body in STRANGE[e]])
def test_what_is_wrong_otherwise_gets_no_name(exercise, body):
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, None), result.message


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=[f"{e.name}: {m.name}" for e, m in MISTAKES])
def test_no_mistake_is_named_that_would_show_where_the_learner_is_right(exercise, mistake):
    """Like the mistake in every case but one: right there, where the mistake would be wrong."""
    cases = exercise.draw_cases()
    wanted = [attempt(exercise.reference, case.arguments) for case in cases]
    for wrong in mistake.ways[:1]:
        shows = [not same(attempt(wrong, case.arguments), want) for case, want in zip(cases, wanted, strict=True)]
        spared = cases[len(shows) - 1 - shows[::-1].index(True)].arguments  # the last to show the mistake
        if sum(shows) < 2:
            continue

        def learner(*arguments, spared=spared, wrong=wrong):
            is_spared = all(np.array_equal(a, b) for a, b in zip(arguments, spared, strict=True))
            return (exercise.reference if is_spared else wrong)(*arguments)

        assert run(replace(exercise, pairs=()), learner).misconception != mistake.name


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
        "Each row should sum to 1; yours sums to 1.5.",
    )


def test_wrong_dtype():
    says(check.softmax(lambda x: ops.softmax(x.astype(float))), "float32 went in", "came out as float64", "math.sqrt")


@pytest.mark.parametrize(
    "body",
    [
        masked("scores = scores + (1 - mask) * -1e9"),
        masked("scores = scores + ~mask * -1e9"),
        masked("scores = np.where(mask, scores, np.finfo(float).min)"),
        lines(scores="scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])"),
    ],
)
def test_wrong_dtype_in_attention_says_what_masks_have_to_do_with_it(body):
    says(
        checked("attention", body),
        "numbers are right",
        "came out as float64",
        "`~mask * -1e9`",
        "`np.finfo(float).min`",
    )


def test_numbers_that_look_alike_are_printed_with_more_digits():
    says(checked("softmax", "ops.softmax(x) * (1 + 1e-6)"), "is 0.398158; expected 0.3981576.")
    says(checked("softmax", "ops.softmax(x) + 3e-4"), "Each row should sum to 1; yours sums to 1.002.")
    says(checked("score_variance", "d_k * a**4 / 9 + 1e-3"), "is 910.223; expected 910.222.")
    assert digits(0.5, 0.5) == "0.5"  # nothing to tell apart


def test_a_number_is_asked_for_where_one_is_wanted():
    for body in ("str(d_k)", "[d_k * a**4 / 9]", "{}"):
        says(checked("score_variance", body), "expected a number.")
    says(checked("score_variance", "np.array([d_k * a**4 / 9])"), "has shape (1,); expected a single number.")
    says(checked("weighted_average", "1.0"), "is a single number; expected (3,).")


# --- Borrowed, not written ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exercise", "body", "name"),
    [
        ("softmax", "ops.softmax(x)", "ops.softmax"),
        ("softmax", "np.stack([ops.softmax(row) for row in x]) if x.ndim > 1 else ops.softmax(x)", "ops.softmax"),
        (
            "attention",
            "attention.scaled_dot_product_attention(Q, K, V, mask)",
            "attention.scaled_dot_product_attention",
        ),
    ],
)
def test_the_librarys_own_function_is_no_solution(exercise, body, name):
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, "the library's own")
    assert result.message == f"`{name}` is the library's own, and right. Now write it yourself: the hints lead the way."


def test_who_borrows_and_gets_it_wrong_reads_what_is_wrong():
    says(checked("softmax", "ops.softmax(x) * 2"), "sums to 2")


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


def test_an_error_with_a_name_shows_the_learners_line_as_well():
    message = checked("weighted_average", "values @ weights").message
    assert message.endswith("\n(ValueError on 5 values of width 3 in line 2 of its cell: `return values @ weights`)")


def test_errors_are_the_same_if_type_and_text_are():
    shapes = "operands could not be broadcast together with shapes (2,3,4) (2,3) "
    one = Outcome(error=ValueError(shapes))
    assert same(one, Outcome(error=ValueError(shapes)))
    assert same(one, Outcome(error=ValueError(shapes + "(2,3,4) ")))  # in place
    for other in (TypeError(shapes), ValueError(shapes.replace("2", "5")), ValueError(), None):
        assert not same(one, Outcome(error=other))
        assert not same(Outcome(error=other), one)
    assert not same(one, Outcome(timed_out=True))


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


# --- Not attempted yet ----------------------------------------------------------------------------------------------


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


def idle(x):
    pass


def idle_with_words(x):
    """Softmax."""
    return


def test_without_three_dots_to_replace_the_body_is_asked_for():
    names = {}
    exec("def idle_without_source(x): ...", names)
    for function in (idle, idle_with_words, names["idle_without_source"]):
        result = check.softmax(function)
        assert result.passed is None
        assert result.message == "Write the function's body above, run its cell, then run this one again."


def test_three_dots_are_to_be_replaced():
    for function in (stub, stub_with_dots, stub_used):
        assert check.softmax(function).message.startswith("Replace the `...` above with your code, run its cell")


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
    page = check.softmax(softmax_from_logarithms)._repr_mimebundle_()["text/html"]
    assert "Compare with our solution" in page
    assert "Hint" not in page


def test_what_a_learner_wrote_is_escaped():
    def tags(x):
        raise ValueError("<b>bold</b>")

    page = check.softmax(tags)._repr_mimebundle_()["text/html"]
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
