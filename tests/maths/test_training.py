"""Optimisers, schedules, the loop, and files of parameters, on a model of one line."""

import functools
import io
import math
import re
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import strategies as st
from straight_line import Line, assert_same, batches, values
from tqdm import tqdm

from lesson_utils.maths import training
from lesson_utils.maths.layers import Param
from lesson_utils.maths.training import SGD, Adam, History, clip_gradients, fit

FLOATS = (np.float32, np.float64)
every_dtype = pytest.mark.parametrize("dtype", FLOATS)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def some_params(rng, dtype=np.float64):
    params = {name: Param(rng.normal(size=shape).astype(dtype)) for name, shape in SHAPES.items()}
    for param in params.values():
        param.grad += rng.normal(size=param.grad.shape).astype(dtype)
    return params


SHAPES = {"scalar": (), "row": (5,), "table": (3, 4), "empty": (0, 2), "block": (2, 1, 3)}
OPTIMIZERS = {
    "SGD": functools.partial(SGD, lr=0.1),
    "momentum": functools.partial(SGD, lr=0.1, momentum=0.9),
    "Adam": functools.partial(Adam, lr=0.1),
    "AdamW": functools.partial(Adam, lr=0.1, weight_decay=0.1),
}
every_optimizer = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


@every_dtype
@every_optimizer
def test_every_parameter_is_changed_in_place_and_keeps_its_dtype(make, dtype):
    """A learning rate from NumPy is no reason to compute in float64."""
    params, others = (some_params(np.random.default_rng(7), dtype) for _ in range(2))
    for group in (params, others):
        group["turned"] = Param(np.asfortranarray(np.ones((3, 5), dtype)))
        group["turned"].grad += 1
    arrays = {name: (param.value, param.grad) for name, param in params.items()}
    before = {name: (param.value.copy(), param.grad.copy()) for name, param in params.items()}
    optimizer, other = make(params), make(others)
    for _ in range(5):
        optimizer.step(np.float64(0.1))
        other.step(0.1)
    for name, param in params.items():
        assert (param.value is arrays[name][0], param.grad is arrays[name][1]) == (True, True)
        assert (param.value != before[name][0]).all()
        np.testing.assert_array_equal(param.grad, before[name][1])
    assert_same(values(params), values(others))
    kept = [array for thing in vars(optimizer).values() if isinstance(thing, list) for array in thing]
    assert {array.dtype for array in (*kept, *values(params).values())} == {np.dtype(dtype)}
    optimizer.zero_grad()
    assert all((param.grad == 0).all() for param in params.values())


class Stops(np.ndarray):
    """An array at which the stop button is pressed, the first time that something is written to it."""

    pressed = True

    def __setitem__(self, at, value):
        super().__setitem__(at, value)
        if not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt


@every_optimizer
@pytest.mark.parametrize("name", ["W", "b"])
def test_a_step_that_is_interrupted_while_it_is_written_is_finished(make, name):
    model, whole = Line(), Line()
    value = model.params()[name].value = model.params()[name].value.view(Stops)
    value.pressed = False
    with pytest.raises(training.Stopped):
        fit(model, batches, 9, optimizer=make(model.params()), progress=False)
    fit(whole, batches, 1, optimizer=make(whole.params()), progress=False)
    assert value.pressed
    assert_same(values(model), values(whole))


def test_sgd_by_hand():
    params = {"w": Param(np.array([1.0, 2.0]))}
    optimizer = SGD(params, lr=0.5, momentum=0.5)
    params["w"].grad[...] = [1, -1]
    optimizer.step()
    np.testing.assert_allclose(params["w"].value, [0.5, 2.5], rtol=1e-15)
    optimizer.step(lr=1.0)  # velocity 1.5, −1.5
    np.testing.assert_allclose(params["w"].value, [-1, 4], rtol=1e-15)
    assert optimizer.steps == 2


def test_adam_is_its_formulas(rng):
    """Over several steps, whose gradients differ, with the averages written as sums over all steps."""
    params = {"w": Param(rng.normal(size=5))}
    optimizer, value = Adam(params, lr=0.05, betas=(0.8, 0.95), eps=0.01, weight_decay=0.3), params["w"].value.copy()
    grads = rng.normal(size=(4, 5))
    for t in range(1, 5):
        params["w"].grad[...] = grads[t - 1]
        optimizer.step()
        m, v = (
            sum((1 - beta) * beta ** (t - s) * grads[s - 1] ** power for s in range(1, t + 1)) / (1 - beta**t)
            for beta, power in ((0.8, 1), (0.95, 2))
        )
        value = value - 0.05 * (m / (np.sqrt(v) + 0.01) + 0.3 * value)
        np.testing.assert_allclose(params["w"].value, value, rtol=1e-12)
    usual = Adam(params)
    assert (usual.lr, usual.betas, usual.eps, usual.weight_decay) == (1e-3, (0.9, 0.999), 1e-8, 0.0)


