"""Every check ends, soon, and finds the same on a slow machine as on a fast one."""

import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from learners import EXERCISES, OF_A_LEARNER, checked

from lesson_utils.exercises import check
from lesson_utils.mistakes import judge
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.run import limits
from lesson_utils.mistakes.run.limits import TimeUp, counted_lines, ending, left, stopped
from lesson_utils.mistakes.run.sandbox import attempt

has_alarms = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has none")


def test_lapack_is_not_given_what_it_may_never_end_with():
    def solves(x):
        return np.linalg.lstsq(x, x, rcond=None)[0]

    for bad in (math.nan, math.inf):
        outcome = attempt(solves, (np.full((3, 3), bad),))
        assert isinstance(outcome.error, np.linalg.LinAlgError)
        assert "NaN or ∞" in str(outcome.error)
    assert attempt(solves, (np.eye(3),)).error is None


# --- A slow machine -------------------------------------------------------------------------------------------------

SAMPLE = {
    "softmax": "e = np.exp(x - x.max())\nreturn e / e.sum(axis=0, keepdims=True)",
    "layer_norm": "m = x.mean(-1, keepdims=True)\nv = np.mean(x - m, axis=-1, keepdims=True) ** 2\n"
    "return gamma * (x - m) / np.sqrt(v + eps) + beta",
    "adam_step": "m, v = beta_1 * m + (1 - beta_1) * grad, beta_2 * v + (1 - beta_1) * grad**2\n"
    "return value + lr * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + eps), m, v",
}


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.parametrize(("name", "crowded"), [("softmax", False), ("layer_norm", False), ("adam_step", True)])
def test_a_slow_machine_names_what_a_fast_one_names(name, crowded, monkeypatch):
    """Its clocks go on by ten seconds for each second of work; on a crowded machine, nine of them go to others."""
    fast = checked(name, SAMPLE[name])
    monkeypatch.setattr(limits, "ALTOGETHER", OF_A_LEARNER)
    for module in (limits, judge):
        monkeypatch.setattr(module, "monotonic", lambda: 10 * time.process_time())
    if crowded:
        monkeypatch.setattr(limits, "waited", lambda: 9 * time.process_time())
    else:
        monkeypatch.setattr(limits, "thread_time", lambda: 10 * time.thread_time())
    slow = checked(name, SAMPLE[name])
    assert (slow.misconception, slow.message) == (fast.misconception, fast.message)


@has_alarms
def test_an_alarm_that_rings_within_an_alarm_raises_nothing(monkeypatch):
    """It would end `stopped` before that has put its alarm away, which then rings outside of every limit."""
    with stopped(60):
        ring = signal.getsignal(signal.SIGALRM)
        monkeypatch.setattr(limits, "remind", lambda: ring(signal.SIGALRM, sys._getframe()))
        ring(signal.SIGALRM, None)
        monkeypatch.undo()


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


@pytest.mark.slow
def test_what_the_check_says_meanwhile_is_not_what_the_function_printed(capsys):
    def answer(x):
        if x.shape == (5,):
            print("a row")
        time.sleep(0.8)
        return x

    check.softmax(answer)
    assert capsys.readouterr().out == "still looking…\nYour function printed:\na row\n"


@has_alarms
def test_an_answer_that_takes_the_alarm_away_is_called_once():
    calls = []

    def answer(x):
        calls.append(x)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(0.6)
        return x

    assert "had not returned" in run(EXERCISES["softmax"], answer, time_limit=0.1).message
    assert len(calls) == 1


def test_the_end_of_a_check_ends_its_searches():
    """What was measured is said; nothing more is tried."""
    with ending(0.05):
        result = checked("adam_step", SAMPLE["adam_step"])
    assert (result.passed, result.misconception) == (False, None)
    assert "expected" in result.message


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


@has_alarms
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
