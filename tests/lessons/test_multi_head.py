"""The numbers that the labs of notebook 03 compute, and its live figures, on small models."""

import itertools
import re
from functools import partial

import numpy as np
import pytest

from lesson_utils.lessons.multi_head import circle, experiment, lab
from lesson_utils.maths import models, tasks, training


def make(num_heads, seed=0):
    sizes = {"d_model": 32, "num_heads": num_heads, "num_layers": 1, "d_ff": 16}
    config = models.EncoderConfig(vocab=23, classes=23, outputs=4, positions="learned", max_length=24, **sizes)
    return models.Encoder(config, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def trained():
    """Not much, and with fewer heads than in the notebook."""
    found = {h: make(h) for h in (1, 2, 4)}
    for model in found.values():
        training.fit(model, partial(tasks.gather, batch=8), 3, lr=3e-3, progress=False)
    return found


def test_offsets_are_those_of_the_task():
    source, target = experiment.held_out(3)
    for n, offset in enumerate(lab.OFFSETS):
        assert -12 < offset <= 12
        np.testing.assert_array_equal(target[:, :, n], np.roll(source, -offset, axis=1))
    assert [lab.signed(o) for o in lab.OFFSETS] == ["+1", "+12", "−1", "+10"]


def test_by_offset_finds_the_diagonal():
    weights = 0.75 * np.eye(5)[(np.arange(5) + 2) % 5] + 0.25 * np.eye(5)[(np.arange(5) - 1) % 5]  # (5, 5)
    np.testing.assert_allclose(
        experiment.by_offset(np.stack([weights, weights.T])), [[0, 0, 0.75, 0, 0.25], [0, 0.25, 0, 0.75, 0]]
    )


def test_main_offset_goes_the_short_way_round():
    assert [lab.main_offset(0.9 * np.eye(24)[o]) for o in (0, 1, 12, 13, 23)] == ["+0", "+1", "+12", "−11", "−1"]
    assert lab.main_offset(np.full(24, 1 / 24)) == ""


def test_examine_counts_what_is_right(monkeypatch):
    """A model that knows the four symbols but gives them in another order."""
    model = make(2)
    real = model.forward

    def forward(source, **named):
        _, cache = real(source)
        answers = source[:, (np.arange(24)[:, None] + np.roll(lab.OFFSETS, 1)) % 24]  # (n, T, 4)
        return np.eye(23)[answers], cache

    monkeypatch.setattr(model, "forward", forward)
    result = lab.examine(model, 20)
    assert result.among == 1
    assert result.accuracy == pytest.approx(0.05, abs=0.02)
    assert result.maps.shape == (2, 24, 24)
    np.testing.assert_allclose(result.profile.sum(axis=-1), 1, rtol=1e-5)
    assert 1 / 24 < result.sharpness < 1


def test_examine_keeps_the_offsets_apart(monkeypatch):
    """A model that is right at the third offset only."""
    model = make(1)
    real = model.forward

    def forward(source, **named):
        answers = np.zeros((*source.shape, 4), int)
        answers[..., 2] = np.roll(source, -lab.OFFSETS[2], axis=1)
        return np.eye(23)[answers], real(source)[1]

    monkeypatch.setattr(model, "forward", forward)
    result = lab.examine(model, 5)
    np.testing.assert_array_equal(result.right, [0, 0, 1, 0])
    assert (result.accuracy, result.among, result.diversity) == (0.25, 0.25, None)


def test_diversity_is_0_for_equal_and_1_for_disjoint_heads():
    a, b, c = np.eye(4)[[0, 1, 2]], np.eye(4)[[3, 3, 3]], np.full((3, 4), 0.25)
    assert experiment.diversity(np.stack([a, a])) == 0
    assert experiment.diversity(np.stack([a, b])) == 1
    assert experiment.diversity(np.stack([a, c])) == 0.75
    assert experiment.diversity(np.stack([a, b, c])) == pytest.approx((1 + 0.75 + 0.75) / 3)
    assert experiment.diversity(np.stack([[a, a], [b, c]], axis=1)) == pytest.approx(
        (1 + 0.75) / 2
    )  # leading axis: a batch
    with pytest.raises(ValueError, match="one head has nothing to differ from"):
        experiment.diversity(a[None])


def test_score_needed_in_the_plane():
    """On a circle of 24 keys the score gives the weight that was asked for."""
    scores = circle.score_needed(2) * np.cos(2 * np.pi * np.arange(24) / 24)
    assert np.exp(scores[0]) / np.exp(scores).sum() == pytest.approx(0.9, abs=1e-4)


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


def test_a_head_that_is_knocked_out_is_as_one_without_its_rows_of_w_o(trained):
    model = trained[4]
    without = lab.examine(model, 20, knock_out=[2])
    W_O = model.stack.blocks[0].attention.inner.W_O
    kept = W_O.value.copy()
    W_O.value[16:24] = 0
    np.testing.assert_array_equal(without.right, lab.examine(model, 20).right)
    W_O.value[...] = kept


def test_a_scrambled_head_sees_six_neighbours_only():
    """Four heads on 24 tokens: what happens to a token reaches those of its own six, and no others."""
    model = lab.scramble(make(4))
    source, _ = experiment.held_out(1)
    changed = source.copy()
    changed[0, 8] = 3 if source[0, 8] != 3 else 4
    moved = (model.forward(source)[0] != model.forward(changed)[0]).any(axis=(0, 2, 3))  # (T,)
    np.testing.assert_array_equal(np.flatnonzero(moved), np.arange(6, 12))


def test_a_scrambled_model_has_the_right_gradients():
    model = lab.scramble(make(2))
    batch = tasks.gather(np.random.default_rng(0), 2)
    params = model.params()
    for param in params.values():
        param.value = param.value.astype(np.float64)
        param.grad = np.zeros_like(param.value)
    model.loss_and_grad(batch)
    for name in ("W_Q", "W_V", "W_O"):
        param = params[f"stack.blocks.0.attention.inner.{name}"]
        value = param.value[3, 5]
        losses = []
        for step in (1e-5, -1e-5):
            param.value[3, 5] = value + step
            losses.append(model.loss(batch))
        param.value[3, 5] = value
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(param.grad[3, 5], rel=1e-3, abs=1e-7)


def test_the_scrambled_picture_counts_misplaced_rows():
    x = lab.named_entries()
    picture = lab.scrambled(x.reshape(4, 2, 3).swapaxes(0, 1), x.reshape(2, 4, 3))
    assert "With the swap: 0 of 8 rows misplaced" in picture.alt
    assert "Without it: 6 of 8 rows misplaced: head 0 holds tokens [0, 0, 1, 1]" in picture.alt


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


def test_the_drawing_of_two_heads_fits_its_paper():
    picture = lab.heads_drawn()
    assert "(4, 6)" in picture.alt


def test_titles_say_what_the_numbers_say(trained):
    results = {h: [lab.examine(model, 20)] for h, model in trained.items()}
    picture = lab.accuracy_plot(results, {h: [3.0] * 20 for h in results})
    assert "Share of right answers by number of heads, each start: 1: 0." in picture.alt
    ideal = np.where(np.eye(4), 0.05, 1.0)
    assert "one offset is lost, and no other" in lab.removal_plot(ideal).alt
    assert "without head 2: {'+1': 0.0, '+12': 0.0, '−1': 0.95, '+10': 0.0}" in lab.removal_plot(ideal).alt
    assert "What is lost" in lab.removal_plot(np.full((4, 4), 0.9)).alt


def test_the_blurred_row_is_the_models_own(trained):
    source, _ = experiment.held_out(1)
    row = trained[1].maps(trained[1].forward(source)[1])["encoder"][0][0, 0, 7]
    alt = lab.one_head_blurs(trained[1], source, query=7).alt
    assert f"Query 7 gets one average: {row[8]:.2f} {lab.SYMBOLS.decode(source[0])[8]} + " in alt


def test_digits_are_called_digits_if_they_are(trained):
    result = lab.examine(trained[1], 5)
    binary = np.zeros((1, 24))
    binary[0, list(lab.OFFSETS)] = np.array([2, 8, 1, 4]) / 15
    assert "binary digits: 8 : 4 : 2 : 1" in lab.digits({"found": result._replace(profile=binary)}).alt
    assert "not all equal" in lab.digits({"found": result._replace(profile=binary[:, ::-1])}).alt


def test_one_head_alone_can_not_be_compared(trained):
    with pytest.raises(ValueError, match=r"trained holds models with \(1,\) heads; run the cell"):
        lab.heads_lab({1: trained[1]})


# --- The live figures that are made from models ----------------------------------------------------------------------


def test_weights_in_the_alternative_text_are_the_models_own(trained):
    source, _ = experiment.held_out(1)
    weights = trained[4].maps(trained[4].forward(source)[1])["encoder"][0][0, 3, 7]
    alt = lab.one_head_lab(trained[4], head=3, query=7).picture.alt
    assert f"' at 8 {weights[8]:.2f}" in alt
    assert [int(place) for place in re.findall(r"' at (\d+) 0\.\d\d", alt)] == [8, 19, 6, 17]
    assert f"' at 17 {weights[17]:.2f}" in alt
