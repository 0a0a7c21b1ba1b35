"""What notebook 07 says of memories and tiles holds in other draws; its figures show what is computed."""

import numpy as np
import pytest

from lesson_utils.lessons.efficient_attention import exercises, lab, measured, memory, published
from lesson_utils.maths import fast_weights
from tools import testing

KINDS = ({}, {"by_chance": True}, {"dense": True})


@pytest.mark.parametrize("seed", range(3))
def test_what_a_matrix_remembers_in_other_draws(seed):
    def recall(pairs, **rule):
        return memory.recall(pairs, seed=seed, **rule)

    assert memory.softmax_recall(256, seed) == 1
    once, by_chance, dense = ([recall(64, feature_map=f, **kind) for f in memory.MAPS] for kind in KINDS)
    assert min(found.everything for found in once) > 0.98  # the mean adds the same to every switch
    assert by_chance[1].everything < 0.2
    assert max(dense[1].everything, dense[3].everything) < 0.1  # plain keys with the mean alone do as badly
    assert min(dense[0].everything, dense[2].everything) > 0.93
    named, there = memory.votes(seed=seed)
    assert named > 0.95 > 0.3 > there
    adds, fades, overwrites = (recall(64, **rule) for rule in ({}, {"decay": 0.9}, {"overwrite": True}))
    assert adds.everything > 0.98
    assert adds.oldest == pytest.approx(adds.newest, abs=0.08)
    assert fades.oldest < 0.15 < 0.9 < fades.newest
    assert overwrites.oldest < 0.45 < 0.98 < overwrites.newest
    assert 0.35 < adds.rewritten < 0.65 < overwrites.rewritten
    slow = recall(64, overwrite=True, rate=0.2)  # the delta rule at a small rate remembers and corrects
    assert slow.everything > 0.95 > 0.75 > overwrites.everything
    assert slow.rewritten > 0.95
    keys, values = memory.draw(64, seed)
    rules = (
        (0.97, False, 1.0),
        (1.0, True, 0.2),
        (1.0, True, 1.0),
    )  # what was written eight times, only rate 1 corrects
    news = [memory.rewritten(keys, values, 8, 8, decay=d, overwrite=o, rate=r) for d, o, r in rules]
    assert max(news[:2]) < 0.05 < 0.97 < news[2]


def test_no_value_comes_twice_before_each_has_come_once():
    _, values = memory.draw(100)
    assert all(len(set(of[:64])) == 64 and len(set(of[64:])) == 36 for of in values)


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


def test_published_configurations_in_bytes_a_token():
    """As their papers and configuration files say: 2 · layers · heads · width numbers of 16 bits, or the latent."""
    a_token = {m.name: m.cache(1) for m in published.MODELS}
    assert a_token["Llama 2 7B"] == 2 * 32 * 32 * 128 * 2
    assert a_token["Llama 3.1 8B"] * 4 == a_token["Llama 2 7B"]
    assert a_token["SmolLM2 135M"] == 23_040
    assert a_token["DeepSeek-V3"] == 61 * 576 * 2
    saved = {m.name: m.without(1000) / m.cache(1000) for m in published.MODELS}
    assert saved["SmolLM2 135M"] == 3
    assert [round(saved[name]) for name in ("Falcon 7B", "DeepSeek-V3")] == [71, 71]
    gemma = next(m for m in published.MODELS if m.local_layers)
    assert gemma.cache(5000) - gemma.cache(4000) == 8 * 2 * 8 * 256 * 2 * 1000


def test_figures_run_by_the_exercises_are_the_library_s():
    _, rounding, step = (exercise.function() for exercise in exercises.EXERCISES)
    assert memory.recall_by(step, 32) == pytest.approx(memory.recall(32, overwrite=True).everything, abs=0.01)
    for sharing in published.SHARING:
        ours, theirs = (lab.shared_by(published.sample(), 3, sharing, way) for way in (published.rounded, rounding))
        np.testing.assert_allclose(ours, theirs)


def test_ways_are_measured_with_what_was_there_before(monkeypatch):
    calls = {"fresh": lambda: np.ones(100_000) + 1, "in place": lambda: None}
    ways = measured.measured_ways(calls, {"in place": 800_000})
    assert [ways[0].name, ways[-1].name] == ["fresh", "in place"]
    assert all(800_000 <= way.bytes < 810_000 for way in ways)
    monkeypatch.setattr(measured.ctypes, "CDLL", lambda name: object())  # a system without glibc
    assert [way.name for way in measured.measured_ways(calls, {})] == ["fresh", "in place"]


def test_a_choice_counts_the_cache_of_each_text():
    way = lab.WAYS[1]
    one, four = (lab.choice(texts, way, "all", 16) for texts in (1, 4))
    smol = next(m for m in published.MODELS if m.name.startswith("SmolLM2"))
    assert one.caches == smol.cache(lab.TOKENS)
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
