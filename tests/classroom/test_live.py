"""Live figures: every setting works, a frame equals a full redraw, nothing piles up, errors are shown."""

import asyncio
import gc
import re
import signal
import sys
import time
import tracemalloc
from threading import Thread

import ipywidgets
import matplotlib
import numpy as np
import pytest

from lesson_utils.classroom import live
from tools import testing

# --- The machinery, on a small figure of its own ---------------------------------------------------------------------


@live.lab(width=2, height=1, x=live.Slider("place", 0, 10, 3), name=live.Choice("name", ("a", "b"), "a"))
def point(figure):
    """A point that moves."""
    ax = figure.add_subplot(xlim=(0, 10))
    (dot,) = ax.plot([0], [0], "o")

    def update(x, name):
        if x == 9:
            raise ArithmeticError("nine <is> too much")
        dot.set_xdata([x])
        return f"Point {name} stands at {x}."

    return update


def at_once(*calls):
    threads = [Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_start_values_widgets_and_set_move_the_figure():
    figure = point(x=7)
    assert figure.values == {"x": 7, "name": "a"}
    assert figure.picture.alt == "Point a stands at 7."
    frames = testing.drawn(figure)
    assert figure.set(x=1, name="b").alt == "Point b stands at 1."
    assert figure.values == {"x": 1, "name": "b"}
    assert frames == ["Point b stands at 1."], "several values at once are one redraw"
    before = testing.page(figure)
    after = testing.move(figure, "x", 8)
    assert figure.picture.alt == "Point b stands at 8."
    assert after.startswith(figure.picture.html())
    assert after != before


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"y": 1}, "no control 'y'; this figure has x, name"),
        ({"x": 11}, "x=11 is out of range; expected a number from 0 to 10"),
        ({"name": "c"}, "name='c' can't be chosen; expected one of 'a', 'b'"),
    ],
)
def test_impossible_values_are_refused(values, message):
    for show in (point, point().set):
        with pytest.raises(ValueError, match=re.escape(message)):
            show(**values)


def test_a_quiet_line_says_how_to_return():
    """The call that shows what is seen now. At the start, whatever digits that has, it has no values."""

    @live.lab(width=2, height=1, temperature=live.LogSlider("τ", 0.01, 100, 10**-0.5))
    def hot(figure):
        figure.add_subplot()
        return "It is {temperature}.".format

    figure = hot()
    for value, call in ((10**-0.5, "lab.hot()"), (10.0, "lab.hot(temperature=10.0)"), (10**-0.5, "lab.hot()")):
        figure.set(temperature=value)
        assert f">{call}</code>" in testing.page(figure)
    figure = point(x=7)
    assert ">lab.point(x=7)</code>" in testing.page(figure)
    figure.set(x=3, name="b")
    for page in (testing.page(figure), figure.outputs()[0]["text/html"]):
        assert ">lab.point(name=&#x27;b&#x27;)</code>" in page


@live.lab(
    width=2,
    height=1,
    controls=lambda heights: {"place": live.Choice("place", tuple(heights), min(heights))},
    example=lambda: {1: 0.5, 2: 0.7},
)
def bars(figure, heights, top=1):
    """A bar of one of several heights."""
    (dot,) = figure.add_subplot(ylim=(0, top)).plot([0], [0], "o")

    def update(place):
        dot.set_ydata([heights[place]])
        return f"Bar {place} is {heights[place]} high."

    return update


def test_a_lab_may_be_made_from_something_that_is_prepared_once():
    figure = bars({3: 0.1, 4: 0.2}, place=4)
    assert figure.picture.alt == "Bar 4 is 0.2 high."
    assert ">lab.bars(heights, place=4)</code>" in testing.page(figure)
    assert bars.example().picture.alt == "Bar 1 is 0.5 high."
    assert list(testing.settings(bars.example())) == [{"place": 1}, {"place": 2}]
    runs = []

    def prepared(n):
        runs.append(n)
        return {1: n, 2: n / 2}, 5

    lab = live.lab(2, 1, controls=lambda heights, top: bars.controls(heights), prepare=prepared)(bars.draw)
    figure = lab(4)
    assert figure.set(place=2).alt == "Bar 2 is 2.0 high."
    assert ">lab.bars(n, place=2)</code>" in testing.page(figure)
    assert runs == [4]


