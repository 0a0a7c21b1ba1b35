"""Runs a learner's function beside the reference, and beside every mistake we know, to name the one that was made.

An exercise is specified by its reference implementation: no expected numbers are stored. A misconception is a wrong
implementation with a message. If the learner's results equal those of the wrong implementation in every case, that
message is shown, in place of "wrong"; if they do so only where they first go wrong, there is more to find behind it.
"""

import dis
import html
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lesson_utils._html import details, to_html
from lesson_utils.exercises.old_trial import TIME_LIMIT, Outcome, attempt, close, plain, same


@dataclass(frozen=True)
class Case:
    """One call: its arguments, and what is special about it, in words that fit behind "on"."""

    label: str
    arguments: tuple[Any, ...]


class Misconception:
    """A mistake with a name, the message that explains it, and the implementations that make it.

    There are several `ways` where the same mistake, written otherwise, gives other results. The message can stand
    beside others, so it speaks of its own mistake only, never of "everything else".
    """

    def __init__(self, name: str, message: str, *ways: Callable[..., Any]) -> None:
        self.name, self.message, self.ways = name, message, ways


def together(a: Misconception, b: Misconception, *ways: Callable[..., Any]) -> Misconception:
    """Two mistakes at once, and the implementations that make both."""
    return Misconception(f"{a.name}; {b.name}", f"Two things to mend.\n1. {a.message}\n2. {b.message}", *ways)


@dataclass(frozen=True)
class Exercise:
    """What to write, how it is judged, and how to help. Texts may hold `code` in backticks."""

    name: str
    reference: Callable[..., Any]
    solution: Callable[..., Any]  # its source is shown on request, so it is written to be read
    cases: Callable[[np.random.Generator], Sequence[Case]]
    returns: tuple[str, ...]  # the names of what comes back, in order
    hints: tuple[str, ...]
    misconceptions: tuple[Misconception, ...]
    praise: str  # what a passing function has shown
    pairs: tuple[Misconception, ...] = ()  # two mistakes at once, looked at when no single one explains everything
    diagnose: Callable[..., str | None] = field(default=lambda *results: None)  # what any reader sees in wrong results
    library: tuple[Callable[..., Any], ...] = ()  # what the course has written already, and the learner shall write
    dtype_matters: bool = True  # must the results have the dtype of the reference's?

    def draw_cases(self) -> Sequence[Case]:
        return self.cases(np.random.default_rng(2017))

    def source(self) -> str:
        return re.sub("  # type: ignore.*", "", textwrap.dedent(inspect.getsource(self.solution)))


@dataclass(frozen=True)
class CheckResult:
    """What a check found. `passed` is None for a stub that nobody has worked on yet."""

    passed: bool | None
    message: str
    misconception: str | None = None
    hints: tuple[str, ...] = field(default=(), repr=False)
    solution: str = field(default="", repr=False)

    @property
    def headline(self) -> str:
        return {True: "Correct.", False: "Not yet.", None: "Not attempted yet."}[self.passed]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The message, and below it hints and solution, closed."""
        help_ = details(
            "Compare with our solution" if self.passed else "Show a solution",
            f"<pre>{html.escape(self.solution)}</pre>",
        )
        for n, hint in reversed(list(enumerate(self.hints, 1))):
            if not self.passed:  # each hint holds the next one, so nobody reads further than they need
                help_ = details(f"Hint {n} of {len(self.hints)}", f"<p>{to_html(hint)}</p>{help_}")
        colour = {True: "#007A5A", False: "#C14A00", None: "#6B6B6B"}[self.passed]
        box = f'<div role="status" style="border-left:4px solid {colour};padding:2px 12px">'
        box += f"<p><strong>{self.headline}</strong> {to_html(self.message)}</p>{help_}</div>"
        return {"text/html": box, "text/plain": f"{self.headline} {self.message}"}


def run(exercise: Exercise, function: Any, time_limit: float = TIME_LIMIT) -> CheckResult:
    """Judge `function` on the exercise's cases; whatever a learner wrote, the answer is a CheckResult."""

    def verdict(passed: bool | None, message: str, misconception: str | None = None) -> CheckResult:
        return CheckResult(passed, message, misconception, exercise.hints, exercise.source())

    if function is None or function is ...:
        return verdict(None, "Write the function above, then run this cell again.")
    if not callable(function):
        kind = type(function).__name__
        return verdict(False, f"This is a value ({kind}), not a function: hand over the function without calling it.")
    cases = exercise.draw_cases()
    if problem := _signature_problem(exercise, function, cases[0]):
        return verdict(False, problem)

    outcomes = []
    for case in cases:
        outcomes.append(attempt(function, case.arguments, time_limit, exercise.library))
        if outcomes[-1].timed_out:  # once is enough
            break
    if todo := _stub_problem(function, outcomes[0]):
        return verdict(None, f"{todo}, run its cell, then run this one again.")
    wanted = [attempt(exercise.reference, case.arguments) for case in cases[: len(outcomes)]]
    tries = list(zip(cases, outcomes, wanted, strict=False))
    faults = [fault for fault in (_fault(exercise, *one) for one in tries) if fault]
    if recognised := _recognise(exercise, tries):
        return verdict(False, *recognised)
    if faults:
        return verdict(False, faults[0])
    if borrowed := next((name for outcome in outcomes for name in outcome.borrowed), None):
        message = f"`{borrowed}` is the library's own, and right. Now write it yourself: the hints lead the way."
        return verdict(False, message, "the library's own")
    return verdict(True, exercise.praise)


