"""A lesson says once what it is; what walks the course finds it."""

import pytest
from claims import guards

from lesson_utils.classroom import progress, quiz
from lesson_utils.classroom.course import Lesson
from lesson_utils.exercises import check


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