@live.lab(width=2, height=1, word=live.Word("word", "cat", longest=5))
def spelled(figure):
    """The length of a word."""
    (dot,) = figure.add_subplot(xlim=(0, 10)).plot([0], [0], "o")

    def update(word):
        dot.set_xdata([len(word)])
        return f"The word {word!r} has {len(word)} letters."

    return update


def test_a_typed_word_is_followed_key_by_key_and_cut_where_it_is_too_long():
    figure = spelled()
    assert figure.controls["word"].widget("cat").continuous_update
    for typed, kept in (("c", "c"), ("", ""), ("lions", "lions"), ("elephant", "eleph")):
        testing.move(figure, "word", typed)
        assert figure.values == {"word": kept}
        assert figure.picture.alt == f"The word {kept!r} has {len(kept)} letters."
    for value in ("elephant", 3):
        with pytest.raises(ValueError, match=f"word={value!r} does not fit; expected a text of up to 5 characters"):
            figure.set(word=value)


def test_an_exception_is_shown_where_the_figure_was_and_goes_away():
    figure = point()
    page = testing.move(figure, "x", 9)  # as a learner moves it
    assert 'role="alert"' in page
    assert "ArithmeticError: nine &lt;is&gt; too much" in page
    assert "<img" in testing.move(figure, "x", 4)
    with pytest.raises(ArithmeticError):
        figure.set(x=9)  # as code does


@pytest.mark.parametrize(
    ("control", "kind"),
    [
        (live.Slider("n", 1, 5, 2), ipywidgets.IntSlider),
        (live.Slider("x", -1.0, 1.0, 0.3, 0.1), ipywidgets.FloatSlider),
        (live.LogSlider("t", 0.01, 100, 10**-0.5), ipywidgets.FloatLogSlider),
        (live.Choice("d", (1, 2, 4), 2), ipywidgets.SelectionSlider),
        (live.Choice("name", ("cat", "mat"), "mat"), ipywidgets.SelectionSlider),
        (live.Switch("s", True), ipywidgets.Checkbox),
        (live.Word("w", "cat", 5), ipywidgets.Text),
    ],
)
def test_controls_are_core_widgets_whose_values_are_where_the_arrow_keys_lead(control, kind):
    """A neighbour is drawn ahead for nothing, if it differs in its last digit from what the slider comes to."""
    for value in control.extremes():
        widget = control.widget(value)
        assert type(widget) is kind
        assert widget.description == control.label
        assert widget.value == pytest.approx(value) if isinstance(value, float) else widget.value == value
    values = list(control.values())
    if isinstance(control, live.Slider | live.LogSlider):
        low, high = widget.min, widget.max  # of a LogSlider: exponents
        places = [low + n * widget.step for n in range(round((high - low) / widget.step) + 1)]
        assert values == [control.read(10**n if isinstance(control, live.LogSlider) else n) for n in places]
    if not isinstance(control, live.Word):
        assert {*map(control.read, control.extremes())} <= set(values)
        for n, value in enumerate(values):
            control.check("it", value)
            assert sorted(control.neighbours(value)) == sorted(values[max(n - 1, 0) : n] + values[n + 1 : n + 2])


@pytest.mark.parametrize(
    ("start", "moves", "drawn"),
    [
        (5, (6,), (6, 7)),  # at 5 it began
        (1, (3, 7), (3, 7, 8, 6)),  # what the learner does comes before 2 and 4
        (5, (8,), (8,)),  # 9 raises, and nobody is there
        (0, (5, 4), (5, 4, 3)),  # 5, where it came from, is known
        (5, (), (6, 4)),  # one that was just shown: its first step is drawn already
    ],
)
def test_while_nobody_moves_it_the_next_pictures_are_drawn(start, moves, drawn):
    async def learner():
        figure = point(x=start)
        frames = testing.drawn(figure)
        if not moves:
            figure._ipython_display_()
        for x in moves:
            testing.move(figure, "x", x)
        async with asyncio.timeout(60):
            while len(frames) < len(drawn):
                await asyncio.sleep(0.01)
        await asyncio.sleep(4 * live.PAUSE)  # nothing else comes
        return figure, frames

    figure, frames = asyncio.run(learner())
    assert frames == [f"Point a stands at {x}." for x in drawn]
    at = moves[-1] if moves else start
    assert figure.picture.alt == f"Point a stands at {at}."
    assert testing.page(figure).startswith(figure.picture.html())
    frames.clear()
    assert len({figure.set(x=x).png for x in drawn}) == len(drawn)
    assert frames == []


