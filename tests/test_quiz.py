"""Questions have one right option, feedback for every option, and work without a kernel."""

import re

import pytest

from lesson_utils import quiz
from lesson_utils.lessons.scaled_attention import questions as scaled_attention
from lesson_utils.lessons.start_here import questions as start_here
from lesson_utils.quiz import Option, Question

QUESTIONS = [q for module in (start_here, scaled_attention) for q in module.QUESTIONS]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.text[:40])
def test_every_option_has_feedback_of_its_own(question):
    feedback = [option.feedback for option in question.options]
    assert all(len(text) > 20 for text in feedback)
    assert len(set(feedback)) == len(feedback)


def test_the_right_option_is_not_always_in_the_same_place():
    places = {[o.right for o in q.options].index(True) for q in scaled_attention.QUESTIONS}
    assert len(places) >= 3


def test_every_option_opens_its_feedback():
    page = quiz.checkpoint("scaled_attention")._repr_mimebundle_()["text/html"]
    options = sum(len(q.options) for q in scaled_attention.QUESTIONS)
    assert len(re.findall("<details", page)) == options
    assert page.count("<strong>Right.</strong>") == len(scaled_attention.QUESTIONS)
    assert page.count("<strong>No.</strong>") == options - len(scaled_attention.QUESTIONS)


def test_plain_text_lists_questions_without_answers():
    plain = quiz.checkpoint("start_here")._repr_mimebundle_()["text/plain"]
    assert "b) 19" in plain
    assert "Right" not in plain


@pytest.mark.parametrize("right", [(), (True, True), (False, False)])
def test_a_question_needs_exactly_one_right_option(right):
    with pytest.raises(ValueError, match="exactly one of them right"):
        Question("?", tuple(Option("text", "feedback", r) for r in right))


def test_unknown_notebook():
    with pytest.raises(ValueError, match="no questions for 'attention'"):
        quiz.checkpoint("attention")
