"""What notebook 04's labs compute, on settings small enough to check by hand."""

import numpy as np
import pytest

from lesson_utils.lessons.positional_encoding import lab
from lesson_utils.maths import models, positions

L = 8


def gpt(kind="sinusoidal", seed=0):
    config = models.GPTConfig(vocab=lab.RECALL_VOCABULARY, d_model=16, num_heads=2, positions=kind, max_length=2 * L)
    return models.GPT(config, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", lab.KINDS)
def test_by_position_agrees_with_the_model_itself(kind):
    model, batch = gpt(kind), lab.recall(np.random.default_rng(1), 5, 2 * L)
    result = lab.by_position(model, batch)
    assert result.correct.shape == result.bits.shape == (2 * L,)
    np.testing.assert_allclose(result.bits.mean() * np.log(2), model.loss(batch), rtol=1e-5)
    logits, _ = model.forward(batch[0])
    np.testing.assert_allclose(result.correct, (logits.argmax(-1) == batch[1]).mean(axis=0))
    wide = lab.by_position(model, batch, window=2 * L)  # as many as there are: hides nothing
    np.testing.assert_allclose(wide.bits, result.bits)


def test_a_window_hides_what_is_further_away():
    """A window of 1 leaves a token only itself: without positions, equal tokens then get equal answers."""
    ids = np.full((1, 2 * L), 3)
    ids[0, 2] = 5
    bits = lab.by_position(gpt("none"), (ids, np.full_like(ids, 4)), window=1).bits
    assert np.ptp(np.delete(bits, 2)) < 1e-5
    first = lab.by_position(gpt("none"), (ids, np.full_like(ids, 4)), window=3).bits
    # Two layers of three keys reach four back: behind position 6 nobody has heard of position 2.
    assert np.ptp(first[7:]) < 1e-5 < abs(first[6] - first[7])


def test_a_rotary_model_runs_on_any_rotation():
    model, batch = gpt("rotary"), lab.recall(np.random.default_rng(1), 5, 2 * L)
    usual = lab.by_position(model, batch)
    np.testing.assert_allclose(lab.by_position(model, batch, rotate=positions.rotary).bits, usual.bits, rtol=1e-5)
    still = lab.by_position(model, batch, rotate=lambda x, at: x).bits  # nothing is turned
    assert np.abs(still - usual.bits).max() > 1e-3
    np.testing.assert_array_equal(lab.by_position(model, batch).bits, usual.bits)  # the model is what it was


def steps(*levels):
    return np.repeat(levels, (L, L // 2, L // 2)).astype(float)


def test_the_title_of_the_length_plot_says_who_gets_worse():
    one_holds = {"learned": steps(1, 0.2, 0.1), "rotary": steps(1, 1, 0.97)}
    alt = lab.length_plot(one_holds, "share correct", max).alt
    assert alt.startswith("Worse beyond 7: learned. Share correct by position")
    all_hold = {"alibi": steps(2.7, 2.6, 2.5)}
    assert lab.length_plot(all_hold, "bits", min).alt.startswith("Worse beyond 7 by more than 0.2 bits: none of them.")


def test_one_row_twice_is_noticed():
    verdict = lab.verdicts(lambda length: {"remainder": np.eye(5)[np.arange(length) % 5]})["remainder"]
    assert not verdict["rows differ"]
    assert verdict["bounded"]


@pytest.mark.slow
def test_turned_hands_keep_their_angle_wherever_they_stand():
    figure = lab.rotary_lab()
    assert len({figure.set(position=m, distance=7).alt.partition(": ")[2] for m in (40, 70, 100)}) == 1
    assert "q · k = 1.00 at distance 5" in figure.set(distance=5).alt


def test_share_of_the_offset():
    """All of it, if both matrices leave the rows as they are; some of it after random matrices."""
    model = gpt()
    inner = model.heads()["decoder"][0]
    assert (lab.share_of_offset(model, 2 * L) < 0.95).all()
    for W in (inner.W_Q, inner.W_K):
        W.value[...] = np.eye(16)
    table = positions.sinusoidal_encoding(2 * L, 16)[:, :8]
    S = table @ table.T
    assert lab.diagonal_spread(S) < 1e-9
    shares = lab.share_of_offset(model, 2 * L)
    keys = [S[t, : t + 1] - S[t, : t + 1].mean() for t in range(2 * L)]  # what softmax sees
    offsets = [np.mean([keys[t][t - n] for t in range(n, 2 * L)]) for n in range(2 * L)]
    left = sum(((keys[t] - np.array(offsets[t::-1])) ** 2).sum() for t in range(2 * L))
    np.testing.assert_allclose(shares[0], 1 - left / sum((row**2).sum() for row in keys))


def test_words_are_compared_and_not_rows():
    before = np.arange(6.0).reshape(3, 2)
    swapped = before[[2, 1, 0]]
    assert lab.two_sentences(["a", "b", "c"], [2, 1, 0], before, swapped).alt.startswith("3 of 3 words keep")
    other = swapped.copy()
    other[0] += 1
    assert lab.two_sentences(["a", "b", "c"], [2, 1, 0], before, other).alt.endswith("has changed: c.")


def test_weights_by_offset_and_their_share_on_whole_turns_of_the_fastest_hand():
    assert lab.on_turns(64) == [5, 11, 18, 24, 30, 36, 43, 49, 55, 62]
    offsets = lab.by_offset(np.tril(np.arange(16.0).reshape(4, 4)))
    np.testing.assert_array_equal(offsets[[1, 3]], [[5, 4, 0, 0], [15, 14, 13, 12]])
    offsets = np.zeros((12, 12))
    offsets[:, [5, 6]] = 0.75, 0.25
    share, even = lab.share_on_turns(offsets)
    np.testing.assert_allclose(share, 0.75)
    np.testing.assert_allclose(even[[4, 5, 11]], [0, 1 / 6, 2 / 12])


def test_hands_that_see_distances_of_their_own():
    """The true distances: the model itself. None at all: no positions. Half of them: half the rate."""
    model, batch = gpt("rotary"), lab.recall(np.random.default_rng(1), 20, 2 * L)
    apart = np.arange(2 * L)[:, None] - np.arange(2 * L)
    usual = lab.by_position(model, batch).correct
    np.testing.assert_array_equal(lab.with_hands(model, batch, [apart] * 4), usual)
    still = lab.by_position(model, batch, rotate=lambda x, at: x).correct
    np.testing.assert_array_equal(lab.with_hands(model, batch, [0 * apart] * 4), still)
    rates = positions.wavelengths(8)[0] / positions.wavelengths(8) / [1, 2, 2, 1]

    def slowly(x, at):
        pairs = [positions.rotary(x[..., 2 * i : 2 * i + 2], at * rate) for i, rate in enumerate(rates)]
        return np.concatenate(pairs, axis=-1)

    slowed = lab.by_position(model, batch, rotate=slowly).correct
    np.testing.assert_array_equal(lab.with_hands(model, batch, [apart, apart / 2, apart / 2, apart]), slowed)
    stopped = np.where(apart > 2, 2, apart)
    one = lab.with_hands(model, batch, [stopped, apart, apart, apart])
    np.testing.assert_array_equal(one[:3], usual[:3])
    assert (one != usual).any()


def test_the_hand_that_is_drawn_adds_its_part_of_the_score():
    model, (ids, _) = gpt("rotary"), lab.recall(np.random.default_rng(1), 20, 2 * L)
    parts = lab._parts(model, ids, L)
    assert parts.shape == (4,)
    model.heads()["decoder"][0].W_Q.value[...] = model.heads()["decoder"][1].W_Q.value[...] = 0
    np.testing.assert_array_equal(lab._parts(model, ids, L), 0)


def test_the_score_peaks_where_query_and_key_agree():
    alt = lab.score_by_distance(positions.rotary, best=9).alt
    assert alt.startswith("The score is highest 9 apart, and peaks again every 6 or 7 positions")
