"""A guard for checks: a cell that failed leaves the version before, and that is not judged."""

import contextlib
import io
import linecache
import re
import sys
from collections.abc import Iterator
from typing import Any

SAME = "\nThis is the same function as at the last check. If you have changed it since, run its cell first."


def did_not_run(function: Any) -> str:
    """Return what to do if a newer version of the function stands in a cell that ended in an error; else "".

    IPython keeps the source of every cell that was run, and that of the cell where a function was made. If the newest
    cell with a `def` of this name is another one, that cell made no function.
    """
    code, name = getattr(function, "__code__", None), getattr(function, "__name__", "")
    shell = _shell()
    if shell is None or code is None or shell.user_ns.get(name) is not function:
        return ""
    made_in = "".join(linecache.getlines(code.co_filename)).strip()
    cells = [source.strip() for source in shell.user_ns.get("In", ())]
    definition = re.compile(rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\b", re.M)
    written = next((source for source in reversed(cells) if definition.search(source)), made_in)
    if made_in not in cells or written == made_in:
        return ""
    return (
        f"The newest version of `{name}` did not run, because its cell ended in an error. Mend the error, run the "
        "cell, and check again. (A verdict now would be about the version before.)"
    )


def _shell() -> Any:
    """Return IPython's shell, if there is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """Show what a learner's function prints under a line that says where it comes from."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        if text := printed.getvalue().rstrip("\n"):
            print(f"Your function printed:\n{text}")
