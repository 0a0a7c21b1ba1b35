"""What results depend on: an argument that is ignored, rows that move with rows which they should not see."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lesson_utils.mistakes.exercise import Case, Exercise
from lesson_utils.mistakes.run.sandbox import quick


def listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _moved(value: Any, again: Any) -> list[np.ndarray]:
    """For each result, the entries that are not as before."""
    a, b = (value if isinstance(value, tuple) else (value,)), (again if isinstance(again, tuple) else (again,))
    with np.errstate(all="ignore"):
        return [~np.isclose(x, y, rtol=1e-5, atol=1e-9, equal_nan=True) for x, y in zip(a, b, strict=True)]


def _lost(value: Any) -> bool:
    return any(np.isnan(result).any() for result in (value if isinstance(value, tuple) else (value,)))


def dependence(exercise: Exercise, function: Callable[..., Any], case: Case) -> str | None:
    """An argument that is ignored; rows that depend on rows which they should not see; hidden entries with weight."""
    arguments = list(case.arguments)

    def both(changed: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
        outcomes = [quick(f, a) for f in (exercise.right, function) for a in (arguments, changed)]
        if any(o.error for o in outcomes):
            return None
        try:
            if _lost(outcomes[2].value) or _lost(outcomes[3].value):  # what overflowed depends on nothing any more
                return None
            return _moved(outcomes[0].value, outcomes[1].value), _moved(outcomes[2].value, outcomes[3].value)
        except (TypeError, ValueError):
            return None

    ignored: dict[str, list[str]] = {}
    rng = np.random.default_rng(0)
    for k, (name, x) in enumerate(zip(exercise.parameters, arguments, strict=False)):
        if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size:
            new: Any = x + np.asarray(rng.normal(size=x.shape), x.dtype)
        elif isinstance(x, np.ndarray) and x.dtype == bool and not x.all():
            new = np.ones_like(x)
        elif type(x) is float:
            new = 1.5 * x
        else:
            continue
        found = both([*arguments[:k], new, *arguments[k + 1 :]])
        for result, should, does in zip(exercise.returns, *found, strict=False) if found else ():
            if should.any() and not does.any():
                ignored.setdefault(result, []).append(f"`{name}`")
    if ignored:
        result, which = next(iter(ignored.items()))
        return f"`{result}` does not depend on {listed(which)}: exchange {'them' if len(which) > 1 else 'it'}, and nothing changes."
    for k, (name, x) in enumerate(zip(exercise.parameters, arguments, strict=False)):
        if not isinstance(x, np.ndarray) or x.dtype.kind != "f" or x.ndim < 2:
            continue
        for axis, what in ((-2, "row"), (0, "entry along the first axis")):
            if x.shape[axis] < 2 or (axis == 0 and x.ndim < 3):
                continue
            new = x.copy()
            np.moveaxis(new, axis, 0)[-1] += 1 + rng.normal(size=np.moveaxis(new, axis, 0)[-1].shape)
            found = both([*arguments[:k], new, *arguments[k + 1 :]])
            for result, should, does in zip(exercise.returns, *found, strict=False) if found else ():
                if should.ndim < 2 or should.shape != does.shape or not does.any():
                    continue
                rows = [np.moveaxis(m, axis, 0).reshape(m.shape[axis], -1).any(axis=1) for m in (should, does)]
                extra = rows[1] & ~rows[0]
                if extra.any():
                    return f"{what.capitalize()} {np.flatnonzero(extra)[0]} of `{result}` changes with the last {what} of `{name}`, and should not."
    return None
