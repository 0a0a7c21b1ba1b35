"""What notebook 07 says of memories, tiles and drafts holds in other draws; its figures show what is computed."""

import numpy as np
import pytest

from lesson_utils.lessons.efficient_attention import exercises, lab, measured, memory, published
from lesson_utils.maths import attention, efficient, fast_weights, models
from tools import testing


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_a_matrix_remembers_in_other_draws(seed):
    def recall(pairs, **rule):
        return memory.recall(pairs, seed=seed, **rule)

    assert memory.softmax_recall(256, seed) == 1
    assert recall(16, feature_map="elu + 1").everything < 0.5
    assert recall(32, feature_map="elu + 1").everything < 0.3
    assert recall(16, feature_map=memory.MAPS[2]).everything > 0.99  # without its mean
    adds, fades, overwrites = (recall(64, **rule) for rule in ({}, {"decay": 0.9}, {"overwrite": True}))
    assert adds.everything > 0.95
    assert adds.oldest == pytest.approx(adds.newest, abs=0.08)
    assert fades.oldest < 0.1 < 0.97 < fades.newest
    assert overwrites.oldest < 0.4 < 0.98 < overwrites.newest
    assert 0.35 < adds.rewritten < 0.65 < overwrites.rewritten
    slow = recall(64, overwrite=True, rate=0.2)  # the delta rule at a small rate remembers and corrects
    assert slow.everything > 0.93 > 0.7 > overwrites.everything
    assert slow.rewritten > 0.93


def test_the_sum_in_one_product_is_written_pair_by_pair():
    keys, values = memory.draw(9, dtype=np.float64)
    one_hot = np.eye(memory.VALUES)[values]
    S = np.zeros((memory.RUNS, memory.D_K, memory.VALUES))
    for t in range(9):
        S = fast_weights.write(S, keys[:, t], one_hot[:, t], 0.7)
    assert memory.written(keys, values, 0.7, False) == pytest.approx(S)


@pytest.mark.parametrize("size", lab.SIZES)
def test_tiles_are_exact_at_the_end_and_forgetting_is_not(size):
    last = lab.moments(size, False)[-1]
    assert last.output / last.total == pytest.approx(lab.exact())
    wrong = lab.moments(size, True)[-1]
    assert (abs(wrong.output / wrong.total - lab.exact()) > 0.005) == (size < lab.KEYS)


@pytest.mark.parametrize(("T", "tile"), [(9, 4), (12, 12), (10, 1)])
def test_attention_by_the_exercise_is_attention(T, tile):
    Q, K, V = np.random.default_rng(T).normal(size=(3, T, 5))
    step = exercises.EXERCISES[0].function()
    assert lab.attend_in_tiles(step, Q, K, V, tile) == pytest.approx(attention.scaled_dot_product_attention(Q, K, V)[0])


@pytest.mark.parametrize(
    ("T", "window", "keep", "tile"), [(50, 7, 2, 16), (20, 64, 1, 8), (33, 1, 0, 10), (64, 5, 4, 3)]
)
def test_attention_in_a_window_is_attention_under_its_mask(T, window, keep, tile):
    Q, K, V = np.random.default_rng(T).normal(size=(3, T, 6))
    mask = (efficient.window_mask(T, window - 1) | (np.arange(T) < keep)) & attention.causal_mask(T)
    expected, _ = attention.scaled_dot_product_attention(Q, K, V, mask)
    assert lab.window_attention(Q, K, V, window, keep, tile) == pytest.approx(expected)


def test_published_configurations_in_bytes_a_token():
    """As their papers and configuration files say: 2 · layers · heads · width numbers of 16 bits, or the latent."""
    a_token = {m.name: m.cache(1, 16, published.count) for m in published.MODELS}
    assert a_token["Llama 2 7B"] == 2 * 32 * 32 * 128 * 2
    assert a_token["Llama 3.1 8B"] * 4 == a_token["Llama 2 7B"]
    assert a_token["SmolLM2 135M"] == 23_040
    assert a_token["DeepSeek-V3"] == 61 * 576 * 2
    saved = {
        m.name: m.without(131_072, 16, published.count) / m.cache(131_072, 16, published.count)
        for m in published.MODELS
    }
    assert saved["SmolLM2 135M"] == 3
    assert [round(saved[name]) for name in ("Falcon 7B", "DeepSeek-V3")] == [71, 71]
    gemma = next(m for m in published.MODELS if m.local_layers)
    assert gemma.cache(5000, 16, published.count) - gemma.cache(4000, 16, published.count) == 8 * 2 * 8 * 256 * 2 * 1000


