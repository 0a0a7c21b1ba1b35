"""Exercises that mark themselves: `check.softmax(my_softmax)` says what is right, or names the mistake.

What is right is used: `softmax = check.softmax.mine(my_softmax)` is the learner's function once it passes, and ours
until then, so that the cells below an unsolved exercise run.

The other way round, `check.finds_bugs(my_test)` says which bugs a learner's test finds.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import course, newest, progress

if TYPE_CHECKING:
    from lesson_utils.mistakes.exercise import Exercise
    from lesson_utils.mistakes.mutation_testing.result import TestResult
    from lesson_utils.mistakes.verdict import CheckResult


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

    def __getattr__(self, name: str) -> "_ExerciseCheck":
        if name in (exercises := _Exercises()):
            return _ExerciseCheck(exercises[name], self._aided)
        raise AttributeError(f"no exercise {name!r}; there are: {', '.join(_Exercises())}")

    def finds_bugs(self, test: Any, of: Any = None) -> "TestResult":
        """Run a test on the right function and on a bank of its bugs, and say which survive, and why.

        Args:
            test: a function of one argument, the function under test; it fails, by `assert`, if that is wrong.
            of: the exercise's name, such as "attention"; left out, the test's parameter says it.
        """
        from lesson_utils.mistakes.mutation_testing.analysis import judge_test

        result = judge_test(test, of, _Exercises(), course.published_bugs())
        return result if self._aided else replace(result, more=())

    def __dir__(self) -> list[str]:
        return ["finds_bugs", *_Exercises()]


class _ExerciseCheck:
    """The check of one exercise: call it with the learner's function."""

    def __init__(self, exercise: "Exercise", aided: bool) -> None:
        self._exercise, self._aided = exercise, aided

    def __call__(self, function: Any) -> "CheckResult":
        """Say whether the function is right, or name its mistake."""
        from lesson_utils.mistakes.judge import run
        from lesson_utils.mistakes.run.limits import ending
        from lesson_utils.mistakes.verdict import CheckResult

        if problem := newest.did_not_run(function):
            return CheckResult(False, problem)
        with ending(), newest.printing():  # that it is at work, the check says at once
            result = run(self._exercise, function)
        if result.passed is False and _last.get(self._exercise.name, (None,))[0] is function:
            result = replace(result, message=result.message + newest.SAME)
        _last[self._exercise.name] = function, bool(result.passed)
        if result.passed:
            progress.note(self._exercise.name)
        return result if self._aided else replace(result, hints=(), solution="")

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


_last: dict[str, tuple[Any, bool]] = {}  # of each exercise, the function checked last, and whether it was right


check = _Check()
unaided = _Check(aided=False)  # for a student's edition (`course.py edition`): neither hints nor solution
