"""What holds for every lesson, whoever wrote it. These tests walk LESSONS: a new lesson is tested by being there."""

import functools
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
import pytest

from lesson_utils.classroom import legible, plots, progress, quiz
from lesson_utils.classroom.course import LESSONS
from tools import save, testing

pytestmark = pytest.mark.walks

ROOT = Path(__file__).parents[2]
SAVED = "docs/index.md", save.TEACHING  # pages for which `save` counts
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)

FIGURES = {f"{lesson.name}.{name}": lab for lesson in LESSONS for name, lab in lesson.figures().items()}
every_figure = pytest.mark.parametrize("name", FIGURES)


# --- Live figures ---------------------------------------------------------------------------------------------------


NUMBER = re.compile(r"[\d%]|\b(one|two|three|four|half|no|none|all|every|each)\b", re.IGNORECASE)


def titles(figure):
    """Return the titles of a figure, by where they stand."""
    places = ((axes, place) for axes in figure.axes for place in ("left", "center", "right"))
    return {(axes.get_position().bounds, place): text for axes, place in places if (text := axes.get_title(place))}


class Seen(NamedTuple):
    """A live figure at one setting."""

    values: dict
    picture: plots.Picture
    titles: dict
    problems: tuple[str, ...]


@functools.cache
def example(name):
    return FIGURES[name].example()


def seen(figure, values):
    """Draw the figure at this setting, compare it with a full redraw, and measure it."""
    testing.forget(figure)
    picture = figure.set(**values)
    problems = [f"{title!r} runs out of the picture" for title in legible.titles_outside(testing.drawing(figure))]
    points, text = legible.smallest(testing.drawing(figure))
    if points < legible.SMALLEST:
        problems.append(f"{text!r} has letters of {points:.1f} points")
    if not (figure.values == pytest.approx(values) or figure.values == values):
        problems.append(f"the controls stand at {figure.values}")
    if not all(np.isfinite(np.asarray(numbers, float)).all() for numbers in testing.drawn_numbers(figure)):
        problems.append("something drawn is not finite")
    try:
        testing.assert_frame_is_a_redraw(figure)
    except AssertionError as error:
        problems.append(f"the frame is not what a full redraw gives: {error}")
    if len(picture.alt) <= 30 or re.search(r"\bnan\b", picture.alt, re.IGNORECASE):
        problems.append(f"the alternative text is short, or says nan: {picture.alt!r}")
    if len(picture.png) > plots.MOST_BYTES:
        problems.append(f"the picture has {len(picture.png)} bytes, more than {plots.MOST_BYTES}")
    return Seen(values, picture, titles(testing.drawing(figure)), tuple(problems))


@functools.cache
def walked(name):
    """Return the figure, what was seen at its start and at each extreme, and its picture back at the start."""
    figure = example(name)
    walk = [seen(figure, values) for values in testing.settings(figure)]
    testing.forget(figure)
    again = figure.set(**walk[0].values)
    return figure, walk, again


@every_figure
def test_it_is_drawn_whole_and_told_at_its_start_and_at_its_farthest(name):
    figure = example(name)
    start, *_, last = testing.settings(figure)
    assert [(s.values, s.problems) for s in (seen(figure, start), seen(figure, last)) if s.problems] == []


@every_figure
@pytest.mark.long_form
def test_each_setting_is_drawn_whole_and_told(name):
    _, walk, _ = walked(name)
    assert [(seen.values, seen.problems) for seen in walk if seen.problems] == []


@every_figure
@pytest.mark.long_form
def test_each_title_states_a_finding(name):
    """A finding has a number in it, or changes with the controls. "Attention weights" would stand there for ever."""
    _, walk, _ = walked(name)
    for place in walk[0].titles:
        texts = {seen.titles.get(place) for seen in walk}
        assert len(texts) > 1 or NUMBER.search(*texts), f"no number in it, and always the same: {texts}"


@every_figure
@pytest.mark.long_form
def test_each_pair_of_extremes_is_drawn_whole_and_told(name):
    figure = example(name)
    walk = [seen(figure, values) for values in testing.settings(figure, pairs=True)]
    assert [(seen.values, seen.problems) for seen in walk if seen.problems] == []


@every_figure
@pytest.mark.long_form
def test_each_control_changes_picture_and_alternative_text(name):
    figure, walk, _ = walked(name)
    start = walk[0].values
    for control in figure.controls:
        alone = [s.picture for s in walk if all(s.values[other] == start[other] for other in start if other != control)]
        assert len({picture.alt for picture in alone}) > 1, f"{control} changes nothing in the alternative text"
        assert len({picture.png for picture in alone}) > 1, f"{control} changes nothing in the picture"


@every_figure
@pytest.mark.long_form
def test_a_picture_depends_on_the_controls_alone(name):
    """Pictures are kept, so that nothing else may have a part in them."""
    _, walk, again = walked(name)
    assert again == walk[0].picture, "back at its start, the figure shows another picture: `update` must set everything"


@every_figure
@pytest.mark.long_form
def test_on_a_phone_its_panels_stand_below_each_other(name):
    """It is cut between them at each setting, or nothing would stay in its place while a slider moves."""
    figure, walk, _ = walked(name)
    spans = sorted(tuple(axes.get_position().intervalx) for axes in testing.drawing(figure).axes)
    panels = [span for span in spans if span[1] - span[0] > legible.NARROWEST]  # the others are bars of colours
    are_beside = any(left >= max(end for _, end in panels[:n]) for n, (left, _) in enumerate(panels) if n)
    has_one_title = name == "multi_head.split_lab"  # over both
    assert {bool(seen.picture.cuts) for seen in walk} == {are_beside and not has_one_title}


