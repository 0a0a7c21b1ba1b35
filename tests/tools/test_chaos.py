"""Walks of chaos: whose a traceback is, and that a short walk notices what a learner should not meet."""

import mmap
from collections import Counter

import pytest

from lesson_utils.classroom import live
from tools.bench import live as bench
from tools.browser import driver, firefox
from tools.chaos import __main__ as chaos
from tools.chaos import page, soak, steps, walk

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


@pytest.mark.parametrize(
    ("name", "text", "edited", "whose"),
    [
        ("NameError", CELL, False, "the learner's"),
        ("ValueError", CELL + OURS.format('raise ValueError("…")'), False, "said clearly"),
        ("ValueError", CELL + OURS.format("weights @ V"), False, "lost: a traceback of ours"),
        ("ValueError", CELL + OURS.format("weights @ V"), True, "lost: a traceback of ours, after an edit"),
        ("ValueError", CELL + OURS.format("np.stack(x)") + THEIRS, True, "lost: a traceback of ours, after an edit"),
        ("ZeroDivisionError", CELL + OURS.format("score(q)") + BACK, False, "the learner's"),
        ("ValueError", CELL + THEIRS, False, "the learner's"),
        ("MemoryError", CELL + OURS.format("np.empty(n)"), True, "the learner's"),
        ("MemoryError", CELL + OURS.format("np.empty(n)"), False, "lost: a traceback of ours"),
        ("KeyboardInterrupt", CELL + OURS.format("step()"), False, "the learner's"),
        (
            "",
            'File "/x/lesson_utils/a.py", line 3, in f\n    1 / 0\nZeroDivisionError',
            False,
            "lost: a traceback of ours",
        ),
        ("on stderr", "/x/lesson_utils/a.py:3: RuntimeWarning: overflow", False, "lost: a warning of ours"),
        ("on stderr", "/tmp/ipykernel_1/2.py:3: RuntimeWarning: overflow", False, "the learner's"),
        ("IndexError", f"\x1b[31m{CELL}\x1b[0m" + OURS.format("x[9]"), False, "lost: a traceback of ours"),
    ],
)
def test_whose_a_traceback_is(name, text, edited, whose):
    assert page.verdict(name, text, edited) == whose


def test_the_table_counts_what_was_lost_by_kind(capsys):
    walks = [walk.Walk(seed, "00_start_here.ipynb", "chromium", steps.KINDS) for seed in (1, 2)]
    for one in walks:
        one.story = ["00_start_here.ipynb in chromium", "1. save"]
        one.tried = Counter({"save": 2, "reload": 3})
    walks[1].lost = [(2, "save", "this"), (2, "save", "and that"), (4, "save", "this again")]
    chaos.print_table(walks)
    rows = {line[:22].strip(): line.split()[-3:] for line in capsys.readouterr().out.splitlines()}
    assert rows["save"] == ["4", "2", "2"]
    assert rows["reload"] == ["6", "6", "0"]
    assert rows["all"] == ["10", "8", "2"]
    chaos.report(walks[1], story=False)
    out = capsys.readouterr().out
    assert "LOST at step 4 (save): this again" in out
    assert "python -m tools.chaos --walks 1 --seed 2 --browser chromium 00_start_here" in out


def test_figures_are_chosen_by_notebook_or_by_name():
    every = bench.chosen()
    of_one = [name for name in every if name.startswith("causal_mask.")]
    assert bench.chosen(["06_causal"]) == bench.chosen(["causal_mask"]) == of_one != every
    assert bench.chosen(["causal_mask.leak", "no_such_figure"]) == ["causal_mask.leak_lab"]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "lost"), [(None, False), ("leaks", True), ("raises", True)])
def test_a_figure_that_grows_or_fails_is_lost(fault, lost, monkeypatch):
    kept = []

    @live.lab(width=1, height=1, x=live.Slider("x", 0, 10, 3))
    def point(figure):
        (dot,) = figure.add_subplot(xlim=(0, 10)).plot([0], [0], "o")

        def update(x):
            dot.set_xdata([x])
            if fault == "leaks":
                kept.append(mmap.mmap(-1, 400_000))  # an array might find room that this process has left
                kept[-1].write(bytes(1) * 400_000)
            if fault == "raises" and x == 7:
                raise ArithmeticError("seven")
            return f"At {x}."

        return update

    monkeypatch.setattr(live, "PICTURES_KEPT", 1)
    monkeypatch.setattr(soak, "figures", lambda: {"a figure": point.example})
    found = soak.soak("a figure", 60)
    assert found.lost == lost, found
    assert ("LOST" in str(found)) == lost
    assert ("ArithmeticError: seven" in found.alert) == (fault == "raises")


SPOILED = "print('spoiled')\n"
BREAKS = f"{SPOILED}from lesson_utils.classroom import live\nlive.Slider('a', 0, 9, 3).neighbours('three')"
EMPTIES = f"""{SPOILED}import gc
from lesson_utils.classroom.live import LiveFigure
for thing in gc.get_objects():
    if type(thing) is LiveFigure:
        thing._html.value = thing._html.value.replace('alt=', 'title=')"""


def writes(walk, source, typed=True):
    walk.page.write(walk.path, "weighted-average", source)
    if typed:
        walk.typed()
    walk.run({"id": "weighted-average"})


@pytest.fixture
def spoiled():
    """Steps that a walk must notice, and what it says then."""
    return {
        "lost: a traceback of ours, after an edit, in weighted-average": lambda walk: writes(walk, BREAKS),
        "an error of page.js: Error: ours": lambda walk: walk.window.ask(
            "() => void setTimeout(() => { throw new Error('ours') })"
        ),
        "first-look: the kernel has sent another picture": lambda walk: (
            walk.run({"id": "first-look"}),
            walk.settle(),
            writes(walk, EMPTIES),
        ),
        "00_start_here.ipynb on the page is not what was typed last": lambda walk: writes(walk, "1", typed=False),
    }


def has(browser):
    pytest.importorskip("playwright")
    if browser == "chromium" and not driver.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    if browser == "firefox" and not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")


@pytest.mark.long_form
def test_a_walk_notices_what_a_learner_should_not_meet(spoiled):
    has("chromium")
    do = iter(spoiled.values())
    one = walk.Walk(1, "00_start_here.ipynb", "chromium", {"spoil": (1, lambda walk: next(do)(walk))}).go(len(spoiled))
    found = [what for _, _, what in one.lost]
    assert len(found) == len(spoiled), found
    for said, what in zip(spoiled, found, strict=True):
        assert what.startswith(said), found


@pytest.mark.long_form
@pytest.mark.own_job
@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_short_walk_loses_nothing(browser, monkeypatch, capsys):
    has(browser)
    monkeypatch.setattr("sys.argv", ["chaos", "--walks", "1", "--steps", "8", "--browser", browser, "00"])
    code = chaos.main()
    assert code == 0, capsys.readouterr().out
