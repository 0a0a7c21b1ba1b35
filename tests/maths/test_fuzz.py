"""Every public function, called with anything at all: it answers as it promises, or a ValueError says what is wrong."""

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from test_every_function import FUNCTIONS, make_arguments

from lesson_utils import maths
from lesson_utils.maths.checks import Array

INNER = re.compile(r"_|as_|check_|same_|x_|.*_(forward|backward)$")  # callers have checked already; x_: mutmut's
WAY_OUT = r"must|expect|fit|try|need|convert|not exist|begin|overflow|choose|no target|larger|more than|give"
NUMPYS = r"operands|matmul|cannot reshape|The truth value|could not|setting an array|inhomogeneous|all the input"


def public_functions():
    """Yield what the modules of `maths` offer and can be drawn for, by its annotations: no models, files, functions."""
    for info in pkgutil.iter_modules(maths.__path__, f"{maths.__name__}."):
        for name, function in vars(importlib.import_module(info.name)).items():
            ours = inspect.isfunction(function) and function.__module__.startswith(info.name)
            if ours and not INNER.match(name):
                kinds = {what: kind_of(what, hint) for what, hint in typing.get_type_hints(function).items()}
                kinds.pop("return", None)
                if kinds and None not in kinds.values():
                    yield function, kinds


# What to draw for an annotation. Annotations are compared and not printed: each Python prints unions in its own way.
KINDS = {
    ArrayLike: "array",
    Array: "array",
    Sequence[Array]: "arrays",
    Sequence[ArrayLike]: "arrays",
    Sequence[int]: "places",
    int: "number",
    float: "number",
    typing.SupportsIndex: "number",
    bool: "bool",
    str: "text",
    np.random.Generator: "rng",
    int | np.random.Generator: "rng",
}
KINDS |= {kind | None: drawn for kind, drawn in KINDS.items()}  # `x: int | None`


def kind_of(name, hint):
    """Return what to draw for a parameter, or None."""
    return "dtype" if name == "dtype" else KINDS.get(hint)


PUBLIC = dict(sorted(public_functions(), key=lambda case: (case[0].__module__, case[0].__name__)))


# --- What is drawn ----------------------------------------------------------------------------------------------------


def any_array(rng):
    """Return an array of any kind, or what is none."""
    shape = tuple(rng.integers(0, 4, size=rng.integers(0, 4)).tolist())
    x = rng.normal(size=shape)
    return one_of(rng, one_of(rng, (REALS, WHOLES, STRANGE, ODD)))(x, rng)


REALS = (
    lambda x, rng: x,
    lambda x, rng: x.astype(np.float32),
    lambda x, rng: x.astype(np.float16),
    lambda x, rng: x.astype(np.longdouble),
    lambda x, rng: abs(x) / 5,
    lambda x, rng: x * 10.0 ** rng.integers(-300, 300),
    lambda x, rng: np.full(x.shape, one_of(rng, (np.nan, np.inf, -np.inf))),
)
WHOLES = (lambda x, rng: x < 0, lambda x, rng: (3 * x).astype(int), lambda x, rng: abs(80 * x).astype(np.uint8))
STRANGE = (
    lambda x, rng: x.tolist(),
    lambda x, rng: x.astype(complex),
    lambda x, rng: x.astype(object),
    lambda x, rng: x.astype("U5"),
    lambda x, rng: np.ma.masked_less(x, 0),
    lambda x, rng: np.zeros(x.shape, "M8[s]"),
)
NOTHING = (None, "text", b"bytes", {}, [[1], [2, 3]], 1j, object(), np.datetime64("2026-01-01"))
ODD = (lambda x, rng: one_of(rng, NOTHING),)


def any_argument(kind, rng):
    if kind == "array":
        return any_array(rng)
    if kind in ("arrays", "places"):
        return [any_argument("array" if kind == "arrays" else "number", rng) for _ in range(rng.integers(5))]
    if kind == "rng":
        return rng
    if kind == "bool":
        return bool(rng.integers(2))
    if kind == "dtype":
        return one_of(rng, (np.float32, np.float64))
    if kind == "text":
        return one_of(rng, ("adjacent", "dot", "gru", "unknown", ""))
    usual = (-1, 0, 1, 2, 3, 8, 0.5, 2.0, True)
    return one_of(rng, (*usual, *usual, 1e4, 1e-320, 1e300, np.nan, -np.inf, np.float32(0.5), np.int8(2), *NOTHING))


def one_of(rng, options):
    return options[rng.integers(len(options))]


