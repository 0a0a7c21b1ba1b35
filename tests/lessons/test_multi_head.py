"""The numbers that the labs of notebook 03 compute, and its live figures, on small models."""

import itertools

import numpy as np
import pytest

from lesson_utils.lessons.multi_head import circle, experiment, lab
from lesson_utils.maths import gradcheck, models, tasks


def make(num_heads, seed=0):
    sizes = {"d_model": 32, "num_heads": num_heads, "num_layers": 1, "d_ff": 16}
    config = models.EncoderConfig(vocab=23, classes=23, outputs=4, positions="learned", max_length=24, **sizes)
    return models.Encoder(config, np.random.default_rng(seed))


def test_main_offset_goes_the_short_way_round():
    assert [experiment.main_offset(0.9 * np.eye(24)[o]) for o in (0, 1, 12, 13, 23)] == ["+0", "+1", "+12", "−11", "−1"]
    assert experiment.main_offset(np.full(24, 1 / 24)) == ""


def examined(monkeypatch, num_heads, sequences, answer):
    """Examine a model that answers what a function makes of the source, (n, T, 4)."""
    model = make(num_heads)
    real = model.forward
    monkeypatch.setattr(model, "forward", lambda source, **named: (np.eye(23)[answer(source)], real(source)[1]))
    return lab.examine(model, sequences)


def test_examine_counts_what_is_right(monkeypatch):
    """A model that knows the four symbols but gives them in another order."""
    places = (np.arange(24)[:, None] + np.roll(lab.OFFSETS, 1)) % 24
    result = examined(monkeypatch, 2, 20, lambda source: source[:, places])
    assert result.among == 1
    assert result.accuracy == pytest.approx(0.05, abs=0.02)
    assert result.maps.shape == (2, 24, 24)
    np.testing.assert_allclose(result.profile.sum(axis=-1), 1, rtol=1e-5)
    assert 1 / 24 < result.sharpness < 1


def test_examine_keeps_the_offsets_apart(monkeypatch):
    """A model that is right at the third offset only."""

    def answer(source):
        return np.roll(source, -lab.OFFSETS[2], axis=1)[..., None] * np.array([0, 0, 1, 0])

    result = examined(monkeypatch, 1, 5, answer)
    np.testing.assert_array_equal(result.right, [0, 0, 1, 0])
    assert (result.accuracy, result.among, result.diversity) == (0.25, 0.25, None)


def test_a_model_runs_on_any_multi_head_attention():
    model = make(4)
    usual, by_ours = lab.examine(model, 20), lab.examine(model, 20, experiment.self_attention)
    np.testing.assert_allclose(by_ours.maps, usual.maps, rtol=1e-5)
    np.testing.assert_array_equal(by_ours.right, usual.right)
    nothing = lab.examine(model, 20, lambda x, *_: (0 * x, np.zeros((len(x), 4, 24, 24))))
    assert nothing.maps.max() == 0
    again = lab.examine(model, 20)
    np.testing.assert_array_equal(again.maps, usual.maps)  # the model is what it was


@pytest.mark.parametrize("multi_head", [None, experiment.self_attention])
def test_a_head_without_its_rows_counts_for_nothing(multi_head):
    model = make(4)
    source, target = experiment.held_out(20)
    with models.trying(model, {"encoder": {0: [1, 2]}}):
        right = (model.forward(source)[0].argmax(axis=-1) == target).mean(axis=(0, 1))
    without = lab.examine(model, 20, multi_head, knock_out=[1, 2])
    np.testing.assert_array_equal(without.right, right)
    assert (without.right != lab.examine(model, 20).right).any()


