"""Guards of what a notebook's text claims: a run that finds otherwise says so. See `claims` in conftest.py."""


def as_written(when=True, /, **claims):
    """Guard what a notebook's text says: `as_written(STEPS >= 2500, falls_apart=right[16] < 0.1)`.

    `when` is False where a reader has changed what the claims are about, such as the number of training steps. A claim
    is True, or a function that says whether it is, for what can't be computed otherwise.
    """
    wrong = [name for name, claim in claims.items() if when and not (claim() if callable(claim) else claim)]
    if wrong:
        raise AssertionError(f"what the text says does not hold in this run: {', '.join(wrong)}")


def as_timed(**claims):
    """Say where a clock finds otherwise than the text; nothing stops.

    Clocks are another machine's, and of a busy one anything can be said.
    """
    if wrong := [name for name, claim in claims.items() if not claim]:
        print(f"This machine finds otherwise now: {', '.join(wrong)}. Where nothing else runs, try again.")
