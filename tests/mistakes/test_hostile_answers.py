"""Answers that misbehave when they are asked, compared, printed or called again: each gets a verdict in words."""

import datetime
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from learners import EXERCISES, checked, written

from lesson_utils.maths import ops
from lesson_utils.mistakes import judge
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.run import kernel
from lesson_utils.mistakes.run.outcome import Outcome, same


class RaisesAsArray:
    def __array__(self, dtype=None, copy=None):
        raise ZeroDivisionError("no array")


class RaisesWhenCompared(list):
    def __eq__(self, other):
        raise ZeroDivisionError("not compared")

    __hash__ = None


class RaisesAlways:
    def __getattribute__(self, name):
        raise ZeroDivisionError(name)


class RaisesInItsText(Exception):
    def __str__(self):
        raise ZeroDivisionError("no text")


class Itself:
    def __getattr__(self, name):
        return self

    def __call__(self, x):
        return ops.softmax(x)


def raises(*arguments):
    raise RaisesInItsText


def resizes(x):
    x.resize((0,), refcheck=False)
    return x


HOSTILE = {
    "__array__ raises": lambda x: RaisesAsArray(),
    "__array__ raises, in a list": lambda x: [RaisesAsArray()] * len(x),
    "__array__ raises, in an array": lambda x: np.array([RaisesAlways] * x.size, object).reshape(x.shape),
    "__eq__ raises": lambda x: RaisesWhenCompared([1]),
    "all raises": lambda x: RaisesAlways(),
    "a text raises": raises,
    "the argument resized": resizes,
    "a huge view": lambda x: np.broadcast_to(1.0, (10**6, 10**6)),
    "huge views in a list": lambda x: [np.broadcast_to(1.0, (10**6, 10**6))],
    "a namespace": lambda x: SimpleNamespace(weights=ops.softmax(x)),
}


@pytest.mark.parametrize("function", HOSTILE.values(), ids=list(HOSTILE))
def test_the_check_itself_raises_nothing(function):
    result = run(EXERCISES["softmax"], function)
    assert result.passed is False
    assert len(result.message) > 30, result.message


def test_an_object_whose_attributes_are_itself_is_called():
    result = run(EXERCISES["softmax"], Itself())
    assert (result.passed, "library's own" in result.message) == (False, True), result.message


class Tensor:
    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return self.numbers


