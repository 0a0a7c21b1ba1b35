"""A spy stands in for the function under test: it notes each call, and may alter what the call returns."""

import inspect
import random
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.run.kernel import mend_modules
from lesson_utils.mistakes.run.limits import TIME_LIMIT, TimeUp
from lesson_utils.mistakes.run.outcome import Outcome
from lesson_utils.mistakes.run.sandbox import attempt, copied

MOST_CALLS = 100  # that are noted

Function = Callable[..., Any]
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


def spy(exercise: Exercise, function: Function, calls: list[Call], after: After | None = None) -> Function:
    """Return `function` with the exercise's name and parameters; it adds each call to `calls`."""
    signature = inspect.signature(exercise.function())

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
            value = after(value, call.arguments) if after else value
        except Exception as error:
            call.error = error
            raise
        # a copy: the test may write into what it gets
        call.value = tuple(copied(value)) if isinstance(value, tuple) else copied([value])[0]
        return value

    under_test.__name__ = under_test.__qualname__ = exercise.name
    under_test.__signature__ = signature  # type: ignore[attr-defined]
    return under_test


class _Once:
    """The test, with its function. It has the test's code, since errors are looked for in that code's file."""

    def __init__(self, test: Function, function: Function, seed: int) -> None:
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
    test: Function,
    exercise: Exercise,
    function: Function,
    after: After | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> Run:
    """Run `test` on `function`, in safety. Another `seed` gives other numbers, unless the test has a seed of its own."""
    calls, began = list[Call](), time.process_time()
    outcome = attempt(_Once(test, spy(exercise, function, calls, after), seed), (), seconds or TIME_LIMIT)
    return Run(outcome, calls, mend_modules(), time.process_time() - began)


# --- Results that are altered: does a test notice? ------------------------------------------------------------------------


def altered(alter: Callable[[np.ndarray, np.random.Generator], Any]) -> After:
    """Return an `after` for the spy that alters each result; for the same arguments, alike."""

    def after(value: Any, arguments: Sequence[Any]) -> Any:
        rng, several = np.random.default_rng(key(arguments)), value if isinstance(value, tuple) else (value,)
        made = [np.asarray(alter(np.asarray(x), rng)).astype(np.asarray(x).dtype) for x in several]
        made = [a if isinstance(x, np.ndarray) else type(x)(a) for a, x in zip(made, several, strict=True)]
        return tuple(made) if isinstance(value, tuple) else made[0]

    return after


randomised = altered(lambda a, rng: rng.normal(size=a.shape) > 0 if a.dtype == bool else 9 * rng.normal(size=a.shape))
inexact = altered(lambda a, rng: a + 0.05 * np.abs(a).max(initial=0) * rng.uniform(-1, 1, a.shape))
shuffled = altered(lambda a, rng: rng.permutation(a.ravel()).reshape(a.shape))
ruined = altered(lambda a, rng: ~a if a.dtype == bool else np.nan * a)
emptied = altered(lambda a, rng: a.ravel()[:0])


def otherwise_rounded(value: Any, arguments: Sequence[Any]) -> Any:
    """Return the numbers with other last digits, as another right spelling may; those that are exact, or moved, stay."""
    before = np.concatenate([np.zeros(0), *(np.ravel(x) for x in arguments if isinstance(x, np.ndarray | float | int))])

    def round_otherwise(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if a.dtype.kind != "f":
            return a
        exact = ~np.isfinite(a) | (a * 1024 == np.round(a * 1024)) | np.isin(a, before)  # as 0, 1 and 0.5 are
        return np.where(exact, a, a * (1 + 16 * np.finfo(a.dtype).eps * rng.choice([-1, 1], a.shape)))

    return altered(round_otherwise)(value, arguments)
