"""Judge a learner's function beside the reference: what is right, or which mistake was made.

An exercise is specified by its solution: no expected numbers are stored. If the results are wrong, `recognise` looks for
the mistake that does the same; if none does, `differences` says where and how they are wrong.
"""

import ast
import contextlib
import dis
import inspect
import os
from collections.abc import Sequence
from time import monotonic
from types import CodeType
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.explain.almost_right import changes_in_place, dtype_problem, form_problem
from lesson_utils.mistakes.explain.differences import describe
from lesson_utils.mistakes.explain.errors import error_message, foreign_words, is_about_dots
from lesson_utils.mistakes.explain.formulas import formulas
from lesson_utils.mistakes.explain.style_remarks import style_remarks
from lesson_utils.mistakes.recognise.fault_bank import Bank, bank_of
from lesson_utils.mistakes.recognise.learner_code import learner_code
from lesson_utils.mistakes.recognise.search import Diagnosis, recognise
from lesson_utils.mistakes.run.kernel import kernel_as_before, mend_modules
from lesson_utils.mistakes.run.limits import TIME_LIMIT, TimeUp, ending, stopped
from lesson_utils.mistakes.run.outcome import Outcome, entries, readable, same
from lesson_utils.mistakes.run.sandbox import attempt, quick, quiet
from lesson_utils.mistakes.verdict import CheckResult, without_head


@ending()
def run(exercise: Exercise, function: Any, time_limit: float = TIME_LIMIT) -> CheckResult:
    """Judge `function` on the exercise's cases; whatever a learner wrote, the answer is a CheckResult, in ten seconds of work."""
    function, overwritten, bank = readable(function), mend_modules(), bank_of(exercise)

    def verdict(passed: bool | None, message: str, misconception: str | None = None) -> CheckResult:
        also = dict.fromkeys([*overwritten, *mend_modules()])
        if also:
            names = ", ".join(f"`{name}`" for name in also)
            message += (
                f"\nBy the way: a cell had put something else in the place of {names}. What belongs there is back."
            )
        return CheckResult(passed, message, misconception, exercise.hints, exercise.solution, exercise.in_pytorch)

    if function is None or function is ...:
        return verdict(None, f"Write the function above, then run this cell again. {_without_brackets(exercise)}")
    if problem := _no_function(exercise, function, bank.cases[0]):
        return verdict(False, problem)
    outcomes: list[Outcome] = []
    ends = monotonic() + time_limit  # of all calls together
    for case in bank.cases:
        seconds, is_first = max(ends - monotonic(), 0.1), not outcomes  # what is printed is shown once
        outcomes.append(attempt(function, case.arguments, seconds, exercise.library, show=is_first))
        if outcomes[-1].timed_out:  # once is enough
            break
    overwritten += mend_modules()
    if overwritten:  # what the function did to NumPy, the reference must not meet
        bank = Bank(exercise)
    right = [*map(same, outcomes, bank.wanted)]
    if not all(right) and (name := _unwritten(function)):
        message = f"Your function uses `{name}`, which returns nothing yet."
        return verdict(False, f"{message} Write `{name}` first, in its exercise above.")
    if todo := stub_problem(function, outcomes[0]):
        return verdict(None, f"{todo}, run its cell, then run this one again.")
    if exercise.broken and _is_untouched(exercise, function, outcomes):
        return verdict(None, exercise.symptom)
    if outcomes[-1].timed_out:
        label = bank.cases[len(outcomes) - 1].label
        where = outcomes[-1].where
        why = "Does a loop never end?" if _has_loop(function) else "What it does there takes too long."
        message = f"Your function had not returned after some seconds, on {label}{where}. {why}"
        return verdict(False, message, "stopped")
    if not all(right) and not any(all(map(same, outcomes, other)) for other in bank.also_right()):
        with kernel_as_before(show=False):  # the search calls the function again, and variants of it
            message, name = _diagnosis(bank, function, outcomes, right)
            message = _with_changes(exercise, function, outcomes, message) + _with_dtype(
                bank, function, outcomes, message, name
            )
            return verdict(False, message, name)
    for case, outcome, wanted in zip(bank.cases, outcomes, bank.wanted, strict=True):
        if problem := form_problem(exercise, function, case, outcome, wanted):
            return verdict(False, problem)
    if borrowed := next((name for outcome in outcomes for name in outcome.borrowed), None):
        message = f"`{borrowed}` is the library's own, and right. Now write it yourself: the hints lead the way."
        return verdict(False, message, "the library's own")
    if _is_overwritten(function, bank.cases[0], outcomes[0]):
        return verdict(False, OVERWRITTEN)
    also = style_remarks(exercise, function, outcomes, bank.wanted)
    return verdict(True, exercise.praise + (f"\nRight, and yet: {' '.join(also)}" if also else ""))


