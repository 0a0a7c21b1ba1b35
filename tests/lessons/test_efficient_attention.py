"""What notebook 07 says of memories, tiles and drafts holds in other draws; its figures show what is computed."""

import numpy as np
import pytest

from lesson_utils.classroom.live import testing
from lesson_utils.lessons.efficient_attention import bill, cache, decoding, exercises, lab, memory, reach, tiles
from lesson_utils.maths import attention, efficient, fast_weights, models


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_matrix_holds_twice_its_width_and_the_feature_map_is_what_forgets(seed):
    assert memory.softmax_recall(256, seed) == 1
    assert lab.recall(64, seed=seed).everything > 0.95
    assert lab.recall(16, seed=seed, feature_map="elu + 1").everything < 0.5
    assert lab.recall(32, seed=seed, feature_map="elu + 1").everything < 0.3


@pytest.mark.parametrize("length", [1.0, 3.0, 12.0])
def test_longer_keys_do_not_mend_the_feature_map(length):
    keys, values = memory.draw(32)
    features = efficient.elu_feature_map(length * keys)
    said = (features @ memory.written(features, values, 1.0, False)).argmax(axis=-1)
    assert (said == values).mean() < 0.35


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_three_ways_to_forget(seed):
    adds, fades, overwrites = (lab.recall(64, seed=seed, **rule) for rule in ({}, {"decay": 0.9}, {"overwrite": True}))
    assert adds.oldest == pytest.approx(adds.newest, abs=0.08)
    assert fades.newest > 0.97
    assert fades.oldest < 0.1
    assert overwrites.newest > 0.98
    assert overwrites.oldest < 0.4
    assert 0.35 < adds.rewritten < 0.65 < overwrites.rewritten


def test_the_sum_in_one_product_is_written_pair_by_pair():
    keys, values = memory.draw(9, dtype=np.float64)
    one_hot = np.eye(memory.VALUES)[values]
    S = np.zeros((memory.RUNS, memory.D_K, memory.VALUES))
    for t in range(9):
        S = fast_weights.write(S, keys[:, t], one_hot[:, t], 0.7)
    assert memory.written(keys, values, 0.7, False) == pytest.approx(S)


@pytest.mark.parametrize("size", tiles.SIZES)
def test_tiles_are_exact_at_the_end_and_forgetting_is_not(size):
    last = tiles.moments(size, False)[-1]
    assert last.output / last.total == pytest.approx(tiles.exact())
    wrong = tiles.moments(size, True)[-1]
    assert (abs(wrong.output / wrong.total - tiles.exact()) > 0.005) == (size < tiles.KEYS)


@pytest.mark.parametrize(("T", "tile"), [(9, 4), (12, 12), (10, 1)])
def test_attention_by_the_exercise_is_attention(T, tile):
    Q, K, V = np.random.default_rng(T).normal(size=(3, T, 5))
    step = exercises.EXERCISES[0].function()
    assert lab.attend_in_tiles(step, Q, K, V, tile) == pytest.approx(attention.scaled_dot_product_attention(Q, K, V)[0])


def test_figures_run_by_the_exercises_are_the_library_s():
    mask, count, step = (exercise.function() for exercise in exercises.EXERCISES[1:])
    for kind in ("window", "window + first"):
        np.testing.assert_array_equal(reach.mask_of(kind, 4, mask), reach.mask_of(kind, 4))
    for model in cache.MODELS:
        assert model.cache(3000, 8, count) == model.cache(3000, 8, cache.count)
    assert memory.recall_by(step, 32) == pytest.approx(lab.recall(32, overwrite=True).everything, abs=0.01)


def test_curves_grow_as_they_are_asked_for():
    window, bits = lab.window_lab(), lab.cache_lab.example()
    assert "128 " not in window.picture.alt
    assert "1 kept" not in window.picture.alt
    assert "128 47" in window.set(window=128).alt
    assert "1 kept: 16" in window.set(keep=1).alt
    lines = {
        size: np.array(testing.drawing(bits).axes[1].lines[0].get_xdata()) for size in (16, 4) if bits.set(bits=size)
    }
    assert [len(line) for line in lines.values()] == [1, 5]


