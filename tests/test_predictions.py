"""Nothing answers before the learner does: each prediction can be made, and its answer is folded."""

import re
from importlib import reload
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from lesson_utils.classroom import progress, quiz
from lesson_utils.classroom.asked import Prediction
from lesson_utils.classroom.course import LESSONS
from lesson_utils.classroom.stand_in import is_live_figure

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
ASKS, FOLD = "**Predict:**", '<details class="answer"><summary>'
CALL = re.compile(r'^quiz\.predict\("(\w+)", "(\w+)"\)$', re.M)
with_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def cells(lesson):
    return nbformat.read(NOTEBOOKS / lesson.notebook, as_version=4).cells


def parts(lesson):
    """The cells from each prediction to its answer, or to the next prediction; the answer is the last of them."""
    part = None
    for cell in cells(lesson):
        if cell.cell_type == "markdown" and ASKS in cell.source:
            if part:
                yield part
            part = [cell]
        elif part:
            part.append(cell)
            if FOLD in cell.source:
                yield part
                part = None
    assert part is None, f"{part[0].id}: no answer is folded below this prediction"


@with_lesson
def test_each_prediction_can_be_made_right_below_its_question(lesson):
    found = cells(lesson)
    asked = [(cell.source.count(ASKS), below) for cell, below in pairwise(found) if ASKS in cell.source]
    made = [CALL.findall(below.source) for _, below in asked]
    assert [len(calls) for calls in made] == [count for count, _ in asked], "a quiz.predict(…) for each **Predict:**"
    calls = [call for calls in made for call in calls]
    assert calls == [(lesson.name, prediction.name) for prediction in lesson.predictions()], "in the same order"
    assert len(CALL.findall("\n".join(cell.source for cell in found))) == len(calls)


@with_lesson
def test_answers_are_folded(lesson):
    text = "\n".join(cell.source for cell in cells(lesson) if cell.cell_type == "markdown")
    assert text.count(FOLD) == text.count("</details>")
    for fold in re.findall(r"<details.*", text):
        assert re.fullmatch(r'<details class="answer"><summary>[^<]+</summary>', fold)
    assert not re.search(r"<summary>.*</summary>\n(?!\n)|(?<!\n)\n</details>", text), (
        "Markdown needs empty lines around"
    )
    assert "**What you saw.**" not in text
    if lesson.predictions():
        assert list(parts(lesson))


@with_lesson
def test_figures_open_in_a_state_that_does_not_answer(lesson):
    figures = lesson.figures()
    for part in parts(lesson):
        for cell in part[1:-1]:
            if cell.cell_type == "code" and is_live_figure(cell.outputs):
                (name,) = {name for name in re.findall(r"lab\.(\w+)\(", cell.source) if name in figures}
                assert figures[name].neutral, (
                    f"lab.{name} stands below {part[0].id}: say in neutral=… why its start answers nothing"
                )


def numbers(text):
    """The numbers in a text that would give something away: of two digits or more, and not years."""
    return {n for n in re.findall(r"(?<![\w.])\d+(?:[.,]\d+)*", text) if len(re.sub(r"\D", "", n)) > 1}


@with_lesson
def test_no_number_of_an_answer_is_in_sight(lesson):
    """Of what is seen before the learner has answered: texts, code, and the first state of live figures."""
    predictions = {prediction.name: prediction for prediction in lesson.predictions()}
    for part in parts(lesson):
        texts = [re.sub(r"<details.*?</details>", "", cell.source, flags=re.S) for cell in part]
        for cell in part:
            if cell.cell_type == "code" and is_live_figure(cell.outputs):
                texts += [output.data["text/plain"] for output in cell.outputs if "image/png" in output.get("data", {})]
        seen = numbers("\n".join(texts))
        for _, name in CALL.findall("\n".join(texts)):
            prediction = predictions[name]
            asked = "\n".join([part[0].source.partition(ASKS)[2], *prediction.options])
            told = numbers(prediction.happened) - numbers(asked)
            assert not told & seen, f"{name}: {told & seen} stands in sight between {part[0].id} and {part[-1].id}"


FALLS = Prediction("slope", ("rises", "falls"), right="rises", happened="It rises first.", usual="falls")


def test_what_a_prediction_is_told():
    assert FALLS.reply("rises") == "You predicted “rises”, and you were right. It rises first."
    assert FALLS.reply("falls") == "“falls” is the natural guess. It rises first."


@pytest.mark.parametrize("change", [{"options": ("rises",)}, {"right": "stays"}, {"usual": "stays"}])
def test_a_prediction_that_cannot_be_made_is_refused(change):
    with pytest.raises(ValueError, match="prediction 'slope'"):
        Prediction(**(vars(FALLS) | change))


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "solved.txt"))
    reload(progress)
    yield
    reload(progress)


def shown(monkeypatch, name="tired"):
    """The page without a kernel, the buttons and the reply of a prediction of notebook 00."""
    found = []
    monkeypatch.setattr("lesson_utils.classroom.stand_in.show", lambda *parts: found.extend(parts))
    quiz.predict("start_here", name)
    page, box = found
    return page["text/html"], *box.children


def test_a_prediction_is_kept_and_compared(file, monkeypatch):
    _, buttons, reply = shown(monkeypatch)
    assert buttons.value is None
    assert reply.value == ""
    assert "predictions" not in str(progress.here("start_here"))
    buttons.value = "it"
    buttons.value = "street"
    assert "You predicted “street”. The cat gets" in reply.value
    reload(progress)  # a new kernel
    assert progress.predicted() == {"start_here.tired": 2}
    assert "Of 3 predictions you made 1, and 0 came true." in str(progress.here("start_here"))
    _, buttons, reply = shown(monkeypatch)
    assert buttons.value == "street"
    buttons.value = "cat"
    assert "you were right" in reply.value
    assert "Of 3 predictions you made 1, and 1 came true." in str(progress.here("start_here"))


def test_without_a_kernel_each_option_opens_its_reply(monkeypatch):
    page, buttons, _ = shown(monkeypatch)
    assert re.findall(r"<details[^>]*><summary[^>]*>(it|cat|street)</summary>", page) == ["it", "cat", "street"]
    for option in buttons.options:
        assert f"You predicted “{option[1]}”" in page


def test_a_prediction_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no prediction 'warm'; it has tired, wide"):
        quiz.predict("start_here", "warm")
