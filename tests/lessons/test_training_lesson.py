"""What notebook 08 counts, keeps, measures and takes away."""

from contextlib import nullcontext
from datetime import date
from functools import partial

import numpy as np
import pytest

from lesson_utils.classroom import course
from lesson_utils.lessons.training import experiment, lab, rates, recipes
from lesson_utils.maths import attention, ops, tasks, training
from lesson_utils.maths.gradcheck import numerical_gradient
from lesson_utils.maths.ops import softmax_backward


@pytest.fixture(scope="module")
def model():
    return experiment.transformer(3, dtype=np.float64)


# --- Dates, and what guessing reaches ---------------------------------------------------------------------------------


def test_dates_are_of_the_days_and_styles_asked_for():
    for held_out in (True, False):
        source, target = experiment.dates_of(held_out, 20, (2,))
        for row, iso in zip(source, target, strict=True):
            year, month, day = tasks.ISO.decode(iso).split("-")
            assert tasks.WRITTEN.decode(row) == f"{int(day)}/{int(month)}/{year}"
            assert tasks.held_out(date.fromisoformat(f"{year}-{month}-{day}")) == held_out
    np.testing.assert_array_equal(experiment.dates_of(n=7)[0], experiment.dates_of(n=7)[0])


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
    source, target = experiment.dates_of(n=30)
    for param in model.params().values():
        param.value += 0.1
    decoded = model.decode(source, 11)
    target = target.copy()
    target[:10, 1 : 1 + decoded.shape[1]] = decoded[:10]  # ten dates "right", if they are eleven symbols long
    assert lab.exact(model, (source, target)) == pytest.approx(10 / 30 if decoded.shape[1] == 11 else 0)


# --- The film ---------------------------------------------------------------------------------------------------------


def test_a_film_goes_back_to_what_the_model_knew():
    model = experiment.transformer(d_model=8, num_heads=2)
    start = {name: param.value.copy() for name, param in model.params().items()}
    camera = lab.Camera(model, 40)
    rng, adam = np.random.default_rng(0), training.Adam(model.params())
    for step in camera.steps():
        adam.zero_grad()
        camera.note(model.loss_and_grad(lab.batches(rng, 4)), float(step))
        adam.step()
    seen = camera.film
    assert (seen.steps[0], seen.steps[-1]) == (0, 40)
    assert set(seen.kept) == set(seen.right) == set(seen.places) == camera.kept_at
    assert seen.places[0].shape == (11,)
    assert seen.right[0] <= seen.places[0].min()  # on the same dates
    assert seen.history.norms == list(range(1, 41))
    assert len(seen.history.losses) == 40
    assert seen.history.seconds > 0
    for step, values in ((0, start), (40, {name: param.value for name, param in model.params().items()})):
        for name, param in seen.at(step).params().items():
            np.testing.assert_array_equal(param.value, values[name])
    with pytest.raises(ValueError, match="step=33 was not kept"):
        seen.at(33)
    assert len(lab.Camera(model, 1000).kept_at) == 9


def test_a_frame_leaves_out_what_the_model_cannot_read(model):
    seen = lab.frame(model, "3 März 2021!")
    assert seen.read == "3 Mr 2021"
    assert seen.left_out == "!zä"
    assert seen.weights.shape == (4, len(seen.written), len(seen.read))
    np.testing.assert_allclose(seen.weights.sum(axis=-1), 1)
    assert lab.frame(model, "").read == "1"


# --- Slopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_slopes_are_right_and_the_wrong_backward_is_wrong_where_it_should(model):
    found = lab.slopes(model)
    for (name, floats, _), slope in found.items():
        before = slope.array.copy()
        secant, _ = slope.secant(1e-5 if floats == "float64" else 1e-2)
        np.testing.assert_array_equal(slope.array, before)
        assert secant == pytest.approx(slope.right, rel=1e-4 if floats == "float64" else 0.3)
        assert (slope.wrong == pytest.approx(slope.right, rel=1e-3)) == (name == "W_V")
    assert attention.softmax_backward is softmax_backward  # put back


# --- A training by what learners write --------------------------------------------------------------------------------


@pytest.fixture
def own():
    """The exercises' functions, by name."""
    lesson = course.named("training")
    return {name: lesson.exercise(name).function() for name in lesson.exercises}


def losses(own=None):
    """Train for eight steps with smoothed targets, by the functions given or by the library."""
    model, rng = experiment.transformer(dtype=np.float64, smoothing=0.1), np.random.default_rng(0)
    adam, changes = training.Adam(model.params()), nullcontext()
    if own:
        adam = lab.OwnAdam(model.params(), own["adam_step"])
        changes = lab.backward_by(own["softmax_backward"], own["attention_backward"], own["smoothed_loss"])
    found = []
    with changes:
        for _ in range(8):
            adam.zero_grad()
            found.append(model.loss_and_grad(lab.batches(rng, 16)))
            adam.step(8e-3)
    return found