def test_an_array_of_another_library_is_named():
    def answer(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return Tensor(e / e.sum(-1, keepdims=True))

    message = run(EXERCISES["softmax"], answer).message
    assert "`weights` is a Tensor; put `np.array(...)` around it" in message


NO_NUMBERS = {
    "words of numbers": lambda x: [f"{v:.3f}" for v in x.ravel()],
    "an array of words": lambda x: x.astype(str),
    "lists of different lengths": lambda x: [[1], [2, 3]],
    "a very large number": lambda x: 10**5000,
    "a date": lambda x: datetime.date(2020, 2, 2),
    "a structured array": lambda x: np.zeros(3, [("a", float), ("b", int)]),
    "arrays in dicts": lambda x: np.array([{"weight": 1.0}] * len(x)),
}


@pytest.mark.parametrize("function", NO_NUMBERS.values(), ids=list(NO_NUMBERS))
def test_what_is_no_number_is_not_called_random(function):
    result = run(EXERCISES["softmax"], function)
    assert result.passed is False
    assert "another result each time" not in result.message, result.message
    value = function(np.ones(2))
    assert same(Outcome(value), Outcome(function(np.ones(2))))
    assert not same(Outcome(value), Outcome(function(np.ones(2))[:-1] if isinstance(value, list) else "another"))


KEPT = """
    if x.shape not in kept:
        kept[x.shape, str(x.dtype)] = np.empty(x.shape, x.dtype)
    out = kept[x.shape, str(x.dtype)]
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    np.divide(e, e.sum(axis=-1, keepdims=True), out=out)
    return out
    """


def test_a_million_numbers_in_a_list_are_no_endless_loop():
    message = run(EXERCISES["softmax"], lambda x: [0.5] * 10**6).message
    assert "`(1000000,)`; no case needs that many numbers" in message, message


def test_an_array_kept_between_calls_is_named():
    answer = written("softmax", KEPT.replace("if x.shape not", "if (x.shape, str(x.dtype)) not"))
    answer.__globals__["kept"] = {}
    message = run(EXERCISES["softmax"], answer).message
    assert "returns the same array each time" in message
    assert "Make the array inside the function" in message


def test_a_result_that_is_remembered_is_right():
    remembered = {}

    def answer(x):
        key = x.tobytes() + str((x.shape, x.dtype)).encode()
        if key not in remembered:
            e = np.exp(x - x.max(-1, keepdims=True))
            remembered[key] = e / e.sum(-1, keepdims=True)
        return remembered[key]

    assert run(EXERCISES["softmax"], answer).passed is True


@pytest.mark.parametrize("patched", ["np.random.default_rng", "builtins.float", "np.linalg.norm"])
def test_what_an_answer_overwrites_is_put_back_before_we_compute(patched):
    owner, name = patched.rsplit(".", 1)
    owner = {"np.random": np.random, "builtins": __import__("builtins"), "np.linalg": np.linalg}[owner]
    real = getattr(owner, name)

    def answer(x):
        setattr(owner, name, lambda *a, **k: 0)
        return np.exp(x) / 2

    try:
        result = run(EXERCISES["softmax"], answer)
        assert getattr(owner, name) is real
    finally:
        setattr(owner, name, real)
    assert f"`{patched}`" in result.message


@pytest.mark.parametrize("lost", [sys.modules.clear, lambda: sys.modules.update(numpy=None)], ids=["all", "one"])
@pytest.mark.parametrize("axis", [-1, None], ids=["right", "wrong"])
def test_modules_that_an_answer_loses_are_back(lost, axis):
    before = dict(sys.modules)

    def answer(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        lost()
        return e / e.sum(axis, keepdims=True)

    result = run(EXERCISES["softmax"], answer)
    assert result.passed is (axis is not None)
    assert "`sys.modules`" in result.message
    assert before.items() <= sys.modules.items()


class Shell:
    """As much of IPython's shell as a function of a notebook may reach."""

    def __init__(self):
        self.ended, self.published = False, 0
        self.display_pub = SimpleNamespace(publish=self._publish)

    def ask_exit(self):
        self.ended = True

    def _publish(self, *data, **more):
        self.published += 1


@pytest.fixture
def shell(monkeypatch):
    made = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: made))
    return made


def test_exit_does_not_end_the_kernel(shell):
    def answer(x):
        shell.ask_exit()  # as `exit()` does in a notebook

    message = run(EXERCISES["softmax"], answer).message
    assert "`return` ends a function" in message
    shell.ask_exit()  # and outside of a check it is as it was
    assert shell.ended


def test_what_is_displayed_is_cut(shell, capsys):
    def answer(x):
        for _ in range(300):
            shell.display_pub.publish({"text/plain": "x"})
        return x

    run(EXERCISES["softmax"], answer)
    assert shell.published == kernel.DISPLAYED
    assert "297 more things that your function displayed are left out" in capsys.readouterr().out


def test_a_wrong_dtype_is_not_hidden_by_another_mistake():
    result = checked("softmax", "e = np.exp(x.astype(float))\nreturn e / e.sum(axis=-1, keepdims=True)")
    assert result.misconception == "not stable"
    assert "float32 went in, and `weights` came out as float64" in result.message
    kept = checked("softmax", "e = np.exp(x)\nreturn e / e.sum(axis=-1, keepdims=True)")
    assert "float64" not in kept.message


def test_an_edit_of_any_operator_has_words():
    """Two slips: 2^bits steps are one too many, and what is returned are the numbers of the levels."""
    result = checked(
        "rounded",
        "low, high = x.min(axis, keepdims=True), x.max(axis, keepdims=True)\n"
        "n = 1 << bits\n"
        "with np.errstate(all='ignore'):\n"
        "    codes = np.round((x - low) * n / (high - low))\n"
        "return np.where(high == low, x, codes)",
    )
    assert result.passed is False
    assert len(result.message) > 40


def test_a_search_that_fails_leaves_measurements(monkeypatch):
    monkeypatch.setattr(judge, "recognise", raises)
    with pytest.raises(RaisesInItsText):
        checked("softmax", "return 2 * x")
    monkeypatch.delenv("COURSE_STRICT")
    assert "expected" in checked("softmax", "return 2 * x").message
