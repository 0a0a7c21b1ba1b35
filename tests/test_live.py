"""Live figures: every setting works, a frame equals a full redraw, nothing piles up, errors are shown."""

import asyncio
import gc
import inspect
import itertools
import re
import tracemalloc

import ipywidgets
import numpy as np
import pytest

from lesson_utils import live, plots
from lesson_utils.lessons import LESSONS

LABS = {f"{lesson.name}.{name}": lab for lesson in LESSONS for name, lab in lesson.figures().items()}
every_lab = pytest.mark.parametrize("lab", LABS.values(), ids=LABS)


def extremes(lab):
    """The default, every extreme alone, and every pair of extremes."""
    start = {name: control.value for name, control in lab.controls.items()}
    yield start
    for name, control in lab.controls.items():
        yield from (start | {name: value} for value in control.extremes())
    for (a, first), (b, second) in itertools.combinations(lab.controls.items(), 2):
        yield from (start | {a: x, b: y} for x in first.extremes() for y in second.extremes())


def pixels(figure):
    return np.array(figure._screen._canvas.buffer_rgba())


def all_redrawn(figure):
    """The same figure, every artist drawn afresh."""
    for artist in figure._screen._front:
        artist.set_animated(False)
    with plots.style():
        figure._screen._canvas.draw()
    full = pixels(figure)
    for artist in figure._screen._front:
        artist.set_animated(True)
    return full


def assert_frame_equals_a_full_redraw(figure, values):
    figure._draw.cache_clear()  # draw it, though it was shown before
    figure.set(**values)
    np.testing.assert_array_equal(pixels(figure), all_redrawn(figure), err_msg=str(values))
    with plots.style():
        figure._screen._store_background()


def drawn_numbers(figure):
    """The numbers behind all lines, bars, dots and images of a figure."""
    for axes in figure._screen._figure.axes:
        yield from (line.get_xydata() for line in axes.lines)
        yield from (patch.get_path().vertices for patch in axes.patches)
        yield from (collection.get_offsets() for collection in axes.collections)
        yield from (image.get_array() for image in axes.images)


@every_lab
def test_every_extreme_and_every_pair_of_them(lab):
    figure = lab()
    seen = set()
    for values in extremes(lab):
        picture = figure.set(**values)
        assert figure.values == pytest.approx(values) or figure.values == values
        assert len(picture.alt) > 30
        assert "nan" not in picture.alt.lower()
        assert len(picture.png) < 60_000
        assert all(np.isfinite(np.asarray(numbers, float)).all() for numbers in drawn_numbers(figure))
        seen.add((picture.alt, picture.png))
    assert len(seen) > len(lab.controls)


@every_lab
def test_each_control_changes_picture_and_alternative_text(lab):
    figure = lab()
    for name, control in lab.controls.items():
        ends = [figure.set(**{name: value}) for value in control.extremes()]
        assert len({end.alt for end in ends}) > 1, name
        assert len({end.png for end in ends}) > 1, name
        figure.set(**{name: control.value})


@every_lab
def test_a_frame_equals_a_full_redraw_pixel_by_pixel(lab):
    figure = lab()
    for values in extremes(lab):
        assert_frame_equals_a_full_redraw(figure, values)


@every_lab
def test_titles_fit_into_the_picture(lab):
    figure = lab()
    page = figure._screen._figure.bbox
    for values in extremes(lab):
        figure.set(**values)
        for axes in figure._screen._figure.axes:
            for title in (axes.title, axes._left_title):
                box = title.get_window_extent()
                assert box.x1 <= page.x1 + 1, (title.get_text(), values)
                assert box.y1 <= page.y1 + 1, (title.get_text(), values)


@every_lab
def test_labels_are_texts_and_update_takes_exactly_the_controls(lab):
    assert all(control.label.strip() for control in lab.controls.values())
    update = lab.draw(plots.figure(lab.width, lab.height))
    assert set(inspect.signature(update).parameters) == set(lab.controls)


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
    assert figure.set(x=1, name="b").alt == "Point b stands at 1."
    assert figure.values == {"x": 1, "name": "b"}


def test_moving_a_widget_redraws():
    figure = point()
    before = figure._html.value
    figure._inputs["x"].value = 8
    assert figure.picture.alt == "Point a stands at 8."
    assert figure._html.value == figure.picture.html() != before


