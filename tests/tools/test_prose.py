"""A learner's minutes are counted as they are said to be."""

import nbformat
import pytest

from lesson_utils.classroom import stand_in
from lesson_utils.classroom.course import LESSONS
from tools import prose

cell, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell


def test_the_model_of_time_counts_what_it_says():
    live = nbformat.v4.new_output("display_data", {stand_in.WIDGET_VIEW: {}})
    still = nbformat.v4.new_output("display_data", {"image/png": ""})
    notebook = nbformat.v4.new_notebook(
        cells=[
            cell("# Title\n" + "word " * 298),
            cell("## 1 · More · *Further*\n**Predict:** $$a = b + c$$ [a](b.c)"),
            code('quiz.predict("a", "b")', outputs=[live]),
            code("lab.x()", outputs=[still, live]),
            cell("### Exercise 1 · It *(10 minutes, hard)*"),
            cell("## 2 · Core"),
            code("x = 1\n" + "x = 2\n" * 19, outputs=[still]),
            code('quiz.checkpoint("start_here")'),
            cell("## References\n" + "word " * 1000),
        ]
    )
    core, whole = prose.minutes(LESSONS[0], notebook)
    assert core == pytest.approx(301 / 120 + 20 / 10 + 1 + 1 / 10 + 1)
    assert whole - core == pytest.approx(11 / 120 + 1 + 3 + 1 / 10 + 14)


def test_a_title_that_finds_has_a_number_or_a_verb():
    found = "Head 3", "The old sum stays", "Rows don't sum to one", "The mask is late"
    assert all(map(prose.states_a_finding, found))
    labels = "Attention map of the third head", "Loss and accuracy over training", "Scores by position of query and key"
    assert not any(map(prose.states_a_finding, labels))
