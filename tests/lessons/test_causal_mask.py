"""The numbers behind notebook 06: the leak meter, entropies, what is drawn from, and the labs made from a model."""

import numpy as np
import pytest

from lesson_utils import attention, models, ops, plots, tasks, training
from lesson_utils.lessons.causal_mask import lab

TEXT = tasks.python_text()[:2000]
VOCABULARY = tasks.text_vocabulary(TEXT)
CONFIG = models.GPTConfig(vocab=len(VOCABULARY), d_model=8, num_heads=2, num_layers=1, max_length=16)


@pytest.fixture(scope="module")
def model():
    return models.GPT(CONFIG, np.random.default_rng(0))


# --- The leak meter -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [4, 11, 24])
@pytest.mark.parametrize("layers", [1, 4])
def test_the_right_mask_leaks_exactly_nothing(T, layers):
    for position in range(T):
        moved, weights = lab.leak(T, position, "causal", layers)
        assert (moved[:position] == 0).all()
        assert (moved[position:] > 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), 1)


@pytest.mark.parametrize("kind", [kind for kind in lab.KINDS if kind != "causal"])
@pytest.mark.parametrize("T", [4, 11, 24])
def test_every_wrong_mask_leaks_visibly(kind, T):
    for position in range(1, T):
        moved, _ = lab.leak(T, position, kind)
        assert moved[:position].max() > 1e-4, position  # where the figure's scale begins


def test_one_too_far_leaks_one_position_a_layer():
    for layers in range(1, 5):
        moved, _ = lab.leak(16, 8, "one too far", layers)
        np.testing.assert_array_equal(moved[:8] > 0, np.arange(8) >= 8 - layers)


def test_too_late_has_the_right_zeros_in_its_map():
    _, weights = lab.leak(12, 6, "too late")
    np.testing.assert_array_equal(weights == 0, ~attention.causal_mask(12))
    assert (weights.sum(axis=-1)[:-1] < 1).all()


def test_masked_weights_are_those_of_the_library():
    scores = np.random.default_rng(0).normal(size=(5, 5))
    expected = ops.softmax(np.where(attention.causal_mask(5), scores, -np.inf))
    np.testing.assert_allclose(lab.masked_weights(scores, "causal"), expected)
    np.testing.assert_allclose(lab.masked_weights(scores, "none"), ops.softmax(scores))


def test_the_peeking_model_is_the_gpt_without_its_mask(model):
    peeking = lab.Peeking(CONFIG, np.random.default_rng(0))
    ids = VOCABULARY.encode("attention")[None]
    honest, seeing = model.forward(ids)[0], peeking.forward(ids)[0]
    assert np.abs(honest[:, 0] - seeing[:, 0]).max() > 1e-3
    single = ids[:, :1]  # nothing to peek at
    np.testing.assert_allclose(model.forward(single)[0], peeking.forward(single)[0], rtol=1e-5, atol=1e-5)
    peeking.loss_and_grad((ids[:, :-1], ids[:, 1:]))
    assert all(np.abs(param.grad).max() > 0 for name, param in peeking.params().items() if "W_" in name)


# --- Training, watched ----------------------------------------------------------------------------------------------


def test_bigram_entropy():
    alternating = np.tile([3, 4], 50)
    assert lab.bigram_entropy(alternating) == pytest.approx(0, abs=1e-9)
    rng = np.random.default_rng(0)
    independent = rng.integers(4, size=20_000)
    assert lab.bigram_entropy(independent) == pytest.approx(tasks.unigram_entropy(independent), abs=0.01)
    ids = VOCABULARY.encode(TEXT)
    assert 0 < lab.bigram_entropy(ids) < tasks.unigram_entropy(ids)


def test_watch_measures_and_prints(capsys):
    model = models.GPT(CONFIG, np.random.default_rng(0))
    ids = VOCABULARY.encode(TEXT)
    held_out = tasks.text_batches(ids, 16, 4, np.random.default_rng(0))
    watch = lab.Watch(model, VOCABULARY, held_out, TEXT)
    history = training.fit(
        model, lambda rng: tasks.text_batches(ids, 16, 8, rng), 20, lr=1e-2, callback=watch, every=8, progress=False
    )
    assert watch.steps == [0, 8, 16, 20]
    assert watch.bits[0] > watch.bits[-1] == pytest.approx(lab.bits(model.loss(held_out)))
    assert all(0 <= share <= 1 for share in watch.shares)
    watch.show()
    assert len(capsys.readouterr().out.splitlines()) == 5
    rungs = {"log₂ V": 5.4, "unigram entropy": 4.1}
    above = lab.loss_plot(history, watch, rungs)
    assert "above “unigram entropy”" in above.alt
    assert "below “floor”" in lab.loss_plot(history, watch, {"floor": 20.0}).alt


def test_shares_of_words():
    assert lab.word_shares(["one two", "two 2 six"], frozenset({"two", "six"})) == (0.75, 0.75)
    assert lab.word_shares(["?!"], frozenset()) == (0, 0)


def test_words_are_letters_only():
    assert lab.words_in("a def_x straße, 12 the_end") == ["def", "straße", "the", "end"]


# --- Sampling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "left_out"), [("", ""), ("Who €ß", "ß€"), ("$$", "$"), ("The ", ""), ("日本", "日本")]
)
def test_any_prompt_will_do(model, prompt, left_out):
    figure = lab.sampling_lab(model, VOCABULARY)
    alt = figure.set(prompt=prompt).alt
    assert ("left out" in alt) == bool(left_out)
    assert left_out in alt


def test_greedy_is_the_same_as_top_1(model):
    figure = lab.sampling_lab(model, VOCABULARY)
    greedy = figure.set(temperature=0.0).alt.partition("The text:")[2]
    assert greedy == figure.set(temperature=1.5, top_k="1").alt.partition("The text:")[2]


def test_lines_fit_the_page_and_hold_no_formula():
    text = lab.as_lines("costs $5 and $6\n" + "word " * 30 + "x" * 100)
    assert all(len(line) <= lab.LINE + 2 for line in text.split("\n"))
    assert r"\$5 and \$6⏎" in text


# --- Pictures -------------------------------------------------------------------------------------------------------


def test_maps_and_masks_say_what_they_show():
    A = np.tri(3) / np.tri(3).sum(axis=-1, keepdims=True)
    assert "right: 0% looks ahead" in lab.maps("abc", left=A.T, right=A).alt
    alt = lab.allowed(["one"], np.array([[True, False], [False, False]])).alt
    assert "1 row sees nothing" in alt
    assert "0 sees 0; 1 sees none" in alt


def test_cache_times_compares_the_same_texts():
    timings = lab.cache_times((3, 5))
    assert [t.length for t in timings] == [3, 5]
    assert all(t.same and t.cached > 0 and t.uncached > 0 for t in timings)
    picture = lab.cache_plot([lab.Timing(4, 1.0, 1.5, True), lab.Timing(8, 1.0, 3.0, True)])
    assert isinstance(picture, plots.Picture)
    assert (
        picture.alt
        == "8 characters: about 3 times as fast with the cache, in one run. Ratio by length: 4: 1.5, 8: 3.0."
    )
