"""What a lesson's form rests on: pictures for readers without a kernel, titles said once, tables, a stop that stops."""

import numpy as np
import pytest

from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.maths import training

SETTINGS = {"neutral": "It stands at 0.", "place": live.Slider("place", 0, 10, 0)}


def lab(**telling):
    @live.lab(width=3, height=1, **SETTINGS, **telling)
    def point(figure):
        ax = figure.add_subplot(xlim=(0, 10))
        (dot,) = ax.plot([0], [0], "o")

        def update(place):
            dot.set_xdata([place])
            ax.set_title(f"It is at {place}")
            return "… A point on a line."

        return update

    return point


@pytest.mark.parametrize(
    ("telling", "alt", "calls"),
    [
        ({}, "It is at 0. A point on a line.", ["lab.point()"]),
        ({"telling": {"place": 7}}, "It is at 7. A point on a line.", ["lab.point(place=7)"]),
        (
            {"telling": [{"place": 1}, {"place": 9}]},
            "It is at 1. A point on a line. It is at 9. A point on a line.",
            ["lab.point(place=1)", "lab.point(place=9)"],
        ),
    ],
)
def test_a_stored_figure_tells_and_a_learners_gives_nothing_away(telling, alt, calls, monkeypatch):
    figure = lab(**telling)()
    monkeypatch.setenv("COURSE_STRICT", "1")
    stored, _ = figure.outputs()
    assert stored["text/plain"] == alt
    assert all(call in stored["text/html"] for call in calls)
    monkeypatch.delenv("COURSE_STRICT")
    own, _ = figure.outputs()
    assert own["text/plain"] == "It is at 0. A point on a line."
    assert figure.values == {"place": 0}
    assert figure.picture.alt in own["text/html"]


def test_a_telling_setting_that_cannot_be_chosen_is_refused():
    with pytest.raises(ValueError, match="place=11 is out of range"):
        lab(telling={"place": 11})().outputs()


def test_several_pictures_are_one():
    both = plots.together([lab()(place=place).picture for place in (1, 9)])
    assert (both.width, both.height) == (600, 100), "side by side"
    wide = plots.Picture(both.png, "wide", 600, 100)
    assert (plots.together([wide, wide]).width, plots.together([wide, wide]).height) == (600, 200), "below each other"


@plots.still(8, 2)
def two_panels(figure, **shared):
    _, right = figure.subplots(1, 2, **shared)
    right.set_ylabel("named at the left")
    figure.colorbar(right.imshow(np.eye(3), aspect="auto"), ax=right)
    return "Two panels, and a bar of colours."


@plots.still(4, 1)
def one_panel(figure):
    figure.add_subplot()
    return "One panel."


def test_a_picture_can_be_cut_between_panels_and_nowhere_else():
    """On phones its parts stand below each other. A colour bar stays with its panel, as does what shares an axis."""
    (cut,) = two_panels().cuts
    assert 0.4 < cut < 0.5, "left of the right panel's name"
    assert f'data-cuts="{cut}"' in two_panels().html()
    assert two_panels(sharey=True).cuts == ()
    assert "data-cuts" not in one_panel().html()


def test_a_live_figure_is_not_cut_where_a_title_has_grown():
    @live.lab(width=8, height=2, **SETTINGS)
    def growing(figure):
        title = figure.subplots(1, 2)[0].set_title("")

        def update(place):
            title.set_text("It grows. " * place)
            return "Two panels."

        return update

    figure = growing()
    assert [len(figure.set(place=place).cuts) for place in (0, 1, 9, 2)] == [1, 1, 0, 1]


def test_pictures_beside_each_other_are_cut_between_them():
    assert plots.together([one_panel(), one_panel()]).cuts == (0.5,)
    assert plots.together([two_panels(), two_panels()]).cuts == two_panels().cuts, "below each other"


def test_titles_stand_in_front_of_an_alternative_text_that_begins_with_dots():
    figure = plots.figure(3, 1)
    with plots.style():
        left, right = figure.subplots(1, 2)
        left.set_title("Is it\nleft?")
        right.set_title("It is right")
    assert plots.picture(figure, "… Two empty axes.").alt == "Is it left? It is right. Two empty axes."
    assert plots.picture(figure, "Two empty axes …").alt == "Two empty axes …"


def test_a_table_names_its_columns_and_rows_and_reads_as_text():
    table = tables.table(("width", "loss", "note"), [(64, np.float32(1.234), "a *b*"), (1024, -2.5, "c")])
    assert str(table).splitlines() == ["width   loss  note", "   64   1.23  a *b*", "1,024  −2.50  c"]
    page = table._repr_mimebundle_()["text/html"]
    assert page.count('<th scope="col"') == 3
    assert page.count('<th scope="row"') == 2
    assert "<em>b</em>" in page
    assert str(tables.table(("", "right"), [("all", 0.5)], ("", ".0%"))).split() == ["right", "all", "50%"]
    with pytest.raises(ValueError, match=r"a row has 1 columns, \(1,\); the head has 2"):
        tables.table(("a", "b"), [(1,)])


def test_names_with_their_numbers():
    assert formats.each(("cat", "street"), np.array([0.614, -0.12])) == "cat 0.61, street −0.12"


class Line:
    """Its loss is the square of its only parameter."""

    def __init__(self):
        from lesson_utils.maths.layers import Param

        self.x = Param(np.array([4.0]))

    def params(self):
        return {"x": self.x}

    def loss_and_grad(self, batch, rng):
        self.x.grad += 2 * self.x.value
        return float(self.x.value[0] ** 2)


def test_a_stop_ends_the_cell_and_keeps_what_was_trained():
    def stop(step, *_):
        if step == 3:
            raise KeyboardInterrupt

    model, other = Line(), Line()
    with pytest.raises(training.Stopped, match="Stopped after step 3 of 10, and with it the cell") as stopped:
        training.fit(model, lambda rng: None, 10, callback=stop, progress=False)
    left, history = training.stopped()
    assert left is model
    assert history.losses == training.fit(other, lambda rng: None, 3, progress=False).losses
    assert model.x.value == other.x.value
    assert stopped.value._render_traceback_() == [str(stopped.value)], "no way through our code"
