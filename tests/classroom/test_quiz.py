"""Questions have one right option, feedback for every option, and work without a kernel."""

import re

import pytest

from lesson_utils.classroom import quiz
from lesson_utils.classroom.course import named
from lesson_utils.classroom.quiz import Option, Question
from lesson_utils.mistakes.verdict import to_html


def test_every_option_opens_its_feedback():
    page = quiz.checkpoint("scaled_attention")._repr_mimebundle_()["text/html"]
    questions = named("scaled_attention").questions()
    options = sum(len(question.options) for question in questions)
    assert len(re.findall("<details", page)) == options
    assert page.count(">✓ Right.</strong>") == len(questions)
    assert page.count(">✗ No.</strong>") == options - len(questions)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the *first* of *all rows*", "the <em>first</em> of <em>all rows</em>"),
        ("(*or*)", "(<em>or</em>)"),
        ("2 * 3 * 4, a*b*c, ** 1/2", "2 * 3 * 4, a*b*c, ** 1/2"),
        ("`*x*, *y*`", '<code style="white-space:nowrap">*x*, *y*</code>'),
    ],
)
def test_stars_are_emphasis_around_words_only(text, shown):
    assert to_html(text) == shown


def test_plain_text_lists_questions_without_answers():
    plain = quiz.checkpoint("start_here")._repr_mimebundle_()["text/plain"]
    assert "b) 19" in plain
    assert "Right" not in plain


@pytest.mark.parametrize("right", [(), (True, True), (False, False)])
def test_a_question_needs_exactly_one_right_option(right):
    with pytest.raises(ValueError, match="exactly one of them right"):
        Question("?", tuple(Option("text", "feedback", r) for r in right))
