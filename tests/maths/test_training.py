"""Optimisers, schedules, the loop, and files of parameters, on a model of one line."""

import functools
import gc
import io
import math
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from straight_line import TRUE_B, TRUE_W, Line, assert_same, batches, values
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


@every_optimizer
def test_a_step_that_was_interrupted_can_be_finished(rng, make):
    """Wherever it stopped while it wrote: after `finish` the step is whole, and another `finish` changes nothing."""
    whole, cut = some_params(np.random.default_rng(5)), some_params(np.random.default_rng(5))
    make(whole).step()
    for stop in range(len(cut)):
        cut = some_params(np.random.default_rng(5))
        optimizer = make(cut)
        optimizer._new = list(optimizer._updated(0.1))
        for param, new in list(zip(cut.values(), optimizer._new, strict=True))[:stop]:
            param.value[...] = new
        optimizer.finish()
        assert_same(*(values(params) for params in (cut, whole)))
        cut["row"].value[...] = 7  # somebody else writes: what is finished is not written again
        optimizer.finish()
        assert (cut["row"].value == 7).all()


def test_sgd_by_hand():
    params = {"w": Param(np.array([1.0, 2.0]))}
    optimizer = SGD(params, lr=0.5, momentum=0.5)
    params["w"].grad[...] = [1, -1]
    optimizer.step()
    np.testing.assert_allclose(params["w"].value, [0.5, 2.5], rtol=1e-15)
    optimizer.step(lr=1.0)  # velocity 1.5, −1.5
    np.testing.assert_allclose(params["w"].value, [-1, 4], rtol=1e-15)
    assert optimizer.steps == 2


@given(seeds, st.sampled_from((1e-3, 1.0, 1e3)))
def test_adams_first_step_has_the_size_of_the_learning_rate(rng, size):
    params = {"w": Param(np.zeros(7))}
    optimizer = Adam(params, lr=0.01, eps=1e-12)
    grad = size * (0.1 + rng.random(7)) * rng.choice([-1, 1], 7)
    params["w"].grad[...] = grad
    optimizer.step()
    np.testing.assert_allclose(params["w"].value, -0.01 * np.sign(grad), rtol=1e-6)


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


def test_weight_decay_does_not_pass_through_the_averages(rng):
    params = {"w": Param(np.array([4.0, -2.0]))}
    Adam(params, lr=0.5, weight_decay=0.1).step()  # no gradient
    np.testing.assert_allclose(params["w"].value, [3.8, -1.9], rtol=1e-14)


@every_optimizer
def test_a_learning_rate_of_0_changes_nothing(rng, make):
    params = some_params(rng)
    before = {name: param.value.copy() for name, param in params.items()}
    make(params).step(lr=0)
    assert_same(values(params), before)