_Try = tuple[Case, Outcome, Outcome]  # a call, what the learner's function made of it, and what the reference did


def _signature_problem(exercise: Exercise, function: Any, case: Case) -> str | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return None
    try:
        signature.bind(*case.arguments)
    except TypeError:
        wanted = inspect.signature(exercise.reference)
        names = ", ".join(list(wanted.parameters)[: len(case.arguments)])
        return f"The check calls your function with `({names})`; yours takes `{signature}`."
    return None


def _stub_problem(function: Any, outcome: Outcome) -> str | None:
    """What to do with a function that nobody has worked on yet."""
    replace = "Replace the `...` above with your code"
    values = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
    if any(value is ... for value in values) or "ellipsis" in str(outcome.error):
        return replace
    if outcome.value is not None or outcome.error or outcome.timed_out or not hasattr(function, "__code__"):
        return None
    idle = {"RESUME", "NOP", "LOAD_CONST", "POP_TOP", "RETURN_CONST", "RETURN_VALUE"}
    if any(step.opname not in idle for step in dis.get_instructions(function)):
        return None
    try:
        return replace if "..." in inspect.getsource(function) else "Write the function's body above"
    except (OSError, TypeError):  # no source to look at; the compiled `...` and `pass` are the same
        return "Write the function's body above"


def _recognise(exercise: Exercise, tries: Sequence[_Try]) -> tuple[str, str] | None:
    """The message for the mistake that was made, and its name; None for one that we do not know.

    The mistake has a name if a misconception does the same in every case. Else the first mistake of several has one, if
    a misconception does the same in the first case that went wrong, and is not wrong where the learner is right.
    """
    right = [same(outcome, wanted) for _, outcome, wanted in tries]
    if all(right):
        return None
    case, outcome, _ = tries[right.index(False)]

    partly = []
    for known in (*exercise.misconceptions, *exercise.pairs):
        for wrong in known.ways:
            if not same(attempt(wrong, case.arguments), outcome):  # most are out after this one call
                continue
            agrees = [same(attempt(wrong, c.arguments), o) for c, o, _ in tries]
            if all(agrees):
                error = f"{type(outcome.error).__name__} on {case.label}{outcome.where}" if outcome.error else ""
                return known.message + (f"\n({error})" if error else ""), known.name
            if known not in exercise.pairs and all(a for a, r in zip(agrees, right, strict=True) if r):
                partly.append((sum(agrees), known))
    # An error rarely tells which mistake made it. NumPy's words for an array in the place of a yes or no do.
    if not partly or not ("truth value" in str(outcome.error) or outcome.is_telling()):
        return None
    _, known = max(partly, key=lambda found: found[0])  # of several that fit as well, the first
    return f"First: {known.message} There may be more.", known.name


def _parts(exercise: Exercise, value: Any) -> tuple[Any, ...] | None:
    """What came back, by result; None if the number of results is wrong."""
    if len(exercise.returns) == 1:
        return (value,)
    return tuple(value) if isinstance(value, tuple | list) and len(value) == len(exercise.returns) else None


