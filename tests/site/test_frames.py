"""The book's moving figures, as the site's build makes them: which pictures are drawn, and what the page is told."""

import io
import json
import math
import re
from itertools import product

import numpy as np
import pytest
from PIL import Image

from lesson_utils.classroom import live
from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.start_here import lab as start_here
from tools import save
from tools.site import frames


@live.lab(
    width=3,
    height=2,
    c0=live.Slider("whole", 0, 20, 7),
    c1=live.Slider("fraction", -1.0, 1.0, 0.3, 0.1),
    c2=live.LogSlider("factor", 0.01, 100, 10**-0.5),
    c3=live.Choice("size", (1, 4, 16, 64), 4),
    c4=live.Choice("name", ("cat", "mat"), "mat"),
    c5=live.Switch("on", True),
)
def many(figure):
    text = figure.text(0.5, 0.5, "")

    def update(**values):
        text.set_text(" ".join(map(frames.text_of, values.values())))
        return text.get_text()

    return update


@live.lab(
    width=3,
    height=2,
    letter=live.Word("letter", "a"),
    size=live.Slider("size", 1, 5, 2),
    big=live.Switch("<big>", False),
    telling=[{"size": 3}, {"size": 4}],
)
def few(figure, made):
    text = figure.text(0.5, 0.5, "")

    def update(letter, size, big):
        text.set_text(letter * size)
        return f"{letter} {size} times"  # `big` changes nothing

    return update


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 20, 21])
@pytest.mark.parametrize("home", [0, 1, 7, 19, 20])
def test_thinned_values_hold_the_ends_and_the_start(count, home):
    values = tuple(range(21))
    thinned = frames.thinned(values, {home}, count)
    assert len(set(thinned)) == len(thinned) == count
    assert thinned == sorted(thinned)
    assert home in thinned
    if count > 2:
        assert {0, 20} <= set(thinned)
        assert max(np.diff(thinned)) <= 2 * 20 / (count - 1)


def test_sliders_lose_stops_first_and_texts_last():
    figure = many()
    values = frames.stops(figure, {})
    assert frames.MOST_FRAMES * 0.7 <= math.prod(map(len, values.values())) <= frames.MOST_FRAMES
    assert values["c4"] == ["cat", "mat"]
    assert values["c5"] == [False, True]
    assert len(values["c3"]) <= 4
    assert all(start in values[name] for name, start in figure.values.items())
    stops = frames.stops(few(None), {"letter": ("a", "b")})
    assert stops == {"letter": ["a", "b"], "size": [1, 2, 3, 4, 5], "big": [False, True]}
    with pytest.raises(frames.Failed, match="letter starts at 'a', where it has no stop"):
        frames.stops(few(None), {"letter": ("b", "c")})


def test_stops_that_are_asked_for_stay():
    stops = frames.stops(many(), {}, 40, {17, 0.8, 16, 1})
    assert 17 in stops["c0"]
    assert any(np.isclose(value, 0.8) for value in stops["c1"])
    assert {16, 1} <= set(stops["c3"])
    assert math.prod(map(len, stops.values())) <= 80


def test_the_text_is_read():
    asked = {
        cell: numbers for lesson in LESSONS for cell, numbers in frames.asked(save.NOTEBOOKS / lesson.notebook).items()
    }
    assert {64, 256} <= asked["tiles-lab"]
    assert {64, 512} <= asked["scaling-lab"]


def test_findings_are_read():
    assert {16, 64, 256} <= frames.asked(save.NOTEBOOKS / "02_scaled_attention.ipynb")["sweep"]


def test_pictures_are_drawn_anew_when_what_draws_them_has_changed(tmp_path, monkeypatch):
    """A lesson's own files, those of a lesson that it imports, and all that is no lesson's; not another lesson's."""
    monkeypatch.setattr(frames, "ROOT", tmp_path)
    files = {
        "maths/b/ops.py": "",
        "lessons/a/lab.py": "from lesson_utils.lessons.c import lab",
        "lessons/b/lab.py": "",
        "lessons/c/data.txt": "",
    }
    notebook = tmp_path / "01_a.ipynb"
    notebook.write_text("from lesson_utils.lessons.a import lab", encoding="utf-8")
    for name, text in files.items():
        file = tmp_path / "lesson_utils" / name
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    changed = []
    for name in files:
        before = frames.sources(notebook)
        with (tmp_path / "lesson_utils" / name).open("a", encoding="utf-8") as file:
            file.write("# new")
        changed.append(frames.sources(notebook) != before)
    assert changed == [True, True, False, True]


def opened(file, picture):
    """What a page is told of a figure that begins with this picture, and the places of its controls."""
    text = file.read_text(encoding="utf-8")
    assert text.startswith(picture.html())
    (told,) = re.findall(r'<script type="application/json" class="live-stops">([^<]+)</script>', text)
    told = json.loads(told)
    return told, [control["start"] for control in told["controls"]]


