"""What notebook 02 says of random queries and keys holds in three draws; its tools do what they say."""

import numpy as np
import pytest

from lesson_utils.lessons.scaled_attention import lab
from lesson_utils.maths import ops, tasks, training


def quantiles(num_keys, d_k, scaled, seed):
    return lab.looks(num_keys, d_k, d_k**-0.5 if scaled else 1.0, seed).quantiles()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_slopes_in_other_draws(seed):
    """Unscaled, the median is the larger one up to some d_k, which grows with the number of keys; scaled is even."""
    turns, d_ks = [], lab.D_KS[1:]
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


def test_slopes_are_those_of_the_definition():
    num_keys, d_k, query = 8, 4, 70  # the second sequence's
    for factor in (1.0, 1 / 2):
        w = ops.softmax(lab.raw_scores(d_k, num_keys)[query] * factor)
        J = np.diag(w) - np.outer(w, w)
        assert lab.looks(num_keys, d_k, factor).slopes[query] == pytest.approx(np.linalg.norm(J))
        draw = np.random.default_rng(0)
        q, k = (draw.standard_normal((4, n, 512), np.float32).astype(float) for n in (64, lab.NUM_KEYS[-1]))
        keys = k[1, :num_keys, :d_k]
        np.testing.assert_allclose(keys @ q[1, query - 64, :d_k], lab.raw_scores(d_k, num_keys)[query], rtol=1e-4)


@pytest.mark.parametrize("d_k", [16, 256])
def test_scores_begin_with_a_variance_of_d_k(d_k):
    _, head = lab.untrained(d_k, seed=1)
    x = np.random.default_rng(0).standard_normal((4000, 64))
    q, k = x[:2000] @ head.W_Q.value, x[2000:] @ head.W_K.value
    assert np.var((q * k).sum(axis=-1)) == pytest.approx(d_k, rel=0.2)


def test_a_pace_shortens_the_steps_of_its_parameters_alone():
    moved = {}
    for pace in (1.0, 0.25):
        model, head = lab.untrained(16, seed=0)
        paced = lab.paced((head.W_Q,), 2.0, pace)
        before = head.W_Q.value.copy(), head.W_V.value.copy()
        training.fit(model, lambda rng: tasks.gather(rng, 4), 1, lr=0.01, callback=paced, progress=False)
        moved[pace] = head.W_Q.value - before[0], head.W_V.value - before[1]
    np.testing.assert_allclose(moved[0.25][0], moved[1.0][0] / 4, atol=1e-6)
    np.testing.assert_array_equal(moved[0.25][1], moved[1.0][1])


def test_a_model_that_has_not_learned_knows_what_guessing_gives():
    model, _ = lab.untrained(64, seed=0)
    known, weights = lab.examine(model, 1 / 8)
    assert known == pytest.approx(4 / 23, abs=0.06)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
