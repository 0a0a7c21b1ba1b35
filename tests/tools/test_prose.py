"""The report on prose counts what it says."""

import nbformat
import pytest

from lesson_utils.classroom.course import LESSONS
from tools import prose

cell, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell


def test_the_model_of_time_counts_what_it_says():
    live = nbformat.v4.new_output("display_data", {prose.WIDGET_VIEW: {}})
    notebook = nbformat.v4.new_notebook(
        cells=[
            cell("# Title\n" + "word " * 298),
            cell("## 1 · More · *Further*\n**Predict:** $$a = b + c$$ [a](b.c)"),
            code("lab.x()", outputs=[live]),
            cell("### Exercise 1 · It *(10 minutes, hard)*"),
            cell("## 2 · Core"),
            code("x = 1\nlab.as_written(\n    right=x == 1,\n)\nlab.as_written(right=x == 1)\n" + "x = 2\n" * 19),
            cell("## References\n" + "word " * 1000),
        ]
    )
    core, whole = prose.minutes(LESSONS[0], notebook)
    assert core == pytest.approx(301 / 150 + 20 / 20)
    assert whole - core == pytest.approx(11 / 150 + 1 + 2.5 + 1 / 20 + 10)


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