@every_dtype
def test_clipping_shortens_what_is_too_long_and_keeps_the_direction(rng, dtype):
    params = some_params(rng, dtype)
    before = np.concatenate([param.grad.ravel() for param in params.values()])
    norm = np.linalg.norm(before.astype(float))
    assert isinstance(clip_gradients(params, 100.0), float)
    np.testing.assert_array_equal(np.concatenate([param.grad.ravel() for param in params.values()]), before)
    np.testing.assert_allclose(clip_gradients(params, np.float64(0.5)), norm, rtol=1e-6)
    after = np.concatenate([param.grad.ravel() for param in params.values()])
    assert after.dtype == dtype
    np.testing.assert_allclose(after, before * (0.5 / norm), rtol=1e-5)
    np.testing.assert_allclose(clip_gradients(params, math.inf), 0.5, rtol=1e-6)
    params = {"w": Param(np.zeros(3))}  # what is infinite is left for others to find
    params["w"].grad[...] = [1, np.inf, -2]
    assert clip_gradients(params, 1.0) == math.inf
    np.testing.assert_array_equal(params["w"].grad, [1, np.inf, -2])


def test_the_linear_schedule():
    rates = [training.warmup_linear(step, 2.0, 4, 12) for step in range(1, 15)]
    np.testing.assert_allclose(rates, [0.5, 1, 1.5, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose([training.warmup_linear(s, 1.0, 0, 4) for s in (1, 2, 4)], [0.75, 0.5, 0], atol=1e-15)


@pytest.mark.parametrize("clip", [0.3, None])
def test_fit_is_the_loop_one_would_write(clip):
    model, ours, optimizer_of = Line(), Line(), functools.partial(Adam, lr=0.1, betas=(0.8, 0.9))
    began = time.perf_counter()
    history = fit(model, batches, 6, 0.2, optimizer=optimizer_of(model.params()), clip=clip, seed=9, progress=False)
    rng, _ = np.random.default_rng(9).spawn(2)
    optimizer, losses, norms = optimizer_of(ours.params()), [], []
    for _ in range(6):
        for param in ours.params().values():
            param.grad[...] = 0
        losses.append(ours.loss_and_grad(batches(rng), np.random.default_rng(0)))
        norms.append(clip_gradients(ours.params(), clip or math.inf))
        optimizer.step(0.2)
    assert_same(values(model), values(ours))
    assert (history.losses, history.norms, history.lrs) == (losses, norms, [0.2] * 6)
    assert max(norms) > 0.3
    assert 0 < history.seconds < time.perf_counter() - began
    assert all(type(x) is float for x in (*history.losses, *history.lrs, *history.norms))


class Greedy(Line):
    def loss_and_grad(self, batch, rng):
        rng.random(100)
        return super().loss_and_grad(batch, rng)


def test_the_same_seed_is_the_same_training():
    def run(seed):
        model = Line()
        return fit(model, batches, 5, seed=seed, progress=False).losses, model.draws, values(model)

    one, same, other = run(4), run(4), run(5)
    assert one[:2] == same[:2]
    assert_same(one[2], same[2])
    assert one[0] != other[0]
    assert run(np.random.default_rng(4))[:2] == one[:2]
    assert fit(Greedy(), batches, 5, seed=4, progress=False).losses == one[0], "what a model draws changes no batch"


@pytest.mark.parametrize(
    ("options", "rates"),
    [
        (lambda model: {}, [1e-3] * 3),
        (lambda model: {"lr": 0.5}, [0.5] * 3),
        (lambda model: {"schedule": lambda step: step / 10}, [0.1, 0.2, 0.3]),
        (lambda model: {"schedule": lambda step: np.float64(step)}, [1, 2, 3]),
        (lambda model: {"optimizer": SGD(model.params(), 0.25)}, [0.25] * 3),
    ],
)
def test_where_the_learning_rate_comes_from(options, rates):
    model = Line()
    assert fit(model, batches, 3, progress=False, **options(model)).lrs == rates


def test_training_goes_on_where_it_stopped():
    model, whole, data = Line(), Line(), [batches(np.random.default_rng(i)) for i in range(6)]
    optimizer, left = Adam(model.params()), iter(data)
    for _ in range(2):
        fit(model, lambda rng: next(left), 3, optimizer=optimizer, progress=False)
    left = iter(data)
    fit(whole, lambda rng: next(left), 6, progress=False)
    assert_same(values(model), values(whole))


def test_the_callback_hears_of_every_nth_step_and_of_the_last():
    heard = []

    def callback(step, loss, history):
        heard.append(step)
        assert (loss, step) == (history.losses[-1], len(history.losses))

    fit(Line(), batches, 11, callback=callback, every=4, progress=False)
    fit(Line(), batches, 3, callback=callback, progress=False)
    assert heard == [4, 8, 11, 1, 2, 3]


@pytest.mark.parametrize(
    ("answer", "steps"),
    [(False, 2), (np.False_, 2), *((answer, 5) for answer in (None, True, 0, 0.0, np.array([]), ""))],
)
def test_the_callback_stops_training_with_false_and_with_nothing_else(answer, steps):
    model, other = Line(), Line()
    history = fit(model, batches, 5, callback=lambda step, *_: answer if step == 2 else None, progress=False)
    assert len(history.losses) == steps
    fit(other, batches, steps, progress=False)
    assert_same(values(model), values(other))
    assert fit(model, batches, 0, progress=False) == History()


class Broken(Line):
    def __init__(self, step, what):
        super().__init__()
        self.step, self.what = step, what

    def loss_and_grad(self, batch, rng):
        loss = super().loss_and_grad(batch, rng)
        if len(self.draws) == self.step:
            return self.what(self, loss)
        return loss


def bad_gradient(model, loss):
    model.b.grad[1] = np.nan
    return loss


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda model, loss: np.nan, "loss became nan at step 4; try a lower learning rate than 0.001"),
        (lambda model, loss: np.inf, "loss became inf at step 4; try a lower learning rate than 0.001"),
        (bad_gradient, "the gradient's norm became nan at step 4; try a lower learning rate than 0.001"),
    ],
)
@pytest.mark.parametrize("clip", [None, 1.0])
def test_what_is_not_finite_stops_training_before_it_spoils_the_model(what, message, clip):
    model, other = Broken(4, what), Line()
    fit(other, batches, 3, clip=clip, progress=False)
    with pytest.raises(ValueError, match=re.escape(message + ("" if clip else ", or clip=1.0")) + "$"):
        fit(model, batches, 10, clip=clip, progress=False)
    assert_same(values(model), values(other))