def test_each_setting_has_its_picture(tmp_path):
    figure = few(None, size=3)
    frames.draw("12_some/few-lab", figure, tmp_path, {"letter": ("a", "b")})
    _, telling = opened(tmp_path / "few-lab.telling.html", figure.set(letter="a", size=4))
    told, starts = opened(tmp_path / "few-lab.start.html", figure.set(letter="a", size=3))
    assert (starts, telling) == ([0, 2, 0], [0, 3, 0])
    letter, size, big = told["controls"]
    assert told["call"] == "lab.few(made)"
    assert (letter["kind"], letter["texts"], letter["call"]) == ("select", ["a", "b"], ["", "letter='b'"])
    assert (size["kind"], size["texts"]) == ("range", ["1", "2", "3", "4", "5"])
    assert (big["kind"], big["label"]) == ("checkbox", "<big>")
    said = "Drawn beforehand: in the notebook you type <i>letter</i> yourself. Run this cell for the figure itself."
    assert told["note"] == said
    script = (tmp_path / "few-lab.js").read_text(encoding="utf-8").strip()
    name, grid = json.loads(f"[{script.removeprefix('liveFrames(').removesuffix(')')}]")
    assert name == "12_some/few-lab"
    assert len(grid["frames"]) == 2 * 5 * 2
    assert len(grid["pictures"]) == len(list(tmp_path.glob("*.webp"))) == 2 * 5  # a switch that changes nothing
    for number, (a, n, b) in enumerate(product("ab", range(1, 6), (False, True))):
        file, alt, _ = grid["pictures"][grid["frames"][number]]
        wanted = figure.set(letter=a, size=n, big=b)
        assert alt == wanted.alt
        seen = [Image.open(data).convert("RGB") for data in (tmp_path / file, io.BytesIO(wanted.png))]
        np.testing.assert_array_equal(*map(np.asarray, seen))


def test_the_page_says_what_only_the_notebook_has():
    figure = many()
    values = {name: list(control.values()) for name, control in figure.controls.items()}
    assert frames.note(figure, values) == "Drawn beforehand. Run this cell for the figure itself."
    values |= {"c0": [0, 7, 20], "c1": [-1.0, 0.3], "c3": [4]}
    assert frames.note(figure, values) == (
        "Drawn beforehand: 3 of the 21 values of <i>whole</i> and 2 of the 21 values of <i>fraction</i>; only the "
        "notebook has <i>size</i>. Run this cell for the figure itself."
    )


@pytest.mark.long_form
def test_chosen_stops_belong_to_figures():
    notebooks = {lesson.notebook.removesuffix(".ipynb"): lesson for lesson in LESSONS}
    for place, chosen in frames.STOPS.items():
        notebook, _, cell = place.partition("/")
        codes = {name: code for name, code, shows in frames.cells(save.NOTEBOOKS / f"{notebook}.ipynb") if shows}
        lab = next(lab for name, lab in notebooks[notebook].figures().items() if f"lab.{name}(" in codes[cell])
        figure = lab.example()
        stops = frames.stops(figure, chosen)
        assert {name: tuple(stops[name]) for name in chosen} == chosen  # they leave room for all of them
        for name, values in chosen.items():
            control = figure.controls[name]
            assert control.value in values
            for value in values:
                control.check(name, value)
                assert isinstance(control, live.Word) or value in control.values()


@pytest.mark.slow
def test_a_notebook_shows_its_figures_and_no_others(tmp_path):
    figures = frames.shown(save.NOTEBOOKS / "00_start_here.ipynb")
    assert [figure.lab.call() for figure in figures.values()] == [
        "lab.first_look()",
        "lab.moving_it(average)",
        "lab.learned_look(look)",
    ]
    broken = json.loads((save.NOTEBOOKS / "00_start_here.ipynb").read_text(encoding="utf-8"))
    for cell in broken["cells"]:
        if cell["id"] == "first-look":
            cell["source"] = ["lab.first_view()"]
    (tmp_path / "00_broken.ipynb").write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(frames.Failed, match=r"(?s)cells first-look do not show.*AttributeError"):
        frames.shown(tmp_path / "00_broken.ipynb")


def test_a_figure_plays_through_the_stops_that_it_has():
    figure = start_here.first_look()
    stops = {"ending": ["tired", "wide"], "temperature": [1.0, 10.0, 100]}
    assert list(dict.fromkeys(map(tuple, frames.played(figure, stops)))) == [(0, 2), (0, 1), (0, 0), (1, 0)]


def test_the_call_says_a_number_as_it_is_read_beside_its_slider():
    factors = [10**-0.5, 19.9526231497]
    told = frames.described(many(), "c2", factors, factors[0])
    assert (told["texts"], told["call"]) == (["0.316", "20"], ["", "c2=20.0"])
