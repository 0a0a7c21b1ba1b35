"""What learners write into the cells of exercises, and the verdict on it."""

import inspect
import linecache
import math
import textwrap
from decimal import Decimal
from fractions import Fraction

import numpy as np

from lesson_utils import attention, lessons, ops, positions, recurrent
from lesson_utils.exercises.checker import run

EXERCISES = lessons.exercises()
NAMES = {"np": np, "math": math, "ops": ops, "attention": attention, "positions": positions, "recurrent": recurrent}


def written(exercise, body):
    """The function that a learner writes into a cell: `body` is an expression, or statements."""
    body = textwrap.dedent(body).strip()
    if "return" not in body:
        body = f"return {body}"
    parameters = inspect.signature(EXERCISES[exercise].solution)
    source = f"def answer{parameters}:\n{textwrap.indent(body, '    ')}\n"
    file = f"<cell {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # as IPython does for its cells
    names = NAMES | {"Fraction": Fraction, "Decimal": Decimal}
    exec(compile(source, file, "exec"), names)
    return names["answer"]


def checked(exercise, body):
    return run(EXERCISES[exercise], written(exercise, body))


def assert_named(exercise, body, name):
    """The mistake is rejected by its own name, not as the first of several."""
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, name), result.message
    assert not result.message.startswith("First:")
