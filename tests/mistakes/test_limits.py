"""Every check ends, soon, and finds the same on a slow machine as on a fast one."""

import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from learners import EXERCISES, checked

from lesson_utils.exercises import check
from lesson_utils.mistakes import judge
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.run import limits, sandbox
from lesson_utils.mistakes.run.limits import TimeUp, counted_lines, ending, left, stopped
from lesson_utils.mistakes.run.sandbox import attempt

BY_LEAST_SQUARES = """
    rate = lambda c: 1 / base ** ((c - c % 2) / d_model)
    table = lambda first: np.array([[math.sin((p + first) * rate(c) + (c % 2) * math.pi / 2) for c in range(d_model)]
                                    for p in range(d_model)])
    return np.linalg.lstsq(table(0), table(offset), rcond=None)[0].T
    """


def test_no_edit_of_an_answer_gives_lapack_what_is_not_finite(monkeypatch):
    """The answer solves for the matrix from too few rows; with some of its edits, LAPACK would not end."""
    given = []

    def noted(real):
        return lambda *arguments, **keywords: (given.extend(arguments), real(*arguments, **keywords))[1]

    for name in [name for name in sandbox.REAL if name.startswith("lstsq")]:  # lstsq_m and lstsq_n before NumPy 2.1
        monkeypatch.setitem(sandbox.REAL, name, noted(sandbox.REAL[name]))
    began = time.monotonic()
    result = checked("shift_matrix", BY_LEAST_SQUARES)
    assert result.passed is False
    assert time.monotonic() - began < 60  # a bound on hanging
    assert len(given) > 20
    assert all(np.isfinite(x).all() for x in given)


def test_lapack_raises_what_it_cannot_use_and_prints_nothing(capfd, monkeypatch):
    def solves(x):
        return np.linalg.lstsq(x, x, rcond=None)[0]

    for bad in (math.nan, math.inf):
        outcome = attempt(solves, (np.full((3, 3), bad),))
        assert isinstance(outcome.error, np.linalg.LinAlgError)
        assert "NaN or ∞" in str(outcome.error)
    assert attempt(solves, (np.eye(3),)).error is None

    def prints(matrix, signature=None):
        os.write(1, b"On entry to DLASCL\n")
        os.write(2, b"parameter number 4 had an illegal value\n")
        return matrix

    monkeypatch.setitem(sandbox.REAL, "inv", prints)
    attempt(np.linalg.inv, (np.eye(3),))
    os.write(1, b"heard")
    assert capfd.readouterr() == ("heard", "")


# --- A slow machine -------------------------------------------------------------------------------------------------

SAMPLE = {
    "softmax": [
        "np.exp(x) / np.exp(x).sum(axis=-1)",
        "e = np.exp(x - x.max())\nreturn e / e.sum(axis=0, keepdims=True)",
    ],
    "gru_step": [
        """
        d = h.shape[-1]
        gx, gh = x @ W_x + b, h @ W_h
        r, z = ops.sigmoid(gx[:, :d] + gh[:, :d]), ops.sigmoid(gx[:, d : 2 * d])
        n = np.tanh(gx[:, 2 * d :] + r * (gh[:, 2 * d :] + b_h))
        return (1 - z) * n + z * h
        """,
    ],
    "layer_norm": [
        "m = x.mean(-1, keepdims=True)\nv = np.mean(x - m, axis=-1, keepdims=True) ** 2\n"
        "return gamma * (x - m) / np.sqrt(v + eps) + beta",
    ],
    "rotate": [
        "a = positions[:, None] / base ** np.arange(0, x.shape[-1], 2)\nreturn x * np.cos(a).repeat(2, axis=-1)"
    ],
    "causal_mask": ["m = np.zeros((T_q, T_k), bool)\nfor i in range(T_q):\n    m[i, : i + 1] = True\nreturn m"],
    "adam_step": [
        "a = beta_1 * m + (1 - beta_1) * grad\nb = beta_2 * v + (1 - beta_2) * grad**2\nc = a / (1 + beta_1**t)\n"
        "d = b / (1 + beta_2**t)\nreturn value - lr * c / (np.sqrt(d) + eps), a, b",
    ],
}


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.parametrize(
    ("name", "body"), [(name, body) for name, bodies in SAMPLE.items() for body in bodies], ids=lambda x: x[:12]
)
def test_a_slow_machine_names_what_a_fast_one_names(name, body, monkeypatch):
    """Its clocks go on by ten seconds for each second of work."""
    fast = checked(name, body)
    monkeypatch.setattr(limits, "monotonic", lambda: 10 * time.process_time())
    monkeypatch.setattr(limits, "thread_time", lambda: 10 * time.thread_time())
    monkeypatch.setattr(judge, "monotonic", lambda: 10 * time.process_time())
    slow = checked(name, body)
    assert (slow.misconception, slow.message) == (fast.misconception, fast.message)


