"""Every exercise accepts what is right in any style, rejects what is wrong, and names each mistake it knows."""

import ast
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from learners import EXERCISES, cell, checked, written
from right_answers import RIGHT, STRANGE

from lesson_utils import lessons
from lesson_utils.exercises import check
from lesson_utils.exercises.bank import bank_of
from lesson_utils.exercises.checker import run
from lesson_utils.exercises.trial import attempt, quiet, same

ALL = list(EXERCISES.values())
each = pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)


def solved(exercise):
    return cell(exercise.solution, exercise.names())[exercise.function_name]


@each
def test_the_solution_shown_passes_when_pasted(exercise):
    result = run(replace(exercise, library=()), solved(exercise))
    assert (result.passed, result.message) == (True, exercise.praise)


@each
def test_the_stub_is_not_attempted_and_says_what_is_given_and_asked_for(exercise):
    stub = cell(exercise.stub, exercise.names())[exercise.function_name]
    assert run(exercise, stub).passed is None
    assert all(name in exercise.task for name in exercise.parameters), "shapes of what is given"
    assert "eturns" in exercise.task, "shapes of what is asked for"
    assert ("dtype" in exercise.task or "float64" in exercise.task) == (exercise.dtype == "kept")
    assert len(exercise.stub.splitlines()) <= 15


@each
def test_texts_are_complete(exercise):
    assert len(exercise.hints) >= 2
    assert len({m.message for m in exercise.mistakes}) == len(exercise.mistakes) >= 4
    assert exercise.praise


@each
def test_each_mistake_is_named_as_typed(exercise):
    """Its first spelling, or by a name that does the same: an error hides what comes behind it."""
    names = [mistake.name for mistake in exercise.mistakes]
    for mistake in exercise.mistakes:
        result = checked(exercise.name, exercise.body(mistake.ways[0]))
        assert result.passed is False, mistake.name
        assert result.misconception in names, (mistake.name, result.message)


@each
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_what_is_right_passes_in_any_style(exercise):
    for body in RIGHT.get(exercise.name, ()):
        result = checked(exercise.name, body)
        assert result.passed is True, (body, result.message)


@each
def test_what_is_wrong_in_other_ways_is_answered_in_words(exercise):
    for body in STRANGE.get(exercise.name, ()):
        result = checked(exercise.name, body)
        assert result.passed is False, body
        assert len(result.message) > 40
        assert not re.search(r"<locals>|<lambda>|__answer__|<answer>|_Returns", result.message), result.message


def tells(bank, known):
    """Is it wrong, and not only an error or zeros?"""
    outcomes = [known.outcome(i) for i in range(len(bank.cases))]
    return any(not same(o, w) and o.is_telling() for o, w in zip(outcomes, bank.wanted, strict=True))


@each
def test_slips_that_nobody_typed_are_rejected(exercise):
    """The machine's slips, and pairs of typed mistakes: those that do something else than the solution are rejected."""
    bank = bank_of(exercise)
    rng = np.random.default_rng(5)
    with quiet():
        slips = [k for k in bank.mutants if tells(bank, k)]
        pairs = [k for k in itertools.islice(bank.pairs(bank.changes), 0, 3000, 7) if tells(bank, k)]
    chosen = [slips[i] for i in rng.permutation(len(slips))[:15]]
    chosen += [pairs[i] for i in rng.permutation(len(pairs))[: 30 - len(chosen)]] if pairs else []
    chosen += [slips[i] for i in rng.permutation(len(slips))[15 : 45 - len(chosen)]]
    assert len(chosen) >= 30
    results = [run(exercise, known.program) for known in chosen]
    assert [r.passed for r in results] == [False] * len(results)
    named = sum(r.misconception is not None for r in results)
    print(f"{exercise.name}: {named} of {len(results)} generated mistakes are named")
    assert named >= 0.9 * len(results)


@each
def test_no_spelling_of_a_mistake_passes(exercise):
    bank = bank_of(exercise)
    with quiet():
        for known in bank.changes:
            wrong = [i for i, w in enumerate(bank.wanted) if not same(known.outcome(i), w)]
            assert wrong, f"{known.name} passes every case"


PENDING = {"01"}
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def cells_of(lesson):
    book = json.loads((NOTEBOOKS / lesson.notebook).read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]


@pytest.mark.parametrize("lesson", lessons.LESSONS, ids=lambda lesson: lesson.name)
def test_each_stub_stands_in_the_notebook_as_the_exercise_says(lesson):
    """And the solution, written into it, passes the notebook's own check."""
    sources = cells_of(lesson)
    for name in lesson.exercises:
        if name not in EXERCISES or lesson.notebook[:2] in PENDING:
            continue
        exercise = EXERCISES[name]
        stubs = [s for s in sources if f"def {exercise.function_name}(" in s]
        assert len(stubs) == 1, f"the stub of {name} stands in one cell"
        assert exercise.stub.strip() in stubs[0], f"{lesson.notebook}: write the stub of {name} as\n{exercise.stub}"
        checks = [s for s in sources if f"check.{name}(" in s]
        assert checks == [f"check.{name}({exercise.function_name})"]
        filled = stubs[0].replace(exercise.stub.strip(), exercise.solution.strip())
        names = cell(filled, exercise.names() | {"check": check})
        assert eval(checks[0], names).passed is True
        ast.parse(filled)


@each
def test_the_arguments_survive_the_reference(exercise):
    for case in exercise.drawn:
        outcome = attempt(exercise.right, case.arguments)
        assert not outcome.changed
        assert not outcome.error


def test_written_functions_are_as_in_a_cell():
    assert written("softmax", "x").__name__ == "my_softmax"
