"""Guards of what a notebook's text claims: a run that finds otherwise says so."""

from collections.abc import Callable

from lesson_utils.maths.machine import is_browser


def as_written(when: bool = True, /, **claims: bool | Callable[[], bool]) -> None:
    """Guard what a notebook's text says: `lab.as_written(STEPS >= 2500, falls_apart=right[16] < 0.1)`.

    Args:
        when: False where a reader has changed what the claims are about, such as the number of training steps. In a
            browser nothing is claimed either: its clock is another.
        claims: each True, or a function that says whether it is, for what can't be computed otherwise.

    Raises:
        AssertionError: claims that do not hold, by name.
    """
    if not when or is_browser():
        return
    wrong = [name for name, claim in claims.items() if not (claim() if callable(claim) else claim)]
    if wrong:
        raise AssertionError(f"what the text says does not hold in this run: {', '.join(wrong)}")


def as_timed(**claims: bool) -> None:
    """Say where a clock finds otherwise than the text; nothing stops.

    Clocks are another machine's, and of a busy one anything can be said.
    """
    if wrong := [name for name, claim in claims.items() if not claim]:
        print(f"This machine finds otherwise now: {', '.join(wrong)}. Where nothing else runs, try again.")
