"""A slip is put into a right answer: what is told names no other line, and no second mistake.

Nobody wrote these answers for the checker, and there is no end of them: another seed makes others.
"""

import ast
import random
import re
import textwrap

import pytest
from learners import EXERCISES, cell
from right_answers import RIGHT, bodies

from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.recognise.ingredients import Ingredients
from lesson_utils.mistakes.recognise.tree_edits import all_applied, edits

MODULES = frozenset({"np", "math", "ops", "attention", "positions"})
TRIES, SLIPS = 40, 4  # for each exercise


def _slips(exercise):
    """Yield cells with one slip, and the number of its line."""
    rng = random.Random(exercise.name)
    answers = [body for body in bodies(RIGHT, exercise) if not re.search("def |lambda|import ", body)]
    for _ in range(TRIES if answers else 0):
        body = textwrap.dedent(rng.choice(answers)).strip()
        body = body if "return" in body else f"return {body}"
        head = f"def {exercise.function_name}({exercise.takes}):\n"
        tree = ast.parse(head + textwrap.indent(body, "    "))
        right = ast.unparse(tree)
        tree = ast.parse(right)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - MODULES
        found = [*edits(tree.body[0].body, Ingredients(tuple(sorted(names)), modules=MODULES))]
        kind = rng.choice(sorted({edit.kind for edit in found}))
        with all_applied([rng.choice([edit for edit in found if edit.kind == kind])]):
            wrong = ast.unparse(ast.fix_missing_locations(tree))
        pairs = zip(right.splitlines(), wrong.splitlines(), strict=False)
        changed = [n for n, (before, after) in enumerate(pairs, 1) if before != after]
        if len(changed) == 1 and right.count("\n") == wrong.count("\n"):
            yield wrong, changed[0]


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_a_slip_is_told_in_its_line_and_alone(exercise):
    told = 0
    for wrong, line in _slips(exercise):
        result = run(exercise, cell(f"{wrong}\n", exercise.names())[exercise.function_name])
        if result.passed is False:
            numbers = re.findall(r"^(?:\d\. )?Lines? ([\d, and]+):", result.message, re.MULTILINE)
            named = {int(n) for some in numbers for n in re.findall(r"\d+", some)}
            assert named <= {line}, f"{wrong}\n\n{result.message}"
            assert "things to mend" not in result.message, f"{wrong}\n\n{result.message}"
            told += 1
            if told == SLIPS:
                break
