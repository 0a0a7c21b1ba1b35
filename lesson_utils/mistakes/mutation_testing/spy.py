"""A spy stands in for the function under test: it notes each call, and may change what the call returns."""

import inspect
import random
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.run.limits import TimeUp
from lesson_utils.mistakes.run.outcome import Outcome
from lesson_utils.mistakes.run.sandbox import TIME_LIMIT, attempt, copied, mend_modules

MOST_CALLS = 200  # that are noted

After = Callable[[Any, Sequence[Any]], Any]  # result, arguments -> what the test gets instead


@dataclass
class Call:
    """One call of the function under test: arguments and result, or error."""

    arguments: tuple[Any, ...]
    value: Any = None
    error: BaseException | None = None


@dataclass
class Run:
    """One run of a test."""

    outcome: Outcome
    calls: list[Call]
    mended: list[str]  # what the test had overwritten of NumPy and the library
    seconds: float  # of computing

    @property
    def passed(self) -> bool:
        return self.outcome.error is None and not self.outcome.timed_out


def key(arguments: Sequence[Any]) -> int:
    """Return a number that is another one for other arguments."""
    parts = (x.tobytes() + str(x.shape).encode() if isinstance(x, np.ndarray) else repr(x).encode() for x in arguments)
    return zlib.crc32(b"|".join(parts))


def spy(exercise: Exercise, function: Callable[..., Any], calls: list[Call], after: After | None = None) -> Any:
    """Return `function` with the exercise's name and parameters; it adds each call to `calls`."""
    names: dict[str, Any] = {}
    exec(f"def f({exercise.takes}): ...", exercise.names(), names)
    signature = inspect.signature(names["f"])

    def under_test(*arguments: Any, **keywords: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{error}; it is called as `{exercise.name}({exercise.takes})`") from None
        bound.apply_defaults()
        call = Call(tuple(copied(bound.args)))
        if len(calls) < MOST_CALLS:
            calls.append(call)
        try:
            value = function(*bound.args)
            if after:
                value = after(value, call.arguments)
        except Exception as error:
            call.error = error
            raise
        # a copy: the test may write into what it gets
        call.value = tuple(copied(value)) if isinstance(value, tuple) else copied([value])[0]
        return value

    under_test.__name__ = under_test.__qualname__ = exercise.name
    under_test.__signature__ = signature  # type: ignore[attr-defined]
    under_test.__doc__ = exercise.task
    return under_test


class _Once:
    """The test, with its function. It has the test's code, since errors are looked for in that code's file."""

    def __init__(self, test: Callable[..., Any], function: Any, seed: int) -> None:
        self.test, self.function, self.seed = test, function, seed
        self.__code__ = getattr(test, "__code__", None)

    def __call__(self) -> Any:
        random.seed(self.seed)
        np.random.seed(self.seed)  # noqa: NPY002
        try:
            return self.test(self.function)
        except (Exception, SystemExit, GeneratorExit, KeyboardInterrupt, TimeUp):
            raise
        except BaseException as error:  # as `pytest.fail` raises it
            raise AssertionError(str(error)) from error


def run(
    test: Callable[..., Any],
    exercise: Exercise,
    function: Callable[..., Any],
    after: After | None = None,
    seed: int = 0,
    time_limit: float = TIME_LIMIT,
) -> Run:
    """Run `test` on `function`, in safety. Another `seed` gives other numbers, unless the test has a seed of its own."""
    calls: list[Call] = []
    began = time.process_time()
    outcome = attempt(_Once(test, spy(exercise, function, calls, after), seed), (), time_limit)
    return Run(outcome, calls, mend_modules(), time.process_time() - began)
