"""Notebook 01: what its experiment measures, on models whose answers are known, and what its figures say."""

import numpy as np
import pytest
from learners import EXERCISES

from lesson_utils.lessons.bottleneck import lab
from lesson_utils.maths import gradcheck, ops, tasks
from lesson_utils.maths.models import Seq2Seq, Seq2SeqConfig
from tools import testing

# --- Models whose answers are known -----------------------------------------------------------------------------------


class Oracle:
    """Answers a reversed source, with the mistakes that it is told to make. It looks at the last letter, always."""

    def __init__(self, spoil=lambda ids: ids):
        self.spoil = spoil

    def decode(self, source, max_length):
        ids = self.spoil(tasks.with_ends(source[:, ::-1])[:, 1:].copy())[:, :max_length]
        return ids, np.broadcast_to(np.eye(source.shape[1])[-1], (len(ids), ids.shape[1], source.shape[1]))

    def forward(self, source, target_in):
        """Certain of the letter that its answer has at each place, whatever came before."""
        ids, weights = self.decode(source, target_in.shape[1])
        logits = np.zeros((*target_in.shape, len(lab.LETTERS)))
        np.put_along_axis(logits, ids[:, : target_in.shape[1], None], 50.0, axis=-1)
        return logits, weights


def first_string_wrong(ids):
    ids[0, 1] = 3 + (ids[0, 1] - 2) % 26
    return ids


def first_two_swapped(ids):
    return ids[:, [1, 0, *range(2, ids.shape[1])]]


def all_the_same(ids):
    ids[:, 1:-1] = ids[:, :1]
    return ids


def test_accuracy_counts_whole_strings_and_their_ends():
    assert lab.accuracy(Oracle(), 5, 20) == 1
    assert lab.accuracy(Oracle(first_string_wrong), 5, 20) == 0.95
    assert lab.accuracy(Oracle(lambda ids: ids[:, :-2]), 5, 20) == 0  # stops too early
    assert lab.accuracy(Oracle(lambda ids: np.where(ids == tasks.EOS, 3, ids)), 5, 20) == 0  # never ends


def test_kept_tells_letters_from_their_places():
    perfect = lab.kept(Oracle(), 6, 50)
    assert perfect[:3] == (1, 1, 1)
    assert perfect.anagrams == 0  # nothing is wrong
    assert perfect.prompted == 1
    swapped = lab.kept(Oracle(first_two_swapped), 6, 50)
    assert swapped.present == swapped.anagrams == 1
    assert 4 / 6 <= swapped.in_place < 0.75  # the two are equal once in 26
    assert 1 - 1 / 10 < swapped.in_order < 1 - 1 / 20  # of up to 15 pairs, one is the wrong way round
    once = lab.kept(Oracle(all_the_same), 4, 200)
    assert 0.25 <= once.present < 0.3  # letters count as often as they were read
    assert once.anagrams < 0.01
    # Of 26 letters, a string of one has that of the next string once in 26; a string of hundreds has nearly all.
    assert abs(lab.kept(Oracle(), 1, 2000).chance - 1 / 26) < 0.02
    assert lab.kept(Oracle(), 400, 20).chance > 0.85


def test_equal_letters_are_told_apart_by_their_number():
    """Of aab, written as aba, the pairs are a1 a2, a1 b1 and a2 b1; the last is the wrong way round."""
    assert lab._pairs_in_order(np.array([[3, 4, 3]]), np.array([[3, 3, 4]])) == 2 / 3
    assert lab._pairs_in_order(np.array([[5, 6]]), np.array([[3, 4]])) == 0  # none of the letters is there


def test_letters_and_the_end_behind_them_are_counted_apart():
    assert lab.with_doubles(Oracle()) == (1, 1, 1, 1)
    assert lab.with_doubles(Oracle(lambda ids: np.where(ids == tasks.EOS, 3, ids))) == (1, 1, 1, 0)
    assert lab.with_doubles(Oracle(first_two_swapped))[:3] == (0, 1, 0)  # of two equal letters


def test_the_first_slip_is_the_step_of_the_first_wrong_symbol():
    assert lab.first_slip(Oracle(first_string_wrong), 5) == 2
    assert lab.first_slip(Oracle(lambda ids: np.where(ids == tasks.EOS, 3, ids)), 5) == 6


def test_batches_have_few_letters_or_doubled_ones_if_wanted():
    rng = np.random.default_rng(0)
    source, target = lab.pairs(rng, longest=3, letters=2)
    assert source.shape == (64, 3)
    assert set(np.unique(source)) == {3, 4}
    np.testing.assert_array_equal(target[:, 1:-1], source[:, ::-1])
    shares = [(s[:, 1:] == s[:, :-1]).mean() for s, _ in (lab.pairs(rng, repeats=0.9) for _ in range(60))]
    assert 0.2 < np.mean(np.array(shares) > 0.5) < 0.8  # in half of the batches