@live.lab(width=2, height=1, x=live.Slider("place", 0, 10, 3), stops=live.Slider("stops", 0, 2, 0))
def stopped(figure):
    """A point that moves; somebody presses stop in the middle of it."""
    (dot,) = figure.add_subplot(xlim=(0, 10)).plot([0], [0], "o")

    def update(x, stops):
        for _ in range(stops):
            signal.raise_signal(signal.SIGINT)
        dot.set_xdata([x])
        return f"At {x}."

    return update


@pytest.fixture
def handler():
    """Python's own answer to a stop: in the background, a shell lets its programs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_stop_in_a_drag_waits_for_the_picture(handler):
    figure = stopped(x=7)
    with pytest.raises(KeyboardInterrupt):
        testing.move(figure, "stops", 1)
    assert testing.follows(figure)
    assert figure.values["stops"] == 1
    with pytest.raises(KeyboardInterrupt):  # the second comes at once, and the next picture is made anew
        testing.move(figure, "stops", 2)
    testing.move(figure, "stops", 0)
    assert testing.follows(figure)
    assert testing.afresh(figure).set(stops=0, x=7) == figure.picture
    assert signal.getsignal(signal.SIGINT) is handler
    at_once(lambda: testing.move(figure, "x", 2))  # a kernel hears sliders in another thread
    assert figure.picture.alt == "At 2."


@live.lab(width=2, height=1, x=live.Slider("x", 0, 20, 3))
def slow(figure):
    """A point, and a pause between the way to its place and the picture."""
    (dot,) = figure.add_subplot(xlim=(0, 20)).plot([0], [0], "o")

    def update(x):
        dot.set_xdata([x])
        time.sleep(0.005)
        return f"At {x}."

    return update


def test_two_threads_that_draw_at_once_draw_one_after_the_other():
    """A kernel hears sliders in one thread, while a cell that runs in another may draw the same figure."""
    figure, fresh, found = slow(), slow(), []
    before = dict(matplotlib.rcParams)

    def draw(numbers):
        found.extend(figure.set(x=x) for x in numbers)

    at_once(lambda: draw(range(20)), lambda: draw(range(20, -1, -1)))
    assert len(found) == 41
    for picture in found:
        assert picture == fresh.set(x=int(picture.alt[3:-1])), picture.alt
    assert dict(matplotlib.rcParams) == before


def test_a_picture_that_another_thread_is_drawing_is_not_drawn_twice():
    figure = slow()
    frames = testing.drawn(figure)
    at_once(*2 * [lambda: figure.set(x=7)])
    assert frames == ["At 7."]


@live.lab(
    width=5,
    height=2,
    x=live.Slider("x", 0.0, 8.0, 0.5, 0.5),
    name=live.Slider("name", 0, 3, 0),
    far=live.Switch("far", False),
)
def busy(figure):
    """A line and an image under texts, beside ticks, and a dot in axes that are off; limits move, too."""
    ax, off = figure.subplots(1, 2)
    ax.set(xlim=(0, 8), ylim=(0, 1), xlabel="x")
    ax.set_axisbelow(False)  # ticks and their words lie above what moves
    off.set_axis_off()
    image = ax.imshow([[0.0, 3.0]], vmin=0, vmax=3, extent=(5, 7, 0, 1), aspect="auto")
    (line,) = ax.plot([0, 0], [0, 1], lw=9, zorder=0.5)
    (dot,) = off.plot([0], [0], "o")
    ax.text(3.6, 0.5, "here", zorder=5)
    label = ax.text(6, 0.2, "", zorder=5)

    def update(x, name, far):
        line.set_xdata([x, x])
        label.set_text("abcd"[name])
        image.set_data([[name, 3 - name]])
        dot.set_ydata([name])
        if ax.get_xlim()[1] != (16 if far else 8):
            ax.set_xlim(0, 16 if far else 8)
        return f"At {x}, {name}, {far}."

    return update


def test_a_frame_is_a_redraw_and_what_stands_still_is_copied():
    figure = busy()
    (axis,) = [artist for artist in testing.drawing(figure).axes[0].get_children() if type(artist).__name__ == "XAxis"]
    drawn, draw = [], axis.draw
    axis.draw = lambda renderer: drawn.append(figure.values) or draw(renderer)
    for x in (2.5, 3.5, 4.5):  # between two ticks
        figure.set(x=x)
    assert not drawn, "nothing moved under the axis"
    for step in (
        {"x": 4.0},
        {"x": 3.5},
        {"name": 1},
        {"far": True},
        {"x": 8.0},
        {"far": False},
        {"name": 3},
        {"x": 2.0},
    ):
        figure.set(**step)
        testing.assert_frame_is_a_redraw(figure)


@pytest.mark.slow
def test_a_thousand_steps_leave_nothing_behind():
    figure = point()
    figure.set(x=5)
    objects, widgets, memory = [], [], []
    tracemalloc.start()
    for _ in range(3):  # the first time, libraries fill caches of their own
        for step in range(300):
            if step % 9 == 0:
                testing.forget(figure)  # none comes from memory
            figure.set(x=step % 9)
        gc.collect()
        objects.append(len(gc.get_objects()))
        widgets.append(len(ipywidgets.Widget._instances if hasattr(ipywidgets.Widget, "_instances") else ()))
        memory.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert objects[2] - objects[1] < 50
    assert widgets[2] == widgets[1] == widgets[0]
    assert memory[2] - memory[1] < 50_000


@pytest.mark.slow
# Python drops a stop in a weakref's call.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_in_the_middle_of_a_redraw_leaves_the_figure_whole():
    """The stop button raises KeyboardInterrupt anywhere: here at one call of a function after the other."""
    figure, calm = busy(), busy()
    calls, stop_at = 0, 0

    def stop(frame, event, called):
        nonlocal calls
        calls += event == "call"
        if event == "call" and calls == stop_at:
            raise KeyboardInterrupt

    def step(x, at):
        nonlocal calls, stop_at
        calls, stop_at = 0, at
        sys.setprofile(stop)
        try:
            figure.set(x=x, name=int(x) % 4, far=x > 4)
        except (KeyboardInterrupt, ValueError):  # matplotlib's C code turns the one into the other
            return True
        finally:
            sys.setprofile(None)
        return False

    assert not step(4.0, 0)
    total, stopped = calls, 0
    assert total > 1000
    for number, at in enumerate(range(1, total, total // 25)):
        for one in (figure, calm):
            testing.forget(one)
        stopped += step(float(number % 9), at)
        assert figure.set(x=8.0, name=number % 4).alt == calm.set(x=8.0, name=number % 4, far=number % 9 > 4).alt
        np.testing.assert_array_equal(testing.pixels(figure), testing.pixels(calm), err_msg=f"after a stop at {at}")
    assert stopped > 20


def test_few_pictures_are_kept():
    figure = live.lab(width=2, height=1, x=live.Slider("x", 0, 99, 99))(slow.draw)()
    drawn, kept = testing.drawn(figure), range(live.PICTURES_KEPT)
    for x in (*kept, *kept, 99, 0):  # the last one takes the place of what was longest ago
        figure.set(x=x)
    assert drawn == [f"At {x}." for x in (*kept, 99, 0)]


def test_no_figure_is_opened_in_pyplot():
    import matplotlib.pyplot as plt

    point().set(x=2)
    assert plt.get_fignums() == []


def test_what_readers_without_a_kernel_get():
    still, live_one = point().outputs()
    assert set(still) == {"text/html", "image/png", "text/plain"}
    assert still["text/plain"] == "Point a stands at 3."
    assert '<img alt="Point a stands at 3." src="data:image/png;base64,' in still["text/html"]
    assert "Run this cell to move “place”, “name”" in still["text/html"]
    number, other = (
        o["application/vnd.jupyter.widget-view+json"]["model_id"] for o in (live_one, point().outputs()[1])
    )
    assert other != number, "two figures of one lab hide only their own pictures"
    assert f"body:has(.live-{number}) .still-{number}{{display:none}}" in still["text/html"]


def test_as_the_last_line_of_a_cell_it_shows_both(capsys):
    figure = point()
    figure._ipython_display_()
    assert capsys.readouterr().out.splitlines() == [str(output) for output in figure.outputs()]


@live.lab(
    width=3,
    height=1,
    plays=[{"x": 3}, {"x": 5}, {"x": 7}],
    x=live.Slider("x", 0, 10, 3),
)
def played(figure):
    figure.add_subplot()
    return "At {x}.".format


def test_a_figure_plays_until_a_hand_comes():
    figure = played()
    figure._player.set_state({live.PLAYING: True, "value": 1})  # as the browser sends it
    assert figure.values == {"x": 5}
    testing.move(figure, "x", 6)
    assert not getattr(figure._player, live.PLAYING)
    figure._player.value = 2  # was on its way
    assert figure.values == {"x": 6}
    assert figure.picture.alt == "At 6."
