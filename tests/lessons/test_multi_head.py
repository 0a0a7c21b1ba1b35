"""The numbers that the labs of notebook 03 compute, and its live figures, on small models."""

import itertools
import re
from functools import partial

import numpy as np
import pytest

from lesson_utils import attention, models, tasks, training
from lesson_utils.lessons.multi_head import lab


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
    source, target = lab.held_out(3)
    for n, offset in enumerate(lab.OFFSETS):
        assert -12 < offset <= 12
        np.testing.assert_array_equal(target[:, :, n], np.roll(source, -offset, axis=1))
    assert [lab.signed(o) for o in lab.OFFSETS] == ["+1", "+12", "−1", "+10"]


def test_guessing_is_the_mean_of_the_largest_count():
    """All bags of four, weighed by how often they are drawn."""
    exact = np.mean([max(map(bag.count, bag)) / 4 for bag in itertools.product(range(20), repeat=4)])
    assert lab.guessing() == pytest.approx(exact, abs=0.005)


def test_by_offset_finds_the_diagonal():
    weights = 0.75 * np.eye(5)[(np.arange(5) + 2) % 5] + 0.25 * np.eye(5)[(np.arange(5) - 1) % 5]  # (5, 5)
    np.testing.assert_allclose(
        lab.by_offset(np.stack([weights, weights.T])), [[0, 0, 0.75, 0, 0.25], [0, 0.25, 0, 0.75, 0]]
    )


def test_main_offset_goes_the_short_way_round():
    assert [lab.main_offset(0.9 * np.eye(24)[o]) for o in (0, 1, 12, 13, 23)] == ["+0", "+1", "+12", "−11", "−1"]
    assert lab.main_offset(np.full(24, 1 / 24)) == ""


def test_examine_counts_what_is_right(monkeypatch):
    """A model that knows the four symbols but gives them in another order."""
    model = make(2)
    real = model.forward

    def forward(source):
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

    def forward(source):
        answers = np.zeros((*source.shape, 4), int)
        answers[..., 2] = np.roll(source, -lab.OFFSETS[2], axis=1)
        return np.eye(23)[answers], real(source)[1]

    monkeypatch.setattr(model, "forward", forward)
    result = lab.examine(model, 5)
    np.testing.assert_array_equal(result.right, [0, 0, 1, 0])
    assert (result.accuracy, result.among, result.diversity) == (0.25, 0.25, None)


def test_diversity_is_0_for_equal_and_1_for_disjoint_heads():
    a, b, c = np.eye(4)[[0, 1, 2]], np.eye(4)[[3, 3, 3]], np.full((3, 4), 0.25)
    assert lab.diversity(np.stack([a, a])) == 0
    assert lab.diversity(np.stack([a, b])) == 1
    assert lab.diversity(np.stack([a, c])) == 0.75
    assert lab.diversity(np.stack([a, b, c])) == pytest.approx((1 + 0.75 + 0.75) / 3)
    assert lab.diversity(np.stack([[a, a], [b, c]], axis=1)) == pytest.approx((1 + 0.75) / 2)  # leading axis: a batch
    with pytest.raises(ValueError, match="one head has nothing to differ from"):
        lab.diversity(a[None])


def test_score_needed_in_the_plane():
    """On a circle of 24 keys the score gives the weight that was asked for."""
    scores = lab.score_needed(2) * np.cos(2 * np.pi * np.arange(24) / 24)
    assert np.exp(scores[0]) / np.exp(scores).sum() == pytest.approx(0.9, abs=1e-4)
    assert lab.score_needed(2) > lab.score_needed(4) > np.log(9 * 23) / 2


def test_a_removed_head_gives_nothing_and_the_model_stays_as_it_was(trained):
    model = trained[4]
    before = {name: param.value.copy() for name, param in model.params().items()}
    copy = lab.without_head(model, 2)
    for name, param in model.params().items():
        np.testing.assert_array_equal(param.value, before[name])
        same = copy.params()[name].value == param.value
        if name.endswith("W_O"):
            assert not copy.params()[name].value[16:24].any()
            assert same[:16].all()
            assert same[24:].all()
        else:
            assert same.all()


def test_single_heads_joined_are_multi_head_attention():
    rng = np.random.default_rng(0)
    x, (W_Q, W_K, W_V, W_O) = rng.normal(size=(2, 5, 6)), rng.normal(size=(4, 6, 6))
    heads = lab.single_heads(x, W_Q, W_K, W_V, 3)
    expected, _ = attention.multi_head_attention(x, x, W_Q, W_K, W_V, W_O, 3)
    np.testing.assert_allclose(np.concatenate(heads, axis=-1) @ W_O, expected, rtol=1e-12, atol=1e-12)


def test_the_scrambled_picture_counts_misplaced_rows():
    x = lab.named_entries()
    picture = lab.scrambled(x.reshape(4, 2, 3).swapaxes(0, 1), x.reshape(2, 4, 3))
    assert "With the swap: 0 of 8 rows misplaced" in picture.alt
    assert "Without it: 6 of 8 rows misplaced: head 0 holds tokens [0, 0, 1, 1]" in picture.alt


def test_the_steps_of_splitting_end_where_they_began():
    figure = lab.split_lab()
    for heads in (2, 3):
        shapes = [figure.set(heads=heads, step=step).alt.partition("shape ")[2] for step in range(5)]
        assert shapes[0] == shapes[4]
        assert shapes[1] == shapes[3] != shapes[2]
        assert shapes[2].startswith(f"({heads}, 4, {6 // heads})")


def test_titles_say_what_the_numbers_say(trained):
    results = {h: lab.examine(model, 20) for h, model in trained.items()}
    assert (
        "Share of right answers by number of heads: 1: 0."
        in lab.accuracy_plot(results, {h: [3.0] * 20 for h in results}).alt
    )
    assert "Mean weight by offset: +1: " in lab.blurred_map(results[1]).alt
    ideal = np.where(np.eye(4), 0.05, 1.0)
    assert "one offset is lost, and no other" in lab.removal_plot(ideal).alt
    assert "without head 2: {'+1': 1.0, '+12': 1.0, '−1': 0.05, '+10': 1.0}" in lab.removal_plot(ideal).alt
    assert "What is lost" in lab.removal_plot(np.full((4, 4), 0.9)).alt


def test_one_head_alone_can_not_be_compared(trained):
    with pytest.raises(ValueError, match=r"trained holds models with \(1,\) heads; run the cell"):
        lab.heads_lab({1: trained[1]})


# --- The live figures that are made from models ----------------------------------------------------------------------


def test_weights_in_the_alternative_text_are_the_models_own(trained):
    source, _ = lab.held_out(1)
    weights = trained[4].maps(trained[4].forward(source)[1])["encoder"][0][0, 3, 7]
    alt = lab.one_head_lab(trained[4], head=3, query=7).picture.alt
    assert f"' at 8 {weights[8]:.2f}" in alt
    assert [int(place) for place in re.findall(r"' at (\d+) 0\.\d\d", alt)] == [8, 19, 6, 17]
    assert f"' at 17 {weights[17]:.2f}" in alt
