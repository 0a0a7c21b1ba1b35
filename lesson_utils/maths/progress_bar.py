"""Progress bars, for `training.fit` and for models that are loaded. Without tqdm there are none."""

import sys
from typing import Any

FORM = "{n_fmt}/{total_fmt} steps{postfix} |{bar}|"


def line(**options: Any) -> Any:
    """Return tqdm's bar of 80 columns on standard output, or None where there is no tqdm.

    Standard error would look like a failure, since notebooks show it in red.
    """
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]  # here: it takes its time to import
    except ModuleNotFoundError:
        return None
    tqdm.monitor_interval = 0  # no thread watches over it: browsers' Python has no threads
    return tqdm(file=sys.stdout, ncols=80, **options)


class Bar:
    """A line of progress on standard output, in a terminal and in a notebook.

    It is not tqdm's notebook widget: a saved notebook would show a dead one, and without ipywidgets a warning. The
    finished line has no times in it, so that running a notebook again does not change its output.
    """

    def __init__(self, total: int, disable: bool) -> None:
        form = f"{FORM} {{remaining}} left"
        self._line = None if disable else line(total=total, mininterval=0.25, bar_format=form, leave=True)

    def advance(self, loss: float) -> None:
        if self._line is not None:
            self._line.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            self._line.update()

    def close(self) -> None:
        if self._line is not None:
            self._line.bar_format = FORM
            self._line.close()