def _is_untouched(exercise: Exercise, function: Any, outcomes: Sequence[Outcome]) -> bool:
    """Tell whether a broken stub stands as it was, and does the same; who changed it in vain is told of the mistake."""
    mine, program = learner_code(function), exercise.program(exercise.broken)
    broken = ast.parse(exercise.body(exercise.broken)).body
    if mine and [*map(ast.unparse, mine.body)] != [*map(ast.unparse, broken)]:
        return False
    with quiet():
        return all(same(o, quick(program, case.arguments)) for o, case in zip(outcomes, exercise.drawn, strict=False))


def _with_changes(exercise: Exercise, function: Any, outcomes: Sequence[Outcome], message: str) -> str:
    """Return the message for wrong results; before it, that arguments were changed, if it does not say so."""
    changed = sorted({i for outcome in outcomes for i in outcome.changed})
    if not changed or "caller's" in message:
        return message
    first = changes_in_place(exercise, function, changed, message)
    return f"{first[0].upper()}{first[1:]}\nThe results are wrong, too. {without_head(message)}"


def _with_dtype(bank: Bank, function: Any, outcomes: Sequence[Outcome], message: str, name: str | None) -> str:
    """Return the words for a wrong dtype beside a mistake that does not make it."""
    if "dtype" in message or "float64" in message:
        return ""
    named = [fault for fault in bank.changes if fault.name in (name or "").split("; ")]
    for i, (outcome, wanted) in enumerate(zip(outcomes, bank.wanted, strict=True)):
        made = [dtype for fault in named for dtype in _dtypes(fault.outcome(i)) if dtype]  # to NumPy, None is float64
        rows = zip(bank.exercise.returns, outcome.results(), _dtypes(outcome), _dtypes(wanted), strict=False)
        for result, value, got, want in rows:
            empty = value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, list) and not value
            if empty:  # an empty list becomes an array of floats, whatever it was to hold
                continue
            if got is None and want is not None and isinstance(outcome.value, list) and "list" not in message:
                return f"\nOne thing more: `{result}` is a list; put `np.array(...)` around it."
            if got is None or want is None or (got in made and want not in made) or want.kind == "f" != got.kind:
                continue
            is_float = [isinstance(x, np.ndarray) and want.kind == "f" for x in outcome.results()]
            cast = tuple(x.astype(want) if f else x for x, f in zip(outcome.results(), is_float, strict=True))
            kept = Outcome(cast if len(cast) > 1 else cast[0])
            if problem := dtype_problem(bank.exercise, function, bank.cases[i], kept, result, value, want):
                return f"\nOne thing more: {problem}"
    return ""


def _dtypes(outcome: Outcome) -> list[np.dtype[Any] | None]:
    return [x.dtype if isinstance(x, np.ndarray) else None for x in outcome.results()]


OVERWRITTEN = (
    "The numbers are right; one thing is left. Your function returns the same array each time, so the next call "
    "overwrites the result of the one before. Make the array inside the function."
)


def _is_overwritten(function: Any, case: Case, outcome: Outcome) -> bool:
    """Tell whether a call with other numbers changes what the first call returned."""
    flipped = (np.flip(x).copy() if isinstance(x, np.ndarray) else x for x in case.arguments)
    other = tuple(1.5 * x if type(x) is float else x for x in flipped)  # of the same kinds and sizes
    attempt(function, other, show=False)
    return not same(outcome, Outcome(outcome.returned))


def _without_brackets(exercise: Exercise) -> str:
    """Return how to hand a function over, for who has called it and handed its result over."""
    return f"Hand over the function itself, without brackets: `check.{exercise.name}({exercise.function_name})`."


def _no_function(exercise: Exercise, function: Any, case: Case) -> str | None:
    """Return what is wrong with what was handed over, before it is called, or None."""
    if isinstance(function, type):
        return "This is a class. Write a plain function: `def`, its parameters, `return`."
    if not callable(function):
        return f"This is a value ({type(function).__name__}), not a function. {_without_brackets(exercise)}"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "`async def` makes a function that has to be awaited. Leave out `async`."
    if inspect.isgeneratorfunction(function):
        return "`yield` makes a generator of your function: it returns nothing until somebody asks. Use `return`."
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return None
    try:
        signature.bind(*case.arguments)
    except TypeError:
        names = ", ".join(exercise.parameters[: len(case.arguments)])
        return f"The check calls your function with `({names})`; yours takes `{signature}`."
    return None


def _instructions(code: CodeType) -> set[str]:
    return {instruction.opname for instruction in dis.get_instructions(code)}


IDLE = {"NOP", *_instructions((lambda: None).__code__)}  # what this Python makes of functions that do nothing
REPLACE = "Replace the `...` above with your code"


