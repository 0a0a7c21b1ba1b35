"""What notebook 02 says of random queries and keys holds in three draws; its figures show what the formula gives."""

import numpy as np
import pytest

from lesson_utils.lessons.scaled_attention import bank, formula, lab, variance
from lesson_utils.maths import attention, ops

SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])


def quantiles(num_keys, d_k, scaled, seed):
    return np.quantile(lab.looks(num_keys, d_k, scaled, seed).slopes, [0.05, 0.5, 0.95])


@pytest.mark.slow
@SEEDS
def test_where_the_median_slope_turns_depends_on_the_number_of_keys(seed):
    """Unscaled, the median is the larger one up to some d_k, which grows with the number of keys."""
    turns = []
    for num_keys in lab.NUM_KEYS:
        medians = [[quantiles(num_keys, d_k, scaled, seed)[1] for scaled in (False, True)] for d_k in variance.D_KS[1:]]
        larger = [unscaled > scaled for unscaled, scaled in medians]
        turns.append(larger.index(False) if False in larger else len(larger))
    assert turns == sorted(turns)
    assert variance.D_KS[1:][turns[1]] == 64
    assert turns[3] >= variance.D_KS[1:].index(256)


@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize("num_keys", lab.NUM_KEYS)
def test_scaled_slopes_are_even_at_every_length(num_keys, seed):
    for d_k in (64, 128, 256, 512):
        low, _, high = quantiles(num_keys, d_k, True, seed)
        loud = quantiles(num_keys, d_k, False, seed)
        assert high < 1.6 * low
        assert loud[2] > 12 * loud[0]
        assert loud[2] > 0.3


@pytest.mark.slow
@SEEDS
def test_with_512_keys_the_unscaled_median_is_larger(seed):
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
        keys = variance._draw(0)[1][1, :num_keys, :d_k].astype(float)
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


def test_every_output_lies_in_the_hull():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2))
    corners = bank.convex_hull(X)
    for y in ops.softmax(5 * rng.normal(size=(50, 6))) @ X:
        edges, to_y = np.roll(corners, -1, axis=0) - corners, y - corners
        assert (edges[:, 0] * to_y[:, 1] - edges[:, 1] * to_y[:, 0] > -1e-12).all()  # on the left of every edge


def test_the_formula_in_numbers_is_the_formula():
    attend = attention.scaled_dot_product_attention
    alt = lab.formula_lab(attend, query="it", d_k=2, temperature=1.0, hidden="the first").picture.alt
    mask = np.array([[False, True, True]] * 3)
    Q, K = formula.QUERIES[:, :2], formula.KEYS[:, :2]
    output, weights = attend(Q, K, formula.VALUES, mask)
    assert f"scores {Q[2] @ K[0]:.1f}" in alt
    assert f"cat 0.00, saw {weights[2, 1]:.2f}, it {weights[2, 2]:.2f}" in alt
    assert f"output ({output[2, 0]:.2f}, {output[2, 1]:.2f})" in alt
