"""The numbers that the labs of notebook 01 show, on small models."""

import math
from functools import partial

import numpy as np
import pytest

from lesson_utils import attention, tasks, training
from lesson_utils.lessons.bottleneck import lab
from lesson_utils.models import Seq2Seq, Seq2SeqConfig


def model(attention, seed=0, steps=0, longest=4, d_hidden=16):
    V = len(lab.LETTERS)
    made = Seq2Seq(Seq2SeqConfig(V, V, attention, d_embed=8, d_hidden=d_hidden), np.random.default_rng(seed))
    if steps:
        training.fit(made, partial(lab.pairs, longest=longest), steps, lr=1e-2, progress=False)
    return made


@pytest.fixture(scope="module")
def fixed():
    return model(None)


@pytest.fixture(scope="module")
def trained():
    """Reverses strings of three letters now and then."""
    return model("general", steps=200, longest=3, d_hidden=32)


@pytest.fixture(scope="module")
def small():
    """Two scores, after no training at all and after two steps."""
    return {kind: {step: lab.Snapshot(model(kind, seed=step)) for step in (0, 2)} for kind in ("dot", "additive")}


# --- Live figures made from models ------------------------------------------------------------------------------------


def test_the_typed_word_is_cleaned_and_cut():
    figure = lab.word_lab.example()
    figure.set(word="Cat 3", more=2)
    assert figure.picture.alt.startswith("Read: catqz (only a–z).")
    figure.set(word="b" * 27, more=5)
    assert figure.picture.alt.startswith(f"Read: {'b' * 27}q (only 28).")
    figure.set(word="7", more=0)
    assert figure.picture.alt.startswith("Read: abc (nothing to read: it got abc).")


def test_wrong_letters_are_counted(fixed, trained):
    figure = lab.word_lab(fixed, {"Luong": trained})
    figure.set(word="ab", more=0)
    text, nothing = lab.answer(fixed, "ab")
    longer = max(len(text), 2)
    wrong = sum(a != b for a, b in zip("ba".ljust(longer), text.ljust(longer), strict=True))
    assert nothing is None
    assert f"writes {text!r}, {f'{wrong} wrong' if wrong else 'all right'};" in figure.picture.alt


# --- Gradients ----------------------------------------------------------------------------------------------------


def test_gradient_norms_begin_at_one_and_are_those_of_recurrent():
    for kind in ("rnn", "gru", "lstm"):
        norms = lab.gradient_norms(kind)
        assert norms.shape == (lab.STEPS_BACK + 1,)
        assert math.isclose(norms[0], 1.0)
        assert (norms > 0).all()


def test_gates_and_scale_do_what_the_notebook_says():
    for kind in ("gru", "lstm"):
        shut, fresh, open_ = (lab.gradient_norms(kind, 1.0, bias)[20] for bias in (-2, 0, 4))
        assert shut < fresh / 100 < open_
    np.testing.assert_array_equal(lab.gradient_norms("rnn", 1.0, 4), lab.gradient_norms("rnn", 1.0, 0))
    assert lab.gradient_norms("rnn", 0.5)[20] < lab.gradient_norms("rnn")[20] < lab.gradient_norms("rnn", 1.5)[20]


def test_memory_of_an_untrained_model_fades(fixed):
    norms = lab.memory_of(fixed)
    assert norms.shape == (lab.STEPS_BACK + 1,)
    assert norms[20] < norms[5] < norms[0]


@pytest.mark.parametrize(
    ("number", "text"), [(0.62, "0.62"), (2.4e-4, "2·10⁻⁴"), (3.6e-12, "4·10⁻¹²"), (1.0, "1"), (0.0096, "1·10⁻²")]
)
def test_small_numbers_are_written_as_powers(number, text):
    assert lab._power(number) == text


# --- Accuracy -----------------------------------------------------------------------------------------------------


class Oracle:
    """Answers a reversed source, with the mistakes that it is told to make."""

    def __init__(self, spoil=lambda ids: ids):
        self.spoil = spoil

    def decode(self, source, max_length):
        ids = tasks.with_ends(source[:, ::-1])[:, 1:]
        return self.spoil(ids.copy())[:, :max_length], None


def test_accuracy_of_a_perfect_model_and_of_some_that_are_not():
    def first_string_wrong(ids):
        ids[0, 1] = 3 + (ids[0, 1] - 2) % 26
        return ids

    assert lab.accuracy(Oracle(), 5, 20) == 1
    assert lab.accuracy(Oracle(first_string_wrong), 5, 20) == 0.95
    assert lab.accuracy(Oracle(lambda ids: ids[:, :-2]), 5, 20) == 0  # stops too early
    assert lab.accuracy(Oracle(lambda ids: np.where(ids == tasks.EOS, 3, ids)), 5, 20) == 0  # never ends


def test_right_letters_by_place():
    def last_letter_wrong(ids):
        ids[:, 3] = tasks.EOS
        return ids

    source = np.array([[3, 4, 5, 6], [7, 8, 9, 10]])
    np.testing.assert_array_equal(lab.right_letters(Oracle(last_letter_wrong), source), [[1, 1, 1, 0, 1]] * 2)


