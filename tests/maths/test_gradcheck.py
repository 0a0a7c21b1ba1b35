"""The judge of gradients must itself be right: it passes what is right and names what is wrong."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from straight_line import Line, assert_same, batches, values

from lesson_utils.maths import ops
from lesson_utils.maths.gradcheck import GradientError, check_op, check_params, numerical_gradient
from lesson_utils.maths.layers import Param

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@given(seeds, shapes, st.sampled_from((1e-4, 1.0, 1e4)))
def test_cubes_have_the_gradient_they_should_and_x_stays_as_it_was(rng, shape, size):
    x = np.asarray(size * rng.normal(size=shape))
    before = x.copy()
    gradient = numerical_gradient(lambda x: float((x**3).sum()), x)
    assert gradient.shape == x.shape
    np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-6, atol=1e-6 * max(1, size) ** 2)
    np.testing.assert_array_equal(x, before)


def test_views_are_nudged_in_place(rng):
    whole = rng.normal(size=(5, 6))
    view = whole[1::2, ::-2]
    np.testing.assert_allclose(numerical_gradient(lambda _: float((whole**2).sum()), view), 2 * view, rtol=1e-8)


@pytest.mark.parametrize("x", [0.0, 0.25, -0.5, 1.5, -4.0])
def test_the_nudge_grows_with_entries_larger_than_1(x):
    seen = []
    numerical_gradient(lambda x: seen.append(float(x[0])) or 0.0, np.array([x]), eps=1e-3)
    np.testing.assert_allclose(seen, [x + 1e-3 * max(1, abs(x)), x - 1e-3 * max(1, abs(x))], rtol=1e-12)


def test_only_the_asked_entries_are_looked_at(rng):
    x, calls = rng.normal(size=(3, 4)), []
    gradient = numerical_gradient(lambda x: calls.append(x.copy()) or float(x.sum()), x, indices=[(2, 1)])
    np.testing.assert_allclose(gradient, np.eye(1, 12, 9).reshape(3, 4), atol=1e-9)
    assert len(calls) == 2
    np.testing.assert_array_equal(calls[0] != x, gradient != 0)
    with pytest.raises(ZeroDivisionError):
        numerical_gradient(lambda x: 1 / 0, x)
    np.testing.assert_array_equal(x, np.random.default_rng(1706).normal(size=(3, 4)))  # put right when f fails


W = {"W": Param(np.ones(2))}
ONES = {"x": np.ones(2)}
RNG = np.random.default_rng(0)


def same(x):
    return x, None


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (numerical_gradient, (np.sum, np.ones(2, np.float32)), "x is float32; differences need float64, try .astype"),
        (numerical_gradient, (np.sum, np.ones(2, int)), "x is int64; differences need float64"),
        (numerical_gradient, (np.sum, [1.0, 2.0]), "x is list; differences need float64"),
        (numerical_gradient, (np.sum, np.broadcast_to(1.0, 2)), "x is read-only; give a copy, x.copy()"),
        (numerical_gradient, (np.sum, np.ones(2), 0), "eps=0 must be a positive number"),
        (numerical_gradient, (np.sum, np.ones(2), np.inf), "eps=inf must be a positive number"),
        (numerical_gradient, (np.sum, np.ones(2), np.nan), "eps=nan must be a positive number"),
        (check_op, (same, np.positive, {"x": np.ones(2, np.float32)}, RNG), "x is float32; differences need float64"),
        (check_op, (lambda x: same(x * np.nan), np.positive, ONES, RNG), "forward's output holds NaN or infinite val"),
        (check_params, (lambda: 0.0, {"W": Param(np.ones(2, np.float32))}, RNG), "W is float32; differences need floa"),
        (check_params, (lambda: 0.0, {}, RNG), "params is empty"),
        (check_params, (lambda: 0.0, W, RNG, 1e-5, 0), "samples=0 must be at least 1"),
        (check_params, (RNG.random, W, RNG), "; make what it draws the same each time"),
        (check_params, (lambda: np.nan, W, RNG), "the loss is nan; a gradient needs a finite one"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(function, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments)


@pytest.fixture
def linear(rng):
    return {"x": rng.normal(size=(2, 3, 4)), "W": rng.normal(size=(4, 5)), "b": rng.normal(size=5)}


def test_a_right_backward_passes_and_the_inputs_stay(rng, linear):
    before = {name: x.copy() for name, x in linear.items()}
    check_op(ops.linear_forward, ops.linear_backward, linear, rng)
    for name, x in linear.items():
        np.testing.assert_array_equal(x, before[name])


WRONG = {
    "a factor": lambda dx, dW, db: (dx, 2 * dW, db),
    "a sign": lambda dx, dW, db: (dx, -dW, db),
    "one entry": lambda dx, dW, db: (dx, dW + 1e-3 * np.eye(4, 5, -1) * np.eye(4)[:, [1]], db),
    "a missing term": lambda dx, dW, db: (dx, dW * (np.arange(5) > 0), db),
    "zeros": lambda dx, dW, db: (dx, 0 * dW, db),
    "NaN": lambda dx, dW, db: (dx, np.where(np.eye(4, 5) * np.arange(5) == 2, np.nan, dW), db),
    "infinity": lambda dx, dW, db: (dx, dW + np.array([np.inf, 0, 0, 0, 0]), db),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_gradient_is_named(rng, linear, wrong):
    with pytest.raises(GradientError, match=r"^dW\[\d, \d\]: backward says .*, differences say .* \(relative error"):
        check_op(ops.linear_forward, lambda dy, cache: wrong(*ops.linear_backward(dy, cache)), linear, rng)


def test_the_message_says_index_got_expected_and_error():
    def backward(dy, x):
        return dy * np.where(np.arange(6).reshape(2, 3) == 5, 1.5, 2)

    with pytest.raises(GradientError) as error:
        check_op(lambda x: (2 * x, x), backward, {"x": np.ones((2, 3))}, Upstream([[1, 1, 1], [1, 2, 4]]))
    assert str(error.value) == (
        "dx[1, 2]: backward says 6, differences say 8 (relative error 2.5e-01); 1 of 6 entries checked are off"
    )
    with pytest.raises(GradientError, match=r"^dx: backward says 3"):  # a scalar has no index
        check_op(lambda x: (2 * x, x), lambda dy, x: np.array(3.0), {"x": np.array(1.0)}, Upstream(1))


class Upstream:
    """Stands in for a Generator where the gradient from upstream has to be known."""

    def __init__(self, values):
        self.values = values

    def normal(self, size):
        return np.asarray(self.values, float)


def test_the_upstream_gradient_is_random_so_that_a_softmax_cannot_hide(rng):
    x = {"x": rng.normal(size=(3, 4))}
    check_op(ops.softmax_forward, ops.softmax_backward, x, rng)
    with pytest.raises(GradientError):
        check_op(ops.softmax_forward, lambda dw, w: np.zeros_like(dw), x, rng)


def test_several_outputs_ids_masks_and_numbers(rng):
    def forward(x, ids, scale, mask):
        return (x[ids] * scale, np.tanh(x)), (x, ids, scale)

    def backward(douts, cache):
        dy, dtanh = douts
        x, ids, scale = cache
        dx = dtanh / np.cosh(x) ** 2
        np.add.at(dx, ids, dy * scale)
        return dx

    inputs = {"x": rng.normal(size=(4, 3)), "ids": np.array([1, 1, 3]), "scale": 0.5, "mask": None}
    check_op(forward, backward, inputs, rng)


def test_only_the_differentiable_inputs_have_gradients(rng):
    inputs = {"table": rng.normal(size=(3, 2)), "x": rng.normal(size=(3, 2))}
    check_op(lambda t, x: (t * x, t), lambda dy, t: dy * t, inputs, rng, differentiable=["x"])
    with pytest.raises(GradientError, match=re.escape("backward returned 1 gradients; expected 2, for table, x")):
        check_op(lambda t, x: (t * x, t), lambda dy, t: dy * t, inputs, rng)
    with pytest.raises(ValueError, match=re.escape("z is not among the inputs that are arrays of floats: table, x")):
        check_op(lambda t, x: (t * x, t), lambda dy, t: dy * t, inputs, rng, differentiable=["z"])


def test_a_gradient_that_is_truly_zero_may_be_rounding(rng):
    def forward(x, shift):  # what all share is taken out again
        y = x + shift
        return 100 * (y - y.mean()), None

    def backward(dy, _):
        return 100 * (dy - dy.mean()), np.array(1e-15)

    check_op(forward, backward, {"x": rng.normal(size=7), "shift": np.array(3.0)}, rng)


@pytest.mark.parametrize(("size", "noise"), [(0, 1e-10), (0.5, 1e-10), (1000, 1e-7)])
def test_what_counts_as_rounding_grows_with_the_numbers_that_are_subtracted(size, noise):
    def check(off):
        forward, backward = (lambda x: (0 * x + size, None)), (lambda dy, _: np.full(1, off))
        check_op(forward, backward, {"x": np.ones(1)}, Upstream([1]))

    check(0.9 * noise)
    with pytest.raises(GradientError):
        check(1.1 * noise)


def test_an_error_of_exactly_1_is_an_error_like_others():
    with pytest.raises(GradientError, match=r"^dx\[0\]: backward says 2, differences say 1 "):
        check_op(lambda x: (x, None), lambda dy, _: 2 * dy, {"x": np.zeros(1)}, Upstream([1]))


def test_small_entries_are_measured_against_the_largest(rng):
    size = np.array([1e-9, 1.0])
    inputs = {"x": np.ones(2)}
    check_op(lambda x: (size * x, None), lambda dy, _: size * dy * [1.5, 1], inputs, Upstream([1, 1]))
    with pytest.raises(GradientError):
        check_op(lambda x: (size * x, None), lambda dy, _: size * dy * [1, 1 + 3e-6], inputs, Upstream([1, 1]))


@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
def test_the_tolerance_is_the_relative_error_accepted(tolerance):
    inputs, rng = {"x": np.full(3, 2.0)}, Upstream([3, 4, 5])
    check_op(lambda x: (x, None), lambda dy, _: dy * (1 + 0.5 * tolerance), inputs, rng, tolerance)
    with pytest.raises(GradientError):
        check_op(lambda x: (x, None), lambda dy, _: dy * (1 + 2 * tolerance), inputs, rng, tolerance)


def test_shape_and_dtype_of_a_gradient(rng):
    inputs = {"x": rng.normal(size=(2, 3))}
    for dx, found in ((np.ones(3), "float64 of shape (3,)"), (np.ones((2, 3), np.float32), "float32 of shape (2, 3)")):
        expected = f"dx is {found}; expected float64 of shape (2, 3)"
        with pytest.raises(GradientError, match=re.escape(expected)):
            check_op(lambda x: (x, None), lambda dy, _, dx=dx: dx, inputs, rng)


def test_what_others_still_need_may_not_be_changed(rng):
    def doubled(dy, _):
        dy *= 2
        return dy

    def spoiling(x):
        y = 2 * x
        x += 1
        return y, None

    x = {"x": rng.normal(size=3)}
    with pytest.raises(GradientError, match="dout was changed by backward"):
        check_op(lambda x: (2 * x, None), doubled, x, rng)
    with pytest.raises(GradientError, match="x was changed by forward or backward"):
        check_op(spoiling, lambda dy, _: 2 * dy, x, rng)


def test_an_output_that_shares_memory_is_no_trouble(rng):
    check_op(lambda x: (x, None), lambda dy, _: dy, {"x": rng.normal(size=(2, 2))}, rng)
    kept = np.zeros(3)

    def forward(x):  # writes into the same array each time
        np.multiply(x, 3, out=kept)
        return kept, None

    check_op(forward, lambda dy, _: np.multiply(dy, 3, out=kept), {"x": rng.normal(size=3)}, rng)


def test_right_parameters_pass_and_are_left_as_they_were(rng):
    model, batch = Line(), batches(rng)
    model.W.grad += 9
    before = values(model)
    check_params(lambda: model.loss_and_grad(batch, rng), model.params(), rng, samples=4)
    assert len(model.draws) == 2 + 2 * (4 + 2)
    assert_same(values(model), before)
    grads = {name: param.grad.copy() for name, param in model.params().items()}
    for param in model.params().values():
        param.grad[...] = 0
    model.loss_and_grad(batch, rng)
    assert_same({name: param.grad for name, param in model.params().items()}, grads)


def test_a_wrong_parameter_is_named(rng):
    model, batch = Line(), batches(rng)

    def loss_and_grad():
        before = model.b.grad.copy()
        loss = model.loss_and_grad(batch, rng)
        model.b.grad += 0.01 * (model.b.grad - before)
        return loss

    with pytest.raises(GradientError, match=r"^b\.grad\[\d\]: backward says .*; 2 of 2 entries checked are off$"):
        check_params(loss_and_grad, model.params(), rng)


def test_a_gradient_that_is_set_and_not_added_is_found(rng):
    W = Param(np.ones(3))

    def loss_and_grad():
        W.grad[...] = 2 * W.value
        return float((W.value**2).sum())

    with pytest.raises(GradientError, match=r"W\.grad: a second call did not add the same gradient again; write \+="):
        check_params(loss_and_grad, {"W": W}, rng)
