"""A check judges the function that stands in the cell, or says that it can't."""

import pytest

interactiveshell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython comes with ipywidgets")

RIGHT = "def weighted_average(weights, values):\n    return weights @ values"
WRONG = "def weighted_average(weights, values):\n    return values.mean(axis=0)"
CHECK = "result = check.weighted_average(weighted_average)"


@pytest.fixture
def run():
    """A function that runs cells as a notebook does, and returns the last verdict."""
    shell = interactiveshell.InteractiveShell.instance()
    shell.run_cell("from lesson_utils.exercises import check", store_history=True)

    def run(*cells):
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        return shell.user_ns["result"]

    yield run
    interactiveshell.InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    "broken",
    [
        RIGHT.replace("return", "retrun"),  # SyntaxError
        RIGHT.replace("    return", "  x = 1\n    return"),  # IndentationError
        RIGHT + "\nundefined_name",  # runs into an error only behind the function: then the new one counts
    ],
)
def test_a_cell_that_ended_in_an_error_is_not_judged_by_the_version_before(run, broken, capsys):
    assert run(RIGHT, CHECK).passed
    result = run(broken, CHECK)
    if "undefined_name" in broken:
        assert result.passed
    else:
        assert result.passed is False
        assert "did not run, because its cell ended in an error" in result.message
    assert run(RIGHT, CHECK).passed


def test_a_version_that_was_judged_already_says_so(run):
    assert "same function" not in run(WRONG, CHECK).message
    assert "If you have changed it since, run its cell first." in run(CHECK).message
    assert "same function" not in run(WRONG, CHECK).message, "its cell was run again"
    assert "same function" not in run(RIGHT, CHECK, CHECK).message


def test_other_functions_are_judged_as_they_are(run):
    assert run(RIGHT, "result = check.weighted_average(lambda weights, values: weights @ values)").passed
    assert run(RIGHT, "mine = weighted_average", WRONG, "result = check.weighted_average(mine)").passed
    assert run("from lesson_utils.maths import ops", "result = check.weighted_average(ops.softmax)").passed is False


def test_what_a_function_prints_is_labelled_and_shown_once(run, capsys):
    run(RIGHT.replace("    return", "    print('here')\n    return"), CHECK)
    assert capsys.readouterr().out == "Your function printed:\nhere\n"
