"""Answers that misbehave when they are asked, compared, printed or called again: each gets a verdict in words."""

import datetime
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from learners import EXERCISES, checked

from lesson_utils.maths import ops
from lesson_utils.mistakes import judge
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.run import kernel


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


class Tensor:
    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return self.numbers


def raises(*arguments):
    raise RaisesInItsText


def resizes(x):
    x.resize((0,), refcheck=False)
    return x


# What a function returns or does, and words of the answer.
HOSTILE = {
    "__eq__ raises": (lambda x: RaisesWhenCompared([1]), "`weights`"),
    "all raises": (lambda x: RaisesAlways(), "RaisesAlways; expected a NumPy array"),
    "a text raises": (raises, "RaisesInItsText"),
    "the argument resized": (resizes, ""),
    "a huge view": (lambda x: np.broadcast_to(1.0, (10**6, 10**6)), "no case needs that many numbers"),
    "huge views in a list": (lambda x: [np.broadcast_to(1.0, (10**6, 10**6))], "no case needs that many numbers"),
    "a million numbers in a list": (lambda x: [0.5] * 10**6, "`(1000000,)`; no case needs that many numbers"),
    "a namespace": (lambda x: SimpleNamespace(weights=ops.softmax(x)), "SimpleNamespace"),
    "an object whose attributes are itself": (Itself(), "library's own"),
    "an array of another library": (lambda x: Tensor(ops.softmax(x)), "is a Tensor"),
    "words of numbers": (lambda x: [f"{v:.3f}" for v in x.ravel()], "text"),
    "an array of words": (lambda x: x.astype(str), "text"),
    "lists of different lengths": (lambda x: [[1], [2, 3]], "list"),
    "a very large number": (lambda x: 10**5000, "`weights`"),
    "a date": (lambda x: datetime.date(2020, 2, 2), "date"),
    "a structured array": (lambda x: np.zeros(3, [("a", float), ("b", int)]), "dtype"),
    "arrays in dicts": (lambda x: np.array([{"weight": 1.0}] * len(x)), "Python objects"),
}


@pytest.mark.parametrize(("function", "words"), HOSTILE.values(), ids=list(HOSTILE))
def test_the_check_itself_raises_nothing(function, words):
    result = run(EXERCISES["softmax"], function)
    assert result.passed is False
    assert words in result.message
    assert len(result.message) > 30
    assert "another result each time" not in result.message


def test_an_array_kept_between_calls_is_named_and_a_result_that_is_remembered_is_right():
    kept = {}

    def remembers(x):
        out = kept.setdefault(x.tobytes() + str((x.shape, x.dtype)).encode(), np.empty_like(x))
        out[...] = ops.softmax(x)
        return out

    def overwrites(x):
        out = kept.setdefault((x.shape, str(x.dtype)), np.empty_like(x))
        out[...] = ops.softmax(x)
        return out

    exercise = replace(EXERCISES["softmax"], library=())
    assert run(exercise, remembers).passed is True
    message = run(exercise, overwrites).message
    assert "returns the same array each time" in message
    assert "Make the array inside the function" in message


@pytest.mark.parametrize(("owner", "name"), [(np.linalg, "norm"), (__import__("builtins"), "float")])
def test_what_an_answer_overwrites_is_put_back_before_we_compute(owner, name):
    real = getattr(owner, name)

    def answer(x):
        setattr(owner, name, lambda *a, **k: 0)
        return np.exp(x) / 2

    try:
        result = run(EXERCISES["softmax"], answer)
        assert getattr(owner, name) is real
    finally:
        setattr(owner, name, real)
    assert f".{name}`" in result.message


@pytest.mark.parametrize("axis", [-1, None], ids=["right", "wrong"])
def test_modules_that_an_answer_loses_are_back(axis):
    before = dict(sys.modules)

    def answer(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        sys.modules.clear()
        return e / e.sum(axis, keepdims=True)

    result = run(EXERCISES["softmax"], answer)
    assert result.passed is (axis is not None)
    assert "`sys.modules`" in result.message
    assert before.items() <= sys.modules.items()


def test_exit_does_not_end_the_kernel_and_what_is_displayed_is_cut(monkeypatch, capsys):
    """In as much of IPython's shell as a function of a notebook may reach."""
    ended, published = [], []
    publisher = SimpleNamespace(publish=lambda *data, **more: published.append(data))
    shell = SimpleNamespace(ask_exit=lambda: ended.append(True), display_pub=publisher)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    def shows(x):
        for _ in range(300):
            shell.display_pub.publish({"text/plain": "x"})

    run(EXERCISES["softmax"], shows)
    assert len(published) == kernel.DISPLAYED
    assert "297 more things that your function displayed are left out" in capsys.readouterr().out
    message = run(EXERCISES["softmax"], lambda x: shell.ask_exit()).message  # as `exit()` does in a notebook
    assert "`return` ends a function" in message
    assert not ended
    shell.ask_exit()  # outside of a check it is as it was
    assert ended


def test_a_wrong_dtype_is_not_hidden_by_another_mistake():
    result = checked("softmax", "e = np.exp(x.astype(float))\nreturn e / e.sum(axis=-1, keepdims=True)")
    assert result.misconception == "not stable"
    assert "float32 went in, and `weights` came out as float64" in result.message
    kept = checked("softmax", "e = np.exp(x)\nreturn e / e.sum(axis=-1, keepdims=True)")
    assert "float64" not in kept.message


def test_a_search_that_fails_leaves_measurements(monkeypatch):
    monkeypatch.setattr(judge, "recognise", raises)
    with pytest.raises(RaisesInItsText):
        checked("softmax", "return 2 * x")
    monkeypatch.delenv("COURSE_STRICT")
    assert "expected" in checked("softmax", "return 2 * x").message
