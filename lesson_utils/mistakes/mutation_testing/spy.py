"""What a learner's test is given: the function under test, which notes how it is called; and one run of a test."""

import inspect
import random
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.run.sandbox import TIME_LIMIT, Outcome, TimeUp, attempt, copied, mend_modules

MOST_CALLS, MOST_NUMBERS = 200, 1_000_000  # that are noted
ULPS = 16  # by so many units in the last place another right spelling may differ

After = Callable[[Any, Sequence[Any], int], Any]  # result, arguments, number of the call -> what the test gets


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
    calls: list[Call] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)  # what it had overwritten of NumPy and the library
    seconds: float = 0.0  # of computing

    @property
    def passed(self) -> bool:
        return self.outcome.error is None and not self.outcome.timed_out


def signature_of(exercise: Exercise) -> inspect.Signature:
    names: dict[str, Any] = {}
    exec(f"def f({exercise.takes}): ...", exercise.names(), names)
    return inspect.signature(names["f"])


def kept(value: Any) -> Any:
    """A copy of a result: a test may write into what it gets."""
    return tuple(copied(value)) if isinstance(value, tuple) else copied([value])[0]


def stand_in(exercise: Exercise, function: Callable[..., Any], calls: list[Call], after: After | None = None) -> Any:
    """`function` with the exercise's name and parameters; each call is noted, `after` may change what it returns."""
    signature, numbers = signature_of(exercise), 0

    def under_test(*arguments: Any, **keywords: Any) -> Any:
        nonlocal numbers
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{error}; it is called as `{exercise.name}({exercise.takes})`") from None
        bound.apply_defaults()
        given = bound.args
        call = Call(tuple(copied(given)))
        numbers += sum(x.size for x in given if isinstance(x, np.ndarray))
        if len(calls) < MOST_CALLS and numbers < MOST_NUMBERS:
            calls.append(call)
        try:
            value = function(*given)
            if after:
                value = after(value, call.arguments, len(calls) - 1)
        except Exception as error:
            call.error = error
            raise
        call.value = kept(value)
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
    """Run `test` on `function`, in safety. Numbers drawn without a seed of the test's own are others for another `seed`."""
    calls: list[Call] = []
    began = time.process_time()
    outcome = attempt(_Once(test, stand_in(exercise, function, calls, after), seed), (), time_limit)
    return Run(outcome, calls, mend_modules(), time.process_time() - began)


# --- What a right function, or a useless one, may return -------------------------------------------------------------


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The result, or the results, changed one by one."""
    return tuple(change(x) for x in value) if isinstance(value, tuple) else change(value)


def otherwise_rounded(value: Any, arguments: Sequence[Any], n: int) -> Any:
    """What another right spelling gives: the same numbers but for the last digits.

    Numbers that were only moved, and those that any spelling gives exactly (0, 1, 0.5), stay.
    """
    arrays = [np.ravel(x) for x in arguments if isinstance(x, np.ndarray | np.number | float | int)]
    before = np.concatenate(arrays) if arrays else np.zeros(0)

    def change(x: Any) -> Any:
        if not isinstance(x, np.ndarray | np.floating | float) or np.asarray(x).dtype.kind != "f":
            return x
        a = np.asarray(x)
        exact = ~np.isfinite(a) | (a * 1024 == np.round(a * 1024)) | np.isin(a, before)
        wave = np.cos(1.0 + np.arange(a.size)).reshape(a.shape)
        other = np.where(exact, a, a * (1 + ULPS * np.finfo(a.dtype).eps * wave)).astype(a.dtype)
        return other if isinstance(x, np.ndarray) else type(x)(other)

    return each(value, change)


def key(arguments: Sequence[Any]) -> int:
    """A number that is another one for other arguments."""
    parts = (x.tobytes() + str(x.shape).encode() if isinstance(x, np.ndarray) else repr(x).encode() for x in arguments)
    return zlib.crc32(b"|".join(parts))


def nonsense(value: Any, arguments: Sequence[Any], n: int) -> Any:
    """Random results of the right shapes and dtypes; for the same arguments, the same."""
    rng = np.random.default_rng(key(arguments))

    def change(x: Any) -> Any:
        if not isinstance(x, np.ndarray | np.number | float | int):
            return x
        a = np.asarray(x)
        if a.dtype.kind == "b":
            made: Any = rng.random(a.shape) < 0.5
        elif a.dtype.kind in "iu":
            made = rng.integers(0, 100, size=a.shape)
        else:
            made = rng.normal(size=a.shape)
        made = np.asarray(made).astype(a.dtype)
        return made if isinstance(x, np.ndarray) else type(x)(made)

    return each(value, change)
