"""Progress bars: of `training.fit`, and of what is loaded."""

import sys

from tqdm import tqdm  # type: ignore[import-untyped]


class Unwatched(tqdm):
    """tqdm without a thread that watches over it: browsers' Python has no threads."""

    monitor_interval = 0


class Bar(Unwatched):
    """One line on standard output, in a terminal and in a notebook.

    Not tqdm's notebook widget: a saved notebook would show a dead one, and without ipywidgets it is a warning. Not
    standard error, where notebooks put what went wrong. The finished line has no times in it, so that a notebook that
    was run again is not different for it.
    """

    def __init__(self, total: int, disable: bool) -> None:
        form = "{n_fmt}/{total_fmt} steps{postfix} |{bar}| {remaining} left"
        super().__init__(
            total=total, disable=disable, file=sys.stdout, ncols=80, mininterval=0.25, bar_format=form, leave=True
        )

    def advance(self, loss: float) -> None:
        if not self.disable:
            self.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            self.update()

    def close(self) -> None:
        self.bar_format = "{n_fmt}/{total_fmt} steps{postfix} |{bar}|"
        super().close()