def test_accuracy_plot_says_its_numbers():
    picture = lab.accuracy_plot({"Luong": {4: 1.0, 8: 0.5}, "one fixed vector": {4: 0.9, 8: 0.25}}, at=8)
    assert picture.alt.startswith("Length 8: Luong 50%, one fixed vector 25%.")
    assert "one fixed vector: 4: 90%, 8: 25%" in picture.alt


# --- Capacity ---------------------------------------------------------------------------------------------------------


def test_stored_measurements_are_complete():
    control = lab.capacity_lab.controls
    for size in control["d_hidden"].options:
        for steps in control["steps"].options:
            assert len(lab.CAPACITY[None, size, steps]) == len(lab.CAPACITY_LENGTHS)
        assert len(lab.CAPACITY["general", size, 2500]) == len(lab.CAPACITY_LENGTHS)


def test_one_small_point_of_them_is_measured_again():
    """The smallest, with fewer steps and strings than the stored one: it can only be worse, and has to be near."""
    again = lab.measure_capacity(None, 16, 1200, tests=60)
    stored = lab.CAPACITY[None, 16, 2500]
    assert len(again) == len(stored)
    assert 0.1 < again[0] < stored[0] + 0.1
    assert max(again[3:]) < 0.05


# --- Scores -------------------------------------------------------------------------------------------------------


def test_operations_are_counted_as_on_paper():
    d, T = 6, 5
    table = lab.score_table(d, T)
    assert table["dot"] == (0, 2 * d, 2 * d)
    assert table["general"] == (d * d, 2 * d * d + 2 * d, 2 * d * d / T + 2 * d)
    network = 2 * d * d + d, 4 * d * d + 4 * d, 4 * d * d / T + 4 * d  # d sums, d tanhs, 2d for v
    assert table["additive"] == table["concat"] == network


def test_counting_changes_no_number():
    rng = np.random.default_rng(0)
    for kind in lab.SCORES:
        params = lab.score_params(kind, 4, rng)
        assert len(params) == attention.SCORES[kind]
        queries, keys = rng.normal(size=(1, 3, 4)), rng.normal(size=(1, 5, 4))
        counted, _ = attention.score_forward(kind, queries, keys, params)
        np.testing.assert_allclose(counted, getattr(attention, f"{kind}_score")(queries, keys, *params))


def test_small_models_are_looked_at_on_the_way(monkeypatch, capsys):
    monkeypatch.setattr(lab, "SNAPSHOTS", (0, 2, 3))
    snapshots = lab.small_model("dot", steps=3)
    assert list(snapshots) == [0, 2, 3]
    S = len(lab.SMALL_WORD)
    for snapshot in snapshots.values():
        assert snapshot.alignment.shape == (S + 1, S)
        np.testing.assert_allclose(snapshot.alignment.sum(axis=-1), 1, rtol=1e-5)
    assert "3/3 steps" in capsys.readouterr().out


def test_four_maps_say_how_many_letters_are_on_the_diagonal(small):
    alt = lab.four_maps(small).alt
    for kind, snapshots in small.items():
        assert f"{kind}: {lab.mirrored(snapshots[2].alignment)} of {len(lab.SMALL_WORD)} letters" in alt


# --- Maps ---------------------------------------------------------------------------------------------------------


def test_mirrored_counts_the_antidiagonal_and_its_neighbour():
    mirror = np.eye(4)[::-1]
    assert lab.mirrored(mirror) == 4
    assert lab.mirrored(np.vstack([mirror, np.ones((1, 4))])) == 4  # the row of the end does not count
    assert lab.mirrored(mirror, later=1) == 0
    assert lab.mirrored(np.roll(mirror, 1, axis=1), later=1) == 3
    assert lab.mirrored(mirror[:2]) == 2  # an answer that stopped too early


def test_influence_is_found_by_changing_letters():
    """A model that copies, seen through `influence`: the anti-diagonal and nothing else."""

    class Copies:
        def forward(self, source, target_in):
            B, S = source.shape
            logits = np.zeros((B, S + 1, len(lab.LETTERS)))
            logits[np.arange(B)[:, None], np.arange(S), source[:, ::-1]] = 50
            np.testing.assert_array_equal(target_in[:, 1:], source[:, ::-1])
            return logits, None

    np.testing.assert_allclose(lab.influence(Copies(), "hello"), np.eye(5)[::-1], atol=1e-9)


def test_influence_of_a_model_that_ignores_its_input_is_zero():
    class Deaf:
        def forward(self, source, target_in):
            return np.ones((*target_in.shape, len(lab.LETTERS))), None

    np.testing.assert_allclose(lab.influence(Deaf(), "cat"), 0, atol=1e-12)


def test_pictures_of_maps_have_alternative_text(trained):
    models = {"Luong": trained}
    effect = lab.mirrored(lab.influence(trained, "cat"))
    assert f"Luong: {effect} of 3 on the diagonal" in lab.influence_plot(models, "cat").alt
    assert "Luong: " in lab.alignment_plot(models, "cat").alt
    assert "logistic 0.25, tanh 1.00" in lab.slopes_plot().alt
