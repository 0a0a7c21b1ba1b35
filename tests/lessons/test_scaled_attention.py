"""What notebook 02 says of random queries and keys holds in three draws; its figures show what the formula gives."""

import numpy as np
import pytest

from lesson_utils.lessons.scaled_attention import bank, formula, lab, variance
from lesson_utils.maths import attention, ops


def quantiles(num_keys, d_k, scaled, seed):
    return np.quantile(lab.looks(num_keys, d_k, scaled, seed).slopes, [0.05, 0.5, 0.95])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_slopes_in_other_draws(seed):
    """Unscaled, the median is the larger one up to some d_k, which grows with the number of keys; scaled is even."""
    turns, d_ks = [], variance.D_KS[1:]
    for num_keys in lab.NUM_KEYS:
        medians = [[quantiles(num_keys, d_k, scaled, seed)[1] for scaled in (False, True)] for d_k in d_ks]
        larger = [unscaled > scaled for unscaled, scaled in medians]
        turns.append(larger.index(False) if False in larger else len(larger))
        for d_k in (64, 128, 256, 512):
            low, _, high = quantiles(num_keys, d_k, True, seed)
            lowest, _, highest = quantiles(num_keys, d_k, False, seed)
            assert high < 1.6 * low
            assert highest > max(12 * lowest, 0.3)
    assert turns == sorted(turns)
    assert d_ks[turns[1]] == 64
    assert turns[3] >= d_ks.index(256)
    unscaled, scaled = (quantiles(512, 64, s, seed)[1] for s in (False, True))
    assert 2.5 < unscaled / scaled < 5
    at_query = [np.median(variance.slopes_at_query(512, 64, s, seed)) for s in (False, True)]
    assert at_query[0] > 15 * at_query[1]


def test_slopes_are_those_of_the_definition():
    num_keys, d_k, query = 8, 4, 70  # the second sequence's
    for scaled in (False, True):
        factor = 1 / 2 if scaled else 1
        w = ops.softmax(lab.raw_scores(d_k, num_keys)[query] * factor)
        J = np.diag(w) - np.outer(w, w)
        assert lab.looks(num_keys, d_k, scaled).slopes[query] == pytest.approx(np.linalg.norm(J))
        draw = np.random.default_rng(0)
        q, k = (draw.standard_normal((4, n, 512), np.float32).astype(float) for n in (64, lab.NUM_KEYS[-1]))
        keys = k[1, :num_keys, :d_k]
        np.testing.assert_allclose(keys @ q[1, query - 64, :d_k], lab.raw_scores(d_k, num_keys)[query], rtol=1e-4)
        found = variance.slopes_at_query(num_keys, d_k, scaled)[query]
        assert found == pytest.approx(np.linalg.norm(J @ keys) * factor, rel=1e-5)


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        ([[0, 0], [2, 0], [1, 1], [2, 2], [0, 2]], {(0, 0), (2, 0), (2, 2), (0, 2)}),
        ([[0, 0], [1, 1], [2, 2], [1, 1]], {(0, 0), (2, 2)}),  # what a learner may make of it: all in one line
        ([[1, 1], [1, 1]], {(1, 1)}),
    ],
)
def test_the_hull_of_any_points(points, corners):
    assert {tuple(corner) for corner in bank.convex_hull(np.array(points, float))} == corners


def test_the_formula_in_numbers_is_the_formula():
    attend = attention.scaled_dot_product_attention
    alt = lab.formula_lab(attend, query="it", d_k=2, temperature=1.0, hidden="the first").picture.alt
    mask = np.array([[False, True, True]] * 3)
    Q, K = formula.QUERIES[:, :2], formula.KEYS[:, :2]
    output, weights = attend(Q, K, formula.VALUES, mask)
    assert f"scores {Q[2] @ K[0]:.1f}" in alt
    assert f"cat 0.00, saw {weights[2, 1]:.2f}, it {weights[2, 2]:.2f}" in alt
    assert f"output ({output[2, 0]:.2f}, {output[2, 1]:.2f})" in alt
