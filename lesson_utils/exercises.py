"""Exercises that mark themselves: `check.softmax(my_softmax)` says what is right, or names the mistake.

What is right is used: `softmax = check.softmax.mine(my_softmax)` is the learner's function once it passes, and ours
until then, so that the cells below an unsolved exercise run.

The other way round, `check.finds_bugs(my_test)` says which bugs a learner's test finds.
"""

import io
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import course, progress

if TYPE_CHECKING:
    from lesson_utils.mistakes.exercise import Exercise
    from lesson_utils.mistakes.mutation_testing.result import TestResult
    from lesson_utils.mistakes.verdict import CheckResult

# Exercises of version 1 that went → what stands in their place. Those that only moved to another notebook (`rms_norm`,
# `grouped_attention` and `rotary_halves`, from 09 to 12) are checked as before.
GONE = {
    "gru_step": "our own is `recurrent.gru_cell`",
    "merge_heads": "notebook 03 merges heads in `check.multi_head_attention`; our own is `attention.merge_heads`",
    "add_positions": "the right answer was X + table[:T].astype(X.dtype); notebook 04 goes on to `check.rotate`",
    "shift_matrix": "our own is `positions.shift_matrix`",
    "masked_attention": "notebook 06 asks for `check.leak_test`; `attention.scaled_dot_product_attention` takes a mask",
    "rolling_mask": "our own is `efficient.window_mask`, with causal=True and without `keep`",
    "cache_bytes": "our own is `costs.cache_bytes`",
    "smoothed_loss": "notebook 08 asks for `check.loss_backward`; our own is `ops.cross_entropy`",
    "leak_across_rows": "notebook 10 gives this instrument, and asks for `check.cache_parity`",
    "triage": "notebook 10 goes on to `check.diagnosis`",
    "mend_merge": "notebook 03 merges heads in `check.multi_head_attention`; notebook 10 has `check.mend_mask`",
    "mend_block": "notebook 05 asks for the block in `check.pre_norm_block`; notebook 10 has `check.mend_mask`",
    "mend_groups": "notebook 12 asks for it in `check.grouped_attention`; notebook 10 has `check.mend_mask`",
}
SAME = "\nThis is the same function as at the last check. If you have changed it since, run its cell first."


class _Exercises(Mapping[str, "Exercise"]):
    """Every exercise, by name. A lesson's exercises are imported when one of them is looked up."""

    def __getitem__(self, name: str) -> "Exercise":
        for lesson in course.LESSONS:
            if name in lesson.exercises:
                return lesson.exercise(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for lesson in course.LESSONS for name in lesson.exercises)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Check:
    """`check.<exercise>(function)`; tab completion lists the exercises.

    What judges, and the lesson that owns the exercise, are imported with the first check.
    """

    def __init__(self, aided: bool = True) -> None:
        self._aided = aided

    def __getattr__(self, name: str) -> "_ExerciseCheck | _AnswerCheck":
        if name in (exercises := _Exercises()):
            return _ExerciseCheck(exercises[name], self._aided)
        for lesson in course.LESSONS:
            if name in lesson.answers:
                return _AnswerCheck(name, lesson.answer(name), self._aided)
        if name in GONE:
            raise AttributeError(f"check.{name} belonged to version 1 of the course. Today, {GONE[name]}")
        raise AttributeError(f"no exercise {name!r}; there are: {', '.join(_Exercises())}")

    def finds_bugs(self, test: Any, of: Any = None) -> "TestResult":
        """Run a test on the right function and on a bank of its bugs, and say which survive, and why.

        Args:
            test: a function of one argument, the function under test; it fails, by `assert`, if that is wrong.
            of: the exercise's name, such as "attention"; left out, the test's parameter says it.
        """
        from lesson_utils.mistakes.mutation_testing.analysis import judge_test

        result = judge_test(test, of, _Exercises(), course.published_bugs())
        if result.passed:
            progress.note("finds_bugs")
        return result if self._aided else replace(result, more=())

    def __dir__(self) -> list[str]:
        return ["finds_bugs", *_Exercises(), *(name for lesson in course.LESSONS for name in lesson.answers)]


