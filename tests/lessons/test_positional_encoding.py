"""What notebook 04's labs compute, on settings small enough to check by hand."""

import base64
import io
import re

import numpy as np
import pytest

from lesson_utils.classroom import live
from lesson_utils.lessons.positional_encoding import lab, lengths, rotary, table
from lesson_utils.maths import models, ops, positions

L = 8


def gpt(kind="sinusoidal", seed=0):
    config = models.GPTConfig(vocab=lab.RECALL_VOCABULARY, d_model=16, num_heads=2, positions=kind, max_length=2 * L)
    return models.GPT(config, np.random.default_rng(seed))


def test_recall_reports_the_symbol_five_back():
    source, target = lab.recall(np.random.default_rng(0), 3, 12)
    assert source.shape == target.shape == (3, 12)
    assert (target[:, :5] == 0).all()
    for t in range(5, 12):
        np.testing.assert_array_equal(target[:, t], source[:, t - 5])
    many, _ = lab.recall(np.random.default_rng(0), 50, 12)
    assert set(many.ravel().tolist()) == set(range(3, lab.RECALL_VOCABULARY))


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


def test_the_loss_is_in_bits():
    model = gpt()
    ids = np.full((1, 4), 3)
    logits, _ = model.forward(ids)
    want = -np.log2(ops.softmax(logits)[0, :, 7])
    np.testing.assert_allclose(lab.by_position(model, (ids, np.full((1, 4), 7))).bits, want, rtol=1e-5)


def test_stretches_are_means_of_the_trained_length_and_two_halves():
    curve = np.arange(16.0)
    assert lab.stretches(curve) == (3.5, 9.5, 13.5)
    assert lab.stretches(curve, first=5) == (6, 9.5, 13.5)
    table = lab.stretch_table({"alibi": curve, "rotary": 2 * curve}, first=5).splitlines()
    assert table[0].split() == ["positions", "5–7", "8–11", "12–15"]
    assert table[1].split() == ["ALiBi", "6.00", "9.50", "13.50"]
    assert table[2].split() == ["rotary", "12.00", "19.00", "27.00"]


