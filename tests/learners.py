"""What learners write into the cells of exercises, and the verdict on it."""

import itertools
import linecache
import textwrap
from decimal import Decimal
from fractions import Fraction

from lesson_utils.classroom import course
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.run import limits

OF_A_LEARNER = limits.ALTOGETHER
limits.ALTOGETHER = 60.0  # what a check names here depends on its steps alone, not on how busy the machine is

EXERCISES = course.exercises()
CELLS = itertools.count(1)


def cell(source, names):
    """Run a cell of the notebook; the names that are there afterwards."""
    file = f"<cell {next(CELLS)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # as IPython does for its cells
    exec(compile(source, file, "exec"), names)
    return names


def written(exercise, body):
    """The function that a learner writes into a cell: `body` is an expression, or statements."""
    exercise = EXERCISES[exercise]
    body = textwrap.dedent(body).strip()
    if "return" not in body and "yield" not in body:
        body = f"return {body}"
    source = f"def {exercise.function_name}({exercise.takes}):\n{textwrap.indent(body, '    ')}\n"
    return cell(source, exercise.names() | {"Fraction": Fraction, "Decimal": Decimal})[exercise.function_name]


def checked(exercise, body):
    return run(EXERCISES[exercise], written(exercise, body))


def verdict(answer):
    """The verdict on an answer of the blind bank."""
    exercise = EXERCISES[answer.exercise]
    if f"def {exercise.function_name}" in answer.body:
        return run(exercise, cell(textwrap.dedent(answer.body), exercise.names())[exercise.function_name])
    return run(exercise, written(answer.exercise, answer.body))
