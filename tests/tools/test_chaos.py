"""Walks of chaos: whose a traceback is, and that a short walk notices what a learner should not meet."""

import pytest

from tools.browser import driver, firefox
from tools.chaos import __main__ as chaos
from tools.chaos import page, walk

CELL = """ValueError                                Traceback (most recent call last)
Cell In[4], line 1
----> 1 attention(Q, K)
"""
OURS = """
File /home/me/course/lesson_utils/maths/attention.py:41, in attention(Q, K)
     40     if Q.shape[-1] != K.shape[-1]:
---> 41         {}
     42     return Q

ValueError: what was given, what was expected, what to do
"""
THEIRS = """
File /usr/lib/python3/numpy/core.py:7, in stack(arrays)
----> 7 raise ValueError("all input arrays must have the same shape")
"""
BACK = """
Cell In[3], line 2, in score(q)
----> 2     return q / 0
"""
ON_STDERR = 'File "/x/lesson_utils/a.py", line 3, in f\n    1 / 0\nZeroDivisionError'


@pytest.mark.parametrize(
    ("name", "text", "edited", "whose"),
    [
        ("NameError", CELL, False, "the learner's"),
        ("ValueError", CELL + OURS.format('raise ValueError("…")'), False, "said clearly"),
        ("ValueError", CELL + OURS.format("weights @ V"), False, "lost: a traceback of ours"),
        ("ValueError", CELL + OURS.format("np.stack(x)") + THEIRS, True, "lost: a traceback of ours, after an edit"),
        ("ZeroDivisionError", CELL + OURS.format("score(q)") + BACK, False, "the learner's"),
        ("ValueError", CELL + THEIRS, False, "the learner's"),
        ("MemoryError", CELL + OURS.format("np.empty(n)"), True, "the learner's"),
        ("MemoryError", CELL + OURS.format("np.empty(n)"), False, "lost: a traceback of ours"),
        ("KeyboardInterrupt", CELL + OURS.format("step()"), False, "the learner's"),
        ("", ON_STDERR, False, "lost: a traceback of ours"),
        ("", f'{ON_STDERR}\nFile "/tmp/ipykernel_1/2.py", line 1, in g\n    1 / 0', False, "the learner's"),
        ("on stderr", "/x/lesson_utils/a.py:3: RuntimeWarning: overflow", False, "lost: a warning of ours"),
        ("on stderr", "/tmp/ipykernel_1/2.py:3: RuntimeWarning: overflow", False, "the learner's"),
        ("IndexError", f"\x1b[31m{CELL}\x1b[0m" + OURS.format("x[9]"), False, "lost: a traceback of ours"),
    ],
)
def test_whose_a_traceback_is(name, text, edited, whose):
    assert page.verdict(name, text, edited) == whose


SPOILED = "print('spoiled')\n"
BREAKS = f"{SPOILED}from lesson_utils.classroom import live\nlive.Slider('a', 0, 9, 3).neighbours('three')"
EMPTIES = f"""{SPOILED}import gc
from lesson_utils.classroom.live import LiveFigure
for thing in gc.get_objects():
    if type(thing) is LiveFigure:
        thing._html.value = thing._html.value.replace('alt=', 'title=')"""
THROWS = "() => void setTimeout(() => { throw new Error('ours') })"


def writes(walk, source, typed=True):
    walk.page.write(walk.path, "weighted-average", source)
    if typed:
        walk.typed()
    walk.run({"id": "weighted-average"})


def empties(walk):
    for cell in ("weighted-average", "moving-it"):
        walk.run({"id": cell})
        walk.settle()
    writes(walk, EMPTIES)


SPOILING = {  # steps that a walk must notice, and what it says then
    "moving-it: the kernel has sent another picture": empties,
    "lost: a traceback of ours, after an edit, in weighted-average": lambda walk: writes(walk, BREAKS),
    "an error of page.js: Error: ours": lambda walk: walk.window.ask(THROWS),
    "00_start_here.ipynb on the page is not what was typed last": lambda walk: writes(walk, "1", typed=False),
}


def has(browser):
    pytest.importorskip("playwright")
    if not (driver.find_chromium() if browser == "chromium" else firefox.find()):
        pytest.skip(f"no {browser}; install it (Debian: apt install chromium firefox-esr)")


@pytest.mark.long_form
def test_a_walk_notices_what_a_learner_should_not_meet():
    has("chromium")
    do = iter(SPOILING.values())
    one = walk.Walk(1, "00_start_here.ipynb", "chromium", {"spoil": (1, lambda walk: next(do)(walk))}).go(len(SPOILING))
    found = [what for _, _, what in one.lost]
    assert len(found) == len(SPOILING), found
    assert all(what.startswith(said) for said, what in zip(SPOILING, found, strict=True)), found


@pytest.mark.long_form
@pytest.mark.own_job
@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_short_walk_loses_nothing(browser, capsys):
    has(browser)
    code = chaos.main(["--walks", "1", "--steps", "8", "--browser", browser, "00"])
    said = capsys.readouterr().out
    assert code == 0, said
    assert said.splitlines()[-1].split() == ["all", "10", "10", "0"], "the table counts all steps, and two last looks"