def test_several_values_at_once_are_one_redraw(monkeypatch):
    figure, frames = point(), []
    monkeypatch.setattr(figure._screen, "show", lambda alt: frames.append(alt) or figure.picture)
    figure.set(x=1, name="b")
    assert frames == ["Point b stands at 1."]


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
        figure._inputs["word"].value = typed
        assert figure.values == {"word": kept}
        assert figure.picture.alt == f"The word {kept!r} has {len(kept)} letters."
    for value in ("elephant", 3):
        with pytest.raises(ValueError, match=f"word={value!r} does not fit; expected a text of up to 5 characters"):
            figure.set(word=value)


@live.lab(width=2, height=1, place=live.Slider("place", 0, 9, 3))
def frameless(figure):
    """A dot without axes around it."""
    axes = figure.add_subplot(xlim=(0, 9))
    axes.set_axis_off()
    (dot,) = axes.plot([0], [0], "o")

    def update(place):
        dot.set_xdata([place])
        return f"A dot at {place}."

    return update


def test_axes_that_are_off_stay_off():
    figure = frameless()
    figure.set(place=7)
    np.testing.assert_array_equal(pixels(figure), all_redrawn(figure))


def test_a_slider_starts_on_one_of_its_steps():
    live.LogSlider("τ", 0.01, 100, 10**-0.5)
    with pytest.raises(ValueError, match=r"τ: value=0.3 is not a step of the slider; the nearest is 0.316"):
        live.LogSlider("τ", 0.01, 100, 0.3)


def test_an_exception_is_shown_where_the_figure_was_and_goes_away():
    figure = point()
    figure._inputs["x"].value = 9  # as a learner moves it
    assert 'role="alert"' in figure._html.value
    assert "ArithmeticError: nine &lt;is&gt; too much" in figure._html.value
    figure._inputs["x"].value = 4
    assert "<img" in figure._html.value
    with pytest.raises(ArithmeticError):
        figure.set(x=9)  # as code does


@every_lab
def test_neighbours_are_where_the_arrow_keys_lead(lab):
    """Drawn ahead for nothing, if the value differs in its last digit from the one that the slider comes to."""
    for control in lab.controls.values():
        values = places(control)
        for n, value in enumerate(values):
            assert sorted(control.neighbours(value)) == sorted(values[max(n - 1, 0) : n] + values[n + 1 : n + 2])


def places(control):
    """Where the arrow keys lead, as `update` gets it."""
    slider = control.widget(control.value)
    if isinstance(control, live.Word):
        return []
    if isinstance(control, live.Choice | live.Switch):
        return list(control.options)
    low, high = slider.min, slider.max  # of a LogSlider: exponents
    found = [low + n * slider.step for n in range(round((high - low) / slider.step) + 1)]
    return [control.read(10**n if isinstance(control, live.LogSlider) else n) for n in found]


@every_lab
def test_a_picture_depends_on_the_controls_alone(lab):
    assert_depends_on_controls_alone(lab())


def assert_depends_on_controls_alone(figure):
    """Pictures are kept, so that nothing else may have a part in them."""
    start = figure.values
    first = figure.set()
    for name, control in figure.lab.controls.items():
        for value in control.extremes():
            figure.set(**{name: value})
    figure._draw.cache_clear()
    assert figure.set(**start) == first


def test_while_nobody_moves_it_the_next_pictures_are_drawn(monkeypatch):
    monkeypatch.setattr(live, "PAUSE", 0)
    drawn = []

    async def a_learner(x):
        figure = point(x=5)
        show = figure._screen.show
        figure._screen.show = lambda alt: drawn.append(alt) or show(alt)
        figure._inputs["x"].value = x
        await asyncio.sleep(0.2)
        return figure

    figure = asyncio.run(a_learner(6))
    assert drawn == ["Point a stands at 6.", "Point a stands at 7."]  # and at 5 it began
    assert figure.picture.alt == "Point a stands at 6."
    assert figure._html.value == figure.picture.html()
    drawn.clear()
    assert figure.set(x=7).png != figure.set(x=6).png
    assert drawn == []

    monkeypatch.setattr(live, "PAUSE", 0.2)
    drawn.clear()

    async def in_haste():
        figure = point(x=1)
        show = figure._screen.show
        figure._screen.show = lambda alt: drawn.append(alt) or show(alt)
        figure._inputs["x"].value = 3
        await asyncio.sleep(0.3)  # time for one picture
        figure._inputs["x"].value = 8
        await asyncio.sleep(0.3)  # 9 raises, and 7 would come later

    asyncio.run(in_haste())
    assert drawn == [f"Point a stands at {x}." for x in (3, 4, 8)]  # what the learner does comes before 2

    monkeypatch.setattr(live, "PAUSE", 0)
    figure = asyncio.run(a_learner(8))  # 9 raises, and nobody is there
    assert figure.picture.alt == "Point a stands at 8."
    figure._inputs["x"].value = 9
    assert 'role="alert"' in figure._html.value


