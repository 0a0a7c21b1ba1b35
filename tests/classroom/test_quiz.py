"""Questions have one right option, feedback for every option, and work without a kernel."""

import re

import pytest

from lesson_utils.classroom import asked, quiz
from lesson_utils.classroom.asked import Option, Question
from lesson_utils.classroom.course import named
from lesson_utils.mistakes.verdict import to_html


def test_every_option_opens_its_feedback():
    page = quiz.checkpoint("scaled_attention")._repr_mimebundle_()["text/html"]
    questions = named("scaled_attention").questions()
    options = sum(len(q.options) for q in questions)
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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- rises\n", "line 1: '- rises' begins with none of"),
        ("? slope\n\nIt rises.\n", "line 3: 'It rises.' begins with none of"),
        ("# Slopes\n\n? slope\n- rises\n- falls\n= It rises.\n", "line 3: prediction 'slope' needs one `*`"),
        ("? slope\n* rises\n~ falls\n~ stays\n= It rises.\n", "line 1: prediction 'slope' needs .* at most one `~`"),
        ("? slope\n* rises\n? stays\n= It rises.\n", "line 1: line 2 of a question"),
        ("? Why?\n* So. | Yes.\n- No.\n", "line 1: line 3 of a question is `- option | what to say`"),
        ("? Why?\n- So. | No.\n- No. | No.\n", "line 1: 'Why.' needs .* exactly one of them right"),
    ],
)
def test_what_does_not_fit_in_a_text_of_questions_is_told_with_its_file_and_line(text, says, tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"questions.txt, {says}"):
        asked.read(path)
