"""Live figures: every setting works, a frame equals a full redraw, nothing piles up, errors are shown."""

import asyncio
import gc
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from threading import Thread

import ipywidgets
import matplotlib
import numpy as np
import pytest

from lesson_utils.classroom import live
from lesson_utils.classroom.live import testing

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


def test_start_values_and_set_move_the_controls():
    figure = point(x=7)
    assert figure.values == {"x": 7, "name": "a"}
    assert figure.picture.alt == "Point a stands at 7."
    frames = testing.drawn(figure)
    assert figure.set(x=1, name="b").alt == "Point b stands at 1."
    assert figure.values == {"x": 1, "name": "b"}
    assert frames == ["Point b stands at 1."], "several values at once are one redraw"


def test_moving_a_widget_redraws():
    figure = point()
    before = testing.page(figure)
    after = testing.move(figure, "x", 8)
    assert figure.picture.alt == "Point a stands at 8."
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
    with pytest.raises(ValueError, match=re.escape(message)):
        point(**values)
    with pytest.raises(ValueError, match=re.escape(message)):
        point().set(**values)


def test_a_quiet_line_says_how_to_return():
    """The call that shows what is seen now: it follows the controls, and runs."""
    figure = point(x=7)
    assert "<code" in testing.page(figure)
    assert ">lab.point(x=7)</code>" in testing.page(figure)
    assert ">lab.point(name=&#x27;b&#x27;)</code>" in (figure.set(x=3, name="b") and testing.page(figure))
    assert ">lab.point(name=&#x27;b&#x27;)</code>" in figure.outputs()[0]["text/html"]


def test_at_its_start_a_figure_is_called_without_values():
    """Whatever digits the start has: 10**-0.5 is a step of its slider, and a slider keeps twelve digits."""

    @live.lab(width=2, height=1, temperature=live.LogSlider("τ", 0.01, 100, 10**-0.5))
    def hot(figure):
        figure.add_subplot()
        return "It is {temperature}.".format

    figure = hot()
    assert ">lab.hot()</code>" in testing.page(figure)
    figure.set(temperature=10.0)
    assert ">lab.hot(temperature=10.0)</code>" in testing.page(figure)
    figure.set(temperature=10**-0.5)
    assert ">lab.hot()</code>" in testing.page(figure)


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


def test_a_lab_may_be_made_from_something():
    figure = bars({3: 0.1, 4: 0.2}, place=4)
    assert figure.picture.alt == "Bar 4 is 0.2 high."
    assert ">lab.bars(heights, place=4)</code>" in testing.page(figure)
    assert bars.example().picture.alt == "Bar 1 is 0.5 high."
    assert list(testing.settings(bars.example())) == [{"place": 1}, {"place": 2}]


def test_what_takes_a_while_is_prepared_once():
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
    assert figure._inputs["word"].continuous_update
    for typed, kept in (("c", "c"), ("", ""), ("lions", "lions"), ("elephant", "eleph")):
        testing.move(figure, "word", typed)
        assert figure.values == {"word": kept}
        assert figure.picture.alt == f"The word {kept!r} has {len(kept)} letters."
    for value in ("elephant", 3):
        with pytest.raises(ValueError, match=f"word={value!r} does not fit; expected a text of up to 5 characters"):
            figure.set(word=value)


def test_a_slider_starts_on_one_of_its_steps():
    live.LogSlider("τ", 0.01, 100, 10**-0.5)
    with pytest.raises(ValueError, match=r"τ: value=0.3 is not a step of the slider; the nearest is 0.316"):
        live.LogSlider("τ", 0.01, 100, 0.3)


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