def test_a_picture_from_memory_is_the_one_that_would_be_drawn():
    figure, fresh = point(), point()
    shown = [figure.set(x=x) for x in (1, 2, 1, 3, 2)]
    for x, picture in zip((1, 2, 1, 3, 2), shown, strict=True):
        fresh._draw.cache_clear()
        assert fresh.set(x=x) == picture


def test_a_thousand_steps_leave_nothing_behind():
    figure = point()
    figure.set(x=5)
    objects, widgets, memory = [], [], []
    tracemalloc.start()
    for _ in range(2):
        for step in range(500):
            if step % 9 == 0:
                figure._draw.cache_clear()  # none comes from memory
            figure.set(x=step % 9)
        gc.collect()
        objects.append(len(gc.get_objects()))
        widgets.append(len(ipywidgets.Widget._instances if hasattr(ipywidgets.Widget, "_instances") else ()))
        memory.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert objects[1] - objects[0] < 50
    assert widgets[1] == widgets[0]
    assert memory[1] - memory[0] < 50_000


def test_few_pictures_are_kept(monkeypatch):
    monkeypatch.setattr(live, "PICTURES_KEPT", 4)
    figure = point()
    for x in range(9):
        figure.set(x=x)
    assert figure._draw.cache_info().currsize == 4


def test_no_figure_is_opened_in_pyplot():
    import matplotlib.pyplot as plt

    point().set(x=2)
    assert plt.get_fignums() == []


def test_an_artist_below_others_moves_below_them():
    """Not in the list of any blitting code: a moving image under a still text."""

    @live.lab(width=2, height=2, shade=live.Slider("shade", 0.0, 1.0, 0.0, 0.1))
    def lab(figure):
        ax = figure.add_subplot()
        image = ax.imshow([[0.0, 1.0]], vmin=0, vmax=1)
        ax.text(0, 0, "text", color="red", weight="bold")

        def update(shade):
            image.set_data([[shade, 1 - shade]])
            ax.set_ylim(-0.5, 0.5 + shade)  # an axis that moves, too
            return f"Shade {shade}."

        return update

    figure = lab()
    for shade in (0.3, 1.0, 0.0):
        assert_frame_equals_a_full_redraw(figure, {"shade": shade})


def test_what_readers_without_a_kernel_get():
    still, live_one = point().outputs()
    assert set(still) == {"text/html", "image/png", "text/plain"}
    assert still["text/plain"] == "Point a stands at 3."
    assert '<img alt="Point a stands at 3." src="data:image/png;base64,' in still["text/html"]
    assert "run this cell to move place, name" in still["text/html"]
    number = live_one["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert f"body:has(.live-{number}) .still-{number}{{display:none}}" in still["text/html"]


def test_two_figures_of_one_lab_hide_only_their_own_pictures():
    numbers = {f.outputs()[1]["application/vnd.jupyter.widget-view+json"]["model_id"] for f in (point(), point())}
    assert len(numbers) == 2


def test_as_the_last_line_of_a_cell_it_shows_both(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    figure = point()
    figure._ipython_display_()
    assert shown == figure.outputs()


@pytest.mark.parametrize(
    ("control", "kind"),
    [
        (live.Slider("n", 1, 5, 2), ipywidgets.IntSlider),
        (live.Slider("x", 0.0, 1.0, 0.5, 0.1), ipywidgets.FloatSlider),
        (live.LogSlider("t", 0.1, 10, 1), ipywidgets.FloatLogSlider),
        (live.Choice("d", (1, 2, 4), 2), ipywidgets.SelectionSlider),
        (live.Switch("s", True), ipywidgets.Checkbox),
        (live.Word("w", "cat", 5), ipywidgets.Text),
    ],
)
def test_controls_are_core_widgets_with_text_labels(control, kind):
    for value in control.extremes():
        widget = control.widget(value)
        assert type(widget) is kind
        assert widget.description == control.label
        assert widget.value == pytest.approx(value) if isinstance(value, float) else widget.value == value