# --- Maps -------------------------------------------------------------------------------------------------------------


def test_weight_on_the_letter_and_on_its_neighbour():
    mirror = np.eye(4)[::-1]
    late = np.roll(mirror, 1, axis=1)
    for weights, rows in (
        (mirror, 4),
        (np.vstack([mirror, np.ones((1, 4))]), 4),  # the row of the end does not count
        (late, 0),
        (mirror[:2], 2),  # an answer that stopped too early
        (np.stack([mirror, late]), 4),  # of several strings
    ):
        assert lab.mirrored(weights) == rows
    assert lab.weight_on(mirror) == lab.weight_on(late, later=1) == 1
    assert lab.weight_on((mirror + late) / 2) == lab.weight_on((mirror + late) / 2, later=1) == 0.5
    assert lab.weight_on(np.vstack([np.eye(4)[0], mirror[1:]])) == 1  # the first letter written has none later


@pytest.mark.parametrize("attention", ["general", "additive"])
def test_chances_are_those_of_the_model_and_change_with_a_state(attention):
    model, word = lab.untrained(attention, 16), "cab"
    states, start = lab.encoded(model, [word, "cat"])
    ids = lab.LETTERS.encode(word)[None]
    logits, _ = model.forward(ids, tasks.with_ends(ids[:, ::-1])[:, :-2])
    wanted = ops.softmax(logits)[0, np.arange(3), ids[0, ::-1]]
    own = lab.chances(model, states[:1], start[:1], word)
    np.testing.assert_allclose(own, wanted[None], rtol=1e-5)
    mixed = np.stack([states[0], np.vstack([states[0, :2], states[1, 2:]])])
    found = lab.chances(model, mixed, start[:1], word)
    np.testing.assert_allclose(found[0], own[0], rtol=1e-5)
    assert not np.allclose(found[1], own[0], rtol=1e-4)


def test_a_model_that_searches_for_the_letter_written_last_follows_a_false_one():
    class Searches(Oracle):
        def forward(self, source, target_in):
            return None, np.roll((target_in[:, :, None] == source[:, None]).astype(float), self.shift, axis=-1)

    searches = Searches()
    searches.shift = 0
    assert lab.follows(searches, 3, 6) == (1, 0)
    searches.shift = -1  # from the first letter it goes on to the last
    at, before = lab.follows(searches, 3, 6)
    assert at == 0
    assert abs(before - 20 / 25) < 1e-9
    at, before = lab.follows(Oracle(), 3, 6)
    assert abs(at - 4 / 25) < 1e-9  # it looks at the last letter, false in 4 of 25 rows
    assert before == 0


# --- Controls, and further runs ---------------------------------------------------------------------------------------


@pytest.fixture
def luong():
    return lab.untrained("concat", 32)


def weights_of(model):
    return lab.looks(model, "abcdefgh")


def test_the_control_asks_with_the_state_before(luong):
    """The row of step t is that of the model which asks after step t − 1; the first asks with the first state."""
    before = lab.asking_before(luong)
    assert before.num_params() == luong.num_params()
    np.testing.assert_allclose(weights_of(before)[1:], weights_of(luong)[:-1], rtol=1e-4)
    assert not np.allclose(weights_of(before)[0], weights_of(luong)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("attention", "change"),
    [
        ("concat", lab.asking_before),
        ("concat", lambda model: lab.asking_before(model, symbol=True)),
        ("general", lab.feeding),
        ("general", lab.multiplying),
        ("additive", lambda model: lab.reading_every(model, 3)),
        (None, lambda model: lab.passing_on(model, 2)),
    ],
)
def test_gradients_of_the_controls_are_those_of_the_loss(attention, change):
    config = Seq2SeqConfig(9, 9, attention, d_embed=3, d_hidden=4, dtype=np.float64)
    model, rng = change(Seq2Seq(config, np.random.default_rng(0))), np.random.default_rng(1)
    source = rng.integers(3, 9, size=(2, 5))
    batch = source, tasks.with_ends(source[:, ::-1])
    gradcheck.check_params(lambda: model.loss_and_grad(batch), model.params(), rng, samples=2)


def test_the_symbol_written_last_is_in_the_query(luong):
    with_symbol, without = lab.asking_before(luong, symbol=True), lab.asking_before(luong)
    luong.target.table.value *= 0
    np.testing.assert_allclose(weights_of(with_symbol), weights_of(without))
    luong.target.table.value += np.random.default_rng(0).normal(size=luong.target.table.value.shape)
    assert not np.allclose(weights_of(with_symbol), weights_of(without), atol=1e-3)