def test_while_nobody_moves_it_the_next_pictures_are_drawn(monkeypatch):
    async def learner(start, moves):
        figure = point(x=start)
        drawn = testing.drawn(figure)
        for x in moves:
            testing.move(figure, "x", x)
            await asyncio.sleep(0.3)
        return figure, drawn

    def moved(pause, start, *moves):
        monkeypatch.setattr(live, "PAUSE", pause)
        return asyncio.run(learner(start, moves))

    figure, drawn = moved(0, 5, 6)
    assert drawn == ["Point a stands at 6.", "Point a stands at 7."]  # and at 5 it began
    assert figure.picture.alt == "Point a stands at 6."
    assert testing.page(figure).startswith(figure.picture.html())
    drawn.clear()
    assert figure.set(x=7).png != figure.set(x=6).png
    assert drawn == []

    _, drawn = moved(0.2, 1, 3, 8)  # each time there is time for one picture
    assert drawn == [f"Point a stands at {x}." for x in (3, 4, 8)]  # what the learner does comes before 2

    _, drawn = moved(0.2, 0, 5, 4)  # again time for one
    assert drawn == [f"Point a stands at {x}." for x in (5, 6, 4, 3)], "5, where it came from, is known"

    figure, _ = moved(0, 5, 8)  # 9 raises, and nobody is there
    assert figure.picture.alt == "Point a stands at 8."
    assert 'role="alert"' in testing.move(figure, "x", 9)


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
    assert not figure._whole
    testing.move(figure, "stops", 0)
    assert testing.follows(figure)
    assert testing.afresh(figure).set(stops=0, x=7) == figure.picture
    assert signal.getsignal(signal.SIGINT) is handler

    for deaf in (signal.SIG_IGN, signal.SIG_DFL):  # a kernel between two messages
        signal.signal(signal.SIGINT, deaf)
        try:
            testing.move(figure, "x", 8 if deaf is signal.SIG_IGN else 9)
            assert signal.getsignal(signal.SIGINT) is deaf
        finally:
            signal.signal(signal.SIGINT, handler)
    other = Thread(target=testing.move, args=(figure, "x", 2))
    other.start()
    other.join()
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
    figure, fresh = slow(), slow()
    before = dict(matplotlib.rcParams)
    found = [{}, {}]

    def draw(of, numbers):
        for x in numbers:
            found[of][x] = figure._draw(x=x)

    threads = [Thread(target=draw, args=(of, numbers)) for of, numbers in enumerate((range(20), range(20, -1, -1)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pictures in found:
        for x, picture in pictures.items():
            assert picture == fresh._draw(x=x), x
    assert dict(matplotlib.rcParams) == before


def test_a_picture_that_another_thread_is_drawing_is_not_drawn_twice():
    figure = slow()
    frames = testing.drawn(figure)
    threads = [Thread(target=figure._picture_at, kwargs={"x": 7}) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert frames == ["At 7."]


@live.lab(
    width=4,
    height=2,
    x=live.Slider("x", 0.0, 8.0, 0.5, 0.5),
    name=live.Slider("name", 0, 3, 0),
    far=live.Switch("far", False),
)
def words_above(figure):
    """A line under a text, beside ticks: their pixels change at some places only, and so do limits and a tick."""
    ax = figure.add_subplot(xlim=(0, 8), ylim=(0, 1), xlabel="x")
    ax.set_axisbelow(False)  # ticks and their words lie above what moves
    (line,) = ax.plot([0, 0], [0, 1], lw=9, zorder=0)
    ax.text(3.6, 0.5, "here", zorder=5)
    label = ax.text(6, 0.2, "", zorder=5)

    def update(x, name, far):
        line.set_xdata([x, x])
        label.set_text("abcd"[name])
        if ax.get_xlim()[1] != (16 if far else 8):
            ax.set_xlim(0, 16 if far else 8)
        return f"At {x}, {name}, {far}."

    return update


def test_what_stands_still_is_copied_as_long_as_it_would_be_drawn_alike():
    figure = words_above()
    (axis,) = [artist for artist in testing.drawing(figure).axes[0].get_children() if type(artist).__name__ == "XAxis"]
    drawn, draw = [], axis.draw
    axis.draw = lambda renderer: drawn.append(figure.values) or draw(renderer)
    for x in (2.5, 3.5, 4.5):  # between two ticks
        figure.set(x=x)
    assert not drawn, "nothing moved under the axis"
    for step in ({"x": 4.0}, {"x": 3.5}, {"name": 1}, {"far": True}, {"x": 8.0}, {"far": False}, {"x": 2.0}):
        figure.set(**step)
        testing.assert_frame_is_a_redraw(figure)


def test_a_picture_from_memory_is_the_one_that_would_be_drawn():
    figure, fresh = point(), point()
    shown = [figure.set(x=x) for x in (1, 2, 1, 3, 2)]
    for x, picture in zip((1, 2, 1, 3, 2), shown, strict=True):
        testing.forget(fresh)
        assert fresh.set(x=x) == picture


@pytest.mark.slow
def test_a_thousand_steps_leave_nothing_behind():
    figure = point()
    figure.set(x=5)
    objects, widgets, memory = [], [], []
    tracemalloc.start()
    for _ in range(3):  # the first time, libraries fill caches of their own
        for step in range(500):
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


@live.lab(width=2, height=1, x=live.Slider("place", 0, 10, 3), across=live.Slider("wide", 1, 9, 2))
def heat(figure):
    """A map of colours, and a point that moves above it."""
    ax = figure.add_subplot()
    image = ax.imshow([[0.0, 1.0], [2.0, 3.0]], extent=(0, 10, 0, 1), aspect="auto")
    (dot,) = ax.plot([0], [0.5], "o")

    def update(x, across):
        image.set_data([[0.0, x], [across, 3.0]])
        dot.set_xdata([x])
        ax.set_xlim(0, 10 + across)
        return f"{x} and {across}"

    return update


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Python drops a stop in a weakref's call
def test_a_stop_in_the_middle_of_a_redraw_leaves_the_figure_whole():
    """The stop button raises KeyboardInterrupt anywhere: here at one call of a function after the other."""
    figure, calm = heat(), heat()
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
            figure.set(x=x, across=1 + x % 9)
        except (KeyboardInterrupt, ValueError):  # matplotlib's C code turns the one into the other
            return True
        finally:
            sys.setprofile(None)
        return False

    assert not step(4, 0)
    total, stopped = calls, 0
    assert total > 1000
    for number, at in enumerate(range(1, total, total // 60)):
        for one in (figure, calm):
            testing.forget(one)
        stopped += step(number % 9, at)
        assert figure.set(x=10, across=1 + number % 9).alt == calm.set(x=10, across=1 + number % 9).alt
        np.testing.assert_array_equal(testing.pixels(figure), testing.pixels(calm), err_msg=f"after a stop at {at}")
    assert stopped > 50


def test_few_pictures_are_kept(monkeypatch):
    monkeypatch.setattr(live, "PICTURES_KEPT", 4)
    figure = point()
    drawn = testing.drawn(figure)
    for x in (0, 1, 2, 4, 5, 5, 4, 2, 1, 0):
        figure.set(x=x)
    assert drawn == [f"Point a stands at {x}." for x in (0, 1, 2, 4, 5, 0)]


def test_no_figure_is_opened_in_pyplot():
    import matplotlib.pyplot as plt

    point().set(x=2)
    assert plt.get_fignums() == []


def test_an_artist_below_others_moves_below_them():
    """Not in the list of any blitting code: a moving image under a still text, and axes that are off."""

    @live.lab(width=2, height=2, shade=live.Slider("shade", 0.0, 1.0, 0.0, 0.1))
    def lab(figure):
        ax, off = figure.subplots(1, 2)
        off.set_axis_off()
        (dot,) = off.plot([0], [0], "o")
        image = ax.imshow([[0.0, 1.0]], vmin=0, vmax=1)
        ax.text(0, 0, "text", color="red", weight="bold")

        def update(shade):
            image.set_data([[shade, 1 - shade]])
            ax.set_ylim(-0.5, 0.5 + shade)  # an axis that moves, too
            dot.set_ydata([shade])
            return f"Shade {shade}."

        return update

    figure = lab()
    for shade in (0.3, 1.0, 0.0):
        figure.set(shade=shade)
        testing.assert_frame_is_a_redraw(figure)


@pytest.mark.parametrize("behind", ["nothing", "a line", "equal steps on both axes"])
def test_new_limits_draw_everything_again_only_where_they_move_what_is_behind(behind):
    @live.lab(width=3, height=2, x=live.Slider("x", 1, 9, 1))
    def lab(figure):
        ax = figure.add_subplot()
        (dot,) = ax.plot([1], [1], "o")
        ax.plot([0, 1], [1, 0], zorder=0.2 if behind == "a line" else 2)  # an axis stands at 0.5
        if behind == "equal steps on both axes":
            ax.set_aspect("equal")

        def update(x):
            dot.set_ydata([x])
            ax.set_ylim(0, x + 1)
            ax.set_title(f"up to {x + 1}")
            return f"A dot at {x}."

        return update

    figure = lab()
    figure.set(x=2)
    whole: list[int] = []
    canvas = testing.drawing(figure).canvas
    draw = canvas.draw
    canvas.draw = lambda: whole.append(1) or draw()
    for x in (3, 7, 4):
        figure.set(x=x)
    drawn_whole = len(whole)
    testing.assert_frame_is_a_redraw(figure)
    assert drawn_whole == (0 if behind == "nothing" else 3)


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


def test_as_the_last_line_of_a_cell_it_shows_both(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    figure = point()
    figure._ipython_display_()
    assert shown == figure.outputs()


def test_the_first_step_of_a_figure_that_was_just_shown_is_drawn_already(monkeypatch):
    monkeypatch.setattr("IPython.display.display", lambda data, raw: None)
    monkeypatch.setattr(live, "PAUSE", 0)

    async def shown():
        figure = point(x=5)
        drawn = testing.drawn(figure)
        figure._ipython_display_()
        await asyncio.sleep(0.3)
        return figure, drawn

    figure, drawn = asyncio.run(shown())
    assert drawn == ["Point a stands at 6.", "Point a stands at 4."]
    testing.move(figure, "x", 4)
    assert len(drawn) == 2


def test_live_figures_can_be_carried_away():
    """Beside their own folder they need five modules, and nothing of the course."""
    code = "import sys, lesson_utils.classroom.live; print(*(name for name in sys.modules if 'lesson_utils.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    outside = {name for name in done.stdout.split() if not name.startswith("lesson_utils.classroom.live")}
    needed = {f"lesson_utils.classroom.{name}" for name in ("plots", "legible", "stand_in", "formats")}
    assert outside == needed | {"lesson_utils.classroom", "lesson_utils.maths", "lesson_utils.maths.checks"}