@pytest.mark.parametrize(
    ("steps", "options", "message"),
    [
        (-1, {}, "steps=-1 must be at least 0"),
        (5, {"every": 0}, "every=0 must be at least 1"),
        (5, {"clip": 0}, "clip=0 must be a positive number, or None"),
        (5, {"lr": 1, "schedule": float}, "lr and schedule are both given"),
        (5, {"lr": -1}, "lr=-1 must be 0 or a positive number"),
        (5, {"optimizer": Adam(Line().params())}, "optimizer was made for other parameters"),
    ],
)
def test_fit_refuses_what_does_not_fit(steps, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(Line(), batches, steps, progress=False, **options)


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


def test_a_gradient_that_is_infinite_is_left_for_others_to_find():
    params = {"w": Param(np.zeros(3))}
    params["w"].grad[...] = [1, np.inf, -2]
    assert clip_gradients(params, 1.0) == math.inf
    np.testing.assert_array_equal(params["w"].grad, [1, np.inf, -2])


def test_the_linear_schedule():
    rates = [training.warmup_linear(step, 2.0, 4, 12) for step in range(1, 15)]
    np.testing.assert_allclose(rates, [0.5, 1, 1.5, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose([training.warmup_linear(s, 1.0, 0, 4) for s in (1, 2, 4)], [0.75, 0.5, 0], atol=1e-15)


@every_dtype
def test_a_line_is_found(dtype):
    model = Line(dtype)
    began = time.perf_counter()
    history = fit(model, functools.partial(batches, dtype=dtype), 400, 0.05, progress=False)
    np.testing.assert_allclose(model.W.value, TRUE_W, atol=1e-2)
    np.testing.assert_allclose(model.b.value, TRUE_B, atol=1e-2)
    assert model.W.value.dtype == dtype
    assert len(history.losses) == len(history.lrs) == len(history.norms) == 400
    assert history.losses[-1] < 1e-3 < history.losses[0]
    assert 0 < history.seconds < time.perf_counter() - began
    assert all(type(x) is float for x in (*history.losses, *history.lrs, *history.norms))


@pytest.mark.parametrize("clip", [0.3, None])
def test_fit_is_the_loop_one_would_write(clip):
    model, ours, optimizer_of = Line(), Line(), functools.partial(Adam, lr=0.1, betas=(0.8, 0.9))
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


def test_the_same_seed_is_the_same_training():
    def run(seed):
        model = Line()
        return fit(model, batches, 5, seed=seed, progress=False).losses, model.draws, values(model)

    one, same, other = run(4), run(4), run(5)
    assert one[:2] == same[:2]
    assert_same(one[2], same[2])
    assert one[0] != other[0]
    assert run(np.random.default_rng(4))[:2] == one[:2]


def test_what_the_model_draws_does_not_change_the_batches():
    class Greedy(Line):
        def loss_and_grad(self, batch, rng):
            rng.random(100)
            return super().loss_and_grad(batch, rng)

    a, b = (fit(model, batches, 5, progress=False) for model in (Line(), Greedy()))
    assert a.losses == b.losses


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
    model, whole = Line(), Line()
    data = [batches(np.random.default_rng(i)) for i in range(6)]

    def from_list():
        left = iter(data)
        return lambda rng: next(left)

    optimizer, source = Adam(model.params()), from_list()
    for _ in range(2):
        fit(model, source, 3, optimizer=optimizer, progress=False)
    fit(whole, from_list(), 6, progress=False)
    assert_same(values(model), values(whole))


def test_the_callback_hears_of_every_nth_step_and_of_the_last():
    heard = []

    def callback(step, loss, history):
        assert loss == history.losses[-1]
        assert len(history.losses) == step
        heard.append(step)

    fit(Line(), batches, 11, callback=callback, every=4, progress=False)
    assert heard == [4, 8, 11]
    heard.clear()
    fit(Line(), batches, 3, callback=callback, progress=False)
    assert heard == [1, 2, 3]


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


def test_no_steps_are_fine():
    model = Line()
    before = values(model)
    assert fit(model, batches, 0, progress=False) == History()
    assert_same(values(model), before)


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
    history = fit(model, interrupted_batches, 10, callback=callback, progress=False)
    fit(other, batches, 4, progress=False)
    assert len(history.losses) == len(history.lrs) == len(history.norms) == 4
    assert_same(values(model), values(other))
    assert capsys.readouterr() == ("Interrupted after step 4 of 10; the model stays as that step left it.\n", "")


@pytest.fixture
def ctrl_c():
    """Python's own handler: a job that a shell has put into the background begins with this signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_at_any_moment_changes_all_parameters_or_none(request):
    """A real signal, at a random place: each step adds 1 to every parameter, so they must all be equal."""

    class Counter:
        def __init__(self):
            self.all = {name: Param(np.zeros((30, 1000))) for name in "abcde"}

        def params(self):
            return self.all

        def loss_and_grad(self, batch, rng):
            for param in self.all.values():
                param.grad -= 1
            return 1.0

    if not hasattr(signal, "pthread_kill"):
        pytest.skip("this system cannot send a signal to a thread")
    rng = np.random.default_rng(0)
    request.addfinalizer(gc.enable)
    gc.disable()  # Python forgets a stop that comes in a callback of its garbage collector, and Hypothesis has one
    for _ in range(8):
        model = Counter()
        press = functools.partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
        timer = threading.Timer(0.02 * rng.random(), press)

        def start_timer(_, timer=timer, model=model):  # once the loop runs: nobody else could catch it
            if not model.all["a"].value.any():
                timer.start()

        history = fit(model, start_timer, 10**6, optimizer=SGD(model.params(), 1.0), clip=None, progress=False)
        timer.join()
        numbers = {float(x) for param in model.all.values() for x in (param.value.min(), param.value.max())}
        assert len(numbers) == 1
        assert numbers.pop() - len(history.losses) in (0, 1)


def test_the_bar_is_one_line_on_standard_output_without_times(capsys):
    fit(Line(), batches, 30)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.index("\n") == len(out) - 1
    line = out.rsplit("\r", 1)[1].rstrip()  # what is on the screen in the end
    assert re.fullmatch(r"30/30 steps, loss \d+\.\d{4} \|[█#]+\|", line)
    assert len(line) == 80


def test_the_bar_shows_a_smoothed_loss_and_the_time_left(capsys):
    def slow(rng):
        time.sleep(0.3)
        return batches(rng)

    history = fit(Line(), slow, 3)
    shown = re.findall(r"(\d)/3 steps, loss ([\d.]+) \|[^|]*\| (\S+) left", capsys.readouterr().out)
    assert [int(step) for step, _, _ in shown][:2] == [1, 2]
    for step, loss, left in shown:
        np.testing.assert_allclose(float(loss), np.mean(history.losses[: int(step)]), atol=1e-4)
        assert re.fullmatch(r"\d\d:\d\d", left)


def test_the_bar_shows_the_mean_loss_of_50_steps_and_then_a_fading_one(monkeypatch):
    shown = []
    monkeypatch.setattr(training.loop.Bar, "advance", lambda bar, loss: shown.append(loss))
    losses = fit(Line(), batches, 60, progress=False).losses
    smooth = np.cumsum(losses[:50]) / np.arange(1, 51)
    for loss in losses[50:]:
        smooth = np.append(smooth, 0.98 * smooth[-1] + 0.02 * loss)
    np.testing.assert_allclose(shown, smooth, rtol=1e-12)


@pytest.mark.parametrize("ending", ["error", "interruption", "stop"])
def test_the_bar_ends_its_line_however_training_ends(capsys, ending):
    def fail(*_):
        raise KeyboardInterrupt if ending == "interruption" else RuntimeError

    callback = (lambda *_: False) if ending == "stop" else fail
    try:
        fit(Line(), batches, 3, callback=callback)
    except RuntimeError:
        assert ending == "error"
    out, err = capsys.readouterr()
    assert out.endswith("\n")
    assert err == ""
    if ending == "interruption":
        assert out.splitlines()[-1].startswith("Interrupted after step 1 of 3")


def test_a_callback_can_print_beside_the_bar(capsys):
    fit(Line(), batches, 4, callback=lambda step, *_: tqdm.write(f"step {step}"), every=2)
    out = capsys.readouterr().out
    assert [line.rsplit("\r", 1)[-1] for line in out.split("\n")[:2]] == ["step 2", "step 4"]


def test_without_progress_it_is_silent_and_no_thread_stays(capsys):
    fit(Line(), batches, 3)
    assert tqdm.monitor is None
    capsys.readouterr()
    fit(Line(), batches, 3, progress=False)
    assert capsys.readouterr() == ("", "")


def test_importing_it_writes_nothing():
    done = subprocess.run([sys.executable, "-c", "import lesson_utils.maths.training"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_bar_survives_a_narrow_encoding(monkeypatch):
    """As on a console that knows no blocks."""
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii", write_through=True))
    fit(Line(), batches, 3)
    assert b"3/3 steps, loss" in buffer.getvalue()
