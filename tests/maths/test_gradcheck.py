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

# --- Differences ------------------------------------------------------------------------------------------------------


@given(seeds, shapes, st.sampled_from((1e-4, 1.0, 1e4)))
def test_cubes_have_the_gradient_they_should_and_x_stays_as_it_was(rng, shape, size):
    x = np.asarray(size * rng.normal(size=shape))
    before = x.copy()
    gradient = numerical_gradient(lambda x: float((x**3).sum()), x)
    assert gradient.shape == x.shape
    np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-6, atol=1e-6 * max(1, size) ** 2)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("x", [0.0, 0.25, -0.5, 1.5, -4.0])
def test_the_nudge_grows_with_entries_larger_than_1(x):
    seen = []
    numerical_gradient(lambda x: seen.append(float(x[0])) or 0.0, np.array([x]), eps=1e-3)
    np.testing.assert_allclose(seen, [x + 1e-3 * max(1, abs(x)), x - 1e-3 * max(1, abs(x))], rtol=1e-12)


def test_only_the_asked_entries_of_a_view_are_nudged_in_place_and_put_right_when_f_fails(rng):
    whole = rng.normal(size=(5, 6))
    view, before = whole[1::2, ::-2], whole.copy()
    gradient = numerical_gradient(lambda _: float((whole**2).sum()), view, indices=[(1, 2)])
    np.testing.assert_allclose(gradient, 2 * view * (np.arange(6).reshape(2, 3) == 5), rtol=1e-8)
    with pytest.raises(ZeroDivisionError):
        numerical_gradient(lambda x: 1 / 0, view)
    np.testing.assert_array_equal(whole, before)


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
        *((numerical_gradient, (np.sum, np.ones(2), e), f"eps={e} must be a positive") for e in (0, np.inf, np.nan)),
        (check_op, (same, np.positive, {"x": np.ones(2, np.float32)}, RNG), "x is float32; differences need float64"),
        (check_op, (lambda x: same(x * np.nan), np.positive, ONES, RNG), "forward's output holds NaN or infinite val"),
        (
            check_op,
            (same, np.positive, ONES, RNG, 1e-6, ["z"]),
            "z is not among the inputs that are arrays of floats",
        ),
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


# --- Operations -------------------------------------------------------------------------------------------------------

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
def test_a_right_backward_passes_and_a_wrong_gradient_is_named(rng, wrong):
    linear = {"x": rng.normal(size=(2, 3, 4)), "W": rng.normal(size=(4, 5)), "b": rng.normal(size=5)}
    before = {name: x.copy() for name, x in linear.items()}
    check_op(ops.linear_forward, ops.linear_backward, linear, rng)
    assert_same(linear, before)
    with pytest.raises(GradientError, match=r"^dW\[\d, \d\]: backward says .*, differences say .* \(relative error"):
        check_op(ops.linear_forward, lambda dy, cache: wrong(*ops.linear_backward(dy, cache)), linear, rng)


class Upstream:
    """Stands in for a Generator where the gradient from upstream has to be known."""

    def __init__(self, values):
        self.values = values

    def normal(self, size):
        return np.full(size, self.values, float)


def doubled_in_place(dy, _):
    dy *= 2
    return dy


def spoiling(x):
    y = 2 * x
    x += 1
    return y, None