@every_figure
def test_labels_are_texts_and_update_takes_exactly_the_controls(name):
    figure = example(name)
    assert all(control.label.strip() for control in figure.controls.values())
    update = figure.lab.draw(plots.figure(figure.lab.width, figure.lab.height), *figure.made_from)
    parameters = inspect.signature(update).parameters.values()
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        needed = {parameter.name for parameter in parameters if parameter.default is parameter.empty}
        assert needed <= set(figure.controls) <= {parameter.name for parameter in parameters}


# --- Notebooks and their table --------------------------------------------------------------------------------------


@every_lesson
def test_the_notebook_begins_and_ends_with_what_the_record_says(lesson):
    notebook = nbformat.read(ROOT / "notebooks" / lesson.notebook, as_version=4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    title, question = texts[0].splitlines()[:2]
    assert title == (f"# {lesson.number:02} · {lesson.title}" if lesson.number else f"# {lesson.title}")
    assert question == f"*{lesson.question}*"
    assert any(lesson.question in text for text in texts[1:]), "the summary repeats the question, and answers it"


@every_lesson
def test_the_lab_offers_what_the_notebook_calls_and_nothing_that_nobody_needs(lesson):
    """What a notebook does not call is there for the lab's own figures."""
    notebook = nbformat.read(ROOT / "notebooks" / lesson.notebook, as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    called, offered = set(re.findall(r"\blab\.(\w+)", code)), vars(lesson.part("lab"))
    assert called <= set(offered), f"lab.py has no {called - set(offered)}"
    words = Counter(re.findall(r"\w+", inspect.getsource(lesson.part("lab"))))
    others = {name for name in offered if not name.startswith("__")} - called - set(lesson.figures())
    assert {name for name in others if words[name] < 2} == set(), "nobody needs these names in lab.py"


@every_lesson
def test_the_notebook_ends_with_what_is_solved_of_it(lesson):
    """As stored: nothing yet, whoever has saved it."""
    importlib.reload(progress)  # a new kernel: other tests have solved some
    notebook = nbformat.read(ROOT / "notebooks" / lesson.notebook, as_version=4)
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    call, shown = f'here("{lesson.name}")', progress.here(lesson.name)
    if lesson.number == 0:
        call, shown = "course()", progress.course()
    assert last.source == f"from lesson_utils import progress\n\nprogress.{call}", "the last cell of code is not this"
    assert [output.data["text/plain"] for output in last.outputs] == [str(shown)], "run: python course.py save"


def test_there_is_no_notebook_without_a_lesson():
    assert {path.name for path in (ROOT / "notebooks").glob("*.ipynb")} == {lesson.notebook for lesson in LESSONS}


def test_what_pages_say_of_notebooks_is_what_the_records_say():
    readme, index, teaching = ((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", *SAVED))
    start = nbformat.read(ROOT / "notebooks/00_start_here.ipynb", as_version=4)
    first = [cell.source for cell in start.cells if save.TABLE.search(cell.source)]
    assert [save.with_table(source) for source in first] == first, "run: python course.py save"
    assert save.with_table(readme, "notebooks/") == save.with_hours(readme) == readme, "run: python course.py save"
    assert save.with_paths(index) == index, "run: python course.py save"
    assert save.with_minutes(teaching) == teaching, "run: python course.py save"
    assert len(save.HOURS.findall(readme)) == 1
    assert all(f"(notebooks/{lesson.notebook})" in readme for lesson in LESSONS)
    evening, cores = (sum(save.minutes(LESSONS[n])[0] for n in numbers) for numbers in ((0, 2, 6), (2, 3, 4, 5, 6, 9)))
    assert re.search(rf"^\| I have one evening \|.*\| {evening} \|$", index, re.M)
    assert f"of 02 to 06 and 09: {cores} minutes" in " ".join(teaching.split())
    projected = re.findall(r"^\| \d\d \| \d+, \d+ \| `lab\.(\w*)` \|", teaching, re.M)
    assert all(figure in {*lesson.figures(), ""} for lesson, figure in zip(LESSONS, projected, strict=True))


# --- Questions ------------------------------------------------------------------------------------------------------


def places(questions):
    return [[option.right for option in question.options].index(True) for question in questions]


QUESTIONS = [question for lesson in LESSONS for question in lesson.questions()]


@every_lesson
def test_every_option_has_feedback_of_its_own(lesson):
    assert quiz.checkpoint(lesson.name).questions == lesson.questions()
    for question in lesson.questions():
        feedback = [option.feedback for option in question.options]
        assert min(map(len, feedback)) > 20, f"say more than that: {min(feedback, key=len)!r}"
        assert len(feedback) >= 3, f"{question.text!r} needs three options or more"
        assert len(set(feedback)) == len(feedback), f"{question.text!r}: each option has feedback of its own"


def test_the_right_option_is_not_the_one_that_looks_like_it():
    """Who always takes the longest option, or always the same place, has learnt nothing of attention."""
    longest = [max(question.options, key=lambda option: len(option.text)).right for question in QUESTIONS]
    assert sum(longest) <= 0.4 * len(QUESTIONS), "of too many questions, the right option is the longest"
    taken = Counter(places(QUESTIONS))
    assert all(0.15 * len(QUESTIONS) <= taken[place] <= 0.4 * len(QUESTIONS) for place in range(4)), (
        f"the right option stands too often, or too seldom, in one place: {sorted(taken.items())}"
    )
