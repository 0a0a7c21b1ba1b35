"""What stored results were made with: each change to a model does what its name says, and at one end nothing."""

from dataclasses import replace

import numpy as np
import pytest

from lesson_utils.lessons import bugs
from lesson_utils.lessons.debugging import symptoms as shown
from lesson_utils.maths import attention, models
from lesson_utils.maths.models.experiments import changed
from tools.measure import savings, symptoms
from tools.measure.texts import texts

CONFIG = models.GPTConfig(vocab=9, d_model=24, num_heads=6, num_kv_heads=2, num_layers=2, positions="rotary")


@pytest.fixture
def cached():
    """Keys and values as a cache keeps them, (B, h_kv, T, d_k)."""
    return np.random.default_rng(0).normal(size=(2, 1, 3, 7, 4)).astype(np.float32)


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_rounding_leaves_so_many_numbers_and_so_small_an_error(cached, bits):
    K, V = savings.rounded(bits)(*cached)
    for x, y in zip(cached, (K, V), strict=True):
        step = np.abs(x).max(axis=-1, keepdims=True) / (2 ** (bits - 1) - 1)
        assert (np.abs(x - y) <= step / 2 + 1e-6).all()
        assert y / step == pytest.approx(np.round(y / step), abs=1e-4)
        assert y.dtype == x.dtype


def test_averaged_heads_are_all_the_mean(cached):
    for x, y in zip(cached, savings.averaged(*cached), strict=True):
        assert y[:, 0] == pytest.approx(x.mean(axis=1))
        assert (y == y[:, :1]).all()


def test_through_a_whole_basis_nothing_changes_and_through_a_part_the_rank_falls(cached):
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(24, 24)))[0]
    assert np.stack(savings.through(basis)(*cached)) == pytest.approx(cached, abs=1e-5)
    few = np.concatenate([attention.merge_heads(x) for x in savings.through(basis[:, :5])(*cached)], axis=-1)
    assert np.linalg.matrix_rank(few[0], tol=1e-4) == 5


def test_the_best_of_all_keys_are_all_keys_and_the_best_one_takes_all():
    Q, K, V = np.random.default_rng(2).normal(size=(3, 1, 2, 6, 4))
    mask = attention.causal_mask(6)
    output, weights = savings.only_the_best(6)(Q, K, V, mask)
    expected, _ = attention.scaled_dot_product_attention(Q, K, V, mask)
    assert output == pytest.approx(expected)
    _, weights = savings.only_the_best(1)(Q, K, V, mask)
    assert (weights.max(axis=-1) == 1).all()
    assert not weights[..., ~mask].any()


def test_a_window_holds_itself_the_last_and_the_kept():
    mask = savings.window(9, 3, 2)
    assert np.flatnonzero(mask[8]).tolist() == [0, 1, 6, 7, 8]
    assert np.flatnonzero(mask[1]).tolist() == [0, 1]


def test_a_cache_that_changes_nothing_gives_the_models_own_logits():
    model, ids = models.GPT(CONFIG, np.random.default_rng(0)), np.arange(8)[None]
    past = [savings.ChangedCache(8, lambda K, V: (K, V)) for _ in range(2)]
    assert model.forward(ids, past)[0] == pytest.approx(model.forward(ids)[0], abs=1e-5)


def test_there_are_three_texts_long_enough_to_measure():
    assert all(len(text) > 2000 for text in texts().values())
    assert list(texts()) == ["story", "report", "manual"]


# --- One bug at a time ----------------------------------------------------------------------------------------------


def test_each_bug_changes_what_a_model_says_and_is_taken_out_again():
    config = replace(CONFIG, norm_kind="rms", activation="swiglu")
    rng = np.random.default_rng(0)
    model = models.GPT(config, rng)
    for param in model.params().values():  # gammas that are all 1 would hide a norm
        param.value += (0.3 * rng.normal(size=param.value.shape)).astype(np.float32)
    ids = rng.integers(9, size=(1, 7))

    def logits(name):
        cached = name == symptoms.OF_THE_CACHE
        past = model.new_past() if cached else None
        with symptoms.planted(model, name, prompt=4):
            parts = (ids[:, :4], ids[:, 4:5], ids[:, 5:]) if cached else (ids,)
            return [model.forward(part, past)[0] for part in parts][-1][0, -1]

    own = model.forward(ids)[0][0, -1]
    np.testing.assert_array_equal(logits(symptoms.RIGHT), own)
    with changed(bugs.changes(model, "")):  # heads of the catalogue, without a bug
        np.testing.assert_allclose(model.forward(ids)[0][0, -1], own, atol=1e-5)
    found, others = [name for name in symptoms.SHOWN if name != symptoms.RIGHT], []
    for name in found:
        others.append(logits(name))
        assert np.abs(others[-1] - own).max() > 1e-3, name
        np.testing.assert_array_equal(model.forward(ids)[0][0, -1], own, err_msg=name)
    assert len({tuple(told.round(4)) for told in others}) == len(found)  # no two bugs are one


def test_what_is_shown_is_what_was_measured():
    assert set(symptoms.SHOWN) == set(shown.symptoms()) == set(shown.LINES)
    assert shown.STORED.stat().st_size < 100_000
    lost = {bug: of["perplexity"] for bug, of in shown.symptoms().items()}
    assert lost["no causal mask"] < lost["mask one too late"] < lost[shown.RIGHT] == lost["cache starts at 0 again"]
    assert lost["norm left out"] is None
    assert lost["groups tiled"] > lost["softmax over queries"] > 0.9 * shown.stored()["vocabulary"]
    assert shown.symptoms()[shown.RIGHT]["says"].startswith("The capital of France is Paris.")