def test_a_training_by_the_exercises_is_the_library_s(own):
    expected = losses()
    assert losses(own) == pytest.approx(expected, rel=1e-12)
    assert losses() == expected  # the library is put back
    assert ops.softmax_backward is softmax_backward


@pytest.mark.parametrize("wrong", ["softmax_backward", "attention_backward", "adam_step", "smoothed_loss"])
def test_each_of_the_four_functions_runs(own, wrong):
    expected, right = losses(), own[wrong]
    own[wrong] = {
        "softmax_backward": lambda dweights, weights: weights * dweights,
        "attention_backward": lambda *arrays: [0 * gradient for gradient in right(*arrays)],
        "adam_step": lambda value, grad, *rest: right(value, 0 * grad, *rest),
        "smoothed_loss": lambda *arrays: 2 * right(*arrays),
    }[wrong]
    assert losses(own) != pytest.approx(expected, rel=1e-6)


# --- Learning rates ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_what_it_says():
    def run(norm, left_out, rate, steps=20):
        return rates.run(norm, left_out, rate, seed=0, steps=steps)

    found = run("post", "clipping", 1e-3)
    assert found == run("post", "clipping", 1e-3)
    assert len(found.losses) == 2
    assert 0 <= found.clipped <= 1
    assert run("post", "smoothing", 1e-3).losses[0] != found.losses[0]
    assert run("pre", "nothing", 1e30).exact == 0
    untaught = run(
        "pre", "nothing", 1e-9, steps=1
    )  # it has learnt nothing, so the sources of other dates hardly matter
    assert untaught.blind == pytest.approx(untaught.loss, rel=0.01)
    assert untaught.blind != untaught.loss


@pytest.mark.parametrize("kind", rates.SCHEDULES)
def test_schedules_rise_alike_and_end_as_they_say(kind):
    rate = partial(rates.rate_at, kind, peak=2.0, warmup=10, total=101)
    assert [rate(step) for step in (1, 5, 10)] == [0.2, 1.0, 2.0]
    assert rate(101) == pytest.approx(2.0 if kind == "constant" else 0)
    line = [training.warmup_linear(step, peak=2.0, warmup=10, total=101) for step in range(1, 101)]
    if kind == "linear":
        assert [rate(step) for step in range(1, 101)] == pytest.approx(line)


def test_qk_norm_s_backward_pass_is_that_of_its_forward_pass():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((4, 3), (6, 3), (6, 5))]
    up = rng.normal(size=(4, 5))
    found = recipes.normed_backward(up, recipes.normed_forward(*arrays)[1])
    for gradient, array in zip(found, arrays, strict=True):
        slopes_of = numerical_gradient(lambda _: float((up * recipes.normed_forward(*arrays)[0]).sum()), array)
        np.testing.assert_allclose(gradient, slopes_of, atol=1e-7)


# --- Heads ------------------------------------------------------------------------------------------------------------


def test_heads_are_ranked_by_what_is_lost_without_them(model):
    batch = experiment.dates_of(n=10)
    order = experiment.by_importance(model, batch)
    assert len(set(order)) == 12
    losses = [experiment.loss_without(model, batch, [head]) for head in order]
    assert losses == sorted(losses)
    heads = [experiment.Head("cross", 0, 1), experiment.Head("encoder", 0, 3), experiment.Head("cross", 0, 0)]
    assert experiment.without(heads) == {"cross": {0: [1, 0]}, "encoder": {0: [3]}}
    assert experiment.loss_without(model, batch, []) == pytest.approx(model.loss(batch))


def test_a_head_that_gives_nothing_costs_nothing():
    copy, batch = experiment.transformer(3, dtype=np.float64), experiment.dates_of(n=10)
    copy.blocks[0].cross.inner.W_O.value[8:16] = 0  # the rows of head 1
    assert experiment.loss_without(copy, batch, [experiment.Head("cross", 0, 1)]) == pytest.approx(copy.loss(batch))


def test_heads_are_taken_away_one_at_a_time_and_together(model):
    found = experiment.sums(model, most=2)
    assert len(found["alone"]) == 2
    assert len(found["same"]) == 4
    assert all(0 <= n <= 2 for n in found["same"])
    two = [{"alone": [0.1, 0.1], "together": 0.4}, {"alone": [0.05, 0.05], "together": 0.1}]
    assert "Together the four cost 1.0 to 2.0 times what they cost one at a time" in lab.sums_plot(two).alt
