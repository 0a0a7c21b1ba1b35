"""The numbers that the labs of notebook 03 compute, and its live figures, on small models."""

import numpy as np
import pytest

from lesson_utils.exercises import check
from lesson_utils.lessons.multi_head import experiment, lab
from lesson_utils.maths import gradcheck, models, tasks


def make(num_heads, seed=0, of=models.Encoder):
    sizes = {"d_model": 32, "num_heads": num_heads, "num_layers": 1, "d_ff": 16}
    config = models.EncoderConfig(vocab=23, classes=23, outputs=4, positions="learned", max_length=24, **sizes)
    return of(config, np.random.default_rng(seed))


def in_float64(model):
    for param in model.params().values():
        param.value = param.value.astype(np.float64)
        param.grad = np.zeros_like(param.value)
    return model


class Answers(models.Encoder):
    """Answers what a function makes of the source, (n, T, 4)."""

    def forward(self, source, **named):
        return np.eye(23)[self.answer(source)], super().forward(source)[1]


def test_examine_counts_what_is_right():
    """A model that knows the four symbols but gives them in another order; and one right at the third offset only."""
    model = make(2, of=Answers)
    places = (np.arange(24)[:, None] + np.roll(lab.OFFSETS, 1)) % 24
    model.answer = lambda source: source[:, places]
    result = lab.examine(model, 20)
    assert result.among == 1
    assert result.accuracy == pytest.approx(0.05, abs=0.02)
    assert result.maps.shape == (2, 24, 24)
    np.testing.assert_allclose(result.profile.sum(axis=-1), 1, rtol=1e-5)
    assert 1 / 24 < result.sharpness < 1
    model.answer = lambda source: np.roll(source, -lab.OFFSETS[2], axis=1)[..., None] * np.array([0, 0, 1, 0])
    result = lab.examine(model, 5)
    np.testing.assert_array_equal(result.right, [0, 0, 1, 0])
    assert (result.accuracy, result.among) == (0.25, 0.25)


def test_main_offset_goes_the_short_way_round():
    assert [experiment.main_offset(0.9 * np.eye(24)[o]) for o in (0, 1, 12, 13, 23)] == ["+0", "+1", "+12", "−11", "−1"]
    assert experiment.main_offset(np.full(24, 1 / 24)) == ""


def test_a_model_runs_on_any_multi_head_attention():
    model = make(4)
    usual, by_ours = lab.examine(model, 20), lab.examine(model, 20, experiment.self_attention)
    np.testing.assert_allclose(by_ours.maps, usual.maps, rtol=1e-5)
    np.testing.assert_array_equal(by_ours.right, usual.right)
    nothing = lab.examine(model, 20, lambda x, *_: (0 * x, np.zeros((len(x), 4, 24, 24))))
    assert nothing.maps.max() == 0
    again = lab.examine(model, 20)
    np.testing.assert_array_equal(again.maps, usual.maps)  # the model is what it was


@pytest.mark.parametrize("multi_head", [None, experiment.self_attention])
def test_a_head_without_its_rows_counts_for_nothing(multi_head):
    model = make(4)
    (layer,) = model.heads()["encoder"]
    source, target = experiment.held_out(20)
    with models.trying(model, {"encoder": {0: [1]}}):
        right = (model.forward(source)[0].argmax(axis=-1) == target).mean(axis=(0, 1))
    without = lab.examine(model, 20, multi_head, W_O=check.without_head.mine(...)(layer.W_O.value, 1, 4))
    np.testing.assert_array_equal(without.right, right)
    assert (without.right != lab.examine(model, 20).right).any()


def test_a_survey_is_what_its_models_are():
    several = [make(4, seed) for seed in (0, 1)]
    found = experiment.survey(several, removed=True)
    alone = [lab.examine(model) for model in several]
    np.testing.assert_allclose(found.accuracy, [result.accuracy for result in alone])
    single = make(1)
    np.testing.assert_allclose(experiment.survey([single]).profile, [lab.examine(single).profile])
    assert found.profile.size == 0
    (layer,) = several[1].heads()["encoder"]
    without = lab.examine(several[1], 200, W_O=check.without_head.mine(...)(layer.W_O.value, 2, 4)).right
    np.testing.assert_allclose(found.zeros[1, 2], without)
    with models.trying(several[1], {"encoder": {0: [2]}}, "mean"):
        source, target = experiment.held_out(200)
        right = (several[1].forward(source)[0].argmax(axis=-1) == target).mean(axis=(0, 1))
    np.testing.assert_allclose(found.means[1, 2], right)
    assert experiment.survey(several).zeros.size == 0


@pytest.mark.parametrize(("d_k", "d_v"), [(8, 2), (2, 8), (1, 3)])
def test_keys_and_values_of_other_widths_train(d_k, d_v):
    model, batch = make(16), tasks.gather(np.random.default_rng(0), 2)
    before = model.num_params()
    lab.widths(d_k, d_v, seed=0)(model)
    assert model.num_params() - before == 32 * 16 * (2 * d_k + 2 * d_v) - 4 * 32 * 32
    in_float64(model)
    gradcheck.check_params(lambda: model.loss_and_grad(batch), model.params(), np.random.default_rng(0), samples=2)
    assert lab.examine(model, 5).maps.shape == (16, 24, 24)
    same, other = make(16), make(16)
    lab.widths(d_k, d_v, seed=0)(same)
    lab.widths(d_k, d_v, seed=1)(other)
    drawn, again, anew = (one.heads()["encoder"][0].W_Q.value for one in (model, same, other))
    np.testing.assert_array_equal(drawn, again)
    assert (drawn != anew).any()