def test_diversity_is_0_for_equal_and_1_for_disjoint_heads():
    a, b, c = np.eye(4)[[0, 1, 2]], np.eye(4)[[3, 3, 3]], np.full((3, 4), 0.25)
    for heads, found in (((a, a), 0), ((a, b), 1), ((a, c), 0.75), ((a, b, c), (1 + 0.75 + 0.75) / 3)):
        assert experiment.diversity(np.stack(heads)) == pytest.approx(found)
    of_a_batch = np.stack([[a, a], [b, c]], axis=1)  # (B, h, T_q, T_k)
    assert experiment.diversity(of_a_batch) == pytest.approx((1 + 0.75) / 2)
    with pytest.raises(ValueError, match="one head has nothing to differ from"):
        experiment.diversity(a[None])


def test_keys_in_four_dimensions_are_spread_as_well_as_the_24_cell():
    """Its corners, all ±e_i ± e_j, are the best arrangement known: each has 8 neighbours at 60°."""
    pairs = itertools.combinations(range(4), 2)
    corners = [a * np.eye(4)[i] + b * np.eye(4)[j] for i, j in pairs for a, b in itertools.product((1, -1), repeat=2)]
    likeness = np.array(corners) @ corners[0] / 2
    best = circle.score_needed(4)
    assert np.exp(best * (likeness - 1)).sum() == pytest.approx(1 / 0.9, rel=0.005)


def test_more_dimensions_need_smaller_scores():
    """24 keys can't do better than the corners of a simplex, at equal distances, in 23 dimensions."""
    assert circle.score_needed(2) > circle.score_needed(4) > circle.score_needed(8) > 23 / 24 * np.log(9 * 23)
    np.testing.assert_allclose(np.linalg.norm(circle.spread_keys(8), axis=1), 1)


def test_a_scrambled_head_sees_six_neighbours_only():
    """Four heads on 24 tokens: what happens to a token reaches those of its own six, and no others."""
    model = lab.scramble(make(4))
    source, _ = experiment.held_out(1)
    changed = source.copy()
    changed[0, 8] = 3 if source[0, 8] != 3 else 4
    moved = (model.forward(source)[0] != model.forward(changed)[0]).any(axis=(0, 2, 3))  # (T,)
    np.testing.assert_array_equal(np.flatnonzero(moved), np.arange(6, 12))


def test_a_scrambled_model_has_the_right_gradients():
    model, rng = lab.scramble(make(2)), np.random.default_rng(0)
    batch, params = tasks.gather(rng, 2), model.params()
    for param in params.values():
        param.value = param.value.astype(np.float64)
        param.grad = np.zeros_like(param.value)
    gradcheck.check_params(lambda: model.loss_and_grad(batch), params, rng, samples=2)


@pytest.mark.slow
def test_the_steps_of_splitting_end_where_they_began():
    figure = lab.split_lab()
    for heads in (2, 3):
        alts = [figure.set(heads=heads, step=step).alt for step in range(1, 5)]
        shapes = [alt.partition(", shape ")[2].partition(". ")[0] for alt in alts]
        assert shapes[0] == shapes[2] == f"(4, {heads}, {6 // heads})"
        assert shapes[1] == f"({heads}, 4, {6 // heads})"
        assert "Entry 25 moves from [2, 5] to " in alts[0]
        assert "to [2, 5]. All entries now: [[0, 1, 2," in alts[3]


def test_titles_say_what_the_numbers_say():
    assert "What is lost" in lab.removal_plot(np.full((4, 4), 0.9)).alt
    profile = np.zeros((1, 24))
    profile[0, list(lab.OFFSETS)] = np.array([4, 1, 8, 2]) / 15  # digits, but not the first at the first offset
    result = lab.examine(make(1), 5)._replace(profile=profile)
    assert "binary digits: 8 : 4 : 2 : 1" in lab.digits({"found": result}).alt
    assert "not all equal" in lab.digits({"found": result._replace(profile=profile[:, ::-1])}).alt


def test_one_head_alone_can_not_be_compared():
    with pytest.raises(ValueError, match=r"by_heads holds models with \(1,\) heads; run the cell"):
        lab.heads_lab({1: make(1)}, experiment.self_attention)