class _AnswerCheck:
    """The check of an answer that is no function: call it with the answer."""

    def __init__(self, name: str, judge: Callable[[Any], "CheckResult"], aided: bool) -> None:
        self._name, self._judge, self._aided = name, judge, aided

    def __call__(self, answer: Any) -> "CheckResult":
        """Say whether the answer is right, or what speaks against it."""
        result = self._judge(answer)
        if result.passed:
            progress.note(self._name)
        return result if self._aided else replace(result, hints=())


class _ExerciseCheck:
    """The check of one exercise: call it with the learner's function."""

    def __init__(self, exercise: "Exercise", aided: bool) -> None:
        self._exercise, self._aided = exercise, aided

    def __call__(self, function: Any) -> "CheckResult":
        """Say whether the function is right, or name its mistake."""
        from lesson_utils.mistakes.judge import run
        from lesson_utils.mistakes.run.limits import ending
        from lesson_utils.mistakes.verdict import CheckResult

        if problem := _did_not_run(function):
            return CheckResult(False, problem)
        with ending(), _printing():  # that it is at work, the check says at once
            result = run(self._exercise, function)
        if result.passed is False and _last.get(self._exercise.name, (None,))[0] is function:
            result = replace(result, message=result.message + SAME)
        _last[self._exercise.name] = function, bool(result.passed)
        if result.passed:
            progress.note(self._exercise.name)
        return result if self._aided else replace(result, hints=(), solution="", in_pytorch="")

    def shows(self, *arguments: Any) -> "CheckResult":
        """Say whether the bug in a function that is to be mended shows on these arguments."""
        from lesson_utils.mistakes.shows import shows

        return shows(self._exercise, arguments)

    def mine(self, function: Any) -> Callable[..., Any]:
        """Return the learner's function if it is right, and otherwise ours; print which.

        A function that was checked a moment ago is not checked again.
        """
        judged, passed = _last.get(self._exercise.name, (None, False))
        if judged is not function:
            passed = bool(self(function).passed)
        name = self._exercise.function_name
        if passed:
            print(f"From here on your own `{name}` runs.")
            own: Callable[..., Any] = function
            return own
        print(f"From here on our `{name}` runs. When yours is right, run this cell again, and yours takes its place.")
        return self._exercise.function()


def _did_not_run(function: Any) -> str:
    """Return what to do if a newer version of the function stands in a cell that ended in an error; else "".

    IPython keeps the source of every cell that was run, and that of the cell where a function was made. If the newest
    cell with a `def` of this name is another one, that cell made no function.
    """
    code, name = getattr(function, "__code__", None), getattr(function, "__name__", "")
    shell = _shell()
    if shell is None or code is None or shell.user_ns.get(name) is not function:
        return ""
    made_in = "".join(linecache.getlines(code.co_filename)).strip()
    cells = [source.strip() for source in shell.user_ns.get("In", ())]
    definition = re.compile(rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\b", re.M)
    written = next((source for source in reversed(cells) if definition.search(source)), made_in)
    if made_in not in cells or written == made_in:
        return ""
    return (
        f"The newest version of `{name}` did not run, because its cell ended in an error. Mend the error, run the "
        "cell, and check again. (A verdict now would be about the version before.)"
    )


def _shell() -> Any:
    """Return IPython's shell, if there is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


@contextmanager
def _printing() -> Iterator[None]:
    """Show what a learner's function prints under a line that says where it comes from."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        if text := printed.getvalue().rstrip("\n"):
            print(f"Your function printed:\n{text}")


_last: dict[str, tuple[Any, bool]] = {}  # of each exercise, the function checked last, and whether it was right


check = _Check()
unaided = _Check(aided=False)  # for a student's edition (`course.py edition`): neither hints nor solution