@pytest.mark.slow
def test_a_crowded_machine_names_what_a_quiet_one_names(monkeypatch):
    """Of ten seconds nine go to others: those do not count, or the second of two mistakes would not be found."""
    body = """
    m, v = beta_1 * m + (1 - beta_1) * grad, beta_2 * v + (1 - beta_1) * grad**2
    return value + lr * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + eps), m, v
    """
    quiet = checked("adam_step", body)
    monkeypatch.setattr(limits, "ALTOGETHER", 5)  # a crowd that this machine's speed does not tell from a quiet one
    monkeypatch.setattr(limits, "monotonic", lambda: 10 * time.process_time())
    monkeypatch.setattr(limits, "waited", lambda: 9 * time.process_time())
    crowded = checked("adam_step", body)
    assert "Two things to mend" in quiet.message
    assert (crowded.misconception, crowded.message) == (quiet.misconception, quiet.message)


AS_IN_A_BROWSER = """
import signal, sys, time
for module, lacks in ((time, ("thread_time",)), (signal, ("setitimer", "SIGALRM"))):
    for name in lacks:
        vars(module).pop(name, None)
sys.modules["resource"] = None
import importlib, pkgutil
import lesson_utils
for module in pkgutil.walk_packages(lesson_utils.__path__, "lesson_utils."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from lesson_utils.exercises import check
for body in ("weights @ values", "values.mean(axis=0)", "[1 for _ in iter(int, 1)]"):
    names = {}
    exec(f"def weighted_average(weights, values): return {body}", names)
    print(check.weighted_average(names["weighted_average"]))
"""


@pytest.mark.slow
def test_it_runs_without_what_a_python_in_a_browser_lacks():
    """Every module can be imported, and checks judge and end."""
    done = subprocess.run([sys.executable, "-c", AS_IN_A_BROWSER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for finding in ("Right for all", "This is the plain mean", "had not returned after some seconds"):
        assert finding in done.stdout


# --- The end --------------------------------------------------------------------------------------------------------


def test_an_endless_edit_ends_by_its_lines():
    """In as many lines on each machine, though nobody looks at a clock."""
    names = {}
    exec(compile("def f():\n    n = 0\n    while True:\n        n = n + 1\n", "<answer>", "exec"), names)
    with pytest.raises(TimeUp), counted_lines("<answer>", 1000) as counted:
        names["f"]()
    assert counted() == 1001


def test_a_slow_answer_ends_with_the_check(monkeypatch, capsys):
    """The limit on its calls is one on all of them together, and the check says that it is at work."""
    monkeypatch.setattr(limits, "PATIENCE", 0.2)

    def answer(x):
        time.sleep(0.15)
        return x

    began = time.monotonic()
    result = run(EXERCISES["softmax"], answer, time_limit=0.5)
    assert "had not returned" in result.message
    assert capsys.readouterr().out == "still looking…\n"
    assert time.monotonic() - began < 30  # a bound on hanging, not on speed


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no alarms")
def test_an_answer_that_takes_the_alarm_away_is_called_once():
    calls = []

    def answer(x):
        calls.append(x)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(0.6)
        return x

    assert "had not returned" in run(EXERCISES["softmax"], answer, time_limit=0.1).message
    assert len(calls) == 1


def test_what_the_check_says_meanwhile_is_not_what_the_function_printed(monkeypatch, capsys):
    monkeypatch.setattr(limits, "PATIENCE", 0.1)

    def answer(x):
        if x.shape == (5,):
            print("a row")
        time.sleep(0.15)
        return x

    check.softmax(answer)
    assert capsys.readouterr().out == "still looking…\nYour function printed:\na row\n"


def test_the_end_of_a_check_ends_its_searches(monkeypatch):
    """What was measured is said; nothing more is tried."""
    monkeypatch.setattr(limits, "ALTOGETHER", 0.3)
    (body,) = SAMPLE["gru_step"]
    began = time.monotonic()
    result = checked("gru_step", body)
    assert (result.passed, result.misconception) == (False, None)
    assert "`new_h`" in result.message or "expected" in result.message
    assert time.monotonic() - began < 30


def test_limits_stand_inside_limits():
    """An inner one does not take the outer one's clock away, and lasts no longer than the check."""

    def sleeps_behind_another_limit():
        with stopped(60):
            pass
        time.sleep(60)

    with pytest.raises(TimeUp), stopped(0.3):
        sleeps_behind_another_limit()
    with ending(0.2):
        assert left() < 0.2
        with pytest.raises(TimeUp), stopped(60):
            time.sleep(60)
    assert left() == math.inf


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no alarms")
def test_an_alarm_on_the_way_into_a_limit_and_out_of_it_leaves_none_behind(monkeypatch):
    """One that is left behind ends the kernel when it rings."""
    real, handler = signal.setitimer, signal.getsignal(signal.SIGALRM)

    def rings_at_once(*arguments):
        before = real(*arguments)
        signal.raise_signal(signal.SIGALRM)
        return before

    monkeypatch.setattr(limits, "ENTRANCES", limits.ENTRANCES | {__file__})  # it is raised here, in their stead
    monkeypatch.setattr(signal, "setitimer", rings_at_once)
    with pytest.raises(TimeUp), ending(0), stopped(60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_a_limit_that_rings_where_nothing_can_be_raised_rings_again():
    """Python drops what a `__del__` raises, and prints it; nobody who waits for a check wants to read that."""

    class Slow:
        def __del__(self):
            time.sleep(60)

    def sleeps_in_both():
        Slow()
        time.sleep(60)

    hook = sys.unraisablehook
    with pytest.raises(TimeUp), stopped(0.1):
        sleeps_in_both()
    assert sys.unraisablehook is hook
