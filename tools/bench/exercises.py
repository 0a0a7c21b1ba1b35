"""The time that the check of each exercise takes: for a right answer, the first time and again, and for wrong ones."""

import linecache
from collections.abc import Callable, Sequence
from statistics import median
from time import thread_time
from typing import Any

from lesson_utils.classroom import course
from lesson_utils.mistakes.exercise import Exercise
from lesson_utils.mistakes.judge import run as check


def run(names: Sequence[str] = ()) -> None:
    """Print a line for each of these exercises (without names, of all), then medians and the slowest."""
    every = course.exercises()
    rows = {name: _times(every[name]) for name in names or every}
    print("seconds of computing for a right answer, the first and the second time, and for typed mistakes (median)")
    for name, (first, again, wrong) in rows.items():
        print(f"  {name:24} {first:5.2f} {again:5.2f} {wrong:5.2f}")
    for n, what in enumerate(("right, first", "right, again", "wrong")):
        times = {name: row[n] for name, row in rows.items()}
        slowest = max(times, key=lambda name: times[name])
        print(f"  {what:24} median {median(times.values()):.2f} s, slowest {times[slowest]:.2f} s ({slowest})")


def _times(exercise: Exercise) -> tuple[float, float, float]:
    right = _function(exercise, exercise.body({}))
    wrong = [_function(exercise, exercise.body(mistake.ways[0])) for mistake in exercise.mistakes[::4]]
    return _seconds(exercise, right), _seconds(exercise, right), median(_seconds(exercise, f) for f in wrong)


def _seconds(exercise: Exercise, function: Callable[..., Any]) -> float:
    start = thread_time()
    check(exercise, function)
    return thread_time() - start


def _function(exercise: Exercise, body: str) -> Callable[..., Any]:
    """Return the function that a learner defines by writing this body into a cell."""
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"def {exercise.function_name}({exercise.takes}):\n{indented}"
    file = f"<cell {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names = exercise.names()
    exec(compile(source, file, "exec"), names)
    function: Callable[..., Any] = names[exercise.function_name]
    return function