LAYOUTS = (
    np.asfortranarray,
    lambda x: x[..., ::-1],
    lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    lambda x: np.broadcast_to(x[:1], x.shape),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),  # not aligned, not to be written
    lambda x: x.astype(x.dtype.newbyteorder()),
)


def draw(function, rng):
    """Return arguments: those of the table, which fit, in any layout and one or two spoilt; or whatever there is."""
    arguments = {}
    if function in FUNCTIONS and rng.integers(3):
        leading = tuple(rng.integers(0, 3, size=rng.integers(3)).tolist())
        arguments = make_arguments(function, rng, one_of(rng, (float, float, np.float32, np.int64)), leading)
        for name, x in arguments.items():
            if isinstance(x, np.ndarray) and x.ndim and rng.integers(2):
                arguments[name] = one_of(rng, LAYOUTS)(x)
        if size := 10.0 ** one_of(rng, (0, 0, 18, -18, 37, 150, 307)):
            for name, x in arguments.items():
                if isinstance(x, np.ndarray) and x.dtype == float:
                    arguments[name] = x * size
        spoilt = rng.choice([*arguments], size=rng.integers(3))
    else:
        needed = (p for p in inspect.signature(function).parameters.values() if p.default is p.empty or rng.integers(2))
        spoilt = [parameter.name for parameter in needed]
    return arguments | {name: any_argument(PUBLIC[function][name], rng) for name in spoilt}


# --- What is asked of the answer --------------------------------------------------------------------------------------


def numbers_in(x):
    """Return the arrays and numbers of an answer, one after the other."""
    if isinstance(x, tuple | list):
        return [number for part in x for number in numbers_in(part)]
    return [np.asarray(x)] if isinstance(x, np.ndarray | np.number | int | float) else []


def as_bytes(arguments):
    arrays = {name: x for name, x in arguments.items() if isinstance(x, np.ndarray)}
    return {name: (x.shape, x.dtype, x.strides, x.tobytes()) for name, x in arrays.items()}


def plain(x):
    """Return the same numbers, as NumPy makes an array when it is asked for one."""
    same = isinstance(x, np.ndarray) and x.dtype.kind in "biuf"
    return np.array(x, x.dtype.newbyteorder("="), order="C") if same else x


def answers_or_says_what_is_wrong(function, seed):
    arguments = draw(function, np.random.default_rng(seed))
    before = as_bytes(arguments)
    try:
        answer = function(**arguments)
    except ValueError as error:
        message = str(error)
        assert not re.match(NUMPYS, message), arguments
        assert re.search(WAY_OUT, message), message
        return
    finally:
        assert as_bytes(arguments) == before, "it has changed what it was given"
    given = [x for part in arguments.values() for x in numbers_in(part)]
    real = {x.dtype.newbyteorder("=") for x in given if x.dtype.kind == "f"}
    found = numbers_in(answer)
    small = all((np.abs(x) < 1e15).all() for x in given)  # of what is larger, sums and products may overflow
    if small:
        assert all(np.isfinite(x).all() for x in found), (arguments, answer)
    for x in found:
        assert x.dtype.kind in "biuf"
        assert x.dtype.kind != "f" or x.dtype in {*real, np.dtype(np.float64), np.dtype(np.float32)}
        assert x.dtype.isnative
    if "rng" not in PUBLIC[function].values():
        again = numbers_in(function(**{name: plain(x) for name, x in arguments.items()}))
        for x, y in zip(found, again, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype), "its layout is no part of an array's value"
            if np.isfinite(x).all() and np.isfinite(y).all():
                near = 1e-3 if x.dtype == np.float32 else 1e-9
                np.testing.assert_allclose(x, y, rtol=near, atol=near * max(1, np.abs(y).max(initial=0)))


quiet = pytest.mark.filterwarnings(
    "ignore:(invalid value|overflow|underflow|divide by zero) encountered:RuntimeWarning"
)
seeds = st.integers(0, 2**32 - 1)


@quiet
@given(seed=seeds)
@settings(max_examples=25)
def test_whatever_it_is_given_a_public_function_answers_or_says_what_is_wrong(seed):
    for function in PUBLIC:
        answers_or_says_what_is_wrong(function, seed)


@pytest.mark.long_form
@quiet
@given(seed=seeds)
@settings(max_examples=max(300, settings().max_examples))  # the weekly profile has 10,000
def test_the_same_with_many_more_examples(seed):
    for function in PUBLIC:
        answers_or_says_what_is_wrong(function, seed)


def test_it_finds_what_the_table_holds_and_more():
    names = {function.__name__ for function in PUBLIC}
    assert {"softmax", "multi_head_attention", "alibi_bias", "text_batches", "sample"} <= names
    assert len(names) > 55
