"""What stored results were made with: each change to a model does what its name says, and at one end nothing."""

import numpy as np
import pytest

from lesson_utils import attention, models
from tools.stored import savings
from tools.stored.texts import texts


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
    config = models.GPTConfig(vocab=9, d_model=16, num_heads=4, num_kv_heads=2, num_layers=2, positions="rotary")
    model, ids = models.GPT(config, np.random.default_rng(0)), np.arange(8)[None]
    past = [savings.ChangedCache(8, lambda K, V: (K, V)) for _ in range(2)]
    assert model.forward(ids, past)[0] == pytest.approx(model.forward(ids)[0], abs=1e-5)


def test_there_are_three_texts_long_enough_to_measure():
    assert all(len(text) > 2000 for text in texts().values())
    assert list(texts()) == ["story", "report", "manual"]