@pytest.mark.parametrize(
    ("T", "window", "keep", "tile"), [(50, 7, 2, 16), (20, 64, 1, 8), (33, 1, 0, 10), (64, 5, 4, 3)]
)
def test_attention_in_a_window_is_attention_under_its_mask(T, window, keep, tile):
    Q, K, V = np.random.default_rng(T).normal(size=(3, T, 6))
    mask = (efficient.window_mask(T, window - 1) | (np.arange(T) < keep)) & attention.causal_mask(T)
    expected, _ = attention.scaled_dot_product_attention(Q, K, V, mask)
    assert reach.window_attention(Q, K, V, window, keep, tile) == pytest.approx(expected)


@pytest.mark.parametrize("kind", reach.KINDS)
def test_no_mask_of_the_figure_looks_ahead(kind):
    for size in (2, 5, 12):
        mask = reach.mask_of(kind, size)
        assert not np.triu(mask, 1).any()
        assert mask.diagonal().all()


def test_a_window_widens_by_itself_less_one_a_layer():
    for layers in (1, 3, 15, 16):
        known = efficient.reach(reach.mask_of("window", 4), layers)
        assert known[-1].sum() == min(1 + 3 * layers, reach.T)


def test_one_step_with_shared_heads_is_attention_with_repeated_ones():
    rng = np.random.default_rng(0)
    q, (K, V) = rng.normal(size=(6, 4)), rng.normal(size=(2, 2, 9, 4))
    repeated = (attention.repeat_heads(x[None], 6)[0] for x in (K, V))
    expected, _ = attention.scaled_dot_product_attention(q[:, None], *repeated)
    assert cache.one_step(q, K, V) == pytest.approx(expected[:, 0])


def test_published_configurations_in_bytes_a_token():
    """As their papers and configuration files say: 2 · layers · heads · width numbers of 16 bits, or the latent."""
    a_token = {m.name: m.cache(1, 16, cache.count) for m in cache.MODELS}
    assert a_token["Llama 2 7B"] == 2 * 32 * 32 * 128 * 2
    assert a_token["Llama 3.1 8B"] * 4 == a_token["Llama 2 7B"]
    assert a_token["SmolLM2 135M"] == 23_040
    assert a_token["DeepSeek-V3"] == 61 * 576 * 2
    gemma = next(m for m in cache.MODELS if m.local_layers)
    assert gemma.cache(5000, 16, cache.count) - gemma.cache(4000, 16, cache.count) == 8 * 2 * 8 * 256 * 2 * 1000


def test_the_share_of_pairs_is_what_the_library_counts():
    T, d = 640, 96
    one, other = bill.costs.attention_cost(T, d, 1), bill.costs.feed_forward_cost(T, d, 4 * d)
    pairs = one.multiply_adds - one.parts["projections"]
    assert bill.share_of_pairs(T, d) == pytest.approx(pairs / (one.multiply_adds + other.multiply_adds))
    assert bill.share_of_pairs(6 * d, d) == 0.5


@pytest.mark.parametrize("ahead", [0, 1, 3, 7])
def test_drafts_change_the_passes_and_not_the_text(ahead):
    config = models.GPTConfig(vocab=7, d_model=16, num_heads=2, num_layers=2, max_length=40)
    model, rng = models.GPT(config, np.random.default_rng(0)), np.random.default_rng(1)
    prompt = rng.integers(7, size=5).tolist()
    plain = model.generate([prompt], 30, rng, temperature=0)[0].tolist()
    for draft in (lambda ids: 3, lambda ids: ids[-1], lambda ids: plain[len(ids)]):
        spoken = decoding.speculate(model, prompt, 30, draft, ahead)
        assert spoken.ids[:35] == plain
        assert len(spoken.ids) == 35
        assert spoken.passes + 1 >= 30 / (ahead + 1)
    assert spoken.accepted == spoken.drafted  # the last one knew it all
    assert spoken.passes + 1 == -(-30 // (ahead + 1))


def test_the_table_of_drafts_says_what_follows_most_often():
    ids = np.array([0, 1, 2, 0, 1, 2, 0, 1, 1, 2])
    assert decoding.most_likely(ids, 3)[0, 1] == 2
    assert decoding.most_likely(ids, 3)[1, 2] == 0


def test_stored_results_hold_each_setting_on_each_text():
    stored = reach.real()
    texts = set(reach.TEXTS[1:])
    assert set(stored["window"]) == {f"{size} {keep}" for size in reach.WINDOWS for keep in reach.KEPT}
    assert set(stored["tokens"]) == texts
    parts = [part for part in stored.values() if isinstance(part, dict)][1:]
    assert all(set(one) == texts for part in parts for one in part.values())
    assert reach.perplexity("full", "all") == pytest.approx(np.prod(list(stored["full"]["all"].values())) ** (1 / 3))
