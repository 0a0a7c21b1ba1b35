"""The bench measures nothing here: each part runs once, in a small form, so that none can rot."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path

import psutil
import pytest

from lesson_utils.classroom import live as course
from tools.bench import classroom, live, student
from tools.bench.__main__ import PARTS, main
from tools.browser import driver

ROOT = Path(__file__).parents[2]


def bench(what):
    words = [sys.executable, "-m", "tools.bench", what]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(words, cwd=ROOT, env=os.environ | {"BENCH": "trial"}, **streams)


@pytest.mark.long_form
@pytest.mark.parametrize("what", sorted(set(PARTS) - {"lite", "chat", "visit"}))  # tests/site runs those
def test_each_part_runs(what):
    if what in ("training", "attention") and not find_spec("torch"):
        pytest.skip("compares with PyTorch; install it with: python course.py test --parity")
    if what == "live" and not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    if what == "class" and not (find_spec("jupyterhub") and shutil.which("npm")):
        pytest.skip("no JupyterHub or no npm; install with: python course.py test --hub, and apt install npm")
    done = bench(what)
    assert done.returncode == 0, done.stdout
    assert not {"DIFFER", "ANOTHER", "WRONG", "FAILED"} & set(done.stdout.split()), done.stdout


def test_a_figure_that_fails_is_named_and_the_others_are_measured(monkeypatch, capsys):
    class Page:
        def __getattr__(self, name):  # whatever it is asked for, it is there and does nothing
            return Page()

        def __call__(self, *words, **options):
            return Page()

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

        def __str__(self):
            return "what stands where the picture was"

        def live_figures(self):
            return Page(), Page(), Page()

    def measure(name, page):
        if name == "b":
            raise RuntimeError("no new picture")
        slow = {"c": 70.0}.get(name, 20.0)
        return live.Latency(name, "slider 'n'", floor=20.0, ours=slow, ahead=slow, hasty=slow, usual=200.0)

    monkeypatch.setattr(driver, "jupyterlab", lambda folder: Page())
    monkeypatch.setattr(live, "figures", lambda: dict.fromkeys("abc"))
    monkeypatch.setattr(live, "_measure", measure)
    monkeypatch.setattr(live, "_drag_both", lambda name, page: None)
    monkeypatch.delenv("BENCH", raising=False)
    with pytest.raises(SystemExit, match="1 could not be measured: b"):
        live.run()
    said = capsys.readouterr().out
    assert "b FAILED: no new picture\nwhat stands where the picture was" in said
    assert said.index("c, slider 'n'") < said.index("a, slider 'n'"), "the slowest comes first"
    assert "live 70 ms (3.5× the floor), interact 200 ms: 0.35×" in said
    assert "over the goal: milliseconds, × the floor, × interact in haste" in said
    assert "  × the floor: median 2.25, worst 3.50; goal 2, missed by 1" in said


def test_a_student_who_cannot_go_on_is_named_and_the_others_go_on(monkeypatch, capsys):
    class Student:
        starts = 1

        def __init__(self, number, hub):
            self.name, self.answers = f"student{number}", [0.1] * 99 + [0.7]

        def log_in(self):
            if self.name == "student1":
                raise RuntimeError("no server")

        def run_all(self, sources):
            assert sources

        def drag(self, figures, steps):
            assert self.name == "student0"

    monkeypatch.setenv("BENCH", "trial")
    monkeypatch.setattr(classroom, "jupyterhub", lambda: nullcontext(("http://nowhere", psutil.Process())))
    monkeypatch.setattr(classroom, "Student", Student)
    monkeypatch.setattr(classroom.time, "sleep", lambda seconds: None)
    with pytest.raises(SystemExit, match="1 of 2 students could not go on"):
        classroom.run()
    said = capsys.readouterr().out
    assert "FAILED: student1: RuntimeError('no server')" in said
    assert "100 steps: p50 0.10 s, p95 0.10 s, the longest 0.70 s" in said


@pytest.mark.parametrize(
    "control",
    [
        course.Slider("x", 0, 1, 0.3, 0.1),
        course.Slider("n", -2, 3, 1),
        course.LogSlider("r", 0.01, 10, 1),
        course.Choice("w", ("a", "b"), "b"),
    ],
)
def test_a_student_moves_a_slider_step_by_step_to_its_ends(control, capsys):
    figure = course.lab(x=control)(lambda figure: lambda x: f"{x}")()
    row, picture = figure.widget.children
    (widget,), seen = row.children, [control.value]
    exec(student.FIND_FIGURES, {})
    (states,) = [states for shown, _, states in json.loads(capsys.readouterr().out) if shown == picture.model_id]
    for state in islice(cycle(states), 80):
        widget.set_state(state)  # as it comes from a front end
        seen.append(control.read(widget.value))
        assert seen[-1] in control.neighbours(seen[-2])
    assert set(control.extremes()) <= set(seen)


def test_a_student_uses_figures_in_a_rhythm_of_its_own_until_the_time_is_over(monkeypatch):
    now, drags = [0.0], []

    class Student:
        number = 3

        def drag(self, figures, steps, first):
            drags.append((steps, first))
            now[0] += steps * student.PACE

    monkeypatch.setattr(classroom.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(classroom.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    classroom.use(Student(), 10)
    assert 600 <= now[0] < 640
    assert len(set(drags)) > 20


def test_steps_made_while_a_picture_is_awaited_are_sent_as_one(monkeypatch):
    now, sent, took = [0.0], [], iter([0.1, 0.1, 1.0, 0.1])

    class Still(student.Student):
        def _run(self, source):
            return '[["picture", "slider", [{"value": 1}, {"value": 2}]]]'

        def _move(self, picture, slider, state):
            sent.append(round(now[0], 9))
            now[0] += next(took)
            return now[0]

    monkeypatch.setattr(student.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(student.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    one = Still(0, "http://nowhere")
    one.drag(1, 4)
    assert one.answers == pytest.approx([0.1, 0.1, 1.0, 0.2])  # the last step waited 0.1 s for the third's picture
    assert sent == [0.0, 0.3, 0.6, 1.6]


def test_a_part_that_fails_is_named_at_the_end(monkeypatch):
    monkeypatch.setattr("tools.bench.__main__.PARTS", {"nothing": ("no_such_module", "a part that fails", (None,))})
    monkeypatch.setattr(sys, "argv", ["bench", "nothing"])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1))
    with pytest.raises(SystemExit, match="These failed; why stands above: nothing"):
        main()