KEPT, SIZES = np.zeros(2), np.array([1e-9, 1.0])
JUDGED = {  # name -> forward, backward, x, the gradient from upstream, and what is said, or None
    "an output that shares memory": (same, lambda dy, _: dy, np.ones(2), 1, None),
    "one array for all outputs": (
        lambda x: (np.multiply(x, 3, out=KEPT), None), lambda dy, _: np.multiply(dy, 3, out=KEPT), np.ones(2), 1, None
    ),
    "index, got, expected and error": (
        lambda x: (2 * x, x), lambda dy, x: dy * (2 - np.eye(2) / 2), np.ones((2, 2)), [[1, 1], [2, 4]],
        "dx[1, 1]: backward says 6, differences say 8 (relative error 2.5e-01); 2 of 4 entries checked are off",
    ),
    "a scalar has no index": (
        lambda x: (2 * x, x), lambda dy, x: np.array(3.0), np.array(1.0), 1, "dx: backward says 3, differences say 2"
    ),
    "an error of 1": (same, lambda dy, _: 2 * dy, np.zeros(1), 1, "dx[0]: backward says 2, differences say 1 "),
    "a small entry beside a large one": (
        lambda x: (SIZES * x, None), lambda dy, _: SIZES * dy * [1.5, 1], np.ones(2), 1, None
    ),
    "a large entry": (
        lambda x: (SIZES * x, None), lambda dy, _: SIZES * dy * [1, 1 + 3e-6], np.ones(2), 1, "dx[1]: backward says 1"
    ),
    "another shape": (same, lambda dy, _: np.ones(3), np.ones(2), 1, "dx is float64 of shape (3,); expected float64"),
    "another dtype": (same, lambda dy, _: np.ones(2, "f"), np.ones(2), 1, "dx is float32 of shape (2,); expected f"),
    "too many": (same, lambda dy, _: (dy, dy), np.ones(2), 1, "backward returned 2 gradients; expected 1, for x"),
    "dout": (lambda x: (2 * x, None), doubled_in_place, np.ones(2), 1, "dout was changed by backward"),
    "x": (spoiling, lambda dy, _: 2 * dy, np.ones(2), 1, "x was changed by forward or backward"),
    **{
        f"rounding, at numbers of {size}{', and more' * more}": (
            lambda x, size=size: (0 * x + size, None), lambda dy, _, off=(0.9 + 0.2 * more) * noise: np.full(1, off),
            np.ones(1), 1, "dx[0]: backward says" if more else None,
        )
        for size, noise in ((0, 1e-10), (0.5, 1e-10), (1000, 1e-7)) for more in (False, True)
    },
}  # fmt: skip


@pytest.mark.parametrize(("forward", "backward", "x", "upstream", "said"), JUDGED.values(), ids=JUDGED)
def test_what_is_said_of_a_gradient(forward, backward, x, upstream, said):
    if said is None:
        check_op(forward, backward, {"x": x}, Upstream(upstream))
    else:
        with pytest.raises(GradientError, match="^" + re.escape(said)):
            check_op(forward, backward, {"x": x}, Upstream(upstream))


def test_the_upstream_gradient_is_random_so_that_a_softmax_cannot_hide(rng):
    x = {"x": rng.normal(size=(3, 4))}
    check_op(ops.softmax_forward, ops.softmax_backward, x, rng)
    with pytest.raises(GradientError):
        check_op(ops.softmax_forward, lambda dw, w: np.zeros_like(dw), x, rng)


def test_several_outputs_and_only_some_inputs_with_gradients(rng):
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
    inputs = {"table": rng.normal(size=(3, 2)), "x": rng.normal(size=(3, 2))}
    check_op(lambda t, x: (t * x, t), lambda dy, t: dy * t, inputs, rng, differentiable=["x"])


@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
def test_the_tolerance_is_the_relative_error_accepted(tolerance):
    inputs, rng = {"x": np.full(3, 2.0)}, Upstream([3, 4, 5])
    check_op(same, lambda dy, _: dy * (1 + 0.5 * tolerance), inputs, rng, tolerance)
    with pytest.raises(GradientError):
        check_op(same, lambda dy, _: dy * (1 + 2 * tolerance), inputs, rng, tolerance)


def test_a_gradient_that_is_truly_zero_may_be_rounding(rng):
    def forward(x, shift):  # what all share is taken out again
        y = x + shift
        return 100 * (y - y.mean()), None

    def backward(dy, _):
        return 100 * (dy - dy.mean()), np.array(1e-15)

    check_op(forward, backward, {"x": rng.normal(size=7), "shift": np.array(3.0)}, rng)


# --- Parameters -------------------------------------------------------------------------------------------------------


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


def test_a_wrong_parameter_is_named_and_a_gradient_that_is_set_and_not_added_is_found(rng):
    model, batch = Line(), batches(rng)

    def wrong():
        before = model.b.grad.copy()
        loss = model.loss_and_grad(batch, rng)
        model.b.grad += 0.01 * (model.b.grad - before)
        return loss

    def set_():
        model.W.grad[...] = 2 * model.W.value
        return float((model.W.value**2).sum())

    with pytest.raises(GradientError, match=r"^b\.grad\[\d\]: backward says .*; 2 of 2 entries checked are off$"):
        check_params(wrong, model.params(), rng)
    with pytest.raises(GradientError, match=r"W\.grad: a second call did not add the same gradient again; write \+="):
        check_params(set_, {"W": model.W}, rng)
