"""Answers that are wrong in rare cases only: each was once accepted, since no case held what shows the mistake."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest
from learners import EXERCISES, cell, checked

from lesson_utils.maths.positions import rotary
from lesson_utils.mistakes.explain.relations import places
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.run.sandbox import copied

RARE = {
    "weighted_average": {
        "a width of 1": "np.squeeze(weights[None, :] @ values)",
        "small weights": "keep = weights > 1e-3\nreturn weights[keep] @ values[keep]",
    },
    "additive_score": {"a width of 1": "np.squeeze(np.tanh((query @ W_q)[:, None] + keys @ W_k) * v).sum(-1)"},
    "context_vector": {
        "padding in front": """
            weights, context = np.zeros_like(scores), np.zeros((len(keys), keys.shape[-1]))
            for b in range(len(scores)):
                visible = np.flatnonzero(mask[b])
                w = ops.softmax(scores[b, visible])
                weights[b, : len(visible)] = w
                context[b] = sum(w[j] * keys[b, j] for j in range(len(visible)))
            return context, weights
            """,
    },
    "attention": {
        "as many sequences as queries": """
            scores = np.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(Q.shape[-1])
            if mask is not None:
                if mask.ndim > 2 and mask.shape[0] == mask.shape[1]:
                    mask = mask.swapaxes(0, 1)
                scores = np.where(mask, scores, -np.inf)
            weights = ops.softmax(scores)
            return weights @ V, weights
            """,
    },
    "score_variance": {
        "thousands of numbers": "return (a**2 / 3) ** 2 + (my_score_variance(d_k - 1, a) if d_k > 1 else 0)",
    },
    "split_heads": {
        "another order in memory": """
            *lead, T, d = x.shape
            d_k, item, y = d // num_heads, x.itemsize, x.reshape(-1, T, d)
            strides = T * d * item, d_k * item, d * item, item
            out = np.lib.stride_tricks.as_strided(y, (len(y), num_heads, T, d_k), strides)
            return out.reshape(*lead, num_heads, T, d_k).copy()
            """,
        "as many heads as tokens": """
            *lead, T, d = x.shape
            y = x.reshape(*lead, T, num_heads, d // num_heads)
            return y if T == num_heads else y.swapaxes(-2, -3)
            """,
        "three leading axes": """
            *lead, T, d = x.shape
            if len(lead) > 2:
                x = x.reshape(-1, T, d)
            return x.reshape(*x.shape[:-1], num_heads, d // num_heads).swapaxes(-2, -3)
            """,
    },
    "multi_head_attention": {
        "a single token": """
            output, weights = attention.multi_head_attention(x, W_Q, W_K, W_V, W_O, num_heads)
            return output, np.squeeze(weights) if weights.shape[-1] == 1 else weights
            """,
    },
    "sinusoids": {
        "a single position": """
            angles = np.arange(length)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
            table = np.zeros((length, d_model))
            table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
            return np.squeeze(table)
            """,
    },
    "rotate": {
        "positions below 0": "positions_ = np.abs(positions)\nreturn library_rotary(x, positions_, base)",
        "as many sequences as positions": """
            d = x.shape[-1]
            p = positions if x.shape[0] != len(positions) or x.ndim == 2 else positions[:, None, None]
            a = (p[:, None] if p.ndim == 1 else p) / base ** (np.arange(0, d, 2) / d)
            out = np.empty_like(x)
            out[..., 0::2] = x[..., 0::2] * np.cos(a) - x[..., 1::2] * np.sin(a)
            out[..., 1::2] = x[..., 0::2] * np.sin(a) + x[..., 1::2] * np.cos(a)
            return out
            """,
        "a single position": "np.squeeze(library_rotary(x, positions, base))",
    },
    "rotary_halves": {"positions below 0": 'return library_rotary(x, np.abs(at), pairs="halves")'},
    "softmax_backward": {
        "small weights": """
            d = weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))
            return np.where((weights < 1e-3) & (weights > 0), 0, d).astype(weights.dtype)
            """,
    },
    "delta_step": {"large errors": "return S + rate * np.outer(k, np.clip(v - k @ S, -10, 10))"},
    "online_softmax": {
        "ties": """
            m = max(largest, scores.max())
            if m == largest and m in scores:
                scores = np.where(scores == m, -np.inf, scores)
            if m == -np.inf:
                return largest, total, output
            w, c = np.exp(scores - m), np.exp(largest - m)
            return m, c * total + w.sum(), c * output + w @ values
            """,
    },
}


@pytest.mark.parametrize(
    ("name", "what"), [(name, what) for name, wrong in RARE.items() for what in wrong], ids="-".join
)
def test_what_is_wrong_in_rare_cases_is_refused(name, what):
    exercise = replace(EXERCISES[name], library=())
    exercise = replace(exercise, scope={**exercise.scope, "library_rotary": rotary})
    source = textwrap.indent(exercise.body({"": RARE[name][what]}), "    ")
    names = cell(f"def {exercise.function_name}({exercise.takes}):\n{source}\n", exercise.names())
    result = run(exercise, names[exercise.function_name])
    assert result.passed is False, result.message


def test_a_keyword_of_the_library_that_does_the_exercise_is_no_solution():
    body = 'positions.rotary(x, at, pairs="halves")'
    result = checked("rotary_halves", body)
    assert (result.passed, result.misconception) == (False, "the library's own"), result.message
    assert '`positions.rotary(…, pairs="halves")` is the library\'s own' in result.message
    assert checked("rotary_halves", EXERCISES["rotary_halves"].body({})).passed is True


def test_a_copy_of_the_arguments_lies_in_memory_as_they_do():
    assert copied([np.ones((3, 2)).T])[0].flags["F_CONTIGUOUS"]


def test_a_place_is_told_beside_minus_infinity_and_never_against_the_number_shown():
    right = np.array([[1000.0, -np.inf], [1, 1]])
    assert places(np.add(right, [[0, 0], [1, 1]]), right) == "Row 1 is wrong, the others right."
    assert places(np.add(right, [[0.05, 0], [0.01, 0.01]]), right) == "", "its first row is off by most"
