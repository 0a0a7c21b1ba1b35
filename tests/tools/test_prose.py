"""The report on prose counts what it says."""

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


def test_a_report_counts_sentences_fragments_and_marks():
    text = "The model *learns* to copy. It never sees $x$: a wall.\n\n**Predict:** Who shall win here?\n\nA mask.\n"
    cells = [cell(f"# Title\n{text}| table |"), code("x"), cell("## References\nMany: many.")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert prose.report(prose.prose(notebook)) == (
        "17 words, 4 a sentence; 50 % fragments; 50 % begin with it, that, those, what or who; "
        "5.9 colons and semicolons per 100 words; to weigh: shall"
    )


@pytest.mark.parametrize(
    ("title", "finds"),
    [
        ("Attention map of the third head", False),
        ("Loss and accuracy over training", False),
        ("Scores by position of query and key", False),
        ("Head 3", True),
        ("The old sum stays", True),
        ("Post-norm stands on the stream, pre-norm on the side roads", True),
        ("Rows don't sum to one", True),
        ("The mask is late", True),
    ],
)
def test_a_verb_is_known_by_its_ending(title, finds):
    assert prose.states_a_finding(title) == finds