@pytest.mark.parametrize("ahead", [0, 1, 3, 7])
def test_drafts_change_the_passes_and_not_the_text(ahead):
    config = models.GPTConfig(vocab=7, d_model=16, num_heads=2, num_layers=2, max_length=40)
    model, rng = models.GPT(config, np.random.default_rng(0)), np.random.default_rng(1)
    prompt = rng.integers(7, size=5).tolist()
    plain = model.generate([prompt], 30, rng, temperature=0)[0].tolist()
    for draft in (lambda ids: 3, lambda ids: ids[-1], lambda ids: plain[len(ids)]):
        spoken = lab.speculate(model, prompt, 30, draft, ahead)
        assert spoken.ids[:35] == plain
        assert len(spoken.ids) == 35
        assert spoken.passes + 1 >= 30 / (ahead + 1)
    assert spoken.accepted == spoken.drafted  # the last one knew it all
    assert spoken.passes + 1 == -(-30 // (ahead + 1))


def test_the_table_of_drafts_says_what_follows_most_often():
    ids = np.array([0, 1, 2, 0, 1, 2, 0, 1, 1, 2])
    assert lab.most_likely(ids, 3)[0, 1] == 2
    assert lab.most_likely(ids, 3)[1, 2] == 0


def test_figures_run_by_the_exercises_are_the_library_s():
    _, _, rounding, count, step = (exercise.function() for exercise in exercises.EXERCISES)
    for model in published.MODELS:
        assert model.cache(3000, 8, count) == model.cache(3000, 8, published.count)
    assert lab.savings_table(count) == lab.savings_table(published.count)
    assert memory.recall_by(step, 32) == pytest.approx(memory.recall(32, overwrite=True).everything, abs=0.01)
    for kind in published.KINDS:
        for sharing in published.SHARING:
            x = published.sample()[kind]
            ours, theirs = (lab.shared_by(x, 3, sharing, way) for way in (published.rounded, rounding))
            np.testing.assert_allclose(ours, theirs)


def test_four_ways_give_the_same_outputs():
    Q, K, V = np.random.default_rng(1).normal(size=(3, 150, 8)).astype(np.float32)
    expected = attention.scaled_dot_product_attention(Q, K, V)[0]
    kept = np.ones((150, 150), np.float32)
    for output in (
        measured.with_fresh_arrays(Q, K, V),
        measured.in_one_array(Q, K, V, kept),
        measured.some_rows_at_a_time(Q, K, V, kept[:40]),
        measured.in_tiles(5 * Q / 5, K, V, rows=64, keys=32),
    ):
        assert output == pytest.approx(expected, abs=1e-5)


def test_measured_ways_count_the_bytes_of_what_they_keep():
    Q, K, V = np.ones((3, 256, 8), np.float32)
    fresh, one, rows, tiles_ = measured.measured_ways(Q, K, V, rounds=1)
    assert fresh.bytes > one.bytes >= 256 * 256 * 4 > rows.bytes
    assert tiles_.bytes < one.bytes


def test_a_choice_counts_the_cache_of_each_text():
    way = lab.WAYS[1]
    one, four = (lab.choice(texts, way, "all", 16) for texts in (1, 4))
    smol = next(m for m in published.MODELS if m.name.startswith("SmolLM2"))
    assert one.caches == smol.cache(lab.TOKENS, 16, published.count)
    assert four.caches == 4 * one.caches
    assert lab.choice(1, way, "64", 16).caches == one.caches * 65 / lab.TOKENS
    assert lab.choice(1, way, "all", 4).caches == one.caches * 4.75 / 16
    assert lab.choice(1, lab.WAYS[0], "all", 16).weights_of_pairs == 128 * one.weights_of_pairs


def test_curves_grow_as_they_are_asked_for():
    window, rounds = lab.window_lab(), lab.round_lab.example()
    assert "128 " not in window.picture.alt
    assert "1 kept" not in window.picture.alt
    assert "128 47" in window.set(window=128).alt
    assert "1 kept: 16" in window.set(keep=1).alt
    for bits, points in ((16, 1), (3, 3)):
        rounds.set(bits=bits)
        assert len(testing.drawing(rounds).axes[2].lines[0].get_xdata()) == points
