"""What notebook 08 counts, keeps, measures and takes away."""

from contextlib import nullcontext
from datetime import date

import numpy as np
import pytest

from lesson_utils.classroom import course
from lesson_utils.lessons.training import experiment, lab
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
    smoothed = 0.9 * p[target[:, :-1], target[:, 1:]] + 0.1 / 14  # what smoothing 0.1 turns each guess into
    assert lab.rungs(0.1)["by pair"] == pytest.approx(-np.log(smoothed).mean())
    assert lab.rungs(0.1)["all before"] > rungs["all before"]


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
def test_slopes_are_right(model):
    for (_, floats, _), slope in lab.slopes(model).items():
        before = slope.array.copy()
        secant, _ = slope.secant(1e-5 if floats == "float64" else 1e-2)
        np.testing.assert_array_equal(slope.array, before)
        assert secant == pytest.approx(slope.right, rel=1e-4 if floats == "float64" else 0.3)


def test_a_wrong_backward_is_wrong_where_a_softmax_lies_behind(model):
    for label, name in lab.LAYERS.items():
        right, wrong = (lab.off_by(model, name, back, 1e-5) for back in (softmax_backward, lambda dw, w: dw * w))
        assert right < 1e-5
        assert (wrong < 1e-5) == (label == "cross-attention, W_V")
    assert attention.softmax_backward is softmax_backward  # put back


def test_formats_are_listed_by_start(model):
    found = lab.asked(model)
    assert [len(part) for part in found] == [len(lab.FORMS), len(lab.ODD)]
    assert lab.forms_table([found] * 3).head[-1] == "start 2"


# --- A training by what learners write --------------------------------------------------------------------------------


@pytest.fixture
def own():
    """The exercises' functions, by name."""
    lesson = course.named("training")
    return {name: lesson.exercise(name).function() for name in lesson.exercises}


def losses(own=None):
    """Train for eight steps, by the functions given or by the library."""
    model, rng = experiment.transformer(dtype=np.float64), np.random.default_rng(0)
    adam, changes = training.Adam(model.params()), nullcontext()
    if own:
        adam = lab.OwnAdam(model.params(), own["adam_step"])
        changes = lab.backward_by(own["loss_backward"], own["softmax_backward"], own["attention_backward"])
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


@pytest.mark.parametrize("wrong", ["loss_backward", "softmax_backward", "attention_backward", "adam_step"])
def test_each_of_the_four_functions_runs(own, wrong):
    expected, right = losses(), own[wrong]
    own[wrong] = {
        "softmax_backward": lambda dweights, weights: weights * dweights,
        "attention_backward": lambda *arrays: [0 * gradient for gradient in right(*arrays)],
        "adam_step": lambda value, grad, *rest: right(value, 0 * grad, *rest),
        "loss_backward": lambda logits, targets: right(logits, np.zeros_like(targets)),
    }[wrong]
    assert losses(own) != pytest.approx(expected, rel=1e-6)


# --- Learning rates ---------------------------------------------------------------------------------------------------


def test_the_pictures_count_what_they_show():
    rates, run = (0.002, 0.008, 0.016, 0.032), np.array([0.5, 2.0, 2.2])
    hills = {(norm, warmup): [np.tile(run, (3, 1))] * 4 for norm in ("pre", "post") for warmup in (60, 0)}
    assert "50% are right at 0.016" in lab.hills_plot(rates, hills).alt
    blind = dict(hills)
    blind["post", 0] = [np.tile([0.0, 2.29, 2.29], (3, 1))] * 4
    assert "6 of 12 runs past the cliff do not read their source" in lab.blind_plot(rates, blind).alt


def test_qk_norm_is_in_all_attentions_and_is_put_back(model):
    batch = experiment.dates_of(n=5)
    before = model.loss(batch)
    with lab.qk_norm():
        assert model.loss(batch) != before
    with lab.qk_norm(on=False):
        assert model.loss(batch) == before
    assert model.loss(batch) == before


def test_qk_norm_s_backward_pass_is_that_of_its_forward_pass():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((4, 3), (6, 3), (6, 5))]
    up = rng.normal(size=(4, 5))
    found = lab.normed_backward(up, lab.normed_forward(*arrays)[1])
    for gradient, array in zip(found, arrays, strict=True):
        slopes_of = numerical_gradient(lambda _: float((up * lab.normed_forward(*arrays)[0]).sum()), array)
        np.testing.assert_allclose(gradient, slopes_of, atol=1e-7)
