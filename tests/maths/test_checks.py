"""What every public function asks of its input, asked of the questions themselves."""

import re

import numpy as np
import pytest

from lesson_utils.maths import checks

X = np.ones((2, 3))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
def test_whole_numbers_become_float64_once(dtype):
    got = checks.as_float(np.array([0, 1], dtype), "x")
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, [0, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_floats_stay_what_they_are_without_a_copy(dtype):
    x = np.ones(3, dtype)
    assert checks.as_float(x, "x") is x
    assert checks.as_floats(x=x, y=x)[1] is x


def test_what_fits_is_given_back():
    ids = np.array([[0, 2]])
    assert checks.as_ids(ids, "ids", V=3, ndim=2) is ids
    assert checks.as_ids(np.zeros((0,), np.uint8), "ids", V=1).size == 0
    assert checks.as_size(np.int8(3), "n") == 3
    assert checks.as_heads(4, 64, "d_model") == 4
    assert type(checks.as_number(np.float32(2), "x")) is float
    assert checks.as_axis(-1, (2, 3)) == -1
    assert checks.as_choice("b", "letter", "abc") == "b"
    assert checks.as_mask([True, False, True], (2, 3)).tolist() == [[True, False, True]] * 2
    assert checks.as_weights([0, 1]).dtype == np.float64
    assert checks.as_weights([0.5, 1.0005]).max() == 1.0005  # rounding, in float32
    checks.same_leading(a=np.ones((1, 4, 5)), b=np.ones((3, 6, 7)))
    checks.check_matrix("W", X, (None, 3))
    checks.check_real(None, (2, 3))
    checks.check_last_queries(2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.as_float(["a"], "x"), "x has dtype <U1; expected real numbers (float32, float64 or integers)"),
        (lambda: checks.as_float(1j, "x"), "x has dtype complex128; expected real numbers"),
        (lambda: checks.as_float(None, "x"), "x has dtype object; expected real numbers"),
        (lambda: checks.as_float(np.ones(2, "M8[s]"), "x"), "x has dtype datetime64[s]; expected real numbers"),
        (lambda: checks.as_float(np.float16(1), "x"), "x has dtype float16, too narrow to add up in; convert to"),
        (lambda: checks.as_float(X, "x", min_ndim=3), "x has shape (2, 3); expected at least 3 axes"),
        *(
            (lambda x=x: checks.as_floats(x=[1, x]), "x holds NaN or infinite values; expected finite numbers")
            for x in (np.nan, np.inf, -np.inf)
        ),
        (lambda: checks.as_floats(x=X, y=X.astype("f")), "dtypes differ (x float64, y float32); convert all to"),
        (lambda: checks.as_weights([0.5, -0.1]), "weights holds numbers outside 0…1, or NaN; expected weights from"),
        (lambda: checks.as_weights([0.5, 1.01]), "weights holds numbers outside 0…1, or NaN"),
        (lambda: checks.as_weights([np.nan]), "weights holds numbers outside 0…1, or NaN"),
        (lambda: checks.as_weights([1e300]), "weights holds numbers outside 0…1, or NaN"),
        (lambda: checks.as_weights(1.0), "weights has shape (); expected at least 1 axes"),
        (lambda: checks.check_no_overflow(np.array([1.0, np.inf])), "the input is so large that the output overflows"),
        (lambda: checks.as_size(2.5, "n"), "n=2.5 must be a whole number"),
        (lambda: checks.as_size("3", "n"), "n='3' must be a whole number"),
        (lambda: checks.as_size(0, "n"), "n=0 must be at least 1"),
        (lambda: checks.as_number("a", "eps"), "eps='a' must be a finite number"),
        (lambda: checks.as_number(np.inf, "eps"), "eps=inf must be a finite number"),
        (lambda: checks.as_eps(0), "eps=0 must be positive; try 1e-5"),
        (lambda: checks.as_axis(2, (2, 3)), "axis=2 does not exist: x has shape (2, 3)"),
        (lambda: checks.as_axis(None, (2, 3)), "axis=None must be a whole number"),
        (lambda: checks.as_axis(-1, (2, 0)), "x has shape (2, 0): nothing along axis -1; expected at least one score"),
        (lambda: checks.as_heads(8, 65, "d_model"), "d_model=65 must be divisible by num_heads=8; try 64 or 72"),
        (lambda: checks.as_heads(8, 3, "d_model"), "d_model=3 must be divisible by num_heads=8; try 8"),
        (lambda: checks.as_choice("d", "letter", "abc"), "letter='d' is not known; choose one of a, b, c"),
        (lambda: checks.as_ids([0.5], "ids", 3), "ids is float64 of shape (1,); expected integers 0…2"),
        (lambda: checks.as_ids([1], "ids", ndim=2), "ids is int64 of shape (1,); expected integers with 2 axes"),
        (lambda: checks.as_ids([0, 3], "ids", 3), "ids holds 0…3; expected integers 0…2"),
        (lambda: checks.as_ids([-1], "ids", 3), "ids holds -1…-1; expected integers 0…2"),
        (lambda: checks.as_mask([0, 1], (2,)), "mask has dtype int64; expected booleans, True = may attend"),
        (lambda: checks.as_mask(X > 0, (3,)), "mask has shape (2, 3); expected one that broadcasts to the scores"),
        (lambda: checks.as_qkv(X, X, X[:1]), "V has 1 rows, K has 2; each key needs one value (K (2, 3), V (1, 3))"),
        (lambda: checks.as_qkv(X, X[:, :2], X), "Q has width 3, K has width 2; a dot product needs the same width"),
        (lambda: checks.as_qkv(X, X[:0], X[:0]), "K has shape (0, 3); expected at least one key of width at least 1"),
        (lambda: checks.as_qkv(X, X[None], X), "leading axes do not fit: Q (2, 3), K (1, 2, 3), V (2, 3); they"),
        (
            lambda: checks.as_qkv(X[:, :0], X[:, :0], X),
            "K has shape (2, 0); expected at least one key of width",
        ),
        (lambda: checks.same_leading(x=X[0]), "x has shape (3,); expected at least 2 axes, (..., T, d)"),
        (lambda: checks.check_matrix("W", X, (None, 4)), "W has shape (2, 3); expected (any, 4)"),
        (lambda: checks.check_matrix("W", X[0], (None, None)), "W has shape (3,); expected (any, any)"),
        (lambda: checks.check_last_queries(3, 2), "T_q=3 is larger than T_k=2; the queries must be the last T_q of"),
        (lambda: checks.check_real(X, (2, 3)), "mask is float64 (2, 3); expected booleans (2, 3), True = a re"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
