"""A lesson says once what it is; what walks the course finds it."""

import re

import pytest
from claims import guards

import lesson_utils
from lesson_utils.classroom import course, progress, quiz
from lesson_utils.classroom.course import Lesson
from lesson_utils.exercises import GONE, check


def test_claims_are_guarded_where_they_are_made():
    guards.as_written(holds=True, computed=lambda: True)
    guards.as_written(False, fewer_steps=False)  # the reader has changed something
    with pytest.raises(AssertionError, match=r"does not hold in this run: falls_apart, late$"):
        guards.as_written(holds=True, falls_apart=False, late=lambda: False)


def test_what_a_clock_finds_otherwise_is_said_and_stops_nothing(capsys):
    guards.as_timed(faster=True)
    assert not capsys.readouterr().out
    guards.as_timed(faster=False, no_slower=True)
    assert "otherwise now: faster. " in capsys.readouterr().out


def test_a_record_that_names_other_exercises_than_there_are_is_refused():
    lesson = Lesson(2, "Title", "Question?", ("softmax",), package="lesson_utils.lessons.scaled_attention")
    with pytest.raises(ValueError, match=r"names the exercises softmax; its exercises.py holds softmax, attention"):
        lesson.exercise("softmax")


@pytest.mark.parametrize("of", [progress.here, quiz.checkpoint])
def test_an_unknown_notebook_or_exercise_lists_those_there_are(of):
    with pytest.raises(ValueError, match="there is no notebook 'attention'; there are: start_here, bottleneck, "):
        of("attention")
    with pytest.raises(AttributeError, match=r"no exercise 'sofmax'; there are: weighted_average, .*softmax"):
        _ = check.sofmax
    assert "softmax" in dir(check)


def test_an_exercise_of_version_1_that_went_leads_to_what_there_is():
    for name, instead in GONE.items():
        with pytest.raises(AttributeError, match=rf"^check\.{name} belonged to version 1 of the course\. Today, \w"):
            getattr(check, name)
        for place, named in re.findall(r"`([a-z]+)\.(\w+)`", instead):
            assert callable(getattr(check if place == "check" else getattr(lesson_utils, place), named))
        for number, named in re.findall(r"notebook (\d\d) [^;]*`check\.(\w+)`", instead):
            (lesson,) = (lesson for lesson in course.LESSONS if lesson.number == int(number))
            assert named in {*lesson.exercises, *lesson.answers}