def test_the_context_goes_into_the_cell(luong):
    """With W_c = 0 it is Luong's model."""
    fed = lab.feeding(luong)
    assert fed.num_params() == luong.num_params() + 32 * 96
    assert not np.allclose(weights_of(fed), weights_of(luong), atol=1e-3)
    fed.decoder.context.W.value *= 0
    np.testing.assert_allclose(weights_of(fed), weights_of(luong), rtol=1e-4)
    text, weights = lab.answer(fed, "bottleneck")  # step by step
    np.testing.assert_allclose(weights, lab.answer(luong, "bottleneck")[1], rtol=1e-4)
    assert text == lab.answer(luong, "bottleneck")[0]


def test_the_product_changes_only_what_is_read_off(luong):
    """With U = 0 it is Luong's model."""
    product = lab.multiplying(luong)
    assert product.num_params() == luong.num_params() + 32 * 32
    np.testing.assert_array_equal(weights_of(product), weights_of(luong))
    ids = np.array([lab.LETTERS.encode("bottleneck")])
    given = tasks.with_ends(ids)[:, :-1]
    plain, bent = luong.forward(ids, given)[0], product.forward(ids, given)[0]
    assert not np.allclose(bent, plain, atol=1e-3)
    product.read.factor.W.value *= 0
    np.testing.assert_allclose(product.forward(ids, given)[0], plain, rtol=1e-5)


def test_states_that_may_not_be_read_get_no_weight(luong):
    weights = weights_of(lab.reading_every(luong, 3))
    np.testing.assert_array_equal(weights[0] > 0, [False, True, False, False, True, False, False, True])
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(weights_of(lab.reading_every(luong, 1)), weights_of(luong))
    np.testing.assert_array_equal(weights_of(lab.reading_every(luong, 40))[:, -1], 1)


def test_only_some_numbers_are_passed_on():
    model = lab.untrained(None, 8)
    narrow = lab.passing_on(model, 4)
    assert narrow.num_params() == model.num_params()
    x = np.random.default_rng(0).normal(size=(2, 5, model.config.d_embed)).astype(np.float32)
    (states, end), (few_states, few) = model.encoder.forward(x)[0], narrow.encoder.forward(x)[0]
    np.testing.assert_array_equal(few_states, states)
    np.testing.assert_array_equal(few, end * np.array([1, 1, 0, 0, 1, 1, 0, 0]))  # half of each direction's
    np.testing.assert_array_equal(lab.passing_on(model, 8).encoder.forward(x)[0][1], end)


# --- The word lab, and a learner's functions --------------------------------------------------------------------------


def test_the_typed_word_is_cleaned_and_cut_and_a_step_behind_the_answer_shows_its_last():
    figure = lab.word_lab.example()
    assert "Read: catqz (only a–z)." in figure.set(word="Cat 3", more=2).alt
    assert f"Read: {'b' * 23}q (only 24)." in figure.set(word="b" * 23, more=5).alt
    assert "Read: abc (nothing to read: it got abc)." in figure.set(word="7", more=0).alt
    assert figure.set(word="ab", more=0, step=4).alt == figure.set(step=25).alt


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda ids: ids, "all right"),
        (first_string_wrong, "1 wrong"),
        (first_two_swapped, "2 wrong"),
        (lambda ids: np.delete(ids, 2, axis=1), "3 wrong"),  # a missing letter, too: what follows stands elsewhere
    ],
)
def test_a_word_s_wrong_symbols_are_counted_and_lines_are_as_thick_as_the_weights(spoil, verdict):
    figure = lab.word_lab(Oracle(), {"Luong": Oracle(spoil), "Bahdanau": Oracle()}, word="abcd", more=0, step=1)
    luong, fixed = figure.picture.alt.split("Luong writes ")[1].split("; ")
    assert luong.endswith(verdict)
    assert fixed.endswith("'dcba', all right.")
    (lines,) = (c for ax in testing.drawing(figure).axes for c in ax.collections if c.get_zorder() == 1.5)
    np.testing.assert_allclose(lines.get_linewidths(), [0, 0, 0, 0.3 + lab.THICKEST])


def test_a_look_back_with_other_functions_is_used_and_leaves_the_model_alone():
    model = lab.untrained("additive", 16)
    score, average = (EXERCISES[name].function() for name in ("additive_score", "context_vector"))
    yours = lab.with_look_back(model, score, average)
    text, weights = lab.answer(model, "bottleneck")
    assert lab.answer(yours, "bottleneck")[0] == text
    np.testing.assert_allclose(lab.answer(yours, "bottleneck")[1], weights, rtol=1e-5)
    last = lab.with_look_back(model, lambda query, keys, *_: np.eye(keys.shape[1])[[-1]] * 99, average)
    np.testing.assert_allclose(lab.looks(last, "cat")[:, -1], 1)
    np.testing.assert_allclose(lab.answer(model, "bottleneck")[1], weights)