def stub_problem(function: Any, outcome: Outcome) -> str | None:
    """Return what to do with a function that nobody has worked on yet, or None."""
    if any(value is ... for value in outcome.results()) or (outcome.error and is_about_dots(outcome.error)):
        return REPLACE
    code = getattr(function, "__code__", None)
    if outcome.value is not None or outcome.error or outcome.timed_out or not isinstance(code, CodeType):
        return None
    if _instructions(code) - IDLE:
        return None
    with contextlib.suppress(OSError, TypeError):  # no source to look at
        if "..." in inspect.getsource(function):
            return REPLACE
    return "Write the function's body above"


def _unwritten(function: Any) -> str | None:
    """Return the name of a stub that this function uses, such as that of an earlier exercise, or None."""
    try:
        used = inspect.getclosurevars(function).globals
    except (TypeError, ValueError):  # no plain function
        return None
    stubs = (name for name, f in used.items() if inspect.isfunction(f) and stub_problem(f, Outcome()) == REPLACE)
    return next(stubs, None)


def _has_loop(function: Any) -> bool:
    """Tell whether a loop stands in a function or its helpers, or may stand there."""
    mine = learner_code(function)
    return mine is None or any(isinstance(n, ast.For | ast.While | ast.comprehension) for n in ast.walk(mine.tree))


def _diagnosis(bank: Bank, function: Any, outcomes: Sequence[Outcome], right: Sequence[bool]) -> tuple[str, str | None]:
    """Return the message for results that are wrong, and the name of the mistake."""
    cases = bank.cases

    def error(i: int) -> str:
        return error_message(outcomes[i], cases[i].label, bank.exercise)

    broken = [i for i, o in enumerate(outcomes) if o.error]
    for i in broken:
        if isinstance(outcomes[i].error, SystemExit | GeneratorExit):
            return error(i), None
    also = ""  # the words beside any message
    with contextlib.suppress(TimeUp), quiet(), stopped(1, busy=4):
        also = formulas(bank.exercise, function, cases, outcomes, bank.wanted)
    for i in broken:
        if isinstance(outcomes[i].error, AttributeError | TypeError) and foreign_words(outcomes[i].line, bank.exercise):
            return error(i) + also, None
    first = right.index(False)
    unwritten = False
    if not outcomes[first].error and _comparable(outcomes[first], bank.wanted[first]):
        again = attempt(function, cases[first].arguments, left=0.5)
        unwritten = not again.error and not again.timed_out and not same(again, outcomes[first])
        if unwritten and not same(attempt(function, cases[first].arguments), outcomes[first]):
            return CHANGING, None
        if unwritten:
            also = UNWRITTEN + also
    comparable = all(o.error or _comparable(o, want) for o, want in zip(outcomes, bank.wanted, strict=False))
    found = _found(bank, function, outcomes) if comparable else None
    if found and not found.is_all:
        also += f"\nLook also at this. {found.message}"
    elif found:
        o = outcomes[broken[0]] if broken else None
        if o and not found.explains_errors:
            rest = without_head(found.message) + also
            return f"{error(broken[0])}\nElsewhere the results are wrong, too. {rest}", found.name
        where = f"\n({type(o.error).__name__} on {cases[broken[0]].label}{o.where})" if o else ""
        return found.message + where + also, found.name
    if broken and (broken[0] == 0 or all(r or o.error for r, o in zip(right, outcomes, strict=True))):
        good = [case.label for case, is_right in zip(cases, right, strict=True) if is_right]
        right_on = f"\nRight on: {'; '.join(good[:3])}{' …' if len(good) > 3 else ''}." if good else ""
        return error(broken[0]) + right_on + also, None
    return describe(bank, outcomes, unwritten) + also, None


def _found(bank: Bank, function: Any, outcomes: Sequence[Outcome]) -> Diagnosis | None:
    """Return the mistake that the search finds. If the search itself fails, measurements are left, and no traceback."""
    try:
        return recognise(bank, function, outcomes)
    except Exception:
        if os.environ.get("COURSE_STRICT"):  # in tests
            raise
        return None


CHANGING = (
    "Your function gives another result each time it is called: does it draw random numbers, or remember earlier calls? "
    "The result follows from the arguments alone."
)
UNWRITTEN = (
    "\n`np.empty` makes an array that holds whatever was in memory, and part of yours is never written. "
    "The check fills it with NaN, so that it shows."
)


def _comparable(outcome: Outcome, wanted: Outcome) -> bool:
    """Return whether it can be compared with a mistake's results: arrays, numbers, or what the solution returns."""
    own = {type(x).__name__ for x in wanted.results() if hasattr(x, "__array__")}  # such as a Series of pandas
    return all(
        (isinstance(x, np.ndarray | np.generic | float | int | list) or type(x).__name__ in own)
        and not any(isinstance(entry, str) for entry in entries(x))
        for x in outcome.results()
    )
