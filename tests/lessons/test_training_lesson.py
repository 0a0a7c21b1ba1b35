"""What notebook 08 counts, keeps, measures and takes away."""

import itertools
import json
from datetime import date
from functools import partial

import numpy as np
import pytest

from lesson_utils.classroom import course
from lesson_utils.classroom.live import testing
from lesson_utils.lessons.training import beside, experiment, film, lab, pruning, rates, slopes, survival
from lesson_utils.maths import attention, ops, tasks, training
from lesson_utils.maths.ops import softmax_backward


@pytest.fixture(scope="module")
def model():
    return experiment.transformer(3, dtype=np.float64)


# --- Dates, and what guessing reaches ---------------------------------------------------------------------------------


def test_dates_are_of_the_days_and_styles_asked_for():
    for held_out in (True, False):
        source, target = lab.dates_of(held_out, 20, (2,))
        for row, iso in zip(source, target, strict=True):
            year, month, day = tasks.ISO.decode(iso).split("-")
            assert tasks.WRITTEN.decode(row) == f"{int(day)}/{int(month)}/{year}"
            assert tasks.held_out(date.fromisoformat(f"{year}-{month}-{day}")) == held_out
    np.testing.assert_array_equal(lab.dates_of(n=7)[0], lab.dates_of(n=7)[0])


def test_the_rungs_are_the_losses_of_who_counts():
    days = [date.fromordinal(n) for n in range(711858, 748383)]
    assert (days[0], days[-1]) == (tasks.FIRST_DAY, tasks.LAST_DAY)
    iso = [day.isoformat() for day in days if not tasks.held_out(day)]
    target = tasks.with_ends(np.stack([tasks.ISO.encode(text) for text in iso]))
    counts = np.zeros((14, 14))
    np.add.at(counts, (target[:, :-1], target[:, 1:]), 1)
    p = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rungs = lab.rungs()
    assert list(rungs.values()) == sorted(rungs.values(), reverse=True)
    assert rungs["all alike"] == pytest.approx(np.log(len(tasks.ISO)))
    assert rungs["by pair"] == pytest.approx(-np.log(p[target[:, :-1], target[:, 1:]]).mean())
    assert rungs["all before"] == pytest.approx(np.log(len(iso)) / 11)  # all days are equally frequent


def test_exact_is_what_decoding_gives(model):
    source, target = lab.dates_of(n=30)
    for param in model.params().values():
        param.value += 0.1
    decoded = model.decode(source, 11)
    target = target.copy()
    target[:10, 1 : 1 + decoded.shape[1]] = decoded[:10]  # ten dates "right", if they are eleven symbols long
    whole = decoded.shape[1] == 11
    assert lab.exact(model, (source, target)) == pytest.approx(10 / 30 if whole else 0)


# --- The film ---------------------------------------------------------------------------------------------------------


def test_a_film_goes_back_to_what_the_model_knew():
    model = experiment.transformer(d_model=8, num_heads=2)
    start = {name: param.value.copy() for name, param in model.params().items()}
    camera = lab.Camera(model, 40)
    history = training.fit(model, partial(lab.batches, batch=4), 40, callback=camera, progress=False)
    seen = camera.film
    assert (seen.steps[0], seen.steps[-1]) == (0, 40)
    assert set(seen.kept) == set(seen.right) == camera.steps
    assert seen.history is history
    for step, values in ((0, start), (40, {name: param.value for name, param in model.params().items()})):
        for name, param in seen.at(step).params().items():
            np.testing.assert_array_equal(param.value, values[name])
    with pytest.raises(ValueError, match="step=33 was not kept"):
        seen.at(33)
    assert len(lab.Camera(model, 1000).steps) == 9


def test_a_frame_leaves_out_what_the_model_cannot_read(model):
    seen = film.frame(model, "3 März 2021!")
    assert seen.read == "3 Mr 2021"
    assert seen.left_out == "!zä"
    assert seen.weights.shape == (4, len(seen.written), len(seen.read))
    np.testing.assert_allclose(seen.weights.sum(axis=-1), 1)
    assert film.frame(model, "").read == "1"


# --- Slopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_slopes_are_right_and_the_wrong_backward_is_wrong_where_it_should(model):
    found = slopes.slopes(model)
    for (name, floats), slope in found.items():
        before = slope.array.copy()
        secant = slope.secant(1e-5 if floats == "float64" else 1e-2)
        np.testing.assert_array_equal(slope.array, before)
        assert secant == pytest.approx(slope.right, rel=1e-4 if floats == "float64" else 0.3)
        assert (slope.wrong == pytest.approx(slope.right, rel=1e-3)) == (name == "W_V")
    assert attention.softmax_backward is softmax_backward  # put back


@pytest.mark.slow
def test_the_microscope_draws_what_was_asked_for_and_no_more():
    figure = lab.slope_lab.example()
    assert "Best yet: ε = 0.1, " in figure.picture.alt
    (drawn,) = (len(line.get_xdata()) for line in testing.drawing(figure).axes[1].lines[:1])
    assert drawn == 1
    figure.set(epsilon=1e-12)
    assert len(testing.drawing(figure).axes[1].lines[0].get_xdata()) == len(slopes.EPSILONS)