def _fault(exercise: Exercise, case: Case, outcome: Outcome, reference: Outcome) -> str | None:
    """What is wrong with an outcome, from the coarsest to the finest; None if nothing is."""
    if outcome.timed_out:
        return (
            f"Your function had not returned after some seconds, on {case.label}{outcome.where}. Does a loop never end?"
        )
    if outcome.error:
        kind = type(outcome.error).__name__
        return f"Your function raised {kind} on {case.label}{outcome.where}\n{kind}: {outcome.error}"
    if outcome.value is None:
        return "Your function returned None. Is a `return` missing at its end?"
    results = _parts(exercise, outcome.value)
    if results is None:
        return f"Your function should return {len(exercise.returns)} things: `return {', '.join(exercise.returns)}`."
    wanted = _parts(exercise, reference.value)
    assert wanted is not None  # the reference returns what it says
    comparable = all(_comparable(got, want) for got, want in zip(results, wanted, strict=True))
    for name, got, want in zip(exercise.returns, results, wanted, strict=True):
        if problem := _difference(name, got, want):
            extra = exercise.diagnose(*results) if comparable else None
            return f"On {case.label}, {problem}" + (f"\n{extra}" if extra else "")
    if outcome.changed:
        names = list(inspect.signature(exercise.reference).parameters)
        changed = " and ".join(f"`{names[i]}`" for i in outcome.changed)
        return (
            f"The result is right, but your function changes its argument {changed} in place, and with it the "
            f"caller's data. `x -= 1`, `x /= 2` and `x[...] = 0` all write into `x`; `x = x - 1` makes a new array."
        )
    for name, got, want in zip(exercise.returns, results, wanted, strict=True):
        if isinstance(want, np.ndarray) and want.dtype == bool and np.asarray(got).dtype != bool:
            return (
                f"The numbers are right; one thing is left. `{name}` has dtype {np.asarray(got).dtype}, and masks in "
                "this course are boolean: add `dtype=bool`, or compare, `mask > 0`."
            )
        if exercise.dtype_matters and isinstance(want, np.ndarray) and got.dtype != want.dtype:
            if want.dtype == np.float64:
                return (
                    f"The numbers are right; one thing is left. `{name}` has dtype {got.dtype}; expected float64, "
                    "NumPy's own choice. Did you ask for another?"
                )
            masks = "mask" in inspect.signature(exercise.reference).parameters
            return (
                f"The numbers are right; one thing is left. {want.dtype} went in, `{name}` came out as {got.dtype}. "
                "What makes a float64: another array that is float64 (convert it: `.astype(x.dtype)`), `np.sqrt(5)` "
                "(take `math.sqrt(5)`), `np.zeros(n)` (add `dtype=x.dtype`)"
                + (
                    ", arithmetic on a boolean mask (`~mask * -1e9`), `np.where(mask, 0, -np.inf)` (write "
                    "`np.where(mask, scores, -np.inf)`), `np.finfo(float).min`."
                    if masks
                    else "."
                )
            )
    return None


def _comparable(got: Any, want: Any) -> bool:
    return isinstance(got, np.ndarray) and got.shape == np.shape(want) and got.dtype.kind == "f"


def _difference(name: str, got: Any, want: Any) -> str | None:
    got = plain(got)
    if not isinstance(got, np.ndarray | np.generic | float | int):
        return f"`{name}` is a {type(got).__name__}; expected a {'NumPy array' if np.ndim(want) else 'number'}."
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind not in "biuf":
        return f"`{name}` has dtype {got.dtype}; expected real numbers."
    if got.shape != want.shape:
        return f"`{name}` {_shape(got)}; expected {want.shape if want.ndim else 'a single number'}."
    if np.isnan(got).any() and not np.isnan(want).any():
        return f"`{name}` holds NaN (not a number): somewhere 0 was divided by 0, or ∞ met ∞."
    if close(got, want):
        return None
    with np.errstate(all="ignore"):
        at = np.unravel_index(np.nanargmax(np.abs(got.astype(float) - want)), want.shape)
    entry = f"{name}[{', '.join(map(str, at))}]" if want.ndim else name
    return f"`{entry}` is {digits(got[at], want[at])}; expected {digits(want[at], got[at])}."


def _shape(x: np.ndarray) -> str:
    return f"has shape {x.shape}" if x.ndim else "is a single number"


def digits(x: Any, other: Any) -> str:
    """`x` with as many digits as it takes to tell it from `other`, but at least four."""
    x, other = float(x), float(other)
    return next((f"{x:.{n}g}" for n in range(4, 17) if f"{x:.{n}g}" != f"{other:.{n}g}"), repr(x))
