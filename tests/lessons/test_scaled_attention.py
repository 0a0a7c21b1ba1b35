"""What notebook 02 says of random queries and keys holds in three draws; its figures show what the formula gives."""

import numpy as np
import pytest

from lesson_utils.lessons.scaled_attention import averages, formula, lab, variance
from lesson_utils.maths import attention, ops


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_little_spread_does_no_harm_and_a_lot_does(seed):
    for d_k in variance.D_KS[1:]:
        without, scaled = (np.median(lab.softmax_health(d_k, scaled=s, seed=seed).gradients) for s in (False, True))
        assert (without > scaled) == (d_k <= 32), d_k


def test_gradients_are_those_of_the_definition():
    d_k, query = 4, 7
    health = lab.softmax_health(d_k, scaled=True)
    weights = ops.softmax(lab.raw_scores(d_k)[query] / 2)
    J = np.diag(weights) - np.outer(weights, weights)
    assert health.gradients[query] == pytest.approx(np.linalg.norm(J))
    _, products = variance._random_pairs(0)[d_k]
    assert health.query_gradients[query] == pytest.approx(np.sqrt(np.trace(J @ products[query] @ J.T)) / 2)


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        ([[0, 0], [2, 0], [1, 1], [2, 2], [0, 2]], {(0, 0), (2, 0), (2, 2), (0, 2)}),
        ([[0, 0], [1, 1], [2, 2], [1, 1]], {(0, 0), (2, 2)}),  # what a learner may make of it: all in one line
        ([[1, 1], [1, 1]], {(1, 1)}),
    ],
)
def test_the_hull_of_any_points(points, corners):
    assert {tuple(corner) for corner in averages._hull(np.array(points, float))} == corners


def test_every_output_lies_in_the_hull():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2))
    corners = averages._hull(X)
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