# --- A training by what learners write --------------------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch):
    """The exercises' functions, by name, in a training of eight steps."""
    monkeypatch.setattr(beside, "STEPS", 8)
    lesson = course.named("training")
    return {name: lesson.exercise(name).function() for name in lesson.exercises}


def test_a_training_by_the_exercises_is_the_library_s(own):
    expected = beside.losses(0.1, [])
    parts = beside.own_parts(own["softmax_backward"], own["attention_backward"], own["smoothed_loss"])
    assert beside.losses(0.1, parts, own["adam_step"]) == pytest.approx(expected, rel=1e-12)
    assert beside.losses(0.1, []) == expected  # the library is put back
    assert ops.softmax_backward is softmax_backward


@pytest.mark.parametrize("wrong", ["softmax_backward", "attention_backward", "adam_step", "smoothed_loss"])
def test_each_of_the_four_functions_runs(own, wrong):
    expected, right = beside.losses(0.1, []), own[wrong]
    own[wrong] = {
        "softmax_backward": lambda dweights, weights: weights * dweights,
        "attention_backward": lambda *arrays: [0 * gradient for gradient in right(*arrays)],
        "adam_step": lambda value, grad, *rest: right(value, 0 * grad, *rest),
        "smoothed_loss": lambda *arrays: 2 * right(*arrays),
    }[wrong]
    parts = beside.own_parts(own["softmax_backward"], own["attention_backward"], own["smoothed_loss"])
    assert beside.losses(0.1, parts, own["adam_step"]) != pytest.approx(expected, rel=1e-6)


# --- Learning rates ---------------------------------------------------------------------------------------------------


def test_what_is_stored_is_whole():
    assert rates.STORED.stat().st_size < 30_000
    assert set(rates.stored()) == {rates.key(*recipe) for recipe in rates.RECIPES} | set(rates.LARGER)
    for norm, left_out in rates.RECIPES:
        found = rates.stored()[rates.key(norm, left_out)]
        for what in ("exact", "loss", "clipped"):
            assert np.shape(found[what]) == (len(rates.RATES), rates.STARTS)
        assert all(len(losses) == rates.STEPS // rates.WINDOW for losses in found["losses"])
        assert set(survival.survivors(norm, left_out)) <= set(rates.RATES)
    for size, (norm, left_out, rate) in itertools.product(rates.LARGER, rates.CHECKED):
        assert 0 <= survival.larger(size, norm, left_out, rate) <= 1


@pytest.mark.slow
def test_a_run_is_what_it_says():
    found = rates.run("post", "clipping", 1e-3, seed=0, steps=20)
    assert found == rates.run("post", "clipping", 1e-3, seed=0, steps=20)
    assert len(found.losses) == 2
    assert 0 <= found.clipped <= 1
    assert rates.run("post", "smoothing", 1e-3, seed=0, steps=20).losses[0] != found.losses[0]
    assert rates.run("pre", "nothing", 1e30, seed=0, steps=20).exact == 0


def test_results_are_stored_by_recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "STORED", tmp_path / "rates.json")
    results = {
        (rates.key(*recipe), rate, seed): rates.Run(rate, np.inf, seed, [1.5])
        for recipe in rates.RECIPES
        for rate in rates.RATES
        for seed in range(3)
    }
    larger = {("twice the steps", rates.key("pre", "nothing"), 0.008): rates.Run(0.75, 0.5, 0, [1.5])}
    rates.write(results, larger)
    stored = json.loads((tmp_path / "rates.json").read_text())
    assert stored["pre, without warm-up"]["exact"][2] == [rates.RATES[2]] * 3
    assert stored["post, without clipping"]["loss"][0] == [None] * 3
    assert stored["twice the steps"]["pre, without nothing"] == {"exact": {"0.008": 0.75}, "loss": {"0.008": 0.5}}


# --- Heads ------------------------------------------------------------------------------------------------------------


def test_heads_are_ranked_by_what_is_lost_without_them(model):
    batch = lab.dates_of(n=10)
    order = lab.by_importance(model, batch)
    assert len(set(order)) == 12
    losses = [pruning.loss_without(model, batch, [head]) for head in order]
    assert losses == sorted(losses)
    heads = [pruning.Head("cross", 0, 1), pruning.Head("encoder", 0, 3), pruning.Head("cross", 0, 0)]
    assert lab.without(heads) == {"cross": {0: [1, 0]}, "encoder": {0: [3]}}
    assert pruning.loss_without(model, batch, []) == pytest.approx(model.loss(batch))


def test_a_head_that_gives_nothing_costs_nothing():
    copy = experiment.transformer(3, dtype=np.float64)
    copy.blocks[0].cross.inner.W_O.value[8:16] = 0  # the rows of head 1
    assert pruning.loss_without(copy, lab.dates_of(n=10), [pruning.Head("cross", 0, 1)]) == pytest.approx(
        copy.loss(lab.dates_of(n=10))
    )