@pytest.mark.parametrize("where", ["model", "batches", "callback"])
def test_an_interruption_leaves_the_last_complete_step(where, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    def interrupted_batches(rng):
        return interrupt() if where == "batches" and len(model.draws) == 4 else batches(rng)

    def callback(step, *_):
        return interrupt() if where == "callback" and step == 4 else None

    model, other = (Broken(5, interrupt) if where == "model" else Line()), Line()
    with pytest.raises(training.Stopped, match="Stopped after step 4 of 10, and with it the cell"):
        fit(model, interrupted_batches, 10, callback=callback, progress=False)
    fit(other, batches, 4, progress=False)
    left, history = training.stopped()
    assert left is model
    assert len(history.losses) == len(history.lrs) == len(history.norms) == 4
    assert_same(values(model), values(other))
    assert capsys.readouterr() == ("", "")


def test_the_bar_is_one_line_on_standard_output_without_times_and_shows_a_fading_loss(capsys):
    losses = fit(Line(), batches, 60).losses
    out, err = capsys.readouterr()
    assert (out.index("\n"), err) == (len(out) - 1, "")
    line = out.rsplit("\r", 1)[1].rstrip()  # what is on the screen in the end
    smooth = np.mean(losses[:50])
    for loss in losses[50:]:
        smooth += 0.02 * (loss - smooth)
    assert re.fullmatch(rf"60/60 steps, loss {smooth:.4f} \|[█#]+\|", line)
    assert len(line) == 80


def test_the_bar_shows_the_mean_loss_so_far_and_the_time_left(capsys):
    def slow(rng):
        time.sleep(0.3)
        return batches(rng)

    history = fit(Line(), slow, 3)
    shown = re.findall(r"(\d)/3 steps, loss ([\d.]+) \|[^|]*\| \d\d:\d\d left", capsys.readouterr().out)
    assert [int(step) for step, _ in shown][:2] == [1, 2]
    for step, loss in shown:
        np.testing.assert_allclose(float(loss), np.mean(history.losses[: int(step)]), atol=1e-4)


@pytest.mark.parametrize("ending", [RuntimeError, KeyboardInterrupt, None])
def test_the_bar_ends_its_line_however_training_ends(capsys, ending):
    def callback(*_):
        if ending:
            raise ending
        return False

    with pytest.raises(ending) if ending else nullcontext():
        fit(Line(), batches, 3, callback=callback)
    out, err = capsys.readouterr()
    assert (out[-1], err) == ("\n", "")


def test_a_callback_can_print_beside_the_bar_and_without_progress_it_is_silent(capsys):
    fit(Line(), batches, 4, callback=lambda step, *_: tqdm.write(f"step {step}"), every=2)
    out = capsys.readouterr().out
    assert [line.rsplit("\r", 1)[-1] for line in out.split("\n")[:2]] == ["step 2", "step 4"]
    assert tqdm.monitor is None, "no thread stays"
    fit(Line(), batches, 3, progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_bar_survives_a_narrow_encoding(monkeypatch):
    """As on a console that knows no blocks."""
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii", write_through=True))
    fit(Line(), batches, 3)
    assert b"3/3 steps, loss" in buffer.getvalue()