def test_a_step_of_some_parameters_is_four_times_as_long():
    model, usual = make(2), make(2)
    after_step = lab.faster("W_Q", "head")(model)
    for one in (model, usual):
        for param in one.params().values():
            param.value = param.value + np.float32(0.01)
    after_step()
    for (name, param), before, other in zip(
        model.params().items(), make(2).params().values(), usual.params().values(), strict=True
    ):
        longer = name.endswith("W_Q") or name.startswith("head")
        np.testing.assert_allclose(param.value, before.value + (0.04 if longer else 0.01), atol=1e-6)
        assert longer or (param.value == other.value).all()
    assert lab.faster("W_Q", "head").__name__ == "faster_W_Q_head"


def test_held_weights_stay_what_they_are_while_the_rest_learns():
    model, batch = make(1), tasks.gather(np.random.default_rng(0), 2)
    lab.weights_held(8, 4, 2, 1)(model)
    assert lab.weights_held(8, 4, 2, 1).__name__ == "weights_held_8_4_2_1"
    profile = lab.examine(model, 5).profile[0]
    np.testing.assert_allclose(profile[list(lab.OFFSETS)], np.array([8, 4, 2, 1]) / 15, rtol=1e-4)
    model.loss_and_grad(batch)
    grads = {name.rsplit(".", 1)[-1]: param.grad for name, param in model.params().items()}
    assert not grads["W_Q"].any()
    assert not grads["W_K"].any()
    assert grads["W_V"].any()
    assert grads["W_O"].any()


def test_a_model_of_several_layers_is_examined_at_its_first():
    sizes = {"d_model": 32, "num_heads": 1, "num_layers": 3, "d_ff": 16}
    config = models.EncoderConfig(vocab=23, classes=23, outputs=4, positions="learned", max_length=24, **sizes)
    model = models.Encoder(config, np.random.default_rng(0))
    _, cache = model.forward(experiment.held_out(5)[0])
    np.testing.assert_allclose(lab.examine(model, 5).maps, model.maps(cache)["encoder"][0].mean(axis=0))


def test_on_uneven_sequences_one_symbol_fills_half_of_the_places():
    source, target = lab.uneven(*lab.held_out(50))
    assert (source == source[0, 0]).mean() == pytest.approx(0.525, abs=0.03)
    np.testing.assert_array_equal(target[:, 3, 0], source[:, 4])
    np.testing.assert_array_equal(target[:, 3, 2], source[:, 2])


def test_a_scrambled_head_sees_six_neighbours_only():
    """Four heads on 24 tokens: what happens to a token reaches those of its own six, and no others."""
    model = make(4)
    lab.scramble(model)
    source, _ = experiment.held_out(1)
    changed = source.copy()
    changed[0, 8] = 3 if source[0, 8] != 3 else 4
    moved = (model.forward(source)[0] != model.forward(changed)[0]).any(axis=(0, 2, 3))  # (T,)
    np.testing.assert_array_equal(np.flatnonzero(moved), np.arange(6, 12))


def test_a_scrambled_model_has_the_right_gradients():
    model, rng = in_float64(make(2)), np.random.default_rng(0)
    lab.scramble(model)
    batch = tasks.gather(rng, 2)
    gradcheck.check_params(lambda: model.loss_and_grad(batch), model.params(), rng, samples=2)


def a_survey(profile=None, right=1.0, zeros=None, count=3, heads=4):
    profile = np.full((count, heads, 24), 1 / 24) if profile is None else profile
    nothing = np.zeros(0) if zeros is None else zeros
    return experiment.Survey(np.full((count, 4), right), profile, np.ones(count), nothing, nothing)


def test_titles_say_what_the_numbers_say():
    profile = np.zeros((2, 1, 24))
    profile[:, 0, list(lab.OFFSETS)] = np.array([4, 1, 8, 2]) / 15  # digits, but not the first at the first offset
    alt = lab.digits({"found": a_survey(profile, 0.5, count=2)}).alt
    assert alt.startswith("The weights end at 8 : 4 : 2 : 1. In the end 50% of the answers are right.")
    one = 1 - 0.9 * np.eye(4)
    shared = one[[2, 2, 3, 1]]  # by two heads
    others = np.where(one == 1, 0.7, one)  # the others suffer, too
    kept = np.where(one == 1, 1, 0.6)  # none is lost
    alt = lab.removals(a_survey(zeros=np.stack([one, shared, others, kept, one[::-1]]), count=5)).alt
    assert "In 2 of 5 starts, each head has an offset of its own (dark frame): starts 0, 4." in alt
    surveys = {1: a_survey(right=0.3), 4: a_survey(right=0.96), 8: a_survey(right=1.0)}
    alt = lab.accuracy_plot({0.01: surveys, 0.02: {1: surveys[1], 4: surveys[8]}}).alt
    assert alt.startswith("Learning rate 0.01: medians above 0.9 with 4 and 8 heads. Learning rate 0.02:")
    alt = lab.head_jobs(make(4), np.where(np.eye(4), [[0.1], [0.2], [0.9], [0.3]], 1)).alt
    assert "Without it, +1 is lost. Without it, +12 is lost. Without it, none is. Without it, +10 is lost." in alt


def test_one_model_alone_can_not_be_compared():
    with pytest.raises(ValueError, match=r"by_heads holds models with \(1,\) heads; run the cell"):
        lab.heads_lab({1: make(1)}, experiment.self_attention)