def steps(*levels):
    return np.repeat(levels, (L, L // 2, L // 2)).astype(float)


@pytest.mark.parametrize(
    ("curves", "best", "finding"),
    [
        (
            {"learned": steps(1, 0.2, 0.1), "rotary": steps(1, 1, 0.97), "none": steps(0.2, 0.2, 0.1)},
            max,
            "Worse beyond 7: learned; holds: rotary; never learnt it: none",
        ),
        ({"learned": steps(1, 0.2, 0.1), "rotary": steps(1, 1, 0.5)}, max, "Worse beyond 7: learned, rotary"),
        (
            {"alibi": steps(2.7, 2.6, 2.5), "none": steps(3, 3.1, 3.15), "rotary": steps(2.4, 2.4, 3)},
            min,
            "Worse beyond 7: rotary; hold: ALiBi, none",
        ),
        ({"alibi": steps(2.7, 2.6, 2.5)}, min, "Holds: ALiBi"),
    ],
)
def test_the_title_of_the_length_plot_says_who_held(curves, best, finding):
    picture = lab.length_plot(curves, "share correct", best)
    assert picture.alt.startswith(f"{finding}. Share correct by position")


def test_labels_of_curves_stand_apart_and_inside():
    for heights in ([0.1, 0.1, 0.12], [0.97, 0.98, 0.99], [0, 0.5, 1]):
        moved = np.array(lengths._apart(heights, 0.1, 0.0, 1.0))
        assert (np.diff(moved) >= 0.1 - 1e-9).all()
        assert moved[0] >= 0.05 - 1e-9
        assert moved[-1] <= 0.95 + 1e-9


def test_equivariance_gap_is_zero_only_without_positions():
    rng = np.random.default_rng(0)
    sizes = {"vocab": 9, "classes": 2, "d_model": 8, "num_heads": 2, "dtype": np.float64}
    ids = np.arange(6)[None]
    for kind in ("none", "sinusoidal", "learned", "rotary", "alibi"):
        encoder = models.Encoder(models.EncoderConfig(positions=kind, **sizes), rng)
        assert (lab.equivariance_gap(encoder, ids, rng, 5) < 1e-12) == (kind == "none")


def test_similarity_is_1_on_the_diagonal_and_follows_the_formula():
    S = table.similarity(8, 100, 32)
    np.testing.assert_allclose(np.diagonal(S), 1)
    rates = 100.0 ** (-np.arange(4) / 4)
    np.testing.assert_allclose(S[3, 20], np.cos(17 * rates).mean())


def test_diagonal_spread():
    assert rotary.diagonal_spread(np.array([[1, 2], [3, 1]])) == 0
    assert rotary.diagonal_spread(np.array([[1, 2], [3, 5]])) == 4
    np.testing.assert_allclose(rotary.diagonal_spread(positions.alibi_bias(2, 9)[0]), 0)


def test_score_maps_say_which_depend_on_the_offset_only():
    hidden = np.where(np.tri(4, dtype=bool), positions.alibi_bias(1, 4)[0], np.nan)
    alt = lab.score_maps(a=hidden, b=np.arange(16.0).reshape(4, 4), c=np.zeros((4, 4))).alt
    assert "a: scores with equal offset differ by up to 0, offset only" in alt
    assert "b: scores with equal offset differ by up to 15, place matters" in alt
    assert "c: scores with equal offset differ by up to 0, no positions" in alt


def test_the_two_sentences_count_the_words_that_keep_their_vector():
    before = np.arange(12.0).reshape(3, 4)
    after = before[[2, 1, 0]].copy()
    assert lab.two_sentences(["a", "b", "c"], [2, 1, 0], before, after).alt.startswith("3 of 3 words keep")
    after[1, 0] += 1
    alt = lab.two_sentences(["a", "b", "c"], [2, 1, 0], before, after, "with P").alt
    assert alt == "2 of 3 words keep their vector with P. Words whose vector has changed: b."


def test_each_first_idea_fails_one_requirement_and_sines_none():
    failed = {idea: [name for name, good in meets.items() if not good] for idea, meets in lab.verdicts().items()}
    assert failed == {
        "the number itself": ["bounded"],
        "number / length": ["same row at any length"],
        "binary digits": ["no jumps"],
        "sines and cosines": [],
    }


def test_one_row_twice_is_noticed():
    verdict = lab.verdicts(lambda length: {"remainder": np.eye(5)[np.arange(length) % 5]})["remainder"]
    assert not verdict["rows differ"]
    assert verdict["bounded"]


@pytest.mark.slow
def test_turned_hands_keep_their_angle_wherever_they_stand():
    figure = lab.rotary_lab()
    told = {figure.set(position=m, distance=7).alt.partition(",")[0] for m in (7, 30, 60)}
    assert len(told) == 1
    assert "q · k = 1.00 at distance 5" in figure.set(distance=5).alt


def test_stretching_changes_the_positions_and_nothing_else():
    model, ids = gpt("rotary"), np.random.default_rng(0).integers(3, 9, size=(2, L))
    same = lengths.stretched(model, "larger base", 1)
    np.testing.assert_array_equal(same.forward(ids)[0], model.forward(ids)[0])
    squeezed = lengths.stretched(model, "interpolation", 2)
    for name, param in squeezed.params().items():
        np.testing.assert_array_equal(param.value, model.params()[name].value)
    assert np.abs(squeezed.forward(ids)[0] - model.forward(ids)[0]).max() > 1e-4


def test_interpolation_puts_every_second_place_where_one_was():
    """At twice the positions, a model squeezed by two turns its queries and keys as before."""
    from lesson_utils.maths.positions import Rotary, rotary

    x = np.random.default_rng(0).normal(size=(5, 8))
    np.testing.assert_allclose(Rotary(scale=0.5).turn(x, 2 * np.arange(5)), rotary(x, np.arange(5)))


def test_stretch_curves_show_each_method():
    model, batch = gpt("rotary"), lab.recall(np.random.default_rng(1), 3, 2 * L)
    curves = lengths.stretch_curves(model, batch, L)
    plain = lab.by_position(model, batch).bits
    np.testing.assert_array_equal(curves["larger base", 1], plain)
    np.testing.assert_array_equal(curves["interpolation", 1], plain)
    np.testing.assert_array_equal(curves["window", 2], lab.by_position(model, batch, window=L).bits)
    assert np.abs(curves["interpolation", 2] - curves["larger base", 2]).max() > 1e-6


@pytest.mark.slow
def test_what_the_notebook_says_about_the_start_of_its_labs():
    assert "9 of 32 pairs of columns repeat within 64 positions" in lab.table_lab().picture.alt
    assert "32 of 32 pairs" in lab.table_lab(base=10).picture.alt
    alt = lab.clock_lab(base=10_000).picture.alt
    assert "pair 0 by 172°" in alt
    assert "pair 7 by 0.054°" in alt
    assert "rises 22 times and falls 41 times" in lab.similarity_lab().picture.alt


@pytest.mark.slow
def test_labs_move_only_what_moves():
    """Images of other sizes in the same axes: nothing of the old one is left."""
    from PIL import Image

    for one in (lab.table_lab, lab.similarity_lab):
        assert isinstance(one, live.Lab)
        figure = one()
        before = figure.picture.png
        figure.set(length=96, d_model=8)
        again = figure.set(**{name: control.value for name, control in one.controls.items()})
        a, b = (np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), int) for png in (before, again.png))
        assert np.abs(a - b).max() == 0
        html = re.search(r"base64,([^\"]+)", again.html())
        assert html
        assert base64.b64decode(html[1]) == again.png
