"""What holds for every lesson, whoever wrote it. These tests walk LESSONS: a new lesson is tested by being there."""

import functools
import inspect
import re
from typing import NamedTuple

import numpy as np
import pytest

from lesson_utils import plots
from lesson_utils.lessons import LESSONS
from lesson_utils.live import testing

FIGURES = {f"{lesson.name}.{name}": lab for lesson in LESSONS for name, lab in lesson.figures().items()}
every_figure = pytest.mark.parametrize("name", FIGURES)


# --- Live figures ---------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """A live figure at one setting."""

    values: dict
    picture: plots.Picture
    problems: tuple[str, ...]


@functools.cache
def walked(name):
    """The figure at each distinct setting: drawn once, compared with a full redraw, measured."""
    figure = FIGURES[name].example()
    walk = []
    for values in testing.settings(figure):
        testing.forget(figure)
        picture = figure.set(**values)
        problems = [f"{title!r} runs out of the picture" for title in plots.titles_outside(testing.drawing(figure))]
        if not (figure.values == pytest.approx(values) or figure.values == values):
            problems.append(f"the controls stand at {figure.values}")
        if not all(np.isfinite(np.asarray(numbers, float)).all() for numbers in testing.drawn_numbers(figure)):
            problems.append("something drawn is not finite")
        try:
            testing.assert_frame_is_a_redraw(figure)
        except AssertionError as error:
            problems.append(f"the frame is not what a full redraw gives: {error}")
        walk.append(Seen(values, picture, tuple(problems)))
    testing.forget(figure)
    again = figure.set(**walk[0].values)
    return figure, walk, again


@every_figure
def test_each_setting_is_drawn_whole_and_titles_fit(name):
    _, walk, _ = walked(name)
    assert [(seen.values, seen.problems) for seen in walk if seen.problems] == []


@every_figure
def test_each_picture_is_small_and_is_told(name):
    _, walk, _ = walked(name)
    for seen in walk:
        assert len(seen.picture.alt) > 30, seen.values
        assert not re.search(r"\bnan\b", seen.picture.alt, re.IGNORECASE), seen.values
        assert len(seen.picture.png) <= plots.MOST_BYTES, seen.values


@every_figure
def test_each_control_changes_picture_and_alternative_text(name):
    figure, walk, _ = walked(name)
    start = walk[0].values
    for control in figure.controls:
        alone = [s.picture for s in walk if all(s.values[other] == start[other] for other in start if other != control)]
        assert len({picture.alt for picture in alone}) > 1, control
        assert len({picture.png for picture in alone}) > 1, control


@every_figure
def test_a_picture_depends_on_the_controls_alone(name):
    """Pictures are kept, so that nothing else may have a part in them."""
    _, walk, again = walked(name)
    assert again == walk[0].picture


@every_figure
def test_labels_are_texts_and_update_takes_exactly_the_controls(name):
    figure, _, _ = walked(name)
    assert all(control.label.strip() for control in figure.controls.values())
    update = figure.lab.draw(plots.figure(figure.lab.width, figure.lab.height), *figure.made_from)
    parameters = inspect.signature(update).parameters.values()
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        assert {parameter.name for parameter in parameters} == set(figure.controls)
